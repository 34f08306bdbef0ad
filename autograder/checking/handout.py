"""A handout's folder: what the kit put there, how a newer one takes its place, and whether a newer zip lies about.

What a student or an instructor wrote there is never replaced: a file is the kit's while it is as a RECORD says. The
copies of the checker and of the cases have records of their own, since git does not keep them.
"""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

from autograder.grading.assignments import find_assignment
from autograder.grading.fixtures import MANIFEST
from autograder.grading.items import Assignment
from autograder.vocabulary import files as kept
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import RECORD, recorded, writing
from autograder.vocabulary.places import ENGINE
from autograder.vocabulary.text import visible

COPIES = ("autograder", "fixtures")  # folders of a handout whose contents stand elsewhere in the course
PLACES = ("", *(f"{name}/" for name in COPIES))


def with_records(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of a handout with the records of its folders."""
    records = {f"{place}{RECORD}": kept.record_of(kept.digests(own)) for place, own in _by_record(files).items()}
    return dict(sorted({**files, **records}.items()))


def write_handout(files: Mapping[str, bytes], target: Path, *, replace: bool = False) -> None:
    """Make `target` hold these files; what somebody else wrote there stays.

    raises   UsageError before anything is written, where one of the files would take the place of such a file
    """
    parts = _by_record(files)
    for place, own in parts.items():
        if not replace and (not place or recorded(target / place)):
            kept.refuse_others(target / place, own)
    for place, own in parts.items():
        _renew(target / place, own)


def update(target: Path) -> None:
    """Renew the older handout in `target` from the one that this checker lies in, and say what of it was kept."""
    source = ENGINE.parent
    name = find_assignment(source).name
    if not (target / "fixtures" / name).is_dir() or target.resolve() == source:
        raise UsageError(f"{target.resolve()} is no older handout of {name}: give the folder that you have worked in.")
    if not all(recorded(source / place) for place in PLACES):
        raise UsageError(f"{source} is not whole: unpack the newer zip again, with what begins with a dot.")
    with writing(target, ""):
        files = {
            place: {one: (source / place / one).read_bytes() for one in recorded(source / place)} for place in PLACES
        }
        yours = kept.others_among(target, files[""])
        files[""] = {one: data for one, data in files[""].items() if one not in yours}
        for place, own in files.items():
            _renew(target / place, own)
    print(f"{target}: checker, cases and what you have not changed are those of {source} now.")
    print(f"Kept as you have them: {visible(', '.join(yours))}." if yours else "You had changed nothing.")


def newer_zip(assignment: Assignment) -> tuple[str, ...]:
    """The note that a zip with other cases came to this machine after those in the handout's own folder, if one did."""
    folder, name = assignment.folder.parents[1], assignment.name
    manifest = assignment.folder / MANIFEST
    with contextlib.suppress(OSError, RuntimeError):  # no home, or a place that may not be looked at
        own, since = manifest.read_bytes(), manifest.stat().st_ctime  # of a zip's entries the dates say nothing
        places = (folder, folder.parent, Path.home() / "Downloads") if (folder / RECORD).is_file() else ()
        for path in [path for place in places for path in sorted(place.glob(f"{name}*.zip"))]:
            if path.stat().st_mtime > since and _member(path, f"{name}/fixtures/{name}/{MANIFEST}") not in (None, own):
                return (
                    f"{visible(str(path))} came after the cases here and holds others: README.md says how to update",
                )
    return ()


def _renew(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files of the kit's; what it wrote there before and does not write now goes."""
    before = recorded(folder)
    for name in before.keys() - files.keys():
        if kept.digest_at(folder / name) == before[name]:
            (folder / name).unlink()
    for name, data in files.items():
        kept.write_atomically(folder / name, data, lasting=False)
    kept.write_atomically(folder / RECORD, kept.record_of(kept.digests(files)))


def _member(path: Path, name: str) -> bytes | None:
    with (
        contextlib.suppress(OSError, KeyError, ValueError, RuntimeError, zipfile.BadZipFile),
        zipfile.ZipFile(path) as one,
    ):
        return one.read(name)
    return None


def _by_record(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """The files of a handout by the folder whose record names them, with their names there."""
    parts: dict[str, dict[str, bytes]] = {}
    for name, data in files.items():
        if not name.endswith(RECORD):
            place = next((place for place in PLACES[1:] if name.startswith(place)), "")
            parts.setdefault(place, {})[name.removeprefix(place)] = data
    return parts
