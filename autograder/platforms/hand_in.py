"""What a platform says was handed in, and which of several submissions of one student counts.

A student is called `<name>_<id>` as the platform writes both, or as the roster has it. Of several submissions the
latest counts that was on time, and the latest of all where none was; the others are named in the notes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.gradebook.roster import Roster
from autograder.submissions.submission import Candidate, shown_name, student_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

RESUBMITTED = re.compile(r"(.*?)(?:-(\d{1,4}))?", re.DOTALL)
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*(\S{1,64})?")


@dataclass(frozen=True)
class HandIn:
    """One thing handed in, before it is known who the student is and whether it counts.

    owners      for each member of a group what the platform calls the student: the name to use, then ids, then others
    submitted   when, where the platform says so
    order       which of two is later, where it says no more than that
    """

    owners: tuple[tuple[str, ...], ...]
    path: Path
    shown: str
    beside: Path | None = None
    submitted: datetime | None = None
    late: bool = False
    order: int = 0
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gathered:
    """The class: what to grade, by student.

    absent    who of the roster handed in nothing
    unknown   who is in no roster
    ignored   names of what lay among submissions and is none
    """

    candidates: tuple[Candidate, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def gather(found: Iterable[HandIn], roster: Roster | None = None, deadline: datetime | None = None) -> Gathered:
    """One candidate per student: mapped by the roster, shared by a group, the latest on time of several."""
    by_student: dict[str, list[tuple[str, HandIn]]] = {}
    unknown: set[str] = set()
    for one in found:
        marked = replace(one, late=one.late or _is_after(one.submitted, deadline))
        for owner in one.owners:
            account, students = _students(owner, roster)
            unknown |= set(students) if roster and not account else set()
            for student in students:
                by_student.setdefault(student, []).append((account or owner[0], marked))
    candidates = tuple(_chosen(student, hand_ins) for student, hand_ins in sorted(by_student.items()))
    absent = [person.student for person in roster.people if person.student not in by_student] if roster else []
    return Gathered(candidates, tuple(absent), tuple(sorted(unknown)))


def _students(owner: tuple[str, ...], roster: Roster | None) -> tuple[str, list[str]]:
    """The account or group that a submission comes from, "" where the roster lacks it; and whose grade it becomes."""
    itself = student_name(owner[0])
    if roster is None:
        return owner[0], [itself]
    person = roster.person(*owner)
    group = person.group if person else next((one.group for one in roster.people if one.group in owner), "")
    if group:
        return f"group {group}", [one.student for one in roster.people if one.group == group]
    return (owner[0], [person.student]) if person else ("", [itself])


def _chosen(student: str, found: Sequence[tuple[str, HandIn]]) -> Candidate:
    accounts = sorted({account for account, _ in found})
    if len(accounts) > 1:
        both = f"{visible(accounts[0], 100)} and {visible(accounts[1], 100)}"
        raise UsageError(f"{both} would both be {visible(student, 100)}: say in the roster who is who.")
    unique = list({str(one.path.absolute()): one for _, one in found}.values())
    by_time = _all(one.submitted for one in unique)
    if len(unique) > 1 and not (by_time or _all(one.order for one in unique)):
        both = f"{quoted_path(unique[0].path)} and {quoted_path(unique[1].path)}"
        raise UsageError(f"{visible(student, 300)} handed in twice: {both}. Keep one of them.")
    ranked = sorted(unique, key=lambda one: (not one.late, _seconds(one.submitted) if by_time else one.order))
    best, rest = ranked[-1], ranked[:-1]
    return Candidate(student, best.path, best.shown, best.beside, tuple(_notes(best, rest)))


def _all(values: Iterable[object]) -> bool:
    """Whether every value says something, and no two the same."""
    listed = list(values)
    return all(listed) and len(set(listed)) == len(listed)


def _notes(best: HandIn, rest: Sequence[HandIn]) -> Iterator[str]:
    others = [*(f"{one.shown}{' (late)' if one.late else ''}" for one in rest), *best.others]
    if others:
        why = "the latest of several, all of them late" if best.late else "the latest that was on time"
        yield f"{best.shown} counts, {why}; not graded: {', '.join(others[:5])}{' …' if len(others) > 5 else ''}"
    if best.late:
        when = f", at {best.submitted.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if best.submitted else ""
        yield f"handed in late{when}"


def _is_after(submitted: datetime | None, deadline: datetime | None) -> bool:
    return submitted is not None and deadline is not None and submitted > deadline


def _seconds(moment: datetime | None) -> float:
    return moment.timestamp() if moment else 0.0


def parse_time(text: str) -> datetime | None:
    """A moment as Gradescope and nbgrader write it; without a zone it is UTC. None where it is none."""
    found = TIME.search(text[:200])
    if found is None:
        return None
    day, clock, zone = found.groups()
    try:
        if zone in (None, "UTC", "Z"):
            return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
        if re.fullmatch(r"[+-]\d\d:?\d\d", zone):
            return datetime.fromisoformat(f"{day}T{clock}{zone}")
        return datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=ZoneInfo(zone))
    except (ValueError, OSError, KeyError):  # zoneinfo raises KeyError, or what opening a strange name raises
        return None


def module_and_notebook(files: Sequence[tuple[str, Path]], module: str) -> tuple[Path, Path | None]:
    """Of one student's loose files, the oldest first: the module and the notebook, else the zip, else anything."""
    best: dict[str, tuple[tuple[bool, int, int], Path]] = {}
    for position, (name, path) in enumerate(files):
        found = RESUBMITTED.fullmatch(Path(name).stem)
        stem, again = (found[1], int(found[2] or 0)) if found else (name, 0)
        rank = (stem == module, position, again)
        suffix = path.suffix.lower()
        if suffix not in best or rank > best[suffix][0]:
            best[suffix] = (rank, path)
    if ".py" in best and ".ipynb" in best:
        return best[".py"][1], best[".ipynb"][1]
    suffix = next((suffix for suffix in (".py", ".ipynb", ".zip") if suffix in best), next(iter(best)))
    return best[suffix][1], None


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, and no link to one."""
    return entry.is_dir(follow_symlinks=False)


def quoted_path(path: Path) -> str:
    """A path as a sentence shows it."""
    return visible(shown_name(str(path)), 300)
