"""Cases before they are stored: what cases.py writes, and how its numbers are drawn."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

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
    example: bool = False
    hint: str = ""


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


class CaseFault(Misnamed):
    """What a case says of a call, which shows while its oracle runs: told at the line of the case."""


class OracleFault(Misnamed):
    """What an oracle returned and no case can hold anything to; a case may be at fault that asks for it."""


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
