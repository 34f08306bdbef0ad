"""What is right of a call: its oracle's answer or, while none is written, the solution's own."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from autograder.authoring.faults import CaseFault, Misnamed, likely
from autograder.sandbox.calls import Array
from autograder.sandbox.worker import calling
from autograder.vocabulary.errors import FixtureError

NOT_INDEPENDENT = "NOT_INDEPENDENT"  # the oracle's list of functions of which the solution itself is asked
AFTERWARDS = "afterwards"


@dataclass(frozen=True)
class Formula:
    """A function that is an argument: an expression of named numbers, such as Formula("t y", "t - 2 * y").

    of   the names of its arguments, in order; commas between them may stand or not
    """

    of: str
    expression: str

    @property
    def stated(self) -> dict[str, str]:
        """As the parameters of a call state it."""
        return {"of": " ".join(self.of.replace(",", " ").split()), "is": self.expression}

    def __call__(self, *placed: float, **named: float) -> Any:
        """Its value, for the oracle: of arguments by place or by name."""
        return calling.Formula(self.stated)(*placed, **named)


def as_python(entry: Any) -> str:
    """Write an argument of a call as Python: a formula as a lambda."""
    is_formula = isinstance(entry, dict) and entry.keys() == {"of", "is"}
    return f"lambda {', '.join(entry['of'].split())}: {entry['is']}" if is_formula else repr(entry)


@dataclass(frozen=True)
class Oracle:
    """Who says what is right of one function.

    module     of the author's functions: one of that name, and `<name>_gradient` where gradients are judged
    draw       what `drafts(secret, draw)` is given: it asks the solution, through `probe`
    parts      names of what comes back; none where it is compared as it is
    leaves     inputs of which gradients are judged
    """

    module: ModuleType
    draw: Any
    function: str
    probe: str
    parts: Sequence[str]
    leaves: Sequence[str]
    formulas: Mapping[str, Formula]
    asked: dict[Any, Mapping[str, Any]] = field(default_factory=dict)  # of the solution

    @property
    def is_open(self) -> bool:
        """Whether the solution itself is asked."""
        return self.function in getattr(self.module, NOT_INDEPENDENT, ())

    def answer(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Say what is right: each part, "result", "gradient <leaf>", "calls of <formula>"."""
        if not self.is_open:
            return self._of_oracle(inputs, params)
        key = (repr(params), *((name, array.tobytes(), array.shape) for name, array in inputs.items()))
        if key not in self.asked:
            self.asked[key] = self.draw.solution(self.function, inputs, params, self.probe)
        answer = self.asked[key]
        if lacking := [name for name in self.parts if name not in answer]:
            told = f"the solution's {self.function} returns {answer.get('kind', 'something else')}"
            parts = f"a tuple, list or dictionary of {', '.join(self.parts)}" if len(self.parts) > 1 else "numbers"
            raise CaseFault(f"{told} without {lacking[0]}, and the case names {parts}", "what comes back")
        if lacking := [name for name in self.leaves if f"gradient {name}" not in answer]:
            told = f"in the solution no gradient of what {self.function} returns reaches {lacking[0]}"
            raise CaseFault(told, "leaves=… of inputs that it depends on, as tensors")
        return answer

    def _of_oracle(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask the oracle, with float64 arrays; the calls of formulas are counted."""
        wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        counts = Counter[str]()

        def counted(name: str, /, *placed: Any, **named: Any) -> Any:
            counts[name] += 1
            return self.formulas[name](*placed, **named)

        known = {**wide, **calling.unkeyed(params.get("given", {}))}
        lists = [name for name, one in known.items() if is_numbers(one) and name not in params.get("changes", ())]
        known |= {name: np.array(known[name]) for name in lists if name not in wide}
        known |= {name: functools.partial(counted, name) for name in self.formulas}
        arguments = {name: known[name] for name in params["arguments"]}
        returned = self._asked(self.function, arguments)
        if returned is None and not re.search(r"\breturn +\S", inspect.getsource(getattr(self.module, self.function))):
            raise self._at_oracle(self.function, "returns nothing", "what is expected, after `return`")
        counted_calls = {f"calls of {name}": counts[name] for name in self.formulas}
        if params.get("plain"):
            return {"result": self.as_it_is(returned), **counted_calls}
        is_named = isinstance(returned, dict) and (len(self.parts) > 1 or [*returned] == [*self.parts])
        is_several = isinstance(returned, tuple) or (isinstance(returned, list) and len(self.parts) > 1)
        several = tuple(returned) if is_several else (returned,)
        if not is_named and len(several) != len(self.parts):
            told = f"oracle.py's {self.function} returns {len(several)} parts"
            raise FixtureError(f"{told}, and the case names {len(self.parts)}: {', '.join(self.parts)}.")
        answer = {**(returned if is_named else dict(zip(self.parts, several, strict=True))), **counted_calls}
        if self.leaves:
            gradient = f"{self.function}_gradient"
            returned = self._asked(gradient, arguments)
            slopes = returned if isinstance(returned, tuple) else (returned,)
            if len(slopes) != len(self.leaves):
                told = f"returns {len(slopes)}, and leaves are {', '.join(self.leaves)}"
                raise self._at_oracle(gradient, told, "a tuple of a gradient for each of them, in this order")
            answer |= {f"gradient {name}": slope for name, slope in zip(self.leaves, slopes, strict=True)}
        return answer

    def _asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call the oracle's function of that name: by name where it has the same names, else in order."""
        oracle = getattr(self.module, name, None)
        if oracle is None:
            what = f"oracle.py does not define {name}, and {NOT_INDEPENDENT} does not list {self.function}"
            others = [other for other, defined in vars(self.module).items() if callable(defined)]
            right = f"its own text, or that until then; {likely(name, others)}"
            raise Misnamed(what, right, getattr(self.module, "__file__", "oracle.py"), 1)
        signature = inspect.signature(oracle)
        for in_order, by_name in (((), arguments), (arguments.values(), {})):
            with contextlib.suppress(TypeError):
                bound = signature.bind(*in_order, **by_name)
                break
        else:
            told = f"takes {signature}, and what is drawn is {', '.join(arguments) or 'nothing'}"
            raise self._at_oracle(name, told, "the same arguments in the same order, in the draw as in the oracle")
        return oracle(*bound.args, **bound.kwargs)

    def as_it_is(self, returned: Any) -> Any:
        """Make JSON of what the oracle returned, as a worker does; arrays and numbers of NumPy inside are plain."""

        def listed(part: Any) -> Any:
            if not isinstance(part, np.ndarray | np.generic) or (part is returned and not self.parts):
                raise TypeError(f"in it stands {calling.kind_of(part)}")
            return part.tolist()

        if self.is_open:
            return returned
        try:
            return json.loads(json.dumps(calling.keyed(returned), allow_nan=False, default=listed))
        except (TypeError, ValueError) as cause:
            told = f"what {self.function} returns is to be compared as it is, and its oracle returns"
            kind, right = calling.kind_of(returned), "text, truth values, None, numbers but nan, lists and dictionaries"
            if isinstance(returned, np.ndarray | np.generic):
                right = 'its shape in the declaration: "float[row column]", "float" of a number'
            raise CaseFault(f"{told} {kind}, which cannot be stored ({cause})", right) from cause

    def numbers(self, returned: Any, oracle: str) -> Array:
        """Make an array of what the oracle of that name returned."""
        with contextlib.suppress(ValueError):  # rows that differ in length
            array = np.asarray(returned)
            if array.dtype.kind in "fiub":
                return array
        right = "numbers; a tuple or dictionary of several arrays; returns=None where text or truth values come back"
        raise self._at_oracle(oracle, f"returns {str(returned)[:60]} where the case asks for axes", right)

    def _at_oracle(self, name: str, told: str, right: str) -> Misnamed:
        """Make the refusal of an oracle, at the line where it is defined."""
        code = getattr(getattr(self.module, name, None), "__code__", None)
        place = (code.co_filename, code.co_firstlineno) if code and not self.is_open else ()
        whose = f"the solution's {self.function}" if self.is_open else f"the oracle {name}"
        return Misnamed(f"{whose} {told}", right, *place)


def is_numbers(argument: object) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    if not isinstance(argument, list) or not argument:
        return False
    return all(is_numbers(part) or type(part) in (int, float) for part in argument)
