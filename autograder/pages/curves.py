"""Curves → the geometry of SVG plots: yours beside the solution's, on a scale that leaves nothing outside the frame.

Where yours runs far away from the solution's, the frame is linear around the solution's and has a band above it, below
it or both, in which the scale is compressed: so the solution's keeps its shape, and yours is seen as far as it goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from autograder.grading.remarks.details import Series
from autograder.grading.remarks.pictures import LARGEST
from autograder.vocabulary.text import number, visible

WIDTH, HEIGHT = 340.0, 200.0
LEFT, RIGHT_EDGE, TOP, BOTTOM = 44.0, 332.0, 8.0, 160.0
BAND = 34.0  # the height of a band in which the scale is compressed
FAR, NEAR = 1.0, 0.5  # heights of the solution's curve: what may lie beyond it without a band, and with one
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
MOST_MARKS = 12

Point = tuple[float, float]


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
class Band:
    """A part of the frame in which the scale is compressed: between these two heights."""

    top: float
    bottom: float


@dataclass(frozen=True)
class Plot:
    """One series and its reference. Lines are lists of points as SVG spells them; a gap splits a line in two.

    what, across   what the axes say, with units
    most           the greatest value that there can be; None where that is not known, or would flatten all else
    bands          where the scale is compressed
    """

    what: str
    across_what: str
    yours: tuple[str, ...]
    reference: str
    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
    most: Tick | None
    bands: tuple[Band, ...]
    marks: tuple[Mark, ...]
    words: str


@dataclass(frozen=True)
class Scale:
    """Values → heights: linear from `low` to `high`, compressed beyond them as far as `least` and `greatest`."""

    low: float
    high: float
    least: float
    greatest: float

    @property
    def top(self) -> float:
        """Where the linear part ends above."""
        return TOP + BAND * (self.greatest > self.high)

    @property
    def bottom(self) -> float:
        """Where the linear part ends below."""
        return BOTTOM - BAND * (self.least < self.low)

    @property
    def bands(self) -> tuple[Band, ...]:
        """The parts in which the scale is compressed."""
        found = Band(TOP, self.top), Band(self.bottom, BOTTOM)
        return tuple(band for band in found if band.top < band.bottom)

    def height(self, value: float) -> float:
        """Where a value stands."""
        if value > self.high:
            return self.top - BAND * self._compressed(value - self.high, self.greatest - self.high)
        if value < self.low:
            return self.bottom + BAND * self._compressed(self.low - value, self.low - self.least)
        return self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)

    def _compressed(self, beyond: float, farthest: float) -> float:
        unit = self.high - self.low
        return min(1.0, math.log1p(beyond / unit) / math.log1p(farthest / unit)) if farthest > 0 else 0.0


def plot(series: Series) -> Plot:
    """The drawing of one series beside its reference."""
    scale = _scale(series)
    steps = max(len(series.yours), len(series.reference), 2)

    def place(step: int, value: float) -> Point:
        x = LEFT + (RIGHT_EDGE - LEFT) * step / (steps - 1)
        return round(x, 1), round(scale.height(value), 1)

    across = [int(step) for step in _round_steps(0, steps - 1) if step == int(step)]
    most = series.most if series.most is not None and series.most <= scale.high else None
    return Plot(
        what=f"{visible(series.what, 80)}{f', {visible(series.unit, 40)}' if series.unit else ''}",
        across_what=visible(series.across, 40),
        yours=tuple(_polyline(place(*pair) for pair in run) for run in _runs(series.yours)),
        reference=_polyline(place(step, value) for step, value in enumerate(series.reference)),
        across=tuple(Tick(place(step, scale.low)[0], str(step)) for step in across),
        upward=_upward(scale),
        most=None if most is None else Tick(round(scale.height(most), 1), f"at most {label(most)}"),
        bands=scale.bands,
        marks=tuple(_marks(series, place, scale))[:MOST_MARKS],
        words=_say(series, scale),
    )


def _scale(series: Series) -> Scale:
    """Linear where that holds everything and leaves the reference its shape; else with bands for what runs away."""
    low, high = min(series.reference), max(series.reference)
    span = high - low or 1.0
    if series.most is not None and high < series.most <= high + 3 * span:
        high = series.most
    finite = [value for value in series.yours if value is not None]
    least, greatest = min([low, *finite]), max([high, *finite])
    bottom = least if least >= low - FAR * span else low - NEAR * span
    top = greatest if greatest <= high + FAR * span else high + NEAR * span
    if top - bottom <= 1e-6:
        bottom, top = bottom - 0.5, top + 0.5
    return Scale(bottom, top, min(least, bottom), max(greatest, top))


def _upward(scale: Scale) -> tuple[Tick, ...]:
    """Round numbers along the linear part, and at the ends of the bands how far they reach."""
    inside = [Tick(round(scale.height(value), 1), label(value)) for value in _round_steps(scale.low, scale.high)]
    ends = [scale.greatest] * (scale.greatest > scale.high) + [scale.least] * (scale.least < scale.low)
    return (*inside, *(Tick(round(scale.height(value), 1), label(value)) for value in ends))


def _marks(series: Series, place: Callable[[int, float], Point], scale: Scale) -> Iterator[Mark]:
    """Where yours ends in no number, or in one that is kept to the largest there is; one mark for each such stretch."""
    kinds = [_kind(value) for value in series.yours]
    for kind, run in groupby(enumerate(kinds), key=lambda pair: pair[1]):
        step = next(run)[0]
        if kind:
            value = {"above": scale.greatest, "below": scale.least, "wild": scale.low}[kind]
            yield Mark(*place(step, value), kind)


def _kind(value: float | None) -> str:
    if value is None:
        return "wild"
    return "" if abs(value) < LARGEST else "above" if value > 0 else "below"


def _round_steps(low: float, high: float) -> list[float]:
    """Round numbers between the two, some four of them."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in STEPS if one * power >= rough)
    return [round(n * step, 9) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def label(value: float) -> str:
    """A number as it stands at an axis: `0.25`, `12,000`, `3e+07`."""
    text = f"{value:.4g}" if abs(value) < 1e3 else f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.0e}"
    return text.replace("-", "\N{MINUS SIGN}")


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The stretches of finite values, each with its steps."""
    found = groupby(enumerate(values), key=lambda pair: pair[1] is None)
    return [[(step, value) for step, value in run if value is not None] for gap, run in found if not gap]


def _polyline(points: Iterable[Point]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _say(series: Series, scale: Scale) -> str:
    last = series.reference[-1]
    said = f"{series.what} over {len(series.reference)} steps. "
    said += f"The solution's goes from {number(series.reference[0])} to {number(last)}. "
    said += "" if series.most is None else f"The greatest that there can be is {number(series.most)}. "
    if any(value is None for value in series.yours):
        step = series.yours.index(None)
        said += f"Yours is not finite at step {step}."
    else:
        ends = [number(value) for value in (series.yours[0], series.yours[-1]) if value is not None]
        length = "" if len(series.yours) == len(series.reference) else f", over {len(series.yours)} steps"
        said += f"Yours goes from {ends[0]} to {ends[1]}{length}."
    far = [label(scale.greatest)] * (scale.greatest > scale.high) + [label(scale.least)] * (scale.least < scale.low)
    return f"{said} It goes as far as {' and '.join(far)}." if far else said
