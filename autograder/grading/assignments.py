"""The course: a folder that holds `fixtures/<assignment>/items.toml`, found upwards from where one stands.

A handout is such a folder too; one that holds `solution/` as well is where staff work.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autograder.grading.items import Assignment, load_assignment
from autograder.vocabulary.errors import FixtureError, UsageError


def find_course(start: Path) -> Path:
    """The course that `start` lies in: the closest folder upwards with fixtures and solutions, else with fixtures.

    Raises UsageError where there is none.
    """
    found = _with_fixtures(start)
    if not found:
        raise UsageError(
            f"There is no course here: neither {start.resolve()} nor a folder above it holds "
            "fixtures/<assignment>/items.toml. Go into the course's folder, or name it: --course DIR."
        )
    return next((folder for folder in found if (folder / "solution").is_dir()), found[0])


def nearest_root(start: Path) -> Path:
    """The closest folder that holds fixtures, handout or course: from `start` upwards, else from the current folder.

    Raises UsageError where there is none.
    """
    found = _with_fixtures(start) or _with_fixtures(Path.cwd())
    return found[0] if found else find_course(start)


def find_assignments(root: Path, name: str | None = None) -> list[Assignment]:
    """All assignments of the course `root` that can be read, or `name` alone.

    One that is half written stops no command about another: `unreadable` names it. Raises UsageError where there is
    none of that name, FixtureError where none can be read.
    """
    folders = _folders(root)
    if not folders:
        raise FixtureError(f"There is no assignment under {root / 'fixtures'}: no folder there holds items.toml.")
    names = [folder.name for folder in folders]
    if name is not None and name not in names:
        raise UsageError(f"There is no assignment {name!r}. Name one with --assignment: {', '.join(names)}.")
    if name is not None:
        return [load_assignment(folders[names.index(name)])]
    found, broken = _read(folders)
    if not found:
        raise FixtureError(next(iter(broken.values())))
    return found


def find_assignment(root: Path, name: str | None = None) -> Assignment:
    """The assignment `name` of the course `root`, or the only one there; UsageError where it is not clear which."""
    found = find_assignments(root, name)
    if len(found) > 1:
        names = ", ".join(assignment.name for assignment in found)
        raise UsageError(f"There are several assignments. Name one with --assignment: {names}.")
    return found[0]


def unreadable(root: Path) -> dict[str, str]:
    """The assignments of the course `root` that cannot be read: folder → what is wrong."""
    return _read(_folders(root))[1]


def _read(folders: Sequence[Path]) -> tuple[list[Assignment], dict[str, str]]:
    """The assignments in these folders that can be read, and of the others what is wrong, by folder."""
    found: list[Assignment] = []
    broken: dict[str, str] = {}
    for folder in folders:
        try:
            found.append(load_assignment(folder))
        except FixtureError as error:
            broken[folder.name] = str(error)
    return found, broken


def _folders(root: Path) -> list[Path]:
    try:
        return sorted(path.parent for path in (root / "fixtures").glob("*/items.toml"))
    except PermissionError:
        return []


def _with_fixtures(start: Path) -> list[Path]:
    """Folders from `start` upwards that hold fixtures, the closest first; what may not be looked into holds none."""
    return [folder for folder in (start.resolve(), *start.resolve().parents) if _folders(folder)]
