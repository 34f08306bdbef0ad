"""Small changes of a student's text that may fix it: what the usual mistakes do, the other way round.

A change is of one expression or statement. Most stand in a table, a pattern and what to try in its place. Whether one
fixes is for the cases to say; nobody reads the changed text.
"""

from __future__ import annotations

import ast
import functools
import itertools
import keyword
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

from autograder.submissions.submission import BREAK

# kind[@what holds it]  pattern; pattern -> text; text
#
#   A to E     any expression; where A is the whole pattern, neither a literal nor what is called
#   F          what is called, or the name of a method        OP    each of + - * / // % **
#   REST       the other arguments of a call
#   N, P, U, K in the text: each variable of few, each parameter, each that is not used, each constant of the module
TABLE = """
compared    A < B -> A <= B; A > B; A >= B
compared    A <= B -> A < B; A >= B; A > B
compared    A > B -> A >= B; A < B; A <= B
compared    A >= B -> A > B; A <= B; A < B
compared    A == B -> A != B; A >= B; A <= B
compared    A != B -> A == B; A > B; A < B
compared    A and B -> A or B
compared    A or B -> A and B
compared@If,IfExp,While  A -> not A
none        A or B -> A if A is not None else B
none@If,IfExp,While      A -> A is not None
operator    A + B -> A - B; A * B
operator    A - B -> A + B; A / B
operator    A * B -> A / B; A + B; A ** B
operator    A / B -> A * B; A - B; A // B
operator    A // B -> A / B; A % B
operator    A % B -> A // B
operator    A ** B; A @ B -> A * B
operator    A & B -> A | B
operator    A | B -> A & B
operand     A OP B -> A; B
unary       -A; not A; ~A; A[B] -> A
unary       A and B; A or B; A if C else B -> A; B
turned      A - B -> B - A
turned      A / B -> B / A
turned      A * B / C -> A / C * B
share       A / B -> A / (B - 1); A / (B + 1)
brackets    A * B + C -> A * (B + C)
brackets    A * B - C -> A * (B - C)
brackets    A + B * C - D -> A + B * (C - D)
brackets    A * (B + C) -> A * B + C
brackets    A * (B - C) -> A * B - C
inside      F(A, REST) OP B -> F(A OP B, REST)
inside      A OP F(B, REST) -> F(A OP B, REST)
inside      A.F(REST) OP B -> (A OP B).F(REST)
inside      A OP B.F(REST) -> (A OP B).F(REST)
inside      F(A OP B, REST) -> F(A, REST) OP B; A OP F(B, REST)
inside      F(A * B / C, REST) -> F(B / C, REST) * A; F(A / C, REST) * B
inside      A * F(B, REST) / C -> A * F(B / C, REST)
inside      F(A, B) * C -> F(A * C, B * C)
inside      (A OP B).F(REST) -> A.F(REST) OP B; A OP B.F(REST)
swapped     [A for D in B for E in C] -> [A for E in C for D in B]
guard       A.exp().sum(REST).log() -> A.logsumexp(REST)
guard       torch.log(torch.softmax(A, REST)) -> torch.log_softmax(A, REST)
guard       A.softmax(REST).log() -> A.log_softmax(REST)
slice       A[B, C] -> A[C, B]; A[B]; A[C]
slice       A[B:C] -> A[:C]; A[B:]; A[1:C]; A[B:-1]; A[B + 1:C]; A[B:C - 1]; A[:, B:C]; A[..., B:C]
slice       A[:B] -> A[1:]; A[1:B]; A[B:]; A[:B + 1]; A[:B - 1]; A[:, :B]; A[..., :B]
slice       A[B:] -> A[:-1]; A[:B]; A[B + 1:]; A[B - 1:]; A[B - 1:-1]; A[:, B:]; A[..., B:]
slice       A[B, :C] -> A[B, 1:]; A[:C]; A[B, :C + 1]; A[B, :C - 1]
slice       A[B, C:] -> A[B, :-1]; A[C:]; A[B, C + 1:]; A[B, C - 1:]; A[B, C - 1:-1]
graph       A -> A.detach()
copied      A -> A.clone(); copy.deepcopy(A)
aliased     A = B -> A = copy.deepcopy(B)
transposed@Return,Tuple     A -> A.T
transposed  A.T -> A
dtype       A -> A.float(); A.to(N.dtype); float(A); int(A)
finite      A -> torch.nan_to_num(A, nan=0.0, posinf=0.0, neginf=0.0)
minus       A -> -A
guard       torch.exp(A) / torch.exp(B) -> torch.exp(A - B)
guard       A.exp() / B.exp() -> (A - B).exp()
guard       A / B -> A / B.clamp(min=1)
renamed     itertools.combinations_with_replacement(A, B) -> itertools.product(A, repeat=B)
axis        A.numel() -> A[..., 0].numel(); A.shape[0]
swapped     sorted(A, REST)[::-1] -> sorted(A, REST, reverse=True)
shifted     torch.exp(A) -> torch.exp(A - A.amax(dim=-1, keepdim=True))
shifted     A.exp() -> (A - A.amax(dim=-1, keepdim=True)).exp()
masked      A * B -> torch.where(A != 0, B, 0.0); torch.where(B != 0, A, 0.0)
modulo      A == B -> A % P == B
more        A -> A + K
one         A -> A + 1; A - 1
power       A -> A ** 2; A ** 0.5
factor      A -> 1 - A; 1 / A; A * 2; A / 2
divided@Return,Assign,AugAssign,Tuple    A -> A / N
combined    A -> A / N; A * N; A - N; A + N
given@Call,Assign        A -> U; U if U is not None else A; range(U)
summed      A.mean(REST) -> A.sum(-1).mean(REST); A.sum(0).mean(REST); A.mean(0).mean(REST)
summed      A.sum(REST) -> A.mean(-1).sum(REST); A.mean(0).sum(REST)
swapped     A, B = C -> B, A = C
in_place    A OP= B -> A = A OP B
operator    A OP= B -> A += B; A -= B; A *= B; A /= B
"""
IN_NUMPY = {
    "torch.": "np.", ".amax(dim": ".max(axis", "keepdim": "keepdims", ".clone(": ".copy(", ".to(": ".astype(",
    ".float()": ".astype(int)", ".detach()": "",
}  # fmt: skip
OPERATORS = "+ - * / // % **".split()  # noqa: SIM905
# Names of which students write one for another
ALIKE = """
mean sum nanmean median; max min amax amin; maximum minimum; fmax fmin; argmax argmin; exp log expm1; log log2 log10
std var; any all; floor ceil rint round trunc int; sqrt square; abs square; zeros ones; zeros_like ones_like
softmax log_softmax; sigmoid logsigmoid; float int double; float32 float64; logical_and logical_or; cumsum cumprod
prod sum; numel sum; expand repeat; repeat tile repeat_interleave; add_ sub_; clip_grad_norm_ clip_grad_value_
train eval; set list Counter sorted; ValueError KeyError TypeError RuntimeError NotImplementedError Exception
"""
GROUPS = [group.split() for group in re.split(r"[;\n]", ALIKE)]
LIBRARIES = frozenset("torch F nn np numpy math copy random itertools functools statistics".split())  # noqa: SIM905
REDUCTIONS = frozenset(
    "mean sum max min amax amin std var argmax argmin softmax log_softmax logsumexp cumsum norm any all prod".split()  # noqa: SIM905
)
GUARDS = frozenset("detach clamp clip abs float double round sqrt maximum minimum int square".split())  # noqa: SIM905
MAX_NODES, MAX_REPAIRS = 3_000, 20_000  # of one definition; of what a function uses
FEW = 12  # names of a function that is no long one
UNTOUCHED = ("annotation", "returns", "decorator_list", "bases", "targets", "target")
# Of some hundred wrong answers, about how many a kind of change fixes; one where nothing is said. Those are tried first
# that promise most for their number.
SHARES: dict[str, float] = {
    "renamed": 5, "name": 4, "constant": 4, "graph": 3, "axis": 3, "operator": 3, "compared": 3, "unused": 3,
    "given": 3, "refused": 3, "guard": 2, "divided": 2, "share": 2, "dtype": 2, "copied": 2, "factor": 2, "moved": 2,
    "removed": 2, "swapped": 2, "index": 2, "handed": 1.5, "uncalled": 1.5, "named": 1.5, "combined": 1.5,
    "modulo": 1.5, "more": 0.7, "shifted": 0.15, "turned": 0.2, "finite": 0.4,
}  # fmt: skip
LATE = ("minus", "divided")  # what is missing is usually the result's
PAIRED = frozenset("turned operator compared unary constant renamed axis operand share".split())  # noqa: SIM905
# Kinds that are likely after some failures only, failures after which some kinds only are, and words of a hint that
# make a kind likely
AFTER = {
    "graph": "graph gradient fact", "copied": "purity fact values", "refused": "error", "finite": "finite",
    "dtype": "dtype fact", "in_place": "purity fact",
}  # fmt: skip
LIKELY = {
    "error": "refused compared none removed unary renamed constant",
    "dtype": "dtype guard renamed name argument uncalled",
    "purity": "copied in_place renamed name uncalled",
    "finite": "finite shifted masked guard axis renamed constant compared inside turned operator uncalled",
    "graph": "graph guard name uncalled renamed argument constant",
}
HINTED = {
    "copied": "copy alia", "graph": "gradient constant graph detach", "share": "divide", "axis": "axi dimension row",
    "moved": "before after order often once", "modulo": "period every", "aliased": "copy alia",
}  # fmt: skip
PLACEHOLDER = re.compile(r"\b[A-FNPUK]\b|(?:, )?\bREST\b")
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice)
LITERALS = (ast.Constant, ast.Tuple, ast.List, ast.Slice, ast.Starred)
KEPT = "kept_before_the_loop"
REFUSE = "raise ValueError(repr(locals()))"


# A kind, the line it begins on, what is written where, and the names that come and go
Change = tuple[str, int, "list[Edit]", str]


class Edit(NamedTuple):
    """New text for the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Repair:
    """A change of one thing, which begins on this line.

    kind        of change: see SHARES
    statement   the innermost that holds it
    names       which it takes out and brings in
    """

    kind: str
    line: int
    statement: ast.stmt
    text: Text
    edits: tuple[Edit, ...]
    names: str = ""

    def source(self) -> str:
        """Write the changed source, its lines counted as before; what the function does not use is left out."""
        data = self.text.data
        for start, end, new in sorted(self.edits, reverse=True):
            missing = data[start:end].count(b"\n") - new.count("\n")
            padded = new[:-1] + "\n" * missing + new[-1:] if new.endswith(")") else new + "\n" * missing
            data = data[:start] + padded.encode() + data[end:]
        return data.decode()


class Place(NamedTuple):
    """An expression or statement, what holds it, as which field, and the innermost statement around it."""

    node: ast.AST
    owner: ast.AST
    field: str
    statement: ast.stmt


class Text:
    """A student's function with all of the text that it uses, and the ways to change them."""

    def __init__(self, source: str, name: str, right: Collection[str] = (), given: str = "") -> None:
        """Take from a source what the function of that name reaches; raises one of UNPARSABLE.

        right   functions that need no change
        given   the source as it was handed out: its statements need none, either
        """
        lines = BREAK.split(source)
        body = ast.parse(source).body
        defined: dict[str, list[ast.stmt]] = {}
        for node in body:
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            names = [at.id for target in targets if target for at in ast.walk(target) if isinstance(at, ast.Name)]
            for known in [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else names:
                defined.setdefault(known, []).append(node)

        def reached(waiting: list[ast.stmt]) -> list[ast.stmt]:
            units = dict[ast.stmt, None]()
            while waiting:
                node = waiting.pop(0)
                if node not in units:
                    units[node] = None
                    used = (inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
                    waiting += [other for each in used for other in defined.get(each, ())]
            return list(units)

        units = reached(defined.get(name, [])[-1:])
        definitions = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        needed = reached([*units, *(node for node in body if node not in definitions)])
        for node in definitions:
            if node not in needed:
                first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                last = node.end_lineno or first
                lines[first - 1 : last] = [""] * (last - first + 1)
        self.data = "\n".join(lines).encode()
        self._name, self._right, self._given = name, right, given
        self._lines = lines
        self._starts = [0, *itertools.accumulate(len(line.encode()) + 1 for line in lines)]
        handed_out = {ast.dump(node) for node in ast.parse(given).body}
        self.units = [
            unit
            for unit in units
            if sum(1 for _ in ast.walk(unit)) <= MAX_NODES and getattr(unit, "name", None) not in right
            if ast.dump(unit) not in handed_out
        ]
        self._torch = "torch" in source
        self._constants = [each for each in defined if each.isupper()]
        self._names = {unit: _scope(unit) for unit in self.units}
        self._parameters = {
            unit: [each.arg for each in ast.walk(unit) if isinstance(each, ast.arg)] for unit in self.units
        }
        self.is_long = any(len(self._names[unit]) > FEW for unit in units[:1] if unit in self._names)
        inside = [node for unit in units[:1] for node in ast.walk(unit)]
        used = {node.id for node in inside if isinstance(node, ast.Name)}
        self._unused = [node.arg for node in inside if isinstance(node, ast.arg) and node.arg not in used]
        self._optimizers = (
            re.findall(r"\b(\w+) = [\w.]*optim\b", source) + re.findall(r"\b(optimi[sz]er)\b", source)[:1]
        )

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
        repairs = list(itertools.islice(self._changes(executed), MAX_REPAIRS))
        numbers = Counter(repair.kind for repair in repairs)
        lines = {line: words_of(self._lines[line - 1]) for line in {repair.line for repair in repairs}}
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
            later = repair.line if repair.kind in LATE else 0
            return share * place * (10 if repair.line in marked else 1), later

        return sorted(repairs, key=promise, reverse=True)

    def pairs(self, repairs: Iterable[Repair]) -> Iterator[Repair]:
        """Add to each of these changes a second one of the same statement, to the first of each statement first."""
        rounds: dict[ast.stmt, list[Repair]] = {}
        for repair in repairs:
            if repair.kind in PAIRED and not hasattr(repair.statement, "body"):
                rounds.setdefault(repair.statement, []).append(repair)
        for first in filter(None, itertools.chain(*itertools.zip_longest(*rounds.values()))):
            lines = range(first.statement.lineno, (first.statement.end_lineno or first.line) + 1)
            for second in Text(first.source(), self._name, self._right, self._given)._changes(lines):
                if second.kind in PAIRED and second.statement.lineno == first.statement.lineno:
                    yield Repair("pair", first.line, second.statement, second.text, second.edits)

    # Every change

    def _changes(self, executed: Collection[int]) -> Iterator[Repair]:
        for unit in self.units:
            partly = bool(executed) and isinstance(unit, ast.FunctionDef | ast.ClassDef)
            for place in _places(unit):
                node: Any = place.node
                ran = any(line in executed for line in range(node.lineno, (node.end_lineno or node.lineno) + 1))
                if not partly or isinstance(place.owner, ast.arguments) or ran:
                    changes = self._of_expression if isinstance(place.node, ast.expr) else self._of_statement
                    for kind, line, edits, names in itertools.chain(changes(place, unit), self._by_table(place, unit)):
                        kind = "unused" if kind != "given" and {*names.split()} & {*self._unused} else kind
                        yield Repair(kind, line, place.statement, self, tuple(edits), names)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        at: dict[str, int] = vars(node)
        start = self._starts[at["lineno"] - 1] + at["col_offset"]
        return start, self._starts[at["end_lineno"] - 1] + at["end_col_offset"]

    def _written(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.data[start:end].decode()

    def _by_table(self, place: Place, unit: ast.stmt) -> Iterator[Change]:
        node, owner = place.node, place.owner
        is_name_of = isinstance(owner, ast.Attribute) and isinstance(node, ast.Name) and node.id in LIBRARIES
        is_value = isinstance(node, ast.expr) and not isinstance(node, LITERALS) and not is_name_of
        is_value = is_value and not (isinstance(owner, ast.Call) and owner.func is node)
        names = self._names[unit] if len(self._names[unit]) <= FEW else []
        groups = {"N": names, "P": self._parameters[unit], "U": self._unused, "K": self._constants}
        for kind, holders, pattern, templates in _table(self._torch):
            bound: dict[str, str] = {}
            if holders and type(owner).__name__ not in holders:
                continue
            if (isinstance(pattern, ast.Name) and not is_value) or not _binds(pattern, node, bound):
                continue
            if bound["A"] in LIBRARIES:
                continue
            for template in templates:
                others = next((groups[letter] for letter in PLACEHOLDER.findall(template) if letter in groups), [""])
                for other in others:
                    filling = {**bound, **dict.fromkeys(groups, other)}
                    filling[", REST"] = f", {rest}" if (rest := bound.get("REST")) else ""
                    text = PLACEHOLDER.sub(lambda letter, filling=filling: filling[letter[0]], template)  # type: ignore[misc]
                    yield self._instead(node, kind, text, other if "U" in template else "")

    def _instead(self, node: ast.AST, kind: str, text: str, names: str = "") -> Change:
        text = f"({text})" if isinstance(node, ast.expr) else text
        at: Any = node.generators[0].target if isinstance(node, ast.ListComp | ast.GeneratorExp) else node
        return kind, at.lineno, [Edit(*self._span(node), text)], names

    def _of_expression(self, place: Place, unit: ast.stmt) -> Iterator[Change]:
        node, owner = place.node, place.owner
        assert isinstance(node, ast.expr)
        instead = functools.partial(self._instead, node)
        names = self._names[unit]
        few, is_called = names if len(names) <= FEW else [], isinstance(owner, ast.Call) and owner.func is node
        match node:
            case ast.Constant(value=bool(truth)):
                yield instead("constant", repr(not truth))
            case ast.Constant(value=int() | float() as number):
                others = [number + 1, number - 1, 0, 1, -1, 2]
                others += [0.5, -number, 1 / number] if number % 1 else []
                yield from (instead("constant", repr(other)) for other in dict.fromkeys(others) if other != number)
                if isinstance(owner, ast.Subscript | ast.Slice | ast.Tuple):
                    targets = (
                        at for loop in ast.walk(unit) if isinstance(loop, ast.For) for at in ast.walk(loop.target)
                    )
                    steps = {*self._unused, *(at.id for at in targets if isinstance(at, ast.Name))}
                    yield from (instead("index", name, name) for name in names if name in steps)
                if isinstance(owner, ast.Call) or number % 1:
                    yield from (instead("named", name, name) for name in (*self._constants, *names))
            case ast.Constant(value=None) if isinstance(owner, ast.Call):
                yield from (instead("named", name, name) for name in names)
            case ast.Constant(value="sum" | "mean" | "none" as word):
                yield from (instead("constant", repr(other)) for other in ("sum", "mean", "none") if other != word)
            case ast.Name(id=name) if is_called:
                yield from (instead("renamed", other) for other in _alike(name))
            case ast.Name(id=name):
                if few or isinstance(owner, ast.Call | ast.Attribute | ast.Subscript | ast.Tuple):
                    yield from (instead("name", other, f"{name} {other}") for other in names if other != name)
                if name in self._constants:
                    yield from (instead("constant", other) for other in self._constants if other != name)
            case ast.Attribute(value=inner, attr=attr):
                yield from (instead("renamed", f"{_text(inner)}.{other}") for other in _alike(attr))
            case ast.Call():
                yield from self._of_call(node, names)
                yield from self._swaps([*node.args], [keyword.value for keyword in node.keywords])
            case ast.Dict(keys=[ast.Constant() as first, *_] as keys):
                lines, (start, _) = {getattr(key, "value", ""): key.lineno for key in keys if key}, self._span(first)
                for at, name in enumerate(names):
                    if name not in lines:  # a parameter is missed after those before it
                        line = next((lines[other] for other in names[at::-1] if other in lines), first.lineno)
                        yield "handed", line, [Edit(start, start, f"{name!r}: {name}, ")], name
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                yield from self._swaps(elements)
        is_argument = isinstance(owner, ast.Call) and not is_called
        if is_argument and isinstance(node, ast.BinOp | ast.Subscript | ast.Attribute):
            yield from (instead("named", name, name) for name in names)

    def _swaps(self, *groups: Sequence[ast.expr]) -> Iterator[Change]:
        for one, other in itertools.chain(*(itertools.combinations(group, 2) for group in groups)):
            edits = [Edit(*self._span(one), self._written(other)), Edit(*self._span(other), self._written(one))]
            yield "swapped", one.lineno, edits, ""

    def _of_call(self, node: ast.Call, names: Sequence[str]) -> Iterator[Change]:
        """Call nothing, take an argument out, add one."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        is_method = owner is not None and ast.unparse(owner).partition(".")[0] not in LIBRARIES
        values = [owner] if is_method and owner else node.args
        for value in (value for value in values if not isinstance(value, ast.Starred)):
            yield self._instead(node, "guard" if called in GUARDS else "uncalled", _text(value))
        arguments: list[Any] = sorted([*node.args, *node.keywords], key=self._span)
        spans = [self._span(argument) for argument in arguments]
        end = spans[-1][1] if spans else self._span(node)[1] - 1
        for at, argument in enumerate(arguments):  # with the comma after it, the last with that before it
            first, last = spans[at][0], spans[at + 1][0] if at + 1 < len(spans) else end
            yield "argument", argument.lineno, [Edit(spans[at - 1][1] if at and last == end else first, last, "")], ""
        given = {named.arg for named in node.keywords}
        axis, keep, ddof = ("dim", "keepdim", "correction") if self._torch else ("axis", "keepdims", "ddof")
        added: list[tuple[str, str, str]] = []
        if called in REDUCTIONS:
            if axis not in given and len(node.args) <= (not is_method):
                added += [("axis", f"{axis}={at}{more}", "") for at in (-1, 0, 1) for more in ("", f", {keep}=True")]
            added += [("axis", f"{keep}=True", "")] if keep not in given else []
        if called in ("std", "var", "std_mean", "var_mean") and not given & {"unbiased", "ddof", "correction"}:
            added += [("axis", f"{ddof}={number}", "") for number in (0, 1)]
        if isinstance(node.func, ast.Name) and None not in given:
            added += [("handed", f"{name}={name}", name) for name in names if name not in given]
        for kind, text, name in added:
            earlier = names[: names.index(name)] if name else ()  # a parameter is missed after those before it
            before: list[Any] = sorted(
                (named for named in node.keywords if named.arg in earlier), key=lambda named: names.index(named.arg)
            )
            yield (
                kind,
                [node, *arguments, *before][-1].lineno,
                [Edit(end, end, f", {text}" if arguments else text)],
                name,
            )

    def _of_statement(self, place: Place, unit: ast.stmt) -> Iterator[Change]:
        """Take a statement out, move it, refuse in its place, put something beside it."""
        node, block = place.node, getattr(place.owner, place.field, None)
        assert isinstance(node, ast.stmt)
        start, end = self._span(node)
        margin = self.data[self._starts[node.lineno - 1] : start].decode()
        is_fixed = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
        is_fixed = is_fixed or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        if not isinstance(block, list) or is_fixed or margin.strip() or self.data[start:end].startswith(b"elif"):
            return
        index, instead = block.index(node), functools.partial(self._instead, node)

        def indented(*statements: ast.stmt) -> str:
            return f"\n{margin}".join(ast.unparse(each).replace("\n", f"\n{margin}") for each in statements)

        def before(kind: str, text: str) -> Change:
            return kind, node.lineno, [Edit(start, start, f"{text}\n{margin}")], ""

        if len(block) > 1 and not isinstance(node, ast.Return):
            yield instead("removed", "pass")
        if place.owner is unit and index <= 1:
            yield from (before("inserted", f"{name}.eval()") for name in self._parameters[unit] if self._torch)
        following = block[index + 1] if index + 1 < len(block) else None
        if following is not None and not isinstance(following, ast.Return):
            (change,) = self._swaps([node, following])  # type: ignore[list-item]
            yield "moved", *change[1:]
        parts = [] if hasattr(node, "body") else list(ast.walk(node))
        if any(isinstance(at, ast.JoinedStr) for at in parts):  # whose parts have no places in Python 3.11
            parts = []
        read = [at for at in parts if isinstance(at, ast.Name) and isinstance(at.ctx, ast.Load)]
        known = dict.fromkeys(at.id for at in read if at.id in self._names[unit])
        for one, other in itertools.combinations(known, 2):
            places = [(at, other if at.id == one else one) for at in read if at.id in (one, other)]
            yield "exchanged", places[0][0].lineno, [Edit(*self._span(at), name) for at, name in places], ""
        match node:
            case ast.For(body=body) | ast.While(body=body) if len(body) > 1:
                for inner in body:
                    out = Edit(*self._span(inner), "pass")
                    yield "moved", inner.lineno, [Edit(start, start, f"{indented(inner)}\n{margin}"), out], ""
                    yield "moved", inner.lineno, [out, Edit(end, end, f"\n{margin}{indented(inner)}")], ""
                for call in (at for inner in body for at in ast.walk(inner) if isinstance(at, ast.Call)):
                    first = Edit(start, start, f"{KEPT} = {ast.unparse(call)}\n{margin}")
                    yield "moved", call.lineno, [first, Edit(*self._span(call), KEPT)], ""
            case ast.With(body=body):
                yield instead("graph", indented(*body))
            case ast.Assign() if self._torch:
                yield instead("graph", f"with torch.no_grad(): {ast.unparse(node)}")
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="backward"))):
                for name in self._optimizers:
                    yield before("inserted", f"{name}.zero_grad()")
                    yield "inserted", node.lineno, [Edit(end, end, f"\n{margin}{name}.step()")], ""
        if isinstance(node, ast.Raise):
            return
        yield instead("refused", REFUSE)
        guarded = ast.parse(f"try:\n pass\nexcept Exception:\n {REFUSE}").body[0]
        assert isinstance(guarded, ast.Try)
        guarded.body = [node]
        yield instead("refused", indented(guarded))
        if (place.owner is not unit and index == 0) or isinstance(node, ast.Return):
            constants = (inner.value for inner in ast.walk(unit) if isinstance(inner, ast.Constant))
            words = sorted({word for word in constants if isinstance(word, str) and word.isidentifier()})
            for name in self._names[unit]:
                sizes = [f"[*getattr({name}, 'shape', ())][{part}] == [1]" for part in ("-1:", ":1")]
                for test in (f"{name} is None", f"{name} == 1", f"{name} not in {words!r}", *sizes):
                    yield before("refused", f"if {test}: {REFUSE}")


# The table and its patterns


@functools.cache
def _table(torch: bool) -> list[tuple[str, frozenset[str], ast.AST, list[str]]]:
    """Read TABLE: each kind, within what, its pattern, and the texts."""
    table = TABLE
    rows: list[tuple[str, frozenset[str], ast.AST, list[str]]] = []
    for ours, theirs in () if torch else IN_NUMPY.items():
        table = table.replace(ours, theirs)
    for line in table.strip().splitlines():
        left, _, right = line.partition(" -> ")
        kind, patterns = left.split(maxsplit=1)
        kind, _, holders = kind.partition("@")
        for pattern in patterns.split("; "):
            for sign in OPERATORS if " OP" in pattern else ["OP"]:
                (parsed,) = ast.parse(pattern.strip().replace("OP", sign)).body
                node = parsed.value if isinstance(parsed, ast.Expr) else parsed
                texts = [text.replace("OP", sign) for text in right.split("; ")]
                rows.append((kind, frozenset(filter(None, holders.split(","))), node, texts))
    return rows


def _binds(pattern: Any, node: Any, bound: dict[str, str]) -> bool:
    """Match a node with a pattern, and enter the text of each placeholder."""
    match pattern, node:
        case ast.Name(id="A" | "B" | "C" | "D" | "E" | "F" as letter), ast.expr():
            return bound.setdefault(letter, text := _text(node)) == text
        case ast.Attribute(attr="F"), ast.Attribute():
            bound["F"] = node.attr
            return _binds(pattern.value, node.value, bound)
        case ast.Call(args=[*placed, ast.Name(id="REST")]), ast.Call() if len(node.args) >= len(placed):
            bound["REST"] = ", ".join(map(ast.unparse, [*node.args[len(placed) :], *node.keywords]))
            pairs = zip([pattern.func, *placed], [node.func, *node.args], strict=False)
            return all(_binds(*pair, bound) for pair in pairs)
        case list(), list():
            return len(pattern) == len(node) and all(_binds(*pair, bound) for pair in zip(pattern, node, strict=True))
        case ast.AST(), _:
            fields = (field for field in pattern._fields if field not in ("ctx", "kind", "type_comment"))
            return type(node) is type(pattern) and all(
                _binds(getattr(pattern, field), getattr(node, field), bound) for field in fields
            )
    return type(node) is type(pattern) and bool(pattern == node)


def _text(node: ast.AST) -> str:
    """Write a node so that something can be put beside it."""
    return ast.unparse(node) if isinstance(node, ATOMS) else f"({ast.unparse(node)})"


# What a definition consists of


def words_of(text: str) -> Set[str]:
    """Return the words and parts of names in a text, but those of Python, in the singular."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]{3,}", text.lower()) if not keyword.iskeyword(word)}


def _places(unit: ast.stmt) -> Iterator[Place]:
    """Yield each statement of a definition, and each expression that is read, from the outside inwards."""
    waiting = [(child, unit, field, unit) for field, child in _children(unit)]
    while waiting:
        node, owner, field, statement = waiting.pop(0)
        statement = node if isinstance(node, ast.stmt) else statement
        is_read = isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
        if isinstance(node, ast.stmt) or is_read:
            yield Place(node, owner, field, statement)
        if not isinstance(node, ast.JoinedStr):
            holder = owner if isinstance(node, ast.keyword) else node
            waiting += [(child, holder, field, statement) for field, child in _children(node)]


def _children(node: ast.AST) -> Iterator[tuple[str, Any]]:
    for field, value in ast.iter_fields(node):
        for child in (value if isinstance(value, list) else [value]) if field not in UNTOUCHED else ():
            if isinstance(child, ast.AST):
                yield field, child


def _scope(unit: ast.stmt) -> list[str]:
    """List the parameters and variables of a definition, but those of comprehensions."""
    names = [node.arg for node in ast.walk(unit) if isinstance(node, ast.arg)]
    inner = {
        id(name) for loop in ast.walk(unit) if isinstance(loop, ast.comprehension) for name in ast.walk(loop.target)
    }
    stored = (node for node in ast.walk(unit) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return list(dict.fromkeys([*names, *(node.id for node in stored if id(node) not in inner)]))


def _alike(name: str) -> list[str]:
    return list(dict.fromkeys(other for group in GROUPS if name in group for other in group if other != name))
