"""The items of a new assignment, and the calls that make their cases: cases.py as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autograder.authoring.beginning.answers import Tried
from autograder.authoring.beginning.signatures import Solution
from autograder.authoring.calls import Drawn, Formula, Number, Whole

TINY = 1e-3
LONGEST_LINE = 106  # of one call's arguments
LONGEST = 60  # characters of a case's title
WEIGHTS = {"values": 4, "gradient": 3, "errors": 2}
TITLES = {
    "values": "what {function} returns",
    "gradient": "the gradient of {function} with respect to its arguments",
    "errors": "arguments that {function} refuses",
}
HINTS = {
    "values": "Work the public case out by hand, value by value: where does yours depart?",
    "gradient": "Does every step of the computation stay in the graph?",
    "errors": "Which arguments does the docstring refuse, and with which exception?",
}


@dataclass(frozen=True)
class Entry:
    """An item, with the calls of cases.py that make its cases: case → text of the call."""

    id: str
    function: str
    what: str
    points: int
    public: Mapping[str, str]
    hidden: Mapping[str, str]


@dataclass
class Allowances:
    """What was found out on the way: arguments that need not matter in a case, and cases that could not grade."""

    free: dict[str, list[str]] = field(default_factory=dict)
    dropped: set[str] = field(default_factory=set)


def entries(tried: Sequence[Tried], allowed: Allowances, points: int = 100) -> list[Entry]:
    """The items of these functions, whose points sum to `points`."""
    found = [(one, what) for one in tried for what in _items_of(one)]
    shares = _shares([WEIGHTS[what] for _, what in found], points)
    return [_entry(one, what, share, allowed) for (one, what), share in zip(found, shares, strict=True)]


def _sizes(arguments: Mapping[str, Any], otherwise: str = "drawn numbers") -> str:
    """What a case is called: the sizes of its axes; without any, its whole numbers."""
    names = {
        axis: size
        for one in arguments.values()
        if isinstance(one, Drawn)
        for axis, size in zip(one.axes.split(), one.sizes, strict=True)
    }
    sizes = ", ".join(_several(axis, size) for axis, size in names.items())
    is_drawn = any(isinstance(one, Drawn | Number) for one in arguments.values())
    told = (int,) if is_drawn or not otherwise else (int, str, bool, float, list)
    counts = ", ".join(f"{name} = {one!r}" for name, one in arguments.items() if type(one) in told)
    shown = sizes or (counts if len(counts) <= LONGEST else "")
    return f"{shown}: {otherwise}" if sizes and otherwise == "other settings" else shown or otherwise


def _several(axis: str, size: int) -> str:
    """So many of what an axis is of: `3 steps`; of a name that is no word `n 3`."""
    if len(axis) < len("row") or not axis.isalpha() or axis.endswith("s"):
        return f"{axis} {size}"
    if re.search(r"(x|ch|sh)$", axis):
        return f"{size} {axis}es"
    return f"{size} {axis[:-1]}ies" if re.search(r"[^aeiou]y$", axis) else f"{size} {axis}s"


def _items_of(tried: Tried) -> Iterator[str]:
    yield "values"
    if tried.leaves:
        yield "gradient"
    if tried.errors:
        yield "errors"


def _shares(weights: Sequence[int], total: int) -> list[int]:
    """Whole numbers in these proportions, the largest remainders rounded up."""
    exact = [total * weight / sum(weights) for weight in weights]
    shares = [int(one) for one in exact]
    for place in sorted(range(len(exact)), key=lambda k: shares[k] - exact[k])[: total - sum(shares)]:
        shares[place] += 1
    return shares


def _entry(tried: Tried, what: str, points: int, allowed: Allowances) -> Entry:
    slug = tried.function.slug
    if what == "errors":
        calls = {f"{slug}-refused-{n}": _error_call(tried, n) for n in range(1, len(tried.errors) + 1)}
        first = next(iter(calls))
        hidden = {name: text for name, text in calls.items() if name != first}
        return Entry(f"{slug}-errors", tried.function.name, what, points, {first: calls[first]}, hidden)
    leaves = tried.leaves if what == "gradient" else ()
    short = "slope" if what == "gradient" else "case"
    wanted = {f"{slug}-{short}-small": (_sizes(tried.small), tried.small)}
    wanted[f"{slug}-{short}-large"] = (_sizes(tried.large, "other numbers"), tried.large)
    if what == "values" and tried.other != tried.large:
        wanted[f"{slug}-{short}-other"] = (_sizes(tried.other, "other settings"), tried.other)
    if what == "values" and tried.brief != tried.large:
        wanted[f"{slug}-{short}-brief"] = (_sizes(tried.brief, "defaults alone"), tried.brief)
    kept = [name for name in wanted if name not in allowed.dropped and not _is_again(name, wanted)]
    calls = {
        name: _call(
            tried, name, *wanted[name], leaves, allowed.free.get(name, []), named=not leaves and name == kept[0]
        )
        for name in kept
    }
    for word, one in tried.worded.items() if what == "values" else ():
        name = f"{slug}-{short}-{re.sub(r'[^a-z0-9]+', '-', word.lower()).strip('-')}"
        if name not in {*allowed.dropped, *calls}:
            title = ": ".join(filter(None, [_sizes(one.large, ""), f'"{word}"']))
            calls[name] = _call(one, name, title, one.large, (), allowed.free.get(name, []))
    first = next(iter(calls))
    public, hidden = {first: calls[first]}, {name: text for name, text in calls.items() if name != first}
    return Entry(f"{slug}-{what}", tried.function.name, what, points, public, hidden)


def _is_again(name: str, wanted: Mapping[str, tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether a case before it makes the same call, with nothing drawn in it."""
    arguments = wanted[name][1]
    earlier = [wanted[one][1] for one in list(wanted)[: list(wanted).index(name)]]
    return arguments in earlier and not any(isinstance(one, Drawn | Number) for one in arguments.values())


# cases.py


def cases_text(listed: Sequence[Entry], solution: Solution) -> str:
    """The cases: one call for each."""
    calls = "\n".join(text for entry in listed for text in (*entry.public.values(), *entry.hidden.values()))
    known = ("Calls", "Drawn", "Formula", "Number", "Whole")
    names = [name for name in known if re.search(rf"\b{name}\(", calls + "Calls(")]
    return f'''\
"""The cases: what each calls, and with which arguments. `Drawn`, `Number` and `Whole` draw from the secret."""

from autograder.authoring.calls import {", ".join(names)}

from . import oracle


def drafts(secret, draw):
    calls = Calls(secret, draw, oracle, "{solution.values}")
{calls}
'''


def _call(
    tried: Tried,
    case: str,
    title: str,
    arguments: Mapping[str, Any],
    leaves: Sequence[str],
    free: Sequence[str],
    *,
    named: bool = False,
) -> str:
    """The text of one case; where it is `named`, arguments are passed by name that can be."""
    more = [f'dtype="{tried.dtype}"'] if tried.dtype != "float64" else []
    listed = [one for one in tried.function.arguments if one.by_name or (named and not one.by_place)]
    by_name = [one.name for one in listed if one.name in arguments]
    more += [f"by_name={_shown(by_name)}"] if by_name else []
    axes = {name: arguments[name].axes for name in leaves}
    more += [f"leaves={_shown(axes)}", "only_gradients=True"] if leaves else []
    more += [f"gradients_of={_shown(list(tried.gradients_of))}"] if leaves and len(tried.parts) > 1 else []
    more += [f"kind={_shown(tried.kind)}"] if tried.kind and not leaves else []
    more += ['square="two axes are of one size"'] if tried.square else []
    more += ['infinite="so does the solution"'] if tried.infinite else []
    tiny = [a.name for a in tried.function.arguments if isinstance(a.default, float) and abs(a.default) < TINY]
    free = list(dict.fromkeys([*free, *tiny]))  # a tolerance: how much it matters is the method's own business
    more += [f"free={_shown(list(free))}"] if free else []
    returns = "None" if tried.returns is None else _shown(tried.returns)
    return _yield(case, title, tried.function.name, arguments, [returns, *more])


def _error_call(tried: Tried, number: int) -> str:
    instead, mention = tried.errors[number - 1]
    shown = ", ".join(f"{name} = {value!r}" for name, value in instead.items())
    raises = f'raises={{"refused": ({_shown(dict(instead))}, {_shown([mention] if mention else [])})}}'
    case = f"{tried.function.slug}-refused-{number}"
    by_name = [one.name for one in tried.function.arguments if one.by_name]
    more = [raises, *([f"by_name={_shown(by_name)}"] if by_name else [])]
    return _yield(case, f"called with {shown}", tried.function.name, tried.small, more)


def _yield(case: str, title: str, function: str, arguments: Mapping[str, Any], more: Sequence[str]) -> str:
    given = [f'"{name}": {_argument(value)}' for name, value in arguments.items()]
    head = f'    yield calls.case("{case}", {quoted(title)}, "{function}"'
    if not any(isinstance(one, Drawn | Number) for one in arguments.values()):
        more = [*more, "example=True"]  # nothing in it is drawn: it is the same in each term
    if len(", ".join(given)) <= LONGEST_LINE:
        return filled(head, [f"{{{', '.join(given)}}}", *more]) + ")"
    given[0], given[-1] = f"{{{given[0]}", f"{given[-1]}}}"
    return filled(head, [*given, *more]) + ")"


def filled(head: str, parts: Sequence[str]) -> str:
    """The head and the parts, with commas between, in lines of 118 characters at most where no part is longer."""
    lines = [head]
    for part in parts:
        if len(lines[-1]) + len(part) > LONGEST_LINE + 10:
            lines[-1] += ","
            lines.append(f"        {part}")
        else:
            lines[-1] += f", {part}"
    return "\n".join(lines)


def _shown(found: Any) -> str:
    """It as Python, in double quotes."""
    if isinstance(found, str):
        return quoted(found)
    if isinstance(found, dict):
        return "{" + ", ".join(f"{_shown(key)}: {_shown(value)}" for key, value in found.items()) + "}"
    return "[" + ", ".join(map(_shown, found)) + "]" if isinstance(found, list) else repr(found)


def _argument(value: Any) -> str:
    if isinstance(value, Drawn):
        kind = f', "{value.kind}"' if value.kind != "real" or value.low is not None else ""
        bounds = f", {value.low!r}, {value.high!r}" if value.low is not None else ""
        words = f', also="{value.also}"' if value.also else ""
        return f'Drawn("{value.axes}", {value.sizes!r}{kind}{bounds}{words})'
    if isinstance(value, Number):
        words = f', "{value.also}"' if isinstance(value, Whole) and value.also else ""
        return f"{type(value).__name__}({value.low}, {value.high}{words})"
    return f'Formula("{value.of}", "{value.expression}")' if isinstance(value, Formula) else _shown(value)


def quoted(text: str) -> str:
    """The text as Python, in double quotes where it holds none."""
    return repr(text) if '"' in text else '"' + repr(text)[1:-1].replace("\\'", "'") + '"'
