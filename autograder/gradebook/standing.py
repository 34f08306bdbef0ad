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
    line = Markup('<p class="standing">{}</p>').format(told) if told else Markup()
    return with_section(page, BEGIN, line, END, HEADER_END)


def with_section(page: str, begin: str, content: Markup, end: str, before: str) -> str:
    """The page with `content`, between two comments that find it again, above the first `before`; "" takes it away."""
    page = re.sub(f"{re.escape(begin)}.*?{re.escape(end)}\n", "", page, count=1, flags=re.DOTALL)
    return page.replace(before, f"{begin}{content}{end}\n{before}", 1) if content else page


def tells_of_class(out: Path) -> bool:
    """Whether some page says where its student stands; no page tells where there is none."""
    return any(BEGIN.encode() in path.read_bytes() for path in (out / "feedback").glob("*.html"))


def write_standings(out: Path, reports: Iterable[Report], *, tell: bool = True) -> int:
    """Put it on every page of a folder of grades, or take it away; how many tell it now.

    Points are final grades where rules made some.
    """
    points = {report.student: report.points for report in reports}
    graded = [earned for earned in points.values() if earned is not None]
    written = 0
    for student, own in points.items():
        path = out / "feedback" / f"{file_stem(student)}.html"
        page = path.read_bytes().decode()
        told = standing(own, graded) if tell and own is not None else ""
        if (changed := with_standing(page, told)) != page:
            write_atomically(path, changed)
        written += bool(told)
    return written
