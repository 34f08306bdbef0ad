"""Every number in the text of the theory lab, computed here; and its released zip."""

from __future__ import annotations

import itertools
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch
from all_assignments import fixtures_of, handout_of
from claims import Text, row
from lab import sort_inclusion_ordering_reward
from places import KIT
from policy_gradient_theory import (
    clipped_objective,
    clipping_bias,
    dynamic_sampling_weights,
    estimator_moments,
    expected_group_gradient,
    find_loopholes,
    group_advantages,
    group_mean_standard_error,
    has_signal,
    importance_weights,
    kept_group_gradient,
    kl_expected_gradients,
    kl_moments,
    length_weights,
    no_signal_probability,
    optimal_baseline,
    ratio_moments,
    reinforce_gradient,
    repaired_reward,
    score_table,
    training_memory,
)

from autograder.grading.assignment import find_assignment
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

ASSIGNMENT = find_assignment(KIT, "policy_gradient_theory")
README = (ASSIGNMENT.solution / "README.md").read_text(encoding="utf-8")
NO_CLAIMS = r"<!-- points:begin -->.*<!-- points:end -->|\[[\d.]+\]\(https://arxiv\.org/abs/[\d.]+\)"  # points, sources
FIRST, OBJECTIVES, NEWER, _ = map(
    Text,
    re.split(
        r"\n## (?:Objectives and rewards|Newer methods|Experiments)\n",
        re.sub(NO_CLAIMS, "", README, flags=re.DOTALL),
    ),
)
RATIOS = [0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0]


def exact(numbers: Any) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


POLICY, EARNED, REFERENCE = exact([0.5, 0.3, 0.2]), exact([8.0, 3.0, 1.0]), exact([0.6, 0.3, 0.1])
MOVED, COMPARED = exact([0.62, 0.25, 0.13]), exact([2.9, -2.1, -4.1])
NEW = exact([0.6, 0.3, 0.1])


def one_parameter(probs: torch.Tensor) -> torch.Tensor:
    """The scores of two actions in the first logit alone."""
    return score_table(probs)[:, :1]


def divergence(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one * (one.log() - other.log())).sum())


def joined(numbers: torch.Tensor, digits: int) -> str:
    return ", ".join(f"{z:.{digits}f}" for z in (numbers + 0.0).tolist())


@FIRST.claim
def scores_of_three_actions() -> list[str]:
    table = score_table(POLICY)
    rows = [row(str(a), joined(table[a], 2), joined(POLICY[a] * table[a], 2)) for a in range(3)]
    return [*rows, "$\\pi = (0.5, 0.3, 0.2)$, and its actions earn 8, 3 and 1"]


@FIRST.claim
def one_step_of_reinforce() -> list[str]:
    logits = exact([1.0, 0.5, -0.5])
    first, second, third = (f"{p:.4f}" for p in torch.softmax(logits, 0).tolist())
    return [
        f"With the logits 1, 0.5 and -0.5 the probabilities are {first}, {second} and {third}",
        f"The loss is {-torch.log_softmax(logits, 0)[0]:.4f} and its gradient is "
        f"{joined(reinforce_gradient(logits, 0, 1.0), 4)}:",
    ]


@FIRST.claim
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


@FIRST.claim
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


@FIRST.claim
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


@FIRST.claim
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


@FIRST.claim
def standard_errors() -> list[str]:
    thirds, rewards = torch.full((3,), 1 / 3, dtype=torch.float64), exact([1.0, -0.5, -1.0])
    one, *others = group_mean_standard_error(thirds, rewards, torch.tensor([1, 2, 4, 8, 16, 32])).tolist()
    return [
        "rewards of 1, -0.5 and -1, all equally likely",
        f"a mean of 0.3; they have one of {float(thirds @ rewards):.4f}, and the standard deviation {one:.4f}",
        row("standard error", *(f"{error:.4f}" for error in others)),
    ]


def four(number: float) -> str:
    return f"{number + 0.0:.4f}"


@OBJECTIVES.claim
def weights_of_two_tokens() -> list[str]:
    new, old = exact([[0.7, 0.1]]).log(), exact([[0.5, 0.3]]).log()
    rise, fall = importance_weights(new, old, "token")[0].tolist()
    return [
        f"had the probability 0.5 and now has 0.7 gets the weight {rise:.1f}",
        f"one that went from 0.3 to 0.1 gets {fall:.4f}",
        rf"($\log 0.85$ is {math.log(0.85):.4f})",
        f"the two tokens together have the weight {importance_weights(new, old, 'sequence').item():.4f}",
        f"the response's weight is {1.01**400:.1f}.",
    ]


@OBJECTIVES.claim
def two_tokens_that_must_both_be_right() -> list[str]:
    new, old = exact([[0.8, 0.6]]), exact([[0.5, 0.5]])
    slope = 1 - new[0, 0]  # of the first token's log-probability in its logit; other responses earn nothing
    by_token, by_sequence = (
        (old.prod() * importance_weights(new.log(), old.log(), level).flatten()[0] * slope).item()
        for level in ("token", "sequence")
    )
    assert by_sequence == pytest.approx((new.prod() * slope).item(), abs=1e-15)
    return [
        "the new one does with 0.8 at the first place and 0.6 at the second.",
        f"in the first logit is {by_sequence:.4f}.",
        f"sequence weights give {by_sequence:.4f} on average, under token weights {by_token:.4f}:",
    ]


@OBJECTIVES.claim
def the_clip_table() -> list[str]:
    rows = [row("ratio", *(f"{ratio:.1f}" for ratio in RATIOS)), r"$\epsilon = 0.2$"]
    for advantage in (1, -1):
        found = clipped_objective(exact(RATIOS), torch.full((7,), float(advantage), dtype=torch.float64), 0.2)
        for name, part in zip(("objective", "slope"), found, strict=True):
            rows.append(row(f"{name}, A = {advantage}", *(f"{number + 0.0:.1f}" for number in part.tolist())))
    return rows


@OBJECTIVES.claim
def weights_of_two_lengths() -> list[str]:
    names = {"sequence_mean": "", "token_mean": "", "constant_length": ", 7"}
    found = {name: length_weights(exact([4, 7]), name, 7).tolist() for name in names}
    (short, long), (same, _), (constant, _) = ([2 * weight for weight in pair] for pair in found.values())
    return [
        *(row(f"`{name}`{names[name]}", *(four(weight) for weight in pair)) for name, pair in found.items()),
        f"twice that: {four(short)} and {four(long)}, {four(same)}, {four(constant)}.",
    ]


@OBJECTIVES.claim
def advantages_of_some_groups() -> list[str]:
    demo = exact([[0.8, 0.3, 0.9, 0.2]])
    centred = [f"{advantage:.2f}" for advantage in group_advantages(demo, "mean")[0].tolist()]
    rows = []
    for rewards in ([1, 1, 0, 1, 0], [1, 0, 1, 0]):
        found = [group_advantages(exact([rewards]), mode) for mode in ("mean", "mean_std", "mean_population_std")]
        pairs = (f"{four(round(f.max().item(), 4))}, {four(round(f.min().item(), 4))}" for f in found)
        rows.append(row(", ".join(map(str, rewards)), *pairs))
    spread = exact([0.875, -0.625, 0.875, -1.125])
    nine_of_ten = exact([[1] * 9 + [0]])
    zero_one, both = (group_advantages(rewards, "mean")[0].tolist() for rewards in (nine_of_ten, 2 * nine_of_ten - 1))
    return [
        f"0.8, 0.3, 0.9 and 0.2 have the mean {demo.mean().item():.2f}",
        f"the advantages are {', '.join(centred[:3])} and {centred[3]}",
        *rows,
        row(
            "0.875, -0.625, 0.875, -1.125",
            "as they are",
            f"divided by {spread.std().item():.4f}",
            f"divided by {spread.std(correction=0).item():.4f}",
        ),
        f"the advantages are {zero_one[0]:.1f} and {zero_one[9]:.1f}",
        f"make of it {both[0]:.1f} and {both[9]:.1f}.",
    ]


@OBJECTIVES.claim
def groups_with_a_signal() -> list[str]:
    groups = ([1, 1, 1, 1], [-0.5, -0.5, -0.5, -0.5], [1, -0.5, -0.5, 0.5], [1, -0.5, 1, 1])
    rows = []
    for rewards in groups:
        shown = ", ".join(map(str, rewards))
        answer = "yes" if has_signal(exact([rewards])).item() else "no"
        rows.append(row(shown, f"{exact(rewards).mean().item():.3f}", answer))
    small, large = (torch.full((10,), reward).std().item() for reward in (0.1, 1.1))
    return [
        *rows,
        f"float32 rewards of 0.1 have a computed standard deviation of {small:.1e}, and ten of 1.1 one of {large:.1e},",
    ]


@OBJECTIVES.claim
def groups_without_a_signal() -> list[str]:
    probs = exact([1 / 125, 0.5, 0.9])
    found = no_signal_probability(probs, 10).tolist()
    return [
        row("probability of success", f"{probs[0].item():.3f}", "0.5", "0.9"),
        row("groups of 10 without a signal", *(four(chance) for chance in found)),
        f"{100 * found[0]:.0f} of 100 groups would be wasted",
    ]


@OBJECTIVES.claim
def loopholes_of_three_prompts() -> list[str]:
    words = {1: "one", 3: "three", 5: "five", 6: "six"}
    counts = [len(find_loopholes(prompt, 3)) for prompt in ([1, 1, 2], [2, 1, 2, 1])]
    assert find_loopholes([3, 0, 2], 5) == []
    return [
        f"{words[counts[0] + 1]} responses earn all 5 points: 1, 1, 2, and two that are wrong",
        f"{words[counts[1] + 1]} responses earn all 7, and {words[counts[1]]} of them are wrong",
    ]


@OBJECTIVES.claim
def rewards_before_and_after() -> list[str]:
    pairs = re.findall(r"^\| ([\d, ]+) \| ([\d, ]+) \| \d \| \d \|$", README, flags=re.MULTILINE)
    assert len(pairs) == 6
    rows = []
    for prompt, response in pairs:
        lists = [int(token) for token in prompt.split(", ")], [int(token) for token in response.split(", ")]
        before, after = sort_inclusion_ordering_reward(*lists), repaired_reward(*lists)
        rows.append(row(prompt, response, f"{before:.0f}", f"{after:.0f}"))
    return rows


@OBJECTIVES.claim
def gigabytes() -> list[str]:
    ppo, grpo = training_memory(8e9, "ppo"), training_memory(8e9, "grpo")
    frozen = Fraction(2) * 8
    trained = Fraction(ppo - grpo)
    assert ppo == 2 * trained + 2 * frozen
    return [
        row("a model that is trained", "16", "16", "64", f"{trained}"),
        row("a frozen model", f"{frozen}", "", "", f"{frozen}").replace("|  |  |", "| | |"),
        f"a reference and a reward model, {ppo:.0f} gigabytes; GRPO does without the critic, {grpo:.0f}.",
    ]


def digits(numbers: torch.Tensor, count: int) -> list[str]:
    return [f"{round(number, 10) + 0.0:.{count}f}" for number in numbers.reshape(-1).tolist()]


def rounded(numbers: torch.Tensor) -> list[str]:
    return digits(numbers, 4)


@NEWER.claim
def biases_of_three_actions() -> list[str]:
    wanted = expected_group_gradient(MOVED, COMPARED, 1, "none")
    ratios = (MOVED / POLICY).tolist()
    moved = ", ".join(f"{p:g}" for p in MOVED.tolist())
    said = [
        "Let the policy 0.5, 0.3, 0.2 have sampled",
        f"made it {moved}.",
        f"without their mean, {COMPARED[0]:.1f}, {COMPARED[1]:.1f} and {COMPARED[2]:.1f}",
        f"The ratios are {ratios[0]:.2f}, {ratios[1]:.2f} and {ratios[2]:.2f}",
        f"Wanted is {', '.join(rounded(wanted))},",
        "With $\\epsilon = 0.2$ three quarters of the first entry are gone",
    ]
    torch.testing.assert_close(EARNED - POLICY @ EARNED, COMPARED)
    biases = {
        pair: clipping_bias(MOVED, POLICY, COMPARED, *pair) for pair in itertools.product((0.2, 0.4), (0.2, 0.28))
    }
    rows = [row(f"{low:.2f}", f"{high:.2f}", ", ".join(digits(bias, 5))) for (low, high), bias in biases.items()]
    symmetric, higher = biases[0.2, 0.2], biases[0.2, 0.28]
    assert 0.7 < -float(symmetric[0] / wanted[0]) < 0.8
    assert float(wanted[2]) < 0 < float(wanted[2] + symmetric[2])
    assert float(symmetric[1]) > 0 > float(higher[1])
    return [*said, *rows]


@NEWER.claim
def groups_of_three_actions() -> list[str]:
    found = [kept_group_gradient(POLICY, EARNED, size) for size in (2, 3, 4)]
    every = [expected_group_gradient(POLICY, EARNED, size, "group_mean") for size in (2, 3, 4)]
    true = expected_group_gradient(POLICY, EARNED, 1, "none")
    _, kept = kept_group_gradient(POLICY, exact([1.0, 0.0, 0.0]), 3)
    return [
        row("kept", *(rounded(share)[0] for _, share in found)),
        row("first entry, all groups", *(rounded(gradient)[0] for gradient in every)),
        row("first entry, kept groups", *(rounded(gradient)[0] for gradient, _ in found)),
        f"of which the first entry is {rounded(true)[0]}",
        f"a group of three is kept with the probability {rounded(kept)[0]}",
    ]


@NEWER.claim
def factors_of_three_prompts() -> list[str]:
    chances = exact([0.05, 0.5, 0.9])
    same, any_prompt = dynamic_sampling_weights(chances, 8)
    return [
        row("probability of success", *(f"{p:g}" for p in chances.tolist())),
        row("a group is kept", *rounded(1 - no_signal_probability(chances, 8))),
        row("factor, filled by the same prompt", *rounded(same)),
        row("factor, filled by any prompt", *(rounded(any_prompt) * 3)),
    ]


@NEWER.claim
def ratios_of_responses() -> list[str]:
    found = [ratio_moments(NEW, POLICY, length) for length in (1, 2, 4, 8)]
    names = ("ratio of a token", "ratio of a response", "GSPO's ratio")
    one = float(found[0][1][0])
    assert round((1 + one) ** 100 - 1) == 867
    assert f"{(1 + one) ** 400:.0e}" == "6e+11"
    return [
        "be drawn from 0.5, 0.3, 0.2, and let the policy now be 0.6, 0.3, 0.1",
        *(row(f"variance, {name}", *(rounded(v[k])[0] for _, v in found)) for k, name in enumerate(names)),
        row("mean, GSPO's ratio", *(rounded(m[2])[0] for m, _ in found)),
        f"here {math.exp(-divergence(POLICY, NEW)):.4f}",
        "867 at 100 tokens, and $6 \\cdot 10^{11}$ at 400",
    ]


@pytest.mark.parametrize(
    ("text", "claim"),
    [pytest.param(text, claim, id=claim.__name__) for text in (FIRST, OBJECTIVES, NEWER) for claim in text.claims],
)
def test_numbers_in_text_are_computed(text: Text, claim: Callable[[], list[str]]) -> None:
    assert text.missing(claim) == []


@pytest.mark.parametrize("text", [FIRST, OBJECTIVES, NEWER])
def test_every_decimal_number_belongs_to_a_claim(text: Text) -> None:
    assert text.unclaimed() == []


def test_every_exercise_is_graded_by_a_function() -> None:
    rows = dict(re.findall(r"^\| (E\d+) \| [^|]+ \| ([^|]+) \|$", README, flags=re.MULTILINE))
    assert list(rows) == [f"E{number}" for number in range(1, 35)]
    known = {name for one in ("policy_gradient", "grpo_language_model") for name in find_assignment(KIT, one).functions}
    items = {item.id for item in find_assignment(KIT, "policy_gradient").items}
    assignments = {"policy_gradient", "grpo_language_model", "no_grad"}
    for where in rows.values():
        assert set(re.findall(r"`([^`]+)`", where)) <= known | items | assignments | set(ASSIGNMENT.functions), where
    named = set(re.findall(r"`([^`]+)`", " ".join(rows.values())))
    assert set(ASSIGNMENT.functions) <= named


def test_a_mistake_in_a_function_that_others_call_costs_once(sandbox: Sandbox) -> None:
    [sentence] = re.findall(r"Where one of yours calls (.*?) with", README, flags=re.DOTALL)
    called = set(re.findall(r"`(\w+)`", sentence))
    source = (ASSIGNMENT.folder / "right_answers" / "einsums.py").read_text(encoding="utf-8")
    wrong = "".join(f"\n\ndef {name}(*placed, **named):\n    return None\n" for name in called)
    grader = Grader.of(ASSIGNMENT, fixtures_of(ASSIGNMENT.name), counterexamples=False)
    report = grader.grade(Submission("ada", "ada.py", "", source + wrong), sandbox)
    assert {item.function for item in report.items if item.points < item.max_points} == called


@pytest.mark.long
def test_experiments_wait_for_the_functions_and_draw_every_picture(tmp_path: Path) -> None:
    folder = handout_of(ASSIGNMENT.name, tmp_path / ASSIGNMENT.name)

    def run() -> str:
        done = subprocess.run([sys.executable, "experiments.py"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run().count("is not complete yet") == 6
    shutil.copy(ASSIGNMENT.solution / "policy_gradient_theory.py", folder)
    run()
    pictures = {path.name for path in (folder / "pictures").iterdir()}
    assert pictures == {name for name in ASSIGNMENT.also if name.endswith(".png")} | {"your_example.png"}
