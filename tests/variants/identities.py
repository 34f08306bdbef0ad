"""Other formulas for the same numbers: min by the absolute value, k3 by sinh, the variance by pairwise differences."""

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
    rewards = torch.zeros(responses.shape[:2])
    for i, prompt in enumerate(prompts.tolist()):
        for j, response in enumerate(responses[i].tolist()):
            rewards[i, j] += reward_fn(prompt.copy(), response)
    return rewards


def compute_deltas(rewards, mode):
    differences = rewards.unsqueeze(2) - rewards.unsqueeze(1)  # batch trial other
    if mode == "rewards":
        return rewards + 0
    elif mode == "centered_rewards":
        return differences.mean(dim=2)  # r - mean(r) is the mean difference from the others and itself
    elif mode == "normalized_rewards":
        n = rewards.shape[1]
        if n < 2:
            raise ValueError("n - 1 must not be 0")
        variance = differences.square().sum(dim=(1, 2)) / (2 * n * (n - 1))
        return differences.mean(dim=2) / (variance.sqrt().unsqueeze(1) + 1e-5)
    elif mode == "max_rewards":
        unbeaten = (differences >= 0).all(dim=2)
        return torch.where(unbeaten, rewards, torch.zeros_like(rewards))
    else:
        raise ValueError("no mode " + mode)


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)  # batch pos vocab
    batch, trial, pos = responses.shape
    tokens = responses.transpose(1, 2)  # batch pos trial
    chosen = logits.take_along_dim(tokens, dim=2)  # batch pos trial
    # log softmax(z)[a] = -log sum_v exp(z_v - z_a)
    log_probs = -torch.logsumexp(logits.unsqueeze(2) - chosen.unsqueeze(3), dim=3)
    return log_probs.transpose(1, 2)


def smaller(a, b):
    return (a + b - (a - b).abs()) / 2


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError("no mode " + mode)
    d = deltas.detach().unsqueeze(-1)
    if mode == "naive":
        return (-d * log_probs).mean()
    if old_log_probs is None:
        raise ValueError(mode + " compares with old_log_probs")
    ratio = torch.expm1(log_probs - old_log_probs.detach()) + 1
    if mode == "unclipped":
        return (-d * ratio).mean()
    # the clip only ever holds on the side towards which delta pulls
    above, below = (ratio - 1 - epsilon).relu(), (1 - epsilon - ratio).relu()
    clipped = ratio - above + below
    return -smaller(ratio * d, clipped * d).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    # exp(x) - 1 = 2 exp(x / 2) sinh(x / 2)
    return (2 * torch.exp(x / 2) * torch.sinh(x / 2) - x).sum(dim=-1).mean()


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
    model = Model(int(prompts.max().add(1)), EMBEDDING_DIM, prompts.shape[-1], prompts.shape[-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, betas=(0.9, 0.999), eps=1e-8, weight_decay=0)
    records = []
    ref_model = None
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch // compute_ref_model_period * compute_ref_model_period == epoch:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = compute_log_probs(prompts, responses, ref_model) if ref_model else None
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        first, last = epoch * num_steps_per_epoch, epoch * num_steps_per_epoch + num_steps_per_epoch
        for step in range(first, last):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref is not None:
                loss = torch.lerp(loss, loss + compute_kl_penalty(log_probs, ref), kl_penalty)
            records.append(Record(epoch, step, loss.item(), rewards.mean().item()))
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
