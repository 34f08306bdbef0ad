"""Another name for an item or a graded function, in every file of an assignment that says it, and in grades kept.

Pages of grades are taken away: they were made of names, texts and submissions together, and `grade` makes them anew.
"""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.grading.assignment import SLUG, Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import table_of, write_atomically
from autograder.vocabulary.report import from_bytes

GENERATED = ("public", "hidden", "manifest.json", "submissions")
TEXTS = (".py", ".toml", ".md")
GRADIENT = "_gradient"  # what the oracle calls the gradient of a function


@dataclass(frozen=True)
class Renaming:
    """What is renamed: an item, or a function where `is_function`; `files` are the new texts of those that change.

    pages   of the grades, which say the old name
    """

    old: str
    new: str
    is_function: bool
    files: Mapping[Path, str]
    grades: Mapping[Path, bytes]
    pages: Sequence[Path] = ()


def renaming(assignment: Assignment, old: str, new: str, grades: Path | None) -> Renaming:
    """Everything that says the old name, with the new one; raises UsageError where that will not do. Writes nothing."""
    is_item = any(item.id == old for item in (*assignment.items, *assignment.curves))
    if not is_item and old not in assignment.functions:
        known = ", ".join([*(item.id for item in assignment.items), *assignment.functions])
        raise UsageError(f"There is no item and no graded function {old!r} in {assignment.name}. There are {known}.")
    taken = {item.id for item in (*assignment.items, *assignment.curves)} if is_item else set(_defined(assignment))
    if new in taken:
        raise UsageError(f"{new!r} is the name of another one.")
    if is_item and not SLUG.fullmatch(new):
        raise UsageError(f"An item's id is made of small letters, digits and single dashes; {new!r} is not.")
    if not is_item and not (new.isascii() and new.isidentifier()):
        raise UsageError(f"{new!r} is no name of a function in Python.")
    alone = rf"(?<![\w-]){re.escape(old)}(?![\w-])"  # in no longer name, and in no other slug
    word = re.compile(alone if is_item else rf"{alone}|(?<!\w){re.escape(old)}(?=\()")
    files = {}
    has_gradient = not is_item and f"{old}{GRADIENT}" not in _defined(assignment)  # which would be another function
    for path in _texts(assignment):
        text = path.read_text(encoding="utf-8")
        changed = word.sub(new, text)
        if has_gradient and path.suffix == ".py" and assignment.folder in path.parents:
            changed = re.sub(rf"(?<![\w-]){re.escape(old)}{GRADIENT}(?!\w)", f"{new}{GRADIENT}", changed)
        if (
            path == assignment.folder / "items.toml"
        ):  # whoever has the old name in an earlier handout is told the new one
            since = datetime.date.today().isoformat()
            changed += f'\n[[renamed]]\nold = "{old}"\nnew = "{new}"\nsince = "{since}"\n'
        if changed != text:
            files[path] = changed
    kept = {} if grades is None else dict(_grades(assignment, grades, old, new, is_item=is_item))
    pages = () if grades is None else tuple(_pages(grades, word))
    return Renaming(old, new, not is_item, files, kept, pages)


def rename(one: Renaming, make: Callable[[], object]) -> None:
    """Write it all, and make what depends on it; where that fails, everything is what it was."""
    before = {path: path.read_bytes() for path in (*one.files, *one.grades)}
    written: dict[Path, str | bytes] = {**one.files, **one.grades}
    try:
        for path, content in written.items():
            write_atomically(path, content)
        make()
    except BaseException:
        for path, data in before.items():
            write_atomically(path, data)
        raise
    for path in one.pages:
        path.unlink(missing_ok=True)


def _texts(assignment: Assignment) -> Iterator[Path]:
    for folder in (assignment.folder, assignment.solution):
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(folder).parts
            if path.is_file() and path.suffix in TEXTS and parts[0] not in GENERATED and "__pycache__" not in parts:
                yield path


def _defined(assignment: Assignment) -> list[str]:
    text = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    return re.findall(r"^def (\w+)\(", text, flags=re.MULTILINE)


def _grades(assignment: Assignment, folder: Path, old: str, new: str, *, is_item: bool) -> Iterator[tuple[Path, bytes]]:
    """Reports and the gradebook in that folder that name it."""
    reports = sorted((folder / "reports").glob("*.json"))
    if not reports:
        raise UsageError(f"{folder} holds no reports: give --grades the folder that `grade --out` wrote.")
    key = "item" if is_item else "function"
    for path in reports:
        data = path.read_bytes()
        report = from_bytes(data)
        if report is None or report.assignment != assignment.name:
            raise UsageError(f"{path} is no report of {assignment.name}. Nothing was renamed.")
        told = json.loads(data)
        for item in told["items"]:
            item[key] = new if item[key] == old else item[key]
        yield path, (json.dumps(told, indent=1, ensure_ascii=False) + "\n").encode()
    for path in sorted((folder / "details").glob("*.json")):
        told = json.loads(path.read_bytes())
        if (changed := _renamed(told, old, new)) != told:
            yield path, (json.dumps(changed, separators=(",", ":"), ensure_ascii=True) + "\n").encode()
    yield from _decided(folder, old, new) if is_item else ()
    book = folder / "grades.csv"
    if is_item and book.is_file():
        first, rest = book.read_bytes().split(b"\n", 1)
        head = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, first.decode("utf-8"))
        yield book, head.encode() + b"\n" + rest


def _renamed(found: Any, old: str, new: str) -> Any:
    """The same JSON with each text that is the old name, keys included, as the new one."""
    if isinstance(found, dict):
        return {new if key == old else key: _renamed(value, old, new) for key, value in found.items()}
    if isinstance(found, list):
        return [_renamed(value, old, new) for value in found]
    return new if found == old else found


def _decided(folder: Path, old: str, new: str) -> Iterator[tuple[Path, bytes]]:
    """What a person decided on the item: rows of decisions.csv, names in policy.toml."""
    policy = folder / "policy.toml"
    for path in (folder / "decisions.csv", folder / "overrides.csv"):  # the second of an earlier kit
        if not path.is_file() or not (data := path.read_bytes()).strip():
            continue
        table = table_of(data, path, whole_rows=True)
        columns = [place for place, name in enumerate(table.header) if name.strip().lower() == "item"]
        rows = [list(row) for row in table.rows]
        for row, column in itertools.product(rows, columns):
            row[column] = new if row[column].strip() == old else row[column]
        yield path, table.text([table.header, *rows]).encode()
    if policy.is_file():
        text = policy.read_text(encoding="utf-8")
        plain = rf"(?m)(?:(?<=[\"'])|(?<=^\[items\.)|(?<=^items\.)){re.escape(old)}(?=[\"'\].])"
        yield policy, re.sub(plain, new, text).encode()


def _pages(folder: Path, word: re.Pattern[str]) -> Iterator[Path]:
    """The pages in that folder that say the name."""
    for path in (folder / "index.html", *sorted((folder / "feedback").glob("*.html"))):
        if path.is_file() and word.search(path.read_text(encoding="utf-8", errors="replace")):
            yield path
