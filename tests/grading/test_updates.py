"""When a run's weights part from the expected ones, and by how much: told of real runs, held against what happened."""

from __future__ import annotations

import importlib.util
import re
import types
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from all_assignments import generator_of
from places import KIT

from autograder.authoring.fixtures.agreement import observe, solution_source
from autograder.grading.assignments import find_assignment
from autograder.grading.cases import Case, Expectation
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.remarks.updates import about_updates
from autograder.sandbox.observation import Array, Observation, Returned
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
            "The difference is no multiple of the right update, so another learning rate alone does not explain it.",
        ),
    ],
)
def test_one_factor_for_all_weights_is_told_and_that_there_is_none(yours: Array, sentence: str) -> None:
    weights = np.array([MANY[0], MANY[1], MANY[1] + yours])
    found = told(ALIKE, LEARNED, weights_before_and_after=weights, losses_of_updates=LEARNED.array)
    assert f" {sentence} Its loss is right: look at " in found
    assert ("its learning rate" in found) == (" times the right one" in found)


def test_of_a_factor_that_nearly_fits_nothing_is_told() -> None:
    nearly = 0.5 * DUE + 0.1 * np.abs(DUE)
    weights = np.array([MANY[0], MANY[1], MANY[1] + nearly])
    found = told(ALIKE, LEARNED, weights_before_and_after=weights, losses_of_updates=LEARNED.array)
    assert "factor" not in found
    assert "times the right one" not in found


def test_a_loss_that_was_wrong_before_its_update_is_where_to_look() -> None:
    weights, losses = off_by(1.0, 2), np.array([0.5, 0.5, 9.0])
    found = told(FOLLOWED, LOSSES, weights_before_and_after=weights, losses_of_updates=losses)
    assert found.endswith(". The loss of the 2nd is wrong already: look at what it is made of.")
    assert "optimizer" not in found


def test_right_weights_in_a_wrong_run_ask_which_model_was_returned() -> None:
    assert told(FOLLOWED, weights_before_and_after=STARTS).endswith("is it this model that you return?")


def test_weights_after_each_update_are_followed_from_the_case_s_own() -> None:
    start = {"weight": STARTS[0]}
    sentence = "The weights agree for the first 2 updates and differ from the 3rd on, by about the size of one update"
    assert told(AFTER, inputs=start, weights=off_by(1.0, 3)[1:]) == f"{sentence}."
    given = {**start, "gradients": np.ones((3, 2))}
    assert told(AFTER, inputs=given, weights=off_by(1.0, 3)[1:]) == f"{sentence}: look at the optimizer."
    assert told(AFTER, inputs=start, weights=STARTS[1:]) == ""


@pytest.mark.parametrize("yours", [np.full_like(STARTS, np.nan), STARTS[:, :1]])
def test_nothing_is_told_of_other_sums_or_of_no_numbers(yours: Array) -> None:
    assert told(FOLLOWED, weights_before_and_after=yours) == ""
    assert told(AFTER, inputs={"weight": STARTS[0]}, weights=yours[1:]) == ""


def test_nothing_is_told_where_no_update_was_due_or_nothing_is_known_of_the_start() -> None:
    still = replace(FOLLOWED, array=np.zeros_like(STARTS))
    assert told(still, weights_before_and_after=off_by(1.0, 1)) == ""
    assert told(AFTER, weights=off_by(1.0, 1)[1:]) == ""
    assert told(replace(AFTER, axes=("step", "vocab")), inputs={"weight": STARTS[0]}, weights=off_by(1.0, 1)[1:]) == ""
    assert told(FOLLOWED) == ""


# Real runs of the sorting task

SORTING = find_assignment(KIT, "policy_gradient")
FIXTURES = read_fixtures(SORTING)
RUN = next(case for case in FIXTURES.cases if case.id == "loop-adam")
LOOP = next(one for one in generator_of("policy_gradient")["mistakes"].CORRECT if one.function == "run_policy_gradient")
KNOWN = [one for one in generator_of("policy_gradient")["mistakes"].MISTAKES if one.function == LOOP.function]
ADAM = "torch.optim.Adam(model.parameters(), lr=learning_rate)"
UPDATE = "            optimizer.step()\n"
AFTER_ITS_LOSS = {  # known mistakes in what becomes of a right loss, and in the optimizer
    "gradients-never-cleared", "loss-ascended", "optimizer-of-another-model", "gradients-cleared-before-update",
    "weights-decayed", "embedding-left-out", "optimizer-made-anew", "learning-rate-scheduled", "another-adam",
    "decay-in-the-gradient", "gradients-clipped-by-value", "learning-rate-ignored", "gradients-clipped",
    "learning-rate-tenfold", "plain-sgd", "adam-with-beta2-0-99", "adam-with-beta2-0-95", "adam-with-eps-1e-5",
    "learning-rate-warmed-up", "not-cleared-at-the-end-of-an-epoch",
}  # fmt: skip


def wrong(old: str, new: str) -> str:
    return str(LOOP.but("of-a-test", "", (old, new)).source)


OPTIMIZERS = {
    "plain descent": (wrong("torch.optim.Adam", "torch.optim.SGD"), "The weights differ from the first update on"),
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
    "other moments": (
        wrong("lr=learning_rate)", "lr=learning_rate, betas=(0.5, 0.999))"),
        "The weights agree for the first update and differ from the 2nd on, by about",
    ),
    "another epsilon": (
        wrong("lr=learning_rate)", "lr=learning_rate, eps=1e-4)"),
        "The weights differ from the first update on, by",
    ),
    "clipped by the norm": (
        wrong(UPDATE, f"            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)\n{UPDATE}"),
        "The weights differ from the first update on, at first by less than a thousandth of one update.",
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
        assert found.endswith(" look at which optimizer it is, at its learning rate, and at how often it steps.")


def weights_in(source: str) -> list[Array]:
    """All weights of the model that trains, before the first step of any optimizer and after each, as torch tells."""
    import torch
    from torch.optim.optimizer import register_optimizer_step_post_hook

    spec = importlib.util.spec_from_file_location("probes_of_this_test", SORTING.folder / "probes.py")
    assert spec is not None
    assert spec.loader is not None
    probes: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(probes)
    student = types.ModuleType("policy_gradient")
    exec(compile(f"{solution_source(SORTING)}\n\n{source}", "policy_gradient.py", "exec"), student.__dict__)
    inputs = {name: torch.from_numpy(array) for name, array in RUN.inputs.items()}
    models, weights = [], []

    def flat() -> Array:
        found: Array = torch.cat([p.detach().flatten() for p in models[0].parameters()]).numpy().copy()
        return found

    class Model(probes.model_from(inputs)):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            models.append(self)
            if len(models) == 1:
                weights.append(flat())

    def watched(make: Callable[..., Any]) -> Any:
        return probes.findable(Model)

    probes.model_from = watched
    hook = register_optimizer_step_post_hook(lambda *_: weights.append(flat()))
    try:
        probes.run(student, inputs, RUN.params)
    finally:
        hook.remove()
    return weights


def claimed(sentence: str) -> tuple[int, float | None]:
    """The update that a sentence calls the first wrong one, and by how many updates it says that it is off."""
    which = re.search(r"differ from the (first|\d+)", sentence)
    assert which is not None, sentence
    times = re.search(r"by about ([\d.e-]+) times", sentence)
    ratio = float(times[1]) if times else 1.0 if "about the size of one" in sentence else None
    return 1 if which[1] == "first" else int(which[1]), ratio


@pytest.mark.long
@pytest.mark.timeout(240)
def test_of_every_known_wrong_loop_only_what_happened_is_told(sandbox: Sandbox) -> None:
    right, followed, pointed = weights_in(LOOP.source), 0, set()
    for mistake in KNOWN:
        seen = seen_in(mistake.source, sandbox)
        sentence = "" if seen is None else about_updates(RUN, seen)
        if "differ from" not in sentence:
            continue
        yours = weights_in(mistake.source)
        pointed |= {mistake.slug} if "optimizer" in sentence else set()
        if len(yours) != len(right):
            continue
        followed += 1
        wrong_ones = [not np.allclose(a, b, rtol=1e-6, atol=1e-6) for a, b in zip(yours, right, strict=True)]
        first, ratio = claimed(sentence)
        assert first == wrong_ones.index(True), (mistake.slug, sentence)
        off = np.linalg.norm(yours[first] - right[first]) / np.linalg.norm(right[first] - right[first - 1])
        near = off < 2e-3 if ratio is None else 0.5 < ratio / off < 2
        assert near, (mistake.slug, sentence, off)
    assert followed >= 12
    # Adam's update hardly depends on a loss's scale; and whether there is an update at all is asked as well.
    assert pointed - {"loss-divided-by-steps", "every-second-step-left-out"} == AFTER_ITS_LOSS


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

GRPO = find_assignment(KIT, "grpo_language_model")
WRITTEN = next(case for case in read_fixtures(GRPO).cases if case.id == "train-optimizer-small")
GRPO_ADAM = "torch.optim.Adam(model.parameters(), lr=learning_rate)"


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (("torch.optim.Adam(", "torch.optim.SGD("), "The weights differ from the first update on, by about"),
        (("lr=learning_rate)", "lr=2 * learning_rate)"), "from the first update on, by about the size of one update:"),
        (("Adam(model.parameters(), lr=learning_rate)", "AdamW(model.parameters(), lr=learning_rate)"), "by about 0.0"),
        (
            ("lr=learning_rate)", "lr=learning_rate, betas=(0.5, 0.999))"),
            "for the first update and differ from the 2nd",
        ),
    ],
)
def test_the_language_model_s_optimizer_is_told_too(edit: tuple[str, str], sentence: str, sandbox: Sandbox) -> None:
    source = solution_source(GRPO)
    assert source.count(edit[0]) == 1
    seen = observe(GRPO, source.replace(*edit), [WRITTEN], sandbox)[0].observation
    assert seen is not None
    found = about_updates(WRITTEN, seen)
    assert sentence in found
    assert found.endswith(": look at the optimizer.")


def test_of_right_loops_nothing_is_told(sandbox: Sandbox) -> None:
    seen = observe(GRPO, solution_source(GRPO), [WRITTEN], sandbox)[0].observation
    assert seen is not None
    assert about_updates(WRITTEN, seen) == ""


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
