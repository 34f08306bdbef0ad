"""Values of a right answer in the place of a student's expressions: where they mend the calls is the fault.

Staff have the course's solution. It runs in a worker of its own on the public cases, whose answers students have, and
what its expressions come to is kept. In the student's function such values stand in for one expression at a time. The
first after which the calls are right, while what it is made of is right without, is where the fault is, if there is but
one such line. Of the solution nothing but these values gets to where student code runs.
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
    names   numbers of those expressions that are names
    """

    def __init__(self, source: str, units: Collection[int], modules: Collection[str]) -> None:
        """Watch the definitions that begin on the lines `units`; the names of modules are no values."""
        self.lines: dict[int, int] = {}
        self.parts: dict[int, list[int]] = {}
        self.names: set[int] = set()
        self._modules = modules
        self._bare: ast.AST | None = None  # what is called
        self._open: list[int] = []  # expressions inside the one that is visited
        module = ast.parse(source)
        module.body = [self.visit(node) if node.lineno in units else node for node in module.body]
        self.text = ast.unparse(ast.fix_missing_locations(module))

    def visit(self, node: ast.AST) -> Any:
        """Put a call around each expression that is read, those inside first."""
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_docstring or isinstance(node, ast.arguments | ast.JoinedStr | ast.pattern):
            return node
        is_bare, before = node is self._bare, len(self._open)
        self._bare = node.func if isinstance(node, ast.Call) else None
        self.generic_visit(node)
        if isinstance(node, ast.stmt):
            del self._open[before:]
        is_index = isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts)
        is_read = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        is_module = isinstance(node, ast.Name) and node.id in self._modules
        if is_bare or is_index or is_module or not is_read or isinstance(node, UNWATCHED):
            return node
        assert isinstance(node, ast.expr)
        self.lines[number := len(self.lines)] = node.lineno
        if isinstance(node, ast.Name):
            self.names.add(number)
        if not isinstance(node, ast.Constant):
            self.parts[number] = self._open[before:]
            self._open[before:] = [number]
        return ast.Call(ast.Name(WATCH, ast.Load()), [ast.Constant(number), node], [])


def values_in(outcome: Outcome) -> Values:
    """Read what the expressions of a watched source came to; raise whatever where the answer contradicts itself."""
    if outcome.observation is None or (kept := outcome.observation.returned[WATCH].array) is None:
        return {}
    values, begin = Values(), 0
    for number, shape in outcome.observation.facts[WATCH]:
        values[number] = kept[begin : (begin := begin + math.prod(shape))].reshape(shape)
    return values


def holds(known: Iterable[Array], array: Array | None) -> bool:
    """Tell whether these numbers, in any order, are among the known ones, at one time or over all."""
    if array is None:
        return False
    if array.size and array.min() == array.max() and float(array.flat[0]).is_integer() and abs(array.flat[0]) <= SMALL:
        return True
    alike = (part for other in known for part in (other, *(other if other.ndim else ())) if part.size == array.size)
    return any(close(np.sort(array, None), np.sort(part, None)) for part in alike)


def close(one: Array, other: Array) -> bool:
    """Tell whether two arrays of one shape agree as far as rounding goes."""
    greatest = np.abs(other, where=np.isfinite(other), out=np.zeros(other.shape)).max(initial=0.0)
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-6 * greatest, equal_nan=True))
