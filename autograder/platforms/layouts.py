"""The ways in which platforms hand a class over, and what of several submissions of one student counts.

    Canvas             diazana_LATE_1001_555_policy_gradient-1.py, all in one folder or zip
    Moodle             Ana Diaz_12345_assignsubmission_file/…, or _file_ before the name of a file
    Gradescope         submission_123/… beside submission_metadata.yml
    GitHub Classroom   assignment-username/…, each a repository
    nbgrader           submitted/<student>/<assignment>/…, with timestamp.txt; else as anything else
    anything else      as `submission.find` says

A layout is recognised by the names that a platform gives, never by what a student may choose: nothing in one submission
changes what becomes of another. A student is called `<name>_<id>` as the platform writes both, or as the roster has it.
Of several submissions the latest counts that was on time, and the latest of all where none was; the others are named in
the notes.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from autograder.gradebook.roster import Roster
from autograder.platforms.gradescope_metadata import read_metadata
from autograder.submissions.class_zips import METADATA, members, unpack
from autograder.submissions.finding import find
from autograder.submissions.student_folders import is_students_own
from autograder.submissions.submission import CAPS, Candidate, shown_name, student_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.text import visible

CANVAS = re.compile(r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<id>\d+)_(?P<file>\d+)_(?P<rest>.+)", re.DOTALL)
MOODLE = re.compile(
    r"(?P<name>[^_]+)_(?P<id>\d+)_assignsubmission_(?P<kind>file|onlinetext)(_(?P<rest>.*))?", re.DOTALL
)
GRADESCOPE = re.compile(r"submission_(\d+)")
RESUBMITTED = re.compile(r"(.*?)(?:-(\d{1,4}))?", re.DOTALL)
TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*(\S{1,64})?")
TIMESTAMP = "timestamp.txt"


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
    """The class: what to grade, by student; who of the roster handed in nothing; who is in no roster."""

    candidates: tuple[Candidate, ...]
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@contextmanager
def gathered(
    paths: Sequence[Path],
    module: str,
    roster: Roster | None = None,
    deadline: datetime | None = None,
    *,
    class_zip: bool = False,
) -> Iterator[Gathered]:
    """What lies at `paths`, in any layout. Zips of a whole class are unpacked for as long as this is open.

    class_zip   zips at `paths` may hold a class: staff downloaded them. A student could pack one that looks like it
    raises      UsageError where there is nothing to grade, or where two submissions of a student cannot be ordered
    """
    with ExitStack() as stack:
        places = [_unpacked(path, stack, class_zip=class_zip) for path in paths]
        found = list(itertools.chain.from_iterable(_at(place, name, module, roster) for place, name in places))
        yield gather(found, roster, deadline)


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
        both = f"{_quoted(unique[0].path)} and {_quoted(unique[1].path)}"
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


# Layouts


def _unpacked(path: Path, stack: ExitStack, *, class_zip: bool) -> tuple[Path, str]:
    """Where to look, and what the place is called; a zip of a class is unpacked."""
    is_zip = path.suffix.lower() == ".zip" and stat.S_ISREG(_mode(path))
    if not (is_zip and _is_class([member.filename for member in members(path)])):
        return path, Path(os.path.normpath(path.absolute())).name
    if not class_zip:
        advice = "add --class-zip if you downloaded it from your platform; if a student packed it, ask for the module"
        raise UsageError(f"{_quoted(path)} looks like a whole class: {advice}.")
    return unpack(path, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))), path.stem


def _at(place: Path, name: str, module: str, roster: Roster | None) -> list[HandIn]:
    try:
        entries = _entries(place) if place.is_dir() else []
        own = is_students_own(entries, module)
    except (OSError, ValueError):
        entries, own = [], False  # `find` says what is wrong with it
    for layout in () if own else (_canvas, _moodle, _gradescope):
        if found := layout(place, entries, module):
            return found
    repositories = [] if own else _classroom(entries, name, roster)
    return repositories or [_plain(candidate, module) for candidate in find([place], module)]


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # nothing there, or nothing that this user may look at: `find` or `read` says so
        return 0


def _plain(candidate: Candidate, module: str) -> HandIn:
    submitted = _collected(candidate.path, module) if stat.S_ISDIR(_mode(candidate.path)) else None
    return HandIn(((candidate.student,),), candidate.path, candidate.shown, submitted=submitted)


def _is_class(names: Sequence[str]) -> bool:
    """Whether a zip with these names holds a class, and not one student's work."""
    paths = [name.replace("\\", "/").split("/") for name in names]
    paths = [parts for parts in paths if parts[0] != "__MACOSX" and parts[-1] != ".DS_Store"]
    top = paths[0][0] if paths else ""
    if all(len(parts) > 1 and parts[0] == top for parts in paths) and not MOODLE.fullmatch(top):
        paths = [parts[1:] for parts in paths]  # all in one folder
    tops = [parts[0] for parts in paths]
    graded = [parts[0] for parts in paths if len(parts) == 1 and Path(parts[0]).suffix.lower() in CAPS]
    canvas = bool(graded) and len(tops) == len(paths) and all(map(CANVAS.fullmatch, graded))
    return canvas or METADATA in tops or (bool(tops) and all(map(MOODLE.fullmatch, tops)))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listed:
        entries = [entry for entry in listed if not entry.name.startswith(".") and entry.name != "__MACOSX"]
    return sorted(entries, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _canvas(folder: Path, entries: Sequence[os.DirEntry[str]], module: str) -> list[HandIn]:
    files = [entry for entry in entries if not _is_folder(entry)]
    graded = [entry for entry in files if Path(entry.name).suffix.lower() in CAPS]
    if not graded or len(files) < len(entries) or not all(CANVAS.fullmatch(entry.name) for entry in graded):
        return []
    by_id: dict[str, list[tuple[re.Match[str], Path]]] = {}
    for entry in files:
        if found := CANVAS.fullmatch(entry.name):
            by_id.setdefault(found["id"], []).append((found, Path(entry.path)))
    return [_of_canvas(files_of_one, module) for files_of_one in by_id.values()]


def _of_canvas(files: Sequence[tuple[re.Match[str], Path]], module: str) -> HandIn:
    on_time = [(found, path) for found, path in files if not found["late"]] or list(files)
    newest = sorted(on_time, key=lambda file: int(file[0]["file"][:18]))
    chosen, beside = _module_and_notebook([(found["rest"], path) for found, path in newest], module)
    found = newest[-1][0]
    others = tuple(shown_name(path.name) for _, path in files if path not in (chosen, beside))
    owner = (f"{found['name']}_{found['id']}", found["id"], found["name"])
    order = max(int(match["file"][:18]) for match, path in newest if path in (chosen, beside))
    return HandIn((owner,), chosen, shown_name(chosen.name), beside, None, bool(found["late"]), order, others)


def _module_and_notebook(files: Sequence[tuple[str, Path]], module: str) -> tuple[Path, Path | None]:
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


def _moodle(folder: Path, entries: Sequence[os.DirEntry[str]], module: str) -> list[HandIn]:
    named = [(MOODLE.fullmatch(entry.name), entry) for entry in entries if _is_folder(entry) or _is_loose(entry.name)]
    by_id: dict[str, list[tuple[re.Match[str], os.DirEntry[str]]]] = {}
    for found, entry in named:
        if found is None:
            return []
        by_id.setdefault(found["id"], []).append((found, entry))
    return [_of_moodle(files, module) for files in by_id.values()]


def _is_loose(name: str) -> bool:
    return "_assignsubmission_" in name or Path(name).suffix.lower() in CAPS


def _of_moodle(files: Sequence[tuple[re.Match[str], os.DirEntry[str]]], module: str) -> HandIn:
    found = files[0][0]
    owner = (f"{found['name']}_{found['id']}", found["id"], found["name"])
    folders = [entry for match, entry in sorted(files, key=lambda one: one[0]["kind"]) if _is_folder(entry)]
    if folders:  # `file` comes before `onlinetext`
        return HandIn((owner,), Path(folders[0].path), shown_name(folders[0].name))
    loose = [(match["rest"] or "", Path(entry.path)) for match, entry in files]
    chosen, beside = _module_and_notebook(loose, module)
    return HandIn((owner,), chosen, shown_name(chosen.name), beside)


def _gradescope(folder: Path, entries: Sequence[os.DirEntry[str]], module: str) -> list[HandIn]:
    folders = [entry for entry in entries if _is_folder(entry) and GRADESCOPE.fullmatch(entry.name)]
    if not folders or not any(entry.name == METADATA and entry.is_file(follow_symlinks=False) for entry in entries):
        return []
    described = read_metadata(folder / METADATA)
    found = []
    for entry in folders:
        about = described.get(entry.name)
        owners = tuple(_of_gradescope(*submitter, entry.name) for submitter in about.submitters) if about else ()
        submitted = parse_time(about.created_at) if about else None
        owners = tuple(owner for owner in owners if owner) or ((entry.name,),)
        found.append(HandIn(owners, Path(entry.path), shown_name(entry.name), submitted=submitted))
    return found


def _of_gradescope(name: str, sid: str, email: str, folder: str) -> tuple[str, ...]:
    """What a submitter is called; a name alone, which anybody may choose, makes no two submissions one student's."""
    names = [one for one in (sid, email, name) if one]
    return (f"{name}_{sid or email or folder}", *names) if name else tuple(names)


def _collected(folder: Path, module: str) -> datetime | None:
    """When nbgrader collected what lies in <student>/<assignment>/, as far as it is clear which assignment counts."""
    names = {f"{module}.py", f"{module}.ipynb"}
    inner = [entry for entry in _safe_entries(folder) if _is_folder(entry)]
    having = [entry for entry in inner if names & {one.name for one in _safe_entries(Path(entry.path))}]
    return _timestamp(having[0]) if len(having) == 1 else None


def _safe_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return _entries(folder)
    except OSError:
        return []


def _timestamp(folder: os.DirEntry[str]) -> datetime | None:
    path = Path(folder.path) / TIMESTAMP
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as stream:
            return parse_time(stream.read(100).decode("utf-8", "replace"))
    except OSError:
        return None


def _classroom(entries: Sequence[os.DirEntry[str]], name: str, roster: Roster | None) -> list[HandIn]:
    """Repositories that share the assignment's name; nothing where it is not clear where the usernames begin."""
    folders = [entry for entry in entries if _is_folder(entry)]
    loose = [entry for entry in entries if not _is_folder(entry) and Path(entry.name).suffix.lower() in CAPS]
    if loose or not folders or not all((Path(entry.path) / ".git").is_dir() for entry in folders):
        return []
    cut = _username_at([entry.name for entry in folders], name, roster)
    found = [HandIn(((entry.name[cut:],),), Path(entry.path), shown_name(entry.name)) for entry in folders]
    return found if cut else []


def _username_at(names: Sequence[str], folder: str, roster: Roster | None) -> int:
    shared = os.path.commonprefix(names)  # noqa: RUF071 (of characters is what is meant)
    cuts = [found.end() for found in re.finditer("-", shared) if all(name[found.end() :] for name in names)]
    if folder.endswith("-submissions") and len(folder) - len("submissions") in cuts:
        return len(folder) - len("submissions")
    if roster is not None:
        known = [cut for cut in cuts if all(roster.person(name[cut:]) for name in names)]
        return known[0] if len(known) == 1 else 0
    return cuts[0] if len(cuts) == 1 and len(names) > 1 else 0


def _quoted(path: Path) -> str:
    return visible(shown_name(str(path)), 300)
