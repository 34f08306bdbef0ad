"""Small changes of a student's text that may fix it: what the usual mistakes do, the other way round.

A change is of one expression or statement. Whether it fixes is for the cases to say; nobody reads the changed text.
"""

from __future__ import annotations

import ast
import copy
import itertools
import keyword
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

from autograder.submissions.submission import BREAK

LIBRARIES = (
    "torch F nn np numpy math copy random itertools functools statistics".split()  # noqa: SIM905
)
# Names of which students write one for another
ALIKE = """
mean sum nanmean median; max min amax amin; maximum minimum; fmax fmin; argmax argmin; exp log expm1; log log2 log10
std var; any all; floor ceil rint round trunc int; sqrt square; abs square; zeros ones; zeros_like ones_like
softmax log_softmax; sigmoid logsigmoid; float int double; float32 float64; logical_and logical_or; cumsum cumprod
prod sum; numel sum; expand repeat; repeat tile repeat_interleave; add_ sub_; clip_grad_norm_ clip_grad_value_
train eval; set list Counter sorted; ValueError KeyError TypeError RuntimeError NotImplementedError Exception
"""
GROUPS = [group.split() for group in re.split(r"[;\n]", ALIKE)]
REDUCTIONS = frozenset(
    "mean sum max min amax amin std var argmax argmin softmax log_softmax logsumexp cumsum norm any all prod".split()  # noqa: SIM905
)
GUARDS = frozenset("detach clamp clip abs float double round sqrt maximum minimum int square".split())  # noqa: SIM905
SORTING = ("sort", "argsort", "sorted")
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
MAX_NODES, MAX_REPAIRS = 3_000, 20_000  # of one definition; of what a function uses
FEW = 12  # names of a function that is no long one
UNTOUCHED = ("annotation", "returns", "decorator_list", "bases", "targets", "target")
# Of some hundred wrong answers, about how many a kind of change fixes; one where nothing is said. Those are tried first
# that promise most for their number.
SHARES: dict[str, float] = {
    "renamed": 5, "name": 4, "constant": 4, "graph": 3, "axis": 3, "operator": 3, "compared": 3, "unused": 3,
    "given": 3, "refused": 3, "guard": 2, "divided": 2, "share": 2, "dtype": 2, "copied": 2, "factor": 2, "moved": 2,
    "removed": 2, "swapped": 2, "index": 2, "handed": 1.5, "modulo": 1.5, "uncalled": 1.5, "named": 1.5,
    "combined": 1.5, "more": 0.7, "shifted": 0.7, "turned": 0.6, "finite": 0.4, "mirrored": 0.15,
}  # fmt: skip
PAIRED = frozenset("turned operator compared unary constant renamed axis operand share mirrored".split())  # noqa: SIM905
# Kinds that are likely after some failures only, failures after which some kinds only are, and words of a hint that
# make a kind likely
AFTER = {
    "graph": "graph gradient fact", "copied": "purity fact values", "refused": "error", "finite": "finite",
    "dtype": "dtype fact", "in_place": "purity fact", "item": "fact returned",
}  # fmt: skip
LIKELY = {
    "error": "refused compared none removed unary renamed constant",
    "dtype": "dtype guard renamed name argument uncalled",
    "purity": "copied in_place renamed name uncalled",
    "finite": "masked finite shifted guard renamed constant compared inside turned operator uncalled",
    "graph": "graph guard name uncalled renamed argument constant",
}
HINTED = {
    "copied": "copy alia", "graph": "gradient constant graph detach", "item": "return type caller", "share": "divide",
    "axis": "axi dimension row", "moved": "before after order often once", "modulo": "period every",
}  # fmt: skip
# What an expression X may be wrapped in, with a variable N or a constant K of the module
WRAPPED = """
graph     X.detach()
copied    X.clone(); copy.deepcopy(X)
dtype     X.float(); X.to(N.dtype); float(X); int(X)
item      X.item()
finite    torch.nan_to_num(X, nan=0.0, posinf=0.0, neginf=0.0)
minus     -X
one       X + 1; X - 1
power     X ** 2; X ** 0.5
factor    1 - X; 1 / X; X * 2; X / 2
reduced   X.sum(); X.sum(-1); X.sum(0); X.mean(); X.mean(-1); X.mean(0)
shifted   X - X.amax(dim=-1, keepdim=True); X - X.amax(dim=0, keepdim=True)
more      X + K
divided   X / N
combined  X / N; X * N; X - N; X + N
"""
IN_NUMPY = {
    "torch.": "np.", ".amax(dim": ".max(axis", "keepdim": "keepdims", ".clone(": ".copy(", ".to(": ".astype(",
    ".float()": ".astype(int)", ".detach()": "",
}  # fmt: skip
WRAPPED_IN: dict[str, tuple[type[ast.AST], ...]] = {
    "item": (ast.Return, ast.Assign, ast.Call),
    "shifted": (ast.Call, ast.Attribute, ast.Assign),
    "divided": (ast.Return, ast.Assign, ast.AugAssign, ast.Tuple),
}
REFUSE = "raise ValueError(repr(locals()))"

Changed = Iterator[tuple[str, ast.expr]]


@dataclass(frozen=True)
class Repair:
    """A change of one thing: `field` of `owner` becomes `value`, on this line.

    kind        of change: see SHARES
    statement   the innermost that holds it
    names       which it takes out and brings in
    """

    kind: str
    line: int
    statement: ast.stmt
    owner: ast.AST
    field: str
    value: Any
    names: str = ""


class Text:
    """A student's function with all of the text that it uses, and the ways to change them."""

    def __init__(self, source: str, name: str, right: Collection[str] = ()) -> None:
        """Take from a source what the function of that name reaches; raises one of UNPARSABLE.

        right   functions that need no change
        """
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
        for node in definitions:
            if node not in needed:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                last = node.end_lineno or first
                self._lines[first - 1 : last] = [""] * (last - first + 1)
        body = self.units[0].body if self.units and isinstance(self.units[0], ast.FunctionDef) else []
        self.begin = next((node.lineno for node in body if not _is_text(node)), 0)
        small = (unit for unit in self.units if sum(1 for _ in ast.walk(unit)) <= MAX_NODES)
        self.units = [unit for unit in small if getattr(unit, "name", None) not in right]
        table = WRAPPED
        for ours, theirs in IN_NUMPY.items() if "torch" not in source else ():
            table = table.replace(ours, theirs)
        lines = (line.split(maxsplit=1) for line in table.strip().split("\n"))
        self._wraps = [(kind, each) for kind, templates in lines for each in templates.split("; ")]
        self._constants = [each for each in defined if each.isupper()]
        self._torch = "torch" in source
        self._library = "torch" if self._torch else "np"
        self._names = {unit: _scope(unit) for unit in self.units}
        self.is_long = any(len(self._names[unit]) > FEW for unit in self.units[:1])
        self._parameters = [node.arg for unit in self.units[:1] for node in ast.walk(unit) if isinstance(node, ast.arg)]
        used = {node.id for unit in self.units[:1] for node in ast.walk(unit) if isinstance(node, ast.Name)}
        self._unused = {name for name in self._parameters if name not in used}
        loops = (node for unit in self.units for node in ast.walk(unit) if isinstance(node, ast.For))
        steps = {at.id for loop in loops for at in ast.walk(loop.target) if isinstance(at, ast.Name)}
        self._steps = steps | self._unused
        self._counters = dict(itertools.chain(*map(_counters, self.units)))
        assigned = (node for unit in self.units for node in ast.walk(unit) if isinstance(node, ast.Assign))
        self._clamped = {at.id: node.value for node in assigned for at in node.targets if isinstance(at, ast.Name)}
        self._optimizers = (
            re.findall(r"\b(\w+) = [\w.]*optim\b", source) + re.findall(r"\b(optimi[sz]er)\b", source)[:1]
        )

    def with_repair(self, repair: Repair) -> str:
        """Write the changed source, its lines counted as before; what the function does not use is left out."""
        node = repair.statement
        before = getattr(repair.owner, repair.field)
        setattr(repair.owner, repair.field, repair.value)
        try:
            text = ast.unparse(ast.fix_missing_locations(node))
        finally:
            setattr(repair.owner, repair.field, before)
        decorators = getattr(node, "decorator_list", ())
        first, last = min([node.lineno, *(each.lineno for each in decorators)]), node.end_lineno or node.lineno
        begin = self._lines[node.lineno - 1].encode()[: node.col_offset].decode()
        end = self._lines[last - 1].encode()[node.end_col_offset :].decode()
        if self._lines[node.lineno - 1].lstrip().startswith("elif ") and text.startswith("if "):
            text = f"el{text}"
        indent = begin if begin.isspace() else ""
        lines = (begin + text.replace("\n", f"\n{indent}") + end).split("\n")
        lines += [""] * (last - first + 1 - len(lines))
        return "\n".join([*self._lines[: first - 1], *lines, *self._lines[last:]])

    def repairs(
        self,
        executed: Collection[int],
        alone: Collection[int],
        failure: str,
        words: Set[str] = frozenset(),
        marked: Collection[int] = (),
    ) -> list[Repair]:
        """List the changes of what was executed, those first that fix most often for their number.

        executed   lines that run in each failing case; those `alone` in no passing one, `marked` for another item
        failure    how a case fails, and the words in which a student reads of it
        """
        every = (repair for unit in self.units for repair in self._changes(unit, self._names[unit], executed))
        found = list(itertools.islice(every, MAX_REPAIRS))
        numbers = Counter(repair.kind for repair in found)
        lines = {line: words_of(self._lines[line - 1]) for line in {repair.line for repair in found}}
        often = Counter(word for of_line in lines.values() for word in of_line)
        told = {line: sum(1 / often[word] for word in of_line if word in words) for line, of_line in lines.items()}

        def promise(repair: Repair) -> tuple[float, int]:
            share = SHARES.get(repair.kind, 1.0) / numbers[repair.kind]
            likely = failure in AFTER.get(repair.kind, failure) and repair.kind in LIKELY.get(failure, repair.kind)
            told_of = not words.isdisjoint(HINTED.get(repair.kind, "").split()) or words_of(repair.names) & words
            share *= (1 if likely else 0.1) * (4 if told_of else 1)
            if repair.kind in ("finite", "shifted"):  # what must not overflow is guarded where it does, late
                return share, repair.line
            place = (1 + min(3, told[repair.line]) * self.is_long) * (3 if repair.line in alone else 1)
            later = repair.line if repair.kind == "minus" else 0  # a sign that is missing is usually the result's
            return share * place * (10 if repair.line in marked else 1), later

        return sorted(found, key=promise, reverse=True)

    def pairs(self, repairs: Iterable[Repair]) -> Iterator[Repair]:
        """Add to each of these changes a second one of the same statement, to the first of each statement first."""
        rounds: dict[ast.stmt, list[Repair]] = {}
        for repair in repairs:
            if repair.kind in PAIRED and not hasattr(repair.statement, "body"):
                rounds.setdefault(repair.statement, []).append(repair)
        for first in filter(None, itertools.chain(*itertools.zip_longest(*rounds.values()))):
            before = getattr(first.owner, first.field)
            setattr(first.owner, first.field, first.value)
            changed = ast.parse(ast.unparse(ast.fix_missing_locations(first.statement))).body[0]
            setattr(first.owner, first.field, before)
            ast.copy_location(changed, first.statement)
            for second in self._changes(changed, (), ()):
                if second.kind in PAIRED:
                    yield replace(second, kind="pair", line=first.line)

    def statements(self, lines: Collection[int]) -> set[int]:
        """Return where the statements begin, of those on these lines, that hold no others."""
        nodes = (node for unit in self.units for node in ast.walk(unit) if isinstance(node, ast.stmt))
        return {node.lineno for node in nodes if not hasattr(node, "body") and _touches(node, node.lineno, lines)}

    def _changes(self, unit: ast.stmt, names: Sequence[str], executed: Collection[int]) -> Iterator[Repair]:
        partly = bool(executed) and isinstance(unit, ast.FunctionDef | ast.ClassDef)
        for owner, line, stmt in _with_lines(unit):
            if partly and not _touches(owner, line, executed):
                continue
            for field, value in ast.iter_fields(owner):
                if field in UNTOUCHED:
                    continue
                if isinstance(value, ast.expr):
                    for kind, new in self._instead(value, owner, names):
                        yield self._repair(kind, value, new, stmt, owner, field, new)
                elif isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                    for kind, at, block in self._blocks(value, owner, names, unit):
                        if not partly or _touches(at, at.lineno, executed):
                            yield Repair(kind, at.lineno, stmt, owner, field, block)
                elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
                    for index, each in enumerate(value):
                        for kind, new in self._instead(each, owner, names):
                            changed = [*value[:index], new, *value[index + 1 :]]
                            yield self._repair(kind, each, new, stmt, owner, field, changed)
                    for i, j in itertools.combinations(range(len(value)), 2) if field in ("args", "elts") else ():
                        swapped = [*value]
                        swapped[i], swapped[j] = swapped[j], swapped[i]
                        yield Repair("swapped", value[i].lineno, stmt, owner, field, swapped)

    def _repair(
        self, kind: str, old: ast.expr, new: ast.expr, statement: ast.stmt, owner: ast.AST, field: str, value: Any
    ) -> Repair:
        names = ""
        if kind in ("name", "named", "index", "handed", "given"):
            before, after = ({each.id for each in ast.walk(of) if isinstance(each, ast.Name)} for of in (old, new))
            names = " ".join(sorted(before ^ after))
            kind = "unused" if kind != "given" and after & self._unused else kind
        return Repair(kind, _place(old, new, self._parameters), statement, owner, field, value, names)

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
                    yield "none", ast.IfExp(ast.Name(f"({ast.unparse(values[0])} is not None)"), values[0], values[1])
            case ast.IfExp(test=condition, body=body, orelse=orelse):
                yield "turned", ast.IfExp(condition, orelse, body)
                yield from (("unary", value) for value in (body, orelse))
            case ast.ListComp(elt=each, generators=loops) | ast.GeneratorExp(elt=each, generators=loops) if loops[1:]:
                yield "swapped", type(node)(each, loops[::-1])
            case ast.Constant(value=bool(truth)):
                yield "constant", ast.Constant(not truth)
            case ast.Constant(value=int() | float() as number):
                others = dict.fromkeys(
                    (number + 1, number - 1, 0, 1, -1, 2, *((0.5, -number, 1 / (number or 1)) if number % 1 else ()))
                )
                yield from (("constant", _number(other)) for other in others if other != number)
                if isinstance(owner, ast.Subscript | ast.Slice | ast.Tuple):
                    yield from (("index", ast.Name(name)) for name in names if name in self._steps)
                if isinstance(owner, ast.Call) or number % 1:
                    yield from (("named", ast.Name(name)) for name in (*self._constants, *names))
            case ast.Constant(value="sum" | "mean" | "none" as word):
                yield from (("constant", ast.Constant(o)) for o in ("sum", "mean", "none") if o != word)
            case ast.Name(id=name) if is_called:
                yield from (("renamed", ast.Name(other)) for other in _alike(name))
            case ast.Name(id=name):
                if few or isinstance(owner, ast.Call | ast.Attribute | ast.Subscript | ast.Tuple):
                    yield from (("name", ast.Name(other)) for other in names if other != name)
                yield from (("constant", ast.Name(c)) for c in self._constants if name in self._constants)
                if name in self._counters:
                    yield "counter", self._counters[name]
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
            yield from (("none", ast.Name(f"({node.id} is not None)")),) if isinstance(node, ast.Name) else ()
        if (
            isinstance(owner, ast.Call)
            and not is_called
            and isinstance(node, ast.BinOp | ast.Subscript | ast.Attribute)
        ):
            yield from (("named", ast.Name(name)) for name in names)
        if isinstance(owner, ast.BinOp) and isinstance(owner.op, ast.Div) and node is owner.right:
            yield from (("share", ast.BinOp(node, op, ast.Constant(1))) for op in (ast.Sub(), ast.Add()))
        if isinstance(owner, ast.Call | ast.Assign) and not is_called:
            for name in self._unused:
                yield "given", ast.Name(name)
                yield "given", ast.Name(f"({name} if {name} is not None else {ast.unparse(node)})")
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
            yield "masked", ast.Name(f"{self._library}.where(({ast.unparse(one)}) != 0, {ast.unparse(other)}, 0.0)")
        if not isinstance(op, ast.Add | ast.Mult):
            yield "turned", ast.BinOp(right, op, left)
        if isinstance(op, ast.Div) and self._torch:
            yield "ratio", ast.Call(ast.Attribute(ast.BinOp(left, ast.Sub(), right), "exp"), [], [])
        for one in (left, right) if isinstance(op, ast.Mult) else ():
            for free in self._unbounded(one):
                other = ast.BinOp(left, op, free) if one is right else ast.BinOp(free, op, right)
                yield "bounded", ast.Call(ast.Name(f"{self._library}.minimum"), [node, other], [])
        if isinstance(left, ast.Call):  # f(a) * b for f(a * b)
            yield from (("inside", new) for new in _inside(left, lambda inner: ast.BinOp(inner, op, right)))
        if isinstance(right, ast.Call):
            yield from (("inside", new) for new in _inside(right, lambda inner: ast.BinOp(left, op, inner)))

    def _unbounded(self, node: ast.expr) -> Iterator[ast.expr]:
        """Yield what a call of clamp, or a variable that holds one's result, bounds."""
        call = self._clamped.get(node.id) if isinstance(node, ast.Name) else node
        match call:
            case ast.Call(func=ast.Attribute(value=inner, attr="clamp" | "clip"), args=args):
                yield next(iter(args)) if isinstance(inner, ast.Name) and inner.id in LIBRARIES else inner

    def _calls(self, node: ast.Call, names: Sequence[str]) -> Changed:
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_method = owner is not None and ast.unparse(owner).partition(".")[0] not in LIBRARIES
        first = owner if is_method else next(iter(node.args), None)

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
        for at, named in enumerate(node.keywords):
            before, after = node.keywords[:at], node.keywords[at + 1 :]
            yield "argument", call(node.args, [*before, *after])
            for n, other in enumerate(after):
                exchanged = [ast.keyword(named.arg, other.value), *after[:n], ast.keyword(other.arg, named.value)]
                yield "swapped", call(node.args, [*before, *exchanged, *after[n + 1 :]])
            for kind, value in self._instead(named.value, node, names):
                yield kind, call(node.args, [*before, ast.keyword(named.arg, value), *after])
        text = ast.unparse(node) if called == "log" else ""
        if logits := re.fullmatch(r"(.{1,200})\.exp\(\)\.sum\((.{0,50})\)\.log\(\)", text):
            yield "guard", ast.Name(f"{logits[1]}.logsumexp({logits[2]})")
        given = {named.arg for named in node.keywords}
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
        for word in ("descending", "reverse") if called in SORTING else ():
            yield "order", added(**{word: ast.Constant(True)})
        if first is not None:
            yield from (
                ("inside", ast.BinOp(new, op, factor))
                for rest, op, factor in _factors(first)
                for new in _inside(node, rest)
            )

    def _wrapped(self, node: ast.expr, owner: ast.AST, names: Sequence[str]) -> Changed:
        few, text = names if len(names) <= FEW else (), f"({ast.unparse(node)})"
        is_reduced = isinstance(owner, ast.Attribute) and owner.attr in REDUCTIONS
        is_whole = not isinstance(node, ast.Name) or isinstance(owner, ast.Return | ast.Assign)
        for kind, template in self._wraps:
            if not isinstance(owner, WRAPPED_IN.get(kind, ast.AST)):
                continue
            if kind == "reduced" and not (few and (is_reduced or is_whole)):
                continue
            for name in few if "N" in template else self._constants if "K" in template else ("",):
                new = re.sub("[NK]", name, template).replace("X", text)
                yield "summed" if kind == "reduced" and is_reduced else kind, ast.Name(f"({new})")

    # What may stand in the place of a block

    def _blocks(
        self, block: list[ast.stmt], owner: ast.AST, names: Sequence[str], unit: ast.stmt
    ) -> Iterator[tuple[str, ast.stmt | ast.expr, list[ast.stmt]]]:
        for index, node in enumerate(block):
            before, after = block[:index], block[index + 1 :]
            if _is_text(node) or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
                continue
            if (before or after) and not isinstance(node, ast.Return):
                yield "removed", node, [*before, *after]
            for kind, new in self._statements(node, owner is not unit and not before, names, unit):
                yield kind, node, [*before, *new, *after]
            read = [
                inner for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load)
            ]
            for name in (
                names if isinstance(node, ast.Assign | ast.Return | ast.Expr) else ()
            ):  # turns its sign throughout
                if len(places := [inner for inner in read if inner.id == name]) > 1:
                    text = re.sub(rf"\b{name}\b", f"(-{name})", ast.unparse(node))
                    yield "mirrored", places[0], [*before, ast.Expr(ast.Name(text)), *after]
            if isinstance(node, ast.For | ast.While):
                for kind, at, new in _around(node, before):
                    yield kind, at, [*new, *after]
            for other in range(index + 1, len(block)):
                if isinstance(block[other], ast.Return):
                    break
                rest = [*block[index + 1 : other + 1], node, *block[other + 1 :]]
                yield "moved" if other == index + 1 else "moved_far", node, [*before, *rest]

    def _statements(
        self, node: ast.stmt, is_first: bool, names: Sequence[str], unit: ast.stmt
    ) -> Iterator[tuple[str, list[ast.stmt]]]:
        match node:
            case ast.AugAssign(target=target, op=op, value=value):
                yield "in_place", [ast.Assign([target], ast.BinOp(copy.copy(target), op, value))]
                for other in OPERATED.get(type(op), ()):
                    yield "operator", [ast.AugAssign(target, other(), value)]
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
                for at, name in itertools.product(range(len(targets)), names):
                    changed = [*targets[:at], ast.Name(name), *targets[at + 1 :]]
                    yield "target", [ast.Assign([ast.Tuple(changed)], value)]
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="backward"))):
                for name, call in itertools.product(self._optimizers, ("zero_grad", "step")):
                    new = ast.Expr(ast.Name(f"{name}.{call}()"))
                    yield "inserted", [new, node] if call == "zero_grad" else [node, new]
            case ast.With(body=body):
                yield "graph", body
        if self._torch and isinstance(node, ast.Assign):
            yield "graph", [ast.With([ast.withitem(ast.Name("torch.no_grad()"))], [node])]
        if isinstance(node, ast.Raise):
            return
        yield "refused", ast.parse(REFUSE).body
        guarded = ast.parse(f"try:\n pass\nexcept Exception:\n {REFUSE}").body[0]
        assert isinstance(guarded, ast.Try)
        guarded.body = [node]
        yield "refused", [guarded]
        if is_first or isinstance(node, ast.Return):
            constants = (inner.value for inner in ast.walk(unit) if isinstance(inner, ast.Constant))
            words = sorted({word for word in constants if isinstance(word, str) and word.isidentifier()})
            tests = [f"{name} {test}" for name in names for test in ("is None", "== 1", f"not in {words!r}")]
            tests += [f"[*getattr({n}, 'shape', ())][{part}] == [1]" for n in names for part in ("-1:", ":1")]
            yield from (("refused", [ast.Expr(ast.Name(f"if {test}: {REFUSE}")), node]) for test in tests)


def _around(loop: ast.For | ast.While, before: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt, list[ast.stmt]]]:
    """Move statements out of a loop."""

    def with_body(body: list[ast.stmt]) -> ast.stmt:
        other = copy.copy(loop)
        other.body = body
        return other

    for at, node in enumerate(loop.body if len(loop.body) > 1 else ()):
        rest = with_body([*loop.body[:at], *loop.body[at + 1 :]])
        yield "moved", node, [*before, node, rest]
        yield "moved", node, [*before, rest, node]


def words_of(text: str) -> Set[str]:
    """Return the words and parts of names in a text, but those of Python, in the singular."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower()) if not keyword.iskeyword(word)}


def _names_defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]


def _scope(unit: ast.stmt) -> list[str]:
    """List the parameters and variables of a definition, but those of comprehensions."""
    names = [node.arg for node in ast.walk(unit) if isinstance(node, ast.arg)]
    inner = {
        id(name) for loop in ast.walk(unit) if isinstance(loop, ast.comprehension) for name in ast.walk(loop.target)
    }
    stored = (node for node in ast.walk(unit) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return list(dict.fromkeys([*names, *(node.id for node in stored if id(node) not in inner)]))


def _with_lines(unit: ast.stmt) -> Iterator[tuple[ast.AST, int, ast.stmt]]:
    """Yield each node but keywords, which calls change, with its line or that of what holds it, and its statement."""
    waiting: list[tuple[ast.AST, int, ast.stmt]] = [(unit, unit.lineno, unit)]
    while waiting:
        node, line, stmt = waiting.pop(0)
        line = getattr(node, "lineno", line)
        stmt = node if isinstance(node, ast.stmt) else stmt
        if not isinstance(node, ast.keyword):
            yield node, line, stmt
        waiting += [(child, line, stmt) for child in ast.iter_child_nodes(node)]


def _counters(unit: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variable of each loop in a loop with a count that goes on over all of them."""
    for outer in (node for node in ast.walk(unit) if isinstance(node, ast.For)):
        target = outer.target.elts[0] if isinstance(outer.target, ast.Tuple) else outer.target
        for inner in itertools.chain(*map(ast.walk, outer.body)) if isinstance(target, ast.Name) else ():
            match inner:
                case ast.For(target=ast.Name(id=name), iter=ast.Call(args=[number])):
                    yield name, ast.Name(f"({ast.unparse(target)} * {ast.unparse(number)} + {name})")


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _place(old: ast.expr, new: ast.expr, names: Sequence[str]) -> int:
    """Return the line of the argument that a change is about; of one that is added, where its like come before it."""
    if isinstance(old, ast.ListComp | ast.GeneratorExp) and isinstance(new, type(old)):
        return old.generators[0].target.lineno
    if not (isinstance(old, ast.Call) and isinstance(new, ast.Call) and old.func is new.func):
        return old.lineno
    given, changed = ([*call.args, *(each.value for each in call.keywords)] for call in (old, new))
    for before, after in itertools.zip_longest(given, changed):
        if before is not after and before is not None:
            return before.lineno
    name = new.keywords[-1].arg if new.keywords else None
    earlier = names[: names.index(name)] if name in names else ()
    return max(
        ((earlier.index(each.arg), each.value.lineno) for each in old.keywords if each.arg in earlier),
        default=(0, old.lineno),
    )[1]


def _touches(node: ast.AST, line: int, lines: Collection[int]) -> bool:
    """Tell whether a node that begins on that line stands on one of the lines."""
    return any(at in lines for at in range(line, (getattr(node, "end_lineno", None) or line) + 1))


def _alike(name: str) -> list[str]:
    return list(dict.fromkeys(other for group in GROUPS if name in group for other in group if other != name))


def _inside(call: ast.Call, change: Callable[[ast.expr], ast.expr] | ast.expr) -> Iterator[ast.expr]:
    """Change or replace the one argument of a call, or whose method it is."""
    replaced = (lambda _: change) if isinstance(change, ast.expr) else change
    if len(call.args) == 1:
        yield ast.Call(call.func, [replaced(call.args[0])], call.keywords)
    elif isinstance(call.func, ast.Attribute):
        yield ast.Call(ast.Attribute(replaced(call.func.value), call.func.attr), call.args, call.keywords)


def _factors(node: ast.expr) -> Iterator[tuple[ast.expr, ast.operator, ast.expr]]:
    """Take each factor, divisor or summand out of an expression: what is left, how it was bound to that, and itself."""
    if isinstance(node, ast.BinOp):
        yield node.left, node.op, node.right
        if isinstance(node.op, ast.Mult | ast.Add):
            yield node.right, node.op, node.left
        for rest, op, factor in _factors(node.left) if isinstance(node.op, ast.Mult | ast.Div) else ():
            if isinstance(op, ast.Mult | ast.Div):
                yield ast.BinOp(rest, node.op, node.right), op, factor


def _number(value: float) -> ast.expr:
    return ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))


def _slices(index: ast.expr) -> Iterator[ast.expr]:
    match index:
        case ast.Slice(lower=low, upper=high, step=step):
            for lower, upper in ((None, high), (low, None), (_number(1), None), (None, _number(-1)), (high, low)):
                yield ast.Slice(lower, upper, step)
            yield from (ast.Tuple([every, index]) for every in (ast.Slice(), ast.Constant(...)))
        case ast.Tuple(elts=elements):
            yield ast.Tuple([*reversed(elements)])
            for place, element in enumerate(elements):
                for other in _slices(element):
                    yield ast.Tuple([*elements[:place], other, *elements[place + 1 :]])
