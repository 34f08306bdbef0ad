"""The one rule for whatever writes into a folder of grades: nobody's grade changes without being shown first.

What the folder holds is compared with what is about to be written. A grade that changes is written only where somebody
agreed, and so is a row that goes. A new hand-in of the same account may change its own grade, for that is what it was
graded for; unless the rules, as they are now, give the old hand-in another grade than it had.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.gradebook.final_grades import final_of
from autograder.gradebook.gradebook import name_cell, points_cell
from autograder.gradebook.rules import Rules
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem, table_of
from autograder.vocabulary.report import Report, read_report
from autograder.vocabulary.text import number, visible


@dataclass(frozen=True)
class Grade:
    """What a gradebook says of a student, as its cells spell it; `most` is what the final grade is out of."""

    points: str
    final: str
    status: str
    most: str

    @property
    def text(self) -> str:
        """The final grade, or why there is none."""
        return self.final or (self.status if self.status != "graded" else "none")


NOT_GRADED, GONE = "not graded", Grade("", "", "gone", "")


@dataclass(frozen=True)
class GradeChange:
    """A student whose grade is another one; `asked` where that is because something else was handed in."""

    student: str
    before: Grade
    after: Grade
    asked: bool

    @property
    def text(self) -> str:
        """`ada 83 → 82`: the final grade, and where that stays what it is out of, or the points."""
        before, after, what = self.before.text, self.after.text, ""
        if before == after and self.before.most != self.after.most:
            before, after = (f"{grade.text} of {grade.most}" for grade in (self.before, self.after))
        elif before == after:
            before, after, what = self.before.points or "none", self.after.points or "none", "points "
        return f"{visible(self.student, 40)} {what}{before} → {after}"


def stored_grades(out: Path) -> dict[str, Grade]:
    """The grades in a folder's `grades.csv`, by name as it spells it; nobody's where there is none."""
    try:
        table = table_of((out / "grades.csv").read_bytes(), out / "grades.csv")
        rows = [dict(zip(table.header, row, strict=True)) for row in table.rows]
        return {row["student"]: _spelled(row) for row in rows}
    except (FileNotFoundError, UsageError, KeyError, ValueError):
        return {}


def _spelled(row: Mapping[str, str]) -> Grade:
    final, most = row.get("final", row["points"]), row.get("final_max", row["max_points"])
    return Grade(_points(row["points"]), _points(final), row["status"].replace("_", " "), _points(most))


def is_graded(out: Path) -> bool:
    """Whether a run has ended in the folder `out`."""
    return any((out / name).is_file() for name in ("grades.csv", "run.json"))


def grade_changes(out: Path, reports: Iterable[Report], rules: Rules | None, of_old: Rules | None) -> list[GradeChange]:
    """Whose grade in the folder `out` differs from these reports by the rules.

    of_old   the same rules, with the times of the hand-ins that lie there
    """
    if not is_graded(out):
        return []
    left: dict[str, Grade] = stored_grades(out)
    changes = []
    for report in reports:
        now = _grade(report, rules)
        before = left.pop(name_cell(report.student), None)
        if before == now:
            continue
        stored = read_report(out / "reports" / f"{file_stem(report.student)}.json")
        if before is None and stored is not None:
            before = _grade(stored, None)
        if before is not None and before != now and before.text != NOT_GRADED:
            asked = stored is not None and now.text != NOT_GRADED and _is_anew(report, stored)
            asked = asked and stored is not None and _grade(stored, of_old) == before
            changes.append(GradeChange(report.student, before, now, asked))
    return changes + [GradeChange(name, before, GONE, asked=False) for name, before in left.items()]


def refuse_another(out: Path, assignment: str) -> None:
    """Raise UsageError where a folder holds the grades of another assignment."""
    reports = map(read_report, sorted((out / "reports").glob("*.json")))
    held = next((report.assignment for report in reports if report is not None), assignment)
    if held != assignment:
        fact = f"{out} holds grades of {visible(held, 80)!r}, not of {assignment!r}"
        raise UsageError(f"{fact}: a folder belongs to one assignment. Give another --out.")


def _is_anew(report: Report, stored: Report) -> bool:
    """Whether the same account has handed in something else than what is stored."""
    same = stored.identity in ("", report.identity)
    return same and stored.submission.sha256 != report.submission.sha256


def _grade(report: Report, rules: Rules | None) -> Grade:
    final = final_of(report, rules) if rules else None
    last, most = (report.points, report.max_points) if final is None else (final.points, final.most)
    return Grade(points_cell(report.points), points_cell(last), report.status.replace("_", " "), number(most))


def _points(cell: str) -> str:
    with contextlib.suppress(ValueError):
        return number(float(cell.replace(",", ".")))
    return cell
