"""Reports → nbgrader's gradebook, so that formgrader, late penalties, feedback and `nbgrader export` go on from there.

For each report: the scores of its items and a comment at each answer, through nbgrader's own API; and the notebook that
formgrader and `generate_feedback` show, in autograded/, made anew from the source notebook. Nothing of a submission is
executed; of its notebook only answers in words and the graded definitions are taken, as text.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.authoring.handout.notebook import (
    TEXT_STUB,
    Notebook,
    is_answer,
    questions,
    released,
    to_bytes,
    words_in,
)
from autograder.authoring.handout.release import notebook_of
from autograder.gradebook.grades_folder import stored_reports
from autograder.grading.items import Assignment
from autograder.platforms.nbgrader.collected import TIMESTAMP
from autograder.platforms.nbgrader.shown_notebook import Handed, filled, written_in
from autograder.submissions.reading import read_limited, written_cells_limited
from autograder.submissions.submission import Candidate, outlined
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.files import PRIVATE, READABLE, open_regular, write_atomically
from autograder.vocabulary.report import NOT_REACHED, ItemResult, Report
from autograder.vocabulary.report_text import item_lines
from autograder.vocabulary.text import number, visible
from autograder.vocabulary.times import moment

CONFIG = "nbgrader_config.py"
NO_RESPONSE = "No response."  # nbgrader's own words
SECRET = "submission_secret.txt"
MAX_TIMESTAMP, MAX_SECRET = 100, 1_000  # bytes
LONGEST_STUDENT = 128  # nbgrader's column


@dataclass
class Exported:
    """What one export did.

    waiting   students with answers in words that nobody has marked yet
    unnamed   student → the questions that were answered in cells without nbgrader's name, so far as it can be told
    changed   students whose files are not those that were graded
    failed    student → why nothing of theirs was exported
    """

    database: str
    students: int = 0
    waiting: list[str] = field(default_factory=list)
    unnamed: dict[str, Sequence[str]] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)


def read_reports(grades: Path, assignment: Assignment) -> list[Report]:
    """The reports on this assignment in a folder that `grade --out` wrote, by student."""
    reports = [report for report in stored_reports(grades) if report.assignment == assignment.name]
    if not reports:
        raise UsageError(f"{grades} holds no report on {assignment.name}: give the folder that `grade --out` wrote.")
    return reports


def export(reports: Sequence[Report], assignment: Assignment, course: Path, database: str = "") -> Exported:
    """Write every report into the gradebook of the course. One that cannot be written stops no other.

    course      the folder that holds nbgrader_config.py
    database    a file or a URL; nbgrader's settings say which where it is ""
    raises      UsageError where the gradebook does not know the assignment as it is now
    """
    with _settings(course, database) as app:
        from nbgrader.api import Gradebook
        from sqlalchemy.exc import SAWarning

        _refuse_missing_database(app.coursedir.db_url, assignment)
        exported = Exported(app.coursedir.db_url)
        with (
            Gradebook(app.coursedir.db_url, app.coursedir.course_id) as gradebook,
            warnings.catch_warnings(action="ignore", category=SAWarning),  # nbgrader draws one for each submission
        ):
            _refuse_other_cells(gradebook, assignment)
            for report in reports:
                if reason := _written(app, gradebook, assignment, report, exported):
                    exported.failed[report.student] = reason
    return exported


def _written(app: Any, gradebook: Any, assignment: Assignment, report: Report, exported: Exported) -> str:
    """Write one report; why it could not be, "" where it was."""
    try:
        _refuse_name(report.student)
        _Entry(app, gradebook, assignment, report).write(exported)
    except UsageError as error:
        return str(error)
    except Exception as error:  # whatever a student's files make nbgrader or its database raise
        gradebook.db.rollback()
        return f"{type(error).__name__}: {visible(str(error), 200)}"
    return ""


def _refuse_name(student: str) -> None:
    if Path(student).name != student or student in (".", "..") or len(student) > LONGEST_STUDENT:
        raise UsageError(f"{visible(student, 60)!r} cannot be a student's name in nbgrader: it names a folder there.")


@contextlib.contextmanager
def _settings(course: Path, database: str) -> Iterator[Any]:
    """nbgrader's application, with the settings of the course."""
    if not (course / CONFIG).is_file():
        raise UsageError(f"{course} holds no {CONFIG}: give --course the folder that does.")
    try:
        from nbgrader.apps.baseapp import NbGrader
    except ImportError as error:
        advice = "install the extra: python -m pip install -e '.[nbgrader]'"
        raise GraderFault(f"The package {error.name} is missing: {advice}.") from error
    url = database if "://" in database else f"sqlite:///{Path(database).absolute()}" if database else ""
    before, path = os.environ.get("PATH", ""), list(sys.path)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])  # nbgrader starts alembic by name
    try:
        with contextlib.chdir(course.resolve()):
            app = NbGrader(log_level=logging.ERROR)
            app.initialize([f"--db={url}"] if url else [])
            yield app
    finally:
        os.environ["PATH"], sys.path[:] = before, path


def _refuse_missing_database(url: str, assignment: Assignment) -> None:
    """A gradebook that is not there yet would be made by opening it, and would know nothing."""
    path = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not path.is_file():
        again = f"run `nbgrader generate_assignment {assignment.name}` first"
        raise UsageError(f"There is no gradebook {visible(str(path))}: {again}.")


def _refuse_other_cells(gradebook: Any, assignment: Assignment) -> None:
    from nbgrader.api import MissingEntry

    again = f"run `nbgrader generate_assignment {assignment.name}` first"
    try:
        cells = gradebook.find_notebook(assignment.module, assignment.name).grade_cells
    except MissingEntry:
        raise UsageError(f"The gradebook does not know {assignment.name}: {again}.") from None
    known = {cell.name: cell.max_score for cell in cells}
    for item in assignment.items:
        if known.get(item.id) != item.points:
            found = f"with {number(known[item.id])} points" if item.id in known else "not at all"
            raise UsageError(f"The gradebook knows {item.id} {found}, not with {number(item.points)} points: {again}.")


class _Entry:
    """One report on its way into the gradebook."""

    def __init__(self, app: Any, gradebook: Any, assignment: Assignment, report: Report) -> None:
        self._app, self._gradebook, self._assignment, self._report = app, gradebook, assignment, report
        folders = app.coursedir
        self._submitted, autograded = (
            Path(folders.format_path(step, report.student, assignment.name))
            for step in (folders.submitted_directory, folders.autograded_directory)
        )
        self._shown = autograded / f"{assignment.module}.ipynb"

    def write(self, exported: Exported) -> None:
        """Write the grades, the comments and the notebook to look at; what a person has given stays."""
        template = released(notebook_of(self._assignment))
        handed = self._handed(template)
        self._gradebook.update_or_create_student(self._report.student)
        when = self._timestamp()
        more = {} if when is None else {"timestamp": when}
        submission = self._gradebook.update_or_create_submission(self._assignment.name, self._report.student, **more)
        notebook = next(one for one in submission.notebooks if one.name == self._assignment.module)
        self._grade(notebook, handed, questions(template))
        self._comment(notebook, handed)
        self._gradebook.db.commit()
        self._penalize(submission, notebook)
        self._shown.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self._shown, to_bytes(filled(template, self._report, handed)), mode=self._mode())
        self._pass_on()
        exported.students += 1
        if any(grade.needs_manual_grade for grade in notebook.grades):
            exported.waiting.append(self._report.student)
        if handed.words.unnamed:
            exported.unnamed[self._report.student] = handed.words.unnamed
        if handed.changed:
            exported.changed.append(self._report.student)

    def _handed(self, template: Notebook) -> Handed:
        if not self._submitted.is_dir() or self._submitted.is_symlink():
            where = "put the work there, or say in nbgrader_config.py where it lies"
            raise UsageError(
                f"{self._submitted} is no folder, so formgrader would show no work beside the marks: {where}."
            )
        candidate = Candidate(self._report.student, self._submitted, self._report.student)
        submission = read_limited(candidate, self._assignment.module, self._assignment.untouched_source())
        if submission.sha256 != self._report.submission.sha256:
            return Handed(changed=True)
        written = written_cells_limited(candidate, self._assignment.module, self._assignment.functions)
        return Handed(submission.source, words_in(written, template), functions=outlined(submission))

    def _pass_on(self) -> None:
        """Put beside it what nbgrader's exchange knows a submission by: without these no feedback can be released."""
        for name in (TIMESTAMP, SECRET):
            with contextlib.suppress(OSError), open_regular(self._submitted / name) as stream:
                write_atomically(self._shown.parent / name, stream.read(MAX_SECRET), mode=self._mode())

    def _mode(self) -> int:
        """The rights of what is written: those that the folder of what was handed in gives."""
        return self._submitted.stat().st_mode & READABLE if self._submitted.is_dir() else PRIVATE

    def _timestamp(self) -> datetime.datetime | None:
        """When the work was handed in, as the file beside it says: in UTC without saying so, as nbgrader keeps it."""
        with contextlib.suppress(OSError, ValueError), open_regular(self._submitted / TIMESTAMP) as stream:
            when = moment(stream.read(MAX_TIMESTAMP).decode().strip(), datetime.UTC)
            return when.astimezone(datetime.UTC).replace(tzinfo=None)
        return None

    def _grade(self, notebook: Any, handed: Handed, questions: Mapping[str, str]) -> None:
        results = {result.item: result for result in self._report.items}
        before = written_in(self._shown, questions)
        for grade in notebook.grades:
            if grade.name in results:
                score = results[grade.name].points
                new = grade.auto_score != score
            else:
                answer = handed.words.written.get(grade.name, TEXT_STUB)
                score = None if is_answer(answer) else 0.0
                new = grade.name in before and before[grade.name] != answer
            if grade.manual_score is None:
                grade.needs_manual_grade = score is None
            elif new:
                grade.needs_manual_grade = True
            grade.auto_score = score

    def _comment(self, notebook: Any, handed: Handed) -> None:
        told = comments_on(self._report, [comment.name for comment in notebook.comments])
        for comment in notebook.comments:
            if comment.name in told:
                comment.auto_comment = told[comment.name] or None
            else:
                answered = is_answer(handed.words.written.get(comment.name, TEXT_STUB))
                comment.auto_comment = None if answered else NO_RESPONSE

    def _penalize(self, submission: Any, notebook: Any) -> None:
        """What being late costs, by the rule that nbgrader's settings name."""
        if not submission.total_seconds_late and notebook.late_submission_penalty is None:
            return
        from nbformat import v4
        from nbgrader.preprocessors import AssignLatePenalties

        names = {"student": self._report.student, "assignment": self._assignment.name}
        resources = {"nbgrader": {**names, "notebook": self._assignment.module, "db_url": self._app.coursedir.db_url}}
        AssignLatePenalties(parent=self._app).preprocess(v4.new_notebook(), resources)  # type: ignore[no-untyped-call]
        self._gradebook.db.expire_all()


def comments_on(report: Report, names: Sequence[str]) -> dict[str, str]:
    """The comment on each of these functions that has items, by its name; a cause stands at the first it concerns."""
    told: dict[str, str] = {}
    cause = report.cause
    for name in names:
        results = [result for result in report.items if result.function == name]
        concerned = any(result.message.startswith(NOT_REACHED) for result in results)
        if results:
            told[name] = comment_on(results, cause if concerned else "")
        cause = "" if concerned else cause
    return told


def comment_on(results: Sequence[ItemResult], cause: str = "") -> str:
    """What is wrong with one function, as Markdown: "" where nothing is; first what kept all from being reached.

    nbgrader renders a comment as Markdown with HTML in it. So what may hold a student's words is indented by four
    spaces, which makes it code: it shows as it is.
    """
    parts = []
    for result in results:
        if result.verdict != "passed":
            points = f"{number(result.points)} of " if result.points is not None else "not graded, of "
            message = textwrap.dedent("\n".join(item_lines(result, again="")[1:]))
            code = textwrap.indent(visible(message, newlines=True), "    ")
            parts.append(f"{result.item}, {points}{number(result.max_points)}:\n\n{code}")
    first = [textwrap.indent(visible(cause, newlines=True), "    ")] if cause and parts else []
    return "\n\n".join([*first, *parts])
