"""What comes back has the dtype and kind that the handout says, and arguments are left as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from autograder.authoring.laws.declaration import USUAL, Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call
from autograder.authoring.laws.values import calls as usual_calls


def in_each_dtype(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call each draw in each dtype, those of one draw in turn: what is public in one is hidden in the other."""
    sizes = function.sized(place)
    for number, draw in enumerate(draw for draw in draws if draw not in function.wide):
        dtypes = [*function.dtypes]
        for dtype in dtypes if len(draws) == 1 else [dtypes[(number + place) % len(dtypes)]]:
            if len(dtypes) > 1 and dtype == dtypes[0]:  # as values have it: one case for both
                yield from usual_calls(function, [draw], place)
            else:
                label = dtype if draw == USUAL else f"{draw}-{dtype}"
                call = usual_call(function, draw, label, f"{dtype} stays {dtype}", sizes, dtype=dtype)
                yield call if dtype == dtypes[0] else replace(call, draw="")  # tolerances are of the first dtype


DTYPE = Law(
    "dtype",
    "What comes back has the dtype of the numbers that go in.",
    "Which dtype goes in, which comes out, and which does each step in between have?",
    in_each_dtype,
    frozenset({"dtype"}),
)


def with_all_digits(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Call in float64, and look at more digits than a shorter dtype has."""
    if place == 2:
        allowed: dict[str, Any] = {"dtype": "float64", "judged": frozenset({"values"}), "rtol": 1e-12, "atol": 1e-12}
        yield usual_call(function, draws[0], "precise", "all digits of float64", function.sized(place), **allowed)


PRECISION = Law(
    "precision",
    "Compute in the dtype that you are given, or in a longer one.",
    "The dtype may be right: where do your numbers become shorter on their way?",
    with_all_digits,
)
KIND = Law("kind", "What comes back is of the kind that the docstring says.", "", usual_calls, frozenset({"kind"}))


def unmodified_calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make usual calls, and one that raises."""
    yield from usual_calls(function, draws, place)
    for error in [*function.errors.values()][: 2 - place]:
        raises, judged = {"error": (error.instead, error.mentions, error.kind)}, frozenset({"unmodified"})
        title, sizes = "a call that raises", function.sized(place)
        yield usual_call(function, draws[0], "raising", title, sizes, raises=raises, judged=judged)


UNMODIFIED = Law(
    "unmodified",
    "No function changes its arguments.",
    "What do the caller's arguments hold after the call?",
    unmodified_calls,
    frozenset({"unmodified"}),
)
