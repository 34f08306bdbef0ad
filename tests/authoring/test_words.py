"""Answers in words, whatever an editor or a student did to the cells that nbgrader knows them by."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader_course import cell, solved
from places import KIT

from autograder.authoring.handout.notebook import ANYWHERE, BELOW, Words, released, words_in
from autograder.authoring.handout.release import notebook_of
from autograder.grading.assignment import find_assignment
from autograder.submissions.reading import written_cells
from autograder.submissions.submission import Candidate

NAME = "policy_gradient"
QUESTION, OTHER = "question-first-clipped-loss", "question-spread"
ANSWER = "The ratio is 1 there."

Notebook = dict[str, Any]
Read = Callable[..., Words]


@pytest.fixture(scope="module")
def template() -> Notebook:
    return released(notebook_of(find_assignment(KIT, NAME)))


@pytest.fixture(scope="module")
def notebook() -> Notebook:
    return solved(KIT)


@pytest.fixture
def words(template: Notebook, notebook: Notebook, tmp_path: Path) -> Read:
    """What is read as answers once a student's notebook was changed."""

    def read(*changes: Callable[[Notebook], object]) -> Words:
        changed = copy.deepcopy(notebook)
        for change in changes:
            change(changed)
        path = tmp_path / f"{NAME}.ipynb"
        path.write_text(json.dumps(changed), encoding="utf-8")
        return words_in(written_cells(Candidate("ana", path, path.name), NAME), template)

    return read


def own(text: str, kind: str = "markdown") -> dict[str, Any]:
    return {"cell_type": kind, "metadata": {}, "source": text, "id": "mine"}


def answer(notebook: Notebook) -> None:
    cell(notebook, QUESTION)["source"] = ANSWER


def put_below(notebook: Notebook, name: str, *cells: dict[str, Any]) -> None:
    at = notebook["cells"].index(cell(notebook, name)) + 1
    notebook["cells"][at:at] = cells


def without_metadata(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        one["metadata"] = {}


def without_ids(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 4
    for one in notebook["cells"]:
        one.pop("id")


def below(*texts: str) -> Callable[[Notebook], object]:
    return lambda notebook: put_below(notebook, QUESTION, *map(own, texts))


@pytest.mark.parametrize(
    ("changes", "written", "is_unnamed"),
    [
        ((), "*Your answer.*", False),
        ((answer,), ANSWER, False),
        ((answer, without_metadata), ANSWER, True),  # known by its id
        ((answer, without_metadata, without_ids), f"{BELOW}\n\n{ANSWER}", True),  # by the question above it
        ((below(ANSWER),), f"{BELOW}\n\n{ANSWER}", True),
        ((answer, below("And 0 too.")), f"{ANSWER}\n\n{BELOW}\n\nAnd 0 too.", True),
    ],
)
def test_answer_is_known_by_name_or_id_or_place(
    words: Read, changes: tuple[Callable[[Notebook], object], ...], written: str, is_unnamed: bool
) -> None:
    found = words(*changes)
    assert found.written[QUESTION] == written
    assert found.unnamed == ((QUESTION,) if is_unnamed else ())
    assert found.written.get(OTHER, "*Your answer.*") == "*Your answer.*"


def test_where_question_and_cell_are_gone_all_text_without_a_name_is_shown(words: Read) -> None:
    def change(notebook: Notebook) -> None:
        for name in (QUESTION, f"{QUESTION}-question"):
            notebook["cells"].remove(cell(notebook, name))
        notebook["cells"].insert(0, own("Question 2: the ratio."))

    found = words(change)
    assert found.written[QUESTION] == f"{ANYWHERE}\n\nQuestion 2: the ratio."
    assert found.unnamed == (QUESTION,)


def test_where_a_cell_is_gone_and_nothing_else_was_written_there_is_no_answer(words: Read) -> None:
    found = words(lambda notebook: notebook["cells"].remove(cell(notebook, QUESTION)))
    assert QUESTION not in found.written
    assert found.unnamed == ()


@pytest.mark.parametrize("kind", ["raw", "code"])
def test_an_answer_whose_cell_was_made_another_kind_of_cell_is_read(words: Read, kind: str) -> None:
    found = words(lambda notebook: cell(notebook, QUESTION).update(cell_type=kind, source=ANSWER))
    assert found.written[QUESTION] == ANSWER


def test_notes_elsewhere_are_nobodys_answer(words: Read) -> None:
    found = words(lambda notebook: notebook["cells"].insert(0, own("My notes.")))
    assert not any("My notes." in text for text in found.written.values())
    assert found.unnamed == ()


def test_a_picture_pasted_below_a_question_goes_with_it(words: Read) -> None:
    picture = {"image.png": {"image/png": "iVBORw0KGgo="}}
    pasted = own("![x](attachment:image.png)") | {"attachments": picture}
    assert words(lambda notebook: put_below(notebook, QUESTION, pasted)).pictures == {QUESTION: picture}


def test_an_answer_of_many_cells_has_a_cap(words: Read) -> None:
    found = words(lambda notebook: put_below(notebook, QUESTION, *[own("x" * 15_000)] * 3))
    assert len(found.written[QUESTION]) == 20_000


@pytest.mark.parametrize("broken", [{"id": ["x"]}, {"id": {}}, {"metadata": None}, {"source": 3}, {"attachments": [1]}])
def test_cells_that_are_none_are_read_as_nothing(words: Read, broken: dict[str, Any]) -> None:
    found = words(answer, lambda notebook: notebook["cells"].insert(0, own("") | broken))
    assert found.written[QUESTION] == ANSWER
