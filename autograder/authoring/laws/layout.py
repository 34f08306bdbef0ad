"""How an array lies in memory does not matter: a transposed one, a slice of a larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import ALIKE, Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Exchange the last two axes in memory, then let every array be a slice: the answer is that of usual arrays."""
    sizes = function.sized(place)
    arrays = [name for name in function.arguments if function.is_array(name)]
    if tables := [name for name in arrays if len(function.axes(name)) > 1]:
        title = "arrays whose last two axes are exchanged in memory"
        params = {"also": {"transposed": {"transposed": tables}}}
        yield usual_call(function, draws[0], "transposed", title, sizes, params=params, judged=ALIKE)
    if arrays:
        params = {"also": {"sliced": {"sliced": arrays}}}
        title = "arrays that are slices of larger ones"
        yield usual_call(function, draws[0], "sliced", title, sizes, params=params, judged=ALIKE)


LAYOUT = Law(
    "layout",
    "How a tensor lies in memory does not matter.",
    "Which step needs a contiguous array, and which one does the same for any array?",
    calls,
)
