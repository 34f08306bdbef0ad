"""Small changes of a student's text that may mend it: what the usual mistakes do, the other way round.

A change is of one expression or statement. Whether it mends is for the cases to say; nobody reads the changed text.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.submissions.submission import BREAK

LIBRARIES = (
    "torch F nn np numpy math copy random itertools functools statistics".split()  # noqa: SIM905
)
# Names of which students write one for another
ALIKE = [
    group.split()
    for group in (
        "mean sum nanmean median", "max min amax amin", "maximum minimum", "fmax fmin", "argmax argmin",
        "exp log expm1", "log log2 log10", "std var", "any all", "floor ceil rint round trunc int", "sqrt square",
        "abs square",
        "zeros ones", "zeros_like ones_like", "softmax log_softmax", "sigmoid logsigmoid", "float int double",
        "float32 float64", "logical_and logical_or", "cumsum cumprod", "prod sum", "expand repeat",
        "repeat tile repeat_interleave", "add_ sub_", "clip_grad_norm_ clip_grad_value_", "train eval",
        "set list Counter sorted", "ValueError KeyError TypeError RuntimeError NotImplementedError Exception",
    )
]  # fmt: skip
REDUCTIONS = frozenset(
    (
        "mean",
        "sum",
        "max",
        "min",
        "amax",
        "amin",
        "std",
        "var",
        "argmax",
        "argmin",
        "softmax",
        "log_softmax",
        "logsumexp",
        "cumsum",
        "norm",
        "any",
        "all",
        "prod",
    )
)
GUARDS = frozenset(
    ("detach", "clamp", "clip", "abs", "float", "double", "round", "sqrt", "maximum", "minimum", "int", "square")
)
MAKING = frozenset(
    ("zeros", "ones", "empty", "tensor", "full", "array", "eye", "arange", "full_like", "zeros_like", "as_tensor")
)
COMPARED: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE), ast.LtE: (ast.Lt, ast.GtE, ast.Gt), ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt), ast.Eq: (ast.NotEq, ast.GtE, ast.LtE), ast.NotEq: (ast.Eq, ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATED: dict[type[ast.operator], tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub, ast.Mult), ast.Sub: (ast.Add, ast.Div), ast.Mult: (ast.Div, ast.Add, ast.Pow),
    ast.Div: (ast.Mult, ast.Sub, ast.FloorDiv), ast.FloorDiv: (ast.Div, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.MatMult: (ast.Mult,),
}  # fmt: skip
MAX_NODES = 3_000  # of one definition
FEW = 12  # names of a function that is no long one
UNTOUCHED = ("annotation", "returns", "decorator_list", "bases", "targets", "target")
# Kinds of changes, those first of which there are few and that mend often
KINDS = (
    "guard none turned masked operator compared unary constant renamed swapped moved inside axis in_place operand"
    " slice removed number graph index added always uncalled argument into modulo refused",
    "shifted minus name copied handed one moved_far",
    "dtype power named more factor",
    "item reduced combined",
)
PLACES = {kind: place for place, kind in enumerate(" ".join(KINDS).split())}
RANKS = {kind: rank for rank, kinds in enumerate(KINDS) for kind in kinds.split()}
# Kinds that are likely after some failures only, and failures after which some kinds only are likely
AFTER = {
    "graph": {"graph", "gradient", "fact"}, "copied": {"purity", "fact", "values"}, "refused": {"error"},
    "dtype": {"dtype", "fact"}, "in_place": {"purity", "fact"}, "item": {"fact", "returned"},
}  # fmt: skip
LIKELY = {
    failure: kinds.split()
    for failure, kinds in {
        "error": "refused compared none removed always unary renamed constant",
        "dtype": "dtype guard renamed name argument uncalled",
        "purity": "copied in_place renamed name uncalled",
        "finite": "masked shifted guard renamed constant compared inside turned operator uncalled",
        "graph": "graph guard name uncalled renamed argument constant",
    }.items()
}
REFUSE = "raise ValueError(repr(locals()))"

Changed = Iterator[tuple[str, ast.expr]]


@dataclass(frozen=True)
class Repair:
    """A change of one thing: `field` of `owner` becomes `value`, on this line.

    kind   of change: see KINDS
    unit   the statement at the top level that holds it
    """

    kind: str
    line: int
    unit: ast.stmt
    owner: ast.AST
    field: str
    value: Any


class Text:
    """A student's function with all of the text that it uses, and the ways to change them."""

    def __init__(self, source: str, name: str) -> None:
        """Take from a source what the function of that name reaches; raises one of UNPARSABLE."""
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

        self.units = reached(defined.get(name, [])[-1:])
        definitions = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        needed = reached([*self.units, *(node for node in body if node not in definitions)])
        self._dropped = [node for node in definitions if node not in needed]
        self._constants = [each for each in defined if each.isupper()]
        self._torch = "torch" in source
        self._names = {unit: _scope(unit) for unit in self.units}
        self.is_long = any(len(self._names[unit]) > FEW for unit in self.units[:1])

    def with_repair(self, repair: Repair) -> str:
        """Write the changed source; what the function does not use is left out."""
        before = getattr(repair.owner, repair.field)
        setattr(repair.owner, repair.field, repair.value)
        try:
            text = ast.unparse(ast.fix_missing_locations(repair.unit))
        finally:
            setattr(repair.owner, repair.field, before)
        lines = [*self._lines]
        for node in (*self._dropped, repair.unit):
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            lines[first - 1 : node.end_lineno] = [""] * ((node.end_lineno or first) - first + 1)
        lines[repair.unit.lineno - 1] = text
        return "\n".join(lines)

    def repairs(self, executed: Collection[int], alone: Collection[int], failure: str) -> list[Repair]:
        """List the changes of what was executed, those first that mend most often.

        executed   lines that run in each failing case; those `alone` in no passing one
        failure    how a case fails
        """
        found = [repair for unit in self.units for repair in self._changes(unit, executed)]

        def order(repair: Repair) -> tuple[int, int]:
            likely = failure in AFTER.get(repair.kind, {failure}) and repair.kind in LIKELY.get(failure, RANKS)
            rank = 0 if repair.kind == "handed" and self.is_long else RANKS[repair.kind]
            return 2 * rank + 5 * (not likely) + bool(alone and repair.line not in alone), PLACES[repair.kind]

        return sorted(found, key=order)

    def statements(self, lines: Collection[int]) -> set[int]:
        """Return where the statements begin, of those on these lines, that hold no others."""
        nodes = (node for unit in self.units for node in ast.walk(unit) if isinstance(node, ast.stmt))
        return {node.lineno for node in nodes if not hasattr(node, "body") and _touches(node, node.lineno, lines)}

    def _changes(self, unit: ast.stmt, executed: Collection[int]) -> Iterator[Repair]:
        if sum(1 for _ in ast.walk(unit)) > MAX_NODES:
            return
        names, partly = self._names[unit], bool(executed) and isinstance(unit, ast.FunctionDef | ast.ClassDef)
        for owner, line in _with_lines(unit):
            if partly and not _touches(owner, line, executed):
                continue
            for field, value in ast.iter_fields(owner):
                if field in UNTOUCHED:
                    continue
                if isinstance(value, ast.expr):
                    for kind, new in self._instead(value, owner, names):
                        yield Repair(kind, value.lineno, unit, owner, field, new)
                elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    for kind, at, block in self._blocks(value, owner, names, unit):
                        if not partly or _touches(at, at.lineno, executed):
                            yield Repair(kind, at.lineno, unit, owner, field, block)
                elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                    for index, each in enumerate(value):
                        for kind, new in self._instead(each, owner, names):
                            changed = [*value[:index], new, *value[index + 1 :]]
                            yield Repair(kind, each.lineno, unit, owner, field, changed)
                    for i, j in itertools.combinations(range(len(value)), 2) if field in ("args", "elts") else ():
                        swapped = [*value]
                        swapped[i], swapped[j] = swapped[j], swapped[i]
                        yield Repair("swapped", value[i].lineno, unit, owner, field, swapped)

    # What may stand in the place of an expression

    def _instead(self, node: ast.expr, owner: ast.AST, names: Sequence[str]) -> Changed:
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            return
        few, is_called = names if len(names) <= FEW else (), isinstance(owner, ast.Call) and owner.func is node
        match node:
            case ast.Compare(left=left, ops=[test], comparators=[right]):
                yield from (("compared", ast.Compare(left, [other()], [right])) for other in COMPARED[type(test)])
                for name in names if isinstance(left, ast.Name) and isinstance(test, ast.Eq) else ():
                    yield "modulo", ast.Compare(ast.BinOp(left, ast.Mod(), ast.Name(name)), [test], [right])
            case ast.BinOp():
                yield from self._operations(node)
            case ast.UnaryOp(operand=operand):
                yield "unary", operand
            case ast.BoolOp(op=both, values=values):
                yield "compared", ast.BoolOp(ast.And() if isinstance(both, ast.Or) else ast.Or(), values)
                yield from (("unary", value) for value in values)
                if isinstance(both, ast.Or) and len(values) == 2:
                    yield "none", ast.IfExp(_is_given(values[0]), values[0], values[1])
            case ast.IfExp(test=condition, body=body, orelse=orelse):
                yield "turned", ast.IfExp(condition, orelse, body)
                yield from (("unary", value) for value in (body, orelse))
            case ast.Constant(value=bool(truth)):
                yield "constant", ast.Constant(not truth)
            case ast.Constant(value=int(whole)):
                numbers = dict.fromkeys((whole + 1, whole - 1, 0, 1, -1, 2))
                yield from (("constant", _number(other)) for other in numbers if other != whole)
                for name in names if isinstance(owner, ast.Subscript) else ():
                    yield "index", ast.Name(name)
            case ast.Constant(value=float(value)):
                fractions = dict.fromkeys((0.0, 1.0, 2.0, 0.5, -1.0, -value, 1 / value if value else 0.0))
                yield from (("number", _number(other)) for other in fractions if other != value)
                yield from (("named", ast.Name(name)) for name in (*self._constants, *few))
            case ast.Constant(value="sum" | "mean" | "none" as word):
                yield from (("constant", ast.Constant(o)) for o in ("sum", "mean", "none") if o != word)
            case ast.Name(id=name) if is_called:
                yield from (("renamed", ast.Name(other)) for other in _alike(name))
            case ast.Name(id=name):
                if few or isinstance(owner, ast.Call | ast.Attribute | ast.Subscript | ast.Tuple):
                    yield from (("name", ast.Name(other)) for other in names if other != name)
                yield from (("constant", ast.Name(c)) for c in self._constants if name in self._constants)
            case ast.Attribute(value=inner, attr=attr):
                yield from (("renamed", ast.Attribute(inner, other)) for other in _alike(attr))
            case ast.Subscript(value=inner, slice=index):
                yield "unary", inner
                yield from (("slice", ast.Subscript(inner, other)) for other in _slices(index))
                for name in few if isinstance(index, ast.Name | ast.Constant) else ():
                    yield "index", ast.Subscript(inner, ast.Name(name))
            case ast.Call():
                yield from self._calls(node, names)
        if isinstance(owner, ast.If | ast.IfExp | ast.While):
            yield "compared", ast.UnaryOp(ast.Not(), node)
            yield from (("none", _is_given(node)),) if isinstance(node, ast.Name) else ()
            yield from (("always", ast.Constant(truth)) for truth in (True, False))
        is_library = isinstance(owner, ast.Attribute) and isinstance(node, ast.Name) and node.id in LIBRARIES
        if not isinstance(node, ast.Constant | ast.Tuple | ast.List | ast.Slice) and not is_called and not is_library:
            yield from self._wrapped(node, owner, names)

    def _operations(self, node: ast.BinOp) -> Changed:
        left, op, right = node.left, node.op, node.right
        yield from (("operator", ast.BinOp(left, other(), right)) for other in OPERATED.get(type(op), ()))
        yield from (("operand", side) for side in (left, right))
        if isinstance(op, ast.Div) and isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mult):
            yield "turned", ast.BinOp(ast.BinOp(left.left, ast.Mult(), right), ast.Div(), left.right)
        for one, other in ((left, right), (right, left)) if isinstance(op, ast.Mult) else ():
            where = ast.Name("torch.where" if self._torch else "np.where")
            yield "masked", ast.Call(where, [_compared(one, ast.NotEq(), 0), other, ast.Constant(0.0)], [])
        if not isinstance(op, ast.Add | ast.Mult):
            yield "turned", ast.BinOp(right, op, left)
        if isinstance(left, ast.Call):  # f(a) * b for f(a * b)
            yield from (("inside", new) for new in _inside(left, lambda inner: ast.BinOp(inner, op, right)))
        if isinstance(right, ast.Call):
            yield from (("inside", new) for new in _inside(right, lambda inner: ast.BinOp(left, op, inner)))

    def _calls(self, node: ast.Call, names: Sequence[str]) -> Changed:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_method = owner is not None and ast.unparse(owner).partition(".")[0] not in LIBRARIES
        first = owner if is_method else next(iter(node.args), None)
        few = names if len(names) <= FEW else ()

        def call(args: list[ast.expr], keywords: list[ast.keyword]) -> ast.Call:
            return ast.Call(node.func, args, keywords)

        def added(**named: ast.expr) -> ast.Call:
            return call(node.args, [*node.keywords, *(ast.keyword(key, value) for key, value in named.items())])

        if first is not None and not isinstance(first, ast.Starred):
            yield "guard" if called in GUARDS else "uncalled", first
        for at, argument in enumerate(node.args):
            yield "argument", call([*node.args[:at], *node.args[at + 1 :]], node.keywords)
            if at and not is_method:
                yield "uncalled", argument
        for at, keyword in enumerate(node.keywords):
            before, after = node.keywords[:at], node.keywords[at + 1 :]
            yield "argument", call(node.args, [*before, *after])
            for n, other in enumerate(after):
                exchanged = [ast.keyword(keyword.arg, other.value), *after[:n], ast.keyword(other.arg, keyword.value)]
                yield "swapped", call(node.args, [*before, *exchanged, *after[n + 1 :]])
            for kind, value in self._instead(keyword.value, node, names):
                yield kind, call(node.args, [*before, ast.keyword(keyword.arg, value), *after])
        given = {keyword.arg for keyword in node.keywords}
        axis, keep = ("dim", "keepdim") if self._torch else ("axis", "keepdims")
        if called in REDUCTIONS:
            for number in (-1, 0, 1) if axis not in given and len(node.args) <= (not is_method) else ():
                yield "axis", added(**{axis: _number(number)})
                yield "axis", added(**{axis: _number(number), keep: ast.Constant(True)})
            if keep not in given:
                yield "axis", added(**{keep: ast.Constant(True)})
        if called in ("std", "var", "std_mean", "var_mean") and not given & {"unbiased", "ddof", "correction"}:
            yield from (("axis", added(**{"correction" if self._torch else "ddof": ast.Constant(n)})) for n in (0, 1))
        for name in names if isinstance(node.func, ast.Name) else ():
            if name not in given:
                yield "handed", added(**{name: ast.Name(name)})
        if called in MAKING and "dtype" not in given:
            library = "torch" if self._torch else "np"
            kinds = [f"{library}.{kind}" for kind in ("float32", "float64", "int64")]
            yield from (("dtype", added(dtype=ast.Name(n))) for n in (*kinds, *(f"{name}.dtype" for name in few)))
        if isinstance(first, ast.BinOp):
            op, left, right = first.op, first.left, first.right
            for new in _inside(node, lambda inner: left):
                yield "inside", ast.BinOp(new, op, right)
            for new in _inside(node, lambda inner: right):
                yield "inside", ast.BinOp(left, op, new)

    def _wrapped(self, node: ast.expr, owner: ast.AST, names: Sequence[str]) -> Changed:
        few = names if len(names) <= FEW else ()

        def method(name: str, *arguments: ast.expr, **named: ast.expr) -> ast.expr:
            return ast.Call(ast.Attribute(node, name), [*arguments], [ast.keyword(k, v) for k, v in named.items()])

        def operated(op: ast.operator, number: float) -> ast.expr:
            return ast.BinOp(node, op, ast.Constant(number))

        if self._torch:
            yield "graph", method("detach")
            yield "copied", method("clone")
            yield "dtype", method("float")
            yield "item", method("item")
            yield from (("dtype", method("to", ast.Name(f"{name}.dtype"))) for name in few)
        else:
            yield "copied", method("copy")
            yield "dtype", method("astype", ast.Name("int"))
        yield "copied", ast.Call(ast.Name("copy.deepcopy"), [node], [])
        yield from (("dtype", ast.Call(ast.Name(kind), [node], [])) for kind in ("float", "int"))
        yield "minus", ast.UnaryOp(ast.USub(), node)
        yield from (("one", operated(op, 1)) for op in (ast.Add(), ast.Sub()))
        yield from (("power", operated(ast.Pow(), power)) for power in (2, 0.5))
        yield from (("factor", ast.BinOp(ast.Constant(1), op, node)) for op in (ast.Sub(), ast.Div()))
        yield from (("factor", operated(op, 2)) for op in (ast.Mult(), ast.Div()))
        if few and (not isinstance(node, ast.Name) or isinstance(owner, ast.Return | ast.Assign)):
            for reduction, place in itertools.product(("sum", "mean"), ((), (-1,), (0,))):
                yield "reduced", method(reduction, *map(_number, place))
        greatest, axis, keep = ("amax", "dim", "keepdim") if self._torch else ("max", "axis", "keepdims")
        for number in (-1, 0) if isinstance(owner, ast.Call | ast.Attribute | ast.Assign) else ():
            most = method(greatest, **{axis: _number(number), keep: ast.Constant(True)})
            yield "shifted", ast.BinOp(node, ast.Sub(), most)
        yield from (("more", ast.BinOp(node, ast.Add(), ast.Name(name))) for name in self._constants)
        for name, op in itertools.product(few, (ast.Sub(), ast.Div(), ast.Mult(), ast.Add())):
            yield "combined", ast.BinOp(node, op, ast.Name(name))

    # What may stand in the place of a block

    def _blocks(
        self, block: list[ast.stmt], owner: ast.AST, names: Sequence[str], unit: ast.stmt
    ) -> Iterator[tuple[str, ast.stmt, list[ast.stmt]]]:
        for index, node in enumerate(block):
            before, after = block[:index], block[index + 1 :]
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if is_text or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
                continue
            if (before or after) and not isinstance(node, ast.Return):
                yield "removed", node, [*before, *after]
            for kind, new in self._statements(node, owner is not unit and not before, names, unit):
                yield kind, node, [*before, *new, *after]
            if isinstance(node, ast.For | ast.While):
                for kind, at, new in _around(node, before):
                    yield kind, at, [*new, *after]
            for other in range(index + 1, len(block)):
                if isinstance(block[other], ast.Return):
                    break
                between, rest = block[index + 1 : other], block[other + 1 :]
                yield "moved_far" if between else "moved", node, [*before, *between, block[other], node, *rest]
                if between:
                    yield "moved_far", block[other], [*before, block[other], node, *between, *rest]

    def _statements(
        self, node: ast.stmt, is_first: bool, names: Sequence[str], unit: ast.stmt
    ) -> Iterator[tuple[str, list[ast.stmt]]]:
        match node:
            case ast.AugAssign(target=target, op=op, value=value):
                yield "in_place", [ast.Assign([target], ast.BinOp(copy.copy(target), op, value))]
                yield "added", [ast.Assign([target], value)]
                for other in OPERATED.get(type(op), ()):
                    yield "operator", [ast.AugAssign(target, other(), value)]
            case ast.Assign(targets=[ast.Subscript() | ast.Name() as target], value=value):
                for added in (ast.Add(), ast.Sub()):
                    yield "added", [ast.AugAssign(target, added, value)]
            case ast.With(body=body):
                yield "graph", body
            case ast.If(body=body, orelse=orelse):
                yield "always", body
                yield "always", orelse or [ast.Pass()]
        if self._torch and isinstance(node, ast.Assign):
            yield "graph", [ast.With([ast.withitem(ast.Name("torch.no_grad()"))], [node])]
        if isinstance(node, ast.Raise):
            return
        refuse = ast.parse(REFUSE).body
        yield "refused", refuse
        guarded = ast.parse(f"try:\n pass\nexcept Exception:\n {REFUSE}").body[0]
        assert isinstance(guarded, ast.Try)
        guarded.body = [node]
        yield "refused", [guarded]
        if is_first or isinstance(node, ast.Return):
            constants = (inner.value for inner in ast.walk(unit) if isinstance(inner, ast.Constant))
            words = sorted({word for word in constants if isinstance(word, str) and word.isidentifier()})
            tests = [f"{name} {test}" for name in names for test in ("is None", "== 1", f"not in {words!r}")]
            tests += [f"[*getattr({n}, 'shape', ())][{part}] == [1]" for n in names for part in ("-1:", ":1")]
            for test in tests:
                yield "refused", [ast.If(ast.Name(test), refuse, []), node]


def _around(loop: ast.For | ast.While, before: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt, list[ast.stmt]]]:
    """Move statements out of a loop, and into it."""

    def with_body(body: list[ast.stmt]) -> ast.stmt:
        other = copy.copy(loop)
        other.body = body
        return other

    for at, node in enumerate(loop.body if len(loop.body) > 1 else ()):
        rest = with_body([*loop.body[:at], *loop.body[at + 1 :]])
        yield "moved", node, [*before, node, rest]
        yield "moved", node, [*before, rest, node]
    for at, node in enumerate(before):
        if isinstance(node, ast.Assign | ast.Expr | ast.AugAssign):
            yield "into", node, [*before[:at], *before[at + 1 :], with_body([node, *loop.body])]
            yield "into", node, [*before, with_body([node, *loop.body])]


def _names_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]


def _scope(unit: ast.stmt) -> list[str]:
    """List the parameters and variables of a definition."""
    names = [node.arg for node in ast.walk(unit) if isinstance(node, ast.arg)]
    names += [node.id for node in ast.walk(unit) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return list(dict.fromkeys(names))


def _with_lines(unit: ast.stmt) -> Iterator[tuple[ast.AST, int]]:
    """Yield each node but keywords, which calls change, with its line or that of what holds it."""
    waiting: list[tuple[ast.AST, int]] = [(unit, unit.lineno)]
    while waiting:
        node, line = waiting.pop(0)
        line = getattr(node, "lineno", line)
        if not isinstance(node, ast.keyword):
            yield node, line
        waiting += [(child, line) for child in ast.iter_child_nodes(node)]


def _touches(node: ast.AST, line: int, lines: Collection[int]) -> bool:
    """Tell whether a node that begins on that line stands on one of the lines."""
    return any(at in lines for at in range(line, (getattr(node, "end_lineno", None) or line) + 1))


def _alike(name: str) -> list[str]:
    return list(dict.fromkeys(other for group in ALIKE if name in group for other in group if other != name))


def _inside(call: ast.Call, change: Callable[[ast.expr], ast.expr]) -> Iterator[ast.expr]:
    """Change the one argument of a call, or whose method it is."""
    if len(call.args) == 1:
        yield ast.Call(call.func, [change(call.args[0])], call.keywords)
    elif isinstance(call.func, ast.Attribute):
        yield ast.Call(ast.Attribute(change(call.func.value), call.func.attr), call.args, call.keywords)


def _compared(node: ast.expr, test: ast.cmpop, value: int | None) -> ast.expr:
    return ast.Compare(node, [test], [ast.Constant(value)])


def _is_given(node: ast.expr) -> ast.expr:
    return _compared(node, ast.IsNot(), None)


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _slices(index: ast.expr) -> Iterator[ast.expr]:
    match index:
        case ast.Slice(lower=low, upper=high, step=step):
            for lower, upper in ((None, high), (low, None), (_number(1), None), (None, _number(-1)), (high, low)):
                yield ast.Slice(lower, upper, step)
        case ast.Tuple(elts=elements):
            yield ast.Tuple([*reversed(elements)])
            for place, element in enumerate(elements):
                for other in _slices(element):
                    yield ast.Tuple([*elements[:place], other, *elements[place + 1 :]])
