"""A function as it is written is its student's own lines, whatever the text around it is."""

from __future__ import annotations

import pytest

from autograder.submissions.syntax import MAX_WRITTEN, written

TEXT = '''import torch


@torch.no_grad()
def first(x):
    """What it
    returns."""
    y = 1  # kept

    return x


def second(x):
    """Nothing else."""


first = first
'''


def test_a_function_is_its_lines_without_the_docstring() -> None:
    lines = ["@torch.no_grad()", "def first(x):", "    y = 1  # kept", "", "    return x"]
    assert written(TEXT, {"first"}) == {"first": "\n".join(lines) + "\n"}
    assert written(TEXT.replace("\n", "\r\n"), {"first"}) == written(TEXT, {"first"})


def test_a_function_that_is_nothing_but_a_docstring_keeps_it() -> None:
    assert written(TEXT, {"second", "third"}) == {"second": 'def second(x):\n    """Nothing else."""\n'}


def test_of_a_function_that_is_defined_twice_the_last_counts() -> None:
    assert written("def f(): return 1\ndef f(): return 2\n", {"f"}) == {"f": "def f(): return 2\n"}


@pytest.mark.parametrize(
    "text", ["def f(:", "\0", "(" * 5_000, "x = " + "-" * 200_000, "def f(): pass\n" + " " * 300_000]
)
def test_what_cannot_be_parsed_has_no_functions(text: str) -> None:
    assert written(text, {"f"}) == {}


def test_a_long_function_is_cut() -> None:
    text = written("def f():\n" + "    x = 1\n" * 2_000, {"f"})["f"]
    assert len(text) == MAX_WRITTEN + 2
    assert text.endswith("…\n")
