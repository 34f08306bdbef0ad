"""What the docstring forbids raises, ValueError as a rule, and the message names what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Error, Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make a usual call of each draw in turn, and beside it calls that must raise: half of them public."""
    refused = {
        **function.errors,
        **{label: error for argument in function.words for label, error in _misspelt(function, argument)},
    }
    for number, (label, error) in enumerate(refused.items()):
        if (number % 2 == 0) == (place == 1) or len(refused) == 1:
            draw = draws[number % len(draws)]
            raises = {"error": (error.instead, error.mentions, error.kind)}
            title = ", ".join(f"{name} {value!r}" for name, value in error.instead.items() if not callable(value))
            sizes, judged = function.sized(place), frozenset({"errors"})
            yield usual_call(function, draw, label, title or label, sizes, raises=raises, judged=judged)


def _misspelt(function: Function, argument: str) -> Iterator[tuple[str, Error]]:
    """Words that are none of the argument's: with a letter more or less, capitals, blanks, empty."""
    words = function.words[argument]
    several = {
        "cut": words[0][:-1],
        "capitals": words[-1].title(),
        "longer": f"{words[len(words) // 2]}s",
        "spaces": f"{words[0]} ",
        "empty": "",
        "other": next(other for other in ("mean", "median", "other") if other not in words),
    }
    for kind, word in several.items():
        if word not in words:
            yield f"{argument}-{kind}", Error({argument: word}, [word.strip()] if word.strip() else [])


ERRORS = Law(
    "errors",
    "What a docstring forbids raises ValueError, and the message names what is wrong.",
    "What should a caller see after a typing error, or where something is missing?",
    calls,
)
