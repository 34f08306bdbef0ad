"""Rename an item or a graded function in every file of an assignment that names it."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path

from autograder.grading.assignment import SLUG, Assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import write_atomically

GENERATED = ("public", "hidden", "manifest.json", "submissions")
GRADIENT = "_gradient"  # the end of what the oracle calls the gradient of a function


def renamed_files(assignment: Assignment, old: str, new: str) -> dict[Path, str]:
    """Return the new text of each file that changes; write nothing. Raise UsageError where that name will not do."""
    items = [item.id for item in (*assignment.items, *assignment.curves)]
    solution = (assignment.solution / f"{assignment.module}.py").read_text(encoding="utf-8")
    defined = re.findall(r"^def (\w+)\(", solution, flags=re.MULTILINE)
    is_item = old in items
    if not is_item and old not in assignment.functions:
        known = ", ".join([*(item.id for item in assignment.items), *assignment.functions])
        raise UsageError(f"There is no item and no graded function {old!r} in {assignment.name}. There are {known}.")
    if new in (*items, *defined):
        raise UsageError(f"{new!r} is the name of another one.")
    if is_item and not SLUG.fullmatch(new):
        raise UsageError(f"An item's id is made of small letters, digits and single dashes; {new!r} is not.")
    if not is_item and not (new.isascii() and new.isidentifier()):
        raise UsageError(f"{new!r} is no name of a function in Python.")
    alone = rf"(?<![\w-]){re.escape(old)}(?![\w-])"  # in no longer name, and in no other slug
    word = re.compile(alone if is_item else rf"{alone}|(?<!\w){re.escape(old)}(?=\()")
    gradient = re.compile(rf"(?<![\w-]){re.escape(old)}{GRADIENT}(?!\w)")
    has_gradient = not is_item and f"{old}{GRADIENT}" not in defined  # else that is a function of its own
    changes = {}
    for folder in (assignment.folder, assignment.solution):
        for path in sorted(folder.rglob("*")):
            parts = path.relative_to(folder).parts
            is_generated = parts[0] in GENERATED or "__pycache__" in parts
            if is_generated or not path.is_file() or path.suffix not in (".py", ".toml", ".md"):
                continue
            text = path.read_text(encoding="utf-8")
            changed = word.sub(new, text)
            if has_gradient and path.suffix == ".py" and folder == assignment.folder:
                changed = gradient.sub(f"{new}{GRADIENT}", changed)
            if path == assignment.folder / "items.toml":  # whoever has an earlier handout is told the new name
                since = datetime.date.today().isoformat()
                changed += f'\n[[renamed]]\nold = "{old}"\nnew = "{new}"\nsince = "{since}"\n'
            if changed != text:
                changes[path] = changed
    return changes


def write_all(files: dict[Path, str], then: Callable[[], object]) -> None:
    """Write these files, and make what depends on them; where that fails, everything is what it was."""
    before = {path: path.read_bytes() for path in files}
    try:
        for path, text in files.items():
            write_atomically(path, text)
        then()
    except BaseException:
        for path, data in before.items():
            write_atomically(path, data)
        raise
