"""Hold what was observed against what is expected. Pure: arrays and descriptions in, a Mismatch or None out.

The ladder: returned → tensor → dtype → named shape → finite → values → graph, then errors, facts, gradients and purity.
The first rung that breaks is the one reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from autograder.grading.cases import Expectation
from autograder.grading.witnesses import fault_of
from autograder.sandbox.calls import Array, Observation, Returned

Rung = Literal[
    "returned", "tensor", "dtype", "shape", "finite", "values", "graph", "error", "fact", "gradient", "purity"
]
KIND_ORDER = ("value", "witness", "error", "fact", "gradient", "unchanged")
SINGLE = (1e-4, 1e-6)  # what float32 answers may differ by: relative, and absolute as a share of the greatest value
SHOWN = 3
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
    """The first expectation that the observation breaks, or None where all hold."""
    binding = [expectation for expectation in expected if not expectation.diagnosis]
    for expectation in sorted(binding, key=lambda expectation: KIND_ORDER.index(expectation.kind)):
        mismatch = compare_one(expectation, observation)
        if mismatch is not None:
            found = replace(mismatch, right=_right_values(mismatch, binding, observation))
            if found.rung == "returned" or (found.rung == "gradient" and found.returned.kind != "tensor"):
                found = replace(found, observed=_kind_of_whole(observation.facts))
            return _with_diagnoses(found, expected, observation.facts)
    return None


def _kind_of_whole(facts: Mapping[str, Any]) -> Any:
    """What came back as a whole, where the probe says so."""
    return facts.get("kind", facts.get("returned"))


def _right_values(mismatch: Mismatch, binding: Sequence[Expectation], observation: Observation) -> tuple[str, ...]:
    if mismatch.rung not in ("values", "finite"):
        return ()
    others = [one for one in binding if one.kind == "value" and one is not mismatch.expectation]
    return tuple(one.what for one in others if compare_one(one, observation) is None)


def _with_diagnoses(mismatch: Mismatch, expected: Sequence[Expectation], facts: Mapping[str, Any]) -> Mismatch:
    diagnoses = tuple(
        (expectation, facts.get(expectation.name))
        for expectation in expected
        if expectation.explains("fact") and facts.get(expectation.name) != expectation.value
    )
    return replace(mismatch, diagnoses=diagnoses)


def compare_one(expectation: Expectation, observation: Observation) -> Mismatch | None:
    """How the observation breaks this one expectation, or None where it holds."""
    match expectation.kind:
        case "value" | "fact" | "gradient" if expectation.like:
            return _compare_with_other(expectation, observation)
        case "fact" | "error":
            return _compare_json(expectation, observation.facts.get(expectation.name))
        case "value":
            return _compare_value(expectation, observation.returned.get(expectation.name, NOTHING))
        case "gradient":
            return _compare_gradient(expectation, observation.returned.get(expectation.name, NOTHING))
        case "unchanged":
            return _compare_argument(expectation, observation.returned.get(expectation.name, NOTHING))
        case "witness":
            fault = fault_of(expectation.value, observation.returned)
            return Mismatch("fact", expectation, observed=fault) if fault else None


def _compare_with_other(expectation: Expectation, observation: Observation) -> Mismatch | None:
    """Hold one thing that came back against another that should be the same; nothing where the other is not there."""
    if expectation.kind == "fact":
        other = observation.facts.get(expectation.like)
        return _compare_json(replace(expectation, value=other), observation.facts.get(expectation.name, other))
    twin = observation.returned.get(expectation.like, NOTHING)
    if twin.array is None:
        return None
    right = replace(expectation, array=twin.array, dtype=twin.dtype, like="")
    compare_tensor = _compare_gradient if expectation.kind == "gradient" else _compare_value
    return compare_tensor(right, observation.returned.get(expectation.name, NOTHING))


def _compare_json(expectation: Expectation, observed: Any) -> Mismatch | None:
    holds = error_holds(expectation, observed) if expectation.kind == "error" else observed == expectation.value
    rung: Rung = "error" if expectation.kind == "error" else "fact"
    return None if holds else Mismatch(rung, expectation, observed=observed)


def error_holds(expectation: Expectation, observed: Any) -> bool:
    """Whether an error of the expected type was raised, with all that its text must mention."""
    types, message = (observed.get("types"), observed.get("message")) if isinstance(observed, dict) else (None, None)
    if not isinstance(types, list) or expectation.value["type"] not in types:
        return False
    return all(isinstance(message, str) and _holds(message, text) for text in expectation.value.get("mentions", ()))


def _holds(message: str, text: str) -> bool:
    """Whether it is in the message; a single letter, which is in any, as a word: `n` is not in `None`."""
    if len(text) == 1 and text.isalnum():
        return re.search(rf"(?<!\w){text}(?!\w)", message) is not None
    return text in message


def _compare_value(expectation: Expectation, returned: Returned) -> Mismatch | None:
    expected = expected_array(expectation)
    if returned.kind == "none":
        return Mismatch("returned", expectation, returned)
    if returned.kind != "tensor":
        return Mismatch("tensor", expectation, returned)
    if "values" in expectation.forgiven:
        right = "dtype" in expectation.forgiven or returned.dtype == expectation.dtype
        return None if right else Mismatch("dtype", expectation, returned)
    expectation, returned = _at_its_precision(expectation, returned), _without_axes_of_one(expectation, returned)
    mismatch = _compare_form(expectation, returned) or _compare_arrays(expectation, returned, expected)
    if mismatch is None and expectation.attached not in (None, returned.requires_grad):
        return Mismatch("graph", expectation, returned)
    return mismatch


def _at_its_precision(expectation: Expectation, returned: Returned) -> Expectation:
    """The expectation with the dtype that came back, where its own is forgiven; float32 may differ by more."""
    if "dtype" not in expectation.forgiven or returned.array is None or returned.dtype == expectation.dtype:
        return expectation
    if returned.dtype != "float32":
        return replace(expectation, dtype=returned.dtype)
    expected = expected_array(expectation)
    scale = max(1.0, float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0)))
    rtol, atol = max(expectation.rtol, SINGLE[0]), max(expectation.atol, SINGLE[1] * scale)
    return replace(expectation, dtype=returned.dtype, rtol=rtol, atol=atol)


def _without_axes_of_one(expectation: Expectation, returned: Returned) -> Returned:
    """What came back in the expected shape, where axes of size 1 are forgiven and no others differ."""
    if "axes" not in expectation.forgiven or returned.array is None:
        return returned
    shape, expected = returned.shape, expected_array(expectation).shape
    if [size for size in shape if size != 1] != [size for size in expected if size != 1]:
        return returned
    return replace(returned, shape=expected, array=returned.array.reshape(expected))


def _compare_form(expectation: Expectation, returned: Returned) -> Mismatch | None:
    if returned.dtype != expectation.dtype:
        return Mismatch("dtype", expectation, returned)
    if returned.shape != expected_array(expectation).shape:
        return Mismatch("shape", expectation, returned)
    return None


def _compare_gradient(expectation: Expectation, returned: Returned) -> Mismatch | None:
    expected = expected_array(expectation)
    if returned.kind != "tensor":
        return Mismatch("gradient", expectation, returned)
    expectation, returned = _at_its_precision(expectation, returned), _without_axes_of_one(expectation, returned)
    mismatch = _compare_form(expectation, returned) or _compare_arrays(expectation, returned, expected)
    if mismatch is None or mismatch.rung not in ("finite", "values"):
        return mismatch
    return replace(mismatch, rung="gradient")


def _compare_argument(expectation: Expectation, returned: Returned) -> Mismatch | None:
    before, after = expected_array(expectation), returned.array
    same = after is not None and after.dtype == before.dtype and _same_values(after, before)
    return None if same else Mismatch("purity", expectation, returned)


def _same_values(after: Array, before: Array) -> bool:
    """Whether no value changed. The same bytes hold the same values, which is quicker to see than that NaN is NaN."""
    if after.shape == before.shape and after.tobytes() == before.tobytes():
        return True
    return bool(np.array_equal(after, before, equal_nan=True))


def _compare_arrays(expectation: Expectation, returned: Returned, expected: Array) -> Mismatch | None:
    if returned.array is None:
        return Mismatch("tensor", expectation, returned)
    if _are_the_same_bits(returned.array, expected):
        return None
    right = right_places(expectation, returned.array)
    if right.all():
        return None
    wrong, wide, observed = ~right, widened(expected), widened(returned.array)
    finite = np.isfinite(observed) | right  # an infinity where one is expected is as good as a number
    indices = [tuple(int(n) for n in index) for index in np.argwhere(wrong)]
    return Mismatch(
        rung="values" if finite.all() or np.isinf(wide).any() else "finite",
        expectation=expectation,
        returned=returned,
        first=tuple(Difference(index, float(observed[index]), float(wide[index])) for index in indices[:SHOWN]),
        differing=len(indices),
        total=wide.size,
        shared=_shared_index(indices, expectation.axes, wide.shape),
        relative=_greatest_relative(observed, wide) if (np.isfinite(observed) & np.isfinite(wide)).all() else None,
    )


def _are_the_same_bits(observed: Array, expected: Array) -> bool:
    """Whether they hold the same finite numbers to the last bit, as most right answers do."""
    same = observed.dtype == expected.dtype and observed.shape == expected.shape
    return same and observed.tobytes() == expected.tobytes() and bool(np.isfinite(expected).all())


def right_places(expectation: Expectation, observed: Array) -> Array:
    """Where `observed` is within the tolerance, or the same infinity: bool, of the shape of both."""
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
    """The array as float64."""
    return array.astype(np.float64, copy=False)


def _greatest_relative(observed: Array, expected: Array) -> float:
    scale = float(np.abs(expected).max()) or 1.0
    with np.errstate(all="ignore"):
        return float((np.abs(observed - expected) / np.maximum(np.abs(expected), 1e-3 * scale)).max())


def _shared_index(
    indices: Sequence[tuple[int, ...]], axes: Sequence[str], shape: Sequence[int]
) -> tuple[str, int] | None:
    """The first axis along which all differing places agree, where others on that axis are right."""
    for position, axis in enumerate(axes):
        places = {index[position] for index in indices}
        if len(places) == 1 and shape[position] > 1 and len(indices) > 1:
            return axis, places.pop()
    return None


def expected_array(expectation: Expectation) -> Array:
    """The stored array of an expectation that has one."""
    assert expectation.array is not None, f"{expectation.name} is compared as a tensor but stores none"
    return expectation.array
