"""The theory lab's functions on newer methods: known closed forms, enumeration, their oracle and their text."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from all_assignments import generator_of
from places import KIT
from policy_gradient_theory import (
    clipped_objective,
    clipping_bias,
    dynamic_sampling_weights,
    expected_group_gradient,
    kept_group_gradient,
    no_signal_probability,
    ratio_moments,
)

from autograder.grading.assignments import find_assignment

ASSIGNMENT = find_assignment(KIT, "policy_gradient_theory")
README = (ASSIGNMENT.solution / "README.md").read_text(encoding="utf-8")
TEXT = " ".join(README.split("\n## Newer methods\n")[1].split("\n## Experiments\n")[0].split())
ORACLE = generator_of(ASSIGNMENT.name)["oracle"].newer_methods


def exact(numbers: Any) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


POLICY, EARNED = exact([0.5, 0.3, 0.2]), exact([8.0, 3.0, 1.0])
MOVED, COMPARED = exact([0.62, 0.25, 0.13]), exact([2.9, -2.1, -4.1])
NEW = exact([0.6, 0.3, 0.1])


def pairs_of_policies(count: int = 12) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Two policies of two to five actions, and numbers of both signs."""
    draws = torch.Generator().manual_seed(11)
    for number in range(count):
        old, change, numbers = torch.randn(3, 2 + number % 4, dtype=torch.float64, generator=draws)
        yield torch.softmax(old + change, dim=0), torch.softmax(old, dim=0), numbers


def divergence(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one * (one.log() - other.log())).sum())


# clipping_bias


def surrogate_gradient(
    probs: torch.Tensor, old: torch.Tensor, advantages: torch.Tensor, low: float, high: float
) -> torch.Tensor:
    """The gradient of the clipped objective as PPO writes it, by autograd, over all actions of the sampling policy."""
    logits = probs.log().requires_grad_()
    ratios = torch.softmax(logits, dim=0) / old
    objective = torch.minimum(ratios * advantages, ratios.clamp(1 - low, 1 + high) * advantages)
    (gradient,) = torch.autograd.grad((old * objective).sum(), logits)
    return gradient


def test_the_bias_is_what_autograd_finds_between_the_clipped_objective_and_the_expected_advantage() -> None:
    for probs, old, advantages in pairs_of_policies():
        for low, high in ((0.2, 0.2), (0.2, 0.28), (0.5, 0.1)):
            wanted = expected_group_gradient(probs, advantages, 1, "none")
            found = clipping_bias(probs, old, advantages, low, high)
            right = surrogate_gradient(probs, old, advantages, low, high) - wanted
            torch.testing.assert_close(found, right, atol=1e-12, rtol=0)


def test_clipping_adds_nothing_before_the_first_update_or_where_the_interval_holds_every_ratio() -> None:
    for probs, old, advantages in pairs_of_policies():
        unmoved = clipping_bias(old, old, advantages, 0.2, 0.2)
        assert float(unmoved.abs().max()) < 1e-15
        farthest = float((probs / old - 1).abs().max()) + 0.1
        assert float(clipping_bias(probs, old, advantages, farthest, farthest).abs().max()) < 1e-15


def test_a_higher_border_takes_away_what_good_actions_add_to_the_bias_and_leaves_what_bad_ones_do() -> None:
    symmetric, higher = (clipping_bias(MOVED, POLICY, COMPARED, 0.2, high) for high in (0.2, 0.28))
    bad_alone = clipping_bias(MOVED, POLICY, COMPARED.clamp(max=0.0), 0.2, 0.2)
    assert float((symmetric - higher).abs().max()) > 0.1
    torch.testing.assert_close(higher, bad_alone, atol=1e-15, rtol=0)


def test_the_slopes_are_those_of_the_clipped_objective() -> None:
    for probs, old, advantages in pairs_of_policies():
        _, slope = clipped_objective(probs / old, advantages, 0.3)
        scores = torch.eye(len(probs), dtype=torch.float64) - probs
        right = (old * slope - probs * advantages) @ scores
        torch.testing.assert_close(clipping_bias(probs, old, advantages, 0.3, 0.3), right, atol=1e-12, rtol=0)


# kept_group_gradient and dynamic_sampling_weights


@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_kept_groups_gradient_is_that_of_all_groups_over_the_probability_of_being_kept(size: int) -> None:
    for probs, _, rewards in pairs_of_policies(6):
        gradient, kept = kept_group_gradient(probs, rewards, size)
        right = expected_group_gradient(probs, rewards, size, "group_mean")
        torch.testing.assert_close(gradient * kept, right, atol=1e-12, rtol=0)
        assert float(kept) == pytest.approx(1 - float((probs**size).sum()), abs=1e-12)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_group_of_zeros_and_ones_is_kept_with_1_minus_the_chances_of_all_and_of_none(size: int) -> None:
    for p in (0.05, 0.3, 0.5, 0.9):
        _, kept = kept_group_gradient(exact([p, 1 - p]), exact([1.0, 0.0]), size)
        assert float(kept) == pytest.approx(1 - p**size - (1 - p) ** size, abs=1e-12)
        assert float(kept) == pytest.approx(1 - float(no_signal_probability(exact([p]), size)), abs=1e-12)


def test_the_factors_are_those_of_the_gradients_of_prompts_that_fill_the_batch_in_either_way() -> None:
    """A batch is enumerated: each prompt equally likely, each of its groups as likely as its draws, kept or not."""
    chances, size = exact([0.1, 0.4, 0.8]), 3
    same, any_prompt = dynamic_sampling_weights(chances, size)
    plain, filled, kept = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), 0.0
    for prompt, p in enumerate(chances.tolist()):
        for group in itertools.product((0.0, 1.0), repeat=size):
            likely = math.prod(p if one else 1 - p for one in group) / len(chances)
            mean = sum(group) / size
            estimate = sum((one - mean) * (one - p) for one in group) / size  # in the logit of success
            plain[prompt] += likely * estimate
            if len(set(group)) > 1:
                kept += likely
                filled[prompt] += likely * estimate
    torch.testing.assert_close(filled / kept, any_prompt * plain, atol=1e-12, rtol=0)
    for prompt, p in enumerate(chances.tolist()):
        gradient, _ = kept_group_gradient(exact([p, 1 - p]), exact([1.0, 0.0]), size)
        assert float(gradient[0]) == pytest.approx(float(same[prompt] * plain[prompt] * len(chances)), abs=1e-12)


# ratio_moments


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_variance_of_a_product_of_independent_ratios_is_a_power(length: int) -> None:
    for probs, old, _ in pairs_of_policies(8):
        one = float((probs**2 / old).sum()) - 1
        mean, variance = ratio_moments(probs, old, length)
        assert mean[:2].tolist() == pytest.approx([1.0, 1.0], abs=1e-12)
        assert variance[:2].tolist() == pytest.approx([one, (1 + one) ** length - 1], rel=1e-10, abs=1e-12)


def test_gspos_ratio_has_a_smaller_variance_and_a_mean_between_the_divergences_and_1() -> None:
    for probs, old, _ in pairs_of_policies(8):
        means = [ratio_moments(probs, old, length)[0][2] for length in (1, 2, 4, 6)]
        assert all(float(after) < float(before) for before, after in itertools.pairwise(means))
        assert float(means[-1]) > math.exp(-divergence(old, probs))
        _, variance = ratio_moments(probs, old, 4)
        assert float(variance[2]) < float(variance[0]) < float(variance[1])


# The oracle: plain enumeration finds what its closed forms say


def test_the_oracles_bias_is_a_sum_over_actions() -> None:
    for probs, old, advantages in pairs_of_policies(8):
        given = probs.numpy(), old.numpy(), advantages.numpy()
        bias = np.zeros(len(probs))
        for a, (p, q, advantage) in enumerate(zip(*given, strict=True)):
            stopped = p / q > 1.28 if advantage > 0 else p / q < 0.8
            slope = 0.0 if stopped else p / q * advantage
            for j in range(len(probs)):
                bias[j] += (q * slope - p * advantage) * ((a == j) - given[0][j])
        np.testing.assert_allclose(ORACLE.clipping_bias(*given, 0.2, 0.28), bias, atol=1e-12)


@pytest.mark.parametrize("rewards", [[2.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
def test_the_oracles_kept_groups_are_those_that_enumeration_finds(rewards: list[float]) -> None:
    probs = [0.5, 0.125, 0.375]
    kept, total = 0.0, np.zeros(3)
    for group in itertools.product(range(3), repeat=3):
        earned = [rewards[a] for a in group]
        if max(earned) > min(earned):
            likely = math.prod(probs[a] for a in group)
            kept += likely
            for a, r in zip(group, earned, strict=True):
                total += likely * (r - sum(earned) / 3) * (np.eye(3)[a] - probs) / 3
    gradient, share = ORACLE.kept_group_gradient(np.array(probs), np.array(rewards), 3)
    np.testing.assert_allclose(gradient, total / kept, atol=1e-12)
    assert float(share) == pytest.approx(kept, abs=1e-12)


def test_the_oracles_weights_are_one_over_what_no_signal_leaves() -> None:
    chances = np.array([0.1, 0.5, 0.95])
    kept = 1 - no_signal_probability(torch.tensor(chances), 6).numpy()
    same, any_prompt = ORACLE.dynamic_sampling_weights(chances, 6)
    np.testing.assert_allclose(same, 1 / kept, rtol=1e-12)
    assert float(any_prompt) == pytest.approx(3 / kept.sum(), rel=1e-12)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_the_oracles_moments_are_sums_over_all_responses(length: int) -> None:
    probs, old = [0.25, 0.125, 0.625], [0.5, 0.25, 0.25]
    seen = []
    for response in itertools.product(range(3), repeat=length):
        product = math.prod(probs[a] / old[a] for a in response)
        first = probs[response[0]] / old[response[0]]
        seen.append((math.prod(old[a] for a in response), first, product, product ** (1 / length)))
    means = [math.fsum(one[0] * one[k] for one in seen) for k in (1, 2, 3)]
    spreads = [math.fsum(one[0] * (one[k] - means[k - 1]) ** 2 for one in seen) for k in (1, 2, 3)]
    found = ORACLE.ratio_moments(np.array(probs), np.array(old), length)
    np.testing.assert_allclose(found, [means, spreads], atol=1e-12)


# The text: every number of the part is computed here


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def digits(numbers: torch.Tensor, count: int) -> list[str]:
    return [f"{round(number, 10) + 0.0:.{count}f}" for number in numbers.reshape(-1).tolist()]


def four(numbers: torch.Tensor) -> list[str]:
    return digits(numbers, 4)


def biases_of_three_actions() -> list[str]:
    wanted = expected_group_gradient(MOVED, COMPARED, 1, "none")
    ratios = (MOVED / POLICY).tolist()
    moved = ", ".join(f"{p:g}" for p in MOVED.tolist())
    said = [
        "Let the policy 0.5, 0.3, 0.2 have sampled",
        f"made it {moved}.",
        f"without their mean, {COMPARED[0]:.1f}, {COMPARED[1]:.1f} and {COMPARED[2]:.1f}",
        f"The ratios are {ratios[0]:.2f}, {ratios[1]:.2f} and {ratios[2]:.2f}",
        f"Wanted is {', '.join(four(wanted))},",
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


def groups_of_three_actions() -> list[str]:
    found = [kept_group_gradient(POLICY, EARNED, size) for size in (2, 3, 4)]
    every = [expected_group_gradient(POLICY, EARNED, size, "group_mean") for size in (2, 3, 4)]
    true = expected_group_gradient(POLICY, EARNED, 1, "none")
    _, kept = kept_group_gradient(POLICY, exact([1.0, 0.0, 0.0]), 3)
    return [
        row("kept", *(four(share)[0] for _, share in found)),
        row("first entry, all groups", *(four(gradient)[0] for gradient in every)),
        row("first entry, kept groups", *(four(gradient)[0] for gradient, _ in found)),
        f"of which the first entry is {four(true)[0]}",
        f"a group of three is kept with the probability {four(kept)[0]}",
    ]


def factors_of_three_prompts() -> list[str]:
    chances = exact([0.05, 0.5, 0.9])
    same, any_prompt = dynamic_sampling_weights(chances, 8)
    return [
        row("probability of success", *(f"{p:g}" for p in chances.tolist())),
        row("a group is kept", *four(1 - no_signal_probability(chances, 8))),
        row("factor, filled by the same prompt", *four(same)),
        row("factor, filled by any prompt", *(four(any_prompt) * 3)),
    ]


def ratios_of_responses() -> list[str]:
    found = [ratio_moments(NEW, POLICY, length) for length in (1, 2, 4, 8)]
    names = ("ratio of a token", "ratio of a response", "GSPO's ratio")
    one = float(found[0][1][0])
    assert round((1 + one) ** 100 - 1) == 867
    assert f"{(1 + one) ** 400:.0e}" == "6e+11"
    return [
        "be drawn from 0.5, 0.3, 0.2, and let the policy now be 0.6, 0.3, 0.1",
        *(row(f"variance, {name}", *(four(v[k])[0] for _, v in found)) for k, name in enumerate(names)),
        row("mean, GSPO's ratio", *(four(m[2])[0] for m, _ in found)),
        f"here {math.exp(-divergence(POLICY, NEW)):.4f}",
        "867 at 100 tokens, and $6 \\cdot 10^{11}$ at 400",
    ]


CLAIMS = (biases_of_three_actions, groups_of_three_actions, factors_of_three_prompts, ratios_of_responses)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_the_text_states_what_the_code_computes(claim: Callable[[], list[str]]) -> None:
    for phrase in claim():
        assert phrase in TEXT


def test_every_decimal_number_in_the_part_belongs_to_a_claim() -> None:
    rest = TEXT
    for phrase in sorted((phrase for claim in CLAIMS for phrase in claim()), key=len, reverse=True):
        rest = rest.replace(phrase, " ")
    assert re.findall(r"\S*\d\.\d\S*", rest) == []
