"""The folder of grades: a gradebook that no spreadsheet computes, changes that are shown."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_reports import THREE, item, report, to_csv

from autograder.gradebook.decisions import Override
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import (
    grade_changes,
    refuse_another,
    stored_grades,
    write_finals,
)
from autograder.gradebook.rules import Policy, Rules
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report, SubmissionInfo, to_bytes
from autograder.vocabulary.text import INVISIBLE, as_written, harmless, reads_as_formula

# The gradebook

ANY_TEXT = st.text(st.characters(exclude_categories=()))


def rows(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def cell_of(student: str) -> str:
    """The student's cell, as a program that reads the file sees it."""
    header, *body = rows(to_csv([report(student)], ["deltas-max"]))
    assert header == ["student", "points", "max_points", "status", "deltas-max"]
    assert [row[1:] for row in body] == [["4", "4", "graded", "4"]]
    return body[0][0]


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


def test_item_that_no_column_shows_is_refused() -> None:
    with pytest.raises(GraderFault, match=r"holds the item b, which the assignment lacks.*--fresh"):
        to_csv([report("ada", item("a"), item("b"))], ["a"])


FORMULAS = ('=HYPERLINK("http://x","x")', "+1", "-1", "@SUM(A1)", "  =1+1", "\u00a0=1+1")


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        *((name, name) for name in ("Lovelace, Ada", 'Ada "the" Countess', "Ada\nLovelace", "O'Brien", "محمد", "a;b")),
        *((name, f"'{name}") for name in (*FORMULAS, "＝1+1", "＋1", "－1", "＠SUM(A1)", "﹣1", "−1")),
        ("\t=1+1", "\\t'=1+1"),
        ("\n=1+1", "\n'=1+1"),
        ("\rada", "\\rada"),
        ("\ufeff=1+1", "'\\ufeff=1+1"),
        ("\0ada", "\\x00ada"),
        ("ada\x1b[2J", "ada\\x1b[2J"),
        ("\u202eada", "\\u202eada"),
        ("ada\udcff", "ada\\udcff"),
    ],
)
def test_name_is_a_cell_of_text(name: str, cell: str) -> None:
    assert cell_of(name) == cell


@pytest.mark.parametrize("separator", [",", ";", "\t", "\n"])
@pytest.mark.parametrize("name", ["x;=cmd|' C'!A0;", "x; ＝1", "x,@A1", "a\n+1", "a;'=1", ";;=1;"])
def test_no_other_separator_makes_a_formula_of_a_name(name: str, separator: str) -> None:
    text = to_csv([report(name)], ["deltas-max"])
    cells = [cell.lstrip('"') for line in text.split("\n") for cell in line.split(separator)]
    assert not [cell for cell in cells if unicodedata.normalize("NFKC", cell.strip())[:1] in {*"=+-@"} - {""}]
    assert as_written(rows(text)[1][0]) == name


@given(st.text(st.sampled_from("a'=-;,\t\r\n \u200b＝")) | ANY_TEXT)
def test_every_text_comes_back_as_it_was_written(text: str) -> None:
    assert as_written(harmless(text)) == text
    assert not reads_as_formula(harmless(text))


@given(st.lists(ANY_TEXT | ANY_TEXT.map("=".__add__) | ANY_TEXT.map(" \ufeff＝".__add__), max_size=8))
def test_any_class_makes_one_harmless_row_per_student(names: list[str]) -> None:
    table = rows(to_csv([report(name) for name in names], ["deltas-max"]))
    assert len(table) == len(names) + 1
    for cell, *_ in table[1:]:
        seen = unicodedata.normalize("NFKC", cell.lstrip(" \t\r\n\u00a0\ufeff\u200b\u3000"))
        assert not seen.startswith(tuple("=+-@\t\r"))
        assert {letter for letter in cell if unicodedata.category(letter) in INVISIBLE} <= {"\n"}
        cell.encode()


# No grade changes in silence


def of(student: str, points: float | None, sha256: str = "00") -> Report:
    lost = item("a", points, 10.0, "not_graded" if points is None else "failed")
    return replace(report(student, lost), submission=SubmissionInfo("x.py", sha256))


def put(out: Path, reports: list[Report], finals: dict[str, Final] | None = None) -> Path:
    (out / "reports").mkdir(parents=True, exist_ok=True)
    for one in reports:
        (out / "reports" / f"{file_stem(one.student)}.json").write_bytes(to_bytes(one))
    (out / "grades.csv").write_text(to_csv(reports, ["a"], finals))
    return out


def changed(out: Path, after: list[Report], rules: Rules | None = None) -> list[tuple[str, bool]]:
    anew, others = grade_changes(out, after, rules, rules)
    return [*((text, True) for text in anew), *((text, False) for text in others)]


def decided(points: float) -> Rules:
    return Rules(overrides=[Override("ada", "", points, "why", "line 2")])


@pytest.mark.parametrize("name", ["ada", "=cleo", "Nguyễn Văn An"])
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (8.0, 8.0, None),
        (8.0, 7.5, "8 → 7.5"),
        (8.0, None, "8 → not graded"),
        (None, 8.0, None),  # the grader failed: nothing was there to lose
    ],
)
def test_grade_that_changes_is_named(
    tmp_path: Path, name: str, before: float | None, after: float | None, text: str | None
) -> None:
    found = changed(put(tmp_path, [of(name, before)]), [of(name, after)])
    assert found == ([] if text is None else [(f"{name} {text}", False)])


def test_student_who_is_gone_is_named_and_a_new_one_is_not(tmp_path: Path) -> None:
    out = put(tmp_path, [of("ada", 8.0), of("bela", 5.0)])
    assert changed(out, [of("ada", 8.0), of("cleo", 1.0)]) == [("bela 5 → gone", False)]


def test_new_bytes_may_change_their_grade_but_not_lose_it(tmp_path: Path) -> None:
    out = put(tmp_path, [of("ada", 8.0), of("bela", 5.0)])
    anew = [of("ada", 9.0, "11"), of("bela", None, "11")]
    assert changed(out, anew) == [("ada 8 → 9", True), ("bela 5 → not graded", False)]


def test_new_bytes_excuse_no_change_of_rules_or_account(tmp_path: Path) -> None:
    out = put(tmp_path, [replace(of("ada", 8.0), identity="canvas:1")])
    anew = replace(of("ada", 9.0, "11"), identity="canvas:1")
    assert changed(out, [anew]) == [("ada 8 → 9", True)]
    assert changed(out, [anew], decided(5.0)) == [("ada 8 → 5", False)]
    assert changed(out, [replace(anew, identity="canvas:2")]) == [("ada 8 → 9", False)]


def test_final_grade_changes_with_the_rules_alone(tmp_path: Path) -> None:
    plain = put(tmp_path / "plain", [of("ada", 8.0)])
    assert changed(plain, [of("ada", 8.0)], Rules()) == []
    assert changed(plain, [of("ada", 8.0)], decided(6.5)) == [("ada 8 → 6.5", False)]
    excuse = Rules(Policy.model_validate({"excused": {"students": ["ada"]}}))
    assert changed(plain, [of("ada", 8.0)], excuse) == [("ada 8 → none", False)]
    ruled = put(tmp_path / "ruled", [of("ada", 8.0)], {"ada": Final(6.5, (), 10.0)})
    assert changed(ruled, [of("ada", 8.0)], decided(6.5)) == []
    assert changed(ruled, [of("ada", 8.0)]) == [("ada 6.5 → 8", False)]
    assert changed(ruled, [of("ada", 9.0)], decided(6.5)) == [("ada points 8 → 9", False)]
    wider = put(tmp_path / "wider", [of("ada", 8.0)], {"ada": Final(8.0, (), 12.0)})
    assert changed(wider, [of("ada", 8.0)]) == [("ada 8 of 12 → 8 of 10", False)]


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
    out = put(tmp_path, [of("ada", 8.25)])
    (out / "grades.csv").write_bytes(edit((out / "grades.csv").read_text()).encode(errors="surrogateescape"))
    if not keep_report:
        (out / "reports" / "ada.json").write_text("{")
    for now in (8.25, 7.0):
        expected = [] if stored in (None, f"{now:g}") else [(f"ada {stored} → {now:g}", False)]
        assert changed(out, [of("ada", now)]) == expected


def test_final_grade_in_a_report_is_no_secret_where_the_gradebook_is_damaged(tmp_path: Path) -> None:
    out = put(tmp_path, [of("ada", 8.0)])
    write_finals(out, [of("ada", 8.0)], replace(THREE, items=THREE.items[:1]), decided(6.5))
    (out / "grades.csv").write_text("")
    assert changed(out, [of("ada", 8.0)]) == [("ada 6.5 → 8", False)]


def test_unfinished_folder_holds_no_grades(tmp_path: Path) -> None:
    (put(tmp_path, [of("ada", 8.0)]) / "grades.csv").unlink()
    assert stored_grades(tmp_path) == {}
    assert changed(tmp_path, [of("ada", 1.0)]) == []


def test_folder_belongs_to_one_assignment(tmp_path: Path) -> None:
    refuse_another(tmp_path / "none", "toy")
    out = put(tmp_path / "out", [replace(of("ada", 8.0), assignment="toy")])
    refuse_another(out, "toy")
    with pytest.raises(UsageError, match=r"holds grades of 'toy', not of 'bandits': .* Give another --out\."):
        refuse_another(out, "bandits")
