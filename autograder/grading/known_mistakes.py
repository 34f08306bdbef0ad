"""Name the known mistakes that an answer is: compare what was observed with what each of them returns. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.grading.compare import NOTHING, compare, compare_one, error_holds, fault_of, widened
from autograder.grading.fixtures import Case, Expectation
from autograder.sandbox.calls import Observation, Raised

MAX_NAMED = 3

Answer = Observation | Raised
Seen = tuple[Case, Answer, bool]  # what a case saw, and whether that is right


def names_of_items(cases: Sequence[Case], answers: Mapping[str, Answer | None]) -> dict[str, tuple[str, ...]]:
    """Name the mistakes that explain these cases of one function, by item; none where a case has no answer.

    One mistake that explains all cases is the name of every item. Else two faults may be there at once: a mistake is
    borne out where every case that it changes shows what it returns there, and it names the items all of whose wrong
    cases such mistakes explain. Two that share the wrong cases of what both change could be one that nobody knows.
    Empty arrays, which many mistakes return, name none.
    """
    items = list(dict.fromkeys(case.item for case in cases))
    seen = [(case, a, is_mistake(case.expected, None, a)) for case in cases if (a := answers[case.id]) is not None]
    wrong = [(case, answer) for case, answer, right in seen if not right]
    if len(seen) < len(cases) or not any(_says_something(case, answer) for case, answer in wrong):
        return dict.fromkeys(items, ())
    if names := _few(matching_mistakes(seen)):
        return dict.fromkeys(items, names)
    names_by_item = {}
    for item in items:
        known = [set(case.mistakes) for case, _ in wrong if case.item == item]
        changed = {slug: [one for one in seen if slug in one[0].mistakes] for slug in set().union(*known)}
        borne_out = {slug for slug, cases_of in changed.items() if slug in matching_mistakes(cases_of)}
        names_by_item[item] = _few(sorted(borne_out)) if all(slugs & borne_out for slugs in known) else ()
    return names_by_item


def _says_something(case: Case, answer: Answer) -> bool:
    if isinstance(answer, Raised):
        return True
    names = [expectation.name for expectation in case.expected if expectation.kind in ("value", "gradient")]
    arrays = [answer.returned[name].array for name in names if name in answer.returned]
    return not arrays or any(array is None or array.size for array in arrays)


def _few(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, or none where there are so many that they tell nothing."""
    return tuple(names) if len(names) <= MAX_NAMED else ()


def matching_mistakes(cases: Sequence[Seen]) -> list[str]:
    """Name the mistakes that return, in every one of these cases, what was seen; at least one case must be failed.

    An exception alone names nothing: of a mistake's only the type is stored, which many mistakes share. Where traces
    tell some of them apart, only those whose trace agrees are kept.
    """
    if all(right for _, _, right in cases):
        return []
    told = {slug for case, _, _ in cases for slug, seen in case.mistakes.items() if isinstance(seen, Observation)}
    for case, _, right in cases:
        if not right:  # one that passes a case which failed is no candidate
            told &= case.mistakes.keys()
    names = [
        slug
        for slug in sorted(told)
        if all(is_mistake(c.expected, c.mistakes[slug], a) if slug in c.mistakes else right for c, a, right in cases)
    ]
    traced = [slug for slug in names if all(same_trace(c.expected, c.mistakes.get(slug), a) for c, a, _ in cases)]
    return traced or names


def is_mistake(expected: Sequence[Expectation], mistake: Answer | None, seen: Answer) -> bool:
    """Tell whether `seen` is what the mistake returns in this case; None means that the mistake passes it.

    A stored mistake holds only what differs from the truth, so whatever it does not hold must be right.
    """
    if mistake is None:
        return isinstance(seen, Observation) and compare(expected, seen) is None
    if isinstance(mistake, Raised) or isinstance(seen, Raised):
        return isinstance(mistake, Raised) and isinstance(seen, Raised) and mistake.types == seen.types
    return all(_agrees(expectation, mistake, seen) for expectation in expected if not expectation.diagnosis)


def same_trace(expected: Sequence[Expectation], mistake: Answer | None, seen: Answer) -> bool:
    """Tell whether the diagnoses agree too: they tell apart mistakes that return the same numbers."""
    if not isinstance(seen, Observation) or not isinstance(mistake, Observation):
        return True
    diagnoses = [expectation for expectation in expected if expectation.explains("fact")]
    return all(mistake.facts.get(d.name, d.value) == seen.facts.get(d.name) for d in diagnoses)


def _agrees(expectation: Expectation, mistake: Observation, seen: Observation) -> bool:
    name = expectation.name
    if name in mistake.facts:
        mistaken, fact = mistake.facts[name], fact_seen(expectation, seen)
        if expectation.kind == "error" and isinstance(mistaken, dict) and isinstance(fact, dict):
            # the same part of what was asked for is missing, in whatever words: the type, or what is named
            same_part = _error_type(mistaken) == _error_type(fact) and not error_holds(expectation, fact)
            return same_part or mistaken == fact
        return bool(mistaken == fact)
    if name not in mistake.returned:
        return compare_one(expectation, seen) is None
    mistaken, returned = mistake.returned[name], seen.returned.get(name, NOTHING)
    if mistaken != returned or mistaken.array is None or returned.array is None:
        return mistaken == returned and mistaken.array is returned.array
    wide, observed = widened(mistaken.array), widened(returned.array)
    scale = max(1.0, float(np.abs(wide[np.isfinite(wide)]).max(initial=0.0)))
    return bool(np.allclose(observed, wide, rtol=expectation.rtol, atol=expectation.atol * scale, equal_nan=True))


def _error_type(error: Mapping[str, Any]) -> Any:
    types = error.get("types")
    return types[0] if isinstance(types, list) and types else None


def fact_seen(expectation: Expectation, seen: Observation) -> Any:
    """Return the fact of that name: as the probe says, or, of a student's own example, as it is judged here."""
    if expectation.kind == "witness":
        return fault_of(expectation.value, seen.returned)
    return seen.facts.get(expectation.name)
