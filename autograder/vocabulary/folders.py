"""Folders and zips that others have filled: what in one is nobody's work, and opening a file or a zip safely."""

from __future__ import annotations

import io
import os
import re
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

MAX_DIRECTORY = 2**18  # bytes: the names and sizes of some three thousand files
MAX_AFTER_DIRECTORY = 2**16 + 98  # bytes: a comment, and the end records of both kinds
LEFT_BEHIND = frozenset({"__pycache__", "__MACOSX"})  # by Python, and by a Mac in what it zips

OF_TOOLS = re.compile(
    r"\.(git(hub|ignore|attributes|keep)?|ipynb_checkpoints|venv|env|idea|vscode|vs|DS_Store|Trash.*|Spotlight.*|fseventsd"
    r"|[a-z]+_cache|cache|config|local|conda|jupyter|ipython|Rhistory|~lock.*|_.*|nfs.*|directory|svn|hg|tox|nox)"
)


def is_of_tools(name: str) -> bool:
    """Whether a dotted name is one that editors, version control and systems use for themselves."""
    return OF_TOOLS.fullmatch(name) is not None


def is_ignored(name: str) -> bool:
    """Whether a file or folder of this name is nobody's work: hidden, or left behind by a tool."""
    return (name.startswith(".") and name != "..") or name in LEFT_BEHIND


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """What `folder` holds, sorted by name, without what is ignored. Raises OSError where it cannot be listed."""
    with os.scandir(folder) as listed:
        entries = [entry for entry in listed if not is_ignored(entry.name)]
    return sorted(entries, key=lambda entry: entry.name)


def is_there(path: Path) -> bool:
    """Whether anything lies there, as far as this user may look: below a closed folder nothing does."""
    return os.path.exists(path)  # noqa: PTH110 (which raises PermissionError in some versions of Python)


def is_file_at(path: Path) -> bool:
    """Whether a regular file lies there, or a link to one, as far as this user may look."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder_at(path: Path) -> bool:
    """Whether a folder lies there, or a link to one, as far as this user may look."""
    return os.path.isdir(path)  # noqa: PTH112


def open_regular(path: Path) -> BinaryIO:
    """The bytes of the regular file at `path`. Raises OSError for anything else: no link is followed, no pipe awaited.

    Links above the file's own folder are followed: whoever names the folder means what it leads to.
    """
    if not stat.S_ISREG(path.lstat().st_mode):  # before it is opened: opening some devices does something
        raise OSError(22, "not a regular file", str(path))
    flags = [getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")]
    stream = os.fdopen(os.open(path, os.O_RDONLY | sum(flags)), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):  # somebody put another there meanwhile
        stream.close()
        raise OSError(22, "not a regular file", str(path))
    return stream


def beginning(path: Path) -> bytes:
    """The first megabyte of a regular file; nothing of what cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read(2**20)
    except OSError:
        return b""


def names_in_zip(stream: BinaryIO, most: int = MAX_DIRECTORY) -> Iterator[str]:
    """The names in a zip, from the directory at its end: zipfile would make an object of half a kilobyte for each.

    Raises ValueError or struct.error where there is no directory, or it has more than `most` bytes.
    """
    stream.seek(max(0, stream.seek(0, io.SEEK_END) - most - MAX_AFTER_DIRECTORY))
    tail = stream.read()
    end = len(tail) - 22 if tail[-22:-18] == b"PK\5\6" and tail[-2:] == b"\0\0" else tail.rindex(b"PK\5\6")
    [size] = struct.unpack_from("<I", tail, end + 12)
    if tail[end - 20 : end - 16] == b"PK\6\7" and tail[end - 76 : end - 72] == b"PK\6\6":  # zip64
        end -= 76
        [size] = struct.unpack_from("<Q", tail, end + 40)
    if size > min(most, end):
        raise ValueError(f"the zip's directory has more than {most} bytes")
    place = end - size
    while place < end:
        lengths = struct.unpack_from("<3H", tail, place + 28)
        yield tail[place + 46 : place + 46 + lengths[0]].decode(errors="replace")
        place += 46 + sum(lengths)
