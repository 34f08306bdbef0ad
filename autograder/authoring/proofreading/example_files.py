"""What is wrong in counterexamples.py, where there is one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from autograder.authoring.proofreading.fault import Fault, likely

TABLES = ("DRAWS", "LEFT_OUT")


def example_faults(path: Path, items: Collection[str]) -> Iterator[Fault]:
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
