"""CodeGrade's filesystem: a folder for each submission of an assignment, also of those that students push by git.

`cgfs` shows a course to staff as `<course>/<assignment>/<name> - <yyyy-mm-dd hh:mm:ss>/…`, in UTC; with *Latest
submissions only*, one for each student. A group is `Group "<name>" - …`. Its folder holds `.cg-group-members`, but what
students hand in under that name takes its place, so nothing is read there: a roster says who is in a group.
(github.com/CodeGra-de/CodeGra.fs: docs/usage.rst, and `load_submissions` and `load_submission_files` in
codegra_fs/cgfs.py; help.codegrade.com, Using the Filesystem.) Older versions write the time as
`2017-11-14T13:41:26.324712`.

There is no upload: CodeGrade documents no file of grades that it takes. In the filesystem each submission's `.cg-grade`
takes one number from 0 to 10.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from autograder.platforms.hand_in import HandIn, Owner, Wanted, is_folder
from autograder.submissions.submission import shown_name
from autograder.vocabulary.times import moment_or_none

# copies to other file systems have lost the colons
FOLDER_NAME = re.compile(
    r"(?P<name>.+) - (?P<day>\d{4}-\d\d-\d\d)[T ](?P<h>\d\d)[:._-]?(?P<m>\d\d)[:._-]?(?P<s>\d\d)(?:[.,]\d+)?"
    r"(?:Z|(?P<east>[+-]\d\d)[:._-]?(?P<past>\d\d))?",
    re.ASCII | re.DOTALL,
)
GROUP = re.compile(r'Group ["_](.*)["_]', re.DOTALL)


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The folders of submissions that are among these."""
    return [entry for entry in entries if is_folder(entry) and FOLDER_NAME.fullmatch(entry.name)]


def hand_ins(entries: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """What was handed in, a folder each."""
    return [
        _hand_in(found, Path(entry.path))
        for entry in entries
        if (found := FOLDER_NAME.fullmatch(entry.name)) is not None
    ]


def _hand_in(found: re.Match[str], folder: Path) -> HandIn:
    zone = f"{found['east']}:{found['past']}" if found["east"] else "+00:00"
    submitted = moment_or_none(f"{found['day']} {found['h']}:{found['m']}:{found['s']}{zone}")
    group = GROUP.fullmatch(found["name"])
    owner = Owner(found["name"], others=(group[1],) if group else ())
    return HandIn((owner,), folder, shown_name(folder.name), submitted=submitted, by_name=True)
