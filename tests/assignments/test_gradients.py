"""Every gradient that an oracle knows in closed form is the slope of a value: by central differences."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from all_assignments import ASSIGNMENTS, generator_of

from autograder.authoring.laws import Function
from autograder.sandbox.calls import Array

Given = Mapping[str, Any]
STEP = 1e-6
CUT = {"cispo", "junk_cispo"}  # the ratio is a constant by definition there: no value has this slope
FUNCTIONS = {
    f"{assignment.name}-{name}": function
    for assignment in ASSIGNMENTS
    for name, function in generator_of(assignment.name)["functions"].EXAM.functions.items()
}


def log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def hold_slope(gradient: Array, value: Callable[[Array], Any], at: Array, rng: np.random.Generator) -> None:
    """Hold a gradient against how fast the sum of a value grows in a direction."""
    along = np.where(np.isfinite(at), rng.uniform(-1, 1, at.shape), 0.0)
    above, below = (np.asarray(value(at + step * along), float) for step in (STEP, -STEP))
    slope = math.fsum((above - below).ravel()) / (2 * STEP)
    assert (gradient * along).sum() == pytest.approx(slope, rel=0, abs=1e-6 + 1e-4 * np.abs(gradient * along).sum())


def drawn(function: Function, draw: str, rng: np.random.Generator) -> dict[str, Any]:
    return function.drawn(draw, rng, function.sized(1), "float64")


# Gradients of graded functions


def asked(oracle: ModuleType, name: str, function: Function, given: Given) -> Any:
    """What the oracle says: by name where it has the same names, by place where it has others."""
    answer = getattr(oracle, name)
    if given.keys() <= inspect.signature(answer).parameters.keys():
        return answer(**given)
    everything = {**function.defaults, **given}
    by_place = [everything[name] for name in function.arguments if name in everything and name not in function.by_name]
    return answer(*by_place, **{name: given[name] for name in function.by_name if name in given})


@pytest.mark.parametrize("place", [place for place, function in FUNCTIONS.items() if function.leaves])
def test_gradients_are_slopes_of_the_oracles_values(place: str) -> None:
    assignment, name = place.split("-")
    oracle, function, rng = generator_of(assignment)["oracle"], FUNCTIONS[place], np.random.default_rng(7)
    for draw in function.draws:
        given = drawn(function, draw, rng)
        found = asked(oracle, f"{name}_gradient", function, given)
        for leaf, gradient in zip(function.leaves, found if isinstance(found, tuple) else (found,), strict=True):

            def value(at: Array, leaf: str = leaf, given: Given = given) -> Any:
                return asked(oracle, name, function, {**given, leaf: at})

            if draw not in CUT:
                hold_slope(gradient, value, given[leaf], rng)


# Functions that answer with a gradient: of what, by the logits


def clipped(given: Given) -> Callable[[Array], Any]:
    """What clipping takes from the expected advantage, with its sign."""

    def value(logits: Array) -> Any:
        probs, advantages = np.exp(log_softmax(logits)), given["advantages"]
        ratio = probs / given["old_probs"]
        bounded = np.clip(ratio, 1 - given["epsilon_low"], 1 + given["epsilon_high"])
        return given["old_probs"] * (np.minimum(ratio * advantages, bounded * advantages) - ratio * advantages)

    return value


def expected(given: Given, share: float = 1.0) -> Callable[[Array], Any]:
    return lambda logits: share * np.exp(log_softmax(logits)) * given["rewards"]


def of_group(given: Given) -> Callable[[Array], Any]:
    return expected(given, 1 - 1 / given["group_size"] if given["baseline"] == "group_mean" else 1.0)


def of_kept_groups(given: Given) -> Callable[[Array], Any]:
    """The probability that a group is kept is a constant here."""
    alike = sum(
        given["probs"][given["rewards"] == reward].sum() ** given["group_size"] for reward in {*given["rewards"]}
    )
    return expected(given, (1 - 1 / given["group_size"]) / (1 - alike))


def towards_ref(given: Given) -> Callable[[Array], Any]:
    return lambda logits: np.exp(log_softmax(logits)) * (log_softmax(logits) - given["ref_log_probs"])


def from_ref(given: Given) -> Callable[[Array], Any]:
    return lambda logits: np.exp(given["ref_log_probs"]) * (given["ref_log_probs"] - log_softmax(logits))


def of_a_sample(given: Given) -> Callable[[Array], Any]:
    return lambda logits: -given["reward"] * log_softmax(logits)[given["token"]]


def moved(given: Given) -> Callable[[Array], Any]:
    """What the update of a bandit's preferences climbs."""
    runs, pushes = np.arange(len(given["actions"])), given["rewards"] - given["baselines"]
    return lambda logits: given["step_size"] * pushes * log_softmax(logits)[runs, given["actions"]]


THEORY = "policy_gradient_theory"
ANSWERS: list[tuple[str, Callable[[Given], Callable[[Array], Any]], Callable[[Given, Any], Array]]] = [
    ("bandits-gradient_update", moved, lambda given, found: found - given["preferences"]),
    (f"{THEORY}-reinforce_gradient", of_a_sample, lambda given, found: found),
    (f"{THEORY}-expected_group_gradient", of_group, lambda given, found: found),
    (f"{THEORY}-kl_expected_gradients", towards_ref, lambda given, found: found[1]),
    (f"{THEORY}-kl_expected_gradients", from_ref, lambda given, found: found[2]),
    (f"{THEORY}-clipping_bias", clipped, lambda given, found: found),
    (f"{THEORY}-kept_group_gradient", of_kept_groups, lambda given, found: found[0]),
]


@pytest.mark.parametrize(("place", "value", "part"), ANSWERS)
def test_answers_that_are_gradients_are_slopes(
    place: str, value: Callable[[Given], Callable[[Array], Any]], part: Callable[[Given, Any], Array]
) -> None:
    assignment, name = place.split("-")
    function, rng = FUNCTIONS[place], np.random.default_rng(7)
    for draw in function.draws:
        given = drawn(function, draw, rng)
        logits = next((given[one] for one in ("preferences", "logits") if one in given), None)
        at = np.log(given["probs"]) if logits is None else logits
        hold_slope(part(given, asked(generator_of(assignment)["oracle"], name, function, given)), value(given), at, rng)
