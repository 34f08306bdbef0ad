"""Cases before they are stored: what cases.py writes, how its numbers are drawn, and what could not grade."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.faults import CaseFault, Misnamed, Refusal, likely
from autograder.grading.assignment import Assignment
from autograder.grading.fixtures import Expectation
from autograder.sandbox.calls import Array
from autograder.vocabulary.errors import FixtureError

__all__ = [  # what the cases of an assignment need
    "OPEN_SECRET",
    "Draft",
    "Expectation",
    "Showing",
    "by_name",
    "error",
    "fact",
    "generator_for",
    "gradient",
    "unchanged",
    "value",
    "witness",
]

OPEN_SECRET = "open fixtures: a course that publishes its repository draws its own"
TOLERANCES = {"float64": (1e-6, 1e-8), "float32": (1e-4, 1e-6), "int64": (0.0, 0.0)}
DTYPES = (*TOLERANCES, "bool")  # truth values, which are right or wrong
GROUPS = ("settings", "given")  # of parameters whose numbers must matter, too
Answer = Callable[[Mapping[str, Array], Mapping[str, Any]], Sequence[Expectation]]


@dataclass(frozen=True)
class Draft:
    """A case before it is stored.

    answer   the oracle: expectations from inputs and parameters
    free     inputs and parameters that need not matter here
    square   axes that may have equal sizes here, and why; "" where all must differ
    zero     why an expected value may be 0 throughout; "" where none may
    infinite why some of what is expected may be infinite; "" where nothing may
    sampled  how often a right answer is refused, where values are statistics of random draws; "" where they are exact
    example  a named example: the same numbers whatever the secret
    hint     what to think about where it fails, if a law knows better than the item
    """

    case: str
    title: str
    probe: str
    inputs: Mapping[str, Array]
    answer: Answer
    params: Mapping[str, Any]
    free: tuple[str, ...] = ()
    square: str = ""
    zero: str = ""
    infinite: str = ""
    sampled: str = ""
    example: bool = False
    hint: str = ""


# Expectations, as cases.py writes them


def value(name: str, what: str, array: Array, axes: str, dtype: str, **more: Any) -> Expectation:
    """A returned tensor. `axes` are names separated by spaces."""
    return _tensor("value", name, what, array, axes, dtype, more)


def gradient(name: str, what: str, array: Array, axes: str, dtype: str, **more: Any) -> Expectation:
    """A gradient."""
    return _tensor("gradient", name, what, array, axes, dtype, more)


def unchanged(name: str, array: Array, what: str = "") -> Expectation:
    """An argument that must come out as it went in."""
    return Expectation("unchanged", name, what or name, dtype=array.dtype.name, array=array)


def fact(name: str, what: str, expected: Any, message: str, *, diagnosis: bool = False) -> Expectation:
    """A JSON value; `message` may hold {expected} and {observed}."""
    return Expectation("fact", name, what, value=expected, message=message, diagnosis=diagnosis)


def error(name: str, what: str, kind: str, *mentions: str) -> Expectation:
    """An exception of type `kind` whose text mentions each of `mentions`."""
    return Expectation("error", name, what, value={"type": kind, "mentions": list(mentions)})


def witness(name: str, what: str, claim: Mapping[str, Any], message: str) -> Expectation:
    """An example of the student's own, judged outside the sandbox; `claim` is as `witnesses` says.

    `message` may hold {observed}: what is wrong with the example.
    """
    return Expectation("witness", name, what, value=dict(claim), message=message)


def _tensor(
    kind: Any, name: str, what: str, array: Array, axes: str, dtype: str, more: Mapping[str, Any]
) -> Expectation:
    if dtype not in DTYPES:
        raise Misnamed(f"{name} has the dtype {dtype!r}", f"one of {', '.join(DTYPES)}")
    rtol, atol = TOLERANCES.get(dtype, (0.0, 0.0))
    stored = np.asarray(array, dtype=np.int64 if dtype in ("int64", "bool") else np.float64)
    scale = max(1.0, float(np.abs(stored[np.isfinite(stored)]).max(initial=0.0)))
    settings = {"rtol": rtol, "atol": atol * scale, **more}
    return Expectation(kind, name, what, tuple(axes.split()), dtype, array=stored, **settings)


def generator_for(secret: str, case: str) -> np.random.Generator:
    """The random numbers of one case: its own, so that adding a case changes no other."""
    digest = hashlib.sha256(f"{secret}\n{case}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


@dataclass(frozen=True)
class Showing:
    """A run to show: it earns nothing, and its reference is what the solution makes of it.

    case     the id of a [[curve]] in items.toml
    series   what each series that the probe returns is called
    axes     of some series, `unit`: of its values, and `most`: the greatest that there can be
    """

    case: str
    probe: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    series: Mapping[str, str]
    axes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def by_name(draft: Draft, case: str, function: str, probe: str) -> Draft:
    """A call with a draft's arguments, each by its name: nothing but the names is judged, and no number matters."""
    message = f"{function} {{observed}}: callers may pass every argument by the name that the handout gives it."

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        return [fact("names", "the names of the parameters", None, message)]

    title, params = "every argument passed by its name", {**draft.params, "function": function}
    groups = [entry for entry in params.values() if isinstance(entry, Mapping)]
    free = (*draft.inputs, *params, *(name for entry in groups for name in entry))
    return replace(draft, case=case, title=title, probe=probe, params=params, answer=answer, free=free, zero="")


# What could not grade: found without any student code


def check_drafts(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse drafts that could not grade; raises FixtureError naming case and cause."""
    probes: list[str] = []
    for node in ast.parse(assignment.probes_source()).body:
        probes += [node.name] if isinstance(node, ast.FunctionDef) else []
        probes += [alias.asname or alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
    for draft in drafts.values():
        if draft.probe not in probes:
            raise CaseFault(f"{draft.case}: probes.py does not define {draft.probe!r}", likely(draft.probe, probes))
        check_draft(draft)
    check_branches(assignment, drafts, oracle)


def check_draft(draft: Draft) -> None:
    """Refuse what cannot be stored or told from another, a shape that hides a transposition, an idle input."""
    for name, array in draft.inputs.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            kind = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else f"of type {type(array).__name__}"
            right = "NumPy arrays of floats, whole numbers or truth values"
            raise CaseFault(f"{draft.case}: the input {name} is {kind}", right)
    try:
        json.dumps(draft.params, allow_nan=False)
    except (TypeError, ValueError) as error:
        right = "numbers, text, lists and dicts; arrays belong to the inputs, functions are written as Formula"
        raise CaseFault(f"{draft.case}: its parameters cannot be stored ({error})", right) from error
    before = {name: array.copy() for name, array in draft.inputs.items()}
    try:
        expected = draft.answer(draft.inputs, draft.params)
    except CaseFault as error:
        raise CaseFault(f"{draft.case}: {error.what}", error.right) from error
    if not expected:
        raise CaseFault(
            f"{draft.case}: nothing is expected", "value(…), gradient(…), unchanged(…), fact(…) or error(…)"
        )
    names = [expectation.name for expectation in expected]
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise CaseFault(f"{draft.case}: it expects {twice[0]!r} twice", "a name for each thing that the probe returns")
    for expectation in expected:
        _check_stored_value(draft, expectation)
    for name, array in draft.inputs.items():
        if not np.array_equal(array, before[name], equal_nan=array.dtype.kind == "f"):
            raise CaseFault(f"{draft.case}: the oracle changes the input {name}", "a copy of it")
    for name, changes in _variations(draft):
        if not any(_moves(draft, inputs, params, expected) for inputs, params in changes):
            told = f"{draft.case}: {name} does not matter; a wrong use of it would pass"
            raise Refusal(f"{told}. An input that does, or free=(…) where it need not.", draft.case)


def check_branches(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse an item whose cases leave a branch untaken."""
    taken: set[str] = getattr(oracle, "TAKEN", set())
    branches: Mapping[str, set[str]] = getattr(oracle, "BRANCHES", {})
    ids = [item.id for item in assignment.items]
    for name in branches:
        if name not in ids:
            raise Misnamed(f"{name}: BRANCHES names an item that items.toml does not have", likely(name, ids))
    for item in assignment.items:
        taken.clear()
        for name in (*item.public, *item.hidden):
            drafts[name].answer(drafts[name].inputs, drafts[name].params)
        untaken = branches.get(item.id, set()) - taken
        if untaken:
            cases = (*item.public, *item.hidden)
            raise Refusal(f"{item.id}: no case takes the branch {sorted(untaken)}.", *cases)


def _check_stored_value(draft: Draft, expectation: Expectation) -> None:
    array = expectation.array
    if expectation.kind not in ("value", "gradient") or array is None:
        return
    told = f"{draft.case}: the expected {expectation.name}"
    finite = np.isfinite(array)
    greatest = np.abs(array[finite]).max(initial=0.0)
    is_rounded = expectation.dtype not in ("int64", "bool")
    if np.isnan(array).any():
        raise Refusal(f"{told} is nan somewhere, which no answer equals: nan is not graded.", draft.case)
    if not finite.all() and not draft.infinite:
        right = 'other numbers, or infinite="why" where that is meant'
        raise Refusal(f"{told} is infinite somewhere: {right}.", draft.case)
    if finite.all() and not draft.zero and is_rounded and greatest < 10 * expectation.atol:
        right = 'other numbers, a smaller atol=…, or zero="why" where nothing but 0 is right'
        raise Refusal(f"{told} is too small for its tolerance: {right}.", draft.case)
    if expectation.kind == "value" and len(expectation.axes) != array.ndim:
        raise FixtureError(f"{told} has axes {expectation.axes} and shape {array.shape}.")
    if expectation.kind == "value" and len(set(array.shape)) < array.ndim and not draft.square:
        raise FixtureError(f"{told} has equal axis lengths {array.shape} and does not say why.")


def _variations(draft: Draft) -> Iterator[tuple[str, list[tuple[Mapping[str, Array], Mapping[str, Any]]]]]:
    """Yield each input and number that must matter, and inputs and parameters in which it is another."""
    inputs, params = draft.inputs, draft.params
    for name, array in inputs.items():
        if {name, name.partition(".")[2]} & {*draft.free}:
            continue
        if array.dtype.kind == "f":  # not one constant shift: centred deltas would not feel it
            others = [array + np.linspace(0.1, 0.4, array.size, dtype=array.dtype).reshape(array.shape)]
        else:
            rolled = np.roll(array.reshape(-1), 1).reshape(array.shape)
            others = [rolled, (array + 1) % (array.max() + 1), array + 1]
        yield name, [({**inputs, name: other}, params) for other in others]
    for group, settings in {"": params, **{group: params.get(group, {}) for group in GROUPS}}.items():
        for key, number in settings.items():
            name = f"{group}.{key}" if group else key
            if not isinstance(number, float) or (group == "settings" and not number) or {name, key} & {*draft.free}:
                continue
            instead = (1.5 * number, number + 0.5) if number else (0.5, 1.0)  # a factor changes nothing of 0
            changed = [{**settings, key: other} for other in instead]
            yield name, [(inputs, {**params, group: other} if group else other) for other in changed]


def _moves(
    draft: Draft, inputs: Mapping[str, Array], params: Mapping[str, Any], expected: Sequence[Expectation]
) -> bool:
    """Whether an expected value is well beyond its tolerance with these inputs and parameters."""
    try:
        changed = draft.answer(inputs, params)
    except Exception:  # an oracle may refuse what it was not written for, in its own way
        return True
    for before, after in zip(expected, changed, strict=True):
        if before.kind not in ("value", "gradient") or before.array is None or after.array is None:
            if before.kind in ("error", "fact") and before.value != after.value:
                return True
            continue
        if before.array.shape != after.array.shape:
            return True
        with np.errstate(invalid="ignore"):
            beyond = np.abs(before.array - after.array) > 10 * (before.atol + before.rtol * np.abs(before.array))
        both = np.isfinite(before.array) & np.isfinite(after.array)
        if np.where(both, beyond, before.array != after.array).any():
            return True
    return False
