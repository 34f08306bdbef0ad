"""Expected and observed values of one shape → clues. Pure numpy.

Each detector asks whether one simple change of the expected values gives the observed ones, and how much evidence there
is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from autograder.grading.remarks.evidence import FULL_BITS, MAX_AXES, Clue, Pair, different
from autograder.sandbox.calls import Array

CLEARLY = 10.0  # times the widened tolerance, for a difference that is none of rounding
NEARLY_ONE = 0.01
MAX_LINE = 512


def factors(pair: Pair) -> Iterator[Clue]:
    """All values are minus the expected ones, or the expected ones times one number."""
    telling = pair.telling
    if not telling.any():
        return
    place = np.unravel_index(int(np.abs(pair.expected).argmax()), pair.expected.shape)
    factor = float(pair.observed[place] / pair.expected[place])
    precision = float(pair.allowed[place] / abs(pair.expected[place]))
    slack = abs(factor) * (pair.allowed + np.abs(pair.expected) * precision)
    fits = bool((np.abs(pair.observed - factor * pair.expected) <= slack).all())
    if not fits or not math.isfinite(factor) or factor == 0 or abs(factor - 1) < NEARLY_ONE:
        return
    values = different(np.abs(pair.expected[telling]))
    found = Clue("factor", "", factor, 4 * precision, values, values * pair.each, pair.each)
    if abs(factor + 1) <= 2 * precision:
        yield replace(found, kind="sign")
    yield found


def _offsets(pair: Pair) -> Iterator[Clue]:
    """All values are the expected ones plus one number."""
    distance = pair.observed - pair.expected
    place = np.unravel_index(int(pair.allowed.argmin()), pair.allowed.shape)
    amount = float(distance[place])
    noise = pair.epsilon * float(np.abs(pair.observed).max())
    values = different(pair.expected)
    if noise > _spread(pair.expected) / 100 or abs(amount) <= CLEARLY * (float(pair.allowed.max()) + noise):
        return
    if (np.abs(distance - amount) <= pair.allowed + pair.allowed[place] + noise).all():
        precision = 2 * float(pair.allowed.max()) + noise
        yield Clue("offset", "", amount, precision, values, values * pair.each, pair.each)


def _spread(expected: Array) -> float:
    return float(np.ptp(expected)) if expected.size > 1 else float(np.abs(expected).max())


def _offsets_along(pair: Pair) -> Iterator[Clue]:
    """Along an axis all values are off by the same amount, another one elsewhere."""
    distance = pair.observed - pair.expected
    noise = pair.epsilon * float(np.abs(pair.observed).max())
    if noise > _spread(pair.expected) / 100:
        return
    for axis, name in pair.long_axes():
        slack = 2 * pair.allowed.max(axis=axis) + noise
        off = np.abs(distance).min(axis=axis) > CLEARLY * slack
        right = pair.near(pair.expected).all(axis=axis)
        if (np.ptp(distance, axis=axis) <= slack).all() and (off | right).all() and off.any():
            values = _different_along(pair.expected, np.ones_like(pair.telling), axis)
            yield Clue("offset-along", name, 0.0, 0.0, values, values * pair.each, pair.each)


def _factors_along(pair: Pair) -> Iterator[Clue]:
    """Along an axis all values are off by the same factor, another one elsewhere."""
    for axis, name in pair.long_axes():
        place = np.expand_dims(np.abs(pair.expected).argmax(axis=axis), axis)
        greatest = np.take_along_axis(pair.expected, place, axis)
        told = np.take_along_axis(pair.telling, place, axis)
        factor = np.where(told, np.take_along_axis(pair.observed, place, axis) / np.where(told, greatest, 1), 1.0)
        precision = np.where(told, np.take_along_axis(pair.allowed, place, axis) / np.abs(greatest), 0.0)
        slack = np.abs(factor) * (pair.allowed + np.abs(pair.expected) * precision)
        fits = (np.abs(pair.observed - factor * pair.expected) <= slack).all() and np.isfinite(factor).all()
        off, right = np.abs(factor - 1) >= NEARLY_ONE, pair.near(pair.expected).all(axis=axis, keepdims=True)
        if fits and (factor != 0).all() and (off | right).all() and off.any():
            values = _different_along(np.abs(pair.expected), pair.telling, axis)
            yield Clue("factor-along", name, 0.0, 0.0, values, values * pair.each, pair.each)


def _different_along(values: Array, telling: Array, axis: int) -> int:
    """How many values beyond the first differ in each line along the axis, over all lines."""
    lines = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
    chosen = np.moveaxis(telling, axis, -1).reshape(lines.shape)
    return sum(max(0, different(line[told]) - 1) for line, told in zip(lines, chosen, strict=True))


def _functions(pair: Pair) -> Iterator[Clue]:
    """All values are one elementary function of the expected ones."""
    for name, function in FUNCTIONS.items():
        predicted = function(pair.expected)
        around = [np.abs(function(pair.expected + step) - predicted) for step in (pair.allowed, -pair.allowed)]
        slack = np.maximum(*around) + pair.rtol * np.abs(predicted)
        is_known = np.isfinite(predicted).all() and (slack <= NEARLY_ONE * np.abs(predicted).max()).all()
        if is_known and (np.abs(pair.observed - predicted) <= slack).all():
            values = different(predicted[~pair.near(pair.expected)])
            yield Clue("function", name, 0.0, 0.0, values, values * pair.each, pair.each)


def _orders(pair: Pair) -> Iterator[Clue]:
    """The expected values in the order of other axes: transposed, or reshaped where they should be transposed."""
    if pair.expected.ndim > MAX_AXES:
        return
    for order in itertools.permutations(range(pair.expected.ndim)):
        moved = pair.expected.transpose(order)
        swapped = " and ".join(pair.axes[axis] for place, axis in enumerate(order) if place != axis)
        yield from _moved(pair, moved.reshape(pair.expected.shape), _kind_of(moved, pair.expected), swapped)
        back = pair.expected.reshape(moved.shape).transpose(np.argsort(order))
        yield from _moved(pair, back, _kind_of(moved, pair.expected), swapped)


def _kind_of(moved: Array, expected: Array) -> str:
    return "transposed" if moved.shape == expected.shape else "reshaped"


def _shifts(pair: Pair) -> Iterator[Clue]:
    """The expected values turned round, shifted by one place, or in another order, along an axis."""
    places = np.indices(pair.expected.shape)
    for axis, name in pair.long_axes():
        last = pair.expected.shape[axis] - 1
        yield from _moved(pair, np.flip(pair.expected, axis), "reversed", name)
        yield from _moved(pair, np.roll(pair.expected, 1, axis), "late", name, places[axis] > 0)
        yield from _moved(pair, np.roll(pair.expected, -1, axis), "early", name, places[axis] < last)
    for axis, name in pair.long_axes():
        order = np.argsort(np.argsort(pair.observed, axis=axis, kind="stable"), axis=axis, kind="stable")
        again = np.take_along_axis(np.sort(pair.expected, axis=axis), order, axis)
        yield from _moved(pair, again, "disordered", name)


def _moved(pair: Pair, predicted: Array, kind: str, detail: str, inside: Array | None = None) -> Iterator[Clue]:
    """A clue where the observed values are the predicted ones; those that stand where they should say nothing."""
    near = pair.near(predicted)
    if not (near if inside is None else near[inside]).all():
        return
    changed = np.abs(predicted - pair.expected) > CLEARLY * (pair.allowed + pair.rtol * np.abs(predicted))
    if inside is not None:
        changed &= inside
    values = different(predicted[changed])
    guesses = math.lgamma(values + 1) / math.log(2) if kind == "disordered" else 0.0
    yield Clue(kind, detail, 0.0, 0.0, values, values * pair.each - guesses, pair.each)


def _signs(pair: Pair) -> Iterator[Clue]:
    """The magnitudes are right, some of the signs are not."""
    wrong = ~pair.near(pair.expected)
    if not (np.abs(np.abs(pair.observed) - np.abs(pair.expected)) <= pair.allowed).all() or wrong.sum() < 2:
        return
    values = different(np.abs(pair.expected[pair.telling]))
    found = Clue("some-signs", "", 0.0, 0.0, values, values * pair.each, pair.each)
    if np.array_equal(wrong, pair.telling & (pair.expected < 0)):
        yield replace(found, kind="absolute")
    yield found


def _flat(pair: Pair) -> Iterator[Clue]:
    """Zero everywhere, or the same all along an axis where the expected values are not."""
    if not pair.observed.any():
        values = int(pair.telling.sum())
        yield Clue("zero", "", 0.0, 0.0, values, values * FULL_BITS)
        return
    if np.ptp(pair.observed) <= 1e-6 * np.abs(pair.observed).max():
        values = different(pair.expected) - 1
        yield Clue("same", "", 0.0, 0.0, values, values * pair.each, pair.each)
    for axis, name in pair.long_axes():
        same = np.ptp(pair.observed, axis=axis) <= 1e-6 * np.abs(pair.observed).max(axis=axis)
        varied = np.ptp(pair.expected, axis=axis) > CLEARLY * pair.allowed.max(axis=axis)
        if same.all() and varied.any():
            values = int(varied.sum()) * (pair.expected.shape[axis] - 1)
            yield Clue("flat", name, 0.0, 0.0, values, values * pair.each, pair.each)


def _places(pair: Pair) -> Iterator[Clue]:
    """Only values of one kind are wrong."""
    yield from _only(pair, ~pair.near(pair.expected), "only", "only-zeroed")


def not_finite(pair: Pair) -> Iterator[Clue]:
    """Values that are nan or infinite, and of which kind they should be."""
    holes = ~np.isfinite(pair.observed)
    if holes.all():
        values = holes.size
        yield Clue("never-finite", "", 0.0, 0.0, values, values * FULL_BITS)
    for axis, name in pair.long_axes():
        even = np.ptp(pair.expected, axis=axis, keepdims=True) <= pair.allowed.max(axis=axis, keepdims=True)
        yield from _within(holes, np.broadcast_to(even, holes.shape), "holes-where-even", name)
    yield from _only(pair, holes, "holes", "holes")


def _only(pair: Pair, wrong: Array, kind: str, zeroed: str) -> Iterator[Clue]:
    zero = np.abs(pair.expected) <= pair.allowed
    regions = {"0": zero}
    if (pair.expected[pair.telling] > 0).any() and (pair.expected[pair.telling] < 0).any():
        regions |= {"negative": ~zero & (pair.expected < 0), "positive": ~zero & (pair.expected > 0)}
    if pair.axes and pair.expected.shape[-1] <= MAX_LINE:
        tied = _tied(pair.expected)
        regions |= {"tied": ~zero & tied} if (~zero & ~tied).any() else {}  # else it says nothing of what is right
    for name, region in regions.items():
        yield from _within(wrong, region, kind, name)
        if not pair.observed[wrong].any() and name != "0":
            yield from _within(wrong, region, zeroed, name)


def _tied(expected: Array) -> Array:
    """Where a value stands more than once in its line along the last axis."""
    equal: Array = expected[..., :, None] == expected[..., None, :]
    tied: Array = equal.sum(axis=-1) > 1
    return tied


def _within(wrong: Array, region: Array, kind: str, detail: str) -> Iterator[Clue]:
    """A clue where all that is wrong lies in the region: how surprising is that of so many places?"""
    number, inside = int(wrong.sum()), int(region.sum())
    if not 0 < number < wrong.size or (wrong & ~region).any():
        return
    yield Clue(kind, detail, 0.0, 0.0, number, _bits_of_choice(wrong.size, number) - _bits_of_choice(inside, number))


def _bits_of_choice(total: int, number: int) -> float:
    """log2 of in how many ways so many of all can be chosen."""
    ways = math.lgamma(total + 1) - math.lgamma(number + 1) - math.lgamma(total - number + 1)
    return ways / math.log(2)


def lost_digits(pair: Pair) -> Iterator[Clue]:
    """Nearly right values that went through a shorter float type on their way."""
    if (np.abs(pair.observed - pair.expected) > NEARLY_ONE * np.abs(pair.expected).max()).any():
        return
    for dtype, name in ((np.float16, "half"), (np.float32, "single")):
        if np.array_equal(pair.observed.astype(dtype), pair.observed):
            values = different(pair.expected[pair.expected.astype(dtype) != pair.expected])
            yield Clue("rounded", name, 0.0, 0.0, values, values * FULL_BITS)


Detector = Callable[[Pair], Iterator[Clue]]
DETECTORS: tuple[Detector, ...] = (
    factors, _offsets, _functions, _orders, _shifts, _signs, _flat, _offsets_along, _factors_along, _places,
)  # fmt: skip
FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "the exponentials": np.exp,
    "the logarithms": np.log,
    "the squares": np.square,
    "the square roots": np.sqrt,
    "the reciprocals": np.reciprocal,
}
