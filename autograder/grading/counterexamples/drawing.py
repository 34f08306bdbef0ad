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
from autograder.grading.items import Assignment, Item
from autograder.vocabulary.errors import GraderFault

DRAWS = "counterexamples"
IMPORTING = threading.Lock()
FUNCTIONS = "functions"
NEEDED = ("oracle", "cases", DRAWS, FUNCTIONS)


@dataclass(frozen=True)
class Drawing:
    """The modules of an assignment's fixtures that draw: dotted name → text, `cases` for a package's own.

    items   those that laws judge: what `functions` declares draws their trials
    """

    assignment: str
    sources: Mapping[str, str]
    by_laws: tuple[Item, ...] = ()

    @classmethod
    def of(cls, assignment: Assignment) -> Drawing | None:
        """Read them; None where there are none, as in a handout."""
        folder = assignment.folder
        if not any(
            (folder / name).is_file() for name in (f"{DRAWS}.py", f"{FUNCTIONS}.py", f"{FUNCTIONS}/__init__.py")
        ):
            return None
        paths = [folder / f"{name}.py" for name in NEEDED]
        paths = [path for path in paths if path.is_file()]
        paths += [path for name in NEEDED for path in sorted((folder / name).glob("*.py"))]
        sources = {_name(path.relative_to(folder).parts): path.read_text("utf-8") for path in paths}
        return cls(assignment.name, sources, tuple(item for item in assignment.items if item.laws))

    def items(self) -> frozenset[str]:
        """The items that trials can be drawn for."""
        return frozenset(self._draws)

    @property
    def left_out(self) -> Mapping[str, str]:
        """The items that none can be drawn for, and why."""
        known = {item.id: "no law of it is about numbers" for item in self.by_laws if item.id not in self._draws}
        return known | (self._modules[DRAWS].LEFT_OUT if DRAWS in self._modules else {})

    def modules(self) -> dict[str, ModuleType]:
        """The modules that draw, by their names within the package."""
        package = next(iter(self._modules.values())).__name__.rpartition(".")[0]
        names = {name: f"{package}.{name}" for name in self.sources}
        return {name: sys.modules[whole] for name, whole in names.items() if whole in sys.modules}

    def trial(self, item: str, submission: str, number: int) -> Trial:
        """The trial of that number for an item: always the same one for the same submission, and larger by number.

        Raises GraderFault where the assignment's code fails.
        """
        key = f"{self.assignment}\n{submission}\n{item}\n{number}".encode()
        generator = np.random.default_rng(int.from_bytes(hashlib.sha256(key).digest()[:16], "big"))
        try:
            trial: Trial = self._draws[item](generator, number)
        except Exception as error:
            raise GraderFault(f"The generator of {self.assignment} draws nothing for {item}: {error}.") from error
        return trial

    @cached_property
    def _draws(self) -> Mapping[str, Any]:
        found = dict(self._modules[FUNCTIONS].EXAM.chased(self.by_laws)) if FUNCTIONS in self._modules else {}
        return found | (self._modules[DRAWS].DRAWS if DRAWS in self._modules else {})

    @cached_property
    def _modules(self) -> Mapping[str, Any]:
        text = "\n".join(f"{name}\n{source}" for name, source in sorted(self.sources.items()))
        package = f"drawing_of_{self.assignment}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        with IMPORTING:  # submissions are graded by several threads
            if package not in sys.modules:
                sys.meta_path.append(_Finder(package, self.sources))
                root = ModuleType(package)
                root.__path__ = []
                sys.modules[package] = root
            try:
                names = [name for name in (DRAWS, FUNCTIONS) if name in self.sources]
                return {name: importlib.import_module(f"{package}.{name}") for name in names}
            except Exception as error:
                raise GraderFault(f"The generator of {self.assignment} cannot be imported: {error}.") from error

    def __getstate__(self) -> dict[str, Any]:
        """Leave the imported module behind where this is sent to another machine."""
        return {"assignment": self.assignment, "sources": dict(self.sources), "by_laws": self.by_laws}


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
