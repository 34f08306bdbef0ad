"""Read an assignment's text files and list all that is wrong in them, each with file and line.

What may stand in items.toml is said by `autograder.grading.assignment`; the other tables are models here. Nothing of
the author's runs: what goes wrong in their Python, `faults.explained` tells when the fixtures are made.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autograder.authoring.exam.contract import CONTRACT, COSTLY, Clause, clauses_in
from autograder.authoring.faults import Fault, Faults, likely, line_of
from autograder.authoring.handout.notebook import BEGIN, END, EXTRAS
from autograder.authoring.handout.release import POINTS_BEGIN, POINTS_END, without_hidden
from autograder.grading.assignment import KEYS, OTHER_PACKAGES, PACKAGES, SLUG, faults_in
from autograder.grading.counterexamples import DRAWS
from autograder.vocabulary.errors import FixtureError

R = TypeVar("R")
Text = Annotated[str, Field(pattern=r"\S")]
BESIDE = "autograder.sandbox.worker."  # what of the kit runs beside student code
NEEDED = {
    "oracle": "expected values, from loops and closed forms: `autograder new` writes one",
    "mistakes": "a tuple MISTAKES",
    "probes": "a function for each probe that a case names",
}


class Table(BaseModel):
    """A table in which every key is known."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Cell(Table):
    """A [[cell]] of notebook.toml."""

    after: str
    id: Annotated[str, Field(pattern=f"^{SLUG.pattern}$")]
    kind: Literal["code", "text"]
    source: Text


class Question(Table):
    """A [[question]] of notebook.toml."""

    after: str
    id: Annotated[str, Field(pattern=f"^{SLUG.pattern}$")]
    points: Annotated[float, Field(gt=0)]
    question: Text
    guide: Text


class Extras(Table):
    """What only the notebook has: notebook.toml."""

    without: list[str] = []
    cell: list[Cell] = []
    question: list[Question] = []


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
    python = list(_python_faults(folder))
    read = _read_toml(folder / "items.toml")
    if isinstance(read, Fault):
        return [read, *python]
    text, data = read
    module, readme = solution / f"{data.get('module')}.py", solution / "README.md"
    entries = {table: _entries(data, table) for table in ("item", "curve")}
    graded: dict[str, list[str]] = {}
    for entry in (*entries["item"], *entries["curve"]):
        if isinstance(entry.get("function"), str):
            graded.setdefault(entry["function"], []).append(str(entry.get("id")))
    items = [item for several in graded.values() for item in several]
    return [
        *python,
        *_item_faults(folder / "items.toml", text, data, solution),
        *_module_faults(module, list(graded), data.get("packages")),
        *_readme_faults(readme),
        *_in_toml(solution / EXTRAS, lambda text, data: _notebook_faults(text, data, solution, list(graded))),
        *_in_toml(folder / CONTRACT, lambda text, data: _contract_faults(text, data, folder, graded)),
        *_drawing_faults(folder / f"{DRAWS}.py", items),
    ]


def _python_faults(folder: Path) -> Iterator[Fault]:
    """Find generator modules that are missing, Python that cannot be parsed, imports that a probe cannot make."""
    cases = "functions" if (folder / "functions.py").is_file() else "cases"
    for name, right in {**NEEDED, cases: "a function drafts(secret, draw)"}.items():
        if not (folder / f"{name}.py").is_file() and not (folder / name / "__init__.py").is_file():
            yield Fault(folder / f"{name}.py", 1, "is missing", right)
    for name in (*NEEDED, "functions", "cases"):
        for path in (folder / f"{name}.py", *sorted((folder / name).glob("*.py"))):
            tree = _parsed(path) if path.is_file() else ast.Module([], [])
            if isinstance(tree, Fault):
                yield tree
                continue
            for line, module in _imports(tree) if name == "probes" else ():
                if module.partition(".")[0] in ("autograder", "") and not module.startswith(BESIDE):
                    missing = module or "other module of this folder"
                    what = f"a probe runs beside student code, where there is no {missing}"
                    yield Fault(path, line, what, "torch, numpy, the standard library, given modules")


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and name of each module that is imported; "" stands for this folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "" if node.level else node.module or ""


def _parsed(path: Path) -> ast.Module | Fault:
    try:
        return ast.parse(path.read_bytes())
    except SyntaxError as error:
        return Fault(path, error.lineno or 1, f"not Python: {error.msg}", (error.text or "").strip())
    except ValueError as error:
        return Fault(path, 1, f"not Python: {error}")


def _defined(path: Path) -> tuple[str, ...]:
    """Name the functions that a module defines; none where it cannot be read."""
    tree = _parsed(path) if path.is_file() else None
    if not isinstance(tree, ast.Module):
        return ()
    return tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))


# TOML


def _read_toml(path: Path) -> tuple[str, dict[str, Any]] | Fault:
    """The text of the file, and what it says; or why it is no TOML."""
    try:
        text = path.read_bytes().decode("utf-8")
        return text, tomllib.loads(text)
    except OSError as error:
        return Fault(path, 1, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return Fault(path, 1, f"not UTF-8: {error.reason} at byte {error.start}", "text that is saved as UTF-8")
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        return Fault(path, int(place[1]) if place else 1, f"not TOML: {error}")


def _in_toml(path: Path, faults: Callable[[str, dict[str, Any]], Iterable[Fault]]) -> Iterable[Fault]:
    """Find what is wrong in a TOML file, which may be missing."""
    read = _read_toml(path) if path.is_file() else None
    if isinstance(read, Fault):
        return [read]
    return [] if read is None else faults(*read)


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


def _item_faults(path: Path, text: str, data: Mapping[str, Any], solution: Path) -> Iterator[Fault]:
    for fault in faults_in(data):
        yield Fault(path, _line(text, fault.table, fault.place, fault.key), fault.what)
    name, module = data.get("assignment"), data.get("module")
    if isinstance(name, str) and name.strip() and name != path.parent.name:
        what = f"the assignment is called {name!r} in a folder called {path.parent.name!r}"
        yield Fault(path, _line(text, key="assignment"), what, "the same name")
    source = solution / f"{module}.py"
    if isinstance(module, str) and not source.is_file():
        right = f"the solution's module: {likely(module, [other.stem for other in sorted(solution.glob('*.py'))])}"
        yield Fault(path, _line(text, key="module"), f"there is no {solution.name}/{module}.py in solution/", right)
    for key, ending in (("given", ".py"), ("also", "")):
        names = data.get(key)
        for name in names if isinstance(names, list) else ():
            if not any((folder / f"{name}{ending}").is_file() for folder in (solution, path.parent)):
                what = f"{name!r} of {key} is not in solution/{solution.name}"
                yield Fault(path, _line(text, key=key), what, "one that is")
    defined = _defined(source)
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


def _notebook_faults(text: str, data: Mapping[str, Any], solution: Path, functions: Sequence[str]) -> Iterator[Fault]:
    path, readme = solution / EXTRAS, solution / "README.md"
    try:
        Extras.model_validate(data)
    except ValidationError as error:
        for fault in error.errors():
            where = fault["loc"]
            head = str(where[0]) if len(where) > 1 else ""
            place = next((part for part in where if isinstance(part, int)), 0)
            line = _line(text, head, place, str(where[-1])) if head else line_of(text, str(where[0]))
            unknown = fault["type"] == "extra_forbidden"
            right = likely(str(where[-1]), Extras.model_fields) if unknown and not head else ""
            what = f"unknown entry {where[-1]!r}" if unknown else f"{'.'.join(map(str, where))}: {fault['msg']}"
            yield Fault(path, line, what, right)
    sections = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    places = ["", *functions, *re.findall(r"^## [ `]*(.*?)[ `]*$", sections, flags=re.MULTILINE)]
    without = data.get("without", [])
    for title in without if isinstance(without, list) else []:
        if title not in places:
            yield Fault(path, line_of(text, "without"), f"README.md has no section {title!r}", likely(title, places))
    seen: set[Any] = set()
    for table in ("cell", "question"):
        for place, entry in enumerate(_entries(data, table)):
            name, after = entry.get("id"), entry.get("after")
            if name in seen:
                yield Fault(path, _line(text, table, place, "id"), f"two cells are called {name!r}", "an id of its own")
            seen.add(name)
            if isinstance(after, str) and after not in places:
                what = f"{name} stands after {after!r}, which README.md does not have"
                yield Fault(path, _line(text, table, place, "after"), what, likely(after, places))


def _contract_faults(
    text: str, data: Mapping[str, Any], folder: Path, items: Mapping[str, Sequence[str]]
) -> Iterator[Fault]:
    path = folder / CONTRACT
    for clause in clauses_in(data, text, items):
        if not isinstance(clause, Clause):
            line, what = clause
            yield Fault(path, line, what, "a sentence with its mistakes, or with the reason why it is not graded")
    costly = data.get(COSTLY)
    rows = {name: f"[{name}]" for name, table in data.items() if isinstance(table, dict) and name not in (COSTLY, "")}
    rows |= {name: f"{name} = " for name in (costly if isinstance(costly, dict) else ())}
    for name, row in rows.items():
        if name not in items:
            yield Fault(path, line_of(text, row), f"no item grades {name!r}", likely(name, items))


# Python and prose


def _drawing_faults(path: Path, items: Collection[str]) -> Iterator[Fault]:
    """Find keys of DRAWS and LEFT_OUT, as they are written, that are no items."""
    tree = _parsed(path) if path.is_file() else ast.Module([], [])
    if isinstance(tree, Fault):
        yield tree
        return
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        name = next((target.id for target in targets if isinstance(target, ast.Name)), "")
        value = getattr(node, "value", None)
        for key in value.keys if name in ("DRAWS", "LEFT_OUT") and isinstance(value, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value not in items:
                yield Fault(path, key.lineno, f"{name} has the item {key.value!r}", likely(str(key.value), items))


def _module_faults(path: Path, graded: Sequence[str], packages: object) -> Iterator[Fault]:
    """Find markers without a partner, graded functions whose answer is not marked, packages that students lack."""
    if not path.is_file():
        return  # items.toml names it, where that is told
    tree = _parsed(path)
    if isinstance(tree, Fault):
        yield tree
        return
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    marked: set[str] = set()  # by either marker: of one without the other that is told
    opened = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() == BEGIN:
            if opened:
                right = f"{END!r} before it"
                yield Fault(path, number, f"{BEGIN!r} inside an answer that began in line {opened}", right)
            around = [node.name for node in functions if node.lineno <= number <= (node.end_lineno or 0)]
            if not around:
                yield Fault(path, number, "an answer begins outside every function", "markers inside one")
            marked |= {*around}
            opened = number
        elif line.strip() == END:
            if not opened:
                yield Fault(path, number, f"{END!r} ends no answer", f"{BEGIN!r} before it")
                marked |= {node.name for node in [node for node in functions if node.lineno <= number][-1:]}
            opened = 0
    if opened:
        yield Fault(path, opened, f"the answer that begins here has no {END!r}", "one after its last line")
    for node in functions:
        if node.name in graded and node.name not in marked:
            yield Fault(path, node.lineno, f"no answer is marked in {node.name}", f"{BEGIN!r} and {END!r} around it")
    allowed = packages if isinstance(packages, list) else PACKAGES
    for place, module in _imports(tree):
        name = module.partition(".")[0]
        if name in {*PACKAGES, *OTHER_PACKAGES} - {*allowed}:
            yield Fault(path, place, f"imports {name}, which is not in packages of items.toml", f'"{name}" among them')


def _readme_faults(path: Path) -> Iterator[Fault]:
    """Find a text that is not there, or has no place for its table of points."""
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
