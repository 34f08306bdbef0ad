"""Whose files are whose: what holds students' grades or work is its owner's alone, what is for students is not."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from lengths import in_short
from places import KIT
from sample_reports import report
from toy_kit import autograder, toy_kit

from autograder.sandbox.interpreter import packages
from autograder.vocabulary.report import to_bytes

pytestmark = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")

AS = {"root": (), "an ordinary user": ("--reuid=65534", "--regid=65534", "--clear-groups")}
SOMEBODY_ELSE = ("--reuid=65533", "--regid=65533", "--clear-groups")
REACH = """
import subprocess, sys
import autograder.cli.main, jinja2, numpy
subprocess.run([sys.executable, "-c", "import json"], check=True)  # setpriv itself may still do more than its user
"""
UNSANDBOXED = ("--isolation", "none", "--trust-this-code")  # nobody handed in a line
NAMED = ("--assignment", "policy_gradient")
STUDENTS = ("ada", "bela")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def as_user(rights: Sequence[str]) -> list[str]:
    """How to run a program with other rights than root's; skips where nobody may change them."""
    if not rights:
        return []
    if os.geteuid() != 0:
        pytest.skip("only root may become somebody else")
    return [shutil.which("setpriv") or pytest.skip("setpriv, which changes the user, is not here"), *rights]


class Owner:
    """Somebody with a folder that others may enter, and an open umask."""

    def __init__(self, home: Path, rights: Sequence[str]) -> None:
        self.work, self._home, self._prefix = home / "work", home, as_user(rights)
        self._python = self._reachable()
        for student in STUDENTS:
            (self.work / "class" / student).mkdir(parents=True)
            (self.work / "class" / student / "policy_gradient.py").touch()
        home.chmod(0o755)
        if self._prefix:
            subprocess.run(["chown", "-R", "65534:65534", home], check=True)

    def run(self, *arguments: str | Path) -> None:
        """One command line, by a process of its own whose umask hides nothing."""
        command = [*self._prefix, self._python, "-m", "autograder", *map(str, arguments)]
        done = subprocess.run(
            command, env=self._environment(), cwd=KIT, capture_output=True, text=True, preexec_fn=lambda: os.umask(0)
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _reachable(self) -> str:
        """A Python with our packages; our own may be out of others' reach, then the system's does."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for python in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin:/bin")):
            if python is not None:
                command = [*self._prefix, python, "-c", REACH]
                if subprocess.run(command, env=self._environment(), cwd=KIT, capture_output=True).returncode == 0:
                    return python
        return pytest.skip("no Python with our packages works for an ordinary user")

    def _environment(self) -> dict[str, str]:
        paths = os.pathsep.join((str(KIT), *packages()))
        return {**os.environ, "HOME": str(self._home), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": paths}


@pytest.fixture(params=in_short(["an ordinary user", "root"]))
def owner(request: pytest.FixtureRequest) -> Iterator[Owner]:
    if request.param == "root" and os.geteuid() != 0:
        pytest.skip("these tests run as an ordinary user already")
    with tempfile.TemporaryDirectory() as home:  # below pytest's own folder, nobody else may enter
        yield Owner(Path(home), AS[request.param])


def read_by_somebody_else(folder: Path) -> list[str]:
    """The files below `folder` that a user who owns none of them can open, as the kernel says."""
    code = "import os, sys\nfor top, _, names in os.walk(sys.argv[1]):\n for name in names:\n"
    code += "  path = os.path.join(top, name)\n  try: open(path).close(); print(os.path.relpath(path, sys.argv[1]))\n"
    code += "  except OSError: pass\n"
    python = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin") or sys.executable
    command = [*as_user(SOMEBODY_ELSE), python, "-c", code, str(folder)]
    return sorted(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines())


def test_nobody_else_reads_what_the_verbs_write_of_students(owner: Owner) -> None:
    course, one = owner.work / "course", owner.work / "course" / "one"
    owner.run("grade", owner.work / "class", "--out", one, *UNSANDBOXED, *NAMED)
    assert (mode(course), mode(one)) == (0o700, 0o700)
    owner.run("gradebook", course)
    owner.run("similar", owner.work / "class", "--out", owner.work / "similar.html", *NAMED)
    owner.run("export", "csv", one, "--out", owner.work / "grades.csv")
    owner.run("bundle", "gradescope", *NAMED, "--zip", owner.work / "gradescope.zip")
    owner.run("bundle", "github", *NAMED, "--zip", owner.work / "for_students.zip")
    assert (course / "grades.csv").is_file()
    assert read_by_somebody_else(owner.work) == [
        *(f"class/{student}/policy_gradient.py" for student in STUDENTS),
        "for_students.zip",
    ]


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_existing_folder_keeps_its_mode(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    kit, out = toy_kit(tmp_path / "kit", tmp_path_factory), tmp_path / "grades"
    out.mkdir()
    out.chmod(0o750)
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "toy.py").write_text("")
    assert autograder(kit, "grade", tmp_path / "class", "--out", out).returncode == 0
    (out / "grades.csv").chmod(0o640)
    assert autograder(kit, "grade", tmp_path / "class", "--out", out, "--fresh").returncode == 0
    assert (mode(out), mode(out / "grades.csv")) == (0o750, 0o640)


@pytest.mark.usefixtures("open_umask")
def test_course_page_is_as_private_as_its_folders(tmp_path: Path) -> None:
    for name, rights in (("bandits", 0o755), ("policy_gradient", 0o750)):
        (tmp_path / name / "reports").mkdir(parents=True)
        made = replace(report("ada"), assignment=name)
        (tmp_path / name / "reports" / "ada.json").write_bytes(to_bytes(made))
        (tmp_path / name).chmod(rights)
    assert autograder(KIT, "gradebook", tmp_path).returncode == 0
    assert [mode(tmp_path / name) for name in ("index.html", "grades.csv")] == [0o640, 0o640]


@pytest.mark.usefixtures("open_umask")
def test_a_terms_own_hidden_cases_are_their_owners_alone(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    kit, out = toy_kit(tmp_path / "kit", tmp_path_factory), tmp_path / "terms" / "spring"
    (kit / "secret").write_bytes(b"a secret of this course")
    term = ("--term", "spring", "--secret-file", kit / "secret")
    assert autograder(kit, "fixtures", "regenerate", *term, "--out", out).returncode == 0
    assert (mode(out.parent), mode(out)) == (0o700, 0o700)


@pytest.mark.usefixtures("open_umask")
def test_handout_can_be_read_by_students(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    kit = toy_kit(tmp_path / "kit", tmp_path_factory)
    assert autograder(kit, "release", "--zip", tmp_path / "new" / "toy.zip").returncode == 0
    assert (mode(tmp_path / "new"), mode(tmp_path / "new" / "toy.zip")) == (0o755, 0o644)
    assert mode(kit / "handout" / "toy") == 0o755
