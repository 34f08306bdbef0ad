"""Reports → the figures of a whole class: means, distribution, items, mistakes, faults."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.gradebook.final_grades import Final
from autograder.gradebook.item_statistics import ItemSummary, ItemTally, ran
from autograder.gradebook.mistake_statistics import (
    MILLION,
    AnswerTally,
    FaultSummary,
    FaultTally,
    MistakeSummary,
    MistakeTally,
    Named,
    SharedAnswer,
    Who,
)
from autograder.vocabulary.report import VERDICT_WORDS, ItemResult, Report

BINS = 10
NOT_IMPORTED, UNTOUCHED = "could not be imported", "without a line of work"


@dataclass(frozen=True)
class Apart:
    """Submissions that did not run, of one kind: they count in no figure of an item."""

    kind: str
    count: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class Bin:
    """How many scores lie in [low, high), in per cent of the points to be had; the last includes 100 and more."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Summary:
    """The figures of a class; mean and median are in points and over submissions that have a score.

    students     all but those who are excused, who count nowhere else
    graded       those that the grader did not fail on
    scored       those that have a score: under a course's rules the final grade, which may be withheld
    not_graded   the first `MOST_NAMED` students of those that the grader failed on
    above        those whose score is above the maximum, by extra credit
    ran          submissions that ran at all: the figures of items are theirs; `apart` are the others
    """

    students: int
    excused: int
    graded: int
    scored: int
    full_marks: int
    above: int
    not_graded: tuple[str, ...]
    max_points: float
    mean: float | None
    median: float | None
    distribution: tuple[Bin, ...]
    ran: int
    apart: tuple[Apart, ...]
    items: tuple[ItemSummary, ...]
    mistakes: tuple[MistakeSummary, ...]
    shared: tuple[SharedAnswer, ...]
    faults: tuple[FaultSummary, ...]


class Tally:
    """The figures of a class whose reports pass one at a time: what it keeps does not grow with the class."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._students = self._excused = self._graded = self._full_marks = self._above = self._ran = 0
        self._max_points = 0.0
        self._not_graded = Named()
        self._apart: dict[str, Named] = {NOT_IMPORTED: Named(), UNTOUCHED: Named()}
        self._scores: Counter[float] = Counter()
        self._shares: Counter[int] = Counter()
        self._items: dict[str, ItemTally] = {}
        self._mistakes, self._answers, self._faults = MistakeTally(), AnswerTally(), FaultTally()

    def add(self, report: Report, final: Final | None = None, answers: Mapping[str, str] | None = None) -> None:
        """Count a report in; reports come in the order of their students, who are named in that order.

        final     what a course's rules make of it: its points are the score, and what it excuses counts nowhere
        answers   item → fingerprint of an answer that no known mistake gives
        """
        if final is not None and final.is_excused:
            self._excused += 1
            return
        self._students += 1
        score, most = (report.points, report.max_points) if final is None else (final.points, final.most)
        self._max_points = max(self._max_points, most)
        self._count_score(report, score, most)
        for result in report.items:  # in the order of the report, whatever somebody is excused from
            self._items.setdefault(result.item, ItemTally(result))
        counted = [item for item in report.items if final is None or item.item not in final.excused_items]
        self._count_items(counted, has_run=self._count_whole(report), of=len(report.items))
        for result in counted:
            self._mistakes.add(report.student, result)
            self._answers.add(report.student, result, (answers or {}).get(result.item, ""))
        self._faults.add(report)

    def summary(self) -> Summary:
        """The figures of all that was added."""
        scores = sorted(self._scores.elements())
        return Summary(
            students=self._students,
            excused=self._excused,
            graded=self._graded,
            scored=len(scores),
            full_marks=self._full_marks,
            above=self._above,
            not_graded=tuple(who.student for who in self._not_graded.first),
            max_points=self._max_points,
            mean=statistics.fmean(scores) if scores else None,
            median=statistics.median(scores) if scores else None,
            distribution=tuple(Bin(i * 100 / BINS, (i + 1) * 100 / BINS, self._shares[i]) for i in range(BINS)),
            ran=self._ran,
            apart=tuple(
                Apart(kind, named.count, tuple(who.student for who in named.first))
                for kind, named in self._apart.items()
                if named.count
            ),
            items=tuple(tally.summary(self._answers.most_common(item)) for item, tally in self._items.items()),
            mistakes=self._mistakes.summaries(),
            shared=self._answers.shared(),
            faults=self._faults.summaries(),
        )

    def _count_score(self, report: Report, score: float | None, most: float) -> None:
        self._graded += report.points is not None
        if report.points is None:
            self._not_graded.add(Who(report.student, ""))
        if score is None:
            return
        self._full_marks += score >= most
        self._above += score > most
        self._scores[score] += 1
        if most > 0:
            self._shares[min(int(BINS * score / most), BINS - 1)] += 1

    def _count_whole(self, report: Report) -> bool:
        """Whether it ran; where it did not, it is counted as what it is."""
        has_run = ran(report)
        self._ran += has_run
        if not has_run and report.points is not None:
            self._apart[NOT_IMPORTED if report.cause else UNTOUCHED].add(Who(report.student, ""))
        return has_run

    def _count_items(self, results: list[ItemResult], *, has_run: bool, of: int) -> None:
        """Count the items in; a rest of fewer than all `of` them is no measure of what a student can do."""
        earned = [round(result.points * MILLION) for result in results if result.points is not None]
        total = sum(earned) if len(earned) == of else None
        for result in results:
            rest = None if total is None or result.points is None else total - round(result.points * MILLION)
            self._items[result.item].add(result, rest, has_run=has_run)


def summary(reports: Iterable[Report]) -> Summary:
    """The figures of a class, the same for any order of `reports`."""
    tally = Tally()
    for report in sorted(reports, key=lambda report: report.student):
        tally.add(report)
    return tally.summary()


def stands_out(report: Report, most: int | None = None) -> str:
    """What is to be said of a submission in a few words; "" where every item passed.

    most   so many names and verdicts are told, and how many more there are; all of them without it
    """
    failed = [item for item in report.items if item.verdict != "passed"]
    if not failed:
        return ""
    if report.cause:
        return _in_few_words(report.cause.split("\n")[0])
    first_lines = {item.message.split("\n")[0] for item in failed}
    if len(failed) == len(report.items) and len(first_lines) == 1:
        return first_lines.pop()
    named = list(dict.fromkeys(slug for item in failed for slug in item.mistakes))
    verdicts = list(dict.fromkeys(VERDICT_WORDS[item.verdict] for item in failed if item.verdict != "failed"))
    told = [*verdicts, *named]
    more = f" and {len(told) - most} more" if most is not None and len(told) > most else ""
    return ", ".join(told[:most]) + more or f"{len(failed)} item{'s' * (len(failed) != 1)} failed"


def _in_few_words(cause: str) -> str:
    """What kept a module from being imported, without the words that everybody's sentence has."""
    _, found, reason = cause.partition(f" {NOT_IMPORTED}")
    return f"not imported: {reason.removeprefix('. Importing it raised').lstrip(': ')}" if found else cause
