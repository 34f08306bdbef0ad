"""Numbers → the geometry of SVG drawings, which templates fill in: learning curves, and where values differ.

Where your curve runs far from the solution's, the frame is linear around the solution's and has a band above it, below
it or both, in which the scale is logarithmic: the solution's keeps its shape, and yours is seen as far as it goes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from autograder.grading.details import LARGEST, NOT_FINITE, RIGHT, TOO_LARGE, TOO_SMALL, Picture, Series
from autograder.vocabulary.text import number, visible

LEFT, RIGHT_EDGE, TOP, BOTTOM = 44.0, 332.0, 8.0, 160.0  # the frame, in a box of 340 by 200
BAND = 34.0  # the height of a band in which the scale is compressed
FAR, NEAR = 1.0, 0.5  # heights of the solution's curve: what may lie beyond it without a band, and with one
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_MARKS = 12

SIDE, GAP = 14.0, 10.0  # of the square of a value, and between panels
KINDS = {RIGHT: "right", TOO_LARGE: "large", TOO_SMALL: "small", NOT_FINITE: "wild"}
WORDS = {TOO_LARGE: "too large", TOO_SMALL: "too small", NOT_FINITE: "not finite"}


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and what stands there."""

    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """Where a curve cannot be followed: `above` or `below` what numbers are kept to, or `wild`: no number."""

    x: float
    y: float
    kind: str


@dataclass(frozen=True)
class Plot:
    """One series and its reference. Lines are lists of points as SVG spells them; a gap splits a line in two.

    what, across_what   what the axes say, with units
    most                the greatest value that there can be; None where that is not known, or would flatten all else
    bands               (top, bottom) of each part of the frame in which the scale is compressed
    """

    what: str
    across_what: str
    yours: tuple[str, ...]
    reference: str
    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
    most: Tick | None
    bands: tuple[tuple[float, float], ...]
    marks: tuple[Mark, ...]
    words: str


@dataclass(frozen=True)
class Cell:
    """One value: where its square stands, and which of KINDS it is."""

    x: float
    y: float
    kind: str


@dataclass(frozen=True)
class Grid:
    """The squares of one picture, with the names of its axes."""

    width: float
    height: float
    cells: tuple[Cell, ...]
    axes: str
    kinds: tuple[str, ...]
    words: str


class Scale:
    """Values → heights: linear from `low` to `high`, compressed beyond them as far as `least` and `greatest`."""

    def __init__(self, series: Series) -> None:
        """Choose a linear scale where it holds everything and leaves the reference its shape; else one with bands."""
        low, high = min(series.reference), max(series.reference)
        span = high - low or 1.0
        if series.most is not None and high < series.most <= high + 3 * span:
            high = series.most
        finite = [value for value in series.yours if value is not None]
        least, greatest = min([low, *finite]), max([high, *finite])
        self.low = least if least >= low - FAR * span else low - NEAR * span
        self.high = greatest if greatest <= high + FAR * span else high + NEAR * span
        if self.high - self.low <= 1e-6:  # a constant
            self.low, self.high = self.low - 0.5, self.high + 0.5
        self.least, self.greatest = min(least, self.low), max(greatest, self.high)
        self.top = TOP + BAND * (self.greatest > self.high)
        self.bottom = BOTTOM - BAND * (self.least < self.low)
        self.far = [self.greatest] * (self.greatest > self.high) + [self.least] * (self.least < self.low)

    def height(self, value: float) -> float:
        """Where a value stands."""
        if value > self.high:
            return self.top - BAND * self._compressed(value - self.high, self.greatest - self.high)
        if value < self.low:
            return self.bottom + BAND * self._compressed(self.low - value, self.low - self.least)
        return self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)

    def _compressed(self, beyond: float, farthest: float) -> float:
        unit = self.high - self.low
        if farthest <= 0:  # a round number can lie a rounding error beyond the linear part
            return 0.0
        return min(1.0, math.log1p(beyond / unit) / math.log1p(farthest / unit))


def plot(series: Series) -> Plot:
    """Draw one series beside its reference."""
    scale = Scale(series)
    steps = max(len(series.yours), len(series.reference), 2)

    def place(step: int, value: float) -> tuple[float, float]:
        x = LEFT + (RIGHT_EDGE - LEFT) * step / (steps - 1)
        return round(x, 1), round(scale.height(value), 1)

    def polyline(points: Iterable[tuple[int, float]]) -> str:
        return " ".join(f"{x:g},{y:g}" for x, y in (place(step, value) for step, value in points))

    yours = []
    marks = []
    for kind, run in groupby(enumerate(series.yours), key=lambda pair: _kind(pair[1])):
        stretch = list(run)
        if kind:  # one mark for each stretch that cannot be followed
            value = {"above": scale.greatest, "below": scale.least, "wild": scale.low}[kind]
            marks.append(Mark(*place(stretch[0][0], value), kind))
    for is_gap, run in groupby(enumerate(series.yours), key=lambda pair: pair[1] is None):
        if not is_gap:
            yours.append(polyline((step, value) for step, value in run if value is not None))
    across = [int(step) for step in _round_steps(0, steps - 1) if step == int(step)]
    upward = [*_round_steps(scale.low, scale.high), *scale.far]
    most = series.most if series.most is not None and series.most <= scale.high else None
    return Plot(
        what=f"{visible(series.what, 80)}{f', {visible(series.unit, 40)}' if series.unit else ''}",
        across_what=visible(series.across, 40),
        yours=tuple(yours),
        reference=polyline(enumerate(series.reference)),
        across=tuple(Tick(place(step, scale.low)[0], str(step)) for step in across),
        upward=tuple(Tick(round(scale.height(value), 1), label(value)) for value in upward),
        most=None if most is None else Tick(round(scale.height(most), 1), f"at most {label(most)}"),
        bands=tuple(band for band in ((TOP, scale.top), (scale.bottom, BOTTOM)) if band[0] < band[1]),
        marks=tuple(marks[:MOST_MARKS]),
        words=_in_words(series, scale),
    )


def _kind(value: float | None) -> str:
    if value is None:
        return "wild"
    return "" if abs(value) < LARGEST else "above" if value > 0 else "below"


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


def _in_words(series: Series, scale: Scale) -> str:
    words = f"{series.what} over {len(series.reference)} steps. "
    words += f"The solution's goes from {number(series.reference[0])} to {number(series.reference[-1])}. "
    words += "" if series.most is None else f"The greatest that there can be is {number(series.most)}. "
    if any(value is None for value in series.yours):
        words += f"Yours is not finite at step {series.yours.index(None)}."
    else:
        ends = [number(value) for value in (series.yours[0], series.yours[-1]) if value is not None]
        length = "" if len(series.yours) == len(series.reference) else f", over {len(series.yours)} steps"
        words += f"Yours goes from {ends[0]} to {ends[1]}{length}."
    return f"{words} It goes as far as {' and '.join(map(label, scale.far))}." if scale.far else words


def grid(picture: Picture) -> Grid:
    """Draw a picture of differences: the last two axes down and across, those before them side by side."""
    rows, columns = (1, *picture.shape)[-2:]
    panel = columns * SIDE + GAP
    cells = []
    for place, mark in enumerate(picture.cells):
        rest, column = divmod(place, columns)
        box, row = divmod(rest, rows)
        cells.append(Cell(box * panel + column * SIDE, row * SIDE, KINDS.get(mark, "wild")))
    names = [visible(name, 30) for name in picture.axes[-3:]]
    directions: Sequence[str] = ("side by side", "down", "across")[-len(names) :] if names else ()
    counts = [f"{picture.cells.count(mark)} {word}" for mark, word in WORDS.items() if mark in picture.cells]
    return Grid(
        width=len(picture.cells) // (rows * columns) * panel - GAP,
        height=rows * SIDE,
        cells=tuple(cells),
        axes=", ".join(f"{name} {direction}" for name, direction in zip(names, directions, strict=True)),
        kinds=tuple(KINDS[mark] for mark in WORDS if mark in picture.cells),
        words=f"{visible(picture.what, 80)}: of {len(picture.cells)} values {', '.join(counts)}.",
    )
