"""Read an assignment's text files and list all that is wrong in them, each with file and line.

What may stand in items.toml is said by `autograder.grading.assignment`, in notebook.toml by `handout.notebook`. Nothing
of the author's runs: what goes wrong in their Python, `faults.explained` tells when the fixtures are made, and what
keeps a handout from being made, `release`.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from autograder.authoring.exam.contract import CONTRACT, clauses_in
from autograder.authoring.faults import Fault, Faults, likely, line_in, line_of, read_toml, todos
from autograder.authoring.handout.notebook import EXTRAS, Extras
from autograder.authoring.handout.release import without_hidden
from autograder.grading.assignment import KEYS, OTHER_PACKAGES, PACKAGES, faults_in
from autograder.grading.counterexamples import DRAWS
from autograder.vocabulary.errors import FixtureError

R = TypeVar("R")
BESIDE = "autograder.sandbox.worker."  # what of the kit runs beside student code
NEEDED = {
    "oracle": "expected values, from loops and closed forms: `autograder new` writes one",
    "mistakes": "a tuple MISTAKES",
    "probes": "a function for each probe that a case names",
}


def refuse_faults(folder: Path) -> None:
    """Raise Faults where a text file of the assignment in `folder` is wrong, or Python in it cannot be parsed."""
    if faults := reading_faults(folder):
        raise Faults.of(faults)


def authored(root: Path, name: str | None, find: Callable[[Path, str | None], R]) -> R:
    """What `find` finds of an author's own course; where an assignment cannot be read, all that is wrong in it."""
    try:
        return find(root, name)
    except FixtureError:
        for folder in sorted(path.parent for path in (root / "fixtures").glob("*/items.toml")):
            if name in (None, folder.name):
                refuse_faults(folder)
        raise


def reading_faults(folder: Path) -> list[Fault]:
    """List what is wrong in the files of the assignment in `folder` and of its solution; none of their code is run."""
    folder, faults = folder.resolve(), list[Fault]()
    solution = folder.parent.parent / "solution" / folder.name
    cases = "functions" if (folder / "functions.py").is_file() else "cases"
    for name, right in {**NEEDED, cases: "a function drafts(secret, draw)"}.items():
        if not (folder / f"{name}.py").is_file() and not (folder / name / "__init__.py").is_file():
            faults.append(Fault(folder / f"{name}.py", 1, "is missing", right))
    text, data = read_toml(folder / "items.toml", faults)
    packages = (data or {}).get("packages")
    packages = packages if isinstance(packages, list) else PACKAGES
    for name in (*NEEDED, "functions", "cases"):
        for path in (folder / f"{name}.py", *sorted((folder / name).glob("*.py"))):
            is_probe = name == "probes"  # which students run as well
            allowed = (*packages, "numpy") if is_probe else (*PACKAGES, *OTHER_PACKAGES)
            faults += _python_faults(path, _parsed(path, faults), allowed, is_probe=is_probe)
    if data is None:
        return faults
    if not data.get("item"):  # which `new` comments out where it can grade nothing
        faults += todos(folder)
    module = solution / f"{data.get('module')}.py"
    tree = _parsed(module, faults)
    faults += _python_faults(module, tree, packages)
    graded = [entry for table in ("item", "curve") for entry in _entries(data, table)]
    faults += _item_faults(folder / "items.toml", text, data, solution, tree)
    faults += _drawing_faults(path := folder / f"{DRAWS}.py", _parsed(path, faults), graded)
    if (solution / EXTRAS).is_file():
        text, extras = read_toml(solution / EXTRAS, faults)
        try:
            Extras.model_validate(extras or {})
        except ValidationError as error:
            for fault in error.errors():
                table, *places = map(str, fault["loc"])
                line = line_in(text, table, int(places[0]), places[-1]) if places else line_of(text, table)
                faults.append(Fault(solution / EXTRAS, line, f"{'.'.join([table, *places])}: {fault['msg']}"))
    if (contract := folder / CONTRACT).is_file():
        items: dict[str, list[str]] = {}
        for entry in graded:
            items.setdefault(str(entry.get("function")), []).append(str(entry.get("id")))
        clauses_in(contract, items, faults)
    return faults


def _parsed(path: Path, faults: list[Fault]) -> ast.Module:
    """Parse a module; an empty one where it is missing or no Python, which is a fault."""
    try:
        return ast.parse(path.read_bytes() if path.is_file() else b"")
    except (SyntaxError, ValueError) as error:
        what, text = getattr(error, "msg", str(error)), getattr(error, "text", "") or ""
        faults.append(Fault(path, getattr(error, "lineno", 1) or 1, f"not Python: {what}", text.strip()))
        return ast.Module([], [])


def _python_faults(path: Path, tree: ast.Module, allowed: Sequence[str], *, is_probe: bool = False) -> Iterator[Fault]:
    """Find imports of what is not there where the module runs."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        from_one = ["" if node.level else node.module or ""] if isinstance(node, ast.ImportFrom) else []  # "": a folder
        for module in from_one or [alias.name for alias in node.names]:
            package = module.partition(".")[0]
            if is_probe and package in ("autograder", "") and not module.startswith(BESIDE):
                missing = module or "other module of this folder"
                what = f"a probe runs beside student code, where there is no {missing}"
                yield Fault(path, node.lineno, what, "torch, numpy, the standard library, given modules")
            if package in {*PACKAGES, *OTHER_PACKAGES} - {*allowed}:
                what = f"imports {package}, which is not in packages of items.toml"
                yield Fault(path, node.lineno, what, f'"{package}" among them')


def _entries(data: Mapping[str, Any], table: str) -> list[Mapping[str, Any]]:
    listed = data.get(table, [])
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _item_faults(path: Path, text: str, data: Mapping[str, Any], solution: Path, tree: ast.Module) -> Iterator[Fault]:
    """Find what does not fit in items.toml: to its form, the folder, the solution's text."""
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for fault in faults_in(data):
        yield Fault(path, line_in(text, fault.table, fault.place, fault.key), fault.what)
    name, module = data.get("assignment"), data.get("module")
    if isinstance(name, str) and name.strip() and name != path.parent.name:
        what = f"the assignment is called {name!r} in a folder called {path.parent.name!r}"
        yield Fault(path, line_in(text, key="assignment"), what, "the same name")
    if isinstance(module, str) and not (solution / f"{module}.py").is_file():
        right = f"the solution's module: {likely(module, [other.stem for other in sorted(solution.glob('*.py'))])}"
        yield Fault(path, line_in(text, key="module"), f"there is no {solution.name}/{module}.py in solution/", right)
    for key, ending in (("given", ".py"), ("also", "")):
        for name in _texts(data.get(key)):
            if not any((folder / f"{name}{ending}").is_file() for folder in (solution, path.parent)):
                what = f"{name!r} of {key} is not in solution/{solution.name}"
                yield Fault(path, line_in(text, key=key), what, "one that is")
    for table in ("item", "curve"):
        for place, entry in enumerate(_entries(data, table)):
            named = [("function", entry.get("function")), *(("calls", name) for name in _texts(entry.get("calls")))]
            for key, function in named:
                if defined and isinstance(function, str) and function.isidentifier() and function not in defined:
                    what = f"{key}: the solution does not define {function} as a plain function or a class"
                    yield Fault(path, line_in(text, table, place, key), what, likely(function, defined))
            if table == "item" and entry.get("id") in [other.get("function") for other in _entries(data, table)]:
                what = f"id: {entry['id']!r} is the name of a function's cell in the notebook"
                yield Fault(path, line_in(text, table, place, "id"), what, f"another one, such as {entry['id']}-values")
            hints = entry.get("hints")
            for key in sorted({*hints} & {*KEYS["item"]} - {*entry}) if isinstance(hints, dict) else ():
                line = line_in(text, table, place)
                line += line_of("\n".join(text.splitlines()[line:]), f"{key} =")
                yield Fault(path, line, f"{key} stands inside [item.hints]", f"{key} above the line [item.hints]")
    # Students get items.toml without its hidden cases: `hidden` is taken out line by line.
    items = _entries(data, "item")
    masked = {**data, "item": [{key: value for key, value in item.items() if key != "hidden"} for item in items]}
    try:
        is_masked = tomllib.loads(without_hidden(text)) == masked
    except tomllib.TOMLDecodeError:
        is_masked = False
    if items and not is_masked:
        place = next((place for place, item in enumerate(items) if "hidden" in item), 0)
        what = "the hidden cases cannot be taken out of the students' copy of this file"
        right = 'hidden = ["a", "b"] in each [[item]], the key without quotes'
        yield Fault(path, line_in(text, "item", place, "hidden"), what, right)


def _texts(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _drawing_faults(path: Path, tree: ast.Module, graded: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Find keys of DRAWS and LEFT_OUT that are no items: a misspelt one would draw nothing, and say nothing."""
    items = [str(entry.get("id")) for entry in graded]
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        name, written = getattr(target, "id", ""), getattr(node, "value", None)
        for key in written.keys if name in ("DRAWS", "LEFT_OUT") and isinstance(written, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value not in items:
                yield Fault(path, key.lineno, f"{name} has the item {key.value!r}", likely(str(key.value), items))
