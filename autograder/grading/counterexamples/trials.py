"""A trial: one small call that an assignment's `counterexamples.py` draws, the oracle's answer, and how to type it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.items import Item
from autograder.sandbox.calls import Array
from autograder.sandbox.worker.calling import NUMPY, PYTHON, TORCH
from autograder.vocabulary.errors import GraderFault

Answer = Callable[[Mapping[str, Array], Mapping[str, Any]], Sequence[Expectation]]


@dataclass(frozen=True)
class Trial:
    """One call.

    probe    what the sandbox calls it through, with `inputs` and `params`, as for a stored case
    answer   the oracle: expectations from inputs and parameters
    shown    expectation's name → the text to paste that shows it; "" for all others. `{rewards}` stands for the input
             of that name as a tensor, an array or a list, `{batch}` for the size of an axis, `{dtype}` for that of the
             inputs' numbers
    axes     input → names of its axes, separated by spaces; an axis gets shorter in all inputs at once
    least    axis → the fewest entries that still make a call
    fixed    inputs whose values mean something else when they change
    allowed  whether inputs are ones that the contract speaks of
    """

    probe: str
    inputs: Mapping[str, Array]
    params: Mapping[str, Any]
    answer: Answer
    shown: Mapping[str, str]
    axes: Mapping[str, str] = field(default_factory=dict)
    least: Mapping[str, int] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()
    allowed: Callable[[Mapping[str, Array]], bool] = lambda inputs: True

    def as_case(self, item: Item) -> Case | None:
        """The case that the sandbox runs and the comparison judges; None where no answer can be held.

        Raises GraderFault where the oracle fails otherwise than at numbers that it has no answer for.
        """
        if not self.allowed(self.inputs):
            return None
        try:
            with np.errstate(all="ignore"):
                expected = tuple(self.answer(self.inputs, self.params))
        except (ArithmeticError, IndexError, KeyError, ValueError):
            return None
        except Exception as error:
            raise GraderFault(f"The oracle fails at a drawn call of {item.function}: {error}.") from error
        if not all(_is_held(one) for one in expected if one.kind in ("value", "gradient")):
            return None
        call = self.probe, self.params, self.inputs
        return Case("counterexample", item.id, item.function, "", "public", *call, expected, {})

    def text(self, name: str = "") -> str:
        """What to paste in order to see the expectation of that name."""
        text = self.shown.get(name, self.shown[""])
        library = "torch" if self.values == TORCH else "np"
        dtypes = [f"{library}.{array.dtype.name}" for array in self.inputs.values() if array.dtype.kind == "f"]
        words = {"dtype": dtypes[0] if dtypes else "", **{axis: str(size) for axis, size in self.sizes.items()}}
        for word, meant in (words | self._literals).items():
            text = text.replace(f"{{{word}}}", meant)
        return text

    @property
    def values(self) -> str:
        """What the inputs are: tensors, arrays or lists."""
        return str(self.params.get("values", TORCH))

    @property
    def _literals(self) -> dict[str, str]:
        return {name: literal(array, self.values) for name, array in self.inputs.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each axis."""
        found: dict[str, int] = {}
        for name, axes in self.axes.items():
            found |= dict(zip(axes.split(), self.inputs[name].shape, strict=True))
        return found

    @functools.cached_property
    def cost(self) -> tuple[int, int, float]:
        """How hard it is to read: the fewer numbers, the shorter, the smaller, the better."""
        size = sum(array.size for array in self.inputs.values())
        written = sum(map(len, self._literals.values()))
        wide = (np.nan_to_num(array.astype(np.float64), posinf=1e9, neginf=1e9) for array in self.inputs.values())
        with np.errstate(over="ignore"):  # the largest numbers of all add up to infinity
            return size, written, sum(float(np.abs(array).sum()) for array in wide)


def _is_held(expectation: Expectation) -> bool:
    """Whether a tensor of the expected dtype can hold the expected values."""
    if expectation.array is None:
        return True
    with np.errstate(all="ignore"):
        return bool(np.isfinite(expectation.array.astype(expectation.dtype)).all())


def literal(array: Array, values: str = TORCH) -> str:
    """The array as a call of torch.tensor or np.array, or as a list."""
    return _literal(array.dtype.name, array.shape, array.tobytes(), values)


@functools.lru_cache(maxsize=4096)  # what a trial is shrunk to shares all inputs with it but one
def _literal(dtype: str, shape: tuple[int, ...], data: bytes, values: str) -> str:
    array = np.frombuffer(data, dtype=dtype).reshape(shape)
    if values == PYTHON:
        return nested(array)
    if values == NUMPY:
        said = "" if dtype in ("float64", "int64", "bool") and array.size else f", dtype=np.{dtype}"
        return f"np.array({nested(array)}{said})"
    said = "" if dtype in ("float32", "int64", "bool") else f", dtype=torch.{dtype}"
    return f"torch.tensor({nested(array)}{said})"


def nested(array: Array, digits: int = 0) -> str:
    """The numbers as nested lists; `digits` significant ones of each, 0 for as many as tell it from all others."""
    if array.ndim:
        return "[" + ", ".join(nested(entry, digits) for entry in array) + "]"
    if array.dtype.kind != "f":
        return str(array.item())
    number = float(array)
    if not math.isfinite(number):
        return f'float("{number}")' if not digits else str(number)
    text = f"{number + 0.0:.{digits}g}" if digits else _shortest(number + 0.0, array.dtype.name)
    return text if any(sign in text for sign in ".en") else f"{text}.0"


def _shortest(number: float, dtype: str) -> str:
    """The fewest digits that give the number back in its dtype."""
    return repr(number) if dtype == "float64" or number == round(number, 3) else str(np.dtype(dtype).type(number))
