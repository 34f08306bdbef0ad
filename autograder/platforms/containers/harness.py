"""Grade one submission inside a platform's container.

    python -m autograder.platforms.containers.harness gradescope --base /autograder

A fault of the grader leaves no score behind: Gradescope then shows an error of the autograder, PrairieLearn a
submission that could not be graded. It is said on stderr, and the exit code is 3.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autograder.checking.command_line import print_anything
from autograder.grading.assignments import find_course
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.platforms import prairielearn
from autograder.platforms.gradescope import results as gradescope
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.reading import read_limited
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import GraderFault, KitError
from autograder.vocabulary.files import ENGINE, write_atomically
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import visible

MAX_METADATA = 4 * 2**20
RESULTS = "results/results.json"  # where both platforms look
GUARDS = (("landlock", "identity"), ("seccomp",))  # of each pair one: else student code could read the hidden cases


def grade(folder: Path, student: str, assignment: str | None = None) -> tuple[Submission, Report]:
    """The report on the one submission in `folder`. Raises GraderFault where nothing here guards the hidden cases."""
    chosen = assignment_of_submissions(find_course(ENGINE), [folder], assignment)
    fixtures = read_fixtures(chosen)
    if not stat.S_ISDIR(folder.stat().st_mode):
        raise GraderFault(f"{folder} is no folder: the platform has put no submission there.")
    submission = read_limited(
        Candidate(student, folder.resolve(), "submission"), chosen.module, chosen.untouched_source()
    )
    with Sandbox() as sandbox:
        for guards in GUARDS:
            if not set(guards) & set(sandbox.layers):
                raise GraderFault(f"Without {' or '.join(guards)}, student code could read the hidden cases here.")
        return submission, Grader.of(chosen, fixtures).grade(submission, sandbox)


def run_gradescope(base: Path, hidden_cases: gradescope.Visibility = "visible") -> None:
    """Grade `base/submission` into `base/results/results.json`; where that fails, raise and leave no file."""
    target = base / RESULTS
    target.unlink(missing_ok=True)
    submission, report = grade(base / "submission", students_of(base / "submission_metadata.json"))
    found = gradescope.results(report, submission.notes, hidden_cases)
    write_atomically(target, json.dumps(found, indent=1) + "\n")
    print(f"{visible(report.student, 200)}: {found['score']} of {report.max_points} points.")


def run_prairielearn(base: Path) -> None:
    """Grade `base/student` into `base/results/results.json`; where that fails, say there that nothing was graded."""
    target = base / RESULTS
    target.unlink(missing_ok=True)
    try:
        submission, report = grade(base / "student", "student")
        unread = submission.problem and [submission.problem]
        found = prairielearn.ungradable(unread) if unread else prairielearn.results(report, submission.notes)
        write_atomically(target, json.dumps(found, indent=1) + "\n")
        if report.points is None:
            raise GraderFault(report.fault)
    except (KitError, OSError) as error:
        if not target.exists():
            reason = "The grader failed, through no fault of yours. Tell your instructor, and submit again."
            write_atomically(target, json.dumps(prairielearn.ungradable([reason]), indent=1) + "\n")
        raise GraderFault(str(error)) from error


def students_of(metadata: Path) -> str:
    """The names in Gradescope's submission_metadata.json: several for a group; "student" where it names nobody."""
    with contextlib.suppress(OSError, ValueError, RecursionError), metadata.open("rb") as stream:
        data: Any = json.loads(stream.read(MAX_METADATA))
        users = data.get("users") if isinstance(data, dict) else None
        named = [_name(user) for user in users if isinstance(user, dict)] if isinstance(users, list) else []
        return " and ".join(filter(None, named))[:500] or "student"
    return "student"


def _name(user: dict[str, Any]) -> str:
    return next((user[key].strip() for key in ("name", "email") if isinstance(user.get(key), str) and user[key]), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Grade as the platform named in the arguments wants it; the exit code."""
    print_anything()
    os.umask(0o077)
    parser = argparse.ArgumentParser(prog="python -m autograder.platforms.containers.harness")
    parser.add_argument("platform", choices=["gradescope", "prairielearn"])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--hidden-cases", choices=gradescope.VISIBILITIES, default="visible")
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
