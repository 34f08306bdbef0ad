"""What a mistake costs of its function: shares, the list of what may cost more than half, and the tables."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from rich.console import Console

from autograder.authoring.exam.contract import CONTRACT
from autograder.authoring.exam.costs import COSTLY, Cost, cost_complaints, costs, read_costly
from autograder.authoring.exam.coverage import Coverage
from autograder.authoring.exam.exam import Exam
from autograder.authoring.exam.findings import Fate, Finding, Known
from autograder.authoring.exam.mutants import Mutant
from autograder.cli.selfcheck import say_exam
from autograder.cli.tables import answers_table, costs_table, each_cost_table, exam_table
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import FixtureError
from autograder.vocabulary.report import Report, SubmissionInfo

HALF = Cost("half", "f", 5.0, 10.0)
MORE = Cost("more", "f", 5.5, 10.0)
HABIT = Cost("habit:cast", "g", 3.0, 4.0, "x = x.float()")
NOTHING_LISTED: dict[tuple[str, str], str] = {}


def written(folder: Path, text: str) -> dict[tuple[str, str], str] | None:
    (folder / COSTLY).write_text(text, encoding="utf-8")
    return read_costly(folder)


# Shares


@each_assignment
def test_a_share_is_of_the_points_of_the_mistakes_own_function(assignment: Assignment) -> None:
    function = assignment.functions[0]
    whole = sum(item.points for item in assignment.items if item.function == function)
    finding = Finding(Known("own", function, ""), 1.0, 7.0, frozenset())
    changed = Mutant("habit", "cast", function, "", "x", "x.float()")
    fates = [
        Fate(changed, False, {"one": whole}),
        Fate(changed, True),
        Fate(Mutant("operator", "", function, "", "", ""), False),
    ]
    found = costs(assignment, [finding], fates)
    assert [(cost.name, cost.lost, cost.of, cost.what) for cost in found] == [
        ("habit:cast", whole, whole, "x.float()"),
        ("own", 1.0, whole, ""),
    ]


def test_exactly_half_is_not_more_than_half() -> None:
    assert [cost.is_costly for cost in (HALF, MORE, HABIT)] == [False, True, True]


# The list


def test_an_entry_without_mistakes_is_of_all_those_of_its_function(tmp_path: Path) -> None:
    listed = written(tmp_path, '[[costly]]\nfunction = "f"\nreason = "it has one value"\n')
    assert listed == {("", "f"): "it has one value"}
    assert cost_complaints([HALF, MORE], listed, all_tried=True) == []
    (told,) = cost_complaints([HALF, MORE, HABIT], listed, all_tried=True)
    assert "habit:cast costs 3 of 4 points of g" in told
    (told,) = cost_complaints([HALF], listed, all_tried=True)
    assert told == "f is listed in costly.toml, but nothing costs more than half of it."


def test_an_entry_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match="cannot be used"):
        written(tmp_path, '[[costly]]\nreason = "it has one value"\n')


def test_an_assignment_without_a_list_has_none(tmp_path: Path) -> None:
    assert read_costly(tmp_path) is None


def test_a_reason_may_be_given_for_one_mistake_or_for_several(tmp_path: Path) -> None:
    several = "[[costly]]\nmistakes = ['a', 'habit:cast']\nfunction = 'f'\nreason = 'wrong in every use'\n"
    assert written(tmp_path, f"{several}[[costly]]\nmistake = 'b'\nreason = 'so too'\n") == {
        ("a", "f"): "wrong in every use",
        ("habit:cast", "f"): "wrong in every use",
        ("b", ""): "so too",
    }


@pytest.mark.parametrize(
    "text", ["[[costly]\n", "[[costly]]\nmistake = 'a'\n", "[[costly]]\nreason = 'a'\n", "a = 1\n", "costly = 1"]
)
def test_a_list_that_cannot_be_used_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    with pytest.raises(FixtureError, match=r"costly.toml cannot be used"):
        written(tmp_path, text)


def test_more_than_half_without_a_reason_is_told_with_the_points_and_the_change() -> None:
    assert cost_complaints([HABIT, MORE, HALF], NOTHING_LISTED, all_tried=True) == [
        "habit:cast costs 3 of 4 points of g, more than half, and is not listed in costly.toml. x = x.float()",
        "more costs 5.5 of 10 points of f, more than half, and is not listed in costly.toml.",
    ]


def test_what_is_listed_is_not_told_and_what_is_listed_for_nothing_is() -> None:
    listed = {("more", ""): "so", ("habit:cast", "f"): "of another function", ("half", ""): "no more than half"}
    assert cost_complaints([HABIT, MORE, HALF], listed, all_tried=True) == [
        "habit:cast costs 3 of 4 points of g, more than half, and is not listed in costly.toml. x = x.float()",
        "habit:cast is listed in costly.toml, but costs no more than half of f.",
        "half is listed in costly.toml, but costs no more than half of its function.",
    ]
    assert len(cost_complaints([HABIT, MORE, HALF], listed, all_tried=False)) == 1


def test_a_misspelt_mistake_of_the_list_is_told_with_the_nearest_right_one() -> None:
    (told,) = cost_complaints([HALF], {("habit:csat", "f"): "so"}, all_tried=True)
    assert told == "habit:csat is listed in costly.toml, but costs no more than half of f."
    (told, *_) = cost_complaints([HALF, HABIT], {("habit:csat", ""): "so", ("habit:cast", ""): "so"}, all_tried=True)
    assert told.endswith("Is 'habit:cast' meant?")


@each_assignment
def test_an_assignment_that_has_a_contract_says_what_may_cost_more_than_half(assignment: Assignment) -> None:
    has_contract = (assignment.folder / CONTRACT).is_file()
    assert (read_costly(assignment.folder) is not None) >= has_contract


# Tables


@pytest.mark.parametrize("width", [80, 110, 120])
@each_assignment
def test_the_tables_of_an_exam_fit_the_terminal(assignment: Assignment, width: int) -> None:
    found = [Cost("parameter:compute_ref_model_period-ignored", name, 17.75, 22.0) for name in assignment.functions]
    findings = [Finding(Known("own", name, ""), 1.0, 0.0, frozenset()) for name in assignment.functions]
    report = Report("", "", SubmissionInfo("", ""), "", (), ())
    exam = Exam(report, report, (), (), coverage=Coverage(118, 90, 28), costs=tuple(found))
    tables = [
        exam_table(findings, assignment),
        answers_table(exam),
        costs_table(found, assignment),
        each_cost_table(found),
    ]
    console = Console(width=width, record=True, force_terminal=False)
    for table in tables:
        console.print(table)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for name in assignment.functions:
        assert text.count(name.removeprefix("compute_").removeprefix("run_")) >= 3
    assert "parameter:compute_ref" in text


@pytest.mark.parametrize("width", [80, 120])
def test_sentences_of_an_exam_break_between_words_on_a_terminal_and_nowhere_in_a_file(width: int) -> None:
    assignment, report = ASSIGNMENTS[0], Report("", "", SubmissionInfo("", ""), "", (), ())
    complaint = "A mistake that is called by another name: " + "an-unbroken-name in one function, " * 9
    exam = Exam(report, report, (), (complaint.strip(),))
    told = {}
    for is_terminal in (True, False):
        console = Console(width=width, file=io.StringIO(), force_terminal=is_terminal, no_color=True)
        say_exam(exam, assignment, console, title=True, costs=False)
        told[is_terminal] = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    assert max(map(len, told[True].splitlines())) <= width
    words = {word.rstrip(",") for word in told[True].split() if "unbroken" in word or "-name" in word}
    assert words == {"an-unbroken-name"}
    assert complaint.strip() in told[False]


def test_the_shares_are_counted_by_quarters(capsys: pytest.CaptureFixture[str]) -> None:
    assignment = _toy()
    table = costs_table([Cost("a", "f", points, 8.0) for points in (1, 2, 3, 4, 5, 8)], assignment)
    cells = [list(column.cells) for column in table.columns]
    assert [column[-1] for column in cells] == ["all", "6", "2", "2", "1", "1"]


def test_each_mistake_stands_at_the_share_that_is_shown_of_it() -> None:
    found = [Cost("habit:cast", "f", 8.0, 10.0), Cost("a", "f", 5.0, 10.0), Cost("habit:cast", "f", 1.0, 10.0)]
    table = each_cost_table(sorted(found, key=lambda cost: -cost.share))
    assert list(table.columns[-1].cells) == ["80 %", "50 %"]


def test_clauses_are_counted_beside_the_mutants() -> None:
    report = Report("", "", SubmissionInfo("", ""), "", (), ())
    table = answers_table(Exam(report, report, (), (), coverage=Coverage(clauses=10, tested=6, not_graded=3)))
    rows = list(zip(*(list(column.cells) for column in table.columns), strict=True))
    assert ("clauses that a mistake tests", "7", "6", "1") in rows
    assert ("clauses not graded, with a reason", "3", "3", "0") in rows


def _toy() -> Assignment:
    return Assignment("toy", "Toy", "toy", Path("toy"), (), 20.0, ())
