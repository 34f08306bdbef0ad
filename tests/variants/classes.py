"""Objects: one class for each mode, one for the trainer; the six functions only forward to them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

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
from torch import Tensor, nn


class Deltas(ABC):
    registry: dict[str, type[Deltas]] = {}

    def __init_subclass__(cls, mode: str) -> None:
        Deltas.registry[mode] = cls

    @abstractmethod
    def __call__(self, rewards: Tensor) -> Tensor: ...


class Raw(Deltas, mode="rewards"):
    def __call__(self, rewards: Tensor) -> Tensor:
        return rewards


class Centered(Deltas, mode="centered_rewards"):
    def __call__(self, rewards: Tensor) -> Tensor:
        return rewards - rewards.mean(dim=-1, keepdim=True)


class Normalized(Centered, mode="normalized_rewards"):
    eps = 1e-5

    def __call__(self, rewards: Tensor) -> Tensor:
        if rewards.shape[-1] < 2:
            raise ValueError("Normalized needs two responses or more")
        return super().__call__(rewards) / (rewards.std(dim=-1, unbiased=True, keepdim=True) + self.eps)


class Best(Deltas, mode="max_rewards"):
    def __call__(self, rewards: Tensor) -> Tensor:
        mask = rewards.eq(rewards.amax(dim=-1, keepdim=True))
        return rewards * mask.to(rewards.dtype)


class Naive:
    needs_old = False

    def objective(self, log_probs: Tensor, deltas: Tensor, old: Tensor | None, epsilon: float) -> Tensor:
        return log_probs * deltas


class Unclipped:
    needs_old = True

    def objective(self, log_probs: Tensor, deltas: Tensor, old: Tensor | None, epsilon: float) -> Tensor:
        return self.ratio(log_probs, old) * deltas

    @staticmethod
    def ratio(log_probs: Tensor, old: Tensor) -> Tensor:
        return (log_probs - old.detach()).exp()


class Clipped(Unclipped):
    def objective(self, log_probs: Tensor, deltas: Tensor, old: Tensor | None, epsilon: float) -> Tensor:
        ratio = self.ratio(log_probs, old)
        return torch.minimum(ratio * deltas, ratio.clip(1 - epsilon, 1 + epsilon) * deltas)


LOSSES = {"naive": Naive(), "unclipped": Unclipped(), "clipped": Clipped()}


def compute_reward(prompts, responses, reward_fn):
    return torch.tensor(
        [[reward_fn(prompt.tolist(), response.tolist()) for response in group] for prompt, group in zip(prompts, responses)],
        dtype=torch.float32,
    )


def compute_deltas(rewards, mode):
    if mode not in Deltas.registry:
        raise ValueError(f"no deltas are called {mode!r}")
    return Deltas.registry[mode]()(rewards)


def compute_log_probs(prompts, responses, model):
    log_probs = nn.LogSoftmax(dim=-1)(model(prompts))
    indices = responses.permute(0, 2, 1)  # batch pos trial
    return torch.gather(log_probs, -1, indices).permute(0, 2, 1)


def compute_loss(log_probs, deltas, mode, old_log_probs=None, epsilon=0.2):
    if mode not in LOSSES:
        raise ValueError(f"no loss is called {mode!r}")
    loss = LOSSES[mode]
    if loss.needs_old and old_log_probs is None:
        raise ValueError(f"the loss {mode!r} compares with old_log_probs, and there are none")
    return -loss.objective(log_probs, deltas.detach().unsqueeze(-1), old_log_probs, epsilon).mean()


def compute_kl_penalty(log_probs, ref_log_probs):
    x = ref_log_probs.detach() - log_probs
    return (x.exp() - x - torch.ones_like(x)).sum(dim=-1).mean()


@dataclass
class Trainer:
    prompts: Tensor
    settings: dict
    records: list[Record] = field(default_factory=list)

    def __post_init__(self):
        length = self.prompts.shape[-1]
        self.model = Model(int(self.prompts.max()) + 1, EMBEDDING_DIM, length, length)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=self.settings["learning_rate"])
        self.reference = None

    @property
    def has_kl(self):
        return self.settings["kl_penalty"] != 0

    def train(self):
        for epoch in progress_bar(range(self.settings["num_epochs"]), self.settings["progress"]):
            self.epoch(epoch)
        return PolicyGradientRun(self.model, self.records)

    def epoch(self, epoch):
        s = self.settings
        if self.has_kl and epoch % s["compute_ref_model_period"] == 0:
            self.reference = copy.deepcopy(self.model)
        responses = generate_responses(self.prompts, self.model, s["num_responses"])
        rewards = compute_reward(self.prompts, responses, s["reward_fn"])
        deltas = compute_deltas(rewards, s["deltas_mode"])
        ref = self.frozen(responses, self.reference) if self.has_kl else None
        old = self.frozen(responses, self.model) if s["loss_mode"] != "naive" else None
        for _ in range(s["num_steps_per_epoch"]):
            loss = self.loss(responses, deltas, old, ref)
            self.records.append(Record(epoch, len(self.records), loss.item(), rewards.mean().item()))
            self.update(loss)

    @torch.no_grad()
    def frozen(self, responses, model):
        return compute_log_probs(self.prompts, responses, model)

    def loss(self, responses, deltas, old, ref):
        log_probs = compute_log_probs(self.prompts, responses, self.model)
        loss = compute_loss(log_probs, deltas, self.settings["loss_mode"], old, self.settings["epsilon"])
        if ref is not None:
            loss = loss + self.settings["kl_penalty"] * compute_kl_penalty(log_probs, ref)
        return loss

    def update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


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
    settings = dict(locals())
    torch.manual_seed(seed)
    return Trainer(torch.tensor(settings.pop("prompts")), settings).train()
