"""The theory lab's estimators: their worked numbers, what must hold of them, their oracle and their text."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from all_assignments import generator_of
from places import KIT
from policy_gradient_theory import (
    estimator_moments,
    expected_group_gradient,
    group_mean_standard_error,
    kl_estimates,
    kl_expected_gradients,
    kl_moments,
    mean_baseline_backfires,
    optimal_baseline,
    reinforce_gradient,
    score_table,
)

from autograder.authoring.fixtures.agreement import solution_source
from autograder.authoring.handout.release import handout_files, zip_bytes
from autograder.grading.assignments import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient_theory")
README = (ASSIGNMENT.solution / "README.md").read_text(encoding="utf-8")
TEXT = " ".join(re.sub(r"<!-- points:begin -->.*<!-- points:end -->", "", README, flags=re.DOTALL).split())
RIGHT_ANSWERS = sorted((ASSIGNMENT.folder / "right_answers").glob("*.py"))
GENERATOR = generator_of(ASSIGNMENT.name)
MISTAKES = GENERATOR["mistakes"].MISTAKES
ORACLE = GENERATOR["oracle"].estimators

Grade = Callable[[str], Report]


def exact(numbers: Any) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


POLICY, EARNED, REFERENCE = exact([0.5, 0.3, 0.2]), exact([8.0, 3.0, 1.0]), exact([0.6, 0.3, 0.1])
ONE_IN_TEN = exact([0.1, 0.9])


def one_parameter(probs: torch.Tensor) -> torch.Tensor:
    """The scores of two actions in the first logit alone."""
    return score_table(probs)[:, :1]


def policies(count: int = 20) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Policies of two to five actions, with rewards of both signs."""
    draws = torch.Generator().manual_seed(7)
    for number in range(count):
        actions = 2 + number % 4
        logits, rewards = torch.randn(2, actions, dtype=torch.float64, generator=draws) * 1.5
        yield torch.softmax(logits, dim=0), rewards


# Grading


@pytest.fixture(scope="module")
def grade(sandbox: Sandbox) -> Grade:
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))
    return lambda source: grader.grade(Submission("ada", "ada.py", "", source), sandbox)


def test_a_right_submission_takes_less_time_than_a_student_notices(grade: Grade) -> None:
    grade(solution_source(ASSIGNMENT))
    report = grade(solution_source(ASSIGNMENT))
    assert sum(item.seconds for item in report.items) < 5  # a tenth of a second where nothing else runs


# The catalogue


# Worked numbers


def test_e1_the_score_function_sums_to_zero() -> None:
    table = score_table(POLICY)
    assert table.tolist() == [[0.5, -0.3, -0.2], [-0.5, 0.7, -0.2], [-0.5, -0.3, 0.8]]
    weighted = POLICY[:, None] * table
    right = exact([[0.25, -0.15, -0.10], [-0.15, 0.21, -0.06], [-0.10, -0.06, 0.16]])
    torch.testing.assert_close(weighted, right, atol=1e-15, rtol=0)
    assert float(weighted.sum(dim=0).abs().max()) < 1e-16


@pytest.mark.parametrize(("rewards", "before", "mean"), [([11.0, 9.0], 25.0, 0.5), ([0.0, 2.0], 0.25, -0.5)])
def test_e4_the_variance_of_two_states_falls_to_nothing(rewards: list[float], before: float, mean: float) -> None:
    probs, scores = exact([0.5, 0.5]), exact([[0.5], [-0.5]])
    none = estimator_moments(probs, scores, exact(rewards), 0.0)
    centered = estimator_moments(probs, scores, exact(rewards), sum(rewards) / 2)
    assert [float(part) for part in none] == pytest.approx([mean, before], abs=1e-14)
    assert [float(part) for part in centered] == pytest.approx([mean, 0.0], abs=1e-14)


def test_e5_the_best_baseline_of_odds_nine_to_one() -> None:
    probs, rewards = exact([0.9, 0.1]), exact([11.0, 9.0])
    scores = one_parameter(probs)
    assert float(optimal_baseline(probs, scores, rewards)) == pytest.approx(9.2)
    assert float(probs @ rewards) == pytest.approx(10.8)
    found = [float(estimator_moments(probs, scores, rewards, b)[1]) for b in (0.0, 10.8, 9.2)]
    assert found == pytest.approx([7.6176, 0.2304, 0.0], abs=1e-13)


def test_e5_the_mean_reward_can_be_sixty_four_times_worse_than_no_baseline() -> None:
    rewards = exact([0.0, 2.0])
    scores = one_parameter(ONE_IN_TEN)
    found = [float(estimator_moments(ONE_IN_TEN, scores, rewards, b)[1]) for b in (0.0, 1.8, 0.2)]
    assert found == pytest.approx([0.0036, 0.2304, 0.0], abs=1e-15)
    assert float(optimal_baseline(ONE_IN_TEN, scores, rewards)) == pytest.approx(0.2)
    assert found[1] / found[0] == pytest.approx(64)


def test_e12_the_standard_errors_of_the_group_size_study() -> None:
    thirds, rewards = torch.full((3,), 1 / 3, dtype=torch.float64), exact([1.0, -0.5, -1.0])
    found = group_mean_standard_error(thirds, rewards, torch.tensor([1, 2, 4, 8, 16, 32]))
    assert float(thirds @ rewards) == pytest.approx(-1 / 6)
    assert found.tolist() == pytest.approx([0.849837, 0.6009, 0.4249, 0.3005, 0.2125, 0.1502], abs=5e-5)


def test_e15_reinforce_on_three_logits() -> None:
    logits = exact([1.0, 0.5, -0.5])
    found = reinforce_gradient(logits, 0, 1.0)
    assert found.tolist() == pytest.approx([-0.4534506, 0.3314990, 0.1219516], abs=1e-6)
    assert torch.equal(reinforce_gradient(logits, 0, -1.0), -found)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_e25_the_mean_of_a_group_shrinks_the_gradient_and_that_of_the_others_does_not(size: int) -> None:
    for probs, rewards in policies(4):
        true = probs * (rewards - probs @ rewards)
        shrunk = expected_group_gradient(probs, rewards, size, "group_mean")
        torch.testing.assert_close(shrunk, true * (size - 1) / size, atol=1e-12, rtol=0)
        for baseline in ("none", "leave_one_out"):
            found = expected_group_gradient(probs, rewards, size, baseline)
            torch.testing.assert_close(found, true, atol=1e-12, rtol=0)


def test_e27_the_three_estimates_have_the_means_and_gradients_that_the_text_says() -> None:
    for (probs, _), (ref, _) in zip(policies(), itertools.islice(policies(28), 8, None), strict=True):
        logits = probs.log().requires_grad_()
        forward = (torch.softmax(logits, 0) * (torch.log_softmax(logits, 0) - ref.log())).sum()
        backward = -(ref * torch.log_softmax(logits, 0)).sum()
        mean, variance = kl_moments(probs, ref)
        assert float(mean[0]) == pytest.approx(float(mean[2])) == pytest.approx(forward.item())
        assert (mean > 0).all()
        assert (variance > 0).all()
        k1, k2, k3 = kl_expected_gradients(logits.detach(), ref.log())
        assert float(k1.abs().max()) < 1e-12
        for found, divergence in ((k2, forward), (k3, backward)):
            (right,) = torch.autograd.grad(divergence, logits, retain_graph=True)
            torch.testing.assert_close(found, right, atol=1e-12, rtol=0)


# What must hold


def test_the_expected_score_is_zero() -> None:
    for probs, _ in policies():
        assert float((probs @ score_table(probs)).abs().max()) < 1e-15


def test_no_baseline_changes_the_mean_and_none_beats_the_best() -> None:
    for probs, rewards in policies():
        scores = score_table(probs)
        best = float(optimal_baseline(probs, scores, rewards))
        mean, least = estimator_moments(probs, scores, rewards, best)
        torch.testing.assert_close(mean, probs * (rewards - probs @ rewards), atol=1e-12, rtol=0)
        for other in (0.0, float(probs @ rewards), best - 0.01, best + 0.01):
            moved, variance = estimator_moments(probs, scores, rewards, other)
            torch.testing.assert_close(moved, mean, atol=1e-12, rtol=0)
            assert variance >= least


def test_the_solutions_example_backfires() -> None:
    probs, rewards = (part.double() for part in mean_baseline_backfires())
    scores = score_table(probs)
    without, with_mean = (float(estimator_moments(probs, scores, rewards, b)[1]) for b in (0.0, float(probs @ rewards)))
    assert with_mean > 60 * without


def test_reinforce_is_the_gradient_of_its_loss() -> None:
    for probs, rewards in policies(8):
        logits = (3 * probs.log()).requires_grad_()
        for token, reward in enumerate(rewards.tolist()):
            loss = -reward * torch.log_softmax(logits, dim=0)[token]
            (right,) = torch.autograd.grad(loss, logits)
            torch.testing.assert_close(reinforce_gradient(logits.detach(), token, reward), right, atol=1e-14, rtol=0)


def test_the_first_estimate_alone_can_be_negative() -> None:
    draws = torch.randn(2, 500, dtype=torch.float64, generator=torch.Generator().manual_seed(3)) - 3
    k1, k2, k3 = kl_estimates(*draws)
    assert (k1 < 0).any()
    assert (k2 >= 0).all()
    assert (k3 >= 0).all()


# The oracle


@pytest.mark.parametrize("baseline", ["none", "group_mean", "leave_one_out"])
def test_the_oracles_closed_form_of_groups_is_what_enumeration_gives(baseline: str) -> None:
    for probs, rewards in policies(8):
        given = probs.numpy(), rewards.numpy(), 3, baseline
        found = expected_group_gradient(probs, rewards, 3, baseline).numpy()
        np.testing.assert_allclose(ORACLE.expected_group_gradient(*given), found, atol=1e-12)


def test_the_oracles_gradients_of_the_estimates_are_slopes_of_each_sample() -> None:
    logits, ref = np.array([0.3, -0.8, 1.1, 0.0]), np.log([0.1, 0.2, 0.3, 0.4])

    def log_probs(z: np.ndarray) -> np.ndarray:
        return z - np.log(np.exp(z).sum())

    slopes = np.zeros((3, 4))
    for action, prob in enumerate(np.exp(log_probs(logits))):
        for j, step in enumerate(1e-6 * np.eye(4)):
            up, down = (ORACLE.kl_of(log_probs(z)[action], ref[action]) for z in (logits + step, logits - step))
            slopes[:, j] += prob * (np.array(up) - np.array(down)) / 2e-6
    np.testing.assert_allclose(ORACLE.kl_expected_gradients(logits, ref), slopes, atol=1e-9)


# The text: every number in the first half is computed here


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def joined(numbers: torch.Tensor, digits: int) -> str:
    return ", ".join(f"{z:.{digits}f}" for z in (numbers + 0.0).tolist())


def scores_of_three_actions() -> list[str]:
    table = score_table(POLICY)
    rows = [row(str(a), joined(table[a], 2), joined(POLICY[a] * table[a], 2)) for a in range(3)]
    return [*rows, "$\\pi = (0.5, 0.3, 0.2)$, and its actions earn 8, 3 and 1"]


def one_step_of_reinforce() -> list[str]:
    logits = exact([1.0, 0.5, -0.5])
    first, second, third = (f"{p:.4f}" for p in torch.softmax(logits, 0).tolist())
    return [
        f"With the logits 1, 0.5 and -0.5 the probabilities are {first}, {second} and {third}",
        f"The loss is {-torch.log_softmax(logits, 0)[0]:.4f} and its gradient is "
        f"{joined(reinforce_gradient(logits, 0, 1.0), 4)}:",
    ]


def moments_of_two_actions() -> list[str]:
    rows = []
    for odds, name, baselines in (
        (0.5, "even", {"none": 0.0, "10, the mean reward": 10.0}),
        (0.9, "9 to 1", {"none": 0.0, "10.8, the mean reward": 10.8, "9.2": 9.2}),
    ):
        probs = exact([odds, 1 - odds])
        for label, baseline in baselines.items():
            mean, variance = estimator_moments(probs, one_parameter(probs), exact([11.0, 9.0]), baseline)
            rows.append(row(name, label, f"{float(mean):.2f}", f"{float(variance):z.4f}"))
    half = exact([0.5, 0.5])
    _, other = estimator_moments(half, one_parameter(half), exact([0.0, 2.0]), 0.0)
    raw, centered = exact([11.0, 9.0, 0.0, 2.0]), exact([1.0, -1.0, -1.0, 1.0])
    return [
        *rows,
        f"the variance falls from {float(other):g} to 0 as well",
        f"{float(raw.std()):.3f} before and {float(centered.std()):.3f} after",
    ]


def four_baselines_of_three_actions() -> list[str]:
    scores = score_table(POLICY)
    weights = POLICY * (POLICY[:, None] * scores).square().sum(dim=1)
    baselines = {
        "with $\\nabla \\pi$ for the score": float(weights @ EARNED / weights.sum()),
        "$E[R]$": float(POLICY @ EARNED),
        "$b^\\star$": float(optimal_baseline(POLICY, scores, EARNED)),
    }
    variances = {label: float(estimator_moments(POLICY, scores, EARNED, b)[1]) for label, b in baselines.items()}
    none = float(estimator_moments(POLICY, scores, EARNED, 0.0)[1])
    shown = [row(label, f"{b:.4f}", f"{variances[label]:.4f}") for label, b in baselines.items()]
    return [row("none", "0", f"{none:.4f}"), *shown]


def gradients_of_groups() -> list[str]:
    true, pair = (expected_group_gradient(POLICY, EARNED, 2, name) for name in ("none", "group_mean"))
    rows = []
    for name in ("group_mean", "leave_one_out"):
        found = [expected_group_gradient(POLICY, EARNED, size, name) for size in (2, 3, 4)]
        shares = [f"{float(one @ true / (true @ true)):.4f}" for one in found]
        rows.append(row(f"`{name}`, as a share of the true gradient", *shares))
    return [
        *rows,
        f"The gradient of $E[R]$ is {joined(true, 4)}; on average, "
        f"groups of two with their mean as baseline give {joined(pair, 4)}.",
    ]


def three_estimates() -> list[str]:
    mean, variance = kl_moments(POLICY, REFERENCE)
    assert round(float(variance[0].sqrt() / mean[0])) == 7  # "seven times the divergence"
    gradients = kl_expected_gradients(POLICY.log(), REFERENCE.log())
    return [
        f"For the reference $(0.6, 0.3, 0.1)$ the divergence is {float(mean[0]):.4f}",
        row("mean", *(f"{float(m):.4f}" for m in mean)),
        row("variance", *(f"{float(v):.4f}" for v in variance)),
        *(row(f"$k_{k + 1}$", *(f"{float(g):z.4f}" for g in gradients[k])) for k in range(3)),
    ]


def standard_errors() -> list[str]:
    thirds, rewards = torch.full((3,), 1 / 3, dtype=torch.float64), exact([1.0, -0.5, -1.0])
    one, *others = group_mean_standard_error(thirds, rewards, torch.tensor([1, 2, 4, 8, 16, 32])).tolist()
    return [
        "rewards of 1, -0.5 and -1, all equally likely",
        f"a mean of 0.3; they have one of {float(thirds @ rewards):.4f}, and the standard deviation {one:.4f}",
        row("standard error", *(f"{error:.4f}" for error in others)),
    ]


CLAIMS = (
    scores_of_three_actions,
    one_step_of_reinforce,
    moments_of_two_actions,
    four_baselines_of_three_actions,
    gradients_of_groups,
    three_estimates,
    standard_errors,
)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_the_text_states_what_the_code_computes(claim: Callable[[], list[str]]) -> None:
    for phrase in claim():
        assert phrase in TEXT


def test_every_decimal_number_in_the_first_half_belongs_to_a_claim() -> None:
    rest = TEXT.split("## Objectives and rewards")[0]
    for phrase in sorted((phrase for claim in CLAIMS for phrase in claim()), key=len, reverse=True):
        rest = rest.replace(phrase, " ")
    assert re.findall(r"\S*\d[.,]\d\S*", rest) == []


def test_every_exercise_of_the_list_is_graded_by_a_function_that_there_is() -> None:
    rows = dict(re.findall(r"^\| (E\d+) \| [^|]+ \| ([^|]+) \|$", README, flags=re.MULTILINE))
    assert list(rows) == [f"E{number}" for number in range(1, 35)]
    known = {name for one in ("policy_gradient", "grpo_language_model") for name in find_assignment(KIT, one).functions}
    items = {item.id for item in find_assignment(KIT, "policy_gradient").items}
    assignments = {"policy_gradient", "grpo_language_model", "no_grad"}
    for where in rows.values():
        assert set(re.findall(r"`([^`]+)`", where)) <= known | items | assignments | set(ASSIGNMENT.functions), where
    named = set(re.findall(r"`([^`]+)`", " ".join(rows.values())))
    assert set(ASSIGNMENT.functions) <= named


# Cases of form


def test_a_case_of_form_calls_again_with_other_numbers_of_its_sizes() -> None:
    cases = GENERATOR["cases"].estimators
    in_float32, fewer = cases.single(cases.EIGHTHS), cases.POLICY[:2]
    described = cases.score_table_form("form", cases.POLICY, in_float32, fewer, fewer)
    with pytest.raises(ValueError, match="form calls score_table once alone with numbers of its sizes and dtypes"):
        cases.of_form(described)
    cases.of_form({**described, "inputs": {**described["inputs"], "again": cases.REFERENCE}})


# What is released


@pytest.mark.long  # in short: tests/authoring/test_release.py, with one assignment
def test_the_released_zip_works_alone(tmp_path: Path) -> None:
    (tmp_path / "theory.zip").write_bytes(zip_bytes(handout_files(ASSIGNMENT), ASSIGNMENT.name))
    with zipfile.ZipFile(tmp_path / "theory.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / ASSIGNMENT.name

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True)

    untouched = run("-m", "autograder", "check")
    assert untouched.returncode == 1, untouched.stderr
    assert "not implemented yet" in untouched.stdout
    nothing = run("experiments.py")
    assert (nothing.returncode, nothing.stdout.count("is not complete yet")) == (0, 6), nothing.stderr
    shutil.copy(ASSIGNMENT.solution / "policy_gradient_theory.py", folder)
    finished = run("-m", "autograder", "check")
    assert finished.returncode == 0, finished.stdout
    drawn = run("experiments.py")
    assert drawn.returncode == 0, drawn.stderr
    pictures = {path.name for path in (folder / "pictures").iterdir()}
    assert pictures == {name for name in ASSIGNMENT.also if name.endswith(".png")} | {"your_example.png"}
