"""Which known mistakes an answer is: hold what was observed against what each of them returns. Pure.

An answer that is none of them gets a fingerprint, by which staff see who gave the same one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.grading.cases import Case, Expectation
from autograder.grading.compare import NOTHING, compare, compare_one, error_holds, widened
from autograder.grading.witnesses import fault_of
from autograder.sandbox.calls import Observation, Raised, Returned

STEP = 8.0  # tolerances: closer sums are one, and rounding seldom falls between two that differ by float noise alone
WAVES = (0.0, 1.0, 5**0.5)  # three sums over all values, each with other weights: no two answers share them by chance
LARGEST = 1e30

MAX_NAMED = 3

Answer = Observation | Raised
Seen = tuple[Sequence[Expectation], Mapping[str, Answer], Answer]
Answered = tuple[Case, Seen]


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
    diagnoses = [expectation for expectation in expected if expectation.explains("fact")]
    return all(mistake.facts.get(d.name, d.value) == seen.facts.get(d.name) for d in diagnoses)


def _agrees(expectation: Expectation, mistake: Observation, seen: Observation) -> bool:
    name = expectation.name
    if name in mistake.facts:
        found = fact_seen(expectation, seen)
        return _same_error(expectation, mistake.facts[name], found) or bool(mistake.facts[name] == found)
    if name not in mistake.returned:
        return compare_one(expectation, seen) is None
    return _same_return(expectation, mistake.returned[name], seen.returned.get(name, NOTHING))


def _same_error(expectation: Expectation, mistaken: Any, found: Any) -> bool:
    """Whether two errors break the same part of what was asked for, in whatever words: the type, or what is named."""
    if expectation.kind != "error" or not isinstance(mistaken, dict) or not isinstance(found, dict):
        return False
    return _kind_of(mistaken) == _kind_of(found) and not error_holds(expectation, found)


def _kind_of(error: Mapping[str, Any]) -> Any:
    types = error.get("types")
    return types[0] if isinstance(types, list) and types else None


def fact_seen(expectation: Expectation, seen: Observation) -> Any:
    """The fact of that name: as the probe says, or, of a student's own example, as found here."""
    if expectation.kind == "witness":
        return fault_of(expectation.value, seen.returned)
    return seen.facts.get(expectation.name)


def _same_return(expectation: Expectation, mistaken: Returned, seen: Returned) -> bool:
    if mistaken != seen:
        return False
    if mistaken.array is None or seen.array is None:
        return mistaken.array is seen.array
    wide, observed = widened(mistaken.array), widened(seen.array)
    scale = max(1.0, float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)))
    return bool(np.allclose(observed, wide, rtol=expectation.rtol, atol=expectation.atol * scale, equal_nan=True))


def matching_mistakes(cases: Iterable[Seen]) -> list[str]:
    """The mistakes that return, in every one of these cases, what was seen; at least one case must be failed.

    An exception alone names nothing: of a mistake's only the type is stored, which many mistakes share. Where traces
    tell some of them apart, only those whose trace agrees are kept.
    """
    cases = list(cases)
    passed = [is_mistake(expected, None, seen) for expected, _, seen in cases]  # once for all that pass these cases
    if all(passed):
        return []
    slugs = sorted({slug for _, known, _ in cases for slug, one in known.items() if isinstance(one, Observation)})

    def agrees(slug: str) -> bool:
        return all(
            is_mistake(expected, known[slug], seen) if slug in known else right
            for (expected, known, seen), right in zip(cases, passed, strict=True)
        )

    found = [slug for slug in slugs if agrees(slug)]
    traced = [s for s in found if all(same_trace(expected, known.get(s), seen) for expected, known, seen in cases)]
    return traced or found


def names_of_items(cases: Sequence[Case], answers: Mapping[str, Answer | None]) -> dict[str, tuple[str, ...]]:
    """The mistakes that explain these cases of one function, by the item; none where a case has no answer.

    Which arguments are refused and what comes back otherwise are two things: a check that is missing makes no value
    wrong, and no wrong value lets an argument pass. So two mistakes may be there at once, one of each; both are named
    where each explains all cases of its own and changes none of the other's. Any other two that share the cases
    between them could as well be one that nobody knows.
    """
    found = ((case, answers[case.id]) for case in cases)
    answered = [(case, (case.expected, case.mistakes, seen)) for case, seen in found if seen]
    items = list(dict.fromkeys(case.item for case in cases))
    if len(answered) < len(cases):
        return dict.fromkeys(items, ())
    named = _few(matching_mistakes(seen for _, seen in answered))
    return dict.fromkeys(items, named) if named else _names_of_two(items, answered)


def _names_of_two(items: Sequence[str], answered: Sequence[Answered]) -> dict[str, tuple[str, ...]]:
    """One mistake in what is refused and one in everything else, each on its own items; no item may be of both."""
    refusals = [one for one in answered if _is_refusal(one[0])]
    others = [one for one in answered if not _is_refusal(one[0])]
    of_refusals, of_others = _names_of_part(refusals, others), _names_of_part(others, refusals)
    if not of_refusals or not of_others:
        return dict.fromkeys(items, ())
    several = [{_is_refusal(case) for case, _ in answered if case.item == item} for item in items]
    return {
        item: () if len(kinds) > 1 else of_refusals if True in kinds else of_others
        for item, kinds in zip(items, several, strict=True)
    }


def _names_of_part(part: Sequence[Answered], rest: Sequence[Answered]) -> tuple[str, ...]:
    """The mistakes that explain this part, and that leave the rest as it should be."""
    elsewhere = {slug for case, _ in rest for slug in case.mistakes}
    return _few([slug for slug in matching_mistakes(seen for _, seen in part) if slug not in elsewhere])


def _is_refusal(case: Case) -> bool:
    return any(expectation.kind == "error" for expectation in case.expected)


def _few(named: Sequence[str]) -> tuple[str, ...]:
    """The names, or none where there are so many that they tell nothing."""
    return tuple(named) if len(named) <= MAX_NAMED else ()


def fingerprint(cases: Iterable[tuple[str, Sequence[Expectation], Observation | Raised | None]]) -> str:
    """One name for a wrong answer: of the cases (id, what is expected, what was seen), what is right and what is not.

    Two answers share it that return the same values, as far as the cases' tolerances tell, in the same cases. It tells
    no value to who cannot guess all of them; still it is for staff alone, since hidden cases count.
    """
    told = [[name, _told(expected, seen)] for name, expected, seen in cases]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _told(expected: Sequence[Expectation], seen: Observation | Raised | None) -> Any:
    if seen is None:
        return "no answer"
    if isinstance(seen, Raised):
        return ["raised", seen.types[0]]
    return [[one.name, _mark(one, seen)] for one in expected if not one.diagnosis]


def _mark(expectation: Expectation, seen: Observation) -> Any:
    if compare_one(expectation, seen) is None:
        return "right"
    if expectation.kind in ("fact", "error", "witness"):
        found = fact_seen(expectation, seen)
        return _kind_of(found) if expectation.kind == "error" and isinstance(found, dict) else found
    returned = seen.returned.get(expectation.name, NOTHING)
    graph = returned.requires_grad if expectation.attached is not None else None
    return [returned.kind, returned.dtype, list(returned.shape), graph, _values(expectation, returned)]


def _values(expectation: Expectation, returned: Returned) -> list[Any]:
    """Weighted sums of the values in steps of the tolerance, and which of them are not finite."""
    if returned.array is None or returned.array.size == 0:
        return []
    wide = widened(returned.array).ravel()
    finite = np.isfinite(wide)
    values = np.clip(np.where(finite, wide, 0.0), -LARGEST, LARGEST)
    scale = 2.0 ** np.ceil(np.log2(max(1e-30, float(np.abs(values).max()))))  # a power of 2, which noise leaves alone
    step = STEP * (expectation.atol + expectation.rtol * scale) or 1e-6 * scale
    places = np.arange(1, values.size + 1)
    sums = [float(values @ np.cos(wave * places)) / np.sqrt(values.size) for wave in WAVES]
    strange = hashlib.sha256(np.where(finite, 0, np.where(np.isnan(wide), 1, 2)).astype(np.int8).tobytes())
    return [*(round(one / step) for one in sums), "" if finite.all() else strange.hexdigest()[:16]]
