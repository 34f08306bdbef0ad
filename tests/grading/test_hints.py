"""Which hint follows a failure: its kind decides, and an item's own hint is about values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import compare
from autograder.grading.items import Item
from autograder.grading.judging import Judged, simpler_item
from autograder.grading.remarks.hints import (
    hint_of_default,
    hint_of_failure,
    hint_of_hidden,
    hint_of_names,
    may_share_a_cause,
    same_kind,
)
from autograder.sandbox.calls import Array, Observation, Returned
from autograder.vocabulary.report import CaseResult, Visibility

ITEM = Item("deltas-small", "f", "a title", 2, 5, "Think again.", ("c1",), ("c2",))
WANTED = np.array([[1.0, -2.0, 0.5], [4.0, 8.0, 3.0]])


def value(array: Array = WANTED, **more: Any) -> Expectation:
    axes = more.pop("axes", ("batch", "trial")[: array.ndim])
    kind, name = more.pop("kind", "value"), more.pop("name", "out")
    what = more.pop("what", name)
    return Expectation(kind, name, what, axes, array.dtype.name, 1e-6, 1e-8, array=array, **more)


def tensor(array: Array, *, requires_grad: bool = False) -> Returned:
    return Returned("tensor", "Tensor", array.dtype.name, array.shape, requires_grad, array)


def hint(
    *expected: Expectation,
    simpler: str = "",
    item: Item = ITEM,
    later: bool = False,
    facts: dict[str, Any] | None = None,
    **returned: Returned,
) -> str:
    case = Case("c", ITEM.id, "f", "a case", "public", "probe", {}, {}, expected, {})
    mismatch = compare(expected, Observation(returned, facts or {}))
    assert mismatch is not None
    return hint_of_failure(item, case, mismatch, simpler, later=later)


def test_an_items_own_hint_follows_wrong_values() -> None:
    assert hint(value(), out=tensor(WANTED + 1)) == "Think again."
    assert hint(value(), out=tensor(np.full_like(WANTED, np.nan))) == "Think again."


@pytest.mark.parametrize(
    ("returned", "begins"),
    [
        (tensor(WANTED.astype(np.float32)), "The values were not looked at yet"),
        (tensor(WANTED.T), "Write down the shape"),
        (tensor(WANTED[0]), "Write down the shape"),
        (tensor(WANTED[:1]), "One axis has another length"),
        (Returned("other", type="list"), "Return a torch.Tensor"),
        (Returned("none"), "Does every way through"),
    ],
)
def test_another_kind_of_failure_has_the_hint_of_its_kind(returned: Returned, begins: str) -> None:
    assert hint(value(), out=returned).startswith(begins)


def test_an_error_that_is_not_raised_asks_what_the_item_asks() -> None:
    error = Expectation("error", "error", "f", value={"type": "ValueError", "mentions": ["avg"]})
    assert hint(error) == "Think again."
    assert hint(error, facts={"error": {"types": ["KeyError"], "message": "avg"}}).startswith("Callers catch")
    assert hint(error, facts={"error": {"types": ["ValueError"], "message": "no"}}).startswith(
        "Your exception has the right type"
    )
    assert hint(value(), error, out=tensor(WANTED + 1), facts={"error": None}) == ""


def test_a_value_and_a_case_that_the_item_has_words_for_get_them_instead_of_its_hint() -> None:
    item = replace(ITEM, hints={"slope": "Which way?", "c": "What is 0?"})
    both = (value(), value(kind="value", name="slope"))
    wrong = {"out": tensor(WANTED), "slope": tensor(WANTED + 1)}
    assert hint(*both, **wrong) == ""
    assert hint(*both, item=item, **wrong) == "Which way?"
    assert hint(value(), item=item, later=True, out=tensor(WANTED + 1)) == "What is 0?"
    assert hint(value(), item=item, out=tensor(WANTED[0])).startswith("Write down the shape")
    assert hint(value(), item=item, simpler="first", out=tensor(WANTED + 1)) == "first fails too: start there."


def failing(expected: Expectation, visibility: Visibility = "public", **returned: Returned) -> list[Judged]:
    case = Case("c", ITEM.id, "f", "a case", visibility, "probe", {}, {}, (expected,), {})
    mismatch = compare([expected], Observation(returned, {}))
    return [Judged(case, CaseResult("c", visibility, "failed", ""), mismatch)]


def test_a_wrong_gradient_begins_where_values_are_wrong_wherever_that_item_stands() -> None:
    items = [replace(ITEM, id=name) for name in ("slopes", "values", "others")]
    slope = failing(value(kind="gradient", name="slope"), slope=tensor(WANTED + 1))
    wrong, unseen = failing(value(), out=tensor(WANTED + 1)), failing(value(), "hidden", out=tensor(WANTED + 1))
    judged = {"slopes": slope, "values": wrong, "others": wrong}
    assert simpler_item(items, items[0], judged, slope[0].mismatch) == "values"
    assert simpler_item(items, items[0], {**judged, "values": unseen}, slope[0].mismatch) == "others"
    assert simpler_item(items, items[1], judged, wrong[0].mismatch) == ""
    assert simpler_item(items, items[2], judged, wrong[0].mismatch) == "values"
    assert simpler_item(items, items[2], judged, unseen[0].mismatch, of_hidden=True) == "values"


def test_a_check_that_is_missing_and_a_wrong_value_have_no_cause_in_common() -> None:
    refused = Expectation("error", "error", "f", value={"type": "ValueError", "mentions": []})
    unchecked = compare([refused], Observation({}, {"error": None}))
    wrong = compare([value()], Observation({"out": tensor(WANTED + 1)}, {}))
    assert [may_share_a_cause(unchecked, other) for other in (unchecked, wrong, None)] == [True, False, False]
    assert [may_share_a_cause(wrong, other) for other in (unchecked, wrong, None)] == [False, True, True]
    assert not same_kind(wrong, None)


def hidden(expected: Expectation, out: Returned | None, simpler: str = "") -> str:
    mismatch = compare([expected], Observation({} if out is None else {"out": out}, {}))
    assert mismatch is not None
    return hint_of_hidden(ITEM, mismatch, simpler)


def test_an_item_that_fails_in_hidden_cases_alone_gets_a_hint_that_no_number_decides() -> None:
    told = {hidden(value(), tensor(WANTED * by)) for by in (0.0, 1.0001, 2.0, np.nan)}
    told |= {hidden(value(kind="gradient"), tensor(WANTED * by)) for by in (0.0, 1.0001, np.nan)}
    assert told == {hint_of_hidden(ITEM, None)}
    assert told.pop().startswith("The public cases of this item pass")
    assert hidden(value(), tensor(WANTED[:1])).startswith("Write down the shape")
    assert hidden(value(), tensor(WANTED + 1), "deltas-first") == "deltas-first fails too: start there."


def test_what_happens_in_turn_is_told_by_its_first_wrong_step() -> None:
    losses = np.array([3.0, 2.0, 1.0, 0.5])
    wrong = losses + np.array([0, 0, 1.0, 1.0])
    found = hint(value(losses, axes=("step",)), out=tensor(wrong))
    assert found == "At step 1 it is right, at step 2 no longer. What happens between the two?"
    assert hint(value(losses, axes=("step",)), out=tensor(losses + 1)) == "Think again."
    assert hint(value(losses, axes=("token",)), out=tensor(wrong)) == "Think again."
    weights = np.arange(8.0).reshape(4, 2)
    later = weights + np.array([[0], [0], [0], [1.0]])
    found = hint(value(weights, axes=("update", "vocab")), out=tensor(later))
    assert found == "At update 2 it is right, at update 3 no longer. What happens between the two?"


HINTS = {"sign": "Which way is up?", "mean": "Over which axis?", "also-sign": "Which way is up?", "third": "Three?"}


@pytest.mark.parametrize(
    ("slugs", "told"),
    [
        ([], ""),
        (["unknown"], ""),
        (["sign"], "Which way is up?"),
        (["sign", "also-sign"], "Which way is up?"),
        (["mean", "sign"], "Over which axis? Or: Which way is up?"),
        (["mean", "sign", "third"], "Over which axis? Or: Which way is up?"),
    ],
)
def test_the_hints_of_recognised_mistakes_come_once_each_and_two_at_most(slugs: list[str], told: str) -> None:
    assert hint_of_names(slugs, HINTS) == told


@pytest.mark.parametrize(
    ("params", "inputs", "handed_out", "written", "told"),
    [
        ({}, {}, "0.2", "0.1", True),
        ({}, {}, "'mean_std'", "'mean'", True),
        ({"options": {"mode": "clipped"}}, {"log_probs": WANTED}, "0.2", "0.1", True),
        ({"options": {"epsilon": 0.5}}, {}, "0.2", "0.1", False),
        ({"calls": [{"epsilon": 0.5}]}, {}, "0.2", "0.1", False),
        ({"settings": {"epsilon": 0.5}}, {}, "0.2", "0.1", False),
        ({"settings": {"epsilon": 0.5}, "defaults": ["epsilon"]}, {}, "0.2", "0.1", True),
        ({"settings": {"epsilon": 0.5}, "defaults": True}, {}, "0.2", "0.1", False),
        ({}, {"epsilon": WANTED}, "0.2", "0.1", False),
        ({}, {}, "0.0", "0", False),
        ({}, {}, "None", "None", False),
    ],
)
def test_another_default_than_the_handouts_is_told_where_a_case_leaves_the_parameter_to_it(
    params: dict[str, Any], inputs: dict[str, Array], handed_out: str, written: str, told: bool
) -> None:
    case = Case("c", ITEM.id, "f", "a case", "hidden", "probe", params, inputs, (), {})
    sentence = f"By default epsilon is {handed_out} in the handout; in your first line of f it is {written}."
    assert hint_of_default(case, {"epsilon": handed_out}, {"epsilon": written}) == (sentence if told else "")
