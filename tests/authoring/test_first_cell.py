"""The first cell of a notebook, wherever it is opened: in its folder, beside an uploaded zip, alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from all_assignments import handout_bytes
from places import KIT
from processes import python_without_kit

from autograder.authoring.handout.notebook import FIRST, first_cell, released
from autograder.authoring.handout.release import notebook_of, zip_bytes
from autograder.checking.handout import write_handout
from autograder.grading.assignment import find_assignment

NAME = "policy_gradient"
AFTER = "\nimport os, sys; print('in', os.getcwd()); import autograder.checking.live; print('found')\n"


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return handout_bytes(NAME)


def run(folder: Path, home: Path | None = None) -> str:
    """What the cell prints where this kit is not installed, and whether a test cell could go on."""
    done = python_without_kit(folder, f"exec({first_cell(NAME) + AFTER!r})", HOME=str(home or folder))
    return done.stdout + done.stderr


def test_in_its_folder_it_says_nothing_and_stays(files: dict[str, bytes], tmp_path: Path) -> None:
    write_handout(files, tmp_path / NAME)
    assert run(tmp_path / NAME) == f"in {tmp_path / NAME}\nfound\n"


def test_beside_the_folder_it_goes_there(files: dict[str, bytes], tmp_path: Path) -> None:
    write_handout(files, tmp_path / NAME)
    assert run(tmp_path) == f"in {tmp_path / NAME}\nfound\n"


@pytest.mark.long
@pytest.mark.parametrize("name", [f"{NAME}.zip", f"{NAME} (1).zip"])
def test_an_uploaded_zip_is_unpacked(files: dict[str, bytes], tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(zip_bytes(files, NAME))
    assert run(tmp_path) == f"in {tmp_path / NAME}\nfound\n"


def test_a_folder_that_is_mounted_deeper_is_found(files: dict[str, bytes], tmp_path: Path) -> None:
    write_handout(files, tmp_path / "home" / "course" / NAME)
    (tmp_path / "elsewhere").mkdir()
    assert run(tmp_path / "elsewhere", tmp_path / "home").startswith(f"in {tmp_path / 'home' / 'course' / NAME}\n")


def test_alone_it_says_in_words_what_is_missing(tmp_path: Path) -> None:
    said = run(tmp_path)
    assert said.startswith("This notebook needs the rest of the handout. Upload policy_gradient.zip beside it")
    assert "ModuleNotFoundError" in said  # what the test cells would say is explained above


@pytest.mark.parametrize("name", ["policy_gradient", "policy_gradient_theory", "grpo_language_model"])
def test_it_is_the_first_code_of_every_notebook_and_stays_with_students(name: str) -> None:
    cells = released(notebook_of(find_assignment(KIT, name)))["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert (first["id"], first["source"]) == (FIRST, first_cell(name))
