"""What students must not get: lines of answers, names and numbers of hidden cases. One that holds them is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import numpy as np

from autograder.authoring.handout.source_notebook import BEGIN, END
from autograder.authoring.marks import without_marks
from autograder.grading.cases import Case
from autograder.grading.fixtures import Fixtures
from autograder.vocabulary.errors import ReleaseError

LONG_LINE = 24  # shorter lines of code, such as `with torch.no_grad():`, may stand anywhere


def refuse_leaks(files: Mapping[str, bytes], solution: str, fixtures: Fixtures, guides: str = "") -> None:
    """Raise ReleaseError where a file holds a line of an answer or of a guide, or name or numbers of a hidden case."""
    answers = answer_lines(solution) | {line for line in map(str.strip, guides.splitlines()) if len(line) >= LONG_LINE}
    hidden = [case for case in fixtures.cases if case.visibility == "hidden"]
    secret = secret_arrays(fixtures)
    for name, data in files.items():
        lines = (line.strip() for line in _shown_text(name, data).splitlines())
        if found := next((line for line in lines if line in answers), ""):
            raise ReleaseError(f"The handout's {name} would hold a line of the solution: {found!r}.")
        if leaked := next((case.id for case in hidden if _names(case, data)), ""):
            raise ReleaseError(f"The handout's {name} would name the hidden case {leaked}.")
        if any(array in data for array in secret):
            raise ReleaseError(f"The handout's {name} would hold numbers of a hidden case.")


def _shown_text(name: str, data: bytes) -> str:
    """The text that a file shows: of a notebook that of its cells, without JSON's quotes around each line."""
    text = data.decode("utf-8", "replace")
    if not name.endswith(".ipynb"):
        return text
    return "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])


def _names(case: Case, data: bytes) -> bool:
    name = case.id.encode()
    return name in data and re.search(rb"(?<![\w-])" + re.escape(name) + rb"(?![\w-])", data) is not None


def answer_lines(solution: str) -> set[str]:
    """The lines that stand in an answer and nowhere else in the solution, without their margins."""
    inside = False
    lines: set[str] = set()
    outside: set[str] = set()
    for line in without_marks(solution).splitlines():
        marker = line.strip()
        inside = marker == BEGIN or (inside and marker != END)
        (lines if inside else outside).add(marker)
    return {line for line in lines - outside if len(line) >= LONG_LINE and line != BEGIN}


def secret_arrays(fixtures: Fixtures) -> set[bytes]:
    """The bytes of every array of four or more different floats that hidden cases hold and public ones do not.

    Arrays of whole numbers, or of fewer different ones, are left out: those of two runs may well be the same.
    """
    public, hidden = (
        {
            np.ascontiguousarray(array).tobytes()
            for case in fixtures.cases
            if case.visibility == visibility
            for array in (*case.inputs.values(), *(e.array for e in case.expected if e.array is not None))
            if array.dtype.kind == "f" and (array != np.round(array)).any() and np.unique(array).size >= 4
        }
        for visibility in ("public", "hidden")
    )
    return hidden - public
