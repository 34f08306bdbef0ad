"""A fingerprint names a wrong answer: the same for all who gave it, another for every other answer."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.grading.fixtures import Expectation
from autograder.grading.known_mistakes import fingerprint
from autograder.sandbox.calls import Array, Observation, Raised, Returned

RIGHT = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
DELTAS = Expectation("value", "deltas", "deltas", ("batch", "trial"), "float32", 1e-5, 1e-6, array=RIGHT)


def returned(array: Array, *, graph: bool = False) -> Observation:
    name = array.dtype.name
    return Observation({"deltas": Returned("tensor", "Tensor", name, array.shape, graph, array)}, {})


def of(*seen: Observation | Raised | None) -> str:
    return fingerprint((f"case-{place}", [DELTAS], one) for place, one in enumerate(seen))


def noisy(array: Array, seed: int) -> Array:
    """The same answer by other operations: each value off by what float32 rounds away."""
    chance = np.random.default_rng(seed)
    return (array * (1 + chance.uniform(-1e-7, 1e-7, array.shape))).astype(np.float32)


def test_answers_that_differ_by_rounding_alone_are_one() -> None:
    wrong = RIGHT * np.float32(1.5)
    shared = [of(returned(noisy(wrong, seed))) == of(returned(wrong)) for seed in range(200)]
    assert sum(shared) >= 195  # a sum may fall on a border between two steps


@pytest.mark.parametrize(
    "other",
    [
        RIGHT * 1.501,
        RIGHT * 1.5 + 1e-3,
        np.flip(RIGHT * 1.5, axis=0).copy(),
        (RIGHT * 1.5).T.copy(),
        (RIGHT * 1.5).astype(np.float64),
        np.where(RIGHT > 0, RIGHT * 1.5, np.nan).astype(np.float32),
        np.where(RIGHT > 0, RIGHT * 1.5, np.inf).astype(np.float32),
        np.where(RIGHT < 0, RIGHT * 1.5, np.nan).astype(np.float32),
    ],
)
def test_answers_that_differ_by_more_are_not(other: Array) -> None:
    wrong = returned((RIGHT * 1.5).astype(np.float32))
    assert of(wrong) != of(returned(other))


def test_whatever_is_right_is_same_and_place_of_case_counts() -> None:
    wrong = returned((RIGHT * 2).astype(np.float32))
    right, close = returned(RIGHT), returned(noisy(RIGHT, 1))
    assert of(right, wrong) == of(close, wrong)
    assert of(right, wrong) != of(wrong, right)


def test_fingerprint_holds_facts_and_no_diagnoses() -> None:
    calls = Expectation("fact", "calls", "the calls", value=3)
    why = Expectation("fact", "why", "the reason", value="x", diagnosis=True)

    def seen(count: int, reason: str) -> str:
        return fingerprint([("one", [calls, why], Observation({}, {"calls": count, "why": reason}))])

    assert seen(4, "a") == seen(4, "b")
    assert seen(4, "a") != seen(5, "a")


@pytest.mark.parametrize("value", [0.0, 1e-12, 1e300, -1e300, np.inf])
def test_any_value_has_fingerprint(value: float) -> None:
    array = np.full((7, 5), value)
    assert len(of(returned(array))) == 16
