"""What a mistake costs of its function: shares, the list of what may cost more than half, and the tables."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from rich.console import Console

from autograder.authoring.exam.contract import Contract, Coverage, read_contract
from autograder.authoring.exam.mutants import Mutant
from autograder.authoring.exam.selfcheck import Cost, Exam, Fate, Finding, Known, cost_complaints, costs, without_costly
from autograder.cli.authoring import answers_table, costs_table, each_cost_table, exam_table, say_exam
from autograder.grading.assignment import Assignment
from autograder.vocabulary.report import Report, SubmissionInfo

HALF = Cost("half", "f", 5.0, 10.0)
MORE = Cost("more", "f", 5.5, 10.0)
HABIT = Cost("habit:cast", "g", 3.0, 4.0)


# Shares


@each_assignment
def test_share_is_of_the_mistaken_functions_points(assignment: Assignment) -> None:
    function = assignment.functions[0]
    whole = sum(item.points for item in assignment.items if item.function == function)
    finding = Finding(Known("own", function, ""), 1.0, 7.0, frozenset())
    changed = Mutant("habit", "cast", function, "", "x", "x.float()")
    fates = [
        Fate(changed, {"one": whole}),
        Fate(changed),
        Fate(Mutant("operator", "", function, "", "", ""), {"one": whole}),
    ]
    found = costs(assignment, [finding], fates)
    assert [(cost.name, cost.lost, cost.of) for cost in found] == [("habit:cast", whole, whole), ("own", 1.0, whole)]


def test_exactly_half_is_not_more_than_half() -> None:
    assert [cost.is_costly for cost in (HALF, MORE, HABIT)] == [False, True, True]


# The list


SAY_WHY = "Where that is right, say why in [costly] of contract.toml."
OF_F = f"Mistakes cost more than half of f: more (5.5 of 10 points). {SAY_WHY}"
OF_G = f"Mistakes cost more than half of g: habit:cast (3 of 4 points). {SAY_WHY}"
IDLE = "h is listed in [costly] of contract.toml, but no mistake costs more than half of it."


@pytest.mark.parametrize(
    ("listed", "all_tried", "told"),
    [
        ({"f": "one value", "g": "one value"}, True, []),
        ({"f": "one value"}, True, [OF_G]),
        ({}, True, [OF_F, OF_G]),
        ({"f": "one value", "g": "one value", "h": "one value"}, True, [IDLE]),
        ({"f": "one value", "g": "one value", "h": "one value"}, False, []),
        (None, True, []),
    ],
)
def test_functions_of_costly_mistakes_are_listed_and_no_others(
    listed: dict[str, str] | None, all_tried: bool, told: list[str]
) -> None:
    contract = Contract(Path("contract.toml"), (), listed)
    assert cost_complaints([MORE, HABIT, HALF], contract, all_tried=all_tried) == told


def test_the_three_costliest_mistakes_are_told_once_each() -> None:
    found = [Cost(name, "f", 9.0, 10.0) for name in ("a", "a", "b", "c", "d", "e")]
    (told,) = cost_complaints(found, Contract(Path("contract.toml"), (), {}), all_tried=True)
    assert "a (9 of 10 points), b (9 of 10 points), c (9 of 10 points) and 2 more." in told


@pytest.mark.parametrize("contract", [None, Contract(Path("contract.toml"), ())])
def test_costly_mistakes_without_list_are_counted_in_a_note(contract: Contract | None) -> None:
    (note,) = without_costly(contract, [MORE, HABIT, HALF])
    assert note.startswith("2 mistakes cost more than half of their function")
    assert without_costly(contract, [HALF]) == []


@each_assignment
def test_contract_lists_functions_with_costly_mistakes(assignment: Assignment) -> None:
    contract = read_contract(assignment)
    assert contract is not None
    assert contract.costly is not None
    assert contract.costly.keys() <= set(assignment.functions)


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
def test_exam_sentences_wrap_on_a_terminal_only(width: int) -> None:
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


def test_mistake_is_listed_at_its_shown_share() -> None:
    found = [Cost("habit:cast", "f", 8.0, 10.0), Cost("a", "f", 5.0, 10.0), Cost("habit:cast", "f", 1.0, 10.0)]
    table = each_cost_table(sorted(found, key=lambda cost: -cost.share))
    assert list(table.columns[-1].cells) == ["80 %", "50 %"]


def test_clauses_are_counted_beside_the_mutants() -> None:
    report = Report("", "", SubmissionInfo("", ""), "", (), ())
    table = answers_table(Exam(report, report, (), (), coverage=Coverage(clauses=10, tested=6, not_graded=3)))
    rows = list(zip(*(map(str, column.cells) for column in table.columns), strict=True))
    assert ("clauses that a mistake tests", "7", "6", "1") in rows
    assert ("clauses not graded, with a reason", "3", "3", "0") in rows


def _toy() -> Assignment:
    return Assignment("toy", "Toy", "toy", Path("toy"), (), 20.0, ())
