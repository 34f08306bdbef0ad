"""Points without an answer: submissions that say the same whatever they are asked, or what was right a case before."""

from __future__ import annotations

import re

from all_assignments import each_assignment, fixtures_of
from places import KIT

from autograder.grading.assignments import find_assignment
from autograder.grading.cases import Case
from autograder.grading.grader import Grader
from autograder.grading.items import Assignment
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report

WORDS = "mode rewards mean std token sequence trial shape length mask group sum negative positive empty response"
RAISING = f"raise ValueError({WORDS!r} + repr((arguments, named)))"
NOTHING = "return None"


def graded(assignment: Assignment, body: str, sandbox: Sandbox) -> Report:
    """A submission all of whose functions have this body."""
    source = "\n".join(f"def {name}(*arguments, **named):\n    {body}" for name in assignment.functions)
    submission = Submission("mallory", "mallory/module.py", "0" * 64, source, "", "")
    grader = Grader.of(assignment, fixtures_of(assignment.name), counterexamples=False)
    return grader.grade(submission, sandbox)


@each_assignment
def test_whoever_refuses_all_arguments_in_all_words_earns_nothing(assignment: Assignment, sandbox: Sandbox) -> None:
    assert {item.points for item in graded(assignment, RAISING, sandbox).items} == {0.0}


@each_assignment
def test_whoever_returns_nothing_passes_where_nothing_is_to_be_done_alone(
    assignment: Assignment, sandbox: Sandbox
) -> None:
    """Where a gradient is cut to length 0, the weights stay as they are, whatever is done to them."""
    cases = [case for item in graded(assignment, NOTHING, sandbox).items for case in item.cases]
    passed = [case.case for case in cases if case.verdict == "passed"]
    assert [name for name in passed if not name.startswith("step-clipped-to-nothing")] == []


def in_a_row(case: Case) -> dict[str, tuple[object, ...]]:
    """Facts that a case numbers, "correctness 1" and so on, as far as they are not all the same."""
    rows: dict[str, list[object]] = {}
    for one in case.expected:
        if one.kind == "fact" and (named := re.fullmatch(r"(.*\D)\d+", one.name)):
            rows.setdefault(named[1], []).append(one.value)
    return {name: tuple(row) for name, row in rows.items() if len(set(map(repr, row))) > 1}


@each_assignment
def test_no_hidden_case_asks_for_the_answers_of_a_public_one_in_its_order(assignment: Assignment) -> None:
    for item in assignment.items:
        cases = fixtures_of(assignment.name).of_item(item.id)
        shown = [row for case in cases if case.visibility == "public" for row in in_a_row(case).items()]
        hidden = [row for case in cases if case.visibility == "hidden" for row in in_a_row(case).items()]
        assert not [row for row in hidden if row in shown], item.id


MOST_BY_FACTS = {
    "grpo_language_model": 5.0,
    "grpo_in_practice": 2.0,
    "policy_gradient": 1.0,
}  # of 100; of others nothing


@each_assignment
def test_whoever_forges_facts_and_tells_those_of_public_cases_again_gains_no_more_than_is_written_down(
    assignment: Assignment,
) -> None:
    """Hidden cases that ask for nothing but facts which a public case of the same item asks for as well."""
    gained = 0.0
    for item in assignment.items:
        cases = fixtures_of(assignment.name).of_item(item.id)
        shown = [fact for case in cases if case.visibility == "public" for fact in told(case)]
        hidden = [case for case in cases if case.visibility == "hidden"]
        free = [case for case in hidden if is_of_facts(case) and all(fact in shown for fact in told(case))]
        gained += item.points * len(free) / len(cases)
    assert gained <= MOST_BY_FACTS.get(assignment.name, 0.0)


def told(case: Case) -> list[tuple[str, object]]:
    """The facts that a case asks for, and the errors."""
    kinds = ("fact", "error")
    return [(one.name, one.value) for one in case.expected if one.kind in kinds and not one.diagnosis]


def is_of_facts(case: Case) -> bool:
    """Whether it asks for no number that is not given: inputs that stay as they are can be told by whoever has them."""
    return {one.kind for one in case.expected if not one.diagnosis} <= {"fact", "error", "unchanged"}


BY_COUNTING = """
import itertools
calls = itertools.count()
def verify(text, answer):
    place = next(calls) % {both}
    return {pairs}[place]
"""


def test_whoever_counts_calls_and_says_what_was_right_before_fails_the_hidden_cases(sandbox: Sandbox) -> None:
    assignment, fixtures = find_assignment(KIT, "grpo_in_practice"), fixtures_of("grpo_in_practice")
    items = [assignment.item(name) for name in ("verify-right", "verify-format")]
    rows = [in_a_row(case) for item in items for case in fixtures.of_item(item.id) if case.visibility == "public"]
    pairs = [(0.0, right) for right in rows[0]["correctness "]] + [(box, 0.0) for box in rows[1]["format "]]
    source = BY_COUNTING.format(both=len(pairs), pairs=pairs)
    grader = Grader.of(assignment, fixtures, counterexamples=False)
    submission = Submission("mallory", "mallory/module.py", "0" * 64, source, "", "")
    report = grader.grade(submission, sandbox, items=items)
    asked = [case for item in report.items for case in item.cases if not case.case.endswith("-by-name")]
    assert {(case.visibility, case.verdict) for case in asked} == {("public", "passed"), ("hidden", "failed")}
