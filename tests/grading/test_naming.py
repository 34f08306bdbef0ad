"""Which names the answers of one function get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from observed import tensor

from autograder.grading.fixtures import Case, Expectation
from autograder.grading.known_mistakes import is_mistake, names_of_items
from autograder.sandbox.calls import Array, Observation, Raised, Returned

WANTED = np.array([1.0, 2.0, 8.0])
VALUE = Expectation("value", "out", "out", ("step",), "float64", 1e-6, 1e-8, array=WANTED)
CALLS = Expectation("fact", "calls", "the calls", value=1)
REFUSAL = Expectation("error", "refused", "the call", value={"type": "ValueError", "mentions": []})
SAMPLES = Expectation("fact", "samples", "the samples", value=3, diagnosis=True)
OTHER_ERROR = {"types": ["KeyError", "Exception"], "message": "window"}
KEY_ERROR = Raised(("KeyError", "LookupError"), "", None, "")
Seen = Observation | Raised


def values(array: Array, **facts: Any) -> Observation:
    return Observation({"out": tensor(array)}, facts)


def refusing(error: object) -> Observation:
    return Observation({}, {"refused": error})


# One mistake in one case


def fits(mistake: Seen | None, out: Array | Returned) -> bool:
    returned = out if isinstance(out, Returned) else tensor(out)
    return is_mistake([VALUE, CALLS], mistake, Observation({"out": returned}, {"calls": 1}))


def test_answer_that_equals_mistake_s_is_that_mistake() -> None:
    assert fits(values(WANTED + 1), WANTED + 1 + 1e-9)
    assert not fits(values(WANTED + 1), WANTED + 1.001)
    assert fits(None, WANTED)


@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_mistake_that_makes_hole_is_met_by_same_hole_alone(hole: float) -> None:
    holed = np.where(WANTED == 8, hole, WANTED)
    assert fits(values(holed), holed)
    for other in (WANTED, np.where(WANTED == 2, hole, WANTED), np.where(WANTED == 8, 1e300, WANTED)):
        assert not fits(values(holed), other)


@pytest.mark.parametrize(
    "other",
    [
        tensor((WANTED + 1).astype(np.float32)),
        tensor((WANTED + 1)[:1]),
        tensor(WANTED + 1, requires_grad=True),
        Returned("none"),
        Returned("other", type="list"),
        replace(tensor(WANTED + 1), array=None),
    ],
)
def test_mistake_is_met_in_form_as_well_as_in_values(other: Returned) -> None:
    assert not fits(values(WANTED + 1), other)
    assert fits(Observation({"out": other}, {}), other)


# All cases of a function


def case(name: str, item: str, known: Mapping[str, Seen], *expected: Expectation) -> Case:
    return Case(name, item, "f", "", "public", "call", {}, {}, expected, known)


PADDED, DOUBLED, SIGNS = values(WANTED + 1), values(2 * WANTED), values(-WANTED)
UNCHECKED, ANOTHER_TYPE = refusing(None), refusing(OTHER_ERROR)
RIGHT, REFUSES = values(WANTED), refusing({"types": ["ValueError", "Exception"], "message": "window"})
OF_VALUES: Mapping[str, Seen] = {"padded": PADDED, "doubled": DOUBLED}
OF_REFUSALS: Mapping[str, Seen] = {"unchecked": UNCHECKED, "another-type": ANOTHER_TYPE}
TWO = [case("small", "f-values", OF_VALUES, VALUE), case("large", "f-values", OF_VALUES, VALUE)]
CASES = [*TWO, *(case(name, "f-errors", OF_REFUSALS, REFUSAL) for name in ("below", "above"))]


def named(*seen: Seen | None, cases: list[Case] | None = None) -> dict[str, tuple[str, ...]]:
    cases = CASES if cases is None else cases
    return names_of_items(cases, {one.id: found for one, found in zip(cases, seen, strict=True)})


@pytest.mark.parametrize(
    ("seen", "of_values", "of_refusals"),
    [
        ((PADDED, PADDED, REFUSES, REFUSES), ("padded",), ("padded",)),
        ((PADDED, PADDED, UNCHECKED, UNCHECKED), ("padded",), ("unchecked",)),
        ((values(WANTED + 5), values(WANTED + 5), UNCHECKED, UNCHECKED), (), ("unchecked",)),
        ((PADDED, PADDED, refusing({"types": ["OSError"], "message": ""}), UNCHECKED), ("padded",), ()),
        ((PADDED, DOUBLED, REFUSES, REFUSES), (), ()),
        ((PADDED, DOUBLED, UNCHECKED, UNCHECKED), (), ("unchecked",)),
        ((PADDED, RIGHT, UNCHECKED, UNCHECKED), (), ("unchecked",)),
        ((PADDED, PADDED, UNCHECKED, ANOTHER_TYPE), ("padded",), ()),
        ((PADDED, PADDED, UNCHECKED, None), (), ()),  # a case has no answer
    ],
)
def test_mistake_needs_every_case_that_it_changes(
    seen: Any, of_values: tuple[str, ...], of_refusals: tuple[str, ...]
) -> None:
    assert named(*seen) == {"f-values": of_values, "f-errors": of_refusals}


def test_mistake_that_changes_both_needs_both() -> None:
    both, refusals = {"both": PADDED, "padded": PADDED}, {"both": ANOTHER_TYPE, "unchecked": UNCHECKED}
    cases = [case("small", "f-values", both, VALUE), case("below", "f-errors", refusals, REFUSAL)]
    assert named(PADDED, ANOTHER_TYPE, cases=cases) == {"f-values": ("both",), "f-errors": ("both",)}
    assert named(PADDED, UNCHECKED, cases=cases) == {"f-values": ("padded",), "f-errors": ("unchecked",)}
    cases[0] = case("small", "f-values", {"both": PADDED}, VALUE)
    assert named(PADDED, UNCHECKED, cases=cases) == {"f-values": (), "f-errors": ("unchecked",)}


def test_second_fault_in_another_item_leaves_name() -> None:
    cases = [*TWO, case("mode", "f-mode", {"signs": SIGNS}, VALUE)]
    assert named(PADDED, PADDED, SIGNS, cases=cases) == {"f-values": ("padded",), "f-mode": ("signs",)}
    assert named(PADDED, PADDED, values(7 * WANTED), cases=cases) == {"f-values": ("padded",), "f-mode": ()}


def test_empty_answers_and_exceptions_name_nothing() -> None:
    empty = values(np.array([]))
    for seen in (empty, KEY_ERROR):
        cases = [case(name, "f-values", {"it": seen, "padded": PADDED}, VALUE) for name in ("small", "large")]
        assert named(seen, seen, cases=cases) == {"f-values": ()}


def test_trace_tells_apart_mistakes_that_return_same_numbers() -> None:
    known = {name: values(WANTED + 1, samples=n) for name, n in {"once": 1, "often": 9}.items()}
    cases = [case("run", "f-run", {**known, "plain": PADDED}, VALUE, SAMPLES)]
    assert named(values(WANTED + 1, samples=9), cases=cases) == {"f-run": ("often",)}
    assert named(values(WANTED + 1, samples=3), cases=cases) == {"f-run": ("plain",)}
