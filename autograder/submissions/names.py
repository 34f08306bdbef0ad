"""Names of files as whoever gave them meant them: in a zip of another code page, copied, renamed, numbered."""

from __future__ import annotations

import re
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

SOURCES = (".py", ".ipynb")
UTF8_FLAG = 0x800  # of an entry: its name is UTF-8
PUT_BEHIND = (".txt", ".json", ".bin", ".download")  # by Windows, mail programs and browsers: policy_gradient.py.txt
OTHER_SUFFIXES = {".txt": ".py", ".pyw": ".py", ".py3": ".py", ".python": ".py", "": ".py", ".json": ".ipynb"}
_WITHIN = re.compile(r"\.(?:py|ipynb)(?![a-z0-9])")  # with more behind it: `.ipynb のコピー`, `.py.bak`
ARCHIVES = (".rar", ".7z", ".tar", ".gz", ".tgz", ".bz2", ".tbz", ".xz", ".txz", ".zst", ".zipx")
_ARCHIVE_STARTS = (b"Rar!", b"7z\xbc\xaf\x27\x1c", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd")
EXACT, COPY, PART, OTHER = 3, 2, 1, 0  # how much of the module's name a file has
COPIED = re.compile(
    r"^(copy|kopie|copia|copie|cópia|kopi|копия)( \(\d+\))?( (of|von|de|af|av))? |^копия |^副本"
    r"|[ _-]*(-|_| )?\(?(copy|kopie|copia|copie|копия|副本)?[ _]*\(?\d{0,4}\)?\)?$"
)


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


def work_among(paths: Sequence[str], module: str, defines: Callable[[str], bool]) -> list[str]:
    """Of files of which none has the module's name, those that are the work; modules first.

    The copies of it, else those that define what is graded; else, where there is no zip, what defines it under another
    suffix; else the only one that there is. Of several, those nearest to the top: what was handed out may lie below.
    Where two modules or two notebooks are returned, either could be meant.
    """
    paths = [path for path in paths if f"fixtures/{module}/" not in path]  # which every handout has with it
    sources = [path for path in paths if suffix_of(path) in SOURCES]
    copies = [path for path in sources if likeness(path, module) >= COPY]
    found = copies or [path for path in sources if defines(path)]
    if not found and not any(suffix_of(path) == ".zip" for path in paths):
        found = [path for path in paths if kind_of(path) in SOURCES and path not in sources and defines(path)]
    depth = min((path.count("/") for path in found), default=0)
    nearest = [path for path in found if path.count("/") == depth]
    return modules_first(nearest or (sources if len(sources) == 1 else []))


def begun_among(paths: Sequence[str], data_of: Callable[[str], bytes], functions: Sequence[str]) -> list[str]:
    """Those of these modules and notebooks that hold some work, by their looks; modules first."""
    sources = [path for path in paths if suffix_of(path) in SOURCES]
    return modules_first([path for path in sources if is_begun(data_of(path), functions)])


def nearest_home(
    homes: Sequence[Sequence[str]], data_of: Callable[[str], bytes], functions: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Of the files of the right name, by folder: those in the one that counts, and the others; where none does, all.

    The nearest to the top counts; of several, the only one with some work, or any where all are the same.
    """
    depth = min(path.count("/") for home in homes for path in home)
    near = [home for home in homes if home[0].count("/") == depth]
    if len(near) > 1:
        near = [home for home in near if begun_among(home, data_of, functions)] or near
    same = len({tuple((PurePosixPath(path).name, data_of(path)) for path in home) for home in near}) == 1
    chosen = list(near[0]) if len(near) == 1 or same else []
    nearest_first = sorted(homes, key=lambda home: home[0].count("/"))
    return chosen, [path for home in nearest_first for path in home if path not in chosen]


def begun_instead(
    chosen: Sequence[str], others: Sequence[str], data_of: Callable[[str], bytes], functions: Sequence[str]
) -> list[str]:
    """What holds some work where none of the chosen files does: handed out, and worked at under another name.

    Of other names, only what lies beside them: below may lie what was handed out, which defines some of the same.
    """
    if not functions or begun_among(chosen, data_of, functions):
        return []
    names = {PurePosixPath(path).name for path in chosen}
    place = PurePosixPath(chosen[0]).parent
    near = [path for path in others if PurePosixPath(path).parent == place or PurePosixPath(path).name in names]
    return begun_among(near, data_of, functions)


def modules_first(paths: Sequence[str]) -> list[str]:
    """These modules and notebooks, sorted."""
    return sorted(paths, key=lambda path: SOURCES.index(kind_of(path)))


def is_clear(paths: Sequence[str]) -> bool:
    """Whether at most one module and one notebook are among these."""
    suffixes = [kind_of(path) for path in paths]
    return len(set(suffixes)) == len(suffixes)


def defines_one(data: bytes, functions: Sequence[str]) -> bool:
    """Whether a module or a notebook has a definition of one of these functions, by its looks."""
    return any(re.search(rb"(?:\b|\\n)def\s+" + name.encode() + rb"\b", data) for name in functions)


def is_begun(data: bytes, functions: Sequence[str]) -> bool:
    """Whether a module or a notebook defines more of these functions than it leaves as stubs, by its looks."""
    defined = sum(defines_one(data, [name]) for name in functions)
    return defined > data.count(b"raise NotImplementedError")


def taken_instead(shown: str, name: str, other: str, module: str) -> str:
    """The note on a file that is graded in place of one of the right name that holds no work."""
    return taken_for(shown, name, module) or f"{shown} was graded, since {other} holds no work"


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
