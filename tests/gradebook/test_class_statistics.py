"""The figures of a class say what is so: of those that ran, without who is excused, and no more than they can."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace

import places
import pytest

from autograder.gradebook.class_statistics import (
    MOST_SHARED,
    NOT_IMPORTED,
    OTHER,
    UNSEEN,
    UNTOUCHED,
    Tally,
    ran,
    stands_out,
    summary,
)
from autograder.gradebook.final_grades import Adjustment, Final
from autograder.vocabulary.report import (
    NOT_REACHED,
    CaseResult,
    ItemResult,
    Report,
    SubmissionInfo,
    Verdict,
    from_json,
)

# Items of a made class: the first eight follow what a student can do, in steps of difficulty.
SOUND = tuple(f"sound-{place}" for place in range(8))
CHANCE, BACKWARDS, IMPOSSIBLE, EASY = "by-chance", "backwards", "impossible", "easy"
MOST = 4.0


def item(
    name: str,
    points: float | None = MOST,
    verdict: Verdict | None = None,
    mistakes: tuple[str, ...] = (),
    message: str = "",
    cases: tuple[CaseResult, ...] = (),
) -> ItemResult:
    if verdict is None:
        verdict = "passed" if points == MOST else "failed"
    return ItemResult(name, "compute", f"title of {name}", points, MOST, verdict, mistakes, message, "", 0.0, cases)


def report(student: str, items: Sequence[ItemResult], cause: str = "") -> Report:
    info = SubmissionInfo(f"{student}/p.py", "00")
    return Report(student, "made", info, "ff", ("seccomp",), tuple(items), cause=cause)


def untouched(student: str, names: Sequence[str]) -> Report:
    return report(student, [item(name, 0.0, "missing", message="It is not implemented yet.") for name in names])


def not_imported(student: str, names: Sequence[str]) -> Report:
    lost = [item(name, 0.0, "raised", message=f"{NOT_REACHED}: p.py could not be imported.") for name in names]
    cause = (
        "p.py could not be imported. Importing it raised SyntaxError: invalid syntax.\nLine 3 of your file:\n  def f("
    )
    return report(student, lost, cause)


def made_class(size: int, seed: int) -> list[Report]:
    """Students of every strength; of the items one is decided by chance, one is won by the weak, two tell nothing."""
    chance = random.Random(seed)
    return [_student(f"s{place:04}", chance) for place in range(size)]


def _student(name: str, chance: random.Random) -> Report:
    strength = chance.gauss(0, 1)
    items = [item(one, MOST * (strength + chance.gauss(0, 0.7) > (place - 3.5) / 4)) for place, one in enumerate(SOUND)]
    items += [
        item(CHANCE, MOST * (chance.random() < 0.5)),
        item(BACKWARDS, MOST * (strength + chance.gauss(0, 0.7) < 0)),
        item(IMPOSSIBLE, 0.0),
        item(EASY, MOST),
    ]
    return report(name, items)


def flags(reports: Sequence[Report]) -> dict[str, list[str]]:
    return {one.item: [flag.kind for flag in one.flags] for one in summary(reports).items if one.flags}


# What stands out


def test_of_a_file_that_cannot_be_imported_the_reason_stands_out_and_not_the_phrase_around_it() -> None:
    assert stands_out(not_imported("ada", ["a"])) == "not imported: SyntaxError: invalid syntax."
    ended = "p.py could not be imported: it ended the Python process (exited with status 0)."
    lost = [item("a", 0.0, "crashed", message=NOT_REACHED)]
    expected = "not imported: it ended the Python process (exited with status 0)."
    assert stands_out(report("ada", lost, ended)) == expected
    late = "p.py had not finished importing in time."
    assert stands_out(report("ada", lost, late)) == late


def test_of_many_names_the_first_stand_out_and_how_many_more_there_are() -> None:
    made = [item("d"), *(item(name, 0.0, mistakes=(f"mistake-{name}",)) for name in "abc")]
    assert stands_out(report("ada", made)) == "mistake-a, mistake-b, mistake-c"
    assert stands_out(report("ada", made), 2) == "mistake-a, mistake-b and 1 more"
    assert stands_out(report("ada", made), 3) == "mistake-a, mistake-b, mistake-c"


# Which items are worth another look


@pytest.mark.parametrize("seed", range(6))
def test_of_a_made_class_exactly_the_unsound_items_are_flagged(seed: int) -> None:
    found = flags(made_class(500, seed))
    assert found.pop(CHANCE) in (["unrelated"], ["reversed"])  # chance may lean to one side
    assert found == {BACKWARDS: ["reversed"], IMPOSSIBLE: ["nobody"]}


@pytest.mark.parametrize("seed", range(3))
def test_submissions_that_did_not_run_hide_no_unsound_item(seed: int) -> None:
    """Thirty files that fail everything alike would lift every correlation: they stand apart, and change no figure."""
    ran_alone = made_class(170, seed)
    names = [one.item for one in ran_alone[0].items]
    others = [untouched(f"u{place}", names) for place in range(15)]
    others += [not_imported(f"v{place}", names) for place in range(15)]
    whole = summary([*ran_alone, *others])
    assert flags([*ran_alone, *others]) == flags(ran_alone)
    for one, alone in zip(whole.items, summary(ran_alone).items, strict=True):
        assert (one.discrimination, one.pass_rate, one.share, one.instead) == (
            alone.discrimination,
            alone.pass_rate,
            alone.share,
            alone.instead,
        )
    assert whole.ran == 170
    assert [(one.kind, one.count) for one in whole.apart] == [(NOT_IMPORTED, 15), (UNTOUCHED, 15)]
    assert whole.students == whole.graded == 200


def test_of_the_sample_class_an_item_loses_the_praise_that_was_owed_to_empty_files() -> None:
    folder = places.GOLDEN / "policy_gradient"
    reports = [from_json(json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]
    figures = summary(reports)
    assert {one.kind: one.students for one in figures.apart} == {
        NOT_IMPORTED: ("hana", "ivan", "luca"),
        UNTOUCHED: ("chidi",),
    }
    everybody = [replace(one, items=tuple(replace(each, message="") for each in one.items)) for one in reports]
    assert [ran(one) for one in everybody].count(False) == 1  # by their verdicts alone, three more would count
    found = {one.item: one for one in figures.items}
    counted = {one.item: one for one in summary(everybody).items}
    before, after = counted["deltas-max"].discrimination, found["deltas-max"].discrimination
    assert before is not None
    assert before > 0.5
    assert after is not None
    assert abs(after) < 0.1


def test_a_small_class_is_flagged_for_nothing_and_told_no_number() -> None:
    figures = summary(made_class(9, 0))
    assert [one.discrimination for one in figures.items] == [None] * 12
    assert [one.flags for one in figures.items] == [()] * 12


@pytest.mark.parametrize("seed", range(20))
def test_of_a_dozen_students_no_sound_item_is_flagged_by_chance(seed: int) -> None:
    assert not {*SOUND, EASY} & flags(made_class(12, seed)).keys()


def test_four_exceptions_in_a_class_flag_nothing() -> None:
    """Four strong students who slip on an item that everybody else passes say something of themselves."""
    reports = sorted(made_class(200, 1), key=lambda one: -(one.points or 0))
    slipped = [replace(one, items=(*one.items[:-1], item(EASY, 0.0))) for one in reports[:4]]
    assert EASY not in flags([*slipped, *reports[4:]])
    many = [replace(one, items=(*one.items[:-1], item(EASY, 0.0))) for one in reports[:30]]
    assert flags([*many, *reports[30:]])[EASY] == ["reversed"]


def test_an_answer_that_most_who_fail_share_without_a_name_is_a_question_to_the_text() -> None:
    tally = Tally()
    for one in made_class(100, 2):
        wrong = {result.item: "the same" for result in one.items if result.verdict == "failed"}
        tally.add(one, answers={name: answer for name, answer in wrong.items() if name == SOUND[4]})
    figures = {one.item: one for one in tally.summary().items}
    assert [flag.kind for flag in figures[SOUND[4]].flags] == ["agreement"]
    assert "gave the same answer, which has no name" in figures[SOUND[4]].flags[0].sentence
    assert [flag.kind for flag in figures[SOUND[5]].flags] == []


def test_what_is_plausible_narrows_as_the_class_grows() -> None:
    few, many = (summary(made_class(size, 3)).items[0] for size in (20, 500))
    for one in (few, many):
        assert one.plausible is not None
        assert one.discrimination is not None
        assert -1 <= one.plausible[0] < one.discrimination < one.plausible[1] <= 1
    assert few.plausible is not None
    assert many.plausible is not None
    assert many.plausible[1] - many.plausible[0] < (few.plausible[1] - few.plausible[0]) / 2


def test_what_students_did_instead_is_counted_the_most_common_first() -> None:
    public = CaseResult("small", "public", "passed", "")
    hidden = CaseResult("large", "hidden", "failed", "")
    rows = [
        *[item("a", 0.0, mistakes=("sign",))] * 3,
        *[item("a", 0.0, mistakes=("mean", "sum"))] * 2,
        item("a", 0.0, "timed_out"),
        item("a", 0.0, "missing"),
        item("a", 0.0),
        item("a", 2.0, cases=(public, hidden)),
        item("a"),
    ]
    (figures,) = summary([report(f"s{place}", [one]) for place, one in enumerate(rows)]).items
    assert figures.instead[:2] == (("sign", 3), ("mean or sum", 2))
    assert len(figures.instead) == 4
    assert dict(figures.instead[2:]).keys() <= {OTHER, UNSEEN, "ran out of time"}
    # A file with nothing but that one missing function has not run.
    assert (figures.graded, figures.passed) == (9, 1)


# Excused students


def excused(student: str, *items: str) -> Final:
    rows = items or ("",)
    adjustments = tuple(Adjustment("excused", one, 1.0, None, f"{student} is excused") for one in rows)
    return Final(None if not items else 3.0, adjustments, 8)


def test_who_is_excused_counts_nowhere() -> None:
    class_ = made_class(40, 4)
    marked = replace(class_[7].items[0], points=0.0, verdict="failed", mistakes=("of an excused student",))
    class_[7] = replace(class_[7], items=(marked, *class_[7].items[1:]))
    tally = Tally()
    for one in class_:
        tally.add(one, excused(one.student) if one is class_[7] else None)
    without = summary([one for one in class_ if one is not class_[7]])
    found = tally.summary()
    assert found.excused == 1
    assert replace(found, excused=0) == without
    assert "of an excused student" not in [one.mistake for one in found.mistakes]


def test_an_item_that_a_student_is_excused_from_counts_for_others_alone() -> None:
    class_ = [report(f"s{place}", [item("a", 0.0), item("b")]) for place in range(12)]
    tally = Tally()
    for one in class_:
        tally.add(one, excused(one.student, "a") if one is class_[0] else None)
    first, second = tally.summary().items
    assert (first.graded, second.graded) == (11, 12)


def test_scores_are_final_grades_where_rules_apply_and_nobody_is_lost_for_it() -> None:
    class_ = [report(f"s{place}", [item("a"), item("b", 0.0)]) for place in range(3)]
    tally = Tally()
    for one, points in zip(class_, (8.0, 2.0, None), strict=True):
        tally.add(one, Final(points, (), one.max_points))
    found = tally.summary()
    assert (found.students, found.graded, found.scored, found.full_marks) == (3, 3, 2, 1)
    assert (found.mean, found.median) == (5, 5)
    assert found.not_graded == ()


def test_the_maximum_is_that_of_final_grades_and_what_lies_above_it_by_extra_credit_is_counted() -> None:
    class_ = [report(f"s{place}", [item("a"), item("b")]) for place in range(2)]
    tally = Tally()
    for one, points in zip(class_, (10.0, 14.0), strict=True):
        tally.add(one, Final(points, (), 12))
    found = tally.summary()
    assert (found.max_points, found.full_marks, found.above) == (12, 1, 1)
    assert [share.count for share in found.distribution[-2:]] == [1, 1]


# Mistakes, answers that agree, faults


def test_a_mistake_costs_what_its_items_lost_and_several_names_share_an_answer() -> None:
    class_ = [
        report("ada", [item("a", 1.0, mistakes=("sign",)), item("b", 0.0, mistakes=("sign",))]),
        report("bob", [item("a", 2.0, mistakes=("sign", "mean")), item("b")]),
    ]
    costs = {one.mistake: one.cost for one in summary(class_).mistakes}
    assert costs == {"sign": 8.0, "mean": 1.0}
    assert sum(costs.values()) == sum(one.max_points - (one.points or 0.0) for one in class_)


def test_a_mistake_leads_to_the_item_of_each_student_and_tells_the_hint_of_it_alone() -> None:
    own = replace(item("b", 0.0, mistakes=("sign",)), hint="Which sign?")
    both = replace(item("a", 0.0, mistakes=("sign", "mean")), hint="Which sign? Or which mean?")
    class_ = [report("ada", [both, own]), report("bob", [item("a"), own])]
    sign = next(one for one in summary(class_).mistakes if one.mistake == "sign")
    assert [(who.student, who.item) for who in sign.who] == [("ada", "a"), ("bob", "b")]
    assert sign.hint == "Which sign?"
    assert sign.function == "compute"


def told(answers: dict[str, dict[str, str]]) -> list[tuple[tuple[str, ...], int, float]]:
    tally = Tally()
    for student, given in answers.items():
        tally.add(report(student, [item(name, 1.0) for name in given]), answers=given)
    return [(one.items, one.count, one.cost) for one in tally.summary().shared]


def test_answers_without_a_name_that_agree_are_one_group_over_the_items_on_which_the_same_students_agree() -> None:
    same = {"a": "11", "b": "22", "c": "33"}
    assert told({"ada": same, "bob": same, "cyd": {**same, "c": "44"}}) == [(("a", "b"), 3, 18.0), (("c",), 2, 6.0)]


def test_an_answer_of_one_student_or_with_a_name_is_no_group() -> None:
    assert told({"ada": {"a": "11"}, "bob": {"a": "22"}}) == []
    tally = Tally()
    for student in ("ada", "bob"):
        tally.add(report(student, [item("a", 0.0, mistakes=("sign",))]), answers={"a": "11"})
    assert tally.summary().shared == ()


def test_of_many_groups_the_costliest_are_told() -> None:
    tally = Tally()
    for place in range(2 * (MOST_SHARED + 5)):
        worth = 0.0 if place // 2 else 3.0
        tally.add(report(f"s{place:03}", [item("a", worth)]), answers={"a": f"{place // 2:02}"})
    shared = tally.summary().shared
    assert len(shared) == MOST_SHARED
    assert "00" not in [one.answer for one in shared]  # which cost least


def test_faults_are_told_by_exception_and_line() -> None:
    message = "compute raised TypeError: 'int' object is not callable.\nLine 31 of your file:\n  return mean(rewards)()"
    named = "compute raised MyOwnError: no.\nLine 2 of cell 7 (text cells count):\n  raise MyOwnError"
    class_ = [
        report("ada", [item("a", 0.0, "raised", message=message), item("b")]),
        report("bob", [item("a", 0.0, "raised", message=named), item("b")]),
        not_imported("cyd", ["a", "b"]),
    ]
    found = [(one.verdict, one.error, one.function, [who.place for who in one.who]) for one in summary(class_).faults]
    assert found == [
        ("raised", "SyntaxError", None, ["line 3 of the file"]),
        ("raised", "TypeError", "compute", ["line 31 of the file"]),
        ("raised", "", "compute", ["line 2 of cell 7"]),  # the name of a student's own exception is no kind
    ]
