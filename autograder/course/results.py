"""The folder that a run writes, and its reading back: a report and a page for each student, then the whole class.

    reports/<student>.json   details/<student>.json   feedback/<student>.html   index.html   grades.csv   run.json

Reports are on disk and nowhere else: what is of the whole class is made from their files, one at a time. Where a run
has ended in the folder before, new files wait in `.staged/` until it is clear that they may take the place of the old.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from autograder.course.dashboard import answers_of, background, described_changes
from autograder.course.engine import grading_key
from autograder.course.history import began_of, with_history
from autograder.course.kept_reports import Kept, Reports
from autograder.course.student_pages import StudentPages
from autograder.gradebook.class_statistics import Summary
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grade_changes import Grade, is_graded, stored_grades
from autograder.gradebook.gradebook import Gradebook, name_cell, points_cell
from autograder.gradebook.grades_folder import final_columns
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.grading.remarks.details import Details, read_details, write_details
from autograder.pages.class_page import ABSENT, NOT_GRADED, Change, ClassPage
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import WRITING, alone, file_stem, private_folder, replacing, write_atomically, writing
from autograder.vocabulary.report import Report, from_bytes, read_report, to_bytes
from autograder.vocabulary.text import visible

FOLDERS = {"details": "json", "feedback": "html", "reports": "json"}  # a report is there last: then all is
STAGED = ".staged"
Agree = Callable[[Iterable[Report]], Mapping[str, Final]]


@dataclass(frozen=True, kw_only=True)
class Class:
    """What is known of a whole class.

    reports     in the order of the students; they lie on disk, and are read one at a time
    isolation   the layers that every submission was graded under
    fault       why the first of those that were not graded was not; "" where all were
    gone        who stood in the gradebook before, and does not now
    """

    reports: Reports
    figures: Summary
    isolation: tuple[str, ...]
    fault: str
    gone: tuple[str, ...] = ()


class Results:
    """The folder of one run. Use as a context manager: only one run at a time writes into a folder."""

    def __init__(
        self, out: Path, grader: Grader, students: Sequence[str], fixtures_of: Callable[[str], Fixtures] | None = None
    ) -> None:
        """Touch nothing yet; `fixtures_of` may give each student a set of their own."""
        self._out, self._grader, self._students = out, grader, students
        self._fixtures_of = fixtures_of or (lambda student: grader.fixtures)
        self._pages = StudentPages(grader.assignment)
        self._engine = grading_key(grader.assignment.given_sources())
        self._new = out
        self._lock = contextlib.ExitStack()
        self._before: dict[str, float | str] = {}
        self._began = ""

    def __enter__(self) -> Self:
        """Make the folders, rid them of what a killed run left half written, and read the last run's gradebook.

        A folder that is new is its owner's alone.
        """
        with self._lock, writing(self._out):
            private_folder(self._out)
            self._lock.enter_context(alone(self._out))
            if is_graded(self._out):
                self._new = self._out / STAGED
            for folder in (root / name for root in {self._out, self._new} for name in FOLDERS):
                folder.mkdir(parents=True, exist_ok=True)
                for path in (*folder.parent.glob(f"{WRITING}*"), *folder.glob(f"{WRITING}*")):
                    path.unlink()
            self._refuse_lookalikes()
            self._before = {name: _score(grade) for name, grade in stored_grades(self._out).items()}
            self._began = began_of(self._out / "run.json")
            self._lock = self._lock.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Let other runs write here."""
        self._lock.close()

    def known(
        self, submission: Submission, layers: Collection[tuple[str, ...]]
    ) -> tuple[Report, Details, bytes] | None:
        """The report that is there, its details and its digest, where they were made of the same bytes in the same way.

        layers   the isolation that a report of this run may have
        """
        for root in {self._new: 0, self._out: 0}:
            try:
                data = _file(root, "reports", submission.student).read_bytes()
            except OSError:
                continue
            report, details = from_bytes(data), read_details(_file(root, "details", submission.student))
            if report is not None and details is not None and self._fits(report, details, submission, layers):
                return report, details, hashlib.sha256(data).digest()
            for name in FOLDERS if root != self._out else ():  # staged by a run that graded in another way
                _file(root, name, submission.student).unlink(missing_ok=True)
        return None

    def keep(self, submission: Submission, report: Report, details: Details, digest: bytes | None = None) -> Kept:
        """Write report and details, unless they are there and the report has that digest, and the student's page.

        Nothing waits for the disk here: what a power cut spoils is graded again. `write_class` waits, once for all.
        """
        student, reused = submission.student, digest is not None
        if not reused:
            before = (
                read_report(_file(self._out, "reports", student)),
                read_details(_file(self._out, "details", student)),
            )
            details = with_history(replace(details, engine=self._engine), report, *before, self._began)
        text = self._pages.html(submission, report, details)
        with writing(self._out):
            if digest is None:
                data = to_bytes(report)
                digest = hashlib.sha256(data).digest()
                write_details(details, _file(self._new, "details", student))
                write_atomically(_file(self._new, "reports", student), data, lasting=False)
            if _text(self._latest("feedback", student)) != text:  # it may be of an earlier report
                write_atomically(_file(self._new, "feedback", student), text, lasting=False)
        return Kept(student, digest, reused)

    def write_class(self, kept: Sequence[Kept], run: dict[str, Any], agree: Agree = lambda reports: {}) -> Class:
        """Write what is of the whole class; `run` is what `run.json` says besides.

        agree   the final grades of these reports; raises UsageError where they may not take the place of the old ones

        The gradebook takes its place after the page, so that a run which was killed in between still sees changes.
        """
        reports = Reports(lambda student: self._latest("reports", student), kept)
        finals = agree(reports)
        self._put_in_place(kept)
        page, isolation, fault = ClassPage(), None, ""
        changes: list[Change] | None = [] if self._before else None
        left = dict(self._before)  # those of the last run who have not come yet
        if hasattr(os, "sync"):
            os.sync()  # a gradebook is on the disk only after every report that it counts
        with writing(self._out), replacing(self._out / "grades.csv") as stream:
            items = [item.id for item in self._grader.assignment.items]
            gradebook = Gradebook(stream, items, final_columns(finals) if finals else None)
            for report in reports:
                gradebook.add(report)
                page.add(report, answers=answers_of(self._out, report.student))
                isolation = report.isolation if isolation is None else _both(isolation, report.isolation)
                fault = fault or report.fault
                before = left.pop(name_cell(report.student), ABSENT)
                now = NOT_GRADED if report.points is None else float(points_cell(report.points))
                if changes is not None and before != now:
                    changes.append(Change(report.student, before, now))
            if changes is not None:
                changes += [Change(name, score, ABSENT) for name, score in left.items()]
            figures, gone = page.summary(), tuple(left)
            made = Class(reports=reports, figures=figures, isolation=isolation or (), fault=fault, gone=gone)
            described = self._described(made, kept) | run | {"changes": described_changes(changes)}
            known = background(self._grader.assignment, self._out)
            with replacing(self._out / "index.html") as index:
                index.writelines(page.html(reports, described, changes, background=known))
        with writing(self._out):
            write_atomically(self._out / "run.json", json.dumps(described, indent=1) + "\n")
            shutil.rmtree(self._out / STAGED, ignore_errors=True)
        return made

    def _put_in_place(self, kept: Sequence[Kept]) -> None:
        """Let what was staged take the place of what is there."""
        with writing(self._out):
            for one in kept if self._new != self._out else ():
                for name in FOLDERS:
                    staged, there = (_file(root, name, one.student) for root in (self._new, self._out))
                    if staged.is_file():
                        if there.is_file():
                            shutil.copymode(there, staged)
                        staged.replace(there)

    def _described(self, made: Class, kept: Sequence[Kept]) -> dict[str, Any]:
        return {
            "schema": 1,
            "assignment": self._grader.assignment.name,
            "fixtures": self._grader.fixtures.sha256,
            "isolation": list(made.isolation),
            "submissions": made.figures.students,
            "not_graded": made.figures.students - made.figures.graded,
            "reused": sum(one.reused for one in kept),
        }

    def _latest(self, folder: str, student: str) -> Path:
        """The file of a student that is to stand in the folder: the staged one where there is one."""
        staged = _file(self._new, folder, student)
        return staged if staged.is_file() else _file(self._out, folder, student)

    def _fits(
        self, known: Report, details: Details, submission: Submission, layers: Collection[tuple[str, ...]]
    ) -> bool:
        return (
            known.status == "graded"
            and (known.student, known.identity) == (submission.student, submission.identity)
            and known.submission.sha256 == submission.sha256
            and known.submission.path == submission.path
            and known.fixtures == self._fixtures_of(submission.student).sha256
            and known.isolation in layers
            and (details.submission, details.fixtures, details.engine)
            == (submission.sha256, known.fixtures, self._engine)
            and [item.item for item in known.items] == [item.id for item in self._grader.assignment.items]
        )

    def _refuse_lookalikes(self) -> None:
        """Refuse two students who would share a file, where the file system does not tell case apart."""
        upper = self._out / "REPORTS"
        if not upper.exists() or not upper.samefile(self._out / "reports"):
            return
        seen: dict[str, str] = {}
        for student in self._students:
            other = seen.setdefault(file_stem(student).casefold(), student)
            if other != student:
                both = f"{visible(other, 80)} and {visible(student, 80)}"
                advice = "rename one of them, or give an --out that does"
                raise UsageError(f"{self._out} does not tell {both} apart, which differ in case alone: {advice}.")


def _text(path: Path) -> str | None:
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        return path.read_bytes().decode()
    return None


def _both(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(layer for layer in some if layer in others)


def _score(grade: Grade) -> float | str:
    with contextlib.suppress(ValueError):
        points = float(grade.points)
        return points if math.isfinite(points) else grade.points
    return grade.points or NOT_GRADED


def _file(root: Path, folder: str, student: str) -> Path:
    return root / folder / f"{file_stem(student)}.{FOLDERS[folder]}"
