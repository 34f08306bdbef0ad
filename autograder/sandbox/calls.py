"""The data model: what a worker is asked, what became of it, and what was seen. Read from frames that nobody trusts.

Program   what a worker loads            Request   one call, with its budget
Outcome   what became of a request       Observation, Returned, Raised   what came back
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from autograder.sandbox.interpreter import KIT_ROOT, packages
from autograder.sandbox.worker.frames import MAX_SHARED, NUMBERS, SHARED, Frame, encode_header

Array = np.ndarray[Any, np.dtype[Any]]
Status = Literal["observed", "raised", "missing", "timed_out", "out_of_memory", "crashed", "not_run"]

MEMORY_MEGABYTES = 4096.0
OUTPUT_MEGABYTES = 64.0
MAX_NAMES = 256
MAX_DIMENSIONS = 16
MAX_LEVELS = 32
MAX_TEXT = 2_000
MAX_INTEGER = 2**63 - 1
UNREADABLE = "the worker's answer could not be read"


# What is asked


@dataclass(frozen=True)
class Program:
    """What a worker loads: the student's module, the given modules and the assignment's probes, all as text.

    torch      whether it is warm with torch; without, arrays come in and go out
    packages   what the module may import beside the standard library and what it is given; None where that is any
    until      moment of `time.perf_counter` after which nothing of the submission is run
    """

    module: str
    source: str
    given: Mapping[str, str]
    probes: str
    torch: bool = True
    packages: tuple[str, ...] | None = None
    until: float = math.inf


@dataclass(frozen=True)
class Request:
    """One call: which probe, with which parameters and inputs (safetensors bytes), charged to which item.

    timeout            seconds of wall clock
    cpu                seconds of processor time, over all threads
    memory_megabytes   what may be held beyond what a worker takes that has loaded nothing
    output_megabytes   what may be printed
    hidden             whether it may not reach the worker before what stands before it is answered
    source             what takes the place of the program's source, for this call and those that follow; it may
                       tell `worker.Watch` the values of its expressions, or take inputs in their place
    watched            whether those are to be told
    """

    item: str
    function: str
    probe: str
    params: Mapping[str, Any]
    inputs: bytes
    timeout: float
    cpu: float = math.inf
    memory_megabytes: float = MEMORY_MEGABYTES
    output_megabytes: float = OUTPUT_MEGABYTES
    hidden: bool = False
    source: str = ""
    watched: bool = False

    @functools.cached_property
    def header(self) -> bytes:
        """Encode what a worker is told of it beside its inputs, but for the number of the question."""
        told = {"op": "run", "function": self.function, "probe": self.probe, "params": dict(self.params)}
        return encode_header(told | {name: value for name in ("source", "watched") if (value := getattr(self, name))})


# What came back


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
        """Tell whether this is Python's or torch's way to say that memory ran out."""
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


@dataclass(frozen=True)
class Outcome:
    """What became of one request.

    detail     how a worker ended
    exceeded   the budget that ended it, as a sentence goes on after the function's name
    seconds    wall time seen from outside
    size       bytes of header and tensors that the grader holds for it
    loading    the submission could not even be loaded
    watched    the expressions that are said to have run; empty where nobody asked
    """

    status: Status
    observation: Observation | None = None
    raised: Raised | None = None
    detail: str = ""
    exceeded: str = ""
    seconds: float = 0.0
    size: tuple[int, int] = (0, 0)
    loading: bool = False
    watched: frozenset[int] = frozenset()


OUT_OF_TIME = Outcome("not_run", detail="the submission had used up its time")


# Reading answers


def read_answer(answer: Frame, seconds: float, allowed: Sequence[str]) -> Outcome:
    """Read the outcome that an answer stands for; one of a kind that is not allowed, or contradictory, is a crash."""
    header, size = answer.header, (len(answer.encoded), len(answer.blob))
    kind = header.get("op") if header.get("op") in allowed else None
    observation, raised, status = None, None, cast("Status", "observed" if kind == "loaded" else kind)
    try:
        if kind == "observed":
            read = _shared_observation if sum(size) <= MAX_SHARED else observation_in
            observation = read(answer)
        elif kind == "raised":
            raised = raised_from_header(header)
            status = "out_of_memory" if raised.is_out_of_memory else "raised"
        elif kind is None:
            raise ValueError(UNREADABLE)
        watched = header.get("watched", [])
        if not isinstance(watched, list) or not _are_counts(watched):
            raise ValueError("the worker's answer tells of expressions that are none")
    except ValueError as error:
        return Outcome("crashed", detail=str(error), seconds=seconds, size=size)
    return Outcome(status, observation, raised, seconds=seconds, size=size, watched=frozenset(watched))


def observation_in(answer: Frame) -> Observation:
    """Read the observation in an `observed` frame; raise ValueError where it is not one."""
    described, facts, begin = answer.header.get("returned"), answer.header.get("facts"), 0
    if not isinstance(described, dict) or not isinstance(facts, dict) or len(described) > MAX_NAMES:
        raise ValueError(UNREADABLE)
    if not _is_shallow(facts, MAX_LEVELS):
        raise ValueError("the worker's answer nests too deeply")
    returned = {}
    for name, entry in described.items():
        returned[name] = _returned(entry, answer.blob, begin)
        begin += 0 if (array := returned[name].array) is None else array.nbytes
    if begin != len(answer.blob):
        raise ValueError("the worker's answer contradicts itself")
    return Observation(returned, facts)


# Once for all submissions that give these bytes; nobody writes to it
_shared_observation = functools.lru_cache(maxsize=SHARED)(observation_in)


def raised_from_header(header: Mapping[str, Any]) -> Raised:
    """Read the exception in a `raised` frame; raise ValueError where it is not one."""
    types, line, probe_line = header.get("types"), header.get("line"), header.get("probe_line")
    if not isinstance(types, list) or not types or not all(isinstance(name, str) for name in types):
        raise ValueError("the worker's answer names no exception")
    if not _are_counts([number for number in (line, probe_line) if number is not None]):
        raise ValueError("the worker's answer names no line")
    message = without_places(_text(header, "message", MAX_TEXT))
    return Raised(tuple(name[:80] for name in types[:20]), message, line, _text(header, "code", 200), probe_line)


def _returned(entry: Any, blob: bytes, begin: int) -> Returned:
    """Read what is said of one thing that came back, and its numbers, which begin there in the blob."""
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind == "none":
        return Returned("none")
    if kind == "other":
        return Returned("other", type=_text(entry, "type", 80))
    if kind != "tensor":
        raise ValueError(UNREADABLE)
    dtype, shape, array = _text(entry, "dtype", 40), entry.get("shape"), None
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not _are_counts(shape):
        raise ValueError("the worker's answer has a tensor without a shape")
    if entry.get("sent") is True:
        try:
            array = np.frombuffer(blob, NUMBERS[dtype], math.prod(shape), begin).reshape(shape)
        except (KeyError, ValueError, OverflowError) as error:
            raise ValueError("the worker's answer contradicts itself") from error
    return Returned("tensor", "Tensor", dtype, tuple(shape), entry.get("requires_grad") is True, array)


def _is_shallow(value: dict[str, Any] | list[Any], levels: int) -> bool:
    """Tell whether printing or comparing the value needs no more than so many calls inside each other."""
    entries = value.values() if isinstance(value, dict) else value
    inner = [entry for entry in entries if isinstance(entry, dict | list)]
    return levels > 0 and all(_is_shallow(entry, levels - 1) for entry in inner)


def _are_counts(values: list[Any]) -> bool:
    return set(map(type, values)) <= {int} and all(0 <= value <= MAX_INTEGER for value in values)


def _text(entry: Mapping[str, Any], name: str, limit: int) -> str:
    text = entry.get(name, "")
    if not isinstance(text, str):
        raise ValueError(f"the worker's answer has a {name} that is not text")
    return text[:limit]


# Folders of this machine: they may tell who grades on it, and say nothing to a student


def without_places(text: str) -> str:
    """Put names in the place of this machine's folders."""
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
    named |= {os.path.realpath(path): name for path, name in named.items()}
    kept = [(path, name) for path, name in named.items() if len(Path(path).parts) > 2 or (name == "~" and path != "/")]
    return sorted(kept, key=lambda entry: -len(entry[0]))
