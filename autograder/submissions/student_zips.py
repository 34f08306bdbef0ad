"""Several files that one student handed in together, as a zip or a folder → the one or two of them that are graded."""

from __future__ import annotations

import io
import itertools
import stat
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from autograder.submissions.handed_file import HandedFile, capped, names_of, nothing_in, packed, refused, unclear
from autograder.submissions.names import (
    COPY,
    LONGEST_NAME,
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
from autograder.submissions.submission import MIB, decodable, quoted
from autograder.vocabulary.files import is_ignored, names_in_zip, open_regular
from autograder.vocabulary.text import visible

MAX_FILES = 20_000  # a sixth of what takes as long to list as a submission may take to read
MAX_LOOKED_INTO = 128 * MIB  # bytes of all files of one bundle that are opened to choose among them
MAX_ZIPS_IN_ZIPS = 2  # what is packed once more by a browser or by Windows, and once by the student
_UNPACKED_BY_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others could expand beyond any cap


class TooMuchError(Exception):
    """The files that would have to be looked into are more than MAX_LOOKED_INTO."""


@dataclass
class Bundle:
    """A folder or a zip: its name in reports, and what opens a file in it."""

    shown: str
    opened: Callable[[str, str], HandedFile]
    module: str
    functions: Sequence[str]
    inside: int = MAX_ZIPS_IN_ZIPS
    _files: dict[str, HandedFile] = field(default_factory=dict)
    _room: int = MAX_LOOKED_INTO

    def file(self, path: str) -> HandedFile:
        """A file in it, which is opened once; raises TooMuchError where all of them are too much."""
        if path not in self._files:
            file = self._files[path] = self.opened(path, f"{self.shown}/{visible(decodable(path))}")
            self._room -= len(file.data)
            if self._room < 0:
                raise TooMuchError
        return self._files[path]

    def data(self, path: str) -> bytes:
        """The bytes of a file in it, up to its cap."""
        return self.file(path).data

    def work(self, homes: Sequence[Sequence[str]], others: Sequence[str]) -> list[HandedFile]:
        """The module and the notebook to grade, or one file that says why there are none.

        homes    the files of the right name, those of one folder together, modules first
        others   the other files
        """
        try:
            return self._of_right_names(homes, others) if homes else self._of_other_names(others)
        except TooMuchError:
            problem = f"holds more than {MAX_LOOKED_INTO // MIB} MiB to look through: hand in {self.module}.py alone."
            return [refused(self.shown, problem)]

    def _of_right_names(self, homes: Sequence[Sequence[str]], others: Sequence[str]) -> list[HandedFile]:
        """The module and the notebook nearest to the top; where they hold no work, the one other file that does.

        Of several folders at one depth, the only one with some work counts, or any where all are the same.
        """
        depth = min(path.count("/") for home in homes for path in home)
        near = [home for home in homes if home[0].count("/") == depth]
        if len(near) > 1:
            near = [home for home in near if self._begun(home)] or near
        same = len({tuple((PurePosixPath(path).name, self.data(path)) for path in home) for home in near}) == 1
        files = list(near[0]) if len(near) == 1 or same else []
        nearest_first = sorted(homes, key=lambda home: home[0].count("/"))
        rest = [path for home in nearest_first for path in home if path not in files]
        if not files:
            return [unclear(self.shown, rest)]
        if not (instead := self._begun_instead(files, [*rest, *others])):
            return [self.file(path) for path in files]
        return self._taken(instead, f"was graded, since {quoted(files[0])} holds no work")

    def _begun_instead(self, files: Sequence[str], others: Sequence[str]) -> list[str]:
        """What holds some work where none of these files does: handed out, and worked at under another name.

        Of other names, only what lies beside them: below may lie what was handed out, which defines some of the same.
        """
        if not self.functions or self._begun(files):
            return []
        names, place = {PurePosixPath(path).name for path in files}, PurePosixPath(files[0]).parent
        return self._begun([path for path in map(PurePosixPath, others) if path.parent == place or path.name in names])

    def _begun(self, paths: Sequence[str | PurePosixPath]) -> list[str]:
        """Those of these modules and notebooks that hold some work, by their looks."""
        return [
            path for path in map(str, paths) if suffix_of(path) in SOURCES and is_begun(self.data(path), self.functions)
        ]

    def _of_other_names(self, paths: Sequence[str]) -> list[HandedFile]:
        """What is meant where no file has the right name: modules and notebooks, else a lone zip."""
        if meant := self._meant([path for path in paths if f"fixtures/{self.module}/" not in path]):  # in every handout
            return self._taken(meant)
        zips = [path for path in paths if suffix_of(path) == ".zip"] if self.inside else []
        if len(zips) > 1:
            zips = [path for path in zips if holds_work(self.data(path), self.module)]
        if len(zips) > 1:
            return [unclear(self.shown, zips)]
        if zips:
            archive = self.file(zips[0])
            return [archive] if archive.problem else from_zip(archive, self.module, self.functions, self.inside - 1)
        if archived := next((path for path in paths if is_archive(path)), ""):
            return [packed(self.shown, archived)]
        return [nothing_in(self.shown, self.module, paths)]

    def _meant(self, paths: Sequence[str]) -> list[str]:
        """The copies of the module, else what defines some of what is graded, else the only source that there is.

        Of several, those nearest to the top: what was handed out may lie below.
        """
        sources = [path for path in paths if suffix_of(path) in SOURCES]
        found = [path for path in sources if likeness(path, self.module) >= COPY] or self._defining(sources)
        if not found and not any(suffix_of(path) == ".zip" for path in paths):
            found = self._defining([path for path in paths if kind_of(path) in SOURCES and path not in sources])
        depth = min((path.count("/") for path in found), default=0)
        return [path for path in found if path.count("/") == depth] or (sources if len(sources) == 1 else [])

    def _defining(self, paths: Sequence[str]) -> list[str]:
        return [path for path in paths if defines_one(self.data(path), self.functions)]

    def _taken(self, paths: Sequence[str], reason: str = "") -> list[HandedFile]:
        """These files, modules first, with a note; or that it is not clear which of them is meant."""
        paths = sorted(paths, key=lambda path: SOURCES.index(kind_of(path)))
        if len({kind_of(path) for path in paths}) < len(paths):
            return [unclear(self.shown, paths)]
        files = [(path, self.file(path)) for path in paths]
        notes = [taken_for(one.shown, path, self.module) or (reason and f"{one.shown} {reason}") for path, one in files]
        return [replace(one, note=note) for (_, one), note in zip(files, notes, strict=True)]


def from_zip(
    archive: HandedFile, module: str, functions: Sequence[str] = (), inside: int = MAX_ZIPS_IN_ZIPS
) -> list[HandedFile]:
    """The files of a student's zip to grade, unpacked in memory and never beyond their caps.

    A lone zip in it is looked into, `inside` times. What another tool has packed and called a zip is nobody's zero.
    """
    if is_archive("", archive.data):
        return [packed(archive.shown)]
    try:
        names = names_in_zip(io.BytesIO(archive.data), len(archive.data))
        if sum(1 for _ in itertools.islice(names, MAX_FILES + 1)) > MAX_FILES:
            return [
                refused(archive.shown, f"holds more than {MAX_FILES} files: hand in {module}.py alone.", archive.data)
            ]
        with zipfile.ZipFile(io.BytesIO(archive.data)) as opened:
            files = _from_members(archive.shown, opened, module, functions, inside)
    except (MemoryError, OSError):
        raise
    except Exception:  # zipfile raises a dozen types on damaged input; all is in memory, so blame the zip
        files = [refused(archive.shown, "is damaged, or not a zip file: pack it again.")]
    return [replace(file, data=file.data or archive.data) if file.problem else file for file in files]


def holds_work(archive: Path | bytes, module: str) -> bool:
    """Whether a zip has a file to grade; one that cannot be looked into may."""
    wanted = tuple(f"/{name}" for name in names_of(module))
    try:
        with open_regular(archive) if isinstance(archive, Path) else io.BytesIO(archive) as stream:
            return any(f"/{name}".replace("\\", "/").endswith(wanted) for name in names_in_zip(stream))
    except Exception:  # as above
        return True


def _from_members(
    shown: str, opened: zipfile.ZipFile, module: str, functions: Sequence[str], inside: int
) -> list[HandedFile]:
    named = [(_parts(name_of(member)), member) for member in opened.infolist() if not member.is_dir()]
    members = [(parts, member) for parts, member in named if parts and not any(map(is_ignored, parts))]
    if any(is_too_long(part) for parts, _ in members for part in parts):
        problem = f"holds a file whose name has more than {LONGEST_NAME} bytes: rename it, and pack it again."
        return [refused(shown, problem)]
    wanted = [(parts, member) for parts, member in members if parts[-1] in names_of(module)]
    within = [parts for parts, _ in wanted if not _is_outside(parts)]
    if wanted and not within:
        outside = quoted("/".join(wanted[0][0]))
        return [refused(shown, f"holds {outside}, which would lie outside it: pack it again.")]
    if len(set(within)) < len(within):
        return [unclear(shown, ["/".join(parts) for parts in within])]
    homes: dict[tuple[str, ...], list[str]] = {}
    for parts in sorted(within, reverse=True):  # .py before .ipynb
        homes.setdefault(parts[:-1], []).append("/".join(parts))
    paths: Mapping[str, zipfile.ZipInfo] = {
        "/".join(parts): member for parts, member in members if not _is_outside(parts)
    }
    bundle = Bundle(shown, lambda path, name: _member(name, opened, paths[path]), module, functions, inside)
    of_right_name = {path for home in homes.values() for path in home}
    return bundle.work(list(homes.values()), [path for path in paths if path not in of_right_name])


def _parts(filename: str) -> tuple[str, ...]:
    return PurePosixPath(filename.replace("\\", "/")).parts  # some tools on Windows write backslashes


def _is_outside(parts: Sequence[str]) -> bool:
    return parts[0].startswith("/") or ".." in parts or parts[0][1:2] == ":"


def _member(shown: str, opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> HandedFile:
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind == stat.S_IFLNK:
        return refused(shown, "is a symbolic link; hand in the file itself.")
    if kind not in (0, stat.S_IFREG):
        return refused(shown, "is not a regular file; hand in the file itself.")
    if member.flag_bits & 0x1:
        return refused(shown, "is encrypted: pack it again without a password.")
    if member.compress_type not in _UNPACKED_BY_PIECES:
        return refused(shown, "is packed by an unusual method: pack it again as an ordinary zip.")
    with opened.open(member) as stream:
        return capped(shown, stream, member.file_size)
