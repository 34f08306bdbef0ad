"""GitHub Classroom: clones named assignment-username, each a repository."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from autograder.gradebook.roster import Roster
from autograder.platforms.hand_in import HandIn, is_folder
from autograder.submissions.finding import holds_work
from autograder.submissions.submission import shown_name


def recognised(entries: Sequence[os.DirEntry[str]], module: str) -> list[os.DirEntry[str]]:
    """The repositories among these; none where somebody's work is in no repository: then it is another layout."""
    found = [entry for entry in entries if is_folder(entry) and (Path(entry.path) / ".git").is_dir()]
    return [] if any(holds_work(entry, module) for entry in entries if entry not in found) else found


def hand_ins(repositories: Sequence[os.DirEntry[str]], name: str, roster: Roster | None) -> list[HandIn]:
    """Repositories that share the assignment's name; nothing where it is not clear where the usernames begin."""
    cut = _username_at([entry.name for entry in repositories], name, roster)
    found = [HandIn(((entry.name[cut:],),), Path(entry.path), shown_name(entry.name)) for entry in repositories]
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
