"""Faults of a case that show while its oracle runs, told at the line of the case; the oracle's own, at the oracle's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import toy_kit
from test_misspelt_names import TEXTS
from toy_kit import change

from autograder.authoring.fixtures.verify import regenerate_into
from autograder.authoring.proofreading.fault import Faults
from autograder.authoring.proofreading.proofread import proofread

ITEMS, CASES = "fixtures/toy/items.toml", "fixtures/toy/cases.py"
LARGE = """\
    yield calls.case("scaled-large", "four states", "scaled",
        {"values": Drawn("state action", (4, 5)), "temperature": Number(1.5, 3.0)}, {"low": "state action", "high": ""})
    yield calls.case("applied-small\""""
VALUES = '(4, 5)), "temp'
FORMULA = 'Formula("x", "x * x - exp(x)")'


@pytest.fixture
def toy(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy whose `scaled` has two cases, `applied` one."""
    root = toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)
    for name, text in TEXTS.items():
        (root / name).write_text(text)
    change(root / ITEMS, 'public = ["scaled-small"', 'public = ["scaled-large", "scaled-small"')
    change(root / CASES, '    yield calls.case("applied-small"', LARGE)
    return root / "fixtures/toy"


def test_the_toy_is_without_fault(toy: Path) -> None:
    assert proofread(toy) == []


WRONG = [
    (FORMULA, 'Formula("x y", "x * y")',
     "cases.py:16: the oracle applied calls function with 1 argument, and its formula is of x, y; "
     "a Formula of as many: Formula.'x', ….; or an oracle that calls it so"),
    (FORMULA, 'Formula("x", "1 / (x - x)")',
     r"cases.py:16: the formula of function, 1 / \(x - x\), raises ZeroDivisionError at -?[\d.]+: .*division by zero; "
     "a Formula that has a value wherever applied calls it"),
    (FORMULA, "lambda x: x * x",
     "cases.py:16: the parameters of applied-small cannot be stored: given.function is function; a Formula, which can"),
    ('(4, 5)), "temp', '(4, 5)).sizes, "temp',
     r"cases.py:14: scaled-large: the oracle scaled raises AttributeError: 'tuple' .* \(oracle.py:\d+\); "
     "arguments as in the cases that it answers; or an oracle that answers these"),
    ('Drawn("state action", (4, 5))', 'Drawn("state", (4,))',
     r"cases.py:14: scaled-large: the oracle scaled raises TypeError: 'float' object .* \(oracle.py:\d+\)"),
    ('Drawn("state action", (4, 5))', 'Drawn("state action", (4,))',
     r"cases.py:14: Drawn has the axes 'state action' and the sizes \(4,\); one for each axis"),
    ("    values = Drawn(", '    raise KeyError("no")\n    values = Drawn(',
     "cases.py:8: KeyError: 'no'; code that yields"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "told"), WRONG, ids=lambda one: str(one)[:30])
def test_a_fault_of_a_case_is_told_at_its_line(right: str, wrong: str, told: str, toy: Path) -> None:
    change(toy / "cases.py", right, wrong)
    lines = [fault.text for fault in proofread(toy)]
    assert re.search(told, lines[0]), lines
    assert not [line for line in lines if "/oracle.py:" in line and "no case of" not in line]


ORACLES = [
    ("    return np.array([function(value)", "    return ([function(vale)", r"oracle.py:\d+: NameError"),
    ("    return np.array([function(value)", "    return np.aray([function(value)", r"oracle.py:\d+: AttributeError"),
    ("    return np.array([function(value) for value in values.tolist()])", "    return 'numbers'",
     r"oracle.py:\d+: the oracle applied returns str where the case asks for axes; numbers; a tuple or"),
    ("    return np.array([function(value) for value in values.tolist()])", "    return [[1.0], [2.0, 3.0]]",
     r"oracle.py:\d+: the oracle applied returns rows that differ in length"),
    ("    sign = 1 if", "    temperature = temperature['no']\n    sign = 1 if",
     r"oracle.py:\d+: TypeError: 'float' object"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "told"), ORACLES, ids=lambda one: str(one)[:30])
def test_a_fault_of_an_oracle_that_answers_no_case_is_told_at_its_own_line(
    right: str, wrong: str, told: str, toy: Path
) -> None:
    change(toy / "oracle.py", right, wrong)
    lines = [fault.text for fault in proofread(toy)]
    assert all(re.search(told, line) for line in lines if "no case of" not in line), lines


def test_arguments_that_the_solution_does_not_take_either_are_a_fault_of_the_case(toy: Path, tmp_path: Path) -> None:
    change(toy / "cases.py", '"values": Drawn("entry", (3,))}, "entry"', '"values": 2.0}, ""')
    change(toy / "cases.py", ', free=["values"]', "")
    told = (
        r"cases.py:16: applied-small: the oracle applied raises AttributeError.*; arguments that applied takes; or an "
    )
    with pytest.raises(Faults, match=f"{told}.*The solution does not either: TypeError"):
        regenerate_into(toy, tmp_path / "wrong")


DRAWN = 'Drawn("state action", (4, 5))'
SLIPS = [
    (DRAWN, 'Drawn("state action", (4.0, 5))',
     r"cases.py:14: the sizes of Drawn are \(4.0, 5\); whole numbers: \(3, 4\)"),
    (DRAWN, 'Drawn("state action", (-4, 5))', r"cases.py:14: the sizes of Drawn are \(-4, 5\); whole numbers"),
    (DRAWN, 'Drawn(("state", "action"), (4, 5))',
     r"cases.py:14: the axes of Drawn are \('state', 'action'\); text: "),
    (DRAWN, 'Drawn("state action", (4, 5), "whole", 5, 1)',
     "cases.py:14: Drawn is from 5 to 1; from the lesser to the"),
    (DRAWN, 'Drawn("state action", (4, 5), "whole", "0", 1)',
     "cases.py:14: the bounds of Drawn are '0' and 1; numbers"),
    (DRAWN, 'Drawn("state action", (4, 5), "distinct")', "the numbers of Drawn are 'distinct'; also=\"distinct\""),
    (DRAWN, 'Drawn("state action", (4, 5), also="distnct")',
     "cases.py:14: also has the word 'distnct'; of the words"),
    (DRAWN, 'Drawn("state action", (4, 5), "probabilities", 0, 1)',
     "Drawn of probabilities has the bounds 0 and 1; none"),
    (DRAWN, "[[1.0], [2.0, 3.0]]", "cases.py:14: the rows of values differ in length; rows of one length"),
    (DRAWN, '"1, 2, 3"',
     r"cases.py:14: scaled-large: the oracle scaled raises AttributeError.*; arguments as in the cases"),
    ("Number(1.5, 3.0)}, {\"low", "Number(1.5)}, {\"low",
     r"cases.py:15: TypeError: Number.*: 'high'; Number\(low, high\)"),
    ("Number(1.5, 3.0)}, {\"low", "Number('1', 3)}, {\"low",
     "cases.py:14: the bounds of Number are '1' and 3; numbers"),
    ('raises={"refused": ({"side": "left"}, ["side"])}', 'raises=({"side": "left"}, ["side"])',
     "cases.py:11: raises is of type tuple; raises="),
    ('counted=["function"]', 'counted="function"',
     r"cases.py:16: counted is 'function'; a list: counted=\[\"function\"\]"),
    ('Calls(secret, draw, oracle, "numpy")', 'Calls(secret, oracle, "numpy")',
     "cases.py:7: the oracle of Calls is of type str; Calls.secret, draw, oracle"),
    ('Calls(secret, draw, oracle, "numpy")', 'Calls(secret, draw, oracle, "nunpy")',
     "cases.py:7: 'nunpy' is not among the values of Calls; 'numpy' is there"),
    ("def drafts(secret, draw)", "def drafts(secret)",
     r"cases.py:6: drafts takes 1, not two arguments; def drafts\(secret, d"),
    ("from . import oracle", "import oracle", "cases.py:3: ModuleNotFoundError: .*; from . import oracle"),
    ('    yield calls.case("applied', '    calls.case("applied',
     r"items.toml:\d+: applied-small has no draft; a draft of that name: is there a `yield` in cases.py:16?"),
    ('(4, 5)), "temperature": Number(1.5, 3.0)}, {"low": "state action", "high": ""}',
     '(4, 5)), "temperature": Number(1.5, 3.0)}, None',
     "cases.py:14: what scaled returns is to be compared as it is, and its oracle returns dict, which"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "told"), SLIPS, ids=lambda one: str(one)[:40])
def test_a_slip_in_a_case_is_told_in_words_of_the_case(right: str, wrong: str, told: str, toy: Path) -> None:
    change(toy / "cases.py", right, wrong)
    lines = [fault.text for fault in proofread(toy)]
    assert any(re.search(told, line) for line in lines), lines
    assert "code that yields every case" not in "".join(lines)


OTHERS = [
    ("probes.py", "import call\n", "import cal\n", r"probes.py:1: autograder.*calling has no 'cal'; 'call' is there"),
    ("oracle.py", "def applied(function, values):", "def applied(function):",
     r"oracle.py:\d+: the oracle applied takes \(function\), and the case passes function, values; the same arguments"),
    ("../../solution/toy/toy.py", "import numpy as np\n", "import einops\nimport numpy as np\n",
     "toy.py:3: imports einops, which is not in packages of items.toml; \"einops\" among them"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "right", "wrong", "told"), OTHERS, ids=lambda one: str(one)[:40])
def test_a_slip_elsewhere_is_told_where_it_is(file: str, right: str, wrong: str, told: str, toy: Path) -> None:
    change(toy / file, right, wrong)
    lines = [fault.text for fault in proofread(toy)]
    assert any(re.search(told, line) for line in lines), lines
    assert len([line for line in lines if "does not define 'call'" in line]) <= 1


def test_a_solution_that_cannot_be_loaded_is_told_once_and_of_no_case(toy: Path, tmp_path: Path) -> None:
    change(toy.parents[1] / "solution/toy/toy.py", "import numpy as np\n", "import numpie as np\n")
    with pytest.raises(
        Faults, match=r"toy.py:3: cannot be loaded: ModuleNotFoundError.*; a module that loads"
    ) as refused:
        regenerate_into(toy, tmp_path / "wrong")
    assert len(refused.value.lines) == 1


def test_where_case_and_solution_differ_both_are_said(toy: Path, tmp_path: Path) -> None:
    change(toy / "cases.py", '(3,))}, "entry",', '(3,))}, "entry", kind="a nmber",')
    change(toy / "cases.py", '["side"])}', '["number"])}')
    with pytest.raises(Faults) as refused:
        regenerate_into(toy, tmp_path / "wrong")
    told = "\n".join(refused.value.lines)
    assert "what is returned: the case expects 'a nmber', and the solution gives 'a NumPy array'" in told
    assert "mentions number, and the solution raises ValueError: 'side is left'" in told
