"""Moodle: read its download of a class, fill in its grading worksheet, make a zip of feedback files.

Moodle finds a student by the number in `Identifier`, and skips a row whose grade is empty or has not changed; names in
the file mean nothing to it. In the zip, the name of a folder has that number after its first underscore. (moodle:
mod/assign/feedback/offline/importgradeslib.php, mod/assign/feedback/file/importziplib.php, and for the download
mod/assign/classes/downloader.php.)
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.handout.release import zip_bytes
from autograder.gradebook.grades_folder import common_maximum
from autograder.gradebook.roster import Roster, find_rows, keys_of, plain_heading
from autograder.platforms.hand_in import HandIn, Owner, Wanted, claimed_by_two, is_folder, of_loose_files
from autograder.submissions.submission import shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table, file_stem
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import harmless, number, visible

NAMED_BY = ("full name", "username", "id number", "email address")
YES = frozenset("yes ja oui sí sì si sim да tak ano igen はい 是 예 evet ναι כן نعم da taip jah kyllä áno".split())  # noqa: SIM905 (words)
NO = frozenset("no nein non não nee nej nei нет nie ne nem いいえ 否 아니요 아니오 hayır όχι לא لا nu ei nav".split())  # noqa: SIM905 (words)
PARTICIPANT = re.compile(r"\D*(\d+)")
POINTS = re.compile(r"\d+([.,]\d+)?")
DATED = re.compile(r"(?=.*\d{4}).*\d\d?\D{1,3}\d\d|[ -]*$")
ENTRY_NAME = re.compile(r"(?P<name>[^_]+)(_(?P<id>\d+))?_assignsubmission_(?P<kind>[a-z]+)(_(?P<rest>.*))?", re.DOTALL)


@dataclass(frozen=True)
class MoodleExport:
    """The worksheet for Moodle.

    unknown   students with a report whom the worksheet does not hold, or not clearly
    locked    students whose grade Moodle does not let change, or would leave out as above its maximum
    folders   student → where in a zip the feedback goes
    """

    text: str
    graded: int
    unknown: tuple[str, ...]
    locked: tuple[str, ...]
    folders: Mapping[str, str]


def moodle_csv(
    reports: Sequence[Report],
    worksheet: Table,
    roster: Roster | None = None,
    *,
    grade_column: str = "Grade",
    identifier_column: str = "Identifier",
) -> MoodleExport:
    """Fill the points of the class into the worksheet; a cell that we have nothing for stays as it is.

    worksheet   what Moodle's "Download grading worksheet" gave
    raises      UsageError where it is not one, or the assignment is worth other points there
    """
    headings = _headings(worksheet, plain_heading(grade_column), plain_heading(identifier_column))
    at_grade, at_id = (_column(worksheet, headings, name) for name in (grade_column, identifier_column))
    numbers = [_participant(row[at_id]) for row in worksheet.rows]
    decimal = _decimal_mark(worksheet, headings, common_maximum(reports))
    by = [at for at, heading in enumerate(headings) if heading in NAMED_BY]
    keys = [
        keys_of({*(row[at] for at in by), participant})
        for row, participant in zip(worksheet.rows, numbers, strict=True)
    ]
    found = find_rows(reports, keys, roster, [f"moodle:{participant}" for participant in numbers])
    at_change = headings.index("grade can be changed") if "grade can be changed" in headings else None
    rows, locked, folders, graded = [], [], {}, 0
    for position, row in enumerate(worksheet.rows):
        cells = [harmless(cell) if head in NAMED_BY else cell for cell, head in zip(row, headings, strict=True)]
        rows.append(cells)
        report = found.rows.get(position)
        if report is None:
            continue
        name = row[headings.index("full name")] if "full name" in headings else report.student
        folders[report.student] = feedback_folder(name, numbers[position])
        is_locked = at_change is not None and row[at_change].strip().casefold() in NO
        if is_locked or (report.points or 0.0) > report.max_points:
            locked.append(report.student)
        elif report.points is not None:
            cells[at_grade] = number(report.points).replace(".", decimal)
            graded += 1
    text = worksheet.text([worksheet.header, *rows])
    return MoodleExport(text, graded, found.unknown, tuple(locked), folders)


def times_in(worksheet: Table) -> list[tuple[str, frozenset[str], str]] | None:
    """Each student's number, what else they may be called, and when they handed in; None where it is no worksheet.

    In any language that is the first column of dates behind the maximum grade, which is the last column of one number.
    """
    width = len(worksheet.header)
    at = max((at for at in range(2, width) if _is_maximum(worksheet, at)), default=width)
    columns = {place: [row[place] for row in worksheet.rows] for place in range(at + 1, width)}
    place = next(
        (p for p, cells in columns.items() if all(map(DATED.match, cells)) and "".join(cells).strip(" -")), None
    )
    if place is None or not _has_participants(worksheet):
        return None
    return [(_participant(row[0]), keys_of(row[1 : at - 1]), row[place].strip(" -")) for row in worksheet.rows]


def feedback_folder(name: str, participant: str) -> str:
    """The folder that Moodle's importer takes for this participant's, named as its download of submissions is."""
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


def _headings(worksheet: Table, grade: str, identifier: str) -> list[str]:
    """The headings in English, whatever the language: Moodle's columns always stand in the same order.

    Identifier, name and other identities, status, grade, maximum grade, whether it can be changed (mod/assign of
    Moodle, `gradingtable.php` with the feedback plugin `offline`); the last three are known by what stands in them.
    """
    headings = [plain_heading(cell) for cell in worksheet.header]
    if {grade, identifier, "maximum grade"} <= set(headings):
        return headings
    if grade in headings:
        at = headings.index(grade)
    else:
        places = range(1, len(headings) - 2)
        by_cells = [at for at in places if _is_maximum(worksheet, at + 1) and _is_yes_or_no(worksheet, at + 2)]
        at = by_cells[0] if len(by_cells) == 1 else 0
    if at == 0 or not _has_participants(worksheet):
        return headings
    headings[0] = headings[0] if identifier in headings else identifier
    headings[at] = grade
    if _is_maximum(worksheet, at + 1):
        headings[at + 1] = "maximum grade"
        if _is_yes_or_no(worksheet, at + 2):
            headings[at + 2] = "grade can be changed"
    for place in range(1, at):
        if headings[place] not in (*NAMED_BY, "status"):
            headings[place] = "full name" if place == 1 else "id number" if place < at - 1 else headings[place]
    return headings


def _cells(worksheet: Table, at: int) -> set[str]:
    return {row[at].strip().casefold() for row in worksheet.rows} if at < len(worksheet.header) else set()


def _is_maximum(worksheet: Table, at: int) -> bool:
    """Whether a column holds one number, over and over."""
    cells = _cells(worksheet, at)
    return len(cells) == 1 and POINTS.fullmatch(cells.pop()) is not None


def _is_yes_or_no(worksheet: Table, at: int) -> bool:
    return bool(cells := _cells(worksheet, at)) and cells <= YES | NO


def _has_participants(worksheet: Table) -> bool:
    return all(PARTICIPANT.fullmatch(row[0].strip()) for row in worksheet.rows)


def _column(worksheet: Table, headings: Sequence[str], heading: str) -> int:
    if headings.count(plain_heading(heading)) != 1:
        columns = ", ".join(visible(cell, 40) for cell in worksheet.header)
        raise UsageError(
            f"The worksheet has no column {visible(heading, 40)!r}; it has: {columns}. In a language other than "
            "English, name the columns with --identifier-column and --grade-column."
        )
    return headings.index(plain_heading(heading))


def _participant(cell: str) -> str:
    match = PARTICIPANT.fullmatch(cell.strip())
    if match is None:
        raise UsageError(f"{visible(cell, 40)!r} is no participant of Moodle: download the grading worksheet again.")
    return match[1]


def _decimal_mark(worksheet: Table, headings: Sequence[str], ours: float) -> str:
    """The decimal mark of the worksheet. Raises UsageError where its maximum is another: Moodle drops what is more."""
    cells = _cells(worksheet, headings.index("maximum grade")) - {""} if "maximum grade" in headings else set()
    for cell in cells:
        if not POINTS.fullmatch(cell) or float(cell.replace(",", ".")) != ours:
            worth = f"{visible(cell, 40)} points in Moodle and {number(ours)} here"
            raise UsageError(f"The assignment is worth {worth}: change its maximum grade in Moodle.")
    return "," if any("," in cell for cell in cells) else "."


# The download of a class

_Entry = tuple[re.Match[str], os.DirEntry[str]]


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The files and folders of a download among these."""
    return [entry for entry in entries if ENTRY_NAME.fullmatch(entry.name)]


def hand_ins(entries: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """Group the files or folders of a download by student; where two names claim a number, both are refused.

    Moodle writes a space for each `_` of a name, so the id is the first number that stands between two. Those in no
    group hand in together, under a name without one; a site may have more kinds of submissions than files and texts
    (`get_student_prefix`, `load_submissionplugin_filelist`).
    """
    groups: dict[tuple[str, str], list[_Entry]] = {}
    for entry in entries:
        if match := ENTRY_NAME.fullmatch(entry.name):
            # A name without a number is never another student's number, whatever its letters.
            key = ("id", match["id"]) if match["id"] else ("name", match["name"])
            groups.setdefault(key, []).append((match, entry))
    made = []
    for (_, number_), group in groups.items():
        names = {match["name"] for match, _ in group}
        if len(names) == 1:
            made.append(_of_student(group, wanted))
            continue
        reason = claimed_by_two((f"{name}_{number_}" for name in names), number_, "Moodle")
        for _, entry in group:
            made.append(HandIn((Owner(entry.name),), Path(entry.path), shown_name(entry.name), refused=reason))
    return made


def _of_student(group: Sequence[_Entry], wanted: Wanted) -> HandIn:
    name, participant = group[0][0]["name"], group[0][0]["id"]
    owner = Owner(f"{name}_{participant}", f"moodle:{participant}", (name,)) if participant else Owner(name)
    files_first = sorted(group, key=lambda file: (file[0]["kind"] != "file", file[0]["kind"]))
    if folders := [entry for _, entry in files_first if is_folder(entry)]:
        return HandIn((owner,), Path(folders[0].path), shown_name(folders[0].name))
    return of_loose_files((owner,), [(match["rest"] or "", Path(entry.path)) for match, entry in files_first], wanted)
