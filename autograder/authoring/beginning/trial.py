"""The solution, tried in the sandbox: which arguments it answers, what it returns, what it refuses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import safetensors.numpy

from autograder.authoring.beginning.answers import axes_of, is_alike, names_of
from autograder.authoring.beginning.arguments import (
    SIZES,
    choices,
    larger,
    others,
    sized,
    unanswered,
    worded,
    wrong,
)
from autograder.authoring.beginning.signatures import Function, Solution
from autograder.authoring.calls import Drawn, Formula, Number
from autograder.authoring.exam.refusals import REFUSAL, unchecked
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
NUMBER = re.compile(r"-?\d+(\.\d+)?")
ZEROS = "it returned nothing but zeros"
Refused = Mapping[str, Any]
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
        for sizes, larger_sizes in itertools.pairwise(SIZES):
            vanished = False
            for arguments in choices(function):
                small = sized(arguments, sizes)
                seen = self._answer(function, small)
                if seen is None:
                    vanished |= self.said == ZEROS
                    told = told or unanswered(function, small, SEEDS[0], self.said)
                    continue
                refused = self._refused_draw(function, small, may_vanish=sizes != SIZES[0])
                if refused is None:
                    return self._described(function, sized(arguments, larger_sizes), small, seen)
                vanished |= self.said == ZEROS
                told = unanswered(function, small, refused, self.said)
            if not vanished:  # more numbers will not be answered either
                break
        raise Unanswered(told, function)

    def _refused_draw(self, function: Function, arguments: Mapping[str, Any], *, may_vanish: bool) -> int | None:
        """The first seed of numbers that are not answered, or with nothing but zeros where these are not to come."""
        for seed in SEEDS[1:]:
            if self._answer(function, arguments, seed) is None and not (may_vanish and self.said == ZEROS):
                return seed
        return None

    def _described(
        self, function: Function, large: Mapping[str, Any], small: Mapping[str, Any], seen: Mapping[str, Any]
    ) -> Tried:
        large = self._large(function, large) or small
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
            errors=self._chosen_errors(function, small) if function.promises_errors else (),
        )
        leaves = self._leaves(function, small) if isinstance(found.returns, str) else ()
        return replace(found, leaves=leaves, worded=dict(self._worded(found)))

    def _large(self, function: Function, large: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Arguments with large axes, and with counts that are larger too where they are answered in the same shape."""
        seen = self._answer(function, large)
        for one in function.arguments if seen else ():
            for more in larger(one, large[one.name]):
                changed = {**large, one.name: more}
                if (answer := self._answer(function, changed)) is not None and is_alike(answer, seen):
                    large = changed
                    break
        return large if seen else None

    def _other(self, function: Function, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with each whole number, flag and function another, where that is answered in the same shape."""
        seen = self._answer(function, arguments)
        for name, value in arguments.items():
            for other in others(value):
                changed = {**arguments, name: other}
                if (answer := self._answer(function, changed)) is not None and is_alike(answer, seen):
                    arguments = changed
                    break
        return arguments

    def _worded(self, found: Tried) -> Iterator[tuple[str, Tried]]:
        for word, arguments in worded(found.function, found.large):
            if (seen := self._answer(found.function, arguments)) is not None:
                yield word, replace(found, large=arguments, **self._seen(found.function, seen, arguments))

    def _seen(self, function: Function, seen: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What came back, as Tried describes it."""
        returns, square = axes_of(function, seen, arguments)
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
        names = names_of(function, kind, plain)
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
            is_empty = all(array.size == 0 for array in parts.values() if array is not None)
            self.said = "it returned no entries" if is_empty else ZEROS
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

    def _chosen_errors(self, function: Function, arguments: Mapping[str, Any]) -> tuple[tuple[Refused, str], ...]:
        """Some of what is refused: for each reason one, and another one while there are few."""
        found: dict[tuple[str, str], list[tuple[Refused, str]]] = {}
        for reason, refused in self._errors(function, arguments):
            found.setdefault(reason, []).append(refused)
        chosen = [several[0] for several in found.values()]
        chosen += [several[-1] for several in found.values() if len(several) > 1]
        return tuple(chosen[:MOST_ERRORS])

    def _errors(
        self, function: Function, arguments: Mapping[str, Any]
    ) -> Iterator[tuple[tuple[str, str], tuple[Refused, str]]]:
        """What is refused by the solution's own checks: without them, another thing happens. The reason comes first."""
        without = unchecked(self.solution.text)
        for argument in function.arguments:
            for refused in wrong(arguments[argument.name]):
                instead = {argument.name: refused}
                message = self._refused(function, arguments, instead, self.solution.text)
                if message is None or self._refused(function, arguments, instead, without) is not None:
                    continue
                is_asked = function.asks_to_mention(argument.name) and argument.name in message
                yield (argument.name, NUMBER.sub("", message)), (instead, argument.name if is_asked else "")

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
