"""Whether the handout is what `release` would make of the solution now."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autograder.authoring.handout.release import COPIES, handout_files
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.folders import is_ignored


def stale_handout(assignment: Assignment) -> list[str]:
    """A complaint where the handout is not what `release` would make now; the copies in it need not be there at all."""
    try:
        files = handout_files(assignment)
    except ReleaseError as error:
        return [str(error)]
    absent = tuple(f"{name}/" for name in COPIES if not (assignment.handout / name).exists())
    files = {name: data for name, data in files.items() if not name.startswith(absent)}
    stale = [name for name, data in files.items() if _bytes(assignment.handout / name) != data]
    more = _unexpected(assignment.handout, files)
    if not stale and not more:
        return []
    return [f"The handout is not what release makes ({_some([*stale, *more])}): run `autograder release`."]


def _unexpected(folder: Path, files: dict[str, bytes]) -> list[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    names = (path.as_posix() for path in found if not any(is_ignored(part) for part in path.parts))
    return sorted(name for name in names if name not in files)


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
