"""A student's own folder, checked item by item on the public cases, in one sandbox that stays warm.

A check waits for one call that hangs and no more: a function that hangs costs seconds, not minutes.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Self, TextIO

from autograder.checking.fault_lines import SECONDS_OF_CHECK, excerpt, fault_lines
from autograder.grading.assignment import PACKAGES, Assignment, Item, nearest_root
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.counterexamples import with_calls
from autograder.grading.fixtures import MANIFEST, read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import NOT_AGAIN, Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import ItemResult, Report

IN_SANDBOX = {"torch", "einops"}  # packages that the sandbox alone imports
LONGEST = 12.0  # seconds of one call: in grading some may take longer, and no right answer does
SLOW_AFTER = 3.0  # seconds of one call until it is mentioned
SKIPPED = "an earlier call of {} hung, crashed or ran out of memory; a check stops there, and grading tries every item"


class Checker:
    """Checks one folder, function by function, in one sandbox. Use as a context manager."""

    def __init__(self, path: Path, assignment: str | None = None, root: Path | None = None) -> None:
        """Read what is checked; raises UsageError where `path` holds no submission or several.

        root   the course or handout whose cases count; without it the closest one around `path`
        """
        self._path = path
        chosen = assignment_of_submissions(root or nearest_root(path), [path], assignment)
        for package in PACKAGES if chosen.needs_torch else ():
            if package in IN_SANDBOX and find_spec(package) is None:  # a worker that cannot start would not say why
                advice = "python -m pip install -r requirements.txt, in the folder of the handout"
                raise GraderFault(f"The package {package} is missing: {advice}.")
        self._sandbox = Sandbox()
        self._sandbox.start(torch=chosen.needs_torch)
        try:
            self._grader = Grader.of(with_short_timeouts(chosen), read_fixtures(chosen, hidden=False))
            self.read()
        except BaseException:
            self._sandbox.close()
            raise

    def __enter__(self) -> Self:
        """Return the checker; nothing runs yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the sandbox."""
        self._sandbox.close()

    def read(self) -> None:
        """Read the submission again, and forget its results so far."""
        chosen = self._grader.assignment
        self._submission = _only_submission(self._path, chosen.module, chosen.untouched_source())
        self._reports: dict[str, Report] = {}
        self._places: dict[str, dict[str, list[str]]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the submission, and on another torch than grading's."""
        return (*other_torch(self._grader.assignment), *self._submission.notes)

    def report(self, item_ids: Sequence[str] = ()) -> Report:
        """Report on these items, on all of a function, or on all.

        All items of a function run together, because its other answers help to name a mistake: asking for one item
        gives the same words as asking for all.
        """
        assignment = self._grader.assignment
        asked = [item for item in assignment.items if item.function in item_ids or not item_ids]
        asked += [assignment.item(name, assignment.functions) for name in item_ids if name not in assignment.functions]
        functions = {item.function for item in asked}
        items = [item for item in assignment.items if item.function in functions]
        report = self._grader.grade(self._submission, HastySandbox(self._sandbox), items)
        ids = {item.id for item in asked}
        results = [result for result in report.items if result.item in ids]
        return replace(report, items=tuple(with_calls(results, self._grader.fixtures.cases, self._grader.probes)))

    def places(self, report: Report) -> dict[str, list[str]]:
        """Show the line of the submission that each failed item is about, or say in which function it is."""
        lines = fault_lines(self._grader, self._submission, report.items, self._sandbox, SECONDS_OF_CHECK)
        return {item.item: excerpt(item, self._submission, lines.get(item.item)) for item in report.items}

    def place(self, result: ItemResult) -> list[str]:
        """Show the line of one item; those of its function are searched together, once."""
        if result.function not in self._places:
            self.result(result.item)
            self._places[result.function] = self.places(self._reports[result.function])
        return self._places[result.function][result.item]

    def result(self, item_id: str) -> ItemResult:
        """Return the result of one item; each function runs once."""
        assignment = self._grader.assignment
        function = assignment.item(item_id).function
        if function not in self._reports:
            self._reports[function] = self.report([item.id for item in assignment.items if item.function == function])
        return next(result for result in self._reports[function].items if result.item == item_id)


def items_to_check(path: Path, assignment: str | None = None) -> tuple[Item, ...]:
    """List the items that `path` is checked for."""
    return assignment_of_submissions(nearest_root(path), [path], assignment).items


def other_torch(assignment: Assignment) -> tuple[str, ...]:
    """Note that grading has another version of torch, where it has and the assignment needs it."""
    if not assignment.needs_torch:
        return ()
    try:
        graded = json.loads((assignment.folder / MANIFEST).read_bytes())["versions"]["torch"]
        here = version("torch").partition("+")[0]
    except (OSError, ValueError, KeyError, TypeError, PackageNotFoundError):
        return ()
    if here == graded:
        return ()
    return (f"this is torch {here}, and grading uses {graded}: what a seed decides may differ here and not there",)


def _only_submission(path: Path, module: str, untouched: str) -> Submission:
    here = path.resolve()
    try:
        candidates = find([path], module)
    except UsageError:
        if not (here.is_dir() and os.access(here, os.R_OK | os.X_OK)):
            raise
        candidates = []  # the sentence for a TA, on a folder that is no class, helps no student
    for candidate in candidates:
        if candidate.path.resolve() == here:
            return read(candidate, module, untouched)
    raise UsageError(f"{here} holds neither {module}.py nor {module}.ipynb: run this in the folder that does.")


# Waiting


def with_short_timeouts(assignment: Assignment) -> Assignment:
    """Let no call of the assignment take longer than a student waits."""
    items = (replace(item, timeout=min(item.timeout, LONGEST)) for item in assignment.items)
    return replace(assignment, items=tuple(items))


class HastySandbox:
    """Runs as `sandbox` does, but tries no other case of a function after a call that lost its process."""

    def __init__(self, sandbox: Sandbox, stream: TextIO | None = None) -> None:
        """Mention slow calls on `stream`, stderr without one."""
        self._sandbox, self._stream = sandbox, stream or sys.stderr

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that the program runs under."""
        return self._sandbox.layers

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """Return the outcome of each request, in order.

        The sandbox skips the rest of an item after a call that lost its process. Here a function is one item to it.
        """
        by_function = [replace(request, item=request.function) for request in requests]
        with Progress(self._stream) as progress:
            self._sandbox.begun = progress.begun
            outcomes = self._sandbox.run(program, by_function, load_timeout=load_timeout)
        return [
            replace(outcome, detail=SKIPPED.format(request.function)) if outcome == NOT_AGAIN else outcome
            for request, outcome in zip(requests, outcomes, strict=True)
        ]


class Progress:
    """Mentions a call that takes long, once for each function."""

    def __init__(self, stream: TextIO) -> None:
        """Say nothing yet."""
        self._stream = stream
        self._mentioned: set[str] = set()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End, and wait for what is being written."""
        if self._timer:
            self._timer.cancel()
            self._timer.join()

    def begun(self, request: Request) -> None:
        """Wait for a call that is about to be made."""
        if self._timer:
            self._timer.cancel()
        if request.function not in self._mentioned:
            self._timer = threading.Timer(SLOW_AFTER, self._mention, [request.function])
            self._timer.daemon = True
            self._timer.start()

    def _mention(self, function: str) -> None:
        self._mentioned.add(function)
        self._stream.write(f"{function} has been running for {SLOW_AFTER:.0f} s: does a loop in it ever end?\n")
        self._stream.flush()
