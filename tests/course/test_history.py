"""What earlier gradings of a student gave: noted where a report takes the place of another that told something else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from places import KIT
from sample_reports import item, report

from autograder.course.batch import grade_all
from autograder.course.results import run_in, with_history
from autograder.grading.assignment import find_assignment
from autograder.grading.details import Details, Earlier, read_details
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.submissions.finding import find
from autograder.vocabulary.report import Report

EMPTY = Details("", "")
RIGHT, WRONG = report("ada", item("a")), report("ada", item("a", 1.0, 4.0, "failed"))
AT = "2031-03-01T10:00:00+00:00"


SLOWER = replace(RIGHT, items=tuple(replace(one, seconds=9.0) for one in RIGHT.items))
OTHER = replace(RIGHT, submission=replace(RIGHT.submission, sha256="11"))


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [
        (RIGHT, None, ()),
        (RIGHT, WRONG, (Earlier(AT, "00", 1.0, 4.0, ()),)),
        (OTHER, RIGHT, (Earlier(AT, "00", 4.0, 4.0, ("a",)),)),  # the same points for other bytes
        (SLOWER, RIGHT, ()),
        (RIGHT, replace(WRONG, student="bob"), ()),
    ],
)
def test_report_tells_of_the_one_it_replaced(now: Report, before: Report | None, told: tuple[Earlier, ...]) -> None:
    assert with_history(EMPTY, now, before, None, AT).earlier == told


def test_killed_run_tells_nothing_twice() -> None:
    killed = with_history(EMPTY, RIGHT, WRONG, EMPTY, AT)
    assert with_history(EMPTY, RIGHT, WRONG, killed, AT) == killed


def test_second_hand_in_shows_what_the_first_gave(tmp_path: Path) -> None:
    """Both times a file without a line of code, which needs no sandbox."""
    assignment = find_assignment(KIT, "policy_gradient")
    grader = Grader.of(assignment, read_fixtures(assignment), counterexamples=False)
    handed_in = tmp_path / "class" / "ada" / f"{assignment.module}.py"
    handed_in.parent.mkdir(parents=True)

    def grade(text: str) -> tuple[Details | None, str]:
        handed_in.write_text(text)
        grade_all(grader, find([tmp_path / "class"], assignment.module), tmp_path / "out")
        page = (tmp_path / "out" / "feedback" / "ada.html").read_text(encoding="utf-8")
        return read_details(tmp_path / "out" / "details" / "ada.json"), page

    first, page = grade("")
    assert first is not None
    assert first.earlier == ()
    assert "Earlier gradings" not in page
    began = run_in(tmp_path / "out")["started"]
    for text in ("\n", "\n"):  # the second time nothing is graded, and the page tells the same
        again, page = grade(text)
        assert again is not None
        assert [(one.graded, one.submission, one.points) for one in again.earlier] == [(began, first.submission, 0.0)]
        assert "Earlier gradings" in page
        assert began in page
