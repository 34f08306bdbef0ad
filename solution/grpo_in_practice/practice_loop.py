"""The loop around your functions, with every option of the text. Given whole: nothing to complete in this file.

    settings = Settings(num_steps=40, epsilon_high=0.28, normalization="constant_length")
    run = train(model, tokenizer, settings)
    run.records[-1].values["entropy"]

Each step, in this order: problems are drawn; the sampler, which may be older or less precise than the model, answers
them; responses are rewarded; groups, responses and weights are chosen as the settings say; the model is updated a few
times on what is left; diagnostics are recorded.
"""

from __future__ import annotations

import contextlib
import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from grpo_in_practice import (
    accumulate_gradients,
    baseline_advantages,
    gradient_norm,
    importance_weights,
    informative_groups,
    kl_penalty,
    overlong_penalty,
    policy_loss,
    rewards_with_kl,
    select_best,
    step_diagnostics,
    token_entropies,
    verify,
    without_truncated,
)
from practice_task import (
    MAX_NEW_TOKENS,
    Reward,
    Rollout,
    answer_of,
    chosen_log_probs,
    group_advantages,
    problem_batches,
    response_logits,
    sample_rollout,
    score_rollout,
    take_responses,
)
from torch import Tensor, nn

FORMAT_REWARD = 0.1
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class Settings:
    """Every option of a run. The defaults are GRPO as the first half of the course has it, with two updates a rollout.

    advantage          mean_std, mean (of the group); reinforce, batch_mean, rloo; best: imitate the best of each group
    kl_in              none, loss or reward; kl_estimator counts for the loss alone
    oversample         dynamic sampling: so many times the prompts are posed, and of the groups with spread as many kept
                       as a step needs; 0 keeps every group, spread or not
    truncated          keep, mask, or penalty (over the last overlong_buffer tokens): what becomes of cut-off responses
    sampler_lag        how many steps older than the model the sampler's weights are
    sampler_dtype      float32 or bfloat16: the precision in which the sampler computes
    correction         none: the gap between sampler and model is ignored; ratio: the clipped ratio is taken to the
                       sampler; token, sequence: truncated importance sampling, with correction_cap
    num_parts          micro-batches, by accumulate_gradients: the update is that of the whole batch, with every option
    autocast           bfloat16 or none: the precision of the passes that are learned from; weights stay what they are,
                       and the sampler goes on in its own precision
    instruction        what is said to the model, with {problem} in its place
    """

    num_steps: int = 40
    num_prompts: int = 8
    num_responses: int = 8
    num_inner_steps: int = 2
    max_new_tokens: int = MAX_NEW_TOKENS
    difficulties: tuple[str, ...] = ("easy", "hard")
    learning_rate: float = 1e-4
    max_grad_norm: float = 1.0
    seed: int = 0
    advantage: str = "mean_std"
    objective: str = "token"
    epsilon_low: float = 0.2
    epsilon_high: float = 0.2
    dual_clip: float | None = None
    normalization: str = "token_mean"
    kl_in: str = "none"
    kl_coefficient: float = 0.0
    kl_estimator: str = "k3"
    oversample: int = 0
    truncated: str = "keep"
    overlong_buffer: int = 8
    sampler_lag: int = 0
    sampler_dtype: str = "float32"
    correction: str = "none"
    correction_cap: float = 2.0
    num_parts: int = 1
    autocast: str = "none"
    instruction: str = "{problem}"


@dataclass(frozen=True)
class Batch:
    """What one step learns from: responses, and everything about them that stays constant over its updates."""

    rollout: Rollout
    mask: Tensor  # int64[batch pos]
    advantages: Tensor  # float[batch]
    old_log_probs: Tensor  # float[batch pos]
    ref_log_probs: Tensor | None  # float[batch pos]
    weights: Tensor | None  # float[batch pos]
    rewards: Tensor  # float[prompt trial], of all that was sampled
    sampler_gap: float  # mean over tokens of the distance between the model's and the sampler's log-probabilities


@dataclass(frozen=True)
class Record:
    """One step: its number, and by name the mean reward, the share of right answers and the diagnostics of its end."""

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class TrainingRun:
    """The trained model, and one record per step, in order."""

    model: nn.Module
    records: list[Record]

    def curve(self, name: str) -> list[float]:
        """Return one value per step."""
        return [record.values[name] for record in self.records]


# Rewards


def tagged_reward(problem: str, response: str) -> float:
    """Return 1 for the right answer, by your verifier, and 0.1 more for an answer in its tag."""
    well_formed, right = verify(response, answer_of(problem))
    return float(right) + FORMAT_REWARD * float(well_formed)


def is_right(problem: str, response: str) -> bool:
    """Return whether your verifier finds the right answer."""
    return bool(verify(response, answer_of(problem))[1])


# The sampler


class Sampler:
    """A copy of the model that answers problems: of some steps ago, in a precision of its own."""

    def __init__(self, model: nn.Module, lag: int, dtype: torch.dtype) -> None:
        """Begin with the model as it is; without lag and in the model's precision it is the model itself."""
        self._itself = lag == 0 and dtype is next(model.parameters()).dtype
        self._lag = lag
        self.model = model if self._itself else copy.deepcopy(model).to(dtype)
        self._waiting: deque[dict[str, Tensor]] = deque()

    def learn_from(self, model: nn.Module) -> None:
        """Take over the weights that the model had `lag` steps before now; call it once a step, at its end."""
        if self._itself:
            return
        self._waiting.append({name: value.detach().clone() for name, value in model.state_dict().items()})
        if len(self._waiting) > self._lag:
            self.model.load_state_dict(self._waiting.popleft())


# The loop


def train(
    model: Any,
    tokenizer: Any,
    settings: Settings,
    reward_fn: Reward = tagged_reward,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> TrainingRun:
    """Train the model; return it, with one record per step.

    The model stays in the mode it is in while it is updated, and samples in evaluation mode. Its dropout must be off.
    """
    torch.manual_seed(settings.seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    reference = copy.deepcopy(model).eval() if settings.kl_in != "none" else None
    sampler = Sampler(model, settings.sampler_lag, DTYPES[settings.sampler_dtype])
    posed = settings.num_prompts * max(1, settings.oversample)
    records = []
    batches = problem_batches(settings.num_steps, posed, settings.seed, settings.difficulties)
    for step, problems in enumerate(progress(batches)):
        rollout = _sampled(sampler.model, tokenizer, problems, settings)
        rewards = score_rollout(rollout, reward_fn)  # prompt trial
        seen = seen_in(rollout, rewards)
        batch = prepared(model, sampler.model, reference, rollout, rewards, settings)
        if batch is not None:
            for _ in range(settings.num_inner_steps):
                diagnostics = update(model, optimizer, batch, settings)
            seen = diagnostics | {"sampler_gap": batch.sampler_gap} | seen
        records.append(Record(step, seen))
        sampler.learn_from(model)
    return TrainingRun(model, records)


def _sampled(model: Any, tokenizer: Any, problems: list[str], settings: Settings) -> Rollout:
    """Return the sampler's responses; its mode is what it was."""
    training = model.training
    model.eval()
    rollout = sample_rollout(
        model,
        tokenizer,
        problems,
        settings.num_responses,
        settings.max_new_tokens,
        instruction=settings.instruction,
    )
    model.train(training)
    return rollout


def seen_in(rollout: Rollout, rewards: Tensor) -> dict[str, float]:
    """Return what can be said of a rollout before anything is learned from it; nan where no response is wrong.

    rewards   float[prompt trial]
    """
    right = score_rollout(rollout, is_right)  # prompt trial
    return {
        "reward": rewards.mean().item(),
        "accuracy": right.mean().item(),
        "response_length": rollout.lengths.double().mean().item(),
        "wrong_response_length": rollout.lengths[right.reshape(-1) == 0].double().mean().item(),
        "truncated_share": rollout.truncated.double().mean().item(),
        "groups_without_signal": (~informative_groups(rewards)).double().mean().item(),
    }


def prepared(
    model: Any, sampler: Any, reference: Any, rollout: Rollout, rewards: Tensor, settings: Settings
) -> Batch | None:
    """Return what the step learns from; None where nothing is left to learn from.

    rewards   float[prompt trial]
    """
    rows = _kept_rows(rewards, settings)
    if len(rows) == 0:
        return None
    old = _constant_log_probs(model, rollout, settings)  # batch pos
    ref = None if reference is None else _constant_log_probs(reference, rollout, settings)
    flat = rewards.reshape(-1)  # batch
    if settings.truncated == "penalty":
        flat = flat + overlong_penalty(rollout.lengths, settings.max_new_tokens, settings.overlong_buffer)
    if settings.kl_in == "reward":
        flat = rewards_with_kl(flat, old, ref, rollout.mask, settings.kl_coefficient)
    advantages = _advantages(flat.reshape(rewards.shape), settings.advantage).reshape(-1)  # batch
    as_sampled = replace(settings, autocast="none")  # what samples is not under autocast
    is_exact = sampler is model and settings == as_sampled
    at_sampler = old if is_exact else _constant_log_probs(sampler, rollout, as_sampled)
    weights = None
    if settings.correction in ("token", "sequence"):
        weights = importance_weights(old, at_sampler, rollout.mask, settings.correction_cap, settings.correction)[rows]
    gap = (old - at_sampler).abs().sum() / rollout.mask.sum().clamp(min=1)
    mask = without_truncated(rollout.mask, rollout.truncated) if settings.truncated == "mask" else rollout.mask
    return Batch(
        take_responses(rollout, rows),
        mask[rows],
        advantages[rows],
        (at_sampler if settings.correction == "ratio" else old)[rows],
        None if ref is None else ref[rows],
        weights,
        rewards,
        gap.item(),
    )


def _kept_rows(rewards: Tensor, settings: Settings) -> Tensor:
    """Return which responses are learned from, int[row]."""
    every = torch.arange(rewards.numel(), device=rewards.device).reshape(rewards.shape)  # prompt trial
    if settings.advantage == "best":
        return every[select_best(rewards).bool()]
    if settings.oversample == 0:
        return every.reshape(-1)
    return every[informative_groups(rewards)][: settings.num_prompts].reshape(-1)


def _advantages(rewards: Tensor, name: str) -> Tensor:
    """Return float[prompt trial]; to imitate is to learn with an advantage of 1."""
    if name == "best":
        return torch.ones_like(rewards)
    if name in ("mean", "mean_std"):
        return group_advantages(rewards, name)
    return baseline_advantages(rewards, name)


@torch.no_grad()
def _constant_log_probs(model: Any, rollout: Rollout, settings: Settings) -> Tensor:
    """Return float[batch pos], in as many passes as the updates are made in."""
    rows = torch.arange(len(rollout.mask)).tensor_split(settings.num_parts)
    parts = [take_responses(rollout, some) for some in rows]
    return torch.cat([chosen_log_probs(_logits(model, part, settings), part) for part in parts])


def _logits(model: Any, rollout: Rollout, settings: Settings) -> Tensor:
    device = rollout.input_ids.device.type
    with torch.autocast(device, dtype=torch.bfloat16, enabled=settings.autocast == "bfloat16"):
        return response_logits(model, rollout).float()


def update(model: Any, optimizer: torch.optim.Optimizer, batch: Batch, settings: Settings) -> dict[str, float]:
    """Update the model once; return the diagnostics of the pass that made the gradient."""
    optimizer.zero_grad()
    if settings.num_parts > 1:
        diagnostics = _backpropagate_in_parts(model, batch, settings)
    else:
        logits = _logits(model, batch.rollout, settings)  # batch pos vocab
        log_probs = chosen_log_probs(logits, batch.rollout)
        loss = loss_of(log_probs, batch, settings)
        loss.backward()
        entropies = token_entropies(logits.detach(), batch.rollout.mask)
        diagnostics = {"loss": loss.item()} | diagnosed(log_probs, entropies, batch, settings)
    diagnostics["gradient_norm"] = gradient_norm(model.parameters())
    torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
    optimizer.step()
    return diagnostics


def loss_of(log_probs: Tensor, batch: Batch, settings: Settings, whole: Batch | None = None) -> Tensor:
    """Return the step's loss: the objective, and the penalty if it stands in the loss, averaged over tokens.

    whole   the batch that `batch` is a part of, if it is: the loss is then such that those of all parts, each times its
            share of the whole, add up to that of the whole
    """
    if settings.advantage == "best":
        return -_token_mean(log_probs * batch.mask, batch, whole or batch, settings)
    loss = policy_loss(
        log_probs,
        batch.old_log_probs,
        batch.advantages,
        batch.mask,
        objective=settings.objective,
        epsilon_low=settings.epsilon_low,
        epsilon_high=settings.epsilon_high,
        dual_clip=settings.dual_clip,
        normalization=settings.normalization,
        max_length=settings.max_new_tokens,
        weights=batch.weights,
    )
    if settings.kl_in == "loss":
        penalty = kl_penalty(log_probs, batch.ref_log_probs, batch.mask, settings.kl_estimator)
        loss = loss + settings.kl_coefficient * _token_mean(penalty, batch, whole or batch, settings)
    return loss


def _token_mean(values: Tensor, part: Batch, whole: Batch, settings: Settings) -> Tensor:
    """Return the mean over the whole's tokens of what stands at the part's, divided by the share that it is given."""
    tokens = int(whole.mask.sum())
    by_token = settings.normalization == "token_mean"
    share = int(part.mask.sum()) / max(tokens, 1) if by_token else len(part.mask) / len(whole.mask)
    return values.sum() / max(tokens, 1) / (share or 1.0)


def _backpropagate_in_parts(model: Any, batch: Batch, settings: Settings) -> dict[str, float]:
    passes: list[tuple[Tensor, Tensor]] = []  # the logits of a whole batch would not fit: none are kept
    asked: list[slice] = []

    def log_probs_of(rows: slice) -> Tensor:
        asked.append(rows)
        part = take_responses(batch.rollout, torch.arange(len(batch.mask))[rows])
        logits = _logits(model, part, settings)
        log_probs = chosen_log_probs(logits, part)
        passes.append((log_probs.detach(), token_entropies(logits.detach(), part.mask)))
        return log_probs

    def loss_of_part(
        log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, mask: Tensor, *_: Any, **__: Any
    ) -> Tensor:
        ref, weights = (None if one is None else one[asked[-1]] for one in (batch.ref_log_probs, batch.weights))
        constants = {"old_log_probs": old_log_probs, "advantages": advantages, "mask": mask}
        part = replace(batch, **constants, ref_log_probs=ref, weights=weights)
        return loss_of(log_probs, part, settings, batch)

    with _in_place_of_policy_loss(loss_of_part):
        loss = accumulate_gradients(
            log_probs_of,
            batch.old_log_probs,
            batch.advantages,
            batch.mask,
            settings.num_parts,
            settings.normalization,
            settings.max_new_tokens,
        )
    log_probs, entropies = (torch.cat(parts) for parts in zip(*passes, strict=True))
    return {"loss": loss} | diagnosed(log_probs, entropies, batch, settings)


@contextlib.contextmanager
def _in_place_of_policy_loss(stand_in: Callable[..., Tensor]) -> Iterator[None]:
    """Let accumulate_gradients, which knows none of a loss's options, find this one under the name that it calls."""
    names = accumulate_gradients.__globals__
    before = names["policy_loss"]
    names["policy_loss"] = stand_in
    try:
        yield
    finally:
        names["policy_loss"] = before


@torch.no_grad()
def diagnosed(log_probs: Tensor, entropies: Tensor, batch: Batch, settings: Settings) -> dict[str, float]:
    """Return entropy, clip fractions, divergences and effective sample size of one pass over the batch."""
    return step_diagnostics(
        log_probs,
        batch.old_log_probs,
        batch.advantages,
        batch.mask,
        entropies,
        batch.rewards,
        batch.rollout.truncated,
        ref_log_probs=batch.ref_log_probs,
        epsilon_low=settings.epsilon_low,
        epsilon_high=settings.epsilon_high,
    )
