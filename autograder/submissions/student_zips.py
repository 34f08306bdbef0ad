"""One student's zip → the files in it that may be graded, unpacked in memory and never beyond their caps."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from autograder.submissions.handed_file import HandedFile, ambiguous, capped, names_of, nothing_in, refused, unclear
from autograder.submissions.names import defines_one, is_clear, name_of, taken_for, work_among
from autograder.submissions.submission import quoted
from autograder.vocabulary.folders import is_ignored, open_regular
from autograder.vocabulary.text import visible

MAX_ZIP_ENTRIES = 2_000
_UNPACKED_BY_PIECES = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # others could expand beyond any cap


def from_zip(archive: HandedFile, module: str, functions: Sequence[str] = ()) -> list[HandedFile]:
    """The files nearest to the top of the zip, unpacked in memory and never beyond their caps.

    Where none has the right name, what is meant, as `student_folders.from_folder` finds it.
    """
    # zipfile builds one object for each of these signatures, whatever number the header gives.
    if archive.data.count(b"PK\x01\x02") > MAX_ZIP_ENTRIES:
        problem = f"holds more than {MAX_ZIP_ENTRIES} entries: hand in {names_of(module)[0]} alone."
        return [refused(archive.shown, problem, archive.data)]
    try:
        with zipfile.ZipFile(io.BytesIO(archive.data)) as opened:
            files = _from_members(archive.shown, opened, module, functions)
    except Exception:  # zipfile raises a dozen types on damaged input; all is in memory, so blame the zip
        files = [refused(archive.shown, "is damaged, or not a zip file: pack it again.")]
    return [replace(file, data=file.data or archive.data) if file.problem else file for file in files]


def holds_work(path: Path, module: str) -> bool:
    """Whether the zip at `path` has a file to grade; one that cannot be looked into may."""
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as opened:
            return any(_parts(name)[-1:] == (wanted,) for name in opened.namelist() for wanted in names_of(module))
    except Exception:  # as above
        return True


def _from_members(shown: str, opened: zipfile.ZipFile, module: str, functions: Sequence[str]) -> list[HandedFile]:
    named = [(_parts(name_of(member)), member) for member in opened.infolist() if not member.is_dir()]
    members = [(parts, member) for parts, member in named if parts and not any(map(is_ignored, parts))]
    wanted = [(parts, member) for parts, member in members if parts[-1] in names_of(module)]
    inside = [(parts, member) for parts, member in wanted if not _is_outside(parts)]
    if wanted and not inside:
        outside = quoted("/".join(wanted[0][0]))
        return [refused(shown, f"holds {outside}, which would lie outside it: pack it again.")]
    if not inside:
        return _of_other_names(shown, opened, module, functions, members)
    depth = min(len(parts) for parts, _ in inside)
    nearest = [(parts, member) for parts, member in inside if len(parts) == depth]
    nearest.sort(key=lambda one: one[0], reverse=True)  # .py before .ipynb
    if len({parts[:-1] for parts, _ in nearest}) > 1 or len({parts for parts, _ in nearest}) < len(nearest):
        return [ambiguous(shown, ["/".join(parts) for parts, _ in nearest])]
    return [_from_member(f"{shown}/{visible('/'.join(parts))}", opened, member) for parts, member in nearest]


def _of_other_names(
    shown: str,
    opened: zipfile.ZipFile,
    module: str,
    functions: Sequence[str],
    members: Sequence[tuple[tuple[str, ...], zipfile.ZipInfo]],
) -> list[HandedFile]:
    paths = {"/".join(parts): member for parts, member in members if not _is_outside(parts)}

    def handed(path: str) -> HandedFile:
        file = _from_member(f"{shown}/{visible(path)}", opened, paths[path])
        return replace(file, note=taken_for(file.shown, path, module))

    meant = work_among(list(paths), module, lambda path: defines_one(handed(path).data, functions))
    if not is_clear(meant):
        return [unclear(shown, meant)]
    return [handed(path) for path in meant] or [nothing_in(shown, module, ["/".join(parts) for parts, _ in members])]


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
