"""Functions whose oracle is not independent yet: their expected values are the solution's own, which proves nothing.

`oracle.py` lists them itself, where whoever writes the oracle takes a name off the list:

    NOT_INDEPENDENT = {"softmax", "entropy"}
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

from autograder.authoring.exam.contract import read_contract
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import ReleaseError

NAME = "NOT_INDEPENDENT"


def not_independent(assignment: Assignment) -> tuple[str, ...]:
    """The graded functions that the oracle lists, in the order of the items; none where there is no such list."""
    listed = {name for path in _oracle_files(assignment.folder) for name in _listed(path)}
    return tuple(name for name in assignment.functions if name in listed)


def refuse_release(assignment: Assignment) -> None:
    """Raise ReleaseError where an oracle is the solution itself, or a sentence of the contract is a draft."""
    if names := not_independent(assignment):
        raise ReleaseError(
            f"The oracle of {', '.join(names)} is the solution itself: a mistake in the solution would be graded as "
            f"right. Write {_them(names)} in fixtures/{assignment.name}/oracle.py, as loops and closed forms, and take "
            f"{_them(names)} off {NAME}. Until then `autograder release --draft` makes a handout for staff."
        )
    contract = read_contract(assignment)
    if contract and (drafts := contract.drafts):
        others = f" ({len(drafts) - 1} more are like it)" if drafts[1:] else ""
        raise ReleaseError(
            f"{contract.place(drafts[0])} has neither mistakes nor a reason why it is not graded{others}. Name one of "
            "mistakes.py that violates it, or write the reason in place of the list. Until then `autograder release "
            "--draft` makes a handout for staff."
        )


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _oracle_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "oracle.py", *sorted((folder / "oracle").glob("*.py"))) if path.is_file()]


def _listed(path: Path) -> list[str]:
    """The names in a literal set, tuple or list of that name; of anything else every text in it."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return []
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    found: list[str] = []
    for node in assigned:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == NAME for target in targets) and node.value is not None:
            texts = (one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant))
            found += [text for text in texts if isinstance(text, str)]
    return found
