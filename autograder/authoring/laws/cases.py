"""A planned call as a case: what the probe is told, and what must hold of what comes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.calls import AFTERWARDS, Formula, Oracle, as_python, is_numbers
from autograder.authoring.declarations import Draft, Expectation, error, fact, gradient, unchanged, value
from autograder.authoring.faults import CaseFault, Misnamed, likely
from autograder.authoring.laws.declaration import Arguments, Error, Function
from autograder.authoring.laws.laws import ELSEWHERE, Call, Law
from autograder.sandbox.calls import Array
from autograder.sandbox.worker.calling import keyed, unkeyed
from autograder.vocabulary.report import Visibility

LAYOUTS = ("transposed", "sliced")  # ways to pass arrays
RECORDED = "Under torch.no_grad() the caller wants no graph, but the result carries one."
MADE_ON_CPU = "On a GPU {observed} would be refused: it meets one of the arguments with a tensor of the CPU."


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
    tolerances = function.tolerances.get(call.draw, {}) if call.dtype in ("", function.dtypes[0]) else {}
    options = {**tolerances, **function.options, **call.options}
    declared = function.parts(arguments)
    parts = declared or {}
    if function.values == "python":  # what may change its length is a list, and no input
        grown = [name for name in arguments if parts.get(f"{name} {AFTERWARDS}", "") is None]
        lists = {name: arguments[name].tolist() for name in grown if isinstance(arguments[name], np.ndarray)}
        arguments = {**arguments, **lists}
    if unknown := [part for part in planned.parts if part not in (parts or [function.name])]:
        told = f"{planned.case}: its item judges the part {unknown[0]!r} of {function.name}"
        raise Misnamed(told, likely(unknown[0], parts))
    changes = [part.removesuffix(f" {AFTERWARDS}") for part in parts if part.endswith(f" {AFTERWARDS}")]
    formulas = {name: one for name, one in arguments.items() if isinstance(one, Formula)}
    arrays = [name for name, one in arguments.items() if isinstance(one, np.ndarray)]  # a draw may leave out some
    as_is = [part for part, axes in parts.items() if axes is None]
    plain = [name for name, kind in function.arguments.items() if kind == "other" and function.values != "python"]
    inputs = {
        name: np.asarray(one)
        for name, one in arguments.items()
        if name in arrays or (name not in plain and is_numbers(one) and f"{name} {AFTERWARDS}" not in as_is)
    }
    raises: Mapping[str, Error] = options.get("raises", {})

    def instead(stated: Any) -> Any:
        """Return what stands instead of an argument, which may depend on the usual ones."""
        made = stated(arguments) if callable(stated) else stated
        return made.tolist() if isinstance(made, np.ndarray) else made

    def tracked(name: str, usual: Sequence[str], aspect: str) -> list[str]:
        """List the leaves or constants among the arguments."""
        usual = usual if aspect in aspects and not raises else ()
        return [argument for argument in options.get(name, usual) if argument in arrays]

    leaves = tracked("leaves", function.leaves, "gradient")
    stated = {
        "given": {name: keyed(one) for name, one in arguments.items() if name not in inputs and name not in formulas},
        "plain": declared is None and not raises,
        "changes": changes,
        "as_is": [part for part in as_is if part.removesuffix(f" {AFTERWARDS}") not in changes],
        "leaves": leaves,
        "constants": tracked("constants", function.constants, "constants"),
        "by_name": [name for name in function.by_name if name in arguments],
        "gradients_of": [*options.get("gradients_of", ())],
        "formulas": {name: formula.stated for name, formula in formulas.items()},
        "raises": {name: {key: instead(one) for key, one in raised.instead.items()} for name, raised in raises.items()},
    }
    params: dict[str, Any] = {
        "function": function.name,
        "arguments": [*arguments],
        "values": function.values,
        "returns": [] if raises else [part for part in parts if part.removesuffix(f" {AFTERWARDS}") not in changes],
        **{name: entry for name, entry in stated.items() if entry},
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
        call.probe or function.driver or function.probe,
        inputs,
        Judged(planned, oracle, parts, options),
        params,
        free=(*arguments,),
        square="sizes are the law's",
        zero="values are the draw's",
        infinite=options.get("infinite", ""),
        sampled=options.get("sampled", ""),
        example=call.fixed is not None,
        hint=planned.law.hint,
    )


def with_answers(draft: Draft, function: Function, module: ModuleType) -> Draft:
    """Add what the oracle in that module says of other functions that students may call, in each call of the case."""
    usual, rows = {**unkeyed(draft.params.get("given", {})), **draft.inputs}, list[list[Any]]()
    for entry in [{}, *draft.params.get("calls", ())]:
        other = {name: draft.inputs[one["input"]] if name in draft.inputs else one for name, one in entry.items()}
        arguments = {
            name: one.astype(np.float64) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one
            for name, one in (usual | other).items()
        }
        for name, passed in function.answered.items():
            given = [np.asarray(one).tolist() for one in passed(arguments)]
            rows.append([name, given, getattr(module, name)(*passed(arguments)).tolist()])
    return replace(draft, params={**draft.params, "answered": rows}) if rows else draft


@dataclass(frozen=True)
class Judged:
    """What must hold of a call, as far as its item looks at it: called with inputs and parameters."""

    planned: Planned
    oracle: Oracle
    parts: Mapping[str, str | None]
    options: Mapping[str, Any]

    def __call__(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        """Say all that must hold with these inputs and parameters."""
        function, aspects = self.planned.function, self.planned.aspects
        if self.planned.call.probe == ELSEWHERE:  # nothing but where it computes
            message = f"{function.name} should compute where its arguments are, on a GPU as on the CPU; "
            message += "yours computes {observed}."
            place = fact("place", "the device of the arguments", "where they are", message)
            return [place, fact("fault", "tensors that are made on the CPU", None, MADE_ON_CPU, diagnosis=True)]
        expected: list[Expectation] = []
        if "raises" not in params:
            expected += self._results(inputs, params)
        elif "errors" in aspects:
            for label, raised in self.options["raises"].items():
                shown = ", ".join(f"{key}={as_python(entry)}" for key, entry in params["raises"][label].items())
                expected.append(error(label, f"{function.name} with {shown}", raised.kind, *raised.mentions))
        if "unmodified" in aspects:
            for argument, array in inputs.items():
                if f"{argument} {AFTERWARDS}" not in self.parts:  # else it is changed in place
                    expected.append(unchanged(f"{argument} {AFTERWARDS}", array, argument))
            left = f"{function.name} should leave"
            for argument, one in params.get("given", {}).items():
                if isinstance(one, list | dict) and argument not in params.get("changes", ()):
                    message = f"{left} {argument} as it is, {{expected}}, but afterwards it is {{observed}}."
                    expected.append(fact(f"{argument} {AFTERWARDS}", argument, one, message))
            if params["values"] == "torch":
                message = f"{left} requires_grad of its arguments as it is, but changed that of {{observed}}."
                expected.append(fact("tracked", "requires_grad of the arguments", [], message))
        if not params.get("recording", True) and not isinstance(function.returns, Mapping):
            expected.append(fact("graph", "a graph", False, RECORDED))
        return expected

    def _results(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Iterator[Expectation]:
        """Expect what comes back: values and gradients; kind, calls and gradients of constants as facts."""
        function, aspects = self.planned.function, self.planned.aspects
        names = [name for name in function.arguments if name in params["arguments"] or name in function.defaults]
        left_out = {name: keyed(default) for name, default in function.defaults.items() if name not in inputs}
        complete = {**params, "arguments": names, "given": {**left_out, **params.get("given", {})}}
        answer = self.oracle.answer(inputs, complete)
        message = f"{function.name} should return {{expected}}, but returned {{observed}}."
        if function.driver:  # it returns what it sees of an object
            message = f"What is seen of {function.name} should be {{expected}}, but is {{observed}}."
        returned: list[Expectation] = []
        slopes: list[Expectation] = []
        if params.get("plain"):
            returned = [fact("result", "what is returned", answer["result"], message)]
        else:
            floats = [array.dtype.name for array in inputs.values() if array.dtype.kind == "f"]
            usual = floats[0] if floats else self.options.get("dtype", "float64")
            dtype = "float64" if function.values == "python" else usual
            returned = [*self._values(answer, dtype, inputs, params)]
            for leaf in self.oracle.leaves:
                array = self.oracle.numbers(answer[f"gradient {leaf}"], f"{function.name}_gradient")
                axes, what = " ".join(function.axes(leaf)), f"the gradient with respect to {leaf}"
                slopes.append(gradient(f"gradient {leaf}", what, array, axes, dtype, **self._allowed))
        if function.detached and slopes and not any(np.any(slope.array) for slope in slopes):
            returned, slopes = [replace(one, attached=None) for one in returned], []
        if "alike" in aspects:
            yield from self._alike(returned, slopes, params["also"])
            return
        yield from filter(None, map(self._kept, returned))
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

    def _alike(
        self, returned: Sequence[Expectation], slopes: Sequence[Expectation], ways: Sequence[str]
    ) -> Iterator[Expectation]:
        """Expect the same in each way to call, and right values in the first where the item is about these."""
        if "values" in self.planned.aspects:
            yield from filter(None, (self._kept(one) for one in returned if one.kind == "value"))
        same = [one for one in returned if one.name == "result" or self._is_judged(one)]
        for label in ways:
            for one in (*same, *slopes):
                name, what = f"{one.name} {label}", f"{one.what} {label}"
                yield replace(one, name=name, like=one.name, what=what, attached=None)

    @property
    def _allowed(self) -> dict[str, float]:
        return {name: self.options[name] for name in ("rtol", "atol") if name in self.options}

    def _is_judged(self, one: Expectation) -> bool:
        return not self.planned.parts or one.name in self.planned.parts

    def _kept(self, one: Expectation) -> Expectation | None:
        """Leave out a value that no law of the item looks at, or forgive it what none does."""
        if one.kind == "fact":
            return one if self._is_judged(one) or one.name not in self.parts else None
        aspects = self.planned.aspects if self._is_judged(one) else self.planned.aspects - {"values"}
        if not self._is_judged(one) and "dtype" not in aspects:
            return None
        forgiven = tuple(what for what in ("values", "dtype") if what not in aspects)
        if "shape" not in aspects and not one.axes:  # [1] in place of [] is the business of values and sizes
            forgiven = (*forgiven, "axes")
        return replace(one, forgiven=forgiven, attached=one.attached if "gradient" in aspects else None)

    def _values(
        self, answer: Mapping[str, Any], usual: str, inputs: Mapping[str, Array], params: Mapping[str, Any]
    ) -> Iterator[Expectation]:
        """Expect the parts that are returned, and what arguments hold that are changed in place."""
        function, options = self.planned.function, self.options
        differentiable = options.get("gradients_of") or params["returns"][:1]
        attached = False if options.get("constant") else bool(self.oracle.leaves) or None
        for name, axes in self.parts.items():
            if name not in answer:
                parts = likely(name, answer)
                raise CaseFault(f"{name!r} is not among the parts that {function.name} returns", parts)
            what = f"the {name}" if len(self.parts) > 1 else f"the result of {function.name}"
            argument = name.removesuffix(f" {AFTERWARDS}")
            message = f"{what.removeprefix('the ')} should be {{expected}}, but is {{observed}}."
            if name not in params["returns"]:
                what = f"{argument} after the call"
                message = f"{argument} should be {{expected}} after the call, but is {{observed}}."
                if argument not in inputs and params.get("given", {}).get(argument) is None:
                    continue  # None, or it is left out
            if axes is None or (name not in params["returns"] and argument not in inputs):
                yield fact(name, what, self.oracle.as_it_is(answer[name]), message)
                continue
            array, dtype = self.oracle.numbers(answer[name], function.name), usual
            if not array.ndim and function.values != "torch":
                dtype = "float64"
            elif array.dtype.kind == "b" and function.values != "python":
                dtype = "bool"
            elif array.ndim and array.dtype.kind in "iu" and function.values != "python":
                dtype = "int64"
            graph = attached if name in differentiable else None
            yield value(name, what, array, axes, dtype, attached=graph, **self._allowed)
