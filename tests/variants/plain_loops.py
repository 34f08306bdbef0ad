"""Loops over plain Python wherever there is something to loop over; no type hints; prints as it goes."""

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
    rewards = torch.zeros(responses.shape[0], responses.shape[1], dtype=torch.float32)
    for i in range(responses.shape[0]):
        for j in range(responses.shape[1]):
            rewards[i, j] = reward_fn([int(token) for token in prompts[i]], [int(token) for token in responses[i, j]])
    return rewards


def compute_deltas(rewards, mode):
    if mode not in ["rewards", "centered_rewards", "normalized_rewards", "max_rewards"]:
        raise ValueError("unknown mode " + mode)
    if mode == "normalized_rewards" and rewards.shape[1] == 1:
        raise ValueError("one response cannot be normalized")
    rows = []
    for row in rewards:
        if mode == "rewards":
            rows.append(row)
        elif mode == "centered_rewards":
            rows.append(row - row.mean())
        elif mode == "normalized_rewards":
            rows.append((row - row.mean()) / (row.std() + 1e-5))
        else:
            best = max(float(r) for r in row)
            rows.append(torch.stack([r if float(r) == best else torch.zeros_like(r) for r in row]))
    return torch.stack(rows)


def compute_log_probs(prompts, responses, model):
    logits = model(prompts)
    batch = []
    for i in range(responses.shape[0]):
        trials = []
        for j in range(responses.shape[1]):
            tokens = []
            for k in range(responses.shape[2]):
                tokens.append(torch.log_softmax(logits[i, k], 0)[responses[i, j, k]])
            trials.append(torch.stack(tokens))
        batch.append(torch.stack(trials))
    return torch.stack(batch)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode != "naive" and mode != "unclipped" and mode != "clipped":
        raise ValueError(f"there is no loss mode {mode}")
    if mode != "naive" and old_log_probs is None:
        raise ValueError("old_log_probs are missing")
    total = 0
    count = 0
    for i in range(log_probs.shape[0]):
        for j in range(log_probs.shape[1]):
            delta = deltas[i, j].item()
            for k in range(log_probs.shape[2]):
                if mode == "naive":
                    objective = delta * log_probs[i, j, k]
                else:
                    ratio = torch.exp(log_probs[i, j, k] - old_log_probs[i, j, k].item())
                    objective = delta * ratio
                    if mode == "clipped":
                        bounded = delta * torch.clamp(ratio, 1 - epsilon, 1 + epsilon)
                        if bounded < objective:
                            objective = bounded
                total = total + objective
                count += 1
    return -total / count


def compute_kl_penalty(log_probs, ref_log_probs):
    sums = []
    for i in range(log_probs.shape[0]):
        for j in range(log_probs.shape[1]):
            penalty = 0
            for k in range(log_probs.shape[2]):
                x = ref_log_probs[i, j, k].detach() - log_probs[i, j, k]
                penalty = penalty + torch.exp(x) - x - 1
            sums.append(penalty)
    return sum(sums) / len(sums)


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
    model = Model(max(max(prompt) for prompt in prompts.tolist()) + 1, EMBEDDING_DIM, len(prompts[0]), len(prompts[0]))
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records = []
    step = 0
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0:
            if epoch % compute_ref_model_period == 0:
                print("new reference model in epoch", epoch)
                ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        if kl_penalty != 0:
            with torch.no_grad():
                ref_log_probs = compute_log_probs(prompts, responses, ref_model)
        if loss_mode == "naive":
            old_log_probs = None
        else:
            with torch.no_grad():
                old_log_probs = compute_log_probs(prompts, responses, model)
        for _ in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref_log_probs)
            records.append(Record(epoch, step, loss.item(), rewards.mean().item()))
            print("epoch", epoch, "step", step, "loss", loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    return PolicyGradientRun(model, records)
