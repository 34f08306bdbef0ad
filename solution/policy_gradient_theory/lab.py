"""The theory lab: what is given. There is nothing to complete in this file.

It holds the drawing of the lab's pictures, which `experiments.py` fills with your functions' numbers, and the reward
of the sorting task. The grader always uses its own copy of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Pictures

COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:red")
STYLES = ("-", "--", "-.", ":")
MARKS = ("black", "tab:orange", "tab:green")


class Curve(NamedTuple):
    """A line of a picture: its points, and what the legend calls it."""

    label: str
    x: Sequence[float]
    y: Sequence[float]


class Panel(NamedTuple):
    """One picture beside others.

    curves   lines, each in a colour and dashes of its own
    points   places to mark: lines without the line
    options  for matplotlib's Axes.set: labels, limits, scales
    """

    title: str
    curves: Sequence[Curve]
    points: Sequence[Curve]
    options: Mapping[str, object]


def save_picture(panels: Sequence[Panel], path: str | Path) -> None:
    """Write the panels side by side into one PNG; its folder is made if it is not there."""
    from matplotlib.figure import Figure  # imported here: only saving needs it, and it is slow to import

    figure = Figure(figsize=(4.6 * len(panels), 3.5), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw(axes, panel)
    _save(figure, Path(path))


def _draw(axes: Axes, panel: Panel) -> None:
    for number, curve in enumerate(panel.curves):
        color, style = COLORS[number % len(COLORS)], STYLES[number % len(STYLES)]
        axes.plot(curve.x, curve.y, style, color=color, linewidth=1.6, label=curve.label)
    for color, mark in zip(MARKS, panel.points, strict=False):
        axes.plot(mark.x, mark.y, "o", color=color, markersize=6, label=mark.label)
    axes.set_title(panel.title, fontsize="medium")
    axes.set(**panel.options)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small")


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


# The sorting reward


def sort_inclusion_ordering_reward(prompt: list[int], response: list[int]) -> float:
    """Return one point per prompt token that the response contains and one per adjacent pair in order.

        sum over i of  1[prompt[i] in response]   +   sum over i of  1[response[i] <= response[i + 1]]

    prompt     list[int]   n numbers
    response   list[int]   n tokens
    returns    float       0 to 2n - 1
    """
    assert len(prompt) == len(response), (
        f"prompt has {len(prompt)} tokens and response has {len(response)}, but should have equally many."
    )
    contained = sum(token in response for token in prompt)
    in_order = sum(left <= right for left, right in pairwise(response))
    return float(contained + in_order)
