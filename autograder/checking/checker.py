"""A student's own folder, checked item by item on the public cases, in one sandbox that stays warm."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from autograder.checking.handout import newer_zip
from autograder.checking.patience import PatientSandbox, impatient
from autograder.grading.assignments import nearest_root
from autograder.grading.choice import assignment_of_submissions
from autograder.grading.counterexamples.typed import with_calls
from autograder.grading.fixtures import MANIFEST, read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import PACKAGES, Assignment, Item
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import ItemResult, Report

IN_SANDBOX = {"torch", "einops"}


class Checker:
    """Checks one folder, function by function, in one sandbox. Use as a context manager."""

    def __init__(self, path: Path, assignment: str | None = None, root: Path | None = None) -> None:
        """Read what is checked; raises UsageError where `path` holds no submission or several.

        root   the course or handout whose cases count; without it the closest one round `path`
        """
        self._path = path
        chosen = assignment_of_submissions(root or nearest_root(path), [path], assignment)
        _refuse_without_packages(chosen)
        self._sandbox = Sandbox()
        self._sandbox.start(torch=chosen.needs_torch)
        try:
            self._grader = Grader.of(impatient(chosen), read_fixtures(chosen, hidden=False))
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
        """What reading the submission had to say; that torch is another in grading, or a newer handout is there."""
        chosen = self._grader.assignment
        return (*newer_zip(chosen), *other_torch(chosen), *self._submission.notes)

    def report(self, item_ids: Sequence[str] = ()) -> Report:
        """The report on these items, or on all.

        All items of a function run together, because its other answers help to name a mistake: asking for one item
        gives the same words as asking for all.
        """
        wanted = [self._grader.assignment.item(item_id) for item_id in item_ids] or list(self._grader.assignment.items)
        functions = {item.function for item in wanted}
        items = [item for item in self._grader.assignment.items if item.function in functions]
        report = self._grader.grade(self._submission, PatientSandbox(self._sandbox), items)
        ids = {item.id for item in wanted}
        own = [result for result in report.items if result.item in ids]
        return replace(report, items=tuple(with_calls(own, self._grader.fixtures.cases)))

    def result(self, item_id: str) -> ItemResult:
        """The result of one item; each function runs once."""
        function = self._grader.assignment.item(item_id).function
        if function not in self._reports:
            same = [item.id for item in self._grader.assignment.items if item.function == function]
            self._reports[function] = self.report(same)
        return next(result for result in self._reports[function].items if result.item == item_id)


def items_to_check(path: Path, assignment: str | None = None) -> tuple[Item, ...]:
    """The items that `path` is checked for."""
    return assignment_of_submissions(nearest_root(path), [path], assignment).items


def checked(checker: Checker, item_ids: Sequence[str]) -> Report:
    """The report on these items, or on all; raises GraderFault where the grader itself failed."""
    report = checker.report(item_ids)
    if report.status == "not_graded":
        raise GraderFault(f"Nothing could be checked, which is no fault of your work. {report.items[0].message}")
    return report


def other_torch(assignment: Assignment) -> tuple[str, ...]:
    """The note that grading has another version of torch, where it has and the assignment needs it."""
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


def _refuse_without_packages(assignment: Assignment) -> None:
    """What the sandbox alone imports is looked for here: a worker that cannot start says less of the reason."""
    needed = [name for name in PACKAGES if name in IN_SANDBOX] if assignment.needs_torch else []
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        advice = "python -m pip install -r requirements.txt, in the folder of the handout"
        raise GraderFault(f"The package {missing[0]} is missing: {advice}.")


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
