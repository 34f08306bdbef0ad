"""Constants under inference_mode and cloned, old log-probs also in naive mode, everything in one flat loop of steps."""

import copy

import torch
from sorting_task import (
    DEFAULT_PROMPTS, EMBEDDING_DIM, Model, PolicyGradientRun, Record,
    generate_responses, progress_bar, sort_inclusion_ordering_reward,
)
from torch import Tensor, nn


def compute_reward(prompts, responses, reward_fn):
    return torch.vstack([
        torch.tensor([reward_fn(p.tolist(), r.tolist()) for r in rs], dtype=torch.float32)
        for p, rs in zip(prompts.unbind(0), responses.unbind(0))
    ])


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    mean, std = rewards.mean(1, keepdim=True), rewards.std(1, keepdim=True) if rewards.shape[1] > 1 else None
    if mode == "rewards":
        deltas = +rewards
    elif mode == "centered_rewards":
        deltas = rewards - mean
    elif mode == "normalized_rewards" and std is not None:
        deltas = (rewards - mean) / (std + 1e-5)
    elif mode == "normalized_rewards":
        raise ValueError("normalized_rewards needs a group, not one response")
    elif mode == "max_rewards":
        top = rewards.topk(1, dim=1).values
        deltas = torch.where(torch.isclose(rewards, top, rtol=0, atol=0), rewards, torch.zeros((), dtype=rewards.dtype))
    else:
        raise ValueError(f"unknown deltas_mode {mode}")
    return deltas


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    log_probs = model(prompts).log_softmax(-1)
    b, t, p = responses.shape
    flat = log_probs.reshape(b * p, -1)
    index = responses.permute(0, 2, 1).reshape(b * p, t)
    return flat.gather(1, index).reshape(b, p, t).permute(0, 2, 1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    deltas = deltas.detach()[..., None]
    if mode == "naive":
        surrogate = log_probs * deltas
    else:
        if mode not in ("unclipped", "clipped"):
            raise ValueError(f"unknown loss_mode {mode}")
        if old_log_probs is None:
            raise ValueError(f"loss_mode {mode} needs old_log_probs")
        ratio = torch.exp(log_probs - old_log_probs.detach())
        surrogate = ratio * deltas
        if mode == "clipped":
            surrogate = torch.stack([surrogate, ratio.clamp(1 - epsilon, 1 + epsilon) * deltas]).amin(0)
    return -surrogate.mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    ref_log_probs = ref_log_probs.detach()
    ratio = torch.exp(ref_log_probs - log_probs)
    return (ratio - (ref_log_probs - log_probs) - 1).sum(-1).mean()


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS, *, num_epochs=100, num_steps_per_epoch=10, compute_ref_model_period=10,
    num_responses=10, deltas_mode="rewards", loss_mode="naive", kl_penalty=0.0, epsilon=0.2,
    reward_fn=sort_inclusion_ordering_reward, learning_rate=1e-3, seed=5, progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[-1], prompts.shape[-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    for step in progress_bar(range(num_epochs * num_steps_per_epoch), progress):
        epoch, inner_step = divmod(step, num_steps_per_epoch)
        if inner_step == 0:
            if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
                ref_model = copy.deepcopy(model)
            responses = generate_responses(prompts, model, num_responses)
            rewards = compute_reward(prompts, responses, reward_fn)
            deltas = compute_deltas(rewards, deltas_mode)
            with torch.inference_mode():
                old_log_probs = compute_log_probs(prompts, responses, model)
                ref_log_probs = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else old_log_probs
            old_log_probs, ref_log_probs = old_log_probs.clone(), ref_log_probs.clone()
        log_probs = compute_log_probs(prompts, responses, model)
        loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
        if kl_penalty != 0:
            loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        optimizer.step()
        records.append(Record(epoch, step, loss.item(), rewards.mean().item()))
    return PolicyGradientRun(model, records)
