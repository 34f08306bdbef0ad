"""One student's folder → the files in it that may be graded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.submissions import student_zips
from autograder.submissions.handed_file import (
    HandedFile,
    from_disk,
    names_of,
    nothing_in,
    packed,
    refused,
    unclear,
)
from autograder.submissions.names import (
    begun_instead,
    defines_one,
    is_archive,
    is_clear,
    nearest_home,
    suffix_of,
    taken_for,
    taken_instead,
    work_among,
)
from autograder.submissions.student_zips import from_zip
from autograder.submissions.submission import MIB, decodable, quoted
from autograder.vocabulary.folders import entries_of, open_regular
from autograder.vocabulary.text import visible

MAX_ENTRIES_SEARCHED = 20_000
MAX_DEPTH_SEARCHED = 8


def is_students_own(entries: Sequence[os.DirEntry[str]], module: str) -> bool:
    """Whether a folder with these entries is one student's: it holds the files, itself or in `module/`."""
    names = names_of(module)
    if any(entry.name in names for entry in entries):
        return True
    inner = [entry for entry in entries if entry.name == module and entry.is_dir(follow_symlinks=False)]
    return any(entry.name in names for folder in inner for entry in entries_of(Path(folder.path)))


def from_folder(folder: Path, shown: str, module: str, functions: Sequence[str] = ()) -> list[HandedFile]:
    """The files in the folder itself, else those in `module/`, else those in the folder nearest to it that has any.

    Where none has the right name, what is meant: a copy of it, what defines one of the graded `functions`, a lone file.
    """
    homes: dict[str, list[str]] = {}
    others: list[str] = []
    searched = 0
    for place, entries in _walk(folder, module):
        names = [entry.name for entry in entries if entry.name in names_of(module)]
        loose = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
        others += [f"{place}{name}" for name in loose if name not in names]
        if names:
            homes[place] = [f"{place}{name}" for name in sorted(names, reverse=True)]  # .py before .ipynb
        if names and place in ("", f"{module}/"):
            homes = {place: homes[place]}
            break
        searched += len(entries)
        if searched > MAX_ENTRIES_SEARCHED:
            return [refused(shown, f"holds too many files to search: hand in {names_of(module)[0]} alone.")]
    students = _Folder(folder, shown)
    if homes:
        return _of_right_names(students, module, functions, list(homes.values()), others)
    link = next((other for other in others if (folder / other).is_symlink()), None)
    if link is not None:
        return [students.file(link)]  # which refuses it
    return _of_other_names(students, module, functions, others)


@dataclass(frozen=True)
class _Folder:
    """A student's folder, and its name in reports."""

    path: Path
    shown: str

    def file(self, path: str) -> HandedFile:
        """A file in it."""
        return from_disk(self.path / path, f"{self.shown}/{visible(decodable(path))}")

    def data(self, path: str) -> bytes:
        """The first bytes of a file in it; none of what is no regular file."""
        if not stat.S_ISREG(_mode(self.path / path)):
            return b""
        with open_regular(self.path / path) as stream:
            return stream.read(MIB)


def _of_right_names(
    folder: _Folder, module: str, functions: Sequence[str], homes: Sequence[Sequence[str]], others: Sequence[str]
) -> list[HandedFile]:
    """The module and the notebook nearest to the top; where they hold no work, the one other file that does."""
    files, rest = nearest_home(homes, folder.data, functions)
    instead = begun_instead(files, [*rest, *others], folder.data, functions) if files else rest
    if not (files and is_clear(instead)):
        return [unclear(folder.shown, instead)]
    if not instead:
        return [folder.file(path) for path in files]
    found = [(path, folder.file(path)) for path in instead]
    return [replace(file, note=taken_instead(file.shown, path, quoted(files[0]), module)) for path, file in found]


def _of_other_names(folder: _Folder, module: str, functions: Sequence[str], others: Sequence[str]) -> list[HandedFile]:
    """What is meant where no file has the right name: modules and notebooks, else a lone zip."""
    meant = work_among(others, module, lambda path: bool(functions) and defines_one(folder.data(path), functions))
    if not is_clear(meant):
        return [unclear(folder.shown, meant)]
    if meant:
        found = [(path, folder.file(path)) for path in meant]
        return [replace(file, note=taken_for(file.shown, path, module)) for path, file in found]
    zips = [other for other in others if suffix_of(other) == ".zip"]
    if len(zips) > 1:
        zips = [other for other in zips if student_zips.holds_work(folder.path / other, module)]
    if len(zips) > 1:
        return [unclear(folder.shown, zips)]
    if zips:
        archive = folder.file(zips[0])
        return [archive] if archive.problem else from_zip(archive, module, functions)
    if archived := next((other for other in others if is_archive(other)), ""):
        return [packed(folder.shown, archived)]
    return [nothing_in(folder.shown, module, others)]


def holds_work(folder: Path, module: str) -> bool:
    """Whether `from_folder` would find anything to grade, or more than it searches; a folder that is closed may."""
    searched = 0
    try:
        for _, entries in _walk(folder, module):
            searched += len(entries)
            if searched > MAX_ENTRIES_SEARCHED or any(entry.name in names_of(module) for entry in entries):
                return True
    except OSError:
        return True
    return False


def _walk(folder: Path, module: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
    """`folder`, its `module/` and then all below, nearer before deeper: each as a prefix and its entries."""
    queue = ["", f"{module}/"]
    for place in queue:
        if place == queue[1] and not stat.S_ISDIR(_mode(folder / module)):
            continue
        entries = entries_of(folder / place)
        yield place, entries
        if place.count("/") < MAX_DEPTH_SEARCHED:
            inner = [f"{place}{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
            queue += [name for name in inner if name != queue[1]]


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0
