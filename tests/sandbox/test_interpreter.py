"""What a worker may read, by name, and what is never within its reach."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import sys
import textwrap
from pathlib import Path

import pytest
import safetensors.numpy
import torch
import typing_extensions
from places import KIT

from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.sandbox import interpreter
from autograder.sandbox.calls import Program, Request, without_places
from autograder.sandbox.interpreter import (
    packages,
    readable_paths,
    refuse_if_within_reach,
    withhold,
)
from autograder.sandbox.sandbox import Sandbox, probe
from autograder.vocabulary.errors import SandboxError
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
        outcome = running.run(Program("homework", source, {}, PROBES), [REQUEST], load_timeout=60.0)[0]
    assert outcome.raised is not None, outcome
    return outcome.raised.message


@linux
def test_what_is_readable_is_named_one_by_one_and_no_folder_of_packages_is() -> None:
    paths = {Path(path) for path in readable_paths(packages())}
    prefixes = (sys.prefix, sys.base_prefix, f"{sys.base_prefix}/lib", "/usr", "/usr/local", "/usr/local/lib", "/")
    for folder in {*sys.path, *packages(), *prefixes} - {"/usr/lib"}:  # which is the system's
        if Path(folder).is_dir() and not Path(folder).name.endswith("-dynload"):
            assert Path(folder).resolve() not in paths, folder
    for needed in ("torch", "numpy", "einops", "safetensors"):
        found = importlib.metadata.distribution(needed).locate_file(needed)
        assert Path(os.path.realpath(str(found))) in paths


@linux
def test_the_kit_itself_is_not_readable() -> None:
    assert not [path for path in readable_paths(packages()) if Path(path).name == "autograder"]


@has_strict
def test_a_course_beside_the_packages_is_not_read(beside_packages: Path) -> None:
    hidden = beside_packages / "course-of-2026" / "fixtures" / "policy_gradient" / "hidden" / "one.safetensors"
    assert hidden.exists()
    said = said_by(f"def work():\n    import course_library\n    open({str(hidden)!r})")
    assert "Permission denied" in said or "No such file" in said


@pytest.mark.long
@has_strict
def test_what_is_installed_is_imported_late_and_a_name_that_is_not_there_is_missing() -> None:
    late = "import sqlite3, unicodedata, wave, torch.distributions, importlib; importlib.invalidate_caches()"
    assert said_by(f"def work():\n    {late}\n    import no_such_thing") == "No module named 'no_such_thing'"


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
def test_wherever_hidden_cases_lie_inside_what_is_readable_no_worker_starts(place: str) -> None:
    path = WITHIN[place]()
    if MACHINE in path.parts and not Path("/usr/lib", MACHINE).is_dir():
        pytest.skip("this system has no folder for each kind of machine")
    withhold(path)
    with pytest.raises(SandboxError, match="holds what no submission may read"):
        refuse_if_within_reach(readable_paths(packages()))


@linux
def test_a_link_to_hidden_cases_inside_what_is_readable_leads_nowhere(beside_packages: Path, tmp_path: Path) -> None:
    """Links are followed to where things lie, by Landlock too: the link is no way in."""
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "secret.txt").write_text("expected")
    link = beside_packages / "course_library" / "linked"
    link.symlink_to(tmp_path / "fixtures")
    if any(probe()[layer] for layer in STRICT):
        pytest.skip(f"this machine cannot: {probe()}")
    withhold(tmp_path / "fixtures")
    said = said_by(f"def work():\n    open({str(link / 'secret.txt')!r})")
    assert "Permission denied" in said or "No such file" in said


def test_the_fixtures_that_are_read_with_hidden_cases_are_withheld(beside_packages: Path) -> None:
    assignment = find_assignment(KIT, "policy_gradient")
    read_fixtures(assignment, hidden=False)
    assert interpreter._withheld == set()
    read_fixtures(assignment)
    assert {path.name for path in interpreter._withheld} == {"policy_gradient", "solution"}


# What nobody is told


@pytest.mark.long
@linux
@pytest.mark.parametrize("isolation", ["best", "none"])
def test_a_worker_knows_its_kit_by_names_that_lie_nowhere(isolation: str) -> None:
    source = """
        import sys, traceback
        def work():
            kit = [module for name, module in sys.modules.items() if name.startswith("autograder")]
            told = [sys.orig_argv, sys.argv, traceback.format_stack(), __file__, vars(sys.modules["__main__"]).keys()]
            told += [(module.__file__, module.__cached__, module.__spec__, module.__loader__) for module in kit]
            raise RuntimeError(f"{len(kit)} {told}"[-1800:].encode().hex()[:2000])
        """
    said = bytes.fromhex(said_by(textwrap.dedent(source), isolation)).decode()
    for place in {str(KIT), str(Path.home()), sys.prefix, sys.base_prefix} - {"/"}:
        assert place not in said
    assert "autograder/sandbox/inside" in said


@linux
def test_the_text_of_an_exception_names_no_folder_of_this_machine() -> None:
    said = said_by(
        "import sys, torch\ndef work():\n    raise RuntimeError(f'{torch.__file__} {sys.prefix} {sys.path}')"
    )
    assert said.startswith("site-packages/torch/__init__.py ")
    everywhere = {"/", "/usr"}  # which tell nothing of a machine
    for place in {str(KIT), str(Path.home()), sys.prefix, sys.base_prefix, *packages()} - everywhere:
        assert place not in said
    assert without_places("no module named 'torch.python'") == "no module named 'torch.python'"
