"""What became of each thing that the exam tried: a known mistake, a right answer, a mutant; and what to say of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from autograder.authoring.exam.mutants import Mutant
from autograder.authoring.marks import marks
from autograder.grading.cases import Case
from autograder.vocabulary.report import Report

ROUNDED = "float32 keeps seven digits of what comes in, and what comes out is held to six"


@dataclass(frozen=True)
class Known:
    """A mistake of the catalogue."""

    slug: str
    function: str
    source: str


@dataclass(frozen=True)
class Finding:
    """What became of one mistake.

    lost      points lost on its own function
    spilt     points lost on other functions
    named     every name that the report gave
    lost_on   item → points lost on it
    """

    known: Known
    lost: float
    spilt: float
    named: frozenset[str]
    lost_on: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Known, report: Report) -> Finding:
        """What a report on all items says of a mistake."""
        lost_on = lost_points(report)
        own = {item.item for item in report.items if item.function == known.function}
        lost = sum(points for item, points in lost_on.items() if item in own)
        named = frozenset(slug for item in report.items for slug in item.mistakes)
        return cls(known, round(lost, 2), round(sum(lost_on.values()) - lost, 2), named, lost_on)

    @property
    def naming(self) -> str:
        """`rightly`, `wrongly` or `not`: a name that is not its own, beside its own, means one behaviour."""
        if not self.named:
            return "not"
        return "rightly" if self.known.slug in self.named else "wrongly"

    @property
    def complaints(self) -> list[str]:
        """What should not be: that it costs nothing, or costs elsewhere, or is called something else."""
        slug = self.known.slug
        found = []
        if self.lost == 0:
            found.append(f"{slug} is not caught.")
        if self.spilt:
            found.append(f"{slug} loses {self.spilt:g} points on other functions than {self.known.function}.")
        if self.naming == "wrongly":
            found.append(f"{slug} is called {', '.join(sorted(self.named))}.")
        return found


@dataclass(frozen=True)
class RightAnswer:
    """A right answer in another style, from the assignment's `right_answers/`, and what it was given."""

    name: str
    report: Report

    @property
    def is_accepted(self) -> bool:
        """Whether it earned all, and was told nothing."""
        silent = not any(item.hint or item.mistakes for item in self.report.items)
        return silent and self.report.points == self.report.max_points

    @property
    def complaints(self) -> list[str]:
        """What it lost first, where it was not accepted."""
        if self.is_accepted:
            return []
        first = next(item for item in self.report.items if item.verdict != "passed" or item.hint or item.mistakes)
        return [f"{self.name} is a right answer, but {first.item} is {first.verdict}: {first.message.splitlines()[0]}"]


@dataclass(frozen=True)
class Fate:
    """A mutant, and whether it kept all points of its function.

    lost_on   item → points lost on it; of public cases only, where the mutant is an operator's
    """

    mutant: Mutant
    survived: bool
    lost_on: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, mutant: Mutant, report: Report) -> Fate:
        """What a report on the items of its function says of a mutant."""
        return cls(mutant, report.points == report.max_points, lost_points(report))

    @property
    def lost(self) -> float:
        """Points lost on its function, as far as it was graded."""
        return round(sum(self.lost_on.values()), 2)

    @property
    def is_equivalent(self) -> bool:
        """Whether it loses nothing, and something says why."""
        return self.survived and bool(self.mutant.reason)

    @property
    def is_open(self) -> bool:
        """Whether it loses nothing and nobody has said why."""
        return self.survived and not self.mutant.reason

    @property
    def is_generated_and_open(self) -> bool:
        """Whether it is open, and a parameter's change or a habit."""
        return self.is_open and bool(self.mutant.slug)

    def excused(self, whole: Collection[str]) -> Fate:
        """With a reason where it only rounded an array; functions that answer `whole` numbers may choose by a digit."""
        mutant = self.mutant
        is_rounding = mutant.slug == "cast" and "np.asarray(" in mutant.after
        if not self.is_open or not is_rounding or mutant.function in whole:
            return self
        return replace(self, mutant=replace(mutant, reason=ROUNDED))

    @property
    def complaints(self) -> list[str]:
        """That it loses nothing, at a line that is not marked."""
        mutant = self.mutant
        kind = f" ({mutant.name})" if mutant.slug else ""
        where = f"line {mutant.line}, {mutant.function}{kind}"
        told = f"This change of the solution loses nothing. {where}: {mutant.before} → {mutant.after}"
        return [told] if self.is_open else []


def idle_marks(solution: str, fates: Iterable[Fate]) -> list[str]:
    """A complaint for each marked line of the solution at which no change keeps all points."""
    survived = {fate.mutant.line for fate in fates if fate.survived}
    return [
        f"Line {line} of the solution is marked as equivalent, but no change of it keeps all points: {reason}"
        for line, reason in marks(solution).items()
        if line not in survived
    ]


def fates_of(mutants: Iterable[Mutant], reports: Iterable[Report], cases: Iterable[Case]) -> list[Fate]:
    """What became of each mutant; of what only rounds an array the reason, but where whole numbers are answered."""
    whole = {case.function for case in cases for one in case.expected if one.dtype.startswith("int")}
    return [Fate.of(mutant, report).excused(whole) for mutant, report in zip(mutants, reports, strict=True)]


def lost_points(report: Report) -> dict[str, float]:
    """Item → points lost on it, for those that lost any."""
    lost = {item.item: round(item.max_points - (item.points or 0.0), 2) for item in report.items}
    return {item: points for item, points in lost.items() if points}


def unnamed(findings: Iterable[Finding]) -> list[str]:
    """Which mistakes lose points without being called by their names."""
    slugs = [one.known.slug for one in findings if one.lost and one.naming == "not"]
    told = "Caught but not named, so that students are not told their hints (no fault of the grading)"
    return [f"{told}: {', '.join(slugs)}."] if slugs else []
