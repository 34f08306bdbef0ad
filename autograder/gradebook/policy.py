"""A course's rules for points, as a TOML file says them: the models below are its tables. Every entry is optional.

What cannot be read, or says what no rule knows, is refused with its line.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
import zoneinfo
from dataclasses import replace
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

from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import read_text
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import within_bounds

DAY = datetime.timedelta(days=1)
EVERYBODY: Final = "everybody gets it"
LEAVES: Final = "leaves the total"
SAID = {"missing": "is missing", "extra_forbidden": "is no rule; autograder/README.md shows all"}

Days = Annotated[float, Field(ge=0, le=3650)]
Percent = Annotated[float, Field(ge=0, le=100)]
SomeSlipDays = Annotated[int, Field(ge=0, le=100)]
Moment = Annotated[datetime.datetime, AfterValidator(within_bounds)]
Student = Annotated[str, Field(min_length=1)]


def _zone(name: Any) -> datetime.tzinfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, TypeError, ValueError, OSError):
        raise ValueError("should be a time zone, as Europe/Berlin is one") from None


class Table(BaseModel):
    """A table of which every entry is known."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True)


class LaterDeadline(Table):
    """A deadline after the first, and what it costs to meet it alone."""

    deadline: Moment
    cost: Percent


class Late(Table):
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
        """The per cent that handing in at that moment costs a student, infinity where nothing counts; and why."""
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
        """How many of the slip days left are used: the fewest that make the cost least."""
        return min(range(left + 1), key=lambda days: self.cost(student, submitted - days * DAY)[0])


class ChangedItem(Table):
    """What an item is for everybody: worth other points, its shares kept; or cancelled."""

    points: Annotated[float, Field(ge=0.01, le=10_000)] | None = None
    cancelled: Literal["everybody gets it", "leaves the total"] | None = None


class Drop(Table):
    """How many of a student's lowest items are left out."""

    lowest: Annotated[int, Field(ge=0, le=1000)] = 0


class Excused(Table):
    """Who gets no grade, and who is graded without some items."""

    students: list[Student] = []
    items: dict[Student, Annotated[list[str], Field(min_length=1)]] = {}


class Questions(Table):
    """Whether points for questions in words may lead above the maximum, rather than be part of it."""

    extra_credit: bool = False


class Policy(Table):
    """The rules of a course; the default is no rule at all."""

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
        if info.context is not None:
            self._check_items(info.context)
        return self

    def _check_items(self, ids: list[str]) -> None:
        if unknown := [name for name in self.items if name not in ids]:
            raise ValueError(f"items.{unknown[0]} is no item; there are: {', '.join(ids)}")
        for student, items in self.excused.items.items():
            if unknown := [name for name in items if name not in ids]:
                raise ValueError(f"excused.items.{student} should be a list of items, and {unknown[0]!r} is none")
        if self.drop.lowest >= len(ids):
            raise ValueError(f"drop.lowest should be from 0 to {len(ids) - 1} items, but is {self.drop.lowest}")
        if [item.cancelled for item in self.items.values()].count(LEAVES) == len(ids):
            raise ValueError("items leaves none that counts")

    @property
    def students(self) -> set[str]:
        """Everybody whom a rule names."""
        return {*self.excused.students, *self.excused.items, *(self.late.extensions if self.late else ())}

    def changed(self, assignment: Assignment) -> Assignment:
        """The assignment with what its items are worth by these rules."""
        worth = {name: item.points for name, item in self.items.items() if item.points}
        items = (replace(item, points=worth.get(item.id, item.points)) for item in assignment.items)
        return replace(assignment, items=tuple(items))


class SlipDays(Table):
    """Late days that cost nothing, so many for each student over the term, for some `students` another number."""

    days: SomeSlipDays
    students: dict[Student, SomeSlipDays] = {}


AnyTable = TypeVar("AnyTable", Policy, SlipDays)


def read_policy(path: Path, assignment: Assignment | None) -> Policy:
    """The policy in a TOML file, for these items or, with None, for any."""
    return read_toml(path, Policy, [item.id for item in assignment.items] if assignment else None)


def read_toml(path: Path, model: type[AnyTable], ids: list[str] | None = None) -> AnyTable:
    """The table that a TOML file holds; raises UsageError naming the line of what cannot be used."""
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
        wrong = SAID.get(fault["type"]) or fault["msg"].removeprefix("Value error, ").removeprefix("Input ")
        sentence = f"{entry} {wrong}".strip()
        line = _line_of(text, sentence.partition(" ")[0])
        raise UsageError(f"{path}{f', line {line}' if line else ''}: {visible(sentence, 500)}.") from errors


def _line_of(text: str, key: str) -> int | None:
    """The first line that sets the last part of a dotted key, or opens its table."""
    name = re.escape(key.rpartition(".")[2])
    pattern = re.compile(rf"""\s*(\[\s*([\w.-]+\.)?{name}\s*\]|(["'\w-]+\.)*["']?{name}["']?\s*=)""")
    return next((number for number, line in enumerate(text.splitlines(), start=1) if pattern.match(line)), None)
