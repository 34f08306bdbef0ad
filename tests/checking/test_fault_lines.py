"""The line that makes a known mistake is found however it is written, and no line is named without evidence."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import Any

import pytest
from places import KIT

from autograder.authoring.fixtures.fault_places import places_of
from autograder.checking.fault_lines import (
    RIGHT as RIGHT_TEXTS,
)
from autograder.checking.fault_lines import (
    Known,
    digest,
    excerpt,
    fault_line,
    functions_of,
    known_places,
    nodes_of,
    statement_digests,
    written,
)
from autograder.grading.assignment import Assignment, find_assignments
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import ItemResult

RIGHT = """\
def f(x, old, mode):
    centered = x - x.mean(dim=-1, keepdim=True)
    if mode == "centered":
        return centered
    spread = x.std(dim=-1, keepdim=True)
    return centered / (spread + 1e-5)
"""
LOOP = """\
def f(model, steps):
    responses = sample(model)
    for step in range(steps):
        optimizer.zero_grad()
        loss = total(responses, model)
        loss.backward()
        optimizer.step()
    return model
"""
MISTAKES = {
    "one expression": (RIGHT, ("spread = x.std(dim=-1, keepdim=True)", "spread = x.std(dim=-1, correction=0)")),
    "number": (RIGHT, ("1e-5", "1e-8")),
    "call left out": (RIGHT, ("centered = x - x.mean(dim=-1, keepdim=True)", "centered = x")),
    "statement left out": (LOOP, ("        optimizer.zero_grad()\n", "")),
    "statement added": (RIGHT, ("    spread =", "    centered = centered.clamp(min=0)\n    spread =")),
    "statement moved": (
        LOOP,
        (
            "    responses = sample(model)\n    for step in range(steps):\n",
            "    for step in range(steps):\n        responses = sample(model)\n",
        ),
    ),
}


def table(right: str, *wrongs: str, staff: bool = True) -> Known:
    """What is stored of mistakes `0`, `1`, … of a function `f`."""
    places = {str(n): places_of(right, wrong, "f", (right,), staff=staff) for n, wrong in enumerate(wrongs)}
    statements = [entry for entry, _ in statement_digests(functions_of(right)[0], "f")]
    return {"f": {**places, RIGHT_TEXTS: [statements]} if staff else places}


def line_of(name: str, student: str, *, staff: bool = True) -> str:
    """The line of the student's function that is marked for that mistake."""
    right, (old, new) = MISTAKES[name]
    assert old in right
    text = textwrap.dedent(student)
    line = fault_line(text, "f", ["0"], table(right, right.replace(old, new), staff=staff))
    return "" if line is None else text.split("\n")[line - 1].strip()


@pytest.mark.parametrize(
    ("name", "student", "line"),
    [
        (
            "one expression",
            """\
            def f(x, old, mode):
                if mode == "centered":
                    return x - x.mean(-1, keepdim=True)
                s = torch.std(x, -1, unbiased=False)
                return (x - x.mean(-1, keepdim=True)) / (s + 1e-5)
            """,
            "s = torch.std(x, -1, unbiased=False)",
        ),
        (
            "number",
            "def f(x, old, mode):\n    y = x * 2\n    return y / (x.std(-1) + 1e-8)",
            "return y / (x.std(-1) + 1e-8)",
        ),
        ("call left out", RIGHT.replace("x - x.mean(dim=-1, keepdim=True)", "x"), "centered = x"),
        (
            "statement left out",
            """\
            def f(model, steps):
                batch = sample(model)
                for _ in range(steps):
                    l = total(batch, model)
                    l.backward()
                    optimizer.step()
                return model
            """,
            "l = total(batch, model)",
        ),
        (
            "statement added",
            """\
            def f(x, old, mode):
                c = x - x.mean(-1, keepdim=True)
                if mode == "centered":
                    return c
                c = c.clamp(min=0)
                return c / (x.std(-1, keepdim=True) + 1e-5)
            """,
            "c = c.clamp(min=0)",
        ),
        (
            "statement moved",
            """\
            def f(model, steps):
                for i in range(steps):
                    optimizer.zero_grad()
                    r = sample(model)
                    total(r, model).backward()
                    optimizer.step()
                return model
            """,
            "r = sample(model)",
        ),
        (
            "one expression",
            """\
            def spread_of(values):
                return values.std(dim=-1, correction=0)

            def f(x, old, mode):
                return x / (spread_of(x) + 1e-5)
            """,
            "return values.std(dim=-1, correction=0)",
        ),
    ],
    ids=("spelling", "number", "call", "left out", "added", "moved", "helper"),
)
def test_line_of_a_mistake_is_found(name: str, student: str, line: str) -> None:
    assert line_of(name, student) == line


@pytest.mark.parametrize(
    "student",
    [
        "def f(x, old, mode):\n    return my_own(x)\n",
        "def f(x, old, mode):\n    a = x.std(-1, unbiased=False)\n    return a * x.std(-1, unbiased=False)\n",
        "def g(x):\n    return x.std(dim=-1, correction=0)\n",
        "def f(x, old, mode):\n    return (\n",
        "def f(x, old, mode):\n" + "    y = x.std(dim=-1, correction=0)\n" * 4_000,
    ],
    ids=("unlike", "twice", "not called", "unparsable", "long"),
)
def test_unclear_line_is_not_named(student: str) -> None:
    assert line_of("one expression", student) == ""


def test_two_mistakes_on_two_lines_leave_the_line_open() -> None:
    wrong = RIGHT.replace("1e-5", "1e-8"), RIGHT.replace("x.std(dim=-1, keepdim=True)", "x.std(dim=0)")
    known = table(RIGHT, *wrong)
    student = wrong[0].replace("x.std(dim=-1, keepdim=True)", "x.std(dim=0)")
    assert fault_line(student, "f", ["0", "1"], known) is None
    assert fault_line(student, "f", ["0"], known) == 6


def test_only_line_that_differs_from_a_right_answer_is_named_without_a_mistake() -> None:
    known = table(RIGHT, RIGHT.replace("1e-5", "1"))
    renamed = RIGHT.replace("centered ", "c ").replace("return centered\n", "return c\n").replace("spread", "s")
    wrong = renamed.replace("1e-5", "1e-3").replace("centered /", "c /")
    assert fault_line(wrong, "f", [], known) == 6
    assert fault_line(wrong.replace("x - x.mean", "x + x.mean"), "f", [], known) is None
    assert fault_line(RIGHT, "f", [], known) is None
    assert fault_line(wrong, "f", [], table(RIGHT, RIGHT.replace("1e-5", "1"), staff=False)) is None


@pytest.mark.parametrize("name", ["statement left out", "statement moved"])
def test_statement_of_the_right_text_is_told_to_staff_alone(name: str) -> None:
    right, (old, new) = MISTAKES[name]
    assert table(right, right.replace(old, new), staff=False) == {"f": {"0": []}}


@pytest.mark.parametrize("assignment", find_assignments(KIT), ids=lambda each: each.name)
def test_public_table_holds_no_part_of_the_solution(assignment: Assignment) -> None:
    source = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    known = known_places(assignment.folder)
    assert sum(map(len, known.values())) > 100
    for function, mistakes in known.items():
        stored = {entry for places in mistakes.values() for place in places for entry in place}
        parts = {written(node) for node, _ in nodes_of(functions_of(source, function)[0])}
        assert RIGHT_TEXTS not in mistakes
        assert sum(digest(function, part) in stored for part in parts) <= 1  # by chance, as digests are short


def failed(**changes: Any) -> ItemResult:
    """An item of `f` that makes the mistake `0`."""
    item = ItemResult("i", "f", "title", 0.0, 1.0, "failed", ("0",), "wrong", "", 0.0, ())
    return replace(item, **changes)


def test_excerpt_shows_the_line_with_two_around_it() -> None:
    known = table(RIGHT, RIGHT.replace("1e-5", "1e-8"))
    source = "import torch\n\n\n" + RIGHT.replace("1e-5", "1e-8") + "\nx = 1\n"
    submission = Submission("ada", "ada/m.py", "", source)
    assert excerpt(failed(), submission, known) == [
        "Line 9 of your file:",
        "     7           return centered",
        "     8       spread = x.std(dim=-1, keepdim=True)",
        ">    9       return centered / (spread + 1e-8)",
        "    10",
        "    11   x = 1",
    ]
    assert excerpt(failed(), submission, {}) == ["Somewhere in f, lines 4 to 9 of your file."]
    assert excerpt(failed(verdict="missing"), submission, known) == []


def test_excerpt_of_an_exception_is_where_it_was_raised_within_its_cell() -> None:
    cells = Submission("ada", "ada/m.ipynb", "", f"# cell 3\n{RIGHT}\n# cell 5\ny = 1\n", cells=((2, 3), (10, 5)))
    raised = failed(verdict="raised", message="f raised E: no.\nLine 5 of cell 3 (text cells count):\n  spread")
    first, *rows = excerpt(raised, cells, {})
    assert first == "Line 5 of cell 3 (text cells count):"
    assert [row[:6].rstrip() for row in rows] == ["     3", "     4", ">    5", "     6", "     7"]
    assert excerpt(failed(), cells, {}) == ["Somewhere in f, lines 1 to 6 of cell 3 (text cells count)."]
