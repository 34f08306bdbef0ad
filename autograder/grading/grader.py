"""Grade one submission: run its cases, compare what came back, name known mistakes, word the rest. Start here.

Grader.grade → Grading → Sandbox.run → Judge.judge → compare → names_of_items → hint_of → counterexamples → Report
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Protocol

import numpy as np

from autograder.grading.assignment import Assignment, Item, find_assignments
from autograder.grading.counterexamples import CallRunner, Drawing, Search, calls_of
from autograder.grading.details import Details, curve_of, fingerprint, picture_of
from autograder.grading.fixtures import Case, Fixtures
from autograder.grading.hints import NAMED, Failure, hint_of, item_to_start_with, other_default
from autograder.grading.judging import WORST_FIRST, Judge, load_failure, withhold
from autograder.grading.known_mistakes import names_of_items
from autograder.grading.wording import about_updates, is_near_miss, which_case
from autograder.sandbox.calls import Program
from autograder.submissions.submission import Submission, outline, quoted, written
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.report import NOT_REACHED, CaseResult, ItemResult, Report, SubmissionInfo

NOTHING_READ = f"{NOT_REACHED}: nothing to grade could be read."
NEARLY_ALL = 0.8  # of the functions of another assignment: whoever defines them handed in work for that one


class Runner(CallRunner, Protocol):
    """What runs a program on requests: a sandbox, or in a notebook the student's own kernel."""

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that the program runs under."""


@dataclass(frozen=True)
class Grader:
    """What grading one submission needs besides the submission.

    drawing   draws counterexamples where a hidden case fails; None where none are looked for
    solution  text of the course's own module, by whose values lines are sought; "" in a handout
    others    the course's other assignments → their functions: a submission may be work for one of them
    """

    assignment: Assignment
    fixtures: Fixtures
    given: Mapping[str, str]
    probes: str
    drawing: Drawing | None = None
    others: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    solution: str = ""

    @classmethod
    def of(cls, assignment: Assignment, fixtures: Fixtures, *, counterexamples: bool = True) -> Grader:
        """Read the given modules and the probes once, and what draws counterexamples, if they are wanted."""
        wanted = counterexamples and fixtures.holds_hidden
        drawing = Drawing.of(assignment) if wanted else None
        others = {
            other.name: other.functions
            for other in (find_assignments(assignment.folder.parents[1]) if fixtures.holds_hidden else ())
            if other.name != assignment.name
        }
        path = assignment.solution / f"{assignment.module}.py"
        solution = path.read_text(encoding="utf-8") if path.is_file() else ""
        given, probes = assignment.given_sources(), assignment.probes_source()
        return cls(assignment, fixtures, given, probes, drawing, others, solution)

    @property
    def functions_of_course(self) -> list[str]:
        """The graded functions of all assignments: reading a submission says which of them it defines."""
        return sorted({*self.assignment.functions}.union(*self.others.values()))

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
        details = Details(submission.sha256, self.fixtures.sha256, answered=submission.answered)
        cause, results = "", list[ItemResult]()
        fault = submission.fault or None
        try:
            if fault is None and (cause := submission.problem or self.meant_for_another(submission)):
                results = [nothing_to_grade(item, self.fixtures.of_item(item.id)) for item in items]
            elif fault is None:
                with np.errstate(all="ignore"):  # the terminal of whoever grades shows no warnings of odd values
                    grading = Grading(self, submission, sandbox, items)
                    results = grading.results()
                    cause = grading.judge.causes([one for verdicts in grading.judged.values() for one in verdicts])
                    details = grading.details(details, results, curves)
        except GraderFault as error:
            fault = str(error)
        except OSError as error:  # no memory to start a worker, no descriptor left
            fault = f"The machine failed while grading: {error}."
        except KitError:
            raise
        except Exception as error:  # whatever was handed in, it costs this student a second look, and the class nothing
            # Staff are told the error's kind and place: its text may hold what the student wrote.
            kit, frames = PurePath(__file__).parents[1], traceback.extract_tb(error.__traceback__)
            last = [frame for frame in frames if PurePath(frame.filename).is_relative_to(kit)][-1]
            where = f"{type(error).__name__} in {PurePath(last.filename).name}, line {last.lineno}"
            fault = f"The grader itself failed at this submission ({where}): report it with the file."
        report = Report(
            student=submission.student,
            assignment=self.assignment.name,
            submission=SubmissionInfo(submission.path, submission.sha256),
            fixtures=self.fixtures.sha256,
            isolation=sandbox.layers,
            items=tuple(results if fault is None else [not_graded(item, fault) for item in items]),
            cause=cause,
            identity=submission.identity,
        )
        return report, details

    def meant_for_another(self, submission: Submission) -> str:
        """Name the assignment of the course that a submission is work for in place of this one; "" for none.

        It is where it defines nearly all functions of the other, and of this one none but those of that name there.
        """
        own, defines = set(self.assignment.functions), set(submission.defines)
        if 2 * len(own & defines) > len(own):
            return ""
        for other, functions in self.others.items():
            names = [name for name in functions if name in defines]
            if len(names) >= NEARLY_ALL * len(functions) and not defines & (own - set(functions)):
                what = f"{quoted(submission.path)} defines {', '.join(names[:3])}{' and others' * bool(names[3:])}"
                return f"This is {other}, not {self.assignment.name}: {what}."
        return ""


class Grading:
    """One submission on its way through grading: what is known of it so far.

    outcomes   of its cases, by id
    judged     item → the verdicts on its cases
    names      item → the known mistakes that its function's answers are
    """

    def __init__(self, grader: Grader, submission: Submission, sandbox: Runner, items: Sequence[Item]) -> None:
        """Run the cases of these items, judge them, and name known mistakes."""
        self.grader, self.submission, self.sandbox, self.items = grader, submission, sandbox, items
        chosen, fixtures = grader.assignment, grader.fixtures
        # Of wall clock, for a call that waits uses no other. A busy machine costs a right answer no points: its cases
        # take a second or two, a thirtieth of the budget, and are run before anything else.
        until = time.perf_counter() + chosen.budget
        text, allowed = (submission.source, grader.given, grader.probes), chosen.only_packages
        self.program = Program(chosen.module, *text, chosen.needs_torch, allowed, until=until)
        requests = fixtures.requests(tuple(items))
        outcomes = sandbox.run(self.program, list(requests.values()), load_timeout=chosen.load_timeout)
        self.outcomes = dict(zip(requests, outcomes, strict=True))
        self.judge = Judge(chosen.module, submission, load_failure(chosen.module, submission, outcomes), chosen.renamed)
        self.judged = withhold(
            {
                item.id: [self.judge.judge(case, self.outcomes[case.id], item.timeout) for case in cases]
                for item, cases in ((item, fixtures.of_item(item.id)) for item in items)
            }
        )
        self.names: dict[str, tuple[str, ...]] = {}
        every = [one for verdicts in self.judged.values() for one in verdicts]
        for function in dict.fromkeys(one.case.function for one in every if not one.passed):
            ran = [(one.case, self.outcomes[one.case.id]) for one in every if one.case.function == function]
            answers = {case.id: outcome.observation or outcome.raised for case, outcome in ran}
            self.names |= names_of_items([case for case, _ in ran], answers)

    def results(self) -> list[ItemResult]:
        """Give each item its points, its first failure in words, a hint, and a counterexample where one is needed."""
        results = []
        for item in self.items:
            verdicts = self.judged[item.id]
            cases = tuple(one.result for one in verdicts)
            points = round(item.points * sum(one.passed for one in verdicts) / len(verdicts), 2)
            seconds = round(sum(self.outcomes[one.case.id].seconds for one in verdicts), 4)
            known = item.id, item.function, item.title, points, item.points
            if all(one.passed for one in verdicts):
                results.append(ItemResult(*known, "passed", (), "", "", seconds, cases))
                continue
            failure = self._failure(item)
            first, message = failure.first, failure.first.result.message
            if not first.withheld:
                special = "" if first.result.verdict == "not_run" else which_case(first.case, failure.before)
                message = special + "\n".join(filter(None, [message, failure.updates]))
            cases = tuple(replace(one, message=message) if one == first.result else one for one in cases)
            verdict = next(v for v in WORST_FIRST if v in {one.verdict for one in cases})
            names = tuple(failure.names)
            results.append(ItemResult(*known, verdict, names, message, hint_of(failure), seconds, cases))
        if self.grader.drawing is None:
            return results
        runner = self.program, self.sandbox, self.grader.assignment.load_timeout
        search = Search(self.grader.drawing, *runner, self.submission.sha256, self.submission.place)
        return search.with_counterexamples(results, self.items)

    def _failure(self, item: Item) -> Failure:
        """Collect what is known of an item that fails."""
        chosen, verdicts = self.grader.assignment, self.judged[item.id]
        failing = [one for one in verdicts if not one.passed]
        first = next((one for one in failing if not one.withheld), failing[0])
        code = written(self.submission.source, self.submission.functions)
        elsewhere = item_to_start_with(chosen.items, first, self.judged, code)
        if first.withheld:
            return Failure(item, first, elsewhere=elsewhere)
        of_function = [one for judged in self.judged.values() for one in judged if one.case.function == item.function]
        names = self.names.get(item.id, ()) if first.result.verdict in NAMED else ()
        if elsewhere:  # what a mistake would return comes of right functions: of wrong ones it is seen by chance
            names = ()
        seen = self.outcomes[first.case.id].observation if first.result.visibility == "public" else None
        handed_out = {} if names else outline(chosen.untouched_source())
        wrong = [one for one in of_function if not one.passed]
        return Failure(
            item=item,
            first=first,
            before=next(place for place, one in enumerate(verdicts) if one is first),
            names=names,
            hints=self.grader.fixtures.hints,
            updates=about_updates(first.case, seen) if first.mismatch and seen else "",
            other_default=other_default([one.case for one in failing], handed_out, self.submission.functions),
            elsewhere=elsewhere,
            is_first=item.id == next((one.case.item for one in wrong if not self.names.get(one.case.item)), ""),
            all_near=all(
                one.mismatch is not None and is_near_miss(one.mismatch)
                for one in wrong
                if one.result.visibility == "public"
            ),
            law_alone=all(one.case.hint == first.case.hint for one in wrong),
            code=code.get(item.function, ""),
        )

    def details(self, details: Details, results: Sequence[ItemResult], curves: Sequence[Item]) -> Details:
        """Run the curves, last and in a worker of their own, for they earn nothing; collect what pages show besides."""
        fixtures, submission, load_timeout = self.grader.fixtures, self.submission, self.grader.assignment.load_timeout
        requests = fixtures.requests((), tuple(curves))
        run = self.sandbox.run(self.program, list(requests.values()), load_timeout=load_timeout) if requests else []
        outcomes, timeouts = dict(zip(requests, run, strict=True)), {curve.id: curve.timeout for curve in curves}
        drawn = [
            curve_of(case, outcomes[case.id], timeouts[case.id], self.judge.load_failure, submission.place)
            for case in fixtures.curves
            if case.id in outcomes
        ]
        failed = {next((case.case for case in item.cases if case.verdict == "failed"), None) for item in results}
        pictures = [picture_of(case, self.outcomes[case.id]) for case in fixtures.cases if case.id in failed]
        wrong = [item for item in results if item.verdict == "failed"]
        unknown = [item for item in wrong if not item.mistakes and not item.is_withheld]
        code = written(submission.source, submission.functions)
        return replace(
            details,
            curves=tuple(drawn),
            pictures=tuple(filter(None, pictures)),
            answers={item.item: fingerprint(item) for item in unknown},
            code={name: text for name, text in code.items() if name in {item.function for item in wrong}},
            calls=calls_of(results, fixtures.cases, self.grader.probes),
        )


def not_graded(item: Item, reason: str) -> ItemResult:
    """Report the grader's own fault: no points and no zero."""
    return ItemResult(item.id, item.function, item.title, None, item.points, "not_graded", (), reason, "", 0.0, ())


def nothing_to_grade(item: Item, cases: Sequence[Case]) -> ItemResult:
    """Give a zero, for nothing could be read."""
    lost = tuple(CaseResult(case.id, case.visibility, "missing", NOTHING_READ) for case in cases)
    return ItemResult(item.id, item.function, item.title, 0.0, item.points, "missing", (), NOTHING_READ, "", 0.0, lost)
