"""What pages show of a submission besides its report: learning curves, and pictures of where values differ.

It is stored as JSON beside the report. Curves and pictures are of public cases alone; `answers` are for staff.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from autograder.grading.compare import compare, expected_array, right_places
from autograder.grading.fixtures import Case
from autograder.grading.wording import Place, about_outcome, in_file
from autograder.sandbox.calls import Outcome
from autograder.vocabulary.files import write_atomically
from autograder.vocabulary.report import ItemResult, parsed

SCHEMA = 1
MAX_STEPS = 2_000
MAX_CELLS = 1_600
MAX_SIDE = 40
MAX_PANELS = 8
MOST_EARLIER = 20
DECIMALS = 3  # as many as the reference has
LARGEST = 1e9
RIGHT, TOO_LARGE, TOO_SMALL, NOT_FINITE = ".+-!"
DRAWN = ("values", "finite", "gradient")


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
    answers   item → fingerprint of a wrong answer that no known mistake gives, for staff
    answered  questions in words that have an answer, for staff
    code      function that is wrong → how it is written; its student's own, and an example on the class's page
    calls     item → what its public case calls that fails, as one would type it
    lines     item → the line of the source that its failure is about
    engine    one name for the code and the versions that graded; "" where that was before details said it
    """

    submission: str
    fixtures: str
    curves: tuple[Curve, ...] = ()
    pictures: tuple[Picture, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    answers: Mapping[str, str] = field(default_factory=dict)
    answered: tuple[str, ...] = ()
    code: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    engine: str = ""


# Making them


def curve_of(case: Case, outcome: Outcome, timeout: float, load_failure: str = "", place: Place = in_file) -> Curve:
    """Draw the submission's series beside the solution's; a message in their place where the run gave none."""
    if outcome.observation is None:
        return Curve(case.id, case.title, load_failure or about_outcome(case, outcome, timeout, place), ())
    series = []
    for expectation in case.expected:
        returned = outcome.observation.returned.get(expectation.name)
        array = None if returned is None else returned.array
        if array is None or array.ndim != 1 or not 0 < array.size <= MAX_STEPS or expectation.array is None:
            continue
        bounded = np.clip(array.astype(np.float64), -LARGEST, LARGEST).tolist()
        yours = tuple(None if not math.isfinite(y) else round(b, DECIMALS) for y, b in zip(array, bounded, strict=True))
        reference = tuple(float(value) for value in expectation.array)
        across = expectation.axes[0] if expectation.axes else "step"
        known = expectation.value if isinstance(expectation.value, dict) else {}
        series.append(Series(expectation.what, yours, reference, known.get("unit", ""), across, known.get("most")))
    missing = f"{case.function} returned nothing that could be drawn."
    return Curve(case.id, case.title, "" if len(series) == len(case.expected) else missing, tuple(series))


def picture_of(case: Case, outcome: Outcome) -> Picture | None:
    """Draw where the values of a failed public case differ; None where there is nothing of a size to draw."""
    if case.visibility != "public" or outcome.observation is None:
        return None
    mismatch = compare(case.expected, outcome.observation)
    array = None if mismatch is None else mismatch.returned.array
    if mismatch is None or mismatch.rung not in DRAWN or array is None:
        return None
    panels, sides = math.prod(array.shape[:-2]), array.shape[-2:]
    if not 1 < array.size <= MAX_CELLS or panels > MAX_PANELS or max(sides) > MAX_SIDE:
        return None
    expectation, observed = mismatch.expectation, array.astype(np.float64)
    marks = np.where(observed > expected_array(expectation), TOO_LARGE, TOO_SMALL)
    marks = np.where(np.isfinite(observed), marks, NOT_FINITE)
    cells = "".join(np.where(right_places(expectation, array), RIGHT, marks).ravel().tolist())
    return Picture(case.item, case.id, expectation.what, expectation.axes, array.shape, cells)


def fingerprint(item: ItemResult) -> str:
    """Make one name for a wrong answer: two share it whose cases have the same verdicts and messages to four digits."""
    text = "\n".join(f"{case.case} {case.verdict} {case.message}" for case in item.cases)
    rounded = re.sub(r"\d+\.\d+(e[+-]\d+)?", lambda number: f"{float(number[0]):.4g}", text)
    return hashlib.sha256(" ".join(rounded.split()).encode()).hexdigest()[:16]


# Writing and reading them


def write_details(details: Details, path: Path) -> None:
    """Write `details` as JSON, atomically. They can be made again: nothing waits for the disk."""
    described = {"schema": SCHEMA, **asdict(details)}
    text = json.dumps(described, separators=(",", ":"), ensure_ascii=True, allow_nan=False) + "\n"
    write_atomically(path, text, lasting=False)


def read_details(path: Path) -> Details | None:
    """Read the details at `path`; None where there are none or the file is not what `write_details` wrote."""
    try:
        data = json.loads(path.read_bytes())
        schema = data.pop("schema")
        details: Details = parsed(Details, data)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    lines = [line for curve in details.curves for one in curve.series for line in (one.yours, one.reference)]
    fits = all(math.prod(p.shape) == len(p.cells) <= MAX_CELLS for p in details.pictures)
    return details if schema == SCHEMA and fits and all(len(line) <= MAX_STEPS for line in lines) else None
