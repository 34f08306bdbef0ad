"""Arguments of a case that are drawn, or stated as a formula."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from autograder.sandbox.observation import Array

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
        """The numbers; raises ValueError where there can be none."""
        if self.kind not in get_args(Kind):
            raise ValueError(f"the numbers of Drawn are one of {', '.join(get_args(Kind))}, not {self.kind!r}")
        if len(self.axes.split()) != np.size(self.sizes):
            raise ValueError(f"Drawn has the axes {self.axes!r} and the sizes {self.sizes!r}: one for each axis")
        low, high = self._bounds
        if not low <= high or (self.kind == "probabilities" and (self.low, self.high) != (None, None)):
            raise ValueError(
                f"Drawn is from the lesser to the greater, not of probabilities: {self.low} to {self.high}"
            )
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
            raise ValueError(
                f"from {low} to {high} there are {len(known)} {kinds} numbers, and {count} are to be drawn"
            )
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
        """The number; raises ValueError where there is none between the two."""
        if not self.low <= self.high:
            raise ValueError(f"Number is from the lesser to the greater, not from {self.low} to {self.high}")
        return round(float(rng.uniform(self.low, self.high)), 3)


@dataclass(frozen=True)
class Whole(Number):
    """A whole number to draw for one argument; it may be either bound. `also` is "even" or "odd", or nothing."""

    also: str = ""

    def drawn(self, rng: np.random.Generator) -> int:
        """The number; raises ValueError where there is none between the two."""
        low, high = math.ceil(self.low), math.floor(self.high)
        if low > high:
            raise ValueError(f"Whole is from the lesser to the greater, not from {self.low} to {self.high}")
        check_also(self.also, tuple(PARITY), "whole")
        known = wholes(low, high, self.also)
        if not known:
            raise ValueError(f"from {self.low} to {self.high} there is no {self.also} number")
        return int(rng.choice(known)) if self.also else int(rng.integers(low, high + 1))


def wholes(low: int, high: int, also: str) -> list[int]:
    """The whole numbers from one to the other that are even or odd, where that is said."""
    rest = next((PARITY[word] for word in also.split() if word in PARITY), None)
    return [one for one in range(low, high + 1) if rest in (None, one % 2)]


def check_also(also: str, known: Sequence[str], kind: str) -> None:
    """Raise ValueError where `also` has a word that is not known, or that numbers of this kind cannot be."""
    for word in also.split():
        if word not in known:
            raise ValueError(f"also is of the words {', '.join(known)}; {word!r} is none of them")
        if word in PARITY and kind != "whole":
            raise ValueError(f"numbers that are {word} are whole: Drawn(…, 'whole', low, high, also={word!r})")


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


def is_numbers(one: object) -> bool:
    """Whether it is a list of numbers, or of such lists."""
    is_list = isinstance(one, list) and bool(one)
    return is_list and all(is_numbers(part) or type(part) in (int, float) for part in one)  # type: ignore[attr-defined]


def computed_dtype(inputs: Mapping[str, Array], otherwise: str) -> str:
    """The dtype that is computed in: of the first floating input."""
    return next((array.dtype.name for array in inputs.values() if array.dtype.kind == "f"), otherwise)
