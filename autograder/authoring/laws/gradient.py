"""Gradients reach what they should, are right, and are cut where something is a constant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograder.authoring.declarations import Draft, fact
from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import ALIKE, Call, Law, Place, usual_call
from autograder.authoring.laws.values import calls as usual_calls

RECORDED = "Under torch.no_grad() the caller wants no graph, but the result carries one."


def gradient_calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make usual calls, whose gradients are looked at, and one for a caller who records none."""
    yield from usual_calls(function, draws, place)
    if place == 2:
        title, params = "under torch.no_grad()", {"recording": False, "leaves": [*function.leaves]}
        call = usual_call(function, draws[0], "no-grad", title, function.sized(place), params=params, leaves=[])
        yield call if isinstance(function.returns, Mapping) else replace(call, finish=without_graph)


def without_graph(draft: Draft, anew: Callable[[int], Draft]) -> Draft:
    """Judge as well that the result carries no graph."""
    unrecorded = fact("graph", "a graph", False, RECORDED)
    return replace(draft, answer=lambda inputs, params: [*draft.answer(inputs, params), unrecorded])


def constants_calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Let each constant require a gradient, be the very tensor that is differentiated, and carry its graph.

    In the latter two the gradient must be the same as where the constant is a tensor of its own with the same numbers.
    """
    yield from usual_calls(function, draws, place)
    sizes = function.sized(place)
    alike: dict[str, Any] = {"judged": ALIKE, "leaves": function.leaves, "constants": []}
    for constant in function.constants if place == 1 else ():
        label = constant.replace("_", "-")
        for leaf in function.leaves:

            def shared(arguments: dict[str, object], leaf: str = leaf, constant: str = constant) -> dict[str, object]:
                return arguments | ({constant: arguments[leaf]} if constant in arguments else {})

            if function.axes(leaf) == function.axes(constant):
                title = f"{constant} is computed from {leaf}, and equal"
                alias = {"also": {f"with {constant}": {"aliases": {constant: {"of": leaf, "plus": 0.0}}}}}
                yield usual_call(
                    function, draws[0], f"{label}-shared", title, sizes, change=shared, params=alias, **alike
                )
            title = f"{constant} carries the graph of {leaf}"
            graph = {"also": {f"with {constant}": {"graphs": {constant: leaf}}}}
            yield usual_call(function, draws[0], f"{label}-graph", title, sizes, params=graph, **alike)


GRADIENT = Law(
    "gradient",
    "A result can be differentiated with respect to what depends on the weights.",
    "Is what you return still connected to the tensor that it should be differentiated by, and is no step cut?",
    gradient_calls,
    frozenset({"gradient"}),
)
CONSTANTS = Law(
    "constants",
    "What the docstring calls a constant receives no gradient.",
    "Which arguments are constants, and which step keeps a gradient from reaching them?",
    constants_calls,
    frozenset({"constants"}),
)
