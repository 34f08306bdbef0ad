"""Write grades for a spreadsheet or a script, and into what a platform exported for just that.

A student without a grade of ours, and whatever else stands in a gradebook, stays as it is.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from autograder.authoring.handout.release import zip_bytes
from autograder.gradebook.grades_folder import Gradebook, common_maximum, scale_factor
from autograder.gradebook.roster import Roster, alternatives, find_rows, keys_of, plain_heading
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, file_stem
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import harmless, number, reads_as_formula, visible


@dataclass(frozen=True)
class Export:
    """The file for a platform.

    unknown   students with a report whom its gradebook does not hold, or not clearly
    kept      students whose cell stays as it was: excused, or without a grade of ours
    excused   students with a grade of ours whose cell in Canvas says that they are excused
    locked    students whose grade Moodle does not let change, or would leave out as above its maximum
    folders   student → where in a zip for Moodle the feedback goes
    """

    text: str
    graded: int
    unknown: tuple[str, ...]
    kept: tuple[str, ...] = ()
    excused: tuple[str, ...] = ()
    locked: tuple[str, ...] = ()
    folders: Mapping[str, str] = field(default_factory=dict)


def plain_csv(reports: Sequence[Report], roster: Roster | None = None) -> str:
    """Write the columns of `grades.csv`, `points` being the final grade where there is one.

    With a roster, there is also a row, without points, for each student who handed in nothing.
    """
    rows: list[tuple[str, Report | None]] = [(report.student, report) for report in reports]
    if roster is not None:
        names = [alternatives(report.student, report.identity) for report in reports]
        present = {person.student for each in names if (person := roster.person(*each))}
        rows += [(person.student, None) for person in roster.people if person.student not in present]
    stream = io.StringIO()
    gradebook = Gradebook(stream, list(dict.fromkeys(result.item for report in reports for result in report.items)))
    for student, report in sorted(rows, key=lambda row: row[0]):
        if report is None:
            gradebook.add_absent(student, "absent")
        else:
            gradebook.add(report)
    return stream.getvalue()


# Canvas
#
# What its importer does with a file decides what stands in ours. It finds students by ID first, so every row keeps the
# ids of the export. It makes a new assignment of a heading that it does not know, so the heading must be one of the
# export. It clears a grade where a cell is empty, so a cell that we have nothing for keeps what it holds.
# (canvas-lms: lib/gradebook_importer.rb)

POINTS_POSSIBLE = "    Points Possible"
MAX_INFO_COLUMNS = 9
COMPUTED = re.compile(r"(unposted )?(current|final) (score|points|grade)|override (score|grade|status)", re.IGNORECASE)
NO_STUDENT = re.compile(r"|muted|manual posting.*", re.IGNORECASE)  # cells of the row between headings and students


def canvas_csv(
    reports: Sequence[Report], gradebook: Table, assignment: str, roster: Roster | None = None, *, scale: bool = False
) -> Export:
    """Fill in the gradebook that Canvas exported for this course, cut down to one assignment.

    assignment   a heading of it, `Title (123456)`
    scale        convert to the points that the assignment is worth in Canvas, where that differs
    raises       UsageError where the gradebook is none, lacks the assignment, or is worth other points
    """
    header = gradebook.header
    at_id = next((at for at, name in enumerate(header[:3]) if name.strip() == "ID"), -1)
    section = next((at for at, name in enumerate(header[:MAX_INFO_COLUMNS]) if "Section" in name), -1)
    if at_id < 1 or section < at_id or not ("Student" in header[0] or "LastName" in header[0]):
        raise UsageError("The gradebook has no columns Student, ID and Section: export it from Canvas as it is.")
    info = section + 1  # columns about the student
    offered = [name for name in header[info:] if re.search(r"\(\d+\)\s*$", name) and not COMPUTED.search(name)]
    if header.count(assignment) != 1 or assignment not in offered:
        known = "; ".join(visible(name, 80) for name in offered) or "none"
        raise UsageError(f"The gradebook has no assignment {visible(assignment, 80)!r}. It has: {known}.")
    at_grade = header.index(assignment)

    possible: str | None = None
    students = []
    for row in gradebook.rows:
        if row[at_id].strip():
            students.append(row)
        elif "Points Possible" in row[0]:
            possible = row[at_grade].strip() or None
        elif not NO_STUDENT.fullmatch(row[at_grade].strip()):
            raise UsageError(f"A row of the gradebook has no ID: {visible(row[0], 80)!r}. Export it from Canvas again.")
    if possible and "read only" in possible:
        raise UsageError("Canvas does not let this column be imported: it is read only.")
    if trap := next((row[0] for row in students if "Points Possible" in row[0]), ""):
        raise UsageError(f"Canvas would take the student {visible(trap, 80)!r} for the row of points: change the name.")
    maximum = common_maximum(reports)
    if possible is not None and not re.fullmatch(r"\d{1,9}([.,]\d{1,9})?", possible, re.ASCII):
        worth = f"{visible(assignment, 80)} is worth in Canvas is no number: {visible(possible, 40)!r}"
        raise UsageError(f"What {worth}.")
    worth_there = maximum if possible is None else float(possible.replace(",", "."))
    factor = scale_factor(maximum, worth_there, assignment, "Canvas", scale=scale)
    has_comma = any(re.fullmatch(r"\d+,\d+", cell.strip()) for row in gradebook.rows for cell in row)
    decimal = "," if has_comma and gradebook.delimiter != "," else "."

    keys = []
    for row in students:
        name = row[0] if at_id == 1 else f"{row[0]}, {row[1]}"
        keys.append(keys_of({name, *(row[at] for at in range(at_id, info) if "Section" not in header[at])}))
    found, unknown = find_rows(reports, keys, roster, [f"canvas:{row[at_id].strip()}" for row in students])
    rows, kept, excused = [], [], []
    for position, row in enumerate(students):
        report, cell = found.get(position), row[at_grade]
        is_excused = cell.strip().upper() == "EX"
        if report is None or report.points is None or is_excused:
            kept.append(row[0])
            excused += [report.student] if report is not None and is_excused else []
        else:
            cell = number(report.points * factor).replace(".", decimal)
        about = [text if at == at_id and text.isdigit() else harmless(text) for at, text in enumerate(row[:info])]
        rows.append([*about, cell])
    top = [*header[:info], header[at_grade]]
    worth = number(maximum).replace(".", decimal) if possible is None else possible
    text = gradebook.text([top, [POINTS_POSSIBLE, *[""] * (info - 1), worth], *rows])
    return Export(text, len(students) - len(kept), unknown, tuple(kept), tuple(excused))


# Moodle
#
# It finds a student by the number in `Identifier`, and skips a row whose grade is empty or has not changed; names in
# the file mean nothing to it. In a zip of feedback, the name of a folder has that number after its first underscore.
# (moodle: mod/assign/feedback/offline/importgradeslib.php, mod/assign/feedback/file/importziplib.php)

NAMED_BY = ("full name", "username", "id number", "email address")
NO = frozenset("no nein non não nee nej nei нет nie ne nem いいえ 否 아니요 아니오 hayır όχι לא لا nu ei nav".split())  # noqa: SIM905 (words)
PARTICIPANT = re.compile(r"\D*(\d+)")
POINTS = re.compile(r"\d+([.,]\d+)?")


def moodle_csv(reports: Sequence[Report], worksheet: Table, roster: Roster | None = None) -> Export:
    """Fill the points of the class into what "Download grading worksheet" gave; other cells stay as they are.

    raises   UsageError where it is none, or the assignment is worth other points there
    """
    at_id, at_grade, at_most, at_change, by = _worksheet_columns(worksheet)
    numbers = []
    for row in worksheet.rows:
        if (match := PARTICIPANT.fullmatch(row[at_id].strip())) is None:
            cell = visible(row[at_id], 40)
            raise UsageError(f"{cell!r} is no participant of Moodle: download the grading worksheet again.")
        numbers.append(match[1])
    ours, maxima = common_maximum(reports), _cells(worksheet, at_most) - {""}
    for cell in maxima:  # Moodle drops what is more than its maximum
        if not POINTS.fullmatch(cell) or float(cell.replace(",", ".")) != ours:
            worth = f"{visible(cell, 40)} points in Moodle and {number(ours)} here"
            raise UsageError(f"The assignment is worth {worth}: change its maximum grade in Moodle.")
    decimal = "," if any("," in cell for cell in maxima) else "."
    keys = [keys_of({*(row[at] for at in by), own}) for row, own in zip(worksheet.rows, numbers, strict=True)]
    found, unknown = find_rows(reports, keys, roster, [f"moodle:{participant}" for participant in numbers])
    rows, locked, folders, graded = [], [], {}, 0
    for position, row in enumerate(worksheet.rows):
        cells = [harmless(cell) if at in by else cell for at, cell in enumerate(row)]
        rows.append(cells)
        report = found.get(position)
        if report is None:
            continue
        folders[report.student] = feedback_folder(row[by[0]] if by else report.student, numbers[position])
        is_locked = at_change is not None and row[at_change].strip().casefold() in NO
        if is_locked or (report.points or 0.0) > report.max_points:
            locked.append(report.student)
        elif report.points is not None:
            cells[at_grade] = number(report.points).replace(".", decimal)
            graded += 1
    text = worksheet.text([worksheet.header, *rows])
    return Export(text, graded, unknown, locked=tuple(locked), folders=folders)


def _worksheet_columns(worksheet: Table) -> tuple[int, int, int | None, int | None, list[int]]:
    """Find the places of the identifier, the grade, its maximum, whether it can be changed, and names.

    In any language the identifier comes first; name and other identities, status, grade, maximum grade and whether it
    can be changed follow in this order (mod/assign of Moodle, `gradingtable.php` with the feedback plugin `offline`).
    The maximum is the first column of one number behind one of grades.
    """
    headings = [plain_heading(cell) for cell in worksheet.header]

    def place(heading: str) -> int | None:
        return headings.index(heading) if headings.count(heading) == 1 else None

    columns = {at: _cells(worksheet, at) for at in range(len(headings))}
    constant = [at for at, cells in columns.items() if len(cells) == 1 and all(map(POINTS.fullmatch, cells))]
    at_id, at_grade = place("identifier") or 0, place("grade")
    if at_grade is None:
        before = [at - 1 for at in constant if at > 2]
        of_grades = [at for at in before if all(map(POINTS.fullmatch, columns[at] - {"", "-"}))]
        at_grade = next(iter(of_grades), 0)
        if not at_grade:
            names = ", ".join(visible(cell, 40) for cell in worksheet.header)
            advice = "Download it again, with English as your language in Moodle."
            raise UsageError(f"The worksheet has no single column 'Grade'; it has: {names}. {advice}")
    at_most = at_grade + 1 if at_grade + 1 in constant else place("maximum grade")
    at_change = place("grade can be changed")
    if at_change is None and at_most is not None and at_most + 1 < len(headings):
        at_change = at_most + 1
    by = [at for name in NAMED_BY for at, heading in enumerate(headings) if heading == name]
    if NAMED_BY[0] not in headings:
        by = [*range(1, at_grade - 1)] or by
    return at_id, at_grade, at_most, at_change, by


def _cells(worksheet: Table, at: int | None) -> set[str]:
    return set() if at is None else {row[at].strip() for row in worksheet.rows}


def feedback_folder(name: str, participant: str) -> str:
    """Name the folder that Moodle's importer takes for this participant's, as its download of submissions does."""
    return f"{file_stem(name.replace('_', ' '))}_{participant}_assignsubmission_file_"


def feedback_zip(folders: Mapping[str, str], pages: Path) -> bytes:
    """Pack the feedback pages for "Upload multiple feedback files in a zip". Raises UsageError without one."""
    files = {}
    for student, folder in folders.items():
        path = pages / f"{file_stem(student)}.html"
        try:
            files[f"{folder}/feedback.html"] = path.read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read ({error.strerror}): grade the class again.") from None
    return zip_bytes(files, "")


# Blackboard and Brightspace: one column of their own gradebook, with the students who have a grade of ours
#
# Blackboard finds a student by `Username` and a column by the number behind `|` in its heading, which must stay as it
# is; without that number an upload makes a new column. Only what is to change need be in the file
# (help.blackboard.com, Upload and Download Grades: "Work Offline with Grade Data").
#
# Brightspace needs `OrgDefinedId` or `Username`, which an export writes with a `#` before it; a heading that ends in
# `Points Grade` with the item's settings in `<…>`; and `End-of-Line Indicator`, a `#` in every row. What is not to
# change is left out (community.d2l.com, Importing Grades, kb 3538).


@dataclass(frozen=True)
class Column:
    """What a column to fill in looks like on a platform.

    heading      matches the heading of such a column
    worth        finds in it what the assignment is worth
    identities   headings by which the platform finds a student
    last         a column that every row must end in, and its cell
    """

    heading: re.Pattern[str]
    worth: re.Pattern[str]
    identities: tuple[str, ...]
    last: tuple[tuple[str, str], ...] = ()


END_OF_LINE = "End-of-Line Indicator"
COLUMNS: Mapping[str, Column] = MappingProxyType({
    "Blackboard": Column(
        heading=re.compile(r".*\|\s*\d+\s*", re.DOTALL),
        worth=re.compile(r"\[[^\]]*?(\d+(?:[.,]\d+)?)[^\]]*\]\s*\|"),
        identities=("username", "user name", "student id"),
    ),
    "Brightspace": Column(
        heading=re.compile(r".* Points Grade( <.*>)?\s*", re.DOTALL),
        worth=re.compile(r"MaxPoints:\s*(\d+(?:[.,]\d+)?)"),
        identities=("orgdefinedid", "username"),
        last=((END_OF_LINE, "#"),),
    ),
})  # fmt: skip
NAMES = ("orgdefinedid", "username", "user name", "student id", "email", "last name", "first name")


def column_csv(
    platform: str,
    reports: Sequence[Report],
    gradebook: Table,
    heading: str,
    roster: Roster | None = None,
    *,
    scale: bool = False,
) -> Export:
    """Write what the platform finds students by, and their points.

    platform   one of COLUMNS
    heading    of the column, whole, or so much of its beginning that no other has it
    raises     UsageError where the gradebook is none, has no such column, or it is worth other points
    """
    column = COLUMNS[platform]
    offered = [at for at, name in enumerate(gradebook.header) if column.heading.fullmatch(name)]
    exact = [at for at in offered if gradebook.header[at].strip() == heading.strip()]
    places = exact or [at for at in offered if heading and gradebook.header[at].startswith(heading)]
    if len(places) != 1:
        known = "; ".join(visible(gradebook.header[at], 80) for at in offered) or "none"
        asked = f"{visible(heading, 80)!r} of {platform}"
        raise UsageError(f"The gradebook has no single column {asked}. It has: {known}.")
    full_heading = gradebook.header[places[0]]
    headings = [plain_heading(cell) for cell in gradebook.header]
    who = [place for place, name in enumerate(headings) if name in column.identities]
    if not who:
        known = " or ".join(column.identities[:2])
        advice = f"export it from {platform} as it is, with English as your language there"
        raise UsageError(f"The gradebook has no column {known}: {advice}.")
    ours = theirs = common_maximum(reports)
    if worth := column.worth.search(full_heading):  # with a comma or a point before decimals; or before thousands
        thousands = re.fullmatch(r"\d{1,3}[.,]\d{3}", worth[1])
        theirs = float(re.sub(r"[.,]", "" if thousands else ".", worth[1]))
    factor = scale_factor(ours, theirs, full_heading, platform, scale=scale)
    keys = []
    for row in gradebook.rows:  # Brightspace writes a `#` before ids
        cells = {name: cell.strip().lstrip("#") for name, cell in zip(headings, row, strict=True) if name in NAMES}
        last, first = cells.pop("last name", ""), cells.pop("first name", "")
        keys.append(keys_of({*cells.values(), *([f"{last}, {first}"] if last and first else [])}))
    found, unknown = find_rows(reports, keys, roster)

    decimal = "," if gradebook.delimiter == ";" else "."
    rows = [[*(gradebook.header[place] for place in who), full_heading, *(name for name, _ in column.last)]]
    unsafe = []
    for position, report in sorted(found.items()):
        identities = [gradebook.rows[position][place] for place in who]
        if any(map(reads_as_formula, identities)):
            unsafe.append(report.student)
        elif report.points is not None:
            points = number(report.points * factor).replace(".", decimal)
            rows.append([*identities, points, *(cell for _, cell in column.last)])
    return Export(gradebook.text(rows), len(rows) - 1, tuple(sorted([*unknown, *unsafe])))
