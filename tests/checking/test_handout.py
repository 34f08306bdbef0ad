"""A newer handout and a student who has begun: what is renewed, what is kept, what `check` says of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import toy_kit
from toy_kit import regenerate_into

from autograder.authoring.handout.release import handout_files, zip_bytes
from autograder.checking.handout import COPIES
from autograder.grading.assignment import find_assignment
from autograder.vocabulary.files import RECORD

MORE_POINTS = ("points = 6", "points = 16")
RENAMED = '\n[[renamed]]\nold = "{}"\nnew = "{}"\nsince = "2027-03-12"\n'
EMPTY = hashlib.sha256(b"").hexdigest()
WORK = "import torch\n\n\ndef ramp(x, factor):\n    return factor * torch.clamp(x, min=0)\n"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in that folder, which finds the handout's own checker first."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"HOME": str(folder)}
    command = [sys.executable, "-B", "-m", "autograder", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def released(kit: Path, *edits: tuple[str, str]) -> bytes:
    """The zip, after these changes of what is graded."""
    for right, wrong in edits:
        toy_kit.change(kit / "fixtures/toy/items.toml", right, wrong)
    if edits:
        regenerate_into(kit / "fixtures/toy", kit / "fixtures/toy")
    return zip_bytes(handout_files(find_assignment(kit)), "toy")


def unpacked(data: bytes, target: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(target)
    return target / "toy"


def files_in(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != RECORD)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def begun(kit: Path, tmp_path: Path) -> Path:
    """A student's folder, with work in the module, notes in the text and a file of the student's own."""
    folder = unpacked(released(kit), tmp_path / "student")
    (folder / "toy.py").write_text(WORK)
    (folder / "README.md").write_text("my notes\n")
    (folder / "ideas.txt").write_text("mine\n")
    return folder


THEIRS = ("toy.py", "README.md", "ideas.txt")


@pytest.mark.parametrize("lost", ["", RECORD, "autograder"])
def test_update_renews_all_but_what_the_student_changed(kit: Path, begun: Path, lost: str) -> None:
    (kit / "solution/toy/experiments.py").write_text("print('newer')\n")
    (begun / "autograder" / "ours_once.py").write_text("")
    record = {**json.loads((begun / "autograder" / RECORD).read_bytes()), "ours_once.py": EMPTY}
    (begun / "autograder" / RECORD).write_text(json.dumps(record))
    if lost:
        shutil.rmtree(begun / lost) if (begun / lost).is_dir() else (begun / lost).unlink()
    mine = {name: (begun / name).read_bytes() for name in THEIRS}
    newer = unpacked(released(kit, MORE_POINTS), begun / "newer")
    done = run(newer, "update", "../..")
    assert done.returncode == 0, done.stderr
    assert "Kept as you have them:" in done.stdout
    assert "toy.py" in done.stdout
    made = files_in(newer)
    kept = {
        *THEIRS,
        *(["experiments.py", "toy.ipynb"] if lost == RECORD else []),
    }  # of which nothing says whose it is then
    shutil.rmtree(newer.parent)
    now = files_in(begun)
    assert {name: now[name] for name in THEIRS} == mine
    assert {name: data for name, data in now.items() if name not in kept} == {
        name: data for name, data in made.items() if name not in kept
    }
    assert find_assignment(begun).max_points == 20


@pytest.mark.parametrize("target", [".", "nowhere", "course"])
def test_update_of_no_older_handout_is_refused(kit: Path, begun: Path, target: str) -> None:
    done = run(begun, "update", str(kit) if target == "course" else target)
    assert done.returncode == 2
    assert "is no older handout of toy" in done.stderr


@pytest.mark.parametrize("place", ["", *COPIES])
def test_handout_without_its_records_renews_nothing(kit: Path, begun: Path, place: str) -> None:
    before, newer = files_in(begun), unpacked(released(kit), begun / "newer")
    (newer / place / RECORD).unlink()
    done = run(newer, "update", "../..")
    assert (done.returncode, "is not whole" in done.stderr) == (2, True)
    assert {name: data for name, data in files_in(begun).items() if not name.startswith("newer")} == before


@pytest.mark.long
def test_renamed_function_is_named_to_whoever_has_the_old(kit: Path, begun: Path) -> None:
    old_names = (RENAMED.format("bump", "ramp"), RENAMED.format("bump-values", "ramp-values"))
    newer = unpacked(released(kit, ("hidden = []\n", "hidden = []\n" + "".join(old_names))), begun / "newer")
    (begun / "toy.py").write_text(WORK.replace("ramp", "bump"))
    assert run(newer, "update", "../..").returncode == 0
    done = run(begun, "check", "--item", "bump-values")
    assert done.stdout.count("ramp-values") > 0
    told = "ramp is not defined. Since 2027-03-12 bump is called ramp: rename yours."
    assert told in " ".join(done.stdout.split())
    (begun / "toy.py").write_text(WORK)
    assert run(begun, "check", "--item", "ramp-values").returncode == 0
