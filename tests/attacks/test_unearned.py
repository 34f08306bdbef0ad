"""Points without an answer: submissions that say the same whatever they are asked, or what was right a case before."""

from __future__ import annotations

import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from all_assignments import each_assignment, fixtures_of
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import Case
from autograder.grading.grader import Grader
from autograder.grading.judging import Judge, withhold
from autograder.sandbox.calls import Observation, Outcome, Returned
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.worker import worker
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
    return grader.grade(submission, SimpleNamespace(run=sandbox.run, layers=()))  # which tries no case by itself


@each_assignment
def test_whoever_refuses_all_arguments_in_all_words_earns_nothing(assignment: Assignment, sandbox: Sandbox) -> None:
    assert {item.points for item in graded(assignment, RAISING, sandbox).items} == {0.0}


@each_assignment
def test_returning_nothing_passes_where_nothing_is_due(assignment: Assignment, sandbox: Sandbox) -> None:
    """Where a gradient is cut to length 0, the weights stay as they are, whatever is done to them."""
    cases = [case for item in graded(assignment, NOTHING, sandbox).items for case in item.cases]
    passed = [case.case for case in cases if case.verdict == "passed"]
    assert [name for name in passed if not name.startswith("step-clipped-to-nothing")] == []


MOST_BY_FORM = 2.0  # of 100


def worthless(value: Any, number: int) -> Any:
    """A fact in which a number stands for each other number: texts, truth values and the structure stay."""
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        found = {name: worthless(entry, number) for name, entry in entries}
        return found if isinstance(value, dict) else list(found.values())
    return value if isinstance(value, bool | str | None) else number


def without_values(case: Case, how: str) -> Observation:
    """What the solution gives in a case, in all but the numbers."""
    number = int(how == "a constant")
    returned, facts = {}, {}
    for one in (one for one in case.expected if not one.diagnosis):
        if one.array is not None:
            same = [array for array in case.inputs.values() if array.shape == one.array.shape]
            array = same[0] if same and how == "an argument" else np.full_like(one.array, number)
            with np.errstate(all="ignore"):
                array = (one.array if one.kind == "unchanged" else array).astype(one.dtype or one.array.dtype)
            returned[one.name] = Returned("tensor", "", array.dtype.name, array.shape, bool(one.attached), array)
        elif one.kind == "error":
            facts[one.name] = {"types": [one.value["type"]], "message": " ".join(one.value.get("mentions", ()))}
        elif one.kind == "fact" and not one.like:
            facts[one.name] = worthless(one.value, number)
    return Observation(returned, facts)


@each_assignment
def test_form_without_values_earns_next_to_nothing(assignment: Assignment) -> None:
    """Whoever raises where the solution does, and returns what it returns in all but the values, in the best way."""
    fixtures, best = fixtures_of(assignment.name), Counter[str]()
    judge = Judge(assignment.module, Submission("mallory", "mallory/module.py", "0" * 64, "x = 1"))
    for how in ("zeros", "a constant", "an argument"):
        earned: Counter[str] = Counter()
        answered = {case.id: Outcome("observed", without_values(case, how)) for case in fixtures.cases}
        judged = withhold(
            {
                item.id: [judge.judge(case, answered[case.id], 1.0) for case in fixtures.of_item(item.id)]
                for item in assignment.items
            }
        )
        for item in assignment.items:
            verdicts = judged[item.id]
            earned[item.function] += item.points * sum(one.passed for one in verdicts) / len(verdicts)
        best |= earned
    assert best.total() <= MOST_BY_FORM


@each_assignment
def test_call_stack_tells_no_error_case_from_another(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    given = assignment.given_sources()
    for name in given:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    worker.know_torch()
    worker.define(given, "")
    module = ModuleType(assignment.module)
    exec(solution_source(assignment), module.__dict__)
    stacks: dict[bool, set[object]] = {True: set(), False: set()}

    def recording(function: Callable[..., object]) -> Callable[..., object]:
        def recorded(*arguments: object, **named: object) -> object:
            frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(1))]
            stack = tuple((one.f_code.co_qualname, one.f_lineno, frozenset(one.f_locals)) for one in frames)
            raises = True
            try:
                answer = function(*arguments, **named)
                raises = False
            finally:
                stacks[raises].add(stack)
            return answer

        return recorded

    for name in assignment.functions:
        setattr(module, name, recording(getattr(module, name)))
    run = worker.Worker.around(module, assignment.probes_source(), "module.py").run
    with worker.undisturbed():
        for case in fixtures_of(assignment.name).cases:
            if any(one.kind == "error" for one in case.expected):
                run({"function": case.function, "probe": case.probe, "params": case.params}, case.encoded_inputs)
    assert stacks[True] <= stacks[False]


def in_a_row(case: Case) -> dict[str, tuple[object, ...]]:
    """Facts that a case numbers, "correctness 1" and so on, as far as they are not all the same."""
    rows: dict[str, list[object]] = {}
    for one in case.expected:
        if one.kind == "fact" and (named := re.fullmatch(r"(.*\D)\d+", one.name)):
            rows.setdefault(named[1], []).append(one.value)
    return {name: tuple(row) for name, row in rows.items() if len(set(map(repr, row))) > 1}


@each_assignment
def test_hidden_case_repeats_no_public_row(assignment: Assignment) -> None:
    for item in assignment.items:
        cases = fixtures_of(assignment.name).of_item(item.id)
        shown = [row for case in cases if case.visibility == "public" for row in in_a_row(case).items()]
        hidden = [row for case in cases if case.visibility == "hidden" for row in in_a_row(case).items()]
        assert not [row for row in hidden if row in shown], item.id


MOST_BY_FACTS = {"grpo_language_model": 5.0, "grpo_in_practice": 2.4, "policy_gradient": 1.0}  # of 100; else nothing


@each_assignment
def test_forged_facts_gain_little(assignment: Assignment) -> None:
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


def test_counting_calls_fails_hidden_cases(sandbox: Sandbox) -> None:
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
