"""The contract as data: sentences cut from docstrings, clauses read from a file, and the two held together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import toy_kit
from all_assignments import each_assignment
from toy_kit import toy_assignment

from autograder.authoring.docstrings import sentences
from autograder.authoring.exam.contract import CONTRACT, Contract, docstrings, read_contract, unquoted
from autograder.authoring.exam.coverage import clause_complaints, coverage
from autograder.authoring.exam.exam import Exam, known_mistakes, selfcheck
from autograder.authoring.exam.mutants import EQUIVALENT, generated_mutants
from autograder.authoring.fixtures.agreement import solution_source
from autograder.grading.fixtures import read_fixtures
from autograder.grading.items import Assignment
from autograder.vocabulary.errors import FixtureError

RAMP = """
[[clause]]
id = "ramp-above-and-below"
function = "ramp"
where = "docstring"
sentence = "Return factor * x above 0 and 0 below."
items = ["ramp-values"]
mistakes = ["no-kink"]
separates = "negative numbers"
"""
SHIFT = """
[[clause]]
id = "shift-adds"
function = "shift"
where = "docstring"
sentence = "Return x + factor."
items = ["shift-values"]
mistakes = ["wrong-way"]
separates = "a factor that is not 0"
"""


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
def test_every_sentence_of_every_docstring_stands_in_a_clause_that_names_what_there_is(assignment: Assignment) -> None:
    """That a clause's mistakes are caught is a matter of selfcheck."""
    contract = read_contract(assignment)
    assert contract is not None, f"{assignment.folder / CONTRACT} is missing"
    solution = solution_source(assignment)
    readme = (assignment.solution / "README.md").read_text(encoding="utf-8")
    assert unquoted(contract, docstrings(solution, assignment.functions), readme) == []
    names = {(known.slug, known.function) for known in known_mistakes(assignment)}
    names |= {(mutant.name, mutant.function) for mutant in generated_mutants(solution, assignment.functions)}
    assert clause_complaints(contract, assignment, names) == []


@each_assignment
def test_every_graded_docstring_has_sentences(assignment: Assignment) -> None:
    texts = docstrings(solution_source(assignment), assignment.functions)
    assert [name for name in assignment.functions if len(sentences(texts[name])) < 3] == []


# Sentences


DOCSTRING = """\
Return the deltas: what multiplies
a gradient. Leave `x.T` as it is; 0.5 is a number.

    mean   r - mean(r)
    std    (r - mean(r)) / std(r)
           + EPS

In this order:

1. seed, once;
2. `Model(...)`: with sizes that
   come from the prompt.

rewards   float[batch trial]   one
                               scalar each
mode      "a": this. "b": that"""


def test_a_docstring_is_cut_at_full_stops_and_colons_into_rows_and_into_steps() -> None:
    assert sentences(DOCSTRING) == [
        "Return the deltas",
        "what multiplies a gradient",
        "Leave `x.T` as it is; 0.5 is a number",
        "mean r - mean(r)",
        "std (r - mean(r)) / std(r) + EPS",
        "In this order",
        "seed, once;",
        "`Model(...)`",
        "with sizes that come from the prompt",
        "rewards float[batch trial] one scalar each",
        'mode "a": this. "b": that',
    ]


def test_text_that_follows_a_table_without_a_line_between_is_no_row_of_it() -> None:
    docstring = """\
Return the mean.
values    float[step]   above 0,
              and finite
mode      "valid" or "same"
Raises ValueError if mode is another word. It may be
  missing.
returns   float[place]
"""
    assert sentences(docstring) == [
        "Return the mean",
        "values float[step] above 0, and finite",
        'mode "valid" or "same"',
        "Raises ValueError if mode is another word",
        "It may be missing",
        "returns float[place]",
    ]


def test_an_empty_docstring_has_no_sentence() -> None:
    assert sentences("") == []


# Written shorter


def test_a_sentence_with_its_mistakes_or_with_the_reason_why_it_is_not_graded_is_a_clause(kit: Path) -> None:
    contract = written(
        kit,
        '[ramp]\n"Return factor * x above 0 and 0 below." = ["no-kink"]\n\n'
        '[shift]\n"Return x + factor." = "a sum like any other"\n',
    )
    ramp, shift = contract.clauses
    assert (ramp.id, ramp.function, ramp.line, ramp.items, ramp.mistakes) == (
        "ramp-1", "ramp", 2, tuple(item.id for item in toy_assignment(kit).items if item.function == "ramp"),
        ("no-kink",),
    )  # fmt: skip
    assert (shift.id, shift.line, shift.mistakes, shift.not_graded) == ("shift-1", 5, (), "a sum like any other")


def test_a_sentence_with_an_empty_list_is_a_draft(kit: Path) -> None:
    contract = written(kit, RAMP + '[shift]\n"Return x + factor." = []\n')
    assert [clause.id for clause in contract.drafts] == ["shift-1"]
    names = [("no-kink", "ramp")]
    assert clause_complaints(contract, toy_assignment(kit), names, ["shift"]) == []
    (told,) = clause_complaints(contract, toy_assignment(kit), names)
    assert "shift-1 has neither mistakes nor a reason why it is not graded." in told


# What an author is told


def test_an_assignment_without_a_contract_has_none(kit: Path) -> None:
    assert read_contract(toy_assignment(kit)) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[clause]", r"contract.toml is not TOML: .*line 1"),
        ("", r"lists no \[\[clause\]\]"),
        ("clause = 3", r"lists no \[\[clause\]\]"),
        ("[[clauses]]\nid = 'a'", "unknown entry 'clauses'"),
        (RAMP + SHIFT.replace("shift-adds", "Shift adds"), r"contract.toml:11: 'id' .* is 'Shift adds'"),
        (RAMP + SHIFT.replace("shift-adds", "ramp-above-and-below"), r":11: ramp-above-.* the clause in line 2"),
        (RAMP + "separate = ''", r":2: ramp-above-and-below has the unknown entry 'separate'"),
        (RAMP.replace('where = "docstring"\n', ""), r":2: ramp-above-and-below has no 'where'"),
        (RAMP.replace('"docstring"', '"notes"'), r":2: 'where' of .* one of docstring, README, but is 'notes'"),
        (RAMP.replace('["no-kink"]', '"no-kink"'), r":2: 'mistakes' of .* list of text, but is 'no-kink'"),
        (RAMP.replace('"negative numbers"', "3"), r":2: 'separates' of .* should be text, but is 3"),
        (
            RAMP + '[shift]\n"Return x + factor." = 3',
            r":11: 'Return x . factor.' of \[shift\] should have a list .* has 3",
        ),
        (RAMP + '[shift]\n"Return x + factor." = " "', r":11: 'Return x . factor.' .* should have a list"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_with_its_line(kit: Path, text: str, told: str) -> None:
    with pytest.raises(FixtureError, match=told):
        written(kit, text)


def complaints(kit: Path, text: str, names: Sequence[tuple[str, str]] = ()) -> list[str]:
    contract = written(kit, text)
    assignment = toy_assignment(kit)
    known = {("no-kink", "ramp"), ("wrong-way", "shift"), *names}
    readme = "# Toy\nNothing\nis modified."
    texts = docstrings(solution_source(assignment), assignment.functions)
    return [*unquoted(contract, texts, readme), *clause_complaints(contract, assignment, known)]


def test_a_contract_that_quotes_every_sentence_and_names_what_there_is_has_no_complaint(kit: Path) -> None:
    assert complaints(kit, RAMP + SHIFT) == []


def test_a_quote_may_break_its_lines_elsewhere_and_stand_in_the_readme(kit: Path) -> None:
    readme = SHIFT.replace('"docstring"', '"README"').replace("Return x + factor.", "Nothing is\\n  modified.")
    assert complaints(kit, RAMP + SHIFT + readme.replace("shift-adds", "untouched")) == []


def test_a_clause_about_all_functions_may_name_mistakes_and_items_of_any(kit: Path) -> None:
    everywhere = RAMP.replace('function = "ramp"', 'function = ""').replace('"no-kink"', '"wrong-way"')
    named = everywhere.replace("ramp-above-and-below", "everywhere").replace("ramp-values", "shift-values")
    assert complaints(kit, RAMP + SHIFT + named) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SHIFT, "no clause of ramp quotes: 'Return factor * x above 0 and 0 below'."),
        (RAMP + SHIFT.replace("x + factor", "x - factor"), "quotes what does not stand in the docstring of shift"),
        (RAMP + SHIFT.replace('"docstring"', '"README"'), "quotes what does not stand in README.md"),
        (
            RAMP + SHIFT.replace('mistakes = ["wrong-way"]\n', ""),
            "has neither mistakes nor a reason why it is not graded.",
        ),
        (RAMP + SHIFT.replace('items = ["shift-values"]\n', ""), "names mistakes but no items."),
        (RAMP + SHIFT.replace('separates = "a factor that is not 0"\n', ""), "names mistakes but no separates."),
        (
            RAMP + SHIFT.replace("wrong-way", "no-kink"),
            "names the unknown mistake 'no-kink', and not one of wrong-way.",
        ),
        (
            RAMP + SHIFT.replace("wrong-way", "wrong-wya"),
            "names the unknown mistake 'wrong-wya': 'wrong-way' is there.",
        ),
        (RAMP + SHIFT.replace("wrong-way", "habit:cast"), "names the unknown mistake 'habit:cast'."),
        (RAMP + SHIFT.replace("shift-values", "shifts"), "names the unknown item 'shifts'."),
        (RAMP + SHIFT.replace("shift-values", "ramp-values"), "names the item ramp-values, which is about ramp."),
        (RAMP + SHIFT.replace('"shift"', '"move"'), "is about move, which is no graded function."),
        (RAMP + SHIFT + 'not_graded = "advice"\n', "names mistakes, and says why it is not graded."),
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
def test_a_clause_is_tested_where_one_of_its_mistakes_loses_points_on_its_items(
    kit: Path, lost_on: Mapping[tuple[str, str], Sequence[Mapping[str, float]]], tested: int
) -> None:
    counts, told = coverage(written(kit, RAMP + SHIFT), lost_on)
    assert (counts.clauses, counts.tested, counts.not_graded) == (2, tested, 0)
    assert len(told) == 2 - tested
    assert all("shift-adds is not tested: none of its mistakes (wrong-way) loses points on" in line for line in told)


# The whole exam


CLONED = """
[[equivalent]]
family = "habit:not-cloned"
function = "shift"
before = "return torch.add(x, factor).clone()"
after = "return torch.add(x, factor)"
reason = "a sum is a new tensor"
"""


def hold(kit: Path, equivalent: str = CLONED) -> Exam:
    (kit / "fixtures" / "toy" / EQUIVALENT).write_text(equivalent, encoding="utf-8")
    return selfcheck(toy_assignment(kit), read_fixtures(toy_assignment(kit)))


@pytest.mark.long
def test_without_a_contract_the_exam_says_so_and_does_not_fail(kit: Path) -> None:
    exam = hold(kit, "equivalent = []")
    assert (exam.complaints, exam.coverage) == ((), None)
    (told,) = [note for note in exam.notes if note.startswith("There is no contract.toml")]
    assert "Of changed parameters and habits 1 lose nothing" in told


@pytest.mark.long
def test_with_a_contract_the_exam_counts_its_clauses(kit: Path) -> None:
    advice = SHIFT.replace("shift-adds", "shift-quickly").partition("items")[0]
    written(kit, f'{RAMP}{SHIFT}{advice}not_graded = "how quickly is advice"\n')
    exam = hold(kit)
    assert exam.complaints == ()
    assert exam.coverage is not None
    assert (exam.coverage.clauses, exam.coverage.tested, exam.coverage.not_graded) == (3, 2, 1)
    assert not [note for note in exam.notes if "contract.toml" in note]


@pytest.mark.usefixtures("warm_pool")
def test_with_a_contract_the_exam_fails_where_it_is_not_kept_and_where_a_habit_survives(kit: Path) -> None:
    written(kit, RAMP + SHIFT.replace("factor.", "factors."))
    assert [line.partition(" ")[2] for line in hold(kit, "equivalent = []").complaints] == [
        "change of the solution loses nothing, and is not listed as equivalent. shift (habit:not-cloned): "
        "return torch.add(x, factor).clone() → return torch.add(x, factor)",
        "no clause of shift quotes: 'Return x + factor'.",
        "shift-adds quotes what does not stand in the docstring of shift: 'Return x + factors.'.",
    ]
