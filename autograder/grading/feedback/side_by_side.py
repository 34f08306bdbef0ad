"""What was returned and what was expected, side by side at the first places that differ."""

from __future__ import annotations

from autograder.grading.compare import Difference, Mismatch

MORE_DIGITS = (7, 10, 13, 17)  # as many as it takes to tell two numbers apart


def table(mismatch: Mismatch) -> list[str]:
    """A headline, one line for each of the first places that differ, and how many more there are."""
    axes = "[" + " ".join(mismatch.expectation.axes) + "]" if mismatch.expectation.axes else ""
    rows = [(axes, "yours", "expected"), *(_row(difference) for difference in mismatch.first)]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [f"  {a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
    more = mismatch.differing - len(mismatch.first)
    return lines + ([f"  … {more} more"] if more > 0 else [])


def _row(difference: Difference) -> tuple[str, str, str]:
    index = "[" + " ".join(str(n) for n in difference.index) + "]" if difference.index else ""
    observed, expected = difference.observed + 0.0, difference.expected + 0.0  # which makes 0 of -0
    pairs = [(f"{observed:.{digits}g}", f"{expected:.{digits}g}") for digits in MORE_DIGITS]
    return index, *next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
