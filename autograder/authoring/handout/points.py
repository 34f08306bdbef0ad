"""The table of points in the assignment's text."""

from __future__ import annotations

from autograder.grading.items import (
    Assignment,
)
from autograder.vocabulary.errors import ReleaseError
from autograder.vocabulary.text import number

POINTS_BEGIN, POINTS_END = "<!-- points:begin -->", "<!-- points:end -->"


def with_points(text: str, assignment: Assignment) -> str:
    """The assignment text with the table of items between its two comments."""
    before, begin, rest = text.partition(POINTS_BEGIN)
    _, end, after = rest.partition(POINTS_END)
    if not begin or not end:
        raise ReleaseError(f"The solution's README.md lacks {POINTS_BEGIN} and {POINTS_END} for its table of points.")
    return f"{before}{begin}\n{points_table(assignment)}{end}{after}"


def points_table(assignment: Assignment) -> str:
    """The items as a Markdown table, by function, with sums."""
    lines = ["| item | what is checked | points |", "|---|---|---:|"]
    for function in assignment.functions:
        items = [item for item in assignment.items if item.function == function]
        lines.append(f"| **`{function}`** | | **{number(sum(item.points for item in items))}** |")
        lines += [f"| `{item.id}` | {item.title} | {number(item.points)} |" for item in items]
    lines.append(f"| **all** | | **{number(assignment.max_points)}** |")
    return "\n".join(lines) + "\n"
