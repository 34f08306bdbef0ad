"""What of the worker is torch's: tensors in and out, the switches that torch has, its compiler put off.

A worker whose assignment needs no torch never imports this.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Iterator
from typing import Any

import einops
import numpy
import torch

from autograder.sandbox.worker import frames

DTYPES = {getattr(torch, name): name for name in frames.NUMBERS if hasattr(torch, name)}
GENERATOR = torch.default_generator  # torch.manual_seed seeds every kind of device, which takes 0.15 ms a call
DEVICES = ("cuda", "xpu", "mtia")

from_numpy = torch.from_numpy


def is_tensor(value: object) -> bool:
    """Tell whether it is a tensor."""
    return isinstance(value, torch.Tensor)


def describe(value: torch.Tensor, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    """Describe a tensor, with its values where they take `most` bytes or less and can be sent."""
    with torch._C.DisableTorchFunctionSubclass():
        name = DTYPES.get(value.dtype)
        is_dense = name is not None and value.layout == torch.strided and value.is_cpu
        is_sent = is_dense and value.numel() * value.element_size() <= most
        array = torch.Tensor.numpy(value, force=True) if is_sent else None  # detached, with no negation put off
        dtype, shape = name or str(value.dtype).removeprefix("torch."), list(value.shape)
        return {"dtype": dtype, "shape": shape, "requires_grad": bool(value.requires_grad)}, array


def like(value: torch.Tensor, array: numpy.ndarray[Any, Any]) -> torch.Tensor:
    """Make a tensor of these numbers with the dtype and the graph of another."""
    numbers = torch.from_numpy(numpy.array(array)).to(value.dtype)
    if not value.requires_grad:
        return numbers
    changed = numbers - value.detach() + value
    return torch.where(changed.isfinite(), changed, numbers)


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
            device.manual_seed_all = lambda *_: None


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


def _same_sizes(left: Any, right: Any) -> Any:
    is_plain = isinstance(left, torch.Size) and isinstance(right, torch.Size) and {*map(type, (*left, *right))} <= {int}
    return tuple(left) == tuple(right) if is_plain else _imported(SHAPES).sym_eq(left, right)


def _as_it_is(function: Any = None, *_: Any, **__: Any) -> Any:
    return _as_it_is if function is None else function  # without one, as a decorator of that kind


WORDS: dict[str, dict[str, Any]] = {  # what is said outside compiled code, where there is no graph and no symbol
    COMPILER: {"graph_break": lambda *_, **__: None, "disable": _as_it_is, "allow_in_graph": _as_it_is},
    SHAPES: {
        "expect_true": lambda value, skip=0: (
            value if type(value) is bool else _imported(SHAPES).expect_true(value, skip + 1)
        ),
        "sym_eq": _same_sizes,
    },
}


class _Postponed(types.ModuleType):
    """A module that knows a few words, and is imported as soon as anything else is asked of it."""

    def __getattr__(self, name: str) -> Any:
        is_of_package = name == "__path__" and self.__name__ == COMPILER  # the other one has no modules in it
        if name.startswith("__") and not is_of_package:  # who looks through all modules does not mean this one
            raise AttributeError(name)
        return getattr(_imported(self.__name__), name)


def postpone() -> None:
    """Put modules in the compiler's places that become the real ones. Values and gradients are the same bits."""
    for name, words in WORDS.items():
        package, _, last = name.rpartition(".")
        if name not in sys.modules and package in sys.modules:
            sys.modules[name] = _Postponed(name)
            vars(sys.modules[name]).update(words)
            setattr(sys.modules[package], last, sys.modules[name])


def _imported(name: str) -> Any:
    """Import the module itself, which is from now on where the other one was."""
    package, _, last = name.rpartition(".")
    if isinstance(postponed := sys.modules.get(name), _Postponed):
        del sys.modules[name]
        if vars(sys.modules[package]).get(last) is postponed:
            delattr(sys.modules[package], last)
    return importlib.import_module(name)
