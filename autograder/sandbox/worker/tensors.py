"""What of the worker is torch's: tensors in and out, the switches that torch has, its compiler put off.

A worker whose assignment needs no torch never imports this.

At its first step an optimizer of torch imports `torch._dynamo`, 800 modules that take nearly as long as torch itself,
to say where a compiled function would have to be left: outside compiled code that is nothing. The first operation of
einops imports it as well. The first gradient that starts from given ones imports `symbolic_shapes` and with it sympy,
480 modules, to hold two shapes against each other, which may hold symbols in compiled code. `postpone` puts modules in
their places that know these few words and become the real ones as soon as anything else is asked of them, so that
`torch.compile` works as ever. Values and gradients are the same bits.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import einops
import numpy
import safetensors.torch
import torch

SENDABLE = {
    getattr(torch, name): name
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
}
GENERATOR = torch.default_generator  # torch.manual_seed seeds every kind of device, which takes 0.15 ms a call
DEVICES = ("cuda", "xpu", "mtia")
COMPILER, SHAPES = "torch._dynamo", "torch.fx.experimental.symbolic_shapes"


def load(blob: bytes) -> dict[str, Any]:
    """The inputs of a call."""
    return safetensors.torch.load(blob)


def describe(value: torch.Tensor, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    """What is said of a tensor, and its values where they take `most` bytes or less and can be sent."""
    if type(value) is torch.Tensor:
        return _described(value, most)
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        return _described(value, most)


def _described(value: torch.Tensor, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    dtype = value.dtype
    name = SENDABLE.get(dtype)
    dense = name is not None and value.layout == torch.strided and value.is_cpu
    sent = dense and value.numel() * value.element_size() <= most
    described = {
        "kind": "tensor",
        "dtype": name or str(dtype).removeprefix("torch."),
        "shape": list(value.shape),
        "requires_grad": bool(value.requires_grad),
        "sent": sent,
    }
    return described, torch.Tensor.numpy(value, force=True) if sent else None  # detached, with no negation put off


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def touch() -> None:
    """Do once what takes long the first time only.

    torch reads the processor's features at its first operation.
    """
    weight = torch.nn.Parameter(einops.rearrange(torch.arange(6.0), "(a b) -> a b", a=2))
    torch.log_softmax(einops.einsum(weight, weight, "a b, c b -> a c"), dim=-1).sum().backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam([weight]).step()
    torch.autograd.grad(weight * 2, weight, torch.ones_like(weight))
    torch.multinomial(torch.softmax(weight.detach(), dim=-1), 2, replacement=True)
    safetensors.torch.load(safetensors.torch.save({"weight": weight.detach()}))
    numpy.asarray(weight.detach())


def on_one_thread() -> None:
    """Compute on one thread."""
    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):  # may be set only once, before any parallel work
        torch.set_num_interop_threads(1)


def seed_what_is_there() -> None:
    """Let `torch.manual_seed` seed the processor alone, where there is nothing else.

    For each kind of device that is not there it keeps a seed and the whole stack for later, at every call: 0.3 ms.
    """
    for device in (getattr(torch, name, None) for name in DEVICES):
        if device is not None and hasattr(device, "manual_seed_all") and not device.is_available():
            device.manual_seed_all = _keep_nothing


def _keep_nothing(seed: int) -> None:
    """As for a device that is not there."""


def set_usual_state(seed: int) -> None:
    """The state that a fresh interpreter would have, whatever an earlier call left behind."""
    torch._C._set_grad_enabled(True)  # what `torch.set_grad_enabled` is beside a context
    if torch.get_default_dtype() is not torch.float32:  # to set it takes as long as all the others
        torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_deterministic_debug_mode("default")  # as use_deterministic_algorithms(False), which loads the compiler
    GENERATOR.manual_seed(seed)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave torch's generator and switches as they were. One thread meanwhile."""
    generator, dtype, device = torch.get_rng_state(), torch.get_default_dtype(), _default_device()
    grad, deterministic = torch.is_grad_enabled(), torch.get_deterministic_debug_mode()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(generator)
        torch.set_default_dtype(dtype)
        torch.set_default_device(None if device == torch.device("cpu") else device)
        torch.set_grad_enabled(grad)
        torch.set_deterministic_debug_mode(deterministic)


def _default_device() -> torch.device:
    """torch up to 2.9 has none to tell once it was reset, and up to 2.2 nothing that tells."""
    try:
        return torch.get_default_device()
    except AttributeError:
        return torch.device("cpu")


# The compiler


def postpone() -> None:
    """Let torch be imported without its compiler, where that has not happened yet."""
    outside = {"graph_break": _nothing, "disable": _as_it_is, "allow_in_graph": _as_it_is}
    for name, words in ((COMPILER, outside), (SHAPES, {"expect_true": _expect_true, "sym_eq": _same_sizes})):
        package, _, last = name.rpartition(".")
        if name not in sys.modules and package in sys.modules:
            sys.modules[name] = _Postponed(name, words)
            setattr(sys.modules[package], last, sys.modules[name])


class _Postponed(types.ModuleType):
    """What is asked of a part of the compiler outside compiled code; whatever else is asked is asked of that part."""

    def __init__(self, name: str, words: Mapping[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(words)

    def __getattr__(self, name: str) -> Any:
        of_package = name == "__path__" and self.__name__ == COMPILER  # the other one has no modules in it
        if name.startswith("__") and not of_package:  # who looks through all modules does not mean this one
            raise AttributeError(name)
        return getattr(_real(self), name)


def _real(stand_in: types.ModuleType) -> types.ModuleType:
    """The module itself, from now on where the stand-in was."""
    name = stand_in.__name__
    package, _, last = name.rpartition(".")
    if sys.modules.get(name) is stand_in:
        del sys.modules[name]
    if vars(sys.modules[package]).get(last) is stand_in:
        delattr(sys.modules[package], last)
    return importlib.import_module(name)


def _nothing(*_: Any, **__: Any) -> None:
    """Nothing: there is no graph."""


def _as_it_is(fn: Any = None, *_: Any, **__: Any) -> Any:
    """The function as it is: nothing compiles it; without one a decorator of that kind."""
    return _as_it_is if fn is None else fn


def _expect_true(found: Any, skip: int = 0) -> Any:
    """A truth value as it is; of a symbol that is for the compiler to say."""
    return found if type(found) is bool else _shapes().expect_true(found, skip + 1)


def _same_sizes(some: Any, others: Any) -> Any:
    """Whether two shapes of plain numbers are the same; of symbols that is for the compiler to say."""
    if isinstance(some, torch.Size) and isinstance(others, torch.Size) and {*map(type, (*some, *others))} <= {int}:
        return tuple(some) == tuple(others)
    return _shapes().sym_eq(some, others)


def _shapes() -> Any:
    found = sys.modules[SHAPES]
    return _real(found) if isinstance(found, _Postponed) else found
