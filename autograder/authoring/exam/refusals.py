"""What a solution refuses: texts of exceptions that no case reads, and cases that need no check.

`np.convolve(values, [])` raises ValueError by itself: where a case asks for just that, who checks nothing is right.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from autograder.authoring.exam.findings import Fate
from autograder.grading.cases import Case
from autograder.vocabulary.report import Report

UNGRADED = "it is the text of an exception, of which no case grades a word"
REFUSAL = "ValueError"
DECLARED = "call"  # the probe of declared cases, of which an exception is always the function's own
REMEDY = "Let it be called with what nothing refuses where nothing is checked"


# Texts


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


# Checks


@dataclass(frozen=True)
class Accident:
    """A case that the solution passes without its checks; `whole` where its item has no other that it fails."""

    case: str
    item: str
    whole: bool

    def __str__(self) -> str:
        """What to say of it."""
        if self.whole:
            return (
                f"{self.item} asks for no check: the solution without a single `raise` earns it all, since what it "
                f"calls refuses the same. {REMEDY}."
            )
        return f"{self.case} asks for no check: without one, what the solution calls refuses the same. {REMEDY}."


def unchecked(text: str) -> str:
    """The text with `pass` in place of each exception that it raises."""
    return ast.unparse(_Unchecked().visit(ast.parse(text)))


def refusals(solution: str, cases: Iterable[Case]) -> list[Case]:
    """The cases that ask for an exception of the function's own: of a type that the solution raises, or declared."""
    nodes = [node for node in ast.walk(ast.parse(solution)) if isinstance(node, ast.Raise)]
    raised = {ast.unparse(node.exc).partition("(")[0] for node in nodes if node.exc is not None}
    return [
        case
        for case in cases
        for kinds in [[one.value["type"] for one in case.expected if one.kind == "error"]]
        if kinds and (case.probe == DECLARED or raised & {*kinds})
    ]


def accidents(report: Report, asked: Sequence[Case]) -> list[Accident]:
    """Of these cases those that the solution without its checks passes, as its report says; an item's as one."""
    of = {case.id: case.item for case in asked}
    found = []
    for item in report.items:
        passed = [case.case for case in item.cases if case.case in of and case.verdict == "passed"]
        if passed and item.verdict == "passed":
            found.append(Accident(passed[0], item.item, whole=True))
        else:
            found += [Accident(case, item.item, whole=False) for case in passed]
    return found


class _Unchecked(ast.NodeTransformer):
    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        return ast.copy_location(ast.Pass(), node) if node.exc is not None else node
