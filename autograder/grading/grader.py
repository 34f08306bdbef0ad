"""Grade one submission: run its cases, compare what came back, name known mistakes, word the rest. Start here.

Grader.grade → Sandbox.run → Judge.judge → compare → names_of_items → hint_of → counterexamples → Report
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Protocol

import numpy as np

from autograder.grading.assignment import Assignment, Item
from autograder.grading.clues import about_updates, explain
from autograder.grading.counterexamples import CallRunner, Drawing, Search, calls_of
from autograder.grading.details import Details, curve_of, picture_of
from autograder.grading.fixtures import Case, Fixtures
from autograder.grading.hints import NAMED, Failure, hint_of, item_to_start_with, other_default
from autograder.grading.judging import RIGHT_FORM, WORST_FIRST, Judge, Judged, load_failure, withhold
from autograder.grading.known_mistakes import Answer, fingerprint, names_of_items
from autograder.grading.wording import which_case
from autograder.sandbox.calls import Outcome, Program
from autograder.submissions.submission import Submission, outline, outlined, written
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.report import NOT_REACHED, CaseResult, ItemResult, Report, SubmissionInfo

NOTHING_READ = f"{NOT_REACHED}: nothing to grade could be read."


class Runner(CallRunner, Protocol):
    """What runs a program on requests: a sandbox, or in a notebook the student's own kernel."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that the program runs under."""


@dataclass(frozen=True)
class Grader:
    """What grading one submission needs besides the submission.

    drawing   draws counterexamples where a hidden case fails; None where none are looked for
    """

    assignment: Assignment
    fixtures: Fixtures
    given: Mapping[str, str]
    probes: str
    drawing: Drawing | None = None

    @classmethod
    def of(cls, assignment: Assignment, fixtures: Fixtures, *, counterexamples: bool = True) -> Grader:
        """Read the given modules and the probes once, and what draws counterexamples, if they are wanted."""
        wanted = counterexamples and fixtures.holds_hidden
        drawing = Drawing.of(assignment) if wanted else None
        return cls(assignment, fixtures, assignment.given_sources(), assignment.probes_source(), drawing)

    def grade(self, submission: Submission, sandbox: Runner, items: Sequence[Item] | None = None) -> Report:
        """Grade one submission, all items or some.

        A fault of the grader (a sandbox that will not start, a file that the grader cannot read) makes every item
        `not_graded`; nothing that a student does raises here.
        """
        return self._grade(submission, sandbox, self.assignment.items if items is None else items, ())[0]

    def grade_and_show(self, submission: Submission, sandbox: Runner) -> tuple[Report, Details]:
        """Grade one submission, and collect what its feedback page shows besides. This runs the curves as well."""
        return self._grade(submission, sandbox, self.assignment.items, self.assignment.curves)

    def _grade(
        self, submission: Submission, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item]
    ) -> tuple[Report, Details]:
        details, cause = Details(submission.sha256, self.fixtures.sha256), ""
        try:
            if submission.fault:
                results = [not_graded(item, submission.fault) for item in items]
            elif submission.problem:
                results = [nothing_to_grade(item, self.fixtures.of_item(item.id)) for item in items]
                cause = submission.problem
            else:
                with np.errstate(all="ignore"):  # the terminal of whoever grades shows no warnings of odd values
                    results, cause, details = self._run_and_judge(submission, sandbox, items, curves, details)
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
        return report, details

    def _run_and_judge(
        self, submission: Submission, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item], details: Details
    ) -> tuple[list[ItemResult], str, Details]:
        chosen = self.assignment
        # Of wall clock, for a call that waits uses no other. A busy machine costs a right answer no points: its cases
        # take a second or two, a thirtieth of the budget, and are run before anything else.
        until = time.perf_counter() + chosen.budget
        allowed, given = chosen.only_packages, (self.given, self.probes)
        program = Program(chosen.module, submission.source, *given, chosen.needs_torch, allowed, until=until)
        outcomes = self._run(program, sandbox, items)
        failure = load_failure(chosen.module, submission, list(outcomes.values()))
        judge = Judge(chosen.module, submission, failure, chosen.renamed)
        judged = withhold(
            {
                item.id: [judge.judge(case, outcomes[case.id], item.timeout) for case in self.fixtures.of_item(item.id)]
                for item in items
            }
        )
        names: dict[str, tuple[str, ...]] = {}  # of each item, the known mistakes that its function's answers are
        every = [one for verdicts in judged.values() for one in verdicts]
        for function in dict.fromkeys(one.case.function for one in every if not one.passed):
            cases = [one.case for one in every if one.case.function == function]
            names |= names_of_items(cases, {case.id: _answer_of(outcomes[case.id]) for case in cases})
        alone = self._right_alone(items, judged, names, judge, program, sandbox)
        results = [self._result(item, judged, outcomes, names, alone, submission) for item in items]
        if self.drawing is not None:
            search = Search(self.drawing, program, sandbox, chosen.load_timeout, submission.sha256, submission.place)
            results = search.with_counterexamples(results, chosen.items)
        outcomes |= self._run(program, sandbox, (), curves)  # last, and in a worker of their own: they earn nothing
        return results, judge.causes(every), self._details(results, curves, outcomes, judge, details)

    def _run(
        self, program: Program, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item] = ()
    ) -> dict[str, Outcome]:
        """Run each case: what became of it, by its id."""
        requests = self.fixtures.requests(tuple(items), tuple(curves))
        calls = list(requests.values())
        outcomes = sandbox.run(program, calls, load_timeout=self.assignment.load_timeout) if calls else []
        return dict(zip(requests, outcomes, strict=True))

    def _right_alone(
        self,
        items: Sequence[Item],
        judged: Mapping[str, Sequence[Judged]],
        names: Mapping[str, Sequence[str]],
        judge: Judge,
        program: Program,
        sandbox: Runner,
    ) -> set[str]:
        """Find the items whose first wrong case is right in a process of its own: something is kept between calls."""
        alone: set[str] = set()
        if "process" not in sandbox.layers:  # the student's own kernel keeps what it has
            return alone
        settled = set()  # functions whose first wrong case is wrong by itself, too
        for item in items:
            first = next((one for one in judged[item.id] if not one.passed and not one.withheld), None)
            if first is None or names.get(item.id) or item.function in settled:
                continue
            if first.result.visibility == "hidden" or first.result.verdict not in NAMED:
                continue
            request = first.case.request(item)
            try:
                [outcome] = sandbox.run(program, [request], load_timeout=self.assignment.load_timeout)
            except (GraderFault, OSError):  # the points are known already, and hold without a hint
                return alone
            if judge.judge(first.case, outcome, item.timeout).passed:
                alone.add(item.id)
            else:
                settled.add(item.function)
        return alone

    def _result(
        self,
        item: Item,
        judged: Mapping[str, Sequence[Judged]],
        outcomes: Mapping[str, Outcome],
        named: Mapping[str, tuple[str, ...]],
        alone: set[str],
        submission: Submission,
    ) -> ItemResult:
        """Give an item its points, its first failure in words, and a hint."""
        verdicts = judged[item.id]
        results = tuple(one.result for one in verdicts)
        points = round(item.points * sum(one.passed for one in verdicts) / len(verdicts), 2)
        seconds = round(sum(outcomes[one.case.id].seconds for one in verdicts), 4)
        known = item.id, item.function, item.title, points, item.points
        failing = [index for index, one in enumerate(verdicts) if not one.passed]
        if not failing:
            return ItemResult(*known, "passed", (), "", "", seconds, results)
        before = next((index for index in failing if not verdicts[index].withheld), failing[0])
        first = verdicts[before]
        if first.withheld:
            elsewhere = item_to_start_with(self.assignment.items, first.case, judged, "", withheld=True)
            hint = hint_of(Failure(item, first, elsewhere=elsewhere))
            return ItemResult(*known, "failed", (), first.result.message, hint, seconds, results)
        names = named.get(item.id, ()) if first.result.verdict in NAMED else ()
        seen = outcomes[first.case.id].observation if first.result.visibility == "public" else None
        updates = reason = default = ""
        if first.mismatch is not None and seen is not None:
            updates = about_updates(first.case, seen)
        if not names:
            cases = [verdicts[index].case for index in failing]
            default = other_default(cases, outline(self.assignment.untouched_source()), outlined(submission))
        if first.mismatch is not None and not names and not default:
            answers = [(one.case, outcomes[one.case.id].observation) for one in verdicts]
            relatives = [case for case in self.fixtures.cases if case.function == item.function]
            reason = explain([(case, seen) for case, seen in answers if seen is not None], relatives)
        code = written(submission, {item.function}).get(item.function, "")
        of_function = [one for verdicts in judged.values() for one in verdicts if one.case.function == item.function]
        unnamed = [
            other.id
            for other in self.assignment.items
            if other.function == item.function
            and not named.get(other.id)
            and not all(one.passed for one in judged.get(other.id, ()))
        ]
        failure = Failure(
            item=item,
            first=first,
            before=before,
            names=names,
            hints=self.fixtures.hints,
            updates=updates,
            reason=reason,
            other_default=default,
            elsewhere=item_to_start_with(self.assignment.items, first.case, judged, code, withheld=False),
            right_alone=item.id in alone,
            is_first=item.id in unnamed[:1],
            law_alone=all(one.case.hint == first.case.hint for one in of_function if not one.passed),
            code=code,
        )
        special = "" if first.result.verdict == "not_run" else which_case(first.case, before)
        message = special + "\n".join(filter(None, [first.result.message, updates, reason]))
        results = tuple(replace(one, message=message) if one == first.result else one for one in results)
        verdict = next(v for v in WORST_FIRST if v in {one.verdict for one in results})
        return ItemResult(*known, verdict, names, message, hint_of(failure), seconds, results)

    def _details(
        self,
        results: Sequence[ItemResult],
        curves: Sequence[Item],
        outcomes: Mapping[str, Outcome],
        judge: Judge,
        details: Details,
    ) -> Details:
        """Collect what pages show besides the report."""
        timeouts = {curve.id: curve.timeout for curve in curves}
        submission, failure = judge.submission, judge.load_failure
        drawn = [
            curve_of(case, outcomes[case.id], timeouts[case.id], failure, submission.place)
            for case in self.fixtures.curves
            if case.id in timeouts
        ]
        failed = {next((case.case for case in item.cases if case.verdict == "failed"), None) for item in results}
        pictures = [picture_of(case, outcomes[case.id]) for case in self.fixtures.cases if case.id in failed]
        wrong = [item for item in results if item.verdict == "failed"]
        answers = {
            item.item: fingerprint(
                (case.id, case.expected, _answer_of(outcomes[case.id])) for case in self.fixtures.of_item(item.item)
            )
            for item in wrong
            if not item.mistakes and not item.message.startswith(RIGHT_FORM)
        }
        return replace(
            details,
            curves=tuple(drawn),
            pictures=tuple(picture for picture in pictures if picture is not None),
            answers=answers,
            code=written(submission, {item.function for item in wrong}),
            calls=calls_of(results, self.fixtures.cases),
        )


def _answer_of(outcome: Outcome) -> Answer | None:
    """Return what there is to look at: what was returned, or the exception."""
    return outcome.observation if outcome.observation is not None else outcome.raised


def _own_fault(error: Exception) -> str:
    """Tell staff of an error of the grader itself: its kind and its place, nothing that a student chose."""
    kit = PurePath(__file__).parents[1]
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if PurePath(frame.filename).is_relative_to(kit)
    ]
    where = f"{PurePath(frames[-1].filename).name}, line {frames[-1].lineno}"
    return f"The grader itself failed at this submission ({type(error).__name__} in {where}): report it with the file."


def not_graded(item: Item, reason: str) -> ItemResult:
    """Report the grader's own fault: no points and no zero."""
    return ItemResult(item.id, item.function, item.title, None, item.points, "not_graded", (), reason, "", 0.0, ())


def nothing_to_grade(item: Item, cases: Sequence[Case]) -> ItemResult:
    """Give a zero, for nothing could be read."""
    lost = tuple(CaseResult(case.id, case.visibility, "missing", NOTHING_READ) for case in cases)
    return ItemResult(item.id, item.function, item.title, 0.0, item.points, "missing", (), NOTHING_READ, "", 0.0, lost)
