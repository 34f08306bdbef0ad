"""A function as it is written is its student's own lines, whatever the text around it is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from autograder.submissions.submission import MAX_WRITTEN, outline, written

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


SECOND = {"second": 'def second(x):\n    """Nothing else."""\n'}  # which is nothing but a docstring
FIRST = {"first": "@torch.no_grad()\ndef first(x):\n    y = 1  # kept\n\n    return x\n"}


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        (TEXT, FIRST | SECOND),
        (TEXT.replace("\n", "\r\n"), FIRST | SECOND),
        ("def f(): return 1\ndef f(): return 2\n", {"f": "def f(): return 2\n"}),
        ("def f():\n" + "    x = 1\n" * 2_000, {"f": ("def f():\n" + "    x = 1\n" * 2_000)[:MAX_WRITTEN] + "…\n"}),
        *(
            (text, {})
            for text in ("def f(:", "\0", "(" * 5_000, "x = " + "-" * 200_000, "def f(): pass\n(" + " " * 300_000)
        ),
    ],
    ids=("lines", "Windows's", "twice", "long", *"ABCDE"),
)
def test_a_function_is_its_lines_without_the_docstring(text: str, functions: Mapping[str, str]) -> None:
    assert written(text, outline(text)) == functions


ODD = ("1e999", "-1e999", "1e999j", "...", "(1, ...)", "0x" + "f" * 6_000, repr("x" * 1_000))


@pytest.mark.parametrize(
    ("text", "defaults"),
    [
        ("E = 1\ndef f(a, /, b=0.20, *, c='x', d, e=E, g=-1): ...\n", {"f": {"b": "0.2", "c": "'x'", "g": "-1"}}),
        ("class A:\n    def f(b=3): ...\ndef g(a): ...\n", {"g": {}}),
        ("def f(a=1): ...\ndef f(a=2): ...\n", {"f": {"a": "2"}}),
        ("def f(a=1)", {}),
        *((f"def f(a={odd}, b=2): ...\n", {"f": {"b": "2"}}) for odd in ODD),  # Python writes it otherwise
    ],
)
def test_defaults_are_literals_written_the_shortest_way(text: str, defaults: Mapping[str, Mapping[str, str]]) -> None:
    assert {name: function.defaults for name, function in outline(text).items()} == defaults
