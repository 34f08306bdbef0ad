"""The source notebook and the students': generated, current, valid for nbgrader, and nothing given away."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader_course import WITH_NOTEBOOK
from places import KIT
from toy_kit import toy_assignment

from autograder.authoring.catalogue import without_marks
from autograder.authoring.handout.notebook import (
    CODE_STUB,
    FIRST,
    TEXT_STUB,
    Extras,
    Notebook,
    checksum,
    read_extras,
    released,
    source_notebook,
    to_bytes,
)
from autograder.authoring.handout.release import notebook_of, refuse_leaks
from autograder.grading.assignment import Assignment, find_assignment
from autograder.vocabulary.errors import ReleaseError

ROLE = {"cell_type", "grade", "grade_id", "locked", "schema_version", "solution", "task"}


@pytest.fixture(scope="module", params=WITH_NOTEBOOK)
def assignment(request: pytest.FixtureRequest) -> Assignment:
    """Every assignment that has a notebook.toml, one after another."""
    return find_assignment(KIT, request.param)


@pytest.fixture(scope="module")
def notebook(assignment: Assignment) -> Notebook:
    return notebook_of(assignment)


@pytest.fixture(scope="module")
def handed_out(notebook: Notebook) -> Notebook:
    return released(notebook)


def cells(notebook: Notebook) -> dict[str, dict[str, Any]]:
    return {cell["id"]: cell for cell in notebook["cells"]}


def role(cell: dict[str, Any]) -> dict[str, Any]:
    return dict(cell["metadata"].get("nbgrader", {}))


# What is committed


def test_the_committed_notebooks_are_what_the_generator_makes(assignment: Assignment, notebook: Notebook) -> None:
    name = f"{assignment.module}.ipynb"
    assert (assignment.solution / name).read_bytes() == to_bytes(notebook)
    assert (assignment.handout / name).read_bytes() == to_bytes(released(notebook))


# What is in it


def test_each_item_has_a_locked_test_cell_of_its_name_and_points(assignment: Assignment, notebook: Notebook) -> None:
    found = cells(notebook)
    for item in assignment.items:
        cell = found[item.id]
        assert role(cell) | {"points": item.points} == role(cell)
        assert role(cell)["grade"]
        assert role(cell)["locked"]
        assert not role(cell)["solution"]
        assert f'score("{assignment.name}", "{item.id}")' in cell["source"]
    graded = [cell for cell in notebook["cells"] if role(cell).get("grade") and not role(cell)["solution"]]
    assert [cell["id"] for cell in graded] == [item.id for item in assignment.items]
    assert sum(role(cell)["points"] for cell in graded) == assignment.max_points


def test_each_function_has_its_answer_cell_above_its_test_cells(assignment: Assignment, notebook: Notebook) -> None:
    names = [cell["id"] for cell in notebook["cells"]]
    solution = without_marks((assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8"))
    for function in assignment.functions:
        items = [item.id for item in assignment.items if item.function == function]
        start = names.index(function)
        assert names[start + 1 : start + 1 + len(items)] == items
        source = cells(notebook)[function]["source"]
        assert source in solution
        [defined] = ast.parse(source).body
        assert isinstance(defined, ast.FunctionDef)
        assert defined.name == function


def test_the_prose_is_the_assignment_text_without_what_concerns_the_module(
    assignment: Assignment, notebook: Notebook
) -> None:
    prose = "\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    text = (assignment.solution / "README.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## .*", text, re.MULTILINE)) - set(re.findall(r"^## .*", prose, re.MULTILINE))
    assert headings == {f"## {title}" for title in read_extras(assignment).without}
    assert {"## How to check your work", "## How to hand in"} <= headings
    for line in ("python -m autograder check", "python experiments.py", "<!--", "-->"):
        assert line not in prose


def test_it_is_valid_for_jupyter_and_for_nbgrader(notebook: Notebook, handed_out: Notebook) -> None:
    for made in (notebook, handed_out):
        nbformat.validate(nbformat.from_dict(made))
        assert to_bytes(made) == (nbformat.writes(nbformat.from_dict(made)) + "\n").encode()
        for cell in made["cells"]:
            if found := role(cell):
                assert found.keys() - {"points", "checksum"} == ROLE
                assert found["schema_version"] == 3
                assert found["grade_id"] == cell["id"]
                assert found["cell_type"] == cell["cell_type"]
                assert ("points" in found) == found["grade"]


def test_checksums_are_those_that_nbgrader_computes(notebook: Notebook, handed_out: Notebook) -> None:
    utils = pytest.importorskip("nbgrader.utils", reason="the extra nbgrader is not installed")
    for made in (notebook, handed_out):
        for cell in made["cells"]:
            if role(cell):
                assert checksum(cell) == utils.compute_checksum(nbformat.from_dict(cell))
                assert role(cell).get("checksum", checksum(cell)) == checksum(cell)


# What students get


def test_students_get_stubs_and_locked_cells(handed_out: Notebook, assignment: Assignment) -> None:
    for function in assignment.functions:
        [defined] = ast.parse(cells(handed_out)[function]["source"]).body
        assert isinstance(defined, ast.FunctionDef)
        assert [ast.unparse(node) for node in defined.body[1:]] == [CODE_STUB]
    for cell in handed_out["cells"]:
        if role(cell):
            assert cell["metadata"]["deletable"] is False
            assert cell["metadata"].get("editable", True) is role(cell)["solution"]
            assert "checksum" in role(cell)
        if role(cell).get("grade") and role(cell)["solution"]:
            assert cell["source"] == TEXT_STUB


def test_release_refuses_a_notebook_that_holds_an_answer_or_a_guide(assignment: Assignment, notebook: Notebook) -> None:
    from autograder.grading.fixtures import Fixtures

    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    fixtures, guides = Fixtures((), {}, ""), read_extras(assignment).guides
    refuse_leaks({"n.ipynb": to_bytes(released(notebook))}, solution, fixtures, guides)
    with pytest.raises(ReleaseError, match="line of the solution"):
        refuse_leaks({"n.ipynb": to_bytes(notebook)}, solution, fixtures)
    marked, asked = released(notebook), read_extras(assignment).question[0].id
    cells(marked)[asked]["source"] = cells(notebook)[asked]["source"]
    with pytest.raises(ReleaseError, match="line of the solution"):
        refuse_leaks({"n.ipynb": to_bytes(marked)}, solution, fixtures, guides)


# Other assignments


@pytest.fixture
def toy(kit: Path) -> Assignment:
    return toy_assignment(kit)


def test_a_notebook_needs_no_extras_and_no_section_for_a_function(toy: Assignment) -> None:
    made = notebook_of(toy)
    names = [cell["id"] for cell in made["cells"]]
    assert names == ["text-title", FIRST, "text-rules", "imports", "ramp", "ramp-values", "shift", "shift-values"]
    assert 'score("toy", "ramp-values")' in cells(made)["ramp-values"]["source"]


def test_given_code_between_functions_comes_before_the_one_below(toy: Assignment) -> None:
    items = tuple(dataclasses.replace(toy.items[0], id=f"{name}-item", function=name) for name in "fg")
    two = dataclasses.replace(toy, items=items)
    module = "import math\n\ndef f():\n    return 1\n\nBETWEEN = 2\n\n@staticmethod\ndef g():\n    return BETWEEN\n"
    made = source_notebook(two, "# Title\n", module, Extras())
    names = [cell["id"] for cell in made["cells"]]
    assert names == ["text-title", FIRST, "imports", "f", "f-item", "before-g", "g", "g-item"]
    assert cells(made)["before-g"]["source"] == "BETWEEN = 2"
    assert cells(made)["g"]["source"].startswith("@staticmethod")


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("without = [", "cannot be used"),
        ("[[cell]]\nafter = 'Points'\nid = 'a'\nkind = 'code'", "cell.0.source"),
        ("[[question]]\nafter = 'Points'\nid = 'q'\npoints = 5\nquestion = '?'", "question.0.guide"),
        ("without = ['Nowhere']", "leaves out 'Nowhere', a section"),
        ("[[cell]]\nafter = 'Nowhere'\nid = 'lost'\nkind = 'text'\nsource = 'x'", "puts lost after a section"),
        ("[[cell]]\nafter = 'ramp'\nid = 'shift'\nkind = 'code'\nsource = 'x'", "two cells called 'shift'"),
    ],
)
def test_extras_that_cannot_be_used_are_refused_by_name(toy: Assignment, written: str, complaint: str) -> None:
    (toy.solution / "notebook.toml").write_text(written)
    with pytest.raises(ReleaseError, match=complaint):
        notebook_of(toy)
