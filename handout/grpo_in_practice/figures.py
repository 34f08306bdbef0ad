"""The figures of the studies, drawn from what was kept of the runs. There is nothing to complete in this file."""

from __future__ import annotations

import io
import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLORS = ("#0072b2", "#d55e00", "#009e73", "#7b3294", "#4d4d4d")  # told apart by the colour-blind, too
DASHES = ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)))
MARKERS = "osDv^P"
LABELS = {
    "accuracy": "share right",
    "approx_kl_ref": "KL to the reference, per token",
    "entropy": "entropy per token, nats",
    "gradient_norm": "gradient norm, before clipping",
    "groups_without_signal": "groups without signal",
    "response_length": "tokens per response",
    "reward": "mean reward",
    "sampler_gap": "sampler gap, nats",
    "truncated_share": "share truncated",
    "wrong_response_length": "tokens per wrong response",
}
SMOOTH = 5  # steps of which a curve of a study is the mean


def save_study(result: Mapping[str, Any], curves: Sequence[str], path: Path) -> None:
    """Write one figure: a panel per curve, and one of what each seed solves at the end.

    A line is the mean over seeds, the band reaches from the lowest seed to the highest; in the last panel every seed
    has its own marker, and a line through all arms.
    """
    figure = Figure(figsize=(10.0, 3.8), layout="constrained")
    *panels, ends = figure.subplots(1, len(curves) + 1)
    for panel, curve in zip(panels, curves, strict=True):
        for number, (name, arm) in enumerate(result["arms"].items()):
            _band(panel, [outcome["curves"].get(curve, []) for outcome in arm["seeds"].values()], name, number)
        panel.set(xlabel="step", ylabel=LABELS[curve])
        panel.grid(alpha=0.3)
    _ends(ends, result["arms"])
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, handlelength=4.0)
    save_small(figure, path)


def _band(panel: Axes, seeds: Sequence[Sequence[float | None]], name: str, number: int) -> None:
    smooth = [_smoothed(values) for values in seeds]
    columns = [[value for value in column if not math.isnan(value)] for column in zip(*smooth, strict=True)]
    steps = [step for step, column in enumerate(columns) if column]
    columns = [column for column in columns if column]
    style = {"color": COLORS[number], "linestyle": DASHES[number], "marker": MARKERS[number]}
    every = (4 * number, max(1, len(steps) // 4))
    means = [statistics.mean(column) for column in columns]
    panel.plot(steps, means, label=name, linewidth=1.4, markersize=5, markevery=every, **style)
    panel.fill_between(steps, list(map(min, columns)), list(map(max, columns)), color=COLORS[number], alpha=0.1)


def _smoothed(values: Sequence[float | None]) -> list[float]:
    """Return the mean of up to SMOOTH values that end here; nan where there is none."""
    found = []
    for end in range(1, len(values) + 1):
        window = [value for value in values[max(0, end - SMOOTH) : end] if value is not None]
        found.append(statistics.mean(window) if window else math.nan)
    return found


def _ends(panel: Axes, arms: Mapping[str, Any]) -> None:
    names = list(arms)
    for number, seed in enumerate(next(iter(arms.values()))["seeds"]):
        shares = [statistics.mean(arms[name]["seeds"][seed]["held_out"].values()) for name in names]
        panel.plot(
            range(len(names)),
            shares,
            marker=MARKERS[number % len(MARKERS)],
            linestyle=DASHES[number % len(DASHES)],
            color="0.35",
            linewidth=0.8,
            markersize=6,
            markerfacecolor="none",
            label=f"seed {seed}",
        )
    panel.set_xticks(
        range(len(names)), [textwrap.fill(name.replace("_", "_ "), 10).replace("_ ", "_") for name in names]
    )
    panel.tick_params(axis="x", labelsize="small" if len(names) < 4 else "x-small")
    panel.margins(x=0.12)
    panel.set(ylabel="held-out solved, each seed", xlabel="seeds 0, 1, 2, 3: ○ □ ◇ ▽")
    panel.grid(alpha=0.3, axis="y")


def save_wrong(results: Mapping[str, Any], curves: Mapping[str, Sequence[str]], path: Path) -> None:
    """Write one figure: a row for each run gone wrong, with its three curves."""
    figure = Figure(figsize=(10.0, 2.0 * len(results) + 0.3), layout="constrained")
    grid = figure.subplots(len(results), 3, sharex=True, squeeze=False)
    for (name, result), panels in zip(results.items(), grid, strict=True):
        (arm,) = result["arms"].values()
        (outcome,) = arm["seeds"].values()
        for curve, panel in zip(curves[name], panels, strict=True):
            values = _smoothed(outcome["curves"].get(curve, []))
            panel.plot(range(len(values)), values, color=COLORS[1], linewidth=1.5)
            panel.set(ylabel=LABELS[curve])
            panel.grid(alpha=0.3)
        panels[0].set_title(name, loc="left", fontweight="bold")
    for panel in grid[-1]:
        panel.set(xlabel="step")
    save_small(figure, path)


def save_small(figure: Figure, path: Path) -> None:
    """Write a PNG with a palette, which takes half of the room; by octree, which keeps the colours of lines."""
    from PIL import Image  # comes with matplotlib

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=80, format="png")
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.open(drawn).convert("RGB").quantize(255, method=Image.Quantize.FASTOCTREE).save(path, optimize=True)
