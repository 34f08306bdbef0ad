"""The ways in which platforms hand a class over, told apart: which it is, and what each student handed in.

    Canvas             diazana_LATE_1001_555_policy_gradient-1.py, all in one folder or zip
    Moodle             Ana Diaz_12345_assignsubmission_file/…, or _file_ before the name of a file
    Gradescope         submission_123/… beside submission_metadata.yml
    GitHub Classroom   assignment-username/…, each a repository
    nbgrader           submitted/<student>/<assignment>/…, with timestamp.txt; else as anything else
    anything else      as `finding.find` says

A layout is recognised by the names that a platform gives, never by what a student may choose: nothing in one submission
changes what becomes of another.
"""

from __future__ import annotations

import itertools
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms import canvas, github, moodle
from autograder.platforms.gradescope import download as gradescope
from autograder.platforms.hand_in import Gathered, HandIn, gather, quoted_path
from autograder.platforms.nbgrader.collected import collected
from autograder.submissions.class_zips import METADATA, members, unpack
from autograder.submissions.finding import find
from autograder.submissions.student_folders import is_students_own
from autograder.submissions.submission import CAPS, Candidate
from autograder.vocabulary.errors import UsageError


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


def _unpacked(path: Path, stack: ExitStack, *, class_zip: bool) -> tuple[Path, str]:
    """Where to look, and what the place is called; a zip of a class is unpacked."""
    is_zip = path.suffix.lower() == ".zip" and stat.S_ISREG(_mode(path))
    if not (is_zip and _is_class([member.filename for member in members(path)])):
        return path, Path(os.path.normpath(path.absolute())).name
    if not class_zip:
        advice = "add --class-zip if you downloaded it from your platform; if a student packed it, ask for the module"
        raise UsageError(f"{quoted_path(path)} looks like a whole class: {advice}.")
    return unpack(path, Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))), path.stem


def _at(place: Path, name: str, module: str, roster: Roster | None) -> list[HandIn]:
    try:
        entries = _entries(place) if place.is_dir() else []
        own = is_students_own(entries, module)
    except (OSError, ValueError):
        entries, own = [], False  # `find` says what is wrong with it
    for layout in () if own else (canvas.hand_ins, moodle.hand_ins, gradescope.hand_ins):
        if found := layout(place, entries, module):
            return found
    repositories = [] if own else github.hand_ins(entries, name, roster)
    return repositories or [_plain(candidate, module) for candidate in find([place], module)]


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # nothing there, or nothing that this user may look at: `find` or `read` says so
        return 0


def _plain(candidate: Candidate, module: str) -> HandIn:
    submitted = collected(candidate.path, module) if stat.S_ISDIR(_mode(candidate.path)) else None
    return HandIn(((candidate.student,),), candidate.path, candidate.shown, submitted=submitted)


def _is_class(names: Sequence[str]) -> bool:
    """Whether a zip with these names holds a class, and not one student's work."""
    paths = [name.replace("\\", "/").split("/") for name in names]
    paths = [parts for parts in paths if parts[0] != "__MACOSX" and parts[-1] != ".DS_Store"]
    top = paths[0][0] if paths else ""
    if all(len(parts) > 1 and parts[0] == top for parts in paths) and not moodle.ENTRY_NAME.fullmatch(top):
        paths = [parts[1:] for parts in paths]  # all in one folder
    tops = [parts[0] for parts in paths]
    graded = [parts[0] for parts in paths if len(parts) == 1 and Path(parts[0]).suffix.lower() in CAPS]
    flat = bool(graded) and len(tops) == len(paths) and all(map(canvas.FILE_NAME.fullmatch, graded))
    return flat or METADATA in tops or (bool(tops) and all(map(moodle.ENTRY_NAME.fullmatch, tops)))


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as listed:
        entries = [entry for entry in listed if not entry.name.startswith(".") and entry.name != "__MACOSX"]
    return sorted(entries, key=lambda entry: entry.name)
