"""The values are right, over what the declaration draws and at its fixed examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import USUAL, Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """One call of each draw; hidden ones are larger."""
    sizes = function.sized(place)
    for draw in draws:
        yield usual_call(function, draw, draw, "" if draw == USUAL else draw.replace("_", " "), sizes)


VALUES = Law("values", "What comes back is right to about six digits.", "", calls, frozenset({"values", "shape"}))
