"""Wrong variants of a solution: mistakes of the catalogue, and mutants, in which one thing of one function is changed.

Mutants are of three families: what becomes of each parameter, the habits of students, and operators, the small changes
of mutation testing. The lines at which some leave a function what it is are marked in the solution, each with the
reason. No mutant changes the text of an error.

Habits and operators are one table, CHANGES: a pattern, and what stands there instead. Clauses of a contract name
habits: `habit:clamp`. Changes are edits of the text and not of the tree, so that comments and the numbers of lines
stay: marks in the solution go by line.
"""

from __future__ import annotations

import ast
import itertools
import os.path
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autograder.authoring.cache import names_in
from autograder.authoring.catalogue import marks

MOST_LINES = 6  # of a change that are shown
Family = Literal["solution", "handout", "answer", "mistake", "parameter", "habit", "operator"]
Edit = tuple[int, int, str]  # new text for the bytes from the first number to the second


@dataclass(frozen=True)
class Variant:
    """A text that is graded: one that is wrong in one function, or a whole submission.

    slug       what is done: `epsilon-ignored`, the name of a habit or of a mistake; "" of operators
    function   the one that is wrong; "" of a submission that is graded on all
    source     the whole text: the solution with one change, or with a mistake below it
    text       the changed function, or the mistake
    before     the changed lines without indentation and comment, and what they become in `after`; "" of mistakes
    reason     why it may be the same function still, as its line is marked; "" where nothing says so
    line       of the solution, the first that is changed; 0 of all but mutants
    """

    family: Family
    slug: str
    function: str
    source: str
    text: str = ""
    before: str = ""
    after: str = ""
    reason: str = ""
    line: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole submission."""
        return self.family in ("solution", "handout", "answer")

    @property
    def name(self) -> str:
        """What clauses call it: `habit:isclose-for-eq`, a mistake's slug."""
        return self.slug if self.family == "mistake" else f"{self.family}:{self.slug}" if self.slug else self.family


def mutants_of(solution: str, functions: Sequence[str], by_place: Collection[str] = ()) -> list[Variant]:
    """Every mutant of these functions, each text once, with the reason that its line is marked with.

    by_place   those whose names of parameters nobody uses
    """
    mutants: dict[str, Variant] = {}
    module, reasons = ast.parse(solution), marks(solution)
    definitions = [node for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    graded_functions = [
        GradedText(solution, whole, node, module)
        for whole in definitions
        if whole.name in functions
        for node in (whole.body if isinstance(whole, ast.ClassDef) else [whole])
        if isinstance(node, ast.FunctionDef)
    ]
    for graded in graded_functions:
        for family, slug, edits in (*parameter_changes(graded), *table_changes(graded), *operator_changes(graded)):
            if slug == NAMES and graded.whole.name in by_place:
                continue
            source, text = graded.edited(edits)
            if source != solution and source not in mutants:  # of those with the same text, the first
                line, before, after = changed_lines(solution, source)
                reason = reasons.get(line, "")
                mutants[source] = Variant(family, slug, graded.whole.name, source, text, before, after, reason, line)
    return list(mutants.values())


def changed_lines(before: str, after: str) -> tuple[int, str, str]:
    """Return the first line that differs, counted from 1, and the lines from there to the last, before and after.

    They come without indentation and comment, the first few of many. Where lines are only added, the one that follows
    stands with them.
    """
    old, new = before.splitlines(), after.splitlines()
    start = len(os.path.commonprefix([old, new]))  # noqa: RUF071 (of lists of lines)
    rest = len(os.path.commonprefix([old[start:][::-1], new[start:][::-1]]))  # noqa: RUF071
    rest -= start + rest == len(old)
    shown = []
    for lines in (old, new):
        codes = [code for line in lines[start : len(lines) - rest] if (code := line.partition("  #")[0].strip())]
        shown.append(" ⏎ ".join([*codes[:MOST_LINES], *["…"] * (len(codes) > MOST_LINES)]))
    return start + 1, shown[0], shown[1]


# A graded function and edits of its text

NAMES = "names-changed"
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)  # an operator beside them needs no brackets


class GradedText:
    """One graded function, or a method of a graded class, within the text of the solution.

    whole        the function or the class
    body         its statements, the docstring left out
    parameters   each one's annotation as text, and its default
    documented   the second word of each parameter's row in the docstring, `float` or `float[batch`; of `returns` too
    plain        names of plain numbers, words and truth values → "int", "float", "str" or "bool"
    modules      names under which the text imports modules
    values       what the text computes with: "torch", "numpy", or "python"'s numbers and lists
    nodes        every node of its body in the order of the text, but for docstrings, texts of errors and f-strings
    places       what the patterns `def T`, `def C`, `def D`, `def F` and `def R` stand for
    """

    def __init__(
        self, source: str, whole: ast.FunctionDef | ast.ClassDef, node: ast.FunctionDef, module: ast.Module
    ) -> None:
        """Read it; `source` is the whole text, of which every mutant is a copy but for its change."""
        self.bytes, self.whole, self.node, self.module = source.encode(), whole, node, module
        self.line_starts = [0, *itertools.accumulate(map(len, self.bytes.splitlines(keepends=True)))]
        docstring, arguments = ast.get_docstring(node) or "", node.args
        self.body = node.body[bool(docstring) :]

        placed = [*arguments.posonlyargs, *arguments.args]
        defaults = [*[None] * (len(placed) - len(arguments.defaults)), *arguments.defaults, *arguments.kw_defaults]
        self.parameters = {
            arg.arg: (ast.unparse(arg.annotation) if arg.annotation else "", default)
            for arg, default in zip([*placed, *arguments.kwonlyargs], defaults, strict=True)
            if node is whole or arg is not placed[0]  # no `self`
        }
        rows = [line.split() for line in docstring.splitlines()]
        known = (*self.parameters, "returns")
        self.documented = {row[0]: row[1].rstrip(";,.") for row in rows if row[1:] and row[0] in known}
        kinds = {name: {self.documented.get(name, ""), kind} for name, (kind, _) in self.parameters.items()}
        self.plain = {
            name: kind for kind in ("int", "float", "str", "bool") for name, said in kinds.items() if kind in said
        }

        imports = [one for one in ast.walk(module) if isinstance(one, ast.Import | ast.ImportFrom)]
        names = [alias for one in imports if isinstance(one, ast.Import) for alias in one.names]
        self.modules = {alias.asname or alias.name.partition(".")[0] for alias in names}
        sources = [*(alias.name for alias in names), *(getattr(one, "module", None) or "" for one in imports)]
        packages = {name.partition(".")[0] for name in sources}
        self.values = next((package for package in ("torch", "numpy") if package in packages), "python")

        self.nodes = sorted((one for statement in self.body for one in _code(statement)), key=self.span)
        for one in self.nodes:  # `x = start` of a plain number is one
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=other)) if other in self.plain:
                    self.plain[name] = self.plain[other]
        tensors = []
        for name, (annotation, _) in self.parameters.items():
            kind = self.documented.get(name, "")
            is_array = re.search(r"\bnd ?array\b|\bNDArray\b", annotation) or kind.startswith("float[")
            if ("Tensor" in annotation or (self.values == "numpy" and is_array)) and not kind.startswith(
                ("int", "bool")
            ):
                tensors.append(name)
        differentiable = [line.split()[0] for line in docstring.splitlines() if "differentiable in it" in line]
        returns, result = ast.unparse(node.returns) if node.returns else "", self.documented.get("returns", "")
        # No dtype of an argument is felt where truth values or whole numbers come back, or nothing but what is written
        no_float, written = result.startswith(("bool", "int")) or returns == "None", _written_in_place(self.nodes)
        gives_tensor = node.returns is not None and ast.unparse(node.returns) == "Tensor"
        self.places: dict[str, Sequence[str | ast.expr]] = {
            "T": tensors,
            "C": [name for name in tensors if name in written or not no_float],
            "D": [name for name in tensors if name in differentiable],
            "F": [name for name, (annotation, _) in self.parameters.items() if annotation == "float"],
            "R": [one.value for one in self.nodes if isinstance(one, ast.Return) and one.value and gives_tensor],
        }

    def span(self, node: ast.AST) -> tuple[int, int]:
        """First byte and end of a node in the text."""
        place: dict[str, int] = vars(node)
        start = self.line_starts[place["lineno"] - 1] + place["col_offset"]
        return start, self.line_starts[place["end_lineno"] - 1] + place["end_col_offset"]

    def text(self, start: int, end: int) -> str:
        """The text of these bytes."""
        return self.bytes[start:end].decode()

    def atom(self, node: ast.AST) -> str:
        """The text of a node, in brackets where something that is put beside it could tear it apart."""
        text = self.text(*self.span(node))
        return text if isinstance(node, ATOMS) else f"({text})"

    def first(self, line: str) -> Edit:
        """A line above the first statement, as far indented."""
        start = self.line_starts[self.body[0].lineno - 1]
        margin = self.text(start, self.span(self.body[0])[0])  # blanks or tabs
        return start, start, f"{margin}{line}\n"

    def edited(self, edits: Sequence[Edit]) -> tuple[str, str]:
        """The whole text with these edits, and the part of it that is graded."""
        data = self.bytes
        for start, end, text in sorted(edits, reverse=True):
            data = data[:start] + text.encode() + data[end:]
        start, end = self.span(self.whole)
        return data.decode(), data[start : len(data) - len(self.bytes) + end].decode()


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all within, but for what stands in docstrings, texts of errors and f-strings."""
    if hasattr(node, "lineno"):
        yield node
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if not isinstance(node, ast.Raise | ast.JoinedStr) and not is_text:
        for child in ast.iter_child_nodes(node):
            yield from _code(child)


def _written_in_place(nodes: Sequence[ast.AST]) -> set[str]:
    """Name what `x += …`, `x[…] = …` and `x.add_(…)` write into."""
    written = set[str]()
    for node in nodes:
        match node:
            case ast.AugAssign(target=place) | ast.Assign(targets=[ast.Subscript() as place]):
                written |= names_in(place)
            case ast.Call(func=ast.Attribute(value=place, attr=name)) if name.endswith("_"):
                written |= names_in(place)
    return written


Change = tuple[Family, str, list[Edit]]

# Parameters: ignored, of other names or defaults, tested with `> 0` for "is not 0"

IGNORED = {  # what stands for a parameter without a default, by annotation or as the docstring types it
    "int": ("1", "2", "3"),  # one of which a student might write in
    "float": ("0.0", "0.2", "1.0"),
    "Tensor": ("torch.zeros_like({0})", "torch.ones_like({0})"),
    "float[": ("0 * {0}", "0 * {0} + 1"),
    "int[": ("0 * {0}", "0 * {0} + 1"),
}


def parameter_changes(graded: GradedText) -> Iterator[Change]:
    """Yield each change with the name of what is done to which parameter, `epsilon-ignored`; `names-changed` is all."""
    parameters = [*graded.node.args.args, *graded.node.args.kwonlyargs]
    if parameters and graded.node is graded.whole:  # names that no caller knows; drivers call methods by place
        names, others = (", ".join(f"{start}{arg.arg}" for arg in parameters) for start in ("", "my_"))
        starts = [graded.span(arg)[0] for arg in parameters]
        edits = [*((start, start, "my_") for start in starts), graded.first(f"{names} = {others}")]
        yield "parameter", NAMES, edits
    for name, (annotated, default) in graded.parameters.items():
        kind = graded.documented.get(name, "")
        annotation = kind if "ndarray" in annotated and "[" in kind else annotated or kind
        if default is not None:
            values = [graded.text(*graded.span(default))]
        elif annotation == "str" or annotation.startswith(('"', "'")):  # `"up" or "down"`, as a docstring says it
            values = sorted(map(repr, words_compared(graded.node).get(name, ())))
        elif graded.values == "numpy" and ("Generator" in annotation or name == "rng"):
            values = ["np.random.default_rng(0)"]  # a seed of one's own
        else:
            values = [value.format(name) for value in IGNORED.get(re.sub(r"(?<=\[).*", "", annotation), ())]
        for value in values:
            yield "parameter", f"{name}-ignored", [graded.first(f"{name} = {value}")]
        for value in _other_defaults(graded, annotation, default) if default is not None else ():
            yield "parameter", f"{name}-default", [(*graded.span(default), value)]  # type: ignore[arg-type]
        for sign, other in (("!=", ">"), ("==", "<=")) if "Tensor" not in annotation else ():
            for edit in rewritten(graded, f"{name} {sign} 0", f"{name} {other} 0"):
                yield "parameter", f"{name}-above-0", [edit]


def _other_defaults(graded: GradedText, annotation: str, default: ast.expr) -> list[str]:
    match default:
        case ast.Name(id=name) if annotation in ("int", "float"):
            return [f"{name} + 1"]
        case ast.Name(id=name) if annotation.startswith(("list", "tuple", "Sequence")):
            return [f"{name}[:1]"]
        case ast.Name():
            return ["lambda *given, **named: 0.0"]  # a function, whatever it is called with
        case ast.Constant(value=bool(value)):
            return [repr(not value)]
        case ast.Constant(value=int(value)):
            return [repr(value + 1)]
        case ast.Constant(value=float(value)):
            return [repr(2 * value or 0.1)]
        case ast.Constant(value=str(value)):  # the other words that stand beside this one in some comparison
            functions = [node for node in graded.module.body if isinstance(node, ast.FunctionDef)]
            groups = [words for node in functions for words in words_compared(node).values() if value in words]
            return [repr(word) for word in sorted(set().union(*groups) - {value})]
        case ast.Constant(value=None) if annotation.startswith("int"):
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


# Habits and operators: the name of a habit, what the text computes with, a pattern, and what stands there instead
#
#   M      an imported module          N      a name                T      a parameter that is a floating tensor
#   S      what holds a spread or a mean, which may vanish          V      no constant, and no whole numbers
#   L      a name of no plain number   A, B   any other expression   WHOLE  all that stands there
#   REST   the other arguments of a call, none of which the new text gives
#   def T, def C, def D, def F, def R  each such parameter, or one whose dtype may be felt, or one that the result is
#                                      differentiable in, or a float, which is rebound in the first line; each tensor
#                                      that is returned
#   {a|b}  several rows, of which one has a in its place, the next b; {} is what the pattern has there

TABLE = """
# Arithmetic: guards "for stability", truncation
clamp                   torch        M.exp(A)               M.exp(A.clamp(-20, 20))
clamp                   torch        A.exp()                A.clamp(-20, 20).exp()
clamp                   torch        {M.log(A)|A.log()|M.log_softmax(REST)}  WHOLE.clamp(min=-20)
clamp                   torch        A / S                  A / S.clamp(min=1e-3)
clamp                   numpy        M.exp(A)               M.exp(M.clip(A, -10, 10))
clamp                   numpy        M.log(A)               M.maximum(WHOLE, -20)
clamp                   numpy        A / S                  A / np.maximum(S, 1e-3)
clamp                   python       M.exp(A)               M.exp(max(-10, min(10, A)))
clamp                   python       M.log(A)               max(WHOLE, -20)
clamp                   python       A / S                  A / max(S, 1e-3)
truncation              any          float(A)               int(WHOLE)
truncation              torch,numpy  A.item()               int(WHOLE)
truncation              any          A / B                  A // B
truncation              torch        def T                  T.trunc()
truncation              numpy        def T                  np.trunc(T)
truncation              any          def F                  int(F)
isclose-for-eq          torch        A {==|!=} V            {|~}torch.isclose(torch.as_tensor(A), torch.as_tensor(V))
isclose-for-eq          numpy        A {==|!=} V            {|~}np.isclose(A, V)
isclose-for-eq          python       A {==|!=} V            (abs(A - V) {<|>=} 1e-8)
another-ddof            numpy        A.{std|var}(REST)      A.{}(REST, ddof=1)

# Tensors: dtypes, sizes, arguments that are written into
cast                    torch        def C                  C.{float|double}()
cast                    torch        def R                  R.{float|double}()
in-place                torch        T {+|-|*|/} A          T.{add|sub|mul|div}_(A)
in-place                numpy        T {+|-|*|/} A          np.{add|subtract|multiply|divide}(T, A, out=T)
in-place                any          L = L {+|-|*|/} A      L {}= A
in-place                torch        N.{clamp|exp|log|square|sqrt|abs|masked_fill|unsqueeze|squeeze}(REST)  N.{}_(REST)
not-cloned              torch        A.clone()              A
not-cloned              numpy        A.copy()               A
size-written-in         any          len(A)                 {2|3|4|5}
size-written-in         any          A.shape[B]             {2|3|4|5}
size-written-in         torch,numpy  A.max()                A[{0|..., 0}].max()

# Chance: NumPy's global state for the generator that was given, a seed of one's own
global-random-state     numpy        rng.{random|choice|permutation|shuffle}(REST)       np.random.{}(REST)
global-random-state     numpy        rng.{normal|uniform|binomial|exponential|poisson}(REST)  np.random.{}(REST)
global-random-state     numpy        rng.integers(REST)     np.random.randint(REST)
own-seed                numpy        M.random.default_rng(REST)  M.random.default_rng(0)

# Models and training: graphs kept, a schedule
detached                torch        def D                  D.detach()
detach-dropped          torch        A.detach()             A
learning-rate-schedule  torch        A.step()  (A.step(), [g.update(lr=0.9 * g['lr']) for g in A.param_groups])

# Operators, besides what `operator_changes` makes of numbers, words, arguments and signs
-                       any          {not A|~A}             A
-                       any          -A                     +A
-                       any          A if B else C          {A|C}
-                       any          A = B                  A = None
-                       any          {True|False}           {False|True}
-                       any          {break|continue}       {return|break}
-                       any          raise A                pass
-                       any          A.{lower|upper|lstrip|rstrip}(REST)  A.{upper|lower|rstrip|lstrip}(REST)
-                       any          A.{find|rfind|index|rindex}(REST)    A.{rfind|find|rindex|index}(REST)
-                       any          A.{partition|rpartition}(REST)       A.{rpartition|partition}(REST)
"""
PLACEHOLDER = re.compile(r"\b(?:[A-Z]|REST|WHOLE)\b")
SPREADS = ("std", "var", "mean", "norm")


def rows_of(table: str) -> Iterator[Sequence[str]]:
    """Yield the columns of each row, of one with alternatives once for each."""
    for row in table.splitlines():
        if row and not row.startswith("# "):
            start, *rest = re.split(r"\{(.*?)\}", row)
            groups = [group.split("|") for group in rest[::2]] or [[""]]
            for chosen in zip(*(group if len(group) > 1 else groups[0] for group in groups), strict=True):
                pieces = zip(chosen, rest[1::2] or [""], strict=True)
                yield re.split(r" {2,}", start + "".join(itertools.chain(*pieces)))


CHANGES = [*rows_of(TABLE)]


def table_changes(graded: GradedText) -> Iterator[Change]:
    """Yield what the table makes of a function."""
    for name, kinds, pattern, template in CHANGES:
        if kinds == "any" or graded.values in kinds.split(","):
            for edit in rewritten(graded, pattern, template):
                yield ("operator", "", [edit]) if name == "-" else ("habit", name, [edit])


def rewritten(graded: GradedText, pattern: str, template: str) -> Iterator[Edit]:
    """Yield this rewriting at each place of the function."""
    if pattern.startswith("def "):
        for place in graded.places[pattern[4:]]:
            text = template.replace(pattern[4:], place if isinstance(place, str) else graded.atom(place), 1)
            if isinstance(place, str):  # rebound, unless it is None and may be
                optional = f"{place} if {place} is None else " if "None" in graded.parameters[place][0] else ""
                yield graded.first(f"{place} = {optional}{text}")
            else:
                yield (*graded.span(place), text)
        return
    statement = ast.parse(pattern).body[0]
    parsed = statement.value if isinstance(statement, ast.Expr) else statement
    for node in graded.nodes:
        bound: dict[str, str] = {}
        if type(node) is type(parsed) and _binds(parsed, node, graded, bound, template):
            bound["WHOLE"] = graded.atom(node)
            text = PLACEHOLDER.sub(lambda place, bound=bound: bound[place[0]], template)  # type: ignore[misc]
            yield (*graded.span(node), re.sub(r"(?<=\() *, *|, *(?=\))", "", text))  # REST may be nothing


def _binds(pattern: Any, node: Any, graded: GradedText, bound: dict[str, str], template: str) -> bool:
    """Match a node with a pattern, and enter the text of each placeholder."""
    match pattern:
        case list():
            inner = zip(pattern, node, strict=False)
            return len(pattern) == len(node) and all(_binds(*pair, graded, bound, template) for pair in inner)
        case ast.Name(id=placeholder) if PLACEHOLDER.fullmatch(placeholder):
            fits = isinstance(node, ast.expr) and _may_be(placeholder, node, graded)
            return fits and bound.setdefault(placeholder, graded.atom(node)) == graded.atom(node)
        case ast.Call(args=[*_, ast.Name(id="REST")]) if isinstance(node, ast.Call):
            if any(f"{keyword.arg}=" in template for keyword in node.keywords):
                return False
            placed = len(pattern.args) - 1
            bound["REST"] = ", ".join(
                graded.text(*graded.span(argument)) for argument in (*node.args[placed:], *node.keywords)
            )
            pairs = [(pattern.func, node.func), (pattern.args[:placed], node.args[:placed])]
        case ast.AST():
            if not isinstance(node, type(pattern)):
                return False
            pairs = [(getattr(pattern, name), getattr(node, name)) for name in pattern._fields if name != "ctx"]
        case _:
            return bool(pattern == node) and isinstance(pattern, bool) == isinstance(node, bool)
    return all(_binds(*pair, graded, bound, template) for pair in pairs)


def _may_be(placeholder: str, node: ast.expr, graded: GradedText) -> bool:
    name = getattr(node, "id", "")
    match placeholder:
        case "M":
            return name in graded.modules
        case "N":
            return bool(name) and name not in graded.modules
        case "L":
            return bool(name) and name not in graded.modules and name not in graded.plain
        case "T":
            return name in graded.places["T"]
        case "S":
            return any(getattr(getattr(one, "func", None), "attr", "") in SPREADS for one in ast.walk(node))
        case "V":
            whole = {name for name, kind in graded.documented.items() if kind.startswith("int")}
            whole |= {name for name, kind in graded.plain.items() if kind != "float"}
            return not isinstance(node, ast.Constant | ast.Tuple) and not names_in(node) & whole
    return name not in graded.modules


# Signs, numbers, words, arguments

SIGNS = {
    sign: [other]
    for row in ("+ -", "* /", "& |", "== !=", "and or")
    for sign, other in itertools.permutations(row.split())
}
SIGNS |= {f"{sign}=": [f"{other}=", "="] for sign, [other] in SIGNS.items() if sign in "+-*/&|"}
SIGNS |= {"//": ["/"], "%": ["/"], "**": ["*"], "<": ["<="], "<=": ["<"], ">": [">="], ">=": [">"]}
SIGNS |= {"in": ["not in"], "not in": ["in"], "is": ["is not"], "is not": ["is"]}


def operator_changes(graded: GradedText) -> Iterator[Change]:
    """Yield what the small changes of operators make of a function that are no patterns."""
    for node in graded.nodes:
        operands: list[ast.expr] = []
        match node:
            case ast.Constant(value=str(word)):
                yield "operator", "", [(*graded.span(node), repr(f"XX{word}XX"))]
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                yield "operator", "", [(*graded.span(node), repr(number + 1))]
            case ast.Call():  # each argument as None, and each left out
                arguments = sorted([*node.args, *node.keywords], key=graded.span)
                for value in (one.value if isinstance(one, ast.keyword) else one for one in arguments):
                    if not (isinstance(value, ast.Constant) and repr(value.value) in ("None", "False")):
                        yield "operator", "", [(*graded.span(value), "(None)")]
                spans = [graded.span(argument) for argument in arguments]
                for (start, _), (end, _) in itertools.pairwise(spans):
                    yield "operator", "", [(start, end, "")]  # with the comma that follows
                if len(spans) > 1:
                    yield "operator", "", [(spans[-2][1], spans[-1][1], "")]
            case ast.BinOp(left=left, right=right) | ast.AugAssign(target=left, value=right):
                operands = [left, right]
            case ast.Compare(left=left, comparators=others):
                operands = [left, *others]
            case ast.BoolOp(values=operands):
                pass
        for left, right in itertools.pairwise(operands):
            start, end = graded.span(left)[1], graded.span(right)[0]
            between = graded.text(start, end)
            sign = between.strip("() \t\n\\")
            for other in SIGNS.get(sign, ""):
                yield "operator", "", [(start, end, between.replace(sign, other))]
