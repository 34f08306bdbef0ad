"""Habits of arithmetic: guards "for stability", nearly equal for equal, one-pass variance, truncation."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import product

from autograder.authoring.exam.graded_text import Change, GradedText, called, names_in
from autograder.authoring.exam.habits.dialects import dialect_of

BOUNDS = (("-10", "10"), ("-20", "20"))
UNDEFINED = re.compile(r"\bnan\b|\binf|\bfinite|not a number|undefined", re.IGNORECASE)
LOGARITHMS = ("log", "log_softmax")
TRUNCATED = ("float", "item")


def clamped(graded: GradedText) -> Iterator[Change]:
    """`exp` of what is kept within bounds, logarithms and denominators kept from the extreme."""
    said = dialect_of(graded)

    def above(node: ast.expr, low: str) -> Change:
        return (graded.replace(node, said.above.format(graded.text(node), atom=graded.atom(node), low=low)),)

    for node in graded.nodes:
        if called(node) == "exp":
            for inside, (low, high) in product(_argument(node), BOUNDS if graded.values == "torch" else BOUNDS[:1]):
                kept = said.within.format(graded.text(inside), atom=graded.atom(inside), low=low, high=high)
                yield (graded.replace(inside, kept),)
        if isinstance(node, ast.Call) and called(node) in LOGARITHMS:
            yield above(node, "-20")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _may_vanish(graded, node.right):
            yield above(node.right, "1e-3")


def constant_in_logarithm(graded: GradedText) -> Iterator[Change]:
    """A small constant under a logarithm, the softmax taken apart for it."""
    for node in graded.nodes:
        if called(node) == "log":
            for inside in _argument(node):
                yield (graded.replace(inside, f"({graded.text(inside)} + 1e-8)"),)
        if called(node) == "log_softmax" and isinstance(node, ast.Call):
            given = ", ".join(graded.text(one) for one in (*node.args, *node.keywords))
            yield (graded.replace(node, f"torch.log(torch.softmax({given}) + 1e-8)"),)


def nan_to_num(graded: GradedText) -> Iterator[Change]:
    """Not-a-number and infinity replaced: in a quotient, an exponential, a result. Of arrays, if these are told of."""
    replaced = dialect_of(graded).no_nan if graded.values == "torch" or UNDEFINED.search(graded.docstring) else ""
    for node in graded.nodes if replaced else ():
        quotient = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_tensor(node.right)
        if quotient or called(node) == "exp":
            yield (graded.replace(node, replaced.format(graded.text(node))),)
    for result in _results(graded) if replaced else ():
        yield (graded.replace(result, replaced.format(graded.text(result))),)


def isclose_for_equal(graded: GradedText) -> Iterator[Change]:
    """Nearly equal where equal is meant."""
    for node in graded.nodes:
        if not isinstance(node, ast.Compare) or isinstance(node.comparators[0], ast.Constant | ast.Tuple):
            continue
        if graded.values != "torch" and any(graded.said.get(name, "").startswith("int") for name in names_in(node)):
            continue  # whole numbers that are close are equal
        left, right = graded.text(node.left), graded.text(node.comparators[0])
        near = dialect_of(graded).close.format(left, right, atom1=graded.atom(node.comparators[0]))
        if isinstance(node.ops[0], ast.Eq):
            yield (graded.replace(node, near),)
        if isinstance(node.ops[0], ast.NotEq):
            negation = "not " if graded.values == "python" else "~"
            yield (graded.replace(node, f"{negation}{near}"),)


def one_pass_variance(graded: GradedText) -> Iterator[Change]:
    """The mean of the squares less the square of the mean."""
    for node in graded.nodes:
        if called(node) in ("std", "var") and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            one_pass = _one_pass_of_array if graded.values == "numpy" else _one_pass
            yield (graded.replace(node, one_pass(graded, node, node.func)),)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield from _one_pass_expectation(graded, node)


def truncated(graded: GradedText) -> Iterator[Change]:
    """Whole numbers where fractions are meant."""
    for node in graded.nodes:
        if called(node) in TRUNCATED:
            yield (graded.replace(node, f"int({graded.text(node)})"),)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            yield (graded.replace(node, f"{_numerator(graded, node.left)} // {graded.atom(node.right)}"),)
    for name in graded.tensors:
        optional = f"{name} if {name} is None else " if "None" in graded.parameters[name][0] else ""
        whole = dialect_of(graded).truncated.format(name, atom=name)
        yield (graded.before(graded.body[0], f"{name} = {optional}{whole}"),)
    for name in (name for name, (kind, _) in graded.parameters.items() if kind == "float"):
        yield (graded.before(graded.body[0], f"{name} = int({name})"),)


def _numerator(graded: GradedText, node: ast.expr) -> str:
    """Its text, with the brackets that a sum stands in."""
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub)
    return graded.atom(node) if is_sum else graded.text(node)


def _argument(node: ast.AST) -> list[ast.expr]:
    """What a function of one tensor is applied to, called as `torch.exp(x)` or as `x.exp()`."""
    assert isinstance(node, ast.Call)
    if node.args:
        return node.args[:1]
    return [node.func.value] if isinstance(node.func, ast.Attribute) else []


def _is_tensor(node: ast.expr) -> bool:
    """Whether a denominator is computed from tensors, as far as its text shows."""
    reductions = any(called(one) in ("std", "var", "sum", "mean", "exp", "sqrt") for one in ast.walk(node))
    return reductions and called(node) != "clamp"


def _may_vanish(graded: GradedText, node: ast.expr) -> bool:
    """Whether it is a denominator that students keep from 0; of arrays a spread or mean: sums are of weights."""
    if graded.values == "torch":
        return _is_tensor(node)
    return any(called(one) in ("std", "var", "mean", "norm") for one in ast.walk(node))


def _results(graded: GradedText) -> Iterator[ast.expr]:
    """What a function that returns a tensor or an array returns."""
    if graded.returns_tensor or graded.returns_array:
        for statement, _ in graded.statements:
            if isinstance(statement, ast.Return) and statement.value is not None:
                yield statement.value


def _one_pass(graded: GradedText, node: ast.Call, function: ast.Attribute) -> str:
    """A sample's variance of one pass; population's where the call says so."""
    given = {one.arg: graded.text(one.value) for one in node.keywords}
    correction = given.pop("correction", "1")
    options = ", ".join([*map(graded.text, node.args), *(f"{name}={value}" for name, value in given.items())])
    values = graded.atom(function.value)
    count = f"{values}.shape[{given.get('dim', '-1')}]"
    spread = f"({values}.square().mean({options}) - {values}.mean({options}).square()).clamp(min=0)"
    variance = f"({spread} * {count} / ({count} - ({correction})))"
    return f"{variance}.sqrt()" if function.attr == "std" else variance


def _one_pass_of_array(graded: GradedText, node: ast.Call, function: ast.Attribute) -> str:
    """The same of an array, whose variance is the population's unless `ddof` says more."""
    given = {one.arg: graded.text(one.value) for one in node.keywords}
    fewer = given.pop("ddof", "0")
    positions = list(map(graded.text, node.args))
    is_function = ast.unparse(function.value) in ("np", "numpy")  # np.std(x, …); else x.std(…)
    values = f"({positions.pop(0)})" if is_function and positions else graded.atom(function.value)
    options = ", ".join([*positions, *(f"{name}={value}" for name, value in given.items())])
    axis = given.get("axis", positions[0] if positions else "None")
    variance = f"np.maximum(({values} ** 2).mean({options}) - {values}.mean({options}) ** 2, 0)"
    if fewer != "0":
        count = f"{values}.size" if axis == "None" else f"{values}.shape[{axis}]"
        variance = f"({variance} * {count} / ({count} - {fewer}))"
    return f"np.sqrt({variance})" if function.attr == "std" else variance


def another_ddof(graded: GradedText) -> Iterator[Change]:
    """The sample's spread for the population's, and the other way round."""
    for node in graded.nodes if graded.values == "numpy" else ():
        if called(node) not in ("std", "var") or not isinstance(node, ast.Call):
            continue
        listed = [graded.text(one) for one in (*node.args, *node.keywords) if getattr(one, "arg", "") != "ddof"]
        listed += ["ddof=1"] if len(listed) == len([*node.args, *node.keywords]) else []
        yield (graded.replace(node, f"{graded.text(node.func)}({', '.join(listed)})"),)


def _one_pass_expectation(graded: GradedText, node: ast.BinOp) -> Iterator[Change]:
    """`probs @ (x - mean).square()` as the expected square less the square of the mean."""
    for one in ast.walk(node):
        if called(one) != "square" or not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
            continue
        apart = one.func.value
        if not isinstance(apart, ast.BinOp) or not isinstance(apart.op, ast.Sub):
            continue
        mean = apart.right.value if isinstance(apart.right, ast.Subscript) else apart.right
        whole, inside = graded.text(node), graded.text(apart)
        assert whole.count(f"({inside})") == 1
        squares = whole.replace(f"({inside})", graded.atom(apart.left))
        total = ".sum()" if ".sum(" in whole else ""
        yield (graded.replace(node, f"({squares} - {graded.atom(mean)}.square(){total})"),)
