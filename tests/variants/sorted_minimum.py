"""The smaller of two objectives as the first of them sorted, winners by the Heaviside step, Welford's variance."""

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
    def score(n):
        i, j = divmod(n, responses.shape[1])
        return reward_fn(prompts[i].tolist(), responses[i, j].tolist())

    return torch.tensor([float(score(n)) for n in range(responses[..., 0].numel())]).reshape(*responses.shape[:-1])


def welford(columns):
    """Mean and sample variance in one pass over the columns."""
    mean, total = torch.zeros_like(columns[0]), torch.zeros_like(columns[0])
    for count, column in enumerate(columns, start=1):
        change = column - mean
        mean = mean + change / count
        total = total + change * (column - mean)
    return mean, total / max(1, len(columns) - 1)


def compute_deltas(rewards, mode):
    known = ["rewards", "centered_rewards", "normalized_rewards", "max_rewards"]
    if known.count(mode) == 0:
        raise ValueError(f"{mode!r} not in {known}")
    if mode == "rewards":
        return rewards.clone()
    if mode == "max_rewards":
        gap = rewards - torch.amax(rewards, dim=-1, keepdim=True)
        return rewards * torch.heaviside(gap, torch.ones((), dtype=rewards.dtype))
    mean, variance = welford(rewards.unbind(-1))
    deltas = rewards - mean.unsqueeze(-1)
    if mode == "normalized_rewards":
        if rewards.shape[-1] < 2:
            raise ValueError("Welford's variance needs two columns")
        deltas = deltas.div(variance.sqrt().unsqueeze(-1) + 1e-5)
    return deltas


def compute_log_probs(prompts, responses, model):
    log_probs = model(prompts).log_softmax(dim=-1)
    by_position = []
    for k in range(responses.shape[-1]):
        by_position.append(torch.gather(log_probs[:, k, :], 1, responses[:, :, k]))  # batch trial
    return torch.stack(by_position, dim=-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    known = ["naive", "unclipped", "clipped"]
    if known.count(mode) == 0:
        raise ValueError(f"{mode!r} not in {known}")
    level = known.index(mode)
    deltas = deltas.detach().unsqueeze(-1)
    if level == 0:
        return -(deltas * log_probs).mean()
    if old_log_probs is None:
        raise ValueError(f"{mode!r} needs the log-probs of the old policy")
    ratio = torch.exp(log_probs.sub(old_log_probs.detach()))
    candidates = [ratio * deltas, ratio.clamp(min=1 - epsilon, max=1 + epsilon) * deltas]
    lowest = torch.stack(candidates[:level], dim=-1).sort(dim=-1).values[..., 0]
    return -lowest.mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    per_response = torch.cumsum(x.exp() - x - 1, dim=-1)[..., -1]
    return per_response.mean()


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
    tokens_in_use = torch.unique(prompts)  # sorted
    model = Model(tokens_in_use[-1].item() + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    refresh = range(0, num_epochs, compute_ref_model_period) if kl_penalty != 0 else range(0)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if epoch in refresh:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        old_log_probs = None
        with torch.no_grad():
            if refresh:
                ref_log_probs = compute_log_probs(prompts, responses, ref_model)
            if loss_mode != "naive":
                old_log_probs = compute_log_probs(prompts, responses, model)
        for inner in range(num_steps_per_epoch):
            optimizer.zero_grad()
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if refresh:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            loss.backward()
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.step()
    return PolicyGradientRun(model, records)
