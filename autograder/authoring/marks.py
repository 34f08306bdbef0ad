"""Marks in a solution: at this line, a change that costs nothing leaves the function what it is.

    log_probs = log_probs.masked_fill(mask == 0, 0.0)  # equivalent: the tensor was made here

Where the line has no room, the mark stands on a line of its own above it. No student sees one.
"""

from __future__ import annotations

import re

SIGN = "# equivalent:"
MARK = re.compile(rf"^(?P<code>.*?) *{SIGN} *(?P<reason>\S.*)?$")


def marks(solution: str) -> dict[int, str]:
    """Each marked line of a solution, and the reason; lines count from 1."""
    found: dict[int, str] = {}
    above: list[str] = []
    for number, line in enumerate(solution.splitlines(), 1):
        mark = MARK.match(line)
        if mark:
            above.append(mark["reason"] or "")
        if mark and not mark["code"].strip():
            continue
        if above:
            found[number] = "; ".join(above)
        above = []
    return found


def without_marks(solution: str) -> str:
    """The text without marks, and without the lines that hold nothing else."""
    kept = []
    for line in solution.splitlines(keepends=True):
        mark = MARK.match(line.rstrip("\r\n"))
        if mark is None:
            kept.append(line)
        elif mark["code"].strip():
            kept.append(mark["code"] + line[len(line.rstrip("\r\n")) :])
    return "".join(kept)
