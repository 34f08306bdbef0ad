"""One report → the page that its student reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from markupsafe import escape

from autograder.grading.counterexamples import CALLED
from autograder.grading.details import Details, Earlier
from autograder.pages.drawings import grid, plot
from autograder.pages.html import PARTLY, render_page, verdict_word
from autograder.pages.listing import NOTHING, Line, Listing
from autograder.vocabulary.report import START_THERE, ItemResult, Report
from autograder.vocabulary.report_text import notes_beside
from autograder.vocabulary.text import number, visible

MAX_BYTES = 250_000  # of a page
# Cards; of more the one to start with is open, and the others open in the row of their function. Of more functions the
# code opens by its heading.
MAX_OPEN = 8
MAX_SENTENCE = 240  # characters of what to do next
COMPARABLE = 1 / 4  # of the most points that one thing would win: what would win less is left for later
SENTENCE = re.compile(r"(?<=[.?!])\s")
T = TypeVar("T")


@dataclass(frozen=True)
class Cause:
    """Items that lost points by one cause, the most telling first: it is of the function that is at fault.

    line    in words, where the line that is at fault is known; `lines` are those around it, `at` is its anchor
    """

    items: tuple[ItemResult, ...]
    lost: float
    at: int = 0
    line: str = ""
    lines: tuple[Line, ...] = ()

    @property
    def is_one(self) -> bool:
        """Whether it is known to be one: by names, a call of what is wrong, a stub. A line may have several faults."""
        first, *rest = self.items
        is_known = bool(first.mistakes) and all(item.mistakes or item.waits_for for item in rest)
        return first.verdict != "failed" or is_known


@dataclass(frozen=True)
class FunctionGroup:
    """The items of one function; points is None where the grader failed on one of them.

    causes     of what is to be fixed here
    behind     the items to fix first, in other functions, which explain what is wrong here
    others     items that need no card: they passed, nothing is written there, or something else kept them from being
               reached
    verdict    one word on the `others`, where there are no causes
    """

    function: str
    causes: tuple[Cause, ...]
    behind: tuple[ItemResult, ...]
    others: tuple[ItemResult, ...]
    verdict: str
    points: float | None
    max_points: float
    percent: float


def feedback_page(
    report: Report,
    notes: Sequence[str] = (),
    details: Details | None = None,
    listing: Listing = NOTHING,
    title: str = "",
) -> str:
    """Render `grades/feedback/<student>.html`; `notes` are lines from reading the submission. It tells no time.

    details   curves and pictures of the same submission; a page without them has none
    listing   the submission's text; a page without it shows none
    title     what people call the assignment; "" leaves its module's name

    Where the page would be larger than MAX_BYTES, parts are left out step by step, and it says so.
    """
    page, whole = "", (report, details or Details("", ""), listing)
    for room, count in CUTS:
        report, details, listing, left_out = _cut_to(room, [*PARTS][:count], *whole)
        groups = _groups(report.items, listing)
        passed = tuple(item.item for item in report.items if item.verdict == "passed")
        now = Earlier("", report.submission.sha256, report.points, report.max_points, passed)
        page = render_page(
            "feedback.html",
            report=report,
            title=title,
            notes=notes_beside(report, notes),
            left_out=left_out,
            next_step=next_step(report, groups),
            groups=groups,
            is_folded=sum(len(group.causes) for group in groups) > MAX_OPEN,
            max_open=MAX_OPEN,
            start_there=START_THERE,
            unreached=next((item.message for item in report.items if _is_unreached(item)), ""),
            all_passed=bool(report.items) and len(passed) == len(report.items),
            curves=[(curve, [plot(series) for series in curve.series]) for curve in details.curves],
            called=CALLED,
            calls=details.calls,
            grids={picture.item: grid(picture) for picture in details.pictures},
            gradings=[now, *reversed(details.earlier)] if details.earlier else [],
            listing=listing,
        )
        if len(page.encode()) <= MAX_BYTES:
            break
    return page


def _groups(items: Sequence[ItemResult], listing: Listing) -> list[FunctionGroup]:
    awaited = {item.waits_for for item in items}
    others = []
    for item in items:
        # Of what earned nothing, since nothing is written there, no more is known.
        is_unwritten = item.verdict == "missing" and not (item.points or item.hint or item.counterexample)
        if item.verdict == "passed" or (is_unwritten and item.item not in awaited) or _is_unreached(item):
            others.append(item)
    failing = {item.item: item for item in items if item not in others}
    lines = {name: (item.function, listing.places.get(name, (0,))[0]) for name, item in failing.items()}
    # What has no name, and goes wrong where something does that has one, has its cause.
    named = {lines[name]: item.mistakes for name, item in reversed(failing.items()) if item.mistakes}
    by_cause: dict[object, list[ItemResult]] = {}
    for item in failing.values():
        first, way = item, {item.item}  # what counts as soon as another item is right has that one's cause
        while first.waits_for in failing.keys() - way:
            first = failing[first.waits_for]
            way.add(first.item)
        line = lines[first.item]
        key: object = first.mistakes or named.get(line, line)
        if first.verdict in ("missing", "not_graded"):  # what is not written of a function is one thing to do
            key = (first.verdict, first.message if first.points is None else "")
        by_cause.setdefault((first.function, key), []).append(item)
    causes = []
    for same in by_cause.values():
        # What says most comes first: a fault of its own, a public case that fails, then a hint, then what costs most.
        first = min(same, key=lambda one: (one.waits_for, one.fails_unseen, not one.hint, -_lost([one])))
        at, words = listing.places.get(first.item, (0, ""))
        around = tuple(listing.around(at)) if at else ()
        causes.append(Cause((first, *(item for item in same if item is not first)), _lost(same), at, words, around))
    groups = []
    for function in dict.fromkeys(item.function for item in items):
        own = [item for item in items if item.function == function]
        of_others = [cause.items[0] for cause in causes if not {*cause.items}.isdisjoint(own)]
        verdicts = {"not reached" if _is_unreached(item) else verdict_word(item) for item in own if item in others}
        earned = sum(item.points or 0.0 for item in own)
        most = sum(item.max_points for item in own)
        groups.append(
            FunctionGroup(
                function=function,
                causes=tuple(cause for cause in causes if cause.items[0].function == function),
                behind=tuple(first for first in of_others if first.function != function),
                others=tuple(item for item in own if item in others),
                verdict=verdicts.pop() if len(verdicts) == 1 else PARTLY,
                points=None if any(item.points is None for item in own) else earned,
                max_points=most,
                percent=round(100 * earned / most, 1) if most else 0.0,
            )
        )
    return groups


def _lost(items: Iterable[ItemResult]) -> float:
    return sum(item.max_points - (item.points or 0.0) for item in items)


def _is_unreached(item: ItemResult) -> bool:
    """Tell whether something outside an item kept it from being reached."""
    return item.verdict not in ("passed", "not_graded") and item.is_unreached


# What to do next


def next_step(report: Report, groups: Sequence[FunctionGroup]) -> tuple[str, str]:
    """Choose what to start with: (item, what is known of it); ("", sentence) where it is no item; ("", "") if nothing.

    Functions stand in the order of items.toml, in which they build on each other. It is the first of them that would
    win a quarter of what the most rewarding one would: a slip worth 0.25 waits while 20 points are to be had, and of
    comparable ones the one comes first that others build on. Of that function's causes, those that a public case shows
    come before the others, and then it is the first by the same rule.
    """
    if report.cause:
        lost = sum(_is_unreached(item) for item in report.items)
        items = "one item was" if lost == 1 else f"{lost} items were"
        return "", f"Start with the box below: {items} not reached because of it." if lost else ""
    causes = {}
    for group in groups:
        found = [cause for cause in group.causes if cause.items[0].verdict != "not_graded"]
        if unwritten := tuple(item for item in group.others if item.verdict != "passed"):
            also = [cause for cause in found if cause.items[0].verdict == "missing"]
            unwritten = *(item for cause in also for item in cause.items), *unwritten
            found = [*(cause for cause in found if cause not in also), Cause(unwritten, _lost(unwritten))]
        causes[group.function] = found
    to_win = {function: sum(cause.lost for cause in found) for function, found in causes.items() if found}
    if not to_win:
        return "", ""
    own = causes[_first_worthwhile(to_win, to_win.__getitem__)]
    start = _first_worthwhile(
        [cause for cause in own if not cause.items[0].fails_unseen] or own, lambda cause: cause.lost
    )
    first, *rest = start.items
    most = "up to " if rest and (any(item.waits_for for item in rest) or not start.is_one) else ""
    worth, missing = (number(round(points, 2)) for points in (start.lost, sum(to_win.values())))
    return first.item, f"{_about(first)} This is worth {most}{worth} of your {missing} missing points."


def _first_worthwhile(choices: Iterable[T], worth: Callable[[T], float]) -> T:
    """Return the first that is worth COMPARABLE of the best or more; there is one."""
    several = list(choices)
    least = COMPARABLE * max(map(worth, several))
    return next(choice for choice in several if worth(choice) >= least)


def _about(item: ItemResult) -> str:
    """Say the shortest thing that is known of a failure."""
    if item.verdict == "missing":
        return f"{'a part of it' if item.points else 'it'} is not implemented yet."
    if item.fails_unseen:
        more = "A call that goes wrong is shown with it." if item.counterexample else ""
        more = _question_of(item.hint) if item.mistakes else more
        return f"every public case passes, and a hidden one fails. {more}".strip()
    if item.hint:
        return _question_of(item.hint)
    # what is indented, and what says which cases are right, is no fault
    lines = [line for line in item.message.strip().split("\n") if line[:1] != " " and " This one is not: " not in line]
    said = next((line for line in lines if line.endswith((".", "?", "…"))), f"{item.title} is not all right yet.")
    return visible(SENTENCE.split(said)[0], MAX_SENTENCE)


def _question_of(hint: str) -> str:
    """Return a hint up to its first question, for what stands before says little alone; else its first sentence."""
    sentences = SENTENCE.split(hint.strip().split("\n")[0])
    asked = next((n for n, sentence in enumerate(sentences, 1) if sentence.endswith("?")), 1)
    text = " ".join(sentences[:asked])
    return text if len(text) <= MAX_SENTENCE else visible(sentences[0], MAX_SENTENCE)


# What is left out of a page that would be too large. A submission can give each case a message of thousands of
# characters, which HTML makes five times as long, and any code. Reports keep all of it.

PARTS = {
    "cases": "what each case said",
    "pictures": "pictures of differences, and what public cases call",
    "curves": "learning curves",
    "earlier": "earlier gradings",
    "code": "your code",
}
# Bytes that a message may take as HTML, and how many of PARTS are left out.
CUTS = ((MAX_BYTES, 0), (MAX_BYTES, 1), (1_500, 1), (500, 2), (250, 4), (100, 5))


def _cut_to(
    room: int, out: Sequence[str], report: Report, details: Details, listing: Listing
) -> tuple[Report, Details, Listing, str]:
    """Leave these of PARTS out, and the ends of messages; the sentence tells what is not there, "" where all is."""

    def shorter(text: str) -> str:
        kept = text[:room]
        while (size := len(escape(visible(kept, newlines=True)).encode())) > room:
            kept = kept[: len(kept) * room // size]
        return text if kept == text else f"{kept}…\n({len(text) - len(kept):,} more characters are left out)"

    items = []
    for item in report.items:
        cases = [replace(case, message=shorter(case.message)) for case in item.cases]
        message, hint, call = map(shorter, (item.message, item.hint, item.counterexample))
        items.append(replace(item, message=message, hint=hint, counterexample=call, cases=tuple(cases)))
    names = ["the ends of long messages"] * (tuple(items) != report.items) + [PARTS[name] for name in out]
    if "cases" in out:  # their verdicts say how an item fails
        items = [replace(item, cases=tuple(replace(case, message="") for case in item.cases)) for item in items]
    empty: dict[str, Any] = {"pictures": (), "calls": {}} if "pictures" in out else {}
    empty |= {name: () for name in ("curves", "earlier") if name in out}
    sentence = f"Left out, since this page would be too large: {', '.join(names)}." if names else ""
    cut = replace(report, items=tuple(items)), replace(details, **empty)
    return *cut, NOTHING if "code" in out else listing, sentence
