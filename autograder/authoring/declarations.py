"""Cases before they are stored: what cases.py writes, how its numbers are drawn, and what no oracle's answer may be."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from autograder.grading.cases import Expectation, is_finite
from autograder.grading.items import Assignment
from autograder.sandbox.observation import Array
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
    example  a named example: the same numbers whatever the secret
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
    example: bool = False


class Refusal(FixtureError):  # noqa: N818 (what a build does)
    """A draw that could not grade, where other numbers might: a sentence, then the cases to draw anew."""

    def __str__(self) -> str:
        """The sentence."""
        return str(self.args[0])

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases to draw anew."""
        return self.args[1:]


class Misnamed(FixtureError):  # noqa: N818 (what a build finds)
    """A name that a case declares and nothing has: what is wrong, what would be right, and a place if that is known."""

    def __str__(self) -> str:
        """Both, as one sentence."""
        return f"{self.what}: {self.right}."

    @property
    def what(self) -> str:
        """What is wrong."""
        return str(self.args[0])

    @property
    def right(self) -> str:
        """What would be right."""
        return str(self.args[1])

    @property
    def place(self) -> tuple[Path, int] | None:
        """File and line, where that is another than where it was noticed."""
        return (Path(self.args[2]), int(self.args[3])) if len(self.args) > 2 else None


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
    scale = max(1.0, float(np.abs(stored).max(initial=0.0)))
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


# Refusals that need no student code


def check_drafts(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse drafts that could not grade; raises FixtureError naming case and cause."""
    for draft in drafts.values():
        check_draft(draft)
    check_branches(assignment, drafts, oracle)


def check_draft(draft: Draft) -> None:
    """Refuse a value that could not be told from another, a shape that hides a transposition, an idle input."""
    expected = draft.answer(draft.inputs, draft.params)
    for expectation in expected:
        _check_stored_value(draft, expectation)
    _check_sizes(draft, expected)
    for name in _variable(draft):
        if not {name, name.partition(".")[2]} & set(draft.free) and not _matters(draft, name, expected):
            raise Refusal(f"{draft.case}: {name} does not matter; a wrong use of it would pass.", draft.case)


def check_branches(assignment: Assignment, drafts: Mapping[str, Draft], oracle: ModuleType) -> None:
    """Refuse an item whose cases leave a branch untaken."""
    taken: set[str] = getattr(oracle, "TAKEN", set())
    branches: Mapping[str, set[str]] = getattr(oracle, "BRANCHES", {})
    for item in assignment.items:
        taken.clear()
        for name in (*item.public, *item.hidden):
            drafts[name].answer(drafts[name].inputs, drafts[name].params)
        untaken = branches.get(item.id, set()) - taken
        if untaken:
            cases = (*item.public, *item.hidden)
            raise Refusal(f"{item.id}: no case takes the branch {sorted(untaken)}.", *cases)


def _check_stored_value(draft: Draft, expectation: Expectation) -> None:
    if expectation.kind not in ("value", "gradient") or expectation.array is None:
        return
    if not is_finite(expectation.array):
        raise Refusal(f"{draft.case}: the expected {expectation.name} is not finite.", draft.case)
    greatest = np.abs(expectation.array).max(initial=0.0)
    if not draft.zero and expectation.dtype not in ("int64", "bool") and greatest < 10 * expectation.atol:
        raise Refusal(f"{draft.case}: the expected {expectation.name} is too small for its tolerance.", draft.case)


def _check_sizes(draft: Draft, expected: Sequence[Expectation]) -> None:
    for expectation in expected:
        shape = () if expectation.array is None else expectation.array.shape
        if expectation.kind == "value" and len(expectation.axes) != len(shape):
            raise FixtureError(f"{draft.case}: {expectation.name} has axes {expectation.axes} and shape {shape}.")
        if expectation.kind == "value" and len(set(shape)) < len(shape) and not draft.square:
            raise FixtureError(f"{draft.case}: {expectation.name} has equal axis lengths {shape} and does not say why.")


def _variable(draft: Draft) -> list[str]:
    floats = [
        f"{group}.{name}"
        for group in GROUPS
        for name, setting in draft.params.get(group, {}).items()
        if isinstance(setting, float) and (setting or group == "given")
    ]
    return [*draft.inputs, *(name for name, entry in draft.params.items() if isinstance(entry, float)), *floats]


def _matters(draft: Draft, name: str, expected: Sequence[Expectation]) -> bool:
    """Whether a change of one input or parameter moves an expected value well beyond its tolerance."""
    return any(_moves(draft, inputs, params, expected) for inputs, params in _variations(draft, name))


def _variations(draft: Draft, name: str) -> list[tuple[dict[str, Array], dict[str, Any]]]:
    inputs, params = dict(draft.inputs), dict(draft.params)
    if name in inputs:
        return [({**inputs, name: changed}, params) for changed in _perturbed(inputs[name])]
    group, _, key = name.partition(".")
    if key and group in GROUPS:
        settings = params[group]
        return [(inputs, {**params, group: {**settings, key: other}}) for other in _others(settings[key])]
    return [(inputs, {**params, name: other}) for other in _others(params[name])]


def _others(number: float) -> tuple[float, ...]:
    """Other numbers in its place: a factor changes nothing of 0."""
    return (1.5 * number, number + 0.5) if number else (0.5, 1.0)


def _moves(
    draft: Draft, inputs: Mapping[str, Array], params: Mapping[str, Any], expected: Sequence[Expectation]
) -> bool:
    try:
        changed = draft.answer(inputs, params)
    except Exception:  # an oracle may refuse what it was not written for, in its own way
        return True
    return any(_moved(before, after) for before, after in zip(expected, changed, strict=True))


def _perturbed(array: Array) -> list[Array]:
    if array.dtype.kind == "f":
        # not one constant shift: centred deltas would not feel it
        return [array + np.linspace(0.1, 0.4, array.size, dtype=array.dtype).reshape(array.shape)]
    return [np.roll(array.reshape(-1), 1).reshape(array.shape), (array + 1) % (array.max() + 1), array + 1]


def _moved(before: Expectation, after: Expectation) -> bool:
    if before.kind not in ("value", "gradient") or before.array is None or after.array is None:
        return before.kind in ("error", "fact") and before.value != after.value
    if before.array.shape != after.array.shape:
        return True
    return bool((np.abs(before.array - after.array) > 10 * (before.atol + before.rtol * np.abs(before.array))).any())


def by_name(draft: Draft, case: str, function: str, probe: str) -> Draft:
    """A call with a draft's arguments, each by its name: nothing but the names is judged, and no number matters."""
    message = f"{function} {{observed}}: callers may pass every argument by the name that the handout gives it."

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        return [fact("names", "the names of the parameters", None, message)]

    title, params = "every argument passed by its name", {**draft.params, "function": function}
    groups = [entry for entry in params.values() if isinstance(entry, Mapping)]
    free = (*draft.inputs, *params, *(name for entry in groups for name in entry))
    return replace(draft, case=case, title=title, probe=probe, params=params, answer=answer, free=free, zero="")
