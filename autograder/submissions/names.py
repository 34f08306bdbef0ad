"""Names of files as whoever gave them meant them: in a zip of another code page, copied, renamed, numbered."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

SOURCES = (".py", ".ipynb")
UTF8_FLAG = 0x800  # of an entry: its name is UTF-8
EXACT, COPY, PART, OTHER = 3, 2, 1, 0  # how much of the module's name a file has
COPIED = re.compile(
    r"^(copy|kopie|copia|copie|cópia|kopi|копия)( \(\d+\))?( (of|von|de|af|av))? |^копия |^副本"
    r"|[ _-]*(-|_| )?\(?(copy|kopie|copia|copie|копия|副本)?[ _]*\(?\d{0,4}\)?\)?$"
)


def likeness(name: str, module: str) -> int:
    """How far a file's name is that of the module: EXACT, a COPY as browsers and platforms number them, PART, OTHER."""
    stem = PurePosixPath(name).stem
    if stem == module:
        return EXACT
    bare, wanted = _bare(stem), _bare(module)
    return COPY if bare == wanted else PART if wanted in bare else OTHER


def _bare(stem: str) -> str:
    """A name without what two ways of writing it may differ in."""
    folded = unicodedata.normalize("NFKC", stem).casefold().strip()
    while (shorter := COPIED.sub("", folded).strip(" _-.")) != folded and shorter:
        folded = shorter
    return re.sub(r"[\W_]+", "", folded)


def work_among(paths: Sequence[str], module: str, defines: Callable[[str], bool]) -> list[str]:
    """Of files of which none has the module's name, those that are the work; modules first.

    The copies of it, else those that define what is graded, else the only one that there is. Where two modules or two
    notebooks are returned, either could be meant.
    """
    sources = [path for path in paths if PurePosixPath(path).suffix.lower() in SOURCES]
    copies = [path for path in sources if likeness(path, module) >= COPY]
    found = copies or [path for path in sources if defines(path)] or (sources if len(sources) == 1 else [])
    return sorted(found, key=lambda path: SOURCES.index(PurePosixPath(path).suffix.lower()))


def is_clear(paths: Sequence[str]) -> bool:
    """Whether at most one module and one notebook are among these."""
    suffixes = [PurePosixPath(path).suffix.lower() for path in paths]
    return len(set(suffixes)) == len(suffixes)


def defines_one(data: bytes, functions: Sequence[str]) -> bool:
    """Whether a module or a notebook has a definition of one of these functions, by its looks."""
    return any(re.search(rb"\bdef\s+" + name.encode() + rb"\b", data) for name in functions)


def taken_for(shown: str, name: str, module: str) -> str:
    """The note on a file that is graded under another name than the one to hand in under; "" where it has that."""
    suffix = PurePosixPath(name).suffix
    if PurePosixPath(name).name == f"{module}{suffix.lower()}":
        return ""
    return f"{shown} was taken for {module}{suffix.lower()}: hand it in under that name"


# Entries of zips


def name_of(member: zipfile.ZipInfo) -> str:
    """The name of an entry. Without the flag for UTF-8, which older tools don't set, Python reads it as code page 437.

    It is UTF-8 all the same where it can be; else Windows-1252 where that gives letters of Western Europe; else 437.
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
        if encoding == "utf-8" or all(one.isascii() or "À" <= one <= "ÿ" for one in name):
            return name
    return member.filename


def parts_of(found: Sequence[zipfile.ZipInfo]) -> list[tuple[str, ...]]:
    """The path of each entry, in parts. A backslash parts them only where a tool of Windows wrote it for a slash."""
    names = [name_of(member) for member in found]
    of_windows = not any("/" in name for name in names) and sum("\\" in name for name in names) * 2 > len(names)
    return [PurePosixPath(name.replace("\\", "/" if of_windows else "_")).parts for name in names]
