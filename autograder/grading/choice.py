"""Choose the assignment that a command is about, where there are several and none is named.

Submissions say it themselves: by the names of their files, or else by the functions that they define. Nothing of them
is run, no symbolic link is followed, and only so much is read.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import stat
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.grading.assignment import Assignment, all_assignments, find_assignments, unreadable
from autograder.grading.fixtures import MANIFEST
from autograder.submissions.finding import MAX_CLASS_DIRECTORY, MAX_CLASS_ENTRIES, depth_of_students, find
from autograder.submissions.handed_in import is_students_own
from autograder.submissions.names import defined
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import FixtureError, UsageError
from autograder.vocabulary.files import MAX_DIRECTORY, beginning, entries_of, is_file_at, names_in_zip, open_regular

MAX_ENTRIES = 1_000  # of one submission, nearest to the top first
MAX_DEPTH = 8
MAX_FILES_READ = 5  # of one submission
SOURCES = (".py", ".ipynb")
CLEAR = 4  # times as many submissions of one assignment as of all others leave no doubt


def assignment_of_submissions(root: Path, paths: Sequence[Path], name: str | None = None) -> Assignment:
    """Choose the assignment `name` under `root`, the only one, or the one that the submissions at `paths` are of.

    A stray file of another in a whole class changes nothing, and an empty file says nothing. Raises UsageError
    where they are of several, or do not say of which; FixtureError where an assignment cannot be read, which may be
    the one that they are of.
    """
    known = find_assignments(root, name)
    if name is None and (faults := unreadable(root)):
        advice = f"Fix it, or name another assignment with --assignment: {_names(known)}."
        raise FixtureError(f"{next(iter(faults.values()))} {advice}")
    if len(known) == 1:
        return known[0]
    votes = [_modules_of(files, known) for path in paths for files in _submissions_at(path.resolve(), known)]
    sure = [modules for modules in votes if len(modules) == 1]
    counts = Counter(module for modules in sure or votes for module in modules)
    clear = [module for module, count in counts.items() if count >= CLEAR * (counts.total() - count)]
    chosen = [assignment for assignment in known if assignment.module in (clear or counts)]
    for path in paths if len(chosen) != 1 else ():
        try:
            path.stat()
        except (OSError, ValueError):
            find([path], "")  # which says what is wrong with a path that leads nowhere
    fact = "There are submissions of several assignments." if chosen else "Nothing here says of which assignment it is."
    return _only(known, chosen, fact)


def refuse_unlikely(assignment: Assignment, candidates: Sequence[Candidate]) -> None:
    """Raise UsageError where nobody named the assignment, and most of a class handed in nothing of it.

    Work is of it by its name, or by a function that it defines; what cannot be read speaks for none.
    """
    unlikely = 0
    for candidate in candidates:
        sources = _sources(_files_below(candidate.path))
        if not any(assignment.module in name for name in (candidate.shown, *(file.name for file in sources))):
            text = _text(sources)
            unlikely += bool(text.strip()) and not defined(text, assignment.functions)
    if 2 * unlikely > len(candidates):
        fact = f"Of {len(candidates)} submissions {unlikely} hold nothing of {assignment.name}"
        raise UsageError(f"{fact}. If they are meant to be graded as that, name it with --assignment.")


def assignment_of_item(root: Path, item_id: str, name: str | None = None) -> Assignment:
    """Choose the assignment `name`, or the one that has an item of this id; raises UsageError where it is not clear."""
    known = find_assignments(root, name)
    having = [assignment for assignment in known if any(item.id == item_id for item in assignment.items)]
    if not having and len(known) > 1:
        items = "; ".join(f"of {one.name}: {', '.join(item.id for item in one.items)}" for one in known)
        raise UsageError(f"There is no item {item_id!r}. The items are, {items}.")
    return _only(known, having, f"Several assignments have an item {item_id!r}.")


def assignment_of_fixtures(root: Path, folder: Path, name: str | None = None) -> Assignment:
    """Choose the assignment `name`, the only one, or the one that the manifest in `folder` names; else UsageError."""
    known, of_folder = find_assignments(root, name), None
    with contextlib.suppress(OSError, ValueError, RecursionError, LookupError, TypeError):
        of_folder = json.loads((folder / MANIFEST).read_bytes())["assignment"]
    nothing = f"{folder} holds no {MANIFEST} that names its assignment."  # what else is wrong is told where it is read
    return _only(known, [assignment for assignment in known if assignment.name == of_folder], nothing)


def _only(known: Sequence[Assignment], fitting: Sequence[Assignment], several: str) -> Assignment:
    """Return the only assignment that there is, or that fits; raises UsageError with the fact and the names."""
    if len(known) == 1 or len(fitting) == 1:
        return (fitting or known)[0]
    raise UsageError(f"{several} Name one with --assignment: {_names(fitting or known)}.")


def assignments_to_release(root: Path, zip_file: Path | None, name: str | None = None) -> list[Assignment]:
    """Choose the assignment `name`, or all; for a zip, the one that it is named for, or raise UsageError."""
    known = all_assignments(root, name)
    if zip_file is None or len(known) == 1:
        return known
    chosen = [assignment for assignment in known if assignment.name == zip_file.stem]
    if not chosen:
        raise UsageError(f"{zip_file} holds one handout. Name its assignment with --assignment: {_names(known)}.")
    return chosen


def _names(assignments: Iterable[Assignment]) -> str:
    return ", ".join(assignment.name for assignment in assignments)


def _modules_of(files: Sequence[Path], known: Sequence[Assignment]) -> set[str]:
    """Return the modules that a submission is of: by a file's name, by a part of one, or by the functions in it.

    Names nearest to the top count (`lovelaceada_1_2_policy_gradient-1.py`), and where two fit one name, the longer.
    """
    modules = [one.module for one in known]
    full = [file for file in _sources(files) if not is_file_at(file) or file.stat().st_size]  # members of zips, too
    exact = [file for file in full if file.stem in modules]
    fitting = [(len(file.parts), [module for module in modules if module in file.stem]) for file in exact or full]
    nearest = min((depth for depth, named in fitting if named), default=0)
    if any(named for _, named in fitting):
        return {max(named, key=len) for depth, named in fitting if named and depth == nearest}
    text = _text(full)
    counts = {one.module: len(defined(text, one.functions)) for one in known}
    return {module for module, count in counts.items() if count == max(counts.values()) > 0}


def _sources(files: Iterable[Path]) -> list[Path]:
    return [file for file in files if file.suffix.lower() in SOURCES]


def _text(sources: Sequence[Path]) -> bytes:
    return b"\n".join(map(beginning, sources[:MAX_FILES_READ]))


def _submissions_at(path: Path, known: Sequence[Assignment]) -> Iterator[list[Path]]:
    """Yield the files of each submission at a path, which may be one student's: each submission has one vote."""
    entries = []
    if path.suffix.lower() == ".zip":
        members = _members(path, MAX_CLASS_DIRECTORY, MAX_CLASS_ENTRIES)
        parts = [member.relative_to(path).parts for member in members]
        depth = depth_of_students(parts)
        by_student: dict[str, list[Path]] = {}
        for member, names in zip(members, parts, strict=True):
            by_student.setdefault(names[min(depth, len(names) - 1)], []).append(member)
        yield from (files[:MAX_ENTRIES] for files in by_student.values())
        return
    for _ in range(MAX_DEPTH):
        with contextlib.suppress(OSError):
            entries = entries_of(path) if path.is_dir() else []
        if any(is_students_own(entries, one.module) for one in known):
            entries = []
        if len(entries) != 1 or not entries[0].is_dir(follow_symlinks=False):
            break
        path = Path(entries[0].path)
    yield from (_files_below(Path(entry.path)) for entry in entries)
    if not entries:
        yield _files_below(path)


def _files_below(path: Path) -> list[Path]:
    """Return the first files at or below a path, and members of zips, nearest to the top first."""
    waiting, files = [(path, 0)], list[Path]()
    for place, depth in waiting:
        with contextlib.suppress(OSError, ValueError):
            mode = place.lstat().st_mode
            if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                room = MAX_ENTRIES - len(waiting)
                waiting += [(Path(inner.path), depth + 1) for inner in entries_of(place)[:room]]
            elif stat.S_ISREG(mode):
                files += [place, *_members(place, MAX_DIRECTORY, MAX_ENTRIES - len(files))]
    return files[:MAX_ENTRIES]


def _members(path: Path, most: int, count: int) -> list[Path]:
    """Return the first members of a zip, as if they lay in a folder; nothing of what is none."""
    members: list[Path] = []
    if path.suffix.lower() == ".zip" and count > 0:
        with contextlib.suppress(OSError, ValueError, struct.error), open_regular(path) as stream:
            for name in itertools.islice(names_in_zip(stream, most), count):
                members.append(Path(f"{path}/{name.replace(chr(0), '')}"))
    return members
