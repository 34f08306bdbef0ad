"""items.toml: what an assignment is, what is refused; and the course, found upwards from where one stands."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from places import KIT

from autograder.grading.assignment import (
    find_assignment,
    find_assignments,
    find_course,
    load_assignment,
    nearest_root,
    unreadable,
)
from autograder.grading.fixtures import read_fixtures
from autograder.vocabulary.errors import FixtureError, UsageError

HEAD = """\
assignment = "demo"
title = "A demonstration"
module = "demo"
given = ["data"]
load_timeout = 20
"""
FIRST = """
[[item]]
id = "first"
function = "f"
title = "the first thing"
points = 2.5
timeout = 5
hint = "What is f?"
public = ["first-small"]
hidden = ["first-wide"]
"""
SECOND = """
[[item]]
id = "second"
function = "g"
title = "the second thing"
points = 3
timeout = 0.5
hint = "What is g?"
public = ["second-small"]
"""


def write(root: Path, text: str = HEAD + FIRST + SECOND, name: str = "demo") -> Path:
    """The folder of an assignment whose items.toml is `text`."""
    folder = root / "fixtures" / name
    folder.mkdir(parents=True)
    (folder / "items.toml").write_text(text, encoding="utf-8")
    return folder


def refusal(root: Path, text: str) -> str:
    """What load_assignment has to say about `text`, without the path that it begins with."""
    folder = write(root, text)
    with pytest.raises(FixtureError) as caught:
        load_assignment(folder)
    message = str(caught.value)
    assert message.startswith(f"{folder / 'items.toml'} ")
    assert message.endswith(".")
    assert "\n" not in message
    return message.removeprefix(f"{folder / 'items.toml'} ")


def test_budgets_are_items_own_or_assignments_or_usual_ones(tmp_path: Path) -> None:
    def budgets(text: str, name: str) -> list[tuple[float, ...]]:
        items = load_assignment(write(tmp_path, text, name)).items
        return [(item.cpu, item.memory_megabytes, item.output_megabytes) for item in items]

    assert budgets(HEAD + FIRST + SECOND, "usual") == [(2 * 5, 4096, 64), (2 * 0.5, 4096, 64)]  # twice the timeout
    own = FIRST + "cpu = 2.5\noutput_megabytes = 1\n"
    head = "cpu = 7\nmemory_megabytes = 512\n" + HEAD
    assert budgets(head + own + SECOND, "own") == [(2.5, 512, 1), (7, 512, 64)]


def test_case_is_asked_for_within_budgets_of_its_item() -> None:
    assignment = find_assignment(KIT, "policy_gradient")
    case = read_fixtures(assignment, hidden=False).cases[0]
    item = replace(assignment.item(case.item), timeout=1.5, cpu=2.5, memory_megabytes=3, output_megabytes=4)
    request = case.request(item)
    assert (request.item, request.function, request.probe) == (item.id, item.function, case.probe)
    assert (request.timeout, request.cpu, request.memory_megabytes, request.output_megabytes) == (1.5, 2.5, 3, 4)


# Reading


def test_assignment_is_what_its_file_says(tmp_path: Path) -> None:
    demo = load_assignment(write(tmp_path))
    assert (demo.name, demo.title, demo.module) == ("demo", "A demonstration", "demo")
    assert (demo.given, demo.load_timeout) == (("data",), 20.0)
    assert [demo.folder, demo.solution, demo.handout] == [
        tmp_path / part / "demo" for part in ("fixtures", "solution", "handout")
    ]
    first = demo.item("first")
    assert (first.points, first.timeout, first.hint) == (2.5, 5.0, "What is f?")
    assert (first.public, first.hidden) == (("first-small",), ("first-wide",))


CURVE = """
[[curve]]
id = "run"
function = "f"
title = "a run"
timeout = 3
"""


def test_curve_earns_nothing_and_has_case_of_its_name(tmp_path: Path) -> None:
    demo = load_assignment(write(tmp_path, HEAD + FIRST + CURVE))
    (curve,) = demo.curves
    assert (curve.id, curve.function, curve.points, curve.timeout) == ("run", "f", 0.0, 3.0)
    assert (curve.public, curve.hidden) == (("run",), ())
    assert demo.max_points == 2.5
    assert [item.id for item in demo.items] == ["first"]


def test_unknown_item_is_refused_with_items_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no item 'frist' in demo\. Did you mean first"):
        load_assignment(write(tmp_path)).item("frist")


def test_what_is_not_toml_is_refused_with_place(tmp_path: Path) -> None:
    assert re.match(r"is not TOML: .*line 6", refusal(tmp_path, HEAD + "points = = 3"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (HEAD, "'item' of the assignment should be tables [[item]], but is missing"),
        (f"{HEAD}item = []", "it lists no item"),
        (f"{HEAD}item = [3]", "'item' of the assignment should be tables [[item]], but is [3]"),
        (f"{HEAD}[item]\nid = 'first'", "'item' of the assignment should be tables [[item]], but is {'id': 'first'}"),
        (HEAD + SECOND.replace('"second"', "2"), "'id' of an item should be text, but is 2"),
        ("bonus = 1\n" + HEAD + SECOND, "the assignment has the unknown entry 'bonus'"),
        (HEAD + SECOND.replace('["second-small"]', "[]"), "second has no case"),
        (HEAD + FIRST + SECOND.replace("second-small", "first-wide"), "the case 'first-wide' is listed twice"),
        (HEAD + FIRST.replace("first-wide", "first-small"), "the case 'first-small' is listed twice"),
        (HEAD.replace("data", "../data") + FIRST, "'given' '../data' of the assignment is no name in Python"),
        (HEAD + FIRST + CURVE.replace('"run"', '"first"'), "the item 'first' is listed twice"),
        (HEAD + FIRST + CURVE.replace('"run"', '"first-small"'), "the case 'first-small' is listed twice"),
        (HEAD + FIRST + CURVE + "points = 1", "run has the unknown entry 'points'"),
        (HEAD + FIRST + CURVE.replace('title = "a run"\n', ""), "'title' of run should be text, but is missing"),
    ],
)
def test_list_that_could_not_be_graded_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """Single entries that are wrong: tests/authoring/test_proofreading.py."""
    assert refusal(tmp_path, text).startswith(f"cannot be used: {complaint}")


@pytest.mark.parametrize("number", ["0", "0.0", "-1", "nan", "-inf", "inf", "true", '"3"', "[3]"])
@pytest.mark.parametrize("key", ["points", "timeout", "load_timeout", "cpu", "memory_megabytes", "output_megabytes"])
def test_limits_and_points_are_numbers_above_0(tmp_path: Path, key: str, number: str) -> None:
    text = re.sub(rf"(?m)^{key} = .*\n", "", HEAD + SECOND)
    place = "the assignment" if key == "load_timeout" else "second"
    text = f"{key} = {number}\n{text}" if key == "load_timeout" else f"{text}{key} = {number}\n"
    assert f"{key!r} of {place}" in refusal(tmp_path, text)


# The parts of an assignment


def test_parts_beside_the_fixtures_win_over_others(tmp_path: Path) -> None:
    demo = load_assignment(write(tmp_path))
    assert demo.untouched_source() == ""  # before the first release
    for folder in (demo.solution, demo.handout):
        folder.mkdir(parents=True)
    (demo.solution / "data.py").write_text("solution's")
    (demo.handout / "demo.py").write_text("handout's")
    assert (demo.given_sources(), demo.untouched_source()) == ({"data": "solution's"}, "handout's")
    for name in ("data", "untouched"):
        (demo.folder / f"{name}.py").write_text("own")
    assert (demo.given_sources(), demo.untouched_source()) == ({"data": "own"}, "own")


# The course


def course(root: Path, name: str = "demo") -> Path:
    write(root, (HEAD + FIRST).replace('"demo"', f'"{name}"'), name)
    return root


def test_course_is_closest_folder_upwards_that_holds_fixtures(tmp_path: Path) -> None:
    course(tmp_path / "outer")
    inner = course(tmp_path / "outer" / "inner")
    (inner / "work" / "deep").mkdir(parents=True)
    assert find_course(inner / "work" / "deep") == inner
    assert find_course(inner / "fixtures" / "demo") == inner
    assert find_course(inner / "work" / "missing.py") == inner


def test_staff_in_handout_of_course_stand_in_course(tmp_path: Path) -> None:
    root = course(tmp_path / "course")
    (root / "solution").mkdir()
    handout = course(root / "handout" / "demo")
    assert find_course(handout) == root
    assert nearest_root(handout) == handout, "what a student checks is held against the handout's own cases"


def test_where_nothing_upwards_holds_fixtures_there_is_no_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixtures").mkdir()
    for find in (find_course, nearest_root):
        with pytest.raises(UsageError, match=r"no course here: neither .* nor a folder above .* --course DIR\."):
            find(tmp_path)


def test_path_may_be_relative_or_lie_outside_the_current_course(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (course(tmp_path / "course") / "work").mkdir()
    (tmp_path / "downloads").mkdir()
    monkeypatch.chdir(tmp_path / "course" / "work")
    assert find_course(Path()) == nearest_root(Path()) == tmp_path / "course"
    assert nearest_root(tmp_path / "downloads") == tmp_path / "course"


def test_assignment_is_found_by_its_name(tmp_path: Path) -> None:
    course(course(tmp_path), "grpo")
    assert find_assignment(tmp_path, "grpo").name == "grpo"
    with pytest.raises(UsageError, match=r"several assignments\. .*--assignment: demo, grpo\."):
        find_assignment(tmp_path)
    for name in ("deom", "../fixtures/demo", "demo/"):
        with pytest.raises(UsageError, match=rf"no assignment '{re.escape(name)}'.*: demo, grpo\."):
            find_assignment(tmp_path, name)


def test_course_without_assignments_is_kits_fault(tmp_path: Path) -> None:
    (tmp_path / "fixtures" / "empty").mkdir(parents=True)
    with pytest.raises(FixtureError, match=r"no assignment under .*fixtures: no folder there holds items\.toml\."):
        find_assignments(tmp_path)


@pytest.mark.parametrize("text", ["", "assignment = [", 'assignment = "half"\n', b"\xff\xfe"], ids=repr)
def test_one_half_written_assignment_stops_no_command_about_another(tmp_path: Path, text: str | bytes) -> None:
    half = course(tmp_path) / "fixtures" / "half"
    half.mkdir()
    (half / "items.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert [one.name for one in find_assignments(tmp_path)] == ["demo"]
    assert find_assignment(tmp_path, "demo").name == "demo"
    assert list(unreadable(tmp_path)) == ["half"]
    with pytest.raises(FixtureError, match=r"half/items\.toml"):
        find_assignment(tmp_path, "half")


def test_where_every_assignment_is_half_written_first_says_why(tmp_path: Path) -> None:
    write(tmp_path, "assignment = [")
    with pytest.raises(FixtureError, match=r"demo/items\.toml is not TOML"):
        find_assignments(tmp_path)
