"""Gather several assignments of one course: a page that lists them, a page for each student, and a gradebook.

    grades/<one>/…   grades/<other>/…     what `grade --out` wrote, a folder for each assignment
    grades/index.html   grades/by-student/<student>.html   grades/grades.csv

Points are final grades where a course's rules have made some. Nothing is graded again. Assignments have an order where
each folder's name begins with a number; without one nothing is said of earlier and later.
"""

from __future__ import annotations

import csv
import functools
import io
import itertools
import operator
import re
import statistics
import urllib.parse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.gradebook.class_statistics import SMALLEST_CLASS, Summary, summary
from autograder.gradebook.grades_folder import FinalReport, name_cell, points_cell, read_grades
from autograder.pages.html import render_page, scripts_and_policy
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import READABLE, file_stem, write_atomically, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible

BY_STUDENT = "by-student"


@dataclass(frozen=True)
class Graded:
    """One assignment's grades: where they lie below the course's folder, and what they are.

    made      known mistake → who made it
    excused   how many are excused from it, so that they count nowhere
    changed   how many grades a course's rules have changed
    """

    folder: str
    assignment: str
    title: str
    reports: Mapping[str, Report]
    figures: Summary
    made: Mapping[str, frozenset[str]]
    excused: int
    changed: int

    @property
    def page(self) -> str:
        """The address of its dashboard."""
        return f"{urllib.parse.quote(self.folder, safe='')}/index.html"

    @property
    def not_graded(self) -> int:
        """How many the grader failed on, of those who handed in and are not excused."""
        return self.figures.students - self.figures.graded

    def per_cent(self, points: float | None) -> float | None:
        """Return points in per cent of what the assignment is worth; None where there are none."""
        most = self.figures.max_points
        return None if points is None or not most else round(100 * points / most, 2)

    @property
    def mean(self) -> float | None:
        """The mean in per cent."""
        return self.per_cent(self.figures.mean)

    @property
    def median(self) -> float | None:
        """The median in per cent."""
        return self.per_cent(self.figures.median)

    @property
    def told_median(self) -> float | None:
        """The median in per cent, where so many have a grade that it tells nothing of single students."""
        return self.median if self.figures.scored >= SMALLEST_CLASS else None

    def share(self, student: str) -> float | None:
        """Return what a student earned in per cent; None where there is no grade."""
        report = self.reports.get(student)
        return self.per_cent(report.points) if report else None


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
    """A student, the page over the course, a cell for each assignment or None where nothing was handed in, the total.

    shares   in per cent
    total    of what they handed in and are not excused from; None where a grade is lacking
    """

    student: str
    page: str
    cells: tuple[Cell | None, ...]
    shares: tuple[float | None, ...]
    total: float | None


def folders_of(folder: Path) -> list[Path]:
    """List the folders of a course that hold grades, by name."""
    try:
        return sorted(path for path in folder.iterdir() if (path / "reports").is_dir())
    except OSError:
        return []


def is_course(folder: Path) -> bool:
    """Tell whether a folder holds grades of assignments, a folder each, and none of its own."""
    return not (folder / "reports").is_dir() and bool(folders_of(folder))


def read_course(folder: Path, titles: Mapping[str, str]) -> list[Graded]:
    """Read the assignments graded below `folder`, in the order of their folders' names, numbers in these as numbers.

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
        counted = [report for report in reports if not _is_excused(report)]
        changed = sum(_earned(report) != report.points for report in reports)
        made = [(mistake, report.student) for report in counted for item in report.items for mistake in item.mistakes]
        course[name] = Graded(
            folder=path.name,
            assignment=name,
            title=titles[name],
            reports={report.student: report for report in reports},
            figures=summary(counted),
            made={mistake: frozenset(who for other, who in made if other == mistake) for mistake, _ in made},
            excused=len(reports) - len(counted),
            changed=changed,
        )

    def natural(graded: Graded) -> list[tuple[int, str]]:
        runs = re.split(r"(\d+)", graded.folder)  # `10-grpo` comes after `2-bandits`
        return [(int(run), "") if run.isdecimal() else (-1, run) for run in runs]

    return sorted(course.values(), key=natural)


def students_of(course: Sequence[Graded]) -> list[str]:
    """List everybody who handed in anything."""
    return sorted({student for graded in course for student in graded.reports})


def maximum_of(course: Sequence[Graded]) -> float:
    """Add up what all assignments are worth."""
    return round(sum(graded.figures.max_points for graded in course), 2)


def write_course(folder: Path, course: Sequence[Graded]) -> None:
    """Write the pages and the gradebook; raises UsageError where the folder cannot be written."""
    rows = [_row(course, student) for student in students_of(course)]
    again = mistakes_again(course)
    ordered = all(graded.folder[0].isdecimal() for graded in course)  # the folders say in which order they come
    steps = []  # from each assignment to the next: the mean share of those who have a grade in both
    for place, (before, after) in enumerate(itertools.pairwise(course)):
        shares = [(before.share(student), after.share(student)) for student in before.reports]
        if both := [(was, now) for was, now in shares if was is not None and now is not None]:
            was, now = (statistics.fmean(values) for values in zip(*both, strict=True))
            steps.append({"place": place, "count": len(both), "was": was, "now": now})
    scripts, policy = scripts_and_policy("index.js", "course.js")
    page = render_page(
        "course.html",
        scripts=scripts,
        policy=policy,
        graded=course,
        rows=rows,
        most=maximum_of(course),
        ordered=ordered,
        steps=steps if ordered else [],
        again=again,
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
        for left in {*(folder / BY_STUDENT).glob("*.html")} - {folder / row.page for row in rows}:
            left.unlink()  # of somebody who has no grades here any more
        for row in rows:
            theirs = [mistake for mistake, _, _, both in again if row.student in both]
            one = render_page("over_course.html", graded=course, row=row, again=theirs)
            write_atomically(folder / row.page, one, lasting=False, mode=mode)
        write_atomically(folder / "index.html", page, mode=mode)
        write_atomically(folder / "grades.csv", stream.getvalue(), mode=mode)


def mistakes_again(course: Sequence[Graded]) -> list[tuple[str, list[Graded], list[int], frozenset[str]]]:
    """List mistakes of several assignments: name, where, how many made it in each, and who made it more than once.

    Only those that somebody made again, the most students first.
    """
    again = []
    for mistake in sorted({mistake for graded in course for mistake in graded.made}):
        where = [graded for graded in course if mistake in graded.made]
        counts = Counter(student for graded in where for student in graded.made[mistake])
        if both := frozenset(student for student, count in counts.items() if count > 1):
            again.append((mistake, where, [len(graded.made[mistake]) for graded in where], both))
    return sorted(again, key=lambda entry: (-len(entry[3]), entry[0]))


def course_lines(course: Sequence[Graded]) -> list[str]:
    """Word a line for each assignment: how many handed in, what became of their work, and the mean."""
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
    """Return the points that the grader gave, whatever rules have made of them."""
    points = [item.points for item in report.items]
    return None if None in points else round(sum(value or 0.0 for value in points), 2)


def _row(course: Sequence[Graded], student: str) -> Row:
    """Make a student's row over the course."""
    cells: list[Cell | None] = []
    for graded in course:
        report = graded.reports.get(student)
        if report is None:
            cells.append(None)
            continue
        stem = urllib.parse.quote(file_stem(student), safe="")
        page = f"{urllib.parse.quote(graded.folder, safe='')}/feedback/{stem}.html"
        earned = _earned(report)
        changed = None if earned == report.points else earned
        extra = (report.points or 0.0) > report.max_points
        cells.append(Cell(page, report.points, changed, extra, _is_excused(report)))
    points = [cell.points for cell in cells if cell and not cell.excused]
    known = [value for value in points if value is not None]
    total = round(sum(known), 2) if len(known) == len(points) else None
    shares = tuple(graded.share(student) for graded in course)
    return Row(student, f"{BY_STUDENT}/{file_stem(student)}.html", tuple(cells), shares, total)
