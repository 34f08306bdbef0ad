"""Read an assignment's text files and list all that is wrong in them, each with file and line.

What may stand in items.toml is said by `autograder.grading.assignment`, in notebook.toml by `handout.notebook`. Nothing
of the author's runs: what goes wrong in their Python, `faults.explained` tells when the fixtures are made, and what
keeps a handout from being made, `release`.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from autograder.authoring.exam.contract import CONTRACT, Clause, clauses_in
from autograder.authoring.faults import Fault, Faults, likely, line_of
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
    folder = folder.resolve()
    solution = folder.parent.parent / "solution" / folder.name
    faults: list[Fault] = []
    cases = "functions" if (folder / "functions.py").is_file() else "cases"
    for name, right in {**NEEDED, cases: "a function drafts(secret, draw)"}.items():
        if not (folder / f"{name}.py").is_file() and not (folder / name / "__init__.py").is_file():
            faults.append(Fault(folder / f"{name}.py", 1, "is missing", right))
    for name in (*NEEDED, "functions", "cases"):
        for path in (folder / f"{name}.py", *sorted((folder / name).glob("*.py"))):
            imports = list(_imports(_parsed(path, faults)))
            for line, module in imports if name == "probes" else ():
                if module.partition(".")[0] in ("autograder", "") and not module.startswith(BESIDE):
                    what = (
                        f"a probe runs beside student code, where there is no {module or 'other module of this folder'}"
                    )
                    faults.append(Fault(path, line, what, "torch, numpy, the standard library, given modules"))
    items = folder / "items.toml"
    text, data = _read_toml(items, faults)
    if data is None:
        return faults
    path = solution / f"{data.get('module')}.py"
    tree, packages = _parsed(path, faults), data.get("packages")
    allowed = packages if isinstance(packages, list) else PACKAGES
    for line, module in _imports(tree):
        if (package := module.partition(".")[0]) in {*PACKAGES, *OTHER_PACKAGES} - {*allowed}:
            what = f"imports {package}, which is not in packages of items.toml"
            faults.append(Fault(path, line, what, f'"{package}" among them'))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    faults += _item_faults(items, text, data, solution, defined)
    faults += _drawing_faults(folder / f"{DRAWS}.py", _parsed(folder / f"{DRAWS}.py", faults), data)
    if (solution / EXTRAS).is_file():
        text, extras = _read_toml(solution / EXTRAS, faults)
        faults += _notebook_faults(solution / EXTRAS, text, extras or {})
    if (folder / CONTRACT).is_file():
        graded: dict[str, list[str]] = {}
        for entry in (*_entries(data, "item"), *_entries(data, "curve")):
            if isinstance(entry.get("function"), str):
                graded.setdefault(entry["function"], []).append(str(entry.get("id")))
        text, contract = _read_toml(folder / CONTRACT, faults)
        faults += _contract_faults(folder / CONTRACT, text, contract or {}, graded)
    return faults


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each module that is imported; "" stands for this folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "" if node.level else node.module or ""


def _parsed(path: Path, faults: list[Fault]) -> ast.Module:
    """Parse a module; an empty one where it is missing or no Python, which is a fault."""
    try:
        return ast.parse(path.read_bytes() if path.is_file() else b"")
    except (SyntaxError, ValueError) as error:
        what, text = getattr(error, "msg", str(error)), getattr(error, "text", "") or ""
        faults.append(Fault(path, getattr(error, "lineno", 1) or 1, f"not Python: {what}", text.strip()))
        return ast.Module([], [])


def _read_toml(path: Path, faults: list[Fault]) -> tuple[str, dict[str, Any] | None]:
    """The text of the file, and what it says; None where it is no TOML, which is a fault."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (OSError, ValueError) as error:  # no UTF-8, no TOML
        place = re.search(r"at line (\d+)", str(error))
        faults.append(Fault(path, int(place[1]) if place else 1, f"cannot be read: {error}"))
        return "", None


def _line(text: str, table: str = "", place: int = 0, key: str = "") -> int:
    """The line of a key in the `place`-th table of that name; the table's own where the key is not there."""
    lines = text.splitlines()
    heads = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[?\s*[\w.\"-]+\s*\]", line)]
    named = [n for n in heads if re.fullmatch(rf"\[\[?\s*{re.escape(table)}\s*\]\]?.*", lines[n].strip())]
    if table and place >= len(named):
        return 1
    start = named[place] if table else 0
    end = next((n for n in heads if n > start or not table), len(lines))
    keyed = (n for n in range(start, end) if re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[n]))
    return 1 + (next(keyed, start) if key else start)


def _entries(data: Mapping[str, Any], table: str) -> list[Mapping[str, Any]]:
    listed = data.get(table, [])
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


def _item_faults(
    path: Path, text: str, data: Mapping[str, Any], solution: Path, defined: Sequence[str]
) -> Iterator[Fault]:
    for fault in faults_in(data):
        yield Fault(path, _line(text, fault.table, fault.place, fault.key), fault.what)
    name, module = data.get("assignment"), data.get("module")
    if isinstance(name, str) and name.strip() and name != path.parent.name:
        what = f"the assignment is called {name!r} in a folder called {path.parent.name!r}"
        yield Fault(path, _line(text, key="assignment"), what, "the same name")
    if isinstance(module, str) and not (solution / f"{module}.py").is_file():
        right = f"the solution's module: {likely(module, [other.stem for other in sorted(solution.glob('*.py'))])}"
        yield Fault(path, _line(text, key="module"), f"there is no {solution.name}/{module}.py in solution/", right)
    for key, ending in (("given", ".py"), ("also", "")):
        names = data.get(key)
        for name in names if isinstance(names, list) else ():
            if not any((folder / f"{name}{ending}").is_file() for folder in (solution, path.parent)):
                what = f"{name!r} of {key} is not in solution/{solution.name}"
                yield Fault(path, _line(text, key=key), what, "one that is")
    for table in ("item", "curve"):
        for place, entry in enumerate(_entries(data, table)):
            called = entry.get("calls")
            named = [("function", entry.get("function"))]
            named += [("calls", function) for function in called] if isinstance(called, list) else []
            for key, function in named:
                if defined and isinstance(function, str) and function.isidentifier() and function not in defined:
                    what = f"{key}: the solution does not define {function}"
                    yield Fault(path, _line(text, table, place, key), what, likely(function, defined))
            hints = entry.get("hints")
            for key in sorted({*hints} & {*KEYS["item"]} - {*entry}) if isinstance(hints, dict) else ():
                line = _line(text, table, place)
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
        yield Fault(path, _line(text, "item", place, "hidden"), what, right)


def _notebook_faults(path: Path, text: str, data: Mapping[str, Any]) -> Iterator[Fault]:
    try:
        Extras.model_validate(data)
    except ValidationError as error:
        for fault in error.errors():
            table, *places = map(str, fault["loc"])
            place, key = (int(places[0]), places[-1]) if places else (0, "")
            line = _line(text, table, place, key) if places else line_of(text, table)
            yield Fault(path, line, f"{'.'.join([table, *places])}: {fault['msg']}")


def _drawing_faults(path: Path, tree: ast.Module, data: Mapping[str, Any]) -> Iterator[Fault]:
    """Find keys of DRAWS and LEFT_OUT that are no items: a misspelt one would draw nothing, and say nothing."""
    items = [str(entry.get("id")) for table in ("item", "curve") for entry in _entries(data, table)]
    for node in tree.body:
        names = ast.unparse(node).partition("=")[0].partition(":")[0].split()
        written = getattr(node, "value", None) if {*names} & {"DRAWS", "LEFT_OUT"} else None
        for key in written.keys if isinstance(written, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value not in items:
                yield Fault(path, key.lineno, f"{names[0]} has the item {key.value!r}", likely(str(key.value), items))


def _contract_faults(
    path: Path, text: str, data: Mapping[str, Any], items: Mapping[str, Sequence[str]]
) -> Iterator[Fault]:
    for clause in clauses_in(data, text, items, path.parent.name):
        if not isinstance(clause, Clause):
            line, what = clause
            yield Fault(path, line, what, "a sentence with its mistakes, or with the reason why it is not graded")
    for name, table in data.items():
        if isinstance(table, dict) and name and name not in items:
            yield Fault(path, line_of(text, f"[{name}]"), f"no item grades {name!r}", likely(name, items))
