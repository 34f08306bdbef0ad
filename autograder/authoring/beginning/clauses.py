"""The contract of a new assignment: each sentence of a docstring with the mistakes that seem to violate it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from autograder.authoring.beginning.signatures import REFUSES, Function
from autograder.authoring.docstrings import sentences

MOST = 3  # mistakes of one clause
HEAD = """\
# Every sentence of the docstrings, with mistakes that violate it: slugs of mistakes.py, and changes that `selfcheck`
# makes of the solution by itself. `new` guessed them: read each line. In place of the list, a text may say why a
# sentence is not graded. `release` refuses a sentence that has neither: [].
"""


@dataclass(frozen=True)
class Violation:
    """What the wrong texts of one name do, as far as some case tells them from a right answer.

    arguments   those that their lines are about
    items       the kinds of items that they lose points on: values, gradient, errors
    kind        whether a result has another shape, dtype or type
    """

    name: str
    arguments: frozenset[str]
    items: frozenset[str]
    kind: bool


def contract_text(functions: Sequence[Function], found: Mapping[str, Iterable[Violation]]) -> str:
    """contract.toml."""
    return HEAD + "".join(_section(one, list(_merged(found[one.name]))) for one in functions if one.docstring)


def _section(function: Function, violations: Sequence[Violation]) -> str:
    rows = (
        f"{_toml(sentence)} = [{', '.join(_toml(one) for one in _violating(sentence, place, function, violations))}]\n"
        for place, sentence in enumerate(dict.fromkeys(sentences(function.docstring)))
    )
    return f"\n[{function.name}]\n{''.join(rows)}"


def _merged(violations: Iterable[Violation]) -> Iterator[Violation]:
    """One for each name, of what all of that name do."""
    by_name: dict[str, list[Violation]] = {}
    for one in violations:
        by_name.setdefault(one.name, []).append(one)
    for name, several in by_name.items():
        arguments, items = (
            frozenset().union(*(getattr(one, what) for one in several)) for what in ("arguments", "items")
        )
        yield Violation(name, arguments, items, any(one.kind for one in several))


def _violating(sentence: str, place: int, function: Function, violations: Sequence[Violation]) -> list[str]:
    """The names of at most three mistakes, those first that are about the arguments which the sentence names."""
    first = re.match(r"\w+", sentence)
    row = first[0] if first else ""
    named = {one.name for one in function.arguments if re.search(rf"\b{re.escape(one.name)}\b", sentence)}
    is_row = row in named and not re.match(r"\w+\(", sentence)
    if row.lower() in ("returns", "return") and place:
        fitting = [one for one in violations if one.kind]
    elif REFUSES.search(sentence):
        fitting = [one for one in violations if "errors" in one.items]
    elif is_row:
        about = [one for one in violations if row in one.arguments]
        fitting = [one for one in about if "ignored" in one.name] or about
    elif place == 0 or named:
        fitting = [one for one in violations if one.items - {"errors"} and (not named or named & one.arguments)]
    else:
        fitting = []
    return [one.name for one in fitting[:MOST]]


def _toml(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
