"""Answers as no library would give them: whatever a worker says, each item gets a verdict, and the page can be made."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from all_assignments import ASSIGNMENTS, fixtures_of

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment
from autograder.grading.fixtures import Case
from autograder.grading.grader import Grader
from autograder.pages.student_page import feedback_page
from autograder.sandbox.calls import Array, Observation, Outcome, Program, Request, Returned
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import to_bytes

Oddity = Callable[[Array], Array]
ODD: Mapping[str, Oddity] = {
    "as they should be": lambda array: array,
    "enormous": lambda array: np.full(array.shape, 1e308),
    "enormous in part": lambda array: np.where(
        np.arange(array.size).reshape(array.shape) % 2, 1e300, array.astype(float)
    ),
    "next to nothing": lambda array: np.full(array.shape, 5e-324),
    "no numbers": lambda array: np.full(array.shape, np.nan),
    "without end": lambda array: np.full(array.shape, -np.inf),
    "the largest whole numbers": lambda array: np.full(array.shape, 2**64 - 1, np.uint64),
    "truth values": lambda array: array.astype(bool),
    "empty": lambda array: np.zeros((0,) * 16, array.dtype),
    "of sixteen axes": lambda array: np.zeros((1,) * 16, array.dtype),
    "flat": lambda array: array.reshape(-1),
}
FACTS: Mapping[str, Any] = {
    "as they should be": None,
    "a number of 4,000 digits": 10**4000,
    "a fraction beyond all": 1.7e308,
    "nested": [[[[{"types": [[None]]}]]]],
    "an error without a type": {"types": [], "message": None},
    "an error of odd types": {"types": ["<b>", "\x1b[31m"], "message": "{expected}{observed.__class__}%s\u202e"},
    "text": "{0.__class__} <script>alert(1)</script>",
}


@dataclass(frozen=True)
class Answering:
    """Answers each call with what is right, spoilt; a case may be asked again, in a request of its own."""

    cases: Mapping[tuple[bytes, bytes], Case]
    odd: Oddity
    fact: Any
    layers: tuple[str, ...] = ("process",)

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        return [Outcome("observed", self._answer(self.cases[request.header, request.inputs])) for request in requests]

    def _answer(self, case: Case) -> Observation:
        arrays = {one.name: np.asarray(self.odd(one.array)) for one in case.expected if one.array is not None}
        returned = {
            name: Returned("tensor", "Tensor", array.dtype.name, array.shape, True, array)
            for name, array in arrays.items()
        }
        named = [one for one in case.expected if one.kind in ("fact", "error")]
        return Observation(returned, {one.name: one.value if self.fact is None else self.fact for one in named})


def answered(assignment: Assignment, odd: str, fact: str) -> str:
    """The verdicts of an assignment of which everything is answered so, after its page was made."""
    fixtures = fixtures_of(assignment.name)
    cases = {case.id: case for case in (*fixtures.cases, *fixtures.curves)}
    asked = {**fixtures.requests(assignment.items), **fixtures.requests((), assignment.curves)}
    by_request = {(request.header, request.inputs): cases[name] for name, request in asked.items()}
    runner = Answering(by_request, ODD[odd], FACTS[fact])
    grader = Grader.of(assignment, fixtures, counterexamples=False)
    submission = Submission("mallory", "mallory/module.py", "0" * 64, solution_source(assignment), "", "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report, shown = grader.grade_and_show(submission, runner)
    page = feedback_page(report, (), shown)
    to_bytes(report)
    assert "<script>alert" not in page
    assert not {"\x1b", "\u202e"} & set(page)
    return " ".join(sorted({item.verdict for item in report.items}))


def of_each(oddities: Sequence[str]) -> pytest.MarkDecorator:
    """All of them with every assignment; in short the first, and with the smallest assignment all."""
    smallest = min(ASSIGNMENTS, key=lambda one: len(one.items))
    pairs = []
    for assignment, odd in itertools.product(ASSIGNMENTS, oddities):
        marks = () if assignment == smallest or odd == oddities[0] else pytest.mark.long
        pairs.append(pytest.param(assignment, odd, id=f"{assignment.name}-{odd}", marks=marks))
    return pytest.mark.parametrize(("assignment", "odd"), pairs)


@of_each(list(ODD)[1:])
def test_odd_values_are_judged_and_warn_nobody(assignment: Assignment, odd: str) -> None:
    assert answered(assignment, odd, "as they should be") in ("failed", "failed passed")


@of_each(list(FACTS)[1:])
def test_odd_facts_are_judged_and_warn_nobody(assignment: Assignment, odd: str) -> None:
    assert answered(assignment, "as they should be", odd) in ("failed", "failed passed", "failed missing passed")
