"""The benchmark's own parts: the same items, the same verdicts, the same calls; rows that say what was measured."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from places import KIT

from autograder.authoring.fixtures.regenerate import import_generator
from autograder.grading.assignment import find_assignment
from autograder.grading.compare import compare
from autograder.grading.fixtures import Fixtures, read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.calls import observation_in
from autograder.sandbox.sandbox import Sandbox
from autograder.sandbox.worker import frames, worker
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report
from benchmarks.contenders import Contender, Nbgrader, Workshop
from benchmarks.floor import Floor
from benchmarks.measurements import CHANGES, CommandFailed, Measured, compare_all, interleaved, mixed, run

ASSIGNMENT = find_assignment(KIT, "policy_gradient")
RIGHT, WRONG = "ada", "emeka"


def source_of(student: str) -> str:
    return (ASSIGNMENT.folder / "submissions" / student / "policy_gradient.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def fixtures() -> Fixtures:
    return read_fixtures(ASSIGNMENT)


@pytest.fixture(scope="module")
def reports(fixtures: Fixtures) -> dict[str, Report]:
    """What the kit itself finds, without layers: they are no part of what is compared here."""
    grader = Grader.of(ASSIGNMENT, fixtures)
    with Sandbox(isolation="none") as sandbox:
        return {name: grader.grade(Submission(name, name, "", source_of(name)), sandbox) for name in (RIGHT, WRONG)}


@pytest.fixture
def own_modules() -> Iterator[None]:
    """Take what a test imports under the names of the assignment's modules away again, and torch's state with it."""
    names = ("policy_gradient", "sorting_task", "probes", "course_checks")
    before, threads = {name: sys.modules.pop(name, None) for name in names}, torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    made = Workshop(tmp_path, ASSIGNMENT, source_of(RIGHT))
    made.write_course()
    return made


def as_module(source: str) -> types.ModuleType:
    module = sys.modules["policy_gradient"] = types.ModuleType("policy_gradient")
    exec(compile(source, "policy_gradient.py", "exec", dont_inherit=True), module.__dict__)
    return module


@pytest.mark.long
@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("student", [RIGHT, WRONG])
def test_course_checks_agree_with_the_kit_on_every_case(
    student: str, workshop: Workshop, reports: dict[str, Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(workshop.course))
    checks = importlib.import_module("course_checks")
    module = as_module(source_of(student))
    kit = {case.case: case.verdict == "passed" for item in reports[student].items for case in item.cases}

    def passes(stored: Any, case: dict[str, Any]) -> bool:
        try:
            return not checks.run(stored, case, module)
        except Exception:
            return False

    in_process = {case["case"]: passes(stored, case) for item in workshop.points for stored, case in checks.cases(item)}
    assert in_process == kit
    assert all(kit.values()) == (student == RIGHT)


@pytest.mark.usefixtures("own_modules")
def test_course_checks_name_the_wrong_case(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(workshop.course))
    checks = importlib.import_module("course_checks")
    assert checks.items() == workshop.points
    with pytest.raises(AssertionError, match=r"deltas-normalized-.*deltas"):
        checks.check("deltas-normalized", as_module(source_of(WRONG)))


@pytest.mark.long
@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("student", [RIGHT, WRONG])
def test_floor_makes_the_calls_of_a_grading(student: str, fixtures: Fixtures, reports: dict[str, Report]) -> None:
    worker.know_torch()
    floor = Floor(ASSIGNMENT, fixtures.cases)
    calls = floor.calls(floor.load(source_of(student)))
    kit = {case.case: case.verdict for item in reports[student].items for case in item.cases}
    for case, call in zip(fixtures.cases, calls, strict=True):
        try:
            answer, numbers = worker._observed(*call(), of_arrays=False)
            seen = observation_in(frames.Frame(frames.encode_header(answer), numbers))
        except Exception:
            assert kit[case.id] == "raised"
        else:
            assert (compare(case.expected, seen) is None) == (kit[case.id] == "passed"), case.id


def test_students_hand_in_different_bytes(workshop: Workshop) -> None:
    catalogue = [mistake.source for mistake in import_generator(ASSIGNMENT)["mistakes"].MISTAKES]
    for made in (workshop.handed_in, lambda number: mixed(workshop, catalogue, number)):
        assert len({made(number) for number in range(200)}) == 200


class Pretended(Contender):
    """A tool that does nothing, or fails."""

    def __init__(self, name: str, missing: str = "", fault: str = "") -> None:
        self.name, self._missing, self._fault = name, missing, fault

    def missing(self, workshop: Workshop) -> str:
        return self._missing

    def prepare(self, workshop: Workshop) -> None:
        assert not self._missing

    def grade(self, workshop: Workshop, count: int, parallel: int) -> Measured:
        if self._fault:
            raise CommandFailed(self._fault)
        return Measured(seconds=3.0 + 0.5 * count / parallel, peak_tree=200.0, peak_main=50.0, output="")


def test_missing_tool_says_what_to_install(workshop: Workshop, tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    assert "bench" in Nbgrader().missing(replace(workshop, tools=str(bare)))


def test_comparison_has_figures_or_a_reason(workshop: Workshop) -> None:
    tools = [Pretended("kit"), Pretended("nbgrader", missing="not installed"), Pretended("pytest", fault="no")]
    rows = compare_all(workshop, tools, 8, 2, [1, 2], lambda text: None)
    assert [(row["name"], row["at_a_time"], row["missing"]) for row in rows] == [
        ("kit", 1, ""),
        ("kit", 2, ""),
        ("pytest", 1, "failed: no"),
        ("pytest", 2, "failed: no"),
        ("nbgrader", None, "not installed"),
    ]
    assert (rows[0]["whole"], rows[0]["further"], rows[0]["times_further"]) == (7 / 8, 0.5, 1.0)


def test_command_is_measured_with_its_child_processes(tmp_path: Path) -> None:
    child = "import time; held = b'x' * 80_000_000; time.sleep(0.5)"
    code = f"import subprocess, sys; print('begun'); subprocess.run([sys.executable, '-c', {child!r}])"
    measured = run([sys.executable, "-c", code], tmp_path)
    assert measured.output == "begun\n"
    assert measured.seconds > 0.5
    assert measured.peak_tree > 80_000_000 / 2**20 > measured.peak_main > 1


def test_failing_command_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"(?s)ended with 4.*last words"):
        run([sys.executable, "-c", "print('last words'); raise SystemExit(4)"], tmp_path)


@pytest.mark.parametrize("change", CHANGES)
def test_author_changes_one_place(change: str) -> None:
    file, right, wrong = CHANGES[change]
    texts = [right, *map(wrong, range(1, 99))]
    assert len(set(texts)) == len(texts) or texts == [""] * len(texts)
    assert not right or (ASSIGNMENT.folder / file).read_text(encoding="utf-8").count(right) == 1


def test_interleaved_measures_take_turns() -> None:
    seen: list[str] = []

    def measure(name: str) -> float:
        seen.append(name)
        return float(len(seen))

    seconds = interleaved({"a": lambda: measure("a"), "b": lambda: measure("b")}, 3)
    assert "".join(seen) == "aabb" + "ab" * 3
    assert seconds == {"a": [5.0, 7.0, 9.0], "b": [6.0, 8.0, 10.0]}
