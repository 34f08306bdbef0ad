"""Learning curves on the sorting task, with your six functions. There is nothing to complete in this file.

    python experiments.py                       three runs: raw, centered and normalized rewards, naive loss
    python experiments.py --grid                all twelve runs: four ways to make deltas by three losses
    python experiments.py --seed 6 --epochs 50 --out some/folder

Prints the final mean reward of every run, and writes one figure of all learning curves and, per run, a folder
with its own curve and a log that ends with responses of the trained policy. Same seed, same curves.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from policy_gradient import compute_deltas, compute_log_probs, compute_reward, run_policy_gradient
from sorting_task import (
    DEFAULT_PROMPTS,
    PolicyGradientRun,
    Sample,
    generate_responses,
    save_run,
    sort_inclusion_ordering_reward,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DELTAS_MODES = ("rewards", "centered_rewards", "normalized_rewards", "max_rewards")
LOSS_MODES = ("naive", "unclipped", "clipped")
COLORS = {
    "rewards": "tab:gray",
    "centered_rewards": "tab:blue",
    "normalized_rewards": "tab:orange",
    "max_rewards": "tab:green",
}
MAX_REWARD = 5.0  # three tokens found, two adjacent pairs in order
SAMPLES_IN_LOG = 5


class Setting(NamedTuple):
    """What tells one run of an experiment from another."""

    deltas_mode: str
    loss_mode: str


THREE_RUNS = tuple(Setting(deltas_mode, "naive") for deltas_mode in DELTAS_MODES[:3])
GRID = tuple(Setting(deltas_mode, loss_mode) for deltas_mode in DELTAS_MODES for loss_mode in LOSS_MODES)

Runs = Mapping[Setting, PolicyGradientRun]


def run_experiment(settings: Sequence[Setting], seed: int, num_epochs: int) -> Runs:
    """Return one trained run per setting, all from the same seed, with what the log needs filled in."""
    runs: dict[Setting, PolicyGradientRun] = {}
    for setting in settings:
        options = {**setting._asdict(), "seed": seed, "num_epochs": num_epochs}
        run = run_policy_gradient(**options, progress=False)
        runs[setting] = replace(run, settings=options, samples=sample_responses(run, setting.deltas_mode))
        print(f"  {setting.deltas_mode:<20}{setting.loss_mode:<12}{final_reward(run):.3f}", flush=True)
    return runs


def sample_responses(run: PolicyGradientRun, deltas_mode: str) -> list[Sample]:
    """Return a few responses of the trained policy to each default prompt, with their rewards and deltas."""
    prompts = torch.tensor(DEFAULT_PROMPTS)
    responses = generate_responses(prompts, run.model, SAMPLES_IN_LOG)  # batch trial pos
    rewards = compute_reward(prompts, responses, sort_inclusion_ordering_reward)  # batch trial
    deltas = compute_deltas(rewards, deltas_mode)
    with torch.no_grad():
        log_probs = compute_log_probs(prompts, responses, run.model)  # batch trial pos
    return [
        Sample(prompt, *values)
        for prompt, *rows in zip(DEFAULT_PROMPTS, responses, log_probs, rewards, deltas, strict=True)
        for values in zip(*(row.tolist() for row in rows), strict=True)
    ]


def final_reward(run: PolicyGradientRun) -> float:
    """Return the mean reward of the last epoch's responses."""
    return run.records[-1].mean_reward


def save_three_runs(runs: Runs, path: Path) -> None:
    """Write one figure: a column per run, mean reward above and loss below, each row on one scale."""
    from matplotlib.figure import Figure  # imported here, like in sorting_task: only saving needs it

    figure = Figure(figsize=(10.5, 5.6), layout="constrained")
    panels = figure.subplots(2, len(runs), sharey="row")
    for column, (setting, run) in enumerate(runs.items()):
        reward_axes, loss_axes = panels[:, column]
        draw_rewards(reward_axes, setting, run)
        reward_axes.set_title(f"{label(setting.deltas_mode)}, {setting.loss_mode} loss", loc="left")
        reward_axes.set_xlabel("epoch")
        loss_axes.plot(
            [record.step for record in run.records],
            [record.loss for record in run.records],
            color=COLORS[setting.deltas_mode],
            linewidth=1.0,
        )
        loss_axes.set_xlabel("inner step")
        loss_axes.grid(alpha=0.3)
    panels[0, 0].set_ylabel("mean reward")
    panels[1, 0].set_ylabel("loss")
    figure.savefig(path, dpi=120)


def save_grid(runs: Runs, path: Path) -> None:
    """Write one figure of mean rewards on one scale: a row per way to make deltas, a column per loss."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 9.0), layout="constrained")
    panels = figure.subplots(len(DELTAS_MODES), len(LOSS_MODES), sharex=True, sharey=True)
    for (setting, run), axes in zip(runs.items(), panels.flat, strict=True):
        draw_rewards(axes, setting, run)
    for axes, loss_mode in zip(panels[0], LOSS_MODES, strict=True):
        axes.set_title(f"{loss_mode} loss")
    for axes in panels[-1]:
        axes.set_xlabel("epoch")
    for axes, deltas_mode in zip(panels[:, 0], DELTAS_MODES, strict=True):
        axes.set_ylabel(label(deltas_mode))
    figure.supylabel("mean reward", fontsize="medium")
    figure.savefig(path, dpi=120)


def draw_rewards(axes: Axes, setting: Setting, run: PolicyGradientRun) -> None:
    """Draw one learning curve, a point per epoch, with its end and the greatest possible reward marked."""
    rewards = {record.epoch: record.mean_reward for record in run.records}
    axes.plot(list(rewards), list(rewards.values()), color=COLORS[setting.deltas_mode], linewidth=1.8)
    axes.axhline(MAX_REWARD, color="black", linestyle=":", linewidth=1.0)
    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8}
    note = f"ends at {final_reward(run):.2f}"
    axes.text(0.97, 0.85, note, transform=axes.transAxes, ha="right", va="top", bbox=box)
    axes.grid(alpha=0.3)


def label(deltas_mode: str) -> str:
    """Return the mode as words for a figure."""
    return "raw rewards" if deltas_mode == "rewards" else deltas_mode.replace("_", " ")


def main() -> None:
    """Run the experiment that the command line asks for."""
    parser = argparse.ArgumentParser(description="Learning curves on the sorting task.")
    parser.add_argument("--grid", action="store_true", help="all twelve combinations instead of three runs")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("runs"), help="folder to write to (default: runs)")
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # the tensors are tiny: more threads only wait for each other
    print(f"  {'deltas':<20}{'loss':<12}final mean reward (of at most {MAX_REWARD:g})")
    runs = run_experiment(GRID if arguments.grid else THREE_RUNS, arguments.seed, arguments.epochs)
    for setting, run in runs.items():
        save_run(run, arguments.out / f"{setting.deltas_mode}-{setting.loss_mode}")
    figure_path = arguments.out / ("grid.png" if arguments.grid else "three_runs.png")
    (save_grid if arguments.grid else save_three_runs)(runs, figure_path)
    print(f"Learning curves: {figure_path}")


if __name__ == "__main__":
    main()
