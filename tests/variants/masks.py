"""Boolean masks decide everything: winners, chosen tokens, and which tokens the clip leaves a gradient."""

import copy

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
    rewards = torch.zeros(responses.shape[:2], dtype=torch.float32)
    todo = torch.ones_like(rewards, dtype=torch.bool)
    scores = []
    for i, j in zip(*torch.nonzero(todo, as_tuple=True)):
        scores.append(float(reward_fn(prompts[i].tolist(), responses[i, j].tolist())))
    rewards[todo] = torch.tensor(scores)
    return rewards


def compute_deltas(rewards, mode):
    if mode == "rewards":
        mask = torch.ones_like(rewards, dtype=torch.bool)
        return torch.where(mask, rewards, 0)
    if mode == "max_rewards":
        mask = torch.logical_not(rewards.unsqueeze(1) > rewards.unsqueeze(2)).all(dim=2)  # nobody is better
        return torch.where(mask, rewards, 0)
    if mode not in ("centered_rewards", "normalized_rewards"):
        raise ValueError(f"mode {mode}")
    n = rewards.shape[1]
    same_group = torch.ones(n, n, dtype=torch.bool).unsqueeze(0)
    centered = rewards - torch.where(same_group, rewards.unsqueeze(1), 0).sum(dim=2) / same_group.sum(dim=2)
    if mode == "centered_rewards":
        return centered
    if n < 2:
        raise ValueError("mode normalized_rewards with one response")
    return centered / (torch.linalg.norm(centered, dim=1, keepdim=True) / (n - 1) ** 0.5 + 1e-5)


def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), dim=-1)
    batch, pos, vocab = log_probs.shape
    everything = log_probs.unsqueeze(1).expand(batch, responses.shape[1], pos, vocab)
    chosen = responses.unsqueeze(-1) == torch.arange(vocab)
    return everything.masked_select(chosen).view(responses.shape)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"mode {mode}")
    weights = deltas.detach().unsqueeze(-1).expand_as(log_probs)
    if mode == "naive":
        return -(weights * log_probs).mean()
    if old_log_probs is None:
        raise ValueError(f"mode {mode} without old_log_probs")
    ratio = torch.exp(log_probs - old_log_probs.detach())
    if mode == "unclipped":
        return -(weights * ratio).mean()
    too_high = torch.logical_and(weights > 0, ratio > 1 + epsilon)
    too_low = torch.logical_and(weights < 0, ratio < 1 - epsilon)
    ratio = ratio.masked_fill(too_high, 1 + epsilon).masked_fill(too_low, 1 - epsilon)
    return -(weights * ratio).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    mask = torch.ones_like(x)
    k3 = (torch.exp(x) - x - 1) * mask
    return (k3.sum(dim=-1) / mask[..., 0]).mean()


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
    renew = (torch.arange(num_epochs) % compute_ref_model_period == 0) & (kl_penalty != 0)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if renew[epoch]:
            ref_model = copy.deepcopy(model)
            ref_model.zero_grad()
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model)
            ref = compute_log_probs(prompts, responses, ref_model) if renew.any() else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
