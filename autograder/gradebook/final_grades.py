"""A report and a course's rules → the final grade, each change with its reason.

The rules act in this order: what changes items for all, overrides of items, excused items, the lowest
items, points of questions in words, which come on top, slip days, the late days that are left, an override of the
whole, an excuse of the whole. No grade is below 0, nor above the maximum unless by extra credit. Points of items and
`points` in grades.csv stay what the grader gave; what the rules make of them is `final`, beside its reasons.

A question counts for the whole class once somebody's answer to it has points: what it is worth is then part of every
maximum, unless the policy says that questions are extra credit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autograder.gradebook.overrides import Override
from autograder.gradebook.policy import DAY, EVERYBODY, LEAVES, ChangedItem, Late, Policy
from autograder.gradebook.rules import Rules
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import number

LEFT_OUT = {"excused": "excused", "dropped": "left out as one of the lowest", "cancelled": "cancelled for all"}


@dataclass(frozen=True)
class Adjustment:
    """One change of a grade, or a comment on it; `item` is "" for the whole, None stands for no grade."""

    rule: str
    item: str
    before: float | None
    after: float | None
    reason: str


@dataclass(frozen=True)
class Final:
    """The grade after all rules; None where there is none to give, and the last reason says why.

    most   what can be earned in all; `points` is more only by extra credit
    """

    points: float | None
    adjustments: tuple[Adjustment, ...]
    most: float

    @property
    def is_excused(self) -> bool:
        """Whether its student is excused from the whole assignment."""
        return any(one.rule == "excused" and not one.item for one in self.adjustments)

    @property
    def excused_items(self) -> frozenset[str]:
        """The items that its student is excused from."""
        return frozenset(one.item for one in self.adjustments if one.rule == "excused")

    @property
    def marked(self) -> frozenset[str]:
        """The questions in words that a person has given points for."""
        return frozenset(one.item for one in self.adjustments if one.rule == "question" and one.after is not None)

    @property
    def reasons(self) -> str:
        """All reasons in one line."""
        return "; ".join(one.reason for one in self.adjustments)


def final_of(report: Report, rules: Rules) -> Final:
    """The final grade of one report, by the rules in their order."""
    report, adjustments = _changed(report, rules.policy)
    working = _Working({item.item: item.points for item in report.items}, report, adjustments)
    stem = file_stem(report.student)
    own = [override for override in rules.overrides if override.student == stem]
    marked = {override.item for override in own if override.points is not None}
    for override in own:
        if override.on_top is not None:
            working.question(override, override.on_top)
        elif override.item:
            working.override(override)
    if report.student in rules.policy.excused.students:  # no other rule has anything to say of them
        points = _decided(own, working.total(), working.adjustments)
        working.adjustments.append(Adjustment("excused", "", points, None, "excused from this assignment"))
        return Final(None, tuple(working.adjustments), most_of(report, rules))
    if not rules.policy.questions.extra_credit:
        working.unmarked({item: worth for item, worth in rules.questions.items() if item not in marked})
    most = most_of(report, rules)
    working.leave_out({name for name, item in rules.policy.items.items() if item.cancelled == LEAVES}, "cancelled")
    working.leave_out(rules.policy.excused.items.get(report.student, ()), "excused")
    if rules.policy.drop.lowest:
        working.drop(rules.policy.drop.lowest)
    points = working.total()
    if rules.policy.late:
        points = _after_late(rules.policy.late, report.student, rules, points, most, working.adjustments)
    points = _decided(own, points, working.adjustments)
    return Final(points, tuple(working.adjustments), most)


def _changed(report: Report, policy: Policy) -> tuple[Report, list[Adjustment]]:
    """The report as rules change its items for all, and each change."""
    items, adjustments = [], []
    for item in report.items:
        change = policy.items.get(item.item, ChangedItem())
        after = replace(item, max_points=change.points or item.max_points)
        if item.points is not None and item.max_points:
            after = replace(after, points=round(item.points * after.max_points / item.max_points, 2))
        free = change.cancelled == EVERYBODY
        after = replace(after, points=after.max_points) if free else after
        items.append(after)
        if (after.points, after.max_points) != (item.points, item.max_points):
            of = [f"{_shown(one.points)} of {number(one.max_points)}" for one in (item, after)]
            reason = f"{item.item} {of[0]} → {of[1]}, for all{': cancelled, everybody gets it' if free else ''}"
            adjustments.append(Adjustment("changed for all", item.item, item.points, after.points, reason))
    return replace(report, items=tuple(items)), adjustments


def _decided(own: Iterable[Override], points: float | None, adjustments: list[Adjustment]) -> float | None:
    """What decisions on a student's whole grade make of it, each noted in `adjustments`."""
    for override in own:
        if not override.item:
            after = points if override.points is None else override.points
            rule = "comment" if override.points is None else "override"
            adjustments.append(Adjustment(rule, "", points, after, override.comment))
            points = after
    return points


def most_of(report: Report, rules: Rules) -> float:
    """What can be earned in all: by items, and by the questions that count, where they are no extra credit."""
    return round(report.max_points + (0.0 if rules.policy.questions.extra_credit else sum(rules.questions.values())), 2)


@dataclass
class _Working:
    """The points of a report's items while rules act on them; `left` are the items that count."""

    points: dict[str, float | None]
    report: Report
    adjustments: list[Adjustment] = field(default_factory=list)
    on_top: float = 0.0

    def __post_init__(self) -> None:
        self.most = {item.item: item.max_points for item in self.report.items}
        self.left = dict.fromkeys(self.points)

    def override(self, override: Override) -> None:
        before = self.points.get(override.item)
        after = before if override.points is None else override.points
        rule = "comment" if override.points is None else "override"
        change = "" if override.points is None else f" {_shown(before)} → {_shown(after)}"
        self.points[override.item] = after
        reason = f"{override.item}{change}: {override.comment}"
        self.adjustments.append(Adjustment(rule, override.item, before, after, reason))

    def question(self, override: Override, most: float) -> None:
        """Count what a person gave for an answer in words, which no grader has seen."""
        told = "" if override.points is None else f" {number(override.points)} of {number(most)} on top"
        rule = "comment" if override.points is None else "question"
        self.on_top += override.points or 0.0
        reason = f"{override.item}{told}: {override.comment}"
        self.adjustments.append(Adjustment(rule, override.item, None, override.points, reason))

    def unmarked(self, questions: Mapping[str, float]) -> None:
        """Say of questions that count for the class, and have no points here, that they have none."""
        for item, worth in questions.items():
            reason = f"{item} 0 of {number(worth)} on top: not marked"
            self.adjustments.append(Adjustment("question", item, None, None, reason))

    def leave_out(self, items: Iterable[str], rule: str) -> None:
        for item in sorted(items):
            if self.left.pop(item, item) is None:
                reason = f"{item} {LEFT_OUT[rule]} ({_shown(self.points[item])} of {number(self.most[item])})"
                self.adjustments.append(Adjustment(rule, item, self.points[item], None, reason))

    def drop(self, count: int) -> None:
        """Leave out the items with the least share of their points, of equal ones those worth most; no full one."""
        order = {item: index for index, item in enumerate(self.points)}
        graded = [(item, earned) for item in self.left if (earned := self.points[item]) is not None]
        graded = [(item, earned) for item, earned in graded if earned < self.most[item]]
        lowest = sorted(graded, key=lambda one: (one[1] / self.most[one[0]], -self.most[one[0]], order[one[0]]))
        self.leave_out([item for item, _ in lowest[: min(count, len(self.left) - 1)]], "dropped")

    def total(self) -> float | None:
        """The points of the items that count, on the scale of all; None where the grader failed on one of them."""
        earned = [self.points[item] for item in self.left]
        most = sum(self.most[item] for item in self.left)
        if None in earned or not most:
            self.adjustments.append(Adjustment("none", "", None, None, "not graded, through no fault of the student's"))
            return None
        return round(sum(one or 0.0 for one in earned) * self.report.max_points / most + self.on_top, 2)


def _after_late(
    late: Late, student: str, rules: Rules, points: float | None, most: float, adjustments: list[Adjustment]
) -> float | None:
    submitted = (rules.times or {}).get(student)
    if submitted is None:
        reason = "nothing says when this was handed in, so the late rules cannot be applied"
        adjustments.append(Adjustment("no-time", "", points, None, reason))
        return None
    if rules.slip:
        left, term = rules.slip(student)
        used = late.slip_days(student, submitted, left)
        submitted -= used * DAY
        reason = f"slip days: {used} used here, {left - used} of {term} left"
        adjustments.append(Adjustment("slip", "", points, points, reason))
    percent, told = late.cost(student, submitted)
    if not told or points is None:
        return points
    if percent == math.inf:
        after, reason = 0.0, told
    else:
        whole = points if late.of == "earned" else most
        after = round(max(0.0, points - whole * percent / 100), 2)
        of = "the points earned" if late.of == "earned" else "all points"
        reason = f"{told}: minus {number(percent)} % of {of}"
    adjustments.append(Adjustment("late", "", points, after, reason))
    return after


def _shown(points: float | None) -> str:
    return "not graded" if points is None else number(points)
