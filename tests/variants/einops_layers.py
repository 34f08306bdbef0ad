"""einops to the limit: reductions by callables, pack and unpack, Rearrange and Reduce as layers, asnumpy."""

import copy

import torch
from einops import asnumpy, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange, Reduce
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
from torch import nn

one_per_token = Rearrange("b t -> b t 1")
token_sum = Reduce("b t p -> b t", "sum")


def std(tensor, axes):
    return torch.std(tensor, dim=axes)


def compute_reward(prompts, responses, reward_fn):
    flat, sizes = pack([responses], "* pos")
    owners = repeat(torch.arange(len(prompts)), "b -> (b t)", t=responses.shape[1])
    scores = [float(reward_fn(asnumpy(prompts[i]).tolist(), asnumpy(r).tolist())) for i, r in zip(owners, flat)]
    (rewards,) = unpack(torch.tensor(scores), sizes, "*")
    return rewards


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rearrange(rewards, "b t -> b t")
    if mode == "max_rewards":
        best = reduce(rewards, "b t -> b 1", "max")
        return torch.where(rewards == best, rewards, torch.zeros_like(rewards))
    if mode not in ("centered_rewards", "normalized_rewards"):
        raise ValueError(f"einops has no pattern for {mode}")
    centered = rewards - reduce(rewards, "b t -> b 1", "mean")
    if mode == "centered_rewards":
        return centered
    if parse_shape(rewards, "_ t")["t"] < 2:
        raise ValueError("t must be at least 2")
    return centered / (reduce(rewards, "b t -> b 1", std) + 1e-5)


def compute_log_probs(prompts, responses, model):
    score = nn.Sequential(model, nn.LogSoftmax(dim=-1), Rearrange("b p v -> b v p"))
    log_probs = score(prompts)
    return torch.gather(log_probs, 1, responses)  # the trial axis of responses stands where vocab stood


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    weights = one_per_token(deltas.detach())
    match mode:
        case "naive":
            objective = weights * log_probs
        case "unclipped" | "clipped" if old_log_probs is None:
            raise ValueError(f"{mode} needs two policies")
        case "unclipped":
            objective = weights * torch.exp(log_probs - old_log_probs.detach())
        case "clipped":
            ratio = torch.exp(log_probs - old_log_probs.detach())
            both, _ = pack([weights * ratio, weights * ratio.clamp(1 - epsilon, 1 + epsilon)], "b t p *")
            objective = reduce(both, "b t p two -> b t p", "min")
        case _:
            raise ValueError(f"einops has no pattern for {mode}")
    return -reduce(objective, "b t p -> ", "mean")


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return reduce(token_sum(torch.exp(x) - x - 1), "b t -> ", "mean")


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
    prompts = rearrange([torch.tensor(prompt) for prompt in prompts], "b p -> b p")
    p = parse_shape(prompts, "_ p")["p"]
    model = Model(int(reduce(prompts, "b p -> ", "max")) + 1, EMBEDDING_DIM, p, p)
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    beta = torch.tensor([1.0, kl_penalty], dtype=torch.float64)
    records = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            if ref is not None:
                terms = torch.stack([loss, compute_kl_penalty(log_probs, ref)])
                loss = einsum(terms, beta.to(terms.dtype), "term, term ->")
            mean_reward = float(asnumpy(reduce(rewards, "b t -> ", "mean")))
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, loss.item(), mean_reward))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
