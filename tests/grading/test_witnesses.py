"""Examples of the student's own: formulas over what came back, evaluated outside the sandbox."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autograder.grading.compare import compare, evaluate, fault_of
from autograder.grading.fixtures import Expectation
from autograder.grading.known_mistakes import is_mistake
from autograder.sandbox.calls import Array, Observation, Returned

CLAIM: dict[str, Any] = {
    "of": {"probs": "action", "rewards": "action"},
    "sizes": [2, 4],
    "dtypes": ["float32", "float64"],
    "let": {"mean": "sum(probs * rewards)"},
    "faults": [["the probabilities do not add up to 1", "abs(sum(probs) - 1) > 1e-6"], ["the mean is 0", "mean <= 0"]],
}
EXAMPLE = Expectation("witness", "example", "your example", value=CLAIM, message="In your example {observed}.")


def tensor(entries: Any, dtype: Any = np.float64) -> Returned:
    array: Array = np.asarray(entries, dtype=dtype)
    return Returned("tensor", "Tensor", array.dtype.name, array.shape, array=array)


def example(probs: Any = (0.5, 0.5), rewards: Any = (1.0, 0.0)) -> dict[str, Returned]:
    given = {"probs": probs, "rewards": rewards}
    return {name: one if isinstance(one, Returned) else tensor(one) for name, one in given.items()}


def test_example_of_what_was_asked_for_has_no_fault() -> None:
    assert fault_of(CLAIM, example()) == ""
    assert fault_of(CLAIM, example(tensor([0.5, 0.5], np.float32))) == ""


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        (example((0.5, 0.4)), "the probabilities do not add up to 1"),
        (example(rewards=(-1.0, 1.0)), "the mean is 0"),
        (example((0.5, 0.4), (-1.0, 1.0)), "the probabilities do not add up to 1"),
        ({}, "probs is no tensor of numbers"),
        (example(rewards=Returned("other", type="list")), "rewards is no tensor of numbers"),
        (example(rewards=tensor([1, 0], np.int64)), "rewards has dtype int64"),
        (example(rewards=tensor([[1.0, 0.0]])), "rewards has 2 axes and not one"),
        (example((1.0,), (1.0,)), "probs has 1 entries"),
        (example((0.2,) * 5, (1.0,) * 5), "probs has 5 entries"),
        (example(rewards=(1.0, 0.0, 2.0)), "probs and rewards have different sizes"),
        (example(rewards=(1.0, np.inf)), "rewards is not finite"),
    ],
)
def test_first_fault_of_example_is_told(returned: dict[str, Returned], fault: str) -> None:
    assert fault_of(CLAIM, returned) == fault
    mismatch = compare([EXAMPLE], Observation(returned, {}))
    assert mismatch is not None
    assert (mismatch.rung, mismatch.observed) == ("fact", fault)


def test_no_fact_that_student_code_tells_counts_for_example() -> None:
    forged = Observation(example((0.5, 0.4)), {"example": "", "odds": "all above 0", "variance": "larger"})
    assert compare([EXAMPLE], forged) is not None


def test_wrong_example_is_mistake_that_has_same_fault() -> None:
    known = Observation({}, {"example": "the mean is 0"})
    assert is_mistake([EXAMPLE], known, Observation(example(rewards=(-3.0, 1.0)), {}))
    assert not is_mistake([EXAMPLE], known, Observation(example((0.5, 0.4)), {}))


def test_formula_is_arithmetic_over_what_is_known() -> None:
    known = {"x": np.array([1.0, -3.0])}
    assert evaluate("2 * max(x) - min(x) ** 2 / len(x)", known) == 2 - 4.5
    assert evaluate("sum(abs(x)) >= 4", known)
    assert not evaluate("-sum(x) < 2", known)


CALLS = ("open(x)", "__import__('os')", "x.tofile('here')", "sum(x, x)", "(lambda: 1)()")
OTHERS = ("x.size", "x[0]", "[n for n in x]", "unknown + 1", "'text'", "x if 1 else 2", "1 < x < 2", "x and x")


@pytest.mark.parametrize("formula", [*CALLS, *OTHERS])
def test_formula_reaches_nothing_else(formula: str) -> None:
    with pytest.raises(ValueError, match="is no part of a formula"):
        evaluate(formula, {"x": np.array([1.0, 2.0])})
