"""Show which submissions are alike beyond what the handout makes alike: pairs to look at, never a verdict.

copydetect splits a text into tokens and shortens names to one character; every run of 40 characters then counts. Names,
comments, strings and layout do not. What a run says is how few have it. Where two share one, and k of the m others of
the class have it too, it weighs

    (log((m + 1) / (k + 1)) / log(m + 1))²          1 where nobody else has it, 0 where all have: no evidence

which is the inverse document frequency of text retrieval, of the class without the two, squared. A run that a ring of
five copies has in a class of thirty still weighs a third. A character weighs what the rarest run over it does, and a
share is what both have of what one has, both weighed.

Nothing of a submission is run. A text can be made to be slow to split, so that is done in a process of its own.
"""

from __future__ import annotations

import difflib
import importlib.util
import itertools
import math
import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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
SECONDS_EACH = 20  # of processor time, to split one
MEMORY = 4 * 2**30  # bytes of the process that does
MAX_SHOWN = 100  # pairs on the page
SHOWN_OPEN = 3  # pairs whose lines are unfolded
SHOWN_AROUND = 2  # lines
MAX_WORDS = 200  # of a line, in which marks are looked for
MAX_LINES = 400  # of one submission that are laid beside another's
WORD = re.compile(r"\w+")
COMMENT = re.compile(r"#.*")

Slices = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Pair:
    """Two submissions and what they share beyond the handout.

    shares    of each one's own part, weighed by how few others have it
    common    that many characters, weighed
    slices    where the runs stand that few others have, in each one's text
    """

    students: tuple[str, str]
    shares: tuple[float, float]
    common: float
    slices: tuple[Slices, Slices]


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
    import numpy as np

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    given = np.concatenate([np.empty(0, np.int64), *(split(text)[0] for text in handout)])
    runs: dict[str, Any] = {}
    offsets: dict[str, Any] = {}
    slow: list[str] = []
    for student, text in texts.items():
        try:
            with time_limit(SECONDS_EACH):
                runs[student], offsets[student] = split(text)
        except (OutOfTimeError, MemoryError, RecursionError):
            slow.append(student)
    # How many of the class have each run, by the place where it begins; nobody those of the handout.
    known, counts = np.unique(np.concatenate([given, *map(np.unique, runs.values())]), return_counts=True)
    having = {name: np.where(np.isin(own, given), 0, counts[np.searchsorted(known, own)]) for name, own in runs.items()}
    most = math.log(max(len(runs) - 1, 1))
    pairs = []
    for students in itertools.combinations(runs, 2):
        shares, common, slices = [], [], []
        for name, other in (students, students[::-1]):
            is_shared = np.isin(runs[name], runs[other])
            others = np.maximum(having[name] - np.where(is_shared, 2, 1), 0)
            weights = np.maximum(0.0, 1 - np.log(others + 1) / most) ** 2 if most else np.ones(len(others))
            weights[having[name] == 0] = 0.0
            # A character weighs what the rarest run over it does.
            of_shared, of_all = (
                np.lib.stride_tricks.sliding_window_view(np.pad(starts, GRAM - 1), GRAM).max(axis=1)
                for starts in (weights * is_shared, weights)
            )
            common.append(float(of_shared.sum()))
            shares.append(common[-1] / float(of_all.sum()) if common[-1] else 0.0)
            # Where what few others have begins and ends, by turns, first in what was split, then in the text.
            edges = np.flatnonzero(np.diff(np.pad((of_shared >= RARE).astype(np.int8), 1)))
            left_out = np.searchsorted(offsets[name][:, 0], edges).clip(0, len(offsets[name]) - 1)
            edges = edges + offsets[name][left_out, 1]
            slices.append(tuple((int(start), int(end)) for start, end in edges.reshape(-1, 2)))
        if min(common) >= LEAST_COMMON and max(shares) >= least:
            pair = Pair(students, (shares[0], shares[1]), round(min(common), 1), (slices[0], slices[1]))
            pairs.append(pair)
    return sorted(pairs, key=lambda pair: (-max(pair.shares), -pair.common, pair.students)), slow


def split(text: str) -> tuple[Any, Any]:
    """Return which run of GRAM characters begins at each, once names are shortened; and copydetect's offsets.

    offsets   int[n 2]   a character, and how many were left out of the text before it
    """
    import numpy as np
    from copydetect.utils import filter_code, hashed_kgrams

    code, offsets = filter_code(text, "submission.py", "python")
    return hashed_kgrams(code, GRAM).astype(np.int64), offsets


# The page


class Line(NamedTuple):
    """One line of a text, and whether few others `shared` something of it, or it is `given` in the handout."""

    number: int
    text: str
    mark: str


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
    one, other = (
        _lines_of(similarity.texts[name], slices, similarity.given)[:MAX_LINES]
        for name, slices in zip(pair.students, pair.slices, strict=True)
    )
    rows: list[Row] = []
    first, second = ([WORD.sub("w", COMMENT.sub("", line.text)).strip() for line in lines] for lines in (one, other))
    matcher = difflib.SequenceMatcher(None, first, second, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        rows += itertools.zip_longest(one[start:end], other[other_start:other_end])
    near: set[int] = set()
    for index, row in enumerate(rows):
        if any(line is not None and line.mark == "shared" for line in row):
            near |= set(range(index - SHOWN_AROUND, index + SHOWN_AROUND + 1))
    # A run of rows that are left out is one gap, and none at the ends.
    shown = [row if index in near else None for index, row in enumerate(rows)]
    runs = [(is_gap, list(run)) for is_gap, run in itertools.groupby(shown, key=lambda row: row is None)]
    inner = runs[1 if runs and runs[0][0] else 0 : -1 if runs and runs[-1][0] else None]
    return [row for is_gap, run in inner for row in (run[:1] if is_gap else run)]


def _lines_of(text: str, slices: Slices, given: frozenset[str]) -> list[Line]:
    """Mark the lines of a text of which a word is shared, for brackets and spaces say nothing."""
    marks = bytearray(len(text))
    for start, end in slices:
        first, last = max(0, start), min(len(text), end)
        marks[first:last] = b"\1" * max(0, last - first)
    lines, place = [], 0
    for count, line in enumerate(text.splitlines(keepends=True), start=1):
        words = itertools.islice(WORD.finditer(line), MAX_WORDS)
        is_shared = any(any(marks[place + word.start() : place + word.end()]) for word in words)
        mark = "given" if line.strip() in given else "shared" if is_shared else ""
        lines.append(Line(count, line.rstrip("\n"), mark))
        place += len(line)
    return lines
