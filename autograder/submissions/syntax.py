"""Python text as a syntax tree; it is never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection

MAX_CODE = 256 * 1024  # characters of code in a whole notebook
MAX_WRITTEN = 4_000  # characters of one function, as an example
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast, compile and symtable raise


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`, checked as far as Python checks without running it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is the student's, not the grader's
        tree = ast.parse(text)
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


def is_stub(node: ast.AST) -> bool:
    """Whether a function does nothing but raise NotImplementedError, as all are handed out."""
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


def functions_of(source: str) -> dict[str, str]:
    """The top-level functions of `source` by name, without docstrings, comments and positions."""
    if len(source) > MAX_CODE:
        raise ValueError("longer than any handout")
    functions = [statement for statement in parsed(source).body if isinstance(statement, ast.FunctionDef)]
    for function in functions:
        if ast.get_docstring(function, clean=False) is not None:
            del function.body[0]
    return {function.name: "" if is_stub(function) else ast.dump(function) for function in functions}


def written(source: str, names: Collection[str]) -> dict[str, str]:
    """The top-level functions of these names as they are written, without docstrings; none of what cannot be parsed."""
    if not names or len(source) > MAX_CODE:
        return {}
    try:
        statements = parsed(source).body
    except UNPARSABLE:
        return {}
    lines = re.split("\r\n|\r|\n", source)
    functions = [one for one in statements if isinstance(one, ast.FunctionDef) and one.name in names]
    return {one.name: _written(one, lines) for one in functions}


def _written(function: ast.FunctionDef, lines: list[str]) -> str:
    """Its lines but those of the docstring, cut where there are too many."""
    begin = min([function.lineno, *(one.lineno for one in function.decorator_list)]) - 1
    end, kept = function.end_lineno or function.lineno, lines[begin : function.end_lineno]
    if ast.get_docstring(function, clean=False) is not None and len(function.body) > 1:
        docstring = function.body[0]
        kept = [*lines[begin : docstring.lineno - 1], *lines[docstring.end_lineno or end : end]]
    text = "\n".join(line.rstrip() for line in kept).rstrip() + "\n"
    return text if len(text) <= MAX_WRITTEN else text[:MAX_WRITTEN] + "…\n"
