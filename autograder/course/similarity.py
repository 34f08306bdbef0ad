"""Which submissions are alike beyond what the handout makes alike: pairs for a person to look at, never a verdict.

Fingerprints by copydetect: names, comments, strings and layout do not count, runs of tokens do. What stands
in the handout is left out. Nothing of a submission is run; it is read in a process of its own with caps on size, time
and memory, since a text can be made to be slow to split.
"""

from __future__ import annotations

import importlib.util
import io
import itertools
import resource
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.grading.items import Assignment
from autograder.pages.html import render_page
from autograder.sandbox.apart import apart
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

GRAM = 40  # characters, names shortened to one, of the shortest run that counts
WINDOW = 1  # keep every run: which of several a wider window kept would depend on Python's seed for hashes
MAX_SOURCE = 200_000  # characters of one submission
SECONDS_EACH = 20  # to fingerprint one
MEMORY = 4 * 2**30  # bytes of the process that does
MIN_SHARED = 80  # characters, names shortened to one: less is what any two answers share
MAX_SHOWN = 100
SHOWN_AROUND = 2  # lines
MAX_LINES = 400  # of one submission in a pair

Slices = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Pair:
    """Two submissions and what they share beyond the handout.

    shares    of each one's own part: characters in common, names shortened to one
    common    that many characters
    slices    where, in each one's text
    """

    students: tuple[str, str]
    shares: tuple[float, float]
    common: int
    slices: tuple[Slices, Slices]


@dataclass(frozen=True)
class Similarity:
    """What was compared, pairs by how much they share, and who was left out with the reason."""

    texts: Mapping[str, str]
    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str]


def compare_class(assignment: Assignment, paths: Sequence[Path]) -> Similarity:
    """Compare every two submissions at these paths; raises UsageError where copydetect is not installed."""
    if importlib.util.find_spec("copydetect") is None:
        raise UsageError("Comparing submissions takes the package copydetect: `pip install -e '.[similarity]'`.")
    texts: dict[str, str] = {}
    left_out: dict[str, str] = {}
    untouched = assignment.untouched_source()
    for candidate in find(paths, assignment.module):
        submission = read(candidate, assignment.module, untouched)
        if reason := submission.fault or submission.problem:
            left_out[candidate.student] = reason
        elif len(submission.source) > MAX_SOURCE:
            left_out[candidate.student] = f"longer than {MAX_SOURCE:,} characters"
        else:
            texts[candidate.student] = normalized(submission.source)
    handout = [normalized(text) for text in (untouched, *assignment.given_sources().values()) if text]
    pairs, slow = apart(_pairs, texts, handout)
    return Similarity(texts, tuple(pairs), left_out | dict.fromkeys(slow, "too slow to split into tokens"))


def normalized(source: str) -> str:
    """The text as the tokenizer sees it, so that its places are places of this."""
    lines = source.removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n").replace("\r", "\n")
    return lines.strip("\n") + "\n"


# In a process of its own


def _pairs(texts: Mapping[str, str], handout: Sequence[str]) -> tuple[list[Pair], list[str]]:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from copydetect import compare_files

    known = {gram for text in handout for gram in _fingerprint(text).hashes}
    prints: dict[str, Any] = {}
    slow: list[str] = []
    for student, text in texts.items():
        try:
            with _alarm(SECONDS_EACH):
                prints[student] = _without(_fingerprint(text), known)
        except (TimeoutError, MemoryError, RecursionError):
            slow.append(student)
    pairs = []
    for one, other in itertools.combinations(prints, 2):
        if not prints[one].hashes & prints[other].hashes:
            continue
        common, shares, slices = compare_files(prints[one], prints[other])
        if common >= MIN_SHARED:
            found = (tuple((int(a), int(b)) for a, b in zip(*each, strict=True)) for each in slices)
            pairs.append(Pair((one, other), _shares(shares), int(common), (next(found), next(found))))
    return sorted(pairs, key=lambda pair: (-max(pair.shares), -pair.common, pair.students)), slow


def _fingerprint(text: str) -> Any:
    from copydetect import CodeFingerprint

    return CodeFingerprint("submission.py", GRAM, WINDOW, language="python", fp=io.StringIO(text))


def _without(found: Any, known: set[int]) -> Any:
    """The fingerprint without the handout's. copydetect's own `boilerplate` counts a repeated run as the handout's."""
    from copydetect.utils import get_token_coverage

    found.hashes -= known
    found.hash_idx = {gram: places for gram, places in found.hash_idx.items() if gram not in known}
    found.token_coverage = get_token_coverage(found.hash_idx, found.k, len(found.filtered_code))
    return found


def _shares(shares: Sequence[float]) -> tuple[float, float]:
    return min(1.0, float(shares[0])), min(1.0, float(shares[1]))


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# As a page


@dataclass(frozen=True)
class Line:
    """One line of a text, in parts that are shared or not; `number` is 0 for lines that were left out."""

    number: int
    parts: tuple[tuple[bool, str], ...]


def page(found: Similarity, title: str) -> str:
    """A self-contained page of the pairs, side by side; every text in it is escaped."""
    return render_page(
        "similar.html",
        title=title,
        count=len(found.texts),
        pairs=[(pair, _sides(pair, found.texts)) for pair in found.pairs[:MAX_SHOWN]],
        more=max(0, len(found.pairs) - MAX_SHOWN),
        left_out=sorted((name, visible(reason, 200)) for name, reason in found.left_out.items()),
    )


def _sides(pair: Pair, texts: Mapping[str, str]) -> list[tuple[str, float, list[Line]]]:
    sides = zip(pair.students, pair.shares, pair.slices, strict=True)
    return [(name, share, marked_lines(texts[name], slices)) for name, share, slices in sides]


def marked_lines(text: str, slices: Slices) -> list[Line]:
    """The lines that hold a shared part, with a little around them; what is left out between them is one empty line."""
    marked = bytearray(len(text))
    for start, end in slices:
        marked[max(0, start) : min(len(text), end)] = b"\1" * max(0, min(len(text), end) - max(0, start))
    lines, place = [], 0
    for count, line in enumerate(text.splitlines(keepends=True), start=1):
        flags = marked[place : place + len(line)]
        place += len(line)
        runs = itertools.groupby(zip(flags, line, strict=True), key=lambda one: bool(one[0]))
        lines.append(Line(count, tuple((flag, "".join(c for _, c in run).rstrip("\n")) for flag, run in runs)))
    wanted: set[int] = set()
    for index, one in enumerate(lines):
        if any(flag and part.strip() for flag, part in one.parts):
            wanted |= set(range(index - SHOWN_AROUND, index + SHOWN_AROUND + 1))
    return _with_gaps([one for index, one in enumerate(lines) if index in wanted][:MAX_LINES])


def _with_gaps(lines: Sequence[Line]) -> list[Line]:
    shown: list[Line] = []
    for line in lines:
        if shown and line.number != shown[-1].number + 1:
            shown.append(Line(0, ()))
        shown.append(line)
    return shown
