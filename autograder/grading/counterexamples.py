"""Find a small call on which an answer is wrong, and write calls as one would type them.

Where only hidden cases fail, an assignment's own code draws small trials, its oracle judges them outside the sandbox,
and the simplest that goes wrong is made simpler still and shown. All that is random is keyed by the submission and the
item, and what limits the search is counted in calls, so the same submission gets the same words on every machine and
at any number of jobs. No stored case has a part in it. Where a public case fails, its own call is shown if it is short.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import math
import re
import sys
import tempfile
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from autograder.grading.assignment import Assignment, Item
from autograder.grading.compare import Mismatch, compare
from autograder.grading.fixtures import Case, Expectation
from autograder.grading.wording import UNTOLD, Place, in_file, is_unfinished, stored_text
from autograder.sandbox.calls import Array, Outcome, Program, Raised, Request
from autograder.sandbox.worker.calling import CURVES, NUMPY, PYTHON, TORCH, unkeyed
from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.files import write_atomically
from autograder.vocabulary.report import ItemResult
from autograder.vocabulary.text import visible

DRAWN = 24  # trials of an item
TRIED = 12  # simpler ones in a round
ROUNDS = 6
CALLS = 600  # of one submission, over all items

LONG = 4  # an axis of more entries is halved
LARGEST = 1e30  # beyond which there is nothing to round
MANY = 16  # of more numbers none is changed by itself

MAX_SNIPPET = 1_200
MAX_SHOWN = 300
DIGITS = 6
ALL_DIGITS = range(DIGITS, 18)

DRAWS = "counterexamples"
FUNCTIONS = "functions"
DRAWING = (DRAWS, FUNCTIONS)
IMPORTING = threading.Lock()

PROBE = "call"  # the engine's own, whose parameters say what is called
CALLED = "What this public case calls, with arrays to 6 digits:"
MOST_NUMBERS, MOST_LINES, WIDTH = 40, 14, 100
MARGIN = "  "
UNTYPED = ("aliases", "graphs", "raises", "calls")  # what one line of arguments cannot say

Answer = Callable[[Mapping[str, Array], Mapping[str, Any]], Sequence[Expectation]]


@dataclass(frozen=True)
class Trial:
    """One call that is drawn.

    probe    what the sandbox calls it through, with `inputs` and `params`, as for a stored case
    answer   the oracle: expectations from inputs and parameters
    shown    expectation's name → the text to paste that shows it; "" for all others. `{rewards}` stands for the input
             of that name as a tensor, an array or a list, `{batch}` for the size of an axis, `{dtype}` for that of the
             inputs' numbers
    axes     input → names of its axes, separated by spaces; an axis gets shorter in all inputs at once
    least    axis → the fewest entries that still make a call
    fixed    inputs whose values mean something else when they change
    allowed  whether inputs are ones that the contract speaks of
    """

    probe: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    answer: Answer
    shown: Mapping[str, str]
    axes: Mapping[str, str] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    allowed: Callable[[Mapping[str, Array]], bool] = lambda inputs: True

    def as_case(self, item: Item) -> Case | None:
        """Make the case that the sandbox runs and the comparison judges; None where no answer can be held.

        Raises GraderFault where the oracle fails otherwise than at numbers that it has no answer for.
        """
        if not self.allowed(self.inputs):
            return None
        try:
            with np.errstate(all="ignore"):
                expected = tuple(self.answer(self.inputs, self.params))
                for expectation in expected:
                    array = expectation.array if expectation.kind in ("value", "gradient") else None
                    if array is not None and not np.isfinite(array.astype(expectation.dtype)).all():
                        return None
        except (ArithmeticError, IndexError, KeyError, ValueError):
            return None
        except Exception as error:
            raise GraderFault(f"The oracle fails at a drawn call of {item.function}: {error}.") from error
        call = self.probe, self.params, self.inputs
        return Case("counterexample", item.id, item.function, "", "public", *call, expected, {})

    def text(self, name: str = "") -> str:
        """Write what to paste in order to see the expectation of that name."""
        text = self.shown.get(name, self.shown[""])
        library = "torch" if self.values == TORCH else "np"
        dtypes = [f"{library}.{array.dtype.name}" for array in self.inputs.values() if array.dtype.kind == "f"]
        words = {"dtype": dtypes[0] if dtypes else "", **{axis: str(size) for axis, size in self.sizes.items()}}
        for word, meaning in (words | self._literals).items():
            text = text.replace(f"{{{word}}}", meaning)
        return text

    @property
    def values(self) -> str:
        """What the inputs are: tensors, arrays or lists."""
        return str(self.params.get("values", TORCH))

    @property
    def _literals(self) -> dict[str, str]:
        return {name: literal(array, self.values) for name, array in self.inputs.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each axis."""
        sizes: dict[str, int] = {}
        for name, axes in self.axes.items():
            sizes |= dict(zip(axes.split(), self.inputs[name].shape, strict=True))
        return sizes

    @functools.cached_property
    def cost(self) -> tuple[int, int, float]:
        """How hard it is to read: the fewer numbers, the shorter, the smaller, the better."""
        size = sum(array.size for array in self.inputs.values())
        written = sum(map(len, self._literals.values()))
        wide = (np.nan_to_num(array.astype(np.float64), posinf=1e9, neginf=1e9) for array in self.inputs.values())
        with np.errstate(over="ignore"):  # the largest numbers of all add up to infinity
            return size, written, sum(float(np.abs(array).sum()) for array in wide)


# The search


class CallRunner(Protocol):
    """What runs a program on requests."""

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """Return the outcome of each request, in order."""


@dataclass(frozen=True)
class Failing:
    """A trial that goes wrong: what it asks, and what is wrong with the answer."""

    trial: Trial
    case: Case
    fault: Mismatch | Raised

    @property
    def kind(self) -> tuple[str, ...]:
        """What goes wrong: the exception's type, or the rung and the name of what breaks it."""
        fault = self.fault
        return ("raised", fault.types[0]) if isinstance(fault, Raised) else (fault.rung, fault.expectation.name)

    @property
    def cost(self) -> tuple[int, int, float]:
        """How hard the trial is to read."""
        return self.trial.cost


@dataclass
class Search:
    """One submission's search.

    key       the submission's hash
    place     says where a line of the graded text was written
    calls     how many it has left
    """

    drawing: Drawing
    program: Program
    runner: CallRunner
    load_timeout: float
    key: str
    place: Place = in_file
    calls: int = CALLS

    def with_counterexamples(self, results: Sequence[ItemResult], items: Sequence[Item]) -> list[ItemResult]:
        """Add a counterexample where an item fails in hidden cases alone and one is found.

        What never ends in a hidden case would not end here, so such items are left as they are.
        """
        shown = []
        for result, item in zip(results, items, strict=True):
            verdicts = [case.verdict for case in result.cases if case.verdict != "passed"]
            if result.fails_unseen and {*verdicts} <= {"failed", "raised"}:
                try:
                    text = self.counterexample(item, raises=verdicts[0] == "raised")
                except (GraderFault, OSError):  # the points are known already, and hold without an example
                    return list(results)
                if text:  # what it shows need not be looked for elsewhere
                    result = replace(result, counterexample=text, message=result.message.replace(UNTOLD, ""))
            shown.append(result)
        return shown

    def counterexample(self, item: Item, *, raises: bool = False) -> str:
        """Find a small call of an item that goes wrong, and write it; "" where none is found, or one never ends.

        A simpler trial that goes wrong in another way shows another fault, which may be no fault of a usual call at
        all: only trials of one kind are followed, of those that raise where the message is about an exception.
        """
        drawn = range(DRAWN) if item.id in self.drawing.items() else ()
        wrong = self._failing(item, [self.drawing.trial(item.id, self.key, number) for number in drawn])
        if not wrong:
            return ""
        kinds = [one.kind for one in wrong]
        kind = Counter([k for k in kinds if (k[0] == "raised") == raises] or kinds).most_common(1)[0][0]
        best = min((one for one in wrong if one.kind == kind), key=lambda one: one.cost)
        steps = simpler(best.trial)
        for _ in range(ROUNDS):
            wrong, steps = self._failing(item, steps[:TRIED]), steps[TRIED:]
            if wrong is None:
                return ""
            if same := [one for one in wrong if one.kind == kind]:
                best = min(same, key=lambda one: one.cost)
                steps = simpler(best.trial)
        alone = self._failing(item, [best.trial])  # with nothing called before it, as when it is pasted
        return counterexample_text(alone[0], self.place) if alone and alone[0].kind == kind else ""

    def _failing(self, item: Item, trials: Sequence[Trial]) -> list[Failing] | None:
        """Run trials, as far as the calls reach, and return those that go wrong; None where one hangs or crashes."""
        asked = [(trial, case) for trial in trials if (case := trial.as_case(item)) is not None][: self.calls]
        requests = [case.request(item) for _, case in asked]
        outcomes = self.runner.run(self.program, requests, load_timeout=self.load_timeout) if requests else []
        self.calls -= len(outcomes)
        if any(outcome.status not in ("observed", "raised") for outcome in outcomes):
            return None
        pairs = zip(asked, outcomes, strict=True)
        faults = [(trial, case, fault_of_call(case, outcome)) for (trial, case), outcome in pairs]
        return [Failing(trial, case, fault) for trial, case, fault in faults if fault is not None]


def fault_of_call(case: Case, outcome: Outcome) -> Mismatch | Raised | None:
    """Return what is wrong with an answer; None where nothing is, or where nothing is written yet."""
    if outcome.raised is not None and outcome.status == "raised":
        return None if is_unfinished(outcome.raised) else outcome.raised
    return None if outcome.observation is None else compare(case.expected, outcome.observation)


# Simpler trials: fewer entries first, then simpler numbers


def simpler(trial: Trial) -> list[Trial]:
    """Return all trials that one step leads to and that cost less, the cheapest first."""
    changes: list[dict[str, Array]] = []
    for axis, size in trial.sizes.items():  # half of a long axis; of a short one all entries but one, or only one
        entries = [*range(size)]
        parts = [entries[: size // 2], entries[size // 2 :]]
        if size <= LONG:
            parts = [[one] for one in entries] + [[other for other in entries if other != one] for one in entries]
        for kept in [part for part in parts if len(part) >= trial.least.get(axis, 1)]:
            inputs = dict(trial.inputs)
            for name, axes in trial.axes.items():
                for position in [place for place, other in enumerate(axes.split()) if other == axis]:
                    inputs[name] = np.take(inputs[name], kept, axis=position)
            changes.append(inputs)
    for name, array in trial.inputs.items():  # simpler numbers throughout one input, or at one place
        simple = [np.zeros_like(array), np.ones_like(array), np.abs(array)]
        if array.dtype.kind == "f" and (np.abs(array[np.isfinite(array)]) < LARGEST).all():
            simple += [np.round(array), np.round(array * 2) / 2, np.round(array, 1)]
        for index in np.ndindex(*array.shape) if array.size <= MANY else ():
            number = float(array[index])
            for other in {0.0, 1.0, abs(number), float(round(number))} if np.isfinite(number) else ():
                simple.append(array.copy())
                simple[-1][index] = other
        if name not in trial.fixed:  # of 0 axes an array is a scalar after arithmetic
            changes += [{name: np.asarray(one)} for one in simple if not np.array_equal(one, array)]
    with np.errstate(over="ignore"):  # all float32, or none: what a call of two dtypes does is another question
        narrow = {name: one.astype(np.float32) for name, one in trial.inputs.items() if one.dtype == np.float64}
    if not narrow.keys() & {*trial.fixed} and all(np.isfinite(array).all() for array in narrow.values()):
        changes.append(narrow)
    steps = [replace(trial, inputs={**trial.inputs, **change}) for change in changes]
    return sorted((step for step in steps if step.cost < trial.cost), key=lambda step: step.cost)


# What draws


@dataclass(frozen=True)
class Drawing:
    """The modules of an assignment's fixtures that draw: path below them → text.

    They are carried as text, so that every machine of a cluster has them.

    by_laws   items that laws judge: what `functions` declares draws their trials
    """

    assignment: str
    sources: Mapping[str, str]
    by_laws: tuple[Item, ...] = ()

    @classmethod
    def of(cls, assignment: Assignment) -> Drawing | None:
        """Read them; None where there are none, as in a handout."""
        folder = assignment.folder
        names = ("oracle", "cases", "probes", *DRAWING)
        paths = [path for name in names for path in (folder / f"{name}.py", *sorted((folder / name).glob("*.py")))]
        sources = {str(path.relative_to(folder)): path.read_text("utf-8") for path in paths if path.is_file()}
        if not any(Path(path).parts[0].removesuffix(".py") in DRAWING for path in sources):
            return None
        return cls(assignment.name, sources, tuple(item for item in assignment.items if item.laws))

    def items(self) -> frozenset[str]:
        """Return the items that trials can be drawn for."""
        return frozenset(self._draws)

    def trial(self, item: str, submission: str, number: int) -> Trial:
        """Draw the trial of that number for an item: the same one for the same submission, and larger by number.

        Raises GraderFault where the assignment's code fails.
        """
        key = f"{self.assignment}\n{submission}\n{item}\n{number}".encode()
        generator = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:16], "big"))
        try:
            trial: Trial = self._draws[item](generator, number)
        except Exception as error:
            raise GraderFault(f"The generator of {self.assignment} draws nothing for {item}: {error}.") from error
        return trial

    @functools.cached_property
    def _draws(self) -> Mapping[str, Any]:
        text = repr(sorted(self.sources.items()))
        package = f"drawing_of_{self.assignment}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        modules = {}
        with IMPORTING, tempfile.TemporaryDirectory() as folder:  # submissions are graded by several threads
            for name, source in self.sources.items():
                Path(folder, name).parent.mkdir(exist_ok=True)
                write_atomically(Path(folder, name), source, lasting=False)
            sys.modules.setdefault(package, ModuleType(package)).__path__ = [folder]
            importlib.invalidate_caches()
            try:
                for name in DRAWING:
                    if {f"{name}.py", f"{name}/__init__.py"} & self.sources.keys():
                        modules[name] = importlib.import_module(f"{package}.{name}")
            except Exception as error:
                raise GraderFault(f"The generator of {self.assignment} cannot be imported: {error}.") from error
        drawn = dict(modules[FUNCTIONS].EXAM.chased(self.by_laws)) if FUNCTIONS in modules else {}
        return drawn | (modules[DRAWS].DRAWS if DRAWS in modules else {})

    def __getstate__(self) -> dict[str, Any]:
        """Leave the imported modules behind where this is sent to another machine."""
        return {"assignment": self.assignment, "sources": dict(self.sources), "by_laws": self.by_laws}


# What a student reads of a trial. Its input is no secret, so all that came of it may be shown


def counterexample_text(failing: Failing, place: Place = in_file) -> str:
    """Write the snippet, with yours and expected beneath it; "" where the snippet would be too long to read."""
    trial, fault, line = failing.trial, failing.fault, ""
    if isinstance(fault, Raised):
        snippet, yours = trial.text(), f"{fault.types[0]}: {fault.message}".removesuffix(": ")
        expected = expected_text(next(one for one in failing.case.expected if one.kind != "unchanged"))
        if fault.line is not None:
            line = f"\n            {place(fault.line)}{f': {visible(fault.code, 120)}' if fault.code else ''}"
    else:
        snippet = trial.text(fault.expectation.name)
        yours, expected = yours_and_expected(fault)
    if len(snippet) > MAX_SNIPPET:
        return ""
    return f"{snippet}\n  yours     {visible(yours, MAX_SHOWN)}{line}\n  expected  {visible(expected, MAX_SHOWN)}"


def yours_and_expected(mismatch: Mismatch) -> tuple[str, str]:
    """Write what came back and what should have, so that the difference can be seen."""
    expectation, returned, observed = mismatch.expectation, mismatch.returned, mismatch.observed
    yours, expected, wanted = returned.array, expectation.array, expected_text(expectation)
    match mismatch.rung:
        case "dtype":
            return f"dtype {returned.dtype}", f"dtype {expectation.dtype}"
        case "graph":
            words = ("a tensor without a graph", "a tensor that requires a gradient")
            return words[returned.requires_grad], words[bool(expectation.attached)]
        case "error" if isinstance(observed, dict):
            said = [*(observed.get("types") or ())[:1], observed.get("message")]
            return ": ".join(map(str, said)), wanted
        case "error":
            return "no exception", wanted
        case "fact":
            return stored_text(expectation, observed), wanted
    if yours is None:
        return "None" if returned.kind == "none" else f"something of type {returned.type}", wanted
    if mismatch.rung == "tensor" or expected is None:
        return nested(yours, DIGITS), wanted
    with np.errstate(all="ignore"):
        expected = expected.astype(yours.dtype) if yours.dtype.kind == "f" else expected
    texts = [(nested(yours, digits), nested(expected, digits)) for digits in ALL_DIGITS]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def expected_text(expectation: Expectation) -> str:
    """Write what should have come back."""
    if expectation.array is not None:
        return nested(expectation.array, DIGITS)
    if expectation.kind == "error":
        mentions = " and ".join(map(repr, expectation.value.get("mentions", ())))
        return f"{expectation.value['type']}{f' that names {mentions}' if mentions else ''}"
    return stored_text(expectation, expectation.value)


# Arrays as one would type them


def literal(array: Array, values: str = TORCH) -> str:
    """Write the array as a call of torch.tensor or np.array, or as a list."""
    return _literal(array.dtype.name, array.shape, array.tobytes(), values)


@functools.lru_cache(maxsize=4096)  # what a trial is shrunk to shares all inputs with it but one
def _literal(dtype: str, shape: tuple[int, ...], data: bytes, values: str) -> str:
    array = np.frombuffer(data, dtype=dtype).reshape(shape)
    head, end = _constructor(array, values)
    return f"{head}{nested(array)}{end}"


def _constructor(array: Array, values: str) -> tuple[str, str]:
    """What stands before and after the numbers of an array; a dtype that they have by themselves is not said."""
    if values == PYTHON:
        return "", ""
    head, library, default = {NUMPY: ("np.array(", "np", "float64")}.get(values, ("torch.tensor(", "torch", "float32"))
    dtype = array.dtype.name
    is_default = dtype in (default, "int64", "bool") and (array.size or values == TORCH)
    return head, ")" if is_default else f", dtype={library}.{dtype})"


def nested(array: Array, digits: int = 0) -> str:
    """Write numbers as nested lists; `digits` significant ones of each, 0 for as many as tell it from all others."""
    if array.ndim:
        return "[" + ", ".join(nested(entry, digits) for entry in array) + "]"
    if array.dtype.kind != "f":
        return str(array.item())
    number = float(array)
    if not math.isfinite(number):
        return f'float("{number}")' if not digits else str(number)
    number += 0.0  # which makes 0 of -0
    if digits:
        text = f"{number:.{digits}g}"
    elif array.dtype == np.float64 or number == round(number, 3):
        text = repr(number)
    else:
        text = str(array.dtype.type(number))
    return text if any(sign in text for sign in ".en") else f"{text}.0"


# A public case as one would type it


def with_calls(items: Sequence[ItemResult], cases: Sequence[Case], probes: str = "") -> list[ItemResult]:
    """Add below the message of each item the call of its first failing case, where `calls_of` has one."""
    calls = calls_of(items, cases, probes).items()
    texts = {item: f"\n{CALLED}\n{textwrap.indent(text, MARGIN)}" for item, text in calls}
    return [replace(item, message=item.message + texts.get(item.item, "")) for item in items]


def calls_of(items: Iterable[ItemResult], cases: Sequence[Case], probes: str = "") -> dict[str, str]:
    """Write item → the call of its first failing case, where that is public and short and nothing shorter is shown."""
    by_id, calls = {case.id: case for case in cases}, {}
    for item in items:
        first = next((case for case in item.cases if case.verdict != "passed"), None)
        is_shown = item.counterexample or item.waits_for
        if first and first.visibility == "public" and first.verdict in ("failed", "raised", "timed_out"):
            calls[item.item] = short_call(by_id[first.case], probes) if first.case in by_id and not is_shown else ""
    return {item: call for item, call in calls.items() if call}


def short_call(case: Case, probes: str = "") -> str:
    """Write the call, or what a driver of `probes` does; "" where it is long, or is of more than arguments."""
    if case.visibility != "public" or sum(array.size for array in case.inputs.values()) > MOST_NUMBERS:
        return ""
    lines = []
    if not any(case.params.get(name) for name in UNTYPED):
        lines = call_lines(case) if case.probe == PROBE else driver_lines(case, probes)
    return "" if len(lines) > MOST_LINES or any(len(line) > WIDTH for line in lines) else "\n".join(lines)


def driver_lines(case: Case, probes: str) -> list[str]:
    """Assign the arguments of a driver of probes.py line by line, then write what it does; none of another probe."""
    names, lines = driver_in(probes, case.probe)
    typed = call_lines(replace(case, probe=PROBE))
    given = unkeyed(case.params.get("given", {}))
    known = [f"{name} = {given[name]!r}" for name in names if name in given]
    return [*known, *typed[:-1], *lines] if typed and names == case.params["arguments"] else []


def driver_in(probes: str, name: str) -> tuple[list[str], list[str]]:
    """Return the arguments of a driver but the student's module, and its lines as a student may type them."""
    for node in ast.parse(probes).body:
        if (
            isinstance(node, ast.FunctionDef)
            and node.name == name
            and "driver" in map(ast.unparse, node.decorator_list)
        ):
            student, *names = [argument.arg for argument in node.args.args]
            text = "\n".join(map(ast.unparse, node.body[ast.get_docstring(node) is not None :]))
            text = re.sub(rf"\b{student}\.", "", text)
            return names, re.sub(r"^return ", "", text, flags=re.MULTILINE).splitlines()
    return [], []


def call_lines(case: Case, *, arrays: bool = True) -> list[str]:
    """Write arguments that are arrays or functions line by line, then the call with all others in their places.

    None of them where the case has a probe of its own, whose parameters only that knows.
    """
    params = case.params
    listed, formulas = params.get("arguments"), params.get("formulas", {})
    known = {**case.inputs, **unkeyed(params.get("given", {})), **formulas}
    if case.probe != PROBE or not isinstance(listed, list) or not all(name in known for name in listed):
        return []
    lines = []
    for name in listed:
        if name in formulas:
            parameters, library = formulas[name]["of"].split(), "np" if case.values == NUMPY else "math"
            functions = "|".join(word for word in (*CURVES, "pi", "e") if word not in parameters)
            text = re.sub(rf"(?<![.\w])({functions})\b", rf"{library}.\1", formulas[name]["is"])
            lines.append(f"{name} = lambda {', '.join(parameters)}: {text}")
        elif name in case.inputs and arrays:
            lines += _array_lines(name, case)
    words = {name: name if name in case.inputs or name in formulas else repr(known[name]) for name in listed}
    by_name = params.get("by_name", ())
    arguments = [f"{name}={words[name]}" if name in by_name else words[name] for name in listed]
    return [*lines, f"{params['function']}({', '.join(arguments)})"]


def _array_lines(name: str, case: Case) -> list[str]:
    """Assign an array to its name: rows below each other where they do not fit on a line."""
    array = case.inputs[name]
    head, end = _constructor(array, case.values)
    if name in case.params.get("leaves", ()):
        end = f"{end[:-1]}, requires_grad=True)"
    line = f"{name} = {head}{nested(array, DIGITS)}{end}"
    if array.ndim < 2 or len(line) <= WIDTH:
        return [line]
    rows = [nested(row, DIGITS) for row in array]
    margin = " " * (len(f"{name} = {head}") + 1)
    lines = [f"{name} = {head}[{rows[0]}", *(f"{margin}{row}" for row in rows[1:])]
    return [*(f"{line}," for line in lines[:-1]), f"{lines[-1]}]{end}"]
