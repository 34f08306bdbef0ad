"""The public cases of a student's repository on GitHub, in a step of its workflow.

`python -m autograder.checking.classroom` checks the repository that it is run in, and leaves `points` and `max_points`
as outputs of the step. It imports nothing that the handout lacks.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from autograder.checking.checker import Checker
from autograder.checking.command_line import print_anything
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.report import Report
from autograder.vocabulary.report_text import report_text
from autograder.vocabulary.text import number, visible


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
    lines = f"points={number(report.points)}\nmax_points={number(report.max_points)}\n"
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
