"""Verify: whether stored fixtures are what their generator makes, on a toy assignment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import toy_kit
from toy_kit import autograder, change, flip_a_byte, store_version, toy_assignment

from autograder.build import versions
from autograder.errors import FixtureError
from autograder.verify import verify


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_fixtures_as_they_were_made_are_the_same_bytes_and_are_left_alone(kit: Path) -> None:
    before = contents(kit)
    found = verify(toy_assignment(kit))
    assert (found.files, found.different, found.versions) == (4, (), {})
    assert contents(kit) == before
    assert not [name for name, module in sys.modules.items() if str(kit) in (getattr(module, "__file__", "") or "")]


@pytest.mark.parametrize("name", ["hidden/ramp-values.safetensors", "public/shift-values.safetensors", "probes.py"])
def test_a_flipped_byte_is_refused_with_the_name_of_the_file_before_anything_is_made(kit: Path, name: str) -> None:
    flip_a_byte(kit / "fixtures" / "toy" / name)
    (kit / "fixtures" / "toy" / "cases.py").write_text("raise RuntimeError('the generator ran')\n")
    with pytest.raises(FixtureError, match=rf"{name} is not the file that .*manifest\.json lists"):
        verify(toy_assignment(kit))


def test_a_changed_generator_an_unknown_file_and_another_version_are_all_told(kit: Path) -> None:
    folder = kit / "fixtures" / "toy"
    change(folder / "cases.py", '("ramp-large", "three rows", (3, 5))', '("ramp-large", "three rows", (3, 4))')
    store_version(kit, "torch", "1.2.3")
    (folder / "public" / "left-over.safetensors").write_bytes(b"")
    done = autograder(kit, "fixtures", "verify")
    assert done.returncode == 3
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"torch was 1.2.3 when they were made, and is {versions()['torch']} here.",
        "3 of 5 files would be made otherwise now:",
        "  hidden/ramp-values.safetensors  not in numbers alone",
        "  manifest.json",
        "  public/left-over.safetensors",
        "Run `autograder fixtures regenerate` if cases, oracle, probes, solution or mistakes were meant to change.",
    ]


def test_a_refusal_of_the_build_comes_out_of_its_process_as_the_sentence_that_it_is(kit: Path) -> None:
    change(kit / "fixtures" / "toy" / "oracle.py", "value + factor", "value - factor")
    before = contents(kit / "fixtures")
    done = autograder(kit, "fixtures", "regenerate")
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("autograder: shift-small: the solution does not pass its own case")
    assert contents(kit / "fixtures") == before
