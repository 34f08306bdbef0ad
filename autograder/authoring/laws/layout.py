"""How an array lies in memory does not matter: a transposed one, a slice of a larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Exchange the last two axes in memory, then let every array be a slice."""
    sizes = function.sized(place)
    arrays = [name for name in function.arguments if function.is_array(name)]
    if tables := [name for name in arrays if len(function.axes(name)) > 1]:
        title = "arrays whose last two axes are exchanged in memory"
        yield usual_call(function, draws[0], "transposed", title, sizes, transposed=tables)
    if arrays:
        yield usual_call(function, draws[0], "sliced", "arrays that are slices of larger ones", sizes, sliced=arrays)


LAYOUT = Law(
    "layout",
    "How a tensor lies in memory does not matter.",
    "Which step needs a contiguous array, and which one does the same for any array?",
    calls,
)
