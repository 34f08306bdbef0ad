"""Logits minus their logsumexp; the reference is a copy of the weights, run through the model by functional_call."""

from __future__ import annotations

import torch
from sorting_task import (
    DEFAULT_PROMPTS,
    EMBEDDING_DIM,
    Model,
    PolicyGradientRun,
    Record,
    Reward,
    generate_responses,
    progress_bar,
    sort_inclusion_ordering_reward,
)
from torch import Tensor, nn
from torch.func import functional_call


class Snapshot(nn.Module):
    """The model as it is now, whatever training does to it later."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.architecture = [model]  # in a list, so that its parameters do not become this module's
        self.weights = {name: weight.detach().clone() for name, weight in model.state_dict().items()}

    def forward(self, prompts: Tensor) -> Tensor:
        return functional_call(self.architecture[0], self.weights, (prompts,))


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn: Reward) -> Tensor:
    def row(i: int) -> Tensor:
        return torch.tensor([float(reward_fn(prompts[i].tolist(), tokens)) for tokens in responses[i].tolist()])

    return torch.stack([row(i) for i in range(len(prompts))]).to(torch.float32)


def compute_deltas(rewards: Tensor, mode: str) -> Tensor:
    if mode == "rewards":
        return rewards
    if mode == "max_rewards":
        return rewards.masked_fill(rewards != rewards.amax(-1, True), 0)
    if mode not in ("centered_rewards", "normalized_rewards"):
        raise ValueError(mode)
    trial = rewards.shape[-1]
    deltas = rewards - rewards.sum(-1, keepdim=True) / trial
    if mode == "normalized_rewards":
        if trial < 2:
            raise ValueError("one response only")
        deltas = deltas / (torch.linalg.vector_norm(deltas, dim=-1, keepdim=True) / (trial - 1) ** 0.5 + 1e-5)
    return deltas


def compute_log_probs(prompts: Tensor, responses: Tensor, model: nn.Module) -> Tensor:
    logits = model(prompts)  # batch pos vocab
    tokens = responses.transpose(1, 2)  # batch pos trial
    chosen = logits.gather(2, tokens) - logits.logsumexp(dim=2, keepdim=True)
    return chosen.transpose(1, 2)


def compute_loss(
    log_probs: Tensor, deltas: Tensor, mode: str, old_log_probs: Tensor | None = None, epsilon: float = 0.2
) -> Tensor:
    deltas = deltas.data.unsqueeze(2)
    if mode == "naive":
        return -(log_probs * deltas).sum() / log_probs.numel()
    if mode not in ("unclipped", "clipped"):
        raise ValueError(mode)
    if old_log_probs is None:
        raise ValueError(f"{mode} without old_log_probs")
    ratio = torch.exp(log_probs - old_log_probs.data)
    if mode == "unclipped":
        return -(ratio * deltas).sum() / log_probs.numel()
    # min(r d, clip(r) d) = r d - relu(r d - clip(r) d)
    excess = torch.relu((ratio - torch.clamp(ratio, 1 - epsilon, 1 + epsilon)) * deltas)
    return -(ratio * deltas - excess).sum() / log_probs.numel()


def compute_kl_penalty(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    x = ref_log_probs.data - log_probs
    return (x.exp() - x).sub(1).sum() / (x.shape[0] * x.shape[1])


def run_policy_gradient(
    prompts: list[list[int]] = DEFAULT_PROMPTS,
    *,
    num_epochs: int = 100,
    num_steps_per_epoch: int = 10,
    compute_ref_model_period: int = 10,
    num_responses: int = 10,
    deltas_mode: str = "rewards",
    loss_mode: str = "naive",
    kl_penalty: float = 0.0,
    epsilon: float = 0.2,
    reward_fn: Reward = sort_inclusion_ordering_reward,
    learning_rate: float = 1e-3,
    seed: int = 5,
    progress: bool = True,
) -> PolicyGradientRun:
    torch.manual_seed(seed)
    tokens = torch.tensor(prompts)
    model = Model(int(tokens.max()) + 1, EMBEDDING_DIM, tokens.shape[1], tokens.shape[1])
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    records: list[Record] = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            reference = Snapshot(model)
        responses = generate_responses(tokens, model, num_responses)
        rewards = compute_reward(tokens, responses, reward_fn)
        deltas = compute_deltas(rewards, deltas_mode)
        with torch.no_grad():
            ref_log_probs = compute_log_probs(tokens, responses, reference) if kl_penalty != 0 else None
            old_log_probs = compute_log_probs(tokens, responses, model) if loss_mode != "naive" else None
        for _ in range(num_steps_per_epoch):
            log_probs = compute_log_probs(tokens, responses, model)
            loss = compute_loss(log_probs, deltas, loss_mode, old_log_probs=old_log_probs, epsilon=epsilon)
            if ref_log_probs is not None:
                loss = torch.add(loss, compute_kl_penalty(log_probs, ref_log_probs), alpha=kl_penalty)
            records.append(Record(epoch, len(records), loss.item(), rewards.mean().item()))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return PolicyGradientRun(model, records)
