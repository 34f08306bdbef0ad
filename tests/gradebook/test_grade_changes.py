"""The one rule: nobody's grade in a folder changes without being shown first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sample_reports import item, report

from autograder.gradebook.decisions import Override
from autograder.gradebook.final_grades import Final
from autograder.gradebook.grades_folder import final_columns, grade_changes, refuse_another, stored_grades, to_csv
from autograder.gradebook.rules import Policy, Rules
from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import file_stem
from autograder.vocabulary.report import Report, SubmissionInfo, to_bytes

FINALS = {"ada": Final(6.5, (), 10.0)}
NAMES = ("ada", "bela", "=cleo", "Nguyễn Văn An")


def of(student: str, points: float | None, sha256: str = "00") -> Report:
    verdict = "not_graded" if points is None else "failed"
    return replace(report(student, item("a", points, 10.0, verdict)), submission=SubmissionInfo("x.py", sha256))


def put(out: Path, reports: list[Report], finals: dict[str, Final] | None = None) -> Path:
    (out / "reports").mkdir(parents=True, exist_ok=True)
    for one in reports:
        (out / "reports" / f"{file_stem(one.student)}.json").write_bytes(to_bytes(one))
    (out / "grades.csv").write_text(to_csv(reports, ["a"], final_columns(finals) if finals else None))
    return out


def changed(out: Path, after: list[Report], rules: Rules | None = None) -> list[tuple[str, bool]]:
    return [(change.text, change.asked) for change in grade_changes(out, after, rules, rules)]


def decided(points: float) -> Rules:
    return Rules(overrides=[Override("ada", "", points, "why", "line 2")])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (of("", 8.0), of("", 8.0), None),
        (of("", 8.0), of("", 7.5), "8 → 7.5"),
        (of("", 8.0), of("", None), "8 → not graded"),
        (of("", None), of("", 8.0), None),  # the grader failed: nothing was there to lose
    ],
)
def test_a_grade_that_changes_is_named(
    tmp_path: Path, name: str, before: Report, after: Report, text: str | None
) -> None:
    out = put(tmp_path, [replace(before, student=name)])
    found = changed(out, [replace(after, student=name)])
    assert found == ([] if text is None else [(f"{name} {text}", False)])


def test_who_is_new_changes_nothing_and_who_is_gone_is_named(tmp_path: Path) -> None:
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


def test_a_final_grade_changes_with_the_rules_alone(tmp_path: Path) -> None:
    cut, none = decided(6.5), Rules(Policy.model_validate({"excused": {"students": ["ada"]}}))
    plain, ruled = put(tmp_path / "plain", [of("ada", 8.0)]), put(tmp_path / "ruled", [of("ada", 8.0)], FINALS)
    assert changed(plain, [of("ada", 8.0)], Rules()) == []
    assert changed(plain, [of("ada", 8.0)], cut) == [("ada 8 → 6.5", False)]
    assert changed(plain, [of("ada", 8.0)], none) == [("ada 8 → none", False)]
    assert changed(ruled, [of("ada", 8.0)], cut) == []
    assert changed(ruled, [of("ada", 8.0)]) == [("ada 6.5 → 8", False)]
    assert changed(ruled, [of("ada", 9.0)], cut) == [("ada points 8 → 9", False)]


def test_a_grade_is_another_one_out_of_another_maximum(tmp_path: Path) -> None:
    out = put(tmp_path, [of("ada", 8.0)], {"ada": Final(8.0, (), 12.0)})
    assert changed(out, [of("ada", 8.0)]) == [("ada 8 of 12 → 8 of 10", False)]


def edited(out: Path) -> None:
    (out / "grades.csv").write_text((out / "grades.csv").read_text().replace("8", "9"))


def saved_by_a_spreadsheet(out: Path) -> None:
    text = (out / "grades.csv").read_text().replace(",", ";").replace("\n8.25", "\n8,25")
    (out / "grades.csv").write_bytes(b"\xef\xbb\xbf" + text.replace("8.25", "8,250").encode())


def damaged(out: Path) -> None:
    (out / "grades.csv").write_bytes(b"\xff")
    (out / "reports" / "ada.json").write_text("{")


@pytest.mark.parametrize(
    ("spoil", "same", "other"),
    [
        (edited, [("ada 9.25 → 8.25", False)], [("ada 9.25 → 7", False)]),  # somebody decided this by hand
        (saved_by_a_spreadsheet, [], [("ada 8.25 → 7", False)]),
        (lambda out: (out / "grades.csv").write_bytes(b"\xff"), [], [("ada 8.25 → 7", False)]),
        (lambda out: (out / "reports" / "ada.json").unlink(), [], [("ada 8.25 → 7", False)]),
        (damaged, [], []),
    ],
)
def test_what_is_there_is_read_from_gradebook_or_report(
    tmp_path: Path, spoil: Callable[[Path], None], same: list[tuple[str, bool]], other: list[tuple[str, bool]]
) -> None:
    out = put(tmp_path, [of("ada", 8.25)])
    spoil(out)
    assert changed(out, [of("ada", 8.25)]) == same
    assert changed(out, [of("ada", 7.0)]) == other


def test_nothing_is_held_by_a_folder_in_which_no_run_has_ended(tmp_path: Path) -> None:
    (put(tmp_path, [of("ada", 8.0)]) / "grades.csv").unlink()
    assert stored_grades(tmp_path) == {}
    assert changed(tmp_path, [of("ada", 1.0)]) == []


def test_a_folder_belongs_to_one_assignment(tmp_path: Path) -> None:
    refuse_another(tmp_path / "none", "toy")
    out = put(tmp_path / "out", [replace(of("ada", 8.0), assignment="toy")])
    refuse_another(out, "toy")
    with pytest.raises(UsageError, match=r"holds grades of 'toy', not of 'bandits': .* Give another --out\."):
        refuse_another(out, "bandits")
