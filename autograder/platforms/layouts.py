"""Tell apart the ways in which platforms hand a class over, and gather what each student handed in.

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms import blackboard, brightspace, canvas, gradescope, moodle, repositories
from autograder.platforms.hand_in import Gathered, HandIn, Owner, Wanted, gather, is_folder, quoted_path
from autograder.submissions.finding import (
    METADATA,
    SETTINGS,
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
from autograder.submissions.submission import CAPS, Candidate, quoted
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import entries_of, is_folder_at, is_ignored, open_regular
from autograder.vocabulary.times import moment_or_none

Entries = Sequence[os.DirEntry[str]]
GITHUB, PLAIN, ONE = "github", "plain", "one"
TIMESTAMP = "timestamp.txt"  # nbgrader's


@dataclass(frozen=True)
class Layout:
    """How one platform lays a class out.

    recognised   choose the entries that bear the platform's names
    hand_ins     say what was handed in as those
    """

    name: str
    recognised: Callable[[Entries], list[os.DirEntry[str]]]
    hand_ins: Callable[[Entries, Wanted], list[HandIn]]


BY_NAMES = (
    Layout("moodle", moodle.recognised, moodle.hand_ins),
    Layout("blackboard", blackboard.recognised, blackboard.hand_ins),
    Layout("brightspace", brightspace.recognised, brightspace.hand_ins),
    Layout("gradescope", gradescope.recognised, gradescope.hand_ins),
    Layout("submitty", repositories.submitty_recognised, repositories.submitty_hand_ins),
    Layout("codegrade", repositories.codegrade_recognised, repositories.codegrade_hand_ins),
    Layout("canvas", canvas.recognised, canvas.hand_ins),
)


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
    wanted = Wanted(module, functions, roster)
    out = None if out is None else out.resolve()
    with ExitStack() as stack:
        parts = []
        for path in paths:
            place = _opened(path, stack, wanted, layout, class_zip=class_zip)
            parts.append(_contents(place, wanted, layout, out))
        hand_ins = [each for part in parts for each in part.hand_ins if out is None or each.path.resolve() != out]
        made = gather(hand_ins, roster, deadline)
        refused = [sentence for part in parts for sentence in part.refused]
        made = replace(
            made,
            ignored=tuple(name for part in parts for name in part.ignored),
            refused=tuple(dict.fromkeys([*refused, *made.refused])),
        )
        if paths and not made.candidates:
            if made.refused:
                raise UsageError(made.refused[0])
            if out is not None and any(out.is_relative_to(path.resolve()) for path in paths):
                raise UsageError(f"There is nothing to grade but {out}, which is where the results go.")
            raise nothing_but_results(paths[0])
        yield made


def evident(entries: Entries) -> str:
    """The layout whose names most of what may be graded here bears; "" where most bears none."""
    graded = sum(map(may_be_one, entries))
    counts = {each.name: sum(map(may_be_one, each.recognised(entries))) for each in BY_NAMES}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] * 2 >= graded and counts[best] else ""


# Zips of a class


@dataclass(frozen=True)
class _Opened:
    """A place to look at, what it is called, what it was unpacked from; `is_class` where that is sure."""

    path: Path
    name: str
    is_class: bool | None = None
    unpacked: Unpacked | None = None

    def fault_of(self, hand_in: HandIn, module: str) -> str:
        """Why a hand-in cannot be read, by what of its entry was not unpacked; "" where that is of no account."""
        if self.unpacked is None:
            return ""
        names = hand_in.path.relative_to(self.path).parts[:2]  # students' own folders may lie in the platform's
        lost = next((self.unpacked.lost[name] for name in names if name in self.unpacked.lost), "")
        skipped = next((self.unpacked.skipped[name] for name in names if name in self.unpacked.skipped), "")
        holds_all = is_folder_at(hand_in.path) and folder_holds_work(hand_in.path, module)
        return lost or ("" if holds_all else skipped)


def _opened(path: Path, stack: ExitStack, wanted: Wanted, layout: str, *, class_zip: bool) -> _Opened:
    """Find where to look; a zip of a class is unpacked."""
    if layout == ONE:
        return _Opened(path, Path(os.path.normpath(path.absolute())).name, False)
    if not (path.suffix.lower() == ".zip" and stat.S_ISREG(_mode(path))):
        place = _unwrapped(path)
        return _Opened(place, Path(os.path.normpath(place.absolute())).name)
    if not class_zip:
        try:
            paths = [parts for parts in parts_of(members(path)) if not any(map(is_too_long, parts))]
        except UsageError:  # whoever reads it says what is wrong with it
            return _Opened(path, path.name)
        if looks_like_class(paths):
            advice = (
                "add --class-zip if you downloaded it from your platform; if a student packed it, ask for the module"
            )
            raise UsageError(f"{quoted_path(path)} looks like a whole class: {advice}.")
        return _Opened(path, path.name)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))
    unpacked = unpack(path, folder)
    place = _only_folder(folder) or folder
    if not layout and not _is_class(place, wanted):
        return _Opened(path, path.name)  # one student's own, as `read` unpacks it
    return _Opened(place, path.stem, True, unpacked)


def _only_folder(path: Path) -> Path | None:
    """The folder that alone lies in another and bears no platform's name."""
    inner = [entry for entry in os.scandir(path) if not is_ignored(entry.name)]
    if len(inner) != 1 or not is_folder(inner[0]) or any(each.recognised(inner) for each in BY_NAMES):
        return None
    return Path(inner[0].path)


def _unwrapped(path: Path) -> Path:
    """The folder, or the one folder in it where what lies there bears a platform's names or is mostly clones."""
    try:
        inner = _only_folder(path) if path.is_dir() else None
        if inner is None:
            return path
        entries = entries_of(inner)
        clones = repositories.github_recognised(entries)
        return inner if evident(entries) or len(clones) * 2 > len(entries) else path
    except OSError:
        return path


def looks_like_class(paths: Sequence[tuple[str, ...]]) -> bool:
    """Whether a zip with these entries holds a class, and not one student's work."""
    kept = [parts for parts in paths if parts and not any(map(is_ignored, parts))]
    top = kept[0][0] if kept else ""
    if all(len(parts) > 1 and parts[0] == top for parts in kept) and not _is_of_platform(top):
        kept = [parts[1:] for parts in kept]  # all in one folder
    graded = [parts for parts in kept if Path(parts[-1]).suffix.lower() in CAPS]
    loose = [parts[0] for parts in graded if len(parts) == 1]
    tops = {parts[0] for parts in graded or kept}
    return (
        METADATA in [parts[0] for parts in kept]
        or any(parts[-1] == SETTINGS and len(parts) in (2, 3) for parts in kept)
        or any(sum(map(_is_of_platform, names)) * 2 > len(names) for names in (loose, tops) if names)
    )


def _is_of_platform(name: str) -> bool:
    patterns = (moodle.ENTRY_NAME, blackboard.FILE_NAME, brightspace.ENTRY_NAME, repositories.CODEGRADE_NAME)
    return bool(canvas.readings(name)) or any(pattern.fullmatch(name) for pattern in patterns)


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # nothing there, or nothing that this user may look at: `place_at` or `read` says so
        return 0


def _is_class(folder: Path, wanted: Wanted) -> bool:
    """Whether a folder is one of submissions: a platform's, or without a module of its own, or with others' beside."""
    try:
        entries = entries_of(folder)
    except (OSError, ValueError):
        return False
    own = [entry for entry in entries if is_module(entry, wanted.module)]
    others = [entry for entry in entries if entry not in own]
    if not own:
        return bool(others)
    beside = len(works_beside(others, wanted.module, wanted.functions))
    named = max(sum(map(may_be_one, each.recognised(others))) for each in BY_NAMES)
    return max(beside, named) >= (1 if all(map(is_folder, own)) else 2)


# What lies at one place


@dataclass(frozen=True)
class _Contents:
    """What was handed in at one place, the names there of what nobody did, and why somebody's is not graded."""

    hand_ins: Sequence[HandIn]
    ignored: Sequence[str] = ()
    refused: Sequence[str] = ()


def _contents(opened: _Opened, wanted: Wanted, layout: str, out: Path | None) -> _Contents:
    is_class = opened.is_class
    if is_class is None and stat.S_ISDIR(_mode(opened.path)):
        is_class = layout != "" or _is_class(opened.path, wanted) or None
    place = place_at(opened.path, wanted.module, out, is_class=is_class)
    read = _class(place, opened.name, wanted, layout) if place.is_class else _Contents(_plain(place, wanted.module))
    hidden = hidden_entries(place) if place.is_class else []
    work = [entry.name for entry in hidden if holds_work(entry, wanted.module)]
    dotted = [f"{quoted(name)} is not graded, since its name begins with a dot" for name in work]
    return _Contents(
        [replace(each, fault=opened.fault_of(each, wanted.module)) for each in read.hand_ins],
        [*read.ignored, *(entry.name for entry in hidden if entry.name not in work)],
        [
            *read.refused,
            *(f"{sentence}: rename it if it is somebody's work." for sentence in dotted),
            *sorted(opened.unpacked.refused if opened.unpacked else ()),
        ],
    )


def _class(place: Place, name: str, wanted: Wanted, layout: str) -> _Contents:
    chosen = layout or evident(place.entries)
    for platform in BY_NAMES:
        if platform.name == chosen and (known := platform.recognised(place.entries)):
            return _with_others(place, known, platform.hand_ins(known, wanted), wanted.module)
    if layout in ("", GITHUB):
        # The class as repositories, where most of what holds work is one and it is clear where usernames begin.
        clones = repositories.github_recognised(place.entries)
        works = [entry for entry in place.entries if entry in clones or holds_work(entry, wanted.module)]
        if layout or len(clones) * 2 > len(works):
            hand_ins = repositories.github_hand_ins(clones, name, wanted)
            paths = {each.path for each in hand_ins}
            if hand_ins:
                known = [entry for entry in clones if Path(entry.path) in paths]
                return _with_others(place, known, hand_ins, wanted.module)
    if layout not in ("", PLAIN):
        raise UsageError(f"{quoted_path(place.path)} holds nothing with the names that {layout} gives.")
    plain = _plain(place, wanted.module)
    nameless = [each for each in plain if each.path.name.partition(".")[0] == wanted.module and len(plain) > 1]
    named = [each for each in plain if each not in nameless]
    if 2 * sum(each.submitted is not None for each in named) <= len(named):  # then nbgrader did not write the times
        named = [replace(each, submitted=None) for each in named]
    strange = [entry.name for entry in place.entries if not may_be_one(entry)]
    refused = [_nameless(each.path.name, name) for each in nameless]
    return _Contents(named, [*place.left_out, *strange] if plain else [name], refused)


def _with_others(place: Place, known: Entries, hand_ins: Sequence[HandIn], module: str) -> _Contents:
    """What a platform laid out, and beside it what others handed in: nobody's work is lost where it lies."""
    rest = [entry for entry in place.entries if entry not in known]
    work = [entry for entry in rest if holds_work(entry, module)]
    nameless = [entry for entry in work if is_module(entry, module)]
    others = [_hand_in(candidate_of(place, entry, module), module) for entry in work if entry not in nameless]
    refused = [_nameless(entry.name, place.path.name) for entry in nameless]
    ignored = [*place.left_out, *(entry.name for entry in rest if entry not in work)]
    return _Contents([*hand_ins, *others], ignored, refused)


def _nameless(name: str, folder: str) -> str:
    whose = f"{quoted(name)} lies among the submissions in {quoted(folder)} and does not say whose it is"
    return f"{whose}: put it into a folder with the student's name."


def _plain(place: Place, module: str) -> list[HandIn]:
    return [_hand_in(candidate, module) for candidate in candidates_at(place, module)]


def _hand_in(candidate: Candidate, module: str) -> HandIn:
    submitted = _collected(candidate.path, module) if stat.S_ISDIR(_mode(candidate.path)) else None
    return HandIn((Owner(candidate.student),), candidate.path, candidate.shown, submitted=submitted)


def _collected(folder: Path, module: str) -> datetime | None:
    """When nbgrader collected what lies in <student>/<assignment>/, where it is clear which assignment counts.

    (nbgrader's docs, exchange_api.rst: timestamp.txt beside the work.)
    """

    def entries_or_none(place: Path) -> list[os.DirEntry[str]]:
        try:
            return entries_of(place)
        except OSError:
            return []

    names = {f"{module}.py", f"{module}.ipynb"}
    inner = [Path(entry.path) for entry in entries_or_none(folder) if is_folder(entry)]
    having = [place for place in inner if names & {entry.name for entry in entries_or_none(place)}]
    if len(having) != 1:
        return None
    try:
        with open_regular(having[0] / TIMESTAMP) as stream:
            return moment_or_none(stream.read(100).decode("utf-8", "replace"))
    except OSError:
        return None
