"""One thing that is wrong in what an author wrote, and a refusal that tells of all of them."""

from __future__ import annotations

import difflib
import re
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from autograder.authoring.declarations import CaseFault, Misnamed
from autograder.authoring.drafts.draws import DrawError
from autograder.vocabulary.errors import FixtureError, KitError

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


def is_misspelt(key: str, entry: Mapping[str, Any], known: Collection[str]) -> bool:
    """Whether an entry that lacks the key has another that is nearly it: that is told of the other one."""
    unknown = [name for name in entry if name not in known]
    return key not in entry and bool(difflib.get_close_matches(key, unknown, n=1))


def line_of(text: str, part: str) -> int:
    """The first line that holds that text; 1 where none does."""
    before, found, _ = text.partition(part)
    return before.count("\n") + 1 if found else 1


def fault_of(error: BaseException, folder: Path, otherwise: tuple[Path, int], right: str) -> Fault:
    """An exception of the author's own code, at the last of its lines in `folder`, else at `otherwise`."""
    path, line = [otherwise, *places_in(error, folder)][-1]
    if isinstance(error, CaseFault):
        return Fault(*otherwise, error.what, error.right)
    if isinstance(error, Misnamed):
        return Fault(*(error.place or (path, line)), error.what, error.right)
    if isinstance(error, DrawError):
        return Fault(path, line, *map(str, error.args))
    if isinstance(error, KitError):
        return Fault(path, line, str(error)[:300].rstrip("."), right)
    said = traceback.TracebackException.from_exception(error).format_exception_only()
    return Fault(path, line, [*said][-1].strip().rstrip("."), right)


def is_raised_in(error: BaseException, folder: Path) -> bool:
    """Whether code of the author's, in `folder`, was running when it was raised."""
    return any(True for _ in places_in(error, folder))


def places_in(error: BaseException, folder: Path) -> Iterator[tuple[Path, int]]:
    """The author's own lines on the way to where it was raised."""
    trace = error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if folder in file.parents:
            yield file, trace.tb_lineno
        trace = trace.tb_next


def attempt(call: Callable[[], R], folder: Path, otherwise: tuple[Path, int], right: str) -> R | Fault:
    """What the author's code returns, or the fault that its exception is."""
    try:
        return call()
    except Exception as error:
        return fault_of(error, folder, otherwise, right)
