"""Read and write stored cases: inputs, expected values, tolerances, and what each known mistake returns.

One safetensors file holds the cases of one item and visibility: `public/<item>.safetensors`. Its single metadata key
`cases` is sorted JSON (with one key the bytes are reproducible); its tensors are named

    <case>/input/<name>      <case>/expected/<name>      <case>/mistake/<slug>/<name>

`manifest.json` lists every file of the set with its SHA-256; a file that differs is never graded with.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy

from autograder.grading.assignment import Assignment, Item
from autograder.sandbox.calls import Array, Observation, Raised, Request, Returned
from autograder.sandbox.interpreter import withhold
from autograder.sandbox.worker.calling import TORCH
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import Visibility

SCHEMA = 1
MANIFEST = "manifest.json"
STORED_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")  # no way up, no way out, no second spelling of a folder
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
                witness    an example of the student's own, judged here by the formulas in `value`: see `compare`
    name        the name under which the probe returns it
    what        how a sentence names it: "deltas", "the gradient with respect to log_probs"
    axes        names of the axes, for shapes and indices
    rtol, atol  |observed - expected| <= atol + rtol * |expected|
    attached    whether the tensor must carry a graph; None where it does not matter
    diagnosis   explains a failure, causes none; a value of this kind is read by `wording.about_updates`
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

    def judged_numbers(self, inputs: Iterable[Array]) -> frozenset[float] | None:
        """See `Case.judged_numbers`; None where zeros would do in place of right values, or no value is looked at."""
        if self.kind not in ("value", "gradient") or "values" in self.forgiven or self.like or self.array is None:
            return frozenset((0.0, 1.0)) if self.kind == "witness" else None
        expected = self.array.astype(np.float64)  # truth values cannot be subtracted
        allowed = self.atol + self.rtol * np.abs(expected)
        if (np.abs(expected) <= allowed).all():
            return None
        start = tuple(map(slice, expected.shape))
        for array in inputs:
            begun = array[start].astype(np.float64) if array.ndim == expected.ndim else None
            if begun is not None and begun.shape == expected.shape and (np.abs(expected - begun) <= allowed).all():
                return frozenset()
        return frozenset((float(expected.min()), float(expected.max())))

    def explains(self, kind: Kind) -> bool:
        """Tell whether this is a diagnosis of that kind."""
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
    def judged_numbers(self) -> Mapping[str, frozenset[float | str]]:
        """The least and greatest number of each thing that is judged by its values; empty where zeros would pass.

        What begins an input as well has none, a witness two. Numbers of facts count together, where values do, and
        the texts and keys beside them.
        """
        binding = [expectation for expectation in self.expected if not expectation.diagnosis]
        judged: dict[str, frozenset[float | str]] = {}
        for expectation in binding:
            numbers = expectation.judged_numbers(self.inputs.values())
            judged |= {} if numbers is None else {expectation.name: numbers}
        if not any("values" in expectation.forgiven for expectation in binding):
            facts = [e.value for e in binding if e.kind == "fact" and not e.like]
            leaves = frozenset(_leaves_in(facts))
            judged |= {"": leaves} if any(isinstance(leaf, float) and leaf for leaf in leaves) else {}
        return judged

    @property
    def values(self) -> str:
        """What the call is of: tensors, NumPy arrays, or lists and numbers."""
        return str(self.params.get("values", TORCH))

    def request(self, item: Item) -> Request:
        """Make the call that a worker runs for this case, within the budgets of its item."""
        budgets = item.timeout, item.cpu, item.memory_megabytes, item.output_megabytes
        hidden = self.visibility == "hidden"
        return Request(item.id, item.function, self.probe, self.params, self.encoded_inputs, *budgets, hidden)

    @functools.cached_property
    def encoded_inputs(self) -> bytes:
        """The inputs as a worker receives them."""
        return safetensors.numpy.save({name: np.array(array, order="C") for name, array in self.inputs.items()})


def _leaves_in(value: Any) -> list[float | str]:
    """Collect the numbers, texts and keys in a JSON value, however deep; truth values are none."""
    if isinstance(value, dict | list):
        entries = [*value, *value.values()] if isinstance(value, dict) else value
        return [leaf for entry in entries for leaf in _leaves_in(entry)]
    if isinstance(value, str):
        return [value]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


# Files of cases


def encode(cases: Iterable[Case]) -> bytes:
    """Make the safetensors file of these cases; the same cases give the same bytes.

    Nothing is sorted: functions may go by the order of a dictionary's keys.
    """
    tensors: dict[str, Array] = {}
    described = [_describe_case(case, tensors) for case in cases]
    metadata = {METADATA_KEY: json.dumps(described, ensure_ascii=True)}
    contiguous = {name: np.array(array, order="C") for name, array in tensors.items()}  # save() ignores strides
    return safetensors.numpy.save(contiguous, metadata=metadata)


def decode(data: bytes, path: Path) -> list[Case]:
    """Read the cases of a file that `encode` made; raises FixtureError on anything else."""
    try:
        tensors: dict[str, Array] = safetensors.numpy.load(data)
        length = int.from_bytes(data[:8], "little")  # of the header, which safetensors.numpy does not return
        metadata = json.loads(data[8 : 8 + length])["__metadata__"]
        return [_case(entry, tensors) for entry in json.loads(metadata[METADATA_KEY])]
    except (safetensors.SafetensorError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise FixtureError(f"{path} does not hold stored cases: {error}.") from error


def _describe_case(case: Case, tensors: dict[str, Array]) -> dict[str, Any]:
    for name, array in case.inputs.items():
        tensors[f"{case.id}/input/{name}"] = array
    for expectation in case.expected:
        if expectation.array is not None:
            tensors[f"{case.id}/expected/{expectation.name}"] = expectation.array
    mistakes: dict[str, dict[str, Any]] = {}
    for slug, seen in case.mistakes.items():
        if isinstance(seen, Raised):
            mistakes[slug] = {"raised": list(seen.types)}
            continue
        kept = ("kind", "type", "dtype", "shape", "requires_grad")
        returned = {name: {key: getattr(value, key) for key in kept} for name, value in seen.returned.items()}
        mistakes[slug] = {"returned": returned, "facts": dict(seen.facts)}
        for name, value in seen.returned.items():
            if value.array is not None:
                tensors[f"{case.id}/mistake/{slug}/{name}"] = value.array
    usual = {field.name: field.default for field in fields(Expectation)}
    return {
        "case": case.id,
        **{name: getattr(case, name) for name in ("item", "function", "title", "visibility", "probe")},
        **({"hint": case.hint} if case.hint else {}),
        "params": dict(case.params),
        "inputs": list(case.inputs),
        "expected": [
            {name: value for name, value in vars(one).items() if name != "array" and value != usual[name]}
            for one in case.expected
        ],
        "mistakes": mistakes,
    }


def _case(entry: Mapping[str, Any], tensors: Mapping[str, Array]) -> Case:
    name, expected = entry["case"], []
    for described in entry["expected"]:
        array = tensors.get(f"{name}/expected/{described['name']}")
        if array is None and described["kind"] in ("value", "gradient", "unchanged"):
            raise ValueError(f"{name} has no expected {described['name']}")
        sequences = {key: tuple(described.get(key, ())) for key in ("axes", "forgiven")}
        expected.append(Expectation(**{**described, **sequences}, array=array))
    mistakes: dict[str, Observation | Raised] = {}
    for slug, seen in entry["mistakes"].items():
        if "raised" in seen:
            mistakes[slug] = Raised(tuple(seen["raised"]), "", None, "")
            continue
        returned = {
            key: Returned(
                **{**value, "shape": tuple(value["shape"])}, array=tensors.get(f"{name}/mistake/{slug}/{key}")
            )
            for key, value in seen["returned"].items()
        }
        mistakes[slug] = Observation(returned, seen["facts"])
    read = {
        "id": name,
        "inputs": {key: tensors[f"{name}/input/{key}"] for key in entry["inputs"]},
        "expected": tuple(expected),
        "mistakes": mistakes,
    }
    return Case(**{key: value for key, value in entry.items() if key != "case"} | read)


# The stored set


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

    @property
    def holds_hidden(self) -> bool:
        """Tell whether there is a hidden case among them: in a student's folder there is none."""
        return any(case.visibility == "hidden" for case in self.cases)

    def of_item(self, item_id: str) -> tuple[Case, ...]:
        """Return the cases of one item."""
        return self._by_item.get(item_id, ())

    def requests(self, items: tuple[Item, ...], curves: tuple[Item, ...] = ()) -> Mapping[str, Request]:
        """Make the calls of these items and curves by the id of their case, the same for each submission.

        Hidden ones come last, so that public ones, whose answers are shown, cannot tell of them.
        """
        if (items, curves) not in self._requests:
            cases = [case for item in items for case in self.of_item(item.id)]
            cases += [case for case in self.curves if case.id in {curve.id for curve in curves}]
            cases.sort(key=lambda case: case.visibility == "hidden")
            by_id = {item.id: item for item in (*items, *curves)}
            self._requests[items, curves] = {case.id: case.request(by_id[case.item]) for case in cases}
        return self._requests[items, curves]

    @functools.cached_property
    def _by_item(self) -> dict[str, tuple[Case, ...]]:
        ids = dict.fromkeys(case.item for case in self.cases)
        return {item: tuple(case for case in self.cases if case.item == item) for item in ids}

    @functools.cached_property
    def _requests(self) -> dict[tuple[tuple[Item, ...], tuple[Item, ...]], Mapping[str, Request]]:
        return {}


def read_fixtures(assignment: Assignment, *, hidden: bool = True, folder: Path | None = None) -> Fixtures:
    """Read the stored cases, public ones only where `hidden` is false; `folder` may hold another term's set.

    Raises FixtureError where a file is missing, is not what the manifest says, or lacks a case that an item lists.
    Files that are no tensors (items.toml, probes.py) are the assignment's own: another term's set must fit them.
    """
    folder = folder or assignment.folder
    manifest_bytes = _read(folder / MANIFEST)
    manifest = manifest_of(manifest_bytes, folder / MANIFEST)
    if manifest["assignment"] != assignment.name:
        raise FixtureError(f"{folder} holds fixtures of {manifest['assignment']!r}, not of {assignment.name!r}.")
    names = [name for name in manifest["files"] if hidden or not name.startswith("hidden/")]
    if any(name.startswith("hidden/") for name in names):
        withhold(folder.resolve())
        withhold(assignment.solution.parent)
    cases: list[Case] = []
    for name in names:
        stored = name.endswith(".safetensors")
        path = (folder if stored else assignment.folder) / name
        data, sha256 = _read(path), manifest["files"][name]
        compared = data if stored else plain_lines(data)
        if hashlib.sha256(compared).hexdigest() != sha256 and not _says_the_same(data, folder / name, sha256):
            raise FixtureError(
                f"{path} is not the file that {folder / MANIFEST} lists (its SHA-256 differs). "
                f"Restore it, or run `autograder fixtures regenerate`{' as for that term' * ('term' in manifest)}."
            )
        if stored:
            cases += decode(data, path)
    there = {(case.item, case.visibility, case.id) for case in cases}
    for item in (*assignment.items, *assignment.curves):
        for visibility, listed in (("public", item.public), ("hidden", item.hidden if hidden else ())):
            for name in (name for name in listed if (item.id, visibility, name) not in there):
                raise FixtureError(f"Item {item.id} lists the {visibility} case {name}, which no stored file holds.")
    graded, shown = _in_order(assignment.items, cases), _in_order(assignment.curves, cases)
    sha256 = hashlib.sha256(plain_lines(manifest_bytes)).hexdigest()
    return Fixtures(tuple(graded), manifest["hints"], sha256, tuple(shown))


def plain_lines(text: bytes) -> bytes:
    """Undo the line ends that git on Windows may have written."""
    return text.replace(b"\r\n", b"\n")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FixtureError(
            f"{path} cannot be read: {error.strerror}. Run `autograder fixtures regenerate` to make the fixtures."
        ) from error


def _says_the_same(data: bytes, copy: Path, sha256: str) -> bool:
    """Tell whether items.toml differs from the set's own copy, which is as listed, in comments and layout alone."""
    if copy.suffix != ".toml" or not copy.is_file():
        return False
    stored = copy.read_bytes()
    try:
        same = tomllib.loads(stored.decode()) == tomllib.loads(data.decode())
    except ValueError:
        return False
    return same and hashlib.sha256(plain_lines(stored)).hexdigest() == sha256


def manifest_of(data: bytes, path: Path) -> dict[str, Any]:
    """Read a manifest; raises FixtureError where it is none, or lists what is no file in its folder."""
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        manifest = None
    kinds = {"schema": int, "assignment": str, "files": dict, "hints": dict}
    if (
        not isinstance(manifest, dict)
        or not all(isinstance(manifest.get(key), kind) for key, kind in kinds.items())
        or manifest["schema"] != SCHEMA
        or not manifest["files"].keys() >= {"items.toml", "probes.py"}
    ):
        raise FixtureError(
            f"{path} is not a manifest of fixtures. Restore it, or run `autograder fixtures regenerate`."
        )
    if strange := [name for name in manifest["files"] if not STORED_NAME.fullmatch(name)]:
        raise FixtureError(f"{path} lists {strange[0]!r}, which is not the name of a file in its folder. Restore it.")
    return manifest


def _in_order(items: Iterable[Item], cases: list[Case]) -> list[Case]:
    """Sort the cases of these items by item; public ones come first, those that an item lists before derived ones."""
    places = {item.id: place for place, item in enumerate(items)}
    listed = {name: n for item in items for n, name in enumerate((*item.public, *item.hidden))}
    of_items = [case for case in cases if case.item in places]
    return sorted(
        of_items,
        key=lambda case: (places[case.item], case.visibility == "hidden", listed.get(case.id, len(listed))),
    )
