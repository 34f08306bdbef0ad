"""Solution → nbgrader's source notebook → the students' notebook → their answers in words.

Both notebooks are generated: same text, same bytes. The prose is README.md, section by section; answers and given code
come from the module; what else a notebook needs (experiments, questions for a person to mark) stands in notebook.toml:

    without = ["How to check your work"]      sections of README.md that the notebook does without

    [[cell]]                                  text or code that only the notebook has
    after = "Experiments"                     the section or function that it follows
    id = "learn"
    kind = "code"                             or "text"
    source = '''…'''

    [[question]]                              answered in words, marked by hand
    after = "compute_loss"
    id = "why-not-zero"
    points = 5
    question = '''…'''
    guide = '''…'''                           how to mark it: for staff, never in what students get
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import jinja2
from pydantic import BaseModel, ConfigDict, Field

from autograder.grading.assignment import PACKAGES, SLUG, Assignment
from autograder.submissions.notebook import MAX_WORDS, WrittenCell
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.text import number

FIRST = "first-run-this"
ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).resolve().parents[1] / "templates"),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
)  # nothing is escaped: these are no pages
LOOKED_FOR = ("torch", "einops")  # of an assignment's packages, what is not there as a matter of course


def template(file: str, **values: object) -> str:
    """Fill in a template of what an author or students get."""
    return ENVIRONMENT.get_template(f"{file}.j2").render(values)


def first_cell(assignment: str, packages: Sequence[str] = PACKAGES) -> str:
    """The cell's text for this assignment, in these packages; it prints nothing where all is there."""
    looked_for = [*(name for name in LOOKED_FOR if name in packages), "safetensors"]
    shown = ", ".join(f'"{name}"' for name in looked_for)
    packages_shown = f"({shown}{',' if len(looked_for) == 1 else ''})"
    return template("first_cell.py", name=assignment, packages=packages_shown).rstrip()


BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
EXTRAS = "notebook.toml"
CODE_STUB, TEXT_STUB = "raise NotImplementedError()", "*Your answer.*"
RULES_END = "Check your work"  # from here on, a module's docstring speaks of the command line
LEFT_OUT = re.compile(r"<!-- not in the notebook -->.*?<!-- in the notebook again -->\n*", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
TEST_CELL = """\
# {item.id}: {item.title} ({points})
from autograder.checking.live import score

score("{assignment}", "{item.id}")"""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}

ASKED = "-question"  # behind the name of a question, the locked cell that asks it

Cell = dict[str, Any]
Notebook = dict[str, Any]
Text = Annotated[str, Field(pattern=r"\S")]


class Table(BaseModel):
    """A table of notebook.toml, in which every key is known."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    after: str
    id: Annotated[str, Field(pattern=f"^{SLUG.pattern}$")]


class Extra(Table):
    """A [[cell]]."""

    kind: Literal["code", "text"]
    source: Text

    @property
    def cells(self) -> list[Cell]:
        """The cell."""
        text = self.source.strip()
        return [_locked(self.id, text) if self.kind == "code" else _prose(self.id, text)]


class Question(Table):
    """A [[question]]."""

    points: Annotated[float, Field(gt=0)]
    question: Text
    guide: Text

    @property
    def cells(self) -> list[Cell]:
        """The question, locked, and the cell for its answer, which holds the guide."""
        asked = f"**Question, {number(self.points)} points.** {self.question.strip()}"
        guide = f"{BEGIN}\n**Marking guide.**\n\n{self.guide.strip()}\n{END}"
        answer = _cell("markdown", self.id, guide, solution=True, points=self.points)
        return [_locked(f"{self.id}{ASKED}", asked, "markdown"), answer]


class Extras(BaseModel):
    """What stands in notebook.toml."""

    model_config = Table.model_config

    without: list[str] = []
    cell: list[Extra] = []
    question: list[Question] = []

    @property
    def guides(self) -> str:
        """All that only those who mark may read."""
        return "\n".join(question.guide for question in self.question)


def read_extras(assignment: Assignment) -> Extras:
    """Read notebook.toml; nothing where there is none."""
    path = assignment.solution / EXTRAS
    try:
        return Extras.model_validate(tomllib.loads(path.read_text(encoding="utf-8"))) if path.is_file() else Extras()
    except ValueError as error:  # of pydantic, too
        raise ReleaseError(f"{path} cannot be used: {error}.") from error


def source_notebook(assignment: Assignment, readme: str, module: str, extras: Extras) -> Notebook:
    """The notebook that staff edit nothing in: prose, answers, test cells, experiments, questions with their guides.

    readme, module    their text; the readme with its table of points
    """
    rules, opening, answers = _module_cells(module, assignment)
    if lacking := [name for name in assignment.functions if name not in answers]:
        raise ReleaseError(f"{assignment.module}.py does not define {lacking[0]}.")
    places: dict[str, list[Cell]] = {}  # section of README.md, the first without a title, or function → its cells
    for section in re.split(r"^(?=## )", COMMENT.sub("", LEFT_OUT.sub("", readme)), flags=re.MULTILINE):
        head, text = section.partition("\n")[0], section.strip()
        title = head.removeprefix("## ").strip(" `") if head.startswith("## ") else ""
        places[title] = [*places.get(title, ()), _prose(title or "title", text), *answers.get(title, ())]
    places |= {name: answers[name] for name in assignment.functions if name not in places}
    for title in extras.without:
        if not title or places.pop(title, None) is None:
            raise ReleaseError(f"{EXTRAS} leaves out {title!r}, a section that README.md does not have.")
    added: list[Extra | Question] = [*extras.cell, *extras.question]
    for extra in added:
        if extra.after not in places:
            raise ReleaseError(f"{EXTRAS} puts {extra.id} after a section that README.md does not have.")
        places[extra.after] = [*places[extra.after], *extra.cells]
    first = [_locked(FIRST, first_cell(assignment.name, assignment.packages))]
    first += [_prose("rules", rules)] if rules else []  # for all functions
    places[""] += first + ([_locked("imports", opening)] if opening else [])
    cells = [cell for section in places.values() for cell in section]
    ids = [cell["id"] for cell in cells]
    if twice := [name for name in ids if ids.count(name) > 1]:
        raise ReleaseError(f"The notebook would have two cells called {twice[0]!r}: rename one of them.")
    metadata = {"kernelspec": dict(KERNEL), "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def released(notebook: Notebook) -> Notebook:
    """What students get: answers and guides replaced by stubs, cells locked; what generate_assignment makes of it."""
    made = copy.deepcopy(notebook)
    for cell in made["cells"]:
        role = cell["metadata"].get("nbgrader")
        if role is None:
            continue
        cell["metadata"]["deletable"] = False
        if not role["solution"]:
            cell["metadata"]["editable"] = False
        instead = CODE_STUB if cell["cell_type"] == "code" else TEXT_STUB  # at the margin of its marker
        cell["source"] = "\n".join(
            line.replace(BEGIN, instead) if place == "begin" else line
            for line, place in marked_lines(cell["source"])
            if place != "inside"
        )
        role["checksum"] = checksum(cell)
    return made


def to_bytes(notebook: Notebook) -> bytes:
    """The notebook as a file, in the bytes that nbformat writes: its import costs more than all else here."""
    lines = {"cells": [cell | {"source": cell["source"].splitlines(keepends=True)} for cell in notebook["cells"]]}
    return json.dumps(notebook | lines, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n"


def checksum(cell: Cell) -> str:
    """What nbgrader knows an unchanged cell by: an MD5 of its text and its role."""
    role = cell["metadata"]["nbgrader"]
    parts = [cell["source"], cell["cell_type"], *(str(role[key]) for key in ("grade", "solution", "locked"))]
    parts += [role["grade_id"], *([str(float(role["points"]))] if role["grade"] else [])]
    return hashlib.md5("".join(parts).encode(), usedforsecurity=False).hexdigest()


# Cells


def _module_cells(module: str, assignment: Assignment) -> tuple[str, str, dict[str, list[Cell]]]:
    """Return the rules of the docstring, the code before the first graded function, and the cells of each function.

    A function's cells are given code that stands before it, its answer, and a test for each of its items.
    """
    tree, lines = ast.parse(module), module.splitlines(keepends=True)
    docstring, opening, cells = ast.get_docstring(tree) or "", "", dict[str, list[Cell]]()
    position = tree.body[0].end_lineno or 0 if docstring else 0
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name not in assignment.functions:
            continue
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        given = "".join(lines[position : first - 1]).strip()
        position = node.end_lineno or 0
        while position < len(lines) and lines[position].strip() == END:  # a comment: no syntax tree holds it
            position += 1
        opening = opening if cells else given
        own = cells[node.name] = [_locked(f"before-{node.name}", given)] if cells and given else []
        own.append(_cell("code", node.name, "".join(lines[first - 1 : position]).rstrip(), solution=True))
        for item in (item for item in assignment.items if item.function == node.name):
            points = "1 point" if item.points == 1 else f"{number(item.points)} points"
            test = TEST_CELL.format(item=item, points=points, assignment=assignment.name)
            own.append(_cell("code", item.id, test, locked=True, points=item.points))
    return docstring.partition(RULES_END)[0].strip(), opening, cells


def _prose(name: str, text: str) -> Cell:
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return {"cell_type": "markdown", "id": f"text-{slug}"[:64], "metadata": {}, "source": text}


def _locked(grade_id: str, source: str, kind: str = "code") -> Cell:
    return _cell(kind, grade_id, source, locked=True)


def _cell(
    kind: str, grade_id: str, source: str, *, solution: bool = False, locked: bool = False, points: float | None = None
) -> Cell:
    """A cell with nbgrader's metadata; one that has points is graded."""
    role: dict[str, Any] = {"cell_type": kind, "grade": points is not None, "grade_id": grade_id, "locked": locked}
    role |= {"schema_version": 3, "solution": solution, "task": False}
    if points is not None:
        role["points"] = int(points) if float(points).is_integer() else points
    cell: Cell = {"cell_type": kind, "id": grade_id, "metadata": {"nbgrader": role}, "source": source}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    if not solution:  # an answer that equals its checksum is one that nobody gave
        role["checksum"] = checksum(cell)
    return cell


def marked_lines(source: str) -> Iterator[tuple[str, str]]:
    """Yield each line with where it stands: at the `begin` of an answer, `inside` one, its end too, or `outside`."""
    inside = False
    for line in source.split("\n"):
        marker = line.strip()
        yield line, "begin" if marker == BEGIN else "inside" if inside else "outside"
        inside = marker == BEGIN or (inside and marker != END)


# Answers in words. nbgrader knows a cell by its metadata, which editors drop and students leave behind: they write
# below the question, in a cell of their own. So a question's cell is known by its name, else by its id; what stands in
# cells without a name below a question belongs to it; and where a question has neither, it is shown all text without a
# name. A person marks it: what was not found by its name is named in `unnamed`.

BELOW = "(from a cell without nbgrader's name, below the question)"
ANYWHERE = "(no cell bears the name of this question: this is all text in cells without nbgrader's name)"

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

    @property
    def answered(self) -> tuple[str, ...]:
        """The questions that have an answer, in words or as a picture."""
        return tuple(name for name, text in self.written.items() if is_answer(text) or name in self.pictures)


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
    own: dict[str, WrittenCell] = {}  # of two cells of a question, the one that bears its name
    below: dict[str, list[WrittenCell]] = {name: [] for name in ("", *asked)}  # text in cells of the student's own
    question = ""
    for cell in cells:
        source = cell.source.strip()
        place = cell.name or (cell.id if cell.id in given else "")
        place = place or next((name for name, text in given.items() if text == source != TEXT_STUB), "")
        if place in asked and (cell.name or not own.get(place, cell).name):
            own[place] = cell
        if place:
            question = next((name for name in (place, place.removesuffix(ASKED)) if name in asked), "")
        elif cell.kind in ("markdown", "raw") and is_answer(source):
            below[question].append(cell)
    words, pictures, unnamed = dict[str, str](), dict[str, Pictures](), []
    for name in asked:
        answer, added, note = own.get(name), below[name], BELOW
        if answer is None and not added:
            added, note = below[""], ANYWHERE
        first = [answer] if answer is not None and (is_answer(answer.source) or not added) else []
        if parts := [*(one.source for one in first), *([note] if added else []), *(one.source for one in added)]:
            words[name] = "\n\n".join(parts)[:MAX_WORDS]
        if pasted := {at: kinds for one in (*first, *added) for at, kinds in one.pictures.items()}:
            pictures[name] = pasted
        if added or any(not one.name and is_answer(one.source) for one in first):
            unnamed.append(name)
    return Words(words, pictures, tuple(unnamed))
