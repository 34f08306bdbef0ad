"""The verb `check`: the public cases on a student's own folder, worded as in grading."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autograder.checking.checker import Checker, checked
from autograder.vocabulary.report import Report
from autograder.vocabulary.report_text import report_text

INTRODUCTION = "Public cases only; grading runs more of the same kind."


def check(path: Path, item_ids: Sequence[str] = (), assignment: str | None = None, root: Path | None = None) -> int:
    """Print the report on the public cases; 0 where all pass, 1 where one fails, 3 where the checker itself failed."""
    with Checker(path, assignment, root) as checker:
        report = checked(checker, item_ids)
    print(f"{INTRODUCTION}\n")
    print(report_text(report, checker.notes))
    return exit_code_of(report)


def exit_code_of(report: Report) -> int:
    """0 where all items pass, else 1."""
    return 0 if all(item.verdict == "passed" for item in report.items) else 1
