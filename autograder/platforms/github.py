"""Clones named assignment-username, each a repository, as an organisation on GitHub holds them.

GitHub Classroom, which made them so, closed on 28 August 2026; `gh repo clone`, Classroom 50 and scripts of courses
keep the names.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms.hand_in import HandIn, is_folder
from autograder.submissions.submission import shown_name


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The repositories among these."""
    return [entry for entry in entries if is_folder(entry) and (Path(entry.path) / ".git").exists()]


def hand_ins(repositories: Sequence[os.DirEntry[str]], name: str, roster: Roster | None) -> list[HandIn]:
    """Repositories that share the assignment's name; nothing where it is not clear where the usernames begin."""
    start = assignment_of([entry.name for entry in repositories], name, roster)
    return [
        HandIn(((entry.name.removeprefix(start),),), Path(entry.path), shown_name(entry.name))
        for entry in repositories
        if start and _is_of(entry.name, start)
    ]


def assignment_of(names: Sequence[str], folder: str, roster: Roster | None) -> str:
    """What stands before the usernames, with its hyphen: what most names share; "" where that is not clear."""
    starts = Counter(name[: at + 1] for name in names for at, letter in enumerate(name[:-1]) if letter == "-")
    most = max(starts.values(), default=0)
    shared = sorted(start for start, count in starts.items() if count == most and count * 2 > len(names))
    if folder.endswith("-submissions") and folder.removesuffix("submissions") in shared:
        return folder.removesuffix("submissions")
    if roster is not None:
        known = [start for start in shared if all(_known(name, start, roster) for name in names if _is_of(name, start))]
        return known[0] if len(known) == 1 else ""
    return shared[0] if len(shared) == 1 and most > 1 else ""


def _is_of(name: str, start: str) -> bool:
    return name.startswith(start) and name != start


def _known(name: str, start: str, roster: Roster) -> bool:
    return roster.person(name.removeprefix(start)) is not None
