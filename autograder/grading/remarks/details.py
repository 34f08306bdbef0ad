"""What pages show besides the report, in a file beside it: learning curves, pictures of differences.

And for staff alone: which answers without a name are the same.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autograder.vocabulary.files import write_atomically

SCHEMA = 1
MAX_STEPS = 2_000
MAX_CELLS = 1_600
MOST_EARLIER = 20
RIGHT, TOO_LARGE, TOO_SMALL, NOT_FINITE = ".+-!"


@dataclass(frozen=True)
class Series:
    """One quantity over the steps of a run; None where the submission's value is not finite.

    what        str                what the axis upward says: "mean reward"
    yours       float[step]
    reference   float[step]        of the solution
    unit        str                of the values: "points a response"; "" where that is not known
    across      str                what the other axis says
    most        float              the greatest value that there can be; None where that is not known
    """

    what: str
    yours: tuple[float | None, ...]
    reference: tuple[float, ...]
    unit: str = ""
    across: str = "step"
    most: float | None = None


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
class Earlier:
    """What an earlier grading of the same student gave.

    graded       when its run began, as `run.json` said; "" where that is not known
    submission   SHA-256 of what was handed in then
    passed       ids of the items
    """

    graded: str
    submission: str
    points: float | None
    max_points: float
    passed: tuple[str, ...]


@dataclass(frozen=True)
class Details:
    """What is shown of one submission, and of which bytes and fixtures it was made.

    earlier   gradings of the same student, oldest first
    answers   item → fingerprint of a wrong answer that no known mistake gives; of hidden cases too, so for staff alone
    code      function that is wrong → how it is written; its student's own, and an example on the class's page
    calls     item → what its public case calls that fails, as one would type it
    engine    one name for the code and the versions that graded; "" where that was before details said it
    """

    submission: str
    fixtures: str
    curves: tuple[Curve, ...] = ()
    pictures: tuple[Picture, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""


def write_details(details: Details, path: Path) -> None:
    """Write `details` as JSON, atomically. They can be made again: nothing waits for the disk."""
    described = {"schema": SCHEMA, **asdict(details)}
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"
    write_atomically(path, text, lasting=False)


def read_details(path: Path) -> Details | None:
    """The details at `path`; None where there are none or the file is not what `write_details` wrote."""
    try:
        return _from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def _from_json(data: Mapping[str, Any]) -> Details:
    if data["schema"] != SCHEMA:
        raise ValueError(f"details of schema {data['schema']!r}")
    curves = tuple(Curve(**{**curve, "series": tuple(map(_series, curve["series"]))}) for curve in data["curves"])
    pictures = tuple(map(_picture, data["pictures"]))
    earlier = tuple(map(_earlier, data.get("earlier", ())))
    answers, code = _texts(data["answers"]), _texts(data["code"])
    calls = _texts(data.get("calls", {}))  # which kits before did not write
    engine = str(data.get("engine", ""))
    return Details(data["submission"], data["fixtures"], curves, pictures, earlier, answers, code, calls, engine)


def _texts(data: Any) -> dict[str, str]:
    if not isinstance(data, dict) or not all(isinstance(one, str) for one in data.values()):
        raise TypeError("something that should be texts by name")
    return data


def _series(data: Mapping[str, Any]) -> Series:
    series = Series(**{**data, "yours": tuple(data["yours"]), "reference": tuple(data["reference"])})
    numbers = [value for value in (*series.yours, *series.reference, series.most) if value is not None]
    if len(numbers) > 2 * MAX_STEPS or not all(map(math.isfinite, numbers)):
        raise ValueError("a series that cannot be drawn")
    return series


def _earlier(data: Mapping[str, Any]) -> Earlier:
    one = Earlier(**{**data, "passed": tuple(data["passed"])})
    points = [one.max_points, *([] if one.points is None else [one.points])]
    if not all(isinstance(text, str) for text in (one.graded, one.submission, *one.passed)):
        raise TypeError("an earlier grading that is told in no text")
    if not all(type(value) in (int, float) and math.isfinite(value) for value in points):
        raise TypeError("an earlier grading whose points are no numbers")
    return one


def _picture(data: Mapping[str, Any]) -> Picture:
    picture = Picture(**{**data, "axes": tuple(data["axes"]), "shape": tuple(data["shape"])})
    if math.prod(picture.shape) != len(picture.cells) or len(picture.cells) > MAX_CELLS:
        raise ValueError("a picture whose cells do not fit its shape")
    return picture
