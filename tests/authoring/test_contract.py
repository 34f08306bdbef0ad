"""The contract as data: sentences cut from docstrings, clauses read from a file, and the two held together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from all_assignments import each_assignment
from toy_kit import toy_assignment

from autograder.authoring.exam.contract import CONTRACT, Clause, contract_complaints, not_quoted, read_contract
from autograder.authoring.exam.mutants import Variant, mutants_of
from autograder.authoring.exam.selfcheck import Exam, selfcheck
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.cli.options import CACHE
from autograder.grading.assignment import Assignment
from autograder.grading.fixtures import read_fixtures
from autograder.vocabulary.errors import FixtureError

RAMP = '[ramp]\n"Return factor * x above 0 and 0 below." = ["no-kink"]\n'
SHIFT = '[shift]\n"Return x + factor." = ["wrong-way"]\n'


def written(kit: Path, text: str) -> tuple[Clause, ...]:
    (kit / "fixtures" / "toy" / CONTRACT).write_text(text, encoding="utf-8")
    contract = read_contract(toy_assignment(kit))
    assert contract is not None
    return contract


# Every assignment


@each_assignment
def test_contract_quotes_every_sentence_and_names_known_mistakes(assignment: Assignment) -> None:
    """That mistakes are caught is a matter of selfcheck."""
    contract, solution = read_contract(assignment), solution_source(assignment)
    assert contract, f"{assignment.folder / CONTRACT} is missing"
    functions = {slug: case.function for case in read_fixtures(assignment).cases for slug in case.mistakes}
    variants = [Variant("mistake", slug, function, "") for slug, function in functions.items()]
    told = contract_complaints(contract, assignment, solution, [*variants, *mutants_of(solution, assignment.functions)])
    assert told == []


# Docstrings


DOCSTRING = """\
Return the deltas: what multiplies
a gradient. Leave `x.T` as it is; 0.5 is a number.

    mean   r - mean(r)

In this order:

1. seed, once;
2. `Model(...)`: with sizes that
   come from the prompt.

rewards   float[batch trial]   one
                               scalar each
Raises ValueError if mode is another word.
returns   float[place]"""
QUOTED = (
    "Return the deltas",
    "what multiplies a gradient.",
    "Leave `x.T` as it is; 0.5 is a number.",
    "mean   r - mean(r)",
    "In this order:",
    "seed, once;",
    "`Model(...)`: with sizes that come from the prompt.",
    "Raises ValueError if mode is another word.",
)


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        (None, None),
        (0, "Return the deltas"),
        (2, "Leave `x.T` as it is; 0.5 is a number"),
        (3, "mean r - mean(r)"),
        (5, "seed, once"),
        (6, "`Model(...)`: with sizes that come from the prompt"),
        (7, "Raises ValueError if mode is another word"),
    ],
)
def test_what_no_clause_quotes_is_told_but_for_rows(left_out: int | None, told: str | None) -> None:
    quotes = [text for place, text in enumerate(QUOTED) if place != left_out]
    assert not_quoted(DOCSTRING, quotes) == [told] * (told is not None)


# A file


def test_clause_has_items_and_mistakes_or_a_reason(kit: Path) -> None:
    every = tuple(item.id for item in toy_assignment(kit).items)
    text = '[ramp]\n"One" = ["no-kink"]\n"\\"Two\\"" = [\n    "ramp-values", "habit:cast",\n]\n'
    assert written(kit, f'{text}\n[""]\n"One" = "a sum"\n"Three" = ["no-kink"]\n') == (
        Clause("ramp", "One", "toy/contract.toml:2: 'One'", ("ramp-values",), ("no-kink",)),
        Clause("ramp", '"Two"', "toy/contract.toml:3: '\"Two\"'", ("ramp-values",), ("habit:cast",)),
        Clause("", "One", "toy/contract.toml:8: 'One'", not_graded="a sum"),
        Clause("", "Three", "toy/contract.toml:9: 'Three'", every, ("no-kink",)),
    )


# What an author is told


def test_unusable_contract_is_told_with_its_line(kit: Path) -> None:
    with pytest.raises(FixtureError, match=r"contract.toml:4: 'Return x . factor.' of .shift. should have a list"):
        written(kit, RAMP + '[shift]\n"Return x + factor." = [3]')


def complaints(kit: Path, text: str, *unfinished: str) -> list[str]:
    contract, assignment = written(kit, text), toy_assignment(kit)
    (assignment.solution / "README.md").write_text("# Toy\nNothing\nis modified.")
    names = (("mistake", "no-kink", "ramp"), ("mistake", "wrong-way", "shift"), ("habit", "in-place", "shift"))
    variants = [Variant(family, slug, function, "") for family, slug, function in names]
    return contract_complaints(contract, assignment, solution_source(assignment), variants, unfinished)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SHIFT, "no clause of ramp quotes: 'Return factor * x above 0 and 0 below'."),
        (RAMP + SHIFT + '"Return x - factor." = "?"', "stands neither in the docstring of shift nor in README.md."),
        (RAMP + SHIFT + '[""]\n"Return x." = "?"', "stands neither in the docstring of any function nor in README.md."),
        (RAMP + SHIFT.replace('"wrong-way"', ""), "has neither mistakes nor a reason why it is not graded."),
        (RAMP + SHIFT.replace("wrong-way", "no-kink"), "the unknown mistake 'no-kink'; there are wrong-way."),
        (RAMP + SHIFT.replace("wrong-way", "wrong-wya"), "the unknown mistake 'wrong-wya'; 'wrong-way' is there."),
        (
            RAMP + SHIFT.replace("wrong-way", "habit:cast"),
            "names the unknown mistake 'habit:cast'; there are habit:in-place.",
        ),
        (RAMP + SHIFT.replace('"wrong-way"', '"wrong-way", "ramp-values"'), "names the unknown mistake 'ramp-values'"),
    ],
)
def test_what_a_contract_lacks_is_one_sentence_with_the_place(kit: Path, text: str, told: str) -> None:
    (line,) = [line for line in complaints(kit, text) if told in line]
    assert line.startswith("toy/contract.toml")


def test_complete_contract_and_drafts_of_unfinished_functions_are_no_complaint(kit: Path) -> None:
    of_the_text = '"Nothing is\\n  modified." = ["wrong-way"]\n'  # with its lines broken elsewhere
    of_all = '[""]\n"Return x + factor." = ["shift-values", "no-kink", "habit:in-place"]\n'  # items of any
    assert complaints(kit, RAMP + SHIFT + of_the_text + of_all) == []
    draft = RAMP + SHIFT.replace('"wrong-way"', "")
    assert [len(complaints(kit, draft, *unfinished)) for unfinished in ((), ("shift",))] == [1, 0]


# The whole exam


SURVIVING = (
    "This change of the solution loses nothing. line 16, shift (habit:not-cloned): "
    "return torch.add(x, factor).clone() → return torch.add(x, factor)"
)


def hold(kit: Path) -> Exam:
    return selfcheck(toy_assignment(kit), read_fixtures(toy_assignment(kit)), cache=CACHE)


@pytest.mark.usefixtures("warm_pool")
def test_exam_without_contract_names_what_loses_nothing_and_passes(kit: Path) -> None:
    exam = hold(kit)
    assert (exam.complaints, exam.clauses) == ((), None)
    note, *named = exam.notes[-2:]
    assert re.match(r"There is no contract.toml: .* Of changed parameters and habits 1 lose nothing", note)
    assert named == [SURVIVING]


@pytest.mark.usefixtures("warm_pool")
def test_exam_fails_on_broken_or_untested_clause_and_surviving_habit(kit: Path) -> None:
    shift = SHIFT.replace("factor.", "factors.").replace("wrong-way", "habit:not-cloned")
    of_all = '[""]\n"Return x + factor." = ["ramp-values", "wrong-way"]\n"Two functions" = "a heading"\n'
    written(kit, RAMP + shift + of_all)
    exam, none = hold(kit), "is not tested: none of its mistakes"
    assert exam.complaints == (
        SURVIVING,
        "toy/contract.toml: no clause of shift quotes: 'Return x + factor'.",
        "toy/contract.toml:4: 'Return x + factors.' stands neither in the docstring of shift nor in README.md.",
        f"toy/contract.toml:4: 'Return x + factors.' {none} (habit:not-cloned) loses points on shift-values.",
        f"toy/contract.toml:6: 'Return x + factor.' {none} (wrong-way) loses points on ramp-values.",
    )
    assert exam.clauses == (4, 1, 1)
