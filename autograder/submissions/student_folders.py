"""One student's folder → the files in it that may be graded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from autograder.submissions.handed_file import HandedFile, from_disk, names_of, refused
from autograder.submissions.student_zips import Bundle
from autograder.vocabulary.files import entries_of

MAX_ENTRIES_SEARCHED = 20_000
MAX_ENTRIES = 50_000  # of which an environment of Python has half
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
    count = 0
    for place, entries in _walk(folder, module):
        if (count := count + len(entries)) > MAX_ENTRIES:
            return [refused(shown, f"holds more than {MAX_ENTRIES} files and folders: hand in {module}.py alone.")]
        names = [entry.name for entry in entries if entry.name in names_of(module)]
        loose = [entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]
        others += [f"{place}{name}" for name in loose if name not in names]
        if names:
            homes[place] = [f"{place}{name}" for name in sorted(names, reverse=True)]  # .py before .ipynb
        if names and place in ("", f"{module}/"):
            homes = {place: homes[place]}
            break
    link = next((other for other in others if (folder / other).is_symlink()), None) if not homes else None
    students = Bundle(shown, lambda path, name: from_disk(folder / path, name), module, functions)
    return students.work(list(homes.values()), others) if link is None else [students.file(link)]  # which refuses it


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
