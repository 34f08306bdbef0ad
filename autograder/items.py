"""What is graded: an assignment's items, read from its items.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.errors import FixtureError, UsageError

KIT_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Item:
    """One thing that earns points.

    points    float    2 to 8
    timeout   float    seconds of wall clock for one case
    hint      str      what to think about where no known mistake explains the answer
    """

    id: str
    function: str
    title: str
    points: float
    timeout: float
    hint: str
    public: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True)
class Assignment:
    """One assignment: its items and where its parts lie.

    folder    fixtures/<name>, which holds items.toml, manifest.json, probes.py, public/ and hidden/
    module    the name that students define their functions in, without .py
    given     modules handed to students whole; grading uses the kit's own copies
    """

    name: str
    title: str
    module: str
    folder: Path
    given: tuple[str, ...]
    load_timeout: float
    items: tuple[Item, ...]

    @property
    def functions(self) -> tuple[str, ...]:
        """The graded functions, in the order of the items."""
        return tuple(dict.fromkeys(item.function for item in self.items))

    @property
    def max_points(self) -> float:
        """The sum over items."""
        return round(sum(item.points for item in self.items), 2)

    @property
    def solution(self) -> Path:
        """The folder that instructors edit; staff only."""
        return self.folder.parent.parent / "solution" / self.name

    @property
    def handout(self) -> Path:
        """The folder that `release` makes; staff only."""
        return self.folder.parent.parent / "handout" / self.name

    def item(self, item_id: str) -> Item:
        """The item of that id; raises UsageError, naming the items there are."""
        for item in self.items:
            if item.id == item_id:
                return item
        known = ", ".join(item.id for item in self.items)
        raise UsageError(f"There is no item {item_id!r} in {self.name}. The items are: {known}.")

    def given_sources(self) -> dict[str, str]:
        """The text of each given module: beside the fixtures in a handout, from the solution in the kit."""
        return {name: self._given_path(name).read_text(encoding="utf-8") for name in self.given}

    def probes_source(self) -> str:
        """The text of probes.py."""
        return (self.folder / "probes.py").read_text(encoding="utf-8")

    def _given_path(self, name: str) -> Path:
        for folder in (self.folder, self.solution):
            if (folder / f"{name}.py").is_file():
                return folder / f"{name}.py"
        raise FixtureError(f"{name}.py of {self.name} is in neither {self.folder} nor {self.solution}.")


def load_assignment(folder: Path) -> Assignment:
    """The assignment whose fixtures lie in `folder`; raises FixtureError where items.toml is missing or wrong."""
    path = folder / "items.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return _assignment(data, folder.resolve())
    except OSError as error:
        raise FixtureError(f"{path} cannot be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise FixtureError(f"{path} is not TOML: {error}.") from error
    except (KeyError, TypeError, ValueError) as error:
        raise FixtureError(f"{path} lacks or mistypes an entry: {error}.") from error


def find_assignment(name: str | None = None, root: Path = KIT_ROOT) -> Assignment:
    """The assignment `name` under `root`, or the only one there; raises UsageError where it is not clear which."""
    folders = sorted(path.parent for path in (root / "fixtures").glob("*/items.toml"))
    names = [folder.name for folder in folders]
    if not folders:
        raise FixtureError(f"There is no assignment under {root / 'fixtures'}: no folder there holds items.toml.")
    if name is None and len(folders) == 1:
        return load_assignment(folders[0])
    if name not in names:
        asked = f"There is no assignment {name!r}" if name else "There are several assignments"
        raise UsageError(f"{asked}. Name one with --assignment: {', '.join(names)}.")
    return load_assignment(folders[names.index(name)])


def nearest_root(start: Path) -> Path:
    """The closest folder from `start` upwards that holds fixtures (a handout or the kit), else the kit itself."""
    for folder in (start.resolve(), *start.resolve().parents):
        if any((folder / "fixtures").glob("*/items.toml")):
            return folder
    return KIT_ROOT


def _assignment(data: dict[str, Any], folder: Path) -> Assignment:
    items = tuple(_item(entry) for entry in data["item"])
    ids = [item.id for item in items]
    if len(set(ids)) < len(ids):
        raise ValueError("two items share an id")
    return Assignment(
        name=str(data["assignment"]),
        title=str(data["title"]),
        module=str(data["module"]),
        folder=folder,
        given=tuple(data["given"]),
        load_timeout=float(data["load_timeout"]),
        items=items,
    )


def _item(entry: dict[str, Any]) -> Item:
    return Item(
        id=str(entry["id"]),
        function=str(entry["function"]),
        title=str(entry["title"]),
        points=float(entry["points"]),
        timeout=float(entry["timeout"]),
        hint=str(entry["hint"]),
        public=tuple(entry["public"]),
        hidden=tuple(entry.get("hidden", ())),
    )
