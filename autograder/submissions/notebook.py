"""A notebook → Python text: its definitions, and all that they need; no experiments. And its answers in words.

Nothing is executed. Outputs are thrown away before the notebook is parsed, and every size has a cap. What is wrong with
a notebook is a value, `Text.problem`.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autograder.submissions.selection import (
    chosen_definitions,
    defined_twice,
    definitions,
    is_kept,
    loops_left_out,
    needed_names,
    source_of,
    with_changes,
)
from autograder.submissions.statements import CodeCell, Statement, statements_of
from autograder.submissions.syntax import MAX_CODE

MAX_JSON_TOKENS = 2_000_000  # bounds the memory that parsing a notebook takes
MAX_CELLS = 5_000
MAX_WORDS = 20_000  # characters of one answer in words
_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[\[{,]', re.DOTALL)
_CONFLICT = re.compile(r"^(?:<<<<<<<|>>>>>>>)", re.MULTILINE)


@dataclass(frozen=True)
class Text:
    """What a file says: Python text, or what is wrong with it as the end of a sentence."""

    source: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()


def notebook_text(text: str, module: str, graded: Sequence[str]) -> Text:
    """What a notebook defines, without its experiments: the graded functions and all that they need."""
    cells = _code_cells(text)
    if isinstance(cells, Text):
        return cells
    statements: list[Statement] = []
    notes: list[str] = []
    for number, cell in enumerate(cells, 1):
        found = statements_of(number, cell.code, module)
        if isinstance(found, str):
            notes.append(found)
        else:
            statements += found
    statements, chosen = chosen_definitions(with_changes(statements), cells, graded)
    notes += chosen
    roots = frozenset(graded) or definitions(statements)
    names = needed_names(statements, roots)
    notes += [*defined_twice(statements, graded), *loops_left_out(statements, names)]
    if not any(is_kept(statement, roots) for statement in statements):
        return Text(problem="defines no function to grade in its code cells.", notes=tuple(notes))
    return Text(source_of(statements, names), notes=tuple(notes))


def words_of(text: str) -> dict[str, str]:
    """What stands in the text cells that nbgrader has given a name, by that name; nothing of a broken notebook."""
    raw = _json(text)
    found = [] if isinstance(raw, Text) else _raw_cells(raw) or []
    cells = [cell for cell in found if isinstance(cell, dict) and cell.get("cell_type") == "markdown"]
    words = {name: _joined(cell.get("source")) for cell in cells if (name := _grade_id(cell))}
    return {name: source[:MAX_WORDS].encode(errors="replace").decode() for name, source in words.items()}


def _code_cells(text: str) -> list[CodeCell] | Text:
    """The code of every cell, "" for a cell that is not code."""
    raw = _json(text)
    if isinstance(raw, Text):
        return raw
    cells = _raw_cells(raw)
    if cells is None:
        return Text(problem="is not a notebook: it has no list of cells.")
    codes = [_code(cell) for cell in cells]
    if len(codes) > MAX_CELLS or sum(map(len, codes)) > MAX_CODE:
        limits = f"{MAX_CELLS} cells and {MAX_CODE // 1024} KiB of code"
        return Text(problem=f"is too large: more than {limits} are not graded.")
    return [CodeCell(code, _grade_id(cell)) for code, cell in zip(codes, cells, strict=True)]


def _grade_id(cell: Any) -> str:
    """The name that nbgrader has given to a cell; "" where it has none."""
    for key in ("metadata", "nbgrader", "grade_id"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, str) else ""


def _json(text: str) -> Any:
    """What the JSON says, or as a Text what is wrong with it."""
    if len(text) > MAX_JSON_TOKENS:
        tokens = itertools.islice(_JSON_TOKEN.finditer(text), MAX_JSON_TOKENS, None)
        if next(tokens, None) is not None:
            return Text(problem="holds too much: clear the outputs of all cells and save it again.")
    try:
        return json.loads(text)
    except RecursionError:
        return Text(problem="is not a notebook: its JSON is nested too deeply.")
    except ValueError as error:
        return Text(problem=_not_json(text, error))


def _not_json(text: str, error: ValueError) -> str:
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        return f"holds a merge conflict at line {line}: resolve it, and save the notebook in Jupyter."
    where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"is not a notebook: its JSON is broken{where}. Save it again in Jupyter."


def _raw_cells(raw: Any) -> list[Any] | None:
    """The cells as they stand in the file, of format 4 or 3; None where it has none."""
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("cells"), list):
        return list(raw["cells"])
    if isinstance(sheets := raw.get("worksheets"), list):
        return [cell for sheet in sheets if isinstance(sheet, dict) for cell in _listed(sheet.get("cells"))]
    return None


def _code(cell: Any) -> str:
    """A cell's code, which format 3 calls `input`; "" where it is not code."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return ""
    return _joined(cell["source"] if "source" in cell else cell.get("input"))


def _joined(lines: Any) -> str:
    """A cell's text, which is stored whole or by lines."""
    return lines if isinstance(lines, str) else "".join(line for line in _listed(lines) if isinstance(line, str))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
