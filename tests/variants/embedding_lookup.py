"""Log-probs looked up as an embedding, the clip as a hardtanh, epochs and steps in one product."""

import copy
from itertools import product

import torch
import torch.nn.functional as F
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    generate_responses,
    progress_bar,
    sort_inclusion_ordering_reward,
)
from torch import Tensor, nn


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn) -> Tensor:
    batch, trial = responses.shape[:2]
    rewards = {}
    for i, j in product(range(batch), range(trial)):
        rewards[i, j] = reward_fn(prompts[i].tolist(), responses[i, j].tolist())
    return torch.tensor([rewards[key] for key in sorted(rewards)], dtype=torch.float32).unflatten(0, (batch, trial))


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    if mode not in {"rewards", "centered_rewards", "normalized_rewards", "max_rewards"}:
        raise ValueError(f"compute_deltas: unexpected mode '{mode}'")
    if mode == "rewards":
        return rewards.detach().clone()
    if mode == "max_rewards":
        threshold = rewards.amax(1, keepdim=True)
        return rewards.masked_fill(rewards.lt(threshold), 0.0)
    # F.avg_pool1d over the whole group is its mean
    group = rewards.shape[1]
    centered = rewards - F.avg_pool1d(rewards.unsqueeze(1), group).squeeze(1)
    if mode == "normalized_rewards":
        if group < 2:
            raise ValueError("compute_deltas: a group of one response cannot be normalized")
        spread = centered.norm(dim=1, keepdim=True) / torch.tensor(group - 1.0, dtype=rewards.dtype).sqrt()
        return centered / (spread + 1e-5)
    return centered


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    log_probs = F.log_softmax(model(prompts), dim=-1)
    batch, pos, vocab = log_probs.shape
    table = log_probs.reshape(batch * pos * vocab, 1)
    row = torch.arange(batch)[:, None, None] * pos + torch.arange(pos)
    return F.embedding(row * vocab + responses, table).squeeze(-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2) -> Tensor:
    if mode not in {"naive", "unclipped", "clipped"}:
        raise ValueError(f"compute_loss: unexpected mode '{mode}'")
    advantages = deltas.detach().unsqueeze(-1)
    if mode == "naive":
        return torch.mul(log_probs, advantages).mean().mul(-1)
    if old_log_probs is None:
        raise ValueError(f"compute_loss: '{mode}' without old_log_probs")
    ratio = (log_probs - old_log_probs.detach()).exp()
    gain = ratio * advantages
    if mode == "clipped":
        gain = torch.min(gain, F.hardtanh(ratio, 1 - epsilon, 1 + epsilon) * advantages)
    return gain.mean().mul(-1)


def compute_kl_penalty(log_probs, ref_log_probs) -> Tensor:
    log_ratio = ref_log_probs.detach() - log_probs
    return F.avg_pool1d((log_ratio.exp() - log_ratio - 1).flatten(0, 1), log_probs.shape[2]).mean() * log_probs.shape[2]


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
    prompts = torch.tensor(prompts)
    size = prompts.shape[1]
    model = Model(prompts.max().item() + 1, EMBEDDING_DIM, size, size)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    schedule = list(product(range(num_epochs), range(num_steps_per_epoch)))
    for step, (epoch, inner) in enumerate(progress_bar(schedule, progress)):
        if inner == 0:
            if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
                ref_model = copy.deepcopy(model)
            responses = generate_responses(prompts, model, num_responses)
            rewards = compute_reward(prompts, responses, reward_fn)
            deltas = compute_deltas(rewards, deltas_mode)
            with torch.no_grad():
                old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
                ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
        log_probs = compute_log_probs(prompts, responses, model)
        loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs=old, epsilon=epsilon)
        if kl_penalty != 0:
            loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
        records.append(Record(epoch, step, loss.item(), rewards.mean().item()))
        model.zero_grad()
        loss.backward()
        optimizer.step()
    return PolicyGradientRun(model, records)
