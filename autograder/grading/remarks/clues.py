"""A wrong array → clues: a factor, a sign, an order, a place. Pure numpy.

Whether a clue is told is decided in `reasons`, which sees all cases of an item.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from autograder.grading.cases import Expectation
from autograder.grading.remarks.detectors import DETECTORS, Detector, factors, lost_digits, not_finite
from autograder.grading.remarks.evidence import MAX_AXES, Clue, Pair, different, pair_of
from autograder.sandbox.calls import Array

FACTOR_KINDS = ("sign", "factor")
MAX_SIZE = 20_000


@dataclass(frozen=True)
class Wrong:
    """A wrong array of one case.

    sizes   named sizes that a factor may be made of
    more    wrong gradients of the same case: they may bear a factor out
    """

    expectation: Expectation
    observed: Array
    sizes: Mapping[str, int] = field(default_factory=dict)
    more: tuple[tuple[Expectation, Array], ...] = ()


def clues(wrong: Wrong) -> list[Clue]:
    """All that one wrong array shows; nothing where it is right or cannot be compared."""
    return _clues(wrong, DETECTORS)


def factor_clues(wrong: Wrong) -> list[Clue]:
    """What one wrong array shows of a factor or a sign, and nothing else."""
    return [clue for clue in _clues(wrong, (factors,)) if clue.kind in FACTOR_KINDS]


def _clues(wrong: Wrong, detectors: Sequence[Detector]) -> list[Clue]:
    expected, observed = wrong.expectation.array, wrong.observed
    if expected is None or not _is_plain(expected) or not _is_plain(observed):
        return []
    with np.errstate(all="ignore"):
        if observed.shape != expected.shape:
            return list(_shape_clues(wrong.expectation, expected, observed))
        pair = pair_of(wrong.expectation, expected, observed)
        if not np.isfinite(pair.expected).all() or _is_right(wrong.expectation, pair):
            return []
        if not np.isfinite(pair.observed).all():
            return list(not_finite(pair))
        found = [clue for detector in detectors for clue in detector(pair)]
        rounded = lost_digits(pair) if wrong.expectation.dtype == observed.dtype.name == "float64" else ()
        return [*(_borne_out(clue, wrong) for clue in found), *rounded]


def _is_plain(array: Array) -> bool:
    return array.dtype.kind in "fiub" and 0 < array.size <= MAX_SIZE


def _is_right(expectation: Expectation, pair: Pair) -> bool:
    allowed = expectation.atol + expectation.rtol * np.abs(pair.expected)
    return bool((np.abs(pair.observed - pair.expected) <= allowed).all())


def _borne_out(clue: Clue, wrong: Wrong) -> Clue:
    """The clue, with the gradients of the same case that show the same factor as further evidence."""
    if clue.kind not in FACTOR_KINDS:
        return clue
    for expectation, observed in wrong.more:
        for other in factor_clues(Wrong(expectation, observed)):
            same = abs(other.number - clue.number) <= (other.precision + clue.precision) * abs(clue.number)
            if other.kind == clue.kind and same:
                clue = replace(clue, values=clue.values + other.values, bits=clue.bits + other.bits)
    return clue


def _shape_clues(expectation: Expectation, expected: Array, observed: Array) -> Iterator[Clue]:
    """The right values in another shape, or one that was summed or averaged."""
    wanted = expected.astype(np.float64)
    if expected.ndim > MAX_AXES or not np.isfinite(wanted).all():
        return
    axes = expectation.axes if len(expectation.axes) == expected.ndim else ()
    for order in itertools.permutations(range(len(axes))):
        names = " ".join(axes[axis] for axis in order)
        if list(order) != sorted(order):
            yield from _same(expectation, wanted.transpose(order), observed, "axes-swapped", names)
    if observed.size and observed.ndim == expected.ndim:
        yield from _turns(expectation, wanted, observed)
    if observed.size == expected.size:
        yield from _same(expectation, wanted.reshape(observed.shape), observed, "shape-alone", "")
    for axis, name in enumerate(axes):
        for keepdims in (False, True):
            yield from _same(expectation, wanted.sum(axis, keepdims=keepdims), observed, "summed", name)
            yield from _same(expectation, wanted.mean(axis, keepdims=keepdims), observed, "averaged", name)


def _turns(expectation: Expectation, wanted: Array, observed: Array) -> Iterator[Clue]:
    """The right values with some of them missing along the first axis, or with more after them."""
    if not expectation.axes or wanted.shape[1:] != observed.shape[1:]:
        return
    axis, missing = expectation.axes[0], len(wanted) - len(observed)
    if missing < 0:
        yield from _same(expectation, wanted, observed[:missing], "more-after", axis)
    elif missing:
        right: Array = pair_of(expectation, wanted[:-missing], observed).near(wanted[:-missing])
        wrong = np.argwhere(~right)[:1, 0].tolist()
        first = wrong[0] if wrong else len(observed)
        kind = "left-out" if wrong else "more-missing"
        predicted = np.delete(wanted, slice(first, first + missing), axis=0)
        for clue in _same(expectation, predicted, observed, kind, axis):
            yield replace(clue, number=float(first))


def _same(expectation: Expectation, predicted: Array, observed: Array, kind: str, detail: str) -> Iterator[Clue]:
    """A clue where the observed array is the predicted one, shape and values."""
    if predicted.shape != observed.shape:
        return
    pair = pair_of(expectation, predicted, observed)
    if pair.near(predicted).all():
        values = different(predicted)
        yield Clue(kind, detail, 0.0, 0.0, values, values * pair.each, pair.each)
