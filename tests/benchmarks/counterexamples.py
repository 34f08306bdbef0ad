"""What looking for counterexamples costs: wrong answers that hidden cases alone see, graded with it and without."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from autograder.authoring.fixtures.agreement import solution_source
from autograder.authoring.fixtures.generator import import_generator
from autograder.grading.fixtures import Fixtures, read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from benchmarks.overhead import interleaved

PLAIN, LOOKING = "without", "with"


def counterexample_costs(assignments: Sequence[Assignment], times: int, most: int) -> dict[str, Any]:
    """Of each assignment: seconds of one grading without, what looking adds, and how often something was found.

    times   how often each wrong answer is graded in either way, in turn
    most    wrong answers of an assignment: known mistakes that fail an item unseen, spread over the catalogue
    """
    return {"times": times, "rows": {one.name: _of_assignment(one, times, most) for one in assignments}}


def _of_assignment(assignment: Assignment, times: int, most: int) -> dict[str, Any]:
    fixtures = read_fixtures(assignment)
    unseen = [one for one in import_generator(assignment)["mistakes"].MISTAKES if _fails_unseen(fixtures, one)]
    chosen = unseen[:: max(1, -(-len(unseen) // most))]
    solution = solution_source(assignment)
    with Sandbox() as sandbox:
        found = [_of_one(assignment, fixtures, f"{solution}\n\n{one.source}", sandbox, times) for one in chosen]
    return {
        "answers": len(found),
        "unseen": len(unseen),
        "seconds": statistics.median(one["seconds"] for one in found),
        "added": statistics.median(one["added"] for one in found),
        "most added": max(one["added"] for one in found),
        "ratio": statistics.median(one["ratio"] for one in found),
        "found": sum(one["found"] for one in found),
    }


def _fails_unseen(fixtures: Fixtures, mistake: Any) -> bool:
    """Whether it fails an item in hidden cases alone."""
    items = {case.item for case in fixtures.cases if case.function == mistake.function}
    for item in items:
        seen = {case.visibility for case in fixtures.of_item(item) if mistake.slug in case.mistakes}
        if seen == {"hidden"}:
            return True
    return False


def _of_one(assignment: Assignment, fixtures: Fixtures, source: str, sandbox: Sandbox, times: int) -> dict[str, Any]:
    submission, shown = Submission("one", f"{assignment.module}.py", "0" * 64, source), []

    def graded(*, counterexamples: bool) -> Callable[[], float]:
        grader = Grader.of(assignment, fixtures, counterexamples=counterexamples)

        def seconds() -> float:
            started = time.perf_counter()
            report = grader.grade(submission, sandbox)
            took = time.perf_counter() - started
            shown.append(counterexamples and any(item.counterexample for item in report.items))
            return took

        return seconds

    kinds = {PLAIN: graded(counterexamples=False), LOOKING: graded(counterexamples=True)}
    seconds = interleaved(kinds, times, warm=1)
    pairs = list(zip(seconds[LOOKING], seconds[PLAIN], strict=True))
    return {
        "seconds": statistics.median(seconds[PLAIN]),
        "added": statistics.median(looking - plain for looking, plain in pairs),
        "ratio": statistics.median(looking / plain for looking, plain in pairs),
        "found": any(shown),
    }
