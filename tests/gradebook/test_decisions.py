"""The journal of decisions: rows of any number of writers; none is lost, and none replaced unseen."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sample_reports import THREE

from autograder.gradebook.decisions import JOURNAL, decisions_of
from autograder.gradebook.final_grades import final_of
from autograder.gradebook.rules import Rules
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report, SubmissionInfo

HEADER = "when,who,student,item,points,comment\n"


@pytest.fixture
def grades(tmp_path: Path) -> Path:
    (tmp_path / "grades" / "reports").mkdir(parents=True)
    return tmp_path / "grades"


def file(folder: Path, name: str, *rows: str) -> Path:
    path = folder / name
    path.write_text("\n".join(["student,item,points,comment", *rows]) + "\n", encoding="utf-8")
    return path


def keep(grades: Path, *files: Path, replace: bool = False) -> dict[tuple[str, str], tuple[float | None, str]]:
    kept = decisions_of(grades, THREE, files, replace=replace).keep()
    return {(one.student, one.item): (one.points, one.comment) for one in kept}


def journal(grades: Path) -> list[list[str]]:
    """Its rows without their times."""
    with (grades / JOURNAL).open(encoding="utf-8", newline="") as stream:
        return [row[1:] for row in csv.reader(stream)][1:]


def test_second_file_adds_to_the_first(grades: Path, tmp_path: Path) -> None:
    one, other = file(tmp_path, "a.csv", "ada,a,1,why", "bela,,3,why"), file(tmp_path, "b.csv", "cleo,a,2,why")
    keep(grades, one)
    before = (grades / JOURNAL).read_bytes()
    assert set(keep(grades, other)) == {("ada", "a"), ("bela", ""), ("cleo", "a")}
    after = (grades / JOURNAL).read_bytes()
    assert after.startswith(before)
    keep(grades, one, other)  # the same rows again
    assert (grades / JOURNAL).read_bytes() == after
    assert journal(grades)[2][0].endswith(" (b.csv)")


@pytest.mark.parametrize("row", ["ada,a,2,why", "ada,a,1,another reason", "ada,a,,", "ada,a,,a comment"])
def test_other_value_is_refused_by_row_unless_meant(grades: Path, tmp_path: Path, row: str) -> None:
    keep(grades, file(tmp_path, "a.csv", "ada,a,1,why"))
    other = file(tmp_path, "b.csv", "bela,a,1,why", row)
    before = (grades / JOURNAL).read_bytes()
    with pytest.raises(
        UsageError, match=r"b\.csv, line 3: ada, a has 1 point .*why.* by .* \(a\.csv\) on 2\d{3}-.*--replace"
    ):
        decisions_of(grades, THREE, [other]).keep()
    assert (grades / JOURNAL).read_bytes() == before
    assert ("bela", "a") in keep(grades, other, replace=True)
    assert (grades / JOURNAL).read_bytes().startswith(before)


def test_withdrawn_decision_does_not_come_back(grades: Path, tmp_path: Path) -> None:
    given = file(tmp_path, "a.csv", "ada,a,1,why")
    keep(grades, given)
    assert keep(grades, file(tmp_path, "b.csv", "ada,a,,"), replace=True) == {}
    with pytest.raises(UsageError, match="ada, a was withdrawn by "):
        keep(grades, given)


def test_files_of_one_command_may_not_contradict(grades: Path, tmp_path: Path) -> None:
    files = file(tmp_path, "a.csv", "ada,a,1,why"), file(tmp_path, "b.csv", "ada,a,2,why")
    with pytest.raises(UsageError, match=r"b\.csv, line 2: ada, a has 1 point .*why.* by .* \(a\.csv\)\. Nothing"):
        keep(grades, *files)
    assert not (grades / JOURNAL).exists()


@pytest.mark.parametrize(
    ("text", "code", "sentence"),
    [
        (f"{HEADER},,ada,a,1,w", "utf-8", ", line 2: the last line is cut short"),
        (f"{HEADER},,ada,a,3,why\n,,ada,a,1", "utf-8", ", line 3: the last line is cut short"),
        (f"{HEADER},,ada,a,1,w\n\0", "utf-8", " is no UTF-8"),
        (f"{HEADER},,ada,a,1\n", "utf-8", ", line 2: 5 cells, but the first line names 6"),
        (f"{HEADER},,ada,a,x,why\n", "utf-8", ", line 2: 'x' is no number of points"),
        ("", "utf-8", " is empty"),
        (f"{HEADER},,ada,a,1,w\n", "utf-16", ".*UTF-16"),
        (f"{HEADER},,ada,a,1,w\n", "utf-16-be", ".*UTF-16"),
    ],
)
def test_unreadable_journal_is_refused_by_line(grades: Path, text: str, code: str, sentence: str) -> None:
    data = text.encode(code)
    (grades / JOURNAL).write_bytes(data)
    for use in (lambda: decisions_of(grades, THREE).merged(), decisions_of(grades, THREE).keep):
        with pytest.raises(UsageError, match=f"decisions.csv{sentence}"):
            use()
    assert (grades / JOURNAL).read_bytes() == data


def test_last_row_counts_and_earlier_ones_may_name_anything(grades: Path) -> None:
    (grades / JOURNAL).write_text(f"{HEADER},,ada,a,1,why\n,,ada,gone,9,why\n,,ada,gone,,\n,by hand,ada,a,2,because\n")
    assert keep(grades) == {("ada", "a"): (2.0, "because")}


@pytest.mark.parametrize(
    "name", ["eve", "eve\u200b", "e\u0301ve", "a(b", "a%28b", "=x", "-1", "می\u200cخواهم", "สมชาย"]
)
def test_name_in_a_file_means_its_own_report(grades: Path, tmp_path: Path, name: str) -> None:
    keep(grades, file(tmp_path, "a.csv", f"{name},a,1,why"))
    rules = Rules(overrides=decisions_of(grades, THREE).merged()[1])
    for other in ("eve", "eve\u200b", "éve", "e\u0301ve", "a(b", "a%28b", "=x", "x", "'=x", file_stem(name), name):
        report = Report(other, "toy", SubmissionInfo("x.py", ""), "0" * 64, (), ())
        assert bool([one for one in final_of(report, rules).adjustments if one.item == "a"]) == (other == name)


def test_writers_in_several_processes_lose_no_row(grades: Path, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from test_decisions import THREE, decisions_of, file\n"
        "grades, folder, name = sys.argv[1:]\n"
        "for n in range(20): decisions_of(Path(grades), THREE,"
        " [file(Path(folder), name + '.csv', f'{name}{n},a,1,why')]).keep()\n"
    )
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    running = [subprocess.Popen([sys.executable, "-c", program, grades, tmp_path, name], env=paths) for name in "wx"]
    assert [one.wait() for one in running] == [0] * 2
    assert sorted(row[1] for row in journal(grades)) == sorted(f"{name}{n}" for name in "wx" for n in range(20))
