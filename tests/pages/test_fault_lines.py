"""The line that makes a known mistake is found however it is written, and no line is named without evidence."""

from __future__ import annotations

import textwrap

import pytest

from autograder.pages.fault_lines import fault_line

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


def line_of(name: str, student: str) -> str:
    """The line of the student's function that is marked for that mistake."""
    right, (old, new) = MISTAKES[name]
    assert old in right
    text = textwrap.dedent(student)
    line = fault_line(text, "f", ["m"], {("f", "m"): (right, right.replace(old, new))})
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
    known = {("f", "a"): (RIGHT, wrong[0]), ("f", "b"): (RIGHT, wrong[1])}
    student = wrong[0].replace("x.std(dim=-1, keepdim=True)", "x.std(dim=0)")
    assert fault_line(student, "f", ["a", "b"], known) is None
    assert fault_line(student, "f", ["a"], known) == 6


def test_only_line_that_differs_from_a_right_answer_is_named_without_a_mistake() -> None:
    known = {("f", "other"): (RIGHT, RIGHT.replace("1e-5", "1"))}
    renamed = RIGHT.replace("centered ", "c ").replace("return centered\n", "return c\n").replace("spread", "s")
    assert fault_line(renamed.replace("1e-5", "1e-3"), "f", [], known) == 6
    two = renamed.replace("1e-5", "1e-3").replace("x - x.mean", "x + x.mean")
    assert fault_line(two, "f", [], known) is None
    assert fault_line(renamed, "f", [], known) is None
