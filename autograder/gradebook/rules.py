"""A course's rules for points: late days, dropped items, excused students; overrides; when what was handed in.

    policy.toml      timezone = "Europe/Berlin"
                     [late]      deadline, grace_minutes, per_day, of, cutoff_days, extensions.<student>
                     [drop]      lowest
                     [excused]   students, items.<student>
                     [questions] extra_credit
    decisions.csv    what staff decided on single grades: `overrides`
    timestamps.csv   student,submitted          or nbgrader's folder `submitted/`, with its timestamp.txt files

Every entry is optional. What cannot be read, or says what no rule knows, is refused with its line, and nothing is
written: a grade by half a policy would be worse than none.
"""

from __future__ import annotations

import csv
import datetime
import io
import re
import tomllib
import zoneinfo
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from autograder.gradebook.hand_in_times import read_times
from autograder.gradebook.overrides import JOURNAL, Decisions, Override, counting, decisions_of
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.moments import within_bounds
from autograder.vocabulary.rows import read_text
from autograder.vocabulary.text import visible

SOURCES = ("policy.toml", "timestamps.csv")
KNOWN = {
    "": {"timezone", "late", "drop", "excused", "questions"},
    "late": {"deadline", "grace_minutes", "per_day", "of", "cutoff_days", "extensions"},
    "drop": {"lowest"},
    "excused": {"students", "items"},
    "questions": {"extra_credit"},
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
    """The rules of a course; the default is no rule at all.

    extra_credit   whether points for questions in words may lead above the maximum, rather than be part of it
    """

    zone: datetime.tzinfo | None = None
    late: Late | None = None
    drop_lowest: int = 0
    excused: frozenset[str] = frozenset()
    excused_items: Mapping[str, frozenset[str]] = field(default_factory=dict)
    extra_credit: bool = False

    @property
    def students(self) -> set[str]:
        """Everybody whom a rule names."""
        return {*self.excused, *self.excused_items, *(self.late.extensions if self.late else ())}


def read_policy(path: Path, assignment: Assignment) -> Policy:
    """The policy in a TOML file; raises UsageError naming the line of what cannot be used."""
    text = read_text(path)
    try:
        return _policy(tomllib.loads(text), assignment)
    except _WrongEntry as wrong:
        line = _line_of(text, wrong.key)
        raise UsageError(f"{path}{f', line {line}' if line else ''}: {visible(str(wrong), 500)}.") from wrong
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: this is not TOML: {error}.") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition(";")[0]
        raise UsageError(f"{path}: this cannot be read as TOML: {reason}.") from error


class _WrongEntry(Exception):  # noqa: N818 (raised and caught here alone)
    """A sentence without a full stop about the entry `key`."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(f"{key} {sentence}")
        self.key = key


def _shown(value: object) -> str:
    """A value as a sentence shows it, however large it is."""
    try:
        return visible(repr(value), 60)
    except (ValueError, RecursionError):  # a number of thousands of digits has no repr
        return "larger than anything here"


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
        raise _WrongEntry("excused.students", f"should be a list of students, but is {_shown(students)}")
    lowest = _table(data, "drop").get("lowest", 0)
    if isinstance(lowest, bool) or not isinstance(lowest, int) or not 0 <= lowest < len(assignment.items):
        raise _WrongEntry(
            "drop.lowest", f"should be from 0 to {len(assignment.items) - 1} items, but is {_shown(lowest)}"
        )
    late = _late(_table(data, "late"), zone) if "late" in data else None
    extra_credit = _table(data, "questions").get("extra_credit", False)
    if not isinstance(extra_credit, bool):
        raise _WrongEntry("questions.extra_credit", f"should be true or false, but is {_shown(extra_credit)}")
    items = _excused_items(excused.get("items", {}), assignment)
    return Policy(zone, late, lowest, frozenset(students), items, extra_credit)


def _table(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name, {})
    if not isinstance(found, dict):
        raise _WrongEntry(name, f"should be a table, but is {_shown(found)}")
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
        raise _WrongEntry("timezone", f"{_shown(name)} is no time zone, as Europe/Berlin is one") from error


def _late(table: Mapping[str, Any], zone: datetime.tzinfo | None) -> Late:
    deadline = table.get("deadline")
    if not isinstance(deadline, datetime.datetime):
        raise _WrongEntry("late.deadline", "should be a date and a time, as 2027-03-12T23:59:00 is one")
    if deadline.tzinfo is None and zone is None:
        raise _WrongEntry("late.deadline", "has no time zone: end it in one (+01:00), or give `timezone`")
    try:
        within_bounds(deadline)
    except ValueError as error:
        raise _WrongEntry("late.deadline", str(error)) from error
    of = table.get("of", "earned")
    if of not in ("earned", "maximum"):
        raise _WrongEntry("late.of", f"should be earned or maximum, but is {_shown(of)}")
    extensions = table.get("extensions", {})
    if not isinstance(extensions, dict):
        raise _WrongEntry("late.extensions", f"should be a table of students and days, but is {_shown(extensions)}")
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
        raise _WrongEntry(key, f"should be a number from 0 to {most:g}, but is {_shown(found)}")
    return float(found)


def _all_of(values: list[object], known: set[str]) -> bool:
    return all(isinstance(value, str) and value in known for value in values)


def _excused_items(table: object, assignment: Assignment) -> dict[str, frozenset[str]]:
    if not isinstance(table, dict):
        raise _WrongEntry("excused.items", f"should be a table of students and items, but is {_shown(table)}")
    known = {item.id for item in assignment.items}
    for student, items in table.items():
        if not isinstance(items, list) or not items or not _all_of(items, known):
            raise _WrongEntry(f"excused.items.{student}", f"should be a list of items of {assignment.name}")
    return {student: frozenset(items) for student, items in table.items()}


@dataclass(frozen=True)
class Rules:
    """What a course decided. `given` holds the files that are to be kept beside the grades.

    What is kept there already is not among them: somebody may add to it while this is in use.

    decisions   the journal that `overrides` follow from
    """

    policy: Policy = field(default_factory=Policy)
    overrides: Sequence[Override] = ()
    times: Mapping[str, datetime.datetime] | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)
    decisions: Decisions | None = None

    @property
    def questions(self) -> dict[str, float]:
        """The questions in words that count, with what they are worth."""
        return counting(self.overrides)

    def check_students(self, known: Iterable[str], out: Path) -> list[str]:
        """Raise UsageError for an override of nobody; those of the policy who handed in nothing.

        Somebody is who is `known`, or has a report in `out`.
        """
        everybody = {*map(file_stem, known), *(path.stem for path in (out / "reports").glob("*.json"))}
        for override in self.overrides:
            if override.student not in everybody:
                name = visible(override.student, 80)
                raise UsageError(f"{override.place}: nobody handed in whose report is called {name}.")
        return sorted(name for name in self.policy.students if file_stem(name) not in everybody)

    def kept(self) -> Self:
        """The same once the journal holds the new decisions, and with what others have decided meanwhile."""
        return replace(self, overrides=self.decisions.keep()) if self.decisions else self


def read_rules(
    out: Path,
    assignment: Assignment,
    policy: Path | None,
    overrides: Sequence[Path],
    times: Path | None,
    *,
    replace_decisions: bool = False,
) -> Rules | None:
    """The rules in these files, else in those of an earlier run that `out` keeps; None where there are none.

    Those of `overrides` are added to the decisions that it keeps, and may replace some where that is meant.
    """
    named = dict(zip(SOURCES, (policy, times), strict=True))
    paths = {name: given or out / name for name, given in named.items() if given or (out / name).is_file()}
    decisions = decisions_of(out, assignment, overrides, replace=replace_decisions)
    if not paths and not decisions.new and not (out / JOURNAL).is_file():
        return None
    rules = read_policy(paths["policy.toml"], assignment) if "policy.toml" in paths else Policy()
    when = read_times(paths["timestamps.csv"], assignment, rules.zone) if "timestamps.csv" in paths else None
    if rules.late and when is None:
        raise UsageError(
            f"{paths['policy.toml']} has late rules, but nothing says when students handed in: give --timestamps, a "
            "CSV (student,submitted) or nbgrader's folder `submitted`. No date of a file is taken: anyone can set it."
        )
    given = {name: _to_keep(name, path, when) for name, path in paths.items() if named[name]}
    return Rules(rules, decisions.merged()[1], when, given, decisions)


def _to_keep(name: str, path: Path, times: Mapping[str, datetime.datetime] | None) -> bytes:
    if not path.is_dir():
        return path.read_bytes()
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("student", "submitted"))
    writer.writerows((student, when.isoformat()) for student, when in sorted((times or {}).items()))
    return stream.getvalue().encode()
