"""The signature is the handout's: names, their order, defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Pass every argument by name, and leave out each that has a default."""
    sizes = function.sized(place)
    if place == 1:
        names = [*function.arguments]
        yield usual_call(function, draws[0], "by-name", "every argument by name", sizes, by_name=names)
    for argument in function.defaults:

        def without(arguments: dict[str, object], argument: str = argument) -> dict[str, object]:
            return {name: one for name, one in arguments.items() if name != argument}

        later = [*function.arguments][[*function.arguments].index(argument) :]
        title = f"{argument} is left out"
        label = f"without-{argument.replace('_', '-')}"
        yield usual_call(function, draws[0], label, title, sizes, change=without, by_name=later)


SIGNATURE = Law(
    "signature",
    "Names, order and defaults of the arguments are those of the handout.",
    "Compare the line of your `def` with the handout's: names, their order, defaults.",
    calls,
)
