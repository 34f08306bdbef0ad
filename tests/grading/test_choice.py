"""Which assignment a command is about: said by files' names, by the functions in them, or by nothing."""

from __future__ import annotations

import itertools
import os
import shutil
import struct
import tracemalloc
from pathlib import Path

import pytest
from places import KIT

from autograder.grading.assignment import find_assignments
from autograder.grading.choice import (
    assignment_of_fixtures,
    assignment_of_item,
    assignment_of_submissions,
    assignments_to_release,
    refuse_unlikely,
)
from autograder.submissions.finding import find
from autograder.submissions.handed_in import zip_holds_work
from autograder.vocabulary.errors import FixtureError, UsageError

ALL = find_assignments(KIT)
NAMES = [assignment.name for assignment in ALL]


def put(path: Path, text: str = "x = 1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", ["{0}.py", "{0}.ipynb", "ada/{0}.py", "ada/{0}/{0}.ipynb", "a/b/c/{0}.py"])
def test_name_of_file_says_which_assignment_it_is(tmp_path: Path, name: str, shape: str) -> None:
    put(tmp_path / "class" / shape.format(name))
    put(tmp_path / "class" / "bela" / "notes.py")
    assert assignment_of_submissions(KIT, [tmp_path / "class"]).name == name


@pytest.mark.parametrize("assignment", ALL, ids=NAMES)
def test_file_named_for_student_is_known_by_its_functions(tmp_path: Path, assignment) -> None:
    put(tmp_path / "goran.py", f"def {assignment.functions[-1]}():\n    pass\n")
    assert assignment_of_submissions(KIT, [tmp_path]).name == assignment.name


def test_submissions_of_no_or_two_assignments_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "ada" / "homework.py")
    with pytest.raises(UsageError, match=f"Nothing here says .*--assignment: {', '.join(NAMES)}"):
        assignment_of_submissions(KIT, [tmp_path])
    for name in NAMES:
        put(tmp_path / name / f"{name}.py")
    with pytest.raises(UsageError, match=f"several assignments.*--assignment: {', '.join(NAMES)}"):
        assignment_of_submissions(KIT, [tmp_path])
    assert assignment_of_submissions(KIT, [tmp_path], NAMES[0]).name == NAMES[0]


def test_stray_or_empty_file_of_another_assignment_stops_no_class(tmp_path: Path) -> None:
    first, second = NAMES[:2]
    for student in "abcdef":
        put(tmp_path / "class" / student / f"{first}.py")
    put(tmp_path / "class" / "eve" / f"{second}.py")
    assert assignment_of_submissions(KIT, [tmp_path / "class"]).name == first
    put(tmp_path / "two" / "ada" / f"{first}.py")
    put(tmp_path / "two" / "eve" / f"{second}.py", "")
    assert assignment_of_submissions(KIT, [tmp_path / "two"]).name == first
    put(tmp_path / "two" / "eve" / f"{second}.py")
    with pytest.raises(UsageError, match="submissions of several assignments"):
        assignment_of_submissions(KIT, [tmp_path / "two"])


@pytest.mark.parametrize("shape", ["{0}.py", "work/{0}.py"])
def test_whole_name_counts_more_than_part_of_one(tmp_path: Path, shape: str) -> None:
    for first, second in zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True):
        put(tmp_path / first / "ada" / shape.format(first))
        put(tmp_path / first / "ada" / f"plot_{second}.py")
        put(tmp_path / first / "bela" / "notes.py")
        assert assignment_of_submissions(KIT, [tmp_path / first]).name == first


def test_unreadable_assignment_is_named_first(tmp_path: Path) -> None:
    for name in ("bandits", "broken"):
        shutil.copytree(
            KIT / "fixtures" / "bandits", tmp_path / "fixtures" / name, ignore=shutil.ignore_patterns("*.s*")
        )
    (tmp_path / "fixtures" / "broken" / "items.toml").write_text("assignment = [")
    put(tmp_path / "class" / "ada" / "bandits.py")
    with pytest.raises(FixtureError, match=r"broken.items\.toml is not TOML.* Fix it, or .* --assignment: bandits\."):
        assignment_of_submissions(tmp_path, [tmp_path / "class"])
    assert assignment_of_submissions(tmp_path, [tmp_path / "class"], "bandits").name == "bandits"


@pytest.mark.parametrize(
    ("name", "text", "meant"),
    [
        ("{}/bandits.py", "x = 1\n", True),
        ("{}/bandits_final.ipynb", "{{}}", True),
        ("{}.py", "def {function}(): pass\n", True),
        ("{}.py", "", True),  # an empty file says nothing
        ("{}.py", "x = 1\n", False),
        ("{}/grpo.py", "def another(): pass\n", False),
    ],
)
def test_guess_that_is_not_true_of_most_is_refused(tmp_path: Path, name: str, text: str, meant: bool) -> None:
    """A stray file says of which assignment a class is, and most of it is of another."""
    bandits = next(one for one in ALL if one.name == "bandits")
    put(tmp_path / "eve" / "bandits.py")
    for student in ("ada", "bela"):
        put(tmp_path / name.format(student), text.format(function=bandits.functions[0]))
    candidates = find([tmp_path], bandits.module)
    if meant:
        refuse_unlikely(bandits, candidates)
        return
    with pytest.raises(UsageError, match=r"Of 3 submissions 2 hold nothing of bandits\..* --assignment\."):
        refuse_unlikely(bandits, candidates)
    refuse_unlikely(bandits, candidates[1:])


def test_neither_links_nor_broken_zips_nor_pipes_say_anything(tmp_path: Path) -> None:
    folder = tmp_path / "class"
    put(tmp_path / "elsewhere" / f"{NAMES[0]}.py")
    put(folder / "broken.zip", "PK nothing")
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "pipe.py")
    put(folder / f"{NAMES[1]}.py")
    assert assignment_of_submissions(KIT, [folder]).name == NAMES[1]


def test_item_is_found_in_assignment_that_has_it() -> None:
    for assignment in ALL:
        own = [item.id for item in assignment.items if sum(item.id in _ids(other) for other in ALL) == 1]
        assert all(assignment_of_item(KIT, item).name == assignment.name for item in own[:1])
    shared, second = next(
        (item, other) for one, other in itertools.combinations(ALL, 2) for item in sorted(_ids(one) & _ids(other))
    )
    with pytest.raises(UsageError, match=f"Several assignments have an item '{shared}'"):
        assignment_of_item(KIT, shared)
    assert assignment_of_item(KIT, shared, second.name).name == second.name


def _ids(assignment) -> set[str]:
    return {item.id for item in assignment.items}


def test_zip_names_its_assignment_without_zip_all_are_released() -> None:
    assert [one.name for one in assignments_to_release(KIT, None)] == NAMES
    assert [one.name for one in assignments_to_release(KIT, Path(f"out/{NAMES[0]}.zip"))] == NAMES[:1]
    assert [one.name for one in assignments_to_release(KIT, Path("x.zip"), NAMES[1])] == NAMES[1:2]
    with pytest.raises(UsageError, match="one handout"):
        assignments_to_release(KIT, Path("x.zip"))


def test_stored_fixtures_are_of_assignment_that_their_manifest_names(tmp_path: Path) -> None:
    for assignment in ALL:
        assert assignment_of_fixtures(KIT, assignment.folder).name == assignment.name
    for text in ("", "[]", "{}", '{"assignment": 3}'):
        put(tmp_path / "manifest.json", text)
        with pytest.raises(UsageError, match=f"{tmp_path.name} holds no manifest.json that names its assignment"):
            assignment_of_fixtures(KIT, tmp_path)
    assert assignment_of_fixtures(KIT, tmp_path, NAMES[0]).name == NAMES[0]


def test_zip_with_endless_directory_takes_no_memory(tmp_path: Path) -> None:
    """Of a zip that says of itself that it lists a terabyte of names, and of one that does."""
    put(tmp_path / "class" / "ada" / "bandits.py")
    for name, size in (("bela", 2**40), ("chidi", 2**27)):
        (tmp_path / "class" / name).mkdir()
        with (tmp_path / "class" / name / "bandits.zip").open("wb") as file:
            file.truncate(size)
            file.seek(size)
            file.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 9, 9, size, 0))
            file.write(struct.pack("<4sIQI", b"PK\6\7", 0, size, 1))
            file.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 65_535, 65_535, 2**32 - 1, 2**32 - 1, 0))
    tracemalloc.start()
    assert assignment_of_submissions(KIT, [tmp_path / "class"]).name == "bandits"
    assert [zip_holds_work(tmp_path / "class" / name / "bandits.zip", "bandits") for name in ("bela", "chidi")] == [
        True
    ] * 2
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32 * 2**20
