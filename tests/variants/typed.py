"""Types for everything: Literal modes checked by get_args, protocols, aliases, NamedTuples, Final."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias, cast, get_args

import torch
import torch.nn.functional as F
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

DeltasMode: TypeAlias = Literal["rewards", "centered_rewards", "normalized_rewards", "max_rewards"]
LossMode: TypeAlias = Literal["naive", "unclipped", "clipped"]
Tokens: TypeAlias = Sequence[Sequence[int]]
EPS: Final[float] = 1e-5


class Policy(Protocol):
    def __call__(self, prompts: Tensor, /) -> Tensor: ...


class Constants(NamedTuple):
    old: Tensor | None = None
    ref: Tensor | None = None


class Batch(NamedTuple):
    responses: Tensor
    rewards: Tensor
    deltas: Tensor


def one_of(mode: str, modes: object) -> str:
    if mode not in get_args(modes):
        raise ValueError(f"{mode!r} should be {' or '.join(map(repr, get_args(modes)))}")
    return mode


def compute_reward(prompts: Tensor, responses: Tensor, reward_fn: Reward) -> Tensor:
    def row(prompt: Tensor, group: Tensor) -> list[float]:
        return [float(reward_fn(cast("list[int]", prompt.tolist()), response.tolist())) for response in group]

    rows: list[list[float]] = [row(prompt, group) for prompt, group in zip(prompts, responses, strict=True)]
    return torch.tensor(rows, dtype=torch.float32)


def _centered(rewards: Tensor) -> Tensor:
    return rewards - rewards.mean(dim=-1, keepdim=True)


def _normalized(rewards: Tensor) -> Tensor:
    if rewards.shape[-1] < 2:
        raise ValueError("normalized_rewards: the sample standard deviation needs a sample of two")
    return _centered(rewards) / (rewards.std(dim=-1, keepdim=True) + EPS)


def _maximal(rewards: Tensor) -> Tensor:
    return rewards.where(rewards == rewards.amax(dim=-1, keepdim=True), rewards.new_zeros(()))


DELTAS: Final[Mapping[str, Callable[[Tensor], Tensor]]] = {
    "rewards": lambda rewards: rewards,
    "centered_rewards": _centered,
    "normalized_rewards": _normalized,
    "max_rewards": _maximal,
}


def compute_deltas(rewards: Tensor, mode: DeltasMode) -> Tensor:
    return DELTAS[one_of(mode, DeltasMode)](rewards)


def compute_log_probs(prompts: Tensor, responses: Tensor, model: Policy) -> Tensor:
    log_probs: Tensor = F.log_softmax(model(prompts), dim=-1)
    index: Tensor = responses.transpose(-2, -1)
    chosen: Tensor = torch.gather(log_probs, dim=-1, index=index)
    return chosen.transpose(-2, -1).contiguous()


def compute_loss(
    log_probs: Tensor,
    deltas: Tensor,
    mode: LossMode,
    old_log_probs: Tensor | None = None,
    epsilon: float = 0.2,
) -> Tensor:
    kind = one_of(mode, LossMode)
    advantages: Tensor = deltas.detach().unsqueeze(-1)
    if kind == "naive":
        return -(advantages * log_probs).mean()
    if old_log_probs is None:
        raise ValueError(f"{kind!r} should come with old_log_probs")
    ratios: Tensor = (log_probs - old_log_probs.detach()).exp()
    objective: Tensor = advantages * ratios
    if kind == "clipped":
        objective = torch.minimum(objective, advantages * ratios.clamp(1 - epsilon, 1 + epsilon))
    return -objective.mean()


def compute_kl_penalty(log_probs: Tensor, ref_log_probs: Tensor) -> Tensor:
    log_ratio: Tensor = ref_log_probs.detach() - log_probs
    k3: Tensor = log_ratio.exp() - log_ratio - 1.0
    return k3.sum(dim=-1).mean()


def run_policy_gradient(
    prompts: Tokens = DEFAULT_PROMPTS,
    *,
    num_epochs: int = 100,
    num_steps_per_epoch: int = 10,
    compute_ref_model_period: int = 10,
    num_responses: int = 10,
    deltas_mode: DeltasMode = "rewards",
    loss_mode: LossMode = "naive",
    kl_penalty: float = 0.0,
    epsilon: float = 0.2,
    reward_fn: Reward = sort_inclusion_ordering_reward,
    learning_rate: float = 1e-3,
    seed: int = 5,
    progress: bool = True,
) -> PolicyGradientRun:
    torch.manual_seed(seed)
    tokens: Tensor = torch.tensor(prompts)
    length: int = tokens.shape[1]
    model: nn.Module = Model(int(tokens.max()) + 1, EMBEDDING_DIM, length, length)
    optimizer: torch.optim.Optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    reference: nn.Module = model

    def sample() -> Batch:
        responses = generate_responses(tokens, model, num_responses)
        rewards = compute_reward(tokens, responses, reward_fn)
        return Batch(responses, rewards, compute_deltas(rewards, deltas_mode))

    def constants(responses: Tensor) -> Constants:
        with torch.no_grad():
            found = Constants()
            if loss_mode != "naive":
                found = found._replace(old=compute_log_probs(tokens, responses, model))
            if kl_penalty != 0:
                found = found._replace(ref=compute_log_probs(tokens, responses, reference))
            return found

    def train(batch: Batch, fixed: Constants) -> Iterator[float]:
        for _ in range(num_steps_per_epoch):
            log_probs = compute_log_probs(tokens, batch.responses, model)
            loss = compute_loss(log_probs, batch.deltas, loss_mode, fixed.old, epsilon)
            if fixed.ref is not None:
                loss = loss + kl_penalty * compute_kl_penalty(log_probs, fixed.ref)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    records: list[Record] = []
    for epoch in progress_bar(range(num_epochs), progress):
        if kl_penalty != 0 and epoch % compute_ref_model_period == 0:
            reference = copy.deepcopy(model)
        batch = sample()
        mean_reward: float = batch.rewards.mean().item()
        for loss in train(batch, constants(batch.responses)):
            records.append(Record(epoch, len(records), loss, mean_reward))
    return PolicyGradientRun(model, records)
