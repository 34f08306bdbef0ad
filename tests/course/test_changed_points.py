"""Points that move between items: whose published grade changes is said before anything is overwritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import toy_kit
from toy_kit import change, toy_assignment

from autograder.cli.main import main
from autograder.course.changed_points import changed_points
from autograder.vocabulary.report import ItemResult, Report, SubmissionInfo, to_bytes


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy_kit.toy_kit(tmp_path / "kit", tmp_path_factory)


def report(student: str, ramp: float, shift: float) -> Report:
    items = tuple(
        ItemResult(f"{name}-values", name, name, points, most, "passed", (), "", "", 0.0, ())
        for name, points, most in (("ramp", ramp, 6.0), ("shift", shift, 4.0))
    )
    return Report(student, "toy", SubmissionInfo("toy.py", "0" * 64), "", (), items)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "grades"
    (folder / "reports").mkdir(parents=True)
    for one in (report("ada", 6.0, 4.0), report("bela", 3.0, 4.0), report("chidi", 0.0, 4.0)):
        (folder / "reports" / f"{one.student}.json").write_bytes(to_bytes(one))
    return folder


def move_points(kit: Path) -> None:
    change(kit / "fixtures/toy/items.toml", "points = 6", "points = 8")
    change(kit / "fixtures/toy/items.toml", "points = 4", "points = 2")


def test_the_same_points_change_no_grade(kit: Path, out: Path) -> None:
    assert changed_points(out, toy_assignment(kit)) is None


def test_each_grade_that_changes_is_named_with_both_values(kit: Path, out: Path) -> None:
    move_points(kit)
    found = changed_points(out, toy_assignment(kit))
    assert found is not None
    assert found.text == (
        "Points are others than there (ramp-values 6 → 8, shift-values 4 → 2). "
        "Of 3 grades 2 change: bela 7 → 6, chidi 4 → 2."
    )


def test_points_of_a_new_item_leave_a_range(kit: Path, out: Path) -> None:
    change(kit / "fixtures/toy/items.toml", 'id = "shift-values"', 'id = "shift-new"')
    found = changed_points(out, toy_assignment(kit))
    assert found is not None
    assert found.changes == ("ada 10 → 6 to 10", "bela 7 → 3 to 7", "chidi 4 → 0 to 4")


def test_another_assignments_reports_and_ungraded_ones_are_left_alone(kit: Path, out: Path) -> None:
    move_points(kit)
    for path in (out / "reports").iterdir():
        path.unlink()
    lost = report("dana", 0.0, 0.0)
    lost = replace(lost, items=tuple(replace(item, points=None, verdict="not_graded") for item in lost.items))
    (out / "reports" / "dana.json").write_bytes(to_bytes(lost))
    (out / "reports" / "other.json").write_bytes(to_bytes(replace(report("emeka", 1.0, 1.0), assignment="other")))
    assert changed_points(out, toy_assignment(kit)) is None


@pytest.mark.long
def test_grade_refuses_to_overwrite_such_grades_and_says_whose(
    kit: Path, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    move_points(kit)
    toy_kit.regenerate_into(kit / "fixtures/toy", kit / "fixtures/toy")
    (kit / "class" / "ada").mkdir(parents=True)
    (kit / "class" / "ada" / "toy.py").write_text("")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    words = ["autograder", "--course", str(kit), "grade", str(kit / "class"), "--out", str(out)]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert "Of 3 grades 2 change: bela 7 → 6, chidi 4 → 2. Nothing was written: --fresh overwrites" in told
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
