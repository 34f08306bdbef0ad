"""The module as students get it: each answer replaced by `raise NotImplementedError`."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from autograder.authoring.handout.source_notebook import BEGIN, END
from autograder.authoring.marks import without_marks
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import ReleaseError


def stub(source: str, assignment: Assignment) -> str:
    """The module with each answer replaced by `raise NotImplementedError("<function>")`.

    Raises ReleaseError where markers are not in pairs, stand outside a function, or leave a graded function whole.
    """
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    kept: list[str] = []
    replaced: set[str] = set()
    inside = False
    for position, line in enumerate(source.splitlines(keepends=True), start=1):
        marker = line.strip()
        if marker in (BEGIN, END) and inside == (marker == BEGIN):
            raise ReleaseError(f"Line {position} of {assignment.module}.py: {marker!r} has no partner.")
        if marker == BEGIN:
            name = _function_at(functions, position, assignment.module)
            replaced.add(name)
            kept.append(f'{line[: -len(line.lstrip())]}raise NotImplementedError("{name}")\n')
        if not inside and marker != BEGIN:
            kept.append(line)
        inside = marker == BEGIN or (inside and marker != END)
    if inside:
        raise ReleaseError(f"{assignment.module}.py ends inside an answer: {END!r} is missing.")
    if whole := [name for name in assignment.functions if name not in replaced]:
        raise ReleaseError(f"No answer is marked in {', '.join(whole)}: put {BEGIN!r} and {END!r} around it.")
    return without_marks("".join(kept))


def _function_at(functions: Iterable[ast.FunctionDef], line: int, module: str) -> str:
    around = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    if not around:
        raise ReleaseError(f"Line {line} of {module}.py: an answer stands outside every function.")
    return max(around, key=lambda node: node.lineno).name
