"""The report of one submission: what `reports/<student>.json` holds, and its reading and writing."""

from __future__ import annotations

import functools
import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from autograder import __version__
from autograder.vocabulary.text import INVISIBLE

SCHEMA = 1
MOST = 1e12  # points, or seconds
# How the messages of items begin
NOT_REACHED = "Not reached"  # that `Report.cause` explains
RIGHT_FORM = "This is right, and it counts as soon as"  # whose function is right in no case of values
START_THERE = " fails too: start there."  # how a hint ends that begins with another item's name

Verdict = Literal[
    "passed", "failed", "raised", "missing", "timed_out", "out_of_memory", "crashed", "not_run", "not_graded"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
VERDICT_WORDS: Mapping[Verdict, str] = MappingProxyType(
    {
        "passed": "passed",
        "failed": "failed",
        "raised": "raised an error",
        "missing": "not implemented yet",
        "timed_out": "ran out of time",
        "out_of_memory": "ran out of memory",
        "crashed": "crashed",
        "not_run": "not run",
        "not_graded": "could not be graded",
    }
)
Visibility = Literal["public", "hidden"]


@dataclass(frozen=True)
class CaseResult:
    """The verdict on one case; `message` is safe to show to the student."""

    case: str
    visibility: Visibility
    verdict: Verdict
    message: str


@dataclass(frozen=True)
class ItemResult:
    """The verdict on one item; `points` is None exactly where the verdict is `not_graded`.

    counterexample   a call to paste that goes wrong, with what it returns and should return; "" where there is none
    """

    item: str
    function: str
    title: str
    points: float | None
    max_points: float
    verdict: Verdict
    mistakes: tuple[str, ...]
    message: str
    hint: str
    seconds: float
    cases: tuple[CaseResult, ...]
    counterexample: str = ""

    @property
    def is_unreached(self) -> bool:
        """Whether something outside the item kept it from being reached."""
        return self.message.startswith(NOT_REACHED)

    @property
    def is_withheld(self) -> bool:
        """Whether it is right, and counts once its function is right where zeros would be wrong."""
        return self.message.startswith(RIGHT_FORM)

    @property
    def waits_for(self) -> str:
        """The item that its hint says to start with; "" where it says none."""
        return self.hint.removesuffix(START_THERE).split()[-1] if self.hint.endswith(START_THERE) else ""

    @property
    def fails_unseen(self) -> bool:
        """Whether every public case passes and a hidden one does not: running the public ones again shows nothing."""
        public = [case.verdict for case in self.cases if case.visibility == "public"]
        return self.verdict not in ("passed", "not_graded") and bool(public) and set(public) == {"passed"}


@dataclass(frozen=True)
class SubmissionInfo:
    """Where a submission was found and the SHA-256 of what was read."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Report:
    """All that is known of one graded submission.

    kit        the version of the kit that graded it; "" in older reports
    cause      what kept items from being reached, told once: a file that cannot be imported, a cell that cannot be read
    identity   the student's id as the download's layout gives it: `canvas:1001`, or without a platform where it has a
               meaning elsewhere too; "" where a layout gives none
    """

    student: str
    assignment: str
    submission: SubmissionInfo
    fixtures: str
    isolation: tuple[str, ...]
    items: tuple[ItemResult, ...]
    kit: str = __version__
    cause: str = ""
    identity: str = ""

    @property
    def status(self) -> Literal["graded", "not_graded"]:
        """`not_graded` as soon as one item is: a sum with a hole in it is not a grade."""
        return "not_graded" if any(item.verdict == "not_graded" for item in self.items) else "graded"

    @property
    def fault(self) -> str:
        """Why the grader failed on it; "" where it did not."""
        return next((item.message for item in self.items if item.points is None), "")

    @property
    def earned(self) -> float | None:
        """The sum over items; None where the grader failed on one of them."""
        is_graded = self.status == "graded"
        return round(sum(item.points or 0.0 for item in self.items), 2) if is_graded else None

    @property
    def earnable(self) -> float:
        """The sum of what the items are worth."""
        return round(sum(item.max_points for item in self.items), 2)

    @property
    def points(self) -> float | None:
        """The grade: what was earned, unless a course's rules make something else of it."""
        return self.earned

    @property
    def max_points(self) -> float:
        """What the grade is out of."""
        return self.earnable

    @property
    def excused(self) -> frozenset[str]:
        """The items that its student is excused from; "" is the whole assignment."""
        return frozenset()


# Writing


def to_json(report: Report) -> dict[str, Any]:
    """Spell the report as `reports/<student>.json` does."""
    items = []
    for item in report.items:
        entry = {**vars(item), "cases": [dict(vars(case)) for case in item.cases]}  # `asdict` is ten times slower
        if not item.counterexample:
            del entry["counterexample"]
        items.append(entry)
    return {
        "schema": SCHEMA,
        "student": report.student,
        **({"identity": report.identity} if report.identity else {}),
        "assignment": report.assignment,
        "submission": asdict(report.submission),
        "fixtures": report.fixtures,
        "kit": report.kit,
        "points": report.earned,
        "max_points": report.earnable,
        "status": report.status,
        "isolation": list(report.isolation),
        "cause": report.cause,
        "items": items,
    }


def to_bytes(report: Report) -> bytes:
    """Spell the file of a report."""
    return json_bytes(to_json(report))


def json_bytes(data: Mapping[str, Any]) -> bytes:
    """Spell `data` as JSON in UTF-8 in which letters stay readable and what acts without being seen is an escape.

    Outside strings JSON holds nothing invisible but the line breaks between lines.
    """
    text = json.dumps(data, indent=1, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():
        invisible = {letter for letter in text if letter != "\n" and unicodedata.category(letter) in INVISIBLE}
        text = text.translate({ord(letter): json.dumps(letter)[1:-1] for letter in invisible})
    return text.encode() + b"\n"


# Reading: a report may have been edited by hand, or be another program's


def from_json(data: Mapping[str, Any]) -> Report:
    """Read what `to_json` wrote; raises KeyError, TypeError or ValueError on anything else."""
    if not isinstance(data, dict) or data["schema"] != SCHEMA:
        raise ValueError(f"this is no report of schema {SCHEMA}")
    known = {name: data[name] for name in _annotations(Report) if name in data}
    report: Report = parsed(Report, {"kit": "", **known})  # which older reports lack
    for item in report.items:
        if (item.points is None) != (item.verdict == "not_graded"):
            raise ValueError(f"the points of {item.item} do not fit its verdict")
        if not all(0 <= number < MOST for number in (item.max_points, item.seconds, item.points or 0)):
            raise ValueError(f"{item.item} has points or seconds out of all bounds")
    return report


def parsed(kind: Any, data: Any) -> Any:
    """Build what a dataclass's annotation says from JSON; raises KeyError, TypeError or ValueError on anything else."""
    origin, inner = get_origin(kind), get_args(kind)
    if hasattr(kind, "__dataclass_fields__") and isinstance(data, dict):
        annotations = _annotations(kind)
        return kind(**{name: parsed(annotations[name], value) for name, value in data.items()})
    if origin is tuple and isinstance(data, list):
        return tuple(parsed(inner[0], entry) for entry in data)
    if origin is Mapping and isinstance(data, dict):
        return {key: parsed(inner[1], entry) for key, entry in data.items()}
    if type(None) in inner:
        return None if data is None else parsed(inner[0], data)
    if origin is Literal:
        fits = data in inner
    else:
        numbers = {int: (int,), float: (int, float)}
        fits = type(data) in numbers.get(kind, (kind,)) and (kind is str or math.isfinite(data))
    if not fits:
        raise TypeError(f"{str(data)[:40]!r} should be {kind}")
    return data


@functools.cache
def _annotations(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def from_bytes(data: bytes) -> Report | None:
    """Read the file of a report; None where it is something else."""
    try:
        return from_json(json.loads(data.decode()))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def read_report(path: Path) -> Report | None:
    """Read the report at `path`; None where there is none or it is not one."""
    try:
        return from_bytes(path.read_bytes())
    except OSError:
        return None
