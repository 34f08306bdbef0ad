"""What is wrong in contract.toml, costly.toml and equivalent_mutants.toml, each with its line; any may be left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.authoring.exam.contract import CONTRACT, Clause, clauses_in
from autograder.authoring.exam.costs import COSTLY
from autograder.authoring.exam.mutants import EQUIVALENT
from autograder.authoring.proofreading.fault import Fault, likely
from autograder.authoring.proofreading.text_files import read_toml
from autograder.vocabulary.errors import FixtureError

TEXTS = {COSTLY: ("function", "reason"), EQUIVALENT: ("function", "before", "after", "reason")}
MORE = {COSTLY: ("mistakes", "mistake"), EQUIVALENT: ("family", "occurrence")}
TABLE = {COSTLY: "costly", EQUIVALENT: "equivalent"}
Items = Mapping[str, Sequence[str]]  # function → its items


def exam_faults(folder: Path, items: Items) -> Iterator[Fault]:
    """All that is wrong in the three files."""
    for name in (CONTRACT, COSTLY, EQUIVALENT):
        path = folder / name
        if not path.is_file():
            continue
        found = read_toml(path, 'key = "text"')
        if isinstance(found, Fault):
            yield found
            continue
        text, data = found
        yield from _clauses(path, text, data, items) if name == CONTRACT else _entries(path, text, data, items)


def _clauses(path: Path, text: str, data: Mapping[str, Any], items: Items) -> Iterator[Fault]:
    right = "a sentence with its mistakes, or with the reason why it is not graded"
    unknown = [name for name, one in data.items() if name != "clause" and isinstance(one, dict) and name not in items]
    for name in unknown:
        line = next((n for n, row in enumerate(text.splitlines(), 1) if row.strip().strip('[]"') == name), 1)
        yield Fault(path, line, f"no item grades {name!r}", likely(name, items))
    data = {name: one for name, one in data.items() if name not in unknown}
    if not data:
        return
    seen: dict[str, int] = {}
    try:
        for make in clauses_in(data, text, path, {name: tuple(several) for name, several in items.items()}):
            try:
                clause = make()
            except FixtureError as error:
                place = re.match(r".*?:(\d+): (.*?)\.?$", str(error), re.DOTALL)
                yield Fault(path, int(place[1]) if place else 1, place[2] if place else str(error), right)
                continue
            yield from _about(path, clause, items, seen)
    except FixtureError as error:
        yield Fault(path, 1, str(error).removeprefix(f"{path} ").rstrip("."), right)


def _about(path: Path, clause: Clause, items: Items, seen: dict[str, int]) -> Iterator[Fault]:
    known = [name for several in items.values() for name in several]
    if clause.id in seen:
        what = f"{clause.id} is the id of the clause in line {seen[clause.id]} too"
        yield Fault(path, clause.line, what, "an id of its own")
    seen[clause.id] = clause.line
    if clause.function and clause.function not in items:
        yield Fault(path, clause.line, f"no item grades {clause.function!r}", likely(clause.function, items))
    for name in clause.items:
        if name not in known:
            yield Fault(path, clause.line, f"{clause.id} names the item {name!r}", likely(name, known))


def _entries(path: Path, text: str, data: Mapping[str, Any], items: Items) -> Iterator[Fault]:
    table = TABLE[path.name]
    for key in data.keys() - {table}:
        yield Fault(path, 1, f"unknown entry {key!r}", f"[[{table}]] tables")
    listed = data.get(table, [])
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        yield Fault(path, 1, f"{table!r} is no list of tables", f"[[{table}]] tables")
        return
    lines = [number for number, row in enumerate(text.splitlines(), 1) if row.strip().startswith(f"[[{table}]]")]
    for place, entry in enumerate(listed):
        line = lines[place] if place < len(lines) else 1
        yield from (Fault(path, line, what, right) for what, right in _of_entry(entry, path.name, items))


def _of_entry(entry: Mapping[str, Any], file: str, items: Items) -> Iterator[tuple[str, str]]:
    keys = (*TEXTS[file], *MORE[file])
    for key in entry.keys() - set(keys):
        yield f"the unknown entry {key!r}", likely(key, keys)
    of_all = file == COSTLY and bool(entry.keys() & set(MORE[COSTLY]))
    for key in TEXTS[file]:
        found = entry.get(key, "" if of_all and key == "function" else None)
        if not isinstance(found, str) or (not found.strip() and key == "reason"):
            yield f"{key} is {found!r}" if key in entry else f"{key} is missing", f'{key} = "…"'
    which = entry.get("occurrence", 1)
    if type(which) is not int or which < 1:
        yield f"occurrence is {which!r}", "a whole number from 1: which of the changes that are told in the same lines"
    named = entry.get("mistakes", [])
    if not isinstance(named, list) or not all(isinstance(one, str) for one in named):
        yield f"mistakes is {named!r}", 'mistakes = ["…"]'
    function = entry.get("function", "")
    if isinstance(function, str) and function and function not in items:
        yield f"no item grades {function!r}", likely(function, items)
