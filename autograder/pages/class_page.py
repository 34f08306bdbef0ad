"""The reports of a class → the page for the staff: figures, what to teach next, and a table of all students.

A class of a thousand has 36,000 cells of items: a cell is one element with its verdict in words. The page's script
makes links of those that did not pass, to that item on the student's page.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from autograder.gradebook.class_statistics import (
    BINS,
    MOST_NAMED,
    SMALLEST_CLASS,
    Group,
    Summary,
    Tally,
    ran,
    stands_out,
)
from autograder.gradebook.final_grades import Final
from autograder.pages.html import page_template, scripts_and_policy, verdict_word
from autograder.vocabulary.report import VERDICTS, Report, Verdict
from autograder.vocabulary.text import STRICT, number, visible

ABSENT = "not in the class"
NOT_GRADED = "not graded"
RUN_BEGIN = "<!-- of this run alone -->"
RUN_END = "<!-- end of what is of this run alone -->"
LOWEST = 5  # students whose points are fewest
LEADING = 2  # columns before the first function: student and points, or the final grade
MAX_NOTE, MAX_NAMES = 48, 1  # characters of what stands out; names and verdicts in it
MAX_LESSONS = 3
MAX_TRIED = 5  # students whose code is looked for
NO_ITEM = Markup('<td class="absent">not in this report</td>')


@dataclass(frozen=True)
class Background:
    """What is known of an assignment besides its reports; the default is nothing.

    clauses    mistake → the sentence of the contract that it goes against
    code_of    (student, function) → that function as the student wrote it; "" where that is not known
    title      what people call the assignment; "" leaves its module's name
    """

    clauses: Mapping[str, str] = field(default_factory=dict)
    code_of: Callable[[str, str], str] = lambda student, function: ""
    title: str = ""


@dataclass(frozen=True)
class Change:
    """A student's points in the last run and in this: numbers, NOT_GRADED, ABSENT, or what somebody wrote there."""

    student: str
    before: float | str
    now: float | str

    @property
    def difference(self) -> float | None:
        """What was won or lost; None where one of the two is no number."""
        if isinstance(self.before, str) or isinstance(self.now, str):
            return None
        return round(self.now - self.before, 2)


# Whom to look at first: the row of a student says in which of these they are, and the page filters by them.
GROUPS = {
    "broken": "not imported or crashed",
    "unstarted": "not started",
    "ungraded": "not graded",
    "lowest": "with the fewest points",
    "unmarked": "with an answer in words without a mark",
    "unnamed": "with a wrong answer without a name",
}


class ClassPage:
    """`grades/index.html` for the staff, of reports that pass one at a time: what it keeps does not grow with them."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._tally = Tally()
        self._assignment = ""
        self._layers: set[str] | None = None
        self._fixtures: set[str] = set()
        self._student: str | None = None
        self._repeated: dict[str, None] = {}
        self._groups: Counter[str] = Counter()
        self._lowest: list[tuple[float, str]] = []

    def add(self, report: Report, final: Final | None = None, answers: Mapping[str, str] | None = None) -> None:
        """Count a report in; reports come in the order of their students.

        final     what a course's rules make of it, where it has some
        answers   item → fingerprint of an answer that no known mistake gives
        """
        self._tally.add(report, final, answers)
        self._assignment = self._assignment or report.assignment
        self._layers = set(report.isolation) if self._layers is None else self._layers & set(report.isolation)
        self._fixtures.add(report.fixtures)
        if report.student == self._student and len(self._repeated) < MOST_NAMED:
            self._repeated[report.student] = None
        self._student = report.student
        self._groups.update(_groups_of(report, final))
        points = report.points if final is None else final.points
        if points is not None and points < report.max_points and ran(report):
            self._lowest = sorted([*self._lowest, (points, report.student)])[:LOWEST]

    def summary(self) -> Summary:
        """Return the figures of all that was added."""
        return self._tally.summary()

    def html(
        self,
        reports: Iterable[Report],
        run: Mapping[str, Any],
        changes: Iterable[Change] | None = None,
        finals: Mapping[str, Final] | None = None,
        background: Background | None = None,
    ) -> Iterator[str]:
        """Render the page in pieces. `reports` are those that were added, once more and in the same order.

        `run` is what `run.json` holds, every key of it optional. `changes` are those since the last run, None where
        there was none. They and the measured times stand between the comments RUN_BEGIN and RUN_END: two runs
        over the same class differ nowhere else. `finals` are the final grades, None where no rules apply.
        """
        figures, background = self.summary(), background or Background()
        (script,), policy = scripts_and_policy("index.js")
        columns: dict[str, list[str]] = {}
        for item in figures.items:
            columns.setdefault(item.function, []).append(item.item)
        mistakes = sorted(figures.mistakes, key=lambda mistake: (-mistake.cost, -mistake.count, mistake.name))
        # Known mistakes, the costliest first, and answers without a name, by their places on the page.
        anchored = {f"mistake-{place}": mistake for place, mistake in enumerate(mistakes, start=1)}
        anchored |= {f"shared-{place}": shared for place, shared in enumerate(figures.shared, start=1)}
        lowest = {student for _, student in self._lowest}
        counts = self._groups | Counter(lowest=len(lowest))
        isolation = [str(layer) for layer in run.get("isolation", sorted(self._layers or ())) or ()]
        verdicts = {verdict for item in figures.items for verdict in item.verdicts}
        return page_template("index.html").generate(
            policy=policy,
            script=script,
            assignment=str(run.get("assignment") or self._assignment or "No submissions"),
            figures=figures,
            finals=finals is not None,
            smallest=SMALLEST_CLASS,
            flagged=[item for item in figures.items if item.flags],
            background=background,
            mistakes=mistakes,
            examples={anchor: _example(answer, background) for anchor, answer in anchored.items()},
            teach=_lessons(anchored),
            groups=[(name, words, counts[name]) for name, words in GROUPS.items() if counts[name]],
            warnings=self._warnings(isolation),
            bins=BINS,
            verdicts=[verdict for verdict in VERDICTS if verdict in verdicts],
            columns=columns,
            # The places, from 1, of the columns where functions begin, and of the one after the last item.
            first_columns=[*itertools.accumulate((1 + len(names) for names in columns.values()), initial=LEADING + 1)],
            rows=_rows(reports, finals, columns, mistakes, lowest) if self._student is not None else (),
            run=run,
            # What is no difference in points comes first, then the greatest loss.
            changes=None
            if changes is None
            else sorted(changes, key=lambda one: (one.difference is not None, one.difference or 0.0, one.student)),
            absent=ABSENT,
            run_begin=Markup(RUN_BEGIN),
            run_end=Markup(RUN_END),
            isolation=isolation,
            versions=[f"{name} {version}" for name, version in sorted(dict(run.get("versions") or {}).items())],
            fixture_hashes=sorted(self._fixtures),
        )

    def _warnings(self, isolation: Sequence[str]) -> list[tuple[str, str]]:
        """List what the staff must see before they publish, as (title, text)."""
        warnings = []
        missing = [layer for layer in STRICT if layer not in isolation]
        if self._student is not None and missing:
            text = "They could read and change whatever the grading account can. Trust the grades accordingly."
            warnings.append((f"Submissions ran below strict isolation, without {' and '.join(missing)}", text))
        if len(self._fixtures) > 1:
            text = "Reports of different fixtures are not comparable. Grade the class again with --fresh."
            warnings.append(("Not everybody was graded on the same fixtures", text))
        if self._repeated:
            names = ", ".join(visible(name, 60) for name in list(self._repeated)[:10])
            warnings.append(("A student has more than one report", f"Only one of them can be right: {names}"))
        return warnings


# What to teach next


def _lessons(anchored: Mapping[str, Group]) -> list[tuple[str, Group]]:
    """Choose what costs most, by place on the page; of names that fit the same answers the first stands for all."""
    lessons: dict[tuple[object, ...], tuple[str, Group]] = {}
    for anchor, answer in anchored.items():
        key = answer.function, *answer.items, answer.count, *answer.who, answer.cost
        lessons.setdefault(key, (anchor, answer))
    ordered = sorted(lessons.values(), key=lambda lesson: (-lesson[1].cost, -lesson[1].count, lesson[0]))
    return [lesson for lesson in ordered[:MAX_LESSONS] if lesson[1].cost > 0]


def _example(answer: Group, background: Background) -> dict[str, str]:
    """Return how a student wrote a wrong answer: the shortest of the first few, or ""."""
    names = [who.student for who in answer.who[:MAX_TRIED]]
    written = [(text, name) for name in names if (text := background.code_of(name, answer.function))]
    text, student = min(written, key=lambda pair: (len(pair[0]), pair[1]), default=("", names[0]))
    return {"student": student, "text": text}


# The table of students


def _rows(
    reports: Iterable[Report],
    finals: Mapping[str, Final] | None,
    columns: Mapping[str, Sequence[str]],
    mistakes: Sequence[Group],
    lowest: Collection[str],
) -> Iterator[dict[str, Any]]:
    """Make the rows, in the order of the reports.

    points, earned   the final grade where rules apply, and what the grader gave, where that is another number
    status           "" for who is graded as usual
    mistakes         their places in the class's list
    groups           some of GROUPS
    """
    places = {mistake.name: str(place) for place, mistake in enumerate(mistakes)}
    for report in reports:
        final = None if finals is None else finals.get(report.student)
        made = dict.fromkeys(name for item in report.items for name in item.mistakes if name in places)
        is_excused = final is not None and final.is_excused
        status = "excused" if is_excused else NOT_GRADED if report.points is None else ""
        if final is not None and final.points is None:
            status = status or "no final grade"
        yield {
            "student": report.student,
            "points": report.points if final is None else final.points,
            "earned": None if final is None or is_excused or final.points == report.points else report.points,
            "status": status,
            "mistakes": " ".join(places[name] for name in made),
            "groups": " ".join([*_groups_of(report, final), *(["lowest"] if report.student in lowest else [])]),
            "cells": Markup("").join(_cells(report, columns)),
            "note": visible(stands_out(report, MAX_NAMES), MAX_NOTE),
        }


def _groups_of(report: Report, final: Final | None) -> list[str]:
    """Return the GROUPS that a report tells of by itself."""
    if final is not None and final.is_excused:
        return []
    is_broken = bool(report.cause) or any(item.verdict == "crashed" for item in report.items)
    adjustments = () if final is None else final.adjustments
    tells = {
        "broken": report.points is not None and is_broken,
        "unstarted": report.points is not None and not is_broken and not ran(report),
        "ungraded": report.points is None,
        "unmarked": any(change.rule == "question" and change.after is None for change in adjustments),
        "unnamed": any(item.verdict == "failed" and not item.mistakes for item in report.items),
    }
    return [name for name, is_so in tells.items() if is_so]


def _cells(report: Report, columns: Mapping[str, Sequence[str]]) -> Iterator[Markup]:
    """Write the cells of one student; a thousand students share a few dozen different ones."""
    items = {item.item: item for item in report.items}
    for function, names in columns.items():
        points = [item.points for item in report.items if item.function == function]
        known = [value for value in points if value is not None]
        yield _sum_cell(round(sum(known), 2) if known and len(known) == len(points) else None)
        for name in names:
            item = items.get(name)
            yield _item_cell(item.verdict, verdict_word(item), item.points, item.max_points) if item else NO_ITEM


@lru_cache(maxsize=1024)
def _sum_cell(points: float | None) -> Markup:
    return Markup('<td class="n">{}</td>').format("–" if points is None else number(points))


@lru_cache(maxsize=1024)
def _item_cell(verdict: Verdict, word: str, points: float | None, max_points: float) -> Markup:
    """Write a cell; a full mark is told by its verdict alone: most cells are that."""
    plain = points is None or (verdict == "passed" and points == max_points)
    words = word + ("" if plain or points is None else f", {number(points)} of {number(max_points)}")
    partial = Markup(' data-p="{}"').format(number(points)) if points and points < max_points else Markup("")
    return Markup('<td class="{}"{}>{}</td>').format(verdict, partial, words)
