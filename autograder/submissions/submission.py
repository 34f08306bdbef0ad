"""What a student handed in, as data: found (a Candidate), then read (a Submission); and its names as text.

folder of submissions ─▶ find ─▶ Candidate ─▶ read ─▶ Submission
"""

from __future__ import annotations

import bisect
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
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
    identity  see `Report.identity`
    notes     what is known of how it was handed in
    fault     one sentence to staff: why it is not read, through no fault of the student's
    submitted   when, where the platform says so; without a zone where the platform names none
    """

    student: str
    path: Path
    shown: str
    beside: Path | None = None
    notes: tuple[str, ...] = ()
    fault: str = ""
    identity: str = ""
    submitted: datetime | None = None


@dataclass(frozen=True)
class UnreadCell:
    """A cell of a notebook that should be Python and could not be read.

    number   of the cell; text cells count
    line     of the cell at which Python stopped reading; 0 where that is not known
    note     why, as the report says it
    """

    number: int
    code: str
    line: int
    note: str


@dataclass(frozen=True)
class Function:
    """A top-level function of a module, by its lines from 1.

    first       where it begins, with what decorates it
    head        where its name stands
    docstring   the first and the last line of its docstring, where there is more to it
    defaults    parameter → its default as it is written in the shortest way, where that is a literal
    """

    first: int
    head: int
    last: int
    docstring: tuple[int, ...] = ()
    defaults: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """What was read of a candidate; `source` is "" exactly where there is a problem or a fault.

    path      `shown` and what was chosen inside: "ada/policy_gradient.py", "eve.zip/policy_gradient.ipynb"
    sha256    of the chosen file's bytes, as far as they were read
    identity  see `Report.identity`
    source    Python text of the module: to be compiled as text, since a coding line in it has done its work
    problem   one sentence to the student: why there is nothing to grade
    fault     one sentence to staff: why the grader could not read it
    notes     what the report says beside the grade
    cells     of a notebook: at which line of `source` each cell begins, and its number
    lines     of a script that was saved from a notebook: at which of its lines each cell begins
    unread    functions that a cell would define which could not be read → why not
    unread_cells   those cells, whatever they would define
    defines     those of the course that the file defines by its looks, before anything was cut out
    functions   those of the handout that `source` defines, each where it is defined last; None where nobody looked
    """

    student: str
    path: str
    sha256: str
    source: str
    problem: str = ""
    fault: str = ""
    notes: tuple[str, ...] = ()
    cells: tuple[tuple[int, int], ...] = ()
    lines: tuple[int, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    unread_cells: tuple[UnreadCell, ...] = ()
    identity: str = ""
    defines: tuple[str, ...] = ()
    functions: Mapping[str, Function] | None = None

    def place(self, line: int) -> str:
        """Where a line of `source` was written: `Line 3 of your file`, `Line 2 of cell 7 (text cells count)`."""
        index = bisect.bisect_right(self.cells, line, key=lambda cell: cell[0]) - 1
        if index < 0:
            return f"Line {line} of your file"
        begin, number = self.cells[index]
        if self.lines:
            return f"Line {self.lines[number - 1] + line - begin} of your file"
        return f"Line {line - begin + 1} of cell {number} (text cells count)"


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
