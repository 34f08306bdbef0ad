"""One report → the page that its student reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from autograder.grading.counterexamples.typed import CALLED
from autograder.grading.remarks.details import Details, Earlier
from autograder.pages.curves import plot
from autograder.pages.drawing import grid
from autograder.pages.guidance.next_step import is_unreached, next_step
from autograder.pages.guidance.question import question
from autograder.pages.html import render_page
from autograder.pages.listing.excerpts import NOTHING, Listing
from autograder.pages.small_enough import CUTS, MAX_BYTES, cut_to
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.report_text import notes_beside


@dataclass(frozen=True)
class Grading:
    """A grading of the same student, now or earlier: what it gave, and what it changed; `graded` says when it began."""

    graded: str
    points: float | None
    max_points: float
    gained: tuple[str, ...]
    lost: tuple[str, ...]


@dataclass(frozen=True)
class FunctionGroup:
    """The items of one function; points is None where the grader failed on one of them.

    together    items that lost points or were not graded: those with the same known mistakes side by side, those that
                one missing piece of code left without any point, and those that one fault of the grader did
    passed      those that earned all of theirs
    unreached   those that something outside them kept from being reached
    """

    function: str
    together: tuple[tuple[ItemResult, ...], ...]
    passed: tuple[ItemResult, ...]
    unreached: tuple[ItemResult, ...]
    points: float | None
    max_points: float
    percent: float

    @property
    def is_unwritten(self) -> bool:
        """Whether there is nothing to read in it: no item earned a point, for nothing is written there."""
        items = [item for same in self.together for item in same]
        return not self.passed and bool(items) and all(_unwritten(item) for item in items)

    @property
    def passed_points(self) -> float:
        """What the passed items earned."""
        return sum(item.points or 0.0 for item in self.passed)


def feedback_page(
    report: Report,
    notes: Sequence[str] = (),
    details: Details | None = None,
    listing: Listing = NOTHING,
    title: str = "",
) -> str:
    """`grades/feedback/<student>.html`; `notes` are lines from reading the submission. It tells no time.

    details   curves and pictures of the same submission; a page without them has none
    listing   the submission's text; a page without it shows none
    title     what people call the assignment; "" leaves its module's name

    Where it would be larger than MAX_BYTES, it leaves out what `small_enough` says, step by step, and tells so.
    """
    page = ""
    for cut in CUTS:
        page = _page(title, notes, *cut_to(cut, report, details or Details("", ""), listing))
        if len(page.encode()) <= MAX_BYTES:
            break
    return page


def _page(title: str, notes: Sequence[str], report: Report, shown: Details, listing: Listing, left_out: str) -> str:
    graded = [item for item in report.items if item.points is not None]
    groups = _groups(report.items)
    return render_page(
        "feedback.html",
        report=report,
        title=title,
        notes=notes_beside(report, notes),
        left_out=left_out,
        next_step=next_step(report),
        groups=groups,
        sections=[one.function for one in groups if one.together or one.passed or one.function in listing.pieces],
        faults=[item for item in report.items if item.points is None],
        open=[item for item in graded if item.verdict != "passed" and not is_unreached(item)],
        all_passed=bool(report.items) and all(item.verdict == "passed" for item in report.items),
        earned=sum(item.points or 0.0 for item in graded),
        gradable=sum(item.max_points for item in graded),
        curves=[(curve, [plot(series) for series in curve.series]) for curve in shown.curves],
        called=CALLED,
        calls=shown.calls,
        grids={picture.item: grid(picture) for picture in shown.pictures},
        questions=_questions(report, listing, title),
        gradings=_gradings(report, shown.earlier),
        listing=listing,
    )


def _questions(report: Report, listing: Listing, title: str) -> dict[str, str]:
    """Item → what to paste into a question about it."""
    places = {item: words for item, (_, words) in listing.places.items()}
    texts = {item.item: question(item, report, places.get(item.item, ""), title) for item in report.items}
    return {item: text for item, text in texts.items() if text}


def _gradings(report: Report, earlier: Sequence[Earlier]) -> list[Grading]:
    """This grading and those before it, newest first; none where there was none before."""
    if not earlier:
        return []
    now = tuple(item.item for item in report.items if item.verdict == "passed")
    all_of_them = [*earlier, Earlier("", report.submission.sha256, report.points, report.max_points, now)]
    pairs = zip([None, *all_of_them], all_of_them, strict=False)
    return [_grading(before, one) for before, one in pairs][::-1]


def _grading(before: Earlier | None, one: Earlier) -> Grading:
    gained = () if before is None else tuple(item for item in one.passed if item not in before.passed)
    lost = () if before is None else tuple(item for item in before.passed if item not in one.passed)
    return Grading(one.graded, one.points, one.max_points, gained, lost)


def _groups(items: Sequence[ItemResult]) -> list[FunctionGroup]:
    """The items by function: functions in the order of their first item, items in the order of the report."""
    functions = list(dict.fromkeys(item.function for item in items))
    by_function = sorted(items, key=lambda item: functions.index(item.function))
    return [_group(name, tuple(same)) for name, same in groupby(by_function, key=lambda item: item.function)]


def _group(function: str, items: tuple[ItemResult, ...]) -> FunctionGroup:
    earned = sum(item.points or 0.0 for item in items)
    most = sum(item.max_points for item in items)
    points = None if any(item.points is None for item in items) else earned
    passed = tuple(item for item in items if item.verdict == "passed")
    unreached = tuple(filter(is_unreached, items))
    together = _together(item for item in items if item not in (*passed, *unreached))
    percent = round(100 * earned / most, 1) if most else 0.0
    return FunctionGroup(function, together, passed, unreached, points, most, percent)


def _together(items: Iterable[ItemResult]) -> tuple[tuple[ItemResult, ...], ...]:
    """Items in order, beside the first of them those with the same mistakes, nothing written, or one fault of ours."""
    groups: dict[object, list[ItemResult]] = {}
    for item in items:
        groups.setdefault(item.mistakes or _unwritten(item) or _lost(item) or item.item, []).append(item)
    return tuple(map(tuple, groups.values()))


def _unwritten(item: ItemResult) -> tuple[str, str] | None:
    """What items share that earned nothing since nothing is written there; None where more is known of one."""
    says_more = item.points or item.hint or item.counterexample
    return ("missing", item.message) if item.verdict == "missing" and not says_more else None


def _lost(item: ItemResult) -> tuple[str, str] | None:
    """What items share that one fault of the grader kept from being graded; None where none did."""
    return (item.verdict, item.message) if item.verdict == "not_graded" else None
