"""Check: what a student runs on a folder of their own, and what it says where it cannot."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import toy_kit
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from places import KIT
from processes import PATIENCE

from autograder.checking import checker
from autograder.checking.check import INTRODUCTION, check, main
from autograder.cli.main import main as whole_command_line
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import GraderFault, UsageError

RIGHT = "import torch\n\ndef ramp(x, factor):\n    return factor * torch.clamp(x, min=0)\n\n"
SHIFT = "def shift(x, factor):\n    return x + factor\n"
WRONG = "def shift(x, factor):\n    return x - factor\n"
Checked = Callable[..., tuple[int, str]]


@pytest.fixture(autouse=True)
def warm_checker(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let checks in this process take the warm sandbox, and leave it as it was."""
    monkeypatch.setattr(checker.Checker, "__exit__", lambda *_: None)
    monkeypatch.setattr(sandbox, "begun", sandbox.begun)
    monkeypatch.setattr(checker, "Sandbox", lambda: sandbox)


@pytest.fixture
def work(kit: Path) -> Path:
    """A student's folder near the toy assignment, with right work in it."""
    (kit / "work").mkdir()
    (kit / "work" / "toy.py").write_text(RIGHT + SHIFT)
    return kit / "work"


@pytest.fixture
def checked(work: Path, capsys: pytest.CaptureFixture[str]) -> Checked:
    """A function that checks the folder, in which toy.py may hold another text; the exit code, and what is printed."""

    def run(text: str = "", *items: str) -> tuple[int, str]:
        if text:
            (work / "toy.py").write_text(text)
        return check(work, items), capsys.readouterr().out

    return run


# Verdicts and exit codes


def test_right_work_passes_every_public_case(checked: Checked, kit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(kit / "fixtures" / "toy" / "hidden")
    code, printed = checked()
    assert code == 0
    assert [" ".join(line.split()) for line in printed.splitlines()] == [
        "PASS ramp 6 / 6",
        "PASS shift 4 / 4",
        f"total 10 / 10 {INTRODUCTION}",
    ]
    monkeypatch.setenv("COLUMNS", "60")
    assert checked()[1].endswith(f" 10 / 10\n      {INTRODUCTION}\n")


def test_wrong_item_is_shown_with_values_hint_and_command(checked: Checked) -> None:
    code, printed = checked(RIGHT + WRONG)
    assert (code, printed.startswith("FAIL  shift-values")) == (1, True)
    for part in ("[row column]", "yours", "Which way?", "check --item shift-values", "Line 7 of your file"):
        assert part in printed
    assert [line[:11] for line in printed.splitlines()[-3:]] == ["PASS  ramp ", "FAIL  shift", "      total"]
    assert f" 6 / 10   {INTRODUCTION}" in printed


def test_line_of_an_exception_and_one_whose_change_mends_are_shown(checked: Checked) -> None:
    code, printed = checked(RIGHT.replace("factor * ", "factor * x.nothing + ") + WRONG)
    assert code == 1
    assert "  >    4       return factor * x.nothing + torch.clamp(x, min=0)\n" in printed
    assert "  >    7       return x - factor\n" in printed


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (["shift-values", "ramp-values", "shift-values"], ["ramp-values", "shift-values"]),
        (["shift"], ["shift-values"]),  # a function's items
        (["shift-values"], ["shift-values"]),
    ],
)
def test_items_asked_for_are_shown_once_in_order(checked: Checked, asked: list[str], shown: list[str]) -> None:
    code, printed = checked(RIGHT + WRONG, *asked)
    assert (code, re.findall(r"^\w+ +(\w+-values) ", printed, re.M)) == (1, shown)


# What is handed in


def test_notebook_counts_before_an_untouched_module(checked: Checked, work: Path, kit: Path) -> None:
    cells = [new_markdown_cell("# Toy"), *map(new_code_cell, (RIGHT, SHIFT, "print(shift(1, 2))"))]
    nbformat.write(new_notebook(cells=cells), work / "toy.ipynb")
    code, printed = checked((kit / "handout" / "toy" / "toy.py").read_text())
    assert code == 0
    assert "Note: both a module and a notebook were handed in: the notebook was graded because" in printed
    assert f" 10 / 10   {INTRODUCTION}" in printed


def test_file_and_zip_are_checked_like_their_folder(work: Path, kit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "toy.py").write_text("   ")
    with zipfile.ZipFile(kit / "ada.zip", "w") as archive:
        archive.write(work / "toy.py", "toy.py")
    said = []
    for path in (work, work / "toy.py", kit / "ada.zip"):
        assert check(path) == 1
        said.append(capsys.readouterr().out.replace("ada.zip", "work"))
    assert "work/toy.py is empty." in said[0]
    assert said[0] == said[1] == said[2]


# Wrong use


@pytest.mark.parametrize("files", [[], ["notes.txt"], ["ada/toy.py", "bela/toy.py"], ["a.py", "a.ipynb"], ["toy.txt"]])
def test_folder_without_work_is_named_with_what_it_should_hold(kit: Path, files: list[str]) -> None:
    folder = kit / "somewhere"
    folder.mkdir()
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(RIGHT)
    with pytest.raises(UsageError) as refused:
        check(folder)
    assert str(refused.value) == f"{folder} holds neither toy.py nor toy.ipynb: run this in the folder that does."


@pytest.mark.parametrize("command_line", [main, whole_command_line], ids=["of the handout", "of the kit"])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["/no/such/folder"], "autograder: There is no file or folder /no/such/folder: check the path.\n"),
        (["WORK", "--assignment", "nix"], "There is no assignment 'nix'. Name one with --assignment: toy.\n"),
        (["WORK", "--item", "nix"], "no item 'nix' in toy. The items are: ramp-values, shift-values.\n"),
        (["WORK", "--item", "ramp-value"], "no item 'ramp-value' in toy. Did you mean ramp-values?\n"),
        (["WORK", "--item", "shft"], "no item 'shft' in toy. Did you mean shift?\n"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command_line: Callable[[], int | None],
    arguments: list[str],
    sentence: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["autograder", "check", *(str(work) if a == "WORK" else a for a in arguments)])
    code = ended_with(command_line)
    out, err = capsys.readouterr()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("autograder: ")
    assert err.endswith(sentence)


def ended_with(command_line: Callable[[], int | None]) -> object:
    try:
        return command_line()
    except SystemExit as ended:
        return ended.code


# Faults that are not the student's


@pytest.mark.parametrize("damage", [None, "raise ImportError('einops is damaged')"])
def test_package_that_is_missing_or_damaged_is_no_verdict(
    work: Path, kit: Path, tmp_path: Path, damage: str | None
) -> None:
    packages = toy_kit.packages_without("einops", tmp_path)
    if damage:
        (packages / "einops.py").write_text(damage, encoding="utf-8")
    done = toy_kit.autograder(kit, "check", work, packages=packages)
    assert (done.returncode, done.stdout) == (3, "")
    if damage:
        assert done.stderr.startswith("autograder: Nothing could be checked, which is no fault of your work. ")
        assert "einops is damaged" in done.stderr
    else:
        advice = "python -m pip install -r requirements.txt, in the folder of the handout"
        assert done.stderr == f"autograder: The package einops is missing: {advice}.\n"
    assert done.stderr.count("\n") == 1


def test_altered_public_case_is_no_verdict(work: Path, kit: Path) -> None:
    toy_kit.flip_a_byte(kit / "fixtures" / "toy" / "public" / "ramp-values.safetensors")
    with pytest.raises(GraderFault, match="its SHA-256 differs"):
        check(work)


# Watching


@pytest.mark.long
def test_watch_checks_again_on_each_save_and_says_what_changed(work: Path, kit: Path) -> None:
    (work / "toy.py").write_text(RIGHT + WRONG)
    command = [sys.executable, "-B", "-m", "autograder", "check", str(work), "--watch"]
    environment = {**os.environ, "PYTHONPATH": str(KIT), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=kit, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:

        def printed() -> str:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if line.rstrip().endswith("Ctrl-C ends."):
                    return "".join(lines)
            raise AssertionError(f"it ended: {''.join(lines)}")

        try:
            first = printed()
            assert INTRODUCTION in first
            assert "FAIL  shift-values" in first
            assert "Now right" not in first
            (work / "toy.py").write_text(RIGHT + SHIFT)
            assert "Now right: shift-values" in printed()
            (work / "new.py").write_text(SHIFT)
            (work / "new.py").replace(work / "toy.py")  # as an editor saves
            third = printed()
            assert "No longer right: ramp-values" in third
            assert "Now right" not in third
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=PATIENCE) == 1
        finally:
            process.kill()
