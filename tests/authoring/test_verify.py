"""Verify: whether stored fixtures are what their generator makes, on a toy assignment."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import autograder_in_process as autograder
from places import KIT
from toy_kit import change, flip_a_byte, store_version, toy_assignment

from autograder.authoring.fixtures.regenerate import regenerate
from autograder.authoring.fixtures.stored_set import versions
from autograder.authoring.fixtures.verify import ENOUGH, difference_text, movement, verify
from autograder.grading.assignment import Assignment, find_assignments
from autograder.grading.fixtures import decode, encode, read_fixtures
from autograder.sandbox.calls import Observation
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.errors import FixtureError

RAMP = "hidden/ramp-values.safetensors"


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("name", [RAMP, "public/shift-values.safetensors", "probes.py"])
def test_flipped_byte_is_refused_before_the_generator_runs(kit: Path, name: str) -> None:
    flip_a_byte(kit / "fixtures" / "toy" / name)
    (kit / "fixtures" / "toy" / "cases.py").write_text("raise RuntimeError('the generator ran')\n")
    with pytest.raises(FixtureError, match=rf"{name} is not the file that .*manifest\.json lists"):
        verify(toy_assignment(kit))


@pytest.mark.long
@pytest.mark.parametrize("assignment", find_assignments(KIT), ids=lambda assignment: assignment.name)
def test_stored_sets_are_what_their_generators_make(assignment: Assignment) -> None:
    done = autograder(KIT, "fixtures", "verify", "--assignment", assignment.name)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_verify_tells_changed_generator_unknown_file_and_version(kit: Path) -> None:
    folder = kit / "fixtures" / "toy"
    change(folder / "cases.py", '("ramp-large", "three rows", (3, 5))', '("ramp-large", "three rows", (3, 4))')
    change(folder / "mistakes.py", "Where is the factor?", "Which factor?")
    store_version(kit, "torch", "1.2.3")
    (folder / "public" / "left-over.safetensors").write_bytes(b"")
    done = autograder(kit, "fixtures", "verify")
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == [
        f"torch was 1.2.3 when they were made, and is {versions()['torch']} here.",
        "3 of 6 files would be made otherwise now:",
        "  hidden/ramp-values.safetensors  not in numbers alone",
        "  manifest.json",
        "  public/left-over.safetensors",
        "Run `autograder fixtures regenerate` if cases, oracle, probes, solution or mistakes were meant to change.",
    ]


@pytest.mark.long
def test_build_refusal_is_one_sentence_and_changes_nothing(kit: Path) -> None:
    change(kit / "fixtures" / "toy" / "oracle.py", "value + factor", "value - factor")
    before = contents(kit / "fixtures")
    done = autograder(kit, "fixtures", "regenerate")
    assert (done.returncode, done.stdout) == (3, "")
    told = r"autograder: fixtures/toy/cases\.py:\d+: shift-small: the solution does not pass its own case.*\n"
    assert re.fullmatch(told, done.stderr)
    assert contents(kit / "fixtures") == before


# Other machines


def store_moved(kit: Path, move: Callable[[np.ndarray], np.ndarray], *, mistakes: bool = False) -> None:
    """Let the hidden cases hold other numbers, as if they had been made on another machine."""
    folder = kit / "fixtures" / "toy"
    path = folder / RAMP
    moved = []
    for case in decode(path.read_bytes(), path):
        first, *rest = case.expected
        seen = case.mistakes["no-kink"]
        assert isinstance(seen, Observation)
        wrong = replace(seen.returned["ramp"], array=move(np.asarray(seen.returned["ramp"].array)))
        if mistakes:
            case = replace(case, mistakes={**case.mistakes, "no-kink": replace(seen, returned={"ramp": wrong})})
        else:
            case = replace(case, expected=(replace(first, array=move(np.asarray(first.array))), *rest))
        moved.append(case)
    path.write_bytes(encode(moved))
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][RAMP] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def test_rounding_alone_passes_is_told_as_a_share_and_nothing_is_written(kit: Path) -> None:
    store_moved(kit, lambda array: array * (1 + 2e-8))
    store_version(kit, "torch", "1.2.3")
    before = contents(kit)
    done = autograder(kit, "fixtures", "verify")
    assert (done.returncode, done.stderr) == (0, "")
    first, *others = done.stdout.splitlines()
    assert first.startswith("torch was 1.2.3")
    assert others == [
        "1 of 5 files would be made otherwise now:",
        f"  {RAMP}  moved: 0.02 of what is allowed (ramp-large: ramp)",
        "That is rounding: no verdict depends on it, and grading here is as good as where they were made.",
    ]
    assert contents(kit) == before
    assert not [name for name, module in sys.modules.items() if str(kit) in (getattr(module, "__file__", "") or "")]


@pytest.mark.parametrize(
    ("move", "mistakes", "share"),
    [
        (lambda array: array * (1 + 2e-6), False, 1.98),
        (lambda array: array + np.nan, False, np.inf),
        (lambda array: array[:2], False, np.inf),
        (lambda array: array * (1 + 4e-7), True, 0.4),
        (lambda array: array * (1 + 5e-6), True, 4.95),
        (lambda array: array[:2], True, np.inf),
    ],
)
def test_share_of_what_moved_tells_rounding_from_more(kit: Path, move: Any, mistakes: bool, share: float) -> None:
    stored = read_fixtures(toy_assignment(kit)).of_item("ramp-values")[1:]
    store_moved(kit, move, mistakes=mistakes)
    moved = read_fixtures(toy_assignment(kit)).of_item("ramp-values")[1:]
    assert movement(list(moved), list(stored))[0] == pytest.approx(share, rel=0.02)


@pytest.mark.parametrize(("factor", "is_rounding"), [(1, True), (1 + 1e-15, True), (1 + 1e-13, False), (2, False)])
def test_inputs_that_moved_are_rounding_in_their_last_digits_alone(kit: Path, factor: float, is_rounding: bool) -> None:
    cases = list(read_fixtures(toy_assignment(kit)).cases)
    other = [replace(case, inputs={"x": case.inputs["x"] * factor}) for case in cases]
    assert (movement(cases, other)[0] <= ENOUGH) is is_rounding
    assert movement(cases, cases[1:]) == (np.inf, "")


# What changed between two sets


def test_a_set_does_not_differ_from_itself(kit: Path) -> None:
    toy = kit / "fixtures/toy"
    assert difference_text(toy, toy).splitlines() == [
        f"A  {toy}: the open set, 3 cases",
        f"B  {toy}: the open set, 3 cases",
        "All cases are the same.",
    ]


def test_cases_that_come_go_and_change_are_named(kit: Path, tmp_path: Path, sandbox: Sandbox) -> None:
    toy = tmp_path / "fixtures/toy"
    for name in ("fixtures", "solution"):
        shutil.copytree(kit / name, tmp_path / name)
    change(toy / "items.toml", 'public = ["shift-small"]\nhidden = []', 'public = ["shift-new"]\nhidden = []')
    change(toy / "cases.py", '        ("shift-small"', '        ("shift-new"')
    change(toy / "cases.py", '("ramp-small", "two rows"', '("ramp-small", "2 rows"')
    change(toy / "mistakes.py", '    Mistake("not-scaled"', '    Mistake("scaled-not"')
    change(toy / "cases.py", '"row column", "float64")', '"row column", "float64", rtol=1e-3)')
    regenerate(toy_assignment(tmp_path), toy, sandbox=sandbox)
    assert difference_text(kit / "fixtures/toy", toy).splitlines()[2:] == [
        "  shift-small  is gone",
        "  shift-new  is new",
        "  ramp-small  is another one",
        "  ramp-large  is another one",
    ]
