"""A class in one zip, as platforms offer it for download → a temporary folder that holds the same.

What the platform packed is not trusted more than what students named: nothing lies outside the folder, no link is made
that leads anywhere, and only what can be graded is unpacked; the rest leaves its name and no bytes.
"""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from autograder.submissions.submission import CAPS, shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.folders import is_ignored

METADATA = "submission_metadata.yml"  # Gradescope's own, at the top
MAX_METADATA = 32 * 2**20
MAX_ENTRIES = 50_000
MAX_TOTAL = 4 * 2**30
MAX_DEPTH = 12


def members(path: Path) -> list[zipfile.ZipInfo]:
    """The files in the zip at `path`; none where it is not a zip, or has too many to be looked at."""
    try:
        with zipfile.ZipFile(path) as opened:
            found = [member for member in opened.infolist() if not member.is_dir()]
    except Exception:  # zipfile raises a dozen types on damaged input
        return []
    return found if len(found) <= MAX_ENTRIES else []


def unpack(path: Path, target: Path) -> None:
    """Unpack the zip into `target`.

    Raises UsageError where an entry would lie outside, where one is there twice, or where all is more than MAX_TOTAL.
    """
    room = MAX_TOTAL
    with zipfile.ZipFile(path) as opened:
        for member in members(path):
            parts = _parts(member.filename)
            if not parts or any(map(is_ignored, parts)):
                continue
            place = target.joinpath(*_inside(parts, path))
            try:
                room -= _write(opened, member, place, min(room, _cap(parts)))
            except OSError as error:
                raise UsageError(f"{path} cannot be unpacked ({error.strerror}): {_shown(parts)}.") from None
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError) as error:
                raise UsageError(f"{path} is damaged at {_shown(parts)} ({error}): download it again.") from None
            if room <= 0:
                raise UsageError(f"{path} holds more than {MAX_TOTAL // 2**30} GiB: unpack it, and give the folder.")


def _write(opened: zipfile.ZipFile, member: zipfile.ZipInfo, place: Path, most: int) -> int:
    """Unpack one entry, at most one byte more than `most`: the reader says that it is too large. Returns its size."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(member.external_attr >> 16):
        place.symlink_to("nowhere")  # so that the reader says what it was
        return 0
    with place.open("xb") as stream:
        if most <= 0:
            return 0
        with opened.open(member) as source:
            written = 0
            while written <= most and (data := source.read(min(2**20, most + 1 - written))):
                written += stream.write(data)
            return written


def _cap(parts: Sequence[str]) -> int:
    if parts[-1] == METADATA:
        return MAX_METADATA
    return CAPS.get(PurePosixPath(parts[-1]).suffix.lower(), 100 if parts[-1] == "timestamp.txt" else 0)


def _parts(filename: str) -> tuple[str, ...]:
    return PurePosixPath(filename.replace("\\", "/")).parts


def _inside(parts: Sequence[str], path: Path) -> Sequence[str]:
    if parts[0].startswith("/") or ".." in parts or parts[0][1:2] == ":" or len(parts) > MAX_DEPTH:
        raise UsageError(f"{path} holds {_shown(parts)}, which would lie outside it: download it again.")
    return parts


def _shown(parts: Sequence[str]) -> str:
    return shown_name("/".join(parts))[:300]
