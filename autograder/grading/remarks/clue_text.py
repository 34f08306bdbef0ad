"""A clue that all failing cases show → a sentence, where chance could hardly have made it.

That takes enough different values that are not all small whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from autograder.grading.remarks.clues import Wrong
from autograder.grading.remarks.evidence import Clue
from autograder.grading.remarks.named_numbers import factors, names_of, products

ENOUGH_BITS = 16.0
ENOUGH_PLACES = 8.0  # bits of evidence for where a difference lies
ENOUGH_VALUES = 3
BARE = "times what it should be."
SAME = "All your values are the same, but they should not be."
KINDS = (
    "axes-swapped", "shape-alone", "more-after", "more-missing", "left-out", "summed", "averaged", "never-finite",
    "holes-where-even", "holes", "zero", "sign", "factor", "offset", "function", "same", "transposed", "reshaped",
    "reversed", "late", "early", "absolute", "some-signs", "offset-along", "factor-along", "flat", "only-zeroed",
    "only", "disordered", "rounded",
)  # fmt: skip
WORDS = {
    "axes-swapped": "The values are right, but the axes stand in the order [{detail}].",
    "shape-alone": "The values are right and in the right order: the shape alone is not.",
    "more-after": "Your values along {detail} begin with all the expected ones, and there are more after them.",
    "more-missing": "Your values along {detail} are the expected ones, but they end too early.",
    "left-out": "What should stand at {detail} {number} is left out: all else is right.",
    "summed": "Your values are the expected ones, summed over {detail}.",
    "averaged": "Your values are the expected ones, averaged over {detail}.",
    "never-finite": "None of your values is finite.",
    "holes-where-even": "Yours is not a finite number only where the values along {detail} should all be the same.",
    "holes": "Yours is not a finite number only where it should be {detail}.",
    "zero": "All your values are zero.",
    "same": SAME,
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


def sentence_of(found: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    """The sentence for a clue that all cases show; "" where chance could have made it."""
    kind, detail = found[0].kind, found[0].detail
    if kind == "factor":
        return factor_words(found, wrongs)
    if kind == "offset":
        return _offset_words(found, wrongs)
    if not (sum(clue.bits for clue in found) >= ENOUGH_PLACES if kind in PLACES else enough(found)):
        return ""
    is_number, is_gradient = not wrongs[0].observed.ndim, wrongs[0].expectation.kind == "gradient"
    if (kind == "zero" and (is_number or is_gradient)) or (kind == "never-finite" and is_number):
        return ""  # the message has said so
    place = f"{found[0].number:g}"
    return WORDS[kind].format(detail=REGIONS.get(detail, detail), each=_each(wrongs[0]), number=place)


def enough(found: Sequence[Clue], free: int = 0) -> bool:
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


def factor_words(found: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    """By what factor all values are off; "" where chance could have made it."""
    each, turned = _each(wrongs[0]), {clue.number < 0 for clue in found}
    sign = " and has the wrong sign" if turned == {True} else ""
    constant = _constant(found, relative=True)
    names = names_of(found, wrongs, factors) if len(turned) == 1 else []
    if len(names) == 1 and enough(found, free=constant):
        if constant:
            return f"{each} is {found[0].number:.4g} times what it should be. Is it {names[0]}?"
        return f"{each} is {names[0]}{sign}.{_question(names[0])}"
    if constant and enough(found, free=1):
        return f"{each} is {found[0].number:.4g} {BARE}"
    if all(clue.values >= ENOUGH_VALUES for clue in found) and enough(found, free=len(found)):
        subject = "All your values" if wrongs[0].observed.ndim else "Your value and its gradient"
        return f"{subject} are off by the same factor. What are they divided by?"
    return ""


def _question(name: str) -> str:
    if " over " in name or " root " in name:
        return ""
    if " times " in name:
        return " Is there a sum where a mean should be?"
    return " Is something divided by once too often?" if " divided by " in name else ""


def _offset_words(found: Sequence[Clue], wrongs: Sequence[Wrong]) -> str:
    each, directions = _each(wrongs[0]), {clue.number > 0 for clue in found}
    if not wrongs[0].observed.ndim and len(found) < ENOUGH_VALUES:  # two scalars may be off alike for any reason
        return ""
    if len(directions) == 1 and enough(found, free=1):
        direction = "large" if directions == {True} else "small"
        names = names_of(found, wrongs, products)
        if not _constant(found, relative=False) and len(names) == 1:
            return f"{each} is too {direction} by {names[0]}."
        if _constant(found, relative=False):
            return f"{each} is {abs(found[0].number):.4g} too {direction}."
    if all(clue.values >= ENOUGH_VALUES for clue in found) and enough(found, free=len(found)):
        return "All your values are off by the same amount. What is added or subtracted there?"
    return ""
