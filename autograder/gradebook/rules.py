"""A course's rules for points: late days, dropped items, excused students; overrides; when what was handed in.

    policy.toml      timezone = "Europe/Berlin"
                     [late]      deadline, grace_minutes, per_day, of, cutoff_days, extensions.<student>
                     [drop]      lowest
                     [excused]   students, items.<student>
    overrides.csv    student,item,points,comment
    timestamps.csv   student,submitted          or nbgrader's folder `submitted/`, with its timestamp.txt files

Every entry is optional. What cannot be read, or says what no rule knows, is refused with its line, and nothing is
written: a grade by half a policy would be worse than none.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.rows import Row, read_rows, read_text
from autograder.vocabulary.text import visible

KNOWN = {
    "": {"timezone", "late", "drop", "excused"},
    "late": {"deadline", "grace_minutes", "per_day", "of", "cutoff_days", "extensions"},
    "drop": {"lowest"},
    "excused": {"students", "items"},
}


@dataclass(frozen=True)
class Late:
    """What a late day costs.

    deadline     with its time zone
    grace        this much later is still on time
    per_day      per cent, for each day begun after the deadline
    of           of the points earned, or of the maximum
    cutoff       days after which nothing counts; None where everything does
    extensions   student → days more
    """

    deadline: datetime.datetime
    grace: datetime.timedelta = datetime.timedelta()
    per_day: float = 0.0
    of: str = "earned"
    cutoff: float | None = None
    extensions: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Policy:
    """The rules of a course; the default is no rule at all."""

    zone: datetime.tzinfo | None = None
    late: Late | None = None
    drop_lowest: int = 0
    excused: frozenset[str] = frozenset()
    excused_items: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def students(self) -> set[str]:
        """Everybody whom a rule names."""
        return {*self.excused, *self.excused_items, *(self.late.extensions if self.late else ())}


@dataclass(frozen=True)
class Override:
    """What a person decided: points for an item, or for the whole where `item` is ""; None for a comment alone."""

    student: str
    item: str
    points: float | None
    comment: str
    place: str


# The policy


def read_policy(path: Path, assignment: Assignment) -> Policy:
    """The policy in a TOML file; raises UsageError naming the line of what cannot be used."""
    text = read_text(path)
    try:
        return _policy(tomllib.loads(text), assignment)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: this is not TOML: {error}.") from error
    except _WrongEntry as wrong:
        line = _line_of(text, wrong.key)
        raise UsageError(f"{path}{f', line {line}' if line else ''}: {wrong}.") from wrong


class _WrongEntry(Exception):  # noqa: N818 (raised and caught here alone)
    """A sentence without a full stop about the entry `key`."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(f"{key} {sentence}")
        self.key = key


def _line_of(text: str, key: str) -> int | None:
    """The first line that sets the last part of a dotted key, or opens its table."""
    name = re.escape(key.rpartition(".")[2])
    pattern = re.compile(rf"""\s*(\[\s*([\w.-]+\.)?{name}\s*\]|(["'\w-]+\.)*["']?{name}["']?\s*=)""")
    return next((number for number, line in enumerate(text.splitlines(), start=1) if pattern.match(line)), None)


def _policy(data: Mapping[str, Any], assignment: Assignment) -> Policy:
    _refuse_unknown(data, "")
    zone = _zone(data["timezone"]) if "timezone" in data else None
    excused = _table(data, "excused")
    students = excused.get("students", [])
    if not isinstance(students, list) or not all(isinstance(name, str) and name for name in students):
        raise _WrongEntry("excused.students", f"should be a list of students, but is {students!r}")
    lowest = _table(data, "drop").get("lowest", 0)
    if isinstance(lowest, bool) or not isinstance(lowest, int) or not 0 <= lowest < len(assignment.items):
        raise _WrongEntry("drop.lowest", f"should be from 0 to {len(assignment.items) - 1} items, but is {lowest!r}")
    late = _late(_table(data, "late"), zone) if "late" in data else None
    return Policy(zone, late, lowest, frozenset(students), _excused_items(excused.get("items", {}), assignment))


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise _WrongEntry(name, f"should be a table, but is {found!r}")
    _refuse_unknown(found, name)
    return found


def _refuse_unknown(table: Mapping[str, Any], name: str) -> None:
    for key in table:
        if key not in KNOWN[name]:
            known = ", ".join(sorted(KNOWN[name]))
            raise _WrongEntry(f"{name}.{key}".strip("."), f"is no rule; there are: {known}")


def _zone(name: object) -> datetime.tzinfo:
    try:
        return zoneinfo.ZoneInfo(name if isinstance(name, str) else "")
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _WrongEntry("timezone", f"{name!r} is no time zone, as Europe/Berlin is one") from error


def _late(table: Mapping[str, Any], zone: datetime.tzinfo | None) -> Late:
    deadline = table.get("deadline")
    if not isinstance(deadline, datetime.datetime):
        raise _WrongEntry("late.deadline", "should be a date and a time, as 2027-03-12T23:59:00 is one")
    if deadline.tzinfo is None and zone is None:
        raise _WrongEntry("late.deadline", "has no time zone: end it in one (+01:00), or give `timezone`")
    of = table.get("of", "earned")
    if of not in ("earned", "maximum"):
        raise _WrongEntry("late.of", f"should be earned or maximum, but is {of!r}")
    extensions = table.get("extensions", {})
    if not isinstance(extensions, dict):
        raise _WrongEntry("late.extensions", f"should be a table of students and days, but is {extensions!r}")
    return Late(
        deadline if deadline.tzinfo else deadline.replace(tzinfo=zone),
        datetime.timedelta(minutes=_number(table, "late.grace_minutes", 0.0, 7 * 24 * 60)),
        _number(table, "late.per_day", 0.0, 100),
        of,
        _number(table, "late.cutoff_days", 0.0, 3650) if "cutoff_days" in table else None,
        {name: _number(extensions, f"late.extensions.{name}", 0.0, 3650) for name in extensions},
    )


def _number(table: Mapping[str, Any], key: str, default: float, most: float) -> float:
    found = table.get(key.split(".", 2)[2] if key.startswith("late.extensions.") else key.rpartition(".")[2], default)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 <= found <= most:
        raise _WrongEntry(key, f"should be a number from 0 to {most:g}, but is {found!r}")
    return float(found)


def _excused_items(table: object, assignment: Assignment) -> dict[str, frozenset[str]]:
    if not isinstance(table, dict):
        raise _WrongEntry("excused.items", f"should be a table of students and items, but is {table!r}")
    known = {item.id for item in assignment.items}
    for student, items in table.items():
        if not isinstance(items, list) or not items or any(item not in known for item in items):
            raise _WrongEntry(f"excused.items.{student}", f"should be a list of items of {assignment.name}")
    return {student: frozenset(items) for student, items in table.items()}


# Overrides


def read_overrides(path: Path, assignment: Assignment) -> list[Override]:
    """The rows of an overrides file, in its order; raises UsageError naming the line of what cannot be used."""
    overrides: dict[tuple[str, str], Override] = {}
    for row in read_rows(path, ("student", "item", "points", "comment")):
        found = _override(row, assignment)
        if (found.student, found.item) in overrides:
            what = found.item or "the whole"
            raise row.wrong(f"{visible(found.student, 80)} has another row for {what}: keep one of them.")
        overrides[found.student, found.item] = found
    return list(overrides.values())


def _override(row: Row, assignment: Assignment) -> Override:
    most = {item.id: item.points for item in assignment.items} | {"": assignment.max_points}
    if not row["student"]:
        raise row.wrong("a row without a student.")
    if row["item"] not in most:
        raise row.wrong(f"there is no item {visible(row['item'], 80)!r}; leave it empty for the whole grade.")
    if not row["comment"]:
        raise row.wrong("a change without a reason: say in `comment` why, the student reads it.")
    points = _points(row) if row["points"] else None
    if points is not None and points > most[row["item"]]:
        raise row.wrong(f"{points:g} points, but {row['item'] or 'the assignment'} has {most[row['item']]:g}.")
    return Override(row["student"], row["item"], points, row["comment"], row.place)


def _points(row: Row) -> float:
    if not re.fullmatch(r"\d{1,6}([.,]\d{1,4})?", row["points"]):
        raise row.wrong(f"{visible(row['points'], 40)!r} is no number of points: 4 or 3.5, or nothing for a comment.")
    found = float(row["points"].replace(",", "."))
    assert math.isfinite(found)
    return found


# Times


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
    """The times that nbgrader's exchange noted: submitted/<student>/<assignment>/timestamp.txt."""
    paths = sorted(folder.glob(f"*/{assignment.name}/timestamp.txt"))
    if not paths:
        raise UsageError(f"{folder} holds no <student>/{assignment.name}/timestamp.txt, as nbgrader writes them.")
    return {path.parent.parent.name: _time(read_text(path).strip(), f"{path}, line 1", zone) for path in paths}


def _time(text: str, place: str, zone: datetime.tzinfo | None) -> datetime.datetime:
    """`2027-03-12 23:59`, `2027-03-12T22:59:00Z`, `2027-03-12 23:59:00.000000 Europe/Berlin`."""
    named = re.fullmatch(r"(.*\d)\s+([A-Za-z][A-Za-z0-9_+/-]*)", text)
    try:
        found = datetime.datetime.fromisoformat(named[1] if named else text)
        own = zoneinfo.ZoneInfo(named[2]) if named else None
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        raise UsageError(f"{place}: {visible(text, 60)!r} is no time, as 2027-03-12 23:59:00 is one.") from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=own or zone)
    if found.tzinfo is None:
        raise UsageError(f"{place}: {visible(text, 60)!r} has no time zone: end it in one, or give `timezone`.")
    return found
