"""Several assignments of one course: a page that lists them, and a gradebook with a column for each.

    grades/<one>/…   grades/<other>/…     what `grade --out` wrote, a folder for each assignment
    grades/index.html   grades/grades.csv

Points are final grades where a course's rules have made some. Nothing is graded again.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import io
import operator
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from autograder.gradebook.class_statistics import Summary, summary
from autograder.gradebook.grades_folder import FinalReport, name_cell, points_cell, read_grades
from autograder.pages import html
from autograder.pages.html import render_page, script_and_policy
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import READABLE, file_stem, write_atomically, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible


@dataclass(frozen=True)
class Graded:
    """One assignment's grades: where they lie below the course's folder, and what they are."""

    folder: str
    assignment: str
    title: str
    reports: Mapping[str, Report]
    figures: Summary

    @property
    def page(self) -> str:
        """The address of its dashboard."""
        return f"{_quoted(self.folder)}/index.html"

    def feedback(self, student: str) -> str:
        """The address of a student's page."""
        return f"{_quoted(self.folder)}/feedback/{_quoted(file_stem(student))}.html"

    @property
    def excused(self) -> int:
        """How many handed in and are excused from the assignment, so that they count nowhere."""
        return len(self.reports) - self.figures.students

    @property
    def not_graded(self) -> int:
        """How many the grader failed on, of those who handed in and are not excused."""
        return self.figures.students - self.figures.graded

    @property
    def changed(self) -> int:
        """How many grades a course's rules have changed."""
        return sum(earned_of(report) != report.points for report in self.reports.values())


@dataclass(frozen=True)
class Cell:
    """What a student handed in for one assignment: the page about it, and its points.

    earned   what the grader gave, where rules have made another grade of it; else None
    extra    whether the grade is above the maximum, by extra credit
    excused  whether its student is excused from the assignment
    """

    page: str
    points: float | None
    earned: float | None = None
    extra: bool = False
    excused: bool = False


@dataclass(frozen=True)
class Row:
    """A student: a cell for each assignment, None where nothing was handed in; and what becomes of them.

    trend   by how many per cent of the maximum the last assignment went better than the one before; None where one
            of the two has no grade
    """

    student: str
    cells: tuple[Cell | None, ...]
    total: float | None
    trend: float | None


def is_course(folder: Path) -> bool:
    """Whether a folder holds grades of assignments, a folder each, and none of its own."""
    return not (folder / "reports").is_dir() and bool(folders_of(folder))


def read_course(folder: Path, titles: Mapping[str, str]) -> list[Graded]:
    """The assignments graded below `folder`, in the order of their folders' names, numbers in these as numbers.

    titles   an assignment's name → its title, of every assignment of the course

    Raises UsageError where a folder mixes assignments, two hold the same, or one holds what is none of the course's.
    """
    graded = [_read(path, titles) for path in folders_of(folder)]
    names = [one.assignment for one in graded]
    if twice := next((name for name in names if names.count(name) > 1), None):
        where = " and ".join(one.folder for one in graded if one.assignment == twice)
        raise UsageError(f"{folder} holds grades of {twice!r} twice, in {where}: move one of them away.")
    return sorted(graded, key=lambda one: _natural(one.folder))


def _natural(name: str) -> list[tuple[int, str]]:
    """What names are sorted by so that `10-grpo` comes after `2-bandits`."""
    return [(int(run), "") if run.isdecimal() else (-1, run) for run in re.split(r"(\d+)", name)]


def students_of(graded: Sequence[Graded]) -> list[str]:
    """Everybody who handed in anything."""
    return sorted({student for one in graded for student in one.reports})


def total_of(graded: Sequence[Graded], student: str) -> float | None:
    """The sum over the assignments that a student handed in and is not excused from; None where a grade is lacking."""
    counted = [one.reports[student] for one in graded if student in one.reports]
    points = [report.points for report in counted if not is_excused(report)]
    known = [value for value in points if value is not None]
    return round(sum(known), 2) if len(known) == len(points) else None


def maximum_of(graded: Sequence[Graded]) -> float:
    """What all assignments are worth together."""
    return round(sum(one.figures.max_points for one in graded), 2)


def is_excused(report: Report) -> bool:
    """Whether its student is excused from the whole assignment: it counts nowhere."""
    return isinstance(report, FinalReport) and report.final.is_excused


def earned_of(report: Report) -> float | None:
    """The points that the grader gave, whatever rules have made of them."""
    points = [item.points for item in report.items]
    return None if None in points else round(sum(one or 0.0 for one in points), 2)


def write_course(folder: Path, graded: Sequence[Graded]) -> None:
    """Write the page and the gradebook; raises UsageError where the folder cannot be written."""
    students = students_of(graded)
    script, policy = script_and_policy()
    search, policy = _allowed(policy)
    page = render_page(
        "course.html",
        script=script,
        search=search,
        policy=policy,
        graded=graded,
        rows=[_row(graded, student) for student in students],
        most=maximum_of(graded),
        means=_means(graded),
    )
    with writing(folder, ""):
        mode = _mode_of(folder)
        write_atomically(folder / "index.html", page, mode=mode)
        write_atomically(folder / "grades.csv", _to_csv(graded, students), mode=mode)


def _mode_of(course: Path) -> int:
    """The rights of what gathers several folders of grades: those that the most private of them gives."""
    modes = (path.stat().st_mode for path in folders_of(course))
    return functools.reduce(operator.and_, modes, READABLE)


def folders_of(folder: Path) -> list[Path]:
    """The folders of a course that hold grades, by name."""
    try:
        return sorted(path for path in folder.iterdir() if (path / "reports").is_dir())
    except OSError:
        return []


def _read(path: Path, titles: Mapping[str, str]) -> Graded:
    reports = read_grades(path)
    names = sorted({report.assignment for report in reports})
    if len(names) > 1:
        raise UsageError(f"{path} holds grades of {' and of '.join(names)}: grade each into a folder of its own.")
    if names[0] not in titles:
        what = f"grades of {visible(names[0], 80)!r}, which is no assignment of this course"
        raise UsageError(f"{path} holds {what}: give a folder in which this course's grades lie.")
    figures = summary(report for report in reports if not is_excused(report))
    return Graded(path.name, names[0], titles[names[0]], {report.student: report for report in reports}, figures)


def _row(graded: Sequence[Graded], student: str) -> Row:
    cells = tuple(_cell(one, student) for one in graded)
    shares = [
        100 * cell.points / one.figures.max_points
        if cell and cell.points is not None and one.figures.max_points
        else None
        for cell, one in zip(cells, graded, strict=True)
    ]
    before, last = [None, None, *shares][-2:]
    return Row(student, cells, total_of(graded, student), None if before is None or last is None else last - before)


def _cell(one: Graded, student: str) -> Cell | None:
    report = one.reports.get(student)
    if report is None:
        return None
    earned = earned_of(report)
    extra = (report.points or 0.0) > report.max_points
    changed = None if earned == report.points else earned
    return Cell(one.feedback(student), report.points, changed, extra, is_excused(report))


def _allowed(policy: str) -> tuple[Markup, str]:
    """The script that searches the table of students, and the policy that lets it run too."""
    script = (Path(html.__file__).parent / "templates" / "course.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Markup(script), policy.replace("script-src ", f"script-src 'sha256-{digest}' ")


def _means(graded: Sequence[Graded]) -> dict[str, Any] | None:
    """How mean and median go from assignment to assignment, in per cent of what each is worth; None for one alone.

    Places are in a box of 100 by 100, upwards from 0.
    """
    known = [one for one in graded if one.figures.mean is not None and one.figures.max_points]
    if len(known) < 2:
        return None
    across = [round(100 * (place + 0.5) / len(known), 2) for place in range(len(known))]
    lines = {}
    for name in ("mean", "median"):
        shares = [100 * getattr(one.figures, name) / one.figures.max_points for one in known]
        lines[name] = [
            {"x": x, "y": round(100 - share, 2), "share": share} for x, share in zip(across, shares, strict=True)
        ]
    words = "; ".join(
        f"{visible(one.title, 60)}: mean {mean['share']:.0f}, median {median['share']:.0f} per cent"
        for one, mean, median in zip(known, lines["mean"], lines["median"], strict=True)
    )
    return {"lines": lines, "titles": [one.title for one in known], "words": words}


def _to_csv(graded: Sequence[Graded], students: Sequence[str]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["student", *(name_cell(one.assignment) for one in graded), "total"])
    for student in students:
        points = [points_cell(one.reports[student].points) if student in one.reports else "" for one in graded]
        writer.writerow([name_cell(student), *points, points_cell(total_of(graded, student))])
    return stream.getvalue()


def told(graded: Sequence[Graded]) -> list[str]:
    """A line for each assignment: how many handed in, what became of their work, as on the page, and the mean."""
    width = max(len(visible(one.title, 60)) for one in graded)
    lines = []
    for one in graded:
        figures = one.figures
        mean = "–" if figures.mean is None else f"{figures.mean:.1f} of {figures.max_points:g}"
        counted = {"graded": figures.graded, "not graded": one.not_graded, "excused": one.excused}
        became = ", ".join(f"{count} {what}" for what, count in counted.items() if count)
        lines.append(f"  {visible(one.title, 60):<{width}}  {len(one.reports):>5} handed in: {became}, mean {mean}")
    return lines


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")
