"""What all failing cases of an item show → a sentence, where no known mistake has a name for it.

A clue is told where every failing case shows it in which anything can be seen, and where `clue_text` finds enough
evidence for it. It is told of a public case, with that case's numbers; hidden ones can only bear it out, and where they
alone fail nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import compare, expected_array, right_places
from autograder.grading.remarks.clue_text import BARE, KINDS, SAME, enough, factor_words, sentence_of
from autograder.grading.remarks.clues import Wrong, clues, factor_clues
from autograder.grading.remarks.evidence import MAX_AXES
from autograder.grading.remarks.named_numbers import divisions, names_of
from autograder.sandbox.calls import Array, Observation

ORDINALS = ("first", "second", "third", "fourth")
TESTABLE = ("value", "gradient")
TURNED = "Turn the sign round,"
NEARLY = 1e-3

Axes = tuple[str, ...]


def explain(
    seen: Sequence[tuple[Case, Observation]],
    hints: Mapping[str, str],
    relatives: Sequence[Case] = (),
    others: Sequence[tuple[Case, Observation]] = (),
) -> str:
    """What all failing cases show, told about the first; "" where that is hidden or there is nothing to tell.

    seen        the cases of the item that returned something, in order
    hints       of the known mistakes: an answer may be one of them and something else besides
    relatives   other cases of the function, which may know how the axes of an input are called
    others      what came back of those: a sign that is turned round is turned round in all of them
    """
    mismatches = [compare(case.expected, observation) for case, observation in seen]
    case, first = next(((one, found) for (one, _), found in zip(seen, mismatches, strict=True) if found), (None, None))
    if case is None or first is None or case.visibility == "hidden":
        return ""
    if first.expectation.kind not in TESTABLE or first.returned.array is None:
        return ""
    name, named = first.expectation.name, _input_axes([*(one for one, _ in seen), *relatives])
    arrays = [(one, wrong_array(one, observation, name, named)) for one, observation in seen]
    wrongs = [wrong for (_, wrong), found in zip(arrays, mismatches, strict=True) if wrong and found]
    wrongs = [wrong for wrong in wrongs if _tells_axes_apart(wrong)] or wrongs
    return " ".join(describe_all(wrongs)) or _composed(arrays, hints, others)


def _tells_axes_apart(wrong: Wrong) -> bool:
    """Whether no two axes have one size: where they have, another order may look like a transposition."""
    shape = wrong.observed.shape
    return len(set(shape)) == len(shape)


def explains(reason: str) -> bool:
    """Whether a sentence leaves nothing to ask: a factor without a name, or one value for all, says no cause."""
    return bool(reason) and not reason.endswith((BARE, SAME))


def _composed(
    arrays: Sequence[tuple[Case, Wrong | None]], hints: Mapping[str, str], others: Sequence[tuple[Case, Observation]]
) -> str:
    """A known mistake in every case, but for the sign or for a factor that the sizes of axes make."""
    wrongs = [(case, wrong) for case, wrong in arrays if wrong is not None and wrong.observed.any()]
    told = {
        (words, hints[slug])
        for slug in sorted({slug for case, _ in wrongs for slug in case.mistakes} & hints.keys())
        if (words := _but_for_a_factor([_against_mistake(case, slug, wrong) for case, wrong in wrongs]))
        and not _is_factor([_mistake_itself(case, slug, wrong) for case, wrong in wrongs])
        and (words != TURNED or all(_is_turned(case, slug, found) for case, found in others))
    }
    if len(told) != 1:
        return ""
    ((words, hint),) = told
    return f"Two things at once. {words} and this is left: {hint}"


def _is_turned(case: Case, slug: str, observation: Observation) -> bool:
    """Whether what a case returned, where it is wrong, is what the mistake returns with its sign turned round."""
    judged = [one for one in case.expected if one.kind in TESTABLE and "values" not in one.forgiven]
    found = [(one, observation.returned.get(one.name)) for one in judged]
    arrays = [(one, returned.array) for one, returned in found if returned is not None and returned.array is not None]
    pairs = [
        (-expected_array(replace(one, array=_mistaken(case, slug, one))), array)
        for one, array in arrays
        if array.shape != expected_array(one).shape or not right_places(one, array).all()
    ]
    return all(
        wanted.shape == array.shape and np.allclose(array, wanted, rtol=NEARLY, atol=NEARLY**2)
        for wanted, array in pairs
    )


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
    name = expectation.like or expectation.name
    found = mistake.returned.get(name) if isinstance(mistake, Observation) else None
    return expectation.array if found is None else found.array


def _is_factor(wrongs: Sequence[Wrong]) -> bool:
    """Whether all that is wrong is a sign or a factor: without it nothing else would be left."""
    tables = [{clue.kind: clue for clue in factor_clues(wrong)} for wrong in wrongs]
    found = [table["factor"] for table in tables if "factor" in table]
    return bool(found) and bool(factor_words(found, [w for w, t in zip(wrongs, tables, strict=True) if t]))


def _but_for_a_factor(wrongs: Sequence[Wrong]) -> str:
    tables = [{clue.kind: clue for clue in factor_clues(wrong)} for wrong in wrongs]
    if all("sign" in table for table in tables) and enough([table["sign"] for table in tables]):
        return TURNED
    if not all("factor" in table for table in tables):
        return ""
    found = [table["factor"] for table in tables]
    names = names_of(found, wrongs, divisions)
    positive = all(clue.number > 0 for clue in found)
    return f"{names[0]}," if len(names) == 1 and positive and enough(found) else ""


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


def describe_all(wrongs: Sequence[Wrong]) -> tuple[str, ...]:
    """What all of these show, told about the first of them.

    Where a coarse tolerance, or numbers of many sizes, let nothing be seen at all, a case has no say.
    """
    tables = [({(clue.kind, clue.detail): clue for clue in clues(wrong)}, wrong) for wrong in wrongs]
    if not tables or not tables[0][0]:
        return ()
    speaking = [(table, wrong) for table, wrong in tables if table or _is_right(wrong)]
    shared = [key for key in speaking[0][0] if all(key in table for table, _ in speaking)]
    for key in sorted(shared if 2 * len(speaking) >= len(tables) else (), key=lambda key: KINDS.index(key[0])):
        sentence = sentence_of([table[key] for table, _ in speaking], [wrong for _, wrong in speaking])
        if sentence:
            return (sentence,)
    return ()


def _is_right(wrong: Wrong) -> bool:
    """Whether this is no wrong array after all: its case fails for another cause."""
    expected = expected_array(wrong.expectation)
    return wrong.observed.shape == expected.shape and bool(right_places(wrong.expectation, wrong.observed).all())


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
        sizes |= expectation.named_sizes
    return dict(list(sizes.items())[:MAX_AXES])
