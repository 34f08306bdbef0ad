"""Pairs that are alike → a page: a card for each, their lines side by side, what both share marked."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from autograder.course.similarity.comparison import Similarity
from autograder.course.similarity.fingerprints import Pair, Slices
from autograder.pages.html import render_page
from autograder.vocabulary.text import visible

MAX_SHOWN = 100
SHOWN_OPEN = 3  # pairs whose lines are unfolded
SHOWN_AROUND = 2  # lines
MAX_LINES = 400  # of one submission that are laid beside another's

Mark = Literal["", "usual", "few"]
MARKS: tuple[Mark, ...] = ("", "usual", "few")
WORD = re.compile(r"\w+")
COMMENT = re.compile(r"#.*")


@dataclass(frozen=True)
class Line:
    """One line of a text, in parts that nobody, many or few others share; `given` where it stands in the handout."""

    number: int
    parts: tuple[tuple[Mark, str], ...]
    given: bool = False

    @property
    def is_marked(self) -> bool:
        """Whether it holds anything that few others have."""
        return any(mark == "few" and part.strip() for mark, part in self.parts)


Row = tuple[Line | None, Line | None]


def page(found: Similarity, title: str, module: str = "") -> str:
    """A self-contained page of the pairs, side by side; every text in it is escaped."""
    return render_page(
        "similar.html",
        title=title,
        module=module,
        count=len(found.texts),
        pairs=[(pair, side_by_side(pair, found)) for pair in found.pairs[:MAX_SHOWN]],
        shown_open=SHOWN_OPEN,
        more=max(0, len(found.pairs) - MAX_SHOWN),
        left_out=sorted((name, visible(reason, 200)) for name, reason in found.left_out.items()),
    )


def side_by_side(pair: Pair, found: Similarity) -> list[Row | None]:
    """The lines of both, laid beside each other where they are alike; None for what is left out between."""
    sides = zip(pair.students, pair.slices, pair.usual, strict=True)
    one, other = (lines_of(found.texts[name], few, usual, found.given)[:MAX_LINES] for name, few, usual in sides)
    rows = list(_rows(one, other))
    wanted: set[int] = set()
    for index, row in enumerate(rows):
        if any(line is not None and line.is_marked for line in row):
            wanted |= set(range(index - SHOWN_AROUND, index + SHOWN_AROUND + 1))
    shown: list[Row | None] = []
    for index, row in enumerate(rows):
        if index in wanted:
            shown.append(row)
        elif shown and shown[-1] is not None:
            shown.append(None)
    return shown[:-1] if shown and shown[-1] is None else shown


def lines_of(text: str, few: Slices, usual: Slices = (), given: frozenset[str] = frozenset()) -> list[Line]:
    """The lines of a text with what is shared marked in them; what few others have goes before what many have.

    Indentation is not marked, nor is a bracket or comma that begins or ends a run: they catch the eye and say nothing.
    """
    marked = bytearray(len(text))
    for kind, slices in ((1, usual), (2, few)):
        for start, end in slices:
            first, last = max(0, start), min(len(text), end)
            marked[first:last] = bytes([kind]) * max(0, last - first)
    lines, place = [], 0
    for count, line in enumerate(text.splitlines(keepends=True), start=1):
        flags = marked[place : place + len(line)]
        place += len(line)
        runs = itertools.groupby(zip(flags, line, strict=True), key=lambda one: one[0])
        parts = ((MARKS[flag], "".join(character for _, character in run).rstrip("\n")) for flag, run in runs)
        told: Iterator[tuple[Mark, str]] = ((mark if WORD.search(part) else "", part) for mark, part in parts)
        joined = itertools.groupby(_outdented(told), key=lambda one: one[0])
        texts = ((mark, "".join(part for _, part in run)) for mark, run in joined)
        lines.append(Line(count, tuple(one for one in texts if one[1]), line.strip() in given))
    return lines


def _outdented(parts: Iterable[tuple[Mark, str]]) -> Iterator[tuple[Mark, str]]:
    """The parts of a line, where no indentation is marked."""
    for place, (mark, part) in enumerate(parts):
        text = part.lstrip() if mark and not place else part
        yield "", part[: len(part) - len(text)]
        yield mark, text


def _rows(one: Sequence[Line], other: Sequence[Line]) -> Iterator[Row]:
    """Both texts as rows: lines that are the same but for names stand in one."""
    matcher = difflib.SequenceMatcher(None, [*map(_shape, one)], [*map(_shape, other)], autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        yield from itertools.zip_longest(one[start:end], other[other_start:other_end])


def _shape(line: Line) -> str:
    """What is left of a line without its names, numbers, comment and indentation."""
    text = "".join(part for _, part in line.parts)
    return WORD.sub("w", COMMENT.sub("", text)).strip()
