"""A run's weights, update by update → when they part from the expected ones, and how far compared with one update.

What is told follows from stored weights alone, so it is true whatever the cause. Where to look is told where the case
shows that nothing before the update was wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import right_places
from autograder.sandbox.calls import Array, Observation

UPDATE = "update"  # the first axis of whatever a case has for each update
WEIGHTS = ("weights", "weight")  # names of weights after each update; an input called `weight` is where they began
FOLLOWED = "weights before and after"  # sums of weights, the first of them before the first update
LOSSES = "losses of updates"  # what each update learned from
GRADIENTS = "gradients"  # an input: what the optimizer gets, whatever a submission does
ALIKE = (2 / 3, 3 / 2)  # times the size of one update: still about one
SMALLEST = 1e-3
PARALLEL, ASKEW = 0.01, 0.5  # shares of a difference that is no multiple of the update that was due: hardly any; much
ENOUGH = 8  # numbers, for one factor to fit all of them
LEARNING_RATE = "Its loss is right: look at which optimizer it is, at its learning rate, and at how often it steps."
AFTER_THE_LOSS = "Its loss is right: look at what becomes of its gradient, and at the optimizer."
NO_FACTOR = "The difference is no multiple of the right update, so another learning rate alone does not explain it."


def about_updates(case: Case, observation: Observation) -> str:
    """Which update is the first wrong one, and by how much; "" where the case has no such weights, or all are right."""
    found = _followed(case, observation)
    if found is None:
        return _of_another_number(case, observation)
    expectation, wanted, yours = found
    right = right_places(expectation, yours).reshape(len(yours), -1).all(axis=1)
    if right.all():
        trained = "The weights that you train are right after every update: is it this model that you return?"
        return trained if expectation.diagnosis else ""
    first = int(np.argmin(right))
    if not first:
        return "The weights differ before the first update."
    update, difference = wanted[first] - wanted[first - 1], yours[first] - wanted[first]
    size = _size(update, difference)
    return f"{_when(first)}{size}{_where(case, observation, first, _factor(update, difference))}" if size else ""


def _followed(case: Case, observation: Observation) -> tuple[Expectation, Array, Array] | None:
    """Weights before the first update and after each: the expectation of all, what should be, what was returned."""
    for expectation in case.expected:
        returned = observation.returned.get(expectation.name)
        if expectation.array is None or expectation.axes[:1] != (UPDATE,) or returned is None or returned.array is None:
            continue
        wanted, yours = expectation.array, returned.array
        if yours.shape != wanted.shape or not np.isfinite(yours).all():
            continue
        if expectation.name == FOLLOWED:
            return expectation, wanted, yours
        start = case.inputs.get("weight")
        if expectation.name in WEIGHTS and start is not None and start.shape == wanted.shape[1:]:
            whole = np.concatenate([start[None], wanted])
            return replace(expectation, array=whole), whole, np.concatenate([start[None], yours])
    return None


def _of_another_number(case: Case, observation: Observation) -> str:
    """What is told of a followed run that agrees for as long as both last, and has more updates or fewer."""
    expectation = next((one for one in case.expected if one.name == FOLLOWED), None)
    returned = observation.returned.get(FOLLOWED)
    if expectation is None or expectation.array is None or returned is None or returned.array is None:
        return ""
    wanted, yours = expectation.array, returned.array
    both = min(len(wanted), len(yours)) if yours.ndim == wanted.ndim else 0
    if both < 2 or yours.shape[1:] != wanted.shape[1:]:
        return ""
    shared = replace(expectation, array=wanted[:both])
    if not right_places(shared, yours[:both]).all():
        return ""
    due, made = len(wanted) - 1, len(yours) - 1
    if made > due:
        return f"The weights agree for all {due} updates that there should be; yours goes on for {made - due} more."
    return f"The weights agree for the {made} updates that yours has; there should be {due}."


def _when(first: int) -> str:
    if first == 1:
        return "The weights differ from the first update on"
    before = "the first update" if first == 2 else f"the first {first - 1} updates"
    return f"The weights agree for {before} and differ from the {_ordinal(first)} on"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _size(update: Array, difference: Array) -> str:
    """How large the difference is, in sizes of the update that was due; "" where none was due."""
    due = float(np.linalg.norm(update))
    if not due:
        return ""
    ratio = float(np.linalg.norm(difference)) / due
    if ratio < SMALLEST:
        return ", at first by less than a thousandth of one update"
    if ALIKE[0] <= ratio <= ALIKE[1]:
        return ", by about the size of one update"
    times = f"{ratio:.0f}" if ratio >= ALIKE[1] else f"{ratio:.1g}"
    return f", by about {times} times the size of one update"


def _factor(update: Array, difference: Array) -> float | None:
    """Your update as a multiple of the one that was due; nan where it is none, None where that cannot be told."""
    due, off = update.ravel(), difference.ravel()
    if due.size < ENOUGH or not due.any():
        return None
    more = float(due @ off / (due @ due))
    askew = float(np.linalg.norm(off - more * due) / np.linalg.norm(off))
    return 1 + more if askew < PARALLEL else np.nan if askew > ASKEW else None


def _where(case: Case, observation: Observation, first: int, factor: float | None) -> str:
    """Where to look, as far as the case tells what came before the update."""
    if GRADIENTS in case.inputs:
        return ": look at the optimizer."
    losses = _losses(case, observation)
    if losses is None:
        return "."
    if losses[:first].all():
        return f". {_after_the_loss(factor)}"
    wrong = int(np.argmin(losses[:first])) + 1
    return f". The loss of the {_ordinal(wrong)} is wrong already: look at what it is made of."


def _after_the_loss(factor: float | None) -> str:
    """What an update looks like whose loss is right, and where to look."""
    if factor is None:
        return AFTER_THE_LOSS
    if np.isnan(factor):
        return f"{NO_FACTOR} {AFTER_THE_LOSS}"
    if abs(factor) < SMALLEST:
        return f"Yours is missing. {AFTER_THE_LOSS}"
    if abs(factor + 1) < SMALLEST:
        return f"Yours goes the opposite way. {AFTER_THE_LOSS}"
    return f"Yours is {factor:.3g} times the right one, in all weights alike. {LEARNING_RATE}"


def _losses(case: Case, observation: Observation) -> Array | None:
    """bool[update]: which losses are right; None where the case does not tell."""
    for expectation in case.expected:
        returned = observation.returned.get(expectation.name)
        if expectation.name == LOSSES and expectation.array is not None and returned is not None:
            array = returned.array
            same_shape = array is not None and array.shape == expectation.array.shape
            return right_places(expectation, array) if array is not None and same_shape else None
    return None
