"""What lies in a folder of submissions → a Candidate for each; no file is opened.

UsageError answers what was asked on the command line.
"""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from autograder.submissions.student_folders import entries_of, is_students_own
from autograder.submissions.submission import CAPS, Candidate, quoted, shown_name, student_name
from autograder.vocabulary.errors import UsageError


def find(paths: Sequence[Path], module: str) -> list[Candidate]:
    """Every candidate at `paths`, sorted by student; no file is opened.

    paths    folders of submissions, students' own folders, or single files
    module   the name to hand in under, without suffix: "policy_gradient"
    raises   UsageError where there is nothing to grade, or a student appears twice
    """
    found: dict[str, Candidate] = {}
    for candidate in itertools.chain.from_iterable(_at(path, module) for path in paths):
        other = found.setdefault(candidate.student, candidate)
        if other.path.absolute() != candidate.path.absolute():
            both = f"{quoted(str(other.path))} and {quoted(str(candidate.path))}"
            raise UsageError(f"{quoted(candidate.student)} handed in twice: {both}. Keep one of them.")
    return sorted(found.values(), key=lambda candidate: candidate.student)


def _at(path: Path, module: str) -> list[Candidate]:
    try:
        mode = path.stat().st_mode
        real = path.resolve() if path.is_symlink() else path
        entries = entries_of(real) if stat.S_ISDIR(mode) else []
        own = is_students_own(entries, module)
    except (OSError, ValueError) as error:
        raise UsageError(_unusable(path, error)) from None
    if stat.S_ISDIR(mode) and not own:
        return _in_class(path, real, entries, module)
    if not own and not (stat.S_ISREG(mode) and path.suffix.lower() in CAPS):
        accepted = "a folder, or a .py, .ipynb or .zip file"
        raise UsageError(f"{quoted(str(path))} cannot be graded: give {accepted}.")
    return [_candidate(path, real, module, is_folder=own)]


def _unusable(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"There is no file or folder {quoted(str(path))}: check the path."
    if isinstance(error, PermissionError):
        return f"{quoted(str(path))} may not be read by this user: change its permissions and start again."
    reason = getattr(error, "strerror", None) or "not a usable path"
    return f"{quoted(str(path))} cannot be opened ({reason}): check the path."


def _in_class(path: Path, real: Path, entries: Sequence[os.DirEntry[str]], module: str) -> list[Candidate]:
    if not entries:
        raise UsageError(f"{quoted(str(path))} is empty: give a folder that holds submissions.")
    candidates = [
        _candidate(path / entry.name, real / entry.name, module, is_folder=_is_folder(entry))
        for entry in entries
        if _is_folder(entry) or Path(entry.name).suffix.lower() in CAPS
    ]
    if not candidates:
        expected = "a folder, .zip, .py or .ipynb for each student"
        raise UsageError(f"{quoted(str(path))} holds no submission: give a folder that holds {expected}.")
    return candidates


def _candidate(path: Path, real: Path, module: str, *, is_folder: bool) -> Candidate:
    """The candidate at `path`, named for it or for the first folder above that has a name of its own."""
    place = Path(os.path.normpath(path.absolute()))
    student, shown = place.name if is_folder else place.stem, place.name
    while student == module and place.parent != place:
        place = place.parent
        student, shown = place.name, f"{place.name}/{shown}"
    return Candidate(student_name(student), real, shown_name(shown))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads where this user may not look: `read` says that it is a link
        return True
