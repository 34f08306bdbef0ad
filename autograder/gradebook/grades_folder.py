"""Final grades, written into the folder that grading wrote: gradebook, reports and pages."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.gradebook import points_cell, to_csv
from autograder.gradebook.rules import Rules
from autograder.gradebook.standing import with_section, with_standing
from autograder.grading.items import Assignment
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import Report, json_bytes, to_json
from autograder.vocabulary.text import number, visible

ADJUSTMENTS = "adjustments.json"
BEGIN, END = "<!-- final grade -->", "<!-- end of final grade -->"
TOTAL = '<p class="total">'  # of what was earned: the final grade stands before it


def write_finals(out: Path, reports: Sequence[Report], assignment: Assignment, rules: Rules | None) -> dict[str, Final]:
    """Write what the rules make of the reports: gradebook, reports, pages, adjustments.json; the finals by student.

    Without rules, all is as it was before an earlier run had some.
    """
    rules = rules.kept() if rules else None
    finals = {report.student: final_of(report, rules) for report in reports} if rules else {}
    for name, data in rules.given.items() if rules else ():
        _write_if_new(out / name, data)
    for report in reports:
        _write_final(out, report, finals.get(report.student))
    items = [item.id for item in assignment.items]
    _write_if_new(out / "grades.csv", to_csv(reports, items, final_columns(finals) if rules else None))
    if rules:
        students = {student: _described(final) for student, final in sorted(finals.items())}
        described = {"schema": 1, "assignment": assignment.name, "students": students}
        _write_if_new(out / ADJUSTMENTS, json.dumps(described, indent=1, ensure_ascii=True) + "\n")
    else:
        (out / ADJUSTMENTS).unlink(missing_ok=True)
    return finals


def final_columns(finals: Mapping[str, Final]) -> dict[str, Callable[[str], str]]:
    """What the gradebook says of final grades, by column."""
    return {
        "final": lambda student: points_cell(finals[student].points),
        "final_max": lambda student: number(finals[student].most),
        "adjustments": lambda student: finals[student].reasons,
    }


def _write_final(out: Path, report: Report, final: Final | None) -> None:
    stem = file_stem(report.student)
    data = to_json(report)
    if final is not None:
        data |= _described(final)
    _write_if_new(out / "reports" / f"{stem}.json", json_bytes(data))
    page = out / "feedback" / f"{stem}.html"
    with contextlib.suppress(FileNotFoundError):
        text = with_standing(page.read_bytes().decode(), "")  # it was of other grades
        _write_if_new(page, with_final(text, final))


def _described(final: Final) -> dict[str, Any]:
    """What reports and adjustments.json say of it."""
    listed = [asdict(one) for one in final.adjustments]
    return {"final": final.points, "final_max": final.most, "adjustments": listed}


def _write_if_new(path: Path, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data:
            return
    write_atomically(path, data)


def with_final(page: str, final: Final | None) -> str:
    """A feedback page whose large number is what the rules made of the grade; the earned points stand below it.

    None takes away what an earlier run wrote there.
    """
    if final is None or not final.adjustments:
        return with_section(page, BEGIN, Markup(), END, TOTAL)
    points = "No grade" if final.points is None else number(final.points)
    most = "after the rules of the course"
    if final.points is not None:
        extra = ", with extra credit" if final.points > final.most else ""
        most = f"of {number(final.most)} points, the final grade{extra}"
    rows = Markup("").join(Markup("<li>{}</li>\n").format(visible(one.reason)) for one in final.adjustments)
    section = Markup('<div class="final">\n<p><strong>{}</strong> {}</p>\n<ul>\n{}</ul>\n</div>')
    return with_section(page, BEGIN, section.format(points, most, rows), END, TOTAL)
