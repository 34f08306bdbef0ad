"""A function computes where its arguments are: on a GPU as on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograder.authoring.declarations import Draft, Expectation, fact
from autograder.authoring.laws.declaration import USUAL, Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call
from autograder.sandbox.calls import Array

MADE = "On a GPU {observed} would be refused: it meets one of the arguments with a tensor of the CPU."


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call with tensors that seem to lie on a GPU, by the assignment's own probe `elsewhere`: half the draws public."""
    for draw in draws[place - 1 :: 2] or draws:
        label, title = "device" if draw == USUAL else f"{draw}-device", "arguments on a GPU"
        yield replace(usual_call(function, draw, label, title, function.sized(place)), finish=on_a_gpu)


def on_a_gpu(draft: Draft, anew: Callable[[int], Draft]) -> Draft:
    """Judge of the call nothing but where it computes."""
    name = draft.params["function"]
    message = f"{name} should compute where its arguments are, on a GPU as on the CPU; yours computes {{observed}}."

    def answer(inputs: Mapping[str, Array], params: Mapping[str, Any]) -> list[Expectation]:
        return [
            fact("place", "the device of the arguments", "where they are", message),
            fact("fault", "tensors that are made on the CPU", None, MADE, diagnosis=True),
        ]

    return replace(draft, probe="elsewhere", answer=answer)


DEVICE = Law(
    "device",
    "A function computes on the device of its arguments.",
    "Where does a tensor lie that you make without saying where, and where do the arguments of a GPU lie?",
    calls,
)
