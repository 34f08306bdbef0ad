"""Marks of equivalent changes: which lines they are about, and that no student reads one."""

from __future__ import annotations

import ast

import pytest
from all_assignments import each_assignment, handout_bytes

from autograder.authoring.catalogue import SIGN, Correct, marks, without_marks
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.authoring.handout.notebook import to_bytes
from autograder.authoring.handout.release import notebook_of
from autograder.grading.assignment import Assignment

PLAIN = "def f(x):\n    y = x + 1  # float[a]\n    return y\n"


@pytest.mark.parametrize(
    ("marked", "lines"),
    [
        (PLAIN, {}),
        (PLAIN.replace("[a]", "[a]  # equivalent: one"), {2: "one"}),
        (PLAIN.replace("    y", "    # equivalent: one\n    y"), {3: "one"}),
        (PLAIN.replace("    y =", "# equivalent: one\n    # equivalent: two\n    y ="), {4: "one; two"}),
        (PLAIN.replace("return y", "return y  # equivalent: one"), {3: "one"}),
        (PLAIN.replace("return y", "return y  # equivalent:"), {3: ""}),
    ],
)
def test_a_mark_is_about_its_line_or_the_next(marked: str, lines: dict[int, str]) -> None:
    assert marks(marked) == lines
    assert without_marks(marked) == PLAIN
    assert Correct.from_solution(marked, "f") == Correct.from_solution(PLAIN, "f")


@each_assignment
def test_no_student_reads_a_mark(assignment: Assignment) -> None:
    solution = solution_source(assignment)
    assert SIGN in solution
    assert ast.dump(ast.parse(without_marks(solution))) == ast.dump(ast.parse(solution))
    files = handout_bytes(assignment.name)
    assert [name for name, data in files.items() if SIGN.encode() in data] == []
    assert SIGN.encode() not in to_bytes(notebook_of(assignment))  # of which nbgrader makes what it releases
