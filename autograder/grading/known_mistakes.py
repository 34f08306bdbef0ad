"""Which known mistakes an answer is: hold what was observed against what each of them returns. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from autograder.grading.cases import Expectation
from autograder.grading.compare import NOTHING, compare, compare_one, expected_array, right_places, widened
from autograder.sandbox.observation import Observation, Raised, Returned

Seen = tuple[Sequence[Expectation], Mapping[str, Observation | Raised], Observation | Raised]


def is_mistake(
    expected: Sequence[Expectation], mistake: Observation | Raised | None, seen: Observation | Raised
) -> bool:
    """Whether `seen` is what the mistake returns in this case; None means that the mistake passes it.

    A stored mistake holds only what differs from the truth, so whatever it does not hold must be right.
    """
    if mistake is None:
        return isinstance(seen, Observation) and compare(expected, seen) is None
    if isinstance(mistake, Raised) or isinstance(seen, Raised):
        return isinstance(mistake, Raised) and isinstance(seen, Raised) and mistake.types == seen.types
    return all(_agrees(expectation, mistake, seen) for expectation in expected if not expectation.diagnosis)


def same_trace(
    expected: Sequence[Expectation], mistake: Observation | Raised | None, seen: Observation | Raised
) -> bool:
    """Whether the diagnoses agree too: they tell apart mistakes that return the same numbers."""
    if not isinstance(seen, Observation) or not isinstance(mistake, Observation):
        return True
    diagnoses = [expectation for expectation in expected if expectation.diagnosis]
    return all(mistake.facts.get(d.name, d.value) == seen.facts.get(d.name) for d in diagnoses)


def _agrees(expectation: Expectation, mistake: Observation, seen: Observation) -> bool:
    name = expectation.name
    if name in mistake.facts:
        return bool(mistake.facts[name] == seen.facts.get(name))
    if name not in mistake.returned:
        return compare_one(expectation, seen) is None
    return _same_return(expectation, mistake.returned[name], seen.returned.get(name, NOTHING))


def _same_return(expectation: Expectation, mistaken: Returned, seen: Returned) -> bool:
    if mistaken != seen:
        return False
    if mistaken.array is None or seen.array is None:
        return mistaken.array is seen.array
    wide, observed = widened(mistaken.array), widened(seen.array)
    scale = max(1.0, float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)))
    return bool(np.allclose(observed, wide, rtol=expectation.rtol, atol=expectation.atol * scale, equal_nan=True))


def matching_mistakes(
    cases: Iterable[Seen],
) -> list[str]:
    """The mistakes that return, in every one of these cases, what was seen; at least one case must be failed.

    An exception alone names nothing: of a mistake's only the type is stored, which many mistakes share. Where traces
    tell some of them apart, only those whose trace agrees are kept.
    """
    cases = list(cases)
    returned = {slug for _, known, _ in cases for slug, one in known.items() if isinstance(one, Observation)}
    slugs = sorted(returned)
    found = [s for s in slugs if all(is_mistake(expected, known.get(s), seen) for expected, known, seen in cases)]
    traced = [s for s in found if all(same_trace(expected, known.get(s), seen) for expected, known, seen in cases)]
    return traced or found


def one_that_explains(
    cases: Iterable[Seen],
) -> list[str]:
    """The one mistake that explains all that is wrong in these cases, where it is made in some of them only.

    Weaker evidence than an answer that is the mistake's everywhere: so it takes wrong values, the same trace, and that
    no other mistake has them.
    """
    wrong = [one for one in cases if isinstance(one[2], Raised) or compare(one[0], one[2]) is not None]
    found = matching_mistakes(wrong)
    return [
        slug
        for slug in found
        if len(found) == 1
        and any(_has_wrong_values(expected, known.get(slug)) for expected, known, _ in wrong)
        and all(same_trace(expected, known.get(slug), seen) for expected, known, seen in wrong)
    ]


def _has_wrong_values(expected: Sequence[Expectation], mistake: Observation | Raised | None) -> bool:
    """Whether a mistake is known by numbers, and not by a type, a shape or a missing graph alone."""
    stored = mistake.returned if isinstance(mistake, Observation) else {}
    return any(
        (one := stored.get(expectation.name)) is not None
        and one.array is not None
        and one.dtype == expectation.dtype
        and one.shape == expected_array(expectation).shape
        and not right_places(expectation, one.array).all()
        for expectation in expected
        if expectation.kind in ("value", "gradient")
    )
