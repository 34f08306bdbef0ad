"""The sorting task: everything that is given. There is nothing to complete in this file.

A prompt is a list of n numbers; the response should be the same numbers in ascending order. This file holds

- two rewards, `sort_distance_reward` and `sort_inclusion_ordering_reward`;
- the policy, `Model`, and the sampler, `generate_responses`;
- what a training run returns, `PolicyGradientRun` with its `Record`s, and `save_run`, which writes it down.

Axis names, used in every shape: `batch` counts prompts, `trial` the responses to one prompt, `pos` the tokens
of one response, `vocab` the numbers that a token can be. The grader always uses its own copy of this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import torch
from einops import einsum, rearrange
from torch import Tensor, nn

Item = TypeVar("Item")
Reward = Callable[[list[int], list[int]], float]

DEFAULT_PROMPTS = [[1, 0, 2], [3, 2, 4], [1, 2, 3]]
EMBEDDING_DIM = 10

IMAGE_NAME = "learning_curve.png"
LOG_NAME = "log.txt"


# Rewards


def sort_distance_reward(prompt: list[int], response: list[int]) -> float:
    """Return how many positions of `response` agree with the sorted prompt.

        sum over i of  1[response[i] == sorted(prompt)[i]]

    prompt     list[int]   n numbers
    response   list[int]   n tokens
    returns    float       0 to n
    """
    _check_lengths(prompt, response)
    return float(sum(token == target for token, target in zip(response, sorted(prompt), strict=True)))


def sort_inclusion_ordering_reward(prompt: list[int], response: list[int]) -> float:
    """Return one point per prompt token that the response contains and one per adjacent pair in order.

        sum over i of  1[prompt[i] in response]   +   sum over i of  1[response[i] <= response[i + 1]]

    prompt     list[int]   n numbers
    response   list[int]   n tokens
    returns    float       0 to 2n - 1
    """
    _check_lengths(prompt, response)
    inclusion = sum(token in response for token in prompt)
    ordering = sum(left <= right for left, right in pairwise(response))
    return float(inclusion + ordering)


def _check_lengths(prompt: list[int], response: list[int]) -> None:
    assert len(prompt) == len(response), (
        f"prompt has {len(prompt)} tokens and response has {len(response)}, but should have equally many."
    )


# The policy


class Model(nn.Module):
    """A policy that chooses every token of the response at once, each position independently of the others.

    The prompt is embedded, encoded into one vector by position-specific weights, decoded into one vector per
    response position, and scored against the same embedding.

        vocab_size        int   tokens are 0 … vocab_size - 1
        embedding_dim     int   length of every hidden vector
        prompt_length     int   tokens in a prompt
        response_length   int   tokens in a response
    """

    def __init__(self, vocab_size: int, embedding_dim: int, prompt_length: int, response_length: int) -> None:
        """Draw the initial parameters, in the order of the lines below, from torch's global generator."""
        super().__init__()
        scale = math.sqrt(embedding_dim)
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.encode_weights = nn.Parameter(torch.randn(prompt_length, embedding_dim, embedding_dim) / scale)
        self.decode_weights = nn.Parameter(torch.randn(response_length, embedding_dim, embedding_dim) / scale)

    def forward(self, prompts: Tensor) -> Tensor:
        """Return the logits of every response position.

        prompts   int[batch pos]
        returns   float[batch pos vocab]   `pos` counts response positions; the policy is softmax over vocab
        """
        embedded: Tensor = self.embedding(prompts)  # batch pos dim1
        encoded = einsum(embedded, self.encode_weights, "batch pos dim1, pos dim1 dim2 -> batch dim2")
        decoded = einsum(encoded, self.decode_weights, "batch dim2, pos dim2 dim1 -> batch pos dim1")
        return einsum(decoded, self.embedding.weight, "batch pos dim1, vocab dim1 -> batch pos vocab")


@torch.no_grad()
def generate_responses(prompts: Tensor, model: nn.Module, num_responses: int) -> Tensor:
    """Return `num_responses` responses to every prompt, sampled from the model (temperature 1).

    prompts         int[batch pos]
    num_responses   int
    returns         int[batch trial pos]   `trial` has num_responses entries

    One call draws from torch's global generator once.
    """
    logits = model(prompts)  # batch pos vocab
    probs = rearrange(torch.softmax(logits, dim=-1), "batch pos vocab -> (batch pos) vocab")
    tokens = torch.multinomial(probs, num_samples=num_responses, replacement=True)  # (batch pos) trial
    return rearrange(tokens, "(batch pos) trial -> batch trial pos", batch=prompts.shape[0])


# What a training run returns


@dataclass(frozen=True)
class Record:
    """One inner step of training.

    epoch         int     counts from 0
    step          int     counts inner steps over the whole run: epoch * num_steps_per_epoch + inner step
    loss          float   the whole loss, KL penalty included, before the update
    mean_reward   float   mean reward (not delta) of the responses sampled in this epoch
    """

    epoch: int
    step: int
    loss: float
    mean_reward: float


@dataclass(frozen=True)
class Sample:
    """One response, with what training would make of it.

    prompt, response   list[int]
    log_probs          list[float]   one per position of the response
    reward, delta      float
    """

    prompt: list[int]
    response: list[int]
    log_probs: list[float]
    reward: float
    delta: float


@dataclass(frozen=True)
class PolicyGradientRun:
    """The trained model and one record per inner step.

    `PolicyGradientRun(model, records)` is all that a run must give. The other fields only make the saved log
    richer; `experiments.py` fills them in after the run.

    model      nn.Module      the trained policy
    records    list[Record]   one per inner step, in order
    settings   mapping        names and values to print at the top of the log
    samples    list[Sample]   responses of the trained policy to print at the end of the log
    """

    model: nn.Module
    records: list[Record]
    settings: Mapping[str, object] = field(default_factory=dict)
    samples: Sequence[Sample] = ()


def progress_bar(iterable: Iterable[Item], enabled: bool) -> Iterable[Item]:
    """Return the same items, with a progress bar on the terminal if `enabled` and tqdm is installed."""
    if not enabled:
        return iterable
    try:
        from tqdm import tqdm
    except ImportError:
        return iterable
    bar: Iterable[Item] = tqdm(iterable, desc="epoch", leave=False)
    return bar


# Writing a run to disk


def save_run(run: PolicyGradientRun, directory: str | Path) -> tuple[Path, Path]:
    """Return the paths of the learning curve and of the log, both written into `directory`.

    directory   created, parents included, if it is not there; files of an earlier run in it are replaced
    returns     (image_path, log_path)
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    image_path, log_path = directory / IMAGE_NAME, directory / LOG_NAME
    _save_curve(run, image_path)
    log_path.write_text("\n".join(_log_lines(run)) + "\n", encoding="utf-8")
    return image_path, log_path


def _save_curve(run: PolicyGradientRun, path: Path) -> None:
    from matplotlib.figure import Figure  # imported here: only saving needs it, and it is slow to import

    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    loss_axes, reward_axes = figure.subplots(1, 2)
    steps = [record.step for record in run.records]
    loss_axes.plot(steps, [record.loss for record in run.records], color="tab:red", linewidth=1.0)
    loss_axes.set(xlabel="step", ylabel="loss")
    reward_axes.plot(steps, [record.mean_reward for record in run.records], color="tab:blue", linewidth=1.4)
    reward_axes.set(xlabel="step", ylabel="mean reward")
    for axes in (loss_axes, reward_axes):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def _log_lines(run: PolicyGradientRun) -> list[str]:
    return [*_setting_lines(run.settings), *_step_lines(run.records), *_sample_lines(run.samples)]


def _setting_lines(settings: Mapping[str, object]) -> list[str]:
    if not settings:
        return []
    width = max(len(name) for name in settings)
    return ["Settings", *(f"  {name:<{width}}  {value}" for name, value in settings.items()), ""]


def _step_lines(records: Sequence[Record]) -> list[str]:
    heading = f"{'epoch':>7} {'step':>7} {'loss':>14} {'mean reward':>12}"
    rows = (f"{r.epoch:>7} {r.step:>7} {r.loss:>z14.6f} {r.mean_reward:>12.4f}" for r in records)
    return ["Steps", heading, *rows]


def _sample_lines(samples: Sequence[Sample]) -> list[str]:
    if not samples:
        return []
    lines = ["", "Responses of the trained policy"]
    for index, sample in enumerate(samples):
        if index == 0 or sample.prompt != samples[index - 1].prompt:
            lines.append(f"  prompt {sample.prompt}")
        log_probs = " ".join(f"{value:z8.3f}" for value in sample.log_probs)
        lines.append(
            f"    response {sample.response}   log-probs [{log_probs} ]   "
            f"reward {sample.reward:6.3f}   delta {sample.delta:+z7.3f}"
        )
    return lines
