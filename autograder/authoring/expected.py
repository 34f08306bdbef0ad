"""One call as its case declares it → all that must hold of it: what its oracle says, its gradients, what stays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from autograder.authoring.declarations import Expectation, Misnamed, error, fact, gradient, unchanged, value
from autograder.authoring.draws import Formula, computed_dtype
from autograder.authoring.proofreading.fault import likely
from autograder.authoring.proofreading.names import named
from autograder.sandbox.observation import Array
from autograder.vocabulary.errors import FixtureError

OWN_ORACLE = "NOT_INDEPENDENT"
AFTERWARDS = "afterwards"
FORGIVEN: Mapping[bool | None, tuple[str, ...]] = {None: (), True: ("values",), False: ("dtype",)}


class Source(Protocol):
    """What the expected values of an assignment come from: its `Calls`."""

    @property
    def draw(self) -> Any:
        """What asks the solution."""

    @property
    def oracle(self) -> ModuleType:
        """A function of each graded function's name."""

    @property
    def values(self) -> str:
        """What comes back: torch, numpy or python."""


@dataclass(frozen=True)
class Expected:
    """What one case judges of a call.

    leaves   inputs with their axes, None where nothing names them
    """

    source: Source
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
        dtype = computed_dtype(inputs, self.dtype) if self.source.values != "python" else "float64"
        attached = (bool(self.leaves) or None) if not self.constant else False
        found = []
        for number, (name, axes) in enumerate(self.parts.items()):
            array = np.asarray(named(name, answer, f"the parts that {self.function} returns"))
            own = "int64" if array.dtype.kind in "iub" and self.source.values != "python" and array.ndim else dtype
            own = "float64" if not array.ndim and self.source.values != "torch" else own
            own = "bool" if array.dtype.kind == "b" and self.source.values == "torch" else own
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
        return self.function in getattr(self.source.oracle, OWN_ORACLE, ())

    def _asked(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The solution's own answer."""
        key = (repr(params), *((name, array.tobytes(), array.shape) for name, array in inputs.items()))
        if key not in self.cache:
            self.cache[key] = self.source.draw.solution(self.function, inputs, params)
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
        found = getattr(self.source.oracle, name, None)
        if found is None:
            what = f"oracle.py does not define {name}, and {OWN_ORACLE} does not list {self.function}"
            others = [one for one, known in vars(self.source.oracle).items() if callable(known)]
            right = f"its own text, or that until then; {likely(name, others)}"
            raise Misnamed(what, right, getattr(self.source.oracle, "__file__", "oracle.py"), 1)
        oracle: Callable[..., Any] = found
        return oracle
