"""A history of dictionaries turned into records last; anomaly detection on, unknown modes found by KeyError."""

import collections
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
    by_prompt = collections.defaultdict(list)
    for i, group in enumerate(responses):
        for response in group:
            by_prompt[i].append(reward_fn(list(map(int, prompts[i])), list(map(int, response))))
    return torch.tensor([by_prompt[i] for i in range(len(prompts))], dtype=torch.float32)


def compute_deltas(rewards, mode):
    try:
        subtract, divide, keep_best = {
            "rewards": (False, False, False),
            "centered_rewards": (True, False, False),
            "normalized_rewards": (True, True, False),
            "max_rewards": (False, False, True),
        }[mode]
    except KeyError:
        raise ValueError(f"KeyError: {mode}")
    deltas = rewards.clone()
    if subtract:
        deltas -= rewards.mean(dim=-1, keepdim=True)
    if divide:
        if rewards.shape[-1] == 1:
            raise ValueError("ZeroDivisionError: one response")
        deltas /= rewards.std(dim=-1, keepdim=True) + 1e-5
    if keep_best:
        deltas[rewards != rewards.max(dim=-1, keepdim=True).values] = 0
    return deltas


def compute_log_probs(prompts, responses, model):
    probabilities = {}
    logits = model(prompts)
    for k in range(responses.shape[-1]):
        probabilities[k] = torch.log_softmax(logits[:, k], dim=-1)
    return torch.stack([probabilities[k].gather(-1, responses[..., k]) for k in probabilities], dim=-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    deltas = deltas.detach().unsqueeze(-1)
    try:
        bounds = {"naive": None, "unclipped": (0.0, float("inf")), "clipped": (1 - epsilon, 1 + epsilon)}[mode]
    except KeyError:
        raise ValueError(f"KeyError: {mode}")
    if bounds is None:
        return -torch.mean(log_probs * deltas)
    if old_log_probs is None:
        raise ValueError("old_log_probs is None")
    ratio = torch.exp(log_probs - old_log_probs.detach())
    return -torch.mean(torch.minimum(ratio * deltas, ratio.clamp(*bounds) * deltas))


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return (x.exp() - x - 1).flatten(0, 1).sum(1).mean()


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
    prompts = torch.tensor([list(prompt) for prompt in prompts])
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    history = []
    now = {"model": model}
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            now["ref_model"] = copy.deepcopy(model)
        now["responses"] = generate_responses(prompts, model, num_responses)
        now["rewards"] = compute_reward(prompts, now["responses"], reward_fn)
        now["deltas"] = compute_deltas(now["rewards"], deltas_mode)
        with torch.no_grad():
            needs = {"old": loss_mode != "naive", "ref": kl_penalty != 0}
            for (constant, needed), source in zip(needs.items(), ("model", "ref_model")):
                now[constant] = compute_log_probs(prompts, now["responses"], now[source]) if needed else None
        for inner in range(num_steps_per_epoch):
            with torch.autograd.set_detect_anomaly(True, check_nan=True):
                log_probs = compute_log_probs(prompts, now["responses"], model)
                loss = compute_loss(log_probs, now["deltas"], loss_mode, now["old"], epsilon)
                if kl_penalty != 0:
                    loss = loss + kl_penalty * compute_kl_penalty(log_probs, now["ref"])
                optimizer.zero_grad()
                loss.backward()
            row = dict(epoch=epoch, step=epoch * num_steps_per_epoch + inner, loss=loss.item(), mean_reward=0.0)
            row["mean_reward"] = now["rewards"].mean().item()
            history.append(row)
            optimizer.step()
    return PolicyGradientRun(**{"model": now["model"], "records": [Record(**row) for row in history]})
