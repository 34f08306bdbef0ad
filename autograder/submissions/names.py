"""Names of files as whoever gave them meant them: in a zip of another code page, copied, renamed, numbered."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

SOURCES = (".py", ".ipynb")
LONGEST_NAME = 255  # bytes
UTF8_FLAG = 0x800  # of a zip's entry: its name is UTF-8 (APPNOTE.TXT 4.4.4, bit 11)
PUT_BEHIND = (".txt", ".json", ".bin", ".download")  # by Windows, mail programs and browsers: policy_gradient.py.txt
OTHER_SUFFIXES = {".txt": ".py", ".pyw": ".py", ".py3": ".py", ".python": ".py", "": ".py", ".json": ".ipynb"}
ARCHIVES = (".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".zst", ".zipx")
_ARCHIVE_STARTS = (b"Rar!", b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
EXACT, COPY, PART, OTHER = 3, 2, 1, 0  # how much of the module's name a file has
COPIED = re.compile(
    r"^(copy|kopie|copia|copie|cópia|kopi|копия)( \(\d+\))?( (of|von|de|af|av))? |^копия |^副本"
    r"|(?<![ _-])[ _-]*\(?((copy|kopie|copia|copie|копия|副本)[ _]*)?\(?\d{0,4}\)?\)?$"
)


def is_too_long(name: str) -> bool:
    """Tell whether a file's name is longer than file systems allow."""
    return len(name.encode("utf-8", "surrogatepass")) > LONGEST_NAME


def suffix_of(name: str) -> str:
    """Return the suffix in small letters; the one before it where a program has put another behind."""
    path = PurePosixPath(name.lower().rstrip())
    inner = PurePosixPath(path.stem).suffix
    return inner if path.suffix in PUT_BEHIND and inner in (*SOURCES, ".zip") else path.suffix


def stem_of(name: str) -> str:
    """Return the name without its suffix, and without what a program has put behind that."""
    path = PurePosixPath(name)
    return path.stem if suffix_of(name) == path.suffix.lower() else PurePosixPath(path.stem).stem


def kind_of(name: str) -> str:
    """Tell as what a file is read if it is the work: .py, .ipynb or .zip where it can be one, else its suffix."""
    suffix = suffix_of(name)
    if suffix not in SOURCES and not is_archive(name):
        inside = re.search(r"\.(?:py|ipynb)(?![a-z0-9])", name.lower())  # `.ipynb のコピー`, `.py.bak`
        if inside:
            return inside[0]
    return OTHER_SUFFIXES.get(suffix, suffix)


def is_archive(name: str, data: bytes = b"") -> bool:
    """Tell by its name, or by its first bytes, whether a file is packed in a way that is not unpacked here."""
    return suffix_of(name) in ARCHIVES or data.startswith(_ARCHIVE_STARTS)


def likeness(name: str, module: str) -> int:
    """Rank a file's name: EXACT, a COPY as browsers and platforms number them, with the module as a PART, OTHER."""
    stem = stem_of(name)
    if stem == module:
        return EXACT
    bare, bare_module = _bare(stem), _bare(module)
    return COPY if bare == bare_module else PART if bare_module in bare else OTHER


def _bare(stem: str) -> str:
    """Take from a name what two ways of writing it may differ in."""
    folded = unicodedata.normalize("NFKC", stem).casefold().strip()
    while (shorter := COPIED.sub("", folded).strip(" _-.")) != folded and shorter:
        folded = shorter
    return re.sub(r"[\W_]+", "", folded)


def defines_one(data: bytes, functions: Sequence[str]) -> bool:
    """Tell whether a module or a notebook seems to define one of these functions."""
    return bool(defined(data, functions))


def is_begun(data: bytes, functions: Sequence[str]) -> bool:
    """Tell whether a module or a notebook seems to define more of these functions than it leaves as stubs."""
    return len(defined(data, functions)) > data.count(b"raise NotImplementedError")


def defined(data: bytes, functions: Iterable[str]) -> set[str]:
    """List those of these functions that a module or a notebook seems to define."""
    names = "|".join(map(re.escape, sorted(functions)))
    if not names:
        return set()
    # A search that begins with "def" is fast; what stands before it, a notebook's `\n` included, is looked at after.
    matches = re.finditer(rb"def\s+(%s)\b" % names.encode(), data)
    return {
        match[1].decode()
        for match in matches
        if re.search(rb"(?:\\n|\W|^)\Z", data[max(0, match.start() - 2) : match.start()])
    }


def taken_for(shown: str, name: str, module: str) -> str:
    """Write the note on a file that is graded under another name than the one to hand in under; "" if it has that."""
    meant = f"{module}{kind_of(name)}"
    path = PurePosixPath(name)
    if f"{path.stem}{path.suffix.lower()}" == meant:
        return ""
    return f"{shown} was taken for {meant}: hand it in under that name"


def name_of(member: zipfile.ZipInfo) -> str:
    """Decode the name of a zip's entry. Older tools set no flag for UTF-8; then Python reads code page 437.

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
        if encoding == "utf-8" or all(letter.isascii() or "À" <= letter <= "ÿ" for letter in name):
            return name
    return member.filename


def parts_of(members: Sequence[zipfile.ZipInfo]) -> list[tuple[str, ...]]:
    """Split the path of each entry. A backslash is a separator only in a zip whose tool wrote it for a slash."""
    names = [name_of(member) for member in members]
    from_windows = not any("/" in name for name in names) and sum("\\" in name for name in names) * 2 > len(names)
    return [PurePosixPath(name.replace("\\", "/" if from_windows else "_")).parts for name in names]
