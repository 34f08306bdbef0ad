"""What is wrong in an author's Python before any of it runs, and the folder's modules, imported one by one."""

from __future__ import annotations

import ast
import importlib
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from autograder.authoring.fixtures.regenerate import package_of
from autograder.authoring.proofreading.fault import Fault, attempt, likely
from autograder.grading.assignment import Assignment

GENERATOR = ("oracle", "cases", "mistakes")
CALLING = ("autograder.sandbox.worker.calling",)
NEEDED = {
    "oracle": "expected values, from loops and closed forms: `autograder new` writes one",
    "cases": "a function drafts(secret, draw)",
    "mistakes": "a tuple MISTAKES",
    "probes": "a function for each probe that a case names",
}


@dataclass
class Sources:
    """The Python files of an assignment's generator: their text, and their trees where they have one."""

    folder: Path
    texts: dict[Path, str] = field(default_factory=dict)
    trees: dict[Path, ast.Module] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @classmethod
    def of(cls, folder: Path) -> Sources:
        """Read and parse them all."""
        found = cls(folder)
        for name in (*generator_modules(folder), "probes"):
            paths = [folder / f"{name}.py", *sorted((folder / name).glob("*.py"))]
            there = [path for path in paths if path.is_file()]
            if not there:
                found.faults.append(Fault(paths[0], 1, "is missing", NEEDED[name]))
            for path in there:
                found.faults += found._read(path)
        return found

    def _read(self, path: Path) -> Iterator[Fault]:
        try:
            self.texts[path] = path.read_text(encoding="utf-8")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.trees[path] = ast.parse(self.texts[path])
        except UnicodeDecodeError as error:
            yield Fault(path, 1, f"not UTF-8: {error.reason} at byte {error.start}", "text that is saved as UTF-8")
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", None) or 1
            shown = getattr(error, "text", None) or ""
            yield Fault(
                path, line, f"not Python: {getattr(error, 'msg', error)}", f"a right line for {shown.strip()!r}"
            )

    def place_of(self, text: str, modules: tuple[str, ...]) -> tuple[Path, int]:
        """File and line where that text first stands as a string in these modules; else the first one's beginning."""
        for path, tree in self.trees.items():
            if any(path.stem == name or path.parent.name == name for name in modules):
                for node in ast.walk(tree):
                    if isinstance(node, ast.Constant) and node.value == text:
                        return path, node.lineno
        return self.file_of(modules[0]), 1

    def file_of(self, name: str) -> Path:
        """The file of that module, or of its package."""
        package = self.folder / name / "__init__.py"
        return package if package.is_file() else self.folder / f"{name}.py"

    @property
    def probes(self) -> dict[str, ast.FunctionDef | None]:
        """The probes by name; None stands for one that is imported."""
        tree = self.trees.get(self.folder / "probes.py", ast.Module([], []))
        found: dict[str, ast.FunctionDef | None] = {}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                found |= {alias.asname or alias.name: None for alias in node.names}
            if isinstance(node, ast.FunctionDef):
                found[node.name] = node
        return found

    def probe_faults(self) -> Iterator[Fault]:
        """Probes that cannot be called."""
        path = self.folder / "probes.py"
        for node in ast.walk(self.trees.get(path, ast.Module([], []))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
            if foreign := [n for n in names if n not in CALLING and n.split(".")[0] in ("autograder", "", *GENERATOR)]:
                what = f"a probe runs beside student code, where there is no {foreign[0]}"
                yield Fault(path, getattr(node, "lineno", 1), what, "torch, numpy, the standard library, given modules")
            if isinstance(node, ast.ImportFrom) and node.module in CALLING:
                known = vars(importlib.import_module(node.module))
                for name in [alias.name for alias in node.names if alias.name not in (*known, "*")]:
                    yield Fault(path, node.lineno, f"{node.module} has no {name!r}", likely(name, known))


def generator_modules(folder: Path) -> tuple[str, ...]:
    """The generator's modules: `functions` instead of `cases`, or besides, where functions are declared."""
    there = [name for name in ("functions", "cases") if (folder / f"{name}.py").is_file() or (folder / name).is_dir()]
    return ("oracle", *(there or ["cases"]), "mistakes")


def imported(assignment: Assignment) -> tuple[dict[str, ModuleType], list[Fault]]:
    """The generator's modules as far as they can be imported, and why the others cannot."""
    package = package_of(assignment)
    folder = assignment.folder
    modules: dict[str, ModuleType] = {}
    faults: list[Fault] = []
    for name in generator_modules(folder):
        path = folder / name / "__init__.py" if (folder / name).is_dir() else folder / f"{name}.py"

        def call(name: str = name) -> ModuleType:
            return importlib.import_module(f"{package}.{name}")

        found = attempt(call, folder, (path, 1), "code that can be imported")
        if isinstance(found, Fault):
            faults.append(found)
            for partial in [key for key in sys.modules if key.startswith(f"{package}.{name}")]:
                del sys.modules[partial]
        else:
            modules[name] = found
    return modules, faults
