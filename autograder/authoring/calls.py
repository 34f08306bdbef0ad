"""Cases as declarations: a call of one function, with what its oracle says must come back.

    calls = Calls(secret, draw, oracle, values="numpy")
    yield calls.case("softmax-small", "two rows", "softmax", {"x": Drawn("row column", (2, 3))}, "row column")

What runs it is the engine's own probe, `autograder.sandbox.inside.calling.call`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from autograder.authoring.declarations import (
    Draft,
    Expectation,
    Misnamed,
    error,
    fact,
    generator_for,
    gradient,
    unchanged,
    value,
)
from autograder.authoring.draws import Drawn, Formula, Number, Whole, computed_dtype, is_numbers
from autograder.authoring.proofreading.fault import likely
from autograder.authoring.proofreading.names import check_call, check_options, named
from autograder.sandbox.observation import Array
from autograder.vocabulary.errors import FixtureError

__all__ = ["Calls", "Drawn", "Formula", "Number", "Whole"]

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
        leaves: Sequence[str] | Mapping[str, str] = (),
        only_gradients: bool = False,
        constants: Sequence[str] = (),
        by_name: Sequence[str] = (),
        transposed: Sequence[str] = (),
        raises: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]] | None = None,
        kind: str = "",
        counted: Sequence[str] = (),
        stand_ins: Mapping[str, Formula] | None = None,
        constant: bool = False,
        form: bool | None = None,
        free: Sequence[str] = (),
        square: str = "",
        zero: str = "",
        example: bool = False,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> Draft:
        """One call.

        arguments   in order: a Drawn, an array or a list of numbers (an input that must stay as it is), a Number or
                    Whole, a Formula, else what JSON knows
        returns     names of its axes, "" of a number; {name: axes} of a tuple or dictionary; None where what comes back
                    is compared as it is (text, truth values, lists of them)
        leaves      inputs that require a gradient, or {input: its axes}; the result must then carry a graph
        only_gradients   whether the result itself is left to other cases
        constants   inputs that require a gradient, of which none may reach them: they are constants of the function
        by_name     arguments that are passed by name
        transposed  inputs that come with their last two axes exchanged in memory: the same numbers, not contiguous
        raises      {name: (arguments instead, words that the message must hold)}: calls that must raise ValueError;
                    what the first call returns is then not judged. No Formula can stand instead
        kind        what must come back: "a NumPy array", "a list", "a number"
        counted     formulas that must be called as often as the oracle calls them
        stand_ins   what the function calls in place of the student's own function of that name
        constant    whether the result must carry no graph
        square      why two axes may be of one size here
        zero        why what is expected may be 0 throughout
        form        True: dtypes, kind and arguments afterwards alone are judged; False: all but these; None: everything
        """
        check_call(dtype, raises or {}, arguments)
        check_options({"rtol": rtol, "atol": atol}, only_gradients=only_gradients, judged=bool(leaves or constants))
        raised = {
            name: ({key: self._instead(one, f"{case} {name} {key}") for key, one in instead.items()}, mentions)
            for name, (instead, mentions) in (raises or {}).items()
        }
        gradients = leaves if isinstance(leaves, Mapping) else dict.fromkeys(leaves)
        spec = _Spec(
            self, function, returns, dtype, gradients, only_gradients, constants, raised, kind, counted, constant, form
        )
        inputs: dict[str, Array] = {}
        given: dict[str, Any] = {}
        for name, one in arguments.items():
            if isinstance(one, Drawn):
                drawn = one.array(generator_for(self.secret, f"{case} {name}"))
                inputs[name] = drawn.astype("int64" if one.kind == "whole" else dtype)
            elif isinstance(one, np.ndarray) or is_numbers(one):
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
        lists = {"leaves": leaves, "constants": constants, "by_name": by_name, "transposed": transposed}
        more = {
            "given": given,
            "plain": returns is None and not raises,
            **{name: list(names) for name, names in lists.items()},
            "formulas": {name: one.stated for name, one in formulas.items()},
            "stand_ins": {name: one.stated for name, one in (stand_ins or {}).items()},
            "raises": {name: instead for name, (instead, _) in raised.items()},
        }
        params |= {name: entry for name, entry in more.items() if entry}
        allowed = {name: tolerance for name, tolerance in (("rtol", rtol), ("atol", atol)) if tolerance is not None}
        answer = functools.partial(spec.expectations, formulas=formulas, allowed=allowed)
        free = (*free, *(arguments if raises or form else ()))
        return Draft(case, title, "call", inputs, answer, params, free=free, square=square, zero=zero, example=example)

    def _instead(self, one: Any, place: str) -> Any:
        """A value as JSON states it, drawn where it is to be; `place` keys the draw."""
        if isinstance(one, Drawn):
            return one.array(generator_for(self.secret, place)).tolist()
        if isinstance(one, Number):
            return one.drawn(generator_for(self.secret, place))
        return one.tolist() if isinstance(one, np.ndarray) else one


@dataclass(frozen=True)
class _Spec:
    """What one case judges; `leaves`: inputs with their axes, None where nothing names them."""

    calls: Calls
    function: str
    returns: str | Mapping[str, str] | None
    dtype: str
    leaves: Mapping[str, str | None]
    only_gradients: bool
    constants: Sequence[str]
    raises: Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]
    kind: str
    counted: Sequence[str]
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
        message = f"{self.function} should return {{expected}}, but returned {{observed}}."
        if self.returns is None:
            return [fact("result", "what is returned", answer["result"], message)]
        dtype = computed_dtype(inputs, self.dtype) if self.calls.values != "python" else "float64"
        attached = (bool(self.leaves) or None) if not self.constant else False
        found = []
        for number, (name, axes) in enumerate(self.parts.items()):
            array = np.asarray(named(name, answer, f"the parts that {self.function} returns"))
            own = "int64" if array.dtype.kind in "iub" and self.calls.values != "python" and array.ndim else dtype
            own = "float64" if not array.ndim and self.calls.values != "torch" else own
            own = "bool" if array.dtype.kind == "b" and self.calls.values == "torch" else own
            what = f"the {name}" if len(self.parts) > 1 else f"the result of {self.function}"
            graph = attached if number == 0 else None
            found.append(value(name, what, array, axes, own, attached=graph, forgiven=FORGIVEN[self.form], **allowed))
        found = [] if self.only_gradients else found
        if self.kind and self.form is not False:
            found.append(fact("kind", "what is returned", self.kind, message))
        for name in self.counted:
            message = f"{self.function} should call {name} {{expected}} times, but called it {{observed}} times."
            named(name, formulas, "the functions that are counted")
            found.append(fact(f"calls of {name}", f"the calls of {name}", answer[f"calls of {name}"], message))
        for name in self.constants:
            message = f"{name} should receive no gradient; the greatest that reaches it is {{observed}}."
            found.append(fact(f"pull of {name}", f"the gradient of {name}", 0.0, message))
        for name, given in self.leaves.items():
            what = f"the gradient with respect to {name}"
            axes = " ".join(f"axis{n}" for n in range(np.ndim(answer[f"gradient {name}"]))) if given is None else given
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
            def counted(*arguments: float, **more: float) -> Any:
                counts[name] += 1
                return formulas[name](*arguments, **more)

            return counted

        wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        named = {**wide, **params.get("given", {}), **{name: counting(name) for name in formulas}}
        arguments = [named[name] for name in params["arguments"]]
        found = self._oracle(self.function)(*arguments)
        if self.returns is None:
            return {"result": found}
        if found is None:
            code = self._oracle(self.function).__code__
            what = f"the oracle {self.function} returns nothing"
            raise Misnamed(what, "what is expected, after `return`", code.co_filename, code.co_firstlineno)
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
            others = [one for one, known in vars(self.calls.oracle).items() if callable(known)]
            right = f"its own text, or that until then; {likely(name, others)}"
            raise Misnamed(what, right, getattr(self.calls.oracle, "__file__", "oracle.py"), 1)
        oracle: Callable[..., Any] = found
        return oracle
