"""One student's zip → the files in it that may be graded, unpacked in memory and never beyond their caps."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from autograder.submissions.handed_file import HandedFile, capped, names_of, nothing_in, packed, refused, unclear
from autograder.submissions.names import (
    begun_instead,
    defines_one,
    is_archive,
    is_clear,
    name_of,
    nearest_home,
    suffix_of,
    taken_for,
    taken_instead,
    work_among,
)
from autograder.submissions.submission import quoted
from autograder.vocabulary.folders import is_ignored, open_regular, opened_zip
from autograder.vocabulary.text import visible

MAX_ZIP_ENTRIES = 2_000
MAX_ZIPS_IN_ZIPS = 2  # what is packed once more by a browser or by Windows, and once by the student
_UNPACKED_BY_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others could expand beyond any cap


def from_zip(
    archive: HandedFile, module: str, functions: Sequence[str] = (), inside: int = MAX_ZIPS_IN_ZIPS
) -> list[HandedFile]:
    """The files nearest to the top of the zip, unpacked in memory and never beyond their caps.

    Where none has the right name, what is meant, as `student_folders.from_folder` finds it; a lone zip is looked into,
    `inside` times. What another tool has packed and called a zip is nobody's zero.
    """
    if is_archive("", archive.data):
        return [packed(archive.shown)]
    # zipfile builds one object for each of these signatures, whatever number the header gives.
    if archive.data.count(b"PK\x01\x02") > MAX_ZIP_ENTRIES:
        problem = f"holds more than {MAX_ZIP_ENTRIES} entries: hand in {names_of(module)[0]} alone."
        return [refused(archive.shown, problem, archive.data)]
    try:
        with zipfile.ZipFile(io.BytesIO(archive.data)) as opened:
            files = _from_members(archive.shown, opened, module, functions, inside)
    except Exception:  # zipfile raises a dozen types on damaged input; all is in memory, so blame the zip
        files = [refused(archive.shown, "is damaged, or not a zip file: pack it again.")]
    return [replace(file, data=file.data or archive.data) if file.problem else file for file in files]


def holds_work(path: Path, module: str) -> bool:
    """Whether the zip at `path` has a file to grade; one that cannot be looked into may."""
    try:
        with open_regular(path) as stream, opened_zip(stream) as opened:
            return any(_parts(name)[-1:] == (wanted,) for name in opened.namelist() for wanted in names_of(module))
    except Exception:  # as above
        return True


def _from_members(
    shown: str, opened: zipfile.ZipFile, module: str, functions: Sequence[str], inside: int
) -> list[HandedFile]:
    named = [(_parts(name_of(member)), member) for member in opened.infolist() if not member.is_dir()]
    members = [(parts, member) for parts, member in named if parts and not any(map(is_ignored, parts))]
    wanted = [(parts, member) for parts, member in members if parts[-1] in names_of(module)]
    within = [(parts, member) for parts, member in wanted if not _is_outside(parts)]
    if wanted and not within:
        outside = quoted("/".join(wanted[0][0]))
        return [refused(shown, f"holds {outside}, which would lie outside it: pack it again.")]
    if not within:
        return _of_other_names(_Zip(shown, opened, _paths(members)), module, functions, inside)
    if len({parts for parts, _ in within}) < len(within):
        return [unclear(shown, ["/".join(parts) for parts, _ in within])]
    homes: dict[tuple[str, ...], list[str]] = {}
    for parts, _ in sorted(within, key=lambda one: one[0], reverse=True):  # .py before .ipynb
        homes.setdefault(parts[:-1], []).append("/".join(parts))
    return _of_right_names(_Zip(shown, opened, _paths(members)), module, functions, list(homes.values()))


@dataclass(frozen=True)
class _Zip:
    """A zip that is open, its name in reports, and what lies in it."""

    shown: str
    opened: zipfile.ZipFile
    members: Mapping[str, zipfile.ZipInfo]

    def file(self, path: str) -> HandedFile:
        """A file in it, unpacked in memory up to its cap."""
        return _from_member(f"{self.shown}/{visible(path)}", self.opened, self.members[path])

    def data(self, path: str) -> bytes:
        """The bytes of a file in it."""
        return self.file(path).data


def _paths(members: Sequence[tuple[tuple[str, ...], zipfile.ZipInfo]]) -> dict[str, zipfile.ZipInfo]:
    """The entries that lie in the zip, by path."""
    return {"/".join(parts): member for parts, member in members if not _is_outside(parts)}


def _of_right_names(
    archive: _Zip, module: str, functions: Sequence[str], homes: Sequence[Sequence[str]]
) -> list[HandedFile]:
    """The module and the notebook nearest to the top; where they hold no work, the one other file that does."""
    files, rest = nearest_home(homes, archive.data, functions)
    others = [path for path in archive.members if path not in files] if files else rest
    instead = begun_instead(files, others, archive.data, functions) if files else rest
    if not (files and is_clear(instead)):
        return [unclear(archive.shown, instead)]
    if not instead:
        return [archive.file(path) for path in files]
    found = [(path, archive.file(path)) for path in instead]
    return [replace(file, note=taken_instead(file.shown, path, quoted(files[0]), module)) for path, file in found]


def _of_other_names(archive: _Zip, module: str, functions: Sequence[str], inside: int) -> list[HandedFile]:
    paths = list(archive.members)
    meant = work_among(paths, module, lambda path: defines_one(archive.data(path), functions))
    if not is_clear(meant):
        return [unclear(archive.shown, meant)]
    if meant:
        found = [(path, archive.file(path)) for path in meant]
        return [replace(file, note=taken_for(file.shown, path, module)) for path, file in found]
    zips = [path for path in paths if suffix_of(path) == ".zip"]
    if len(zips) == 1 and inside:
        inner = archive.file(zips[0])
        return [inner] if inner.problem else from_zip(inner, module, functions, inside - 1)
    if packed_in := next((path for path in paths if is_archive(path)), ""):
        return [packed(archive.shown, packed_in)]
    return [nothing_in(archive.shown, module, paths)]


def _parts(filename: str) -> tuple[str, ...]:
    return PurePosixPath(filename.replace("\\", "/")).parts  # some tools on Windows write backslashes


def _is_outside(parts: Sequence[str]) -> bool:
    return parts[0].startswith("/") or ".." in parts or parts[0][1:2] == ":"


def _from_member(shown: str, opened: zipfile.ZipFile, member: zipfile.ZipInfo) -> HandedFile:
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
