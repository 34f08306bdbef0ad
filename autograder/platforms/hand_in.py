"""Decide whose each hand-in is, and which of several submissions of one student counts.

A student is called `<name>_<id>` as the platform writes both, or as the roster has it. Of several submissions the
latest counts that was on time, and the latest of all where none was; the others are named in the notes. A hand-in whose
owner is unclear is refused by name, and the rest of the class is graded.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import NamedTuple

from autograder.gradebook.roster import Roster
from autograder.submissions.names import SOURCES, likeness, stem_of, suffix_of
from autograder.submissions.submission import CAPS, Candidate, quoted, shown_name, student_name
from autograder.vocabulary.files import is_folder_at
from autograder.vocabulary.text import visible

RESUBMITTED = re.compile(r"(.*?)(?:-(\d{1,4}))?", re.DOTALL)  # Canvas and others number what is handed in again


class Owner(NamedTuple):
    """What a platform calls a student.

    student     the name to use
    identity    the platform's id, which no student chooses, as `Report.identity` has it; "" where a layout has none
    others      other names by which a roster may know the student
    """

    student: str
    identity: str = ""
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class HandIn:
    """One thing handed in, before it is known who the student is and whether it counts.

    owners      the student, or each member of a group
    path        of a folder, or of the likeliest of `files`
    files       loose files, oldest first: name as given, and path
    submitted   when, where the platform says so; without a zone where the platform names none
    order       which of two is later, where the platform says no more than that
    others      files that later ones of the same name replace
    fault       why it cannot be read, as the end of a sentence
    refused     why it is not clear whose it is, as a sentence
    """

    owners: tuple[Owner, ...]
    path: Path
    shown: str
    files: tuple[tuple[str, Path], ...] = ()
    submitted: datetime | None = None
    late: bool = False
    order: int = 0
    others: tuple[str, ...] = ()
    fault: str = ""
    refused: str = ""


@dataclass(frozen=True)
class Gathered:
    """The class: what to grade, by student.

    absent    students of the roster who handed in nothing
    unknown   students who are in no roster
    ignored   names of entries among the submissions that are none
    refused   a sentence for each hand-in that is not graded, since it is not clear whose or which it is
    """

    candidates: tuple[Candidate, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assigned:
    """What is to be handed in, and by whom; a file that defines one of `functions` is the work, whatever its name."""

    module: str
    functions: Sequence[str] = ()
    roster: Roster | None = None


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Tell whether an entry is a folder, and no link to one."""
    return entry.is_dir(follow_symlinks=False)


# The files and folders of a download → hand-ins


class Piece(NamedTuple):
    """A file or folder of a download, and what its name says of it.

    name        as the student gave it; "" where the platform says none
    submitted   when, with what else was handed in then
    order       which of two is later
    """

    path: Path
    owner: Owner
    name: str = ""
    submitted: datetime | None = None
    late: bool = False
    order: int = 0


def joined(pieces: Iterable[Piece], module: str, platform: str) -> list[HandIn]:
    """Make one hand-in of what a student handed in at one moment; nothing of an id that two names claim is graded."""
    groups: defaultdict[object, list[Piece]] = defaultdict(list)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for piece in pieces:
        groups[piece.owner, piece.submitted, piece.late].append(piece)
        names[piece.owner.identity].add(piece.owner.student)
    made = []
    for group in groups.values():
        owner, submitted, late = group[0].owner, group[0].submitted, group[0].late
        reason = ""
        if owner.identity and len(claimants := names[owner.identity]) > 1:
            reason = claimed_by_two(claimants, owner.identity, platform)
        path = next((each.path for each in group if is_folder_at(each.path) and not each.path.is_symlink()), None)
        files: dict[str, Path] = {}
        replaced = []
        for piece in sorted(group, key=lambda each: each.order) if path is None else ():
            name = piece.name or piece.path.name
            match, suffix = RESUBMITTED.fullmatch(stem_of(name)), PurePath(name).suffix.lower()
            if match and match[1] == module and suffix in SOURCES:
                name = f"{module}{suffix}"
            if name in files:
                replaced.append(shown_name(files.pop(name).name))
            files[name] = piece.path
        if path is None:
            path = files[max(reversed(files), key=lambda name: (suffix_of(name) in CAPS, likeness(name, module)))]
        order = max(piece.order for piece in group)
        shown, loose, others = shown_name(path.name), tuple(files.items()), tuple(replaced)
        made.append(HandIn((owner,), path, shown, loose, submitted, late, order, others, refused=reason))
    return made


def claimed_by_two(names: Iterable[str], identity: str, platform: str) -> str:
    """Say why nothing of an id is graded that two accounts claim."""
    both = " and ".join(visible(name, 60) for name in sorted(set(names))[:2])
    number = visible(identity.rpartition(":")[2], 40)
    return f"{both} both claim the id {number} of {platform}: say in a roster who is who, or rename one."


# All hand-ins → one candidate for each student


class _Claim(NamedTuple):
    """That a hand-in of an account or group belongs to a student; `by_id` where the roster knows the account's id."""

    account: str
    hand_in: HandIn
    identity: str = ""
    by_id: bool = False


def gather(hand_ins: Iterable[HandIn], roster: Roster | None = None, deadline: datetime | None = None) -> Gathered:
    """Choose one candidate per student: mapped by the roster, shared by a group, the latest on time of several."""
    claims: dict[str, list[_Claim]] = {}
    unknown: set[str] = set()
    refused: list[str] = []
    for hand_in in hand_ins:
        if hand_in.refused:
            refused.append(hand_in.refused)
            continue
        if hand_in.submitted and deadline and hand_in.submitted.timestamp() > deadline.timestamp():
            hand_in = replace(hand_in, late=True)
        for owner in hand_in.owners:
            claim, students, is_known = _claim(owner, hand_in, roster)
            unknown |= set() if is_known else set(students)
            for student in students:
                claims.setdefault(student, []).append(claim)
    candidates = []
    for student, all_claims in sorted(claims.items()):
        sure = [claim for claim in all_claims if claim.by_id] or all_claims
        for claim in all_claims:
            if claim not in sure:
                who = f"{visible(claim.account, 100)} bears the name of {visible(student, 100)}"
                refused.append(f"{who}, whom the roster knows by another id: say in the roster who it is.")
        chosen = _chosen(student, sure)
        if isinstance(chosen, str):
            refused.append(chosen)
        else:
            candidates.append(chosen)
    absent = tuple(person.student for person in roster.people if person.student not in claims) if roster else ()
    return Gathered(tuple(candidates), absent, tuple(sorted(unknown)), (), tuple(dict.fromkeys(refused)))


def _claim(owner: Owner, hand_in: HandIn, roster: Roster | None) -> tuple[_Claim, list[str], bool]:
    """Return the claim of an owner, the students whom it concerns, and whether the roster, if any, knows the owner."""
    if roster is None:
        return _Claim(owner.student, hand_in, owner.identity), [student_name(owner.student)], True
    number = owner.identity.rpartition(":")[2]
    by_id = roster.person(number)
    person = by_id or roster.person(owner.student, *owner.others)
    names = (owner.student, number, *owner.others)
    group = person.group if person else next((each.group for each in roster.people if each.group in names), "")
    if group:
        members = [member.student for member in roster.people if member.group == group]
        return _Claim(f"group {group}", hand_in, by_id=by_id is not None), members, True
    claim = _Claim(owner.student, hand_in, owner.identity, by_id is not None)
    return claim, [person.student if person else student_name(owner.student)], person is not None


def _chosen(student: str, claims: Sequence[_Claim]) -> Candidate | str:
    """Return the submission that counts, or a sentence on why that cannot be told."""
    accounts = sorted({student if claim.by_id else claim.account for claim in claims})  # a roster may join some by ids
    if len(accounts) > 1:
        both = f"{visible(accounts[0], 100)} and {visible(accounts[1], 100)}"
        return f"{both} would both be {visible(student, 100)}: say in the roster who is who."
    unique = list({str(claim.hand_in.path.absolute()): claim.hand_in for claim in claims}.values())
    by_time = _all_differ([hand_in.submitted for hand_in in unique])
    if len(unique) > 1 and not (by_time or _all_differ([hand_in.order for hand_in in unique])):
        both = f"{quoted(str(unique[0].path))} and {quoted(str(unique[1].path))}"
        return f"{visible(student, 300)} handed in twice: {both}. Keep one of them."

    def rank(hand_in: HandIn) -> tuple[bool, float]:  # a moment without a zone is taken as of this machine's
        return not hand_in.late, hand_in.submitted.timestamp() if by_time and hand_in.submitted else hand_in.order

    *rest, best = sorted(unique, key=rank)
    notes = []
    if others := [*(f"{each.shown}{' (late)' if each.late else ''}" for each in rest), *best.others]:
        why = "the latest of several, all of them late" if best.late else "the latest that was on time"
        names = f"{', '.join(others[:5])}{' …' if len(others) > 5 else ''}"
        notes.append(f"{best.shown} counts, {why}; not graded: {names}")
    if best.late:
        when = f", at {best.submitted.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if best.submitted else ""
        notes.append(f"handed in late{when}")
    fault = f"{best.shown} {best.fault}: unpack it by hand, and grade the folder." if best.fault else ""
    identity = claims[0].identity
    return Candidate(student, best.path, best.shown, best.files, tuple(notes), fault, identity, best.submitted)


def _all_differ(values: Sequence[object]) -> bool:
    """Tell whether every value says something, and no two the same."""
    return all(values) and len(set(values)) == len(values)
