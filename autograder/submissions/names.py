"""Names of files as whoever gave them meant them: in a zip of another code page, copied, renamed, numbered."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

SOURCES = (".py", ".ipynb")
LONGEST_NAME = 255  # bytes
UTF8_FLAG = 0x800  # of an entry: its name is UTF-8
PUT_BEHIND = (".txt", ".json", ".bin", ".download")  # by Windows, mail programs and browsers: policy_gradient.py.txt
OTHER_SUFFIXES = {".txt": ".py", ".pyw": ".py", ".py3": ".py", ".python": ".py", "": ".py", ".json": ".ipynb"}
_WITHIN = re.compile(r"\.(?:py|ipynb)(?![a-z0-9])")  # with more behind it: `.ipynb のコピー`, `.py.bak`
_BEFORE = re.compile(rb"(?:\\n|\W|^)\Z")
ARCHIVES = (".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".zst", ".zipx")
_ARCHIVE_STARTS = (b"Rar!", b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
EXACT, COPY, PART, OTHER = 3, 2, 1, 0  # how much of the module's name a file has
COPIED = re.compile(
    r"^(copy|kopie|copia|copie|cópia|kopi|копия)( \(\d+\))?( (of|von|de|af|av))? |^копия |^副本"
    r"|(?<![ _-])[ _-]*\(?((copy|kopie|copia|copie|копия|副本)[ _]*)?\(?\d{0,4}\)?\)?$"
)


def is_too_long(name: str) -> bool:
    """Whether a file's name is longer than file systems have them."""
    return len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME


def suffix_of(name: str) -> str:
    """What says of a file what it is, in small letters: its suffix, or the one before what was put behind it."""
    path = PurePosixPath(name.lower().rstrip())
    inner = PurePosixPath(path.stem).suffix
    return inner if path.suffix in PUT_BEHIND and inner in (*SOURCES, ".zip") else path.suffix


def stem_of(name: str) -> str:
    """The name of a file without its suffix, and without what was put behind that."""
    path = PurePosixPath(name)
    return path.stem if suffix_of(name) == path.suffix.lower() else PurePosixPath(path.stem).stem


def kind_of(name: str) -> str:
    """As what a file is read that is the work: .py, .ipynb or .zip where it can be one, else its suffix."""
    suffix = suffix_of(name)
    within = _WITHIN.search(name.lower()) if suffix not in SOURCES and not is_archive(name) else None
    return within[0] if within else OTHER_SUFFIXES.get(suffix, suffix)


def is_archive(name: str, data: bytes = b"") -> bool:
    """Whether a file is packed in a way that is not unpacked here: by its name, or by how it begins."""
    return suffix_of(name) in ARCHIVES or data.startswith(_ARCHIVE_STARTS)


def likeness(name: str, module: str) -> int:
    """How far a file's name is that of the module: EXACT, a COPY as browsers and platforms number them, PART, OTHER."""
    stem = stem_of(name)
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


def defines_one(data: bytes, functions: Sequence[str]) -> bool:
    """Whether a module or a notebook has a definition of one of these functions, by its looks."""
    return bool(defined(data, functions))


def is_begun(data: bytes, functions: Sequence[str]) -> bool:
    """Whether a module or a notebook defines more of these functions than it leaves as stubs, by its looks."""
    return len(defined(data, functions)) > data.count(b"raise NotImplementedError")


def defined(data: bytes, functions: Iterable[str]) -> set[str]:
    """Those of these functions that a module or a notebook defines, by its looks."""
    names = "|".join(map(re.escape, sorted(functions)))
    found = re.finditer(rb"def\s+(%s)\b" % names.encode(), data) if names else ()  # "def" is quickly searched for
    return {match[1].decode() for match in found if _BEFORE.search(data, max(0, match.start() - 2), match.start())}


def taken_for(shown: str, name: str, module: str) -> str:
    """The note on a file that is graded under another name than the one to hand in under; "" where it has that."""
    meant = f"{module}{kind_of(name)}"
    own = PurePosixPath(name)
    if f"{own.stem}{own.suffix.lower()}" == meant:
        return ""
    return f"{shown} was taken for {meant}: hand it in under that name"


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
