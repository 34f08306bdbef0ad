"""The reports of a class → the page for the staff: figures, and a table of all students."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from autograder.gradebook.class_statistics import MOST_NAMED, Summary, Tally
from autograder.pages.html import page_template, script_and_policy
from autograder.vocabulary.report import VERDICTS, ItemResult, Report, Verdict
from autograder.vocabulary.text import STRICT, VERDICT_WORDS, number, visible

SLOWEST = 10
FIRST_ITEM_COLUMN = 4
ABSENT = "not in the class"
NOT_GRADED = "not graded"
RUN_BEGIN = "<!-- of this run alone -->"
RUN_END = "<!-- end of what is of this run alone -->"


@dataclass(frozen=True)
class Slow:
    """How long one submission took, and which of its items took longest."""

    student: str
    seconds: float
    item: str
    item_seconds: float
    verdict: Verdict


@dataclass(frozen=True)
class Times:
    """What the staff page says of time, all of it in one section."""

    started: str
    seconds: float | None
    slowest: tuple[Slow, ...]


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


@dataclass(frozen=True)
class Warn:
    """Something that the staff must see before they publish."""

    title: str
    text: str


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
        self._slowest: list[Slow] = []

    def add(self, report: Report) -> None:
        """Count a report in; reports come in the order of their students."""
        self._tally.add(report)
        self._assignment = self._assignment or report.assignment
        self._layers = set(report.isolation) if self._layers is None else self._layers & set(report.isolation)
        self._fixtures.add(report.fixtures)
        if report.student == self._student and len(self._repeated) < MOST_NAMED:
            self._repeated[report.student] = None
        self._student = report.student
        if any(item.seconds > 0 for item in report.items):
            self._slowest = sorted([*self._slowest, _slow(report)], key=lambda slow: -slow.seconds)[:SLOWEST]

    def summary(self) -> Summary:
        """The figures of all that was added."""
        return self._tally.summary()

    def html(
        self, reports: Iterable[Report], run: Mapping[str, Any], changes: Iterable[Change] | None = None
    ) -> Iterator[str]:
        """The page in pieces. `reports` are those that were added, once more and in the same order, for the table.

        `run` is what `run.json` holds, every key of it optional. `changes` are those since the last run, None where
        there was none. They and the measured times stand between the comments RUN_BEGIN and RUN_END: two runs
        over the same class differ nowhere else.
        """
        figures = self.summary()
        script, policy = script_and_policy()
        columns = [item.item for item in figures.items]
        isolation = [str(layer) for layer in run.get("isolation", sorted(self._layers or ())) or ()]
        return page_template("index.html").generate(
            policy=policy,
            script=script,
            assignment=str(run.get("assignment") or self._assignment or "No submissions"),
            figures=figures,
            warnings=self._warnings(isolation),
            histogram=_histogram(figures),
            verdicts=_verdicts_seen(figures),
            first_columns=_first_columns(figures),
            rows=((report, _cells(report, columns)) for report in reports),
            run=run,
            times=_times(self._slowest, run),
            changes=None if changes is None else sorted(changes, key=_change_order),
            absent=ABSENT,
            run_begin=Markup(RUN_BEGIN),
            run_end=Markup(RUN_END),
            isolation=isolation,
            versions=[f"{name} {version}" for name, version in sorted(dict(run.get("versions") or {}).items())],
            fixture_hashes=sorted(self._fixtures),
        )

    def _warnings(self, isolation: Sequence[str]) -> list[Warn]:
        warnings = []
        missing = [layer for layer in STRICT if layer not in isolation]
        if self._student is not None and missing:
            text = "They could read and change whatever the grading account can. Trust the grades accordingly."
            warnings.append(Warn(f"Submissions ran below strict isolation, without {' and '.join(missing)}", text))
        if len(self._fixtures) > 1:
            text = "Reports of different fixtures are not comparable. Grade the class again with --fresh."
            warnings.append(Warn("Not everybody was graded on the same fixtures", text))
        if self._repeated:
            names = ", ".join(visible(name, 60) for name in list(self._repeated)[:10])
            warnings.append(Warn("A student has more than one report", f"Only one of them can be right: {names}"))
        return warnings


def _cells(report: Report, columns: Sequence[str]) -> Markup:
    """The table cells of one student's items; a thousand students share a few dozen different ones."""
    results = {item.item: item for item in report.items}
    return Markup("").join(_cell(results[item]) if item in results else _ABSENT for item in columns)


_ABSENT = Markup('<td class="v absent">not in this report</td>')


def _cell(item: ItemResult) -> Markup:
    return _cell_of(item.verdict, item.points, item.max_points)


@lru_cache(maxsize=1024)
def _cell_of(verdict: Verdict, points: float | None, max_points: float) -> Markup:
    words = VERDICT_WORDS[verdict] + ("" if points is None else f", {number(points)} of {number(max_points)}")
    partial = Markup(' data-p="{}"').format(number(points)) if points and points < max_points else Markup("")
    return Markup('<td class="v {}"{}>{}</td>').format(verdict, partial, words)


def _verdicts_seen(figures: Summary) -> list[Verdict]:
    seen = {verdict for item in figures.items for verdict in item.verdicts}
    return [verdict for verdict in VERDICTS if verdict in seen]


def _first_columns(figures: Summary) -> list[int]:
    """The places, from 1, of the table columns where another function's items begin."""
    functions = ["", *(item.function for item in figures.items)]
    changes = (place for place, (before, here) in enumerate(pairwise(functions)) if before != here)
    return [FIRST_ITEM_COLUMN + place for place in changes]


def _histogram(figures: Summary) -> dict[str, Any] | None:
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


def _change_order(change: Change) -> tuple[bool, float, str]:
    """What is no difference in points first, then the greatest loss."""
    return change.difference is not None, change.difference or 0.0, change.student


def _times(slowest: Sequence[Slow], run: Mapping[str, Any]) -> Times | None:
    times = Times(str(run.get("started") or ""), run.get("seconds"), tuple(slowest))
    return times if times != Times("", None, ()) else None


def _slow(report: Report) -> Slow:
    longest = max(report.items, key=lambda item: item.seconds)
    total = sum(item.seconds for item in report.items)
    return Slow(report.student, total, longest.item, longest.seconds, longest.verdict)
