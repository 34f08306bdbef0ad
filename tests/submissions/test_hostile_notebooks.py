"""Broken and hostile notebooks of the real assignment: a clear verdict each, and nothing but answers counts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import KIT

from autograder.authoring.handout.notebook import Notebook, released
from autograder.authoring.handout.release import notebook_of
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.finding import find
from autograder.submissions.reading import read, written_cells
from autograder.vocabulary.report import Report

Edit = Callable[[Notebook], Any]


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return find_assignment(KIT, "policy_gradient")


@pytest.fixture(scope="module")
def grade(assignment: Assignment, sandbox: Sandbox) -> Callable[[Path], Report]:
    """The public cases of one function, on what is handed in."""
    grader = Grader.of(assignment, read_fixtures(assignment, hidden=False))
    items = [item for item in assignment.items if item.function in ("compute_kl_penalty", "compute_deltas")]

    def grade(folder: Path) -> Report:
        [candidate] = find([folder], assignment.module)
        written_cells(candidate, assignment.module)  # of the most broken notebook, too
        return grader.grade(read(candidate, assignment.module, assignment.untouched_source()), sandbox, items)

    return grade


def hand_in(folder: Path, text: str | bytes) -> None:
    (folder / "ada").mkdir()
    (folder / "ada" / "policy_gradient.ipynb").write_bytes(text if isinstance(text, bytes) else text.encode())


def forge_every_output(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        if one["cell_type"] == "code":
            value = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
            one["outputs"] = [{**value, "data": {"text/plain": "4.0"}}]


def empty_every_test_cell(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        role = one["metadata"].get("nbgrader", {})
        if role.get("grade") and not role["solution"]:
            one["source"], role["points"], role["locked"] = str(role["points"]), 1000, False


def replace_the_checker(notebook: Notebook) -> None:
    source = "import autograder.checking.live\nautograder.checking.live.score = lambda *_: 100.0"
    bare = {"cell_type": "code", "id": "mine", "metadata": {}, "outputs": [], "execution_count": None}
    notebook["cells"].insert(0, {**bare, "source": source})


@pytest.mark.parametrize("edit", [forge_every_output, empty_every_test_cell, replace_the_checker])
def test_notebook_without_answers_earns_nothing_by_forgery(
    assignment: Assignment, grade: Callable[[Path], Report], tmp_path: Path, edit: Edit
) -> None:
    notebook = released(notebook_of(assignment))
    edit(notebook)
    hand_in(tmp_path, json.dumps(notebook))
    report = grade(tmp_path)
    assert report.points == 0
    assert {item.verdict for item in report.items} == {"missing"}
