"""The course: found upwards from where one stands; and its assignments, of which one may be half written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.grading.assignment import find_assignment, find_assignments, find_course, nearest_root, unreadable
from autograder.vocabulary.errors import FixtureError, UsageError

ITEMS = """\
assignment = "NAME"
title = "Demo"
module = "NAME"
given = []
load_timeout = 20

[[item]]
id = "one"
function = "f"
title = "what f returns"
points = 5
timeout = 2
hint = "What does f return?"
public = ["one-small"]
"""


def write(root: Path, name: str = "demo", text: str = ITEMS) -> Path:
    folder = root / "fixtures" / name
    folder.mkdir(parents=True)
    (folder / "items.toml").write_text(text.replace("NAME", name), encoding="utf-8")
    return root


def test_course_is_closest_folder_upwards_that_holds_fixtures(tmp_path: Path) -> None:
    write(tmp_path / "outer")
    inner = write(tmp_path / "outer" / "inner")
    (inner / "work" / "deep").mkdir(parents=True)
    assert find_course(inner / "work" / "deep") == inner
    assert find_course(inner / "fixtures" / "demo") == inner
    assert find_course(inner / "work" / "missing.py") == inner


def test_staff_in_handout_of_course_stand_in_course(tmp_path: Path) -> None:
    course = write(tmp_path / "course")
    (course / "solution").mkdir()
    handout = write(course / "handout" / "demo")
    assert find_course(handout) == course
    assert nearest_root(handout) == handout, "what a student checks is held against the handout's own cases"


def test_where_nothing_upwards_holds_fixtures_there_is_no_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixtures").mkdir()
    for find in (find_course, nearest_root):
        with pytest.raises(UsageError, match=r"no course here: neither .* nor a folder above .* --course DIR\."):
            find(tmp_path)


def test_relative_path_is_looked_up_from_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (write(tmp_path) / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert find_course(Path()) == nearest_root(Path()) == tmp_path


def test_work_outside_course_is_checked_by_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(write(tmp_path / "course"))
    (tmp_path / "downloads").mkdir()
    assert nearest_root(tmp_path / "downloads") == tmp_path / "course"


def test_one_of_several_assignments_is_found_by_its_name(tmp_path: Path) -> None:
    write(write(tmp_path), "grpo")
    assert find_assignment(tmp_path, "grpo").name == "grpo"
    with pytest.raises(UsageError, match=r"several assignments\. .*--assignment: demo, grpo\."):
        find_assignment(tmp_path)


def test_only_assignment_needs_no_name(tmp_path: Path) -> None:
    assert find_assignment(write(tmp_path)).name == "demo"


@pytest.mark.parametrize("name", ["deom", "../fixtures/demo", "demo/"])
def test_unknown_assignment_is_refused_with_names_there_are(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"no assignment '{re.escape(name)}'.*: demo\."):
        find_assignment(write(tmp_path), name)


def test_course_without_assignments_is_kits_fault(tmp_path: Path) -> None:
    (tmp_path / "fixtures" / "empty").mkdir(parents=True)
    with pytest.raises(FixtureError, match=r"no assignment under .*fixtures: no folder there holds items\.toml\."):
        find_assignments(tmp_path)


@pytest.mark.parametrize("text", ["", "assignment = [", 'assignment = "half"\n', b"\xff\xfe"], ids=repr)
def test_one_half_written_assignment_stops_no_command_about_another(tmp_path: Path, text: str | bytes) -> None:
    half = write(tmp_path) / "fixtures" / "half"
    half.mkdir()
    (half / "items.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert [one.name for one in find_assignments(tmp_path)] == ["demo"]
    assert find_assignment(tmp_path, "demo").name == "demo"
    assert list(unreadable(tmp_path)) == ["half"]
    with pytest.raises(FixtureError, match=r"half/items\.toml"):
        find_assignment(tmp_path, "half")


def test_where_every_assignment_is_half_written_first_says_why(tmp_path: Path) -> None:
    write(tmp_path, text="assignment = [")
    with pytest.raises(FixtureError, match=r"demo/items\.toml is not TOML"):
        find_assignments(tmp_path)
