"""What is printed for people at 80 and 120 columns, with colour and without; and for scripts: --json and --quiet."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import toy_kit
from hand_ins import put
from in_process import autograder_in_process
from lengths import in_short
from places import KIT

from autograder.vocabulary.report import from_json

RIGHT = "import torch\n\n\ndef ramp(x, factor):\n    return factor * torch.clamp(x, min=0)\n\n\n"
SHIFT = "def shift(x, factor):\n    return x {} factor\n"
MARK = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
WIDTHS = (80, 120)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy kit with a class of a right and a wrong submission."""
    kit = toy_kit.toy_kit(tmp_path_factory.mktemp("scripts") / "kit", tmp_path_factory)
    for name, sign in (("ada", "+"), ("bela", "-")):
        put(kit / "class" / name / "toy.py", RIGHT + SHIFT.format(sign))
    return kit


def on_a_terminal(kit: Path, columns: int, *arguments: str, typed: str = "", **environment: str) -> str:
    """What a terminal of so many columns is sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "autograder", *arguments],
            cwd=kit,
            env={**known, "PYTHONPATH": str(KIT), "TERM": "xterm-256color", **environment},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        ):
            os.close(theirs)
            os.write(ours, typed.encode())
            shown = b""
            with contextlib.suppress(OSError):  # the other end is closed
                while chunk := os.read(ours, 4096):
                    shown += chunk
    finally:
        os.close(ours)
    return shown.decode()


# People


@pytest.mark.parametrize("columns", in_short(WIDTHS))
def test_terminal_gets_lines_that_fit_and_colour(kit: Path, columns: int) -> None:
    grades = f"--out={kit / f'grades-{columns}'}"
    shown = on_a_terminal(kit, columns, "grade", "class", grades, "--jobs", "1")
    lines = [line for line in MARK.sub("", shown).replace("\r", "\n").splitlines() if "grading" not in line]
    assert any(line.split()[:2] == ["ada", "10"] for line in lines)
    assert "wrong-way" in " ".join(lines).split()
    assert max(len(line) for line in lines if str(kit) not in line and "STRICT" not in line) <= columns
    assert MARK.search(shown)
    assert "grading" in shown
    assert shown[shown.rindex("2/2") :].count("\x1b[2K")  # the line of the bar is cleared


@pytest.mark.parametrize("answer", in_short("ny"))
def test_changed_grade_is_asked_about_undisturbed(kit: Path, tmp_path: Path, answer: str) -> None:
    put(tmp_path / "class" / "ada" / "toy.py", "")
    grade = ("grade", str(tmp_path / "class"), "--out", str(tmp_path / "g"))
    assert autograder_in_process(kit, *grade).returncode == 0
    (tmp_path / "o.csv").write_text("student,item,points,comment\nada,,9,agreed\n")
    before = (tmp_path / "g/grades.csv").read_bytes()
    shown = on_a_terminal(kit, 80, *grade, "--overrides", str(tmp_path / "o.csv"), typed=f"{answer}\n")
    assert "Of 1 grade 1 changes: ada 0 → 9.\r\nWrite these grades? [y/N]: " in shown
    assert "grading" not in shown.partition("Write these")[2]
    assert ((tmp_path / "g/grades.csv").read_bytes() != before) == (answer == "y")


# Scripts


@pytest.mark.usefixtures("warm_pool")
def test_grade_prints_one_json_document_for_a_script(kit: Path) -> None:
    done = autograder_in_process(kit, "grade", "class", "--out", "for-scripts", "--jobs", "1", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {
        "schema", "assignment", "out", "max_points", "graded", "unchanged", "seconds", "isolation", "students",
        "absent", "not_in_roster", "refused", "gone",
    }  # fmt: skip
    ada, bela = found["students"]
    assert ada == {
        "student": "ada", "status": "graded", "points": 10.0, "final": 10.0, "final_max": 10.0, "not_passed": [],
        "report": "for-scripts/reports/ada.json", "page": "for-scripts/feedback/ada.html",
    }  # fmt: skip
    assert (bela["points"], bela["not_passed"]) == (6.0, ["shift-values"])
    (kit / "o.csv").write_text("student,item,points,comment\nbela,,9,agreed\n")
    options = ("--jobs", "1", "--json", "--overrides", "o.csv")
    refused = autograder_in_process(kit, "grade", "class", "--out", "for-scripts", *options)
    assert (refused.returncode, refused.stdout) == (2, "")
    again = autograder_in_process(kit, "grade", "class", "--out", "for-scripts", *options, "--replace")
    assert [one["final"] for one in json.loads(again.stdout)["students"]] == [10.0, 9.0]


def test_check_prints_the_report_as_grading_stores_it(kit: Path) -> None:
    done = autograder_in_process(kit, "check", "class/bela", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    verdicts = {item["item"]: item["verdict"] for item in found["items"]}
    assert (verdicts, found["notes"]) == ({"ramp-values": "passed", "shift-values": "failed"}, [])
    assert from_json({name: value for name, value in found.items() if name != "notes"}).assignment == "toy"


@pytest.mark.long
def test_selfcheck_json_and_code_say_whether_to_release(kit: Path) -> None:
    done = toy_kit.autograder(kit, "selfcheck", "--quick", "--json", "--jobs", "1")
    (one,) = json.loads(done.stdout)["assignments"]
    assert (one["assignment"], one["solution"], one["max_points"]) == ("toy", 10.0, 10.0)
    assert one["mistakes"]["tried"] == one["mistakes"]["caught"] > 0
    assert (done.returncode == 3) == bool(one["complaints"])


def test_json_keys_stand_in_the_guide() -> None:
    guide = (KIT / "autograder" / "README.md").read_text(encoding="utf-8")
    section = guide[guide.index("## For scripts") :].partition("\n## ")[0]
    keys = ("students", "not_passed", "final", "unchanged", "refused", "named_rightly", "complaints", "notes")
    assert [key for key in keys if f"`{key}`" not in section] == []
