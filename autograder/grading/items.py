"""What is graded: an assignment's items, read from its items.toml."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.sandbox.calls import MEMORY_MEGABYTES, OUTPUT_MEGABYTES
from autograder.vocabulary.errors import FixtureError, UsageError

UNTOUCHED = "untouched.py"
LOAD_TIMEOUT, TIMEOUT = 20.0, 5.0  # seconds, where items.toml says nothing
LEAST_BUDGET, MOST_BUDGET = 60.0, 240.0  # seconds of a whole submission; else four times the longest limit of a call
PACKAGES = ("torch", "einops", "numpy", "matplotlib", "tqdm")  # what an answer may use, where nothing else is said
ASSIGNMENT_KEYS = frozenset(
    {
        "assignment",
        "title",
        "module",
        "packages",
        "given",
        "also",
        "load_timeout",
        "budget",
        "points",
        "item",
        "curve",
        "renamed",
    }
)
CURVE_KEYS = frozenset({"id", "function", "title", "timeout"})
BUDGETS = frozenset({"cpu", "memory_megabytes", "output_megabytes"})  # the assignment's, or an item's own
LISTS = ("public", "hidden", "laws", "draws", "parts", "examples", "calls")
ITEM_KEYS = frozenset({"id", "function", "title", "points", "timeout", "hint", "hints", *LISTS})


@dataclass(frozen=True)
class Item:
    """One thing that earns points.

    points             float    2 to 8; 0 for a curve, which is shown and earns nothing
    timeout            float    seconds of wall clock for one case
    cpu                float    seconds of processor time for one case, over all threads; twice `timeout` if not given
    memory_megabytes   float    what one case may hold beyond what torch takes
    output_megabytes   float    what one case may print
    hint               str      what to think about where no known mistake explains the answer
    calls              graded functions that an answer may call: where they fail, they are where to start
    hints              what to think about where it is one public case that fails first, or one of several values of a
                       case, by its name: said instead of `hint`, and where that would be about something else
    laws               that it judges; its cases are derived from them, besides those in `public` and `hidden`
    draws              of the function's declaration that laws judge it over; the usual one if none is said
    parts              of what comes back whose values laws judge; all of them if none is said
    examples           of the declaration: public cases with fixed numbers
    """

    id: str
    function: str
    title: str
    points: float
    timeout: float
    hint: str
    public: tuple[str, ...]
    hidden: tuple[str, ...]
    cpu: float = math.inf
    memory_megabytes: float = MEMORY_MEGABYTES
    output_megabytes: float = OUTPUT_MEGABYTES
    calls: tuple[str, ...] = ()
    hints: Mapping[str, str] = field(default_factory=dict, hash=False)
    laws: tuple[str, ...] = ()
    draws: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assignment:
    """One assignment: its items and where its parts lie.

    folder    fixtures/<name>, which holds items.toml, manifest.json, probes.py, public/ and hidden/
    module    the name that students define their functions in, without .py
    given     modules handed to students whole; grading uses the kit's own copies
    also      files of the solution's folder that students get besides; grading needs none of them
    budget    seconds of wall clock that a whole submission may take: all cases, then counterexamples, then curves
    curves    runs whose series are shown beside the solution's; each has one public case of its own name
    packages  what an answer may use: students install it, and a worker has it warm
    renamed   what an item or function was called in earlier handouts → its name now, and since when
    """

    name: str
    title: str
    module: str
    folder: Path
    given: tuple[str, ...]
    load_timeout: float
    items: tuple[Item, ...]
    also: tuple[str, ...] = ()
    curves: tuple[Item, ...] = ()
    packages: tuple[str, ...] = PACKAGES
    budget: float = LEAST_BUDGET
    renamed: Mapping[str, tuple[str, str]] = field(default_factory=dict, hash=False)

    @property
    def needs_torch(self) -> bool:
        """Whether answers are of tensors; else they are of arrays, lists and numbers."""
        return "torch" in self.packages

    @property
    def only_packages(self) -> tuple[str, ...] | None:
        """What an answer may import and nothing else; None where the assignment leaves none of the usual out."""
        return None if set(self.packages) == set(PACKAGES) else self.packages

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
        """The item of that id, or that once had it; raises UsageError, naming the items there are."""
        for item in self.items:
            if item.id in (item_id, *self.renamed.get(item_id, ())):
                return item
        known = ", ".join(item.id for item in self.items)
        raise UsageError(f"There is no item {item_id!r} in {self.name}. The items are: {known}.")

    def given_sources(self) -> dict[str, str]:
        """The text of each given module: beside the fixtures in a handout, from the solution in the kit."""
        return {name: self._given_path(name).read_text(encoding="utf-8") for name in self.given}

    def probes_source(self) -> str:
        """The text of probes.py."""
        return (self.folder / "probes.py").read_text(encoding="utf-8")

    def untouched_source(self) -> str:
        """The text of the module as it was handed out; "" before the first release."""
        for path in (self.folder / UNTOUCHED, self.handout / f"{self.module}.py"):
            if path.is_file():
                return path.read_text(encoding="utf-8")
        return ""

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
        return assignment_of(data, folder.resolve())
    except OSError as error:
        raise FixtureError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FixtureError(f"{path} is not TOML: {error}.") from error
    except ValueError as error:
        raise FixtureError(f"{path} cannot be used: {error}.") from error


def assignment_of(data: Mapping[str, Any], folder: Path) -> Assignment:
    """The assignment that items.toml describes; raises ValueError naming the first entry that is wrong."""
    _refuse_unknown(data, ASSIGNMENT_KEYS | BUDGETS, "the assignment")
    usual = {name: _positive(data, name, "the assignment") for name in BUDGETS & data.keys()}
    items = tuple(_item({**usual, **entry}) for entry in _list(data, "item", dict, "the assignment"))
    drawn = _list({"curve": [], **data}, "curve", dict, "the assignment")
    curves = tuple(_curve({**usual, **entry}) for entry in drawn)
    _refuse_twice((item.id for item in (*items, *curves)), "item")
    _refuse_twice((case for item in (*items, *curves) for case in (*item.public, *item.hidden)), "case")
    if not items:
        raise ValueError("it lists no item")
    budget = min(MOST_BUDGET, max(LEAST_BUDGET, 4 * max(one.timeout for one in (*items, *curves))))
    return Assignment(
        name=_text(data, "assignment", "the assignment"),
        title=_text(data, "title", "the assignment"),
        module=_text(data, "module", "the assignment"),
        folder=folder,
        given=tuple(_list({"given": [], **data}, "given", str, "the assignment")),
        load_timeout=_positive({"load_timeout": LOAD_TIMEOUT, **data}, "load_timeout", "the assignment"),
        items=items,
        also=tuple(_list({"also": [], **data}, "also", str, "the assignment")),
        curves=curves,
        packages=_packages(data),
        budget=_positive({"budget": budget, **data}, "budget", "the assignment"),
        renamed=_renamed(_list({"renamed": [], **data}, "renamed", dict, "the assignment")),
    )


def _renamed(entries: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    found = [[_text(entry, key, "what was renamed") for key in ("old", "new", "since")] for entry in entries]
    return {old: (new, since) for old, new, since in found if old != new}


def _packages(data: Mapping[str, Any]) -> tuple[str, ...]:
    found = _list({"packages": list(PACKAGES), **data}, "packages", str, "the assignment")
    if strange := [name for name in found if name not in PACKAGES]:
        raise ValueError(f"'packages' of the assignment names {strange[0]!r}, but should be of {', '.join(PACKAGES)}")
    return tuple(found)


def _curve(entry: Mapping[str, Any]) -> Item:
    name = _text(entry, "id", "a curve")
    _refuse_unknown(entry, CURVE_KEYS | BUDGETS, name)
    function, title = _text(entry, "function", name), _text(entry, "title", name)
    timeout = _positive({"timeout": TIMEOUT, **entry}, "timeout", name)
    return Item(name, function, title, 0.0, timeout, "", (name,), (), **_budgets(entry, timeout, name))


def _item(entry: Mapping[str, Any]) -> Item:
    name = _text(entry, "id", "an item")
    _refuse_unknown(entry, ITEM_KEYS | BUDGETS, name)
    timeout = _positive({"timeout": TIMEOUT, **entry}, "timeout", name)
    lists: dict[str, Any] = {key: tuple(_list({key: [], **entry}, key, str, name)) for key in LISTS}
    item = Item(
        id=name,
        function=_text(entry, "function", name),
        title=_text(entry, "title", name),
        points=_positive(entry, "points", name),
        timeout=timeout,
        hint=_text(entry, "hint", name),
        hints=_hints({"hints": {}, **entry}, name),
        **lists,  # a handout lists nothing hidden
        **_budgets(entry, timeout, name),
    )
    if not item.public and not item.hidden and not item.laws:
        raise ValueError(f"{name} has no case")
    return item


def _hints(entry: Mapping[str, Any], where: str) -> dict[str, str]:
    found = entry["hints"]
    if not isinstance(found, dict):
        raise ValueError(f"'hints' of {where} should be a table of texts, but is {_shown(found)}")
    return {key: _text(found, key, f"the hints of {where}") for key in found}


def _budgets(entry: Mapping[str, Any], timeout: float, where: str) -> dict[str, Any]:
    usual = {"cpu": 2 * timeout, "memory_megabytes": MEMORY_MEGABYTES, "output_megabytes": OUTPUT_MEGABYTES}
    return {budget: _positive({**usual, **entry}, budget, where) for budget in BUDGETS}


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    found = entry.get(key)
    if not isinstance(found, str) or not found.strip():
        raise ValueError(f"{key!r} of {where} should be text, but is {_shown(found)}")
    return found


def _positive(entry: Mapping[str, Any], key: str, where: str) -> float:
    found = entry.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found < math.inf:
        raise ValueError(f"{key!r} of {where} should be a number above 0, but is {_shown(found)}")
    return float(found)


def _list(entry: Mapping[str, Any], key: str, kind: type, where: str) -> list[Any]:
    found = entry.get(key)
    if not isinstance(found, list) or not all(isinstance(one, kind) for one in found):
        raise ValueError(f"{key!r} of {where} should be a list of {kind.__name__}, but is {_shown(found)}")
    return found


def _shown(found: object) -> str:
    return "missing" if found is None else repr(found)


def _refuse_unknown(entry: Mapping[str, Any], known: frozenset[str], where: str) -> None:
    if unknown := sorted(set(entry) - known):
        raise ValueError(f"{where} has the unknown entry {unknown[0]!r}")


def _refuse_twice(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"the {what} {name!r} is listed twice")
        seen.add(name)
