"""Gather several assignments of one course: a page that lists them, and a gradebook with a column for each.

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
        return f"{urllib.parse.quote(self.folder, safe='')}/index.html"

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
        return sum(_earned(report) != report.points for report in self.reports.values())


@dataclass(frozen=True)
class Cell:
    """What a student handed in for one assignment: the page about it, and its points.

    earned   what the grader gave, where rules have made another grade of it; else None
    extra    whether the grade is above the maximum, by extra credit
    excused  whether its student is excused from the assignment
    """

    page: str
    points: float | None
    earned: float | None
    extra: bool
    excused: bool


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


def folders_of(folder: Path) -> list[Path]:
    """The folders of a course that hold grades, by name."""
    try:
        return sorted(path for path in folder.iterdir() if (path / "reports").is_dir())
    except OSError:
        return []


def is_course(folder: Path) -> bool:
    """Whether a folder holds grades of assignments, a folder each, and none of its own."""
    return not (folder / "reports").is_dir() and bool(folders_of(folder))


def read_course(folder: Path, titles: Mapping[str, str]) -> list[Graded]:
    """The assignments graded below `folder`, in the order of their folders' names, numbers in these as numbers.

    titles   an assignment's name → its title, of every assignment of the course

    Raises UsageError where a folder mixes assignments, two hold the same, or one holds what is none of the course's.
    """
    course: dict[str, Graded] = {}
    for path in folders_of(folder):
        reports = read_grades(path)
        names = sorted({report.assignment for report in reports})
        if len(names) > 1:
            raise UsageError(f"{path} holds grades of {' and of '.join(names)}: grade each into a folder of its own.")
        (name,) = names
        if name not in titles:
            what = f"grades of {visible(name, 80)!r}, which is no assignment of this course"
            raise UsageError(f"{path} holds {what}: give a folder in which this course's grades lie.")
        if name in course:
            where = f"{course[name].folder} and {path.name}"
            raise UsageError(f"{folder} holds grades of {name!r} twice, in {where}: move one of them away.")
        figures = summary(report for report in reports if not _is_excused(report))
        by_student = {report.student: report for report in reports}
        course[name] = Graded(path.name, name, titles[name], by_student, figures)

    def natural(graded: Graded) -> list[tuple[int, str]]:
        runs = re.split(r"(\d+)", graded.folder)  # `10-grpo` comes after `2-bandits`
        return [(int(run), "") if run.isdecimal() else (-1, run) for run in runs]

    return sorted(course.values(), key=natural)


def students_of(course: Sequence[Graded]) -> list[str]:
    """Everybody who handed in anything."""
    return sorted({student for graded in course for student in graded.reports})


def maximum_of(course: Sequence[Graded]) -> float:
    """What all assignments are worth together."""
    return round(sum(graded.figures.max_points for graded in course), 2)


def write_course(folder: Path, course: Sequence[Graded]) -> None:
    """Write the page and the gradebook; raises UsageError where the folder cannot be written."""
    rows = [_row(course, student) for student in students_of(course)]
    script, policy = script_and_policy()
    search = (Path(html.__file__).parent / "templates" / "course.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(search.encode()).digest()).decode()
    page = render_page(
        "course.html",
        script=script,
        search=Markup(search),
        policy=policy.replace("script-src ", f"script-src 'sha256-{digest}' "),
        graded=course,
        rows=rows,
        most=maximum_of(course),
        means=_means(course),
    )
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["student", *(name_cell(graded.assignment) for graded in course), "total"])
    for row in rows:
        points = [points_cell(cell.points) if cell else "" for cell in row.cells]
        writer.writerow([name_cell(row.student), *points, points_cell(row.total)])
    with writing(folder, ""):
        # What gathers several folders of grades has the rights that the most private of them gives.
        mode = functools.reduce(operator.and_, (path.stat().st_mode for path in folders_of(folder)), READABLE)
        write_atomically(folder / "index.html", page, mode=mode)
        write_atomically(folder / "grades.csv", stream.getvalue(), mode=mode)


def course_lines(course: Sequence[Graded]) -> list[str]:
    """A line for each assignment: how many handed in, what became of their work, as on the page, and the mean."""
    width = max(len(visible(graded.title, 60)) for graded in course)
    lines = []
    for graded in course:
        figures = graded.figures
        mean = "–" if figures.mean is None else f"{figures.mean:.1f} of {figures.max_points:g}"
        counts = {"graded": figures.graded, "not graded": graded.not_graded, "excused": graded.excused}
        became = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        title, handed_in = f"{visible(graded.title, 60):<{width}}", f"{len(graded.reports):>5} handed in"
        lines.append(f"  {title}  {handed_in}: {became}, mean {mean}")
    return lines


def _is_excused(report: Report) -> bool:
    return isinstance(report, FinalReport) and report.final.is_excused


def _earned(report: Report) -> float | None:
    """The points that the grader gave, whatever rules have made of them."""
    points = [item.points for item in report.items]
    return None if None in points else round(sum(value or 0.0 for value in points), 2)


def _row(course: Sequence[Graded], student: str) -> Row:
    """A student's row; the total is of what they handed in and are not excused from, None where a grade is lacking."""
    cells: list[Cell | None] = []
    shares: list[float | None] = []
    counted: list[float | None] = []
    for graded in course:
        report, most = graded.reports.get(student), graded.figures.max_points
        shares.append(100 * report.points / most if report and report.points is not None and most else None)
        if report is None:
            cells.append(None)
            continue
        earned, excused = _earned(report), _is_excused(report)
        folder, name = (urllib.parse.quote(text, safe="") for text in (graded.folder, file_stem(student)))
        changed = None if earned == report.points else earned
        extra = (report.points or 0.0) > report.max_points
        cells.append(Cell(f"{folder}/feedback/{name}.html", report.points, changed, extra, excused))
        if not excused:
            counted.append(report.points)
    known = [points for points in counted if points is not None]
    before, last = [None, None, *shares][-2:]
    trend = None if before is None or last is None else last - before
    return Row(student, tuple(cells), round(sum(known), 2) if len(known) == len(counted) else None, trend)


def _means(course: Sequence[Graded]) -> dict[str, Any] | None:
    """How mean and median go from assignment to assignment, in per cent of what each is worth; None for one alone.

    Places are in a box of 100 by 100, upwards from 0.
    """
    known = [graded for graded in course if graded.figures.mean is not None and graded.figures.max_points]
    if len(known) < 2:
        return None
    across = [round(100 * (place + 0.5) / len(known), 2) for place in range(len(known))]
    lines = {}
    for name in ("mean", "median"):
        shares = [100 * getattr(graded.figures, name) / graded.figures.max_points for graded in known]
        lines[name] = [
            {"x": x, "y": round(100 - share, 2), "share": share} for x, share in zip(across, shares, strict=True)
        ]
    words = "; ".join(
        f"{visible(graded.title, 60)}: mean {mean['share']:.0f}, median {median['share']:.0f} per cent"
        for graded, mean, median in zip(known, lines["mean"], lines["median"], strict=True)
    )
    return {"lines": lines, "titles": [graded.title for graded in known], "words": words}
