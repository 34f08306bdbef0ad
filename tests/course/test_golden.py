"""The sample class of every assignment, graded from end to end: each submission earns exactly its golden report.

`support/golden.py` renews the golden files, and says what lies where.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from golden import (
    RENEW,
    Reports,
    as_text,
    difference,
    golden_folder,
    golden_path,
    golden_text,
    grade_class,
    kinds,
    sample_class,
)

from autograder.grading.assignment import Assignment
from autograder.submissions.finding import find
from autograder.vocabulary.files import file_stem

STUDENTS = [
    pytest.param(assignment, student, id=f"{assignment.name}-{file_stem(student)}", marks=marks)
    for assignment in ASSIGNMENTS
    for marks in [() if assignment == ASSIGNMENTS[0] else pytest.mark.long]
    for student in sorted(kinds(assignment))
]  # one class always, all of them on request
Grading = Callable[[Assignment], Reports]
each_student = pytest.mark.parametrize(("assignment", "student"), STUDENTS)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Grading:
    """A function that grades a sample class, each once."""
    folder = tmp_path_factory.mktemp("grades")
    return functools.cache(lambda assignment: grade_class(assignment, folder / assignment.name))


@each_student
def test_each_submission_earns_exactly_its_golden_report(graded: Grading, assignment: Assignment, student: str) -> None:
    path = golden_path(assignment, student)
    changed = difference(golden_text(path), as_text(graded(assignment)[student]))
    assert not changed, f"{student} earns another report than {path.name} holds. {RENEW}\n{changed}"


@each_student
def test_each_submission_earns_what_its_kind_says(graded: Grading, assignment: Assignment, student: str) -> None:
    report, kind = graded(assignment)[student], kinds(assignment)[student]
    lost = [item for item in report["items"] if item["verdict"] != "passed"]
    assert report["points"] == kind["points"]
    assert sorted({item["verdict"] for item in lost}) == kind.get("verdicts", [])
    assert sorted({slug for item in lost for slug in item["mistakes"]}) == kind.get("mistakes", [])
    if "functions" in kind:  # a mistake costs points in its own function alone
        assert sorted({item["function"] for item in lost}) == kind["functions"]


@each_assignment
def test_every_submission_has_a_kind_and_a_golden_file(assignment: Assignment) -> None:
    students = sorted(candidate.student for candidate in find([sample_class(assignment)], assignment.module))
    assert students == sorted(kinds(assignment))
    golden = sorted(path.name for path in golden_folder(assignment).glob("*.json"))
    assert golden == sorted(golden_path(assignment, name).name for name in students)
