"""What a person decided on single grades.

    overrides.csv    student,item,points,comment

An item is one of the assignment's, nothing for the whole grade, or a question in words of its notebook, whose points
come on top. What cannot be read is refused with its line, and nothing is written: a grade by half a file would be worse
than none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.handout.source_notebook import read_extras
from autograder.gradebook.gradebook import reads_as_formula
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.rows import Row, read_rows, rows_in, table_of
from autograder.vocabulary.text import visible

COLUMNS = ("student", "item", "points", "comment")


@dataclass(frozen=True)
class Override:
    """What a person decided: points for an item, or for the whole where `item` is ""; None for a comment alone.

    on_top   what the question in words is worth that `item` names; None where it names none
    """

    student: str
    item: str
    points: float | None
    comment: str
    place: str
    on_top: float | None = None


def read_overrides(path: Path, assignment: Assignment) -> list[Override]:
    """The rows of an overrides file, in its order; raises UsageError naming the line of what cannot be used."""
    return _overrides(read_rows(path, COLUMNS), assignment)


def overrides_in(data: bytes, path: Path, assignment: Assignment) -> list[Override]:
    """The same of these bytes, which are to be those of `path`."""
    return _overrides(rows_in(data, path, COLUMNS), assignment)


def with_row(data: bytes, path: Path, student: str, item: str, decided: tuple[str, str] | None) -> bytes:
    """The bytes of an overrides file in which this student has these points and this comment for this item.

    Every other row stays as it is. `decided` None takes the row away; points are as somebody typed them.
    """
    table = table_of(data, path, whole_rows=True) if data.strip() else table_of(",".join(COLUMNS).encode(), path)
    header = [name.strip().lower() for name in table.header]
    if sorted(header) != sorted(COLUMNS):
        raise UsageError(f"{path}, line 1: the columns should be {','.join(COLUMNS)}.")
    own = dict(zip(COLUMNS, (_cell(student), item, *map(_cell, decided or ("", ""))), strict=True))
    new = [] if decided is None else [tuple(own[name] for name in header)]
    rows: list[Sequence[str]] = []
    for row in table.rows:
        cells = dict(zip(header, map(str.strip, row), strict=True))
        if (_plain(cells["student"]), cells["item"]) != (student, item):
            rows.append(row)
        elif new:
            rows.append(new.pop())
    return table.text([table.header, *rows, *new]).encode()


def _overrides(rows: Sequence[Row], assignment: Assignment) -> list[Override]:
    overrides: dict[tuple[str, str], Override] = {}
    own = {item.id for item in assignment.items} | {""}
    asked = any(row["item"] not in own for row in rows)
    questions = {str(one["id"]): float(one["points"]) for one in read_extras(assignment).questions} if asked else {}
    for row in rows:
        found = _override(row, assignment, questions)
        if (found.student, found.item) in overrides:
            what = found.item or "the whole"
            raise row.wrong(f"{visible(found.student, 80)} has another row for {what}: keep one of them.")
        overrides[found.student, found.item] = found
    whole = assignment.max_points + sum(counting(overrides.values()).values())
    for row in rows:
        if not row["item"]:
            _refuse_more(row, _points(row), whole)
    return list(overrides.values())


def counting(overrides: Iterable[Override]) -> dict[str, float]:
    """The questions that count, with what they are worth: those for which somebody has points."""
    given = [row for row in overrides if row.points is not None]
    return {row.item: row.on_top for row in given if row.on_top is not None}


def _override(row: Row, assignment: Assignment, questions: dict[str, float]) -> Override:
    most = questions | {item.id: item.points for item in assignment.items} | {"": math.inf}
    if not row["student"]:
        raise row.wrong("a row without a student.")
    if row["item"] not in most:
        raise row.wrong(f"there is no item {visible(row['item'], 80)!r}; leave it empty for the whole grade.")
    if not row["comment"]:
        raise row.wrong("a change without a reason: say in `comment` why, the student reads it.")
    points = _points(row)
    _refuse_more(row, points, most[row["item"]])
    comment = _plain(row["comment"])
    return Override(_plain(row["student"]), row["item"], points, comment, row.place, questions.get(row["item"]))


def _refuse_more(row: Row, points: float | None, most: float) -> None:
    if points is not None and points > most:
        raise row.wrong(f"{points:g} points, but {row['item'] or 'the assignment'} has {most:g}.")


def _points(row: Row) -> float | None:
    """The points that a row gives; None for a comment alone."""
    if not row["points"]:
        return None
    if not re.fullmatch(r"\d{1,6}([.,]\d{1,4})?", row["points"]):
        raise row.wrong(f"{visible(row['points'], 40)!r} is no number of points: 4 or 3.5, or nothing for a comment.")
    return float(row["points"].replace(",", "."))


def _cell(text: str) -> str:
    """Text as a cell that no spreadsheet takes for a formula, as the gradebook spells it; `_plain` reads it back."""
    return f"'{text}" if reads_as_formula(text.lstrip("'")) else text


def _plain(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and reads_as_formula(cell.lstrip("'")) else cell
