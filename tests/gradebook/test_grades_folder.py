"""The folder of grades: a gradebook that no spreadsheet computes, changes that are shown."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_reports import THREE, item, report, to_csv, write_grades

from autograder.gradebook.decisions import Override
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import grade_changes, refuse_another, stored_grades, write_finals
from autograder.gradebook.rules import Policy, Rules
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import Report, SubmissionInfo
from autograder.vocabulary.text import INVISIBLE, as_written, harmless, reads_as_formula

# The gradebook

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def rows(names: list[str]) -> list[list[str]]:
    """The rows of a gradebook of students of these names, as a program that reads the file sees them."""
    text = to_csv([report(name) for name in names], ["deltas-max"])
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_gradebook_is_what_the_design_says_to_the_byte() -> None:
    reports = [
        report("grace", item("a", 2.5, 6.0, "failed"), item("b", 0.0, 4.0, "missing")),
        report("ada", item("a", None, 6.0, "not_graded"), item("b", 3.0, 4.0, "failed")),
        report("bela", item("a", 6.0, 6.0)),
    ]
    assert to_csv(reports, ["a", "b"]) == (
        "student,points,max_points,status,a,b\nada,,10,not_graded,,3\nbela,6,6,graded,6,\ngrace,2.5,10,graded,2.5,0\n"
    )
    assert to_csv([], ["a"]) == "student,points,max_points,status,a\n"
    with pytest.raises(GraderFault, match=r"holds the item b, which the assignment lacks.*--fresh"):
        to_csv(reports, ["a"])


FORMULAS = ('=HYPERLINK("http://x","x")', "+1", "-1", "@SUM(A1)", "  =1+1", "\u00a0=1+1")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *((name, name) for name in ("Lovelace, Ada", 'Ada "the" Countess', "Ada\nLovelace", "O'Brien", "محمد", "a;b")),
        *((name, f"'{name}") for name in (*FORMULAS, "＝1+1", "＋1", "－1", "＠SUM(A1)", "﹣1", "−1")),
        *(("\t=1+1", "\\t'=1+1"), ("\n=1+1", "\n'=1+1"), ("\rada", "\\rada"), ("\ufeff=1+1", "'\\ufeff=1+1")),
        *(("\0ada", "\\x00ada"), ("ada\x1b[2J", "ada\\x1b[2J"), ("\u202eada", "\\u202eada"), ("a\udcff", "a\\udcff")),
    ],
)
def test_name_is_a_cell_of_text(name: str, cell: str) -> None:
    assert rows([name])[1:] == [[cell, "4", "4", "graded", "4"]]


@pytest.mark.parametrize("separator", [",", ";", "\t", "\n"])
@pytest.mark.parametrize("name", ["x;=cmd|' C'!A0;", "x; ＝1", "x,@A1", "a\n+1", "a;'=1", ";;=1;"])
def test_no_other_separator_makes_a_formula_of_a_name(name: str, separator: str) -> None:
    text = to_csv([report(name)], ["deltas-max"])
    cells = [cell.lstrip('"') for line in text.split("\n") for cell in line.split(separator)]
    assert not [cell for cell in cells if unicodedata.normalize("NFKC", cell.strip())[:1] in {*"=+-@"} - {""}]
    assert as_written(rows([name])[1][0]) == name


@given(
    st.lists(
        ANY_TEXT | st.text(st.sampled_from("a'=-;,\t\r\n \u200b＝")) | ANY_TEXT.map(" \ufeff＝".__add__), max_size=6
    )
)
def test_any_class_makes_one_harmless_row_per_student(names: list[str]) -> None:
    assert [as_written(harmless(name)) for name in names] == names
    table = rows(names)
    assert len(table) == len(names) + 1
    for cell, *_ in table[1:]:
        assert not reads_as_formula(cell)
        assert {letter for letter in cell if unicodedata.category(letter) in INVISIBLE} <= {"\n"}
        cell.encode()


# No grade changes in silence


def of(student: str, points: float | None, sha256: str = "00", **more: Any) -> Report:
    lost = item("a", points, 10.0, "not_graded" if points is None else "failed")
    return replace(report(student, lost), submission=SubmissionInfo("x.py", sha256), **more)


def put(out: Path, *reports: Report, final: Final | None = None) -> Path:
    write_grades(out, *reports)
    (out / "grades.csv").write_text(to_csv(reports, ["a"], final and {"ada": final}))
    return out


def decided(points: float) -> Rules:
    return Rules(overrides=[Override("ada", "", points, "why", "line 2")])


EXCUSED = Rules(Policy.model_validate({"excused": {"students": ["ada"]}}))
ADA = of("ada", 8.0)
KNOWN = replace(ADA, identity="canvas:1")
ANEW = of("ada", 9.0, "11", identity="canvas:1")
RULED = Final(6.5, (), 10.0)


@pytest.mark.parametrize(
    ("before", "final", "after", "rules", "anew", "others"),
    [
        ([ADA], None, [ADA], None, [], []),
        *(
            ([of(name, 8.0)], None, [of(name, now)], None, [], [f"{name} 8 → {text}"])
            for name in ("ada", "=cleo", "Nguyễn Văn An")
            for now, text in ((7.5, "7.5"), (None, "not graded"))
        ),
        ([of("ada", None)], None, [ADA], None, [], []),  # the grader failed: nothing was there to lose
        ([ADA, of("bela", 5.0)], None, [ADA, of("cleo", 1.0)], None, [], ["bela 5 → gone"]),
        # New work may change its own grade, but not lose it; it excuses no change of rules or account.
        ([ADA], None, [of("ada", 9.0, "11")], None, ["ada 8 → 9"], []),
        ([ADA], None, [of("ada", None, "11")], None, [], ["ada 8 → not graded"]),
        ([KNOWN], None, [ANEW], None, ["ada 8 → 9"], []),
        ([KNOWN], None, [ANEW], decided(5.0), [], ["ada 8 → 5"]),
        ([KNOWN], None, [replace(ANEW, identity="canvas:2")], None, [], ["ada 8 → 9"]),
        # Rules alone.
        ([ADA], None, [ADA], Rules(), [], []),
        ([ADA], None, [ADA], decided(6.5), [], ["ada 8 → 6.5"]),
        ([ADA], None, [ADA], EXCUSED, [], ["ada 8 → none"]),
        ([ADA], RULED, [ADA], decided(6.5), [], []),
        ([ADA], RULED, [ADA], None, [], ["ada 6.5 → 8"]),
        ([ADA], RULED, [of("ada", 9.0)], decided(6.5), [], ["ada points 8 → 9"]),
        ([ADA], Final(8.0, (), 12.0), [ADA], None, [], ["ada 8 of 12 → 8 of 10"]),
    ],
)
def test_grade_that_changes_is_named(
    tmp_path: Path,
    before: list[Report],
    final: Final | None,
    after: list[Report],
    rules: Rules | None,
    anew: list[str],
    others: list[str],
) -> None:
    assert grade_changes(put(tmp_path, *before, final=final), after, rules, rules) == (anew, others)


@pytest.mark.parametrize(
    ("edit", "keep_report", "stored"),
    [
        (lambda text: text.replace("8", "9"), True, "9.25"),  # somebody decided this by hand
        (lambda text: "\ufeff" + text.replace(",", ";").replace("8.25", "8,250"), True, "8.25"),
        (lambda text: "\udcff", True, "8.25"),
        (lambda text: text, False, "8.25"),
        (lambda text: "\udcff", False, None),
    ],
    ids=["by hand", "spreadsheet", "damaged gradebook", "no report", "neither"],
)
def test_stored_grade_is_read_from_gradebook_or_report(
    tmp_path: Path, edit: Callable[[str], str], keep_report: bool, stored: str | None
) -> None:
    out = put(tmp_path, of("ada", 8.25))
    (out / "grades.csv").write_bytes(edit((out / "grades.csv").read_text()).encode(errors="surrogateescape"))
    if not keep_report:
        (out / "reports" / "ada.json").write_text("{")
    for now in (8.25, 7.0):
        expected = [] if stored in (None, f"{now:g}") else [f"ada {stored} → {now:g}"]
        assert grade_changes(out, [of("ada", now)], None, None) == ([], expected)


def test_damaged_gradebook_hides_no_final_grade(tmp_path: Path) -> None:
    out = put(tmp_path, ADA)
    write_finals(out, [ADA], replace(THREE, items=THREE.items[:1]), decided(6.5))
    (out / "grades.csv").write_text("")
    assert grade_changes(out, [ADA], None, None) == ([], ["ada 6.5 → 8"])
    (out / "grades.csv").unlink()  # nothing says that a run has ended here
    assert stored_grades(tmp_path) == {}
    assert grade_changes(out, [ADA], None, None) == ([], [])


def test_folder_belongs_to_one_assignment(tmp_path: Path) -> None:
    refuse_another(tmp_path / "none", "toy")
    out = put(tmp_path / "out", of("ada", 8.0, assignment="toy"))
    refuse_another(out, "toy")
    with pytest.raises(UsageError, match=r"holds grades of 'toy', not of 'bandits': .* Give another --out\."):
        refuse_another(out, "bandits")
