"""One column of a platform's own gradebook, filled in for students with a grade of ours, and nothing else of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.gradebook.grades_folder import common_maximum, scale_factor
from autograder.gradebook.roster import Roster, find_rows, keys_of, plain_heading
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number, reads_as_formula, visible


@dataclass(frozen=True)
class Column:
    """What a platform's gradebook looks like.

    heading      of a column that can be filled in
    worth        finds in it what the assignment is worth
    identities   headings by which the platform finds a student
    what         the platform's name
    last         a column that every row must end in, and its cell
    """

    heading: re.Pattern[str]
    worth: re.Pattern[str]
    identities: tuple[str, ...]
    what: str
    last: tuple[str, str] | None = None


@dataclass(frozen=True)
class Upload:
    """The file to upload.

    unknown   students with a report whom the gradebook does not hold, or not clearly
    """

    text: str
    graded: int
    unknown: tuple[str, ...]


def upload_of(
    reports: Sequence[Report],
    gradebook: Table,
    column: Column,
    heading: str,
    roster: Roster | None = None,
    *,
    scale: bool = False,
) -> Upload:
    """The rows of students with a grade of ours: what the platform finds them by, and their points.

    heading   of the column, whole, or so much of its beginning that no other has it
    raises    UsageError where the gradebook is none, has no such column, or it is worth other points
    """
    at = _column(gradebook, column, heading)
    headings = [plain_heading(cell) for cell in gradebook.header]
    who = [place for place, name in enumerate(headings) if name in column.identities]
    if not who:
        known = " or ".join(column.identities[:2])
        advice = f"export it from {column.what} as it is, with English as your language there"
        raise UsageError(f"The gradebook has no column {known}: {advice}.")
    factor = _factor(reports, gradebook.header[at], column, scale=scale)
    found = find_rows(reports, [_keys(row, headings) for row in gradebook.rows], roster)
    decimal = "," if gradebook.delimiter == ";" else "."
    rows, skipped = [], []
    for position, report in sorted(found.rows.items()):
        cells = [gradebook.rows[position][place] for place in who]
        if any(map(reads_as_formula, cells)):
            skipped.append(report.student)
        elif report.points is not None:
            rows.append([*cells, number(report.points * factor).replace(".", decimal)])
    names, ends = ([column.last[0]], [column.last[1]]) if column.last else ([], [])
    top = [*(gradebook.header[place] for place in who), gradebook.header[at], *names]
    text = gradebook.text([top, *([*row, *ends] for row in rows)])
    return Upload(text, len(rows), tuple(sorted([*found.unknown, *skipped])))


def _keys(row: Sequence[str], headings: Sequence[str]) -> frozenset[str]:
    """What a student may be called, without the `#` that Brightspace writes before ids."""
    known = ("orgdefinedid", "username", "user name", "student id", "email", "last name", "first name")
    cells = {name: cell.strip().lstrip("#") for name, cell in zip(headings, row, strict=True) if name in known}
    last, first = cells.pop("last name", ""), cells.pop("first name", "")
    return keys_of({*cells.values(), *([f"{last}, {first}"] if last and first else [])})


def _column(gradebook: Table, column: Column, heading: str) -> int:
    offered = [at for at, name in enumerate(gradebook.header) if column.heading.fullmatch(name)]
    exact = [at for at in offered if gradebook.header[at].strip() == heading.strip()]
    found = exact or [at for at in offered if heading and gradebook.header[at].startswith(heading)]
    if len(found) != 1:
        known = "; ".join(visible(gradebook.header[at], 80) for at in offered) or "none"
        raise UsageError(
            f"The gradebook has no single column {visible(heading, 80)!r} of {column.what}. It has: {known}."
        )
    return found[0]


def _factor(reports: Sequence[Report], heading: str, column: Column, *, scale: bool) -> float:
    ours, found = common_maximum(reports), column.worth.search(heading)
    return scale_factor(ours, _worth(found[1]) if found else ours, heading, column.what, scale=scale)


def _worth(points: str) -> float:
    """What a heading says, with a comma or a point before decimals; three digits behind it are thousands."""
    thousands = re.fullmatch(r"\d{1,3}[.,]\d{3}", points)
    return float(re.sub(r"[.,]", "" if thousands else ".", points))
