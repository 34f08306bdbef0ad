"""A graded function of the solution as a text that is edited where its syntax tree points.

Edits keep all that they do not touch: comments, blank lines and the numbers of lines above.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)


@dataclass(frozen=True)
class Edit:
    """New text for the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


Change = tuple[Edit, ...]


@dataclass(frozen=True)
class GradedText:
    """One graded function within the text of the solution.

    source   the whole text, which every mutant is a copy of but for its change
    node     the function in its syntax tree
    module   the whole syntax tree
    graded   the names of all graded functions
    """

    source: str
    node: ast.FunctionDef
    module: ast.Module
    graded: tuple[str, ...]

    @property
    def name(self) -> str:
        """The function's name."""
        return self.node.name

    @cached_property
    def docstring(self) -> str:
        """Its docstring without indentation; "" where it has none."""
        return ast.get_docstring(self.node) or ""

    @cached_property
    def body(self) -> list[ast.stmt]:
        """Its statements but the docstring."""
        return self.node.body[1:] if ast.get_docstring(self.node) is not None else self.node.body

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its body, in the order of the text."""
        found = [node for statement in self.body for node in ast.walk(statement) if hasattr(node, "lineno")]
        return sorted(found, key=lambda node: self.span(node))

    @cached_property
    def statements(self) -> list[tuple[ast.stmt, tuple[ast.For, ...]]]:
        """Every statement that begins a line, with the loops around it, the outermost first."""
        return list(_statements(self.body, ()))

    @cached_property
    def parameters(self) -> dict[str, tuple[str, ast.expr | None]]:
        """Each parameter's annotation as text, and its default."""
        given = self.node.args
        named = [*given.posonlyargs, *given.args]
        defaults: list[ast.expr | None] = [None] * (len(named) - len(given.defaults)) + list(given.defaults)
        pairs = [*zip(named, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
        return {one.arg: (ast.unparse(one.annotation) if one.annotation else "", default) for one, default in pairs}

    @cached_property
    def values(self) -> Literal["torch", "numpy", "python"]:
        """What the module computes with, as its imports say: tensors, NumPy arrays, or numbers and lists."""
        nodes = [one for one in ast.walk(self.module) if isinstance(one, ast.Import | ast.ImportFrom)]
        names = {alias.name for one in nodes for alias in one.names} | {getattr(one, "module", "") for one in nodes}
        packages = {(name or "").partition(".")[0] for name in names}
        return "torch" if "torch" in packages else "numpy" if "numpy" in packages else "python"

    @cached_property
    def tensors(self) -> list[str]:
        """Parameters that are tensors or arrays of floating numbers, or None: those that the docstring calls no int."""
        rows = dict(line.split(maxsplit=1) for line in self.docstring.splitlines() if len(line.split()) > 1)
        kinds = {name: rows.get(name, "") for name in self.parameters}
        return [name for name, row in kinds.items() if self._is_tensor(name) and not row.startswith("int")]

    def _is_tensor(self, name: str) -> bool:
        annotation = self.parameters[name][0]
        if "Tensor" in annotation:
            return True
        is_array = re.search(r"\bnd ?array\b|\bNDArray\b", annotation) or self.said.get(name, "").startswith("float[")
        return self.values == "numpy" and bool(is_array)

    @cached_property
    def returns_tensor(self) -> bool:
        """Whether it returns one tensor."""
        return self.node.returns is not None and ast.unparse(self.node.returns) == "Tensor"

    @cached_property
    def returns_array(self) -> bool:
        """Whether it returns one NumPy array of floating numbers, as its docstring says."""
        is_numpy = re.search(r"^import numpy as np$", self.source, re.MULTILINE) is not None
        return is_numpy and re.search(r"^returns +float\[", self.docstring, re.MULTILINE) is not None

    @cached_property
    def said(self) -> dict[str, str]:
        """What the docstring says of each parameter in its row's second word, `float` or `float[batch`."""
        rows = [line.split() for line in self.docstring.splitlines()]
        return {row[0]: row[1].rstrip(";,.") for row in rows if len(row) > 1 and row[0] in self.parameters}

    @cached_property
    def models(self) -> list[str]:
        """Names of the function that hold a model: annotated as a module, called so, or asked for its parameters."""
        called_so = [name for name in self.parameters if name.rpartition("_")[2] == "model"]
        annotated = [name for name, (kind, _) in self.parameters.items() if "Module" in kind or name in called_so]
        inner = [node for node in self.nodes if isinstance(node, ast.arg) and node.annotation is not None]
        annotated += [node.arg for node in inner if "Module" in ast.unparse(node.annotation or node)]
        asked = [
            node.func.value.id
            for node in self.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("parameters", "eval", "train")
            and isinstance(node.func.value, ast.Name)
        ]
        models = list(dict.fromkeys([*annotated, *asked]))
        assigned = [one for one in self.nodes if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)]
        copies = [one.targets[0] for one in assigned if "copy(" in self.text(one) and names_in(one.value) & {*models}]
        return list(dict.fromkeys([*models, *(one.id for one in copies if isinstance(one, ast.Name))]))

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self.source.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte and end of a node in the text."""
        place: dict[str, int] = vars(node)
        start = self._line_starts[place["lineno"] - 1] + place["col_offset"]
        return start, self._line_starts[place["end_lineno"] - 1] + place["end_col_offset"]

    def text(self, node: ast.AST) -> str:
        """The text of a node as it stands."""
        start, end = self.span(node)
        return self.source.encode()[start:end].decode()

    def atom(self, node: ast.AST) -> str:
        """The text of a node, in brackets where something that is put beside it could tear it apart."""
        return self.text(node) if isinstance(node, ATOMS) else f"({self.text(node)})"

    def replace(self, node: ast.AST, text: str) -> Edit:
        """New text for a node."""
        return Edit(*self.span(node), text)

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        """Lines above a statement, as far indented."""
        start = self._line_starts[statement.lineno - 1]
        return Edit(start, start, "".join(f"{self._margin(statement)}{line}\n" for line in lines))

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        """Lines below a statement, as far indented."""
        start = self._line_starts[(statement.end_lineno or statement.lineno)]
        return Edit(start, start, "".join(f"{self._margin(statement)}{line}\n" for line in lines))

    def _margin(self, statement: ast.stmt) -> str:
        """The blanks or tabs that stand before it."""
        line = self.source.splitlines()[statement.lineno - 1]
        return line[: len(line) - len(line.lstrip())]

    def without(self, statement: ast.stmt) -> Edit:
        """The lines of a statement gone."""
        lines = self._line_starts
        return Edit(lines[statement.lineno - 1], lines[statement.end_lineno or statement.lineno], "")

    def changed(self, change: Sequence[Edit]) -> str:
        """The whole text with this change."""
        data = self.source.encode()
        for edit in sorted(change, key=lambda edit: edit.start, reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data.decode()


def graded_texts(source: str, functions: Sequence[str]) -> list[GradedText]:
    """Those of the graded functions that the text defines at its top level."""
    module = ast.parse(source)
    nodes = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    return [GradedText(source, node, module, tuple(functions)) for node in nodes]


def called(node: ast.AST) -> str:
    """What a call calls, without what stands before the last dot; "" for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def names_in(node: ast.AST) -> set[str]:
    """Every name that a node uses."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _statements(body: Sequence[ast.stmt], loops: tuple[ast.For, ...]) -> Iterator[tuple[ast.stmt, tuple[ast.For, ...]]]:
    for statement in body:
        yield statement, loops
        inside = (*loops, statement) if isinstance(statement, ast.For) else loops
        for name in ("body", "orelse", "finalbody"):
            inner = [one for one in getattr(statement, name, []) if one.lineno > statement.lineno]
            yield from _statements(inner, inside)
