"""Items that lost points → the line of the submission that each concerns, where one can be named.

The line that raised, where the report tells it; the line that holds the one expression in which a named mistake differs
from a right answer, if it is certain; else the head of the function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from autograder.pages.listing.wrong_expressions import Known, certain_line
from autograder.submissions.submission import Function, Submission
from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report

TOLD = re.compile(r"^(Line (\d{1,9}) of (?:your file|cell (\d{1,9}) \(text cells count\)))[.:]$", re.MULTILINE)
UNMARKED = ("passed", "not_graded")

Functions = Mapping[str, Function]


def marked_lines(
    report: Report, submission: Submission, functions: Functions, known: Known, lines: Sequence[str]
) -> dict[str, int]:
    """Item → line of the submission's source; an item that nothing is known of, or that was not reached, has none."""
    marked = {}
    for item in report.items:
        if item.verdict in UNMARKED or item.message.startswith(NOT_REACHED):
            continue
        if (line := _line_of(item, submission, functions, known, lines)) is not None:
            marked[item.item] = line
    return marked


def line_of_cause(report: Report, submission: Submission) -> int | None:
    """The line that kept everything from being reached, where the report tells it."""
    return told_line(report.cause, submission)


def _line_of(
    item: ItemResult, submission: Submission, functions: Functions, known: Known, lines: Sequence[str]
) -> int | None:
    if (line := told_line(item.message, submission)) is not None:
        return line
    function = functions.get(item.function)
    if function is None:
        return None
    text = "\n".join(lines[function.first - 1 : function.last])
    certain = certain_line(text, item.function, item.mistakes, known) if item.mistakes else None
    return function.head if certain is None else function.first - 1 + certain


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
