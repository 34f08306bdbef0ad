"""What a mistake costs of its function, and the tables of an exam."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from rich.console import Console

from autograder.authoring.exam.mutants import Variant
from autograder.authoring.exam.selfcheck import Exam, Fate
from autograder.cli.authoring import answers_table, exam_table, say_exam
from autograder.grading.assignment import Assignment
from autograder.vocabulary.report import Report, SubmissionInfo

REPORT = Report("", "", SubmissionInfo("", ""), "", (), ())


# Tables


@pytest.mark.parametrize("width", [80, 120])
@each_assignment
def test_tables_of_an_exam_fit_the_terminal(assignment: Assignment, width: int) -> None:
    name = "a-mistake-with-quite-a-long-name-that-is-told"
    fates = tuple(
        Fate(Variant("mistake", name, function, ""), {"own": 17.75}, own={"own": 22.0})
        for function in assignment.functions
    )
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


def test_share_is_of_the_mistaken_functions_points() -> None:
    fate = Fate(
        Variant("mistake", "own", "f", ""), {"a": 1.0, "c": 0.5}, frozenset({"own", "other"}), {"a": 3.0, "b": 1.0}
    )
    assert (fate.lost, fate.spilt, fate.of, fate.share, fate.naming) == (1.0, 0.5, 4.0, 0.25, "rightly")


def test_table_counts_mistakes_by_naming() -> None:
    def named(lost: float, spilt: float, *names: str) -> Fate:
        return Fate(Variant("mistake", "own", "f", ""), {"a": lost, "b": spilt}, frozenset(names), {"a": 9.0})

    fates = [named(6, 0, "own"), named(6, 0, "other", "own"), named(3, 1, "other"), named(0, 0)]
    table = exam_table(fates, TOY)
    assert [list(column.cells)[-1] for column in table.columns] == ["all", "4", "3", "2", "1", "1", "1"]
