"""Reports → the figures of a whole class: means, distribution, items, mistakes, faults."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.vocabulary.report import ItemResult, Report, Verdict

BINS = 10
MOST_NAMED = 100  # students of one kind; the others stand in the table of students
MILLION = 10**6
SMALLEST_CLASS = 10  # a correlation over fewer students says nothing of an item

# What a submission does to itself, as against an answer that is wrong; the first group counts as a fault on its own.
_FAULTS: tuple[Verdict, ...] = ("raised", "timed_out", "out_of_memory", "crashed")
_WHOLE: tuple[Verdict, ...] = (*_FAULTS, "missing", "not_run")


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
    """One recognised mistake, the items it appeared on, how many students made it, and the first `MOST_NAMED`."""

    mistake: str
    items: tuple[str, ...]
    count: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class FaultSummary:
    """Submissions that broke in one way at one place; `function` is None where every item did."""

    verdict: Verdict
    function: str | None
    count: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class Bin:
    """How many scores lie in [low, high), in per cent of the points to be had; the last bin includes 100."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Summary:
    """The figures of a class; mean and median are in points and over graded submissions alone.

    not_graded   the first `MOST_NAMED` students of those that the grader failed on
    """

    students: int
    graded: int
    full_marks: int
    not_graded: tuple[str, ...]
    max_points: float
    mean: float | None
    median: float | None
    distribution: tuple[Bin, ...]
    items: tuple[ItemSummary, ...]
    mistakes: tuple[MistakeSummary, ...]
    faults: tuple[FaultSummary, ...]


class Tally:
    """The figures of a class whose reports pass one at a time: what it keeps does not grow with the class.

    Points are added up as whole millionths, so that no order of addition changes a figure.
    """

    def __init__(self) -> None:
        """Begin with nobody."""
        self._students = 0
        self._full_marks = 0
        self._max_points = 0.0
        self._not_graded = _Named()
        self._scores: Counter[float] = Counter()
        self._shares: Counter[int] = Counter()
        self._items: dict[str, _ItemTally] = {}
        self._mistakes: dict[str, tuple[dict[str, None], _Named]] = {}
        self._faults: dict[tuple[Verdict, str | None], _Named] = {}

    def add(self, report: Report) -> None:
        """Count a report in; reports come in the order of their students, who are named in that order."""
        total, most = report.points, report.max_points
        self._students += 1
        self._max_points = max(self._max_points, most)
        self._full_marks += total == most
        if total is None:
            self._not_graded.add(report.student)
        else:
            self._scores[total] += 1
            if most > 0:
                self._shares[min(int(BINS * total / most), BINS - 1)] += 1
        for result in report.items:
            self._items.setdefault(result.item, _ItemTally(result)).add(result, total)
            for mistake in result.mistakes:
                items, students = self._mistakes.setdefault(mistake, ({}, _Named()))
                items[result.item] = None
                students.add(report.student)
        for place in _faults(report):
            self._faults.setdefault(place, _Named()).add(report.student)

    def summary(self) -> Summary:
        """The figures of all that was added."""
        scores = sorted(self._scores.elements())
        return Summary(
            students=self._students,
            graded=len(scores),
            full_marks=self._full_marks,
            not_graded=tuple(self._not_graded.first),
            max_points=self._max_points,
            mean=statistics.fmean(scores) if scores else None,
            median=statistics.median(scores) if scores else None,
            distribution=tuple(Bin(i * 100 / BINS, (i + 1) * 100 / BINS, self._shares[i]) for i in range(BINS)),
            items=tuple(item.summary() for item in self._items.values()),
            mistakes=self._mistake_summaries(),
            faults=self._fault_summaries(),
        )

    def _mistake_summaries(self) -> tuple[MistakeSummary, ...]:
        """One summary per mistake, the most common first."""
        found = [
            MistakeSummary(name, tuple(items), students.count, tuple(students.first))
            for name, (items, students) in self._mistakes.items()
        ]
        return tuple(sorted(found, key=lambda mistake: (-mistake.count, mistake.mistake)))

    def _fault_summaries(self) -> tuple[FaultSummary, ...]:
        """One summary per way and place of breaking: whole submissions first, then the most common."""
        found = [
            FaultSummary(verdict, function, students.count, tuple(students.first))
            for (verdict, function), students in self._faults.items()
        ]
        return tuple(sorted(found, key=lambda fault: (fault.function is not None, -fault.count)))


def summary(reports: Iterable[Report]) -> Summary:
    """The figures of a class, the same for any order of `reports`."""
    tally = Tally()
    for report in sorted(reports, key=lambda report: report.student):
        tally.add(report)
    return tally.summary()


class _Named:
    """How many students there are of a kind, and the first of them by name; one who comes twice in a row is one."""

    def __init__(self) -> None:
        self.count, self.first = 0, list[str]()
        self._last: str | None = None

    def add(self, student: str) -> None:
        if student == self._last:
            return
        self._last = student
        self.count += 1
        if len(self.first) < MOST_NAMED:
            self.first.append(student)


class _ItemTally:
    """One item, and the sums that its mean and its correlation with the rest are made of."""

    def __init__(self, first: ItemResult) -> None:
        self._first = first
        self._verdicts: Counter[Verdict] = Counter()
        self._graded = self._earned = 0
        self._both = self._here = self._rest = self._here2 = self._rest2 = self._product = 0

    def add(self, result: ItemResult, total: float | None) -> None:
        self._verdicts[result.verdict] += 1
        if result.points is None:
            return
        here = round(result.points * MILLION)
        self._graded += 1
        self._earned += here
        if total is None:
            return
        rest = round(total * MILLION) - here
        self._both += 1
        self._here, self._here2 = self._here + here, self._here2 + here * here
        self._rest, self._rest2 = self._rest + rest, self._rest2 + rest * rest
        self._product += here * rest

    def summary(self) -> ItemSummary:
        return ItemSummary(
            item=self._first.item,
            function=self._first.function,
            title=self._first.title,
            max_points=self._first.max_points,
            graded=self._graded,
            passed=self._verdicts["passed"],
            mean=self._earned / (self._graded * MILLION) if self._graded else None,
            discrimination=self._discrimination(),
            verdicts=dict(self._verdicts),
        )

    def _discrimination(self) -> float | None:
        """The item-rest correlation: the item's own points are left out of the total, or it would praise itself."""
        spread_here = self._both * self._here2 - self._here**2
        spread_rest = self._both * self._rest2 - self._rest**2
        if self._both < SMALLEST_CLASS or not spread_here or not spread_rest:
            return None
        together = self._both * self._product - self._here * self._rest
        return together / math.sqrt(spread_here * spread_rest)


def _faults(report: Report) -> list[tuple[Verdict, str | None]]:
    verdicts = {result.verdict for result in report.items}
    if len(verdicts) == 1 and verdicts <= set(_WHOLE):
        return [(report.items[0].verdict, None)]
    return [(result.verdict, result.function) for result in report.items if result.verdict in _FAULTS]
