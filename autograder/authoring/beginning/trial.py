"""The solution, tried in the sandbox: which arguments it answers, what it returns, what it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors.numpy

from autograder.authoring.beginning.signatures import Argument, Function, Solution
from autograder.authoring.calls import Drawn, Formula, Number
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.observation import Array
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import UsageError

PROBES = '''\
"""How a worker calls the functions: the engine's own probe does. Others of your own may stand below."""

from autograder.sandbox.inside.calling import call

__all__ = ["call"]
'''
SMALL, LARGE = (3, 4, 2, 5), (5, 7, 6, 8)  # sizes of axes in the order of their names: no two the same in one case
RANGES = ("real", "positive", "probabilities", "whole")
NUMBERS = (Number(0.5, 3.0), Number(0.1, 0.9), Number(-2.0, 2.0), Number(2.0, 9.0))
WHOLES = (2, 3, 1, 10)
FORMULAS = (Formula("x", "x * x - 2"), Formula("x", "2 * x"))  # the second is the first one's derivative
OTHER_FORMULA = Formula("x", "x * x - 3")
TRIES = 64
MOST_ERRORS = 3


@dataclass(frozen=True)
class Tried:
    """What was found of one function.

    small, large   arguments that it answers, with small and with large axes; `other` has other numbers besides
    returns        axes of what it returns; {name: axes} of a tuple or dictionary; None where it is compared as it is
    kind           what came back, as a phrase: "a NumPy array"
    dtype          of the first floating part
    leaves         inputs that its result has a gradient with respect to
    errors         arguments instead of which it raises ValueError, each with the argument that the message mentions
    """

    function: Function
    small: Mapping[str, Any]
    large: Mapping[str, Any]
    other: Mapping[str, Any]
    returns: str | Mapping[str, str] | None
    kind: str
    dtype: str
    square: bool
    leaves: tuple[str, ...] = ()
    errors: tuple[tuple[Mapping[str, Any], str], ...] = ()


@dataclass
class Bench:
    """A sandbox with the solution."""

    solution: Solution
    sandbox: Sandbox
    said: str = field(default="", init=False)

    def tried(self, function: Function) -> Tried:
        """What is found of it; raises UsageError, with what was said last, where it answers nothing that is tried."""
        for arguments in itertools.islice(_choices(function), TRIES):
            small = _sized(arguments, SMALL)
            if (seen := self._answer(function, small)) is not None:
                return self._described(function, arguments, small, seen)
        raise UsageError(
            f"{function.name} answers nothing that was tried: {self.said or 'it has too many arguments'}. Say in its "
            "docstring what each argument is, one line each: `x   float[row column]`, `n   int`, `f   function`."
        )

    def _described(
        self, function: Function, arguments: Mapping[str, Any], small: Mapping[str, Any], seen: Mapping[str, Any]
    ) -> Tried:
        large: Mapping[str, Any] = _sized(arguments, LARGE)
        large = large if self._answer(function, large) is not None else small
        other = next((one for one in _varied(large) if self._answer(function, one) is not None), large)
        returns, square = _axes(function, seen, small)
        arrays = [array for array in seen["parts"].values() if array is not None and array.dtype.kind == "f"]
        dtype = arrays[0].dtype.name if arrays and self.solution.values != "python" else "float64"
        return Tried(
            function=function,
            small=small,
            large=large,
            other=other,
            returns=returns,
            kind="" if returns is None or self.solution.values == "torch" else seen["kind"],
            dtype=dtype if dtype in ("float32", "float64") else "float64",
            square=square,
            leaves=self._leaves(function, small) if isinstance(returns, str) else (),
            errors=tuple(itertools.islice(self._errors(function, small), MOST_ERRORS)) if function.refusals else (),
        )

    # Calls

    def _answer(self, function: Function, arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Parts and kind of what comes back, where it can be graded; else None, and `said` says why."""
        first = self.run(function, arguments, plain=True)
        if first.observation is None:
            self.said = _ending(first)
            return None
        kind, plain = first.observation.facts.get("kind"), first.observation.facts.get("result")
        names = _names(function, kind, plain)
        if not names:
            self.said = f"it returned {kind}"
            return None if kind == "nothing" else {"kind": kind, "parts": {}, "plain": plain}
        seen = self.run(function, arguments, returns=names)
        if seen.observation is None:
            self.said = _ending(seen)
            return None
        parts = {name: seen.observation.returned[name].array for name in names}
        if any(array is None or not np.isfinite(array).all() for array in parts.values()):
            self.said = "it returned numbers that are not finite"
            return None
        if not any(np.abs(array).max(initial=0) > 1e-3 for array in parts.values() if array is not None):
            self.said = "it returned nothing but zeros"
            return None
        return {"kind": kind, "parts": parts, "plain": plain}

    def run(self, function: Function, arguments: Mapping[str, Any], **more: Any) -> Outcome:
        """One call."""
        rng = np.random.default_rng(7)
        inputs: dict[str, Array] = {name: one.array(rng) for name, one in arguments.items() if isinstance(one, Drawn)}
        given = {
            name: one.drawn(rng) if isinstance(one, Number) else one
            for name, one in arguments.items()
            if not isinstance(one, Drawn | Formula)
        }
        formulas = {n: {"of": f.of, "is": f.expression} for n, f in arguments.items() if isinstance(f, Formula)}
        params: dict[str, Any] = {
            "function": function.name,
            "arguments": list(arguments),
            "values": self.solution.values,
            "returns": [],
        }
        params |= {"given": given, "formulas": formulas, **more}
        program = Program("solution", self.solution.text, {}, PROBES, self.solution.values == "torch")
        request = Request("trial", function.name, "call", params, safetensors.numpy.save(inputs), 5.0)
        return self.sandbox.run(program, [request], load_timeout=20.0)[0]

    def _leaves(self, function: Function, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        if self.solution.values != "torch":
            return ()
        floats = [name for name, one in arguments.items() if isinstance(one, Drawn) and one.kind != "whole"]
        seen = self.run(function, arguments, returns=[function.name], leaves=floats).observation
        if seen is None or not seen.returned[function.name].requires_grad:
            return ()
        found = {name: seen.returned.get(f"gradient {name}") for name in floats}
        return tuple(n for n, one in found.items() if one and one.array is not None and np.abs(one.array).max() > 1e-3)

    def _errors(self, function: Function, arguments: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
        seen: set[str] = set()
        for argument in function.arguments:
            for wrong in _wrong(arguments[argument.name]):
                instead = {argument.name: wrong}
                done = self.run(function, arguments, raises={"raised": instead}).observation
                raised = done.facts.get("raised") if done else None
                if isinstance(raised, dict) and "ValueError" in raised["types"] and raised["message"] not in seen:
                    seen.add(raised["message"])
                    if not any(part in raised["message"] for part in function.refusals):
                        continue  # NumPy's or Python's own, which no docstring promises
                    yield instead, argument.name if argument.name in raised["message"] else ""


def _ending(outcome: Outcome) -> str:
    raised = outcome.raised
    if raised is None:
        return outcome.exceeded or outcome.detail or outcome.status
    return f"{raised.types[0]}: {raised.message[:200]}" + (f" (line {raised.line})" if raised.line else "")


# What is tried


def _choices(function: Function) -> Iterator[dict[str, Any]]:
    """Arguments to try, the likeliest first: all arrays of one range, all numbers of one."""
    named = function.arguments
    shapes: list[tuple[str, ...] | None] = [None, ("row", "column"), ("entry",)]
    unshaped = any(one.kind == "array" and not one.axes for one in named)
    for default_axes in shapes[1:][::-1] if unshaped else shapes[:1]:
        for low, numbers in itertools.product(RANGES, range(4)):
            arguments = {one.name: _value(one, low, numbers, default_axes or ("entry",)) for one in named}
            functions = (one.name for one in named if one.kind == "function")
            yield arguments | dict(zip(functions, itertools.cycle(FORMULAS), strict=False))


def _value(argument: Argument, low: str, number: int, axes: tuple[str, ...]) -> Any:
    match argument.kind:
        case "array":
            kind = argument.likely if argument.likely and (number == 0 or argument.likely == "whole") else low
            return Drawn(" ".join(argument.axes or axes), (), kind)  # type: ignore[arg-type]
        case "number":
            if argument.range:
                return Number(*argument.range)
            return NUMBERS[number] if argument.default is None or number else float(argument.default)
        case "whole":
            return WHOLES[number] if argument.default is None or number else int(argument.default)
        case "function":
            return FORMULAS[0]
        case "flag":
            return bool(argument.default)
        case _:
            return str(argument.default or "text")


def _sized(arguments: Mapping[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """The arguments with a size for each axis: the same name the same size."""
    names: dict[str, int] = {}
    for one in arguments.values():
        for axis in one.axes.split() if isinstance(one, Drawn) else ():
            names.setdefault(axis, sizes[len(names) % len(sizes)] + len(names) // len(sizes))
    return {
        name: Drawn(one.axes, tuple(names[axis] for axis in one.axes.split()), one.kind)
        if isinstance(one, Drawn)
        else one
        for name, one in arguments.items()
    }


def _varied(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The same arguments with another whole number, flag or function."""
    for name, one in arguments.items():
        if isinstance(one, bool):
            yield {**arguments, name: not one}
        elif isinstance(one, int):
            yield from ({**arguments, name: other} for other in (one + 1, one + 2) if other != one)
        elif isinstance(one, float):
            yield from ({**arguments, name: other} for other in (0.5 * one + 0.25, one + 1.0) if other != one)
        elif one == FORMULAS[0]:
            yield {**arguments, name: OTHER_FORMULA}


def _wrong(value: Any) -> Sequence[Any]:
    """What a function may refuse in place of a value."""
    if isinstance(value, Drawn):
        return ([], [[]], [1.0], [[1.0]], [-1.0, -2.0], [0.0, 0.0], [[[1.0]]])
    if isinstance(value, bool | Formula):
        return ()
    if isinstance(value, str):
        return ("", "unheard-of")
    return (0, -1, -1.5, 1.5, 1000)


# What came back


def _names(function: Function, kind: Any, plain: Any) -> list[str]:
    """Names for the parts that are numbers; none where what comes back is compared as it is."""
    if kind in ("a tensor", "a NumPy array", "a number"):
        return [function.name]
    if isinstance(kind, str) and kind.startswith("a tuple of "):
        return [f"part{number}" for number in range(1, 1 + int(kind.rpartition(" ")[2]))]
    if isinstance(plain, dict) and plain and all(_is_numeric(one) for one in plain.values()):
        return list(plain)
    return [function.name] if isinstance(plain, list) and plain and _is_numeric(plain) else []


def _is_numeric(found: Any) -> bool:
    if isinstance(found, list):
        return bool(found) and all(map(_is_numeric, found))
    return isinstance(found, int | float) and not isinstance(found, bool)


def _axes(
    function: Function, seen: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[str | Mapping[str, str] | None, bool]:
    """The axes of each part, named as the arguments' axes of that size; and whether a size is there twice."""
    parts = seen["parts"]
    if not parts:
        return None, False
    names = {
        size: axis
        for one in arguments.values()
        if isinstance(one, Drawn)
        for axis, size in zip(one.axes.split(), one.sizes, strict=True)
    }
    found: dict[str, str] = {}
    square = False
    for name, array in parts.items():
        axes = [names.get(size, f"axis{place}") for place, size in enumerate(array.shape)]
        square |= len(set(array.shape)) < array.ndim
        found[name] = " ".join(axis if axes.count(axis) == 1 else f"{axis}{place}" for place, axis in enumerate(axes))
    return (found[function.name] if list(found) == [function.name] else found), square
