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
     "cases.py:14: ValueError: Drawn has the axes 'state action' and the sizes"),
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
