"""The same loop with a causal model of Hugging Face transformers. There is nothing to complete in this file.

    pip install transformers
    python real_model.py --model PATH                                  a folder with a downloaded model, or its name
    python real_model.py --model PATH --bf16 --gradient-checkpointing --steps 100 --out FOLDER
    python real_model.py --memory                                      what a 0.5B model takes of 24 GB, by formula
    python real_model.py --memory --responses 4 --length 1024

The model needs a chat template, rotary positions (prompts are padded at the left), and no dropout. Everything runs on
one device, chosen once: a GPU where there is one, or what --device says.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from practice_loop import Settings, TrainingRun, is_right, tagged_reward, train
from practice_task import TERMS, held_out_problems, sample_rollout, score_rollout
from torch import nn

INSTRUCTION = "Calculate {problem} step by step, in a few words. End with the result in \\boxed{}."
GIGABYTE = 1e9


# A model to train


def chosen_device(name: str | None = None) -> torch.device:
    """Return where everything runs: the device of this name, else the GPU if there is one, and the CPU otherwise."""
    return torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))


def load(path: str | Path, device: torch.device, *, gradient_checkpointing: bool = False) -> tuple[Any, Any]:
    """Return the model, in float32 and ready to be trained, and its tokenizer.

    raises   ValueError   a model with dropout; a tokenizer without chat template
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(path)
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).to(device)
    return ready(model, tokenizer, gradient_checkpointing=gradient_checkpointing), tokenizer


def ready(model: Any, tokenizer: Any, *, gradient_checkpointing: bool = False) -> Any:
    """Return the model, made to sample from its own distribution and to recompute activations if asked to.

    Checkpoints come with settings for chatting: a temperature, top-p, a penalty for repetition. Each makes the
    responses those of another policy than the one that is scored and trained, so none is kept.
    """
    from transformers import GenerationConfig

    if tokenizer.chat_template is None:
        raise ValueError("This tokenizer has no chat template: take the model's instruct version.")
    if any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules()):
        raise ValueError("This model has dropout: the policy that is trained would not be the one that sampled.")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    special = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id}
    model.generation_config = GenerationConfig(**special)
    if not gradient_checkpointing:
        return model.eval()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model.train()  # transformers recomputes in this mode alone; without dropout it changes nothing else


def run(model: Any, tokenizer: Any, settings: Settings) -> TrainingRun:
    """Train the model on the practice task, and print the share of right responses now and then."""
    result = train(model, tokenizer, settings, tagged_reward)
    for record in result.records[:: max(1, settings.num_steps // 10)]:
        shown = {name: round(record.values[name], 3) for name in ("reward", "accuracy", "response_length")}
        print(f"  step {record.step:>4}   {shown}", flush=True)
    return result


def held_out(model: Any, tokenizer: Any, settings: Settings, count: int = 50) -> dict[str, float]:
    """Return the share of some held-out problems of each difficulty that one sampled response each solves."""
    training = model.training
    model.eval()
    found = {}
    for difficulty in TERMS:
        problems = held_out_problems(difficulty)[:count]
        rollout = sample_rollout(
            model, tokenizer, problems, 1, settings.max_new_tokens, instruction=settings.instruction
        )
        found[difficulty] = round(score_rollout(rollout, is_right).mean().item(), 3)
    model.train(training)
    return found


# Memory, by formula


@dataclass(frozen=True)
class Sizes:
    """What a model of the family of Llama and Qwen has, that its memory follows from. The defaults: Qwen2.5-0.5B."""

    layers: int = 24
    hidden: int = 896
    keys: int = 128  # keys' and values' size: that of one head times the number of their heads
    network: int = 4864
    vocabulary: int = 151_936
    tied: bool = True  # whether embedding and head are one matrix
    biases: bool = True  # of queries, keys and values

    @property
    def parameters(self) -> int:
        """How many numbers there are to train."""
        attention = 2 * self.hidden**2 + 2 * self.hidden * self.keys
        attention += self.biases * (self.hidden + 2 * self.keys)
        layer = attention + 3 * self.hidden * self.network + 2 * self.hidden
        return self.layers * layer + self.hidden + (1 if self.tied else 2) * self.vocabulary * self.hidden


def memory(sizes: Sizes, responses: int, length: int, *, checkpointing: bool, sampled: int = 64) -> dict[str, float]:
    """Return the bytes that a step takes at its fullest, by part. Weights are float32, passes under bf16 autocast.

    responses   of one pass forwards and backwards: the batch, or a micro-batch
    length      tokens of prompt and response together
    sampled     responses that are sampled at once

    Per token and layer, autograd keeps: of either norm what goes in and what is divided by its size (float32), and the
    result (bfloat16); queries, keys and values, repeated for every head, what attention returns, and that once more in
    the order of the heads (bfloat16); of the network its two branches, the gated one and their product (bfloat16). With
    checkpointing it keeps what goes into each layer, and everything of one layer at a time. Of the weights autocast
    keeps a copy in bfloat16. Per token the logits are there in bfloat16 and in float32 with their log-softmax, and four
    more such tensors while their entropy is taken, which is more than backpropagating then needs.
    """
    count, tokens = sizes.parameters, responses * length
    layer = 2 * (4 + 4 + 2) * sizes.hidden + (3 + 2) * 2 * sizes.hidden + 4 * 2 * sizes.network
    kept = (4 * sizes.hidden * sizes.layers + layer) if checkpointing else layer * sizes.layers
    return {
        "weights": 4.0 * count,
        "gradients": 4.0 * count,
        "Adam": 8.0 * count,
        "reference": 4.0 * count,
        "cache while sampling": 4.0 * 2 * sizes.keys * sizes.layers * sampled * length,
        "weights in bfloat16": 2.0 * count,
        "activations": float(kept * tokens),
        "logits": (2.0 + 4 + 4 + 4 * 4) * sizes.vocabulary * tokens,
    }


def at_once(parts: Mapping[str, float]) -> float:
    """Return the bytes needed at the fullest moment: sampling and backpropagating take turns."""
    standing = sum(parts[name] for name in ("weights", "gradients", "Adam", "reference"))
    learning = parts["weights in bfloat16"] + parts["activations"] + parts["logits"]
    return standing + max(parts["cache while sampling"], learning)


def memory_table(sizes: Sizes, passes: Sequence[tuple[int, bool]], length: int) -> str:
    """Return a Markdown table, a column for each pass: how many responses, and whether with checkpointing."""
    columns = [memory(sizes, responses, length, checkpointing=saved) for responses, saved in passes]
    headings = [f"{count} at once{', recomputed' if saved else ''}" for count, saved in passes]
    lines = ["| GB | " + " | ".join(headings) + " |", "|---|" + "---:|" * len(passes)]
    rows = {name: [column[name] for column in columns] for name in columns[0]}
    rows["at the fullest"] = [at_once(column) for column in columns]
    lines += [
        f"| {name} | " + " | ".join(f"{v / GIGABYTE:.1f}" for v in values) + " |" for name, values in rows.items()
    ]
    return "\n".join(lines)


def main() -> None:
    """Train a model, or print what one takes."""
    parser = argparse.ArgumentParser(description="The practice task with a real model.")
    parser.add_argument("--model", help="a folder, or a name that transformers can download")
    parser.add_argument("--memory", action="store_true", help="print the memory of a 0.5B model, and train nothing")
    parser.add_argument("--bf16", action="store_true", help="the model's passes under bfloat16 autocast")
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--responses", type=int, default=8, help="per prompt; of a pass, for --memory")
    parser.add_argument("--length", type=int, default=512, help="of a response, at most; of a sequence, for --memory")
    parser.add_argument("--parts", type=int, default=8, help="micro-batches of a step")
    parser.add_argument("--device", help="cuda, cuda:1, cpu; without it a GPU where there is one")
    parser.add_argument("--out", type=Path, help="a folder for the trained model and its tokenizer")
    arguments = parser.parse_args()
    if arguments.memory or arguments.model is None:
        few = max(1, arguments.responses // 4)
        passes = [(arguments.responses, False), (arguments.responses, True), (few, True)]
        print(memory_table(Sizes(), passes, arguments.length))
        return
    settings = Settings(
        num_steps=arguments.steps,
        num_responses=arguments.responses,
        num_inner_steps=1,
        max_new_tokens=arguments.length,
        learning_rate=1e-6,
        num_parts=arguments.parts,
        autocast="bfloat16" if arguments.bf16 else "none",
        instruction=INSTRUCTION,
    )
    device = chosen_device(arguments.device)
    model, tokenizer = load(arguments.model, device, gradient_checkpointing=arguments.gradient_checkpointing)
    print(f"before: {held_out(model, tokenizer, settings)}")
    run(model, tokenizer, settings)
    print(f"after: {held_out(model, tokenizer, settings)}")
    if arguments.out is not None:
        model.save_pretrained(arguments.out)
        tokenizer.save_pretrained(arguments.out)


if __name__ == "__main__":
    main()
