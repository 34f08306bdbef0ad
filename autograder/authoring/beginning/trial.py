"""The solution, tried in the sandbox: which arguments it answers, what it returns, what it refuses."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import safetensors.numpy

from autograder.authoring.beginning.answers import (
    RANDOM,
    Refused,
    Tried,
    Unanswered,
    axes_of,
    changed_arguments,
    ending,
    is_alike,
    is_the_same,
    names_of,
    nothing_to_compare,
    ungraded,
    unread,
)
from autograder.authoring.beginning.arguments import (
    SIZES,
    choices,
    every_draw,
    larger,
    others,
    sized,
    unanswered,
    with_wholes,
    worded,
    wrong,
)
from autograder.authoring.beginning.signatures import Function, Solution
from autograder.authoring.calls import Drawn, Formula, Number
from autograder.authoring.exam.refusals import REFUSAL, unchecked
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.observation import Array
from autograder.sandbox.sandbox import Sandbox

PROBES = '''\
"""How a worker calls the functions: the engine's own probe does. Others of your own may stand below."""

from autograder.sandbox.inside.calling import call

__all__ = ["call"]
'''
MOST_ERRORS = 3
NUMBER = re.compile(r"-?\d+(\.\d+)?")
ZEROS = "it returned nothing but zeros"
SEEDS = range(7, 15)  # what answers numbers of one draw alone would be refused in the next term


@dataclass
class Bench:
    """A sandbox with the solution."""

    solution: Solution
    sandbox: Sandbox
    said: str = field(default="", init=False)
    is_final: bool = field(default=False, init=False)  # whether no other arguments could be answered better

    def tried(self, function: Function) -> Tried:
        """What is found of it; raises Unanswered, with the likeliest call, where it answers nothing that is tried."""
        told, self.is_final = "", False
        for sizes, larger_sizes in itertools.pairwise(SIZES):
            vanished = False
            for arguments in choices(function):
                small = sized(function, arguments, sizes)
                seen = self._answer(function, small)
                if seen is None and self.is_final:
                    raise Unanswered((ungraded(function.name, self.said), function))
                if seen is None:
                    vanished |= self.said == ZEROS
                    told = told or unanswered(function, small, SEEDS[0], self.said)
                    continue
                refused = self._refused_draw(function, small, may_vanish=sizes != SIZES[0])
                if refused is None:
                    if not is_the_same(seen, self._answer(function, small)):
                        raise Unanswered((ungraded(function.name, RANDOM), function))
                    return self._described(function, sized(function, arguments, larger_sizes), small, seen)
                vanished |= self.said == ZEROS
                told = unanswered(function, small, refused, self.said)
            if not vanished:
                break  # more numbers will not be answered either
        raise Unanswered((told, function))

    def all_tried(self) -> list[Tried]:
        """What is found of each function; raises Unanswered of all those that answer nothing."""
        found, refused = list[Tried](), list[Any]()
        for one in self.solution.functions:
            try:
                found.append(self.tried(one))
            except Unanswered as told:
                refused += told.args
        if refused:
            raise Unanswered(*refused)
        return found

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
        large, other, brief = (self._varied(function, one) for one in (large, other, brief))
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
        parts, leaves = self._leaves(function, small, found)
        return replace(found, gradients_of=parts, leaves=leaves, worded=dict(self._worded(found)))

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
        for one in function.arguments:
            for other in others(one, arguments[one.name]):
                changed = {**arguments, one.name: other}
                if (answer := self._answer(function, changed)) is not None and is_alike(answer, seen):
                    arguments = changed
                    break
        return arguments

    def _varied(self, function: Function, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments with whole numbers drawn where nothing else is, if all that can be drawn is answered alike."""
        varied = with_wholes(function, arguments)
        seen = self._answer(function, arguments) if varied != arguments else None
        answers = (self._answer(function, one) for one in every_draw(varied)) if seen else ()
        return varied if seen and all(is_alike(one, seen) for one in answers) else arguments

    def _worded(self, found: Tried) -> Iterator[tuple[str, Tried]]:
        for word, arguments in worded(found.function, found.large):
            if (seen := self._answer(found.function, arguments)) is not None:
                yield word, replace(found, large=arguments, **self._seen(found.function, seen, arguments))

    def _seen(self, function: Function, seen: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What came back, as Tried describes it."""
        returns, square = axes_of(function, seen, arguments)
        is_told = self.solution.values != "torch" or seen["kind"] in ("a list", "a dictionary")
        kind = seen["kind"] if is_told and returns is not None else ""
        infinite = any(np.isinf(array).any() for array in seen["parts"].values() if array is not None)
        return {"returns": returns, "kind": kind, "square": square, "infinite": infinite}

    # Calls

    def _answer(
        self, function: Function, arguments: Mapping[str, Any], seed: int = SEEDS[0]
    ) -> Mapping[str, Any] | None:
        """Parts and kind of what comes back, where it can be graded; else None, and `said` says why."""
        try:
            inputs = self._inputs(arguments, seed)
        except ValueError as error:  # there are too few numbers of the kind that the docstring asks for
            self.said = str(error)
            return None
        first = self.run(function, arguments, seed=seed, plain=True)
        if first.observation is None:
            self.said = ending(first)
            if first.loading:
                raise Unanswered((f"{self.solution.path} cannot be loaded: {self.said}.", function))
            return None
        kind, plain = first.observation.facts.get("kind"), first.observation.facts.get("result")
        names = names_of(function, kind, plain, first.observation.facts.get("parts"))
        if not names:
            self.said = nothing_to_compare(kind, plain)
            self.is_final = bool(self.said)
            return None if self.said else {"kind": kind, "parts": {}, "plain": plain}
        seen = self.run(function, arguments, seed=seed, returns=names)
        if seen.observation is None:
            self.said = ending(seen)
            return None
        parts = {name: seen.observation.returned[name].array for name in names}
        if any(array is None for array in parts.values()):
            self.said, self.is_final = unread(kind, self.solution.values), True
            return None
        if changed := changed_arguments(seen.observation.returned, inputs):
            self.said, self.is_final = f"it changes its argument {changed[0]}, which must stay as it is", True
            return None
        if any(np.isnan(array).any() for array in parts.values() if array is not None):
            self.said = "it returned nan, which no answer equals and which is not graded"
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
        inputs = {name: one.array(rng) for name, one in arguments.items() if isinstance(one, Drawn)}
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
        by_name = [one.name for one in function.arguments if one.by_name and one.name in arguments]
        params |= {"given": given, "formulas": formulas, "by_name": by_name, **more}
        program = Program("solution", text or self.solution.text, {}, PROBES, self.solution.values == "torch")
        request = Request("trial", function.name, "call", params, safetensors.numpy.save(inputs), 5.0)
        return self.sandbox.run(program, [request], load_timeout=20.0)[0]

    def _inputs(self, arguments: Mapping[str, Any], seed: int) -> dict[str, Array]:
        rng = np.random.default_rng(seed)
        return {name: one.array(rng) for name, one in arguments.items() if isinstance(one, Drawn)}

    def _leaves(
        self, function: Function, arguments: Mapping[str, Any], tried: Tried
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The parts of what it returns that carry a graph, and the inputs that these have a gradient in."""
        if self.solution.values != "torch" or tried.infinite or not tried.parts:
            return (), ()
        floats = [name for name, one in arguments.items() if isinstance(one, Drawn) and one.kind != "whole"]
        names = list(tried.parts)
        seen = self.run(function, arguments, returns=names, leaves=floats).observation
        parts = [name for name in names if seen and seen.returned[name].requires_grad]
        seen = self.run(function, arguments, returns=names, leaves=floats, gradients_of=parts).observation
        if seen is None or not parts:
            return (), ()
        found = {name: seen.returned.get(f"gradient {name}") for name in floats}
        leaves = [n for n, one in found.items() if one and one.array is not None and np.abs(one.array).max() > 1e-3]
        return tuple(parts), tuple(leaves)

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
