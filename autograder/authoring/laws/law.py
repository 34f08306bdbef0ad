"""What a law is: the calls that it adds to an item, and what it looks at in every call of that item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from autograder.authoring.declarations import Draft
from autograder.authoring.laws.declaration import Function

ALIKE = frozenset({"alike"})  # judged where a call must answer as another one does, whatever is right
Place = Literal[1, 2]  # of the sizes: public, hidden


@dataclass(frozen=True)
class Call:
    """A planned case: the end of its name, its title, and how its arguments are drawn.

    draw      the name of the draw whose tolerances count
    arguments (rng, sizes) → arguments
    sizes     of the axes; those that are the function's usual ones may be made larger, so that no two cases agree
    options   of `Calls.case`: transposed, by_name, raises
    params    more parameters of the probe: aliases, graphs, recording
    finish    makes another draft of the one that was made, such as several calls of one: (draft, draft anew) → draft
    example   whether the numbers are the same in every set
    judged    what is looked at in this call, where that is not all that its item looks at
    """

    label: str
    title: str
    draw: str
    arguments: Callable[[np.random.Generator, Mapping[str, int]], Mapping[str, Any]]
    sizes: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[Draft, Callable[[int], Draft]], Draft] | None = None
    example: bool = False
    judged: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Law:
    """A law that holds for every function whose declaration does not switch it off.

    sentence  what students are told, once, at the top of their module
    hint      what a student is asked whose answer breaks it; "" where the item's own hint says more
    calls     the calls that it adds: (function, draws of the item, place) → calls
    aspects   what it looks at in all calls of an item: "values", "dtype", "kind", "unmodified", "gradient",
              "constants"; "shape": whether [1] will do in place of [];
              "alike": whether the call answers in each way of its parameter "also" as in the first
    """

    name: str
    sentence: str
    hint: str = ""
    calls: Callable[[Function, Sequence[str], Place], Iterator[Call]] | None = None
    aspects: frozenset[str] = frozenset()


def usual_call(
    function: Function,
    draw: str,
    label: str,
    title: str,
    sizes: Mapping[str, int],
    *,
    dtype: str = "",
    change: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda arguments: arguments,
    params: Mapping[str, Any] | None = None,
    judged: frozenset[str] = frozenset(),
    **options: Any,
) -> Call:
    """Plan a call with arguments of that draw and those sizes, after `change`."""

    def arguments(rng: np.random.Generator, sizes: Mapping[str, int]) -> Mapping[str, Any]:
        return change(function.drawn(draw, rng, sizes, dtype))

    return Call(label, title, draw, arguments, sizes, options, params or {}, judged=judged)


def shown_sizes(sizes: Mapping[str, int]) -> str:
    """Say the sizes of a call: `run 5, action 3`."""
    return ", ".join(f"{axis} {size}" for axis, size in sizes.items())
