"""What a student handed in, as data: found (a Candidate), then read (a Submission); and its names as text.

folder of submissions ─▶ find ─▶ Candidate ─▶ read ─▶ Submission
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from autograder.vocabulary.text import visible

MIB = 2**20
CAPS = {".py": MIB, ".ipynb": 64 * MIB, ".zip": 64 * MIB}  # bytes, on disk or unpacked from a zip


@dataclass(frozen=True)
class Candidate:
    """Something that a student handed in, found but not yet read.

    student   name shown to staff: the folder's or the file's stem; never empty, always encodable
    path      folder, .py, .ipynb or .zip
    shown     the path in reports: relative to the folder that was given, forward slashes, nothing invisible
    beside    the notebook that was handed in with a module, where a platform keeps both apart from other students'
    notes     what is known of how it was handed in
    """

    student: str
    path: Path
    shown: str
    beside: Path | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Submission:
    """What was read of a candidate; `source` is "" exactly where there is a problem or a fault.

    path      `shown` and what was chosen inside: "ada/policy_gradient.py", "eve.zip/policy_gradient.ipynb"
    sha256    of the chosen file's bytes, as far as they were read
    source    Python text of the module: to be compiled as text, since a coding line in it has done its work
    problem   one sentence to the student: why there is nothing to grade
    fault     one sentence to staff: why the grader could not read it
    notes     what the report says beside the grade
    """

    student: str
    path: str
    sha256: str
    source: str
    problem: str = ""
    fault: str = ""
    notes: tuple[str, ...] = ()


def shown_name(name: str) -> str:
    """The name of a file or folder as reports show it."""
    return visible(decodable(name)) or "."


def student_name(name: str) -> str:
    """A name that a file system or a platform gives, as the name of a student: never empty, always encodable."""
    return unicodedata.normalize("NFC", decodable(name)) or "submission"


def decodable(name: str) -> str:
    """`name` with each byte that is not UTF-8 written as an escape: `\\xff`."""
    escaped = re.sub("[\udc80-\udcff]", lambda byte: f"\\x{ord(byte[0]) - 0xDC00:02x}", name)
    return escaped.encode("utf-8", "backslashreplace").decode()


def quoted(name: str) -> str:
    """`name` as a sentence shows it: one line, not too long."""
    return visible(decodable(name), 300)
