"""The task: sums such as 17+25, answered by a language model. Given whole: problems, reward, rollouts, records, plots.

problem    "17+25"
response   "42", or with working: "7+5=12,1+2+1=4,42"
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Item = TypeVar("Item")
Reward = Callable[[str, str], float]
LARGEST = 99
NUM_HELD_OUT = 1_000
SPLIT_SEED = 1
FORMAT_REWARD = 0.1
MAX_NEW_TOKENS = 24
IMAGE_NAME, LOG_NAME = "learning_curve.png", "log.txt"


# Problems and their reward


def split_problems() -> tuple[list[str], list[str]]:
    """Return the problems to train on and the held-out ones: all sums of two numbers up to 99, in a fixed order."""
    problems = [f"{a}+{b}" for a in range(LARGEST + 1) for b in range(LARGEST + 1)]
    random.Random(SPLIT_SEED).shuffle(problems)
    return problems[NUM_HELD_OUT:], problems[:NUM_HELD_OUT]


def problem_batches(problems: Sequence[str], num_steps: int, num_prompts: int, seed: int) -> Iterator[list[str]]:
    """Yield, for each step, the problems to pose: all in turn, in an order of the seed's own; torch's is not used."""
    order = random.Random(seed)
    waiting: list[str] = []
    for _ in range(num_steps):
        while len(waiting) < num_prompts:
            waiting += order.sample(list(problems), len(problems))
        yield waiting[:num_prompts]
        waiting = waiting[num_prompts:]


def last_number(response: str) -> int | None:
    """Return the last number in a response; None where there is none."""
    found = re.findall(r"[0-9]+", response)
    return int(found[-1]) if found else None


def is_correct(problem: str, response: str) -> bool:
    """Return whether the response's last number is the sum."""
    return last_number(response) == sum(int(number) for number in problem.split("+"))


def is_well_formed(response: str) -> bool:
    """Return whether the response ends in its answer: a number without needless zeros, alone or after a comma."""
    return re.fullmatch(r"(?:.*,)?(?:0|[1-9][0-9]*)", response) is not None


def sum_reward(problem: str, response: str) -> float:
    """Return 1 for the right sum, and 0.1 more for a well-formed response, right or wrong."""
    return float(is_correct(problem, response)) + FORMAT_REWARD * is_well_formed(response)


# Rollouts


@dataclass(frozen=True)
class Rollout:
    """Responses that a model sampled, as tokens and as text. `batch` counts responses, a prompt's next to each other.

    problems         list[str]        one per prompt
    responses        list[str]        one per response, without special tokens
    input_ids        int[batch pos]   padding, prompt, response, padding
    attention_mask   int[batch pos]   1 for the tokens of prompt and response, its end token included; 0 for padding
    prompt_length    int              positions before the first response token, padding included
    """

    problems: list[str]
    responses: list[str]
    input_ids: Tensor
    attention_mask: Tensor
    prompt_length: int

    @property
    def num_responses(self) -> int:
        """How many responses each prompt has."""
        return len(self.responses) // len(self.problems)


def prompt_text(tokenizer: Any, problem: str) -> str:
    """Return the problem as a conversation in which it is the model's turn."""
    messages = [{"role": "user", "content": problem}]
    text: str = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return text


@torch.no_grad()
def sample_rollout(
    model: Any,
    tokenizer: Any,
    problems: Sequence[str],
    num_responses: int,
    max_new_tokens: int = MAX_NEW_TOKENS,
    *,
    do_sample: bool = True,
) -> Rollout:
    """Return `num_responses` responses to each problem, sampled from the model as it is, at temperature 1.

    Prompts are padded at the left, so that all responses begin at the same position. Draws from torch's global
    generator; with `do_sample=False` it takes the most likely token instead, and draws nothing.
    """
    texts = [prompt_text(tokenizer, problem) for problem in problems]
    inputs = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
    inputs = inputs.to(model.device)
    prompt_ids, prompt_mask = inputs["input_ids"], inputs["attention_mask"]
    sampling = {"temperature": 1.0, "top_k": 0, "top_p": 1.0} if do_sample else {}
    input_ids = model.generate(
        input_ids=prompt_ids,
        attention_mask=prompt_mask,
        max_new_tokens=max_new_tokens,
        do_sample=do_sample,
        num_return_sequences=num_responses,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **sampling,
    )  # batch pos
    prompt_length = prompt_ids.shape[1]
    response_ids = input_ids[:, prompt_length:]
    attention_mask = torch.cat(
        [prompt_mask.repeat_interleave(num_responses, dim=0), up_to_end(response_ids, tokenizer.eos_token_id)], dim=1
    )
    responses = tokenizer.batch_decode(response_ids, skip_special_tokens=True)
    return Rollout(list(problems), responses, input_ids, attention_mask, prompt_length)


def up_to_end(response_ids: Tensor, eos_token_id: int) -> Tensor:
    """Return 1 for the tokens of each response up to its end token, that one included, and 0 after it."""
    is_end = (response_ids == eos_token_id).long()
    ended_before = is_end.cumsum(dim=1) - is_end
    return (ended_before == 0).long()


def score_rollout(rollout: Rollout, reward_fn: Reward) -> Tensor:
    """Return the reward of every response, float32[prompt trial], on the rollout's device."""
    problems = [problem for problem in rollout.problems for _ in range(rollout.num_responses)]
    rewards = [float(reward_fn(*pair)) for pair in zip(problems, rollout.responses, strict=True)]
    table = torch.tensor(rewards, dtype=torch.float32, device=rollout.input_ids.device)
    return table.reshape(len(rollout.problems), rollout.num_responses)


def accuracy(
    model: Any, tokenizer: Any, problems: Sequence[str], *, do_sample: bool = True, max_new_tokens: int = MAX_NEW_TOKENS
) -> float:
    """Return the share of problems that one response each solves: a sampled one, or the most likely tokens."""
    rollout = sample_rollout(model, tokenizer, problems, 1, max_new_tokens, do_sample=do_sample)
    right = [is_correct(*pair) for pair in zip(rollout.problems, rollout.responses, strict=True)]
    return sum(right) / len(right)


# What a training run returns


@dataclass(frozen=True)
class Record:
    """One inner step of training.

    step              int     counts rollouts, from 0
    inner_step        int     counts the updates on one rollout, from 0
    loss              float   before the update
    mean_reward       float   of the rollout
    response_length   float   mean number of tokens per response of the rollout, end token included
    """

    step: int
    inner_step: int
    loss: float
    mean_reward: float
    response_length: float


@dataclass(frozen=True)
class TrainingRun:
    """The trained model, and one record per inner step, in order."""

    model: nn.Module
    records: list[Record]


def mean_response_length(rollout: Rollout) -> float:
    """Return the mean number of tokens per response, end tokens included and padding not."""
    return float(rollout.attention_mask[:, rollout.prompt_length :].sum(dim=-1).double().mean())


def progress_bar(iterable: Iterable[Item], enabled: bool, total: int | None = None) -> Iterable[Item]:
    """Return the same items, with a progress bar on the terminal if `enabled` and tqdm is installed."""
    if not enabled:
        return iterable
    try:
        from tqdm import tqdm
    except ImportError:
        return iterable
    bar: Iterable[Item] = tqdm(iterable, total=total, desc="step", leave=False)
    return bar


def save_run(run: TrainingRun, directory: str | Path) -> tuple[Path, Path]:
    """Return the paths of the learning curve and of the log, both written into `directory`."""
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    image_path, log_path = directory / IMAGE_NAME, directory / LOG_NAME
    save_curves({"run": run.records}, image_path)
    heading = f"{'step':>6} {'inner':>6} {'loss':>12} {'mean reward':>12} {'length':>8}"
    rows = (
        f"{r.step:>6} {r.inner_step:>6} {r.loss:>z12.6f} {r.mean_reward:>12.4f} {r.response_length:>8.2f}"
        for r in run.records
    )
    log_path.write_text("\n".join([heading, *rows]) + "\n", encoding="utf-8")
    return image_path, log_path


def save_curves(runs: dict[str, list[Record]], path: Path) -> None:
    """Write one figure: mean reward and response length over the steps, a line per run."""
    from matplotlib.figure import Figure  # imported here: only saving needs it, and it is slow to import

    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    reward_axes, length_axes = figure.subplots(1, 2)
    for name, records in runs.items():
        first = [record for record in records if record.inner_step == 0]
        steps = [record.step for record in first]
        reward_axes.plot(steps, [record.mean_reward for record in first], linewidth=1.2, label=name)
        length_axes.plot(steps, [record.response_length for record in first], linewidth=1.2, label=name)
    reward_axes.set(xlabel="step", ylabel="mean reward")
    length_axes.set(xlabel="step", ylabel="tokens per response")
    for axes in (reward_axes, length_axes):
        axes.grid(alpha=0.3)
    if len(runs) > 1:
        reward_axes.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=120)
