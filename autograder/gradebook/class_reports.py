"""The reports of a class, as every export starts from them, and who of it stands in a platform's table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import BaseModel, Field, ValidationError

from autograder.gradebook.final_grades import Adjustment, Final
from autograder.gradebook.roster import Roster, alternatives, index, match
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import MOST, Report, read_report
from autograder.vocabulary.text import number, visible

AnyStudent = TypeVar("AnyStudent", bound=Report | Candidate)


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


class _Stored(BaseModel):
    """What a report's file gives besides, where rules were applied."""

    final: Annotated[float, Field(ge=0, lt=MOST)] | None
    final_max: Annotated[float, Field(ge=0, lt=MOST)] | None = None
    adjustments: tuple[Adjustment, ...] = ()


@dataclass(frozen=True)
class Found(Generic[AnyStudent]):
    """Which report belongs to which row of a table.

    rows      position of a row → the report of its student
    unknown   students with a report whom the table does not hold, or not clearly
    """

    rows: Mapping[int, AnyStudent]
    unknown: tuple[str, ...]


def stored_reports(folder: Path) -> list[Report]:
    """The reports that `grade` wrote into `folder`, by student, with the points that the grader gave.

    Raises UsageError where there are none, GraderFault where one cannot be read.
    """
    return _read(folder, lambda report, path: report)


def read_grades(folder: Path) -> list[Report]:
    """The same, with final grades where rules made some."""
    return _read(folder, _with_final)


def _read(folder: Path, made_of: Callable[[Report, Path], Report]) -> list[Report]:
    reports = []
    for path in (folder / "reports" if (folder / "reports").is_dir() else folder).glob("*.json"):
        report = read_report(path)
        if report is None:
            raise GraderFault(f"{path} is no report, or is damaged: grade the class again with --fresh.")
        reports.append(made_of(report, path))
    if not reports:
        raise UsageError(f"{folder} holds no reports: give the folder that `autograder grade … --out` wrote.")
    return sorted(reports, key=lambda report: report.student)


def _with_final(report: Report, path: Path) -> Report:
    """The report with the final grade that its file gives besides, where it gives one."""
    data = path.read_bytes()
    if "final" not in json.loads(data):
        return report
    try:
        stored = _Stored.model_validate_json(data, strict=True)
    except ValidationError as error:
        entry = ".".join(map(str, error.errors()[0]["loc"]))
        raise GraderFault(f"{path}: {entry} is none that the rules wrote: apply them again, then export.") from None
    most = report.max_points if stored.final_max is None else stored.final_max
    given = {each.name: getattr(report, each.name) for each in fields(report)}
    return FinalReport(**given, final=Final(stored.final, stored.adjustments, most))


def half_marked(reports: Iterable[Report]) -> str:
    """Of each question in words that has points for some and not for all: how many are left, and who; else ""."""
    finals = [report for report in reports if isinstance(report, FinalReport)]
    marked = {report.student: report.final.marked for report in finals if not report.final.is_excused}
    told = []
    for question in sorted(set().union(*marked.values())):
        if left := [student for student, questions in marked.items() if question not in questions]:
            counts = f"{len(marked) - len(left)} marked, {len(left)} left"
            told.append(f"{visible(question, 80)}: {counts}: {named(left)}")
    return f"HALF MARKED: {'; '.join(told)}." if told else ""


def find_rows(
    reports: Iterable[AnyStudent],
    keys: Iterable[frozenset[str]],
    roster: Roster | None = None,
    ids: Sequence[str] = (),
) -> Found[AnyStudent]:
    """Which of the rows, each known by its `keys`, belongs to which report; of two for one row, both are unknown.

    ids   of the rows, as reports of this platform have them: of such a report the id decides, or else the roster, and
          never a name; of any other report the roster decides before the name
    """
    known, by_id = index(keys), {one: at for at, one in enumerate(ids)}
    platforms = {one.partition(":")[0] for one in ids}
    claims: dict[int, list[AnyStudent]] = {}
    unknown = []
    for report in reports:
        names = alternatives(report.student, report.identity)
        if report.identity.partition(":")[0] in platforms:
            names = names[:1]
        person = roster.person(*names) if roster else None
        position = by_id.get(report.identity)
        if position is None and person is not None:
            hits = {known[one] for one in person.keys if one in known}
            position = hits.pop() if len(hits) == 1 else None
        if position is None:
            position = match(names[":" in report.identity :], known)  # a number means something on its platform alone
        if position is None:
            unknown.append(report.student)
        else:
            claims.setdefault(position, []).append(report)
    unknown += [report.student for claim in claims.values() if len(claim) > 1 for report in claim]
    return Found({at: claim[0] for at, claim in claims.items() if len(claim) == 1}, tuple(sorted(unknown)))


def common_maximum(reports: Sequence[Report]) -> float:
    """What the assignment is worth; raises GraderFault where reports of different versions lie side by side."""
    values = {report.max_points for report in reports}
    if len(values) > 1:
        worths = " and ".join(number(value) for value in sorted(values)[:2])
        raise GraderFault(f"Some of these reports are out of {worths} points: grade the class again with --fresh.")
    return values.pop()


def scale_factor(ours: float, theirs: float, assignment: str, platform: str, *, scale: bool) -> float:
    """What to multiply points by for a platform; raises UsageError where maxima differ and nobody asked to scale."""
    if theirs != ours and not (scale and theirs):  # converted to 0 points, everybody's grade would be 0
        worth = f"{number(theirs)} points in {platform} and {number(ours)} here"
        advice = "change it there, or convert with --scale" if theirs else "change it there"
        raise UsageError(f"{visible(assignment, 80)} is worth {worth}: {advice}.")
    return theirs / ours if ours else 1.0


def named(students: Sequence[str]) -> str:
    """Some names, as a sentence shows them."""
    more = f" and {len(students) - 10} more" if len(students) > 10 else ""
    return ", ".join(visible(student, 80) for student in students[:10]) + more
