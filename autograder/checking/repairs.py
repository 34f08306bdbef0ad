"""Small changes of a student's text that may mend it: what the mistakes of a catalogue do, the other way round.

A change is of one expression or statement. Which of them mends is for the cases to say: nobody reads the changed text.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.submissions.submission import BREAK

TORCH = ("torch", "F", "nn", "math", "copy", "random", "itertools", "functools", "statistics")
NUMPY = ("np", "numpy")
ALIKE = (  # names of which one is written for another
    ("mean", "sum", "nanmean", "median"), ("max", "min", "amax", "amin"), ("maximum", "minimum"), ("fmax", "fmin"),
    ("argmax", "argmin"), ("exp", "log", "expm1"), ("log", "log2", "log10"), ("std", "var"), ("any", "all"),
    ("floor", "ceil", "rint", "round", "trunc"), ("sqrt", "square"), ("abs", "square"), ("zeros", "ones"),
    ("zeros_like", "ones_like"), ("softmax", "log_softmax"), ("sigmoid", "logsigmoid"), ("float", "int"),
    ("float", "double"), ("float32", "float64"), ("logical_and", "logical_or"), ("cumsum", "cumprod"),
    ("prod", "sum"), ("expand", "repeat"), ("repeat", "tile", "repeat_interleave"), ("add_", "sub_"),
    ("clip_grad_norm_", "clip_grad_value_"), ("train", "eval"), ("rint", "floor", "int"), ("ValueError", "KeyError", "TypeError", "RuntimeError", "NotImplementedError", "AssertionError", "Exception"),
    ("set", "list", "Counter", "sorted"), ("min", "max"),
)  # fmt: skip
REDUCTIONS = frozenset(("mean", "sum", "max", "min", "amax", "amin", "std", "var", "argmax", "argmin", "softmax", "log_softmax", "logsumexp", "cumsum", "norm", "any", "all", "prod"))  # fmt: skip
COMPARED = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE), ast.LtE: (ast.Lt, ast.GtE, ast.Gt), ast.Gt: (ast.GtE, ast.Lt, ast.LtE, ast.NotEq),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt), ast.Eq: (ast.NotEq, ast.GtE, ast.LtE), ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATED = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div), ast.Mult: (ast.Div, ast.Add, ast.Pow),
    ast.Div: (ast.Mult, ast.Sub, ast.FloorDiv), ast.FloorDiv: (ast.Div, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.MatMult: (ast.Mult,),
}  # fmt: skip
ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.Mod, ast.MatMult)
MAX_NODES = 3_000
FEW = 12  # names of a function that is no long one
UNTOUCHED = ("annotation", "returns", "decorator_list", "bases", "targets", "target")
GUARDS = ("detach", "clamp", "clip", "abs", "float", "double", "round", "sqrt", "maximum", "minimum", "int", "square")
# Kinds of changes, those first of which there are few and that mend often
KINDS = (
    "guard none turned masked operator compared unary constant renamed swapped moved inside axis in_place operand removed "
    "slice uncalled argument graph index added always number into modulo refused copied",
    "handed shifted minus name one moved_far",
    "dtype power named more factor",
    "item reduced combined",
)
RANKS = {kind: rank for rank, kinds in enumerate(KINDS) for kind in kinds.split()}
RUNGS = {
    "graph": {"graph", "gradient", "fact"}, "copied": {"purity", "fact", "values"}, "refused": {"error"}, "dtype": {"dtype", "fact"},
    "in_place": {"purity", "fact"}, "item": {"fact", "returned"},
}  # fmt: skip
NEEDS = {
    "error": {"refused", "compared", "none", "removed", "always", "unary", "renamed", "constant"},
    "dtype": {"dtype", "guard", "renamed", "name", "argument", "uncalled"},
    "purity": {"copied", "in_place", "renamed", "name", "uncalled"},
    "finite": {
        "masked",
        "shifted",
        "guard",
        "renamed",
        "constant",
        "compared",
        "inside",
        "turned",
        "operator",
        "uncalled",
    },
    "graph": {"graph", "guard", "name", "uncalled", "renamed", "argument", "constant"},
}


@dataclass(frozen=True)
class Repair:
    """A change of one thing: `field` of `owner` becomes `value`, on this line.

    kind   of change: see RANKS
    unit   the statement at the top level that holds it
    """

    kind: str
    line: int
    unit: ast.stmt
    owner: ast.AST
    field: str
    value: Any


class Text:
    """A student's function with all that it uses, and the ways to change them."""

    def __init__(self, source: str, name: str) -> None:
        """Take from a source what the function of that name reaches."""
        self._lines = BREAK.split(source)
        body = ast.parse(source).body
        defined: dict[str, list[ast.stmt]] = {}
        for node in body:
            for known in _names_defined(node):
                defined.setdefault(known, []).append(node)

        def reached(waiting: list[ast.stmt]) -> list[ast.stmt]:
            found = dict[ast.stmt, None]()
            while waiting:
                node = waiting.pop(0)
                if node not in found:
                    found[node] = None
                    used = (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
                    waiting += [other for each in used for other in defined.get(each, ())]
            return list(found)

        self.units = reached([*defined.get(name, ())[-1:]])
        definitions = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        needed = reached([node for node in (*self.units, *body) if node in self.units or node not in definitions])
        self._dropped = [node for node in definitions if node not in needed]
        self.constants = [each for each in defined if each.isupper()]
        self.torch = "torch" in source
        self.is_long = any(len(_scope(unit)) > FEW for unit in self.units)

    def with_repair(self, repair: Repair) -> str:
        """Write the changed source; what the function does not use is left out."""
        before = getattr(repair.owner, repair.field)
        setattr(repair.owner, repair.field, repair.value)
        try:
            text = ast.unparse(ast.fix_missing_locations(repair.unit))
        finally:
            setattr(repair.owner, repair.field, before)
        lines = [*self._lines]
        for node in self._dropped:
            _blank(lines, node)
        _blank(lines, repair.unit)
        lines[repair.unit.lineno - 1] = text
        return "\n".join(lines)

    def repairs(self, executed: Collection[int], alone: Collection[int], failure: str) -> list[Repair]:
        """List the changes of what was executed, those first that mend most often.

        executed   lines that run in each failing case; those `alone` in no passing one
        failure    how a case fails, by which some kinds of changes come late
        """
        found = [repair for unit in self.units for repair in self._changes(unit, executed)]
        needed = NEEDS.get(failure)

        def order(repair: Repair) -> int:
            far = failure not in RUNGS.get(repair.kind, {failure}) or bool(needed and repair.kind not in needed)
            rank = 0 if repair.kind == "handed" and self.is_long else RANKS[repair.kind]
            return 2 * rank + 5 * far + bool(alone and repair.line not in alone)

        return sorted(found, key=order)

    def _changes(self, unit: ast.stmt, executed: Collection[int]) -> Iterator[Repair]:
        if sum(1 for _ in ast.walk(unit)) > MAX_NODES:
            return
        names = _scope(unit)
        all_run = not executed or not isinstance(unit, ast.FunctionDef | ast.ClassDef)

        def runs(node: ast.AST, line: int) -> bool:
            return all_run or any(at in executed for at in range(line, (getattr(node, "end_lineno", None) or line) + 1))

        for owner, line in _with_lines(unit):
            if not runs(owner, line):
                continue
            for field, value in ast.iter_fields(owner):
                if field in UNTOUCHED:
                    continue
                if isinstance(value, ast.expr):
                    for kind, new in self._instead(value, names, owner):
                        yield Repair(kind, value.lineno, unit, owner, field, new)
                elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    for kind, at, block in self._blocks(value, names, owner, unit):
                        if runs(at, at.lineno):
                            yield Repair(kind, at.lineno, unit, owner, field, block)
                elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                    for index, each in enumerate(value):
                        for kind, new in self._instead(each, names, owner):
                            yield Repair(
                                kind, each.lineno, unit, owner, field, [*value[:index], new, *value[index + 1 :]]
                            )
                    for i, j in itertools.combinations(range(len(value)), 2) if field in ("args", "elts") else ():
                        swapped = [*value]
                        swapped[i], swapped[j] = swapped[j], swapped[i]
                        yield Repair("swapped", value[i].lineno, unit, owner, field, swapped)

    def statements(self, lines: Collection[int]) -> set[int]:
        """Return where the statements begin, of those on these lines, that hold no others."""
        nodes = (node for unit in self.units for node in ast.walk(unit) if isinstance(node, ast.stmt))
        return {
            n.lineno
            for n in nodes
            if not hasattr(n, "body") and any(at in lines for at in range(n.lineno, (n.end_lineno or 0) + 1))
        }

    # What may stand in the place of an expression

    def _instead(self, node: ast.expr, names: Sequence[str], owner: ast.AST) -> Iterator[tuple[str, ast.expr]]:
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                for other in COMPARED[type(op)]:
                    yield "compared", ast.Compare(left, [other()], [right])
                for name in names if isinstance(left, ast.Name) and isinstance(op, ast.Eq) else ():
                    yield "modulo", ast.Compare(ast.BinOp(left, ast.Mod(), ast.Name(name)), [op], [right])
            case ast.BinOp(left=left, op=op, right=right):
                for other in OPERATED.get(type(op), ()):
                    yield "operator", ast.BinOp(left, other(), right)
                yield "operand", left
                yield "operand", right
                if isinstance(op, ast.Div) and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
                    yield "turned", ast.BinOp(ast.BinOp(left.left, ast.Mult(), right), ast.Div(), left.right)
                if isinstance(op, ast.Mult):
                    for one, other in ((left, right), (right, left)):
                        where = f"{'torch' if self.torch else 'np'}.where"
                        yield (
                            "masked",
                            ast.Call(
                                ast.Name(where),
                                [ast.Compare(one, [ast.NotEq()], [ast.Constant(0)]), other, ast.Constant(0.0)],
                                [],
                            ),
                        )
                if isinstance(op, ORDERED):
                    yield "turned", ast.BinOp(right, op, left)
                for one, other, first in ((left, right, True), (right, left, False)):
                    if isinstance(one, ast.Call):  # f(a) * b for f(a * b)
                        for rebuilt in _inside(
                            one, lambda inner: ast.BinOp(inner, op, other) if first else ast.BinOp(other, op, inner)
                        ):
                            yield "inside", rebuilt
            case ast.UnaryOp(operand=operand):
                yield "unary", operand
            case ast.BoolOp(op=op, values=values):
                yield "compared", ast.BoolOp(ast.And() if isinstance(op, ast.Or) else ast.Or(), values)
                for value in values:
                    yield "unary", value
                if isinstance(op, ast.Or) and len(values) == 2:
                    yield (
                        "none",
                        ast.IfExp(ast.Compare(values[0], [ast.IsNot()], [ast.Constant(None)]), values[0], values[1]),
                    )
            case ast.IfExp(test=test, body=body, orelse=orelse):
                yield "turned", ast.IfExp(test, orelse, body)
                yield "unary", body
                yield "unary", orelse
                if isinstance(test, ast.Name):
                    yield "none", ast.IfExp(ast.Compare(test, [ast.IsNot()], [ast.Constant(None)]), body, orelse)
            case ast.Constant(value=bool(value)):
                yield "constant", ast.Constant(not value)
            case ast.Constant(value=int(value)):
                for other in dict.fromkeys((value + 1, value - 1, 0, 1, -1, 2)):
                    if other != value:
                        yield "constant", _number(other)
                if isinstance(owner, ast.Subscript):
                    for name in names:
                        yield "index", ast.Name(name)
            case ast.Constant(value=float(value)):
                for number in dict.fromkeys((0.0, 1.0, 2.0, 0.5, -1.0, -value, 1 / value if value else 0.0)):
                    if number != value:
                        yield "number", _number(number)
                for name in (*self.constants, *(names if len(names) <= FEW else ())):
                    yield "named", ast.Name(name)
            case ast.Constant(value=str(value)):
                for group in (("sum", "mean", "none"),):
                    for other in group if value in group else ():
                        yield "constant", ast.Constant(other)
            case ast.Name(id=name):
                if not isinstance(owner, ast.Call) or owner.func is not node:
                    for other in (
                        names
                        if len(names) <= FEW or isinstance(owner, ast.Call | ast.Attribute | ast.Subscript | ast.Tuple)
                        else ()
                    ):
                        if other != name:
                            yield "name", ast.Name(other)
                    for other in self.constants if name in self.constants else ():
                        yield "constant", ast.Name(other)
                elif new := _renamed(name):
                    for other in new:
                        yield "renamed", ast.Name(other)
            case ast.Attribute(value=value, attr=attr):
                for other in _renamed(attr):
                    yield "renamed", ast.Attribute(value, other)
            case ast.Subscript(value=value, slice=index):
                yield "unary", value
                for other in _slices(index):
                    yield "slice", ast.Subscript(value, other)
                for name in names if isinstance(index, ast.Name | ast.Constant) and len(names) <= FEW else ():
                    yield "index", ast.Subscript(value, ast.Name(name))
            case ast.Call():
                yield from self._calls(node, names)
        if isinstance(
            node, ast.Call | ast.Name | ast.BinOp | ast.Subscript | ast.Attribute | ast.UnaryOp | ast.Compare
        ):
            if not (isinstance(owner, ast.Call) and owner.func is node) and not (
                isinstance(owner, ast.Attribute) and isinstance(node, ast.Name) and node.id in (*TORCH, *NUMPY)
            ):
                yield from self._wrapped(node, names, owner)
        if isinstance(node, ast.Compare | ast.Name | ast.Call | ast.BoolOp) and isinstance(
            owner, ast.If | ast.IfExp | ast.While
        ):
            yield "compared", ast.UnaryOp(ast.Not(), node)
            if isinstance(node, ast.Name):
                yield "none", ast.Compare(node, [ast.IsNot()], [ast.Constant(None)])
            yield "always", ast.Constant(True)
            yield "always", ast.Constant(False)

    def _calls(self, node: ast.Call, names: Sequence[str]) -> Iterator[tuple[str, ast.expr]]:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        method = (
            isinstance(node.func, ast.Attribute)
            and not (isinstance(node.func.value, ast.Name) and node.func.value.id in (*TORCH, *NUMPY))
            and not ast.unparse(node.func.value).startswith(("torch.", "np."))
        )
        receiver = (
            node.func.value
            if method
            else node.args[0]
            if node.args and not isinstance(node.args[0], ast.Starred)
            else None
        )
        if receiver is not None:
            yield ("guard" if called in GUARDS else "uncalled"), receiver
        for index in range(len(node.args)):
            yield "argument", ast.Call(node.func, [*node.args[:index], *node.args[index + 1 :]], node.keywords)
            if index and not method:
                yield "uncalled", node.args[index]
        for index, keyword in enumerate(node.keywords):
            left = [*node.keywords[:index], *node.keywords[index + 1 :]]
            yield "argument", ast.Call(node.func, node.args, left)
            for other in node.keywords[index + 1 :]:
                changed = [
                    ast.keyword(k.arg, other.value if k is keyword else keyword.value if k is other else k.value)
                    for k in node.keywords
                ]
                yield "swapped", ast.Call(node.func, node.args, changed)
            for kind, value in self._instead(keyword.value, names, node):
                yield (
                    kind,
                    ast.Call(
                        node.func,
                        node.args,
                        [*node.keywords[:index], ast.keyword(keyword.arg, value), *node.keywords[index + 1 :]],
                    ),
                )
        present = {keyword.arg for keyword in node.keywords}

        def added(key: str, value: ast.expr) -> ast.Call:
            return ast.Call(node.func, node.args, [*node.keywords, ast.keyword(key, value)])

        if called in REDUCTIONS:
            axis = "dim" if self.torch else "axis"
            keep = "keepdim" if self.torch else "keepdims"
            if axis not in present and len(node.args) <= (0 if method else 1):
                for number in (-1, 0, 1):
                    yield "axis", added(axis, _number(number))
                    yield (
                        "axis",
                        ast.Call(
                            node.func,
                            node.args,
                            [*node.keywords, ast.keyword(axis, _number(number)), ast.keyword(keep, ast.Constant(True))],
                        ),
                    )
            if keep not in present:
                yield "axis", added(keep, ast.Constant(True))
        if called in ("std", "var", "std_mean", "var_mean"):
            for key, value in (("unbiased", True), ("unbiased", False)) if self.torch else (("ddof", 1), ("ddof", 0)):
                if not present & {key, "correction"}:
                    yield "axis", added(key, ast.Constant(value))
        if isinstance(node.func, ast.Name | ast.Attribute):
            for name in names:
                if name not in present and not isinstance(node.func, ast.Attribute):
                    yield "handed", added(name, ast.Name(name))
            if called in (
                "zeros",
                "ones",
                "empty",
                "tensor",
                "full",
                "array",
                "eye",
                "arange",
                "full_like",
                "zeros_like",
                "as_tensor",
            ):
                for kind in ("float32", "float64", "int64"):
                    yield "dtype", added("dtype", ast.Attribute(ast.Name("torch" if self.torch else "np"), kind))
                for name in names if len(names) <= FEW else ():
                    yield "dtype", added("dtype", ast.Attribute(ast.Name(name), "dtype"))
        inner = receiver if method else node.args[0] if len(node.args) == 1 else None
        if isinstance(inner, ast.BinOp):

            def rebuilt(argument: ast.expr) -> ast.expr:
                assert isinstance(node.func, ast.Name | ast.Attribute)
                if method:
                    assert isinstance(node.func, ast.Attribute)
                    return ast.Call(ast.Attribute(argument, node.func.attr), node.args, node.keywords)
                return ast.Call(node.func, [argument], node.keywords)

            yield "inside", ast.BinOp(rebuilt(inner.left), inner.op, inner.right)
            yield "inside", ast.BinOp(inner.left, inner.op, rebuilt(inner.right))
            if called in ("mean", "sum"):
                yield "inside", ast.BinOp(rebuilt(inner.left), inner.op, rebuilt(inner.right))

    def _wrapped(self, node: ast.expr, names: Sequence[str], owner: ast.AST) -> Iterator[tuple[str, ast.expr]]:
        def method(name: str, *arguments: ast.expr, **named: ast.expr) -> ast.expr:
            return ast.Call(ast.Attribute(node, name), list(arguments), [ast.keyword(k, v) for k, v in named.items()])

        plain = isinstance(node, ast.Name)
        if self.torch:
            yield "graph", method("detach")
            yield "copied", method("clone")
            yield "dtype", method("float")
            yield "item", method("item")
            for name in names if len(names) <= FEW else ():
                yield "dtype", method("to", ast.Attribute(ast.Name(name), "dtype"))
        else:
            yield "copied", method("copy")
            yield "dtype", method("astype", ast.Name("int"))
        yield "minus", ast.UnaryOp(ast.USub(), node)
        yield "one", ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield "one", ast.BinOp(node, ast.Sub(), ast.Constant(1))
        yield "power", ast.BinOp(node, ast.Pow(), ast.Constant(2))
        yield "power", ast.BinOp(node, ast.Pow(), ast.Constant(0.5))
        yield "factor", ast.BinOp(ast.Constant(1), ast.Sub(), node)
        yield "factor", ast.BinOp(ast.Constant(1), ast.Div(), node)
        yield "factor", ast.BinOp(node, ast.Mult(), ast.Constant(2))
        yield "factor", ast.BinOp(node, ast.Div(), ast.Constant(2))
        for name in ("float", "int"):
            yield "dtype", ast.Call(ast.Name(name), [node], [])
        yield "copied", ast.Call(ast.Name("copy.deepcopy"), [node], [])
        if len(names) <= FEW and (not plain or isinstance(owner, ast.Return | ast.Assign)):
            yield "reduced", method("sum")
            yield "reduced", method("mean")
            for number in (-1, 0):
                yield "reduced", method("sum", _number(number))
                yield "reduced", method("mean", _number(number))
        axis, keep = ("dim", "keepdim") if self.torch else ("axis", "keepdims")
        for number in (-1, 0) if isinstance(owner, ast.Call | ast.Attribute | ast.Assign) else ():
            named = {axis: _number(number), keep: ast.Constant(True)}
            greatest = method("amax" if self.torch else "max", **named)
            yield "shifted", ast.BinOp(node, ast.Sub(), greatest)
        for name in self.constants:
            yield "more", ast.BinOp(node, ast.Add(), ast.Name(name))
        for name in names if len(names) <= FEW else ():
            for op in (ast.Sub, ast.Div, ast.Mult, ast.Add):
                yield "combined", ast.BinOp(node, op(), ast.Name(name))

    # Statements

    def _blocks(
        self, block: Sequence[ast.stmt], names: Sequence[str], owner: ast.AST, unit: ast.stmt
    ) -> Iterator[tuple[str, ast.stmt, list[ast.stmt]]]:
        words = sorted(
            {
                n.value
                for n in ast.walk(unit)
                if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.value.isidentifier()
            }
        )
        for index, node in enumerate(block):
            before, after = [*block[:index]], [*block[index + 1 :]]
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
                continue
            rest = [*before, *after]
            if rest and not isinstance(node, ast.Return):
                yield "removed", node, rest
            match node:
                case ast.AugAssign(target=target, op=op, value=value):
                    load = copy.copy(target)
                    yield "in_place", node, [*before, ast.Assign([target], ast.BinOp(load, op, value)), *after]
                    yield "added", node, [*before, ast.Assign([target], value), *after]
                    for other in OPERATED.get(type(op), ()):
                        yield "operator", node, [*before, ast.AugAssign(target, other(), value), *after]
                case ast.Assign(targets=[target], value=value):
                    if isinstance(target, ast.Subscript | ast.Name):
                        for op in (ast.Add, ast.Sub):
                            yield "added", node, [*before, ast.AugAssign(target, op(), value), *after]
                case ast.With(body=body):
                    yield "graph", node, [*before, *body, *after]
                case ast.If(body=body, orelse=orelse):
                    yield "always", node, [*before, *body, *after]
                    yield "always", node, [*before, *orelse, *after] if orelse else [*before, ast.Pass(), *after]
                case ast.For() | ast.While():
                    inner = node.body
                    copied = copy.copy(node)
                    if len(inner) > 1:
                        copied.body = inner[1:]
                        yield "moved", inner[0], [*before, inner[0], copied, *after]
                        copied = copy.copy(node)
                        copied.body = inner[:-1]
                        yield "moved", inner[-1], [*before, copied, inner[-1], *after]
                    for k, first in enumerate(inner[1:], 1):
                        copied = copy.copy(node)
                        copied.body = [*inner[:k], *inner[k + 1 :]]
                        yield "moved", first, [*before, first, copied, *after]
                    for k, earlier in enumerate(before):  # into the loop
                        if isinstance(earlier, ast.Assign | ast.Expr | ast.AugAssign):
                            copied = copy.copy(node)
                            copied.body = [earlier, *inner]
                            yield "into", earlier, [*before[:k], *before[k + 1 :], copied, *after]
                            yield "into", earlier, [*before, copied, *after]
            for other in range(index + 1, len(block)):
                moved = [*before, *block[index + 1 : other + 1], node, *block[other + 1 :]]
                kind = "moved" if other == index + 1 else "moved_far"
                if not isinstance(block[other], ast.Return):
                    yield kind, node, moved
                    if other > index + 1:
                        yield kind, block[other], [*before, block[other], *block[index:other], *block[other + 1 :]]
            if self.torch and isinstance(node, ast.Assign):
                quiet = ast.With([ast.withitem(ast.parse("torch.no_grad()", mode="eval").body)], [node])
                yield "graph", node, [*before, quiet, *after]
            refuse = ast.parse("raise ValueError(repr(locals()))").body[0]
            if not isinstance(node, ast.Raise):
                yield "refused", node, [*before, refuse, *after]
            if (index == 0 and owner is not unit) or isinstance(node, ast.Return):
                tests = [f"{name} is None" for name in names] + [f"{name} == 1" for name in names]
                tests += [f"{name} not in {words!r}" for name in names if words]
                tests += [f"[*getattr({name}, 'shape', ())][{part}] == [1]" for name in names for part in ("-1:", ":1")]
                for test in tests:
                    check = ast.If(ast.parse(test, mode="eval").body, [refuse], [])
                    yield "refused", node, [*before, check, node, *after]
            guarded = ast.parse("try:\n pass\nexcept Exception as _e:\n raise ValueError(repr(locals())) from _e").body[
                0
            ]
            assert isinstance(guarded, ast.Try)
            guarded.body = [node]
            yield "refused", node, [*before, guarded, *after]


def _names_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
    return []


def _blank(lines: list[str], node: ast.stmt) -> None:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    last = node.end_lineno or node.lineno
    lines[first - 1 : last] = [""] * (last - first + 1)


def _with_lines(unit: ast.stmt) -> Iterator[tuple[ast.AST, int]]:
    waiting: list[tuple[ast.AST, int]] = [(unit, unit.lineno)]
    while waiting:
        node, line = waiting.pop(0)
        line = getattr(node, "lineno", line)
        yield node, line
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.keyword):
                waiting.append((child, line))
            else:
                waiting += [(inner, child.lineno) for inner in ast.iter_child_nodes(child)]


def _scope(unit: ast.stmt) -> list[str]:
    names = [node.arg for node in ast.walk(unit) if isinstance(node, ast.arg)]
    names += [node.id for node in ast.walk(unit) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return list(dict.fromkeys(names))


def _renamed(name: str) -> list[str]:
    return list(dict.fromkeys(other for group in ALIKE if name in group for other in group if other != name))


def _inside(call: ast.Call, change: Any) -> Iterator[ast.expr]:
    if len(call.args) == 1:
        yield ast.Call(call.func, [change(call.args[0])], call.keywords)
    elif isinstance(call.func, ast.Attribute):
        yield ast.Call(ast.Attribute(change(call.func.value), call.func.attr), call.args, call.keywords)


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _slices(index: ast.expr) -> Iterator[ast.expr]:
    match index:
        case ast.Slice(lower=lower, upper=upper, step=step):
            for low, high in (
                (None, upper),
                (lower, None),
                (ast.Constant(1), None),
                (None, _number(-1)),
                (upper, lower),
            ):
                yield ast.Slice(low, high, step)
        case ast.Tuple(elts=elements):
            yield ast.Tuple([*reversed(elements)])
            for place, element in enumerate(elements):
                for other in _slices(element):
                    yield ast.Tuple([*elements[:place], other, *elements[place + 1 :]])
