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
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.gradebook.class_statistics import SMALLEST_CLASS, Summary, summary
from autograder.gradebook.grades_folder import name_cell, points_cell, read_grades
from autograder.pages.html import render_page, scripts_and_policy
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import READABLE, file_stem, write_atomically, writing
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible

BY_STUDENT = "by-student"


@dataclass(frozen=True)
class Graded:
    """One assignment's grades: the folder's name below the course's, and everybody's report."""

    folder: str
    assignment: str
    title: str
    reports: Mapping[str, Report]

    @functools.cached_property
    def figures(self) -> Summary:
        """The figures of all who are not excused."""
        return summary(self.reports.values())

    @property
    def changed(self) -> int:
        """How many grades a course's rules have changed."""
        return sum(report.earned != report.points for report in self.reports.values())

    @functools.cached_property
    def made(self) -> dict[str, set[str]]:
        """Known mistake → who made it."""
        made: dict[str, set[str]] = {}
        for report in self.reports.values():
            for mistake in () if "" in report.excused else {name for item in report.items for name in item.mistakes}:
                made.setdefault(mistake, set()).add(report.student)
        return made

    def share(self, points: float | None) -> float | None:
        """Return points in per cent of what the assignment is worth; None where there are none."""
        most = self.figures.max_points
        return None if points is None or not most else round(100 * points / most, 2)

    def share_of(self, student: str) -> float | None:
        """Return what a student earned in per cent; None where there is no grade."""
        return self.share(self.reports[student].points) if student in self.reports else None


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
        reports = {report.student: report for report in read_grades(path)}
        name, *others = sorted({report.assignment for report in reports.values()})
        if others:
            names = " and of ".join([name, *others])
            raise UsageError(f"{path} holds grades of {names}: grade each into a folder of its own.")
        if name not in titles:
            what = f"grades of {visible(name, 80)!r}, which is no assignment of this course"
            raise UsageError(f"{path} holds {what}: give a folder in which this course's grades lie.")
        if name in course:
            where = f"{course[name].folder} and {path.name}"
            raise UsageError(f"{folder} holds grades of {name!r} twice, in {where}: move one of them away.")
        course[name] = Graded(path.name, name, titles[name], reports)

    def natural(graded: Graded) -> list[tuple[int, str]]:
        runs = re.split(r"(\d+)", graded.folder)  # `10-grpo` comes after `2-bandits`
        return [(int(run), "") if run.isdecimal() else (-1, run) for run in runs]

    return sorted(course.values(), key=natural)


def students_of(course: Sequence[Graded]) -> list[str]:
    """List everybody who handed in anything."""
    return sorted({student for graded in course for student in graded.reports})


def write_course(folder: Path, course: Sequence[Graded]) -> None:
    """Write the pages and the gradebook; raises UsageError where the folder cannot be written."""
    rows: list[dict[str, Any]] = []
    for student in students_of(course):
        reports = [graded.reports.get(student) for graded in course]
        points = [report.points for report in reports if report and "" not in report.excused]
        total = None if None in points else round(sum(value or 0.0 for value in points), 2)
        pairs = zip(course, reports, strict=True)
        of = sum(one.figures.max_points for one, report in pairs if not report or "" not in report.excused)
        page = f"{BY_STUDENT}/{file_stem(student)}.html"
        rows.append({"student": student, "page": page, "reports": reports, "total": total, "most": round(of, 2)})
    again = []  # mistakes that somebody made in several assignments, where, and who
    for mistake in sorted({mistake for graded in course for mistake in graded.made}):
        where = [graded for graded in course if mistake in graded.made]
        counts = Counter(student for graded in where for student in graded.made[mistake])
        if who := {student for student, count in counts.items() if count > 1}:
            again.append((mistake, where, who))
    again.sort(key=lambda entry: (-len(entry[2]), entry[0]))
    ordered = all(graded.folder[0].isdecimal() for graded in course)  # the folders say in which order they come
    steps = []  # from each assignment to the next: the mean share of those who have a grade in both
    for place, (before, after) in enumerate(itertools.pairwise(course) if ordered else ()):
        shares = [(before.share_of(student), after.share_of(student)) for student in before.reports]
        if both := [(was, now) for was, now in shares if was is not None and now is not None]:
            was, now = (statistics.fmean(values) for values in zip(*both, strict=True))
            steps.append({"place": place, "count": len(both), "was": was, "now": now})
    medians = [graded.share(graded.figures.median) for graded in course]
    series = [("mean", [graded.share(graded.figures.mean) for graded in course]), ("median", medians)]
    most = round(sum(graded.figures.max_points for graded in course), 2)
    scripts, policy = scripts_and_policy("index.js", "course.js")
    pages: dict[str, Any] = {"graded": course, "rows": rows, "most": most, "ordered": ordered, "steps": steps}
    page = render_page("course.html", scripts=scripts, policy=policy, series=series, again=again, **pages)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["student", *(name_cell(graded.assignment) for graded in course), "total"])
    for row in rows:
        cells = [report.points if report else None for report in row["reports"]]
        writer.writerow([name_cell(row["student"]), *map(points_cell, [*cells, row["total"]])])
    # Of a small class the median would tell of single students.
    told = [
        median if graded.figures.scored >= SMALLEST_CLASS else None
        for graded, median in zip(course, medians, strict=True)
    ]
    with writing(folder, ""):
        # What gathers several folders of grades has the rights that the most private of them gives.
        mode = functools.reduce(operator.and_, (path.stat().st_mode for path in folders_of(folder)), READABLE)
        for left in {*(folder / BY_STUDENT).glob("*.html")} - {folder / row["page"] for row in rows}:
            left.unlink()  # of somebody who has no grades here any more
        for row in rows:
            of_student = [graded.share_of(row["student"]) for graded in course]
            theirs = [mistake for mistake, _, both in again if row["student"] in both]
            one = render_page("over_course.html", graded=course, row=row, shares=of_student, medians=told, again=theirs)
            write_atomically(folder / row["page"], one, lasting=False, mode=mode)
        write_atomically(folder / "index.html", page, mode=mode)
        write_atomically(folder / "grades.csv", stream.getvalue(), mode=mode)


def course_lines(course: Sequence[Graded]) -> list[str]:
    """Word a line for each assignment: how many handed in, what became of their work, and the mean."""
    width = max(len(visible(graded.title, 60)) for graded in course)
    lines = []
    for graded in course:
        figures = graded.figures
        mean = "–" if figures.mean is None else f"{figures.mean:.1f} of {figures.max_points:g}"
        counts = {"graded": figures.scored, "not graded": figures.students - figures.scored}
        became = ", ".join(f"{n} {what}" for what, n in (counts | {"excused": figures.excused}).items() if n)
        title, handed_in = f"{visible(graded.title, 60):<{width}}", f"{len(graded.reports):>5} handed in"
        lines.append(f"  {title}  {handed_in}: {became}, mean {mean}")
    return lines
