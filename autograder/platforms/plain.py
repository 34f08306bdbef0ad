"""Grades for a spreadsheet or a script: CSV with a row for each student, JSON Lines with a report a line."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from autograder.gradebook.grades_folder import FinalReport, Gradebook
from autograder.gradebook.roster import Roster, alternatives
from autograder.vocabulary.report import Report, to_json

ABSENT = "absent"


def plain_csv(reports: Sequence[Report], roster: Roster | None = None) -> str:
    """The columns of `grades.csv`, `points` being the final grade where there is one.

    With a roster, there is also a row, without points, for each student who handed in nothing.
    """
    items = list(dict.fromkeys(result.item for report in reports for result in report.items))
    missing = absent(reports, roster) if roster else []
    rows = [*((report.student, report) for report in reports), *((student, None) for student in missing)]
    stream = io.StringIO()
    gradebook = Gradebook(stream, items)
    for student, report in sorted(rows, key=lambda row: row[0]):
        if report is None:
            gradebook.add_absent(student, ABSENT)
        else:
            gradebook.add(report)
    return stream.getvalue()


def absent(reports: Sequence[Report], roster: Roster) -> list[str]:
    """The students of the roster who have no report."""
    names = [alternatives(report.student, report.identity) for report in reports]
    there = {person.student for one in names if (person := roster.person(*one))}
    return [person.student for person in roster.people if person.student not in there]


def json_lines(reports: Sequence[Report]) -> str:
    """One report a line, as `reports/<student>.json` spells it; `points` is the final grade where there is one."""
    return "".join(json.dumps(to_json(report) | _reasons(report)) + "\n" for report in reports)


def _reasons(report: Report) -> dict[str, list[str]]:
    return {"reasons": [each.reason for each in report.final.adjustments]} if isinstance(report, FinalReport) else {}
