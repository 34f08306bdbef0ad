"""First-order mutants of a solution: one thing in one of its functions is changed, and points must be lost.

Three families: what becomes of each parameter, the habits of students, and mutmut's operators. The lines at which some
leave a function what it is are marked in the solution, each with the reason.
"""

from __future__ import annotations

import difflib
import importlib.util
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autograder.authoring.catalogue import marks
from autograder.authoring.exam.habits import graded_texts, habit_changes, parameter_changes

NEXT_LINE = " ⏎ "
MOST_LINES = 6
Family = Literal["parameter", "habit", "operator"]


@dataclass(frozen=True)
class Mutant:
    """The solution with one change: the changed lines of `function` before and after, without indentation and comment.

    slug     what is done: `epsilon-ignored`, the name of a habit; "" of mutmut's operators
    reason   why it may be the same function still, as its line is marked; "" where nothing says so
    line     of the solution, the first that is changed
    """

    family: Family
    slug: str
    function: str
    source: str
    before: str
    after: str
    reason: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """What clauses and costs call it: `habit:isclose-for-eq`."""
        return f"{self.family}:{self.slug}" if self.slug else self.family


def can_mutate() -> bool:
    """Whether mutmut is installed; it comes with the extra `test`."""
    return importlib.util.find_spec("mutmut") is not None


def mutants_of(solution: str, functions: Sequence[str], *, operators: bool = True) -> list[Mutant]:
    """Every mutant of these functions, each text once, with the reason that its line is marked with.

    operators   whether mutmut's are among them, where it is installed
    """
    mutants: dict[str, Mutant] = {}
    reasons = marks(solution)
    operated = mutated(solution, functions) if operators and can_mutate() else ()
    for family, slug, function, text in itertools.chain(_generated(solution, functions), operated):
        if text != solution and text not in mutants:  # of those with the same text, the first
            before, after = changed_lines(solution, text)
            line = _first_difference(solution, text)
            mutants[text] = Mutant(family, slug, function, text, before, after, reasons.get(line, ""), line)
    return list(mutants.values())


def _generated(solution: str, functions: Sequence[str]) -> Iterator[tuple[Family, str, str, str]]:
    """Yield family, slug, function and whole text of each mutant of parameters and habits."""
    for graded in graded_texts(solution, functions):
        for slug, change in parameter_changes(graded):
            yield "parameter", slug, graded.node.name, graded.changed(change)
        for slug, change in habit_changes(graded):
            yield "habit", slug, graded.node.name, graded.changed(change)


def mutated(solution: str, functions: Collection[str]) -> Iterator[tuple[Family, str, str, str]]:
    """Yield the same of each mutant that mutmut's operators make of these functions, in the order of the text.

    mutmut's operators are no public interface, so the extra `test` fixes its version.
    """
    import libcst
    from libcst.metadata import MetadataWrapper
    from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.pragma_handling import IgnoredCode

    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(libcst.parse_module(solution)).visit(visitor)
    # Writing a whole tree anew for each mutant would take seconds, so each statement is written by itself.
    places: dict[int, tuple[Any, int, int]] = {}
    end = sum(len(module.code_for_node(line)) for line in module.header)
    for statement in module.body:
        start, end = end, end + len(module.code_for_node(statement))
        methods = getattr(getattr(statement, "body", None), "body", ())
        places |= {id(function): (statement, start, end) for function in (statement, *methods)}
    for mutation in visitor.mutations:
        function: Any = mutation.contained_by_top_level_function
        if isinstance(function, libcst.FunctionDef) and function.name.value in functions:
            statement, start, end = places[id(function)]
            replaced: Any = deep_replace(statement, mutation.original_node, mutation.mutated_node)
            changed = module.code_for_node(replaced)
            if end >= len(solution) and not solution.endswith("\n"):  # where the tree has a line's end
                changed = changed.removesuffix("\n")
            yield "operator", "", function.name.value, solution[:start] + changed + solution[end:]


def _first_difference(before: str, after: str) -> int:
    """The first line of a text that is another one, or stands elsewhere, in a second text; lines count from 1."""
    pairs = itertools.zip_longest(before.splitlines(), after.splitlines())
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 0)


def changed_lines(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, without indentation and comment; where lines are only added, with the one that follows.

    With the lines between them too, where they are few.
    """
    one, other = before.splitlines(), after.splitlines()
    changes = _differences(one, other)
    if changes[-1][1] - changes[0][0] <= MOST_LINES:
        changes = [(changes[0][0], changes[-1][1], changes[0][2], changes[-1][3])]
    start, end, to, until = changes[0]
    if start == end:
        context = 1 + next((skipped for skipped, line in enumerate(one[end:]) if line.strip()), 0)
        changes[0] = (start, end + context, to, until + context)
    removed = [line for start, end, _, _ in changes for line in one[start:end]]
    added = [line for _, _, start, end in changes for line in other[start:end]]
    return _joined(removed), _joined(added)


def _differences(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Start and end of each difference, in one and in the other; what they begin and end with alike is not searched."""
    shorter = min(len(one), len(other))
    begin = next((k for k in range(shorter) if one[k] != other[k]), shorter)
    alike = next((k for k in range(shorter - begin) if one[-1 - k] != other[-1 - k]), shorter - begin)
    inner = one[begin : len(one) - alike], other[begin : len(other) - alike]
    codes = difflib.SequenceMatcher(None, *inner, autojunk=False).get_opcodes()
    return [(begin + a, begin + b, begin + c, begin + d) for tag, a, b, c, d in codes if tag != "equal"]


def _joined(lines: Iterable[str]) -> str:
    stripped = (line.partition("  #")[0].strip() for line in lines)
    return NEXT_LINE.join(line for line in stripped if line)
