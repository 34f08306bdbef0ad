"""Grades that stand in a folder already, and what they become where items are worth other points by now.

Said before anything is graded: an item keeps the share of its points that it earned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.items import Assignment
from autograder.vocabulary.report import Report, from_bytes
from autograder.vocabulary.text import number, visible

MOST_NAMED = 10


@dataclass(frozen=True)
class ChangedPoints:
    """What other points of the items mean for the grades in a folder.

    items     item → (points in the reports, points now); 0 where it is new, or is gone
    grades    how many reports there are
    changes   a grade that is another one then: `ada 83 → 82`; between two where an item is new
    """

    items: Mapping[str, tuple[float, float]]
    grades: int
    changes: tuple[str, ...]

    @property
    def text(self) -> str:
        """All of it in two sentences."""
        items = ", ".join(f"{name} {number(before)} → {number(now)}" for name, (before, now) in self.items.items())
        named = ", ".join(self.changes[:MOST_NAMED])
        more = f" and {len(self.changes) - MOST_NAMED} more" if len(self.changes) > MOST_NAMED else ""
        count = f"Of {self.grades} grades {len(self.changes)} change"
        return f"Points are others than there ({items}). {count}: {named}{more}."


def changed_points(out: Path, assignment: Assignment) -> ChangedPoints | None:
    """What the assignment's points change in the grades that lie in `out`; None where that is nothing."""
    now = {item.id: item.points for item in assignment.items}
    items: dict[str, tuple[float, float]] = {}
    changes: list[str] = []
    reports = [report for report in _reports(out / "reports") if report.assignment == assignment.name]
    for report in reports:
        before = {item.item: item.max_points for item in report.items}
        items |= {
            name: (before.get(name, 0.0), now.get(name, 0.0))
            for name in {**now, **before}
            if before.get(name) != now.get(name)
        }
        if line := _change(report, now):
            changes.append(line)
    return ChangedPoints(items, len(reports), tuple(changes)) if changes else None


def _reports(folder: Path) -> Iterator[Report]:
    for path in sorted(folder.glob("*.json")):
        report = from_bytes(path.read_bytes())
        if report is not None:
            yield report


def _change(report: Report, now: Mapping[str, float]) -> str:
    """The student and both grades; "" where they are the same, or there was none."""
    if report.points is None:
        return ""
    shares = {item.item: (item.points or 0.0) / item.max_points for item in report.items if item.max_points}
    least = round(sum(share * now[name] for name, share in shares.items() if name in now), 2)
    most = round(least + sum(points for name, points in now.items() if name not in shares), 2)
    if least == most == report.points:
        return ""
    after = number(least) if least == most else f"{number(least)} to {number(most)}"
    return f"{visible(report.student, 40)} {number(report.points)} → {after}"
