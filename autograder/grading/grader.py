"""One submission and one assignment → a Report. The only orchestrator: it runs, compares, names and words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from autograder.grading.cases import Case
from autograder.grading.compare import compare, matching_mistakes
from autograder.grading.feedback.details import Details
from autograder.grading.feedback.pictures import curve_of, picture_of
from autograder.grading.feedback.reasons import explain
from autograder.grading.feedback.wording import about_exception, about_mismatch, about_outcome, hint_for
from autograder.grading.fixtures import Fixtures
from autograder.grading.items import Assignment, Item
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.observation import Observation, Raised
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import CaseResult, ItemResult, Report, SubmissionInfo, Verdict

NOT_RUN_ORDER: tuple[Verdict, ...] = ("timed_out", "crashed", "out_of_memory", "raised", "missing", "failed", "not_run")
HINTED: tuple[Verdict, ...] = ("failed", "raised")  # of work that is not there, or never ended, a hint would miss
MAX_NAMED = 3


class Runner(Protocol):
    """What runs a program on requests: a sandbox, or in a notebook the student's own kernel."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that the program runs under."""

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """The outcome of each request, in order."""


@dataclass(frozen=True)
class Grader:
    """What grading one submission needs besides the submission."""

    assignment: Assignment
    fixtures: Fixtures
    given: Mapping[str, str]
    probes: str

    @classmethod
    def of(cls, assignment: Assignment, fixtures: Fixtures) -> Grader:
        """Read the given modules and the probes once."""
        return cls(assignment, fixtures, assignment.given_sources(), assignment.probes_source())

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
        shown = Details(submission.sha256, self.fixtures.sha256)
        try:
            results, shown = self._results(submission, sandbox, items, curves, shown)
        except GraderFault as fault:
            results = [not_graded(item, str(fault)) for item in items]
        except OSError as error:  # no memory to start a worker, no descriptor left
            results = [not_graded(item, f"The machine failed while grading: {error}.") for item in items]
        report = Report(
            student=submission.student,
            assignment=self.assignment.name,
            submission=SubmissionInfo(submission.path, submission.sha256),
            fixtures=self.fixtures.sha256,
            isolation=sandbox.layers,
            items=tuple(results),
        )
        return report, shown

    def _results(
        self, submission: Submission, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item], shown: Details
    ) -> tuple[list[ItemResult], Details]:
        if submission.fault:
            return [not_graded(item, submission.fault) for item in items], shown
        if submission.problem:
            return [self._nothing_to_grade(item, submission.problem) for item in items], shown
        outcomes = self._run(submission, sandbox, items, curves)
        load_failure = _load_failure(self.assignment.module, list(outcomes.values()))
        results = [self._item_result(item, outcomes, load_failure) for item in items]
        return results, self._details(results, curves, outcomes, load_failure, shown)

    def _run(
        self, submission: Submission, sandbox: Runner, items: Sequence[Item], curves: Sequence[Item]
    ) -> dict[str, Outcome]:
        """What became of each case, by its id."""
        cases = [case for item in items for case in self.fixtures.of_item(item.id)]
        drawn = {curve.id for curve in curves}
        cases += [case for case in self.fixtures.curves if case.id in drawn]
        cases.sort(key=lambda case: case.visibility == "hidden")  # last: what is shown before cannot tell of them
        known = {item.id: item for item in (*items, *curves)}
        requests = [case.request(known[case.item]) for case in cases]
        program = Program(self.assignment.module, submission.source, self.given, self.probes)
        outcomes = sandbox.run(program, requests, load_timeout=self.assignment.load_timeout)
        return dict(zip((case.id for case in cases), outcomes, strict=True))

    def _details(
        self,
        results: Sequence[ItemResult],
        curves: Sequence[Item],
        outcomes: Mapping[str, Outcome],
        load_failure: str,
        shown: Details,
    ) -> Details:
        timeouts = {curve.id: curve.timeout for curve in curves}
        cases = [case for case in self.fixtures.curves if case.id in timeouts]
        found = [curve_of(case, outcomes[case.id], timeouts[case.id], load_failure) for case in cases]
        failed = [next((case.case for case in item.cases if case.verdict == "failed"), None) for item in results]
        pictures = [picture_of(case, outcomes[case.id]) for case in self.fixtures.cases if case.id in failed]
        return replace(shown, curves=tuple(found), pictures=tuple(one for one in pictures if one is not None))

    def _nothing_to_grade(self, item: Item, problem: str) -> ItemResult:
        cases = tuple(
            CaseResult(case.id, case.visibility, "missing", problem) for case in self.fixtures.of_item(item.id)
        )
        return _result(item, 0.0, "missing", problem, "", cases)

    def _item_result(self, item: Item, outcomes: Mapping[str, Outcome], load_failure: str) -> ItemResult:
        cases = self.fixtures.of_item(item.id)
        judged = [_judge(case, outcomes[case.id], item.timeout, load_failure) for case in cases]
        passed = sum(result.verdict == "passed" for result in judged)
        points = round(item.points * passed / len(judged), 2)
        seconds = round(sum(outcomes[case.id].seconds for case in cases), 4)
        if passed == len(judged):
            return _result(item, points, "passed", "", "", tuple(judged), seconds=seconds)
        first = next(result for result in judged if result.verdict != "passed")
        slugs = self._mistakes(cases, outcomes, first.verdict)
        if not slugs and first.verdict == "failed":
            first = self._with_reason(first, cases, outcomes)
            judged = [first if result.case == first.case else result for result in judged]
        verdict = _worst(judged)
        hint = "" if load_failure or verdict not in HINTED else hint_for(slugs, dict(self.fixtures.hints), item.hint)
        return _result(item, points, verdict, first.message, hint, tuple(judged), slugs, seconds)

    def _with_reason(self, failed: CaseResult, cases: Sequence[Case], outcomes: Mapping[str, Outcome]) -> CaseResult:
        """The result with what can be seen of a mistake that has no name."""
        seen = [(case, found) for case in cases if (found := outcomes[case.id].observation) is not None]
        relatives = [case for case in self.fixtures.cases if case.function == cases[0].function]
        reason = explain(seen, self.fixtures.hints, relatives)
        return replace(failed, message=f"{failed.message}\n{reason}") if reason else failed

    def _mistakes(self, cases: Sequence[Case], outcomes: Mapping[str, Outcome], verdict: Verdict) -> tuple[str, ...]:
        if verdict not in ("failed", "raised"):
            return ()
        seen = [_seen(outcomes[case.id]) for case in cases]
        triples = [(case.expected, case.mistakes, one) for case, one in zip(cases, seen, strict=True) if one]
        slugs = matching_mistakes(triples) if len(triples) == len(cases) else []
        everywhere = self._match_function(cases[0].function, slugs, outcomes)
        named = everywhere or slugs
        return tuple(named) if len(named) <= MAX_NAMED else ()

    def _match_function(self, function: str, slugs: Sequence[str], outcomes: Mapping[str, Outcome]) -> list[str]:
        """Those of the mistakes that fit every case of the function, not this item alone."""
        triples = [
            (case.expected, case.mistakes, seen)
            for case in self.fixtures.cases
            if case.function == function and case.id in outcomes and (seen := _seen(outcomes[case.id])) is not None
        ]
        fitting = matching_mistakes(triples) if slugs else []
        return [slug for slug in slugs if slug in fitting]


def _seen(outcome: Outcome) -> Observation | Raised | None:
    return outcome.observation if outcome.observation is not None else outcome.raised


def _judge(case: Case, outcome: Outcome, timeout: float, load_failure: str) -> CaseResult:
    if outcome.observation is None:
        verdict: Verdict = "raised" if outcome.status == "observed" else outcome.status
        if not load_failure and outcome.raised is not None and outcome.raised.types[0] == "NotImplementedError":
            verdict = "missing"
        message = load_failure or about_outcome(case, outcome, timeout)
        return CaseResult(case.id, case.visibility, verdict, message)
    mismatch = compare(case.expected, outcome.observation)
    if mismatch is None:
        return CaseResult(case.id, case.visibility, "passed", "")
    if mismatch.rung == "error" and _is_unfinished(mismatch.observed):
        return CaseResult(case.id, case.visibility, "missing", f"{case.function} is not implemented yet.")
    return CaseResult(case.id, case.visibility, "failed", about_mismatch(case, mismatch))


def _is_unfinished(error: object) -> bool:
    """Whether an error that a probe caught is the stub's own."""
    types = error.get("types") if isinstance(error, dict) else None
    return isinstance(types, list) and types[:1] == ["NotImplementedError"]


def _load_failure(module: str, outcomes: Sequence[Outcome]) -> str:
    """What kept the module from loading; "" where it loaded."""
    failed = next((outcome for outcome in outcomes if outcome.loading), None)
    if failed is None:
        return ""
    name = f"{module}.py"
    if failed.raised is not None:
        return f"{name} could not be imported. " + about_exception("Importing it", failed.raised, reveal=True)
    if failed.exceeded:
        return f"{name} could not be imported: importing it {failed.exceeded}."
    if failed.status == "timed_out":
        return f"{name} had not finished importing in time. Does code at its top level train a model or wait?"
    return f"{name} could not be imported: it ended the Python process ({failed.detail})."


def _worst(judged: Sequence[CaseResult]) -> Verdict:
    verdicts = {result.verdict for result in judged}
    return next(verdict for verdict in NOT_RUN_ORDER if verdict in verdicts)


def not_graded(item: Item, reason: str) -> ItemResult:
    """The grader's own fault: no points and no zero."""
    return _result(item, None, "not_graded", reason, "", ())


def _result(
    item: Item,
    points: float | None,
    verdict: Verdict,
    message: str,
    hint: str,
    cases: tuple[CaseResult, ...],
    mistakes: tuple[str, ...] = (),
    seconds: float = 0.0,
) -> ItemResult:
    return ItemResult(
        item=item.id,
        function=item.function,
        title=item.title,
        points=points,
        max_points=item.points,
        verdict=verdict,
        mistakes=mistakes,
        message=message,
        hint=hint,
        seconds=seconds,
        cases=cases,
    )
