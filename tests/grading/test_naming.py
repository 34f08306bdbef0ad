"""Which names the answers of one function get: one mistake in all cases, or one of refusals and one of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from autograder.grading.fixtures import Case, Expectation
from autograder.grading.known_mistakes import names_of_items
from autograder.sandbox.calls import Observation, Raised, Returned

WANTED = np.array([1.0, 2.0, 3.0])
VALUE = Expectation("value", "out", "out", ("step",), "float64", 1e-6, 1e-8, array=WANTED)
REFUSAL = Expectation("error", "refused", "the call", value={"type": "ValueError", "mentions": []})
REFUSED = {"types": ["ValueError", "Exception"], "message": "window"}
OTHER_ERROR = {"types": ["KeyError", "Exception"], "message": "window"}
Known = Mapping[str, Observation | Raised]


def values(array: np.ndarray) -> Observation:
    return Observation({"out": Returned("tensor", "float64", array.shape, False, array=array)}, {})


def refusing(error: object) -> Observation:
    return Observation({}, {"refused": error})


def case(name: str, item: str, expected: Expectation, known: Known) -> Case:
    return Case(name, item, "f", "", "public", "call", {}, {}, (expected,), known)


PADDED, DOUBLED = values(WANTED + 1), values(2 * WANTED)
UNCHECKED, ANOTHER_TYPE = refusing(None), refusing(OTHER_ERROR)
RIGHT, REFUSES = values(WANTED), refusing(REFUSED)
OF_VALUES: Known = {"padded": PADDED, "doubled": DOUBLED}
OF_REFUSALS: Known = {"unchecked": UNCHECKED, "another-type": ANOTHER_TYPE}
CASES = [
    case("small", "f-values", VALUE, OF_VALUES),
    case("large", "f-values", VALUE, OF_VALUES),
    case("below", "f-errors", REFUSAL, OF_REFUSALS),
    case("above", "f-errors", REFUSAL, OF_REFUSALS),
]


def named(*seen: Observation | Raised | None, cases: list[Case] | None = None) -> dict[str, tuple[str, ...]]:
    cases = CASES if cases is None else cases
    return names_of_items(cases, {one.id: found for one, found in zip(cases, seen, strict=True)})


def test_mistake_that_fits_all_cases_names_every_item() -> None:
    assert named(PADDED, PADDED, REFUSES, REFUSES) == {"f-values": ("padded",), "f-errors": ("padded",)}


def test_wrong_value_and_missing_check_are_both_named() -> None:
    found = named(PADDED, PADDED, UNCHECKED, UNCHECKED)
    assert found == {"f-values": ("padded",), "f-errors": ("unchecked",)}


@pytest.mark.parametrize(
    ("seen", "of_values", "of_refusals"),
    [
        ((values(WANTED + 5), values(WANTED + 5), UNCHECKED, UNCHECKED), (), ("unchecked",)),
        ((PADDED, PADDED, refusing({"types": ["OSError"], "message": ""}), UNCHECKED), ("padded",), ()),
        ((PADDED, DOUBLED, REFUSES, REFUSES), (), ()),
        ((PADDED, DOUBLED, UNCHECKED, UNCHECKED), (), ("unchecked",)),
        ((PADDED, RIGHT, UNCHECKED, UNCHECKED), (), ("unchecked",)),
        ((PADDED, PADDED, UNCHECKED, ANOTHER_TYPE), ("padded",), ()),
    ],
)
def test_mistake_needs_every_case_that_it_changes(
    seen: Any, of_values: tuple[str, ...], of_refusals: tuple[str, ...]
) -> None:
    assert named(*seen) == {"f-values": of_values, "f-errors": of_refusals}


def test_mistake_that_changes_both_needs_both() -> None:
    both, refusals = {"both": PADDED, "padded": PADDED}, {"both": ANOTHER_TYPE, "unchecked": UNCHECKED}
    cases = [case("small", "f-values", VALUE, both), case("below", "f-errors", REFUSAL, refusals)]
    assert named(PADDED, ANOTHER_TYPE, cases=cases) == {"f-values": ("both",), "f-errors": ("both",)}
    assert named(PADDED, UNCHECKED, cases=cases) == {"f-values": ("padded",), "f-errors": ("unchecked",)}
    cases[0] = case("small", "f-values", VALUE, {"both": PADDED})
    assert named(PADDED, UNCHECKED, cases=cases) == {"f-values": (), "f-errors": ("unchecked",)}


def test_second_fault_in_another_item_leaves_name() -> None:
    cases = [*CASES[:2], case("mode", "f-mode", VALUE, {"signs": values(-WANTED)})]
    assert named(PADDED, PADDED, values(-WANTED), cases=cases) == {"f-values": ("padded",), "f-mode": ("signs",)}
    assert named(PADDED, PADDED, values(7 * WANTED), cases=cases) == {"f-values": ("padded",), "f-mode": ()}


def test_empty_answers_name_nothing() -> None:
    empty = values(np.array([]))
    cases = [case("small", "f-values", VALUE, {"none": empty}), case("large", "f-values", VALUE, {"none": empty})]
    assert named(empty, empty, cases=cases) == {"f-values": ()}


def test_nothing_is_named_where_case_has_no_answer() -> None:
    assert named(PADDED, PADDED, UNCHECKED, None) == {"f-values": (), "f-errors": ()}
