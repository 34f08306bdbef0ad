"""Pictures of differences → the geometry of SVG drawings: a square for each value, filled in by the template."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.grading.remarks.details import NOT_FINITE, RIGHT, TOO_LARGE, TOO_SMALL, Picture
from autograder.vocabulary.text import visible

SIDE = 14.0
GAP = 10.0
KINDS = {RIGHT: "right", TOO_LARGE: "large", TOO_SMALL: "small", NOT_FINITE: "wild"}
WORDS = {TOO_LARGE: "too large", TOO_SMALL: "too small", NOT_FINITE: "not finite"}


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
