"""When a run's weights part from the expected ones, and by how much: told of real runs, held against what happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from all_assignments import generator_of
from places import KIT

from autograder.authoring.fixtures.regenerate import observe, solution_source
from autograder.grading.assignment import find_assignment
from autograder.grading.clues import about_updates
from autograder.grading.fixtures import Case, Expectation, read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Array, Observation, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

STARTS = np.array(
    [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
)  # before the first of three equal updates, and after


def expected(name: str, array: Array, axes: str, **more: Any) -> Expectation:
    return Expectation("value", name, name, tuple(axes.split()), "float64", 1e-6, 1e-6, array=array, **more)


FOLLOWED = expected("weights before and after", STARTS, "update sum", diagnosis=True)
LOSSES = expected("losses of updates", np.array([0.5, 0.25, 0.125]), "update", diagnosis=True)
AFTER = expected("weights", STARTS[1:], "update vocab")


def tensor(array: Array) -> Returned:
    return Returned("tensor", "Tensor", array.dtype.name, array.shape, False, array)


def told(*expectations: Expectation, inputs: dict[str, Array] | None = None, **returned: Array) -> str:
    case = Case("c", "i", "f", "a run", "public", "run", {}, inputs or {}, expectations, {})
    seen = {name.replace("_", " "): tensor(array) for name, array in returned.items()}
    return about_updates(case, Observation(seen, {}))


def off_by(share: float, since: int) -> Array:
    """Weights that are off by this share of an update after the `since`-th."""
    yours = STARTS.copy()
    yours[since:] += share * (STARTS[1] - STARTS[0])
    return yours


@pytest.mark.parametrize(
    ("share", "since", "sentence"),
    [
        (
            1.0,
            3,
            "The weights agree for the first 2 updates and differ from the 3rd on, by about the size of one update.",
        ),
        (
            -1.2,
            2,
            "The weights agree for the first update and differ from the 2nd on, by about the size of one update.",
        ),
        (0.5, 1, "The weights differ from the first update on, by about 0.5 times the size of one update."),
        (0.0234, 1, "The weights differ from the first update on, by about 0.02 times the size of one update."),
        (-2.0, 1, "The weights differ from the first update on, by about 2 times the size of one update."),
        (24.0, 1, "The weights differ from the first update on, by about 24 times the size of one update."),
        (9e-4, 1, "The weights differ from the first update on, at first by less than a thousandth of one update."),
        (0.3, 0, "The weights differ before the first update."),
    ],
)
def test_the_first_wrong_update_is_told_and_how_far_off_it_is(share: float, since: int, sentence: str) -> None:
    assert told(FOLLOWED, weights_before_and_after=off_by(share, since)) == sentence


def test_right_losses_up_to_a_wrong_update_point_at_what_comes_after_the_loss() -> None:
    weights, losses = off_by(1.0, 2), np.array([0.5, 0.25, 9.0])
    found = told(FOLLOWED, LOSSES, weights_before_and_after=weights, losses_of_updates=losses)
    assert found.endswith(". Its loss is right: look at what becomes of its gradient, and at the optimizer.")


DUE = np.array([1.0, -2.0, 3.0, -4.0, 5.0, -6.0, 7.0, -8.0, 9.0])
MANY = np.array([0 * DUE, DUE, 2 * DUE])
ALIKE = expected("weights before and after", MANY, "update sum", diagnosis=True)
LEARNED = replace(LOSSES, array=np.array([0.5, 0.25]))


@pytest.mark.parametrize(
    ("yours", "sentence"),
    [
        (0.25 * DUE, "Yours is 0.25 times the right one, in all weights alike."),
        (3 * DUE, "Yours is 3 times the right one, in all weights alike."),
        (-DUE, "Yours goes the opposite way."),
        (0 * DUE, "Yours is missing."),
        (
            np.abs(DUE),
            "The difference is no multiple of the right update, so not of the learning rate alone.",
        ),
    ],
)
def test_one_factor_for_all_weights_is_told_and_that_there_is_none(yours: Array, sentence: str) -> None:
    weights = np.array([MANY[0], MANY[1], MANY[1] + yours])
    found = told(ALIKE, LEARNED, weights_before_and_after=weights, losses_of_updates=LEARNED.array)
    assert f" {sentence} Its loss is right: look at " in found
    assert ("its learning rate" in found) == (" times the right one" in found)


def test_weights_after_each_update_are_followed_from_the_case_s_own() -> None:
    start = {"weight": STARTS[0]}
    sentence = "The weights agree for the first 2 updates and differ from the 3rd on, by about the size of one update"
    assert told(AFTER, inputs=start, weights=off_by(1.0, 3)[1:]) == f"{sentence}."
    given = {**start, "gradients": np.ones((3, 2))}
    assert told(AFTER, inputs=given, weights=off_by(1.0, 3)[1:]) == f"{sentence}: look at the optimizer."
    assert told(AFTER, inputs=start, weights=STARTS[1:]) == ""


# Real runs of the sorting task

SORTING = find_assignment(KIT, "policy_gradient")
FIXTURES = read_fixtures(SORTING)
RUN = next(case for case in FIXTURES.cases if case.id == "loop-adam")
LOOP = next(one for one in generator_of("policy_gradient")["mistakes"].CORRECT if one.function == "run_policy_gradient")
KNOWN = [one for one in generator_of("policy_gradient")["mistakes"].MISTAKES if one.function == LOOP.function]
UPDATE = "            optimizer.step()\n"


def wrong(old: str, new: str) -> str:
    return str(LOOP.but("of-a-test", "?", (old, new)).source)


OPTIMIZERS = {
    "a tenth of the rate": (
        wrong("lr=learning_rate", "lr=learning_rate / 10"),
        "The weights differ from the first update on, by about the size of one update. Yours is",
    ),
    "two updates for one": (
        wrong(UPDATE, 2 * UPDATE),
        "The weights differ from the first update on, by about the size of one update. Yours is",
    ),
    "made anew in every epoch": (
        next(one.source for one in KNOWN if one.slug == "optimizer-made-anew"),
        "The weights agree for the first 2 updates and differ from the 3rd on, by about",
    ),
    "no update in the last step": (
        wrong(UPDATE, f"            if len(records) < 6:\n    {UPDATE}"),
        "The weights agree for the first 5 updates and differ from the 6th on, by about the size of one update.",
    ),
}


def seen_in(source: str, sandbox: Sandbox, case: Case = RUN) -> Observation | None:
    return observe(SORTING, f"{solution_source(SORTING)}\n\n{source}", [case], sandbox)[0].observation


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_wrong_optimizer_is_told_by_its_first_wrong_update(name: str, sandbox: Sandbox) -> None:
    source, sentence = OPTIMIZERS[name]
    seen = seen_in(source, sandbox)
    assert seen is not None
    found = about_updates(RUN, seen)
    assert found.startswith(sentence)
    assert " Its loss is right: look at " in found
    factor = {"a tenth of the rate": "0.1", "two updates for one": "2"}.get(name)
    if factor is None:
        assert found.endswith(" look at what becomes of its gradient, and at the optimizer.")
    else:
        assert f" Yours is {factor} times the right one, in all weights alike. " in found
        assert found.endswith(" look at the optimizer, its learning rate, and how often it steps.")


def test_a_report_tells_it_beside_the_numbers_and_beside_a_name(sandbox: Sandbox) -> None:
    grader = Grader.of(SORTING, FIXTURES, counterexamples=False)
    items = [item for item in SORTING.items if item.id == "loop-optimizer"]

    def message(source: str) -> tuple[str, tuple[str, ...], str]:
        text = f"{solution_source(SORTING)}\n\n{source}"
        report = grader.grade(Submission("ada", "policy_gradient.py", "", text), sandbox, items)
        return report.items[0].message, report.items[0].mistakes, report.items[0].hint

    sentence = "The weights agree for the first 2 updates and differ from the 3rd on, by about"
    text, names, _ = message(OPTIMIZERS["made anew in every epoch"][0])
    assert sentence in text
    assert names == ("optimizer-made-anew",)
    text, names, hint = message(OPTIMIZERS["two updates for one"][0])
    assert "by about the size of one update. Yours is 2 times the right one" in text
    assert not names
    assert hint == ""


# Written gradients: the language model's loop has its optimizer alone to make


@pytest.mark.parametrize(
    ("yours", "sentence"),
    [
        (STARTS[:3], "The weights agree for the 2 updates that yours has; there should be 3."),
        (
            np.vstack([STARTS, STARTS[-1:] + 1.0]),
            "The weights agree for all 3 updates that there should be; yours goes on for 1 more.",
        ),
        (STARTS[:3] + 1.0, ""),
        (STARTS[:1], ""),
        (STARTS[:3, :1], ""),
    ],
)
def test_a_run_of_another_length_that_is_right_as_far_as_it_goes_is_told_so(yours: Array, sentence: str) -> None:
    assert told(FOLLOWED, LOSSES, weights_before_and_after=yours) == sentence
