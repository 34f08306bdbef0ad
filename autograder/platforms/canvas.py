"""Canvas: read its download of a class, and cut its exported gradebook down to our students and one assignment.

What Canvas's importer does with a file decides what stands in ours. It finds students by ID first, so every row keeps
the ids of the export. It makes a new assignment of a heading that it does not know, so the heading must be one of the
export. It clears a grade where a cell is empty, so a cell that we have nothing for keeps what it holds.
(canvas-lms: lib/gradebook_importer.rb, and for the download lib/content_zipper.rb.)
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.gradebook.grades_folder import common_maximum, scale_factor
from autograder.gradebook.roster import Roster, find_rows, is_word, keys_of
from autograder.platforms.hand_in import HandIn, Owner, Wanted, claimed_by_two, is_folder, of_loose_files
from autograder.submissions.names import suffix_of
from autograder.submissions.submission import CAPS, shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import Table
from autograder.vocabulary.report import Report
from autograder.vocabulary.text import harmless, number, visible

POINTS_POSSIBLE = "    Points Possible"
MAX_INFO_COLUMNS = 9
COMPUTED = re.compile(r"(unposted )?(current|final) (score|points|grade)|override (score|grade|status)", re.IGNORECASE)
NO_STUDENT = re.compile(r"|muted|manual posting.*", re.IGNORECASE)  # cells of the row between headings and students
PREFIX = re.compile(r"_(?P<late>LATE_)?(?P<id>[1-9]\d{0,17})_(?P<file>[1-9]\d{0,17})_(?=.)", re.ASCII | re.DOTALL)
ANONYMOUS = re.compile(
    r"(?P<late>LATE_)?(?P<id>anon_[A-Za-z0-9]{1,18})_(?P<file>\d{1,18})_(?P<rest>.+)", re.ASCII | re.DOTALL
)


@dataclass(frozen=True)
class CanvasExport:
    """The file for Canvas.

    unknown   students with a report whom the gradebook does not hold, or not clearly
    kept      students whose cell stays as it was: excused, or without a grade of ours
    """

    text: str
    graded: int
    unknown: tuple[str, ...]
    kept: tuple[str, ...]


def canvas_csv(
    reports: Sequence[Report], gradebook: Table, assignment: str, roster: Roster | None = None, *, scale: bool = False
) -> CanvasExport:
    """Fill in the gradebook for Canvas to import.

    gradebook    what Canvas exported for this course
    assignment   a heading of it, `Title (123456)`
    scale        convert to the points that the assignment is worth in Canvas, where that differs
    raises       UsageError where the gradebook is none, lacks the assignment, or is worth other points
    """
    at_id, info, at_grade = _columns(gradebook.header, assignment)
    possible, students = _rows(gradebook, at_id, at_grade)
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
        ids = [row[at] for at in range(at_id, info) if "Section" not in gradebook.header[at]]
        keys.append(keys_of({name, *ids}))
    found = find_rows(reports, keys, roster, [f"canvas:{row[at_id].strip()}" for row in students])
    rows, kept = [], []
    for position, row in enumerate(students):
        report, cell = found.rows.get(position), row[at_grade]
        points = None if report is None or cell.strip().upper() == "EX" else report.points
        if points is None:
            kept.append(row[0])
        else:
            cell = number(points * factor).replace(".", decimal)
        about = [text if at == at_id and text.isdigit() else harmless(text) for at, text in enumerate(row[:info])]
        rows.append([*about, cell])
    top = [*gradebook.header[:info], gradebook.header[at_grade]]
    worth = number(maximum).replace(".", decimal) if possible is None else possible
    text = gradebook.text([top, [POINTS_POSSIBLE, *[""] * (info - 1), worth], *rows])
    return CanvasExport(text, len(students) - len(kept), found.unknown, tuple(kept))


def _columns(header: Sequence[str], assignment: str) -> tuple[int, int, int]:
    """The places of ID, of the first column that says nothing about the student, and of the assignment."""
    at_id = next((at for at, name in enumerate(header[:3]) if name.strip() == "ID"), -1)
    section = next((at for at, name in enumerate(header[:MAX_INFO_COLUMNS]) if "Section" in name), -1)
    if at_id < 1 or section < at_id or not ("Student" in header[0] or "LastName" in header[0]):
        raise UsageError("The gradebook has no columns Student, ID and Section: export it from Canvas as it is.")
    offered = [name for name in header[section + 1 :] if re.search(r"\(\d+\)\s*$", name) and not COMPUTED.search(name)]
    if header.count(assignment) != 1 or assignment not in offered:
        known = "; ".join(visible(name, 80) for name in offered) or "none"
        raise UsageError(f"The gradebook has no assignment {visible(assignment, 80)!r}. It has: {known}.")
    return at_id, section + 1, header.index(assignment)


def _rows(gradebook: Table, at_id: int, at_grade: int) -> tuple[str | None, list[tuple[str, ...]]]:
    """What the assignment is worth in Canvas, and the rows of students, which are those with an ID."""
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
    return possible, students


# The download of a class


@dataclass(frozen=True)
class Named:
    """What the name of a file in a download says, in one way of reading it."""

    name: str
    late: bool
    id: str
    file: int
    rest: str

    @property
    def owner(self) -> Owner:
        """What the platform calls the student."""
        if self.id.startswith("anon_"):
            return Owner(self.id)
        return Owner(f"{self.name}_{self.id}", f"canvas:{self.id}", (self.name,))


def readings(filename: str) -> list[Named]:
    """Read `<name>[_LATE]_<user>_<file>_<file's name>` in each possible way, the one furthest right first.

    The account's name and the file's are the student's to choose, so there may be several ways. Canvas takes
    `_<digits>_` out of the first, and then all but word characters (lib/content_zipper.rb of canvas-lms: get_filename,
    sanitize_user_name, sanitize_file_name); a group's is the group's name, with the id of one member. An anonymous
    assignment gives `[LATE_]anon_<letters>_<file>_<file's name>`. Only the last attempt is in a download.
    """
    if match := ANONYMOUS.fullmatch(filename):
        return [Named("", bool(match["late"]), match["id"], int(match["file"]), match["rest"])]
    ways = []
    at = 0
    while match := PREFIX.search(filename, at):
        name = unicodedata.normalize("NFC", filename[: match.start()])  # macOS unpacks in another form
        if not name.endswith("_LATE") and all(map(is_word, name)):  # Canvas writes all names small
            ways.append(Named(name, bool(match["late"]), match["id"], int(match["file"]), filename[match.end() :]))
        at = match.start() + 1
    return ways[::-1]


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The files of a download among these; none where nobody handed in what can be graded."""
    files = [entry for entry in entries if not is_folder(entry) and readings(entry.name)]
    return files if any(suffix_of(entry.name) in CAPS for entry in files) else []


def hand_ins(files: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """Group the files of a download by student.

    Where a name can be read in several ways, the id that the roster knows counts; without one, the only reading that
    is possible. A file that can be read as either of two ids is refused, that file alone; so is one whose reading
    gives another name to an id that a clear file has. Two clear names for one id are refused, both.
    """
    read = [(readings(entry.name), Path(entry.path)) for entry in files]
    clear = [ways[0] for ways, _ in read if len(ways) == 1]
    names: dict[str, set[str]] = {}
    for way in clear:
        names.setdefault(way.id, set()).add(way.name)
    # Canvas counts files up, so one of the same assignment is not a tenth of the others, as the parts of a date are.
    # No id is impossible: `q_ 1007_ 501_z` is a display name that Canvas writes as `q_1007_501_z`.
    least = min((way.file for way in clear), default=0) / 10
    by_id: dict[str, list[tuple[Named, Path]]] = {}
    refused = []
    for ways, path in read:
        likely = _known(ways, names, wanted.roster) or [way for way in ways if way.file >= least] or ways
        chosen = likely[0]
        if len({way.id for way in likely}) > 1:
            ids = " or ".join(dict.fromkeys(way.id for way in likely))
            shown = shown_name(path.name)
            reason = f"{visible(shown, 200)} can be read as the id {ids} of Canvas: rename it, with one id in it."
            refused.append(HandIn((chosen.owner,), path, shown, refused=reason))
        elif len(ways) > 1 and chosen.name not in names.get(chosen.id, {chosen.name}):
            refused.append(_claimed(chosen, path, {*names[chosen.id], chosen.name}))
        else:
            by_id.setdefault(chosen.id, []).append((chosen, path))
    made = []
    for group in by_id.values():
        claimants = {way.name for way, _ in group}
        if len(claimants) > 1:
            refused += [_claimed(way, path, claimants) for way, path in group]
            continue
        by_age = sorted(group, key=lambda file: file[0].file)
        on_time = [(way, path) for way, path in by_age if not way.late] or by_age
        newest = on_time[-1][0]
        hand_in = of_loose_files((newest.owner,), [(way.rest, path) for way, path in on_time], wanted, late=newest.late)
        graded = (hand_in.path, hand_in.beside)
        order = max(way.file for way, path in on_time if path in graded)
        others = tuple(shown_name(path.name) for _, path in group if path not in graded)
        made.append(replace(hand_in, order=order, others=others))
    return [*made, *refused]


def _known(ways: Sequence[Named], clear: Mapping[str, object], roster: Roster | None) -> list[Named]:
    """The readings whose id the roster knows: one, or those between which nothing decides.

    Of two that share a number the one further right counts, for a file's number is nobody's to choose. Of others, the
    one whose id no file has that can be read in one way only.
    """
    known = [way for way in ways if roster is not None and roster.person(way.id)]
    names = {way.name for way in known}
    known = [way for way in known if not {f"{way.name}_{way.id}", f"{way.name}_LATE_{way.id}"} & names]
    return [way for way in known if way.id not in clear] or known


def _claimed(way: Named, path: Path, names: Collection[str]) -> HandIn:
    reason = claimed_by_two((f"{name}_{way.id}" for name in names), way.id, "Canvas")
    return HandIn((way.owner,), path, shown_name(path.name), refused=reason)
