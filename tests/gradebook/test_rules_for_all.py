"""Items changed for all, deadlines after the first, slip days of a term; and laws that hold of every policy."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import KIT
from sample_reports import THREE, WORTH, of_three, write_report

from autograder.gradebook.decisions import Override
from autograder.gradebook.final_grades import Final, final_of
from autograder.gradebook.grades_folder import stored_reports, write_finals
from autograder.gradebook.rules import EVERYBODY, LEAVES, Late, Policy, Rules, read_policy, read_rules
from autograder.grading.assignments import find_assignment
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report

DEADLINE = datetime(2027, 3, 12, 23, 59, tzinfo=UTC)
SECOND = {"deadline": DEADLINE + timedelta(7), "cost": 20}
LATE = {"deadline": DEADLINE, "later_deadlines": [SECOND], "per_day": 10, "cutoff_days": 2}


ALL = "".join(f'[items.{name}]\ncancelled = "leaves the total"\n' for name in WORTH)
FIRST = "late.deadline = 2027-03-12T00:00:00Z\n"
FREE = "for all: cancelled, everybody gets it"


def final(one: Report, policy: dict[str, Any], *, days: float = 0, left: int | None = None, **more: Any) -> Final:
    times = {one.student: DEADLINE + timedelta(days)}
    slip = None if left is None else lambda student: (left, 5)
    return final_of(one, Rules(Policy(**policy), times=times, slip=slip, **more))


@pytest.mark.parametrize(
    ("earned", "items", "points", "most", "reasons"),
    [
        ({"a": 1}, {"a": {"cancelled": EVERYBODY}}, 20, 20, f"a 1 of 4 → 4 of 4, {FREE}"),
        ({"a": None}, {"a": {"cancelled": EVERYBODY}}, 20, 20, f"a not graded of 4 → 4 of 4, {FREE}"),
        ({"a": 1, "b": 3}, {"a": {"cancelled": LEAVES}}, 16.25, 20, "a cancelled for all (1 of 4)"),
        ({"a": 1}, {"a": {"points": 2}}, 16.5, 18, "a 1 of 4 → 0.5 of 2, for all"),
        ({}, {"a": {"points": 8}}, 24, 24, "a 4 of 4 → 8 of 8, for all"),
        ({"a": 1}, {"a": {"points": 2, "cancelled": EVERYBODY}}, 18, 18, f"a 1 of 4 → 2 of 2, {FREE}"),
        ({"a": 1}, {"a": {"points": 4}}, 17, 20, ""),
    ],
)  # fmt: skip
def test_an_item_changed_for_all_comes_first(
    earned: dict[str, float | None], items: dict[str, Any], points: float, most: float, reasons: str
) -> None:
    found = final(of_three(**earned), {"items": items})
    assert (found.points, found.most, found.reasons) == (points, most, reasons)


def test_override_counts_on_what_the_policy_makes_items_worth(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text("[items.b]\npoints = 3\n")
    given = tmp_path / "given.csv"
    given.write_text("student,item,points,comment\nada,b,3,seen\n")
    rules = read_rules(tmp_path, THREE, None, [given], None)
    assert rules is not None
    assert final_of(of_three(b=0), rules).points == 17
    given.write_text("student,item,points,comment\nada,b,6,seen\n")
    with pytest.raises(UsageError, match="line 2: 6 points, but b has 3"):
        read_rules(tmp_path, THREE, None, [given], None)


@pytest.mark.parametrize(
    ("days", "points", "reason"),
    [
        (0, 20, ""),
        (0.1, 16, "late, but by deadline 2 of 2: minus 20 % of the points earned"),
        (7, 16, "late, but by deadline 2 of 2: minus 20 % of the points earned"),
        (7.1, 14, "1 day late, counted from deadline 2: minus 30 % of the points earned"),
        (9.1, 0, "3 days late, counted from deadline 2, and nothing counts after 2"),
    ],
)
def test_a_second_deadline_has_a_cost_of_its_own(days: float, points: float, reason: str) -> None:
    found = final(of_three(), {"late": LATE}, days=days)
    assert (found.points, found.reasons) == (points, reason)


@pytest.mark.parametrize(
    ("days", "left", "used", "points"),
    [(0, 5, 0, 20), (2.5, 5, 3, 20), (2.5, 2, 2, 18), (4.5, 1, 1, 0), (4.5, 2, 2, 14), (1.0, 0, 0, 18)],
)
def test_slip_days_are_used_as_far_as_they_save_points(days: float, left: int, used: int, points: float) -> None:
    policy = {"late": {"deadline": DEADLINE, "per_day": 10, "cutoff_days": 3}}
    found = final(of_three(), policy, days=days, left=left)
    spent = 0 if points == 0 else used
    assert found.points == points
    assert found.adjustments[0].reason == f"slip days: {spent} used here, {left - spent} of 5 left"


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("[items.z]\npoints = 3\n", 1, "items.z is no item; there are: a, b, c"),
        ("[items.a]\npoints = 0\n", 2, "items.a.points should be greater than or equal to 0.01"),
        ("[items.a]\nworth = 3\n", 2, "items.a.worth is no rule"),
        ('[items.a]\ncancelled = "yes"\n', 2, "items.a.cancelled should be 'everybody gets it' or 'leaves the total'"),
        (ALL, None, "items leaves none that counts"),
        (f"{FIRST}late.later_deadlines = [2027-03-13T00:00:00Z]\n", 2, "late.later_deadlines"),
        (f"{FIRST}late.later_deadlines = [{{deadline = 2027-03-11T00:00:00Z, cost = 5}}]\n", 2, "each be later"),
        (f"{FIRST}late.later_deadlines = [{{deadline = 2027-03-13T00:00:00, cost = 5}}]\n", 1, "has no time zone"),
        (f"{FIRST}late.later_deadlines = [{{cost = 5}}]\n", None, "later_deadlines.deadline is missing"),
    ],
)  # fmt: skip
def test_a_rule_for_all_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str, line: int | None, sentence: str
) -> None:
    (tmp_path / "policy.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        read_policy(tmp_path / "policy.toml", THREE)
    assert sentence in str(refused.value)
    assert line is None or f"line {line}: " in str(refused.value)


def test_the_policy_that_the_guide_shows_can_be_used(tmp_path: Path) -> None:
    guide = (KIT / "autograder" / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "policy.toml").write_text(shown, encoding="utf-8")
    policy = read_policy(tmp_path / "policy.toml", find_assignment(KIT, "policy_gradient"))
    entries = {*Policy.model_fields, *Late.model_fields} - {"of"}
    given = policy.model_fields_set | (policy.late.model_fields_set if policy.late else set())
    assert given == entries, "the guide shows each rule"


# A term


def test_slip_days_are_counted_in_the_order_of_deadlines(tmp_path: Path) -> None:
    (tmp_path / "slip-days.toml").write_text("days = 3\nstudents.bela = 5\n")
    handed_in = {"1-bandits": {"ada": 2, "bela": 2}, "2-theory": {"ada": 2, "bela": 2}, "3-grpo": {"ada": 1, "bela": 2}}
    for number, (name, days) in enumerate(handed_in.items()):
        deadline = DEADLINE + timedelta(weeks=number)
        policy = f"[late]\ndeadline = {deadline.isoformat()}\nper_day = 10\n"
        times = "".join(f"{student},{(deadline + timedelta(late)).isoformat()}\n" for student, late in days.items())
        for student in days:
            write_report(of_three(student), tmp_path / name / "reports" / f"{file_stem(student)}.json")
        (tmp_path / name / "policy.toml").write_text(policy)
        (tmp_path / name / "timestamps.csv").write_text(f"student,submitted\n{times}")
    found = {}
    for name in reversed(handed_in):
        rules = read_rules(tmp_path / name, THREE, None, (), None)
        assert rules is not None
        finals = write_finals(tmp_path / name, stored_reports(tmp_path / name), THREE, rules)
        found[name] = {student: (one.points, one.adjustments[0].reason) for student, one in finals.items()}
    told = "slip days: {} used here, {} left"
    assert found["1-bandits"] == {"ada": (20, told.format(2, "1 of 3")), "bela": (20, told.format(2, "3 of 5"))}
    assert found["2-theory"] == {"ada": (18, told.format(1, "0 of 3")), "bela": (20, told.format(2, "1 of 5"))}
    assert found["3-grpo"] == {"ada": (18, told.format(0, "0 of 3")), "bela": (18, told.format(1, "0 of 5"))}
    (tmp_path / "slip-days.toml").write_text("days = -1\n")
    with pytest.raises(UsageError, match=r"slip-days.toml, line 1: days should be greater than or equal to 0"):
        read_rules(tmp_path / "1-bandits", THREE, None, (), None)


# Laws


ITEM = st.sampled_from(sorted(WORTH))
CHANGES = st.dictionaries(
    ITEM,
    st.fixed_dictionaries(
        {}, optional={"points": st.integers(1, 30), "cancelled": st.sampled_from([EVERYBODY, LEAVES])}
    ),
    max_size=2,
)
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "items": CHANGES,
        "drop": st.fixed_dictionaries({"lowest": st.integers(0, 2)}),
        "excused": st.fixed_dictionaries({"items": st.just({"ada": ["a"]})}),
        "late": st.fixed_dictionaries(
            {
                "deadline": st.just(DEADLINE),
                "per_day": st.integers(0, 100),
                "of": st.sampled_from(["earned", "maximum"]),
            },
            optional={"later_deadlines": st.just(LATE["later_deadlines"]), "cutoff_days": st.integers(0, 5)},
        ),
    },
)
EARNED = st.fixed_dictionaries({name: st.sampled_from([0.0, most / 3, most / 2, most]) for name, most in WORTH.items()})
MARKS = st.lists(
    st.builds(lambda given: Override("ada", "q", float(given), "read", "", 5.0), st.integers(0, 5)), max_size=1
)


@settings(max_examples=150, deadline=None)
@given(POLICIES, EARNED, MARKS, st.floats(-3, 20), st.none() | st.integers(0, 5))
def test_no_policy_leads_below_nothing_or_above_the_maximum(
    policy: dict[str, Any], earned: dict[str, float], marks: list[Override], days: float, left: int | None
) -> None:
    found = final(of_three(**earned), policy, days=days, left=left, overrides=marks)
    assert found.points is None or 0 <= found.points <= found.most
    assert (found.points is None) == any(one.rule == "none" for one in found.adjustments)
    assert final(of_three(**earned), policy, days=days, left=left, overrides=marks) == found


@settings(max_examples=60, deadline=None)
@given(EARNED, ITEM, POLICIES.map(lambda policy: {**policy, "items": {}}))
def test_cancelling_what_somebody_passed_changes_no_grade(
    earned: dict[str, float], item: str, policy: dict[str, Any]
) -> None:
    passed = of_three(**earned | {item: WORTH[item]})
    assert final(passed, {**policy, "items": {item: {"cancelled": EVERYBODY}}}) == final(passed, policy)


@settings(max_examples=60, deadline=None)
@given(EARNED, POLICIES.map(lambda policy: {**policy, "late": LATE}), st.floats(0, 9))
def test_late_rules_change_nothing_on_time_and_never_favour_the_later(
    earned: dict[str, float], policy: dict[str, Any], days: float
) -> None:
    on_time, without = final(of_three(**earned), policy), {**policy, "late": None}
    assert on_time == final(of_three(**earned), without)
    late, later = (final(of_three(**earned), policy, days=when).points for when in (days, days + 0.5))
    assert late is None or (later or 0.0) <= late <= (on_time.points or 0.0)
