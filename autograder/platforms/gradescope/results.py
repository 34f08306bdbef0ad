"""Grades as Gradescope's results.json: a test for each item, or two where hidden cases are shown later.

The fields are those of gradescope-autograders.readthedocs.io, Autograder Specifications: `score` overrides the sum of
the tests; `visibility` and `stdout_visibility` are visible, after_due_date, after_published or hidden, and what is
printed is for staff unless it says otherwise; texts are text, html, md, ansi or simple_format; a test's `status` is
passed or failed. As long as a test is to be shown later, students see no total; one that is `hidden` for good does not
hold it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from autograder.vocabulary.errors import GraderFault
from autograder.vocabulary.report import VERDICT_WORDS, CaseResult, ItemResult, Report
from autograder.vocabulary.report_text import counterexample_markdown, fenced, item_markdown, notes_beside
from autograder.vocabulary.text import visible

Visibility = Literal["visible", "after_due_date", "after_published", "hidden"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
MAX_TEXT = 20_000  # characters of one test's output


def results(report: Report, notes: Sequence[str] = (), hidden_cases: Visibility = "visible") -> dict[str, Any]:
    """What Gradescope reads as results.json.

    notes          what is said above the tests
    hidden_cases   visible: one test an item, and students see their points at once. Anything else: the public cases of
                   an item are one visible test and its hidden cases another, shown when this says; Gradescope shows no
                   total until then, but with `hidden`, where that never comes, at once
    raises         GraderFault for a report that is not graded: no file is better than one that says 0
    """
    if report.points is None:
        raise GraderFault(f"{visible(report.student, 80)} is not graded: {visible(report.fault, 300)}")
    causes = report.cause.splitlines()  # how long it took is not told: hidden cases could say something by it
    return {
        "score": report.points,
        "output": "\n".join(visible(note) for note in (*causes, *notes_beside(report, notes))),
        "output_format": "text",
        "test_output_format": "md",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [test for at, item in enumerate(report.items, 1) for test in _tests(item, at, hidden_cases)],
        "leaderboard": [],
        "extra_data": {"student": report.student, "assignment": report.assignment, "fixtures": report.fixtures},
    }


def _tests(item: ItemResult, at: int, hidden_cases: Visibility) -> list[dict[str, Any]]:
    public = [case for case in item.cases if case.visibility == "public"]
    hidden = [case for case in item.cases if case.visibility == "hidden"]
    if hidden_cases == "visible" or not public or not hidden:
        only: Visibility = "visible" if public or not hidden or hidden_cases == "visible" else hidden_cases
        output = item_markdown(item) if only == "visible" or item.verdict == "passed" else _said(item, hidden)
        return [_test(item, str(at), "", item.points or 0.0, item.max_points, output, only)]
    most = round(item.max_points * len(public) / len(item.cases), 2)
    passed = sum(case.verdict == "passed" for case in public)
    earned = min(round(item.max_points * passed / len(item.cases), 2), item.points or 0.0)
    shown = item_markdown(item) if passed < len(public) else ""  # the message is of the first case that failed
    rest, rest_most = round((item.points or 0.0) - earned, 2), round(item.max_points - most, 2)
    return [
        _test(item, f"{at}.1", ", public cases", min(earned, most), most, shown, "visible"),
        _test(item, f"{at}.2", ", hidden cases", min(rest, rest_most), rest_most, _said(item, hidden), hidden_cases),
    ]


def _test(
    item: ItemResult, at: str, which: str, score: float, most: float, output: str, visibility: Visibility
) -> dict[str, Any]:
    return {
        "number": at,
        "name": f"{item.item}: {item.title}{which}",
        "score": score,
        "max_score": most,
        "status": "passed" if score == most else "failed",
        "output": output[:MAX_TEXT],
        "visibility": visibility,
        "tags": [item.function],
        "extra_data": {"verdict": item.verdict, "mistakes": list(item.mistakes)} if visibility == "visible" else {},
    }


def _said(item: ItemResult, cases: Sequence[CaseResult]) -> str:
    """What was wrong with these cases of an item: each message once, in their order; then a call to paste, if any."""
    failed = [case for case in cases if case.verdict != "passed"]
    messages = dict.fromkeys(case.message or VERDICT_WORDS[case.verdict] for case in failed)
    small = counterexample_markdown(item) if item.fails_unseen else ""
    return "\n".join([*map(fenced, messages), *([small] if small else [])])
