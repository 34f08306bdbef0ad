"""Selfcheck: the grader's exam on the real kit, and what it says of a toy kit in which just one thing is wrong."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import toy_kit
from all_assignments import ASSIGNMENTS
from places import KIT
from shown import as_shown, comparable, documents, sections
from toy_kit import change, toy_assignment

from autograder.authoring.cache import MISTAKES, names_in
from autograder.authoring.exam.contract import CONTRACT
from autograder.authoring.exam.fates import DEFINITION, felt_by
from autograder.authoring.exam.mutants import mutants_of
from autograder.authoring.exam.selfcheck import (
    Exam,
    known_mistakes,
    right_answer_paths,
    selfcheck,
    stale_handout,
)
from autograder.authoring.fixtures.regenerate import solution_source
from autograder.checking.handout import COPIES
from autograder.cli.authoring import FAMILIES
from autograder.cli.options import CACHE
from autograder.grading.assignment import Assignment, find_assignment, load_assignment
from autograder.grading.fixtures import read_fixtures

pytestmark = pytest.mark.usefixtures("warm_pool")

REAL = find_assignment(KIT, "bandits")
EXTRA = """
MISTAKES += (
    Mistake("harmless", "ramp", "Which order?", "def ramp(x, factor): return x.clamp(min=0) * factor"),
    Mistake("kink-again", "ramp", "Which order?", "def ramp(x, factor): return x * factor"),
    Mistake("of-a-kind-unknown", "shift", "Which order?", "def shift(x, factor): return x * 0"),
    Mistake("both", "shift", "Why?", "def shift(x, factor): return x - factor\\n\\ndef ramp(x, factor): return x * 0"),
)
"""


def hold(kit: Path, **options: Any) -> Exam:
    """Examine the toy; what earlier tests graded of the same texts is taken over."""
    return selfcheck(toy_assignment(kit), read_fixtures(toy_assignment(kit)), **{"cache": CACHE, **options})


# The real kit


EVERY = 120  # of mistakes, right answers and mutants: some of each function


def test_the_kit_passes_its_own_exam_in_short(tmp_path: Path) -> None:
    """All of it, and of all assignments: test_the_kit_passes_its_own_exam."""
    for part, path in (("fixtures", REAL.folder), ("solution", REAL.solution), ("handout", REAL.handout)):
        ignored = shutil.ignore_patterns(*COPIES) if part == "handout" else None  # as in a clone: edits make them stale
        shutil.copytree(path, tmp_path / part / REAL.name, ignore=ignored)
    alone = load_assignment(tmp_path / "fixtures" / REAL.name)
    exam = selfcheck(alone, read_fixtures(alone), every=EVERY)
    assert exam.complaints == ()
    assert [exam.points(family)[0] for family in ("solution", "handout")] == [REAL.max_points, 0]
    assert {fate.variant.function for fate in exam.mistakes} == set(REAL.functions)
    assert {fate.variant.function for fate in exam.mutants} == set(REAL.functions)
    assert len(exam.of("answer")) == 1


@pytest.fixture(scope="module", params=ASSIGNMENTS, ids=lambda one: one.name)
def real(request: pytest.FixtureRequest) -> tuple[Assignment, subprocess.CompletedProcess[str]]:
    command = [sys.executable, "-m", "autograder", "selfcheck", "--jobs", "1", "--assignment", request.param.name]
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1"}
    return request.param, subprocess.run(command, cwd=KIT, env=environment, capture_output=True, text=True)


@pytest.mark.long
def test_the_kit_passes_its_own_exam(real: tuple[Assignment, subprocess.CompletedProcess[str]]) -> None:
    """Each known mistake is caught and none called wrongly, right answers earn all, mutants lose points."""
    assignment, done = real
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    lines = done.stdout.splitlines()
    assert lines[:2] == ["solution: 100 of 100 points", "untouched handout: 0 of 100 points"]
    row = next(line for line in lines if line.split()[:1] == ["all"])
    mistakes, caught, rightly, wrongly, unnamed, elsewhere = map(int, row.split()[1:])
    assert mistakes == caught == rightly + unnamed == len(known_mistakes(assignment))
    assert (wrongly, elsewhere) == (0, 0)
    rows = [line.rsplit(maxsplit=3) for line in lines]
    counted = {row[0].strip(): [int(cell) for cell in row[1:]] for row in rows if len(row) == 4 and row[-1].isdigit()}
    right = len(right_answer_paths(assignment))
    assert counted["right answers that earn all"] == [right, right, 0]
    mutants = mutants_of(solution_source(assignment), assignment.functions)
    lose = [f"{what} that lose points" for what in FAMILIES.values()]
    assert sum(counted[what][0] for what in (*lose, "equivalent changes that lose none")) == len(mutants)
    assert {counted[what][2] for what in lose} == {0}
    if (assignment.folder / CONTRACT).is_file():
        assert counted["clauses that a mistake tests"][2] == 0


@pytest.mark.long
def test_exam_prints_what_the_documents_show(real: tuple[Assignment, subprocess.CompletedProcess[str]]) -> None:
    assignment, done = real
    steps = [step for document in documents() for section in sections(document) for step in section.steps]
    for step in steps:
        if step.command.startswith("autograder selfcheck") and assignment.name in step.command:
            shown = comparable(step.output)
            assert as_shown(comparable(done.stdout), shown) == shown


# A toy kit


@pytest.mark.long
def test_results_are_kept_until_something_changes(kit: Path, tmp_path: Path) -> None:
    """And stored answers of mistakes are judged as a run of them is."""
    told: list[tuple[int, int]] = []

    def examined() -> Exam:
        told.clear()
        exam = hold(kit, cache=tmp_path, progress=lambda done, total: told.append((done, total)))
        assert exam.complaints == ()
        assert [exam.points(family)[0] for family in ("solution", "handout")] == [10, 0]
        assert [(fate.variant.slug, fate.naming) for fate in exam.mistakes] == [
            ("no-kink", "rightly"),
            ("not-scaled", "rightly"),
            ("wrong-way", "rightly"),
        ]
        assert told == [(done, len(told)) for done in range(1, 1 + len(told))]
        return exam

    stored = examined()
    assert len(stored.mutants) > 10
    assert len(stored.fates) // 2 < len(told) <= len(stored.fates)  # each function of a mutant once
    (kit / "fixtures" / "toy" / MISTAKES).unlink()
    judged = [[(fate.lost_on, fate.named) for fate in exam.mistakes] for exam in (stored, examined())]
    assert (judged[0], len(told)) == (judged[1], 1)  # the first of each function ran before
    assert examined().fates
    assert told == []
    change(kit / "fixtures" / "toy" / "mistakes.py", "return x - factor", "return -factor + x")
    assert examined().fates
    assert len(told) == 1
    change(kit / "fixtures" / "toy" / "mistakes.py", "return -factor + x", "return x - 2 * factor")
    toy_kit.regenerate_into(kit / "fixtures" / "toy", kit / "fixtures" / "toy")
    told.clear()
    hold(kit, cache=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert 0 < len(told) <= len(stored.mistakes)  # which are named by each other's answers; no mutant, no right answer
    change(
        kit / "fixtures" / "toy" / "cases.py", '("shift-small", "two rows", (2, 3))', '("shift-small", "two", (2, 4))'
    )
    toy_kit.regenerate_into(kit / "fixtures" / "toy", kit / "fixtures" / "toy")
    told.clear()
    again = hold(kit, cache=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert 0 < len(told) <= len([fate for fate in stored.fates if fate.variant.function != "ramp"])
    assert exam_rows(again) == exam_rows(hold(kit, cache=None))


def exam_rows(exam: Exam) -> list[tuple[Any, ...]]:
    return [(fate.variant, fate.survived, fate.named, fate.judged) for fate in exam.fates if not fate.variant.line]


def test_uncaught_misnamed_or_spilling_mistake_is_told(kit: Path) -> None:
    mistakes = kit / "fixtures" / "toy" / "mistakes.py"
    mistakes.write_text(mistakes.read_text() + EXTRA)
    exam = hold(kit)
    assert exam.complaints == (
        "harmless is not caught.",
        "kink-again is called no-kink.",
        "both loses 6 points on other functions than shift.",
        "both is called wrong-way.",
    )
    found = {fate.variant.slug: fate for fate in exam.mistakes}
    assert [found[slug].naming for slug in ("harmless", "kink-again", "of-a-kind-unknown", "no-kink")] == [
        "not",
        "wrongly",
        "not",
        "rightly",
    ]
    assert (found["no-kink"].lost, found["no-kink"].spilt) == (6, 0)
    assert [note for note in exam.notes if "not named" in note] == [
        "Caught but not named, so that students are not told their hints (no fault of the grading): of-a-kind-unknown."
    ]


@pytest.mark.long
def test_failing_solution_and_finished_handout_are_told(kit: Path) -> None:
    change(kit / "solution" / "toy" / "toy.py", "factor * torch.clamp(x, min=0)", "factor * torch.clamp(x, min=0.1)")
    (kit / "handout" / "toy" / "toy.py").write_text("def ramp(x, factor):\n    return factor * x.clamp(min=0)\n")
    exam = hold(kit)
    assert [complaint.splitlines()[0] for complaint in exam.complaints] == [
        "The solution fails ramp-values: the ramp   float64[row=2 column=3]",
        "The untouched handout is not told that it is unfinished in ramp-values: does a driver or the solution "
        "catch NotImplementedError? Let it pass.",
        "The handout is not what release makes (toy.py): run `autograder release`.",
    ]


@pytest.mark.long
def test_grader_failure_in_exam_catches_no_mistake(kit: Path, tmp_path: Path) -> None:
    done = toy_kit.autograder(kit, "selfcheck", packages=toy_kit.packages_without("torch", tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert len(done.stderr.splitlines()) == 1
    assert re.match(r"autograder: The exam could not be held: .*No module named 'torch'", done.stderr)


@pytest.mark.long
def test_the_command_line_prints_each_complaint_and_exits_with_3(kit: Path) -> None:
    (kit / "handout" / "toy" / "requirements.txt").write_text("torch\n")
    answers = kit / "fixtures" / "toy" / "right_answers"
    answers.mkdir(exist_ok=True)
    (answers / "[red]\x1b[2J.py").write_text(
        "def ramp(x, factor): return x\n\ndef shift(x, factor): return x + factor\n"
    )
    done = toy_kit.autograder(kit, "selfcheck", "--jobs", "1")
    assert done.returncode == 3
    assert done.stdout.splitlines()[:2] == ["solution: 10 of 10 points", "untouched handout: 0 of 10 points"]
    assert done.stdout.splitlines()[-3:] == [
        "  It fails for this:",
        r"  [red]\x1b[2J is a right answer, but ramp-values is failed: the ramp   float64[row=2 column=3]",
        "  The handout is not what release makes (requirements.txt): run `autograder release`.",
    ]
    assert done.stderr == "autograder: toy does not pass its exam; do not release it.\n"


@pytest.mark.long
def test_exam_of_a_sample_or_of_one_function_tries_no_other_mistakes(kit: Path) -> None:
    def rows(*options: str) -> list[list[str]]:
        done = toy_kit.autograder(kit, "selfcheck", "--jobs", "1", *options)
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split() for line in done.stdout.splitlines()]

    whole, quick, ramp = rows(), rows("--quick", "--costs"), rows("--function", "ramp")
    assert ["all", "3", "3", "3", "0", "0", "0"] in whole
    assert "no-kink" not in str(whole)
    assert ["all", "2", "2", "2", "0", "0", "0"] in quick  # a mistake of each function, of three that are known
    assert ["no-kink", "ramp", "6", "6", "100", "%"] in quick
    assert ["shift"] not in [row[:1] for row in ramp]
    assert "clauses" not in str(ramp).partition("equivalent")[2]  # which need all mistakes
    (kit.parent / "secret").write_text("0123456789abcdef" * 2)
    term = ("--term", "spring", "--secret-file", kit.parent / "secret", "--out", kit.parent / "spring")
    assert toy_kit.autograder(kit, "fixtures", "regenerate", *term).returncode == 0
    assert rows("--fixtures", str(kit.parent / "spring")) == whole  # where its hidden cases tell as much apart
    wrong = toy_kit.autograder(kit, "selfcheck", "--function", "rump")
    assert (wrong.returncode, wrong.stderr) == (2, "autograder: toy does not grade rump; 'ramp' is there.\n")


@pytest.mark.parametrize(
    ("functions", "felt"), [("f", {"f", "g", "h", "Model"}), ("g", {"g", "h"}), ("h", {"h"}), ("ho", {"h", "o"})]
)
def test_mistake_is_felt_by_what_calls_its_functions(functions: str, felt: set[str]) -> None:
    solution = "def f(): ...\ndef g(): return f()\ndef h(): return g\nclass Model:\n  def forward(self): return f()\n"
    uses = {node.name: names_in(node) for node in ast.parse(solution).body if isinstance(node, DEFINITION)}
    assert felt_by("".join(f"def {name}(): ...\n" for name in functions), uses) == felt
    assert felt_by("".join(f"{name} = None\n" for name in functions), uses) == felt


def test_the_catalogue_is_read_in_another_process(kit: Path) -> None:
    change(kit / "fixtures" / "toy" / "mistakes.py", '"no-kink"', 'str(__import__("os").getpid())')
    first, *others = (mistake.slug for mistake in known_mistakes(toy_assignment(kit)))
    assert int(first) != os.getpid()
    assert others == ["not-scaled", "wrong-way"]


# The handout


def test_a_handout_that_release_has_just_made_is_not_stale(kit: Path) -> None:
    caches = kit / "handout" / "toy" / "__pycache__"
    caches.mkdir()
    (caches / "toy.cpython-311.pyc").write_bytes(b"")
    (kit / "handout" / "toy" / ".pytest_cache").mkdir()
    (kit / "handout" / "toy" / ".pytest_cache" / "README.md").write_text("")
    assert stale_handout(toy_assignment(kit)) == []


def test_changed_missing_and_unknown_files_of_the_handout_are_told(kit: Path) -> None:
    handout, stale = kit / "handout" / "toy", "The handout is not what release makes ({}): run `autograder release`."
    strange = "The handout holds what release did not put there ({}): take it away."
    (handout / "toy.py").write_text("")
    assert stale_handout(toy_assignment(kit)) == [stale.format("toy.py")]
    (handout / "README.md").unlink()
    (handout / "autograder" / "oracle.py").write_text("")
    (handout / "fixtures" / "toy" / "hidden").mkdir()
    (handout / "fixtures" / "toy" / "hidden" / "x.safetensors").write_text("")
    (handout / "notes.md").write_text("an instructor's own")
    assert stale_handout(toy_assignment(kit)) == [
        stale.format("README.md, toy.py"),
        strange.format("autograder/oracle.py, fixtures/toy/hidden/x.safetensors"),
    ]
    (kit / "solution" / "toy" / "README.md").unlink()
    (told,) = stale_handout(toy_assignment(kit))
    assert "README.md cannot be read" in told


# Right answers and mutants


@pytest.mark.long
def test_exam_tells_failed_right_answer_and_needless_mark(kit: Path) -> None:
    solution = kit / "solution" / "toy" / "toy.py"
    line = "return factor * torch.clamp(x, min=0)"
    refusal = "if factor < -9:\n        raise ValueError('too small')\n    "
    change(solution, line, f"{refusal}{line}  # equivalent: not at all")
    folder = kit / "fixtures" / "toy" / "right_answers"
    folder.mkdir()
    ramp = "def ramp(x, factor):\n    return factor * x.relu()\n\n"
    (folder / "relu.py").write_text(f"{ramp}def shift(x, factor):\n    return factor + x\n")
    (folder / "wrong.py").write_text(f"{ramp}def shift(x, factor):\n    return x\n")
    exam = hold(kit)
    failed = "wrong is a right answer, but shift-values is failed: the shift   float64[row=2 column=3]"
    assert [(fate.variant.slug, fate.complaints) for fate in exam.of("answer")] == [("relu", []), ("wrong", [failed])]
    assert failed in exam.complaints
    told = [line for line in exam.complaints if "is marked as equivalent" in line]
    assert [line.partition(", but ")[2] for line in told] == ["no change of it keeps all points: not at all"]
    assert "pass" in [mutant.after for mutant in exam.unmarked]  # in place of the check, which no case asks for
