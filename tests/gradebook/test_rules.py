"""A course's rules for points: what they make of reports, what is refused with its line, and laws of every policy."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import KIT
from sample_reports import THREE, WORTH, of_three, write_report

from autograder.gradebook.decisions import Override, decisions_of
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.grades_folder import stored_reports, write_finals
from autograder.gradebook.rules import EVERYBODY, LEAVES, Late, Policy, Rules, read_policy, read_rules
from autograder.grading.assignment import Assignment, find_assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report

BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
DEADLINE = datetime.datetime(2027, 3, 12, 23, 59, tzinfo=BERLIN)
LATE = {
    "deadline": DEADLINE,
    "later_deadlines": [{"deadline": DEADLINE + datetime.timedelta(7), "cost": 20}],
    "per_day": 10,
    "cutoff_days": 2,
}


def final(
    report: Report, policy: dict[str, Any], *overrides: Override, days: float = 0, left: int | None = None
) -> Final:
    times = {report.student: DEADLINE + datetime.timedelta(days)}
    slip = None if left is None else lambda student: (left, 5)
    return final_of(report, Rules(Policy(**policy), overrides, times, slip=slip))


def changed(item: str, points: float | None, comment: str = "asked", student: str = "ada") -> Override:
    return Override(student, item, points, comment, "overrides.csv, line 2")


def answered(points: float | None, student: str = "ada") -> Override:
    return Override(student, "question-spread", points, "read", "overrides.csv, line 3", 5.0)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# The final grade

DROP = {"drop": {"lowest": 1}}
UNGRADED = "not graded, through no fault of the student's"
FREE = "for all: cancelled, everybody gets it"
EXTRA = {"questions": {"extra_credit": True}}
A_DAY_LATE = {"late": {"deadline": DEADLINE - datetime.timedelta(1), "per_day": 50}}
HALF = "1 day late: minus 50 % of the points earned"


@pytest.mark.parametrize(
    ("earned", "policy", "overrides", "points", "most", "reasons"),
    [
        ({"a": 1.5}, {}, [], 17.5, 20, ""),
        ({"a": 1.0, "b": 3.0}, DROP, [], 16.25, 20, "a left out as one of the lowest (1 of 4)"),
        ({"a": 2.0, "b": 3.0}, DROP, [], 17.14, 20, "b left out as one of the lowest (3 of 6)"),  # of equal the larger
        ({}, {"drop": {"lowest": 2}}, [], 20, 20, ""),
        ({"a": 0.0, "b": 0.0, "c": 0.0}, DROP, [], 0, 20, "c left out as one of the lowest (0 of 10)"),
        ({"b": 0.0}, {}, [changed("b", None, "nearly"), changed("", None, "see me")], 14, 20, "b: nearly; see me"),
        ({"b": None}, {}, [], None, 20, UNGRADED),
        ({"b": None}, DROP, [], None, 20, UNGRADED),
        ({"b": None}, {}, [changed("b", 5)], 19, 20, "b not graded → 5: asked"),
        ({"b": None}, {"excused": {"items": {"ada": ["b"]}}}, [], 20, 20, "b excused (not graded of 6)"),
        ({"a": 0.0, "c": 5.0}, {"excused": {"items": {"ada": ["c"]}}}, [], 12, 20, "c excused (5 of 10)"),
        ({}, {"excused": {"students": ["ada"]}}, [changed("", 20)], None, 20, "asked; excused from this assignment"),
        ({}, {}, [answered(None)], 20, 20, "question-spread: read"),
        # An override of an item comes before lateness, one of the whole after it.
        ({"b": 0.0}, A_DAY_LATE, [changed("b", 6)], 10, 20, f"b 0 → 6: asked; {HALF}"),
        ({"b": 0.0}, A_DAY_LATE, [changed("", 19, "as agreed")], 19, 20, f"{HALF}; as agreed"),
        # A question that counts is part of everybody's maximum, unless it is extra credit.
        ({}, {}, [answered(4.0)], 24, 25, "question-spread 4 of 5 on top: read"),
        ({}, {}, [answered(4.0, "bela")], 20, 25, "question-spread 0 of 5 on top: not marked"),
        ({}, EXTRA, [answered(4.0)], 24, 20, "question-spread 4 of 5 on top: read"),
        ({}, EXTRA, [answered(4.0, "bela")], 20, 20, ""),
        # What changes items for all comes first.
        ({"a": 1}, {"items": {"a": {"cancelled": EVERYBODY}}}, [], 20, 20, f"a 1 of 4 → 4 of 4, {FREE}"),
        ({"a": None}, {"items": {"a": {"cancelled": EVERYBODY}}}, [], 20, 20, f"a not graded of 4 → 4 of 4, {FREE}"),
        ({"a": 1, "b": 3}, {"items": {"a": {"cancelled": LEAVES}}}, [], 16.25, 20, "a cancelled for all (1 of 4)"),
        ({"a": 1}, {"items": {"a": {"points": 2}}}, [], 16.5, 18, "a 1 of 4 → 0.5 of 2, for all"),
        ({}, {"items": {"a": {"points": 8}}}, [], 24, 24, "a 4 of 4 → 8 of 8, for all"),
        ({"a": 1}, {"items": {"a": {"points": 2, "cancelled": EVERYBODY}}}, [], 18, 18, f"a 1 of 4 → 2 of 2, {FREE}"),
        ({"a": 1}, {"items": {"a": {"points": 4}}}, [], 17, 20, ""),
    ],
)
def test_rules_make_a_final_grade_and_say_why(
    earned: dict[str, float | None],
    policy: dict[str, Any],
    overrides: list[Override],
    points: float | None,
    most: float,
    reasons: str,
) -> None:
    found = final(of_three(**earned), policy, *overrides)
    assert (found.points, found.most, found.reasons) == (points, most, reasons)


def test_only_people_say_anything_of_who_is_excused() -> None:
    excused = {"students": ["ada"], "items": {"ada": ["b"]}}
    policy = Policy(late=Late(deadline=DEADLINE), drop={"lowest": 1}, excused=excused)
    rules = Rules(policy, (changed("a", 1, "half"), changed("", None, "get well")), {"bela": DEADLINE})
    found = final_of(of_three(a=0.0), rules)
    assert (found.points, found.adjustments[-1].rule, found.most) == (None, "excused", 20)
    assert found.reasons == "a 0 → 1: half; get well; excused from this assignment"


# Late days

MINUTE = 1 / 24 / 60
FIRST = {"deadline": DEADLINE, "grace_minutes": 10, "per_day": 10, "cutoff_days": 3}
OF_MAXIMUM = {"deadline": DEADLINE, "per_day": 40, "of": "maximum"}
SECOND = "late, but by deadline 2 of 2: minus 20 % of the points earned"


@pytest.mark.parametrize(
    ("late", "days", "points", "reason"),
    [
        (FIRST, 0, 20, ""),
        (FIRST, -MINUTE, 20, ""),
        (FIRST, 10 * MINUTE, 20, ""),
        (FIRST, 11 * MINUTE, 18, "1 day late: minus 10 % of the points earned"),
        (FIRST, 1, 18, "1 day late: minus 10 % of the points earned"),
        (FIRST, 1 + MINUTE, 16, "2 days late: minus 20 % of the points earned"),
        (FIRST, 3, 14, "3 days late: minus 30 % of the points earned"),
        (FIRST, 3 + MINUTE, 0, "4 days late, and nothing counts after 3"),
        (FIRST, 400, 0, None),
        (OF_MAXIMUM, 1, 12, "1 day late: minus 40 % of all points"),
        (OF_MAXIMUM, 9, 0, None),
        (LATE, 0.1, 16, SECOND),
        (LATE, 7, 16, SECOND),
        (LATE, 7.1, 14, "1 day late, counted from deadline 2: minus 30 % of the points earned"),
        (LATE, 9.1, 0, "3 days late, counted from deadline 2, and nothing counts after 2"),
    ],
)
def test_each_day_begun_costs_its_share(late: dict[str, Any], days: float, points: float, reason: str | None) -> None:
    found = final(of_three(), {"late": late}, days=days)
    assert found.points == points
    assert reason is None or found.reasons == reason
    in_utc = {"ada": (DEADLINE + datetime.timedelta(days)).astimezone(datetime.UTC)}
    assert final_of(of_three(), Rules(Policy(late=late), (), in_utc)) == found


def test_extension_moves_one_deadline_over_a_change_of_clocks() -> None:
    deadline = datetime.datetime(2027, 3, 27, 12, tzinfo=BERLIN)  # clocks go forward in the night to the 28th
    policy = Policy(late=Late(deadline=deadline, per_day=50, extensions={"ada": 1.5}))
    for student, hours, points in (("ada", 36, 20), ("ada", 37, 10), ("bela", 2, 10)):
        handed_in = deadline.astimezone(datetime.UTC) + datetime.timedelta(hours=hours)
        assert final_of(of_three(student), Rules(policy, (), {student: handed_in})).points == points


def test_unknown_time_gives_no_final_grade_and_no_zero() -> None:
    found = final_of(of_three(), Rules(Policy(late=Late(deadline=DEADLINE)), (), {"bela": DEADLINE}))
    assert found.points is None
    assert found.reasons == "nothing says when this was handed in, so the late rules cannot be applied"


@pytest.mark.parametrize(
    ("days", "left", "used", "points"),
    [(0, 5, 0, 20), (2.5, 5, 3, 20), (2.5, 2, 2, 18), (4.5, 1, 0, 0), (4.5, 2, 2, 14), (1.0, 0, 0, 18)],
)
def test_slip_days_are_used_as_far_as_they_save_points(days: float, left: int, used: int, points: float) -> None:
    policy = {"late": {"deadline": DEADLINE, "per_day": 10, "cutoff_days": 3}}
    found = final(of_three(), policy, days=days, left=left)
    assert found.points == points
    assert found.adjustments[0].reason == f"slip days: {used} used here, {left - used} of 5 left"


def test_slip_days_are_counted_in_the_order_of_deadlines(tmp_path: Path) -> None:
    write(tmp_path / "slip-days.toml", "days = 3\nstudents.bela = 5\n")
    handed_in = {"1-bandits": {"ada": 2, "bela": 2}, "2-theory": {"ada": 2, "bela": 2}, "3-grpo": {"ada": 1, "bela": 2}}
    for number, (name, days) in enumerate(handed_in.items()):
        deadline = DEADLINE + datetime.timedelta(weeks=number)
        times = "".join(f"{who},{(deadline + datetime.timedelta(late)).isoformat()}\n" for who, late in days.items())
        for student in days:
            write_report(of_three(student), tmp_path / name / "reports" / f"{file_stem(student)}.json")
        write(tmp_path / name / "policy.toml", f"[late]\ndeadline = {deadline.isoformat()}\nper_day = 10\n")
        write(tmp_path / name / "timestamps.csv", f"student,submitted\n{times}")
    found = {}
    for name in reversed(handed_in):
        rules = read_rules(tmp_path / name, THREE, None, (), None)
        finals = write_finals(tmp_path / name, stored_reports(tmp_path / name), THREE, rules)
        found[name] = {student: (one.points, one.adjustments[0].reason) for student, one in finals.items()}
    told = "slip days: {} used here, {} left"
    assert found["1-bandits"] == {"ada": (20, told.format(2, "1 of 3")), "bela": (20, told.format(2, "3 of 5"))}
    assert found["2-theory"] == {"ada": (18, told.format(1, "0 of 3")), "bela": (20, told.format(2, "1 of 5"))}
    assert found["3-grpo"] == {"ada": (18, told.format(0, "0 of 3")), "bela": (18, told.format(1, "0 of 5"))}
    write(tmp_path / "slip-days.toml", "days = -1\n")
    with pytest.raises(UsageError, match=r"slip-days.toml, line 1: days should be greater than or equal to 0"):
        read_rules(tmp_path / "1-bandits", THREE, None, (), None)


# Reading a policy

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
DUE = "late.deadline = 2027-03-12T00:00:00Z\n"
ALL = "".join(f'[items.{name}]\ncancelled = "leaves the total"\n' for name in WORTH)


def test_policy_is_read(tmp_path: Path) -> None:
    policy = read_policy(write(tmp_path / "policy.toml", POLICY), THREE)
    extensions = {"ada": 2.5, "o'brien, sean": 1}
    late = Late(deadline=DEADLINE, grace_minutes=10, per_day=10, cutoff_days=5, extensions=extensions)
    excused = {"students": ["bela"], "items": {"chidi": ["a", "b"]}}
    assert policy == Policy(timezone="Europe/Berlin", late=late, drop={"lowest": 1}, excused=excused)
    assert policy.students == {"ada", "bela", "chidi", "o'brien, sean"}
    assert read_policy(write(tmp_path / "policy.toml", ""), THREE) == Policy()
    for path, sentence in (
        (write(tmp_path / "late.toml", POLICY), "has late rules, but nothing says when students handed in"),
        *((tmp_path / name, "cannot be read") for name in ("nothere.toml", "")),
    ):
        with pytest.raises(UsageError, match=sentence):
            read_rules(tmp_path, THREE, path, (), None)


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
        ("Europe/Berlin", "Europe/Nowhere", 1, "timezone should be a time zone, as Europe/Berlin is one"),
        ("Europe/Berlin", "../../etc/passwd", 1, "timezone should be a time zone"),
        ("ada = 2.5", "ada = -1", 10, "late.extensions.ada should be greater than or equal to 0"),
        ("lowest = 1", "lowest = 3", 14, "drop.lowest should be from 0 to 2 items, but is 3"),
        ("[drop]", "[dropped]", 13, "dropped is no rule"),
        ('students = ["bela"]', 'students = "bela"', 17, "excused.students should be a valid list"),
        ('["a", "b"]', '["a", "z"]', 18, "excused.items.chidi should be a list of items, and 'z' is none"),
        ("[drop]", "[questions]\nextra_credit = 1\n[drop]", 14, "questions.extra_credit should be a valid boolean"),
        (POLICY, "[items.z]\npoints = 3\n", 1, "items.z is no item; there are: a, b, c"),
        (POLICY, "[items.a]\npoints = 0\n", 2, "items.a.points should be greater than or equal to 0.01"),
        (POLICY, "[items.a]\nworth = 3\n", 2, "items.a.worth is no rule"),
        (POLICY, '[items.a]\ncancelled = "yes"\n', 2, "cancelled should be 'everybody gets it' or 'leaves the total'"),
        (POLICY, ALL, None, "items leaves none that counts"),
        (POLICY, f"{DUE}late.later_deadlines = [2027-03-13T00:00:00Z]\n", 2, "late.later_deadlines"),
        (POLICY, f"{DUE}late.later_deadlines = [{{deadline = 2027-03-11T00:00:00Z, cost = 5}}]\n", 2, "each be later"),
        (POLICY, f"{DUE}late.later_deadlines = [{{deadline = 2027-03-13T00:00:00, cost = 5}}]\n", 1, "no time zone"),
        (POLICY, f"{DUE}late.later_deadlines = [{{cost = 5}}]\n", None, "later_deadlines.deadline is missing"),
    ],
)
def test_wrong_policy_is_refused_with_its_line(
    tmp_path: Path, right: str, wrong: str, line: int | None, sentence: str
) -> None:
    assert POLICY.count(right) == 1
    with pytest.raises(UsageError) as refused:
        read_policy(write(tmp_path / "policy.toml", POLICY.replace(right, wrong)), THREE)
    assert sentence in str(refused.value)
    assert line is None or f"line {line}" in str(refused.value)


def test_policy_of_the_guide_shows_each_rule(tmp_path: Path) -> None:
    guide = (KIT / "autograder" / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    policy = read_policy(write(tmp_path / "policy.toml", shown), find_assignment(KIT, "policy_gradient"))
    entries = {*Policy.model_fields, *Late.model_fields} - {"of"}
    assert policy.model_fields_set | (policy.late.model_fields_set if policy.late else set()) == entries


# Reading overrides


def read_overrides(path: Path, assignment: Assignment = THREE) -> list[Override]:
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
        ('ada,a,1,"two\nlines"\nbela,a,9,why', 4, "9 points"),
    ],
)
def test_wrong_override_is_refused_with_its_line(tmp_path: Path, rows: str, line: int, sentence: str) -> None:
    path = write(tmp_path / "overrides.csv", f"student,item,points,comment\n{rows}\n")
    with pytest.raises(UsageError) as refused:
        read_overrides(path)
    assert str(refused.value).startswith(f"{path}, line {line}: ")
    assert sentence in str(refused.value)


def test_overrides_are_read_as_spreadsheets_write_them(tmp_path: Path) -> None:
    text = '\N{BYTE ORDER MARK}Comment,Student,Points,Item\r\n"yes, ""right""","o\'brien, sean","3,5",a\r\n'
    (override,) = read_overrides(write(tmp_path / "overrides.csv", text))
    assert override == Override("o'brien, sean", "a", 3.5, 'yes, "right"', f"{tmp_path / 'overrides.csv'}, line 2")
    with pytest.raises(UsageError, match=r"line 1: the columns should be student,item,points,comment; found: a, b"):
        read_overrides(write(tmp_path / "overrides.csv", "a,b\n"))


def test_override_counts_on_what_the_policy_makes_items_worth(tmp_path: Path) -> None:
    write(tmp_path / "policy.toml", "[items.b]\npoints = 3\n")
    overrides = write(tmp_path / "given.csv", "student,item,points,comment\nada,b,3,seen\n")
    rules = read_rules(tmp_path, THREE, None, [overrides], None)
    assert rules is not None
    assert final_of(of_three(b=0), rules).points == 17
    write(overrides, "student,item,points,comment\nada,b,6,seen\n")
    with pytest.raises(UsageError, match="line 2: 6 points, but b has 3"):
        read_rules(tmp_path, THREE, None, [overrides], None)


def test_whole_grade_may_reach_what_questions_add(tmp_path: Path) -> None:
    chosen = find_assignment(KIT, "policy_gradient")
    rows = "student,item,points,comment\nada,question-spread,{},good\nada,,{},as agreed\n"
    assert read_overrides(write(tmp_path / "o.csv", rows.format(4, 105)), chosen)[1].points == 105
    for marked, whole, most in (("4", 106, 105), ("", 101, 100)):
        with pytest.raises(UsageError, match=f"line 3: {whole} points, but the assignment has {most}"):
            read_overrides(write(tmp_path / "o.csv", rows.format(marked, whole)), chosen)


# Laws

ITEM = st.sampled_from(sorted(WORTH))
CHANGES = st.fixed_dictionaries(
    {}, optional={"points": st.integers(1, 30), "cancelled": st.sampled_from([EVERYBODY, LEAVES])}
)
LATES = st.fixed_dictionaries(
    {"deadline": st.just(DEADLINE), "per_day": st.integers(0, 100), "of": st.sampled_from(["earned", "maximum"])},
    optional={"later_deadlines": st.just(LATE["later_deadlines"]), "cutoff_days": st.integers(0, 5)},
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "items": st.dictionaries(ITEM, CHANGES, max_size=2),
        "drop": st.fixed_dictionaries({"lowest": st.integers(0, 2)}),
        "excused": st.fixed_dictionaries({"items": st.just({"ada": ["a"]})}),
        "late": LATES,
    },
)
EARNED = st.fixed_dictionaries({name: st.sampled_from([0.0, most / 3, most / 2, most]) for name, most in WORTH.items()})
MARKS = st.lists(st.integers(0, 5).map(lambda points: answered(float(points))), max_size=1)


@settings(max_examples=150, deadline=None)
@given(POLICIES, EARNED, MARKS, st.floats(-3, 20), st.none() | st.integers(0, 5))
def test_no_policy_leads_below_nothing_or_above_the_maximum(
    policy: dict[str, Any], earned: dict[str, float], marks: list[Override], days: float, left: int | None
) -> None:
    found = final(of_three(**earned), policy, *marks, days=days, left=left)
    assert found.points is None or 0 <= found.points <= found.most
    assert (found.points is None) == any(change.rule == "none" for change in found.adjustments)
    assert final(of_three(**earned), policy, *marks, days=days, left=left) == found


@settings(max_examples=60, deadline=None)
@given(EARNED, ITEM, POLICIES)
def test_cancelling_what_somebody_passed_changes_no_grade(
    earned: dict[str, float], item: str, policy: dict[str, Any]
) -> None:
    passed, policy = of_three(**earned | {item: WORTH[item]}), {**policy, "items": {}}
    assert final(passed, {**policy, "items": {item: {"cancelled": EVERYBODY}}}) == final(passed, policy)


@settings(max_examples=60, deadline=None)
@given(EARNED, POLICIES, st.floats(0, 9))
def test_late_rules_spare_who_is_on_time_and_never_favour_the_later(
    earned: dict[str, float], policy: dict[str, Any], days: float
) -> None:
    report, policy = of_three(**earned), {**policy, "late": LATE}
    on_time = final(report, policy)
    assert on_time == final(report, {**policy, "late": None})
    late, later = (final(report, policy, days=when).points for when in (days, days + 0.5))
    assert late is None or (later or 0.0) <= late <= (on_time.points or 0.0)
