"""Habits with tensors: dtypes, axes, sizes, arguments that are written into."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from autograder.authoring.exam.graded_text import Change, Edit, GradedText, called
from autograder.authoring.exam.habits.dialects import dialect_of

LIKE = {"zeros_like": "zeros", "ones_like": "ones"}
IN_PLACE = {ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_"}
OWN_METHODS = ("clamp", "exp", "log", "square", "sqrt", "abs", "masked_fill", "unsqueeze", "squeeze")
UFUNCS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}
TURNED = ("transpose", "swapaxes", "moveaxis", "rollaxis")
FILLED = ("zeros", "empty", "full", "zeros_like", "empty_like", "full_like")
KEPT = ("keepdim", "keepdims")
COPIES = {"torch": "clone", "numpy": "copy", "python": "copy"}
AUGMENTED = {ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.Div: "/="}
SIZES = ("2", "3", "4", "5")


def cast(graded: GradedText) -> Iterator[Change]:
    """`.float()` and its like, on what comes in and on what goes out."""
    casts = dialect_of(graded).casts
    for name in graded.tensors:
        optional = f"{name} if {name} is None else " if "None" in graded.parameters[name][0] else ""
        for other in casts:
            yield (graded.before(graded.body[0], f"{name} = {optional}{other.format(name, atom=name)}"),)
    for statement, _ in graded.statements:
        if not isinstance(statement, ast.Return) or statement.value is None:
            continue
        if graded.returns_tensor:
            for other in casts:
                value = other.format(graded.text(statement.value), atom=graded.atom(statement.value))
                yield (graded.replace(statement.value, value),)
        elif graded.returns_array:
            yield (graded.replace(statement.value, f"{graded.atom(statement.value)}.astype(np.float32)"),)


def dtype_dropped(graded: GradedText) -> Iterator[Change]:
    """A tensor made without a dtype, or only of another's shape."""
    for node in graded.nodes:
        if not isinstance(node, ast.Call):
            continue
        for keyword in node.keywords:
            if keyword.arg == "dtype":
                yield (_without_argument(graded, node, keyword),)
        if called(node) in LIKE and node.args:
            package = "np" if graded.values == "numpy" else "torch"
            yield (graded.replace(node, f"{package}.{LIKE[called(node)]}({graded.atom(node.args[0])}.shape)"),)
        if called(node) == "astype" and isinstance(node.func, ast.Attribute):
            yield (graded.replace(node, graded.text(node.func.value)),)


def in_place(graded: GradedText) -> Iterator[Change]:
    """Out-of-place arithmetic written into what it starts from."""
    of_arrays = graded.values == "numpy"
    for node in graded.nodes:
        if isinstance(node, ast.BinOp) and _is_name(node.left, graded.tensors) and type(node.op) in IN_PLACE:
            left, right = graded.text(node.left), graded.text(node.right)
            method = f"{left}.{IN_PLACE[type(node.op)]}({right})"
            function = f"np.{UFUNCS[type(node.op)]}({left}, {right}, out={left})"
            yield (graded.replace(node, function if of_arrays else method),)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and called(node) in OWN_METHODS:
            value = node.func.value
            if graded.values == "torch" and not _is_name(value, ["torch", "F"]) and isinstance(value, ast.Name):
                yield (graded.replace(node.func, f"{value.id}.{node.func.attr}_"),)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and _is_updated(node):
            sign = AUGMENTED[type(node.value.op)]
            text = f"{graded.text(node.targets[0])} {sign} {graded.text(node.value.right)}"
            yield (graded.replace(node, text),)


def not_cloned(graded: GradedText) -> Iterator[Change]:
    """The tensor itself where a clone of it is meant, the array where a copy is."""
    for node in graded.nodes:
        if called(node) != COPIES[graded.values] or not isinstance(node, ast.Call) or node.args:
            continue
        if isinstance(node.func, ast.Attribute):
            yield (graded.replace(node, graded.text(node.func.value)),)


def reshaped(graded: GradedText) -> Iterator[Change]:
    """`reshape` where axes change places, or the other way round; a row repeated where a table is."""
    if graded.values != "torch":
        yield from _reshaped_arrays(graded)
        return
    for node in graded.nodes:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
            continue
        name = called(node)
        if name in ("permute", "transpose", "movedim", "swapaxes") and isinstance(node.func, ast.Attribute):
            yield (graded.replace(node, f"{graded.text(node.func.value)}.reshape({graded.text(node)}.shape)"),)
        if name in ("reshape", "view", "flatten") and isinstance(node.func, ast.Attribute):
            yield (graded.replace(node.func, f"{graded.atom(node.func.value)}.transpose(0, -1).{name}"),)
        if name == "rearrange" and _reorders(node):
            yield (graded.replace(node, f"{graded.atom(node.args[0])}.reshape({graded.text(node)}.shape)"),)
        if name == "repeat" and isinstance(node.func, ast.Name):
            whole, once = graded.text(node), graded.atom(node.args[0])
            times = f"({whole}).numel() // {once}.numel()"
            yield (graded.replace(node, f"{once}.reshape(-1).tile({times}).reshape(({whole}).shape)"),)
            each = f"{once}.reshape(-1).repeat_interleave({times}).reshape(({whole}).shape)"
            yield (graded.replace(node, each),)


def _reshaped_arrays(graded: GradedText) -> Iterator[Change]:
    for node in graded.nodes:
        if isinstance(node, ast.Attribute) and node.attr == "T":
            yield (graded.replace(node, f"{graded.text(node.value)}.reshape({graded.text(node)}.shape)"),)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        is_function = ast.unparse(node.func.value) in ("np", "numpy")
        if is_function and not node.args:
            continue
        values = graded.atom(node.args[0] if is_function else node.func.value)
        if called(node) in TURNED:
            yield (graded.replace(node, f"{values}.reshape({graded.text(node)}.shape)"),)
        if called(node) in ("reshape", "ravel", "flatten") and not is_function:
            yield (graded.replace(node.func, f"{values}.swapaxes(0, -1).{called(node)}"),)


def axis_dropped(graded: GradedText) -> Iterator[Change]:
    """A reduction without `keepdim`, an axis of length one that is not added."""
    for node in graded.nodes:
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in KEPT:
                    yield (_without_argument(graded, node, keyword),)
            if called(node) in ("unsqueeze", "squeeze", "expand_dims") and isinstance(node.func, ast.Attribute):
                is_function = _is_name(node.func.value, ["np"]) and bool(node.args)
                yield (graded.replace(node, graded.text(node.args[0] if is_function else node.func.value)),)
        if isinstance(node, ast.Subscript) and re.search(r"\[(.*, *)?(None|np\.newaxis)\]$", graded.text(node)):
            yield (graded.replace(node, graded.text(node.value)),)


def array_of_integers(graded: GradedText) -> Iterator[Change]:
    """An array of whole numbers to put fractions into."""
    for node in graded.nodes if graded.values == "numpy" else ():
        if not isinstance(node, ast.Call) or called(node) not in FILLED or not node.args:
            continue
        if "dtype" not in [one.arg for one in node.keywords]:
            yield (graded.replace(node, f"{graded.text(node)[:-1]}, dtype=int)"),)


def size_written_in(graded: GradedText) -> Iterator[Change]:
    """A number where a size is asked for; the size that the first row or column has."""
    for node in graded.nodes:
        of_shape = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute)
        if called(node) == "len" or (of_shape and node.value.attr == "shape"):  # type: ignore[attr-defined]
            for size in SIZES:
                yield (graded.replace(node, size),)
        if _is_greatest_of_all(node):
            values = graded.atom(node.func.value)  # type: ignore[attr-defined]
            yield (graded.replace(node, f"{values}[0].max()"),)
            yield (graded.replace(node, f"{values}[..., 0].max()"),)


def _is_greatest_of_all(node: ast.AST) -> bool:
    """Whether it is `x.max()`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr == "max" and not node.args and not node.keywords


def _is_name(node: ast.AST, names: list[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _is_updated(node: ast.Assign) -> bool:
    """Whether it is `x = x + y`."""
    value = node.value
    assert isinstance(value, ast.BinOp)
    return type(value.op) in AUGMENTED and ast.unparse(value.left) == ast.unparse(node.targets[0])


def _without_argument(graded: GradedText, node: ast.Call, keyword: ast.keyword) -> Edit:
    """A call without one of its keyword arguments, and without the comma that parts it from another."""
    others = [graded.text(one) for one in (*node.args, *node.keywords) if one is not keyword]
    return graded.replace(node, f"{graded.text(node.func)}({', '.join(others)})")


def _reorders(node: ast.Call) -> bool:
    """Whether an einops pattern puts an axis before one that it came after."""
    pattern = next((one.value for one in node.args if isinstance(one, ast.Constant)), "")
    before, _, after = str(pattern).partition("->")
    named = re.findall(r"[a-z]\w*", after)
    return [name for name in re.findall(r"[a-z]\w*", before) if name in named] != named
