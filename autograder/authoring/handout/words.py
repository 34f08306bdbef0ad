"""A student's answers in words, question by question, also from cells that no longer say whose answer they are.

nbgrader knows a cell by its metadata, which editors drop and students leave behind: they write below the question, in a
cell of their own. So a question's cell is known by its name, else by its id; what stands in cells without a name below
a question belongs to it; and where a question has neither, it is shown all text without a name. A person marks it: what
was not found by its name is named in `unnamed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autograder.authoring.handout.source_notebook import TEXT_STUB, Notebook
from autograder.submissions.notebook import MAX_WORDS, WrittenCell

BELOW = "(from a cell without nbgrader's name, below the question)"
ANYWHERE = "(no cell bears the name of this question: this is all text in cells without nbgrader's name)"
ASKED = "-question"  # behind the name of a question, the locked cell that asks it

Pictures = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class Words:
    """Answers in words by the names of their questions.

    pictures   question → name → its type → base64, as a notebook keeps what was pasted into an answer
    unnamed    questions of which something stood in cells without a name
    """

    written: Mapping[str, str] = field(default_factory=dict)
    pictures: Mapping[str, Pictures] = field(default_factory=dict)
    unnamed: tuple[str, ...] = ()


def is_answer(text: str) -> bool:
    """Whether somebody has written something."""
    return text.strip() not in ("", TEXT_STUB)


def questions(template: Notebook) -> dict[str, str]:
    """The cells that a person marks, and what they hold before anybody answers."""
    roles = {cell["id"]: cell["metadata"].get("nbgrader", {}) for cell in template["cells"]}
    asked = {name for name, role in roles.items() if role.get("grade") and role.get("solution")}
    return {cell["id"]: cell["source"] for cell in template["cells"] if cell["id"] in asked}


def words_in(cells: Sequence[WrittenCell], template: Notebook) -> Words:
    """The answers in a student's notebook.

    cells      of the notebook that was handed in
    template   the notebook as students get it
    """
    asked = questions(template)
    given = {cell["id"]: cell["source"].strip() for cell in template["cells"]}
    places = [_name_of(cell, given) for cell in cells]
    known = sorted(zip(places, cells, strict=True), key=lambda one: bool(one[1].name))
    own = {name: cell for name, cell in known if name in asked}  # of two, the one that bears the name
    below, elsewhere = _loose(cells, places, asked)
    written: dict[str, str] = {}
    pictures: dict[str, Pictures] = {}
    unnamed = []
    for name in asked:
        cell, added, note = own.get(name), below[name], BELOW
        if cell is None and not added:
            added, note = elsewhere, ANYWHERE
        first = [cell] if cell is not None and (is_answer(cell.source) or not added) else []
        parts = [*(one.source for one in first), *([note] if added else []), *(one.source for one in added)]
        if parts:
            written[name] = "\n\n".join(parts)[:MAX_WORDS]
        if pasted := {at: kinds for one in (*first, *added) for at, kinds in one.pictures.items()}:
            pictures[name] = pasted
        if added or any(not one.name and is_answer(one.source) for one in first):
            unnamed.append(name)
    return Words(written, pictures, tuple(unnamed))


def _name_of(cell: WrittenCell, given: Mapping[str, str]) -> str:
    """Which of the cells that were given it is, by its name, its id or its text; "" where it is the student's own."""
    if cell.name or cell.id in given:
        return cell.name or cell.id
    return next((name for name, source in given.items() if source == cell.source.strip() != TEXT_STUB), "")


def _loose(
    cells: Sequence[WrittenCell], places: Sequence[str], asked: Mapping[str, str]
) -> tuple[dict[str, list[WrittenCell]], list[WrittenCell]]:
    """Text in cells of the student's own: below which question it stands, and what stands below none."""
    below: dict[str, list[WrittenCell]] = {name: [] for name in asked}
    elsewhere: list[WrittenCell] = []
    question = ""
    for cell, place in zip(cells, places, strict=True):
        if place:
            question = place if place in asked else place.removesuffix(ASKED)
        elif cell.kind in ("markdown", "raw") and is_answer(cell.source):
            (below[question] if question in asked else elsewhere).append(cell)
    return below, elsewhere
