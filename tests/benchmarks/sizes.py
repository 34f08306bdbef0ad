"""What a class costs as it grows: seconds per submission, and the memory of the grader itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from places import KIT

from benchmarks.contenders import Workshop, grade_command, student
from benchmarks.measure import CommandFailed, run

HEADER = '"""Student {number} has not begun: each call is made, and answered by an error."""\n\n\n'
STUB = "def {function}(*arguments, **named):\n    raise NotImplementedError\n"


def cheap(workshop: Workshop, number: int) -> str:
    """A submission that costs next to nothing to call, and the grader as much as any: every case is run and worded."""
    stubs = "\n\n".join(STUB.format(function=function) for function in workshop.assignment.functions)
    return HEADER.format(number=number) + stubs


def cost_by_size(workshop: Workshop, sizes: Sequence[int], isolation: str, jobs: int) -> list[dict[str, Any]]:
    """One class after another, graded by one command each into an empty folder."""
    rows = []
    for size in sizes:
        handed_in, out = workshop.fresh("class-of-size"), workshop.fresh("grades-of-size")
        for number in range(size):
            (handed_in / f"{student(number)}.py").write_text(cheap(workshop, number), encoding="utf-8")
        measured = run(grade_command(handed_in, out, isolation, jobs), KIT)
        if (found := len(list((out / "reports").iterdir()))) != size:
            raise CommandFailed(f"{found} of {size} submissions have a report")
        rows.append(
            {
                "size": size,
                "seconds": measured.seconds,
                "per_submission": measured.seconds / size,
                "grader_mib": measured.peak_main,
                "tree_mib": measured.peak_tree,
            }
        )
    for row, smaller in zip(rows[1:], rows, strict=False):
        more = row["size"] - smaller["size"]
        row["each_further"] = (row["seconds"] - smaller["seconds"]) / more
    return rows
