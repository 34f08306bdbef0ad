"""The contract held against what was graded: every clause has a mistake, and an item of the clause catches it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autograder.authoring.exam.contract import Clause, Contract
from autograder.authoring.exam.findings import Fate, Finding
from autograder.grading.items import Assignment

Name = tuple[str, str]  # of a mistake or a generated change, and its function


@dataclass(frozen=True)
class Coverage:
    """How many clauses there are, how many of them a mistake tests, and how many are not graded, with the reason."""

    clauses: int
    tested: int
    not_graded: int


def clause_complaints(
    contract: Contract, assignment: Assignment, names: Iterable[Name], unfinished: Sequence[str] = ()
) -> list[str]:
    """What clauses lack or name wrongly, before anything is graded; `names` are all mistakes that there are.

    Drafts of clauses are none of it where their function is `unfinished`.
    """
    known = set(names)
    held = [clause for clause in contract.clauses if not (clause.is_open and clause.function in unfinished)]
    found = [(clause, what) for clause in held for what in _lacks(clause, assignment, known)]
    return [f"{contract.place(clause)} {what}." for clause, what in found]


def coverage(contract: Contract, lost_on: Mapping[Name, Sequence[Mapping[str, float]]]) -> tuple[Coverage, list[str]]:
    """The figures, and a complaint for each clause none of whose mistakes loses points on its items.

    `lost_on` says of each mistake that was graded, and of each place of a generated change, what it lost by item.
    """
    graded = [clause for clause in contract.clauses if not clause.not_graded and not clause.is_open]
    uncaught = [clause for clause in graded if not _is_caught(clause, lost_on)]
    silent = sum(bool(clause.not_graded) for clause in contract.clauses)
    counts = Coverage(len(contract.clauses), len(graded) - len(uncaught), silent)
    told = [
        f"{contract.place(clause)} is not tested: none of its mistakes ({', '.join(clause.mistakes)}) loses points on "
        f"{', '.join(clause.items)}."
        for clause in uncaught
    ]
    return counts, told


def losses(findings: Iterable[Finding], fates: Iterable[Fate]) -> dict[Name, list[Mapping[str, float]]]:
    """What each mistake and each generated change lost, by name and function."""
    found: dict[Name, list[Mapping[str, float]]] = {}
    for finding in findings:
        found.setdefault((finding.known.slug, finding.known.function), []).append(finding.lost_on)
    for fate in fates:
        if fate.mutant.slug:
            found.setdefault((fate.mutant.name, fate.mutant.function), []).append(fate.lost_on)
    return found


def _lacks(clause: Clause, assignment: Assignment, known: set[Name]) -> list[str]:
    if clause.function and clause.function not in assignment.functions:
        return [f"is about {clause.function}, which is no graded function"]
    if clause.is_open:
        return ["has neither mistakes nor a reason why it is not graded"]
    own = {name for name, function in known if function == clause.function or not clause.function}
    return [f"names the unknown mistake {name!r}{_known_of(name, own)}" for name in clause.mistakes if name not in own]


def _known_of(name: str, own: Collection[str]) -> str:
    """Which there are of its family: slugs, `habit:…` or `parameter:…`."""
    family = name.partition(":")[0] if ":" in name else ""
    several = sorted(one for one in own if one.partition(":")[0] == family or (not family and ":" not in one))
    close = difflib.get_close_matches(name, several, n=1)
    return f": {close[0]!r} is there" if close else f", and not one of {', '.join(several)}" if several else ""


def _is_caught(clause: Clause, lost_on: Mapping[Name, Sequence[Mapping[str, float]]]) -> bool:
    for (name, function), lost in lost_on.items():
        own = name in clause.mistakes and clause.function in ("", function)
        if own and any(items.get(item) for items in lost for item in clause.items):
            return True
    return False
