"""Grades for a spreadsheet or a script, and one column of a platform's own gradebook.

Students without a grade of ours are left out of such a column, and so is whatever else stands in the gradebook.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.gradebook.grades_folder import FinalReport, Gradebook, common_maximum, scale_factor
from autograder.gradebook.roster import Roster, alternatives, find_rows, keys_of, plain_heading
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table
from autograder.vocabulary.report import Report, to_json
from autograder.vocabulary.text import number, reads_as_formula, visible


def plain_csv(reports: Sequence[Report], roster: Roster | None = None) -> str:
    """Write the columns of `grades.csv`, `points` being the final grade where there is one.

    With a roster, there is also a row, without points, for each student who handed in nothing.
    """
    rows: list[tuple[str, Report | None]] = [(report.student, report) for report in reports]
    if roster is not None:
        names = [alternatives(report.student, report.identity) for report in reports]
        present = {person.student for each in names if (person := roster.person(*each))}
        rows += [(person.student, None) for person in roster.people if person.student not in present]
    stream = io.StringIO()
    gradebook = Gradebook(stream, list(dict.fromkeys(result.item for report in reports for result in report.items)))
    for student, report in sorted(rows, key=lambda row: row[0]):
        if report is None:
            gradebook.add_absent(student, "absent")
        else:
            gradebook.add(report)
    return stream.getvalue()


def json_lines(reports: Sequence[Report]) -> str:
    """Write one report a line, as `reports/<student>.json` has it, with the final grade and its reasons if any."""
    lines = []
    for report in reports:
        final = report.final.adjustments if isinstance(report, FinalReport) else None
        reasons = {} if final is None else {"reasons": [adjustment.reason for adjustment in final]}
        lines.append(json.dumps(to_json(report) | reasons) + "\n")
    return "".join(lines)


@dataclass(frozen=True)
class Column:
    """What a column to fill in looks like on a platform.

    heading      matches the heading of such a column
    worth        finds in it what the assignment is worth
    identities   headings by which the platform finds a student
    last         a column that every row must end in, and its cell
    """

    platform: str
    heading: re.Pattern[str]
    worth: re.Pattern[str]
    identities: tuple[str, ...]
    last: tuple[str, str] | None = None


@dataclass(frozen=True)
class Upload:
    """The file to upload, and the students with a report whom the gradebook does not hold, or not clearly."""

    text: str
    graded: int
    unknown: tuple[str, ...]


NAMED_BY = ("orgdefinedid", "username", "user name", "student id", "email", "last name", "first name")


def upload_of(
    reports: Sequence[Report],
    gradebook: Table,
    column: Column,
    heading: str,
    roster: Roster | None = None,
    *,
    scale: bool = False,
) -> Upload:
    """Write the rows of students with a grade of ours: what the platform finds them by, and their points.

    heading   of the column, whole, or so much of its beginning that no other has it
    raises    UsageError where the gradebook is none, has no such column, or it is worth other points
    """
    offered = [at for at, name in enumerate(gradebook.header) if column.heading.fullmatch(name)]
    exact = [at for at in offered if gradebook.header[at].strip() == heading.strip()]
    places = exact or [at for at in offered if heading and gradebook.header[at].startswith(heading)]
    if len(places) != 1:
        known = "; ".join(visible(gradebook.header[at], 80) for at in offered) or "none"
        asked = f"{visible(heading, 80)!r} of {column.platform}"
        raise UsageError(f"The gradebook has no single column {asked}. It has: {known}.")
    full_heading = gradebook.header[places[0]]
    headings = [plain_heading(cell) for cell in gradebook.header]
    who = [place for place, name in enumerate(headings) if name in column.identities]
    if not who:
        known = " or ".join(column.identities[:2])
        advice = f"export it from {column.platform} as it is, with English as your language there"
        raise UsageError(f"The gradebook has no column {known}: {advice}.")
    ours = common_maximum(reports)
    worth = column.worth.search(full_heading)
    theirs = ours
    if worth:  # with a comma or a point before decimals; three digits behind it are thousands
        thousands = re.fullmatch(r"\d{1,3}[.,]\d{3}", worth[1])
        theirs = float(re.sub(r"[.,]", "" if thousands else ".", worth[1]))
    factor = scale_factor(ours, theirs, full_heading, column.platform, scale=scale)
    keys = []
    for row in gradebook.rows:  # Brightspace writes a `#` before ids
        cells = {name: cell.strip().lstrip("#") for name, cell in zip(headings, row, strict=True) if name in NAMED_BY}
        last, first = cells.pop("last name", ""), cells.pop("first name", "")
        keys.append(keys_of({*cells.values(), *([f"{last}, {first}"] if last and first else [])}))
    found = find_rows(reports, keys, roster)

    decimal = "," if gradebook.delimiter == ";" else "."
    last_name, last_cell = column.last or (None, None)
    end = [last_cell] if last_cell else []
    rows = [[*(gradebook.header[place] for place in who), full_heading, *([last_name] if last_name else [])]]
    unsafe = []
    for position, report in sorted(found.rows.items()):
        identities = [gradebook.rows[position][place] for place in who]
        if any(map(reads_as_formula, identities)):
            unsafe.append(report.student)
        elif report.points is not None:
            rows.append([*identities, number(report.points * factor).replace(".", decimal), *end])
    return Upload(gradebook.text(rows), len(rows) - 1, tuple(sorted([*found.unknown, *unsafe])))
