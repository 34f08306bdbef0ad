"""Index tensors for the chosen tokens, minimum and maximum for the clip, everything called by position."""

import copy

import sorting_task
import torch
from sorting_task import DEFAULT_PROMPTS, EMBEDDING_DIM, PolicyGradientRun, Record, generate_responses
from torch import Tensor, nn


def compute_reward(prompts, responses, reward_fn):
    rewards = torch.empty(responses.shape[:-1], dtype=torch.float32)
    for index in torch.cartesian_prod(*map(torch.arange, rewards.shape)).tolist():
        prompt, response = prompts[index[0]], responses[tuple(index)]
        rewards[tuple(index)] = reward_fn(prompt.tolist(), response.tolist())
    return rewards


def compute_deltas(rewards, mode):
    mean = rewards.mean(dim=-1, keepdim=True)
    if mode == "rewards":
        deltas = rewards.detach().clone()
    elif mode == "centered_rewards":
        deltas = rewards.sub(mean)
    elif mode == "normalized_rewards":
        if rewards.shape[-1] == 1:
            raise ValueError("cannot normalize a group of one")
        deltas = rewards.sub(mean).div(rewards.var(dim=-1, keepdim=True, correction=1).sqrt().add(1e-5))
    elif mode == "max_rewards":
        deltas = torch.zeros_like(rewards)
        keep = rewards == rewards.max(dim=-1, keepdim=True)[0]
        deltas[keep] = rewards[keep]
    else:
        raise ValueError("not a mode: {}".format(mode))
    return deltas


def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), dim=-1)
    b = torch.arange(responses.shape[0])[:, None, None]
    p = torch.arange(responses.shape[2])[None, None, :]
    return log_probs[b, p, responses]


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    deltas = torch.as_tensor(deltas).detach().unsqueeze(-1)
    if mode == "naive":
        objective = deltas * log_probs
    elif mode == "unclipped" or mode == "clipped":
        if old_log_probs is None:
            raise ValueError("no old_log_probs")
        ratio = (log_probs - old_log_probs.clone().detach()).exp()
        objective = ratio * deltas
        if mode == "clipped":
            low, high = torch.full_like(ratio, 1 - epsilon), torch.full_like(ratio, 1 + epsilon)
            clipped = torch.minimum(torch.maximum(ratio, low), high)
            objective = torch.minimum(objective, clipped * deltas)
    else:
        raise ValueError("not a mode: {}".format(mode))
    return objective.mean().neg()


def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    return torch.mean(torch.sum(torch.exp(log_ratio) - log_ratio - 1, 2))


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
    reward_fn=sorting_task.sort_inclusion_ordering_reward,
    learning_rate=1e-3,
    seed=5,
    progress=True,
):
    torch.manual_seed(seed)
    prompts = torch.tensor(prompts)
    model = sorting_task.Model(1 + prompts.max().item(), EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    optimizer = torch.optim.Adam(list(model.parameters()), lr=learning_rate)
    records = []
    for epoch in sorting_task.progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.set_grad_enabled(False):
            old = None if loss_mode == "naive" else compute_log_probs(prompts, responses, model)
            ref = None if kl_penalty == 0 else compute_log_probs(prompts, responses, ref_model)
        for step in range(epoch * num_steps_per_epoch, (epoch + 1) * num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref is not None:
                loss = loss + compute_kl_penalty(log_probs, ref) * kl_penalty
            records.append(Record(epoch, step, loss.item(), rewards.mean().item()))
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
