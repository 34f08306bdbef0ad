"""Whether a function takes its arguments by the names that the handout gives them.

Only the standard library: this runs beside student code and judges nothing.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any


def called(
    function: Any, named: Mapping[str, Any], params: Mapping[str, Any], more: Sequence[str] = (), *, in_place: bool
) -> Any:
    """What the function returns of the arguments that the case lists; `more` are others, which are passed by name.

    in_place   whether what the function has no such name for is passed in its place, and so is all before it

    Where params["bound"], all is passed by name, as far as the function has the names: another order is not felt.
    """
    listed, bound = (*params["arguments"], *more), params.get("bound", False)
    by_name = {*(listed if bound else params.get("by_name", ())), *more}
    if (in_place or bound) and (
        unknown := [name for name in listed if name in by_name and names_refused(function, [name])]
    ):
        by_name -= {*listed[: listed.index(unknown[-1])], *unknown}
    in_order = [named[name] for name in listed if name not in by_name]
    return function(*in_order, **{name: named[name] for name in listed if name in by_name})


def call_by_name(
    student: ModuleType, inputs: Mapping[str, Any], params: Mapping[str, Any], own: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A probe: call one function with every argument by name. Fact "names": why its signature refuses that, or None.

    params   `function`, `arguments` and `given`, as the probe of `calling` has them; inputs are passed as they are
    own      {name: object}: what the assignment's own code makes for arguments
    """
    listed = {**inputs, **copy.deepcopy(dict(params.get("given", {}))), **(own or {})}
    named = {name: listed[name] for name in params["arguments"]}
    return {}, {"names": unanswered(getattr(student, params["function"]), named)}


def unanswered(function: Any, named: Mapping[str, Any]) -> str | None:
    """Why a call with these names gives no answer, as the end of a sentence; None where it gives one.

    Raises what the function raises: it has then not shown that it takes them.
    """
    return names_refused(function, list(named)) or nothing(lambda: function(**named))


def nothing(call: Callable[[], Any]) -> str | None:
    """The end of a sentence on a call by name that returns nothing; None where it returns something."""
    return "returns nothing where it is called by name" if call() is None else None


def names_refused(function: Any, names: Sequence[str]) -> str | None:
    """Why these names cannot be passed to a function, as the end of a sentence; None where its signature takes them."""
    try:
        kinds = {name: one.kind for name, one in inspect.signature(function).parameters.items()}
    except (TypeError, ValueError):  # it has no signature that can be read
        return None
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return None
    if missing := [name for name in names if name not in kinds]:
        return f"has no parameter{'s' * (len(missing) > 1)} called {_listed(missing)}"
    placed = [name for name in names if kinds[name] is inspect.Parameter.POSITIONAL_ONLY]
    return f"takes {_listed(placed)} by place alone" if placed else None


def _listed(names: Sequence[str]) -> str:
    """`a`, `b` and `c`."""
    quoted = [f"`{name}`" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
