"""Arithmetic in float64 whatever comes in, and back to the given dtype; the default dtype changed and restored."""

import contextlib
import copy

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


@contextlib.contextmanager
def default_dtype(dtype):
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def compute_reward(prompts, responses, reward_fn):
    with default_dtype(torch.float64):
        scores = [[reward_fn(p.tolist(), r.tolist()) * 1.0 for r in g] for p, g in zip(prompts, responses)]
        rewards = torch.tensor(scores)
    return rewards.float()


def compute_deltas(rewards, mode):
    r = rewards.double()
    if mode == "rewards":
        deltas = r
    elif mode == "centered_rewards":
        deltas = r - r.mean(-1, keepdim=True)
    elif mode == "normalized_rewards":
        if r.shape[-1] == 1:
            raise ValueError("cannot normalize one response")
        deltas = (r - r.mean(-1, keepdim=True)) / (r.std(-1, keepdim=True) + 1e-5)
    elif mode == "max_rewards":
        deltas = r * (r == r.max(-1, keepdim=True).values)
    else:
        raise ValueError(f"mode {mode} is not implemented")
    return deltas.to(rewards.dtype)


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    log_probs = F.log_softmax(logits, dim=-1, dtype=torch.float64)
    log_probs = log_probs[:, None].expand(-1, responses.shape[1], -1, -1)
    return torch.take_along_dim(log_probs, responses[..., None], -1).squeeze(-1).to(logits.dtype)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    new, advantages = log_probs.double(), deltas.detach().double().unsqueeze(-1)
    if mode == "naive":
        loss = -(new * advantages).mean()
    elif mode in ("unclipped", "clipped"):
        if old_log_probs is None:
            raise ValueError(f"mode {mode} needs old_log_probs")
        ratio = torch.exp(new - old_log_probs.detach().double())
        objective = ratio * advantages
        if mode == "clipped":
            objective = torch.minimum(objective, ratio.clamp(1 - epsilon, 1 + epsilon) * advantages)
        loss = -objective.mean()
    else:
        raise ValueError(f"mode {mode} is not implemented")
    return loss.to(log_probs.dtype)


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach().double() - log_probs.double()
    return (torch.exp(x) - x - 1).sum(-1).mean().type_as(log_probs)


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
    prompts = torch.tensor(prompts, dtype=torch.int64)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        mean_reward = rewards.double().mean().item()
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.double().item(), mean_reward))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
