"""Cases as declarations: a call of one function, with what its oracle says must come back.

    calls = Calls(secret, draw, oracle, values="numpy")
    yield calls.case("softmax-small", "two rows", "softmax", {"x": Drawn("row column", (2, 3))}, "row column")

What runs it is the engine's own probe, `autograder.sandbox.worker.calling.call`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal, get_args

import numpy as np

from autograder.authoring.declarations import Draft, Misnamed, generator_for
from autograder.authoring.drafts.draws import Drawn, Formula, Number, Whole, as_array, is_numbers
from autograder.authoring.drafts.judged import AFTERWARDS, Judged
from autograder.authoring.proofreading.names import check_call, check_lists, check_options, named
from autograder.sandbox.calls import Array

__all__ = ["AFTERWARDS", "Calls", "Drawn", "Formula", "Number", "Whole"]

Values = Literal["torch", "numpy", "python"]
Raises = Mapping[str, tuple[Mapping[str, Any], Sequence[str]]]


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
        """Raise Misnamed where values are of no known kind, or the oracle is no module."""
        if not isinstance(self.oracle, ModuleType):
            given = f"the oracle of Calls is of type {type(self.oracle).__name__}"
            raise Misnamed(given, 'Calls(secret, draw, oracle, "numpy"), after `from . import oracle`')
        named(self.values, dict.fromkeys(get_args(Values)), "the values of Calls")

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
        gradients_of: Sequence[str] = (),
        only_gradients: bool = False,
        constants: Sequence[str] = (),
        by_name: Sequence[str] = (),
        transposed: Sequence[str] = (),
        sliced: Sequence[str] = (),
        raises: Raises | None = None,
        kind: str = "",
        counted: Sequence[str] = (),
        stand_ins: Mapping[str, Formula] | None = None,
        constant: bool = False,
        form: bool | None = None,
        free: Sequence[str] = (),
        square: str = "",
        zero: str = "",
        infinite: str = "",
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
        gradients_of   the parts of what is returned whose sum the gradients are of; the first alone if nothing is said
        only_gradients   whether the result itself is left to other cases
        constants   inputs that require a gradient, of which none may reach them: they are constants of the function
        by_name     arguments that are passed by name
        transposed  inputs that come with their last two axes exchanged in memory: the same numbers, not contiguous
        sliced      inputs that come as every second entry of a larger array
        raises      {name: (arguments instead, words that the message must hold)}: calls that must raise ValueError;
                    what the first call returns is then not judged. No Formula can stand instead
        kind        what must come back: "a NumPy array", "a list", "a number"
        counted     formulas that must be called as often as the oracle calls them
        stand_ins   what the function calls in place of the student's own function of that name
        constant    whether the result must carry no graph
        square      why two axes may be of one size here
        zero        why what is expected may be 0 throughout
        infinite    why some of what is expected may be infinite: equal infinities are equal
        form        True: dtypes, kind and arguments afterwards alone are judged; False: all but these; None: everything
        """
        check_call(dtype, raises or {}, arguments)
        check_options({"rtol": rtol, "atol": atol}, only_gradients=only_gradients, judged=bool(leaves or constants))
        listed = {
            "leaves": leaves,
            "constants": constants,
            "by_name": by_name,
            "transposed": transposed,
            "sliced": sliced,
        }
        lists = {**listed, "gradients_of": gradients_of}
        check_lists({**lists, "counted": counted, "free": free})
        raised = self._raised(case, raises or {})
        gradients = leaves if isinstance(leaves, Mapping) else dict.fromkeys(leaves)
        judged = Judged(
            self.oracle,
            self.draw,
            self.values,
            function,
            returns,
            dtype,
            gradients,
            gradients_of,
            only_gradients,
            constants,
            raised,
            kind,
            counted,
            constant,
            form,
        )
        inputs, given = self._drawn(case, arguments, dtype)
        formulas = {name: one for name, one in arguments.items() if isinstance(one, Formula)}
        params: dict[str, Any] = {
            "function": function,
            "arguments": list(arguments),
            "values": self.values,
            "returns": [] if returns is None or raises else list(judged.parts),
        }
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
        answer = functools.partial(judged.expectations, formulas=formulas, allowed=allowed)
        why: dict[str, Any] = {"square": square, "zero": zero, "infinite": infinite, "example": example}
        free = (*free, *(arguments if raises or form else ()))
        return Draft(case, title, "call", inputs, answer, params, free=free, **why)

    def _drawn(self, case: str, arguments: Mapping[str, Any], dtype: str) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arguments that are arrays, and those that JSON knows."""
        inputs: dict[str, Array] = {}
        given: dict[str, Any] = {}
        for name, one in arguments.items():
            if isinstance(one, Drawn):
                drawn = one.array(generator_for(self.secret, f"{case} {name}"))
                inputs[name] = drawn.astype("int64" if one.kind == "whole" else dtype)
            elif isinstance(one, np.ndarray) or is_numbers(one):
                inputs[name] = as_array(name, one)
            elif isinstance(one, Number):
                given[name] = one.drawn(generator_for(self.secret, f"{case} {name}"))
            elif not isinstance(one, Formula):
                given[name] = one
        return inputs, given

    def _raised(self, case: str, raises: Raises) -> dict[str, tuple[dict[str, Any], Sequence[str]]]:
        """What is to be refused, its arguments drawn."""
        return {
            name: ({key: self._instead(one, f"{case} {name} {key}") for key, one in instead.items()}, mentions)
            for name, (instead, mentions) in raises.items()
        }

    def _instead(self, one: Any, place: str) -> Any:
        """A value as JSON states it, drawn where it is to be; `place` keys the draw."""
        if isinstance(one, Drawn):
            return one.array(generator_for(self.secret, place)).tolist()
        if isinstance(one, Number):
            return one.drawn(generator_for(self.secret, place))
        return one.tolist() if isinstance(one, np.ndarray) else one
