"""torch's compiler, imported when it is asked for and not before.

At its first step an optimizer of torch imports `torch._dynamo`, 800 modules that take nearly as long as torch itself,
to say where a compiled function would have to be left: outside compiled code that is nothing. The first operation of
einops imports it as well. `postpone` puts a module in its place that knows these few words and becomes the real one as
soon as anything else is asked of it, so that `torch.compile` works as ever. Values and gradients are the same bits.

Only the standard library: this runs inside the worker.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

COMPILER = "torch._dynamo"


def postpone() -> None:
    """Let torch be imported without its compiler, where that has not happened yet."""
    if COMPILER not in sys.modules:
        stand_in = _Postponed(COMPILER)
        sys.modules[COMPILER] = stand_in
        importlib.import_module("torch")._dynamo = stand_in  # type: ignore[attr-defined]


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
        torch = sys.modules["torch"]
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER]
        if vars(torch).get("_dynamo") is self:
            del torch._dynamo
        return getattr(importlib.import_module(COMPILER), name)


def _as_it_is(fn: Any) -> Any:
    return fn
