"""A handout outlives an nbgrader command that empties it and then fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import toy_kit
from toy_kit import toy_assignment

from autograder.platforms.nbgrader import keeping


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("words", [["toy"], ["--assignment", "--CourseDirectory.assignment_id=toy"], []])
def test_handout_of_a_failing_command_is_put_back(
    kit: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    toy = toy_assignment(kit)
    before = contents(kit / "handout")
    restore = keeping([toy], ["generate_assignment", *words])
    shutil.rmtree(toy.handout)
    restore()
    assert contents(kit / "handout") == before
    assert "handout/toy is what it was" in capsys.readouterr().err


def test_handout_that_was_made_stays_alone(kit: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy = toy_assignment(kit)
    restore = keeping([toy], ["generate_assignment", "toy"])
    (toy.handout / "toy.ipynb").write_text("another")
    restore()
    assert (toy.handout / "toy.ipynb").read_text() == "another"
    assert [path.name for path in (kit / "handout").iterdir()] == ["toy"]
    assert capsys.readouterr().err == ""
