"""Folders and zips that others have filled: what in one is nobody's work, and opening a file or a zip safely."""

from __future__ import annotations

import io
import os
import re
import stat
import zipfile
from pathlib import Path
from typing import BinaryIO

MAX_DIRECTORY = 16 * 2**20  # bytes: the names and sizes of a hundred thousand files
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


def opened_zip(stream: BinaryIO) -> zipfile.ZipFile:
    """The zip in a stream that was opened for reading, to be closed with it.

    Raises what zipfile raises, which is a dozen types for damaged ones; BadZipFile also where its directory is longer
    than any: zipfile takes it into memory whole, ten times as much as it is long, and as long as the zip says.
    """
    return zipfile.ZipFile(_Bounded(stream))


class _Bounded(io.BufferedIOBase):
    """A stream of which so much can be read at once, and no more."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def read(self, size: int | None = -1, /) -> bytes:
        if size is not None and size > MAX_DIRECTORY:
            raise zipfile.BadZipFile("its directory is too long")
        return self._stream.read(MAX_DIRECTORY if size is None or size < 0 else size)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._stream.close()
