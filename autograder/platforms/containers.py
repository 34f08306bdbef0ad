"""Grade one submission inside a platform's container, and write the results.json that the platform reads.

    python -m autograder.platforms.containers gradescope --base /autograder

A fault of the grader leaves no score behind: Gradescope then shows an error of the autograder, PrairieLearn a
submission that could not be graded. It is said on stderr, and the exit code is 3.

Nothing here may import more than a container's requirements install (see `bundles.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from autograder.checking.terminal import print_anything
from autograder.grading.assignment import find_course
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.files import ENGINE, write_atomically
from autograder.vocabulary.report import VERDICT_WORDS, CaseResult, ItemResult, Report
from autograder.vocabulary.report_text import counterexample_markdown, explanation, fenced, item_markdown, notes_beside
from autograder.vocabulary.text import visible

RESULTS = "results/results.json"  # where both platforms look
GUARDS = (("landlock", "identity"), ("seccomp",))  # of each pair one: else student code could read the hidden cases

Visibility = Literal["visible", "after_due_date", "after_published", "hidden"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
MAX_GRADESCOPE_TEXT = 20_000  # characters of one test's output
MAX_PRAIRIELEARN_BYTES = 1_000_000
MAX_ESCAPE = 12  # bytes of one character in JSON


def grade(folder: Path) -> tuple[Submission, Report]:
    """Grade the one submission in `folder`. Raises GraderFault where nothing here guards the hidden cases."""
    chosen = assignment_of_submissions(find_course(ENGINE), [folder])
    fixtures = read_fixtures(chosen)
    if not stat.S_ISDIR(folder.stat().st_mode):
        raise GraderFault(f"{folder} is no folder: the platform has put no submission there.")
    candidate = Candidate("student", folder.resolve(), "submission")  # the platform knows who it is
    submission = read_limited(candidate, chosen.module, chosen.untouched_source())
    with Sandbox() as sandbox:
        for guards in GUARDS:
            if not set(guards) & set(sandbox.layers):
                raise GraderFault(f"Without {' or '.join(guards)}, student code could read the hidden cases here.")
        return submission, Grader.of(chosen, fixtures).grade(submission, sandbox)


def run_gradescope(base: Path, hidden_cases: Visibility = "visible") -> None:
    """Grade `base/submission` into `base/results/results.json`; where that fails, raise and leave no file."""
    target = base / RESULTS
    target.unlink(missing_ok=True)
    submission, report = grade(base / "submission")
    document = gradescope_results(report, submission.notes, hidden_cases)
    write_atomically(target, json.dumps(document, indent=1) + "\n")
    print(f"{report.points} of {report.max_points} points.")


def run_prairielearn(base: Path) -> None:
    """Grade `base/student` into `base/results/results.json`; where that fails, say there that nothing was graded."""
    target = base / RESULTS
    target.unlink(missing_ok=True)
    try:
        submission, report = grade(base / "student")
        if submission.problem:
            document = ungradable([submission.problem])
        else:
            document = prairielearn_results(report, submission.notes)
        write_atomically(target, json.dumps(document, indent=1) + "\n")
        if report.points is None:
            raise GraderFault(report.fault)
    except (KitError, OSError) as error:
        if not target.exists():
            reason = "The grader failed, through no fault of yours. Tell your instructor, and submit again."
            write_atomically(target, json.dumps(ungradable([reason]), indent=1) + "\n")
        raise GraderFault(str(error)) from error


# Gradescope's results.json
#
# The fields are those of gradescope-autograders.readthedocs.io, Autograder Specifications. `score` overrides the sum of
# the tests; what is printed is for staff unless `stdout_visibility` says otherwise. As long as a test is to be shown
# later, students see no total; one that is `hidden` for good does not hold it back.


def gradescope_results(
    report: Report, notes: Sequence[str] = (), hidden_cases: Visibility = "visible"
) -> dict[str, Any]:
    """Make what Gradescope reads as results.json.

    notes          what is said above the tests
    hidden_cases   visible: one test an item, and students see their points at once. Anything else: the public cases of
                   an item are one visible test and its hidden cases another, shown when this says; Gradescope shows no
                   total until then, but with `hidden`, where that never comes, at once
    raises         GraderFault for a report that is not graded: no file is better than one that says 0
    """
    if report.points is None:
        raise GraderFault(f"{visible(report.student, 80)} is not graded: {visible(report.fault, 300)}")
    causes = report.cause.splitlines()  # how long it took is not told: hidden cases could say something by it
    return {
        "score": report.points,
        "output": "\n".join(visible(note) for note in (*causes, *notes_beside(report, notes))),
        "output_format": "text",
        "test_output_format": "md",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [
            test for at, item in enumerate(report.items, 1) for test in _gradescope_tests(item, at, hidden_cases)
        ],
        "leaderboard": [],
        "extra_data": {"student": report.student, "assignment": report.assignment, "fixtures": report.fixtures},
    }


def _gradescope_tests(item: ItemResult, at: int, hidden_cases: Visibility) -> list[dict[str, Any]]:
    def test(
        part: str, which: str, score: float, most: float, output: str, visibility: Visibility = "visible"
    ) -> dict[str, Any]:
        return {
            "number": f"{at}{part}",
            "name": f"{item.item}: {item.title}{which}",
            "score": score,
            "max_score": most,
            "status": "passed" if score == most else "failed",
            "output": output[:MAX_GRADESCOPE_TEXT],
            "visibility": visibility,
            "tags": [item.function],
            "extra_data": {"verdict": item.verdict, "mistakes": list(item.mistakes)} if visibility == "visible" else {},
        }

    public = [case for case in item.cases if case.visibility == "public"]
    hidden = [case for case in item.cases if case.visibility == "hidden"]
    points = item.points or 0.0
    if hidden_cases == "visible" or not hidden:
        return [test("", "", points, item.max_points, item_markdown(item))]
    if not public:
        output = item_markdown(item) if item.verdict == "passed" else _messages(item, hidden)
        return [test("", "", points, item.max_points, output, hidden_cases)]
    passed = sum(case.verdict == "passed" for case in public)
    most = round(item.max_points * len(public) / len(item.cases), 2)
    score = min(round(item.max_points * passed / len(item.cases), 2), points, most)
    shown = item_markdown(item) if passed < len(public) else ""  # the message is of the first case that failed
    rest_most = round(item.max_points - most, 2)
    rest = min(round(points - score, 2), rest_most)
    return [
        test(".1", ", public cases", score, most, shown),
        test(".2", ", hidden cases", rest, rest_most, _messages(item, hidden), hidden_cases),
    ]


def _messages(item: ItemResult, cases: Sequence[CaseResult]) -> str:
    """Say what was wrong with these cases: each message once, in their order; then a call to paste, if any."""
    failed = [case for case in cases if case.verdict != "passed"]
    messages = dict.fromkeys(case.message or VERDICT_WORDS[case.verdict] for case in failed)
    small = counterexample_markdown(item) if item.fails_unseen else ""
    return "\n".join([*map(fenced, messages), *([small] if small else [])])


# PrairieLearn's results.json (github.com/PrairieLearn/PrairieLearn: docs/externalGrading.md)


def prairielearn_results(report: Report, notes: Sequence[str] = ()) -> dict[str, Any]:
    """Make what PrairieLearn reads as results.json: the score as a share, and a test for each item.

    A report that is not graded is `gradable: false`: it earns nothing, loses nothing, and costs no attempt.
    """
    if report.points is None:
        return ungradable([f"Not graded, through no fault of yours: {report.fault}"])
    lines = [*report.cause.splitlines(), *notes_beside(report, notes)]
    document: dict[str, Any] = {
        "gradable": True,
        "score": round(report.points / report.max_points, 6) if report.max_points else 0.0,
        "message": "\n".join(visible(line, 2_000) for line in lines),
    }
    most = MAX_PRAIRIELEARN_BYTES * 3 // 4 // MAX_ESCAPE // max(1, len(report.items))  # characters a test
    document["tests"] = tests = []
    for item in report.items:
        output = "\n".join(explanation(replace(item, message=item.message[:most])))
        tests.append({
            "name": item.item,
            "description": item.title,
            "points": item.points,
            "max_points": item.max_points,
            "output": output if len(output) <= most else output[: max(0, most - 1)] + "…",
        })  # fmt: skip
    return document


def ungradable(reasons: Sequence[str]) -> dict[str, Any]:
    """Make what PrairieLearn reads where there is nothing to grade, or no grader."""
    return {"gradable": False, "format_errors": [visible(reason, 2_000) for reason in reasons]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade as the platform named in the arguments wants it; the exit code."""
    print_anything()
    os.umask(0o077)
    parser = argparse.ArgumentParser(prog="python -m autograder.platforms.containers")
    parser.add_argument("platform", choices=["gradescope", "prairielearn"])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--hidden-cases", choices=VISIBILITIES, default="visible")
    options = parser.parse_args(arguments)
    try:
        if options.platform == "gradescope":
            run_gradescope(options.base, options.hidden_cases)
        else:
            run_prairielearn(options.base)
    except (KitError, OSError) as error:
        print(f"autograder: not graded: {visible(str(error), 2_000)}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
