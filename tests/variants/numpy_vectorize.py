"""NumPy for rewards and deltas (np.vectorize with a signature, ddof=1), torch for what has a gradient."""

import copy

import numpy as np
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
    def score(prompt, response):
        return float(reward_fn([int(t) for t in prompt], [int(t) for t in response]))

    scores = np.vectorize(score, signature="(p),(r)->()")(prompts.numpy()[:, None, :], responses.numpy())
    return torch.from_numpy(scores.astype("float32"))


def compute_deltas(rewards, mode):
    r = rewards.detach().cpu().numpy()
    match mode:
        case "rewards":
            deltas = r.copy()
        case "centered_rewards":
            deltas = r - np.mean(r, axis=1, keepdims=True)
        case "normalized_rewards":
            if r.shape[1] < 2:
                raise ValueError("np.std with ddof=1 of one number is NaN")
            deltas = (r - r.mean(axis=1, keepdims=True)) / (r.std(axis=1, ddof=1, keepdims=True) + 1e-5)
        case "max_rewards":
            deltas = np.where(r == np.max(r, axis=1, keepdims=True), r, np.zeros_like(r))
        case _:
            raise ValueError("deltas: unknown mode {!r}".format(mode))
    return torch.tensor(deltas, dtype=rewards.dtype)


def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), -1)
    i, j, k = np.indices(tuple(responses.shape))
    return log_probs[torch.from_numpy(i), torch.from_numpy(k), responses]


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    constants = [None if t is None else torch.from_numpy(t.detach().numpy().copy()) for t in (deltas, old_log_probs)]
    weight, old = constants[0][..., np.newaxis], constants[1]
    if mode == "naive":
        return -torch.mean(weight * log_probs)
    if mode not in ("unclipped", "clipped"):
        raise ValueError("loss: unknown mode {!r}".format(mode))
    if old is None:
        raise ValueError("loss: old_log_probs is None")
    ratio = torch.exp(log_probs - old)
    if mode == "unclipped":
        return -torch.mean(weight * ratio)
    lower, upper = np.array([1.0 - epsilon, 1.0 + epsilon]).tolist()
    return -torch.mean(torch.minimum(weight * ratio, weight * torch.clip(ratio, lower, upper)))


def compute_kl_penalty(log_probs, ref_log_probs):
    x = torch.from_numpy(ref_log_probs.detach().numpy()) - log_probs
    k3 = torch.exp(x) - x - 1
    return torch.sum(k3) / np.prod(k3.shape[:-1]).item()


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
    np.random.seed(seed)
    torch.manual_seed(seed)
    array = np.asarray(prompts)
    prompts = torch.as_tensor(array)
    model = Model(int(array.max()) + 1, EMBEDDING_DIM, array.shape[1], array.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    losses = np.empty((num_epochs, num_steps_per_epoch))
    mean_rewards = np.empty(num_epochs)
    for epoch in progress_bar(np.arange(num_epochs), progress):
        if kl_penalty != 0 and np.mod(epoch, compute_ref_model_period) == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        mean_rewards[epoch] = rewards.numpy().mean()
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            losses[epoch, inner] = loss.detach().numpy()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    records = [
        Record(epoch, step, losses[epoch].tolist()[inner], mean_rewards.tolist()[epoch])
        for step, (epoch, inner) in enumerate(np.ndindex(*losses.shape))
    ]
    return PolicyGradientRun(model, records)
