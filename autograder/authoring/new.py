"""Make an assignment from a solution file, as `autograder new NAME --from solution.py` does.

    x         float[batch dim]     a row of a docstring
    mode      "mean" or "max"

Signatures, annotations and such rows say what the arguments are; nothing is read from sentences or from bodies. Each
function is tried on one draw of arguments. What is unsaid, or fails, waits as a TODO in functions.py and is not graded.
"""

from __future__ import annotations

import ast
import contextlib
import keyword
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from autograder.authoring.calls import Formula, Values, is_numbers
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
from autograder.authoring.laws.exam import Planned
from autograder.authoring.laws.laws import LAWS
from autograder.checking.handout import write_handout
from autograder.grading.assignment import PACKAGES, Assignment, Item, load_assignment
from autograder.grading.fixtures import Case
from autograder.sandbox.calls import Array, Outcome, Program, Request
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError, UsageError

GUIDE = 'fixtures/README.md, "What can be graded"'
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
    "str": '"".join(rng.choice([*"abcde "], rng.integers(4, 12)))',
    "texts": 'rng.choice(["a", "b", "ab", "ba"], rng.integers(3, 7)).tolist()',
    "table": '{{word: int(rng.integers(1, 10)) for word in ("a", "b", "ab", "ba")}}',
}
FORMULAS = ("x * x - 2", "x * x - 0.5 * y", "x * x - 0.5 * y + z")  # of one, two, three and more arguments
WIDTH = 110
ITEMS = {  # end of an id → points in proportion, title, hint
    "values": (5, "what {} returns", "Work the public case out by hand, value by value: where does yours depart?"),
    "gradient": (3, "the gradient of {}", "Does every step of the computation stay in the graph?"),
    "form": (1, "the form of {}", "What comes back, and what do the caller's arguments hold afterwards?"),
}  # fmt: skip
PROBES = """\
\"\"\"How a worker calls the functions: as the kit's own probes do, once or several times.\"\"\"

from autograder.sandbox.worker.calling import again, call

__all__ = ["again", "call"]
"""


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
    def shape(self) -> str:
        """Its shape as a `Function` declares it."""
        if self.axes is not None:
            return f"{self.kind}[{' '.join(self.axes)}]"
        if self.words:
            return "word"
        return self.kind if self.kind in (*NUMBERS, "function") else "other"

    @property
    def parameter(self) -> str:
        """The argument as a signature has it."""
        return f"{self.name}={self.default[0]!r}" if self.default else self.name

    @property
    def drawn(self) -> str:
        """The expression that draws it."""
        default = self.default[0] if self.default else None
        if self.axes is not None:
            size = self.axes[0] if len(self.axes) == 1 else f"({', '.join(self.axes)})"
            return DRAWS[f"{self.kind}[]"].format(size=size)
        if self.words:
            return _quoted(self.words[0])
        if self.kind == "function":
            return f'Formula("{" ".join("xyzuvw"[: self.takes])}", "{FORMULAS[min(self.takes, 3) - 1]}")'
        if self.kind == "float" and default:
            low, high = sorted((default / 2, default * 2))
            return f"round(rng.uniform({low:g}, {high:g}), 3)" if high > 0.1 else f"rng.uniform({low:g}, {high:g})"
        if self.kind == "int" and default is not None:
            return f"int(rng.integers({default}, {default + 3}))"
        if not self.kind or (self.kind == "str" and self.default):
            return _quoted(default)
        return DRAWS[self.kind].format()


@dataclass(frozen=True)
class SourceFunction:
    """A function of the file, and what a trial showed of it.

    raises    lines that raise an exception
    returns   shape of what comes back, {name: shape} of several, None where it is compared as it is
    kind      what comes back, as a phrase
    slopes    part of what comes back → arguments that it has a gradient with respect to
    off       law → why the solution does not keep it
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
    problem: str = ""

    @property
    def slug(self) -> str:
        """Its name as ids begin."""
        return self.name.lower().replace("_", "-").strip("-")

    @property
    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """The least, public and hidden size of each axis."""
        axes = dict.fromkeys(axis for argument in self.arguments for axis in argument.axes or () if not axis.isdigit())
        # Hidden sizes grow faster than public ones, so that no axis is always one longer than another.
        return {axis: (1, 4 + place, 7 + 2 * place) for place, axis in enumerate(axes)}

    @property
    def leaves(self) -> list[str]:
        """Arguments that the result has a gradient with respect to."""
        return [one.name for one in self.arguments if any(one.name in reached for reached in self.slopes.values())]

    @property
    def word_draws(self) -> dict[str, tuple[str, str]]:
        """Name of each further draw → the argument and the word that it has there."""
        return {
            f"{argument.name}_{re.sub(r'[^a-z0-9]', '_', word.lower())}": (argument.name, word)
            for argument in self.arguments
            for word in argument.words[1:]
        }


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
    if path.suffix == ".ipynb":
        raise UsageError(f"{path} is a notebook: give a Python file with its functions, solution.py.")
    try:
        return parse_solution(path.read_text(encoding="utf-8"), path)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error.reason} at byte {error.start}. Save it as UTF-8.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def parse_solution(text: str, path: Path) -> Solution:
    """Read that text; `path` is for sentences alone."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise UsageError(f"{path}:{line}: not Python: {getattr(error, 'msg', error)}.") from error
    nodes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    others = tuple(
        f"{node.name} ({'a class' if isinstance(node, ast.ClassDef) else 'async'})"
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.AsyncFunctionDef)
    )
    if not nodes:
        why = "there is nothing to grade" + (f" in {', '.join(others)}: see {GUIDE}" if others else "")
        raise UsageError(f"{path} defines no function whose name does not begin with _: {why}.")
    for node in nodes:
        if not node.name.isascii():
            right = "its name is one of ids and files, of the letters a to z"
            raise UsageError(f"{path}:{node.lineno}: {node.name} cannot be graded: {right}, digits and _.")
        if node.args.vararg and not (node.args.args or node.args.posonlyargs or node.args.kwonlyargs):
            why = f"{node.name} takes any number of arguments, and a declaration names each"
            raise UsageError(f"{path}:{node.lineno}: {why}. Give it a list, or see {GUIDE}.")
    imported = {alias.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names}
    imported |= {(n.module or "").split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    values: Values = "torch" if "torch" in imported else "numpy" if imported & {"numpy", "scipy"} else "python"
    functions = tuple(_function(node, values) for node in nodes)
    return Solution(path, _mark_bodies(text, nodes, path), values, functions, others)


def _mark_bodies(text: str, nodes: list[ast.FunctionDef], path: Path) -> str:
    """Put both markers around each body that has none, below its docstring."""
    lines = text.splitlines()
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):
        if any(line.strip() == BEGIN for line in lines[node.lineno - 1 : (node.end_lineno or 0) + 1]):
            continue
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            raise UsageError(f"{path}:{node.lineno}: {node.name} has no body to mark.")
        margin = lines[body[0].lineno - 1][: body[0].col_offset]
        lines.insert(node.end_lineno or 0, f"{margin}{END}")
        lines.insert(body[0].lineno - 1, f"{margin}{BEGIN}")
    return "\n".join(lines) + "\n"


def _function(node: ast.FunctionDef, values: Values) -> SourceFunction:
    docstring = ast.get_docstring(node) or ""
    listed = [*node.args.posonlyargs, *node.args.args]
    defaults = [*[None] * (len(listed) - len(node.args.defaults)), *node.args.defaults, *node.args.kw_defaults]
    arguments = tuple(
        replace(_argument(arg, default, docstring), by_name=arg in node.args.kwonlyargs)
        for arg, default in zip([*listed, *node.args.kwonlyargs], defaults, strict=True)
    )
    raises = tuple(part.lineno for part in ast.walk(node) if isinstance(part, ast.Raise))
    return SourceFunction(node.name, arguments, docstring.partition("\n")[0].strip(), raises, values)


def _argument(node: ast.arg, default: ast.expr | None, docstring: str) -> Argument:
    """Read what the row of the docstring says of an argument, else its annotation, else its default."""
    row = re.search(rf"^\s*[`*]*{re.escape(node.arg)}[`*]*(?::\s*|\s{{2,}}|\t)(.*)", docstring, re.MULTILINE)
    meaning = row[1].lstrip("`*") if row else ""
    annotation = ast.unparse(node.annotation).strip("'\"") if node.annotation else ""  # "Tree" may be quoted
    plain = re.sub(r"^Optional\[(.*)\]$|\s*\|\s*None$", r"\1", annotation).replace("Sequence[", "list[")
    argument, unsaid = Argument(node.arg), ""
    if default is not None:
        try:
            argument = replace(argument, default=(ast.literal_eval(default),))
        except ValueError:
            unsaid = f"its default {ast.unparse(default)} is no literal: `defaults` does not name it"
    if shape := re.match(ROW, meaning):
        kind, axes = shape[1].replace("uint", "int"), re.split(r"[\s,]+", (shape[2] or "").strip(" ,"))
        if axes == [""]:
            return replace(argument, kind=kind, unsaid=unsaid)
        if kind in NUMBERS and all(map(_is_axis, axes)):
            return replace(argument, kind=kind, axes=tuple(axes), unsaid=unsaid)
        return replace(argument, unsaid=f"its axes [{shape[2]}] are no plain names")
    words = QUOTED.findall(meaning if meaning[:1] in ('"', "'") else plain if plain.startswith("Literal[") else "")
    if words:
        return replace(argument, kind="str", words=tuple(dict.fromkeys(words)), unsaid=unsaid)
    if plain in ANNOTATIONS:
        kind, known = ANNOTATIONS[plain]
        return replace(argument, kind=kind, axes=known, unsaid=unsaid)
    if plain.partition("[")[0].rpartition(".")[2] == "Callable":
        listed = re.search(r"Callable\[\[([^\[\]]*)\]", plain)
        return replace(argument, kind="function", takes=listed[1].count(",") + 1 if listed else 1, unsaid=unsaid)
    kinds = {bool: "bool", int: "int", float: "float", str: "str"}
    if argument.default and type(argument.default[0]) in kinds:
        return replace(argument, kind=kinds[type(argument.default[0])])
    if argument.default:  # None, or a list or dictionary
        unsaid = f"nothing says what it may be besides {argument.default[0]!r}"
    elif annotation and not ARRAY.search(annotation):
        unsaid = f"no draw is known of {annotation}"
    else:
        what = "its axes" if annotation else "what it is"
        unsaid = f"nothing says {what}: write `{node.arg}   float[row column]` into the docstring"
    return replace(argument, unsaid=unsaid)


def _is_axis(name: str) -> bool:
    """Return whether a draw can have a parameter of that name (or the axis has a fixed length)."""
    return name.isdigit() or (name.isidentifier() and not keyword.iskeyword(name) and name not in ("rng", "np"))


# Trying its functions


def try_function(solution: Solution, function: SourceFunction, sandbox: Sandbox) -> SourceFunction:
    """Call a function at public and hidden sizes, and note what comes back; else the problem that it has."""
    unknown = [argument for argument in function.arguments if not argument.kind and not argument.default]
    if unknown:
        return replace(function, problem="; ".join(f"{argument.name}: {argument.unsaid}" for argument in unknown))
    namespace: dict[str, Any] = {"np": np, "Formula": Formula}
    exec(_draws_text(function), namespace)
    draw = namespace[f"{function.name}_arguments"]
    calls = [
        draw(np.random.default_rng(seed), **{axis: sizes[place] for axis, sizes in function.sizes.items()})
        for place in (1, 2)  # the public and the hidden size
        for seed in range(3)  # several, as shapes and keys may depend on the numbers
    ]
    outcomes = _call(solution, function, sandbox, calls, plain=True)
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
    names = _numeric_parts(function, kind, result, facts.get("parts"))
    parts = _call(solution, function, sandbox, calls, returns=names) if names else []
    arrays = {name: _arrays(parts, name) for name in names}
    if not names or any(len(several) < len(calls) for several in arrays.values()):
        if kind == "nothing" or (result == kind and kind != "text"):
            return replace(function, problem=f"it returns {kind}; {GUIDE} says what is compared")
        return function  # compared as it is, such as a dictionary of other keys for other arguments
    if not all(np.isfinite(array).all() for several in arrays.values() for array in several):
        return replace(function, problem="it returns nan, which no answer equals, or what is infinite")
    shapes = {name: _shape(function, several) for name, several in arrays.items()}
    is_declared = solution.values != "torch" or kind in ("a list", "a dictionary")
    slopes = {}
    floats = [argument.name for argument in function.arguments if argument.shape.startswith("float[")]
    for name in names if solution.values == "torch" else ():
        gradients = _call(
            solution, function, sandbox, calls[:1], returns=names, leaves=floats, gradients_of=[name]
        )  # fmt: skip
        found = {leaf: _arrays(gradients, f"gradient {leaf}") for leaf in floats}
        slopes[name] = [leaf for leaf, several in found.items() if any(array.any() for array in several)]
    return replace(
        function,
        returns=shapes[names[0]] if names == [function.name] else shapes,
        kind=kind if is_declared else "",
        slopes=slopes,
    )


def _call(
    solution: Solution, function: SourceFunction, sandbox: Sandbox, calls: Sequence[Mapping[str, Any]], **more: Any
) -> list[Outcome]:
    requests = []
    for arguments in calls:
        inputs: dict[str, Array] = {}
        for name, value in arguments.items():
            if isinstance(value, np.ndarray) or is_numbers(value):
                array = np.asarray(value)
                inputs[name] = array if array.dtype.kind != "i" else array.astype("int64")
        formulas = {name: value.stated for name, value in arguments.items() if isinstance(value, Formula)}
        params = {
            "function": function.name,
            "arguments": [argument.name for argument in function.arguments],
            "by_name": [argument.name for argument in function.arguments if argument.by_name],
            "values": solution.values,
            "returns": [],
            "given": {name: value for name, value in arguments.items() if name not in inputs and name not in formulas},
            "formulas": formulas,
            **more,
        }
        requests.append(Request("trial", function.name, "call", params, safetensors.numpy.save(inputs), 5.0))
    program = Program("solution", solution.text, {}, PROBES, solution.values == "torch")
    return sandbox.run(program, requests, load_timeout=20.0)


def _arrays(outcomes: Sequence[Outcome], name: str) -> list[Array]:
    """Return the numbers of that name in each outcome that has them."""
    returned = [outcome.observation.returned.get(name) for outcome in outcomes if outcome.observation]
    return [part.array for part in returned if part is not None and part.array is not None]


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


# Writing functions.py


def functions_text(functions: Sequence[SourceFunction]) -> str:
    """Write functions.py."""
    draws = "\n\n".join(map(_draws_text, functions))
    declarations = "".join(map(_declaration_text, functions))
    formula = "from autograder.authoring.calls import Formula\n" if "Formula(" in draws else ""
    error = "Error, " if "Error(" in declarations else ""
    return f"""\
\"\"\"The graded functions: how their arguments are drawn, and what they are. Their cases follow from laws.

A draw has the random numbers `rng` and the size of each axis. `autograder selfcheck` lists each line that says TODO;
fixtures/README.md and `autograder/authoring/laws/declaration.py` say what else a Function may declare.
\"\"\"

import numpy as np

{formula}from autograder.authoring.laws import {error}Exam, Function

from . import oracle


{draws}

EXAM = Exam.of(
    oracle,
{declarations})
"""


def _draws_text(function: SourceFunction) -> str:
    """Write the functions that draw the arguments: usual ones, and one more for each further word."""
    parameters = ", ".join(["rng", *function.sizes])
    notes = [f"{argument.name}: {argument.unsaid}." for argument in function.arguments if argument.unsaid]
    notes.append("are these usual arguments? Add draws of what is special: equal, zero, large, few.")
    if function.problem:
        what = f"draw and declare what {function.name} takes, and uncomment its items"
        notes = [f"{function.name} is not graded ({function.problem}): {what}."]
    rows = [f'        "{argument.name}": {argument.drawn},' for argument in function.arguments]
    body = [*(f"    # TODO: {note}" for note in notes), "    return {", *rows, "    }"]
    texts = ["\n".join([f"def {function.name}_arguments({parameters}):", *body, ""])]
    for name, (argument, word) in function.word_draws.items():
        usual = f'{function.name}_arguments({parameters}) | {{"{argument}": {_quoted(word)}}}'
        texts.append(f"def {function.name}_{name}({parameters}):\n    return {usual}\n")
    return "\n\n".join(texts)


def _declaration_text(function: SourceFunction) -> str:
    """Write the `Function`."""
    arguments, sizes = function.arguments, function.sizes
    draws = {"usual": f"{function.name}_arguments", **{name: f"{function.name}_{name}" for name in function.word_draws}}
    by_name = [argument.name for argument in arguments if argument.by_name]
    sloped = [name for name, leaves in function.slopes.items() if leaves]
    more = {
        "kind": function.kind,
        "leaves": function.leaves,
        "defaults": {argument.name: argument.default[0] for argument in arguments if argument.default},
        "options": ({"by_name": by_name} if by_name else {}) | ({"gradients_of": sloped} if len(sloped) > 1 else {}),
    }
    lines = [
        f'"{function.name}",',
        *_row("", [f'"{argument.name}": "{argument.shape}"' for argument in arguments]),
        f"{_quoted(function.returns)},",
        f"sizes={_quoted(sizes)}," + ("  # least, public and hidden size" if sizes else ""),
        *_row("draws=", [f'"{name}": {drawing}' for name, drawing in draws.items()]),
        f'values="{function.values}",',
        *(f"{name}={_quoted(value)}," for name, value in more.items() if value),
    ]
    if function.off:
        lines.append("off={")
        for law, why in function.off.items():
            lines.append(f"    {_quoted(law)}: {_quoted(why)},  # TODO: is it meant not to keep it?")
        lines.append("},")
    if function.raises:
        at = ("line " if len(function.raises) == 1 else "lines ") + ", ".join(map(str, function.raises))
        name = arguments[0].name if arguments else "x"
        lines.append(f"# TODO: which calls must raise ValueError? Your file raises at {at}. For example")
        lines.append(f'# errors={{"{name}": Error({{"{name}": 0}}, ["{name}"])}}, and an item with laws = ["errors"]')
    return "    Function(\n" + "".join(f"        {line}\n" for line in lines) + "    ),\n"


def _row(head: str, entries: Sequence[str]) -> list[str]:
    """Write a dictionary, in one line where that is short."""
    line = f"{head}{{{', '.join(entries)}}},"
    return [line] if len(line) <= WIDTH else [f"{head}{{", *(f"    {entry}," for entry in entries), "},"]


def _quoted(value: Any) -> str:
    """Write a value as Python, its texts in double quotes."""
    if isinstance(value, str):
        return repr(value) if '"' in value else '"' + repr(value)[1:-1].replace("\\'", "'") + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key)}: {_quoted(entry)}" for key, entry in value.items()) + "}"
    return "[" + ", ".join(map(_quoted, value)) + "]" if isinstance(value, list) else repr(value)


# Writing the other files


def _items_text(name: str, title: str, solution: Solution, functions: Sequence[SourceFunction]) -> str:
    """Write items.toml, the items of functions that are not graded in comments."""
    graded = [function for function in functions if not function.problem] or functions  # a file needs an item
    entries = [(function, *entry) for function in graded for entry in _laws(function)]
    points = _shares([ITEMS[kind][0] for _, kind, _ in entries], 100)
    imported = [name for name in PACKAGES if re.search(rf"^\s*(?:import|from) {name}\b", solution.text, re.MULTILINE)]
    packages = "" if solution.values == "torch" else f"packages = {_quoted(imported)}\n"
    text = f'assignment = "{name}"\ntitle = {_toml(title)}\nmodule = "{name}"\n{packages}points = 100\n'
    for (function, kind, laws), share in zip(entries, points, strict=True):
        text += _item_text(function, kind, laws, share)
    for function in functions:
        for kind, laws in _laws(function) if function not in graded else ():
            lines = _item_text(function, kind, laws, 0).replace("# TODO: ", "").splitlines()
            text += "".join(f"# {line}\n" if line else "\n" for line in lines)
    return text


def _laws(function: SourceFunction) -> list[tuple[str, list[str]]]:
    """Return the items that a function gets, and the laws of each."""
    has_arrays = any(argument.axes is not None for argument in function.arguments) and function.values != "python"
    values = ["values", *(["sizes"] if function.sizes else []), *(["layout"] if has_arrays else [])]
    if function.returns is None:  # what is compared as it is, is compared in every item: one of them is enough
        return [("values", [*values, "unmodified", "signature"])]
    if all(argument.kind != "function" for argument in function.arguments):
        values.append("state")
    items = [("values", values), ("gradient", ["gradient"]), ("form", ["dtype", "kind", "unmodified", "signature"])]
    return [
        (kind, laws)
        for kind, laws in items
        if {*laws} - function.off.keys() and (kind != "gradient" or function.leaves)
    ]


def _item_text(function: SourceFunction, kind: str, laws: Sequence[str], points: int) -> str:
    _, title, hint = ITEMS[kind]
    draws = ["usual", *function.word_draws]
    listed = f"draws = {_quoted(draws)}\n" if kind == "values" and len(draws) > 1 else ""
    todo = "# TODO: a hint of its own: what should they ask themselves whose answer is wrong?\n"
    return f"""
[[item]]
id = "{function.slug}-{kind}"
function = "{function.name}"
title = {_toml(title.format(function.name))}
points = {points}
{todo if kind == "values" else ""}hint = {_toml(hint)}
laws = {_quoted([*laws])}
{listed}"""


def _shares(weights: Sequence[int], total: int) -> list[int]:
    """Return whole numbers in these proportions, the largest remainders rounded up."""
    exact = [total * weight / sum(weights) for weight in weights]
    shares = [int(share) for share in exact]
    for place in sorted(range(len(exact)), key=lambda k: shares[k] - exact[k])[: total - sum(shares)]:
        shares[place] += 1
    return shares


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _oracle_text(functions: Sequence[SourceFunction]) -> str:
    """Write oracle.py, in which nothing is independent yet."""
    names = "".join(f'    "{function.name}",\n' for function in functions)
    stubs = ""
    for function in functions:
        parameters = ", ".join(argument.parameter for argument in function.arguments)
        stubs += f"# def {function.name}({parameters}): ...\n"
        if function.leaves:
            sloped = [name for name, leaves in function.slopes.items() if leaves]
            of_sum = f"of the sum of {' and '.join(sloped)}, " if len(sloped) > 1 else ""
            respect = f"{of_sum}with respect to {', '.join(function.leaves)}"
            stubs += f"# def {function.name}_gradient({parameters}): ...  # {respect}\n"
    return f"""\
\"\"\"Expected values, worked out another way than the solution's: loops, closed forms, numbers from a book.

NOTHING HERE IS INDEPENDENT YET. The functions below are graded by what the solution says of itself, so a mistake of
the solution's counts as right, and `release` refuses to make a handout for students. For each one: write it here, with
the same arguments (arrays come in float64), and take its name off the list.
\"\"\"

NOT_INDEPENDENT = {{
{names}}}

{stubs}"""


def _mistakes_text(name: str, functions: Sequence[SourceFunction]) -> str:
    constants = "".join(
        f'{function.name.upper()} = Correct.from_solution(SOLUTION, "{function.name}")\n' for function in functions
    )
    first = functions[0].name.upper()
    return f"""\
\"\"\"Wrong answers that are known by name. A hint is a question or a pointer, never the corrected line.\"\"\"

from pathlib import Path

from autograder.authoring.catalogue import Correct, Mistake

SOLUTION = (Path(__file__).parents[2] / "solution/{name}/{name}.py").read_text(encoding="utf-8")
{constants}
MISTAKES: tuple[Mistake, ...] = (
    # TODO: what do students get wrong? {first}.but("its-name", "A question?", ("right text", "wrong text")),
)
"""


def _readme_text(name: str, title: str, functions: Sequence[SourceFunction]) -> str:
    names = ", ".join(f"`{function.name}`" for function in functions)
    sections = ""
    for function in functions:
        places = [argument.parameter for argument in function.arguments if not argument.by_name]
        by_name = [argument.parameter for argument in function.arguments if argument.by_name]
        call = f"{function.name}({', '.join([*places, *(['*'] if by_name else []), *by_name])})"
        summary = function.summary or "Complete the function."
        sections += f"\n## `{function.name}`\n\n`{call}`: {summary[0].lower()}{summary[1:]}\n"
    return f"""\
# {title}

You complete {names} in `{name}.py`, or in the notebook `{name}.ipynb`, which is the same. The docstrings are
the specification.

## How to check your work

In this folder, after `pip install -r requirements.txt`:

```sh
python -m autograder check                 # every item with its points, and what is wrong
python -m autograder check --item NAME     # one item, by the name that the first command prints
```

## Points

<!-- points:begin -->
<!-- points:end -->
{sections}
## How to hand in

Hand in `{name}.py` or `{name}.ipynb`.
"""


# Making the assignment


def check_name(root: Path, name: str) -> None:
    """Raise UsageError where an assignment cannot be called that, or something is there already."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot be a module's name: small letters, digits and _, such as linear_algebra.")
    for folder in (root / "fixtures" / name, root / "solution" / name, root / "handout" / name):
        if folder.exists():
            raise UsageError(f"{folder} is there already: nothing was written. Give another name.")


def new_assignment(root: Path, name: str, title: str, solution: Solution) -> NewAssignment:
    """Write the assignment into the course `root`, whole or not at all; its handout is a draft."""
    check_name(root, name)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=".new-") as folder:
        made = run_in_subprocess(_make, Path(folder), name, title, solution)
        for part in ("solution", "fixtures"):
            (root / part).mkdir(exist_ok=True)
            (Path(folder) / part / name).replace(root / part / name)
    try:
        assignment = load_assignment(root / "fixtures" / name)
        write_source_notebook(assignment)
        if made.cases:
            write_handout(handout_files(assignment), assignment.handout)
    except BaseException:  # Ctrl-C too
        for part in ("solution", "fixtures", "handout"):
            shutil.rmtree(root / part / name, ignore_errors=True)
        raise
    return made


def _make(root: Path, name: str, title: str, solution: Solution) -> NewAssignment:
    """Try the functions, write the files, and take away laws that the solution does not keep until all cases pass."""
    sys.dont_write_bytecode = True  # files are written again within a second
    fixtures, solutions = root / "fixtures" / name, root / "solution" / name
    fixtures.mkdir(parents=True)
    solutions.mkdir(parents=True)
    (solutions / f"{name}.py").write_text(solution.text, encoding="utf-8")
    (fixtures / "probes.py").write_text(PROBES, encoding="utf-8")

    def write(functions: Sequence[SourceFunction]) -> bool:
        """Write all files that depend on the trial; return whether any function is graded."""
        for path, text in (
            (fixtures / "functions.py", functions_text(functions)),
            (fixtures / "items.toml", _items_text(name, title, solution, functions)),
            (fixtures / "oracle.py", _oracle_text(functions)),
            (fixtures / "mistakes.py", _mistakes_text(name, functions)),
            (solutions / "README.md", _readme_text(name, title, functions)),
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
    texts = (path.read_text(encoding="utf-8") for path in fixtures.iterdir() if path.is_file())
    todos = sum(text.count("# TODO: ") for text in texts)
    not_graded = {function.name: function.problem for function in functions if function.problem}
    return NewAssignment(len(assignment.items), cases, todos, not_graded)


def _examine(assignment: Assignment, functions: Sequence[SourceFunction], sandbox: Sandbox) -> list[SourceFunction]:
    """Hold the solution against each case that a law derives; switch off the laws that it does not keep."""
    exam, drawing = import_generator(assignment)[FUNCTIONS].EXAM, Drawing(assignment, sandbox)
    cases_of = exam.planned(assignment)
    off = {function.name: {**function.off} for function in functions}

    def draft_case(item: Item, planned: Planned) -> tuple[Draft, Case]:
        draft = exam.draft(planned, OPEN_SECRET, drawing)
        check_draft(draft)
        return draft, case_of(item, draft, planned.visibility)

    def check(*pairs: tuple[Draft, Case]) -> None:
        check_solution(assignment, [case for _, case in pairs], {draft.case: draft for draft, _ in pairs}, sandbox)

    def blame(item: Item, planned: Planned, error: Exception) -> None:
        """Note the law of the item without which the case passes; else the one that adds the case."""
        why = " ".join(str(error).removeprefix(f"{planned.case}: ").split())[:120]
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
            problem=function.problem or off[function.name].get("values", ""),
        )
        for function in functions
    ]


# The example of the guide: three functions in NumPy

EXAMPLE_NAME, EXAMPLE_TITLE = "three_functions", "Three functions"
EXAMPLE = '''\
"""Three functions of an action-value method, in NumPy alone."""

import numpy as np


def softmax(logits, temperature):
    """Return the probabilities that logits stand for.

    softmax(logits)[i] = exp(logits[i] / temperature) / sum over j of exp(logits[j] / temperature)

    logits        float[state action]
    temperature   float   above 0; ValueError, which mentions temperature, where it is not
    returns       float[state action]
    """
    if temperature <= 0:
        raise ValueError(f"temperature is {temperature}, but should be above 0")
    scaled = logits / temperature
    weights = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def discounted_return(rewards, discount):
    """Return what each trajectory earns, a reward t steps ahead counted discount**t times.

    rewards    float[trial step]
    discount   float   from 0 to 1
    returns    float[trial]
    """
    steps = np.arange(rewards.shape[1])
    return (rewards * discount**steps).sum(axis=1)


def incremental_mean(rewards, step_size):
    """Return the estimate after each reward: it begins at 0 and moves a share step_size towards the reward.

    rewards     float[step]
    step_size   float   from 0 to 1
    returns     float[step]
    """
    estimate = 0.0
    estimates = []
    for reward in rewards:
        estimate = estimate + step_size * (reward - estimate)
        estimates.append(estimate)
    return np.array(estimates)
'''
