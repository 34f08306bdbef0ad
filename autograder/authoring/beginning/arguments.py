"""Arguments to try a function with: the likeliest first, then others; with other sizes, other settings, wrong ones."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.authoring.beginning.signatures import Argument, Function
from autograder.authoring.calls import Drawn, Formula, Number, Whole
from autograder.authoring.drafts import callbacks
from autograder.authoring.drafts.draws import wholes

SIZES = ((3, 4, 2, 5), (5, 7, 6, 8), (9, 11, 10, 12))  # of axes in the order of their names: no two in a case the same
RANGES = ("real", "positive", "probabilities", "whole")
NUMBERS = (Number(0.5, 3.0), Number(0.1, 0.9), Number(-2.0, 2.0), Number(2.0, 9.0))
WHOLES = (2, 3, 1, 10)
WORDS = ("pear", "fig", "apple", "kiwi", "fig", "banana")
TRIES = 96
SPAN, MOST_DRAWS = 3, 256  # from a whole number to the greatest drawn in its place; combinations of such


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
    for place, one in enumerate(one for one in named if _is_free(one)):
        arguments[one.name] += 2 * place if one.also else place  # no two the same: else nobody saw which is which
    functions = (one for one in named if one.kind == "function" and not one.optional)
    return arguments | {one.name: _formulas(one)[place % 2] for place, one in enumerate(functions)}


def _formulas(argument: Argument) -> Sequence[Formula]:
    return callbacks.formulas(argument.takes, argument.text)


def _value(argument: Argument, low: str, number: int, axes: tuple[str, ...]) -> Any:
    if argument.optional or isinstance(argument.default, list | tuple | dict):
        return list(argument.default) if isinstance(argument.default, tuple) else argument.default
    match argument.kind:
        case "array":
            kind = argument.likely if argument.likely and (number == 0 or argument.likely == "whole") else low
            low_high = _bounds(argument, "real" if argument.range and kind == "probabilities" else kind)
            return Drawn(" ".join(argument.axes or axes), (), *low_high, also=argument.also)  # type: ignore[arg-type]
        case "number":
            if argument.range:
                return Number(*argument.range)
            if argument.likely == "positive" and NUMBERS[number].low < 0:
                number = 0
            is_number = type(argument.default) in (int, float) and not number
            return float(argument.default) if is_number else NUMBERS[number]
        case "whole":
            if type(argument.default) is not int or number or not _is_within(argument.range, argument.default):
                return _fitting(argument, _whole(argument.range, number))
            return int(argument.default)
        case "function":
            return _formulas(argument)[0]
        case "flag":
            return bool(argument.default)
        case "texts":
            return list(WORDS[:3])
        case _:
            return str(argument.default or next(iter(argument.words), "text"))


def _bounds(argument: Argument, kind: str) -> tuple[str, float | None, float | None]:
    """Of which kind an array's numbers are, and their bounds, where the docstring says any."""
    if argument.range is None:
        return kind, None, None
    low, high = argument.range
    is_whole = kind == "whole"
    return ("whole", math.ceil(low), math.floor(high)) if is_whole else ("real", low, high)


def _is_within(bounds: tuple[float, float] | None, value: float) -> bool:
    return bounds is None or bounds[0] <= value <= bounds[1]


def _fitting(argument: Argument, value: int) -> int:
    """The whole number, or the next one that is even or odd, where that is said."""
    return value if wholes(value, value, argument.also) else value + 1


def _whole(bounds: tuple[float, float] | None, number: int) -> int:
    """A whole number: within the bounds, where there are any."""
    if bounds is None:
        return WHOLES[number]
    low, high = math.ceil(bounds[0]), math.floor(bounds[1])
    return low + (high - low) * number // len(WHOLES) if low <= high else round(bounds[0])


def sized(function: Function, arguments: Mapping[str, Any], sizes: Sequence[int]) -> dict[str, Any]:
    """The arguments with a size for each axis, by its name; what counts the places of an axis is below its size."""
    names: dict[str, int] = {}
    for one in arguments.values():
        for axis in one.axes.split() if isinstance(one, Drawn) else ():
            names.setdefault(axis, sizes[len(names) % len(sizes)] + len(names) // len(sizes))
    counted = {one.name: names[one.below] for one in function.arguments if one.below in names}
    found = dict(arguments)
    for name, one in arguments.items():
        if isinstance(one, Drawn):
            found[name] = replace(one, sizes=tuple(names[axis] for axis in one.axes.split()))
        if isinstance(one, Drawn) and name in counted:
            found[name] = replace(found[name], kind="whole", low=0, high=counted[name] - 1)
        if isinstance(one, Drawn) and one.kind == "whole" and one.also and found[name].low is None:
            found[name] = replace(found[name], low=0, high=3 * math.prod(found[name].sizes))  # room for different ones
    return found


def larger(argument: Argument, value: Any) -> Sequence[Any]:
    """Larger whole numbers in place of one that has no default, within the bounds that the docstring sets."""
    if argument.kind == "texts" and value == list(WORDS[:3]):
        return (list(WORDS),)
    if argument.kind != "whole" or not argument.is_needed:
        return ()
    if argument.range is None:
        return (value + 6, value + 4, value + 2) if argument.also else (value + 5, value + 3, value + 1)
    high = math.floor(argument.range[1])
    known = wholes(value + 1, high, argument.also)
    return tuple(more for more in dict.fromkeys((*known[-1:], (value + high) // 2)) if more in known)


def with_wholes(function: Function, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments with each whole number drawn from it upward, where nothing is drawn: a term is to have its own."""
    if any(isinstance(one, Drawn | Number) for one in arguments.values()):
        return arguments
    wholes = [one for one in function.arguments if one.kind == "whole" and type(arguments.get(one.name)) is int]
    drawn = {one.name: _upward(one, arguments[one.name]) for one in wholes}
    return {**arguments, **drawn} if (SPAN + 1) ** len(drawn) <= MOST_DRAWS else arguments


def _upward(argument: Argument, value: int) -> Whole | int:
    """Whole numbers from the value upward, else downward, within the bounds; the value where there is no room."""
    low, high = argument.range or (-math.inf, math.inf)
    greatest = value + SPAN if value + SPAN <= high else math.floor(high)
    least = value - SPAN if value - SPAN >= low else math.ceil(low)
    if len(wholes(value, greatest, argument.also)) > 1:
        return Whole(value, greatest, argument.also)
    return Whole(least, value, argument.also) if len(wholes(least, value, argument.also)) > 1 else value


def every_draw(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments with each combination of the whole numbers that may be drawn."""
    ranged = {name: one for name, one in arguments.items() if isinstance(one, Whole)}
    drawn = {name: wholes(int(one.low), int(one.high), one.also) for name, one in ranged.items()}
    for several in itertools.product(*drawn.values()):
        yield {**arguments, **dict(zip(drawn, several, strict=True))}


def _is_free(argument: Argument) -> bool:
    return argument.kind == "whole" and argument.range is None and argument.is_needed


def others(argument: Argument, value: Any) -> Sequence[Any]:
    """Other whole numbers, flags or functions in place of one, within the bounds that the docstring sets."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        more = (value + 1, value + 2, value - 1, *((value - 2,) if argument.also else ()))
        return tuple(one for one in more if _is_within(argument.range, one) and wholes(one, one, argument.also))
    if isinstance(value, float):
        return tuple(other for other in (0.5 * value + 0.25, value + 1.0) if other != value)
    first, _, other = _formulas(argument) if isinstance(value, Formula) else ("", "", value)
    return (other,) if value == first else ()


def worded(function: Function, arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The same arguments with each other word that one of them may be, beside that word."""
    for one in function.arguments:
        for word in one.words if one.kind == "text" else ():
            if word != arguments[one.name] and not one.optional:
                yield word, {**arguments, one.name: word}


def wrong(value: Any) -> Sequence[Any]:
    """What a function may refuse in place of a value."""
    if isinstance(value, Drawn):
        return ([], [[]], [1.0], [[1.0]], [-1.0, -2.0], [0.0, 0.0], [[[1.0]]])
    if value is None or isinstance(value, bool | Formula | list | dict):
        return ()
    if isinstance(value, str):
        return ("", "unheard-of")
    return (0, -1, -1.5, 1.5, -1000, 1000)


def unanswered(function: Function, arguments: Mapping[str, Any], seed: int, said: str) -> str:
    """What was tried, what came of it, and what the author may write."""
    rows = [f"`{one.name}   {_row_of(one)}`" for one in function.arguments if one.is_needed]
    said += "".join(f"; its docstring has {slip}" for slip in function.slips)
    said += "".join(f"; {phrase} (line {line}) binds nothing that is drawn" for line, phrase in function.unbound)
    return (
        f"{function.name} answers nothing that was tried: {said}. It was called with {_in_a_row(arguments, seed)}. Say "
        f"in its docstring what each argument is, one line each, and between which bounds: {', '.join(rows)}; or "
        "`x   float[row column]`, `k   int[row]   below column`, `n   int   from 1 to 9`, `f   function of x and y`, "
        '`side   "up" or "down"`.'
    )


def _row_of(argument: Argument) -> str:
    """A line of a docstring, as it might say what an argument is."""
    match argument.kind:
        case "array":
            kind = "int" if argument.likely == "whole" or argument.below else "float"
            below = f"   below {argument.below}" if argument.below else ""
            bounds = (
                f"   from {argument.range[0]:g} to {argument.range[1]:g}" if argument.range and not below else below
            )
            return f"{kind}[{' '.join(argument.axes) or 'entry'}]{bounds}"
        case "number":
            low, high = argument.range or (NUMBERS[0].low, NUMBERS[0].high)
            return f"float   from {low:g} to {high:g}"
        case "whole":
            return "int   from 1 to 9"
        case "text":
            return " or ".join(f'"{word}"' for word in argument.words or ("text",))
        case "texts":
            return "list of words"
        case kind:
            of = f" of {' and '.join(argument.takes)}" if argument.takes else ""
            return {"flag": "True or False", "function": f"function{of}"}[kind]


def _in_a_row(arguments: Mapping[str, Any], seed: int) -> str:
    """The arguments of one call, as an author would say them: `values = float[step=3], window = 2`."""
    rng = np.random.default_rng(seed)
    for one in arguments.values():
        if isinstance(one, Drawn):
            with contextlib.suppress(ValueError):
                one.array(rng)  # numbers are drawn after all arrays
    return ", ".join(f"{name} = {_in_words(one, rng)}" for name, one in arguments.items())


def _in_words(one: Any, rng: np.random.Generator) -> str:
    if isinstance(one, Drawn):
        sizes = " ".join(f"{axis}={size}" for axis, size in zip(one.axes.split(), one.sizes, strict=True))
        bounds = "" if one.low is None else f" from {one.low:g} to {one.high:g}"
        return f"{'int' if one.kind == 'whole' else 'float'}[{sizes}]{bounds}"
    if isinstance(one, Number):
        return str(one.drawn(rng))
    return f"the function {one.expression}" if isinstance(one, Formula) else repr(one)
