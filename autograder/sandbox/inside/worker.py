"""The worker: runs inside the sandbox, calls student code, returns what came back as data. It judges nothing.

It stands apart from the engine. It imports torch, numpy, einops and safetensors and of the kit only what runs beside
it: `frames`, `postponed`. No expected value ever enters it. A warm server (see `server`) has imported all that once and
forks a worker for each submission; where fork is missing, a fresh interpreter runs `main` instead.

A conversation, one frame each:
                                                                          ← ready {pid}
    → load   {module, source, given: {name: source}, probes: source}      ← loaded | raised
    → run    {function, probe, params} + inputs as safetensors            ← observed + tensors | raised | missing

Every question carries a number `n`, which its answer repeats.
"""

from __future__ import annotations

import contextlib
import gc
import json
import linecache
import os
import random
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import einops
import numpy
import safetensors.numpy
import safetensors.torch
import torch

from autograder.sandbox.inside import frames, postponed

MAX_TEXT = 2_000
MAX_FACTS = 256 * 2**10
MAX_TENSOR_BYTES = 8 * 2**20
SENDABLE = {
    getattr(torch, name)
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
}
PROBES = "probes"
COMPILED: dict[tuple[str, str], types.CodeType] = {}  # by file name and source: by the text itself, not its name alone
GENERATOR = torch.default_generator  # torch.manual_seed seeds every kind of device, which takes 0.15 ms a call


def main(descriptors: tuple[int, int], pid: int = 0) -> None:
    """Serve one submission in this process: requests from the first descriptor, answers to the second.

    pid   this process, as the grader sees it, where that is another number
    """
    with os.fdopen(descriptors[0], "rb") as requests, os.fdopen(descriptors[1], "wb") as answers:
        _quiet_torch()
        frames.write(answers, {"op": "ready", "pid": pid})
        Worker().converse(requests, answers)


def main_on_stdio() -> None:
    """Serve one submission over stdin and stdout; what student code prints goes to stderr."""
    descriptors = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    postponed.postpone()
    main(descriptors)


def warm() -> None:
    """Touch everything that a worker will need, so that its children find it done."""
    _quiet_torch()
    postponed.postpone()
    with _usual_state():
        touch()
    gc.collect()
    gc.freeze()  # a collection in a child then writes to no page that it shares with this process


def touch() -> None:
    """Do once what takes long the first time only.

    torch reads the processor's features at its first operation, and imports sympy for the first gradient that starts
    from given ones.
    """
    weight = torch.nn.Parameter(einops.rearrange(torch.arange(6.0), "(a b) -> a b", a=2))
    torch.log_softmax(einops.einsum(weight, weight, "a b, c b -> a c"), dim=-1).sum().backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam([weight]).step()
    torch.autograd.grad(weight * 2, weight, torch.ones_like(weight))
    torch.multinomial(torch.softmax(weight.detach(), dim=-1), 2, replacement=True)
    safetensors.torch.load(safetensors.torch.save({"weight": weight.detach()}))
    numpy.asarray(weight.detach())


def compile_once(sources: Mapping[str, str]) -> None:
    """Keep the code of these files, which workers that are forked later run without compiling it again."""
    for filename, source in sources.items():
        COMPILED[filename, source] = compile(source, filename, "exec", dont_inherit=True)
    gc.freeze()


def _quiet_torch() -> None:
    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):  # may be set only once, before any parallel work
        torch.set_num_interop_threads(1)


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
        for name, source in header["given"].items():
            _define(types.ModuleType(name), source, f"{name}.py")
        self._probes = _define(types.ModuleType(PROBES), header["probes"], f"{PROBES}.py", listed=False)
        self._module, self._filename = types.ModuleType(header["module"]), f"{header['module']}.py"
        with _usual_state():
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
        with _usual_state():
            try:
                returned, facts = probe(self._module, safetensors.torch.load(blob), header["params"])
                return _observed(returned, facts)
            except stopped_by:
                raise
            except BaseException as error:
                return {"op": "raised", **_describe_exception(error, self._filename)}, b""


def _define(module: types.ModuleType, source: str, filename: str, *, listed: bool = True) -> types.ModuleType:
    """Run `source` as `module`, importable by its name where `listed`, with its lines known to tracebacks."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module.__file__ = filename
    if listed:
        sys.modules[module.__name__] = module
    code = COMPILED.get((filename, source))
    exec(compile(source, filename, "exec", dont_inherit=True) if code is None else code, module.__dict__)
    return module


@contextlib.contextmanager
def _usual_state() -> Iterator[None]:
    """The state that a fresh interpreter would have, whatever an earlier call left behind."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_deterministic_debug_mode("default")  # as use_deterministic_algorithms(False), which loads the compiler
    GENERATOR.manual_seed(0)
    numpy.random.seed(0)
    random.seed(0)
    yield


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave generators and switches as they were: in a notebook they are the student's own. One thread meanwhile."""
    generators = torch.get_rng_state(), numpy.random.get_state(), random.getstate()
    dtype, device, grad = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
    deterministic, threads = torch.get_deterministic_debug_mode(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(generators[0])
        numpy.random.set_state(generators[1])
        random.setstate(generators[2])
        torch.set_default_dtype(dtype)
        torch.set_default_device(None if device == torch.device("cpu") else device)
        torch.set_grad_enabled(grad)
        torch.set_deterministic_debug_mode(deterministic)


def _observed(returned: Mapping[str, Any], facts: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    described: dict[str, Any] = {}
    arrays: dict[str, numpy.ndarray[Any, Any]] = {}
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        for name, value in returned.items():
            described[name] = _describe(value)
            if described[name]["kind"] == "tensor" and described[name]["sent"]:
                plain = torch.Tensor.detach(value).as_subclass(torch.Tensor).clone().contiguous()
                arrays[name] = plain.resolve_conj().resolve_neg().numpy()
    if len(json.dumps(facts, allow_nan=False)) > MAX_FACTS:
        facts = {}
    return {"op": "observed", "returned": described, "facts": dict(facts)}, safetensors.numpy.save(arrays)


def _describe(value: Any) -> dict[str, Any]:
    if value is None:
        return {"kind": "none"}
    if not isinstance(value, torch.Tensor):
        return {"kind": "other", "type": type(value).__name__[:80]}
    dense = value.layout == torch.strided and value.device.type == "cpu"
    small = dense and value.numel() * value.element_size() <= MAX_TENSOR_BYTES
    return {
        "kind": "tensor",
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": [int(size) for size in value.shape],
        "requires_grad": bool(value.requires_grad),
        "sent": small and value.dtype in SENDABLE,
    }


def _describe_exception(error: BaseException, filename: str) -> dict[str, Any]:
    """What of an exception may leave the sandbox: type names, a capped message, the student's own line."""
    line = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == filename:
            line = number
    if isinstance(error, SyntaxError) and error.filename == filename:
        line = error.lineno
    text = linecache.getline(filename, line).strip() if line else ""
    return {
        "types": [kind.__name__[:80] for kind in type(error).__mro__],
        "message": _text_of(error),
        "line": line,
        "code": text[:200],
    }


def _text_of(error: BaseException) -> str:
    try:
        text = str(error.msg) if isinstance(error, SyntaxError) else str(error)
        return text[:MAX_TEXT].encode("utf-8", "replace").decode()
    except BaseException:
        return "an exception whose text cannot be read"
