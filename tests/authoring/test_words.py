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
ANSWER, UNANSWERED = "The ratio is 1 there.", "*Your answer.*"

Notebook = dict[str, Any]
Change = Callable[[Notebook], object]
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

    def read(*changes: Change) -> Words:
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


def put_below(*cells: dict[str, Any]) -> Change:
    def change(notebook: Notebook) -> None:
        at = notebook["cells"].index(cell(notebook, QUESTION)) + 1
        notebook["cells"][at:at] = copy.deepcopy(cells)

    return change


def put_first(made: dict[str, Any]) -> Change:
    return lambda notebook: notebook["cells"].insert(0, made)


def without(*names: str) -> Change:
    def change(notebook: Notebook) -> None:
        for name in names:
            notebook["cells"].remove(cell(notebook, name))

    return change


def without_metadata(notebook: Notebook) -> None:
    for one in notebook["cells"]:
        one["metadata"] = {}


def without_ids(notebook: Notebook) -> None:
    notebook["nbformat_minor"] = 4
    for one in notebook["cells"]:
        one.pop("id")


def another_kind(kind: str) -> Change:
    return lambda notebook: cell(notebook, QUESTION).update(cell_type=kind, source=ANSWER)


NO_CELLS: tuple[dict[str, Any], ...] = (
    {"id": ["x"]}, {"id": {}}, {"metadata": None}, {"source": 3}, {"attachments": [1]},
)  # fmt: skip
ABOVE = "Question 2: the ratio."


@pytest.mark.parametrize(
    ("changes", "written", "is_unnamed"),
    [
        ((), UNANSWERED, False),
        ((answer,), ANSWER, False),
        ((answer, without_metadata), ANSWER, True),  # known by its id
        ((answer, without_metadata, without_ids), f"{BELOW}\n\n{ANSWER}", True),  # by the question above it
        ((put_below(own(ANSWER)),), f"{BELOW}\n\n{ANSWER}", True),
        ((answer, put_below(own("And 0 too."))), f"{ANSWER}\n\n{BELOW}\n\nAnd 0 too.", True),
        ((put_below(*[own("x" * 15_000)] * 3),), f"{BELOW}\n\n{'x' * 15_000}\n\n{'x' * 5_000}"[:20_000], True),
        # Where question and cell are gone all text without a name is shown, and notes elsewhere are nobody's answer.
        ((without(QUESTION, f"{QUESTION}-question"), put_first(own(ABOVE))), f"{ANYWHERE}\n\n{ABOVE}", True),
        ((without(QUESTION),), None, False),
        ((put_first(own("My notes.")),), UNANSWERED, False),
        *(((another_kind(kind),), ANSWER, False) for kind in ("raw", "code")),
        *(((answer, put_first(own("") | broken)), ANSWER, False) for broken in NO_CELLS),
    ],
)
def test_answer_is_known_by_name_or_id_or_place(
    words: Read, changes: tuple[Change, ...], written: str | None, is_unnamed: bool
) -> None:
    found = words(*changes)
    assert found.written.get(QUESTION) == written
    assert found.unnamed == ((QUESTION,) if is_unnamed else ())
    assert found.written.get(OTHER, UNANSWERED) == UNANSWERED


def test_a_picture_pasted_below_a_question_goes_with_it(words: Read) -> None:
    picture = {"image.png": {"image/png": "iVBORw0KGgo="}}
    pasted = own("![x](attachment:image.png)") | {"attachments": picture}
    assert words(put_below(pasted)).pictures == {QUESTION: picture}
