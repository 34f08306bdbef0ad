"""A solution without its own checks: what it refuses still is refused by accident, and would grade nobody's check."""

from __future__ import annotations

import ast

REFUSAL = "ValueError"


def unchecked(text: str) -> str:
    """The text with `pass` in place of each `raise ValueError`."""
    return ast.unparse(_Unchecked().visit(ast.parse(text)))


class _Unchecked(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        said = ast.unparse(node.exc) if node.exc is not None else ""
        return ast.copy_location(ast.Pass(), node) if REFUSAL in said else node
