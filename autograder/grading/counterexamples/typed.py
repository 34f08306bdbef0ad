"""A stored call as a person would type it: arguments line by line, then the call.

Students read it of a public case that fails, where it is short; of a hidden one never.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from autograder.grading.cases import Case
from autograder.grading.counterexamples.trials import nested
from autograder.sandbox.calls import Array
from autograder.sandbox.worker.calling import CURVES, NUMPY, PYTHON, TORCH
from autograder.vocabulary.report import CaseResult, ItemResult

PROBE = "call"  # the engine's own, whose parameters say what is called
CALLED = "What this public case calls, with arrays to 6 digits:"
START_THERE = "start there."  # how a hint ends that sends to another item
DIGITS = 6
MOST_NUMBERS, MOST_LINES, WIDTH = 40, 14, 100
MARGIN = "  "
TOLD = ("failed", "raised", "timed_out")
UNTYPED = ("aliases", "graphs", "stand_ins", "upstream", "raises")  # what one line of arguments cannot say


def calls_of(items: Iterable[ItemResult], cases: Sequence[Case]) -> dict[str, str]:
    """Item → the call of its first case that fails, where that is public and short, and nothing shorter is shown."""
    by_id = {case.id: case for case in cases}
    firsts = {item.item: first_wrong(item) for item in items}
    calls = {name: short_call(by_id[one.case]) for name, one in firsts.items() if one and one.case in by_id}
    return {name: text for name, text in calls.items() if text}


def with_calls(items: Sequence[ItemResult], cases: Sequence[Case]) -> list[ItemResult]:
    """The results, each with that call below its message."""
    calls = calls_of(items, cases)
    texts = {name: textwrap.indent(text, MARGIN) for name, text in calls.items()}
    return [
        replace(item, message=f"{item.message}\n{CALLED}\n{texts[item.item]}") if item.item in texts else item
        for item in items
    ]


def first_wrong(item: ItemResult) -> CaseResult | None:
    """The first case of an item that is wrong, if it is public and the item's message is about it."""
    first = next((one for one in item.cases if one.verdict != "passed"), None)
    if first is None or first.visibility != "public" or first.verdict not in TOLD:
        return None
    return None if item.counterexample or item.hint.endswith(START_THERE) else first


def short_call(case: Case) -> str:
    """The call, if it is short enough to be read; "" where it is not, or is of more than arguments."""
    if case.visibility != "public" or sum(array.size for array in case.inputs.values()) > MOST_NUMBERS:
        return ""
    lines = call_lines(case) if not any(case.params.get(name) for name in UNTYPED) else []
    return "" if len(lines) > MOST_LINES or any(len(line) > WIDTH for line in lines) else "\n".join(lines)


def call_lines(case: Case, *, arrays: bool = True) -> list[str]:
    """Arguments that are arrays or functions line by line, then the call with all others in their places.

    None of them where the case has a probe of its own, whose parameters only that knows.
    """
    params = case.params
    listed = params.get("arguments")
    known = {**case.inputs, **params.get("given", {}), **params.get("formulas", {})}
    if case.probe != PROBE or not isinstance(listed, list) or not all(name in known for name in listed):
        return []
    formulas = params.get("formulas", {})
    stated = [name for name in listed if name in case.inputs or name in formulas]
    told = stated if arrays else [name for name in stated if name in formulas]
    lines = [line for name in told for line in _assigned(name, known[name], case)]
    words = {name: name if name in stated else repr(known[name]) for name in listed}
    by_name = params.get("by_name", ())
    arguments = [f"{name}={words[name]}" if name in by_name else words[name] for name in listed]
    return [*lines, f"{params['function']}({', '.join(arguments)})"]


def _assigned(name: str, found: Any, case: Case) -> list[str]:
    """The lines that give an argument its name: an array's rows below each other."""
    if not isinstance(found, Mapping):
        return _array_lines(name, found, case)
    names = found["of"].split()
    library = "np" if case.values == NUMPY else "math"
    known = "|".join(one for one in (*CURVES, "pi", "e") if one not in names)
    formula = re.sub(rf"(?<![.\w])({known})\b", rf"{library}.\1", found["is"])
    return [f"{name} = lambda {', '.join(names)}: {formula}"]


def _array_lines(name: str, array: Array, case: Case) -> list[str]:
    values = case.values
    head = {PYTHON: "", NUMPY: "np.array("}.get(values, "torch.tensor(")
    usual = ("float64", "int64", "bool") if values == NUMPY else ("float32", "int64", "bool")
    library = "torch" if values == TORCH else "np"
    more = "" if values == PYTHON or array.dtype.name in usual else f", dtype={library}.{array.dtype.name}"
    more += ", requires_grad=True" if name in case.params.get("leaves", ()) else ""
    text, end = nested(array, DIGITS), "" if values == PYTHON else f"{more})"
    start = f"{name} = {head}"
    if array.ndim < 2 or len(f"{start}{text}{end}") <= WIDTH:
        return [f"{start}{text}{end}"]
    margin = " " * (len(start) + 1)
    rows = [nested(row, DIGITS) for row in array]
    lines = [f"{start}[{rows[0]}", *(f"{margin}{row}" for row in rows[1:])]
    return [*(f"{line}," for line in lines[:-1]), f"{lines[-1]}]{end}"]
