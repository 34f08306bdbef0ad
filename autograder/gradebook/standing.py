"""Where a student stands in the class, on their own page: where staff ask for it, in a class of some size."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

from autograder.gradebook.item_statistics import SMALLEST_CLASS
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number

BEGIN, END = "<!-- standing -->", "<!-- end of standing -->"
HEADER_END = "</header>\n"


def standing(points: float, everybody: Iterable[float]) -> str:
    """The median and how many have fewer points; "" in a class so small that it would tell of single students."""
    grades = sorted(everybody)
    if len(grades) < SMALLEST_CLASS:
        return ""
    fewer = sum(one < points for one in grades)
    share = f"{100 * fewer / len(grades):.0f} %"
    return (
        f"The median of the class is {number(statistics.median(grades))}; {share} of {len(grades)} have fewer points."
    )


def with_standing(page: str, told: str) -> str:
    """A feedback page that tells this in its head, instead of what it told there before; "" takes it away."""
    page = re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}\n", "", page, count=1, flags=re.DOTALL)
    if not told:
        return page
    line = Markup('{}<p class="standing">{}</p>{}\n').format(Markup(BEGIN), told, Markup(END))
    return page.replace(HEADER_END, f"{line}{HEADER_END}", 1)


def tells_of_class(out: Path, students: Iterable[str]) -> bool:
    """Whether the page of some of these students says where they stand; no page tells where there is none."""
    pages = (out / "feedback" / f"{file_stem(student)}.html" for student in students)
    return any(path.is_file() and BEGIN.encode() in path.read_bytes() for path in pages)


def without_standings(out: Path, students: Iterable[str]) -> None:
    """Take it away from the pages of these students."""
    for student in students:
        path = out / "feedback" / f"{file_stem(student)}.html"
        if path.is_file() and (changed := with_standing(page := path.read_bytes().decode(), "")) != page:
            write_atomically(path, changed)


def write_standings(out: Path, reports: Iterable[Report]) -> int:
    """Put it on every page of a folder of grades; to how many. Points are final grades where rules made some."""
    points = {report.student: report.points for report in reports}
    graded = [one for one in points.values() if one is not None]
    written = 0
    for student, own in points.items():
        path = out / "feedback" / f"{file_stem(student)}.html"
        page = path.read_bytes().decode()
        told = "" if own is None else standing(own, graded)
        if (changed := with_standing(page, told)) != page:
            write_atomically(path, changed)
        written += bool(told)
    return written
