"""Items that lost points → the line of the submission that each concerns, where one can be named.

The line that raised, where the report tells it; the line that holds the one expression in which a named mistake differs
from a right answer, if it is certain; else the head of the function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from autograder.pages.listing.wrong_expressions import Known, certain_line
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report

TOLD = re.compile(r"^(Line (\d{1,9}) of (?:your file|cell (\d{1,9}) \(text cells count\)))[.:]$", re.MULTILINE)
UNMARKED = ("passed", "not_graded")

Functions = Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]


def marked_lines(report: Report, submission: Submission, functions: Functions, known: Known) -> dict[str, int]:
    """Item → line of the submission's source; an item that nothing is known of, or that was not reached, has none."""
    lines = {}
    for item in report.items:
        if item.verdict in UNMARKED or item.message.startswith(NOT_REACHED):
            continue
        if (line := _line_of(item, submission, functions, known)) is not None:
            lines[item.item] = line
    return lines


def line_of_cause(report: Report, submission: Submission) -> int | None:
    """The line that kept everything from being reached, where the report tells it."""
    return told_line(report.cause, submission)


def _line_of(item: ItemResult, submission: Submission, functions: Functions, known: Known) -> int | None:
    if (line := told_line(item.message, submission)) is not None:
        return line
    function = functions.get(item.function)
    if function is None:
        return None
    certain = certain_line(function, item.function, item.mistakes, known) if item.mistakes else None
    return function.lineno if certain is None else certain


def told_line(message: str, submission: Submission) -> int | None:
    """The line of the source that a message tells in the words of `Submission.place`."""
    for told in TOLD.finditer(message):
        number = int(told[2])
        cells = [begin + number - 1 for begin, cell in submission.cells if told[3] and cell == int(told[3])]
        saved = [begin + number - submission.lines[cell - 1] for begin, cell in submission.cells if submission.lines]
        for line in (*cells, *saved, *([] if submission.cells else [number])):
            if line >= 1 and submission.place(line) == told[1]:
                return line
    return None
