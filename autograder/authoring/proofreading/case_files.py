"""What is wrong in the cases and their oracle, each with its line: all drafts, whatever became of one."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import GeneratorType, ModuleType
from typing import Any

import numpy as np

from autograder.authoring.declarations import DTYPES, Draft, Refusal
from autograder.authoring.drafts.draws import Formula
from autograder.authoring.drafts.gradable import check_draft
from autograder.authoring.fixtures.regenerate import END, in_time, limited
from autograder.authoring.proofreading.fault import CASE, Fault, attempt, fault_of, likely
from autograder.authoring.proofreading.items_file import ItemsFile, listed_names
from autograder.authoring.proofreading.python_files import Sources
from autograder.grading.fixtures import Expectation
from autograder.vocabulary.errors import FixtureError

Place = tuple[Path, int]
ORACLES = "an oracle that answers"
RIGHT_INPUTS = "NumPy arrays of floats, whole numbers or truth values"


class UndrawnError(BaseException):
    """Raised where a sandbox would be asked and there is none; no `Exception`, which an author's code might catch."""


@dataclass(frozen=True)
class Placed:
    """A draft, and where it is yielded."""

    draft: Draft
    place: Place


def placed_drafts(
    cases: ModuleType, secret: str, draw: Callable[..., Any], sources: Sources
) -> tuple[list[Placed], list[Fault], bool]:
    """Every draft until an exception ends them, with its place; that exception; and whether these are all drafts."""
    start = (sources.file_of("cases"), 1)
    drafts = getattr(cases, "drafts", None)
    if not callable(drafts):
        right = "def drafts(secret, draw), which yields every case"
        return [], [Fault(*start, "there is no function drafts", right)], False
    code = getattr(drafts, "__code__", None)
    if code is not None and code.co_argcount != 2 and not code.co_flags & inspect.CO_VARARGS:
        where = (Path(code.co_filename), code.co_firstlineno)
        return (
            [],
            [Fault(*where, f"drafts takes {code.co_argcount}, not two arguments", "def drafts(secret, draw)")],
            False,
        )
    found: list[Placed] = []
    place = start
    try:
        running = iter(drafts(secret, draw))
        while True:
            with in_time("the next case"):
                draft = next(running, END)
            if draft is END:
                break
            place = _yielding(running, sources.folder) or start
            if not isinstance(draft, Draft):
                what = f"drafts yields {type(draft).__name__}"
                right = "a Draft; `yield from` what is a list or a generator of them"
                return found, [Fault(*place, what, right)], False
            if place == start and isinstance(draft.case, str):
                place = sources.place_of(draft.case, ("cases",))
            found.append(Placed(limited(draft), place))
    except UndrawnError:
        return found, [], False
    except Exception as error:
        return found, [fault_of(error, sources.folder, place, "code that yields every case")], False
    return found, [], True


def _yielding(running: Any, folder: Path) -> Place | None:
    """The line that a generator stands at, of the innermost that it is handed on by."""
    while isinstance(running, GeneratorType) and isinstance(running.gi_yieldfrom, GeneratorType):
        running = running.gi_yieldfrom
    if not isinstance(running, GeneratorType) or running.gi_frame is None:
        return None
    path = Path(running.gi_frame.f_code.co_filename)
    return (path, running.gi_frame.f_lineno) if folder in path.parents else None


def draft_faults(placed: Sequence[Placed], file: ItemsFile, sources: Sources, *, whole: bool) -> Iterator[Fault]:
    """All that is wrong with each; `whole`: whether these are all drafts."""
    unknown = set[str]()  # probes that there are not: each is told once
    listed, seen = listed_names(file), set[str]()
    for one in placed:
        name = one.draft.case
        if not isinstance(name, str) or not CASE.fullmatch(name):
            yield Fault(*one.place, f"the case {name!r} cannot be stored", "small letters, digits and single dashes")
        elif name in seen:
            yield Fault(*one.place, f"two drafts are called {name}", "a name of its own")
        elif name not in listed:
            free = [other for other in listed if other not in {p.draft.case for p in placed}]
            yield Fault(
                *one.place, f"{name} is in no item of items.toml", f"in one's public or hidden; {likely(name, free)}"
            )
        seen.add(str(name))
        if isinstance(one.draft.probe, str) and one.draft.probe not in sources.probes:
            yield from _about_probe(one, sources) if one.draft.probe not in unknown else ()
            unknown.add(one.draft.probe)
            continue
        yield from _about(one, sources)
    for name in listed:
        if whole and name not in seen:
            others = [p.draft.case for p in placed if p.draft.case not in listed]
            right = f"a draft of that name: {likely(name, others)}" if others else "a draft of that name in cases"
            path, line = sources.place_of(name, ("cases",))
            if f'"{name}"' in sources.texts.get(path, ""):
                right = f"a draft of that name: is there a `yield` in {path.name}:{line}?"
            yield Fault(file.path, file.line_of_case(name), f"{name} has no draft", right)


def _about(one: Placed, sources: Sources) -> Iterator[Fault]:
    draft, place = one.draft, one.place
    if not isinstance(draft.title, str) or not draft.title.strip():
        yield Fault(*place, f"the title of {draft.case} is {draft.title!r}", "what this case has that others have not")
    yield from _about_probe(one, sources)
    broken = False
    for fault in (*_about_inputs(one), *_about_params(one)):
        broken = True
        yield fault
    if broken:
        return
    try:
        answer = _answer(draft)
    except UndrawnError:
        return
    except Exception as error:
        yield fault_of(error, sources.folder, place, ORACLES)
        return
    faults = list(_about_answer(one, answer))
    yield from faults
    if not faults:
        yield from _about_values(one, sources)


def _answer(draft: Draft) -> Any:
    return draft.answer(draft.inputs, draft.params)


def _about_probe(one: Placed, sources: Sources) -> Iterator[Fault]:
    if one.draft.probe not in sources.probes:
        right = likely(str(one.draft.probe), sources.probes)
        yield Fault(*one.place, f"probes.py does not define {one.draft.probe!r}", right)
        return
    probe = sources.probes[one.draft.probe]
    if probe is None:
        return
    arguments = probe.args
    count = len(arguments.posonlyargs) + len(arguments.args)
    if not count - len(arguments.defaults) <= 3 <= count and arguments.vararg is None:
        right = f"def {probe.name}(student, inputs, params)"
        yield Fault(sources.folder / "probes.py", probe.lineno, f"{probe.name} takes {count} arguments", right)


def _about_inputs(one: Placed) -> Iterator[Fault]:
    inputs = one.draft.inputs
    if not isinstance(inputs, Mapping):
        yield Fault(*one.place, f"the inputs of {one.draft.case} are {type(inputs).__name__}", 'a dict: {"x": array}')
        return
    for name, array in inputs.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
            kind = f"an array of {array.dtype}" if isinstance(array, np.ndarray) else f"of type {type(array).__name__}"
            yield Fault(*one.place, f"the input {name} of {one.draft.case} is {kind}", RIGHT_INPUTS)


def _about_params(one: Placed) -> Iterator[Fault]:
    for name, found in _not_json(one.draft.params, ""):
        what = f"the parameters of {one.draft.case} cannot be stored: {name} is {found}"
        right = "numbers, text, lists and dicts; arrays belong to the inputs"
        if found in ("function", "builtin_function_or_method", "ufunc"):
            right = 'a Formula, which can be stored: Formula("x y", "x * y")'
        if found == Formula.__name__:
            right = "a Formula among the arguments of the call; in what should raise, another argument is another"
        yield Fault(*one.place, what, right)


def _not_json(found: Any, name: str) -> Iterator[tuple[str, str]]:
    """What JSON does not know, with its name: `raises.refused.function`, and its type or value."""
    if isinstance(found, Mapping):
        for key, value in found.items():
            if not isinstance(key, str | int | float | None):  # as json.dumps takes them
                yield f"the key {key!r} of {name or 'params'}", type(key).__name__
            yield from _not_json(value, f"{name}.{key}".strip("."))
    elif isinstance(found, list | tuple):
        for place, value in enumerate(found):
            yield from _not_json(value, f"{name}[{place}]")
    else:
        try:
            json.dumps(found, allow_nan=False)
        except ValueError:
            yield name, repr(found)
        except TypeError:
            yield name, type(found).__name__


def _about_answer(one: Placed, answer: Any) -> Iterator[Fault]:
    case = one.draft.case
    if not isinstance(answer, Sequence) or not answer or not all(isinstance(entry, Expectation) for entry in answer):
        what = f"the answer of {case} is {'an empty list' if answer == [] else type(answer).__name__}"
        yield Fault(*one.place, what, "a list of value(…), gradient(…), unchanged(…), fact(…) or error(…)")
        return
    for name in {entry.name for entry in answer if [e.name for e in answer].count(entry.name) > 1}:
        yield Fault(*one.place, f"{case} expects {name!r} twice", "a name for each thing that the probe returns")
    for entry in answer:
        if entry.kind in ("value", "gradient") and entry.dtype not in DTYPES:
            yield Fault(*one.place, f"{case} expects {entry.name!r} as {entry.dtype!r}", likely(entry.dtype, DTYPES))


def _about_values(one: Placed, sources: Sources) -> Iterator[Fault]:
    """What a build refuses: values that could not grade, an input that does not matter."""
    before = {name: array.copy() for name, array in one.draft.inputs.items()}
    try:
        check_draft(one.draft)
    except FixtureError as error:
        right = (
            "other numbers"
            if isinstance(error, Refusal)
            else "axes that fit, sizes that differ, or `square` with the reason"
        )
        if "does not matter" in str(error):
            right = "an input that does, or free=(…) where it need not"
        if "is infinite somewhere" in str(error):
            right = 'infinite="why" where that is meant, else other numbers'
        if "too small for its tolerance" in str(error):
            right = 'other numbers; atol=… of a tenth of them; zero="why" where nothing but 0 is right'
        yield Fault(*one.place, str(error).rstrip("."), right)
    except Exception as error:
        yield fault_of(error, sources.folder, one.place, "an answer for other inputs, too")
    for name, array in one.draft.inputs.items():
        if not np.array_equal(array, before[name], equal_nan=array.dtype.kind == "f"):
            yield Fault(*one.place, f"the oracle changes the input {name} of {one.draft.case}", "a copy of it")


# Branches


def branch_faults(oracle: ModuleType, placed: Sequence[Placed], file: ItemsFile, sources: Sources) -> Iterator[Fault]:
    """Branches of no item, and branches that no case takes."""
    branches: Any = getattr(oracle, "BRANCHES", {})
    taken: Any = getattr(oracle, "TAKEN", set())
    if not isinstance(branches, dict) or not isinstance(taken, set):
        yield Fault(sources.file_of("oracle"), 1, "BRANCHES or TAKEN is of another kind", "a dict of sets, and a set")
        return
    drafts = {one.draft.case: one.draft for one in placed}
    items = {str(entry.get("id")): entry for table, _, entry in file.tables if table == "item"}
    for item, wanted in branches.items():
        place = sources.place_of(item, ("oracle",))
        if item not in items:
            yield Fault(*place, f"BRANCHES names the item {item!r}", f"one of items.toml: {likely(str(item), items)}")
            continue
        cases = [case for key in ("public", "hidden") for case in items[item].get(key, [])]
        if any(case not in drafts for case in cases):
            continue
        taken.clear()
        for case in cases:
            with contextlib.suppress(UndrawnError):
                attempt(functools.partial(_answer, drafts[case]), sources.folder, place, "")
        unlisted = taken - set().union(*branches.values())
        for branch in sorted(set(wanted) - taken):
            at = sources.place_of(branch, ("oracle",))
            right = "a case that does, or no such branch"
            right += f"; what TAKEN holds besides: {', '.join(map(repr, sorted(unlisted)))}" if unlisted else ""
            yield Fault(*at, f"no case of {item} takes the branch {branch!r}", right)
