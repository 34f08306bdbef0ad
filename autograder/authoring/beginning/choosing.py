"""Of all that may be wrong in a function what some case tells from a right answer: a catalogue, and violations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from autograder.authoring.beginning.changes import Variant, variants
from autograder.authoring.beginning.clauses import Violation
from autograder.authoring.beginning.likely_mistakes import Candidate, candidates
from autograder.authoring.beginning.signatures import Function
from autograder.authoring.catalogue import Correct, Mistake
from autograder.authoring.fixtures.agreement import with_mistakes
from autograder.grading.cases import Case
from autograder.grading.items import Assignment
from autograder.sandbox.observation import Observation, Raised
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError

MOST = {"parameter": 2, "likely": 4, "habit": 1}  # mistakes of one function
Seen = list[tuple[Case, Observation | Raised]]


@dataclass
class Choice:
    """What was chosen of one function so far."""

    mistakes: list[Candidate] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    _told_apart: list[object] = field(default_factory=list)

    def offer(self, variant: Variant, seen: Seen) -> bool:
        """Take it, where it does what no mistake does that was taken before; whether that is so."""
        does = [(case.id, _shown(one)) for case, one in seen]
        entry = variant.candidate
        if entry is None or does in self._told_apart or entry.slug in [one.slug for one in self.mistakes]:
            return False
        self._told_apart.append(does)
        self.mistakes.append(entry)
        return True


def choose(
    assignment: Assignment, cases: Sequence[Case], solution: str, function: Function, sandbox: Sandbox
) -> Choice:
    """Mistakes that the cases tell from each other, and what every change that they notice violates."""
    changed = list(variants(solution, function))
    families = {
        "parameter": [one for one in changed if one.name.startswith("parameter:")],
        "likely": list(_likely(solution, function)),
        "habit": [one for one in changed if one.name.startswith("habit:")],
    }
    choice = Choice()
    for family, several in families.items():
        count = 0
        for one in several:
            if family == "likely" and count == MOST[family]:
                break
            if seen := _seen(assignment, cases, function, one, sandbox):
                taken = count < MOST[family] and choice.offer(one, seen)
                count += taken
                if taken or family != "likely":
                    choice.violations.append(_violation(one, seen))
    return choice


def _likely(solution: str, function: Function) -> Iterator[Variant]:
    correct = Correct.from_solution(solution, function.name).source
    for one in candidates(correct, function):
        about = frozenset(a.name for a in function.arguments if re.search(rf"\b{re.escape(a.name)}\b", one.right))
        yield Variant(one.slug, one.text(correct), about, one)


def _seen(
    assignment: Assignment, cases: Sequence[Case], function: Function, variant: Variant, sandbox: Sandbox
) -> Seen:
    """What it does in each case where that is not right; nothing where it is right, or only ever raises."""
    mistake = Mistake("tried", function.name, "", variant.text)
    try:
        told = with_mistakes(assignment, cases, [mistake], sandbox)
    except FixtureError:
        return []  # it does not end, or ends the worker
    seen = [(case, case.mistakes["tried"]) for case in told if "tried" in case.mistakes]
    return [] if all(isinstance(one, Raised) for _, one in seen) else seen


def _violation(variant: Variant, seen: Seen) -> Violation:
    items = frozenset(case.item.rpartition("-")[2] for case, _ in seen)
    return Violation(variant.name, variant.arguments, items, any(_is_other_kind(case, one) for case, one in seen))


def _is_other_kind(case: Case, seen: Observation | Raised) -> bool:
    """Whether what came back has another shape, dtype or type."""
    if isinstance(seen, Raised):
        return False
    wanted = {one.name: ("tensor", one.array.shape, one.dtype) for one in case.expected if one.array is not None}
    found = {name: (one.kind, one.shape, one.dtype) for name, one in seen.returned.items() if name in wanted}
    return "kind" in seen.facts or any(one != wanted[name] for name, one in found.items())


def _shown(seen: Observation | Raised) -> object:
    if isinstance(seen, Raised):
        return seen.types
    arrays = {
        n: (r.shape, r.dtype, r.array.tobytes() if r.array is not None else b"") for n, r in seen.returned.items()
    }
    return arrays, seen.facts
