"""Habits with models: their mode around a call, graphs cut or kept, calls too many or too few."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.authoring.exam.graded_text import Change, Edit, GradedText, called, names_in

MODES = (  # above and below the statement that calls the model
    ("{0}.eval()", "{0}.train()"),
    ("{0}.eval()", ""),
    ("{0}.train()", ""),
    ("was_training = {0}.training; {0}.eval()", "{0}.train(was_training)"),
    ("was_training = {0}.training; {0}.train()", "{0}.train(was_training)"),
)


def mode_around_call(graded: GradedText) -> Iterator[Change]:
    """`eval()` before a call of a model, `train()` after it, and their variants."""
    for statement, model in _model_calls(graded):
        for above, below in MODES:
            yield (
                graded.before(statement, above.format(model)),
                *([graded.after(statement, below.format(model))] if below and _goes_on(statement) else []),
            )


def detach_for_no_grad(graded: GradedText) -> Iterator[Change]:
    """Results detached in place of computing them under `no_grad`; neither of the two."""
    for statement, _ in graded.statements:
        if isinstance(statement, ast.With) and "no_grad" in graded.text(statement.items[0].context_expr):
            above = Edit(graded.span(statement)[0], graded.span(statement.items[0].context_expr)[1], "if True")
            calls = [_value(one) for one in ast.walk(statement) if isinstance(one, ast.Assign | ast.Return)]
            detached = [graded.replace(one, f"{graded.text(one)}.detach()") for one in calls if called(one)]
            yield (above, *detached)
            yield (above,)


def detach_dropped(graded: GradedText) -> Iterator[Change]:
    """A tensor with its graph where one without is meant."""
    for node in graded.nodes:
        if called(node) == "detach" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield (graded.replace(node, graded.text(node.func.value)),)


def detached(graded: GradedText) -> Iterator[Change]:
    """A parameter without its graph where the result is differentiable in it."""
    rows = [line for line in graded.docstring.splitlines() if "differentiable in it" in line]
    for name in (name for name in graded.tensors if any(line.split()[0] == name for line in rows)):
        optional = f"{name} if {name} is None else " if "None" in graded.parameters[name][0] else ""
        yield (graded.before(graded.body[0], f"{name} = {optional}{name}.detach()"),)


def calls_remembered(graded: GradedText) -> Iterator[Change]:
    """A function that was given asked once for equal arguments; a result of the first round kept for all."""
    given = [name for name, (kind, _) in graded.parameters.items() if "Tensor" not in kind]
    loops = [node for node in graded.nodes if isinstance(node, ast.For | ast.ListComp | ast.GeneratorExp)]
    used = {called(node) for loop in loops for node in ast.walk(loop)}
    calls = [node for node in graded.nodes if isinstance(node, ast.Call)]
    handed = {one.id for node in calls for one in node.args if isinstance(one, ast.Name)}
    functions = [name for name in given if name in used or (name in handed and name.endswith("_fn"))]
    for name in functions:
        yield (graded.before(graded.body[0], *_remembering(name)),)
    for statement, around in graded.statements:
        if around and isinstance(statement, ast.Assign) and _is_by_name(statement.value):
            yield _kept(graded, statement)


def second_pass(graded: GradedText) -> Iterator[Change]:
    """A model called twice for what one call gives."""
    for statement, _ in _model_calls(graded):
        if isinstance(statement, ast.Assign):
            yield (graded.before(statement, *graded.text(statement).splitlines()),)
    calls = {ast.unparse(one.targets[0]): one for one, _ in graded.statements if isinstance(one, ast.Assign)}
    for node in graded.nodes:
        if called(node) == "detach" and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            source = calls.get(ast.unparse(node.func.value))
            if source is not None and names_in(source.value) & set(graded.models):
                yield (graded.replace(node, f"{' '.join(ast.unparse(source.value).split())}.detach()"),)


def _model_calls(graded: GradedText) -> list[tuple[ast.stmt, str]]:
    """Statements that call a model or hand it to a function that may, with its name."""
    found: list[tuple[ast.stmt, str]] = []
    for statement, _ in graded.statements:
        if isinstance(statement, ast.Assign | ast.Return | ast.Expr) and statement.value is not None:
            found += [(statement, name) for name in graded.models if _is_called(statement.value, name)]
    return found


def _is_called(value: ast.expr, model: str) -> bool:
    """Whether an expression calls that model, or a function with it as an argument; copies and runs are no calls."""
    for node in ast.walk(value):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = {one.id for one in node.args if isinstance(one, ast.Name)}
            if node.func.id == model or (model in arguments and not node.func.id[0].isupper()):
                return True
    return False


def _goes_on(statement: ast.stmt) -> bool:
    return not isinstance(statement, ast.Return)


def _value(node: ast.Assign | ast.Return) -> ast.expr:
    assert node.value is not None
    return node.value


def _is_by_name(node: ast.AST) -> bool:
    """Whether it calls a function by its bare name."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _remembering(name: str) -> tuple[str, ...]:
    """Lines after which the function of that name answers equal arguments from memory."""
    return (
        f"def remembered(*given, ask={name}, answers={{}}):",
        "    answers[repr(given)] = answers[repr(given)] if repr(given) in answers else ask(*given)",
        "    return answers[repr(given)]",
        f"{name} = remembered",
    )


def _kept(graded: GradedText, statement: ast.Assign) -> Change:
    """A result of a loop's first round, kept in a dictionary that the function starts with."""
    name = graded.text(statement.targets[0])
    value = f"kept[{name!r}] if {name!r} in kept else kept.setdefault({name!r}, {graded.text(statement.value)})"
    return (graded.before(graded.body[0], "kept = {}"), graded.replace(statement.value, value))
