"""Arguments that are functions: what a docstring, an annotation and the body say of what they take, and a formula."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from autograder.authoring.drafts.draws import FUNCTIONS, Formula

NAMES = ("x", "y", "z", "u", "v", "w")  # of arguments that have none
COUNTS = ("one", "two", "three", "four", "five", "six")
LISTED = r"([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)"
TERM = r"(?:the |an? )?([A-Za-z_]\w*)"
OF = re.compile(
    rf"\b(?:function|callable)s? of (?:{'|'.join(COUNTS)}|{TERM}(?:(?:, {TERM})*,? and {TERM})?)", re.IGNORECASE
)
COUNTED = re.compile(
    rf"\b(?:of|takes|with|taking)\s+({'|'.join(COUNTS)}|\d)\s+(?:\w+\s+)?(?:arguments?|parameters?|variables?|numbers?|floats?)"
)
CALLABLE = re.compile(r"Callable\[\[([^\[\]]*)\]")
ARROW = re.compile(r"\(([^()]*)\)\s*->")
NO_NAMES = frozenset({"function", "callable", "float", "int", "bool", "str", "number", "numbers", "array", "ndarray"})
ENDS = frozenset(
    {"returns", "which", "that", "is", "gives", "it", "to", "optional", "number", "array", "vector", "such"}
)
SUCH_AS = re.compile(r"\b(?:such as|for example|e\.g\.)[,:]?\s+(.*)")


def takes(name: str, text: str, annotation: str, node: ast.FunctionDef) -> tuple[str, ...]:
    """The names of the arguments that a function passed as `name` takes; () where nothing says how many these are.

    How the body calls it counts for more than what is said, which may go on: `a function of x, continuous`.
    """
    said = _said(name, text) or _annotated(annotation)
    called = _called(name, node)
    if not called:
        return said
    named = tuple(one for one in called if one)
    if len(named) == len(called):
        return named
    return said[: len(called)] if len(said) >= len(called) else NAMES[: len(called)]


def _said(name: str, text: str) -> tuple[str, ...]:
    """As the argument's paragraph has it: `f(t, y)`, `function(t, y)`, `function of t and y`, `of two numbers`."""
    for call in re.finditer(
        rf"\b(?:function|callable|func|fun|{re.escape(name)})\s?\(\s*{LISTED}\s*(?:,\s*\.\.\.)?\)", text
    ):
        names = tuple(re.findall(r"\w+", call[1]))
        if not NO_NAMES & set(names) and len(set(names)) == len(names):
            return names
    if found := COUNTED.search(text):
        return NAMES[: COUNTS.index(found[1]) + 1 if found[1] in COUNTS else int(found[1])]
    if (found := ARROW.search(text)) and found[1].strip():
        return NAMES[: found[1].count(",") + 1]
    if found := OF.search(text):
        words = re.findall(r"[A-Za-z_]\w*", re.sub(r"^.*? of |\b(?:the|an?|and)\b", "", found[0]))
        end = next((place for place, one in enumerate(words) if one in ENDS), len(words))
        return tuple(dict.fromkeys(words[:end]))
    return _annotated(text)


def _annotated(annotation: str) -> tuple[str, ...]:
    found = CALLABLE.search(annotation)
    return NAMES[: found[1].count(",") + 1] if found and found[1].strip() not in ("", "...") else ()


def _called(name: str, node: ast.FunctionDef) -> tuple[str, ...]:
    """Of the longest call of it in the body the names by which arguments are passed, "" for those that have a place."""
    calls = [one for one in ast.walk(node) if isinstance(one, ast.Call) and getattr(one.func, "id", "") == name]
    plain = [one for one in calls if not any(isinstance(part, ast.Starred) for part in one.args)]
    listed = [("",) * len(one.args) + tuple(word.arg or "" for word in one.keywords) for one in plain]
    return max(listed, key=len, default=())


def formulas(names: Sequence[str], text: str = "") -> tuple[Formula, Formula, Formula]:
    """A function of arguments of these names, one to stand beside it, and another in place of the first.

    Of one argument the second is the first one's derivative. The first is the one that `text` gives: `such as x * y`.
    """
    first, *rest = names or NAMES[:1]
    of = " ".join((first, *rest))
    weights = [f"{0.5 / (place + 1):g} * {name}" for place, name in enumerate(rest)]
    if not rest:
        several = (f"{first} * {first} - 2", f"2 * {first}", f"{first} * {first} - 3")
    else:
        less, more = "".join(f" - {one}" for one in weights), "".join(f" + {one}" for one in weights)
        several = (f"{first} * {first}{less}", f"0.5 * {first}{more}", f"{first} * {first}{less} - 0.25")
    chosen = given(names, text)
    return (
        Formula(of, chosen or several[0]),
        Formula(of, several[1]),
        Formula(of, f"{chosen} + 0.25" if chosen else several[2]),
    )


def given(names: Sequence[str], text: str) -> str:
    """The expression of these names that the text gives as an example, `such as x * y - 2`; "" where it gives none."""
    found = SUCH_AS.search(text)
    rest = re.split(r"[;.](?:\s|$)", found[1])[0].strip(" `") if found else ""
    while rest:
        if _is_expression(rest, names or NAMES[:1]):
            return rest
        rest = rest.rpartition(",")[0].strip(" `")
    return ""


def _is_expression(text: str, names: Sequence[str]) -> bool:
    try:
        code = compile(text, "formula", "eval")
    except (SyntaxError, ValueError):
        return False
    return bool(set(code.co_names) & set(names)) and set(code.co_names) <= {*names, *FUNCTIONS}
