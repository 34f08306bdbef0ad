"""A misspelt name in a case is one line with the nearest right one: wrong edits of declared calls, one at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import toy_kit
from toy_kit import change

from autograder.authoring.fixtures.verify import regenerate_into
from autograder.authoring.proofreading.fault import Faults
from autograder.authoring.proofreading.proofread import proofread

ITEMS = """\
assignment = "toy"
title = "Toy"
module = "toy"
given = []
packages = ["numpy"]

[[item]]
id = "scaled-values"
function = "scaled"
title = "what it returns"
points = 6
hint = "By which factor?"
public = ["scaled-small"]
hidden = ["scaled-refused"]

[[item]]
id = "applied-values"
function = "applied"
title = "what it returns"
points = 4
hint = "Of which numbers?"
public = ["applied-small"]
hidden = []
"""
MODULE = '''\
"""Two functions to complete."""

import numpy as np


def scaled(values, temperature, side="up"):
    """Return the values by temperature, and their sum; of side "down" with a minus. Raises ValueError for another side.

    values        float[state action]
    temperature   float
    """
    ### BEGIN SOLUTION
    if side not in ("up", "down"):
        raise ValueError(f"side is {side}")
    low = values / temperature * (1 if side == "up" else -1)
    high = low.sum()
    return low, high
    ### END SOLUTION


def applied(function, values):
    """Return function of each value.

    values    float[entry]
    returns   float[entry]
    """
    ### BEGIN SOLUTION
    return np.array([function(value) for value in values])
    ### END SOLUTION
'''
ORACLE = """\
import math

import numpy as np

BRANCHES = {"scaled-values": {"upwards"}}
TAKEN = set()


def scaled(values, temperature, side="up"):
    TAKEN.update({"upwards"} if side == "up" else ())
    sign = 1 if side == "up" else -1
    low = [[sign * one / temperature for one in row] for row in values.tolist()]
    return {"low": np.array(low), "high": np.array(math.fsum(one for row in low for one in row))}


def applied(function, values):
    return np.array([function(value) for value in values.tolist()])
"""
CASES = """\
from autograder.authoring.calls import Calls, Drawn, Formula, Number

from . import oracle


def drafts(secret, draw):
    calls = Calls(secret, draw, oracle, "numpy")
    values = Drawn("state action", (2, 3))
    yield calls.case("scaled-small", "two states", "scaled", {"values": values, "temperature": Number(1.5, 3.0)},
        {"low": "state action", "high": ""})
    yield calls.case("scaled-refused", "another side", "scaled",
        {"values": values, "temperature": 2.0, "side": "up"}, {"low": "state action", "high": ""},
        raises={"refused": ({"side": "left"}, ["side"])})
    yield calls.case("applied-small", "three entries", "applied",
        {"function": Formula("x", "x * x - exp(x)"), "values": Drawn("entry", (3,))}, "entry",
        counted=["function"], free=["values"])
"""
MISTAKES = """\
from autograder.authoring.catalogue import Correct

APPLIED = Correct("applied", "def applied(function, values): return np.array([function(value) for value in values])")

MISTAKES = (
    APPLIED.but("not-applied", "Of what?", ("function(value) for", "value for")),
)
"""
ROWS = """\
[scaled]
inputs = ["values"]
call = "scaled({values}, {temperature})"

[call]
inputs = ["values"]
call = "applied(abs, {values})"
"""
EXAMPLES = """\
LEFT_OUT = {
    "applied-values": "it takes a function",
}

DRAWS: dict = {"scaled-values": lambda generator, number: None}
"""
PROBES = "from autograder.sandbox.inside.calling import call\n\n__all__ = ['call']\n"
TEXTS = {
    "fixtures/toy/items.toml": ITEMS,
    "solution/toy/toy.py": MODULE,
    "fixtures/toy/oracle.py": ORACLE,
    "fixtures/toy/cases.py": CASES,
    "fixtures/toy/mistakes.py": MISTAKES,
    "fixtures/toy/probes.py": PROBES,
    "fixtures/toy/rows.toml": ROWS,
    "fixtures/toy/counterexamples.py": EXAMPLES,
}


class Slip(NamedTuple):
    """A misspelling, and the line that tells of it."""

    file: str
    right: str
    wrong: str
    told: str


CALLED = '"values": values, "temperature": Number(1.5, 3.0)'
SWAPPED = '"temperature": Number(1.5, 3.0), "values": values'
PARTS = '"high": ""})\n    yield calls.case("scaled-refused'
SLIPS = [
    Slip("cases.py", '"temperature": Number', '"temprature": Number',
         "cases.py:9: scaled-small: scaled has no argument 'temprature'; 'temperature' is there"),
    Slip("cases.py", CALLED, SWAPPED,
         "cases.py:9: .*are temperature, values: .*; in the order of scaled(values, temperature, side), without a gap"),
    Slip("cases.py", ', "temperature": Number(1.5, 3.0)}', "}", "cases.py:9: .*scaled is called without temperature; "),
    Slip("cases.py", '"temperature": 2.0, "side"', '"side"', "cases.py:11: .*scaled is called without temperature; "),
    Slip("cases.py", '"two states", "scaled"', '"two states", "scalled"',
         "cases.py:9: .*the solution does not define 'scalled'; 'scaled' is there"),
    Slip("cases.py", '"two states", "scaled"', '"two states", "applied"',
         "cases.py:9: .*it calls applied, and its item is of scaled; an item whose function is 'applied'"),
    Slip("cases.py", '({"side": "left"}', '({"sid": "left"}',
         "cases.py:11: 'sid' is not among the arguments of the call; 'side' is there"),
    Slip("cases.py", PARTS, PARTS.replace("high", "hihg"),
         "cases.py:9: 'hihg' is not among the parts that scaled returns; 'high' is there"),
    Slip("cases.py", 'counted=["function"]', 'counted=["functoin"]',
         "cases.py:14: 'functoin' is not among the functions that are counted; 'function' is there"),
    Slip("cases.py", 'free=["values"]', 'free=["value"]', "cases.py:14: .*free names 'value'; 'values' is there"),
    Slip("cases.py", 'free=["values"]', 'fre=["values"]', "cases.py:14: TypeError: .*'fre'; 'free' is there"),
    Slip("cases.py", 'counted=["function"]', 'leaves=["valeus"]', "cases.py:14: .*leaves names 'valeus'; 'values' is"),
    Slip("cases.py", '"function": Formula("x", "x * x - exp(x)"), ', "",
         "cases.py:14: .*applied is called without function"),
    Slip("cases.py", 'counted=["function"]', 'by_name=["valeus"]',
         "cases.py:14: .*by_name names 'valeus'; 'values' is"),
    Slip("cases.py", 'counted=["function"]', 'constants=["vals"]',
         "cases.py:14: .*constants names 'vals'; 'values' is"),
    Slip("cases.py", 'counted=["function"]', 'stand_ins={"aray": Formula("x", "x")}',
         "cases.py:14: .*names 'aray'; 'array'"),
    Slip("cases.py", 'counted=["function"]', 'dtype="float46"',
         "cases.py:14: 'float46' is not among the dtypes; 'float64'"),
    Slip("cases.py", "x * x - exp(x)", "x * x - epx(x)",
         "cases.py:14: .*formula of function has the name 'epx'; 'exp' is"),
    Slip("cases.py", "x * x - exp(x)", "x * x - ", "cases.py:14: .*formula of function is no expression of Python"),
    Slip("cases.py", '(3,))}, "entry"', '(3,))}, "entyr"',
         "cases.py:14: .*an axis is called 'entyr'; as in the docstring of applied: 'entry' is there"),
    Slip("cases.py", "calls.case(\"applied", "calls.cases(\"applied",
         "cases.py:14: AttributeError: .*; 'case' is there"),
    Slip("oracle.py", "def applied(", "def aplied(",
         "oracle.py:1: oracle.py does not define applied, .*; its own text, or that until then; 'aplied' is there"),
    Slip("oracle.py", "    return np.array([function(value)", "    found = np.array([function(value)",
         r"oracle.py:\d+: the oracle applied returns nothing; what is expected, after `return`"),
    Slip("oracle.py", "    return np.array([function(value)", "    return np.array([functoin(value)",
         r"oracle.py:\d+: NameError: name 'functoin' is not defined; 'function' is there"),
    Slip("cases.py", '"values": Drawn("entry"', '"values": Drwn("entry"',
         r"cases.py:\d+: NameError: name 'Drwn' is not defined; 'Drawn' is there"),
    Slip("oracle.py", '{"upwards"} if', '{"upward"} if',
         "oracle.py:5: no case of scaled-values takes the branch 'upwards'; .*TAKEN holds besides: 'upward'"),
    Slip("rows.toml", "[scaled]", "[sclaed]",
         "rows.toml:1: 'sclaed' is neither a probe nor a function of the solution; 'scaled'"),
    Slip("rows.toml", "[call]", "[clal]",
         "rows.toml:5: 'clal' is neither a probe nor a function of the solution; 'call' is"),
    Slip("rows.toml", '{temperature})"', '{temperatur})"',
         "rows.toml:1: scaled has no argument 'temperatur'; 'temperature'"),
    Slip("rows.toml", '["values"]\ncall = "sc', '["value"]\ncall = "sc',
         "rows.toml:1: scaled has no argument 'value'; 'values'"),
    Slip("rows.toml", '["values"]\ncall = "sc', '"values"\ncall = "sc',
         "rows.toml:1: inputs of scaled is 'values'; a list of"),
    Slip("rows.toml", "call = \"sc", "cal = \"sc", "rows.toml:1: scaled has the unknown entry 'cal'; 'call' is there"),
    Slip("counterexamples.py", '"applied-values"', '"aplied-values"',
         "counterexamples.py:2: LEFT_OUT has the item 'aplied-values'; 'applied-values' is there"),
    Slip("counterexamples.py", '"scaled-values"', '"scaled-value"',
         "counterexamples.py:5: DRAWS has the item 'scaled-value'; 'scaled-values' is there"),
    Slip("counterexamples.py", "LEFT_OUT = {", "LEFT_OUT = ", "counterexamples.py:3: not Python"),
]  # fmt: skip


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = toy_kit.toy_kit(tmp_path_factory.mktemp("names") / "kit", tmp_path_factory)
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    return root


@pytest.fixture
def edited(kit: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Slip], Path]]:
    """A function that makes a wrong edit; afterwards the files are what they were."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which knows no two edits within a second apart

    def edit(slip: Slip) -> Path:
        change(kit / "fixtures/toy" / slip.file, slip.right, slip.wrong)
        return kit / "fixtures/toy"

    yield edit
    for name, text in TEXTS.items():
        (kit / name).write_text(text)


@pytest.mark.usefixtures("edited")
def test_calls_whose_names_are_right_are_no_fault(kit: Path) -> None:
    assert proofread(kit / "fixtures/toy") == []


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.wrong[:30])
def test_a_misspelt_name_is_told_with_its_line_and_the_nearest_right_one(
    slip: Slip, edited: Callable[[Slip], Path]
) -> None:
    told = [fault.text for fault in proofread(edited(slip))]
    assert len(told) == 1 + (slip.wrong == 'cal = "sc')  # which lacks the right one besides
    assert re.search(slip.told.replace("(", r"\(").replace(")", r"\)"), told[0]), told


@pytest.mark.long
def test_a_mistake_that_only_names_what_there_is_not_is_refused(edited: Callable[[Slip], Path], tmp_path: Path) -> None:
    slip = Slip("mistakes.py", '("function(value) for", "value for")', '("function(value) for", "vale for")', "")
    with pytest.raises(Faults, match=r"mistakes\.py:6: not-applied always ends in a NameError; a text that runs"):
        regenerate_into(edited(slip), tmp_path / "wrong")


@pytest.mark.long
def test_a_misspelt_argument_that_would_be_answered_is_refused_when_fixtures_are_made(
    kit: Path, tmp_path: Path, edited: Callable[[Slip], Path]
) -> None:
    assert regenerate_into(kit / "fixtures/toy", tmp_path / "right") == 3
    with pytest.raises(Faults, match=r"cases.py:9: .*no argument 'temprature'; 'temperature' is there"):
        regenerate_into(edited(SLIPS[0]), tmp_path / "wrong")
