"""The solution does what its docstrings say: values, gradients, manners and errors, by independent routes."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import math
import re
import sys
from pathlib import Path

import numpy as np
import policy_gradient
import pytest
import torch
from lengths import in_short
from places import KIT
from policy_gradient import (
    compute_deltas,
    compute_kl_penalty,
    compute_log_probs,
    compute_loss,
    compute_reward,
    run_policy_gradient,
)
from sorting_task import DEFAULT_PROMPTS, Model, PolicyGradientRun
from torch import Tensor

from autograder.grading.assignments import find_assignment

EXPERIMENTS = find_assignment(KIT, "policy_gradient").solution / "experiments.py"  # each assignment has its own
SPEC = importlib.util.spec_from_file_location("experiments_of_policy_gradient", EXPERIMENTS)
assert SPEC is not None
assert SPEC.loader is not None
experiments = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(experiments)

DELTAS_MODES = ("rewards", "centered_rewards", "normalized_rewards", "max_rewards")
LOSS_MODES = ("naive", "unclipped", "clipped")
DTYPES = (torch.float32, torch.float64)

# Two prompts of four tokens, five responses of three tokens each, seven possible tokens.
PROMPTS = torch.tensor([[0, 6, 2, 3], [1, 1, 5, 4]])
RESPONSES = torch.randint(7, (2, 5, 3), generator=torch.Generator().manual_seed(0))
REWARDS = torch.tensor([[2.0, 5.0, 5.0, 1.0, 4.0], [-1.0, -2.0, -3.5, -1.0, -2.0]], dtype=torch.float64)
DELTAS = torch.tensor([[1.5, -0.5, 0.0, 2.0, -1.0], [-2.0, 0.25, 1.0, -0.75, 3.0]], dtype=torch.float64)


@pytest.fixture
def model() -> Model:
    torch.manual_seed(2)
    return Model(7, 6, 4, 3).double()


@pytest.fixture
def old_log_probs() -> Tensor:
    noise = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return -1.5 + 0.5 * noise


@pytest.fixture
def log_probs(old_log_probs) -> Tensor:
    """Log-probabilities whose ratios to the old ones run from 0.32 to 2.72 and keep away from every kink."""
    order = torch.randperm(30, generator=torch.Generator().manual_seed(7))
    ratios = torch.linspace(0.32, 2.72, 30, dtype=torch.float64)[order].reshape(2, 5, 3)
    assert all((ratios - kink).abs().min() > 0.005 for kink in (0.8, 1.2, 0.99, 1.01))
    return (old_log_probs + ratios.log()).requires_grad_()


def gradient(scalar: Tensor, inputs: Tensor) -> Tensor:
    return torch.autograd.grad(scalar, inputs, retain_graph=True)[0]


# compute_reward


def test_each_response_earns_its_own_reward_under_its_own_prompt():
    def reward(prompt: list[int], response: list[int]) -> float:
        return prompt[0] + prompt[-1] / 8 - response[0] * response[1] + response[2] / 4

    rewards = compute_reward(PROMPTS, RESPONSES, reward)
    assert rewards.shape == (2, 5)
    for i, j in itertools.product(range(2), range(5)):
        assert rewards[i, j] == reward(PROMPTS[i].tolist(), RESPONSES[i, j].tolist())


def test_rewards_are_float32_constants_with_fractions_and_signs():
    rewards = compute_reward(PROMPTS, RESPONSES, lambda prompt, response: -1.5)
    assert rewards.dtype == torch.float32
    assert not rewards.requires_grad
    assert torch.equal(rewards, torch.full((2, 5), -1.5))


def test_the_reward_function_gets_fresh_lists_of_ints_once_per_response():
    seen = []

    def reward(prompt: list[int], response: list[int]) -> int:
        seen.append((list(prompt), list(response)))
        assert type(prompt) is type(response) is list
        assert {type(token) for token in prompt + response} == {int}
        prompt.clear()
        response.clear()
        return 1

    prompts, responses = PROMPTS.clone(), RESPONSES.clone()
    compute_reward(prompts, responses, reward)
    expected = [(PROMPTS[i].tolist(), RESPONSES[i, j].tolist()) for i in range(2) for j in range(5)]
    assert sorted(seen) == sorted(expected)
    assert torch.equal(prompts, PROMPTS)
    assert torch.equal(responses, RESPONSES)


def test_what_the_reward_function_raises_comes_through():
    with pytest.raises(KeyError, match="no such token"):
        compute_reward(PROMPTS, RESPONSES, lambda prompt, response: {}["no such token"])


# compute_deltas


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", DELTAS_MODES)
def test_deltas_agree_with_numpy(mode, dtype):
    expected = []
    for group in REWARDS.numpy():
        centered = group - group.mean()
        expected.append(
            {
                "rewards": group,
                "centered_rewards": centered,
                "normalized_rewards": centered / (group.std(ddof=1) + 1e-5),
                "max_rewards": np.where(group == group.max(), group, 0.0),
            }[mode]
        )
    deltas = compute_deltas(REWARDS.to(dtype), mode)
    assert deltas.dtype == dtype
    torch.testing.assert_close(deltas, torch.tensor(np.array(expected), dtype=dtype))


@pytest.mark.parametrize("mode", DELTAS_MODES)
def test_deltas_are_a_new_tensor_and_the_rewards_stay_as_they_were(mode):
    rewards = REWARDS.clone()
    compute_deltas(rewards, mode).fill_(99.0)
    assert torch.equal(rewards, REWARDS)


@pytest.mark.parametrize("mode", ["centered_rewards", "normalized_rewards"])
def test_adding_a_constant_to_every_reward_changes_no_centered_delta(mode):
    torch.testing.assert_close(compute_deltas(REWARDS + 8, mode), compute_deltas(REWARDS, mode))


@pytest.mark.parametrize("mode", ["centered_rewards", "normalized_rewards"])
def test_centered_deltas_of_a_group_sum_to_zero(mode):
    torch.testing.assert_close(compute_deltas(REWARDS, mode).sum(dim=-1), torch.zeros(2, dtype=torch.float64))


def test_scaling_rewards_changes_normalized_deltas_only_through_the_epsilon():
    plain, scaled = (compute_deltas(factor * REWARDS, "normalized_rewards") for factor in (1, 100))
    torch.testing.assert_close(scaled, plain, rtol=2e-5, atol=0)
    assert not torch.equal(scaled, plain)


def test_the_epsilon_decides_when_the_spread_is_tiny():
    deltas = compute_deltas(torch.tensor([[0.0, 1e-5]], dtype=torch.float64), "normalized_rewards")
    spread = 1e-5 / math.sqrt(2)
    assert deltas[0, 1].item() == pytest.approx(0.5e-5 / (spread + 1e-5))


@pytest.mark.parametrize("mode", ["centered_rewards", "normalized_rewards"])
def test_a_group_that_agrees_has_deltas_of_zero_and_leaves_other_groups_alone(mode):
    rewards = torch.cat([torch.full((1, 5), 3.0, dtype=torch.float64), REWARDS])
    deltas = compute_deltas(rewards, mode)
    assert torch.equal(deltas[0], torch.zeros(5, dtype=torch.float64))
    assert torch.equal(deltas[1:], compute_deltas(REWARDS, mode))


@pytest.mark.parametrize("mode", DELTAS_MODES[:2] + DELTAS_MODES[3:])
def test_a_group_of_one_has_deltas_where_no_spread_is_needed(mode):
    assert compute_deltas(torch.tensor([[2.0], [3.0]]), mode).shape == (2, 1)


def test_a_group_of_one_cannot_be_normalized():
    with pytest.raises(ValueError, match="at least two responses"):
        compute_deltas(torch.tensor([[2.0], [3.0]]), "normalized_rewards")


@pytest.mark.parametrize("rewards", [REWARDS, torch.tensor([[1.0]])], ids=["many", "one"])
def test_an_unknown_deltas_mode_is_named(rewards):
    with pytest.raises(ValueError, match="'centred_rewards'"):
        compute_deltas(rewards, "centred_rewards")


# compute_log_probs


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_probs_are_those_of_the_sampled_tokens(model, dtype):
    model = model.to(dtype)
    log_probs = compute_log_probs(PROMPTS, RESPONSES, model)
    distribution = torch.distributions.Categorical(logits=model(PROMPTS).unsqueeze(1))
    torch.testing.assert_close(log_probs, distribution.log_prob(RESPONSES))
    assert log_probs.dtype == dtype


def test_the_probabilities_of_all_responses_sum_to_one(model):
    everything = torch.tensor(list(itertools.product(range(7), repeat=3))).expand(2, -1, -1)
    total = compute_log_probs(PROMPTS, everything, model).sum(dim=-1).exp().sum(dim=-1)
    torch.testing.assert_close(total, torch.ones(2, dtype=torch.float64))


def test_the_gradient_of_a_log_prob_is_one_hot_minus_softmax():
    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.logits = torch.nn.Parameter(torch.linspace(-2, 3, 42, dtype=torch.float64).reshape(2, 3, 7))

        def forward(self, prompts: Tensor) -> Tensor:
            return self.logits

    table, weights = Table(), torch.linspace(-1, 2, 30, dtype=torch.float64).reshape(2, 5, 3)
    (compute_log_probs(PROMPTS, RESPONSES, table) * weights).sum().backward()
    scores = torch.nn.functional.one_hot(RESPONSES, 7) - table.logits.softmax(dim=-1).unsqueeze(1)
    torch.testing.assert_close(table.logits.grad, (scores * weights.unsqueeze(-1)).sum(dim=1).detach())


def test_log_probs_of_very_unlikely_tokens_are_finite_and_have_a_gradient(model):
    with torch.no_grad():
        model.embedding.weight.mul_(8)
    log_probs = compute_log_probs(PROMPTS, RESPONSES, model.float())
    assert log_probs.min() < -100
    assert log_probs.isfinite().all()
    log_probs.min().backward()
    assert model.embedding.weight.grad.abs().max() > 1


@pytest.mark.parametrize(("batch", "trial", "pos"), [(1, 1, 1), (1, 5, 3), (2, 1, 3), (2, 5, 1)])
def test_axes_of_length_one_are_kept(batch, trial, pos):
    responses = RESPONSES[:batch, :trial, :pos]
    assert compute_log_probs(PROMPTS[:batch], responses, Model(7, 6, 4, pos)).shape == (batch, trial, pos)


@pytest.mark.parametrize("training", [True, False])
def test_scoring_leaves_the_model_as_it_was(model, training):
    model.train(training)
    before = copy.deepcopy(model.state_dict())
    compute_log_probs(PROMPTS, RESPONSES, model)
    assert model.training is training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


# compute_loss


def closed_form_gradient(log_probs: Tensor, old_log_probs: Tensor, mode: str, epsilon: float) -> Tensor:
    ratio, deltas = (log_probs - old_log_probs).exp().detach(), DELTAS.unsqueeze(-1)
    if mode == "naive":
        ratio = torch.ones_like(ratio)
    if mode == "clipped":
        flat = ((deltas > 0) & (ratio > 1 + epsilon)) | ((deltas < 0) & (ratio < 1 - epsilon))
        assert 0 < flat.sum() < flat.numel()
        ratio = ratio * ~flat
    return -deltas * ratio / log_probs.numel()


@pytest.mark.parametrize("epsilon", [0.2, 0.01])
@pytest.mark.parametrize("mode", LOSS_MODES)
def test_the_gradient_of_the_loss_has_the_closed_form(log_probs, old_log_probs, mode, epsilon):
    loss = compute_loss(log_probs, DELTAS, mode, old_log_probs, epsilon)
    assert loss.shape == ()
    expected = closed_form_gradient(log_probs, old_log_probs, mode, epsilon)
    torch.testing.assert_close(gradient(loss, log_probs), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_the_gradient_of_the_loss_is_the_slope_of_its_value(log_probs, old_log_probs, mode):
    assert torch.autograd.gradcheck(lambda lp: compute_loss(lp, DELTAS, mode, old_log_probs), log_probs)


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_the_loss_agrees_with_plain_loops(log_probs, old_log_probs, mode):
    total = 0.0
    for i, j, k in np.ndindex(2, 5, 3):
        delta, log_prob = DELTAS[i, j].item(), log_probs[i, j, k].item()
        ratio = math.exp(log_prob - old_log_probs[i, j, k].item())
        total += {
            "naive": log_prob * delta,
            "unclipped": ratio * delta,
            "clipped": min(ratio * delta, min(max(ratio, 0.8), 1.2) * delta),
        }[mode]
    loss = compute_loss(log_probs, DELTAS, mode, old_log_probs)
    assert loss.item() == pytest.approx(-total / 30, rel=1e-12)


@pytest.mark.parametrize("mode", ["unclipped", "clipped"])
@pytest.mark.parametrize("shared", [True, False], ids=["the same tensor", "a tensor of the same graph"])
def test_the_old_policy_is_a_constant_whatever_graph_it_carries(log_probs, mode, shared):
    old = log_probs if shared else log_probs * 1.0
    loss = compute_loss(log_probs, DELTAS, mode, old)
    torch.testing.assert_close(loss, -DELTAS.mean())
    torch.testing.assert_close(gradient(loss, log_probs), -DELTAS.unsqueeze(-1).expand(2, 5, 3) / 30)


def test_deltas_are_constants_whatever_graph_they_carry(log_probs):
    deltas = DELTAS.clone().requires_grad_()
    assert gradient(compute_loss(log_probs, deltas, "naive"), log_probs) is not None
    with pytest.raises(RuntimeError, match="not have been used in the graph"):
        gradient(compute_loss(log_probs, deltas, "naive"), deltas)


def test_at_the_old_policy_all_losses_push_alike_and_a_value_of_zero_still_pushes(log_probs):
    deltas = DELTAS - DELTAS.mean()
    losses = [compute_loss(log_probs, deltas, mode, log_probs.detach()) for mode in LOSS_MODES]
    naive, unclipped, clipped = (gradient(loss, log_probs) for loss in losses)
    assert losses[1].item() == pytest.approx(0, abs=1e-15)
    assert torch.equal(naive, unclipped)
    assert torch.equal(naive, clipped)
    assert naive.abs().max() > 0.05


def test_an_interval_that_holds_every_ratio_clips_nothing(log_probs, old_log_probs):
    wide = compute_loss(log_probs, DELTAS, "clipped", old_log_probs, epsilon=3.0)
    assert wide == compute_loss(log_probs, DELTAS, "unclipped", old_log_probs)


def test_clipping_never_makes_the_objective_better(log_probs, old_log_probs):
    unclipped, clipped = (compute_loss(log_probs, DELTAS, mode, old_log_probs) for mode in LOSS_MODES[1:])
    assert clipped > unclipped


@pytest.mark.parametrize("mode", LOSS_MODES)
def test_the_loss_keeps_dtype_and_leaves_its_arguments_alone(log_probs, old_log_probs, mode):
    arguments = [tensor.detach().float() for tensor in (log_probs, DELTAS, old_log_probs)]
    copies = [tensor.clone() for tensor in arguments]
    assert compute_loss(arguments[0], arguments[1], mode, arguments[2]).dtype == torch.float32
    assert all(map(torch.equal, arguments, copies))


@pytest.mark.parametrize("mode", ["unclipped", "clipped"])
def test_the_ratio_of_two_vanishing_probabilities_is_finite(mode):
    log_probs = torch.full((2, 5, 3), -120.0)
    loss = compute_loss(log_probs, DELTAS.float(), mode, log_probs - 0.125)
    torch.testing.assert_close(loss, -math.exp(0.125) * DELTAS.mean().float())


@pytest.mark.parametrize("old", [None, torch.zeros(2, 5, 3)], ids=["without old", "with old"])
def test_an_unknown_loss_mode_is_named(log_probs, old):
    with pytest.raises(ValueError, match="'PPO'"):
        compute_loss(log_probs, DELTAS, "PPO", old)


@pytest.mark.parametrize("mode", ["unclipped", "clipped"])
def test_a_ratio_needs_old_log_probs(log_probs, mode):
    with pytest.raises(ValueError, match="old_log_probs"):
        compute_loss(log_probs, DELTAS, mode)


@pytest.mark.parametrize("baseline", [0.0, 3.5, -5.0])
def test_on_average_the_naive_loss_descends_along_the_gradient_of_the_expected_reward(baseline):
    """Every response is enumerated and weighted by its probability; a constant baseline changes nothing."""
    logits = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(1, 2, 3).requires_grad_()
    responses = torch.tensor(list(itertools.product(range(3), repeat=2))).unsqueeze(0)
    rewards = torch.linspace(0, 4, 9, dtype=torch.float64).square().unsqueeze(0)

    def model(prompts: Tensor) -> Tensor:
        return logits

    log_probs = compute_log_probs(torch.zeros(1, 2, dtype=torch.int64), responses, model)
    probs = log_probs.sum(dim=-1).exp()
    truth = gradient((probs * rewards).sum(), logits)
    log_probs = compute_log_probs(torch.zeros(1, 2, dtype=torch.int64), responses, model)
    deltas = probs.detach() * (rewards - baseline) * probs.numel()  # weights in place of samples
    estimate = -gradient(compute_loss(log_probs, deltas, "naive"), logits)
    torch.testing.assert_close(2 * estimate, truth, rtol=1e-12, atol=1e-14)


# compute_kl_penalty


def test_the_gradient_of_the_penalty_has_the_closed_form(log_probs, old_log_probs):
    expected = (1 - (old_log_probs - log_probs.detach()).exp()) / 10
    torch.testing.assert_close(gradient(compute_kl_penalty(log_probs, old_log_probs), log_probs), expected)
    assert torch.autograd.gradcheck(lambda lp: compute_kl_penalty(lp, old_log_probs), log_probs)


def test_the_penalty_agrees_with_plain_loops(log_probs, old_log_probs):
    x = (old_log_probs - log_probs).flatten().tolist()
    expected = sum(math.exp(value) - value - 1 for value in x) / 10
    penalty = compute_kl_penalty(log_probs, old_log_probs)
    assert penalty.shape == ()
    assert penalty.item() == pytest.approx(expected, rel=1e-12)


def test_where_policy_and_reference_agree_penalty_and_gradient_are_zero(log_probs):
    penalty = compute_kl_penalty(log_probs, log_probs.detach().clone())
    assert penalty == 0
    assert torch.equal(gradient(penalty, log_probs), torch.zeros(2, 5, 3, dtype=torch.float64))


def test_the_reference_is_a_constant_whatever_graph_it_carries(log_probs):
    reference = 0.5 * log_probs - 0.3
    shared = gradient(compute_kl_penalty(log_probs, reference), log_probs)
    assert torch.equal(shared, gradient(compute_kl_penalty(log_probs, reference.detach()), log_probs))


def test_on_average_the_penalty_is_the_divergence_and_its_gradient_that_of_the_reverse():
    logits = torch.tensor([0.5, -0.25, 1.0], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    log_probs = logits.log_softmax(dim=-1)
    tokens = zip(log_probs.reshape(3, 1, 1, 1), reference.log().reshape(3, 1, 1, 1), strict=True)
    per_token = torch.stack([compute_kl_penalty(*pair) for pair in tokens])
    average = (log_probs.exp().detach() * per_token).sum()
    forward = (log_probs.exp() * (log_probs - reference.log())).sum()
    reverse = (reference * (reference.log() - log_probs)).sum()
    torch.testing.assert_close(average, forward)
    torch.testing.assert_close(gradient(average, logits), logits.softmax(dim=-1).detach() - reference)
    torch.testing.assert_close(gradient(reverse, logits), logits.softmax(dim=-1).detach() - reference)


def test_the_penalty_keeps_dtype_is_finite_and_leaves_its_arguments_alone():
    log_probs, reference = torch.full((2, 5, 3), -120.5), torch.full((2, 5, 3), -120.0)
    penalty = compute_kl_penalty(log_probs, reference)
    torch.testing.assert_close(penalty, torch.tensor(3 * (math.exp(0.5) - 1.5)))
    assert torch.equal(log_probs, torch.full((2, 5, 3), -120.5))
    assert torch.equal(reference, torch.full((2, 5, 3), -120.0))


# run_policy_gradient


def short_run(**options: object) -> PolicyGradientRun:
    settings = {"num_epochs": 4, "num_steps_per_epoch": 3, "learning_rate": 1e-2, "progress": False}
    return run_policy_gradient(**{"deltas_mode": "centered_rewards", **settings, **options})


def same_policy(left: PolicyGradientRun, right: PolicyGradientRun) -> bool:
    return all(map(torch.equal, left.model.parameters(), right.model.parameters()))


@pytest.mark.parametrize(
    ("deltas_mode", "loss_mode", "best", "final", "expected"),
    in_short(
        [
            ("rewards", "naive", 2.6667, 2.6667, 2.6665),
            ("rewards", "unclipped", 2.8000, 2.6667, 2.6636),
            ("rewards", "clipped", 2.6667, 2.6667, 2.6665),
            ("centered_rewards", "naive", 3.4000, 3.3333, 3.3320),
            ("centered_rewards", "unclipped", 3.6667, 3.6667, 3.6653),
            ("centered_rewards", "clipped", 3.6667, 3.6667, 3.6649),
            ("normalized_rewards", "naive", 3.3333, 3.3333, 3.3333),
            ("normalized_rewards", "unclipped", 3.6667, 3.6667, 3.6654),
            ("normalized_rewards", "clipped", 3.6667, 3.6667, 3.6647),
            ("max_rewards", "naive", 2.6667, 2.6667, 2.6667),
            ("max_rewards", "unclipped", 3.0000, 3.0000, 2.9999),
            ("max_rewards", "clipped", 2.7000, 2.6667, 2.6667),
        ]
    ),
)
def test_the_run_of_seed_5_is_the_recorded_one(train, deltas_mode, loss_mode, best, final, expected):
    run, expected_reward = train(deltas_mode, loss_mode)
    rewards = [record.mean_reward for record in run.records]
    assert rewards[0] == pytest.approx(2.3333, abs=1e-4)
    assert max(rewards) == pytest.approx(best, abs=1e-4)
    assert rewards[-1] == pytest.approx(final, abs=1e-4)
    assert expected_reward == pytest.approx(expected, abs=1e-4)


def test_the_first_loss_of_seed_5_is_the_recorded_one(train):
    assert train("rewards", "naive").run.records[0].loss == pytest.approx(1.16413688, rel=1e-6)


def test_a_run_is_repeatable_and_its_seed_matters():
    assert same_policy(short_run(), short_run())
    assert short_run().records == short_run().records
    assert not same_policy(short_run(), short_run(seed=6))


def test_records_count_epochs_and_steps_and_rewards_stay_the_same_within_an_epoch():
    records = short_run().records
    assert [(record.epoch, record.step) for record in records] == [(step // 3, step) for step in range(12)]
    assert len({(record.epoch, record.mean_reward) for record in records}) == 4
    assert {type(value) for record in records for value in (record.loss, record.mean_reward)} == {float}


def test_the_recorded_loss_is_that_before_the_update():
    one, two = (short_run(num_epochs=1, num_steps_per_epoch=steps) for steps in (1, 2))
    assert one.records[0] == two.records[0]
    frozen = short_run(num_epochs=1, learning_rate=0.0)
    assert len({record.loss for record in frozen.records}) == 1
    assert frozen.records[0] == one.records[0]


@pytest.mark.parametrize("kl_penalty", [0.0, 0.5])
def test_with_one_inner_step_per_epoch_the_three_losses_train_alike(kl_penalty):
    naive, unclipped, clipped = (
        short_run(loss_mode=mode, num_steps_per_epoch=1, kl_penalty=kl_penalty) for mode in LOSS_MODES
    )
    torch.testing.assert_close(naive.model.state_dict(), unclipped.model.state_dict(), rtol=1e-4, atol=1e-5)
    assert same_policy(unclipped, clipped)


def test_with_several_inner_steps_the_three_losses_differ():
    naive, unclipped, clipped = (short_run(loss_mode=mode) for mode in LOSS_MODES)
    assert not same_policy(naive, unclipped)
    assert not same_policy(unclipped, clipped)


def test_without_a_penalty_the_period_of_the_reference_means_nothing():
    assert same_policy(short_run(compute_ref_model_period=1), short_run(compute_ref_model_period=3))


def test_with_a_penalty_the_period_of_the_reference_matters():
    runs = [short_run(kl_penalty=0.5, compute_ref_model_period=period) for period in (1, 2, 4)]
    assert not any(same_policy(left, right) for left, right in itertools.combinations(runs, 2))


def test_a_reference_renewed_before_every_step_exerts_no_force():
    options = {"num_epochs": 6, "num_steps_per_epoch": 1}
    assert same_policy(short_run(**options, kl_penalty=5.0, compute_ref_model_period=1), short_run(**options))


def test_a_strong_penalty_keeps_the_policy_near_where_it_began():
    start = short_run(num_epochs=0)

    def distance(**options: object) -> float:
        run = short_run(compute_ref_model_period=100, num_epochs=10, **options)
        pairs = zip(run.model.parameters(), start.model.parameters(), strict=True)
        return sum((left - right).square().sum().item() for left, right in pairs)

    assert distance(kl_penalty=10.0) < 0.5 * distance(kl_penalty=0.0)


def test_a_constant_reward_teaches_a_centered_policy_nothing():
    run = short_run(reward_fn=lambda prompt, response: 2.0)
    assert same_policy(run, short_run(num_epochs=0))
    assert {record.mean_reward for record in run.records} == {2.0}


def test_every_argument_is_heeded():
    changes = {
        "prompts": [[1, 0], [0, 1]],
        "num_epochs": 3,
        "num_steps_per_epoch": 2,
        "num_responses": 5,
        "deltas_mode": "rewards",
        "loss_mode": "unclipped",
        "epsilon": 0.05,
        "kl_penalty": 0.5,
        "reward_fn": lambda prompt, response: float(response[0]),
        "learning_rate": 1e-3,
        "seed": 6,
    }
    base = short_run(loss_mode="clipped")
    for name, value in changes.items():
        changed = short_run(**{"loss_mode": "clipped", name: value})
        assert not same_policy(base, changed), name


def test_the_model_has_a_token_for_the_largest_number_of_any_prompt():
    model = short_run(prompts=[[0, 9], [3, 1], [2, 2]], num_epochs=0).model
    assert model.embedding.weight.shape == (10, 10)
    assert model.decode_weights.shape == (2, 10, 10)


def test_the_prompts_are_left_alone():
    short_run(prompts=DEFAULT_PROMPTS)
    assert DEFAULT_PROMPTS == [[1, 0, 2], [3, 2, 4], [1, 2, 3]]


@pytest.mark.parametrize(
    "name", ["compute_reward", "compute_deltas", "compute_log_probs", "compute_loss", "compute_kl_penalty"]
)
def test_the_loop_calls_the_other_functions_by_name(monkeypatch, name):
    original = getattr(policy_gradient, name)
    before = short_run(kl_penalty=0.5)
    monkeypatch.setattr(policy_gradient, name, lambda *args, **kwargs: 1.25 * original(*args, **kwargs))
    assert short_run(kl_penalty=0.5).records != before.records


def test_a_group_of_one_trains_unless_it_is_to_be_normalized():
    assert len(short_run(num_responses=1).records) == 12
    with pytest.raises(ValueError, match="at least two responses"):
        short_run(num_responses=1, deltas_mode="normalized_rewards")


def test_unknown_modes_stop_the_run():
    with pytest.raises(ValueError, match="'sum'"):
        short_run(deltas_mode="sum")
    with pytest.raises(ValueError, match="'ppo'"):
        short_run(loss_mode="ppo")


def test_a_run_without_progress_prints_nothing(capfd):
    short_run()
    assert capfd.readouterr() == ("", "")


# What students get of the file


def test_every_answer_stands_between_markers_inside_its_own_function():
    source = Path(policy_gradient.__file__).read_text(encoding="utf-8")
    pattern = r'^def (\w+)\(.*?"""\n    ### BEGIN SOLUTION\n.*?    ### END SOLUTION\n'
    names = re.findall(pattern, source, flags=re.DOTALL | re.MULTILINE)
    assert names == [
        "compute_reward",
        "compute_deltas",
        "compute_log_probs",
        "compute_loss",
        "compute_kl_penalty",
        "run_policy_gradient",
    ]
    assert source.count("### BEGIN SOLUTION") == source.count("### END SOLUTION") == 6


# experiments.py


@pytest.mark.parametrize(("figure", "runs"), in_short([("three_runs.png", 3), ("grid.png", 12)]))
def test_the_experiments_print_a_table_and_save_figures_and_logs(monkeypatch, capsys, tmp_path, figure, runs):
    out = tmp_path / "o u t"
    options = ["--grid"] if figure == "grid.png" else []
    monkeypatch.setattr(sys, "argv", ["experiments.py", *options, "--epochs", "2", "--out", str(out)])
    experiments.main()
    assert len(re.findall(r"rewards +\w+ +\d\.\d{3}\n", capsys.readouterr().out)) == runs
    assert (out / figure).stat().st_size > 10_000
    logs = list(out.glob("*/log.txt"))
    assert len(logs) == runs
    for log in logs:
        assert log.read_text(encoding="utf-8").count("response [") == 15


@pytest.mark.long
def test_an_experiment_trains_what_the_loop_alone_would_train(train):
    settings = experiments.THREE_RUNS[:2]
    runs = experiments.run_experiment(settings, seed=5, num_epochs=4)
    for deltas_mode, loss_mode in settings:
        assert runs[deltas_mode, loss_mode].records == train(deltas_mode, loss_mode).run.records[:40]
