"""Numbers → the geometry of SVG drawings, which templates fill in: learning curves, and where values differ.

The frame of a curve holds the solution's, and as much above and below it again: yours is cut off there, with a mark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import NamedTuple

from autograder.grading.details import NOT_FINITE, RIGHT, TOO_LARGE, TOO_SMALL, Picture, Series
from autograder.vocabulary.text import number, visible

LEFT, RIGHT_EDGE, TOP, BOTTOM = 44.0, 332.0, 8.0, 160.0  # the frame, in a box of 340 by 200
BEYOND = 1.0  # heights of the solution's curve that the frame holds above and below it, where yours goes there
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_MARKS = 12

SIDE, GAP = 14.0, 10.0  # of the square of a value, and between panels
KINDS = {RIGHT: "right", TOO_LARGE: "large", TOO_SMALL: "small", NOT_FINITE: "wild"}
WORDS = {TOO_LARGE: "too large", TOO_SMALL: "too small", NOT_FINITE: "not finite"}


class Mark(NamedTuple):
    """Something at a place: a tick with its `label`, or of a value the kind."""

    x: float
    y: float
    label: str


def plot(series: Series) -> SimpleNamespace:
    """Draw one series beside its reference. Lines are points as SVG spells them; a gap splits a line in two.

    what, across_what   what the axes say, with units
    across, upward      the ticks
    most                the greatest value that there can be; None where that is not known, or would flatten all else
    marks               where a curve cannot be followed: it goes on `above` or `below`, or is no number, `wild`
    """
    low, high = min(series.reference), max(series.reference)
    span = high - low or 1.0
    most = series.most if series.most is not None and high <= series.most <= high + 3 * span else None
    high = high if most is None else most
    finite = [value for value in series.yours if value is not None]
    low, high = max(min([low, *finite]), low - BEYOND * span), min(max([high, *finite]), high + BEYOND * span)
    if high - low <= 1e-6:  # a constant
        low, high = low - 0.5, high + 0.5
    steps = max(len(series.yours), len(series.reference), 2)

    def place(step: int, value: float, label: str = "") -> Mark:
        share = min(max((value - low) / (high - low), 0.0), 1.0)
        x = LEFT + (RIGHT_EDGE - LEFT) * step / (steps - 1)
        return Mark(round(x, 1), round(BOTTOM - (BOTTOM - TOP) * share, 1), label)

    def polyline(points: Iterable[tuple[int, float | None]]) -> str:
        places = (place(step, value) for step, value in points if value is not None)
        return " ".join(f"{point.x:g},{point.y:g}" for point in places)

    def kind(value: float | None) -> str:
        if value is None:
            return "wild"
        return "above" if value > high + 1e-9 * span else "below" if value < low - 1e-9 * span else ""

    yours = [list(run) for is_gap, run in groupby(enumerate(series.yours), lambda pair: pair[1] is None) if not is_gap]
    # One mark for each stretch that cannot be followed.
    stretches = [
        (name, next(run)) for name, run in groupby(enumerate(series.yours), lambda pair: kind(pair[1])) if name
    ]
    marks = [place(step, low if value is None else value, name) for name, (step, value) in stretches]
    across = (step for step in _round_steps(0, steps - 1) if step == int(step))
    return SimpleNamespace(
        what=f"{visible(series.what, 80)}{f', {visible(series.unit, 40)}' if series.unit else ''}",
        across_what=visible(series.across, 40),
        yours=tuple(map(polyline, yours)),
        reference=polyline(enumerate(series.reference)),
        across=tuple(place(int(step), low, str(int(step))) for step in across),
        upward=tuple(place(0, value, label(value)) for value in _round_steps(low, high)),
        most=None if most is None else place(0, most, f"at most {label(most)}"),
        marks=tuple(marks[:MOST_MARKS]),
        words=_in_words(series),
    )


def _round_steps(low: float, high: float) -> list[float]:
    """Return some four round numbers between the two."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in STEPS if factor * power >= rough)
    return [round(n * step, 9) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def label(value: float) -> str:
    """Write a number as it stands at an axis: `0.25`, `12,000`, `3e+07`."""
    text = f"{value:.4g}" if abs(value) < 1e3 else f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.0e}"
    return text.replace("-", "\N{MINUS SIGN}")


def _in_words(series: Series) -> str:
    words = f"{series.what} over {len(series.reference)} steps. "
    words += f"The solution's goes from {number(series.reference[0])} to {number(series.reference[-1])}. "
    words += "" if series.most is None else f"The greatest that there can be is {number(series.most)}. "
    if None in series.yours:
        return f"{words}Yours is not finite at step {series.yours.index(None)}."
    first, last = (number(value) for value in (series.yours[0], series.yours[-1]) if value is not None)
    length = "" if len(series.yours) == len(series.reference) else f", over {len(series.yours)} steps"
    return f"{words}Yours goes from {first} to {last}{length}."


def grid(picture: Picture) -> SimpleNamespace:
    """Draw a picture of differences: the last two axes down and across, those before them side by side."""
    rows, columns = (1, *picture.shape)[-2:]
    panel = columns * SIDE + GAP
    cells = []
    for place, mark in enumerate(picture.cells):
        rest, column = divmod(place, columns)
        box, row = divmod(rest, rows)
        cells.append(Mark(box * panel + column * SIDE, row * SIDE, KINDS.get(mark, "wild")))
    names = [visible(name, 30) for name in picture.axes[-3:]]
    directions: Sequence[str] = ("side by side", "down", "across")[-len(names) :] if names else ()
    counts = [f"{picture.cells.count(mark)} {word}" for mark, word in WORDS.items() if mark in picture.cells]
    return SimpleNamespace(
        width=len(picture.cells) // (rows * columns) * panel - GAP,
        height=rows * SIDE,
        cells=tuple(cells),
        axes=", ".join(f"{name} {direction}" for name, direction in zip(names, directions, strict=True)),
        kinds=tuple(KINDS[mark] for mark in WORDS if mark in picture.cells),
        words=f"{visible(picture.what, 80)}: of {len(picture.cells)} values {', '.join(counts)}.",
    )
