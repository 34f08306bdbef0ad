"""Tell what can be seen in wrong arrays that no known mistake explains: a factor, a sign, an order, a place.

Each detector asks whether one simple change of the expected values gives the observed ones, and how much evidence there
is. A clue becomes a sentence where every failing case shows it in which anything can be seen, and chance could hardly
have made it. It is told of a public case, with that case's numbers; hidden ones can only bear it out, and where they
alone fail nothing is told. At the end: what the weights of a run tell, update by update.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from autograder.grading.compare import compare, expected_array, right_places
from autograder.grading.fixtures import Case, Expectation
from autograder.sandbox.calls import Array, Observation

TESTABLE = ("value", "gradient")
ORDINALS = ("first", "second", "third", "fourth")
MAX_AXES = 4
MAX_SIZE = 20_000

WIDER = 4.0  # times the tolerance of the case, for a change that is computed from rounded values
TELLING = 50.0  # a value this many times its tolerance tells a factor
CLEARLY = 10.0  # times the widened tolerance, for a difference that is none of rounding
NEARLY_ONE = 0.01
FULL_BITS = 20.0  # what one value of full precision that fits says against chance
FINEST_GRID = 10  # halvings: values that are multiples of a coarser step say less

ENOUGH_BITS = 16.0
ENOUGH_PLACES = 8.0  # bits of evidence for where a difference lies
ENOUGH_VALUES = 3
FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "the exponentials": np.exp,
    "the logarithms": np.log,
    "the squares": np.square,
    "the square roots": np.sqrt,
    "the reciprocals": np.reciprocal,
}
BARE = "times what it should be."
SAME = "All your values are the same, but they should not be."
WORDS = {  # kind of clue → its sentence, the first that all cases show is told
    "axes-swapped": "The values are right, but the axes stand in the order [{detail}].",
    "shape-alone": "The values are right and in the right order. Only the shape is wrong.",
    "summed": "Your values are the expected ones, summed over {detail}.",
    "averaged": "Your values are the expected ones, averaged over {detail}.",
    "never-finite": "None of your values is finite.",
    "holes-where-even": "Yours is not a finite number only where the values along {detail} should all be the same.",
    "holes": "Yours is not a finite number only where it should be {detail}.",
    "zero": "All your values are zero.",
    "sign": "{each} has the right size and the wrong sign.",
    "factor": "",  # see _factor_sentence
    "offset": "",  # see _offset_sentence
    "function": "Your values are {detail} of the expected ones.",
    "same": SAME,
    "transposed": "Your values are the expected ones with {detail} interchanged.",
    "reshaped": "Your values are the expected ones in another order: reshaping does not interchange {detail}.",
    "offset-along": "Along {detail}, all your values are off by the same amount. What is added or subtracted there?",
    "factor-along": "Along {detail}, all your values are off by the same factor. What are they divided by?",
    "flat": "Your values do not change along {detail}, but they should.",
    "only-zeroed": "Only values that should be {detail} are wrong: yours are zero there.",
    "only": "Only values that should be {detail} are wrong.",
    "rounded": "{each} has lost digits: something was computed in {detail} precision.",
}
KINDS = tuple(WORDS)
PLACES = ("holes-where-even", "holes", "only-zeroed", "only")


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

    @property
    def each(self) -> str:
        """What a sentence calls one of its values."""
        if not self.observed.ndim:
            return "Your gradient" if self.expectation.kind == "gradient" else "Your value"
        return "Each entry of your gradient" if self.expectation.kind == "gradient" else "Each of your values"


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


def explain(seen: Sequence[tuple[Case, Observation]], relatives: Sequence[Case] = ()) -> str:
    """Tell what all failing cases show, about the first; "" where that is hidden or there is nothing to tell.

    seen        the cases of the item that returned something, in order
    relatives   other cases of the function, which may know how the axes of an input are called
    """
    mismatches = [compare(case.expected, observation) for case, observation in seen]
    failing = [(case, mismatch) for (case, _), mismatch in zip(seen, mismatches, strict=True) if mismatch]
    if not failing:
        return ""
    case, first = failing[0]
    if case.visibility == "hidden" or first.expectation.kind not in TESTABLE or first.returned.array is None:
        return ""
    named = _input_axes([*(one for one, _ in seen), *relatives])
    arrays = [wrong_array(one, observation, first.expectation.name, named) for one, observation in seen]
    wrongs = [wrong for wrong, mismatch in zip(arrays, mismatches, strict=True) if wrong and mismatch]
    # where two axes have one size, another order may look like a transposition
    distinct = [wrong for wrong in wrongs if len(set(wrong.observed.shape)) == wrong.observed.ndim]
    return describe(distinct or wrongs)


def explains(reason: str) -> bool:
    """Tell whether a sentence leaves nothing to ask: a factor without a name, or one value for all, says no cause."""
    return bool(reason) and not reason.endswith((BARE, SAME))


def wrong_array(case: Case, observation: Observation, name: str, named: Mapping[str, tuple[str, ...]]) -> Wrong | None:
    """Return what a case returned under this name; None where it expects or returned no such array."""
    pairs = [
        (expectation, returned.array)
        for expectation in case.expected
        if expectation.kind in TESTABLE
        and (returned := observation.returned.get(expectation.name)) is not None
        and returned.array is not None
    ]
    pair = next((pair for pair in pairs if pair[0].name == name), None)
    if pair is None:
        return None
    gradients = [other for other in pairs if other[0].kind == "gradient" and other[0].name != name]
    return Wrong(*pair, sizes=_sizes(case, pair[0], named), more=tuple(gradients))


def _sizes(case: Case, expectation: Expectation, named: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Name sizes: an array's own axes; of a scalar those of the case's inputs that have names, else its first input."""
    if expectation.axes:
        return dict(list(expectation.named_sizes.items())[:MAX_AXES])
    inputs = {name: array.shape for name, array in case.inputs.items() if array.ndim}
    for name, shape in inputs.items():
        if name in named:
            return dict(zip(named[name], shape, strict=True))
    return {
        f"the {ORDINALS[axis]} axis of {name}": size
        for name, shape in list(inputs.items())[:1]
        for axis, size in enumerate(shape[:MAX_AXES])
    }


def _input_axes(cases: Iterable[Case]) -> dict[str, tuple[str, ...]]:
    """Learn the axes of inputs, where an expected array has the shape of an input and no two sizes are equal."""
    named: dict[str, tuple[str, ...]] = {}
    for case in cases:
        shapes = {e.array.shape: e.axes for e in case.expected if e.kind in TESTABLE and e.array is not None}
        for name, array in case.inputs.items():
            axes = shapes.get(array.shape, ())
            if axes and len(axes) == array.ndim == len(set(array.shape)):
                named.setdefault(name, axes)
    return named


# A clue that all cases show → a sentence


def describe(wrongs: Sequence[Wrong]) -> str:
    """Tell what all of these show, about the first of them.

    Where a coarse tolerance, or numbers of many sizes, let nothing be seen at all, a case has no say.
    """
    tables = [({(clue.kind, clue.detail): clue for clue in clues(wrong)}, wrong) for wrong in wrongs]
    speaking = [(table, wrong) for table, wrong in tables if table or _is_right(wrong)]
    if not tables or not tables[0][0] or 2 * len(speaking) < len(tables):
        return ""
    shared = [key for key in speaking[0][0] if all(key in table for table, _ in speaking)]
    for key in sorted(shared, key=lambda key: KINDS.index(key[0])):
        sentence = sentence_of([table[key] for table, _ in speaking], [wrong for _, wrong in speaking])
        if sentence:
            return sentence
    return ""


def _is_right(wrong: Wrong) -> bool:
    """Tell whether this is no wrong array after all: its case fails for another cause."""
    same_shape = wrong.observed.shape == expected_array(wrong.expectation).shape
    return same_shape and bool(right_places(wrong.expectation, wrong.observed).all())


def sentence_of(shown: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    """Write the sentence for a clue that all cases show; "" where chance could have made it."""
    kind, detail = shown[0].kind, shown[0].detail
    if kind == "factor":
        return _factor_sentence(shown, wrongs)
    if kind == "offset":
        return _offset_sentence(shown, wrongs)
    if not (sum(clue.bits for clue in shown) >= ENOUGH_PLACES if kind in PLACES else _enough(shown)):
        return ""
    is_number, is_gradient = not wrongs[0].observed.ndim, wrongs[0].expectation.kind == "gradient"
    if (kind == "zero" and (is_number or is_gradient)) or (kind == "never-finite" and is_number):
        return ""  # the message has said so
    return WORDS[kind].format(detail=detail, each=wrongs[0].each)


def _enough(shown: Sequence[Clue], free: int = 0) -> bool:
    """Tell whether the evidence excludes chance, after what the choice of so many free numbers has used up."""
    agree = len(shown) > 1 and all(clue.values for clue in shown)  # scalars of several cases
    used = free * max(clue.each for clue in shown)
    many = sum(clue.values for clue in shown) >= ENOUGH_VALUES
    return (many or agree) and sum(clue.bits for clue in shown) - used >= ENOUGH_BITS


def _is_constant(shown: Sequence[Clue], *, relative: bool) -> bool:
    """Tell whether the number is the same in all cases, as far as it is known."""
    first = shown[0]
    scale = abs(first.number) if relative else 1.0
    return all(abs(clue.number - first.number) <= (clue.precision + first.precision) * scale for clue in shown)


def _factor_sentence(shown: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    each, signs = wrongs[0].each, {clue.number < 0 for clue in shown}
    constant = _is_constant(shown, relative=True)
    names = _names_of(shown, wrongs, _named_factors) if len(signs) == 1 else []
    if len(names) == 1 and _enough(shown, free=constant):
        [name] = names
        if constant:
            return f"{each} is {shown[0].number:.4g} times what it should be. Is it {name}?"
        question = ""
        if " times " in name and " over " not in name and " root " not in name:
            question = " Is there a sum where a mean should be?"
        elif " divided by " in name and " over " not in name and " root " not in name:
            question = " Is something divided by once too often?"
        return f"{each} is {name}{' and has the wrong sign' if signs == {True} else ''}.{question}"
    if constant and _enough(shown, free=1):
        return f"{each} is {shown[0].number:.4g} {BARE}"
    if all(clue.values >= ENOUGH_VALUES for clue in shown) and _enough(shown, free=len(shown)):
        subject = "All your values" if wrongs[0].observed.ndim else "Your value and its gradient"
        return f"{subject} are off by the same factor. What are they divided by?"
    return ""


def _offset_sentence(shown: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    each, signs = wrongs[0].each, {clue.number > 0 for clue in shown}
    if not wrongs[0].observed.ndim and len(shown) < ENOUGH_VALUES:  # two scalars may be off alike for any reason
        return ""
    if len(signs) == 1 and _enough(shown, free=1):
        direction = "large" if signs == {True} else "small"
        names = _names_of(shown, wrongs, _products)
        constant = _is_constant(shown, relative=False)
        if not constant and len(names) == 1:
            return f"{each} is too {direction} by {names[0]}."
        if constant:
            return f"{each} is {abs(shown[0].number):.4g} too {direction}."
    if all(clue.values >= ENOUGH_VALUES for clue in shown) and _enough(shown, free=len(shown)):
        return "All your values are off by the same amount. What is added or subtracted there?"
    return ""


# Factors and amounts that have a name

Names = Callable[[Mapping[str, int]], Mapping[str, float]]
LESS = "over one less than that"
SMALL = 3  # of sizes up to this one, such a quotient is 2 or 1.5, which other causes have as well


def _names_of(shown: Sequence[Clue], wrongs: Sequence[Wrong], named: Names) -> list[str]:
    """Return what the number of every case may be called."""
    long = {axis for wrong in wrongs for axis, size in wrong.sizes.items() if size > 1}
    fitting = [
        {
            name
            for name, number in named({axis: size for axis, size in wrong.sizes.items() if axis in long}).items()
            if abs(abs(clue.number) - number) <= clue.precision * max(number, 1.0)
        }
        for clue, wrong in zip(shown, wrongs, strict=True)
    ]
    small = [axis for axis in long if max(wrong.sizes.get(axis, 0) for wrong in wrongs) <= SMALL]
    by_chance = tuple(f"{_size_of([axis])} {LESS}" for axis in small)
    return sorted(name for name in set.intersection(*fitting) if not name.endswith(by_chance))


def _products(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return `the size of trial`, `the sizes of batch and trial`, … → the product."""
    groups = [names for count in range(1, len(sizes) + 1) for names in itertools.combinations(sizes, count)]
    return {_size_of(names): float(math.prod(sizes[name] for name in names)) for names in groups}


def _named_factors(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the factors that have a name, made of these sizes."""
    named = {
        "a logarithm to base two where the natural one should be": 1 / math.log(2),
        "a logarithm to base ten where the natural one should be": 1 / math.log(10),
    }
    parts = _products(sizes)
    for axis, size in sizes.items():
        less = f"{_size_of([axis])} {LESS}"
        quotient = size / max(size - 1, 1)
        parts |= {f"the square root of {_size_of([axis])}": math.sqrt(size), less: quotient}
        parts[f"the square root of {less}"] = math.sqrt(quotient)
    for name, number in parts.items():
        named |= {f"the expected one times {name}": number, f"the expected one divided by {name}": 1 / number}
    for above, below in itertools.permutations(sizes, 2):
        named[f"the expected one times {_size_of([above])} over {_size_of([below])}"] = sizes[above] / sizes[below]
    return named


def _size_of(names: Sequence[str]) -> str:
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"the size of {listed}" if len(names) == 1 else f"the sizes of {listed}"


# One wrong array → clues


@dataclass(frozen=True)
class Pair:
    """Expected and observed as float64 of one shape; `each` is what one value says against chance."""

    expected: Array
    observed: Array
    rtol: float
    atol: float
    axes: tuple[str, ...]
    epsilon: float
    each: float

    @classmethod
    def of(cls, expectation: Expectation, expected: Array, observed: Array) -> Pair:
        """Make a pair of these two, with the tolerance of the expectation widened."""
        wide, seen = expected.astype(np.float64), observed.astype(np.float64)
        epsilon = float(np.finfo(observed.dtype if observed.dtype.kind == "f" else np.float64).eps)
        axes = expectation.said_axes
        names = axes if len(axes) == wide.ndim else tuple(f"axis {n}" for n in range(wide.ndim))
        rtol = WIDER * max(expectation.rtol, 1e-9)
        each = min(_bits_of_a_value(wide, seen), max(0.0, -math.log2(2 * rtol)))  # a wide tolerance says less
        return cls(wide, seen, rtol, WIDER * expectation.atol, names, epsilon, each)

    @property
    def allowed(self) -> Array:
        """How far each value may be off."""
        return self.atol + self.rtol * np.abs(self.expected)

    @property
    def telling(self) -> Array:
        """Where a value is large enough to tell a factor."""
        return np.abs(self.expected) > TELLING * self.allowed

    @property
    def noise(self) -> float:
        """How far rounding alone may move the greatest value."""
        return self.epsilon * float(np.abs(self.observed).max())

    @property
    def drowns(self) -> bool:
        """Whether the expected values differ by little more than rounding."""
        values = self.expected
        spread = float(np.ptp(values)) if values.size > 1 else float(np.abs(values).max())
        return self.noise > spread / 100

    def near(self, predicted: Array) -> Array:
        """Mark where the observed values are the predicted ones, within the widened tolerance."""
        near: Array = np.abs(self.observed - predicted) <= self.atol + self.rtol * np.abs(predicted)
        return near

    def long_axes(self) -> list[tuple[int, str]]:
        """Return the axes along which there is more than one value."""
        return [(axis, name) for axis, name in enumerate(self.axes) if self.expected.shape[axis] > 1]

    def clue(self, kind: str, values: int, detail: str = "", number: float = 0.0, precision: float = 0.0) -> Clue:
        """Make a clue that so many different values bear out."""
        return Clue(kind, detail, number, precision, values, values * self.each, self.each)


def _bits_of_a_value(*arrays: Array) -> float:
    """Return what a value that fits says against chance: little where all are multiples of a coarse step."""
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
    """Count the values that differ by more than rounding."""
    if not values.size:
        return 0
    ordered = np.sort(values.reshape(-1))
    step = 1e-6 * max(abs(float(ordered[0])), abs(float(ordered[-1])))
    return 1 + int((np.diff(ordered) > step).sum())


def clues(wrong: Wrong) -> list[Clue]:
    """Return all that one wrong array shows; nothing where it is right or cannot be compared."""
    expected, observed = wrong.expectation.array, wrong.observed
    if expected is None or any(a.dtype.kind not in "fiub" or not 0 < a.size <= MAX_SIZE for a in (expected, observed)):
        return []
    with np.errstate(all="ignore"):
        if observed.shape != expected.shape:
            return list(_shape_clues(wrong.expectation, expected, observed))
        pair = Pair.of(wrong.expectation, expected, observed)
        allowed = wrong.expectation.atol + wrong.expectation.rtol * np.abs(pair.expected)
        if not np.isfinite(pair.expected).all() or (np.abs(pair.observed - pair.expected) <= allowed).all():
            return []
        if not np.isfinite(pair.observed).all():
            return list(_not_finite(pair))
        shown = [clue for detector in DETECTORS for clue in detector(pair)]
        if expected.dtype.kind == "f":  # which index or count is wrong follows from no value
            shown += _only(pair, ~pair.near(pair.expected), "only", "only-zeroed")
        if wrong.expectation.dtype == observed.dtype.name == "float64":
            shown += _lost_digits(pair)
        return [_borne_out(clue, wrong) for clue in shown]


def _borne_out(clue: Clue, wrong: Wrong) -> Clue:
    """Count the gradients of the same case that show the same factor or sign as further evidence."""
    if clue.kind not in ("sign", "factor"):
        return clue
    for expectation, observed in wrong.more:
        for other in clues(Wrong(expectation, observed)):
            same = abs(other.number - clue.number) <= (other.precision + clue.precision) * abs(clue.number)
            if other.kind == clue.kind and same:
                clue = replace(clue, values=clue.values + other.values, bits=clue.bits + other.bits)
    return clue


def _shape_clues(expectation: Expectation, expected: Array, observed: Array) -> Iterator[Clue]:
    """The right values in another shape, or summed or averaged."""
    wide = expected.astype(np.float64)
    if expected.ndim > MAX_AXES or not np.isfinite(wide).all():
        return
    axes = expectation.axes if len(expectation.axes) == expected.ndim else ()
    candidates = []
    for order in itertools.permutations(range(len(axes))):
        if list(order) != sorted(order):
            candidates.append(("axes-swapped", " ".join(axes[axis] for axis in order), wide.transpose(order)))
    if observed.size == expected.size:
        candidates.append(("shape-alone", "", wide.reshape(observed.shape)))
    for axis, name in enumerate(axes):
        for keepdims in (False, True):
            candidates.append(("summed", name, wide.sum(axis, keepdims=keepdims)))
            candidates.append(("averaged", name, wide.mean(axis, keepdims=keepdims)))
    for kind, detail, predicted in candidates:
        if predicted.shape == observed.shape:
            pair = Pair.of(expectation, predicted, observed)
            if pair.near(predicted).all():
                yield pair.clue(kind, _different(predicted), detail)


def _factors(pair: Pair) -> Iterator[Clue]:
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
    clue = pair.clue("factor", values, number=factor, precision=4 * precision)
    if abs(factor + 1) <= 2 * precision:
        yield replace(clue, kind="sign")
    yield clue


def _offsets(pair: Pair) -> Iterator[Clue]:
    """All values are the expected ones plus one number."""
    distance, noise = pair.observed - pair.expected, pair.noise
    place = np.unravel_index(int(pair.allowed.argmin()), pair.allowed.shape)
    amount = float(distance[place])
    if pair.drowns or abs(amount) <= CLEARLY * (float(pair.allowed.max()) + noise):
        return
    if (np.abs(distance - amount) <= pair.allowed + pair.allowed[place] + noise).all():
        precision = 2 * float(pair.allowed.max()) + noise
        yield pair.clue("offset", _different(pair.expected), number=amount, precision=precision)


def _offsets_along(pair: Pair) -> Iterator[Clue]:
    """Along an axis all values are off by the same amount, another one elsewhere."""
    distance, noise = pair.observed - pair.expected, pair.noise
    if pair.drowns:
        return
    for axis, name in pair.long_axes():
        slack = 2 * pair.allowed.max(axis=axis) + noise
        off = np.abs(distance).min(axis=axis) > CLEARLY * slack
        right = pair.near(pair.expected).all(axis=axis)
        if (np.ptp(distance, axis=axis) <= slack).all() and (off | right).all() and off.any():
            values = _different_along(pair.expected, np.ones_like(pair.telling), axis)
            yield pair.clue("offset-along", values, name)


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
            yield pair.clue("factor-along", _different_along(np.abs(pair.expected), pair.telling, axis), name)


def _different_along(values: Array, telling: Array, axis: int) -> int:
    """Count the values beyond the first that differ in each line along the axis, over all lines."""
    lines = np.moveaxis(values, axis, -1).reshape(-1, values.shape[axis])
    chosen = np.moveaxis(telling, axis, -1).reshape(lines.shape)
    return sum(max(0, _different(line[told]) - 1) for line, told in zip(lines, chosen, strict=True))


def _functions(pair: Pair) -> Iterator[Clue]:
    """All values are one elementary function of the expected ones."""
    for name, function in FUNCTIONS.items():
        predicted = function(pair.expected)
        around = [np.abs(function(pair.expected + step) - predicted) for step in (pair.allowed, -pair.allowed)]
        slack = np.maximum(*around) + pair.rtol * np.abs(predicted)
        is_known = np.isfinite(predicted).all() and (slack <= NEARLY_ONE * np.abs(predicted).max()).all()
        if is_known and (np.abs(pair.observed - predicted) <= slack).all():
            yield pair.clue("function", _different(predicted[~pair.near(pair.expected)]), name)


def _orders(pair: Pair) -> Iterator[Clue]:
    """The expected values in the order of other axes: transposed, or reshaped where they should be transposed."""
    expected = pair.expected
    if expected.ndim > MAX_AXES:
        return
    for order in itertools.permutations(range(expected.ndim)):
        moved = expected.transpose(order)
        kind = "transposed" if moved.shape == expected.shape else "reshaped"
        swapped = " and ".join(pair.axes[axis] for place, axis in enumerate(order) if place != axis)
        back = expected.reshape(moved.shape).transpose(np.argsort(order))
        for predicted in (moved.reshape(expected.shape), back):
            if pair.near(predicted).all():  # values that stand where they should say nothing
                changed = np.abs(predicted - expected) > CLEARLY * (pair.allowed + pair.rtol * np.abs(predicted))
                yield pair.clue(kind, _different(predicted[changed]), swapped)


def _flat(pair: Pair) -> Iterator[Clue]:
    """Zero everywhere, or the same all along an axis where the expected values are not."""
    if not pair.observed.any():
        values = int(pair.telling.sum())
        yield Clue("zero", "", 0.0, 0.0, values, values * FULL_BITS)
        return
    if np.ptp(pair.observed) <= 1e-6 * np.abs(pair.observed).max():
        yield pair.clue("same", _different(pair.expected) - 1)
    for axis, name in pair.long_axes():
        same = np.ptp(pair.observed, axis=axis) <= 1e-6 * np.abs(pair.observed).max(axis=axis)
        varied = np.ptp(pair.expected, axis=axis) > CLEARLY * pair.allowed.max(axis=axis)
        if same.all() and varied.any():
            yield pair.clue("flat", int(varied.sum()) * (pair.expected.shape[axis] - 1), name)


def _not_finite(pair: Pair) -> Iterator[Clue]:
    """Values that are nan or infinite, and of which kind they should be."""
    holes = ~np.isfinite(pair.observed)
    if holes.all():
        yield Clue("never-finite", "", 0.0, 0.0, holes.size, holes.size * FULL_BITS)
    for axis, name in pair.long_axes():
        even = np.ptp(pair.expected, axis=axis, keepdims=True) <= pair.allowed.max(axis=axis, keepdims=True)
        yield from _within(holes, np.broadcast_to(even, holes.shape), "holes-where-even", name)
    yield from _only(pair, holes, "holes", "holes")


def _only(pair: Pair, wrong: Array, kind: str, zeroed: str) -> Iterator[Clue]:
    """Only values of one sign are wrong."""
    zero = np.abs(pair.expected) <= pair.allowed
    regions = {"zero": zero}
    if (pair.expected[pair.telling] > 0).any() and (pair.expected[pair.telling] < 0).any():
        regions |= {"negative": ~zero & (pair.expected < 0), "positive": ~zero & (pair.expected > 0)}
    for name, region in regions.items():
        yield from _within(wrong, region, kind, name)
        if not pair.observed[wrong].any() and name != "zero":
            yield from _within(wrong, region, zeroed, name)


def _within(wrong: Array, region: Array, kind: str, detail: str) -> Iterator[Clue]:
    """All that is wrong lies in the region: how surprising is that of so many places?"""
    number, inside = int(wrong.sum()), int(region.sum())
    if 0 < number < wrong.size and not (wrong & ~region).any():
        bits = math.log2(math.comb(wrong.size, number)) - math.log2(math.comb(inside, number))
        yield Clue(kind, detail, values=number, bits=bits)


def _lost_digits(pair: Pair) -> Iterator[Clue]:
    """Nearly right values that went through a shorter float type on their way."""
    if (np.abs(pair.observed - pair.expected) > NEARLY_ONE * np.abs(pair.expected).max()).any():
        return
    for dtype, name in ((np.float16, "half"), (np.float32, "single")):
        if np.array_equal(pair.observed.astype(dtype), pair.observed):
            values = _different(pair.expected[pair.expected.astype(dtype) != pair.expected])
            yield Clue("rounded", name, 0.0, 0.0, values, values * FULL_BITS)


Detector = Callable[[Pair], Iterator[Clue]]
DETECTORS: tuple[Detector, ...] = (_factors, _offsets, _functions, _orders, _flat, _offsets_along, _factors_along)


# The weights of a run, update by update

UPDATE = "update"  # the first axis of whatever a case has for each update
WEIGHTS = ("weights", "weight")  # names of weights after each update; an input called `weight` is where they began
FOLLOWED = "weights before and after"  # sums of weights, the first of them before the first update
LOSSES = "losses of updates"  # what each update learned from
GRADIENTS = "gradients"  # an input: what the optimizer gets, whatever a submission does
ALIKE = (2 / 3, 3 / 2)  # times the size of one update: still about one
SMALLEST = 1e-3
PARALLEL, ASKEW = 0.01, 0.5  # shares of a difference that is no multiple of the update that was due: hardly any; much
ENOUGH_WEIGHTS = 8  # for one factor to fit all of them
RIGHT_LOSS = "Its loss is right: look at what becomes of its gradient, and at the optimizer."


def about_updates(case: Case, observation: Observation) -> str:
    """Tell which update is the first wrong one, and by how much; "" where there are no such weights or all are right.

    What is told follows from stored weights alone, so it is true whatever the cause. Where to look is told where the
    case shows that nothing before the update was wrong.
    """
    followed = next(_followed(case, observation), None)
    if followed is None:
        return ""
    expectation, wanted, yours = followed
    both = min(len(wanted), len(yours))
    right = right_places(replace(expectation, array=wanted[:both]), yours[:both]).reshape(both, -1).all(axis=1)
    if len(yours) != len(wanted):
        due, made = len(wanted) - 1, len(yours) - 1
        if not right.all():
            return ""
        if made > due:
            return f"The weights agree for all {due} updates that there should be; yours goes on for {made - due} more."
        return f"The weights agree for the {made} updates that yours has; there should be {due}."
    if right.all():
        trained = "The weights that you train are right after every update: is it this model that you return?"
        return trained if expectation.diagnosis else ""
    first = int(np.argmin(right))
    if not first:
        return "The weights differ before the first update."
    update, difference = wanted[first] - wanted[first - 1], yours[first] - wanted[first]
    length = float(np.linalg.norm(update))
    if not length:
        return ""
    when = "The weights differ from the first update on"
    if first > 1:
        before = "the first update" if first == 2 else f"the first {first - 1} updates"
        when = f"The weights agree for {before} and differ from the {_ordinal(first)} on"
    ratio = float(np.linalg.norm(difference)) / length
    times = f"by about {ratio:.0f} times" if ratio >= ALIKE[1] else f"by about {ratio:.1g} times"
    if ratio < SMALLEST:
        size = "at first by less than a thousandth of one update"
    else:
        size = f"{'by about' if ALIKE[0] <= ratio <= ALIKE[1] else times} the size of one update"
    return f"{when}, {size}{_where_to_look(case, observation, first, update, difference)}"


def _followed(case: Case, observation: Observation) -> Iterator[tuple[Expectation, Array, Array]]:
    """Yield weights before the first update and after each: the expectation, what should be, what was returned."""
    for expectation in case.expected:
        returned = observation.returned.get(expectation.name)
        if expectation.array is None or expectation.axes[:1] != (UPDATE,) or returned is None or returned.array is None:
            continue
        wanted, yours = expectation.array, returned.array
        if yours.shape[1:] != wanted.shape[1:] or yours.ndim != wanted.ndim or not np.isfinite(yours).all():
            continue
        start = case.inputs.get("weight")
        if expectation.name == FOLLOWED and min(len(yours), len(wanted)) > 1:
            yield expectation, wanted, yours
        elif expectation.name in WEIGHTS and start is not None and yours.shape == (len(wanted), *start.shape):
            yield expectation, np.concatenate([start[None], wanted]), np.concatenate([start[None], yours])


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def _where_to_look(case: Case, observation: Observation, first: int, update: Array, difference: Array) -> str:
    """Tell where to look, as far as the case shows what came before the update."""
    if GRADIENTS in case.inputs:
        return ": look at the optimizer."
    losses = next((expectation for expectation in case.expected if expectation.name == LOSSES), None)
    returned = observation.returned.get(LOSSES)
    if losses is None or losses.array is None or returned is None or returned.array is None:
        return "."
    if returned.array.shape != losses.array.shape:
        return "."
    right = right_places(losses, returned.array)[:first]
    if not right.all():
        wrong = _ordinal(int(np.argmin(right)) + 1)
        return f". The loss of the {wrong} is wrong already: look at what it is made of."
    due, off = update.ravel(), difference.ravel()
    if due.size < ENOUGH_WEIGHTS:
        return f". {RIGHT_LOSS}"
    more = float(due @ off / (due @ due))
    askew = float(np.linalg.norm(off - more * due) / np.linalg.norm(off))
    if askew > ASKEW:
        return f". The difference is no multiple of the right update, so not of the learning rate alone. {RIGHT_LOSS}"
    if askew >= PARALLEL:
        return f". {RIGHT_LOSS}"
    if abs(1 + more) < SMALLEST:
        return f". Yours is missing. {RIGHT_LOSS}"
    if abs(2 + more) < SMALLEST:
        return f". Yours goes the opposite way. {RIGHT_LOSS}"
    factor = f"Yours is {1 + more:.3g} times the right one, in all weights alike"
    return f". {factor}. Its loss is right: look at the optimizer, its learning rate, and how often it steps."
