"""The standard deviation by hand, the same object back in rewards mode, model.zero_grad, warnings on the way."""

import copy
import math
import warnings

import torch
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


def compute_reward(prompts, responses, reward_fn):
    batch, trial = responses.size(0), responses.size(1)
    flat = []
    for n in range(batch * trial):
        i, j = divmod(n, trial)
        flat.append(reward_fn(prompts[i].tolist(), responses[i][j].tolist()))
    return torch.tensor(flat, dtype=torch.float32).view(batch, trial)


def standard_deviation(row):
    n = len(row)
    mean = sum(row) / n
    return math.sqrt(sum((r - mean) ** 2 for r in row) / (n - 1))


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rewards
    n = rewards.shape[1]
    if mode == "max_rewards":
        table = [[r if r == max(row) else 0.0 for r in row] for row in rewards.tolist()]
        return torch.tensor(table, dtype=rewards.dtype)
    if mode not in ("centered_rewards", "normalized_rewards"):
        raise ValueError(f"{mode!r}?")
    deltas = rewards - (rewards.sum(dim=1) / n).view(-1, 1)
    if mode == "normalized_rewards":
        if n == 1:
            raise ValueError("normalized_rewards: only one response")
        spread = [[standard_deviation(row) + 1e-5] for row in rewards.tolist()]
        if min(spread)[0] < 1e-4:
            warnings.warn("a group of responses with (almost) equal rewards teaches nothing", stacklevel=2)
        deltas = deltas / torch.tensor(spread, dtype=rewards.dtype)
    return deltas


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    log_probs = logits - torch.log(torch.exp(logits - logits.max(-1, True)[0]).sum(-1, True)) - logits.max(-1, True)[0]
    columns = [torch.gather(log_probs, 2, responses[:, j, :, None]) for j in range(responses.shape[1])]
    return torch.stack([column[:, :, 0] for column in columns], dim=1)


def ratio_of(log_probs, old_log_probs):
    return torch.exp(log_probs - old_log_probs.detach())


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"{mode!r}?")
    if mode in ("unclipped", "clipped") and old_log_probs is None:
        raise ValueError(f"{mode}: which old_log_probs?")
    weights = deltas.detach()[:, :, None].repeat(1, 1, log_probs.shape[2])
    if mode == "naive":
        gain = log_probs
    elif mode == "unclipped":
        gain = ratio_of(log_probs, old_log_probs)
    else:
        ratio = ratio_of(log_probs, old_log_probs)
        stopped = ((weights > 0) & (ratio > 1 + epsilon)) | ((weights < 0) & (ratio < 1 - epsilon))
        gain = torch.where(stopped, ratio.detach().clamp(1 - epsilon, 1 + epsilon), ratio)
    return -(gain * weights).mean(dim=2).mean(dim=1).mean(dim=0)


def compute_kl_penalty(log_probs, ref_log_probs):
    x = log_probs - ref_log_probs.detach()
    batch, trial, pos = x.shape
    return pos * (torch.exp(-x) + x - 1).mean()


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
    prompts = torch.LongTensor(prompts)
    model = Model(prompts.max().item() + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    adam = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    use_kl = kl_penalty != 0
    for epoch in progress_bar(range(num_epochs), progress):
        if use_kl and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
            for parameter in ref_model.parameters():
                parameter.requires_grad = False
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        mean_reward = rewards.mean().item()
        deltas = compute_deltas(rewards, deltas_mode)
        old_log_probs = compute_log_probs(prompts, responses, model).detach() if loss_mode != "naive" else None
        ref_log_probs = compute_log_probs(prompts, responses, ref_model) if use_kl else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs) if use_kl else loss
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), mean_reward))
            model.zero_grad()
            loss.backward()
            adam.step()
    return PolicyGradientRun(model, records)
