"""The contract as data: sentences cut from docstrings, clauses read from a file, and the two held together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import toy_kit
from all_assignments import each_assignment
from toy_kit import change, toy_assignment

from autograder.authoring.exam.contract import (
    CONTRACT,
    Clause,
    Contract,
    clause_complaints,
    docstrings,
    read_contract,
    unquoted,
    untested,
)
from autograder.authoring.exam.selfcheck import Exam, contract_slips, selfcheck
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.grading.assignment import Assignment
from autograder.grading.fixtures import read_fixtures
from autograder.vocabulary.errors import FixtureError

RAMP = '[ramp]\n"Return factor * x above 0 and 0 below." = ["no-kink"]\n'
SHIFT = '[shift]\n"Return x + factor." = ["wrong-way"]\n'


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


def written(kit: Path, text: str) -> Contract:
    (kit / "fixtures" / "toy" / CONTRACT).write_text(text, encoding="utf-8")
    contract = read_contract(toy_assignment(kit))
    assert contract is not None
    return contract


# Every assignment


@each_assignment
def test_contract_quotes_every_sentence_and_names_known_mistakes(assignment: Assignment) -> None:
    """That generated changes are known, and mistakes caught, is a matter of selfcheck."""
    assert read_contract(assignment) is not None, f"{assignment.folder / CONTRACT} is missing"
    assert contract_slips(assignment, read_fixtures(assignment).hints.keys()) == []


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
    clauses = tuple(Clause("f", text, 1, not_graded="?") for place, text in enumerate(QUOTED) if place != left_out)
    contract = Contract(Path("toy/contract.toml"), clauses)
    expected = [] if told is None else [f"toy/contract.toml: no clause of f quotes: {told!r}."]
    assert unquoted(contract, {"f": DOCSTRING}, "") == expected


# A file


def test_clause_has_items_and_mistakes_or_a_reason(kit: Path) -> None:
    every = tuple(item.id for item in toy_assignment(kit).items)
    text = '[ramp]\n"One" = ["no-kink"]\n"\\"Two\\"" = [\n    "ramp-values", "habit:cast",\n]\n'
    contract = written(kit, f'{text}[costly]\nramp = "so"\n\n[""]\n"One" = "a sum"\n"Three" = ["no-kink"]\n')
    assert contract.clauses == (
        Clause("ramp", "One", 2, ("ramp-values",), ("no-kink",)),
        Clause("ramp", '"Two"', 3, ("ramp-values",), ("habit:cast",)),
        Clause("", "One", 10, not_graded="a sum"),
        Clause("", "Three", 11, every, ("no-kink",)),
    )
    assert contract.costly == {"ramp": "so"}


def test_a_sentence_with_an_empty_list_is_a_draft(kit: Path) -> None:
    contract = written(kit, RAMP + '[shift]\n"Return x + factor." = []\n')
    assert [clause.function for clause in contract.drafts] == ["shift"]
    names = [("no-kink", "ramp")]
    assert clause_complaints(contract, toy_assignment(kit), names, ["shift"]) == []
    (told,) = clause_complaints(contract, toy_assignment(kit), names)
    assert told == "toy/contract.toml:4: 'Return x + factor.' has neither mistakes nor a reason why it is not graded."


# What an author is told


def test_an_assignment_without_a_contract_has_none(kit: Path) -> None:
    assert read_contract(toy_assignment(kit)) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ramp\n", r"contract.toml is not TOML: .*line 1"),
        ("", "holds no sentence"),
        ("[costly]\nramp = 'so'", "holds no sentence"),
        ("ramp = 3", "contract.toml:1: 'ramp' is no table of sentences"),
        ("[[clause]]\nid = 'a'", "'clause' is no table of sentences"),
        (
            RAMP + '[shift]\n"Return x + factor." = 3',
            r":4: 'Return x . factor.' of \[shift\] should have a list .* has 3",
        ),
        (RAMP + '[shift]\n"Return x + factor." = " "', ":4: 'Return x . factor.' .* should have a list"),
        (RAMP + '[shift]\n"Return x + factor." = [3]', ":4: 'Return x . factor.' .* should have a list"),
        (RAMP + "[costly]\nramp = ' '", r":4: 'ramp' of \[costly\] should have the reason, but has ' '"),
        ("costly = 3\n" + RAMP, "'costly' is no table"),
    ],
)
def test_unusable_contract_is_told_with_its_line(kit: Path, text: str, told: str) -> None:
    with pytest.raises(FixtureError, match=told):
        written(kit, text)


def complaints(kit: Path, text: str, names: Sequence[tuple[str, str]] = ()) -> list[str]:
    contract = written(kit, text)
    assignment = toy_assignment(kit)
    known = {("no-kink", "ramp"), ("wrong-way", "shift"), *names}
    readme = "# Toy\nNothing\nis modified."
    texts = docstrings(solution_source(assignment), assignment.functions)
    return [*unquoted(contract, texts, readme), *clause_complaints(contract, assignment, known)]


@pytest.mark.parametrize(
    "more",
    [
        "",
        '"Nothing is\\n  modified." = ["wrong-way"]\n',  # stands in the text, with its lines broken elsewhere
        '[""]\n"Return x + factor." = ["shift-values", "no-kink"]\n',  # about all functions: items of any
    ],
)
def test_complete_contract_has_no_complaint(kit: Path, more: str) -> None:
    assert complaints(kit, RAMP + SHIFT + more) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SHIFT, "no clause of ramp quotes: 'Return factor * x above 0 and 0 below'."),
        (RAMP + SHIFT + '"Return x - factor." = "?"', "stands neither in the docstring of shift nor in README.md."),
        (RAMP + SHIFT + '[""]\n"Return x." = "?"', "stands neither in the docstring of any function nor in README.md."),
        (RAMP + SHIFT.replace('"wrong-way"', ""), "has neither mistakes nor a reason why it is not graded."),
        (RAMP + SHIFT.replace("wrong-way", "no-kink"), "the unknown mistake 'no-kink'; there are wrong-way."),
        (RAMP + SHIFT.replace("wrong-way", "wrong-wya"), "the unknown mistake 'wrong-wya'; 'wrong-way' is there."),
        (RAMP + SHIFT.replace("wrong-way", "habit:cast"), "names the unknown mistake 'habit:cast'; there is none."),
        (RAMP + SHIFT.replace('"wrong-way"', '"wrong-way", "ramp-values"'), "names the unknown mistake 'ramp-values'"),
        (RAMP + SHIFT + '[move]\n"Return x + factor." = []', "is about move, which is no graded function."),
    ],
)
def test_what_a_contract_lacks_is_one_sentence_with_the_place(kit: Path, text: str, told: str) -> None:
    found = [line for line in complaints(kit, text) if told in line]
    assert len(found) == 1
    assert found[0].startswith("toy/contract.toml")


def test_a_generated_change_may_stand_for_a_mistake(kit: Path) -> None:
    text = RAMP + SHIFT.replace('"wrong-way"', '"habit:cast"')
    assert complaints(kit, text, [("habit:cast", "shift")]) == []


# What was graded


@pytest.mark.parametrize(
    ("lost_on", "tested"),
    [
        ({("no-kink", "ramp"): [{"ramp-values": 6.0}], ("wrong-way", "shift"): [{"shift-values": 4.0}]}, 2),
        ({("no-kink", "ramp"): [{"ramp-values": 6.0}], ("wrong-way", "shift"): [{"ramp-values": 6.0}]}, 1),
        ({("no-kink", "ramp"): [{}, {"ramp-values": 0.5}], ("wrong-way", "ramp"): [{"shift-values": 4.0}]}, 1),
    ],
)
def test_clause_is_tested_if_a_mistake_fails_its_items(
    kit: Path, lost_on: Mapping[tuple[str, str], Sequence[Mapping[str, float]]], tested: int
) -> None:
    told = untested(written(kit, RAMP + SHIFT), lost_on)
    assert len(told) == 2 - tested
    assert all("is not tested: none of its mistakes (wrong-way) loses points on shift-values." in line for line in told)


# The whole exam


def hold(kit: Path, *, marked: bool = True) -> Exam:
    if marked:
        line = "return torch.add(x, factor).clone()"
        change(kit / "solution" / "toy" / "toy.py", line, f"{line}  # equivalent: a sum is a new tensor")
    return selfcheck(toy_assignment(kit), read_fixtures(toy_assignment(kit)))


@pytest.mark.long
def test_exam_without_contract_notes_it_and_passes(kit: Path) -> None:
    exam = hold(kit, marked=False)
    assert (exam.complaints, exam.clauses) == ((), None)
    (told,) = [note for note in exam.notes if note.startswith("There is no contract.toml")]
    assert "Of changed parameters and habits 1 lose nothing" in told


@pytest.mark.usefixtures("warm_pool")
def test_exam_fails_on_broken_contract_and_surviving_habit(kit: Path) -> None:
    written(kit, RAMP + SHIFT.replace("factor.", "factors."))
    assert [line.partition(" ")[2] for line in hold(kit, marked=False).complaints] == [
        "change of the solution loses nothing. line 16, shift (habit:not-cloned): "
        "return torch.add(x, factor).clone() → return torch.add(x, factor)",
        "no clause of shift quotes: 'Return x + factor'.",
        "'Return x + factors.' stands neither in the docstring of shift nor in README.md.",
    ]
