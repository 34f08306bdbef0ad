"""When students handed in, from what a platform gives as it is: a table, a list of its API, or the download itself.

Moodle's grading worksheet, in any language; Gradescope's grades; Canvas's list of submissions in JSON, whose pages may
stand one behind the other; any CSV with a column of names or ids and one of times. Of a download, what its names and
files say (`layouts.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from autograder.gradebook.roster import Roster, find_rows, keys_of, person_of, plain_heading
from autograder.grading.items import Assignment
from autograder.platforms import moodle
from autograder.platforms.dates_in_words import moments
from autograder.platforms.layouts import gathered
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, read_table, read_text
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment_or_none

COLUMNS = ("submitted", "submitted at", "submission time", "submission date", "last modified (submission)")
ADVICE = "write it as 2027-03-12 23:59, or switch your platform to English and download the file again"


class Row(NamedTuple):
    """When somebody handed in, as it is written.

    keys       what they may be called
    identity   as reports of this platform have it
    student    the name in a table that calls students by the names of reports
    """

    keys: frozenset[str]
    text: str
    identity: str = ""
    student: str = ""


def read_times(
    path: Path, assignment: Assignment, people: Iterable[Candidate | Report], roster: Roster | None = None
) -> dict[str, datetime]:
    """Student → when they handed in, without a zone where the file names none; UsageError where it cannot be read."""
    if path.is_dir() or path.suffix.lower() == ".zip":
        return _in_download(path, assignment, roster)
    rows = _of_canvas(path) if path.suffix.lower() == ".json" else _in_table(read_table(path), path)
    times: dict[Row, datetime] = {}
    for row, when in zip(rows, _moments([row.text for row in rows], path), strict=True):
        who = row._replace(text="")
        before = times.get(who, when)
        if (before.tzinfo is None) != (when.tzinfo is None):
            raise UsageError(f"{path}: of two times of {visible(row.student, 80)!r} one names a zone and one does not.")
        times[who] = max(before, when)
    ids = [row.identity for row in times]
    found = find_rows(people, [row.keys for row in times], roster, ids if all(ids) else ())
    listed = list(times.values())
    named = {row.student: when for row, when in times.items() if row.student}
    return named | {report.student: listed[at] for at, report in found.rows.items()}


def _moments(texts: Sequence[str], path: Path) -> list[datetime]:
    """What the texts say, all as numbers or all in words."""
    found = [moment_or_none(text, None) for text in texts]
    read = moments(texts) if None in found else [when for when in found if when]
    if read is None:
        wrong = next(text for text, when in zip(texts, found, strict=True) if when is None)
        raise UsageError(f"{path}: {visible(wrong, 80)!r} is no time that can be read for sure: {ADVICE}.")
    return read


def _in_table(table: Table, path: Path) -> list[Row]:
    headings = [plain_heading(cell) for cell in table.header]
    worksheet = moodle.times_in(table) if "student" not in headings else None
    if worksheet is not None:
        return [Row(keys, text, f"moodle:{participant}") for participant, keys, text in worksheet if text]
    at = [place for place, heading in enumerate(headings) if heading in COLUMNS]
    if len(at) != 1:
        columns = ", ".join(visible(cell, 40) for cell in table.header)
        raise UsageError(f"{path} has no column that says when students handed in, as `submitted` would: {columns}.")
    rows = []
    for line, row in zip(table.lines, table.rows, strict=True):
        person = person_of(dict(zip(headings, row, strict=True)))
        if row[at[0]].strip():
            if not person.keys:
                raise UsageError(f"{path}, line {line}: a row without a student.")
            rows.append(Row(person.keys, row[at[0]].strip(), "", person.student if "student" in headings else ""))
    return rows


def _of_canvas(path: Path) -> list[Row]:
    """`submitted_at` by user; in a browser `while(1);` stands before each page (canvas-lms: doc/api/submissions)."""
    text, pages = read_text(path).replace("while(1);", "").strip(), list[Any]()
    try:
        while text:
            page, end = json.JSONDecoder().raw_decode(text)
            pages += page
            text = text[end:].strip()
        listed = [(str(each["user_id"]), each["submitted_at"]) for each in pages]
    except (TypeError, KeyError, ValueError, RecursionError):
        raise UsageError(f"{path} is no list of submissions as Canvas's API gives it.") from None
    return [Row(keys_of({user}), str(when), f"canvas:{user}") for user, when in listed if when]


def _in_download(path: Path, assignment: Assignment, roster: Roster | None) -> dict[str, datetime]:
    with gathered([path], assignment.module, roster, class_zip=True, functions=assignment.functions) as class_:
        times = {one.student: one.submitted for one in class_.candidates if one.submitted}
    if not times:
        raise UsageError(f"{path} does not say when students handed in: see the guide for where your platform does.")
    return times
