"""Make an assignment from a solution file, as `autograder new NAME --from solution.py` does.

    x         float[batch dim]     a row of a docstring
    mode      "mean" or "max"

Signatures, annotations and such rows say what the arguments are; nothing is read from sentences or from bodies. Each
function is tried on draws of its arguments. What is unsaid, or fails, is a TODO in functions.py and not graded.
The files are written from `templates/`. Read `new_assignment` first, at the end.
"""

from __future__ import annotations

import ast
import itertools
import json
import keyword
import operator
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
    fate,
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
from autograder.grading.assignment import OTHER_PACKAGES, PACKAGES, Assignment, load_assignment
from autograder.sandbox.calls import Array, Program, Request
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.notebook import DEFINITIONS
from autograder.vocabulary.errors import FixtureError, UsageError

GUIDE = Path(__file__).parents[2] / "fixtures" / "README.md"
SECTIONS = {  # kind of an argument, of a result or of a failure → section of the guide; the last is for all else
    r"^rng\b|^generator\b|Generator\b|RandomState": "Seeded generators",
    r"^(ax|axes|fig|figure)\b|\bAxes|\bFigure|^nothing$": "Plots and printed text",
    r"^callback\b|Callable.*None\]": "Callbacks",
    r"^a function$": "Functions as results",
    r"^a failure$": "Make it yours",
    r"^another answer$": "Distributions",
    r"Callable": "Functions as arguments",
    r"DataFrame|\bSeries": "Data frames",
    r"\bModule\b": "Modules of torch",
    r"^a class$|\btype\b": "Classes",
    r"\[.*\b(?!(?:None|Any|Optional|Union|Literal|List|Tuple|Dict|Sequence|Mapping|Counter)\b)[A-Z]": "Other objects",
    r"\b[Dd]ict|Mapping|Counter|[Ll]ist\b|[Tt]uple\b": "Text, dictionaries, nested containers",
    r"nan": "What can be graded",
    r"ndarray|NDArray|ArrayLike|Tensor|Array|: $": "Your own, in ten minutes",
    r"": "Other objects",
}
KIND = re.compile(
    r"(?P<words>[\"'].*)|(?P<texts>list\[str\]|dict\[str, (?:int|float)\])"
    r"|u?(?P<kind>float|int|bool|str|function)\d*\b(?:\[(?P<axes>[^\]]*)\])?"
)
ANNOTATIONS = {  # annotation → the same as a row of a docstring says it
    r"Optional\[(.*)\]|(.*?)\s*(?:\||\bor\b)\s*None": r"\1\2",
    r"Sequence\[(.*)\]": r"list[\1]",
    r"list\[(float|int|bool)\]": r"\1[entry]",
    r"list\[list\[(float|int|bool)\]\]": r"\1[row column]",
    r"Literal\[(.*)\]": r"\1",
    r"(?:\w+\.)?Callable(?!.*None\]).*": "function",
}
TYPE = re.compile(r"[A-Za-z][\w.]*(?:\[.*\])?(?:\s*\|\s*None| or None)?")  # a row that says a type
NO_AXES = (*keyword.kwlist, "rng", "np")  # a draw has a parameter for each axis; a number is a fixed length
ARRAYS = {  # kind → expression that draws an array
    "float": "rng.uniform(-2, 2, {})",
    "int": "rng.integers(0, 4, {})",  # indices of any axis: no size is below 4
    "bool": "rng.random({}) < 0.5",
}
SINGLE: dict[str, dict[str, str]] = {  # kind → name of a draw → expression
    "float": {USUAL: "round(rng.uniform(0.1, 0.9), 3)"},
    "int": {USUAL: "int(rng.integers(1, 4))"},
    "bool": {USUAL: "bool(rng.integers(2))"},
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
SINGLE["dict[str, float]"] = SINGLE["dict[str, int]"]
FORMULAS = ("x * x - 2", "x * x - 0.5 * y", "x * x - 0.5 * y + z")  # of one, two, three and more arguments
WIDTH = 110
AGAIN = 32  # times that a trial is repeated, for what tosses a coin
ITEMS = {  # end of an id → points in proportion, title, hint
    "values": (5, "what {} returns", "Work the public case out by hand, value by value: where does yours depart?"),
    "gradient": (3, "the gradient of {}", "Does every step of the computation stay in the graph?"),
    "form": (1, "the form of {}", "What comes back, and what do the caller's arguments hold afterwards?"),
}  # fmt: skip
EXAMPLE_NAME, EXAMPLE_TITLE = "three_functions", "Three functions"  # of the guide, in NumPy
AWAITED = "async: an event loop needs sockets, which the sandbox refuses"
PARTS = ("solution", "fixtures", "handout")
REPLACED = "replaced"  # the folder of a course that `new --replace` moves an assignment into


class Argument(NamedTuple):
    """One argument.

    shape     as a `Function` declares it
    draws     name of a draw → the expression that draws it there; none where nothing says what it is
    default   its default as a literal, in a tuple; () where it has none, or another one
    unsaid    what nothing says of it, as a phrase; "" where all is said
    """

    name: str
    shape: str
    draws: Mapping[str, str]
    default: tuple[Any, ...]
    unsaid: str
    by_name: bool


@dataclass
class SourceFunction:
    """A function of the file, and what trials show of it.

    raises    exception → lines that raise it
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
    raises: Mapping[str, Sequence[int]]
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
    def by_name(self) -> list[str]:
        """The arguments that have no place in the signature."""
        return [argument.name for argument in self.arguments if argument.by_name]

    @property
    def sizes(self) -> dict[str, tuple[int, int, int]]:
        """The least, public and hidden size of each axis."""
        axes = " ".join(shape.partition("[")[2].removesuffix("]") for shape in self.shapes.values()).split()
        # Hidden sizes grow faster than public ones, so that no axis is always one longer than another.
        names = dict.fromkeys(axis for axis in axes if not axis.isdigit())
        return {axis: (1, 4 + place, 7 + 2 * place) for place, axis in enumerate(names)}

    @property
    def further_draws(self) -> dict[str, tuple[str, str]]:
        """Name of each further draw that the solution answers → the argument, and what draws it there."""
        draws: dict[str, tuple[str, str]] = {}
        for argument in self.arguments:
            further = {name: drawn for name, drawn in argument.draws.items() if name != USUAL}
            # What None means no other draw asks: the law `signature` compares with the same function's own answer.
            if argument.default == (None,) and argument.draws.get(USUAL) != "None":
                further[f"{argument.name}_none"] = "None"
            for name, drawn in further.items():
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
        items = {
            "values": [*values, *([] if "function" in self.shapes.values() else ["state"])],
            "gradient": ["gradient"] if self.leaves else [],
            "form": [*([] if self.values == "python" else ["dtype"]), "kind", "unmodified", "signature"],
        }
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


def guide(of: str) -> str:
    """Name the section of the guide about such an argument ("rng: Generator") or result ("a function")."""
    return f'the guide, "{next(title for kind, title in SECTIONS.items() if re.search(kind, of))}"'


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
    for kind, what, result in ((ast.ClassDef, "a class", "a class"), (ast.AsyncFunctionDef, AWAITED, "a coroutine")):
        if names := [f"{node.name} ({what})" for node in tree.body if isinstance(node, kind)]:
            others.append(f"{', '.join(names)}: {guide(result)}")
    if not nodes:
        why = "; ".join(["there is nothing that can be graded by itself", *others])
        raise UsageError(f"{path} defines no function whose name does not begin with _: {why}.")
    imported, constants = set[str](), dict[str, ast.expr]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            imported |= {name.partition(".")[0] for name in names}
        elif isinstance(node, ast.Assign) and node in tree.body:
            constants |= {target.id: node.value for target in node.targets if isinstance(target, ast.Name)}
    values = "torch" if "torch" in imported else "numpy" if imported & {"numpy", "scipy"} else "python"
    for node in nodes:
        place = f"{path}:{node.lineno}: {node.name}"
        if not node.name.isascii():
            told = "its name is one of ids and files, of the letters a to z, digits and _"
            raise UsageError(f"{place} cannot be graded: {told}.")
        if not node.body[ast.get_docstring(node) is not None :]:
            raise UsageError(f"{place} has no body to mark.")
    lines = text.splitlines()
    public = [node for node in tree.body if isinstance(node, DEFINITIONS) and not node.name.startswith("_")]
    parts = [part for node in public for part in (node.body if isinstance(node, ast.ClassDef) else [node])]
    marked = [part for part in parts if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in sorted(marked, key=lambda node: node.lineno, reverse=True):  # marks around unmarked bodies
        body, last = node.body[ast.get_docstring(node) is not None :], node.end_lineno or 0
        if body and not any(line.strip() == BEGIN for line in lines[node.lineno - 1 : last + 1]):
            first, column = body[0].lineno - 1, body[0].col_offset
            margin = lines[first][:column]
            if margin.strip():  # its body stands beside `def`
                head, margin = margin.rstrip(), " " * (node.col_offset + 4)
                lines[first : first + 1] = [head, f"{margin}{lines[first][column:]}"]
                first, last = first + 1, last + 1
            lines.insert(last, f"{margin}{END}")
            lines.insert(first, f"{margin}{BEGIN}")
    text = "\n".join(lines) + "\n"
    graded = {node.name for node in nodes}  # of which lines count as in the text that is written
    written = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name in graded]
    functions = tuple(_function(node, constants, values) for node in written)
    return Solution(path, text, values, functions, tuple(others))


def _function(node: ast.FunctionDef, constants: Mapping[str, ast.expr], values: str) -> SourceFunction:
    """Read one function; a default that is a constant of the module is that constant's value."""
    docstring, signature = ast.get_docstring(node) or "", node.args
    placed, by_name = [*signature.posonlyargs, *signature.args], signature.kwonlyargs
    called = {part.func.id for part in ast.walk(node) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)}
    defaults = [*[None] * (len(placed) - len(signature.defaults)), *signature.defaults, *signature.kw_defaults]
    defaults = [constants.get(one.id, one) if isinstance(one, ast.Name) else one for one in defaults]
    arguments = [
        _argument(arg, default, docstring, by_name=arg in by_name, is_called=arg.arg in called)
        for arg, default in zip([*placed, *by_name], defaults, strict=True)
    ]
    for sign, arg in (("*", signature.vararg), ("**", signature.kwarg)):
        if arg:
            told = f"a declaration names each argument; {guide(sign)}, says how a driver passes {sign}{arg.arg}"
            arguments.append(Argument(arg.arg, "other", {}, (), told, by_name=False))
    raises: dict[str, list[int]] = {}
    for part in ast.walk(node):
        if isinstance(part, ast.Raise) and part.exc:
            raised = ast.unparse(part.exc.func if isinstance(part.exc, ast.Call) else part.exc)
            raises.setdefault(raised, []).append(part.lineno)
    summary = docstring.partition("\n")[0].strip() or "Complete the function."
    return SourceFunction(node.name, tuple(arguments), ast.unparse(signature), summary, raises, values)


def _argument(node: ast.arg, default: ast.expr | None, docstring: str, *, by_name: bool, is_called: bool) -> Argument:
    """Read what the row of the docstring says of an argument, else its annotation, else its default."""
    row = re.search(rf"^\s*[`*]*{re.escape(node.arg)}[`*]*(?::\s*|\s{{2,}}|\t)(.*)", docstring, re.MULTILINE)
    annotation = ast.unparse(node.annotation).strip("'\"") if node.annotation else ""  # "Tree" may be quoted
    literal, unsaid = list[Any](), ""
    if default is not None:
        try:
            literal = [ast.literal_eval(default)]
        except ValueError:
            unsaid = f"its default {ast.unparse(default)} is no literal: `defaults` does not name it"
    said = re.split(r"\s{2,}|\t", row[1].strip("`* "))[0] if row else ""
    kind = (
        (KIND.match(_plain(said)) if said else None)
        or KIND.fullmatch(_plain(annotation))
        or KIND.fullmatch(type(literal[0]).__name__ if literal else "")
    )
    axes = (kind["axes"] or "").replace(",", " ").split() if kind else []
    shape, draws = "other", {USUAL: as_python(one) for one in literal}  # noqa: B035 (of one at most)
    if kind is None:
        known = annotation or (said if TYPE.fullmatch(said) else "") or ("a Callable" if is_called else "")
        unsaid = _unsaid(node.arg, known, literal)
    elif words := [*dict.fromkeys(re.findall(r"[\"'](\w[\w .-]*)[\"']", kind["words"] or ""))]:
        names = [f"{node.arg}_{re.sub(r'[^a-z0-9]', '_', word.lower())}" for word in words]
        shape, draws = "word", dict(zip([USUAL, *names[1:]], map(as_python, words), strict=True))
    elif not axes:
        takes = re.search(r"Callable\[\[([^\[\]]*)\]", annotation)
        number = takes[1].count(",") + 1 if takes else 1
        shape = kind["kind"] if kind["kind"] in (*ARRAYS, "function") else "other"
        draws = _draws(kind["kind"] or kind["texts"], literal[0] if literal else None, number)
    elif kind["kind"] in ARRAYS and all(
        axis.isdigit() or (axis.isidentifier() and axis not in NO_AXES) for axis in axes
    ):
        shape = f"{kind['kind']}[{' '.join(axes)}]"
        draws = {USUAL: ARRAYS[kind["kind"]].format(axes[0] if len(axes) == 1 else f"({', '.join(axes)})")}
    else:
        unsaid = f"its axes [{kind['axes']}] are no plain names"
    return Argument(node.arg, shape, draws, tuple(literal), unsaid, by_name)


def _plain(annotation: str) -> str:
    """Write an annotation as a row of a docstring says the same."""
    for written, meant in ANNOTATIONS.items():
        annotation = re.sub(f"^{written}$", meant, annotation)
    return annotation


def _unsaid(name: str, annotation: str, literal: Sequence[Any]) -> str:
    """Say what is not known of an argument, and where the guide has an example of such a thing."""
    section = guide(f"{name}: {annotation}")
    if literal:  # None, or a list or dictionary
        return f"nothing says what it may be besides {literal[0]!r}; see {section}"
    if section != guide("an Array"):
        return f"no draw is known of {annotation or name}; {section}, says how"
    what = "its axes" if annotation else "what it is"
    return f"nothing says {what}: write `{name}   float[row column]` into the docstring, or another row of {section}"


def _draws(kind: str, default: Any, takes: int) -> dict[str, str]:
    """Draw a number near its default, texts of several kinds, or a function that takes so many arguments."""
    if kind == "function":
        return {USUAL: f'Formula("{" ".join("xyzuvw"[:takes])}", "{FORMULAS[min(takes, 3) - 1]}")'}
    if kind == "str" and default is not None:
        return {USUAL: as_python(default)}
    if kind == "int" and isinstance(default, int):
        return {USUAL: f"int(rng.integers({default}, {default + 3}))"}
    if kind == "float" and default and isinstance(default, int | float):
        low, high = sorted((default / 2, default * 2))
        drawn = f"rng.uniform({low:g}, {high:g})"
        return {USUAL: f"round({drawn}, 3)" if high > 0.1 else drawn}
    return SINGLE[kind]


# Trying its functions


def try_function(solution: Solution, function: SourceFunction, sandbox: Sandbox) -> None:
    """Call a function at public and hidden sizes, and note what comes back; else the problem that it has."""
    unknown = [f"{argument.name}: {argument.unsaid}" for argument in function.arguments if not argument.draws]
    function.problem = "; ".join(unknown)
    if not unknown:
        try:
            _note_what_comes_back(solution, function, sandbox)
        except FixtureError as error:
            function.problem = " ".join(str(error).split())
            if "function" in function.shapes.values():
                function.problem += f"; {guide('callback')}, has functions of one's own"
            elif "the guide, " not in function.problem:
                function.problem += f"; {guide('a failure')}, has draws of one's own"


def _note_what_comes_back(solution: Solution, function: SourceFunction, sandbox: Sandbox) -> None:
    """Note shapes, kind and leaves; raises FixtureError where it cannot be graded."""
    namespace: dict[str, Any] = {"np": np, "Formula": Formula, "texts": texts}
    exec(template("draws.py", functions=[function]), namespace)
    calls = [
        namespace[function.draw_functions[USUAL]](np.random.default_rng(seed), **sizes)
        for sizes in ({axis: sizes[place] for axis, sizes in function.sizes.items()} for place in (1, 2))
        for seed in range(3)  # several, as shapes and keys may depend on the numbers
    ]
    seen = _observed(solution, function, sandbox, calls)
    kind, result = seen[0]["kind"], seen[0].get("result")
    parts: dict[str, list[Any]] = {}
    if kind == "nothing":  # which arguments does it change in place?
        for name, after in ((name, f"{name} {AFTERWARDS}") for name in function.shapes):
            pairs = [(call[name], one.get(after, call[name])) for call, one in zip(calls, seen, strict=True)]
            if any(
                not np.array_equal(*pair) if isinstance(pair[0], np.ndarray) else operator.ne(*pair) for pair in pairs
            ):
                parts[after] = [now for _, now in pairs]
    elif names := _numeric_parts(function.name, kind, result, seen[0].get("parts")):
        floats = [name for name, shape in function.shapes.items() if shape.startswith("float[")]
        floats = floats if solution.values == "torch" else []
        seen = _observed(solution, function, sandbox, calls, names, floats)
        if all(name in one for name in names for one in seen):  # else other keys for other arguments
            parts = {name: [one[name] for one in seen] for name in names}
            # Of the first part, where there are several
            function.leaves = [leaf for leaf in floats if any(np.any(one.get(f"gradient {leaf}", 0)) for one in seen)]
    if not parts and (kind == "nothing" or (result == kind and kind != "text")):
        holds = " with something in it that is no number or text" if re.match("a (tuple|list|dict)", kind) else ""
        raise FixtureError(f"it returns {kind}{holds}; {guide('' if holds else kind)}, says how that is graded")
    if parts:  # else it is compared as it is
        arrays = [one for several in parts.values() for one in several if isinstance(one, np.ndarray)]
        if not all(np.isfinite(array).all() for array in arrays):
            raise FixtureError(f"it returns nan, which no answer equals, or what is infinite; see {guide('nan')}")
        shapes = {name: _shape(function, several) for name, several in parts.items()}
        function.returns = shapes.get(function.name, shapes)
        function.kind = kind if solution.values != "torch" or kind in ("a list", "a dictionary", "nothing") else ""
    [one] = _observed(solution, function, sandbox, calls[:1], [*parts], again=AGAIN)
    answers = [[one[f"{name} {number}"] for name in parts or ["result"]] for number in range(1, AGAIN + 2)]
    if not all(all(map(np.array_equal, answers[0], answer)) for answer in answers):
        told = "it gives another answer when it is called again with the same arguments"
        raise FixtureError(f"{told}; {guide('another answer')}, says how that is graded")


def _observed(
    solution: Solution,
    function: SourceFunction,
    sandbox: Sandbox,
    calls: Sequence[Mapping[str, Any]],
    names: Sequence[str] = (),
    leaves: Sequence[str] = (),
    again: int = 0,
) -> list[dict[str, Any]]:
    """Make these calls: facts and arrays by name of each. Without names of parts what comes back is seen as it is.

    again   how often each is made again, so that "result" is "result 1", "result 2"
    """
    returns, by_name = dict.fromkeys(names, "float") if names else None, function.by_name
    declared = Function(
        function.name, function.shapes, returns, function.sizes, {}, values=solution.values, by_name=by_name
    )
    call = Call("", "a trial", "", options={"leaves": leaves})
    planned = Planned("trial", "public", declared, LAWS["values"], call, frozenset())
    requests = []
    for arguments in calls:
        draft = draft_of(planned, arguments, ModuleType("oracle"))
        blob = safetensors.numpy.save({**draft.inputs})
        probe, params = ("again", {**draft.params, "calls": again * [{}]}) if again else ("call", draft.params)
        requests.append(Request("trial", function.name, probe, params, blob, 5.0 * (1 + again)))
    program = Program("solution", solution.text, {}, template("probes.py"), solution.values == "torch")
    seen = []
    for outcome in sandbox.run(program, requests, load_timeout=20.0):
        if outcome.loading and outcome.observation is None:
            lacking = "; install what is missing beside autograder" if "No module named" in fate(outcome) else ""
            raise UsageError(f"{solution.path} cannot be loaded: {fate(outcome)}{lacking}.")
        if outcome.observation is None:
            raise FixtureError(fate(outcome))
        returned = outcome.observation.returned.items()
        arrays = {name: part.array for name, part in returned if part.array is not None}
        seen.append({**outcome.observation.facts, **arrays})
    return seen


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
    if not isinstance(arrays[0], np.ndarray):
        return "other"
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
    """List the items, 100 points in all; those of functions that are not graded come last, and share in none."""
    is_graded = any(not function.problem for function in functions)
    items: list[dict[str, Any]] = []
    for function in sorted(functions, key=lambda function: bool(function.problem)):
        for kind, laws in function.laws.items():
            weight, title, hint = ITEMS[kind]
            nones = [name for name, (_, drawn) in function.further_draws.items() if drawn == "None"]
            draws = [*function.draw_functions] if kind == "values" else [USUAL, *nones]
            draws = draws if draws != [USUAL] else []
            texts = {"title": title.format(function.name), "hint": hint, "draws": draws, "laws": laws}
            items.append({"function": function, "kind": kind, **texts, "points": weight})
            items[-1]["points"] *= not (function.problem and is_graded)
    sums = [*itertools.accumulate((item["points"] for item in items), initial=0)]
    ends = [round(100 * reached / sums[-1]) for reached in sums]  # each ends where its share of the sum does
    return [{**item, "points": end - start} for item, (start, end) in zip(items, itertools.pairwise(ends), strict=True)]


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
        if made.cases:
            assignment = load_assignment(Path(folder) / "fixtures" / name)
            write_source_notebook(assignment)
            write_handout(handout_files(assignment), assignment.handout)
        numbered = (root / REPLACED / f"{name}-{number}" for number in itertools.count(1))
        kept = next(path for path in numbered if not path.exists())
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
    fixtures, functions, cases = root / "fixtures" / name, solution.functions, 0
    imported = [
        one
        for one in (*PACKAGES, *OTHER_PACKAGES)
        if re.search(rf"^\s*(?:import|from) {one}\b", solution.text, re.MULTILINE)
    ]

    def write() -> None:
        """Write all files."""
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

    def not_graded() -> dict[str, str]:
        return {function.name: function.problem for function in functions if function.problem}

    with Sandbox() as sandbox:
        for function in functions:
            try_function(solution, function, sandbox)
        write()
        while len(not_graded()) < len(functions) and _examine(load_assignment(fixtures), functions, sandbox):
            write()  # without a law, other cases have other sizes
        if len(not_graded()) < len(functions):
            cases = regenerate(load_assignment(fixtures), fixtures, sandbox=sandbox)
    items = [item for item in _items(functions) if not item["function"].problem]
    todos = sum(path.read_text(encoding="utf-8").count("# TODO: ") for path in fixtures.iterdir() if path.is_file())
    return NewAssignment(len(items), cases, todos, not_graded())


def _examine(assignment: Assignment, functions: Sequence[SourceFunction], sandbox: Sandbox) -> bool:
    """Hold the solution against each derived case; note further draws and laws that it does not keep, if any."""
    exam, drawing = import_generator(assignment)[FUNCTIONS].EXAM, Drawing(assignment, sandbox)
    named, is_blamed = {function.name: function for function in functions}, False

    def refusal(planned: Planned) -> str:
        """Say why the solution does not pass that case; "" where it does."""
        try:
            draft = exam.draft(planned, OPEN_SECRET, drawing)
            check_draft(draft)
            check_solution(assignment, [case_of(item, draft, planned.visibility)], {draft.case: draft}, sandbox)
        except Exception as error:  # NumPy's own, too, of arguments that a law changed
            return " ".join(str(error).removeprefix(f"{planned.case}: ").split())
        return ""

    for item in assignment.items:
        for planned in exam.planned(assignment)[item.id]:
            if not (why := refusal(planned)):
                continue
            function, draw, is_blamed = named[item.function], planned.call.draw, True
            # The law without which it passes, else the one that adds the case
            without = {law: replace(planned, aspects=planned.aspects - LAWS[law].aspects) for law in item.laws}
            laws = [law for law, less in without.items() if LAWS[law].aspects and draw == USUAL and not refusal(less)]
            blamed = [*laws, planned.law.name][0]
            if draw != USUAL:
                function.refused.setdefault(draw, why)
            elif blamed == "values":
                function.problem = why
            else:
                function.off.setdefault(blamed, why)
    return is_blamed
