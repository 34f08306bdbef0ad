"""A student in Jupyter, with nothing but the handout: the whole notebook in a kernel, and JupyterLab in a browser."""

from __future__ import annotations

import json
import resource
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from all_assignments import handout_of
from nbgrader_course import NAME, cell, read_notebook, run, solved
from places import KIT

from autograder.grading.assignment import find_assignment

pytestmark = pytest.mark.skipif(
    not find_spec("nbgrader"), reason="the extra nbgrader, which brings Jupyter, is not installed"
)


@pytest.fixture
def student(tmp_path: Path) -> Path:
    """The handout, where nothing else of the kit is."""
    return handout_of(NAME, tmp_path / NAME)


@pytest.mark.long
def test_solved_notebook_runs_in_under_a_minute(student: Path, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    for name in ("solution", "handout"):
        shutil.copytree(KIT / name, kit / name)
    (student / f"{NAME}.ipynb").write_text(json.dumps(solved(kit)))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(student, "nbconvert", "--to", "notebook", "--execute", "--inplace", f"{NAME}.ipynb", kit=False)
    done = read_notebook(student / f"{NAME}.ipynb")
    for item in find_assignment(KIT, NAME).items:
        stream, value = cell(done, item.id)["outputs"]
        assert "".join(stream["text"]).startswith("PASS")
        assert float("".join(value["data"]["text/plain"])) == item.points
    for name, reward in (("rewards", 2.667), ("centered", 3.333), ("normalized", 3.333)):
        picture, text = cell(done, f"experiment-{name}")["outputs"]
        assert picture["data"]["image/png"]
        assert f"ends at {reward:.3f}" in "".join(text["text"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 60  # whatever else the machine does
