"""What is wrong in what an author wrote, as `file:line: what is wrong; what would be right`.

Text files are read by `proofreading`, which lists all that is wrong in them. Python is run: what it raises is told at
the author's line that Python's own traceback names, or at the line that writes the name of the case it is about.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.vocabulary.errors import FixtureError, KitError
from autograder.vocabulary.times import OutOfTimeError

HEAD = re.compile(r'^[ \t]*\[+[ \t]*"?(.*?)"?[ \t]*\]', re.MULTILINE)  # of a table in TOML
TODO = "# TODO: "
NAME_FIRST = re.compile(r"([A-Za-z0-9.-]+)\b")  # how a refusal of a case or of an item begins


@dataclass(frozen=True, order=True)
class Fault:
    """One thing that is wrong; lines count from 1, and `right` may be empty."""

    path: Path
    line: int
    what: str
    right: str = ""

    @property
    def text(self) -> str:
        """The line that an author reads, with the folder that tells fixtures from solution."""
        what, right = " ".join(self.what.split()), " ".join(self.right.split())
        return f"{'/'.join(self.path.parts[-3:])}:{self.line}: {what}" + (f"; {right}" if right else "")


class Faults(FixtureError):  # noqa: N818 (it tells of several)
    """All that is wrong, a line for each fault."""

    @classmethod
    def of(cls, faults: Iterable[Fault]) -> Faults:
        """The refusal that tells of these, in the order of files and lines."""
        return cls("\n".join(fault.text for fault in sorted(set(faults))))

    @property
    def lines(self) -> list[str]:
        """What the command line prints, a line each."""
        return str(self).splitlines()


class Misnamed(FixtureError):  # noqa: N818 (what a build finds)
    """What an author declared and there is not; `place` is a file and a line, if they are not where it was noticed."""

    def __init__(self, what: str, right: str, *place: Any) -> None:
        """Keep what is wrong and what would be right."""
        super().__init__(what, right, *place)
        self.what, self.right = what, right
        self.place = (Path(place[0]), int(place[1])) if place else None

    def __str__(self) -> str:
        """Both, as one sentence."""
        return f"{self.what}: {self.right}."


class CaseFault(Misnamed):
    """What a case says of a call, which shows while its oracle runs: told at the line of the case."""


class Refusal(FixtureError):  # noqa: N818 (what a build does)
    """A draw that could not grade, where other numbers might: a sentence, and the cases to draw anew."""

    def __str__(self) -> str:
        """The sentence."""
        return str(self.args[0])

    @property
    def cases(self) -> tuple[str, ...]:
        """The cases."""
        return self.args[1:]


def todos(folder: Path) -> list[Fault]:
    """List what `# TODO: …` leaves to the author of the assignment in that folder."""
    return [
        Fault(path, number, line.partition(TODO)[2])
        for path in (*sorted(folder.glob("*.py")), *sorted(folder.glob("*.toml")))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if TODO in line
    ]


def likely(name: str, known: Iterable[str]) -> str:
    """What would be right where `name` is unknown: the closest of the known ones, or all."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"{close[0]!r} is there"
    return f"there are {', '.join(names[:8])}{' …' if len(names) > 8 else ''}" if names else "there is none"


def explained(error: BaseException, folder: Path) -> BaseException:
    """What to raise where making the fixtures in `folder` failed: the error at its file and line, if there is one."""
    folder = folder.resolve()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if folder in Path(frame.filename).parents]
    place = (Path(frames[-1].filename), frames[-1].lineno or 1) if frames else None
    what, right = str(error).rstrip("."), ""
    if isinstance(error, SyntaxError) and folder in Path(error.filename or "").parents:
        place, what = (Path(str(error.filename)), error.lineno or 1), f"not Python: {error.msg}"
    elif isinstance(error, AttributeError) and isinstance(error.obj, ModuleType) and not frames:
        place = (Path(error.obj.__file__ or folder), 1)  # such as a catalogue without MISTAKES
    elif isinstance(error, Misnamed):
        place, what, right = error.place or place, error.what, error.right
    elif not isinstance(error, KitError | OutOfTimeError):
        what = "".join(traceback.format_exception_only(error)).strip().rstrip(".")
    if isinstance(error, KitError) and (isinstance(error, CaseFault) or not place):
        case = NAME_FIRST.match(what)
        place = place_of(folder, case[1]) if case else place
    return Faults.of([Fault(*place, what, right)]) if place else error


def place_of(folder: Path, case: str) -> tuple[Path, int] | None:
    """File and line where an author's Python writes the name of that case, else where its item stands."""
    quoted = re.compile(rf"""(["']){re.escape(case)}\1""")
    for path in sorted((*folder.glob("*.py"), *folder.glob("*/*.py"))):
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.stem != "counterexamples" and (found := quoted.search(text)):  # those store no case
            return path, 1 + text.count("\n", 0, found.start())
    text = (path := folder / "items.toml").read_text(encoding="utf-8")
    items = [item["id"] for item in tomllib.loads(text)["item"] if case.startswith(item["id"])]
    return (path, line_of(text, f'"{max(items, key=len)}"')) if items else None


def line_of(text: str, part: str) -> int:
    """The first line that holds that text; 1 where none does."""
    return 1 + text.count("\n", 0, max(text.find(part), 0))


def line_in(text: str, table: str = "", place: int = 0, key: str = "") -> int:
    """The line of a key in the `place`-th table of that name in a TOML file, whose head counts as the first table "".

    Where the key is not there it is the table's own, and 1 where that is not there.
    """
    tables = [("", 0), *((head[1], head.start()) for head in HEAD.finditer(text))]
    ends = [start for _, start in tables[1:]] + [len(text)]
    own = [(start, end) for (name, start), end in zip(tables, ends, strict=True) if name == table][place:]
    start, end = own[0] if own else (0, 0)
    lines, spellings = text[start:end].split("\n"), (key, f"'{key}'", json.dumps(key, ensure_ascii=False))
    rests = ((at, line.lstrip(), one) for at, line in enumerate(lines) for one in spellings if key)
    found = (at for at, line, one in rests if line.startswith(one) and line[len(one) :].lstrip().startswith("="))
    return 1 + text.count("\n", 0, start) + next(found, 0)


def read_toml(path: Path, faults: list[Fault]) -> tuple[str, dict[str, Any] | None]:
    """The text of a file, and what it says; None where it is no TOML, which is a fault."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (OSError, ValueError) as error:  # no UTF-8, no TOML
        place = re.search(r"at line (\d+)", str(error))
        faults.append(Fault(path, int(place[1]) if place else 1, f"cannot be read: {error}"))
        return "", None
