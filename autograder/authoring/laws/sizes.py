"""A function works for every size of an axis: 1, and two that agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Give each axis its least size in turn, then all of them one size, as far as they go that low: one is public."""
    lowest = function.lowest(draws[0])
    several = {
        f"one-{axis}" if least == 1 else f"least-{axis}": function.sized(place, **{axis: least})
        for axis, least in lowest.items()
    }
    if len(function.sizes) > 1:
        several["equal-sizes"] = dict.fromkeys(function.sizes, max(2 + place, *lowest.values()))
    public = [*several][1:2]
    for label, sizes in several.items():
        if (label in public) == (place == 1):
            yield usual_call(function, draws[0], label, "", sizes)


SIZES = Law(
    "sizes",
    "Every axis may have any size, 1 too.",
    "Which axis has another size here than in the other cases, and which step counts on a size?",
    calls,
    frozenset({"values", "shape"}),
)
