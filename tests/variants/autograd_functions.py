"""Gradients worked out on paper: the clipped objective and k3 as torch.autograd.Function with their own backward."""

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
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class ClippedObjective(Function):
    """min(r d, clip(r) d) with r = exp(log_prob - old): its slope in log_prob is r d, or 0 where the clip holds."""

    @staticmethod
    def forward(ctx, log_probs, old_log_probs, deltas, epsilon):
        ratio = torch.exp(log_probs - old_log_probs)
        held = ((deltas > 0) & (ratio > 1 + epsilon)) | ((deltas < 0) & (ratio < 1 - epsilon))
        ctx.save_for_backward(torch.where(held, 0.0, ratio * deltas))
        return torch.where(held, ratio.clamp(1 - epsilon, 1 + epsilon), ratio) * deltas

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        (slope,) = ctx.saved_tensors
        return upstream * slope, None, None, None


class K3(Function):
    """exp(x) - x - 1 with x = ref - log_prob: its slope in log_prob is 1 - exp(x)."""

    @staticmethod
    def forward(ctx, log_probs, ref_log_probs):
        x = ref_log_probs - log_probs
        ctx.save_for_backward(x)
        return torch.expm1(x) - x

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return -upstream * torch.expm1(x), None


class LogSoftmaxAt(Function):
    """logits [batch pos vocab], tokens [batch trial pos] -> log-probs of the tokens."""

    @staticmethod
    def forward(ctx, logits, tokens):
        log_probs = torch.log_softmax(logits, dim=-1)
        ctx.save_for_backward(log_probs.exp(), tokens)
        return log_probs.unsqueeze(1).expand(-1, tokens.shape[1], -1, -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        probs, tokens = ctx.saved_tensors
        one_hot = torch.nn.functional.one_hot(tokens, probs.shape[-1]).to(upstream.dtype)
        picked = torch.einsum("btp,btpv->bpv", upstream, one_hot)
        return picked - upstream.sum(1).unsqueeze(-1) * probs, None


def compute_reward(prompts, responses, reward_fn):
    rows = [torch.tensor([[float(reward_fn(p.tolist(), r.tolist()))] for r in rs]) for p, rs in zip(prompts, responses)]
    return torch.cat(rows, dim=1).T.contiguous()


def compute_deltas(rewards, mode):
    if mode == "rewards":
        return rewards
    if mode == "centered_rewards":
        return rewards - rewards.mean(1, keepdim=True)
    if mode == "normalized_rewards":
        if rewards.shape[1] == 1:
            raise ValueError("normalized_rewards with one response")
        variance, mean = torch.var_mean(rewards, dim=1, keepdim=True)
        return (rewards - mean) / (variance.sqrt() + 1e-5)
    if mode == "max_rewards":
        return (rewards == rewards.max(1, keepdim=True).values) * rewards
    raise ValueError(f"unknown deltas mode: {mode}")


def compute_log_probs(prompts, responses, model):
    return LogSoftmaxAt.apply(model(prompts), responses)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in ("naive", "unclipped", "clipped"):
        raise ValueError(f"unknown loss mode: {mode}")
    deltas = deltas.detach().unsqueeze(-1)
    if mode == "naive":
        return -(log_probs * deltas).mean()
    if old_log_probs is None:
        raise ValueError(f"mode {mode} but no old_log_probs")
    bound = epsilon if mode == "clipped" else float("inf")
    return -ClippedObjective.apply(log_probs, old_log_probs.detach(), deltas, bound).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    return K3.apply(log_probs, ref_log_probs.detach()).sum(-1).mean()


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
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            ref_model = copy.deepcopy(model)
        responses = generate_responses(prompts, model, num_responses)
        rewards = compute_reward(prompts, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            old = compute_log_probs(prompts, responses, model) if loss_mode != "naive" else None
            ref = compute_log_probs(prompts, responses, ref_model) if kl_penalty != 0 else None
        for inner in range(num_steps_per_epoch):
            log_probs = compute_log_probs(prompts, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old, epsilon)
            penalty = compute_kl_penalty(log_probs, ref) if kl_penalty != 0 else None
            total = loss if penalty is None else loss + kl_penalty * penalty
            records.append(Record(epoch, epoch * num_steps_per_epoch + inner, total.item(), rewards.mean().item()))
            optimizer.zero_grad()
            if penalty is None:
                loss.backward()
            else:  # two backward passes add up to that of the sum
                loss.backward(retain_graph=True)
                penalty.backward(torch.full_like(penalty, kl_penalty))
            optimizer.step()
    return PolicyGradientRun(model, records)
