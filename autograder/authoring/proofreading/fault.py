"""One thing that is wrong in what an author wrote, and a refusal that tells of all of them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from autograder.vocabulary.errors import FixtureError

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CASE = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")
R = TypeVar("R")


@dataclass(frozen=True, order=True)
class Fault:
    """`file:line: what is wrong; what would be right`. Lines count from 1."""

    path: Path
    line: int
    what: str
    right: str

    @property
    def text(self) -> str:
        """The line that an author reads, with the folder that tells fixtures from solution."""
        path = "/".join(self.path.parts[-3:])
        return f"{path}:{self.line}: {' '.join(self.what.split())}; {' '.join(self.right.split())}"


class Faults(FixtureError):  # noqa: N818 (it tells of several)
    """All that is wrong: `lines`, one for each fault."""

    @property
    def lines(self) -> Sequence[str]:
        """One line for each fault."""
        return [str(line) for line in self.args[0]]

    def __str__(self) -> str:
        """The lines."""
        return "\n".join(self.lines)

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> Faults:
        """The refusal that tells of these, in the order of files and lines."""
        return cls([fault.text for fault in sorted(set(faults))])


def likely(name: str, known: Iterable[str]) -> str:
    """What would be right where `name` is unknown: the closest of the known ones, or all."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"{close[0]!r} is there"
    return f"there are {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "there is none"


def line_of(text: str, part: str) -> int:
    """The first line that holds that text; 1 where none does."""
    before, found, _ = text.partition(part)
    return before.count("\n") + 1 if found else 1


def fault_of(error: BaseException, folder: Path, otherwise: tuple[Path, int], right: str) -> Fault:
    """An exception of the author's own code, at the last of its lines in `folder`, else at `otherwise`."""
    path, line = otherwise
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if folder in file.parents:
            path, line = file, trace.tb_lineno
        trace = trace.tb_next
    return Fault(path, line, f"{type(error).__name__}: {str(error)[:300] or 'without a message'}", right)


def attempt(call: Callable[[], R], folder: Path, otherwise: tuple[Path, int], right: str) -> R | Fault:
    """What the author's code returns, or the fault that its exception is."""
    try:
        return call()
    except Exception as error:
        return fault_of(error, folder, otherwise, right)
