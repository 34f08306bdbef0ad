"""Gradescope's export of a class: submission_123/… beside submission_metadata.yml, which says whose each is.

What stands in that file is public in what others read of it alone (`GradescopeParser` of otter-grader): `:submitters`
with `:name`, `:sid` and `:email`, and `:created_at`.

That file is read as a stream of events: no object is built, no alias followed, so what it says of other things (the
output of every test of every submission) costs nothing, and a file that was made to explode does not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.platforms.hand_in import HandIn, Owner, Wanted, is_folder
from autograder.submissions.finding import MAX_METADATA, METADATA
from autograder.submissions.submission import shown_name
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.times import moment_or_none

FOLDER_NAME = re.compile(r"submission_(\d+)")
MAX_DEPTH = 50
MAX_SUBMITTERS = 50
MAX_LENGTH = 300


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The folders of an export that are among these, and last what describes them; none without that."""
    folders = [entry for entry in entries if is_folder(entry) and FOLDER_NAME.fullmatch(entry.name)]
    metadata = [entry for entry in entries if entry.name == METADATA and entry.is_file(follow_symlinks=False)]
    return [*folders, *metadata] if folders and metadata else []


def hand_ins(entries: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """What was handed in as the folders of an export, which are `recognised`."""
    *folders, metadata = entries
    described = read_metadata(Path(metadata.path))
    found = []
    for entry in folders:
        about = described.get(entry.name)
        owners = tuple(_owner(*submitter, entry.name) for submitter in about.submitters) if about else ()
        submitted = moment_or_none(about.created_at) if about else None
        owners = tuple(owner for owner in owners if owner.student) or (Owner(entry.name),)
        found.append(HandIn(owners, Path(entry.path), shown_name(entry.name), submitted=submitted))
    return found


def _owner(name: str, sid: str, email: str, folder: str) -> Owner:
    """What a submitter is called; a name alone, which anybody may choose, makes no two submissions one student's."""
    identity = sid or email
    others = tuple(one for one in (email, name) if one)
    return Owner(f"{name}_{identity or folder}" if name else identity, identity, others)


@dataclass
class Described:
    """One submission: its submitters as (name, sid, email), and when it was made."""

    created_at: str = ""
    people: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def submitters(self) -> list[tuple[str, str, str]]:
        """In the order of the file."""
        return [(one.get(":name", ""), one.get(":sid", ""), one.get(":email", "")) for one in self.people.values()]


def read_metadata(path: Path) -> dict[str, Described]:
    """Folder → what the file says of it. Raises UsageError where the file is not Gradescope's, or PyYAML is missing."""
    try:
        import yaml
    except ModuleNotFoundError:
        advice = "python -m pip install pyyaml"
        raise UsageError(f"Reading what Gradescope exports needs the package pyyaml: {advice}.") from None
    found: dict[str, Described] = {}
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_METADATA + 1)
        if len(data) > MAX_METADATA:
            raise UsageError(f"{path} is larger than {MAX_METADATA // 2**20} MiB: is it Gradescope's?")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for place, value in _scalars(yaml.parse(data, Loader=loader)):
            _note(found, place, value)
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path} is not what Gradescope writes ({first}): download the export again.") from None
    return found


def _note(found: dict[str, Described], place: tuple[str | int, ...], value: str) -> None:
    match place:
        case (str() as folder, ":created_at"):
            found.setdefault(folder, Described()).created_at = value
        case (str() as folder, ":submitters", int() as number, ":name" | ":sid" | ":email" as key) if (
            number < MAX_SUBMITTERS
        ):
            person = found.setdefault(folder, Described()).people.setdefault(number, {})
            person[key] = " ".join(value.split())[:MAX_LENGTH]
        case _:
            pass


def _scalars(events: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every scalar with its place: keys of mappings, numbers in sequences. Raises ValueError where it is too deep."""
    place: list[str | int] = []
    waiting: list[bool] = []  # of each open collection: is the next scalar a key
    for event in events:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            _advance(place, waiting, "")
            place.append(-1 if kind == "SequenceStartEvent" else "")
            waiting.append(kind == "MappingStartEvent")
            if len(place) > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            place.pop()
            waiting.pop()
        elif kind in ("ScalarEvent", "AliasEvent"):
            value = event.value if kind == "ScalarEvent" else ""
            if _advance(place, waiting, value) and kind == "ScalarEvent":
                yield tuple(place), value


def _advance(place: list[str | int], waiting: list[bool], value: str) -> bool:
    """Move on by one node; whether it is a value, not the key of a mapping."""
    if not place:
        return False
    if isinstance(place[-1], int):
        place[-1] += 1
        return True
    if waiting[-1]:
        place[-1] = value
    waiting[-1] = not waiting[-1]
    return waiting[-1]
