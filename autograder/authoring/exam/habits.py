"""Wrong variants of a graded function, made by generation: each parameter ignored, each habit of students tried.

A habit is a small function that finds its pattern in the syntax tree and yields the changes of the text; `@habit`
enters it into HABITS, under the name that clauses of a contract use (`habit:clamp`). Changes are edits of the text and
not of the tree, so that comments, blank lines and the numbers of lines stay: marks in the solution go by line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

# Nodes beside which an operator can be put without brackets
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)


class Edit(NamedTuple):
    """New text for the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


Change = Edit | list[Edit]


@dataclass(frozen=True)
class Dialect:
    """How habits are written of tensors, arrays or numbers: templates in which {0}, {1} are expressions as they stand.

    {atom} is an expression in brackets if need be; no_nan and truncated are "" where there is no such function.
    """

    within: str
    above: str
    no_nan: str
    close: str
    truncated: str
    casts: tuple[str, ...]


DIALECTS = {
    "torch": Dialect(
        within="{atom}.clamp({low}, {high})",
        above="{atom}.clamp(min={low})",
        no_nan="torch.nan_to_num({0})",
        close="torch.isclose(torch.as_tensor({0}), torch.as_tensor({1}))",
        truncated="{atom}.trunc()",
        casts=("{atom}.float()", "{atom}.double()", "{atom}.half()"),
    ),
    "numpy": Dialect(
        within="np.clip({0}, {low}, {high})",
        above="np.maximum({0}, {low})",
        no_nan="np.nan_to_num({0})",
        close="np.isclose({0}, {1})",
        truncated="np.trunc({0})",
        casts=("np.asarray({0}, dtype=np.float32)",),
    ),
    "python": Dialect(
        within="max({low}, min({high}, {0}))",
        above="max({0}, {low})",
        no_nan="",
        close="(abs({0} - {atom1}) < 1e-8)",
        truncated="",
        casts=(),
    ),
}


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
        nodes = [node for statement in self.body for node in ast.walk(statement) if hasattr(node, "lineno")]
        return sorted(nodes, key=self.span)

    def calls(self, *names: str) -> list[ast.Call]:
        """Every call of a function or a method of one of these names."""
        return [node for node in self.nodes if isinstance(node, ast.Call) and called(node) in names]

    def methods(self, *names: str) -> list[tuple[ast.Call, ast.Attribute]]:
        """Those with something before the name's dot, and what is called: `x.exp`, `torch.exp`."""
        return [(node, node.func) for node in self.calls(*names) if isinstance(node.func, ast.Attribute)]

    @cached_property
    def statements(self) -> list[tuple[ast.stmt, tuple[ast.For, ...]]]:
        """Every statement that begins a line, with the loops around it, the outermost first."""
        return list(_statements(self.body, ()))

    @cached_property
    def assignments(self) -> list[ast.Assign]:
        """Those of its statements that are assignments."""
        return [statement for statement, _ in self.statements if isinstance(statement, ast.Assign)]

    @cached_property
    def parameters(self) -> dict[str, tuple[str, ast.expr | None]]:
        """Each parameter's annotation as text, and its default."""
        given = self.node.args
        named = [*given.posonlyargs, *given.args]
        defaults: list[ast.expr | None] = [None] * (len(named) - len(given.defaults)) + list(given.defaults)
        pairs = [*zip(named, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
        return {one.arg: (ast.unparse(one.annotation) if one.annotation else "", default) for one, default in pairs}

    @cached_property
    def values(self) -> str:
        """What the module computes with, as its imports say: "torch", "numpy", or "python"'s numbers and lists."""
        imports = [node for node in ast.walk(self.module) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in imports for alias in node.names}
        names |= {getattr(node, "module", None) or "" for node in imports}
        packages = {name.partition(".")[0] for name in names}
        return "torch" if "torch" in packages else "numpy" if "numpy" in packages else "python"

    @property
    def dialect(self) -> Dialect:
        """How habits are written of these values."""
        return DIALECTS[self.values]

    @cached_property
    def documented(self) -> dict[str, str]:
        """What the docstring says of each parameter in its row's second word, `float` or `float[batch`."""
        rows = [line.split() for line in self.docstring.splitlines()]
        return {row[0]: row[1].rstrip(";,.") for row in rows if len(row) > 1 and row[0] in self.parameters}

    @cached_property
    def tensors(self) -> list[str]:
        """Parameters that are tensors or arrays of floating numbers, or None: those that the docstring calls no int."""
        tensors = []
        for name, (annotation, _) in self.parameters.items():
            kind = self.documented.get(name, "")
            is_array = re.search(r"\bnd ?array\b|\bNDArray\b", annotation) or kind.startswith("float[")
            if "Tensor" in annotation or (self.values == "numpy" and is_array):
                tensors += [] if kind.startswith("int") else [name]
        return tensors

    @cached_property
    def results(self) -> list[ast.expr]:
        """What a function that returns one tensor, or one array of floating numbers, returns."""
        statements = [statement for statement, _ in self.statements]
        values = [one.value for one in statements if isinstance(one, ast.Return) and one.value is not None]
        return values if self.returns_tensor or self.returns_array else []

    @property
    def returns(self) -> str:
        """What it returns, as it is annotated; "" where it is not."""
        return "" if self.node.returns is None else ast.unparse(self.node.returns)

    @property
    def returns_tensor(self) -> bool:
        """Whether it returns one tensor."""
        return self.returns == "Tensor"

    @property
    def returns_array(self) -> bool:
        """Whether it returns one NumPy array of floating numbers, as its docstring says."""
        is_numpy = re.search(r"^import numpy as np$", self.source, re.MULTILINE) is not None
        return is_numpy and re.search(r"^returns +float\[", self.docstring, re.MULTILINE) is not None

    @cached_property
    def models(self) -> list[str]:
        """Names of the function that hold a model: annotated as a module, called so, or asked for its parameters."""
        models = [n for n, (kind, _) in self.parameters.items() if "Module" in kind or n.rpartition("_")[2] == "model"]
        inner = [node for node in self.nodes if isinstance(node, ast.arg) and node.annotation is not None]
        models += [node.arg for node in inner if "Module" in ast.unparse(node.annotation or node)]
        asked = [function.value for _, function in self.methods("parameters", "eval", "train")]
        models += [value.id for value in asked if isinstance(value, ast.Name)]
        assigned = [node for node in self.nodes if isinstance(node, ast.Assign)]
        copies = [one for one in assigned if "copy(" in self.text(one) and names_in(one.value) & {*models}]
        targets = [copy.targets[0] for copy in copies]
        return list(dict.fromkeys([*models, *(one.id for one in targets if isinstance(one, ast.Name))]))

    # The text and its edits

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

    def written(self, template: str, node: ast.AST, **more: str) -> str:
        """A template of the dialect with a node in it."""
        return template.format(self.text(node), atom=self.atom(node), **more)

    def replace(self, node: ast.AST, text: str) -> Edit:
        """New text for a node."""
        return Edit(*self.span(node), text)

    def before(self, statement: ast.stmt, *lines: str) -> Edit:
        """Lines above a statement, as far indented."""
        return self._inserted(statement.lineno - 1, statement, lines)

    def after(self, statement: ast.stmt, *lines: str) -> Edit:
        """Lines below a statement, as far indented."""
        return self._inserted(statement.end_lineno or statement.lineno, statement, lines)

    def _inserted(self, place: int, statement: ast.stmt, lines: Sequence[str]) -> Edit:
        line = self.source.splitlines()[statement.lineno - 1]
        margin = line[: len(line) - len(line.lstrip())]  # blanks or tabs
        start = self._line_starts[place]
        return Edit(start, start, "".join(f"{margin}{line}\n" for line in lines))

    def first(self, *lines: str) -> Edit:
        """Lines above the first statement."""
        return self.before(self.body[0], *lines)

    def rebound(self, name: str, text: str) -> Edit:
        """Give a parameter another value in the first line, unless it is None and may be."""
        optional = f"{name} if {name} is None else " if "None" in self.parameters[name][0] else ""
        return self.first(f"{name} = {optional}{text}")

    def without(self, statement: ast.stmt) -> Edit:
        """The lines of a statement gone."""
        lines = self._line_starts
        return Edit(lines[statement.lineno - 1], lines[statement.end_lineno or statement.lineno], "")

    def without_argument(self, node: ast.Call, keyword: ast.keyword) -> Edit:
        """A call without one of its keyword arguments, and without the comma that parts it from another."""
        others = [self.text(one) for one in (*node.args, *node.keywords) if one is not keyword]
        return self.replace(node, f"{self.text(node.func)}({', '.join(others)})")

    def changed(self, change: Change) -> str:
        """The whole text with this change."""
        data = self.source.encode()
        for edit in sorted([change] if isinstance(change, Edit) else change, key=lambda edit: edit.start, reverse=True):
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


# Parameters: ignored, of other names or defaults, tested with `> 0` for "is not 0"

NUMBERS = {"int": ("1", "2", "3"), "float": ("0.0", "0.2", "1.0")}  # one of which a student might write in
ARRAYS = ("float[", "int[")  # as a docstring says it
POSITIVE = {ast.NotEq: ">", ast.Eq: "<="}


def parameter_changes(graded: GradedText) -> Iterator[tuple[str, Change]]:
    """Yield each change with the name of what is done to which parameter, `epsilon-ignored`; `names-changed` is all."""
    if parameters := [*graded.node.args.args, *graded.node.args.kwonlyargs]:  # names that no caller knows
        renamed = [graded.replace(one, graded.text(one).replace(one.arg, f"my_{one.arg}", 1)) for one in parameters]
        names = ", ".join(one.arg for one in parameters)
        yield "names-changed", [*renamed, graded.first(f"{names} = {', '.join(f'my_{one.arg}' for one in parameters)}")]
    for name, (annotated, default) in graded.parameters.items():
        kind = graded.documented.get(name, "")
        annotation = kind if "ndarray" in annotated and kind.startswith(ARRAYS) else annotated or kind
        for value in [graded.text(default)] if default is not None else _constants(graded, name, annotation):
            yield f"{name}-ignored", graded.first(f"{name} = {value}")
        for value in _other_defaults(graded, annotation, default):
            assert default is not None
            yield f"{name}-default", graded.replace(default, value)
        for node in graded.nodes if "Tensor" not in annotation else ():
            if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or node.left.id != name:
                continue
            sign, right = POSITIVE.get(type(node.ops[0])), node.comparators[0]
            if sign is not None and isinstance(right, ast.Constant) and right.value == 0 and right.value is not False:
                yield f"{name}-above-0", graded.replace(node, f"{name} {sign} {graded.text(right)}")


def _constants(graded: GradedText, name: str, annotation: str) -> Sequence[str]:
    """What a function that ignores a parameter without a default would take in its place."""
    if annotation == "str" or annotation.startswith(('"', "'")):  # `"up" or "down"`, as a docstring says it
        return [repr(value) for value in sorted(words_compared(graded.node).get(name, ()))]
    if annotation == "Tensor":
        return [f"torch.zeros_like({name})", f"torch.ones_like({name})"]
    if annotation.startswith(ARRAYS):
        return [f"0 * {name}", f"0 * {name} + 1"]
    return NUMBERS.get(annotation, ())


def _other_defaults(graded: GradedText, annotation: str, default: ast.expr | None) -> list[str]:
    if isinstance(default, ast.Name):
        if annotation in NUMBERS:
            return [f"{default.id} + 1"]
        if annotation.startswith(("list", "tuple", "Sequence")):
            return [f"{default.id}[:1]"]
        return ["lambda *given, **named: 0.0"]  # a function, whatever it is called with
    value = default.value if isinstance(default, ast.Constant) else ...
    if isinstance(value, bool):
        return [repr(not value)]
    if isinstance(value, int):
        return [repr(value + 1)]
    if isinstance(value, float):
        return [repr(2 * value or 0.1)]
    if isinstance(value, str):  # the other words that a parameter which can be this one is compared with somewhere
        functions = [node for node in graded.module.body if isinstance(node, ast.FunctionDef)]
        groups = [words for function in functions for words in words_compared(function).values() if value in words]
        return [repr(word) for word in sorted({word for words in groups for word in words} - {value})]
    return ["8"] if value is None and annotation.startswith("int") else []


def words_compared(function: ast.FunctionDef) -> dict[str, set[str]]:
    """Each name of a function that is compared with words, and the words."""
    compared: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            constants = [one for right in node.comparators for one in ast.walk(right) if isinstance(one, ast.Constant)]
            words = {one.value for one in constants if isinstance(one.value, str)}
            compared.setdefault(node.left.id, set()).update(words)
    return compared


# Habits

Habit = Callable[[GradedText], Iterator[Change]]
HABITS: dict[str, Habit] = {}


def habit(name: str) -> Callable[[Habit], Habit]:
    """Enter a habit into HABITS; where two make the same text, the first gives the name."""

    def entered(changes: Habit) -> Habit:
        HABITS[name] = changes
        return changes

    return entered


# Arithmetic: guards "for stability", nearly equal for equal, one-pass variance, truncation

UNDEFINED = re.compile(r"\bnan\b|\binf|\bfinite|not a number|undefined", re.IGNORECASE)


@habit("clamp")
def clamped(graded: GradedText) -> Iterator[Change]:
    """`exp` of what is kept within bounds, logarithms and denominators kept from the extreme."""
    dialect, bounds = graded.dialect, (("-10", "10"), ("-20", "20"))
    for node in graded.calls("exp"):
        for inside, (low, high) in product(_argument(node), bounds if graded.values == "torch" else bounds[:1]):
            yield graded.replace(inside, graded.written(dialect.within, inside, low=low, high=high))
    for node in graded.calls("log", "log_softmax"):
        yield graded.replace(node, graded.written(dialect.above, node, low="-20"))
    spreads = ("std", "var", "mean", "norm")  # of arrays a spread or a mean may vanish: sums are of weights
    for _, below in _quotients(graded):
        is_spread = any(called(one) in spreads for one in ast.walk(below))
        if _is_reduction(below) if graded.values == "torch" else is_spread:
            yield graded.replace(below, graded.written(dialect.above, below, low="1e-3"))


@habit("constant-in-logarithm")
def constant_in_logarithm(graded: GradedText) -> Iterator[Change]:
    """A small constant under a logarithm, the softmax taken apart for it."""
    for node in graded.calls("log"):
        for inside in _argument(node):
            yield graded.replace(inside, f"({graded.text(inside)} + 1e-8)")
    for node in graded.calls("log_softmax"):
        given = ", ".join(graded.text(one) for one in (*node.args, *node.keywords))
        yield graded.replace(node, f"torch.log(torch.softmax({given}) + 1e-8)")


@habit("nan-to-num")
def nan_to_num(graded: GradedText) -> Iterator[Change]:
    """Not-a-number and infinity replaced: in a quotient, an exponential, a result. Of arrays, if these are told of."""
    if not graded.dialect.no_nan or not (graded.values == "torch" or UNDEFINED.search(graded.docstring)):
        return
    quotients = [node for node, below in _quotients(graded) if _is_reduction(below)]
    for node in (*quotients, *graded.calls("exp"), *graded.results):
        yield graded.replace(node, graded.written(graded.dialect.no_nan, node))


@habit("isclose-for-eq")
def isclose_for_equal(graded: GradedText) -> Iterator[Change]:
    """Nearly equal where equal is meant."""
    for node in graded.nodes:
        if not isinstance(node, ast.Compare) or isinstance(node.comparators[0], ast.Constant | ast.Tuple):
            continue
        if graded.values != "torch" and any(graded.documented.get(n, "").startswith("int") for n in names_in(node)):
            continue  # whole numbers that are close are equal
        left, right = node.left, node.comparators[0]
        near = graded.dialect.close.format(graded.text(left), graded.text(right), atom1=graded.atom(right))
        if isinstance(node.ops[0], ast.Eq):
            yield graded.replace(node, near)
        if isinstance(node.ops[0], ast.NotEq):
            yield graded.replace(node, f"{'not ' if graded.values == 'python' else '~'}{near}")


@habit("one-pass-variance")
def one_pass_variance(graded: GradedText) -> Iterator[Change]:
    """The mean of the squares less the square of the mean."""
    for call, function in graded.methods("std", "var"):
        yield graded.replace(call, _one_pass(graded, call, function))
    for node in graded.nodes:  # `probs @ (x - mean).square()` as the expected square less the square of the mean
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.MatMult):
            continue
        for one in ast.walk(node):
            if not isinstance(one, ast.Call) or called(one) != "square" or not isinstance(one.func, ast.Attribute):
                continue
            spread = one.func.value
            if isinstance(spread, ast.BinOp) and isinstance(spread.op, ast.Sub):
                mean = spread.right.value if isinstance(spread.right, ast.Subscript) else spread.right
                whole = graded.text(node)
                squares = whole.replace(f"({graded.text(spread)})", graded.atom(spread.left))
                total = ".sum()" if ".sum(" in whole else ""
                yield graded.replace(node, f"({squares} - {graded.atom(mean)}.square(){total})")


def _one_pass(graded: GradedText, node: ast.Call, function: ast.Attribute) -> str:
    """The variance in one pass; torch's is a sample's unless `correction` says less, NumPy's has `ddof` 0."""
    named = {one.arg: graded.text(one.value) for one in node.keywords}
    places = [graded.text(one) for one in node.args]
    if graded.values != "numpy":
        fewer, values = named.pop("correction", "1"), graded.atom(function.value)
        options = ", ".join([*places, *(f"{name}={value}" for name, value in named.items())])
        count = f"{values}.shape[{named.get('dim', '-1')}]"
        spread = f"({values}.square().mean({options}) - {values}.mean({options}).square()).clamp(min=0)"
        variance = f"({spread} * {count} / ({count} - ({fewer})))"
        return f"{variance}.sqrt()" if function.attr == "std" else variance
    fewer = named.pop("ddof", "0")
    is_function = ast.unparse(function.value) in ("np", "numpy")  # np.std(x, …); else x.std(…)
    values = f"({places.pop(0)})" if is_function and places else graded.atom(function.value)
    options = ", ".join([*places, *(f"{name}={value}" for name, value in named.items())])
    axis = named.get("axis", places[0] if places else "None")
    variance = f"np.maximum(({values} ** 2).mean({options}) - {values}.mean({options}) ** 2, 0)"
    if fewer != "0":
        count = f"{values}.size" if axis == "None" else f"{values}.shape[{axis}]"
        variance = f"({variance} * {count} / ({count} - {fewer}))"
    return f"np.sqrt({variance})" if function.attr == "std" else variance


@habit("another-ddof")
def another_ddof(graded: GradedText) -> Iterator[Change]:
    """The sample's spread for the population's, and the other way round."""
    for node in graded.calls("std", "var") if graded.values == "numpy" else ():
        given = [*node.args, *node.keywords]
        others = [graded.text(one) for one in given if getattr(one, "arg", "") != "ddof"]
        others += ["ddof=1"] if len(others) == len(given) else []
        yield graded.replace(node, f"{graded.text(node.func)}({', '.join(others)})")


@habit("truncation")
def truncated(graded: GradedText) -> Iterator[Change]:
    """Whole numbers where fractions are meant."""
    for node in graded.calls("float", "item"):
        yield graded.replace(node, f"int({graded.text(node)})")
    for quotient, below in _quotients(graded):
        above = quotient.left
        is_sum = isinstance(above, ast.BinOp) and isinstance(above.op, ast.Add | ast.Sub)  # which has its brackets
        numerator = graded.atom(above) if is_sum else graded.text(above)
        yield graded.replace(quotient, f"{numerator} // {graded.atom(below)}")
    for name in graded.tensors:
        yield graded.rebound(name, graded.dialect.truncated.format(name, atom=name))
    for name in (name for name, (kind, _) in graded.parameters.items() if kind == "float"):
        yield graded.first(f"{name} = int({name})")


def _argument(node: ast.Call) -> list[ast.expr]:
    """What a function of one tensor is applied to, called as `torch.exp(x)` or as `x.exp()`."""
    if node.args:
        return node.args[:1]
    return [node.func.value] if isinstance(node.func, ast.Attribute) else []


def _quotients(graded: GradedText) -> list[tuple[ast.BinOp, ast.expr]]:
    """Each quotient and its denominator."""
    nodes = [node for node in graded.nodes if isinstance(node, ast.BinOp)]
    return [(node, node.right) for node in nodes if isinstance(node.op, ast.Div)]


def _is_reduction(node: ast.expr) -> bool:
    """Whether a denominator is computed from tensors, as far as its text shows."""
    reductions = ("std", "var", "sum", "mean", "exp", "sqrt")
    return any(called(one) in reductions for one in ast.walk(node)) and called(node) != "clamp"


# Tensors: dtypes, axes, sizes, arguments that are written into

LIKE = {"zeros_like": "zeros", "ones_like": "ones"}
IN_PLACE = {  # sign → torch's method, NumPy's function, Python's sign
    ast.Add: ("add_", "add", "+="),
    ast.Sub: ("sub_", "subtract", "-="),
    ast.Mult: ("mul_", "multiply", "*="),
    ast.Div: ("div_", "divide", "/="),
}
UNARY = ("clamp", "exp", "log", "square", "sqrt", "abs", "masked_fill", "unsqueeze", "squeeze")  # of which torch has x_


@habit("cast")
def cast(graded: GradedText) -> Iterator[Change]:
    """`.float()` and its like, on what comes in and on what goes out."""
    casts = graded.dialect.casts
    for name, other in product(graded.tensors, casts):
        yield graded.rebound(name, other.format(name, atom=name))
    for result, other in product(graded.results, casts if graded.returns_tensor else ("{atom}.astype(np.float32)",)):
        yield graded.replace(result, graded.written(other, result))


@habit("dtype-dropped")
def dtype_dropped(graded: GradedText) -> Iterator[Change]:
    """A tensor made without a dtype, or only of another's shape."""
    for node in graded.nodes:
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg == "dtype":
                yield graded.without_argument(node, keyword)  # type: ignore[arg-type]
    package = "np" if graded.values == "numpy" else "torch"
    for call in (call for call in graded.calls(*LIKE) if call.args):
        yield graded.replace(call, f"{package}.{LIKE[called(call)]}({graded.atom(call.args[0])}.shape)")
    for call, function in graded.methods("astype"):
        yield graded.replace(call, graded.text(function.value))


@habit("in-place")
def in_place(graded: GradedText) -> Iterator[Change]:
    """Out-of-place arithmetic written into what it starts from."""
    for node in graded.nodes:
        if isinstance(node, ast.BinOp) and type(node.op) in IN_PLACE and graded.text(node.left) in graded.tensors:
            left, right = graded.text(node.left), graded.text(node.right)
            method, function, _ = IN_PLACE[type(node.op)]
            of_array = f"np.{function}({left}, {right}, out={left})"
            yield graded.replace(node, of_array if graded.values == "numpy" else f"{left}.{method}({right})")
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and type(node.value.op) in IN_PLACE:
            target, value = node.targets[0], node.value
            if ast.unparse(value.left) == ast.unparse(target):  # x = x + y
                sign = IN_PLACE[type(value.op)][2]
                yield graded.replace(node, f"{graded.text(target)} {sign} {graded.text(value.right)}")
    for _, attribute in graded.methods(*UNARY) if graded.values == "torch" else ():
        if isinstance(attribute.value, ast.Name) and attribute.value.id not in ("torch", "F"):
            yield graded.replace(attribute, f"{attribute.value.id}.{attribute.attr}_")


@habit("not-cloned")
def not_cloned(graded: GradedText) -> Iterator[Change]:
    """The tensor itself where a clone of it is meant, the array where a copy is."""
    for node, function in graded.methods("clone" if graded.values == "torch" else "copy"):
        if not node.args:
            yield graded.replace(node, graded.text(function.value))


@habit("reshape-for-permute")
def reshaped(graded: GradedText) -> Iterator[Change]:
    """`reshape` where axes change places, or the other way round; a row repeated where a table is."""
    if graded.values != "torch":
        yield from _reshaped_arrays(graded)
        return
    for node, function in graded.methods("permute", "transpose", "movedim", "swapaxes"):
        yield graded.replace(node, f"{graded.text(function.value)}.reshape({graded.text(node)}.shape)")
    for _, function in graded.methods("reshape", "view", "flatten"):
        yield graded.replace(function, f"{graded.atom(function.value)}.transpose(0, -1).{function.attr}")
    for node in graded.calls("rearrange"):
        if _reorders(node):
            yield graded.replace(node, f"{graded.atom(node.args[0])}.reshape({graded.text(node)}.shape)")
    for node in graded.calls("repeat"):
        if isinstance(node.func, ast.Name):  # of einops
            whole, once = graded.text(node), graded.atom(node.args[0])
            times = f"({whole}).numel() // {once}.numel()"
            for method in ("tile", "repeat_interleave"):
                yield graded.replace(node, f"{once}.reshape(-1).{method}({times}).reshape(({whole}).shape)")


def _reshaped_arrays(graded: GradedText) -> Iterator[Change]:
    for node in graded.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "T":
            yield graded.replace(node, f"{graded.text(node.value)}.reshape({graded.text(node)}.shape)")
    turning = ("transpose", "swapaxes", "moveaxis", "rollaxis")
    for call, function in graded.methods(*turning, "reshape", "ravel", "flatten"):
        is_function = ast.unparse(function.value) in ("np", "numpy")
        values = graded.atom(call.args[0] if is_function and call.args else function.value)
        if function.attr in turning and not (is_function and not call.args):
            yield graded.replace(call, f"{values}.reshape({graded.text(call)}.shape)")
        elif function.attr not in turning and not is_function:
            yield graded.replace(function, f"{values}.swapaxes(0, -1).{function.attr}")


def _reorders(node: ast.Call) -> bool:
    """Whether an einops pattern puts an axis before one that it came after."""
    pattern = next((one.value for one in node.args if isinstance(one, ast.Constant)), "")
    before, _, after = str(pattern).partition("->")
    named = re.findall(r"[a-z]\w*", after)
    return [name for name in re.findall(r"[a-z]\w*", before) if name in named] != named


@habit("axis-dropped")
def axis_dropped(graded: GradedText) -> Iterator[Change]:
    """A reduction without `keepdim`, an axis of length one that is not added."""
    for node in graded.nodes:
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            if keyword.arg in ("keepdim", "keepdims"):
                yield graded.without_argument(node, keyword)  # type: ignore[arg-type]
        if isinstance(node, ast.Subscript) and re.search(r"\[(.*, *)?(None|np\.newaxis)\]$", graded.text(node)):
            yield graded.replace(node, graded.text(node.value))
    for call, function in graded.methods("unsqueeze", "squeeze", "expand_dims"):
        is_function = ast.unparse(function.value) == "np" and call.args
        yield graded.replace(call, graded.text(call.args[0] if is_function else function.value))


@habit("array-of-integers")
def array_of_integers(graded: GradedText) -> Iterator[Change]:
    """An array of whole numbers to put fractions into."""
    made = graded.calls("zeros", "empty", "full", "zeros_like", "empty_like", "full_like")
    for node in made if graded.values == "numpy" else ():
        if node.args and "dtype" not in [one.arg for one in node.keywords]:
            yield graded.replace(node, f"{graded.text(node)[:-1]}, dtype=int)")


# Chance: NumPy's global state for the generator that was given, a seed of one's own

METHODS = (
    "random", "choice", "permutation", "shuffle", "normal", "standard_normal", "uniform", "binomial", "multinomial",
    "exponential", "gamma", "beta", "dirichlet", "poisson",
)  # fmt: skip
GLOBAL = {**{name: name for name in METHODS}, "integers": "randint"}  # of a Generator → of np.random


@habit("global-random-state")
def global_random_state(graded: GradedText) -> Iterator[Change]:
    """`np.random.normal` for `rng.normal`: whoever gave the generator does not get its numbers."""
    if graded.values == "numpy":
        made = [one.targets[0] for one in graded.assignments if called(one.value) == "default_rng"]
        generators = {*_given_generators(graded), *(one.id for one in made if isinstance(one, ast.Name))}
        for _, function in graded.methods(*GLOBAL):
            if isinstance(function.value, ast.Name) and function.value.id in generators:
                yield graded.replace(function, f"np.random.{GLOBAL[function.attr]}")


@habit("own-seed")
def own_seed(graded: GradedText) -> Iterator[Change]:
    """A generator of one's own where one was given, or with a seed that nobody asked for, or with none."""
    if graded.values == "numpy":
        for name in _given_generators(graded):
            yield graded.first(f"{name} = np.random.default_rng(0)")
        for node, seed in product(graded.calls("default_rng"), ("", "0")):
            yield graded.replace(node, f"{graded.text(node.func)}({seed})")


def _given_generators(graded: GradedText) -> list[str]:
    """Parameters that are generators, as they are annotated or called."""
    return [n for n, (kind, _) in graded.parameters.items() if "Generator" in kind or n in ("rng", "generator")]


@habit("size-written-in")
def size_written_in(graded: GradedText) -> Iterator[Change]:
    """A number where a size is asked for; the size that the first row or column has."""
    for node in graded.nodes:
        of_shape = isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "shape"
        if called(node) == "len" or of_shape:
            for size in ("2", "3", "4", "5"):
                yield graded.replace(node, size)
    for call, function in graded.methods("max"):
        if not call.args and not call.keywords:  # x.max(), the greatest of all
            values = graded.atom(function.value)
            yield graded.replace(call, f"{values}[0].max()")
            yield graded.replace(call, f"{values}[..., 0].max()")


# Models: their mode around a call, graphs cut or kept, calls too many or too few

MODES = (  # above and below the statement that calls the model
    ("{0}.eval()", "{0}.train()"),
    ("{0}.eval()", ""),
    ("{0}.train()", ""),
    ("was_training = {0}.training; {0}.eval()", "{0}.train(was_training)"),
    ("was_training = {0}.training; {0}.train()", "{0}.train(was_training)"),
)


@habit("mode-around-call")
def mode_around_call(graded: GradedText) -> Iterator[Change]:
    """`eval()` before a call of a model, `train()` after it, and their variants."""
    for (statement, model), (above, below) in product(_model_calls(graded), MODES):
        edits = [graded.before(statement, above.format(model))]
        if below and not isinstance(statement, ast.Return):
            edits.append(graded.after(statement, below.format(model)))
        yield edits


@habit("detach-for-no-grad")
def detach_for_no_grad(graded: GradedText) -> Iterator[Change]:
    """Results detached in place of computing them under `no_grad`; neither of the two."""
    for statement, _ in graded.statements:
        if isinstance(statement, ast.With) and "no_grad" in graded.text(statement.items[0].context_expr):
            above = Edit(graded.span(statement)[0], graded.span(statement.items[0].context_expr)[1], "if True")
            values = [one.value for one in ast.walk(statement) if isinstance(one, ast.Assign | ast.Return)]
            calls = [value for value in values if isinstance(value, ast.Call)]
            yield [above, *(graded.replace(call, f"{graded.text(call)}.detach()") for call in calls)]
            yield above


@habit("detach-dropped")
def detach_dropped(graded: GradedText) -> Iterator[Change]:
    """A tensor with its graph where one without is meant."""
    for node, function in graded.methods("detach"):
        yield graded.replace(node, graded.text(function.value))


@habit("detached")
def detached(graded: GradedText) -> Iterator[Change]:
    """A parameter without its graph where the result is differentiable in it."""
    rows = [line.split()[0] for line in graded.docstring.splitlines() if "differentiable in it" in line]
    for name in (name for name in graded.tensors if name in rows):
        yield graded.rebound(name, f"{name}.detach()")


@habit("calls-remembered")
def calls_remembered(graded: GradedText) -> Iterator[Change]:
    """A function that was given asked once for equal arguments; a result of the first round kept for all."""
    loops = [node for node in graded.nodes if isinstance(node, ast.For | ast.ListComp | ast.GeneratorExp)]
    repeated = {called(node) for loop in loops for node in ast.walk(loop)}
    calls = [node for node in graded.nodes if isinstance(node, ast.Call)]
    handed = {one.id for node in calls for one in node.args if isinstance(one, ast.Name)}
    for name, (kind, _) in graded.parameters.items():
        if "Tensor" not in kind and (name in repeated or (name in handed and name.endswith("_fn"))):
            yield graded.first(
                f"def remembered(*given, ask={name}, answers={{}}):",
                "    answers[repr(given)] = answers[repr(given)] if repr(given) in answers else ask(*given)",
                "    return answers[repr(given)]",
                f"{name} = remembered",
            )
    for statement, around in graded.statements:
        value = statement.value if around and isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.Assign) and isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            key = repr(graded.text(statement.targets[0]))
            kept = f"kept[{key}] if {key} in kept else kept.setdefault({key}, {graded.text(value)})"
            yield [graded.first("kept = {}"), graded.replace(value, kept)]


@habit("second-pass")
def second_pass(graded: GradedText) -> Iterator[Change]:
    """A model called twice for what one call gives."""
    for statement, _ in _model_calls(graded):
        if isinstance(statement, ast.Assign):
            yield graded.before(statement, *graded.text(statement).splitlines())
    values = {ast.unparse(one.targets[0]): one.value for one in graded.assignments}
    for node, function in graded.methods("detach"):
        value = values.get(ast.unparse(function.value))
        if value is not None and names_in(value) & set(graded.models):
            yield graded.replace(node, f"{' '.join(ast.unparse(value).split())}.detach()")


def _model_calls(graded: GradedText) -> list[tuple[ast.stmt, str]]:
    """Statements that call a model, or hand it to a function that may, with its name; copies and runs are no calls."""
    calls: list[tuple[ast.stmt, str]] = []
    for statement, _ in graded.statements:
        if not isinstance(statement, ast.Assign | ast.Return | ast.Expr) or statement.value is None:
            continue
        inner = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
        for model in graded.models:
            for node in inner:
                function = node.func.id if isinstance(node.func, ast.Name) else ""
                handed = any(isinstance(one, ast.Name) and one.id == model for one in node.args)
                if function == model or (handed and function and not function[0].isupper()):
                    calls.append((statement, model))
                    break
    return calls


# Training: another optimizer, a schedule, gradients clipped or cleared elsewhere, loops that stop early

OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop")
DECAY = "for group in {0}.param_groups: group['lr'] *= {1}"


@habit("another-optimizer")
def another_optimizer(graded: GradedText) -> Iterator[Change]:
    """The optimizer of another name, or with another option."""
    for node, function in graded.methods(*OPTIMIZERS):
        for other in OPTIMIZERS:
            if other != function.attr:
                yield graded.replace(function, f"{graded.text(function.value)}.{other}")
        for option in ("weight_decay=0.01", "betas=(0.9, 0.95)", "eps=1e-5"):
            yield graded.replace(node, f"{graded.text(node)[:-1]}, {option})")


@habit("optimizer-anew")
def optimizer_anew(graded: GradedText) -> Iterator[Change]:
    """An optimizer made in each round of a loop; another of its kind in place of the one that was given."""
    loops = [one for one, _ in graded.statements if isinstance(one, ast.For)]
    for made, loop in product(_made_optimizers(graded), loops):
        yield graded.before(loop.body[0], *graded.text(made).splitlines())
    given = [name for name, (kind, _) in graded.parameters.items() if "Optimizer" in kind]
    for optimizer, model in product(given, [name for name in graded.models if name in graded.parameters]):
        anew = f"type({optimizer})({model}.parameters(), lr={optimizer}.param_groups[0]['lr'])"
        yield graded.first(f"{optimizer} = {anew}")


@habit("learning-rate-schedule")
def learning_rate_schedule(graded: GradedText) -> Iterator[Change]:
    """A learning rate that falls: after each step of the optimizer, or at the end of each round."""
    for step in _statements_calling(graded, "step"):
        function = step.value.func  # type: ignore[attr-defined]
        yield graded.after(step, DECAY.format(ast.unparse(function.value), 0.9))
    loops = [one for one, outer in graded.statements if isinstance(one, ast.For) and not outer]
    for made, loop in product(_made_optimizers(graded), loops):
        yield graded.after(loop.body[-1], DECAY.format(graded.text(made.targets[0]), 0.8))


@habit("gradients-clipped")
def gradients_clipped(graded: GradedText) -> Iterator[Change]:
    """Gradients clipped where nothing says so, or otherwise, or not at all where something does."""
    clips = [one for one, _ in graded.statements if isinstance(one, ast.Expr) and "clip_grad" in called(one.value)]
    for clip in clips:
        yield graded.without(clip)
        yield graded.replace(clip, graded.text(clip).replace("clip_grad_norm_", "clip_grad_value_"))
    bounds = () if clips else ("1.0", "0.1")
    for step, model, bound in product(_statements_calling(graded, "step"), _trained(graded), bounds):
        yield graded.before(step, f"torch.nn.utils.clip_grad_norm_({model}.parameters(), {bound})")


@habit("gradients-cleared-late")
def gradients_cleared_late(graded: GradedText) -> Iterator[Change]:
    """Gradients cleared after the step instead of before, or never, or the model's for the optimizer's."""
    for clearing in _statements_calling(graded, "zero_grad"):
        for step in _statements_calling(graded, "step"):
            yield [graded.without(clearing), graded.after(step, graded.text(clearing))]
        yield graded.without(clearing)
        for model in _trained(graded):
            yield graded.replace(clearing, f"{model}.zero_grad()")


@habit("stopped-early")
def stopped_early(graded: GradedText) -> Iterator[Change]:
    """A round left, or the training, where something is 0 everywhere or the same for each response."""
    repeated = {called(node) for loop in graded.nodes if isinstance(loop, ast.For) for node in ast.walk(loop)}
    if not _statements_calling(graded, "backward") and not repeated & {*graded.graded}:
        return  # it trains nothing, and calls no graded function again and again
    returned = ("return 0.0",) if graded.returns == "float" else ()
    axes = "dim()" if graded.values == "torch" else "ndim"
    agreement = f"if {{0}}.{axes} > 1 and ({{0}} == {{0}}[..., :1]).all(): {{1}}"
    for statement, loops in graded.statements:
        if not isinstance(statement, ast.Assign) or not _may_end_training(graded, statement.value):
            continue
        name = graded.text(statement.targets[0])
        if f"{name}.backward()" in graded.text(graded.node):
            continue  # a loss of exactly 0 says nothing of its gradient
        for away in ("continue", "break") if loops else returned:
            yield graded.after(statement, f"if not {name}.any(): {away}")
            if not isinstance(getattr(statement.value, "func", None), ast.Attribute):
                yield graded.after(statement, agreement.format(name, away))
    for name in (name for name, (kind, _) in graded.parameters.items() if kind == "Tensor"):
        for away in returned:
            yield graded.first(agreement.format(name, away))


@habit("shallow-copy")
def shallow_copy(graded: GradedText) -> Iterator[Change]:
    """A model shared, or copied without its parameters, where a deep copy is meant."""
    for node in graded.calls("deepcopy"):
        yield graded.replace(node, graded.text(node.args[0]))
        yield graded.replace(node.func, "copy.copy")


def _statements_calling(graded: GradedText, method: str) -> list[ast.Expr]:
    """Statements that call a method of that name and do nothing else."""
    return [one for one, _ in graded.statements if isinstance(one, ast.Expr) and called(one.value) == method]


def _made_optimizers(graded: GradedText) -> list[ast.Assign]:
    return [one for one in graded.assignments if called(one.value) in OPTIMIZERS]


def _trained(graded: GradedText) -> list[str]:
    """Models that came with an optimizer, or that one is made for: not the copies of them."""
    made_for = {name for statement in _made_optimizers(graded) for name in names_in(statement.value)}
    return [name for name in graded.models if name in graded.parameters or name in made_for]


def _may_end_training(graded: GradedText, value: ast.expr) -> bool:
    """Whether a value could say that there is nothing to learn: computed by a graded function, and from no model."""
    calls = {called(node) for node in ast.walk(value) if isinstance(node, ast.Call)}
    computed = any(name in graded.graded or name.startswith("score") for name in calls)
    return isinstance(value, ast.Call) and computed and not names_in(value) & set(graded.models)
