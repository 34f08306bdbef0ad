"""Whatever makes another grade of the same hand-in: it is shown, nothing is written, and `--replace` writes it."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import toy_kit
from graded_folder import comparable
from hand_ins import put
from in_process import autograder_in_process
from places import KIT
from toy_kit import autograder, change, toy_assignment

from autograder.grading.fixtures import read_fixtures

FIXTURES = Path("fixtures/toy")
pytestmark = pytest.mark.long  # each grades a class, most of them make fixtures anew


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, warm_pool: None) -> Path:
    """A toy course whose class is graded into `g`: ada has 10 of 10, bela 6, and cleo, who fails a hidden case, 7."""
    made = toy_kit.made_once(
        "graded-toy-kit", lambda folder: graded(folder / "kit", tmp_path_factory), tmp_path_factory
    )
    return shutil.copytree(made, tmp_path / "kit")


def graded(kit: Path, factory: pytest.TempPathFactory) -> Path:
    toy_kit.toy_kit(kit, factory)
    right = (kit / "solution/toy/toy.py").read_text(encoding="utf-8")
    cases = read_fixtures(toy_assignment(kit)).of_item("ramp-values")
    seen = next(float(case.inputs["x"][0, 0]) for case in cases if case.visibility == "hidden")
    hand_in(kit, "ada", right)
    hand_in(kit, "bela", right.replace("def shift(", "def shifted("))
    hand_in(kit, "cleo", right.replace("    return factor", f"    return x if float(x[0, 0]) == {seen!r} else factor"))
    done = grade(kit)
    assert done.returncode == 0, done.stderr
    assert grades(kit) == {"ada": "10", "bela": "6", "cleo": "7"}
    return kit


def hand_in(kit: Path, student: str, text: str) -> None:
    put(kit / "class" / student / "toy.py", text)


def grade(kit: Path, *more: str | Path) -> subprocess.CompletedProcess[str]:
    run = autograder if (kit / "autograder").exists() else autograder_in_process
    return run(kit, "grade", "class", "--out", "g", "--jobs", "1", *more)


def grades(kit: Path) -> dict[str, str]:
    rows = (kit / "g/grades.csv").read_text(encoding="utf-8").splitlines()[1:]
    return {row.split(",")[0]: row.split(",")[1] for row in rows}


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and ".staged" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def regenerate(kit: Path) -> None:
    toy_kit.regenerate_into(kit / FIXTURES, kit / FIXTURES)


def other_points(kit: Path) -> tuple[str, ...]:
    change(kit / FIXTURES / "items.toml", "points = 6", "points = 7")
    change(kit / FIXTURES / "items.toml", "points = 4", "points = 3")
    regenerate(kit)
    return ()


def another_case(kit: Path) -> tuple[str, ...]:
    change(kit / FIXTURES / "items.toml", 'public = ["shift-small"]', 'public = ["shift-small", "shift-wide"]')
    wide = '("shift-small", "two rows", (2, 3)),\n        ("shift-wide", "a wide row", (1, 9)),'
    change(kit / FIXTURES / "cases.py", '("shift-small", "two rows", (2, 3)),', wide)
    change(kit / FIXTURES / "oracle.py", "value + factor", "value + 2 * factor")
    change(kit / "solution/toy/toy.py", "torch.add(x, factor)", "torch.add(x, 2 * factor)")
    regenerate(kit)
    return ()


def another_engine(kit: Path) -> tuple[str, ...]:
    """One that says that it is the same version."""
    shutil.copytree(KIT / "autograder", kit / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    change(
        kit / "autograder/grading/grader.py",
        "= item.id, item.function, item.title, points,",
        "= item.id, item.function, item.title, points / 2,",
    )
    return ()


def another_decision(kit: Path) -> tuple[str, ...]:
    (kit / "o.csv").write_text("student,item,points,comment\nada,shift-values,1,by hand\n")
    return "--overrides", "o.csv"


def a_report_taken_away(kit: Path) -> tuple[str, ...]:
    (kit / "class/bela").rename(kit / "bela")
    (kit / "g/reports/bela.json").unlink()
    return ()


@pytest.mark.parametrize(
    ("way", "named"),
    [
        (other_points, "2 change: bela 6 → 7, cleo 7 → 6.5"),
        (another_case, "2 change: ada 10 → 6, cleo 7 → 3"),
        (another_engine, "3 change: ada 10 → 5, bela 6 → 3, cleo 7 → 3.5"),
        (another_decision, "1 changes: ada 10 → 7"),
        (a_report_taken_away, "1 changes: bela 6 → gone"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_another_grade_for_the_same_work_is_shown_first(
    kit: Path, way: Callable[[Path], tuple[str, ...]], named: str
) -> None:
    options = way(kit)
    before = contents(kit / "g")
    for silent in ((), ("--quiet",), ("--json",), ("--fresh",)):
        done = grade(kit, *options, *silent)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"g holds other grades. Of 3 grades {named}. Nothing was written: --replace writes" in done.stderr
        assert contents(kit / "g") == before
    done = grade(kit, *options, "--replace")
    assert done.returncode == 0
    assert f"autograder: Of 3 grades {named}.\n" in done.stderr
    assert re.search(r"(\d) graded in .*, \1 of them unchanged", done.stdout)  # the refused run's reports were kept
    assert not (kit / "g/.staged").exists()
    after = contents(kit / "g")
    done = grade(kit, *options)
    assert (done.returncode, "change" in done.stderr) == (0, False)
    assert {name for name, data in contents(kit / "g").items() if after[name] != data} <= {"index.html", "run.json"}


def test_new_work_is_graded_and_shown_beside_what_waits(kit: Path) -> None:
    hand_in(kit, "bela", (kit / "class/ada/toy.py").read_text())
    hand_in(kit, "dana", (kit / "class/ada/toy.py").read_text())
    done = grade(kit)
    assert (done.returncode, grades(kit)) == (0, {"ada": "10", "bela": "10", "cleo": "7", "dana": "10"})
    assert "autograder: Handed in anew: bela 6 → 10.\n" in done.stderr
    other_points(kit)
    hand_in(kit, "ada", "")
    done = grade(kit)
    assert done.returncode == 2
    assert "Handed in anew: ada 10 → 0." in done.stderr
    assert "Of 4 grades 1 changes: cleo 7 → 6.5." in done.stderr
    assert grades(kit)["ada"] == "10"


DYING = """
import os, pathlib
left, replace = int(os.environ.get("REPLACINGS", -1)), pathlib.Path.replace
def dying(self, target):
    global left
    left -= 1
    return replace(self, target) if left else os._exit(9)
pathlib.Path.replace = dying
"""


def test_run_killed_at_any_file_goes_on(kit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each file that is written, as it is about to take the place of another."""
    another_engine(kit)
    (kit / "autograder/cli/__init__.py").write_text(DYING)
    assert grade(kit).returncode == 2
    whole = shutil.copytree(kit, tmp_path / "whole")
    assert grade(whole, "--replace").returncode == 0
    for count in range(1, 100):
        out = shutil.copytree(kit, tmp_path / str(count))
        monkeypatch.setenv("REPLACINGS", str(count))
        if grade(out, "--replace").returncode == 0:
            break
        monkeypatch.delenv("REPLACINGS")
        done = grade(out, "--replace")
        assert (done.returncode, "3 of them unchanged" in done.stdout) == (0, True), done.stderr
        assert comparable(out / "g") == comparable(whole / "g")
    assert count > 10


def test_guide_for_a_wrong_test_runs_as_it_stands(kit: Path) -> None:
    """With the toy in the place of the assignment that they name, edited where the guide says so."""
    guide = (KIT / "autograder/README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^## A test was wrong: what now$.*?```sh\n(.*?)```", guide, re.MULTILINE | re.DOTALL)
    copied, *commands = [shlex.split(line, comments=True) for line in block.replace("bandits", "toy").splitlines()]
    (kit / "g").rename(kit / "grades")
    subprocess.run(copied, cwd=kit, check=True)
    change(kit / FIXTURES / "items.toml", "points = 6", "points = 7")
    change(kit / FIXTURES / "items.toml", "points = 4", "points = 3")
    printed = []
    for program, *arguments in commands:
        done = autograder(kit, *arguments)
        assert (program, done.returncode) == ("autograder", 0), done.stderr
        printed.append(done.stdout + done.stderr)
    assert "Of 3 grades 2 change: bela 6 → 7, cleo 7 → 6.5." in "".join(printed)
    rows = (kit / "final.csv").read_text(encoding="utf-8").splitlines()[1:]
    assert [row.split(",")[1] for row in rows] == ["10", "7", "6.5"]
