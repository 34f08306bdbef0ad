"""Clones named <assignment>-<username>, each a repository, as an organisation on GitHub holds them.

GitHub Classroom, which made them so, closed on 28 August 2026; `gh repo clone` and scripts of courses keep the names.
Classroom 50 writes <classroom>-<assignment>-<username>, all of it small, and `gh teacher download` clones a class into
<classroom>-<assignment>_submissions_<time>, with `result.json` and `results.json` in each clone and `scores.csv` beside
them (github.com/foundation50/classroom50: cli/gh-student/internal/reponame, cli/gh-teacher/internal/download). A group
hands in by the repository of the member who accepted first: a roster with a column `group` gives it to the others.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms.hand_in import HandIn, Owner, is_folder
from autograder.submissions.names import PART, likeness
from autograder.submissions.submission import shown_name
from autograder.vocabulary.files import is_there

DOWNLOADED = re.compile(r"-submissions|_submissions_\d{4}_\d\d_\d\d_T_\d\d_\d\d_\d\d")  # behind the assignment's name


def recognised(entries: Sequence[os.DirEntry[str]]) -> list[os.DirEntry[str]]:
    """The repositories among these."""
    return [entry for entry in entries if is_folder(entry) and is_there(Path(entry.path) / ".git")]


def hand_ins(
    repositories: Sequence[os.DirEntry[str]], name: str, roster: Roster | None, module: str = ""
) -> list[HandIn]:
    """Repositories that share the assignment's name; nothing where it is not clear where the usernames begin."""
    start = assignment_of([entry.name for entry in repositories], name, roster, module)
    return [
        HandIn((Owner(entry.name.removeprefix(start)),), Path(entry.path), shown_name(entry.name))
        for entry in repositories
        if start and _is_of(entry.name, start)
    ]


def assignment_of(names: Sequence[str], folder: str, roster: Roster | None, module: str = "") -> str:
    """What stands before the usernames, with its hyphen: what most names share; "" where that is not clear.

    The download's folder says it, then the roster; else it holds the module's name, where names that share more do so.
    """
    starts = Counter(name[: at + 1] for name in names for at, letter in enumerate(name[:-1]) if letter == "-")
    most = max(starts.values(), default=0)
    shared = sorted(start for start, count in starts.items() if count == most and count * 2 > len(names))
    if said := next((start for start in shared if DOWNLOADED.fullmatch(folder.removeprefix(start[:-1]))), ""):
        return said
    if roster is not None:
        known = [start for start in shared if all(_known(name, start, roster) for name in names if _is_of(name, start))]
        return known[0] if len(known) == 1 else ""
    shared = [start for start in shared if module and likeness(start, module) >= PART] or shared
    return shared[0] if len(shared) == 1 and most > 1 else ""


def _is_of(name: str, start: str) -> bool:
    return name.startswith(start) and name != start


def _known(name: str, start: str, roster: Roster) -> bool:
    return roster.person(name.removeprefix(start)) is not None
