"""Folders of submissions, and class zips unpacked into one → a Candidate for each student.

Results of an earlier run may lie among submissions: they are nobody's work, and neither is what the run to come will
write. UsageError answers what was asked on the command line.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.submissions.handed_in import (
    UNPACKED_BY_PIECES,
    folder_holds_work,
    is_students_own,
    leads_outside,
    zip_holds_work,
)
from autograder.submissions.names import (
    LONGEST_NAME,
    SOURCES,
    defines_one,
    is_archive,
    is_too_long,
    kind_of,
    parts_of,
    stem_of,
    suffix_of,
)
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
    names_in_zip,
)

RUN, RESULTS = "run.json", ("reports", "feedback", "details")  # what every run of `grade` writes: see course.results


@dataclass(frozen=True)
class Place:
    """A path that was given.

    real          the same without a symbolic link
    is_class      whether it is a folder of submissions; else it is one submission
    entries       what lies in a folder of submissions and may be one
    left_out      names of older results and of what tools leave behind
    has_results   whether results lie there, those to come or of an earlier run
    """

    path: Path
    real: Path
    is_class: bool
    entries: tuple[os.DirEntry[str], ...] = ()
    left_out: tuple[str, ...] = ()
    has_results: bool = False


def find(paths: Sequence[Path], module: str) -> list[Candidate]:
    """Find every candidate at `paths`, sorted by student; no file is opened.

    paths    folders of submissions, students' own folders, or single files
    module   the name to hand in under, without suffix: "policy_gradient"
    raises   UsageError where there is nothing to grade, or a student appears twice
    """
    by_student: dict[str, Candidate] = {}
    places = [place_at(path, module) for path in paths]
    for candidate in itertools.chain.from_iterable(candidates_at(place, module) for place in places):
        other = by_student.setdefault(candidate.student, candidate)
        if other.path.absolute() != candidate.path.absolute():
            both = f"{quoted(str(other.path))} and {quoted(str(candidate.path))}"
            raise UsageError(f"{quoted(candidate.student)} handed in twice: {both}. Keep one of them.")
    if paths and not by_student:
        raise nothing_but_results(paths[0])
    return sorted(by_student.values(), key=lambda candidate: candidate.student)


def nothing_but_results(path: Path) -> UsageError:
    """Word what to raise where `path` holds results and no submission."""
    results = f"{quoted(str(path))} holds results of an earlier run and no submission"
    return UsageError(f"{results}: give a folder that holds submissions.")


def place_at(path: Path, module: str, out: Path | None = None, *, is_class: bool | None = None) -> Place:
    """Look at `path`; raises UsageError where that fails, or where it can be no submission.

    out        where results will go, as `Path.resolve` gives it: nothing there was handed in
    is_class   whether a folder is one of submissions, where that is known; else it is one without a module of its own
    """
    try:
        mode = path.stat().st_mode
        real = path.resolve() if path.is_symlink() else path
        if stat.S_ISDIR(mode):
            entries = entries_of(real)
            own = is_students_own(entries, module) if is_class is None else not is_class
            return Place(path, real, is_class=False) if own else _class_at(path, real, entries, module, out)
    except (OSError, ValueError) as error:
        name = quoted(str(path))
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            sentence = f"There is no file or folder {name}: check the path."
        else:
            reason = getattr(error, "strerror", None) or "not a usable path"
            sentence = f"{name} cannot be opened ({reason}): check the path, and its permissions."
        raise UsageError(sentence) from None
    if not stat.S_ISREG(mode) or suffix_of(path.name) not in CAPS:
        raise UsageError(f"{quoted(str(path))} cannot be graded: give a folder, or a .py, .ipynb or .zip file.")
    return Place(path, real, is_class=False)


def candidates_at(place: Place, module: str) -> list[Candidate]:
    """List the candidates at a place that no platform has laid out; UsageError where nothing there can be one.

    Where nothing but results lies there, that is no candidate and no error.
    """
    if not place.is_class:
        return [_candidate(place.path, place.real, module, is_folder=place.real.is_dir())]
    candidates = [candidate_of(place, entry, module) for entry in place.entries if may_be_one(entry)]
    if candidates or place.has_results:
        return candidates
    raise no_submission(place.path)


def no_submission(folder: Path) -> UsageError:
    """Word what to raise where nothing in a folder can be a submission."""
    expected = "a folder, .zip, .py or .ipynb for each student"
    return UsageError(f"{quoted(str(folder))} holds no submission: give a folder that holds {expected}.")


def candidate_of(place: Place, entry: os.DirEntry[str], module: str) -> Candidate:
    """Take an entry of a folder of submissions as what one student handed in."""
    return _candidate(place.path / entry.name, place.real / entry.name, module, is_folder=_is_folder(entry))


def _candidate(path: Path, real: Path, module: str, *, is_folder: bool) -> Candidate:
    """Name the candidate at `path` for it, or for the first folder above that has a name of its own."""
    place = Path(os.path.normpath(path.absolute()))
    student, shown = place.name if is_folder else stem_of(place.name).removesuffix(".tar"), place.name
    while student == module and place.parent != place:
        place = place.parent
        student, shown = place.name, f"{place.name}/{shown}"
    return Candidate(student_name(student), real, shown_name(shown))


def may_be_one(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a candidate where no platform has laid out the folder."""
    return _is_folder(entry) or suffix_of(entry.name) in CAPS or is_archive(entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads where this user may not look: `read` says that it is a link
        return True


def holds_work(entry: os.DirEntry[str], module: str) -> bool:
    """Tell whether there may be work: a module, a notebook, a folder or a zip of the right name, another archive."""
    if entry.is_dir(follow_symlinks=False):
        return folder_holds_work(Path(entry.path), module)
    suffix = suffix_of(entry.name)
    return zip_holds_work(Path(entry.path), module) if suffix == ".zip" else suffix in CAPS or is_archive(entry.name)


def is_work_renamed(entry: os.DirEntry[str], functions: Sequence[str]) -> bool:
    """Tell whether a file that may be source, whatever its suffix, defines one of these functions: `ada.txt`."""
    return kind_of(entry.name) in SOURCES and defines_one(beginning(Path(entry.path)), functions)


def is_whole_work(entry: os.DirEntry[str], module: str, functions: Sequence[str]) -> bool:
    """Tell whether an entry looks like a whole submission: a folder or zip of the module, a file with its functions.

    A student's own folder may hold one or two, as backups; a class holds them for everybody.
    """
    path, suffix = Path(entry.path), Path(entry.path).suffix.lower()
    if entry.is_dir(follow_symlinks=False):
        with contextlib.suppress(OSError):
            return is_students_own(entries_of(path), module)
        return False
    if suffix == ".zip":
        return zip_holds_work(path, module)
    return suffix in CAPS and module not in entry.name and defines_one(beginning(path), functions)


def hidden_entries(place: Place) -> list[os.DirEntry[str]]:
    """List what lies in a folder of submissions under a name that begins with a dot, and is not a tool's."""
    with os.scandir(place.real) as listed:
        dotted = [entry for entry in listed if entry.name.startswith(".") and not is_of_tools(entry.name)]
    return sorted((entry for entry in dotted if may_be_one(entry)), key=lambda entry: entry.name)


# Results among submissions


def _class_at(path: Path, real: Path, entries: Sequence[os.DirEntry[str]], module: str, out: Path | None) -> Place:
    written_here = real.resolve() == out or _has_results(real)
    kept, named, has_results = [], [name for name in LEFT_BEHIND if is_there(real / name)], written_here
    for entry in entries:
        inner = Path(entry.path)
        is_out = out is not None and Path(os.path.realpath(inner)) == out
        is_results = is_out
        if not is_out and entry.is_dir(follow_symlinks=False):
            try:  # a part of the results that were written here, or a folder with others or those to come
                is_results = (
                    (written_here and entry.name in RESULTS)
                    or (out is not None and out.is_relative_to(inner.resolve()))
                    or any(map(_has_results, (inner, *(Path(below.path) for below in entries_of(inner)))))
                )
            except OSError:  # it may not be looked at: somebody's work, whose report says so
                is_results = False
            is_results = is_results and not folder_holds_work(inner, module)
        if not is_results:
            kept.append(entry)
            continue
        has_results = True
        if not is_out or holds_work(entry, module):
            named.append(entry.name)
    return Place(path, real, True, tuple(kept), tuple(sorted(named)), has_results)


def _has_results(folder: Path) -> bool:
    return is_file_at(folder / RUN) and is_folder_at(folder / RESULTS[0])


# A class in one zip, as platforms offer it for download
#
# What the platform packed is trusted no more than what students named: nothing lies outside the folder, no link is made
# that leads anywhere, and only what can be graded is unpacked; the rest leaves its name and no bytes. What cannot be
# unpacked costs the one entry at the top that it lies in, which is one student's, and no other.

METADATA = "submission_metadata.yml"  # Gradescope's own, at the top
MAX_METADATA = 32 * 2**20
# What is no work, and says whose and when it was, or what its student asks.
DESCRIBING = {"timestamp.txt": 100, "regrade.txt": 16 * 1024}
MAX_CLASS_ENTRIES = 500_000
MAX_CLASS_DIRECTORY = 2**27  # bytes
MAX_TOTAL = 4 * 2**30
MAX_OF_ONE = 256 * 2**20  # bytes of one student's files, unpacked
MAX_ENTRIES_OF_ONE = 10_000
MAX_DEPTH = 12


def members(path: Path) -> list[zipfile.ZipInfo]:
    """List the files in the zip at `path`. Raises UsageError where it is damaged, or has too many to be looked at."""
    try:
        with path.open("rb") as stream:  # counted before zipfile makes objects of them
            count = sum(1 for _ in itertools.islice(names_in_zip(stream, MAX_CLASS_DIRECTORY), MAX_CLASS_ENTRIES + 1))
        if count > MAX_CLASS_ENTRIES:
            raise UsageError(f"{path} holds more than {MAX_CLASS_ENTRIES} files: unpack it, and give the folder.")
        with zipfile.ZipFile(path) as opened:
            return [member for member in opened.infolist() if not member.is_dir()]
    except UsageError:
        raise
    except (OSError, MemoryError) as error:
        raise UsageError(f"{path} cannot be read ({_reason(error)}): check its permissions.") from None
    except Exception:  # zipfile raises a dozen types on damaged input
        raise UsageError(f"{path} is damaged, or no zip file: download it again.") from None


def unpack(path: Path, target: Path) -> tuple[dict[str, str], set[str]]:
    """Unpack a class zip into `target`.

    Returns name at the top → the end of a sentence on what of it was not unpacked, though it could be the work; and a
    sentence for each entry at the top that no file system would take. Raises UsageError where an entry would lie
    outside, is damaged, or where all is more than MAX_TOTAL.
    """
    lacking: dict[str, str] = {}
    refused, room = set(), MAX_TOTAL
    listed = members(path)
    all_parts = parts_of(listed)
    top = depth_of_students(all_parts)
    files, sizes = Counter[str](), Counter[str]()  # by student's entry
    with zipfile.ZipFile(path) as opened:
        for member, parts in zip(listed, all_parts, strict=True):
            if not parts or not LEFT_BEHIND.isdisjoint(parts):
                continue
            shown, owner, reason = shown_name("/".join(parts))[:300], parts[min(top, len(parts) - 1)], ""
            if leads_outside(parts):
                raise UsageError(f"{path} holds {shown}, which would lie outside it: download it again.")
            if any(map(is_too_long, parts[: top + 1])):
                why = f"a name has more than {LONGEST_NAME} bytes"
                refused.add(f"{shown} is not graded, since {why}: unpack it by hand.")
                continue
            files[owner] += 1
            if files[owner] > MAX_ENTRIES_OF_ONE or sizes[owner] >= MAX_OF_ONE:
                reason = f"holds more than {MAX_ENTRIES_OF_ONE} files or {MAX_OF_ONE // 2**20} MiB"
            elif any(map(is_too_long, parts)) or len(parts) > MAX_DEPTH:
                reason = f"holds a name of more than {LONGEST_NAME} bytes, or {MAX_DEPTH} folders deep: {shown}"
            elif member.compress_type not in UNPACKED_BY_PIECES:
                reason = f"is packed by a method that is not unpacked here: {shown}"
            else:
                # Of what only might be the work nothing is unpacked far down, where data lies.
                kind = kind_of(parts[-1]) if len(parts) <= top + 2 else suffix_of(parts[-1])
                cap = DESCRIBING.get(parts[-1], CAPS.get(kind, 0))
                if parts[-1] == METADATA and len(parts) == top + 1:
                    cap = MAX_METADATA
                try:
                    written = _write(opened, member, target.joinpath(*parts), min(room, cap))
                    sizes[owner], room = sizes[owner] + written, room - written
                except (OSError, MemoryError) as error:
                    reason = f"cannot be unpacked ({_reason(error)}): {shown}"
                except (zipfile.BadZipFile, RuntimeError, EOFError, ValueError, zlib.error) as error:
                    raise UsageError(f"{path} is damaged at {shown} ({error}): download it again.") from None
            if room <= 0:
                raise UsageError(f"{path} holds more than {MAX_TOTAL // 2**30} GiB: unpack it, and give the folder.")
            if reason:
                if suffix_of(parts[-1]) in CAPS:  # else it could not have been graded
                    lacking.setdefault(owner, reason)
                with contextlib.suppress(OSError):  # whose entry is there, whatever lies in it
                    place = target.joinpath(*parts[: top + 1])
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.touch() if len(parts) <= top + 1 else place.mkdir(exist_ok=True)
    return lacking, refused


def _reason(error: OSError | MemoryError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else "no memory left"


def depth_of_students(paths: Sequence[Sequence[str]]) -> int:
    """Tell how deep students' entries stand: 1 where all lies in one folder, else 0."""
    tops = {parts[0] for parts in paths if parts and LEFT_BEHIND.isdisjoint(parts)}
    return 1 if len(tops) == 1 and all(len(parts) > 1 for parts in paths if parts and parts[0] in tops) else 0


def _write(opened: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, most: int) -> int:
    """Unpack one entry, at most one byte more than `most`: the reader says that it is too large. Returns its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # of a name that is there twice the last counts, as whoever unpacks it gets
    if stat.S_ISLNK(member.external_attr >> 16):
        path.symlink_to("nowhere")  # so that the reader says what it was
        return 0
    with path.open("xb") as stream:
        if most <= 0:
            return 0
        with opened.open(member) as source:
            written = 0
            while written <= most and (data := source.read(min(2**20, most + 1 - written))):
                written += stream.write(data)
            return written
