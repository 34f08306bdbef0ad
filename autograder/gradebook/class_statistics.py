"""Compute the figures of a class from its reports: scores, items, mistakes, answers that agree, faults.

The figures of items are over submissions that ran. One that could not be imported, or holds no line of work, fails
every item alike: a few of them would make every item look as if it told strong students from weak ones.
"""

from __future__ import annotations

import builtins
import math
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from autograder.vocabulary.report import VERDICT_WORDS, ItemResult, Report, Verdict
from autograder.vocabulary.text import number

BINS = 10
MOST_NAMED = 100  # students of one kind; the others stand in the table of students
MOST_SHARED = 20  # answers that several gave, the costliest
MOST_INSTEAD = 4
LEAST_SHARED = 2  # students who give one answer, before it is told
LEAST_AGREEING = 5  # students who give one answer without a name, before the item is suspected
SMALLEST_CLASS = 10  # submissions that ran; a rate or a correlation over fewer says nothing of an item
LEAST_APART = 5  # submissions that did not earn what most earn: a correlation with a handful of them is theirs alone
GOES_TOGETHER = 0.2  # the usual correlation of a class whose items go together; below it, none says anything
SURE = 2.6  # standard deviations: chance takes one sound item in two hundred as far
ONE_SIDED_95 = 1.645  # standard deviations
NOT_IMPORTED, UNTOUCHED = "could not be imported", "without a line of work"
OTHER, UNSEEN = "another wrong answer", "right in all public cases, wrong in a hidden one"

# What a submission does to itself, as against an answer that is wrong; the first group counts as a fault on its own.
FAULTS: tuple[Verdict, ...] = ("raised", "timed_out", "out_of_memory", "crashed")
WHOLE: tuple[Verdict, ...] = (*FAULTS, "missing", "not_run")
REACHED: tuple[Verdict, ...] = (*FAULTS, "passed", "failed")

# A student chooses the names of their own exceptions: all that Python and the given packages do not know are one kind.
KNOWN_ERRORS = {name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)}
KNOWN_ERRORS |= {"EinopsError", "KeyboardInterrupt", "SystemExit"}
RAISED = re.compile(r" raised (\w+)(?=[:.])")
PLACE = re.compile(r"^Line (\d{1,9} of )(?:your (file)|(cell \d{1,9}))", re.MULTILINE)


@dataclass(frozen=True)
class Who:
    """A student, the item of theirs to look at first, and where in what they handed in; "" where that is not known."""

    student: str
    item: str
    place: str = ""


@dataclass(frozen=True)
class ItemSummary:
    """How a class did on one item; `graded` and what follows from it are of submissions that ran.

    share            points over those that ran, of the points to be had, 0 to 1: how easy the item is
    discrimination   the correlation of the item's points with the points on all other items, -1 to 1;
                     None where it has no value, or too few students to mean anything
    plausible        from where to where so many students leave it open, nine times in ten
    verdicts         of all submissions
    instead          what those did who did not pass, and how many, the most common first
    flags            why it is worth another look, a sentence each
    """

    item: str
    function: str
    title: str
    max_points: float
    graded: int
    passed: int
    share: float | None
    discrimination: float | None
    plausible: tuple[float, float] | None
    verdicts: Mapping[Verdict, int]
    instead: tuple[tuple[str, int], ...]
    flags: tuple[str, ...]

    @property
    def pass_rate(self) -> float | None:
        """The share of submissions that passed, of those that ran and were graded, 0 to 1; None where there is none."""
        return self.passed / self.graded if self.graded else None


@dataclass
class Group:
    """Students who did the same: made a known mistake, gave a wrong answer without a name, or broke in one way.

    name       of the mistake, or the exception's type; "" where there is none that is known
    function   "" of a fault where every item broke
    items      on which they did it
    count      how many students; `who` are the first `MOST_NAMED`
    cost       the points that it cost them all; of an answer that several names fit, each has its share
    hint       what a student is told, where that is of this mistake alone
    verdict    of a fault
    """

    name: str = ""
    function: str = ""
    items: list[str] = field(default_factory=list)
    count: int = 0
    who: list[Who] = field(default_factory=list)
    cost: float = 0.0
    hint: str = ""
    verdict: Verdict | None = None
    last: str = ""

    def add(self, who: Who, cost: float = 0.0) -> None:
        """Count in a student on one item; the items of one student come one after another."""
        if who.item not in self.items:
            self.items.append(who.item)
        self.cost += cost
        if who.student != self.last:
            self.count, self.last = self.count + 1, who.student
            if self.count <= MOST_NAMED:
                self.who.append(who)


@dataclass(frozen=True)
class Summary:
    """The figures of a class; mean and median are in points and over submissions that have a score.

    students       all but those who are excused, who count nowhere else
    graded         those that the grader did not fail on
    scored         those that have a score: under a course's rules the final grade, which may be withheld
    not_graded     the first `MOST_NAMED` students of those that the grader failed on
    above          those whose score is above the maximum, by extra credit
    distribution   how many scores lie in each tenth of the points to be had; more than all count to the last
    ran            submissions that ran at all: the figures of items are theirs; `apart` counts the others by kind
    shared         wrong answers without a name that several gave, the costliest first
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
    distribution: tuple[int, ...]
    ran: int
    apart: Mapping[str, int]
    items: tuple[ItemSummary, ...]
    mistakes: tuple[Group, ...]
    shared: tuple[Group, ...]
    faults: tuple[Group, ...]


class Tally:
    """Collects the figures of a class whose reports pass one at a time; it keeps no report."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._students = self._excused = self._ran = 0
        self._max_points = 0.0
        self._scores: list[tuple[float, float]] = []  # each with what it is out of
        self._not_graded: list[str] = []
        self._apart: Counter[str] = Counter()
        self._items: dict[str, ItemResult] = {}  # the first of each says what it is
        self._verdicts: dict[str, Counter[Verdict]] = {}
        # Of submissions that ran, by item: points, those on all other items or None where they have no sum, and what
        # was done instead, "" where it passed.
        self._outcomes: dict[str, list[tuple[float, float | None, str]]] = {}
        self._mistakes: dict[str, Group] = {}
        self._answers: dict[tuple[str, str], Group] = {}  # by item and fingerprint
        self._faults: dict[tuple[Verdict, str, str], Group] = {}

    def add(self, report: Report, answers: Mapping[str, str] = MappingProxyType({})) -> None:
        """Count a report in; reports come in the order of their students, who are named in that order.

        answers   item → fingerprint of an answer that no known mistake gives
        """
        if "" in report.excused:
            self._excused += 1
            return
        self._students += 1
        self._max_points = max(self._max_points, report.max_points)
        if report.points is not None:
            self._scores.append((report.points, report.max_points))
        has_run = ran(report)
        self._ran += has_run
        if report.earned is None:
            self._not_graded.append(report.student)
        elif not has_run:
            self._apart[NOT_IMPORTED if report.cause else UNTOUCHED] += 1
        for result in report.items:  # in the order of the report, whatever somebody is excused from
            self._items.setdefault(result.item, result)
        counted = [item for item in report.items if item.item not in report.excused]
        points = [item.points for item in counted if item.points is not None]
        total = math.fsum(points) if len(points) == len(report.items) else None
        for result in counted:
            self._verdicts.setdefault(result.item, Counter())[result.verdict] += 1
            lost = 0.0 if result.points is None else result.max_points - result.points
            if result.points is not None and has_run:
                rest = None if total is None else round(total - result.points, 6)
                self._outcomes.setdefault(result.item, []).append((result.points, rest, _instead(result)))
            for name in result.mistakes:
                group = self._mistakes.setdefault(name, Group(name, result.function))
                group.add(Who(report.student, result.item), lost / len(result.mistakes))
                if len(result.mistakes) == 1:
                    group.hint = group.hint or result.hint
            answer = answers.get(result.item)
            if answer and result.verdict == "failed" and not result.mistakes:
                group = self._answers.setdefault((result.item, answer), Group(function=result.function))
                group.add(Who(report.student, result.item), lost)
        self._add_faults(report)

    def _add_faults(self, report: Report) -> None:
        """Count how a submission broke, and where: as a whole, or function by function."""
        verdicts = {result.verdict for result in report.items}
        if len(verdicts) == 1 and verdicts <= set(WHOLE):
            broken = [(report.items[0], report.cause or report.items[0].message, "")]
        else:
            broken = [(item, item.message, item.function) for item in report.items if item.verdict in FAULTS]
        for item, message, function in broken:
            error = match[1] if (match := RAISED.search(message)) and match[1] in KNOWN_ERRORS else ""
            place = PLACE.search(message)  # as staff read it: `line 12 of the file`
            where = f"line {place[1]}{'the file' if place[2] else place[3]}" if place else ""
            key = (item.verdict, error, function)
            group = self._faults.setdefault(key, Group(error, function, verdict=item.verdict))
            group.add(Who(report.student, item.item, where))

    def summary(self) -> Summary:
        """Compute the figures of all that was added."""
        scores = [score for score, _ in self._scores]
        shares = Counter(min(int(BINS * score / most), BINS - 1) for score, most in self._scores if most > 0)
        pairs = {
            item: [(points, rest) for points, rest, _ in self._outcomes.get(item, ()) if rest is not None]
            for item in self._items
        }
        correlations = {item: _discrimination(of_item) for item, of_item in pairs.items()}
        usual = statistics.median([value for value in correlations.values() if value is not None] or [0.0])
        return Summary(
            students=self._students,
            excused=self._excused,
            graded=self._students - len(self._not_graded),
            scored=len(scores),
            full_marks=sum(score >= most for score, most in self._scores),
            above=sum(score > most for score, most in self._scores),
            not_graded=tuple(self._not_graded[:MOST_NAMED]),
            max_points=self._max_points,
            mean=statistics.fmean(scores) if scores else None,
            median=statistics.median(scores) if scores else None,
            distribution=tuple(shares[place] for place in range(BINS)),
            ran=self._ran,
            apart={kind: self._apart[kind] for kind in (NOT_IMPORTED, UNTOUCHED) if self._apart[kind]},
            items=tuple(self._of_item(name, pairs[name], correlations[name], usual) for name in self._items),
            mistakes=tuple(sorted(self._mistakes.values(), key=lambda mistake: (-mistake.count, mistake.name))),
            shared=self._shared_answers(),
            faults=tuple(sorted(self._faults.values(), key=lambda fault: (bool(fault.function), -fault.count))),
        )

    def _of_item(
        self, name: str, pairs: Sequence[tuple[float, float]], correlation: float | None, usual: float
    ) -> ItemSummary:
        """Sum up an item: its points, with those on all other items, and their correlation.

        usual   the median of all items' correlations
        """
        first, outcomes = self._items[name], self._outcomes.get(name, [])
        graded, instead = len(outcomes), Counter(what for _, _, what in outcomes if what)
        passed = graded - instead.total()
        flags = []
        tried = graded - instead[VERDICT_WORDS["missing"]]
        if tried >= SMALLEST_CLASS and not passed:
            flags.append(f"Nobody passed it, of {tried:,} who tried. One who passes would settle it.")
        if correlation is not None:
            most_often = Counter(points for points, _ in pairs).most_common(1)[0][1]
            greatest = _plausible(correlation, len(pairs), SURE)[1]
            is_unrelated = usual >= GOES_TOGETHER and greatest < usual / 2
            if len(pairs) - most_often >= LEAST_APART and (greatest < 0 or is_unrelated):
                does = "worse on this one" if greatest < 0 else "no better on this one, though the others go together"
                here = [points for points, _ in sorted(pairs, key=lambda pair: pair[1])]
                half = len(here) // 2
                weaker, stronger = (number(statistics.fmean(part)) for part in (here[:half], here[-half:]))
                flags.append(
                    f"Who does well on the other items does {does}. The stronger half by the other items has "
                    f"{stronger} points here on average, the weaker half {weaker}. "
                    "It is flagged until the stronger half does better."
                )
        agreeing = max((group.count for key, group in self._answers.items() if key[0] == name), default=0)
        if agreeing >= LEAST_AGREEING and 2 * agreeing > graded - passed:
            of = f"{agreeing:,} of the {graded - passed:,} who failed gave the same answer, which has no name"
            flags.append(f"{of}: does the text ask for it? A name in the catalogue would settle it.")
        most = first.max_points * graded
        return ItemSummary(
            item=name,
            function=first.function,
            title=first.title,
            max_points=first.max_points,
            graded=graded,
            passed=passed,
            share=math.fsum(points for points, _, _ in outcomes) / most if most else None,
            discrimination=correlation,
            plausible=None if correlation is None else _plausible(correlation, len(pairs), ONE_SIDED_95),
            verdicts=dict(self._verdicts.get(name, {})),
            instead=tuple(sorted(instead.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_INSTEAD]),
            flags=tuple(flags),
        )

    def _shared_answers(self) -> tuple[Group, ...]:
        """Gather answers of several students, the costliest first; where the same students agree, it is one."""
        shared: dict[tuple[object, ...], Group] = {}
        for answer in self._answers.values():
            if answer.count >= LEAST_SHARED:
                key = answer.function, answer.count, *(who.student for who in answer.who)
                known = shared.get(key)
                items, cost = (known.items, known.cost) if known else ([], 0.0)
                shared[key] = replace(known or answer, items=[*items, *answer.items], cost=cost + answer.cost)
        return tuple(sorted(shared.values(), key=lambda answer: (-answer.cost, -answer.count))[:MOST_SHARED])


def summary(reports: Iterable[Report]) -> Summary:
    """Compute the figures of a class, the same for any order of `reports`."""
    tally = Tally()
    for report in sorted(reports, key=lambda report: report.student):
        tally.add(report)
    return tally.summary()


def ran(report: Report) -> bool:
    """Tell whether anything of a submission was reached: it could be imported, and is not as it was handed out."""
    return any(item.verdict in REACHED and not item.is_unreached for item in report.items)


def stands_out(report: Report, most: int | None = None) -> str:
    """Say what matters of a submission in a few words; "" where every item passed.

    most   so many names and verdicts are told, and how many more there are; all of them without it
    """
    failed = [item for item in report.items if item.verdict != "passed"]
    if not failed:
        return ""
    if report.cause:
        first_line = report.cause.split("\n")[0]
        _, phrase, reason = first_line.partition(f" {NOT_IMPORTED}")  # which is the same for everybody
        return f"not imported: {reason.removeprefix('. Importing it raised').lstrip(': ')}" if phrase else first_line
    first_lines = {item.message.split("\n")[0] for item in failed}
    if len(failed) == len(report.items) and len(first_lines) == 1:
        return first_lines.pop()
    verdicts = [VERDICT_WORDS[item.verdict] for item in failed if item.verdict != "failed"]
    words = list(dict.fromkeys([*verdicts, *(slug for item in failed for slug in item.mistakes)]))
    more = f" and {len(words) - most} more" if most is not None and len(words) > most else ""
    return ", ".join(words[:most]) + more or f"{len(failed)} item{'s' * (len(failed) != 1)} failed"


def _discrimination(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Compute the item-rest correlation: an item's own points are left out of the total, or it would praise itself."""
    here, rest = zip(*pairs, strict=True) if pairs else ((), ())
    if len(here) < SMALLEST_CLASS or len({*here}) == 1 or len({*rest}) == 1:
        return None
    return statistics.correlation(here, rest)


def _plausible(correlation: float, count: int, deviations: float) -> tuple[float, float]:
    """Compute Fisher's interval: atanh of a correlation is about normal, with the deviation 1 / sqrt(n - 3)."""
    middle, reach = math.atanh(max(-0.999999, min(0.999999, correlation))), deviations / math.sqrt(count - 3)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def _instead(result: ItemResult) -> str:
    """Say what somebody did who did not pass; "" where they passed."""
    if result.verdict == "passed":
        return ""
    if result.mistakes:
        return " or ".join(result.mistakes)
    if result.verdict != "failed":
        return VERDICT_WORDS[result.verdict]
    return UNSEEN if result.fails_unseen else OTHER
