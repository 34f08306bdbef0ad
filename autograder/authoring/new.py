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
from typing import Any

import jinja2
import numpy as np
import safetensors.numpy

from autograder.authoring.calls import AFTERWARDS, Calls, Formula, Values, is_numbers
from autograder.authoring.declarations import OPEN_SECRET, Draft, check_draft
from autograder.authoring.fixtures.regenerate import (
    FUNCTIONS,
    Drawing,
    case_of,
    check_solution,
    import_generator,
    regenerate,
)
from autograder.authoring.handout.notebook import BEGIN, END
from autograder.authoring.handout.release import handout_files, write_source_notebook
from autograder.authoring.laws import texts
from autograder.authoring.laws.declaration import USUAL
from autograder.authoring.laws.exam import Planned
from autograder.authoring.laws.laws import LAWS
from autograder.checking.handout import write_handout
from autograder.grading.assignment import PACKAGES, Assignment, Item, load_assignment
from autograder.grading.fixtures import Case
from autograder.sandbox.calls import Array, Outcome, Program, Request
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError, UsageError

GUIDE = 'fixtures/README.md, "{}"'  # how a refusal names the section that says how
CLASSES, OBJECTS, OUTPUT, GRADABLE = "Classes", "Other objects", "Plots and printed text", "What can be graded"
ROW = r"(float|u?int|bool|str|function)\d*\b(?:\[([^\]]*)\])?"
QUOTED = re.compile(r"[\"'](\w[\w .-]*)[\"']")
ARRAY = re.compile(r"ndarray|NDArray|ArrayLike|Tensor|Array|^list$")
NUMBERS = ("float", "int", "bool")
ANNOTATIONS: Mapping[str, tuple[str, tuple[str, ...] | None]] = {  # → kind and axes
    "str": ("str", None), "list[str]": ("texts", None),
    "dict[str, int]": ("table", None), "dict[str, float]": ("table", None),
    **{kind: (kind, None) for kind in NUMBERS},
    **{f"list[{kind}]": (kind, ("entry",)) for kind in NUMBERS},
    **{f"list[list[{kind}]]": (kind, ("row", "column")) for kind in NUMBERS},
}  # fmt: skip
DRAWS = {  # kind → expression that draws it
    "float[]": "rng.uniform(-2, 2, {size})",
    "int[]": "rng.integers(0, 4, {size})",  # indices of any axis: no public or hidden size is below 4
    "bool[]": "rng.random({size}) < 0.5",
    "float": "round(rng.uniform(0.1, 0.9), 3)",
    "int": "int(rng.integers(1, 4))",
    "bool": "bool(rng.integers(2))",
    "str": "texts.words(rng)",
    "texts": "texts.word_list(rng)",
    "table": "texts.counts(rng)",
}
FURTHER_DRAWS = {  # kind → name of a further draw → expression
    "str": {"letters": "texts.letters(rng)", "palindrome": "texts.palindrome(rng)", "empty": '""'},
    "texts": {"repeated": "texts.repeated_words(rng)", "anagrams": "texts.anagrams(rng)", "empty": "[]"},
    "table": {"ties": "texts.counts(rng, ties=True)", "empty": "{}"},
}
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


@dataclass(frozen=True)
class Argument:
    """One argument.

    kind      float, int, bool, str, texts (a list), table (a dictionary), function; "" where nothing says
    axes      of an array; None of what is none
    default   its default as a literal, in a tuple; () where it has none, or another one
    words     what a text may be
    takes     how many arguments a function takes
    unsaid    what nothing says of it, as a phrase; "" where all is said
    """

    name: str
    kind: str = ""
    axes: tuple[str, ...] | None = None
    default: tuple[Any, ...] = ()
    words: tuple[str, ...] = ()
    takes: int = 1
    unsaid: str = ""
    by_name: bool = False

    @property
    def shown(self) -> str:
        """Its name, with its default where it has one."""
        return f"{self.name}={self.default[0]!r}" if self.default else self.name

    @property
    def shape(self) -> str:
        """Its shape as a `Function` declares it."""
        if self.axes is not None:
            return f"{self.kind}[{' '.join(self.axes)}]"
        if self.words:
            return "word"
        return self.kind if self.kind in (*NUMBERS, "function") else "other"

    @property
    def drawn(self) -> str:
        """The expression that draws it."""
        default = self.default[0] if self.default else None
        if self.axes is not None:
            size = self.axes[0] if len(self.axes) == 1 else f"({', '.join(self.axes)})"
            return DRAWS[f"{self.kind}[]"].format(size=size)
        if self.words:
            return as_python(self.words[0])
        if self.kind == "function":
            return f'Formula("{" ".join("xyzuvw"[: self.takes])}", "{FORMULAS[min(self.takes, 3) - 1]}")'
        if self.kind == "float" and default:
            low, high = sorted((default / 2, default * 2))
            return f"round(rng.uniform({low:g}, {high:g}), 3)" if high > 0.1 else f"rng.uniform({low:g}, {high:g})"
        if self.kind == "int" and default is not None:
            return f"int(rng.integers({default}, {default + 3}))"
        if not self.kind or (self.default and self.kind in FURTHER_DRAWS):
            return as_python(default)
        return DRAWS[self.kind]


@dataclass(frozen=True)
class SourceFunction:
    """A function of the file, and what a trial showed of it.

    raises    lines that raise an exception
    returns   shape of what comes back, {name: shape} of several, None where it is compared as it is
    kind      what comes back, as a phrase
    slopes    part of what comes back → arguments that it has a gradient with respect to
    off       law → why the solution does not keep it
    refused   further draw → why the solution does not answer it
    problem   why it is not graded; "" where it is
    """

    name: str
    arguments: tuple[Argument, ...]
    summary: str
    raises: tuple[int, ...]
    values: Values
    returns: str | Mapping[str, str] | None = None
    kind: str = ""
    slopes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    off: Mapping[str, str] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
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
    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """The least, public and hidden size of each axis."""
        axes = dict.fromkeys(axis for argument in self.arguments for axis in argument.axes or () if not axis.isdigit())
        # Hidden sizes grow faster than public ones, so that no axis is always one longer than another.
        return {axis: (1, 4 + place, 7 + 2 * place) for place, axis in enumerate(axes)}

    @property
    def sloped(self) -> list[str]:
        """The parts of what comes back that have a gradient."""
        return [name for name, leaves in self.slopes.items() if leaves]

    @property
    def leaves(self) -> list[str]:
        """Arguments that the result has a gradient with respect to."""
        return [name for name in self.shapes if any(name in reached for reached in self.slopes.values())]

    @property
    def further_draws(self) -> dict[str, tuple[str, str]]:
        """Name of each further draw → the argument, and what draws it there: other words, texts of other kinds."""
        draws: dict[str, tuple[str, str]] = {}
        for argument in self.arguments:
            for word in argument.words[1:]:
                draws[f"{argument.name}_{re.sub(r'[^a-z0-9]', '_', word.lower())}"] = (argument.name, as_python(word))
        for argument in self.arguments:
            if argument.words or (argument.kind == "str" and argument.default not in ((), (None,))):
                continue
            for name, drawn in FURTHER_DRAWS.get(argument.kind, {}).items():
                draws[name if name not in draws else f"{argument.name}_{name}"] = (argument.name, drawn)
        return {name: drawn for name, drawn in draws.items() if name not in self.refused}

    @property
    def draw_functions(self) -> dict[str, str]:
        """Name of each draw → the function of functions.py."""
        further = {name: f"{self.name}_{name}" for name in self.further_draws}
        return {USUAL: f"{self.name}_arguments", **further}

    @property
    def notes(self) -> list[str]:
        """What the author is to decide about the draws."""
        if self.problem:
            todo = f"draw and declare what {self.name} takes, and uncomment its items"
            return [f"{self.name} is not graded ({self.problem}): {todo}."]
        return [
            *(f"{argument.name}: {argument.unsaid}." for argument in self.arguments if argument.unsaid),
            *(f"no draw {name}, for {why}: is it an error to ask for?" for name, why in self.refused.items()),
            "are these usual arguments? Add draws of what is special: equal, zero, large, few.",
        ]

    @property
    def declared(self) -> dict[str, Any]:
        """What else its declaration says."""
        by_name = [argument.name for argument in self.arguments if argument.by_name]
        options = {"by_name": by_name, "gradients_of": self.sloped if len(self.sloped) > 1 else []}
        return {
            "kind": self.kind,
            "leaves": self.leaves,
            "defaults": {argument.name: argument.default[0] for argument in self.arguments if argument.default},
            "options": {name: names for name, names in options.items() if names},
        }

    @property
    def laws(self) -> dict[str, list[str]]:
        """The items that it gets, and the laws of each."""
        has_arrays = any(argument.axes is not None for argument in self.arguments) and self.values != "python"
        values = ["values", *(["sizes"] if self.sizes else []), *(["layout"] if has_arrays else [])]
        if self.returns is None:  # what is compared as it is, is compared in every item: one of them is enough
            return {"values": [*values, "unmodified", "signature"]}
        if "function" not in self.shapes.values():
            values.append("state")
        items = {"values": values, "form": ["dtype", "kind", "unmodified", "signature"]}
        if self.leaves:
            items = {"values": values, "gradient": ["gradient"], "form": items["form"]}
        return {kind: laws for kind, laws in items.items() if {*laws} - self.off.keys()}

    @property
    def signature(self) -> list[str]:
        """Its parameters as texts show them: those by name alone after a star."""
        by_place = [argument.shown for argument in self.arguments if not argument.by_name]
        by_name = [argument.shown for argument in self.arguments if argument.by_name]
        return [*by_place, *(["*"] if by_name else []), *by_name]


@dataclass(frozen=True)
class Solution:
    """A solution file: its text with markers, what its values are, its functions, and in words what is no function."""

    path: Path
    text: str
    values: Values
    functions: tuple[SourceFunction, ...]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class NewAssignment:
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
    classes = [f"{node.name} (a class)" for node in tree.body if isinstance(node, ast.ClassDef)]
    coroutines = [f"{node.name} (async)" for node in tree.body if isinstance(node, ast.AsyncFunctionDef)]
    others = [
        f"{', '.join(names)}: {GUIDE.format(section)}"
        for names, section in ((classes, CLASSES), (coroutines, OBJECTS))
        if names
    ]
    if not nodes:
        why = "; ".join(["there is nothing that can be graded by itself", *others])
        raise UsageError(f"{path} defines no function whose name does not begin with _: {why}.")
    for node in nodes:
        wrong = "" if node.name.isascii() else "its name is one of ids and files, of the letters a to z, digits and _"
        if node.args.vararg and not (node.args.args or node.args.posonlyargs or node.args.kwonlyargs):
            wrong = f"a declaration names each argument; see {GUIDE.format(OBJECTS)}"
        if wrong:
            raise UsageError(f"{path}:{node.lineno}: {node.name} cannot be graded: {wrong}.")
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    values: Values = "torch" if "torch" in imported else "numpy" if imported & {"numpy", "scipy"} else "python"
    lines = text.splitlines()
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):  # both markers around each body without any
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            raise UsageError(f"{path}:{node.lineno}: {node.name} has no body to mark.")
        if not any(line.strip() == BEGIN for line in lines[node.lineno - 1 : (node.end_lineno or 0) + 1]):
            margin = lines[body[0].lineno - 1][: body[0].col_offset]
            lines.insert(node.end_lineno or 0, f"{margin}{END}")
            lines.insert(body[0].lineno - 1, f"{margin}{BEGIN}")
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
        placed = [*node.args.posonlyargs, *node.args.args]
        defaults = [*[None] * (len(placed) - len(node.args.defaults)), *node.args.defaults, *node.args.kw_defaults]
        defaults = [constants.get(one.id, one) if isinstance(one, ast.Name) else one for one in defaults]
        arguments = tuple(
            replace(_argument(arg, default, docstring), by_name=arg in node.args.kwonlyargs)
            for arg, default in zip([*placed, *node.args.kwonlyargs], defaults, strict=True)
        )
        raises = tuple(part.lineno for part in ast.walk(node) if isinstance(part, ast.Raise))
        summary = docstring.partition("\n")[0].strip() or "Complete the function."
        functions.append(SourceFunction(node.name, arguments, summary, raises, values))
    return Solution(path, "\n".join(lines) + "\n", values, tuple(functions), tuple(others))


def _argument(node: ast.arg, default: ast.expr | None, docstring: str) -> Argument:
    """Read what the row of the docstring says of an argument, else its annotation, else its default."""
    row = re.search(rf"^\s*[`*]*{re.escape(node.arg)}[`*]*(?::\s*|\s{{2,}}|\t)(.*)", docstring, re.MULTILINE)
    meaning = row[1].lstrip("`*") if row else ""
    annotation = ast.unparse(node.annotation).strip("'\"") if node.annotation else ""  # "Tree" may be quoted
    plain = re.sub(r"^Optional\[(.*)\]$|\s*\|\s*None$", r"\1", annotation).replace("Sequence[", "list[")
    literal: tuple[Any, ...] = ()
    unsaid = ""
    if default is not None:
        try:
            literal = (ast.literal_eval(default),)
        except ValueError:
            unsaid = f"its default {ast.unparse(default)} is no literal: `defaults` does not name it"
    argument = Argument(node.arg, default=literal, unsaid=unsaid)
    if shape := re.match(ROW, meaning):
        kind, axes = shape[1].replace("uint", "int"), re.split(r"[\s,]+", (shape[2] or "").strip(" ,"))
        if axes == [""]:
            return replace(argument, kind=kind)
        # A draw has a parameter for each axis; a number is a fixed length.
        are_names = (
            axis.isdigit() or (axis.isidentifier() and not keyword.iskeyword(axis) and axis not in ("rng", "np"))
            for axis in axes
        )
        if kind in NUMBERS and all(are_names):
            return replace(argument, kind=kind, axes=tuple(axes))
        return replace(argument, unsaid=f"its axes [{shape[2]}] are no plain names")
    words = QUOTED.findall(meaning if meaning[:1] in ('"', "'") else plain if plain.startswith("Literal[") else "")
    if words:
        return replace(argument, kind="str", words=tuple(dict.fromkeys(words)))
    if plain in ANNOTATIONS:
        kind, known = ANNOTATIONS[plain]
        return replace(argument, kind=kind, axes=known)
    if plain.partition("[")[0].rpartition(".")[2] == "Callable":
        listed = re.search(r"Callable\[\[([^\[\]]*)\]", plain)
        return replace(argument, kind="function", takes=listed[1].count(",") + 1 if listed else 1)
    if argument.default and (kind := type(argument.default[0]).__name__) in (*NUMBERS, "str"):
        return replace(argument, kind=kind)
    if argument.default:  # None, or a list or dictionary
        unsaid = f"nothing says what it may be besides {argument.default[0]!r}"
    elif annotation and not ARRAY.search(annotation):
        unsaid = f"no draw is known of {annotation}; {GUIDE.format(OBJECTS)}, says how"
    else:
        what = "its axes" if annotation else "what it is"
        unsaid = f"nothing says {what}: write `{node.arg}   float[row column]` into the docstring"
    return replace(argument, unsaid=unsaid)


# Trying its functions


def try_function(solution: Solution, function: SourceFunction, sandbox: Sandbox) -> SourceFunction:
    """Call a function at public and hidden sizes, and note what comes back; else the problem that it has."""
    unknown = [argument for argument in function.arguments if not argument.kind and not argument.default]
    if unknown:
        return replace(function, problem="; ".join(f"{argument.name}: {argument.unsaid}" for argument in unknown))
    namespace: dict[str, Any] = {"np": np, "Formula": Formula, "texts": texts}
    exec(written("draws.py", functions=[function]), namespace)
    draw = namespace[function.draw_functions[USUAL]]
    calls = [
        draw(np.random.default_rng(seed), **{axis: sizes[place] for axis, sizes in function.sizes.items()})
        for place in (1, 2)  # the public and the hidden size
        for seed in range(3)  # several, as shapes and keys may depend on the numbers
    ]
    outcomes = _call(solution, function, sandbox, calls)
    for outcome in outcomes:
        if outcome.observation is None:
            raised = outcome.raised
            why = f"{raised.types[0]}: {raised.message}" if raised else outcome.exceeded or outcome.detail
            if outcome.loading:
                raise UsageError(f"{solution.path} cannot be loaded: {why or outcome.status}.")
            line = f" (line {raised.line})" if raised and raised.line else ""
            return replace(function, problem=" ".join(f"{why or outcome.status}".split())[:120] + line)
    facts = outcomes[0].observation.facts if outcomes[0].observation else {}
    kind, result = str(facts.get("kind")), facts.get("result")
    if kind == "nothing" and (changed := _changed(function, calls, outcomes)):
        return replace(function, returns=changed, kind=kind)
    names = _numeric_parts(function, kind, result, facts.get("parts"))
    parts = _call(solution, function, sandbox, calls, names) if names else []
    arrays = {name: _arrays(parts, name) for name in names}
    if not names or any(len(several) < len(calls) for several in arrays.values()):
        if kind == "nothing" or (result == kind and kind != "text"):
            section = GUIDE.format(OUTPUT if kind == "nothing" else OBJECTS)
            return replace(function, problem=f"it returns {kind}; {section}, says how that is graded")
        return function  # compared as it is, such as a dictionary of other keys for other arguments
    if not all(np.isfinite(array).all() for several in arrays.values() for array in several):
        section = GUIDE.format(GRADABLE)
        return replace(function, problem=f"it returns nan, which no answer equals, or what is infinite; see {section}")
    shapes = {name: _shape(function, several) for name, several in arrays.items()}
    is_declared = solution.values != "torch" or kind in ("a list", "a dictionary")
    slopes = {}
    floats = [name for name, shape in function.shapes.items() if shape.startswith("float[")]
    for name in names if solution.values == "torch" else ():
        gradients = _call(solution, function, sandbox, calls[:1], names, floats, [name])
        found = {leaf: _arrays(gradients, f"gradient {leaf}") for leaf in floats}
        slopes[name] = [leaf for leaf, several in found.items() if any(array.any() for array in several)]
    return replace(
        function,
        returns=shapes[names[0]] if names == [function.name] else shapes,
        kind=kind if is_declared else "",
        slopes=slopes,
    )


def _call(
    solution: Solution,
    function: SourceFunction,
    sandbox: Sandbox,
    calls: Sequence[Mapping[str, Any]],
    names: Sequence[str] = (),
    leaves: Sequence[str] = (),
    gradients_of: Sequence[str] = (),
) -> list[Outcome]:
    """Call the solution's function with each of these arguments; without `names` what comes back is told as it is."""
    requests = []
    for arguments in calls:
        draft = Calls(ModuleType("oracle"), None, solution.values).case(
            "trial",
            "a trial",
            function.name,
            arguments,
            dict.fromkeys(names, "") if names else None,
            by_name=[argument.name for argument in function.arguments if argument.by_name],
            leaves=leaves,
            gradients_of=gradients_of,
        )
        blob = safetensors.numpy.save({**draft.inputs})
        requests.append(Request("trial", function.name, "call", draft.params, blob, 5.0))
    program = Program("solution", solution.text, {}, written("probes.py"), solution.values == "torch")
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


def _numeric_parts(function: SourceFunction, kind: str, result: Any, parts: Any) -> list[str]:
    """Name the parts that are numbers; none where what comes back is compared as it is."""

    def is_numeric(part: Any) -> bool:
        return is_numbers(part) or type(part) in (int, float)

    if kind.startswith("a tuple of "):
        count = int(kind.rpartition(" ")[2])
        of_numbers = isinstance(parts, list) or (isinstance(result, list) and all(map(is_numeric, result)))
        return [f"part{place + 1}" for place in range(count)] if of_numbers else []
    if kind in ("a tensor", "a NumPy array", "a number") or (isinstance(result, list) and is_numbers(result)):
        return [function.name]
    if isinstance(parts, list):
        return [str(part) for part in parts] if len(parts) > 1 or kind == "a dictionary" else []
    return [*result] if isinstance(result, dict) and len(result) > 1 and all(map(is_numeric, result.values())) else []


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


ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=jinja2.StrictUndefined,
)  # nothing is escaped: these are no pages
ENVIRONMENT.filters |= {"python": as_python, "entries": _entries, "toml": as_python}


def written(file: str, **context: Any) -> str:
    """Return the text of a file of an assignment, from its template."""
    return ENVIRONMENT.get_template(f"{file}.j2").render(context)


def functions_text(functions: Sequence[SourceFunction]) -> str:
    """Return the text of functions.py."""
    return written("functions.py", functions=functions, draws=written("draws.py", functions=functions))


def _items_text(name: str, title: str, solution: Solution, functions: Sequence[SourceFunction]) -> str:
    """Return the text of items.toml: 100 points in all; the items of functions that are not graded are in comments."""
    graded = [function for function in functions if not function.problem] or functions  # a file needs an item
    items: list[dict[str, Any]] = []
    for function in [*graded, *(function for function in functions if function not in graded)]:
        for kind, laws in function.laws.items():
            weight, what, hint = ITEMS[kind]
            draws = [*function.draw_functions] if kind == "values" and function.further_draws else []
            share = {"points": weight if function in graded else 0, "draws": draws, "laws": laws}
            items.append(
                {"function": function, "kind": kind, "title": what.format(function.name), "hint": hint} | share
            )
    total = sum(item["points"] for item in items)
    exact = [100 * item["points"] / total for item in items]
    shares = [int(share) for share in exact]
    for place in sorted(range(len(items)), key=lambda k: shares[k] - exact[k])[: 100 - sum(shares)]:
        shares[place] += 1  # the largest remainders are rounded up
    imported = [name for name in PACKAGES if re.search(rf"^\s*(?:import|from) {name}\b", solution.text, re.MULTILINE)]
    numbered = [item | {"points": share} for item, share in zip(items, shares, strict=True)]
    return written("items.toml", name=name, title=title, packages=imported, items=numbered)


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
    fixtures, solutions = root / "fixtures" / name, root / "solution" / name
    fixtures.mkdir(parents=True)
    solutions.mkdir(parents=True)
    (solutions / f"{name}.py").write_text(solution.text, encoding="utf-8")
    (fixtures / "probes.py").write_text(written("probes.py"), encoding="utf-8")

    def write(functions: Sequence[SourceFunction]) -> bool:
        """Write all files that depend on the trial; return whether any function is graded."""
        context = {"name": name, "title": title, "functions": functions}
        for path, text in (
            (fixtures / "functions.py", functions_text(functions)),
            (fixtures / "items.toml", _items_text(name, title, solution, functions)),
            (fixtures / "oracle.py", written("oracle.py", **context)),
            (fixtures / "mistakes.py", written("mistakes.py", **context)),
            (solutions / "README.md", written("README.md", **context)),
        ):
            path.write_text(text, encoding="utf-8")
        return any(not function.problem for function in functions)

    with Sandbox() as sandbox:
        functions = [try_function(solution, function, sandbox) for function in solution.functions]
        before: list[SourceFunction] = []
        is_graded = write(functions)
        while is_graded and functions != before:  # without a law, other cases have other sizes
            before, functions = functions, _examine(load_assignment(fixtures), functions, sandbox)
            is_graded = write(functions)
        assignment = load_assignment(fixtures)
        cases = regenerate(assignment, fixtures, sandbox=sandbox) if is_graded else 0
    files = (path.read_text(encoding="utf-8") for path in fixtures.iterdir() if path.is_file())
    todos = sum(text.count("# TODO: ") for text in files)
    not_graded = {function.name: function.problem for function in functions if function.problem}
    return NewAssignment(len(assignment.items), cases, todos, not_graded)


def _examine(assignment: Assignment, functions: Sequence[SourceFunction], sandbox: Sandbox) -> list[SourceFunction]:
    """Hold the solution against each derived case; leave out further draws and laws that it does not keep."""
    exam, drawing = import_generator(assignment)[FUNCTIONS].EXAM, Drawing(assignment, sandbox)
    cases_of = exam.planned(assignment)
    off = {function.name: {**function.off} for function in functions}
    refused = {function.name: {**function.refused} for function in functions}

    def draft_case(item: Item, planned: Planned) -> tuple[Draft, Case]:
        draft = exam.draft(planned, OPEN_SECRET, drawing)
        check_draft(draft)
        return draft, case_of(item, draft, planned.visibility)

    def check(*pairs: tuple[Draft, Case]) -> None:
        check_solution(assignment, [case for _, case in pairs], {draft.case: draft for draft, _ in pairs}, sandbox)

    def blame(item: Item, planned: Planned, error: Exception) -> None:
        """Note the further draw of the case, or the law without which it passes; else the law that adds the case."""
        why = " ".join(str(error).removeprefix(f"{planned.case}: ").split())[:120]
        if planned.call.draw not in ("", USUAL):
            refused[item.function].setdefault(planned.call.draw, why)
            return
        for law in (LAWS[name] for name in item.laws if LAWS[name].aspects):
            with contextlib.suppress(Exception):
                check(draft_case(item, replace(planned, aspects=planned.aspects - law.aspects)))
                off[item.function].setdefault(law.name, why)
                return
        off[item.function].setdefault(planned.law.name, why)

    for item in assignment.items:
        made = []
        for planned in cases_of[item.id]:
            try:
                made.append((planned, draft_case(item, planned)))
            except Exception as error:  # NumPy's own, too, of arguments that a law changed
                blame(item, planned, error)
        try:
            check(*(pair for _, pair in made))
        except FixtureError:
            for planned, pair in made:
                try:
                    check(pair)
                except FixtureError as error:
                    blame(item, planned, error)
    return [
        replace(
            function,
            off={law: why for law, why in off[function.name].items() if law != "values"},
            refused=refused[function.name],
            problem=function.problem or off[function.name].get("values", ""),
        )
        for function in functions
    ]
