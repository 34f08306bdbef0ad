"""The worker: runs inside the sandbox, calls student code, returns what came back as data. It judges nothing.

It stands apart from the engine. It imports numpy and safetensors, torch and einops where the assignment needs them (see
`tensors`), and of the kit only what runs beside it. No expected value ever enters it. A warm server (see `server`) has
imported all that once and forks a worker for each submission; where fork is missing, a fresh interpreter runs `main`
instead.

A conversation, one frame each:
                                                                          ← ready
    → load   {module, source, given: {name: source}, probes, packages}    ← loaded | raised
    → run    {function, probe, params} + inputs as safetensors            ← observed + tensors | raised | missing

Every question carries a number `n`, which its answer repeats.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import linecache
import os
import random
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy
import safetensors.numpy

from autograder.sandbox.isolation import layers as isolation
from autograder.sandbox.worker import calling, frames

MAX_TEXT = 2_000
MAX_TYPES = 20
MAX_FACTS = 128 * 2**10
MAX_TENSOR_BYTES = 8 * 2**20
MAX_BYTES = frames.MAX_ANSWER[1] - 2**20  # of all tensors of an answer, beside their table
SENDABLE = "biuf"  # kinds of numbers that an array may hold
MAX_NUMBER = 8  # bytes of one
FORMATS = {  # what safetensors calls the numbers that are sent
    numpy.dtype(f"<{kind}{size}"): f"{kind.upper()}{8 * size}"
    for kind, sizes in (("f", (2, 4, 8)), ("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)))
    for size in sizes
} | {numpy.dtype("bool"): "BOOL"}
TENSORS = "autograder.sandbox.worker.tensors"
PROBES = "probes"
FRESH_SEED = 67_280_421_310_721  # torch's own in a fresh interpreter: whoever leaves out a seed of 0 must not have it
CALL = calling.call  # imported before isolation: what most probes take over
GIVEN: dict[str, str] = {}  # by name, what this process has run already
COMPILED: dict[tuple[str, str], types.CodeType] = {}  # by file name and source: by the text itself, not its name alone


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    """Serve one submission in this process, over these streams, which are closed afterwards."""
    with requests, answers:
        frames.write(answers, {"op": "ready"})
        Worker().converse(requests, answers)


def main_on_stdio() -> None:
    """Serve one submission over stdin and stdout; what student code prints goes to stderr."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    if torch_side := _torch_side():
        torch_side.on_one_thread()
        torch_side.postpone()
    main(requests, answers)


def know_torch() -> None:
    """Import what knows of tensors, and torch with it: before isolation, after which nothing of the kit is found."""
    importlib.import_module(TENSORS)


def _torch_side() -> Any:
    """What knows of tensors; None where no torch is needed."""
    return sys.modules.get(TENSORS)


def warm() -> None:
    """Touch everything that a worker will need, so that its children find it done."""
    torch_side = _torch_side()
    if torch_side:
        torch_side.on_one_thread()
        torch_side.postpone()
        torch_side.seed_what_is_there()
    _set_usual_state()
    touch()
    gc.freeze()  # a collection in a child then writes to no page that it shares with this process


def touch() -> None:
    """Do once what takes long the first time only."""
    safetensors.numpy.load(safetensors.numpy.save({"numbers": numpy.linspace(0.0, 1.0, 6).reshape(2, 3)}))
    if torch_side := _torch_side():
        torch_side.touch()


class Worker:
    """One submission, loaded once; its functions are called through the assignment's probes."""

    def __init__(self) -> None:
        """Hold nothing until a submission is loaded."""
        self._module = types.ModuleType("empty")
        self._probes = types.ModuleType(PROBES)
        self._filename = ""

    @classmethod
    def around(cls, module: types.ModuleType, probes: str, filename: str) -> Worker:
        """A worker in the student's own process, where the module is loaded already from `filename`."""
        worker = cls()
        worker._module, worker._filename = module, filename
        worker._probes = _define(types.ModuleType(PROBES), probes, f"{PROBES}.py", listed=False)
        return worker

    def converse(self, requests: BinaryIO, answers: BinaryIO) -> None:
        """Answer each frame of `requests` with one frame, until it ends."""
        while (frame := frames.read(requests)) is not None:
            header, blob = frame
            answer, tensors = self._load(header) if header["op"] == "load" else self.run(header, blob)
            frames.write(answers, {**answer, "n": header.get("n")}, tensors)

    def _load(self, header: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        if header["given"] != GIVEN:
            define_all(header["given"])
        self._probes = _define(types.ModuleType(PROBES), header["probes"], f"{PROBES}.py", listed=False)
        self._module, self._filename = types.ModuleType(header["module"]), f"{header['module']}.py"
        isolation.let_import_only(header.get("packages"), self._filename)
        _set_usual_state()
        try:
            _define(self._module, header["source"], self._filename)
        except BaseException as error:
            return {"op": "raised", **_describe_exception(error, self._filename)}, b""
        return {"op": "loaded"}, b""

    def run(
        self, header: Mapping[str, Any], blob: bytes, *, stopped_by: tuple[type[BaseException], ...] = ()
    ) -> tuple[dict[str, Any], bytes]:
        """The answer to a `run` frame; an exception of `stopped_by` is no answer and passes through."""
        if not callable(getattr(self._module, header["function"], None)):
            return {"op": "missing"}, b""
        probe: Callable[..., Any] = getattr(self._probes, header["probe"])
        _set_usual_state()
        try:
            of_arrays = _is_of_arrays(header["params"])
            returned, facts = probe(self._module, _inputs(blob, of_arrays=of_arrays), header["params"])
            return _observed(returned, facts, of_arrays=of_arrays)
        except stopped_by:
            raise
        except BaseException as error:
            return {"op": "raised", **_describe_exception(error, self._filename)}, b""


def define_all(modules: Mapping[str, str]) -> None:
    """Run these sources, by name, as modules that can be imported."""
    for name, source in modules.items():
        _define(types.ModuleType(name), source, f"{name}.py")


def _define(module: types.ModuleType, source: str, filename: str, *, listed: bool = True) -> types.ModuleType:
    """Run `source` as `module`, importable by its name where `listed`, with its lines known to tracebacks."""
    lines = re.split(r"\r\n|\r|\n", source)  # as Python counts them: `str.splitlines` also splits at a form feed
    linecache.cache[filename] = (len(source), None, [f"{line}\n" for line in lines], filename)
    module.__file__ = filename
    if listed:
        sys.modules[module.__name__] = module
    code = COMPILED.get((filename, source))
    exec(compile(source, filename, "exec", dont_inherit=True) if code is None else code, module.__dict__)
    return module


def _set_usual_state() -> None:
    """Set the state that a fresh interpreter would have, whatever an earlier call left behind."""
    if torch_side := _torch_side():
        torch_side.set_usual_state(FRESH_SEED)
    numpy.random.seed(FRESH_SEED % 2**32)
    random.seed(FRESH_SEED)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave generators and switches as they were: in a notebook they are the student's own. One thread meanwhile."""
    generators = numpy.random.get_state(), random.getstate()
    torch_side = _torch_side()
    with torch_side.undisturbed() if torch_side else contextlib.nullcontext():
        try:
            yield
        finally:
            numpy.random.set_state(generators[0])
            random.setstate(generators[1])


def _is_of_arrays(params: Mapping[str, Any]) -> bool:
    """Whether a call is of NumPy or plain Python: its case says so, or the whole assignment needs no torch."""
    return _torch_side() is None or params.get("values", calling.TORCH) != calling.TORCH


def _inputs(blob: bytes, *, of_arrays: bool) -> dict[str, Any]:
    """The inputs of a call, by name: tensors, or arrays that may be written to.

    The library gives them in any order: a probe that calls once for each would call in another one each time.
    """
    if not of_arrays:
        return dict(sorted(_torch_side().load(blob).items()))
    return {name: array.copy() for name, array in sorted(safetensors.numpy.load(blob).items())}


def _observed(
    returned: Mapping[str, Any], facts: Mapping[str, Any], *, of_arrays: bool = False
) -> tuple[dict[str, Any], bytes]:
    described: dict[str, Any] = {}
    left = MAX_BYTES
    arrays: dict[str, numpy.ndarray[Any, Any]] = {}
    for name, value in returned.items():
        described[name], array = _describe(value, min(left, MAX_TENSOR_BYTES), of_arrays=of_arrays)
        if array is not None:
            arrays[name] = array
            left -= array.nbytes
    if facts and len(frames.ENCODER.encode(facts)) > MAX_FACTS:
        facts = {}
    return {"op": "observed", "returned": described, "facts": dict(facts)}, _as_safetensors(arrays)


def _as_safetensors(arrays: Mapping[str, numpy.ndarray[Any, Any]]) -> bytes:
    """These arrays as a safetensors file, in a quarter of the time that the library's own `save` takes for small ones.

    Length of the header, uint64, lowest byte first · header (JSON: {name: {dtype, shape, data_offsets}}) · values.
    Source: the description of the format in the library's README.
    """
    table, values, end = {}, [], 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        table[name] = {"dtype": FORMATS[array.dtype], "shape": array.shape, "data_offsets": (begin, end)}
        values.append(array.tobytes())  # row by row, however it lies in memory
    header = frames.encode_header(table)
    return b"".join((len(header).to_bytes(8, "little"), header, *values))


def _describe(value: Any, most: int, *, of_arrays: bool) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    torch_side = _torch_side()
    if value is None:
        return {"kind": "none"}, None
    if of_arrays and isinstance(value, numpy.ndarray | numpy.generic):
        return _describe_array(value, most)
    if not of_arrays and torch_side.is_tensor(value):
        described, array = torch_side.describe(value, most)
        return described, array
    return {"kind": "other", "type": type(value).__name__[:80]}, None


def _describe_array(array: Any, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    """What is said of an array, as of a tensor without a graph, and its values where they can be sent."""
    plain = numpy.array(array, order="C", subok=False)
    plain = plain.astype(plain.dtype.newbyteorder("="), copy=False)
    sent = plain.nbytes <= most and plain.dtype.kind in SENDABLE and plain.itemsize <= MAX_NUMBER
    described = {
        "kind": "tensor",
        "dtype": plain.dtype.name,
        "shape": list(plain.shape),
        "requires_grad": False,
        "sent": sent,
    }
    return described, plain if sent else None


def _describe_exception(error: BaseException, filename: str) -> dict[str, Any]:
    """What of an exception may leave the sandbox: type names, a capped message, the student's own line."""
    line = probe_line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == filename:
            line = number
        if frame.f_code.co_filename == f"{PROBES}.py":
            probe_line = number
    if isinstance(error, SyntaxError) and error.filename == filename:
        line = error.lineno
    text = linecache.getline(filename, line).strip() if line else ""
    return {
        "types": [kind.__name__[:80] for kind in type(error).__mro__[:MAX_TYPES]],
        "message": _text_of(error),
        "line": line,
        "code": text[:200],
        "probe_line": probe_line,
    }


def _text_of(error: BaseException) -> str:
    try:
        text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
        return text[:MAX_TEXT].encode("utf-8", "replace").decode()
    except BaseException:
        return "an exception whose text cannot be read"
