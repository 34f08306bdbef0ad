"""The layouts that are known by the names which a platform gives, and what speaks for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.platforms import canvas, moodle
from autograder.platforms.gradebooks import blackboard, brightspace
from autograder.platforms.gradescope import download as gradescope
from autograder.platforms.hand_in import HandIn, Wanted
from autograder.platforms.repositories import codegrade, submitty
from autograder.submissions.finding import METADATA, SETTINGS, may_be_one
from autograder.submissions.submission import CAPS
from autograder.vocabulary.files import is_ignored

Entries = Sequence[os.DirEntry[str]]


@dataclass(frozen=True)
class Layout:
    """How one platform lays a class out.

    recognised   the entries that bear the platform's names
    hand_ins     what was handed in as those, which may be `recognised`
    """

    name: str
    recognised: Callable[[Entries], list[os.DirEntry[str]]]
    hand_ins: Callable[[Entries, Wanted], list[HandIn]]


BY_NAMES = (
    Layout("moodle", moodle.recognised, moodle.hand_ins),
    Layout("blackboard", blackboard.recognised, blackboard.hand_ins),
    Layout("brightspace", brightspace.recognised, brightspace.hand_ins),
    Layout("gradescope", gradescope.recognised, gradescope.hand_ins),
    Layout("submitty", submitty.recognised, submitty.hand_ins),
    Layout("codegrade", codegrade.recognised, codegrade.hand_ins),
    Layout("canvas", canvas.recognised, canvas.hand_ins),
)
GITHUB, PLAIN, ONE = "github", "plain", "one"
NAMES = (*(one.name for one in BY_NAMES), GITHUB, PLAIN, ONE)


def evident(entries: Entries) -> str:
    """The layout whose names most of what may be graded here bears; "" where most bears none."""
    graded = [entry for entry in entries if may_be_one(entry)]
    counts = {one.name: sum(may_be_one(entry) for entry in one.recognised(entries)) for one in BY_NAMES}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] * 2 >= len(graded) and counts[best] else ""


def looks_like_class(paths: Sequence[tuple[str, ...]]) -> bool:
    """Whether a zip with these entries holds a class, and not one student's work."""
    kept = [parts for parts in paths if parts and not any(map(is_ignored, parts))]
    top = kept[0][0] if kept else ""
    if all(len(parts) > 1 and parts[0] == top for parts in kept) and not _is_of_platform(top):
        kept = [parts[1:] for parts in kept]  # all in one folder
    graded = [parts for parts in kept if Path(parts[-1]).suffix.lower() in CAPS]
    loose = [parts[0] for parts in graded if len(parts) == 1]
    tops = {parts[0] for parts in graded or kept}
    return (
        (bool(loose) and sum(map(_is_of_platform, loose)) * 2 > len(loose))
        or METADATA in [parts[0] for parts in kept]
        or any(parts[-1] == SETTINGS and len(parts) in (2, 3) for parts in kept)
        or (bool(tops) and sum(map(_is_of_platform, tops)) * 2 > len(tops))
    )


def _is_of_platform(name: str) -> bool:
    patterns = (moodle.ENTRY_NAME, blackboard.FILE_NAME, brightspace.ENTRY_NAME, codegrade.FOLDER_NAME)
    return bool(canvas.readings(name)) or any(pattern.fullmatch(name) for pattern in patterns)
