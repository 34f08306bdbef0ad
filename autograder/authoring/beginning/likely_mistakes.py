"""Likely mistakes, made from the solution's own text: one operator, axis, bound or argument of one line is another.

What becomes of them is for the sandbox to say: only those that some case tells from a right answer, and from each
other, are worth a place in a catalogue.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from autograder.authoring.beginning.signatures import Function

OPERATORS: dict[type, tuple[str, str, str, str]] = {
    ast.Add: (
        "+",
        "-",
        "minus-for-plus",
        "Which two terms are added, and which subtracted? Work one value out by hand.",
    ),
    ast.Sub: (
        "-",
        "+",
        "plus-for-minus",
        "Which two terms are added, and which subtracted? Work one value out by hand.",
    ),
    ast.Mult: ("*", "/", "divided", "What is multiplied, and what divided? Try it with numbers other than 1."),
    ast.Div: ("/", "*", "multiplied", "What is multiplied, and what divided? Try it with numbers other than 1."),
}
BOUNDS: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
}  # fmt: skip
NAMES: dict[str, tuple[str, str]] = {
    "mean": ("sum", "Is it a sum or a mean that is asked for?"),
    "sum": ("mean", "Is it a sum or a mean that is asked for?"),
    "max": ("min", "Which of the extreme values is asked for?"),
    "min": ("max", "Which of the extreme values is asked for?"),
    "cumsum": ("cumprod", "What runs along the axis: a sum or a product?"),
    "std": ("var", "Is it the spread or its square that is asked for?"),
    "var": ("std", "Is it the spread or its square that is asked for?"),
}
EXCHANGED = "arguments-exchanged"
DROPPED = frozenset({"sqrt", "abs", "exp", "log", "sorted", "square"})


@dataclass(frozen=True)
class Candidate:
    """One line of a function's text that may be wrong in one way: its right and its wrong text."""

    function: str
    slug: str
    hint: str
    right: str
    wrong: str

    def text(self, correct: str) -> str:
        """The function with that line wrong."""
        return correct.replace(self.right, self.wrong)


def candidates(correct: str, function: Function) -> Iterator[Candidate]:
    """Every likely mistake whose line stands in the text once, the most telling first; slugs are unique."""
    return iter(sorted(_candidates(correct, function), key=lambda one: EXCHANGED not in one.slug))


def _candidates(correct: str, function: Function) -> Iterator[Candidate]:
    tree = ast.parse(correct)
    lines = correct.splitlines()
    seen: dict[str, int] = {}
    for node in ast.walk(tree):
        for start, end, text, slug, hint in _changes(node, function):
            line = lines[start[0] - 1]
            if start[0] != end[0] or correct.count(line.strip()) != 1:
                continue
            changed = line[: start[1]] + text(line[start[1] : end[1]]) + line[end[1] :]
            if changed == line or not _is_python(correct.replace(line, changed)):
                continue
            seen[slug] = seen.get(slug, 0) + 1
            own = f"{function.slug}-{slug}" + (f"-{seen[slug]}" if seen[slug] > 1 else "")
            yield Candidate(function.name, own, hint, line.strip(), changed.strip())


Place = tuple[int, int]
Change = tuple[Place, Place, Callable[[str], str], str, str]


def _changes(node: ast.AST, function: Function) -> Iterator[Change]:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        sign, other, slug, hint = OPERATORS[type(node.op)]
        yield _end(node.left), _start(node.right), _swapped(sign, other), slug, hint
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in BOUNDS:
        sign, other = BOUNDS[type(node.ops[0])]
        hint = "What happens exactly at the bound?"
        yield _end(node.left), _start(node.comparators[0]), _swapped(sign, other), "bound", hint
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant):
        yield _start(node), _start(node.operand), lambda text: "", "sign-lost", "Which sign should it have?"
    if isinstance(node, ast.If) and all(isinstance(one, ast.Raise) for one in node.body):
        hint = "Which arguments make no sense, and what should happen then?"
        yield _start(node.test), _end(node.test), lambda text: "False", "unchecked", hint
    if isinstance(node, ast.Call):
        yield from _of_call(node)
        yield from _of_callback(node, function)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for argument in function.arguments:
            if argument.name == node.id and argument.kind in ("number", "whole"):
                hint = f"What is {argument.name} for? Try two different ones."
                yield (
                    _start(node),
                    _end(node),
                    lambda text: "1",
                    f"{argument.name.replace('_', '-')}-ignored".lower(),
                    hint,
                )


def _of_call(node: ast.Call) -> Iterator[Change]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES:
        other, hint = NAMES[name]
        end = _end(node.func)
        yield (end[0], end[1] - len(name)), end, lambda text: other, f"{other}-for-{name}", hint
    if name in DROPPED and len(node.args) == 1 and not node.keywords:
        inner = ast.unparse(node.args[0])
        yield (
            _start(node),
            _end(node),
            lambda text: f"({inner})",
            f"without-{name}",
            "Is a step of the formula missing?",
        )
    for keyword in node.keywords:
        if keyword.arg in ("axis", "dim"):
            hint = "Along which axis should that be?"
            value = keyword.value
            yield _start(value), _end(value), lambda text: "0" if text.strip() != "0" else "-1", "another-axis", hint
        if keyword.arg in ("keepdims", "keepdim"):
            value = keyword.value
            yield (
                _start(value),
                _end(value),
                lambda text: "False",
                "axis-lost",
                "What shape has each of the two operands?",
            )


def _of_callback(node: ast.Call, function: Function) -> Iterator[Change]:
    """The first two arguments of a function that is an argument, exchanged."""
    called = [one for one in function.arguments if one.kind == "function" and one.name == getattr(node.func, "id", "")]
    if called and len(node.args) == 2 and not any(isinstance(one, ast.Starred) for one in node.args):
        first, second = map(ast.unparse, node.args)
        hint = f"Which of its arguments does {called[0].name} take first?"
        yield _start(node.args[0]), _end(node.args[1]), lambda text: f"{second}, {first}", EXCHANGED, hint


def _swapped(sign: str, other: str) -> Callable[[str], str]:
    return lambda text: text.replace(sign, other, 1)


def _start(node: ast.AST) -> Place:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _end(node: ast.AST) -> Place:
    return getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0)


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
