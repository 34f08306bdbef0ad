"""What is wrong in the two files that counterexamples come from, rows.toml and counterexamples.py, where they are."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from autograder.authoring.proofreading.fault import Fault, likely
from autograder.authoring.proofreading.text_files import read_toml
from autograder.grading.counterexamples.drawing import DRAWS
from autograder.grading.counterexamples.rows import FILE as ROWS

TABLES = ("DRAWS", "LEFT_OUT")


class Rows(BaseModel):
    """How the rows of a probe's answer are called, one table of rows.toml."""

    model_config = ConfigDict(extra="forbid", strict=True)
    inputs: list[str]
    call: str


def example_faults(folder: Path, items: Collection[str], there: Collection[str]) -> Iterator[Fault]:
    """All that is wrong in the two files; `there` are probes and functions of the solution."""
    yield from _rows_faults(folder / ROWS, there)
    yield from _drawing_faults(folder / f"{DRAWS}.py", items)


def _rows_faults(path: Path, there: Collection[str]) -> Iterator[Fault]:
    if not path.is_file():
        return
    found = read_toml(path, '[probe], inputs = ["x"], call = "f({x})"')
    if isinstance(found, Fault):
        yield found
        return
    text, data = found
    for name, entry in data.items():
        line = next((n for n, row in enumerate(text.splitlines(), 1) if row.strip() == f"[{name}]"), 1)
        for what, right in _about_rows(name, entry, there):
            yield Fault(path, line, what, right)


def _about_rows(name: str, entry: Any, there: Collection[str]) -> Iterator[tuple[str, str]]:
    if name not in there:
        yield f"{name!r} is neither a probe nor a function of the solution", likely(name, there)
        return
    try:
        Rows.model_validate(entry)
    except ValidationError as error:
        for one in error.errors():
            yield f"{'.'.join([name, *map(str, one['loc'])])}: {one['msg']}", 'inputs = ["x"], call = "f({x})"'


def _drawing_faults(path: Path, items: Collection[str]) -> Iterator[Fault]:
    """Keys of DRAWS and LEFT_OUT that are no items; a file that cannot be parsed, too."""
    if not path.is_file():
        return
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        yield Fault(path, line, f"not Python: {getattr(error, 'msg', error)}", "a file that can be imported")
        return
    for table, key in _keys(tree):
        if key.value not in items:
            yield Fault(path, key.lineno, f"{table} has the item {key.value!r}", likely(str(key.value), items))


def _keys(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """The keys that stand in DRAWS and LEFT_OUT as they are written, with the table's name."""
    for node in tree.body:
        targets = (
            [node.target] if isinstance(node, ast.AnnAssign) else node.targets if isinstance(node, ast.Assign) else []
        )
        name = next((one.id for one in targets if isinstance(one, ast.Name) and one.id in TABLES), "")
        if name and isinstance(getattr(node, "value", None), ast.Dict):
            keys = node.value.keys  # type: ignore[attr-defined]
            yield from ((name, key) for key in keys if isinstance(key, ast.Constant))
