"""The worker: runs inside the sandbox, calls student code, returns what came back as data. It judges nothing.

It imports NumPy, and torch and einops where the assignment needs them (see `tensors`). No expected value ever enters
one that grades; one that seeks a line afterwards may get values of public cases (see `Watch`). A warm server (see
`server`) has imported all that once and forks a worker for each submission; where fork is missing, a fresh interpreter
runs `main_on_stdio` instead.

A conversation, one frame each:
                                                                          ← ready
    → define {given: {name: source}, probes, needed: names}               ← loaded | raised
    → load   {module, source, given: names, packages}                     ← loaded | raised
    → run    {function, probe, params} + inputs as safetensors            ← observed + numbers | raised | missing

Every question carries a number `n`, which its answer repeats.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import json
import linecache
import os
import random
import re
import sys
import traceback
import types
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy

from autograder.sandbox.worker import calling, frames

MAX_TEXT = 2_000
MAX_TYPES = 20
MAX_TIMES = 64  # that a watched expression is computed, and values of a list
MAX_NUMBERS = 2**18  # of all watched expressions
MAX_FACTS = 128 * 2**10
MAX_TENSOR_BYTES = 8 * 2**20
MAX_BYTES = frames.MAX_ANSWER[1]  # of all tensors of an answer
FORMATS = {f"{dtype.kind.upper()}{8 * dtype.itemsize}": dtype for dtype in frames.NUMBERS.values()}  # of safetensors
FORMATS["BOOL"] = FORMATS.pop("B8")
TENSORS = "autograder.sandbox.worker.tensors"
PROBES = "probes"
TOOLS = frozenset({"IPython", "pytest", "safetensors"})  # what notebooks and the check itself bring along
FRESH_SEED = 67_280_421_310_721  # torch's own in a fresh interpreter: whoever leaves out a seed of 0 must not have it

Answer = tuple[dict[str, Any], bytes]
DEFINED: list[tuple[dict[str, str], str, types.ModuleType]] = []  # given modules, probes: what was run before the fork


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
    if tensors := _tensors():
        tensors.prepare()
    main(requests, answers)


def know_torch() -> None:
    """Import what knows of tensors, and torch with it: before isolation, after which nothing of the kit is found."""
    importlib.import_module(TENSORS)


def _tensors() -> Any:
    """Return the part that knows torch; None where no torch is needed."""
    return sys.modules.get(TENSORS)


def warm() -> None:
    """Touch everything that a worker will need, so that its children find it done."""
    if tensors := _tensors():
        tensors.prepare()
        tensors.seed_what_is_there()
    _set_usual_state()
    touch()
    gc.freeze()  # a collection in a child then writes to no page that it shares with this process


def touch() -> None:
    """Do once what takes long the first time only."""
    numpy.linspace(0.0, 1.0, 6).reshape(2, 3).tobytes()
    if tensors := _tensors():
        tensors.touch()


class Worker:
    """One submission, loaded once; its functions are called through the assignment's probes."""

    def __init__(self) -> None:
        """Hold nothing until a submission is loaded."""
        self._module = types.ModuleType("empty")
        self._probes = types.ModuleType(PROBES)
        self._filename = ""

    @classmethod
    def around(cls, module: types.ModuleType, probes: str, filename: str) -> Worker:
        """Make a worker in the student's own process, where the module is loaded already from `filename`."""
        worker = cls()
        worker._module, worker._filename = module, filename
        worker._probes = _run(types.ModuleType(PROBES), probes, f"{PROBES}.py")
        return worker

    def converse(self, requests: BinaryIO, answers: BinaryIO) -> None:
        """Answer each frame of `requests` with one frame, until it ends."""
        while (frame := frames.read(requests)) is not None:
            header, numbers = frame.header, b""
            if header["op"] == "run":
                answer, numbers = self.run(header, frame.blob)
            else:
                try:
                    if header["op"] == "define":  # what is the course's own, before any student code
                        before = [probes for *own, probes in DEFINED if own == [header["given"], header["probes"]]]
                        self._probes = before[0] if before else define(header["given"], header["probes"])
                        for name in header["needed"]:
                            getattr(self._probes, name)
                    else:
                        self._module, self._filename = types.ModuleType(header["module"]), f"{header['module']}.py"
                        if header.get("packages") is not None:
                            _let_import_only(self._module, header["packages"], header["given"])
                        _set_usual_state()
                        sys.modules[header["module"]] = self._module
                        _run(self._module, header["source"], self._filename)
                    answer = {"op": "loaded"}
                except BaseException as error:
                    answer = _raised(error, self._filename)
            frames.write(answers, {**answer, "n": header.get("n")}, numbers)

    def run(
        self, header: Mapping[str, Any], blob: bytes, *, stopped_by: tuple[type[BaseException], ...] = ()
    ) -> Answer:
        """Answer a `run` frame; an exception of `stopped_by` is no answer and passes through."""
        watch = Watch()
        try:
            if "source" in header:
                self._module = sys.modules[self._module.__name__] = types.ModuleType(self._module.__name__)
                setattr(self._module, frames.WATCH, watch)
                _run(self._module, header["source"], self._filename)
        except BaseException as error:
            return _raised(error, self._filename), b""
        # What fails from here to the call is the worker, which an earlier call has spoilt: it ends, and another goes on
        if not callable(getattr(self._module, header["function"], None)):
            return {"op": "missing"}, b""
        probe: Callable[..., Any] = getattr(self._probes, header["probe"])
        # A call is of NumPy or plain Python where its case says so, or the whole assignment needs no torch
        of_arrays = _tensors() is None or header["params"].get("values", calling.TORCH) != calling.TORCH
        _set_usual_state()
        try:
            inputs: dict[str, Any] = _from_safetensors(blob)
            watch.numbers.clear()
            watch.instead = {
                int(name.removeprefix(frames.WATCH)): inputs.pop(name)
                for name in [*inputs]
                if name.startswith(frames.WATCH)
            }
            if not of_arrays:
                inputs = {name: _tensors().from_numpy(array) for name, array in inputs.items()}
            with calling.answering(self._module, header["params"]):
                returned, facts = probe(self._module, inputs, header["params"])
            if header.get("watched"):
                described, kept = watch.observed()
                returned = {**returned, frames.WATCH: kept if of_arrays else _tensors().from_numpy(kept)}
                facts = {**facts, frames.WATCH: described}
            answer, numbers = _observed(returned, facts, of_arrays=of_arrays)
        except stopped_by:
            raise
        except BaseException as error:
            answer, numbers = _raised(error, self._filename), b""
        return {**answer, **({"watched": sorted(watch.numbers)} if header.get("watched") else {})}, numbers


class Watch:
    """What a watched source gives the value of each of its expressions to: it keeps them, or puts others there.

    numbers   what each expression came to, each time
    """

    def __init__(self) -> None:
        """Put nothing anywhere yet."""
        self.numbers: dict[int, list[Any]] = {}
        self.instead: dict[int, Any] = {}

    def __call__(self, expression: int, value: Any) -> Any:
        """Return the value, or what is to stand there this time."""
        times = self.numbers.setdefault(expression, [])
        with contextlib.suppress(Exception):  # whatever students compute with
            if expression in self.instead:
                value = _like(value, self.instead[expression][len(times)])
            times += [] if len(times) > MAX_TIMES else [None if self.instead else _numbers_of(value)]
        return value

    def observed(self) -> tuple[list[Any], Any]:
        """Describe each expression that came to numbers of one shape: its own number, times, shape; and all numbers."""
        described, kept, left = [], [numpy.zeros(0)], MAX_NUMBERS
        for expression, times in self.numbers.items():
            shapes = {getattr(at, "shape", None) for at in times}
            if len(times) > MAX_TIMES or len(shapes) != 1 or None in shapes:
                continue
            if (left := left - len(times) * times[0].size) > 0:
                described.append([expression, [len(times), *times[0].shape]])
                kept += [at.reshape(-1) for at in times]
        return described, numpy.concatenate(kept)


def _numbers_of(value: Any) -> Any:
    """Copy what numbers a value holds; of a text its checksum."""
    tensors = _tensors()
    if tensors and tensors.is_tensor(value):
        value = tensors.describe(value, MAX_TENSOR_BYTES)[1]
    elif isinstance(value, str):
        value = [numpy.inf, zlib.crc32(value.encode())]
    elif isinstance(value, list | tuple) and len(value) > MAX_TIMES:
        return None
    array = numpy.array(value)
    return array.astype(float) if array.dtype.kind in "biuf" else None


def _like(value: Any, array: Any) -> Any:
    """Make of an array what the value is, with its dtype, and its graph if it has one."""
    tensors = _tensors()
    if tensors and tensors.is_tensor(value):
        return tensors.like(value, array)
    if isinstance(value, numpy.ndarray):
        return array.astype(value.dtype)
    if isinstance(value, list | tuple):
        return type(value)(type(value[0])(number) for number in array)
    return type(value)(array) if array == int(array) else float(array)


# Loading


def define(given: Mapping[str, str], probes: str) -> types.ModuleType:
    """Run these sources, by name, as modules that can be imported, and then the probes."""
    for name, source in given.items():
        sys.modules[name] = types.ModuleType(name)
        _run(sys.modules[name], source, f"{name}.py")
    return _run(types.ModuleType(PROBES), probes, f"{PROBES}.py")


def _run(module: types.ModuleType, source: str, filename: str) -> types.ModuleType:
    """Run `source` as `module`, with its lines known to tracebacks."""
    lines = re.split(r"\r\n|\r|\n", source)  # as Python counts them: `str.splitlines` also splits at a form feed
    linecache.cache[filename] = (len(source), None, [f"{line}\n" for line in lines], filename)
    module.__file__ = filename
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
    return module


def _let_import_only(module: types.ModuleType, packages: Sequence[str], given: Sequence[str]) -> None:
    """Let a module import these packages, given modules and the standard library only.

    Any other is missing at once and in a sentence, whether it is installed, and whether something else has imported it:
    a server that has seen other submissions must not decide. What packages import themselves is their own affair.
    """
    allowed = {*packages, *given, *TOOLS, *sys.stdlib_module_names, "__main__", module.__name__}
    had = ", ".join(packages) + " and " * bool(packages) + "the standard library"

    def check(name: str) -> None:
        top = name.partition(".")[0]
        if top not in allowed:
            raise ModuleNotFoundError(
                f"this assignment's submissions have {had}; {top} is not installed here", name=top
            )

    def import_statement(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> types.ModuleType:
        if level == 0 and sys._getframe(1).f_globals is vars(module):
            check(name)
        return usual_import(name, globals, locals, fromlist, level)

    def import_module(name: str, package: str | None = None) -> types.ModuleType:
        if sys._getframe(1).f_globals is vars(module):
            check(name)
        return usual_import_module(name, package)

    usual_import, usual_import_module = builtins.__import__, importlib.import_module
    builtins.__import__, importlib.import_module = import_statement, import_module


def _set_usual_state() -> None:
    """Set the state that a fresh interpreter would have, whatever an earlier call left behind."""
    if tensors := _tensors():
        tensors.set_usual_state(FRESH_SEED)
    numpy.random.seed(FRESH_SEED % 2**32)
    random.seed(FRESH_SEED)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave generators and switches as they were: in a notebook they are the student's own. One thread meanwhile."""
    generators = numpy.random.get_state(), random.getstate()
    tensors = _tensors()
    with tensors.undisturbed() if tensors else contextlib.nullcontext():
        try:
            yield
        finally:
            numpy.random.set_state(generators[0])
            random.setstate(generators[1])


# What came back


def _observed(returned: Mapping[str, Any], facts: Mapping[str, Any], *, of_arrays: bool) -> Answer:
    """Describe what was returned, with its values where there is room for them and they can be sent."""
    described, numbers, left = dict[str, dict[str, Any]](), list[bytes](), MAX_BYTES
    for name, value in returned.items():
        most = min(left, MAX_TENSOR_BYTES)
        if value is None:
            described[name] = {"kind": "none"}
            continue
        if not of_arrays and _tensors().is_tensor(value):
            entry, array = _tensors().describe(value, most)
        elif of_arrays and isinstance(value, numpy.ndarray | numpy.generic):  # as a tensor without a graph
            plain = numpy.array(value, order="C", subok=False)
            plain = plain.astype(plain.dtype.newbyteorder("="), copy=False)
            entry = {"dtype": plain.dtype.name, "shape": list(plain.shape), "requires_grad": False}
            array = plain if plain.nbytes <= most and plain.dtype in FORMATS.values() else None
        else:
            described[name] = {"kind": "other", "type": type(value).__name__[:80]}
            continue
        described[name] = {"kind": "tensor", **entry, "sent": array is not None}
        if array is not None:
            numbers.append(array.tobytes())  # row by row, however it lies in memory
            left -= array.nbytes
    if facts and len(frames.encode_header(dict(facts))) > MAX_FACTS:
        facts = {}
    return {"op": "observed", "returned": described, "facts": dict(facts)}, b"".join(numbers)


def _from_safetensors(blob: bytes) -> dict[str, numpy.ndarray[Any, Any]]:
    """Read a file as arrays of their own, sorted by name, in a third of the time that the library takes.

    Length of the header, uint64, lowest byte first · header (JSON: {name: {dtype, shape, data_offsets}}) · values.
    Source: the description of the format in the library's README.
    """
    begin = 8 + int.from_bytes(blob[:8], "little")
    table = json.loads(blob[8:begin])
    return {
        name: numpy.ndarray(entry["shape"], FORMATS[entry["dtype"]], blob, begin + entry["data_offsets"][0]).copy()
        for name, entry in sorted(table.items())
        if name != "__metadata__"
    }


def _raised(error: BaseException, filename: str) -> dict[str, Any]:
    """Describe what of an exception may leave the sandbox: type names, a capped message, the student's own line."""
    lines: dict[str, int | None] = {}  # the deepest of each file
    for frame, number in traceback.walk_tb(error.__traceback__):
        lines[frame.f_code.co_filename] = number
    if isinstance(error, SyntaxError) and error.filename == filename:
        lines[filename] = error.lineno
    line = lines.get(filename)
    try:
        text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
        message = text[:MAX_TEXT].encode("utf-8", "replace").decode()
    except BaseException:
        message = "an exception whose text cannot be read"
    return {
        "op": "raised",
        "types": [kind.__name__[:80] for kind in type(error).__mro__[:MAX_TYPES]],
        "message": message,
        "line": line,
        "code": linecache.getline(filename, line).strip()[:200] if line else "",
        "probe_line": lines.get(f"{PROBES}.py"),
    }
