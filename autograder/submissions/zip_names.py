"""The names of a zip's entries, as whoever packed it meant them."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import PurePosixPath

UTF8_FLAG = 0x800  # of an entry: its name is UTF-8


def name_of(member: zipfile.ZipInfo) -> str:
    """The name of an entry. Without the flag for UTF-8, which older tools don't set, Python reads it as code page 437.

    It is UTF-8 all the same where it can be; else Windows-1252 where that gives letters alone; else 437.
    """
    if member.flag_bits & UTF8_FLAG or member.filename.isascii():
        return member.filename
    try:
        raw = member.filename.encode("cp437")
    except UnicodeEncodeError:  # a name that this Python has made
        return member.filename
    for encoding in ("utf-8", "cp1252"):
        try:
            name = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if encoding == "utf-8" or all(character.isascii() or character.isalpha() for character in name):
            return name
    return member.filename


def parts_of(found: Sequence[zipfile.ZipInfo]) -> list[tuple[str, ...]]:
    """The path of each entry, in parts. A backslash parts them only where a tool of Windows wrote it for a slash."""
    names = [name_of(member) for member in found]
    of_windows = not any("/" in name for name in names) and sum("\\" in name for name in names) * 2 > len(names)
    return [PurePosixPath(name.replace("\\", "/" if of_windows else "_")).parts for name in names]
