"""A solution file as an author wrote it: its functions, their arguments, and what docstrings say of shapes."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from autograder.authoring import docstrings
from autograder.authoring.docstrings import Kind, sentences
from autograder.authoring.drafts import callbacks, said
from autograder.authoring.exam.parameters import words_compared
from autograder.authoring.handout.source_notebook import BEGIN
from autograder.vocabulary.errors import UsageError

Values = Literal["torch", "numpy", "python"]
KINDS: tuple[Kind, ...] = ("array", "number", "whole", "text", "flag", "function")
ANNOTATIONS: tuple[tuple[str, Kind], ...] = (
    ("Callable", "function"),
    ("ndarray", "array"), ("NDArray", "array"), ("ArrayLike", "array"), ("Tensor", "array"), ("Array", "array"),
    ("list", "array"), ("Sequence", "array"), ("float", "number"), ("int", "whole"), ("bool", "flag"), ("str", "text"),
)  # fmt: skip
REFUSES = re.compile(r"\braises?\b|\brefuse|\b\w+Error\b")
ASKED = re.compile(
    r"Error\b.*?(?:\b(?:which|that|must|should|text|message|to|and)\s+(?:mention|name)s?|\b(?:mentioning|naming))\b"
    r"(.*?)(?:[,;]|\b(?:if|where|when|unless)\b|$)",
    re.IGNORECASE,
)
OF_DEFAULT: dict[type, Kind] = {bool: "flag", int: "whole", float: "number", str: "text"}


@dataclass(frozen=True)
class Argument:
    """One argument.

    axes      of an array; () where nothing says
    default   None where it has none that is a literal
    known     whether annotation, default or docstring says what it is
    range     of a number, or of an array's numbers, as the docstring says; None where it says nothing
    likely    what an array's numbers are like, as the docstring says; "" where it says nothing
    words     what a text may be, as the docstring says or the body compares; () where nothing says
    below     the axis whose places an array counts; "" where nothing says
    optional  whether None is its default, and nothing says what else it may be
    by_name   whether it is passed by name alone
    by_place  whether it is passed by its place alone
    also      what its numbers are besides, as `Drawn` and `Whole` say it: "increasing", "even"
    takes     of a function the names of its arguments; () where nothing says how many these are
    text      what the docstring says of it
    """

    name: str
    kind: Kind = "array"
    axes: tuple[str, ...] = ()
    default: Any = None
    known: bool = False
    range: tuple[float, float] | None = None
    likely: str = ""
    words: tuple[str, ...] = ()
    below: str = ""
    optional: bool = False
    by_name: bool = False
    by_place: bool = False
    also: str = ""
    takes: tuple[str, ...] = ()
    text: str = ""

    @property
    def is_needed(self) -> bool:
        """Whether it has no default that is a number, a text, a truth value, a list or None."""
        return self.default is None and not self.optional


@dataclass(frozen=True)
class Function:
    """One function that may be graded.

    summary   the first line of its docstring
    axes      of each part that it returns, as the docstring says; () where it does not
    parts     names of what it returns, where that is a tuple of names; () elsewhere
    marked    whether its text says what students write
    first_line   of the file, at which its docstring's text begins
    """

    name: str
    arguments: tuple[Argument, ...]
    summary: str
    docstring: str
    marked: bool
    axes: tuple[docstrings.Axes, ...] = ()
    parts: tuple[str, ...] = ()
    first_line: int = 1

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
        asked = (found[1] for one in sentences(self.docstring) for found in ASKED.finditer(one))
        return any(re.search(rf"\b(?:{re.escape(argument)}|the (?:argument|parameter))\b", words) for words in asked)

    @property
    def slips(self) -> list[str]:
        """What the docstring seems to say of arguments, and is not read to, as phrases."""
        return list(docstrings.slips(self.docstring, [one.name for one in self.arguments]))

    @property
    def unbound(self) -> list[tuple[int, str]]:
        """Words that say of an argument's numbers what is not drawn, as phrases, each with its line of the file."""
        told = [
            (one.name, word)
            for one in self.arguments
            for word in said.unread(one.name, one.kind, one.axes, one.text, one.takes)
        ]
        lines = [said.line_of(self.docstring, name, word) for name, word in told]
        return [(self.first_line + n, f"{word!r} of {name}") for (name, word), n in zip(told, lines, strict=True)]

    @property
    def needed(self) -> tuple[Argument, ...]:
        """Its arguments without those at the end that have a default which is a number, a text or a truth value."""
        last = max((place for place, one in enumerate(self.arguments, 1) if one.is_needed), default=0)
        return self.arguments[:last]


@dataclass(frozen=True)
class Solution:
    """The file: its text, what its values are, its functions at the top level, in order, and what is none, in words."""

    path: Path
    text: str
    values: Values
    functions: tuple[Function, ...]
    left_out: tuple[str, ...] = ()

    def only(self, names: list[str]) -> Solution:
        """The same with these functions graded."""
        return replace(self, functions=tuple(one for one in self.functions if one.name in names))


def read_solution(path: Path) -> Solution:
    """The solution in that file; raises UsageError where it is no Python or has no function."""
    if path.suffix == ".ipynb":
        raise UsageError(f"{path} is a notebook: give a Python file with its functions, solution.py.")
    try:
        return solution_of(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8.") from error
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
    others = tuple(_left_out(tree))
    if not nodes:
        why = "there is nothing to grade" + (f" in {', '.join(others)}" if others else "")
        raise UsageError(f"{path} defines no function whose name does not begin with _: {why}.")
    for node in nodes:
        if not node.name.isascii():
            right = "its name is one of ids and files, of the letters a to z"
            raise UsageError(f"{path}:{node.lineno}: {node.name} cannot be graded: {right}, digits and _.")
    lines = text.splitlines()
    return Solution(path, text, _values(tree), tuple(_function(node, lines) for node in nodes), others)


def _left_out(tree: ast.Module) -> Iterator[str]:
    """What looks like something to grade, and no case calls."""
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef):
            yield f"{node.name} (async)"
        if isinstance(node, ast.ClassDef):
            yield f"{node.name} (a class)"


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
        arguments=tuple(_alike(list(_arguments(node, docstring)))),
        summary=docstring.splitlines()[0].strip() if docstring else "",
        docstring=docstring,
        marked=any(line.strip() == BEGIN for line in (*own, *following)),
        axes=docstrings.returned(docstring),
        parts=_parts(node),
        first_line=said.first_line(node),
    )


def _parts(node: ast.FunctionDef) -> tuple[str, ...]:
    """The names in its last `return low, high` whose parts have names, where all its tuples have as many parts."""
    returned = sorted((one for one in ast.walk(node) if isinstance(one, ast.Return)), key=lambda one: one.lineno)
    tuples = [one.value.elts for one in returned if isinstance(one.value, ast.Tuple)]
    named = [tuple(getattr(part, "id", "") for part in parts) for parts in tuples]
    named = [names for names in named if all(names) and len(set(names)) == len(names)]
    return named[-1] if named and len({len(parts) for parts in tuples}) == 1 else ()


def _arguments(node: ast.FunctionDef, docstring: str) -> Iterator[Argument]:
    listed, by_name = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
    if not listed and not by_name and (more := node.args.vararg or node.args.kwarg):
        raise UsageError(f"{node.name} takes as many arguments as one likes ({more.arg}): a case names each of them.")
    missing = [None] * (len(listed) - len(node.args.defaults))
    for one, default in zip([*listed, *by_name], [*missing, *node.args.defaults, *node.args.kw_defaults], strict=True):
        found = _argument(one, default, docstring, _used(one.arg, node))
        compared = sorted(words_compared(node).get(one.arg, ()))
        words = docstrings.words(one.arg, docstring) or tuple(compared)
        found = replace(found, by_name=one in by_name, by_place=one in node.args.posonlyargs)
        if found.kind == "function":
            annotation = ast.unparse(one.annotation) if one.annotation else ""
            found = replace(found, takes=callbacks.takes(one.arg, found.text, annotation, node))
        yield replace(found, words=words) if found.kind == "text" else found


def _alike(arguments: list[Argument]) -> Iterator[Argument]:
    """The arguments, arrays without axes of their own with those of the one that they are `the same length as`."""
    axes = {one.name: one.axes for one in arguments}
    for one in arguments:
        same = said.SAME.search(one.text)
        yield replace(one, axes=axes.get(same[1], ())) if same and one.kind == "array" and not one.axes else one


def _argument(node: ast.arg, default: ast.expr | None, docstring: str, used: Kind | None) -> Argument:
    annotation = ast.unparse(node.annotation) if node.annotation else ""
    told = next((kind for word, kind in ANNOTATIONS if re.search(rf"\b{word}\b", annotation)), None)
    literal = _literal(default)
    if type(literal) in OF_DEFAULT and (told is None or type(literal) in (bool, str)):
        told = OF_DEFAULT[type(literal)]
    axes, described = docstrings.described(node.arg, docstring)
    kind: Kind = used if used == "function" else "array" if axes else told or described or used or "array"
    if kind == "array" and not axes and (told == "array" or annotation.startswith("list[list")):
        axes = ("row", "column") if annotation.startswith("list[list") else ()
    text = docstrings.paragraph(node.arg, docstring)
    if kind == "array" and said.TEXTS.search(f"{annotation} {text}"):
        kind, axes = "texts", ()
    found = said.numbers(node.arg, text, kind, axes)
    is_none = isinstance(default, ast.Constant) and default.value is None
    return Argument(
        node.arg,
        kind,
        found.axes,
        literal,
        known=bool(axes or told or described or used or is_none),
        range=found.range,
        likely=found.likely,
        below=found.below,
        also=found.also,
        optional=is_none and not (axes or found.range),
        text=text,
    )


def _used(name: str, node: ast.FunctionDef) -> Kind | None:
    """What the body does with the argument: a function is called, a whole number counts."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            if one.func.id == name:
                return "function"
            if one.func.id == "range" and any(isinstance(a, ast.Name) and a.id == name for a in one.args):
                return "whole"
    return "text" if words_compared(node).get(name) else None


def _literal(node: ast.expr | None) -> Any:
    with contextlib.suppress(ValueError):
        return None if node is None else ast.literal_eval(node)
    return None
