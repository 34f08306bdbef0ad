"""What a mistake costs of its function, and the tables of an exam."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from all_assignments import ASSIGNMENTS, each_assignment
from rich.console import Console

from autograder.authoring.exam.fates import Fate
from autograder.authoring.exam.mutants import Variant
from autograder.authoring.exam.selfcheck import Exam
from autograder.cli.authoring import answers_table, exam_table, say_exam
from autograder.cli.terminal import short_name
from autograder.grading.assignment import Assignment, Item

WHOLE = tuple(Fate(Variant(family, family, "", "")) for family in ("solution", "handout"))


def fate(variant: Variant, points: dict[str, float], lost: dict[str, float], *names: str) -> Fate:
    """What became of a variant on these items of its function."""
    items = tuple(Item(name, variant.function, "", most, 5.0, "", (), ()) for name, most in points.items())
    return Fate(variant, items, lost_on={item: points for item, points in lost.items() if points}, named=names)


# Tables


@pytest.mark.parametrize("width", [80, 120])
@each_assignment
def test_tables_of_an_exam_fit_the_terminal(assignment: Assignment, width: int) -> None:
    name = "a-mistake-with-quite-a-long-name-that-is-told"
    fates = tuple(
        fate(Variant("mistake", name, function, ""), {"own": 22.0}, {"own": 17.75}) for function in assignment.functions
    )
    console = Console(width=width, record=True, force_terminal=False)
    say_exam(Exam((*WHOLE, *fates), clauses=(118, 90, 28)), assignment, console, title=False, costs=True)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for function in assignment.functions:
        assert text.count(function.removeprefix("compute_").removeprefix("run_")) >= 2
    assert text.count("81 %") == len(fates)
    say_exam(Exam((*WHOLE, fates[0])), assignment, console, title=False, costs=False)
    rows = re.findall(r"^ (\w+) +1 ", console.export_text(), re.MULTILINE)  # of functions that were tried alone
    assert rows == [short_name(assignment.functions[0]), "all"]


@pytest.mark.parametrize("width", [80, 120])
def test_exam_sentences_wrap_on_a_terminal_only(width: int) -> None:
    assignment = ASSIGNMENTS[0]
    complaint = "A mistake that is called by another name: " + "an-unbroken-name in one function, " * 9
    exam = Exam(WHOLE, (complaint.strip(),))
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
    table = answers_table(Exam(WHOLE, clauses=(10, 6, 3)))
    rows = list(zip(*(map(str, column.cells) for column in table.columns), strict=True))
    assert ("clauses that a mistake tests", "7", "6", "1") in rows
    assert ("clauses not graded, with a reason", "3", "3", "0") in rows


MISTAKE = Variant("mistake", "own", "f", "")


def test_share_is_of_the_mistaken_functions_points() -> None:
    made = fate(MISTAKE, {"a": 3.0, "b": 1.0}, {"a": 1.0, "c": 0.5}, "own", "other")
    assert (made.lost, made.spilt, made.of, made.share, made.naming) == (1.0, 0.5, 4.0, 0.25, "rightly")


def test_table_counts_mistakes_by_naming() -> None:
    rows = [(6, 0, "own"), (6, 0, "other", "own"), (3, 1, "other"), (0, 0)]
    fates = [fate(MISTAKE, {"a": 9.0}, {"a": lost, "b": spilt}, *names) for lost, spilt, *names in rows]
    table = exam_table(fates, TOY.functions)
    assert [list(column.cells)[-1] for column in table.columns] == ["all", "4", "3", "2", "1", "1", "1"]
