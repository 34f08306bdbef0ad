"""Counterexamples: drawn afresh, judged by the oracle outside the sandbox, made smaller, and no stored case."""

from __future__ import annotations

import ast
import json
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
import torch
from all_assignments import ASSIGNMENTS
from places import KIT

from autograder.authoring.exam.selfcheck import right_answer_paths
from autograder.authoring.fixtures.regenerate import program_of, solution_source
from autograder.grading.assignment import Assignment, Item, find_assignment
from autograder.grading.counterexamples import (
    CALLS,
    DRAWN,
    MAX_SHOWN,
    ROUNDS,
    TRIED,
    Drawing,
    Failing,
    Search,
    Trial,
    counterexample_text,
    fault_of_call,
    literal,
    simpler,
)
from autograder.grading.fixtures import Case, read_fixtures
from autograder.grading.grader import Grader
from autograder.grading.wording import UNTOLD
from autograder.pages.student_page import feedback_page
from autograder.platforms.containers import gradescope_results, prairielearn_results
from autograder.platforms.nbgrader import comment_on
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import CaseResult, ItemResult, Report, SubmissionInfo
from autograder.vocabulary.report_text import item_lines, report_text


def drawing_of(assignment: Assignment) -> Drawing:
    drawing = Drawing.of(assignment)
    assert drawing is not None
    return drawing


ASSIGNMENT = find_assignment(KIT, "policy_gradient")
SOLUTION = solution_source(ASSIGNMENT)
WITH_DRAWING = [one for one in ASSIGNMENTS if Drawing.of(one) is not None]  # counterexamples.py is optional
DRAWINGS = {assignment.name: drawing_of(assignment) for assignment in WITH_DRAWING}
each_assignment = pytest.mark.parametrize("assignment", WITH_DRAWING, ids=lambda one: one.name)
MAX = ASSIGNMENT.item("deltas-max")
FIRST_OF_TIES = """
def compute_deltas(rewards, mode):
    if mode != "max_rewards":
        return solved_deltas(rewards, mode)
    best = torch.nn.functional.one_hot(rewards.argmax(dim=1), rewards.shape[1])
    return rewards * best
"""
RAISES = "def compute_deltas(rewards, mode):\n    raise KeyError(f'\\x1b[31m<script>alert(1)</script> {mode}')\n"
HANGS = "def compute_deltas(rewards, mode):\n    while True:\n        pass\n"


def altered(source: str) -> str:
    """The solution, one of its functions replaced; the right one is still there as `solved_deltas`."""
    return f"{SOLUTION}\n\nsolved_deltas = compute_deltas\n\n{source}"


def search(source: str, runner: Any, assignment: Assignment = ASSIGNMENT, key: str = "ada") -> Search:
    program = program_of(assignment, source)
    return Search(DRAWINGS[assignment.name], program, runner, assignment.load_timeout, key)


@dataclass
class Counted:
    """A sandbox that counts the calls in each run."""

    sandbox: Sandbox
    runs: list[int] = field(default_factory=list)
    layers: tuple[str, ...] = ()

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        self.runs.append(len(requests))
        return self.sandbox.run(program, requests, load_timeout=load_timeout)


def trials_of(assignment: Assignment, item: Item, key: str = "any", every: int = 1) -> list[Trial]:
    return [DRAWINGS[assignment.name].trial(item.id, key, number) for number in range(0, DRAWN, every)]


def drawn_items(assignment: Assignment) -> list[Item]:
    return [item for item in assignment.items if item.id in DRAWINGS[assignment.name].items()]


# What is drawn


@each_assignment
def test_what_is_drawn_depends_on_submission_and_item_alone(assignment: Assignment) -> None:
    own, again = DRAWINGS[assignment.name], pickle.loads(pickle.dumps(drawing_of(assignment)))
    assert own == again
    for item in drawn_items(assignment):
        first, second, other = (
            [one.trial(item.id, key, number) for number in range(0, DRAWN, 6)]
            for one, key in ((own, "ada"), (again, "ada"), (own, "ben"))
        )
        assert list(map(drawn_from, first)) == list(map(drawn_from, second))
        assert item.id in FINITE or list(map(drawn_from, first)) != list(map(drawn_from, other))


FINITE = ("reward-contract",)  # items with trials that hold no random number


def drawn_from(trial: Trial) -> tuple[Any, ...]:
    arrays = {name: (array.dtype.name, array.tolist()) for name, array in trial.inputs.items()}
    return trial.probe, json.dumps(dict(trial.params)), repr(arrays)


@each_assignment
def test_nothing_drawn_knows_secret(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is drawn from a secret comes from `generator_for`; here it is never asked."""
    drawing = drawing_of(assignment)
    assert drawing.items()  # which imports the modules
    for name, module in list(sys.modules.items()):
        if name.startswith(f"drawing_of_{assignment.name}_") and hasattr(module, "generator_for"):
            monkeypatch.setattr(module, "generator_for", asked_for_a_secret)
    for word in ("OPEN_SECRET", "hidden/", "safetensors"):
        assert word not in drawing.sources.get("counterexamples.py", "")
    for item in drawn_items(assignment):
        for number in range(0, DRAWN, 6):
            drawing.trial(item.id, "ada", number)


def asked_for_a_secret(*anything: object) -> None:
    raise AssertionError("a trial was drawn from a secret")


@pytest.mark.long
@each_assignment
def test_drawn_inputs_hold_no_row_of_hidden_ones(assignment: Assignment) -> None:
    fixtures = read_fixtures(assignment)
    public = {row for case in fixtures.cases if case.visibility == "public" for row in rows_of(case)}
    hidden = {row for case in fixtures.cases if case.visibility == "hidden" for row in rows_of(case)} - public
    assert hidden
    for item in drawn_items(assignment):
        for key in ("ada", "ben"):
            trials = trials_of(assignment, item, key)
            for one in (*trials, *simpler(trials[-1])[:3]):  # which are made of nothing but the trial
                assert not hidden & set(rows_of(one)), (item.id, one.inputs)


def rows_of(call: Case | Trial) -> Iterator[tuple[str, tuple[float, ...]]]:
    """The rows of every floating input that hold six different numbers; of fewer quarters, two draws may well agree."""
    for name, array in call.inputs.items():
        if array.dtype.kind == "f" and array.ndim:
            for row in array.reshape(-1, array.shape[-1]).astype(np.float64):
                if len(set(row.tolist())) > 5:
                    yield name, tuple(row.tolist())


@each_assignment
def test_right_answers_have_no_counterexample(assignment: Assignment, sandbox: Sandbox) -> None:
    """A trial of each item and what it shrinks to, for the solution and an answer in another style."""
    chosen = np.random.default_rng(0)
    asked = [
        (item, trial, case)
        for item in drawn_items(assignment)
        for first in trials_of(assignment, item, "right", every=DRAWN)
        for trial in (first, *way_down(first, chosen))
        if (case := trial.as_case(item)) is not None
    ]
    for source in (solution_source(assignment), right_answer_paths(assignment)[0].read_text(encoding="utf-8")):
        requests = [case.request(item) for item, _, case in asked]
        outcomes = sandbox.run(program_of(assignment, source), requests, load_timeout=assignment.load_timeout)
        for (item, trial, case), outcome in zip(asked, outcomes, strict=True):
            assert outcome.status in ("observed", "raised"), (item.id, trial.text(), outcome)
            fault = fault_of_call(case, outcome)
            assert fault is None, counterexample_text(Failing(trial, case, fault))


def way_down(trial: Trial, chosen: np.random.Generator) -> list[Trial]:
    """The trial made simpler a few times, by whichever step."""
    way: list[Trial] = []
    while len(way) < 3 and (steps := simpler(way[-1] if way else trial)):
        way.append(steps[int(chosen.integers(len(steps)))])
    return way


# What is pasted


@each_assignment
def test_pasted_snippet_gives_what_is_expected(assignment: Assignment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of text that a trial has, run with the solution: a value is the expected one, a wrong call raises."""
    monkeypatch.syspath_prepend(str(assignment.solution))
    names: dict[str, Any] = {"torch": torch, "np": np}
    exec(f"from {assignment.module} import *", names)
    for given in assignment.given:
        exec(f"from {given} import *", names)
    for item in drawn_items(assignment):
        for trial in trials_of(assignment, item, every=DRAWN // 3):
            case = trial.as_case(item)
            if case is not None:
                check_snippets(trial, case, dict(names))


def check_snippets(trial: Trial, case: Case, names: dict[str, Any]) -> None:
    for expectation in case.expected:
        text = trial.text(expectation.name)
        if expectation.kind == "error":
            with pytest.raises(Exception) as raised:  # noqa: PT011
                pasted(text, names)
            assert expectation.value["type"] in [kind.__name__ for kind in type(raised.value).__mro__], text
            continue
        found = pasted(text, names)
        if isinstance(found, torch.dtype):
            wanted = (expectation.dtype, expectation.value, f"{expectation.value}"[6:])
            assert f"{found}".removeprefix("torch.") in wanted
        elif expectation.array is not None and "values" not in expectation.forgiven and expectation.atol < 1:
            right = np.asarray(expectation.array, np.float64)
            seen = torch.as_tensor(found).detach().to(torch.float64).reshape(right.shape)
            np.testing.assert_allclose(seen, right, rtol=1e-3, atol=1e-3, err_msg=text)


def pasted(text: str, names: dict[str, Any]) -> Any:
    """The value of the last expression, as a notebook's cell shows it."""
    tree = ast.parse(text)
    last = tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_tensor_is_written_so_that_it_can_be_read_back() -> None:
    for array in (
        np.array([[1.0, -0.5], [np.inf, 0.1]]),
        np.array([0.1, 3.0], dtype=np.float32),
        np.array([[1, 2]]),
        np.array(2.0**-30),
    ):
        found = eval(literal(array), {"torch": torch, "float": float})
        assert found.numpy().dtype == array.dtype
        assert np.array_equal(found.numpy(), array)
    assert literal(np.array([-0.0])) == "torch.tensor([0.0], dtype=torch.float64)"
    assert literal(np.array([[1.0, 2.5]]), "numpy") == "np.array([[1.0, 2.5]])"
    assert literal(np.array([[1.0, 2.5]]), "python") == "[[1.0, 2.5]]"


# The search


def test_budget_holds_where_everything_is_wrong(sandbox: Sandbox) -> None:
    counted = Counted(sandbox)
    one = search(altered(RAISES), counted)
    one.counterexample(MAX)
    assert sum(counted.runs) <= DRAWN + ROUNDS * TRIED + 1
    assert one.calls == CALLS - sum(counted.runs)
    poor = search(altered(RAISES), counted := Counted(sandbox))
    poor.calls = 30
    assert not poor.counterexample(MAX)
    assert sum(counted.runs) <= 30


def test_call_that_never_ends_ends_search(sandbox: Sandbox) -> None:
    quick = replace(MAX, timeout=0.5, cpu=1.0)
    counted = Counted(sandbox)
    one = search(altered(HANGS), counted)
    assert one.counterexample(quick) == ""
    assert len(counted.runs) == 1


def test_answer_that_depends_on_earlier_calls_is_not_shown(sandbox: Sandbox) -> None:
    """What is pasted is called first: there it would be right."""
    second_is_wrong = altered(
        "CALLS = []\ndef compute_deltas(rewards, mode):\n    CALLS.append(mode)\n"
        "    return solved_deltas(rewards, mode) + (len(CALLS) > 1)"
    )
    assert search(second_is_wrong, sandbox).counterexample(MAX) == ""


HOSTILE = (
    "rewards.new_full(rewards.shape, float('nan'))",
    "'\\u202e' * 10_000",
    "type('\\x1b[31m' * 30, (), {})()",
    "rewards.to(torch.complex64)",
    "torch.zeros(2, 2).to_sparse()",
    "torch.zeros([1] * 12)",
)


@pytest.mark.parametrize("returned", HOSTILE)
def test_whatever_comes_back_is_data(returned: str, sandbox: Sandbox) -> None:
    source = altered(f"def compute_deltas(rewards, mode):\n    return {returned}")
    text = search(source, sandbox).counterexample(MAX)
    assert len(text) < 2000
    assert all(line.isprintable() for line in text.splitlines())
    assert len(next(line for line in text.splitlines() if line.startswith("  yours "))) <= MAX_SHOWN + len(
        "  yours     "
    )


# In a report


FIXTURES = read_fixtures(ASSIGNMENT)
SEEN = tuple(  # the cases of one item, of which students see a single one
    replace(case, visibility="public" if case.id == "deltas-max-walkthrough" else "hidden")
    for case in FIXTURES.of_item(MAX.id)
)
GRADER = Grader.of(replace(ASSIGNMENT, items=(MAX,), curves=()), replace(FIXTURES, cases=SEEN, curves=()))
TIES = Submission("ada", "ada/policy_gradient.py", "0" * 64, altered(FIRST_OF_TIES))


def test_student_sees_call_to_paste_and_no_command_that_passes(sandbox: Sandbox) -> None:
    (item,) = GRADER.grade(TIES, sandbox).items
    text = "\n".join(item_lines(item))
    assert item.fails_unseen
    assert "compute_deltas(torch.tensor([[1.0, 1.0]]), 'max_rewards')" in text
    assert "Again: " not in text


@pytest.mark.parametrize("fault", ["raise ImportError", "DRAWS = {'deltas-max': None}", "DRAWS ="])
def test_fault_of_what_draws_costs_no_points(fault: str, sandbox: Sandbox) -> None:
    sources = {**drawing_of(ASSIGNMENT).sources, "counterexamples.py": fault}
    broken = replace(GRADER, drawing=Drawing(ASSIGNMENT.name, sources))
    (item,), (usual,) = (grader.grade(TIES, sandbox).items for grader in (broken, GRADER))
    assert item.points == usual.points
    assert not item.counterexample


# Wherever a student reads it

HOSTILE_TEXT = "f(`x`)\n  yours     </pre><script>alert(1)</script> ``` \u202e \x1b[31m\n  expected  1.0"


def a_report(counterexample: str) -> Report:
    cases = (CaseResult("seen", "public", "passed", ""), CaseResult("unseen", "hidden", "failed", "It differs."))
    item = ItemResult("ties", "f", "ties", 1.0, 2.0, "failed", (), "It differs.", "A hint.", 0.0, cases, counterexample)
    return Report("ada", "policy_gradient", SubmissionInfo("ada", "00"), "ff", (), (item,))


SHOWN_BY: dict[str, Callable[[Report], str]] = {
    "terminal": report_text,
    "page": feedback_page,
    "gradescope": lambda report: json.dumps(gradescope_results(report), ensure_ascii=False),
    "gradescope, later": lambda report: str(gradescope_results(report, (), "after_published")["tests"][1]["output"]),
    "nbgrader": lambda report: comment_on(report.items),
    "prairielearn": lambda report: json.dumps(prairielearn_results(report), ensure_ascii=False),
}


@pytest.mark.parametrize("where", SHOWN_BY)
def test_every_way_of_reading_report_shows_it_escaped_and_cut(where: str) -> None:
    show = SHOWN_BY[where]
    shown = show(a_report(HOSTILE_TEXT))
    assert "expected  1.0" in shown
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert "Again" not in shown
    assert where != "page" or ("<script>alert" not in shown and "&lt;script&gt;" in shown)
    assert not where.startswith("gradescope") or shown.count("```") % 2 == 0
    assert len(show(a_report("x" * 100_000))) < len(show(a_report("x"))) + 5_000


@pytest.mark.parametrize("text", ["f(1)\n  yours     2", ""])
def test_counterexample_replaces_what_is_to_be_looked_for(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "counterexample", lambda *_, **__: text)
    item = ASSIGNMENT.items[0]
    cases = (CaseResult("a", "public", "passed", ""), CaseResult("b", "hidden", "raised", f"f raised.{UNTOLD}"))
    failed = ItemResult(
        item.id, item.function, item.title, 0.0, 1.0, "raised", (), f"f raised.{UNTOLD}", "", 0.0, cases
    )
    (found,) = search("", None).with_counterexamples([failed], [item])
    assert found.counterexample == text
    assert found.message == ("f raised." if text else failed.message)
