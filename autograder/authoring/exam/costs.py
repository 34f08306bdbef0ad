"""What each mistake costs: which share of its function's points.

A function of which one costs more than half stands in `[costly]` of the contract, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autograder.authoring.exam.contract import CONTRACT, COSTLY, Contract
from autograder.authoring.exam.findings import Fate, Finding
from autograder.grading.items import Assignment
from autograder.vocabulary.text import number

MOST = 0.5
TOLD = 3  # mistakes of one function


@dataclass(frozen=True)
class Cost:
    """What one mistake, or one generated change, costs of its function.

    name   the slug of a mistake; `habit:…` or `parameter:…` of a change
    """

    name: str
    function: str
    lost: float
    of: float

    @property
    def share(self) -> float:
        """The share of the function's points."""
        return self.lost / self.of

    @property
    def is_costly(self) -> bool:
        """Whether it is more than half."""
        return self.share > MOST + 1e-9


def costs(assignment: Assignment, findings: Iterable[Finding], fates: Iterable[Fate]) -> list[Cost]:
    """What each mistake of the catalogue, each changed parameter and each habit costs; the highest share first."""
    whole: dict[str, float] = {}
    for item in assignment.items:
        whole[item.function] = whole.get(item.function, 0.0) + item.points
    known = [Cost(f.known.slug, f.known.function, f.lost, whole[f.known.function]) for f in findings]
    changes = [
        Cost(f.mutant.name, f.mutant.function, f.lost, whole[f.mutant.function])
        for f in fates
        if f.mutant.slug and not f.survived
    ]
    return sorted([*known, *changes], key=lambda cost: -cost.share)


def cost_complaints(found: Sequence[Cost], contract: Contract | None, *, all_tried: bool) -> list[str]:
    """A complaint for each function with a mistake of more than half that is not listed, or listed without one."""
    if contract is None or contract.costly is None:
        return []
    costly = _by_function(found)
    told = [
        f"Mistakes cost more than half of {function}: {_some(several)}. Where that is right, say why in [{COSTLY}] of "
        f"{CONTRACT}."
        for function, several in costly.items()
        if function not in contract.costly
    ]
    idle = sorted(contract.costly.keys() - costly.keys()) if all_tried else []
    where = f"is listed in [{COSTLY}] of {CONTRACT}, but no mistake costs more than half of it."
    return [*told, *(f"{function} {where}" for function in idle)]


def _by_function(found: Iterable[Cost]) -> dict[str, list[Cost]]:
    """The costly ones of each function that has any."""
    costly: dict[str, list[Cost]] = {}
    for cost in found:
        if cost.is_costly:
            costly.setdefault(cost.function, []).append(cost)
    return costly


def _some(several: Sequence[Cost]) -> str:
    """The costliest by name, and how many more there are."""
    most = {cost.name: cost for cost in reversed(several)}
    told = [f"{name} ({number(cost.lost)} of {number(cost.of)} points)" for name, cost in reversed(most.items())]
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    return ", ".join(told[:TOLD]) + more


def without_costly(contract: Contract | None, found: Iterable[Cost]) -> list[str]:
    """What an assignment that says nothing of costs is not held to."""
    costly = _by_function(found)
    if not costly or (contract is not None and contract.costly is not None):
        return []
    several = sum(map(len, costly.values()))
    return [f"{several} mistakes cost more than half of their function; [{COSTLY}] in {CONTRACT} would say why."]
