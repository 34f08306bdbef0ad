"""What a feedback page shows besides the report: learning curves and pictures of differences, in a file beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autograder.vocabulary.files import write_atomically

SCHEMA = 1
MAX_STEPS = 2_000
MAX_CELLS = 1_600
RIGHT, TOO_LARGE, TOO_SMALL, NOT_FINITE = ".+-!"


@dataclass(frozen=True)
class Series:
    """One quantity over the steps of a run; None where the submission's value is not finite.

    what        str                what the axis says: "mean reward"
    yours       float[step]
    reference   float[step]        of the solution
    """

    what: str
    yours: tuple[float | None, ...]
    reference: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """A run that is shown and earns nothing; `message` says why where there is none."""

    curve: str
    title: str
    message: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class Picture:
    """Where the values of one failed public case differ.

    shape   of the tensor; `axes` are the names
    cells   one character a value, in row-major order: RIGHT, TOO_LARGE, TOO_SMALL or NOT_FINITE
    """

    item: str
    case: str
    what: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    cells: str


@dataclass(frozen=True)
class Details:
    """What is shown of one submission, and of which bytes and fixtures it was made."""

    submission: str
    fixtures: str
    curves: tuple[Curve, ...] = ()
    pictures: tuple[Picture, ...] = ()


def write_details(details: Details, path: Path) -> None:
    """Write `details` as JSON, atomically. They can be made again: nothing waits for the disk."""
    described = {"schema": SCHEMA, **asdict(details)}
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"
    write_atomically(path, text, lasting=False)


def read_details(path: Path) -> Details | None:
    """The details at `path`; None where there are none or the file is not what `write_details` wrote."""
    try:
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _from_json(data: Mapping[str, Any]) -> Details:
    if data["schema"] != SCHEMA:
        raise ValueError(f"details of schema {data['schema']!r}")
    curves = tuple(Curve(**{**curve, "series": tuple(map(_series, curve["series"]))}) for curve in data["curves"])
    pictures = tuple(map(_picture, data["pictures"]))
    return Details(data["submission"], data["fixtures"], curves, pictures)


def _series(data: Mapping[str, Any]) -> Series:
    series = Series(data["what"], tuple(data["yours"]), tuple(data["reference"]))
    numbers = [value for value in (*series.yours, *series.reference) if value is not None]
    if len(numbers) > 2 * MAX_STEPS or not all(map(math.isfinite, numbers)):
        raise ValueError("a series that cannot be drawn")
    return series


def _picture(data: Mapping[str, Any]) -> Picture:
    picture = Picture(**{**data, "axes": tuple(data["axes"]), "shape": tuple(data["shape"])})
    if math.prod(picture.shape) != len(picture.cells) or len(picture.cells) > MAX_CELLS:
        raise ValueError("a picture whose cells do not fit its shape")
    return picture
