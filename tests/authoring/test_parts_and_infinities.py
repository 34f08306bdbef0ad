"""Gradients of what has several parts, and infinities that are meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from declared import Declared
from test_calls import array, verdict

from autograder.authoring.declarations import Draft, check_draft
from autograder.authoring.faults import Misnamed, Refusal
from autograder.grading.compare import compare
from autograder.grading.fixtures import Case
from autograder.grading.wording import without_gradient
from autograder.sandbox.calls import Observation, Returned

X = {"x": array(3), "y": array(3)}
ORACLE = "def both(x, y): return x + y, x * y\ndef both_gradient(x, y): return 1 + y, 1 + x"
PARTS: Any = {"sum": "row", "product": "row"}
LEAVES = ["x", "y"]


def both(**more: Any) -> Draft:
    given = {"leaves": LEAVES, "gradients_of": ["sum", "product"], **more}
    return Declared(ORACLE, "torch").case("both", X, PARTS, **given)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("x + y, x * y", ""),
        ("[x + y, x * y]", ""),
        ("{'product': x * y, 'sum': x + y}", ""),
        ("x + y, (x * y).detach()", "graph of product"),
        ("(x + y).detach(), x * y", "graph of sum"),
        ("x + y, x.detach() * y", "gradient of gradient x"),
        ("x + y", "returned of sum"),
    ],
)
def test_gradients_are_of_the_sum_of_named_parts(returned: str, told: str) -> None:
    assert verdict(both(), f"def both(x, y): return {returned}") == told


def test_gradients_are_of_the_first_part_by_default() -> None:
    oracle = ORACLE.replace("1 + y, 1 + x", "1 + 0 * x, 1 + 0 * y")
    draft = Declared(oracle, "torch").case("both", X, PARTS, leaves=LEAVES)
    assert verdict(draft, "def both(x, y): return x + y, (x * y).detach()") == ""


def test_oracle_with_too_few_gradients_is_told() -> None:
    draft = Declared(ORACLE.replace("1 + y, 1 + x", "1 + y"), "torch").case("both", X, PARTS, leaves=LEAVES)
    with pytest.raises(
        Misnamed, match="the oracle both_gradient returns 1, and leaves are x, y: a tuple of a gradient"
    ):
        draft.answer(draft.inputs, draft.params)


@pytest.mark.parametrize(
    ("kind", "returns", "told"),
    [
        ("a list", ["f"], "g does not exist: f should return one tensor, but a list came back."),
        ("nothing", ["f"], "g does not exist: f should return one tensor, but nothing came back."),
        ("a tuple of 2", ["f"], "g does not exist: f should return one tensor, but a tuple of 2 came back."),
        ("a tensor", ["f"], ""),
        ("a number", ["f"], ""),
        ("a list", ["a", "b"], ""),
        ("a tuple of 2", ["a", "b"], ""),
        (
            "a tuple of 3",
            ["a", "b"],
            "g does not exist: f should return 2 values (a, b), but a tuple of 3 came back.",
        ),
        ("a tensor", ["a", "b"], "g does not exist: f should return 2 values (a, b), but a tensor came back."),
    ],
)
def test_wrong_kind_is_not_told_as_a_cut_graph(kind: str, returns: list[str], told: str) -> None:
    draft = Declared("def f(x): return x\ndef f_gradient(x): return 1 + 0 * x", "torch").case(
        "f", {"x": array(3)}, "row", leaves=["x"]
    )
    params = {**draft.params, "returns": returns}
    expected = [e for e in draft.answer(draft.inputs, draft.params) if e.kind == "gradient"]
    case = Case("f", "f-gradient", "f", "…", "public", "call", params, draft.inputs, tuple(expected), {})
    mismatch = compare(expected, Observation({"gradient x": Returned("none")}, {"kind": kind}))
    assert mismatch is not None
    seen = without_gradient(case, mismatch, reveal=True).replace("the gradient with respect to x", "g")
    assert seen == told
    hidden = without_gradient(case, mismatch, reveal=False)
    assert (hidden == "") == (told == "")
    assert kind not in hidden.partition(", but ")[2]


MASK = "def mask(n): return [[-math.inf if k > i else 0.0 for k in range(n + 1)] for i in range(n)]"


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        ("np.triu(np.full((n, n + 1), -np.inf), 1)", ""),
        ("np.triu(np.full((n, n + 1), np.inf), 1)", "values of mask"),
        ("np.triu(np.full((n, n + 1), -1e300), 1)", "values of mask"),
        ("np.triu(np.full((n, n + 1), np.nan), 1)", "values of mask"),
        ("np.triu(np.full((n, n + 1), -np.inf), 0)", "values of mask"),
        ("np.triu(np.full((n, n + 1), -np.inf), 1) + 1e-3", "values of mask"),
    ],
)
def test_equal_infinities_are_equal_and_nothing_else_is(returned: str, told: str) -> None:
    draft = Declared(MASK, "numpy").case("mask", {"n": 3}, "query key", infinite="what is not seen weighs nothing")
    assert (
        verdict(draft, f"import numpy as np\ndef mask(n):\n  with np.errstate(all='ignore'): return {returned}") == told
    )


def test_unintended_infinity_and_any_nan_are_refused() -> None:
    draft = Declared(MASK, "numpy").case("mask", {"n": 3}, "query key")
    with pytest.raises(Refusal, match="mask is infinite somewhere: other numbers, or infinite="):
        check_draft(draft)
    nan = Declared(MASK.replace("-math.inf", "math.nan"), "numpy").case("mask", {"n": 3}, "query key", infinite="…")
    with pytest.raises(Refusal, match="mask is nan somewhere, which no answer equals: nan is not graded"):
        check_draft(nan)


def test_tolerance_beside_infinities_is_of_the_finite_values() -> None:
    draft = Declared("def f(x): return np.append(x, np.inf)", "numpy").case(
        "f", {"x": array(3)}, "place", infinite="the last bound"
    )
    check_draft(draft)
    (value, *_) = draft.answer(draft.inputs, draft.params)
    assert np.isfinite(value.atol)
    assert value.atol <= 2e-8
    assert verdict(draft, "import numpy as np\ndef f(x): return np.append(x + 1e-3, np.inf)") == "values of f"
