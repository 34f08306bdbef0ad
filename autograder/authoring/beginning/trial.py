"""The solution, tried in the sandbox: which arguments it answers, what it returns, what it refuses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import safetensors.numpy

from autograder.authoring.beginning.arguments import (
    LARGE,
    SMALL,
    choices,
    others,
    sized,
    unanswered,
    worded,
    wrong,
)
from autograder.authoring.beginning.signatures import Function, Solution
from autograder.authoring.beginning.unchecked import REFUSAL, unchecked
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
MOST_ERRORS = 3
SEEDS = range(7, 15)  # what answers numbers of one draw alone would be refused in the next term


class Unanswered(UsageError):  # noqa: N818 (a kind of UsageError, which is one)
    """No arguments were found that a function answers: a sentence, and the function."""

    def __str__(self) -> str:
        """The sentence."""
        return str(self.args[0])

    @property
    def function(self) -> Function:
        """The function."""
        found: Function = self.args[1]
        return found


@dataclass(frozen=True)
class Tried:
    """What was found of one function.

    small, large   arguments that it answers, with small and with large axes; `other` has other numbers besides, and
                   `brief` lacks those that have a default; the same as `large` where there are none
    returns        axes of what it returns; {name: axes} of a tuple or dictionary; None where it is compared as it is
    kind           what came back, as a phrase: "a NumPy array"
    dtype          of the first floating part
    leaves         inputs that its result has a gradient with respect to
    errors         arguments that a check of its own refuses with ValueError, each with the argument that its text must
                   mention, where the docstring asks for that
    worded         for each other word that an argument may be, the same with it in `large`
    """

    function: Function
    small: Mapping[str, Any]
    large: Mapping[str, Any]
    other: Mapping[str, Any]
    brief: Mapping[str, Any]
    returns: str | Mapping[str, str] | None
    kind: str
    dtype: str
    square: bool
    leaves: tuple[str, ...] = ()
    errors: tuple[tuple[Mapping[str, Any], str], ...] = ()
    worded: Mapping[str, Tried] = field(default_factory=dict)


@dataclass
class Bench:
    """A sandbox with the solution."""

    solution: Solution
    sandbox: Sandbox
    said: str = field(default="", init=False)

    def tried(self, function: Function) -> Tried:
        """What is found of it; raises Unanswered, with the likeliest call, where it answers nothing that is tried."""
        told = ""
        for arguments in choices(function):
            small = sized(arguments, SMALL)
            seen = self._answer(function, small)
            if seen is None:
                told = told or unanswered(function, small, SEEDS[0], self.said)
                continue
            refused = next((seed for seed in SEEDS[1:] if self._answer(function, small, seed) is None), None)
            if refused is None:
                return self._described(function, arguments, small, seen)
            told = unanswered(function, small, refused, self.said)
        raise Unanswered(told, function)

    def _described(
        self, function: Function, arguments: Mapping[str, Any], small: Mapping[str, Any], seen: Mapping[str, Any]
    ) -> Tried:
        large: Mapping[str, Any] = sized(arguments, LARGE)
        large = large if self._answer(function, large) is not None else small
        other = self._other(function, large)
        brief: Mapping[str, Any] = {one.name: large[one.name] for one in function.needed}
        brief = brief if brief != large and self._answer(function, brief) is not None else large
        arrays = [array for array in seen["parts"].values() if array is not None and array.dtype.kind == "f"]
        dtype = arrays[0].dtype.name if arrays and self.solution.values != "python" else "float64"
        found = Tried(
            function=function,
            small=small,
            large=large,
            other=other,
            brief=brief,
            **self._seen(function, seen, small),
            dtype=dtype if dtype in ("float32", "float64") else "float64",
            errors=tuple(itertools.islice(self._errors(function, small), MOST_ERRORS))
            if function.promises_errors
            else (),
        )
        leaves = self._leaves(function, small) if isinstance(found.returns, str) else ()
        return replace(found, leaves=leaves, worded=dict(self._worded(found)))

    def _other(self, function: Function, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with each whole number, flag and function another, where that is answered in the same shape."""
        seen = self._answer(function, arguments)
        for name, value in arguments.items():
            for other in others(value):
                changed = {**arguments, name: other}
                if (answer := self._answer(function, changed)) is not None and _is_alike(answer, seen):
                    arguments = changed
                    break
        return arguments

    def _worded(self, found: Tried) -> Iterator[tuple[str, Tried]]:
        for word, arguments in worded(found.function, found.large):
            if (seen := self._answer(found.function, arguments)) is not None:
                yield word, replace(found, large=arguments, **self._seen(found.function, seen, arguments))

    def _seen(self, function: Function, seen: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What came back, as Tried describes it."""
        returns, square = _axes(function, seen, arguments)
        kind = "" if returns is None or self.solution.values == "torch" else seen["kind"]
        return {"returns": returns, "kind": kind, "square": square}

    # Calls

    def _answer(
        self, function: Function, arguments: Mapping[str, Any], seed: int = SEEDS[0]
    ) -> Mapping[str, Any] | None:
        """Parts and kind of what comes back, where it can be graded; else None, and `said` says why."""
        first = self.run(function, arguments, seed=seed, plain=True)
        if first.observation is None:
            self.said = _ending(first)
            return None
        kind, plain = first.observation.facts.get("kind"), first.observation.facts.get("result")
        names = _names(function, kind, plain)
        if not names:
            self.said = f"it returned {kind}"
            return None if kind == "nothing" else {"kind": kind, "parts": {}, "plain": plain}
        seen = self.run(function, arguments, seed=seed, returns=names)
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

    def run(
        self, function: Function, arguments: Mapping[str, Any], text: str = "", seed: int = SEEDS[0], **more: Any
    ) -> Outcome:
        """One call, of the solution or of another text."""
        rng = np.random.default_rng(seed)
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
        program = Program("solution", text or self.solution.text, {}, PROBES, self.solution.values == "torch")
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
        """What is refused by the solution's own checks: without them, another thing happens."""
        without = unchecked(self.solution.text)
        seen: set[tuple[str, str]] = set()
        for argument in function.arguments:
            for refused in wrong(arguments[argument.name]):
                instead = {argument.name: refused}
                message = self._refused(function, arguments, instead, self.solution.text)
                if message is None or (argument.name, message) in seen:
                    continue
                if self._refused(function, arguments, instead, without) is None:
                    seen.add((argument.name, message))
                    is_asked = function.asks_to_mention(argument.name) and argument.name in message
                    yield instead, argument.name if is_asked else ""

    def _refused(
        self, function: Function, arguments: Mapping[str, Any], instead: Mapping[str, Any], text: str
    ) -> str | None:
        """What the ValueError says that a call with these arguments instead raises; None where it raises none."""
        done = self.run(function, arguments, text=text, raises={"raised": instead}).observation
        raised = done.facts.get("raised") if done else None
        return str(raised["message"]) if isinstance(raised, dict) and REFUSAL in raised["types"] else None


def _ending(outcome: Outcome) -> str:
    raised = outcome.raised
    if raised is None:
        return outcome.exceeded or outcome.detail or outcome.status
    return f"{raised.types[0]}: {raised.message[:200]}" + (f" (line {raised.line})" if raised.line else "")


# What came back


def _names(function: Function, kind: Any, plain: Any) -> list[str]:
    """Names for the parts that are numbers; none where what comes back is compared as it is."""
    if kind in ("a tensor", "a NumPy array", "a number"):
        return [function.name]
    if isinstance(kind, str) and kind.startswith("a tuple of "):
        count = int(kind.rpartition(" ")[2])
        return list(function.parts) if len(function.parts) == count else [f"part{n}" for n in range(1, 1 + count)]
    if isinstance(plain, dict) and plain and all(_is_numeric(one) for one in plain.values()):
        return list(plain)
    return [function.name] if isinstance(plain, list) and plain and _is_numeric(plain) else []


def _is_alike(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether both are of one kind, and each part of as many axes."""
    return _form(one) == _form(other)


def _form(seen: Mapping[str, Any] | None) -> object:
    return seen and (seen["kind"], {name: array.ndim for name, array in seen["parts"].items()})


def _is_numeric(found: Any) -> bool:
    if isinstance(found, list):
        return bool(found) and all(map(_is_numeric, found))
    return isinstance(found, int | float) and not isinstance(found, bool)


def _axes(
    function: Function, seen: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[str | Mapping[str, str] | None, bool]:
    """The axes of each part, named as the docstring says or as the arguments' axes of that size; and whether a size is
    there twice.
    """
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
        if name == function.name and len(set(function.axes)) == array.ndim:
            axes = list(function.axes)
        found[name] = " ".join(axis if axes.count(axis) == 1 else f"{axis}{place}" for place, axis in enumerate(axes))
    return (found[function.name] if list(found) == [function.name] else found), square
