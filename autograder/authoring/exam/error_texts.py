"""Changes of nothing but the text of an exception: no fault where no case grades a word of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import replace

from autograder.authoring.exam.findings import Fate
from autograder.grading.cases import Case

UNGRADED = "it is the text of an exception, of which no case grades a word"


def excused(fate: Fate, solution: str, read: Collection[str]) -> Fate:
    """The fate, with a reason where it changed nothing but the text of an error that no case reads."""
    mutant = fate.mutant
    if not fate.is_open or mutant.function in read or not differ_in_error_texts_alone(solution, mutant.source):
        return fate
    return replace(fate, mutant=replace(mutant, reason=UNGRADED))


def functions_whose_errors_are_read(cases: Iterable[Case]) -> frozenset[str]:
    """The functions of which some case asks that the text of an exception mention something."""
    return frozenset(
        case.function
        for case in cases
        if any(one.kind == "error" and one.value.get("mentions") for one in case.expected)
    )


def differ_in_error_texts_alone(one: str, other: str) -> bool:
    """Whether the two texts are the same but for what their exceptions are made with."""
    return _without_texts(one) == _without_texts(other)


def _without_texts(text: str) -> str:
    return ast.dump(_Wordless().visit(ast.parse(text)))


class _Wordless(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            node.exc = node.exc.func
        return node
