"""The folder that a run writes, and its reading back: a report and a page for each student, then the whole class.

    reports/<student>.json   details/<student>.json   feedback/<student>.html   index.html   grades.csv   run.json

Reports are on disk and nowhere else: what is of the whole class is made from their files, one at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from autograder import __version__
from autograder.course.dashboard import answers_of, background, described_changes
from autograder.course.history import began_of, with_history
from autograder.course.kept_reports import Kept, Reports
from autograder.course.student_pages import StudentPages
from autograder.gradebook.class_statistics import Summary
from autograder.gradebook.gradebook import Gradebook, name_cell, points_cell
from autograder.grading.fixtures import Fixtures
from autograder.grading.grader import Grader
from autograder.grading.remarks.details import Details, read_details, write_details
from autograder.pages.class_page import ABSENT, NOT_GRADED, Change, ClassPage
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import WRITING, file_stem, private_folder, replacing, write_atomically, writing
from autograder.vocabulary.report import Report, from_bytes, read_report, to_bytes
from autograder.vocabulary.rows import table_of
from autograder.vocabulary.text import visible

FOLDERS = ("reports", "feedback", "details")


@dataclass(frozen=True)
class Class:
    """What is known of a whole class.

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
        self._lock = contextlib.ExitStack()
        self._before: dict[str, float | str] = {}
        self._began = ""

    def __enter__(self) -> Self:
        """Make the folders, rid them of what a killed run left half written, and read the last run's gradebook.

        A folder that is new is its owner's alone.
        """
        with self._lock, writing(self._out):
            private_folder(self._out)
            for name in FOLDERS:
                (self._out / name).mkdir(exist_ok=True)
            self._lock.enter_context(alone(self._out))
            for folder in (self._out, *(self._out / name for name in FOLDERS)):
                for path in folder.glob(f"{WRITING}*"):
                    path.unlink()
            self._refuse_lookalikes()
            self._before, self._began = _scores(self._out / "grades.csv"), began_of(self._out / "run.json")
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
        try:
            data = self._report(submission.student).read_bytes()
        except OSError:
            return None
        report, details = from_bytes(data), read_details(self._details(submission.student))
        if report is None or details is None or not self._fits(report, submission, layers):
            return None
        if (details.submission, details.fixtures) != (submission.sha256, self._fixtures_of(submission.student).sha256):
            return None
        return report, details, hashlib.sha256(data).digest()

    def keep(self, submission: Submission, report: Report, details: Details, digest: bytes | None = None) -> Kept:
        """Write report and details, unless they are there and the report has that digest, and the student's page.

        Nothing waits for the disk here: what a power cut spoils is graded again. `write_class` waits, once for all.
        """
        reused = digest is not None
        report_at, details_at = self._report(submission.student), self._details(submission.student)
        if not reused:
            details = with_history(details, report, read_report(report_at), read_details(details_at), self._began)
        page = self._out / "feedback" / f"{file_stem(submission.student)}.html"
        text = self._pages.html(submission, report, details)
        with writing(self._out):
            if digest is None:
                data = to_bytes(report)
                digest = hashlib.sha256(data).digest()
                write_details(details, details_at)
                write_atomically(report_at, data, lasting=False)  # last: one that is there has all
            if _text(page) != text:  # a run that was killed may have left the page of an earlier report
                write_atomically(page, text, lasting=False)
        return Kept(submission.student, digest, reused)

    def write_class(self, kept: Sequence[Kept], run: dict[str, Any]) -> Class:
        """Write what is of the whole class; `run` is what `run.json` says besides.

        The gradebook takes its place after the page, so that a run which was killed in between still sees changes.
        """
        reports, page, isolation, fault = Reports(self._out / "reports", kept), ClassPage(), None, ""
        changes: list[Change] | None = [] if self._before else None
        left = dict(self._before)  # those of the last run who have not come yet
        if hasattr(os, "sync"):
            os.sync()  # a gradebook is on the disk only after every report that it counts
        with writing(self._out), replacing(self._out / "grades.csv") as stream:
            gradebook = Gradebook(stream, [item.id for item in self._grader.assignment.items])
            for report in reports:
                gradebook.add(report)
                page.add(report, answers=answers_of(self._out, report.student))
                isolation = report.isolation if isolation is None else _both(isolation, report.isolation)
                fault = fault or next((item.message for item in report.items if item.points is None), "")
                before = left.pop(name_cell(report.student), ABSENT)
                if changes is not None:
                    changes += _change(report, before)
            if changes is not None:
                changes += [Change(name, score, ABSENT) for name, score in left.items()]
            made = Class(reports, page.summary(), isolation or (), fault, tuple(left))
            described = self._described(made, kept) | run | {"changes": described_changes(changes)}
            known = background(self._grader.assignment, self._out)
            with replacing(self._out / "index.html") as index:
                index.writelines(page.html(reports, described, changes, background=known))
        with writing(self._out):
            write_atomically(self._out / "run.json", json.dumps(described, indent=1) + "\n")
        return made

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

    def _report(self, student: str) -> Path:
        return self._out / "reports" / f"{file_stem(student)}.json"

    def _details(self, student: str) -> Path:
        return self._out / "details" / f"{file_stem(student)}.json"

    def _fits(self, known: Report, submission: Submission, layers: Collection[tuple[str, ...]]) -> bool:
        return (
            known.status == "graded"
            and (known.student, known.identity) == (submission.student, submission.identity)
            and known.submission.sha256 == submission.sha256
            and known.submission.path == submission.path
            and known.fixtures == self._fixtures_of(submission.student).sha256
            and known.isolation in layers
            and known.kit == __version__
            and [item.item for item in known.items] == [item.id for item in self._grader.assignment.items]
        )

    def _refuse_lookalikes(self) -> None:
        """Refuse two students who would share a file, where the file system does not tell case apart."""
        upper = self._out / FOLDERS[0].upper()
        if not upper.exists() or not upper.samefile(self._out / FOLDERS[0]):
            return
        seen: dict[str, str] = {}
        for student in self._students:
            other = seen.setdefault(file_stem(student).casefold(), student)
            if other != student:
                both = f"{visible(other, 80)} and {visible(student, 80)}"
                advice = "rename one of them, or give an --out that does"
                raise UsageError(f"{self._out} does not tell {both} apart, which differ in case alone: {advice}.")


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder; UsageError where one is in it.

    The lock goes with the process, however it ends.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            advice = "wait until it has ended, or give another folder with --out"
            raise UsageError(f"Another run is writing into {folder}: {advice}.") from None
        except OSError:  # a file system that has no locks
            pass
        yield
    finally:
        os.close(descriptor)


def _text(path: Path) -> str | None:
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        return path.read_bytes().decode()
    return None


def _change(report: Report, before: float | str) -> list[Change]:
    """What differs from the last run's gradebook."""
    now = _score(points_cell(report.points))
    return [] if before == now else [Change(report.student, before, now)]


def _both(some: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(layer for layer in some if layer in others)


def _scores(gradebook: Path) -> dict[str, float | str]:
    """The students, as a gradebook spells them, with their points; nobody where there is none or it is another's."""
    try:
        table = table_of(gradebook.read_bytes(), gradebook)
        student, points = map(table.header.index, ("student", "points"))
    except (FileNotFoundError, UsageError, ValueError):
        return {}
    return {row[student]: _score(row[points]) for row in table.rows}


def _score(cell: str) -> float | str:
    with contextlib.suppress(ValueError):
        points = float(cell)
        return points if math.isfinite(points) else cell
    return cell or NOT_GRADED
