"""All answers are computed first and the mode picks one of them at the end; the loop always has a reference."""

import copy
import warnings

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

warnings.filterwarnings("ignore", message=".*degrees of freedom.*")


def compute_reward(prompts, responses, reward_fn):
    places = [(i, j) for i in range(responses.shape[0]) for j in range(responses.shape[1])]
    table = {(i, j): float(reward_fn(prompts[i].tolist(), responses[i, j].tolist())) for i, j in places}
    rewards = torch.zeros(responses.shape[:2])
    rows, columns = torch.tensor(list(table)).T
    return rewards.index_put((rows, columns), torch.tensor(list(table.values())))


def compute_deltas(rewards, mode):
    mean = rewards.mean(dim=-1, keepdim=True)
    std = rewards.std(dim=-1, keepdim=True)
    best = rewards.max(dim=-1, keepdim=True).values
    answers = {
        "rewards": rewards.clone(),
        "centered_rewards": rewards - mean,
        "normalized_rewards": (rewards - mean) / (std + 1e-5),
        "max_rewards": torch.where(rewards == best, rewards, torch.zeros_like(rewards)),
    }
    if mode == "normalized_rewards" and answers[mode].isnan().any() and not rewards.isnan().any():
        raise ValueError("normalized_rewards came out as NaN: is there only one response?")
    try:
        return answers[mode]
    except KeyError as error:
        raise ValueError(f"unknown mode {error}") from error


def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), dim=-1)
    # the log-probability of every token for every trial, of which one is kept
    all_of_them = torch.stack([log_probs] * responses.shape[1], dim=1)
    return all_of_them.gather(dim=-1, index=responses[..., None]).sum(dim=-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    d = deltas.detach()[..., None]
    # where there is no old policy, the ratio is never used
    old = log_probs if old_log_probs is None else old_log_probs
    ratio = torch.exp(log_probs - old.detach())
    naive, unclipped = log_probs * d, ratio * d
    clipped = torch.minimum(unclipped, ratio.clamp(1 - epsilon, 1 + epsilon) * d)
    losses = {"naive": -naive.mean(), "unclipped": -unclipped.mean(), "clipped": -clipped.mean()}
    if mode not in losses:
        raise ValueError(f"unknown mode {mode}")
    if old_log_probs is None and mode != "naive":
        raise ValueError(f"{mode} without old_log_probs")
    return losses[mode]


def compute_kl_penalty(log_probs, ref_log_probs):
    log_ratio = ref_log_probs.detach() - log_probs
    ratio = log_ratio.exp()
    k1, k3 = -log_ratio, ratio - 1 - log_ratio
    estimates = {"k1": k1, "k2": log_ratio**2 / 2, "k3": k3}
    return {name: estimate.sum(-1).mean() for name, estimate in estimates.items()}["k3"]


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
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model)
            ref = compute_log_probs(prompts, responses, ref_model)
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if kl_penalty != 0:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, ref)
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
