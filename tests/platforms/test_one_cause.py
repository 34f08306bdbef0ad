"""What kept items from being reached is told once, wherever a student reads it."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from sample_reports import item, report

from autograder.pages.student_page import feedback_page
from autograder.platforms import prairielearn
from autograder.platforms.gradescope import results as gradescope
from autograder.vocabulary.report import NOT_REACHED, Report
from autograder.vocabulary.report_text import report_text

READ = "it has a syntax error on its line 3"
NOTES = (f"cell 7 was left out: {READ}", "cells 2 and 5 define helper: the last one counts")
LOST = f"{NOT_REACHED}: its cell could not be read."
REPORT = replace(
    report(
        "ada",
        item("deltas-max"),
        *(item(name, 0.0, 4.0, "not_run", message=LOST) for name in ("kl-values", "kl-gradient", "kl-extreme")),
    ),
    cause=f"Cell 7 was left out: {READ}.",
)


def page(found: Report, notes: Sequence[str]) -> str:
    return html.unescape(feedback_page(found, notes))


def nbgrader(found: Report, notes: Sequence[str]) -> str:
    from autograder.platforms.nbgrader.gradebook import comments_on

    functions = {one.item: replace(one, function=one.item) for one in found.items}
    return "\n".join(comments_on(replace(found, items=tuple(functions.values())), list(functions)).values())


PLACES: dict[str, Callable[[Report, Sequence[str]], str]] = {
    "the page": page,
    "the terminal": report_text,
    "Gradescope": lambda found, notes: json.dumps(gradescope.results(found, notes)),
    "PrairieLearn": lambda found, notes: json.dumps(prairielearn.results(found, notes)),
    "nbgrader": nbgrader,
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_a_cause_is_told_once(place: Callable[[Report, Sequence[str]], str]) -> None:
    assert place(REPORT, NOTES).count(READ) == 1


@pytest.mark.parametrize("name", ["the page", "the terminal", "Gradescope", "PrairieLearn"])
def test_a_note_that_says_something_else_stays(name: str) -> None:
    assert PLACES[name](REPORT, NOTES).count("define helper") == 1


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_without_a_cause_none_is_told(place: Callable[[Report, Sequence[str]], str]) -> None:
    assert READ not in place(replace(REPORT, cause=""), ())
