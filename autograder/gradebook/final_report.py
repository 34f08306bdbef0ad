"""What a course's rules made of a report: the final grade with its reasons. Containers of platforms need no more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.vocabulary.report import Report


@dataclass(frozen=True)
class Adjustment:
    """One change of a grade, or a comment on it; `item` is "" for the whole, None stands for no grade."""

    rule: str
    item: str
    before: float | None
    after: float | None
    reason: str


@dataclass(frozen=True)
class Final:
    """The grade after all rules; None where there is none to give, and the last reason says why.

    most   what can be earned in all; `points` is more only by extra credit
    """

    points: float | None
    adjustments: tuple[Adjustment, ...]
    most: float

    @property
    def is_excused(self) -> bool:
        """Whether its student is excused from the whole assignment."""
        return any(one.rule == "excused" and not one.item for one in self.adjustments)

    @property
    def excused_items(self) -> frozenset[str]:
        """The items that its student is excused from."""
        return frozenset(one.item for one in self.adjustments if one.rule == "excused")

    @property
    def marked(self) -> frozenset[str]:
        """The questions in words that a person has given points for."""
        return frozenset(one.item for one in self.adjustments if one.rule == "question" and one.after is not None)

    @property
    def reasons(self) -> str:
        """All reasons in one line."""
        return "; ".join(one.reason for one in self.adjustments)


@dataclass(frozen=True, kw_only=True)
class FinalReport(Report):
    """A report whose points are what a course's rules made of them; None where they leave no grade."""

    final: Final

    @property
    def points(self) -> float | None:
        """The final grade, which is the one that platforms get."""
        return self.final.points

    @property
    def max_points(self) -> float:
        """What the final grade is out of: with questions in words, where they count."""
        return self.final.most


def why_not_graded(report: Report) -> str:
    """Why a report has no points to export."""
    lost = next((item.message for item in report.items if item.points is None), "")
    return lost or (report.final.reasons if isinstance(report, FinalReport) else "")


def to_json(data: Mapping[str, Any] | Sequence[Any], indent: int | None = 1) -> str:
    """`data` as JSON in ASCII: no mark in a name can act on whoever prints the file, and none is lost."""
    return json.dumps(data, indent=indent, ensure_ascii=True) + "\n"
