"""What the class's page makes of a graded folder: answers that agree, code, and final grades whenever rules change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graded_folder import page_without_times
from page_tree import Element, tree
from places import KIT

from autograder.authoring.fixtures.regenerate import solution_source
from autograder.course.batch import grade_all
from autograder.course.results import answers_of, background, rewrite_class_page
from autograder.gradebook.final_grades import Adjustment, Final
from autograder.gradebook.grades_folder import stored_reports
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.submissions.finding import find

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
MODULE = f"{ASSIGNMENT.module}.py"
RIGHT = "return torch.tensor(rewards, dtype=torch.float32, device=responses.device)"
SHARED = ("ada", "bela")  # who wrote one wrong answer in two ways


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, solution = tmp_path_factory.mktemp("class"), solution_source(ASSIGNMENT)
    assert solution.count(RIGHT) == 1
    wrong = {
        "ada": f"{RIGHT} * 3.7",
        "bela": f"scaled = [[3.7 * one for one in row] for row in rewards]\n    {RIGHT.replace('rewards', 'scaled')}",
        "cyd": f"{RIGHT} * 2.9",
        "dana": RIGHT,
    }
    for student, text in wrong.items():
        (folder / student).mkdir()
        (folder / student / MODULE).write_text(solution.replace(RIGHT, text))
    grader = Grader.of(ASSIGNMENT, read_fixtures(ASSIGNMENT), counterexamples=False)
    grade_all(grader, find([folder], ASSIGNMENT.module), folder / "grades")
    return folder / "grades"


def page(out: Path) -> Element:
    return tree((out / "index.html").read_text())


def test_students_with_one_wrong_answer_share_it(graded: Path) -> None:
    ada, bela, cyd = (answers_of(graded, student) for student in ("ada", "bela", "cyd"))
    assert ada == bela
    assert ada.keys() == cyd.keys()
    assert not set(ada.values()) & set(cyd.values())
    assert answers_of(graded, "dana") == answers_of(graded, "nobody") == {}
    (card,) = page(graded).find("section", **{"aria-labelledby": "shared"})[0].find("article")
    assert {link.text for link in card.find(class_="people")[0].find("a")} == set(SHARED)


def test_catalogue_entry_holds_the_students_own_text(graded: Path) -> None:
    (card,) = page(graded).find("section", **{"aria-labelledby": "shared"})[0].find("article")
    entry = card.find("pre")[-1].text if card.find("pre") else ""
    assert "return torch.tensor(rewards, dtype=torch.float32, device=responses.device) * 3.7" in entry
    assert "Return the reward of every response" not in entry


def test_fingerprints_stay_with_staff(graded: Path) -> None:
    """They are made of hidden cases too: no report, no student's page and no gradebook may hold one."""
    marks = {mark.encode() for student in (*SHARED, "cyd") for mark in answers_of(graded, student).values()}
    assert marks
    holding = {
        path.parent.name for path in graded.rglob("*") if path.is_file() and any(m in path.read_bytes() for m in marks)
    }
    assert holding == {"details"}


def test_page_knows_contract_and_text_of_the_assignment(graded: Path) -> None:
    known = background(ASSIGNMENT, graded)
    assert known.sections.keys() == set(ASSIGNMENT.functions)
    assert known.sections["compute_deltas"] == "compute_deltas"
    assert "standard deviation" in known.clauses["population-std"]
    assert not [one for one in known.clauses.values() if "`" in one or one.endswith((":", ";"))]
    assert known.clauses["ratio-of-differences"].startswith("unclipped, loss = -mean(ratio * delta), ratio = exp(")
    assert known.code_of("dana", "compute_reward") == ""  # what is right is nobody's example
    assert known.code_of("nobody", "compute_reward") == ""


def test_rules_write_finals_into_the_page_and_out_again(graded: Path) -> None:
    before = (graded / "index.html").read_text()
    reports = stored_reports(graded)
    finals = {one.student: Final(50.5, (), one.max_points) for one in reports}
    finals["cyd"] = Final(None, (Adjustment("excused", "", 1.0, None, "excused from this assignment"),), 100)
    rewrite_class_page(graded, reports, ASSIGNMENT, finals)
    root = page(graded)
    rows = root.find("table", id="class")[0].find("tbody")[0].find("tr")
    told = [row.find("td")[0].text.split(", ")[0] for row in rows]
    assert told == ["50.5", "50.5", "–", "50.5"]
    assert [row.find("td")[0].text for row in rows][2] == "–, excused"
    assert "cyd" not in root.find("section", **{"aria-labelledby": "items"})[0].text
    rewrite_class_page(graded, reports, ASSIGNMENT, None)
    assert page_without_times((graded / "index.html").read_text()) == page_without_times(before)
    assert (graded / "index.html").read_text() == before  # times and changes, too, are those of the run


@pytest.mark.parametrize("spoilt", ["", "[]", "{", '{"changes": 3}', '{"changes": [[1]]}', "[" * 100_000])
def test_unreadable_run_still_leaves_a_page(graded: Path, tmp_path: Path, spoilt: str) -> None:
    (tmp_path / "index.html").write_text("old")
    (tmp_path / "run.json").write_text(spoilt)
    rewrite_class_page(tmp_path, stored_reports(graded), ASSIGNMENT, None)
    assert len(page(tmp_path).find("table", id="class")[0].find("tbody")[0].find("tr")) == 4


def test_the_changes_of_a_run_are_kept_for_whoever_writes_the_page_again(graded: Path) -> None:
    assert json.loads((graded / "run.json").read_text())["changes"] is None  # a first run has none
