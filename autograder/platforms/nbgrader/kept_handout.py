"""nbgrader empties a handout before it knows whether it can make another: a copy outlives that."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from autograder.grading.items import Assignment

COMMAND = "generate_assignment"


def keeping(assignments: Sequence[Assignment], arguments: Sequence[str]) -> Callable[[], None]:
    """Copy the handouts that this command may empty; what is returned puts back those that it left without a notebook.

    arguments   of nbgrader's command line; where it generates no assignment, nothing is copied
    """
    if COMMAND not in arguments:
        return lambda: None
    named = [one for one in assignments if _is_named(one, arguments)] or list(assignments)
    kept = {one.name: _copy(one) for one in named if one.handout.is_dir()}

    def restore() -> None:
        for assignment in named:
            copy = kept.get(assignment.name)
            if copy is None:
                continue
            if not (assignment.handout / f"{assignment.module}.ipynb").is_file():
                shutil.rmtree(assignment.handout, ignore_errors=True)
                shutil.move(copy / assignment.name, assignment.handout)
                print(_sentence(assignment), file=sys.stderr)
            shutil.rmtree(copy, ignore_errors=True)

    return restore


def _is_named(assignment: Assignment, arguments: Sequence[str]) -> bool:
    return any(assignment.name == one or one.endswith(f"assignment_id={assignment.name}") for one in arguments)


def _copy(assignment: Assignment) -> Path:
    folder = Path(tempfile.mkdtemp(dir=assignment.handout.parent, prefix=".before-"))
    shutil.copytree(assignment.handout, folder / assignment.name)
    return folder


def _sentence(assignment: Assignment) -> str:
    return (
        f"autograder: nbgrader made no handout of {assignment.name}, so handout/{assignment.name} is what it was. "
        "Where submissions of it are in its gradebook, nbgrader cannot change the assignment: `autograder release` "
        f"makes the handout without it, and `nbgrader db assignment remove {assignment.name} --force` forgets them "
        "and their grades."
    )
