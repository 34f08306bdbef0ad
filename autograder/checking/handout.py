"""A handout's folder: what the kit put there, and how a newer handout renews it.

What a student or an instructor wrote there is never replaced: a file is the kit's while it is as a RECORD says. The
copies of the checker and of the cases are the kit's alone, with records of their own, since git does not keep them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autograder.grading.assignment import find_assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import (
    ENGINE,
    RECORD,
    digest_at,
    digests,
    others_among,
    record_of,
    recorded,
    refuse_others,
    write_atomically,
    writing,
)
from autograder.vocabulary.text import visible

COPIES = ("autograder", "fixtures")  # folders of a handout whose contents stand elsewhere in the course
PLACES = ("", *(f"{name}/" for name in COPIES))  # each with a record


def with_records(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Add the records of its folders to the files of a handout."""
    records: dict[str, dict[str, str]] = {place: {} for place in PLACES}
    for name, digest in digests({name: data for name, data in files.items() if not name.endswith(RECORD)}).items():
        place = next((place for place in PLACES[1:] if name.startswith(place)), "")
        records[place][name.removeprefix(place)] = digest
    spelt = {f"{place}{RECORD}": record_of(record) for place, record in records.items() if record}
    return dict(sorted({**files, **spelt}.items()))


def write_handout(files: Mapping[str, bytes], target: Path, *, replace: bool = False) -> None:
    """Make `target` hold these files, with their records; what somebody else wrote there stays.

    raises   UsageError before anything is written, where one of the files would take the place of such a file
    """
    if not replace:
        refuse_others(target, _outside_copies(files))
    _renew(target, with_records(files))


def update(target: Path) -> None:
    """Renew the older handout in `target` from the one that this checker lies in, and print what of it was kept."""
    source = ENGINE.parent
    name = find_assignment(source).name
    is_handout = (target / "fixtures" / name).is_dir() and not (target / "solution").is_dir()
    if not is_handout or target.resolve() == source:
        raise UsageError(f"{target.resolve()} is no older handout of {name}: give the folder that you have worked in.")
    if not all(recorded(source / place) for place in PLACES):
        raise UsageError(f"{source} is not whole: unpack the newer zip again, with what begins with a dot.")
    with writing(target, ""):
        files = with_records({name: (source / name).read_bytes() for name in _all_recorded(source)})
        yours = others_among(target, _outside_copies(files))
        _renew(target, {name: data for name, data in files.items() if name not in yours})
    print(f"{target}: checker, cases and what you have not changed are those of {source} now.")
    print(f"Kept as you have them: {visible(', '.join(yours))}." if yours else "You had changed nothing.")


def _renew(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files of the kit's, records last, and delete what it wrote there before and does not write now."""
    for name, digest in _all_recorded(folder).items():
        if name not in files and digest_at(folder / name) == digest:
            (folder / name).unlink()
    for name in sorted(files, key=lambda name: name.endswith(RECORD)):
        write_atomically(folder / name, files[name], lasting=False)


def _all_recorded(folder: Path) -> dict[str, str]:
    return {f"{place}{name}": digest for place in PLACES for name, digest in recorded(folder / place).items()}


def _outside_copies(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if not name.startswith(PLACES[1:]) and name != RECORD}
