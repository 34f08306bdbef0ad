"""Figures that the class page draws: how its scores lie, and which items took somebody unusually long."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from autograder.gradebook.class_statistics import Summary
from autograder.vocabulary.report import Report, Verdict

MOST_SLOW = 10
LEAST_SECONDS = 1.0  # nobody waits for less
TIMES_THE_USUAL = 10.0


@dataclass(frozen=True)
class Slow:
    """An item that took one submission long, and how long it takes the class as a rule."""

    student: str
    item: str
    verdict: Verdict
    seconds: float
    usual: float


@dataclass(frozen=True)
class Times:
    """What the staff page says of time, all of it in one section."""

    started: str
    seconds: float | None
    unusual: tuple[Slow, ...]


class Clock:
    """The times of every item; it keeps counts and the longest, so it does not grow with the class."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._counts: dict[str, Counter[int]] = {}
        self._longest: dict[str, list[Slow]] = {}

    def add(self, report: Report) -> None:
        """Count a report in."""
        for item in report.items:
            if item.seconds <= 0:
                continue
            self._counts.setdefault(item.item, Counter())[round(4 * math.log2(item.seconds))] += 1
            if item.seconds >= LEAST_SECONDS:
                slow = Slow(report.student, item.item, item.verdict, item.seconds, 0.0)
                longest = [*self._longest.get(item.item, ()), slow]
                self._longest[item.item] = sorted(longest, key=lambda one: -one.seconds)[:MOST_SLOW]

    def unusual(self) -> tuple[Slow, ...]:
        """What took more than ten times what the class needs for that item, the longest first."""
        usual = {item: _median(counts) for item, counts in self._counts.items()}
        found = [
            Slow(one.student, one.item, one.verdict, one.seconds, usual[one.item])
            for longest in self._longest.values()
            for one in longest
            if one.seconds > TIMES_THE_USUAL * usual[one.item]
        ]
        return tuple(sorted(found, key=lambda one: (-one.seconds, one.student))[:MOST_SLOW])


def _median(counts: Counter[int]) -> float:
    """The middle time, to within a fifth: times are counted by quarters of a doubling."""
    middle = (counts.total() + 1) // 2
    passed = zip(sorted(counts), accumulate(counts[one] for one in sorted(counts)), strict=True)
    return float(2.0 ** (next(one for one, so_far in passed if so_far >= middle) / 4))


def histogram(figures: Summary) -> dict[str, Any] | None:
    """Where the histogram's parts stand, in per cent of its box; None where nobody has a score."""
    if figures.median is None:
        return None
    left, right, ceiling, floor = 2.0, 98.0, 17.0, 80.0
    highest = max(share.count for share in figures.distribution) or 1

    def across(percent: float) -> float:
        return round(left + (right - left) * percent / 100, 2)

    def bar(low: float, high: float, count: int) -> dict[str, float]:
        height = round((floor - ceiling - 9) * count / highest, 2)
        x, end = across(low) + 0.3, across(high) - 0.3
        return {
            "x": round(x, 2), "width": round(end - x, 2), "middle": round((x + end) / 2, 2),
            "y": round(floor - height, 2), "height": height, "count": count,
        }  # fmt: skip

    ranges = [f"{share.low:.0f} to {share.high:.0f} per cent: {share.count}" for share in figures.distribution]
    return {
        "left": left, "right": right, "ceiling": ceiling, "floor": floor,
        "bars": [bar(share.low, share.high, share.count) for share in figures.distribution],
        "ticks": [{"x": across(percent), "label": percent} for percent in range(0, 101, 10)],
        "median": across(100 * figures.median / figures.max_points) if figures.max_points else left,
        "words": "Submissions by score. " + ", ".join(ranges) + ".",
    }  # fmt: skip
