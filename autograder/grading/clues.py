"""Tell what can be seen in wrong arrays that no known mistake explains: a factor, a sign, an order, a place.

A clue is one simple change of the expected values that gives the observed ones, as a sentence. It is told where every
failing case of the item shows it, and enough values bear it out that chance could hardly have made it. Its numbers are
those of the first public case; hidden ones can only bear it out, and where they alone fail nothing is told. At the end:
what the weights of a run tell, update by update.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from autograder.grading.compare import compare, expected_array, right_places, widened
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
ENOUGH = 4.0  # evidence: see Clues
FULL = 2.0  # evidence of a value whose digits are no multiple of a coarse step
FINEST_STEP = 2.0**-10
SMALL = 3  # of sizes up to this one, a size over one less is 2 or 1.5, which other causes have as well

BARE = "times what it should be."
ZERO = "All your values are zero."
SAME = "All your values are the same, but they should not be."
HOLES = "Yours is not a finite number only"
FACTOR = " are off by the same factor. What are they divided by?"
NAME = "(is|Is it) (the expected one (times|divided by)|a logarithm)"
OFFSET = "All your values are off by the same amount. What is added or subtracted there?"
SUM, TWICE = " Is there a sum where a mean should be?", " Is something divided by once too often?"

Clues = Mapping[str, float]  # sentence → evidence: how many different values bear it out, those of full precision twice


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
    wrongs = []
    for (case, observation), mismatch in zip(seen, mismatches, strict=True):
        pairs = [
            (expectation, returned.array)
            for expectation in (case.expected if mismatch else ())
            if expectation.kind in TESTABLE
            and expectation.array is not None
            and (returned := observation.returned.get(expectation.name)) is not None
            and returned.array is not None
        ]
        own = [pair for pair in pairs if pair[0].name == first.expectation.name]
        more = tuple(pair for pair in pairs if pair[0].kind == "gradient" and pair[0].name != first.expectation.name)
        wrongs += [Wrong(*pair, _sizes(case, pair[0], named), more) for pair in own[:1]]
    # where two axes have one size, another order may look like a transposition
    distinct = [wrong for wrong in wrongs if len(set(wrong.observed.shape)) == wrong.observed.ndim]
    return describe(distinct or wrongs)


def explains(reason: str) -> bool:
    """Tell whether a sentence leaves nothing to ask: a bare factor, one value for all, or a place says no cause."""
    return bool(reason) and not reason.endswith((BARE, SAME)) and not reason.startswith(HOLES)


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


# A clue that all cases show


def describe(wrongs: Sequence[Wrong]) -> str:
    """Tell what all of these show, about the first of them.

    Where a coarse tolerance, or numbers of many sizes, let nothing be seen at all, a case has no say.
    One whose array is right after all fails for another cause.
    """
    with np.errstate(all="ignore"):
        long = {axis for wrong in wrongs for axis, size in wrong.sizes.items() if size > 1}
        tables = [
            _clues(replace(wrong, sizes={axis: size for axis, size in wrong.sizes.items() if axis in long}))
            for wrong in wrongs
        ]
    speaking = [table for table in tables if table]
    if not tables or not tables[0] or 2 * len(speaking) < len(tables):
        return ""
    common = {s: [table[s] for table in speaking] for s in tables[0] if all(s in table for table in speaking)}
    bare = next((sentence for sentence in common if sentence.endswith(BARE)), "")
    names = [name for name in common if re.search(NAME, name)]
    for sentence, shown in common.items():
        if sentence in names and bare:  # of one number in all cases its name is a guess
            sentence = f"{bare} Is it {re.split(r' and has|[.]', sentence.partition(' is ')[2])[0]}?"
        # a number that is the same in all cases was free to be chosen once
        free = FULL if BARE in sentence or " too " in sentence else 0.0
        is_each = sentence.endswith((FACTOR, OFFSET))  # every case must bear its own number out
        is_clear = min(shown) >= ENOUGH + FULL if is_each else sum(shown) >= ENOUGH + free
        if is_clear and (len(names) == 1 or not re.search(NAME, sentence)):
            return sentence
    return ""


def _clues(wrong: Wrong) -> Clues:
    """Return all that one wrong array shows, what tells most first; nothing where it cannot be compared."""
    expectation, observed = wrong.expectation, _numbers(wrong.observed)
    expected = _numbers(expected_array(expectation))
    if expected is None or observed is None or observed.shape != expected.shape or not np.isfinite(expected).all():
        return {}
    rtol, atol = WIDER * max(expectation.rtol, 1e-9), WIDER * expectation.atol
    allowed = atol + rtol * np.abs(expected)
    telling = np.abs(expected) > TELLING * allowed
    is_wrong = ~(np.abs(observed - expected) <= allowed)
    if right_places(expectation, wrong.observed).all():
        return {"": 0.0}  # it has a say: no other sentence is true of it
    holes = ~np.isfinite(observed)
    if holes.any():
        return {
            f"{HOLES} where it should be {name}.": bits for name, bits in _regions(expected, allowed, telling, holes)
        }
    clues: dict[str, float] = {}
    if not observed.any() and observed.ndim and expectation.kind != "gradient":  # else the message says so
        clues[ZERO] = FULL * int(telling.sum())
    one, each = "Your value", "Each of your values"
    if expectation.kind == "gradient":
        one, each = "Your gradient", "Each entry of your gradient"
    each = each if observed.ndim else one
    clues |= _factors(expected, observed, allowed, telling, each, wrong.sizes)
    for other in wrong.more:
        for sentence, bits in _clues(Wrong(*other, wrong.sizes)).items():
            own = re.sub("^(Each entry of y|Y)our gradient", each, sentence)
            clues |= {own: clues[own] + bits} if own in clues else {}
    distance = observed - expected
    slack = 2 * float(allowed.max()) + np.finfo(float).eps * float(np.abs(observed).max())
    amount = float(distance.flat[int(allowed.argmin())])
    spread = float(np.ptp(expected)) if expected.size > 1 else float(np.abs(expected).max())
    if CLEARLY * slack < min(abs(amount), spread) and (np.abs(distance - amount) <= slack).all():
        clues[f"{each} is {abs(amount):.4g} too {'large' if amount > 0 else 'small'}."] = _evidence(expected)
        clues[OFFSET] = _evidence(expected)
    if observed.any() and np.ptp(observed) <= 1e-6 * np.abs(observed).max():
        clues[SAME] = _evidence(expected) - FULL
    axes = expectation.said_axes
    for order in itertools.permutations(range(expected.ndim)) if len(axes) == expected.ndim <= MAX_AXES else ():
        moved = expected.transpose(order)
        swapped = " and ".join(axes[axis] for place, axis in enumerate(order) if place != axis)
        sentence = "in another order: reshaping does not interchange " + swapped
        if moved.shape == expected.shape:
            sentence = f"with {swapped} interchanged"
        back = expected.reshape(moved.shape).transpose(np.argsort(order))
        for predicted in (moved.reshape(expected.shape), back):
            if (np.abs(observed - predicted) <= atol + rtol * np.abs(predicted)).all():
                changed = np.abs(predicted - expected) > CLEARLY * (allowed + rtol * np.abs(predicted))
                clues[f"Your values are the expected ones {sentence}."] = _evidence(predicted[changed])
    if expected_array(expectation).dtype.kind == "f":  # which index or count is wrong follows from no value
        for name, bits in _regions(expected, allowed, telling, is_wrong):
            zeroed = ": yours are zero there" if name != "zero" and not observed[is_wrong].any() else ""
            clues[f"Only values that should be {name} are wrong{zeroed}."] = bits
    return clues


def _numbers(array: Array) -> Array | None:
    """Return numbers as float64; None where there are none, too many, or other things."""
    return widened(array) if array.dtype.kind in "fiub" and 0 < array.size <= MAX_SIZE else None


def _factors(
    expected: Array, observed: Array, allowed: Array, telling: Array, each: str, sizes: Mapping[str, int]
) -> dict[str, float]:
    """All values are minus the expected ones, or the expected ones times one number, which may have a name."""
    place = np.unravel_index(int(np.abs(expected).argmax()), expected.shape)
    factor = float(observed[place] / expected[place])
    precision = float(allowed[place] / abs(expected[place]))
    slack = abs(factor) * (allowed + np.abs(expected) * precision)
    fits = telling.any() and bool((np.abs(observed - factor * expected) <= slack).all())
    if not fits or not math.isfinite(factor) or factor == 0 or abs(factor - 1) < NEARLY_ONE:
        return {}
    evidence, clues = _evidence(np.abs(expected[telling])), {}
    if abs(factor + 1) <= 2 * precision:
        clues[f"{each} has the right size and the wrong sign."] = evidence
    sign = " and has the wrong sign" if factor < 0 else ""
    names = {"a logarithm to base two where the natural one should be": 1 / math.log(2)}
    groups = [group for count in range(1, len(sizes) + 1) for group in itertools.combinations(sizes, count)]
    for group in groups:
        size, axes = math.prod(sizes[name] for name in group), filter(None, (", ".join(group[:-1]), group[-1]))
        said = f"the size{'s' * (len(group) > 1)} of {' and '.join(axes)}"
        parts = {said: float(size)}
        if len(group) == 1 and size > SMALL:
            less = f"{said} over one less than that"
            parts |= {less: size / (size - 1), f"the square root of {less}": math.sqrt(size / (size - 1))}
        for part, number in parts.items():
            for verb, value, question in (("times", number, SUM), ("divided by", 1 / number, TWICE)):
                names[f"the expected one {verb} {part}{sign}.{question if part == said else ''}"] = value
    near = [name for name, value in names.items() if abs(abs(factor) - value) <= 4 * precision * max(value, 1.0)]
    subject = "All your values" if observed.ndim else "Your value and its gradient"
    shown = [*(f"{each} is {name}" for name in near), f"{each} is {factor:.4g} {BARE}", f"{subject}{FACTOR}"]
    return clues | dict.fromkeys(shown, evidence)


def _regions(expected: Array, allowed: Array, telling: Array, wrong: Array) -> Iterator[tuple[str, float]]:
    """Name what only values that should be zero, or of one sign, have; with half the bits of what chance has to do."""
    zero = np.abs(expected) <= allowed
    regions = {"zero": zero}
    if (expected[telling] > 0).any() and (expected[telling] < 0).any():
        regions |= {"negative": ~zero & (expected < 0), "positive": ~zero & (expected > 0)}
    number = int(wrong.sum())
    for name, region in regions.items():
        if 0 < number < wrong.size and not (wrong & ~region).any():
            yield name, (math.log2(math.comb(wrong.size, number)) - math.log2(math.comb(int(region.sum()), number))) / 2


def _evidence(values: Array) -> float:
    """Count the values that differ by more than rounding; those that are no multiples of a coarse step count twice."""
    if not values.size:
        return 0.0
    ordered = np.sort(values.reshape(-1))
    step = 1e-6 * max(abs(float(ordered[0])), abs(float(ordered[-1])))
    different = ordered[np.concatenate([[True], np.diff(ordered) > step])]
    is_coarse = different / FINEST_STEP == np.round(different / FINEST_STEP)
    return float(np.where(is_coarse, 1.0, FULL).sum())


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
