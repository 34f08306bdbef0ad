"""Arguments of a case that are drawn, or stated as a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from autograder.sandbox.calls import Array

FUNCTIONS = ("sin", "cos", "tan", "exp", "log", "sqrt", "pi", "e")  # which the worker knows, too
Kind = Literal["real", "positive", "probabilities", "whole"]
PARITY = {"even": 0, "odd": 1}
ALSO = ("sorted", "increasing", "decreasing", "distinct", *PARITY)
BOUNDS: Mapping[str, tuple[float, float]] = {
    "real": (-2.0, 2.0),
    "positive": (0.2, 3.0),
    "probabilities": (0.2, 3.0),
    "whole": (0, 9),
}


class DrawError(ValueError):
    """Numbers that cannot be drawn: what is wrong, what would be right."""

    def __str__(self) -> str:
        """Both, as one sentence."""
        return ": ".join(map(str, self.args))


@dataclass(frozen=True)
class Drawn:
    """An array to draw for one argument: a name for each axis, sizes, and what its numbers are like.

    real            in [-2, 2)
    positive        in [0.2, 3)
    probabilities   positive, with sum 1 along the last axis
    whole           0 to 9

    low, high   other bounds of real, positive and whole numbers, both of which whole numbers reach
    also        words, with blanks between: sorted, increasing (no two the same) or decreasing along the last axis;
                distinct throughout; even or odd, of whole numbers
    """

    axes: str
    sizes: tuple[int, ...]
    kind: Kind = "real"
    low: float | None = None
    high: float | None = None
    also: str = ""

    def array(self, rng: np.random.Generator) -> Array:
        """The numbers; raises DrawError where there can be none."""
        self._check()
        low, high = self._bounds
        check_also(self.also, ALSO, self.kind)
        if self.kind == "whole":
            return self._wholes(rng, math.ceil(low), math.floor(high))
        found: Array = np.asarray(rng.uniform(low, high, self.sizes))
        found = found / found.sum(axis=-1, keepdims=True) if self.kind == "probabilities" else found
        return self._ordered(found)

    def _wholes(self, rng: np.random.Generator, low: int, high: int) -> Array:
        """Whole numbers from one to the other."""
        words = self.also.split()
        if not words:
            return rng.integers(low, high + 1, self.sizes)
        known = wholes(low, high, self.also)
        shape = tuple(np.atleast_1d(self.sizes).tolist())
        in_line = "increasing" in words or "decreasing" in words
        count = math.prod(shape) if "distinct" in words else shape[-1] if in_line and shape else 1
        if len(known) < count:
            kinds = " ".join(("different", *(word for word in words if word in PARITY)))
            told = f"from {low} to {high} there are {len(known)} {kinds} numbers, and {count} are to be drawn"
            raise DrawError(told, "bounds that are farther apart, or smaller sizes")
        if "distinct" in words or not in_line:
            return self._ordered(rng.choice(known, shape, replace="distinct" not in words))
        lines = [rng.choice(known, shape[-1], replace=False) for _ in range(math.prod(shape[:-1]))]
        return self._ordered(np.array(lines).reshape(shape))

    def _ordered(self, found: Array) -> Array:
        words = set(self.also.split())
        if not words & {"sorted", "increasing", "decreasing"} or not found.ndim:
            return found
        upward = np.sort(found, axis=-1)
        return upward[..., ::-1].copy() if "decreasing" in words else upward

    def _check(self) -> None:
        """Raise DrawError where it says what it cannot mean."""
        if self.kind not in get_args(Kind):
            words = 'also="…"' if self.kind in ALSO else f"one of {', '.join(get_args(Kind))}"
            raise DrawError(f"the numbers of Drawn are {self.kind!r}", words.replace("…", str(self.kind)))
        if not isinstance(self.axes, str):
            raise DrawError(f"the axes of Drawn are {self.axes!r}", 'text: "row column"')
        sizes = [self.sizes] if isinstance(self.sizes, int) else self.sizes
        if not isinstance(sizes, tuple | list) or any(type(one) is not int or one < 0 for one in sizes):
            raise DrawError(f"the sizes of Drawn are {self.sizes!r}", "whole numbers: (3, 4)")
        if len(self.axes.split()) != len(sizes):
            raise DrawError(f"Drawn has the axes {self.axes!r} and the sizes {self.sizes!r}", "one for each axis")
        given = [one for one in (self.low, self.high) if one is not None]
        if given and self.kind == "probabilities":
            raise DrawError(f"Drawn of probabilities has the bounds {self.low} and {self.high}", "none: they sum to 1")
        check_bounds("Drawn", *self._bounds)

    @property
    def _bounds(self) -> tuple[float, float]:
        low, high = BOUNDS[self.kind]
        return (low if self.low is None else self.low), (high if self.high is None else self.high)


@dataclass(frozen=True)
class Number:
    """A number to draw for one argument, with three decimals."""

    low: float
    high: float

    def drawn(self, rng: np.random.Generator) -> float:
        """The number; raises DrawError where there is none between the two."""
        check_bounds("Number", self.low, self.high)
        return round(float(rng.uniform(self.low, self.high)), 3)


@dataclass(frozen=True)
class Whole(Number):
    """A whole number to draw for one argument; it may be either bound. `also` is "even" or "odd", or nothing."""

    also: str = ""

    def drawn(self, rng: np.random.Generator) -> int:
        """The number; raises DrawError where there is none between the two."""
        check_bounds("Whole", self.low, self.high)
        low, high = math.ceil(self.low), math.floor(self.high)
        check_also(self.also, tuple(PARITY), "whole")
        known = wholes(low, high, self.also)
        if not known:
            kind = f"{self.also} number".strip() if self.also else "whole number"
            raise DrawError(f"from {self.low} to {self.high} there is no {kind}", "bounds with one between them")
        return int(rng.choice(known)) if self.also else int(rng.integers(low, high + 1))


def wholes(low: int, high: int, also: str) -> list[int]:
    """The whole numbers from one to the other that are even or odd, where that is said."""
    rest = next((PARITY[word] for word in also.split() if word in PARITY), None)
    return [one for one in range(low, high + 1) if rest in (None, one % 2)]


def check_also(also: str, known: Sequence[str], kind: str) -> None:
    """Raise ValueError where `also` has a word that is not known, or that numbers of this kind cannot be."""
    for word in also.split():
        if word not in known:
            raise DrawError(f"also has the word {word!r}", f"of the words {', '.join(known)}")
        if word in PARITY and kind != "whole":
            raise DrawError(f"numbers that are {word} are whole", f'Drawn(…, "whole", low, high, also="{word}")')


@dataclass(frozen=True)
class Formula:
    """A function that is an argument: an expression of named numbers, such as Formula("t y", "t - 2 * y").

    of   the names of its arguments, in order; commas between them may stand or not
    """

    of: str
    expression: str

    @property
    def stated(self) -> dict[str, str]:
        """As the parameters of a call state it."""
        return {"of": " ".join(self.names), "is": self.expression}

    @property
    def names(self) -> list[str]:
        """The names of its arguments, in order."""
        return self.of.replace(",", " ").split()

    def __call__(self, *placed: float, **named: float) -> Any:
        """Its value, for the oracle: of arguments by place or by name."""
        known = {name: getattr(np, name) for name in FUNCTIONS}
        listed = self.names
        if len(placed) > len(listed) or {*listed[len(placed) :]} != {*named}:
            takes = f"{len(listed)} argument{'s' * (len(listed) != 1)}"
            raise TypeError(f"Formula({self.of!r}, …) takes {takes}, but got {len(placed) + len(named)}")
        names = dict(zip(listed, placed, strict=False)) | named
        return eval(compile(self.expression, "formula", "eval"), {"__builtins__": {}}, known | names)


def check_bounds(kind: str, low: Any, high: Any) -> None:
    """Raise DrawError where these are no numbers, or the greater comes first."""
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in (low, high)):
        raise DrawError(f"the bounds of {kind} are {low!r} and {high!r}", "numbers")
    if not low <= high:
        raise DrawError(f"{kind} is from {low} to {high}", "from the lesser to the greater")


def as_array(name: str, found: Any) -> Array:
    """An array, or a list of numbers as one; raises DrawError where its rows differ in length."""
    try:
        return np.asarray(found)
    except ValueError as error:
        raise DrawError(f"the rows of {name} differ in length", "rows of one length, as an array has") from error


def is_numbers(one: object) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    is_list = isinstance(one, list) and bool(one)
    return is_list and all(is_numbers(part) or type(part) in (int, float) for part in one)  # type: ignore[attr-defined]


def computed_dtype(inputs: Mapping[str, Array], otherwise: str) -> str:
    """The dtype that is computed in: of the first floating input."""
    return next((array.dtype.name for array in inputs.values() if array.dtype.kind == "f"), otherwise)
