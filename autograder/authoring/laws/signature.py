"""The signature is the handout's: names, their order, defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import ALIKE, Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Pass every argument in order, then by name; where it is hidden, leave out each that has a default.

    Each answer must be that of the same call with the arguments bound by name, whatever is right: the calls of
    other laws bind them so, and a signature in another order costs here alone.
    """
    sizes = function.sized(place)
    also: dict[str, Any] = {"in order": {"bound": False}, "by name": {"bound": False, "by_name": [*function.arguments]}}
    title = "every argument in the handout's order, and by its name"
    if place == 1:
        yield usual_call(function, draws[0], "in-order", title, sizes, params={"also": also}, judged=ALIKE)
    for argument, default in function.defaults.items() if place == 2 else ():

        def usual(arguments: dict[str, object], argument: str = argument, default: object = default) -> Any:
            return {**arguments, argument: default}

        later = [*function.arguments][[*function.arguments].index(argument) :]
        named = list(dict.fromkeys([*later, *function.options.get("by_name", ())]))
        also = {f"without {argument}": {"bound": False, "without": [argument], "by_name": named}}
        label = f"without-{argument.replace('_', '-')}"
        yield usual_call(
            function,
            draws[0],
            label,
            f"{argument} is left out",
            sizes,
            change=usual,
            params={"also": also},
            judged=ALIKE,
        )


SIGNATURE = Law(
    "signature",
    "Names, order and defaults of the arguments are those of the handout.",
    "Compare the line of your `def` with the handout's: names, their order, defaults.",
    calls,
)
