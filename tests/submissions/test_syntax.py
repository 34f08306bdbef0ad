"""A function as it is written is its student's own lines, whatever the text around it is."""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path

import pytest
from lengths import in_short

from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate
from autograder.submissions.syntax import (
    MAX_SCOPES,
    MAX_STATEMENTS,
    MAX_UNTRIED,
    MAX_WRITTEN,
    defaults_of,
    parsed,
    written,
)

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


def test_defaults_are_read_where_they_are_literals_and_written_the_shortest_way() -> None:
    text = "EPS = 1\ndef f(a, /, b=0.20, *, c='x', d, e=EPS, g=-1): ...\nclass A:\n    def f(b=3): ...\ndef g(a): ...\n"
    assert defaults_of(text) == {"f": {"b": "0.2", "c": "'x'", "g": "-1"}}
    assert defaults_of("def f(a=1): ...\ndef f(a=2): ...\n") == {"f": {"a": "2"}}
    assert defaults_of("def f(a=1)") == {}


@pytest.mark.parametrize("default", ["1e999", "-1e999", "1e999j", "...", "(1, ...)", "0x" + "f" * 6_000])
def test_a_default_that_python_does_not_read_as_it_writes_it_is_left_out(default: str) -> None:
    """It ended the class: whoever compared `inf` with the handout's default read a name where a number should be."""
    assert defaults_of(f"def f(a={default}, b=2): ...\n") == {"f": {"b": "2"}}


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("def f():0\n", MAX_SCOPES),
        ("class A:0\n", MAX_SCOPES),
        ("a=lambda:0\n", MAX_SCOPES),
        ("a=[b for b in c]\n", MAX_SCOPES),
        ("a:b\n", MAX_STATEMENTS),
    ],
)
def test_what_python_would_read_for_many_seconds_is_not_read(line: str, most: int) -> None:
    """The time that Python takes for so many functions grows with the square of their number."""
    assert len(parsed(line * (most // 100)).body) == most // 100
    with pytest.raises(ValueError, match="more than anybody writes"):
        parsed(line * (most + 1))


LENGTH = 250_000  # characters, which a file may have
COSTLY = {  # the quickest first
    "a name of many parts, line by line": "import a" + ".\\\na" * (LENGTH // 4),
    "a name of many parts": "import " + ".".join(["a"] * (LENGTH // 2)),
    "a long f-string": 'x = f"' + "{a}" * (LENGTH // 3) + '"',
}


@pytest.mark.parametrize("name", in_short(COSTLY))
def test_what_takes_python_long_to_parse_or_gigabytes_is_refused_in_time(name: str) -> None:
    """In a process of its own: parsed here, a long name took 15 GB and more than a minute, the f-string 10 s a time."""
    resource = pytest.importorskip("resource", reason="Windows has no limits of memory")
    text = COSTLY[name]
    started = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="more than anybody writes"):
        parsed(text)
    assert time.process_time() - started[0] < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < started[1] + 100_000
    assert defaults_of(text) == written(text, {"f"}) == {}


def test_where_no_process_can_be_started_a_long_text_is_nobodys_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never parsed in the grader itself after all; only what shows it goes without."""

    def none_left(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "no process left")

    monkeypatch.setattr("autograder.submissions.syntax.subprocess.run", none_left)
    monkeypatch.setattr("autograder.submissions.syntax.ast.parse", none_left)
    cell = {"cell_type": "code", "source": "x = 1\n" * MAX_UNTRIED, "metadata": {}, "outputs": []}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    (tmp_path / "grpo.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    found = read(Candidate("ada", tmp_path / "grpo.ipynb", "grpo.ipynb"), "grpo")
    assert not found.source
    assert not found.problem
    assert "could not be read (no process left)" in found.fault
    text = f"x = '{'y' * MAX_UNTRIED}'"
    assert written(text, {"f"}) == defaults_of(text) == {}


def test_a_long_text_like_any_other_is_parsed() -> None:
    text = "def f(a=1):\n    return [a + 1, a * 2, str(a)]\n\n\n" * (LENGTH // 100)
    assert len(text) > MAX_UNTRIED
    assert defaults_of(text) == {"f": {"a": "1"}}
    with pytest.raises(SyntaxError):
        parsed(f"{text}\nx = = 1")
    broken = f"{text}\n\ud800"
    with pytest.raises(ValueError, match="surrogates"):
        parsed(broken)
