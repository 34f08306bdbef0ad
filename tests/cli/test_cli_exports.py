"""`export` and `bundle` on the command line: exit codes, what is printed, and one sentence for whatever goes wrong."""

from __future__ import annotations

import functools
import json
import subprocess
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from in_process import autograder_in_process
from places import DOWNLOADS, KIT
from sample_reports import item, report, write_grades

from autograder.gradebook.final_grades import Adjustment
from autograder.pages.student_page import feedback_page
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report

COLUMN = "HW5 GRPO (123456)"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def autograder() -> Run:
    """Run the command line in this process, in the kit's own folder."""
    return functools.partial(autograder_in_process, KIT)


def points(student: str, value: float) -> Report:
    return report(student, item("a", value, 100.0))


@pytest.fixture
def grades(tmp_path: Path) -> Path:
    """The grades of two students whom every platform knows, and of one whom none does."""
    reports = [points("ada", 100.0), points("bela", 62.5), points("stranger\u202e", 1.0)]
    folder = write_grades(tmp_path / "grades", *reports)
    (folder / "feedback").mkdir()
    for one in reports:
        (folder / "feedback" / f"{file_stem(one.student)}.html").write_text(feedback_page(one), encoding="utf-8")
    return folder


@pytest.mark.parametrize("options", [("csv",), ("canvas", COLUMN)], ids=lambda one: one[0])
def test_every_export_says_which_question_is_half_marked(
    autograder: Run, grades: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    adjusted = {"ada": [Adjustment("question", "why", None, 3, "")], "bela": [Adjustment("excused", "", 3, None, "")]}
    for path in (grades / "reports").iterdir():
        told = json.loads(path.read_text(encoding="utf-8"))
        told |= {"final": 3, "adjustments": [asdict(row) for row in adjusted.get(path.stem, [])]}
        path.write_text(json.dumps(told), encoding="utf-8")
    more = ["--gradebook", DOWNLOADS / "canvas-gradebook.csv", "--assignment-column", COLUMN] if options[1:] else []
    done = autograder("export", options[0], grades, *more, "--out", tmp_path / "made")
    assert "autograder: HALF MARKED: why: 1 marked, 1 left: stranger\\u202e.\n" in done.stderr


def test_canvas_says_who_got_no_grade(autograder: Run, grades: Path, tmp_path: Path) -> None:
    out = tmp_path / "canvas.csv"
    gradebook = DOWNLOADS / "canvas-gradebook.csv"
    done = autograder("export", "canvas", grades, "--gradebook", gradebook, "--assignment-column", COLUMN, "--out", out)
    assert done.returncode == 0
    assert done.stdout == f"{out}: 2 grades; 15 cells unchanged.\n"
    assert "NOT EXPORTED" in done.stderr
    assert "stranger\\u202e" in done.stderr
    assert "\u202e" not in done.stderr + done.stdout + out.read_text(encoding="utf-8")


def test_moodle_gets_a_worksheet_and_feedback(autograder: Run, grades: Path, tmp_path: Path) -> None:
    out, feedback = tmp_path / "moodle.csv", tmp_path / "feedback.zip"
    options = ["--worksheet", DOWNLOADS / "moodle-worksheet.csv", "--roster", DOWNLOADS / "roster.csv"]
    done = autograder("export", "moodle", grades, *options, "--out", out, "--feedback-zip", feedback)
    assert done.returncode == 0
    assert done.stdout == f"{out}: 2 grades.\n{feedback}: 2 feedback pages.\n"
    with zipfile.ZipFile(feedback) as archive:
        assert "Ada Lovelace_40001_assignsubmission_file_/feedback.html" in archive.namelist()


WRITERS: dict[str, list[str | Path]] = {
    "csv": ["export", "csv", "{grades}", "--out", "{path}"],
    "canvas": [
        *("export", "canvas", "{grades}", "--gradebook", DOWNLOADS / "canvas-gradebook.csv"),
        *("--column", COLUMN, "--out", "{path}"),
    ],
    "bundle": ["bundle", "github", "--assignment", "bandits", "--zip", "{path}"],
}


@pytest.mark.parametrize("arguments", WRITERS.values(), ids=WRITERS.keys())
def test_only_what_the_kit_wrote_is_replaced(
    autograder: Run, grades: Path, tmp_path: Path, arguments: list[str | Path]
) -> None:
    path = tmp_path / "out"
    given = {"{grades}": grades, "{path}": path}
    command = [given.get(str(one), one) for one in arguments]
    path.write_text("mine", encoding="utf-8")
    done = autograder(*command)
    assert done.returncode == 2
    assert f"{path} is not as autograder wrote it. Move what you need out of the way" in done.stderr
    assert path.read_text(encoding="utf-8") == "mine"
    assert autograder(*command, "--replace").returncode == 0
    made = path.read_bytes()
    assert made != b"mine"
    assert autograder(*command).returncode == 0
    path.write_bytes(made + b" ")
    assert autograder(*command).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("csv nowhere --out o.csv", "holds no reports"),
        ("csv {grades} --out /proc/nowhere/o", "cannot be written"),
        ("csv {grades} --out o.csv --roster nowhere.csv", "cannot be read"),
        ("canvas {grades} --gradebook {platforms}/roster.csv --column x --out o.csv", "export it from Canvas"),
        ("moodle {grades} --worksheet {platforms}/roster.csv --out o.csv", "has no single column"),
        (
            "moodle {grades} --worksheet {platforms}/moodle-worksheet.csv --out o.csv",
            "3 students: give --roster a file",
        ),
    ],
)
def test_unexportable_is_one_sentence_and_code_two(autograder: Run, grades: Path, arguments: str, says: str) -> None:
    done = autograder("export", *(one.format(grades=grades, platforms=DOWNLOADS) for one in arguments.split()))
    assert done.returncode == 2
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_every_bundle_is_one_zip(autograder: Run, tmp_path: Path) -> None:
    for platform, top, more in (
        ("gradescope", "setup.sh", ["--hidden-cases", "after_due_date"]),
        ("github", "bandits/.github/workflows/check.yml", []),
        ("prairielearn", "bandits/info.json", ["--image", "course/grader:1"]),
    ):
        path = tmp_path / f"{platform}.zip"
        done = autograder("bundle", platform, "--zip", path, "--assignment", "bandits", *more)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{path}: ")
        with zipfile.ZipFile(path) as archive:
            assert top in archive.namelist()


def test_class_is_graded_from_a_download(autograder: Run, tmp_path: Path) -> None:
    path = tmp_path / "submissions.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("lovelaceada_1001_5_policy_gradient.py", "")
        archive.writestr("eve_LATE_1666_6_policy_gradient.py", "")
    roster = tmp_path / "roster.csv"
    roster.write_text("student,id\nAda,1001\nBen,1002\n", encoding="utf-8")
    out, named = tmp_path / "grades", ("--assignment", "policy_gradient")
    assert autograder("grade", path, "--out", out, *named).returncode == 2
    command = ("grade", path, "--class-zip", "--roster", roster, "--out", out, *named)
    done = autograder(*command, "--deadline", "2027-03-01")
    assert done.returncode == 0
    assert "Handed in nothing: Ben." in done.stderr
    assert "NOT IN THE ROSTER, but graded: eve_1666." in done.stderr
    assert sorted(one.name for one in (out / "reports").iterdir()) == ["Ada.json", "eve_1666.json"]
    assert "handed in late" in (out / "feedback" / "eve_1666.html").read_text(encoding="utf-8")
    again = autograder(*command)
    assert "2 of them unchanged since the last run" in again.stdout
