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
from typing import Any, NamedTuple

from autograder.gradebook.roster import Roster, key
from autograder.submissions.handed_in import zip_holds_work
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
from autograder.vocabulary.files import beginning
from autograder.vocabulary.text import visible

RESUBMITTED = re.compile(r"(.*?)(?:-(\d{1,4}))?", re.DOTALL)


class Owner(NamedTuple):
    """What a platform calls a student.

    student     the name to use
    identity    the platform's id, which no student chooses, as `Report.identity` has it; "" where a layout says none
    others      by which a roster may know the student
    """

    student: str
    identity: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class HandIn:
    """One thing handed in, before it is known who the student is and whether it counts.

    owners      the student, or each member of a group
    submitted   when, where the platform says so; without a zone where the platform names none
    order       which of two is later, where it says no more than that
    fault       why it cannot be read, as the end of a sentence
    refused     why it is not clear whose it is, as a sentence
    notes       what else the student should know of it
    by_name     whether only a display name, which two may share, says whose it is: then no other takes its place
    """

    owners: tuple[Owner, ...]
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
    by_name: bool = False


@dataclass(frozen=True)
class Gathered:
    """The class: what to grade, by student.

    absent    who of the roster handed in nothing
    unknown   who is in no roster
    ignored   names of what lay among submissions and is none
    refused   a sentence for each whose work is not graded, since it is not clear whose or which it is
    alike     a sentence for each two names, from two platforms, that may be one student's
    """

    candidates: tuple[Candidate, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Claim:
    """That a hand-in is a student's: it comes from an account or group, known to the roster by its id or by a name."""

    account: str
    hand_in: HandIn
    identity: str = ""
    by_id: bool = False


def gather(found: Iterable[HandIn], roster: Roster | None = None, deadline: datetime | None = None) -> Gathered:
    """One candidate per student: mapped by the roster, shared by a group, the latest on time of several."""
    by_student: dict[str, list[_Claim]] = {}
    unknown: set[str] = set()
    refused: list[str] = []
    for one in found:
        marked = replace(one, late=one.late or _is_after(one.submitted, deadline))
        refused += [one.refused] if one.refused else []
        for owner in one.owners if not one.refused else ():
            claim, students = _students(owner, marked, roster)
            unknown |= set(students) if roster and not claim.account else set()
            for student in students:
                by_student.setdefault(student, []).append(replace(claim, account=claim.account or owner.student))
    for student, claims in by_student.items():
        sure = [claim for claim in claims if claim.by_id] or claims
        refused += [_not_by_name(claim, student) for claim in claims if claim not in sure]
        by_student[student] = sure
    chosen = [_chosen(student, claims) for student, claims in sorted(by_student.items())]
    refused += [one for one in chosen if isinstance(one, str)]
    absent = [person.student for person in roster.people if person.student not in by_student] if roster else []
    candidates = tuple(one for one in chosen if not isinstance(one, str))
    alike = tuple(_alike(one for one in candidates if roster is None or one.student in unknown))
    return Gathered(candidates, tuple(absent), tuple(sorted(unknown)), (), tuple(dict.fromkeys(refused)), alike)


def _alike(candidates: Iterable[Candidate]) -> Iterator[str]:
    """A sentence for two names of the same words, whatever their order, whose ids are of two platforms."""
    seen: dict[str, tuple[str, str, str]] = {}
    for student, identity in ((one.student, one.identity) for one in candidates if one.identity):
        platform, _, number = identity.rpartition(":")
        name = student.removesuffix(f"_{number}")
        words = re.findall(r"\w+", key(name))
        for form in ("".join(words[at:] + words[:at]) for at in range(len(words))):  # Canvas runs them together
            other, another, known = seen.setdefault(form, (student, platform, number))
            if another != platform:
                longer = max(other.removesuffix(f"_{known}"), name, key=len)  # which is in words
                line = ",".join(visible(cell, 80) for cell in (longer, known, number))
                both = f"{visible(other, 80)} and {visible(student, 80)}"
                yield f"{both} may be one student. If so, a --roster joins them: student,id,login with the line {line}."
                break


def _students(owner: Owner, hand_in: HandIn, roster: Roster | None) -> tuple[_Claim, list[str]]:
    """What is claimed, of no account where the roster lacks it; and whose grade it becomes."""
    itself = student_name(owner.student)
    if roster is None:
        return _Claim(owner.student, hand_in, owner.identity), [itself]
    number = owner.identity.rpartition(":")[2]
    by_id = roster.person(number)
    person = by_id or roster.person(owner.student, *owner.others)
    names = (owner.student, number, *owner.others)
    group = person.group if person else next((one.group for one in roster.people if one.group in names), "")
    if group:
        claim = _Claim(f"group {group}", hand_in, by_id=by_id is not None)
        return claim, [one.student for one in roster.people if one.group == group]
    if person is None:
        return _Claim("", hand_in, owner.identity), [itself]
    return _Claim(owner.student, hand_in, owner.identity, by_id is not None), [person.student]


def _not_by_name(claim: _Claim, student: str) -> str:
    who = f"{visible(claim.account, 100)} bears the name of {visible(student, 100)}"
    return f"{who}, whom the roster knows by another id: say in the roster who it is."


def _chosen(student: str, found: Sequence[_Claim]) -> Candidate | str:
    """The one of several that counts, or a sentence on why that cannot be told."""
    accounts = sorted({student if claim.by_id else claim.account for claim in found})  # a roster may join some by ids
    if len(accounts) > 1:
        both = f"{visible(accounts[0], 100)} and {visible(accounts[1], 100)}"
        return f"{both} would both be {visible(student, 100)}: say in the roster who is who."
    unique = list({str(claim.hand_in.path.absolute()): claim.hand_in for claim in found}.values())
    by_time = _all(one.submitted for one in unique) and not any(one.by_name for one in unique)
    if len(unique) > 1 and not (by_time or _all(one.order for one in unique)):
        both = f"{quoted_path(unique[0].path)} and {quoted_path(unique[1].path)}"
        namesakes = ", or two of that name did" if any(one.by_name for one in unique) else ""
        return f"{visible(student, 300)} handed in twice{namesakes}: {both}. Keep one of them."
    ranked = sorted(unique, key=lambda one: (not one.late, _seconds(one.submitted) if by_time else one.order))
    best, rest = ranked[-1], ranked[:-1]
    fault = f"{best.shown} {best.fault}: unpack it by hand, and grade the folder." if best.fault else ""
    notes, identity = (*best.notes, *_notes(best, rest)), found[0].identity
    return Candidate(student, best.path, best.shown, best.beside, notes, fault, identity, best.submitted)


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
    return submitted is not None and deadline is not None and _seconds(submitted) > deadline.timestamp()


def _seconds(moment: datetime | None) -> float:
    """Since 1970; a moment without a zone is taken as of this machine's."""
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


class _Rank(NamedTuple):
    """How likely a loose file is the work, the greater the likelier: the contract's name first, then what it holds."""

    contract: bool
    holds: bool
    alike: int
    position: int
    again: int

    @property
    def likely(self) -> bool:
        """Whether anything but its suffix says that it is the work."""
        return self.contract or self.holds or self.alike >= COPY


def of_loose_files(owners: tuple[Owner, ...], files: Sequence[tuple[str, Path]], wanted: Wanted, **more: Any) -> HandIn:
    """What somebody handed in as these loose files, the oldest first, each with its name as the student gave it."""
    chosen, beside = module_and_notebook(files, wanted)
    notes = tuple(note for name, path in files if path in (chosen, beside) for note in taken(name, path, wanted))
    return HandIn(owners, chosen, shown_name(chosen.name), beside, notes=notes, **more)


def module_and_notebook(files: Sequence[tuple[str, Path]], wanted: Wanted) -> tuple[Path, Path | None]:
    """Of one student's loose files, the oldest first: the module and the notebook, else the zip, else anything."""
    best: dict[str, tuple[_Rank, Path]] = {}
    for position, (name, path) in enumerate(files):
        rank, suffix = _rank(name, path, position, wanted), suffix_of(name)
        if suffix not in best or rank > best[suffix][0]:
            best[suffix] = (rank, path)
    known = [suffix for suffix in (".py", ".ipynb", ".zip") if suffix in best]
    likely = [suffix for suffix in known if best[suffix][0].likely] or known
    if likely[:2] == [".py", ".ipynb"]:
        return best[".py"][1], best[".ipynb"][1]
    return best[likely[0] if likely else max(best, key=lambda suffix: best[suffix][0])][1], None


def _rank(name: str, path: Path, position: int, wanted: Wanted) -> _Rank:
    found = RESUBMITTED.fullmatch(stem_of(name))
    stem, again = (found[1], int(found[2] or 0)) if found else (name, 0)
    holds, contract = _holds(path, wanted), stem == wanted.module  # Canvas and others number what is handed in again
    alike = EXACT if contract else likeness(name, wanted.module)
    return _Rank(contract and (holds or not wanted.functions), holds, alike, position, again)


def _holds(path: Path, wanted: Wanted) -> bool:
    """Whether a file holds some of what is graded, and not its stubs alone; or is a zip of the work."""
    kind = kind_of(path.name)
    if kind == ".zip":
        return zip_holds_work(path, wanted.module)
    return kind in CAPS and bool(wanted.functions) and is_begun(beginning(path), wanted.functions)


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
