"""Compare what was observed with what is expected. Pure: arrays and descriptions in, a Mismatch or None out.

The ladder: returned → tensor → dtype → named shape → finite → values → graph, then errors, facts, gradients and purity.
The first rung that breaks is the one reported. The tolerance is decided in `right_places`.

A witness is an example of the student's own, judged by formulas that are data of the stored case:

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
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from autograder.grading.fixtures import Expectation
from autograder.sandbox.calls import Array, Observation, Returned
from autograder.sandbox.worker.calling import attempt, unkeyed

Rung = Literal[
    "returned", "tensor", "dtype", "shape", "finite", "values", "graph", "error", "fact", "gradient", "purity"
]
KIND_ORDER = ("value", "witness", "error", "fact", "gradient", "unchanged")
SINGLE = (1e-4, 1e-6)  # what float32 answers may differ by: relative, and absolute as a share of the greatest value
SHOWN = 3
MAX_KEY = 200  # characters of a key of a dictionary that may stand for a number
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
NOTHING = Returned("none")


@dataclass(frozen=True)
class Difference:
    """One place where two arrays differ."""

    index: tuple[int, ...]
    observed: float
    expected: float


@dataclass(frozen=True)
class Mismatch:
    """The first expectation that does not hold, and on which rung.

    first       the first differing places, at most three; `differing` of `total` differ
    shared      axis and index that all differing places share, where there is one
    relative    the greatest relative difference, where all values are finite
    observed    the fact or error that was observed
    right       what else the case returned as it should, where values differ
    diagnoses   facts that differ too and explain the cause, with what was observed
    """

    rung: Rung
    expectation: Expectation
    returned: Returned = NOTHING
    first: tuple[Difference, ...] = ()
    differing: int = 0
    total: int = 0
    shared: tuple[str, int] | None = None
    relative: float | None = None
    observed: Any = None
    right: tuple[str, ...] = ()
    diagnoses: tuple[tuple[Expectation, Any], ...] = ()


def compare(expected: Sequence[Expectation], observation: Observation) -> Mismatch | None:
    """Compare an observation with its expectations: the first that it breaks, or None where all hold."""
    facts = observation.facts
    binding = [expectation for expectation in expected if not expectation.diagnosis]
    for expectation in sorted(binding, key=lambda expectation: KIND_ORDER.index(expectation.kind)):
        mismatch = compare_one(expectation, observation)
        if mismatch is None:
            continue
        if mismatch.rung in ("values", "finite"):
            others = [each for each in binding if each.kind == "value" and not each.like and each is not expectation]
            right = tuple(other.what for other in others if compare_one(other, observation) is None)
            mismatch = replace(mismatch, right=right)
        if mismatch.rung == "returned" or (mismatch.rung == "gradient" and mismatch.returned.kind != "tensor"):
            mismatch = replace(mismatch, observed=facts.get("kind", facts.get("returned")))  # what came as a whole
        diagnoses = tuple(
            (diagnosis, facts.get(diagnosis.name))
            for diagnosis in expected
            if diagnosis.explains("fact") and facts.get(diagnosis.name) != diagnosis.value
        )
        return replace(mismatch, diagnoses=diagnoses)
    return None


def compare_one(expectation: Expectation, observation: Observation) -> Mismatch | None:
    """Compare an observation with one expectation: how it breaks it, or None where it holds."""
    facts, returned = observation.facts, observation.returned.get(expectation.name, NOTHING)
    match expectation.kind:
        case "fact" | "error":
            observed, wanted = facts.get(expectation.name), expectation.value
            if expectation.like:  # the same as another fact, whatever is right, if it is there
                wanted = facts.get(expectation.like)
                observed, expectation = facts.get(expectation.name, wanted), replace(expectation, value=wanted)
            is_error = expectation.kind == "error"
            holds = error_holds(expectation, observed) if is_error else alike(observed, wanted)
            return None if holds else Mismatch("error" if is_error else "fact", expectation, observed=observed)
        case "value" | "gradient" if expectation.like:
            twin, own = observation.returned.get(expectation.like, NOTHING), returned.array
            if twin.array is None:
                return None
            is_comparable = returned.dtype == twin.dtype and expectation.attached is None
            if own is not None and is_comparable and np.array_equal(own, twin.array, equal_nan=True):
                return None  # the same nan is the same, though it is right nowhere
            return _compare_tensor(replace(expectation, array=twin.array, dtype=twin.dtype, like=""), returned)
        case "value" | "gradient":
            return _compare_tensor(expectation, returned)
        case "unchanged":
            before, after = expected_array(expectation), returned.array
            if after is None or after.dtype != before.dtype or after.shape != before.shape:
                return Mismatch("purity", expectation, returned)
            # the same bytes hold the same values, which is quicker to see than that NaN is NaN
            is_same = after.tobytes() == before.tobytes() or np.array_equal(after, before, equal_nan=True)
            return None if is_same else Mismatch("purity", expectation, returned)
        case "witness":
            fault = fault_of(expectation.value, observation.returned)
            return Mismatch("fact", expectation, observed=fault) if fault else None


def alike(observed: Any, wanted: Any) -> bool:
    """Whether two JSON values are the same, floats to six digits: another order of a sum gives another last one."""
    if isinstance(wanted, list) and isinstance(observed, list) and len(observed) == len(wanted):
        return all(map(alike, observed, wanted))
    if isinstance(wanted, dict) and isinstance(observed, dict):
        own, right = ({_python_key(key): entry for key, entry in one.items()} for one in (observed, wanted))
        return own.keys() == right.keys() and all(alike(own[key], entry) for key, entry in right.items())
    if isinstance(wanted, float) and isinstance(observed, float):
        return math.isclose(observed, wanted, rel_tol=1e-6, abs_tol=1e-12)
    return bool(observed == wanted)


def _python_key(key: str) -> Any:
    """Return the key that a text stands for, so that 2.0 is 2 and True is 1; the text where it stands for none."""
    if len(key) > MAX_KEY:  # what a student wrote is parsed here, outside the sandbox
        return key
    made, error = attempt(lambda: [*unkeyed({key: None})])
    return key if error else made[0]


def error_holds(expectation: Expectation, observed: Any) -> bool:
    """Tell whether an error of the expected type was raised, with all that its text must mention."""
    types, message = (observed.get("types"), observed.get("message")) if isinstance(observed, dict) else (None, None)
    if not isinstance(types, list) or expectation.value["type"] not in types:
        return False
    for text in expectation.value.get("mentions", ()):
        # a single letter, which is in any message, counts as a word: `n` is not in `None`
        is_letter = len(text) == 1 and text.isalnum()
        pattern, flags = (rf"(?<!\w){text}(?!\w)", re.NOFLAG) if is_letter else (re.escape(text), re.IGNORECASE)
        if not isinstance(message, str) or not re.search(pattern, message, flags):
            return False
    return True


def _compare_tensor(expectation: Expectation, returned: Returned) -> Mismatch | None:
    """Go up the ladder for a value, or for a gradient, whose wrong numbers are a rung of their own."""
    is_value = expectation.kind == "value"
    if returned.kind != "tensor":
        rung: Rung = "gradient" if not is_value else "returned" if returned.kind == "none" else "tensor"
        return Mismatch(rung, expectation, returned)
    if is_value and "values" in expectation.forgiven:
        right = "dtype" in expectation.forgiven or returned.dtype == expectation.dtype
        return None if right else Mismatch("dtype", expectation, returned)
    expectation = _at_its_precision(expectation, returned)
    expected, array = expected_array(expectation), returned.array
    sizes, wanted = ([size for size in shape if size != 1] for shape in (returned.shape, expected.shape))
    if "axes" in expectation.forgiven and array is not None and sizes == wanted:  # only axes of size 1 differ
        array = array.reshape(expected.shape)
        returned = replace(returned, shape=expected.shape, array=array)
    if returned.dtype != expectation.dtype:
        return Mismatch("dtype", expectation, returned)
    if returned.shape != expected.shape:
        return Mismatch("shape", expectation, returned)
    if array is None:
        return Mismatch("tensor", expectation, returned)
    # most right answers are the same finite numbers to the last bit
    is_same = array.dtype == expected.dtype and array.tobytes() == expected.tobytes() and np.isfinite(expected).all()
    if not is_same and not right_places(expectation, array).all():
        mismatch = _differing(expectation, returned, array)
        return mismatch if is_value else replace(mismatch, rung="gradient")
    if is_value and expectation.attached not in (None, returned.requires_grad):
        return Mismatch("graph", expectation, returned)
    return None


def _at_its_precision(expectation: Expectation, returned: Returned) -> Expectation:
    """Take the dtype that came back, where the expectation's own is forgiven; float32 may differ by more."""
    if "dtype" not in expectation.forgiven or returned.array is None or returned.dtype == expectation.dtype:
        return expectation
    if returned.dtype != "float32":
        return replace(expectation, dtype=returned.dtype)
    expected = expected_array(expectation)
    scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
    rtol, atol = max(expectation.rtol, SINGLE[0]), max(expectation.atol, SINGLE[1] * scale)
    return replace(expectation, dtype=returned.dtype, rtol=rtol, atol=atol)


def _differing(expectation: Expectation, returned: Returned, array: Array) -> Mismatch:
    """Say where and by how much values differ that are not right everywhere."""
    observed, wide, right = widened(array), widened(expected_array(expectation)), right_places(expectation, array)
    finite = np.isfinite(observed) | right  # an infinity where one is expected is as good as a number
    indices = np.argwhere(~right)
    shown = [tuple(index) for index in indices[:SHOWN].tolist()]
    columns = zip(expectation.axes, indices.T, wide.shape, strict=False)
    shared = (  # the axes along which all differing places agree, where others on that axis are right
        (axis, int(places[0]))
        for axis, places, size in columns
        if len(places) > 1 and size > 1 and (places == places[0]).all()
    )
    relative = None
    if (np.isfinite(observed) & np.isfinite(wide)).all():
        scale = float(np.abs(wide).max()) or 1.0
        with np.errstate(all="ignore"):
            relative = float((np.abs(observed - wide) / np.maximum(np.abs(wide), 1e-3 * scale)).max())
    return Mismatch(
        rung="values" if finite.all() or np.isinf(wide).any() else "finite",
        expectation=expectation,
        returned=returned,
        first=tuple(Difference(index, float(observed[index]), float(wide[index])) for index in shown),
        differing=len(indices),
        total=wide.size,
        shared=next(shared, None),
        relative=relative,
    )


def right_places(expectation: Expectation, observed: Array) -> Array:
    """Mark where `observed` is within the tolerance, or the same infinity: bool, of the shape of both."""
    expected = expected_array(expectation)
    wide, seen = widened(expected), widened(observed)
    with np.errstate(invalid="ignore", over="ignore"):
        near: Array = np.abs(seen - wide) <= expectation.atol + expectation.rtol * np.abs(wide)
    near &= np.isfinite(seen) & np.isfinite(wide)
    near |= np.isinf(wide) & (seen == wide)
    if expectation.rtol == expectation.atol == 0:  # float64 does not tell all integers apart
        near &= observed == expected
    return near


def widened(array: Array) -> Array:
    """Return the array as float64."""
    return array.astype(np.float64, copy=False)


def expected_array(expectation: Expectation) -> Array:
    """Return the stored array of an expectation that has one."""
    assert expectation.array is not None, f"{expectation.name} is compared as a tensor but stores none"
    return expectation.array


# Witnesses


def fault_of(claim: Mapping[str, Any], returned: Mapping[str, Returned]) -> str:
    """Say what is wrong with a student's example, as a phrase; "" where it is one of what was asked for."""
    if fault := _fault_of_form(claim, returned):
        return fault
    known = {name: widened(array) for name in claim["of"] if (array := returned[name].array) is not None}
    with np.errstate(all="ignore"):
        for name, formula in claim.get("let", {}).items():
            known[name] = evaluate(formula, known)
        return next((phrase for phrase, formula in claim["faults"] if bool(evaluate(formula, known))), "")


def evaluate(formula: str, known: Mapping[str, Any]) -> Any:
    """Evaluate a formula; raises ValueError where it holds more than arithmetic over what is known."""
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


def _fault_of_form(claim: Mapping[str, Any], returned: Mapping[str, Returned]) -> str:
    least, most = claim["sizes"]
    sizes: dict[str, int] = {}
    for name, axis in claim["of"].items():
        value = returned.get(name, NOTHING)
        if value.array is None:
            return f"{name} is no tensor of numbers"
        if value.dtype not in claim.get("dtypes", [value.dtype]):
            return f"{name} has dtype {value.dtype}"
        if value.array.ndim != 1:
            return f"{name} has {value.array.ndim} axes and not one"
        if not least <= sizes.setdefault(axis, value.array.size) <= most:
            return f"{name} has {value.array.size} entries"
        if value.array.size != sizes[axis]:
            return " and ".join(claim["of"]) + " have different sizes"
        if not np.isfinite(value.array).all():
            return f"{name} is not finite"
    return ""
