"""Details → the geometry of SVG drawings, which the page's template fills in: plots of curves, grids of differences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from autograder.grading.feedback.details import NOT_FINITE, RIGHT, TOO_LARGE, TOO_SMALL, Picture, Series
from autograder.vocabulary.text import number, visible

WIDTH, HEIGHT = 340.0, 190.0
LEFT, RIGHT_EDGE, TOP, BOTTOM = 44.0, 332.0, 8.0, 160.0
ROOM = 1.0  # how far, in heights of the reference, a curve may leave the reference before it is cut off
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
SIDE = 14.0
GAP = 10.0
KINDS = {RIGHT: "right", TOO_LARGE: "large", TOO_SMALL: "small", NOT_FINITE: "wild"}
WORDS = {TOO_LARGE: "too large", TOO_SMALL: "too small", NOT_FINITE: "not finite"}

Point = tuple[float, float]


@dataclass(frozen=True)
class Tick:
    """A mark on an axis: where, and what stands there."""

    at: float
    label: str


@dataclass(frozen=True)
class Plot:
    """One series and its reference. Lines are lists of points as SVG spells them; a gap splits a line in two."""

    what: str
    yours: tuple[str, ...]
    reference: str
    across: tuple[Tick, ...]
    upward: tuple[Tick, ...]
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


def plot(series: Series) -> Plot:
    """The drawing of one series beside its reference."""
    low, high = _range(series)
    steps = max(len(series.yours), len(series.reference), 2)

    def place(step: int, value: float) -> Point:
        share = (min(max(value, low), high) - low) / (high - low)
        x = LEFT + (RIGHT_EDGE - LEFT) * step / (steps - 1)
        return round(x, 1), round(BOTTOM - (BOTTOM - TOP) * share, 1)

    across = [int(step) for step in _round_steps(0, steps - 1) if step == int(step)]
    return Plot(
        what=series.what,
        yours=tuple(_polyline(place(*pair) for pair in run) for run in _runs(series.yours)),
        reference=_polyline(place(step, value) for step, value in enumerate(series.reference)),
        across=tuple(Tick(place(step, low)[0], str(step)) for step in across),
        upward=tuple(Tick(place(0, value)[1], _label(value)) for value in _round_steps(low, high)),
        words=_say(series),
    )


def _range(series: Series) -> tuple[float, float]:
    low, high = min(series.reference), max(series.reference)
    room = ROOM * (high - low or 1.0)
    finite = [value for value in series.yours if value is not None]
    low = max(low - room, min([low, *finite]))
    high = min(high + room, max([high, *finite]))
    return (low, high) if high - low > 1e-6 else (low - 0.5, high + 0.5)


def _round_steps(low: float, high: float) -> list[float]:
    """Round numbers between the two, some four of them."""
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(one * power for one in STEPS if one * power >= rough)
    return [round(n * step, 9) for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _label(value: float) -> str:
    text = f"{value:.4g}" if abs(value) < 1e5 else f"{value:.0e}"
    return text.replace("-", "\N{MINUS SIGN}")


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """The stretches of finite values, each with its steps."""
    found = groupby(enumerate(values), key=lambda pair: pair[1] is None)
    return [[(step, value) for step, value in run if value is not None] for gap, run in found if not gap]


def _polyline(points: Iterable[Point]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def _say(series: Series) -> str:
    last = series.reference[-1]
    said = f"{series.what} over {len(series.reference)} steps. "
    said += f"The solution's goes from {number(series.reference[0])} to {number(last)}. "
    if any(value is None for value in series.yours):
        step = series.yours.index(None)
        return f"{said}Yours is not finite at step {step}."
    ends = [number(value) for value in (series.yours[0], series.yours[-1]) if value is not None]
    length = "" if len(series.yours) == len(series.reference) else f", over {len(series.yours)} steps"
    return f"{said}Yours goes from {ends[0]} to {ends[1]}{length}."


def grid(picture: Picture) -> Grid:
    """The drawing of one picture: the last two axes down and across, those before them side by side."""
    rows, columns = (1, *picture.shape)[-2:]
    panel = columns * SIDE + GAP
    cells = []
    for place, mark in enumerate(picture.cells):
        rest, column = divmod(place, columns)
        box, row = divmod(rest, rows)
        cells.append(Cell(box * panel + column * SIDE, row * SIDE, KINDS.get(mark, "wild")))
    width = len(picture.cells) // (rows * columns) * panel - GAP
    seen = [mark for mark in (TOO_LARGE, TOO_SMALL, NOT_FINITE) if mark in picture.cells]
    return Grid(width, rows * SIDE, tuple(cells), _axes(picture), tuple(KINDS[mark] for mark in seen), _count(picture))


def _axes(picture: Picture) -> str:
    names = [visible(name, 30) for name in picture.axes[-3:]]
    directions = ("side by side", "down", "across")[-len(names) :] if names else ()
    return ", ".join(f"{name} {direction}" for name, direction in zip(names, directions, strict=True))


def _count(picture: Picture) -> str:
    counts = [f"{picture.cells.count(mark)} {word}" for mark, word in WORDS.items() if mark in picture.cells]
    return f"{visible(picture.what, 80)}: of {len(picture.cells)} values {', '.join(counts)}."
