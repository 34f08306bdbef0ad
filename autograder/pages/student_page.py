"""One report → the page that its student reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from autograder.grading.feedback.details import Details
from autograder.pages.drawing import grid, plot
from autograder.pages.html import render_page
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.report_text import notes_beside


@dataclass(frozen=True)
class FunctionGroup:
    """The items of one function; points is None where the grader failed on one of them."""

    function: str
    items: tuple[ItemResult, ...]
    points: float | None
    max_points: float
    percent: float


def feedback_page(report: Report, notes: Sequence[str] = (), details: Details | None = None) -> str:
    """`grades/feedback/<student>.html`; `notes` are lines from reading the submission. It tells no time.

    details   curves and pictures of the same submission; a page without them has none
    """
    graded = [item for item in report.items if item.points is not None]
    shown = details or Details("", "")
    return render_page(
        "feedback.html",
        report=report,
        notes=notes_beside(report, notes),
        groups=_groups(report.items),
        faults=[item for item in report.items if item.points is None],
        open=[item for item in graded if item.verdict != "passed"],
        earned=sum(item.points or 0.0 for item in graded),
        gradable=sum(item.max_points for item in graded),
        curves=[(curve, [plot(series) for series in curve.series]) for curve in shown.curves],
        grids={picture.item: grid(picture) for picture in shown.pictures},
    )


def _groups(items: Sequence[ItemResult]) -> list[FunctionGroup]:
    """The items by function: functions in the order of their first item, items in the order of the report."""
    functions = list(dict.fromkeys(item.function for item in items))
    by_function = sorted(items, key=lambda item: functions.index(item.function))
    return [_group(name, tuple(same)) for name, same in groupby(by_function, key=lambda item: item.function)]


def _group(function: str, items: tuple[ItemResult, ...]) -> FunctionGroup:
    earned = sum(item.points or 0.0 for item in items)
    most = sum(item.max_points for item in items)
    points = None if any(item.points is None for item in items) else earned
    return FunctionGroup(function, items, points, most, round(100 * earned / most, 1) if most else 0.0)
