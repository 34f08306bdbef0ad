"""What a mistake costs of its function: shares, the list of what may cost more than half, and the tables."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from rich.console import Console

from autograder.authoring.exam.contract import Contract
from autograder.authoring.exam.mutants import Variant
from autograder.authoring.exam.selfcheck import Exam, Fate, Result, cost_complaints
from autograder.cli.authoring import answers_table, exam_table, say_exam
from autograder.grading.assignment import Assignment
from autograder.vocabulary.report import Report, SubmissionInfo

REPORT = Report("", "", SubmissionInfo("", ""), "", (), ())


def fate(slug: str, function: str, lost: float, of: float) -> Fate:
    return Fate(Variant("mistake", slug, function, ""), lost=lost, of=of)


HALF, MORE, MOST = fate("half", "f", 5.0, 10.0), fate("more", "f", 5.5, 10.0), fate("most", "g", 3.0, 4.0)


# Shares


def test_share_is_of_the_mistaken_functions_points() -> None:
    assignment = ASSIGNMENTS[0]
    first, last = assignment.items[0], assignment.items[-1]
    assert first.function != last.function
    mistake = Variant("mistake", "own", first.function, "")
    judged = Fate.judged(mistake, Result({first.id: 1.0, last.id: 0.5}, frozenset({"own"})), assignment)
    whole = sum(item.points for item in assignment.items if item.function == first.function)
    assert (judged.lost, judged.spilt, judged.of, judged.naming) == (1.0, 0.5, whole, "rightly")


# The list


SAY_WHY = "Where that is right, say why in [costly] of contract.toml."
OF_F = f"Mistakes cost more than half of f: more (5.5 of 10 points). {SAY_WHY}"
OF_G = f"Mistakes cost more than half of g: most (3 of 4 points). {SAY_WHY}"
IDLE = "h is listed in [costly] of contract.toml, but no mistake costs more than half of it."


@pytest.mark.parametrize(
    ("listed", "all_tried", "told"),
    [
        ({"f": "one value", "g": "one value"}, True, []),
        ({"f": "one value"}, True, [OF_G]),
        ({}, True, [OF_G, OF_F]),
        ({"f": "one value", "g": "one value", "h": "one value"}, True, [IDLE]),
        ({"f": "one value", "g": "one value", "h": "one value"}, False, []),
        (None, True, []),
    ],
)
def test_functions_of_costly_mistakes_are_listed_and_no_others(
    listed: dict[str, str] | None, all_tried: bool, told: list[str]
) -> None:
    contract = Contract(Path("contract.toml"), (), listed)
    assert cost_complaints([MORE, MOST, HALF], contract, all_tried=all_tried) == told


def test_three_costliest_mistakes_are_told() -> None:
    several = [fate(name, "f", 9.0, 10.0) for name in "abcde"]
    (told,) = cost_complaints(several, Contract(Path("contract.toml"), (), {}), all_tried=True)
    assert "a (9 of 10 points), b (9 of 10 points), c (9 of 10 points) and 2 more." in told


# Tables


@pytest.mark.parametrize("width", [80, 120])
@each_assignment
def test_tables_of_an_exam_fit_the_terminal(assignment: Assignment, width: int) -> None:
    name = "a-mistake-with-quite-a-long-name-that-is-told"
    fates = tuple(fate(name, function, 17.75, 22.0) for function in assignment.functions)
    console = Console(width=width, record=True, force_terminal=False)
    say_exam(Exam(REPORT, REPORT, fates, (), clauses=(118, 90, 28)), assignment, console, title=False, costs=True)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for function in assignment.functions:
        assert text.count(function.removeprefix("compute_").removeprefix("run_")) >= 2
    assert text.count("81 %") == len(fates)


@pytest.mark.parametrize("width", [80, 120])
def test_exam_sentences_wrap_on_a_terminal_only(width: int) -> None:
    assignment = ASSIGNMENTS[0]
    complaint = "A mistake that is called by another name: " + "an-unbroken-name in one function, " * 9
    exam = Exam(REPORT, REPORT, (), (complaint.strip(),))
    told = {}
    for is_terminal in (True, False):
        console = Console(width=width, file=io.StringIO(), force_terminal=is_terminal, no_color=True)
        say_exam(exam, assignment, console, title=True, costs=False)
        told[is_terminal] = re.sub(r"\x1b\[[0-9;]*m", "", console.file.getvalue())  # type: ignore[attr-defined]
    assert max(map(len, told[True].splitlines())) <= width
    words = {word.rstrip(",") for word in told[True].split() if "unbroken" in word or "-name" in word}
    assert words == {"an-unbroken-name"}
    assert complaint.strip() in told[False]


TOY = Assignment("toy", "Toy", "toy", Path("toy"), (), 20.0, ())


def test_table_counts_clauses() -> None:
    table = answers_table(Exam(REPORT, REPORT, (), (), clauses=(10, 6, 3)))
    rows = list(zip(*(map(str, column.cells) for column in table.columns), strict=True))
    assert ("clauses that a mistake tests", "7", "6", "1") in rows
    assert ("clauses not graded, with a reason", "3", "3", "0") in rows


def test_table_counts_mistakes_by_naming() -> None:
    def named(lost: float, spilt: float, *names: str) -> Fate:
        return Fate(Variant("mistake", "own", "f", ""), {}, frozenset(names), lost, spilt, 9.0)

    fates = [named(6, 0, "own"), named(6, 0, "other", "own"), named(3, 1, "other"), named(0, 0)]
    table = exam_table(fates, TOY)
    assert [list(column.cells)[-1] for column in table.columns] == ["all", "4", "3", "2", "1", "1", "1"]
