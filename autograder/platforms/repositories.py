"""Where students hand in by git or a server keeps versions: clones on GitHub, CodeGrade's filesystem, Submitty.

Each of the three has a function that recognises its entries and one that says what was handed in.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from autograder.gradebook.roster import Roster
from autograder.platforms.hand_in import HandIn, Owner, Wanted, is_folder
from autograder.submissions.finding import MAX_SETTINGS, SETTINGS, SUBMISSIONS, VERSIONED
from autograder.submissions.names import PART, likeness
from autograder.submissions.submission import shown_name
from autograder.vocabulary.files import entries_of, is_file_at, is_folder_at, is_there, open_regular
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment_or_none

Entries = Sequence[os.DirEntry[str]]


# GitHub
#
# Clones are named <assignment>-<username>, as GitHub Classroom did until it closed on 28 August 2026; `gh repo clone`
# and scripts of courses keep the names. Classroom 50 writes <classroom>-<assignment>-<username>, all of it small, and
# `gh teacher download` clones a class into <classroom>-<assignment>_submissions_<time>, with `result.json` in each
# clone and `scores.csv` beside them (github.com/foundation50/classroom50: cli/gh-student/internal/reponame,
# cli/gh-teacher/internal/download). A group hands in by the repository of one member: a roster with a column `group`
# gives it to the others.

DOWNLOADED = re.compile(r"-submissions|_submissions_\d{4}_\d\d_\d\d_T_\d\d_\d\d_\d\d")  # behind the assignment's name


def github_recognised(entries: Entries) -> list[os.DirEntry[str]]:
    """The repositories among these."""
    return [entry for entry in entries if is_folder(entry) and is_there(Path(entry.path) / ".git")]


def github_hand_ins(repositories: Entries, folder: str, wanted: Wanted) -> list[HandIn]:
    """Make a hand-in of each repository that shares the assignment's name; none where that name is not clear."""
    start = assignment_of([entry.name for entry in repositories], folder, wanted.roster, wanted.module)
    return [
        HandIn((Owner(entry.name.removeprefix(start)),), Path(entry.path), shown_name(entry.name))
        for entry in repositories
        if start and entry.name.startswith(start) and entry.name != start
    ]


def assignment_of(names: Sequence[str], folder: str, roster: Roster | None, module: str = "") -> str:
    """What stands before the usernames, with its hyphen: what most names share; "" where that is not clear.

    The download's folder says it, then the roster; else it holds the module's name, where names that share more do so.
    """
    starts = Counter(name[: at + 1] for name in names for at, letter in enumerate(name[:-1]) if letter == "-")
    most = max(starts.values(), default=0)
    shared = sorted(start for start, count in starts.items() if count == most and count * 2 > len(names))
    if by_folder := next((start for start in shared if DOWNLOADED.fullmatch(folder.removeprefix(start[:-1]))), ""):
        return by_folder
    if roster is not None:
        usernames = {start: [name[len(start) :] for name in names if name.startswith(start)] for start in shared}
        known = [start for start in shared if all(roster.person(name) for name in usernames[start] if name)]
        return known[0] if len(known) == 1 else ""
    shared = [start for start in shared if module and likeness(start, module) >= PART] or shared
    return shared[0] if len(shared) == 1 and most > 1 else ""


# CodeGrade
#
# `cgfs` shows a course to staff as <course>/<assignment>/<name> - <yyyy-mm-dd hh:mm:ss>/…, in UTC; with *Latest
# submissions only*, one for each student. A group is `Group "<name>" - …`. Its folder holds `.cg-group-members`, but
# what students hand in under that name takes its place, so nothing is read there: a roster says who is in a group.
# (github.com/CodeGra-de/CodeGra.fs: docs/usage.rst, and `load_submissions` and `load_submission_files` in
# codegra_fs/cgfs.py.) Older versions write the time as 2017-11-14T13:41:26.324712. CodeGrade takes no file of grades.

CODEGRADE_NAME = re.compile(  # copies to other file systems have lost the colons
    r"(?P<name>.+) - (?P<day>\d{4}-\d\d-\d\d)[T ](?P<h>\d\d)[:._-]?(?P<m>\d\d)[:._-]?(?P<s>\d\d)(?:[.,]\d+)?"
    r"(?:Z|(?P<east>[+-]\d\d)[:._-]?(?P<past>\d\d))?",
    re.ASCII | re.DOTALL,
)
CODEGRADE_GROUP = re.compile(r'Group ["_](.*)["_]', re.DOTALL)


def codegrade_recognised(entries: Entries) -> list[os.DirEntry[str]]:
    """The folders of submissions among these."""
    return [entry for entry in entries if is_folder(entry) and CODEGRADE_NAME.fullmatch(entry.name)]


def codegrade_hand_ins(entries: Entries, wanted: Wanted) -> list[HandIn]:
    """Make one hand-in of each folder."""
    made = []
    for entry in entries:
        if match := CODEGRADE_NAME.fullmatch(entry.name):
            zone = f"{match['east']}:{match['past']}" if match["east"] else "+00:00"
            submitted = moment_or_none(f"{match['day']} {match['h']}:{match['m']}:{match['s']}{zone}")
            group = CODEGRADE_GROUP.fullmatch(match["name"])
            owner = Owner(match["name"], others=(group[1],) if group else ())
            path, shown = Path(entry.path), shown_name(entry.name)
            made.append(HandIn((owner,), path, shown, submitted=submitted, by_name=True))
    return made


# Submitty
#
# *Download Zip > all* gives submissions/<user>/<version>/… with submissions/<user>/user_assignment_settings.json, and
# where students hand in by git, checkout/<user>/<version>/…, which is what was pulled; *active* gives the chosen
# version alone, submissions/<user>/… and checkout/<user>/…; a grader's own sections lie in <user>/… at the top.
# results/ may lie beside them. The settings hold `active_version`, 0 for a submission that was cancelled, and a
# `history` of versions and times; a team has a folder of its own name.
# (github.com/Submitty/Submitty: `downloadAssignedZips` in site/app/controllers/MiscController.php;
# submitty.org/instructor/autograding/directory_structure.)
#
# On the server a course's folder holds submissions/<gradeable>/<user>/<version>/… and, of hand-ins by git,
# checkout/<gradeable>/<user>/<version>/…; then the version in `submissions` holds .submit.VCS_CHECKOUT and no work, and
# a file failed_to_….txt stands in the checkout where the repository could not be cloned (`checkout_vcs_repo` in
# submitty_autograding_shipper.py). One gradeable's folder is given, of either kind: the other is found beside it. So is
# a copy of both with that gradeable alone. Submitty takes no file of grades for what students hand in to.

CHECKOUT = "checkout"
BY_GIT = ".submit.VCS_CHECKOUT"
NOT_CLONED = re.compile(r"failed_to_(?:clone_repository|determine_version_on_\w+|construct_valid_repository_url)\.txt")
MAX_VERSION = 100_000


def submitty_recognised(entries: Entries) -> list[os.DirEntry[str]]:
    """The folders of students among these, or those that hold them."""
    folders = [entry for entry in entries if is_folder(entry)]
    if _is_whole(entries):
        return folders
    return [entry for entry in folders if is_file_at(_on_server(entry, CHECKOUT, SUBMISSIONS) / SETTINGS)]


def submitty_hand_ins(entries: Entries, wanted: Wanted) -> list[HandIn]:
    """Make a hand-in of each student's version that counts in Submitty."""
    if not _is_whole(entries):
        return [
            _of_student(_on_server(entry, CHECKOUT, SUBMISSIONS), _on_server(entry, SUBMISSIONS, CHECKOUT))
            for entry in entries
        ]
    top = {entry.name: Path(entry.path) for entry in entries}
    submissions, checkouts = top[SUBMISSIONS], top.get(CHECKOUT)
    gradeables = [
        folder
        for folder in _folders_in(submissions)
        if not is_there(folder / SETTINGS) and any(is_file_at(one / SETTINGS) for one in _folders_in(folder))
    ]
    if len(gradeables) > 1:
        made = []
        for folder in gradeables:
            shown = shown_name(folder.name)
            reason = f"{visible(shown, 100)} is one of several gradeables of Submitty's: give the folder of one."
            made.append(HandIn((Owner(folder.name),), folder, shown, refused=reason))
        return made
    if gradeables:
        submissions, checkouts = gradeables[0], checkouts and checkouts / gradeables[0].name
    return [_of_student(folder, checkouts and checkouts / folder.name) for folder in _folders_in(submissions)]


def _is_whole(entries: Entries) -> bool:
    """Whether it is a download with its folder `submissions`, and not the students' folders themselves."""
    folders = {entry.name: entry for entry in entries if is_folder(entry)}
    if SUBMISSIONS not in folders or not set(folders) <= VERSIONED:
        return False
    students = _folders_in(Path(folders[SUBMISSIONS].path))
    described = [student for student in students if is_file_at(student / SETTINGS)]
    return bool(students) and (len(folders) > 1 or len(described) * 2 > len(students))


def _on_server(entry: os.DirEntry[str], here: str, there: str) -> Path:
    """`…/<there>/<gradeable>/<student>` for a folder `…/<here>/<gradeable>/<student>`; any other folder is itself."""
    student = Path(entry.path)
    gradeable = Path(os.path.normpath(student.absolute())).parent
    if gradeable.parent.name != here:
        return student
    return gradeable.parent.parent / there / gradeable.name / student.name


def _of_student(folder: Path, checkout: Path | None) -> HandIn:
    """The version of one student that counts.

    checkout   where what was pulled of the student's repository may lie; the same folder where there is no such place
    """
    owner, shown = (Owner(folder.name),), shown_name(folder.name)
    places = [place for place in (checkout, folder) if place and (place == folder or _is_folder(place))]
    if not is_there(folder / SETTINGS):  # only the version that counts was downloaded
        return HandIn(owner, places[0], shown)

    def refused(reason: str) -> HandIn:
        return HandIn(owner, folder, shown, refused=f"{visible(shown, 100)} {reason}.")

    settings = _settings(folder)
    if settings is None:
        return refused(f"is not graded: Submitty's {SETTINGS} does not say which version counts")
    version, times = settings
    if version == 0:
        return refused("has cancelled the submission in Submitty")
    work = next((place / str(version) for place in places if _is_folder(place / str(version))), None)
    if work is None:
        return refused(f"is not graded: version {version}, which counts in Submitty, is not there")
    try:
        names = [entry.name for entry in entries_of(work)]
    except OSError:  # whoever reads the work says so
        names = []
    if failed := next(filter(NOT_CLONED.fullmatch, names), ""):
        return refused(f"is not graded: Submitty could not pull the repository ({failed})")
    if is_there(work / BY_GIT):
        return refused("is not graded: it was handed in by git, and what was pulled is not there")
    versions = [path.name for path in _folders_in(folder)]
    last = max((int(name) for name in versions if name.isascii() and name.isdigit() and len(name) <= 6), default=0)
    notes = (f"version {version} of {last} was graded, which counts in Submitty",) if last > version else ()
    return HandIn(owner, work, f"{shown}/{version}", submitted=times.get(version), notes=notes)


def _settings(folder: Path) -> tuple[int, dict[int, datetime]] | None:
    """The version that counts, and when each was handed in; None where the settings say nothing that can be used."""
    try:
        with open_regular(folder / SETTINGS) as stream:
            data: Any = json.loads(stream.read(MAX_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return None
    version = data.get("active_version") if isinstance(data, dict) else None
    if type(version) is not int or not 0 <= version <= MAX_VERSION:
        return None
    times: dict[int, datetime] = {}
    history = data.get("history")
    for entry in history if isinstance(history, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("version"), int) and isinstance(entry.get("time"), str):
            # `2027-03-01 22:10:11-0500`, behind which the zone may stand by its name as well
            when = moment_or_none(" ".join(entry["time"][:100].split()[:2]))
            times |= {} if when is None else {entry["version"]: when}
    return version, times


def _folders_in(folder: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in entries_of(folder) if is_folder(entry)]
    except OSError:
        return []


def _is_folder(path: Path) -> bool:
    return is_folder_at(path) and not path.is_symlink()
