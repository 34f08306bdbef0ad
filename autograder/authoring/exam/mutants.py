"""Wrong variants of a solution: mistakes of the catalogue, and mutants, in which one thing of one function is changed.

Mutants are of three families: what becomes of each parameter, the habits of students, and operators, the small changes
of mutation testing. The lines at which some leave a function what it is are marked in the solution, each with the
reason. No mutant changes the text of an error.

Habits and operators stand in two tables: a pattern, and what stands there instead. Clauses of a contract name habits:
`habit:clamp`. Changes are edits of the text and not of the tree, so that comments and the numbers of lines stay: marks
in the solution go by line.
"""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from autograder.authoring.cache import names_in
from autograder.authoring.catalogue import marks

MOST_LINES = 6  # of a change that are shown
Family = Literal["text", "mistake", "parameter", "habit", "operator"]


@dataclass(frozen=True)
class Variant:
    """A text that is graded: one that is wrong in one function, or in family `text` a whole submission.

    slug       what is done: `epsilon-ignored`, the name of a habit or of a mistake; "" of operators
    function   the one that is wrong; "" of a submission that is graded on all
    source     the whole text: the solution with one change, or with a mistake below it
    before     the changed lines without indentation and comment, and what they become in `after`; "" of mistakes
    reason     why it may be the same function still, as its line is marked; "" where nothing says so
    line       of the solution, the first that is changed; 0 of mistakes
    """

    family: Family
    slug: str
    function: str
    source: str
    before: str = ""
    after: str = ""
    reason: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """What clauses call it: `habit:isclose-for-eq`, a mistake's slug."""
        return self.slug if self.family == "mistake" else f"{self.family}:{self.slug}" if self.slug else self.family


def mutants_of(solution: str, functions: Sequence[str]) -> list[Variant]:
    """Every mutant of these functions, each text once, with the reason that its line is marked with."""
    mutants: dict[str, Variant] = {}
    module, reasons = ast.parse(solution), marks(solution)
    nodes = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name in functions]
    for family, slug, function, text in itertools.chain.from_iterable(
        _generated(solution, module, node) for node in nodes
    ):
        if text != solution and text not in mutants:  # of those with the same text, the first
            line, before, after = changed_lines(solution, text)
            mutants[text] = Variant(family, slug, function, text, before, after, reasons.get(line, ""), line)
    return list(mutants.values())


def _generated(solution: str, module: ast.Module, node: ast.FunctionDef) -> Iterator[tuple[Family, str, str, str]]:
    graded = GradedText(solution, node, module)
    for slug, edits in parameter_changes(graded):
        yield "parameter", slug, node.name, graded.edited(edits)
    for slug, (values, pattern, template) in ((slug, row) for slug, rows in HABITS.items() for row in rows):
        for edit in rewritten(graded, pattern, template) if graded.values in values else ():
            yield "habit", slug, node.name, graded.edited([edit])
    for edit in operated(graded):
        yield "operator", "", node.name, graded.edited([edit])


def changed_lines(before: str, after: str) -> tuple[int, str, str]:
    """Return the first line that differs, counted from 1, and the lines from there to the last, before and after.

    They come without indentation and comment, the first few of many. Where lines are only added, the one that follows
    stands with them.
    """
    old, new = before.splitlines(), after.splitlines()

    def alike(one: Sequence[str], other: Sequence[str]) -> int:
        pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
        return sum(1 for _ in pairs)

    start = alike(old, new)
    rest = alike(old[start:][::-1], new[start:][::-1])
    rest -= start + rest == len(old)

    def shown(lines: Sequence[str]) -> str:
        codes = [code for line in lines if (code := line.partition("  #")[0].strip())]
        return " ⏎ ".join([*codes[:MOST_LINES], *["…"] * (len(codes) > MOST_LINES)])

    return start + 1, shown(old[start : len(old) - rest]), shown(new[start : len(new) - rest])


# A graded function and edits of its text

# Nodes beside which an operator can be put without brackets
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)


class Edit(NamedTuple):
    """New text for the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@dataclass(frozen=True)
class GradedText:
    """One graded function within the text of the solution.

    source   the whole text, which every mutant is a copy of but for its change
    node     the function in its syntax tree
    module   the whole syntax tree
    """

    source: str
    node: ast.FunctionDef
    module: ast.Module

    @cached_property
    def docstring(self) -> str:
        """Its docstring without indentation; "" where it has none."""
        return ast.get_docstring(self.node) or ""

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its body in the order of the text, but for docstrings, texts of errors and f-strings."""

        def within(node: ast.AST) -> Iterator[ast.AST]:
            yield node
            if not isinstance(node, ast.Raise | ast.JoinedStr) and not _is_text(node):
                for child in ast.iter_child_nodes(node):
                    yield from within(child)

        nodes = [node for statement in self.node.body[bool(self.docstring) :] for node in within(statement)]
        return sorted((node for node in nodes if hasattr(node, "lineno")), key=self.span)

    @cached_property
    def parameters(self) -> dict[str, tuple[str, ast.expr | None]]:
        """Each parameter's annotation as text, and its default."""
        arguments = self.node.args
        placed = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(placed) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(placed, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        return {arg.arg: (ast.unparse(arg.annotation) if arg.annotation else "", default) for arg, default in pairs}

    @cached_property
    def modules(self) -> dict[str, str]:
        """Names of the text under which it imports modules → the packages they are of."""
        imports = [alias for node in ast.walk(self.module) if isinstance(node, ast.Import) for alias in node.names]
        return {alias.asname or alias.name.partition(".")[0]: alias.name.partition(".")[0] for alias in imports}

    @cached_property
    def values(self) -> str:
        """What the text computes with: "torch", "numpy", or "python"'s numbers and lists."""
        imports = [node.module or "" for node in ast.walk(self.module) if isinstance(node, ast.ImportFrom)]
        packages = {*self.modules.values(), *(module.partition(".")[0] for module in imports)}
        return next((package for package in ("torch", "numpy") if package in packages), "python")

    @cached_property
    def documented(self) -> dict[str, str]:
        """The second word of each parameter's row in the docstring, `float` or `float[batch`."""
        rows = [line.split() for line in self.docstring.splitlines()]
        return {row[0]: row[1].rstrip(";,.") for row in rows if len(row) > 1 and row[0] in self.parameters}

    @cached_property
    def places(self) -> dict[str, list[str] | list[ast.expr]]:
        """What the patterns `def T`, `def D`, `def F` and `def R` stand for: three kinds of parameters, and results."""
        tensors = []
        for name, (annotation, _) in self.parameters.items():
            kind = self.documented.get(name, "")
            is_array = re.search(r"\bnd ?array\b|\bNDArray\b", annotation) or kind.startswith("float[")
            if "Tensor" in annotation or (self.values == "numpy" and is_array):
                tensors += [] if kind.startswith("int") else [name]
        rows = [line.split()[0] for line in self.docstring.splitlines() if "differentiable in it" in line]
        is_tensor = self.node.returns is not None and ast.unparse(self.node.returns) == "Tensor"
        returns = [node.value for node in self.nodes if isinstance(node, ast.Return) and is_tensor]
        return {
            "T": tensors,
            "D": [name for name in tensors if name in rows],
            "F": [name for name, (annotation, _) in self.parameters.items() if annotation == "float"],
            "R": [value for value in returns if value is not None],
        }

    # The text and its edits

    @cached_property
    def _bytes(self) -> bytes:
        return self.source.encode()

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *itertools.accumulate(len(line) for line in self._bytes.splitlines(keepends=True))]

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte and end of a node in the text."""
        place: dict[str, int] = vars(node)
        start = self._line_starts[place["lineno"] - 1] + place["col_offset"]
        return start, self._line_starts[place["end_lineno"] - 1] + place["end_col_offset"]

    def text(self, node: ast.AST) -> str:
        """The text of a node as it stands."""
        return self.slice(*self.span(node))

    def slice(self, start: int, end: int) -> str:
        """The text of these bytes."""
        return self._bytes[start:end].decode()

    def atom(self, node: ast.AST) -> str:
        """The text of a node, in brackets where something that is put beside it could tear it apart."""
        return self.text(node) if isinstance(node, ATOMS) else f"({self.text(node)})"

    def first(self, line: str) -> Edit:
        """A line above the first statement, as far indented."""
        statement = self.node.body[bool(self.docstring)]
        start = self._line_starts[statement.lineno - 1]
        margin = self._bytes[start : self.span(statement)[0]].decode()  # blanks or tabs
        return Edit(start, start, f"{margin}{line}\n")

    def rebind(self, name: str, text: str) -> Edit:
        """Give a parameter another value in the first line, unless it is None and may be."""
        optional = f"{name} if {name} is None else " if "None" in self.parameters[name][0] else ""
        return self.first(f"{name} = {optional}{text}")

    def edited(self, edits: Sequence[Edit]) -> str:
        """The whole text with these edits."""
        data = self._bytes
        for edit in sorted(edits, reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data.decode()


# Parameters: ignored, of other names or defaults, tested with `> 0` for "is not 0"

NUMBERS = {"int": ("1", "2", "3"), "float": ("0.0", "0.2", "1.0")}  # one of which a student might write in
ARRAYS = ("float[", "int[")  # as a docstring says it


def parameter_changes(graded: GradedText) -> Iterator[tuple[str, list[Edit]]]:
    """Yield each change with the name of what is done to which parameter, `epsilon-ignored`; `names-changed` is all."""
    if parameters := [*graded.node.args.args, *graded.node.args.kwonlyargs]:  # names that no caller knows
        names, others = (", ".join(f"{start}{arg.arg}" for arg in parameters) for start in ("", "my_"))
        starts = [graded.span(arg)[0] for arg in parameters]
        yield "names-changed", [*(Edit(start, start, "my_") for start in starts), graded.first(f"{names} = {others}")]
    for name, (annotated, default) in graded.parameters.items():
        kind = graded.documented.get(name, "")
        annotation = kind if "ndarray" in annotated and kind.startswith(ARRAYS) else annotated or kind
        for value in [graded.text(default)] if default is not None else _constants(graded, name, annotation):
            yield f"{name}-ignored", [graded.first(f"{name} = {value}")]
        for value in () if default is None else _other_defaults(graded, annotation, default):
            yield f"{name}-default", [Edit(*graded.span(default), value)]  # type: ignore[arg-type]
        for sign, other in (("!=", ">"), ("==", "<=")) if "Tensor" not in annotation else ():
            for edit in rewritten(graded, f"{name} {sign} 0", f"{name} {other} 0"):
                yield f"{name}-above-0", [edit]


def _constants(graded: GradedText, name: str, annotation: str) -> Sequence[str]:
    """What a function that ignores a parameter without a default would take in its place."""
    if annotation == "str" or annotation.startswith(('"', "'")):  # `"up" or "down"`, as a docstring says it
        return [repr(value) for value in sorted(words_compared(graded.node).get(name, ()))]
    if annotation == "Tensor":
        return [f"torch.zeros_like({name})", f"torch.ones_like({name})"]
    if annotation.startswith(ARRAYS):
        return [f"0 * {name}", f"0 * {name} + 1"]
    if graded.values == "numpy" and ("Generator" in annotation or name == "rng"):
        return ["np.random.default_rng(0)"]  # a seed of one's own
    return NUMBERS.get(annotation, ())


def _other_defaults(graded: GradedText, annotation: str, default: ast.expr) -> list[str]:
    if isinstance(default, ast.Name):
        if annotation in NUMBERS:
            return [f"{default.id} + 1"]
        if annotation.startswith(("list", "tuple", "Sequence")):
            return [f"{default.id}[:1]"]
        return ["lambda *given, **named: 0.0"]  # a function, whatever it is called with
    match getattr(default, "value", ...):
        case bool(value):
            return [repr(not value)]
        case int(value):
            return [repr(value + 1)]
        case float(value):
            return [repr(2 * value or 0.1)]
        case str(value):  # the other words that a parameter which can be this one is compared with somewhere
            functions = [node for node in graded.module.body if isinstance(node, ast.FunctionDef)]
            groups = [words for node in functions for words in words_compared(node).values() if value in words]
            return [repr(word) for word in sorted({word for words in groups for word in words} - {value})]
        case None if annotation.startswith("int"):
            return ["8"]
    return []


def words_compared(function: ast.FunctionDef) -> dict[str, set[str]]:
    """Each name of a function that is compared with words, and the words."""
    compared: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            constants = [inner for right in node.comparators for inner in ast.walk(right)]
            words = {one.value for one in constants if isinstance(one, ast.Constant) and isinstance(one.value, str)}
            compared.setdefault(node.left.id, set()).update(words)
    return compared


# Habits: values → what stands there, and what a student writes instead
#
#   M      an imported module          N      a name                T      a parameter that is a floating tensor
#   S      what holds a spread or a mean, which may vanish          V      no constant, and no whole numbers
#   A, B   any other expression        WHOLE  all that stands there
#   REST   the other arguments of a call, none of which the new text gives
#   def T, def D, def F, def R         each such parameter, or one that the result is differentiable in, or a float,
#                                      which is rebound in the first line; each tensor that is returned

TORCH, NUMPY, PYTHON = ("torch",), ("numpy",), ("python",)
ARRAY, ANY = (*TORCH, *NUMPY), (*TORCH, *NUMPY, *PYTHON)
SPREADS = ("std", "var", "mean", "norm")
ARITHMETIC = {"+": ("add", "add"), "-": ("sub", "subtract"), "*": ("mul", "multiply"), "/": ("div", "divide")}
UNARY = ("clamp", "exp", "log", "square", "sqrt", "abs", "masked_fill", "unsqueeze", "squeeze")  # of which torch has x_
GENERATORS = ("random", "choice", "permutation", "shuffle", "normal", "uniform", "binomial", "exponential", "poisson")

PLACEHOLDER = re.compile(r"\b(?:[A-Z]|REST|WHOLE)\b")


def rewritten(graded: GradedText, pattern: str, template: str) -> Iterator[Edit]:
    """Yield this rewriting at each place of the function."""
    if pattern.startswith("def "):
        for place in graded.places[pattern[4:]]:
            text = template.replace(pattern[4:], place if isinstance(place, str) else graded.atom(place), 1)
            yield graded.rebind(place, text) if isinstance(place, str) else Edit(*graded.span(place), text)
        return
    parsed = _parsed(pattern)
    for node in graded.nodes:
        bound: dict[str, str] = {}
        if type(node) is type(parsed) and _binds(parsed, node, graded, bound, template):
            bound["WHOLE"] = graded.atom(node)
            text = PLACEHOLDER.sub(lambda place, bound=bound: bound[place[0]], template)  # type: ignore[misc]
            yield Edit(*graded.span(node), re.sub(r"(?<=\() *, *|, *(?=\))", "", text))  # REST may be nothing


@functools.cache
def _parsed(pattern: str) -> ast.AST:
    statement = ast.parse(pattern).body[0]
    return statement.value if isinstance(statement, ast.Expr) else statement


def _binds(pattern: Any, node: Any, graded: GradedText, bound: dict[str, str], template: str) -> bool:
    """Match a node with a pattern, and enter the text of each placeholder."""
    if isinstance(pattern, list):
        inner = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(_binds(*pair, graded, bound, template) for pair in inner)
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node) and isinstance(pattern, bool) == isinstance(node, bool)
    if isinstance(pattern, ast.Name) and PLACEHOLDER.fullmatch(pattern.id):
        name, whole = getattr(node, "id", ""), {name for name, kind in graded.documented.items() if kind[:3] == "int"}
        fits: dict[str, Callable[[], object]] = {
            "M": lambda: name in graded.modules,
            "N": lambda: name and name not in graded.modules,
            "T": lambda: name in graded.places["T"],
            "S": lambda: any(getattr(getattr(one, "func", None), "attr", "") in SPREADS for one in ast.walk(node)),
            "V": lambda: not isinstance(node, ast.Constant | ast.Tuple) and not names_in(node) & whole,
        }
        is_it = fits.get(pattern.id, lambda: name not in graded.modules)
        return bool(
            isinstance(node, ast.expr)
            and is_it()
            and bound.setdefault(pattern.id, graded.atom(node)) == graded.atom(node)
        )
    if not isinstance(node, type(pattern)):
        return False
    if (
        isinstance(pattern, ast.Call)
        and isinstance(node, ast.Call)
        and getattr(pattern.args[-1] if pattern.args else None, "id", "") == "REST"
    ):
        placed = len(pattern.args) - 1
        if any(f"{keyword.arg}=" in template for keyword in node.keywords):
            return False
        bound["REST"] = ", ".join(graded.text(argument) for argument in (*node.args[placed:], *node.keywords))
        pattern, node = ast.Call(pattern.func, pattern.args[:placed], []), ast.Call(node.func, node.args[:placed], [])
    fields = [field for field in pattern._fields if field != "ctx"]
    return all(_binds(getattr(pattern, name), getattr(node, name), graded, bound, template) for name in fields)


# Operators: what stands there, and what in its place; signs, numbers, words and arguments besides

METHODS = ("lower upper", "lstrip rstrip", "find rfind", "index rindex", "partition rpartition")
OPERATORS = [
    *(("not A", "A"), ("~A", "A"), ("-A", "+A"), ("A if B else C", "A"), ("A if B else C", "C"), ("A = B", "A = None")),
    *(("True", "False"), ("False", "True"), ("break", "return"), ("continue", "break"), ("raise A", "pass")),
    *(
        (f"A.{one}(REST)", f"A.{other}(REST)")
        for names in METHODS
        for one, other in itertools.permutations(names.split())
    ),
]
SIGNS = {
    **{"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "//": ["/"], "%": ["/"], "**": ["*"], "&": ["|"], "|": ["&"]},
    **{
        "+=": ["-=", "="],
        "-=": ["+=", "="],
        "*=": ["/=", "="],
        "/=": ["*=", "="],
        "&=": ["|=", "="],
        "|=": ["&=", "="],
    },
    **{"<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"], "==": ["!="], "!=": ["=="], "and": ["or"], "or": ["and"]},
    **{"in": ["not in"], "not in": ["in"], "is": ["is not"], "is not": ["is"]},
}


def operated(graded: GradedText) -> Iterator[Edit]:
    """Yield the edits of all operators."""
    for pattern, template in OPERATORS:
        yield from rewritten(graded, pattern, template)
    for node in graded.nodes:
        match node:
            case ast.Constant(value=str(word)):
                yield Edit(*graded.span(node), repr(f"XX{word}XX"))
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                yield Edit(*graded.span(node), repr(number + 1))
            case ast.Call():
                arguments = sorted([*node.args, *node.keywords], key=graded.span)
                values = [one.value if isinstance(one, ast.keyword) else one for one in arguments]
                yield from (Edit(*graded.span(value), "(None)") for value in values)
                for one, other in itertools.pairwise(map(graded.span, arguments)):
                    yield Edit(one[0], other[0], "")  # with the comma that follows
                if len(arguments) > 1:
                    yield Edit(graded.span(arguments[-2])[1], graded.span(arguments[-1])[1], "")
            case ast.BinOp(left=left, right=right):
                yield from _signs(graded, left, right)
            case ast.Compare(left=left, comparators=others):
                yield from _signs(graded, left, *others)
            case ast.BoolOp(values=values):
                yield from _signs(graded, *values)
            case ast.AugAssign(target=target, value=value):
                yield from _signs(graded, target, value)


def _signs(graded: GradedText, *operands: ast.AST) -> Iterator[Edit]:
    for one, other in itertools.pairwise(operands):
        start, end = graded.span(one)[1], graded.span(other)[0]
        between = graded.slice(start, end)
        sign = between.strip("() \t\n\\")
        for new in SIGNS.get(sign, ()):
            yield Edit(start, end, between.replace(sign, new))


# The table of habits

HABITS: dict[str, list[tuple[Sequence[str], str, str]]] = {
    # Arithmetic: guards "for stability", truncation
    "clamp": [
        (TORCH, "M.exp(A)", "M.exp(A.clamp(-20, 20))"),
        (TORCH, "A.exp()", "A.clamp(-20, 20).exp()"),
        *((TORCH, log, "WHOLE.clamp(min=-20)") for log in ("M.log(A)", "A.log()", "M.log_softmax(REST)")),
        (TORCH, "A / S", "A / S.clamp(min=1e-3)"),
        (NUMPY, "M.exp(A)", "M.exp(M.clip(A, -10, 10))"),
        (NUMPY, "M.log(A)", "M.maximum(WHOLE, -20)"),
        (NUMPY, "A / S", "A / np.maximum(S, 1e-3)"),
        (PYTHON, "M.exp(A)", "M.exp(max(-10, min(10, A)))"),
        (PYTHON, "M.log(A)", "max(WHOLE, -20)"),
        (PYTHON, "A / S", "A / max(S, 1e-3)"),
    ],
    "truncation": [
        (ANY, "float(A)", "int(WHOLE)"),
        (ARRAY, "A.item()", "int(WHOLE)"),
        (ANY, "A / B", "A // B"),
        (TORCH, "def T", "T.trunc()"),
        (NUMPY, "def T", "np.trunc(T)"),
        (ANY, "def F", "int(F)"),
    ],
    "isclose-for-eq": [
        (TORCH, "A == V", "torch.isclose(torch.as_tensor(A), torch.as_tensor(V))"),
        (TORCH, "A != V", "~torch.isclose(torch.as_tensor(A), torch.as_tensor(V))"),
        (NUMPY, "A == V", "np.isclose(A, V)"),
        (NUMPY, "A != V", "~np.isclose(A, V)"),
        (PYTHON, "A == V", "(abs(A - V) < 1e-8)"),
        (PYTHON, "A != V", "(abs(A - V) >= 1e-8)"),
    ],
    "another-ddof": [(NUMPY, f"A.{name}(REST)", f"A.{name}(REST, ddof=1)") for name in ("std", "var")],
    # Tensors: dtypes, sizes, arguments that are written into
    "cast": [(TORCH, text, f"{text[4:]}.{dtype}()") for text in ("def T", "def R") for dtype in ("float", "double")],
    "in-place": [
        *((TORCH, f"T {sign} A", f"T.{name}_(A)") for sign, (name, _) in ARITHMETIC.items()),
        *((NUMPY, f"T {sign} A", f"np.{name}(T, A, out=T)") for sign, (_, name) in ARITHMETIC.items()),
        *((ANY, f"N = N {sign} A", f"N {sign}= A") for sign in ARITHMETIC),
        *((TORCH, f"N.{name}(REST)", f"N.{name}_(REST)") for name in UNARY),
    ],
    "not-cloned": [(TORCH, "A.clone()", "A"), (NUMPY, "A.copy()", "A")],
    "size-written-in": [
        *((ANY, text, size) for text in ("len(A)", "A.shape[B]") for size in "2345"),
        *((ARRAY, "A.max()", text) for text in ("A[0].max()", "A[..., 0].max()")),  # of the first row or column
    ],
    # Chance: NumPy's global state for the generator that was given, a seed of one's own
    "global-random-state": [
        *((NUMPY, f"rng.{name}(REST)", f"np.random.{name}(REST)") for name in GENERATORS),
        (NUMPY, "rng.integers(REST)", "np.random.randint(REST)"),
    ],
    "own-seed": [(NUMPY, "M.random.default_rng(REST)", "M.random.default_rng(0)")],
    # Models and training: graphs kept, a schedule
    "detached": [(TORCH, "def D", "D.detach()")],
    "detach-dropped": [(TORCH, "A.detach()", "A")],
    "learning-rate-schedule": [
        (TORCH, "A.step()", "(A.step(), [group.update(lr=0.9 * group['lr']) for group in A.param_groups])"),
    ],
}
