"""The reports of a class → the page for the staff: figures, and a table of all students."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from autograder.gradebook.class_statistics import Summary, Tally
from autograder.gradebook.final_grades import Final
from autograder.gradebook.item_statistics import SMALLEST_CLASS
from autograder.gradebook.mistake_statistics import MOST_NAMED
from autograder.pages.class_table import columns_of, first_columns, rows_of
from autograder.pages.class_times import Clock, Times, histogram
from autograder.pages.guidance.teaching import Background, costliest_first, examples, lessons
from autograder.pages.html import page_template, script_and_policy
from autograder.vocabulary.report import VERDICTS, Report, Verdict
from autograder.vocabulary.text import STRICT, visible

ABSENT = "not in the class"
NOT_GRADED = "not graded"
RUN_BEGIN = "<!-- of this run alone -->"
RUN_END = "<!-- end of what is of this run alone -->"


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
        self._tally, self._clock = Tally(), Clock()
        self._assignment = ""
        self._layers: set[str] | None = None
        self._fixtures: set[str] = set()
        self._student: str | None = None
        self._repeated: dict[str, None] = {}
        self._count = 0

    def add(self, report: Report, final: Final | None = None, answers: Mapping[str, str] | None = None) -> None:
        """Count a report in; reports come in the order of their students.

        final     what a course's rules make of it, where it has some
        answers   item → fingerprint of an answer that no known mistake gives
        """
        self._count += 1
        self._tally.add(report, final, answers)
        self._clock.add(report)
        self._assignment = self._assignment or report.assignment
        self._layers = set(report.isolation) if self._layers is None else self._layers & set(report.isolation)
        self._fixtures.add(report.fixtures)
        if report.student == self._student and len(self._repeated) < MOST_NAMED:
            self._repeated[report.student] = None
        self._student = report.student

    def summary(self) -> Summary:
        """The figures of all that was added."""
        return self._tally.summary()

    def html(
        self,
        reports: Iterable[Report],
        run: Mapping[str, Any],
        changes: Iterable[Change] | None = None,
        finals: Mapping[str, Final] | None = None,
        background: Background | None = None,
    ) -> Iterator[str]:
        """The page in pieces. `reports` are those that were added, once more and in the same order, for the table.

        `run` is what `run.json` holds, every key of it optional. `changes` are those since the last run, None where
        there was none. They and the measured times stand between the comments RUN_BEGIN and RUN_END: two runs
        over the same class differ nowhere else. `finals` are the final grades, None where no rules apply.
        """
        figures, known = self.summary(), background or Background()
        script, policy = script_and_policy()
        columns, mistakes = columns_of(figures), costliest_first(figures)
        isolation = [str(layer) for layer in run.get("isolation", sorted(self._layers or ())) or ()]
        names = [one.mistake for one in mistakes]
        return page_template("index.html").generate(
            policy=policy,
            script=script,
            assignment=str(run.get("assignment") or self._assignment or "No submissions"),
            figures=figures,
            finals=finals is not None,
            smallest=SMALLEST_CLASS,
            flagged=[item for item in figures.items if item.flags],
            background=known,
            mistakes=mistakes,
            examples=examples(figures, known),
            teach=lessons(figures, known),
            warnings=self._warnings(isolation),
            histogram=histogram(figures),
            verdicts=_verdicts_seen(figures),
            columns=columns,
            first_columns=first_columns(columns),
            rows=rows_of(reports, finals, columns, names) if self._count else (),
            run=run,
            times=self._times(run),
            changes=None if changes is None else sorted(changes, key=_change_order),
            absent=ABSENT,
            run_begin=Markup(RUN_BEGIN),
            run_end=Markup(RUN_END),
            isolation=isolation,
            versions=[f"{name} {version}" for name, version in sorted(dict(run.get("versions") or {}).items())],
            fixture_hashes=sorted(self._fixtures),
        )

    def _times(self, run: Mapping[str, Any]) -> Times | None:
        times = Times(str(run.get("started") or ""), run.get("seconds"), self._clock.unusual())
        return times if times != Times("", None, ()) else None

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


def _verdicts_seen(figures: Summary) -> list[Verdict]:
    seen = {verdict for item in figures.items for verdict in item.verdicts}
    return [verdict for verdict in VERDICTS if verdict in seen]


def _change_order(change: Change) -> tuple[bool, float, str]:
    """What is no difference in points first, then the greatest loss."""
    return change.difference is not None, change.difference or 0.0, change.student
