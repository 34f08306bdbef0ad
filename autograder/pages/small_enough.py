"""What is left out of a student's page that would grow too large, in steps, and how the page says so.

A submission can give each case a message of thousands of characters, which HTML makes five times as long, and any code.
Reports keep all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import escape

from autograder.grading.remarks.details import Details
from autograder.pages.listing.excerpts import NOTHING, Listing
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.text import visible

MAX_BYTES = 150_000  # of a student's page


@dataclass(frozen=True)
class Cut:
    """What a page keeps.

    room            bytes that a message may take as HTML
    passed_cases    the names of the cases of items that passed
    earlier         gradings before this one, the latest
    """

    room: int = MAX_BYTES
    passed_cases: bool = True
    pictures: bool = True
    curves: bool = True
    cases: bool = True
    code: bool = True
    earlier: int | None = None


CUTS = (
    Cut(),
    Cut(passed_cases=False),
    Cut(1_500, passed_cases=False),
    Cut(500, passed_cases=False, pictures=False),
    Cut(250, passed_cases=False, pictures=False, curves=False, earlier=3),
    Cut(250, passed_cases=False, pictures=False, curves=False, cases=False, earlier=1),
    Cut(100, passed_cases=False, pictures=False, curves=False, cases=False, code=False, earlier=0),
)


def cut_to(cut: Cut, report: Report, details: Details, listing: Listing) -> tuple[Report, Details, Listing, str]:
    """What is left of them; and a sentence that says what is not there, "" where all is."""
    items = tuple(_cut_item(item, cut) for item in report.items)
    kept = replace(
        details,
        pictures=details.pictures if cut.pictures else (),
        calls=details.calls if cut.pictures else {},
        curves=details.curves if cut.curves else (),
        earlier=details.earlier if cut.earlier is None else details.earlier[len(details.earlier) - cut.earlier :],
    )
    left_out = [
        *(["the cases of items that passed"] if cut.cases and not cut.passed_cases and _had_cases(report) else []),
        *(["the ends of long messages"] if _is_shorter(items, report.items) else []),
        *(["pictures of differences"] if kept.pictures != details.pictures else []),
        *(["what public cases call"] if kept.calls != details.calls else []),
        *(["learning curves"] if kept.curves != details.curves else []),
        *(["what each case said"] if not cut.cases else []),
        *(["your code"] if not cut.code and listing != NOTHING else []),
        *(["gradings before the last ones"] if kept.earlier != details.earlier else []),
    ]
    sentence = f"Left out, since this page would be too large: {', '.join(left_out)}." if left_out else ""
    return replace(report, items=items), kept, listing if cut.code else NOTHING, sentence


def _cut_item(item: ItemResult, cut: Cut) -> ItemResult:
    cases = tuple(replace(case, message=_cut_text(case.message, cut.room)) for case in item.cases)
    return replace(
        item,
        message=_cut_text(item.message, cut.room),
        hint=_cut_text(item.hint, cut.room),
        counterexample=_cut_text(item.counterexample, cut.room),
        cases=cases if cut.cases and (cut.passed_cases or item.verdict != "passed") else (),
    )


def _had_cases(report: Report) -> bool:
    return any(item.verdict == "passed" and item.cases for item in report.items)


def _is_shorter(items: Sequence[ItemResult], before: Sequence[ItemResult]) -> bool:
    """Whether the end of any message is missing in `items`."""
    return any(
        (one.message, one.hint, one.counterexample) != (other.message, other.hint, other.counterexample)
        or (one.cases and one.cases != other.cases)
        for one, other in zip(items, before, strict=True)
    )


def _cut_text(text: str, room: int) -> str:
    """The beginning of a text that takes no more than that many bytes as a page shows it; it says what is missing."""
    if len(text) * 10 <= room or _size(text) <= room:
        return text
    fits, below = 0, min(len(text), room)
    while fits < below:
        middle = (fits + below + 1) // 2
        fits, below = (middle, below) if _size(text[:middle]) <= room else (fits, middle - 1)
    return f"{text[:fits]}…\n({len(text) - fits:,} more characters are left out)"


def _size(text: str) -> int:
    return len(escape(visible(text, newlines=True)).encode())
