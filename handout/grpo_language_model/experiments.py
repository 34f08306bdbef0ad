"""Learning curves of the language model, with your five functions. There is nothing to complete in this file.

    python experiments.py                       three runs, seeds 0 to 2: about half a minute each
    python experiments.py --seeds 5 --steps 30 --out some/folder
    python experiments.py --modes               one run for each way to make advantages and to normalise

Prints the share of held-out sums that are solved before and after, and writes one figure of all learning curves
and, per run, a folder with its own curve and log. It runs on a GPU where there is one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from addition_task import Record, TrainingRun, accuracy, save_run, split_problems
from grpo_language_model import train
from language_model import CausalLM, CharTokenizer
from matplotlib.figure import Figure

CHECKPOINT = Path(__file__).resolve().parent / "checkpoint"
SEEDS = (0, 1, 2)
DASHES = ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)))  # runs are told apart without their colours, too
MARKERS = "osDv^"
MODES: tuple[Mapping[str, Any], ...] = (
    {"advantage_mode": "mean_std", "normalization": "token_mean"},
    {"advantage_mode": "mean", "normalization": "token_mean"},
    {"advantage_mode": "leave_one_out", "normalization": "token_mean"},
    {"advantage_mode": "mean_std", "normalization": "sequence_mean"},
    {"advantage_mode": "mean", "normalization": "constant_length"},
)


def solved(model: CausalLM) -> tuple[float, float]:
    """Return the share of held-out sums solved: by sampled responses, and by the most likely tokens."""
    torch.manual_seed(0)
    tokenizer, (_, held_out) = CharTokenizer(), split_problems()
    return accuracy(model, tokenizer, held_out), accuracy(model, tokenizer, held_out, do_sample=False)


def run_experiment(name: str, options: Mapping[str, Any], device: str) -> TrainingRun:
    """Return one training run from the checkpoint, and print how good the model has become."""
    problems, _ = split_problems()
    model = CausalLM.from_pretrained(CHECKPOINT).to(device)
    run = train(model, CharTokenizer(), problems, **options)
    sampled, greedy = solved(run.model)
    print(f"  {name:<34}{sampled:>9.3f}{greedy:>14.3f}", flush=True)
    return run


def save_figure(runs: Mapping[str, Sequence[Record]], path: Path) -> None:
    """Write mean reward and response length over the steps, a line per run: its own colour, dashes and marker."""
    figure = Figure(figsize=(9.0, 3.4), layout="constrained")
    reward_axes, length_axes = figure.subplots(1, 2, sharex=True)
    for number, (name, records) in enumerate(runs.items()):
        first = [record for record in records if record.inner_step == 0]
        steps = [record.step for record in first]
        style = {
            "linestyle": DASHES[number % len(DASHES)],
            "marker": MARKERS[number % len(MARKERS)],
            "markevery": (2 * number, 2 * len(runs)),
        }
        reward_axes.plot(
            steps, [record.mean_reward for record in first], linewidth=1.3, markersize=5, label=name, **style
        )
        length_axes.plot(steps, [record.response_length for record in first], linewidth=1.3, markersize=5, **style)
    reward_axes.set(xlabel="step", ylabel="mean reward")
    length_axes.set(xlabel="step", ylabel="tokens per response")
    for axes in (reward_axes, length_axes):
        axes.grid(alpha=0.3)
    if len(runs) > 1:
        reward_axes.legend(frameon=False, fontsize="small", handlelength=4.0)
    figure.savefig(path, dpi=100)


def main() -> None:
    """Run the experiment that the command line asks for."""
    parser = argparse.ArgumentParser(description="Learning curves on sums.")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--modes", action="store_true", help="compare modes, with the first seed alone")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder to write to (default: runs)")
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # the tensors are small: more threads only wait for each other
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"  {'held-out sums solved':<34}{'sampled':>9}{'most likely':>14}")
    print("  {:<34}{:>9.3f}{:>14.3f}".format("checkpoint", *solved(CausalLM.from_pretrained(CHECKPOINT).to(device))))
    options = {"num_steps": arguments.steps, "seed": arguments.seeds[0]}
    if arguments.modes:
        chosen = {", ".join(mode.values()): {**options, **mode} for mode in MODES}
    else:
        chosen = {f"seed {seed}": {**options, "seed": seed} for seed in arguments.seeds}
    runs = {name: run_experiment(name, settings, device) for name, settings in chosen.items()}
    for name, run in runs.items():
        save_run(run, arguments.out / name.replace(", ", "-").replace(" ", "-"))
    save_figure({name: run.records for name, run in runs.items()}, arguments.out / "learning_curves.png")
    print(f"Learning curves: {arguments.out / 'learning_curves.png'}")


if __name__ == "__main__":
    main()
