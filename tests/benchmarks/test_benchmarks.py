"""The benchmark's own parts: the same items, the same verdicts, the same calls; tables that say what was found."""

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

from autograder.authoring.fixtures.regenerate import load_expanded
from autograder.grading.assignments import find_assignment
from autograder.grading.compare import compare
from autograder.grading.fixtures import Fixtures, read_fixtures
from autograder.grading.grader import Grader
from autograder.sandbox.inside import worker
from autograder.sandbox.observation import from_frame
from autograder.sandbox.sandbox import Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.report import Report
from benchmarks import comparison, tables
from benchmarks.contenders import Contender, Nbgrader, Otter, Workshop
from benchmarks.floor import Floor
from benchmarks.measure import CommandFailed, Measured, run
from benchmarks.overhead import interleaved
from benchmarks.sizes import catalogue_of, mixed

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


# The same items


@pytest.mark.long
@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("student", [RIGHT, WRONG])
def test_the_in_process_check_and_the_kit_agree_on_every_case(
    student: str, workshop: Workshop, reports: dict[str, Report], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(workshop.course))
    checks = importlib.import_module("course_checks")
    module = as_module(source_of(student))
    kit = {case.case: case.verdict == "passed" for item in reports[student].items for case in item.cases}
    found = {
        case["case"]: _passes(checks, stored, case, module)
        for item in workshop.points
        for stored, case in checks.cases(item)
    }
    assert found == kit
    assert len(found) == sum(len(item.public) + len(item.hidden) for item in load_expanded(ASSIGNMENT.folder).items)
    assert checks.items() == workshop.points
    assert all(kit.values()) == (student == RIGHT)


def _passes(checks: Any, stored: Any, case: dict[str, Any], module: types.ModuleType) -> bool:
    try:
        return not checks.run(stored, case, module)
    except Exception:
        return False


@pytest.mark.usefixtures("own_modules")
def test_an_item_with_a_wrong_case_is_named(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(workshop.course))
    checks = importlib.import_module("course_checks")
    with pytest.raises(AssertionError, match=r"deltas-normalized-.*deltas"):
        checks.check("deltas-normalized", as_module(source_of(WRONG)))


@pytest.mark.long
@pytest.mark.usefixtures("own_modules")
@pytest.mark.parametrize("student", [RIGHT, WRONG])
def test_the_floor_makes_the_calls_that_grading_makes(
    student: str, fixtures: Fixtures, reports: dict[str, Report]
) -> None:
    worker.know_torch()
    floor = Floor(ASSIGNMENT, fixtures.cases)
    calls = floor.calls(floor.load(source_of(student)))
    kit = {case.case: case.verdict for item in reports[student].items for case in item.cases}
    for case, call in zip(fixtures.cases, calls, strict=True):
        try:
            seen = from_frame(*worker._observed(*call()))
        except Exception:
            assert kit[case.id] == "raised"
        else:
            assert (compare(case.expected, seen) is None) == (kit[case.id] == "passed"), case.id


def test_no_two_students_hand_in_the_same_bytes(workshop: Workshop) -> None:
    catalogue = catalogue_of(workshop)
    for made in (workshop.handed_in, lambda number: mixed(workshop, catalogue, number)):
        assert len({made(number) for number in range(200)}) == 200


# Tools that are not there, or do not do their work


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


@pytest.mark.parametrize("tool", [Nbgrader(), Otter()])
def test_a_tool_that_is_not_installed_is_said_to_be_missing(
    tool: Contender, workshop: Workshop, tmp_path: Path
) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    bare.chmod(0o755)
    assert "bench" in tool.missing(replace(workshop, tools=str(bare)))


def test_a_row_says_why_a_tool_has_no_figures(workshop: Workshop) -> None:
    found = [Pretended(tables.STRICT), Pretended("nbgrader", missing="not installed"), Pretended("otter", fault="no")]
    rows = comparison.ratios(comparison.compare_all(workshop, found, 8, 2, [1, 2]), tables.STRICT)
    assert [(row["name"], row["at_a_time"], row["missing"]) for row in rows] == [
        (tables.STRICT, 1, ""),
        (tables.STRICT, 2, ""),
        ("otter", 1, "failed: no"),
        ("otter", 2, "failed: no"),
        ("nbgrader", None, "not installed"),
    ]


# Measuring


def test_a_command_is_measured_with_the_memory_of_all_its_processes(tmp_path: Path) -> None:
    child = "import time; held = b'x' * 80_000_000; time.sleep(0.5)"
    code = f"import subprocess, sys; print('begun'); subprocess.run([sys.executable, '-c', {child!r}])"
    measured = run([sys.executable, "-c", code], tmp_path)
    assert measured.output == "begun\n"
    assert measured.seconds > 0.5
    assert measured.peak_tree > 80_000_000 / 2**20 > measured.peak_main > 1


def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"(?s)ended with 4.*last words"):
        run([sys.executable, "-c", "print('last words'); raise SystemExit(4)"], tmp_path)


def test_interleaved_measures_take_turns_after_warming() -> None:
    seen: list[str] = []

    def measure(name: str) -> float:
        seen.append(name)
        return float(len(seen))

    found = interleaved({"a": lambda: measure("a"), "b": lambda: measure("b")}, 3)
    assert "".join(seen) == "aabb" + "ab" * 3
    assert found == {"a": [5.0, 7.0, 9.0], "b": [6.0, 8.0, 10.0]}


# Tables

MACHINE = {
    "started": "2026-01-02 03:04 UTC",
    "cores": 2,
    "processor": "some processor",
    "platform": "Linux 6, Python 3",
    "load": 0.1,
    "versions": {"torch": "2.13.0", "nbgrader": "not installed"},
    "layers": ["landlock", "seccomp"],
}


def result(
    strict: float = 0.1, added: float = 4.0, over_floor: float = 1.3, last: float = 60.0, further: float = 0.06
) -> dict[str, Any]:
    rows: list[dict[str, Any]] = [
        {"name": name, "at_a_time": 1, "missing": "", "whole": 2 * seconds, "further": seconds, "peak_mib": 1234.5}
        for name, seconds in ((tables.STRICT, strict), ("pytest", 2.5), ("nbgrader autograde", 3.5))
    ]
    rows.append({**rows[0], "at_a_time": 2, "whole": 2 * further, "further": further})
    rows.append({"name": "otter", "at_a_time": None, "missing": "not installed"})
    kinds = {"fork alone": 10.0, "fork + all of them": 10.0 + added}
    sizes = [
        {"size": size, "seconds": size / 10, "per_submission": 0.1, "grader_mib": memory, "tree_mib": 700.0}
        for size, memory in ((10, 50.0), (100, 50.0), (1000, last))
    ]
    for row in sizes[1:]:
        row["each_further"] = 0.1
    counts = {"submission": "ada", "submissions": 12, "rounds": 2, "items": 31, "cases": 87}
    return {
        "machine": MACHINE,
        "comparison": {**counts, "rows": comparison.ratios(rows, tables.STRICT)},
        "isolation": {
            "times": 40,
            "rows": {name: {"milliseconds": ms, "added": ms - 10.0} for name, ms in kinds.items()},
        },
        "floor": {
            "times": 40,
            "curves": 0.02,
            "rows": {
                name: {"seconds": 0.1 * ratio, "calls": 0.1, "over_floor": ratio}
                for name, ratio in (("floor", 1.0), ("none", 1.2), ("strict", over_floor))
            },
        },
        "sizes": {"isolation": "strict", "jobs": 2, "rows": sizes},
    }


def test_the_text_holds_machine_versions_and_all_three_tables() -> None:
    text = tables.text(result())
    for part in ("2 cores", "torch 2.13.0", "nbgrader not installed", "12 copies", "31 items, 87 cases", "landlock"):
        assert part in text
    assert "nbgrader autograde                      1      7.000       35.0      3.500       35.0      1,234" in text
    assert f"{'otter':<44}not installed" in text
    assert f"{'fork + all of them':<32}     14.0      +4.0" in text
    assert f"{'graded, strict':<32}    0.130     0.100      1.30" in text
    assert "       1,000       100.0      0.1000      0.1000          60         700" in text
    assert max(map(len, text.splitlines())) <= 120
