"""A failed item → text to paste into a question to staff: what was graded with what, and what was seen."""

from __future__ import annotations

from autograder.vocabulary.report import VERDICT_WORDS, ItemResult, Report
from autograder.vocabulary.text import number, visible

MOST = 700  # characters of the message
UNASKED = ("passed", "missing", "not_graded")


def question(item: ItemResult, report: Report, place: str = "", title: str = "") -> str:
    """The text, or "" where there is nothing to ask about.

    place   the line that the item concerns
    title   what people call the assignment; "" leaves its module's name

    It holds what the report tells the student, and so no value of a hidden case.
    """
    if item.verdict in UNASKED:
        return ""
    case = next((one for one in item.cases if one.verdict != "passed"), None)
    points = f"{number(item.points or 0.0)} of {number(item.max_points)} points"
    assignment = f"{visible(title, 120)} ({report.assignment})" if title else report.assignment
    lines = [
        f"{assignment}, item {item.item} ({visible(item.title, 200)}): {VERDICT_WORDS[item.verdict]}, {points}",
        *([f"Case: {visible(case.case, 120)} ({case.visibility})"] if case else []),
        f"Submission: {visible(report.submission.path, 200)}, SHA-256 {report.submission.sha256}",
        f"Fixtures: SHA-256 {report.fixtures}",
        *([place] if place and place not in item.message else []),
        "",
        visible(item.message, MOST, newlines=True),
        "",
        "My question: ",
    ]
    return "\n".join(lines)
