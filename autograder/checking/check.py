"""The verb `check`: the public cases on a student's own folder, worded as in grading."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.checking.checker import Checker, checked
from autograder.checking.terminal import coloured, has_colours, width
from autograder.vocabulary.report import Report, to_json
from autograder.vocabulary.report_text import report_text

INTRODUCTION = "Public cases only; grading runs more of the same kind."


def check(
    path: Path,
    item_ids: Sequence[str] = (),
    assignment: str | None = None,
    root: Path | None = None,
    *,
    quiet: bool = False,
    as_json: bool = False,
) -> int:
    """Print the report on the public cases; 0 where all pass, 1 where one fails, 3 where the checker itself failed.

    quiet     print nothing: the exit code says it
    as_json   print the report as grading stores it, with the notes, and nothing else
    """
    with Checker(path, assignment, root) as checker:
        report = checked(checker, item_ids)
    if as_json:
        print(json.dumps(to_json(report) | {"notes": list(checker.notes)}, indent=1, ensure_ascii=True))
    elif not quiet:
        print(f"{INTRODUCTION}\n")
        print(shown(report, checker.notes))
    return exit_code_of(report)


def shown(report: Report, notes: Sequence[str]) -> str:
    """The report as this terminal shows it best."""
    text = report_text(report, notes, width=width())
    return coloured(text) if has_colours(sys.stdout) else text


def exit_code_of(report: Report) -> int:
    """0 where all items pass, else 1."""
    return 0 if all(item.verdict == "passed" for item in report.items) else 1
