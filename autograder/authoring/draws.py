"""Arguments of a case that are drawn, or stated as a formula."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from autograder.sandbox.observation import Array

Kind = Literal["real", "positive", "probabilities", "whole"]


@dataclass(frozen=True)
class Drawn:
    """An array to draw for one argument: a name for each axis, sizes, and what its numbers are like.

    real            in [-2, 2)
    positive        in [0.2, 3)
    probabilities   positive, with sum 1 along the last axis
    whole           0 to 9
    """

    axes: str
    sizes: tuple[int, ...]
    kind: Kind = "real"

    def array(self, rng: np.random.Generator) -> Array:
        """The numbers; raises ValueError where there can be none."""
        if self.kind not in get_args(Kind):
            raise ValueError(f"the numbers of Drawn are one of {', '.join(get_args(Kind))}, not {self.kind!r}")
        if len(self.axes.split()) != np.size(self.sizes):
            raise ValueError(f"Drawn has the axes {self.axes!r} and the sizes {self.sizes!r}: one for each axis")
        if self.kind == "whole":
            return rng.integers(0, 10, self.sizes)
        low, high = (-2.0, 2.0) if self.kind == "real" else (0.2, 3.0)
        found: Array = np.asarray(rng.uniform(low, high, self.sizes))
        return found / found.sum(axis=-1, keepdims=True) if self.kind == "probabilities" else found


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
class Formula:
    """A function that is an argument: an expression of named numbers, such as Formula("x", "x * x - 2")."""

    of: str
    expression: str

    def __call__(self, *arguments: float) -> Any:
        """Its value, for the oracle."""
        known = {name: getattr(np, name) for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "pi", "e")}
        names = dict(zip(self.of.split(), arguments, strict=True))
        return eval(compile(self.expression, "formula", "eval"), {"__builtins__": {}}, known | names)
