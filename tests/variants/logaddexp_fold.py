"""The softmax's normaliser folded over the vocabulary by logaddexp, e to the power of x, while loops."""

import copy
import functools
import math

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
    rewards = []
    i = 0
    while i < len(prompts):
        rewards.append([])
        j = 0
        while j < len(responses[i]):
            rewards[-1].append(float(reward_fn(prompts[i].tolist(), responses[i][j].tolist())))
            j += 1
        i += 1
    return torch.FloatTensor(rewards)


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rewards
    columns = rewards.unbind(dim=1)
    n = len(columns)
    if mode == "max_rewards":
        best = functools.reduce(torch.maximum, columns)
        return torch.stack([torch.where(column == best, column, torch.zeros_like(column)) for column in columns], dim=1)
    mean = functools.reduce(torch.add, columns) / n
    centered = [column - mean for column in columns]
    if mode == "centered_rewards":
        return torch.stack(centered, dim=1)
    if mode != "normalized_rewards":
        raise ValueError("mode is " + repr(mode))
    if n < 2:
        raise ValueError("one column has no standard deviation")
    squares = functools.reduce(torch.add, (column**2 for column in centered))
    return torch.stack([column / ((squares / (n - 1)) ** 0.5 + 1e-5) for column in centered], dim=1)


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    log_partition = functools.reduce(torch.logaddexp, logits.unbind(-1))  # batch pos
    by_token = logits.movedim(-1, 0)  # vocab batch pos
    chosen = torch.zeros(responses.shape, dtype=logits.dtype)
    for token, scores in enumerate(by_token):
        chosen = torch.where(responses == token, scores[:, None, :], chosen)
    return chosen - log_partition[:, None, :]


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    needs_old = {"naive": False, "unclipped": True, "clipped": True}.get(mode)
    if needs_old is None:
        raise ValueError("mode is " + repr(mode))
    weight = deltas.detach()[..., None]
    if not needs_old:
        return (log_probs * weight).mean() * -1.0
    if old_log_probs is None:
        raise ValueError("old_log_probs is None")
    ratio = math.e ** (log_probs - old_log_probs.detach())
    objectives = [ratio * weight]
    if mode == "clipped":
        objectives.append(ratio.clamp_min(1 - epsilon).clamp_max(1 + epsilon) * weight)
    return functools.reduce(torch.min, objectives).mean() * -1.0


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    per_token = math.e**x - x - 1
    return functools.reduce(torch.add, per_token.unbind(-1)).mean()


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
    largest = functools.reduce(max, prompts.flatten().tolist())
    model = Model(largest + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    epochs = iter(progress_bar(range(num_epochs), progress))
    until_refresh = 0
    while (epoch := next(epochs, None)) is not None:
        if until_refresh == 0:
            ref_model = copy.deepcopy(model) if kl_penalty != 0 else None
            until_refresh = compute_ref_model_period
        until_refresh -= 1
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = None
            if loss_mode != "naive":
                old = compute_log_probs(prompts, responses, model)
            if ref_model is not None:
                ref = compute_log_probs(prompts, responses, ref_model)
        inner = 0
        while inner < num_steps_per_epoch:
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref_model is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, len(records), loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            inner += 1
    return PolicyGradientRun(model, records)
