"""The deep copy by way of pickle; chunks and splits instead of broadcasting."""

import pickle

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
from torch import nn


def clone(model):
    return pickle.loads(pickle.dumps(model))


def compute_reward(prompts, responses, reward_fn):
    groups = []
    for prompt, group in zip(prompts.split(1), responses.split(1)):
        scores = [reward_fn(prompt[0].tolist(), response[0].tolist()) for response in group[0].split(1)]
        groups.append(torch.tensor([scores], dtype=torch.float32))
    return torch.cat(groups)


def compute_deltas(rewards, mode):
    pieces = []
    for row in rewards.split(1):  # 1 trial
        if mode == "rewards":
            piece = row
        elif mode == "centered_rewards":
            piece = row - row.mean()
        elif mode == "normalized_rewards":
            if row.numel() == 1:
                raise ValueError("a row of one")
            piece = (row - row.mean()) / (row.std() + 1e-5)
        elif mode == "max_rewards":
            piece = row.clone()
            piece[row < row.max()] = 0
        else:
            raise ValueError(f"{mode}: unknown")
        pieces.append(piece)
    return torch.cat(pieces)


def compute_log_probs(prompts, responses, model):
    log_probs = nn.LogSoftmax(-1)(model(prompts)).chunk(len(prompts))
    chosen = []
    for table, group in zip(log_probs, responses):  # 1 pos vocab; trial pos
        chosen.append(table.expand(len(group), -1, -1).gather(2, group.unsqueeze(2)).flatten(1))
    return torch.stack(chosen)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    columns = log_probs.split(1, dim=2)
    d = deltas.detach().unsqueeze(2)
    if mode == "naive":
        losses = [-(column * d).mean() for column in columns]
    elif mode in ("unclipped", "clipped"):
        if old_log_probs is None:
            raise ValueError("old_log_probs: missing")
        losses = []
        for column, old in zip(columns, old_log_probs.detach().split(1, dim=2)):
            ratio = (column - old).exp()
            gain = ratio * d
            if mode == "clipped":
                gain = torch.minimum(gain, ratio.clamp(1 - epsilon, 1 + epsilon) * d)
            losses.append(-gain.mean())
    else:
        raise ValueError(f"{mode}: unknown")
    return torch.stack(losses).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    totals = []
    for new, ref in zip(log_probs, ref_log_probs.detach()):
        x = ref - new
        totals.append((x.exp() - x - 1).sum(dim=1))
    return torch.cat(totals).mean()


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
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = clone(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
