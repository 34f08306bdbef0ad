"""Habits of training: another optimizer, a schedule, gradients clipped or cleared elsewhere, loops that stop early."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from autograder.authoring.exam.graded_text import Change, GradedText, called, names_in

OPTIMIZERS = ("Adam", "AdamW", "SGD", "RMSprop")
DECAY = "for group in {0}.param_groups: group['lr'] *= {1}"


def another_optimizer(graded: GradedText) -> Iterator[Change]:
    """The optimizer of another name, or with another option."""
    for node in graded.nodes:
        if called(node) in OPTIMIZERS and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            for other in OPTIMIZERS:
                if other != node.func.attr:
                    yield (graded.replace(node.func, f"{graded.text(node.func.value)}.{other}"),)
            text = graded.text(node)
            for option in ("weight_decay=0.01", "betas=(0.9, 0.95)", "eps=1e-5"):
                yield (graded.replace(node, f"{text[:-1]}, {option})"),)


def optimizer_anew(graded: GradedText) -> Iterator[Change]:
    """An optimizer made in each round of a loop; another of its kind in place of the one that was given."""
    loops = [one for one, _ in graded.statements if isinstance(one, ast.For)]
    for statement in _made_optimizers(graded):
        for loop in loops:
            yield (graded.before(loop.body[0], *graded.text(statement).splitlines()),)
    for optimizer, model in _given_optimizers(graded):
        anew = f"type({optimizer})({model}.parameters(), lr={optimizer}.param_groups[0]['lr'])"
        yield (graded.before(graded.body[0], f"{optimizer} = {anew}"),)


def learning_rate_schedule(graded: GradedText) -> Iterator[Change]:
    """A learning rate that falls: after each step of the optimizer, or at the end of each round."""
    for statement in _calls(graded, "step"):
        yield (graded.after(statement, DECAY.format(_owner(statement), 0.9)),)
    loops = [one for one, outer in graded.statements if isinstance(one, ast.For) and not outer]
    for made in _made_optimizers(graded):
        for loop in loops:
            yield (graded.after(loop.body[-1], DECAY.format(graded.text(made.targets[0]), 0.8)),)


def gradients_clipped(graded: GradedText) -> Iterator[Change]:
    """Gradients clipped where nothing says so, or otherwise, or not at all where something does."""
    clips = [one for one, _ in graded.statements if isinstance(one, ast.Expr) and "clip_grad" in called(one.value)]
    for statement in clips:
        yield (graded.without(statement),)
        yield (graded.replace(statement, graded.text(statement).replace("clip_grad_norm_", "clip_grad_value_")),)
    for statement in _calls(graded, "step"):
        for model in _trained(graded):
            for bound in () if clips else ("1.0", "0.1"):
                clip = f"torch.nn.utils.clip_grad_norm_({model}.parameters(), {bound})"
                yield (graded.before(statement, clip),)


def gradients_cleared_late(graded: GradedText) -> Iterator[Change]:
    """Gradients cleared after the step instead of before, or never, or the model's for the optimizer's."""
    for clearing in _calls(graded, "zero_grad"):
        for step in _calls(graded, "step"):
            yield (graded.without(clearing), graded.after(step, graded.text(clearing)))
        yield (graded.without(clearing),)
        for model in _trained(graded):
            yield (graded.replace(clearing, f"{model}.zero_grad()"),)


def stopped_early(graded: GradedText) -> Iterator[Change]:
    """A round left, or the training, where something is 0 everywhere or the same for each response."""
    if not _trains(graded):
        return
    returns = ast.unparse(graded.node.returns) if graded.node.returns is not None else ""
    for statement, loops in graded.statements:
        if not isinstance(statement, ast.Assign) or not _is_told(graded, statement):
            continue
        name = graded.text(statement.targets[0])
        if f"{name}.backward()" in graded.text(graded.node):
            continue  # a loss of exactly 0 says nothing of its gradient
        leave = ("continue", "break") if loops else ("return 0.0",) if returns == "float" else ()
        for away in leave:
            yield (graded.after(statement, f"if not {name}.any(): {away}"),)
            if not isinstance(getattr(statement.value, "func", None), ast.Attribute):
                yield (graded.after(statement, _leaving_agreement(name, away, graded)),)
    for name in (name for name, (kind, _) in graded.parameters.items() if kind == "Tensor"):
        if returns == "float":
            yield (graded.before(graded.body[0], _leaving_agreement(name, "return 0.0", graded)),)


def shallow_copy(graded: GradedText) -> Iterator[Change]:
    """A model shared, or copied without its parameters, where a deep copy is meant."""
    for node in graded.nodes:
        if called(node) == "deepcopy" and isinstance(node, ast.Call):
            yield (graded.replace(node, graded.text(node.args[0])),)
            yield (graded.replace(node.func, "copy.copy"),)


def _calls(graded: GradedText, method: str) -> list[ast.Expr]:
    """Statements that call a method of that name and do nothing else."""
    return [one for one, _ in graded.statements if isinstance(one, ast.Expr) and called(one.value) == method]


def _made_optimizers(graded: GradedText) -> list[ast.Assign]:
    return [one for one, _ in graded.statements if isinstance(one, ast.Assign) and called(one.value) in OPTIMIZERS]


def _owner(statement: ast.Expr) -> str:
    """Whose method a statement calls."""
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    return ast.unparse(statement.value.func.value)


def _given_optimizers(graded: GradedText) -> list[tuple[str, str]]:
    """Parameters that are optimizers, each with a parameter that is a model."""
    optimizers = [name for name, (kind, _) in graded.parameters.items() if "Optimizer" in kind]
    return [(one, model) for one in optimizers for model in graded.models if model in graded.parameters]


def _trained(graded: GradedText) -> list[str]:
    """Models that came with an optimizer, or that one is made for: not the copies of them."""
    made_for = {name for statement in _made_optimizers(graded) for name in names_in(statement.value)}
    return [name for name in graded.models if name in graded.parameters or name in made_for]


def _trains(graded: GradedText) -> bool:
    """Whether the function updates a model, or calls a graded function again and again."""
    if _calls(graded, "backward"):
        return True
    loops = [node for node in graded.nodes if isinstance(node, ast.For)]
    return any(called(node) in graded.graded for loop in loops for node in ast.walk(loop))


def _leaving_agreement(name: str, away: str, graded: GradedText) -> str:
    axes = "dim()" if graded.values == "torch" else "ndim"
    return f"if {name}.{axes} > 1 and ({name} == {name}[..., :1]).all(): {away}"


def _is_told(graded: GradedText, statement: ast.Assign) -> bool:
    """Whether a tensor is assigned that could say that there is nothing to learn: it comes from no model."""
    computed = isinstance(statement.value, ast.Call) and names_in(statement.value)
    calls = {called(node) for node in ast.walk(statement.value) if isinstance(node, ast.Call)}
    from_functions = {name for name in calls if name in graded.graded or name.startswith("score")}
    return bool(computed) and bool(from_functions) and not names_in(statement.value) & set(graded.models)
