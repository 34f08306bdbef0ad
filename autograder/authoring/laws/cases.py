"""A planned call as a case: what the probe is told, and what must hold of what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.calls import AFTERWARDS, Formula, Oracle, is_numbers
from autograder.authoring.declarations import Draft, Expectation, error, fact, gradient, unchanged, value
from autograder.authoring.faults import CaseFault, Misnamed, likely
from autograder.authoring.laws.declaration import Arguments, Error, Function
from autograder.authoring.laws.laws import Call, Law
from autograder.sandbox.calls import Array
from autograder.vocabulary.report import Visibility

LAYOUTS = ("transposed", "sliced")  # ways to pass arrays


@dataclass(frozen=True)
class Planned:
    """A case to be: its name, the law that adds it, how it is called, what is looked at."""

    case: str
    visibility: Visibility
    function: Function
    law: Law
    call: Call
    aspects: frozenset[str]
    parts: tuple[str, ...] = ()


def draft_of(planned: Planned, arguments: Arguments, module: ModuleType, draw: Any = None) -> Draft:
    """Make the case of these arguments, which the oracle in that module answers."""
    function, call, aspects = planned.function, planned.call, planned.aspects
    options = {**function.tolerances.get(call.draw, {}), **function.options, **call.options}
    returns = function.returned(arguments)
    parts = {function.name: returns} if isinstance(returns, str) else returns or {}
    if unknown := [part for part in planned.parts if part not in (parts or [function.name])]:
        told = f"{planned.case}: its item judges the part {unknown[0]!r} of {function.name}"
        raise Misnamed(told, likely(unknown[0], parts))
    changes = {part: part.removesuffix(f" {AFTERWARDS}") for part in parts if part.endswith(f" {AFTERWARDS}")}
    formulas = {name: one for name, one in arguments.items() if isinstance(one, Formula)}
    arrays = [name for name, one in arguments.items() if isinstance(one, np.ndarray)]  # a draw may leave out some
    inputs = {name: np.asarray(one) for name, one in arguments.items() if name in arrays or is_numbers(one)}
    raises: Mapping[str, Error] = options.get("raises", {})

    def instead(stated: Any) -> Any:
        """Return what stands instead of an argument, which may depend on the usual ones."""
        found = stated(arguments) if callable(stated) else stated
        return found.tolist() if isinstance(found, np.ndarray) else found

    def judged(name: str, declared: Sequence[str], aspect: str) -> list[str]:
        usual = declared if aspect in aspects and not raises else ()
        return [argument for argument in options.get(name, usual) if argument in arrays]

    leaves = judged("leaves", function.leaves, "gradient")
    more = {
        "given": {name: one for name, one in arguments.items() if name not in inputs and name not in formulas},
        "plain": returns is None and not raises,
        "changes": [*changes.values()],
        "leaves": leaves,
        "constants": judged("constants", function.constants, "constants"),
        "by_name": [name for name in function.by_name if name in arguments],
        "gradients_of": [*options.get("gradients_of", ())],
        "formulas": {name: formula.stated for name, formula in formulas.items()},
        "raises": {name: {key: instead(one) for key, one in raised.instead.items()} for name, raised in raises.items()},
    }
    params: dict[str, Any] = {
        "function": function.name,
        "arguments": [*arguments],
        "values": function.values,
        "returns": [] if raises else [name for name in parts if name not in changes],
        **{name: entry for name, entry in more.items() if entry},
        **function.params,
        **call.params,
        "bound": True,
        "results": True,
    }
    if "also" in params:
        params["also"] = {
            label: way | {key: [name for name in way[key] if name in arrays] for key in LAYOUTS if key in way}
            for label, way in params["also"].items()
        }
    oracle = Oracle(module, draw, function.name, function.driver or "call", [*parts], leaves, formulas)
    return Draft(
        planned.case,
        call.title,
        function.driver or function.probe,
        inputs,
        Judged(planned, oracle, parts, options),
        params,
        free=(*arguments,),
        square="sizes are the law's",
        zero="values are the draw's",
        infinite=options.get("infinite", ""),
        sampled=options.get("sampled", ""),
        example=call.example,
        hint=planned.law.hint,
    )


@dataclass(frozen=True)
class Judged:
    """What must hold of a call, as far as its item looks at it: called with inputs and parameters."""

    planned: Planned
    oracle: Oracle
    parts: Mapping[str, str]
    options: Mapping[str, Any]

    def __call__(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        """Say all that must hold with these inputs and parameters."""
        name, aspects = self.planned.function.name, self.planned.aspects
        expected: list[Expectation] = []
        if "raises" not in params:
            expected += self._results(inputs, params)
        elif aspects & {"errors", "calls"}:
            for label, raised in self.options["raises"].items():
                shown = ", ".join(f"{key}={entry!r}" for key, entry in params["raises"][label].items())
                expected.append(error(label, f"{name} with {shown}", raised.kind, *raised.mentions))
        if "unmodified" not in aspects or "alike" in aspects:
            return expected
        expected += [
            unchanged(part, array, argument)
            for argument, array in inputs.items()
            if (part := f"{argument} {AFTERWARDS}") not in self.parts
        ]
        for argument, one in params.get("given", {}).items():
            if isinstance(one, list | dict) and argument not in params.get("changes", ()):
                message = f"{name} should leave {argument} as it is, {{expected}}, but afterwards it is {{observed}}."
                expected.append(fact(f"{argument} {AFTERWARDS}", argument, one, message))
        if params["values"] == "torch":
            message = f"{name} should leave requires_grad of its arguments as it is, but changed that of {{observed}}."
            expected.append(fact("tracked", "requires_grad of the arguments", [], message))
        return expected

    def _results(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[Expectation]:
        """Say what must come back: values and gradients; kind, calls and gradients of constants as facts."""
        function, aspects = self.planned.function, self.planned.aspects
        defaults = {name: default for name, default in function.defaults.items() if name not in inputs}
        names = [name for name in function.arguments if name in params["arguments"] or name in function.defaults]
        complete = {**params, "arguments": names, "given": {**defaults, **params.get("given", {})}}
        answer = self.oracle.answer(inputs, complete)  # which gets the defaults of what is left out
        message = f"{function.name} should return {{expected}}, but returned {{observed}}."
        if function.driver:  # it returns what it sees of an object
            message = f"What is seen of {function.name} should be {{expected}}, but is {{observed}}."
        found: list[Expectation] = []
        slopes: list[Expectation] = []
        if params.get("plain"):
            found.append(fact("result", "what is returned", answer["result"], message))
        else:
            floats = [array.dtype.name for array in inputs.values() if array.dtype.kind == "f"]
            usual = next(iter(floats), self.options.get("dtype", "float64"))
            dtype = "float64" if function.values == "python" else usual
            found += self._values(answer, dtype, inputs, params)
            for leaf in self.oracle.leaves:
                array = self.oracle.numbers(answer[f"gradient {leaf}"], f"{function.name}_gradient")
                axes, what = " ".join(function.axes(leaf)), f"the gradient with respect to {leaf}"
                slopes.append(gradient(f"gradient {leaf}", what, array, axes, dtype, **self._allowed))
        if function.detached and slopes and not any(np.any(slope.array) for slope in slopes):
            found, slopes = [replace(one, attached=None) for one in found], []
        kept = [one if one.kind == "fact" else self._kept(one) for one in found]
        if "alike" in aspects:
            yield from (one for one in kept if one and one.kind == "value" and "values" in aspects)
            same = [one for one in found if one.kind != "value" or self._is_judged(one)]
            for label in params["also"]:
                for one in [each for each in (*same, *slopes) if each.kind != "fact" or each.name == "result"]:
                    name, what = f"{one.name} {label}", f"{one.what} {label}"
                    yield replace(one, name=name, like=one.name, what=what, attached=None)
            return
        yield from filter(None, kept)
        if function.kind and "kind" in aspects:
            yield fact("kind", "what is returned", function.kind, message)
        for name in self.options.get("counted", ()):
            if name not in self.oracle.formulas:
                right = likely(name, self.oracle.formulas)
                raise CaseFault(f"{name!r} is not among the functions that are counted", right)
            message = f"{function.name} should call {name} {{expected}} times, but called it {{observed}} times."
            yield fact(f"calls of {name}", f"the calls of {name}", answer[f"calls of {name}"], message)
        for name in params.get("constants", ()):
            message = f"{name} should receive no gradient; the greatest that reaches it is {{observed}}."
            yield fact(f"pull of {name}", f"the gradient of {name}", 0.0, message)
        yield from slopes if "gradient" in aspects else ()

    @property
    def _allowed(self) -> dict[str, float]:
        return {name: self.options[name] for name in ("rtol", "atol") if name in self.options}

    def _is_judged(self, one: Expectation) -> bool:
        return not self.planned.parts or one.name in self.planned.parts

    def _kept(self, one: Expectation) -> Expectation | None:
        """Leave out a value that no law of the item looks at, or forgive it what none does."""
        aspects, is_judged = self.planned.aspects, self._is_judged(one)
        if not is_judged and "dtype" not in aspects:
            return None
        looked_at = aspects if is_judged else aspects - {"values"}
        forgiven = tuple(what for what in ("values", "dtype") if what not in looked_at)
        if "shape" not in aspects and not one.axes:  # [1] in place of [] is the business of values and sizes
            forgiven = (*forgiven, "axes")
        return replace(one, forgiven=forgiven, attached=one.attached if "gradient" in aspects else None)

    def _values(
        self, answer: Mapping[str, Any], dtype: str, inputs: Mapping[str, Array], params: Mapping[str, Any]
    ) -> Iterator[Expectation]:
        """Expect the parts that are returned, and what arguments hold that are changed in place."""
        function, options = self.planned.function, self.options
        changed = params.get("changes", ())
        differentiable = options.get("gradients_of") or params["returns"][:1]
        attached = False if options.get("constant") else bool(self.oracle.leaves) or None
        for name, axes in self.parts.items():
            if name not in answer:
                parts = likely(name, answer)
                raise CaseFault(f"{name!r} is not among the parts that {function.name} returns", parts)
            what = f"the {name}" if len(self.parts) > 1 else f"the result of {function.name}"
            argument = name.removesuffix(f" {AFTERWARDS}")
            if argument in changed and name != argument:
                what = f"{argument} after the call"
                if argument not in inputs:  # texts, a dictionary
                    message = f"{argument} should be {{expected}} after the call, but is {{observed}}."
                    yield fact(name, what, answer[name], message)
                    continue
            array, own = self.oracle.numbers(answer[name], function.name), dtype
            if array.dtype.kind == "b" and function.values == "torch":
                own = "bool"
            elif not array.ndim and function.values != "torch":
                own = "float64"
            elif array.dtype.kind in "iub" and function.values != "python" and array.ndim:
                own = "int64"
            graph = attached if name in differentiable else None
            yield value(name, what, array, axes, own, attached=graph, **self._allowed)
