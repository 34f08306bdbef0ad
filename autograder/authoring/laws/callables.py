"""A function that is an argument is called as often as stated, and what it raises reaches the caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from autograder.authoring.laws.declaration import Arguments, Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Count the calls of each callable, then let each raise."""
    callables = [name for name, shape in function.arguments.items() if shape == "function"]
    sizes, judged = function.sized(place), frozenset({"calls"})
    if callables:
        yield usual_call(function, draws[0], "counted", "calls are counted", sizes, counted=callables, judged=judged)
    for name in callables:

        def raising(arguments: Arguments, name: str = name) -> dict[str, str]:
            return {**arguments[name].stated, "is": "1 / 0"}

        raises: dict[str, Any] = {f"what {name} raises": ({name: raising}, [], "ZeroDivisionError")}
        yield usual_call(
            function, draws[0], f"raising-{name}", f"{name} raises an exception", sizes, raises=raises, judged=judged
        )


CALLABLES = Law(
    "callables",
    "A function that you are given is called as often as the docstring says, and its exceptions reach the caller.",
    "How often do you call it for each value, and what happens to an exception that it raises?",
    calls,
)
