"""Mistakes that change what callers know of parameters; marks of equivalent changes, which no student reads."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from all_assignments import each_assignment, handout_bytes

from autograder.authoring.catalogue import SIGN, Correct, Mistake, marks, without_marks
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.authoring.handout.notebook import to_bytes
from autograder.authoring.handout.release import notebook_of
from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import FixtureError

SCALED = Correct("scaled", "def scaled(x, factor=2, *, factors=0):\n    return factor * x + factors\n")


def defined(mistake: Mistake) -> Any:
    names: dict[str, Any] = {}
    exec(mistake.source, names)
    return names[mistake.function]


@pytest.mark.parametrize(("name", "answer"), [("factor", 15), ("factors", 11)])
def test_renamed_parameter_computes_the_same_under_its_new_name(name: str, answer: int) -> None:
    renamed, _ = SCALED.with_other_parameters("scaled", name, "other")
    assert renamed.slug == "scaled-parameters-renamed"
    assert defined(renamed)(3, other=5) == answer
    with pytest.raises(TypeError, match=name):
        defined(renamed)(3, **{name: 5})


def test_positional_only_arguments_keep_their_defaults() -> None:
    _, by_place = SCALED.with_other_parameters("scaled", "factor", "other")
    scaled = defined(by_place)
    assert (scaled(3), scaled(3, 5, factors=1)) == (6, 16)
    with pytest.raises(TypeError, match="positional-only"):
        scaled(x=3)


@pytest.mark.parametrize(
    ("correct", "told"),
    [
        (SCALED, "scaled has no parameter 'x2'"),
        (Correct("named", "def named(*, x2):\n    return x2\n"), "no argument that can be passed by its place"),
    ],
)
def test_parameters_that_are_not_there_are_refused(correct: Correct, told: str) -> None:
    with pytest.raises(FixtureError, match=told):
        correct.with_other_parameters("slug", "x2", "other")


# Marks of equivalent changes


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
