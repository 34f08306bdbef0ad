"""A call of student code as the sandbox is asked for it, and what became of it, read from a worker's answer."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autograder.sandbox.inside.frames import encode_header, parse_header
from autograder.sandbox.observation import Observation, Raised, from_frame, raised_from_header

Status = Literal["observed", "raised", "missing", "timed_out", "out_of_memory", "crashed", "not_run"]

MEMORY_MEGABYTES = 4096.0
OUTPUT_MEGABYTES = 64.0
MAX_SHARED = 2**14  # bytes of an answer that is read once for all who give it
SHARED = 1024  # of them are kept


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

    @functools.cached_property
    def header(self) -> bytes:
        """What a worker is told of it beside its inputs, but for the number of the question."""
        asked = {"op": "run", "function": self.function, "probe": self.probe, "params": dict(self.params)}
        return encode_header(asked)


@dataclass(frozen=True)
class Outcome:
    """What became of one request.

    detail     how a worker ended
    exceeded   the budget that ended it, as a sentence goes on after the function's name
    seconds    wall time seen from outside
    size       bytes of header and tensors that the grader holds for it
    loading    the submission could not even be loaded
    """

    status: Status
    observation: Observation | None = None
    raised: Raised | None = None
    detail: str = ""
    exceeded: str = ""
    seconds: float = 0.0
    size: tuple[int, int] = (0, 0)
    loading: bool = False


OUT_OF_TIME = Outcome("not_run", detail="the submission had used up its time")


def read_answer(
    frame: tuple[dict[str, Any], bytes], seconds: float, answers: Sequence[str], encoded: bytes = b""
) -> Outcome:
    """The outcome that a worker's frame stands for; one of another kind, or one that contradicts itself, is a crash.

    encoded   its header as it came; without it, its size counts as 0 and no other answer is known to be the same
    """
    header, blob = frame
    size = (len(encoded), len(blob)) if encoded else (0, 0)
    try:
        match header.get("op") if header.get("op") in answers else None:
            case "loaded":
                return Outcome("observed", detail="loaded", seconds=seconds, size=size)
            case "missing":
                return Outcome("missing", seconds=seconds, size=size)
            case "observed":
                is_small = 0 < sum(size) <= MAX_SHARED
                observation = _observation(encoded, blob) if is_small else from_frame(header, blob)
                return Outcome("observed", observation=observation, seconds=seconds, size=size)
            case "raised":
                raised = raised_from_header(header)
                status: Status = "out_of_memory" if raised.is_out_of_memory else "raised"
                return Outcome(status, raised=raised, seconds=seconds, size=size)
    except ValueError as error:
        return Outcome("crashed", detail=str(error), seconds=seconds, size=size)
    return Outcome("crashed", detail="the worker's answer could not be read", seconds=seconds, size=size)


@functools.lru_cache(maxsize=SHARED)
def _observation(encoded: bytes, blob: bytes) -> Observation:
    """The observation in these bytes: one object for all submissions that give them, to which nobody writes.

    A question has the same number in each submission, so the right answers of a class are mostly the same bytes.
    Raises ValueError as `from_frame` does, each time anew.
    """
    return from_frame(parse_header(encoded), blob)
