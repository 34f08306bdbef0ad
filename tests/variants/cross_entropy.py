"""Log-probabilities as minus the cross entropy, k3 by expm1, the maximum by multiplying with a mask."""

import copy

import torch
import torch.nn.functional as F
from sorting_task import *
from torch import nn


def compute_reward(prompts, responses, reward_fn):
    return torch.Tensor(
        [[reward_fn(p.tolist(), r.tolist()) for r in rs] for p, rs in zip(prompts, responses)]
    )


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rewards
    if mode == "centered_rewards":
        return rewards - rewards.mean(-1, keepdim=True)
    if mode == "normalized_rewards":
        if rewards.size(-1) < 2:
            raise ValueError("normalized_rewards needs more than one response")
        std, mean = torch.std_mean(rewards, dim=-1, keepdim=True)
        return (rewards - mean) / (std + 1e-5)
    if mode == "max_rewards":
        return rewards * (rewards == rewards.max(dim=-1, keepdim=True).values)
    raise ValueError(f"unknown mode: {mode}")


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    B, T, P = responses.shape
    logits = logits[:, None].expand(B, T, P, logits.shape[-1])
    return -F.cross_entropy(logits.permute(0, 3, 1, 2), responses, reduction="none")


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    deltas = deltas[..., None].detach()
    if mode == "naive":
        return -(deltas * log_probs).mean()
    if mode not in ("unclipped", "clipped"):
        raise ValueError(f"unknown mode: {mode}")
    if old_log_probs is None:
        raise ValueError(f"{mode} needs old_log_probs")
    ratios = (log_probs - old_log_probs.detach()).exp()
    objective = ratios * deltas
    if mode == "clipped":
        objective = torch.min(objective, torch.clip(ratios, 1 - epsilon, 1 + epsilon) * deltas)
    return -objective.mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return (torch.expm1(x) - x).sum(-1).mean()


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS, *, num_epochs=100, num_steps_per_epoch=10, compute_ref_model_period=10,
    num_responses=10, deltas_mode="rewards", loss_mode="naive", kl_penalty=0.0, epsilon=0.2,
    reward_fn=sort_inclusion_ordering_reward, learning_rate=1e-3, seed=5, progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.LongTensor(prompts)
    model = Model(int(prompts.max() + 1), EMBEDDING_DIM, prompts.size(1), prompts.size(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        if kl_penalty != 0:
            with torch.no_grad():
                ref_log_probs = compute_log_probs(prompts, responses, ref_model)
        with torch.no_grad():  # not needed in naive mode, and harmless
            old_log_probs = compute_log_probs(prompts, responses, model)
        for i in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if kl_penalty != 0:
                loss += kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            optimizer.zero_grad()
            loss.backward()
            records.append(Record(epoch, epoch * num_steps_per_epoch + i, loss.item(), rewards.mean().item()))
            optimizer.step()
    return PolicyGradientRun(model, records)
