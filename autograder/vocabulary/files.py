"""Files that the kit makes: a name for any student's, one way to write them, one sentence where that fails."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import stat
import sys
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TextIO

from autograder.vocabulary.errors import UsageError

WRITING = ".writing-"
RECORD = ".autograder.json"  # in a folder: name of a file that the kit wrote there → SHA-256 of what it wrote
READABLE, PRIVATE = 0o644, 0o600  # what is for everyone, and what holds students' work or grades
RESERVED = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE)  # devices to Windows


def file_stem(student: str) -> str:
    """A file name for any student name: readable where it can be, different for different names, never a path.

    Letters of any script are kept; the rest is percent-encoded, a name that would not do as a file's whole (spaces or
    dots at its ends, a device of Windows). A name that would be too long for a file system ends in 16 digits of its
    SHA-256. `%x` and `%h` cannot come from percent-encoding, so no other name gets the same stem. Names that differ
    in case alone stay apart only where the file system tells case apart.
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


# Writing


def private_folder(path: Path) -> None:
    """Make a folder, and those above it that are lacking, for its owner alone; one that is there keeps its mode."""
    if not path.exists():
        private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


@contextlib.contextmanager
def replacing(path: Path, *, lasting: bool = True, mode: int = READABLE) -> Iterator[TextIO]:
    """A stream (UTF-8) for what is to stand at `path`: a reader sees the old file or the whole new one, never a part.

    Where the writer is killed, a file beside `path` stays behind whose name begins with `WRITING`.

    lasting   wait until the disk has it; without, a power cut soon after may leave a file that is empty
    mode      the rights of a file that is new, in folders that are its owner's alone where it is; others keep theirs
    """
    with _taking_the_place_of(path, lasting=lasting, mode=mode) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        yield text
        text.detach()  # writes what it still holds, and leaves the stream open


def write_atomically(path: Path, content: str | bytes, *, lasting: bool = True, mode: int = READABLE) -> None:
    """Write `content` as `replacing` does."""
    with _taking_the_place_of(path, lasting=lasting, mode=mode) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def writing(path: Path, other: str = "folder with --out") -> Iterator[None]:
    """Raise UsageError, in the one wording that there is, where the block cannot write `path`, or into it.

    other   another what the caller may give instead; "" where there is no choice
    """
    try:
        yield
    except OSError as error:
        advice = f" Give another {other}." if other else ""
        raise UsageError(f"{path} cannot be written: {error.strerror or error}.{advice}") from error


# What somebody else wrote

Contents = Mapping[str, str | bytes]


def write_own(folder: Path, files: Contents, *, replace: bool = False, mode: int = READABLE) -> None:
    """Write these files into `folder`; of what stands there, replace only what the kit wrote, as its RECORD says.

    replace   anything else, too
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
    """Those of these files that stand in `folder` and are neither as the kit wrote them nor as it would now."""
    before, now = recorded(folder), digests(files)
    return [name for name in files if digest_at(folder / name) not in (None, before.get(name), now[name])]


def recorded(folder: Path) -> dict[str, str]:
    """The record of a folder; empty where there is none, or none that can be read."""
    with contextlib.suppress(OSError, ValueError, TypeError, RecursionError):
        return dict(json.loads((folder / RECORD).read_bytes()))
    return {}


def record_of(known: Mapping[str, str]) -> bytes:
    """What the file of a record holds."""
    return (json.dumps(known, indent=0, sort_keys=True) + "\n").encode()


def digests(files: Contents) -> dict[str, str]:
    """The SHA-256 of each file."""
    encoded = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
    return {name: hashlib.sha256(data).hexdigest() for name, data in encoded.items()}


def digest_at(path: Path) -> str | None:
    """The SHA-256 of what a file holds; None where there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


@contextlib.contextmanager
def alone(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Keep other runs out of a folder; where one is in it, `wait` for it, or raise UsageError.

    The lock goes with the process, however it ends.
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


@contextlib.contextmanager
def _taking_the_place_of(path: Path, *, lasting: bool, mode: int) -> Iterator[BinaryIO]:
    if mode == PRIVATE:
        private_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=WRITING)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            if lasting:
                os.fsync(stream.fileno())
        temporary.chmod(_mode_of(path, mode))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode_of(path: Path, otherwise: int) -> int:
    """The rights that a file has; `otherwise` where it is not there."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return otherwise
