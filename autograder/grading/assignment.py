"""Read what is graded: an assignment's items.toml, and the assignments of a course.

A course is a folder that holds `fixtures/<assignment>/items.toml`, found upwards from where one stands. A handout is
such a folder too; one that holds `solution/` as well is where staff work.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.sandbox.calls import MEMORY_MEGABYTES, OUTPUT_MEGABYTES
from autograder.vocabulary.errors import FixtureError, UsageError

UNTOUCHED = "untouched.py"
LOAD_TIMEOUT, TIMEOUT = 20.0, 5.0  # seconds, where items.toml says nothing
LEAST_BUDGET, MOST_BUDGET = 60.0, 240.0  # seconds of a whole submission; else four times the longest limit of a call
PACKAGES = ("torch", "einops", "numpy", "matplotlib", "tqdm")  # what an answer may use, where nothing else is said

BUDGETS = frozenset({"cpu", "memory_megabytes", "output_megabytes"})  # the assignment's, or an item's own
LISTS = ("public", "hidden", "laws", "draws", "parts", "examples", "calls")
ITEM_KEYS = frozenset({"id", "function", "title", "points", "timeout", "hint", "hints", *LISTS})
CURVE_KEYS = frozenset({"id", "function", "title", "timeout"})
ASSIGNMENT_KEYS = frozenset({"assignment", "title", "module", "packages", "given", "also", "load_timeout", "budget"})
ASSIGNMENT_KEYS |= {"points", "item", "curve", "renamed"}


@dataclass(frozen=True)
class Item:
    """One thing that earns points.

    points             float    2 to 8; 0 for a curve, which is shown and earns nothing
    timeout            float    seconds of wall clock for one case
    cpu                float    seconds of processor time for one case, over all threads; twice `timeout` if not given
    memory_megabytes   float    what one case may hold beyond what torch takes
    output_megabytes   float    what one case may print
    hint               str      what to think about where no known mistake explains the answer
    hints              by the name of a public case or of a value: replaces `hint` where that one fails first
    calls              graded functions that an answer may call
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
        """Tell whether answers are tensors; else they are arrays, lists and numbers."""
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
        """Return the item of that id, or that once had it; raises UsageError, naming the items there are."""
        for item in self.items:
            if item.id in (item_id, *self.renamed.get(item_id, ())):
                return item
        known = ", ".join(item.id for item in self.items)
        raise UsageError(f"There is no item {item_id!r} in {self.name}. The items are: {known}.")

    def given_sources(self) -> dict[str, str]:
        """Read the text of each given module: beside the fixtures in a handout, from the solution in the kit."""
        sources = {}
        for name in self.given:
            paths = [folder / f"{name}.py" for folder in (self.folder, self.solution)]
            path = next((path for path in paths if path.is_file()), None)
            if path is None:
                raise FixtureError(f"{name}.py of {self.name} is in neither {self.folder} nor {self.solution}.")
            sources[name] = path.read_text(encoding="utf-8")
        return sources

    def probes_source(self) -> str:
        """Read probes.py."""
        return (self.folder / "probes.py").read_text(encoding="utf-8")

    def untouched_source(self) -> str:
        """Read the module as it was handed out; "" before the first release."""
        for path in (self.folder / UNTOUCHED, self.handout / f"{self.module}.py"):
            if path.is_file():
                return path.read_text(encoding="utf-8")
        return ""


# The assignments of a course


def find_course(start: Path) -> Path:
    """Return the course that `start` lies in: the closest folder upwards with fixtures and solutions, else fixtures.

    Raises UsageError where there is none.
    """
    roots = _folders_with_fixtures(start)
    if not roots:
        raise UsageError(
            f"There is no course here: neither {start.resolve()} nor a folder above it holds "
            "fixtures/<assignment>/items.toml. Go into the course's folder, or name it: --course DIR."
        )
    return next((folder for folder in roots if (folder / "solution").is_dir()), roots[0])


def nearest_root(start: Path) -> Path:
    """Return the closest folder that holds fixtures: from `start` upwards, else from the current folder.

    Raises UsageError where there is none.
    """
    roots = _folders_with_fixtures(start) or _folders_with_fixtures(Path.cwd())
    return roots[0] if roots else find_course(start)


def find_assignments(root: Path, name: str | None = None) -> list[Assignment]:
    """Return all assignments of the course `root` that can be read, or `name` alone.

    One that is half written stops no command about another: `unreadable` names it. Raises UsageError where there is
    none of that name, FixtureError where none can be read.
    """
    folders = _assignment_folders(root)
    if not folders:
        raise FixtureError(f"There is no assignment under {root / 'fixtures'}: no folder there holds items.toml.")
    names = [folder.name for folder in folders]
    if name is not None and name not in names:
        raise UsageError(f"There is no assignment {name!r}. Name one with --assignment: {', '.join(names)}.")
    if name is not None:
        return [load_assignment(folders[names.index(name)])]
    assignments, faults = _load_all(folders)
    if not assignments:
        raise FixtureError(next(iter(faults.values())))
    return assignments


def find_assignment(root: Path, name: str | None = None) -> Assignment:
    """Return the assignment `name` of the course, or the only one; raises UsageError where it is not clear which."""
    assignments = find_assignments(root, name)
    if len(assignments) > 1:
        names = ", ".join(assignment.name for assignment in assignments)
        raise UsageError(f"There are several assignments. Name one with --assignment: {names}.")
    return assignments[0]


def unreadable(root: Path) -> dict[str, str]:
    """Return the assignments of the course `root` that cannot be read: folder → what is wrong."""
    return _load_all(_assignment_folders(root))[1]


def _load_all(folders: Sequence[Path]) -> tuple[list[Assignment], dict[str, str]]:
    assignments: list[Assignment] = []
    faults: dict[str, str] = {}
    for folder in folders:
        try:
            assignments.append(load_assignment(folder))
        except FixtureError as error:
            faults[folder.name] = str(error)
    return assignments, faults


def _assignment_folders(root: Path) -> list[Path]:
    try:
        return sorted(path.parent for path in (root / "fixtures").glob("*/items.toml"))
    except PermissionError:  # a folder above the course that belongs to somebody else
        return []


def _folders_with_fixtures(start: Path) -> list[Path]:
    return [folder for folder in (start.resolve(), *start.resolve().parents) if _assignment_folders(folder)]


# Reading items.toml


def load_assignment(folder: Path) -> Assignment:
    """Read the assignment whose fixtures lie in `folder`; raises FixtureError where items.toml is missing or wrong."""
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
    """Make the assignment that items.toml describes; raises ValueError naming the first entry that is wrong."""
    top = _Table(data, "the assignment", ASSIGNMENT_KEYS | BUDGETS)
    shared = {name: top.positive(name) for name in BUDGETS & data.keys()}
    items = tuple(_item({**shared, **entry}) for entry in top.entries("item", dict))
    curves = tuple(_curve({**shared, **entry}) for entry in top.entries("curve", dict, []))
    graded = (*items, *curves)
    _refuse_repeated((item.id for item in graded), "item")
    _refuse_repeated((case for item in graded for case in (*item.public, *item.hidden)), "case")
    if not items:
        raise ValueError("it lists no item")
    packages = tuple(top.entries("packages", str, list(PACKAGES)))
    if unknown := [name for name in packages if name not in PACKAGES]:
        raise ValueError(f"'packages' of the assignment names {unknown[0]!r}, but should be of {', '.join(PACKAGES)}")
    renamed: dict[str, tuple[str, str]] = {}
    for entry in top.entries("renamed", dict, []):
        old, new, since = (_Table(entry, "what was renamed").text(key) for key in ("old", "new", "since"))
        renamed |= {old: (new, since)} if old != new else {}
    budget = min(MOST_BUDGET, max(LEAST_BUDGET, 4 * max(item.timeout for item in graded)))
    return Assignment(
        name=top.text("assignment"),
        title=top.text("title"),
        module=top.text("module"),
        folder=folder,
        given=tuple(top.entries("given", str, [])),
        load_timeout=top.positive("load_timeout", LOAD_TIMEOUT),
        items=items,
        also=tuple(top.entries("also", str, [])),
        curves=curves,
        packages=packages,
        budget=top.positive("budget", budget),
        renamed=renamed,
    )


def _curve(entry: Mapping[str, Any]) -> Item:
    name = _Table(entry, "a curve").text("id")
    table = _Table(entry, name, CURVE_KEYS | BUDGETS)
    function, title, timeout = table.text("function"), table.text("title"), table.positive("timeout", TIMEOUT)
    return Item(name, function, title, 0.0, timeout, "", (name,), (), **table.budgets(timeout))


def _item(entry: Mapping[str, Any]) -> Item:
    name = _Table(entry, "an item").text("id")
    table = _Table(entry, name, ITEM_KEYS | BUDGETS)
    timeout = table.positive("timeout", TIMEOUT)
    lists: dict[str, Any] = {key: tuple(table.entries(key, str, [])) for key in LISTS}
    hints = entry.get("hints", {})
    if not isinstance(hints, dict):
        raise ValueError(f"'hints' of {name} should be a table of texts, but is {hints!r}")
    item = Item(
        id=name,
        function=table.text("function"),
        title=table.text("title"),
        points=table.positive("points"),
        timeout=timeout,
        hint=table.text("hint"),
        hints={key: _Table(hints, f"the hints of {name}").text(key) for key in hints},
        **lists,  # a handout lists nothing hidden
        **table.budgets(timeout),
    )
    if not item.public and not item.hidden and not item.laws:
        raise ValueError(f"{name} has no case")
    return item


class _Table:
    """A table of items.toml; `name` is what messages call it."""

    def __init__(self, data: Mapping[str, Any], name: str, known: frozenset[str] | None = None) -> None:
        if known is not None and (unknown := sorted(set(data) - known)):
            raise ValueError(f"{name} has the unknown entry {unknown[0]!r}")
        self._data, self._name = data, name

    def text(self, key: str) -> str:
        value = self._data.get(key)
        if not isinstance(value, str) or not value.strip():
            raise self._wrong(key, "text", value)
        return value

    def positive(self, key: str, default: float | None = None) -> float:
        value = self._data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self._wrong(key, "a number above 0", value)
        return float(value)

    def entries(self, key: str, kind: type, default: list[Any] | None = None) -> list[Any]:
        value = self._data.get(key, default)
        if not isinstance(value, list) or not all(isinstance(entry, kind) for entry in value):
            raise self._wrong(key, f"a list of {kind.__name__}", value)
        return value

    def budgets(self, timeout: float) -> dict[str, Any]:
        usual = {"cpu": 2 * timeout, "memory_megabytes": MEMORY_MEGABYTES, "output_megabytes": OUTPUT_MEGABYTES}
        return {name: self.positive(name, default) for name, default in usual.items()}

    def _wrong(self, key: str, wanted: str, value: Any) -> ValueError:
        shown = "missing" if value is None else repr(value)
        return ValueError(f"{key!r} of {self._name} should be {wanted}, but is {shown}")


def _refuse_repeated(names: Iterable[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"the {what} {name!r} is listed twice")
        seen.add(name)
