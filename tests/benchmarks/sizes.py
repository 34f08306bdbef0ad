"""What a class costs as it grows: seconds per submission, and the memory of the grader and of all its processes.

A class is of mixed quality. Of each hundred about 40 are right, 40 hold a known mistake of the catalogue, 10 hold two,
9 leave their last functions unfinished, and one hangs, but none after the first thousand: each takes 40 s of a core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from places import KIT

from autograder.authoring.fixtures.regenerate import import_generator
from benchmarks.contenders import Workshop, grade_command, student
from benchmarks.measure import CommandFailed, run

STUB = "def {function}(*arguments, **named):\n    raise NotImplementedError\n"
HANG = "def {function}(*arguments, **named):\n    while True:\n        pass\n"
HANGING = 57  # of each hundred
HANG_BEFORE = 1000
UNFINISHED = 2  # functions, the last ones
STRIDE = 37  # from one student's known mistake to the next one's: with no factor of the catalogue's length


def mixed(workshop: Workshop, catalogue: Sequence[str], number: int) -> str:
    """What this student hands in; no two the same bytes."""
    functions, place = workshop.assignment.functions, number % 10
    if number % 100 == HANGING and number < HANG_BEFORE:
        added = [HANG.format(function=functions[-2])]
    elif place < 4:
        added = []
    elif place < 8:
        added = [catalogue[STRIDE * number % len(catalogue)]]
    elif place == 8:
        added = [STUB.format(function=function) for function in functions[-UNFINISHED:]]
    else:
        added = [catalogue[(STRIDE * number + shift) % len(catalogue)] for shift in (0, len(catalogue) // 2)]
    return "\n\n".join([workshop.handed_in(number), *added])


def catalogue_of(workshop: Workshop) -> list[str]:
    """The known mistakes, as functions that take the place of right ones."""
    return [one.source for one in import_generator(workshop.assignment)["mistakes"].MISTAKES]


def cost_by_size(
    workshop: Workshop,
    sizes: Sequence[int],
    isolation: str,
    jobs: int,
    tell: Callable[[dict[str, Any]], None] = lambda row: None,
) -> list[dict[str, Any]]:
    """One class after another, graded by one command each into an empty folder; each row is told once it is known.

    each_further   seconds of each submission more than the class before had
    """
    rows: list[dict[str, Any]] = []
    catalogue = catalogue_of(workshop)
    for size in sizes:
        row = _row(workshop, catalogue, size, isolation, jobs)
        if rows and size > rows[-1]["size"]:
            row["each_further"] = (row["seconds"] - rows[-1]["seconds"]) / (size - rows[-1]["size"])
        rows.append(row)
        tell(row)
    return rows


def _row(workshop: Workshop, catalogue: Sequence[str], size: int, isolation: str, jobs: int) -> dict[str, Any]:
    handed_in, out = workshop.fresh("class-of-size"), workshop.fresh("grades-of-size")
    for number in range(size):
        (handed_in / f"{student(number)}.py").write_text(mixed(workshop, catalogue, number), encoding="utf-8")
    measured = run(grade_command(handed_in, out, isolation, jobs), KIT)
    if (found := len(list((out / "reports").iterdir()))) != size:
        raise CommandFailed(f"{found} of {size} submissions have a report")
    return {
        "size": size,
        "seconds": measured.seconds,
        "per_submission": measured.seconds / size,
        "grader_mib": measured.peak_main,
        "tree_mib": measured.peak_tree,
    }
