"""`check` as students' machines are: one like Windows, older torch, line ends of Windows, narrow terminals, a hang."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import yaml
from lengths import in_short
from places import KIT

from autograder.authoring.handout.release import handout_files
from autograder.checking.checker import LONGEST, SKIPPED, HastySandbox, Progress, other_torch, with_short_timeouts
from autograder.checking.handout import write_handout
from autograder.checking.terminal import coloured
from autograder.grading.assignment import find_assignment
from autograder.sandbox import interpreter
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import NOT_AGAIN, Sandbox
from autograder.sandbox.worker.worker import undisturbed

NAME = "policy_gradient"
LIKE_WINDOWS = KIT / "tests" / "support" / "like_windows.py"


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handout") / NAME
    write_handout(handout_files(find_assignment(KIT, NAME)), folder)
    return folder


@pytest.fixture
def work(handout: Path, tmp_path: Path) -> Path:
    """A handout with the solution in it, as a student has it."""
    folder = shutil.copytree(handout, tmp_path / NAME)
    shutil.copy(KIT / "solution" / NAME / f"{NAME}.py", folder)
    return folder


# Wherever it is started


@pytest.fixture
def odd_place(work: Path) -> Path:
    """A handout in a folder with a blank, an apostrophe and letters of other alphabets, as homes have them."""
    (work.parent / "Zoë O'Neil – 課題 5").mkdir()
    return work.rename(work.parent / "Zoë O'Neil – 課題 5" / work.name)


def in_shell(folder: Path, line: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """What `line` does, in which "$@" is Python; nothing is known of a home, a terminal or a language."""
    bare = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **environ}
    command = ["bash", "-c", line, "bash", sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=bare, capture_output=True, text=True, encoding="utf-8")


ITEM = "-m autograder check --item reward-values"


STARTED = (
    (f'"$@" -OO {ITEM}', 0, "3 / 3"),
    (f'"$@" {ITEM} | true; exit "${{PIPESTATUS[0]}}"', 141, ""),
    (f'"$@" {ITEM} >&-', 0, ""),
    (f'"$@" {ITEM} </dev/null', 0, "3 / 3"),
    (f'LC_ALL=POSIX PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 PYTHONIOENCODING=ascii "$@" {ITEM}', 0, "3 / 3"),
    (f'PYTHONHASHSEED=7 PYTHONWARNINGS=error TERM=dumb HOME=/nowhere TMPDIR=/nowhere "$@" -O {ITEM}', 0, "3 / 3"),
    (f'ulimit -n 64; "$@" {ITEM}', 0, "3 / 3"),
    (f'"$@" {ITEM} <&-', 0, "3 / 3"),
    (f'"$@" {ITEM} 2>&-', 0, "3 / 3"),
    (f'"$@" {ITEM} >/dev/full', 3, "The machine failed, which is no fault of your work: "),
    (f'ulimit -f 0; "$@" {ITEM}', 3, "which is no fault of your work. "),
)


@pytest.mark.skipif(not shutil.which("bash"), reason="a shell that limits what it starts")
@pytest.mark.parametrize(("line", "code", "says"), in_short(STARTED, 2))
def test_start_from_anywhere_gives_a_grade_or_a_sentence(odd_place: Path, line: str, code: int, says: str) -> None:
    done = in_shell(odd_place, line)
    assert (done.returncode, "Traceback" in done.stdout + done.stderr) == (code, False), done.stdout + done.stderr
    assert says in done.stdout + done.stderr


def check(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autograder", "check", *arguments]
    found = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COLUMNS")}
    return subprocess.run(command, cwd=folder, env=found | environ, capture_output=True, text=True)


# Windows


def like_windows(folder: Path, *arguments: str, root: str = r"C:\Windows") -> subprocess.CompletedProcess[str]:
    environ = {"PATH": os.environ["PATH"], "SYSTEMROOT": root, "LIKE_WINDOWS_WRAPPER": str(folder.parent / "python")}
    command = [sys.executable, "-B", str(LIKE_WINDOWS), str(folder), *arguments]
    return subprocess.run(command, env=environ, capture_output=True, timeout=600, encoding="cp1252")


def test_check_runs_without_what_windows_lacks(work: Path) -> None:
    done = like_windows(work, "check", "--item", "deltas-centered")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "PASS  deltas-centered" in done.stdout


def test_worker_on_windows_gets_what_windows_needs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "SystemRoot": r"D:\WINNT",
        "TEMP": r"D:\t",
        "Path": r"D:\secret",
        "TOKEN": "x",
        "PROCESSOR_ARCHITECTURE": "AMD64",
    }
    monkeypatch.setattr(os, "environ", given)
    monkeypatch.setattr(interpreter.tempfile, "gettempdir", lambda: r"D:\t")
    monkeypatch.setattr(os, "pathsep", ";")
    monkeypatch.setattr(sys, "platform", "win32")
    found = interpreter.environment()
    assert found["SYSTEMROOT"] == r"D:\WINNT"
    assert found["TEMP"] == found["TMP"] == r"D:\t"
    assert found["PATH"] == r"D:\WINNT\System32;D:\WINNT"
    assert found["PROCESSOR_ARCHITECTURE"] == "AMD64"
    assert "TOKEN" not in found
    assert "LC_ALL" not in found


def test_workflow_checks_every_assignment_on_three_systems() -> None:
    workflow = yaml.safe_load((KIT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8"))
    matrix = workflow["jobs"]["check"]["strategy"]["matrix"]
    assert sorted(matrix["assignment"]) == sorted(path.parent.name for path in KIT.glob("fixtures/*/items.toml"))
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]


# Line ends


@pytest.mark.long
def test_line_ends_of_windows_are_graded_alike(work: Path) -> None:
    for path in work.rglob("*"):
        if path.is_file() and path.suffix in (".py", ".toml", ".json", ".md", ".txt"):
            path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    done = check(work, "--item", "deltas-centered", "--item", "loss-naive")
    assert done.returncode == 0, done.stdout + done.stderr


# torch


def test_older_torch_without_default_device_disturbs_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_device() -> torch.device:
        raise AttributeError("'NoneType' object has no attribute 'device'")

    monkeypatch.setattr(torch, "get_default_device", no_device)
    with undisturbed():
        torch.set_default_device(None)
    assert torch.zeros(1).device.type == "cpu"


def test_other_torch_than_gradings_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    assignment = find_assignment(KIT, NAME)
    assert other_torch(assignment) == ()
    monkeypatch.setattr("autograder.checking.checker.version", lambda name: "2.6.0+cpu")
    [note] = other_torch(assignment)
    assert note.startswith("this is torch 2.6.0, and grading uses 2.13.0")


# Python


def test_older_python_is_told_so_in_a_sentence(tmp_path: Path) -> None:
    code = "import sys; sys.version_info = (3, 10, 2); sys.path.insert(0, sys.argv[1]); import autograder"
    done = subprocess.run([sys.executable, "-c", code, str(KIT)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("autograder: this is Python 3.10, and 3.11 or newer is needed")
    assert "Traceback" not in done.stderr


# Waiting


@pytest.mark.long
def test_function_that_hangs_costs_15_seconds_at_most(work: Path) -> None:
    module = work / f"{NAME}.py"
    module.write_text(
        re.sub(
            r'(def compute_deltas\(.*?""".*?"""\n)',
            r"\1    while True:\n        pass\n",
            module.read_text(),
            flags=re.S,
        )
    )
    began = time.monotonic()
    done = check(work)
    seconds = time.monotonic() - began
    assert re.search(r"^compute_deltas has been running for [34] s", done.stderr, re.M)
    assert "PASS  compute_reward" in done.stdout
    assert "FAIL  deltas-" in done.stdout
    assert "compute_deltas had not finished after 5 seconds." in done.stdout
    assert seconds < 15 + float(os.environ.get("SLOW_MACHINE", "30"))  # and what starting torch costs here


def test_no_call_is_tried_after_one_that_hung() -> None:
    class Hanging(Sandbox):
        def __init__(self) -> None:
            self.begun = lambda request: None

        def run(self, program: Program, requests: Sequence[Request], **_: object) -> list[Outcome]:  # type: ignore[override]
            assert [request.item for request in requests] == ["f", "f", "g"]
            return [Outcome("timed_out"), NOT_AGAIN, Outcome("not_run", detail="the time is over")]

    requests = [Request(item, item[0], "call", {}, b"", 5.0) for item in ("f-a", "f-b", "g-a")]
    outcomes = HastySandbox(Hanging(), io.StringIO()).run(Program("m", "", {}, ""), requests, load_timeout=1.0)
    assert [outcome.detail for outcome in outcomes] == ["", SKIPPED.format("f"), "the time is over"]


def test_no_call_is_waited_for_longer_than_a_student_waits() -> None:
    assignment = find_assignment(KIT, NAME)
    assert max(item.timeout for item in assignment.items) > LONGEST
    assert max(item.timeout for item in with_short_timeouts(assignment).items) <= LONGEST


def test_slow_function_is_mentioned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.checking.checker.SLOW_AFTER", 0.05)
    stream = io.StringIO()
    with Progress(stream) as progress:
        for _ in range(2):
            progress.begun(Request("f-a", "f", "call", {}, b"", 5.0))
            deadline = time.monotonic() + 30
            while not stream.getvalue() and time.monotonic() < deadline:
                time.sleep(0.01)
        time.sleep(0.1)
    assert stream.getvalue().count("f has been running for 0 s") == 1


# Terminals


@pytest.mark.long
def test_terminal_gets_colours_and_a_file_none(work: Path) -> None:
    plain = check(work, "--item", "deltas-centered").stdout
    assert "\x1b" not in plain
    assert coloured("PASS  a  b\nFAIL  c\n  PASS  x") == "\x1b[32mPASS\x1b[0m  a  b\n\x1b[31mFAIL\x1b[0m  c\n  PASS  x"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "autograder", "check", "--item", "deltas-centered"]
    environ = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "PYTHONPATH")}
    with subprocess.Popen(command, cwd=work, env=environ | {"TERM": "xterm"}, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while chunk := _read(ours):
            said += chunk
        process.wait()
    assert b"\x1b[32mPASS\x1b[0m" in said


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 4096)
    except OSError:  # the other side has ended
        return b""
