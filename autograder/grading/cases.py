"""Stored cases: inputs, expected outputs and gradients, tolerances, and what each known mistake returns.

One safetensors file holds the cases of one item and visibility: `public/<item>.safetensors`. Its single metadata key
`cases` is sorted JSON (with one key the bytes are reproducible); its tensors are named

    <case>/input/<name>      <case>/expected/<name>      <case>/mistake/<slug>/<name>
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy

from autograder.grading.items import Item
from autograder.sandbox.calls import Array, Observation, Raised, Request, Returned
from autograder.sandbox.worker.calling import TORCH
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import Visibility

UNNAMED = re.compile(r"axis(\d+)")
METADATA_KEY = "cases"
Kind = Literal["value", "gradient", "unchanged", "error", "fact", "witness"]


@dataclass(frozen=True)
class Expectation:
    """One thing that must hold of what a case returns.

    kind        value      a returned tensor: dtype, named shape, finiteness, values, whether it carries a graph
                gradient   a tensor of gradients
                unchanged  an argument after the call
                fact       a JSON value; `message` explains a difference ({expected}, {observed})
                error      an exception of type `value["type"]` whose text mentions `value["mentions"]`
                witness    an example of the student's own, judged here by the formulas in `value`: see `witnesses`
    name        the name under which the probe returns it
    what        how a sentence names it: "deltas", "the gradient with respect to log_probs"
    axes        names of the axes, for shapes and indices
    rtol, atol  |observed - expected| <= atol + rtol * |expected|
    attached    whether the tensor must carry a graph; None where it does not matter
    diagnosis   explains a failure, causes none; a value of this kind is read by `remarks.updates`
    forgiven    what another item judges: "dtype" (values are held to the precision of the dtype that came back),
                "axes" (axes of size 1 may be more or fewer),
                "values" (and shape, finiteness, graph: a tensor of that dtype will do)
    like        of a value or a fact: the name of another one that it must equal, whatever is right, if there is one
    """

    kind: Kind
    name: str
    what: str
    axes: tuple[str, ...] = ()
    dtype: str = ""
    rtol: float = 0.0
    atol: float = 0.0
    attached: bool | None = None
    value: Any = None
    message: str = ""
    diagnosis: bool = False
    forgiven: tuple[str, ...] = ()
    like: str = ""
    array: Array | None = field(default=None, compare=False)

    @property
    def said_axes(self) -> tuple[str, ...]:
        """The axes as sentences call them: `axis 0` where `axis0` stands for no name."""
        return tuple(UNNAMED.sub(r"axis \1", axis) for axis in self.axes)

    @property
    def named_sizes(self) -> dict[str, int]:
        """The size of each axis that has a name."""
        shape = () if self.array is None else self.array.shape
        return {axis: size for axis, size in zip(self.axes, shape, strict=False) if not UNNAMED.fullmatch(axis)}

    def judged_numbers(self, inputs: Iterable[Array]) -> frozenset[float] | None:
        """See `Case.judged_numbers`; None where zeros would do in place of right values, or no value is looked at."""
        if self.kind not in ("value", "gradient") or "values" in self.forgiven or self.like or self.array is None:
            return frozenset((0.0, 1.0)) if self.kind == "witness" else None
        allowed = self.atol + self.rtol * np.abs(self.array)
        if (np.abs(self.array) <= allowed).all():
            return None
        start = tuple(map(slice, self.array.shape))
        begun = [array[start] for array in inputs if array.ndim == self.array.ndim]
        if any(one.shape == self.array.shape and (np.abs(self.array - one) <= allowed).all() for one in begun):
            return frozenset()
        return frozenset((float(self.array.min()), float(self.array.max())))

    def explains(self, kind: Kind) -> bool:
        """Whether this is a diagnosis of that kind."""
        return self.diagnosis and self.kind == kind


@dataclass(frozen=True)
class Case:
    """One call with its expectations, and what each known mistake of the function does in it."""

    id: str
    item: str
    function: str
    title: str
    visibility: Visibility
    probe: str
    params: Mapping[str, Any]
    inputs: Mapping[str, Array]
    expected: tuple[Expectation, ...]
    mistakes: Mapping[str, Observation | Raised]
    hint: str = ""  # what to think about where it fails, if a law knows better than the item

    @functools.cached_property
    def judged_numbers(self) -> Mapping[str, frozenset[float]]:
        """The least and greatest number of each thing that is judged by its values; empty where zeros would pass.

        What begins an input as well has none, a witness two. Numbers of facts count together, where values do.
        """
        binding = [one for one in self.expected if not one.diagnosis]
        every = {one.name: one.judged_numbers(self.inputs.values()) for one in binding}
        found = {name: numbers for name, numbers in every.items() if numbers is not None}
        if not any("values" in one.forgiven for one in binding):
            facts = frozenset(
                n for one in binding if one.kind == "fact" and not one.like for n in _numbers_in(one.value)
            )
            found |= {"": facts} if facts - {0.0} else {}
        return found

    @property
    def values(self) -> str:
        """What the call is of: tensors, NumPy arrays, or lists and numbers."""
        return str(self.params.get("values", TORCH))

    def request(self, item: Item) -> Request:
        """The call that a worker makes for this case, within the budgets of its item."""
        budgets = item.timeout, item.cpu, item.memory_megabytes, item.output_megabytes
        hidden = self.visibility == "hidden"
        return Request(item.id, item.function, self.probe, self.params, self.input_bytes(), *budgets, hidden)

    def input_bytes(self) -> bytes:
        """The inputs as a worker receives them."""
        return self._encoded

    @functools.cached_property
    def _encoded(self) -> bytes:
        return safetensors.numpy.save({name: np.array(array, order="C") for name, array in self.inputs.items()})


def encode(cases: Iterable[Case]) -> bytes:
    """The safetensors file of these cases; the same cases give the same bytes."""
    tensors: dict[str, Array] = {}
    described = []
    for case in cases:
        described.append(_describe_case(case, tensors))
    metadata = {METADATA_KEY: json.dumps(described, sort_keys=True, ensure_ascii=True)}
    contiguous = {name: np.array(array, order="C") for name, array in tensors.items()}  # save() ignores strides
    return safetensors.numpy.save(contiguous, metadata=metadata)


def decode(data: bytes, path: Path) -> list[Case]:
    """The cases in a file that `encode` made; raises FixtureError on anything else."""
    try:
        tensors: dict[str, Array] = safetensors.numpy.load(data)
        return [_case(entry, tensors) for entry in json.loads(_metadata(data)[METADATA_KEY])]
    except (safetensors.SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise FixtureError(f"{path} does not hold stored cases: {error}.") from error


def _metadata(data: bytes) -> dict[str, str]:
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    return dict(header["__metadata__"])


# Encoding


def _describe_case(case: Case, tensors: dict[str, Array]) -> dict[str, Any]:
    for name, array in case.inputs.items():
        tensors[f"{case.id}/input/{name}"] = array
    for expectation in case.expected:
        if expectation.array is not None:
            tensors[f"{case.id}/expected/{expectation.name}"] = expectation.array
    return {
        "case": case.id,
        "item": case.item,
        "function": case.function,
        "title": case.title,
        **({"hint": case.hint} if case.hint else {}),
        "visibility": case.visibility,
        "probe": case.probe,
        "params": dict(case.params),
        "inputs": list(case.inputs),
        "expected": [_describe_expectation(expectation) for expectation in case.expected],
        "mistakes": {
            slug: _describe_mistake(f"{case.id}/mistake/{slug}", seen, tensors) for slug, seen in case.mistakes.items()
        },
    }


def _describe_expectation(expectation: Expectation) -> dict[str, Any]:
    return {
        name: getattr(expectation, name)
        for name in Expectation.__dataclass_fields__
        if name != "array" and getattr(expectation, name) != Expectation.__dataclass_fields__[name].default
    }


def _describe_mistake(prefix: str, seen: Observation | Raised, tensors: dict[str, Array]) -> dict[str, Any]:
    if isinstance(seen, Raised):
        return {"raised": list(seen.types)}
    returned: dict[str, Any] = {}
    for name, value in seen.returned.items():
        returned[name] = {"kind": value.kind, "type": value.type, "dtype": value.dtype, "shape": list(value.shape)}
        returned[name]["requires_grad"] = value.requires_grad
        if value.array is not None:
            tensors[f"{prefix}/{name}"] = value.array
    return {"returned": returned, "facts": dict(seen.facts)}


# Decoding


def _case(entry: Mapping[str, Any], tensors: Mapping[str, Array]) -> Case:
    name = entry["case"]
    return Case(
        id=name,
        item=entry["item"],
        function=entry["function"],
        title=entry["title"],
        visibility=entry["visibility"],
        probe=entry["probe"],
        params=entry["params"],
        inputs={key: tensors[f"{name}/input/{key}"] for key in entry["inputs"]},
        expected=tuple(_expectation(name, expectation, tensors) for expectation in entry["expected"]),
        mistakes={slug: _mistake(f"{name}/mistake/{slug}", seen, tensors) for slug, seen in entry["mistakes"].items()},
        hint=entry.get("hint", ""),
    )


def _expectation(case: str, entry: Mapping[str, Any], tensors: Mapping[str, Array]) -> Expectation:
    array = tensors.get(f"{case}/expected/{entry['name']}")
    if array is None and entry["kind"] in ("value", "gradient", "unchanged"):
        raise ValueError(f"{case} has no expected {entry['name']}")
    sequences = {key: tuple(entry.get(key, ())) for key in ("axes", "forgiven")}
    return Expectation(**{**entry, **sequences}, array=array)


def _mistake(prefix: str, entry: Mapping[str, Any], tensors: Mapping[str, Array]) -> Observation | Raised:
    if "raised" in entry:
        return Raised(tuple(entry["raised"]), "", None, "")
    returned = {
        name: Returned(**{**value, "shape": tuple(value["shape"])}, array=tensors.get(f"{prefix}/{name}"))
        for name, value in entry["returned"].items()
    }
    return Observation(returned, entry["facts"])


def _numbers_in(value: Any) -> list[float]:
    """The numbers in a JSON value, however deep; truth values are none."""
    if isinstance(value, dict | list):
        return [found for one in (value.values() if isinstance(value, dict) else value) for found in _numbers_in(one)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def is_finite(array: Array) -> bool:
    """Whether every value is finite; integers and booleans always are."""
    return bool(np.isfinite(array).all())


def are_flags(array: Array | None) -> bool:
    """Whether whole numbers are truth values, as a probe tells them."""
    return array is not None and array.dtype.kind == "i" and bool(np.isin(array, (0, 1)).all())
