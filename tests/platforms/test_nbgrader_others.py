"""nbgrader's real commands on every other assignment that has a notebook.toml, from source to exported CSV.

A class of three, right, wrong and hostile; test_nbgrader.py goes further with one assignment. Without the extra
`nbgrader` these tests skip.
"""

from __future__ import annotations

import resource
import shutil
from pathlib import Path

import pytest
from nbgrader_course import (
    NAME,
    OTHERS,
    WITH_NOTEBOOK,
    autograder,
    class_of_three,
    course,
    exported,
    files_in,
    nbgrader,
    refuse_what_is_for_staff,
    reports_in,
    scores,
)
from places import KIT

from autograder.authoring.handout.release import handout_files
from autograder.authoring.handout.source_notebook import read_extras
from autograder.grading.assignments import find_assignment
from autograder.grading.items import Assignment
from autograder.vocabulary.report import Report

pytest.importorskip("nbgrader", reason="the extra nbgrader is not installed")
pytestmark = pytest.mark.long  # in short: test_nbgrader.py, which goes the same road with one assignment


@pytest.fixture(scope="module", params=OTHERS)
def other(request: pytest.FixtureRequest) -> Assignment:
    return find_assignment(KIT, request.param)


@pytest.fixture(scope="module")
def road(other: Assignment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course with a class of three in this assignment, one of them in another too, graded by us and exported."""
    root = course(tmp_path_factory.mktemp(other.name) / "kit")
    nbgrader(root, "generate_assignment", other.name)
    class_of_three(root, other)
    autograder(root, "grade", "submitted", "--assignment", other.name, "--out", "grades", "--jobs", "2")
    autograder(root, "export", "nbgrader", "grades", "--course", "solution")
    return root


def functions_lost(report: Report) -> set[str]:
    return {item.function for item in report.items if item.verdict != "passed"}


def test_there_are_several_assignments_with_a_notebook_of_their_own() -> None:
    assert NAME in WITH_NOTEBOOK
    assert len(OTHERS) >= 1


def test_generate_assignment_makes_the_committed_handout(road: Path, other: Assignment) -> None:
    assert files_in(road / "handout" / other.name) == handout_files(other)
    refuse_what_is_for_staff(road)


def test_validate_fails_on_the_release(road: Path, other: Assignment) -> None:
    said = nbgrader(road, "validate", f"../handout/{other.name}/{other.module}.ipynb")
    failed = len(other.items) + len(read_extras(other).questions)
    assert f"VALIDATION FAILED ON {failed} CELL(S)!" in said
    assert said.count("is not implemented yet.") == len(other.items)


def test_validate_passes_on_the_source_in_under_a_minute(road: Path, other: Assignment) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = nbgrader(road, "validate", f"{other.name}/{other.module}.ipynb")
    assert "Success! Your notebook passes all the tests." in said
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60  # whatever else the machine does


def test_the_gradebook_holds_what_autograder_grade_found(road: Path, other: Assignment) -> None:
    found, reports = scores(road / "gradebook.db"), reports_in(road / "grades")
    questions = {str(question["id"]): question["points"] for question in read_extras(other).questions}
    assert sorted(found) == ["ada", "dov", "eve"]
    for student, report in reports.items():
        assert {name: found[student][name][0] for name in found[student].keys() - questions.keys()} == {
            item.item: item.points for item in report.items
        }
        assert found[student].keys() >= questions.keys()
    lost = {name: functions_lost(report) for name, report in reports.items()}
    assert lost["ada"] == set()
    assert {other.functions[0], other.functions[-1]} <= lost["dov"]
    assert other.functions[0] in lost["eve"]
    assert not list(road.rglob("owned"))
    rows = exported(road)
    scored = {student: float(row["raw_score"]) for student, row in rows.items()}
    assert scored == pytest.approx({student: report.points for student, report in reports.items()}, abs=1e-9)
    assert {float(row["max_score"]) for row in rows.values()} == {other.max_points + sum(questions.values())}


def test_nbgraders_own_autograde_agrees_on_wrong_work(road: Path, other: Assignment, tmp_path: Path) -> None:
    there = shutil.copytree(road, tmp_path / "kit", ignore=shutil.ignore_patterns("autograded"))
    with (there / "solution" / "nbgrader_config.py").open("a") as stream:
        stream.write("c.OverwriteCells.add_missing_cells = False\n")  # experiments that dov has deleted stay away
    nbgrader(there, "autograde", other.name, "--student", "dov")
    found = scores(there / "gradebook.db")["dov"]
    points = {item.item: item.points for item in reports_in(road / "grades")["dov"].items}
    assert {name: found[name][0] for name in points} == points
    copied = {path.name for path in (there / "autograded" / "dov" / other.name).iterdir()}
    given = {f"{name}.py" for name in other.given} | {Path(name).parts[0] for name in other.also}
    assert copied == {f"{other.module}.ipynb"} | given
