"""Which submissions are alike beyond what the handout makes alike: pairs for a person to look at, never a verdict.

Nothing of a submission is run; it is read here, and split in a process of its own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.course.similarity.fingerprints import Pair, pairs_of
from autograder.grading.items import Assignment
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError

LEAST = 0.3  # of one's own work, weighed: honest answers to short questions share as much as that


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
            texts[candidate.student] = normalized(submission.source)
    handout = [normalized(text) for text in (untouched, *assignment.given_sources().values()) if text]
    pairs, slow = run_in_subprocess(pairs_of, texts, handout, least)
    given = frozenset(line.strip() for text in handout for line in text.splitlines() if line.strip())
    return Similarity(texts, tuple(pairs), left_out | dict.fromkeys(slow, "too slow to split into tokens"), given)


def normalized(source: str) -> str:
    """The text as the tokenizer sees it, so that its places are places of this."""
    lines = source.removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n").replace("\r", "\n")
    return lines.strip("\n") + "\n"
