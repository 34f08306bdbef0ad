"""One-hot masks instead of gather, losses instead of objectives (-max of minuses), rewards by way of NumPy."""

from copy import deepcopy

import numpy as np
import torch
import torch.nn.functional as F
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    generate_responses,
    sort_inclusion_ordering_reward,
)
from torch import Tensor, nn


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn) -> Tensor:
    rewards = np.zeros(responses.shape[:2])
    for i, j in np.ndindex(*rewards.shape):
        rewards[i, j] = reward_fn(prompts[i].numpy().tolist(), responses[i, j].numpy().tolist())
    return torch.from_numpy(rewards.astype(np.float32))


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    rewards = rewards.clone()
    if mode == "centered_rewards" or mode == "normalized_rewards":
        deltas = rewards - rewards.mean(dim=-1).unsqueeze(-1)
        if mode == "normalized_rewards":
            n = rewards.shape[-1]
            if n < 2:
                raise ValueError("normalized_rewards is undefined for one response per prompt")
            deltas /= torch.sqrt((deltas**2).sum(-1, keepdim=True) / (n - 1)) + 1e-5
        return deltas
    if mode == "max_rewards":
        rewards[rewards < rewards.max(-1, keepdim=True)[0]] = 0
        return rewards
    if mode == "rewards":
        return rewards
    raise ValueError(f"Unknown mode {mode}")


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    log_probs = F.log_softmax(model(prompts), dim=-1).unsqueeze(1)
    chosen = F.one_hot(responses, num_classes=log_probs.shape[-1])
    return (log_probs * chosen).sum(dim=-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2) -> Tensor:
    advantages = deltas.detach().reshape(*deltas.shape, 1)
    if mode == "naive":
        return (-advantages * log_probs).mean()
    if mode in {"unclipped", "clipped"} and old_log_probs is None:
        raise ValueError("give old_log_probs for mode " + mode)
    if mode == "unclipped":
        return (-advantages * torch.exp(log_probs - old_log_probs.detach())).mean()
    if mode == "clipped":
        ratio = torch.exp(log_probs - old_log_probs.detach())
        pg_loss1 = -advantages * ratio
        pg_loss2 = -advantages * torch.clamp(ratio, min=1 - epsilon, max=1 + epsilon)
        return torch.max(pg_loss1, pg_loss2).mean()
    raise ValueError(f"Unknown mode {mode}")


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    k3 = torch.exp(x) - x - 1.0
    return k3.mean(dim=(0, 1)).sum()


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS,
    *,
    num_epochs=100,
    num_steps_per_epoch=10,
    compute_ref_model_period=10,
    num_responses=10,
    deltas_mode="rewards",
    loss_mode="naive",
    kl_penalty=0.0,
    epsilon=0.2,
    reward_fn=sort_inclusion_ordering_reward,
    learning_rate=1e-3,
    seed=5,
    progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.from_numpy(np.array(prompts, dtype=np.int64))
    length = prompts.shape[1]
    model = Model(int(prompts.numpy().max()) + 1, EMBEDDING_DIM, length, length)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)
    records = []
    for epoch in range(num_epochs):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        old_log_probs = ref_log_probs = None
        if loss_mode != "naive":
            old_log_probs = compute_log_probs(prompts, responses, model).detach()
        if kl_penalty != 0:
            ref_log_probs = compute_log_probs(prompts, responses, ref_model).detach()
        losses = []
        for _ in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if ref_log_probs is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mean_reward = rewards.mean().item()
        records += [
            Record(epoch, epoch * num_steps_per_epoch + k, value, mean_reward) for k, value in enumerate(losses)
        ]
    return PolicyGradientRun(model, records)
