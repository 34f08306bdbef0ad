"""An assignment's files, read as a whole: everything that is wrong, whatever else is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from autograder.authoring.declarations import OPEN_SECRET
from autograder.authoring.fixtures.regenerate import (
    Drawing,
    case_of,
    check_solution,
    is_misspelt,
    listed_cases,
    observe,
    solution_source,
    with_mistakes,
)
from autograder.authoring.proofreading.case_files import (
    Placed,
    UndrawnError,
    branch_faults,
    draft_faults,
    placed_drafts,
)
from autograder.authoring.proofreading.catalogue_files import catalogue_faults, collecting_refusals
from autograder.authoring.proofreading.exam_files import exam_faults
from autograder.authoring.proofreading.example_files import example_faults
from autograder.authoring.proofreading.fault import Fault, Faults, fault_of
from autograder.authoring.proofreading.item_entries import item_faults
from autograder.authoring.proofreading.items_file import ItemsFile, read_items, repaired
from autograder.authoring.proofreading.python_files import Sources, imported
from autograder.authoring.proofreading.text_files import (
    functions_of,
    module_faults,
    notebook_faults,
    notebook_path,
    package_faults,
    readme_faults,
)
from autograder.grading.assignment import Assignment, assignment_of, load_assignment
from autograder.grading.counterexamples import DRAWS
from autograder.grading.fixtures import Case
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError, KitError
from autograder.vocabulary.times import OutOfTimeError

R = TypeVar("R")


def refuse_faults(folder: Path) -> None:
    """Raise Faults where a file of the assignment in `folder` is wrong in a way that reading it shows."""
    if reading_faults(folder):
        raise Faults.of(run_in_subprocess(proofread, folder))


def authored(root: Path, name: str | None, find: Callable[[Path, str | None], R]) -> R:
    """What `find` finds of an author's own course; where an assignment cannot be read, all that is wrong in it."""
    try:
        return find(root, name)
    except FixtureError:
        for folder in sorted(path.parent for path in (root / "fixtures").glob("*/items.toml")):
            if name in (None, folder.name):
                refuse_faults(folder)
        raise


def explained(error: Exception, folder: Path, sandbox: Sandbox) -> Exception:
    """What to raise where making the fixtures failed with `error`: all that is wrong with file and line, if found."""
    by_laws = (folder / "functions.py").is_file()  # whose cases stand in no file that could be read again
    faults = [] if by_laws else proofread(folder, sandbox)
    if faults:
        return Faults.of(faults)
    if isinstance(error, KitError):
        return error
    return Faults.of([fault_of(error, folder, (folder / "cases.py", 1), "code that runs to its end")])


def reading_faults(folder: Path) -> list[Fault]:
    """What is wrong in items.toml, in the text and in Python that cannot be parsed; nothing of theirs is run."""
    folder = folder.resolve()
    items, faults = _read(folder)
    sources = Sources.of(folder)
    if items is None:
        return [*faults, *sources.faults]
    return [*faults, *_syntax(sources), *_about_examples(items, sources)]


def proofread(folder: Path, sandbox: Sandbox | None = None) -> list[Fault]:
    """All that is wrong, their Python run; with a sandbox the solution and the mistakes are, too."""
    folder = folder.resolve()
    try:
        return _proofread(folder, sandbox)
    except OutOfTimeError as error:  # what else is wrong would be looked for with code that does not end
        return [endless_fault(error, folder)]


def endless_fault(error: OutOfTimeError, folder: Path) -> Fault:
    """The line at which their code was when its time was over."""
    found = fault_of(error, folder.resolve(), (folder.resolve() / "cases.py", 1), "a loop that ends")
    return Fault(found.path, found.line, str(error), found.right)


def _proofread(folder: Path, sandbox: Sandbox | None) -> list[Fault]:
    items, faults = _read(folder)
    sources = Sources.of(folder)
    faults += _syntax(sources)
    if items is None:
        return faults
    faults += _about_examples(items, sources)
    try:
        assignment = load_assignment(folder) if not faults else assignment_of(repaired(items), folder)
    except FixtureError as error:
        return [Fault(folder / "items.toml", 1, str(error), "what the guide says of items.toml")]
    except ValueError:
        return faults
    (modules, unimported), refused = collecting_refusals(lambda: imported(assignment), sources)
    faults += [*unimported, *refused] if not sources.faults else refused
    if "mistakes" in modules and not refused:
        faults += catalogue_faults(modules["mistakes"], sources, _graded(items))
    if "cases" not in modules or "oracle" not in modules:
        return faults
    draw = Drawing(assignment, sandbox) if sandbox else _NoDrawing()
    if sandbox and not faults and (unloaded := _unloaded(assignment, sandbox)):
        return [unloaded]
    placed, ended, whole = placed_drafts(modules["cases"], OPEN_SECRET, draw, sources)
    faults += ended
    faults += draft_faults(placed, items, sources, whole=whole)
    if faults:
        return faults
    faults += branch_faults(modules["oracle"], placed, items, sources)
    if sandbox is not None and not (folder / "functions.py").is_file():  # the checks know derived cases, this does not
        faults += _run_faults(assignment, placed, modules["mistakes"].MISTAKES, sources, sandbox)
    return faults


def _module(file: ItemsFile) -> Path:
    return _solution(file.path.parent) / f"{file.data.get('module')}.py"


def _solution(folder: Path) -> Path:
    return folder.parent.parent / "solution" / folder.name


def _about_examples(file: ItemsFile, sources: Sources) -> list[Fault]:
    items = [name for several in _items_of(file).values() for name in several]
    return list(example_faults(sources.folder / f"{DRAWS}.py", items))


def _read(folder: Path) -> tuple[ItemsFile | None, list[Fault]]:
    """items.toml and what is wrong in it and in the solution's folder."""
    solution = _solution(folder)
    first = read_items(folder / "items.toml", None)
    if isinstance(first, Fault):
        return None, [first]
    module = _module(first)
    file = ItemsFile(first.path, first.text, first.data, functions_of(module))
    graded = _graded(file)
    readme = solution / "README.md"
    faults = [*item_faults(file, solution), *module_faults(module, graded), *readme_faults(readme)]
    faults += package_faults(module, first.data.get("packages"))
    text = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
    faults += [*notebook_faults(notebook_path(solution), text, graded), *exam_faults(folder, _items_of(file))]
    return file, faults


def _items_of(file: ItemsFile) -> dict[str, list[str]]:
    """Graded function → its items."""
    found: dict[str, list[str]] = {}
    for _, _, entry in file.tables:
        if isinstance(entry.get("function"), str):
            found.setdefault(entry["function"], []).append(str(entry.get("id")))
    return found


def _graded(file: ItemsFile) -> list[str]:
    """The functions that items and curves are of."""
    return [entry["function"] for _, _, entry in file.tables if isinstance(entry.get("function"), str)]


def _syntax(sources: Sources) -> list[Fault]:
    return [*sources.faults, *sources.probe_faults()]


def _unloaded(assignment: Assignment, sandbox: Sandbox) -> Fault | None:
    """Why the solution's module cannot be loaded, at its line; None where it can be."""
    item = assignment.items[0]
    params = {"function": item.function, "arguments": [], "returns": []}
    case = Case("load", item.id, item.function, "", "public", "call", params, {}, (), {})
    (outcome,) = observe(assignment, solution_source(assignment), [case], sandbox)
    if not outcome.loading:
        return None
    raised, path = outcome.raised, assignment.solution / f"{assignment.module}.py"
    said = f"{raised.types[0]}: {raised.message}" if raised else outcome.detail or outcome.status
    return Fault(
        path, raised.line or 1 if raised else 1, f"cannot be loaded: {said}".rstrip("."), "a module that loads"
    )


class _NoDrawing:
    """What stands in for a sandbox where there is none."""

    def __call__(self, *_: object, **__: object) -> Mapping[str, Any]:
        raise UndrawnError

    solution = __call__


# What the solution and the mistakes do


def _run_faults(
    assignment: Assignment, placed: Sequence[Placed], mistakes: Sequence[Any], sources: Sources, sandbox: Sandbox
) -> Iterator[Fault]:
    drafts = {one.draft.case: one.draft for one in placed}
    places = {one.draft.case: one.place for one in placed}
    cases = [case_of(item, drafts[name], visibility) for item, name, visibility in listed_cases(assignment)]
    wrong = False
    for case in cases:
        told = _refused(functools.partial(check_solution, assignment, [case], drafts, sandbox))
        if told:
            wrong = True
            yield Fault(*places[case.id], told, "a case, an oracle and a solution that agree")
    if wrong:
        return
    marked = with_mistakes(assignment, cases, mistakes, sandbox)
    separated = {slug for case in marked for slug in case.mistakes}
    by_laws = {item.function for item in assignment.items if item.laws}  # whose derived cases are not drawn here
    for mistake in mistakes:
        place = sources.place_of(mistake.slug, ("mistakes",))
        if is_misspelt(mistake.slug, marked):
            yield Fault(*place, f"{mistake.slug} always ends in a NameError", "a text that runs and is wrong")
        if mistake.slug not in separated and mistake.function not in by_laws:
            what = f"no case separates {mistake.slug} from a right answer"
            yield Fault(*place, what, "a case that does, or no such mistake")


def _refused(call: Callable[[], None]) -> str:
    try:
        call()
    except FixtureError as error:
        return str(error).rstrip(".")
    return ""
