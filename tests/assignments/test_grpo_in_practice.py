"""The solution's estimators against enumeration: every response of a tiny policy, weighted by its probability."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from grpo_in_practice import (
    accumulate_gradients,
    importance_weights,
    informative_groups,
    kl_penalty,
    overlong_penalty,
    policy_loss,
    rewards_with_kl,
    without_truncated,
)
from grpo_language_model import grpo_loss
from torch import Tensor

VOCAB, LENGTH, END = 3, 3, 2
NORMALIZATIONS = pytest.mark.parametrize("normalization", ["token_mean", "sequence_mean", "constant_length"])
OBJECTIVES = pytest.mark.parametrize("objective", ["token", "sequence", "cispo"])
WIDE: dict[str, Any] = {"epsilon_low": 1e6, "epsilon_high": 1e6}  # nothing is clipped
SUMMED: dict[str, Any] = {"normalization": "constant_length", "max_length": 1}  # tokens are added up


def same(mine: Tensor, theirs: Tensor, digits: float = 1e-12) -> None:
    torch.testing.assert_close(mine, theirs, rtol=digits, atol=digits)


# A policy whose responses can be listed: a logit for each token after each token before it


def responses() -> list[tuple[int, ...]]:
    """Every response: it ends with the end token, or is as long as can be."""
    found = []
    for length in range(1, LENGTH + 1):
        for tokens in itertools.product(range(VOCAB), repeat=length):
            stops = tokens.index(END) if END in tokens else None
            if stops == length - 1 or (stops is None and length == LENGTH):
                found.append(tokens)
    return found


RESPONSES = responses()
MASK = torch.tensor([[int(place < len(one)) for place in range(LENGTH)] for one in RESPONSES])
TOKENS = torch.tensor([[*one, *[0] * (LENGTH - len(one))] for one in RESPONSES])
BEFORE = torch.cat([torch.full((len(RESPONSES), 1), END), TOKENS[:, :-1]], dim=1)  # the end token starts a response
REWARDS = torch.randn(len(RESPONSES), generator=torch.Generator().manual_seed(4), dtype=torch.float64)


def logits(seed: int) -> Tensor:
    return torch.randn(VOCAB, VOCAB, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scored(table: Tensor) -> Tensor:
    """float[response pos]: what a policy says of every token, and junk where there is none."""
    return table.log_softmax(dim=-1)[BEFORE, TOKENS].masked_fill(MASK == 0, -7.0)


def probabilities(table: Tensor) -> Tensor:
    return scored(table).masked_fill(MASK == 0, 0.0).sum(dim=-1).exp()


def gradient(of: Callable[[Tensor], Tensor], table: Tensor) -> Tensor:
    leaf = table.clone().requires_grad_()
    (found,) = torch.autograd.grad(of(leaf), leaf)
    return found


def mean_gradient(of: Callable[[Tensor, int], Tensor], table: Tensor, weights: Tensor) -> Tensor:
    """The expectation of the gradient of one response's loss."""
    own = [weight * gradient(lambda leaf, row=row: of(leaf, row), table) for row, weight in enumerate(weights)]
    return torch.stack(own).sum(dim=0)


def one_loss(leaf: Tensor, row: int, old: Tensor, advantages: Tensor, **options: Any) -> Tensor:
    """The loss of one response alone."""
    rows = slice(row, row + 1)
    weights = options.pop("weights", None)
    weights = None if weights is None else weights[rows]
    return policy_loss(scored(leaf)[rows], old[rows], advantages[rows], MASK[rows], weights=weights, **options)


def expected_reward(leaf: Tensor) -> Tensor:
    return (probabilities(leaf) * REWARDS).sum()


def divergence(leaf: Tensor, reference: Tensor) -> Tensor:
    """The KL divergence of whole responses."""
    ratio = (scored(leaf) - scored(reference)).masked_fill(MASK == 0, 0.0).sum(dim=-1)
    return (probabilities(leaf) * ratio).sum()


def test_the_responses_are_all_there_are() -> None:
    same(probabilities(logits(0)).sum(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("objective", ["token", "cispo"])
def test_at_the_policy_that_sampled_the_mean_gradient_is_that_of_the_expected_reward(objective: str) -> None:
    table = logits(0)
    old = scored(table)
    found = mean_gradient(
        lambda leaf, row: one_loss(leaf, row, old, REWARDS, objective=objective, **SUMMED), table, probabilities(table)
    )
    same(found, -gradient(expected_reward, table))


def test_the_sequence_objective_weighs_each_response_by_its_length() -> None:
    """Where tokens are added up, the mean over a response's tokens in s is undone, and the gradient is the same."""
    table = logits(1)
    old = scored(table)
    found = mean_gradient(
        lambda leaf, row: one_loss(leaf, row, old, REWARDS, objective="sequence", **SUMMED), table, probabilities(table)
    )
    same(found, -gradient(expected_reward, table))


@pytest.mark.parametrize("objective", ["token", "cispo"])
def test_weights_of_whole_responses_undo_another_sampler(objective: str) -> None:
    """With no cap that binds, responses of another policy have the right gradient on average."""
    table, sampler = logits(2), logits(3)
    old = scored(table)
    weights = importance_weights(old, scored(sampler), MASK, 1e9, "sequence")
    options = {"objective": objective, "weights": weights, **SUMMED}
    found = mean_gradient(lambda leaf, row: one_loss(leaf, row, old, REWARDS, **options), table, probabilities(sampler))
    same(found, -gradient(expected_reward, table))


def test_weights_of_whole_responses_have_the_mean_one() -> None:
    weights = importance_weights(scored(logits(2)), scored(logits(3)), MASK, 1e9, "sequence")
    same((probabilities(logits(3)) * weights[:, 0]).sum(), torch.tensor(1.0, dtype=torch.float64))


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_a_cap_makes_no_weight_larger(level: str) -> None:
    arguments = (scored(logits(2)), scored(logits(3)), MASK)
    capped, free = (importance_weights(*arguments, cap, level) for cap in (0.9, 1e9))
    assert bool((capped < free).any())
    same(capped, free.clamp(max=0.9))


def test_rewards_with_kl_have_the_gradient_of_reward_less_divergence() -> None:
    table, reference, coefficient = logits(4), logits(5), 0.3
    old = scored(table)
    penalised = rewards_with_kl(REWARDS, old, scored(reference), MASK, coefficient)
    found = mean_gradient(lambda leaf, row: one_loss(leaf, row, old, penalised, **SUMMED), table, probabilities(table))
    aim = gradient(lambda leaf: expected_reward(leaf) - coefficient * divergence(leaf, reference), table)
    same(found, -aim)


# One token: what each estimate of the divergence is right about


FIRST = torch.full((VOCAB,), END)
ONE = torch.ones(VOCAB, 1, dtype=torch.int64)


def first_token(table: Tensor) -> Tensor:
    """float[token 1]: every first token."""
    return table.log_softmax(dim=-1)[FIRST, torch.arange(VOCAB)].unsqueeze(-1)


def estimates(leaf: Tensor, reference: Tensor, estimator: str) -> Tensor:
    return kl_penalty(first_token(leaf), first_token(reference), ONE, estimator).squeeze(-1)


def exact_divergence(leaf: Tensor, reference: Tensor) -> Tensor:
    own, other = first_token(leaf).squeeze(-1), first_token(reference).squeeze(-1)
    return (own.exp() * (own - other)).sum()


@pytest.mark.parametrize("estimator", ["k1", "k3"])
def test_the_mean_of_k1_and_of_k3_is_the_divergence(estimator: str) -> None:
    table, reference = logits(6), logits(7)
    shares = first_token(table).exp().squeeze(-1)
    same((shares * estimates(table, reference, estimator)).sum(), exact_divergence(table, reference))


def test_the_mean_gradient_of_k2_is_that_of_the_divergence_and_of_k1_it_is_nothing() -> None:
    table, reference = logits(6), logits(7)
    shares = first_token(table).exp().squeeze(-1)

    def found(estimator: str) -> Tensor:
        return gradient(lambda leaf: (shares * estimates(leaf, reference, estimator)).sum(), table)

    same(found("k1"), torch.zeros_like(table))
    same(found("k2"), gradient(lambda leaf: exact_divergence(leaf, reference), table))
    same(found("k3"), gradient(lambda leaf: exact_divergence(reference, leaf), table))  # the other way round


@pytest.mark.parametrize("seed", range(4))
def test_k3_is_never_below_zero(seed: int) -> None:
    assert bool((estimates(logits(seed), logits(seed + 10), "k3") >= 0).all())


# What holds of any batch


def drawn(seed: int) -> list[Tensor]:
    """log_probs, old_log_probs, advantages and mask of a random batch."""
    generator = torch.Generator().manual_seed(seed)
    log_probs = -3 * torch.rand(5, 7, generator=generator, dtype=torch.float64)
    old = log_probs + 0.4 * torch.randn(5, 7, generator=generator, dtype=torch.float64)
    advantages = torch.randn(5, generator=generator, dtype=torch.float64)
    mask = (torch.arange(7) < torch.tensor([7, 1, 4, 3, 6])[:, None]).long()
    return [log_probs.requires_grad_(), old, advantages, mask]


@NORMALIZATIONS
@pytest.mark.parametrize("seed", range(4))
def test_the_defaults_are_the_loss_of_the_assignment_before(normalization: str, seed: int) -> None:
    given = drawn(seed)
    options: dict[str, Any] = {"normalization": normalization, "max_length": 9}
    mine, theirs = policy_loss(*given, **options), grpo_loss(*given, **options)
    same(mine, theirs)
    same(*(torch.autograd.grad(loss, given[0])[0] for loss in (mine, theirs)))


@NORMALIZATIONS
@pytest.mark.parametrize("num_parts", [1, 2, 3, 5])
def test_parts_have_the_gradient_of_the_whole_batch(normalization: str, num_parts: int) -> None:
    log_probs, *rest = drawn(0)
    options: dict[str, Any] = {"normalization": normalization, "max_length": 9}
    whole = policy_loss(log_probs, *rest, **options)
    (aim,) = torch.autograd.grad(whole, log_probs)
    loss = accumulate_gradients(lambda rows: log_probs[rows], *rest, num_parts, **options)
    assert log_probs.grad is not None
    same(log_probs.grad, aim)
    assert loss == pytest.approx(whole.item(), rel=1e-12)


def test_leaving_a_group_out_is_another_loss_than_masking_it() -> None:
    log_probs, old, advantages, mask = drawn(1)
    rewards = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    kept = informative_groups(rewards).repeat_interleave(2)
    assert kept.tolist() == [False, False, True, True]
    rows = torch.cat([kept, torch.tensor([True])])
    masked = mask * rows[:, None]
    options = {"normalization": "sequence_mean"}
    left_out = policy_loss(log_probs[rows], old[rows], advantages[rows], mask[rows], **options)  # type: ignore[arg-type]
    same(left_out * 3 / 5, policy_loss(log_probs, old, advantages, masked, **options))  # type: ignore[arg-type]


def test_a_truncated_response_has_no_gradient() -> None:
    log_probs, old, advantages, mask = drawn(2)
    kept = without_truncated(mask, torch.tensor([True, False, False, True, False]))
    (found,) = torch.autograd.grad(policy_loss(log_probs, old, advantages, kept), log_probs)
    assert found[[0, 3]].abs().sum() == 0
    assert bool((found[[1, 2, 4]].abs().sum(dim=-1) > 0).all())


def test_the_penalty_of_a_long_response_has_no_jump() -> None:
    found = overlong_penalty(torch.arange(1, 60), 40, 10)
    steps = found[:-1] - found[1:]
    same(steps[steps > 0], torch.full((10,), 0.1), 1e-6)


# Any device, any floating dtype


def on_meta(*given: Tensor) -> list[Tensor]:
    return [one.detach().to("meta") for one in given]


@OBJECTIVES
@NORMALIZATIONS
def test_the_loss_is_made_on_the_device_of_its_arguments(objective: str, normalization: str) -> None:
    """A tensor made on a device of its own would not go together with those of `meta`."""
    given = on_meta(*drawn(0))
    weights = torch.ones(5, 7, device="meta")
    found = policy_loss(*given, objective, normalization=normalization, max_length=9, weights=weights)
    assert (found.device.type, found.dtype) == ("meta", torch.float64)


def test_all_else_is_made_on_the_device_of_its_arguments_too() -> None:
    log_probs, old, advantages, mask = on_meta(*drawn(0))
    cut = torch.ones(5, dtype=torch.bool, device="meta")
    found = [
        kl_penalty(log_probs, old, mask),
        rewards_with_kl(advantages, log_probs, old, mask, 0.1),
        informative_groups(log_probs),
        overlong_penalty(mask.sum(dim=-1), 9, 3),
        without_truncated(mask, cut),
        importance_weights(log_probs, old, mask, 2.0),
        importance_weights(log_probs, old, mask, 2.0, "sequence"),
    ]
    assert {one.device.type for one in found} == {"meta"}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@OBJECTIVES
def test_short_dtypes_are_kept(objective: str, dtype: torch.dtype) -> None:
    log_probs, old, advantages, mask = drawn(3)
    short, short_old = log_probs.detach().to(dtype).requires_grad_(), old.to(dtype)
    found = policy_loss(short, short_old, advantages, mask, objective)
    assert found.dtype == dtype
    same(found.double(), policy_loss(log_probs, old, advantages, mask, objective), 0.05)
    assert kl_penalty(short, short_old, mask).dtype == dtype
    assert importance_weights(short, short_old, mask, 2.0).dtype == dtype
