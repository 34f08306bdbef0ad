"""A folder of grades as staff sit before it: what is there now, and what they decide.

`overrides.csv` in that folder is the truth. A decision is written there, then what `autograder gradebook` does is done.
While a run is writing into the folder the row alone is written: the run applies it at its end, and if not, this does.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.authoring.handout.source_notebook import read_extras
from autograder.course.dashboard import settle
from autograder.course.results import alone
from autograder.course.serving.answers import Answer
from autograder.gradebook.grades_folder import stored_reports
from autograder.gradebook.overrides import Override, counting, overrides_in, read_overrides, with_row
from autograder.gradebook.rules import read_rules
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import Report, read_report
from autograder.vocabulary.text import number, visible

OVERRIDES = "overrides.csv"
MAX_COMMENT = 2000
IN_A_PARAGRAPH = re.compile(r"(?<=\S)\n(?![ ]*(?:[-*] |\||\d+\. )|\n| {4})[ ]*")
OF_THE_CLASS = ("index.html", "run.json", "grades.csv", OVERRIDES)


@dataclass(frozen=True)
class Choice:
    """What points can be given for: an item, a question, or "" for the whole grade."""

    item: str
    title: str
    points: float | None
    most: float

    @property
    def words(self) -> str:
        """What a list of choices shows."""
        earned = "" if self.points is None else f"{number(self.points)} of "
        return f"{self.item or 'the whole grade'} ({earned}{number(self.most)})"


@dataclass(frozen=True)
class Question:
    """A question in words, with the guide for whoever marks the answers."""

    id: str
    text: str
    guide: str
    points: float


@dataclass
class Desk:
    """One folder of grades. Decisions are made one after another; reading needs no turn.

    answers   student → question → what was answered, where submissions were given
    """

    folder: Path
    assignment: Assignment
    answers: Mapping[str, Mapping[str, Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the questions of the assignment's notebook."""
        self._turn = threading.Lock()
        self._waits = False  # a row is written, and what it does to the grades is not
        extras = read_extras(self.assignment).questions
        self.questions = [
            Question(str(one["id"]), unwrapped(one["question"]), unwrapped(one["guide"]), float(one["points"]))
            for one in extras
        ]

    # Reading

    def reports(self) -> list[Report]:
        """Everybody's report so far; nobody's before the first is there. UsageError where one cannot be read."""
        return stored_reports(self.folder) if any((self.folder / "reports").glob("*.json")) else []

    def report_of(self, stem: str) -> Report | None:
        """The report of the student whose files are called that."""
        path = self.folder / "reports" / f"{stem}.json"
        report = None if path.is_symlink() else read_report(path)
        return report if report is not None and file_stem(report.student) == stem else None

    def decided(self) -> dict[tuple[str, str], Override]:
        """What `overrides.csv` says, by student and item. UsageError where it cannot be read."""
        path = self.folder / OVERRIDES
        rows = read_overrides(path, self.assignment) if path.is_file() else []
        return {(row.student, row.item): row for row in rows}

    def choices(self, report: Report) -> list[Choice]:
        """What points can be given for in this report."""
        items = [Choice(item.item, item.title, item.points, item.max_points) for item in report.items]
        asked = [Choice(one.id, one.text.split("\n")[0], None, one.points) for one in self.questions]
        counted = sum(counting(self.decided().values()).values())
        return [*items, *asked, Choice("", "", None if counted else report.points, report.max_points + counted)]

    def is_grading(self) -> bool:
        """Whether a run is writing into the folder."""
        with self._turn:
            try:
                with alone(self.folder):
                    return False
            except (UsageError, OSError):
                return True

    def version(self, stem: str = "") -> str:
        """Another text whenever what a page shows may have changed: one student's, or everybody's."""
        self._apply_what_waits()
        if stem:
            paths = [self.folder / "feedback" / f"{stem}.html", self.folder / OVERRIDES]
        else:
            paths = [*(self.folder / name for name in OF_THE_CLASS), *sorted((self.folder / "reports").glob("*.json"))]
        return hashlib.sha256(repr([_mark(path) for path in paths]).encode()).hexdigest()[:16]

    # Deciding

    def decide(self, student: str, item: str, points: str, comment: str) -> str:
        """Write a row, and what follows from it; what to tell whoever decided. UsageError where it cannot be."""
        comment = visible(" ".join(comment.split()))
        if len(comment) > MAX_COMMENT:
            raise UsageError(f"The comment is longer than {MAX_COMMENT:,} characters: shorten it.")
        return self._write(student, item, (points.strip(), comment))

    def take_back(self, student: str, item: str) -> str:
        """Take the row away again."""
        return self._write(student, item, None)

    def _write(self, student: str, item: str, decided: tuple[str, str] | None) -> str:
        if self.report_of(file_stem(student)) is None:
            raise UsageError(f"{visible(student, 80)} has no report here.")
        path = self.folder / OVERRIDES
        with self._turn:
            data = with_row(path.read_bytes() if path.is_file() else b"", path, student, item, decided)
            self._check(data, student, item, decided)
            with tempfile.TemporaryDirectory() as other:
                candidate = Path(other) / OVERRIDES
                write_atomically(candidate, data)
                if self._apply(candidate):
                    return "Saved, and the final grades with it."
            write_atomically(path, data)
            self._waits = True
            return "Saved. It counts as soon as the grading that is going on has ended."

    def _check(self, data: bytes, student: str, item: str, decided: tuple[str, str] | None) -> None:
        """Raise UsageError unless the file reads back as what was decided: a name may not survive a CSV."""
        rows = overrides_in(data, Path(OVERRIDES), self.assignment)
        found = [row for row in rows if (row.student, row.item) == (student, item)]
        if [row.comment for row in found] != ([decided[1]] if decided else []):
            raise UsageError(f"The name {visible(student, 80)!r} cannot stand in {OVERRIDES}.")

    def _apply(self, overrides: Path | None) -> bool:
        """Make final grades of all reports; whether nobody else was writing into the folder."""
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(alone(self.folder))
            except UsageError:
                return False
            rules = read_rules(self.folder, self.assignment, None, overrides, None)
            if rules is not None:
                reports = self.reports()
                rules.check_students([report.student for report in reports], self.folder)
                settle(self.folder, reports, self.assignment, rules)
            return True

    def _apply_what_waits(self) -> None:
        if not self._waits:
            return
        with self._turn, contextlib.suppress(UsageError):
            self._waits = self._waits and not self._apply(None)


def unwrapped(text: str) -> str:
    """A text without the line breaks that its source has for the width of a page alone."""
    return text.strip() if "```" in text else IN_A_PARAGRAPH.sub(" ", text.strip())


def _mark(path: Path) -> tuple[str, int, int] | None:
    """What changes whenever a file is written; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return path.name, found.st_mtime_ns, found.st_size
