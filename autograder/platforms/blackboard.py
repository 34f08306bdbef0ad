"""Blackboard Learn: read its download of an assignment, and fill in the one column of its gradebook to upload.

A download names each file `<assignment>_<username>_attempt_<yyyy-mm-dd-hh-mm-ss>_<file's name>`, and puts a text file
`…_attempt_<…>.txt` beside them whose first line is `Name: <name> (<username>)`. The gradebook finds a student by
`Username` and a column by the number behind `|` in its heading, which must stay as it is; without that number an upload
makes a new column. Only what is to change need be in the file (help.blackboard.com, Upload and Download Grades: "Work
Offline with Grade Data"; the column that it names `Title [Total Pts: 100 Score] |123456`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms.exports import Column, Upload, upload_of
from autograder.platforms.hand_in import HandIn, Owner, Wanted, is_folder, of_loose_files
from autograder.vocabulary.files import Table, open_regular
from autograder.vocabulary.report import Report
from autograder.vocabulary.times import moment_in

FILE_NAME = re.compile(
    r"(?P<owner>.+?)_attempt_(?P<when>\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d)(?:_(?P<rest>.+)|\.txt)", re.ASCII | re.DOTALL
)
FIRST_LINE = re.compile(r"Name: (?P<name>[^\n]*?) \((?P<username>[^()\n]+)\)\s*\n")
MAX_READ = 1_000  # bytes of a text file
COLUMN = Column(
    platform="Blackboard",
    heading=re.compile(r".*\|\s*\d+\s*", re.DOTALL),
    worth=re.compile(r"\[[^\]]*?(\d+(?:[.,]\d+)?)[^\]]*\]\s*\|"),
    identities=("username", "user name", "student id"),
)


def blackboard_csv(
    reports: Sequence[Report], gradebook: Table, column: str, roster: Roster | None = None, *, scale: bool = False
) -> Upload:
    """Fill in the column of the gradebook for Blackboard to upload."""
    return upload_of(reports, gradebook, COLUMN, column, roster, scale=scale)


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The files of a download among these."""
    return [entry for entry in entries if not is_folder(entry) and FILE_NAME.fullmatch(entry.name)]


def hand_ins(files: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """Make one hand-in of the loose files of each attempt."""
    attempts: dict[tuple[str, str], list[tuple[re.Match[str], Path]]] = {}
    for entry in files:
        if match := FILE_NAME.fullmatch(entry.name):
            attempts.setdefault((match["owner"], match["when"]), []).append((match, Path(entry.path)))
    # All names begin with the assignment's title, which ends at the last `_` that they share; not so for one student.
    owners = {owner for owner, _ in attempts}
    shared = os.path.commonprefix(sorted(owners)) if len(owners) > 1 else ""  # noqa: RUF071 (of characters)
    title = shared[: shared.rfind("_") + 1]
    made = []
    for (owner, when), group in attempts.items():
        loose = [(match["rest"], path) for match, path in group if match["rest"]]
        about = [path for match, path in group if not match["rest"]]
        username, name = _names_in(about[0], owner) if about else ("", "")
        who = Owner(username, username, (name,)) if username else Owner(owner.removeprefix(title))
        submitted = moment_in(when, "%Y-%m-%d-%H-%M-%S")
        made.append(of_loose_files((who,), loose or [("", about[0])], wanted, submitted=submitted))
    return made


def _names_in(path: Path, owner: str) -> tuple[str, str]:
    """The username and the name in Blackboard's own text file, where they fit the file's name."""
    try:
        with open_regular(path) as stream:
            match = FIRST_LINE.match(stream.read(MAX_READ).decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    except OSError:
        return "", ""
    if match is None or not f"_{owner}".endswith(f"_{match['username']}"):
        return "", ""
    return match["username"], match["name"]
