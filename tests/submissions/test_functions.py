"""A function as it is written is its student's own lines, whatever the text around it is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from autograder.submissions.submission import MAX_WRITTEN, outline
from autograder.submissions.submission import written as written_of

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


def written(text: str, names: Collection[str]) -> Mapping[str, str]:
    return written_of(text, {name: function for name, function in outline(text).items() if name in names})


def defaults_of(text: str) -> Mapping[str, Mapping[str, str]]:
    return {name: function.defaults for name, function in outline(text).items() if function.defaults}


def test_a_function_is_its_lines_without_the_docstring() -> None:
    lines = ["@torch.no_grad()", "def first(x):", "    y = 1  # kept", "", "    return x"]
    assert written(TEXT, {"first"}) == {"first": "\n".join(lines) + "\n"}
    assert written(TEXT.replace("\n", "\r\n"), {"first"}) == written(TEXT, {"first"})


def test_a_function_that_is_nothing_but_a_docstring_keeps_it() -> None:
    assert written(TEXT, {"second", "third"}) == {"second": 'def second(x):\n    """Nothing else."""\n'}


def test_of_a_function_that_is_defined_twice_the_last_counts() -> None:
    assert written("def f(): return 1\ndef f(): return 2\n", {"f"}) == {"f": "def f(): return 2\n"}


@pytest.mark.parametrize(
    "text", ["def f(:", "\0", "(" * 5_000, "x = " + "-" * 200_000, "def f(): pass\n(" + " " * 300_000]
)
def test_what_cannot_be_parsed_has_no_functions(text: str) -> None:
    assert written(text, {"f"}) == {}


def test_a_long_function_is_cut() -> None:
    text = written("def f():\n" + "    x = 1\n" * 2_000, {"f"})["f"]
    assert len(text) == MAX_WRITTEN + 2
    assert text.endswith("…\n")


def test_defaults_are_read_where_they_are_literals_and_written_the_shortest_way() -> None:
    text = "EPS = 1\ndef f(a, /, b=0.20, *, c='x', d, e=EPS, g=-1): ...\nclass A:\n    def f(b=3): ...\ndef g(a): ...\n"
    assert defaults_of(text) == {"f": {"b": "0.2", "c": "'x'", "g": "-1"}}
    assert defaults_of("def f(a=1): ...\ndef f(a=2): ...\n") == {"f": {"a": "2"}}
    assert defaults_of("def f(a=1)") == {}


@pytest.mark.parametrize(
    "default", ["1e999", "-1e999", "1e999j", "...", "(1, ...)", "0x" + "f" * 6_000, repr("x" * 1_000)]
)
def test_a_default_that_python_does_not_read_as_it_writes_it_is_left_out(default: str) -> None:
    """It ended the class: whoever compared `inf` with the handout's default read a name where a number should be."""
    assert defaults_of(f"def f(a={default}, b=2): ...\n") == {"f": {"b": "2"}}
