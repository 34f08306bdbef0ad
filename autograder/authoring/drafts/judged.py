"""What one declared call is held to: what its oracle says must come back, as expectations."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.declarations import (
    CaseFault,
    Expectation,
    Misnamed,
    OracleFault,
    error,
    fact,
    gradient,
    unchanged,
    value,
)
from autograder.authoring.drafts.draws import Formula, computed_dtype
from autograder.authoring.proofreading.fault import likely
from autograder.authoring.proofreading.names import named
from autograder.sandbox.calls import Array
from autograder.vocabulary.errors import FixtureError

OWN_ORACLE = "NOT_INDEPENDENT"
AFTERWARDS = "afterwards"
FORGIVEN: Mapping[bool | None, tuple[str, ...]] = {None: (), True: ("values",), False: ("dtype",)}


@dataclass(frozen=True)
class Judged:
    """What one case judges; the fields are those of `Calls` and of `Calls.case`.

    leaves   inputs with their axes, None where nothing names them
    """

    oracle: ModuleType
    draw: Any
    values: str
    function: str
    returns: str | Mapping[str, str] | None
    dtype: str
    leaves: Mapping[str, str | None]
    gradients_of: Sequence[str]
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
        kinds = [fact("kind", "what is returned", self.kind, message)] if self.kind and self.form is not False else []
        if self.returns is None:
            return [fact("result", "what is returned", answer["result"], message), *kinds]
        dtype = computed_dtype(inputs, self.dtype) if self.values != "python" else "float64"
        found = self._values(answer, dtype, allowed)
        found = [] if self.only_gradients else found
        found += kinds
        for name in self.counted:
            message = f"{self.function} should call {name} {{expected}} times, but called it {{observed}} times."
            named(name, formulas, "the functions that are counted")
            found.append(fact(f"calls of {name}", f"the calls of {name}", answer[f"calls of {name}"], message))
        for name in self.constants:
            message = f"{name} should receive no gradient; the greatest that reaches it is {{observed}}."
            found.append(fact(f"pull of {name}", f"the gradient of {name}", 0.0, message))
        for name, given in self.leaves.items():
            what = f"the gradient with respect to {name}"
            array = self._numbers(answer[f"gradient {name}"], f"{self.function}_gradient")
            axes = " ".join(f"axis{n}" for n in range(array.ndim)) if given is None else given
            found.append(gradient(f"gradient {name}", what, array, axes, dtype, **allowed))
        return found

    def _values(self, answer: Mapping[str, Any], dtype: str, allowed: Mapping[str, float]) -> list[Expectation]:
        """The parts that are returned."""
        found = []
        differentiable = self.gradients_of or [*self.parts][:1]
        for name, axes in self.parts.items():
            array = self._numbers(named(name, answer, f"the parts that {self.function} returns"), self.function)
            own = "int64" if array.dtype.kind in "iub" and self.values != "python" and array.ndim else dtype
            own = "float64" if not array.ndim and self.values != "torch" else own
            own = "bool" if array.dtype.kind == "b" and self.values == "torch" else own
            what = f"the {name}" if len(self.parts) > 1 else f"the result of {self.function}"
            attached = False if self.constant else bool(self.leaves) or None
            graph = attached if name in differentiable else None
            found.append(value(name, what, array, axes, own, attached=graph, forgiven=FORGIVEN[self.form], **allowed))
        return found

    @property
    def _is_open(self) -> bool:
        return self.function in getattr(self.oracle, OWN_ORACLE, ())

    def _asked(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The solution's own answer."""
        key = (repr(params), *((name, array.tobytes(), array.shape) for name, array in inputs.items()))
        if key not in self.cache:
            self.cache[key] = self.draw.solution(self.function, inputs, params)
        found: Mapping[str, Any] = self.cache[key]
        for name in self.parts:
            if name not in found:
                told = f"the solution's {self.function} returns {found.get('kind', 'something else')}"
                wanted = f"a tuple, list or dictionary of {', '.join(self.parts)}" if len(self.parts) > 1 else "numbers"
                raise CaseFault(f"{told}, and the case names {wanted}", "names and axes of what comes back")
        for name in self.leaves:
            if f"gradient {name}" not in found:
                told = f"no gradient of what {self.function} returns reaches {name}"
                raise CaseFault(f"in the solution {told}", "leaves=… of inputs that it depends on, as tensors")
        return found

    def _told(
        self, inputs: Mapping[str, Array], params: Mapping[str, Any], formulas: Mapping[str, Formula]
    ) -> Mapping[str, Any]:
        """The oracle's answer, from float64 arrays; the calls of formulas are counted."""
        counts = dict.fromkeys(formulas, 0)

        def counting(name: str) -> Callable[..., Any]:
            def counted(*arguments: Any, **more: Any) -> Any:
                counts[name] += 1
                return self._called(name, formulas[name], arguments, more)

            return counted

        wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        named = {**wide, **params.get("given", {}), **{name: counting(name) for name in formulas}}
        arguments = [named[name] for name in params["arguments"]]
        found = self._answer_of(self.function, params["arguments"], arguments)
        if found is None:
            raise self._at_oracle(self.function, "returns nothing", "what is expected, after `return`")
        if self.returns is None:
            return {"result": _plain(found, self.function)}
        if isinstance(found, dict):
            answer = dict(found)
        else:
            several = tuple(found) if isinstance(found, tuple | list) and len(self.parts) > 1 else (found,)
            several = found if isinstance(found, tuple) else several
            if len(several) != len(self.parts):
                own = f"oracle.py's {self.function} returns {len(several)} parts"
                raise FixtureError(f"{own}, and the case names {len(self.parts)}: {', '.join(self.parts)}.")
            answer = dict(zip(self.parts, several, strict=True))
        answer |= {f"calls of {name}": count for name, count in counts.items()}
        return answer | (self._slopes(params["arguments"], arguments) if self.leaves else {})

    def _slopes(self, names: Sequence[str], arguments: Sequence[Any]) -> dict[str, Any]:
        """What the oracle says of the gradients."""
        name = f"{self.function}_gradient"
        slopes = self._answer_of(name, names, arguments)
        several = slopes if isinstance(slopes, tuple) else (slopes,)
        if len(several) != len(self.leaves):
            told = f"returns {len(several)}, and leaves are {', '.join(self.leaves)}"
            raise self._at_oracle(name, told, "a tuple of a gradient for each of them, in this order")
        return {f"gradient {name}": slope for name, slope in zip(self.leaves, several, strict=True)}

    def _called(self, name: str, formula: Formula, arguments: Sequence[Any], more: Mapping[str, Any]) -> Any:
        """The value of a formula; what goes wrong in it is a fault of the case."""
        count = len(arguments) + len(more)
        if count != len(formula.names):
            told = f"the oracle {self.function} calls {name} with {count} argument{'s' * (count != 1)}"
            right = f"a Formula of as many: Formula({' '.join('xyzuvw'[:count])!r}, …); or an oracle that calls it so"
            raise CaseFault(f"{told}, and its formula is of {', '.join(formula.names) or 'none'}", right)
        try:
            return formula(*arguments, **more)
        except Exception as error:
            at = ", ".join([*map(_brief, arguments), *(f"{key}={_brief(one)}" for key, one in more.items())])
            told = f"the formula of {name}, {formula.expression}, raises {type(error).__name__} at {at}: {error}"
            right = f"a Formula that has a value wherever {self.function} calls it, or other arguments beside it"
            raise CaseFault(told.rstrip("."), right) from error

    def _numbers(self, found: Any, oracle: str) -> Array:
        """What an oracle returned, as an array; raises Misnamed where it is none of numbers."""
        try:
            array = np.asarray(found)
        except ValueError:
            array = np.asarray(None)
        if array.dtype.kind in "fiub":
            return array
        kind = "rows that differ in length, or other things than numbers"
        told = (
            f"returns {kind if isinstance(found, list | tuple) else type(found).__name__} where the case asks for axes"
        )
        right = "numbers; a tuple or dictionary of several arrays; returns=None where text or truth values come back"
        raise self._at_oracle(oracle, told, right)

    def _at_oracle(self, name: str, told: str, right: str) -> OracleFault:
        """A fault of the oracle's own, at the line where it is defined."""
        code = getattr(getattr(self.oracle, name, None), "__code__", None)
        place = (code.co_filename, code.co_firstlineno) if code and not self._is_open else ()
        whose = f"the solution's {self.function}" if self._is_open else f"the oracle {name}"
        return OracleFault(f"{whose} {told}", right, *place)

    def _answer_of(self, name: str, names: Sequence[str], arguments: Sequence[Any]) -> Any:
        """What the oracle's function of that name says, by name where it has the same names, else in order.

        raises   Misnamed   where there is none, or it does not take so many
        """
        found = getattr(self.oracle, name, None)
        if found is None:
            what = f"oracle.py does not define {name}, and {OWN_ORACLE} does not list {self.function}"
            others = [one for one, known in vars(self.oracle).items() if callable(known)]
            right = f"its own text, or that until then; {likely(name, others)}"
            raise Misnamed(what, right, getattr(self.oracle, "__file__", "oracle.py"), 1)
        signature = inspect.signature(found)
        for in_order, by_name in (((), dict(zip(names, arguments, strict=True))), (arguments, {})):
            try:
                bound = signature.bind(*in_order, **by_name)
            except TypeError:
                continue
            return found(*bound.args, **bound.kwargs)
        told = f"takes {signature}, and the case passes {', '.join(names) or 'nothing'}"
        raise self._at_oracle(name, told, "the same arguments in the same order")


def _plain(found: Any, function: str) -> Any:
    """What is compared as it is; raises CaseFault where that cannot be stored."""
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        kind = type(found).__name__
        told = (
            f"what {function} returns is to be compared as it is, and its oracle returns {kind}, which cannot be stored"
        )
        right = 'names of axes after the arguments: "row column", "" of a number, {"low": "", "high": ""}'
        raise CaseFault(told, right) from error
    return found


def _brief(one: Any) -> str:
    """An argument of a call, as short as it can be told."""
    array = np.asarray(one)
    if array.ndim:
        return f"an array of shape {list(array.shape)}"
    return f"{float(array):.6g}" if array.dtype.kind in "fiub" else type(one).__name__
