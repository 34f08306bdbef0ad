"""`autograder new` as a person sees it: a terminal, one question at a time, wrong answers, Ctrl-C and Ctrl-D."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from pathlib import Path

import pytest
from places import KIT

PATIENCE = 120.0  # seconds for a question to come
CTRL_C, CTRL_D = "\x03", "\x04"
LIST = "def scaled(a, n):\n    return [x * n for x in a]\n\n\ndef same(x):\n    return x\n"
BOUNDED = "def area(x: float, n: int):\n    if x < 40 or n < 20:\n        raise ValueError('no')\n    return x * n\n"


def answered(folder: Path, text: str, *turns: tuple[str, str]) -> tuple[int, str]:
    """Exit code and what the terminal showed: each answer is typed once the words before it were shown."""
    (folder / "s.py").write_text(text)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        environment = {**os.environ, "COLUMNS": "120", "TERM": "xterm", "PYTHONPATH": str(KIT)}
        command = [sys.executable, "-m", "autograder", "new", "walks", "--from", "s.py"]
        os.execvpe(sys.executable, command, environment)
    shown, asked, waiting, typed = "", 0, list(turns), ""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if not select.select([terminal], [], [], 2.0)[0]:
            if typed in (CTRL_C, CTRL_D):  # as a person does where nothing happened
                os.write(terminal, typed.encode())
            continue
        try:
            read = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        shown += read.decode(errors="replace")
        while waiting and (place := shown.find(waiting[0][0], asked)) >= 0:
            words, typed = waiting.pop(0)
            asked = place + len(words)
            os.write(terminal, typed.encode())
    else:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert not waiting, shown
    return os.waitstatus_to_exitcode(status), re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", shown)


@pytest.mark.long
def test_questions_come_one_at_a_time_with_defaults_and_again_after_a_wrong_answer(tmp_path: Path) -> None:
    code, shown = answered(
        tmp_path,
        LIST,
        ("Title [Walks]: ", "Walks, sheet 2\n"),
        ("Functions to grade [scaled same]: ", "scaled other\n"),
        ("Some of: scaled same.", "scaled\n"),
        ("a of scaled: names of its axes, or one of number, whole, text, flag, function [entry]: ", "row 3\n"),
        ("no two the same: row column.", "step\n"),
        ("n of scaled: names of its axes", "whole\n"),
        ("Students write the whole body of scaled? [Y/n]: ", "perhaps\n"),
        ("Error: invalid input", "\n"),
    )
    assert code == 0, shown
    assert "fixtures/walks, solution/walks: 1 item, " in shown
    assert 'title = "Walks, sheet 2"' in (tmp_path / "fixtures" / "walks" / "items.toml").read_text()
    assert 'Drawn("step", ' in (tmp_path / "fixtures" / "walks" / "cases.py").read_text()
    assert "same" not in (tmp_path / "fixtures" / "walks" / "items.toml").read_text()


@pytest.mark.long
def test_what_a_function_answers_is_asked_until_the_bounds_are_in_order(tmp_path: Path) -> None:
    code, shown = answered(
        tmp_path,
        BOUNDED,
        ("Title [Walks]: ", "\n"),
        ("Functions to grade [area]: ", "\n"),
        ("whole body of area? [Y/n]: ", "\n"),
        ("x of area: from [1]: ", "fifty\n"),
        ("x of area: from [1]: ", "50\n"),
        ("x of area: to [50]: ", "10\n"),
        ("From 50 to 10 there is no number", ""),
        ("x of area: from [1]: ", "50\n"),
        ("x of area: to [50]: ", "60\n"),
        ("n of area: from [1]: ", "20\n"),
        ("n of area: to [20]: ", "30\n"),
    )
    assert "area answers nothing that was tried: ValueError: no" in shown
    assert code == 0, shown
    assert "Number(50.0, 60.0)" in (tmp_path / "fixtures" / "walks" / "cases.py").read_text()


@pytest.mark.long
@pytest.mark.parametrize(
    "turns",
    [
        [("Title [Walks]: ", CTRL_C)],
        [("Title [Walks]: ", CTRL_D)],
        [("Title [Walks]: ", "\n"), ("Functions to grade", CTRL_D)],
        [("Title", "\n"), ("Functions", "same\n"), ("x of same", "\n"), ("whole body", "\n"), ("trying", CTRL_C)],
    ],
    ids=["the first question", "its end", "a later one", "the trial"],
)
def test_ctrl_c_and_ctrl_d_leave_nothing_behind_and_say_so(tmp_path: Path, turns: list[tuple[str, str]]) -> None:
    code, shown = answered(tmp_path, LIST, *turns)
    assert code == 130
    assert "Nothing of walks was written." in shown
    assert "autograder: stopped." in shown
    assert "Traceback" not in shown
    assert [path.name for path in tmp_path.iterdir()] == ["s.py"]
