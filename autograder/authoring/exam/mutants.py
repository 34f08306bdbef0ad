"""First-order mutants of a solution: mutmut changes one thing in one of its functions, and points must be lost."""

from __future__ import annotations

import difflib
import importlib.util
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.vocabulary.errors import FixtureError

EQUIVALENT = "equivalent_mutants.toml"


@dataclass(frozen=True)
class Mutant:
    """The solution with one change: the changed line of `function` before and after, without indentation and comment.

    reason   why it is the same function still; "" where it is not
    """

    function: str
    source: str
    before: str
    after: str
    reason: str = ""


def can_mutate() -> bool:
    """Whether mutmut is installed; it comes with the extra `test`."""
    return importlib.util.find_spec("mutmut") is not None


def mutants_of(solution: str, folder: Path) -> list[Mutant]:
    """Every mutant of the solution's functions, with the reason of those that `folder` lists as equivalent.

    Raises FixtureError where the list cannot be read or names a change that is not made.
    """
    reasons = _reasons(folder / EQUIVALENT)
    found = [_mutant(function, solution, source, reasons) for function, source in _mutated(solution)]
    made = {(mutant.function, mutant.before, mutant.after) for mutant in found}
    if unmade := sorted(reasons.keys() - made):
        function, _, after = unmade[0]
        raise FixtureError(f"{folder / EQUIVALENT} lists a change of {function} that is not made: {after!r}.")
    return found


def _mutant(function: str, solution: str, source: str, reasons: dict[tuple[str, str, str], str]) -> Mutant:
    lines = difflib.ndiff(solution.splitlines(), source.splitlines())
    pairs = {line[0]: line[2:].partition("  #")[0].strip() for line in lines if line[0] in "-+"}
    before, after = pairs.get("-", ""), pairs.get("+", "")
    return Mutant(function, source, before, after, reasons.get((function, before, after), ""))


def _mutated(solution: str) -> Iterator[tuple[str, str]]:
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


def _reasons(path: Path) -> dict[tuple[str, str, str], str]:
    """(function, line before, line after) → why that change changes nothing."""
    if not path.is_file():
        return {}
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))["equivalent"]
        return {(one["function"], one["before"], one["after"]): one["reason"] for one in listed}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise FixtureError(f"{path} cannot be used: {error}.") from error
