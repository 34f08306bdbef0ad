"""Known mistakes → the line of a student's function that makes one, found by comparing syntax trees.

The catalogue holds a right text and the wrong one. Where both differ, the wrong text has something of its own: an
expression, a statement that is new or stands elsewhere, or a place where a statement is missing. The line of the
student's function that has the same is the line to mark, if there is just one. Names of local variables match anything.
"""

from __future__ import annotations

import ast
import copy
import difflib
import importlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from autograder.authoring.fixtures.regenerate import package_of
from autograder.grading.assignment import load_assignment
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.submissions.submission import UNPARSABLE

MAX_NODES, MAX_CHARACTERS = 2_500, 20_000  # of what is searched
ALIKE, APART = 0.6, 0.15  # how alike two statements must be, and how much less any other
NEARLY_SAME = 0.75  # how alike a function and a right answer must be, before one difference is the fault
COMMON_NUMBERS = (-1, 0, 1, 2, 0.0, 1.0, 2.0, 0.5)  # they stand anywhere
LIBRARIES = ("torch", "np", "numpy", "math", "F", "functional", "nn")
LOCAL = "_"  # stands for any local variable
REDUCTIONS = frozenset(
    ("mean", "std", "var", "sum", "prod", "amax", "amin", "max", "min", "argmax", "argmin", "argsort", "cumsum",
     "logsumexp", "softmax", "log_softmax")
)  # fmt: skip
SIMPLE = (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)
KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "ddof": "correction", "unbiased": "correction"}
FUNCTIONS = {"clip": "clamp", "concatenate": "cat", "absolute": "abs", "pow": "power", "power": "power"}
CORRECTIONS = {"True": ast.Constant(1), "False": ast.Constant(0)}

Known = Mapping[tuple[str, str], tuple[str, str]]


def known_texts(folder: Path) -> Known:
    """Read (function, slug) → (right text, wrong text); {} where there is no catalogue that can be read.

    folder   the assignment's fixtures: its catalogue is imported in a process of its own
    """
    if not (folder / "mistakes").is_dir() and not (folder / "mistakes.py").is_file():
        return {}
    try:
        rows = run_in_subprocess(_catalogue, folder)
    except Exception:  # whatever is wrong with a catalogue keeps no page from being made
        return {}
    return {(function, slug): (right, wrong) for function, slug, right, wrong in rows if right}


def _catalogue(folder: Path) -> list[tuple[str, str, str, str]]:
    module = importlib.import_module(f"{package_of(load_assignment(folder))}.mistakes")
    return [(mistake.function, mistake.slug, mistake.correct, mistake.source) for mistake in module.MISTAKES]


def fault_line(text: str, name: str, slugs: Sequence[str], known: Known) -> int | None:
    """Return the line, from 1, of a student's function that makes these mistakes; None where that is unclear.

    Without a name for the fault, it is the only line that differs from a right answer, where there is one such line.

    text   holds that function, and perhaps others that it calls, on their lines
    """
    if len(text.strip()) > MAX_CHARACTERS:
        return None
    texts = [known[name, slug] for slug in slugs if (name, slug) in known]
    try:
        student = _functions(text, name)
        if not student or sum(1 for function in student for _ in ast.walk(function)) > MAX_NODES:
            return None
        found = {line for pair in texts if (line := _line_of_mistake(student, *pair)) is not None}
        if not found:
            answers = {right for (function, _), (right, _) in known.items() if function == name}
            found = {line for right in answers if (line := _only_difference(student[0], right, name)) is not None}
    except UNPARSABLE:  # ValueError: a number of more digits than Python writes out
        return None
    return found.pop() if len(found) == 1 else None


# Where two texts differ


@dataclass(frozen=True)
class Site:
    """A place where a wrong text differs from the right one.

    patterns   what the wrong text has there alone, the smallest first
    statement  of the wrong text, that all of it lies in
    depth      of loops around a statement that stands elsewhere in the right text; None for others
    """

    patterns: tuple[ast.AST, ...]
    statement: ast.stmt
    depth: int | None = None


@lru_cache(maxsize=1_000)
def sites_of(right: str, wrong: str) -> tuple[Site, ...]:
    """Return where the wrong text differs, in its order."""
    ours, theirs = _functions(right), _functions(wrong)
    if not ours or not theirs:
        return ()
    nodes = list(ast.walk(ours[0]))
    sites = []
    for trail, is_beside in _differences(ours[0], theirs[0], ()):
        statement = next(node for node in reversed(trail) if isinstance(node, ast.stmt))
        expressions = [node for node in ast.iter_child_nodes(statement) if _says_something(node)]
        if is_beside:
            sites.append(Site(tuple(expressions), statement))
        elif trail[-1] is statement:
            parts = [node for part in expressions for node in ast.walk(part)]
            calls = [node for node in parts if node in expressions or isinstance(node, ast.Call)]
            new = [node for node in calls if not any(_matches(node, other) for other in nodes)]
            depth = None if new else _loops_around(theirs[0], statement)
            sites.append(Site(tuple(new or expressions), statement, depth))
        else:
            own = [node for node in reversed(trail[trail.index(statement) :]) if _says_something(node)]
            new = [node for node in own if not any(_matches(node, other) for other in nodes)]
            sites.append(Site(tuple(new), statement))
    return tuple(sites)


def _differences(
    right: ast.AST, wrong: ast.AST, trail: tuple[ast.AST, ...]
) -> Iterator[tuple[tuple[ast.AST, ...], bool]]:
    """Yield the path to each difference in the wrong tree; with True, to the statement beside one that is missing."""
    trail = (*trail, wrong)
    if ast.dump(right) == ast.dump(wrong):
        return
    if type(right) is not type(wrong):
        yield trail, False
        return
    ours, theirs = list(ast.iter_fields(right)), list(ast.iter_fields(wrong))
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        if isinstance(mine, ast.AST) and isinstance(other, ast.AST):
            yield from _differences(mine, other, trail)
        elif isinstance(mine, list) and isinstance(other, list):
            if any(isinstance(node, ast.stmt) for node in (*mine, *other)):
                yield from _in_blocks(mine, other, trail)
            elif len(mine) == len(other) and all(isinstance(node, ast.AST) for node in (*mine, *other)):
                for pair in zip(mine, other, strict=True):
                    yield from _differences(*pair, trail)
            elif len(mine) != len(other) or mine != other:
                yield trail, False
        elif mine != other:
            yield trail, False


def _in_blocks(
    right: Sequence[ast.stmt], wrong: Sequence[ast.stmt], trail: tuple[ast.AST, ...]
) -> Iterator[tuple[tuple[ast.AST, ...], bool]]:
    dumps = [ast.dump(node) for node in right], [ast.dump(node) for node in wrong]
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, *dumps, autojunk=False).get_opcodes():
        ours, theirs = list(right[begin:end]), list(wrong[first:last])
        if kind == "delete" and wrong:
            yield (*trail, wrong[min(first, len(wrong) - 1)]), True
        elif kind == "replace" and len(ours) == len(theirs):
            for pair in zip(ours, theirs, strict=True):
                yield from _differences(*pair, trail)
        elif kind == "replace":  # each of theirs beside the most similar of ours
            for node in theirs:
                nearest = max(ours, key=lambda other, node=node: _similarity(other, node))  # type: ignore[misc]
                if _similarity(nearest, node) > ALIKE:
                    yield from _differences(nearest, node, trail)
                else:
                    yield (*trail, node), False
        elif kind == "insert":
            for node in theirs:
                yield (*trail, node), False


# The same in a student's function


def _line_of_mistake(student: Sequence[ast.AST], right: str, wrong: str) -> int | None:
    sites = sites_of(right, wrong)
    nodes = [node for function in student for node in ast.walk(function)]
    is_ambiguous = False
    for site in sites:
        for pattern in site.patterns:
            alike = [node for node in nodes if _matches(pattern, node, loosely=True)]
            if site.depth is not None:
                alike = [node for node in alike if _loops_around(student[0], node) == site.depth]
            lines = {node.lineno for node in alike if isinstance(node, ast.expr | ast.stmt)}
            if len(lines) == 1:
                return lines.pop()
            is_ambiguous |= len(lines) > 1
    if is_ambiguous:
        return None
    for site in sites:  # no expression is the same: the statement that is most alike, if no other is nearly so
        scores = {node.lineno: _similarity(site.statement, node) for node in nodes if isinstance(node, SIMPLE)}
        best = max(scores.values(), default=0.0)
        nearest = [line for line, score in scores.items() if score > best - APART]
        if isinstance(site.statement, SIMPLE) and best > ALIKE and len(nearest) == 1:
            return nearest[0]
    return None


def _only_difference(student: ast.AST, right: str, name: str) -> int | None:
    """Return the one line of the student's function that a right text has otherwise."""
    lines = set()
    for answer in _functions(right, name)[:1]:
        if _similarity(answer, student) < NEARLY_SAME:
            return None
        for trail, _ in _differences(answer, student, ()):
            inner = [node for node in trail[1:] if isinstance(node, ast.expr | ast.stmt)]
            if not inner:
                return None
            lines.add(inner[-1].lineno)
    return lines.pop() if len(lines) == 1 else None


def _matches(pattern: object, node: object, *, loosely: bool = False) -> bool:
    """Tell whether a node has the form of a pattern, in which a local variable stands for any expression.

    loosely   a local variable of the node stands for any name, such as an argument's
    """
    if isinstance(pattern, ast.Name):
        is_open = pattern.id == LOCAL or (loosely and isinstance(node, ast.Name) and node.id == LOCAL)
        return isinstance(node, ast.expr) if is_open else isinstance(node, ast.Name) and node.id == pattern.id
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, list) and isinstance(node, list):
        pairs = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(_matches(*pair, loosely=loosely) for pair in pairs)
    if isinstance(pattern, ast.AST) and isinstance(node, ast.AST):
        return all(
            _matches(getattr(pattern, part, None), getattr(node, part, None), loosely=loosely)
            for part in pattern._fields
        )
    return bool(pattern == node)


def _says_something(node: ast.AST) -> bool:
    """Tell whether a node is more than what stands anywhere: a name, a common number, a variable with a sign."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and node.value not in COMMON_NUMBERS
    if isinstance(node, ast.UnaryOp):
        return _says_something(node.operand)
    if isinstance(node, ast.stmt):
        return isinstance(node, ast.AugAssign | ast.Delete)
    locals_and_parts = (ast.Name, ast.expr_context, ast.operator, ast.cmpop)
    names = [part for part in ast.walk(node) if not isinstance(part, locals_and_parts)]
    return isinstance(node, ast.expr) and not isinstance(node, ast.Name) and len(names) >= 1


def _similarity(one: ast.AST, other: ast.AST) -> float:
    """Return the share of what both hold, 0 to 1."""
    ours, theirs = (Counter(map(ast.dump, ast.walk(node))) for node in (one, other))
    return 2 * (ours & theirs).total() / (ours.total() + theirs.total())


def _loops_around(tree: ast.AST, node: ast.AST) -> int:
    loops = (loop for loop in ast.walk(tree) if isinstance(loop, ast.For | ast.While))
    return sum(any(inner is node for inner in ast.walk(loop)) for loop in loops)


# One spelling


def _functions(text: str, name: str = "") -> list[ast.AST]:
    """Return the function of that name, or the first, and those that it calls, in one spelling."""
    defined = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    names = [name or next(iter(defined), "")]
    functions: list[ast.AST] = []
    for each in names:
        if each in defined:
            names += {
                node.id: 0 for node in ast.walk(defined[each]) if isinstance(node, ast.Name) and node.id not in names
            }
            is_helper = bool(functions)
            functions.append(Spelling(defined[each], is_helper=is_helper).visit(copy.deepcopy(defined[each])))
    return functions


class Spelling(ast.NodeTransformer):
    """Writes `torch.exp(x)` like `x.exp()`, an axis by name, keywords in order, each local variable as LOCAL."""

    def __init__(self, function: ast.FunctionDef, *, is_helper: bool) -> None:
        """Collect the local names of a function; its parameters are among them if it is a student's own helper."""
        arguments = function.args
        parameters = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
        names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
        stored = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        self.locals = stored | parameters if is_helper else stored - parameters

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """Drop what is not computed."""
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.copy_location(ast.Pass(), node.body[0])]
        node.returns, node.decorator_list = None, []
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """Drop the annotation."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Write `x: int = 1` like `x = 1`."""
        plain = node if node.value is None else ast.copy_location(ast.Assign([node.target], node.value), node)
        return self.generic_visit(plain)

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Write any local variable alike."""
        name = LOCAL if node.id in self.locals else node.id
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Write methods like functions of a library, and arguments by name where both ways are usual."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute):
            owner = node.func.value
            root = owner
            while isinstance(root, ast.Attribute):
                root = root.value
            if not (isinstance(root, ast.Name) and root.id in LIBRARIES):
                node.args = [owner, *node.args]
            name = FUNCTIONS.get(node.func.attr, node.func.attr)
            node.func = ast.copy_location(ast.Name(name, ast.Load()), node)
        if isinstance(node.func, ast.Name) and node.func.id in REDUCTIONS:
            if (
                len(node.args) == 2
                and not isinstance(node.args[1], ast.Starred)
                and not any(keyword.arg in ("dim", "axis") for keyword in node.keywords)
            ):
                node.keywords.append(ast.keyword("dim", node.args.pop()))
            node.keywords = list(map(_plain, node.keywords))
        node.keywords.sort(key=lambda keyword: keyword.arg or "")
        return node


def _plain(keyword: ast.keyword) -> ast.keyword:
    value = CORRECTIONS.get(ast.unparse(keyword.value), keyword.value) if keyword.arg == "unbiased" else keyword.value
    return ast.keyword(KEYWORDS.get(keyword.arg or "", keyword.arg), value)
