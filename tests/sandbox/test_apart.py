"""Apart: what a function gives in a process of its own, and what is left of it here."""

from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from places import KIT
from processes import PATIENCE, wait_for

from autograder.grading.assignment import find_assignment
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.vocabulary.errors import FixtureError, UsageError

SLOW = "import pathlib, time; pathlib.Path('started').touch(); time.sleep(600)"
INTERRUPTED = """\
import runpy, sys
from autograder.sandbox.interpreter import run_in_subprocess

if __name__ == "__main__":
    try:
        run_in_subprocess(runpy.run_path, "slow.py")
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_the_result_comes_back_from_another_process() -> None:
    assert run_in_subprocess(os.getpid) != os.getpid()
    assert run_in_subprocess(int, "ff", base=16) == 255


def test_what_is_imported_on_one_side_is_not_imported_on_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("of_theirs", "of_ours"):
        (tmp_path / f"{name}.py").write_text("VALUE = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert importlib.import_module("of_ours").VALUE == 7
    assert run_in_subprocess(eval, "__import__('of_theirs').VALUE, 'of_ours' in __import__('sys').modules") == (
        7,
        False,
    )
    assert "of_theirs" not in sys.modules


def test_an_exception_comes_back_with_its_type_its_text_and_the_place_it_came_from() -> None:
    with pytest.raises(UsageError, match="There is no assignment 'nix'") as caught:
        run_in_subprocess(find_assignment, KIT, "nix")
    assert type(caught.value) is UsageError
    assert "in find_assignment" in caught.value.__notes__[0]


def test_a_process_that_ends_early_is_a_sentence_that_names_the_function() -> None:
    with pytest.raises(FixtureError, match=r"The process that ran _exit ended before it was done\."):
        run_in_subprocess(os._exit, 3)


def test_ctrl_c_ends_both_processes_at_once_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(INTERRUPTED)
    (tmp_path / "slow.py").write_text(SLOW)
    running = subprocess.Popen(
        [sys.executable, "run.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        wait_for((tmp_path / "started").exists)
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
        assert (running.returncode, out, err) == (130, b"", b"")
        wait_for(lambda: members(running.pid) == [])
    finally:
        for process in members(running.pid):
            os.kill(process, signal.SIGKILL)


def members(group: int) -> list[int]:
    """The processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(path.parent.name))
    return found
