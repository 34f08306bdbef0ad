"""Functions that are arguments: how many arguments of their own a docstring gives them, from `new` to a grade."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import KIT

from autograder.authoring.beginning.likely_mistakes import candidates
from autograder.authoring.beginning.signatures import solution_of
from autograder.authoring.catalogue import Correct
from autograder.authoring.drafts import callbacks
from autograder.sandbox.inside.stand_ins import Formula

EULER = '''\
import numpy as np


def euler(f, start, step, count):
    """Return the values that Euler's method finds, from the start on.

    f       ROW
    start   float   from 0 to 2
    step    float   from 0.05 to 0.2
    count   int   from 2 to 9
    returns   float[place]
    """
    y, found = start, [start]
    for k in range(count):
        y = y + step * f(k * step, y)
        found.append(y)
    return np.array(found)
'''
ORACLE = """\
import numpy as np


def euler(f, start, step, count):
    found = [start]
    while len(found) <= count:
        found += [found[-1] + step * f(step * (len(found) - 1), found[-1])]
    return np.array(found)
"""


def taken(row: str, body: str) -> tuple[str, ...]:
    text = f'def g(f, n):\n    """Return.\n\n    {row}\n    """\n    {body}\n'
    return solution_of(text, Path("s.py")).functions[0].arguments[0].takes


@pytest.mark.parametrize(
    ("row", "body", "names"),
    [
        ("f   function of t and y", "pass", ("t", "y")),
        ("f   function of x, y and z", "pass", ("x", "y", "z")),
        ("f   function(t, y)", "pass", ("t", "y")),
        ("f   function of two numbers", "pass", ("x", "y")),
        ("f   a function of the time and the state", "pass", ("time", "state")),
        ("f (callable): f(t, y), the right-hand side", "pass", ("t", "y")),
        ("f : callable ``func(y, t, ...)``", "pass", ("y", "t")),
        (":param f: callable with three arguments", "pass", ("x", "y", "z")),
        ("f   Callable[[float, float], float]", "pass", ("x", "y")),
        ("f   a function of x, continuous on [0, 1]", "pass", ("x",)),
        ("f   a function of x that returns a number", "pass", ("x",)),
        ("f   function", "pass", ()),
        ("f   function", "return f(a, b)", ("x", "y")),
        ("f   function", "return f(t=1, y=2)", ("t", "y")),
        ("f   function of t and y", "return f(a)", ("t",)),
        ("f   function of x", "return f(a, b)", ("x", "y")),
        ("f   function of t and y", "return f(*both)", ("t", "y")),
    ],
)
def test_the_names_that_a_callback_takes_are_those_of_its_row_and_as_many_as_the_body_passes(
    row: str, body: str, names: tuple[str, ...]
) -> None:
    assert taken(row, body) == names


def test_an_annotation_says_how_many_there_are_too() -> None:
    text = "from collections.abc import Callable\ndef g(f: Callable[[float, float], float]):\n    return f\n"
    assert solution_of(text, Path("s.py")).functions[0].arguments[0].takes == ("x", "y")


@pytest.mark.parametrize("names", [(), ("x",), ("t", "y"), ("x", "y", "z")])
def test_formulas_differ_in_each_argument_and_from_each_other(names: tuple[str, ...]) -> None:
    several = callbacks.formulas(names)
    values = [1.7 + 1.1 * place for place in range(len(names) or 1)]
    assert len({one(*values) for one in several}) == 3
    for place in range(len(values)):
        moved = [value + (place == other) for other, value in enumerate(values)]
        assert several[0](*moved) != several[0](*values)
    if len(values) > 1:
        assert several[0](*values) != several[0](*values[::-1])


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("f   function of x and y, such as x * exp(y)", "x * exp(y)"),
        ("f   function of x and y, such as `x * y - 2`, smooth.", "x * y - 2"),
        ("f   function of x and y, e.g. x + y; it is never 0", "x + y"),
        ("f   function of x and y, such as np.hypot", ""),
        ("f   function of x and y, such as x + z", ""),
        ("f   function of x and y, such as that of a pendulum", ""),
    ],
)
def test_a_row_may_give_the_formula_itself(text: str, expression: str) -> None:
    assert callbacks.given(("x", "y"), text) == expression
    if expression:
        assert callbacks.formulas(("x", "y"), text)[0].expression == expression


def test_formulas_take_arrays_and_tensors_as_they_take_numbers() -> None:
    import numpy as np
    import torch

    formula = Formula({"of": "x y", "is": "sin(x) * y + sqrt(y)"})
    one = formula(0.5, 4.0)
    assert isinstance(one, float)
    assert np.allclose(formula(np.array([0.5, 0.5]), np.array([4.0, 4.0])), one, rtol=1e-15)
    assert torch.allclose(
        formula(torch.tensor([0.5]).double(), torch.tensor([4.0]).double()), torch.tensor([one]).double()
    )
    assert formula.calls == [[0.5, 4.0]]


def test_exchanged_arguments_of_a_callback_are_a_likely_mistake() -> None:
    source = EULER.replace("ROW", "function of t and y")
    (function,) = solution_of(source, Path("s.py")).functions
    found = {one.slug: one for one in candidates(Correct.from_solution(source, "euler").source, function)}
    assert found["euler-arguments-exchanged"].wrong == "y = y + step * f(y, k * step)"
    assert found["euler-arguments-exchanged"].hint == "Which of its arguments does f take first?"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": str(KIT)}
    command = [sys.executable, "-m", "autograder", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.long
def test_a_callback_of_two_arguments_from_new_to_grades(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(EULER.replace("ROW", "function of t and y, such as t - y * y"))
    done = run(tmp_path, "new", "ode", "--from", "s.py", "--yes")
    assert done.returncode == 0, done.stderr
    cases = tmp_path / "fixtures/ode/cases.py"
    assert 'Formula("t y", "t - y * y")' in cases.read_text()
    (tmp_path / "fixtures/ode/oracle.py").write_text(ORACLE)
    by_hand = (
        '    yield calls.case("euler-by-hand", "another function", "euler",\n'
        '        {"f": Formula("t, y", "exp(-t) * y"), "start": Number(1.0, 2.0), "step": 0.1, "count": 4}, "place",\n'
        '        kind="a NumPy array", counted=["f"])\n'
    )
    cases.write_text(cases.read_text() + by_hand)
    items = tmp_path / "fixtures/ode/items.toml"
    items.write_text(items.read_text().replace("hidden = [", 'hidden = ["euler-by-hand", '))
    for words in (("fixtures", "regenerate"), ("release",)):
        done = run(tmp_path, *words)
        assert done.returncode == 0, done.stdout + done.stderr
    told = run(tmp_path, "selfcheck", "--jobs", "1").stdout  # a number is changed in place, a pure function remembered
    path = tmp_path / "solution/ode/ode.py"
    lines = path.read_text().splitlines(keepends=True)
    for number in sorted({int(line) for line in re.findall(r"loses nothing\. line (\d+)", told)}, reverse=True):
        lines.insert(number - 1, "# equivalent: the values are the same\n")
    path.write_text("".join(lines))
    done = run(tmp_path, "selfcheck", "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    right = path.read_text()
    wrong = right.replace("f(k * step, y)", "f(y, k * step)")
    once = right.replace("f(k * step, y)", "(f(k * step, y) + f(k * step, y)) / 2")
    for student, text in (("ada", right), ("bela", wrong), ("chidi", once)):
        (tmp_path / "class" / student).mkdir(parents=True)
        (tmp_path / "class" / student / "ode.py").write_text(text)
    assert run(tmp_path, "grade", "class", "--out", "grades", "--jobs", "1").returncode == 0
    read = {
        name: json.loads((tmp_path / f"grades/reports/{name}.json").read_text()) for name in ("ada", "bela", "chidi")
    }
    assert (read["ada"]["points"], read["bela"]["points"]) == (100, 0)
    assert read["bela"]["items"][0]["mistakes"] == ["euler-arguments-exchanged"]
    assert "f = lambda t, y: t - y * y" in (tmp_path / "grades/feedback/bela.html").read_text()
    assert 0 < read["chidi"]["points"] < 100  # right values, and twice as many calls as the case by hand counts
    shutil.rmtree(tmp_path / "class")
