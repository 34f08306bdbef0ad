"""Cases as declarations: a call of one function, with what its oracle says must come back.

    calls = Calls(secret, draw, oracle, values="numpy")
    yield calls.case("softmax-small", "two rows", "softmax", {"x": Drawn("row column", (2, 3))}, "row column")

What runs it is the engine's own probe, `autograder.sandbox.inside.calling.call`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from autograder.authoring.declarations import (
    Draft,
    Expectation,
    error,
    fact,
    generator_for,
    gradient,
    unchanged,
    value,
)
from autograder.authoring.draws import Drawn, Formula, Number
from autograder.sandbox.observation import Array
from autograder.vocabulary.errors import FixtureError

__all__ = ["Calls", "Drawn", "Formula", "Number"]

Values = Literal["torch", "numpy", "python"]
OWN_ORACLE = "NOT_INDEPENDENT"
AFTERWARDS = "afterwards"
FORGIVEN: Mapping[bool | None, tuple[str, ...]] = {None: (), True: ("values",), False: ("dtype",)}


@dataclass(frozen=True)
class Calls:
    """What makes the drafts of an assignment.

    oracle   its module: a function of each graded function's name, and `<name>_gradient` where gradients are judged. Of
             those that its NOT_INDEPENDENT lists the solution itself is asked
    values   what inputs are and what is to come back: tensors, NumPy arrays, or lists and numbers
    """

    secret: str
    draw: Any
    oracle: ModuleType
    values: Values = "torch"

    def __post_init__(self) -> None:
        """Raise ValueError where values are of no known kind."""
        if self.values not in get_args(Values):
            raise ValueError(f"the values of Calls are one of {', '.join(get_args(Values))}, not {self.values!r}")

    def case(
        self,
        case: str,
        title: str,
        function: str,
        arguments: Mapping[str, Any],
        returns: str | Mapping[str, str] | None = "",
        *,
        dtype: str = "float64",
        leaves: Sequence[str] = (),
        raises: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]] | None = None,
        kind: str = "",
        counted: Sequence[str] = (),
        stand_ins: Mapping[str, Formula] | None = None,
        constant: bool = False,
        form: bool | None = None,
        free: Sequence[str] = (),
        square: str = "",
        example: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Draft:
        """One call.

        arguments   in order: a Drawn, an array or a list of numbers (an input that must stay as it is), a Number, a
                    Formula, else what JSON knows
        returns     names of its axes, "" of a number; {name: axes} of a tuple or dictionary; None where what comes back
                    is compared as it is (text, truth values, lists of them)
        leaves      inputs that require a gradient; the result must then carry a graph
        raises      {name: (arguments instead, words that the message must hold)}: calls that must raise ValueError;
                    what the first call returns is then not judged. No Formula can stand instead
        kind        what must come back: "a NumPy array", "a list", "a number"
        counted     formulas that must be called as often as the oracle calls them
        stand_ins   what the function calls in place of the student's own function of that name
        constant    whether the result must carry no graph
        form        True: dtypes, kind and arguments afterwards alone are judged; False: all but these; None: everything
        """
        for name, refusal in (raises or {}).items():
            _check_refusal(name, refusal, arguments)
        raised = {
            name: ({key: self._instead(one, f"{case} {name} {key}") for key, one in instead.items()}, mentions)
            for name, (instead, mentions) in (raises or {}).items()
        }
        given_kind = "" if form is False else kind
        spec = _Spec(self, function, returns, dtype, tuple(leaves), raised, given_kind, tuple(counted), constant, form)
        inputs: dict[str, Array] = {}
        given: dict[str, Any] = {}
        for name, one in arguments.items():
            if isinstance(one, Drawn):
                inputs[name] = one.array(generator_for(self.secret, f"{case} {name}")).astype(_own(one, dtype))
            elif isinstance(one, np.ndarray) or _is_numbers(one):
                inputs[name] = np.asarray(one)
            elif isinstance(one, Number):
                given[name] = one.drawn(generator_for(self.secret, f"{case} {name}"))
            elif not isinstance(one, Formula):
                given[name] = one
        formulas = {name: one for name, one in arguments.items() if isinstance(one, Formula)}
        params: dict[str, Any] = {
            "function": function,
            "arguments": list(arguments),
            "values": self.values,
            "returns": [] if returns is None or raises else list(spec.parts),
        }
        params |= {"given": given} if given else {}
        params |= {"plain": True} if returns is None and not raises else {}
        params |= {"leaves": list(leaves)} if leaves else {}
        params |= {"formulas": _stated(formulas)} if formulas else {}
        params |= {"stand_ins": _stated(stand_ins)} if stand_ins else {}
        params |= {"raises": {name: instead for name, (instead, _) in raised.items()}} if raised else {}
        allowed = {name: tolerance for name, tolerance in (("rtol", rtol), ("atol", atol)) if tolerance is not None}
        free = (*free, *arguments) if raises or form else tuple(free)

        def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
            return spec.expectations(inputs, params, formulas, allowed)

        return Draft(case, title, "call", inputs, answer, params, free=free, square=square, example=example)

    def _instead(self, one: Any, place: str) -> Any:
        """A value as JSON states it, drawn where it is to be; `place` keys the draw."""
        if isinstance(one, Drawn):
            return one.array(generator_for(self.secret, place)).tolist()
        if isinstance(one, Number):
            return one.drawn(generator_for(self.secret, place))
        return one.tolist() if isinstance(one, np.ndarray) else one


@dataclass(frozen=True)
class _Spec:
    """What one case judges."""

    calls: Calls
    function: str
    returns: str | Mapping[str, str] | None
    dtype: str
    leaves: tuple[str, ...]
    raises: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]
    kind: str
    counted: tuple[str, ...]
    constant: bool
    form: bool | None = None
    cache: dict[Any, Any] = field(default_factory=dict)

    @property
    def parts(self) -> Mapping[str, str]:
        """Name → axes of each part that is returned."""
        if isinstance(self.returns, str):
            return {self.function: self.returns}
        return self.returns or {}

    def expectations(
        self,
        inputs: Mapping[str, Array],
        params: Mapping[str, Any],
        formulas: Mapping[str, Formula],
        allowed: Mapping[str, float],
    ) -> list[Expectation]:
        """All that must hold of the call with these inputs and parameters."""
        found = [] if self.raises else self._answers(inputs, params, formulas, allowed)
        for name, (instead, mentions) in self.raises.items():
            shown = ", ".join(f"{key}={entry!r}" for key, entry in instead.items())
            found.append(error(name, f"{self.function} with {shown}", "ValueError", *mentions))
        kept = {} if self.form is False else inputs
        return found + [unchanged(f"{name} {AFTERWARDS}", array, name) for name, array in kept.items()]

    def _answers(
        self,
        inputs: Mapping[str, Array],
        params: Mapping[str, Any],
        formulas: Mapping[str, Formula],
        allowed: Mapping[str, float],
    ) -> list[Expectation]:
        answer = self._asked(inputs, params) if self._is_open else self._told(inputs, params, formulas)
        if self.returns is None:
            message = f"{self.function} should return {{expected}}, but returned {{observed}}."
            return [fact("result", "what is returned", answer["result"], message)]
        dtype = _dtype(inputs, self.dtype) if self.calls.values != "python" else "float64"
        attached = (bool(self.leaves) or None) if not self.constant else False
        found = []
        for number, (name, axes) in enumerate(self.parts.items()):
            array = np.asarray(answer[name])
            own = "int64" if array.dtype.kind in "iub" and self.calls.values != "python" and array.ndim else dtype
            own = "float64" if not array.ndim and self.calls.values != "torch" else own
            what = f"the {name}" if len(self.parts) > 1 else f"the result of {self.function}"
            graph = attached if number == 0 else None
            found.append(value(name, what, array, axes, own, attached=graph, forgiven=FORGIVEN[self.form], **allowed))
        if self.kind:
            message = f"{self.function} should return {{expected}}, but returned {{observed}}."
            found.append(fact("kind", "what is returned", self.kind, message))
        for name in self.counted:
            message = f"{self.function} should call {name} {{expected}} times, but called it {{observed}} times."
            found.append(fact(f"calls of {name}", f"the calls of {name}", answer[f"calls of {name}"], message))
        for name in self.leaves:
            what = f"the gradient with respect to {name}"
            axes = " ".join(f"axis{place}" for place in range(np.ndim(answer[f"gradient {name}"])))
            found.append(gradient(f"gradient {name}", what, answer[f"gradient {name}"], axes, dtype, **allowed))
        return found

    @property
    def _is_open(self) -> bool:
        return self.function in getattr(self.calls.oracle, OWN_ORACLE, ())

    def _asked(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The solution's own answer."""
        key = (repr(params), *((name, array.tobytes(), array.shape) for name, array in inputs.items()))
        if key not in self.cache:
            self.cache[key] = self.calls.draw.solution(self.function, inputs, params)
        found: Mapping[str, Any] = self.cache[key]
        return found

    def _told(
        self, inputs: Mapping[str, Array], params: Mapping[str, Any], formulas: Mapping[str, Formula]
    ) -> Mapping[str, Any]:
        """The oracle's answer, from float64 arrays; the calls of formulas are counted."""
        counts = dict.fromkeys(formulas, 0)

        def counting(name: str) -> Callable[..., Any]:
            def counted(*arguments: float) -> Any:
                counts[name] += 1
                return formulas[name](*arguments)

            return counted

        wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        named = {**wide, **params.get("given", {}), **{name: counting(name) for name in formulas}}
        arguments = [named[name] for name in params["arguments"]]
        found = self._oracle(self.function)(*arguments)
        if self.returns is None:
            return {"result": found}
        if isinstance(found, dict):
            answer = dict(found)
        else:
            several = found if isinstance(found, tuple) else (found,)
            if len(several) != len(self.parts):
                own = f"oracle.py's {self.function} returns {len(several)} parts"
                raise FixtureError(f"{own}, and the case names {len(self.parts)}: {', '.join(self.parts)}.")
            answer = dict(zip(self.parts, several, strict=True))
        answer |= {f"calls of {name}": count for name, count in counts.items()}
        if self.leaves:
            slopes = self._oracle(f"{self.function}_gradient")(*arguments)
            gradients = slopes if isinstance(slopes, tuple) else (slopes,)
            answer |= {f"gradient {name}": slope for name, slope in zip(self.leaves, gradients, strict=True)}
        return answer

    def _oracle(self, name: str) -> Callable[..., Any]:
        found = getattr(self.calls.oracle, name, None)
        if found is None:
            what = f"oracle.py does not define {name}, and {OWN_ORACLE} does not list {self.function}"
            raise FixtureError(f"{what}: write it, or list it until then.")
        oracle: Callable[..., Any] = found
        return oracle


def _check_refusal(name: str, refusal: Any, arguments: Mapping[str, Any]) -> None:
    """Raise ValueError where what stands in `raises` is no pair of arguments instead and of words."""
    right = f'raises={{"{name}": ({{"argument": what instead}}, ["a word of the message"])}}'
    is_pair = isinstance(refusal, tuple) and len(refusal) == 2 and isinstance(refusal[0], Mapping)
    if not is_pair or not isinstance(refusal[1], list | tuple):
        raise ValueError(f"raises is a pair of a dictionary and a list: {right}")
    if unknown := [one for one in refusal[0] if one not in arguments]:
        raise ValueError(f"raises has {unknown[0]!r} instead of an argument; the call has {', '.join(arguments)}")


def _is_numbers(one: object) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    is_list = isinstance(one, list) and bool(one)
    return is_list and all(_is_numbers(part) or type(part) in (int, float) for part in one)  # type: ignore[attr-defined]


def _own(one: Drawn, dtype: str) -> str:
    return "int64" if one.kind == "whole" else dtype


def _dtype(inputs: Mapping[str, Array], otherwise: str) -> str:
    """The dtype that is computed in: of the first floating input."""
    return next((array.dtype.name for array in inputs.values() if array.dtype.kind == "f"), otherwise)


def _stated(formulas: Mapping[str, Formula]) -> dict[str, Any]:
    return {name: {"of": one.of, "is": one.expression} for name, one in formulas.items()}
