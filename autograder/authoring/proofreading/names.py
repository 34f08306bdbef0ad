"""Names that a case declares, held against those that there are: functions, arguments, gradients, axes."""

from __future__ import annotations

import ast
import difflib
import numbers
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from autograder.authoring.declarations import DTYPES, GROUPS, Draft, Misnamed
from autograder.authoring.drafts.draws import FUNCTIONS
from autograder.authoring.proofreading.fault import likely
from autograder.grading.cases import Case, Expectation

BRACKETS = re.compile(r"\w\[([^\]]*)\]")
DIGITS = "0123456789"
ALIKE = 0.75  # of two axes of which one is the other one's misspelling
R = TypeVar("R")
MISSPELT = 0.85
Slip = tuple[str, str]  # what is wrong; what would be right


@dataclass(frozen=True)
class Signature:
    """What a function of the solution is called with.

    names     of its arguments that have a place, in order
    by_name   of those that have none
    needed    those without a default
    is_open   whether it takes as many as one likes
    axes      names that its docstring has for axes
    """

    names: tuple[str, ...]
    by_name: tuple[str, ...]
    needed: tuple[str, ...]
    is_open: bool
    axes: frozenset[str]


@dataclass(frozen=True)
class Known:
    """What the solution's module has.

    functions   those at its top level
    mentioned   every name in its text
    """

    functions: Mapping[str, Signature]
    mentioned: frozenset[str]


def known_names(source: str) -> Known:
    """What a module with that text has; raises SyntaxError where it is no Python."""
    tree = ast.parse(source)
    functions = {node.name: _signature(node) for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return Known(
        functions, frozenset(names | {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)})
    )


def _signature(node: ast.FunctionDef) -> Signature:
    listed = tuple(one.arg for one in (*node.args.posonlyargs, *node.args.args))
    by_name = tuple(one.arg for one in node.args.kwonlyargs)
    needed = listed[: len(listed) - len(node.args.defaults)]
    needed += tuple(name for name, default in zip(by_name, node.args.kw_defaults, strict=True) if default is None)
    axes = re.findall(r"[A-Za-z_]\w*", " ".join(BRACKETS.findall(ast.get_docstring(node) or "")))
    is_open = node.args.vararg is not None or node.args.kwarg is not None
    return Signature(listed, by_name, needed, is_open, frozenset(axes))


def check_options(tolerances: Mapping[str, Any], *, only_gradients: bool, judged: bool) -> None:
    """Raise Misnamed where a tolerance is no number, or gradients alone are to be judged and there are none."""
    for name, one in tolerances.items():
        if one is not None and (isinstance(one, bool) or not isinstance(one, numbers.Real) or not float(one) >= 0):
            raise Misnamed(f"{name} is {one!r}", f"a number that is not negative, such as {name}=1e-6")
    if only_gradients and not judged:
        raise Misnamed(
            "only_gradients=True, and there are no leaves", "leaves=(…) with the inputs whose gradients count"
        )


def check_lists(lists: Mapping[str, Any]) -> None:
    """Raise Misnamed where names that are to be listed are one text, whose letters nobody meant."""
    for key, names in lists.items():
        if isinstance(names, str):
            raise Misnamed(f"{key} is {names!r}", f'a list: {key}=["{names}"]')


def check_call(dtype: str, raises: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Raise Misnamed where a call is declared with what there is not."""
    named(dtype, dict.fromkeys(DTYPES), "the dtypes")
    if not isinstance(raises, Mapping):
        raise Misnamed(f"raises is of type {type(raises).__name__}", 'raises={"refused": ({"n": 0}, ["n"])}')
    for name, refusal in raises.items():
        right = f'raises={{"{name}": ({{"argument": what instead}}, ["a word of the message"])}}'
        is_pair = isinstance(refusal, tuple) and len(refusal) == 2 and isinstance(refusal[0], Mapping)
        if not is_pair or not isinstance(refusal[1], list | tuple):
            raise Misnamed("raises is a pair of a dictionary and a list", right)
        for one in refusal[0]:
            named(one, arguments, "the arguments of the call")


def named(name: str, there: Mapping[str, R], what: str) -> R:
    """What stands under that name; raises Misnamed where nothing does."""
    if name not in there:
        raise Misnamed(f"{name!r} is not among {what}", likely(name, there))
    return there[name]


def check_names(cases: Iterable[Case], drafts: Mapping[str, Draft], source: str) -> None:
    """Raise Misnamed at the first name of a case that nothing has; `source` is the solution's text."""
    known = known_names(source)
    for case in cases:
        for slip in (
            *name_slips(drafts[case.id], known, case.function),
            *axis_slips(case.function, case.expected, known),
        ):
            raise Misnamed(f"{case.id}: {slip[0]}", slip[1])


def name_slips(draft: Draft, known: Known, graded: str = "") -> Iterator[Slip]:
    """Every name among a draft's parameters that nothing has; `graded` is its item's function."""
    params = draft.params
    listed, function = params.get("arguments"), params.get("function")
    if not isinstance(listed, list) or not isinstance(function, str):
        yield from _misspelt_free(draft)
        return
    if not known.functions:
        return  # the solution cannot be read, which is told elsewhere
    if function not in known.functions:
        yield f"the solution does not define {function!r}", likely(function, known.functions)
        return
    if graded not in ("", function):
        yield f"it calls {function}, and its item is of {graded}", f"an item whose function is {function!r}"
        return
    signature = known.functions[function]
    yield from _about_arguments(function, listed, params.get("by_name", ()), signature)
    yield from _unknown("free", draft.free, {*_free(draft), *signature.names, *signature.by_name})
    for key in ("leaves", "constants", "transposed"):
        yield from _unknown(key, params.get(key, ()), draft.inputs)
    for key in ("by_name", "aliases", "graphs"):
        yield from _unknown(key, params.get(key, ()), listed)
    yield from _unknown("stand_ins", params.get("stand_ins", ()), known.mentioned)
    for key, entries in (("raises", _values(params.get("raises"))), ("calls", params.get("calls", ()))):
        for entry in entries if not signature.is_open else ():
            yield from _unknown(key, entry, (*listed, *signature.names, *signature.by_name))
    for entry in (params.get("formulas", {}), params.get("stand_ins", {})):
        for name, formula in entry.items():
            yield from _about_formula(name, formula)


def _values(entry: object) -> Iterable[Any]:
    return entry.values() if isinstance(entry, Mapping) else ()


def _free(draft: Draft) -> set[str]:
    """What need not matter: inputs, parameters, and the names in groups of parameters."""
    grouped = {name for group in GROUPS for name in draft.params.get(group, {})}
    whole = {f"{group}.{name}" for group in GROUPS for name in draft.params.get(group, {})}
    return {*draft.inputs, *draft.params, *draft.params.get("arguments", ()), *grouped, *whole}


def _misspelt_free(draft: Draft) -> Iterator[Slip]:
    """Names that are nearly one of the draft's: others may be of settings that this case leaves out."""
    there = _free(draft)
    for name in [one for one in draft.free if one not in there]:
        if close := difflib.get_close_matches(name, sorted(there), n=1, cutoff=MISSPELT):
            yield f"free names {name!r}", f"{close[0]!r} is there"


def _unknown(key: str, names: Iterable[str], known: Iterable[str]) -> Iterator[Slip]:
    """Those of the names that are not known."""
    there = list(known)
    for name in names:
        if name not in there:
            yield f"{key} names {name!r}", likely(name, there)


def _about_arguments(
    function: str, listed: Sequence[str], by_name: Collection[str], signature: Signature
) -> Iterator[Slip]:
    """Names that are not the function's, or stand elsewhere: arguments are passed in their order, unless by name."""
    names = (*signature.names, *signature.by_name)
    wrong = [] if signature.is_open else [name for name in listed if name not in names]
    for name in wrong:
        yield f"{function} has no argument {name!r}", likely(name, [one for one in names if one not in listed] or names)
    placeless = [name for name in listed if name in signature.by_name and name not in by_name]
    for name in placeless:
        yield f"{name} of {function} is passed by name alone", f"by_name=[{name!r}]"
    if wrong or placeless:
        return
    in_order = tuple(name for name in listed if name not in by_name)
    called = f"in the order of {function}({', '.join(signature.names)}), without a gap"
    if missing := [name for name in signature.needed if name not in listed]:
        yield f"{function} is called without {', '.join(missing)}", called
    elif in_order[: len(signature.names)] != signature.names[: len(in_order)]:
        yield f"the arguments are {', '.join(in_order)}: each is passed at its place", called


def _about_formula(name: str, formula: Mapping[str, str]) -> Iterator[Slip]:
    try:
        used = compile(formula["is"], "formula", "eval").co_names
    except (SyntaxError, ValueError) as error:
        yield f"the formula of {name} is no expression of Python: {error}", 'Formula("x", "x * x - 2")'
        return
    there = [*formula["of"].split(), *FUNCTIONS]
    for one in used:
        if one not in there:
            yield f"the formula of {name} has the name {one!r}", likely(one, there)


def axis_slips(function: str, expected: Iterable[Expectation], known: Known) -> Iterator[Slip]:
    """Axes of values that are nearly an axis of the function's docstring, which students know them by."""
    axes = known.functions[function].axes if function in known.functions else frozenset[str]()
    for one in dict.fromkeys(axis for entry in expected if entry.kind == "value" for axis in entry.axes):
        meant = difflib.get_close_matches(one, sorted(axes), n=1, cutoff=ALIKE)
        if meant and one not in axes and one.rstrip(DIGITS) != meant[0].rstrip(DIGITS):
            yield f"an axis is called {one!r}", f"as in the docstring of {function}: {meant[0]!r} is there"
