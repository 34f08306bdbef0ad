"""The code that draws an assignment's trials, carried as text, so that every machine of a cluster has it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from autograder.grading.counterexamples.trials import Trial
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import GraderFault

DRAWS = "counterexamples"
IMPORTING = threading.Lock()
NEEDED = ("oracle", "cases", DRAWS)


@dataclass(frozen=True)
class Drawing:
    """The modules of an assignment's fixtures that draw: dotted name → text, `cases` for a package's own."""

    assignment: str
    sources: Mapping[str, str]

    @classmethod
    def of(cls, assignment: Assignment) -> Drawing | None:
        """Read them; None where there are none, as in a handout."""
        folder = assignment.folder
        if not (folder / f"{DRAWS}.py").is_file():
            return None
        paths = [folder / f"{name}.py" for name in NEEDED]
        paths = [path for path in paths if path.is_file()]
        paths += [path for name in NEEDED for path in sorted((folder / name).glob("*.py"))]
        return cls(assignment.name, {_name(path.relative_to(folder).parts): path.read_text("utf-8") for path in paths})

    def items(self) -> frozenset[str]:
        """The items that trials can be drawn for."""
        return frozenset(self._module.DRAWS)

    @property
    def left_out(self) -> Mapping[str, str]:
        """The items that none can be drawn for, and why."""
        found: Mapping[str, str] = self._module.LEFT_OUT
        return found

    def modules(self) -> dict[str, ModuleType]:
        """The modules that draw, by their names within the package."""
        package = self._module.__name__.removesuffix(DRAWS)
        return {name: sys.modules[package + name] for name in self.sources if package + name in sys.modules}

    def trial(self, item: str, submission: str, number: int) -> Trial:
        """The trial of that number for an item: always the same one for the same submission, and larger by number.

        Raises GraderFault where the assignment's code fails.
        """
        key = f"{self.assignment}\n{submission}\n{item}\n{number}".encode()
        generator = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:16], "big"))
        try:
            trial: Trial = self._module.DRAWS[item](generator, number)
        except Exception as error:
            raise GraderFault(f"{DRAWS}.py of {self.assignment} draws nothing for {item}: {error}.") from error
        return trial

    @cached_property
    def _module(self) -> Any:
        text = "\n".join(f"{name}\n{source}" for name, source in sorted(self.sources.items()))
        package = f"drawing_of_{self.assignment}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        with IMPORTING:  # submissions are graded by several threads
            if package not in sys.modules:
                sys.meta_path.append(_Finder(package, self.sources))
                root = ModuleType(package)
                root.__path__ = []
                sys.modules[package] = root
            try:
                return importlib.import_module(f"{package}.{DRAWS}")
            except Exception as error:
                raise GraderFault(f"{DRAWS}.py of {self.assignment} cannot be imported: {error}.") from error

    def __getstate__(self) -> dict[str, Any]:
        """Leave the imported module behind where this is sent to another machine."""
        return {"assignment": self.assignment, "sources": dict(self.sources)}


def _name(parts: Sequence[str]) -> str:
    names = [*parts[:-1], parts[-1].removesuffix(".py")]
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds the modules of one package in texts that are held in memory."""

    def __init__(self, package: str, sources: Mapping[str, str]) -> None:
        self._sources = {f"{package}.{name}": text for name, text in sources.items()}

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._sources:
            return None
        return importlib.util.spec_from_loader(fullname, self, is_package=self.is_package(fullname))

    def is_package(self, fullname: str) -> bool:
        return any(name.startswith(f"{fullname}.") for name in self._sources)

    def get_source(self, fullname: str) -> str:
        return self._sources[fullname]
