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
from collections.abc import Iterable
from dataclasses import dataclass, replace

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
    policy = rules.policy
    report, adjustments = _changed(report, policy)
    working = _Working(report, adjustments)
    stem, most = file_stem(report.student), most_of(report, rules)
    own = [override for override in rules.overrides if override.student == stem]
    for override in own:
        if override.item:
            working.decide(override)
    if report.student in policy.excused.students:  # no other rule has anything to say of them
        points = working.whole(own, working.total())
        working.adjust("excused", "", points, None, "excused from this assignment")
        return Final(None, tuple(working.adjustments), most)
    marked = {override.item for override in own if override.points is not None}
    for question, worth in rules.questions.items() if not policy.questions.extra_credit else ():
        if question not in marked:
            working.adjust("question", question, None, None, f"{question} 0 of {number(worth)} on top: not marked")
    working.leave_out({name for name, item in policy.items.items() if item.cancelled == LEAVES}, "cancelled")
    working.leave_out(policy.excused.items.get(report.student, ()), "excused")
    working.drop(policy.drop.lowest)
    points = working.total()
    if policy.late:
        points = working.late(policy.late, rules, points, most)
    return Final(working.whole(own, points), tuple(working.adjustments), most)


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
            of = [f"{_shown(each.points)} of {number(each.max_points)}" for each in (item, after)]
            reason = f"{item.item} {of[0]} → {of[1]}, for all{': cancelled, everybody gets it' if free else ''}"
            adjustments.append(Adjustment("changed for all", item.item, item.points, after.points, reason))
    return replace(report, items=tuple(items)), adjustments


def most_of(report: Report, rules: Rules) -> float:
    """What can be earned in all: by items, and by the questions that count, where they are no extra credit."""
    return round(report.max_points + (0.0 if rules.policy.questions.extra_credit else sum(rules.questions.values())), 2)


@dataclass
class _Working:
    """The points of a report's items while rules act on them; `left` are the items that count."""

    report: Report
    adjustments: list[Adjustment]
    on_top: float = 0.0

    def __post_init__(self) -> None:
        self.points = {item.item: item.points for item in self.report.items}
        self.most = {item.item: item.max_points for item in self.report.items}
        self.left = dict.fromkeys(self.points)

    def adjust(self, rule: str, item: str, before: float | None, after: float | None, reason: str) -> None:
        self.adjustments.append(Adjustment(rule, item, before, after, reason))

    def decide(self, override: Override) -> None:
        """Take what a person gave for an item, or on top for an answer in words, which no grader has seen."""
        item, given = override.item, override.points
        before, rule, change = self.points.get(item), "comment", ""
        if given is not None and override.on_top is not None:
            rule, change = "question", f" {number(given)} of {number(override.on_top)} on top"
            self.on_top += given
        elif given is not None:
            rule, change = "override", f" {_shown(before)} → {number(given)}"
            self.points[item] = given
        self.adjust(rule, item, before, before if given is None else given, f"{item}{change}: {override.comment}")

    def whole(self, own: Iterable[Override], points: float | None) -> float | None:
        """What decisions on a student's whole grade make of it."""
        for override in own:
            if not override.item:
                rule, after = ("comment", points) if override.points is None else ("override", override.points)
                self.adjust(rule, "", points, after, override.comment)
                points = after
        return points

    def leave_out(self, items: Iterable[str], rule: str) -> None:
        for item in sorted(items):
            if self.left.pop(item, item) is None:
                of = f"{_shown(self.points[item])} of {number(self.most[item])}"
                self.adjust(rule, item, self.points[item], None, f"{item} {LEFT_OUT[rule]} ({of})")

    def drop(self, count: int) -> None:
        """Leave out the items with the least share of their points, of equal ones those worth most; no full one."""
        graded = [(item, earned) for item in self.left if (earned := self.points[item]) is not None]
        graded = [(item, earned) for item, earned in graded if earned < self.most[item]]
        lowest = sorted(graded, key=lambda pair: (pair[1] / self.most[pair[0]], -self.most[pair[0]]))
        self.leave_out([item for item, _ in lowest[: min(count, len(self.left) - 1)]], "dropped")

    def total(self) -> float | None:
        """The points of the items that count, on the scale of all; None where the grader failed on one of them."""
        earned = [self.points[item] for item in self.left]
        most = sum(self.most[item] for item in self.left)
        if None in earned or not most:
            self.adjust("none", "", None, None, "not graded, through no fault of the student's")
            return None
        return round(sum(points or 0.0 for points in earned) * self.report.max_points / most + self.on_top, 2)

    def late(self, late: Late, rules: Rules, points: float | None, most: float) -> float | None:
        """What the late days that are left make of the points; None where nobody knows when this was handed in."""
        student = self.report.student
        submitted = (rules.times or {}).get(student)
        if submitted is None:
            reason = "nothing says when this was handed in, so the late rules cannot be applied"
            self.adjust("no-time", "", points, None, reason)
            return None
        if rules.slip:
            left, term = rules.slip(student)
            used = late.slip_days(student, submitted, left)
            submitted -= used * DAY
            self.adjust("slip", "", points, points, f"slip days: {used} used here, {left - used} of {term} left")
        percent, reason = late.cost(student, submitted)
        if not reason or points is None:
            return points
        after = 0.0
        if percent != math.inf:
            whole, of = (points, "the points earned") if late.of == "earned" else (most, "all points")
            after = round(max(0.0, points - whole * percent / 100), 2)
            reason += f": minus {number(percent)} % of {of}"
        self.adjust("late", "", points, after, reason)
        return after


def _shown(points: float | None) -> str:
    return "not graded" if points is None else number(points)
