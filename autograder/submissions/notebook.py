"""The part of a notebook that is graded, as Python text: its definitions, and all that they need; no experiments.

Nothing is executed. Outputs are thrown away before the notebook is parsed, lines for IPython are taken out, and every
size has a cap. What is wrong with a notebook is a value, `Text.problem`.
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import symtable
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from autograder.vocabulary.text import visible

MAX_JSON_TOKENS = 2_000_000  # bounds the memory that parsing a notebook takes
MAX_CELLS = 5_000
MAX_CODE = 256 * 1024  # characters of code in a whole notebook
MAX_WORDS = 20_000  # characters of one answer in words
MAX_CODE_LINE = 10_000  # Python parses one long f-string in quadratic time

UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)  # what ast, compile and symtable raise
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, getattr(ast, "TypeAlias", ast.Assign))
_DEFINING = (*_DEFINITIONS, *_IMPORTS, *_ASSIGNMENTS, ast.If, ast.Try, ast.TryStar, ast.With)

_JSON_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|[\[{,]', re.DOTALL)
_CELL_MAGIC = re.compile(r"\s*(%%(\w*)[^\n]*)")
_CONFLICT = re.compile(r"^(?:<<<<<<<|>>>>>>>)", re.MULTILINE)
_TIMING_MAGICS = ("time", "timeit", "capture")
_IPYTHON_LINE = re.compile(r"""[ \t]*+(?:[%!?]|(?:pip|conda)[ ]|[^#'"]*\?[ \t]*$|[\w.,\[\] \t]++=[ \t]*+[%!](?!=))""")
_OPENING = re.compile(r"""#.*|"{3}|'{3}|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?|[(\[{]|[)\]}]|\\$""")
_JOINT = re.compile(r"(?:[ \t;]|\\\n)*")  # what can stand between two statements on one line


@dataclass(frozen=True)
class Text:
    """What a file says: Python text, or what is wrong with it as the end of a sentence."""

    source: str = ""
    problem: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _CodeCell:
    """A cell's code, and the name that nbgrader knows the cell by: an answer cell is named for its function."""

    code: str
    grade_id: str


@dataclass(frozen=True)
class _Statement:
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


def notebook_text(text: str, module: str, graded: Sequence[str]) -> Text:
    """What a notebook defines, without its experiments: the graded functions and all that they need."""
    cells = _code_cells(text)
    if isinstance(cells, Text):
        return cells
    statements: list[_Statement] = []
    notes: list[str] = []
    for number, cell in enumerate(cells, 1):
        found = _statements(number, cell.code, module)
        if isinstance(found, str):
            notes.append(found)
        else:
            statements += found
    statements, chosen = _chosen(_with_changes(statements), cells, graded)
    notes += chosen
    roots = frozenset(graded) or _definitions(statements)
    names = _needed(statements, roots)
    notes += [*_defined_twice(statements, graded), *_loops_left_out(statements, names)]
    if not any(_is_kept(statement, roots) for statement in statements):
        return Text(problem="defines no function to grade in its code cells.", notes=tuple(notes))
    return Text(_source(statements, names), notes=tuple(notes))


def words_of(text: str) -> dict[str, str]:
    """What stands in the text cells that nbgrader has given a name, by that name; nothing of a broken notebook."""
    raw = _json(text)
    found = [] if isinstance(raw, Text) else _raw_cells(raw) or []
    cells = [cell for cell in found if isinstance(cell, dict) and cell.get("cell_type") == "markdown"]
    words = {name: _joined(cell.get("source")) for cell in cells if (name := _grade_id(cell))}
    return {name: source[:MAX_WORDS].encode(errors="replace").decode() for name, source in words.items()}


def _code_cells(text: str) -> list[_CodeCell] | Text:
    """The code of every cell, "" for a cell that is not code."""
    raw = _json(text)
    if isinstance(raw, Text):
        return raw
    cells = _raw_cells(raw)
    if cells is None:
        return Text(problem="is not a notebook: it has no list of cells.")
    codes = [_code(cell) for cell in cells]
    if len(codes) > MAX_CELLS or sum(map(len, codes)) > MAX_CODE:
        limits = f"{MAX_CELLS} cells and {MAX_CODE // 1024} KiB of code"
        return Text(problem=f"is too large: more than {limits} are not graded.")
    return [_CodeCell(code, _grade_id(cell)) for code, cell in zip(codes, cells, strict=True)]


def _grade_id(cell: Any) -> str:
    """The name that nbgrader has given to a cell; "" where it has none."""
    for key in ("metadata", "nbgrader", "grade_id"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, str) else ""


def _json(text: str) -> Any:
    """What the JSON says, or as a Text what is wrong with it."""
    if len(text) > MAX_JSON_TOKENS:
        tokens = itertools.islice(_JSON_TOKEN.finditer(text), MAX_JSON_TOKENS, None)
        if next(tokens, None) is not None:
            return Text(problem="holds too much: clear the outputs of all cells and save it again.")
    try:
        return json.loads(text)
    except RecursionError:
        return Text(problem="is not a notebook: its JSON is nested too deeply.")
    except ValueError as error:
        return Text(problem=_not_json(text, error))


def _not_json(text: str, error: ValueError) -> str:
    if conflict := _CONFLICT.search(text):
        line = text.count("\n", 0, conflict.start()) + 1
        return f"holds a merge conflict at line {line}: resolve it, and save the notebook in Jupyter."
    where = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
    return f"is not a notebook: its JSON is broken{where}. Save it again in Jupyter."


def _raw_cells(raw: Any) -> list[Any] | None:
    """The cells as they stand in the file, of format 4 or 3; None where it has none."""
    if not isinstance(raw, dict):
        return None
    if isinstance(raw.get("cells"), list):
        return list(raw["cells"])
    if isinstance(sheets := raw.get("worksheets"), list):
        return [cell for sheet in sheets if isinstance(sheet, dict) for cell in _listed(sheet.get("cells"))]
    return None


def _code(cell: Any) -> str:
    """A cell's code, which format 3 calls `input`; "" where it is not code."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return ""
    return _joined(cell["source"] if "source" in cell else cell.get("input"))


def _joined(lines: Any) -> str:
    """A cell's text, which is stored whole or by lines."""
    return lines if isinstance(lines, str) else "".join(line for line in _listed(lines) if isinstance(line, str))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def parsed(text: str) -> ast.Module:
    """The syntax tree of `text`, checked as far as Python checks without running it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is the student's, not the grader's
        tree = ast.parse(text)
        compile(tree, "<cell>", "exec", dont_inherit=True)
    return tree


# Code cells


def _statements(number: int, code: str, module: str) -> list[_Statement] | str:
    """The statements of cell `number`, or a note that says why it was left out."""
    left_out = f"cell {number} was left out: "
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if magic := _CELL_MAGIC.match(code):
        if magic[2] not in _TIMING_MAGICS:
            return f"{left_out}it is a {visible('%%' + magic[2], 20)} cell, not Python"
        code = code[: magic.start(1)] + code[magic.end(1) :]
    if max(map(len, code.split("\n"))) > MAX_CODE_LINE:
        return f"{left_out}it has a line of more than {MAX_CODE_LINE} characters"
    if "\0" in code:
        return f"{left_out}it holds a null byte"
    try:
        try:
            tree = parsed(code)
        except SyntaxError:
            code = _without_ipython(code)
            tree = parsed(code)
        return list(_split(number, code, tree, module))
    except SyntaxError as error:
        return f"{left_out}it has a syntax error" + (f" on its line {error.lineno}" if error.lineno else "")
    except UNPARSABLE:
        return f"{left_out}Python cannot parse it"


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


# What a line starts in: the quotes of an open string, the depth of brackets, whether the line before goes on.
_NEUTRAL = ("", 0, False)
_MAGIC = ("%", 0, True)  # an IPython command that goes on over the line's end


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


def _split(number: int, code: str, tree: ast.Module, module: str) -> Iterator[_Statement]:
    raw = code.encode()
    starts = [0, *itertools.accumulate(len(line) + 1 for line in raw.split(b"\n"))]
    position = 0
    for node in tree.body:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = raw[position:end].decode()
        position = end
        statement = _Statement(number, node, text)
        yield _with_scope(statement) if _may_define(node, module) else statement


def _may_define(node: ast.stmt, module: str) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module not in ("__future__", module)
    if isinstance(node, ast.If):
        return not any(isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test))
    return isinstance(node, _DEFINING + _LOOPS)


def _with_scope(statement: _Statement) -> _Statement:
    """The statement with what it binds, changes and uses; a star import binds `*`."""
    text = _JOINT.sub("", statement.text, count=1)
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
    if isinstance(node, _DEFINITIONS):
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


# What to keep of a notebook


def _with_changes(statements: Sequence[_Statement]) -> list[_Statement]:
    """Statements, with a change to what the notebook itself made counted as binding it.

    A definition under the notebook's own decorator or base class may enter itself in a register somewhere: it
    binds `*`, which is always needed.
    """
    own = frozenset[str]().union(*(one.binds for one in statements if not isinstance(one.node, _IMPORTS)))
    changed: list[_Statement] = []
    for statement in statements:
        changes = statement.changes & own
        if changes and isinstance(statement.node, _DEFINITIONS):
            changes = frozenset("*")
        changed.append(replace(statement, binds=statement.binds | changes))
    return changed


def _chosen(
    statements: Sequence[_Statement], cells: Sequence[_CodeCell], graded: Sequence[str]
) -> tuple[list[_Statement], list[str]]:
    """Statements without the definitions that come after the one that counts, and a note on each choice.

    Of several definitions of a graded function, one that does something counts before a stub, one in the function's
    own answer cell before others, then the last. Earlier ones may stay: they may be in use where they stand.
    """
    kept, notes = list(statements), []
    for name in graded:
        places = [index for index, one in enumerate(kept) if _defines(one, name)]
        if len(places) < 2:
            continue
        best = max(places, key=lambda i: (not is_stub(kept[i].node), cells[kept[i].cell - 1].grade_id == name, i))
        for index in places[places.index(best) + 1 :]:
            kept[index] = replace(kept[index], binds=kept[index].binds - {name})
        numbers = sorted({statements[index].cell for index in places})
        if len(numbers) > 1 and sum(not is_stub(statements[index].node) for index in places) > 1:
            notes.append(f"cells {_listing(numbers)} define {name}: that of cell {statements[best].cell} counts")
    return kept, notes


def _defines(statement: _Statement, name: str) -> bool:
    return isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef) and statement.node.name == name


def is_stub(node: ast.AST) -> bool:
    """Whether a function does nothing but raise NotImplementedError, as all are handed out."""
    if not isinstance(node, ast.FunctionDef):
        return False
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    raised = body[0].exc if len(body) == 1 and isinstance(body[0], ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


def _definitions(statements: Sequence[_Statement]) -> frozenset[str]:
    """Every name that a notebook defines: functions, classes, and other names for them."""
    defined: set[str] = set()
    for statement in statements:
        value = statement.node.value if isinstance(statement.node, ast.Assign) else None
        renamed = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in defined)
        if renamed or isinstance(statement.node, _DEFINITIONS):
            defined |= statement.binds
    return frozenset(defined)


def _needed(statements: Sequence[_Statement], roots: frozenset[str]) -> frozenset[str]:
    """`roots` and the names that they use, directly or through others; star imports are always needed."""
    makers: defaultdict[str, list[_Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.binds if _is_kept(statement, statement.binds) else ():
            makers[name].append(statement)
    needed = {"*", *roots}
    queue = list(needed)
    seen: set[int] = set()
    for name in queue:
        for statement in makers[name]:
            new = statement.uses - needed if id(statement) not in seen else frozenset[str]()
            seen.add(id(statement))
            needed |= new
            queue += new
    return frozenset(needed)


def _is_kept(statement: _Statement, names: frozenset[str]) -> bool:
    return not isinstance(statement.node, _LOOPS) and not names.isdisjoint(statement.binds)


def _defined_twice(statements: Sequence[_Statement], graded: Sequence[str]) -> list[str]:
    cells: dict[str, list[int]] = {}
    for statement in statements:
        if isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef) and statement.node.name not in graded:
            cells.setdefault(statement.node.name, []).append(statement.cell)
    return [
        f"cells {_listing(sorted(set(numbers)))} define {visible(name, 60)}: the last one counts"
        for name, numbers in cells.items()
        if len(set(numbers)) > 1
    ]


def _loops_left_out(statements: Sequence[_Statement], names: frozenset[str]) -> list[str]:
    return [
        f"cell {statement.cell}: a loop that sets {_listing(sorted(names & statement.binds))} was left out, "
        "since only definitions are graded"
        for statement in statements
        if isinstance(statement.node, _LOOPS) and names & statement.binds
    ]


def _listing(values: Sequence[object]) -> str:
    *most, last = (visible(str(value), 60) for value in values)
    return f"{', '.join(most)} and {last}" if most else last


def _source(statements: Sequence[_Statement], names: frozenset[str]) -> str:
    """The kept statements in order: each cell under a line `# cell 7`, line for line as it stands there."""
    future = any(
        isinstance(statement.node, ast.ImportFrom)
        and statement.node.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.node.names)
        for statement in statements
    )
    lines = ["from __future__ import annotations\n"] if future else []
    for number, group in itertools.groupby(statements, key=lambda statement: statement.cell):
        cell = list(group)
        if any(_is_kept(statement, names) for statement in cell):
            lines.append(f"# cell {number}\n{_cell_source(cell, names)}\n")
    return "\n".join(lines)


def _cell_source(cell: Sequence[_Statement], names: frozenset[str]) -> str:
    """The cell's text with everything but line breaks taken out of the statements that are not kept."""
    kept = ""
    for statement in cell:
        text = statement.text
        if not _is_kept(statement, names):
            text = "\n" * text.count("\n")
        elif not kept or kept.endswith("\n"):  # nothing is left before it on its line: no semicolon either
            text = _JOINT.sub(lambda joint: "\n" * joint[0].count("\n"), text, count=1)
        kept += text
    return kept.rstrip("\n")
