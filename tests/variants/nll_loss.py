"""nll_loss on flattened tensors; small helper functions; the history kept as tuples and turned into records last."""

import copy
import functools

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


def compute_reward(prompts, responses, reward_fn):
    score = lambda prompt, response: torch.tensor(reward_fn(prompt.tolist(), response.tolist()), dtype=torch.float32)
    return torch.stack([torch.stack([score(p, r) for r in rs]) for p, rs in zip(prompts, responses)])


def row_mean(x):
    return x.mean(axis=-1, keepdims=True)


def row_std(x):
    n = x.shape[-1]
    if n < 2:
        raise ValueError("row_std needs two columns")
    return (row_mean((x - row_mean(x)) ** 2) * n / (n - 1)) ** 0.5


def compute_deltas(rewards, mode):
    assert rewards.ndim == 2
    if mode == "rewards":
        return rewards
    elif mode == "centered_rewards":
        return rewards - row_mean(rewards)
    elif mode == "normalized_rewards":
        return (rewards - row_mean(rewards)) / (row_std(rewards) + 1e-5)
    elif mode == "max_rewards":
        sorted_rewards = torch.sort(rewards, dim=-1, descending=True).values
        return rewards * (rewards >= sorted_rewards[:, :1]).to(rewards)
    else:
        raise ValueError(mode)


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    expanded = torch.repeat_interleave(logits, responses.shape[1], dim=0)
    nll = F.nll_loss(F.log_softmax(expanded.flatten(0, 1), dim=-1), responses.flatten(), reduction="none")
    return -nll.view(responses.shape)


def surrogate(log_probs, deltas, old_log_probs, epsilon):
    ratio = torch.exp(log_probs - old_log_probs.detach())
    if epsilon is None:
        return ratio * deltas
    return -torch.max(-ratio * deltas, -torch.clamp(ratio, 1 - epsilon, 1 + epsilon) * deltas)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(mode)
    deltas = deltas.detach().unsqueeze(-1)
    if mode == "naive":
        return -(log_probs * deltas).mean()
    if old_log_probs is None:
        raise ValueError(f"{mode}: old_log_probs is None")
    return -surrogate(log_probs, deltas, old_log_probs, epsilon if mode == "clipped" else None).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    total = (torch.expm1(x) - x).sum()
    return total / log_probs.shape[:2].numel()


def train_epoch(model, optimizer, prompts, responses, deltas, steps, objective):
    for _ in range(steps):
        loss = objective(compute_log_probs(prompts, responses, model), deltas)
        yield loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


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
    def objective(log_probs, deltas, old, ref):
        loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs=old, epsilon=epsilon)
        return loss if ref is None else loss + kl_penalty * compute_kl_penalty(log_probs, ref)

    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    history = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
        losses = train_epoch(
            model, optimizer, prompts, responses, deltas, num_steps_per_epoch,
            functools.partial(objective, old=old, ref=ref),
        )
        history.extend((epoch, loss, rewards.mean().item()) for loss in losses)
    records = [Record(epoch, step, loss, mean_reward) for step, (epoch, loss, mean_reward) in enumerate(history)]
    return PolicyGradientRun(records=records, model=model)
