"""Read a solution file: its functions, and what signatures, annotations and rows of docstrings say of arguments.

    x         float[batch dim]     a row of a docstring
    mode      "mean" or "max"
    returns   float[batch]

Nothing is read from sentences.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from autograder.authoring.exam.habits import words_compared
from autograder.authoring.handout.notebook import BEGIN, END
from autograder.vocabulary.errors import UsageError

Values = Literal["torch", "numpy", "python"]
GUIDE = 'fixtures/README.md, "What can be graded"'
PART = r"(float|u?int|bool|str|function)\d*\b(?:\[([^\]]*)\])?"
QUOTED = re.compile(r"[\"'](\w[\w .-]*)[\"']")
ANNOTATIONS: Mapping[str, str] = {
    "float": "float", "int": "int", "bool": "bool", "str": "str", "Callable": "function",
    "list[str]": "texts", "dict[str, int]": "table", "dict[str, float]": "table",
}  # fmt: skip
NUMBERS = {"list[float]": "float", "list[int]": "int", "list[bool]": "bool"}
ARRAY = re.compile(r"ndarray|NDArray|ArrayLike|Tensor|Array|^list$")
OF_DEFAULT = {bool: "bool", int: "int", float: "float", str: "str"}
UNSAID = ("entry",)  # the axes of an array of which nothing says any


@dataclass(frozen=True)
class Argument:
    """One argument.

    kind      float, int, bool, str, function, texts (a list), table (a dictionary); "" where nothing says
    axes      of an array, `UNSAID` also where nothing says whether it is one; None of what is none
    default   its default as a literal, in a tuple; () where it has none, or another one
    words     what a text may be
    takes     how many arguments a function takes
    unsaid    what nothing says of it, as a phrase; "" where all is said
    """

    name: str
    kind: str
    axes: tuple[str, ...] | None = None
    default: tuple[Any, ...] = ()
    words: tuple[str, ...] = ()
    takes: int = 1
    unsaid: str = ""
    by_name: bool = False

    @property
    def shape(self) -> str:
        """Its shape as a `Function` declares it."""
        if self.axes is not None:
            return f"{self.kind}[{' '.join(self.axes)}]"
        if self.kind == "str":
            return "word" if self.words else "other"
        return self.kind if self.kind in ("float", "int", "bool", "function") else "other"


@dataclass(frozen=True)
class SourceFunction:
    """A function of the file.

    returns   the axes of each part that comes back, as the docstring says them
    parts     names of these parts, from its last `return low, high`
    raises    the lines at which it raises ValueError, each with the argument that is tested there
    """

    name: str
    arguments: tuple[Argument, ...]
    summary: str
    returns: tuple[tuple[str, ...], ...]
    parts: tuple[str, ...]
    raises: tuple[tuple[int, str], ...]

    @property
    def slug(self) -> str:
        """Its name as ids begin."""
        return self.name.lower().replace("_", "-").strip("-")


@dataclass(frozen=True)
class Solution:
    """A solution file: its text with markers, what its values are, its functions, and in words what is no function."""

    path: Path
    text: str
    values: Values
    functions: tuple[SourceFunction, ...]
    left_out: tuple[str, ...] = ()


def read_solution(path: Path) -> Solution:
    """Read that file; raises UsageError where it is no Python or has no function."""
    if path.suffix == ".ipynb":
        raise UsageError(f"{path} is a notebook: give a Python file with its functions, solution.py.")
    try:
        return solution_of(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def solution_of(text: str, path: Path) -> Solution:
    """Read that text; `path` is for sentences alone."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}.") from error
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    others = tuple(
        f"{node.name} ({'a class' if isinstance(node, ast.ClassDef) else 'async'})"
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef)
    )
    if not nodes:
        why = "there is nothing to grade" + (f" in {', '.join(others)}: see {GUIDE}" if others else "")
        raise UsageError(f"{path} defines no function whose name does not begin with _: {why}.")
    for node in nodes:
        if not node.name.isascii():
            right = "its name is one of ids and files, of the letters a to z"
            raise UsageError(f"{path}:{node.lineno}: {node.name} cannot be graded: {right}, digits and _.")
        if node.args.vararg and not (node.args.args or node.args.posonlyargs or node.args.kwonlyargs):
            told = f"{node.name} takes any number of arguments, and a declaration names each"
            raise UsageError(f"{path}:{node.lineno}: {told}. Give it a list, or see {GUIDE}.")
    return Solution(path, _marked(text, nodes, path), _values(tree), tuple(map(_function, nodes)), others)


def _marked(text: str, nodes: list[ast.FunctionDef], path: Path) -> str:
    """Put both markers around each body that has none, below its docstring."""
    lines = text.splitlines()
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):
        if any(line.strip() == BEGIN for line in lines[node.lineno - 1 : (node.end_lineno or 0) + 1]):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            raise UsageError(f"{path}:{node.lineno}: {node.name} has no body to mark.")
        margin = lines[body[0].lineno - 1][: body[0].col_offset]
        lines.insert(node.end_lineno or 0, f"{margin}{END}")
        lines.insert(body[0].lineno - 1, f"{margin}{BEGIN}")
    return "\n".join(lines) + "\n"


def _values(tree: ast.Module) -> Values:
    names = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    names |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    return "torch" if "torch" in names else "numpy" if names & {"numpy", "scipy"} else "python"


def _function(node: ast.FunctionDef) -> SourceFunction:
    docstring = ast.get_docstring(node) or ""
    row = re.search(r"^\s*returns\b:?\s+(.*)", docstring, re.MULTILINE | re.IGNORECASE)
    returned = [_axes(axes) for _, axes in re.findall(PART, row[1])] if row and "[" in row[1] else []
    return SourceFunction(
        node.name,
        tuple(_arguments(node, docstring)),
        docstring.splitlines()[0].strip() if docstring else "",
        tuple(axes for axes in returned if axes is not None) if None not in returned else (),
        _parts(node),
        tuple(_raises(node)),
    )


def _raises(node: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Say where ValueError is raised, and which argument the `if` around it tests first."""
    names = [one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    for branch in [one for one in ast.walk(node) if isinstance(one, ast.If)]:
        for one in branch.body:
            if isinstance(one, ast.Raise) and "ValueError" in ast.unparse(one):
                tested = [part.id for part in ast.walk(branch.test) if isinstance(part, ast.Name) and part.id in names]
                yield one.lineno, next(iter(tested), next(iter(names), "x"))


def _parts(node: ast.FunctionDef) -> tuple[str, ...]:
    """Name the parts of a tuple as the last `return low, high` does."""
    returned = sorted((one for one in ast.walk(node) if isinstance(one, ast.Return)), key=lambda one: one.lineno)
    tuples = [one.value.elts for one in returned if isinstance(one.value, ast.Tuple)]
    names = [tuple(getattr(part, "id", "") for part in parts) for parts in tuples]
    return next((several for several in reversed(names) if all(several) and len({*several}) == len(several)), ())


def _axes(text: str) -> tuple[str, ...] | None:
    """Split the names of axes; None where they are no plain names: `n + 1`."""
    names = tuple(re.split(r"[\s,]+", text.strip(" ,"))) if text.strip(" ,") else ()
    return names if all(name.isdigit() or (name.isidentifier() and name != "rng") for name in names) else None


def _arguments(node: ast.FunctionDef, docstring: str) -> Iterator[Argument]:
    listed = [*node.args.posonlyargs, *node.args.args]
    missing = [None] * (len(listed) - len(node.args.defaults))
    defaults = [*missing, *node.args.defaults, *node.args.kw_defaults]
    for one, default in zip([*listed, *node.args.kwonlyargs], defaults, strict=True):
        kind, axes, unsaid = _shape(one, default, docstring, node)
        literal = _literal(default)
        if default is not None and not literal:
            unsaid = unsaid or f"its default {ast.unparse(default)} is no literal: `defaults` does not name it"
        words = _words(one, docstring, node) if kind == "str" else ()
        takes = _takes(one, node) if kind == "function" else 1
        yield Argument(one.arg, kind, axes, literal, words, takes, unsaid, one in node.args.kwonlyargs)


def _shape(
    node: ast.arg, default: ast.expr | None, docstring: str, function: ast.FunctionDef
) -> tuple[str, tuple[str, ...] | None, str]:
    """Kind and axes, and what nothing says: by the row of the docstring, the annotation, the default, the body."""
    row = _row(node.arg, docstring)
    if said := re.match(PART, row):
        kind, axes = said[1].replace("uint", "int"), None if said[2] is None else _axes(said[2])
        if said[2] is not None and axes is None:
            return kind, UNSAID, f"its axes [{said[2]}] are no plain names"
        return kind, axes or None, ""
    if row.startswith(('"', "'")):
        return "str", None, ""
    annotation = ast.unparse(node.annotation) if node.annotation else ""
    plain = re.sub(r"^Optional\[(.*)\]$|\s*\|\s*None$", r"\1", annotation).replace("Sequence[", "list[")
    if plain.startswith("Literal["):
        return "str", None, ""
    if kind := ANNOTATIONS.get(plain) or ANNOTATIONS.get(plain.partition("[")[0].rpartition(".")[2], ""):
        return kind, None, ""
    inner = re.sub(r"^list\[(list\[.*\])\]$", r"\1", plain)
    if inner in NUMBERS:
        return NUMBERS[inner], UNSAID if inner == plain else ("row", "column"), ""
    literal = _literal(default)
    if literal and type(literal[0]) in OF_DEFAULT:
        return OF_DEFAULT[type(literal[0])], None, ""
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call) and ast.unparse(one.func) == node.arg]
    if calls:
        return "function", None, ""
    if words_compared(function).get(node.arg):
        return "str", None, ""
    if literal:  # None, or a list or dictionary
        return "", None, f"nothing says what it may be besides {literal[0]!r}"
    if annotation and not ARRAY.search(annotation):
        return "", None, f"no draw is known of {annotation}"
    unsaid = f"nothing says its axes: write `{node.arg}   float[row column]` into the docstring"
    return "float" if annotation else "", UNSAID, unsaid


def _row(name: str, docstring: str) -> str:
    """What a docstring's row says of an argument, from its kind on."""
    found = re.search(rf"^\s*[`*]*{re.escape(name)}[`*]*(?::\s*|\s{{2,}}|\t)(.*)", docstring, re.MULTILINE)
    return found[1].lstrip("`*") if found else ""


def _words(node: ast.arg, docstring: str, function: ast.FunctionDef) -> tuple[str, ...]:
    row, annotation = _row(node.arg, docstring), ast.unparse(node.annotation) if node.annotation else ""
    said = QUOTED.findall(row if row.startswith(('"', "'")) else annotation if "Literal[" in annotation else "")
    return tuple(dict.fromkeys(said)) or tuple(sorted(words_compared(function).get(node.arg, ())))


def _takes(node: ast.arg, function: ast.FunctionDef) -> int:
    """How many arguments a function takes: as the body calls it, else as the annotation lists them."""
    calls = [one for one in ast.walk(function) if isinstance(one, ast.Call) and ast.unparse(one.func) == node.arg]
    listed = re.search(r"Callable\[\[([^\[\]]*)\]", ast.unparse(node.annotation) if node.annotation else "")
    return max((len(one.args) for one in calls), default=listed[1].count(",") + 1 if listed else 1)


def _literal(node: ast.expr | None) -> tuple[Any, ...]:
    try:
        return () if node is None else (ast.literal_eval(node),)
    except ValueError:
        return ()
