"""The other files of a new assignment, as text: items, oracle, catalogue, probes, and the students' README.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence

from autograder.authoring.beginning.answers import Tried
from autograder.authoring.beginning.entries import HINTS, TITLES, Entry, filled, quoted
from autograder.authoring.beginning.likely_mistakes import Candidate
from autograder.authoring.beginning.signatures import Argument, Function, Solution
from autograder.authoring.beginning.trial import PROBES
from autograder.authoring.handout.source_notebook import BEGIN, END
from autograder.grading.items import PACKAGES
from autograder.vocabulary.errors import UsageError


def items_text(name: str, title: str, listed: Sequence[Entry], solution: Solution) -> str:
    """items.toml; where no tensor is wanted, what students install is what the solution imports."""
    points = sum(entry.points for entry in listed)
    imported = [one for one in PACKAGES if re.search(rf"^\s*(?:import|from) {one}\b", solution.text, re.MULTILINE)]
    packages = "" if solution.values == "torch" else f"packages = [{_listed(imported)}]\n"
    head = f'assignment = "{name}"\ntitle = {_toml(title)}\nmodule = "{name}"\n{packages}points = {points}\n'
    return head + "".join(
        f"""
[[item]]
id = "{entry.id}"
function = "{entry.function}"
title = {_toml(TITLES[entry.what].format(function=entry.function))}
points = {entry.points}
hint = {_toml(HINTS[entry.what])}
public = [{_listed(entry.public)}]
hidden = [{_listed(entry.hidden)}]
"""
        for entry in listed
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def oracle_text(tried: Sequence[Tried], solution: Solution) -> str:
    """oracle.py, in which nothing is independent yet."""
    names = "".join(f'    "{one.function.name}",\n' for one in tried)
    wanted = "".join(
        f"# def {name}({', '.join(map(_parameter, one.function.arguments))}): ...{told}\n"
        for one in tried
        for name, told in _wanted(one)
    )
    return f'''\
"""Expected values, worked out another way than the solution's: loops, closed forms, numbers from a book.

NOTHING HERE IS INDEPENDENT YET. The functions below are graded by what the solution says of itself, so a mistake of
the solution's counts as right, and `release` refuses to make a handout for students. For each one: write it here, with
the same arguments (arrays come in float64), and take its name off the list.
"""

NOT_INDEPENDENT = {{
{names}}}

{wanted}'''


def _wanted(tried: Tried) -> Iterable[tuple[str, str]]:
    """The names of what the oracle is to define of a function, and what a gradient is of."""
    name = tried.function.name
    several = f"({', '.join(tried.leaves)})" if len(tried.leaves) > 1 else "".join(tried.leaves)
    listed = tried.gradients_of if len(tried.parts) > 1 else (f"what {name} returns",)
    what = f"  # of the sum of {' and '.join(listed)}, with respect to {several}"
    return [(name, ""), *([(f"{name}_gradient", what)] if tried.leaves else [])]


def _parameter(argument: Argument) -> str:
    return argument.name if argument.is_needed else f"{argument.name}={argument.default!r}"


def probes_text() -> str:
    """probes.py."""
    return PROBES


def mistakes_text(name: str, found: Mapping[str, Sequence[Candidate]]) -> str:
    """The catalogue: where each mistake departs from the solution's text."""
    constants = "".join(f'{one.upper()} = Correct.from_solution(SOLUTION, "{one}")\n' for one in found)
    listed = "".join(_mistake(one) for several in found.values() for one in several)
    return f'''\
"""Wrong answers that are known by name. A hint is a question or a pointer, never the corrected line."""

from pathlib import Path

from autograder.authoring.catalogue import Correct, Mistake

SOLUTION = (Path(__file__).parents[2] / "solution/{name}/{name}.py").read_text(encoding="utf-8")
{constants}
MISTAKES: tuple[Mistake, ...] = (
{listed})
'''


def _mistake(one: Candidate) -> str:
    head = f"    {one.function.upper()}.but({quoted(one.slug)}"
    rest = [quoted(one.hint), f"({quoted(one.right)}", f"{quoted(one.wrong)})"]
    return filled(head, rest) + "),\n"


def readme_text(name: str, title: str, functions: Sequence[Function]) -> str:
    """The students' text."""
    sections = "".join(f"\n## `{one.name}`\n\n{_about(one)}\n" for one in functions)
    names = ", ".join(f"`{one.name}`" for one in functions)
    return f"""\
# {title}

You complete {names} in `{name}.py`, or in the notebook `{name}.ipynb`, which is the same. The docstrings are the
specification.

## How to check your work

In this folder, after `pip install -r requirements.txt`:

```sh
python -m autograder check                 # every item with its points, and what is wrong
python -m autograder check --item NAME     # one item, by the name that the first command prints
```

## Points

<!-- points:begin -->
<!-- points:end -->
{sections}
## How to hand in

Hand in `{name}.py` or `{name}.ipynb`.
"""


def _about(function: Function) -> str:
    places = [one for one in function.arguments if not one.by_name]
    by_name = [one for one in function.arguments if one.by_name]
    arguments = ", ".join([*map(_parameter, places), *(["*"] if by_name else []), *map(_parameter, by_name)])
    said = function.summary or "Complete the function."
    return f"`{function.name}({arguments})`: {said[0].lower()}{said[1:]}"


def marked(solution: Solution) -> str:
    """The text with both markers around the body of each function that has none, below its docstring."""
    lines = solution.text.splitlines()
    open_ones = {function.name for function in solution.functions if not function.marked}
    nodes = [n for n in ast.parse(solution.text).body if isinstance(n, ast.FunctionDef) and n.name in open_ones]
    for node in sorted(nodes, key=lambda node: node.lineno, reverse=True):
        body = node.body[1:] if ast.get_docstring(node) is not None else node.body
        if not body:
            raise UsageError(f"{solution.path}:{node.lineno}: {node.name} has no body to mark.")
        first = body[0].lineno
        margin = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        lines.insert(node.end_lineno or first, f"{margin}{END}")
        lines.insert(first - 1, f"{margin}{BEGIN}")
    return "\n".join(lines) + "\n"
