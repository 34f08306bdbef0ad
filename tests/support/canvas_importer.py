"""What Canvas's gradebook importer does with a file, by the rules that its source shows."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field

NOT_AN_ASSIGNMENT = re.compile(r"(Unposted )?(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)")


@dataclass
class Course:
    """A course in Canvas. students: ID → (SIS user, login, name); assignments: id → (title, points); grades by both."""

    students: dict[str, tuple[str, str, str]]
    assignments: dict[str, tuple[str, float | None]]
    grades: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass
class Import:
    """What the importer would do."""

    changes: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    points: dict[str, str] = field(default_factory=dict)


def imported(data: bytes, course: Course) -> Import:
    """Read `data` as Canvas would; raises ValueError where it would refuse the file."""
    text = data.decode("utf-8-sig")
    first = text.splitlines()[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    header = rows[0]
    if len(header) <= 3 or "Student" not in header[0] or "ID" not in header[1]:
        raise ValueError("this is no gradebook")
    section = max((at for at, name in enumerate(header) if "Section" in name), default=0)
    if not section:
        raise ValueError("the last column about students must be Section")
    found = Import()
    columns = {at: _assignment(name, course, found) for at, name in enumerate(header) if at > section}
    read_only: set[int] = set()
    for row in rows[1:]:
        if not any(row) or all(not cell.strip() or re.match("Muted|Manual Posting", cell) for cell in row):
            continue
        if "Points Possible" in row[0]:
            read_only = {at for at in columns if "read only" in row[at]}
            found.points = {name: row[at] for at, name in columns.items() if name and at not in read_only}
            continue
        student = _student(row, header, course)
        if student is None:
            found.missing.append(row[0])
            continue
        for at, name in columns.items():
            before = course.grades.get((student, name), "")
            if name and at not in read_only and _value(row[at]) != _value(before):
                found.changes[student, name] = (before, row[at])
    return found


def _assignment(name: str, course: Course, found: Import) -> str:
    """The id of the assignment that a heading stands for: by id, by title, else a new one."""
    if NOT_AN_ASSIGNMENT.search(name):
        return ""
    by_id = re.search(r"\((\d+)\)$", name)
    if by_id and by_id[1] in course.assignments:
        return by_id[1]
    title = next((one for one, (title, _) in course.assignments.items() if title == name), None)
    if title is None:
        found.created.append(name)
    return title or name


def _student(row: list[str], header: list[str], course: Course) -> str | None:
    cells = dict(zip(header, row, strict=True))
    if cells["ID"] in course.students:
        return cells["ID"]
    wanted = (cells.get("SIS User ID"), cells.get("SIS Login ID"), cells["Student"])
    for at, value in enumerate(wanted):
        found = [student for student, known in course.students.items() if value and known[at] == value]
        if found:
            return found[0]
    return None


def _value(cell: str) -> str:
    cell = cell.strip()
    if cell.upper() == "EX":
        return "EX"
    if re.fullmatch(r"-?\d+([.,]\d+)?", cell):
        return f"{float(cell.replace(',', '.')):.2f}"
    return cell
