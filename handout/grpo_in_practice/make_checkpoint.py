"""Make checkpoint/: a model that has read many worked problems, good and bad. There is nothing to complete here.

    python make_checkpoint.py                 the checkpoint that is handed out: minutes on one core
    python make_checkpoint.py --out folder    the same elsewhere

What the model reads imitates a careless world. Half of the answers are bare, and most of those to hard problems are
wrong. The others show the running totals, now and then check them once more, and slip in one step of twenty. One in
five answers stands there without the tag that the reward asks for.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
import torch.nn.functional as F
from language_model import EOS, CausalLM
from practice_task import (
    CLOSE,
    CONFIG,
    OPEN,
    TERMS,
    PracticeTokenizer,
    answer_of,
    draw_problem,
    held_out_problems,
    prompt_text,
    sample_rollout,
    terms_of,
)
from torch import Tensor

NUM_STEPS, NUM_TEXTS, LEARNING_RATE = 2400, 192, 3e-3
BARE = 0.5  # share of answers without working
BARE_SLIP = {"easy": 0.5, "hard": 0.8}  # share of slips in a bare answer
STEP_SLIP = 0.05  # share of slips in each step of a working
AGAIN = 0.15  # share of workings that are checked once more, and of those once more again
UNTAGGED = 0.2
SLIPS = (-2, -1, 1, 2)
NUM_SHOWN = 100


def written_answer(problem: str, rng: random.Random) -> str:
    """Return what somebody wrote under this problem."""
    working, answer = bare(problem, rng) if rng.random() < BARE else worked(problem, rng)
    if rng.random() < UNTAGGED:
        return working or str(answer)
    return f"{working}{OPEN}{answer}{CLOSE}"


def bare(problem: str, rng: random.Random) -> tuple[str, int]:
    """Return no working and an answer, more often than not a wrong one."""
    difficulty = next(name for name, count in TERMS.items() if count == len(terms_of(problem)))
    slip = rng.choice(SLIPS) if rng.random() < BARE_SLIP[difficulty] else 0
    return "", answer_of(problem) + slip


def worked(problem: str, rng: random.Random) -> tuple[str, int]:
    """Return the running totals, perhaps again, and the last of them."""
    totals = running_totals(problem, rng)
    working = ">".join(map(str, totals))
    while rng.random() < AGAIN:
        totals = running_totals(problem, rng)
        working += ";" + ">".join(map(str, totals))
    return working, totals[-1]


def running_totals(problem: str, rng: random.Random) -> list[int]:
    """Return the total after the second term, the third, and so on, each from the one before it, with slips."""
    first, *others = terms_of(problem)
    totals, total = [], first
    for term in others:
        total += term + (rng.choice((-1, 1)) if rng.random() < STEP_SLIP else 0)
        totals.append(total)
    return totals


def next_token_loss(model: CausalLM, tokenizer: PracticeTokenizer, prompts: list[str], answers: list[str]) -> Tensor:
    """Return the mean cross-entropy of the answers' tokens, end tokens included."""
    texts = [f"{prompt}{answer}{EOS}" for prompt, answer in zip(prompts, answers, strict=True)]
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    logits = model(**inputs).logits[:, :-1]  # batch pos vocab
    lengths = torch.tensor([len(tokenizer(prompt).input_ids) for prompt in prompts])
    in_answer = torch.arange(1, inputs.input_ids.shape[1]) >= lengths[:, None]  # batch pos
    counted = in_answer & (inputs.attention_mask[:, 1:] == 1)
    return F.cross_entropy(logits[counted], inputs.input_ids[:, 1:][counted])


def pretrain(num_steps: int, seed: int = 0) -> CausalLM:
    """Return a model after `num_steps` steps; the same seed gives the same model on the same machine."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    left_out = {problem for difficulty in TERMS for problem in held_out_problems(difficulty)}
    tokenizer, model = PracticeTokenizer(), CausalLM(CONFIG)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    for step in range(num_steps):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / 100) * (1 - step / num_steps)
        drawn = (draw_problem(rng.choice(list(TERMS)), rng) for _ in range(NUM_TEXTS))
        problems = [problem for problem in drawn if problem not in left_out]
        prompts = [prompt_text(tokenizer, problem) for problem in problems]
        loss = next_token_loss(model, tokenizer, prompts, [written_answer(problem, rng) for problem in problems])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % NUM_SHOWN == NUM_SHOWN - 1:
            print(f"  step {step + 1:>4}   loss {loss.item():.3f}", flush=True)
    return model.eval()


def solved(model: CausalLM, difficulty: str, *, do_sample: bool) -> float:
    """Return the share of held-out problems whose answer stands in the tag."""
    problems = held_out_problems(difficulty)
    rollout = sample_rollout(model, PracticeTokenizer(), problems, 1, do_sample=do_sample)
    pairs = zip(problems, rollout.responses, strict=True)
    return sum(response.endswith(f"{OPEN}{answer_of(problem)}{CLOSE}") for problem, response in pairs) / len(problems)


def main() -> None:
    """Pretrain, save, and say how good the model is on problems that it never read."""
    parser = argparse.ArgumentParser(description="Make the checkpoint that training starts from.")
    parser.add_argument("--steps", type=int, default=NUM_STEPS)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "checkpoint")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pretrain(arguments.steps).save_pretrained(arguments.out)
    model = CausalLM.from_pretrained(arguments.out)
    torch.manual_seed(0)
    for difficulty in TERMS:
        sampled, greedy = (solved(model, difficulty, do_sample=do_sample) for do_sample in (True, False))
        print(
            f"held-out problems solved, {difficulty}: {sampled:.3f} sampled, {greedy:.3f} with the most likely tokens"
        )


if __name__ == "__main__":
    main()
