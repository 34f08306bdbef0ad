"""When what was graded was handed in.

timestamps.csv   student,submitted          or nbgrader's folder `submitted/`, with its timestamp.txt files
"""

from __future__ import annotations

import contextlib
import datetime
from pathlib import Path

from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.folders import open_regular
from autograder.vocabulary.moments import MOST_READ, moment
from autograder.vocabulary.rows import read_rows
from autograder.vocabulary.text import visible


def read_times(path: Path, assignment: Assignment, zone: datetime.tzinfo | None) -> dict[str, datetime.datetime]:
    """When each student handed in; of several times of one student the last. Raises UsageError as the others do."""
    if path.is_dir():
        return _nbgrader_times(path, assignment, zone)
    times: dict[str, datetime.datetime] = {}
    for row in read_rows(path, ("student", "submitted"), others=True):
        if not row["student"]:
            raise row.wrong("a row without a student.")
        found = _time(row["submitted"], row.place, zone)
        times[row["student"]] = max(found, times.get(row["student"], found))
    return times


def _nbgrader_times(folder: Path, assignment: Assignment, zone: datetime.tzinfo | None) -> dict[str, datetime.datetime]:
    """The times that nbgrader's exchange noted: submitted/<student>/<assignment>/timestamp.txt.

    A student may have changed that file: whoever has none that can be used has no time, which the late rules say.
    """
    paths = sorted(folder.glob(f"*/{assignment.name}/timestamp.txt"))
    if not paths:
        raise UsageError(f"{folder} holds no <student>/{assignment.name}/timestamp.txt, as nbgrader writes them.")
    found = {}
    for path in paths:
        with contextlib.suppress(OSError, ValueError), open_regular(path) as stream:
            when = moment(stream.read(MOST_READ).decode().strip(), zone or datetime.UTC)
            found[path.parent.parent.name] = when
    return found


def _time(text: str, place: str, zone: datetime.tzinfo | None) -> datetime.datetime:
    """`2027-03-12 23:59`, `2027-03-12T22:59:00Z`, `2027-03-12 23:59:00.000000 Europe/Berlin`."""
    try:
        found = moment(text, zone)
    except ValueError as error:
        raise UsageError(f"{place}: {visible(text, 60)!r} {error}.") from None
    if found.tzinfo is None:
        raise UsageError(f"{place}: {visible(text, 60)!r} has no time zone: end it in one, or give `timezone`.")
    return found
