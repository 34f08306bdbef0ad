"""Every number that the assignment text states is computed here, and the text states no other decimal number.

Each claim function computes numbers with the solution, numpy or plain enumeration, and returns the phrases of
the text that hold them, numbers filled in. A phrase is a whole table row, or enough of a sentence to say what
the number is.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import policy_gradient
import pytest
import torch
from claims import Text, row
from lengths import in_short
from sorting_task import DEFAULT_PROMPTS, generate_responses, sort_distance_reward, sort_inclusion_ordering_reward

SOLUTION = Path(policy_gradient.__file__).parent
README = (SOLUTION / "README.md").read_text(encoding="utf-8")
TEXT = Text(re.sub(r"<!-- points:begin -->.*<!-- points:end -->", "", README, flags=re.DOTALL))
DELTAS_MODES = ("rewards", "centered_rewards", "normalized_rewards", "max_rewards")
LOSS_MODES = ("naive", "unclipped", "clipped")
SEEDS = range(20)

Train = Callable[..., "TrainedRun"]  # noqa: F821 (the fixture of conftest.py)


def variance(values: np.ndarray, probs: np.ndarray) -> float:
    mean = float(values @ probs)
    return float(((values - mean) ** 2) @ probs)


# The claims


@TEXT.claim
def rewards_of_the_worked_example(train: Train) -> list[str]:
    prompt = [3, 1, 0, 2]
    phrases = []
    for response in ([0, 1, 2, 3], [7, 2, 2, 5], [0, 3, 1, 2]):
        distance = sort_distance_reward(prompt, response)
        total = sort_inclusion_ordering_reward(prompt, response)
        found = sum(token in response for token in prompt)
        phrases.append(row(f"`{response}`", f"{distance:g}", f"{found} + {total - found:g} = {total:g}"))
    return phrases


@TEXT.claim
def rewards_that_are_sparse_or_have_loopholes(train: Train) -> list[str]:
    responses = [list(r) for r in itertools.product(range(5), repeat=3)]
    (one_in,) = {len(responses) / sum(r == sorted(p) for r in responses) for p in DEFAULT_PROMPTS}
    all_miss = (1 - 1 / one_in) ** 10
    uniform = np.mean([sort_inclusion_ordering_reward(p, r) for p in DEFAULT_PROMPTS for r in responses])
    (greatest,) = {max(sort_inclusion_ordering_reward(p, r) for r in responses) for p in DEFAULT_PROMPTS}

    few = [list(r) for r in itertools.product(range(3), repeat=3)]
    earned = [sort_inclusion_ordering_reward([1, 1, 2], r) for r in few]
    best = [r for r, reward in zip(few, earned, strict=True) if reward == max(earned)]
    unsorted = [r for r in best if r != [1, 1, 2]]
    return [
        f"with probability $1/{one_in:.0f}$, and ten responses to a prompt all miss it with probability {all_miss:.3f}",
        f"the greatest mean reward is {greatest:.0f}, and a uniform policy earns {uniform:.3f}",
        f"the greatest possible reward, {greatest:.0f}",
        f"{len(best)} earn the greatest inclusion and ordering reward, and {len(unsorted)} of them are not",
        f"summing over all {len(responses)} responses to each prompt",
    ]


@TEXT.claim
def spread_of_rewards_and_deltas(train: Train) -> list[str]:
    rewards = torch.tensor([[11.0, 9.0], [0.0, 2.0]], dtype=torch.float64)
    raw = rewards.flatten().numpy()
    centered = policy_gradient.compute_deltas(rewards, "centered_rewards").flatten().numpy()
    phrases = [
        row(", ".join(f"{value:g}" for value in values), f"{values.std(ddof=1):.3f}", f"{values.var(ddof=1):.3f}")
        for values in (raw, centered)
    ]
    return [
        *phrases,
        f"The numbers {raw.std(ddof=1):.3f} and {centered.std(ddof=1):.3f} are often called variances",
        f"the variance falls from {raw.var(ddof=1):.3f} to {centered.var(ddof=1):.3f}",
        f"Dividing by the number of values gives {raw.std():.3f} and {centered.std():.3f}, "
        f"and variances {raw.var():.3f} and {centered.var():.3f}",
    ]


@TEXT.claim
def variance_of_the_gradient(train: Train) -> list[str]:
    half = np.array([0.5, 0.5])
    first, second = np.array([11.0, 9.0]), np.array([0.0, 2.0])

    def estimates(rewards: np.ndarray, probs: np.ndarray, baseline: float) -> np.ndarray:
        score = np.array([1.0, 0.0]) - probs[0]  # derivative of log softmax with respect to the first logit
        return (rewards - baseline) * score

    rare = np.array([0.1, 0.9])
    expected = float(second @ rare)
    score = estimates(np.ones(2), rare, 0.0)
    best = float((score**2 * second) @ rare / ((score**2) @ rare))
    spreads = [variance(estimates(second, rare, b), rare) for b in (0.0, expected, best)]
    assert spreads[2] == pytest.approx(0.0, abs=1e-15)
    before = [variance(estimates(r, half, 0.0), half) for r in (first, second)]
    after = [variance(estimates(r, half, float(r.mean())), half) for r in (first, second)]
    means = [float(estimates(r, half, float(r.mean())) @ half) for r in (first, second)]
    assert means == [float(estimates(r, half, 0.0) @ half) for r in (first, second)]
    return [
        f"With the baselines $b = {first.mean():g}$ and $b = {second.mean():g}$",
        f"the variance from {before[0]:.2f} to {after[0]:.2f} on the first prompt "
        f"and from {before[1]:.2f} to {after[1]:.2f} on the second",
        f"the means stay at {means[0]:.2f} and {means[1]:.2f}",
        f"let the first response have probability {rare[0]:g}. The expected reward is then {expected:.1f}",
        f"the variance of the same derivative is {spreads[0]:.4f}; "
        f"with the expected reward as baseline it is {spreads[1]:.4f}; "
        f"with the best baseline, {best:.1f}, it is 0.",
    ]


@TEXT.claim
def shrinking_by_the_group_mean(train: Train) -> list[str]:
    probs, rewards = np.array([0.3, 0.5, 0.2]), np.array([4.0, 1.0, 2.0])
    scores = np.eye(3) - probs  # row a: gradient of log softmax, for response a
    truth = (probs * rewards) @ scores
    for size in (2, 3, 4):
        expected = np.zeros(3)
        for group in itertools.product(range(3), repeat=size):
            deltas = rewards[list(group)] - rewards[list(group)].mean()
            expected += probs[list(group)].prod() * (deltas @ scores[list(group)]) / size
        np.testing.assert_allclose(expected, truth * (size - 1) / size, atol=1e-12)
    return [f"by exactly $(G - 1)/G$: {9 / 10:g} for $G = 10$"]


@TEXT.claim
def deltas_of_one_group(train: Train) -> list[str]:
    values = [4, 1, 4, 3]
    group = torch.tensor([values], dtype=torch.float64)
    formats = {"normalized_rewards": "z.4f"}
    phrases = [
        row(f"`{mode}`", ", ".join(f"{delta:{formats.get(mode, 'g')}}" for delta in deltas))
        for mode in DELTAS_MODES
        for deltas in policy_gradient.compute_deltas(group, mode).tolist()
    ]
    other = (values[0] - np.mean(values)) / (np.std(values) + policy_gradient.EPS)
    worst = policy_gradient.compute_deltas(torch.tensor([[-1.0, -2.0, -3.0]]), "max_rewards")[0].tolist()
    return [
        *phrases,
        f"For one group with rewards {', '.join(map(str, values))}:",
        f"With the other divisor, $G$, the normalized deltas would start with {other:.4f}.",
        f"Rewards -1, -2, -3 become {', '.join(f'{delta:g}' for delta in worst)}",
    ]


@TEXT.claim
def derivatives_of_the_ratio(train: Train) -> list[str]:
    def derivative(ratio: Callable[[torch.Tensor], torch.Tensor]) -> str:
        weight = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        value = ratio(torch.sigmoid(weight))
        assert value.item() == 1
        value.backward()
        assert weight.grad is not None
        return f"{weight.grad.item():.4f}"

    old = r"\pi_{\mathrm{old}}"
    return [
        f"at $w = 2$, so $\\pi_w = {1 / (1 + math.exp(-2)):.4f}$",
        row(r"$\pi_w / \pi_w$, the denominator not frozen", "1", derivative(lambda p: p / p)),
        row(rf"$\pi_w / {old}$, the denominator frozen", "1", derivative(lambda p: p / p.detach())),
        row(
            rf"$\log \pi_w / \log {old}$, the denominator frozen", "1", derivative(lambda p: p.log() / p.detach().log())
        ),
    ]


@TEXT.claim
def table_of_clipping(train: Train) -> list[str]:
    ratios = [0.5, 0.7, 0.9, 1.0, 1.1, 1.5, 2.0]
    phrases = [r"For $\epsilon = 0.2$, with the slope", row(r"$\rho$", *map(str, ratios))]
    for delta in (1.0, -1.0):
        objectives, slopes = [], []
        for ratio in ratios:
            log_probs = torch.tensor([[[math.log(ratio)]]], dtype=torch.float64, requires_grad=True)
            deltas, old = torch.tensor([[delta]], dtype=torch.float64), torch.zeros(1, 1, 1).double()
            loss = policy_gradient.compute_loss(log_probs, deltas, "clipped", old, epsilon=0.2)
            loss.backward()
            assert log_probs.grad is not None
            objectives.append(f"{-loss.item():.1f}")
            slopes.append(f"{-log_probs.grad.item():z.1f}")
        phrases.append(row(f"objective, $\\delta = {delta:g}$", *objectives))
        phrases.append(row(f"slope, $\\delta = {delta:g}$", *slopes))
    return phrases


@TEXT.claim
def ratios_at_the_tenth_inner_step(train: Train) -> list[str]:
    def ratios(loss_mode: str) -> torch.Tensor:
        """The first epoch again, up to the policy that its tenth inner step sees."""
        options = {"deltas_mode": "centered_rewards", "loss_mode": loss_mode, "progress": False}
        old = policy_gradient.run_policy_gradient(**options, num_epochs=0).model
        prompts = torch.tensor(DEFAULT_PROMPTS)
        responses = generate_responses(prompts, old, 10)  # the generator is where the first epoch finds it
        new = policy_gradient.run_policy_gradient(**options, num_epochs=1, num_steps_per_epoch=9).model
        with torch.no_grad():
            new_log_probs, old_log_probs = (
                policy_gradient.compute_log_probs(prompts, responses, model) for model in (new, old)
            )
        return torch.exp(new_log_probs - old_log_probs)

    clipped, unclipped = ((ratios(loss_mode) - 1).abs() for loss_mode in ("clipped", "unclipped"))
    outside = 100 * (clipped > 0.2).double().mean().item()
    return [
        r"(seed 5, centered rewards, $\epsilon = 0.2$)",
        f"the ratio furthest from 1 is off by {clipped.max():.2f}, and {outside:.0f} % of the tokens",
        f"Without clipping the furthest is off by {unclipped.max():.2f}.",
    ]


@TEXT.claim
def estimates_of_the_divergence(train: Train) -> list[str]:
    policy, reference = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    x = np.log(reference / policy)
    k3 = np.array(
        [
            policy_gradient.compute_kl_penalty(torch.tensor([[[a]]]), torch.tensor([[[b]]])).item()
            for a, b in zip(np.log(policy), np.log(reference), strict=True)
        ]
    )
    divergence = float(-x @ policy)
    probs = [", ".join(map(str, distribution)) for distribution in (policy, reference)]
    phrases = [
        row(
            f"$k_{number}$",
            f"{values @ policy:.4f}",
            f"{math.sqrt(variance(values, policy)):.4f}",
            f"{values.min():.4f}",
        )
        for number, values in ((1, -x), (2, x**2 / 2), (3, k3))
    ]
    scores = np.eye(3) - policy
    gradient_of_k3 = (policy * (1 - np.exp(x))) @ scores
    gradient_of_kl = (policy * -x) @ scores
    np.testing.assert_allclose(gradient_of_k3, policy - reference, atol=1e-12)
    np.testing.assert_allclose(policy @ scores, 0, atol=1e-12)  # on average, the gradient of k1

    def vector(values: np.ndarray) -> str:
        return "(" + ", ".join(f"{value:.4f}" for value in values) + ")"

    return [
        rf"For $\pi_\theta = ({probs[0]})$ and $\pi_{{\mathrm{{ref}}}} = ({probs[1]})$, "
        f"where the divergence is {divergence:.4f}:",
        *phrases,
        f"that is {vector(gradient_of_k3)}, whereas",
        f"is {vector(gradient_of_kl)}. Both pull",
    ]


@TEXT.claim
def first_records(train: Train) -> list[str]:
    first = {mode: train(mode).run.records[0] for mode in DELTAS_MODES}
    (reward,) = {record.mean_reward for record in first.values()}
    return [
        f"the first mean reward is {reward:.4f}, "
        f"and the first loss is {first['rewards'].loss:.4f} for `rewards`, "
        f"{first['centered_rewards'].loss:.4f} for `centered_rewards` and "
        f"{first['normalized_rewards'].loss:.4f} for `normalized_rewards`"
    ]


@TEXT.claim
def final_rewards_with_seed_5(train: Train) -> list[str]:
    final = {
        (deltas_mode, loss_mode): train(deltas_mode, loss_mode).run.records[-1].mean_reward
        for deltas_mode in DELTAS_MODES
        for loss_mode in LOSS_MODES
    }
    gain = final["centered_rewards", "naive"] - final["rewards", "naive"]
    return [
        *(row(f"`{d}`", *(f"{final[d, loss_mode]:.3f}" for loss_mode in LOSS_MODES)) for d in DELTAS_MODES),
        f"On seed 5, centering gains {gain:.3f} over raw rewards with the naive loss.",
    ]


@TEXT.claim
def likeliest_response(train: Train) -> list[str]:
    prompts = torch.tensor(DEFAULT_PROMPTS)
    likeliest = {mode: train(mode).run.model(prompts).argmax(dim=-1).tolist() for mode in DELTAS_MODES[:3]}
    for responses in likeliest.values():
        assert all(r != sorted(p) for p, r in zip(DEFAULT_PROMPTS, responses, strict=True))
    prompt, response = DEFAULT_PROMPTS[1], likeliest["centered_rewards"][1]
    assert not set(prompt) & set(response)
    return [
        f"the likeliest response to `{prompt}` is `{response}`, which holds no number of the prompt "
        f"and earns {sort_inclusion_ordering_reward(prompt, response):g} for its order"
    ]


@TEXT.claim
def twenty_seeds(train: Train) -> list[str]:
    raw, centered = (
        np.array([train(mode, "naive", seed).expected_reward for seed in SEEDS])
        for mode in ("rewards", "centered_rewards")
    )
    gains = centered - raw
    better, worse = int((gains > 0.01).sum()), int((gains < -0.01).sum())
    error = gains.std(ddof=1) / math.sqrt(len(SEEDS))
    return [
        f"Over the seeds 0 to {SEEDS[-1]}, the expected reward",
        row("`rewards`", f"{raw.mean():.3f}", f"{raw.std(ddof=1):.3f}"),
        row("`centered_rewards`", f"{centered.mean():.3f}", f"{centered.std(ddof=1):.3f}"),
        f"is {gains.mean():.3f} on average with a standard error of {error:.3f}",
        f"better on {better} seeds, worse on {worse}, and equal on {len(SEEDS) - better - worse}",
        f"anything from {gains.min():.3f} to {gains.max():.3f}",
    ]


@TEXT.claim
def loss_curves_lie(train: Train) -> list[str]:
    raw, centered = train("rewards").run.records, train("centered_rewards").run.records
    first_epoch = centered[:10]
    (reward,) = {record.mean_reward for record in first_epoch}
    losses = [record.loss for record in first_epoch]
    assert losses == sorted(losses, reverse=True)
    return [
        f"the loss falls from {losses[0]:.3f} to {losses[-1]:.3f}, and the mean reward is {reward:.3f} all along",
        f"in epoch 1, the loss is {centered[10].loss:z.3f} again",
        f"the loss *rises* from {raw[9].loss:.3f} to {raw[10].loss:.3f}, and the mean reward rises with it, "
        f"from {raw[9].mean_reward:.3f} to {raw[10].mean_reward:.3f}",
        f"Final losses: {raw[-1].loss:.4f} with raw rewards and {centered[-1].loss:z.4f} with centered ones, "
        f"with mean rewards of {raw[-1].mean_reward:.3f} and {centered[-1].mean_reward:.3f}",
    ]


SLOW = [claim for claim in TEXT.claims if re.search(r"train\(|num_epochs", inspect.getsource(claim))]  # they train
QUICK = [claim for claim in TEXT.claims if claim not in SLOW]


@pytest.mark.parametrize("claim", in_short([*QUICK, *SLOW], len(QUICK)))
def test_the_text_states_what_the_code_computes(claim, train):
    assert TEXT.missing(claim, train) == []


@pytest.mark.long
def test_every_decimal_number_in_the_text_belongs_to_a_claim(train):
    assert TEXT.unclaimed(train) == []


def test_the_epsilon_of_the_text_is_that_of_the_code():
    assert policy_gradient.EPS == 1e-5
    assert set(re.findall(r"10\^\{-\d+\}", README)) == {"10^{-5}"}
