"""items.toml as somebody wrote it: where an entry stands, which cases are listed, what can be read despite faults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.authoring.proofreading.fault import Fault
from autograder.authoring.proofreading.text_files import read_toml


@dataclass(frozen=True)
class ItemsFile:
    """items.toml as text and as data, which finds the line of an entry.

    functions   those that the solution's module defines; None where it cannot be read
    """

    path: Path
    text: str
    data: Mapping[str, Any]
    functions: tuple[str, ...] | None = None

    def line(self, table: str = "", place: int = 0, key: str = "") -> int:
        """The line of a key in the `place`-th table of that name, or of the table; of the top where it is ""."""
        lines = self.text.splitlines()
        headers = [number for number, line in enumerate(lines) if re.match(r"\s*\[\[?\s*[\w.]+\s*\]", line)]
        start, tables = 0, [n for n in headers if table and re.match(rf"\s*\[\[\s*{table}\s*\]\]", lines[n])]
        if table:
            if place >= len(tables):
                return 1
            start = tables[place]
        end = next((number for number in headers if number > start), len(lines))
        if not table:
            end = headers[0] if headers else len(lines)
        within = range(start, end)
        return 1 + next(
            (n for n in within if key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[n])), start
        )

    def fault(self, what: str, right: str, table: str = "", place: int = 0, key: str = "") -> Fault:
        """A fault at that line."""
        return Fault(self.path, self.line(table, place, key), what, right)

    @property
    def tables(self) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
        """Every item and curve: its kind, its place among those, its entries."""
        for table in ("item", "curve"):
            listed = self.data.get(table, [])
            for place, entry in enumerate(listed if isinstance(listed, list) else []):
                if isinstance(entry, dict):
                    yield table, place, entry

    def line_of_case(self, case: str) -> int:
        """The line of the list that names this case; of the first item where none does."""
        for table, place, entry in self.tables:
            for key in ("public", "hidden"):
                if isinstance(entry.get(key), list) and case in entry[key]:
                    return self.line(table, place, key)
        return self.line("item")


def read_items(path: Path, functions: tuple[str, ...] | None) -> ItemsFile | Fault:
    """The file, or why it cannot be read."""
    try:
        found = read_toml(path, 'key = "text", key = 1, key = ["a", "b"]')
    except OSError as error:
        return Fault(path, 1, f"cannot be read: {error.strerror}", "a file that says what is graded")
    return found if isinstance(found, Fault) else ItemsFile(path, *found, functions)


def repaired(file: ItemsFile) -> dict[str, Any]:
    """The data with what is wrong left out or made up, so that all other files can be read beside it."""
    data = file.data
    items = [_repaired_item(place, entry) for table, place, entry in file.tables if table == "item"]
    own = [entry for table, _, entry in file.tables if table == "curve"]
    curves = [{"title": "…", **entry} for entry in own if all(_is_filled(entry.get(key)) for key in ("id", "function"))]
    seen: set[str] = set()
    for item in items:
        for key in ("public", "hidden"):
            item[key] = [case for case in item[key] if not (case in seen or seen.add(case))]  # type: ignore[func-returns-value]
    return {
        "assignment": file.path.parent.name,
        "title": "…",
        "module": data["module"] if _is_filled(data.get("module")) else file.path.parent.name,
        "item": [item for item in items if item["public"] or item["hidden"]],
        "curve": curves,
    }


def _repaired_item(place: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    texts = {key: entry[key] if _is_filled(entry.get(key)) else f"{key}-{place}" for key in ("id", "function")}
    cases = {key: _cases(entry.get(key, [])) for key in ("public", "hidden")}
    return {**texts, **cases, "id": f"{texts['id']}-{place}", "title": "…", "hint": "…", "points": 1}


def _cases(listed: object) -> list[str]:
    """The cases that a list names, or that was meant to be one."""
    several = [listed] if isinstance(listed, str) else listed
    return [case for case in several if isinstance(case, str)] if isinstance(several, list) else []


def _is_filled(found: object) -> bool:
    return isinstance(found, str) and bool(found.strip())


def listed_names(file: ItemsFile, keys: Iterable[str] = ("public", "hidden")) -> list[str]:
    """Every case that an item lists."""
    return [case for table, _, entry in file.tables if table == "item" for case in listed_in(entry, keys)]


def listed_in(entry: Mapping[str, Any], keys: Iterable[str] = ("public", "hidden")) -> list[str]:
    """The cases that one item lists."""
    return [case for key in keys for case in _cases(entry.get(key, []))]
