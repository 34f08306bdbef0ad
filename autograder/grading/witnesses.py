"""An example that student code returned, judged outside the sandbox: formulas over its tensors, evaluated here.

What makes an example right is data of the stored case, and so are the words for what is wrong with it:

    of      {name: axis}       the tensors that it consists of; all that share an axis have one size
    sizes   [least, most]      of every axis
    dtypes  [name, …]          that the tensors may have; may be left out
    let     {name: formula}    numbers and arrays with names of their own, in order
    faults  [[phrase, formula], …]   the first formula that holds says what is wrong

A formula is Python's arithmetic and comparison over those names, with sum, min, max, abs and len. Nothing in it can
call or reach anything else.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.sandbox.calls import Array, Returned

FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {"sum": np.sum, "min": np.min, "max": np.max, "abs": np.abs, "len": len}
OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def fault_of(claim: Mapping[str, Any], returned: Mapping[str, Returned]) -> str:
    """What is wrong with the example, as a phrase; "" where it is one of what was asked for."""
    if fault := _fault_of_form(claim, returned):
        return fault
    known = {name: _array(returned[name]) for name in claim["of"]}
    with np.errstate(all="ignore"):
        for name, formula in claim.get("let", {}).items():
            known[name] = evaluate(formula, known)
        return next((phrase for phrase, formula in claim["faults"] if bool(evaluate(formula, known))), "")


def evaluate(formula: str, known: Mapping[str, Any]) -> Any:
    """The value of the formula; raises ValueError where it holds more than arithmetic over what is known."""
    return _value(ast.parse(formula, mode="eval").body, known)


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, known)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, known), _value(right, known))
        case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](_value(argument, known))
    raise ValueError(f"{ast.unparse(node)!r} is no part of a formula")


# The form of an example


def _fault_of_form(claim: Mapping[str, Any], returned: Mapping[str, Returned]) -> str:
    least, most = claim["sizes"]
    sizes: dict[str, int] = {}
    for name, axis in claim["of"].items():
        found = returned.get(name, Returned("none"))
        if found.array is None:
            return f"{name} is no tensor of numbers"
        if found.dtype not in claim.get("dtypes", [found.dtype]):
            return f"{name} has dtype {found.dtype}"
        if found.array.ndim != 1:
            return f"{name} has {found.array.ndim} axes and not one"
        if not least <= sizes.setdefault(axis, found.array.size) <= most:
            return f"{name} has {found.array.size} entries"
        if found.array.size != sizes[axis]:
            return f"{_names(claim['of'])} have different sizes"
        if not np.isfinite(_array(found)).all():
            return f"{name} is not finite"
    return ""


def _array(returned: Returned) -> Array:
    assert returned.array is not None
    return returned.array.astype(np.float64)


def _names(names: Sequence[str] | Mapping[str, str]) -> str:
    return " and ".join(names)
