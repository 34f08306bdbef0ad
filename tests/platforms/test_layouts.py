"""What platforms give for download: whose each submission is, which of several counts, and what nobody can forge."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import tempfile
import time
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from places import KIT

from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms import LAYOUTS
from autograder.platforms.downloads import MAX_SUBMITTERS, Described, read_metadata
from autograder.platforms.hand_in import Gathered
from autograder.platforms.layouts import gathered
from autograder.submissions import finding as downloads
from autograder.submissions.reading import read
from autograder.submissions.submission import MIB, Submission
from autograder.vocabulary.errors import UsageError

MODULE = "policy_gradient"
PY, IPYNB = f"{MODULE}.py", f"{MODULE}.ipynb"
CODE = "x = 1\n"
NOTEBOOK = (
    '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "id": "a", "metadata": {}, '
    '"execution_count": null, "outputs": [], "source": "def f():\\n    return 2"}]}'
)


def put(folder: Path, *names: str, text: str = CODE) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(NOTEBOOK if name.endswith(".ipynb") else text, encoding="utf-8")
    return folder


def zipped(path: Path, members: Mapping[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def people(*lines: str) -> Roster:
    """A roster of lines `student id… [group]`, ids apart by slashes."""
    split = [(*line.split(), "", "")[:3] for line in lines]
    return Roster(tuple(Person(name, group, keys_of([name, *ids.split("/")])) for name, ids, group in split))


def gather(
    *paths: Path, roster: Roster | None = None, deadline: datetime | None = None, class_zip: bool = False
) -> tuple[Gathered, dict[str, Submission]]:
    with gathered(paths, MODULE, roster, deadline, class_zip=class_zip) as found:
        return found, {one.student: read(one, MODULE) for one in found.candidates}


def paths_of(*paths: Path, roster: Roster | None = None) -> dict[str, str]:
    return {student: one.path for student, one in gather(*paths, roster=roster)[1].items()}


# Whose what is

RED, BLUE = f"redteam_1001_555_{PY}", f"blue_team_LATE_1003_556_{MODULE}-3.py"
DATED = [
    f"ada_104711_5000311_{PY}", f"ben_98_5000312_{PY}", "cy_104713_5000313_2027_03_01 answers.py",
    "dana_LATE_104714_5000314_1_2_3.py", f"lab_3_104715_5000315_{PY}",
]  # fmt: skip
GROUPS = [f"{name}_assignsubmission_file/{PY}" for name in ("Gruppe A_77", "Default group")]
GROUPS.append("Default group_assignsubmission_onlinetext/onlinetext.html")
EITHER, ORDER = "eve_666_7_8_work.py", "ana_12_34_56_x.py"


def clones(*names: str) -> list[str]:
    return [f"{name}/{file}" for name in names for file in (PY, ".git/HEAD")]


@pytest.mark.parametrize(
    ("files", "roster", "expected"),
    [
        # a file with the module's name before others; the name of a file claims nobody's id
        ([f"a_1_5_{PY}", "a_1_6_helpers.py"], "", {"a_1": f"a_1_5_{PY}"}),
        ([f"ju\u0308rgen_1_5_{PY}", f"j\u00fcrgen_1_6_{IPYNB}", f"ben_2_7_{PY}"], "", {"j\u00fcrgen_1", "ben_2"}),
        (DATED, "", {"ada_104711", "ben_98", "cy_104713", "dana_104714", "lab_3_104715"}),
        # of several ways to read a name the roster knows which
        ([EITHER, ORDER], "Eve 666, Ana 12", {"Eve": EITHER, "Ana": ORDER}),
        # a group is shared through the member whom Canvas names, and its latest counts
        ([RED, BLUE], "Ana 1001 red, Ben 1002 red, Cleo 1003", {"Ana": RED, "Ben": RED, "Cleo": BLUE}),
        ([f"a_1_5_{PY}", f"b_2_9_{PY}"], "Ada 1 red, Ben 2 red", {"Ada": f"b_2_9_{PY}", "Ben": f"b_2_9_{PY}"}),
        # Moodle: no group has no number
        (GROUPS, "", {"Gruppe A_77", "Default group"}),
        ([f"Eve_666_assignsubmission_file_Ana_12345_assignsubmission_file_{PY}"], "", {"Eve_666"}),
        # GitHub: usernames begin behind what most share, which hyphens, the module's name or a roster say
        (clones("hw5-ada", "hw5-ben"), "", {"ada", "ben"}),
        (clones("cs336-policy-gradient-ada", "cs336-policy-gradient-ben-k"), "", {"ada", "ben-k"}),
        (clones(*(names := ("policy-gradient-hw5-ada", "policy-gradient-hw5-ben"))), "", set(names)),
        (clones("hw5-ann-lee", "hw5-ann-kim"), "", {"hw5-ann-lee", "hw5-ann-kim"}),
        (clones("hw5-ann-lee", "hw5-ann-kim"), "Ada ann-lee, Ben ann-kim", {"Ada", "Ben"}),
        ([*clones("hw5-ada", "hw5-ben"), "hw5-cleo.py"], "", {"ada", "ben", "hw5-cleo"}),
        ([f"s-1/{PY}", *clones("s-2")], "", {"s-1", "s-2"}),
        # plain folders and files, whatever a student put into them
        ([f"ada/work/{PY}"], "", {"ada": f"ada/work/{PY}"}),
        ([f"u1/{PY}", "u2.py"], "Ada u1, Ольга u2", {"Ada": f"u1/{PY}", "Ольга": "u2.py"}),
        (
            [f"eve/a/{PY}", "eve/a/timestamp.txt", "ben/notes/x.txt", f"ben/w/v/{PY}", "goran.py"],
            "",
            {"ben": f"ben/w/v/{PY}", "eve": f"eve/a/{PY}", "goran": "goran.py"},
        ),
    ],
)
def test_names_say_whose_work_is_whose(
    tmp_path: Path, files: Sequence[str], roster: str, expected: set[str] | dict[str, str]
) -> None:
    put(tmp_path, *files)
    found = paths_of(tmp_path, roster=people(*roster.split(", ")) if roster else None)
    assert (found if isinstance(expected, dict) else set(found)) == expected


# Canvas


def test_latest_canvas_file_on_time_counts(tmp_path: Path) -> None:
    put(tmp_path, f"diazana_1001_555_{PY}", f"diazana_1001_580_{MODULE}-1.py", f"diazana_LATE_1001_999_{MODULE}-2.py")
    one = gather(tmp_path)[1]["diazana_1001"]
    assert one.path == f"diazana_1001_580_{MODULE}-1.py"
    assert one.notes[0].startswith(f"diazana_1001_580_{MODULE}-1.py counts, the latest that was on time; not graded: ")
    assert f"diazana_1001_555_{PY}" in one.notes[0]
    assert f"diazana_LATE_1001_999_{MODULE}-2.py" in one.notes[0]


def test_two_downloads_of_canvas_give_one_submission_per_student(tmp_path: Path) -> None:
    put(tmp_path / "monday", f"a_1_5_{PY}", f"b_2_6_{PY}")
    put(tmp_path / "friday", f"a_LATE_1_9_{MODULE}-1.py", f"b_2_8_{MODULE}-1.py")
    assert paths_of(tmp_path / "friday", tmp_path / "monday") == {"a_1": f"a_1_5_{PY}", "b_2": f"b_2_8_{MODULE}-1.py"}


# Moodle


@pytest.mark.parametrize("end", ["", "_"])
def test_moodle_gives_a_folder_for_each_student(tmp_path: Path, end: str) -> None:
    put(
        tmp_path,
        f"Ana Diaz_12345_assignsubmission_file{end}/{PY}",
        f"王小明_12346_assignsubmission_file{end}/w/{IPYNB}",
    )
    put(tmp_path, f"Ana Diaz_12345_assignsubmission_onletext{end}/x.html")
    shutil.rmtree(tmp_path / f"Ana Diaz_12345_assignsubmission_onletext{end}")
    put(tmp_path, f"Ana Diaz_12345_assignsubmission_onlinetext{end}/onlinetext.html", "grades.csv")
    found = paths_of(tmp_path)
    assert set(found) == {"Ana Diaz_12345", "王小明_12346"}
    assert found["Ana Diaz_12345"] == f"Ana Diaz_12345_assignsubmission_file{end}/{PY}"


# Gradescope

METADATA = """\
submission_1:
  :submitters:
  - :name: Ana Diaz
    :sid: U1
    :email: ana@x.edu
  :created_at: 2027-03-01 22:10:11.123456000 Z
  :score: 12.0
  :results: &1
    :tests:
    - :name: "tricky: \\"x\\""
  :history:
  - :created_at: 2027-02-01 00:00:00 Z
    :results: *1
submission_2:
  :submitters:
  - :name: مريم
    :email: maryam@x.edu
  - :name: 'O''Brien, Sean'
    :sid: '31'
    :email: sean@x.edu
  :created_at: 2027-03-02 01:00:00 -08:00
"""


def test_gradescope_says_in_a_file_whose_a_submission_is(tmp_path: Path) -> None:
    put(tmp_path, f"submission_1/{PY}", f"submission_2/{PY}", f"submission_3/{PY}")
    put(tmp_path, "submission_metadata.yml", text=METADATA)
    found, read_ = gather(tmp_path)
    assert set(read_) == {"Ana Diaz_U1", "مريم_maryam@x.edu", "O'Brien, Sean_31", "submission_3"}
    assert [one.path.name for one in found.candidates if "Sean" in one.student] == ["submission_2"]


def test_submitters_sharing_only_a_name_are_two_students(tmp_path: Path) -> None:
    put(tmp_path, f"submission_1/{PY}", f"submission_2/{PY}")
    text = "".join(f"submission_{at}:\n  :submitters:\n  - :name: Ana\n" for at in (1, 2))
    put(tmp_path, "submission_metadata.yml", text=text)
    assert set(paths_of(tmp_path)) == {"Ana_submission_1", "Ana_submission_2"}


def test_a_deadline_makes_a_submission_late(tmp_path: Path) -> None:
    put(tmp_path, f"submission_1/{PY}", f"submission_2/{PY}")
    put(tmp_path, "submission_metadata.yml", text=METADATA)
    read_ = gather(tmp_path, deadline=datetime(2027, 3, 2, 8, 0, tzinfo=UTC))[1]
    assert read_["Ana Diaz_U1"].notes == ()
    assert read_["O'Brien, Sean_31"].notes == ("handed in late, at 2027-03-02 09:00 UTC",)


@pytest.mark.parametrize(
    "text", ["{" * 10_000, "a: [", "!!python/object/apply:os.system ['true'", "\x00", "- " * 5000 + "x"]
)
def test_metadata_that_is_no_yaml_is_refused(tmp_path: Path, text: str) -> None:
    put(tmp_path, "submission_metadata.yml", text=text)
    with pytest.raises(UsageError, match="is not what Gradescope writes") as caught:
        read_metadata(tmp_path / "submission_metadata.yml")
    assert "\n" not in str(caught.value)


def test_no_object_is_made_of_metadata(tmp_path: Path) -> None:
    text = f"submission_1:\n  :created_at: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n"
    assert read_metadata(put(tmp_path, "m.yml", text=text) / "m.yml") == {"submission_1": Described("", [])}
    assert not (tmp_path / "made").exists()


def test_metadata_that_would_explode_is_read_in_no_time(tmp_path: Path) -> None:
    steps = itertools.pairwise("abcdefghijklmnopqrstuvwxyz")
    lines = ["a: &a [1]", *(f"{new}: &{new} [{', '.join(['*' + old] * 9)}]" for old, new in steps)]
    put(tmp_path, "m.yml", text="\n".join([*lines, "submission_1:", "  :submitters: *z", ""]))
    started = time.process_time()
    assert read_metadata(tmp_path / "m.yml") == {"submission_1": Described("", [])}
    assert time.process_time() - started < 20


def test_metadata_is_capped_in_size_submitters_and_names(tmp_path: Path) -> None:
    text = "submission_1:\n  :submitters:\n" + f"  - :name: {'x' * 5000}\n" * (MAX_SUBMITTERS + 9)
    [described] = read_metadata(put(tmp_path, "m.yml", text=text) / "m.yml").values()
    assert len(described.submitters) == MAX_SUBMITTERS
    assert {len(name) for name, _, _ in described.submitters} == {300}
    with (tmp_path / "large.yml").open("wb") as stream:
        stream.truncate(33 * MIB)
    with pytest.raises(UsageError, match="larger than 32 MiB"):
        read_metadata(tmp_path / "large.yml")


def test_metadata_inside_a_submission_is_not_gradescopes(tmp_path: Path) -> None:
    put(tmp_path, f"ada/{PY}", "eve/submission_metadata.yml", f"eve/submission_1/{PY}", text=METADATA)
    assert set(paths_of(tmp_path)) == {"ada", "eve"}


def test_own_folder_is_one_students_whatever_it_holds(tmp_path: Path) -> None:
    put(tmp_path / "eve", PY, f"submission_1/{PY}")
    put(tmp_path / "eve", "submission_metadata.yml", text=METADATA)
    assert paths_of(tmp_path / "eve") == {"eve": f"eve/{PY}"}


# nbgrader


def test_nbgraders_timestamp_says_when_it_was_collected(tmp_path: Path) -> None:
    put(tmp_path, f"submitted/ada/ps5/{IPYNB}", f"submitted/ben/ps5/{PY}")
    put(tmp_path, "submitted/ada/ps5/timestamp.txt", text="2027-03-02 15:58:23.948203 America/Los_Angeles")
    put(tmp_path, "submitted/ben/ps5/timestamp.txt", text="2027-03-02 15:58:23.948203 UTC")
    read_ = gather(tmp_path / "submitted", deadline=datetime(2027, 3, 2, 20, 0, tzinfo=UTC))[1]
    assert read_["ada"].path == f"ada/ps5/{IPYNB}"
    assert read_["ada"].notes == ("handed in late, at 2027-03-02 23:58 UTC",)
    assert read_["ben"].notes == ()


def test_latest_nbgrader_collection_on_time_counts(tmp_path: Path) -> None:
    for folder, clock in (("first", "10:00"), ("second", "12:00"), ("third", "14:00")):
        put(tmp_path, f"{folder}/ada/ps5/{PY}", text=f"x = '{folder}'\n")
        put(tmp_path, f"{folder}/ada/ps5/timestamp.txt", text=f"2027-03-02 {clock}:00 UTC")
    places = [tmp_path / name for name in ("third", "first", "second")]
    one = gather(*places, deadline=datetime(2027, 3, 2, 13, 0, tzinfo=UTC))[1]["ada"]
    assert one.source == "x = 'second'\n"
    assert "not graded: ada, ada (late)" in one.notes[0] or "not graded: ada (late), ada" in one.notes[0]


def test_timestamp_link_or_pipe_is_not_opened(tmp_path: Path) -> None:
    put(tmp_path, f"ada/ps5/{PY}", f"ben/ps5/{PY}", "secret")
    (tmp_path / "ada" / "ps5" / "timestamp.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "ben" / "ps5" / "timestamp.txt")
    (tmp_path / "secret").write_text("2027-03-02 15:58:23", encoding="utf-8")
    (tmp_path / "secret").rename(tmp_path.parent / "secret")
    read_ = gather(tmp_path, deadline=datetime(2020, 1, 1, tzinfo=UTC))[1]
    assert [one.notes for one in read_.values()] == [(), ()]


# Rosters and groups


def test_the_roster_names_students_and_says_who_is_missing(tmp_path: Path) -> None:
    put(tmp_path, f"diazana_1001_555_{PY}", f"okoroben_1002_556_{PY}")
    found, _ = gather(tmp_path, roster=people("Ana 1001", "Ben 77", "Cleo 78"))
    assert [one.student for one in found.candidates] == ["Ana", "okoroben_1002"]
    assert (found.absent, found.unknown) == (("Ben", "Cleo"), ("okoroben_1002",))


def test_two_accounts_of_one_student_are_refused_alone(tmp_path: Path) -> None:
    text = METADATA.replace("- :name: مريم\n    :email: maryam@x.edu", "- :name: Ana\n    :email: eve@x.edu")
    put(tmp_path, f"submission_1/{PY}", f"submission_2/{PY}")
    put(tmp_path, "submission_metadata.yml", text=text)
    found, read_ = gather(tmp_path, roster=people("Ana U1", "Sean 31"))
    assert set(read_) == {"Ana", "Sean"}
    assert found.refused == (
        "Ana_eve@x.edu bears the name of Ana, whom the roster knows by another id: say in the roster who it is.",
    )


def test_two_submissions_that_nothing_orders_are_refused(tmp_path: Path) -> None:
    put(tmp_path, f"monday/ada/{PY}", f"friday/ada/{PY}")
    with pytest.raises(UsageError, match="ada handed in twice"):
        gather(tmp_path / "monday", tmp_path / "friday")


# Zips of a class

CLASSES: dict[str, tuple[dict[str, str | bytes], set[str]]] = {
    "canvas": ({f"a_1_5_{PY}": CODE, f"b_LATE_2_6_{PY}": CODE, "c_3_7_essay.pdf": b"%PDF"}, {"a_1", "b_2", "c_3"}),
    "moodle": (
        {f"Ana_1_assignsubmission_file/{PY}": CODE, f"Ольга_2_assignsubmission_file/x/{IPYNB}": NOTEBOOK},
        {"Ana_1", "Ольга_2"},
    ),
    "moodle, one student": ({f"Ana_1_assignsubmission_file/{PY}": CODE}, {"Ana_1"}),
    "gradescope": (
        {"assignment_9_export/submission_metadata.yml": METADATA, f"assignment_9_export/submission_1/{PY}": CODE},
        {"Ana Diaz_U1"},
    ),
}


@pytest.mark.parametrize(("members", "students"), CLASSES.values(), ids=CLASSES)
def test_class_zip_is_read_like_its_folder_when_asked(
    tmp_path: Path, members: dict[str, str | bytes], students: set[str]
) -> None:
    path = zipped(tmp_path / "submissions.zip", {**members, "__MACOSX/._x": b""})
    with gathered([path], MODULE, class_zip=True) as found:
        unpacked = found.candidates[0].path.parent
        assert unpacked.is_dir()
        assert {one.student for one in found.candidates} == students
    assert not unpacked.exists()
    with pytest.raises(UsageError, match=r"looks like a whole class.*--class-zip"):
        gather(path)


@pytest.mark.parametrize("name", [f"../a_1_5_{PY}", f"/a_1_5_{PY}", f"C:/a_1_5_{PY}"])
def test_class_zip_entry_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / "c.zip", {name: CODE, f"b_1_5_{PY}": CODE})
    with pytest.raises(UsageError, match="would lie outside it"):
        downloads.unpack(path, tmp_path / "target")
    assert not (tmp_path / f"a_1_5_{PY}").exists()


@pytest.mark.parametrize("first", [("bela", f"bela/{PY}"), (f"bela/{PY}", f"bela/{PY}/{PY}")])
def test_class_zip_file_and_folder_of_one_name_cost_nobody_else(tmp_path: Path, first: tuple[str, str]) -> None:
    path = zipped(tmp_path / "c.zip", dict.fromkeys([*first, f"ada/{PY}", f"chidi/{PY}"], CODE))
    unpacked = downloads.unpack(path, tmp_path / "target")
    assert list(unpacked.lost) == ["bela"]
    with gathered([path], MODULE, class_zip=True) as found:
        read_ = {one.student: read(one, MODULE) for one in found.candidates}
    assert {name for name, one in read_.items() if one.source and not one.fault} >= {"ada", "chidi"}


def test_class_zip_bomb_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "c.zip", {f"a_1_5_{PY}": bytes(50 * MIB), f"b_2_6_{PY}": CODE})
    read_ = gather(path, class_zip=True)[1]
    assert "larger than 1 MiB" in read_["a_1"].problem
    assert read_["b_2"].source == CODE
    monkeypatch.setattr(downloads, "MAX_TOTAL", MIB)
    with pytest.raises(UsageError, match="unpack it, and give the folder"):
        gather(path, class_zip=True)


def with_entries(path: Path, *entries: tuple[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name that is there twice
        for name, content in entries:
            archive.writestr(name, content)
    return path


MOODLE = ("Ana_1_assignsubmission_file", "Ben_2_assignsubmission_file", "Eve_3_assignsubmission_file")
HONEST = [(f"{folder}/{PY}", CODE) for folder in MOODLE[:2]]


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([(f"{MOODLE[2]}/" + "x/" * 13 + PY, CODE)], "more than 12 folders deep"),
        ([(f"{MOODLE[2]}/{PY}", CODE), (f"{MOODLE[2]}/{PY}", CODE + CODE)], "cannot be unpacked (File exists)"),
        ([(f"{MOODLE[2]}/{PY}", CODE), (f"{MOODLE[2]}/{PY}/{PY}", CODE)], "cannot be unpacked (File exists)"),
        ([(f"{MOODLE[2]}/{at}.py", "") for at in range(10_001)], "holds more than 10000 files"),
    ],
)
def test_class_zip_fault_costs_one_student(tmp_path: Path, entries: list[tuple[str, str]], fault: str) -> None:
    read_ = gather(with_entries(tmp_path / "c.zip", *HONEST, *entries), class_zip=True)[1]
    assert [read_[name].source for name in ("Ana_1", "Ben_2")] == [CODE, CODE]
    assert fault in read_["Eve_3"].fault
    assert read_["Eve_3"].source == ""


@pytest.mark.parametrize("name", [f"e\\{PY}", f"{'é' * 110}-{PY}", "sub/" * 6 + PY])
def test_class_zip_strange_name_costs_nobody(tmp_path: Path, name: str) -> None:
    read_ = gather(with_entries(tmp_path / "c.zip", *HONEST, (f"{MOODLE[2]}/w/{name}", CODE)), class_zip=True)[1]
    assert set(read_) == {"Ana_1", "Ben_2", "Eve_3"}
    assert [read_[name].source for name in ("Ana_1", "Ben_2")] == [CODE, CODE]
    assert not read_["Eve_3"].fault
    long = with_entries(tmp_path / "d.zip", (f"a_1_5_{PY}", CODE), (f"eve_2_6_{name.rpartition('/')[2]}", CODE))
    assert gather(long, class_zip=True)[1]["eve_2"].source == CODE


def test_class_zip_name_too_long_costs_one_student(tmp_path: Path) -> None:
    name = f"{'é' * 150}-{PY}"
    entries = [(f"{MOODLE[2]}/w/{name}", CODE), (f"{name}_9_assignsubmission_file/{PY}", CODE)]
    gathered_, read_ = gather(with_entries(tmp_path / "c.zip", *HONEST, *entries), class_zip=True)
    assert [read_[name].source for name in ("Ana_1", "Ben_2")] == [CODE, CODE]
    assert "a name has more than 255 bytes: unpack it by hand" in read_["Eve_3"].fault
    [refused] = gathered_.refused
    assert "is not graded, since a name has more than 255 bytes" in refused


def test_class_zip_link_costs_one_student(tmp_path: Path) -> None:
    path = with_entries(tmp_path / "c.zip", *HONEST)
    link = zipfile.ZipInfo(f"{MOODLE[2]}/w")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(link, "/etc")
        archive.writestr(f"{MOODLE[2]}/w/{PY}", CODE)
    read_ = gather(path, class_zip=True)[1]
    assert read_["Ana_1"].source == CODE
    assert "cannot be unpacked" in read_["Eve_3"].fault


def test_class_zip_damage_is_refused_with_its_place(tmp_path: Path) -> None:
    path = zipped(tmp_path / "d.zip", {f"a_1_5_{PY}": CODE * 100})
    broken = bytearray(path.read_bytes())
    broken[60] ^= 0xFF
    path.write_bytes(broken)
    with pytest.raises(UsageError, match=r"is damaged at a_1_5_"):
        gather(path, class_zip=True)
    (tmp_path / "ada.zip").write_bytes(b"PK but not really")
    with pytest.raises(UsageError, match=r"ada\.zip is damaged, or no zip file: download it again"):
        gather(tmp_path / "ada.zip", class_zip=True)
    assert "damaged" in gather(tmp_path / "ada.zip")[1]["ada"].problem


def test_class_zip_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MAX_CLASS_ENTRIES", 2)
    with pytest.raises(UsageError, match="holds more than 2 files: unpack it, and give the folder"):
        gather(with_entries(tmp_path / "c.zip", *HONEST, (f"{MOODLE[2]}/{PY}", CODE)), class_zip=True)


# The evidence of the whole class


ANA = f"ana_1007_5000555_{PY}"


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("q_1007_5000501_z_1009_5000559_bandits.py", ""),  # display names as `q_ 1007_ 501_z`
        ("q_1007_5000501_1009_5000559_bandits.py", ""),
        ("ana_1007_5000501_z_1009_5000559_bandits.py", ""),
        ("ana_1007_9000000_z_1009_5000559_bandits.py", ""),
        ("q_1007_99999999_z_12_5000559_bandits.py", ""),
        ("_1009_5000559_bandits_1007_5000501_x.py", ""),  # a display name without word characters, as `!!!`
        ("eve_1009_5000559_bandits_1007_5000501_x.py", ""),  # a file's name
        ("eve_1009_5000559_1007_bandits.py", "eve_1009"),
        ("eve_1009_5000559_hw_2_3_bandits.py", "eve_1009"),
        ("eve_LATE_1009_5000559_2027_03_01_bandits.py", "eve_1009"),
        ("eve_1009_5000559_2027_3_1.py", "eve_1009"),
        ("team_3_1000009_5000559_bandits.py", ""),  # 1000009 may be the number of a file
        ("team_3_12_5000559_bandits.py", "team_3_12"),
    ],
)
def test_canvas_name_of_two_ids_is_refused_alone(tmp_path: Path, name: str, student: str) -> None:
    put(tmp_path, ANA, f"cleo_1010_5000560_{PY}", text="x = 'theirs'\n")
    put(tmp_path, name, text="x = 'own'\n")
    found, read_ = gather(tmp_path)
    expected = {"ana_1007": "x = 'theirs'\n", "cleo_1010": "x = 'theirs'\n"} | (
        {student: "x = 'own'\n"} if student else {}
    )
    assert {name: one.source for name, one in read_.items()} == expected
    assert [name in sentence for sentence in found.refused] == [] if student else [True]
    (tmp_path / ANA).unlink()
    assert "ana_1007" not in paths_of(tmp_path)
    assert "canvas:1007" not in [one.identity for one in gather(tmp_path)[0].candidates]


def test_an_underscore_in_one_account_loses_nothing(tmp_path: Path) -> None:
    put(tmp_path, f"o_brien_1_5_{PY}", f"ben_2_6_{PY}", f"o_hara_LATE_3_7_{PY}")
    found, read_ = gather(tmp_path)
    assert set(read_) == {"o_brien_1", "ben_2", "o_hara_3"}
    assert read_["o_hara_3"].notes == ("handed in late",)
    zipped(tmp_path.parent / "c.zip", {path.name: path.read_text() for path in tmp_path.iterdir()})
    assert set(gather(tmp_path.parent / "c.zip", class_zip=True)[1]) == set(read_)
    assert found.refused == ()


OWN, FILE = f"bela_1002_77_1004_558_{PY}", f"bela_1004_558_x_1002_77_{PY}"


@pytest.mark.parametrize(
    ("names", "expected", "refused"),
    [
        ([f"bela_1002_1004_558_{PY}"], {"Bela": 0}, ""),  # a display name
        ([f"bela_1002_1004_558_{PY}", f"ada_1002_557_{PY}"], {"Bela": 0, "Ada": 1}, ""),
        ([f"ada_1002_LATE_1004_558_{PY}", f"ada_1002_557_{PY}"], {"Bela": 0, "Ada": 1}, ""),
        ([f"bela_LATE_1004_558_1002_{PY}"], {"Bela": 0}, ""),  # a file's name
        ([f"ada_9_1004_558_{PY}"], {"Bela": 0}, ""),
        ([f"bela_1004_558_notes_2027_03_01_{PY}"], {"Bela": 0}, ""),
        ([OWN, f"ada_1002_557_{PY}"], {"Bela": 0, "Ada": 1}, ""),  # either: Ada's own file is clear
        ([FILE, f"ada_1002_557_{PY}"], {"Bela": 0, "Ada": 1}, ""),
        ([f"ada_1002_77_1004_999_{PY}", f"ada_1002_557_{PY}"], {"Bela": 0, "Ada": 1}, ""),
        ([OWN], {}, "1004 or 1002"),
        ([FILE], {}, "1002 or 1004"),
        ([f"bela_1004_558_1002_77_{PY}"], {}, "1002 or 1004"),
        ([f"zoe_1002_5_x_1002_1004_77_{PY}"], {}, "1004 or 1002"),
    ],
)
def test_canvas_name_moves_no_work_to_another_id(
    tmp_path: Path, names: Sequence[str], expected: dict[str, int], refused: str
) -> None:
    put(tmp_path, *names, f"cleo_1007_600_{PY}", f"dana_1008_601_{PY}")
    found, read_ = gather(tmp_path, roster=people("Ada 1002", "Bela 1004", "Cleo 1007", "Dana 1008"))
    assert {student: one.path for student, one in read_.items() if student not in ("Cleo", "Dana")} == {
        student: names[place] for student, place in expected.items()
    }
    assert [one.identity for one in found.candidates if one.student == "Bela"] == ["canvas:1004"] * ("Bela" in expected)
    assert bool(found.refused) == bool(refused)
    assert all(f"can be read as the id {refused} of Canvas" in one for one in found.refused)


@pytest.mark.parametrize(
    ("files", "students", "refused"),
    [
        (
            (f"ana_1_5_{PY}", f"eve_1_6_{PY}", f"ben_2_7_{PY}"),
            {"ben_2"},
            "ana_1 and eve_1 both claim the id 1 of Canvas",
        ),
        (
            [f"{name}_assignsubmission_file/{PY}" for name in ("Ana_1", "Eve_1", "Ben_2")],
            {"Ben_2"},
            "Ana_1 and Eve_1 both",
        ),
        ([f"{name}_assignsubmission_file/{PY}" for name in ("1", "Ana_1", "Ben_2")], {"1", "Ana_1", "Ben_2"}, ""),
    ],
)
def test_names_claiming_one_id_are_both_refused(
    tmp_path: Path, files: Sequence[str], students: set[str], refused: str
) -> None:
    found, read_ = gather(put(tmp_path, *files))
    assert set(read_) == students
    assert [refused in sentence for sentence in found.refused] == ([True] if refused else [])


@pytest.mark.parametrize("stray", [PY, IPYNB, f"{MODULE}/{PY}", f"{MODULE}/notes.txt"])
@pytest.mark.parametrize("names", [("ada/{}", "ben/{}"), ("ada_1_5_{}", "ben_2_6_{}"), ("ada.py", "ben.py")])
def test_stray_module_makes_no_class_one_student(tmp_path: Path, stray: str, names: tuple[str, ...]) -> None:
    work = "def f():\n    return 1\n"
    put(tmp_path, *(name.format(PY) for name in names), text=work)
    honest = set(paths_of(tmp_path))
    put(tmp_path, stray, text=work)
    with gathered([tmp_path], MODULE, functions=("f",)) as found:
        assert {one.student for one in found.candidates} == honest
        told = (*found.refused, *found.ignored)
    assert any(stray.split("/")[0] in sentence for sentence in told)


def test_the_layout_can_be_said(tmp_path: Path) -> None:
    put(tmp_path, PY, f"old/{PY}", f"older/{PY}")
    with gathered([tmp_path], MODULE, layout="one") as found:
        assert [one.student for one in found.candidates] == [tmp_path.name]
    with gathered([tmp_path], MODULE, layout="plain") as found:
        assert [one.student for one in found.candidates] == ["old", "older"]
    with (
        pytest.raises(UsageError, match="holds nothing with the names that canvas gives"),
        gathered([tmp_path], MODULE, layout="canvas"),
    ):
        pass


def test_every_layout_stands_in_the_guides_table() -> None:
    guide = (KIT / "autograder" / "README.md").read_text(encoding="utf-8")
    table = guide[guide.index("| platform |") :].split("\n\n")[0].lower()
    assert all(f"| {name}" in table for name in LAYOUTS if name not in ("plain", "one"))


def test_dotted_entry_is_named_but_no_tools(tmp_path: Path) -> None:
    put(tmp_path, f"ada/{PY}", f".eve/{PY}", ".git/config", f".ipynb_checkpoints/{IPYNB}", ".DS_Store", ".bob/x.txt")
    found, read_ = gather(tmp_path)
    assert set(read_) == {"ada"}
    assert found.ignored == (".bob",)
    assert found.refused == (
        ".eve is not graded, since its name begins with a dot: rename it if it is somebody's work.",
    )


@contextlib.contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root may look everywhere: while this lasts, whoever runs the tests may not."""
    if os.name != "posix":
        pytest.skip("files have no modes")
    was = os.geteuid()
    if was == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(was)


@pytest.mark.parametrize("loose", [(), (PY,), (IPYNB, "bela.py")], ids=["folders alone", "a module", "others"])
def test_closed_folder_is_one_unreadable_hand_in(loose: Sequence[str]) -> None:
    """Also one with the names of Submitty's folders; each layout looks into every folder for what it knows."""
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        top.chmod(0o755)
        put(top, *loose, f"ada/{PY}", f"chidi/{PY}", f"dana/{PY}", f"emeka/{PY}")
        closed = [top / "chidi", top / "dana"]
        try:
            for folder in closed:
                folder.chmod(0)
            with as_an_ordinary_user():
                _, found = gather(top)
        finally:
            for folder in closed:
                folder.chmod(0o755)
    assert found["ada"].problem == found["ada"].fault == ""
    assert {name for name, one in found.items() if "Permission denied" in one.fault} == {"chidi", "dana"}
