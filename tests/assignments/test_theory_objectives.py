"""The theory lab's functions on objectives and rewards: worked numbers, what must hold, their oracle and their text."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from broken_grpo import broken_grpo_loss
from grpo_language_model import compute_response_log_probs, grpo_loss
from grpo_language_model import group_advantages as advantages_of_groups
from lab import sort_inclusion_ordering_reward
from places import KIT
from policy_gradient import compute_loss
from policy_gradient_theory import (
    clipped_objective,
    find_loopholes,
    group_advantages,
    has_signal,
    importance_weights,
    length_weights,
    no_signal_probability,
    repaired_grpo_loss,
    repaired_reward,
    score_table,
    training_memory,
)
from sorting_task import sort_inclusion_ordering_reward as reward_of_the_task

from autograder.authoring.fixtures.generator import import_generator
from autograder.grading.assignments import find_assignment

ASSIGNMENT = find_assignment(KIT, "policy_gradient_theory")
README = (ASSIGNMENT.solution / "README.md").read_text(encoding="utf-8")
HALF = README.split("\n## Objectives and rewards\n")[1].split("\n## Newer methods\n")[0]
TEXT = " ".join(HALF.split())
GENERATOR = import_generator(ASSIGNMENT)
ORACLE = GENERATOR["oracle"].objectives
BY_SLUG = {mistake.slug: mistake for mistake in GENERATOR["mistakes"].MISTAKES}
RATIOS = [0.5, 0.7, 0.8, 1.0, 1.2, 1.5, 2.0]


def exact(numbers: Any) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def drawn(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


# Worked numbers


def test_e2_importance_weights_are_ratios_of_probabilities() -> None:
    weights = importance_weights(exact([[0.7, 0.1]]).log(), exact([[0.5, 0.3]]).log(), "token")
    torch.testing.assert_close(weights, exact([[1.4, 1 / 3]]))
    assert math.log(0.85) == pytest.approx(-0.162519, abs=5e-7)
    slope_of_the_logarithm = importance_weights(exact([[0.0]]), exact([[0.3]]).log(), "token")
    assert slope_of_the_logarithm.item() == pytest.approx(3.3333, abs=5e-5)


@pytest.mark.parametrize(
    ("advantage", "objective", "slope"),
    [
        (1.0, [0.5, 0.7, 0.8, 1.0, 1.2, 1.2, 1.2], [0.5, 0.7, 0.8, 1.0, 1.2, 0.0, 0.0]),
        (-1.0, [-0.8, -0.8, -0.8, -1.0, -1.2, -1.5, -2.0], [0.0, 0.0, -0.8, -1.0, -1.2, -1.5, -2.0]),
    ],
)
def test_e3_the_clip_table_for_both_signs(advantage: float, objective: list[float], slope: list[float]) -> None:
    found = clipped_objective(exact(RATIOS), torch.full((7,), advantage, dtype=torch.float64), 0.2)
    for part, right in zip(found, (objective, slope), strict=True):
        torch.testing.assert_close(part, exact(right), atol=1e-15, rtol=0)


def uniform_success() -> torch.Tensor:
    """How likely a policy that writes three of five tokens at random is to write the sorted prompt."""
    responses = list(itertools.product(range(5), repeat=3))
    return exact([responses.count((0, 1, 2)) / len(responses)])


def test_e8_the_worked_loopholes() -> None:
    assert sorted(find_loopholes([1, 1, 2], 3)) == [[0, 1, 2], [1, 2, 2]]
    assert len(find_loopholes([2, 1, 2, 1], 3)) == 5
    assert find_loopholes([3, 0, 2], 5) == []


def test_e9_the_share_of_groups_in_which_nobody_sorts() -> None:
    assert uniform_success().item() == 1 / 125
    assert no_signal_probability(uniform_success(), 10).item() == pytest.approx(0.92282, abs=5e-6)


def test_e10_advantages_divided_by_the_sample_standard_deviation() -> None:
    rewards = exact([[0.875, -0.625, 0.875, -1.125]])
    assert rewards.std().item() == pytest.approx(1.0307764, abs=5e-8)
    torch.testing.assert_close(group_advantages(rewards, "mean_std"), rewards / (rewards.std() + 1e-5))


def test_e13_and_e14_the_simulated_step_is_a_sum_of_minus_advantage_times_log_prob() -> None:
    advantages, log_probs = exact([[0.875, -0.625, 0.875, -1.125]]), exact([[[-3.8], [-4.675], [-3.075], [-5.525]]])
    contributions = -(advantages.unsqueeze(-1) * log_probs).flatten()
    torch.testing.assert_close(contributions, exact([3.325, -2.921875, 2.690625, -6.215625]))
    loss = compute_loss(log_probs, advantages, "naive")
    assert 4 * loss.item() == pytest.approx(-3.121875, abs=1e-12)
    halves = compute_loss(exact([[[-15.0], [-15.0]]]), exact([[0.5, -0.5]]), "naive")
    assert halves.item() == 0
    assert compute_loss(exact([[[-15.0]]]), exact([[0.5]]), "naive").item() / 4 == 1.875


class Table(torch.nn.Module):
    """A model that says the same logits at each position, whatever it reads."""

    def __init__(self, logits: torch.Tensor) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, **ignored: Any) -> Any:
        return self


def test_e16_three_prompt_tokens_and_three_of_the_response_are_scored_by_the_logits_2_to_5() -> None:
    chosen = exact([-0.2, -0.3, -0.4])  # the notebook's table: its rows do not sum to 1, so complete them
    probs = torch.full((1, 6, 2), 0.5, dtype=torch.float64)
    probs[0, 2:5] = torch.stack([chosen.exp(), 1 - chosen.exp()], dim=-1)
    ids, mask = torch.tensor([[1, 1, 1, 0, 0, 0]]), torch.ones(1, 6, dtype=torch.int64)
    scored = compute_response_log_probs(Table(probs.log()), ids, mask, 3)
    assert scored.item() == pytest.approx(-0.9, abs=1e-12)
    assert scored.exp().item() == pytest.approx(0.4065697, abs=5e-8)


def test_e17_two_of_the_four_groups_have_a_signal() -> None:
    groups = exact([[1, 1, 1, 1], [-0.5, -0.5, -0.5, -0.5], [1, -0.5, -0.5, 0.5], [1, -0.5, 1, 1]])
    assert groups.mean(dim=-1).tolist() == [1, -0.5, 0.125, 0.625]
    assert has_signal(groups).tolist() == [False, False, True, True]


@pytest.mark.parametrize("reward", [1.1, 2.3, 0.1, 1000.3])
def test_e17_ten_equal_float32_rewards_are_no_signal_and_their_last_bit_is_one(reward: float) -> None:
    same = torch.full((1, 10), reward)
    assert has_signal(same).tolist() == [False]
    same[0, 4] = torch.nextafter(same[0, 4], torch.tensor(1e6))
    assert has_signal(same).tolist() == [True]


def test_e18_the_mean_of_a_group_as_its_baseline() -> None:
    found = group_advantages(exact([[0.8, 0.3, 0.9, 0.2]]), "mean")
    torch.testing.assert_close(found, exact([[0.25, -0.25, 0.35, -0.35]]))


@pytest.mark.parametrize(
    ("mode", "of_five", "of_four"),
    [
        ("mean_std", (0.7302834, -1.0954251), 0.8660104),
        ("mean_population_std", (0.8164966 - 1.67e-5, -1.2247449 + 2.50e-5), 1.0 - 2.0e-5),
    ],
)
def test_e19_group_normalisation(mode: str, of_five: tuple[float, float], of_four: float) -> None:
    right, wrong = of_five
    found = group_advantages(exact([[1, 1, 0, 1, 0]]), mode)
    torch.testing.assert_close(found, exact([[right, right, wrong, right, wrong]]), atol=1e-7, rtol=0)
    found = group_advantages(exact([[1, 0, 1, 0]]), mode)
    torch.testing.assert_close(found, exact([[of_four, -of_four, of_four, -of_four]]), atol=1e-7, rtol=0)


def test_e23_the_memory_of_models_of_eight_billion_parameters() -> None:
    assert training_memory(8e9, "ppo") - training_memory(8e9, "grpo") == 96  # the critic
    assert (training_memory(8e9, "ppo"), training_memory(8e9, "grpo")) == (224, 128)


def test_e26_sequence_weights_are_exact_and_token_weights_are_not() -> None:
    draws = 0.8 * drawn(5, 2, 2, 3)
    new, old = torch.log_softmax(draws, dim=-1)  # two positions, three tokens
    rewards, scores = drawn(6, 3, 3), score_table(new[0].exp())
    right, by_sequence, by_token = (torch.zeros(3, dtype=torch.float64) for _ in range(3))
    for response in itertools.product(range(3), repeat=2):
        sampled = torch.tensor([list(response)])
        of_new, of_old = (p.gather(1, sampled.T).T for p in (new, old))
        estimate = rewards[response] * scores[response[0]]
        right += of_new.sum().exp() * estimate
        by_sequence += of_old.sum().exp() * importance_weights(of_new, of_old, "sequence") * estimate
        by_token += of_old.sum().exp() * importance_weights(of_new, of_old, "token")[0, 0] * estimate
    torch.testing.assert_close(by_sequence, right, atol=1e-12, rtol=0)
    assert (by_token - right).abs().max() > 0.01


@pytest.mark.parametrize(
    ("normalization", "short", "long"),
    [("sequence_mean", 0.25, 1 / 7), ("token_mean", 2 / 11, 2 / 11), ("constant_length", 1 / 7, 1 / 7)],
)
def test_e28_what_a_token_of_two_responses_counts_with_advantage_2(
    normalization: str, short: float, long: float
) -> None:
    lengths = exact([4, 7])
    torch.testing.assert_close(2 * length_weights(lengths, normalization, 7), exact([short, long]))
    log_probs = torch.zeros(2, 7, dtype=torch.float64, requires_grad=True)
    mask = (torch.arange(7) < lengths[:, None]).long()
    grpo_loss(log_probs, torch.zeros(2, 7), exact([2, 2]), mask, normalization=normalization, max_length=7).backward()
    assert log_probs.grad is not None
    torch.testing.assert_close(-log_probs.grad[:, 0], exact([short, long]))


def test_e29_minus_one_for_wrong_answers_doubles_centred_advantages_and_leaves_normalised_ones() -> None:
    zero_one = exact([[1] * 9 + [0]])
    torch.testing.assert_close(group_advantages(zero_one, "mean")[0, [0, 9]], exact([0.1, -0.9]))
    both = 2 * zero_one - 1
    torch.testing.assert_close(group_advantages(both, "mean"), 2 * group_advantages(zero_one, "mean"))
    normalised = [group_advantages(rewards, "mean_std") for rewards in (both, zero_one)]
    torch.testing.assert_close(*normalised, atol=1e-4, rtol=0)


# What must hold


def test_the_slope_is_the_derivative_in_the_log_probability() -> None:
    ratios, advantages = drawn(1, 200).exp(), drawn(2, 200)
    log_ratios = ratios.log().requires_grad_()
    objective, _ = clipped_objective(log_ratios.exp(), advantages, 0.3)
    (right,) = torch.autograd.grad(objective.sum(), log_ratios)
    torch.testing.assert_close(clipped_objective(ratios, advantages, 0.3)[1], right)


def test_all_tokens_of_a_batch_count_1_together_in_a_mean() -> None:
    lengths = exact([3, 1, 8, 20])
    for normalization in ("token_mean", "sequence_mean"):
        assert (lengths * length_weights(lengths, normalization)).sum().item() == pytest.approx(1, abs=1e-12)
    longest = exact([20.0] * 4)
    for normalization in ("token_mean", "sequence_mean", "constant_length"):
        torch.testing.assert_close(length_weights(longest, normalization, 20), torch.full((4,), 1 / 80).double())


def test_advantages_agree_with_those_of_the_language_model() -> None:
    rewards = drawn(3, 4, 6)
    for mode in ("mean", "mean_std"):
        torch.testing.assert_close(group_advantages(rewards, mode), advantages_of_groups(rewards, mode))


def test_a_group_of_zeros_and_ones_teaches_nothing_as_often_as_enumeration_says() -> None:
    p = exact([0.0, 0.125, 0.5, 0.75, 1.0])
    for size in (2, 3, 5):
        groups = exact(list(itertools.product((0.0, 1.0), repeat=size)))
        chances = torch.where(groups == 1, p[:, None, None], 1 - p[:, None, None]).prod(dim=-1)
        right = (chances * ~has_signal(groups)).sum(dim=-1)
        torch.testing.assert_close(no_signal_probability(p, size), right, atol=1e-12, rtol=0)


def test_the_given_reward_is_that_of_the_sorting_task() -> None:
    for prompt, response in itertools.product(itertools.product(range(3), repeat=3), repeat=2):
        pair = list(prompt), list(response)
        assert sort_inclusion_ordering_reward(*pair) == reward_of_the_task(*pair)


def prompts() -> Iterator[list[int]]:
    for length in (1, 2, 3, 4):
        yield from (list(tokens) for tokens in itertools.product(range(3), repeat=length))


def test_every_loophole_earns_the_most_and_only_repetitions_open_one() -> None:
    for prompt in prompts():
        found = find_loopholes(prompt, 4)
        assert all(sort_inclusion_ordering_reward(prompt, r) == 2 * len(prompt) - 1 for r in found)
        assert sorted(prompt) not in found
        assert bool(found) == (len(set(prompt)) < len(prompt))


def test_the_repaired_reward_is_earned_in_full_by_the_sorted_prompt_alone() -> None:
    for prompt in prompts():
        responses = [list(tokens) for tokens in itertools.product(range(4), repeat=len(prompt))]
        best = [r for r in responses if repaired_reward(prompt, r) == 2 * len(prompt) - 1]
        assert best == [sorted(prompt)]
        assert all(repaired_reward(prompt, r) <= sort_inclusion_ordering_reward(prompt, r) for r in responses)


def losses(seed: int) -> dict[str, Any]:
    log_probs, old, ref = 0.4 * drawn(seed, 3, 2, 5, 4) - 1.5
    rewards = drawn(seed + 1, 2, 5)
    return {
        "log_probs": log_probs,
        "old_log_probs": old,
        "ref_log_probs": ref,
        "rewards": rewards,
        "epsilon": 0.2,
        "kl_coefficient": 0.5,
    }


def test_e31_the_repaired_loss_is_that_of_the_language_model() -> None:
    given = losses(11)
    flat = {name: tensor.flatten(0, 1) for name, tensor in given.items() if name.endswith("log_probs")}
    right = grpo_loss(
        **flat,
        advantages=advantages_of_groups(given["rewards"]).flatten(),
        mask=torch.ones(10, 4).long(),
        epsilon=0.2,
        kl_coefficient=0.5,
    )
    torch.testing.assert_close(repaired_grpo_loss(**given), right)


def test_where_all_three_policies_are_the_same_the_loss_is_0_and_its_gradient_is_not() -> None:
    given = losses(13)
    leaf = given["log_probs"].requires_grad_()
    loss = repaired_grpo_loss(**{**given, "old_log_probs": leaf, "ref_log_probs": leaf})
    assert abs(loss.item()) < 1e-15
    (gradient,) = torch.autograd.grad(loss, leaf)
    advantages = group_advantages(given["rewards"], "mean_std")[..., None]
    torch.testing.assert_close(gradient, (-advantages / leaf.numel()).expand_as(leaf))


def test_e30_the_broken_penalty_has_a_value_and_no_gradient() -> None:
    given = losses(17)
    leaf = given["log_probs"].requires_grad_()
    gradients = [
        torch.autograd.grad(broken_grpo_loss(**{**given, "kl_coefficient": weight}), leaf)[0] for weight in (0.0, 5.0)
    ]
    torch.testing.assert_close(*gradients)
    assert broken_grpo_loss(**{**given, "kl_coefficient": 5.0}) != broken_grpo_loss(**{**given, "kl_coefficient": 0.0})


def test_the_broken_loss_is_the_repaired_one_with_all_seven_faults() -> None:
    names: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor, "EPS": 1e-5}
    exec(BY_SLUG["as-it-was-given"].source, names)
    given = losses(19)
    leaf = given["log_probs"].requires_grad_()
    given["old_log_probs"] = 0.75 * leaf - 0.125
    found = [loss(**given) for loss in (names["repaired_grpo_loss"], broken_grpo_loss)]
    torch.testing.assert_close(*found)
    gradients = [torch.autograd.grad(loss, leaf, retain_graph=True)[0] for loss in found]
    torch.testing.assert_close(*gradients)


def test_the_faults_that_no_printed_loss_shows_change_the_gradient_alone() -> None:
    for slug in ("old-not-frozen", "penalty-without-gradient", "reference-not-frozen"):
        names: dict[str, Any] = {"torch": torch, "Tensor": torch.Tensor, "EPS": 1e-5}
        exec(BY_SLUG[slug].source, names)
        given = losses(23)
        leaf = given["log_probs"].requires_grad_()
        given |= {"old_log_probs": 0.75 * leaf - 0.125, "ref_log_probs": 0.5 * leaf - 0.5}
        found = [loss(**given) for loss in (names["repaired_grpo_loss"], repaired_grpo_loss)]
        torch.testing.assert_close(*found)
        wrong, right = (torch.autograd.grad(loss, leaf, retain_graph=True)[0] for loss in found)
        assert (wrong - right).abs().max() > 1e-3, slug


# The oracle


def test_the_oracles_gradient_of_the_loss_is_its_slope() -> None:
    given = {name: entry.numpy() if isinstance(entry, torch.Tensor) else entry for name, entry in losses(29).items()}
    arguments = list(given.values())
    _, gradient = ORACLE.repaired_grpo_loss(*arguments)
    for place in np.ndindex(*gradient.shape):
        step = np.zeros_like(gradient)
        step[place] = 1e-6
        up, down = (ORACLE.repaired_loss_alone(arguments[0] + move, *arguments[1:]) for move in (step, -step))
        assert gradient[place] == pytest.approx((up - down) / 2e-6, abs=1e-8)


def test_the_oracles_loopholes_are_what_trying_every_response_finds() -> None:
    for prompt in prompts():
        assert ORACLE.find_loopholes(prompt, 4) == sorted(find_loopholes(prompt, 4))


# The text: every number in the second half is computed here


def row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def four(number: float) -> str:
    return f"{number + 0.0:.4f}"


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


def the_clip_table() -> list[str]:
    rows = [row("ratio", *(f"{ratio:.1f}" for ratio in RATIOS)), r"$\epsilon = 0.2$"]
    for advantage in (1, -1):
        found = clipped_objective(exact(RATIOS), torch.full((7,), float(advantage), dtype=torch.float64), 0.2)
        for name, part in zip(("objective", "slope"), found, strict=True):
            rows.append(row(f"{name}, A = {advantage}", *(f"{number + 0.0:.1f}" for number in part.tolist())))
    return rows


def weights_of_two_lengths() -> list[str]:
    names = {"sequence_mean": "", "token_mean": "", "constant_length": ", 7"}
    found = {name: length_weights(exact([4, 7]), name, 7).tolist() for name in names}
    (short, long), (same, _), (constant, _) = ([2 * weight for weight in pair] for pair in found.values())
    return [
        *(row(f"`{name}`{names[name]}", *(four(weight) for weight in pair)) for name, pair in found.items()),
        f"twice that: {four(short)} and {four(long)}, {four(same)}, {four(constant)}.",
    ]


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


def groups_without_a_signal() -> list[str]:
    probs = exact([1 / 125, 0.5, 0.9])
    found = no_signal_probability(probs, 10).tolist()
    return [
        row("probability of success", f"{probs[0].item():.3f}", "0.5", "0.9"),
        row("groups of 10 without a signal", *(four(chance) for chance in found)),
        f"{100 * found[0]:.0f} of 100 groups would be wasted",
    ]


def loopholes_of_three_prompts() -> list[str]:
    words = {1: "one", 3: "three", 5: "five", 6: "six"}
    counts = [len(find_loopholes(prompt, 3)) for prompt in ([1, 1, 2], [2, 1, 2, 1])]
    assert find_loopholes([3, 0, 2], 5) == []
    return [
        f"{words[counts[0] + 1]} responses earn all 5 points: 1, 1, 2, and two that are wrong",
        f"{words[counts[1] + 1]} responses earn all 7, and {words[counts[1]]} of them are wrong",
    ]


def rewards_before_and_after() -> list[str]:
    pairs = re.findall(r"^\| ([\d, ]+) \| ([\d, ]+) \| \d \| \d \|$", HALF, flags=re.MULTILINE)
    assert len(pairs) == 6
    rows = []
    for prompt, response in pairs:
        lists = [int(token) for token in prompt.split(", ")], [int(token) for token in response.split(", ")]
        before, after = sort_inclusion_ordering_reward(*lists), repaired_reward(*lists)
        rows.append(row(prompt, response, f"{before:.0f}", f"{after:.0f}"))
    return rows


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


CLAIMS = (
    weights_of_two_tokens,
    two_tokens_that_must_both_be_right,
    the_clip_table,
    weights_of_two_lengths,
    advantages_of_some_groups,
    groups_with_a_signal,
    groups_without_a_signal,
    loopholes_of_three_prompts,
    rewards_before_and_after,
    gigabytes,
)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
def test_the_text_states_what_the_code_computes(claim: Callable[[], list[str]]) -> None:
    for phrase in claim():
        assert phrase in TEXT


def test_every_decimal_number_in_the_second_half_belongs_to_a_claim() -> None:
    rest = TEXT
    for phrase in sorted((phrase for claim in CLAIMS for phrase in claim()), key=len, reverse=True):
        rest = rest.replace(phrase, " ")
    assert re.findall(r"\S*\d\.\d\S*", rest) == []


def test_the_text_counts_the_lines_and_faults_of_the_broken_file() -> None:
    source = (ASSIGNMENT.solution / "broken_grpo.py").read_text()
    body = source.split('"""\n')[-1].strip().splitlines()
    assert len(body) == 8
    assert "a loss of eight lines with seven faults" in TEXT
    assert "A GRPO loss with seven faults." in source
    assert len(import_generator(ASSIGNMENT)["mistakes"].repair.FAULTS) == 7
