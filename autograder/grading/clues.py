"""Tell what can be seen in wrong arrays that no known mistake explains: a factor, a sign, an order, a place.

A clue is one simple change of the expected values that gives the observed ones. It becomes a sentence where every
failing case of the item shows it, and enough values bear it out that chance could hardly have made it. Its numbers are
those of the first public case; hidden ones can only bear it out, and where they alone fail nothing is told. At the end:
what the weights of a run tell, update by update.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from autograder.grading.compare import compare, right_places, widened
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
ENOUGH = 4.0  # evidence: see Clue
FULL = 2.0  # evidence of a value whose digits are no multiple of a coarse step
FINEST_STEP = 2.0**-10

BARE = "times what it should be."
SAME = "All your values are the same, but they should not be."
OFFSET = "All your values are off by the same amount. What is added or subtracted there?"
HOLES = "Yours is not a finite number only"
WORDS = {  # kind of clue → its sentence; the first that all cases show is told
    "holes": f"{HOLES} where it should be {{detail}}.",
    "zero": "All your values are zero.",
    "sign": "{each} has the right size and the wrong sign.",
    "factor": "",  # see _factor_sentence
    "offset": "",  # the amount, or OFFSET
    "same": SAME,
    "transposed": "Your values are the expected ones with {detail} interchanged.",
    "reshaped": "Your values are the expected ones in another order: reshaping does not interchange {detail}.",
    "only-zeroed": "Only values that should be {detail} are wrong: yours are zero there.",
    "only": "Only values that should be {detail} are wrong.",
}
KINDS = tuple(WORDS)


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

    detail     the axis or the place
    number     the factor or the amount, known up to `precision`
    evidence   how many different values bear it out, those of full precision counted twice; of a place, half the bits
               of what chance would have to do
    """

    kind: str
    detail: str = ""
    number: float = 0.0
    precision: float = 0.0
    evidence: float = 0.0


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
    named = _input_axes([*(case for case, _ in seen), *relatives])
    arrays = [_wrong_array(case, observation, first.expectation.name, named) for case, observation in seen]
    wrongs = [wrong for wrong, mismatch in zip(arrays, mismatches, strict=True) if wrong and mismatch]
    # where two axes have one size, another order may look like a transposition
    distinct = [wrong for wrong in wrongs if len(set(wrong.observed.shape)) == wrong.observed.ndim]
    return describe(distinct or wrongs)


def explains(reason: str) -> bool:
    """Tell whether a sentence leaves nothing to ask: a bare factor, one value for all, or a place says no cause."""
    return bool(reason) and not reason.endswith((BARE, SAME)) and not reason.startswith(HOLES)


def _wrong_array(case: Case, observation: Observation, name: str, named: Mapping[str, tuple[str, ...]]) -> Wrong | None:
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
    tables = [({(clue.kind, clue.detail): clue for clue in _clues(wrong)}, wrong) for wrong in wrongs]
    speaking = [(table, wrong) for table, wrong in tables if table or _is_right(wrong)]
    if not tables or not tables[0][0] or 2 * len(speaking) < len(tables):
        return ""
    first, all_wrong = wrongs[0], [wrong for _, wrong in speaking]
    said_already = not first.observed.ndim or first.expectation.kind == "gradient"
    for kind, detail in sorted(speaking[0][0], key=lambda key: KINDS.index(key[0])):
        if not all((kind, detail) in table for table, _ in speaking):
            continue
        shown = [table[kind, detail] for table, _ in speaking]
        if kind == "factor":
            sentence = _factor_sentence(shown, all_wrong)
        elif kind == "offset" and not _is_constant(shown, relative=False):
            sentence = OFFSET if all(_is_enough([clue], free=1) for clue in shown) else ""
        elif kind == "offset":
            amount = f"{abs(shown[0].number):.4g} too {'large' if shown[0].number > 0 else 'small'}"
            sentence = f"{first.each} is {amount}." if _is_enough(shown, free=1) else ""
        elif not _is_enough(shown) or (kind == "zero" and said_already):
            sentence = ""
        else:
            sentence = WORDS[kind].format(detail=detail, each=first.each)
        if sentence:
            return sentence
    return ""


def _is_right(wrong: Wrong) -> bool:
    """Tell whether this is no wrong array after all: its case fails for another cause."""
    expected = wrong.expectation.array
    same_shape = expected is not None and wrong.observed.shape == expected.shape
    return same_shape and bool(right_places(wrong.expectation, wrong.observed).all())


def _is_enough(shown: Sequence[Clue], free: int = 0) -> bool:
    """Tell whether the evidence excludes chance, less a value for each number that was free to be chosen."""
    return sum(clue.evidence for clue in shown) - free * FULL >= ENOUGH


def _is_constant(shown: Sequence[Clue], *, relative: bool) -> bool:
    """Tell whether the number is the same in all cases, as far as it is known."""
    first = shown[0]
    scale = abs(first.number) if relative else 1.0
    return all(abs(clue.number - first.number) <= (clue.precision + first.precision) * scale for clue in shown)


def _factor_sentence(shown: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    each, signs = wrongs[0].each, {clue.number < 0 for clue in shown}
    constant = _is_constant(shown, relative=True)
    names = _names_of(shown, wrongs) if len(signs) == 1 else []
    if len(names) == 1 and _is_enough(shown, free=constant):
        [name] = names
        if constant:
            return f"{each} is {shown[0].number:.4g} times what it should be. Is it {name}?"
        question = ""
        if " times the size" in name and LESS not in name:
            question = " Is there a sum where a mean should be?"
        elif " divided by the size" in name and LESS not in name:
            question = " Is something divided by once too often?"
        return f"{each} is {name}{' and has the wrong sign' if signs == {True} else ''}.{question}"
    if constant and _is_enough(shown, free=1):
        return f"{each} is {shown[0].number:.4g} {BARE}"
    if all(_is_enough([clue], free=1) for clue in shown):
        subject = "All your values" if wrongs[0].observed.ndim else "Your value and its gradient"
        return f"{subject} are off by the same factor. What are they divided by?"
    return ""


# Factors that have a name

LESS = "over one less than that"
SMALL = 3  # of sizes up to this one, such a quotient is 2 or 1.5, which other causes have as well


def _names_of(shown: Sequence[Clue], wrongs: Sequence[Wrong]) -> list[str]:
    """Return what the factor of every case may be called."""
    long = {axis for wrong in wrongs for axis, size in wrong.sizes.items() if size > 1}
    fitting = [
        {
            name
            for name, number in _factors_of({a: size for a, size in wrong.sizes.items() if a in long}).items()
            if abs(abs(clue.number) - number) <= clue.precision * max(number, 1.0)
        }
        for clue, wrong in zip(shown, wrongs, strict=True)
    ]
    small = [axis for axis in long if max(wrong.sizes.get(axis, 0) for wrong in wrongs) <= SMALL]
    by_chance = tuple(f"{_size_of([axis])} {LESS}" for axis in small)
    return sorted(name for name in set.intersection(*fitting) if not name.endswith(by_chance))


def _factors_of(sizes: Mapping[str, int]) -> dict[str, float]:
    """Return the factors that have a name, made of these sizes."""
    groups = [names for count in range(1, len(sizes) + 1) for names in itertools.combinations(sizes, count)]
    parts = {_size_of(names): float(math.prod(sizes[name] for name in names)) for names in groups}
    for axis, size in sizes.items():
        less, quotient = f"{_size_of([axis])} {LESS}", size / max(size - 1, 1)
        parts |= {less: quotient, f"the square root of {less}": math.sqrt(quotient)}
    named = {"a logarithm to base two where the natural one should be": 1 / math.log(2)}
    for name, number in parts.items():
        named |= {f"the expected one times {name}": number, f"the expected one divided by {name}": 1 / number}
    return named


def _size_of(names: Sequence[str]) -> str:
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"the size of {listed}" if len(names) == 1 else f"the sizes of {listed}"


# One wrong array → clues


@dataclass(frozen=True)
class Pair:
    """Expected and observed as float64 of one shape, with a widened tolerance."""

    expected: Array
    observed: Array
    rtol: float
    atol: float

    @classmethod
    def of(cls, expectation: Expectation, expected: Array, observed: Array) -> Pair:
        """Make a pair of these two, with the tolerance of the expectation widened."""
        tolerance = WIDER * max(expectation.rtol, 1e-9), WIDER * expectation.atol
        return cls(widened(expected), widened(observed), *tolerance)

    @property
    def allowed(self) -> Array:
        """How far each value may be off."""
        return self.atol + self.rtol * np.abs(self.expected)

    @property
    def telling(self) -> Array:
        """Where a value is large enough to tell a factor."""
        return np.abs(self.expected) > TELLING * self.allowed

    def near(self, predicted: Array) -> Array:
        """Mark where the observed values are the predicted ones, within the widened tolerance."""
        near: Array = np.abs(self.observed - predicted) <= self.atol + self.rtol * np.abs(predicted)
        return near


def _evidence(values: Array) -> float:
    """Count the values that differ by more than rounding; those that are no multiples of a coarse step count twice."""
    if not values.size:
        return 0.0
    ordered = np.sort(values.reshape(-1))
    step = 1e-6 * max(abs(float(ordered[0])), abs(float(ordered[-1])))
    different = ordered[np.concatenate([[True], np.diff(ordered) > step])]
    is_coarse = different / FINEST_STEP == np.round(different / FINEST_STEP)
    return float(np.where(is_coarse, 1.0, FULL).sum())


def _clues(wrong: Wrong) -> list[Clue]:
    """Return all that one wrong array shows; nothing where it is right or cannot be compared."""
    expected, observed = wrong.expectation.array, wrong.observed
    if (
        expected is None
        or observed.shape != expected.shape
        or any(a.dtype.kind not in "fiub" or not 0 < a.size <= MAX_SIZE for a in (expected, observed))
    ):
        return []
    with np.errstate(all="ignore"):
        pair = Pair.of(wrong.expectation, expected, observed)
        if not np.isfinite(pair.expected).all() or _is_right(wrong):
            return []
        holes = ~np.isfinite(pair.observed)
        if holes.any():
            return list(_only(pair, holes, "holes"))
        shown = [*_factors(pair), *_offsets(pair), *_orders(pair, wrong.expectation)]
        if not pair.observed.any():
            shown.append(Clue("zero", evidence=FULL * int(pair.telling.sum())))
        elif np.ptp(pair.observed) <= 1e-6 * np.abs(pair.observed).max():
            shown.append(Clue("same", evidence=_evidence(pair.expected) - FULL))
        if expected.dtype.kind == "f":  # which index or count is wrong follows from no value
            wrong_places = ~pair.near(pair.expected)
            shown += _only(pair, wrong_places, "only")
            if not pair.observed[wrong_places].any():
                shown += [replace(c, kind="only-zeroed") for c in shown if c.kind == "only" and c.detail != "zero"]
        return [_borne_out(clue, wrong) for clue in shown]


def _borne_out(clue: Clue, wrong: Wrong) -> Clue:
    """Count the gradients of the same case that show the same factor or sign as further evidence."""
    if clue.kind in ("sign", "factor"):
        for other in itertools.chain.from_iterable(_clues(Wrong(*gradient)) for gradient in wrong.more):
            same = abs(other.number - clue.number) <= (other.precision + clue.precision) * abs(clue.number)
            if other.kind == clue.kind and same:
                clue = replace(clue, evidence=clue.evidence + other.evidence)
    return clue


def _factors(pair: Pair) -> Iterator[Clue]:
    """All values are minus the expected ones, or the expected ones times one number."""
    if not pair.telling.any():
        return
    place = np.unravel_index(int(np.abs(pair.expected).argmax()), pair.expected.shape)
    factor = float(pair.observed[place] / pair.expected[place])
    precision = float(pair.allowed[place] / abs(pair.expected[place]))
    slack = abs(factor) * (pair.allowed + np.abs(pair.expected) * precision)
    fits = bool((np.abs(pair.observed - factor * pair.expected) <= slack).all())
    if not fits or not math.isfinite(factor) or factor == 0 or abs(factor - 1) < NEARLY_ONE:
        return
    clue = Clue("factor", "", factor, 4 * precision, _evidence(np.abs(pair.expected[pair.telling])))
    if abs(factor + 1) <= 2 * precision:
        yield replace(clue, kind="sign")
    yield clue


def _offsets(pair: Pair) -> Iterator[Clue]:
    """All values are the expected ones plus one number."""
    distance = pair.observed - pair.expected
    epsilon = np.finfo(pair.observed.dtype).eps
    slack = 2 * float(pair.allowed.max()) + epsilon * float(np.abs(pair.observed).max())
    amount = float(distance.flat[int(pair.allowed.argmin())])
    spread = float(np.ptp(pair.expected)) if pair.expected.size > 1 else float(np.abs(pair.expected).max())
    if CLEARLY * slack < min(abs(amount), spread) and (np.abs(distance - amount) <= slack).all():
        yield Clue("offset", "", amount, 2 * slack, _evidence(pair.expected))


def _orders(pair: Pair, expectation: Expectation) -> Iterator[Clue]:
    """Find the expected values in the order of other axes: transposed, or reshaped in place of transposed."""
    expected, axes = pair.expected, expectation.said_axes
    if expected.ndim > MAX_AXES or len(axes) != expected.ndim:
        return
    for order in itertools.permutations(range(expected.ndim)):
        moved = expected.transpose(order)
        kind = "transposed" if moved.shape == expected.shape else "reshaped"
        swapped = " and ".join(axes[axis] for place, axis in enumerate(order) if place != axis)
        back = expected.reshape(moved.shape).transpose(np.argsort(order))
        for predicted in (moved.reshape(expected.shape), back):
            if pair.near(predicted).all():  # values that stand where they should say nothing
                changed = np.abs(predicted - expected) > CLEARLY * (pair.allowed + pair.rtol * np.abs(predicted))
                yield Clue(kind, swapped, evidence=_evidence(predicted[changed]))


def _only(pair: Pair, wrong: Array, kind: str) -> Iterator[Clue]:
    """Only values that should be zero, or of one sign, are wrong: how surprising is that of so many places?"""
    zero = np.abs(pair.expected) <= pair.allowed
    regions = {"zero": zero}
    if (pair.expected[pair.telling] > 0).any() and (pair.expected[pair.telling] < 0).any():
        regions |= {"negative": ~zero & (pair.expected < 0), "positive": ~zero & (pair.expected > 0)}
    for name, region in regions.items():
        number, inside = int(wrong.sum()), int(region.sum())
        if 0 < number < wrong.size and not (wrong & ~region).any():
            bits = math.log2(math.comb(wrong.size, number)) - math.log2(math.comb(inside, number))
            yield Clue(kind, name, evidence=bits / 2)


# The weights of a run, update by update

UPDATE = "update"  # the first axis of whatever a case has for each update
FOLLOWED = "weights before and after"  # sums of weights, the first of them before the first update
LOSSES = "losses of updates"  # what each update learned from
ENOUGH_WEIGHTS = 8  # for one factor to fit all of them
PARALLEL = 0.01  # share of a difference that is no multiple of the update that was due
NO_FACTOR = 1e-3  # an update this close to 0 times the right one is missing, or goes the other way


def about_updates(case: Case, observation: Observation) -> str:
    """Tell which update is the first wrong one; "" where there are no such weights, all are right, or fewer or more.

    What is told follows from stored weights alone, so it is true whatever the cause. Where to look is told where the
    case shows that nothing before the update was wrong.
    """
    followed = _followed(case, observation)
    if followed is None:
        return ""
    expectation, due, made = followed
    right = right_places(replace(expectation, array=due), made).reshape(len(due), -1).all(axis=1)
    if right.all():
        trained = "The weights that you train are right after every update: is it this model that you return?"
        return trained if expectation.diagnosis else ""
    first = int(np.argmin(right))
    if not first:
        return "The weights differ before the first update."
    when = f"The weights are wrong from update {first} on"
    losses = next((expectation for expectation in case.expected if expectation.name == LOSSES), None)
    returned = observation.returned.get(LOSSES)
    if losses is None or losses.array is None or returned is None or returned.array is None:
        return f"{when}."
    if returned.array.shape != losses.array.shape:
        return f"{when}."
    if not (right_losses := right_places(losses, returned.array)[:first]).all():
        return f"{when}. The loss of update {int(np.argmin(right_losses)) + 1} is wrong: look at what it is made of."
    wanted, off = (due[first] - due[first - 1]).ravel(), (made[first] - due[first]).ravel()
    if wanted.size >= ENOUGH_WEIGHTS and wanted.any():
        factor = 1 + float(wanted @ off / (wanted @ wanted))
        is_parallel = np.linalg.norm(off - (factor - 1) * wanted) < PARALLEL * np.linalg.norm(off)
        if is_parallel and abs(factor) > NO_FACTOR:
            return f"{when}. Its loss is right, and all weights move {factor:.3g} times as far as they should."
    return f"{when}. Its loss is right: look at what becomes of its gradient, and at the optimizer."


def _followed(case: Case, observation: Observation) -> tuple[Expectation, Array, Array] | None:
    """Return weights before the first update and after each: the expectation, what should be, what was returned."""
    for expectation in case.expected:
        returned = observation.returned.get(expectation.name)
        if expectation.array is None or expectation.axes[:1] != (UPDATE,) or returned is None or returned.array is None:
            continue
        due, made, start = expectation.array, returned.array, case.inputs.get("weight")
        if made.shape != due.shape or not np.isfinite(made).all():
            continue
        if expectation.name == FOLLOWED and len(made) > 1:
            return expectation, due, made
        if expectation.name in ("weights", "weight") and start is not None and due.shape[1:] == start.shape:
            return expectation, np.concatenate([start[None], due]), np.concatenate([start[None], made])
    return None
