"""What of the worker is torch's: tensors in and out, the switches that torch has, its compiler put off.

A worker whose assignment needs no torch never imports this.

At its first step an optimizer of torch imports `torch._dynamo`, 800 modules that take nearly as long as torch itself,
to say where a compiled function would have to be left: outside compiled code that is nothing. The first operation of
einops imports it as well. `postpone` puts a module in its place that knows these few words and becomes the real one as
soon as anything else is asked of it, so that `torch.compile` works as ever. Values and gradients are the same bits.
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
import safetensors.torch
import torch

SENDABLE = {
    getattr(torch, name): name
    for name in ("float16", "float32", "float64", "uint8", "int8", "int16", "int32", "int64", "bool")
}
GENERATOR = torch.default_generator  # torch.manual_seed seeds every kind of device, which takes 0.15 ms a call
DEVICES = ("cuda", "xpu", "mtia")
COMPILER = "torch._dynamo"


def load(blob: bytes) -> dict[str, Any]:
    """The inputs of a call."""
    return safetensors.torch.load(blob)


def describe(value: torch.Tensor, most: int) -> tuple[dict[str, Any], numpy.ndarray[Any, Any] | None]:
    """What is said of a tensor, and its values where they take `most` bytes or less and can be sent."""
    with torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
        dense = value.layout == torch.strided and value.device.type == "cpu"
        small = dense and value.numel() * value.element_size() <= most
        sent = small and value.dtype in SENDABLE
        described = {
            "kind": "tensor",
            "dtype": SENDABLE.get(value.dtype) or str(value.dtype).removeprefix("torch."),
            "shape": [int(size) for size in value.shape],
            "requires_grad": bool(value.requires_grad),
            "sent": sent,
        }
        if not sent:
            return described, None
        plain = torch.Tensor.detach(value).as_subclass(torch.Tensor).contiguous()
        return described, plain.resolve_conj().resolve_neg().numpy()


def is_tensor(value: object) -> bool:
    """Whether it is a tensor."""
    return isinstance(value, torch.Tensor)


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


def set_usual_state() -> None:
    """The state that a fresh interpreter would have, whatever an earlier call left behind."""
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_deterministic_debug_mode("default")  # as use_deterministic_algorithms(False), which loads the compiler
    GENERATOR.manual_seed(0)


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
    if COMPILER not in sys.modules:
        stand_in = _Postponed(COMPILER)
        sys.modules[COMPILER] = stand_in
        torch._dynamo = stand_in


class _Postponed(types.ModuleType):
    """What is asked of the compiler outside compiled code; whatever else is asked is asked of the compiler."""

    @staticmethod
    def graph_break(*_: Any, **__: Any) -> None:
        """Nothing: there is no graph."""

    @staticmethod
    def disable(fn: Any = None, *_: Any, **__: Any) -> Any:
        """The function as it is: nothing compiles it; without one a decorator of that kind."""
        return _as_it_is if fn is None else fn

    @staticmethod
    def allow_in_graph(fn: Any) -> Any:
        """The function as it is: nothing compiles it."""
        return fn

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # who looks through all modules does not mean this one
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER]
        if vars(torch).get("_dynamo") is self:
            del torch._dynamo
        return getattr(importlib.import_module(COMPILER), name)


def _as_it_is(fn: Any) -> Any:
    return fn
