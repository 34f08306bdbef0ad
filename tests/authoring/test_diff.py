"""Diff: which cases changed between two sets of fixtures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import toy_kit
from toy_kit import change, regenerate_into

from autograder.authoring.fixtures.terms import Term
from autograder.authoring.fixtures.verify import difference_text


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_course(tmp_path_factory.mktemp("diff") / "kit", tmp_path_factory)


def test_a_set_does_not_differ_from_itself(kit: Path) -> None:
    toy = kit / "fixtures/toy"
    assert difference_text(toy, toy).splitlines() == [
        f"A  {toy}: the open set, 3 cases",
        f"B  {toy}: the open set, 3 cases",
        "All cases are the same.",
    ]


def test_diff_of_terms_names_term_and_changed_cases(kit: Path) -> None:
    regenerate_into(kit / "fixtures/toy", kit / "spring", Term("2027-spring", b"a secret of this course"))
    lines = difference_text(kit / "fixtures/toy", kit / "spring").splitlines()
    assert lines[1:] == [
        f"B  {kit / 'spring'}: term 2027-spring, 3 cases",
        "  ramp-large  is another one",
    ]


def test_cases_that_come_go_and_change_are_named(kit: Path, tmp_path: Path) -> None:
    toy = tmp_path / "fixtures/toy"
    for name in ("fixtures", "solution"):
        shutil.copytree(kit / name, tmp_path / name)
    change(toy / "items.toml", 'public = ["shift-small"]\nhidden = []', 'public = ["shift-new"]\nhidden = []')
    change(toy / "cases.py", '        ("shift-small"', '        ("shift-new"')
    change(toy / "cases.py", '("ramp-small", "two rows"', '("ramp-small", "2 rows"')
    change(toy / "mistakes.py", '    Mistake("not-scaled"', '    Mistake("scaled-not"')
    change(toy / "cases.py", '"row column", "float64")', '"row column", "float64", rtol=1e-3)')
    regenerate_into(toy, toy)
    assert difference_text(kit / "fixtures/toy", toy).splitlines()[2:] == [
        "  shift-small  is gone",
        "  shift-new  is new",
        "  ramp-small  is another one",
        "  ramp-large  is another one",
    ]
