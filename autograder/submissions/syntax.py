"""Python text as a syntax tree; it is never run.

Some kinds of text take Python time and memory with the square of their length: a name of many parts that is imported, a
long f-string, thousands of functions. What is handed in is parsed where that may fail: see `limited`.
"""

from __future__ import annotations

import ast
import functools
import re
import warnings
from collections.abc import Collection, Mapping

from autograder.submissions.submission import Function, Submission

MAX_WRITTEN = 4_000  # characters of one function, as an example
MAX_DEFAULT = 1_000  # characters of one default
BREAK = re.compile(r"\r\n|\r|\n")
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast, compile and symtable raise


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`, checked as far as Python checks without running it; raises one of UNPARSABLE."""
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


@functools.lru_cache(maxsize=4)  # what was handed out is the same for a whole class
def functions_of(source: str) -> Mapping[str, str]:
    """The top-level functions of `source` by name, without docstrings, comments and positions."""
    functions = [statement for statement in parsed(source).body if isinstance(statement, ast.FunctionDef)]
    for function in functions:
        if ast.get_docstring(function, clean=False) is not None:
            del function.body[0]
    return {function.name: "" if is_stub(function) else ast.dump(function) for function in functions}


@functools.lru_cache(maxsize=4)  # likewise
def outline(source: str, names: tuple[str, ...] = ()) -> Mapping[str, Function]:
    """The top-level functions of these names, or all; none of what cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            statements = ast.parse(source).body
    except UNPARSABLE:
        return {}
    functions = [node for node in statements if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {node.name: _outlined(node) for node in functions if not names or node.name in names}


def outlined(submission: Submission) -> Mapping[str, Function]:
    """The functions of a submission: those that reading it has found, or all of a text that was never handed in."""
    return outline(submission.source) if submission.functions is None else submission.functions


def _outlined(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    says = node.body[0] if ast.get_docstring(node, clean=False) is not None and len(node.body) > 1 else None
    docstring = (says.lineno, says.end_lineno or says.lineno) if says else ()
    return Function(first, node.lineno, node.end_lineno or node.lineno, docstring, _defaults(node.args))


def _defaults(arguments: ast.arguments) -> dict[str, str]:
    places = [*arguments.posonlyargs, *arguments.args]
    last = zip(places[len(places) - len(arguments.defaults) :], arguments.defaults, strict=True)
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    literals = {place.arg: _literal(default) for place, default in (*last, *named) if default is not None}
    return {name: text for name, text in literals.items() if text}


def _literal(node: ast.expr) -> str:
    try:
        text = repr(ast.literal_eval(node))
        ast.literal_eval(text)  # an infinity and an ellipsis are literals, and what is written for them is none
        return text if len(text) <= MAX_DEFAULT else ""
    except (*UNPARSABLE, TypeError):
        return ""


def written(submission: Submission, names: Collection[str]) -> dict[str, str]:
    """The functions of these names as they are written, without docstrings, each cut where it is long."""
    lines = BREAK.split(submission.source)
    return {name: _written(found, lines) for name, found in outlined(submission).items() if name in names}


def _written(function: Function, lines: list[str]) -> str:
    kept = lines[function.first - 1 : function.last]
    if function.docstring:
        begin, end = function.docstring
        kept = [*lines[function.first - 1 : begin - 1], *lines[end : function.last]]
    text = "\n".join(line.rstrip() for line in kept).rstrip() + "\n"
    return text if len(text) <= MAX_WRITTEN else text[:MAX_WRITTEN] + "…\n"
