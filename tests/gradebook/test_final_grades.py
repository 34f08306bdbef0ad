"""Final grades in the folder, on pages and at the command line; nothing is written where one row cannot be used."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from in_process import autograder_in_process as autograder
from sample_reports import THREE, of_three, write_report

from autograder.course.overview import read_course
from autograder.gradebook.decisions import JOURNAL, Override
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.grades_folder import (
    common_maximum,
    read_grades,
    stored_reports,
    with_adjustments,
    write_finals,
)
from autograder.gradebook.rules import Policy, Rules, read_rules
from autograder.pages.student_page import feedback_page
from autograder.platforms.gradebooks import plain_csv
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import read_report

OVERRIDES = "student,item,points,comment\n"
TIMED = {"run.json", "index.html", "reports/ada.json", "reports/bela.json"}  # what holds measured times


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What grading two students wrote."""
    for report in (of_three("ada", b=0.0), of_three("=cmd()", a=2.0)):
        stem = file_stem(report.student)
        write_report(report, tmp_path / "g/reports" / f"{stem}.json")
        write_atomically(tmp_path / "g/feedback" / f"{stem}.html", feedback_page(report))
    return tmp_path / "g"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def table(out: Path) -> list[dict[str, str]]:
    with (out / "grades.csv").open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def apply(out: Path, *overrides: Path) -> Rules | None:
    rules = read_rules(out, THREE, None, overrides, None)
    if rules is not None:
        rules.check_students([], out)
        write_finals(out, stored_reports(out), THREE, rules)
    return rules


def test_finals_stand_in_gradebook_report_and_page(out: Path, tmp_path: Path) -> None:
    graded = read_report(out / "reports/ada.json")
    rows = 'ada,b,3,"=HYPERLINK(""x"") <script>alert(1)</script>"\n=cmd(),,,=1+1\n'
    apply(out, write(tmp_path / "o.csv", OVERRIDES + rows))
    formula, ada = table(out)
    assert [*formula] == [
        *("student", "points", "max_points", "status", "a", "b", "c", "final", "final_max", "adjustments")
    ]
    assert [*formula.values()] == ["'=cmd()", "18", "20", "graded", "2", "6", "10", "18", "20", "'=1+1"]
    assert [*ada.values()][:8] == ["ada", "14", "20", "graded", "4", "0", "10", "17"]
    told = json.loads((out / "reports/ada.json").read_text())
    assert (told["points"], told["final"], told["adjustments"][0]["before"]) == (14, 17, 0)
    assert json.loads((out / "adjustments.json").read_text())["students"]["ada"]["final"] == 17
    assert read_report(out / "reports/ada.json") == graded  # read like any other
    page = (out / "feedback/ada.html").read_text()
    large = page.index("<strong>17</strong> of 20 points, the final grade")
    assert large < page.index("&lt;script&gt;") < page.index("<strong>14</strong> of 20") < page.index("<main>")
    assert "<script>alert" not in page


def test_rules_are_kept_and_leave_no_trace_when_taken_away(out: Path, tmp_path: Path) -> None:
    before = contents(out)
    apply(out, write(tmp_path / "o.csv", f"{OVERRIDES}ada,b,3,why\n"))
    with_rules = contents(out)
    assert apply(out) is not None
    assert contents(out) == with_rules
    (out / JOURNAL).unlink()
    assert apply(out) is None
    write_finals(out, stored_reports(out), THREE, None)
    after = contents(out)
    assert after.pop("grades.csv").splitlines()[0] == b"student,points,max_points,status,a,b,c"
    assert after == before


@pytest.mark.parametrize("rows", ["ada,b,3,why\nnobody,b,3,why\n", "ada,b,9,why\n"])
def test_nothing_is_written_where_one_row_is_wrong(out: Path, tmp_path: Path, rows: str) -> None:
    before = contents(out)
    with pytest.raises(UsageError, match=r"o\.csv, line \d: "):
        apply(out, write(tmp_path / "o.csv", OVERRIDES + rows))
    assert contents(out) == before


def test_maximum_with_questions_stands_wherever_a_final_does(out: Path, tmp_path: Path) -> None:
    question = Override("ada", "question-spread", 4.0, "read", "line 2", 5.0)
    rules = Rules(overrides=[question, Override("ada", "b", 6, "asked", "line 3")])
    write_finals(out, stored_reports(out), THREE, rules)
    assert [(row["points"], row["max_points"], row["final"], row["final_max"]) for row in table(out)] == [
        ("18", "20", "18", "25"),
        ("14", "20", "24", "25"),
    ]
    assert "<strong>24</strong> of 25 points, the final grade</p>" in (out / "feedback/ada.html").read_text()
    stranger, ada = read_grades(out)
    assert (ada.points, ada.max_points, stranger.points, stranger.max_points) == (24, 25, 18, 25)
    assert common_maximum([ada, stranger]) == 25
    assert plain_csv([ada]).splitlines()[1].startswith("ada,24,25,graded")
    course = read_course(tmp_path, {"toy": "Toy"})
    assert course[0].figures.max_points == 25
    extra = final_of(of_three(), Rules(Policy(questions={"extra_credit": True}), [question]))
    assert "<strong>24</strong> of 20 points, the final grade, with extra credit" in with_adjustments(
        feedback_page(of_three()), extra
    )


def test_page_has_its_final_grade_once_and_no_stand_in() -> None:
    page = feedback_page(of_three("<main>\n<!-- final grade -->"))
    final = final_of(of_three(), Rules(overrides=[Override("ada", "", 1, "why", "line 2")]))
    once = with_adjustments(page, final)
    assert once.count("<!-- final grade -->") == 1
    assert with_adjustments(once, final) == once
    assert with_adjustments(once, Final(20.0, (), 20)) == page


# The command line


@pytest.fixture
def kit(kit: Path) -> Path:
    for name in ("ada", "bela"):
        (kit / "class" / name).mkdir(parents=True)
        (kit / "class" / name / "toy.py").write_text("")
    return kit


def test_overrides_survive_grading_again_and_wrong_files_stop_it(kit: Path) -> None:
    write(kit / "o.csv", f"{OVERRIDES}ada,ramp-values,5,by hand\n")
    done = autograder(kit, "grade", "class", "--out", "g", "--overrides", "o.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-2:] == [
        "2 final grades in g/grades.csv; 1 differs from what was earned:",
        "  ada  0 → 5  ramp-values 0 → 5: by hand",
    ]
    before = contents(kit / "g")
    for again in (("gradebook", "g"), ("grade", "class", "--out", "g", "--fresh")):
        assert autograder(kit, *again).returncode == 0
        assert {name for name, data in contents(kit / "g").items() if before[name] != data} <= TIMED
    for row, sentence in (
        ("bela,ramp-values,50,by hand", "line 2: 50 points, but ramp-values has 6."),
        ("zoe,,,shown", "line 2: nobody handed in whose report is called zoe."),
        ("ada,ramp-values,4,by another", 'line 2: ada, ramp-values has 5 points ("by hand") by '),
    ):
        write(kit / "x.csv", f"{OVERRIDES}{row}\n")
        for again in (("grade", "class", "--out", "g", "--fresh"), ("gradebook", "g")):
            done = autograder(kit, *again, "--overrides", "o.csv", "--overrides", "x.csv")
            assert (done.returncode, done.stdout) == (2, "")
            assert f"x.csv, {sentence}" in done.stderr
        assert contents(kit / "g")[JOURNAL] == before[JOURNAL]
    done = autograder(kit, "gradebook", "g", "--overrides", "x.csv", "--replace")
    assert done.returncode == 0, done.stderr
    assert "replaced: x.csv, line 2: ada, ramp-values has 5 points (" in done.stderr
    assert contents(kit / "g")[JOURNAL].startswith(before[JOURNAL])
    assert b",4," in contents(kit / "g")["grades.csv"].splitlines()[1]
    (kit / "g" / JOURNAL).unlink()
    done = autograder(kit, "gradebook", "g", "--replace")
    assert "No rules are applied any more: grades.csv holds what the grader gave.\n" in done.stdout
    assert b"by hand" not in b"".join(contents(kit / "g").values())


def test_student_without_a_final_grade_is_named_loudly(kit: Path) -> None:
    autograder(kit, "grade", "class", "--out", "g")
    policy = '[late]\ndeadline = 2027-01-01T00:00:00Z\n[excused]\nstudents = ["zoe", "adaa"]\n'
    times = write(kit / "t.csv", "student,submitted\nada,2026-12-31T00:00:00Z\n")
    rules = ("--policy", write(kit / "p.toml", policy), "--timestamps", times)
    done = autograder(kit, "gradebook", "g", *rules, "--replace")
    assert (done.returncode, done.stderr.splitlines()) == (0, [
        "autograder: the policy names adaa, zoe, who handed in nothing.",
        "autograder: Of 2 grades 1 changes: bela 0 → none.",
        "autograder: NO FINAL GRADE for bela: nothing says when they handed in.",
    ])  # fmt: skip
    assert done.stdout.splitlines() == [
        "1 final grade in g/grades.csv, none for 1 of 2 students; 1 differs from what was earned:",
        "  bela  0 → none  nothing says when this was handed in, so the late rules cannot be applied",
    ]


def test_late_rules_find_the_times_of_a_download(kit: Path) -> None:
    for name, day in (("ada", 12), ("bela", 13)):
        write_atomically(kit / "blackboard" / f"HW5_{name}_attempt_2027-03-{day}-12-00-00_toy.py", "")
    policy = write(kit / "p.toml", 'timezone = "Asia/Tokyo"\n[late]\ndeadline = 2027-03-12T23:59:00\nper_day = 10\n')
    done = autograder(kit, "grade", "blackboard", "--out", "g")
    assert (done.returncode, done.stderr) == (0, "")
    assert b"final" not in (kit / "g/grades.csv").read_bytes(), "no rules, no final grades"
    done = autograder(kit, "gradebook", "g", "--policy", policy)
    assert (done.returncode, done.stderr) == (0, ""), "the download's times were kept"
    stored = [json.loads((kit / f"g/reports/HW5_{name}.json").read_text())["adjustments"] for name in ("ada", "bela")]
    assert [[change["rule"] for change in changes] for changes in stored] == [[], ["late"]]
    write_atomically(kit / "canvas" / "diazana_1001_5_toy.py", "")
    canvas = ("grade", "canvas", "--out", "c", "--layout", "canvas", "--policy", policy)
    done = autograder(kit, *canvas)
    assert done.returncode == 2
    assert "for Canvas the list of submissions that its API gives" in done.stderr
    pages = write(kit / "s.json", 'while(1);[{"user_id": 1001, "submitted_at": "2027-03-12T15:00:00Z"}]')
    assert autograder(kit, *canvas, "--timestamps", pages).returncode == 0
    assert (kit / "c/timestamps.csv").read_text() == "student,submitted\ndiazana_1001,2027-03-12 15:00:00+00:00\n"
