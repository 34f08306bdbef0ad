"""Similarity: what two submissions share beyond the handout, shown as pairs, whatever their text holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import toy_kit
from lengths import in_short
from places import KIT
from toy_kit import autograder, packages_without, toy_assignment

from autograder.course.similarity import MAX_SOURCE, Similarity, compare_class, marked_lines, normalized, page
from autograder.grading.assignments import find_assignment
from autograder.grading.items import Assignment

pytestmark = pytest.mark.skipif(not find_spec("copydetect"), reason="the extra `similarity` is not installed")

REAL = find_assignment(KIT, "policy_gradient")
OWN = """
def ramp(x, factor):
    rows = []
    for row in x.tolist():
        found = []
        for value in row:
            if value > 0:
                found.append(factor * value)
            else:
                found.append(0.0 * factor)
        rows.append(found)
    total = sum(sum(row) for row in rows)
    assert total >= 0 or factor < 0, total
    return torch.tensor(rows, dtype=x.dtype) + 0 * total
"""
RENAMED = OWN.replace("rows", "table").replace("found", "line").replace("value", "v").replace("total", "everything")
OTHER = """
import torch


class Ramp(torch.nn.Module):
    '''A rectifier with a slope.'''

    def forward(self, x, slope):
        positive = x.gt(0).to(x.dtype)
        return torch.einsum("ij,ij->ij", positive, x).mul(slope)


ramp = Ramp()
shift = lambda x, factor: torch.stack([row + factor for row in x.unbind(0)], dim=0)
"""


@pytest.fixture
def assignment(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    return toy_assignment(toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory))


@pytest.fixture
def compared(tmp_path: Path, assignment: Assignment) -> Callable[..., Similarity]:
    """A function that compares a class of these texts; a name may end in .ipynb."""

    def compare(**texts: str) -> Similarity:
        for name, text in texts.items():
            folder = tmp_path / "class" / name
            folder.mkdir(parents=True)
            notebook = text.startswith('{"cells"')
            (folder / f"toy.{'ipynb' if notebook else 'py'}").write_text(text, encoding="utf-8")
        return compare_class(assignment, [tmp_path / "class"])

    return compare


def notebook(*cells: str) -> str:
    made = [
        {"cell_type": "code", "metadata": {}, "source": text, "outputs": [], "execution_count": None} for text in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_a_copy_with_other_names_and_comments_is_found_and_other_work_is_not(
    compared: Callable[..., Similarity],
) -> None:
    commented = RENAMED.replace("    table = []", "    # begin with nothing\n\n    table = []")
    found = compared(ada=OWN, bela=commented, chidi=OTHER)
    (pair,) = found.pairs
    assert pair.students == ("ada", "bela")
    assert min(pair.shares) > 0.8


def test_what_stands_in_the_handout_does_not_count(compared: Callable[..., Similarity], assignment: Assignment) -> None:
    stub = assignment.untouched_source()
    assert "def shift" in stub
    longer = stub + "\n\nEXTRA = [n * n + 1 for n in range(100) if n % 3 or n % 7]\n"
    assert compared(ada=stub, bela=stub, chidi=longer).pairs == ()


def test_a_handout_kept_around_a_copy_neither_hides_nor_inflates_it(
    compared: Callable[..., Similarity], assignment: Assignment
) -> None:
    stub = assignment.untouched_source()
    (pair,) = compared(ada=stub + OWN, bela=stub + RENAMED, chidi=stub + OTHER).pairs
    assert pair.students == ("ada", "bela")
    assert min(pair.shares) > 0.8


def test_a_run_that_is_repeated_within_one_submission_is_not_taken_for_the_handouts(
    compared: Callable[..., Similarity],
) -> None:
    (pair,) = compared(ada=OWN + OWN.replace("ramp", "again"), bela=RENAMED).pairs
    assert min(pair.shares) > 0.8


def test_a_notebook_is_compared_by_its_code(compared: Callable[..., Similarity]) -> None:
    (pair,) = compared(ada=OWN, bela=notebook("import torch", RENAMED)).pairs
    assert min(pair.shares) > 0.7


def test_the_places_that_are_marked_hold_the_shared_text(compared: Callable[..., Similarity]) -> None:
    found = compared(ada="\r\n\r\n" + OWN.replace("\n", "\r\n"), bela=OTHER + OWN)
    (pair,) = found.pairs
    for student, slices in zip(pair.students, pair.slices, strict=True):
        text = found.texts[student]
        marked = "".join(text[start:end] for start, end in slices)
        assert "found.append(factor * value)" in marked
        assert "einsum" not in marked


# Hostile texts


def test_text_of_students_is_escaped_on_the_page_and_what_acts_unseen_is_shown(
    compared: Callable[..., Similarity],
) -> None:
    evil = OWN.replace("rows = []", "rows = []  # </pre><script>alert(1)</script> \u202e &amp;")
    found = compared(ada=evil, **{"<b>bela</b>": RENAMED})
    text = page(found, "Toy <1>")
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text
    assert "Content-Security-Policy" in text


@pytest.mark.parametrize(
    "text",
    in_short(
        [
            "",
            "(" * 50_000,
            "'" * 50_000,
            "a = 1\n" * 20_000,
            "\\\n" * 20_000,
            "0_" * 50_000,
            "f'{" * 30_000,
            "\x00 = 1",
            "\N{ARABIC LETTER ALEF}" * 20_000,
            "lambda: " * 20_000,
        ],
        3,
    ),
    ids=["empty", "brackets", "quotes", "repeated", "continued", "digits", "f-strings", "null", "arabic", "lambdas"],
)
def test_a_hostile_text_neither_stops_the_comparison_nor_hides_a_pair(
    compared: Callable[..., Similarity], text: str
) -> None:
    found = compared(ada=OWN, bela=RENAMED, mallory=text)
    assert ("ada", "bela") in [pair.students for pair in found.pairs]
    assert "ada" in page(found, "Toy")


def test_a_text_that_is_too_long_is_left_out_and_named(compared: Callable[..., Similarity]) -> None:
    found = compared(ada=OWN, bela=RENAMED, mallory="x = 1\n" * (MAX_SOURCE // 6 + 1))
    assert found.left_out == {"mallory": f"longer than {MAX_SOURCE:,} characters"}
    assert "mallory" in page(found, "Toy")


def test_lines_far_from_what_is_shared_are_left_out() -> None:
    text = normalized("\n".join(f"line {number}" for number in range(100)))
    start = text.index("line 50")
    shown = marked_lines(text, ((start, start + 7), (len(text) - 4, len(text) + 40)))
    assert [line.number for line in shown] == [49, 50, 51, 52, 53, 0, 98, 99, 100]
    assert shown[2].parts == ((True, "line 50"), (False, ""))


# The command line


def test_the_sample_class_is_compared_and_the_pairs_are_called_something_to_look_at(tmp_path: Path) -> None:
    command = ["similar", REAL.folder / "submissions", "--out", tmp_path / "similar.html"]
    done = subprocess.run(
        [sys.executable, "-m", "autograder", *map(str, command)], cwd=KIT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("15 submissions compared, 0 left out: ")
    assert lines[-1].endswith("shows them side by side. A pair is something to look at, not a finding.")
    assert (tmp_path / "similar.html").read_text().count("<details>") >= 5


def test_without_the_package_a_sentence_says_how_to_get_it(tmp_path: Path, assignment: Assignment) -> None:
    kit = assignment.folder.parent.parent
    packages = packages_without("copydetect", tmp_path / "without")
    done = autograder(kit, "similar", "fixtures", "--out", "s.html", packages=packages)
    assert (done.returncode, done.stdout) == (2, "")
    assert "takes the package copydetect: `pip install -e '.[similarity]'`" in done.stderr
