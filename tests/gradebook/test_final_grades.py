"""A course's rules for points: what they make of reports, where it is written, and what is refused with its line."""

from __future__ import annotations

import csv
import datetime
import json
import zoneinfo
from pathlib import Path
from typing import Any

import pytest
import toy_kit
from places import KIT
from sample_reports import THREE, of_three, write_report
from toy_kit import autograder

from autograder.cli.gradebook import apply_rules
from autograder.course.overview import maximum_of, read_course
from autograder.gradebook.decisions import JOURNAL, Override, decisions_of
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.grades_folder import (
    FINAL_GRADE,
    common_maximum,
    read_grades,
    stored_reports,
    with_final,
    write_finals,
)
from autograder.gradebook.rules import Late, Policy, Rules, read_policy, read_rules
from autograder.grading.assignments import find_assignment
from autograder.grading.items import Assignment
from autograder.pages.student_page import feedback_page
from autograder.platforms.exports import plain_csv
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem, write_atomically
from autograder.vocabulary.report import Report, read_report

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DEADLINE = datetime.datetime(2027, 3, 12, 23, 59, tzinfo=BERLIN)


def at(days: float = 0, minutes: float = 0) -> datetime.datetime:
    return DEADLINE + datetime.timedelta(days=days, minutes=minutes)


def finals(one: Report, policy: Policy | None = None, *overrides: Override, handed_in: object = None) -> Final:
    times = None if handed_in is None else {one.student: handed_in}
    return final_of(one, Rules(policy or Policy(), overrides, times))  # type: ignore[arg-type]


def changed(item: str, points: float | None, comment: str = "asked", student: str = "ada") -> Override:
    return Override(student, item, points, comment, "overrides.csv, line 2")


def answered(points: float | None, student: str = "ada", worth: float = 5.0) -> Override:
    return Override(student, "question-spread", points, "read", "overrides.csv, line 3", worth)


# Rules


DROP = {"drop": {"lowest": 1}}
NOTHING = {"a": 0.0, "b": 0.0, "c": 0.0}


@pytest.mark.parametrize(
    ("earned", "policy", "overrides", "points", "reasons"),
    [
        ({"a": 1.5}, {}, [], 17.5, ""),
        ({"a": 1.0, "b": 3.0}, DROP, [], 16.25, "a left out as one of the lowest (1 of 4)"),
        ({"a": 2.0, "b": 3.0}, DROP, [], 17.14, "b left out as one of the lowest (3 of 6)"),  # of equal the larger
        ({}, {"drop": {"lowest": 2}}, [], 20, ""),
        (NOTHING, {"drop": {"lowest": 1}}, [], 0, "c left out as one of the lowest (0 of 10)"),
        ({"b": 0.0}, {}, [changed("b", None, "nearly"), changed("", None, "see me")], 14, "b: nearly; see me"),
        ({"b": None}, {}, [], None, "not graded, through no fault of the student's"),
        ({"b": None}, DROP, [], None, "not graded, through no fault of the student's"),
        ({"b": None}, {}, [changed("b", 5)], 19, "b not graded → 5: asked"),
        ({"b": None}, {"excused": {"items": {"ada": ["b"]}}}, [], 20, "b excused (not graded of 6)"),
        ({"a": 0.0, "c": 5.0}, {"excused": {"items": {"ada": ["c"]}}}, [], 12, "c excused (5 of 10)"),
        ({}, {"excused": {"students": ["ada"]}}, [changed("", 20)], None, "asked; excused from this assignment"),
        ({}, {}, [answered(None)], 20, "question-spread: read"),
    ],
)
def test_rules_make_a_final_grade_and_say_why(
    earned: dict[str, float | None],
    policy: dict[str, Any],
    overrides: list[Override],
    points: float | None,
    reasons: str,
) -> None:
    found = finals(of_three(**earned), Policy(**policy), *overrides)
    assert (found.points, found.reasons, found.most) == (points, reasons, 20)


@pytest.mark.parametrize(
    ("handed_in", "final"),
    [
        (at(), 20),
        (at(minutes=-1), 20),
        (at(minutes=10), 20),
        (at(minutes=11), 18),
        (at(days=1), 18),
        (at(days=1, minutes=1), 16),
        (at(days=3), 14),
        (at(days=3, minutes=1), 0),
        (at(days=400), 0),
    ],
)
def test_each_day_begun_costs_its_share_after_a_grace_and_up_to_a_cutoff(
    handed_in: datetime.datetime, final: float
) -> None:
    late = Late(deadline=DEADLINE, grace_minutes=10, per_day=10, cutoff_days=3)
    assert finals(of_three(), Policy(late=late), handed_in=handed_in).points == final
    same_moment = handed_in.astimezone(datetime.UTC)
    assert finals(of_three(), Policy(late=late), handed_in=same_moment).points == final


def test_a_share_of_the_maximum_never_leads_below_0() -> None:
    late = Late(deadline=DEADLINE, per_day=40, of="maximum")
    assert finals(of_three(), Policy(late=late), handed_in=at(1)).points == 12
    assert finals(of_three(c=0.0), Policy(late=late), handed_in=at(2)).points == 0


def test_an_extension_moves_the_deadline_of_one_student_over_a_change_of_clocks() -> None:
    deadline = datetime.datetime(2027, 3, 27, 12, tzinfo=BERLIN)  # clocks go forward in the night to the 28th
    policy = Policy(late=Late(deadline=deadline, per_day=50, extensions={"ada": 1.5}))
    for hours, points in ((36, 20), (37, 10)):
        handed_in = deadline.astimezone(datetime.UTC) + datetime.timedelta(hours=hours)
        assert finals(of_three(), policy, handed_in=handed_in).points == points
    assert finals(of_three("bela"), policy, handed_in=deadline + datetime.timedelta(hours=2)).points == 10


def test_a_student_whose_time_nobody_knows_gets_no_final_grade_and_no_zero() -> None:
    found = final_of(of_three(), Rules(Policy(late=Late(deadline=DEADLINE)), (), {"bela": at()}))
    assert found.points is None
    assert found.reasons == "nothing says when this was handed in, so the late rules cannot be applied"


def test_an_override_comes_before_the_late_rule_and_one_of_the_whole_after_it() -> None:
    policy = Policy(late=Late(deadline=DEADLINE, per_day=50))
    found = finals(of_three(b=0.0), policy, changed("b", 6), handed_in=at(1))
    assert found.points == 10
    assert [one.rule for one in found.adjustments] == ["override", "late"]
    assert found.adjustments[0].reason == "b 0 → 6: asked"
    found = finals(of_three(b=0.0), policy, changed("", 19, "as agreed"), handed_in=at(1))
    assert (found.points, found.adjustments[-1].before, found.adjustments[-1].reason) == (19, 7.0, "as agreed")


def test_of_who_is_excused_no_other_rule_says_anything_and_people_still_do() -> None:
    policy = Policy(
        late=Late(deadline=DEADLINE), drop={"lowest": 1}, excused={"students": ["ada"], "items": {"ada": ["b"]}}
    )
    rules = Rules(policy, (changed("a", 1, "half"), changed("", None, "get well")), {"bela": at()})
    found = final_of(of_three(a=0.0), rules)
    assert (found.points, found.is_excused) == (None, True)
    assert found.reasons == "a 0 → 1: half; get well; excused from this assignment"
    assert found.most == 20


@pytest.mark.parametrize(
    ("policy", "line"),
    [
        ("[drop]\nlowest = 1\n", "2 final grades in {}/grades.csv; 2 changed:"),
        ('[excused]\nstudents = ["ada"]\n', "1 final grade in {}/grades.csv, none for 1 of 2 students; 1 changed:"),
    ],
)
def test_a_grade_that_nobody_has_is_not_counted_as_one(
    out: Path, tmp_path: Path, policy: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = read_rules(out, THREE, write(tmp_path / "p.toml", policy), (), None)
    apply_rules(out, stored_reports(out), THREE, rules)
    assert capsys.readouterr().out.splitlines()[0] == line.format(out)


# Reading


POLICY = """\
timezone = "Europe/Berlin"

[late]
deadline = 2027-03-12T23:59:00
grace_minutes = 10
per_day = 10
cutoff_days = 5

[late.extensions]
ada = 2.5
"o'brien, sean" = 1

[drop]
lowest = 1

[excused]
students = ["bela"]
items.chidi = ["a", "b"]
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_policy_is_read(tmp_path: Path) -> None:
    policy = read_policy(write(tmp_path / "policy.toml", POLICY), THREE)
    extensions = {"ada": 2.5, "o'brien, sean": 1}
    late = Late(deadline=DEADLINE, grace_minutes=10, per_day=10, cutoff_days=5, extensions=extensions)
    excused = {"students": ["bela"], "items": {"chidi": ["a", "b"]}}
    assert policy == Policy(timezone="Europe/Berlin", late=late, drop={"lowest": 1}, excused=excused)
    assert policy.students == {"ada", "bela", "chidi", "o'brien, sean"}
    assert read_policy(write(tmp_path / "policy.toml", ""), THREE) == Policy()


@pytest.mark.parametrize(
    ("right", "wrong", "line", "sentence"),
    [
        ("per_day = 10", "per_day = 120", 6, "late.per_day should be less than or equal to 100"),
        ("per_day = 10", "per_day = nan", 6, "late.per_day should be a finite number"),
        ("per_day = 10", 'per_day = "10"', 6, "late.per_day should be a valid number"),
        ("per_day = 10", "per_days = 10", 6, "late.per_days is no rule; autograder/README.md shows all"),
        ("per_day = 10", "per_day = 1 0", 6, "this is not TOML"),
        ("2027-03-12T23:59:00", "2027-03-12", 4, "late.deadline should be a valid datetime"),
        ('timezone = "Europe/Berlin"', "", 4, "late.deadline has no time zone"),
        (
            "Europe/Berlin",
            "Europe/Nowhere",
            1,
            "timezone should be a time zone, as Europe/Berlin is one",
        ),
        ("Europe/Berlin", "../../etc/passwd", 1, "timezone should be a time zone"),
        ("ada = 2.5", "ada = -1", 10, "late.extensions.ada should be greater than or equal to 0"),
        ("lowest = 1", "lowest = 3", 14, "drop.lowest should be from 0 to 2 items, but is 3"),
        ("[drop]", "[dropped]", 13, "dropped is no rule"),
        ('students = ["bela"]', 'students = "bela"', 17, "excused.students should be a valid list"),
        ('["a", "b"]', '["a", "z"]', 18, "excused.items.chidi should be a list of items, and 'z' is none"),
        ("[drop]", "[questions]\nextra_credit = 1\n[drop]", 14, "questions.extra_credit should be a valid boolean"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, right: str, wrong: str, line: int, sentence: str
) -> None:
    assert POLICY.count(right) == 1
    path = write(tmp_path / "policy.toml", POLICY.replace(right, wrong))
    with pytest.raises(UsageError) as refused:
        read_policy(path, THREE)
    assert sentence in str(refused.value)
    assert f"line {line}" in str(refused.value)


def given(path: Path, assignment: Assignment = THREE) -> list[Override]:
    """What counts by a file of overrides alone."""
    return decisions_of(path.parent / "none", assignment, [path]).merged()[1]


@pytest.mark.parametrize(
    ("rows", "line", "sentence"),
    [
        ("ada,z,1,why", 2, "there is no item 'z' in toy"),
        ("ada,a,5,why", 2, "5 points, but a has 4"),
        ("ada,,21,why", 2, "21 points, but the assignment has 20"),
        ("ada,a,-1,why", 2, "'-1' is no number of points"),
        ("ada,a,1e1,why", 2, "'1e1' is no number of points"),
        ("ada,a,nan,why", 2, "'nan' is no number of points"),
        ("ada,a,1,", 2, "a change without a reason"),
        (",a,1,why", 2, "a row without a student"),
        ("ada,a,1,why\n\nada,a,2,why", 4, "ada has another row for a"),
        ("ada,a,1", 2, "3 cells, but the first line names 4 columns"),
        ('ada,a,1,"two\nlines"\nbela,a,9,why', 4, "9 points"),
        ('ada,a,1,"open', 2, "this is not CSV"),
    ],
)
def test_an_override_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, rows: str, line: int, sentence: str
) -> None:
    path = write(tmp_path / "overrides.csv", f"student,item,points,comment\n{rows}\n")
    with pytest.raises(UsageError) as refused:
        given(path)
    assert str(refused.value).startswith(f"{path}, line {line}: ")
    assert sentence in str(refused.value)


def test_overrides_are_read_in_any_order_of_columns_and_as_spreadsheets_write_them(tmp_path: Path) -> None:
    text = '\N{BYTE ORDER MARK}Comment,Student,Points,Item\r\n"yes, ""right""","o\'brien, sean","3,5",a\r\n'
    (found,) = given(write(tmp_path / "overrides.csv", text))
    assert found == Override("o'brien, sean", "a", 3.5, 'yes, "right"', f"{tmp_path / 'overrides.csv'}, line 2")


def test_a_file_that_is_not_utf_8_or_has_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "overrides.csv"
    path.write_bytes("student,item,points,comment\nzoë,a,1,why\n".encode("latin-1"))
    with pytest.raises(UsageError, match=r"line 2: this is not UTF-8"):
        given(path)
    with pytest.raises(UsageError, match=r"line 1: the columns should be student,item,points,comment; found: a, b"):
        given(write(path, "a,b\n"))
    with pytest.raises(UsageError, match="cannot be read"):
        given(tmp_path / "nowhere.csv")


# Files


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """What grading two students wrote."""
    for one in (of_three("ada", b=0.0), of_three("=cmd()", a=2.0)):
        stem = file_stem(one.student)
        write_report(one, tmp_path / "g/reports" / f"{stem}.json")
        write_atomically(tmp_path / "g/feedback" / f"{stem}.html", feedback_page(one))
    return tmp_path / "g"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def apply(out: Path, *overrides: Path, policy: Path | None = None, **more: bool) -> Rules | None:
    rules = read_rules(out, THREE, policy, overrides, None, **more)
    if rules is not None:
        rules.check_students([], out)
        write_finals(out, stored_reports(out), THREE, rules)
    return rules


def test_finals_stand_at_the_end_of_the_gradebook_in_the_report_and_on_the_students_page(
    out: Path, tmp_path: Path
) -> None:
    rows = 'ada,b,3,"=HYPERLINK(""x"") <script>alert(1)</script>"\n=cmd(),,,=1+1\n'
    apply(out, write(tmp_path / "o.csv", f"student,item,points,comment\n{rows}"))
    with (out / "grades.csv").open(newline="", encoding="utf-8") as stream:
        table = list(csv.reader(stream))
    assert table[0] == ["student", "points", "max_points", "status", "a", "b", "c", "final", "final_max", "adjustments"]
    assert table[1] == ["'=cmd()", "18", "20", "graded", "2", "6", "10", "18", "20", "'=1+1"]
    assert table[2][:8] == ["ada", "14", "20", "graded", "4", "0", "10", "17"]
    told = json.loads((out / "reports/ada.json").read_text())
    assert (told["points"], told["final"], told["adjustments"][0]["before"]) == (14, 17, 0)
    assert json.loads((out / "adjustments.json").read_text())["students"]["ada"]["final"] == 17
    page = (out / "feedback/ada.html").read_text()
    large, small = (
        page.index("<strong>17</strong> of 20 points, the final grade"),
        page.index("<strong>14</strong> of 20"),
    )
    assert large < page.index("&lt;script&gt;") < small < page.index("<main>")
    assert "&lt;script&gt;" in page
    assert "<script>alert" not in page


def test_a_report_with_finals_is_read_like_any_other(out: Path, tmp_path: Path) -> None:
    before = read_report(out / "reports/ada.json")
    apply(out, write(tmp_path / "o.csv", "student,item,points,comment\nada,b,3,why\n"))
    assert read_report(out / "reports/ada.json") == before


def test_applying_the_rules_again_changes_no_byte_and_needs_no_file_to_be_named(out: Path, tmp_path: Path) -> None:
    apply(out, write(tmp_path / "o.csv", "student,item,points,comment\nada,b,3,why\n"))
    before = contents(out)
    (tmp_path / "o.csv").unlink()
    assert apply(out) is not None
    assert contents(out) == before


def test_rules_that_are_taken_away_leave_no_trace(out: Path, tmp_path: Path) -> None:
    before = contents(out)
    apply(out, write(tmp_path / "o.csv", "student,item,points,comment\nada,b,3,why\n"))
    (out / JOURNAL).unlink()
    assert apply(out) is None
    write_finals(out, stored_reports(out), THREE, None)
    after = contents(out)
    assert after.pop("grades.csv").splitlines()[0] == b"student,points,max_points,status,a,b,c"
    assert after == before


@pytest.mark.parametrize("rows", ["ada,b,3,why\nnobody,b,3,why\n", "ada,b,9,why\n"])
def test_nothing_is_written_where_one_row_cannot_be_used(out: Path, tmp_path: Path, rows: str) -> None:
    before = contents(out)
    with pytest.raises(UsageError, match=r"o\.csv, line \d: "):
        apply(out, write(tmp_path / "o.csv", f"student,item,points,comment\n{rows}"))
    assert contents(out) == before


def test_late_rules_without_times_are_refused_before_anything_is_written(out: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has late rules, but nothing says when students handed in"):
        apply(out, policy=write(tmp_path / "policy.toml", POLICY))


# Questions in words


def test_a_question_that_counts_is_part_of_everybodys_maximum() -> None:
    found = finals(of_three(), None, answered(4.0))
    assert (found.points, found.most) == (24, 25)
    found = finals(of_three("bela"), None, answered(4.0))
    assert (found.points, found.most) == (20, 25)
    assert found.reasons == "question-spread 0 of 5 on top: not marked"


def test_extra_credit_may_exceed_the_maximum_and_the_page_says_so() -> None:
    found = finals(of_three(), Policy(questions={"extra_credit": True}), answered(4.0))
    assert (found.points, found.most) == (24, 20)
    page = with_final(feedback_page(of_three()), found)
    assert "<strong>24</strong> of 20 points, the final grade, with extra credit" in page
    other = finals(of_three("bela"), Policy(questions={"extra_credit": True}), answered(4.0))
    assert (other.points, other.most, other.reasons) == (20, 20, "")


def test_late_days_of_the_maximum_are_taken_of_all_that_counts() -> None:
    late = Late(deadline=DEADLINE, per_day=10, of="maximum")
    assert finals(of_three(), Policy(late=late), answered(5.0), handed_in=at(1)).points == 22.5


def test_the_maximum_with_questions_stands_wherever_a_final_grade_does(out: Path, tmp_path: Path) -> None:
    rules = Rules(overrides=[answered(4.0), changed("b", 6)])
    write_finals(out, stored_reports(out), THREE, rules)
    with (out / "grades.csv").open(newline="", encoding="utf-8") as stream:
        rows = {row["student"]: row for row in csv.DictReader(stream)}
    assert [(row["points"], row["max_points"], row["final"], row["final_max"]) for row in rows.values()] == [
        ("18", "20", "18", "25"),
        ("14", "20", "24", "25"),
    ]
    assert "<strong>24</strong> of 25 points, the final grade</p>" in (out / "feedback/ada.html").read_text()
    stranger, ada = read_grades(out)
    assert (ada.points, ada.max_points, stranger.points, stranger.max_points) == (24, 25, 18, 25)
    assert common_maximum([ada, stranger]) == 25
    assert plain_csv([ada]).splitlines()[1].startswith("ada,24,25,graded")
    course = read_course(tmp_path, {"toy": "Toy"})
    assert (maximum_of(course), course[0].figures.max_points) == (25, 25)


def test_a_whole_grade_may_reach_what_questions_add_and_no_more(tmp_path: Path) -> None:
    chosen = find_assignment(KIT, "policy_gradient")
    rows = "student,item,points,comment\nada,question-spread,4,good\nada,,{},as agreed\n"
    read = given(write(tmp_path / "o.csv", rows.format(105)), chosen)
    assert read[1].points == 105
    with pytest.raises(UsageError, match="line 3: 106 points, but the assignment has 105"):
        given(write(tmp_path / "o.csv", rows.format(106)), chosen)
    alone = "student,item,points,comment\nada,question-spread,,good\nada,,101,as agreed\n"
    with pytest.raises(UsageError, match="line 3: 101 points, but the assignment has 100"):
        given(write(tmp_path / "o.csv", alone), chosen)


# The page


def test_a_page_is_given_its_final_grade_once_and_a_student_cannot_stand_in_for_it() -> None:
    page = feedback_page(of_three(f"<main>\n<!-- {FINAL_GRADE} -->"))
    final = final_of(of_three(), Rules(overrides=[changed("", 1, "why")]))
    once = with_final(page, final)
    assert once.count(f"<!-- {FINAL_GRADE} -->") == 1
    assert with_final(once, final) == once
    assert with_final(once, Final(20.0, (), 20)) == page


# The command line


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)
    for name in ("ada", "bela"):
        (made / "class" / name).mkdir(parents=True)
        (made / "class" / name / "toy.py").write_text("")
    return made


@pytest.mark.long
def test_what_staff_decide_is_the_same_however_a_spreadsheet_writes_it(kit: Path) -> None:
    write(kit / "policy.toml", 'timezone = "UTC"\n[late]\ndeadline = 2027-03-12T23:59:00\nper_day = 10\n')
    files = {
        "overrides": "student,item,points,comment\nada,ramp-values,5,by hand\n",
        "timestamps": "student,submitted\nada,2027-03-13 12:00\nbela,2027-03-12 12:00\n",
        "roster": "student,email\nada,ada@x.edu\nbela,bela@x.edu\ncleo,cleo@x.edu\n",
    }
    for name, mark in (("commas", ","), ("semicolons", ";"), ("tabs", "\t")):
        for file, text in files.items():
            data = text.replace(",", mark).replace("\n", "\r\n").encode()
            (kit / f"{file}-{name}.csv").write_bytes(data if mark == "," else "\N{BYTE ORDER MARK}".encode() + data)
    rules = ("--policy", "policy.toml", "--overrides", "overrides-{}.csv", "--timestamps", "timestamps-{}.csv")

    def final(verb: str, name: str, *more: str) -> bytes:
        done = autograder(kit, verb, *(one.format(name) for one in (*more, *rules)))
        assert done.returncode == 0, done.stderr
        assert "handed in" not in done.stderr or done.stderr == "autograder: Handed in nothing: cleo.\n"
        return (kit / "g/grades.csv").read_bytes()

    found = final("grade", "semicolons", "class", "--out", "g", "--roster", "roster-{}.csv")
    assert b"ada,0,10,graded,0,0,4.5,10,ramp-values 0" in found
    assert found == final("gradebook", "commas", "g") == final("gradebook", "tabs", "g")


@pytest.mark.long
def test_overrides_survive_grading_again_and_a_wrong_file_stops_a_run_before_it_starts(kit: Path) -> None:
    write(kit / "o.csv", "student,item,points,comment\nada,ramp-values,5,by hand\n")
    done = autograder(kit, "grade", "class", "--out", "g", "--overrides", "o.csv")
    assert done.returncode == 0, done.stderr
    assert "  ada  0 → 5  ramp-values 0 → 5: by hand" in done.stdout.splitlines()
    before = contents(kit / "g")
    for again in (("grade", "class", "--out", "g"), ("gradebook", "g"), ("grade", "class", "--out", "g", "--fresh")):
        done = autograder(kit, *again)
        assert done.returncode == 0, done.stderr
        assert (kit / "g/grades.csv").read_bytes() == before["grades.csv"]
        assert (kit / "g/feedback/ada.html").read_bytes() == before["feedback/ada.html"]
    journal = (kit / "g" / JOURNAL).read_text()
    for row, sentence in (
        ("bela,ramp-values,50,by hand", "line 2: 50 points, but ramp-values has 6."),
        ("zoe,,,shown", "line 2: nobody handed in whose report is called zoe."),
        ("ada,loop-seed,1,of another", "line 2: there is no item 'loop-seed' in toy;"),
        ("ada,ramp-values,4,by another", "line 2: ada, ramp-values has 5 points by "),
    ):
        write(kit / "x.csv", f"student,item,points,comment\n{row}\n")
        for again in (("grade", "class", "--out", "g", "--fresh"), ("gradebook", "g")):
            done = autograder(kit, *again, "--overrides", "o.csv", "--overrides", "x.csv")
            assert (done.returncode, done.stdout) == (2, "")
            assert f"x.csv, {sentence}" in done.stderr
        assert (kit / "g" / JOURNAL).read_text() == journal
    done = autograder(kit, "gradebook", "g", "--overrides", "x.csv", "--replace")
    assert done.returncode == 0, done.stderr
    assert "replaced: x.csv, line 2: ada, ramp-values has 5 points by " in done.stderr
    assert (kit / "g" / JOURNAL).read_text().startswith(journal)
    assert b"4" in (kit / "g/grades.csv").read_bytes().splitlines()[1]
    (kit / "g" / JOURNAL).unlink()
    done = autograder(kit, "gradebook", "g", "--replace")
    assert "No rules are applied any more: grades.csv holds what the grader gave.\n" in done.stdout
    assert "by hand" not in "".join(data.decode() for data in contents(kit / "g").values())


@pytest.mark.long
def test_whoever_has_no_final_grade_is_named_loudly_and_so_is_whom_the_policy_names_in_vain(kit: Path) -> None:
    autograder(kit, "grade", "class", "--out", "g")
    policy = '[late]\ndeadline = 2027-01-01T00:00:00Z\n[excused]\nstudents = ["zoe", "adaa"]\n'
    times = write(kit / "t.csv", "student,submitted\nada,2026-12-31T00:00:00Z\n")
    rules = ("--policy", write(kit / "p.toml", policy), "--timestamps", times)
    done = autograder(kit, "gradebook", "g", *rules, "--replace")
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "autograder: the policy names adaa (or is it ada?), zoe, who handed in nothing.",
        "autograder: Of 2 grades 1 changes: bela 0 → none.",
        "autograder: NO FINAL GRADE for bela: nothing says when they handed in.",
    ]


@pytest.mark.long
def test_late_rules_find_the_times_that_a_download_says_and_else_say_what_to_give(kit: Path) -> None:
    (kit / "blackboard").mkdir()
    for name, day in (("ada", 12), ("bela", 13)):
        write(kit / "blackboard" / f"HW5_{name}_attempt_2027-03-{day}-12-00-00_toy.py", "")
    policy = write(kit / "p.toml", 'timezone = "Asia/Tokyo"\n[late]\ndeadline = 2027-03-12T23:59:00\nper_day = 10\n')
    done = autograder(kit, "grade", "blackboard", "--out", "g")
    assert (done.returncode, done.stderr) == (0, "")
    assert b"final" not in (kit / "g/grades.csv").read_bytes(), "no rules, no final grades"
    done = autograder(kit, "gradebook", "g", "--policy", policy)
    assert (done.returncode, done.stderr) == (0, ""), "the download's times were kept"
    assert json.loads((kit / "g/reports/bela.json").read_text())["adjustments"][0]["rule"] == "late"
    assert json.loads((kit / "g/reports/ada.json").read_text())["adjustments"] == []
    (kit / "canvas").mkdir()
    write(kit / "canvas" / "diazana_1001_5_toy.py", "")
    done = autograder(kit, "grade", "canvas", "--out", "c", "--layout", "canvas", "--policy", policy)
    assert done.returncode == 2
    assert "for Canvas the list of submissions that its API gives" in done.stderr
    pages = write(kit / "s.json", 'while(1);[{"user_id": 1001, "submitted_at": "2027-03-12T15:00:00Z"}]')
    done = autograder(
        kit, "grade", "canvas", "--out", "c", "--layout", "canvas", "--policy", policy, "--timestamps", pages
    )
    assert done.returncode == 0, done.stderr
    assert (kit / "c/timestamps.csv").read_text() == "student,submitted\ndiazana_1001,2027-03-12 15:00:00+00:00\n"
