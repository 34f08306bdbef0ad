"""mutmut's operators, applied to the functions of a solution."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any


def mutated(solution: str, functions: Collection[str]) -> Iterator[tuple[str, str]]:
    """The function and the whole text of each mutant of these functions, in the order of the text.

    mutmut's operators are no public interface, so the extra `test` fixes its version.
    """
    import libcst
    from libcst.metadata import MetadataWrapper
    from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.pragma_handling import IgnoredCode

    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(libcst.parse_module(solution)).visit(visitor)
    places = {id(function): place for place in _places(module) for function in _functions(place[0])}
    for mutation in visitor.mutations:
        function: Any = mutation.contained_by_top_level_function
        if isinstance(function, libcst.FunctionDef) and function.name.value in functions:
            statement, start, end = places[id(function)]
            replaced: Any = deep_replace(statement, mutation.original_node, mutation.mutated_node)
            changed, after = module.code_for_node(replaced), solution[end:]
            yield function.name.value, solution[:start] + (changed if after else _ended(changed, solution)) + after


def _places(module: Any) -> Iterator[tuple[Any, int, int]]:
    """Each statement of a module and where its text begins and ends: a tree is changed and written in its own time."""
    end = sum(len(module.code_for_node(line)) for line in module.header)
    for statement in module.body:
        start, end = end, end + len(module.code_for_node(statement))
        yield statement, start, end


def _functions(statement: Any) -> tuple[Any, ...]:
    """The statement, and where it is a class its methods too."""
    return statement, *getattr(getattr(statement, "body", None), "body", ())


def _ended(text: str, like: str) -> str:
    """The text of the last statement; the tree has a line's end there, the solution perhaps none."""
    return text if like.endswith("\n") else text.removesuffix("\n")
