"""Wrong variants of a solution: mistakes of the catalogue, and mutants, in which one thing of one function is changed.

Mutants are of three families: what becomes of each parameter, the habits of students, and mutmut's operators. The
lines at which some leave a function what it is are marked in the solution, each with the reason.
"""

from __future__ import annotations

import difflib
import importlib.util
import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autograder.authoring.catalogue import marks
from autograder.authoring.exam.habits import graded_texts, habit_changes, parameter_changes

NEXT_LINE = " ⏎ "
MOST_LINES = 6
Family = Literal["mistake", "parameter", "habit", "operator"]
Change = tuple[Family, str, str, str]  # family, slug, function, whole text


@dataclass(frozen=True)
class Variant:
    """A text that is wrong in one function: the solution with one change, or with a mistake below it.

    slug      what is done: `epsilon-ignored`, the name of a habit or of a mistake; "" of mutmut's operators
    source    the whole text
    before    the changed lines without indentation and comment, and what they become in `after`; "" of mistakes
    reason    why it may be the same function still, as its line is marked; "" where nothing says so
    line      of the solution, the first that is changed; 0 of mistakes
    """

    family: Family
    slug: str
    function: str
    source: str
    before: str = ""
    after: str = ""
    reason: str = ""
    line: int = 0

    @property
    def name(self) -> str:
        """What clauses and costs call it: `habit:isclose-for-eq`, a mistake's slug."""
        return self.slug if self.family == "mistake" else f"{self.family}:{self.slug}" if self.slug else self.family


def can_mutate() -> bool:
    """Whether mutmut is installed; it comes with the extra `test`."""
    return importlib.util.find_spec("mutmut") is not None


def mutants_of(solution: str, functions: Sequence[str], *, operators: bool = True) -> list[Variant]:
    """Every mutant of these functions, each text once, with the reason that its line is marked with.

    operators   whether mutmut's are among them, where it is installed
    """
    mutants: dict[str, Variant] = {}
    reasons = marks(solution)
    operated = mutated(solution, functions) if operators and can_mutate() else ()
    for family, slug, function, text in itertools.chain(_generated(solution, functions), operated):
        if text != solution and text not in mutants:  # of those with the same text, the first
            lines = itertools.zip_longest(solution.splitlines(), text.splitlines())
            line = next((number for number, (one, other) in enumerate(lines, 1) if one != other), 0)
            before, after = changed_lines(solution, text)
            mutants[text] = Variant(family, slug, function, text, before, after, reasons.get(line, ""), line)
    return list(mutants.values())


def _generated(solution: str, functions: Sequence[str]) -> Iterator[Change]:
    for graded in graded_texts(solution, functions):
        for slug, change in parameter_changes(graded):
            yield "parameter", slug, graded.node.name, graded.changed(change)
        for slug, change in habit_changes(graded):
            yield "habit", slug, graded.node.name, graded.changed(change)


def mutated(solution: str, functions: Collection[str]) -> Iterator[Change]:
    """Yield each mutant that mutmut's operators make of these functions, in the order of the text.

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


def changed_lines(before: str, after: str) -> tuple[str, str]:
    """The lines that differ, without indentation and comment; where lines are only added, with the one that follows.

    With the lines between them too, where they are few.
    """
    old, new = before.splitlines(), after.splitlines()
    # What both begin and end with is cut off first: the matcher takes a tenth of a second for a whole solution
    shorter = min(len(old), len(new))
    begin = next((k for k in range(shorter) if old[k] != new[k]), shorter)
    alike = next((k for k in range(shorter - begin) if old[-1 - k] != new[-1 - k]), shorter - begin)
    inner = old[begin : len(old) - alike], new[begin : len(new) - alike]
    codes = difflib.SequenceMatcher(None, *inner, autojunk=False).get_opcodes()
    changes = [(begin + a, begin + b, begin + c, begin + d) for tag, a, b, c, d in codes if tag != "equal"]
    if changes[-1][1] - changes[0][0] <= MOST_LINES:
        changes = [(changes[0][0], changes[-1][1], changes[0][2], changes[-1][3])]
    start, end, to, until = changes[0]
    if start == end:
        context = 1 + next((skipped for skipped, line in enumerate(old[end:]) if line.strip()), 0)
        changes[0] = (start, end + context, to, until + context)

    def shown(lines: Iterator[str]) -> str:
        return NEXT_LINE.join(code for line in lines if (code := line.partition("  #")[0].strip()))

    removed = (line for start, end, _, _ in changes for line in old[start:end])
    return shown(removed), shown(line for _, _, start, end in changes for line in new[start:end])
