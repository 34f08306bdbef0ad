"""One item over a class → how hard it is, whether it goes with the rest, what students did instead, what to look at.

Over submissions that ran at all: one that could not be imported, or holds no line of work, fails every item alike, and
a few of them make every item look as if it told strong students from weak ones.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from autograder.gradebook.mistake_statistics import MILLION
from autograder.vocabulary.report import NOT_REACHED, VERDICT_WORDS, ItemResult, Report, Verdict

SMALLEST_CLASS = 10  # submissions that ran; a rate or a correlation over fewer says nothing of an item
LEAST_APART = 5  # submissions that did not earn what most earn: a correlation with a handful of them is theirs alone
GOES_WITH_THE_REST = 0.2  # the correlation that an item should reach
ONE_SIDED_95 = 1.645  # standard deviations
LEAST_AGREEING = 5  # students who give one answer without a name, before the item is suspected
MOST_INSTEAD = 4
OTHER, UNSEEN = "another wrong answer", "right in all public cases, wrong in a hidden one"

_REACHED: tuple[Verdict, ...] = ("passed", "failed", "raised", "timed_out", "out_of_memory", "crashed")


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


def ran(report: Report) -> bool:
    """Whether anything of a submission was reached: it could be imported, and is not as it was handed out."""
    return any(item.verdict in _REACHED and not item.message.startswith(NOT_REACHED) for item in report.items)


class ItemTally:
    """One item, and the sums that its figures are made of."""

    def __init__(self, first: ItemResult) -> None:
        """Begin with nobody; `first` says what the item is."""
        self._first = first
        self._verdicts: Counter[Verdict] = Counter()
        self._instead: Counter[str] = Counter()
        self._all = self._earned_by_all = 0
        self._graded = self._passed = self._earned = 0
        self._values: Counter[int] = Counter()
        self._both = self._here = self._rest = self._here2 = self._rest2 = self._product = 0

    def add(self, result: ItemResult, rest: int | None, *, has_run: bool) -> None:
        """Count a result in; `rest` are the points on all other items in millionths, None where they have no sum."""
        self._verdicts[result.verdict] += 1
        if result.points is None:
            return
        here = round(result.points * MILLION)
        self._all += 1
        self._earned_by_all += here
        if not has_run:
            return
        self._graded += 1
        self._earned += here
        self._passed += result.verdict == "passed"
        if result.verdict != "passed":
            self._instead[_instead(result)] += 1
        if rest is None:
            return
        self._both += 1
        self._values[here] += 1
        self._here, self._here2 = self._here + here, self._here2 + here * here
        self._rest, self._rest2 = self._rest + rest, self._rest2 + rest * rest
        self._product += here * rest

    def summary(self, agreeing: int = 0) -> ItemSummary:
        """The figures; `agreeing` is how many students gave the most common of the answers that have no name."""
        most = self._first.max_points * self._graded * MILLION
        return ItemSummary(
            item=self._first.item,
            function=self._first.function,
            title=self._first.title,
            max_points=self._first.max_points,
            graded=self._graded,
            passed=self._passed,
            mean=self._earned_by_all / (self._all * MILLION) if self._all else None,
            share=self._earned / most if most else None,
            discrimination=self._discrimination(),
            plausible=self._plausible(),
            verdicts=dict(self._verdicts),
            instead=tuple(sorted(self._instead.items(), key=lambda one: (-one[1], one[0]))[:MOST_INSTEAD]),
            flags=tuple(self._flags(agreeing)),
        )

    def _discrimination(self) -> float | None:
        """The item-rest correlation: the item's own points are left out of the total, or it would praise itself."""
        spread_here = self._both * self._here2 - self._here**2
        spread_rest = self._both * self._rest2 - self._rest**2
        if self._both < SMALLEST_CLASS or not spread_here or not spread_rest:
            return None
        together = self._both * self._product - self._here * self._rest
        return together / math.sqrt(spread_here * spread_rest)

    def _flags(self, agreeing: int) -> list[Flag]:
        found, failed = [], self._graded - self._passed
        if self._graded >= SMALLEST_CLASS and not self._passed:
            found.append(Flag("nobody", f"Nobody passed it, of {self._graded:,} that ran."))
        found += self._unrelated()
        if agreeing >= LEAST_AGREEING and 2 * agreeing > failed:
            of = f"{agreeing:,} of the {failed:,} who failed gave the same answer, which has no name"
            found.append(Flag("agreement", f"{of}: does the text ask for it?"))
        return found

    def _plausible(self) -> tuple[float, float] | None:
        """Fisher's interval: atanh of a correlation is about normal, with the deviation 1 / sqrt(n - 3)."""
        value = self._discrimination()
        if value is None:
            return None
        middle, reach = math.atanh(max(-0.999999, min(0.999999, value))), ONE_SIDED_95 / math.sqrt(self._both - 3)
        return math.tanh(middle - reach), math.tanh(middle + reach)

    def _unrelated(self) -> list[Flag]:
        """A flag where even the greatest correlation that these students leave plausible is a weak one."""
        plausible = self._plausible()
        if plausible is None or plausible[1] >= GOES_WITH_THE_REST:
            return []
        if self._both - max(self._values.values()) < LEAST_APART:
            return []
        if plausible[1] < 0:
            return [Flag("reversed", "Who does well on the other items does worse on this one.")]
        return [Flag("unrelated", "Who does well on the other items does no better on this one.")]


def _instead(result: ItemResult) -> str:
    """What somebody did who did not pass."""
    if result.mistakes:
        return " or ".join(result.mistakes)
    if result.verdict != "failed":
        return VERDICT_WORDS[result.verdict]
    return UNSEEN if result.fails_unseen else OTHER
