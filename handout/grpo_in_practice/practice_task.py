"""The task: sums and differences of digits such as 7+5-9, easy (3 terms) and hard (6). Nothing to complete here.

problem    "7+5-9"
response   "\\boxed{3}", or with the running totals, "12>3\\boxed{3}", or checked once more, "12>3;12>3\\boxed{3}"
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from language_model import SPECIAL_TOKENS, CausalLMConfig, CharTokenizer
from torch import Tensor

OPEN, CLOSE = "\\boxed{", "}"  # what stands between them is the answer; a token each
CHARACTERS = "0123456789+->;"
TERMS = {"easy": 3, "hard": 6}
NUM_HELD_OUT = 200  # of each difficulty
SPLIT_SEED = 1
MAX_NEW_TOKENS = 40
EPS = 1e-5  # added to a group's standard deviation

Reward = Callable[[str, str], float]


class PracticeTokenizer(CharTokenizer):
    """One token per character, one for each end of the tag around an answer, and the four special tokens."""

    def __init__(self) -> None:
        """Number the tokens: special ones first."""
        self._tokens = (*SPECIAL_TOKENS, OPEN, CLOSE, *CHARACTERS)
        self._ids = {token: index for index, token in enumerate(self._tokens)}

    def _encode(self, text: str) -> list[int]:
        ids, rest = [], text
        while rest:
            token = next((one for one in (*SPECIAL_TOKENS, OPEN) if rest.startswith(one)), rest[0])
            if token not in self._ids:
                raise ValueError(f"The tokenizer has no token for {token!r} in {text!r}.")
            ids.append(self._ids[token])
            rest = rest[len(token) :]
        return ids


CONFIG = CausalLMConfig(vocab_size=len(SPECIAL_TOKENS) + 2 + len(CHARACTERS), hidden_size=64, num_layers=2, num_heads=4)


# Problems and their answers


def draw_problem(difficulty: str, rng: random.Random) -> str:
    """Return a problem of this difficulty: digits from 1 to 9 with signs between them."""
    digits = [str(rng.randint(1, 9)) for _ in range(TERMS[difficulty])]
    return digits[0] + "".join(rng.choice("+-") + digit for digit in digits[1:])


def terms_of(problem: str) -> list[int]:
    """Return the numbers that are added: 7+5-9 is 7, 5 and -9."""
    return [int(sign + digit) for sign, digit in zip("+" + problem[1::2], problem[::2], strict=True)]


def answer_of(problem: str) -> int:
    """Return the number that the problem asks for."""
    return sum(terms_of(problem))


def held_out_problems(difficulty: str) -> list[str]:
    """Return the problems of this difficulty that nothing is trained on, always the same."""
    rng = random.Random(f"{SPLIT_SEED} {difficulty}")
    found: dict[str, None] = {}
    while len(found) < NUM_HELD_OUT:
        found[draw_problem(difficulty, rng)] = None
    return list(found)


def problem_batches(num_steps: int, num_prompts: int, seed: int, difficulties: Sequence[str]) -> Iterator[list[str]]:
    """Yield, for each step, the problems to pose: drawn anew, of all difficulties alike, without torch's generator."""
    rng = random.Random(seed)
    left_out = {problem for difficulty in difficulties for problem in held_out_problems(difficulty)}
    for _ in range(num_steps):
        batch: list[str] = []
        while len(batch) < num_prompts:
            problem = draw_problem(difficulties[len(batch) % len(difficulties)], rng)
            if problem not in left_out:
                batch.append(problem)
        yield batch


# Rollouts


@dataclass(frozen=True)
class Rollout:
    """Responses that a model sampled, as tokens and as text. `batch` counts responses, a prompt's next to each other.

    problems         list[str]        one per prompt
    responses        list[str]        one per response, without special tokens
    input_ids        int[batch pos]   padding, prompt, response, padding
    attention_mask   int[batch pos]   1 for the tokens of prompt and response, its end token included; 0 for padding
    prompt_length    int              positions before the first response token, padding included
    truncated        bool[batch]      whether a response was cut off before its end token
    """

    problems: list[str]
    responses: list[str]
    input_ids: Tensor
    attention_mask: Tensor
    prompt_length: int
    truncated: Tensor

    @property
    def num_responses(self) -> int:
        """How many responses each prompt has."""
        return len(self.responses) // len(self.problems)

    @property
    def mask(self) -> Tensor:
        """int[batch response_pos], 1 for the responses' tokens."""
        return self.attention_mask[:, self.prompt_length :]

    @property
    def lengths(self) -> Tensor:
        """int[batch], the number of tokens of each response, end token included."""
        return self.mask.sum(dim=-1)


def prompt_text(tokenizer: Any, problem: str, instruction: str = "{problem}") -> str:
    """Return the problem, put into the instruction, as a conversation in which it is the model's turn."""
    messages = [{"role": "user", "content": instruction.replace("{problem}", problem)}]
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
    instruction: str = "{problem}",
) -> Rollout:
    """Return `num_responses` responses to each problem, sampled from the model as it is, at temperature 1.

    Prompts are padded at the left, so that all responses begin at the same position. Draws from torch's global
    generator; with `do_sample=False` it takes the most likely token instead, and draws nothing.
    """
    texts = [prompt_text(tokenizer, problem, instruction) for problem in problems]
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
    truncated = (response_ids != tokenizer.eos_token_id).all(dim=1)
    return Rollout(list(problems), responses, input_ids, attention_mask, prompt_length, truncated)


def up_to_end(response_ids: Tensor, eos_token_id: int) -> Tensor:
    """Return 1 for the tokens of each response up to its end token, that one included, and 0 after it."""
    is_end = (response_ids == eos_token_id).long()
    ended_before = is_end.cumsum(dim=1) - is_end
    return (ended_before == 0).long()


def response_logits(model: Any, rollout: Rollout) -> Tensor:
    """Return the logits that predict the responses' tokens, float[batch response_pos vocab], in one pass."""
    logits = model(input_ids=rollout.input_ids, attention_mask=rollout.attention_mask).logits
    return logits[:, rollout.prompt_length - 1 : -1]


def chosen_log_probs(logits: Tensor, rollout: Rollout) -> Tensor:
    """Return the log-probabilities of the responses' tokens, float32[batch response_pos], 0 where there is none."""
    targets = rollout.input_ids[:, rollout.prompt_length :].unsqueeze(-1)
    log_probs = torch.log_softmax(logits.float(), dim=-1).gather(dim=-1, index=targets).squeeze(-1)
    return log_probs.masked_fill(rollout.mask == 0, 0.0)


def score_rollout(rollout: Rollout, reward_fn: Reward) -> Tensor:
    """Return the reward of every response, float32[prompt trial], on the rollout's device."""
    problems = [problem for problem in rollout.problems for _ in range(rollout.num_responses)]
    rewards = [float(reward_fn(*pair)) for pair in zip(problems, rollout.responses, strict=True)]
    table = torch.tensor(rewards, dtype=torch.float32, device=rollout.input_ids.device)
    return table.reshape(len(rollout.problems), rollout.num_responses)


def take_responses(rollout: Rollout, rows: Tensor) -> Rollout:
    """Return these rows of a rollout; its `problems` and `responses` are then one of each per row."""
    chosen = rows.tolist()
    return replace(
        rollout,
        problems=[rollout.problems[row // rollout.num_responses] for row in chosen],
        responses=[rollout.responses[row] for row in chosen],
        input_ids=rollout.input_ids[rows],
        attention_mask=rollout.attention_mask[rows],
        truncated=rollout.truncated[rows],
    )


def group_advantages(rewards: Tensor, mode: str = "mean_std") -> Tensor:
    """Return what you wrote in the first half: reward minus its group's mean, and with mean_std divided by its spread.

    rewards   float[prompt trial]
    mode      "mean_std" (GRPO) or "mean" (Dr. GRPO)
    """
    centered = rewards - rewards.mean(dim=-1, keepdim=True)
    return centered if mode == "mean" else centered / (rewards.std(dim=-1, keepdim=True) + EPS)
