"""The figures of a class: of those that ran, without who is excused, and no more than they can say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from sample_reports import item as any_item
from sample_reports import report as any_report

from autograder.gradebook.class_statistics import (
    MOST_SHARED,
    NOT_IMPORTED,
    OTHER,
    UNSEEN,
    UNTOUCHED,
    Tally,
    stands_out,
    summary,
)
from autograder.gradebook.final_grades import Adjustment, Final
from autograder.gradebook.grades_folder import with_final
from autograder.vocabulary.report import NOT_REACHED, CaseResult, ItemResult, Report, Verdict

# Items of a made class: the first eight follow what a student can do, in steps of difficulty.
SOUND = tuple(f"sound-{place}" for place in range(8))
CHANCE, BACKWARDS, IMPOSSIBLE, EASY = "by-chance", "backwards", "impossible", "easy"
ITEMS = (*SOUND, CHANCE, BACKWARDS, IMPOSSIBLE, EASY)
MOST = 4.0
SYNTAX = "p.py could not be imported. Importing it raised SyntaxError: invalid syntax.\nLine 3 of your file:\n  def f("


def item(name: str, points: float | None = MOST, verdict: Verdict | None = None, **more: object) -> ItemResult:
    verdict = verdict or ("passed" if points == MOST else "failed")
    return replace(any_item(name, points, MOST, verdict, ()), function="compute", **more)  # type: ignore[arg-type]


def report(student: str, *items: ItemResult, cause: str = "") -> Report:
    return replace(any_report(student, *items), cause=cause)


def untouched(student: str, names: Sequence[str] = ITEMS) -> Report:
    return report(student, *(item(name, 0.0, "missing", message="It is not implemented yet.") for name in names))


def not_imported(student: str, names: Sequence[str] = ITEMS, cause: str = SYNTAX) -> Report:
    return report(student, *(item(name, 0.0, "raised", message=f"{NOT_REACHED}: p.py.") for name in names), cause=cause)


def made_class(size: int, seed: int) -> list[Report]:
    """Students of every strength; of the items one is decided by chance, one is won by the weak, two tell nothing."""
    chance = random.Random(seed)

    def student(name: str) -> Report:
        strength = chance.gauss(0, 1)
        sound = [MOST * (strength + chance.gauss(0, 0.7) > (place - 3.5) / 4) for place in range(len(SOUND))]
        others = [MOST * (chance.random() < 0.5), MOST * (strength + chance.gauss(0, 0.7) < 0), 0.0, MOST]
        return report(name, *map(item, ITEMS, [*sound, *others]))

    return [student(f"s{place:04}") for place in range(size)]


KINDS = {"does worse": "reversed", "does no better": "unrelated", "Nobody passed": "nobody", "same answer": "agreement"}


def flags(reports: Sequence[Report], answers: dict[str, str] | None = None) -> dict[str, list[str]]:
    """The kinds of flags of each item that has some."""
    tally = Tally()
    for one in reports:
        tally.add(one, answers or {})
    return {
        one.item: [next(kind for words, kind in KINDS.items() if words in flag) for flag in one.flags]
        for one in tally.summary().items
        if one.flags
    }


# A class


def test_figures_leave_out_what_was_not_graded() -> None:
    results = {
        "ada": (item("a"), item("b", 6.0, "passed")),
        "bob": (item("a", 0.0, mistakes=("sign", "mean")), item("b", 3.0, mistakes=("sign",))),
        "cyd": (item("a", 0.0, mistakes=("sign",)), item("b", 6.0, "passed")),
        "dan": (item("a"), item("b", None, "not_graded")),
    }
    class_ = [report(student, a, replace(b, max_points=6.0)) for student, (a, b) in results.items()]
    figures = summary(class_)
    assert (figures.students, figures.graded, figures.not_graded, figures.max_points) == (4, 3, ("dan",), 10)
    assert (figures.mean, figures.median) == (pytest.approx(19 / 3), 6)
    first, second = figures.items
    assert (first.item, first.passed, first.graded, first.pass_rate) == ("a", 2, 4, 0.5)
    assert (second.passed, second.graded, second.pass_rate) == (2, 3, pytest.approx(2 / 3))
    assert second.verdicts == {"passed": 2, "failed": 1, "not_graded": 1}
    sign, mean = figures.mistakes
    assert (sign.name, sign.items, [who.student for who in sign.who]) == ("sign", ["a", "b"], ["bob", "cyd"])
    assert (mean.name, [who.student for who in mean.who]) == ("mean", ["bob"])
    assert summary(reversed(class_)) == figures


def test_class_of_nobody_has_no_figures() -> None:
    figures = summary([])
    assert (figures.students, figures.mean, figures.median) == (0, None, None)
    assert (figures.items, figures.mistakes, figures.faults) == ((), (), ())
    assert summary([report("ada", item("a", None, "not_graded"))]).items[0].pass_rate is None


ENDED = "it ended the Python process (exited with status 0)."


@pytest.mark.parametrize(
    ("cause", "shown"),
    [
        (SYNTAX, "not imported: SyntaxError: invalid syntax."),
        (f"p.py could not be imported: {ENDED}", f"not imported: {ENDED}"),
        ("p.py had not finished importing in time.", "p.py had not finished importing in time."),
    ],
)
def test_reason_of_a_failed_import_stands_out(cause: str, shown: str) -> None:
    assert stands_out(not_imported("ada", cause=cause)) == shown


# Which items are worth another look


@pytest.mark.parametrize("seed", range(3))
def test_unsound_items_are_flagged_and_no_others(seed: int) -> None:
    found = flags(made_class(500, seed))
    assert found.pop(CHANCE) in (["unrelated"], ["reversed"])  # chance may lean to one side
    assert found == {BACKWARDS: ["reversed"], IMPOSSIBLE: ["nobody"]}


@pytest.mark.parametrize("seed", range(2))
def test_submissions_that_did_not_run_hide_no_unsound_item(seed: int) -> None:
    """Thirty files that fail everything alike would lift every correlation: they stand apart, and change no figure."""
    ran_alone = made_class(170, seed)
    others = [make(f"{make.__name__}{place}") for make in (untouched, not_imported) for place in range(15)]
    whole = summary([*ran_alone, *others])
    assert flags([*ran_alone, *others]) == flags(ran_alone)
    for one, alone in zip(whole.items, summary(ran_alone).items, strict=True):
        for name in ("discrimination", "pass_rate", "share", "instead"):
            assert getattr(one, name) == getattr(alone, name)
    assert (whole.ran, whole.apart) == (170, {NOT_IMPORTED: 15, UNTOUCHED: 15})
    assert whole.students == whole.graded == 200


def test_small_class_is_told_no_number_and_flags_nothing_by_chance() -> None:
    assert [(one.discrimination, one.flags) for one in summary(made_class(9, 0)).items] == [(None, ())] * 12
    for seed in range(6):
        assert not {*SOUND, EASY} & flags(made_class(12, seed)).keys()


@pytest.mark.parametrize(("count", "expected"), [(4, None), (30, ["reversed"])])
def test_four_exceptions_in_a_class_flag_nothing(count: int, expected: list[str] | None) -> None:
    """Four strong students who slip on an item that everybody else passes say something of themselves."""
    reports = sorted(made_class(200, 1), key=lambda one: -(one.points or 0))
    slipped = [replace(one, items=(*one.items[:-1], item(EASY, 0.0))) for one in reports[:count]]
    assert flags([*slipped, *reports[count:]]).get(EASY) == expected


def test_wrong_answer_that_most_share_is_a_question_to_the_text() -> None:
    found = flags(made_class(100, 2), {SOUND[4]: "the same"})
    assert (found[SOUND[4]], found.get(SOUND[5])) == (["agreement"], None)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([(n / 4, n / 2) for n in range(12)], 1),
        ([(n / 4, 6 - n / 2) for n in range(12)], -1),
        ([(4.0 * (n % 2), n // 2 % 2) for n in range(12)], 0),  # an item does not count towards its own
        ([(0, 1), (1, 2), (2, 2), (3, 5)] * 3, 0.8**0.5),
        ([(4, n / 2) for n in range(12)], None),  # everybody has the same points
        ([(0.1 * n, 0.3) for n in range(12)], None),  # the rest is the same but for rounding
        ([(n / 4, n / 2) for n in range(9)], None),  # too few students
    ],
)
def test_discrimination_is_the_correlation_with_the_rest(
    scores: list[tuple[float, float]], expected: float | None
) -> None:
    class_ = [
        report(f"s{place:02}", item("a", a, "failed"), item("b", b, "failed")) for place, (a, b) in enumerate(scores)
    ]
    lost = report("zed", item("a", 3.0), item("b", None, "not_graded"))  # counts for no correlation
    for one in summary([*class_, lost]).items:  # of two items, each is the other's rest
        assert one.discrimination == (None if expected is None else pytest.approx(expected, abs=1e-9))


def test_what_students_did_instead_is_counted() -> None:
    public, hidden = CaseResult("small", "public", "passed", ""), CaseResult("large", "hidden", "failed", "")
    results = [
        *[item("a", 0.0, mistakes=("sign",))] * 3,
        *[item("a", 0.0, mistakes=("mean", "sum"))] * 2,
        *(item("a", 0.0, "timed_out"), item("a", 0.0, "missing"), item("a", 0.0), item("a")),
        item("a", 2.0, cases=(public, hidden)),
    ]
    (figures,) = summary([report(f"s{place}", one) for place, one in enumerate(results)]).items
    assert figures.instead[:2] == (("sign", 3), ("mean or sum", 2))
    assert len(figures.instead) == 4
    assert dict(figures.instead[2:]).keys() <= {OTHER, UNSEEN, "ran out of time"}
    assert (figures.graded, figures.passed) == (9, 1)  # a file with nothing but a missing function has not run


# Final grades and excuses


def test_excused_student_counts_nowhere() -> None:
    class_ = made_class(40, 4)
    marked = replace(class_[7].items[0], points=0.0, verdict="failed", mistakes=("of an excused student",))
    class_[7] = replace(class_[7], items=(marked, *class_[7].items[1:]))
    excused = Final(None, (Adjustment("excused", "", 1.0, None, "excused"),), 8)
    found = summary([with_final(one, {class_[7].student: excused}) for one in class_])
    assert found.excused == 1
    assert replace(found, excused=0) == summary([one for one in class_ if one is not class_[7]])


def test_scores_are_final_grades_where_rules_apply() -> None:
    def of(most: float, **points: float | None) -> list[Report]:
        lost = {name: item("b", 0.0) for name in points}
        return [with_final(report(name, item("a"), lost[name]), {name: Final(points[name], (), most)}) for name in lost]

    found = summary(of(8.0, ada=8.0, bob=2.0, cyd=None))
    assert (found.students, found.graded, found.scored, found.full_marks) == (3, 3, 2, 1)
    assert (found.mean, found.median, found.not_graded) == (5, 5, ())
    found = summary(of(12, ada=10.0, bob=14.0))
    assert (found.max_points, found.full_marks, found.above) == (12, 1, 1)
    assert found.distribution[-2:] == (1, 1)


# Mistakes, answers that agree, faults


def test_mistake_costs_what_its_items_lost() -> None:
    hinted = item("b", 0.0, mistakes=("sign",), hint="Which sign?")
    both = item("a", 2.0, mistakes=("sign", "mean"), hint="Which sign? Or which mean?")
    class_ = [report("ada", item("a", 1.0, mistakes=("sign",)), hinted), report("bob", both, item("b"))]
    mistakes = {one.name: one for one in summary(class_).mistakes}
    assert {name: one.cost for name, one in mistakes.items()} == {"sign": 8.0, "mean": 1.0}  # a share for each name
    assert [(who.student, who.item) for who in mistakes["sign"].who] == [("ada", "a"), ("bob", "a")]
    assert (mistakes["sign"].function, mistakes["mean"].hint) == ("compute", "")  # a hint of one mistake alone


MANY = {f"s{place:03}": {"a": f"{place // 2:02}"} for place in range(2 * (MOST_SHARED + 5))}


@pytest.mark.parametrize(
    ("answers", "shared"),
    [
        (
            {"ada": {"a": "1", "b": "2", "c": "3"}, "bob": {"a": "1", "b": "2", "c": "3"}, "cyd": {"a": "1", "b": "2"}},
            [(["a", "b"], 3, 18.0), (["c"], 2, 6.0)],  # items on which the same students agree are one answer
        ),
        ({"ada": {"a": "1"}, "bob": {"a": "2"}}, []),
        (MANY, [(["a"], 2, 6.0)] * MOST_SHARED),
    ],
    ids=("three", "none", "many"),
)
def test_answers_without_a_name_that_agree_are_one(
    answers: dict[str, dict[str, str]], shared: list[tuple[list[str], int, float]]
) -> None:
    tally, named = Tally(), Tally()
    for student, given in answers.items():
        tally.add(report(student, *(item(name, 1.0) for name in given)), answers=given)
        named.add(report(student, *(item(name, 1.0, mistakes=("sign",)) for name in given)), answers=given)
    assert [(one.items, one.count, one.cost) for one in tally.summary().shared] == shared
    assert named.summary().shared == ()


def test_faults_are_told_by_exception_function_and_line() -> None:
    text = "compute raised TypeError: 'int' object is not callable.\nLine 31 of your file:\n  return mean(rewards)()"
    named = "compute raised MyOwnError: no.\nLine 2 of cell 7 (text cells count):\n  raise MyOwnError"
    class_ = [
        report("ada", item("a", 0.0, "raised", message=text), item("b")),
        report("bob", item("a", 0.0, "raised", message=named), item("b")),
        not_imported("cyd", ["a", "b"]),
        report("dan", item("a", 0.0, "timed_out"), item("b", 0.0, "timed_out")),
        report("eve", item("a", 0.0), item("b", 0.0)),
        report("fay", item("a", 0.0, "missing"), item("b")),
    ]
    found = [(one.verdict, one.name, one.function, [who.place for who in one.who]) for one in summary(class_).faults]
    assert found == [
        ("raised", "SyntaxError", "", ["line 3 of the file"]),
        ("timed_out", "", "", [""]),
        ("raised", "TypeError", "compute", ["line 31 of the file"]),
        ("raised", "", "compute", ["line 2 of cell 7"]),  # the name of a student's own exception is no kind
    ]
