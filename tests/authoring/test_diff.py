"""Diff: what changed between two sets of fixtures, in words, and whose score would change with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy_kit
from sample_reports import item, not_graded, report
from toy_kit import autograder, change, regenerate_into, toy_assignment

from autograder.authoring.fixtures.diff import difference_text, read_set, sample_differences, score_changes
from autograder.authoring.fixtures.stored_set import Term
from autograder.vocabulary.report import Report

ALMOST = """\
import torch

def ramp(x, factor):
    return factor * torch.clamp(x, min=0) + 1e-7

def shift(x, factor):
    return x + factor
"""


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


def changed_set(kit: Path, *edits: tuple[str, str, str]) -> Path:
    """The set that the kit makes with its files changed."""
    for name, right, wrong in edits:
        change(kit / "fixtures/toy" / name, right, wrong)
    regenerate_into(kit / "fixtures/toy", kit / "changed")
    for name, right, wrong in edits:
        change(kit / "fixtures/toy" / name, wrong, right)
    return kit / "changed"


def lines(kit: Path, other: Path) -> list[str]:
    assignment = toy_assignment(kit)
    text = difference_text(read_set(assignment, kit / "fixtures/toy"), read_set(assignment, other))
    return text.splitlines()[2:]


def test_a_set_does_not_differ_from_itself(kit: Path) -> None:
    assert lines(kit, kit / "fixtures/toy") == ["Items: the same.", "Cases: the same.", "Hints: the same."]


@pytest.mark.long
def test_diff_of_terms_names_term_and_changed_cases(kit: Path) -> None:
    regenerate_into(kit / "fixtures/toy", kit / "spring", Term("2027-spring", b"a secret of this course"))
    done = autograder(kit, "fixtures", "diff", "fixtures/toy", "spring")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "A  fixtures/toy: the open set, 3 cases, 10 points",
        "B  spring: term 2027-spring, 3 cases, 10 points",
        "Items: the same.",
        "Cases:",
        "  ramp-large: other inputs and expected values",
        "Hints: the same.",
    ]


@pytest.mark.long
def test_points_titles_hints_and_tolerances_are_told_in_words(kit: Path) -> None:
    other = changed_set(
        kit,
        ("items.toml", "points = 6", "points = 5.5"),
        ("items.toml", '"moved by a constant"', '"moved"'),
        ("mistakes.py", "Where is the factor?", "Which factor?"),
        ("cases.py", '"row column", "float64")', '"row column", "float64", rtol=1e-3)'),
    )
    assert lines(kit, other) == [
        "Items:",
        "  ramp-values: points 6.0 becomes 5.5",
        "  shift-values: title 'moved by a constant' becomes 'moved'",
        "Cases:",
        *(
            f"  {case}: the {case.partition('-')[0]} may differ by 0.001 relative and {atol(kit, case)} absolute "
            f"(before: 1e-06 and {atol(kit, case)})"
            for case in ("ramp-small", "ramp-large", "shift-small")
        ),
        "Hints:",
        "  not-scaled: 'Where is the factor?' becomes 'Which factor?'",
    ]


def atol(kit: Path, name: str) -> str:
    cases = read_set(toy_assignment(kit), kit / "fixtures/toy").fixtures.cases
    return f"{next(case for case in cases if case.id == name).expected[0].atol:g}"


@pytest.mark.long
def test_cases_items_and_mistakes_that_come_and_go_are_named(kit: Path) -> None:
    fourth = '        ("shift-large", "three rows", (3, 5)),\n'
    other = changed_set(
        kit,
        ("items.toml", 'public = ["shift-small"]\nhidden = []', 'public = ["shift-small"]\nhidden = ["shift-large"]'),
        ("cases.py", '        ("shift-small"', f'{fourth}        ("shift-small"'),
        ("mistakes.py", '    Mistake("not-scaled"', '    Mistake("scaled-not"'),
    )
    assert lines(kit, other) == [
        "Items: the same.",
        "Cases:",
        "  shift-large (hidden, shift-values) is new",
        "  ramp-small, ramp-large: no longer separates not-scaled; now separates scaled-not",
        "Hints:",
        "  not-scaled ('Where is the factor?') is gone",
        "  scaled-not ('Where is the factor?') is new",
    ]


@pytest.mark.long
def test_diff_names_submissions_whose_points_would_change(kit: Path) -> None:
    other = changed_set(kit, ("cases.py", '"row column", "float64")', '"row column", "float64", atol=1e-3)'))
    for name, text in (("ada", ALMOST), ("bela", ""), ("chidi", ALMOST.replace(" + 1e-7", ""))):
        (kit / "class" / name).mkdir(parents=True)
        (kit / "class" / name / "toy.py").write_text(text)
    assignment = toy_assignment(kit)
    one, two = read_set(assignment, kit / "fixtures/toy"), read_set(assignment, other)
    assert sample_differences(one, two, [kit / "class"]) == (
        "3 submissions graded against both; 1 would score otherwise:\n  ada  4 → 10: ramp-values 0 → 6\n"
    )
    assert (
        sample_differences(one, one, [kit / "class"]) == "3 submissions graded against both: no score would change.\n"
    )


def test_unchanged_score_is_neither_counted_nor_listed() -> None:
    def graded(name: str, **points: float) -> Report:
        return report(name, *(item(one, earned, 50) for one, earned in points.items()))

    pairs = [
        (graded("ada", ramp=50, shift=50), graded("ada", ramp=50, bend=50)),
        (graded("bela", ramp=33.3333), graded("bela", ramp=33.334)),
        (graded("chidi", ramp=50), graded("chidi", ramp=25)),
        (not_graded("dana"), not_graded("dana")),
    ]
    assert score_changes(pairs).splitlines() == [
        "4 submissions graded against both; 1 would score otherwise:",
        "  chidi  50 → 25: ramp 50 → 25",
        "The same score with other points for single items: 1.",
    ]
    assert score_changes(pairs[1:2]) == "1 submission graded against both: no score would change.\n"
