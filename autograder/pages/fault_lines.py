"""Known mistakes → the expression that each differs in from a right answer, to find it in a student's function.

Only what is certain is found: an expression that a right answer lacks, and that stands in the student's function once.
"""

from __future__ import annotations

import ast
import copy
import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from autograder.authoring.fixtures.regenerate import package_of
from autograder.grading.items import load_assignment
from autograder.sandbox.interpreter import run_in_subprocess
from autograder.submissions.submission import UNPARSABLE

TOO_LITTLE = (ast.Name, ast.Constant, ast.UnaryOp)  # stands anywhere, and means nothing by itself
MOST_NODES, MOST_CHARACTERS = 1_500, 10_000  # of a function that is searched
REDUCTIONS = frozenset(("mean", "std", "var", "sum", "prod", "amax", "amin", "logsumexp", "softmax", "log_softmax"))
CORRECTION = {"True": ast.Constant(1), "False": ast.Constant(0)}

Known = Mapping[tuple[str, str], tuple[str, str]]


def known_texts(folder: Path) -> Known:
    """(function, slug) → a right text and the wrong one; {} where there is no catalogue that can be read.

    folder   the assignment's fixtures: its catalogue is imported in a process of its own
    """
    if not (folder / "mistakes").is_dir() and not (folder / "mistakes.py").is_file():
        return {}
    try:
        rows = run_in_subprocess(_catalogue, folder)
    except Exception:  # whatever is wrong with a catalogue keeps no page from being made
        return {}
    return {(function, slug): (right, wrong) for function, slug, right, wrong in rows if right}


def _catalogue(folder: Path) -> list[tuple[str, str, str, str]]:
    module = importlib.import_module(f"{package_of(load_assignment(folder))}.mistakes")
    return [(one.function, one.slug, one.correct, one.source) for one in module.MISTAKES]


@lru_cache(maxsize=1_000)
def wrong_expressions(right: str, wrong: str) -> tuple[str, ...]:
    """What stands in the wrong text alone, around the one place in which both differ, smallest first.

    () where they differ in more than an expression.
    """
    trees = spelled(ast.parse(right)), spelled(ast.parse(wrong))
    known = {expression for expression, _ in _expressions(trees[0])}
    chain = [ast.dump(node) for node in _chain(*trees) if _says_something(node)]
    return tuple(one for one in reversed(chain) if one not in known)


def certain_line(text: str, name: str, slugs: Iterable[str], known: Known) -> int | None:
    """The one line of a student's function that holds what these mistakes are known by; None where that is unclear."""
    wanted = [texts for slug in slugs if (texts := wrong_expressions(*known.get((name, slug), ("", ""))))]
    if not wanted or len(text) > MOST_CHARACTERS:
        return None
    try:
        function = ast.parse(text)
        if sum(1 for _ in ast.walk(function)) > MOST_NODES:
            return None
        found = list(_expressions(spelled(function)))
    except UNPARSABLE:  # ValueError: a number of more digits than Python writes out
        return None
    lines = {line for expressions in wanted if (line := _line_of(found, expressions)) is not None}
    return lines.pop() if len(lines) == 1 else None


def _line_of(found: Sequence[tuple[str, int]], expressions: Sequence[str]) -> int | None:
    """The line of the first of these expressions that there is, if it is there once."""
    for wanted in expressions:
        lines = [line for expression, line in found if expression == wanted]
        if lines:
            return lines[0] if len(lines) == 1 else None
    return None


def _chain(right: ast.AST, wrong: ast.AST) -> Iterator[ast.AST]:
    """The nodes of the wrong tree from its root down to the one in which all that differs lies."""
    yield wrong
    ours, theirs = list(ast.iter_child_nodes(right)), list(ast.iter_child_nodes(wrong))
    if type(right) is not type(wrong) or len(ours) != len(theirs):
        return
    differing = [pair for pair in zip(ours, theirs, strict=True) if ast.dump(pair[0]) != ast.dump(pair[1])]
    if len(differing) == 1:
        yield from _chain(*differing[0])


def _says_something(node: ast.AST) -> bool:
    return isinstance(node, ast.expr) and not isinstance(node, TOO_LITTLE)


def _expressions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    return (
        (ast.dump(node), node.lineno) for node in ast.walk(tree) if isinstance(node, ast.expr) and _says_something(node)
    )


def spelled(tree: ast.AST) -> ast.AST:
    """A copy with one spelling of `x.std(-1, unbiased=False)` and `x.std(dim=-1, correction=0)`."""
    copied: ast.AST = _Spelling().visit(copy.deepcopy(tree))
    return copied


class _Spelling(ast.NodeTransformer):
    """One spelling of calls: an axis by name, keywords in order, `correction` in place of `unbiased`."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in REDUCTIONS and len(node.args) == 1:
            if not any(keyword.arg == "dim" for keyword in node.keywords) and not isinstance(node.args[0], ast.Starred):
                node.keywords.append(ast.keyword("dim", node.args.pop()))
            node.keywords = list(map(_plain, node.keywords))
        node.keywords.sort(key=lambda keyword: keyword.arg or "")
        return node


def _plain(keyword: ast.keyword) -> ast.keyword:
    value = CORRECTION.get(ast.unparse(keyword.value)) if keyword.arg == "unbiased" else None
    return keyword if value is None else ast.keyword("correction", value)
