"""Points without an answer: submissions that say the same whatever they are asked, or what was right a case before."""

from __future__ import annotations

import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest
from all_assignments import each_assignment, fixtures_of
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import Case
from autograder.grading.grader import Grader
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
    return grader.grade(submission, sandbox)


@each_assignment
def test_whoever_refuses_all_arguments_in_all_words_earns_nothing(assignment: Assignment, sandbox: Sandbox) -> None:
    assert {item.points for item in graded(assignment, RAISING, sandbox).items} == {0.0}


@each_assignment
def test_returning_nothing_passes_where_nothing_is_due(assignment: Assignment, sandbox: Sandbox) -> None:
    """Where a gradient is cut to length 0, the weights stay as they are, whatever is done to them."""
    cases = [case for item in graded(assignment, NOTHING, sandbox).items for case in item.cases]
    passed = [case.case for case in cases if case.verdict == "passed"]
    assert [name for name in passed if not name.startswith("step-clipped-to-nothing")] == []


WORTHLESS = """
import copy, functools, numbers, sys

own = {{"__name__": "own"}}
exec({solution!r}, own)
torch = sys.modules.get("torch")
numpy = sys.modules["numpy"]
ARRAYS = tuple(one for one in (torch and torch.Tensor, numpy.ndarray) if one)


def apart(found):
    if torch and isinstance(found, torch.Tensor):
        return found.detach().clone()
    if callable(found) and not (torch and isinstance(found, torch.nn.Module)):
        raise TypeError("whatever it calls would see it")
    return copy.deepcopy(found)


def worth_nothing(found, arguments):
    if isinstance(found, ARRAYS):
        alike = [one for one in arguments if isinstance(one, ARRAYS)]
        same = [one for one in alike if one.shape == found.shape]
        return {array}
    if isinstance(found, numbers.Number) and not isinstance(found, bool):
        return type(found)({number})
    if isinstance(found, dict):
        return {{name: worth_nothing(one, arguments) for name, one in found.items()}}
    if isinstance(found, (list, tuple)):
        return type(found)(worth_nothing(one, arguments) for one in found)
    return found if isinstance(found, (bool, str)) else None


def worthless(right):
    @functools.wraps(right)
    def answer(*arguments, **named):
        try:
            given = [apart(one) for one in arguments], {{name: apart(one) for name, one in named.items()}}
        except (TypeError, RuntimeError):
            return worth_nothing(0.0, arguments)
        return worth_nothing(right(*given[0], **given[1]), [*arguments, *named.values()])
    return answer


for name in {functions!r}:
    globals()[name] = worthless(own[name])
"""
NOTHING_OF = {  # what stands for each array that the solution returns, and for each number
    "zeros": ("found * 0", 0),
    "zeros with a graph": ("same[0] * 0 if same else sum((one.sum() for one in alike), 0) * 0", 0),
    "a constant": ("found * 0 + 1", 1),
    "an argument": ("same[0] if same else found * 0", 0),
}
MOST_BY_FORM = 2.0  # of 100


@each_assignment
def test_form_without_values_earns_next_to_nothing(assignment: Assignment, sandbox: Sandbox) -> None:
    """Whoever raises where the solution does, and returns what it returns in all but the values, in the best way."""
    best: Counter[str] = Counter()
    grader = Grader.of(assignment, fixtures_of(assignment.name), counterexamples=False)
    for array, number in NOTHING_OF.values():
        words = {"solution": solution_source(assignment), "functions": assignment.functions}
        source = WORTHLESS.format(**words, array=array, number=number)
        report = grader.grade(Submission("mallory", "mallory/module.py", "0" * 64, source, "", ""), sandbox)
        earned: Counter[str] = Counter()
        for item in report.items:
            earned[item.function] += item.points or 0.0
        best |= earned
        assert {case.verdict for item in report.items for case in item.cases} <= {"passed", "failed", "raised"}
    assert best.total() <= MOST_BY_FORM


@each_assignment
def test_call_stack_tells_no_error_case_from_another(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    given = assignment.given_sources()
    for name in given:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    worker.know_torch()
    worker.define_all(given)
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


MOST_BY_FACTS = {
    "grpo_language_model": 5.0,
    "grpo_in_practice": 2.4,
    "policy_gradient": 1.0,
}  # of 100; of others nothing


@each_assignment
def test_forged_facts_gain_little(
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
