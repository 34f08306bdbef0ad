"""Read and write a folder of grades: reports, gradebook, what is about to change, final grades on students' pages.

One rule holds for whatever writes into such a folder: nobody's grade changes without being shown first. `grade_changes`
compares what the folder holds with what is about to be written; the caller shows it, and writes where somebody agreed.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from markupsafe import Markup

from autograder.gradebook.decisions import LINE
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.roster import named
from autograder.gradebook.rules import Rules
from autograder.grading.assignment import Assignment
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.files import file_stem, table_of, write_atomically
from autograder.vocabulary.report import MOST, Report, json_bytes, parsed, read_report, to_json
from autograder.vocabulary.text import harmless, number, visible

COLUMNS, FINAL_COLUMNS = ("student", "points", "max_points", "status"), ("final", "final_max", "adjustments")
ADJUSTMENTS = "adjustments.json"
NOT_GRADED = "not graded"
FINAL_SECTION = "<!-- final grade -->{}<!-- end of final grade -->\n"
EARNED = '<p class="total">'  # the final grade stands above the points that were earned


# Reading reports


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

    @property
    def excused(self) -> frozenset[str]:
        """The items that its student is excused from; "" is the whole assignment."""
        return frozenset(change.item for change in self.final.adjustments if change.rule == "excused")


def with_final(report: Report, finals: Mapping[str, Final]) -> Report:
    """Return the report with its final grade; as it is where rules made none."""
    final = finals.get(report.student)
    return report if final is None else FinalReport(**{**vars(report), "final": final})


def stored_reports(folder: Path, *, final: bool = False) -> list[Report]:
    """Read the reports that `grade` wrote into `folder`, by student, with the points that the grader gave.

    final    with what rules made of these points, where some were applied
    raises   UsageError where there are none, GraderFault where one cannot be read
    """
    reports = []
    for path in (folder / "reports" if (folder / "reports").is_dir() else folder).glob("*.json"):
        report = read_report(path)
        if report is None:
            raise GraderFault(f"{path} is no report, or is damaged: grade the class again with --fresh.")
        reports.append(_with_stored_final(path, report) if final else report)
    if not reports:
        raise UsageError(f"{folder} holds no reports: give the folder that `autograder grade … --out` wrote.")
    return sorted(reports, key=lambda report: report.student)


def read_grades(folder: Path) -> list[Report]:
    """Read the same, with final grades where rules made some."""
    return stored_reports(folder, final=True)


def _with_stored_final(path: Path, report: Report) -> Report:
    """Return the report that lies at `path` with the final grade in its file."""
    entries = json.loads(path.read_bytes())
    if "final" not in entries:
        return report
    try:
        given = {"points": entries["final"], "most": entries.get("final_max", report.max_points)}
        stored: Final = parsed(Final, given | {"adjustments": entries.get("adjustments", [])})
        if not all(0 <= points < MOST for points in (stored.points or 0.0, stored.most)):
            raise ValueError("out of all bounds")
    except (KeyError, TypeError, ValueError, OverflowError):
        fact = f"{path}: final is none that the rules wrote"
        raise GraderFault(f"{fact}: apply them again, then export.") from None
    return with_final(report, {report.student: stored})


def half_marked(reports: Iterable[Report]) -> str:
    """Say of each question in words that has points for some and not for all how many are left, and who; else ""."""
    finals = [report for report in reports if isinstance(report, FinalReport) and "" not in report.excused]
    counts = []
    for question in sorted({question for report in finals for question in report.final.marked}):
        if left := [report.student for report in finals if question not in report.final.marked]:
            counts.append(f"{visible(question, 80)}: {len(finals) - len(left)} marked, {len(left)} left: {named(left)}")
    return f"HALF MARKED: {'; '.join(counts)}." if counts else ""


def common_maximum(reports: Sequence[Report]) -> float:
    """Return what the assignment is worth; raises GraderFault where reports of different versions lie side by side."""
    values = {report.max_points for report in reports}
    if len(values) > 1:
        worths = " and ".join(number(value) for value in sorted(values)[:2])
        raise GraderFault(f"Some of these reports are out of {worths} points: grade the class again with --fresh.")
    return values.pop()


def scale_factor(ours: float, theirs: float, assignment: str, platform: str, *, scale: bool) -> float:
    """Return what to multiply points by for a platform; UsageError where maxima differ and nobody asked to scale."""
    if theirs != ours and not (scale and theirs):  # converted to 0 points, everybody's grade would be 0
        worth = f"{number(theirs)} points in {platform} and {number(ours)} here"
        advice = "change it there, or convert with --scale" if theirs else "change it there"
        raise UsageError(f"{visible(assignment, 80)} is worth {worth}: {advice}.")
    return theirs / ours if ours else 1.0


# The gradebook


class Gradebook:
    """Writes `grades.csv` row by row: one per student, in the order in which they are added."""

    def __init__(self, stream: TextIO, items: Sequence[str], *, final: bool = False) -> None:
        """Write the head: `COLUMNS`, one column per item, then those of final grades where rules make some."""
        self._items, self._final = items, final
        self._writer = csv.writer(stream, lineterminator="\n")
        columns = (*COLUMNS, *items, *(FINAL_COLUMNS if final else ()))
        self._writer.writerow([name_cell(name) for name in columns])

    def add(self, report: Report) -> None:
        """Write a student's row; a cell is empty where the grader failed.

        Raises GraderFault if the report holds an item that no column shows: the sum would hide it.
        """
        results = {result.item: result.points for result in report.items}
        if unknown := [item for item in results if item not in self._items]:
            raise GraderFault(
                f"The report of {visible(report.student, 80)} holds the item {visible(unknown[0], 80)}, "
                "which the assignment lacks: it was graded with another version. Grade again with --fresh."
            )
        points, most = (report.earned, report.earnable) if self._final else (report.points, report.max_points)
        cells = [name_cell(report.student), points_cell(points), number(most), report.status]
        cells += [points_cell(results.get(item)) for item in self._items]
        if self._final and isinstance(report, FinalReport):
            cells += [points_cell(report.points), number(report.max_points), name_cell(report.final.reasons)]
        self._writer.writerow(cells)

    def add_absent(self, student: str, status: str) -> None:
        """Write the row of somebody without a report: no points, and not even what there was to earn."""
        self._writer.writerow([name_cell(student), "", "", status, *[""] * len(self._items)])


def points_cell(points: float | None) -> str:
    """Spell points as the gradebook does; nothing where the grader failed."""
    return "" if points is None else number(points)


def name_cell(text: str) -> str:
    """Make a cell that a spreadsheet takes for text; line breaks stay, for the csv module to quote."""
    return visible(harmless(text), newlines=True)


# No grade changes in silence


@dataclass(frozen=True)
class Grade:
    """What a gradebook says of a student, as its cells spell it; `most` is what the final grade is out of."""

    points: str
    final: str
    status: str
    most: str

    @property
    def text(self) -> str:
        """The final grade, or why there is none."""
        return self.final or (self.status if self.status != "graded" else "none")


def stored_grades(out: Path) -> dict[str, Grade]:
    """Read the grades in a folder's `grades.csv`, by name as it spells it; nobody's where it holds none."""
    path, grades = out / "grades.csv", {}

    def spelled(cell: str) -> str:  # as `number` does, whatever a spreadsheet made of the cell
        with contextlib.suppress(ValueError):
            return number(float(cell.replace(",", ".")))
        return cell

    try:
        table = table_of(path.read_bytes(), path)
        for cells in table.rows:
            row = dict(zip(table.header, cells, strict=True))
            final, most = row.get("final", row["points"]), row.get("final_max", row["max_points"])
            status = row["status"].replace("_", " ")
            grades[row["student"]] = Grade(spelled(row["points"]), spelled(final), status, spelled(most))
    except (FileNotFoundError, UsageError, KeyError, ValueError):
        return {}
    return grades


def is_graded(out: Path) -> bool:
    """Tell whether a run has ended in the folder `out`."""
    return any((out / name).is_file() for name in ("grades.csv", "run.json"))


def grade_changes(
    out: Path, reports: Iterable[Report], rules: Rules | None, of_old: Rules | None
) -> tuple[list[str], list[str]]:
    """Word whose grade in `out` differs from these reports by the rules, as `ada 83 → 82`; a row that goes does, too.

    First those whose own new hand-in changed it, which is what it was graded for; then all others, where the rules as
    they are now give the old hand-in another grade than it had.

    of_old   the same rules, with the times of the hand-ins that lie there
    """

    def grade(report: Report, rules: Rules | None) -> Grade:
        report = with_final(report, {report.student: final_of(report, rules)} if rules else {})
        status = report.status.replace("_", " ")
        return Grade(points_cell(report.earned), points_cell(report.points), status, number(report.max_points))

    if not is_graded(out):
        return [], []
    left = stored_grades(out)
    anew: list[str] = []
    others: list[str] = []
    for report in reports:
        now, before = grade(report, rules), left.pop(name_cell(report.student), None)
        if before == now:
            continue
        path = out / "reports" / f"{file_stem(report.student)}.json"
        stored = read_report(path)
        if before is None and stored is not None:  # the gradebook is damaged, or gone
            before = grade(stored, None)
            with contextlib.suppress(GraderFault):
                before = grade(_with_stored_final(path, stored), None)
        if before in (None, now) or before.text == NOT_GRADED:
            continue
        asked = (
            stored is not None
            and now.text != NOT_GRADED
            and stored.identity in ("", report.identity)
            and stored.submission.sha256 != report.submission.sha256
            and grade(stored, of_old) == before
        )
        was, becomes, what = before.text, now.text, ""
        if was == becomes and before.most != now.most:
            was, becomes = (f"{grade.text} of {grade.most}" for grade in (before, now))
        elif was == becomes:
            was, becomes, what = before.points or "none", now.points or "none", "points "
        (anew if asked else others).append(f"{visible(report.student, 40)} {what}{was} → {becomes}")
    return anew, [*others, *(f"{visible(name, 40)} {before.text} → gone" for name, before in left.items())]


def refuse_another(out: Path, assignment: str) -> None:
    """Raise UsageError where a folder holds the grades of another assignment."""
    reports = map(read_report, sorted((out / "reports").glob("*.json")))
    held = next((report.assignment for report in reports if report is not None), assignment)
    if held != assignment:
        fact = f"{out} holds grades of {visible(held, 80)!r}, not of {assignment!r}"
        raise UsageError(f"{fact}: a folder belongs to one assignment. Give another --out.")


# Final grades


def write_finals(out: Path, reports: Sequence[Report], assignment: Assignment, rules: Rules | None) -> dict[str, Final]:
    """Write what the rules make of the reports, sorted: gradebook, reports, pages, adjustments.json; the finals.

    Without rules, all is as it was before an earlier run had some.
    """
    rules = rules.kept() if rules else None
    finals = {report.student: final_of(report, rules) for report in reports} if rules else {}
    described = {
        student: {"final": final.points, "final_max": final.most, "adjustments": [*map(asdict, final.adjustments)]}
        for student, final in sorted(finals.items())
    }
    for name, data in rules.given.items() if rules else ():
        _write_if_new(out / name, data)
    for report in reports:
        stem = file_stem(report.student)
        data = json_bytes(to_json(report) | described.get(report.student, {}))
        _write_if_new(out / "reports" / f"{stem}.json", data)
        with contextlib.suppress(FileNotFoundError):
            page = (out / "feedback" / f"{stem}.html").read_bytes().decode()
            final = finals.get(report.student)
            _write_if_new(out / "feedback" / f"{stem}.html", with_adjustments(page, final))
    stream = io.StringIO()
    gradebook = Gradebook(stream, [item.id for item in assignment.items], final=rules is not None)
    for report in sorted(reports, key=lambda report: report.student):
        gradebook.add(with_final(report, finals))
    _write_if_new(out / "grades.csv", stream.getvalue())
    if rules:
        content = {"schema": 1, "assignment": assignment.name, "students": described}
        _write_if_new(out / ADJUSTMENTS, json.dumps(content, indent=1, ensure_ascii=True) + "\n")
    else:
        (out / ADJUSTMENTS).unlink(missing_ok=True)
    return finals


def _write_if_new(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    write_atomically(path, data)


def with_adjustments(page: str, final: Final | None) -> str:
    """Make what the rules made of the grade the large number of a feedback page; the earned points stand below it.

    Comments of staff stand at their lines of the code. None takes away what an earlier run wrote there.
    """
    page = re.sub(FINAL_SECTION.format(".*?"), "", page, count=1, flags=re.DOTALL)
    page = re.sub("<!-- line -->.*?<!-- end of line -->", "", page, flags=re.DOTALL)
    if final is None or not final.adjustments:
        return page
    points, most = "No grade", "after the rules of the course"
    if final.points is not None:
        extra = ", with extra credit" if final.points > final.most else ""
        points, most = number(final.points), f"of {number(final.most)} points, the final grade{extra}"
    rows = Markup()
    for change in final.adjustments:
        reason = Markup("{}").format(visible(change.reason))
        if line := LINE.fullmatch(change.item):
            reason = Markup('<a href="#comment-{}-{}">{}</a>').format(line[1], line[2], reason)
            comment = visible(change.reason.partition(": ")[2])
            note = Markup('<span class="note staff" id="comment-{}-{}">{}\n</span>').format(line[1], line[2], comment)
            if span := span_of_line(page, line[1], line[2]):
                page = f"{page[: span[1]]}<!-- line -->{note}<!-- end of line -->{page[span[1] :]}"
        rows += Markup("<li>{}</li>\n").format(reason)
    section = Markup('<div class="final">\n<p><strong>{}</strong> {}</p>\n<ul>\n{}</ul>\n</div>')
    content = FINAL_SECTION.format(section.format(points, most, rows))
    return page.replace(EARNED, content + EARNED, 1)


def span_of_line(page: str, function: str, line: str) -> tuple[int, int] | None:
    """Find where a feedback page shows this line of a function; no text of a student holds a tag."""
    begin = page.find(f'<details class="listing" id="code-{function}">')
    begin = page.find(f' data-n="{line}">', begin, page.find("</pre>", begin)) if begin >= 0 else -1
    return (begin, page.index("\n</span>", begin) + len("\n</span>")) if begin >= 0 else None
