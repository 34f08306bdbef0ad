"""`export nbgrader` where there is no gradebook yet: the verb itself. Its whole road is in tests/platforms."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from places import KIT
from toy_kit import toy_kit


def test_the_export_to_nbgrader_makes_nothing_before_it_refuses(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    course = toy_kit(tmp_path / "course", tmp_path_factory)
    shutil.rmtree(course / "autograder")
    shutil.copy(KIT / "solution" / "nbgrader_config.py", course / "solution")
    (course / "class" / "ada").mkdir(parents=True)
    (course / "class" / "ada" / "toy.py").write_text("def ramp(x, factor): ...\n", encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", "-m", "autograder", *arguments]
        return subprocess.run(command, cwd=course, capture_output=True, text=True)

    assert run("grade", "class", "--out", "grades", "--jobs", "1").returncode == 0
    before = sorted(course.rglob("*"))
    done = run("export", "nbgrader", "grades")
    assert done.returncode == 2
    assert "There is no gradebook" in done.stderr
    assert "run `nbgrader generate_assignment toy` first" in done.stderr
    assert sorted(course.rglob("*")) == before
