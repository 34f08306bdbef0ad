"""Compute the figures of a class from its reports: scores, items, mistakes, answers that agree, faults.

The figures of items are over submissions that ran. One that could not be imported, or holds no line of work, fails
every item alike: a few of them would make every item look as if it told strong students from weak ones.
"""

from __future__ import annotations

import builtins
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from autograder.gradebook.final_grades import Final
from autograder.vocabulary.report import NOT_REACHED, VERDICT_WORDS, ItemResult, Report, Verdict
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

FaultKind = tuple[Verdict, str, str | None]  # verdict, type of the exception, function: None where every item broke


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
class Who:
    """A student, the item of theirs to look at first, and where in what they handed in; "" where that is not known."""

    student: str
    item: str
    place: str = ""


@dataclass(frozen=True)
class Flag:
    """Why an item is worth another look, in a sentence."""

    kind: Literal["nobody", "reversed", "unrelated", "agreement"]
    sentence: str


@dataclass(frozen=True)
class ItemSummary:
    """How a class did on one item; `graded` and what follows from it are of submissions that ran.

    mean             points over all that were graded, those that did not run among them
    share            points over those that ran, of the points to be had, 0 to 1: how easy the item is
    discrimination   the correlation of the item's points with the points on all other items, -1 to 1;
                     None where it has no value, or too few students to mean anything
    plausible        from where to where so many students leave it open, nine times in ten
    verdicts         of all submissions
    instead          what those did who did not pass, and how many, the most common first
    """

    item: str
    function: str
    title: str
    max_points: float
    graded: int
    passed: int
    mean: float | None
    share: float | None
    discrimination: float | None
    plausible: tuple[float, float] | None
    verdicts: Mapping[Verdict, int]
    instead: tuple[tuple[str, int], ...]
    flags: tuple[Flag, ...]

    @property
    def pass_rate(self) -> float | None:
        """The share of submissions that passed, of those that ran and were graded, 0 to 1; None where there is none."""
        return self.passed / self.graded if self.graded else None


@dataclass(frozen=True)
class MistakeSummary:
    """One known mistake, the items it appeared on, how many students made it, and the first `MOST_NAMED`.

    cost   the points that it cost them all; of an answer that several names fit, each has its share
    hint   what a student is told, where that is of this mistake alone
    """

    mistake: str
    function: str
    items: tuple[str, ...]
    count: int
    who: tuple[Who, ...]
    cost: float
    hint: str

    @property
    def students(self) -> tuple[str, ...]:
        """The first who made it."""
        return tuple(who.student for who in self.who)


@dataclass(frozen=True)
class SharedAnswer:
    """A wrong answer without a name that several students gave: the same values in the same cases of these items."""

    answer: str
    function: str
    items: tuple[str, ...]
    count: int
    who: tuple[Who, ...]
    cost: float


@dataclass(frozen=True)
class FaultSummary:
    """Submissions that broke in one way at one place; `function` is None where every item did.

    error   the exception's type; "" where there was none, or it is no usual one
    """

    verdict: Verdict
    error: str
    function: str | None
    count: int
    who: tuple[Who, ...]


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


@dataclass
class _Group:
    """Students who did the same, the items on which they did it, and what it cost them all."""

    function: str = ""
    hint: str = ""
    cost: float = 0.0
    items: dict[str, None] = field(default_factory=dict)
    who: list[Who] = field(default_factory=list)

    def add(self, who: Who, cost: float = 0.0) -> None:
        self.items[who.item] = None
        self.cost += cost
        if not self.who or self.who[-1].student != who.student:
            self.who.append(who)


class _Outcome(NamedTuple):
    """A graded item of a submission that ran; `rest` are the points on all other items, None where they have no sum."""

    points: float
    rest: float | None
    instead: str


@dataclass
class _Item:
    """What is kept of one item: its first result says what it is."""

    first: ItemResult
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    points: list[float] = field(default_factory=list)
    outcomes: list[_Outcome] = field(default_factory=list)

    @property
    def pairs(self) -> list[tuple[float, float]]:
        """Points here and on all other items."""
        return [(outcome.points, outcome.rest) for outcome in self.outcomes if outcome.rest is not None]


class Tally:
    """Collects the figures of a class whose reports pass one at a time; it keeps no report."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._students = self._excused = self._ran = 0
        self._max_points = 0.0
        self._scores: list[tuple[float, float]] = []  # each with what it is out of
        self._not_graded: list[str] = []
        self._apart: dict[str, list[str]] = {NOT_IMPORTED: [], UNTOUCHED: []}
        self._items: dict[str, _Item] = {}
        self._mistakes: defaultdict[str, _Group] = defaultdict(_Group)
        self._answers: defaultdict[tuple[str, str], _Group] = defaultdict(_Group)  # by item and fingerprint
        self._faults: defaultdict[FaultKind, _Group] = defaultdict(_Group)

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
        if score is not None:
            self._scores.append((score, most))
        if report.points is None:
            self._not_graded.append(report.student)
        has_run = ran(report)
        self._ran += has_run
        if not has_run and report.points is not None:
            self._apart[NOT_IMPORTED if report.cause else UNTOUCHED].append(report.student)
        for result in report.items:  # in the order of the report, whatever somebody is excused from
            self._items.setdefault(result.item, _Item(result))
        counted = [item for item in report.items if final is None or item.item not in final.excused_items]
        points = [item.points for item in counted if item.points is not None]
        total = math.fsum(points) if len(points) == len(report.items) else None
        for result in counted:
            self._add_item(result, total, has_run=has_run)
            self._add_mistakes(report.student, result, (answers or {}).get(result.item, ""))
        for kind, who in _faults(report):
            self._faults[kind].add(who)

    def _add_item(self, result: ItemResult, total: float | None, *, has_run: bool) -> None:
        """Count an item in; `total` is None where some items have no points, so that there is no rest to compare."""
        item = self._items[result.item]
        item.verdicts[result.verdict] += 1
        if result.points is not None:
            item.points.append(result.points)
            if has_run:
                rest = None if total is None else round(total - result.points, 6)
                item.outcomes.append(_Outcome(result.points, rest, _instead(result)))

    def _add_mistakes(self, student: str, result: ItemResult, answer: str) -> None:
        lost = 0.0 if result.points is None else result.max_points - result.points
        for name in result.mistakes:
            group = self._mistakes[name]
            group.function = group.function or result.function
            group.add(Who(student, result.item), lost / len(result.mistakes))
            if len(result.mistakes) == 1:
                group.hint = group.hint or result.hint
        if answer and result.verdict == "failed" and not result.mistakes:
            group = self._answers[result.item, answer]
            group.function = result.function
            group.add(Who(student, result.item), lost)

    def summary(self) -> Summary:
        """The figures of all that was added."""
        scores = [score for score, _ in self._scores]
        shares = Counter(min(int(BINS * score / most), BINS - 1) for score, most in self._scores if most > 0)
        apart = [Apart(kind, len(names), tuple(names[:MOST_NAMED])) for kind, names in self._apart.items() if names]
        mistakes = [
            MistakeSummary(name, group.function, tuple(group.items), *_counted(group), round(group.cost, 2), group.hint)
            for name, group in self._mistakes.items()
        ]
        faults = [FaultSummary(*kind, *_counted(group)) for kind, group in self._faults.items()]
        correlations = [_discrimination(item.pairs) for item in self._items.values()]
        usual = statistics.median([value for value in correlations if value is not None] or [0.0])
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
            distribution=tuple(Bin(i * 100 / BINS, (i + 1) * 100 / BINS, shares[i]) for i in range(BINS)),
            ran=self._ran,
            apart=tuple(apart),
            items=tuple(self._item_summary(name, item, usual) for name, item in self._items.items()),
            mistakes=tuple(sorted(mistakes, key=lambda mistake: (-mistake.count, mistake.mistake))),
            shared=self._shared_answers(),
            faults=tuple(sorted(faults, key=lambda fault: (fault.function is not None, -fault.count))),
        )

    def _item_summary(self, name: str, item: _Item, usual: float) -> ItemSummary:
        first, graded = item.first, len(item.outcomes)
        passed = sum(not outcome.instead for outcome in item.outcomes)
        instead = Counter(outcome.instead for outcome in item.outcomes if outcome.instead)
        correlation = _discrimination(item.pairs)
        plausible = None if correlation is None else _plausible(correlation, len(item.pairs), ONE_SIDED_95)
        flags = []
        tried = graded - instead[VERDICT_WORDS["missing"]]
        if tried >= SMALLEST_CLASS and not passed:
            flags.append(Flag("nobody", f"Nobody passed it, of {tried:,} who tried. One who passes would settle it."))
        if correlation is not None:
            most_often = Counter(points for points, _ in item.pairs).most_common(1)[0][1]
            greatest = _plausible(correlation, len(item.pairs), SURE)[1]
            if len(item.pairs) - most_often >= LEAST_APART and greatest < 0:
                said = "Who does well on the other items does worse on this one."
                flags.append(Flag("reversed", f"{said} {_halves(item.pairs)}"))
            elif len(item.pairs) - most_often >= LEAST_APART and usual >= GOES_TOGETHER and greatest < usual / 2:
                said = "Who does well on the other items does no better on this one, though the others go together."
                flags.append(Flag("unrelated", f"{said} {_halves(item.pairs)}"))
        agreeing = max((len(group.who) for key, group in self._answers.items() if key[0] == name), default=0)
        if agreeing >= LEAST_AGREEING and 2 * agreeing > graded - passed:
            of = f"{agreeing:,} of the {graded - passed:,} who failed gave the same answer, which has no name"
            flags.append(Flag("agreement", f"{of}: does the text ask for it? A name in the catalogue would settle it."))
        most = first.max_points * graded
        return ItemSummary(
            item=name,
            function=first.function,
            title=first.title,
            max_points=first.max_points,
            graded=graded,
            passed=passed,
            mean=statistics.fmean(item.points) if item.points else None,
            share=math.fsum(outcome.points for outcome in item.outcomes) / most if most else None,
            discrimination=correlation,
            plausible=plausible,
            verdicts=dict(item.verdicts),
            instead=tuple(sorted(instead.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_INSTEAD]),
            flags=tuple(flags),
        )

    def _shared_answers(self) -> tuple[SharedAnswer, ...]:
        """Answers of several students, the costliest first; items on which the same students agree are one answer."""
        alike: defaultdict[tuple[str, ...], list[tuple[str, str, _Group]]] = defaultdict(list)
        for (item, answer), group in self._answers.items():
            if len(group.who) >= LEAST_SHARED:
                alike[group.function, *(who.student for who in group.who)].append((item, answer, group))
        shared = []
        for parts in alike.values():
            _, answer, first = parts[0]
            cost = round(sum(group.cost for _, _, group in parts), 2)
            items = tuple(item for item, _, _ in parts)
            shared.append(SharedAnswer(answer, first.function, items, *_counted(first), cost))
        return tuple(sorted(shared, key=lambda one: (-one.cost, -one.count, one.answer))[:MOST_SHARED])


def summary(reports: Iterable[Report]) -> Summary:
    """The figures of a class, the same for any order of `reports`."""
    tally = Tally()
    for report in sorted(reports, key=lambda report: report.student):
        tally.add(report)
    return tally.summary()


def ran(report: Report) -> bool:
    """Whether anything of a submission was reached: it could be imported, and is not as it was handed out."""
    return any(item.verdict in REACHED and not item.message.startswith(NOT_REACHED) for item in report.items)


def stands_out(report: Report, most: int | None = None) -> str:
    """What is to be said of a submission in a few words; "" where every item passed.

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


def _counted(group: _Group) -> tuple[int, tuple[Who, ...]]:
    """How many students there are, and the first of them."""
    return len(group.who), tuple(group.who[:MOST_NAMED])


def _discrimination(pairs: Sequence[tuple[float, float]]) -> float | None:
    """The item-rest correlation: the item's own points are left out of the total, or it would praise itself."""
    here, rest = zip(*pairs, strict=True) if pairs else ((), ())
    if len(pairs) < SMALLEST_CLASS or len({*here}) == 1 or len({*rest}) == 1:
        return None
    return statistics.correlation(here, rest)


def _plausible(correlation: float, count: int, deviations: float) -> tuple[float, float]:
    """Fisher's interval: atanh of a correlation is about normal, with the deviation 1 / sqrt(n - 3)."""
    middle, reach = math.atanh(max(-0.999999, min(0.999999, correlation))), deviations / math.sqrt(count - 3)
    return math.tanh(middle - reach), math.tanh(middle + reach)


def _halves(pairs: Sequence[tuple[float, float]]) -> str:
    """Show the evidence of a correlation, and what would change it."""
    ordered = [here for here, _ in sorted(pairs, key=lambda pair: pair[1])]
    half = len(ordered) // 2
    weaker, stronger = (number(round(statistics.fmean(part), 2)) for part in (ordered[:half], ordered[-half:]))
    evidence = f"The stronger half by the other items has {stronger} points here on average, the weaker half {weaker}."
    return f"{evidence} It is flagged until the stronger half does better."


def _instead(result: ItemResult) -> str:
    """What somebody did who did not pass; "" where they passed."""
    if result.verdict == "passed":
        return ""
    if result.mistakes:
        return " or ".join(result.mistakes)
    if result.verdict != "failed":
        return VERDICT_WORDS[result.verdict]
    return UNSEEN if result.fails_unseen else OTHER


def _faults(report: Report) -> list[tuple[FaultKind, Who]]:
    """How a submission broke, and where: as a whole, or function by function."""
    verdicts = {result.verdict for result in report.items}
    if len(verdicts) == 1 and verdicts <= set(WHOLE):
        first, message = report.items[0], report.cause or report.items[0].message
        return [((first.verdict, _error(message), None), Who(report.student, first.item, _place(message)))]
    return [
        ((item.verdict, _error(item.message), item.function), Who(report.student, item.item, _place(item.message)))
        for item in report.items
        if item.verdict in FAULTS
    ]


def _error(message: str) -> str:
    """The type of the exception that a message tells of."""
    match = RAISED.search(message)
    return match[1] if match and match[1] in KNOWN_ERRORS else ""


def _place(message: str) -> str:
    """The line of what was handed in that a message tells of, as staff read it: `line 12 of the file`."""
    match = PLACE.search(message)
    return f"line {match[1]}{'the file' if match[2] else match[3]}" if match else ""
