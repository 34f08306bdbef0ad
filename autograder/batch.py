"""Many submissions → reports, feedback pages, gradebook, dashboard. A run that is killed goes on where it stopped."""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import json
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from autograder.errors import UsageError
from autograder.fixtures import Fixtures
from autograder.gradebook import to_csv
from autograder.grading import Grader
from autograder.pages import ABSENT, NOT_GRADED, Change, feedback_page, index_page
from autograder.report import Report, file_stem, read_report, write_atomically, write_report
from autograder.sandbox import Isolation, Sandbox
from autograder.submission import Candidate, read

Progress = Callable[[Candidate, Report], None]
Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Run:
    """What one call of `grade_all` did.

    reports   in the order of the students
    reused    submissions whose report was there already, made of the same bytes
    seconds   wall time
    """

    reports: tuple[Report, ...]
    reused: int
    seconds: float


def grade_all(
    grader: Grader,
    candidates: Sequence[Candidate],
    out: Path,
    *,
    jobs: int = 1,
    fresh: bool = False,
    untouched: str = "",
    isolation: Isolation = "best",
    progress: Progress = lambda candidate, report: None,
    fixtures_of: Callable[[str], Fixtures] | None = None,
) -> Run:
    """Grade every candidate into `out`, `jobs` at a time.

    A report that is there already is kept where submission, fixtures and isolation are the same, unless `fresh`.
    Every file is written atomically; with one job or many the bytes are the same but for measured times.
    `fixtures_of` may give each student a set of their own.
    """
    started, began = _now(), time.perf_counter()
    with _writing(out):
        for name in ("reports", "feedback"):
            (out / name).mkdir(parents=True, exist_ok=True)
        before = _text(out / "grades.csv")

    def grade(candidate: Candidate, sandbox: Sandbox) -> tuple[Report, bool]:
        own = grader if fixtures_of is None else replace(grader, fixtures=fixtures_of(candidate.student))
        return _grade_one(own, candidate, sandbox, out, fresh=fresh, untouched=untouched)

    def advance(candidate: Candidate, result: tuple[Report, bool]) -> None:
        progress(candidate, result[0])

    done = in_sandboxes(grade, candidates, jobs, advance, isolation)
    reports = tuple(report for report, _ in done)
    run = Run(reports, sum(was_there for _, was_there in done), time.perf_counter() - began)
    with _writing(out):
        _write_summary(grader, run, out, started, jobs, before)
    return run


def in_sandboxes(
    work: Callable[[Task, Sandbox], Result],
    tasks: Sequence[Task],
    jobs: int,
    progress: Callable[[Task, Result], None] = lambda task, result: None,
    isolation: Isolation = "best",
) -> list[Result]:
    """What `work` makes of each task, in order; `jobs` at a time, each with a sandbox of its own.

    The first exception ends the run, as does Ctrl-C; what is under way is finished first.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(tasks)):
        waiting.put(index)
    done: dict[int, Result] = {}
    lock, stop = threading.Lock(), threading.Event()
    faults: list[BaseException] = []

    def serve(over: threading.Event) -> None:
        try:
            with Sandbox(isolation=isolation) as sandbox:
                for index in _taken(waiting, stop):
                    result = work(tasks[index], sandbox)
                    with lock:
                        done[index] = result
                        progress(tasks[index], result)
        except BaseException as fault:
            faults.append(fault)
            stop.set()
        finally:
            over.set()

    ends: list[threading.Event] = []
    try:
        for _ in range(max(1, min(jobs, len(tasks)))):
            ends.append(threading.Event())
            threading.Thread(target=serve, args=(ends[-1],), daemon=True).start()
        for over in ends:  # not `join`, which takes a thread for ended when Ctrl-C interrupts it
            while not over.wait(timeout=0.2):
                pass
    except KeyboardInterrupt:
        stop.set()
        for over in ends:
            over.wait(timeout=30.0)
        raise
    if faults:
        raise faults[0]
    return [done[index] for index in range(len(tasks))]


def _taken(waiting: queue.SimpleQueue[int], stop: threading.Event) -> Iterator[int]:
    with contextlib.suppress(queue.Empty):
        while not stop.is_set():
            yield waiting.get_nowait()


@contextlib.contextmanager
def _writing(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}. Give another folder with --out.") from error


def _grade_one(
    grader: Grader, candidate: Candidate, sandbox: Sandbox, out: Path, *, fresh: bool, untouched: str
) -> tuple[Report, bool]:
    submission = read(candidate, grader.assignment.module, untouched)
    stem = file_stem(candidate.student)
    path, page = out / "reports" / f"{stem}.json", out / "feedback" / f"{stem}.html"
    known = None if fresh else read_report(path)
    report = known if known is not None and _same(known, grader, submission.sha256, submission.path, sandbox) else None
    was_there = report is not None
    if report is None:
        report = grader.grade(submission, sandbox)
    text = feedback_page(report, submission.notes)
    with _writing(out):
        if not was_there:
            write_report(report, path)
        if _text(page) != text:  # a run that was killed may have left the page of an earlier report
            write_atomically(page, text)
    return report, was_there


def _text(path: Path) -> str | None:
    with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
        return path.read_bytes().decode()
    return None


def _same(known: Report, grader: Grader, sha256: str, path: str, sandbox: Sandbox) -> bool:
    return (
        known.status == "graded"
        and known.submission.sha256 == sha256
        and known.submission.path == path
        and known.fixtures == grader.fixtures.sha256
        and known.isolation == sandbox.layers
        and [item.item for item in known.items] == [item.id for item in grader.assignment.items]
    )


def _write_summary(grader: Grader, run: Run, out: Path, started: str, jobs: int, before: str | None) -> None:
    """Write what is of the whole class; the gradebook after the page, so that a run in between still sees changes."""
    from autograder.build import versions

    described: dict[str, Any] = {
        "schema": 1,
        "assignment": grader.assignment.name,
        "fixtures": grader.fixtures.sha256,
        "isolation": list(run.reports[0].isolation) if run.reports else [],
        "submissions": len(run.reports),
        "not_graded": sum(report.status == "not_graded" for report in run.reports),
        "reused": run.reused,
        "jobs": jobs,
        "started": started,
        "seconds": round(run.seconds, 2),
        "versions": versions(),
    }
    gradebook = to_csv(run.reports, [item.id for item in grader.assignment.items])
    changes = _changes(before or "", gradebook, run.reports)
    write_atomically(out / "index.html", index_page(run.reports, described, changes))
    write_atomically(out / "grades.csv", gradebook)
    write_atomically(out / "run.json", json.dumps(described, indent=1) + "\n")


def _changes(old: str, new: str, reports: Sequence[Report]) -> list[Change] | None:
    """What differs between two gradebooks; None where there is no earlier one.

    A gradebook is written where a run ends, so a run that was killed and started again loses no change.
    """
    before, now = dict(_scores(old)), dict(_scores(new))
    if not before:
        return None
    names = {cell: student for (cell, _), student in zip(_scores(new), sorted(r.student for r in reports), strict=True)}
    changes = [Change(names.get(one, one), before.get(one, ABSENT), now.get(one, ABSENT)) for one in {**now, **before}]
    return [change for change in changes if change.before != change.now]


def _scores(gradebook: str) -> list[tuple[str, float | str]]:
    """The students, as a gradebook spells them, with their points; nobody where it is none."""
    rows = csv.DictReader(io.StringIO(gradebook.removeprefix("\N{BYTE ORDER MARK}"), newline=""))
    try:
        return [(row["student"], _score(row["points"] or "")) for row in rows]
    except (csv.Error, KeyError):
        return []


def _score(cell: str) -> float | str:
    with contextlib.suppress(ValueError):
        points = float(cell)
        return points if math.isfinite(points) else cell
    return cell or NOT_GRADED


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
