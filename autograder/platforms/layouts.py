"""The ways in which platforms hand a class over, told apart: which it is, and what each student handed in.

    blackboard   HW5_adiaz_attempt_2027-03-02-23-58-01_policy_gradient.py, with a .txt for each attempt
    brightspace  123-456 - Ana Diaz - Mar 2, 2027 1158 PM/…, or that before the name of a file
    canvas       diazana_LATE_1001_555_policy_gradient-1.py, all in one folder or zip
    moodle       Ana Diaz_12345_assignsubmission_file/…, or _file_ before the name of a file
    gradescope   submission_123/… beside submission_metadata.yml
    submitty     submissions/username/2/… beside user_assignment_settings.json, which says that version 2 counts
    codegrade    Ana Diaz - 2027-03-02 23:58:01/…
    github       assignment-username/…, each a repository
    plain        anything else, as `finding.find` says; nbgrader's submitted/<student>/<assignment>/ with timestamp.txt

A layout is what most of the class says it is, by the names that a platform gives: nothing in one submission changes
what becomes of another. Beside what bears such names, whatever holds work is graded as anything else is; what holds
none is left out and named, and makes no layout another. `--layout` says which it is where the evidence is not enough.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms.hand_in import Gathered, HandIn, Owner, Wanted, gather, is_folder, quoted_path
from autograder.platforms.known_layouts import BY_NAMES, GITHUB, ONE, PLAIN, Entries, evident, looks_like_class
from autograder.platforms.nbgrader.collected import collected
from autograder.platforms.repositories import github
from autograder.submissions.finding import (
    Place,
    Unpacked,
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
from autograder.submissions.handed_in import folder_holds_work
from autograder.submissions.names import is_too_long, parts_of
from autograder.submissions.submission import Candidate, quoted
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import entries_of, is_folder_at, is_ignored


@dataclass(frozen=True)
class _Asked:
    """What holds at every place.

    layout      which to take, "" for what the evidence says
    functions   that are graded: a loose file with one of them is somebody's work
    """

    module: str
    roster: Roster | None
    layout: str
    functions: Sequence[str]
    out: Path | None


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
    """What lies at `paths`, in any layout. Zips of a whole class are unpacked for as long as this is open.

    out         where the results will go, which may lie among submissions
    class_zip   zips at `paths` may hold a class: staff downloaded them. A student could pack one that looks like it
    layout      one of NAMES, "one" for a single student's; "" for what the evidence says
    functions   that are graded
    raises      UsageError where there is nothing to grade
    """
    asked = _Asked(module, roster, layout, functions, None if out is None else out.resolve())
    with ExitStack() as stack:
        parts = [_at(_opened(path, stack, asked, class_zip=class_zip), asked) for path in paths]
        found = [one for part in parts for one in part.hand_ins if asked.out is None or one.path.resolve() != asked.out]
        refused = [sentence for part in parts for sentence in part.refused]
        made = gather(found, roster, deadline)
        made = replace(
            made,
            ignored=tuple(name for part in parts for name in part.ignored),
            refused=tuple(dict.fromkeys([*refused, *made.refused])),
        )
        if paths and not made.candidates:
            raise UsageError(made.refused[0]) if made.refused else _nothing(paths, out)
        yield made


def _nothing(places: Sequence[Path], out: Path | None) -> UsageError:
    """What to raise where nothing but results lies at the places."""
    if out is not None and any(out.resolve().is_relative_to(place.resolve()) for place in places):
        return UsageError(f"There is nothing to grade but {out}, which is where the results go.")
    return nothing_but_results(places[0])


@dataclass(frozen=True)
class _Opened:
    """A place to look at, what it is called, and what it was unpacked from; `is_class` where that is sure."""

    path: Path
    name: str
    is_class: bool | None = None
    unpacked: Unpacked | None = None

    def fault_of(self, one: HandIn, module: str) -> str:
        """Why a hand-in cannot be read, by what of its entry was not unpacked; "" where that is of no account."""
        if self.unpacked is None:
            return ""
        names = one.path.relative_to(self.path).parts[:2]  # students' own folders may lie in the platform's
        lost, skipped = (_first(names, known) for known in (self.unpacked.lost, self.unpacked.skipped))
        needed = not (is_folder_at(one.path) and folder_holds_work(one.path, module))
        return lost or (skipped if needed else "")


def _first(names: Sequence[str], known: Mapping[str, str]) -> str:
    return next((known[name] for name in names if name in known), "")


def _opened(path: Path, stack: ExitStack, asked: _Asked, *, class_zip: bool) -> _Opened:
    """Where to look; a zip of a class is unpacked."""
    if not (path.suffix.lower() == ".zip" and stat.S_ISREG(_mode(path))) or asked.layout == ONE:
        place = path if asked.layout == ONE else _unwrapped(path)
        return _Opened(place, Path(os.path.normpath(place.absolute())).name, False if asked.layout == ONE else None)
    if not class_zip:
        _refuse_class(path)
        return _Opened(path, path.name)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))
    unpacked = unpack(path, folder)
    inner = [entry for entry in os.scandir(folder) if not is_ignored(entry.name)]
    wrapped = len(inner) == 1 and is_folder(inner[0]) and not any(one.recognised(inner) for one in BY_NAMES)
    place = Path(inner[0].path) if wrapped else folder
    if not asked.layout and not _is_class(place, asked):
        return _Opened(path, path.name)  # one student's own, as `read` unpacks it
    return _Opened(place, path.stem, True, unpacked)


def _unwrapped(path: Path) -> Path:
    """The folder, or the one folder in it where that alone lies there and bears a platform's names or holds clones."""
    try:
        inner = [entry for entry in os.scandir(path) if not is_ignored(entry.name)] if path.is_dir() else []
        if len(inner) != 1 or not is_folder(inner[0]) or any(one.recognised(inner) for one in BY_NAMES):
            return path
        entries = entries_of(Path(inner[0].path))
        is_class = evident(entries) or (len(github.recognised(entries)) * 2 > len(entries))
    except OSError:
        return path
    return Path(inner[0].path) if is_class else path


def _refuse_class(path: Path) -> None:
    """Raise UsageError where a zip that nobody called a class looks like one."""
    try:
        looks = looks_like_class([parts for parts in parts_of(members(path)) if not any(map(is_too_long, parts))])
    except UsageError:  # `read` says what is wrong with it
        return
    if looks:
        advice = "add --class-zip if you downloaded it from your platform; if a student packed it, ask for the module"
        raise UsageError(f"{quoted_path(path)} looks like a whole class: {advice}.")


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # nothing there, or nothing that this user may look at: `place_at` or `read` says so
        return 0


def _is_class(folder: Path, asked: _Asked) -> bool:
    """Whether a folder is one of submissions: a platform's, or without a module of its own, or with others' beside."""
    try:
        entries = entries_of(folder)
    except (OSError, ValueError):
        return False
    own = [entry for entry in entries if is_module(entry, asked.module)]
    loose = [entry for entry in own if not is_folder(entry)]
    others = [entry for entry in entries if entry not in own]
    if not own:
        return bool(others)
    beside = len(works_beside(others, asked.module, asked.functions))
    named = max(sum(map(may_be_one, one.recognised(others))) for one in BY_NAMES)
    return max(beside, named) >= (2 if loose else 1)


@dataclass(frozen=True)
class _Found:
    """What was handed in at one place, the names there of what nobody did, and why somebody's is not graded."""

    hand_ins: Sequence[HandIn]
    ignored: Sequence[str]
    refused: Sequence[str] = ()


def _at(opened: _Opened, asked: _Asked) -> _Found:
    is_class = opened.is_class
    if is_class is None and stat.S_ISDIR(_mode(opened.path)):
        is_class = asked.layout not in ("", ONE) or _is_class(opened.path, asked) or None
    place = place_at(opened.path, asked.module, asked.out, is_class=is_class)
    found = _found_at(place, opened.name, asked)
    hidden = hidden_entries(place) if place.is_class else []
    work = [entry for entry in hidden if holds_work(entry, asked.module)]
    return _Found(
        [replace(one, fault=opened.fault_of(one, asked.module)) for one in found.hand_ins],
        [*found.ignored, *(entry.name for entry in hidden if entry not in work)],
        [
            *found.refused,
            *(_hidden(entry.name) for entry in work),
            *sorted(opened.unpacked.refused if opened.unpacked else ()),
        ],
    )


def _hidden(name: str) -> str:
    return f"{quoted(name)} is not graded, since its name begins with a dot: rename it if it is somebody's work."


def _found_at(place: Place, name: str, asked: _Asked) -> _Found:
    if not place.is_class:
        return _Found([_plain(candidate, asked.module) for candidate in candidates_at(place, asked.module)], ())
    for layout in BY_NAMES:
        known = layout.recognised(place.entries)
        if layout.name == (asked.layout or evident(place.entries)) and known:
            return _with_others(
                place, known, layout.hand_ins(known, Wanted(asked.module, asked.functions, asked.roster)), asked.module
            )
    if asked.layout in ("", GITHUB) and (found := _clones(place, name, asked)):
        return found
    if asked.layout not in ("", PLAIN):
        raise UsageError(f"{quoted_path(place.path)} holds nothing with the names that {asked.layout} gives.")
    return _plain_class(place, name, asked.module)


def _clones(place: Place, name: str, asked: _Asked) -> _Found | None:
    """The class as repositories, where most of what holds work is one and it is clear where usernames begin."""
    repositories = github.recognised(place.entries)
    works = [entry for entry in place.entries if entry in repositories or holds_work(entry, asked.module)]
    if len(repositories) * 2 <= len(works) and not asked.layout:
        return None
    found = github.hand_ins(repositories, name, asked.roster, asked.module)
    paths = {one.path for one in found}
    known = [entry for entry in repositories if Path(entry.path) in paths]
    return _with_others(place, known, found, asked.module) if found else None


def _plain_class(place: Place, name: str, module: str) -> _Found:
    candidates = candidates_at(place, module)
    nameless = [one for one in candidates if one.path.name.partition(".")[0] == module and len(candidates) > 1]
    strange = [entry.name for entry in place.entries if not may_be_one(entry)]
    plain = [_plain(candidate, module) for candidate in candidates if candidate not in nameless]
    if 2 * sum(one.submitted is not None for one in plain) <= len(plain):  # then it is not nbgrader that wrote them
        plain = [replace(one, submitted=None) for one in plain]
    refused = [_nameless(one.path.name, name) for one in nameless]
    return _Found(plain, [*place.left_out, *strange] if candidates else [name], refused)


def _nameless(name: str, folder: str) -> str:
    whose = f"{quoted(name)} lies among the submissions in {quoted(folder)} and does not say whose it is"
    return f"{whose}: put it into a folder with the student's name."


def _with_others(place: Place, known: Entries, found: Sequence[HandIn], module: str) -> _Found:
    """What a platform laid out, and beside it what others handed in: nobody's work is lost where it lies."""
    rest = [entry for entry in place.entries if entry not in known]
    work = [entry for entry in rest if holds_work(entry, module)]
    nameless = [entry for entry in work if is_module(entry, module)]
    others = [_plain(candidate_of(place, entry, module), module) for entry in work if entry not in nameless]
    refused = [_nameless(entry.name, place.path.name) for entry in nameless]
    return _Found([*found, *others], [*place.left_out, *(entry.name for entry in rest if entry not in work)], refused)


def _plain(candidate: Candidate, module: str) -> HandIn:
    submitted = collected(candidate.path, module) if stat.S_ISDIR(_mode(candidate.path)) else None
    return HandIn((Owner(candidate.student),), candidate.path, candidate.shown, submitted=submitted)
