"""Outcomes → what a feedback page shows besides words: learning curves, and where values differ. Public cases alone."""

from __future__ import annotations

import math

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import compare, right_places
from autograder.grading.remarks.details import (
    MAX_CELLS,
    MAX_STEPS,
    NOT_FINITE,
    RIGHT,
    TOO_LARGE,
    TOO_SMALL,
    Curve,
    Picture,
    Series,
)
from autograder.grading.remarks.wording import Place, about_outcome, in_file
from autograder.sandbox.calls import Array, Observation, Outcome

DECIMALS = 3  # as many as the reference has
LARGEST = 1e9
MAX_SIDE = 40
MAX_PANELS = 8
DRAWN = ("values", "finite", "gradient")


def curve_of(case: Case, outcome: Outcome, timeout: float, load_failure: str = "", place: Place = in_file) -> Curve:
    """The submission's series beside the solution's; a message in their place where the run gave none."""
    if outcome.observation is None:
        return Curve(case.id, case.title, load_failure or about_outcome(case, outcome, timeout, place), ())
    found = [_series(expectation, outcome.observation) for expectation in case.expected]
    series = tuple(one for one in found if one is not None)
    missing = f"{case.function} returned nothing that could be drawn."
    return Curve(case.id, case.title, "" if len(series) == len(found) else missing, series)


def _series(expectation: Expectation, seen: Observation) -> Series | None:
    returned = seen.returned.get(expectation.name)
    array = None if returned is None else returned.array
    if array is None or array.ndim != 1 or not 0 < array.size <= MAX_STEPS or expectation.array is None:
        return None
    yours = tuple(_drawn(float(value)) for value in array.astype(np.float64))
    reference = tuple(float(value) for value in expectation.array)
    across = expectation.axes[0] if expectation.axes else "step"
    known = expectation.value if isinstance(expectation.value, dict) else {}
    return Series(expectation.what, yours, reference, known.get("unit", ""), across, known.get("most"))


def _drawn(value: float) -> float | None:
    return round(max(-LARGEST, min(LARGEST, value)), DECIMALS) if math.isfinite(value) else None


def picture_of(case: Case, outcome: Outcome) -> Picture | None:
    """Where the values of a failed public case differ; None where there is nothing of a size to draw."""
    if case.visibility != "public" or outcome.observation is None:
        return None
    mismatch = compare(case.expected, outcome.observation)
    array = None if mismatch is None else mismatch.returned.array
    if mismatch is None or mismatch.rung not in DRAWN or array is None or not _can_be_drawn(array.shape):
        return None
    expectation = mismatch.expectation
    return Picture(case.item, case.id, expectation.what, expectation.axes, array.shape, _cells(expectation, array))


def _can_be_drawn(shape: tuple[int, ...]) -> bool:
    panels, sides = math.prod(shape[:-2]), shape[-2:]
    return 1 < math.prod(shape) <= MAX_CELLS and panels <= MAX_PANELS and max(sides) <= MAX_SIDE


def _cells(expectation: Expectation, array: Array) -> str:
    assert expectation.array is not None
    observed, wanted = array.astype(np.float64), expectation.array
    right = right_places(expectation, array)
    marks = np.where(observed > wanted, TOO_LARGE, TOO_SMALL)
    marks = np.where(np.isfinite(observed), marks, NOT_FINITE)
    return "".join(np.where(right, RIGHT, marks).ravel().tolist())
