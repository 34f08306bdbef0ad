"""Calls of one function as cases: what goes in, and what its oracle says must come back.

    calls = Calls(oracle, draw, values="numpy")
    yield calls.case("softmax-small", "two rows", "softmax", {"x": x}, "row column")

What runs such a case is the engine's own probe, `autograder.sandbox.worker.calling.call`; laws make all their cases so.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import numpy as np

from autograder.authoring.declarations import Draft, Expectation, error, fact, gradient, unchanged, value
from autograder.authoring.faults import CaseFault, Misnamed, likely
from autograder.sandbox.calls import Array
from autograder.vocabulary.errors import FixtureError

FUNCTIONS = ("sin", "cos", "tan", "exp", "log", "sqrt", "pi", "e")  # of formulas; the worker knows the same
NOT_INDEPENDENT = "NOT_INDEPENDENT"  # the oracle's list of functions of which the solution itself is asked
AFTERWARDS = "afterwards"
Values = Literal["torch", "numpy", "python"]
LISTS = ("leaves", "constants", "by_name", "transposed", "sliced", "gradients_of")  # of options, as a probe is told
Raises = Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]


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
        return {"of": " ".join(self.names), "is": self.expression}

    @property
    def names(self) -> list[str]:
        """The names of its arguments, in order."""
        return self.of.replace(",", " ").split()

    def __call__(self, *placed: float, **named: float) -> Any:
        """Its value, for the oracle: of arguments by place or by name."""
        known = {name: getattr(np, name) for name in FUNCTIONS}
        names = self.names
        if len(placed) > len(names) or {*names[len(placed) :]} != {*named}:
            takes = f"{len(names)} argument{'s' * (len(names) != 1)}"
            raise TypeError(f"Formula({self.of!r}, …) takes {takes}, but got {len(placed) + len(named)}")
        arguments = dict(zip(names, placed, strict=False)) | named
        return eval(compile(self.expression, "formula", "eval"), {"__builtins__": {}}, known | arguments)


@dataclass(frozen=True)
class Options:
    """What else a call is held to.

    leaves        inputs that require a gradient, or {input: its axes}; the result must then carry a graph
    gradients_of  the parts of what is returned whose sum the gradients are of; the first alone if nothing is said
    constants     inputs that require a gradient, of which none may reach them: they are constants of the function
    by_name       arguments that are passed by name
    transposed    inputs that come with their last two axes exchanged in memory: the same numbers, not contiguous
    sliced        inputs that come as every second entry of a larger array
    raises        {name: (arguments instead, words that the message must hold)}: calls that must raise ValueError;
                  what the first call returns is then not judged. No Formula can stand instead
    kind          what must come back: "a NumPy array", "a list", "a number"
    counted       formulas that must be called as often as the oracle calls them
    constant      whether the result must carry no graph
    square        why two axes may be of one size here
    zero          why what is expected may be 0 throughout
    infinite      why some of what is expected may be infinite: equal infinities are equal
    sampled       how often a right answer is refused, where values are statistics of random draws; with `atol`
    """

    dtype: str = "float64"
    leaves: Sequence[str] | Mapping[str, str] = ()
    gradients_of: Sequence[str] = ()
    constants: Sequence[str] = ()
    by_name: Sequence[str] = ()
    transposed: Sequence[str] = ()
    sliced: Sequence[str] = ()
    raises: Raises = field(default_factory=dict)
    kind: str = ""
    counted: Sequence[str] = ()
    constant: bool = False
    free: Sequence[str] = ()
    square: str = ""
    zero: str = ""
    infinite: str = ""
    sampled: str = ""
    example: bool = False
    rtol: float | None = None
    atol: float | None = None

    def __post_init__(self) -> None:
        """Refuse a text in place of a list, whose letters nobody meant, and a tolerance that allows nothing."""
        for name, number in {"rtol": self.rtol, "atol": self.atol}.items():
            if number is not None and not (isinstance(number, numbers.Real) and number >= 0):
                raise Misnamed(f"{name} is {number!r}", f"a number that is not negative, such as {name}=1e-6")
        lists = {name: getattr(self, name) for name in (*LISTS, "counted", "free")}
        for name, listed in (lists | {name: words for name, (_, words) in self.raises.items()}).items():
            if isinstance(listed, str):
                raise Misnamed(f"{name} is {listed!r}", f'a list: {name}=["{listed}"]')


@dataclass(frozen=True)
class Calls:
    """Make the drafts of calls.

    oracle   a module with a function of each graded function's name, and `<name>_gradient` where gradients are judged.
             Of those that its NOT_INDEPENDENT lists, the solution itself is asked
    draw     what `drafts(secret, draw)` is given
    values   what inputs are and what is to come back: tensors, NumPy arrays, or lists and numbers
    probe    what makes the call
    """

    oracle: ModuleType
    draw: Any
    values: Values = "torch"
    probe: str = "call"

    def case(
        self,
        case: str,
        title: str,
        function: str,
        arguments: Mapping[str, Any],
        returns: str | Mapping[str, str] | None = "",
        **options: Any,
    ) -> Draft:
        """Declare one call; `options` are as `Options` says.

        arguments   in order: an array or a list of numbers (an input that must stay as it is), a Formula, else what
                    JSON knows
        returns     names of its axes, "" of a number; {name: axes} of a tuple or dictionary; None where what comes back
                    is compared as it is (text, truth values, lists of them). The part "<argument> afterwards" is what
                    an argument that is changed in place holds after the call
        """
        chosen = Options(**options)
        formulas = {name: a for name, a in arguments.items() if isinstance(a, Formula)}
        if unknown := [name for name in chosen.counted if name not in formulas]:
            raise Misnamed(f"{unknown[0]!r} is not among the functions that are counted", likely(unknown[0], formulas))
        inputs = {name: np.asarray(a) for name, a in arguments.items() if isinstance(a, np.ndarray) or is_numbers(a)}
        instead = {
            name: {key: a.tolist() if isinstance(a, np.ndarray) else a for key, a in changed.items()}
            for name, (changed, _) in chosen.raises.items()
        }
        parts = {function: returns} if isinstance(returns, str) else returns or {}
        call = _Call(self, function, parts, returns is None, chosen, formulas)
        is_judged = not chosen.raises
        params: dict[str, Any] = {
            "function": function,
            "arguments": list(arguments),
            "values": self.values,
            "returns": [name for name in parts if name not in call.changed] if is_judged else [],
        }
        more = {
            "given": {name: a for name, a in arguments.items() if name not in inputs and name not in formulas},
            "plain": returns is None and is_judged,
            "changes": list(call.changed.values()),
            **{name: list(getattr(chosen, name)) for name in LISTS},
            "formulas": {name: formula.stated for name, formula in formulas.items()},
            "raises": instead,
        }
        params |= {name: entry for name, entry in more.items() if entry}
        why = {name: getattr(chosen, name) for name in ("square", "zero", "infinite", "sampled", "example")}
        free = (*chosen.free, *(() if is_judged else arguments))
        return Draft(case, title, self.probe, inputs, call.expectations, params, free=free, **why)


@dataclass(frozen=True)
class _Call:
    """What one call is held to.

    parts    name → axes of each part that is returned
    plain    whether what comes back is compared as it is
    """

    calls: Calls
    function: str
    parts: Mapping[str, str]
    plain: bool
    options: Options
    formulas: Mapping[str, Formula]
    cache: dict[Any, Any] = field(default_factory=dict)

    @property
    def allowed(self) -> dict[str, float]:
        """Tolerances other than the usual ones."""
        both = {"rtol": self.options.rtol, "atol": self.options.atol}
        return {name: number for name, number in both.items() if number is not None}

    @property
    def is_open(self) -> bool:
        """Whether the solution itself is asked what is right."""
        return self.function in getattr(self.calls.oracle, NOT_INDEPENDENT, ())

    @property
    def changed(self) -> dict[str, str]:
        """The parts that are arguments after the call → these arguments."""
        return {part: part.removesuffix(f" {AFTERWARDS}") for part in self.parts if part.endswith(f" {AFTERWARDS}")}

    def expectations(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        """Say all that must hold of the call with these inputs and parameters."""
        kept = {f"{name} {AFTERWARDS}": name for name in inputs}
        stay = [unchanged(part, inputs[name], name) for part, name in kept.items() if part not in self.changed]
        errors = []
        for name, (_, mentions) in self.options.raises.items():
            shown = ", ".join(f"{key}={entry!r}" for key, entry in params["raises"][name].items())
            errors.append(error(name, f"{self.function} with {shown}", "ValueError", *mentions))
        if errors:
            return [*errors, *stay]
        answer = self._of_solution(inputs, params) if self.is_open else self._of_oracle(inputs, params)
        message = f"{self.function} should return {{expected}}, but returned {{observed}}."
        if self.calls.probe != "call":  # a driver returns what it sees of an object
            message = f"What is seen of {self.function} should be {{expected}}, but is {{observed}}."
        kinds = [fact("kind", "what is returned", self.options.kind, message)] if self.options.kind else []
        if self.plain:
            return [fact("result", "what is returned", answer["result"], message), *kinds, *stay]
        floats = [array.dtype.name for array in inputs.values() if array.dtype.kind == "f"]
        dtype = "float64" if self.calls.values == "python" else next(iter(floats), self.options.dtype)
        expected = [*self._values(answer, dtype, inputs), *kinds]
        for name in self.options.counted:
            message = f"{self.function} should call {name} {{expected}} times, but called it {{observed}} times."
            calls = f"calls of {name}"
            expected.append(fact(calls, f"the {calls}", answer[calls], message))
        for name in self.options.constants:
            message = f"{name} should receive no gradient; the greatest that reaches it is {{observed}}."
            expected.append(fact(f"pull of {name}", f"the gradient of {name}", 0.0, message))
        leaves = self.options.leaves
        for name in leaves:
            axes = leaves[name] if isinstance(leaves, Mapping) else None
            what = f"the gradient with respect to {name}"
            array = self._numbers(answer[f"gradient {name}"], f"{self.function}_gradient")
            axes = " ".join(f"axis{n}" for n in range(array.ndim)) if axes is None else axes
            expected.append(gradient(f"gradient {name}", what, array, axes, dtype, **self.allowed))
        return [*expected, *stay]

    def _values(self, answer: Mapping[str, Any], dtype: str, inputs: Mapping[str, Array]) -> list[Expectation]:
        """Expect the parts that are returned, and what arguments hold that are changed in place."""
        expected = []
        differentiable = self.options.gradients_of or [name for name in self.parts if name not in self.changed][:1]
        values = self.calls.values
        for name, axes in self.parts.items():
            if name not in answer:
                parts = likely(name, answer)
                raise CaseFault(f"{name!r} is not among the parts that {self.function} returns", parts)
            argument = self.changed.get(name)
            if argument is not None and argument not in inputs:  # texts, a dictionary
                message = f"{argument} should be {{expected}} after the call, but is {{observed}}."
                expected.append(fact(name, f"{argument} after the call", answer[name], message))
                continue
            array = self._numbers(answer[name], self.function)
            own = dtype
            if array.dtype.kind == "b" and values == "torch":
                own = "bool"
            elif not array.ndim and values != "torch":
                own = "float64"
            elif array.dtype.kind in "iub" and values != "python" and array.ndim:
                own = "int64"
            what = f"the {name}" if len(self.parts) > 1 else f"the result of {self.function}"
            what = what if argument is None else f"{argument} after the call"
            attached = False if self.options.constant else bool(self.options.leaves) or None
            graph = attached if name in differentiable else None
            expected.append(value(name, what, array, axes, own, attached=graph, **self.allowed))
        return expected

    def _of_solution(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        key = (repr(params), *((name, array.tobytes(), array.shape) for name, array in inputs.items()))
        if key not in self.cache:
            self.cache[key] = self.calls.draw.solution(self.function, inputs, params, self.calls.probe)
        answer: Mapping[str, Any] = self.cache[key]
        if lacking := [name for name in self.parts if name not in answer]:
            told = f"the solution's {self.function} returns {answer.get('kind', 'something else')}"
            parts = f"a tuple, list or dictionary of {', '.join(self.parts)}" if len(self.parts) > 1 else "numbers"
            raise CaseFault(f"{told} without {lacking[0]}, and the case names {parts}", "what comes back")
        for name in self.options.leaves:
            if f"gradient {name}" not in answer:
                told = f"in the solution no gradient of what {self.function} returns reaches {name}"
                raise CaseFault(told, "leaves=… of inputs that it depends on, as tensors")
        return answer

    def _of_oracle(self, inputs: Mapping[str, Array], params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The oracle's answer, from float64 arrays; the calls of formulas are counted."""
        counts = dict.fromkeys(self.formulas, 0)

        def counting(name: str) -> Callable[..., Any]:
            def count(*placed: Any, **named: Any) -> Any:
                counts[name] += 1
                return self.formulas[name](*placed, **named)

            return count

        wide = {name: array.astype(np.float64) if array.dtype.kind == "f" else array for name, array in inputs.items()}
        known = {**wide, **params.get("given", {}), **{name: counting(name) for name in self.formulas}}
        arguments = {name: known[name] for name in params["arguments"]}
        returned = self._asked(self.function, arguments)
        if returned is None:
            raise self._at_oracle(self.function, "returns nothing", "what is expected, after `return`")
        if self.plain:
            try:
                json.dumps(returned, allow_nan=False)
            except (TypeError, ValueError) as cause:
                told = f"what {self.function} returns is to be compared as it is, and its oracle returns"
                right = 'names of axes after the arguments: "row column", "" of a number, {"low": "", "high": ""}'
                raise CaseFault(f"{told} {type(returned).__name__}, which cannot be stored", right) from cause
            return {"result": returned}
        if isinstance(returned, dict):
            answer = dict(returned)
        else:
            is_several = isinstance(returned, tuple) or (isinstance(returned, list) and len(self.parts) > 1)
            several = tuple(returned) if is_several else (returned,)
            if len(several) != len(self.parts):
                told = f"oracle.py's {self.function} returns {len(several)} parts"
                raise FixtureError(f"{told}, and the case names {len(self.parts)}: {', '.join(self.parts)}.")
            answer = dict(zip(self.parts, several, strict=True))
        answer |= {f"calls of {name}": count for name, count in counts.items()}
        if self.options.leaves:
            slopes = self._asked(f"{self.function}_gradient", arguments)
            several = slopes if isinstance(slopes, tuple) else (slopes,)
            if len(several) != len(self.options.leaves):
                told = f"returns {len(several)}, and leaves are {', '.join(self.options.leaves)}"
                right = "a tuple of a gradient for each of them, in this order"
                raise self._at_oracle(f"{self.function}_gradient", told, right)
            answer |= {f"gradient {name}": slope for name, slope in zip(self.options.leaves, several, strict=True)}
        return answer

    def _asked(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """What the oracle's function of that name says: by name where it has the same names, else in order."""
        oracle = getattr(self.calls.oracle, name, None)
        if oracle is None:
            what = f"oracle.py does not define {name}, and {NOT_INDEPENDENT} does not list {self.function}"
            others = [other for other, defined in vars(self.calls.oracle).items() if callable(defined)]
            right = f"its own text, or that until then; {likely(name, others)}"
            raise Misnamed(what, right, getattr(self.calls.oracle, "__file__", "oracle.py"), 1)
        signature = inspect.signature(oracle)
        for in_order, by_name in (((), arguments), ([*arguments.values()], {})):
            try:
                bound = signature.bind(*in_order, **by_name)
            except TypeError:
                continue
            return oracle(*bound.args, **bound.kwargs)
        told = f"takes {signature}, and the case passes {', '.join(arguments) or 'nothing'}"
        raise self._at_oracle(name, told, "the same arguments in the same order")

    def _numbers(self, returned: Any, oracle: str) -> Array:
        """What an oracle returned, as an array."""
        with contextlib.suppress(ValueError):  # rows that differ in length
            array = np.asarray(returned)
            if array.dtype.kind in "fiub":
                return array
        right = "numbers; a tuple or dictionary of several arrays; returns=None where text or truth values come back"
        raise self._at_oracle(oracle, f"returns {str(returned)[:60]} where the case asks for axes", right)

    def _at_oracle(self, name: str, told: str, right: str) -> Misnamed:
        """A fault of the oracle's own, at the line where it is defined."""
        code = getattr(getattr(self.calls.oracle, name, None), "__code__", None)
        place = (code.co_filename, code.co_firstlineno) if code and not self.is_open else ()
        whose = f"the solution's {self.function}" if self.is_open else f"the oracle {name}"
        return Misnamed(f"{whose} {told}", right, *place)


def is_numbers(argument: object) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    if not isinstance(argument, list) or not argument:
        return False
    return all(is_numbers(part) or type(part) in (int, float) for part in argument)
