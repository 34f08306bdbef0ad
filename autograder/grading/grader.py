"""One submission and one assignment → a Report. The only orchestrator: it runs, compares, names and words."""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np

from autograder.grading.cases import Case
from autograder.grading.counterexamples.drawing import Drawing
from autograder.grading.counterexamples.rows import RowSearch, read_rows
from autograder.grading.counterexamples.search import Search, with_counterexamples
from autograder.grading.counterexamples.typed import calls_of
from autograder.grading.fixtures import Fixtures
from autograder.grading.items import Assignment, Item
from autograder.grading.judging import (
    COUNTS_ONCE,
    ItemJudge,
    Judge,
    Judged,
    load_failure,
    not_graded,
    nothing_to_grade,
    withheld,
)
from autograder.grading.known_mistakes import Answer, fingerprint, names_of_items
from autograder.grading.remarks.details import Details
from autograder.grading.remarks.pictures import curve_of, picture_of
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.submissions.submission import Submission, outline, outlined, written
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.report import ItemResult, Report, SubmissionInfo


class Runner(Protocol):
    """What runs a program on requests: a sandbox, or in a notebook the student's own kernel."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that the program runs under."""

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """The outcome of each request, in order."""


@dataclass(frozen=True)
class Grader:
    """What grading one submission needs besides the submission.

    drawing   draws counterexamples where a hidden case fails; None where none are looked for
    rows      probes whose answers are by rows, to which public cases are cut where there are no hidden ones
    """

    assignment: Assignment
    fixtures: Fixtures
    given: Mapping[str, str]
    probes: str
    drawing: Drawing | None = None
    rows: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, assignment: Assignment, fixtures: Fixtures, *, counterexamples: bool = True) -> Grader:
        """Read the given modules and the probes once, and what draws counterexamples, if they are wanted."""
        given, probes = assignment.given_sources(), assignment.probes_source()
        if not counterexamples:
            return cls(assignment, fixtures, given, probes)
        return cls(assignment, fixtures, given, probes, Drawing.of(assignment), read_rows(assignment))

    def grade(self, submission: Submission, sandbox: Runner, items: Sequence[Item] | None = None) -> Report:
        """The report of one submission, of all items or of some.

        A fault of the grader (a sandbox that will not start, a file that the grader cannot read) makes every item
        `not_graded`; nothing that a student does raises here.
        """
        return self._grade(submission, sandbox, self.assignment.items if items is None else items, ())[0]

    def grade_and_show(self, submission: Submission, sandbox: Runner) -> tuple[Report, Details]:
        """The report, and what its feedback page shows besides: curves and pictures. It runs the curves as well."""
        return self._grade(submission, sandbox, self.assignment.items, self.assignment.curves)

    def _grade(
        self, submission: Submission, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item]
    ) -> tuple[Report, Details]:
        shown, cause = Details(submission.sha256, self.fixtures.sha256), ""
        try:
            with np.errstate(all="ignore"):  # of odd values nobody is warned on the terminal of whoever grades
                results, cause, shown = self._results(submission, sandbox, items, curves, shown)
        except GraderFault as fault:
            results = [not_graded(item, str(fault)) for item in items]
        except OSError as error:  # no memory to start a worker, no descriptor left
            results = [not_graded(item, f"The machine failed while grading: {error}.") for item in items]
        except KitError:
            raise
        except Exception as error:  # whatever was handed in, it costs this student a second look, and the class nothing
            results = [not_graded(item, _own_fault(error)) for item in items]
        report = Report(
            student=submission.student,
            assignment=self.assignment.name,
            submission=SubmissionInfo(submission.path, submission.sha256),
            fixtures=self.fixtures.sha256,
            isolation=sandbox.layers,
            items=tuple(results),
            cause=cause,
            identity=submission.identity,
        )
        return report, shown

    def _results(
        self, submission: Submission, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item], shown: Details
    ) -> tuple[list[ItemResult], str, Details]:
        if submission.fault:
            return [not_graded(item, submission.fault) for item in items], "", shown
        if submission.problem:
            return [nothing_to_grade(item, self.fixtures.of_item(item.id)) for item in items], submission.problem, shown
        program = self._program(submission)
        outcomes = self._run(program, sandbox, items)
        module = self.assignment.module
        failure = load_failure(module, submission, list(outcomes.values()))
        judge = Judge(module, submission, failure, self.assignment.renamed)
        judged = withheld({item.id: self._judged(item, outcomes, judge) for item in items})
        names = self._names(items, outcomes, judged)
        functions = outline(self.assignment.untouched_source()), outlined(submission)
        told = ItemJudge(self.assignment.items, self.fixtures, judged, outcomes, functions)
        results = [told.result(item, names.get(item.id, ())) for item in items]
        results = self._with_counterexamples(results, submission, program, sandbox)
        outcomes |= self._run(program, sandbox, (), curves)  # last, and in a worker of their own: they earn nothing
        cause = judge.causes([one for found in judged.values() for one in found])
        return results, cause, self._details(results, curves, outcomes, judge, shown)

    def _run(
        self, program: Program, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item] = ()
    ) -> dict[str, Outcome]:
        """What became of each case, by its id."""
        asked = self.fixtures.requests(tuple(items), tuple(curves))
        requests = list(asked.values())
        outcomes = sandbox.run(program, requests, load_timeout=self.assignment.load_timeout) if requests else []
        return dict(zip(asked, outcomes, strict=True))

    def _program(self, submission: Submission) -> Program:
        # Of wall clock, for a call that waits uses no other. A busy machine costs a right answer no points: its cases
        # take a second or two, a thirtieth of the budget, and are run before anything else.
        chosen = self.assignment
        allowed, until = chosen.only_packages, time.perf_counter() + chosen.budget
        return Program(
            chosen.module, submission.source, self.given, self.probes, chosen.needs_torch, allowed, until=until
        )

    def _with_counterexamples(
        self, results: Sequence[ItemResult], submission: Submission, program: Program, sandbox: Runner
    ) -> list[ItemResult]:
        """With an oracle, of what fails unseen; without one, in a student's folder, a row of what fails."""
        items, timeout, place = self.assignment.items, self.assignment.load_timeout, submission.place
        if self.drawing is not None and self.fixtures.holds_hidden:
            search = Search(self.drawing, program, sandbox, timeout, submission.sha256, place)
            return with_counterexamples(results, items, search, unseen=True)
        by_rows = RowSearch(self.rows, self.fixtures.cases, program, sandbox, timeout, place).after(results)
        return with_counterexamples(results, items, by_rows if self.rows else None, unseen=False)

    def _details(
        self,
        results: Sequence[ItemResult],
        curves: Sequence[Item],
        outcomes: Mapping[str, Outcome],
        judge: Judge,
        shown: Details,
    ) -> Details:
        timeouts = {curve.id: curve.timeout for curve in curves}
        cases = [case for case in self.fixtures.curves if case.id in timeouts]
        place, failure = judge.submission.place, judge.load_failure
        found = [curve_of(case, outcomes[case.id], timeouts[case.id], failure, place) for case in cases]
        failed = [next((case.case for case in item.cases if case.verdict == "failed"), None) for item in results]
        pictures = [picture_of(case, outcomes[case.id]) for case in self.fixtures.cases if case.id in failed]
        wrong = {item.function for item in results if item.verdict == "failed"}
        answers, code = self._answers(results, outcomes), written(judge.submission, wrong)
        shown = replace(shown, curves=tuple(found), pictures=tuple(filter(None, pictures)))
        return replace(shown, answers=answers, code=code, calls=calls_of(results, self.fixtures.cases))

    def _answers(self, results: Sequence[ItemResult], outcomes: Mapping[str, Outcome]) -> dict[str, str]:
        """The fingerprints of wrong answers that no known mistake gives, by item."""
        failed = [item for item in results if item.verdict == "failed" and not item.message.startswith(COUNTS_ONCE)]
        unnamed = [item.item for item in failed if not item.mistakes]
        seen = {
            item: [(c.id, c.expected, _answer_of(outcomes[c.id])) for c in self.fixtures.of_item(item)]
            for item in unnamed
        }
        return {item: fingerprint(cases) for item, cases in seen.items()}

    def _judged(self, item: Item, outcomes: Mapping[str, Outcome], judge: Judge) -> list[Judged]:
        return [judge.judge(case, outcomes[case.id], item.timeout) for case in self.fixtures.of_item(item.id)]

    def _names(
        self, items: Sequence[Item], outcomes: Mapping[str, Outcome], judged: Mapping[str, Sequence[Judged]]
    ) -> dict[str, tuple[str, ...]]:
        """The known mistakes that a function's answers are, in every case of it that ran, by the item."""
        ids = {item.id for item in items}
        wrong = {item.function for item in items if not all(one.passed for one in judged[item.id])}
        cases: dict[str, list[Case]] = {item.function: [] for item in items}
        for case in self.fixtures.cases:
            if case.item in ids and case.function in wrong:
                cases[case.function].append(case)
        answers = {case.id: _answer_of(outcomes[case.id]) for found in cases.values() for case in found}
        return {item: names for found in cases.values() for item, names in names_of_items(found, answers).items()}


def _answer_of(outcome: Outcome) -> Answer | None:
    """What there is to look at: what was returned, or the exception."""
    return outcome.observation if outcome.observation is not None else outcome.raised


def _own_fault(error: Exception) -> str:
    """What staff are told of an error of the grader itself: its kind and its place, nothing that a student chose."""
    kit = PurePath(__file__).parents[1]
    places = [one for one in traceback.extract_tb(error.__traceback__) if PurePath(one.filename).is_relative_to(kit)]
    where = f"{PurePath(places[-1].filename).name}, line {places[-1].lineno}"
    return f"The grader itself failed at this submission ({type(error).__name__} in {where}): report it with the file."
