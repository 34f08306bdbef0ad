"""How an array lies in memory does not matter: a transposed one, a slice of a larger one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import ALIKE, Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Exchange the last two axes in memory, and let every array be a slice: the answers are that of usual arrays."""
    arrays = [name for name in function.arguments if function.is_array(name)]
    if arrays and place == 2:
        tables = [name for name in arrays if len(function.axes(name)) > 1]
        also = {"transposed": {"transposed": tables}} if tables else {}
        params = {"also": {**also, "sliced": {"sliced": arrays}}}
        title = "arrays that lie otherwise in memory"
        yield usual_call(function, draws[0], "layout", title, function.sized(place), params=params, judged=ALIKE)


LAYOUT = Law(
    "layout",
    "How a tensor lies in memory does not matter.",
    "Which step needs a contiguous array, and which one does the same for any array?",
    calls,
)
