"""mutmut's operators, applied to the functions of a solution."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def mutated(solution: str) -> Iterator[tuple[str, str]]:
    """The function and the whole text of each mutant.

    mutmut's operators are no public interface, so the extra `test` fixes its version.
    """
    import libcst
    from libcst.metadata import MetadataWrapper
    from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.pragma_handling import IgnoredCode

    visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
    module = MetadataWrapper(libcst.parse_module(solution)).visit(visitor)
    for mutation in visitor.mutations:
        if mutation.contained_by_top_level_function is not None:
            changed: Any = deep_replace(module, mutation.original_node, mutation.mutated_node)
            yield mutation.contained_by_top_level_function.name.value, changed.code
