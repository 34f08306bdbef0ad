"""Files: how the kit writes its own, how it opens what others have made, and how it reads the CSV files of staff."""

from __future__ import annotations

import codecs
import contextlib
import csv
import hashlib
import io
import json
import os
import re
import stat
import struct
import sys
import tempfile
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

ENGINE = Path(__file__).resolve().parents[1]  # the kit's own package: in a checkout, in site-packages, in a handout
WRITING = ".writing-"
RECORD = ".autograder.json"  # in a folder: name of a file that the kit wrote there → SHA-256 of what it wrote
READABLE, PRIVATE = 0o644, 0o600  # for everyone; for what holds students' work or grades
RESERVED = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE)  # devices on Windows

MAX_DIRECTORY = 2**18  # bytes of a zip's directory: the names and sizes of some three thousand files
MAX_AFTER_DIRECTORY = 2**16 + 98  # bytes: a comment, and the end records of both kinds
# Records at the end of a zip, and the size of an entry's fixed part (APPNOTE.TXT 4.3.12 to 4.3.16).
END_RECORD, END64_RECORD, END64_LOCATOR, ENTRY_SIZE = b"PK\5\6", b"PK\6\6", b"PK\6\7", 46
LEFT_BEHIND = frozenset({"__pycache__", "__MACOSX"})  # by Python, and by a Mac in what it zips
OF_TOOLS = re.compile(
    r"\.(git(hub|ignore|attributes|keep)?|ipynb_checkpoints|venv|env|idea|vscode|vs|DS_Store|Trash.*|Spotlight.*|fseventsd"
    r"|[a-z]+_cache|cache|config|local|conda|jupyter|ipython|Rhistory|~lock.*|_.*|nfs.*|directory|svn|hg|tox|nox)"
)

MAX_BYTES = 32 * 2**20  # of a CSV file
DELIMITERS = ",;\t"

Contents = Mapping[str, str | bytes]


# The kit's own files


def file_stem(student: str) -> str:
    """Name a student's file: readable where possible, different for different names, never a path.

    Letters of any script stay; the rest is percent-encoded. `%x` begins a name that is encoded whole (spaces or dots at
    its ends, a device of Windows), `%h` the digits of its SHA-256 that end a name too long for a file system. Percent-
    encoding makes neither. Names that differ in case alone need a file system that tells case apart.
    """
    raw = student.encode("utf-8", "surrogatepass")
    kept = "".join(
        character
        if character.isalnum() or character in " -_.@+,'"
        else urllib.parse.quote(character, safe="", errors="surrogatepass")
        for character in student
    )
    if not kept or kept != kept.strip(" .") or RESERVED.fullmatch(kept):
        kept = f"%x{raw.hex()}"
    if len(kept.encode()) > 200:
        kept = f"{kept.encode()[:150].decode(errors='ignore')}%h{hashlib.sha256(raw).hexdigest()[:16]}"
    return kept


def private_folder(path: Path) -> None:
    """Make a folder, and the missing ones above it, for its owner alone; an existing one keeps its mode."""
    if not path.exists():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def replacing(path: Path, *, lasting: bool = True, mode: int = READABLE) -> Iterator[TextIO]:
    """Open a UTF-8 stream that replaces `path` at the end: readers see the old file or the whole new one.

    lasting   wait until the disk has it; without, a power cut soon after may leave an empty file
    mode      of a new file; with PRIVATE, new folders are their owner's alone too
    A writer that is killed leaves a file beside `path` whose name begins with WRITING.
    """
    if mode == PRIVATE:
        private_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=WRITING)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as stream:
            yield stream
            stream.flush()
            if lasting:
                os.fsync(stream.fileno())
        with contextlib.suppress(OSError):  # there is no file yet
            mode = stat.S_IMODE(path.stat().st_mode)
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: str | bytes, *, lasting: bool = True, mode: int = READABLE) -> None:
    """Write `content` as `replacing` does."""
    with replacing(path, lasting=lasting, mode=mode) as stream:
        stream.buffer.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def writing(path: Path, other: str = "folder with --out") -> Iterator[None]:
    """Raise UsageError where the block cannot write `path`, or into it.

    other   what the caller may name instead; "" where there is no choice
    """
    try:
        yield
    except OSError as error:
        advice = f" Give another {other}." if other else ""
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.{advice}") from error


def write_own(folder: Path, files: Contents, *, replace: bool = False, mode: int = READABLE) -> None:
    """Write these files into `folder`, and note in its RECORD that they are the kit's.

    replace   take the place of files that somebody else wrote or changed, too
    raises    UsageError, before anything is written
    """
    if not replace:
        refuse_others(folder, files)
    for name, content in files.items():
        write_atomically(folder / name, content, mode=mode)
    write_atomically(folder / RECORD, record_of(recorded(folder) | digests(files)), mode=mode)


def refuse_others(folder: Path, files: Contents) -> None:
    """Raise UsageError where one of these files stands in `folder` and is neither the kit's nor the same."""
    if names := others_among(folder, files):
        more = f" (and {len(names) - 1} more)" if names[1:] else ""
        advice = "Move what you need out of the way, or replace it with --replace. Nothing was written."
        raise UsageError(f"{folder / names[0]}{more} is not as autograder wrote it. {advice}")


def others_among(folder: Path, files: Contents) -> list[str]:
    """List those of these files that stand in `folder` neither as the kit wrote them nor as it would now."""
    before, now = recorded(folder), digests(files)
    return [name for name in files if digest_at(folder / name) not in (None, before.get(name), now[name])]


def recorded(folder: Path) -> dict[str, str]:
    """Read the record of a folder; empty where there is none, or none that can be read."""
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        return dict(json.loads((folder / RECORD).read_bytes()))
    return {}


def record_of(known: Mapping[str, str]) -> bytes:
    """Spell the file of a record."""
    return (json.dumps(known, indent=0, sort_keys=True) + "\n").encode()


def digests(files: Contents) -> dict[str, str]:
    """Compute the SHA-256 of each file."""
    encoded = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
    return {name: hashlib.sha256(data).hexdigest() for name, data in encoded.items()}


def digest_at(path: Path) -> str | None:
    """Compute the SHA-256 of a file; None where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


@contextlib.contextmanager
def alone(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other runs out of a folder: raise UsageError, or `wait`, where one is in it.

    The system drops the lock with the process, however that ends.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            advice = "wait until it has ended, or give another folder with --out"
            raise UsageError(f"Another run is writing into {folder}: {advice}.") from None
        except OSError:  # a file system that has no locks
            pass
        yield
    finally:
        os.close(descriptor)


# Files, folders and zips that others have made


def is_of_tools(name: str) -> bool:
    """Tell whether a dotted name is one that editors, version control and systems use for themselves."""
    return OF_TOOLS.fullmatch(name) is not None


def is_ignored(name: str) -> bool:
    """Tell whether a file or folder of this name is nobody's work: hidden, or left behind by a tool."""
    return (name.startswith(".") and name != "..") or name in LEFT_BEHIND


def entries_of(folder: Path) -> list[os.DirEntry[str]]:
    """List `folder` by name, without what is ignored. Raises OSError where it cannot be listed."""
    with os.scandir(folder) as listed:
        entries = [entry for entry in listed if not is_ignored(entry.name)]
    return sorted(entries, key=lambda entry: entry.name)


def is_there(path: Path) -> bool:
    """Tell whether anything lies there; False below a folder that this user may not look into."""
    return os.path.exists(path)  # noqa: PTH110 (which raises PermissionError in some versions of Python)


def is_file_at(path: Path) -> bool:
    """Tell whether a regular file lies there, or a link to one; False where this user may not look."""
    return os.path.isfile(path)  # noqa: PTH113


def is_folder_at(path: Path) -> bool:
    """Tell whether a folder lies there, or a link to one; False where this user may not look."""
    return os.path.isdir(path)  # noqa: PTH112


def open_regular(path: Path) -> BinaryIO:
    """Open the regular file at `path`. Raises OSError for anything else: it follows no link and waits for no pipe.

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
    """Read the first megabyte of a regular file; nothing of what cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read(2**20)
    except OSError:
        return b""


def names_in_zip(stream: BinaryIO, most: int = MAX_DIRECTORY) -> Iterator[str]:
    """Yield the names in a zip from the directory at its end: zipfile would make an object of half a kilobyte for each.

    Raises ValueError or struct.error where there is no directory, or it has more than `most` bytes.
    """
    stream.seek(max(0, stream.seek(0, io.SEEK_END) - most - MAX_AFTER_DIRECTORY))
    tail = stream.read()
    without_comment = tail[-22:-18] == END_RECORD and tail[-2:] == b"\0\0"
    end = len(tail) - 22 if without_comment else tail.rindex(END_RECORD)
    [size] = struct.unpack_from("<I", tail, end + 12)
    if tail[end - 20 : end - 16] == END64_LOCATOR and tail[end - 76 : end - 72] == END64_RECORD:
        end -= 76
        [size] = struct.unpack_from("<Q", tail, end + 40)
    if size > min(most, end):
        raise ValueError(f"the zip's directory has more than {most} bytes")
    place = end - size
    while place < end:
        lengths = struct.unpack_from("<3H", tail, place + 28)  # of the name, the extra field, the comment
        yield tail[place + ENTRY_SIZE : place + ENTRY_SIZE + lengths[0]].decode(errors="replace")
        place += ENTRY_SIZE + sum(lengths)


# CSV files of staff: rosters, overrides, times, gradebooks, worksheets


@dataclass(frozen=True)
class Table:
    """A CSV file: its cells, and what it takes to write it the same way.

    rows    each as wide as the header
    lines   of the file, where each row begins
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    delimiter: str = ","
    newline: str = "\n"
    bom: bool = False
    lines: tuple[int, ...] = ()

    def text(self, rows: Iterable[Sequence[str]]) -> str:
        """Spell these rows as the file is spelt, header included where it is among them."""
        text = "\N{BYTE ORDER MARK}" if self.bom else ""
        for row in rows:
            stream = io.StringIO()
            # With this terminator the module quotes cells that hold either half of it.
            csv.writer(stream, delimiter=self.delimiter, lineterminator="\r\n").writerow(row)
            text += stream.getvalue().removesuffix("\r\n") + self.newline
        return text


@dataclass(frozen=True)
class Row:
    """One row: its file and line, for sentences, and its cells by column, without white space around them."""

    place: str
    cells: dict[str, str]

    def __getitem__(self, column: str) -> str:
        """Return the cell of that column."""
        return self.cells[column]

    def wrong(self, sentence: str) -> UsageError:
        """Word what to raise where this row cannot be used."""
        return UsageError(f"{self.place}: {sentence}")


def read_rows(path: Path, columns: Sequence[str], *, others: bool = False, data: bytes | None = None) -> list[Row]:
    """Read the rows of a CSV file with just these columns, in any order; `others` skips more of them.

    data   its bytes, where they are read already
    A row without any text is skipped. Raises UsageError naming the line of what cannot be used.
    """
    table = table_of(_bytes(path) if data is None else data, path, whole_rows=True)
    header = [name.strip().lower() for name in table.header]
    if any(header.count(name) != 1 for name in columns) or (not others and set(header) != set(columns)):
        names = ", ".join(visible(name, 40) for name in header)
        raise UsageError(f"{path}, line 1: the columns should be {','.join(columns)}; found: {names}.")
    rows = []
    for line, cells in zip(table.lines, table.rows, strict=True):
        by_name = dict(zip(header, map(str.strip, cells), strict=True))
        if any(by_name.values()):
            rows.append(Row(f"{path}, line {line}", {name: by_name[name] for name in columns}))
    return rows


def read_table(path: Path) -> Table:
    """Read the CSV file at `path`; raises UsageError naming the line of what cannot be used."""
    return table_of(_bytes(path), path)


def table_of(data: bytes, path: Path, *, whole_rows: bool = False) -> Table:
    """Read the table in these bytes, which are those of `path`; short rows are filled up to the header.

    UTF-8 with a mark or without, or UTF-16 with one, as Blackboard writes it; commas, semicolons or tabs.
    whole_rows   refuse short rows, where a missing cell would move others
    """
    text = _decoded(data, path)
    first = re.match(r'(?:[^"\r\n]|"(?:[^"]|"")*")*', text)
    unquoted = re.sub(r'"(?:[^"]|"")*"', "", first[0] if first else "")
    delimiter = max(DELIMITERS, key=unquoted.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, rows, start = [], [], 1
    try:
        for row in reader:
            if row:
                lines.append(start)
                rows.append(row)
            start = reader.line_num + 1
    except csv.Error as error:
        raise UsageError(f"{path}, line {reader.line_num}: this is not CSV ({error}).") from error
    if not rows:
        raise UsageError(f"{path} is empty: its first line should name the columns.")
    width = len(rows[0])
    for line, row in zip(lines, rows, strict=True):
        if any(row[width:]) or (whole_rows and any(map(str.strip, row)) and len(row) != width):
            raise UsageError(f"{path}, line {line}: {len(row)} cells, but the first line names {width} columns.")
    header, *even = (tuple((row + [""] * width)[:width]) for row in rows)
    newline = "\r\n" if "\r\n" in text else "\n"
    return Table(header, tuple(even), delimiter, newline, data.startswith(codecs.BOM_UTF8), tuple(lines[1:]))


def read_text(path: Path) -> str:
    """Read a small UTF-8 file; raises UsageError where it cannot be read."""
    return _decoded(_bytes(path), path)


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read ({reason}): check the path.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES // 2**20} MiB: is it the right file?")
    return data


def _decoded(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}, line {line}: this is not UTF-8. Save the file as UTF-8.") from error
