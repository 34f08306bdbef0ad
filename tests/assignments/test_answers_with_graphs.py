"""A right answer whose tensors carry a graph that nobody asked for: no probe stumbles over it."""

from __future__ import annotations

import pytest
from all_assignments import ASSIGNMENTS

from autograder.authoring.fixtures.agreement import solution_source
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission

CARRYING = """

import functools


def _with_graph(value):
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value + torch.zeros((), dtype=value.dtype, requires_grad=True)
    return tuple(map(_with_graph, value)) if type(value) is tuple else value


def _carrying(function):
    @functools.wraps(function)
    def carrying(*given, **named):
        return _with_graph(function(*given, **named))

    return carrying

"""


@pytest.mark.long
@pytest.mark.parametrize("assignment", [one for one in ASSIGNMENTS if one.needs_torch], ids=lambda one: one.name)
@pytest.mark.timeout(300)
def test_a_graph_that_nobody_asked_for_makes_no_probe_raise(assignment: Assignment) -> None:
    wrapped = "\n".join(f"{name} = _carrying({name})" for name in assignment.functions)
    source = f"{solution_source(assignment)}{CARRYING}{wrapped}\n"
    with Sandbox() as sandbox:
        grader = Grader.of(assignment, read_fixtures(assignment))
        report = grader.grade(Submission("carrying", f"{assignment.module}.py", "", source), sandbox)
    stumbled = {case.case: case.message for item in report.items for case in item.cases if case.verdict == "raised"}
    assert stumbled == {}
    assert {case.verdict for item in report.items for case in item.cases} <= {"passed", "failed"}
