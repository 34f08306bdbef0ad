"""Values of a right answer in the place of a student's expressions: where they mend the calls is the fault.

Staff have the course's solution. It runs in a worker of its own on the public cases, whose answers students have, and
what its expressions come to is kept. In the student's function such values stand in for one expression at a time,
first for those that come to no value of the solution. The first after which the calls are right is where the fault is,
if few lines hold all that it is made of and that is no value of the solution, either: the last of them; a name is made
where it is changed. Of the solution nothing but these values gets to where student code runs.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from autograder.sandbox.calls import Array, Outcome
from autograder.sandbox.worker.frames import WATCH

Values = dict[int, Array]  # expression → float[time …]: what it came to in one call; those first that were first
SMALL = 10  # a whole number up to it says nothing of where it comes from
UNWATCHED = (ast.Starred, ast.Slice, ast.Lambda, ast.GeneratorExp)


class Watching(ast.NodeTransformer):
    """Lets a source tell what its expressions come to.

    text    the source that does
    lines   number of an expression → its line
    parts   number → the numbers of what it is made of; constants are left out, and have none themselves
    names   number of an expression that is a name → the name
    truths  the numbers of conditions, but those of `while`
    outside the numbers of expressions that stand in no definition
    stores  name → each line that changes it, with the expression that it becomes: -1 for a constant, None for others
    """

    def __init__(self, source: str, units: Collection[int], modules: Collection[str]) -> None:
        """Watch the definitions that begin on the lines `units`; the names of modules are no values."""
        self.lines: dict[int, int] = {}
        self.parts: dict[int, list[int]] = {}
        self.names: dict[int, str] = {}
        self.truths: list[int] = []
        self.stores: dict[str, list[tuple[int, int | None]]] = {}
        self._modules = modules
        self._bare: ast.AST | None = None  # what is called
        self._repeats: ast.AST | None = None  # until when a loop goes on
        self._open: list[int] = []  # expressions inside the one that is visited
        self.outside: set[int] = set()
        module = ast.parse(source)
        bodies = []
        for node in module.body:
            first = len(self.lines)
            bodies.append(self.visit(node) if node.lineno in units else node)
            if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.outside.update(range(first, len(self.lines)))
        module.body = [node for body in bodies for node in (body if isinstance(body, list) else [body])]
        self.text = ast.unparse(ast.fix_missing_locations(module))

    def visit(self, node: ast.AST) -> Any:
        """Put a call around each expression that is read, those inside first."""
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.arguments | ast.JoinedStr | ast.pattern):
            return node
        is_bare, before = node is self._bare, len(self._open)
        self._bare = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):  # what comes of it stands nowhere
            old, new = (ast.copy_location(ast.Name(node.target.id, ast.Load()), node) for _ in range(2))
            lines = [
                ast.Expr(self.visit(old)),
                self.generic_visit(node),
                ast.Assign([node.target], self._watched(new, before)),
            ]
            self._stores(node.target, None)
            del self._open[before:]
            return [ast.copy_location(line, node) for line in lines]
        match node:
            case ast.Assign():
                is_constant = not any(isinstance(inner, ast.Name) for inner in ast.walk(node.value))
            case ast.AugAssign(target=changed) | ast.Expr(ast.Call(ast.Attribute(changed))):  # as `rows.append(row)`
                self._stores(changed, None)
            case ast.While(test=test):
                self._repeats = test
        self.generic_visit(node)
        if isinstance(node, ast.Assign):
            values = [-1, *([] if is_constant else self._open[before:])]
            for target in node.targets:
                self._stores(target, values[-1] if isinstance(target, ast.Name) else None)
        if isinstance(node, ast.stmt):
            del self._open[before:]
        is_index = isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts)
        is_read = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        is_module = isinstance(node, ast.Name) and node.id in self._modules
        if is_bare or is_index or is_module or not is_read or isinstance(node, UNWATCHED):
            return node
        assert isinstance(node, ast.expr)
        if isinstance(node, ast.Name):
            self.names[len(self.lines)] = node.id
        is_truth = isinstance(node, ast.Compare | ast.BoolOp) or isinstance(getattr(node, "op", None), ast.Not)
        if is_truth and node is not self._repeats:
            self.truths.append(len(self.lines))
        return self._watched(node, before)

    def _watched(self, node: ast.expr, before: int) -> ast.Call:
        self.lines[number := len(self.lines)] = node.lineno
        if not isinstance(node, ast.Constant):
            self.parts[number] = self._open[before:]
            self._open[before:] = [number]
        return ast.Call(ast.Name(WATCH, ast.Load()), [ast.Constant(number), node], [])

    def _stores(self, target: ast.expr, value: int | None) -> None:
        indices = {inner for at in ast.walk(target) if isinstance(at, ast.Subscript) for inner in ast.walk(at.slice)}
        for at in ast.walk(target):
            if isinstance(at, ast.Name) and at not in indices:
                self.stores.setdefault(at.id, []).append((target.lineno, value))

    def lines_of(self, expression: int, unknown: Collection[int], ran: Collection[int]) -> set[int]:
        """Return the lines of an unknown expression and of all unknown that it is made of, names included.

        ran   lines that ran: only there is a name changed
        """
        lines, waiting, seen = set[int](), [expression], set[int]()
        while waiting:
            if (at := waiting.pop()) in seen:
                continue
            seen.add(at)
            if name := self.names.get(at):
                stored = self.stores.get(name, [])
                lines.update(line for line, value in stored if value is None and line in ran)
                waiting += [value for _, value in stored if value is not None and value in unknown]
            else:
                lines.add(self.lines[at])
                waiting += [part for part in self.parts[at] if part in unknown]
        return lines


def values_in(outcome: Outcome) -> Values:
    """Read what the expressions of a watched source came to; raise whatever where the answer contradicts itself."""
    if outcome.observation is None or (kept := outcome.observation.returned[WATCH].array) is None:
        return {}
    values, begin = Values(), 0
    for number, shape in outcome.observation.facts[WATCH]:
        values[number] = kept[begin : (begin := begin + math.prod(shape))].reshape(shape)
    return values


class Known:
    """Arrays that are known to be right, at one time or over all, their numbers in any order."""

    def __init__(self, arrays: Iterable[Array]) -> None:
        """Sort the numbers of these arrays, and of each of their first axes."""
        rows: dict[int, list[Array]] = {}
        for array in arrays:
            for part in (array, *(array if array.ndim else ())):
                rows.setdefault(part.size, []).append(np.sort(part, None))
        self._rows = {size: np.array(parts, float) for size, parts in rows.items()}

    def holds(self, array: Array) -> bool:
        """Tell whether these numbers are among the known ones, or say nothing of where they come from."""
        lowest, greatest = array.min(initial=np.inf), array.max(initial=-np.inf)
        if lowest == greatest and abs(greatest) <= SMALL and float(greatest).is_integer():
            return True
        rows = self._rows.get(array.size, np.zeros((0, array.size)))
        return bool(close(np.sort(array, None), rows).any())


def close(numbers: Array, rows: Array) -> Any:
    """Tell of each row whether these numbers agree with it as far as rounding goes."""
    greatest = np.abs(rows, where=np.isfinite(rows), out=np.zeros(rows.shape)).max(axis=-1, initial=0.0, keepdims=True)
    return np.isclose(numbers, rows, rtol=1e-4, atol=1e-6 * greatest, equal_nan=True).all(axis=-1)
