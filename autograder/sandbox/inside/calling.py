"""The probe that most cases need: it calls one function as a case describes, and says what came back.

An assignment's `probes.py` takes it over in one line, and adds what is its own:

    from autograder.sandbox.inside.calling import call

    probe(student, inputs, params) -> (returned, facts)

Only the standard library, and of what the worker has imported the part that the values are of: this runs beside student
code and judges nothing. torch and NumPy are looked up, never imported: arrays, lists and numbers need no torch.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

TORCH, NUMPY, PYTHON = "torch", "numpy", "python"  # what the values of a case are
MAX_TRACE = 1_000
MAX_RESULT = 20_000  # characters of text, lists and dictionaries that are compared as they are
KINDS = {str: "text", bool: "a truth value", list: "a list", dict: "a dictionary", type(None): "nothing"}


def call(
    student: ModuleType, inputs: Mapping[str, Any], params: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Call one function, and say what came back.

    params["function"]    its name
    params["arguments"]   names, in order: each one of the inputs, of the formulas, else an entry of params["given"]
    params["given"]       {argument: number, text, list, …}
    params["values"]      "torch", "numpy" or "python": what the inputs are, and what is to come back. They travel as
                          tensors for the first, as arrays for the others
    params["returns"]     names for what it returns: one, or one for each part of a tuple or key of a dictionary
    params["plain"]       whether it is compared as it is (text, truth values, lists of them): fact "result"
    params["leaves"]      tensors that require a gradient: that of the first part's sum, as "gradient <name>"
    params["formulas"]    {argument: {"of": "x", "is": "x * x - 2"}}: a function, whose calls are counted and traced
    params["stand_ins"]   {name in the student's module: formula}: what the function calls in place of its own
    params["raises"]      {fact: {argument: value}}: further calls with these arguments instead, which should raise

    Returned are the parts, the gradients, the inputs after the call ("<name> afterwards") and each formula's arguments
    ("calls of <name>"). Facts: "kind" of what came back, "calls of <name>", and of each of `raises` what it raised.
    """
    function = getattr(student, params["function"])
    values = params.get("values", TORCH)
    given = {name: _given(array, values) for name, array in inputs.items()} | copy.deepcopy(
        dict(params.get("given", {}))
    )
    formulas = {name: Formula(entry) for name, entry in params.get("formulas", {}).items()}
    named = {**given, **formulas}
    leaves = {name: named[name].requires_grad_() for name in params.get("leaves", ())}
    with_stand_ins = {name: Formula(entry) for name, entry in params.get("stand_ins", {}).items()}
    with standing_in([student], with_stand_ins):
        found = function(*(named[name] for name in params["arguments"]))
    facts: dict[str, Any] = {"kind": kind_of(found)}
    returned: dict[str, Any] = {}
    if params.get("plain"):
        facts["result"] = _plain(found)
    elif params["returns"]:
        parts = parts_of(found, params["returns"], values)
        returned |= parts
        returned |= gradients(next(iter(parts.values())), leaves)
    for name, formula in {**formulas, **with_stand_ins}.items():
        facts[f"calls of {name}"] = len(formula.calls)
        returned[f"calls of {name}"] = _numbers(formula.calls[:MAX_TRACE], values)
    returned |= {f"{name} afterwards": _afterwards(given[name], array, values) for name, array in inputs.items()}
    for fact, replaced in params.get("raises", {}).items():
        instead = {name: _instead(one, values) if name in inputs else one for name, one in replaced.items()}
        arguments = [{**named, **instead}[name] for name in params["arguments"]]
        facts[fact] = error_of(lambda arguments=arguments: function(*arguments))  # type: ignore[misc]
    return returned, facts


class Formula:
    """A function of numbers that a case states as an expression, with what it was called with."""

    def __init__(self, entry: Mapping[str, str]) -> None:
        """Compile the expression, which is the author's own."""
        self._names = entry["of"].split()
        self._code = compile(entry["is"], "formula", "eval")
        self.calls: list[list[float]] = []

    def __call__(self, *arguments: Any) -> Any:
        """The value of the expression; the arguments are kept where they are numbers."""
        if len(arguments) != len(self._names):
            raise TypeError(f"the function takes {len(self._names)} arguments, but got {len(arguments)}")
        if all(isinstance(one, int | float) for one in arguments):
            self.calls.append([float(one) for one in arguments])
        known = {name: getattr(math, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "pi", "e")}
        return eval(self._code, {"__builtins__": {}}, known | dict(zip(self._names, arguments, strict=True)))


def kind_of(found: object) -> str:
    """What kind of thing it is, as a phrase in the words of an assignment in NumPy or plain Python."""
    if isinstance(found, tuple):
        return f"a tuple of {len(found)}"
    if type(found) in KINDS:
        return KINDS[type(found)]
    if _is_number(found):
        return "a number"
    if _is_array(found):
        return "a NumPy array"
    return "a tensor" if _is_tensor(found) else f"a {type(found).__name__[:80]}"


def parts_of(found: Any, names: Sequence[str], values: str) -> dict[str, Any]:
    """What was returned, by name, as tensors or arrays; nothing where it has another number of parts."""
    if len(names) == 1:
        return {names[0]: _part(found, values)}
    if isinstance(found, dict):
        return {name: _part(found.get(name), values) for name in names}
    if not isinstance(found, tuple | list) or len(found) != len(names):
        return dict.fromkeys(names)
    return {name: _part(part, values) for name, part in zip(names, found, strict=True)}


def error_of(function: Callable[[], Any]) -> dict[str, Any] | None:
    """What a call raised, as JSON: its type names and text; None where it raised nothing."""
    try:
        function()
    except Exception as error:
        return {"types": [kind.__name__ for kind in type(error).__mro__], "message": str(error)[:500]}
    return None


def gradients(output: Any, leaves: Mapping[str, Any]) -> dict[str, Any]:
    """The gradient of the output's sum with respect to each leaf; None where the graph does not reach it."""
    if not leaves or not _is_tensor(output) or not output.requires_grad:
        return {f"gradient {name}": None for name in leaves}
    found = _torch().autograd.grad(output.sum(), list(leaves.values()), allow_unused=True)
    return {f"gradient {name}": array for name, array in zip(leaves, found, strict=True)}


def number_of(value: Any) -> Any:
    """A number as a tensor in float64: as_tensor alone would round a Python float to float32."""
    torch = _torch()
    exact = value.detach().double() if isinstance(value, torch.Tensor) else torch.tensor(value, dtype=torch.float64)
    return exact.reshape(())


@contextlib.contextmanager
def standing_in(modules: Sequence[ModuleType], stand_ins: Mapping[str, Any]) -> Iterator[None]:
    """Put stand-ins where student code looks: into the submission, which comes first, and where others have the name.

    Also those that the submission lacks: it is not to blame for them.
    """
    nothing = object()
    places = [(one, name) for one in modules for name in stand_ins if one is modules[0] or hasattr(one, name)]
    before = [(module, name, getattr(module, name, nothing)) for module, name in places]
    try:
        for module, name in places:
            setattr(module, name, stand_ins[name])
        yield
    finally:
        for module, name, value in before:
            if value is nothing:
                vars(module).pop(name, None)
            else:
                setattr(module, name, value)


def _torch() -> Any:
    return sys.modules["torch"]


def _numpy() -> Any:
    return sys.modules["numpy"]


def _is_tensor(found: object) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(found, torch.Tensor)


def _is_array(found: object) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(found, numpy.ndarray | numpy.generic)


def _is_number(found: Any) -> bool:
    if _is_array(found):
        return bool(found.ndim == 0 and found.dtype.kind in "fiu")
    return isinstance(found, int | float) and not isinstance(found, bool)


def _given(array: Any, values: str) -> Any:
    """An input as the student's function gets it."""
    return array.tolist() if values == PYTHON else array


def _instead(entry: Any, values: str) -> Any:
    """What stands for an input in a call that should raise: a list is an array, a tensor or a list, as inputs are."""
    return _given(_numbers(entry, values), values) if isinstance(entry, list) else entry


def _afterwards(given: Any, input: Any, values: str) -> Any:
    """An input after the call, of the dtype that it had; None where it can no longer be read."""
    if values == TORCH:
        return given.detach()
    try:
        return _numpy().asarray(given, dtype=input.dtype)
    except (TypeError, ValueError, OverflowError):
        return None


def _part(part: Any, values: str) -> Any:
    """One part as a tensor or an array of numbers; as it is, where it can be made none."""
    if values == TORCH:
        return _numbers(part, values) if _is_number(part) and not _is_array(part) else part
    if part is None or _is_tensor(part):
        return part
    try:
        whole = values == NUMPY and isinstance(
            part, list | tuple
        )  # a list of whole numbers is at fault as a list alone
        return _numbers(_numpy().array(part) if whole else part, values)
    except (TypeError, ValueError, OverflowError):
        return part


def _numbers(found: Any, values: str) -> Any:
    """Numbers as a tensor or an array: in float64, but for an array's own dtype, of which whole numbers are int64."""
    if values == TORCH:
        return _torch().tensor(found, dtype=_torch().float64)
    numpy = _numpy()
    array = numpy.array(found, subok=False)
    if array.dtype.kind not in "biuf" or array.itemsize > 8:
        raise TypeError("not numbers")
    if not _is_array(found) or not array.ndim:
        return array.astype(numpy.float64)
    return array.astype(numpy.int64) if array.dtype.kind in "biu" else array


def _plain(found: Any) -> Any:
    """What was returned, if JSON knows it; else its kind. Tuples are lists, keys are text."""
    try:
        text = json.dumps(found, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return kind_of(found)
    return json.loads(text) if len(text) <= MAX_RESULT else kind_of(found)
