"""Write the folder of a run, and read it back: a report and a page for each student, then the whole class.

    reports/<student>.json   details/<student>.json   feedback/<student>.html   index.html   grades.csv   run.json

Reports are on disk and nowhere else: what is of the whole class is made from their files, one at a time. Where a run
has ended in the folder before, new files wait in `.staged/` until it is clear that they may take the place of the old.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from autograder.authoring.exam.contract import read_contract
from autograder.authoring.fixtures.stored_set import versions
from autograder.gradebook.class_statistics import Summary
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import (
    Gradebook,
    is_graded,
    name_cell,
    points_cell,
    stored_grades,
    with_final,
    write_finals,
)
from autograder.gradebook.rules import Rules
from autograder.grading.assignment import Assignment
from autograder.grading.details import MOST_EARLIER, Details, Earlier, read_details, write_details
from autograder.grading.grader import Grader
from autograder.pages.class_page import ABSENT, NOT_GRADED, Background, Change, ClassPage
from autograder.pages.listing import NOTHING, listing_of
from autograder.pages.student_page import feedback_page
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import FixtureError, GraderFault, UsageError
from autograder.vocabulary.files import (
    ENGINE,
    WRITING,
    alone,
    file_stem,
    private_folder,
    replacing,
    write_atomically,
    writing,
)
from autograder.vocabulary.report import Report, SubmissionInfo, from_bytes, read_report, to_bytes
from autograder.vocabulary.text import visible

FOLDERS = {"details": "json", "feedback": "html", "reports": "json"}  # a report is there last: then all is
STAGED = ".staged"
DECIDING = ("grading", "sandbox", "submissions", "vocabulary")  # the packages that a grade comes from
UNLISTED = "the text that was graded cannot be shown here"
Agree = Callable[[Iterable[Report]], Mapping[str, Final]]


class Kept(NamedTuple):
    """All that a run remembers of a report that lies on disk.

    digest   SHA-256 of the file's bytes
    reused   whether the file was there before the run
    """

    student: str
    digest: bytes
    reused: bool


class Reports:
    """The reports of a run in the order of its students, read from their files one at a time, as often as wanted."""

    def __init__(self, where: Callable[[str], Path], kept: Sequence[Kept]) -> None:
        """Read nothing yet; `where` says in which file a student's report lies."""
        self._where, self._kept = where, kept

    def __iter__(self) -> Iterator[Report]:
        """Read each report; raises GraderFault where a file is not the one that the run kept."""
        for kept in self._kept:
            path, report, what = self._where(kept.student), None, "is not what the run wrote there"
            try:
                data = path.read_bytes()
                report = from_bytes(data) if hashlib.sha256(data).digest() == kept.digest else None
            except OSError as error:
                what = f"cannot be read any more ({error.strerror})"
            if report is None:
                advice = "Nothing of the whole class was written from it. Run the same command again."
                raise GraderFault(f"{visible(str(path))} {what}: somebody changed it meanwhile. {advice}")
            yield report


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run did, and what is known of its whole class.

    reports     in the order of the students; they lie on disk, and are read one at a time
    isolation   the layers that every submission was graded under
    fault       why the first of those that were not graded was not; "" where all were
    gone        who stood in the gradebook before, and does not now
    reused      submissions whose report was there already, made of the same bytes
    seconds     wall time
    """

    reports: Reports
    figures: Summary
    isolation: tuple[str, ...]
    fault: str
    gone: tuple[str, ...]
    reused: int
    seconds: float


@functools.cache
def kit() -> Mapping[str, str]:
    """Return the digest of the modules that a grade comes from, and the versions of what computes.

    They are the same in a checkout and in a wheel.
    """
    digest = hashlib.sha256()
    for path in [
        ENGINE / "__init__.py",
        *itertools.chain(*(sorted((ENGINE / name).rglob("*.py")) for name in DECIDING)),
    ]:
        digest.update(f"{path.relative_to(ENGINE).as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return {"kit": digest.hexdigest()[:12], **versions()}


def grading_key(given: Mapping[str, str]) -> str:
    """Name the engine, its versions and the modules that an assignment gives to submissions by one digest."""
    return hashlib.sha256(repr(sorted([*kit().items(), *given.items()])).encode()).hexdigest()[:16]


# A run


@contextlib.contextmanager
def open_results(out: Path, grader: Grader, students: Sequence[str]) -> Iterator[Results]:
    """Open the folder of one run, rid of what a killed one left half written; only one run at a time writes into it.

    A folder that is new is its owner's alone.
    """
    with contextlib.ExitStack() as lock:
        with writing(out):
            private_folder(out)
            lock.enter_context(alone(out))
            results = Results(out, grader)
            upper, seen = out / "REPORTS", dict[str, str]()
            # Two students would share a file where the file system does not tell case apart.
            for student in students if upper.exists() and upper.samefile(out / "reports") else ():
                other = seen.setdefault(file_stem(student).casefold(), student)
                if other != student:
                    both = f"{visible(other, 80)} and {visible(student, 80)}"
                    advice = "rename one of them, or give an --out that does"
                    raise UsageError(f"{out} does not tell {both} apart, which differ in case alone: {advice}.")
        yield results


class Results:
    """The folder of one run."""

    def __init__(self, out: Path, grader: Grader) -> None:
        """Make the folders that are lacking, and take away what a killed run was writing."""
        self._out, self._grader = out, grader
        self._engine = grading_key(grader.assignment.given_sources())
        self._began = run_in(out).get("started")
        self._new = out / STAGED if is_graded(out) else out
        for root in {out, self._new}:
            for name in FOLDERS:
                (root / name).mkdir(parents=True, exist_ok=True)
            for path in [path for place in (".", *FOLDERS) for path in (root / place).glob(f"{WRITING}*")]:
                path.unlink()

    def known(
        self, student: str, identity: str, submission: SubmissionInfo, layers: Collection[tuple[str, ...]]
    ) -> tuple[Report, Details, bytes] | None:
        """Find report, details and digest that are there, where they were made of the same bytes in the same way.

        layers   the isolation that a report of this run may have
        """
        fixtures = self._grader.fixtures.sha256
        items = [item.id for item in self._grader.assignment.items]
        same = ("graded", student, identity, submission, fixtures, items)
        for _ in range(2):
            with contextlib.suppress(OSError):
                data = self._latest("reports", student).read_bytes()
                report, details = from_bytes(data), read_details(self._latest("details", student))
                if report is not None and details is not None:
                    ids = [item.item for item in report.items]
                    its = (report.status, report.student, report.identity, report.submission, report.fixtures, ids)
                    beside = details.submission, details.fixtures, details.engine
                    wanted = (same, (submission.sha256, fixtures, self._engine))
                    if (its, beside) == wanted and report.isolation in layers:
                        return report, details, hashlib.sha256(data).digest()
            for name in FOLDERS if self._new != self._out else ():  # staged by a run that graded in another way
                _file(self._new, name, student).unlink(missing_ok=True)
        return None

    def keep(self, submission: Submission, report: Report, details: Details, digest: bytes | None = None) -> Kept:
        """Write report and details, unless they are there and the report has that digest, and the student's page.

        Nothing waits for the disk here: what a power cut spoils is graded again. `write_class` waits, once for all.
        """
        student, reused = submission.student, digest is not None
        if not reused:
            report_before = read_report(_file(self._out, "reports", student))
            details_before = read_details(_file(self._out, "details", student))
            details = replace(details, engine=self._engine)
            details = with_history(details, report, report_before, details_before, self._began)
        page = page_of(submission, report, details, self._grader.assignment).encode()
        with writing(self._out):
            if digest is None:
                data = to_bytes(report)
                digest = hashlib.sha256(data).digest()
                write_details(details, _file(self._new, "details", student))
                write_atomically(_file(self._new, "reports", student), data, lasting=False)
            latest = self._latest("feedback", student)
            if not latest.is_file() or latest.read_bytes() != page:  # it may be of an earlier report
                write_atomically(_file(self._new, "feedback", student), page, lasting=False)
        return Kept(student, digest, reused)

    def write_class(self, kept: Sequence[Kept], run: Mapping[str, Any], agree: Agree = lambda reports: {}) -> Run:
        """Write what is of the whole class; `run` is what `run.json` says besides.

        agree   the final grades of these reports; raises UsageError where they may not take the place of the old ones

        Whoever has a report in the folder belongs to the class, of this run or of an earlier one: a part of it can be
        graded again. The gradebook takes its place after the page and before the reports, so that the next run finishes
        what one that was killed in between has begun.
        """
        graded, everybody = {entry.student for entry in kept}, [*kept]
        with writing(self._out):
            for path in (self._out / "reports").glob("*.json"):  # of an earlier run
                report = from_bytes(data := path.read_bytes())
                if report is not None and report.student not in graded:
                    everybody.append(Kept(report.student, hashlib.sha256(data).digest(), reused=True))
            kept = sorted(everybody, key=lambda entry: entry.student)
            reports = Reports(lambda student: self._latest("reports", student), kept)
            finals = agree(reports)
            before = {name: _score(grade.points) for name, grade in stored_grades(self._out).items()}
        assignment, reused = self._grader.assignment, sum(entry.reused for entry in kept)
        left, changes = dict(before), list[Change]()  # left are those who have not come yet
        page, isolation, fault = ClassPage(background(assignment, self._out)), None, ""
        with writing(self._out):
            if hasattr(os, "sync"):
                os.sync()  # a gradebook is on the disk only after every report that it counts
            with replacing(self._out / "grades.csv") as stream:
                items = [item.id for item in assignment.items]
                gradebook = Gradebook(stream, items, final=bool(finals))
                for report in reports:
                    gradebook.add(with_final(report, finals))
                    page.add(report)
                    common = report.isolation if isolation is None else isolation
                    isolation = tuple(layer for layer in common if layer in report.isolation)
                    fault = fault or report.fault
                    was = left.pop(name_cell(report.student), ABSENT)
                    now = NOT_GRADED if report.points is None else float(points_cell(report.points))
                    if was != now:
                        changes.append(Change(report.student, was, now))
                changes += [Change(name, score, ABSENT) for name, score in left.items()]
                shown, figures = changes if before else None, page.summary()
                described = {
                    "schema": 1,
                    "assignment": assignment.name,
                    "fixtures": self._grader.fixtures.sha256,
                    "isolation": list(isolation or ()),
                    "submissions": figures.students,
                    "not_graded": figures.students - figures.graded,
                    "reused": reused,
                    **run,
                    "changes": None if shown is None else [list(astuple(change)) for change in shown],
                }
                with replacing(self._out / "index.html") as index:
                    index.writelines(page.html(described, shown, final=bool(finals)))
            for name, entry in itertools.product(FOLDERS, kept if self._new != self._out else ()):
                staged, there = (_file(root, name, entry.student) for root in (self._new, self._out))
                if staged.is_file():
                    if there.is_file():
                        shutil.copymode(there, staged)
                    staged.replace(there)
            write_atomically(self._out / "run.json", json.dumps(described, indent=1) + "\n")
            shutil.rmtree(self._out / STAGED, ignore_errors=True)
        return Run(
            reports=reports,
            figures=figures,
            isolation=isolation or (),
            fault=fault,
            gone=tuple(left),
            reused=reused,
            seconds=run["seconds"],
        )

    def _latest(self, folder: str, student: str) -> Path:
        """Name the file of a student that is to stand in the folder: the staged one where there is one."""
        staged = _file(self._new, folder, student)
        return staged if staged.is_file() else _file(self._out, folder, student)


def page_of(submission: Submission, report: Report, details: Details, assignment: Assignment) -> str:
    """Render the page of one student."""
    notes = submission.notes
    try:
        listing = listing_of(submission, report, assignment.functions, details.lines)
    except Exception:  # whatever a student wrote, it ends no run: the page is then without it
        listing, notes = NOTHING, (*notes, UNLISTED)
    return feedback_page(report, notes, details, listing, assignment.title)


def with_history(details: Details, report: Report, before: Report | None, kept: Details | None, began: Any) -> Details:
    """Add the report whose place this one takes to the details, where it told something else.

    before   the report that is there; `kept` are its details, with what they tell of still earlier ones
    began    when the run began that wrote it, as far as anything says so

    What was damaged, a fault of the grader or of other items was no grading to tell of. Called again after a run that
    was killed it tells nothing twice.
    """

    def facts(report: Report) -> tuple[str, float | None, float, tuple[str, ...]]:
        passed = tuple(item.item for item in report.items if item.verdict == "passed")
        return report.submission.sha256, report.points, report.max_points, passed

    earlier = kept.earlier if kept is not None else ()
    if (
        before is not None
        and (before.status, before.student) == ("graded", report.student)
        and [item.item for item in before.items] == [item.item for item in report.items]
        and facts(before) != facts(report)
    ):
        entry = Earlier(began if isinstance(began, str) else "", *facts(before))
        earlier = earlier if earlier[-1:] == (entry,) else (*earlier, entry)
    return replace(details, earlier=earlier[-MOST_EARLIER:])


def _score(points: str) -> float | str:
    """Read points as an earlier gradebook spells them; what is no number stays as it is."""
    with contextlib.suppress(ValueError):
        score = float(points)
        return score if math.isfinite(score) else points
    return points or NOT_GRADED


def _file(root: Path, folder: str, student: str) -> Path:
    return root / folder / f"{file_stem(student)}.{FOLDERS[folder]}"


# The class's page, once more


def settle(
    out: Path,
    reports: Sequence[Report],
    assignment: Assignment,
    rules: Rules | None,
    shown: Mapping[str, Final] | None = None,
) -> dict[str, Final]:
    """Write the final grades of all `reports`, or with None take those of an earlier run away; the finals by student.

    The page of the class is written once more where a run has ended, unless it shows these: `shown` are those on it.
    The caller has the folder alone.
    """
    finals = write_finals(out, reports, assignment, rules)
    if finals == shown or not (out / "index.html").is_file():
        return finals
    run, page, changes = run_in(out), ClassPage(background(assignment, out)), None
    with contextlib.suppress(TypeError):  # a run that nothing can be read of
        changes = None if run.get("changes") is None else [Change(*change) for change in run["changes"]]
    for report in reports:
        page.add(with_final(report, finals))
    with replacing(out / "index.html") as stream:
        stream.writelines(page.html(run, changes, final=rules is not None))
    return finals


def run_in(out: Path) -> dict[str, Any]:
    """Read what `run.json` says of the last run in a folder; empty where there is none that says anything."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        run = json.loads((out / "run.json").read_bytes())
        return run if isinstance(run, dict) else {}
    return {}


def background(assignment: Assignment, out: Path) -> Background:
    """Gather what the page says besides figures: of the contract, and of the code and the answers in `out`."""

    @functools.lru_cache(maxsize=1)
    def details_of(student: str) -> Details:
        return read_details(_file(out, "details", student)) or Details("", "")

    clauses: dict[str, str] = {}  # mistake → the first sentence of the contract that it goes against
    with contextlib.suppress(FixtureError):
        for clause in read_contract(assignment) or ():
            # As one quotes a docstring: no marks of code, commas between columns, no colon at its end.
            columns = re.sub(r"(?<=\S) {3,}(?=\S)", ", ", clause.sentence.replace("`", ""))
            for mistake in clause.mistakes:
                clauses.setdefault(mistake, " ".join(columns.split()).rstrip(":; "))
    return Background(
        clauses,
        title=assignment.title,
        code_of=lambda student, function: details_of(student).code.get(function, ""),
        answers_of=lambda student: details_of(student).answers,
        answered=lambda student: details_of(student).answered,
    )
