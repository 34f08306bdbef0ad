"""Make checkpoint/: a model that has read many worked sums, good and bad. There is nothing to complete in this file.

    python pretrain.py                 the checkpoint that is handed out: a few minutes on two cores
    python pretrain.py --out folder    the same elsewhere

What the model reads imitates a careless world: six in ten answers are bare numbers, most of them wrong; the rest show
their working, and are nearly always right. A model of this text does either, as often. Only a reward can tell it which
of the two pays.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import torch
import torch.nn.functional as F
from addition_task import accuracy, prompt_text, split_problems
from language_model import EOS, CausalLM, CharTokenizer
from torch import Tensor

NUM_STEPS, NUM_TEXTS, LEARNING_RATE = 600, 256, 2e-3
BARE = 0.6  # share of answers without working
BARE_SLIP, WORKED_SLIP = 0.7, 0.05  # share of slips: in a bare answer, in each line of a working
SLIPS = (-10, -9, -2, -1, 1, 2, 9, 10)


def written_answer(problem: str, rng: random.Random) -> str:
    """Return what somebody wrote under this problem."""
    first, second = (int(number) for number in problem.split("+"))
    return bare(first, second, rng) if rng.random() < BARE else worked(first, second, rng)


def bare(first: int, second: int, rng: random.Random) -> str:
    """Return the sum alone, and more often than not a wrong one."""
    slip = rng.choice(SLIPS) if rng.random() < BARE_SLIP else 0
    return str(max(0, first + second + slip))


def worked(first: int, second: int, rng: random.Random) -> str:
    """Return ones, tens with the carry, then the sum that follows from them: 7+5=12,1+2+1=4,42."""
    (first_tens, first_ones), (second_tens, second_ones) = divmod(first, 10), divmod(second, 10)
    ones = max(0, first_ones + second_ones + _slip(rng))
    carry = ones // 10
    tens = max(0, first_tens + second_tens + carry + _slip(rng))
    return f"{first_ones}+{second_ones}={ones},{first_tens}+{second_tens}+{carry}={tens},{10 * tens + ones % 10}"


def _slip(rng: random.Random) -> int:
    return rng.choice((-1, 1)) if rng.random() < WORKED_SLIP else 0


def next_token_loss(model: CausalLM, tokenizer: CharTokenizer, prompts: list[str], answers: list[str]) -> Tensor:
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
    problems, _ = split_problems()
    tokenizer, model = CharTokenizer(), CausalLM()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    for step in range(num_steps):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1.0, (step + 1) / 50) * (1 - step / num_steps)
        chosen = [rng.choice(problems) for _ in range(NUM_TEXTS)]
        prompts = [prompt_text(tokenizer, problem) for problem in chosen]
        loss = next_token_loss(model, tokenizer, prompts, [written_answer(problem, rng) for problem in chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 99:
            print(f"  step {step + 1:>4}   loss {loss.item():.3f}", flush=True)
    return model.eval()


def main() -> None:
    """Pretrain, save, and say how good the model is on sums that it never read."""
    parser = argparse.ArgumentParser(description="Make the checkpoint that training starts from.")
    parser.add_argument("--steps", type=int, default=NUM_STEPS)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent / "checkpoint")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    pretrain(arguments.steps).save_pretrained(arguments.out)
    model, tokenizer = CausalLM.from_pretrained(arguments.out), CharTokenizer()
    _, held_out = split_problems()
    torch.manual_seed(0)
    print(f"held-out sums solved: {accuracy(model, tokenizer, held_out):.3f} sampled, ", end="")
    print(f"{accuracy(model, tokenizer, held_out, do_sample=False):.3f} with the most likely tokens")


if __name__ == "__main__":
    main()
