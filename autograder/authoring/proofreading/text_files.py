"""What is wrong in the solution's module, its README.md and its notebook.toml, each with its line."""

from __future__ import annotations

import ast
import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autograder.authoring.handout.notebook import BEGIN, END, EXTRAS
from autograder.authoring.handout.release import POINTS_BEGIN, POINTS_END
from autograder.authoring.proofreading.fault import SLUG, Fault, likely, line_of
from autograder.grading.assignment import PACKAGES

CELL, QUESTION = ("after", "id", "kind", "source"), ("after", "id", "points", "question", "guide")
EXTRA_KEYS = ("without", "cell", "question")


def functions_of(path: Path) -> tuple[str, ...] | None:
    """The functions that a module defines; None where it cannot be read."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return None
    return tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def module_faults(path: Path, graded: Sequence[str]) -> Iterator[Fault]:
    """Syntax, markers without a partner, graded functions without an answer that is marked."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, UnicodeDecodeError):
        return  # items.toml names it, and is told
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        yield Fault(path, line, f"not Python: {getattr(error, 'msg', error)}", "a solution that can be imported")
        return
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    marked: set[str] = set()  # by either marker: of one without the other that is told
    opened = 0
    for number, line in enumerate(text.splitlines(), 1):
        marker = line.strip()
        if marker == BEGIN and opened:
            yield Fault(path, number, f"{BEGIN!r} inside an answer that began in line {opened}", f"{END!r} before it")
        if marker == END and not opened:
            yield Fault(path, number, f"{END!r} ends no answer", f"{BEGIN!r} before it")
            marked |= {node.name for node in [node for node in functions if node.lineno <= number][-1:]}
        if marker == BEGIN and not opened:
            around = [node.name for node in functions if node.lineno <= number <= (node.end_lineno or 0)]
            marked |= set(around)
            if not around:
                yield Fault(path, number, "an answer begins outside every function", "markers inside one")
        opened = number if marker == BEGIN else 0 if marker == END else opened
    if opened:
        yield Fault(path, opened, f"the answer that begins here has no {END!r}", "one after its last line")
    for node in functions:
        if node.name in graded and node.name not in marked:
            yield Fault(path, node.lineno, f"no answer is marked in {node.name}", f"{BEGIN!r} and {END!r} around it")


def package_faults(path: Path, packages: object) -> Iterator[Fault]:
    """What the solution imports, and students are not to have: `packages` is what items.toml says, if anything."""
    known = packages if isinstance(packages, list) else PACKAGES
    nodes: list[ast.AST] = []
    with contextlib.suppress(OSError, ValueError, SyntaxError):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    for node in nodes:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        for name in sorted({one.partition(".")[0] for one in names} & {*PACKAGES}):
            if name not in known:
                what = f"imports {name}, which is not in packages of items.toml"
                yield Fault(path, getattr(node, "lineno", 1), what, f'"{name}" among them')


def readme_faults(path: Path) -> Iterator[Fault]:
    """A text that is not there, or has no place for its table of points."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        yield Fault(path, 1, f"cannot be read: {error.strerror}", "the assignment's text")
        return
    except UnicodeDecodeError as error:
        yield Fault(path, 1, f"not UTF-8: {error.reason} at byte {error.start}", "text that is saved as UTF-8")
        return
    begin, end = text.find(POINTS_BEGIN), text.find(POINTS_END)
    if begin < 0 or end < begin:
        there = POINTS_BEGIN if begin >= 0 else POINTS_END
        right = f"{POINTS_BEGIN} and, after it, {POINTS_END}"
        yield Fault(path, line_of(text, there), "there is no place for the table of points", right)
    out, back = "<!-- not in the notebook -->", "<!-- in the notebook again -->"
    if text.count(out) != text.count(back):
        yield Fault(path, line_of(text, out), f"{out!r} and {back!r} are not in pairs", "one of each")


def notebook_faults(path: Path, readme: str, functions: Sequence[str]) -> Iterator[Fault]:
    """All that is wrong in notebook.toml; nothing where there is none."""
    if not path.is_file():
        return
    found = read_toml(path, 'key = "text"')
    if isinstance(found, Fault):
        yield found
        return
    text, data = found
    for key in data.keys() - set(EXTRA_KEYS):
        yield Fault(path, line_of(text, key), f"unknown entry {key!r}", likely(key, EXTRA_KEYS))
    places = {"", *functions, *re.findall(r"^## [ `]*(.*?)[ `]*$", readme, flags=re.MULTILINE)}
    without = data.get("without", [])
    for title in without if isinstance(without, list) else []:
        if title not in places:
            yield Fault(path, line_of(text, "without"), f"README.md has no section {title!r}", likely(title, places))
    seen: set[str] = set()
    for kind, keys in (("cell", CELL), ("question", QUESTION)):
        lines = [n for n, line in enumerate(text.splitlines(), 1) if line.strip() == f"[[{kind}]]"]
        listed = data.get(kind, [])
        for place, entry in enumerate(listed if isinstance(listed, list) else []):
            line = lines[place] if place < len(lines) else 1
            for what, right in _about(entry, kind, keys, places, seen):
                yield Fault(path, line, what, right)


def _about(
    entry: Mapping[str, Any], kind: str, keys: Sequence[str], places: set[str], seen: set[str]
) -> Iterator[tuple[str, str]]:
    name = entry.get("id", f"a {kind}")
    for key in keys:
        found = entry.get(key)
        if key == "points":
            if isinstance(found, bool) or not isinstance(found, int | float) or not found > 0:
                yield f"the points of {name} are {found!r}", "a number above 0"
        elif not isinstance(found, str) or (key != "after" and not found.strip()):
            yield f"{key} of {name} is {found!r}" if key in entry else f"{name} lacks {key}", f'{key} = "…"'
    for key in entry.keys() - set(keys):
        yield f"{name} has the unknown entry {key!r}", likely(key, keys)
    if isinstance(name, str) and (not SLUG.fullmatch(name) if "id" in entry else False):
        yield f"the id {name!r} cannot be a cell's", "small letters, digits and single dashes"
    if name in seen:
        yield f"two cells are called {name!r}", "an id of its own"
    seen.add(str(name))
    if isinstance(after := entry.get("after"), str) and after not in places:
        yield f"{name} stands after {after!r}, which README.md does not have", likely(after, sorted(places))
    if kind == "cell" and isinstance(entry.get("kind"), str) and entry["kind"] not in ("code", "text"):
        yield f"kind of {name} is {entry['kind']!r}", "'code' or 'text'"


def notebook_path(solution: Path) -> Path:
    """Where an assignment says what only its notebook has."""
    return solution / EXTRAS


def read_toml(path: Path, right: str) -> tuple[str, dict[str, Any]] | Fault:
    """The text of the file, and what it says; or why it is no TOML. Raises OSError where there is nothing to read.

    right   what TOML looks like here, for who wrote something else
    """
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except UnicodeDecodeError as error:
        return Fault(path, 1, f"not UTF-8: {error.reason} at byte {error.start}", "text that is saved as UTF-8")
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        return Fault(path, int(place[1]) if place else 1, f"not TOML: {error}", right)
