"""What lies in a folder of submissions → a Candidate for each; no file is opened.

Results of an earlier run may lie among submissions: they are nobody's work, and neither is what the run to come will
write. UsageError answers what was asked on the command line.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.submissions import student_folders, student_zips
from autograder.submissions.handed_file import names_of
from autograder.submissions.names import defines_one, stem_of, suffix_of
from autograder.submissions.student_folders import is_students_own
from autograder.submissions.submission import CAPS, Candidate, quoted, shown_name, student_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import (
    LEFT_BEHIND,
    beginning,
    entries_of,
    is_file_at,
    is_folder_at,
    is_of_tools,
    is_there,
)

RUN, RESULTS = "run.json", ("reports", "feedback", "details")  # what every run of `grade` writes: see course.results


@dataclass(frozen=True)
class Place:
    """What lies at a path that was given.

    real          where that is, without a symbolic link
    is_class      it is a folder of submissions; else one submission
    entries       what lies in a folder of submissions and may be one
    left_out      names of results, but for those to come, and of what tools leave behind
    has_results   results lie there, those to come or of an earlier run
    """

    path: Path
    real: Path
    is_class: bool
    entries: tuple[os.DirEntry[str], ...] = ()
    left_out: tuple[str, ...] = ()
    has_results: bool = False


def find(paths: Sequence[Path], module: str) -> list[Candidate]:
    """Every candidate at `paths`, sorted by student; no file is opened.

    paths    folders of submissions, students' own folders, or single files
    module   the name to hand in under, without suffix: "policy_gradient"
    raises   UsageError where there is nothing to grade, or a student appears twice
    """
    found: dict[str, Candidate] = {}
    places = [place_at(path, module) for path in paths]
    for candidate in itertools.chain.from_iterable(candidates_at(place, module) for place in places):
        other = found.setdefault(candidate.student, candidate)
        if other.path.absolute() != candidate.path.absolute():
            both = f"{quoted(str(other.path))} and {quoted(str(candidate.path))}"
            raise UsageError(f"{quoted(candidate.student)} handed in twice: {both}. Keep one of them.")
    if paths and not found:
        raise nothing_but_results(paths[0])
    return sorted(found.values(), key=lambda candidate: candidate.student)


def nothing_but_results(path: Path) -> UsageError:
    """What to raise where `path` holds results and no submission."""
    results = f"{quoted(str(path))} holds results of an earlier run and no submission"
    return UsageError(f"{results}: give a folder that holds submissions.")


def place_at(path: Path, module: str, out: Path | None = None, *, is_class: bool | None = None) -> Place:
    """What lies at `path`; raises UsageError where that cannot be looked at, or can be no submission.

    out        where results will go, as `Path.resolve` gives it: nothing there was handed in
    is_class   whether a folder is one of submissions, where that is known; else it is one without a module of its own
    """
    try:
        mode = path.stat().st_mode
        real = path.resolve() if path.is_symlink() else path
        entries = entries_of(real) if stat.S_ISDIR(mode) else []
        own = is_students_own(entries, module) if is_class is None else not is_class
        if stat.S_ISDIR(mode) and not own:
            return _class_at(path, real, entries, module, out)
    except (OSError, ValueError) as error:
        raise UsageError(_unusable(path, error)) from None
    if not (own and stat.S_ISDIR(mode)) and not (stat.S_ISREG(mode) and suffix_of(path.name) in CAPS):
        accepted = "a folder, or a .py, .ipynb or .zip file"
        raise UsageError(f"{quoted(str(path))} cannot be graded: give {accepted}.")
    return Place(path, real, is_class=False)


def candidates_at(place: Place, module: str) -> list[Candidate]:
    """The candidates at a place that no platform has laid out; UsageError where nothing there can be one.

    Where nothing but results lies there, that is no candidate and no error.
    """
    if not place.is_class:
        return [_candidate(place.path, place.real, module, is_folder=place.real.is_dir())]
    candidates = [candidate_of(place, entry, module) for entry in place.entries if may_be_one(entry)]
    if candidates or place.has_results:
        return candidates
    if not place.entries:
        raise UsageError(f"{quoted(str(place.path))} is empty: give a folder that holds submissions.")
    expected = "a folder, .zip, .py or .ipynb for each student"
    raise UsageError(f"{quoted(str(place.path))} holds no submission: give a folder that holds {expected}.")


def candidate_of(place: Place, entry: os.DirEntry[str], module: str) -> Candidate:
    """An entry of a folder of submissions, as what one student handed in."""
    return _candidate(place.path / entry.name, place.real / entry.name, module, is_folder=_is_folder(entry))


def holds_work(entry: os.DirEntry[str], module: str) -> bool:
    """Whether there is anything to grade: a module, a notebook, a folder or a zip with one of the right name."""
    suffix = suffix_of(entry.name)
    if entry.is_dir(follow_symlinks=False):
        return student_folders.holds_work(Path(entry.path), module)
    return student_zips.holds_work(Path(entry.path), module) if suffix == ".zip" else suffix in CAPS


def is_module(entry: os.DirEntry[str], module: str) -> bool:
    """Whether an entry has the name to hand in under, or is a folder of that name: it says not whose it is."""
    return entry.name in names_of(module) or (entry.name == module and entry.is_dir(follow_symlinks=False))


def works_beside(entries: Sequence[os.DirEntry[str]], module: str, functions: Sequence[str]) -> list[os.DirEntry[str]]:
    """Which of the entries look like whole submissions: folders and zips of the module, loose files with its functions.

    A student's own folder may hold one or two, as backups; a class holds them for everybody.
    """
    return [entry for entry in entries if _is_whole(entry, module, functions)]


def _is_whole(entry: os.DirEntry[str], module: str, functions: Sequence[str]) -> bool:
    path = Path(entry.path)
    if entry.is_dir(follow_symlinks=False):
        with contextlib.suppress(OSError):
            return is_students_own(entries_of(path), module)
        return False
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return student_zips.holds_work(path, module)
    return suffix in CAPS and module not in entry.name and defines_one(beginning(path), functions)


# What is no submission


def _class_at(path: Path, real: Path, entries: Sequence[os.DirEntry[str]], module: str, out: Path | None) -> Place:
    """A folder of submissions, and what in it is none: results, and what tools leave behind."""
    written_here = real.resolve() == out or _has_results(real)
    results = [entry for entry in entries if _is_results(entry, module, out, written_here=written_here)]
    kept = tuple(entry for entry in entries if entry not in results)
    named = [entry.name for entry in results if not _is_out(entry, out) or holds_work(entry, module)]
    named += [name for name in LEFT_BEHIND if is_there(real / name)]
    return Place(path, real, True, kept, tuple(sorted(named)), written_here or bool(results))


def _is_results(entry: os.DirEntry[str], module: str, out: Path | None, *, written_here: bool) -> bool:
    """Whether it is the folder for results, holds nothing but results, or is a part of those `written_here`."""
    if _is_out(entry, out):
        return True
    if not entry.is_dir(follow_symlinks=False):
        return False
    try:
        known = (written_here and entry.name in RESULTS) or _is_of_results(Path(entry.path), out)
        return known and not student_folders.holds_work(Path(entry.path), module)
    except OSError:  # it may not be looked at: somebody's work, whose report says so
        return False


def _is_out(entry: os.DirEntry[str], out: Path | None) -> bool:
    return out is not None and Path(os.path.realpath(entry.path)) == out


def _is_of_results(folder: Path, out: Path | None, depth: int = 2) -> bool:
    """Whether a run of `grade` ended in this folder, will write below it, or ended in every folder in it."""
    if _has_results(folder) or (out is not None and out.is_relative_to(folder.resolve())):
        return True
    try:
        inner = entries_of(folder) if depth else []
    except OSError:
        return False
    return bool(inner) and all(
        entry.is_dir(follow_symlinks=False) and _is_of_results(Path(entry.path), None, depth - 1) for entry in inner
    )


def _has_results(folder: Path) -> bool:
    """Whether a run of `grade` ended here."""
    return is_file_at(folder / RUN) and is_folder_at(folder / RESULTS[0])


def hidden_entries(place: Place, module: str) -> list[os.DirEntry[str]]:
    """What lies in a folder of submissions under a name with a dot before it, and is not what a tool keeps there."""
    with os.scandir(place.real) as listed:
        dotted = [entry for entry in listed if entry.name.startswith(".") and not is_of_tools(entry.name)]
    return sorted((entry for entry in dotted if may_be_one(entry)), key=lambda entry: entry.name)


def may_be_one(entry: os.DirEntry[str]) -> bool:
    """Whether it is a candidate where no platform has laid out the folder."""
    return _is_folder(entry) or suffix_of(entry.name) in CAPS


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads where this user may not look: `read` says that it is a link
        return True


def _unusable(path: Path, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return f"There is no file or folder {quoted(str(path))}: check the path."
    if isinstance(error, PermissionError):
        return f"{quoted(str(path))} may not be read by this user: change its permissions and start again."
    reason = getattr(error, "strerror", None) or "not a usable path"
    return f"{quoted(str(path))} cannot be opened ({reason}): check the path."


def _candidate(path: Path, real: Path, module: str, *, is_folder: bool) -> Candidate:
    """The candidate at `path`, named for it or for the first folder above that has a name of its own."""
    place = Path(os.path.normpath(path.absolute()))
    student, shown = place.name if is_folder else stem_of(place.name), place.name
    while student == module and place.parent != place:
        place = place.parent
        student, shown = place.name, f"{place.name}/{shown}"
    return Candidate(student_name(student), real, shown_name(shown))
