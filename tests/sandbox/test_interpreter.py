"""What a worker may read, by name, and what is never within its reach."""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import safetensors.numpy
import torch
import typing_extensions
from places import KIT
from processes import PATIENCE, wait_for

from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.sandbox import interpreter
from autograder.sandbox.calls import Program, Request
from autograder.sandbox.interpreter import (
    packages,
    readable_paths,
    refuse_if_within_reach,
    run_in_subprocess,
    withhold,
)
from autograder.sandbox.sandbox import Sandbox, probe
from autograder.vocabulary.errors import FixtureError, SandboxError, UsageError
from autograder.vocabulary.text import STRICT

PROBES = "def call(student, inputs, params):\n    return {'y': student.work()}, {}\n"
REQUEST = Request("item", "work", "call", {}, safetensors.numpy.save({}), 60.0)
MACHINE = f"{platform.machine()}-linux-gnu"
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has layers")
has_strict = pytest.mark.skipif(any(probe()[layer] for layer in STRICT), reason=f"this machine cannot: {probe()}")


@pytest.fixture(autouse=True)
def nothing_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_withheld", set())


@pytest.fixture
def beside_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages with a course in it."""
    folder = tmp_path / "site-packages"
    for file in ("course_library/__init__.py", "course-of-2026/fixtures/policy_gradient/hidden/one.safetensors"):
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text("NUMBER = 3.0")
    (folder / "course_library" / "fixtures" / "hidden").mkdir(parents=True)
    monkeypatch.syspath_prepend(folder)
    return folder


def said_by(source: str, isolation: str = "strict") -> str:
    with Sandbox(isolation=isolation) as running:  # type: ignore[arg-type]
        outcome = running.run(
            Program("homework", textwrap.dedent(source), {}, PROBES, torch=False), [REQUEST], load_timeout=60.0
        )[0]
    assert outcome.raised is not None, outcome
    return outcome.raised.message


@linux
def test_readable_paths_name_packages_one_by_one() -> None:
    paths = {Path(path) for path in readable_paths(packages())}
    prefixes = (sys.prefix, sys.base_prefix, f"{sys.base_prefix}/lib", "/usr", "/usr/local", "/usr/local/lib", "/")
    for folder in {*sys.path, *packages(), *prefixes} - {"/usr/lib"}:  # which is the system's
        if Path(folder).is_dir() and not Path(folder).name.endswith("-dynload"):
            assert Path(folder).resolve() not in paths, folder
    for needed in ("torch", "numpy", "einops", "safetensors"):
        found = importlib.metadata.distribution(needed).locate_file(needed)
        assert Path(os.path.realpath(str(found))) in paths


@has_strict
def test_course_beside_the_packages_is_not_read(beside_packages: Path, tmp_path: Path) -> None:
    """Nor by a link: Landlock follows it to where things lie."""
    hidden = beside_packages / "course-of-2026" / "fixtures" / "policy_gradient" / "hidden" / "one.safetensors"
    linked = beside_packages / "course_library" / "linked"
    linked.symlink_to(hidden.parent)
    withhold(hidden.parent)
    paths = [str(hidden), str(linked / hidden.name)]
    said = said_by(f"""
        def work():
            import course_library
            found = []
            for path in {paths!r}:
                try: found.append(open(path))
                except OSError as error: found.append(error.strerror)
            raise RuntimeError(found)
    """)
    assert set(eval(said)) <= {"Permission denied", "No such file or directory"}


@has_strict
@pytest.mark.parametrize("isolation", ["strict", "best"])
def test_hidden_fixtures_inside_what_is_readable_are_refused(isolation: str, beside_packages: Path) -> None:
    withhold(beside_packages / "course_library" / "fixtures")
    with pytest.raises(SandboxError, match=r"lies inside \S+course_library, which every submission may"):
        said_by("", isolation)


WITHIN = {  # where a course's hidden cases might lie, so that every submission could read them
    "in an installed package": lambda: Path(torch.__file__).parent / "course" / "fixtures" / "hidden",
    "an installed module itself": lambda: Path(typing_extensions.__file__),
    "beside Python's own modules, in one": lambda: Path(json.__file__).parent / "fixtures",
    "Python's own module itself": lambda: Path(textwrap.__file__),
    "among the system's libraries": lambda: Path("/usr/lib") / MACHINE / "course" / "fixtures",
    "by another name of that": lambda: Path("/lib") / MACHINE / "course" / "fixtures",
    "among the zones of time": lambda: Path("/usr/share/zoneinfo/fixtures"),
}


@linux
@pytest.mark.parametrize("place", WITHIN)
def test_hidden_cases_within_reach_start_no_worker(place: str) -> None:
    path = WITHIN[place]()
    if MACHINE in path.parts and not Path("/usr/lib", MACHINE).is_dir():
        pytest.skip("this system has no folder for each kind of machine")
    withhold(path)
    with pytest.raises(SandboxError, match="holds what no submission may read"):
        refuse_if_within_reach(readable_paths(packages()))


def test_fixtures_that_are_read_with_hidden_cases_are_withheld(beside_packages: Path) -> None:
    assignment = find_assignment(KIT, "bandits")
    read_fixtures(assignment, hidden=False)
    assert interpreter._withheld == set()
    read_fixtures(assignment)
    assert {path.name for path in interpreter._withheld} == {"bandits", "solution"}


# Code of the course's own, in a subprocess

SLOW = "import pathlib, time; pathlib.Path('started').touch(); time.sleep(600)"
INTERRUPTED = """\
import runpy, sys
from autograder.sandbox.interpreter import run_in_subprocess

if __name__ == "__main__":
    try:
        run_in_subprocess(runpy.run_path, "slow.py")
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_result_or_exception_comes_back_from_another_process() -> None:
    assert run_in_subprocess(int, "ff", base=16) == 255
    with pytest.raises(UsageError, match="There is no assignment 'nix'") as caught:
        run_in_subprocess(find_assignment, KIT, "nix")
    assert type(caught.value) is UsageError
    assert "in find_assignment" in str(caught.value.__cause__)


def test_subprocess_that_ends_early_is_named() -> None:
    with pytest.raises(FixtureError, match=r"The process that ran _exit ended before it was done\."):
        run_in_subprocess(os._exit, 3)


def test_ctrl_c_ends_both_processes_at_once_and_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(INTERRUPTED)
    (tmp_path / "slow.py").write_text(SLOW)
    running = subprocess.Popen(
        [sys.executable, "run.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        wait_for((tmp_path / "started").exists)
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
        assert (running.returncode, out, err) == (130, b"", b"")
        wait_for(lambda: members(running.pid) == [])
    finally:
        for process in members(running.pid):
            os.kill(process, signal.SIGKILL)


def members(group: int) -> list[int]:
    """The processes of a process group that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of, *_ = path.read_text().rpartition(")")[2].split()
            found += [int(path.parent.name)] if int(of) == group and state != "Z" else []
    return found
