"""The form of a catalogue: mistakes made by editing a correct text, which may be the solution's own."""

from __future__ import annotations

import ast

import pytest
from all_assignments import each_assignment

from autograder.authoring.catalogue import Correct
from autograder.authoring.fixtures.agreement import solution_source
from autograder.grading.items import Assignment

SOLUTION = '''\
"""A module."""


def twice(
    x: float,
) -> float:
    """Return twice x.

    def once(x): ...
    """
    ### BEGIN SOLUTION
    y = x + x                                   # batch
    # why it is so
    return y
    ### END SOLUTION


def bare(x):
    return x
'''


def test_the_solutions_text_comes_without_docstring_markers_and_comments_at_the_margin() -> None:
    assert Correct.from_solution(SOLUTION, "twice").source == (
        "def twice(\n    x: float,\n) -> float:\n    y = x + x\n    # why it is so\n    return y\n"
    )
    assert Correct.from_solution(SOLUTION, "bare").source == "def bare(x):\n    return x\n"


def test_a_function_that_the_solution_does_not_define_is_refused() -> None:
    with pytest.raises(ValueError, match="does not define thrice"):
        Correct.from_solution(SOLUTION, "thrice")


def test_a_mistake_remembers_the_text_that_it_departs_from() -> None:
    correct = Correct.from_solution(SOLUTION, "twice")
    mistake = correct.but("T01", "thrice", "How often?", ("x + x", "x + x + x"))
    assert (mistake.function, mistake.correct) == ("twice", correct.source)
    assert mistake.source == correct.source.replace("x + x", "x + x + x")


@each_assignment
def test_every_graded_function_can_be_taken_from_the_solution(assignment: Assignment) -> None:
    solution = solution_source(assignment)
    whole = {node.name: node for node in ast.parse(solution).body if isinstance(node, ast.FunctionDef)}
    for name in assignment.functions:
        node = whole[name]
        node.body = node.body[1:]  # the docstring
        assert ast.dump(ast.parse(Correct.from_solution(solution, name).source).body[0]) == ast.dump(node)
