"""Brightspace (D2L): read its download of an assignment, and fill in one item of its exported grades for import.

A download holds a folder for each submission, `<number>-<number> - <name> - Mar 2, 2026 1128 PM`, or files whose names
begin so and go on with ` - <file's name>`; `index.html` lies beside them. One of the numbers is the same for the whole
class, the other is the student's.

An import needs `OrgDefinedId` or `Username`, which an export writes with a `#` before it; a heading that ends in
`Points Grade` with the item's settings in `<…>`; and `End-of-Line Indicator`, a `#` in every row. What is not to change
is left out (community.d2l.com, Importing Grades, kb 3538).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms.exports import Column, Upload, upload_of
from autograder.platforms.hand_in import HandIn, Owner, Wanted, is_folder, of_loose_files
from autograder.submissions.submission import shown_name
from autograder.vocabulary.files import Table
from autograder.vocabulary.report import Report
from autograder.vocabulary.times import moment_in

END_OF_LINE = "End-of-Line Indicator"
ENTRY_NAME = re.compile(
    r"(?P<first>\d+)-(?P<second>\d+) - (?P<name>.+?) ?- ?(?P<when>[^-]*\b(?:19|20)\d\d\b[^-]*?)( - (?P<rest>.+))?",
    re.ASCII | re.DOTALL,
)
WHEN = re.compile(
    r"(?:(?P<first>\d{1,2}) )?(?P<month>[A-Z][a-z]+)(?(first),?| (?P<second>\d{1,2}),) (?P<year>\d{4}) "
    r"(?P<hour>\d{1,2}?)(?P<minute>\d\d)(?: (?P<half>[AP]M))?",
    re.ASCII,
)
COLUMN = Column(
    platform="Brightspace",
    heading=re.compile(r".* Points Grade( <.*>)?\s*", re.DOTALL),
    worth=re.compile(r"MaxPoints:\s*(\d+(?:[.,]\d+)?)"),
    identities=("orgdefinedid", "username"),
    last=(END_OF_LINE, "#"),
)


def brightspace_csv(
    reports: Sequence[Report], grades: Table, column: str, roster: Roster | None = None, *, scale: bool = False
) -> Upload:
    """Fill in the item of the grades for Brightspace to import."""
    return upload_of(reports, grades, COLUMN, column, roster, scale=scale)


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The folders or files of a download among these."""
    named = ((entry, ENTRY_NAME.fullmatch(entry.name)) for entry in entries)
    return [entry for entry, match in named if match and is_folder(entry) != bool(match["rest"])]


def hand_ins(entries: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """Make one hand-in of each folder, or of the loose files of one moment."""
    named = [(match, entry) for entry in entries if (match := ENTRY_NAME.fullmatch(entry.name))]
    first_is_shared = len({match["first"] for match, _ in named}) < len({match["second"] for match, _ in named})
    submissions: dict[tuple[str, str, str], list[tuple[re.Match[str], Path]]] = {}
    for match, entry in named:
        number = match["second" if first_is_shared else "first"]
        submissions.setdefault((number, match["name"], match["when"]), []).append((match, Path(entry.path)))
    made = []
    for (number, name, when), group in submissions.items():
        owners = (Owner(f"{name}_{number}", f"brightspace:{number}", (name,)),)
        submitted = _moment(when)
        made += [HandIn(owners, path, shown_name(path.name), submitted=submitted) for m, path in group if not m["rest"]]
        if loose := [(match["rest"], path) for match, path in group if match["rest"]]:
            made.append(of_loose_files(owners, loose, wanted, submitted=submitted))
    return made


def _moment(when: str) -> datetime | None:
    """Read `Mar 2, 2026 1128 PM`, in the platform's time zone, which it does not name; None in another language.

    The day may stand first and the hours run to 23, as English is written outside America. A month is a whole English
    word: `Marraskuu`, Finnish for November, is no March.
    """
    match = WHEN.fullmatch(when.strip())
    if match is None:
        return None
    day, half = match["first"] or match["second"], match["half"]
    month = "Sep" if match["month"] == "Sept" else match["month"]  # as it is shortened outside America
    text = f"{month} {day} {match['year']} {match['hour']}:{match['minute']}"
    text, clock = (f"{text} {half}", "%d %Y %I:%M %p") if half else (text, "%d %Y %H:%M")
    return moment_in(text, f"%b {clock}") or moment_in(text, f"%B {clock}")
