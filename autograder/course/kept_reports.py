"""The reports that a run keeps on disk and nowhere else, read back one at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import Report, from_bytes
from autograder.vocabulary.text import visible


@dataclass(frozen=True, slots=True)
class Kept:
    """All that a run remembers of a report that lies on disk.

    digest   SHA-256 of the file's bytes
    reused   whether the file was there before the run
    """

    student: str
    digest: bytes
    reused: bool


class Reports:
    """The reports of a run in the order of its students, read from their files one at a time, as often as wanted."""

    def __init__(self, where: Callable[[str], Path], kept: Sequence[Kept]) -> None:
        """Read nothing yet; `where` says in which file a student's report lies."""
        self._where, self._kept = where, kept

    def __len__(self) -> int:
        """How many there are."""
        return len(self._kept)

    def __iter__(self) -> Iterator[Report]:
        """Each report; raises GraderFault where a file is not the one that the run kept."""
        for kept in self._kept:
            path = self._where(kept.student)
            try:
                data = path.read_bytes()
            except OSError as error:
                raise _changed(path, f"cannot be read any more ({error.strerror})") from error
            report = from_bytes(data) if hashlib.sha256(data).digest() == kept.digest else None
            if report is None:
                raise _changed(path, "is not what the run wrote there")
            yield report


def _changed(path: Path, what: str) -> GraderFault:
    advice = "Nothing of the whole class was written from it. Run the same command again."
    return GraderFault(f"{visible(str(path))} {what}: somebody changed it meanwhile. {advice}")
