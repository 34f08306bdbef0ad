"""The files of one student, in a folder or a zip → the one or two of them that are graded, and their bytes.

No link is followed, every read has a cap, and zips are unpacked in memory.
"""

from __future__ import annotations

import io
import itertools
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import IO

from autograder.submissions.names import (
    COPY,
    SOURCES,
    defines_one,
    is_archive,
    is_begun,
    is_too_long,
    kind_of,
    likeness,
    name_of,
    suffix_of,
    taken_for,
)
from autograder.submissions.submission import CAPS, MIB, quoted, shown_name
from autograder.vocabulary.files import entries_of, is_ignored, names_in_zip, open_regular

MAX_FILES = 20_000  # in a zip: listing them takes a sixth of the time that reading a submission may take
MAX_LOOKED_INTO = 128 * MIB  # bytes of all files of a folder or zip that are opened to choose among them
MAX_ZIPS_IN_ZIPS = 2  # what is packed once more by a browser or by Windows, and once by the student
MAX_ENTRIES = 50_000  # in a folder: twice what an environment of Python has
MAX_ENTRIES_SEARCHED = 20_000
MAX_DEPTH_SEARCHED = 8
UNPACKED_BY_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others could expand beyond any cap
ENCRYPTED_FLAG = 0x1  # of a zip's entry (APPNOTE.TXT 4.4.4, bit 0)
LINK = "is a symbolic link; hand in the file itself."
NOT_REGULAR = "is not a regular file; hand in the file itself."


@dataclass(frozen=True)
class HandedFile:
    """One file that may be graded: its bytes, and the problem with it if there is one.

    fault   why staff must say what is meant
    note    what the student should know of its name
    """

    shown: str
    data: bytes = b""
    problem: str = ""
    fault: str = ""
    note: str = ""


def refused(shown: str, problem: str, data: bytes = b"") -> HandedFile:
    """Refuse a file; `problem` ends the sentence that its name begins."""
    return HandedFile(shown, data, f"{quoted(shown)} {problem}")


def packed(shown: str, archive: str = "") -> HandedFile:
    """Word the fault that the work is packed in a way that is not unpacked here: that is nobody's zero."""
    what = f"holds {quoted(archive)}, which is" if archive else "is"
    return HandedFile(
        shown, fault=f"{quoted(shown)} {what} not unpacked here: unpack it by hand, and grade the folder."
    )


def unclear(shown: str, paths: Sequence[str]) -> HandedFile:
    """Word the fault that two files could be meant: that is nobody's zero."""
    first, second = map(quoted, paths[:2])
    return HandedFile(shown, fault=f"{quoted(shown)} holds both {first} and {second}: keep the one that counts.")


def from_disk(path: Path, shown: str) -> HandedFile:
    """Read a regular file; anything else is not even opened."""
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode):
        return refused(shown, LINK if stat.S_ISLNK(mode) else NOT_REGULAR)
    with open_regular(path) as stream:
        return _capped(shown, stream, os.fstat(stream.fileno()).st_size)


def _capped(shown: str, stream: IO[bytes], announced: int) -> HandedFile:
    cap = CAPS.get(kind_of(shown), CAPS[".py"])
    data = stream.read(min(announced, cap) + 1)
    if len(data) > cap:
        return refused(shown, f"is larger than {cap // MIB} MiB.", data)
    return HandedFile(shown, data)


def names_of(module: str) -> tuple[str, str]:
    """Return the names under which a file is the work."""
    return f"{module}.py", f"{module}.ipynb"


# Which of several files counts


class TooMuchError(Exception):
    """The files to look into are more than MAX_LOOKED_INTO."""


@dataclass
class Bundle:
    """A folder or a zip of one student.

    shown         its name in reports
    open          reads the file at a path
    zips_inside   how deep zips in it are looked into
    has_order     whether of two files that could be meant the later counts
    """

    shown: str
    open: Callable[[str], HandedFile]
    module: str
    functions: Sequence[str]
    zips_inside: int = MAX_ZIPS_IN_ZIPS
    has_order: bool = False
    _files: dict[str, HandedFile] = field(default_factory=dict)
    _room: int = MAX_LOOKED_INTO

    def file(self, path: str) -> HandedFile:
        """Read a file in it, once; raises TooMuchError where all of them are too much."""
        if path not in self._files:
            file = self._files[path] = self.open(path)
            self._room -= len(file.data)
            if self._room < 0:
                raise TooMuchError
        return self._files[path]

    def work(self, paths: Sequence[str]) -> list[HandedFile]:
        """Choose the module and the notebook to grade, or say in one file why there are none."""
        homes: dict[str, list[str]] = {}  # the files of the right name, by folder, modules first
        for path in paths:
            folder, _, name = path.rpartition("/")
            if name in names_of(self.module):
                homes[folder] = sorted([*homes.get(folder, ()), path], reverse=True)
        others = [path for path in paths if path.rpartition("/")[2] not in names_of(self.module)]
        try:
            return self._of_right_names([*homes.values()], others) if homes else self._of_other_names(others)
        except TooMuchError:
            problem = f"holds more than {MAX_LOOKED_INTO // MIB} MiB to look through: hand in {self.module}.py alone."
            return [refused(self.shown, problem)]

    def _of_right_names(self, homes: Sequence[Sequence[str]], others: Sequence[str]) -> list[HandedFile]:
        """Choose the module and the notebook nearest to the top; where they hold no work, the one other file that does.

        Of several folders at one depth, the only one with some work counts, or any where all are the same. A copy of
        the notebook lies beside a module as the notebook itself would.
        """
        depth = min(path.count("/") for home in homes for path in home)
        near = [home for home in homes if home[0].count("/") == depth]
        if len(near) > 1:
            near = [home for home in near if self._begun(home)] or near
        contents = {tuple((PurePosixPath(path).name, self.file(path).data) for path in home) for home in near}
        if len(contents) > 1:
            return [unclear(self.shown, [path for home in homes for path in home if path.count("/") == depth])]
        chosen = near[0]
        folder = PurePosixPath(chosen[0]).parent
        beside = [path for path in others if PurePosixPath(path).parent == folder]
        if self.functions and not self._begun(chosen):
            # The handout as it was, and the work under another name. Of other names only what lies beside it counts:
            # below may lie what was handed out, which defines some of the same.
            names = {PurePosixPath(path).name for path in chosen}
            of_same_names = [p for p in itertools.chain(*homes) if p not in chosen and PurePosixPath(p).name in names]
            if begun := self._begun([*of_same_names, *beside]):
                return self._taken(begun, chosen)
        # A notebook beside a module may hold what cannot be read there, and answers in words. A module beside
        # the notebook of a folder may be a helper.
        lacking = {*(SOURCES if self.has_order else (".ipynb",))} - {suffix_of(path) for path in chosen}
        beside = [path for path in beside if suffix_of(path) in lacking]
        begun = self._begun(beside)
        others = [path for path in beside if likeness(path, self.module) >= COPY or path in begun]
        return self._taken([*chosen, *(others if len(others) == 1 else others[-1:] if self.has_order else [])])

    def _begun(self, paths: Sequence[str]) -> list[str]:
        sources = [path for path in paths if suffix_of(path) in SOURCES]
        return [path for path in sources if is_begun(self.file(path).data, self.functions)]

    def _of_other_names(self, paths: Sequence[str]) -> list[HandedFile]:
        """Choose where no file has the right name: what is meant by its name or content, else a lone zip."""
        paths = [path for path in paths if f"fixtures/{self.module}/" not in path]  # which is in every handout
        sources = [path for path in paths if suffix_of(path) in SOURCES]
        meant = self._meant(paths, sources)
        zips = [path for path in paths if suffix_of(path) == ".zip"] if self.zips_inside else []
        if meant and not (zips and self.functions and not self._begun(meant)):  # beside a zip, stubs are not the work
            return self._taken(meant)
        if len(zips) > 1:
            zips = [path for path in zips if zip_holds_work(self.file(path).data, self.module)]
        if len(zips) > 1 and not self.has_order:
            return [unclear(self.shown, zips)]
        if zips:
            archive = self.file(zips[-1])
            if archive.problem:
                return [archive]
            return from_zip(archive, self.module, self.functions, self.zips_inside - 1)
        if len(sources) == 1:
            return self._taken(sources)
        if archived := next((path for path in paths if is_archive(path)), ""):
            return [packed(self.shown, archived)]
        more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
        what = ", ".join(map(quoted, paths[:3])) + more if paths else "nothing"
        module, notebook = names_of(self.module)
        return [refused(self.shown, f"holds no {module} or {notebook}: what was found is {what}.")]

    def _meant(self, paths: Sequence[str], sources: Sequence[str]) -> list[str]:
        """List copies of the module, or else what defines some of what is graded; what was begun before the rest.

        Of several, those nearest to the top: what was handed out may lie below.
        """

        def defining(paths: Sequence[str]) -> list[str]:
            return [path for path in paths if defines_one(self.file(path).data, self.functions)]

        copies = [path for path in sources if likeness(path, self.module) >= COPY]
        begun = self._begun(copies) or self._begun(sources) if copies else []
        meant = []
        for kind in SOURCES:  # answers in words may be in a notebook beside a module
            of_kind = [[path for path in paths if suffix_of(path) == kind] for paths in (begun, copies)]
            meant += of_kind[0] or of_kind[1]
        meant = meant or defining(sources)
        if not meant and not any(suffix_of(path) == ".zip" for path in paths):
            meant = defining([path for path in paths if kind_of(path) in SOURCES and path not in sources])
        depth = min((path.count("/") for path in meant), default=0)
        return [path for path in meant if path.count("/") == depth]

    def _taken(self, paths: Sequence[str], instead_of: Sequence[str] = ()) -> list[HandedFile]:
        """Take these files with a note, the module first; or say that it is not clear which of them is meant.

        instead_of   files of the right name that hold no work: of these is taken what `paths` hold no other of
        """
        chosen = {kind_of(path): path for path in paths}
        if len(chosen) < len(paths) and not self.has_order:
            return [unclear(self.shown, sorted(paths, key=lambda path: SOURCES.index(kind_of(path))))]
        chosen = {kind_of(path): path for path in instead_of} | chosen
        files = []
        for path in (chosen[kind] for kind in SOURCES if kind in chosen):
            file = self.file(path)
            note = taken_for(file.shown, path, self.module)
            if instead_of and path not in instead_of:
                note = note or f"{file.shown} was graded, since {quoted(instead_of[0])} holds no work"
            files.append(replace(file, note=note))
        return files


# Loose files and folders


def from_files(
    files: Sequence[tuple[str, Path]], shown: str, module: str, functions: Sequence[str] = ()
) -> list[HandedFile]:
    """Choose among one student's loose files, the oldest first, as if they lay in a folder of that student's."""
    paths = dict(files)

    def from_name(name: str) -> HandedFile:
        return from_disk(paths[name], shown_name(paths[name].name))

    return Bundle(shown, from_name, module, functions, has_order=True).work([*paths])


def is_students_own(entries: Sequence[os.DirEntry[str]], module: str) -> bool:
    """Tell whether a folder with these entries is one student's: it holds the files, itself or in `module/`."""
    inner = [entry for entry in entries if entry.name == module and entry.is_dir(follow_symlinks=False)]
    below = (entry for folder in inner for entry in entries_of(Path(folder.path)))
    return any(entry.name in names_of(module) for entry in itertools.chain(entries, below))


def from_folder(folder: Path, shown: str, module: str, functions: Sequence[str] = ()) -> list[HandedFile]:
    """Choose the files in the folder itself, else in `module/`, else in the folder nearest to it that has any.

    Where none has the right name: a copy of it, what defines one of the graded `functions`, a lone file.
    """
    paths: list[str] = []
    count, names = 0, names_of(module)
    for place, entries in _walk(folder, module):
        if (count := count + len(entries)) > MAX_ENTRIES:
            return [refused(shown, f"holds more than {MAX_ENTRIES} files and folders: hand in {module}.py alone.")]
        inside = [entry.name for entry in entries if entry.name in names or not entry.is_dir(follow_symlinks=False)]
        paths += [f"{place}{name}" for name in inside]
        if place in ("", f"{module}/") and not {*names}.isdisjoint(inside):
            break
    return Bundle(shown, lambda path: from_disk(folder / path, f"{shown}/{shown_name(path)}"), module, functions).work(
        paths
    )


def folder_holds_work(folder: Path, module: str) -> bool:
    """Tell whether a folder has a file of the right name, or more than is searched; a closed one may."""
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
    """Yield `folder`, its `module/` and then all below, nearer before deeper: each as a prefix and its entries."""
    queue = [""]
    for place in queue:
        entries = entries_of(folder / place)
        yield place, entries
        if place.count("/") < MAX_DEPTH_SEARCHED:
            inner = [f"{place}{entry.name}/" for entry in entries if entry.is_dir(follow_symlinks=False)]
            queue += sorted(inner, key=lambda name: name != f"{module}/")


# Zips


def from_zip(
    archive: HandedFile, module: str, functions: Sequence[str] = (), zips_inside: int = MAX_ZIPS_IN_ZIPS
) -> list[HandedFile]:
    """Choose the files of a student's zip to grade, unpacked in memory and never beyond their caps.

    A lone zip in it is looked into. What another tool has packed and called a zip is nobody's zero.
    """
    if is_archive("", archive.data):
        return [packed(archive.shown)]
    try:
        names = names_in_zip(io.BytesIO(archive.data), len(archive.data))
        if sum(1 for _ in itertools.islice(names, MAX_FILES + 1)) > MAX_FILES:
            problem = f"holds more than {MAX_FILES} files: hand in {module}.py alone."
            return [refused(archive.shown, problem, archive.data)]
        with zipfile.ZipFile(io.BytesIO(archive.data)) as opened:
            files = _from_members(archive.shown, opened, module, functions, zips_inside)
    except (MemoryError, OSError):
        raise
    except Exception:  # zipfile raises a dozen types on damaged input; all is in memory, so blame the zip
        files = [refused(archive.shown, "is damaged, or not a zip file: pack it again.")]
    return [replace(file, data=file.data or archive.data) if file.problem else file for file in files]


def zip_holds_work(archive: Path | bytes, module: str) -> bool:
    """Tell whether a zip has a file of the right name; one that cannot be looked into may."""
    endings = tuple(f"/{name}" for name in names_of(module))
    try:
        with open_regular(archive) if isinstance(archive, Path) else io.BytesIO(archive) as stream:
            return any(f"/{name}".replace("\\", "/").endswith(endings) for name in names_in_zip(stream))
    except Exception:  # as above
        return True


def _from_members(
    shown: str, opened: zipfile.ZipFile, module: str, functions: Sequence[str], zips_inside: int
) -> list[HandedFile]:
    members: dict[str, zipfile.ZipInfo] = {}  # of a name that is there twice the last, as whoever unpacks it gets
    outside = ""
    for member in opened.infolist():
        # Some tools on Windows write backslashes.
        parts = PurePosixPath(name_of(member).replace("\\", "/")).parts
        if member.is_dir() or not parts or any(is_ignored(part) or is_too_long(part) for part in parts):
            continue
        path = "/".join(parts)
        if not leads_outside(parts):
            members[path] = member
        elif parts[-1] in names_of(module):
            outside = path
    if outside and not any(path.rpartition("/")[2] in names_of(module) for path in members):
        return [refused(shown, f"holds {quoted(outside)}, which would lie outside it: pack it again.")]

    def from_member(path: str) -> HandedFile:
        member, name = members[path], f"{shown}/{shown_name(path)}"
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            return refused(name, LINK if kind == stat.S_IFLNK else NOT_REGULAR)
        if member.flag_bits & ENCRYPTED_FLAG:
            return refused(name, "is encrypted: pack it again without a password.")
        if member.compress_type not in UNPACKED_BY_PIECES:
            return refused(name, "is packed by an unusual method: pack it again as an ordinary zip.")
        with opened.open(member) as stream:
            return _capped(name, stream, member.file_size)

    return Bundle(shown, from_member, module, functions, zips_inside).work([*members])


def leads_outside(parts: Sequence[str]) -> bool:
    """Tell whether the path of a zip's entry leads out of the folder that it is unpacked into."""
    return parts[0].startswith("/") or ".." in parts or parts[0][1:2] == ":" or any("\0" in part for part in parts)
