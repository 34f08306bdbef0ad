"""nbgrader's real commands and its formgrader in a real browser, from the source notebook to the exported CSV.

One course and one class of five serve all of these tests; without the extra `nbgrader` they skip.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium
from nbgrader_course import (
    ANSWER,
    NAME,
    autograder,
    cell,
    class_of_five,
    course,
    exported,
    files_in,
    hand_in,
    jupyter,
    nbgrader,
    read_notebook,
    refuse_what_is_for_staff,
    reports_in,
    rows_of,
    scores,
    source,
    wrong,
)
from places import KIT
from sample_reports import write_report

from autograder.authoring.handout.release import handout_files
from autograder.grading.assignment import find_assignment
from autograder.vocabulary.report import ItemResult, Report

pytest.importorskip("nbgrader", reason="the extra nbgrader is not installed")
pytestmark = pytest.mark.long  # nbgrader's whole road, by its own commands

CLASS = ["ada", "ben", "cleo", "dov", "eve"]
QUESTIONS = {"question-spread", "question-first-clipped-loss", "question-reward-leak", "question-loss-curves"}
FORGED = "def score(assignment, item):\n    return {'loss-clipped': 5.0}.get(item, 1.0)\n"

RIGHTS = {"ben": 0o700, "cleo": 0o750, "dov": 0o755}  # of the folders of what they handed in


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course after `generate_assignment`, with five submissions, graded by us and exported to nbgrader."""
    root = course(tmp_path_factory.mktemp("course") / "kit")
    nbgrader(root, "generate_assignment", NAME)
    class_of_five(root)
    for student, rights in RIGHTS.items():
        (root / "submitted" / student / NAME).chmod(rights)
    autograder(root, "grade", "submitted", "--out", "grades", "--jobs", "2")
    export(root)
    return root


@pytest.fixture(scope="module")
def reports(root: Path) -> dict[str, Report]:
    return reports_in(root / "grades")


def comments(database: Path, student: str) -> dict[str, str]:
    query = (
        "select base_cell.name, auto_comment from comment join base_cell on base_cell.id = comment.cell_id"
        " join submitted_notebook on submitted_notebook.id = comment.notebook_id"
        " join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
        f" where student_id = '{student}' and auto_comment is not null"
    )
    return dict(rows_of(database, query))


def export(
    root: Path, *more: str, grades: str | Path = "grades", course: str | Path = "solution", code: int = 0
) -> str:
    return autograder(root, "export", "nbgrader", grades, "--course", course, *more, code=code)


# From source to release


def test_generate_assignment_makes_the_committed_handout_and_nothing_else(root: Path) -> None:
    assert files_in(root / "handout" / NAME) == handout_files(find_assignment(KIT, NAME))
    names = [{path.name for path in (kit / "handout").iterdir()} for kit in (root, KIT)]
    assert names[0] == names[1]


def test_release_holds_nothing_for_staff(root: Path) -> None:
    refuse_what_is_for_staff(root)


def test_validate_passes_the_source_and_fails_the_release(root: Path) -> None:
    said = nbgrader(root, "validate", f"{NAME}/{NAME}.ipynb")
    assert "Success! Your notebook passes all the tests." in said
    said = nbgrader(root, "validate", f"../handout/{NAME}/{NAME}.ipynb")
    items = find_assignment(KIT, NAME).items
    failed = re.search(r"VALIDATION FAILED ON (\d+) CELL", said)
    assert failed
    assert int(failed[1]) >= len(items)
    assert said.count("is not implemented yet.") == len(items)
    head = re.search(r"TODO  deltas-centered .* 0 / 3$", said, re.MULTILINE)
    assert head, "nbgrader cuts long lines"


# The two roads


def test_gradebook_holds_the_points_of_each_item(root: Path, reports: dict[str, Report]) -> None:
    found = scores(root / "gradebook.db")
    assert sorted(found) == CLASS
    for student, report in reports.items():
        assert {name: found[student][name][0] for name in found[student].keys() - QUESTIONS} == {
            item.item: item.points for item in report.items
        }
        assert found[student].keys() >= QUESTIONS
    points = {student: reports[student].points for student in CLASS}
    assert [points[student] for student in ("ada", "ben", "cleo")] == [100, 100, 100]
    assert 50 < points["dov"] < 100
    assert 50 < points["eve"] < 100


def test_nbgraders_autograde_agrees_on_honest_work(root: Path, reports: dict[str, Report], tmp_path: Path) -> None:
    without = shutil.ignore_patterns("autograded", "submitted")
    other = shutil.copytree(root, tmp_path / "kit", ignore=without)
    folder = hand_in(other, "dov", py="raise SystemExit", ipynb=wrong(other))
    (folder / "autograder").mkdir()
    (folder / "autograder" / "__init__.py").write_text("")
    (folder / "autograder" / "live.py").write_text(FORGED)  # a checker of one's own takes nobody's place
    nbgrader(other, "autograde", NAME)
    assert sorted(path.name for path in (other / "autograded").iterdir()) == ["dov"]
    found = scores(other / "gradebook.db")["dov"]
    assert {name: found[name][0] for name in found.keys() - QUESTIONS} == {
        item.item: item.points for item in reports["dov"].items
    }
    assert any(0 < item.points < item.max_points for item in reports["dov"].items if item.points is not None)
    copied = {path.name for path in (other / "autograded" / "dov" / NAME).iterdir()}
    assert copied == {f"{NAME}.ipynb", "sorting_task.py"}


def test_shown_notebook_is_as_private_as_its_folder(root: Path) -> None:
    for student, rights in RIGHTS.items():
        written = [path for path in (root / "autograded" / student / NAME).iterdir() if path.is_file()]
        assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {rights & 0o644}, student


def test_answer_in_words_waits_for_a_person(root: Path) -> None:
    found = scores(root / "gradebook.db")
    waiting = {(student, name) for student in CLASS for name, score in found[student].items() if score[2]}
    assert waiting == {("ben", "question-first-clipped-loss"), ("cleo", "question-spread")}
    assert found["ada"]["question-spread"][:2] == (0.0, None)
    assert comments(root / "gradebook.db", "ada") == dict.fromkeys(QUESTIONS, "No response.")


def test_answer_in_an_unnamed_cell_is_named(root: Path, tmp_path: Path) -> None:
    database = shutil.copy(root / "gradebook.db", tmp_path / "gradebook.db")
    said = export(root, "--db", str(database))
    assert "5 students; to mark by hand: ben, cleo." in said
    assert "Answered in cells without nbgrader's name, so mark by hand: cleo: question-spread." in said
    shown = read_notebook(root / "autograded" / "cleo" / NAME / f"{NAME}.ipynb")
    assert source(cell(shown, "question-spread")) == "Of the rewards of one prompt."


def test_comments_say_what_is_wrong_at_the_answer(root: Path) -> None:
    found = comments(root / "gradebook.db", "dov")
    assert found.keys() == {"compute_deltas", "compute_loss"} | QUESTIONS
    assert re.search(r"deltas-normalized, 0 of \d+:", found["compute_deltas"])
    assert "    A standard deviation can divide by G or by G - 1." in found["compute_deltas"]
    assert "had not finished after 5 seconds" in comments(root / "gradebook.db", "eve")["compute_deltas"]


def test_shown_notebook_has_answers_and_results_and_runs_nothing(root: Path) -> None:
    shown = read_notebook(root / "autograded" / "dov" / NAME / f"{NAME}.ipynb")
    assert "unbiased=False" in source(cell(shown, "compute_deltas"))
    value, stream = cell(shown, "deltas-normalized")["outputs"]
    assert "".join(value["data"]["text/plain"]) == "0.0"
    assert "5 of 5 values differ" in "".join(stream["text"])
    ben, eve = (read_notebook(root / "autograded" / name / NAME / f"{NAME}.ipynb") for name in ("ben", "eve"))
    assert f"```\n{ANSWER}\n```" in source(cell(ben, "question-first-clipped-loss"))
    assert not list(root.rglob("owned"))
    assert source(cell(eve, "deltas-max")).startswith("# deltas-max:")
    assert eve["metadata"]["kernelspec"]["name"] == "python3"


def test_feedback_page_runs_nothing_of_a_students(root: Path, reports: dict[str, Report]) -> None:
    nbgrader(root, "generate_feedback", NAME)
    page = (root / "feedback" / "dov" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "5 of 5 values differ" in page
    assert f"{reports['dov'].points} / 120.0" in page
    page = (root / "feedback" / "ben" / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    assert "document.title='owned'</script>" not in page
    assert "<img src=x" not in page


# A second time


def test_what_a_person_gave_survives_a_second_export(root: Path, tmp_path: Path) -> None:
    graded = scores(root / "gradebook.db")["dov"]["loss-clipped"][0]
    database = shutil.copy(root / "gradebook.db", tmp_path / "gradebook.db")
    _give(database, "ben", "question-first-clipped-loss", 4.0)
    _give(database, "dov", "loss-clipped", 2.5)
    export(root, "--db", str(database))
    found = scores(database)
    assert found["ben"]["question-first-clipped-loss"] == (None, 4.0, False)
    assert found["dov"]["loss-clipped"] == (graded, 2.5, False)
    grades = shutil.copytree(root / "grades", tmp_path / "grades")
    _change(grades, "dov", "loss-clipped", points=5.0, verdict="passed")
    _change(grades, "eve", "kl-values", points=None, verdict="not_graded")
    export(root, "--db", str(database), grades=grades)
    found = scores(database)
    assert found["dov"]["loss-clipped"] == (5.0, 2.5, True)  # what changed under a manual score is to be looked at
    assert found["eve"]["kl-values"] == (None, None, True)  # not graded is no zero


def _give(database: Path, student: str, name: str, points: float) -> None:
    """What formgrader does when a person types a score."""
    connection = sqlite3.connect(database)
    with connection:
        changed = connection.execute(
            "update grade set manual_score = ?, needs_manual_grade = 0"
            " where cell_id in (select id from base_cell where name = ?) and notebook_id in"
            " (select notebook.id from submitted_notebook as notebook join submitted_assignment as submission"
            "  on submission.id = notebook.assignment_id where student_id = ?)",
            (points, name, student),
        )
        assert changed.rowcount == 1
    connection.close()


def _change(grades: Path, student: str, name: str, **changes: Any) -> None:
    path = grades / "reports" / f"{student}.json"
    data = json.loads(path.read_text())
    next(item for item in data["items"] if item["item"] == name).update(changes)
    path.write_text(json.dumps(data))


def test_being_late_costs_what_nbgraders_settings_say(root: Path, tmp_path: Path) -> None:
    late = shutil.copytree(root, tmp_path / "kit", ignore=shutil.ignore_patterns("autograded", "feedback"))
    nbgrader(late, "db", "assignment", "add", NAME, "--duedate", "2026-03-01 12:00:00 UTC")
    with (late / "solution" / "nbgrader_config.py").open("a") as stream:
        stream.write('c.LateSubmissionPlugin.penalty_method = "zero"\n')
    export(late)
    rows = exported(late)
    assert [float(rows["ben"][key]) for key in ("raw_score", "late_submission_penalty", "score")] == [100, 100, 0]
    assert float(rows["ada"]["score"]) == 100


# What cannot be exported


def test_gradebook_of_other_points_is_refused(root: Path, tmp_path: Path) -> None:
    said = export(root, "--db", str(tmp_path / "new.db"), code=2)
    assert f"There is no gradebook {tmp_path / 'new.db'}: run `nbgrader generate_assignment {NAME}` first." in said
    assert not (tmp_path / "new.db").exists()
    database = shutil.copy(root / "gradebook.db", tmp_path / "old.db")
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(
            "update grade_cells set max_score = 7 where id in (select id from base_cell where name = 'kl-values')"
        )
    connection.close()
    assert "knows kl-values with 7 points, not with 3 points" in export(root, "--db", str(database), code=2)


def test_folder_without_settings_or_reports_is_refused(root: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(root / "fixtures" / NAME, bare / "fixtures" / NAME)
    (bare / "solution").mkdir()
    said = export(root, course=bare, code=2)
    assert "holds no nbgrader_config.py" in said
    (tmp_path / "empty").mkdir()
    said = export(root, grades=tmp_path / "empty", code=2)
    assert f"{tmp_path / 'empty'} holds no reports: give the folder that `autograder grade … --out` wrote." in said


def test_name_leading_out_of_the_course_is_refused_alone(
    root: Path, reports: dict[str, Report], tmp_path: Path
) -> None:
    (tmp_path / "reports").mkdir()
    write_report(reports["ben"], tmp_path / "reports" / "ben.json")
    write_report(replace(reports["ada"], student="../ada"), tmp_path / "reports" / "x.json")
    said = export(root, grades=tmp_path, code=3)
    assert "NOT EXPORTED: ../ada: '../ada' cannot be a student's name in nbgrader" in said
    assert ": 1 student;" in said


def test_marks_without_the_work_to_show_are_refused(root: Path, tmp_path: Path) -> None:
    other = shutil.copytree(root, tmp_path / "kit")
    (other / "submitted").rename(other / "collected")
    shutil.rmtree(other / "autograded")
    said = export(other, code=3)
    assert "NOT EXPORTED: ada: " in said
    assert "formgrader would show no work beside the marks" in said
    assert not (other / "autograded").exists()


@pytest.mark.parametrize("text", ["<script>x</script>", "```\n# heading", "[x](javascript:y)", "\x1b[31m\u202e"])
def test_a_comment_shows_a_students_words_as_they_are(text: str) -> None:
    from nbconvert.filters import markdown2html

    from autograder.platforms.nbgrader import comment_on

    item = find_assignment(KIT, NAME).items[0]
    result = ItemResult(
        item.id, item.function, item.title, 0.0, item.points, "raised", (), f"raised ValueError: {text}", "", 0.0, ()
    )
    page = markdown2html(comment_on([result]))
    assert page.count("<pre>") == 1
    assert not re.search(r"<script|<h1|<a |\x1b|\u202e", page)


# In the browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def open_submission(page: Any, address: str, student: str) -> None:
    page.goto(f"{address}/formgrader/gradebook/{NAME}/{NAME}")
    link = page.locator("td a", has_text=re.compile(f"^{student}$"))
    page.goto(address + link.get_attribute("href"))  # names are hidden until somebody asks for them
    for box in ("reward-values", "question-spread-comment"):  # scores and comments come one after the other
        page.wait_for_function(f"() => /^(\\d+|No response.)$/.test(document.getElementById('{box}')?.placeholder)")


def test_formgrader_shows_scores_and_exports_a_manual_grade(
    browser: Any, root: Path, reports: dict[str, Report], tmp_path: Path
) -> None:
    other = shutil.copytree(root, tmp_path / "kit")
    with jupyter(other, "solution") as address, browser.new_page() as page:
        open_submission(page, address, "dov")
        script = "boxes => boxes.map(box => [box.id, box.value || box.placeholder])"
        shown = page.eval_on_selector_all("input.score", script)
        points = {item.item: item.points for item in reports["dov"].items}
        assert {name: float(value) for name, value in shown} == points | dict.fromkeys(QUESTIONS, 0.0)
        assert "5 of 5 values differ" in page.locator("#compute_deltas-comment").get_attribute("placeholder")
        assert page.get_by_text("5 of 5 values differ (allowed: 1e-06 relative)").count() >= 1
        open_submission(page, address, "ben")
        assert page.get_by_text("The ratio is 1 there.").count() == 1
        assert page.title() == NAME  # nothing of the answer ran
        box = page.locator("#question-first-clipped-loss")
        box.fill("4")
        with page.expect_response(lambda answer: "/formgrader/api/grade/" in answer.url and answer.ok):
            box.blur()
    assert float(exported(other)["ben"]["score"]) == 104
