"""The report of one submission: what `reports/<student>.json` holds, and its reading and writing."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_args

from autograder import __version__
from autograder.vocabulary.text import INVISIBLE

SCHEMA = 1
MOST = 1e12  # points, or seconds
NOT_REACHED = "Not reached"  # how the message of an item begins that `Report.cause` explains

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
    def points(self) -> float | None:
        """The sum over items; None where the grader failed on one of them."""
        if self.status == "not_graded":
            return None
        return round(sum(item.points or 0.0 for item in self.items), 2)

    @property
    def max_points(self) -> float:
        """The sum of what the items are worth."""
        return round(sum(item.max_points for item in self.items), 2)


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
        "points": report.points,
        "max_points": report.max_points,
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

Record = TypeVar("Record", CaseResult, ItemResult, SubmissionInfo, Report)
_TEXTS = {
    kind: [field.name for field in fields(kind) if field.type == "str"]
    for kind in (CaseResult, ItemResult, SubmissionInfo, Report)
}


def from_json(data: Mapping[str, Any]) -> Report:
    """Read what `to_json` wrote; raises KeyError, TypeError or ValueError on anything else."""
    if not isinstance(data, dict) or data["schema"] != SCHEMA:
        raise ValueError(f"this is no report of schema {SCHEMA}")
    data = {"kit": "", "cause": "", "identity": "", **data}  # which older reports lack
    return _record(
        Report,
        {name: data[name] for name in _TEXTS[Report]},
        submission=_record(SubmissionInfo, data["submission"]),
        isolation=_texts(data["isolation"]),
        items=tuple(_item(item) for item in _list(data["items"])),
    )


def _item(data: Mapping[str, Any]) -> ItemResult:
    cases = tuple(_record(CaseResult, case) for case in _list(data["cases"]))
    item = _record(ItemResult, data, mistakes=_texts(data["mistakes"]), cases=cases)
    if any(case.visibility not in get_args(Visibility) for case in cases):
        raise ValueError(f"{item.item} has a case that is neither public nor hidden")
    if any(verdict not in VERDICTS for verdict in (item.verdict, *(case.verdict for case in cases))):
        raise ValueError(f"{item.item} has an unknown verdict")
    if (item.points is None) != (item.verdict == "not_graded"):
        raise ValueError(f"the points of {item.item} do not fit its verdict")
    numbers = (item.max_points, item.seconds, *([] if item.points is None else [item.points]))
    if not all(type(number) in (int, float) and math.isfinite(number) and 0 <= number < MOST for number in numbers):
        raise TypeError(f"{item.item} has points or seconds that are no numbers")
    return item


def _record(kind: type[Record], data: Mapping[str, Any], **parsed: object) -> Record:
    """Build a record from `data` and the fields that are `parsed` already; what is declared as text must be text."""
    record = kind(**{**data, **parsed})
    values = vars(record)
    if not all(isinstance(values[name], str) for name in _TEXTS[kind]):
        raise TypeError(f"{kind.__name__} has something that should be text")
    return record


def _texts(value: Any) -> tuple[str, ...]:
    if not all(isinstance(text, str) for text in _list(value)):
        raise TypeError("something that should be text")
    return tuple(value)


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise TypeError("something that should be a list")
    return list(value)


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
