"""Make the final grade of a report by a course's rules, each change with its reason.

The rules act in this order: what changes items for all, overrides of items, excused items, the lowest items, points
of questions in words, which come on top, slip days, the late days that are left, an override of the whole, an excuse
of the whole. No grade is below 0, nor above the maximum unless by extra credit. Points of items and `points` in
grades.csv stay what the grader gave; what the rules make of them is `final`, beside its reasons.

A question counts for the whole class once somebody's answer to it has points: what it is worth is then part of every
maximum, unless the policy says that questions are extra credit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from autograder.gradebook.decisions import Override, is_line_of, place_of
from autograder.gradebook.rules import DAY, EVERYBODY, LEAVES, ChangedItem, Late, Policy, Rules
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
    def marked(self) -> frozenset[str]:
        """The questions in words that a person has given points for."""
        return frozenset(
            change.item for change in self.adjustments if change.rule == "question" and change.after is not None
        )

    @property
    def reasons(self) -> str:
        """All reasons in one line."""
        return "; ".join(change.reason for change in self.adjustments)


def final_of(report: Report, rules: Rules) -> Final:
    """Make the final grade of one report, by the rules in their order."""
    policy, stem = rules.policy, file_stem(report.student)
    overrides = [override for override in rules.overrides if override.student == stem]
    questions = {} if policy.questions.extra_credit else rules.questions
    grade = _Grade(report, policy)
    most = round(sum(grade.most.values()) + sum(questions.values()), 2)
    for override in overrides:
        if place := place_of(override.item):
            if is_line_of(override.item, report):
                grade.adjust("comment", override.item, None, None, f"{place}: {override.comment}")
        elif override.item:
            grade.override_item(override)
    if report.student in policy.excused.students:  # no other rule has anything to say of them
        points = grade.override_whole(overrides, grade.total())
        grade.adjust("excused", "", points, None, "excused from this assignment")
        return Final(None, tuple(grade.adjustments), most)
    marked = {override.item for override in overrides if override.points is not None}
    for question, worth in questions.items():
        if question not in marked:
            grade.adjust("question", question, None, None, f"{question} 0 of {number(worth)} on top: not marked")
    grade.leave_out({name for name, item in policy.items.items() if item.cancelled == LEAVES}, "cancelled")
    grade.leave_out(policy.excused.items.get(report.student, ()), "excused")
    grade.drop_lowest(policy.drop.lowest)
    points = grade.total()
    if policy.late:
        points = grade.charge_late(policy.late, rules, points, most)
    return Final(grade.override_whole(overrides, points), tuple(grade.adjustments), most)


class _Grade:
    """The points of a report's items while rules act on them; `counting` are the items that count."""

    def __init__(self, report: Report, policy: Policy) -> None:
        """Begin with what the grader gave, and what the policy changes for all."""
        self.student, self.on_top = report.student, 0.0
        self.adjustments: list[Adjustment] = []
        self.points: dict[str, float | None] = {}
        self.most: dict[str, float] = {}
        for item in report.items:
            change = policy.items.get(item.item, ChangedItem())
            points, most = item.points, change.points or item.max_points
            if points is not None and item.max_points:
                points = round(points * most / item.max_points, 2)
            if change.cancelled == EVERYBODY:
                points = most
            self.points[item.item], self.most[item.item] = points, most
            if (points, most) != (item.points, item.max_points):
                before = f"{_shown(item.points)} of {number(item.max_points)}"
                reason = f"{item.item} {before} → {_shown(points)} of {number(most)}, for all"
                reason += ": cancelled, everybody gets it" if change.cancelled == EVERYBODY else ""
                self.adjust("changed for all", item.item, item.points, points, reason)
        self.counting = dict.fromkeys(self.points)

    def adjust(self, rule: str, item: str, before: float | None, after: float | None, reason: str) -> None:
        self.adjustments.append(Adjustment(rule, item, before, after, reason))

    def override_item(self, override: Override) -> None:
        """Take what a person gave for an item, or on top for an answer in words, which no grader has seen."""
        item, given = override.item, override.points
        before, rule, change = self.points.get(item), "comment", ""
        if given is not None and override.on_top is not None:
            rule, change = "question", f" {number(given)} of {number(override.on_top)} on top"
            self.on_top += given
        elif given is not None:
            rule, change = "override", f" {_shown(before)} → {number(given)}"
            self.points[item] = given
        why = f": {override.comment}" if override.comment else ""
        self.adjust(rule, item, before, before if given is None else given, f"{item}{change}{why}")

    def override_whole(self, overrides: Iterable[Override], points: float | None) -> float | None:
        """Apply decisions on a student's whole grade."""
        for override in overrides:
            if not override.item:
                rule, after = ("comment", points) if override.points is None else ("override", override.points)
                self.adjust(rule, "", points, after, override.comment or "the whole grade, as the course staff decided")
                points = after
        return points

    def leave_out(self, items: Iterable[str], rule: str) -> None:
        for item in sorted(items):
            if item in self.counting:
                del self.counting[item]
                of = f"{_shown(self.points[item])} of {number(self.most[item])}"
                self.adjust(rule, item, self.points[item], None, f"{item} {LEFT_OUT[rule]} ({of})")

    def drop_lowest(self, count: int) -> None:
        """Leave out the items with the least share of their points, of equal ones those worth most; no full one."""
        graded = [(item, points) for item in self.counting if (points := self.points[item]) is not None]
        graded = [(item, points) for item, points in graded if points < self.most[item]]
        lowest = sorted(graded, key=lambda pair: (pair[1] / self.most[pair[0]], -self.most[pair[0]]))
        self.leave_out([item for item, _ in lowest[: min(count, len(self.counting) - 1)]], "dropped")

    def total(self) -> float | None:
        """Sum the points of the items that count, on the scale of all; None where the grader failed on one of them."""
        earned = [self.points[item] for item in self.counting]
        most = sum(self.most[item] for item in self.counting)
        if None in earned or not most:
            self.adjust("none", "", None, None, "not graded, through no fault of the student's")
            return None
        all_items = round(sum(self.most.values()), 2)
        return round(sum(points or 0.0 for points in earned) * all_items / most + self.on_top, 2)

    def charge_late(self, late: Late, rules: Rules, points: float | None, most: float) -> float | None:
        """Charge the late days that are left; None where nobody knows when this was handed in."""
        submitted = (rules.times or {}).get(self.student)
        if submitted is None:
            reason = "nothing says when this was handed in, so the late rules cannot be applied"
            self.adjust("no-time", "", points, None, reason)
            return None
        if rules.slip:
            left, term = rules.slip(self.student)
            used = late.slip_days(self.student, submitted, left)
            submitted -= used * DAY
            self.adjust("slip", "", points, points, f"slip days: {used} used here, {left - used} of {term} left")
        percent, reason = late.cost(self.student, submitted)
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
