"""Brightspace (D2L): its download of an assignment is read; of its exported grades, one item is filled in for import.

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
from autograder.platforms.gradebooks.upload import Column, Upload, upload_of
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
    r"(?:(?P<first>\d{1,2}) )?(?P<month>[A-Z][a-z]{2})[a-z]*(?(first),?| (?P<second>\d{1,2}),) (?P<year>\d{4}) "
    r"(?P<hour>\d{1,2}?)(?P<minute>\d\d)(?: (?P<half>[AP]M))?",
    re.ASCII,
)
COLUMN = Column(
    heading=re.compile(r".* Points Grade( <.*>)?\s*", re.DOTALL),
    worth=re.compile(r"MaxPoints:\s*(\d+(?:[.,]\d+)?)"),
    identities=("orgdefinedid", "username"),
    what="Brightspace",
    last=(END_OF_LINE, "#"),
)


def brightspace_csv(
    reports: Sequence[Report], grades: Table, column: str, roster: Roster | None = None, *, scale: bool = False
) -> Upload:
    """The grades for Brightspace to import: who it is, and the item, for students with a grade of ours."""
    return upload_of(reports, grades, COLUMN, column, roster, scale=scale)


# The download of a class


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The folders or files of a download that are among these."""
    return [entry for entry in entries if (found := ENTRY_NAME.fullmatch(entry.name)) and _fits(entry, found)]


def _fits(entry: os.DirEntry[str], found: re.Match[str]) -> bool:
    return is_folder(entry) != bool(found["rest"])


def hand_ins(entries: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """What was handed in: a folder each, or the loose files of one moment."""
    named = [(found, entry) for entry in entries if (found := ENTRY_NAME.fullmatch(entry.name))]
    shared = len({found["first"] for found, _ in named}) < len({found["second"] for found, _ in named})
    together: dict[tuple[str, str, str], list[tuple[re.Match[str], os.DirEntry[str]]]] = {}
    for found, entry in named:
        together.setdefault((found["second" if shared else "first"], found["name"], found["when"]), []).append(
            (found, entry)
        )
    return [
        one for (number, name, when), of_one in together.items() for one in _all(number, name, when, of_one, wanted)
    ]


def _all(
    number: str, name: str, when: str, entries: Sequence[tuple[re.Match[str], os.DirEntry[str]]], wanted: Wanted
) -> list[HandIn]:
    owners, submitted = (Owner(f"{name}_{number}", f"brightspace:{number}", (name,)),), _moment(when)
    folders = [Path(entry.path) for _, entry in entries if is_folder(entry)]
    found = [HandIn(owners, path, shown_name(path.name), submitted=submitted) for path in folders]
    loose = [(match["rest"], Path(entry.path)) for match, entry in entries if match["rest"]]
    return [*found, *([of_loose_files(owners, loose, wanted, submitted=submitted)] if loose else [])]


def _moment(when: str) -> datetime | None:
    """`Mar 2, 2026 1128 PM`, in the platform's time zone, which it does not name. None in another language.

    The day may stand first and the hours run to 23, as English is written outside America.
    """
    found = WHEN.fullmatch(when.strip())
    if found is None:
        return None
    day, hour, month = found["first"] or found["second"], found["hour"], found["month"]
    clock = f"{hour}:{found['minute']} {found['half']}" if found["half"] else f"{hour}:{found['minute']}"
    form = "%b %d %Y %I:%M %p" if found["half"] else "%b %d %Y %H:%M"
    return moment_in(f"{month} {day} {found['year']} {clock}", form)
