"""The ways in which platforms hand a class over, told apart: which it is, and what each student handed in.

    Canvas             diazana_LATE_1001_555_policy_gradient-1.py, all in one folder or zip
    Moodle             Ana Diaz_12345_assignsubmission_file/…, or _file_ before the name of a file
    Gradescope         submission_123/… beside submission_metadata.yml
    GitHub Classroom   assignment-username/…, each a repository
    nbgrader           submitted/<student>/<assignment>/…, with timestamp.txt; else as anything else
    anything else      as `finding.find` says

A layout is recognised by the names that a platform gives, never by what a student may choose: nothing in one submission
changes what becomes of another. Beside what bears such names, whatever holds work is graded as anything else is; what
holds none is left out and named, and makes no layout another.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms import canvas, github, moodle
from autograder.platforms.gradescope import download as gradescope
from autograder.platforms.hand_in import Gathered, HandIn, gather, is_folder, quoted_path
from autograder.platforms.nbgrader.collected import collected
from autograder.submissions.class_zips import METADATA, members, unpack
from autograder.submissions.finding import (
    Place,
    candidate_of,
    candidates_at,
    holds_work,
    may_be_one,
    nothing_but_results,
    place_at,
)
from autograder.submissions.submission import CAPS, Candidate
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.folders import entries_of, is_ignored

LAYOUTS = (
    (canvas.recognised, canvas.hand_ins),
    (moodle.recognised, moodle.hand_ins),
    (gradescope.recognised, gradescope.hand_ins),
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
) -> Iterator[Gathered]:
    """What lies at `paths`, in any layout. Zips of a whole class are unpacked for as long as this is open.

    out         where the results will go, which may lie among submissions
    class_zip   zips at `paths` may hold a class: staff downloaded them. A student could pack one that looks like it
    raises      UsageError where there is nothing to grade, or where two submissions of a student cannot be ordered
    """
    target = None if out is None else out.resolve()
    with ExitStack() as stack:
        places = [_unpacked(path, stack, class_zip=class_zip) for path in paths]
        parts = [_at(place_at(where, module, target), name, module, roster) for where, name in places]
        found = [one for part in parts for one in part.hand_ins if target is None or one.path.resolve() != target]
        if paths and not found:
            raise _nothing([where for where, _ in places], out)
        yield replace(gather(found, roster, deadline), ignored=tuple(name for part in parts for name in part.ignored))


def _nothing(places: Sequence[Path], out: Path | None) -> UsageError:
    """What to raise where nothing but results lies at the places."""
    if out is not None and any(out.resolve().is_relative_to(place.resolve()) for place in places):
        return UsageError(f"There is nothing to grade but {out}, which is where the results go.")
    return nothing_but_results(places[0])


def _unpacked(path: Path, stack: ExitStack, *, class_zip: bool) -> tuple[Path, str]:
    """Where to look, and what the place is called; a zip of a class is unpacked."""
    is_zip = path.suffix.lower() == ".zip" and stat.S_ISREG(_mode(path))
    if not (is_zip and _is_class([member.filename for member in members(path)])):
        return path, Path(os.path.normpath(path.absolute())).name
    if not class_zip:
        advice = "add --class-zip if you downloaded it from your platform; if a student packed it, ask for the module"
        raise UsageError(f"{quoted_path(path)} looks like a whole class: {advice}.")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="autograder-")))
    unpack(path, folder)
    inner = entries_of(folder)
    wrapped = len(inner) == 1 and is_folder(inner[0]) and not any(recognised(inner) for recognised, _ in LAYOUTS)
    return Path(inner[0].path) if wrapped else folder, path.stem


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (OSError, ValueError):  # nothing there, or nothing that this user may look at: `place_at` or `read` says so
        return 0


def _is_class(names: Sequence[str]) -> bool:
    """Whether a zip with these names holds a class, and not one student's work."""
    paths = [name.replace("\\", "/").split("/") for name in names]
    paths = [parts for parts in paths if not any(map(is_ignored, parts))]
    top = paths[0][0] if paths else ""
    if all(len(parts) > 1 and parts[0] == top for parts in paths) and not moodle.ENTRY_NAME.fullmatch(top):
        paths = [parts[1:] for parts in paths]  # all in one folder
    graded = [parts for parts in paths if Path(parts[-1]).suffix.lower() in CAPS]
    loose = [parts[0] for parts in graded if len(parts) == 1]
    of_canvas = bool(loose) and all(map(canvas.FILE_NAME.fullmatch, loose))
    of_moodle = [parts[0] for parts in graded or paths]
    return (
        of_canvas
        or METADATA in [parts[0] for parts in paths]
        or (bool(of_moodle) and all(map(moodle.ENTRY_NAME.fullmatch, of_moodle)))
    )


@dataclass(frozen=True)
class _Found:
    """What was handed in at one place, and the names there of what nobody did."""

    hand_ins: Sequence[HandIn]
    ignored: Sequence[str]


def _at(place: Place, name: str, module: str, roster: Roster | None) -> _Found:
    for recognised, hand_ins in LAYOUTS:
        if known := recognised(place.entries):
            return _with_others(place, known, hand_ins(known, module), module)
    repositories = github.recognised(place.entries, module)
    if found := github.hand_ins(repositories, name, roster):
        return _with_others(place, repositories, found, module)
    plain = [_plain(candidate, module) for candidate in candidates_at(place, module)]
    strange = [entry.name for entry in place.entries if not may_be_one(entry)]
    return _Found(plain, [*place.left_out, *strange] if plain else [name])


def _with_others(place: Place, known: Sequence[os.DirEntry[str]], found: Sequence[HandIn], module: str) -> _Found:
    """What a platform laid out, and beside it what others handed in: nobody's work is lost where it lies."""
    rest = [entry for entry in place.entries if entry not in known]
    work = [entry for entry in rest if holds_work(entry, module)]
    others = [_plain(candidate_of(place, entry, module), module) for entry in work]
    return _Found([*found, *others], [*place.left_out, *(entry.name for entry in rest if entry not in work)])


def _plain(candidate: Candidate, module: str) -> HandIn:
    submitted = collected(candidate.path, module) if stat.S_ISDIR(_mode(candidate.path)) else None
    return HandIn(((candidate.student,),), candidate.path, candidate.shown, submitted=submitted)
