"""A solution file as an author wrote it: its functions, their arguments, and what docstrings say of shapes."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from autograder.authoring.exam.contract import sentences
from autograder.authoring.exam.parameters import words_compared
from autograder.authoring.handout.source_notebook import BEGIN, END
from autograder.vocabulary.errors import UsageError

Kind = Literal["array", "number", "whole", "text", "flag", "function"]
Values = Literal["torch", "numpy", "python"]
KINDS: tuple[Kind, ...] = ("array", "number", "whole", "text", "flag", "function")
ANNOTATIONS: tuple[tuple[str, Kind], ...] = (
    ("Callable", "function"),
    ("ndarray", "array"), ("NDArray", "array"), ("ArrayLike", "array"), ("Tensor", "array"), ("Array", "array"),
    ("list", "array"), ("Sequence", "array"), ("float", "number"), ("int", "whole"), ("bool", "flag"), ("str", "text"),
)  # fmt: skip
QUOTED = re.compile(r"(?<!\w)[\"'](\w[\w .-]*)[\"'](?!\w)")
REFUSES = re.compile(r"\braises?\b|\brefuse|\b\w+Error\b")
ASKED = re.compile(
    r"Error\b.*?(?:\b(?:which|that|must|should|text|message|to|and)\s+(?:mention|name)s?|\b(?:mentioning|naming))\b"
    r"(.*?)(?:[,;]|\b(?:if|where|when|unless)\b|$)"
)
OF_DEFAULT: dict[type, Kind] = {bool: "flag", int: "whole", float: "number", str: "text"}


@dataclass(frozen=True)
class Argument:
    """One argument.

    axes      of an array; () where nothing says
    default   None where it has none that is a literal
    known     whether annotation, default or docstring says what it is
    range     of a number, as the docstring says; None where it says nothing
    likely    what an array's numbers are like, as the docstring says; "" where it says nothing
    words     what a text may be, as the docstring says or the body compares; () where nothing says
    """

    name: str
    kind: Kind = "array"
    axes: tuple[str, ...] = ()
    default: Any = None
    known: bool = False
    range: tuple[float, float] | None = None
    likely: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Function:
    """One function that may be graded.

    summary   the first line of its docstring
    axes      of what it returns, as the docstring says; () where it does not
    parts     names of what it returns, where that is a tuple of names; () elsewhere
    marked    whether its text says what students write
    """

    name: str
    arguments: tuple[Argument, ...]
    summary: str
    docstring: str
    marked: bool
    axes: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def slug(self) -> str:
        """Its name as ids begin."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")

    @property
    def promises_errors(self) -> bool:
        """Whether the docstring says that anything is refused: what it does not say is no student's to know."""
        return REFUSES.search(self.docstring) is not None

    def asks_to_mention(self, argument: str) -> bool:
        """Whether the docstring asks for an error whose text mentions that argument, by name or as `the argument`."""
        asked = (found[1] for one in sentences(self.docstring) if (found := ASKED.search(one)))
        return any(re.search(rf"\b(?:{re.escape(argument)}|the (?:argument|parameter))\b", words) for words in asked)

    @property
    def needed(self) -> tuple[Argument, ...]:
        """Its arguments without those at the end that have a default which is a number, a text or a truth value."""
        last = max((place for place, one in enumerate(self.arguments, 1) if one.default is None), default=0)
        return self.arguments[:last]


@dataclass(frozen=True)
class Solution:
    """The file: its text, what its values are, and its functions at the top level, in order."""

    path: Path
    text: str
    values: Values
    functions: tuple[Function, ...]

    def only(self, names: list[str]) -> Solution:
        """The same with these functions graded."""
        return replace(self, functions=tuple(one for one in self.functions if one.name in names))


def read_solution(path: Path) -> Solution:
    """The solution in that file; raises UsageError where it is no Python or has no function."""
    try:
        return solution_of(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def solution_of(text: str, path: Path) -> Solution:
    """The solution with that text; `path` is for sentences alone."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}.") from error
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    if not nodes:
        raise UsageError(f"{path} defines no function whose name does not begin with _: there is nothing to grade.")
    lines = text.splitlines()
    return Solution(path, text, _values(tree), tuple(_function(node, lines) for node in nodes))


def marked(solution: Solution) -> str:
    """The text with both markers around the body of each function that has none, below its docstring."""
    lines = solution.text.splitlines()
    open_ones = {function.name for function in solution.functions if not function.marked}
    nodes = [n for n in ast.parse(solution.text).body if isinstance(n, ast.FunctionDef) and n.name in open_ones]
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            raise UsageError(f"{solution.path}:{node.lineno}: {node.name} has no body to mark.")
        first = body[0].lineno
        margin = " " * body[0].col_offset
        lines.insert(node.end_lineno or first, f"{margin}{END}")
        lines.insert(first - 1, f"{margin}{BEGIN}")
    return "\n".join(lines) + "\n"


def _values(tree: ast.Module) -> Values:
    names = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    names |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    return "torch" if "torch" in names else "numpy" if names & {"numpy", "scipy"} else "python"


def _function(node: ast.FunctionDef, lines: list[str]) -> Function:
    docstring = ast.get_docstring(node) or ""
    own = lines[node.lineno - 1 : node.end_lineno]
    following = lines[node.end_lineno or 0 : (node.end_lineno or 0) + 1]
    return Function(
        name=node.name,
        arguments=tuple(_arguments(node, docstring)),
        summary=docstring.splitlines()[0].strip() if docstring else "",
        docstring=docstring,
        marked=any(line.strip() == BEGIN for line in (*own, *following)),
        axes=_described("returns", docstring)[0],
        parts=_parts(node),
    )


def _parts(node: ast.FunctionDef) -> tuple[str, ...]:
    """The names in its `return low, high`, where all its returns of tuples are of these."""
    returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return)]
    tuples = {tuple(getattr(part, "id", "") for part in one.elts) for one in returned if isinstance(one, ast.Tuple)}
    names = tuples.pop() if len(tuples) == 1 else ()
    return names if all(names) and len(set(names)) == len(names) else ()


def _arguments(node: ast.FunctionDef, docstring: str) -> Iterator[Argument]:
    listed = [*node.args.posonlyargs, *node.args.args]
    if node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
        what = "arguments by name alone, or as many as one likes"
        raise UsageError(f"{node.name} takes {what}: a case calls it with a list of arguments, each at its place.")
    missing = [None] * (len(listed) - len(node.args.defaults))
    for one, default in zip(listed, [*missing, *node.args.defaults], strict=True):
        found = _argument(one, _literal(default), docstring, _used(one.arg, node))
        compared = sorted(words_compared(node).get(one.arg, ()))
        yield replace(found, words=_words(one.arg, docstring) or tuple(compared)) if found.kind == "text" else found


def _argument(node: ast.arg, default: Any, docstring: str, used: Kind | None) -> Argument:
    annotation = ast.unparse(node.annotation) if node.annotation else ""
    told = next((kind for word, kind in ANNOTATIONS if re.search(rf"\b{word}\b", annotation)), None)
    if told is None and type(default) in OF_DEFAULT:
        told = OF_DEFAULT[type(default)]
    axes, said = _described(node.arg, docstring)
    kind: Kind = used if used == "function" else "array" if axes else told or said or used or "array"
    if kind == "array" and not axes and (told == "array" or annotation.startswith("list[list")):
        axes = ("row", "column") if annotation.startswith("list[list") else ()
    text = _paragraph(node.arg, docstring)
    return Argument(node.arg, kind, axes, default, bool(axes or told or said or used), _range(text), _likely(text))


def _used(name: str, node: ast.FunctionDef) -> Kind | None:
    """What the body does with the argument: a function is called, a whole number counts."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            if one.func.id == name:
                return "function"
            if one.func.id == "range" and any(isinstance(a, ast.Name) and a.id == name for a in one.args):
                return "whole"
    return "text" if words_compared(node).get(name) else None


def _words(name: str, docstring: str) -> tuple[str, ...]:
    """The words that a docstring puts in quotes where it says what an argument is: `side   "up" or "down"`."""
    return tuple(dict.fromkeys(found[1] for found in QUOTED.finditer(_paragraph(name, docstring))))


def _paragraph(name: str, docstring: str) -> str:
    """The line of the docstring that begins with the argument, and those below it that are indented further."""
    lines = docstring.splitlines()
    for place, line in enumerate(lines):
        if re.match(rf"\s*`*{re.escape(name)}\b", line):
            below = itertools.takewhile(functools.partial(_is_deeper, line), lines[place + 1 :])
            return " ".join([line, *map(str.strip, below)])
    return ""


def _is_deeper(line: str, other: str) -> bool:
    """Whether the other line is indented further."""
    return len(other) - len(other.lstrip()) > len(line) - len(line.lstrip())


def _range(line: str) -> tuple[float, float] | None:
    """The least and the greatest number that a line of a docstring names."""
    number = r"(-?\d+(?:\.\d+)?)"
    for pattern in (
        rf"from {number} to {number}",
        rf"between {number} and {number}",
        rf"in [\[(]{number}, ?{number}[\])]",
    ):
        if (found := re.search(pattern, line)) and float(found[1]) < float(found[2]):
            low, high = float(found[1]), float(found[2])
            return round(low + (high - low) / 10, 6), round(high - (high - low) / 10, 6)
    return None


def _likely(line: str) -> str:
    if re.search(r"\bu?int\d*\[", line):
        return "whole"
    if "probabilit" in line:
        return "probabilities"
    return "positive" if re.search(r"\bpositive\b|\babove 0\b|> ?0\b", line) else ""


def _described(name: str, docstring: str) -> tuple[tuple[str, ...], Kind | None]:
    """Axes, or what kind of thing it is, as the docstring says: `x   float[batch trial]`, `x: shape (n, d)`."""
    for line in docstring.splitlines():
        match = re.match(rf"\s*`*{re.escape(name)}`*\b\s*:?\s*(.*)", line)
        if not match:
            continue
        rest = match[1]
        if brackets := re.match(r"\w*\[([^\]]*)\]", rest):
            return tuple(re.findall(r"[A-Za-z_]\w*", brackets[1])), "number" if not brackets[1].strip() else None
        if re.search(r"shape|array|tensor|matrix|vector", rest) and (shape := re.search(r"\(([^)]*)\)", rest)):
            return tuple(re.findall(r"[A-Za-z_]\w*", shape[1])) or ("entry",), None
        for word, axes in (("matrix", ("row", "column")), ("vector", ("entry",)), ("list", ("entry",))):
            if re.search(rf"\b{word}\b", rest):
                return axes, None
        if re.match(rf"(?:str|text)\b|{QUOTED.pattern}", rest):
            return (), "text"
        for word, kind in (("function", "function"), ("int", "whole"), ("float", "number"), ("number", "number")):
            if re.search(rf"\b{word}", rest):
                return (), kind  # type: ignore[return-value]
    return (), None


def _literal(node: ast.expr | None) -> Any:
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
