"""A frozen dataclass holds the settings, free functions take (config, state); settings also go into the result."""

import copy
import dataclasses
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Optional

import torch
import torch.nn as nn
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


@dataclass(frozen=True)
class Config:
    num_epochs: int
    num_steps_per_epoch: int
    compute_ref_model_period: int
    num_responses: int
    deltas_mode: str
    loss_mode: str
    kl_penalty: float
    epsilon: float
    learning_rate: float
    seed: int

    @property
    def uses_kl(self) -> bool:
        return self.kl_penalty != 0

    @property
    def uses_ratio(self) -> bool:
        return self.loss_mode != "naive"

    def renews_reference(self, epoch: int) -> bool:
        return self.uses_kl and epoch % self.compute_ref_model_period == 0


@dataclass
class State:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    reference: Optional[nn.Module] = None
    step: int = 0


@dataclass
class Rollout:
    prompts: torch.Tensor
    responses: torch.Tensor
    rewards: torch.Tensor
    deltas: torch.Tensor
    old: Optional[torch.Tensor] = None
    ref: Optional[torch.Tensor] = None

    @cached_property
    def mean_reward(self) -> float:
        return self.rewards.mean().item()


def compute_reward(prompts, responses, reward_fn):
    rewards = torch.zeros((len(prompts), responses.shape[1]), dtype=torch.float32)
    for i, j in torch.ones_like(rewards).nonzero().tolist():
        rewards[i, j] = reward_fn(prompts[i].tolist(), responses[i, j].tolist())
    return rewards


@dataclass(frozen=True)
class Group:
    rewards: torch.Tensor

    @cached_property
    def centered(self):
        return self.rewards - self.rewards.mean(dim=1, keepdim=True)

    @cached_property
    def normalized(self):
        if self.rewards.shape[1] < 2:
            raise ValueError("Group.normalized: one response")
        return self.centered / (self.rewards.std(dim=1, keepdim=True) + 1e-5)

    @cached_property
    def max(self):
        return self.rewards * (self.rewards >= self.rewards.max(dim=1, keepdim=True).values)


def compute_deltas(rewards, mode):
    attributes = {
        "rewards": "rewards",
        "centered_rewards": "centered",
        "normalized_rewards": "normalized",
        "max_rewards": "max",
    }
    if mode not in attributes:
        raise ValueError(f"mode={mode!r} is not in {list(attributes)}")
    return getattr(Group(rewards), attributes[mode])


def compute_log_probs(prompts, responses, model):
    log_probs = torch.log_softmax(model(prompts), dim=-1).unsqueeze(1)
    index = responses.unsqueeze(-1)
    return log_probs.expand(index.shape[:-1] + log_probs.shape[-1:]).gather(-1, index).squeeze(-1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    deltas = deltas.detach().unsqueeze(-1)
    if mode == "naive":
        return -(log_probs * deltas).mean()
    if mode in {"unclipped", "clipped"}:
        if old_log_probs is None:
            raise ValueError("old_log_probs=None")
        ratio = (log_probs - old_log_probs.detach()).exp()
        if mode == "unclipped":
            return -(ratio * deltas).mean()
        return -torch.minimum(ratio * deltas, ratio.clip(1 - epsilon, 1 + epsilon) * deltas).mean()
    raise ValueError(f"mode={mode!r} is none of naive, unclipped, clipped")


def compute_kl_penalty(log_probs, ref_log_probs):
    ref = ref_log_probs.detach()
    return (torch.exp(ref - log_probs) - (ref - log_probs) - 1).sum(-1).mean()


def roll_out(config: Config, state: State, prompts: torch.Tensor, reward_fn: Any) -> Rollout:
    responses = generate_responses(prompts, state.model, config.num_responses)
    rewards = compute_reward(prompts, responses, reward_fn)
    rollout = Rollout(prompts, responses, rewards, compute_deltas(rewards, config.deltas_mode))
    with torch.no_grad():
        constants: dict[str, torch.Tensor] = {}
        if config.uses_ratio:
            constants["old"] = compute_log_probs(prompts, responses, state.model)
        if config.uses_kl:
            constants["ref"] = compute_log_probs(prompts, responses, state.reference)
    return dataclasses.replace(rollout, **constants)


def loss_of(config: Config, state: State, rollout: Rollout) -> torch.Tensor:
    log_probs = compute_log_probs(rollout.prompts, rollout.responses, state.model)
    loss = compute_loss(log_probs, rollout.deltas, config.loss_mode, rollout.old, config.epsilon)
    if config.uses_kl:
        loss = loss + config.kl_penalty * compute_kl_penalty(log_probs, rollout.ref)
    return loss


def run_policy_gradient(
    prompts=DEFAULT_PROMPTS,
    *,
    reward_fn=sort_inclusion_ordering_reward,
    progress=True,
    num_epochs=100,
    num_steps_per_epoch=10,
    compute_ref_model_period=10,
    num_responses=10,
    deltas_mode="rewards",
    loss_mode="naive",
    kl_penalty=0.0,
    epsilon=0.2,
    learning_rate=1e-3,
    seed=5,
):
    config = Config(
        num_epochs, num_steps_per_epoch, compute_ref_model_period, num_responses, deltas_mode, loss_mode,
        kl_penalty, epsilon, learning_rate, seed,
    )
    torch.manual_seed(config.seed)
    prompts = torch.tensor(prompts)
    model = Model(int(prompts.max()) + 1, EMBEDDING_DIM, prompts.shape[1], prompts.shape[1])
    state = State(model, torch.optim.Adam(model.parameters(), lr=config.learning_rate))
    records = []
    for epoch in progress_bar(range(config.num_epochs), progress):
        if config.renews_reference(epoch):
            state.reference = copy.deepcopy(state.model)
        rollout = roll_out(config, state, prompts, reward_fn)
        for _ in range(config.num_steps_per_epoch):
            loss = loss_of(config, state, rollout)
            records.append(Record(epoch, state.step, loss.item(), rollout.mean_reward))
            state.optimizer.zero_grad()
            loss.backward()
            state.optimizer.step()
            state.step += 1
    return PolicyGradientRun(model, records, settings=asdict(config))
