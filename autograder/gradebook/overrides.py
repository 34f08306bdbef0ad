"""What a person decided on single grades.

    overrides.csv    student,item,points,comment

What cannot be read is refused with its line, and nothing is written: a grade by half a file would be worse than none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.items import Assignment
from autograder.vocabulary.rows import Row, read_rows
from autograder.vocabulary.text import visible


@dataclass(frozen=True)
class Override:
    """What a person decided: points for an item, or for the whole where `item` is ""; None for a comment alone."""

    student: str
    item: str
    points: float | None
    comment: str
    place: str


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
    return float(row["points"].replace(",", "."))
