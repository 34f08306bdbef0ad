"""Texts → which pairs of them share runs of tokens that few others have. In a process of its own.

Fingerprints by copydetect: every run of 40 characters, once names are shortened to one. Names, comments, strings and
layout do not count. A text can be made to be slow to split, so there are caps on time and memory.

What a run says is how few have it. Where two share one, and k of the m others of the class have it too, it weighs

    (log((m + 1) / (k + 1)) / log(m + 1))²          1 where nobody else has it, 0 where all have: no evidence

which is the inverse document frequency of text retrieval, of the class without the two, squared. A run that a ring of
five copies has in a class of thirty still weighs a third. A character weighs what the rarest run over it does, and a
share is what both have of what one has, both weighed.
"""

from __future__ import annotations

import copy
import io
import itertools
import math
import resource
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from autograder.vocabulary.times import OutOfTimeError, time_limit

GRAM = 40  # characters, names shortened to one, of the shortest run that counts
WINDOW = 1  # keep every run: which of several a wider window kept would depend on Python's seed for hashes
SECONDS_EACH = 20  # of processor time, to fingerprint one
MEMORY = 4 * 2**30  # bytes of the process that does
LEAST_COMMON = 40  # characters, weighed: less is a line or two
RARE = 0.3  # a run that weighs as much is marked as one that few have

Slices = tuple[tuple[int, int], ...]


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


def pairs_of(texts: Mapping[str, str], handout: Sequence[str], least: float) -> tuple[list[Pair], list[str]]:
    """The pairs that share at least that much, the most alike first; and whose text was too slow to split."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    known = {gram for text in handout for gram in _fingerprint(text).hashes}
    prints: dict[str, Any] = {}
    slow: list[str] = []
    for student, text in texts.items():
        try:
            with time_limit(SECONDS_EACH):
                prints[student] = _only(_fingerprint(text), lambda gram: gram not in known)
        except (OutOfTimeError, MemoryError, RecursionError):
            slow.append(student)
    counts = Counter(gram for found in prints.values() for gram in found.hashes)
    pairs = []
    for one, other in itertools.combinations(prints, 2):
        shares, common = weighed(prints[one], prints[other], counts, len(prints))
        if common >= LEAST_COMMON and max(shares) >= least:
            pairs.append(_pair((one, other), prints, shares, common, counts))
    return sorted(pairs, key=lambda pair: (-max(pair.shares), -pair.common, pair.students)), slow


def weighed(one: Any, other: Any, counts: Mapping[int, int], students: int) -> tuple[tuple[float, float], float]:
    """What two fingerprints share of each, and how much that is, weighed; `counts` says how many have a run."""
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


def _weight(found: Any, weights: Mapping[int, float]) -> float:
    """What the characters under these runs weigh, each as much as the rarest run over it."""
    import numpy as np

    places = [(place, weight) for gram, weight in weights.items() for place in found.hash_idx[gram]]
    at, much = np.array([place for place, _ in places]), np.array([weight for _, weight in places])
    over = np.zeros(max(at, default=0) + found.k)
    np.maximum.at(over, at, much)
    starts = over.copy()
    for offset in range(1, found.k):
        np.maximum(over[offset:], starts[:-offset], out=over[offset:])
    return float(over.sum())


def _weights(students: int) -> list[float]:
    """What a run weighs that k others have, for every k."""
    others = students - 2
    if others < 1:
        return [1.0, 1.0]
    most = math.log(others + 1)
    return [max(0.0, (most - math.log(k + 1)) / most) ** 2 for k in range(others + 2)]


def _pair(
    students: tuple[str, str],
    prints: Mapping[str, Any],
    shares: tuple[float, float],
    common: float,
    counts: Mapping[int, int],
) -> Pair:
    weights = _weights(len(prints))
    one, other = (prints[student] for student in students)
    both = one.hashes & other.hashes
    rare = {gram for gram in both if weights[counts[gram] - 2] >= RARE}
    places = [[_places(each, grams) for each in (one, other)] for grams in (rare, both - rare)]
    (few, of_few), (many, of_many) = places
    return Pair(students, shares, round(common, 1), (few, of_few), (many, of_many))


def _places(found: Any, grams: Set[int]) -> Slices:
    """Where these runs stand in the text."""
    from copydetect import compare_files

    if not grams:
        return ()
    only = _only(found, lambda gram: gram in grams)
    _, _, (slices, _) = compare_files(only, only)
    return tuple((int(start), int(end)) for start, end in zip(*slices, strict=True))


def _fingerprint(text: str) -> Any:
    from copydetect import CodeFingerprint

    return CodeFingerprint("submission.py", GRAM, WINDOW, language="python", fp=io.StringIO(text))


def _only(found: Any, wanted: Any) -> Any:
    """The fingerprint with the wanted runs alone. copydetect's own `boilerplate` counts a repeated run as given."""
    kept = copy.copy(found)
    kept.hashes = {gram for gram in found.hashes if wanted(gram)}
    kept.hash_idx = {gram: places for gram, places in found.hash_idx.items() if gram in kept.hashes}
    return kept
