"""What the docstring forbids raises, ValueError as a rule, and the message names what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autograder.authoring.laws.declaration import Error, Function
from autograder.authoring.laws.law import Call, Law, Place, usual_call


def calls(function: Function, draws: Sequence[str], place: Place) -> Iterator[Call]:
    """Make a usual call of each draw in turn, and beside it calls that must raise: half of them public."""
    refused = {label: [error] for label, error in function.errors.items()}
    for argument in function.words:
        refused |= {f"{argument}-{kind}": errors for kind, errors in _misspelt(function, argument)}
    for number, (label, errors) in enumerate(refused.items()):
        if (number % 2 == 0) == (place == 1) or len(refused) == 1:
            draw = draws[number % len(draws)]
            raises = {f"error {n}": (one.instead, one.mentions, one.kind) for n, one in enumerate(errors, start=1)}
            told = [f"{name} {value!r}" for one in errors for name, value in one.instead.items() if not callable(value)]
            title, judged = ", ".join(told[:3]) or label, frozenset({"errors"})
            yield usual_call(function, draw, label, title, function.sized(place), raises=raises, judged=judged)


def _misspelt(function: Function, argument: str) -> Iterator[tuple[str, list[Error]]]:
    """Words that are none of the argument's: each of them cut, longer, in part, in capitals, with spaces; others."""
    words = function.words[argument]
    several = {
        "cut": [word[:-1] for word in words],
        "longer": [f"{word}s" for word in words],
        "capitals": [other for word in words for other in (word.title(), word.upper())],
        "spaces": [other for word in words for other in (f"{word} ", f" {word}")],
        "other": ["", "none", "mean", "median", *(part for word in words for part in word.split("_"))],
    }
    for kind, others in several.items():
        wrong = [word for word in dict.fromkeys(others) if word not in words]
        yield kind, [Error({argument: word}, [word.strip()] if word.strip() else []) for word in wrong]


ERRORS = Law(
    "errors",
    "What a docstring forbids raises ValueError, and the message names what is wrong.",
    "What should a caller see after a typing error, or where something is missing?",
    calls,
)
