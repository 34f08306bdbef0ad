"""The course that `new --example` makes, made once for all tests that begin with it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import KIT
from toy_kit import made_once


def example_course(factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder in which `new --example` ran, and nothing else, and what it printed; copy it to write there."""
    made = made_once("example-course", _make, factory)
    return made / "course", (made / "said.txt").read_text(encoding="utf-8")


def _make(folder: Path) -> Path:
    (folder / "course").mkdir()
    environment = {**os.environ, "COLUMNS": "120", "PYTHONPATH": str(KIT)}
    command = [sys.executable, "-m", "autograder", "new", "--example"]
    done = subprocess.run(command, cwd=folder / "course", env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    return folder
