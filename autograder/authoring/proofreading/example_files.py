"""What is wrong in the two files that counterexamples come from, rows.toml and counterexamples.py, where they are."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.authoring.proofreading.fault import Fault, likely
from autograder.authoring.proofreading.names import Known
from autograder.authoring.proofreading.text_files import read_toml
from autograder.grading.counterexamples.drawing import DRAWS
from autograder.grading.counterexamples.rows import FILE as ROWS
from autograder.grading.counterexamples.rows import PLACEHOLDER

TABLES = ("DRAWS", "LEFT_OUT")
KEYS = ("inputs", "call")


def example_faults(folder: Path, items: Collection[str], probes: Collection[str], known: Known) -> Iterator[Fault]:
    """All that is wrong in the two files; `known` is what the solution has."""
    yield from _rows_faults(folder / ROWS, probes, known)
    yield from _drawing_faults(folder / f"{DRAWS}.py", items)


def _rows_faults(path: Path, probes: Collection[str], known: Known) -> Iterator[Fault]:
    if not path.is_file():
        return
    found = read_toml(path, '[probe], inputs = ["x"], call = "f({x})"')
    if isinstance(found, Fault):
        yield found
        return
    text, data = found
    for name, entry in data.items():
        line = next((n for n, row in enumerate(text.splitlines(), 1) if row.strip() == f"[{name}]"), 1)
        for what, right in _about_rows(name, entry, probes, known):
            yield Fault(path, line, what, right)


def _about_rows(name: str, entry: Any, probes: Collection[str], known: Known) -> Iterator[tuple[str, str]]:
    there = (*probes, *known.functions)
    if name not in there:
        yield f"{name!r} is neither a probe nor a function of the solution", likely(name, there)
        return
    if not isinstance(entry, Mapping):
        yield f"{name} is {entry!r}", f"a table: [{name}]"
        return
    for key in entry.keys() - set(KEYS):
        yield f"{name} has the unknown entry {key!r}", likely(key, KEYS)
    inputs, call = entry.get("inputs"), entry.get("call")
    if not isinstance(inputs, list) or not all(isinstance(one, str) for one in inputs):
        yield f"inputs of {name} is {inputs!r}", 'a list of text: inputs = ["x"]'
        return
    if not isinstance(call, str):
        yield f"call of {name} is {call!r}", f'text: call = "{name}({{x}})"'
        return
    if name in probes:
        return  # what its cases are given, it alone knows
    arguments = known.functions[name].names
    for one in dict.fromkeys((*inputs, *PLACEHOLDER.findall(call))):
        if one not in arguments:
            yield f"{name} has no argument {one!r}", likely(one, arguments)


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
