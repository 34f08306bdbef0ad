"""One file that a student handed in: its bytes, up to a cap and never through a link, or the problem with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from autograder.submissions.names import kind_of
from autograder.submissions.submission import CAPS, MIB, quoted
from autograder.vocabulary.files import open_regular


@dataclass(frozen=True)
class HandedFile:
    """One file that may be graded: its bytes, and the problem with it if there is one.

    fault   why staff must say what is meant
    note    what the student should know of its name
    """

    shown: str
    data: bytes = b""
    problem: str = ""
    fault: str = ""
    note: str = ""


def from_disk(path: Path, shown: str) -> HandedFile:
    """The bytes of a regular file; anything else is not even opened."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return refused(shown, "is a symbolic link; hand in the file itself.")
    if not stat.S_ISREG(mode):
        return refused(shown, "is not a regular file; hand in the file itself.")
    with open_regular(path) as stream:
        return capped(shown, stream, os.fstat(stream.fileno()).st_size)


def capped(shown: str, stream: IO[bytes], announced: int) -> HandedFile:
    """The `announced` bytes that `stream` holds, or the problem that they are more than the cap."""
    cap = CAPS.get(kind_of(shown), CAPS[".py"])
    data = stream.read(min(announced, cap) + 1)
    if len(data) > cap:
        return refused(shown, f"is larger than {cap // MIB} MiB.", data)
    return HandedFile(shown, data)


def refused(shown: str, problem: str, data: bytes = b"") -> HandedFile:
    """A file that is not graded; `problem` ends the sentence that its name begins."""
    return HandedFile(shown, data, f"{quoted(shown)} {problem}")


def packed(shown: str, archive: str = "") -> HandedFile:
    """The fault that what was handed in is packed as nothing that is unpacked here: that is nobody's zero."""
    what = f"holds {quoted(archive)}, which is" if archive else "is"
    advice = "unpack it by hand, and grade the folder."
    return HandedFile(shown, fault=f"{quoted(shown)} {what} not unpacked here: {advice}")


def unclear(shown: str, paths: Sequence[str]) -> HandedFile:
    """The fault that two files could be meant: that is nobody's zero."""
    first, second = map(quoted, paths[:2])
    return HandedFile(shown, fault=f"{quoted(shown)} holds both {first} and {second}: keep the one that counts.")


def nothing_in(shown: str, module: str, others: Sequence[str]) -> HandedFile:
    """The problem that names what was found where neither file was."""
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    found = ", ".join(map(quoted, others[:3])) + more if others else "nothing"
    return refused(shown, "holds no {} or {}: ".format(*names_of(module)) + f"what was found is {found}.")


def names_of(module: str) -> tuple[str, str]:
    """What a file may be called to be graded."""
    return f"{module}.py", f"{module}.ipynb"
