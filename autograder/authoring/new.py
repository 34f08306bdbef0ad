"""Make an assignment from a solution file, as `autograder new NAME --from solution.py` does.

    x         float[batch dim]     a row of a docstring
    mode      "mean" or "max"

Signatures, annotations and such rows say what the arguments are; nothing is read from sentences or from bodies. Each
function is tried on draws of its arguments. What is unsaid, or fails, is a TODO in functions.py and not graded.
The files are written from `templates/`. Read `new_assignment` first, at the end.
"""

from __future__ import annotations

import ast
import contextlib
import json
import keyword
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy

from autograder.authoring.calls import AFTERWARDS, Formula, is_numbers
from autograder.authoring.declarations import OPEN_SECRET, check_draft
from autograder.authoring.fixtures.regenerate import (
    FUNCTIONS,
    Drawing,
    case_of,
    check_solution,
    import_generator,
    regenerate,
)
from autograder.authoring.handout.notebook import BEGIN, END, ENVIRONMENT, template
from autograder.authoring.handout.release import handout_files, write_source_notebook
from autograder.authoring.laws import texts
from autograder.authoring.laws.cases import Planned, draft_of
from autograder.authoring.laws.declaration import USUAL, Function
from autograder.authoring.laws.laws import LAWS, Call
from autograder.checking.handout import write_handout
from autograder.grading.assignment import PACKAGES, Assignment, Item, load_assignment
from autograder.sandbox.calls import Array, Outcome, Program, Request
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError

GUIDE = 'fixtures/README.md, "{}"'  # how a refusal names the section that says how
CLASSES, OBJECTS, OUTPUT, GRADABLE = "Classes", "Other objects", "Plots and printed text", "What can be graded"
ROW = r"(float|u?int|bool|str|function)\d*\b(?:\[([^\]]*)\])?"
QUOTED = re.compile(r"[\"'](\w[\w .-]*)[\"']")
ARRAY = re.compile(r"ndarray|NDArray|ArrayLike|Tensor|Array|^list$")
NUMBERS = {  # kind → expressions that draw one, and an array of them
    "float": ("round(rng.uniform(0.1, 0.9), 3)", "rng.uniform(-2, 2, {})"),
    "int": ("int(rng.integers(1, 4))", "rng.integers(0, 4, {})"),  # indices of any axis: no size is below 4
    "bool": ("bool(rng.integers(2))", "rng.random({}) < 0.5"),
}
TEXTS = {  # kind → name of a draw → expression
    "str": {
        USUAL: "texts.words(rng)", "letters": "texts.letters(rng)", "palindrome": "texts.palindrome(rng)",
        "empty": '""',
    },
    "list[str]": {
        USUAL: "texts.word_list(rng)", "repeated": "texts.repeated_words(rng)", "anagrams": "texts.anagrams(rng)",
        "empty": "[]",
    },
    "dict[str, int]": {USUAL: "texts.counts(rng)", "ties": "texts.counts(rng, ties=True)", "empty": "{}"},
}  # fmt: skip
TEXTS["dict[str, float]"] = TEXTS["dict[str, int]"]
FORMULAS = ("x * x - 2", "x * x - 0.5 * y", "x * x - 0.5 * y + z")  # of one, two, three and more arguments
WIDTH = 110
ITEMS = {  # end of an id → points in proportion, title, hint
    "values": (5, "what {} returns", "Work the public case out by hand, value by value: where does yours depart?"),
    "gradient": (3, "the gradient of {}", "Does every step of the computation stay in the graph?"),
    "form": (1, "the form of {}", "What comes back, and what do the caller's arguments hold afterwards?"),
}  # fmt: skip
EXAMPLE_NAME, EXAMPLE_TITLE = "three_functions", "Three functions"  # of the guide, in NumPy
PARTS = ("solution", "fixtures", "handout")
REPLACED = "replaced"  # the folder of a course that `new --replace` moves an assignment into


class Argument(NamedTuple):
    """One argument.

    shape     as a `Function` declares it
    drawn     the expression that draws it; "" where nothing says what it is
    further   name of a further draw → expression
    default   its default as a literal, in a tuple; () where it has none, or another one
    unsaid    what nothing says of it, as a phrase; "" where all is said
    """

    name: str
    shape: str = "other"
    drawn: str = ""
    further: Mapping[str, str] = {}
    default: tuple[Any, ...] = ()
    unsaid: str = ""
    by_name: bool = False

    @property
    def axes(self) -> list[str]:
        """The names of its axes."""
        return self.shape.partition("[")[2].removesuffix("]").split()


@dataclass
class SourceFunction:
    """A function of the file, and what trials show of it.

    raises    lines that raise an exception
    returns   shape of what comes back, {name: shape} of several, None where it is compared as it is
    kind      what comes back, as a phrase
    leaves    arguments that it has a gradient with respect to
    off       law → why the solution does not keep it
    refused   further draw → why the solution does not answer it
    problem   why it is not graded; "" where it is
    """

    name: str
    arguments: tuple[Argument, ...]
    signature: str
    summary: str
    raises: tuple[int, ...]
    values: str
    returns: str | Mapping[str, str] | None = None
    kind: str = ""
    leaves: Sequence[str] = ()
    off: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    problem: str = ""

    @property
    def slug(self) -> str:
        """Its name as ids begin."""
        return self.name.lower().replace("_", "-").strip("-")

    @property
    def shapes(self) -> dict[str, str]:
        """The arguments as a `Function` declares them."""
        return {argument.name: argument.shape for argument in self.arguments}

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults that it declares."""
        return {argument.name: argument.default[0] for argument in self.arguments if argument.default}

    @property
    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """The least, public and hidden size of each axis."""
        axes = dict.fromkeys(axis for argument in self.arguments for axis in argument.axes if not axis.isdigit())
        # Hidden sizes grow faster than public ones, so that no axis is always one longer than another.
        return {axis: (1, 4 + place, 7 + 2 * place) for place, axis in enumerate(axes)}

    @property
    def further_draws(self) -> dict[str, tuple[str, str]]:
        """Name of each further draw that the solution answers → the argument, and what draws it there."""
        draws: dict[str, tuple[str, str]] = {}
        for argument in self.arguments:
            # What None means no other draw asks: the law `signature` compares with the same function's own answer.
            none = {f"{argument.name}_none": "None"} if argument.default == (None,) and argument.drawn != "None" else {}
            for name, drawn in {**argument.further, **none}.items():
                draws[name if name not in draws else f"{argument.name}_{name}"] = (argument.name, drawn)
        return {name: drawn for name, drawn in draws.items() if name not in self.refused}

    @property
    def draw_functions(self) -> dict[str, str]:
        """Name of each draw → the function of functions.py."""
        return {USUAL: f"{self.name}_arguments"} | {name: f"{self.name}_{name}" for name in self.further_draws}

    @property
    def laws(self) -> dict[str, list[str]]:
        """The items that it gets, and the laws of each."""
        has_arrays = any("[" in shape for shape in self.shapes.values()) and self.values != "python"
        values = ["values", *(["sizes"] if self.sizes else []), *(["layout"] if has_arrays else [])]
        if self.returns is None:  # what is compared as it is, is compared in every item: one of them is enough
            return {"values": [*values, "unmodified", "signature"]}
        if "function" not in self.shapes.values():
            values.append("state")
        items = {"values": values, "gradient": ["gradient"] if self.leaves else []}
        items["form"] = ["dtype", "kind", "unmodified", "signature"]
        return {kind: laws for kind, laws in items.items() if {*laws} - self.off.keys()}


@dataclass(frozen=True)
class Solution:
    """A solution file: its text with markers, what its values are, its functions, and in words what is no function."""

    path: Path
    text: str
    values: str
    functions: tuple[SourceFunction, ...]
    left_out: tuple[str, ...] = ()


class NewAssignment(NamedTuple):
    """What was written: numbers of items, cases and lines that say TODO; function that is not graded → why."""

    items: int
    cases: int
    todos: int
    not_graded: Mapping[str, str]


# Reading a solution file


def read_solution(path: Path) -> Solution:
    """Read that file; raises UsageError where it is no Python or has no function."""
    if path.suffix == ".ipynb":  # JSON may well be Python
        raise UsageError(f"{path} is a notebook: give a Python file with its functions, solution.py.")
    try:
        return parse_solution(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (SyntaxError, ValueError) as error:  # no UTF-8
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}.") from error


def parse_solution(text: str, path: Path) -> Solution:
    """Read that text; `path` is for sentences alone."""
    tree = ast.parse(text)
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    others = []
    for kind, what, section in ((ast.ClassDef, "a class", CLASSES), (ast.AsyncFunctionDef, "async", OBJECTS)):
        if names := [f"{node.name} ({what})" for node in tree.body if isinstance(node, kind)]:
            others.append(f"{', '.join(names)}: {GUIDE.format(section)}")
    if not nodes:
        why = "; ".join(["there is nothing that can be graded by itself", *others])
        raise UsageError(f"{path} defines no function whose name does not begin with _: {why}.")
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    values = "torch" if "torch" in imported else "numpy" if imported & {"numpy", "scipy"} else "python"
    constants = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    functions = []
    for node in nodes:
        docstring = ast.get_docstring(node) or ""
        placed, by_name = [*node.args.posonlyargs, *node.args.args], node.args.kwonlyargs
        wrong = "" if node.name.isascii() else "its name is one of ids and files, of the letters a to z, digits and _"
        if node.args.vararg and not (placed or by_name):
            wrong = f"a declaration names each argument; see {GUIDE.format(OBJECTS)}"
        if wrong:
            raise UsageError(f"{path}:{node.lineno}: {node.name} cannot be graded: {wrong}.")
        if not node.body[bool(docstring) :]:
            raise UsageError(f"{path}:{node.lineno}: {node.name} has no body to mark.")
        defaults = [*[None] * (len(placed) - len(node.args.defaults)), *node.args.defaults, *node.args.kw_defaults]
        defaults = [constants.get(one.id, one) if isinstance(one, ast.Name) else one for one in defaults]
        arguments = tuple(
            _argument(arg, default, docstring)._replace(by_name=arg in by_name)
            for arg, default in zip([*placed, *by_name], defaults, strict=True)
        )
        raises = tuple(part.lineno for part in ast.walk(node) if isinstance(part, ast.Raise))
        summary = docstring.partition("\n")[0].strip() or "Complete the function."
        functions.append(SourceFunction(node.name, arguments, ast.unparse(node.args), summary, raises, values))
    lines = text.splitlines()
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):  # both markers around each body without any
        first, last = node.body[ast.get_docstring(node) is not None], node.end_lineno or 0
        if not any(line.strip() == BEGIN for line in lines[node.lineno - 1 : last + 1]):
            margin = lines[first.lineno - 1][: first.col_offset]
            lines.insert(last, f"{margin}{END}")
            lines.insert(first.lineno - 1, f"{margin}{BEGIN}")
    return Solution(path, "\n".join(lines) + "\n", values, tuple(functions), tuple(others))


def _argument(node: ast.arg, default: ast.expr | None, docstring: str) -> Argument:
    """Read what the row of the docstring says of an argument, else its annotation, else its default."""
    row = re.search(rf"^\s*[`*]*{re.escape(node.arg)}[`*]*(?::\s*|\s{{2,}}|\t)(.*)", docstring, re.MULTILINE)
    meaning = row[1].lstrip("`*") if row else ""
    annotation = ast.unparse(node.annotation).strip("'\"") if node.annotation else ""  # "Tree" may be quoted
    plain = re.sub(r"^Optional\[(.*)\]$|\s*\|\s*None$", r"\1", annotation).replace("Sequence[", "list[")
    argument = Argument(node.arg)
    if default is not None:
        try:
            argument = argument._replace(default=(ast.literal_eval(default),))
        except ValueError:
            unsaid = f"its default {ast.unparse(default)} is no literal: `defaults` does not name it"
            argument = argument._replace(unsaid=unsaid)
    words = QUOTED.findall(meaning if meaning[:1] in ('"', "'") else plain if plain.startswith("Literal[") else "")
    if shape := re.match(ROW, meaning):
        kind, axes = shape[1].replace("uint", "int"), re.split(r"[\s,]+", (shape[2] or "").strip(" ,"))
        if axes == [""]:
            return _of_kind(argument, kind)
        # A draw has a parameter for each axis; a number is a fixed length.
        are_names = (
            axis.isdigit() or (axis.isidentifier() and not keyword.iskeyword(axis) and axis not in ("rng", "np"))
            for axis in axes
        )
        if kind in NUMBERS and all(are_names):
            return _array(argument, kind, *axes)
        unsaid = f"its axes [{shape[2]}] are no plain names"
    elif words:
        first, *others = dict.fromkeys(words)
        slugs = {f"{node.arg}_{re.sub(r'[^a-z0-9]', '_', word.lower())}": as_python(word) for word in others}
        return argument._replace(shape="word", drawn=as_python(first), further=slugs)
    elif plain in (*NUMBERS, *TEXTS):
        return _of_kind(argument, plain)
    elif listed := re.fullmatch(r"list\[(list\[)?(float|int|bool)\]+", plain):
        return _array(argument, listed[2], *(("row", "column") if listed[1] else ("entry",)))
    elif plain.partition("[")[0].rpartition(".")[2] == "Callable":
        several = re.search(r"Callable\[\[([^\[\]]*)\]", plain)
        return _of_kind(argument, "function", several[1].count(",") + 1 if several else 1)
    elif argument.default and (kind := type(argument.default[0]).__name__) in (*NUMBERS, "str"):
        return _of_kind(argument, kind)
    elif argument.default:  # None, or a list or dictionary
        unsaid = f"nothing says what it may be besides {argument.default[0]!r}"
    elif annotation and not ARRAY.search(annotation):
        unsaid = f"no draw is known of {annotation}; {GUIDE.format(OBJECTS)}, says how"
    else:
        what = "its axes" if annotation else "what it is"
        unsaid = f"nothing says {what}: write `{node.arg}   float[row column]` into the docstring"
    return argument._replace(unsaid=unsaid, drawn=as_python(argument.default[0]) if argument.default else "")


def _array(argument: Argument, kind: str, *axes: str) -> Argument:
    size = axes[0] if len(axes) == 1 else f"({', '.join(axes)})"
    return argument._replace(shape=f"{kind}[{' '.join(axes)}]", drawn=NUMBERS[kind][1].format(size))


def _of_kind(argument: Argument, kind: str, takes: int = 1) -> Argument:
    """Draw a number, near its default; a text or texts of several kinds; a function of so many arguments."""
    default = argument.default[0] if argument.default else None
    if kind == "function":
        names, formula = " ".join("xyzuvw"[:takes]), FORMULAS[min(takes, 3) - 1]
        return argument._replace(shape=kind, drawn=f'Formula("{names}", "{formula}")')
    if kind == "str" and default is not None:
        return argument._replace(drawn=as_python(default))
    if kind in TEXTS:
        further = {name: drawn for name, drawn in TEXTS[kind].items() if name != USUAL}
        return argument._replace(drawn=TEXTS[kind][USUAL], further=further)
    drawn = NUMBERS[kind][0]
    if kind == "float" and default:
        low, high = sorted((default / 2, default * 2))
        drawn = f"round(rng.uniform({low:g}, {high:g}), 3)" if high > 0.1 else f"rng.uniform({low:g}, {high:g})"
    elif kind == "int" and default is not None:
        drawn = f"int(rng.integers({default}, {default + 3}))"
    return argument._replace(shape=kind, drawn=drawn)


# Trying its functions


def try_function(solution: Solution, function: SourceFunction, sandbox: Sandbox) -> None:
    """Call a function at public and hidden sizes, and note what comes back; else the problem that it has."""
    unknown = [f"{argument.name}: {argument.unsaid}" for argument in function.arguments if not argument.drawn]
    function.problem = "; ".join(unknown) or _tried(solution, function, sandbox)


def _tried(solution: Solution, function: SourceFunction, sandbox: Sandbox) -> str:
    """Note what comes back; return why it cannot be graded, "" where it can."""
    namespace: dict[str, Any] = {"np": np, "Formula": Formula, "texts": texts}
    exec(template("draws.py", functions=[function]), namespace)
    draw = namespace[function.draw_functions[USUAL]]
    calls = [
        draw(np.random.default_rng(seed), **{axis: sizes[place] for axis, sizes in function.sizes.items()})
        for place in (1, 2)  # the public and the hidden size
        for seed in range(3)  # several, as shapes and keys may depend on the numbers
    ]
    outcomes = _call(solution, function, sandbox, calls, None)
    for outcome in outcomes:
        if outcome.observation is None:
            raised = outcome.raised
            why = f"{raised.types[0]}: {raised.message}" if raised else outcome.exceeded or outcome.detail
            if outcome.loading:
                raise UsageError(f"{solution.path} cannot be loaded: {why or outcome.status}.")
            line = f" (line {raised.line})" if raised and raised.line else ""
            return " ".join(f"{why or outcome.status}".split())[:120] + line
    facts = outcomes[0].observation.facts if outcomes[0].observation else {}
    kind, result = str(facts.get("kind")), facts.get("result")
    if kind == "nothing" and (changed := _changed(function, calls, outcomes)):
        function.returns, function.kind = changed, kind
        return ""
    names = _numeric_parts(function.name, kind, result, facts.get("parts"))
    parts = _call(solution, function, sandbox, calls, names) if names else []
    arrays = {name: _arrays(parts, name) for name in names}
    if not names or any(len(several) < len(calls) for several in arrays.values()):
        if kind == "nothing" or (result == kind and kind != "text"):
            return (
                f"it returns {kind}; {GUIDE.format(OUTPUT if kind == 'nothing' else OBJECTS)}, says how that is graded"
            )
        return ""  # compared as it is, such as a dictionary of other keys for other arguments
    if not all(np.isfinite(array).all() for several in arrays.values() for array in several):
        return f"it returns nan, which no answer equals, or what is infinite; see {GUIDE.format(GRADABLE)}"
    shapes = {name: _shape(function, several) for name, several in arrays.items()}
    function.returns = shapes[names[0]] if names == [function.name] else shapes
    function.kind = kind if solution.values != "torch" or kind in ("a list", "a dictionary") else ""
    floats = [name for name, shape in function.shapes.items() if shape.startswith("float[")]
    if solution.values == "torch" and floats:  # of the first part, where there are several
        outcomes = _call(solution, function, sandbox, calls[:1], names, floats)
        slopes = {leaf: _arrays(outcomes, f"gradient {leaf}") for leaf in floats}
        function.leaves = [leaf for leaf, several in slopes.items() if any(array.any() for array in several)]
    return ""


def _call(
    solution: Solution,
    function: SourceFunction,
    sandbox: Sandbox,
    calls: Sequence[Mapping[str, Any]],
    names: Sequence[str] | None,
    leaves: Sequence[str] = (),
) -> list[Outcome]:
    """Call the solution's function with each of these arguments; without `names` what comes back is told as it is."""
    by_name = [argument.name for argument in function.arguments if argument.by_name]
    returns = None if names is None else dict.fromkeys(names, "float")
    declared = Function(
        function.name, function.shapes, returns, function.sizes, {}, values=solution.values, by_name=by_name
    )
    call = Call("", "a trial", "", options={"leaves": leaves})
    planned = Planned("trial", "public", declared, LAWS["values"], call, frozenset())
    requests = []
    for arguments in calls:
        draft = draft_of(planned, arguments, ModuleType("oracle"))
        blob = safetensors.numpy.save({**draft.inputs})
        requests.append(Request("trial", function.name, "call", draft.params, blob, 5.0))
    program = Program("solution", solution.text, {}, template("probes.py"), solution.values == "torch")
    return sandbox.run(program, requests, load_timeout=20.0)


def _arrays(outcomes: Sequence[Outcome], name: str) -> list[Array]:
    """Return the numbers of that name in each outcome that has them."""
    returned = [outcome.observation.returned.get(name) for outcome in outcomes if outcome.observation]
    return [part.array for part in returned if part is not None and part.array is not None]


def _changed(
    function: SourceFunction, calls: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome]
) -> dict[str, str]:
    """Return the shapes of the arguments that the calls have changed in place."""
    shapes = {}
    for name in function.shapes:
        after = f"{name} {AFTERWARDS}"
        arrays = _arrays(outcomes, after)
        facts = [outcome.observation.facts.get(after) for outcome in outcomes if outcome.observation]
        if any(not np.array_equal(array, call[name]) for array, call in zip(arrays, calls, strict=False)):
            shapes[after] = _shape(function, arrays)
        elif any(fact not in (None, call[name]) for fact, call in zip(facts, calls, strict=True)):
            shapes[after] = "other"
    return shapes


def _numeric_parts(name: str, kind: str, result: Any, parts: Any) -> list[str]:
    """Name the parts that are numbers; none where what comes back is compared as it is.

    result   what comes back, as JSON makes it
    parts    names of the parts of a container of arrays
    """
    if kind in ("a tensor", "a NumPy array", "a number") or (kind == "a list" and is_numbers(result)):
        return [name]
    if isinstance(result, list) and kind.startswith("a tuple of "):
        result = {f"part{place + 1}": part for place, part in enumerate(result)}
    if isinstance(result, dict) and (len(result) > 1 or kind.startswith("a tuple")):
        return [*result] if all(is_numbers(part) or type(part) in (int, float) for part in result.values()) else []
    several = isinstance(parts, list) and (len(parts) > 1 or kind != "a list")
    return [*map(str, parts)] if several else []


def _shape(function: SourceFunction, arrays: Sequence[Array]) -> str:
    """Write the shape of what came back at public and hidden sizes, with the names of axes that have these sizes."""
    axis_of = {sizes[1:]: axis for axis, sizes in function.sizes.items()}
    kind = {"f": "float", "b": "bool"}.get(arrays[0].dtype.kind, "int")
    lengths = [*zip(*(array.shape for array in arrays), strict=False)]
    axes = [axis_of.get(tuple(dict.fromkeys(several)), f"axis{place}") for place, several in enumerate(lengths)]
    axes = [axis if axes.count(axis) == 1 else f"{axis}{place}" for place, axis in enumerate(axes)]
    return f"{kind}[{' '.join(axes)}]" if axes else kind


# Writing files


def as_python(value: Any) -> str:
    """Write a value as Python, its texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_python(key)}: {as_python(entry)}" for key, entry in value.items()) + "}"
    return "[" + ", ".join(map(as_python, value)) + "]" if isinstance(value, list) else repr(value)


def _entries(table: Mapping[str, str], *, quoted: bool = True) -> str:
    """Write a dictionary in one line where that is short, else one line each, inside a `Function`."""
    entries = [f'"{name}": {as_python(value) if quoted else value}' for name, value in table.items()]
    line = f"{{{', '.join(entries)}}}"
    return line if len(line) <= WIDTH else "{\n" + "".join(f"            {entry},\n" for entry in entries) + "        }"


ENVIRONMENT.filters |= {"python": as_python, "entries": _entries, "toml": as_python}


def functions_text(functions: Sequence[SourceFunction]) -> str:
    """Return the text of functions.py."""
    return template("functions.py", functions=functions, draws=template("draws.py", functions=functions))


def _items(functions: Sequence[SourceFunction]) -> list[dict[str, Any]]:
    """List the items, 100 points in all; those of functions that are not graded come last, and have none."""
    graded = [function for function in functions if not function.problem] or functions  # a file needs an item
    items: list[dict[str, Any]] = []
    for function in [*graded, *(function for function in functions if function not in graded)]:
        for kind, laws in function.laws.items():
            weight, title, hint = ITEMS[kind]
            draws = [*function.draw_functions] if kind == "values" and function.further_draws else []
            texts = {"title": title.format(function.name), "hint": hint, "draws": draws, "laws": laws}
            items.append({"function": function, "kind": kind, "points": weight * (function in graded), **texts})
    total, before = sum(item["points"] for item in items), 0
    for item in items:  # each ends where its share of the sum does, rounded
        item["points"], before = (
            round(100 * (before + item["points"]) / total) - round(100 * before / total),
            before + item["points"],
        )
    return items


# Making the assignment


def check_name(root: Path, name: str, *, replacing: bool = False) -> None:
    """Raise UsageError where an assignment cannot be called that, or something is there already."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be a module's name: small letters, digits and _, such as linear_algebra.")
    for part in () if replacing else PARTS:
        if (root / part / name).exists():
            told = f"{root / part / name} is there already: nothing was written"
            raise UsageError(f"{told}. Give another name, or --replace, which moves it into {REPLACED}/ first.")


def new_assignment(root: Path, name: str, title: str, solution: Solution, *, replacing: bool = False) -> NewAssignment:
    """Write the assignment into the course `root`, whole or not at all; its handout is a draft.

    replacing   whether one of that name is moved into `replaced/` first, so that nothing is lost
    """
    check_name(root, name, replacing=replacing)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".new-") as folder:
        made = run_in_subprocess(_make, Path(folder), name, title, solution)
        assignment = load_assignment(Path(folder) / "fixtures" / name)
        write_source_notebook(assignment)
        if made.cases:
            write_handout(handout_files(assignment), assignment.handout)
        numbers = (f"{name}-{number}" for number in range(1, sys.maxsize))
        kept = next(root / REPLACED / one for one in numbers if not (root / REPLACED / one).exists())
        for part in PARTS:
            if (root / part / name).exists():
                kept.mkdir(parents=True, exist_ok=True)
                (root / part / name).replace(kept / part)
            if (Path(folder) / part / name).exists():
                (root / part).mkdir(exist_ok=True)
                (Path(folder) / part / name).replace(root / part / name)
    return made


def _make(root: Path, name: str, title: str, solution: Solution) -> NewAssignment:
    """Try the functions, write the files, and take away laws that the solution does not keep until all cases pass."""
    sys.dont_write_bytecode = True  # files are written again within a second
    fixtures, functions = root / "fixtures" / name, solution.functions
    imported = [one for one in PACKAGES if re.search(rf"^\s*(?:import|from) {one}\b", solution.text, re.MULTILINE)]

    def write() -> bool:
        """Write all files; return whether any function is graded."""
        context = {"name": name, "title": title, "functions": functions}
        for path, text in {
            fixtures / "functions.py": functions_text(functions),
            fixtures / "items.toml": template("items.toml", packages=imported, items=_items(functions), **context),
            **{fixtures / file: template(file, **context) for file in ("oracle.py", "mistakes.py", "probes.py")},
            root / "solution" / name / "README.md": template("README.md", **context),
            root / "solution" / name / f"{name}.py": solution.text,
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return any(not function.problem for function in functions)

    with Sandbox() as sandbox:
        for function in functions:
            try_function(solution, function, sandbox)
        while (is_graded := write()) and _examine(load_assignment(fixtures), functions, sandbox):
            pass  # without a law, other cases have other sizes
        assignment = load_assignment(fixtures)
        cases = regenerate(assignment, fixtures, sandbox=sandbox) if is_graded else 0
    files = (path.read_text(encoding="utf-8") for path in fixtures.iterdir() if path.is_file())
    todos = sum(text.count("# TODO: ") for text in files)
    not_graded = {function.name: function.problem for function in functions if function.problem}
    return NewAssignment(len(assignment.items), cases, todos, not_graded)


def _examine(assignment: Assignment, functions: Sequence[SourceFunction], sandbox: Sandbox) -> bool:
    """Hold the solution against each derived case; note further draws and laws that it does not keep, if any."""
    exam, drawing = import_generator(assignment)[FUNCTIONS].EXAM, Drawing(assignment, sandbox)
    named, is_blamed = {function.name: function for function in functions}, False

    def check(item: Item, planned: Planned) -> None:
        draft = exam.draft(planned, OPEN_SECRET, drawing)
        check_draft(draft)
        check_solution(assignment, [case_of(item, draft, planned.visibility)], {draft.case: draft}, sandbox)

    cases_of = exam.planned(assignment)
    for item, planned in [(each, one) for each in assignment.items for one in cases_of[each.id]]:
        try:
            check(item, planned)
            continue
        except Exception as error:  # NumPy's own, too, of arguments that a law changed
            why = " ".join(str(error).removeprefix(f"{planned.case}: ").split())[:120]
        function, is_blamed, blamed = named[item.function], True, planned.law.name
        if planned.call.draw not in ("", USUAL):
            function.refused.setdefault(planned.call.draw, why)
            continue
        for law in (LAWS[name] for name in item.laws if LAWS[name].aspects):
            with contextlib.suppress(Exception):  # the law without which it passes, else the one that adds the case
                check(item, replace(planned, aspects=planned.aspects - law.aspects))
                blamed = law.name
                break
        if blamed == "values":
            function.problem = why
        else:
            function.off.setdefault(blamed, why)
    return is_blamed
