"""Arguments to try a function with: the likeliest first, then others; with other sizes, other settings, wrong ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.authoring.beginning.signatures import Argument, Function
from autograder.authoring.calls import Drawn, Formula, Number

SIZES = ((3, 4, 2, 5), (5, 7, 6, 8), (9, 11, 10, 12))  # of axes in the order of their names: no two in a case the same
RANGES = ("real", "positive", "probabilities", "whole")
NUMBERS = (Number(0.5, 3.0), Number(0.1, 0.9), Number(-2.0, 2.0), Number(2.0, 9.0))
WHOLES = (2, 3, 1, 10)
FORMULAS = (Formula("x", "x * x - 2"), Formula("x", "2 * x"))  # the second is the first one's derivative
OTHER_FORMULA = Formula("x", "x * x - 3")
TRIES = 96


def choices(function: Function) -> Iterator[dict[str, Any]]:
    """Arguments to try: first all arrays of one range and all numbers of one, then numbers of different ranges."""
    return itertools.islice(_choices(function.arguments), TRIES)


def _choices(named: Sequence[Argument]) -> Iterator[dict[str, Any]]:
    shapes = [("entry",), ("row", "column")] if any(one.kind == "array" and not one.axes for one in named) else [()]
    for axes, low, number in itertools.product(shapes, RANGES, range(4)):
        yield _values(named, low, {one.name: number for one in named}, axes)
    free = [one.name for one in named if one.kind in ("number", "whole") and not one.range]
    for axes, low, *numbers in itertools.product(shapes, RANGES[:2], *(range(4) for _ in free)):
        if len(set(numbers)) > 1:
            yield _values(named, low, dict(zip(free, numbers, strict=True)), axes)


def _values(named: Sequence[Argument], low: str, numbers: Mapping[str, int], axes: tuple[str, ...]) -> dict[str, Any]:
    arguments = {one.name: _value(one, low, numbers.get(one.name, 0), axes or ("entry",)) for one in named}
    for place, name in enumerate(one.name for one in named if _is_free(one)):
        arguments[name] += place  # no two the same: else nobody saw which is which
    functions = (one.name for one in named if one.kind == "function")
    return arguments | dict(zip(functions, itertools.cycle(FORMULAS), strict=False))


def _value(argument: Argument, low: str, number: int, axes: tuple[str, ...]) -> Any:
    match argument.kind:
        case "array":
            kind = argument.likely if argument.likely and (number == 0 or argument.likely == "whole") else low
            return Drawn(" ".join(argument.axes or axes), (), kind)  # type: ignore[arg-type]
        case "number":
            if argument.range:
                return Number(*argument.range)
            return NUMBERS[number] if argument.default is None or number else float(argument.default)
        case "whole":
            return _whole(argument.range, number) if argument.default is None or number else int(argument.default)
        case "function":
            return FORMULAS[0]
        case "flag":
            return bool(argument.default)
        case _:
            return str(argument.default or next(iter(argument.words), "text"))


def _whole(bounds: tuple[float, float] | None, number: int) -> int:
    """A whole number: within the bounds, where there are any."""
    if bounds is None:
        return WHOLES[number]
    low, high = math.ceil(bounds[0]), math.floor(bounds[1])
    return low + (high - low) * number // len(WHOLES) if low <= high else round(bounds[0])


def sized(arguments: Mapping[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """The arguments with a size for each axis: the same name the same size."""
    names: dict[str, int] = {}
    for one in arguments.values():
        for axis in one.axes.split() if isinstance(one, Drawn) else ():
            names.setdefault(axis, sizes[len(names) % len(sizes)] + len(names) // len(sizes))
    return {
        name: Drawn(one.axes, tuple(names[axis] for axis in one.axes.split()), one.kind)
        if isinstance(one, Drawn)
        else one
        for name, one in arguments.items()
    }


def larger(argument: Argument, value: Any) -> Sequence[int]:
    """Larger whole numbers in place of one that has no default, within the bounds that the docstring sets."""
    if argument.kind != "whole" or argument.default is not None:
        return ()
    if argument.range is None:
        return (value + 5, value + 3, value + 1)
    high = math.floor(argument.range[1])
    return tuple(more for more in (high, (value + high) // 2) if more > value)


def _is_free(argument: Argument) -> bool:
    return argument.kind == "whole" and argument.range is None and argument.default is None


def others(value: Any) -> Sequence[Any]:
    """Other whole numbers, flags or functions in place of one."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value + 1, value + 2)
    if isinstance(value, float):
        return tuple(other for other in (0.5 * value + 0.25, value + 1.0) if other != value)
    return (OTHER_FORMULA,) if value == FORMULAS[0] else ()


def worded(function: Function, arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same arguments with each other word that one of them may be, beside that word."""
    for one in function.arguments:
        for word in one.words if one.kind == "text" else ():
            if word != arguments[one.name]:
                yield word, {**arguments, one.name: word}


def wrong(value: Any) -> Sequence[Any]:
    """What a function may refuse in place of a value."""
    if isinstance(value, Drawn):
        return ([], [[]], [1.0], [[1.0]], [-1.0, -2.0], [0.0, 0.0], [[[1.0]]])
    if isinstance(value, bool | Formula):
        return ()
    if isinstance(value, str):
        return ("", "unheard-of")
    return (0, -1, -1.5, 1.5, -1000, 1000)


def unanswered(function: Function, arguments: Mapping[str, Any], seed: int, said: str) -> str:
    """What was tried, what came of it, and what the author may write."""
    rows = [f"`{one.name}   {_row_of(one)}`" for one in function.arguments]
    return (
        f"{function.name} answers nothing that was tried: {said}. It was called with {_in_a_row(arguments, seed)}. Say "
        f"in its docstring what each argument is, one line each, and between which bounds: {', '.join(rows)}; or "
        '`x   float[row column]`, `n   int   from 1 to 9`, `f   function`, `side   "up" or "down"`.'
    )


def _row_of(argument: Argument) -> str:
    """A line of a docstring, as it might say what an argument is."""
    match argument.kind:
        case "array":
            return f"float[{' '.join(argument.axes) or 'entry'}]"
        case "number":
            low, high = argument.range or (NUMBERS[0].low, NUMBERS[0].high)
            return f"float   from {low:g} to {high:g}"
        case "whole":
            return "int   from 1 to 9"
        case "text":
            return " or ".join(f'"{word}"' for word in argument.words or ("text",))
        case kind:
            return {"flag": "True or False", "function": "function"}[kind]


def _in_a_row(arguments: Mapping[str, Any], seed: int) -> str:
    """The arguments of one call, as an author would say them: `values = float[step=3], window = 2`."""
    rng = np.random.default_rng(seed)
    for one in arguments.values():
        if isinstance(one, Drawn):
            one.array(rng)  # numbers are drawn after all arrays
    return ", ".join(f"{name} = {_in_words(one, rng)}" for name, one in arguments.items())


def _in_words(one: Any, rng: np.random.Generator) -> str:
    if isinstance(one, Drawn):
        sizes = " ".join(f"{axis}={size}" for axis, size in zip(one.axes.split(), one.sizes, strict=True))
        return f"{'int' if one.kind == 'whole' else 'float'}[{sizes}]"
    if isinstance(one, Number):
        return str(one.drawn(rng))
    return f"the function {one.expression}" if isinstance(one, Formula) else repr(one)
