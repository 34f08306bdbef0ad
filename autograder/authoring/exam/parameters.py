"""Mutants of a function's parameters: ignored, of other names or defaults, tested with `> 0` for "is not 0"."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.authoring.exam.graded_text import Change, Edit, GradedText

NUMBERS = {"int": ("1", "2", "3"), "float": ("0.0", "0.2", "1.0")}  # one of which a student might write in
QUOTES = ('"', "'")
ARRAYS = ("float[", "int[")
POSITIVE = {ast.NotEq: ">", ast.Eq: "<="}


def parameter_changes(graded: GradedText) -> Iterator[tuple[str, Change]]:
    """Each change with the name of what is done to which parameter, `epsilon-ignored`, or to all: `names-changed`."""
    if named := [*graded.node.args.args, *graded.node.args.kwonlyargs]:
        yield "names-changed", tuple(_other_names(graded, named))
    for name, (annotated, default) in graded.parameters.items():
        said = graded.said.get(name, "")
        annotation = said if "ndarray" in annotated and said.startswith(ARRAYS) else annotated or said
        for value in _constants(graded, name, annotation, default):
            yield f"{name}-ignored", (graded.before(graded.body[0], f"{name} = {value}"),)
        for value in _other_defaults(graded, annotation, default):
            assert default is not None
            yield f"{name}-default", (graded.replace(default, value),)
        if "Tensor" not in annotation:
            yield from _tested_above_0(graded, name)


def _other_names(graded: GradedText, listed: list[ast.arg]) -> Iterator[Edit]:
    """Parameters under names of the student's own, which no caller who goes by the handout knows."""
    for one in listed:
        yield graded.replace(one, graded.text(one).replace(one.arg, f"my_{one.arg}", 1))
    names = ", ".join(one.arg for one in listed)
    yield graded.before(graded.body[0], f"{names} = {', '.join(f'my_{one.arg}' for one in listed)}")


def _constants(graded: GradedText, name: str, annotation: str, default: ast.expr | None) -> list[str]:
    """What a function that ignores the parameter would take in its place."""
    if default is not None:
        return [graded.text(default)]
    if annotation == "str" or annotation.startswith(QUOTES):  # `"up" or "down"`, as a docstring says it
        return [repr(value) for value in sorted(words_compared(graded.node).get(name, ()))]
    if annotation == "Tensor":
        return [f"torch.zeros_like({name})", f"torch.ones_like({name})"]
    if annotation.startswith(ARRAYS):  # as a docstring says it
        return [f"0 * {name}", f"0 * {name} + 1"]
    return list(NUMBERS.get(annotation, ()))


def _other_defaults(graded: GradedText, annotation: str, default: ast.expr | None) -> list[str]:
    if isinstance(default, ast.Constant):
        return _other_constants(graded, annotation, default.value)
    if not isinstance(default, ast.Name):
        return []
    if annotation in NUMBERS:
        return [f"{default.id} + 1"]
    if annotation.startswith(("list", "tuple", "Sequence")):
        return [f"{default.id}[:1]"]
    return ["lambda *given, **named: 0.0"]  # a function, whatever it is called with


def _other_constants(graded: GradedText, annotation: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [repr(not value)]
    if isinstance(value, int):
        return [repr(value + 1)]
    if isinstance(value, float):
        return [repr(2 * value or 0.1)]
    if isinstance(value, str):
        return [repr(other) for other in _alternatives(graded.module, value)]
    return ["8"] if annotation.startswith("int") else []


def _alternatives(module: ast.Module, value: str) -> list[str]:
    """The other words that a parameter which can be `value` is compared with somewhere in the module."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    groups = [words for function in functions for words in words_compared(function).values() if value in words]
    return sorted({word for words in groups for word in words} - {value})


def words_compared(function: ast.FunctionDef) -> dict[str, set[str]]:
    """Each name of a function that is compared with words, and the words."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            constants = [one for right in node.comparators for one in ast.walk(right) if isinstance(one, ast.Constant)]
            words = {one.value for one in constants if isinstance(one.value, str)}
            found.setdefault(node.left.id, set()).update(words)
    return found


def _tested_above_0(graded: GradedText, name: str) -> Iterator[tuple[str, Change]]:
    for node in graded.nodes:
        if not isinstance(node, ast.Compare) or not isinstance(node.left, ast.Name) or node.left.id != name:
            continue
        sign, right = POSITIVE.get(type(node.ops[0])), node.comparators[0]
        if sign is not None and isinstance(right, ast.Constant) and right.value == 0 and right.value is not False:
            yield f"{name}-above-0", (graded.replace(node, f"{name} {sign} {graded.text(right)}"),)
