"""A wrong array → clues: a factor, a sign, an order, a place. Pure numpy.

Each detector asks whether one simple change of the expected values gives the observed ones, and how much evidence there
is: how many different values bear it out, and how many bits that says against chance. Whether it is told is decided in
`reasons`, which sees all cases of an item.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from autograder.grading.cases import Expectation
from autograder.sandbox.observation import Array

WIDER = 4.0  # times the tolerance of the case, for a change that is computed from rounded values
CLEARLY = 10.0  # times the widened tolerance, for a difference that is none of rounding
TELLING = 50.0  # a value this many times its tolerance tells a factor
FULL_BITS = 20.0  # what one value of full precision that fits says against chance
NEARLY_ONE = 0.01
FINEST_GRID = 10
FACTOR_KINDS = ("sign", "factor")
MAX_AXES = 4
MAX_SIZE = 20_000
MAX_LINE = 512


@dataclass(frozen=True)
class Wrong:
    """A wrong array of one case.

    sizes   named sizes that a factor may be made of
    more    wrong gradients of the same case: they may bear a factor out
    """

    expectation: Expectation
    observed: Array
    sizes: Mapping[str, int] = field(default_factory=dict)
    more: tuple[tuple[Expectation, Array], ...] = ()


@dataclass(frozen=True)
class Clue:
    """One thing that a case shows.

    detail      the axis or the place
    number      the factor or the amount, known up to `precision`
    values      how many different values bear it out
    bits        how much all of them say against chance; `each` is what one of them says
    """

    kind: str
    detail: str = ""
    number: float = 0.0
    precision: float = 0.0
    values: int = 0
    bits: float = 0.0
    each: float = FULL_BITS


@dataclass(frozen=True)
class _Pair:
    """Expected and observed as float64 of one shape; `each` is what one value says against chance."""

    expected: Array
    observed: Array
    rtol: float
    atol: float
    axes: tuple[str, ...]
    epsilon: float
    each: float

    @property
    def allowed(self) -> Array:
        return self.atol + self.rtol * np.abs(self.expected)

    @property
    def telling(self) -> Array:
        return np.abs(self.expected) > TELLING * self.allowed

    def near(self, predicted: Array) -> Array:
        """Where the observed values are the predicted ones, within the widened tolerance."""
        near: Array = np.abs(self.observed - predicted) <= self.atol + self.rtol * np.abs(predicted)
        return near

    def long_axes(self) -> list[tuple[int, str]]:
        """The axes along which there is more than one value."""
        return [(axis, name) for axis, name in enumerate(self.axes) if self.expected.shape[axis] > 1]


def clues(wrong: Wrong) -> list[Clue]:
    """All that one wrong array shows; nothing where it is right or cannot be compared."""
    return _clues(wrong, DETECTORS)


def factor_clues(wrong: Wrong) -> list[Clue]:
    """What one wrong array shows of a factor or a sign, and nothing else."""
    return [clue for clue in _clues(wrong, (_factors,)) if clue.kind in FACTOR_KINDS]


def _clues(wrong: Wrong, detectors: Sequence[Detector]) -> list[Clue]:
    expected, observed = wrong.expectation.array, wrong.observed
    if expected is None or not _is_plain(expected) or not _is_plain(observed):
        return []
    with np.errstate(all="ignore"):
        if observed.shape != expected.shape:
            return list(_shape_clues(wrong.expectation, expected, observed))
        pair = _pair(wrong.expectation, expected, observed)
        if not np.isfinite(pair.expected).all() or _is_right(wrong.expectation, pair):
            return []
        if not np.isfinite(pair.observed).all():
            return list(_not_finite(pair))
        found = [clue for detector in detectors for clue in detector(pair)]
        rounded = _rounded(pair) if wrong.expectation.dtype == observed.dtype.name == "float64" else ()
        return [*(_borne_out(clue, wrong) for clue in found), *rounded]


def _is_plain(array: Array) -> bool:
    return array.dtype.kind in "fiub" and 0 < array.size <= MAX_SIZE


def _is_right(expectation: Expectation, pair: _Pair) -> bool:
    allowed = expectation.atol + expectation.rtol * np.abs(pair.expected)
    return bool((np.abs(pair.observed - pair.expected) <= allowed).all())


def _pair(expectation: Expectation, expected: Array, observed: Array) -> _Pair:
    wide, seen = expected.astype(np.float64), observed.astype(np.float64)
    epsilon = float(np.finfo(observed.dtype).eps) if observed.dtype.kind == "f" else float(np.finfo(np.float64).eps)
    names = expectation.axes if len(expectation.axes) == wide.ndim else tuple(f"axis {n}" for n in range(wide.ndim))
    rtol = WIDER * max(expectation.rtol, 1e-9)
    return _Pair(wide, seen, rtol, WIDER * expectation.atol, names, epsilon, _bits_of_one(wide, seen))


def _bits_of_one(*arrays: Array) -> float:
    """How much a value that fits says against chance: little where all are multiples of a coarse step."""
    values = np.concatenate([array.reshape(-1) for array in arrays])
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0
    for halvings in range(FINEST_GRID + 1):
        scaled = values * 2.0**halvings
        if (scaled == np.round(scaled)).all():
            return min(FULL_BITS, math.log2(max(2.0, float(scaled.max() - scaled.min()) + 1)))
    return FULL_BITS


def _different(values: Array) -> int:
    """How many values differ by more than rounding."""
    if not values.size:
        return 0
    ordered = np.sort(values.reshape(-1))
    step = 1e-6 * max(abs(float(ordered[0])), abs(float(ordered[-1])))
    return 1 + int((np.diff(ordered) > step).sum())


def _borne_out(clue: Clue, wrong: Wrong) -> Clue:
    """The clue, with the gradients of the same case that show the same factor as further evidence."""
    if clue.kind not in FACTOR_KINDS:
        return clue
    for expectation, observed in wrong.more:
        for other in factor_clues(Wrong(expectation, observed)):
            same = abs(other.number - clue.number) <= (other.precision + clue.precision) * abs(clue.number)
            if other.kind == clue.kind and same:
                clue = replace(clue, values=clue.values + other.values, bits=clue.bits + other.bits)
    return clue


def _factors(pair: _Pair) -> Iterator[Clue]:
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
    values = _different(np.abs(pair.expected[telling]))
    found = Clue("factor", "", factor, 4 * precision, values, values * pair.each, pair.each)
    if abs(factor + 1) <= 2 * precision:
        yield replace(found, kind="sign")
    yield found


def _offsets(pair: _Pair) -> Iterator[Clue]:
    """All values are the expected ones plus one number."""
    distance = pair.observed - pair.expected
    place = np.unravel_index(int(pair.allowed.argmin()), pair.allowed.shape)
    amount = float(distance[place])
    noise = pair.epsilon * float(np.abs(pair.observed).max())
    values = _different(pair.expected)
    if noise > _spread(pair.expected) / 100 or abs(amount) <= CLEARLY * (float(pair.allowed.max()) + noise):
        return
    if (np.abs(distance - amount) <= pair.allowed + pair.allowed[place] + noise).all():
        precision = 2 * float(pair.allowed.max()) + noise
        yield Clue("offset", "", amount, precision, values, values * pair.each, pair.each)


def _spread(expected: Array) -> float:
    return float(np.ptp(expected)) if expected.size > 1 else float(np.abs(expected).max())


def _offsets_along(pair: _Pair) -> Iterator[Clue]:
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


def _factors_along(pair: _Pair) -> Iterator[Clue]:
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
    return sum(max(0, _different(line[told]) - 1) for line, told in zip(lines, chosen, strict=True))


def _functions(pair: _Pair) -> Iterator[Clue]:
    """All values are one elementary function of the expected ones."""
    for name, function in FUNCTIONS.items():
        predicted = function(pair.expected)
        slack = pair.rtol * np.abs(predicted) * (1 + np.abs(pair.expected))
        if np.isfinite(predicted).all() and (np.abs(pair.observed - predicted) <= slack).all():
            values = _different(predicted[~pair.near(pair.expected)])
            yield Clue("function", name, 0.0, 0.0, values, values * pair.each, pair.each)


def _orders(pair: _Pair) -> Iterator[Clue]:
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


def _shifts(pair: _Pair) -> Iterator[Clue]:
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


def _moved(pair: _Pair, predicted: Array, kind: str, detail: str, inside: Array | None = None) -> Iterator[Clue]:
    """A clue where the observed values are the predicted ones; those that stand where they should say nothing."""
    near = pair.near(predicted)
    if not (near if inside is None else near[inside]).all():
        return
    changed = np.abs(predicted - pair.expected) > CLEARLY * (pair.allowed + pair.rtol * np.abs(predicted))
    if inside is not None:
        changed &= inside
    values = _different(predicted[changed])
    guesses = math.lgamma(values + 1) / math.log(2) if kind == "disordered" else 0.0
    yield Clue(kind, detail, 0.0, 0.0, values, values * pair.each - guesses, pair.each)


def _signs(pair: _Pair) -> Iterator[Clue]:
    """The magnitudes are right, some of the signs are not."""
    wrong = ~pair.near(pair.expected)
    if not (np.abs(np.abs(pair.observed) - np.abs(pair.expected)) <= pair.allowed).all() or wrong.sum() < 2:
        return
    values = _different(np.abs(pair.expected[pair.telling]))
    found = Clue("some-signs", "", 0.0, 0.0, values, values * pair.each, pair.each)
    if np.array_equal(wrong, pair.telling & (pair.expected < 0)):
        yield replace(found, kind="absolute")
    yield found


def _flat(pair: _Pair) -> Iterator[Clue]:
    """Zero everywhere, or the same all along an axis where the expected values are not."""
    if not pair.observed.any():
        values = int(pair.telling.sum())
        yield Clue("zero", "", 0.0, 0.0, values, values * FULL_BITS)
        return
    if np.ptp(pair.observed) <= 1e-6 * np.abs(pair.observed).max():
        values = _different(pair.expected) - 1
        yield Clue("same", "", 0.0, 0.0, values, values * pair.each, pair.each)
    for axis, name in pair.long_axes():
        same = np.ptp(pair.observed, axis=axis) <= 1e-6 * np.abs(pair.observed).max(axis=axis)
        varied = np.ptp(pair.expected, axis=axis) > CLEARLY * pair.allowed.max(axis=axis)
        if same.all() and varied.any():
            values = int(varied.sum()) * (pair.expected.shape[axis] - 1)
            yield Clue("flat", name, 0.0, 0.0, values, values * pair.each, pair.each)


def _places(pair: _Pair) -> Iterator[Clue]:
    """Only values of one kind are wrong."""
    yield from _only(pair, ~pair.near(pair.expected), "only", "only-zeroed")


def _not_finite(pair: _Pair) -> Iterator[Clue]:
    """Values that are nan or infinite, and of which kind they should be."""
    holes = ~np.isfinite(pair.observed)
    if holes.all():
        values = holes.size
        yield Clue("never-finite", "", 0.0, 0.0, values, values * FULL_BITS)
    for axis, name in pair.long_axes():
        even = np.ptp(pair.expected, axis=axis, keepdims=True) <= pair.allowed.max(axis=axis, keepdims=True)
        yield from _within(holes, np.broadcast_to(even, holes.shape), "holes-where-even", name)
    yield from _only(pair, holes, "holes", "holes")


def _only(pair: _Pair, wrong: Array, kind: str, zeroed: str) -> Iterator[Clue]:
    zero = np.abs(pair.expected) <= pair.allowed
    regions = {"0": zero}
    if (pair.expected[pair.telling] > 0).any() and (pair.expected[pair.telling] < 0).any():
        regions |= {"negative": ~zero & (pair.expected < 0), "positive": ~zero & (pair.expected > 0)}
    if pair.axes and pair.expected.shape[-1] <= MAX_LINE:
        regions["tied"] = ~zero & _tied(pair.expected)
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


def _rounded(pair: _Pair) -> Iterator[Clue]:
    """Nearly right values that went through a shorter float type on their way."""
    if (np.abs(pair.observed - pair.expected) > NEARLY_ONE * np.abs(pair.expected).max()).any():
        return
    for dtype, name in ((np.float16, "half"), (np.float32, "single")):
        if np.array_equal(pair.observed.astype(dtype), pair.observed):
            values = _different(pair.expected[pair.expected.astype(dtype) != pair.expected])
            yield Clue("rounded", name, 0.0, 0.0, values, values * FULL_BITS)


def _shape_clues(expectation: Expectation, expected: Array, observed: Array) -> Iterator[Clue]:
    """The right values in another shape, or one that was summed or averaged."""
    wanted = expected.astype(np.float64)
    if expected.ndim > MAX_AXES or not np.isfinite(wanted).all():
        return
    axes = expectation.axes if len(expectation.axes) == expected.ndim else ()
    for order in itertools.permutations(range(len(axes))):
        names = " ".join(axes[axis] for axis in order)
        if list(order) != sorted(order):
            yield from _same(expectation, wanted.transpose(order), observed, "axes-swapped", names)
    if observed.size == expected.size:
        yield from _same(expectation, wanted.reshape(observed.shape), observed, "shape-alone", "")
    for axis, name in enumerate(axes):
        for keepdims in (False, True):
            yield from _same(expectation, wanted.sum(axis, keepdims=keepdims), observed, "summed", name)
            yield from _same(expectation, wanted.mean(axis, keepdims=keepdims), observed, "averaged", name)


def _same(expectation: Expectation, predicted: Array, observed: Array, kind: str, detail: str) -> Iterator[Clue]:
    """A clue where the observed array is the predicted one, shape and values."""
    if predicted.shape != observed.shape:
        return
    pair = _pair(expectation, predicted, observed)
    if pair.near(predicted).all():
        values = _different(predicted)
        yield Clue(kind, detail, 0.0, 0.0, values, values * pair.each, pair.each)


Detector = Callable[[_Pair], Iterator[Clue]]
DETECTORS: tuple[Detector, ...] = (
    _factors, _offsets, _functions, _orders, _shifts, _signs, _flat, _offsets_along, _factors_along, _places,
)  # fmt: skip
FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "the exponentials": np.exp,
    "the logarithms": np.log,
    "the squares": np.square,
    "the square roots": np.sqrt,
    "the reciprocals": np.reciprocal,
}
