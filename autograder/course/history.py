"""What earlier gradings of a student gave, kept beside the report that took their place."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from autograder.grading.remarks.details import MOST_EARLIER, Details, Earlier
from autograder.vocabulary.report import Report


def with_history(details: Details, report: Report, before: Report | None, kept: Details | None, began: str) -> Details:
    """Details that also tell of the report whose place this one takes, where it told something else.

    before   the report that is there; `kept` are its details, with what they tell of still earlier ones
    began    when the run began that wrote it

    Called again after a run that was killed it tells nothing twice.
    """
    earlier = kept.earlier if kept is not None else ()
    if before is not None and _is_comparable(before, report) and _told(before) != _told(report):
        entry = Earlier(began, *_told(before))
        earlier = earlier if earlier[-1:] == (entry,) else (*earlier, entry)
    return replace(details, earlier=earlier[-MOST_EARLIER:])


def _is_comparable(before: Report, report: Report) -> bool:
    """Whether it was a grading, of the same student and items; what was damaged or a fault of the grader is none."""
    return (
        before.status == "graded"
        and before.student == report.student
        and [one.item for one in before.items] == [one.item for one in report.items]
    )


def _told(report: Report) -> tuple[str, float | None, float, tuple[str, ...]]:
    passed = tuple(item.item for item in report.items if item.verdict == "passed")
    return report.submission.sha256, report.points, report.max_points, passed


def began_of(run: Path) -> str:
    """When the run that a `run.json` describes began; "" where there is none that says so."""
    try:
        began = json.loads(run.read_text(encoding="utf-8"))["started"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
    return began if isinstance(began, str) else ""
