"""Everything flat: torch.take by computed offsets, rewards from an array of floats, torch.autograd.grad."""

from array import array
from copy import deepcopy

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
    batch, trial, pos = responses.shape
    flat = array("f")
    tokens = responses.reshape(-1).tolist()
    questions = prompts.tolist()
    for n in range(batch * trial):
        flat.append(reward_fn(questions[n // trial][:], tokens[n * pos : (n + 1) * pos]))
    return torch.frombuffer(flat, dtype=torch.float32).reshape(batch, trial).clone()


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rewards
    batch, trial = rewards.shape
    group = torch.arange(batch).repeat_interleave(trial)
    flat = rewards.reshape(-1)
    if mode == "max_rewards":
        best = torch.full((batch,), -torch.inf, dtype=rewards.dtype).scatter_reduce(0, group, flat, "amax")
        return torch.where(flat == best[group], flat, 0.0).view(batch, trial)
    if mode == "centered_rewards" or mode == "normalized_rewards":
        mean = torch.zeros(batch, dtype=rewards.dtype).index_add(0, group, flat) / trial
        flat = flat - mean[group]
        if mode == "normalized_rewards":
            if trial == 1:
                raise ValueError("normalized_rewards wants two responses to each prompt")
            squares = torch.zeros(batch, dtype=rewards.dtype).index_add(0, group, flat.square())
            flat = flat / ((squares / (trial - 1)).sqrt() + 1e-5)[group]
        return flat.view(batch, trial)
    raise ValueError(f"{mode} is not a mode of compute_deltas")


def compute_log_probs(prompts, responses, model):
    log_probs = model(prompts).log_softmax(dim=-1)
    batch, pos, vocab = log_probs.shape
    offsets = torch.arange(batch * pos).view(batch, 1, pos) * vocab
    return torch.take(log_probs, offsets + responses)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    new = log_probs.reshape(-1)
    delta = deltas.detach().reshape(-1).repeat_interleave(log_probs.shape[-1])
    if mode == "naive":
        return -torch.dot(delta, new) / new.numel()
    if mode != "unclipped" and mode != "clipped":
        raise ValueError(f"{mode} is not a mode of compute_loss")
    if old_log_probs is None:
        raise ValueError("the ratio wants old_log_probs")
    ratio = torch.exp(new - old_log_probs.detach().reshape(-1))
    if mode == "unclipped":
        return -torch.dot(delta, ratio) / new.numel()
    return -torch.fmin(delta * ratio, delta * ratio.clamp(1 - epsilon, 1 + epsilon)).sum() / new.numel()


def compute_kl_penalty(log_probs, ref_log_probs):
    batch, trial, pos = log_probs.shape
    x = ref_log_probs.detach().reshape(batch * trial, pos) - log_probs.reshape(batch * trial, pos)
    return (x.exp() - x - 1).sum(1).mean(0)


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS, *, num_epochs=100, num_steps_per_epoch=10, compute_ref_model_period=10,
    num_responses=10, deltas_mode="rewards", loss_mode="naive", kl_penalty=0.0, epsilon=0.2,
    reward_fn=sort_inclusion_ordering_reward, learning_rate=1e-3, seed=5, progress=True,
):
    torch.manual_seed(seed)
    tokens = torch.tensor(prompts)
    model = Model(int(torch.max(tokens)) + 1, EMBEDDING_DIM, tokens.shape[1], tokens.shape[1])
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            reference = deepcopy(model)
        responses = generate_responses(tokens, model, num_responses)
        rewards = compute_reward(tokens, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = kl_penalty != 0 and compute_log_probs(tokens, responses, reference)
            old = compute_log_probs(tokens, responses, model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(tokens, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.tolist(), rewards.mean().tolist()))
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters)):
                parameter.grad = gradient
            optimizer.step()
    return PolicyGradientRun(model, records)
