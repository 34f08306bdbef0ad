"""The handout and what became of it: a unified diff. Nothing of the solution stands in either."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from autograder.pages.listing.colours import plain
from autograder.submissions.submission import Submission
from autograder.submissions.syntax import UNPARSABLE

MAX_LINES = 1_500  # that are compared
MAX_BYTES = 14_000  # of the diff, as HTML
CONTEXT = 1
KINDS = {"+": "added", "-": "removed", "@": "where", " ": "same", "…": "where"}


@dataclass(frozen=True)
class Change:
    """A line of the diff: its kind is one of `added`, `removed`, `where`, `same`."""

    kind: str
    html: Markup


def changes_of(
    handout: str, submission: Submission, lines: Sequence[str], spans: Mapping[str, tuple[int, int]]
) -> tuple[Change, ...]:
    """What differs from the handout: in the file, or of a notebook in each function. Cut where it grows too long."""
    if not handout:
        return ()
    theirs = handout.split("\n")
    if not submission.cells:
        return tuple(_capped(_diff(theirs, lines)))
    given = _functions(handout)
    found: list[str] = []
    for name, (first, last) in spans.items():
        before = theirs[given[name][0] - 1 : given[name][1]] if name in given else []
        found += [f"@@ {name} @@", *_diff(before, lines[first - 1 : last])]
    return tuple(_capped(found))


def _functions(source: str) -> dict[str, tuple[int, int]]:
    try:
        body = ast.parse(source).body
    except UNPARSABLE:
        return {}
    return {node.name: (node.lineno, node.end_lineno or 0) for node in body if isinstance(node, ast.FunctionDef)}


def _diff(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of the diff without its two heads."""
    cut = [line.rstrip() for line in after[:MAX_LINES]]
    return list(difflib.unified_diff([line.rstrip() for line in before], cut, n=CONTEXT, lineterm=""))[2:]


def _capped(diff: Sequence[str]) -> Iterator[Change]:
    room = MAX_BYTES
    for index, line in enumerate(diff):
        html = plain(line)
        room -= len(html.encode()) + 30
        if room < 0:
            yield Change("where", plain(f"… {len(diff) - index} more lines"))
            return
        yield Change(KINDS[line[:1]], html)
