"""Gradescope: read its export of a class. What an autograder writes that runs there is in `containers.py`.

An export holds submission_123/… beside submission_metadata.yml, which says whose each is. What stands in that file is
public in what others read of it alone (`GradescopeParser` of otter-grader): `:submitters` with `:name`, `:sid` and
`:email`, and `:created_at`.
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
MAX_DEPTH = 50  # of the metadata
MAX_SUBMITTERS = 50  # of one submission
MAX_LENGTH = 300  # characters of a name


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The folders of an export among these, and last what describes them; none without that."""
    folders = [entry for entry in entries if is_folder(entry) and FOLDER_NAME.fullmatch(entry.name)]
    metadata = [entry for entry in entries if entry.name == METADATA and entry.is_file(follow_symlinks=False)]
    return [*folders, *metadata] if folders and metadata else []


def hand_ins(entries: Sequence[os.DirEntry[str]], wanted: Wanted) -> list[HandIn]:
    """Make one hand-in of each folder of an export that is `recognised`."""
    *folders, metadata = entries
    described = read_metadata(Path(metadata.path))
    made = []
    for entry in folders:
        about = described.get(entry.name, Described())
        owners = []
        for name, sid, email in about.submitters:
            identity = sid or email  # a name alone, which anybody may choose, makes no two submissions one student's
            student = f"{name}_{identity or entry.name}" if name else identity
            if student:
                owners.append(Owner(student, identity, tuple(filter(None, (email, name)))))
        submitted = moment_or_none(about.created_at)
        owners = owners or [Owner(entry.name)]
        made.append(HandIn(tuple(owners), Path(entry.path), shown_name(entry.name), submitted=submitted))
    return made


@dataclass
class Described:
    """One submission: when it was made, and its submitters by their place in the file."""

    created_at: str = ""
    people: dict[int, dict[str, str]] = field(default_factory=dict)

    @property
    def submitters(self) -> list[tuple[str, str, str]]:
        """Name, sid and email of each."""
        return [(who.get(":name", ""), who.get(":sid", ""), who.get(":email", "")) for who in self.people.values()]


def read_metadata(path: Path) -> dict[str, Described]:
    """Read what the file says of each folder. Raises UsageError where it is not Gradescope's, or PyYAML is missing.

    The file is read as a stream of events: no object is built and no alias followed, so what it says of other things
    (the output of every test of every submission) costs nothing, and a file that was made to explode does not.
    """
    try:
        import yaml
    except ModuleNotFoundError:
        advice = "python -m pip install pyyaml"
        raise UsageError(f"Reading what Gradescope exports needs the package pyyaml: {advice}.") from None
    described: dict[str, Described] = {}
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_METADATA + 1)
        if len(data) > MAX_METADATA:
            raise UsageError(f"{path} is larger than {MAX_METADATA // 2**20} MiB: is it Gradescope's?")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        for place, value in _scalars(yaml.parse(data, Loader=loader)):
            match place:
                case (str() as folder, ":created_at"):
                    described.setdefault(folder, Described()).created_at = value
                case (str() as folder, ":submitters", int() as at, ":name" | ":sid" | ":email" as key):
                    if at < MAX_SUBMITTERS:
                        people = described.setdefault(folder, Described()).people
                        people.setdefault(at, {})[key] = " ".join(value.split())[:MAX_LENGTH]
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): check its permissions.") from None
    except (yaml.YAMLError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{path} is not what Gradescope writes ({first}): download the export again.") from None
    return described


def _scalars(events: Any) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield every scalar with its place: keys of mappings, numbers in sequences. Raises ValueError where too deep."""
    place: list[str | int] = []
    expects_key: list[bool] = []  # of each open collection: whether the next node is the key of a mapping

    def advance(key: str) -> bool:
        """Move on by one node; whether it is a value, not a key."""
        if not place:
            return False
        if isinstance(place[-1], int):
            place[-1] += 1
            return True
        if expects_key[-1]:
            place[-1] = key
        expects_key[-1] = not expects_key[-1]
        return expects_key[-1]

    for event in events:
        kind = type(event).__name__
        if kind in ("MappingStartEvent", "SequenceStartEvent"):
            advance("")
            place.append(-1 if kind == "SequenceStartEvent" else "")
            expects_key.append(kind == "MappingStartEvent")
            if len(place) > MAX_DEPTH:
                raise ValueError("it is nested too deeply")
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            place.pop()
            expects_key.pop()
        elif kind == "AliasEvent":
            advance("")
        elif kind == "ScalarEvent" and advance(event.value):
            yield tuple(place), event.value
