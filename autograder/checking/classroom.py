"""Grades as a runner on GitHub gives them. Stands in a student's repository, so it knows public cases alone.

`python -m autograder.checking.classroom` grades the repository it is run in and leaves the result as the output
`result` of a step, in the format of GitHub Classroom's runners (closed on 28 August 2026), and `points` and
`max_points` as they are. It imports nothing that the handout lacks.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.checking.checker import Checker
from autograder.checking.command_line import print_anything
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report
from autograder.vocabulary.report_text import item_lines, report_text
from autograder.vocabulary.text import number, visible

VERSION = 3
MAX_OUTPUT = 2_000  # characters of one item; a step's outputs share 1 MB


def result(report: Report) -> dict[str, Any]:
    """The result of a runner. `error` where an item is not graded: the reporter must not take it for a zero."""
    items = [_public(item) for item in report.items]
    most = round(sum(item.max_points for item in items))
    if any(item.points is None for item in items):
        reason = next(item.message for item in items if item.points is None)
        return {"version": VERSION, "status": "error", "message": visible(reason, 300), "max_score": most, "tests": []}
    passed = all(item.verdict == "passed" for item in items)
    first = next((index for index, item in enumerate(items) if item.message.startswith(NOT_REACHED)), -1)
    if first >= 0:  # the reporter shows nothing above the tests
        items[first] = replace(items[first], message=f"{report.cause}\n{items[first].message}".lstrip())
    tests = [_test(item) for item in items]
    return {"version": VERSION, "status": "pass" if passed else "fail", "max_score": most, "tests": tests}


def encoded(found: dict[str, Any]) -> str:
    """The result as the reporter takes it: JSON in base64, one line."""
    return base64.b64encode(json.dumps(found).encode()).decode()


def _public(item: ItemResult) -> ItemResult:
    """The item as its public cases alone tell it."""
    cases = tuple(case for case in item.cases if case.visibility == "public")
    if item.points is None or len(cases) == len(item.cases):
        return item
    failed = [case for case in cases if case.verdict != "passed"]
    points = round(item.max_points * (len(cases) - len(failed)) / len(cases), 2) if cases else item.max_points
    if not failed:
        return replace(
            item, cases=cases, points=points, verdict="passed", message="", hint="", mistakes=(), seconds=0.0
        )
    verdict, message = failed[0].verdict, failed[0].message
    return replace(item, cases=cases, points=points, verdict=verdict, message=message, seconds=0.0)


def _test(item: ItemResult) -> dict[str, Any]:
    return {
        "name": f"{item.item}: {item.title}",
        "status": "pass" if item.verdict == "passed" else "error" if item.verdict != "failed" else "fail",
        "message": visible(item.message, MAX_OUTPUT, newlines=True),
        "test_code": f"python -m autograder check --item {item.item}",
        "task_id": 0,
        "filename": "",
        "line_no": 0,
        "duration": f"{item.seconds:.3f}s",
        "score": item.points,
        "output": "\n".join(item_lines(item))[:MAX_OUTPUT],
    }


def main() -> int:
    """Grade the current folder; 3, and no result at all, where the grader failed."""
    print_anything()
    try:
        with Checker(Path.cwd()) as checker:
            report = checker.report()
        if report.points is None:
            raise GraderFault(next(item.message for item in report.items if item.points is None))
    except KitError as error:
        print(f"autograder: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    print(report_text(report, checker.notes))
    print(f"\nPublic cases: {number(report.points)} of {number(report.max_points)} points.")
    outputs = {
        "result": encoded(result(report)),
        "points": number(report.points),
        "max_points": number(report.max_points),
    }
    lines = "".join(f"{name}={value}\n" for name, value in outputs.items())
    if not _append("GITHUB_OUTPUT", lines):
        print(lines, end="")
    _append("GITHUB_STEP_SUMMARY", summary(report))
    return 0


def summary(report: Report) -> str:
    """The points of each item as Markdown, which Actions shows on a run's page."""
    rows = [f"| `{one.item}` | {number(one.points or 0.0)} of {number(one.max_points)} |" for one in report.items]
    total = f"| **public cases** | **{number(report.points or 0.0)} of {number(report.max_points)}** |"
    return "\n".join(["| item | points |", "|---|---|", *rows, total, ""])


def _append(variable: str, text: str) -> bool:
    """Add to the file that the variable names; whether it names one."""
    target = os.environ.get(variable)
    if target:
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(text)
    return bool(target)


if __name__ == "__main__":
    raise SystemExit(main())
