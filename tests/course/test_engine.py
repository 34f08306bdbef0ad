"""What a grade depends on besides submission and fixtures, as one name for it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import KIT

from autograder.authoring.fixtures.stored_set import versions
from autograder.course.results import DECIDING, grading_key, kit


def digest_of(folder: Path) -> str:
    code = "import json; from autograder.course.results import kit; print(json.dumps(kit()['kit']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The engine as a wheel would install it: somewhere else, without what Python made of it."""
    shutil.copytree(KIT / "autograder", tmp_path / "autograder", ignore=shutil.ignore_patterns("__pycache__", "*.md"))
    return tmp_path


def test_the_same_files_elsewhere_have_the_same_name(copy: Path) -> None:
    assert digest_of(copy) == kit()["kit"]
    (copy / "autograder/course/scratch.py").write_text("x = 1")  # which grades nothing
    assert digest_of(copy) == kit()["kit"]


@pytest.mark.parametrize("package", DECIDING)
def test_an_edit_of_what_grades_is_another_engine(copy: Path, package: str) -> None:
    path = next(path for path in sorted((copy / "autograder" / package).rglob("*.py")) if path.stat().st_size)
    path.write_text(path.read_text() + "# a comment\n")
    assert digest_of(copy) != kit()["kit"]


def test_versions_and_given_modules_are_part_of_the_key() -> None:
    assert kit().items() >= versions().items()
    assert versions().keys() == {"python", "torch", "numpy", "safetensors", "einops"}
    assert grading_key({"task": "a"}) == grading_key({"task": "a"})
    assert len({grading_key({}), grading_key({"task": "a"}), grading_key({"task": "b"})}) == 3
