"""Show which submissions are alike beyond what the handout makes alike: pairs to look at, never a verdict.

Fingerprints by copydetect: every run of 40 characters, once names are shortened to one. Names, comments, strings and
layout do not count. What a run says is how few have it. Where two share one, and k of the m others of the class have it
too, it weighs

    (log((m + 1) / (k + 1)) / log(m + 1))²          1 where nobody else has it, 0 where all have: no evidence

which is the inverse document frequency of text retrieval, of the class without the two, squared. A run that a ring of
five copies has in a class of thirty still weighs a third. A character weighs what the rarest run over it does, and a
share is what both have of what one has, both weighed.

Nothing of a submission is run. A text can be made to be slow to split, so that is done in a process of its own.
"""

from __future__ import annotations

import copy
import difflib
import importlib.util
import io
import itertools
import math
import re
import resource
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from autograder.grading.assignment import Assignment
from autograder.pages.html import render_page
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import OutOfTimeError, time_limit

LEAST = 0.3  # of one's own work, weighed: honest answers to short questions share as much as that
LEAST_COMMON = 40  # characters, weighed: less is a line or two
RARE = 0.3  # a run that weighs as much is marked as one that few have
GRAM = 40  # characters, names shortened to one, of the shortest run that counts
WINDOW = 1  # keep every run: which of several a wider window kept would depend on Python's seed for hashes
SECONDS_EACH = 20  # of processor time, to fingerprint one
MEMORY = 4 * 2**30  # bytes of the process that does
MAX_SHOWN = 100  # pairs on the page
SHOWN_OPEN = 3  # pairs whose lines are unfolded
SHOWN_AROUND = 2  # lines
MAX_LINES = 400  # of one submission that are laid beside another's
WORD = re.compile(r"\w+")
COMMENT = re.compile(r"#.*")

Slices = tuple[tuple[int, int], ...]
Mark = Literal["", "usual", "few"]  # what nobody, many or few others share
MARKS: tuple[Mark, ...] = ("", "usual", "few")


@dataclass(frozen=True)
class Pair:
    """Two submissions and what they share beyond the handout.

    shares    of each one's own part, weighed by how few others have it
    common    that many characters, weighed
    slices    where the runs stand that few others have, in each one's text
    usual     where those stand that many have
    """

    students: tuple[str, str]
    shares: tuple[float, float]
    common: float
    slices: tuple[Slices, Slices]
    usual: tuple[Slices, Slices] = ((), ())


@dataclass(frozen=True)
class Similarity:
    """What was compared, pairs by how much they share, and who was left out with the reason.

    given   the lines of the handout, without the white space around them
    """

    texts: Mapping[str, str]
    pairs: tuple[Pair, ...]
    left_out: Mapping[str, str]
    given: frozenset[str] = frozenset()


def compare_class(assignment: Assignment, candidates: Sequence[Candidate], least: float = LEAST) -> Similarity:
    """Compare every two of these submissions; raises UsageError where copydetect is not installed.

    least   the share of one's own work, weighed, from which on a pair is shown
    """
    if importlib.util.find_spec("copydetect") is None:
        raise UsageError("Comparing submissions takes the package copydetect: `pip install -e '.[similarity]'`.")
    texts: dict[str, str] = {}
    left_out: dict[str, str] = {}
    untouched = assignment.untouched_source()
    for candidate in candidates:
        submission = read_limited(candidate, assignment.module, untouched)
        if reason := submission.fault or submission.problem:
            left_out[candidate.student] = reason
        else:
            texts[candidate.student] = _normalized(submission.source)
    handout = [_normalized(text) for text in (untouched, *assignment.given_sources().values()) if text]
    pairs, slow = run_in_subprocess(pairs_of, texts, handout, least)
    given = frozenset(line.strip() for text in handout for line in text.splitlines() if line.strip())
    return Similarity(texts, tuple(pairs), left_out | dict.fromkeys(slow, "too slow to split into tokens"), given)


def _normalized(source: str) -> str:
    """Return the text as the tokenizer sees it, so that its places are places of this."""
    lines = source.removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n").replace("\r", "\n")
    return lines.strip("\n") + "\n"


# In a process of its own


def pairs_of(texts: Mapping[str, str], handout: Sequence[str], least: float) -> tuple[list[Pair], list[str]]:
    """Find the pairs that share at least that much, the most alike first; and whose text was too slow to split."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    given = {gram for text in handout for gram in _fingerprint(text).hashes}
    prints: dict[str, Any] = {}
    slow: list[str] = []
    for student, text in texts.items():
        try:
            with time_limit(SECONDS_EACH):
                fingerprint = _fingerprint(text)
                prints[student] = _restricted(fingerprint, fingerprint.hashes - given)
        except (OutOfTimeError, MemoryError, RecursionError):
            slow.append(student)
    counts = Counter(gram for fingerprint in prints.values() for gram in fingerprint.hashes)
    weights = _weights(len(prints))
    pairs = []
    for students in itertools.combinations(prints, 2):
        one, other = (prints[student] for student in students)
        shares, common = weighed(one, other, counts, len(prints))
        if common >= LEAST_COMMON and max(shares) >= least:
            both = one.hashes & other.hashes
            rare = {gram for gram in both if weights[counts[gram] - 2] >= RARE}
            slices, usual = ((_places(one, grams), _places(other, grams)) for grams in (rare, both - rare))
            pairs.append(Pair(students, shares, round(common, 1), slices, usual))
    return sorted(pairs, key=lambda pair: (-max(pair.shares), -pair.common, pair.students)), slow


def weighed(one: Any, other: Any, counts: Mapping[int, int], students: int) -> tuple[tuple[float, float], float]:
    """Weigh what two fingerprints share of each, and how much that is; `counts` says how many have a run."""
    if not (both := one.hashes & other.hashes):
        return (0.0, 0.0), 0.0
    weights = _weights(students)
    shares, common = [], []
    for each in (one, other):
        shared = _weight(each, {gram: weights[counts[gram] - 2] for gram in both})
        whole = _weight(each, {gram: weights[counts[gram] - (2 if gram in both else 1)] for gram in each.hashes})
        shares.append(shared / whole if whole else 0.0)
        common.append(shared)
    return (shares[0], shares[1]), min(common)


def _weight(fingerprint: Any, weights: Mapping[int, float]) -> float:
    """Weigh the characters under these runs, each as much as the rarest run over it."""
    import numpy as np

    places = [(place, weight) for gram, weight in weights.items() for place in fingerprint.hash_idx[gram]]
    at, much = np.array([place for place, _ in places]), np.array([weight for _, weight in places])
    over = np.zeros(max(at, default=0) + fingerprint.k)
    np.maximum.at(over, at, much)
    starts = over.copy()
    for offset in range(1, fingerprint.k):
        np.maximum(over[offset:], starts[:-offset], out=over[offset:])
    return float(over.sum())


def _weights(students: int) -> list[float]:
    """Compute what a run weighs that k others have, for every k."""
    others = students - 2
    if others < 1:
        return [1.0, 1.0]
    most = math.log(others + 1)
    return [max(0.0, (most - math.log(k + 1)) / most) ** 2 for k in range(others + 2)]


def _fingerprint(text: str) -> Any:
    from copydetect import CodeFingerprint

    return CodeFingerprint("submission.py", GRAM, WINDOW, language="python", fp=io.StringIO(text))


def _restricted(fingerprint: Any, grams: Set[int]) -> Any:
    """Keep these runs of a fingerprint alone. copydetect's own `boilerplate` counts a repeated run as given."""
    kept = copy.copy(fingerprint)
    kept.hashes = fingerprint.hashes & grams
    kept.hash_idx = {gram: places for gram, places in fingerprint.hash_idx.items() if gram in kept.hashes}
    return kept


def _places(fingerprint: Any, grams: Set[int]) -> Slices:
    """Find where these runs stand in the text."""
    from copydetect import compare_files

    if not grams:
        return ()
    restricted = _restricted(fingerprint, grams)
    _, _, (slices, _) = compare_files(restricted, restricted)
    return tuple((int(start), int(end)) for start, end in zip(*slices, strict=True))


# The page


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


def similarity_page(similarity: Similarity, title: str, module: str = "") -> str:
    """Render a self-contained page of the pairs, side by side; every text in it is escaped."""
    return render_page(
        "similar.html",
        title=title,
        module=module,
        count=len(similarity.texts),
        pairs=[(pair, _side_by_side(pair, similarity)) for pair in similarity.pairs[:MAX_SHOWN]],
        shown_open=SHOWN_OPEN,
        more=max(0, len(similarity.pairs) - MAX_SHOWN),
        left_out=sorted((name, visible(reason, 200)) for name, reason in similarity.left_out.items()),
    )


def _side_by_side(pair: Pair, similarity: Similarity) -> list[Row | None]:
    """Align the lines of both, those that are the same but for names in one row; None for what is left out."""

    def shape(line: Line) -> str:
        text = "".join(part for _, part in line.parts)
        return WORD.sub("w", COMMENT.sub("", text)).strip()

    one, other = (
        lines_of(similarity.texts[name], few, usual, similarity.given)[:MAX_LINES]
        for name, few, usual in zip(pair.students, pair.slices, pair.usual, strict=True)
    )
    rows: list[Row] = []
    matcher = difflib.SequenceMatcher(None, [*map(shape, one)], [*map(shape, other)], autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        rows += itertools.zip_longest(one[start:end], other[other_start:other_end])
    near: set[int] = set()
    for index, row in enumerate(rows):
        if any(line is not None and line.is_marked for line in row):
            near |= set(range(index - SHOWN_AROUND, index + SHOWN_AROUND + 1))
    shown: list[Row | None] = []
    for index, row in enumerate(rows):
        if index in near:
            shown.append(row)
        elif shown and shown[-1] is not None:
            shown.append(None)
    return shown[:-1] if shown and shown[-1] is None else shown


def lines_of(text: str, few: Slices, usual: Slices = (), given: frozenset[str] = frozenset()) -> list[Line]:
    """Mark what is shared in the lines of a text; what few others have goes before what many have.

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
        joined = itertools.groupby(_marked_parts(line, bytes(flags)), key=lambda part: part[0])
        parts = ((mark, "".join(text for _, text in run)) for mark, run in joined)
        lines.append(Line(count, tuple(part for part in parts if part[1]), line.strip() in given))
    return lines


def _marked_parts(line: str, flags: bytes) -> Iterator[tuple[Mark, str]]:
    place = 0
    for flag, run in itertools.groupby(flags):
        end = place + sum(1 for _ in run)
        part = line[place:end].rstrip("\n")
        mark = MARKS[flag] if WORD.search(part) else ""
        text = part.lstrip() if mark and not place else part
        yield "", part[: len(part) - len(text)]
        yield mark, text
        place = end
