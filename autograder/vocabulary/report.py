"""The report of one submission: what `reports/<student>.json` holds, and its reading and writing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from autograder import __version__

SCHEMA = 1

Verdict = Literal[
    "passed", "failed", "raised", "missing", "timed_out", "out_of_memory", "crashed", "not_run", "not_graded"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
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
    """The verdict on one item; `points` is None exactly where the verdict is `not_graded`."""

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


@dataclass(frozen=True)
class SubmissionInfo:
    """Where a submission was found and the SHA-256 of what was read."""

    path: str
    sha256: str


@dataclass(frozen=True)
class Report:
    """All that is known of one graded submission.

    kit   the version of the kit that graded it; "" where that was before reports said it
    """

    student: str
    assignment: str
    submission: SubmissionInfo
    fixtures: str
    isolation: tuple[str, ...]
    items: tuple[ItemResult, ...]
    kit: str = __version__

    @property
    def status(self) -> Literal["graded", "not_graded"]:
        """`not_graded` as soon as one item is: a sum with a hole in it is not a grade."""
        return "not_graded" if any(item.verdict == "not_graded" for item in self.items) else "graded"

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


def to_json(report: Report) -> dict[str, Any]:
    """The report as `reports/<student>.json` spells it."""
    items = [asdict(item) for item in report.items]
    return {
        "schema": SCHEMA,
        "student": report.student,
        "assignment": report.assignment,
        "submission": asdict(report.submission),
        "fixtures": report.fixtures,
        "kit": report.kit,
        "points": report.points,
        "max_points": report.max_points,
        "status": report.status,
        "isolation": list(report.isolation),
        "items": items,
    }


def from_json(data: Mapping[str, Any]) -> Report:
    """The report that `to_json` wrote; raises KeyError, TypeError or ValueError on anything else."""
    if data["schema"] != SCHEMA:
        raise ValueError(f"report schema {data['schema']!r} is not {SCHEMA}")
    return Report(
        student=data["student"],
        assignment=data["assignment"],
        submission=SubmissionInfo(**data["submission"]),
        fixtures=data["fixtures"],
        isolation=tuple(data["isolation"]),
        items=tuple(_item_from_json(item) for item in data["items"]),
        kit=str(data.get("kit", "")),
    )


def _item_from_json(item: Mapping[str, Any]) -> ItemResult:
    cases = tuple(CaseResult(**case) for case in item["cases"])
    result = ItemResult(**{**item, "mistakes": tuple(item["mistakes"]), "cases": cases})
    numbers = (result.max_points, result.seconds, *([] if result.points is None else [result.points]))
    if any(verdict not in VERDICTS for verdict in (result.verdict, *(case.verdict for case in cases))):
        raise ValueError(f"{result.item} has an unknown verdict")
    if (result.points is None) != (result.verdict == "not_graded"):
        raise ValueError(f"the points of {result.item} do not fit its verdict")
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        raise TypeError(f"{result.item} has points or seconds that are no numbers")
    return result


def to_bytes(report: Report) -> bytes:
    """What the file of a report holds. A lone surrogate (a file name that is not UTF-8) becomes JSON's escape."""
    text = json.dumps(to_json(report), indent=1, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def from_bytes(data: bytes) -> Report | None:
    """The report that a file holds; None where it holds something else."""
    try:
        return from_json(json.loads(data.decode()))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def read_report(path: Path) -> Report | None:
    """The report at `path`; None where there is none or it is not one."""
    try:
        return from_bytes(path.read_bytes())
    except OSError:
        return None
