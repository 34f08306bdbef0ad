"""Reading in a process with limits: what exceeds them is told to the student, and a fault stays a fault."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hand_ins import IPYNB, MODULE, PY, notebook, put_all, zipped
from places import KIT

from autograder.grading.assignment import find_assignments
from autograder.submissions import reading
from autograder.submissions.finding import find
from autograder.submissions.submission import MIB, Candidate, Submission

HANDOUT = "def f(x, a=1):\n    raise NotImplementedError()\n"
WORK = "def f(x, a=2):\n    return x\n"

pytestmark = pytest.mark.skipif(not reading.HAS_LIMITS, reason="there are limits on Linux alone")


@pytest.fixture(autouse=True)
def fresh_readers() -> Iterator[None]:
    reading.end_all()
    yield
    reading.end_all()


def read(folder: Path, files: Mapping[str, str | bytes]) -> Submission:
    return reading.read_limited(Candidate("eve", put_all(folder, files), "eve"), MODULE, HANDOUT)


def test_submissions_are_read_as_without_limits() -> None:
    for assignment in find_assignments(KIT):
        untouched = assignment.untouched_source()
        for candidate in find([assignment.folder / "submissions"], assignment.module):
            here = reading.read(candidate, assignment.module, untouched)
            assert reading.read_limited(candidate, assignment.module, untouched) == here
            words = reading.written_cells(candidate, assignment.module, assignment.functions)
            assert reading.written_cells_limited(candidate, assignment.module, assignment.functions) == words


def test_every_field_of_a_submission_comes_back(tmp_path: Path) -> None:
    whole = json.loads(notebook(WORK))
    whole["cells"] += [{"cell_type": "code", "source": "x = '\ud800'"}, {"cell_type": "code", "source": "def g(:"}]
    candidate = Candidate("eve\ud800", tmp_path / "w.ipynb", "w.ipynb", notes=("late",))
    (tmp_path / "w.ipynb").write_text(json.dumps(whole))
    result = reading.read_limited(candidate, MODULE, HANDOUT)
    assert result == reading.read(candidate, MODULE, HANDOUT)
    assert all(getattr(result, field.name) for field in dataclasses.fields(result) if field.name in (
        "student", "source", "notes", "cells", "unread", "unread_cells", "functions",
    ))  # fmt: skip


def with_members(count: int) -> bytes:
    """A zip that lists its one file so many times; `zipfile` itself would take long to write it."""
    data = zipped({"x": ""})
    begin, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    listed, last = data[begin:end] * count, bytearray(data[end:])
    last[12:16] = len(listed).to_bytes(4, "little")
    return data[:begin] + listed + last


NESTED = "y = f'" + "{a:{b}}" * 140_000 + "'\n"
ATTACKS: Mapping[str, tuple[Callable[[], Mapping[str, str | bytes]], str]] = {
    "runs of _ in names": (lambda: {"w.zip": zipped({"_" * 250 + f"{n}.py": "x" for n in range(99)})}, "holds no "),
    "names of 1,600 characters": (lambda: {"w.zip": zipped({"_" * 1_600 + ".py": "x"})}, "holds no "),
    "many notebooks": (
        lambda: {"w.zip": zipped({f"{n}.ipynb": bytes(44 * MIB) for n in range(3)})},
        "(holds|takes) more than",
    ),
    "nested f-strings": (lambda: {PY: NESTED}, "more than 128 KiB of code"),
    "many scopes": (lambda: {IPYNB: notebook("a=lambda:0\n" * 20_000)}, "more than 5000 cells and 128 KiB of code"),
    "many members": (lambda: {"w.zip": with_members(200_000)}, "more than 20000 files"),
    "many functions": (lambda: {IPYNB: notebook("def f():0\n" * 13_000)}, "takes more than 1 s to read"),
    "deep JSON": (lambda: {IPYNB: '{"a":' * 2**20}, "nested too deeply"),
    "many tokens": (lambda: {IPYNB: f"[{'{},' * 15 * 2**20}1]"}, "takes more than 1"),
    "much text": (
        lambda: {IPYNB: json.dumps({"cells": [], "x": ["x"] * 5_000_000})},
        "^eve takes more than 100 MiB of memory to read: hand in policy_gradient.py",
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_exceeding_the_limits_is_the_students_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make, says = ATTACKS[name]
    monkeypatch.setattr(reading, "SECONDS", 1)
    if "memory" in says:
        monkeypatch.setattr(reading, "MEMORY", 100 * MIB)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = read(tmp_path / "eve", make())
    assert re.search(says, result.problem)
    assert (result.source, result.fault) == ("", "")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 700_000  # what it took to make the attack
    assert read(tmp_path / "ada", {PY: WORK}).source == WORK


def test_reader_that_fails_is_nobodys_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(why: str) -> None:
        result, sentence = read(tmp_path, {}), f"eve could not be read ({why}): see to it and grade it again."
        assert (result.problem, result.fault) == ("", sentence)

    assert read(tmp_path, {PY: WORK}).source == WORK
    os.kill(reading.idle[0].pid, signal.SIGKILL)
    fails("the reader ended with SIGKILL")
    assert read(tmp_path, {}).source == WORK
    reading.end_all()
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no python"))
    fails("No such file or directory")


def asked(folder: Path, before: str, after: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that reads a module, and does something before and after."""
    (folder / PY).write_text(WORK)
    reads = f"result = reading.read_limited(reading.Candidate('eve', Path({str(folder)!r}), 'eve'), {MODULE!r})"
    lines = ["import resource", "from pathlib import Path", "from autograder.submissions import reading"]
    command = [sys.executable, "-c", "\n".join([*lines, before, reads, after])]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def test_less_memory_than_the_limit_is_nobodys_zero(tmp_path: Path) -> None:
    less = "resource.setrlimit(resource.RLIMIT_AS, (reading.MEMORY // 2, reading.MEMORY // 2))"
    said = asked(tmp_path, less, "print([result.problem, result.fault])").stdout
    assert said.startswith("['', 'eve could not be read (less than 1024 MiB of memory are allowed here)")


def test_reader_ends_with_its_parent(tmp_path: Path) -> None:
    done = asked(tmp_path, "", "print(reading.idle[0].pid)")
    assert done.stderr == ""
    assert not Path(f"/proc/{done.stdout.strip()}").exists()
