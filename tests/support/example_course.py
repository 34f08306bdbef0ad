"""The course that `new --example` makes, made once for all tests that begin with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from in_process import autograder_in_process
from toy_kit import made_once


def example_course(factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which `new --example` ran, and nothing else, and what it printed; copy it to write there."""
    made = made_once("example-course", _make, factory)
    return made / "course", (made / "said.txt").read_text(encoding="utf-8")


def _make(folder: Path) -> Path:
    (folder / "course").mkdir()
    done = autograder_in_process(folder / "course", "new", "--example")
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    return folder
