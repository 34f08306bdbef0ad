"""Similarity: what two submissions share beyond the handout, shown as pairs, whatever their text holds."""

from __future__ import annotations

import json
import multiprocessing
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from in_process import autograder_in_process
from lengths import in_short
from places import KIT

from autograder.course import similarity
from autograder.course.similarity import Pair, Similarity, compare_class, similarity_page
from autograder.grading.assignment import Assignment, find_assignment
from autograder.grading.grader import Grader
from autograder.submissions.finding import find
from autograder.vocabulary.errors import UsageError

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
def assignment(grader: Grader) -> Assignment:
    return grader.assignment


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as started:
        yield started


@pytest.fixture(autouse=True)
def in_one_process(process: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process for all: each of its own takes the time of its imports. The command line has its own."""
    monkeypatch.setattr(
        similarity, "run_in_subprocess", lambda function, *given: process.submit(function, *given).result()
    )


@pytest.fixture
def compared(tmp_path: Path, assignment: Assignment) -> Callable[..., Similarity]:
    """A function that compares a class of these texts; a notebook's begins with its cells."""

    def compare(**texts: str) -> Similarity:
        for name, text in texts.items():
            folder = tmp_path / "class" / name
            folder.mkdir(parents=True)
            kind = "ipynb" if text.startswith('{"cells"') else "py"
            (folder / f"toy.{kind}").write_text(text, encoding="utf-8")
        return compare_class(assignment, find([tmp_path / "class"], assignment.module))

    return compare


def notebook(*cells: str) -> str:
    made = [
        {"cell_type": "code", "metadata": {}, "source": text, "outputs": [], "execution_count": None} for text in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def test_copy_with_other_names_and_comments_is_found(compared: Callable[..., Similarity]) -> None:
    commented = RENAMED.replace("    table = []", "    # begin with nothing\n\n    table = []")
    found = compared(ada=OWN, bela=commented, chidi=OTHER)
    (pair,) = found.pairs
    assert pair.students == ("ada", "bela")
    assert min(pair.shares) > 0.8


def test_text_too_slow_to_split_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    split = similarity.split
    split(OWN)  # imports take seconds of their own
    monkeypatch.setattr(similarity, "split", lambda text: split(OWN * 10_000 if text == "endless" else text))
    monkeypatch.setattr(similarity, "SECONDS_EACH", 1)
    monkeypatch.setattr(similarity.resource, "setrlimit", lambda *_: None)  # of this process
    pairs, slow = similarity.pairs_of({"ada": OWN, "bela": "endless", "chidi": RENAMED}, (), 0.3)
    assert slow == ["bela"]
    assert [pair.students for pair in pairs] == [("ada", "chidi")]


def test_notebook_is_compared_by_its_code(compared: Callable[..., Similarity]) -> None:
    (pair,) = compared(ada=OWN, bela=notebook("import torch", RENAMED)).pairs
    assert min(pair.shares) > 0.7


# Hostile texts


def test_students_text_is_escaped_on_the_page(compared: Callable[..., Similarity]) -> None:
    evil = OWN.replace("rows = []", "rows = []  # </pre><script>alert(1)</script> \u202e &amp;")
    found = compared(ada=evil, **{"<b>bela</b>": RENAMED})
    text = similarity_page(found, "Toy <1>", "toy")
    assert '<p class="kicker">Toy &lt;1&gt; <code class="module">toy</code></p>' in text
    assert "<script" not in text
    assert "<b>" not in text
    assert "&lt;/pre&gt;&lt;script&gt;alert(1)" in text
    assert "\u202e" not in text
    assert "Content-Security-Policy" in text


@pytest.mark.parametrize(
    "text",
    in_short(
        [
            "(" * 50_000,
            "'" * 50_000,
            "a = 1\n" * 20_000,
            "0_" * 50_000,
            "f'{" * 30_000,
            "\x00 = 1",
            "\N{ARABIC LETTER ALEF}" * 20_000,
        ]
    ),
    ids=["brackets", "quotes", "repeated", "digits", "f-strings", "null", "arabic"],
)
def test_hostile_text_neither_stops_nor_hides_a_pair(compared: Callable[..., Similarity], text: str) -> None:
    found = compared(ada=OWN, bela=RENAMED, mallory=text)
    assert ("ada", "bela") in [pair.students for pair in found.pairs]
    assert "ada" in similarity_page(found, "Toy")


# What a run says of whom


def test_dozen_honest_submissions_show_two_pairs_at_most() -> None:
    assert len(compare_class(REAL, find([REAL.folder / "submissions"], REAL.module)).pairs) <= 2


def test_ring_of_five_copies_is_found(compared: Callable[..., Similarity]) -> None:
    others = {
        f"other{place}": OTHER.replace(".mul(slope)", f" * {place} ** 3 // {place} + slope") for place in range(5)
    }
    twice = RENAMED + "".join(f"\nw{step} = [{step} * k + 1 for k in range({step}) if k % 3]\n" for step in range(9))
    ring = {f"ring{place}": twice.replace("table", f"t{place}") for place in range(5)}
    found = compared(**others, **ring)
    assert sum(pair.students[0][:4] == pair.students[1][:4] == "ring" for pair in found.pairs) == 10


# The command line


def test_student_who_handed_in_twice_is_named(tmp_path: Path) -> None:
    shutil.copytree(REAL.folder / "submissions" / "hana", tmp_path / "class" / "hana")
    shutil.copytree(REAL.folder / "submissions" / "luca", tmp_path / "class" / "luca")
    shutil.copytree(REAL.folder / "submissions" / "luca", tmp_path / "class" / "ada")
    shutil.copy(REAL.folder / "submissions" / "ada" / f"{REAL.module}.py", tmp_path / "class" / "ada.py")
    command = ["similar", tmp_path / "class", "--out", tmp_path / "similar.html"]
    done = autograder_in_process(KIT, *command)
    assert done.returncode == 0, done.stderr
    assert "NOT COMPARED: ada handed in twice" in done.stderr
    assert done.stdout.startswith("2 submissions compared, 0 left out")


def test_without_copydetect_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"takes the package copydetect: `pip install -e '\.\[similarity\]'`"):
        compare_class(REAL, [])


def test_line_of_spaces_takes_no_time() -> None:
    text = "x = [1, 2, 3] + [4, 5, 6]\n" * 20 + f"y ={' ' * 190_000}1  # one\n"
    pair = Pair(("ada", "bela"), (1.0, 1.0), 100.0, (((0, len(text)),), ((0, len(text)),)))
    started = time.process_time()
    shown = similarity_page(Similarity({"ada": text, "bela": text}, (pair,), {}), "class")
    assert time.process_time() - started < 5
    assert "# one" in shown
