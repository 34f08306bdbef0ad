"""The lecture's notation kept: Greek letters as names, one symbol a quantity, subscripts written out."""

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
from torch import exp, log_softmax

ε_std = 1e-5
モード = ("naive", "unclipped", "clipped")


def compute_reward(prompts, responses, reward_fn):
    r = torch.zeros(responses.shape[0], responses.shape[1])
    for i, s in enumerate(prompts):
        for j, a in enumerate(responses[i]):
            r[i, j] = reward_fn(s.tolist(), a.tolist())
    return r


def compute_deltas(rewards, mode):
    r = rewards
    μ = r.mean(dim=1, keepdim=True)
    if mode == "rewards":
        δ = r
    elif mode == "centered_rewards":
        δ = r - μ
    elif mode == "normalized_rewards":
        G = r.shape[1]
        if G < 2:
            raise ValueError("σ is not defined for G = 1")
        σ = (((r - μ) ** 2).sum(dim=1, keepdim=True) / (G - 1)) ** 0.5
        δ = (r - μ) / (σ + ε_std)
    elif mode == "max_rewards":
        r_max = r.max(dim=1, keepdim=True).values
        δ = torch.where(r == r_max, r, 0 * r)
    else:
        raise ValueError(f"δ is not defined for “{mode}”")
    return δ


def compute_log_probs(prompts, responses, model):
    log_π = log_softmax(model(prompts), dim=-1)
    B, G, T = responses.shape
    β = torch.arange(B).view(B, 1, 1).expand(B, G, T)
    τ = torch.arange(T).view(1, 1, T).expand(B, G, T)
    return log_π[β, τ, responses]


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    ε, δ, log_π = epsilon, deltas.detach()[..., None], log_probs
    if mode not in モード:
        raise ValueError(f"L is not defined for “{mode}”")
    if mode == "naive":
        return -(δ * log_π).mean()
    if old_log_probs is None:
        raise ValueError("π_old is not given")
    log_π_old = old_log_probs.detach()
    ρ = exp(log_π - log_π_old)
    if mode == "unclipped":
        return -(ρ * δ).mean()
    return -torch.minimum(ρ * δ, ρ.clamp(1 - ε, 1 + ε) * δ).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    log_π, log_π_ref = log_probs, ref_log_probs.detach()
    χ = log_π_ref - log_π
    k3 = exp(χ) - χ - 1
    return k3.sum(dim=-1).mean()


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
    s = torch.tensor(prompts)
    V, T = int(s.max()) + 1, s.shape[1]
    π_θ = Model(V, EMBEDDING_DIM, T, T)
    θ = π_θ.parameters()
    α, β = learning_rate, kl_penalty
    adam = torch.optim.Adam(θ, lr=α)
    history = []
    for k in progress_bar(range(num_epochs), progress):
        if β != 0 and k % compute_ref_model_period == 0:
            π_ref = deepcopy(π_θ)
        a = generate_responses(s, π_θ, num_responses)
        r = compute_reward(s, a, reward_fn)
        δ = compute_deltas(r, deltas_mode)
        with torch.no_grad():
            log_π_ref = compute_log_probs(s, a, π_ref) if β != 0 else None
            log_π_old = compute_log_probs(s, a, π_θ) if loss_mode != "naive" else None
        for t in range(num_steps_per_epoch):
            log_π = compute_log_probs(s, a, π_θ)
            L = compute_loss(log_π, δ, loss_mode, log_π_old, epsilon)
            if β != 0:
                L = L + β * compute_kl_penalty(log_π, log_π_ref)
            history.append(Record(k, k * num_steps_per_epoch + t, L.item(), r.mean().item()))
            adam.zero_grad()
            L.backward()
            adam.step()
    return PolicyGradientRun(π_θ, history)
