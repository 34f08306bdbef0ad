"""The kit as a wheel, in an environment of its own, outside any checkout, on a copied course."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from places import KIT

pytestmark = pytest.mark.long  # the wheel is built anew

CLASS = KIT / "fixtures" / "policy_gradient" / "submissions"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `autograder` of a fresh environment that has the wheel, and all else from this one."""
    place = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", place, KIT], check=True, capture_output=True)
    venv.create(place / "environment", with_pip=False)
    scheme = sysconfig.get_paths("venv", {"base": str(place / "environment")})
    packages = Path(scheme["purelib"])
    (packages / "others.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # whose own .pth files do not count
    wheel = next(place.glob("*.whl"))
    python = Path(scheme["scripts"]) / "python"
    subprocess.run([*pip, "--python", python, "install", "--no-deps", wheel], check=True, capture_output=True)
    return Path(scheme["scripts"]) / "autograder"


@pytest.fixture
def course(tmp_path: Path) -> Path:
    for name in ("fixtures", "solution"):
        shutil.copytree(KIT / name, tmp_path / "course" / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "course"


def run(script: Path, folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([script, *map(str, arguments)], cwd=folder, capture_output=True, text=True)


def test_an_installed_kit_grades_a_copied_course(installed: Path, course: Path, tmp_path: Path) -> None:
    done = run(installed, course, "grade", CLASS, "--out", tmp_path / "grades")
    assert done.returncode == 0, done.stderr
    grades = (tmp_path / "grades" / "grades.csv").read_text(encoding="utf-8")
    assert len(grades.splitlines()) == 1 + len(list(CLASS.iterdir()))
    imported = run(installed.with_name("python"), tmp_path, "-c", "import autograder; print(autograder.__file__)")
    assert (imported.returncode, str(KIT) in imported.stdout) == (0, False)


def test_an_installed_kit_releases_a_handout_that_works_alone(installed: Path, course: Path, tmp_path: Path) -> None:
    done = run(installed, course, "release", "--assignment", "policy_gradient", "--zip", tmp_path / "handout.zip")
    assert done.returncode == 0, done.stderr
    shutil.unpack_archive(tmp_path / "handout.zip", tmp_path / "student")
    checked = run(Path(sys.executable), tmp_path / "student" / "policy_gradient", "-m", "autograder", "check")
    assert checked.returncode == 1
    assert checked.stdout.startswith("TODO  compute_reward ")


def test_an_installed_kit_says_where_it_finds_no_course(installed: Path, tmp_path: Path) -> None:
    done = run(installed, tmp_path, "doctor")
    assert done.returncode == 2
    assert "There is no course here" in done.stderr
    assert "site-packages" not in done.stderr
