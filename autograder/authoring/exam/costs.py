"""What each mistake costs: which share of its function's points. One of more than half has its reason in a list.

[[costly]]                            # in the assignment's costly.toml
mistakes = ["delta-sign-flipped", "habit:truncation", "parameter:mode-ignored"]    # or mistake = "…"
function = "compute_deltas"           # needed for a habit or a parameter, which several functions have
reason = "the main value is wrong in every use: …"

Without `mistakes` an entry is of all those of its function.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring.exam.findings import Fate, Finding
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.text import number

COSTLY = "costly.toml"
MOST = 0.5
ALL = ""


@dataclass(frozen=True)
class Cost:
    """What one mistake, or one generated change, costs of its function.

    name   the slug of a mistake; `habit:…` or `parameter:…` of a change
    what   the lines that a change makes; "" of a mistake
    """

    name: str
    function: str
    lost: float
    of: float
    what: str = ""

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
        Cost(
            f.mutant.name,
            f.mutant.function,
            f.lost,
            whole[f.mutant.function],
            f.mutant.after,
        )
        for f in fates
        if f.mutant.slug and not f.survived
    ]
    return sorted([*known, *changes], key=lambda cost: -cost.share)


def read_costly(folder: Path) -> dict[tuple[str, str], str] | None:
    """(mistake or "" for all, function or "") → why it costs more than half; None where there is no list.

    Raises FixtureError where the list cannot be used.
    """
    path = folder / COSTLY
    if not path.is_file():
        return None
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))["costly"]
        return {(name, one.get("function", "")): one["reason"] for one in listed for name in _of_entry(one)}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise FixtureError(f"{path} cannot be used: {error}.") from error


def _of_entry(one: Mapping[str, Any]) -> list[str]:
    """The mistakes that an entry names."""
    if "mistakes" in one or "mistake" in one:
        return list(one["mistakes"]) if "mistakes" in one else [one["mistake"]]
    return [ALL] if one["function"] else []


def cost_complaints(
    found: Sequence[Cost], listed: Mapping[tuple[str, str], str] | None, *, all_tried: bool
) -> list[str]:
    """A complaint for each that costs more than half and is not listed, and for each that is listed and does not."""
    if listed is None:
        return []
    costly = [cost for cost in found if cost.is_costly]
    told = [
        f"{cost.name} costs {number(cost.lost)} of {number(cost.of)} points of {cost.function}, more than half, and is "
        f"not listed in {COSTLY}.{f' {cost.what}' if cost.what else ''}"
        for cost in costly
        if not {(cost.name, cost.function), (cost.name, ""), (ALL, cost.function)} & listed.keys()
    ]
    names = {(name, function) for cost in costly for name in (cost.name, ALL) for function in (cost.function, "")}
    stale = sorted(listed.keys() - names) if all_tried else []
    known = {cost.name for cost in found}
    return told + [
        _stale(name, function, known)
        if name
        else f"{function} is listed in {COSTLY}, but nothing costs more than half of it."
        for name, function in stale
    ]


def _stale(name: str, function: str, known: Collection[str]) -> str:
    """What is told of a mistake that is listed and does not cost so much, or of a name that is no mistake's."""
    close = difflib.get_close_matches(name, known if name not in known else (), n=1)
    meant = f" Is {close[0]!r} meant?" if close else ""
    return f"{name} is listed in {COSTLY}, but costs no more than half of {function or 'its function'}.{meant}"


def without_costly(folder: Path, found: Iterable[Cost]) -> list[str]:
    """What an assignment that has no list is not held to."""
    costly = sum(cost.is_costly for cost in found)
    if not costly or read_costly(folder) is not None:
        return []
    return [f"{costly} mistakes cost more than half of their function; {COSTLY} would say why."]
