"""Every sum, mean and product as an einsum with named axes; modes told apart by `match`."""

from __future__ import annotations

import copy

import torch
from einops import einsum, rearrange, reduce, repeat
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    Reward,
    generate_responses,
    progress_bar,
    sort_inclusion_ordering_reward,
)
from torch import Tensor, nn


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn: Reward) -> Tensor:
    batch, trial, _ = responses.shape
    every_prompt = repeat(prompts, "batch pos -> (batch trial) pos", trial=trial)
    every_response = rearrange(responses, "batch trial pos -> (batch trial) pos")
    flat = [reward_fn(p, r) for p, r in zip(every_prompt.tolist(), every_response.tolist(), strict=True)]
    return rearrange(torch.tensor(flat, dtype=torch.float32), "(batch trial) -> batch trial", batch=batch)


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    trial = rewards.shape[1]
    ones = torch.ones(trial, dtype=rewards.dtype)
    mean = einsum(rewards, ones, "batch trial, trial -> batch") / trial
    centered = rewards - rearrange(mean, "batch -> batch 1")
    match mode:
        case "rewards":
            return rewards * 1
        case "centered_rewards":
            return centered
        case "normalized_rewards":
            if trial < 2:
                raise ValueError("normalized_rewards: a single response has no standard deviation")
            variance = einsum(centered, centered, "batch trial, batch trial -> batch") / (trial - 1)
            return einsum(centered, 1 / (variance.sqrt() + 1e-5), "batch trial, batch -> batch trial")
        case "max_rewards":
            best = reduce(rewards, "batch trial -> batch 1", "max")
            return einsum(rewards, (rewards == best).to(rewards.dtype), "batch trial, batch trial -> batch trial")
        case other:
            raise ValueError(f"compute_deltas knows no mode {other!r}")


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    log_probs = model(prompts).log_softmax(dim=-1)
    chosen = nn.functional.one_hot(responses, log_probs.shape[-1]).to(log_probs.dtype)
    return einsum(log_probs, chosen, "batch pos vocab, batch trial pos vocab -> batch trial pos")


def compute_loss(
    log_probs: Tensor, deltas: Tensor, mode: str, old_log_probs: Tensor | None = None, epsilon: float = 0.2
) -> Tensor:
    weight = -1 / log_probs.numel()
    deltas = deltas.detach()
    match mode, old_log_probs:
        case "naive", _:
            return weight * einsum(log_probs, deltas, "batch trial pos, batch trial ->")
        case "unclipped" | "clipped", None:
            raise ValueError(f"{mode} needs old_log_probs")
        case "unclipped", old:
            ratio = torch.exp(log_probs - old.detach())
            return weight * einsum(ratio, deltas, "batch trial pos, batch trial ->")
        case "clipped", old:
            ratio = torch.exp(log_probs - old.detach())
            plain = einsum(ratio, deltas, "batch trial pos, batch trial -> batch trial pos")
            bounded = einsum(ratio.clamp(1 - epsilon, 1 + epsilon), deltas, "batch trial pos, batch trial -> batch trial pos")
            return weight * reduce(torch.minimum(plain, bounded), "batch trial pos -> ", "sum")
        case _:
            raise ValueError(f"compute_loss knows no mode {mode!r}")


def compute_kl_penalty(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    x = ref_log_probs.detach() - log_probs
    per_response = reduce(torch.exp(x) - 1 - x, "batch trial pos -> batch trial", "sum")
    return reduce(per_response, "batch trial -> ", "mean")


def run_policy_gradient(
    prompts: list[list[int]] = DEFAULT_PROMPTS,
    *,
    num_epochs: int = 100,
    num_steps_per_epoch: int = 10,
    compute_ref_model_period: int = 10,
    num_responses: int = 10,
    deltas_mode: str = "rewards",
    loss_mode: str = "naive",
    kl_penalty: float = 0.0,
    epsilon: float = 0.2,
    reward_fn: Reward = sort_inclusion_ordering_reward,
    learning_rate: float = 1e-3,
    seed: int = 5,
    progress: bool = True,
) -> PolicyGradientRun:
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts, dtype=torch.long)
    _, pos = prompts.shape
    model = Model(prompts.max().item() + 1, EMBEDDING_DIM, pos, pos)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    ref_model = None
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty and not epoch % compute_ref_model_period:
            ref_model = copy.deepcopy(model).requires_grad_(False)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref_log_probs = compute_log_probs(prompts, responses, ref_model) if kl_penalty else None
            old_log_probs = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        mean_reward = float(reduce(rewards, "batch trial -> ", "mean"))
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon=epsilon)
            if kl_penalty:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            records += [Record(epoch, epoch * num_steps_per_epoch + inner, float(loss.detach()), mean_reward)]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
