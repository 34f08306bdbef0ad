"""What a worker saw, as data: returned tensors, facts, exceptions. Read from frames that nobody trusts."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import safetensors
import safetensors.numpy

from autograder.sandbox.interpreter import KIT_ROOT, packages

MAX_NAMES = 256
MAX_DIMENSIONS = 16
MAX_LEVELS = 32
MAX_TEXT = 2_000
MAX_TABLE = 2**20
LARGEST = 2**63 - 1

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Raised:
    """An exception: its type names from the most derived on, its message, the lines of submission and probes."""

    types: tuple[str, ...]
    message: str
    line: int | None
    code: str
    probe_line: int | None = field(default=None, compare=False)

    @property
    def is_out_of_memory(self) -> bool:
        """Whether this is Python's or torch's way to say that memory ran out."""
        return "MemoryError" in self.types or "can't allocate memory" in self.message


@dataclass(frozen=True)
class Returned:
    """One named thing that came back: a tensor (with its values where they could be sent), nothing, or another type."""

    kind: Literal["tensor", "none", "other"]
    type: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    requires_grad: bool = False
    array: Array | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Observation:
    """All that one probe saw."""

    returned: Mapping[str, Returned]
    facts: Mapping[str, Any]


def from_frame(header: Mapping[str, Any], blob: bytes) -> Observation:
    """The observation in an `observed` frame; raises ValueError where it is not one."""
    try:
        if int.from_bytes(blob[:8], "little") > MAX_TABLE:  # a table of a million empty tensors takes seconds
            raise ValueError("the table of tensors is too long")
        arrays: dict[str, Array] = safetensors.numpy.load(blob)
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ValueError("the worker's answer holds no readable tensors") from error
    described, facts = header.get("returned"), header.get("facts")
    if not isinstance(described, dict) or not isinstance(facts, dict) or len(described) > MAX_NAMES:
        raise ValueError("the worker's answer could not be read")
    if not _is_shallow(facts, MAX_LEVELS):
        raise ValueError("the worker's answer nests too deeply")
    returned = {name: _returned(entry, arrays.get(name)) for name, entry in described.items()}
    return Observation(returned, facts)


def raised_from_header(header: Mapping[str, Any]) -> Raised:
    """The exception in a `raised` frame; raises ValueError where it is not one."""
    types, line = header.get("types"), header.get("line")
    if not isinstance(types, list) or not types or not all(isinstance(name, str) for name in types):
        raise ValueError("the worker's answer names no exception")
    probe_line = header.get("probe_line")
    if not all(one is None or _is_count(one) for one in (line, probe_line)):
        raise ValueError("the worker's answer names no line")
    names = tuple(name[:80] for name in types[:20])
    message = without_places(_text(header, "message", MAX_TEXT))
    return Raised(names, message, line, _text(header, "code", 200), probe_line)


def without_places(text: str) -> str:
    """The text without the folders of this machine: they may tell who grades on it, and say nothing to a student."""
    for place, name in _places():
        text = text.replace(place, name)
    return text


@functools.cache
def _places() -> list[tuple[str, str]]:
    """Folders and what to call them, those inside others first."""
    named = dict.fromkeys(packages(), "site-packages")
    named |= {sys.prefix: "python", sys.base_prefix: "python", str(KIT_ROOT): "autograder"}
    with contextlib.suppress(RuntimeError):  # there may be no home
        named[str(Path.home())] = "~"
    real = {os.path.realpath(path): name for path, name in named.items()}
    long = [(path, name) for path, name in {**named, **real}.items() if len(Path(path).parts) > 2 or name == "~"]
    return sorted(((path, name) for path, name in long if path != "/"), key=lambda one: -len(one[0]))


def _is_shallow(value: dict[str, Any] | list[Any], levels: int) -> bool:
    """Whether printing or comparing the value needs no more than so many calls inside each other."""
    if levels <= 0:
        return False
    inner = [
        entry for entry in (value.values() if isinstance(value, dict) else value) if isinstance(entry, dict | list)
    ]
    return all(_is_shallow(entry, levels - 1) for entry in inner) if inner else True


def _are_counts(values: list[Any]) -> bool:
    if not set(map(type, values)) <= {int}:
        return False
    return min(values, default=0) >= 0 and max(values, default=0) <= LARGEST


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= LARGEST


def _text(entry: Mapping[str, Any], name: str, limit: int) -> str:
    text = entry.get(name, "")
    if not isinstance(text, str):
        raise ValueError(f"the worker's answer has a {name} that is not text")
    return text[:limit]


@functools.cache  # NumPy composes the name anew each time: a third of the time that an answer takes to read
def _name(dtype: np.dtype[Any]) -> str:
    return dtype.name


def _returned(entry: Any, array: Array | None) -> Returned:
    if not isinstance(entry, dict):
        raise ValueError("the worker's answer could not be read")
    match entry.get("kind"):
        case "none":
            return Returned("none")
        case "other":
            return Returned("other", type=_text(entry, "type", 80))
        case "tensor":
            return _tensor(entry, array)
    raise ValueError("the worker's answer could not be read")


def _tensor(entry: Mapping[str, Any], array: Array | None) -> Returned:
    requires_grad = entry.get("requires_grad") is True
    if array is not None:  # what is said of it must be so, and is told in words of ours
        dtype, shape = _name(array.dtype), array.shape
        told = entry.get("dtype") == dtype and entry.get("shape") == list(shape)
        if not told or len(shape) > MAX_DIMENSIONS or array.dtype.kind == "c":
            raise ValueError("the worker's answer contradicts itself")
        return Returned("tensor", "Tensor", dtype, shape, requires_grad, array)
    listed = entry.get("shape")
    if not isinstance(listed, list) or len(listed) > MAX_DIMENSIONS or not _are_counts(listed):
        raise ValueError("the worker's answer has a tensor without a shape")
    return Returned("tensor", "Tensor", _text(entry, "dtype", 40), tuple(listed), requires_grad)
