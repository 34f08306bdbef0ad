"""Python text as a syntax tree; it is never run."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Collection, Mapping

MAX_CODE = 256 * 1024  # characters of code in a whole notebook
MAX_UNTRIED = 32 * 1024  # characters that are parsed here at once: what takes long grows with the square of them
SECONDS = 3  # of processor time, to parse what is longer
MEMORY = 1_536 * 2**20  # bytes
MAX_WRITTEN = 4_000  # characters of one function, as an example
MAX_STATEMENTS = 20_000
MAX_SCOPES = 4_000  # functions, classes, comprehensions: Python compares the code of each with that of all others
SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
TRIAL = """
import ast, sys, warnings
warnings.simplefilter("ignore")
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
    resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (ImportError, ValueError):
    pass
try:
    compile(ast.parse(sys.stdin.buffer.read().decode("utf-8", "surrogatepass")), "<cell>", "exec", dont_inherit=True)
except MemoryError:
    raise
except Exception:
    pass
"""
UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast, compile and symtable raise


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`, checked as far as Python checks without running it.

    Raises one of UNPARSABLE, ValueError also where so much is in it that this would take many seconds; and OSError
    where it is long and the machine has no process left to try it in, which is no fault of the text.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is the student's, not the grader's
        tree = tree_of(text)
        kinds = Counter(map(type, ast.walk(tree)))
        statements = sum(count for kind, count in kinds.items() if issubclass(kind, ast.stmt))
        if statements > MAX_STATEMENTS or sum(kinds[kind] for kind in SCOPES) > MAX_SCOPES:
            raise ValueError("more than anybody writes")
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


def tree_of(text: str) -> ast.Module:
    """The syntax tree of `text`; raises as `parsed` does, ValueError also where to parse it takes too much.

    Some kinds of text take Python time and memory with the square of their length: a name of many parts that is
    imported (a quarter of a megabyte of it takes 15 GB), a long f-string, a call with thousands of keywords.
    """
    if len(text) > MAX_UNTRIED and not _is_cheap(text):
        raise ValueError("more than anybody writes")
    return ast.parse(text)


@functools.lru_cache(maxsize=8)
def _is_cheap(text: str) -> bool:
    """Whether a process of its own, which may take so much and no more, parses and compiles it or says why not.

    Raises OSError where no process can be started.
    """
    command = [sys.executable, "-I", "-S", "-c", TRIAL, str(SECONDS), str(MEMORY)]
    encoded = text.encode("utf-8", "surrogatepass")
    try:
        done = subprocess.run(command, input=encoded, capture_output=True, timeout=20 * SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


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
    except (*UNPARSABLE, OSError):
        return {}
    lines = re.split("\r\n|\r|\n", source)
    functions = [one for one in statements if isinstance(one, ast.FunctionDef) and one.name in names]
    return {one.name: _written(one, lines) for one in functions}


@functools.lru_cache(maxsize=4)  # each item that fails asks for two texts, one of them the same for a whole class
def defaults_of(source: str) -> Mapping[str, Mapping[str, str]]:
    """Of each top-level function the parameters whose default is a literal, each as it is written in the shortest way.

    Of what cannot be parsed, nothing.
    """
    if len(source) > MAX_CODE:
        return {}
    try:
        statements = parsed(source).body
    except (*UNPARSABLE, OSError):
        return {}
    found = {one.name: _defaults(one.args) for one in statements if isinstance(one, ast.FunctionDef)}
    return {name: defaults for name, defaults in found.items() if defaults}


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
        return text
    except (*UNPARSABLE, TypeError):
        return ""


def _written(function: ast.FunctionDef, lines: list[str]) -> str:
    """Its lines but those of the docstring, cut where there are too many."""
    begin = min([function.lineno, *(one.lineno for one in function.decorator_list)]) - 1
    end, kept = function.end_lineno or function.lineno, lines[begin : function.end_lineno]
    if ast.get_docstring(function, clean=False) is not None and len(function.body) > 1:
        docstring = function.body[0]
        kept = [*lines[begin : docstring.lineno - 1], *lines[docstring.end_lineno or end : end]]
    text = "\n".join(line.rstrip() for line in kept).rstrip() + "\n"
    return text if len(text) <= MAX_WRITTEN else text[:MAX_WRITTEN] + "…\n"
