"""The values are right, over what the declaration draws and at its fixed examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import USUAL, Function
from autograder.authoring.laws.law import Call, Law, Place, shown_sizes, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """One call of each draw; hidden ones are larger."""
    sizes = function.sized(place)
    for draw in draws:
        title = shown_sizes(sizes) if draw == USUAL else f"{draw.replace('_', ' ')}: {shown_sizes(sizes)}"
        yield usual_call(function, draw, draw, title, sizes)


VALUES = Law("values", "What comes back is right to about six digits.", "", calls, frozenset({"values"}))
