"""A class with its results inside it: in every layout a second run finds what the first one found."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from lengths import in_short
from places import KIT

from autograder.platforms.hand_in import Gathered
from autograder.platforms.layouts import gathered

MODULE = "policy_gradient"
PY, IPYNB = f"{MODULE}.py", f"{MODULE}.ipynb"
UNTOUCHED = KIT / "handout" / MODULE / PY  # graded in no time
METADATA = """\
submission_1:
  :submitters:
  - :name: Ana
    :sid: U1
  :created_at: 2027-03-02 09:00:00 Z
submission_2:
  :submitters:
  - :name: Ben
    :sid: U2
  :created_at: 2027-03-01 09:00:00 Z
"""
LAYOUTS: dict[str, tuple[str, ...]] = {
    "canvas": (f"ana_LATE_1_5_{PY}", f"ana_1_4_{MODULE}-1.py", f"ben_LATE_2_6_{PY}", "cleo_3_7_essay.txt"),
    "moodle": (f"Ana Diaz_1_assignsubmission_file/{PY}", f"Ben_2_assignsubmission_file/x/{PY}"),
    "moodle in one folder": (f"Ana Diaz_1_assignsubmission_file_{PY}", f"Ben_2_assignsubmission_file_{PY}"),
    "gradescope": (f"submission_1/{PY}", f"submission_2/{PY}", "submission_metadata.yml"),
    "github": (f"hw5-ana/{PY}", "hw5-ana/.git/HEAD", f"hw5-ben/{PY}", "hw5-ben/.git/HEAD"),
    "nbgrader": (f"ana/ps5/{PY}", "ana/ps5/timestamp.txt", f"ben/ps5/{PY}", "ben/ps5/timestamp.txt"),
    "folders and files": (f"ana/{PY}", "ben.py"),
}
STUDENTS = {
    "canvas": ["ana_1", "ben_2", "cleo_3"],
    "moodle": ["Ana Diaz_1", "Ben_2"],
    "moodle in one folder": ["Ana Diaz_1", "Ben_2"],
    "gradescope": ["Ana_U1", "Ben_U2"],
}
every_layout = pytest.mark.parametrize("layout", in_short(LAYOUTS, 2))


def put(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        texts = {"submission_metadata.yml": METADATA, "timestamp.txt": "2027-03-02 15:58:23 UTC"}
        text = texts.get(Path(name).name, UNTOUCHED.read_text(encoding="utf-8"))
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def earlier_results(folder: Path) -> Path:
    """What a run of `grade` leaves behind, so far as its folders tell."""
    for name in ("reports", "feedback", "details"):
        (folder / name).mkdir(parents=True)
    for name in ("run.json", "grades.csv", "reports/ana_1.json", "feedback/ana_1.html"):
        (folder / name).write_text("{}", encoding="utf-8")
    return folder


def look(*paths: Path, out: Path | None = None) -> Gathered:
    with gathered(paths, MODULE, out=out) as found:
        return found


def students(found: Gathered) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(one.student, one.shown, one.notes) for one in found.candidates]


STRANGE: dict[str, Callable[[Path], object]] = {
    "__pycache__": lambda path: path.mkdir(),
    "__MACOSX": lambda path: path.mkdir(),
    "empty": lambda path: path.mkdir(),
    "notes": lambda path: put(path, "to do.txt", "deep/er.md"),
    "roster.csv": lambda path: path.write_text("student\n"),
    "old": earlier_results,
    "runs": lambda path: (earlier_results(path / "monday"), earlier_results(path / "tuesday")),
    "feedback.zip": lambda path: zipfile.ZipFile(path, "w").close(),
}


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("nbgrader", "folders and files")])
def test_unknown_entry_spoils_no_layout(layout: str, strange: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "class", *LAYOUTS[layout])
    before = look(folder)
    assert before.ignored == ()
    assert [student for student, *_ in students(before)] == STUDENTS.get(layout, ["ana", "ben"])
    STRANGE[strange](folder / strange)
    after = look(folder)
    assert students(after) == students(before)
    assert after.ignored == (strange,)


@every_layout
def test_work_beside_a_layout_is_graded(layout: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "class", *LAYOUTS[layout])
    put(folder, f"eve/deep/{PY}", "zoe.py")
    names = {one.student for one in look(folder).candidates}
    assert {"eve", "zoe"} <= names
    assert len(names) == len(STUDENTS.get(layout, "ab")) + 2


@pytest.mark.parametrize("inner", ["", "work/"])
def test_a_student_whose_folder_looks_like_results_is_graded(tmp_path: Path, inner: str) -> None:
    earlier_results(put(tmp_path, f"ada/{PY}") / "eve")
    put(tmp_path / "eve", f"{inner}{PY}")
    found = look(tmp_path)
    assert [one.student for one in found.candidates] == ["ada", "eve"]
    assert found.ignored == ()


@every_layout
@pytest.mark.parametrize("below", ["grades", "results/monday"])
def test_folder_for_results_changes_nothing(layout: str, below: str, tmp_path: Path) -> None:
    folder = put(tmp_path / "class", *LAYOUTS[layout])
    out = folder / below
    before = students(look(folder, out=out))
    out.mkdir(parents=True)
    assert students(look(folder, out=out)) == before
    (out / "reports").mkdir()  # a run that was killed
    assert students(look(folder, out=out)) == before
    shutil.rmtree(out)
    earlier_results(out)
    assert students(look(folder, out=out)) == before


def test_results_behind_a_link_are_left_out_as_well(tmp_path: Path) -> None:
    folder = put(tmp_path / "class", *LAYOUTS["canvas"])
    before = look(folder)
    earlier_results(tmp_path / "elsewhere")
    (folder / "grades").symlink_to(tmp_path / "elsewhere")
    assert look(folder, out=folder / "grades") == before
