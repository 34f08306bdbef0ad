"""What of the worker is torch's: tensors in and out, the switches that torch has, its compiler put off.

A worker whose assignment needs no torch never imports this.
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
import torch

SENDABLE = {
    getattr(torch, name): name
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
}
GENERATOR = torch.default_generator  # torch.manual_seed seeds every kind of device, which takes 0.15 ms a call
DEVICES = ("cuda", "xpu", "mtia")

from_numpy = torch.from_numpy


def is_tensor(value: object) -> bool:
    """Tell whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def describe(value: torch.Tensor, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    """Describe a tensor, with its values where they take `most` bytes or less and can be sent."""
    if type(value) is torch.Tensor:
        return _described(value, most)
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        return _described(value, most)


def _described(value: torch.Tensor, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    name = SENDABLE.get(value.dtype)
    dense = name is not None and value.layout == torch.strided and value.is_cpu
    sent = dense and value.numel() * value.element_size() <= most
    described = {
        "kind": "tensor",
        "dtype": name or str(value.dtype).removeprefix("torch."),
        "shape": list(value.shape),
        "requires_grad": bool(value.requires_grad),
        "sent": sent,
    }
    return described, torch.Tensor.numpy(value, force=True) if sent else None  # detached, with no negation put off


def prepare() -> None:
    """Compute on one thread (after a fork, what ran on several hangs), and put the compiler off."""
    torch.set_num_threads(1)
    with contextlib.suppress(RuntimeError):  # may be set only once, before any parallel work
        torch.set_num_interop_threads(1)
    postpone()


def touch() -> None:
    """Do once what takes long the first time only, or reads the processor's features, which no worker may."""
    weight = torch.nn.Parameter(einops.rearrange(torch.arange(6.0), "(a b) -> a b", a=2))
    torch.log_softmax(einops.einsum(weight, weight, "a b, c b -> a c"), dim=-1).sum().backward()  # type: ignore[no-untyped-call]
    torch.optim.Adam([weight]).step()
    torch.autograd.grad(weight * 2, weight, torch.ones_like(weight))
    torch.multinomial(torch.softmax(weight.detach(), dim=-1), 2, replacement=True)
    numpy.asarray(weight.detach().half().float())


def seed_what_is_there() -> None:
    """Let `torch.manual_seed` seed the processor alone, where there is nothing else.

    For each kind of device that is not there it keeps a seed and the whole stack for later, at every call: 0.3 ms.
    """
    for device in (getattr(torch, name, None) for name in DEVICES):
        if device is not None and hasattr(device, "manual_seed_all") and not device.is_available():
            device.manual_seed_all = _nothing


def set_usual_state(seed: int) -> None:
    """Set the state that a fresh interpreter would have, whatever an earlier call left behind."""
    torch._C._set_grad_enabled(True)  # what `torch.set_grad_enabled` is beside a context
    if torch.get_default_dtype() is not torch.float32:  # to set it takes as long as all the others
        torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_deterministic_debug_mode("default")  # as use_deterministic_algorithms(False), which loads the compiler
    GENERATOR.manual_seed(seed)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Leave torch's generator and switches as they were. One thread meanwhile."""
    generator, dtype = torch.get_rng_state(), torch.get_default_dtype()
    try:  # torch up to 2.9 has none to tell once it was reset, and up to 2.2 nothing that tells
        device = torch.get_default_device()
    except AttributeError:
        device = torch.device("cpu")
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


# The compiler. At its first step an optimizer imports `torch._dynamo`, 800 modules that take nearly as long as torch
# itself, to say where a compiled function would have to be left: outside compiled code that is nothing. The first
# operation of einops imports it as well. The first gradient that starts from given ones imports `symbolic_shapes` and
# with it sympy, 480 modules, to hold two shapes against each other, which may hold symbols in compiled code.

COMPILER, SHAPES = "torch._dynamo", "torch.fx.experimental.symbolic_shapes"


def postpone() -> None:
    """Put modules in the compiler's places that know the few words which are said outside compiled code.

    They become the real ones as soon as anything else is asked of them. Values and gradients are the same bits.
    """
    outside = {"graph_break": _nothing, "disable": _as_it_is, "allow_in_graph": _as_it_is}
    for name, words in ((COMPILER, outside), (SHAPES, {"expect_true": _expect_true, "sym_eq": _same_sizes})):
        package, _, last = name.rpartition(".")
        if name not in sys.modules and package in sys.modules:
            sys.modules[name] = _Postponed(name, words)
            setattr(sys.modules[package], last, sys.modules[name])


class _Postponed(types.ModuleType):
    """A part of the compiler that is imported when anything but a few words is asked of it."""

    def __init__(self, name: str, words: Mapping[str, Any]) -> None:
        super().__init__(name)
        vars(self).update(words)

    def __getattr__(self, name: str) -> Any:
        of_package = name == "__path__" and self.__name__ == COMPILER  # the other one has no modules in it
        if name.startswith("__") and not of_package:  # who looks through all modules does not mean this one
            raise AttributeError(name)
        return getattr(self.imported(), name)

    def imported(self) -> types.ModuleType:
        """Import the module itself, which is from now on where this one was."""
        package, _, last = self.__name__.rpartition(".")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        if vars(sys.modules[package]).get(last) is self:
            delattr(sys.modules[package], last)
        return importlib.import_module(self.__name__)


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing: there is no graph, no such device."""


def _as_it_is(fn: Any = None, *_: Any, **__: Any) -> Any:
    """Return the function as it is: nothing compiles it; without one a decorator of that kind."""
    return _as_it_is if fn is None else fn


def _expect_true(value: Any, skip: int = 0) -> Any:
    """Return a truth value as it is; of a symbol that is for the compiler to say."""
    return value if type(value) is bool else _shapes().expect_true(value, skip + 1)


def _same_sizes(left: Any, right: Any) -> Any:
    """Tell whether two shapes of plain numbers are the same; of symbols that is for the compiler to say."""
    if isinstance(left, torch.Size) and isinstance(right, torch.Size) and {*map(type, (*left, *right))} <= {int}:
        return tuple(left) == tuple(right)
    return _shapes().sym_eq(left, right)


def _shapes() -> Any:
    module = sys.modules[SHAPES]
    return module.imported() if isinstance(module, _Postponed) else module
