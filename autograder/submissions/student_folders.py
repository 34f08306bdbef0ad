"""One student's folder → the files in it that may be graded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from autograder.submissions.handed_file import (
    HandedFile,
    ambiguous,
    from_disk,
    names_of,
    nothing_in,
    refused,
    unclear,
)
from autograder.submissions.names import defines_one, is_clear, taken_for, work_among
from autograder.submissions.student_zips import from_zip
from autograder.submissions.submission import MIB, decodable
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
    """The files in the folder itself, else those in `module/`, else those in the one folder that has any.

    Where none has the right name, what is meant: a copy of it, what defines one of the graded `functions`, a lone file.
    """
    homes: dict[str, list[str]] = {}
    others: list[str] = []
    searched = 0
    for place, entries in _walk(folder, module):
        names = [entry.name for entry in entries if entry.name in names_of(module)]
        if names:
            homes[place] = names
        if names and place in ("", f"{module}/"):
            homes = {place: names}
            break
        others += [f"{place}{entry.name}" for entry in entries if not entry.is_dir(follow_symlinks=False)]
        searched += len(entries)
        if searched > MAX_ENTRIES_SEARCHED:
            return [refused(shown, f"holds too many files to search: hand in {names_of(module)[0]} alone.")]
    if len(homes) > 1:
        return [ambiguous(shown, [f"{place}{names[0]}" for place, names in homes.items()])]
    for place, names in homes.items():
        paths = [f"{place}{name}" for name in sorted(names, reverse=True)]  # .py before .ipynb
        return [from_disk(folder / path, f"{shown}/{visible(decodable(path))}") for path in paths]
    link = next((other for other in others if (folder / other).is_symlink()), None)
    if link is not None:
        return [from_disk(folder / link, f"{shown}/{visible(decodable(link))}")]  # which refuses it
    return _of_other_names(folder, shown, module, functions, others)


def _of_other_names(
    folder: Path, shown: str, module: str, functions: Sequence[str], others: Sequence[str]
) -> list[HandedFile]:
    """What is meant where no file has the right name: modules and notebooks, else a lone zip."""
    meant = work_among(others, module, lambda path: _defines(folder / path, functions))
    if not is_clear(meant):
        return [unclear(shown, meant)]
    if meant:
        files = [from_disk(folder / path, f"{shown}/{visible(decodable(path))}") for path in meant]
        return [
            replace(file, note=taken_for(file.shown, path, module)) for file, path in zip(files, meant, strict=True)
        ]
    zips = [other for other in others if PurePosixPath(other).suffix.lower() == ".zip"]
    if len(zips) == 1:
        archive = from_disk(folder / zips[0], f"{shown}/{visible(decodable(zips[0]))}")
        return [archive] if archive.problem else from_zip(archive, module, functions)
    return [nothing_in(shown, module, others)]


def _defines(path: Path, functions: Sequence[str]) -> bool:
    if not functions or not stat.S_ISREG(_mode(path)):
        return False
    with open_regular(path) as stream:
        return defines_one(stream.read(MIB), functions)


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
