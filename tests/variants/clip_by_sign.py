"""The clip by the sign of delta, as Spinning Up writes it; everything called by keyword."""

from __future__ import annotations

import copy

import torch
from einops import rearrange, repeat
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
    scores = []
    for prompt, trials in zip(prompts, responses):
        scores.append(torch.tensor([reward_fn(prompt.tolist(), trial.tolist()) for trial in trials], dtype=torch.float32))
    return torch.stack(scores, dim=0)


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    modes = {"rewards", "centered_rewards", "normalized_rewards", "max_rewards"}
    if mode not in modes:
        raise ValueError(f"mode {mode!r} is none of {modes}")
    if mode == "rewards":
        return rewards
    by_trial = rearrange(rewards, "batch trial -> trial batch")
    if mode == "max_rewards":
        deltas = torch.where(by_trial < by_trial.max(dim=0).values, 0, by_trial)
    else:
        deltas = by_trial - by_trial.mean(dim=0)
        if mode == "normalized_rewards":
            if len(by_trial) < 2:
                raise ValueError("normalized_rewards needs two responses")
            deltas = deltas / (by_trial.std(dim=0) + 1e-5)
    return rearrange(deltas, "trial batch -> batch trial")


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    trials = responses.shape[1]
    repeated = repeat(prompts, "batch pos -> (batch trial) pos", trial=trials)
    tokens = rearrange(responses, "batch trial pos -> (batch trial) pos 1")
    chosen = torch.take_along_dim(model(repeated).log_softmax(-1), tokens, dim=-1)
    return rearrange(chosen, "(batch trial) pos 1 -> batch trial pos", trial=trials)


def compute_loss(
    log_probs: Tensor, deltas: Tensor, mode: str, old_log_probs: Tensor | None = None, epsilon: float = 0.2
) -> Tensor:
    advantages = deltas.detach()[:, :, None]
    if mode == "naive":
        return -torch.mean(log_probs * advantages)
    if mode not in ("unclipped", "clipped"):
        raise ValueError(f"mode {mode!r} is not naive, unclipped or clipped")
    if old_log_probs is None:
        raise ValueError(f"mode {mode!r} needs old_log_probs")
    ratio = torch.exp(log_probs - old_log_probs.detach())
    if mode == "clipped":
        ratio = torch.where(advantages > 0, ratio.clamp(max=1 + epsilon), ratio.clamp(min=1 - epsilon))
    return -torch.mean(ratio * advantages)


def compute_kl_penalty(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    with torch.no_grad():
        ref_log_probs = ref_log_probs.clone()
    x = ref_log_probs - log_probs
    return torch.mean((torch.exp(x) - x - 1).sum(dim=-1))


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
    tokens = torch.tensor(data=prompts)
    length = tokens.shape[1]
    model = Model(
        vocab_size=max(token for prompt in prompts for token in prompt) + 1,
        embedding_dim=EMBEDDING_DIM,
        prompt_length=length,
        response_length=length,
    )
    optimizer = torch.optim.Adam(params=model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(iterable=range(num_epochs), enabled=progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts=tokens, model=model, num_responses=num_responses)
        rewards = compute_reward(prompts=tokens, responses=responses, reward_fn=reward_fn)
        deltas = compute_deltas(rewards=rewards, mode=deltas_mode)
        old_log_probs, ref_log_probs = None, None
        with torch.no_grad():
            if loss_mode != "naive":
                old_log_probs = compute_log_probs(prompts=tokens, responses=responses, model=model)
            if kl_penalty != 0:
                ref_log_probs = compute_log_probs(prompts=tokens, responses=responses, model=ref_model)
        for inner_step in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts=tokens, responses=responses, model=model)
            loss = compute_loss(
                log_probs=log_probs, deltas=deltas, mode=loss_mode, old_log_probs=old_log_probs, epsilon=epsilon
            )
            if ref_log_probs is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs=log_probs, ref_log_probs=ref_log_probs)
            record = Record(
                epoch=epoch,
                step=epoch * num_steps_per_epoch + inner_step,
                loss=float(loss),
                mean_reward=float(rewards.mean()),
            )
            records.append(record)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model=model, records=records)
