"""Which assignment a command is about, where there are several and none is named.

Submissions say it themselves: by the names of their files, or else by the functions that they define. Nothing of them
is run, no symbolic link is followed, and only so much is read.
"""

from __future__ import annotations

import contextlib
import json
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import contains, eq
from pathlib import Path, PurePosixPath

from autograder.grading.assignments import find_assignments, unreadable
from autograder.grading.fixtures import MANIFEST
from autograder.grading.items import Assignment
from autograder.submissions.finding import find
from autograder.submissions.limited import read
from autograder.submissions.names import defines_one
from autograder.submissions.submission import Candidate, Submission, quoted
from autograder.vocabulary.errors import FixtureError, UsageError
from autograder.vocabulary.folders import beginning, entries_of, names_in_zip

MAX_ENTRIES = 20_000
MAX_DEPTH = 8
MAX_FILES_READ = 200
SOURCES = (".py", ".ipynb")
NEARLY_ALL = 0.8  # of the graded functions of an assignment
CLEAR = 4  # times as many files of one assignment as of all others leave no doubt


def assignment_of_submissions(root: Path, paths: Sequence[Path], name: str | None = None) -> Assignment:
    """The assignment `name` under `root`, the only one there, or the one that the submissions at `paths` are of.

    A stray file of another in a whole class changes nothing, nor does an empty one beside others. Raises UsageError
    where they are of several, or do not say of which; FixtureError where an assignment cannot be read, which may be
    the one that they are of.
    """
    known = find_assignments(root, name)
    if name is None and (broken := unreadable(root)):
        advice = f"Mend it, or name another assignment with --assignment: {_names(known)}."
        raise FixtureError(f"{next(iter(broken.values()))} {advice}")
    if len(known) == 1:
        return known[0]
    files = [file for path in paths for file in _files_below(path)]
    written = [file for file in files if not _is_empty(file)]
    named = _by_name(written, known, eq) or _by_name(files, known, eq) or _by_name(files, known, contains)
    found = _most(named, known) or _by_function(files, known)
    if len(found) == 1:
        return found[0]
    for path in paths:
        _refuse_unreachable(path)
    asked = "There are submissions of several assignments" if found else "Nothing here says of which assignment it is"
    raise UsageError(f"{asked}. Name one with --assignment: {_names(found or known)}.")


def refuse_unlikely(assignment: Assignment, candidates: Sequence[Candidate]) -> None:
    """Raise UsageError where nobody named the assignment, and most of a class handed in nothing of it.

    Work is of it by its name, or by a function that it defines; what cannot be read speaks for none.
    """
    unlikely = sum(_holds_nothing_of(assignment, candidate) for candidate in candidates)
    if 2 * unlikely > len(candidates):
        fact = f"Of {len(candidates)} submissions {unlikely} hold nothing of {assignment.name}"
        raise UsageError(f"{fact}. If they are meant to be graded as that, name it with --assignment.")


def _holds_nothing_of(assignment: Assignment, candidate: Candidate) -> bool:
    if assignment.module in candidate.shown:
        return False
    submission = read(candidate, assignment.module, assignment.untouched_source())
    if assignment.module in submission.path or not submission.source:
        return False
    return not _defined(submission, assignment.functions)


def assignment_of_item(root: Path, item_id: str, name: str | None = None) -> Assignment:
    """The assignment `name`, or the one that has an item of this id; raises UsageError where it is not clear which."""
    known = find_assignments(root, name)
    found = [assignment for assignment in known if any(item.id == item_id for item in assignment.items)]
    if len(found) == 1 or len(known) == 1:
        return (found or known)[0]
    if found:
        raise UsageError(f"Several assignments have an item {item_id!r}. Name one with --assignment: {_names(found)}.")
    items = "; ".join(f"of {one.name}: {', '.join(item.id for item in one.items)}" for one in known)
    raise UsageError(f"There is no item {item_id!r}. The items are, {items}.")


def assignment_of_fixtures(root: Path, folders: Sequence[Path], name: str | None = None) -> Assignment:
    """The assignment `name`, the only one, or the one that the manifests in `folders` are of; else UsageError."""
    known = find_assignments(root, name)
    told = {_told_by(folder / MANIFEST) for folder in folders}
    found = [assignment for assignment in known if assignment.name in told]
    if len(found) == 1 or len(known) == 1:
        return (found or known)[0]
    if told == {""}:
        raise UsageError(f"{folders[0]} holds no {MANIFEST} that names its assignment. Name one with --assignment.")
    raise UsageError(f"There are several assignments. Name one with --assignment: {_names(found or known)}.")


def _told_by(manifest: Path) -> str:
    """The assignment that a manifest names; "" where it names none, which its reader will say."""
    with contextlib.suppress(OSError, ValueError, RecursionError, LookupError, TypeError):
        name = json.loads(manifest.read_bytes())["assignment"]
        return name if isinstance(name, str) else ""
    return ""


def assignments_to_release(root: Path, zip_file: Path | None, name: str | None = None) -> list[Assignment]:
    """The assignment `name`, or all; of those, for a zip, the one that it is named for. Raises UsageError else."""
    known = find_assignments(root, name)
    if zip_file is None or len(known) == 1:
        return known
    found = [assignment for assignment in known if assignment.name == zip_file.stem]
    if not found:
        raise UsageError(f"{zip_file} holds one handout. Name its assignment with --assignment: {_names(known)}.")
    return found


def known_as_another(submission: Submission, candidate: Candidate, assignment: Assignment) -> Submission:
    """The submission, with a problem that names another assignment where it is work for that one.

    It is where it defines nearly all functions of the other, and of this one none but those of that name there.
    """
    unread = submission.fault or submission.functions is None
    if unread or 2 * len(_defined(submission, assignment.functions)) > len(assignment.functions):
        return submission
    for other in find_assignments(assignment.folder.parents[1]):
        if other.name == assignment.name or _defined(submission, set(assignment.functions) - set(other.functions)):
            continue
        theirs = read(candidate, other.module, other.untouched_source())
        if theirs.functions is None:
            break  # to read it takes too much, and would again
        if len(names := _defined(theirs, other.functions)) >= NEARLY_ALL * len(other.functions):
            what = f"{quoted(theirs.path)} defines {', '.join(names[:3])}{' and others' * bool(names[3:])}"
            problem = f"This is {other.name}, not {assignment.name}: {what}."
            return Submission(candidate.student, theirs.path, theirs.sha256, "", problem, notes=candidate.notes)
    return submission


def _defined(submission: Submission, functions: Iterable[str]) -> list[str]:
    """Those of these functions that are defined in it, by their looks."""
    source = submission.source.encode("utf-8", "surrogatepass")
    return [name for name in functions if defines_one(source, [name])]


def _refuse_unreachable(path: Path) -> None:
    """A path that leads nowhere is said first."""
    try:
        path.stat()
    except (OSError, ValueError):
        find([path], "")


def _names(assignments: Iterable[Assignment]) -> str:
    return ", ".join(assignment.name for assignment in assignments)


def _most(found: Counter[str], known: Sequence[Assignment]) -> list[Assignment]:
    """The assignment that nearly all files are of, else all that some are of, by how many are of each module."""
    clear = [module for module, count in found.items() if count >= CLEAR * (found.total() - count)]
    return [one for one in known if one.module in (clear or found)]


def _by_name(
    files: Sequence[Path | PurePosixPath], known: Sequence[Assignment], fits: Callable[[str, str], bool]
) -> Counter[str]:
    """How many files have a name that fits each module; where two fit, the longer one counts.

    A platform may have put more to a name: lovelaceada_1_2_policy_gradient-1.py contains its module's.
    """
    found: Counter[str] = Counter()
    for file in files:
        if file.suffix.lower() in SOURCES:
            fitting = [one.module for one in known if fits(file.stem, one.module)]
            found.update([max(fitting, key=len)] if fitting else [])
    return found


def _by_function(files: Sequence[Path | PurePosixPath], known: Sequence[Assignment]) -> list[Assignment]:
    sources = [file for file in files if isinstance(file, Path) and file.suffix.lower() in SOURCES]
    text = b"\n".join(beginning(file) for file in sources[:MAX_FILES_READ])
    defined = {name.decode() for name in re.findall(rb"\bdef\s+([A-Za-z_]\w*)", text)}
    return [one for one in known if defined & set(one.functions)]


def _files_below(path: Path) -> Iterator[Path | PurePosixPath]:
    """The files at or below `path`, and the members of zips; what cannot be read holds none."""
    waiting = [(path, 0)]
    for _ in range(MAX_ENTRIES):
        if not waiting:
            return
        place, depth = waiting.pop()
        try:
            mode = place.stat().st_mode if place == path else place.lstat().st_mode
            if stat.S_ISDIR(mode) and depth < MAX_DEPTH:
                waiting += [(Path(inner.path), depth + 1) for inner in reversed(entries_of(place))]
            elif stat.S_ISREG(mode):
                yield place
                yield from _members(place)
        except (OSError, ValueError):
            continue


def _is_empty(file: Path | PurePosixPath) -> bool:
    """Whether it is a file without a byte, which anybody may have left; members of zips count as written."""
    try:
        return isinstance(file, Path) and not file.lstat().st_size
    except OSError:
        return False


def _members(path: Path) -> Iterator[PurePosixPath]:
    if path.suffix.lower() != ".zip":
        return
    try:
        with path.open("rb") as stream:
            yield from map(PurePosixPath, names_in_zip(stream))
    except Exception:  # zipfile raises a dozen types on damaged input
        return
