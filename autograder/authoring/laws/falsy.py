"""A falsy value is a value: 0, 0.0 and an empty list mean what they say."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Give each argument that has one its falsy value."""
    for argument, value in function.falsy.items():
        label = f"falsy-{argument.replace('_', '-')}"
        change = functools.partial(_with, {argument: value})
        yield usual_call(function, draws[0], label, f"{argument} is {value!r}", function.sized(place), change=change)


def _with(changed: Mapping[str, Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**arguments, **changed}


FALSY = Law(
    "falsy",
    "0, 0.0 and what is empty mean what they say.",
    "Where do you ask whether an argument is true instead of whether it is None?",
    calls,
)
