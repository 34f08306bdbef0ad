"""The folder of a run: read back one report at a time, by one run at a time, and nothing in it is taken on trust."""

from __future__ import annotations

import gc
import itertools
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from places import KIT

from autograder.course.batch import grade_all
from autograder.course.results import Run, open_results
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.submissions.finding import find
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
MODULE = f"{ASSIGNMENT.module}.py"


@pytest.fixture(scope="module")
def grader() -> Grader:
    return Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT))


def nobody_handed_in_a_line(folder: Path, count: int) -> list[Candidate]:
    """A class that needs no sandbox."""
    for index in range(count):
        (folder / f"student {index:05}").mkdir(parents=True)
        (folder / f"student {index:05}" / MODULE).touch()
    return find([folder], ASSIGNMENT.module)


# A class of any size


@pytest.mark.long
def test_student_more_costs_the_grader_next_to_nothing(grader: Grader, tmp_path: Path) -> None:
    """A report is 20 KiB of JSON and five times that as objects: whoever held them would need far more than this."""
    small, large, most = 10, 50, 5_000
    held = {}
    grade_all(grader, nobody_handed_in_a_line(tmp_path / "first", 1), tmp_path / "of first")  # fills what is cached

    def grade(count: int) -> None:
        left = itertools.count(count - 1, -1)

        def told(candidate: Candidate, report: Report) -> None:
            if next(left) == 0:  # the last of them, while all else is still held that a run holds
                gc.collect()
                held[count] = tracemalloc.get_traced_memory()[0]

        candidates = find([tmp_path / str(count)], ASSIGNMENT.module)
        run = grade_all(grader, candidates, tmp_path / f"of {count}", progress=told)
        assert sum(report.points == 0 for report in run.reports) == run.figures.students == count

    for count in (small, large):
        nobody_handed_in_a_line(tmp_path / str(count), count)
        tracemalloc.start()
        try:
            grade(count)
        finally:
            tracemalloc.stop()
    assert (held[large] - held[small]) / (large - small) < most


# Reports that lie on disk


@pytest.fixture
def graded(grader: Grader, tmp_path: Path) -> tuple[Path, Run]:
    out = tmp_path / "out"
    return out, grade_all(grader, nobody_handed_in_a_line(tmp_path / "class", 3), out)


def remove(path: Path) -> None:
    path.unlink()


def give_points(path: Path) -> None:
    path.write_text(path.read_text().replace('"points": 0.0', '"points": 3.0', 1))


def exchange(path: Path) -> None:
    shutil.copy(path.with_name("student 00002.json"), path)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (remove, "cannot be read any more"),
        (give_points, "is not what the run wrote"),
        (exchange, "is not what the run wrote"),
    ],
)
def test_report_changed_during_the_run_ends_it_loudly(
    grader: Grader, tmp_path: Path, spoil: Callable[[Path], None], says: str
) -> None:
    out = tmp_path / "out"
    path = out / "reports" / "student 00000.json"

    def progress(candidate: Candidate, report: Report) -> None:
        if candidate.student == "student 00002":
            spoil(path)

    candidates = nobody_handed_in_a_line(tmp_path / "class", 3)
    with pytest.raises(GraderFault, match=rf"{path} {says}.*: somebody changed it meanwhile\."):
        grade_all(grader, candidates, out, progress=progress)
    assert {path.name for path in out.iterdir()} == {"reports", "feedback", "details"}
    assert grade_all(grader, candidates, out).figures.graded == 3


def test_report_changed_after_the_run_is_refused(graded: tuple[Path, Run]) -> None:
    out, run = graded
    give_points(out / "reports" / "student 00001.json")
    with pytest.raises(GraderFault, match=r"student 00001\.json is not what the run wrote there"):
        list(run.reports)


# The folder


def test_half_written_files_of_killed_runs_are_taken_away(grader: Grader, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ours = [out / f".writing-{index}" for index in range(2)] + [
        out / "reports" / ".writing-x",
        out / "feedback" / ".writing-y",
    ]
    theirs = [out / "notes.txt", out / "reports" / ".hidden", out / "more" / ".writing-z", tmp_path / ".writing-a"]
    for path in (*ours, *theirs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    grade_all(grader, [], out)
    assert [path for path in ours if path.exists()] == []
    assert [path for path in theirs if not path.exists()] == []


def test_second_run_into_one_folder_is_refused(grader: Grader, tmp_path: Path) -> None:
    with open_results(tmp_path, grader, []):
        with pytest.raises(UsageError, match=rf"Another run is writing into {tmp_path}: wait until it has ended"):
            grade_all(grader, [], tmp_path)
        grade_all(grader, [], tmp_path / "elsewhere")
    grade_all(grader, [], tmp_path)


def test_names_that_a_folder_cannot_tell_apart_are_refused(grader: Grader, tmp_path: Path) -> None:
    empty = tmp_path / "empty.py"
    empty.touch()
    candidates = [Candidate(name, empty, "empty.py") for name in ("Ada", "ada", "Émile", "bela")]
    assert grade_all(grader, candidates, tmp_path / "out").figures.students == 4
    (tmp_path / "mac" / "reports").mkdir(parents=True)
    (tmp_path / "mac" / "REPORTS").symlink_to("reports")  # as a file system looks that does not tell case apart
    says = r"mac does not tell Ada and ada apart, which differ in case alone: rename one of them, or give an --out that"
    with pytest.raises(UsageError, match=says):
        grade_all(grader, candidates, tmp_path / "mac")
    assert grade_all(grader, candidates[1:], tmp_path / "mac").figures.students == 3
