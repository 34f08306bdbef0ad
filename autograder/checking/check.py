"""What a student runs: the public cases on their own folder, worded as in grading.

python -m autograder check [DIR] [--item ITEM] [--watch]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from autograder.grading.cases import read_fixtures
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment, Item, nearest_root
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, KitError, UsageError
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.report_text import report_text
from autograder.vocabulary.text import visible

IN_SANDBOX = ("torch", "einops")
INTRODUCTION = "Public cases only; grading runs more of the same kind."
CLEAR = "\x1b[2J\x1b[3J\x1b[H"  # the screen, what has scrolled off it, and the cursor to the top
POLL_SECONDS = 0.1


class Checker:
    """Checks one folder, function by function, in one sandbox. Use as a context manager."""

    def __init__(self, path: Path, assignment: str | None = None) -> None:
        """Read what is checked; raises UsageError where `path` holds no submission or several."""
        _refuse_without_packages()
        self._path = path
        self._sandbox = Sandbox()
        self._sandbox.start()
        try:
            chosen = _assignment_near(path, assignment)
            self._grader = Grader.of(chosen, read_fixtures(chosen, hidden=False))
            self.read()
        except BaseException:
            self._sandbox.close()
            raise

    def __enter__(self) -> Self:
        """Return the checker; nothing runs yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the sandbox."""
        self._sandbox.close()

    def read(self) -> None:
        """Read the submission again, and forget what was found of it before."""
        chosen = self._grader.assignment
        self._submission = _only_submission(self._path, chosen.module, chosen.untouched_source())
        self._reports: dict[str, Report] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What reading the submission had to say."""
        return self._submission.notes

    def report(self, item_ids: Sequence[str] = ()) -> Report:
        """The report on these items, or on all.

        All items of a function run together, because its other answers help to name a mistake: asking for one item
        gives the same words as asking for all.
        """
        wanted = [self._grader.assignment.item(item_id) for item_id in item_ids] or list(self._grader.assignment.items)
        functions = {item.function for item in wanted}
        items = [item for item in self._grader.assignment.items if item.function in functions]
        report = self._grader.grade(self._submission, self._sandbox, items)
        ids = {item.id for item in wanted}
        return replace(report, items=tuple(result for result in report.items if result.item in ids))

    def result(self, item_id: str) -> ItemResult:
        """The result of one item; each function runs once."""
        function = self._grader.assignment.item(item_id).function
        if function not in self._reports:
            same = [item.id for item in self._grader.assignment.items if item.function == function]
            self._reports[function] = self.report(same)
        return next(result for result in self._reports[function].items if result.item == item_id)


def items_to_check(path: Path, assignment: str | None = None) -> tuple[Item, ...]:
    """The items that `path` is checked for."""
    return _assignment_near(path, assignment).items


def check(path: Path, item_ids: Sequence[str] = (), assignment: str | None = None) -> int:
    """Print the report on the public cases; 0 where all pass, 1 where one fails, 3 where the checker itself failed."""
    with Checker(path, assignment) as checker:
        report = _checked(checker, item_ids)
    print(f"{INTRODUCTION}\n")
    print(report_text(report, checker.notes))
    return _exit_code(report)


def watch(path: Path, item_ids: Sequence[str] = (), assignment: str | None = None) -> int:
    """Check, and check again whenever a file in the folder is saved, in a sandbox that stays warm, until Ctrl-C.

    Returns what `check` would have returned the last time.
    """
    code, before = 0, None
    with contextlib.suppress(KeyboardInterrupt), Checker(path, assignment) as checker:
        for _ in _saves(path):
            began = time.perf_counter()
            try:
                checker.read()
            except UsageError as gone:  # it was there a moment ago: it may come back
                print(gone, flush=True)
                continue
            report = _checked(checker, item_ids)
            code = _exit_code(report)
            print(f"{CLEAR if sys.stdout.isatty() else ''}{INTRODUCTION}\n")
            print(report_text(report, checker.notes))
            print(f"\n{_changes(before, report)}Checked in {time.perf_counter() - began:.1f} s. ", end="")
            print("Waiting for the next save; Ctrl-C ends.", flush=True)
            before = report
    return code


def _saves(path: Path) -> Iterator[None]:
    """Now, and after each change of a file in the folder that lasts until it is looked at."""
    folder = path if path.is_dir() else path.parent
    seen: object = None
    now = _stamps(folder)
    while True:
        if now and now != seen:
            seen = now
            yield
        before = now
        while (now := _stamps(folder)) in (seen, []) or now != before:  # unchanged, or still being written
            before = now
            time.sleep(POLL_SECONDS)


def _stamps(folder: Path) -> list[tuple[str, int, int]]:
    """What tells one state of a folder's modules and notebooks from another; empty while one is being replaced."""
    try:
        found = [(one.name, one.stat()) for one in sorted(folder.iterdir()) if one.suffix in (".py", ".ipynb")]
    except OSError:
        return []
    return [(name, stat.st_mtime_ns, stat.st_size) for name, stat in found]


def _changes(before: Report | None, now: Report) -> str:
    """What the last save brought about, a line each for gains and losses; "" where nothing changed."""
    if before is None:
        return ""
    passed = [{item.item for item in report.items if item.verdict == "passed"} for report in (before, now)]
    gained, lost = sorted(passed[1] - passed[0]), sorted(passed[0] - passed[1])
    lines = [f"{words}: {', '.join(ids)}" for words, ids in (("Now right", gained), ("No longer right", lost)) if ids]
    return "".join(f"{line}\n" for line in lines)


def _checked(checker: Checker, item_ids: Sequence[str]) -> Report:
    report = checker.report(item_ids)
    if report.status == "not_graded":
        raise GraderFault(f"Nothing could be checked, which is no fault of your work. {report.items[0].message}")
    return report


def _exit_code(report: Report) -> int:
    return 0 if all(item.verdict == "passed" for item in report.items) else 1


def _refuse_without_packages() -> None:
    """What the sandbox alone imports is looked for here: a worker that cannot start says less of the reason."""
    missing = [name for name in IN_SANDBOX if find_spec(name) is None]
    if missing:
        advice = "python -m pip install -r requirements.txt, in the folder of the handout"
        raise GraderFault(f"The package {missing[0]} is missing: {advice}.")


def _assignment_near(path: Path, name: str | None) -> Assignment:
    try:
        return assignment_of_submissions([path], name, nearest_root(path))
    except PermissionError:  # a folder on the way up that may not be looked into
        return assignment_of_submissions([path], name)


def _only_submission(path: Path, module: str, untouched: str) -> Submission:
    here = path.resolve()
    try:
        candidates = find([path], module)
    except UsageError:
        if not (here.is_dir() and os.access(here, os.R_OK | os.X_OK)):
            raise
        candidates = []  # what a TA would be told of a folder that is no class helps no student
    own = [candidate for candidate in candidates if candidate.path.resolve() == here]
    if not own:
        raise UsageError(f"{here} holds neither {module}.py nor {module}.ipynb: run this in the folder that does.")
    return read(own[0], module, untouched)


def print_anything() -> None:
    """Let what the terminal's encoding lacks be printed as an escape, where it would be an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line of a handout; its exit code."""
    print_anything()
    parser = argparse.ArgumentParser(prog="python -m autograder", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("check", help="run the public cases on your work", description=INTRODUCTION)
    verb.add_argument("dir", nargs="?", default=".", type=Path, help="the folder with your work (default: this one)")
    verb.add_argument("--item", action="append", default=[], help="check this item only; may be repeated")
    verb.add_argument("--watch", action="store_true", help="check again whenever you save, until Ctrl-C")
    verb.add_argument("--assignment", help="which assignment; needed where there are several")
    options = parser.parse_args(arguments)
    try:
        return (watch if options.watch else check)(options.dir, options.item, options.assignment)
    except KitError as error:
        print(f"autograder: {visible(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
