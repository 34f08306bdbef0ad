"""Grading as a whole: one submission, the stored cases, a real sandbox. Nothing here is trusted or faked."""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import nbformat
import pytest
from all_assignments import fixtures_of, generator_of
from graded_folder import without_times
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading import grader as grader_module
from autograder.grading.assignment import find_assignment
from autograder.grading.grader import NOTHING_READ, Grader
from autograder.grading.judging import LATE
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import RIGHT_FORM, ItemResult, Report

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
CATALOGUE = generator_of(ASSIGNMENT.name)["mistakes"]
FIXTURES = fixtures_of(ASSIGNMENT.name)
CASES = {case.id: case for case in FIXTURES.cases}
SOLUTION = solution_source(ASSIGNMENT)
GRADER = Grader.of(ASSIGNMENT, FIXTURES, counterexamples=False)
BY_SLUG = {mistake.slug: mistake for mistake in CATALOGUE.MISTAKES}


def submission(source: str, *, problem: str = "", fault: str = "") -> Submission:
    return Submission("ada", "ada/policy_gradient.py", "0" * 64, source, problem, fault)


def with_more(*sources: str) -> str:
    """The solution, some of its definitions replaced by later ones."""
    return "\n\n".join([SOLUTION, *sources])


@pytest.fixture(scope="module")
def grade(sandbox: Sandbox) -> Callable[[str], Report]:
    """Grade a source; each source is graded once."""
    return cache(lambda source: GRADER.grade(submission(source), sandbox))


def lost(report: Report) -> list[ItemResult]:
    return [item for item in report.items if item.points != item.max_points]


def lost_functions(report: Report) -> set[str]:
    return {item.function for item in lost(report)}


# Right answers


SLOW = """
import functools, sys, time
def slowed(function):
    @functools.wraps(function)
    def slow(*arguments, **named):
        time.sleep({seconds})
        return function(*arguments, **named)
    return slow
for name in {names!r}:
    globals()[name] = slowed(globals()[name])
"""


def test_submission_has_one_budget_for_all_it_runs(sandbox: Sandbox) -> None:
    slow = SOLUTION + SLOW.format(seconds=0.3, names=ASSIGNMENT.functions)
    grader = replace(GRADER, assignment=replace(ASSIGNMENT, budget=3.0))
    GRADER.grade(submission(""), sandbox)  # after which all is warm
    began = time.perf_counter()
    report, details = grader.grade_and_show(submission(slow), sandbox)
    assert time.perf_counter() - began < 10
    verdicts = {case.verdict for item in report.items for case in item.cases}
    late = [item for item in report.items if item.verdict != "passed"]
    assert verdicts == {"passed", "not_run"}
    assert {item.message for item in late} == {LATE}
    assert report.cause == "The submission had used up its time."
    assert 0 < (report.points or 0.0) < 100
    assert [(curve.series, curve.message) for curve in details.curves] == [
        ((), "Not run: the submission had used up its time.") for _ in ASSIGNMENT.curves
    ]


def test_unknown_wrong_answer_gets_hint_of_simplest_item(grade: Callable[[str], Report]) -> None:
    unheard = "def compute_kl_penalty(log_probs, ref_log_probs):\n    return (log_probs * 7 - ref_log_probs).sum()"
    report = grade(with_more(unheard))
    assert lost_functions(report) == {"compute_kl_penalty"}
    first, *others = lost(report)
    assert (first.mistakes, first.hint) == ((), ASSIGNMENT.item("kl-values").hint)
    assert {item.mistakes for item in others} == {()}
    asked = [item.item for item in others if item.hint == ASSIGNMENT.item(item.item).hint]
    assert not asked, "what later items ask may be right"
    waiting = {item.item for item in others if item.message.startswith(RIGHT_FORM)}
    assert {item.item for item in others if "start there" in item.hint} == waiting != set()


# Faults stay with the item that caused them


def test_hang_costs_its_own_function_only(sandbox: Sandbox) -> None:
    hung = "compute_kl_penalty"
    hang = f"def {hung}(log_probs, ref_log_probs):\n    while True:\n        pass"
    items = tuple(replace(item, timeout=0.5) if item.function == hung else item for item in ASSIGNMENT.items)
    report = replace(GRADER, assignment=replace(ASSIGNMENT, items=items)).grade(submission(with_more(hang)), sandbox)
    assert lost_functions(report) == {hung}
    for item in lost(report):
        rest = ["not_run"] * (len(item.cases) - 1)
        assert (item.verdict, item.points) == ("timed_out", 0)
        assert [case.verdict for case in item.cases] == ["timed_out", *rest]
        assert item.message == (
            "compute_kl_penalty had not finished after 0.5 seconds. Is there a loop that never ends?"
        )


def test_worst_case_is_verdict_first_is_message(grade: Callable[[str], Report]) -> None:
    mixed = """
right = compute_deltas
def compute_deltas(rewards, mode):
    if rewards.shape[-1] > 6:
        raise RuntimeError("seven")
    return right(rewards, mode) + (mode == "max_rewards")
"""
    items = {item.item: item for item in lost(grade(with_more(mixed)))}
    assert {case.verdict for case in items["deltas-max"].cases} == {"failed", "raised"}
    assert items["deltas-max"].cases[0].verdict == "failed"
    assert items["deltas-max"].verdict == "raised"
    assert items["deltas-max"].message == items["deltas-max"].cases[0].message
    assert items["deltas-centered"].verdict == "raised"


# A module that does not load

NOT_REACHED = "Not reached: policy_gradient.py could not be imported."


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def compute_deltas(:\n", "policy_gradient.py could not be imported. Importing it raised SyntaxError"),
        ("import torch_of_tomorrow\n", "raised ModuleNotFoundError: No module named 'torch_of_tomorrow'."),
        ("\n\nraise KeyError('top')\n", "Line 3 of your file:\n  raise KeyError('top')"),
        ("import os\nos._exit(4)\n", "it ended the Python process (exited with status 4)."),
    ],
    ids=["syntax", "import", "exception", "exit"],
)
def test_module_that_does_not_load_is_told_why(source: str, says: str, grade: Callable[[str], Report]) -> None:
    report = grade(source)
    assert (report.points, report.status) == (0, "graded")
    assert {item.message for item in report.items} == {NOT_REACHED}
    assert {item.verdict for item in report.items} <= {"raised", "crashed"}
    assert {(item.mistakes, item.hint) for item in report.items} == {((), "")}
    assert {case.message for item in report.items for case in item.cases} == {NOT_REACHED}
    assert says in report.cause


def test_module_that_never_finishes_importing_is_told_so(sandbox: Sandbox) -> None:
    grader = replace(GRADER, assignment=replace(ASSIGNMENT, load_timeout=0.5))
    report = grader.grade(submission("while True:\n    pass\n"), sandbox)
    assert report.points == 0
    assert {(item.verdict, item.message) for item in report.items} == {("timed_out", NOT_REACHED)}
    assert report.cause == (
        "policy_gradient.py had not finished importing in time. Does code at its top level train a model or wait?"
    )


# Where a line stands that raised


def grade_file(path: Path, sandbox: Sandbox) -> Report:
    (candidate,) = find([path], ASSIGNMENT.module)
    found = read(candidate, ASSIGNMENT.module, ASSIGNMENT.untouched_source())
    return GRADER.grade(found, sandbox, [ASSIGNMENT.item("kl-values")])


RAISING = "def compute_kl_penalty(log_probs, ref_log_probs):\n    x = 1\n    raise KeyError('here')  # é"


def test_line_of_notebook_is_line_of_its_cell(tmp_path: Path, sandbox: Sandbox) -> None:
    cells = [
        nbformat.v4.new_markdown_cell("# Mine"),
        nbformat.v4.new_code_cell("from __future__ import annotations\nimport torch\n\n\ndef helper(): pass"),
        nbformat.v4.new_code_cell("%matplotlib inline\nprint('no')\n\nhelper\n" + RAISING),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "ada.ipynb")
    (item,) = grade_file(tmp_path / "ada.ipynb", sandbox).items
    assert "Line 7 of cell 3 (text cells count):\n  raise KeyError('here')" in item.message


@pytest.mark.parametrize(
    "data",
    [
        f"\n\n{RAISING}".encode(),
        f"\n\n{RAISING}".replace("\n", "\r\n").encode(),
        f"\ufeff\n\n{RAISING}".encode(),
        f"# coding: cp1252\n\x0c\n{RAISING}".encode("cp1252"),
        f"# mine\n# -*- coding: latin-1 -*-\n{RAISING}".encode("latin-1"),
        f"%matplotlib inline\n# %%\n{RAISING}\n# %% [markdown]\n# An end.\n".encode(),
    ],
    ids=["plain", "crlf", "mark", "form feed", "latin-1", "a script saved from a notebook"],
)
def test_line_of_module_is_that_of_file_handed_in(tmp_path: Path, sandbox: Sandbox, data: bytes) -> None:
    (tmp_path / "ada.py").write_bytes(data)
    (item,) = grade_file(tmp_path / "ada.py", sandbox).items
    assert "raised KeyError: 'here'.\nLine 5 of your file:\n  raise KeyError('here')" in item.message


def test_unreadable_cell_is_cause_told_once(tmp_path: Path, sandbox: Sandbox) -> None:
    stub = "def compute_kl_penalty(log_probs, ref_log_probs):\n    raise NotImplementedError"
    for name, more in {"ada": [], "bo": [nbformat.v4.new_code_cell(stub)]}.items():
        cells = [nbformat.v4.new_code_cell("def compute_deltas(): pass"), nbformat.v4.new_code_cell(f"{RAISING}\n  (")]
        nbformat.write(nbformat.v4.new_notebook(cells=[*cells, *more]), tmp_path / f"{name}.ipynb")
        report = grade_file(tmp_path / f"{name}.ipynb", sandbox)
        assert report.cause.startswith("Cell 2 was left out: it has a syntax error on its line ")
        assert [(item.verdict, item.message) for item in report.items] == [
            ("not_run", "Not reached: its cell could not be read.")
        ]


# Nothing to grade, and nothing to grade with


def test_submission_with_problem_earns_nothing_and_report_says_why_once(sandbox: Sandbox) -> None:
    problem = "There is no policy_gradient.py here."
    report = GRADER.grade(submission("", problem=problem), sandbox)
    assert (report.points, report.status) == (0, "graded")
    assert report.cause == problem
    assert {(item.verdict, item.points, item.message) for item in report.items} == {("missing", 0, NOTHING_READ)}
    assert [case.case for item in report.items for case in item.cases] == list(CASES)


def test_submission_that_grader_cannot_read_is_not_graded(sandbox: Sandbox) -> None:
    fault = "ada/policy_gradient.py cannot be read: Permission denied."
    report = GRADER.grade(submission("", fault=fault), sandbox)
    assert (report.points, report.status, report.max_points) == (None, "not_graded", 100)
    assert {(item.verdict, item.points, item.message) for item in report.items} == {("not_graded", None, fault)}


@pytest.mark.parametrize(
    ("fork", "interpreter"),
    [(True, shutil.which("false")), (False, shutil.which("false")), (False, "/there/is/no/python")],
    ids=["server", "worker", "nothing"],
)
def test_sandbox_that_cannot_start_never_costs_points(
    fork: bool, interpreter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", interpreter)
    with Sandbox(fork=fork) as broken:
        report = GRADER.grade(submission(SOLUTION), broken)
    assert (report.points, report.status) == (None, "not_graded")
    assert {(item.verdict, item.points) for item in report.items} == {("not_graded", None)}
    assert report.items[0].message


# The report


def test_report_says_what_was_graded_with_what(sandbox: Sandbox, grade: Callable[[str], Report]) -> None:
    report = grade(SOLUTION)
    assert (report.points, report.max_points, report.status) == (100, 100, "graded")
    assert (report.student, report.assignment) == ("ada", "policy_gradient")
    assert (report.submission.path, report.submission.sha256) == ("ada/policy_gradient.py", "0" * 64)
    assert report.fixtures == FIXTURES.sha256
    assert report.isolation == sandbox.layers
    assert [case.case for item in report.items for case in item.cases] == list(CASES)
    assert all(CASES[case.case].visibility == case.visibility for item in report.items for case in item.cases)


def test_one_item_alone_is_graded_as_among_others(sandbox: Sandbox, grade: Callable[[str], Report]) -> None:
    item = ASSIGNMENT.item("deltas-max")
    source = with_more(BY_SLUG["first-maximum-only"].source)
    alone = GRADER.grade(submission(source), sandbox, items=[item])
    among = [result for result in without_times(grade(source)).items if result.item == item.id]
    assert list(without_times(alone).items) == among
    assert alone.max_points == item.points


PRYING = """
import gc
def compute_kl_penalty(log_probs, ref_log_probs):
    found = [float(one) for one in gc.get_objects() if isinstance(one, torch.Tensor) and one.numel() == 1]
    raise RuntimeError(f"{sum(isinstance(one, torch.Tensor) for one in gc.get_objects())} tensors, scalars {found}")
"""


def test_no_expected_value_is_in_memory_of_worker(sandbox: Sandbox) -> None:
    item = ASSIGNMENT.item("kl-values")
    report = GRADER.grade(submission(with_more(PRYING)), sandbox, items=[item])
    answer = CASES["kl-values-usual"].expected[0].array
    assert answer is not None
    assert re.search(r"raised RuntimeError: [1-9]\d* tensors, scalars \[", report.items[0].message)
    assert f"{float(answer):.6f}" not in report.items[0].message


def test_error_of_grader_costs_one_student_no_points(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says is of the kit alone: an error's text may hold what the student wrote."""

    def fails(*_: object) -> str:
        raise ValueError("of what a student wrote")

    monkeypatch.setattr(grader_module, "hint_of", fails)
    [item] = [one for one in ASSIGNMENT.items if one.id == "deltas-centered"]
    wrong = with_more("def compute_deltas(rewards, mode):\n    return rewards + 1")
    [found] = GRADER.grade(submission(wrong), sandbox, [item]).items
    assert (found.verdict, found.points) == ("not_graded", None)
    assert re.fullmatch(
        r"The grader itself failed at this submission \(ValueError in grader\.py, line \d+\): .*", found.message
    )
    [right] = GRADER.grade(submission(SOLUTION), sandbox, [item]).items
    assert right.verdict == "passed"
