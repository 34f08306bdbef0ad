"""Stored cases: inputs, expected outputs and gradients, tolerances, and what each known mistake returns.

One safetensors file holds the cases of one item and visibility: `public/<item>.safetensors`. Its single metadata key
`cases` is sorted JSON (with one key the bytes are reproducible); its tensors are named

    <case>/input/<name>      <case>/expected/<name>      <case>/mistake/<slug>/<name>

`manifest.json` lists every file with its SHA-256; a file that differs is never graded with.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy

from autograder.grading.items import Assignment, Item
from autograder.sandbox.calls import Request
from autograder.sandbox.observation import Array, Observation, Raised, Returned
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import Visibility

SCHEMA = 1
MANIFEST = "manifest.json"
METADATA_KEY = "cases"
STORED_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")  # no way up, no way out, no second spelling of a folder
Kind = Literal["value", "gradient", "unchanged", "error", "fact"]


@dataclass(frozen=True)
class Expectation:
    """One thing that must hold of what a case returns.

    kind        value      a returned tensor: dtype, named shape, finiteness, values, whether it carries a graph
                gradient   a tensor of gradients
                unchanged  an argument after the call
                fact       a JSON value; `message` explains a difference ({expected}, {observed})
                error      an exception of type `value["type"]` whose text mentions `value["mentions"]`
    name        the name under which the probe returns it
    what        how a sentence names it: "deltas", "the gradient with respect to log_probs"
    axes        names of the axes, for shapes and indices
    rtol, atol  |observed - expected| <= atol + rtol * |expected|
    attached    whether the tensor must carry a graph; None where it does not matter
    diagnosis   explains a failure, causes none
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
    array: Array | None = field(default=None, compare=False)


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

    def request(self, item: Item) -> Request:
        """The call that a worker makes for this case, within the budgets of its item."""
        budgets = item.timeout, item.cpu, item.memory_megabytes, item.output_megabytes
        return Request(item.id, item.function, self.probe, self.params, self.input_bytes(), *budgets)

    def input_bytes(self) -> bytes:
        """The inputs as a worker receives them."""
        return self._encoded

    @functools.cached_property
    def _encoded(self) -> bytes:
        return safetensors.numpy.save({name: np.array(array, order="C") for name, array in self.inputs.items()})


@dataclass(frozen=True)
class Fixtures:
    """All stored cases of an assignment that this copy of the kit holds.

    curves      what is shown and not judged: they expect the solution's own series
    hints       mistake slug → its hint
    sha256      of the manifest: one name for the whole set
    """

    cases: tuple[Case, ...]
    hints: Mapping[str, str]
    sha256: str
    curves: tuple[Case, ...] = ()

    def of_item(self, item_id: str) -> tuple[Case, ...]:
        """The cases of one item."""
        return tuple(case for case in self.cases if case.item == item_id)


def read_fixtures(assignment: Assignment, *, hidden: bool = True, folder: Path | None = None) -> Fixtures:
    """The stored cases, public ones only where `hidden` is false; `folder` may hold another term's set.

    Raises FixtureError where a file is missing, is not what the manifest says, or lacks a case that an item lists.
    Files that are no tensors (items.toml, probes.py) are the assignment's own: another term's set must fit them.
    """
    folder = folder or assignment.folder
    manifest_bytes = _read(folder / MANIFEST)
    manifest = _parse(manifest_bytes, folder / MANIFEST)
    if manifest["assignment"] != assignment.name:
        raise FixtureError(f"{folder} holds fixtures of {manifest['assignment']!r}, not of {assignment.name!r}.")
    names = [name for name in manifest["files"] if hidden or not name.startswith("hidden/")]
    cases: list[Case] = []
    for name in names:
        stored = name.endswith(".safetensors")
        path = (folder if stored else assignment.folder) / name
        data = _read(path)
        if hashlib.sha256(data).hexdigest() != manifest["files"][name]:
            raise FixtureError(
                f"{path} is not the file that {folder / MANIFEST} lists (its SHA-256 differs). "
                "Restore it, or run `autograder fixtures regenerate`."
            )
        if stored:
            cases += decode(data, path)
    _check_complete(assignment, cases, hidden=hidden)
    graded, shown = _in_order(assignment.items, cases), _in_order(assignment.curves, cases)
    sha256 = hashlib.sha256(manifest_bytes).hexdigest()
    return Fixtures(tuple(graded), manifest["hints"], sha256, tuple(shown))


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


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FixtureError(
            f"{path} cannot be read: {error.strerror}. Run `autograder fixtures regenerate` to make the fixtures."
        ) from error


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        manifest = None
    if not _is_manifest(manifest):
        raise FixtureError(
            f"{path} is not a manifest of fixtures. Restore it, or run `autograder fixtures regenerate`."
        )
    if strange := [name for name in manifest["files"] if not STORED_NAME.fullmatch(name)]:
        raise FixtureError(f"{path} lists {strange[0]!r}, which is not the name of a file in its folder. Restore it.")
    return dict(manifest)


def _is_manifest(found: Any) -> bool:
    kinds = {"schema": int, "assignment": str, "files": dict, "hints": dict}
    return (
        isinstance(found, dict)
        and all(isinstance(found.get(key), kind) for key, kind in kinds.items())
        and found["schema"] == SCHEMA
        and found["files"].keys() >= {"items.toml", "probes.py"}
    )


def _check_complete(assignment: Assignment, cases: list[Case], *, hidden: bool) -> None:
    found = {(case.item, case.visibility, case.id) for case in cases}
    for item in (*assignment.items, *assignment.curves):
        listed = [("public", name) for name in item.public] + [("hidden", name) for name in item.hidden if hidden]
        for visibility, name in listed:
            if (item.id, visibility, name) not in found:
                raise FixtureError(f"Item {item.id} lists the {visibility} case {name}, which no stored file holds.")


def _in_order(items: Iterable[Item], cases: list[Case]) -> list[Case]:
    order = [name for item in items for name in (*item.public, *item.hidden)]
    return sorted((case for case in cases if case.id in order), key=lambda case: order.index(case.id))


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
    )


def _expectation(case: str, entry: Mapping[str, Any], tensors: Mapping[str, Array]) -> Expectation:
    array = tensors.get(f"{case}/expected/{entry['name']}")
    if array is None and entry["kind"] in ("value", "gradient", "unchanged"):
        raise ValueError(f"{case} has no expected {entry['name']}")
    return Expectation(**{**entry, "axes": tuple(entry.get("axes", ()))}, array=array)


def _mistake(prefix: str, entry: Mapping[str, Any], tensors: Mapping[str, Array]) -> Observation | Raised:
    if "raised" in entry:
        return Raised(tuple(entry["raised"]), "", None, "")
    returned = {
        name: Returned(**{**value, "shape": tuple(value["shape"])}, array=tensors.get(f"{prefix}/{name}"))
        for name, value in entry["returned"].items()
    }
    return Observation(returned, entry["facts"])


def is_finite(array: Array) -> bool:
    """Whether every value is finite; integers and booleans always are."""
    return bool(np.isfinite(array).all())
