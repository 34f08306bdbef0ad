"""Tell apart the ways in which platforms hand a class over, and gather what each student handed in.

The platforms' own are in `downloads.py`. Of the rest, `plain` is what `finding.find` says, nbgrader's
submitted/<student>/<assignment>/ with timestamp.txt included; `one` is a single student's.

A layout is what most of the class says it is, by the names that a platform gives: nothing in one submission changes
what becomes of another. Beside what bears such names, whatever holds work is graded as anything else is; what holds
none is left out and named, and makes no layout another. `--layout` says which it is where the evidence is not enough.
"""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePath
from types import MappingProxyType

from autograder.gradebook.roster import Roster
from autograder.platforms.downloads import BY_NAMES, Entries, clones_among, github
from autograder.platforms.hand_in import Assigned, Gathered, HandIn, Owner, gather, is_folder
from autograder.submissions.finding import (
    METADATA,
    Place,
    candidate_of,
    candidates_at,
    hidden_entries,
    holds_work,
    is_module,
    may_be_one,
    members,
    nothing_but_results,
    place_at,
    unpack,
    works_beside,
)
from autograder.submissions.handed_in import folder_holds_work, names_of
from autograder.submissions.names import is_too_long, parts_of
from autograder.submissions.submission import CAPS, Candidate, quoted
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import beginning, entries_of, is_file_at, is_folder_at, is_ignored
from autograder.vocabulary.times import moment_or_none

GITHUB, PLAIN, ONE = "github", "plain", "one"
TIMESTAMP = "timestamp.txt"  # nbgrader's


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
    with ExitStack() as stack:
        class_ = _Class(Assigned(module, functions, roster), layout, out)
        for path in paths:
            class_.read(path, stack, class_zip=class_zip)
        hand_ins = [each for each in class_.hand_ins if out is None or each.path.resolve() != out]
        made = gather(hand_ins, roster, deadline)
        refused = tuple(dict.fromkeys([*class_.refused, *made.refused]))
        if paths and not made.candidates:
            if refused:
                raise UsageError(refused[0])
            if out is not None and any(out.is_relative_to(path.resolve()) for path in paths):
                raise UsageError(f"There is nothing to grade but {out}, which is where the results go.")
            raise nothing_but_results(paths[0])
        yield replace(made, ignored=tuple(class_.ignored), refused=refused)


def evident(entries: Entries) -> str:
    """Return the layout whose names most of what may be graded here bears; "" where most bears none."""
    counts = {each.name: sum(map(may_be_one, each.recognised(entries))) for each in BY_NAMES}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] and counts[best] * 2 >= sum(map(may_be_one, entries)) else ""


@dataclass
class _Class:
    """What was handed in at all places, the names there of what nobody did, and why somebody's is not graded."""

    assigned: Assigned
    layout: str
    out: Path | None
    hand_ins: list[HandIn] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    # Where to look: a folder, or a zip of a class, which is unpacked

    def read(self, path: Path, stack: ExitStack, *, class_zip: bool) -> None:
        """Add what lies at `path`; what is unpacked of a zip stays as long as the stack is open."""
        if self.layout == ONE:
            self._read(path, _name_of(path), is_class=False)
        elif not (path.suffix.lower() == ".zip" and is_file_at(path)):
            folder = _unwrapped(path)
            is_class = is_folder_at(folder) and (self.layout != "" or self._is_class(folder))
            self._read(folder, _name_of(folder), is_class=is_class or None)
        elif class_zip:
            target = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))
            lacking, refused = unpack(path, target)
            folder = _only_folder(target) or target
            if self.layout or self._is_class(folder):
                self._read(folder, path.stem, lacking, is_class=True)
                self.refused += sorted(refused)
            else:
                self._read(path, path.name)
        else:
            with contextlib.suppress(UsageError):  # of what cannot be read, whoever reads it says what is wrong
                if looks_like_class([parts for parts in parts_of(members(path)) if not any(map(is_too_long, parts))]):
                    advice = "add --class-zip if you downloaded it from your platform; if a student packed it, ask for"
                    self.refused.append(f"{quoted(str(path))} looks like a whole class: {advice} the module.")
                    return
            self._read(path, path.name)  # one student's own, as the reader unpacks it

    def _is_class(self, folder: Path) -> bool:
        """Tell whether it is a folder of submissions: without a module of its own, or with others' work beside it."""
        module = self.assigned.module
        try:
            entries = entries_of(folder)
        except (OSError, ValueError):
            return False
        own = [entry for entry in entries if is_module(entry, module)]
        others = [entry for entry in entries if entry not in own]
        if not own:
            return bool(others)
        beside = len(works_beside(others, module, self.assigned.functions))
        named = max(sum(map(may_be_one, each.recognised(others))) for each in BY_NAMES)
        return max(beside, named) >= (1 if all(map(is_folder, own)) else 2)

    # What lies there

    def _read(
        self, path: Path, name: str, lacking: Mapping[str, str] = MappingProxyType({}), *, is_class: bool | None = None
    ) -> None:
        module = self.assigned.module
        place = place_at(path, module, self.out, is_class=is_class)
        if not place.is_class:
            self.hand_ins += self._plain(place)
            return
        for hand_in in self._laid_out(place, name):
            if lacking and not (is_folder_at(hand_in.path) and folder_holds_work(hand_in.path, module)):
                names = hand_in.path.relative_to(path).parts[:2]  # students' own folders may lie in the platform's
                hand_in = replace(hand_in, fault=next((lacking[each] for each in names if each in lacking), ""))
            self.hand_ins.append(hand_in)
        for entry in hidden_entries(place):
            if holds_work(entry, module):
                dotted = f"{quoted(entry.name)} is not graded, since its name begins with a dot"
                self.refused.append(f"{dotted}: rename it if it is somebody's work.")
            else:
                self.ignored.append(entry.name)

    def _laid_out(self, place: Place, name: str) -> Sequence[HandIn]:
        """Make hand-ins of a folder of submissions by its layout."""
        module, chosen = self.assigned.module, self.layout or evident(place.entries)
        for platform in BY_NAMES:
            if platform.name == chosen and (known := platform.recognised(place.entries)):
                return self._with_others(place, known, platform.hand_ins(known, self.assigned))
        if self.layout in ("", GITHUB):
            # The class as repositories, where most of what holds work is one and it is clear where usernames begin.
            clones = clones_among(place.entries)
            works = [entry for entry in place.entries if entry in clones or holds_work(entry, module)]
            if self.layout or len(clones) * 2 > len(works):
                hand_ins = github(clones, name, self.assigned)
                paths = {each.path for each in hand_ins}
                if hand_ins:
                    return self._with_others(place, [each for each in clones if Path(each.path) in paths], hand_ins)
        if self.layout not in ("", PLAIN):
            raise UsageError(f"{quoted(str(place.path))} holds nothing with the names that {self.layout} gives.")
        plain = self._plain(place)
        strange = [entry.name for entry in place.entries if not may_be_one(entry)]
        self.ignored += [*place.left_out, *strange] if plain else [name]
        nameless = [each for each in plain if each.path.name.partition(".")[0] == module and len(plain) > 1]
        self.refused += [_nameless(each.path.name, name) for each in nameless]
        named = [each for each in plain if each not in nameless]
        if 2 * sum(each.submitted is not None for each in named) <= len(named):  # then nbgrader did not write the times
            named = [replace(each, submitted=None) for each in named]
        return named

    def _with_others(self, place: Place, known: Entries, hand_ins: Sequence[HandIn]) -> Sequence[HandIn]:
        """Add to what a platform laid out what others handed in beside it: nobody's work is lost where it lies."""
        module, others = self.assigned.module, []
        self.ignored += place.left_out
        for entry in place.entries:
            if entry in known:
                continue
            if not holds_work(entry, module):
                self.ignored.append(entry.name)
            elif is_module(entry, module):
                self.refused.append(_nameless(entry.name, place.path.name))
            else:
                others.append(self._hand_in(candidate_of(place, entry, module)))
        return [*hand_ins, *others]

    def _plain(self, place: Place) -> list[HandIn]:
        return [self._hand_in(candidate) for candidate in candidates_at(place, self.assigned.module)]

    def _hand_in(self, candidate: Candidate) -> HandIn:
        submitted = _collected(candidate.path, self.assigned.module) if is_folder_at(candidate.path) else None
        return HandIn((Owner(candidate.student),), candidate.path, candidate.shown, submitted=submitted)


def _name_of(path: Path) -> str:
    return Path(os.path.normpath(path.absolute())).name


def _only_folder(path: Path) -> Path | None:
    """Return the folder that alone lies in another and bears no platform's name."""
    inner = [entry for entry in os.scandir(path) if not is_ignored(entry.name)]
    if len(inner) != 1 or not is_folder(inner[0]) or any(each.recognised(inner) for each in BY_NAMES):
        return None
    return Path(inner[0].path)


def _unwrapped(path: Path) -> Path:
    """Return the folder, or the one folder in it where what lies there bears a platform's names or is mostly clones."""
    with contextlib.suppress(OSError):
        if path.is_dir() and (inner := _only_folder(path)):
            entries = entries_of(inner)
            if evident(entries) or len(clones_among(entries)) * 2 > len(entries):
                return inner
    return path


def looks_like_class(paths: Sequence[tuple[str, ...]]) -> bool:
    """Tell whether a zip with these entries holds a class, and not one student's work."""
    kept = [parts for parts in paths if parts and not any(map(is_ignored, parts))]
    top = kept[0][0] if kept else ""
    if all(len(parts) > 1 and parts[0] == top for parts in kept) and not _is_of_platform(top):
        kept = [parts[1:] for parts in kept]  # all in one folder
    graded = [parts for parts in kept if PurePath(parts[-1]).suffix.lower() in CAPS]
    tops = {parts[0] for parts in graded or kept}
    return METADATA in [parts[0] for parts in kept] or sum(map(_is_of_platform, tops)) * 2 > len(tops)


def _is_of_platform(name: str) -> bool:
    return name != METADATA and any(layout.reads(name) for layout in BY_NAMES if not layout.beside)


def _nameless(name: str, folder: str) -> str:
    whose = f"{quoted(name)} lies among the submissions in {quoted(folder)} and does not say whose it is"
    return f"{whose}: put it into a folder with the student's name."


def _collected(folder: Path, module: str) -> datetime | None:
    """Read when nbgrader collected what lies in <student>/<assignment>/, where it is clear which assignment counts.

    (nbgrader's docs, exchange_api.rst: timestamp.txt beside the work.)
    """
    files = folder.glob(f"*/{glob.escape(module)}.*")  # nothing where it may not be looked at
    kept = [path for path in files if path.name in names_of(module) and not path.parent.is_symlink()]
    having = list({path.parent for path in kept if not is_ignored(path.parent.name)})
    if len(having) != 1:
        return None
    return moment_or_none(beginning(having[0] / TIMESTAMP)[:100].decode("utf-8", "replace"))
