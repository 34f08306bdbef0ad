"""Options that several verbs have in common, and the course that a command is about."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from autograder import platforms
from autograder.vocabulary.errors import UsageError

COURSE = "--course"
CORES = max(1, os.cpu_count() or 1)
HOME = os.environ.get("HOME") or os.environ.get("USERPROFILE")  # there may be none, as in some containers
CACHES = os.environ.get("XDG_CACHE_HOME") or (f"{HOME}/.cache" if HOME else "")
CACHE = Path(CACHES) / "autograder" if CACHES else None  # of `selfcheck` and `regenerate`


def path(flag: str, text: str, **more: Any) -> Any:
    """Declare an option that is a path; typer, which says less than the kit does, looks at none."""
    return typer.Option(flag, readable=False, help=text, **more)


def argument(metavar: str | None, text: str) -> Any:
    """Declare an argument that is a path."""
    return typer.Argument(metavar=metavar, readable=False, help=text)


def group(text: str) -> typer.Typer:
    """Declare a verb that has verbs of its own."""
    return typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None, help=text)


# What is read before the verb begins. Imports stand inside: the help of a verb needs none of them.


def _roster(path: str) -> Any:
    from autograder.gradebook.roster import read_roster

    return read_roster(Path(path))


def _moment(deadline: datetime | None) -> datetime | None:
    """Read the deadline, of this machine's zone where it names none; UsageError where no hand-in can be that late."""
    from autograder.vocabulary.times import within_bounds

    try:
        return within_bounds(deadline).astimezone() if deadline else None
    except ValueError as error:
        raise UsageError(f"--deadline {deadline} {error}.") from None


WHICH = "Which assignment; without it what the files say, all, or the only one."
Assignment = Annotated[str | None, typer.Option("--assignment", help=WHICH)]
HERE = "The course's folder; else found upwards from here. May stand anywhere."
Course = Annotated[Path | None, path(COURSE, HERE)]
Fixtures = Annotated[Path | None, path("--fixtures", "A folder with another set of fixtures.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but what is wrong: for scripts.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document instead of tables: for scripts.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Take over no result of an earlier run.")]
ReplaceFile = Annotated[bool, typer.Option("--replace", help="Replace what is there, whoever wrote it.")]
Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Submissions at a time, 1 or more.")]

# Where submissions lie, and which of them count

WHO = "A CSV file: which id or address is which student."
Roster = Annotated[Any, typer.Option("--roster", metavar="FILE", parser=_roster, help=WHO)]
UNTIL = "Of several submissions, the latest until then counts."
Deadline = Annotated[datetime | None, typer.Option("--deadline", callback=_moment, help=UNTIL)]
DOWNLOADED = "PATH is a zip of the class that you downloaded from your platform."
ClassZip = Annotated[bool, typer.Option("--class-zip", help=DOWNLOADED)]
LAID_OUT = f"How submissions are laid out: {', '.join(platforms.LAYOUTS)}."
Layout = Annotated[platforms.Layout | None, typer.Option("--layout", metavar="NAME", help=LAID_OUT)]

# A course's rules for final grades

Policy = Annotated[Path | None, path("--policy", "A TOML file: late days, dropped items, excuses.")]
SEVERAL = "A CSV: student,item,points,comment. May be given several times."
Overrides = Annotated[list[Path] | None, path("--overrides", SEVERAL)]
Timestamps = Annotated[Path | None, path("--timestamps", "What your platform says of times, or a CSV.")]
SHOWN = "Write also where a grade or decision that is there changes; all are shown."
Replace = Annotated[bool, typer.Option("--replace", help=SHOWN)]


# The course. What finds it imports numpy, and the help of a verb needs neither.

_named: ContextVar[Path | None] = ContextVar("the course that --course names", default=None)


def name_course(folder: Path | None) -> None:
    """Let `course` answer for this folder from now on; UsageError where it lies in no course."""
    _named.set(None)
    if folder is None:
        return
    from autograder.grading.assignment import find_course

    if not folder.is_dir():
        raise UsageError(f"There is no folder {folder}: give --course the folder of a course.")
    _named.set(find_course(folder))


def course() -> Path:
    """Find the course that --course names, or that the current folder lies in; UsageError where there is none."""
    from autograder.grading.assignment import find_course

    return _named.get() or find_course(Path.cwd())


def root_for(path: Path) -> Path:
    """Find where a student's own check looks for its cases: the course that is named, else the handout round `path`."""
    from autograder.grading.assignment import nearest_root

    return _named.get() or nearest_root(path)


def course_first(arguments: Sequence[str]) -> list[str]:
    """Move --course and its value before the verb, so that it may stand anywhere before a `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    moved: list[str] = []
    rest: list[str] = []
    waiting = iter(arguments[:end])
    for word in waiting:
        value = next(waiting, None) if word == COURSE else None
        is_course = value is not None or word.startswith(f"{COURSE}=")
        (moved if is_course else rest).extend([word] if value is None else [word, value])
    return [*moved, *rest, *arguments[end:]]
