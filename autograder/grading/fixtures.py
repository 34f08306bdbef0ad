"""The set of stored cases that grading uses: read whole, and only as its manifest lists it.

`manifest.json` lists every file with its SHA-256; a file that differs is never graded with.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.grading.cases import Case, decode
from autograder.grading.items import Assignment, Item
from autograder.sandbox.calls import Request
from autograder.sandbox.interpreter import withhold
from autograder.vocabulary.errors import FixtureError

SCHEMA = 1
MANIFEST = "manifest.json"
STORED_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*")  # no way up, no way out, no second spelling of a folder


@dataclass(frozen=True)
class Fixtures:
    """All stored cases of an assignment that this copy of the kit holds.

    curves      what is shown and not judged: they expect the solution's own series
    hints       mistake slug → its hint
    sha256      of the manifest: one name for the whole set
    """

    cases: tuple[Case, ...]
    hints: Mapping[str, str]
    sha256: str
    curves: tuple[Case, ...] = ()

    @property
    def holds_hidden(self) -> bool:
        """Whether there is a hidden case among them: in a student's folder there is none."""
        return any(case.visibility == "hidden" for case in self.cases)

    def of_item(self, item_id: str) -> tuple[Case, ...]:
        """The cases of one item."""
        return self._by_item.get(item_id, ())

    def requests(self, items: tuple[Item, ...], curves: tuple[Item, ...] = ()) -> Mapping[str, Request]:
        """The calls of these items and curves by the id of their case, hidden ones last.

        What is shown before them cannot tell of them. They are the same for each submission: put together once.
        """
        if (items, curves) not in self._requests:
            drawn = {curve.id for curve in curves}
            cases = [case for item in items for case in self.of_item(item.id)]
            cases += [case for case in self.curves if case.id in drawn]
            cases.sort(key=lambda case: case.visibility == "hidden")
            named = {item.id: item for item in (*items, *curves)}
            self._requests[items, curves] = {case.id: case.request(named[case.item]) for case in cases}
        return self._requests[items, curves]

    @functools.cached_property
    def _by_item(self) -> dict[str, tuple[Case, ...]]:
        ids = dict.fromkeys(case.item for case in self.cases)
        return {item: tuple(case for case in self.cases if case.item == item) for item in ids}

    @functools.cached_property
    def _requests(self) -> dict[tuple[tuple[Item, ...], tuple[Item, ...]], Mapping[str, Request]]:
        return {}


def read_fixtures(assignment: Assignment, *, hidden: bool = True, folder: Path | None = None) -> Fixtures:
    """The stored cases, public ones only where `hidden` is false; `folder` may hold another term's set.

    Raises FixtureError where a file is missing, is not what the manifest says, or lacks a case that an item lists.
    Files that are no tensors (items.toml, probes.py) are the assignment's own: another term's set must fit them.
    """
    folder = folder or assignment.folder
    manifest_bytes = _read(folder / MANIFEST)
    manifest = _parse(manifest_bytes, folder / MANIFEST)
    if manifest["assignment"] != assignment.name:
        raise FixtureError(f"{folder} holds fixtures of {manifest['assignment']!r}, not of {assignment.name!r}.")
    names = [name for name in manifest["files"] if hidden or not name.startswith("hidden/")]
    if any(name.startswith("hidden/") for name in names):
        withhold(folder.resolve())
        withhold(assignment.solution.parent)
    cases: list[Case] = []
    for name in names:
        stored = name.endswith(".safetensors")
        path = (folder if stored else assignment.folder) / name
        data = _read(path)
        listed, kept = manifest["files"][name], data if stored else plain_lines(data)
        if hashlib.sha256(kept).hexdigest() != listed and not _says_the_same(data, folder / name, listed):
            raise FixtureError(
                f"{path} is not the file that {folder / MANIFEST} lists (its SHA-256 differs). "
                f"Restore it, or run `{_mending(manifest, assignment, folder)}`."
            )
        if stored:
            cases += decode(data, path)
    _check_complete(assignment, cases, hidden=hidden)
    graded, shown = _in_order(assignment.items, cases), _in_order(assignment.curves, cases)
    sha256 = hashlib.sha256(plain_lines(manifest_bytes)).hexdigest()
    return Fixtures(tuple(graded), manifest["hints"], sha256, tuple(shown))


def plain_lines(text: bytes) -> bytes:
    """Text with the line ends that it was made with: git on Windows may have written others."""
    return text.replace(b"\r\n", b"\n")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise FixtureError(
            f"{path} cannot be read: {error.strerror}. Run `autograder fixtures regenerate` to make the fixtures."
        ) from error


def _says_the_same(data: bytes, copy: Path, sha256: str) -> bool:
    """Whether items.toml differs from the copy in the set, which is as it was stored, in comments and layout alone."""
    if copy.suffix != ".toml" or not copy.is_file():
        return False
    stored = copy.read_bytes()
    try:
        same = tomllib.loads(stored.decode()) == tomllib.loads(data.decode())
    except ValueError:
        return False
    return same and hashlib.sha256(plain_lines(stored)).hexdigest() == sha256


def _mending(manifest: Mapping[str, Any], assignment: Assignment, folder: Path) -> str:
    """The command that makes the set anew, with the options that it was made with."""
    term = manifest.get("term")
    if not isinstance(term, dict):
        return "autograder fixtures regenerate"
    made = term.get("variants")
    variants = f" --variants {made['count']}" if isinstance(made, dict) and "count" in made else ""
    options = f"--assignment {assignment.name} --term {term.get('name')} --secret-file FILE --out {folder}{variants}"
    return f"autograder fixtures regenerate {options}"


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError):
        manifest = None
    if not _is_manifest(manifest):
        raise FixtureError(
            f"{path} is not a manifest of fixtures. Restore it, or run `autograder fixtures regenerate`."
        )
    if strange := [name for name in manifest["files"] if not STORED_NAME.fullmatch(name)]:
        raise FixtureError(f"{path} lists {strange[0]!r}, which is not the name of a file in its folder. Restore it.")
    return dict(manifest)


def _is_manifest(found: Any) -> bool:
    kinds = {"schema": int, "assignment": str, "files": dict, "hints": dict}
    return (
        isinstance(found, dict)
        and all(isinstance(found.get(key), kind) for key, kind in kinds.items())
        and found["schema"] == SCHEMA
        and found["files"].keys() >= {"items.toml", "probes.py"}
    )


def _check_complete(assignment: Assignment, cases: list[Case], *, hidden: bool) -> None:
    found = {(case.item, case.visibility, case.id) for case in cases}
    for item in (*assignment.items, *assignment.curves):
        listed = [("public", name) for name in item.public] + [("hidden", name) for name in item.hidden if hidden]
        for visibility, name in listed:
            if (item.id, visibility, name) not in found:
                raise FixtureError(f"Item {item.id} lists the {visibility} case {name}, which no stored file holds.")


def _in_order(items: Iterable[Item], cases: list[Case]) -> list[Case]:
    """Sort the cases of these items by item; public ones come first, those that an item lists before derived ones."""
    places = {item.id: place for place, item in enumerate(items)}
    listed = {name: n for item in items for n, name in enumerate((*item.public, *item.hidden))}
    of_items = [case for case in cases if case.item in places]
    return sorted(
        of_items,
        key=lambda case: (places[case.item], case.visibility == "hidden", listed.get(case.id, len(listed))),
    )
