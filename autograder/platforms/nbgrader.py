"""Write reports into nbgrader's gradebook; formgrader, late penalties, feedback and `nbgrader export` go on from there.

For each report: the scores of its items and a comment at each answer, through nbgrader's own API; and the notebook that
formgrader and `generate_feedback` show, in autograded/, made anew from the source notebook. Nothing of a submission is
executed; of its notebook only answers in words and the graded definitions are taken, as text.
"""

from __future__ import annotations

import contextlib
import datetime
import logging
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.authoring.handout.notebook import (
    TEXT_STUB,
    Cell,
    Notebook,
    Words,
    is_answer,
    questions,
    released,
    to_bytes,
    words_in,
)
from autograder.authoring.handout.release import notebook_of
from autograder.grading.assignment import Assignment
from autograder.submissions.reading import read_limited, written_cells_limited
from autograder.submissions.submission import BREAK, Candidate, Function
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.files import PRIVATE, READABLE, open_regular, write_atomically
from autograder.vocabulary.report import ItemResult, Report
from autograder.vocabulary.report_text import explanation, item_lines
from autograder.vocabulary.text import number, visible
from autograder.vocabulary.times import moment

CONFIG = "nbgrader_config.py"
NO_RESPONSE = "No response."  # nbgrader's own words
TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
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


@dataclass(frozen=True)
class Handed:
    """What a student handed in, as text: the module that was graded, its functions, and the answers in words."""

    source: str = ""
    words: Words = field(default_factory=Words)
    functions: Mapping[str, Function] = field(default_factory=dict)
    changed: bool = False


def export(reports: Sequence[Report], assignment: Assignment, course: Path, database: str = "") -> Exported:
    """Write every report into the gradebook of the course. One that cannot be written stops no other.

    course      the folder that holds nbgrader_config.py
    database    a file or a URL; nbgrader's settings say which where it is ""
    raises      UsageError where the gradebook does not know the assignment as it is now
    """
    with _settings(course, database) as app:
        from nbgrader.api import Gradebook, MissingEntry
        from sqlalchemy.exc import SAWarning

        again = f"run `nbgrader generate_assignment {assignment.name}` first"
        url = app.coursedir.db_url
        path = Path(url.removeprefix("sqlite:///"))
        if url.startswith("sqlite:///") and not path.is_file():  # opening it would make one that knows nothing
            raise UsageError(f"There is no gradebook {visible(str(path))}: {again}.")
        exported = Exported(url)
        with (
            Gradebook(url, app.coursedir.course_id) as gradebook,
            warnings.catch_warnings(action="ignore", category=SAWarning),  # nbgrader draws one for each submission
        ):
            try:
                cells = gradebook.find_notebook(assignment.module, assignment.name).grade_cells
            except MissingEntry:
                raise UsageError(f"The gradebook does not know {assignment.name}: {again}.") from None
            known = {cell.name: cell.max_score for cell in cells}
            for item in assignment.items:
                if known.get(item.id) != item.points:
                    found = f"with {number(known[item.id])} points" if item.id in known else "not at all"
                    asked = f"not with {number(item.points)} points"
                    raise UsageError(f"The gradebook knows {item.id} {found}, {asked}: {again}.")
            for report in reports:
                try:
                    _write(app, gradebook, assignment, report, exported)
                except UsageError as error:
                    exported.failed[report.student] = str(error)
                except Exception as error:  # whatever a student's files make nbgrader or its database raise
                    gradebook.db.rollback()
                    exported.failed[report.student] = f"{type(error).__name__}: {visible(str(error), 200)}"
    return exported


@contextlib.contextmanager
def _settings(course: Path, database: str) -> Iterator[Any]:
    """Start nbgrader's application, with the settings of the course."""
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


def _write(app: Any, gradebook: Any, assignment: Assignment, report: Report, exported: Exported) -> None:
    """Write the grades, the comments and the notebook to look at of one report; what a person has given stays."""
    student, module = report.student, assignment.module
    if Path(student).name != student or student in (".", "..") or len(student) > LONGEST_STUDENT:
        raise UsageError(f"{visible(student, 60)!r} cannot be a student's name in nbgrader: it names a folder there.")
    folders = app.coursedir
    submitted = Path(folders.format_path(folders.submitted_directory, student, assignment.name))
    shown = Path(folders.format_path(folders.autograded_directory, student, assignment.name)) / f"{module}.ipynb"
    if not submitted.is_dir() or submitted.is_symlink():
        where = "put the work there, or say in nbgrader_config.py where it lies"
        raise UsageError(f"{submitted} is no folder, so formgrader would show no work beside the marks: {where}.")
    template = released(notebook_of(assignment))
    candidate = Candidate(student, submitted, student)
    work = read_limited(candidate, module, assignment.untouched_source())
    if work.sha256 == report.submission.sha256:
        cells = written_cells_limited(candidate, module, assignment.functions)
        handed = Handed(work.source, words_in(cells, template), work.functions)
    else:
        handed = Handed(changed=True)

    gradebook.update_or_create_student(student)
    when = {}
    with contextlib.suppress(OSError, ValueError), open_regular(submitted / TIMESTAMP) as stream:
        written = moment(stream.read(MAX_TIMESTAMP).decode().strip(), datetime.UTC)
        when["timestamp"] = written.astimezone(datetime.UTC).replace(tzinfo=None)  # in UTC without saying so
    submission = gradebook.update_or_create_submission(assignment.name, student, **when)
    notebook = next(each for each in submission.notebooks if each.name == module)
    _grade(notebook, report, handed, written_in(shown, questions(template)))
    comments = comments_on(report, [comment.name for comment in notebook.comments])
    for comment in notebook.comments:
        answered = is_answer(handed.words.written.get(comment.name, TEXT_STUB))
        text = comments.get(comment.name, "" if answered else NO_RESPONSE)
        comment.auto_comment = text or None
    gradebook.db.commit()
    if submission.total_seconds_late or notebook.late_submission_penalty is not None:
        from nbformat import v4
        from nbgrader.preprocessors import AssignLatePenalties

        names = {"student": student, "assignment": assignment.name, "notebook": module, "db_url": folders.db_url}
        penalize = AssignLatePenalties(parent=app).preprocess  # by the rule that nbgrader's settings name
        penalize(v4.new_notebook(), {"nbgrader": names})  # type: ignore[no-untyped-call]
        gradebook.db.expire_all()

    shown.parent.mkdir(parents=True, exist_ok=True)
    mode = submitted.stat().st_mode & READABLE if submitted.is_dir() else PRIVATE
    write_atomically(shown, to_bytes(filled(template, report, handed)), mode=mode)
    for name in (TIMESTAMP, SECRET):  # by which nbgrader's exchange knows a submission: else it releases no feedback
        with contextlib.suppress(OSError), open_regular(submitted / name) as stream:
            write_atomically(shown.parent / name, stream.read(MAX_SECRET), mode=mode)
    exported.students += 1
    if any(grade.needs_manual_grade for grade in notebook.grades):
        exported.waiting.append(student)
    if handed.words.unnamed:
        exported.unnamed[student] = handed.words.unnamed
    if handed.changed:
        exported.changed.append(student)


def _grade(notebook: Any, report: Report, handed: Handed, before: Mapping[str, str]) -> None:
    """Set the scores; a person looks again at a manual score where what it was given for has changed.

    before   the answers in words of an earlier export
    """
    results = {result.item: result for result in report.items}
    for grade in notebook.grades:
        if grade.name in results:
            score = results[grade.name].points
            is_new = grade.auto_score != score
        else:
            answer = handed.words.written.get(grade.name, TEXT_STUB)
            score = None if is_answer(answer) else 0.0
            is_new = grade.name in before and before[grade.name] != answer
        if grade.manual_score is None:
            grade.needs_manual_grade = score is None
        elif is_new:
            grade.needs_manual_grade = True
        grade.auto_score = score


# Comments


def comments_on(report: Report, names: Sequence[str]) -> dict[str, str]:
    """Comment on each of these functions that has items, by its name; a cause stands at the first it concerns."""
    comments: dict[str, str] = {}
    cause = report.cause
    for name in names:
        if results := [result for result in report.items if result.function == name]:
            concerned = any(result.is_unreached for result in results)
            comments[name] = comment_on(results, cause if concerned else "")
            cause = "" if concerned else cause
    return comments


def comment_on(results: Sequence[ItemResult], cause: str = "") -> str:
    """Say what is wrong with one function, as Markdown: "" where nothing is; first what kept all from being reached.

    nbgrader renders a comment as Markdown with HTML in it. So what may hold a student's words is indented by four
    spaces, which makes it code: it shows as it is.
    """

    def code(text: str) -> str:
        return textwrap.indent(visible(text, newlines=True), "    ")

    parts = [code(cause)] if cause else []
    for result in results:
        if result.verdict != "passed":
            points = f"{number(result.points)} of " if result.points is not None else "not graded, of "
            message = textwrap.dedent("\n".join(explanation(result, again="")))
            parts.append(f"{result.item}, {points}{number(result.max_points)}:\n\n{code(message)}")
    return "\n\n".join(parts)


# The notebook that formgrader and `generate_feedback` show


def filled(template: Notebook, report: Report, handed: Handed) -> Notebook:
    """Fill the students' notebook with one student's answers, and the results as outputs of the test cells."""
    results = {result.item: result for result in report.items}
    lines = BREAK.split(handed.source)
    for cell in template["cells"]:
        name = cell["id"]
        if result := results.get(name):  # what the test cell would have shown: the points, and why they are not all
            passed = result.verdict == "passed"
            text = visible("\n".join(item_lines(result, again="")), newlines=True) + "\n"
            stream = {"output_type": "stream", "name": "stdout" if passed else "stderr", "text": text}
            data = {"text/plain": repr(result.points)}
            value = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
            shown = [stream, value] if passed else [value, stream]
            cell["outputs"] = [stream] if result.points is None else shown
        elif name in handed.words.written:
            pictures = handed.words.pictures.get(name, {})
            cell["source"] = harmless(handed.words.written[name], pictures)
            if pictures:
                cell["attachments"] = {picture: dict(kinds) for picture, kinds in pictures.items()}
        elif at := handed.functions.get(name):
            cell["source"] = "\n".join(lines[at.first - 1 : at.last]).rstrip()
    if handed.source:
        head: Cell = {"cell_type": "markdown", "id": "graded-text", "metadata": {}, "source": "## All that was graded"}
        code: Cell = {"cell_type": "code", "id": "graded", "metadata": {}, "execution_count": None, "outputs": []}
        template["cells"] += [head, code | {"source": handed.source}]
    return template


def written_in(path: Path, asked: Mapping[str, str]) -> dict[str, str]:
    """Read the answers in words that an earlier export put into the notebook at `path`."""
    import nbformat

    try:
        cells = nbformat.read(path, as_version=4).cells  # type: ignore[no-untyped-call]
    except (OSError, ValueError):
        return {}
    return {cell["id"]: as_written(cell["source"]) for cell in cells if cell.get("id") in asked}


# Answers in words
#
# nbgrader's pages render Markdown with HTML in it, and clean nothing of what comes out. An answer needs no HTML of its
# own and no address but a web page's, so one with anything else that could act is shown as it was written, in a block
# of code; so is one that nbconvert would stop at. Pictures that a student pasted are attachments of the notebook.

NOTE = "(shown as it was written: a link, a picture or a tag in it is none that an answer needs)"
MAX_RENDERED = 10_000  # characters; what of them takes the parser longest takes it half a second, with its square
INERT = re.compile(r"!\[[^][<]*\]\(attachment:[\w.-]+\)|(?<!!)\[[^][<]*\]\(https?://[\w./?=&#%~:+-]+\)")
ACTS = re.compile(
    r"<(?![\s\d=\\$.])|\]\s*[\[(:]"  # a tag, a comparison being none; a link, a picture, what either refers to
    r"|mermaid|(?:```|~~~)[^\n]*[&\\]"  # a diagram, which a page's own script draws
    r"|\\(?:href|class|style|cssId|require|csname)\b",  # what MathJax makes of a formula
    re.IGNORECASE,
)


def harmless(text: str, pictures: Mapping[str, Mapping[str, str]]) -> str:
    """Put a text that would do anything but be read into a block of code; `as_written` takes that back."""
    if len(text) <= MAX_RENDERED and not ACTS.search(INERT.sub("", text)):
        from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

        attached = {name: dict(kinds) for name, kinds in pictures.items()}
        with contextlib.suppress(Exception):  # whatever its parser stops at, nbconvert's would stop at again
            MarkdownWithMath(renderer=IPythonRenderer(escape=False, attachments=attached)).render(text)
            return text
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{NOTE}\n\n{fence}\n{text}\n{fence}"


def as_written(text: str) -> str:
    """Return what `harmless` was given."""
    match = re.fullmatch(r"\(shown as it was written: [^\n]*\)\n\n(`+)\n(.*)\n\1", text, re.DOTALL)
    return match[2] if match else text
