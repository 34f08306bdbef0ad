"""What a class got wrong, counted report by report: known mistakes, answers that agree, how submissions broke."""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass

from autograder.vocabulary.report import ItemResult, Report, Verdict

MOST_NAMED = 100  # students of one kind; the others stand in the table of students
MOST_ANSWERS = 5_000  # wrong answers without a name that are remembered at a time
LEAST_SHARED = 2  # students who give one answer, before it is told
MOST_SHARED = 20  # such answers, the costliest
MILLION = 10**6  # points are added up as whole millionths, so that no order of addition changes a figure

# What a submission does to itself, as against an answer that is wrong; the first group counts as a fault on its own.
FAULTS: tuple[Verdict, ...] = ("raised", "timed_out", "out_of_memory", "crashed")
WHOLE: tuple[Verdict, ...] = (*FAULTS, "missing", "not_run")

# Names of exceptions are a student's text: those that Python and the given packages do not know are all one kind.
_ERRORS = frozenset(
    name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, Exception)
)
_KNOWN_ERRORS = _ERRORS | {"EinopsError", "KeyboardInterrupt", "SystemExit"}
_RAISED = re.compile(r" raised (\w+)(?=[:.])")
_PLACE = re.compile(r"^Line \d{1,9} of (?:your file|cell \d{1,9})", re.MULTILINE)


@dataclass(frozen=True)
class Who:
    """A student, the item of theirs to look at first, and where in what they handed in; "" where that is not known."""

    student: str
    item: str
    place: str = ""


@dataclass(frozen=True)
class MistakeSummary:
    """One recognised mistake, the items it appeared on, how many students made it, and the first `MOST_NAMED`.

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
        return tuple(one.student for one in self.who)


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

    @property
    def students(self) -> tuple[str, ...]:
        """The first of them."""
        return tuple(one.student for one in self.who)


class Named:
    """How many students there are of a kind, and the first of them by name; one who comes twice in a row is one."""

    def __init__(self) -> None:
        """Nobody yet."""
        self.count, self.first = 0, list[Who]()
        self._last: str | None = None

    def add(self, who: Who) -> None:
        """Count a student in."""
        if who.student == self._last:
            return
        self._last = who.student
        self.count += 1
        if len(self.first) < MOST_NAMED:
            self.first.append(who)


class MistakeTally:
    """The known mistakes of a class, and what they cost."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._found: dict[str, _Mistake] = {}

    def add(self, student: str, result: ItemResult) -> None:
        """Count an item in."""
        for name in result.mistakes:
            found = self._found.setdefault(name, _Mistake(result.function))
            found.items[result.item] = None
            found.named.add(Who(student, result.item))
            found.cost += lost(result) // len(result.mistakes)
            if len(result.mistakes) == 1:
                found.hint = found.hint or result.hint

    def summaries(self) -> tuple[MistakeSummary, ...]:
        """One summary per mistake, the most common first."""
        found = [
            MistakeSummary(
                name,
                one.function,
                tuple(one.items),
                one.named.count,
                tuple(one.named.first),
                points(one.cost),
                one.hint,
            )
            for name, one in self._found.items()
        ]
        return tuple(sorted(found, key=lambda mistake: (-mistake.count, mistake.mistake)))


class _Mistake:
    def __init__(self, function: str) -> None:
        self.function, self.items, self.named = function, dict[str, None](), Named()
        self.cost, self.hint = 0, ""


class AnswerTally:
    """The wrong answers without a name, by what they return.

    Of more than `MOST_ANSWERS`, those that fewest students gave are forgotten: it never grows with the class.
    """

    def __init__(self) -> None:
        """Begin with nobody."""
        self._found: dict[tuple[str, str, str], _Answer] = {}

    def add(self, student: str, result: ItemResult, answer: str) -> None:
        """Count an item in whose values have that fingerprint."""
        if result.mistakes or result.verdict != "failed" or not answer:
            return
        key = (result.function, result.item, answer)
        if key not in self._found and len(self._found) >= MOST_ANSWERS:
            kept = sorted(self._found.items(), key=lambda one: -one[1].named.count)[: MOST_ANSWERS // 2]
            self._found = dict(kept)
        found = self._found.setdefault(key, _Answer())
        found.named.add(Who(student, result.item))
        found.cost += lost(result)

    def most_common(self, item: str) -> int:
        """How many students gave the most common of an item's answers; 0 where none is known."""
        return max((one.named.count for key, one in self._found.items() if key[1] == item), default=0)

    def shared(self) -> tuple[SharedAnswer, ...]:
        """Answers of several students, the costliest first; items on which the same students agree are one answer."""
        groups: dict[tuple[str, int, tuple[str, ...]], list[tuple[str, str, _Answer]]] = {}
        for (function, item, answer), one in self._found.items():
            if one.named.count >= LEAST_SHARED:
                students = tuple(who.student for who in one.named.first)
                groups.setdefault((function, one.named.count, students), []).append((item, answer, one))
        made = [
            SharedAnswer(
                parts[0][1],
                function,
                tuple(item for item, _, _ in parts),
                count,
                tuple(parts[0][2].named.first),
                points(sum(part.cost for _, _, part in parts)),
            )
            for (function, count, _), parts in groups.items()
        ]
        return tuple(sorted(made, key=lambda one: (-one.cost, -one.count, one.answer))[:MOST_SHARED])


class _Answer:
    def __init__(self) -> None:
        self.named, self.cost = Named(), 0


class FaultTally:
    """How submissions broke, and where."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._found: dict[tuple[Verdict, str, str | None], Named] = {}

    def add(self, report: Report) -> None:
        """Count a report in."""
        for kind, who in _faults(report):
            self._found.setdefault(kind, Named()).add(who)

    def summaries(self) -> tuple[FaultSummary, ...]:
        """One summary per way and place of breaking: whole submissions first, then the most common."""
        found = [FaultSummary(*kind, named.count, tuple(named.first)) for kind, named in self._found.items()]
        return tuple(sorted(found, key=lambda fault: (fault.function is not None, -fault.count)))


def lost(result: ItemResult) -> int:
    """The points that an item lost, in millionths."""
    return 0 if result.points is None else round((result.max_points - result.points) * MILLION)


def points(millionths: int) -> float:
    """So many points, to the hundredth."""
    return round(millionths / MILLION, 2)


def _faults(report: Report) -> list[tuple[tuple[Verdict, str, str | None], Who]]:
    verdicts = {result.verdict for result in report.items}
    if len(verdicts) == 1 and verdicts <= set(WHOLE):
        first = report.items[0]
        told = report.cause or first.message
        return [((first.verdict, _error(told), None), Who(report.student, first.item, _place(told)))]
    broken = [result for result in report.items if result.verdict in FAULTS]
    kinds: dict[tuple[Verdict, str, str | None], Who] = {}
    for result in broken:
        who = Who(report.student, result.item, _place(result.message))
        kinds.setdefault((result.verdict, _error(result.message), result.function), who)
    return list(kinds.items())


def _error(message: str) -> str:
    """The type of the exception that a message tells of."""
    found = _RAISED.search(message)
    return found[1] if found and found[1] in _KNOWN_ERRORS else ""


def _place(message: str) -> str:
    """The line of what was handed in that a message tells of, as staff read it: `line 12 of the file`."""
    found = _PLACE.search(message)
    return found[0].replace("Line", "line", 1).replace("of your file", "of the file") if found else ""
