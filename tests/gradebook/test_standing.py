"""What a student's page tells of the class, where staff ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_reports import item, not_graded, report, write_grades

from autograder.gradebook.grades_folder import STANDING, read_grades, standing, with_standing, write_standings
from autograder.pages.student_page import feedback_page
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import Report

BEGIN = f"<!-- {STANDING} -->"


def a_class(folder: Path, *reports: Report) -> Path:
    write_grades(folder, *reports)
    for one in reports:
        write_atomically(folder / "feedback" / f"{file_stem(one.student)}.html", feedback_page(one))
    return folder


def students(count: int) -> list[Report]:
    return [report(f"student {place}", item("a", float(place), 20.0, "failed")) for place in range(count)]


def page(folder: Path, student: str) -> str:
    return (folder / "feedback" / f"{file_stem(student)}.html").read_text(encoding="utf-8")


def test_the_median_and_the_share_with_fewer_points_are_told() -> None:
    assert standing(8.0, range(11)) == "The median of the class is 5; 73 % of 11 have fewer points."


@pytest.mark.parametrize(("points", "share"), [(3.0, "0 %"), (5.0, "50 %")])
def test_who_has_as_many_points_has_not_fewer(points: float, share: str) -> None:
    assert f"; {share} of 12 have fewer" in standing(points, [3.0] * 6 + [5.0] * 6)


def test_nine_students_are_too_few_to_tell_of_one_of_them() -> None:
    assert standing(1.0, range(9)) == ""
    assert standing(1.0, range(10)) != ""


def test_every_graded_students_page_tells_it_and_no_other_students_name(tmp_path: Path) -> None:
    folder = a_class(tmp_path, *students(12), not_graded("lost"))
    assert write_standings(folder, read_grades(folder)) == 12
    told = page(folder, "student 11")
    assert "The median of the class is 5.5; 92 % of 12 have fewer points." in told
    assert told.index("<h1>") < told.index(BEGIN) < told.index("</header>")
    assert "student 10" not in told
    assert BEGIN not in page(folder, "lost")


def test_telling_it_again_changes_nothing_and_taking_it_away_leaves_no_trace(tmp_path: Path) -> None:
    before = feedback_page(report("</header>\n" + BEGIN))
    once = with_standing(before, "So many.")
    assert once.count(BEGIN) == 1
    assert with_standing(once, "So many.") == once
    assert with_standing(once, "") == before


def test_pages_of_a_small_class_stay_as_they_are(tmp_path: Path) -> None:
    folder = a_class(tmp_path, *students(9))
    before = page(folder, "student 3")
    assert write_standings(folder, read_grades(folder)) == 0
    assert page(folder, "student 3") == before
