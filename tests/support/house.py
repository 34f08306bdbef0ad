"""What the engine's modules import, read from their text."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator

from places import KIT

ENGINE = KIT / "autograder"
WORKER = "sandbox.worker.worker"
TENSORS = "sandbox.worker.tensors"


def module_names() -> list[str]:
    """Every module of the engine that is no package's `__init__`, without `autograder.`."""
    names = (path.relative_to(ENGINE).with_suffix("").as_posix() for path in ENGINE.rglob("*.py"))
    return sorted(name.replace("/", ".") for name in names if not name.endswith("__init__"))


def package_of(module: str) -> str:
    """The package of the first level that a module lies in; "" for `__main__`."""
    return module.partition(".")[0] if "." in module or (ENGINE / module).is_dir() else ""


@functools.cache
def source(module: str) -> str:
    return ENGINE.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")


@functools.cache
def tree(module: str) -> ast.Module:
    return ast.parse(source(module))


@functools.cache
def imported(module: str) -> tuple[str, ...]:
    """Every module that is imported anywhere in this one; of a package of ours, what is imported from it."""
    return tuple(_imported(module))


def _imported(module: str) -> Iterator[str]:
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            base = node.module or ""
            own = base.partition(".")[0] == "autograder" and KIT.joinpath(*base.split("."), "__init__.py").is_file()
            yield from ((f"{base}.{alias.name}" for alias in node.names) if own else (base,))


def engine_imports(module: str) -> set[str]:
    found = {name.removeprefix("autograder.") for name in imported(module) if name.startswith("autograder.")}
    return found - {"__version__"}
