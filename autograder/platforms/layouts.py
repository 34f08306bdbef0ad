"""Tell apart the ways in which platforms hand a class over, and gather what each student handed in.

The platforms' own are in `downloads.py`. Of the rest, `plain` is what `finding.find` says, nbgrader's
submitted/<student>/<assignment>/ with timestamp.txt included; `one` is a single student's.

A layout is what most of the class says it is, by the names that a platform gives: nothing in one submission changes
what becomes of another. Beside what bears such names, whatever holds work is graded as anything else is; what holds
none is left out and named, and makes no layout another. `--layout` says which it is where the evidence is not enough.

A student is called `<name>_<id>` as the platform writes both, or as the roster has it. Of several submissions the
latest counts that was on time, and the latest of all where none was; the others are named in the notes. A hand-in whose
owner is unclear is refused by name, and the rest of the class is graded.
"""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import NamedTuple

from autograder.gradebook.roster import Roster
from autograder.platforms.downloads import BY_NAMES, Entries, HandIn, Owner, clones_among, github, is_folder
from autograder.submissions.finding import (
    METADATA,
    Place,
    candidate_of,
    candidates_at,
    hidden_entries,
    holds_work,
    is_whole_work,
    is_work_renamed,
    may_be_one,
    members,
    no_submission,
    nothing_but_results,
    place_at,
    unpack,
)
from autograder.submissions.handed_in import folder_holds_work, names_of
from autograder.submissions.names import is_too_long, parts_of
from autograder.submissions.submission import CAPS, Candidate, quoted, student_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import beginning, entries_of, is_file_at, is_folder_at, is_ignored
from autograder.vocabulary.text import visible
from autograder.vocabulary.times import moment_or_none

GITHUB, PLAIN, ONE = "github", "plain", "one"
TIMESTAMP = "timestamp.txt"  # nbgrader's


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


@contextmanager
def gathered(
    paths: Sequence[Path],
    module: str,
    roster: Roster | None = None,
    deadline: datetime | None = None,
    *,
    out: Path | None = None,
    class_zip: bool = False,
    layout: str = "",
    functions: Sequence[str] = (),
) -> Iterator[Gathered]:
    """Gather what lies at `paths`, in any layout. Zips of a whole class are unpacked for as long as this is open.

    out         where the results will go, which may lie among submissions
    class_zip   zips at `paths` may hold a class: staff downloaded them. A student could pack one that looks like it
    layout      one of platforms.LAYOUTS, "one" for a single student's; "" for what the evidence says
    functions   that are graded: a loose file with one of them is somebody's work
    raises      UsageError where there is nothing to grade
    """
    out = None if out is None else out.resolve()
    reader = _Reader(module, functions, roster, layout, out)
    with ExitStack() as stack:
        hand_ins = [each for path in paths for each in reader.read(path, stack, class_zip=class_zip)]
        made = gather([each for each in hand_ins if each.is_none or each.path.resolve() != out], roster, deadline)
        if paths and not made.candidates:
            if made.refused:
                raise UsageError(made.refused[0])
            if out is not None and any(out.is_relative_to(path.resolve()) for path in paths):
                raise UsageError(f"There is nothing to grade but {out}, which is where the results go.")
            raise nothing_but_results(paths[0])
        yield made


# What lies there → hand-ins


def evident(entries: Entries) -> str:
    """Return the layout whose names most of what may be graded here bears; "" where most bears none."""
    counts = {each.name: sum(map(may_be_one, each.recognised(entries))) for each in BY_NAMES}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] and counts[best] * 2 >= sum(map(may_be_one, entries)) else ""


@dataclass(frozen=True)
class _Reader:
    """What is to be handed in, by whom, and how it is laid out."""

    module: str
    functions: Sequence[str]
    roster: Roster | None
    layout: str
    out: Path | None

    def read(self, path: Path, stack: ExitStack, *, class_zip: bool) -> list[HandIn]:
        """Read a folder or a file; what is unpacked of a class's zip stays as long as the stack is open."""
        if self.layout == ONE:
            return self._at(path, is_class=False)
        if path.suffix.lower() != ".zip" or not is_file_at(path):
            folder = path
            with contextlib.suppress(OSError):  # it may hold one folder, which is clearly the class
                if path.is_dir() and (inner := _only_folder(path)):
                    entries = entries_of(inner)
                    if evident(entries) or len(clones_among(entries)) * 2 > len(entries):
                        folder = inner
            is_class = is_folder_at(folder) and (self.layout != "" or self._is_class(folder))
            return self._at(folder, is_class=is_class or None)
        if class_zip:
            target = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))
            lacking, refused = unpack(path, target)
            folder = _only_folder(target) or target
            if self.layout or self._is_class(folder):
                made = self._at(folder, path.stem, lacking, is_class=True)
                return made + [_refused(path, sentence) for sentence in sorted(refused)]
        else:
            with contextlib.suppress(UsageError):  # of what cannot be read, whoever reads it says what is wrong
                if looks_like_class([parts for parts in parts_of(members(path)) if not any(map(is_too_long, parts))]):
                    advice = "add --class-zip if you downloaded it from your platform; if a student packed it, ask for"
                    return [_refused(path, f"{quoted(str(path))} looks like a whole class: {advice} the module.")]
        return self._at(path)  # one student's own, as whoever reads it unpacks it

    def _is_class(self, folder: Path) -> bool:
        """Tell whether it is a folder of submissions: without a module of its own, or with others' work beside it."""
        try:
            entries = entries_of(folder)
        except (OSError, ValueError):
            return False
        own = [e for e in entries if e.name in names_of(self.module) or (e.name == self.module and is_folder(e))]
        others = [entry for entry in entries if entry not in own]
        if not own:
            return bool(others)
        beside = sum(is_whole_work(entry, self.module, self.functions) for entry in others)
        named = max(sum(map(may_be_one, each.recognised(others))) for each in BY_NAMES)
        return max(beside, named) >= (1 if all(map(is_folder, own)) else 2)

    def _at(
        self,
        path: Path,
        name: str = "",
        lacking: Mapping[str, str] = MappingProxyType({}),
        *,
        is_class: bool | None = None,
    ) -> list[HandIn]:
        """Read what lies at a path, where one student's is told from a class's; `lacking` as `unpack` says it."""
        place = place_at(path, self.module, self.out, is_class=is_class)
        if not place.is_class:
            return [self._plain(candidate) for candidate in candidates_at(place, self.module)]
        made = self._laid_out(place, name or Path(os.path.normpath(path.absolute())).name)
        for at, hand_in in enumerate(made) if lacking else ():
            if not (is_folder_at(hand_in.path) and folder_holds_work(hand_in.path, self.module)):
                names = hand_in.path.relative_to(path).parts[:2]  # students' own folders may lie in the platform's
                made[at] = replace(hand_in, fault=next((lacking[each] for each in names if each in lacking), ""))
        for entry in hidden_entries(place):
            if holds_work(entry, self.module):
                dotted = f"{quoted(entry.name)} is not graded, since its name begins with a dot"
                made.append(_refused(Path(entry.path), f"{dotted}: rename it if it is somebody's work."))
            else:
                made.append(_none(place, entry.name))
        return made

    def _laid_out(self, place: Place, name: str) -> list[HandIn]:
        """Make hand-ins of a folder of submissions: of what bears a platform's names, and of others' work beside it."""
        known, made = self._of_platform(place, name)
        rest = [entry for entry in place.entries if entry not in known]
        graded = [
            entry
            for entry in rest
            if (holds_work(entry, self.module) if known else may_be_one(entry))
            or is_work_renamed(entry, self.functions)
        ]
        if not known and not graded:
            if not place.has_results:
                raise no_submission(place.path)
            return [_none(place, name)]
        made += [_none(place, each) for each in (*place.left_out, *(e.name for e in rest if e not in graded))]
        plain = []
        for entry in graded:
            if entry.name.partition(".")[0] == self.module and len(known) + len(graded) > 1:
                whose = f"{quoted(entry.name)} lies among the submissions in {quoted(name)} and does not say whose"
                made.append(_refused(Path(entry.path), f"{whose} it is: put it into a folder with the student's name."))
            else:
                plain.append(self._plain(candidate_of(place, entry, self.module)))
        if known or 2 * sum(each.submitted is not None for each in plain) <= len(plain):
            plain = [replace(each, submitted=None) for each in plain]  # nbgrader did not write the times
        return made + plain

    def _of_platform(self, place: Place, name: str) -> tuple[Entries, list[HandIn]]:
        """Choose the entries that bear a platform's names, and make hand-ins of them."""
        chosen = self.layout or evident(place.entries)
        for platform in BY_NAMES:
            if platform.name == chosen and (known := platform.recognised(place.entries)):
                return known, platform.hand_ins(known, self.module, self.roster)
        if self.layout in ("", GITHUB):
            # The class as repositories, where most of what holds work is one and it is clear where usernames begin.
            clones = clones_among(place.entries)
            works = [entry for entry in place.entries if entry in clones or holds_work(entry, self.module)]
            if self.layout or len(clones) * 2 > len(works):
                made = github(clones, name, self.module, self.roster)
                paths = {each.path for each in made}
                if made:
                    return [each for each in clones if Path(each.path) in paths], made
        if self.layout not in ("", PLAIN):
            raise UsageError(f"{quoted(str(place.path))} holds nothing with the names that {self.layout} gives.")
        return [], []

    def _plain(self, candidate: Candidate) -> HandIn:
        """Take what no platform has named, with the time when nbgrader collected <student>/<assignment>/, if any.

        (nbgrader's docs, exchange_api.rst: timestamp.txt beside the work.)
        """
        submitted = None
        if is_folder_at(candidate.path):
            files = candidate.path.glob(f"*/{glob.escape(self.module)}.*")  # nothing where it may not be looked at
            kept = [path for path in files if path.name in names_of(self.module) and not path.parent.is_symlink()]
            having = list({path.parent for path in kept if not is_ignored(path.parent.name)})
            if len(having) == 1:  # else it is not clear which assignment counts
                submitted = moment_or_none(beginning(having[0] / TIMESTAMP)[:100].decode("utf-8", "replace"))
        return HandIn((Owner(candidate.student),), candidate.path, candidate.shown, submitted=submitted)


def _none(place: Place, name: str) -> HandIn:
    return HandIn((), place.real / name, name, is_none=True)


def _refused(path: Path, sentence: str) -> HandIn:
    return HandIn((), path, path.name, refused=sentence)


def _only_folder(path: Path) -> Path | None:
    """Return the folder that alone lies in another and bears no platform's name."""
    inner = [entry for entry in os.scandir(path) if not is_ignored(entry.name)]
    if len(inner) != 1 or not is_folder(inner[0]) or any(each.recognised(inner) for each in BY_NAMES):
        return None
    return Path(inner[0].path)


def looks_like_class(paths: Sequence[tuple[str, ...]]) -> bool:
    """Tell whether a zip with these entries holds a class, and not one student's work."""

    def is_of_platform(name: str) -> bool:
        return name != METADATA and any(layout.reads(name) for layout in BY_NAMES if not layout.beside)

    kept = [parts for parts in paths if parts and not any(map(is_ignored, parts))]
    top = kept[0][0] if kept else ""
    if all(len(parts) > 1 and parts[0] == top for parts in kept) and not is_of_platform(top):
        kept = [parts[1:] for parts in kept]  # all in one folder
    graded = [parts for parts in kept if PurePath(parts[-1]).suffix.lower() in CAPS]
    tops = {parts[0] for parts in graded or kept}
    return METADATA in [parts[0] for parts in kept] or sum(map(is_of_platform, tops)) * 2 > len(tops)


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
    unknown, ignored, refused = set[str](), [], []
    for hand_in in hand_ins:
        if hand_in.is_none:
            ignored.append(hand_in.shown)
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
    absent = [person.student for person in roster.people if person.student not in claims] if roster else ()
    unique = tuple(dict.fromkeys(refused))
    return Gathered(tuple(candidates), tuple(absent), tuple(sorted(unknown)), tuple(ignored), unique)


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
