"""Submitty's download of a gradeable, or its folder on the server: each student's versions, and which one counts.

*Download Zip > all* gives `submissions/<user>/<version>/…` with `submissions/<user>/user_assignment_settings.json`,
and where students hand in by git, `checkout/<user>/<version>/…`, which is what was pulled; *active* gives the chosen
version alone, `submissions/<user>/…` and `checkout/<user>/…`; a grader's own sections lie in `<user>/…` at the top.
`results/` may lie beside them. The settings hold `active_version`, 0 for a submission that was cancelled, and a
`history` of versions and times; a team has a folder of its own name. (github.com/Submitty/Submitty:
`downloadAssignedZips` in site/app/controllers/MiscController.php;
submitty.org/instructor/autograding/directory_structure.)

On the server a course's folder holds `submissions/<gradeable>/<user>/<version>/…` and, of hand-ins by git,
`checkout/<gradeable>/<user>/<version>/…`; then the version in `submissions` holds `.submit.VCS_CHECKOUT` and no work,
and a file `failed_to_….txt` stands in the checkout where the repository could not be cloned (directory_structure, as
above; `checkout_vcs_repo` in Submitty's submitty_autograding_shipper.py). One gradeable's folder is given, of either
kind: the other is found beside it. So is a copy of both with that gradeable alone.

There is no upload: Submitty takes a CSV for numeric gradeables alone, and not for those that students hand in to
(`UploadCSV` in SimpleGraderController.php).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.platforms.hand_in import HandIn, Owner, Wanted, is_folder
from autograder.submissions.finding import MAX_SETTINGS, SETTINGS, SUBMISSIONS, VERSIONED
from autograder.submissions.submission import shown_name
from autograder.vocabulary.files import entries_of, is_file_at, is_folder_at, is_there, open_regular
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment_or_none

CHECKOUT = "checkout"
BY_GIT = ".submit.VCS_CHECKOUT"
NOT_CLONED = re.compile(r"failed_to_(?:clone_repository|determine_version_on_\w+|construct_valid_repository_url)\.txt")
MOST_VERSIONS = 100_000

Entries = Sequence[os.DirEntry[str]]


def recognised(entries: Entries) -> list[os.DirEntry[str]]:
    """The folders of students, or those that hold them, that are among these."""
    if _is_whole(entries):
        return [entry for entry in entries if is_folder(entry)]
    return [entry for entry in entries if is_folder(entry) and is_file_at(_submissions_of(entry) / SETTINGS)]


def _submissions_of(entry: os.DirEntry[str]) -> Path:
    """Where a student's settings lie; of a checkout on the server, in the folder beside it."""
    return _beside(Path(entry.path), CHECKOUT, SUBMISSIONS) or Path(entry.path)


def _beside(student: Path, here: str, there: str) -> Path | None:
    """`…/<there>/<gradeable>/<student>` for a folder `…/<here>/<gradeable>/<student>`; None for any other."""
    gradeable = Path(os.path.normpath(student.absolute())).parent
    return gradeable.parent.parent / there / gradeable.name / student.name if gradeable.parent.name == here else None


def _is_whole(entries: Entries) -> bool:
    """Whether it is a download with its folder `submissions`, and not the students' folders themselves."""
    folders = {entry.name: entry for entry in entries if is_folder(entry)}
    if SUBMISSIONS not in folders or not set(folders) <= VERSIONED:
        return False
    students = _folders_in(Path(folders[SUBMISSIONS].path))
    described = [one for one in students if is_file_at(one / SETTINGS)]
    return bool(students) and (len(folders) > 1 or len(described) * 2 > len(students))


def hand_ins(entries: Entries, wanted: Wanted) -> list[HandIn]:
    """What each student handed in: the version that counts in Submitty."""
    if not _is_whole(entries):
        return [_on_server(entry) for entry in entries]
    top = {entry.name: Path(entry.path) for entry in entries}
    found: list[HandIn] = []
    gradeables = [one for one in _folders_in(top[SUBMISSIONS]) if _is_gradeable(one)]
    if len(gradeables) > 1:
        return [_not_a_student(one) for one in gradeables]
    submissions = gradeables[0] if gradeables else top[SUBMISSIONS]
    checkout = top.get(CHECKOUT, Path()) / submissions.name if gradeables else top.get(CHECKOUT)
    checkouts = {one.name: one for one in _folders_in(checkout)} if checkout else {}
    for one in _folders_in(submissions):
        found.append(_of_student(one, [checkouts[one.name]] if one.name in checkouts else []))
    return found


def _on_server(entry: os.DirEntry[str]) -> HandIn:
    """What a student handed in, of a folder of students: on the server, what was pulled lies in another beside it."""
    submissions, checkout = _submissions_of(entry), _beside(Path(entry.path), SUBMISSIONS, CHECKOUT)
    if submissions != Path(entry.path):
        checkout = Path(entry.path)
    return _of_student(submissions, [checkout] if checkout is not None and _is_folder(checkout) else [])


def _is_gradeable(folder: Path) -> bool:
    """Whether a folder is not a student's but holds those of students."""
    if is_there(folder / SETTINGS):
        return False
    return any(is_file_at(one / SETTINGS) for one in _folders_in(folder))


def _not_a_student(folder: Path) -> HandIn:
    shown = shown_name(folder.name)
    reason = f"{visible(shown, 100)} is one of several gradeables of Submitty's: give the folder of one."
    return HandIn((Owner(folder.name),), folder, shown, refused=reason)


def _of_student(folder: Path, checkouts: Sequence[Path]) -> HandIn:
    owner, shown = (Owner(folder.name),), shown_name(folder.name)
    if not is_there(folder / SETTINGS):  # only the version that counts was downloaded
        return HandIn(owner, (*checkouts, folder)[0], shown)
    chosen = _settings(folder)
    if chosen is None:
        reason = f"{visible(shown, 100)} is not graded: Submitty's {SETTINGS} does not say which version counts."
        return HandIn(owner, folder, shown, refused=reason)
    if chosen.version == 0:
        return HandIn(owner, folder, shown, refused=f"{visible(shown, 100)} has cancelled the submission in Submitty.")
    version = str(chosen.version)
    work = next((one / version for one in (*checkouts, folder) if _is_folder(one / version)), None)
    if work is not None and (why := _not_pulled(work)):
        return HandIn(owner, folder, shown, refused=f"{visible(shown, 100)} is not graded: {why}.")
    if work is None:
        reason = f"{visible(shown, 100)} is not graded: version {version}, which counts in Submitty, is not there."
        return HandIn(owner, folder, shown, refused=reason)
    last = max((int(one.name) for one in _folders_in(folder) if _is_number(one.name)), default=0)
    notes = (f"version {version} of {last} was graded, which counts in Submitty",) if last > chosen.version else ()
    return HandIn(owner, work, f"{shown}/{version}", submitted=chosen.times.get(chosen.version), notes=notes)


def _not_pulled(work: Path) -> str:
    """Why there is no work in a version that was handed in by git; "" where there is some."""
    try:
        names = [entry.name for entry in entries_of(work)]
    except OSError:  # whoever reads it says so
        return ""
    if failed := next((name for name in names if NOT_CLONED.fullmatch(name)), ""):
        return f"Submitty could not pull the repository ({failed})"
    return "it was handed in by git, and what was pulled is not there" if is_there(work / BY_GIT) else ""


@dataclass(frozen=True)
class _Chosen:
    """Which version counts, and when each was handed in."""

    version: int
    times: dict[int, datetime] = field(default_factory=dict)


def _settings(folder: Path) -> _Chosen | None:
    """What a student's settings say; None where they say nothing that can be used."""
    try:
        with open_regular(folder / SETTINGS) as stream:
            data: Any = json.loads(stream.read(MAX_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return None
    version = data.get("active_version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version <= MOST_VERSIONS:
        return None
    history = data.get("history")
    listed = [one for one in history if isinstance(one, dict)] if isinstance(history, list) else []
    times = {one["version"]: _moment(one.get("time")) for one in listed if isinstance(one.get("version"), int)}
    return _Chosen(version, {number: when for number, when in times.items() if when is not None})


def _moment(text: Any) -> datetime | None:
    """`2027-03-01 22:10:11-0500`, behind which the zone may stand by its name as well."""
    return moment_or_none(" ".join(text[:100].split()[:2])) if isinstance(text, str) else None


def _folders_in(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in entries_of(folder) if is_folder(entry)]
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    return is_folder_at(path) and not path.is_symlink()


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 6
