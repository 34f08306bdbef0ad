"""A class in one zip, as platforms offer it for download → a temporary folder that holds the same.

What the platform packed is not trusted more than what students named: nothing lies outside the folder, no link is made
that leads anywhere, and only what can be graded is unpacked; the rest leaves its name and no bytes. What cannot be
unpacked costs the one entry at the top that it lies in, which is one student's, and no other.
"""

from __future__ import annotations

import contextlib
import itertools
import stat
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.submissions.names import LONGEST_NAME, is_too_long, kind_of, parts_of, suffix_of
from autograder.submissions.submission import CAPS, shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import LEFT_BEHIND, names_in_zip

METADATA = "submission_metadata.yml"  # Gradescope's own, at the top
MAX_METADATA = 32 * 2**20
SETTINGS = "user_assignment_settings.json"  # Submitty's own, in each student's folder
MAX_SETTINGS = 2**20
SUBMISSIONS = "submissions"  # Submitty's too, and its neighbours
VERSIONED = frozenset({SUBMISSIONS, "checkout", "results", "results_public"})  # with a folder for each student
DESCRIBING = {"timestamp.txt": 100, SETTINGS: MAX_SETTINGS}  # what is no work and says whose and when it was
MAX_ENTRIES = 500_000
MAX_DIRECTORY = 2**27  # bytes
MAX_TOTAL = 4 * 2**30
MAX_OF_ONE = 256 * 2**20  # bytes of one student's files, unpacked
MAX_ENTRIES_OF_ONE = 10_000
MAX_DEPTH = 12
TOO_LONG = f"a name has more than {LONGEST_NAME} bytes"


@dataclass
class Unpacked:
    """What has become of a zip.

    lost      name at the top → the end of a sentence on what of it could not be unpacked
    skipped   name at the top → likewise, on what was left where it was: it matters where nothing else is to grade
    refused   a sentence for each entry at the top that no file system would take
    """

    folder: Path
    lost: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


def members(path: Path) -> list[zipfile.ZipInfo]:
    """The files in the zip at `path`. Raises UsageError where it is damaged, or has too many to be looked at."""
    try:
        with path.open("rb") as stream:  # counted before zipfile makes objects of them
            count = sum(1 for _ in itertools.islice(names_in_zip(stream, MAX_DIRECTORY), MAX_ENTRIES + 1))
        if count > MAX_ENTRIES:
            raise UsageError(f"{path} holds more than {MAX_ENTRIES} files: unpack it, and give the folder.")
        with zipfile.ZipFile(path) as opened:
            return [member for member in opened.infolist() if not member.is_dir()]
    except UsageError:
        raise
    except (OSError, MemoryError) as error:
        raise UsageError(f"{path} cannot be read ({_reason(error)}): check its permissions.") from None
    except Exception:  # zipfile raises a dozen types on damaged input
        raise UsageError(f"{path} is damaged, or no zip file: download it again.") from None


def unpack(path: Path, target: Path) -> Unpacked:
    """Unpack the zip into `target`.

    Raises UsageError where an entry would lie outside, is damaged, or where all is more than MAX_TOTAL.
    """
    unpacked, room = Unpacked(target), MAX_TOTAL
    found = members(path)
    everything = list(zip(found, parts_of(found), strict=True))
    below = depth_of_students([parts for _, parts in everything])
    used: dict[str, tuple[int, int]] = {}
    with zipfile.ZipFile(path) as opened:
        for member, parts in everything:
            if not parts or not LEFT_BEHIND.isdisjoint(parts):
                continue
            _refuse_outside(parts, path)
            if any(map(is_too_long, parts[: below + 1])):
                unpacked.refused.add(f"{_shown(parts)} is not graded, since {TOO_LONG}: unpack it by hand.")
                continue
            owner = parts[min(below, len(parts) - 1)]
            count, size = used.get(owner, (0, 0))
            used[owner] = count + 1, size
            if reason := _too_much(parts, count, size):
                _note(unpacked.skipped, unpacked.folder, parts, below, reason)
                continue
            try:
                most = min(room, _cap(parts, below))
                written = _write(opened, member, target.joinpath(*parts), most)
            except (OSError, MemoryError) as error:
                _note(unpacked.lost, target, parts, below, f"cannot be unpacked ({_reason(error)}): {_shown(parts)}")
                continue
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, ValueError, zlib.error) as error:
                raise UsageError(f"{path} is damaged at {_shown(parts)} ({error}): download it again.") from None
            used[owner], room = (count + 1, size + written), room - written
            if room <= 0:
                raise UsageError(f"{path} holds more than {MAX_TOTAL // 2**30} GiB: unpack it, and give the folder.")
    return unpacked


def _reason(error: OSError | MemoryError) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else "no memory left"


def depth_of_students(paths: Sequence[Sequence[str]]) -> int:
    """How deep the names of students' entries stand: 1 where all lies in one folder, or in Submitty's; else 0."""
    tops = {parts[0] for parts in paths if parts and LEFT_BEHIND.isdisjoint(parts)}
    one = len(tops) == 1 or (SUBMISSIONS in tops and tops <= VERSIONED)
    return 1 if one and all(len(parts) > 1 for parts in paths if parts and parts[0] in tops) else 0


def _too_much(parts: Sequence[str], count: int, size: int) -> str:
    """Why an entry is not unpacked, as the end of a sentence; "" where nothing stands against it."""
    if count >= MAX_ENTRIES_OF_ONE:
        return f"holds more than {MAX_ENTRIES_OF_ONE} files"
    if size >= MAX_OF_ONE:
        return f"holds more than {MAX_OF_ONE // 2**20} MiB"
    if any(map(is_too_long, parts)):
        return f"holds {_shown(parts)}, of which {TOO_LONG}"
    if len(parts) > MAX_DEPTH:
        return f"holds a file more than {MAX_DEPTH} folders deep: {_shown(parts)}"
    return ""


def _note(noted: dict[str, str], folder: Path, parts: Sequence[str], below: int, reason: str) -> None:
    """Note what of an entry at the top is not unpacked, where it could have been graded; its folder is there anyway."""
    if suffix_of(parts[-1]) in CAPS:
        noted.setdefault(parts[min(below, len(parts) - 1)], reason)
    if len(parts) > below + 1:
        with contextlib.suppress(OSError):  # a file of that name lies there
            folder.joinpath(*parts[: below + 1]).mkdir(parents=True, exist_ok=True)


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


def _cap(parts: Sequence[str], below: int) -> int:
    """How many bytes of an entry are unpacked; of what only might be the work, none far down, where data lies."""
    if parts[-1] == METADATA and len(parts) == below + 1:
        return MAX_METADATA
    kind = kind_of(parts[-1]) if len(parts) <= below + 2 else suffix_of(parts[-1])
    return DESCRIBING.get(parts[-1], CAPS.get(kind, 0))


def _refuse_outside(parts: Sequence[str], path: Path) -> None:
    if parts[0].startswith("/") or ".." in parts or parts[0][1:2] == ":" or any("\0" in part for part in parts):
        raise UsageError(f"{path} holds {_shown(parts)}, which would lie outside it: download it again.")


def _shown(parts: Sequence[str]) -> str:
    return shown_name("/".join(parts))[:300]
