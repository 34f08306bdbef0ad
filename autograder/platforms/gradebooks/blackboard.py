"""Blackboard Learn: its download of an assignment is read; of its gradebook, the one column to upload is filled in.

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
from autograder.platforms.gradebooks.upload import Column, Upload, upload_of
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
    heading=re.compile(r".*\|\s*\d+\s*", re.DOTALL),
    worth=re.compile(r"\[[^\]]*?(\d+(?:[.,]\d+)?)[^\]]*\]\s*\|"),
    identities=("username", "user name", "student id"),
    what="Blackboard",
)


def blackboard_csv(
    reports: Sequence[Report], gradebook: Table, column: str, roster: Roster | None = None, *, scale: bool = False
) -> Upload:
    """The gradebook for Blackboard to upload: who it is, and the column, for students with a grade of ours."""
    return upload_of(reports, gradebook, COLUMN, column, roster, scale=scale)


# The download of a class


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The files of a download that are among these."""
    return [entry for entry in entries if not is_folder(entry) and FILE_NAME.fullmatch(entry.name)]


def hand_ins(files: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """What was handed in, an attempt each: its loose files are one."""
    attempts: dict[tuple[str, str], list[tuple[re.Match[str], Path]]] = {}
    for entry in files:
        if found := FILE_NAME.fullmatch(entry.name):
            attempts.setdefault((found["owner"], found["when"]), []).append((found, Path(entry.path)))
    usual = _assignment([owner for owner, _ in attempts])
    return [_attempt(owner.removeprefix(usual), when, of_one, wanted) for (owner, when), of_one in attempts.items()]


def _assignment(owners: Sequence[str]) -> str:
    """What all names begin with, up to its last `_`: the assignment's title; "" for a single student."""
    shared = os.path.commonprefix(sorted(set(owners)))  # noqa: RUF071 (of characters is what is meant)
    return shared[: shared.rfind("_") + 1] if len(set(owners)) > 1 else ""


def _attempt(owner: str, when: str, files: Sequence[tuple[re.Match[str], Path]], wanted: Wanted) -> HandIn:
    loose = [(found["rest"], path) for found, path in files if found["rest"]]
    about = [path for found, path in files if not found["rest"]]
    username, name = _names_in(about[0], files[0][0]["owner"]) if about else ("", "")
    owners = (Owner(username, username, (name,)) if username else Owner(owner),)
    submitted = moment_in(when, "%Y-%m-%d-%H-%M-%S")
    return of_loose_files(owners, loose or [("", about[0])], wanted, submitted=submitted)


def _names_in(path: Path, owner: str) -> tuple[str, str]:
    """The username and the name in Blackboard's own text file, where they fit the file's name."""
    try:
        with open_regular(path) as stream:
            found = FIRST_LINE.match(stream.read(MAX_READ).decode("utf-8-sig", "replace").replace("\r\n", "\n"))
    except OSError:
        return "", ""
    fits = found is not None and f"_{owner}".endswith(f"_{found['username']}")
    return (found["username"], found["name"]) if found and fits else ("", "")
