"""Grades as PrairieLearn's results.json, which must not be larger than 1 MB.

(github.com/PrairieLearn/PrairieLearn: docs/externalGrading.md.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.report_text import item_lines, notes_beside
from autograder.vocabulary.text import visible

MAX_BYTES = 1_000_000
TEXT_LENGTHS = (20_000, 5_000, 1_000, 200, 0)  # the longest that lets the whole stay under it


def results(report: Report, notes: Sequence[str] = ()) -> dict[str, Any]:
    """What PrairieLearn reads as results.json: the score as a share, and a test for each item.

    A report that is not graded is `gradable: false`: it earns nothing, loses nothing, and costs no attempt.
    """
    for length in TEXT_LENGTHS:
        found = _results(report, notes, length)
        if len(json.dumps(found)) <= MAX_BYTES * 9 // 10:  # written with other spacing, it is a little longer
            break
    return found


def ungradable(reasons: Sequence[str]) -> dict[str, Any]:
    """What PrairieLearn reads where there is nothing to grade, or no grader."""
    return {"gradable": False, "format_errors": [visible(reason, 2_000) for reason in reasons]}


def _results(report: Report, notes: Sequence[str], length: int) -> dict[str, Any]:
    if report.points is None:
        return ungradable([f"Not graded, through no fault of yours: {report.fault}"])
    told = [*report.cause.splitlines(), *notes_beside(report, notes)]
    return {
        "gradable": True,
        "score": round(report.points / report.max_points, 6) if report.max_points else 0.0,
        "message": "\n".join(visible(note, 2_000) for note in told),
        "tests": [_test(item, length) for item in report.items],
    }


def _test(item: ItemResult, length: int) -> dict[str, Any]:
    output = "\n".join(item_lines(replace(item, message=item.message[:length]))[1:])
    return {
        "name": item.item,
        "description": item.title,
        "points": item.points,
        "max_points": item.max_points,
        "output": output if len(output) <= length else output[: max(0, length - 1)] + "…",
    }
