"""Whether stored fixtures are what their generator makes: hashes, then a regeneration compared byte for byte."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from autograder.apart import apart
from autograder.build import OPEN_SECRET, regenerate, versions
from autograder.fixtures import MANIFEST, read_fixtures
from autograder.items import Assignment, load_assignment
from autograder.sandbox import Sandbox


@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    files        how many stored files were compared
    different    those that a regeneration makes otherwise, or makes no more, or makes anew
    versions     package → (at generation, here) where the two differ
    """

    files: int
    different: tuple[str, ...]
    versions: dict[str, tuple[str, str]]


def regenerate_into(folder: Path, target: Path, secret: str = OPEN_SECRET) -> int:
    """Make the fixtures of the assignment in `folder` into `target`, in a process of its own; the number of cases."""
    target.mkdir(parents=True, exist_ok=True)
    return apart(_regenerate, folder, target, secret)


def _regenerate(folder: Path, target: Path, secret: str) -> int:
    with Sandbox() as sandbox:
        return regenerate(load_assignment(folder), target, secret=secret, sandbox=sandbox)


def verify(assignment: Assignment) -> Verification:
    """Check every hash, make all fixtures anew, compare. Raises FixtureError where a file is not what was stored."""
    read_fixtures(assignment)
    with tempfile.TemporaryDirectory() as name:
        target = Path(name)
        regenerate_into(assignment.folder, target)
        stored, made = _stored(assignment.folder), _stored(target)
        different = sorted(path for path in stored.keys() | made.keys() if stored.get(path) != made.get(path))
    then = json.loads((assignment.folder / MANIFEST).read_text(encoding="utf-8")).get("versions", {})
    here = versions()
    moved = {name: (then.get(name, "none"), version) for name, version in here.items() if then.get(name) != version}
    return Verification(len(stored), tuple(different), moved)


def _stored(folder: Path) -> dict[str, bytes]:
    paths = [*folder.glob("public/*"), *folder.glob("hidden/*"), folder / MANIFEST]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
