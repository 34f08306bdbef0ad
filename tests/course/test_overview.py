"""Several assignments of one course: the page that lists them, and the gradebook with a column for each."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from page_tree import tree
from sample_reports import report
from typer.testing import CliRunner

from autograder.cli.main import app
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report, to_bytes

HOSTILE = "=cmd|' /C calc'!A0<script>alert(1)</script>"
Given = Callable[[str, list[Report]], Path]


@pytest.fixture
def given(tmp_path: Path) -> Given:
    """Put reports below the course's folder as `grade --out` does."""

    def put(folder: str, reports: list[Report]) -> Path:
        for one in reports:
            path = tmp_path / "grades" / folder / "reports" / f"{file_stem(one.student)}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(to_bytes(one))
        return tmp_path / "grades"

    return put


def of(assignment: str, student: str, points: float | None = 3.0) -> Report:
    """A report of one item, passed or, where points is None, lost by the grader."""
    made = report(student)
    item = made.items[0]
    verdict = "not_graded" if points is None else "passed"
    item = replace(item, verdict=verdict, points=points, max_points=3.0, message="")
    return replace(made, assignment=assignment, items=(item,))


def gradebook(folder: Path, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["gradebook", str(folder), *more])
    return done.exit_code, done.output + (str(done.exception) if done.exception else "")


def rows_of(folder: Path) -> list[list[str]]:
    with (folder / "grades.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream))


def test_course_has_a_column_for_each_assignment_and_a_total(given: Given) -> None:
    given("earlier", [of("grpo_language_model", "ada", 1.5), of("grpo_language_model", "bela", None)])
    folder = given("first", [of("policy_gradient", "ada"), of("policy_gradient", "bela"), of("policy_gradient", "chi")])
    code, said = gradebook(folder)
    assert (code, rows_of(folder)) == (
        0,
        [
            ["student", "grpo_language_model", "policy_gradient", "total"],
            ["ada", "1.5", "3", "4.5"],
            ["bela", "", "3", ""],
            ["chi", "", "3", "3"],
        ],
    )
    assert "3 students, 2 assignments:" in said
    assert "2 handed in: 1 graded, 1 not graded, mean 1.5 of 3" in said
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert page.index('href="earlier/index.html">GRPO on') < page.index('href="first/index.html">Policy')
    assert 'href="first/feedback/ada.html"' in page
    assert page.count("not graded</a>") == 1


@pytest.mark.parametrize(
    ("assignment", "report", "sentence"),
    [
        ("compilers", None, "theirs holds grades of 'compilers', which is no assignment of this course"),
        ("grpo_language_model", "{}", "is no report, or is damaged"),
    ],
)
def test_folder_that_cannot_be_read_stops_it_before_anything_is_written(
    given: Given, assignment: str, report: str | None, sentence: str
) -> None:
    given("ours", [of("policy_gradient", "ada")])
    folder = given("theirs", [of(assignment, "ada")])
    if report is not None:
        (folder / "theirs" / "reports" / "bela.json").write_text(report, encoding="utf-8")
    code, said = gradebook(folder)
    assert (code != 0, sentence in said) == (True, True)
    assert {path.name for path in folder.iterdir()} == {"ours", "theirs"}


def test_page_says_maxima_missing_work_and_changes(given: Given) -> None:
    given("earlier", [of("grpo_language_model", "ada", 1.5)])
    folder = given("first", [of("policy_gradient", "ada"), of("policy_gradient", "bela")])
    path = folder / "first" / "reports" / "ada.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "final": 2.25}), encoding="utf-8")
    assert gradebook(folder)[0] == 0
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Policy gradient, of 3</button>" in page
    assert "total, of 6</button>" in page
    assert (
        '<a href="first/index.html">Policy gradient</a> <span class="title"><code>policy_gradient</code></span>' in page
    )
    assert page.count(">missing</td>") == 1
    assert page.count("<tr data-lacks>") == 1
    assert ">2.25</a><small>graded 3</small>" in page
    assert "GRPO on a language model: mean 50 per cent, median 50 per cent" in page
    assert "trend" not in page


def test_excused_student_is_said_to_be_and_counts_nowhere(given: Given) -> None:
    given("earlier", [of("grpo_language_model", "ada", 1.5), of("grpo_language_model", "bela", 3.0)])
    folder = given("first", [of("policy_gradient", "ada", 0.0), of("policy_gradient", "bela", 2.0)])
    path = folder / "first" / "reports" / "ada.json"
    excused = {"rule": "excused", "item": "", "before": 0.0, "after": None, "reason": "excused from this assignment"}
    excuse = {"final": None, "adjustments": [excused]}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | excuse), encoding="utf-8")
    code, said = gradebook(folder)
    assert code == 0
    assert "2 handed in: 1 graded, 1 excused, mean 2 of 3" in said.replace("mean 2.0", "mean 2")
    assert rows_of(folder)[1] == ["ada", "1.5", "", "1.5"]
    page = (folder / "index.html").read_text(encoding="utf-8")
    first = tree(page).find("table", class_="assignments")[0].find("tbody")[0].find("tr")[1]
    assert [cell.text for cell in first.find("td")] == ["21 excused", "0", "2", "2", "3", "1"]
    assert page.count("excused</a>") == 1
    assert "not graded</a>" not in page
    assert '<td class="number">2</td><td class="number">2</td>' in page  # mean and median are bela's


@pytest.mark.parametrize("folders", [("1-first", "2-second"), ("first", "second")])
def test_only_an_order_and_students_in_both_are_compared(given: Given, folders: tuple[str, str]) -> None:
    """Whoever left takes no part in a comparison, and without an order there is none."""
    given(folders[0], [of("policy_gradient", "ada", 1.5), of("policy_gradient", "left", 0.0)])
    folder = given(folders[1], [of("grpo_language_model", "ada", 3.0), of("grpo_language_model", "new", 0.0)])
    assert gradebook(folder)[0] == 0
    page = tree((folder / "index.html").read_text(encoding="utf-8"))
    told = "Policy gradient → GRPO on a language model: 1 student with a grade in both, on average 50 → 100 per cent"
    assert [" ".join(step.text.split()) for step in page.find("li") if "→" in step.text] == [told] * (
        folders[0] == "1-first"
    )
    assert len(page.find("line", class_="step")) == (folders[0] == "1-first")


def test_mistake_that_comes_back_is_told_with_its_students(given: Given) -> None:
    def made(assignment: str, student: str, *mistakes: str) -> Report:
        one = of(assignment, student)
        return replace(one, items=(replace(one.items[0], verdict="failed", points=0.0, mistakes=mistakes),))

    given("1-a", [made("policy_gradient", "ada", "sign", "mean"), made("policy_gradient", "bob", "sign")])
    folder = given("2-b", [made("grpo_language_model", "ada", "sign"), made("grpo_language_model", "bob", "mean")])
    assert gradebook(folder)[0] == 0
    (table,) = tree((folder / "index.html").read_text(encoding="utf-8")).find("table", class_="returning")
    rows = [[" ".join(cell.text.split()) for cell in row.find("td")] for row in table.find("tbody")[0].find("tr")]
    assert rows == [["Policy gradient 2, GRPO on a language model 1", "1", "ada"]]
    assert "<code>sign</code>" in (folder / "by-student" / "ada.html").read_text(encoding="utf-8")
    assert "<code>sign</code>" not in (folder / "by-student" / "bob.html").read_text(encoding="utf-8")


def test_page_of_a_student_tells_the_median_of_a_whole_class_alone(given: Given) -> None:
    students = ["ada", *(f"student {place}" for place in range(9))]
    given("1-a", [of("policy_gradient", student, 1.5) for student in students])
    folder = given("2-b", [of("grpo_language_model", student, 3.0) for student in students[:9]])
    assert gradebook(folder)[0] == 0
    page = tree((folder / "by-student" / "ada.html").read_text(encoding="utf-8"))
    rows = [[cell.text for cell in row.find("td")] for row in page.find("tbody")[0].find("tr")]
    assert rows == [["1.5 / 3", "50", "50"], ["3 / 3", "100", "–"]]
    assert page.find("p", class_="total")[0].text == "4.5 of 6 points in all"


def test_page_of_a_student_who_left_goes(given: Given) -> None:
    folder = given("1-a", [of("policy_gradient", "ada"), of("policy_gradient", "bela")])
    assert gradebook(folder)[0] == 0
    (folder / "1-a" / "reports" / "bela.json").unlink()
    assert gradebook(folder)[0] == 0
    assert [path.name for path in (folder / "by-student").iterdir()] == ["ada.html"]


def test_hostile_name_is_text_and_no_formula(given: Given) -> None:
    folder = given("a b&c", [of("policy_gradient", HOSTILE)])
    assert gradebook(folder)[0] == 0
    page = (folder / "index.html").read_text(encoding="utf-8")
    (over_course,) = (folder / "by-student").iterdir()
    assert "<script>alert" not in page + over_course.read_text(encoding="utf-8")
    assert 'href="a%20b%26c/index.html"' in page
    assert rows_of(folder)[1][0] == f"'{HOSTILE}"


def test_rules_are_applied_in_the_folder_of_each(given: Given, tmp_path: Path) -> None:
    folder = given("first", [of("policy_gradient", "ada")])
    (tmp_path / "policy.toml").write_text("[drop]\nlowest = 1\n", encoding="utf-8")
    code, said = gradebook(folder, "--policy", str(tmp_path / "policy.toml"))
    assert code != 0
    assert "rules are applied in the folder of each" in said


def test_assignments_and_folders_match_one_to_one(given: Given) -> None:
    given("first", [of("policy_gradient", "ada")])
    folder = given("again", [of("policy_gradient", "bela")])
    assert "holds grades of 'policy_gradient' twice, in again and first" in gradebook(folder)[1]
    given("again", [of("grpo_language_model", "chi")])
    assert "grade each into a folder of its own" in gradebook(folder)[1]
    assert not (folder / "index.html").exists()
