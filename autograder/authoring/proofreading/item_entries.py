"""What is wrong in items.toml, each with its line."""

from __future__ import annotations

import keyword
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from autograder.authoring.handout.release import without_hidden
from autograder.authoring.proofreading.fault import CASE, SLUG, Fault, is_misspelt, likely
from autograder.authoring.proofreading.items_file import ItemsFile, listed_in
from autograder.grading.assignment import ASSIGNMENT_KEYS, BUDGETS, CURVE_KEYS, ITEM_KEYS, PACKAGES

SLUG_RIGHT = "small letters, digits and single dashes, such as deltas-max"
KEYS = ASSIGNMENT_KEYS | ITEM_KEYS | CURVE_KEYS | BUDGETS
NUMBER_RIGHT = "a number above 0"


def item_faults(file: ItemsFile, solution: Path) -> Iterator[Fault]:
    """All that is wrong in the file itself; `solution` is the folder with the assignment's module."""
    yield from _about_assignment(file, solution)
    if not file.data.get("item"):
        yield file.fault("there is no item", "at least one [[item]]")
    for table, place, entry in file.tables:
        yield from _about_entry(file, table, place, entry)
    yield from _about_twice(file)
    yield from _about_points(file)
    yield from _about_masking(file)


def _about_assignment(file: ItemsFile, solution: Path) -> Iterator[Fault]:
    data, folder = file.data, file.path.parent.name
    for key in data.keys() - ASSIGNMENT_KEYS - BUDGETS:
        yield file.fault(f"unknown entry {key!r}", likely(key, sorted(ASSIGNMENT_KEYS | BUDGETS)), key=key)
    for key in ("assignment", "title", "module"):
        yield from _text(file, data, key, "", 0)
    name, module = data.get("assignment"), data.get("module")
    if isinstance(name, str) and name.strip() and name != folder:
        yield file.fault(
            f"the assignment is called {name!r} in a folder called {folder!r}", "the same name", key="assignment"
        )
    if isinstance(module, str) and module.strip():
        if not _is_name(module):
            yield file.fault(f"module {module!r} is no name in Python", "letters, digits and _", key="module")
        elif not (solution / f"{module}.py").is_file():
            others = [path.stem for path in sorted(solution.glob("*.py"))]
            right = f"the solution's module: {likely(module, others)}"
            yield file.fault(f"there is no {solution.name}/{module}.py in solution/", right, key="module")
    for key, ending, what in (("given", ".py", "module"), ("also", "", "file")):
        listed = data.get(key, [])
        if not _is_texts(listed):
            yield file.fault(f"{key} is {listed!r}", 'a list of text: ["a", "b"]', key=key)
            continue
        for one in listed:
            if not (solution / f"{one}{ending}").is_file() and not (file.path.parent / f"{one}{ending}").is_file():
                told = f"the {what} {one!r} of {key} is not in solution/{solution.name}"
                yield file.fault(told, "one that is", key=key)
    if not _is_texts(packages := data.get("packages", [])):
        yield file.fault(f"packages is {packages!r}", 'a list of text: ["numpy"], or []', key="packages")
    elif other := [one for one in packages if one not in PACKAGES]:
        yield file.fault(f"packages names {other[0]!r}", f"of these: {', '.join(PACKAGES)}", key="packages")
    for key in {"load_timeout", "budget", "points"} & data.keys():
        yield from _number(file, data, key, "", 0)


def _about_entry(file: ItemsFile, table: str, place: int, entry: Mapping[str, Any]) -> Iterator[Fault]:
    known = (ITEM_KEYS if table == "item" else CURVE_KEYS) | BUDGETS
    for key in entry.keys() - known:
        yield file.fault(f"unknown entry {key!r}", likely(key, sorted(known)), table, place, key)
    for key in ("id", "function", "title", *(("hint",) if table == "item" else ())):
        yield from _text(file, entry, key, table, place)
    name, function = entry.get("id"), entry.get("function")
    if isinstance(name, str) and name.strip() and not SLUG.fullmatch(name):
        yield file.fault(f"the id {name!r} cannot be a file's name", SLUG_RIGHT, table, place, "id")
    if isinstance(function, str) and function.strip():
        if not _is_name(function):
            what = f"function {function!r} is no name in Python"
            yield file.fault(what, "letters, digits and _", table, place, "function")
        elif file.functions is not None and function not in file.functions:
            what = f"the solution does not define {function}"
            yield file.fault(what, likely(function, file.functions), table, place, "function")
    if isinstance(title := entry.get("title"), str) and ("|" in title or "\n" in title):
        yield file.fault("the title would break the table of points", "one line without |", table, place, "title")
    for key in ("points", "timeout", *BUDGETS):
        if key in entry or (key == "points" and table == "item"):
            yield from _number(file, entry, key, table, place)
    if table == "item":
        calls, defined = entry.get("calls", []), file.functions
        for one in [c for c in calls if defined and c not in defined] if _is_texts(calls) else [calls]:
            yield file.fault(f"calls names {one!r}", "functions of the solution, in a list", "item", place, "calls")
        yield from _about_cases(file, place, entry)


def _about_cases(file: ItemsFile, place: int, entry: Mapping[str, Any]) -> Iterator[Fault]:
    found: list[str] = []
    for key in ("public", "hidden"):
        listed = entry.get(key, [])
        if not _is_texts(listed):
            yield file.fault(f"{key} is {listed!r}", 'a list of cases: ["a", "b"]', "item", place, key)
            continue
        found += listed
        for case in [one for one in listed if not CASE.fullmatch(one)]:
            yield file.fault(f"the case {case!r} cannot be stored", SLUG_RIGHT, "item", place, key)
    if not found and not entry.get("laws") and all(_is_texts(entry.get(key, [])) for key in ("public", "hidden")):
        yield file.fault(f"the item {entry.get('id', '')} has no case", 'public = ["…"]', "item", place)


def _about_twice(file: ItemsFile) -> Iterator[Fault]:
    ids: set[str] = set()
    cases: set[str] = set()
    for table, place, entry in file.tables:
        name = entry.get("id")
        if isinstance(name, str) and name in ids:
            yield file.fault(f"the id {name!r} stands twice", "an id of its own", table, place, "id")
        ids |= {name} if isinstance(name, str) else set()
        for key in ("public", "hidden"):
            for case in entry.get(key, []) if _is_texts(entry.get(key, [])) else []:
                if case in cases:
                    yield file.fault(f"the case {case!r} stands twice", "one item for each case", table, place, key)
                cases.add(case)


def _about_points(file: ItemsFile) -> Iterator[Fault]:
    wanted: Any = file.data.get("points")
    points: list[Any] = [entry.get("points") for table, _, entry in file.tables if table == "item"]
    if not _is_number(wanted) or not all(map(_is_number, points)):
        return
    total = round(sum(points), 2)
    if not math.isclose(total, wanted):
        other = f"{abs(wanted - total):g} {'more' if total < wanted else 'fewer'} together"
        right = f"points = {total:g} here, or items that are worth {other}"
        yield file.fault(f"the items are worth {total:g} points, not {wanted:g}", right, key="points")


def _about_masking(file: ItemsFile) -> Iterator[Fault]:
    """Students get this file without its hidden cases: `hidden` is taken out line by line."""
    kept = {key: entry for key, entry in file.data.items() if key != "item"}
    items = file.data.get("item", [])
    if not isinstance(items, list):
        yield file.fault(f"item is {items!r}", "tables: [[item]]", key="item")
        return
    wanted = {
        **kept,
        "item": [{k: v for k, v in one.items() if k != "hidden"} for one in items if isinstance(one, dict)],
    }
    try:
        is_masked = not items or tomllib.loads(without_hidden(file.text)) == wanted
    except tomllib.TOMLDecodeError:
        is_masked = False
    yield from (inside := list(_inside_hints(file)))
    if not is_masked and not inside:
        place = next((p for t, p, e in file.tables if t == "item" and "hidden" in e), 0)
        what = "the hidden cases cannot be taken out of the students' copy of this file"
        yield file.fault(what, 'hidden = ["a", "b"] in each [[item]], the key without quotes', "item", place, "hidden")


def _inside_hints(file: ItemsFile) -> Iterator[Fault]:
    """Entries of an item that stand below its [item.hints], where they are of that table."""
    for place, entry in [(place, entry) for table, place, entry in file.tables if table == "item"]:
        named = set(hints) if isinstance(hints := entry.get("hints"), dict) else set()
        for key in sorted(named & (ITEM_KEYS | BUDGETS) - set(listed_in(entry))):
            first, rows = file.line("item", place), file.text.splitlines()
            line = next((n for n in range(first, len(rows)) if re.match(rf"\s*{key}\s*=", rows[n])), first - 1) + 1
            yield Fault(file.path, line, f"{key} stands inside [item.hints]", f"{key} above the line [item.hints]")


def _text(file: ItemsFile, entry: Mapping[str, Any], key: str, table: str, place: int) -> Iterator[Fault]:
    found = entry.get(key)
    if (not isinstance(found, str) or not found.strip()) and not is_misspelt(key, entry, KEYS):
        what = f"{key} is missing" if key not in entry else f"{key} is {found!r}"
        yield file.fault(what, f'text: {key} = "…"', table, place, key)


def _number(file: ItemsFile, entry: Mapping[str, Any], key: str, table: str, place: int) -> Iterator[Fault]:
    found = entry.get(key)
    if not _is_number(found) and not is_misspelt(key, entry, KEYS):
        what = f"{key} is missing" if key not in entry else f"{key} is {found!r}"
        yield file.fault(what, NUMBER_RIGHT, table, place, key)


def _is_number(found: object) -> bool:
    return isinstance(found, int | float) and not isinstance(found, bool) and 0 < found < math.inf


def _is_texts(found: object) -> bool:
    return isinstance(found, list) and all(isinstance(one, str) for one in found)


def _is_name(name: str) -> bool:
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
