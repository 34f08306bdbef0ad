"""The one rule for whatever writes into a folder of grades: nobody's grade changes without being shown first.

What the folder holds is compared with what is about to be written. A grade that changes for the same hand-in, a grade
that is lost and a student who leaves the gradebook are written only where somebody agreed. A new hand-in may change its
own grade: that is what it was graded for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.gradebook.final_grades import Final
from autograder.gradebook.gradebook import name_cell, points_cell
from autograder.grading.remarks.details import read_details
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report, read_report
from autograder.vocabulary.rows import table_of
from autograder.vocabulary.text import number, visible


@dataclass(frozen=True)
class Grade:
    """What a gradebook says of a student, as its cells spell it."""

    points: str
    final: str
    status: str

    @property
    def text(self) -> str:
        """The final grade, or why there is none."""
        return self.final or (self.status if self.status != "graded" else "none")


NOT_GRADED, GONE = "not graded", Grade("", "", "gone")


@dataclass(frozen=True)
class GradeChange:
    """A student whose grade is another one; `asked` where that is because something else was handed in."""

    student: str
    before: Grade
    after: Grade
    asked: bool

    @property
    def text(self) -> str:
        """`ada 83 → 82`: the final grade, and where that stays the points."""
        before, after, what = self.before.text, self.after.text, ""
        if before == after:
            before, after, what = self.before.points or "none", self.after.points or "none", "points "
        return f"{visible(self.student, 40)} {what}{before} → {after}"


def stored_grades(out: Path) -> dict[str, Grade]:
    """The grades in a folder's `grades.csv`, by name as it spells it; nobody's where there is none."""
    try:
        table = table_of((out / "grades.csv").read_bytes(), out / "grades.csv")
        student, points, status = map(table.header.index, ("student", "points", "status"))
    except (FileNotFoundError, UsageError, ValueError):
        return {}
    final = table.header.index("final") if "final" in table.header else points
    spelled = ((row[student], _points(row[points]), _points(row[final]), row[status]) for row in table.rows)
    return {name: Grade(earned, last, state.replace("_", " ")) for name, earned, last, state in spelled}


def is_graded(out: Path) -> bool:
    """Whether a run has ended in the folder `out`."""
    return any((out / name).is_file() for name in ("grades.csv", "run.json"))


def grade_changes(out: Path, after: Iterable[tuple[Report, Final | None]]) -> list[GradeChange]:
    """Whose grade in the folder `out` differs from these reports and the final grades that rules make of them."""
    if not is_graded(out):
        return []
    left: dict[str, Grade] = stored_grades(out)
    changes = []
    for report, final in after:
        now = _grade(report, report.points if final is None else final.points)
        before = left.pop(name_cell(report.student), None)
        if before == now:
            continue
        stored = read_report(out / "reports" / f"{file_stem(report.student)}.json")
        if before is None and stored is not None:
            before = _grade(stored, stored.points)
        if before is not None and before != now and before.text != NOT_GRADED:
            asked = stored is not None and now.text != NOT_GRADED and _is_anew(out, report, stored, before)
            changes.append(GradeChange(report.student, before, now, asked))
    return changes + [GradeChange(name, before, GONE, asked=False) for name, before in left.items()]


def refuse_another(out: Path, assignment: str) -> None:
    """Raise UsageError where a folder holds the grades of another assignment."""
    reports = map(read_report, sorted((out / "reports").glob("*.json")))
    held = next((report.assignment for report in reports if report is not None), assignment)
    if held != assignment:
        fact = f"{out} holds grades of {visible(held, 80)!r}, not of {assignment!r}"
        raise UsageError(f"{fact}: a folder belongs to one assignment. Give another --out.")


def _is_anew(out: Path, report: Report, stored: Report, before: Grade) -> bool:
    """Whether something else was handed in than what the grade was given for.

    A run that was killed may have put the report in its place already: the details then say what it took the place of.
    """
    if stored.submission.sha256 != report.submission.sha256:
        return True
    kept = read_details(out / "details" / f"{file_stem(report.student)}.json")
    if kept is None or not kept.earlier:
        return False
    last = kept.earlier[-1]
    return last.submission != report.submission.sha256 and points_cell(last.points) == before.points


def _grade(report: Report, final: float | None) -> Grade:
    return Grade(points_cell(report.points), points_cell(final), report.status.replace("_", " "))


def _points(cell: str) -> str:
    with contextlib.suppress(ValueError):
        return number(float(cell.replace(",", ".")))
    return cell
