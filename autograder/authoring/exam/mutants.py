"""Wrong variants of a solution: mistakes of the catalogue, and mutants, in which one thing of one function is changed.

Mutants are of three families: what becomes of each parameter, the habits of students, and mutmut's operators. The
lines at which some leave a function what it is are marked in the solution, each with the reason.

Habits stand in one table, HABITS: most are rewritings, a pattern and what a student writes instead; those that need
more are functions. Clauses of a contract name them: `habit:clamp`. Changes are edits of the text and not of the tree,
so that comments and the numbers of lines stay: marks in the solution go by line.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from autograder.authoring.cache import names_in
from autograder.authoring.catalogue import marks

NEXT_LINE = " ⏎ "
MOST_LINES = 6  # of a change that are shown
Family = Literal["mistake", "parameter", "habit", "operator"]
Text = tuple[Family, str, str, str]  # family, slug, function, whole text


@dataclass(frozen=True)
class Variant:
    """A text that is wrong in one function: the solution with one change, or with a mistake below it.

    slug      what is done: `epsilon-ignored`, the name of a habit or of a mistake; "" of mutmut's operators
    source    the whole text
    before    the changed lines without indentation and comment, and what they become in `after`; "" of mistakes
    reason    why it may be the same function still, as its line is marked; "" where nothing says so
    line      of the solution, the first that is changed; 0 of mistakes
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
        """What clauses and costs call it: `habit:isclose-for-eq`, a mistake's slug."""
        return self.slug if self.family == "mistake" else f"{self.family}:{self.slug}" if self.slug else self.family


def can_mutate() -> bool:
    """Whether mutmut is installed; it comes with the extra `test`."""
    return importlib.util.find_spec("mutmut") is not None


def mutants_of(solution: str, functions: Sequence[str], *, operators: bool = True) -> list[Variant]:
    """Every mutant of these functions, each text once, with the reason that its line is marked with.

    operators   whether mutmut's are among them, where it is installed
    """
    mutants: dict[str, Variant] = {}
    reasons = marks(solution)
    operated = mutated(solution, functions) if operators and can_mutate() else ()
    for family, slug, function, text in itertools.chain(_generated(solution, functions), operated):
        if text != solution and text not in mutants:  # of those with the same text, the first
            lines = itertools.zip_longest(solution.splitlines(), text.splitlines())
            line = next((number for number, (one, other) in enumerate(lines, 1) if one != other), 0)
            before, after = changed_lines(solution, text)
            mutants[text] = Variant(family, slug, function, text, before, after, reasons.get(line, ""), line)
    return list(mutants.values())


def _generated(solution: str, functions: Sequence[str]) -> Iterator[Text]:
    module = ast.parse(solution)
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name in functions:
            graded = GradedText(solution, node, module)
            for slug, change in parameter_changes(graded):
                yield "parameter", slug, node.name, graded.changed(change)
            for slug, rewritings in HABITS.items():
                for rewriting in rewritings:
                    changes = rewriting(graded) if callable(rewriting) else rewritten(graded, *rewriting)
                    yield from (("habit", slug, node.name, graded.changed(change)) for change in changes)


def mutated(solution: str, functions: Collection[str]) -> Iterator[Text]:
    """Yield each mutant that mutmut's operators make of these functions, in the order of the text.

    mutmut's operators are no public interface, so the extra `test` fixes its version.
    """
    import libcst
    from libcst.metadata import MetadataWrapper
    from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.pragma_handling import IgnoredCode

    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(libcst.parse_module(solution)).visit(visitor)
    # Writing a whole tree anew for each mutant would take seconds, so each statement is written by itself.
    places: dict[int, tuple[Any, int, int]] = {}
    end = sum(len(module.code_for_node(line)) for line in module.header)
    for statement in module.body:
        start, end = end, end + len(module.code_for_node(statement))
        methods = getattr(getattr(statement, "body", None), "body", ())
        places |= {id(function): (statement, start, end) for function in (statement, *methods)}
    for mutation in visitor.mutations:
        function: Any = mutation.contained_by_top_level_function
        if isinstance(function, libcst.FunctionDef) and function.name.value in functions:
            statement, start, end = places[id(function)]
            replaced: Any = deep_replace(statement, mutation.original_node, mutation.mutated_node)
            changed = module.code_for_node(replaced)
            if end >= len(solution) and not solution.endswith("\n"):  # where the tree has a line's end
                changed = changed.removesuffix("\n")
            yield "operator", "", function.name.value, solution[:start] + changed + solution[end:]


def changed_lines(before: str, after: str) -> tuple[str, str]:
    """Return the lines from the first to the last that differ, without indentation and comment, the first few of many.

    Where lines are only added, the one that follows stands with them.
    """
    old, new = before.splitlines(), after.splitlines()
    shorter = min(len(old), len(new))
    begin = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    alike = next((k for k in range(shorter - begin) if old[-1 - k] != new[-1 - k]), shorter - begin)
    if begin + alike == len(old):
        alike -= 1 + next((k for k, line in enumerate(old[begin:]) if line.strip()), -1)

    def shown(lines: Sequence[str]) -> str:
        codes = [code for line in lines if (code := line.partition("  #")[0].strip())]
        return NEXT_LINE.join([*codes[:MOST_LINES], *["…"] * (len(codes) > MOST_LINES)])

    return shown(old[begin : len(old) - alike]), shown(new[begin : len(new) - alike])


# A graded function and edits of its text

# Nodes beside which an operator can be put without brackets
ATOMS = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant)


class Edit(NamedTuple):
    """New text for the bytes from `start` to `end`."""

    start: int
    end: int
    text: str


Change = Edit | list[Edit]


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
    def body(self) -> list[ast.stmt]:
        """Its statements but the docstring."""
        return self.node.body[1:] if self.docstring else self.node.body

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its body, in the order of the text."""
        nodes = [node for statement in self.body for node in ast.walk(statement) if hasattr(node, "lineno")]
        return sorted(nodes, key=self.span)

    @cached_property
    def parameters(self) -> dict[str, tuple[str, ast.expr | None]]:
        """Each parameter's annotation as text, and its default."""
        arguments = self.node.args
        placed = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(placed) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(placed, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        return {arg.arg: (ast.unparse(arg.annotation) if arg.annotation else "", default) for arg, default in pairs}

    @cached_property
    def modules(self) -> set[str]:
        """Names of the text under which it imports modules."""
        imports = [alias for node in ast.walk(self.module) if isinstance(node, ast.Import) for alias in node.names]
        return {alias.asname or alias.name.partition(".")[0] for alias in imports}

    @cached_property
    def values(self) -> str:
        """What the text computes with: "torch", "numpy", or "python"'s numbers and lists."""
        imports = [node for node in ast.walk(self.module) if isinstance(node, ast.Import | ast.ImportFrom)]
        names = {alias.name for node in imports for alias in node.names}
        names |= {getattr(node, "module", None) or "" for node in imports}
        packages = {name.partition(".")[0] for name in names}
        return "torch" if "torch" in packages else "numpy" if "numpy" in packages else "python"

    @cached_property
    def documented(self) -> dict[str, str]:
        """The second word of each parameter's row in the docstring, `float` or `float[batch`."""
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
        """What a function that returns one tensor, or one NumPy array of floating numbers, returns."""
        is_tensor = self.node.returns is not None and ast.unparse(self.node.returns) == "Tensor"
        is_array = self.values == "numpy" and re.search(r"^returns +float\[", self.docstring, re.MULTILINE)
        returns = [node for node in self.nodes if isinstance(node, ast.Return)] if is_tensor or is_array else []
        return [node.value for node in returns if node.value is not None]

    # The text and its edits

    @cached_property
    def _bytes(self) -> bytes:
        return self.source.encode()

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        for line in self._bytes.splitlines(keepends=True):
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
        return self._bytes[start:end].decode()

    def atom(self, node: ast.AST) -> str:
        """The text of a node, in brackets where something that is put beside it could tear it apart."""
        return self.text(node) if isinstance(node, ATOMS) else f"({self.text(node)})"

    def replace(self, node: ast.AST, text: str) -> Edit:
        """New text for a node."""
        return Edit(*self.span(node), text)

    def insert(self, statement: ast.stmt, *lines: str, after: bool = False) -> Edit:
        """Lines above or below a statement, as far indented."""
        line = self.source.splitlines()[statement.lineno - 1]
        margin = line[: len(line) - len(line.lstrip())]  # blanks or tabs
        start = self._line_starts[(statement.end_lineno or statement.lineno) if after else statement.lineno - 1]
        return Edit(start, start, "".join(f"{margin}{line}\n" for line in lines))

    def first(self, *lines: str) -> Edit:
        """Lines above the first statement."""
        return self.insert(self.body[0], *lines)

    def rebind(self, name: str, text: str) -> Edit:
        """Give a parameter another value in the first line, unless it is None and may be."""
        optional = f"{name} if {name} is None else " if "None" in self.parameters[name][0] else ""
        return self.first(f"{name} = {optional}{text}")

    def changed(self, change: Change) -> str:
        """The whole text with this change."""
        data = self._bytes
        for edit in sorted([change] if isinstance(change, Edit) else change, key=lambda edit: edit.start, reverse=True):
            data = data[: edit.start] + edit.text.encode() + data[edit.end :]
        return data.decode()


# Parameters: ignored, of other names or defaults, tested with `> 0` for "is not 0"

NUMBERS = {"int": ("1", "2", "3"), "float": ("0.0", "0.2", "1.0")}  # one of which a student might write in
ARRAYS = ("float[", "int[")  # as a docstring says it
POSITIVE = {ast.NotEq: ">", ast.Eq: "<="}


def parameter_changes(graded: GradedText) -> Iterator[tuple[str, Change]]:
    """Yield each change with the name of what is done to which parameter, `epsilon-ignored`; `names-changed` is all."""
    if parameters := [*graded.node.args.args, *graded.node.args.kwonlyargs]:  # names that no caller knows
        renamed = [graded.replace(arg, graded.text(arg).replace(arg.arg, f"my_{arg.arg}", 1)) for arg in parameters]
        names = ", ".join(arg.arg for arg in parameters)
        yield "names-changed", [*renamed, graded.first(f"{names} = {', '.join(f'my_{arg.arg}' for arg in parameters)}")]
    for name, (annotated, default) in graded.parameters.items():
        kind = graded.documented.get(name, "")
        annotation = kind if "ndarray" in annotated and kind.startswith(ARRAYS) else annotated or kind
        for value in [graded.text(default)] if default is not None else _constants(graded, name, annotation):
            yield f"{name}-ignored", graded.first(f"{name} = {value}")
        for value in () if default is None else _other_defaults(graded, annotation, default):
            yield f"{name}-default", graded.replace(default, value)  # type: ignore[arg-type]
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
            constants = [inner for right in node.comparators for inner in ast.walk(right)]
            words = {one.value for one in constants if isinstance(one, ast.Constant) and isinstance(one.value, str)}
            compared.setdefault(node.left.id, set()).update(words)
    return compared


# Rewritings: values → what stands there, and what a student writes instead
#
#   M      an imported module          N      a name                T      a parameter that is a floating tensor
#   S      what holds a spread or a mean, which may vanish          A, B   any other expression
#   REST   the other arguments of a call, none of which the new text gives          WHOLE   all that stands there

TORCH, NUMPY, PYTHON = ("torch",), ("numpy",), ("python",)
ARRAY, ANY = (*TORCH, *NUMPY), (*TORCH, *NUMPY, *PYTHON)
SPREADS = ("std", "var", "mean", "norm")
ARITHMETIC = {"+": ("add", "add"), "-": ("sub", "subtract"), "*": ("mul", "multiply"), "/": ("div", "divide")}
UNARY = ("clamp", "exp", "log", "square", "sqrt", "abs", "masked_fill", "unsqueeze", "squeeze")  # of which torch has x_
TURNING = ("permute", "transpose", "movedim", "moveaxis", "swapaxes")
OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop")
OPTIONS = ("weight_decay=0.01", "betas=(0.9, 0.95)", "eps=1e-5")
GENERATORS = ("random", "choice", "permutation", "shuffle", "normal", "uniform", "binomial", "exponential", "poisson")
WEIGHTS = "[weight for group in A.param_groups for weight in group['params']]"

PLACEHOLDER = re.compile(r"\b(?:[A-Z]|REST|WHOLE)\b")


def rewritten(graded: GradedText, values: Sequence[str], pattern: str, template: str) -> Iterator[Change]:
    """Yield this rewriting at each place of the function."""
    parsed = _parsed(pattern)
    for node in graded.nodes if graded.values in values else ():
        bound: dict[str, str] = {}
        if type(node) is type(parsed) and _binds(parsed, node, graded, bound, template):
            bound["WHOLE"] = graded.atom(node)
            text = PLACEHOLDER.sub(lambda place, bound=bound: bound[place[0]], template)  # type: ignore[misc]
            yield graded.replace(node, re.sub(r"(?<=\() *, *|, *(?=\))", "", text))  # REST may be nothing


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
        return bool(pattern == node)
    if isinstance(pattern, ast.Name) and PLACEHOLDER.fullmatch(pattern.id):
        name = getattr(node, "id", "")
        fits = {
            "M": name in graded.modules,
            "N": bool(name) and name not in graded.modules,
            "T": name in graded.tensors,
            "S": any(getattr(getattr(inner, "func", None), "attr", "") in SPREADS for inner in ast.walk(node)),
        }
        return (
            isinstance(node, ast.expr)
            and fits.get(pattern.id, name not in graded.modules)
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


# Habits that need more than a pattern

CASTS = {
    "torch": ("{}.float()", "{}.double()"),
    "numpy": ("np.asarray({}, dtype=np.float32)",),
    "python": (),
}
CLOSE = {
    "torch": "torch.isclose(torch.as_tensor({0}), torch.as_tensor({1}))",
    "numpy": "np.isclose({0}, {1})",
    "python": "(abs({0} - {1}) < 1e-8)",
}
MODES = (  # above and below the statement that calls the model
    ("{0}.eval()", "{0}.train()"),
    ("{0}.eval()", ""),
    ("{0}.train()", ""),
    ("was_training = {0}.training; {0}.eval()", "{0}.train(was_training)"),
    ("was_training = {0}.training; {0}.train()", "{0}.train(was_training)"),
)


def cast(graded: GradedText) -> Iterator[Change]:
    """`.float()` and its like, on what comes in and on what goes out."""
    for template in CASTS[graded.values]:
        yield from (graded.rebind(name, template.format(name)) for name in graded.tensors)
        yield from (graded.replace(result, template.format(graded.atom(result))) for result in graded.results)


def truncated(graded: GradedText) -> Iterator[Change]:
    """Whole numbers where fractions come in."""
    template = "{}.trunc()" if graded.values == "torch" else "np.trunc({})"
    yield from (graded.rebind(name, template.format(name)) for name in graded.tensors)
    floats = [name for name, (annotation, _) in graded.parameters.items() if annotation == "float"]
    yield from (graded.first(f"{name} = int({name})") for name in floats)


def detached(graded: GradedText) -> Iterator[Change]:
    """A parameter without its graph where the docstring says that the result is differentiable in it."""
    rows = [line.split()[0] for line in graded.docstring.splitlines() if "differentiable in it" in line]
    yield from (graded.rebind(name, f"{name}.detach()") for name in graded.tensors if name in rows)


def isclose_for_equal(graded: GradedText) -> Iterator[Change]:
    """Nearly equal where equal is meant."""
    for node in graded.nodes:
        if not isinstance(node, ast.Compare) or isinstance(node.comparators[0], ast.Constant | ast.Tuple):
            continue
        if graded.values != "torch" and any(graded.documented.get(n, "").startswith("int") for n in names_in(node)):
            continue  # whole numbers that are close are equal
        near = CLOSE[graded.values].format(graded.text(node.left), graded.atom(node.comparators[0]))
        if isinstance(node.ops[0], ast.Eq):
            yield graded.replace(node, near)
        if isinstance(node.ops[0], ast.NotEq):
            yield graded.replace(node, f"{'not ' if graded.values == 'python' else '~'}{near}")


def detach_for_no_grad(graded: GradedText) -> Iterator[Change]:
    """Results detached in place of computing them under `no_grad`; neither of the two."""
    for statement in graded.nodes:
        if isinstance(statement, ast.With) and "no_grad" in graded.text(statement.items[0].context_expr):
            above = Edit(graded.span(statement)[0], graded.span(statement.items[0].context_expr)[1], "if True")
            values = [node.value for node in ast.walk(statement) if isinstance(node, ast.Assign | ast.Return)]
            calls = [value for value in values if isinstance(value, ast.Call)]
            yield [above, *(graded.replace(call, f"{graded.text(call)}.detach()") for call in calls)]
            yield above


def mode_around_call(graded: GradedText) -> Iterator[Change]:
    """`eval()` before a call of a model, `train()` after it, and their variants."""
    for statement, model in _model_calls(graded):
        for above, below in MODES:
            edits = [graded.insert(statement, above.format(model))]
            if below and not isinstance(statement, ast.Return):
                edits.append(graded.insert(statement, below.format(model), after=True))
            yield edits


def second_pass(graded: GradedText) -> Iterator[Change]:
    """A model called twice for what one call gives."""
    for statement, _ in _model_calls(graded):
        if isinstance(statement, ast.Assign):
            yield graded.insert(statement, ast.unparse(statement))


def _model_calls(graded: GradedText) -> Iterator[tuple[ast.stmt, str]]:
    """Yield statements that call a model, or hand it to a function that may, with its name; copies are no calls."""
    arguments = [node for node in ast.walk(graded.node) if isinstance(node, ast.arg)]
    models = {arg.arg for arg in arguments if arg.annotation and "Module" in ast.unparse(arg.annotation)}
    models |= {name for name in names_in(graded.node) if name.rpartition("_")[2] == "model"}
    for statement in graded.nodes:
        if not isinstance(statement, ast.Assign | ast.Return | ast.Expr) or statement.value is None:
            continue
        calls = [node for node in ast.walk(statement.value) if isinstance(node, ast.Call)]
        functions = [(node, node.func.id) for node in calls if isinstance(node.func, ast.Name)]
        for model in sorted(models & names_in(statement.value)):
            handed = [name for node, name in functions if any(getattr(arg, "id", "") == model for arg in node.args)]
            if model in [name for _, name in functions] or any(not name[0].isupper() for name in handed):
                yield statement, model


# The table of habits

HABITS: dict[str, list[tuple[Sequence[str], str, str] | Callable[[GradedText], Iterator[Change]]]] = {
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
    "constant-in-logarithm": [
        (ANY, "M.log(A)", "M.log(A + 1e-8)"),
        (TORCH, "A.log()", "(A + 1e-8).log()"),
        (TORCH, "M.log_softmax(REST)", "torch.log(torch.softmax(REST) + 1e-8)"),
    ],
    "truncation": [
        (ANY, "float(A)", "int(WHOLE)"),
        (ARRAY, "A.item()", "int(WHOLE)"),
        (ANY, "A / B", "A // B"),
        truncated,
    ],
    "another-ddof": [(NUMPY, f"A.{name}(REST)", f"A.{name}(REST, ddof=1)") for name in ("std", "var")],
    # Tensors: dtypes, axes, sizes, arguments that are written into
    "dtype-dropped": [
        *((TORCH, f"torch.{name}_like(A)", f"torch.{name}(A.shape)") for name in ("zeros", "ones")),
        *((NUMPY, f"np.{name}_like(A)", f"np.{name}(A.shape)") for name in ("zeros", "ones")),
        (NUMPY, "A.astype(REST)", "A"),
    ],
    "array-of-integers": [
        (NUMPY, f"np.{name}(A)", f"np.{name}(A, dtype=int)") for name in ("zeros", "empty", "zeros_like", "empty_like")
    ],
    "in-place": [
        *((TORCH, f"T {sign} A", f"T.{name}_(A)") for sign, (name, _) in ARITHMETIC.items()),
        *((NUMPY, f"T {sign} A", f"np.{name}(T, A, out=T)") for sign, (_, name) in ARITHMETIC.items()),
        *((ANY, f"N = N {sign} A", f"N {sign}= A") for sign in ARITHMETIC),
        *((TORCH, f"N.{name}(REST)", f"N.{name}_(REST)") for name in UNARY),
    ],
    "not-cloned": [(TORCH, "A.clone()", "A"), (NUMPY, "A.copy()", "A")],
    "reshape-for-permute": [
        *((ARRAY, f"A.{name}(REST)", "A.reshape(WHOLE.shape)") for name in TURNING),
        *((NUMPY, f"np.{name}(A, REST)", "A.reshape(WHOLE.shape)") for name in TURNING),
        (ARRAY, "A.T", "A.reshape(WHOLE.shape)"),
        *((ARRAY, f"A.{name}(REST)", f"A.swapaxes(0, -1).{name}(REST)") for name in ("reshape", "flatten")),
    ],
    "axis-dropped": [
        *((TORCH, f"A.{name}(REST)", "A") for name in ("unsqueeze", "squeeze")),
        *((ARRAY, text, "A") for text in ("A[None]", "A[:, None]", "A[..., None]", "A[:, np.newaxis]")),
        (NUMPY, "np.expand_dims(A, REST)", "A"),
    ],
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
    # Models and training: graphs kept, another optimizer, a schedule, gradients clipped or not cleared
    "detach-dropped": [(TORCH, "A.detach()", "A")],
    "shallow-copy": [(ANY, "copy.deepcopy(A)", "A"), (ANY, "copy.deepcopy(A)", "copy.copy(A)")],
    "another-optimizer": [
        *((TORCH, f"A.{name}(REST)", f"A.{other}(REST)") for name in OPTIMIZERS for other in OPTIMIZERS),
        *((TORCH, f"A.{name}(REST)", f"A.{name}(REST, {option})") for name in OPTIMIZERS for option in OPTIONS),
    ],
    "learning-rate-schedule": [
        (TORCH, "A.step()", "(A.step(), [group.update(lr=0.9 * group['lr']) for group in A.param_groups])"),
    ],
    "gradients-clipped": [
        (TORCH, "A.step()", f"(torch.nn.utils.clip_grad_norm_({WEIGHTS}, 0.1), A.step())"),
        (TORCH, "A.clip_grad_norm_(REST)", "None"),
        (TORCH, "A.clip_grad_norm_(REST)", "A.clip_grad_value_(REST)"),
    ],
    "gradients-not-cleared": [(TORCH, "A.zero_grad()", "None")],
    # What needs more than a pattern
    "cast": [cast],
    "detached": [detached],
    "isclose-for-eq": [isclose_for_equal],
    "detach-for-no-grad": [detach_for_no_grad],
    "mode-around-call": [mode_around_call],
    "second-pass": [second_pass],
}
