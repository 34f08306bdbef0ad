"""Drafts that could not grade: what no oracle's answer may be, found without any student code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.declarations import GROUPS, Draft, Expectation, Refusal
from autograder.grading.assignment import Assignment
from autograder.sandbox.calls import Array
from autograder.vocabulary.errors import FixtureError


def check_drafts(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse drafts that could not grade; raises FixtureError naming case and cause."""
    for draft in drafts.values():
        check_draft(draft)
    check_branches(assignment, drafts, oracle)


def check_draft(draft: Draft) -> None:
    """Refuse a value that could not be told from another, a shape that hides a transposition, an idle input."""
    expected = draft.answer(draft.inputs, draft.params)
    for expectation in expected:
        _check_stored_value(draft, expectation)
    _check_sizes(draft, expected)
    for name in _variable(draft):
        if not {name, name.partition(".")[2]} & set(draft.free) and not _matters(draft, name, expected):
            raise Refusal(f"{draft.case}: {name} does not matter; a wrong use of it would pass.", draft.case)


def check_branches(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse an item whose cases leave a branch untaken."""
    taken: set[str] = getattr(oracle, "TAKEN", set())
    branches: Mapping[str, set[str]] = getattr(oracle, "BRANCHES", {})
    for item in assignment.items:
        taken.clear()
        for name in (*item.public, *item.hidden):
            drafts[name].answer(drafts[name].inputs, drafts[name].params)
        untaken = branches.get(item.id, set()) - taken
        if untaken:
            cases = (*item.public, *item.hidden)
            raise Refusal(f"{item.id}: no case takes the branch {sorted(untaken)}.", *cases)


def _check_stored_value(draft: Draft, expectation: Expectation) -> None:
    if expectation.kind not in ("value", "gradient") or expectation.array is None:
        return
    finite = np.isfinite(expectation.array)
    if np.isnan(expectation.array).any():
        told = f"{draft.case}: the expected {expectation.name} is nan somewhere, which no answer equals"
        raise Refusal(f"{told}: nan is not graded.", draft.case)
    if not finite.all() and not draft.infinite:
        told = f"{draft.case}: the expected {expectation.name} is infinite somewhere"
        raise Refusal(f"{told}, and the case does not say that this is meant.", draft.case)
    greatest = np.abs(expectation.array[finite]).max(initial=0.0)
    if (
        finite.all()
        and not draft.zero
        and expectation.dtype not in ("int64", "bool")
        and greatest < 10 * expectation.atol
    ):
        raise Refusal(f"{draft.case}: the expected {expectation.name} is too small for its tolerance.", draft.case)


def _check_sizes(draft: Draft, expected: Sequence[Expectation]) -> None:
    for expectation in expected:
        shape = () if expectation.array is None else expectation.array.shape
        if expectation.kind == "value" and len(expectation.axes) != len(shape):
            raise FixtureError(f"{draft.case}: {expectation.name} has axes {expectation.axes} and shape {shape}.")
        if expectation.kind == "value" and len(set(shape)) < len(shape) and not draft.square:
            raise FixtureError(f"{draft.case}: {expectation.name} has equal axis lengths {shape} and does not say why.")


def _variable(draft: Draft) -> list[str]:
    floats = [
        f"{group}.{name}"
        for group in GROUPS
        for name, setting in draft.params.get(group, {}).items()
        if isinstance(setting, float) and (setting or group == "given")
    ]
    return [*draft.inputs, *(name for name, entry in draft.params.items() if isinstance(entry, float)), *floats]


def _matters(draft: Draft, name: str, expected: Sequence[Expectation]) -> bool:
    """Whether a change of one input or parameter moves an expected value well beyond its tolerance."""
    return any(_moves(draft, inputs, params, expected) for inputs, params in _variations(draft, name))


def _variations(draft: Draft, name: str) -> list[tuple[dict[str, Array], dict[str, Any]]]:
    inputs, params = dict(draft.inputs), dict(draft.params)
    if name in inputs:
        return [({**inputs, name: changed}, params) for changed in _perturbed(inputs[name])]
    group, _, key = name.partition(".")
    if key and group in GROUPS:
        settings = params[group]
        return [(inputs, {**params, group: {**settings, key: other}}) for other in _others(settings[key])]
    return [(inputs, {**params, name: other}) for other in _others(params[name])]


def _others(number: float) -> tuple[float, ...]:
    """Other numbers in its place: a factor changes nothing of 0."""
    return (1.5 * number, number + 0.5) if number else (0.5, 1.0)


def _moves(
    draft: Draft, inputs: Mapping[str, Array], params: Mapping[str, Any], expected: Sequence[Expectation]
) -> bool:
    try:
        changed = draft.answer(inputs, params)
    except Exception:  # an oracle may refuse what it was not written for, in its own way
        return True
    return any(_moved(before, after) for before, after in zip(expected, changed, strict=True))


def _perturbed(array: Array) -> list[Array]:
    if array.dtype.kind == "f":
        # not one constant shift: centred deltas would not feel it
        return [array + np.linspace(0.1, 0.4, array.size, dtype=array.dtype).reshape(array.shape)]
    return [np.roll(array.reshape(-1), 1).reshape(array.shape), (array + 1) % (array.max() + 1), array + 1]


def _moved(before: Expectation, after: Expectation) -> bool:
    if before.kind not in ("value", "gradient") or before.array is None or after.array is None:
        return before.kind in ("error", "fact") and before.value != after.value
    if before.array.shape != after.array.shape:
        return True
    with np.errstate(invalid="ignore"):
        beyond = np.abs(before.array - after.array) > 10 * (before.atol + before.rtol * np.abs(before.array))
    both = np.isfinite(before.array) & np.isfinite(after.array)
    return bool(np.where(both, beyond, before.array != after.array).any())
