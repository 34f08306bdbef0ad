"""What a platform says was handed in, and which of several submissions of one student counts.

A student is called `<name>_<id>` as the platform writes both, or as the roster has it. Of several submissions the
latest counts that was on time, and the latest of all where none was; the others are named in the notes. What cannot be
told apart costs those whom it concerns: they are refused by name, and the rest of the class is graded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.submissions import student_zips
from autograder.submissions.names import (
    COPY,
    EXACT,
    SOURCES,
    is_begun,
    kind_of,
    likeness,
    stem_of,
    suffix_of,
    taken_for,
)
from autograder.submissions.submission import CAPS, Candidate, shown_name, student_name
from autograder.vocabulary.folders import open_regular
from autograder.vocabulary.text import visible

RESUBMITTED = re.compile(r"(.*?)(?:-(\d{1,4}))?", re.DOTALL)


@dataclass(frozen=True)
class HandIn:
    """One thing handed in, before it is known who the student is and whether it counts.

    owners      for each member of a group what the platform calls the student: the name to use, then ids, then others
    submitted   when, where the platform says so
    order       which of two is later, where it says no more than that
    fault       why it cannot be read, as the end of a sentence
    refused     why it is not clear whose it is, as a sentence
    notes       what else the student should know of it
    """

    owners: tuple[tuple[str, ...], ...]
    path: Path
    shown: str
    beside: Path | None = None
    submitted: datetime | None = None
    late: bool = False
    order: int = 0
    others: tuple[str, ...] = ()
    fault: str = ""
    refused: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gathered:
    """The class: what to grade, by student.

    absent    who of the roster handed in nothing
    unknown   who is in no roster
    ignored   names of what lay among submissions and is none
    refused   a sentence for each whose work is not graded, since it is not clear whose or which it is
    """

    candidates: tuple[Candidate, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def gather(found: Iterable[HandIn], roster: Roster | None = None, deadline: datetime | None = None) -> Gathered:
    """One candidate per student: mapped by the roster, shared by a group, the latest on time of several."""
    by_student: dict[str, list[tuple[str, HandIn]]] = {}
    unknown: set[str] = set()
    refused: list[str] = []
    for one in found:
        marked = replace(one, late=one.late or _is_after(one.submitted, deadline))
        refused += [one.refused] if one.refused else []
        for owner in one.owners if not one.refused else ():
            account, students = _students(owner, roster)
            unknown |= set(students) if roster and not account else set()
            for student in students:
                by_student.setdefault(student, []).append((account or owner[0], marked))
    chosen = [_chosen(student, hand_ins) for student, hand_ins in sorted(by_student.items())]
    refused += [one for one in chosen if isinstance(one, str)]
    absent = [person.student for person in roster.people if person.student not in by_student] if roster else []
    candidates = tuple(one for one in chosen if not isinstance(one, str))
    return Gathered(candidates, tuple(absent), tuple(sorted(unknown)), refused=tuple(dict.fromkeys(refused)))


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


def _chosen(student: str, found: Sequence[tuple[str, HandIn]]) -> Candidate | str:
    """The one of several that counts, or a sentence on why that cannot be told."""
    accounts = sorted({account for account, _ in found})
    if len(accounts) > 1:
        both = f"{visible(accounts[0], 100)} and {visible(accounts[1], 100)}"
        return f"{both} would both be {visible(student, 100)}: say in the roster who is who."
    unique = list({str(one.path.absolute()): one for _, one in found}.values())
    by_time = _all(one.submitted for one in unique)
    if len(unique) > 1 and not (by_time or _all(one.order for one in unique)):
        both = f"{quoted_path(unique[0].path)} and {quoted_path(unique[1].path)}"
        return f"{visible(student, 300)} handed in twice: {both}. Keep one of them."
    ranked = sorted(unique, key=lambda one: (not one.late, _seconds(one.submitted) if by_time else one.order))
    best, rest = ranked[-1], ranked[:-1]
    fault = f"{best.shown} {best.fault}: unpack it by hand, and grade the folder." if best.fault else ""
    return Candidate(student, best.path, best.shown, best.beside, (*best.notes, *_notes(best, rest)), fault)


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


def claimed_by_two(names: Iterable[str], identity: str, platform: str) -> str:
    """Why nothing of an id is graded that two accounts claim."""
    both = " and ".join(visible(name, 60) for name in sorted(set(names))[:2])
    return f"{both} both claim the id {visible(identity, 40)} of {platform}: say in a roster who is who, or rename one."


@dataclass(frozen=True)
class Wanted:
    """What is to be handed in, and by whom.

    functions   that are graded: a file that defines one is the work, whatever it is called
    """

    module: str
    functions: Sequence[str] = ()
    roster: Roster | None = None


@dataclass(frozen=True)
class _Rank:
    """How likely a loose file is the work: the contract's name first, then what it holds, its name, its age."""

    contract: bool
    holds: bool
    alike: int
    position: int
    again: int

    @property
    def order(self) -> tuple[int, ...]:
        """The greater, the likelier."""
        return self.contract, self.holds, self.alike, self.position, self.again

    @property
    def likely(self) -> bool:
        """Whether anything but its suffix says that it is the work."""
        return self.contract or self.holds or self.alike >= COPY


def module_and_notebook(files: Sequence[tuple[str, Path]], wanted: Wanted) -> tuple[Path, Path | None]:
    """Of one student's loose files, the oldest first: the module and the notebook, else the zip, else anything."""
    best: dict[str, tuple[_Rank, Path]] = {}
    for position, (name, path) in enumerate(files):
        rank, suffix = _rank(name, path, position, wanted), suffix_of(name)
        if suffix not in best or rank.order > best[suffix][0].order:
            best[suffix] = (rank, path)
    known = [suffix for suffix in (".py", ".ipynb", ".zip") if suffix in best]
    likely = [suffix for suffix in known if best[suffix][0].likely] or known
    if likely[:2] == [".py", ".ipynb"]:
        return best[".py"][1], best[".ipynb"][1]
    return best[likely[0] if likely else max(best, key=lambda suffix: best[suffix][0].order)][1], None


def _rank(name: str, path: Path, position: int, wanted: Wanted) -> _Rank:
    found = RESUBMITTED.fullmatch(stem_of(name))
    stem, again = (found[1], int(found[2] or 0)) if found else (name, 0)
    contract = stem == wanted.module  # Canvas and others number what is handed in again
    holds = _holds(path, wanted)
    return _Rank(
        contract and (holds or not wanted.functions),
        holds,
        EXACT if contract else likeness(name, wanted.module),
        position,
        again,
    )


def _holds(path: Path, wanted: Wanted) -> bool:
    """Whether a file holds some of what is graded, and not its stubs alone; or is a zip of the work."""
    kind = kind_of(path.name)
    if kind == ".zip":
        return student_zips.holds_work(path, wanted.module)
    if kind not in CAPS or not wanted.functions:
        return False
    try:
        with open_regular(path) as stream:
            return is_begun(stream.read(CAPS[".py"]), wanted.functions)
    except OSError:
        return False


def taken(name: str, path: Path, wanted: Wanted) -> tuple[str, ...]:
    """The note on a file that is graded under a name of the student's own choice."""
    stem = RESUBMITTED.fullmatch(stem_of(name))
    is_zip = kind_of(name) not in SOURCES
    as_meant = stem is not None and stem[1] == wanted.module and Path(name).suffix.lower() in SOURCES
    note = "" if is_zip or as_meant else taken_for(shown_name(name), name, wanted.module)
    return (note,) if note else ()


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder, and no link to one."""
    return entry.is_dir(follow_symlinks=False)


def quoted_path(path: Path) -> str:
    """A path as a sentence shows it."""
    return visible(shown_name(str(path)), 300)
