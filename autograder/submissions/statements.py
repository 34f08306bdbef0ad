"""The code cells of a notebook, as top-level statements that know what names they bind, change and use.

Nothing is executed. Lines for IPython are taken out, and every size has a cap.
"""

from __future__ import annotations

import ast
import itertools
import re
import symtable
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import cast

from autograder.submissions.syntax import UNPARSABLE, parsed
from autograder.vocabulary.text import visible

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
IMPORTS = (ast.Import, ast.ImportFrom)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, getattr(ast, "TypeAlias", ast.Assign))
_DEFINING = (*DEFINITIONS, *IMPORTS, *_ASSIGNMENTS, ast.If, ast.Try, ast.TryStar, ast.With)
_CELL_MAGIC = re.compile(r"\s*(%%(\w*)[^\n]*)")
_TIMING_MAGICS = ("time", "timeit", "capture")
_WRITTEN = re.compile(r"%%(?:writefile|file)(?:[ \t]+(?:-a|--append))?[ \t]+(\S.*)")
_IPYTHON_LINE = re.compile(r"""[ \t]*(?:[%!?]|(?:pip|conda)[ ]|[^#'"]*\?[ \t]*$|[\w.,\[\] \t]+=[ \t]*[%!](?!=))""")
_OPENING = re.compile(r"""#.*|"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[(\[{]|[)\]}]|\\$""")
JOINT = re.compile(r"(?:[ \t;]|\\\n)*")  # what can stand between two statements on one line
# What a line starts in: the quotes of an open string, the depth of brackets, whether the line before goes on.
_NEUTRAL = ("", 0, False)
_MAGIC = ("%", 0, True)  # an IPython command that goes on over the line's end


@dataclass(frozen=True)
class CodeCell:
    """A cell's code, and the name that nbgrader knows the cell by: an answer cell is named for its function."""

    code: str
    grade_id: str


@dataclass(frozen=True)
class Statement:
    """A top-level statement of a code cell.

    text      everything since the end of the statement before it: texts joined are the cell
    binds     names that it gives a meaning in the module
    changes   names that it may alter: x in `x[0] = 1`, in `x.y = 1`, in `@x` and in `class C(x)`
    uses      names of the module that it needs, when it runs or when it is called
    """

    cell: int
    node: ast.stmt
    text: str
    binds: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()


@dataclass(frozen=True)
class LeftOut:
    """Why a cell was left out.

    line        of the cell at which Python stopped reading; 0 where that is not known
    is_python   whether it should have been Python
    """

    note: str
    line: int = 0
    is_python: bool = True


def statements_of(number: int, code: str, module: str) -> list[Statement] | LeftOut:
    """The statements of cell `number`, or why it was left out."""
    left_out = f"cell {number} was left out: "
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if magic := _CELL_MAGIC.match(code):
        if magic[2] not in _TIMING_MAGICS and not _is_module(magic[1], module):
            return LeftOut(f"{left_out}it is a {visible('%%' + magic[2], 20)} cell, not Python", is_python=False)
        code = code[: magic.start(1)] + code[magic.end(1) :]
    if "\0" in code:
        return LeftOut(f"{left_out}it holds a null byte")
    try:
        try:
            tree = parsed(code)
        except SyntaxError:
            code = _without_ipython(code)
            tree = parsed(code)
        return list(_split(number, code, tree, module))
    except SyntaxError as error:
        where = f" on its line {error.lineno}" if error.lineno else ""
        return LeftOut(f"{left_out}it has a syntax error{where}", error.lineno or 0)
    except UNPARSABLE:
        return LeftOut(f"{left_out}Python cannot parse it")


def _is_module(magic: str, module: str) -> bool:
    """Whether a magic writes its cell to the module's file: the cell is what the module would be."""
    found = _WRITTEN.fullmatch(magic)
    if found is None:
        return False
    return PurePosixPath(found[1].strip(" \t").strip("\"'").replace("\\", "/")).name == f"{module}.py"


def _without_ipython(code: str) -> str:
    """`code` with the lines that only IPython understands replaced by `pass`, line numbers kept.

    Lines inside a string or a bracket and continued lines are left alone: there % is an operator.
    """
    lines = code.split("\n")
    margin = lines[0][: len(lines[0]) - len(lines[0].lstrip(" \t"))]  # IPython takes off a common indentation
    lines = [line.removeprefix(margin) for line in lines]
    state = _NEUTRAL
    for number, line in enumerate(lines):
        if state == _NEUTRAL and _IPYTHON_LINE.match(line):
            lines[number] = line[: len(line) - len(line.lstrip(" \t"))] + "pass"
            state = _MAGIC if line.endswith("\\") else _NEUTRAL
        elif state == _MAGIC:
            lines[number] = ""
            state = _MAGIC if line.endswith("\\") else _NEUTRAL
        else:
            state = _scanned(line, state)
    return "\n".join(lines)


def _scanned(line: str, state: tuple[str, int, bool]) -> tuple[str, int, bool]:
    """The state after `line`, which starts in `state`."""
    quotes, depth, _ = state
    position, continued = 0, False
    while True:
        if quotes:
            if not (end := re.compile(rf"(?:\\.|[^\\])*?{quotes}").match(line, position)):
                return quotes, depth, False
            quotes, position = "", end.end()
        if not (piece := _OPENING.search(line, position)):
            return quotes, depth, continued
        position = piece.end()
        quotes = piece[0] if piece[0] in ('"' * 3, "'" * 3) else ""
        depth = max(0, depth + (piece[0] in "([{") - (piece[0] in ")]}"))
        continued = piece[0] == "\\"


def _split(number: int, code: str, tree: ast.Module, module: str) -> Iterator[Statement]:
    raw = code.encode()
    starts = [0, *itertools.accumulate(len(line) + 1 for line in raw.split(b"\n"))]
    position = 0
    for node in tree.body:
        line, column = (
            cast("int", node.end_lineno),
            cast("int", node.end_col_offset),
        )  # of what was parsed, both are known
        end = starts[line - 1] + column
        text = raw[position:end].decode()
        position = end
        statement = Statement(number, node, text)
        yield _with_scope(statement) if _may_define(node, module) else statement


def _may_define(node: ast.stmt, module: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module not in ("__future__", module)
    if isinstance(node, ast.If):
        return not any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
    return isinstance(node, _DEFINING + LOOPS)


def _with_scope(statement: Statement) -> Statement:
    """The statement with what it binds, changes and uses; a star import binds `*`."""
    text = JOINT.sub("", statement.text, count=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = symtable.symtable(text, "<cell>", "exec")
    binds = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
    uses = {name.get_name() for name in top.get_symbols() if name.is_referenced()}
    inner = top.get_children()
    for table in inner:
        uses |= {name.get_name() for name in table.get_symbols() if name.is_global()}
        inner += table.get_children()
    if isinstance(statement.node, ast.ImportFrom) and statement.node.names[0].name == "*":
        binds = {"*"}
    changes = frozenset(_changed(statement.node))
    return replace(statement, binds=frozenset(binds), changes=changes, uses=frozenset(uses))


def _changed(node: ast.stmt) -> Iterator[str]:
    """Names that running `node` may alter without binding them."""
    altered: list[ast.expr] = []
    if isinstance(node, DEFINITIONS):
        altered += [*node.decorator_list, *getattr(node, "bases", [])]
    else:
        for part in ast.walk(node):
            targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
            altered += [target for target in targets if isinstance(target, ast.Attribute | ast.Subscript)]
    for expression in altered:
        while isinstance(expression, ast.Attribute | ast.Subscript | ast.Call):
            expression = expression.func if isinstance(expression, ast.Call) else expression.value
        if isinstance(expression, ast.Name):
            yield expression.id
