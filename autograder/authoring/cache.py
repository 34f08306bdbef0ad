"""Results of earlier runs of `selfcheck` and `regenerate`, each under a digest of all that it depends on.

What a text does in a case depends on the engine, the packages and the machine, on probes and given modules, on the
functions that the text uses, and on the case: a digest of these is the key. So nothing has to say that a result is out
of date, and one function, case or mistake that is changed costs its own runs.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import platform
import re
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from autograder.authoring.catalogue import parsed
from autograder.grading.assignment import Assignment
from autograder.vocabulary.files import ENGINE, PRIVATE

MISTAKES = "hidden/mistakes.json"  # slug → `digest_of_mistake`, of what the stored cases were made with
MOST_RESULTS = 100_000  # of an assignment; those that were not asked for longest go
NAMED = re.compile(r"(autograder[\w.]*)(?: import (\([^)]*\)|.*))?")


@dataclass(frozen=True)
class ResultCache:
    """A table of results in a file; without one, or where it cannot be used, no result is known and none is kept.

    engine   digest of what every result depends on beside the parts of its key
    """

    path: Path | None = None
    engine: str = ""

    @classmethod
    def of(cls, folder: Path | None, assignment: Assignment, work: str) -> ResultCache:
        """Return the assignment's own in that folder, of results that the module `work` makes."""
        return cls(folder / f"{assignment.name}.sqlite", engine_digest(assignment, work)) if folder else cls()

    def key(self, *parts: object) -> str:
        """Return the key of a result that depends on these parts."""
        return digest(self.engine, *parts)

    def known(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the results that are known under these keys."""
        mark = "UPDATE results SET used = ? WHERE key = ? RETURNING key, result"
        return dict(self._do((mark, (time.time(), key)) for key in keys))

    def keep(self, results: Mapping[str, bytes]) -> None:
        """Keep these results for later runs."""
        rows = [("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (*row, time.time())) for row in results.items()]
        kept = "SELECT key FROM results ORDER BY used DESC LIMIT ?1"  # sorts all of them
        excess = f"DELETE FROM results WHERE (SELECT count(*) FROM results) > ?1 AND key NOT IN ({kept})"
        if rows:
            self._do([*rows, (excess, (MOST_RESULTS,))])

    def _do(self, statements: Iterable[tuple[str, tuple[Any, ...]]]) -> list[Any]:
        """Return the rows that these give; none where that fails, for every result can be worked out again."""
        if self.path is None:
            return []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.touch(mode=PRIVATE)  # it holds what hidden cases return
            with contextlib.closing(sqlite3.connect(self.path)) as table, table:
                table.execute("CREATE TABLE IF NOT EXISTS results (key TEXT PRIMARY KEY, result BLOB, used REAL)")
                return [row for statement in statements for row in table.execute(*statement)]
        except (OSError, sqlite3.OperationalError):  # another process writes, or nobody may
            return []
        except sqlite3.DatabaseError:  # the file is damaged, or is none of SQLite's
            self.path.unlink(missing_ok=True)
            return []


NO_CACHE = ResultCache()


def digest(*parts: object) -> str:
    """Return one name for all these parts together."""
    parts = tuple(hashlib.sha256(part).digest() if isinstance(part, bytes) else part for part in parts)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def engine_digest(assignment: Assignment, work: str) -> str:
    """Digest what every result depends on that this module makes: the engine, packages, machine, given modules."""
    packages, engine = {}, sorted(imported_texts(work).items())
    for name in ("torch", "numpy", "safetensors", "einops"):
        with contextlib.suppress(PackageNotFoundError):  # grading itself says what is missing
            packages[name] = version(name)
    machine = platform.python_version(), platform.node()  # another processor may round otherwise
    given = assignment.given_sources(), assignment.probes_source(), assignment.needs_torch, assignment.only_packages
    return digest(engine, packages, machine, given)


def texts_of(assignment: Assignment) -> list[bytes]:
    """Read the Python files of an assignment and of its solution: while they stay, there is little that has to run."""
    homes = (assignment.folder, assignment.solution)
    return [path.read_bytes() for home in homes for path in sorted(home.rglob("*.py"))]


def imported_texts(module: str) -> dict[str, str]:
    """Map a module of the kit, and each that its text or another's names, as workers do in strings, to its text."""
    texts, left = dict[str, str](), {module}
    while left:
        name = left.pop()
        path = ENGINE.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name not in texts and path.is_file():  # else it names what stands in a module
            texts[name] = path.read_text(encoding="utf-8")
            left.add(name.rpartition(".")[0])
            for package, names in NAMED.findall(texts[name]):
                left |= {package, *(f"{package}.{one}" for one in re.findall(r"\w+", names))}
    return texts


def digest_of_mistake(solution: str, function: str, text: str) -> str:
    """Digest what a mistake answers with: its text, and what that and its function use of the solution."""
    return digest(used_text(solution, {function, *names_of(text)}), text.strip())[:16]


def used_text(solution: str, names: Iterable[str]) -> str:
    """Return the solution's text without the functions and classes that neither these names nor its statements use."""
    statements = _statements(solution)
    needed = {*names, *(used for name, uses, _ in statements if not name for used in uses)}
    while more := {used for name, uses, _ in statements if name in needed for used in uses} - needed:
        needed |= more
    return "\n".join(text for name, _, text in statements if not name or name in needed)


@functools.lru_cache(maxsize=4)
def _statements(solution: str) -> list[tuple[str, set[str], str]]:
    """Split a text into its statements: the name of a function or class, else ""; the names that it uses; its text."""
    lines = solution.splitlines()
    statements = []
    for node in ast.parse(solution).body:
        name = node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else ""
        start = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        text = "\n".join(lines[start - 1 : node.end_lineno])
        statements.append((name, names_in(node), text))
    return statements


@functools.cache
def names_of(text: str) -> set[str]:
    """Every name that a text uses."""
    return names_in(parsed(text))


def names_in(node: ast.AST) -> set[str]:
    """Every name that a node uses."""
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def may_keep_something(text: str) -> bool:
    """Tell whether a call of the text's functions may leave something behind that a later call finds.

    So do `f.last = answer`, `global`, a default that is made once, a decorator, and what stands beside the functions.
    """
    tree = parsed(text)
    names = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        match node:
            case ast.Global() | ast.FunctionDef(decorator_list=[_, *_]):
                return True
            case ast.Module() if not all(
                isinstance(n, ast.FunctionDef | ast.Import | ast.ImportFrom) for n in node.body
            ):
                return True
            case ast.Attribute(value=ast.Name(id=name)) if name in names:
                return True
            case ast.arguments():
                defaults = (*node.defaults, *node.kw_defaults)
                if any(isinstance(default, ast.Call | ast.List | ast.Dict | ast.Set) for default in defaults):
                    return True
    return False
