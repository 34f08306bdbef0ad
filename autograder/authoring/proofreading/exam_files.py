"""What is wrong in contract.toml, each with its line; it may be left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autograder.authoring.exam.contract import CONTRACT, COSTLY, Clause, clauses_in
from autograder.authoring.proofreading.fault import Fault, likely, line_of
from autograder.authoring.proofreading.text_files import read_toml


def exam_faults(folder: Path, items: Mapping[str, Sequence[str]]) -> Iterator[Fault]:
    """All that is wrong in the contract; `items` are those of each function."""
    path = folder / CONTRACT
    if not path.is_file():
        return
    found = read_toml(path, '"a sentence" = ["mistake"]')
    if isinstance(found, Fault):
        yield found
        return
    text, data = found
    for clause in clauses_in(data, text, items):
        if not isinstance(clause, Clause):
            line, what = clause
            yield Fault(path, line, what, "a sentence with its mistakes, or with the reason why it is not graded")
    functions = [name for name, table in data.items() if isinstance(table, dict) and name not in (COSTLY, "")]
    costly = data.get(COSTLY)
    for name in [*functions, *(costly if isinstance(costly, dict) else ())]:
        if name not in items:
            row = f"[{name}]" if name in functions else f"{name} = "
            yield Fault(path, line_of(text, row), f"no item grades {name!r}", likely(name, items))
