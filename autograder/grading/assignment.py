"""Read what is graded: an assignment's items.toml, and the assignments of a course.

A course is a folder that holds `fixtures/<assignment>/items.toml`, found upwards from where one stands. A handout is
such a folder too; one that holds `solution/` as well is where staff work.
"""

from __future__ import annotations

import difflib
import keyword
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.sandbox.calls import MEMORY_MEGABYTES, OUTPUT_MEGABYTES
from autograder.vocabulary.errors import FixtureError, UsageError

UNTOUCHED = "untouched.py"
LOAD_TIMEOUT, TIMEOUT = 20.0, 5.0  # seconds, where items.toml says nothing
LEAST_BUDGET, MOST_BUDGET = 60.0, 240.0  # seconds of a whole submission; else four times the longest limit of a call
PACKAGES = ("torch", "einops", "numpy", "matplotlib", "tqdm")  # what an answer may use, where nothing else is said
OTHER_PACKAGES = ("pandas", "scipy")  # what it may use where `packages` names it

SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
CASE = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*")


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

    def item(self, item_id: str, beside: Sequence[str] = ()) -> Item:
        """Return the item of that id, or that once had it; raises UsageError, naming those like it, or `beside`."""
        for item in self.items:
            if item.id in (item_id, *self.renamed.get(item_id, ())):
                return item
        known = [item.id for item in self.items]
        near = [*known, *beside]
        close = [name for name in near if name.startswith(item_id)] or difflib.get_close_matches(item_id, near, n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else f"The items are: {', '.join(known)}."
        raise UsageError(f"There is no item {item_id!r} in {self.name}. {hint}")

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
    readable, faults = _read_all(folders)
    if not readable:
        raise FixtureError(next(iter(faults.values())))
    return readable


def all_assignments(root: Path, name: str | None = None) -> list[Assignment]:
    """Return the assignment `name`, or all of the course; raises FixtureError where one of them cannot be read."""
    found = find_assignments(root, name)
    if name is None and (faults := unreadable(root)):
        raise FixtureError(next(iter(faults.values())))
    return found


def find_assignment(root: Path, name: str | None = None) -> Assignment:
    """Return the assignment `name` of the course, or the only one; raises UsageError where it is not clear which."""
    assignments = find_assignments(root, name)
    if len(assignments) > 1:
        names = ", ".join(assignment.name for assignment in assignments)
        raise UsageError(f"There are several assignments. Name one with --assignment: {names}.")
    return assignments[0]


def unreadable(root: Path) -> dict[str, str]:
    """Return the assignments of the course `root` that cannot be read: folder → what is wrong."""
    return _read_all(_assignment_folders(root))[1]


def _read_all(folders: Sequence[Path]) -> tuple[list[Assignment], dict[str, str]]:
    readable, faults = list[Assignment](), dict[str, str]()
    for folder in folders:
        try:
            readable.append(load_assignment(folder))
        except FixtureError as error:
            faults[folder.name] = str(error)
    return readable, faults


def _assignment_folders(root: Path) -> list[Path]:
    try:
        return sorted(path.parent for path in (root / "fixtures").glob("*/items.toml"))
    except PermissionError:  # a folder above the course that belongs to somebody else
        return []


def _folders_with_fixtures(start: Path) -> list[Path]:
    return [folder for folder in (start.resolve(), *start.resolve().parents) if _assignment_folders(folder)]


# What items.toml may say

TEXT, POSITIVE, TEXTS, TEXT_TABLE, TABLES = "text", "a number above 0", "a list of text", "a table of texts", "tables"
IS_OF_KIND: Mapping[str, Callable[[Any], bool]] = {
    TEXT: lambda value: isinstance(value, str) and bool(value.strip()),
    POSITIVE: lambda value: type(value) in (int, float) and 0 < value < math.inf,
    TEXTS: lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
    TEXT_TABLE: lambda value: isinstance(value, dict) and all(map(IS_OF_KIND[TEXT], value.values())),
    TABLES: lambda value: isinstance(value, list) and all(isinstance(entry, dict) for entry in value),
}
BUDGETS = dict.fromkeys(("cpu", "memory_megabytes", "output_megabytes"), POSITIVE)  # the assignment's, or an item's own
CURVE = {"id": TEXT, "function": TEXT, "title": TEXT, "timeout": POSITIVE} | BUDGETS
KEYS: Mapping[str, Mapping[str, str]] = {  # table → key → kind of value
    "": dict.fromkeys(("assignment", "title", "module"), TEXT)
    | dict.fromkeys(("packages", "given", "also"), TEXTS)
    | dict.fromkeys(("load_timeout", "budget", "points"), POSITIVE)
    | dict.fromkeys(("item", "curve", "renamed"), TABLES)
    | BUDGETS,
    "item": CURVE
    | {"points": POSITIVE, "hint": TEXT, "hints": TEXT_TABLE}
    | dict.fromkeys(("public", "hidden", "laws", "draws", "parts", "examples", "calls"), TEXTS),
    "curve": CURVE,
    "renamed": dict.fromkeys(("old", "new", "since"), TEXT),
}
NEEDED: Mapping[str, Sequence[str]] = {
    "": ("assignment", "title", "module", "item"),
    "item": ("id", "function", "title", "points", "hint"),
    "curve": ("id", "function", "title"),
    "renamed": ("old", "new", "since"),
}
SUBJECTS = {"": "the assignment", "item": "an item", "curve": "a curve", "renamed": "what was renamed"}
NO_NAME = "is no name in Python: letters, digits and _"
NO_SLUG = "should be small letters, digits and single dashes, such as deltas-max"
RULES: Mapping[str, tuple[Callable[[str], Any], str]] = {  # key → what its texts must be besides, and what is said else
    **dict.fromkeys(
        ("module", "function", "given"),
        (lambda name: name.isascii() and name.isidentifier() and not keyword.iskeyword(name), NO_NAME),
    ),
    "id": (SLUG.fullmatch, NO_SLUG),
    **dict.fromkeys(("public", "hidden"), (CASE.fullmatch, NO_SLUG)),
    "packages": (
        {*PACKAGES, *OTHER_PACKAGES}.__contains__,
        f"is none of {', '.join((*PACKAGES, *OTHER_PACKAGES))}",
    ),
}


def load_assignment(folder: Path) -> Assignment:
    """Read the assignment whose fixtures lie in `folder`; raises FixtureError where items.toml is missing or wrong."""
    path = folder / "items.toml"
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FixtureError(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # no UTF-8, no TOML
        raise FixtureError(f"{path} is not TOML: {error}.") from error
    if faults := faults_in(data):
        raise FixtureError(f"{path} cannot be used: {faults[0].what}.")
    usual = {key: data[key] for key in BUDGETS if key in data}
    items = tuple(_item({**usual, **entry}) for entry in data["item"])
    curves = tuple(_item({"points": 0, "hint": "", "public": [c["id"]], **usual, **c}) for c in data.get("curve", ()))
    budget = min(MOST_BUDGET, max(LEAST_BUDGET, 4 * max(item.timeout for item in (*items, *curves))))
    return Assignment(
        name=data["assignment"],
        title=data["title"],
        module=data["module"],
        folder=folder.resolve(),
        given=tuple(data.get("given", ())),
        load_timeout=float(data.get("load_timeout", LOAD_TIMEOUT)),
        items=items,
        also=tuple(data.get("also", ())),
        curves=curves,
        packages=tuple(data.get("packages", PACKAGES)),
        budget=float(data.get("budget", budget)),
        renamed={r["old"]: (r["new"], r["since"]) for r in data.get("renamed", ()) if r["old"] != r["new"]},
    )


def _item(entry: Mapping[str, Any]) -> Item:
    timeout = entry.get("timeout", TIMEOUT)
    entry = {"timeout": timeout, "cpu": 2 * timeout, "public": (), "hidden": (), **entry}  # a handout has no hidden
    made: Mapping[str, Callable[[Any], Any]] = {POSITIVE: float, TEXTS: tuple}
    return Item(**{key: made.get(KEYS["item"][key], lambda value: value)(value) for key, value in entry.items()})


@dataclass(frozen=True)
class EntryFault:
    """What is wrong with a key of the `place`-th table of that name; with the file's head where the table is ""."""

    table: str
    place: int
    key: str
    what: str


def faults_in(data: Mapping[str, Any]) -> list[EntryFault]:
    """Everything that is wrong in items.toml and shows without another file."""
    entries: list[tuple[str, int, Mapping[str, Any]]] = [("", 0, data)]
    for table in ("item", "curve", "renamed"):
        if IS_OF_KIND[TABLES](data.get(table)):
            entries += [(table, place, entry) for place, entry in enumerate(data[table])]
    faults = [EntryFault(table, place, *fault) for table, place, entry in entries for fault in _faults_of(table, entry)]
    seen: set[tuple[str, str]] = set()
    for table, place, entry in entries:
        ids = [entry.get("id")] if table in ("item", "curve") else []
        listed: dict[str, Any] = {key: entry.get(key) for key in ("public", "hidden")} if table == "item" else {}
        named = [("item", "id", name) for name in ids] + [("case", "id", name) for name in ids if table == "curve"]
        named += [("case", key, name) for key, names in listed.items() if IS_OF_KIND[TEXTS](names) for name in names]
        for kind, key, name in named:
            if isinstance(name, str) and (kind, name) in seen:
                faults.append(EntryFault(table, place, key, f"the {kind} {name!r} is listed twice"))
            seen.add((kind, str(name)))
    points: list[Any] = [entry.get("points") for table, _, entry in entries if table == "item"]
    stated: Any = data.get("points")
    are_numbers = all(map(IS_OF_KIND[POSITIVE], (*points, stated)))
    if are_numbers and not math.isclose(total := sum(points), stated, abs_tol=0.005):
        more = f"{abs(stated - total):g} {'more' if total < stated else 'fewer'} together"
        what = f"the items are worth {total:g} points, not {stated:g}: points = {total:g} here, or items worth {more}"
        faults.append(EntryFault("", 0, "points", what))
    return faults


def _faults_of(table: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong in one table by itself: keys, each with a sentence."""
    kinds, where = KEYS[table], SUBJECTS[table]
    if IS_OF_KIND[TEXT](entry.get("id")):
        where = entry["id"]
    misspelt = set()
    for key in sorted(entry.keys() - kinds.keys()):
        close = difflib.get_close_matches(key, kinds, n=1)
        misspelt |= {*close} - entry.keys()
        yield key, f"{where} has the unknown entry {key!r}" + (f": {close[0]!r} is there" if close else "")
    for key, kind in kinds.items():
        value: Any = entry.get(key)
        shown = repr(value) if key in entry else "missing"
        if key not in entry and (key not in NEEDED[table] or key in misspelt):
            continue
        if not IS_OF_KIND[kind](value):
            yield key, f"{key!r} of {where} should be {f'tables [[{key}]]' if kind == TABLES else kind}, but is {shown}"
        elif key in RULES:
            holds, wrong = RULES[key]
            names = [name for name in (value if isinstance(value, list) else [value]) if not holds(name)]
            yield from ((key, f"{key!r} {name!r} of {where} {wrong}") for name in names)
        elif key == "title" and table and ("|" in value or "\n" in value):
            yield key, f"'title' of {where} would break the table of points: it should be one line without |"
    if table == "item" and not any(entry.get(key) for key in ("public", "hidden", "laws")):
        yield "id", f"{where} has no case"
    if table == "" and entry.get("item") == []:
        yield "item", "it lists no item"
