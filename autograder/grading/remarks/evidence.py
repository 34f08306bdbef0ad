"""A clue and its evidence: how many different values bear it out, and how many bits that says against chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autograder.grading.cases import Expectation
from autograder.sandbox.calls import Array

WIDER = 4.0  # times the tolerance of the case, for a change that is computed from rounded values
TELLING = 50.0  # a value this many times its tolerance tells a factor
FULL_BITS = 20.0  # what one value of full precision that fits says against chance
FINEST_GRID = 10
MAX_AXES = 4


@dataclass(frozen=True)
class Clue:
    """One thing that a case shows.

    detail      the axis or the place
    number      the factor or the amount, known up to `precision`
    values      how many different values bear it out
    bits        how much all of them say against chance; `each` is what one of them says
    """

    kind: str
    detail: str = ""
    number: float = 0.0
    precision: float = 0.0
    values: int = 0
    bits: float = 0.0
    each: float = FULL_BITS


@dataclass(frozen=True)
class Pair:
    """Expected and observed as float64 of one shape; `each` is what one value says against chance."""

    expected: Array
    observed: Array
    rtol: float
    atol: float
    axes: tuple[str, ...]
    epsilon: float
    each: float

    @property
    def allowed(self) -> Array:
        """How far each value may be off."""
        return self.atol + self.rtol * np.abs(self.expected)

    @property
    def telling(self) -> Array:
        """Where a value is large enough to tell a factor."""
        return np.abs(self.expected) > TELLING * self.allowed

    def near(self, predicted: Array) -> Array:
        """Where the observed values are the predicted ones, within the widened tolerance."""
        near: Array = np.abs(self.observed - predicted) <= self.atol + self.rtol * np.abs(predicted)
        return near

    def long_axes(self) -> list[tuple[int, str]]:
        """The axes along which there is more than one value."""
        return [(axis, name) for axis, name in enumerate(self.axes) if self.expected.shape[axis] > 1]


def pair_of(expectation: Expectation, expected: Array, observed: Array) -> Pair:
    """These two arrays, of one shape, with the tolerance of the expectation widened."""
    wide, seen = expected.astype(np.float64), observed.astype(np.float64)
    epsilon = float(np.finfo(observed.dtype).eps) if observed.dtype.kind == "f" else float(np.finfo(np.float64).eps)
    said = expectation.said_axes
    names = said if len(said) == wide.ndim else tuple(f"axis {n}" for n in range(wide.ndim))
    rtol = WIDER * max(expectation.rtol, 1e-9)
    each = min(_bits_of_one(wide, seen), max(0.0, -math.log2(2 * rtol)))  # what is allowed to be off says less
    return Pair(wide, seen, rtol, WIDER * expectation.atol, names, epsilon, each)


def _bits_of_one(*arrays: Array) -> float:
    """How much a value that fits says against chance: little where all are multiples of a coarse step."""
    values = np.concatenate([array.reshape(-1) for array in arrays])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0
    for halvings in range(FINEST_GRID + 1):
        scaled = values * 2.0**halvings
        if (scaled == np.round(scaled)).all():
            return min(FULL_BITS, math.log2(max(2.0, float(scaled.max() - scaled.min()) + 1)))
    return FULL_BITS


def different(values: Array) -> int:
    """How many values differ by more than rounding."""
    if not values.size:
        return 0
    ordered = np.sort(values.reshape(-1))
    step = 1e-6 * max(abs(float(ordered[0])), abs(float(ordered[-1])))
    return 1 + int((np.diff(ordered) > step).sum())
