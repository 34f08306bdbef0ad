"""What all failing cases of an item show → a sentence, where no known mistake has a name for it.

A clue is told where every failing case shows it, and where chance could hardly have made it: by enough different values
that are not all small whole numbers. Of a hidden case it is told in words and names of axes, without a number.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import compare
from autograder.grading.feedback.clues import MAX_AXES, Clue, Wrong, clues, factor_clues
from autograder.sandbox.observation import Array, Observation

ENOUGH_BITS = 16.0
ENOUGH_PLACES = 8.0  # bits of evidence for where a difference lies
ENOUGH_VALUES = 3
ORDINALS = ("first", "second", "third", "fourth")
TESTABLE = ("value", "gradient")

Axes = tuple[str, ...]
KINDS = (
    "axes-swapped", "shape-alone", "summed", "averaged", "never-finite", "holes-where-even", "holes", "zero", "sign",
    "factor", "offset", "function", "same", "transposed", "reshaped", "reversed", "late", "early", "absolute",
    "some-signs", "offset-along", "factor-along", "flat", "only-zeroed", "only", "disordered", "rounded",
)  # fmt: skip
WORDS = {
    "axes-swapped": "The values are right, but the axes stand in the order [{detail}].",
    "shape-alone": "The values are right and in the right order: the shape alone is not.",
    "summed": "Your values are the expected ones, summed over {detail}.",
    "averaged": "Your values are the expected ones, averaged over {detail}.",
    "never-finite": "{all} not finite.",
    "holes-where-even": "Yours is not a finite number only where the values along {detail} should all be the same.",
    "holes": "Yours is not a finite number only where it should be {detail}.",
    "zero": "{all} zero.",
    "same": "All your values are the same, but they should not be.",
    "sign": "{each} has the right size and the wrong sign.",
    "function": "Your values are {detail} of the expected ones.",
    "transposed": "Your values are the expected ones with {detail} interchanged.",
    "reshaped": "Your values are the expected ones in another order: reshaping does not interchange {detail}.",
    "reversed": "Your values are the expected ones in reverse order along {detail}.",
    "late": "Your values are the expected ones, one place too late along {detail}.",
    "early": "Your values are the expected ones, one place too early along {detail}.",
    "absolute": "Your values are right but for their sign: those that should be negative are positive.",
    "some-signs": "Your values are right but for their sign, which is wrong for some of them.",
    "offset-along": "Along {detail}, all your values are off by the same amount. What is added or subtracted there?",
    "factor-along": "Along {detail}, all your values are off by the same factor. What are they divided by?",
    "flat": "Your values do not change along {detail}, but they should.",
    "only-zeroed": "Only values that should be {detail} are wrong: yours are zero there.",
    "only": "Only values that should be {detail} are wrong.",
    "disordered": "Your values are the expected ones in another order along {detail}.",
    "rounded": "{each} has lost digits: something was computed in {detail} precision.",
}
PLACES = ("holes-where-even", "holes", "only-zeroed", "only")
REGIONS = {"0": "zero", "tied": "as large as another one beside them"}


def explain(seen: Sequence[tuple[Case, Observation]], hints: Mapping[str, str], relatives: Sequence[Case] = ()) -> str:
    """What all failing cases of an item show, told about the first; "" where there is nothing to tell.

    seen        the cases of the item that returned something, in order
    hints       of the known mistakes: an answer may be one of them and something else besides
    relatives   other cases of the function, which may know how the axes of an input are called
    """
    mismatches = [compare(case.expected, observation) for case, observation in seen]
    case, first = next(((one, found) for (one, _), found in zip(seen, mismatches, strict=True) if found), (None, None))
    if case is None or first is None or first.expectation.kind not in TESTABLE or first.returned.array is None:
        return ""
    name, named = first.expectation.name, _input_axes([*(one for one, _ in seen), *relatives])
    arrays = [(one, wrong_array(one, observation, name, named)) for one, observation in seen]
    wrongs = [wrong for (_, wrong), found in zip(arrays, mismatches, strict=True) if wrong and found]
    return " ".join(describe_all(wrongs, reveal=case.visibility == "public")) or _composed(arrays, hints)


def _composed(arrays: Sequence[tuple[Case, Wrong | None]], hints: Mapping[str, str]) -> str:
    """A known mistake in every case, but for the sign or for a factor that the sizes of axes make."""
    wrongs = [(case, wrong) for case, wrong in arrays if wrong is not None]
    told = {
        (words, hints[slug])
        for slug in sorted({slug for case, _ in wrongs for slug in case.mistakes} & hints.keys())
        if (words := _but_for_a_factor([_against_mistake(case, slug, wrong) for case, wrong in wrongs]))
        and not _is_factor([_mistake_itself(case, slug, wrong) for case, wrong in wrongs])
    }
    if len(told) != 1:
        return ""
    ((words, hint),) = told
    return f"Two things at once. {words} and this is left: {hint}"


def _against_mistake(case: Case, slug: str, wrong: Wrong) -> Wrong:
    """The same arrays, held against what the mistake returns instead of against the truth."""
    more = tuple((replace(one, array=_mistaken(case, slug, one)), array) for one, array in wrong.more)
    mistaken = replace(wrong.expectation, array=_mistaken(case, slug, wrong.expectation))
    return replace(wrong, expectation=mistaken, more=more)


def _mistake_itself(case: Case, slug: str, wrong: Wrong) -> Wrong:
    """What the mistake returns, held against the truth."""
    observed = _mistaken(case, slug, wrong.expectation)
    more = ((one, array) for one, _ in wrong.more if (array := _mistaken(case, slug, one)) is not None)
    return wrong if observed is None else replace(wrong, observed=observed, more=tuple(more))


def _mistaken(case: Case, slug: str, expectation: Expectation) -> Array | None:
    """What the mistake returns under this name: the truth where nothing else is stored."""
    mistake = case.mistakes.get(slug)
    found = mistake.returned.get(expectation.name) if isinstance(mistake, Observation) else None
    return expectation.array if found is None else found.array


def _is_factor(wrongs: Sequence[Wrong]) -> bool:
    """Whether all that is wrong is a sign or a factor: without it nothing else would be left."""
    tables = [{clue.kind: clue for clue in factor_clues(wrong)} for wrong in wrongs]
    found = [table["factor"] for table in tables if "factor" in table]
    return bool(found) and bool(_factor_words(found, [w for w, t in zip(wrongs, tables, strict=True) if t], True))


def _but_for_a_factor(wrongs: Sequence[Wrong]) -> str:
    tables = [{clue.kind: clue for clue in factor_clues(wrong)} for wrong in wrongs]
    if all("sign" in table for table in tables) and _enough([table["sign"] for table in tables]):
        return "Turn the sign round,"
    if not all("factor" in table for table in tables):
        return ""
    found = [table["factor"] for table in tables]
    names = _names(found, wrongs, _divisions)
    positive = all(clue.number > 0 for clue in found)
    return f"{names[0]}," if len(names) == 1 and positive and _enough(found) else ""


def wrong_array(case: Case, observation: Observation, name: str, named: Mapping[str, Axes]) -> Wrong | None:
    """What a case returned under this name; None where it expects or returned no such array."""
    pairs = [
        (expectation, returned.array)
        for expectation in case.expected
        if expectation.kind in TESTABLE
        and (returned := observation.returned.get(expectation.name)) is not None
        and returned.array is not None
    ]
    found = next((pair for pair in pairs if pair[0].name == name), None)
    if found is None:
        return None
    gradients = [pair for pair in pairs if pair[0].kind == "gradient" and pair[0].name != name]
    return Wrong(*found, sizes=_sizes(case, found[0], named), more=tuple(gradients))


def describe(expectation: Expectation, observed: Array, *, reveal: bool) -> tuple[str, ...]:
    """What one wrong array shows by itself, in at most one sentence; no number where `reveal` is false."""
    return describe_all([Wrong(expectation, observed, _named_sizes([expectation]))], reveal=reveal)


def describe_all(wrongs: Sequence[Wrong], *, reveal: bool) -> tuple[str, ...]:
    """What all of these show, told about the first of them."""
    if not wrongs:
        return ()
    tables = [{(clue.kind, clue.detail): clue for clue in clues(wrong)} for wrong in wrongs]
    shared = [key for key in tables[0] if all(key in table for table in tables)]
    for key in sorted(shared, key=lambda key: KINDS.index(key[0])):
        sentence = _told([table[key] for table in tables], wrongs, reveal)
        if sentence:
            return (sentence,)
    return ()


def _sizes(case: Case, expectation: Expectation, named: Mapping[str, Axes]) -> dict[str, int]:
    """Of an array its own axes; of a scalar those of the case's inputs that have names, else of its first input."""
    if expectation.axes:
        return _named_sizes([expectation])
    inputs = {name: array.shape for name, array in case.inputs.items() if array.ndim}
    known = [dict(zip(named[name], shape, strict=True)) for name, shape in inputs.items() if name in named]
    if known:
        return known[0]
    return {
        f"the {ORDINALS[axis]} axis of {name}": size
        for name, shape in list(inputs.items())[:1]
        for axis, size in enumerate(shape[:MAX_AXES])
    }


def _input_axes(cases: Iterable[Case]) -> dict[str, Axes]:
    """The axes of inputs, learned where an expected array has the shape of an input and no two sizes are equal."""
    found: dict[str, Axes] = {}
    for case in cases:
        shapes = {e.array.shape: e.axes for e in case.expected if e.kind in TESTABLE and e.array is not None}
        for name, array in case.inputs.items():
            axes = shapes.get(array.shape, ())
            if axes and len(axes) == array.ndim == len(set(array.shape)):
                found.setdefault(name, axes)
    return found


def _named_sizes(expectations: Iterable[Expectation]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for expectation in expectations:
        if expectation.array is not None:
            sizes |= dict(zip(expectation.axes, expectation.array.shape, strict=False))
    return dict(list(sizes.items())[:MAX_AXES])


def _told(found: Sequence[Clue], wrongs: Sequence[Wrong], reveal: bool) -> str:
    """The sentence for a clue that all cases show; "" where chance could have made it."""
    kind, detail = found[0].kind, found[0].detail
    if kind == "factor":
        return _factor_words(found, wrongs, reveal)
    if kind == "offset":
        return _offset_words(found, wrongs, reveal)
    if not (sum(clue.bits for clue in found) >= ENOUGH_PLACES if kind in PLACES else _enough(found)):
        return ""
    if kind == "zero" and wrongs[0].expectation.kind == "gradient":  # its message begins with that
        return ""
    whole = "All your values are" if wrongs[0].observed.ndim else "Your value is"
    return WORDS[kind].format(detail=REGIONS.get(detail, detail), each=_each(wrongs[0]), all=whole)


def _enough(found: Sequence[Clue], free: int = 0) -> bool:
    """Whether the evidence excludes chance, after what the choice of so many free numbers has used up."""
    agree = len(found) > 1 and all(clue.values for clue in found)  # scalars of several cases
    used = free * max(clue.each for clue in found)
    many = sum(clue.values for clue in found) >= ENOUGH_VALUES
    return (many or agree) and sum(clue.bits for clue in found) - used >= ENOUGH_BITS


def _each(wrong: Wrong) -> str:
    if not wrong.observed.ndim:
        return "Your gradient" if wrong.expectation.kind == "gradient" else "Your value"
    return "Each entry of your gradient" if wrong.expectation.kind == "gradient" else "Each of your values"


def _constant(found: Sequence[Clue], *, relative: bool) -> bool:
    """Whether the number is the same in all cases, as far as it is known."""
    first = found[0]
    scale = abs(first.number) if relative else 1.0
    return all(abs(clue.number - first.number) <= (clue.precision + first.precision) * scale for clue in found)


def _factor_words(found: Sequence[Clue], wrongs: Sequence[Wrong], reveal: bool) -> str:
    each, turned = _each(wrongs[0]), {clue.number < 0 for clue in found}
    sign = " and has the wrong sign" if turned == {True} else ""
    constant = _constant(found, relative=True)
    names = _names(found, wrongs, _factors) if len(turned) == 1 else []
    if len(names) == 1 and _enough(found, free=constant):
        if constant and reveal:
            return f"{each} is {found[0].number:.4g} times what it should be. Is it {names[0]}?"
        if constant:
            return f"{each} is off by a constant factor{sign}. Is it {names[0]}?"
        return f"{each} is {names[0]}{sign}.{_question(names[0])}"
    if constant and _enough(found, free=1):
        factor = f"{found[0].number:.4g} times what it should be" if reveal else f"off by a constant factor{sign}"
        return f"{each} is {factor}."
    if all(clue.values >= ENOUGH_VALUES for clue in found) and _enough(found, free=len(found)):
        subject = "All your values" if wrongs[0].observed.ndim else "Your value and its gradient"
        return f"{subject} are off by the same factor. What are they divided by?"
    return ""


def _question(name: str) -> str:
    if " over " in name or " root " in name:
        return ""
    if " times " in name:
        return " Is there a sum where a mean should be?"
    return " Is something divided by once too often?" if " divided by " in name else ""


def _offset_words(found: Sequence[Clue], wrongs: Sequence[Wrong], reveal: bool) -> str:
    each, directions = _each(wrongs[0]), {clue.number > 0 for clue in found}
    if not wrongs[0].observed.ndim and len(found) < ENOUGH_VALUES:  # two scalars may be off alike for any reason
        return ""
    if len(directions) == 1 and _enough(found, free=1):
        direction = "large" if directions == {True} else "small"
        names = _names(found, wrongs, _products)
        if not _constant(found, relative=False) and len(names) == 1:
            return f"{each} is too {direction} by {names[0]}."
        if _constant(found, relative=False):
            if reveal:
                return f"{each} is {abs(found[0].number):.4g} too {direction}."
            return f"{each} is too {direction} by the same amount."
    if all(clue.values >= ENOUGH_VALUES for clue in found) and _enough(found, free=len(found)):
        return "All your values are off by the same amount. What is added or subtracted there?"
    return ""


def _names(
    found: Sequence[Clue], wrongs: Sequence[Wrong], named: Callable[[Mapping[str, int]], Mapping[str, float]]
) -> list[str]:
    """What the number of every case may be called."""
    long = {axis for wrong in wrongs for axis, size in wrong.sizes.items() if size > 1}
    fitting = [
        {
            name
            for name, number in named({axis: size for axis, size in wrong.sizes.items() if axis in long}).items()
            if abs(abs(clue.number) - number) <= clue.precision * max(number, 1.0)
        }
        for clue, wrong in zip(found, wrongs, strict=True)
    ]
    return sorted(set.intersection(*fitting))


def _products(sizes: Mapping[str, int]) -> dict[str, float]:
    """`the size of trial`, `the sizes of batch and trial`, … → the product."""
    groups = [names for count in range(1, len(sizes) + 1) for names in itertools.combinations(sizes, count)]
    return {_size_of(names): float(math.prod(sizes[name] for name in names)) for names in groups}


def _divisions(sizes: Mapping[str, int]) -> dict[str, float]:
    """How to take such a factor out again → the factor."""
    named = _products(sizes)
    found = {f"Divide by {name}": number for name, number in named.items()}
    return found | {f"Multiply by {name}": 1 / number for name, number in named.items()}


def _factors(sizes: Mapping[str, int]) -> dict[str, float]:
    """The factors that have a name, made of these sizes."""
    found = {
        "a logarithm to base two where the natural one should be": 1 / math.log(2),
        "a logarithm to base ten where the natural one should be": 1 / math.log(10),
    }
    named = _products(sizes)
    for name, size in sizes.items():
        less, smaller = f"{_size_of([name])} over one less than that", max(size - 1, 1)
        named |= {f"the square root of {_size_of([name])}": math.sqrt(size), less: size / smaller}
        named[f"the square root of {less}"] = math.sqrt(size / smaller)
    for name, number in named.items():
        found |= {f"the expected one times {name}": number, f"the expected one divided by {name}": 1 / number}
    for above, below in itertools.permutations(sizes, 2):
        found[f"the expected one times {_size_of([above])} over {_size_of([below])}"] = sizes[above] / sizes[below]
    return found


def _size_of(names: Sequence[str]) -> str:
    listed = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"the size of {listed}" if len(names) == 1 else f"the sizes of {listed}"
