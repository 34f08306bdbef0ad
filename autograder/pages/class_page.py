"""The reports of a class → the page for the staff: figures, what to teach next, and a table of all students.

A class of a thousand has 36,000 cells of items: a cell is one element with its verdict in words. The page's script
makes links of those that did not pass, to that item on the student's page.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from markupsafe import Markup

from autograder.gradebook.class_statistics import BINS, SMALLEST_CLASS, Group, Summary, Tally, ran, stands_out
from autograder.gradebook.grades_folder import FinalReport
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

    clauses      mistake → the sentence of the contract that it goes against
    code_of      (student, function) → that function as the student wrote it; "" where that is not known
    title        what people call the assignment; "" leaves its module's name
    answers_of   student → item → fingerprint of an answer that no known mistake gives
    answered     student → the questions in words that they answered
    """

    clauses: Mapping[str, str] = field(default_factory=dict)
    code_of: Callable[[str, str], str] = lambda student, function: ""
    title: str = ""
    answers_of: Callable[[str], Mapping[str, str]] = lambda student: {}
    answered: Callable[[str], Sequence[str]] = lambda student: ()


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
    """`grades/index.html` for the staff, of reports that pass one at a time: of each it keeps the row of the table."""

    def __init__(self, background: Background) -> None:
        """Begin with nobody."""
        self._background = background
        self._tally = Tally()
        self._assignment = ""
        self._layers: set[str] | None = None
        self._fixtures: set[str] = set()
        self._rows: list[dict[str, Any]] = []

    def add(self, report: Report) -> None:
        """Count a report in; reports come in the order of their students.

        Each makes a row:

            points, earned   the final grade where rules apply, and what the grader gave, where that is another number
            status           "" for who is graded as usual
            mistakes         known ones, by name
            groups           some of GROUPS
            cells, sums      item → its markup; function → that of the sum of its items
        """
        self._assignment = report.assignment
        self._tally.add(report, self._background.answers_of(report.student))
        self._layers = set(report.isolation) if self._layers is None else self._layers & set(report.isolation)
        self._fixtures.add(report.fixtures)
        is_excused, is_final = "" in report.excused, isinstance(report, FinalReport)
        status = "excused" if is_excused else NOT_GRADED if report.earned is None else ""
        by_function: dict[str, list[float | None]] = {}
        for item in report.items:
            by_function.setdefault(item.function, []).append(item.points)
        cells = {
            item.item: _item_cell(item.verdict, verdict_word(item), item.points, item.max_points)
            for item in report.items
        }
        is_broken = bool(report.cause) or any(item.verdict == "crashed" for item in report.items)
        marked = report.final.marked if isinstance(report, FinalReport) else frozenset()
        groups = {
            "broken": report.earned is not None and is_broken,
            "unstarted": report.earned is not None and not is_broken and not ran(report),
            "ungraded": report.earned is None,
            "unmarked": not marked.issuperset(self._background.answered(report.student)),
            "unnamed": any(item.verdict == "failed" and not item.mistakes for item in report.items),
        }
        self._rows.append(
            {
                "student": report.student,
                "points": report.points,
                "earned": None if is_excused or report.points == report.earned else report.earned,
                "status": status or ("no final grade" if is_final and report.points is None else ""),
                "mistakes": list(dict.fromkeys(name for item in report.items for name in item.mistakes)),
                "groups": [name for name, is_so in groups.items() if is_so and not is_excused],
                "may_be_lowest": report.points is not None and report.points < report.earnable and ran(report),
                "cells": cells,
                "sums": {function: _sum_cell(points) for function, points in by_function.items()},
                "note": visible(stands_out(report, MAX_NAMES), MAX_NOTE),
            }
        )

    def summary(self) -> Summary:
        """Return the figures of all that was added."""
        return self._tally.summary()

    def html(
        self, run: Mapping[str, Any], changes: Iterable[Change] | None = None, *, final: bool = False
    ) -> Iterator[str]:
        """Render the page in pieces.

        run       what `run.json` holds, every key of it optional
        changes   those since the last run, None where there was none
        final     whether grades are those by a course's rules

        Changes and measured times stand between the comments RUN_BEGIN and RUN_END: two runs over the same class differ
        nowhere else.
        """
        figures = self.summary()
        (script,), policy = scripts_and_policy("index.js")
        columns: dict[str, list[str]] = {}
        for item in figures.items:
            columns.setdefault(item.function, []).append(item.item)
        mistakes = sorted(figures.mistakes, key=lambda mistake: (-mistake.cost, -mistake.count, mistake.name))
        # Known mistakes, the costliest first, and answers without a name, by their places on the page.
        anchored = {f"mistake-{place}": mistake for place, mistake in enumerate(mistakes, start=1)}
        anchored |= {f"shared-{place}": shared for place, shared in enumerate(figures.shared, start=1)}
        lowest = sorted((row["points"], row["student"]) for row in self._rows if row["may_be_lowest"])[:LOWEST]
        places = {mistake.name: str(place) for place, mistake in enumerate(mistakes)}
        for row in self._rows:
            row["groups"] = [*row["groups"], *(["lowest"] if (row["points"], row["student"]) in lowest else [])]
            row["mistakes"] = [places[name] for name in row["mistakes"] if name in places]
        counts = Counter(group for row in self._rows for group in row["groups"])
        isolation = [str(layer) for layer in run.get("isolation", sorted(self._layers or ())) or ()]
        warnings = []  # what the staff must see before they publish, as (title, text)
        if self._rows and (missing := [layer for layer in STRICT if layer not in isolation]):
            text = "They could read and change whatever the grading account can. Trust the grades accordingly."
            warnings.append((f"Submissions ran below strict isolation, without {' and '.join(missing)}", text))
        if len(self._fixtures) > 1:
            text = "Reports of different fixtures are not comparable. Grade the class again with --fresh."
            warnings.append(("Not everybody was graded on the same fixtures", text))
        # What costs most is taught; of names that fit the same answers the first stands for all.
        lessons: dict[tuple[object, ...], tuple[str, Group]] = {}
        for anchor, answer in anchored.items():
            key = answer.function, *answer.items, answer.count, *answer.who, answer.cost
            lessons.setdefault(key, (anchor, answer))
        ordered = sorted(lessons.values(), key=lambda lesson: (-lesson[1].cost, -lesson[1].count, lesson[0]))
        verdicts = {verdict for item in figures.items for verdict in item.verdicts}
        return page_template("index.html").generate(
            policy=policy,
            script=script,
            assignment=str(run.get("assignment") or self._assignment or "No submissions"),
            figures=figures,
            finals=final,
            smallest=SMALLEST_CLASS,
            flagged=[item for item in figures.items if item.flags],
            background=self._background,
            mistakes=mistakes,
            examples={anchor: self._example(answer) for anchor, answer in anchored.items()},
            teach=[lesson for lesson in ordered[:MAX_LESSONS] if lesson[1].cost > 0],
            groups=[(name, words, counts[name]) for name, words in GROUPS.items() if counts[name]],
            warnings=warnings,
            bins=BINS,
            verdicts=[verdict for verdict in VERDICTS if verdict in verdicts],
            columns=columns,
            # The places, from 1, of the columns where functions begin, and of the one after the last item.
            first_columns=[*itertools.accumulate((1 + len(names) for names in columns.values()), initial=LEADING + 1)],
            rows=self._rows,
            no_item=NO_ITEM,
            no_sum=_sum_cell([None]),
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

    def _example(self, answer: Group) -> dict[str, str]:
        """Return how a student wrote a wrong answer: the shortest of the first few, or ""."""
        names = [who.student for who in answer.who[:MAX_TRIED]]
        written = [(text, name) for name in names if (text := self._background.code_of(name, answer.function))]
        text, student = min(written, key=lambda pair: (len(pair[0]), pair[1]), default=("", names[0]))
        return {"student": student, "text": text}


# Cells: a thousand students share a few dozen different ones.


def _sum_cell(points: Sequence[float | None]) -> Markup:
    total = "–" if None in points else number(round(sum(value or 0.0 for value in points), 2))
    return Markup('<td class="n">{}</td>').format(total)


@lru_cache(maxsize=1024)
def _item_cell(verdict: Verdict, word: str, points: float | None, max_points: float) -> Markup:
    """Write a cell; a full mark is told by its verdict alone: most cells are that."""
    plain = points is None or (verdict == "passed" and points == max_points)
    words = word + ("" if plain or points is None else f", {number(points)} of {number(max_points)}")
    partial = Markup(' data-p="{}"').format(number(points)) if points and points < max_points else Markup("")
    return Markup('<td class="{}"{}>{}</td>').format(verdict, partial, words)
