"""Read what a course decided on points: its policy, overrides, when what was handed in, slip days.

    policy.toml      as the models below say
    decisions.csv    what staff decided on single grades: decisions.py
    timestamps.csv   student,submitted: when students handed in, as staff gave it with --timestamps; it counts before
    handed_in.csv    the same as the download said that was graded
    ../slip-days.toml, beside the folders of grades:  days = 5, and [students] with another number for some

Every file and every entry is optional. What cannot be read, or says what no rule knows, is refused with its line, and
nothing is written: a grade by half a policy would be worse than none.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from autograder.gradebook.decisions import JOURNAL, Decisions, Override, decisions_of
from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, file_stem, read_rows, read_text, write_atomically
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment, within_bounds

POLICY, SLIP_DAYS, GIVEN, SEEN = "policy.toml", "slip-days.toml", "timestamps.csv", "handed_in.csv"
TIMES = ("student", "submitted")  # the columns of both
DAY = datetime.timedelta(days=1)
EVERYBODY: Final = "everybody gets it"
LEAVES: Final = "leaves the total"
SENTENCES = {"missing": "is missing", "extra_forbidden": "is no rule; autograder/README.md shows all"}

Days = Annotated[float, Field(ge=0, le=3650)]
Percent = Annotated[float, Field(ge=0, le=100)]
SomeSlipDays = Annotated[int, Field(ge=0, le=100)]
Moment = Annotated[datetime.datetime, AfterValidator(within_bounds)]
Student = Annotated[str, Field(min_length=1)]
Times = Mapping[str, datetime.datetime]  # by student


def _zone(name: Any) -> datetime.tzinfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, TypeError, ValueError, OSError):
        raise ValueError("should be a time zone, as Europe/Berlin is one") from None


class Entries(BaseModel):
    """A table of a TOML file of which every entry is known."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)


class LaterDeadline(Entries):
    """A deadline after the first, and what it costs to meet it alone."""

    deadline: Moment
    cost: Percent


class Late(Entries):
    """What handing in after the deadline costs, in per cent.

    later_deadlines   each later and dearer than the one before
    grace_minutes     this much later is still on time, at each deadline
    per_day           for each day begun after the last deadline
    of                of the points earned, or of the maximum
    cutoff_days       after the last deadline, after which nothing counts; None where everything does
    extensions        student → days more, at each deadline
    """

    deadline: Moment
    later_deadlines: list[LaterDeadline] = []
    grace_minutes: Annotated[float, Field(ge=0, le=7 * 24 * 60)] = 0.0
    per_day: Percent = 0.0
    of: Literal["earned", "maximum"] = "earned"
    cutoff_days: Days | None = None
    extensions: dict[Student, Days] = {}

    def cost(self, student: str, submitted: datetime.datetime) -> tuple[float, str]:
        """Return the per cent that handing in then costs a student, infinity where nothing counts; and why."""
        moved = submitted.astimezone(datetime.UTC) - self.extensions.get(student, 0.0) * DAY
        deadlines = [LaterDeadline(deadline=self.deadline, cost=0.0), *self.later_deadlines]
        for number, due in enumerate(deadlines, start=1):
            over = moved - due.deadline.astimezone(datetime.UTC)
            if over <= datetime.timedelta(minutes=self.grace_minutes):
                return due.cost, f"late, but by deadline {number} of {len(deadlines)}" if number > 1 else ""
        days = math.ceil(over / DAY)
        begun = f"{days} day{'s' * (days != 1)} late"
        begun += f", counted from deadline {len(deadlines)}" if self.later_deadlines else ""
        if self.cutoff_days is not None and over > self.cutoff_days * DAY:
            return math.inf, f"{begun}, and nothing counts after {self.cutoff_days:g}"
        return min(100.0, due.cost + self.per_day * days), begun

    def slip_days(self, student: str, submitted: datetime.datetime, left: int) -> int:
        """Tell how many of the slip days left are used: the fewest that make the cost least."""
        return min(range(left + 1), key=lambda days: self.cost(student, submitted - days * DAY)[0])


class ChangedItem(Entries):
    """What an item is for everybody: worth other points, its shares kept; or cancelled."""

    points: Annotated[float, Field(ge=0.01, le=10_000)] | None = None
    cancelled: Literal["everybody gets it", "leaves the total"] | None = None


class Drop(Entries):
    """How many of a student's lowest items are left out."""

    lowest: Annotated[int, Field(ge=0, le=1000)] = 0


class Excused(Entries):
    """Who gets no grade, and who is graded without some items."""

    students: list[Student] = []
    items: dict[Student, Annotated[list[str], Field(min_length=1)]] = {}


class Questions(Entries):
    """Whether points for questions in words may lead above the maximum, rather than be part of it."""

    extra_credit: bool = False


class Policy(Entries):
    """The rules of a course; the default is no rule at all. Validated with the ids of items as context, or any."""

    timezone: Annotated[datetime.tzinfo | None, BeforeValidator(_zone)] = None
    late: Late | None = None
    items: dict[str, ChangedItem] = {}
    drop: Drop = Drop()
    excused: Excused = Excused()
    questions: Questions = Questions()

    @model_validator(mode="after")
    def _checked(self, info: ValidationInfo) -> Self:
        """Give each deadline its zone; what is wrong is a sentence that begins with the entry."""
        if self.late:
            steps: list[Late | LaterDeadline] = [self.late, *self.late.later_deadlines]
            for step in steps:
                if step.deadline.tzinfo is None and self.timezone is None:
                    raise ValueError("late.deadline has no time zone: end it in one (+01:00), or give `timezone`")
                step.deadline = step.deadline if step.deadline.tzinfo else step.deadline.replace(tzinfo=self.timezone)
            costs = [step.cost for step in self.late.later_deadlines]
            if any(row != sorted(row) for row in (costs, [step.deadline for step in steps])):
                raise ValueError("late.later_deadlines should each be later and dearer than the one before")
        if (ids := info.context) is None:
            return self
        if unknown := [name for name in self.items if name not in ids]:
            raise ValueError(f"items.{unknown[0]} is no item; there are: {', '.join(ids)}")
        for student, items in self.excused.items.items():
            if unknown := [name for name in items if name not in ids]:
                raise ValueError(f"excused.items.{student} should be a list of items, and {unknown[0]!r} is none")
        if self.drop.lowest >= len(ids):
            raise ValueError(f"drop.lowest should be from 0 to {len(ids) - 1} items, but is {self.drop.lowest}")
        if [item.cancelled for item in self.items.values()].count(LEAVES) == len(ids):
            raise ValueError("items leaves none that counts")
        return self

    @property
    def students(self) -> set[str]:
        """Everybody whom a rule names."""
        return {*self.excused.students, *self.excused.items, *(self.late.extensions if self.late else ())}


class SlipDays(Entries):
    """Late days that cost nothing, so many for each student over the term, for some `students` another number."""

    days: SomeSlipDays
    students: dict[Student, SomeSlipDays] = {}


AnyTable = TypeVar("AnyTable", Policy, SlipDays)


def read_policy(path: Path, assignment: Assignment | None) -> Policy:
    """Read the policy in a TOML file, for these items or, with None, for any."""
    return _read_toml(path, Policy, [item.id for item in assignment.items] if assignment else None)


def _read_toml(path: Path, model: type[AnyTable], ids: list[str] | None = None) -> AnyTable:
    """Read the table that a TOML file holds; raises UsageError naming the line of what cannot be used."""
    text = read_text(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits, brackets without end
        reason = str(error).partition(";")[0]  # which advises Python's users
        raise UsageError(f"{path}: this is not TOML: {reason}.") from error
    try:
        return model.model_validate(data, context=ids)
    except ValidationError as errors:
        fault = errors.errors(include_url=False, include_input=False)[0]
        entry = ".".join(part for part in fault["loc"] if isinstance(part, str) and part != "[key]")
        wrong = SENTENCES.get(fault["type"]) or fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
        sentence = f"{entry} {wrong}".strip()
        # The first line that sets the last part of the entry's dotted key, or opens its table.
        name = re.escape(sentence.partition(" ")[0].rpartition(".")[2])
        sets = re.compile(rf"""\s*(\[\s*([\w.-]+\.)?{name}\s*\]|(["'\w-]+\.)*["']?{name}["']?\s*=)""")
        line = next((f", line {at}" for at, line in enumerate(text.splitlines(), start=1) if sets.match(line)), "")
        raise UsageError(f"{path}{line}: {visible(sentence, 500)}.") from errors


# When students handed in


def read_times(path: Path) -> dict[str, datetime.datetime]:
    """Read the times in a CSV file with the columns student,submitted, one for each; none where there is no file."""
    times: dict[str, datetime.datetime] = {}
    for row in read_rows(path, TIMES, others=True) if path.is_file() else ():
        if not row["student"]:
            raise row.wrong("a row without a student.")
        try:
            times[row["student"]] = moment(row["submitted"])
        except ValueError as error:
            raise row.wrong(f"{visible(row['submitted'], 60)!r} {error}.") from None
    return times


def times_csv(times: Times) -> str:
    """Spell the file that `read_times` reads."""
    return Table(TIMES, ()).text([TIMES, *((student, when.isoformat(" ")) for student, when in sorted(times.items()))])


def keep_seen(out: Path, seen: Times) -> None:
    """Keep what a download said; what is known of others stays."""
    kept = read_times(out / SEEN)
    if (now := {**kept, **seen}) != kept:
        write_atomically(out / SEEN, times_csv(now))


def times_of(out: Path, zone: datetime.tzinfo | None, given: Times | None = None, seen: Times | None = None) -> Times:
    """Tell when students handed in, as given or kept in `out`; a time without a zone is of `zone`, its platform's.

    Raises UsageError where it is without, and so is the policy.
    """
    times = {**read_times(out / SEEN), **(seen or {}), **(read_times(out / GIVEN) if given is None else given)}
    for student, when in times.items():
        if when.tzinfo is None and zone is None:
            what = f"The hand-in of {visible(student, 80)}, {when:%Y-%m-%d %H:%M}, names no time zone"
            raise UsageError(f"{what}: give `timezone` in the policy, which is that of your platform.")
    return {student: when if when.tzinfo else when.replace(tzinfo=zone) for student, when in times.items()}


# All rules of a folder of grades


@dataclass(frozen=True)
class Rules:
    """What a course decided.

    given       the files that are to be kept beside the grades. What is kept there already is not among them: somebody
                may add to it while this is in use
    slip        student → slip days left for this deadline, and all of the term
    decisions   the journal that `overrides` follow from
    """

    policy: Policy = field(default_factory=Policy)
    overrides: Sequence[Override] = ()
    times: Times | None = None
    given: Mapping[str, bytes] = field(default_factory=dict)
    slip: Callable[[str], tuple[int, int]] | None = None
    decisions: Decisions | None = None

    @property
    def questions(self) -> dict[str, float]:
        """The questions in words that count, with what they are worth: those for which somebody has points."""
        return {row.item: row.on_top for row in self.overrides if row.points is not None and row.on_top is not None}

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
        """Return the same once the journal holds the new decisions, and with what others have decided meanwhile."""
        return replace(self, overrides=self.decisions.keep()) if self.decisions else self


def read_rules(
    out: Path,
    assignment: Assignment,
    policy: Path | None,
    overrides: Sequence[Path],
    times: Times | None,
    seen: Times | None = None,
    *,
    replace_decisions: bool = False,
) -> Rules | None:
    """Read the rules in these files, else in those of an earlier run that `out` keeps; None where there are none.

    Those of `overrides` are added to the decisions that it keeps, and may replace some where that is meant.

    times   when students handed in, as staff say
    seen    the same as the download says that is being graded
    """
    given = {POLICY: read_text(policy).encode()} if policy else {}
    given |= {} if times is None else {GIVEN: times_csv(times).encode()}
    policy = policy or out / POLICY
    rules = read_policy(policy, assignment) if POLICY in given or policy.is_file() else Policy()
    worth = {name: item.points for name, item in rules.items.items() if item.points}
    items = tuple(replace(item, points=worth.get(item.id, item.points)) for item in assignment.items)
    decisions = decisions_of(out, replace(assignment, items=items), overrides, replace=replace_decisions)
    if not given and not decisions.new and not any((out / name).is_file() for name in (POLICY, JOURNAL, GIVEN)):
        return None
    when = times_of(out, rules.timezone, times, seen) if rules.late else None
    if rules.late and not when:
        raise UsageError(
            f"{policy} has late rules, but nothing says when students handed in: give --timestamps the file of your "
            "platform (which one: autograder/README.md, When students handed in; for Canvas the list of submissions "
            "that its API gives). No date of a file is taken: anyone can set it."
        )
    return Rules(rules, decisions.merged()[1], when, given, _slip_days(out, rules.late), decisions)


def _slip_days(out: Path, late: Late | None) -> Callable[[str], tuple[int, int]] | None:
    """Count the slip days of the term that `out` is part of, used in the order of deadlines, of equal ones of names."""
    folder = out.resolve()
    if late is None or not (path := folder.parent / SLIP_DAYS).is_file():
        return None
    budget, used = _read_toml(path, SlipDays), dict[str, int]()

    def left(student: str) -> tuple[int, int]:
        term = budget.students.get(student, budget.days)
        return max(0, term - used.get(student, 0)), term

    policies = [(kept.parent, read_policy(kept, None)) for kept in sorted(folder.parent.glob(f"*/{POLICY}"))]
    dated = [(policy.late.deadline, other.name, other, policy) for other, policy in policies if policy.late]
    for due, name, other, policy in sorted(dated, key=lambda entry: entry[:2]):
        if (due, name) < (late.deadline, folder.name):
            for student, when in times_of(other, policy.timezone).items():
                if policy.late and student not in policy.excused.students:
                    days_used = policy.late.slip_days(student, when, left(student)[0])
                    used[student] = used.get(student, 0) + days_used
    return left
