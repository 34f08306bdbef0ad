"""What of a notebook is graded: the definitions that count, and all that they need; no experiments."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from autograder.submissions.statements import DEFINITIONS, IMPORTS, JOINT, LOOPS, CodeCell, Statement
from autograder.submissions.syntax import is_stub
from autograder.vocabulary.text import visible


def with_changes(statements: Sequence[Statement]) -> list[Statement]:
    """Statements, with a change to what the notebook itself made counted as binding it.

    A definition under the notebook's own decorator or base class may enter itself in a register somewhere: it
    binds `*`, which is always needed.
    """
    own = frozenset[str]().union(*(one.binds for one in statements if not isinstance(one.node, IMPORTS)))
    changed: list[Statement] = []
    for statement in statements:
        changes = statement.changes & own
        if changes and isinstance(statement.node, DEFINITIONS):
            changes = frozenset("*")
        changed.append(replace(statement, binds=statement.binds | changes))
    return changed


def chosen_definitions(
    statements: Sequence[Statement], cells: Sequence[CodeCell], graded: Sequence[str]
) -> tuple[list[Statement], list[str]]:
    """Statements without the definitions that come after the one that counts, and a note on each choice.

    Of several definitions of a graded function, one that does something counts before a stub, one in the function's
    own answer cell before others, then the last. Earlier ones may stay: they may be in use where they stand.
    """
    kept, notes = list(statements), []
    for name in graded:
        places = [index for index, one in enumerate(kept) if _defines(one, name)]
        if len(places) < 2:
            continue
        best = max(places, key=lambda i: (not is_stub(kept[i].node), cells[kept[i].cell - 1].grade_id == name, i))
        for index in places[places.index(best) + 1 :]:
            kept[index] = replace(kept[index], binds=kept[index].binds - {name})
        numbers = sorted({statements[index].cell for index in places})
        if len(numbers) > 1 and sum(not is_stub(statements[index].node) for index in places) > 1:
            notes.append(f"cells {_listing(numbers)} define {name}: that of cell {statements[best].cell} counts")
    return kept, notes


def _defines(statement: Statement, name: str) -> bool:
    return isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef) and statement.node.name == name


def definitions(statements: Sequence[Statement]) -> frozenset[str]:
    """Every name that a notebook defines: functions, classes, and other names for them."""
    defined: set[str] = set()
    for statement in statements:
        value = statement.node.value if isinstance(statement.node, ast.Assign) else None
        renamed = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in defined)
        if renamed or isinstance(statement.node, DEFINITIONS):
            defined |= statement.binds
    return frozenset(defined)


def needed_names(statements: Sequence[Statement], roots: frozenset[str]) -> frozenset[str]:
    """`roots` and the names that they use, directly or through others; star imports are always needed."""
    makers: defaultdict[str, list[Statement]] = defaultdict(list)
    for statement in statements:
        for name in statement.binds if is_kept(statement, statement.binds) else ():
            makers[name].append(statement)
    needed = {"*", *roots}
    queue = list(needed)
    seen: set[int] = set()
    for name in queue:
        for statement in makers[name]:
            new = statement.uses - needed if id(statement) not in seen else frozenset[str]()
            seen.add(id(statement))
            needed |= new
            queue += new
    return frozenset(needed)


def is_kept(statement: Statement, names: frozenset[str]) -> bool:
    """Whether a statement gives one of these names its meaning; a loop is an experiment."""
    return not isinstance(statement.node, LOOPS) and not names.isdisjoint(statement.binds)


def defined_twice(statements: Sequence[Statement], graded: Sequence[str]) -> list[str]:
    """A note on each function in several cells, but for the graded ones."""
    cells: dict[str, list[int]] = {}
    for statement in statements:
        if isinstance(statement.node, ast.FunctionDef | ast.AsyncFunctionDef) and statement.node.name not in graded:
            cells.setdefault(statement.node.name, []).append(statement.cell)
    return [
        f"cells {_listing(sorted(set(numbers)))} define {visible(name, 60)}: the last one counts"
        for name, numbers in cells.items()
        if len(set(numbers)) > 1
    ]


def loops_left_out(statements: Sequence[Statement], names: frozenset[str]) -> list[str]:
    """A note on each loop that sets one of these names."""
    return [
        f"cell {statement.cell}: a loop that sets {_listing(sorted(names & statement.binds))} was left out, "
        "since only definitions are graded"
        for statement in statements
        if isinstance(statement.node, LOOPS) and names & statement.binds
    ]


def _listing(values: Sequence[object]) -> str:
    *most, last = (visible(str(value), 60) for value in values)
    return f"{', '.join(most)} and {last}" if most else last


def source_of(statements: Sequence[Statement], names: frozenset[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The kept statements in order, and where cells begin: the line of the text, and the number of the cell.

    Each cell stands under a line `# cell 7`, line for line as it stands in the notebook.
    """
    future = any(
        isinstance(statement.node, ast.ImportFrom)
        and statement.node.module == "__future__"
        and any(alias.name == "annotations" for alias in statement.node.names)
        for statement in statements
    )
    texts = ["from __future__ import annotations\n"] if future else []
    cells: list[tuple[int, int]] = []
    for number, group in itertools.groupby(statements, key=lambda statement: statement.cell):
        cell = list(group)
        if any(is_kept(statement, names) for statement in cell):
            cells.append((sum(text.count("\n") + 1 for text in texts) + 2, number))
            texts.append(f"# cell {number}\n{_cell_source(cell, names)}\n")
    return "\n".join(texts), tuple(cells)


def _cell_source(cell: Sequence[Statement], names: frozenset[str]) -> str:
    """The cell's text with everything but line breaks taken out of the statements that are not kept."""
    kept = ""
    for statement in cell:
        text = statement.text
        if not is_kept(statement, names):
            text = "\n" * text.count("\n")
        elif not kept or kept.endswith("\n"):  # nothing is left before it on its line: no semicolon either
            text = JOINT.sub(lambda joint: "\n" * joint[0].count("\n"), text, count=1)
        kept += text
    return kept.rstrip("\n")
