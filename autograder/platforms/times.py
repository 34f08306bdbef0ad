"""Read when students handed in, from what a platform gives as it is: a table, a list of its API, or the download.

Moodle's grading worksheet; Gradescope's grades; Canvas's list of submissions in JSON, whose pages may stand one behind
the other; any CSV with a column of names or ids and one of times. Of a download, what its names and files say
(`layouts.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from autograder.gradebook.roster import Roster, find_rows, keys_of, person_of, plain_heading
from autograder.grading.assignment import Assignment
from autograder.platforms.layouts import gathered
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import read_table, read_text
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment_in_words, moment_or_none

COLUMNS = ("submitted", "submitted at", "submission time", "submission date", "last modified (submission)")
ADVICE = "write it as 2027-03-12 23:59, or switch your platform to English and download the file again"


class Row(NamedTuple):
    """Who handed in, as a table says it.

    keys       what they may be called
    identity   as reports of this platform have it
    student    the name in a table that calls students by the names of reports
    """

    keys: frozenset[str]
    identity: str = ""
    student: str = ""


def read_times(
    path: Path, assignment: Assignment, people: Iterable[Candidate | Report], roster: Roster | None = None
) -> dict[str, datetime]:
    """Student → when they handed in, without a zone where the file names none; UsageError where it cannot be read."""
    if path.is_dir() or path.suffix.lower() == ".zip":
        with gathered([path], assignment.module, roster, class_zip=True, functions=assignment.functions) as class_:
            seen = {each.student: each.submitted for each in class_.candidates if each.submitted}
        if not seen:
            raise UsageError(
                f"{path} does not say when students handed in: see the guide for where your platform does."
            )
        return seen
    times: dict[Row, datetime] = {}
    for row, text in _of_canvas(path) if path.suffix.lower() == ".json" else _in_table(path):
        when = moment_or_none(text, None) or moment_in_words(text)
        if when is None:
            raise UsageError(f"{path}: {visible(text, 80)!r} is no time that can be read for sure: {ADVICE}.")
        before = times.get(row, when)
        if (before.tzinfo is None) != (when.tzinfo is None):
            raise UsageError(f"{path}: of two times of {visible(row.student, 80)!r} one names a zone and one does not.")
        times[row] = max(before, when)
    ids = [row.identity for row in times]
    found, _ = find_rows(people, [row.keys for row in times], roster, ids if all(ids) else ())
    listed = list(times.values())
    by_name = {row.student: when for row, when in times.items() if row.student}
    return by_name | {report.student: listed[at] for at, report in found.items()}


def _in_table(path: Path) -> list[tuple[Row, str]]:
    table = read_table(path)
    headings = [plain_heading(cell) for cell in table.header]
    at = [place for place, heading in enumerate(headings) if heading in COLUMNS]
    if len(at) != 1:
        columns = ", ".join(visible(cell, 40) for cell in table.header)
        what = "that says when students handed in, as `submitted` would"
        raise UsageError(f"{path} has no column {what}: {columns}. A platform's names it if its language is English.")
    rows = []
    for line, cells in zip(table.lines, table.rows, strict=True):
        person, text = person_of(dict(zip(headings, cells, strict=True))), cells[at[0]].strip(" -")
        # Moodle's worksheet calls students by a number, and reports of its download have that.
        moodle = re.fullmatch(r"Participant (\d+)", cells[0].strip()) if headings[0] == "identifier" else None
        if text and not person.keys:
            raise UsageError(f"{path}, line {line}: a row without a student.")
        if text:
            identity = f"moodle:{moodle[1]}" if moodle else ""
            rows.append((Row(person.keys, identity, person.student if "student" in headings else ""), text))
    return rows


def _of_canvas(path: Path) -> list[tuple[Row, str]]:
    """Read `submitted_at` by user. A browser gets `while(1);` before each page (canvas-lms: doc/api/submissions)."""
    text, pages = read_text(path).replace("while(1);", "").strip(), list[Any]()
    try:
        while text:
            page, end = json.JSONDecoder().raw_decode(text)
            pages += page
            text = text[end:].strip()
        listed = [(str(each["user_id"]), each["submitted_at"]) for each in pages]
    except (TypeError, KeyError, ValueError, RecursionError):
        raise UsageError(f"{path} is no list of submissions as Canvas's API gives it.") from None
    return [(Row(keys_of({user}), f"canvas:{user}"), str(when)) for user, when in listed if when]
