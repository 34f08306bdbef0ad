"""Reports → the gradebook (`grades.csv`) and the figures of a whole class."""

from __future__ import annotations

import csv
import io
import statistics
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.errors import GraderFault
from autograder.report import ItemResult, Report, Verdict
from autograder.text import INVISIBLE, number, visible

COLUMNS = ("student", "points", "max_points", "status")
BINS = 10
SMALLEST_CLASS = 10  # a correlation over fewer students says nothing of an item

# What a submission does to itself, as against an answer that is wrong; the first group counts as a fault on its own.
_FAULTS: tuple[Verdict, ...] = ("raised", "timed_out", "out_of_memory", "crashed")
_WHOLE: tuple[Verdict, ...] = (*_FAULTS, "missing", "not_run")

# What makes a spreadsheet read a cell as a formula. Compatibility forms (＝ ﹢ ⁻ …) are folded into these
# before the test; the true minus sign is no compatibility form, so it is named.
_FORMULA_STARTS = frozenset("=+-@\N{MINUS SIGN}")


@dataclass(frozen=True)
class ItemSummary:
    """How a class did on one item; `graded` leaves out the grader's own faults.

    discrimination   the correlation of the item's points with the points on all other items, -1 to 1;
                     None where it has no value, or too few students to mean anything
    """

    item: str
    function: str
    title: str
    max_points: float
    graded: int
    passed: int
    mean: float | None
    discrimination: float | None
    verdicts: Mapping[Verdict, int]

    @property
    def pass_rate(self) -> float | None:
        """The share of graded submissions that passed, 0 to 1; None where none was graded."""
        return self.passed / self.graded if self.graded else None


@dataclass(frozen=True)
class MistakeSummary:
    """One recognised mistake, the items it appeared on, and the students who made it."""

    mistake: str
    items: tuple[str, ...]
    students: tuple[str, ...]


@dataclass(frozen=True)
class FaultSummary:
    """Submissions that broke in one way at one place; `function` is None where every item did."""

    verdict: Verdict
    function: str | None
    students: tuple[str, ...]


@dataclass(frozen=True)
class Bin:
    """How many scores lie in [low, high), in per cent of the points to be had; the last bin includes 100."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Summary:
    """The figures of a class; mean and median are in points and over graded submissions alone."""

    students: int
    graded: int
    not_graded: tuple[str, ...]
    max_points: float
    mean: float | None
    median: float | None
    distribution: tuple[Bin, ...]
    items: tuple[ItemSummary, ...]
    mistakes: tuple[MistakeSummary, ...]
    faults: tuple[FaultSummary, ...]


def to_csv(
    reports: Iterable[Report], items: Sequence[str], more: Mapping[str, Callable[[str], str]] | None = None
) -> str:
    """`grades.csv`: one row per student, sorted by student; a cell is empty where the grader failed.

    `more` are columns at the end: from a student to the text of the cell.
    Raises GraderFault if a report holds an item that `items` lacks: the sum would hide it.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    last = more or {}
    writer.writerow([_text_cell(name) for name in (*COLUMNS, *items, *last)])
    for report in sorted(reports, key=lambda report: report.student):
        writer.writerow([*_row(report, items), *(_text_cell(text(report.student)) for text in last.values())])
    return stream.getvalue()


def summary(reports: Iterable[Report]) -> Summary:
    """The figures of a class, the same for any order of `reports`."""
    ordered = sorted(reports, key=lambda report: report.student)
    scores = [report.points for report in ordered if report.points is not None]
    return Summary(
        students=len(ordered),
        graded=len(scores),
        not_graded=tuple(report.student for report in ordered if report.points is None),
        max_points=max((report.max_points for report in ordered), default=0.0),
        mean=statistics.fmean(scores) if scores else None,
        median=statistics.median(scores) if scores else None,
        distribution=_distribution(ordered),
        items=_item_summaries(ordered),
        mistakes=_mistake_summaries(ordered),
        faults=_fault_summaries(ordered),
    )


def _row(report: Report, items: Sequence[str]) -> list[str]:
    results = {result.item: result for result in report.items}
    unknown = [item for item in results if item not in items]
    if unknown:
        raise GraderFault(
            f"The report of {visible(report.student, 80)} holds the item {visible(unknown[0], 80)}, "
            "which the assignment lacks: it was graded with another version. Grade again with --fresh."
        )
    most = number(report.max_points)
    total = [_text_cell(report.student), _points_cell(report.points), most, report.status]
    return total + [_points_cell(results[item].points) if item in results else "" for item in items]


def _points_cell(points: float | None) -> str:
    return "" if points is None else number(points)


def _text_cell(text: str) -> str:
    """`text` as a cell that a spreadsheet takes for text; line breaks stay, for the csv module to quote."""
    shown = visible(text, newlines=True)
    return f"'{shown}" if _reads_as_formula(text) else shown


def _reads_as_formula(text: str) -> bool:
    if text.startswith(("\t", "\r")):
        return True
    seen = next((character for character in text if not _is_skipped(character)), "")
    return unicodedata.normalize("NFKC", seen)[:1] in _FORMULA_STARTS


def _is_skipped(character: str) -> bool:
    """Whether a spreadsheet may drop `character` before it looks for a formula."""
    return character.isspace() or unicodedata.category(character) in INVISIBLE


def _distribution(reports: Sequence[Report]) -> tuple[Bin, ...]:
    counts = Counter(
        min(int(BINS * report.points / report.max_points), BINS - 1)
        for report in reports
        if report.points is not None and report.max_points > 0
    )
    width = 100 / BINS
    return tuple(Bin(index * width, (index + 1) * width, counts[index]) for index in range(BINS))


def _item_summaries(reports: Sequence[Report]) -> tuple[ItemSummary, ...]:
    scored: dict[str, list[tuple[ItemResult, float | None]]] = {}
    for report in reports:
        total = report.points
        for result in report.items:
            scored.setdefault(result.item, []).append((result, total))
    return tuple(_item_summary(same) for same in scored.values())


def _item_summary(scored: Sequence[tuple[ItemResult, float | None]]) -> ItemSummary:
    """The summary of one item, from its result in each report and that report's points."""
    results = [result for result, _ in scored]
    first = results[0]
    points = [result.points for result in results if result.points is not None]
    verdicts = Counter(result.verdict for result in results)
    return ItemSummary(
        item=first.item,
        function=first.function,
        title=first.title,
        max_points=first.max_points,
        graded=len(points),
        passed=verdicts["passed"],
        mean=statistics.fmean(points) if points else None,
        discrimination=_discrimination(scored),
        verdicts=dict(verdicts),
    )


def _discrimination(scored: Sequence[tuple[ItemResult, float | None]]) -> float | None:
    """The item-rest correlation: the item's own points are left out of the total, or it would praise itself."""
    graded = [(result.points, total) for result, total in scored if result.points is not None and total is not None]
    here = [points for points, _ in graded]
    rest = [round(total - points, 6) for points, total in graded]
    if len(graded) < SMALLEST_CLASS or min(len(set(here)), len(set(rest))) < 2:
        return None
    return statistics.correlation(here, rest)


def _mistake_summaries(reports: Sequence[Report]) -> tuple[MistakeSummary, ...]:
    """One summary per mistake, the most common first."""
    seen: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for report in reports:
        for result in report.items:
            for mistake in result.mistakes:
                items, students = seen.setdefault(mistake, ({}, {}))
                items[result.item] = None
                students[report.student] = None
    found = [MistakeSummary(name, tuple(items), tuple(students)) for name, (items, students) in seen.items()]
    return tuple(sorted(found, key=lambda mistake: (-len(mistake.students), mistake.mistake)))


def _fault_summaries(reports: Sequence[Report]) -> tuple[FaultSummary, ...]:
    """One summary per way and place of breaking: whole submissions first, then the most common."""
    seen: dict[tuple[Verdict, str | None], dict[str, None]] = {}
    for report in reports:
        for place in _faults(report):
            seen.setdefault(place, {})[report.student] = None
    found = [FaultSummary(verdict, function, tuple(students)) for (verdict, function), students in seen.items()]
    return tuple(sorted(found, key=lambda fault: (fault.function is not None, -len(fault.students))))


def _faults(report: Report) -> list[tuple[Verdict, str | None]]:
    verdicts = {result.verdict for result in report.items}
    if len(verdicts) == 1 and verdicts <= set(_WHOLE):
        return [(report.items[0].verdict, None)]
    return [(result.verdict, result.function) for result in report.items if result.verdict in _FAULTS]
