"""Canvas: its download of a class is read; its exported gradebook is cut down to our students and one assignment.

What Canvas's importer does with a file decides what stands in ours. It finds students by ID first, so every row keeps
the ids of the export. It makes a new assignment of a heading that it does not know, so the heading must be one of the
export. It clears a grade where a cell is empty, so a cell that we have nothing for keeps what it holds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.gradebook.class_reports import common_maximum, find_rows
from autograder.gradebook.gradebook import reads_as_formula
from autograder.gradebook.roster import Roster, keys_of
from autograder.platforms.hand_in import HandIn, is_folder, module_and_notebook
from autograder.submissions.submission import CAPS, shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.report import Report
from autograder.vocabulary.rows import Table
from autograder.vocabulary.text import number, visible

POINTS_POSSIBLE = "    Points Possible"
MAX_INFO_COLUMNS = 9
COMPUTED = re.compile(r"(unposted )?(current|final) (score|points|grade)|override (score|grade|status)", re.IGNORECASE)
NO_STUDENT = re.compile(r"|muted|manual posting.*", re.IGNORECASE)
FILE_NAME = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_(?P<file>\d+)_(?P<rest>.+)", re.DOTALL)


@dataclass(frozen=True)
class CanvasExport:
    """The file for Canvas, and what its reader should know.

    kept      students whose cell stands as it was: excused, or without a grade of ours
    """

    text: str
    graded: int
    unknown: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True)
class _Columns:
    """Where in a gradebook things stand."""

    info: int
    id: int
    assignment: int


def canvas_csv(
    reports: Sequence[Report], gradebook: Table, assignment: str, roster: Roster | None = None, *, scale: bool = False
) -> CanvasExport:
    """The gradebook for Canvas to import.

    gradebook    what Canvas exported for this course
    assignment   a heading of it, `Title (123456)`
    scale        convert to the points that the assignment is worth in Canvas, where that differs
    raises       UsageError where the gradebook is none, lacks the assignment, or is worth other points
    """
    columns = _columns(gradebook, assignment)
    possible, students = _parts(gradebook, columns)
    decimal = _decimal(gradebook)
    factor = _factor(common_maximum(reports), possible, assignment, scale=scale)
    found = find_rows(reports, [_keys(row, gradebook, columns) for row in students], roster)
    rows, kept = [], []
    for position, row in enumerate(students):
        report, cell = found.rows.get(position), row[columns.assignment]
        points = None if report is None or cell.strip().upper() == "EX" else report.points
        if points is None:
            kept.append(row[0])
        else:
            cell = number(points * factor).replace(".", decimal)
        rows.append([*_harmless(row[: columns.info], columns.id), cell])
    top = [*gradebook.header[: columns.info], gradebook.header[columns.assignment]]
    worth = number(common_maximum(reports)).replace(".", decimal) if possible is None else possible
    second = [POINTS_POSSIBLE, *[""] * (columns.info - 1), worth]
    graded = len(students) - len(kept)
    return CanvasExport(gradebook.text([top, second, *rows]), graded, found.unknown, tuple(kept))


def _columns(gradebook: Table, assignment: str) -> _Columns:
    header = gradebook.header
    identity = next((at for at, name in enumerate(header[:3]) if name.strip() == "ID"), -1)
    section = next((at for at, name in enumerate(header[:MAX_INFO_COLUMNS]) if "Section" in name), -1)
    if identity < 1 or section < identity or not ("Student" in header[0] or "LastName" in header[0]):
        raise UsageError("The gradebook has no columns Student, ID and Section: export it from Canvas as it is.")
    offered = [name for name in header[section + 1 :] if re.search(r"\(\d+\)\s*$", name) and not COMPUTED.search(name)]
    if header.count(assignment) != 1 or assignment not in offered:
        known = "; ".join(visible(name, 80) for name in offered) or "none"
        raise UsageError(f"The gradebook has no assignment {visible(assignment, 80)!r}. It has: {known}.")
    return _Columns(section + 1, identity, header.index(assignment))


def _parts(gradebook: Table, columns: _Columns) -> tuple[str | None, list[tuple[str, ...]]]:
    """What the assignment is worth in Canvas, and the rows of students. A row counts as one's where it has an ID."""
    possible: str | None = None
    students = []
    for row in gradebook.rows:
        if row[columns.id].strip():
            students.append(row)
        elif "Points Possible" in row[0]:
            possible = row[columns.assignment].strip() or None
        elif not NO_STUDENT.fullmatch(row[columns.assignment].strip()):
            raise UsageError(f"A row of the gradebook has no ID: {visible(row[0], 80)!r}. Export it from Canvas again.")
    if possible and "read only" in possible:
        raise UsageError("Canvas does not let this column be imported: it is read only.")
    if trap := next((row[0] for row in students if "Points Possible" in row[0]), ""):
        raise UsageError(f"Canvas would take the student {visible(trap, 80)!r} for the row of points: change the name.")
    return possible, students


def _keys(row: Sequence[str], gradebook: Table, columns: _Columns) -> frozenset[str]:
    by_name = {row[0]} if columns.id == 1 else {f"{row[0]}, {row[1]}"}
    ids = {row[at] for at in range(columns.id, columns.info) if "Section" not in gradebook.header[at]}
    return keys_of(by_name | ids)


def _harmless(cells: Sequence[str], identity: int) -> list[str]:
    """The cells as Canvas wrote them, but none that a spreadsheet would run; Canvas finds the student by ID."""
    return [cell if at == identity and cell.isdigit() else _no_formula(cell) for at, cell in enumerate(cells)]


def _no_formula(cell: str) -> str:
    return f"'{cell}" if reads_as_formula(cell) else cell


def _decimal(gradebook: Table) -> str:
    """The decimal mark of the file: a comma only where semicolons leave it free and some number has one."""
    comma = any(re.fullmatch(r"\d+,\d+", cell.strip()) for row in gradebook.rows for cell in row)
    return "," if comma and gradebook.delimiter != "," else "."


def _factor(ours: float, possible: str | None, assignment: str, *, scale: bool) -> float:
    try:
        theirs = ours if possible is None else float(possible.replace(",", "."))
    except ValueError:
        worth = visible(possible or "", 40)
        raise UsageError(f"What {visible(assignment, 80)} is worth in Canvas is no number: {worth!r}.") from None
    if theirs != ours and not scale:
        worth = f"{number(theirs)} points in Canvas and {number(ours)} here"
        raise UsageError(f"{visible(assignment, 80)} is worth {worth}: change it there, or convert with --scale.")
    return theirs / ours if ours else 1.0


# The download of a class


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The files of a download that are among these; none where nobody handed in what can be graded."""
    files = [entry for entry in entries if not is_folder(entry) and FILE_NAME.fullmatch(entry.name)]
    return files if any(Path(entry.name).suffix.lower() in CAPS for entry in files) else []


def hand_ins(files: Sequence[os.DirEntry[str]], module: str) -> list[HandIn]:
    """What was handed in as the files of a download, all that one student did as one."""
    by_id: dict[str, list[tuple[re.Match[str], Path]]] = {}
    for entry in files:
        if found := FILE_NAME.fullmatch(entry.name):
            by_id.setdefault(found["id"], []).append((found, Path(entry.path)))
    return [_of_student(files_of_one, module) for files_of_one in by_id.values()]


def _of_student(files: Sequence[tuple[re.Match[str], Path]], module: str) -> HandIn:
    on_time = [(found, path) for found, path in files if not found["late"]] or list(files)
    newest = sorted(on_time, key=lambda file: int(file[0]["file"][:18]))
    chosen, beside = module_and_notebook([(found["rest"], path) for found, path in newest], module)
    found = newest[-1][0]
    others = tuple(shown_name(path.name) for _, path in files if path not in (chosen, beside))
    owner = (f"{found['name']}_{found['id']}", found["id"], found["name"])
    order = max(int(match["file"][:18]) for match, path in newest if path in (chosen, beside))
    return HandIn((owner,), chosen, shown_name(chosen.name), beside, None, bool(found["late"]), order, others)
