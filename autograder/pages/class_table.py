"""The table of students on the class page: a row for each, columns for functions and their items, what stands out.

A class of a thousand has 36,000 cells of items: a cell is one element with its verdict in words. The page's script
makes links of those that did not pass, to that item on the student's page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup

from autograder.gradebook.class_statistics import Summary, stands_out
from autograder.gradebook.final_grades import Final
from autograder.vocabulary.report import VERDICT_WORDS, ItemResult, Report, Verdict
from autograder.vocabulary.text import number, visible

LEADING = 2  # columns before the first function: student and points, or the final grade
MOST_NOTE, MOST_NAMES = 80, 2  # characters of what stands out; names and verdicts in it
_ABSENT = Markup('<td class="absent">not in this report</td>')


@dataclass(frozen=True)
class Column:
    """A column of points: of a function over all its items, or of one item."""

    name: str
    is_function: bool


@dataclass(frozen=True)
class Row:
    """A student's row; `mistakes` are their places in the class's list.

    points   the final grade where rules apply
    earned   what the grader gave, where that is another number
    status   "" for who is graded as usual
    """

    student: str
    points: float | None
    earned: float | None
    status: str
    mistakes: str
    cells: Markup
    note: str


def columns_of(figures: Summary) -> list[Column]:
    """Each function, followed by its items."""
    by_function: dict[str, list[Column]] = {}
    for item in figures.items:
        own = by_function.setdefault(item.function, [Column(item.function, is_function=True)])
        own.append(Column(item.item, is_function=False))
    return [column for own in by_function.values() for column in own]


def first_columns(columns: Sequence[Column]) -> list[int]:
    """The places, from 1, of the table's columns where functions begin, and of the one after the last item."""
    begins = [LEADING + place for place, column in enumerate(columns, start=1) if column.is_function]
    return [*begins, LEADING + len(columns) + 1]


def rows_of(
    reports: Iterable[Report], finals: Mapping[str, Final] | None, columns: Sequence[Column], mistakes: Sequence[str]
) -> Iterator[Row]:
    """The rows, in the order of the reports; `finals` are the grades under a course's rules, where it has some."""
    places = {name: str(place) for place, name in enumerate(mistakes)}
    for report in reports:
        final = None if finals is None else finals.get(report.student)
        made = dict.fromkeys(name for item in report.items for name in item.mistakes if name in places)
        yield Row(
            student=report.student,
            points=report.points if final is None else final.points,
            earned=None if final is None or final.is_excused or final.points == report.points else report.points,
            status=_status(report, final),
            mistakes=" ".join(places[name] for name in made),
            cells=_cells(report, columns),
            note=visible(stands_out(report, MOST_NAMES), MOST_NOTE),
        )


def _status(report: Report, final: Final | None) -> str:
    if final is not None and final.is_excused:
        return "excused"
    if report.points is None:
        return "not graded"
    return "no final grade" if final is not None and final.points is None else ""


def _cells(report: Report, columns: Sequence[Column]) -> Markup:
    """The cells of one student; a thousand students share a few dozen different ones."""
    results = {item.item: item for item in report.items}
    return Markup("").join(
        _sum_of(report, column.name)
        if column.is_function
        else _cell(results[column.name])
        if column.name in results
        else _ABSENT
        for column in columns
    )


def _sum_of(report: Report, function: str) -> Markup:
    points = [item.points for item in report.items if item.function == function]
    known = [one for one in points if one is not None]
    return _sum_cell(round(sum(known), 2) if known and len(known) == len(points) else None)


@lru_cache(maxsize=1024)
def _sum_cell(points: float | None) -> Markup:
    return Markup('<td class="n">{}</td>').format("–" if points is None else number(points))


def _cell(item: ItemResult) -> Markup:
    return _cell_of(item.verdict, item.points, item.max_points)


@lru_cache(maxsize=1024)
def _cell_of(verdict: Verdict, points: float | None, max_points: float) -> Markup:
    """A full mark is told by its verdict alone: most cells are that."""
    plain = points is None or (verdict == "passed" and points == max_points)
    words = VERDICT_WORDS[verdict] + ("" if plain or points is None else f", {number(points)} of {number(max_points)}")
    partial = Markup(' data-p="{}"').format(number(points)) if points and points < max_points else Markup("")
    return Markup('<td class="{}"{}>{}</td>').format(verdict, partial, words)
