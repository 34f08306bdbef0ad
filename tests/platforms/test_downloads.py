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
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from class_folders import BRIGHTSPACE, DOWNLOADS, METADATA, Download, clones, content, put
from hand_ins import IPYNB, MODULE, PY, notebook, zipped
from places import KIT

from autograder.gradebook.roster import Person, Roster, keys_of
from autograder.platforms import LAYOUTS
from autograder.platforms.downloads import MAX_SUBMITTERS, read_metadata
from autograder.platforms.layouts import Gathered, gathered
from autograder.submissions import finding
from autograder.submissions.reading import read
from autograder.submissions.submission import MIB, Submission
from autograder.vocabulary.errors import UsageError


def people(lines: str) -> Roster:
    """A roster of `student id/other-id group` for each student, with commas between."""
    split = [(*line.split(), "", "")[:3] for line in lines.split(", ")]
    return Roster(tuple(Person(name, group, keys_of([name, *ids.split("/")])) for name, ids, group in split))


def gather(*paths: Path, roster: Roster | None = None, **asked: Any) -> tuple[Gathered, dict[str, Submission]]:
    with gathered(paths, MODULE, roster, **asked) as found:
        return found, {each.student: read(each, MODULE) for each in found.candidates}


MOODLE = ("Ana_1_assignsubmission_file", "Ben_2_assignsubmission_file", "Eve_3_assignsubmission_file")


@pytest.mark.parametrize("name", DOWNLOADS)
def test_download_says_whose_work_is_whose(tmp_path: Path, name: str) -> None:
    asked = DOWNLOADS[name]
    put(tmp_path, asked.files, asked.texts)
    found, read_ = gather(tmp_path, roster=people(asked.roster) if asked.roster else None, deadline=asked.deadline)
    assert {student: file.endswith(".ipynb") or content(file) for student, file in asked.students.items()} == {
        student: each.path.endswith(".ipynb") or each.source for student, each in read_.items()
    }
    for student, words in asked.notes.items():
        assert bool(words) == bool(read_[student].notes)
        assert [word for word in words if word not in "; ".join(read_[student].notes)] == []
    listed = (found.refused, found.ignored, found.absent, found.unknown)
    assert [*map(list, listed)] == [asked.refused or [], asked.ignored or [], asked.absent or [], asked.unknown or []]


def test_two_downloads_give_one_submission_per_student(tmp_path: Path) -> None:
    put(tmp_path / "monday", [f"a_1_5_{PY}", f"b_2_6_{PY}"])
    put(tmp_path / "friday", [f"a_LATE_1_9_{MODULE}-1.py", f"b_2_8_{MODULE}-1.py"])
    read_ = gather(tmp_path / "friday", tmp_path / "monday")[1]
    assert {name: each.path for name, each in read_.items()} == {"a_1": f"a_1_5_{PY}", "b_2": f"b_2_8_{MODULE}-1.py"}


def test_latest_nbgrader_collection_on_time_counts(tmp_path: Path) -> None:
    for folder, clock in (("first", "10:00"), ("second", "12:00"), ("third", "14:00")):
        texts = {PY: f"x = '{folder}'\n", "timestamp.txt": f"2027-03-02 {clock}:00 UTC"}
        put(tmp_path / folder / "ada" / "ps5", (), texts)
    places = [tmp_path / name for name in ("third", "first", "second")]
    ada = gather(*places, deadline=datetime(2027, 3, 2, 13, 0, tzinfo=UTC))[1]["ada"]
    assert ada.source == "x = 'second'\n"
    assert "not graded: ada, ada (late)" in ada.notes[0] or "not graded: ada (late), ada" in ada.notes[0]


def test_two_submissions_that_nothing_orders_are_refused(tmp_path: Path) -> None:
    put(tmp_path, [f"monday/ada/{PY}", f"friday/ada/{PY}"])
    with pytest.raises(UsageError, match="ada handed in twice"):
        gather(tmp_path / "monday", tmp_path / "friday")


def test_own_folder_is_one_students_whatever_it_holds(tmp_path: Path) -> None:
    put(tmp_path / "eve", [PY, f"submission_1/{PY}"], {"submission_metadata.yml": METADATA})
    assert {name: each.path for name, each in gather(tmp_path / "eve")[1].items()} == {"eve": f"eve/{PY}"}


def test_timestamp_link_or_pipe_is_not_opened(tmp_path: Path) -> None:
    put(tmp_path / "class", [f"ada/ps5/{PY}", f"ben/ps5/{PY}"])
    put(tmp_path, (), {"secret": "2027-03-02 15:58:23"})
    (tmp_path / "class/ada/ps5/timestamp.txt").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "class/ben/ps5/timestamp.txt")
    read_ = gather(tmp_path / "class", deadline=datetime(2020, 1, 1, tzinfo=UTC))[1]
    assert [each.notes for each in read_.values()] == [(), ()]


# Gradescope's metadata


def metadata(folder: Path, text: str) -> dict[str, tuple[str, list[tuple[str, str, str]]]]:
    return read_metadata(put(folder, (), {"submission_metadata.yml": text}) / "submission_metadata.yml")


@pytest.mark.parametrize(
    "text", ["{" * 10_000, "a: [", "!!python/object/apply:os.system ['true'", "\x00", "- " * 5000 + "x", "- x"]
)
def test_metadata_that_is_no_yaml_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"^[^\n]*is not what Gradescope writes[^\n]*$"):
        metadata(tmp_path, text)


@pytest.mark.parametrize("explodes", [False, True])
def test_metadata_makes_no_object_and_expands_no_alias(tmp_path: Path, explodes: bool) -> None:
    steps = itertools.pairwise("abcdefghijklmnopqrstuvwxyz")
    lines = ["a: &a [1]", *(f"{new}: &{new} [{', '.join(['*' + old] * 9)}]" for old, new in steps)] * explodes
    made = f"  :created_at: !!python/object/apply:os.mkdir ['{tmp_path}/made']"
    lines += ["submission_1:", "  :submitters: *z" if explodes else made, ""]
    started = time.process_time()
    assert metadata(tmp_path, "\n".join(lines)) == {"submission_1": ("", [])}
    assert time.process_time() - started < 20
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "text",
    [
        "submission_1:\n  :results: &1 Ana\n  :submitters:\n  - :name: *1\n    :sid: '7'\n",  # an alias of another line
        "submission_1:\n    :submitters:\n      - :name: Ana\n        :sid: '7'\n",
        "'submission_1':\n  \":submitters\":\n  - ':name': Ana\n    ':sid': '7'\n",
    ],
)
def test_metadata_is_read_as_any_yaml(tmp_path: Path, text: str) -> None:
    assert metadata(tmp_path, text) == {"submission_1": ("", [("Ana", "7", "")])}


def test_metadata_is_capped_in_size_submitters_and_names(tmp_path: Path) -> None:
    text = "submission_1:\n  :submitters:\n" + f"  - :name: {'x' * 5000}\n" * (MAX_SUBMITTERS + 9)
    assert metadata(tmp_path, text) == {"submission_1": ("", [("x" * 300, "", "")] * MAX_SUBMITTERS)}
    with (tmp_path / "large.yml").open("wb") as stream:
        stream.truncate(33 * MIB)
    with pytest.raises(UsageError, match="larger than 32 MiB"):
        read_metadata(tmp_path / "large.yml")


def test_metadata_of_another_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="describes no submission beside it: download the export again"):
        gather(put(tmp_path, [f"submission_9/{PY}"], {"submission_metadata.yml": METADATA}))


# Names of Canvas that can be read in several ways

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
    put(tmp_path, [ANA, cleo := f"cleo_1010_5000560_{PY}", name])
    found, read_ = gather(tmp_path)
    expected = {"ana_1007": ANA, "cleo_1010": cleo} | ({student: name} if student else {})
    assert {key: each.source for key, each in read_.items()} == {key: content(of) for key, of in expected.items()}
    assert [name in sentence for sentence in found.refused] == ([] if student else [True])
    (tmp_path / ANA).unlink()
    found, read_ = gather(tmp_path)
    assert "ana_1007" not in read_
    assert "canvas:1007" not in [each.identity for each in found.candidates]


OWN, FILE = f"bela_1002_77_1004_558_{PY}", f"bela_1004_558_x_1002_77_{PY}"


@pytest.mark.parametrize(
    ("names", "expected", "refused"),
    [
        ([f"bela_1002_1004_558_{PY}", f"ada_1002_557_{PY}"], {"Ada": 1}, "1004 or 1002"),  # a display name
        ([f"ada_1002_LATE_1004_558_{PY}", f"ada_1002_557_{PY}"], {"Bela": 0, "Ada": 1}, ""),
        ([f"bela_LATE_1004_558_1002_{PY}"], {"Bela": 0}, ""),  # a file's name
        ([f"ada_9_1004_558_{PY}"], {"Bela": 0}, ""),
        ([f"bela_1004_558_notes_2027_03_01_{PY}"], {"Bela": 0}, ""),
        ([OWN, f"ada_1002_557_{PY}"], {"Ada": 1}, "1004 or 1002"),  # Ada's own file is clear
        ([FILE, f"ada_1002_557_{PY}"], {"Ada": 1}, "1002 or 1004"),
        ([f"ada_1002_77_1004_999_{PY}", f"ada_1002_557_{PY}"], {"Ada": 1}, "1004 or 1002"),
        ([f"bela_1004_558_1002_77_{PY}"], {}, "1002 or 1004"),
        ([f"zoe_1002_5_x_1002_1004_77_{PY}"], {}, "1004 or 1002"),
    ],
)
def test_canvas_name_moves_no_work_to_another_id(
    tmp_path: Path, names: Sequence[str], expected: dict[str, int], refused: str
) -> None:
    put(tmp_path, [*names, f"cleo_1007_600_{PY}", f"dana_1008_601_{PY}"])
    found, read_ = gather(tmp_path, roster=people("Ada 1002, Bela 1004, Cleo 1007, Dana 1008"))
    assert {student: each.path for student, each in read_.items() if student not in ("Cleo", "Dana")} == {
        student: names[place] for student, place in expected.items()
    }
    bela = [each.identity for each in found.candidates if each.student == "Bela"]
    assert bela == ["canvas:1004"] * ("Bela" in expected)
    assert bool(found.refused) == bool(refused)
    assert all(f"can be read as the id {refused} of Canvas" in sentence for sentence in found.refused)


# GitHub


def test_classroom_50_folder_says_where_usernames_begin(tmp_path: Path) -> None:
    folder = tmp_path / "cs336-grpo_submissions_2026_11_22_T_10_11_12"
    put(folder, [*clones("cs336-grpo-ann-", "lee", "kim"), "cs336-grpo-ann-lee/result.json", "scores.csv"])
    found, read_ = gather(folder)
    assert (set(read_), found.ignored) == ({"ann-lee", "ann-kim"}, ("scores.csv",))
    assert set(gather(folder, roster=people("Ann ann-lee red, Ben b red"))[1]) == {"Ann", "Ben", "ann-kim"}


# Zips of a class


@pytest.mark.parametrize(
    ("name", "top"),
    [("dates", ""), ("moodle folders_", ""), ("a moodle name in another", ""), ("gradescope", "assignment_9_export/")],
)
def test_class_zip_is_read_like_its_folder_when_asked(tmp_path: Path, name: str, top: str) -> None:
    asked = DOWNLOADS[name]
    path = tmp_path / "submissions.zip"
    members = {**{file: content(file) for file in asked.files}, **asked.texts}
    path.write_bytes(zipped({**{f"{top}{file}": text for file, text in members.items()}, "__MACOSX/._x": b""}))
    with gathered([path], MODULE, class_zip=True) as found:
        places = [each.path for each in found.candidates]
        assert all(place.exists() for place in places)
        assert {each.student for each in found.candidates} == asked.students.keys()
    assert not any(place.exists() for place in places)
    with pytest.raises(UsageError, match=r"looks like a whole class.*--class-zip"):
        gather(path)


@pytest.mark.parametrize("name", [f"../a_1_5_{PY}", f"/a_1_5_{PY}", f"C:/a_1_5_{PY}"])
def test_class_zip_entry_outside_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "c.zip").write_bytes(zipped({name: "x", f"b_1_5_{PY}": "x"}))
    with pytest.raises(UsageError, match="would lie outside it"):
        finding.unpack(tmp_path / "c.zip", tmp_path / "target")
    assert not (tmp_path / f"a_1_5_{PY}").exists()


def test_class_zip_bomb_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.zip"
    path.write_bytes(zipped({f"a_1_5_{PY}": bytes(20 * MIB), f"b_2_6_{PY}": "x = 1\n"}))
    read_ = gather(path, class_zip=True)[1]
    assert "larger than 1 MiB" in read_["a_1"].problem
    assert read_["b_2"].source == "x = 1\n"
    monkeypatch.setattr(finding, "MAX_TOTAL", MIB)
    with pytest.raises(UsageError, match="unpack it, and give the folder"):
        gather(path, class_zip=True)


LINK = zipfile.ZipInfo(f"{MOODLE[2]}/w")
LINK.external_attr = 0o120777 << 16


def class_zip(path: Path, *entries: tuple[str | zipfile.ZipInfo, str]) -> Path:
    """Two honest students' work and these entries, of which names may be there twice."""
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, text in [*((f"{folder}/{PY}", folder) for folder in MOODLE[:2]), *entries]:
            archive.writestr(name, text if name in (LINK,) else f"x = {text!r}\n")
    return path


EVE, LONG = f"{MOODLE[2]}/{PY}", f"{'é' * 150}-{PY}"


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([(f"{MOODLE[2]}/" + "x/" * 13 + PY, "")], ", or 12 folders deep"),
        ([(EVE, "other"), (EVE, "")], ""),  # the last counts
        ([(EVE, ""), (f"{EVE}/{PY}", "")], ""),
        ([(MOODLE[2], ""), (EVE, "")], "cannot be unpacked"),
        ([(f"{MOODLE[2]}/{at}.py", "") for at in range(11)], "holds more than 10 files"),
        ([(LINK, "/etc"), (f"{MOODLE[2]}/w/{PY}", "")], "cannot be unpacked"),
        ([(f"{MOODLE[2]}/w/{LONG}", "")], "holds a name of more than 255 bytes"),
        ([(f"{MOODLE[2]}/w/e\\{PY}", "")], ""),
        ([(f"{MOODLE[2]}/w/{'é' * 110}-{PY}", "")], ""),
        ([(f"{MOODLE[2]}/w/{'sub/' * 6}{PY}", "")], ""),
    ],
)
def test_class_zip_entry_costs_nobody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: list[tuple[str | zipfile.ZipInfo, str]], fault: str
) -> None:
    monkeypatch.setattr(finding, "MAX_ENTRIES_OF_ONE", 10)
    read_ = gather(class_zip(tmp_path / "c.zip", *entries), class_zip=True)[1]
    assert [read_[name].source for name in ("Ana_1", "Ben_2")] == [f"x = {folder!r}\n" for folder in MOODLE[:2]]
    eve = read_.get("Eve_3") or read_[MOODLE[2]]  # of which a file bears the folder's name
    assert fault in eve.fault
    assert bool(eve.fault) == bool(fault)
    assert eve.source == ("" if fault else "x = ''\n")


def test_class_zip_name_that_no_file_system_takes_is_refused(tmp_path: Path) -> None:
    found, read_ = gather(class_zip(tmp_path / "c.zip", (f"{LONG}_9_assignsubmission_file/{PY}", "")), class_zip=True)
    assert set(read_) == {"Ana_1", "Ben_2"}
    [refused] = found.refused
    assert "is not graded, since a name has more than 255 bytes" in refused


def test_class_zip_damage_is_refused_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.zip"
    broken = bytearray(zipped({f"a_1_5_{PY}": "x = 1\n" * 100}))
    broken[60] ^= 0xFF
    path.write_bytes(broken)
    with pytest.raises(UsageError, match=r"is damaged at a_1_5_"):
        gather(path, class_zip=True)
    (tmp_path / "ada.zip").write_bytes(b"PK but not really")
    with pytest.raises(UsageError, match=r"ada\.zip is damaged, or no zip file: download it again"):
        gather(tmp_path / "ada.zip", class_zip=True)
    assert "damaged" in gather(tmp_path / "ada.zip")[1]["ada"].problem
    monkeypatch.setattr(finding, "MAX_CLASS_ENTRIES", 1)
    with pytest.raises(UsageError, match="holds more than 1 files: unpack it, and give the folder"):
        gather(class_zip(tmp_path / "c.zip"), class_zip=True)


# The evidence of the whole class


@pytest.mark.parametrize(
    ("stray", "names"),
    [
        *((stray, ("ada/{}", "ben/{}")) for stray in (PY, IPYNB, f"{MODULE}/{PY}", f"{MODULE}/notes.txt")),
        (PY, ("ada_1_5_{}", "ben_2_6_{}")),
        (f"{MODULE}/{PY}", ("ada.py", "ben.py")),
    ],
)
def test_stray_module_makes_no_class_one_student(tmp_path: Path, stray: str, names: tuple[str, ...]) -> None:
    work = "def f():\n    return 1\n"
    put(tmp_path, (), {name.format(PY): work for name in names})
    honest = set(gather(tmp_path)[1])
    put(tmp_path, (), {stray: notebook(work) if stray == IPYNB else work})
    found, read_ = gather(tmp_path, functions=("f",))
    assert set(read_) == honest
    assert any(stray.split("/")[0] in sentence for sentence in (*found.refused, *found.ignored))


def test_the_layout_can_be_said(tmp_path: Path) -> None:
    put(tmp_path, [PY, f"old/{PY}", f"older/{PY}"])
    assert list(gather(tmp_path, layout="one")[1]) == [tmp_path.name]
    assert list(gather(tmp_path, layout="plain")[1]) == ["old", "older"]
    with pytest.raises(UsageError, match="holds nothing with the names that canvas gives"):
        gather(tmp_path, layout="canvas")


def test_every_layout_stands_in_the_guides_table() -> None:
    guide = (KIT / "autograder" / "README.md").read_text(encoding="utf-8")
    table = guide[guide.index("| platform |") :].split("\n\n")[0].lower()
    assert all(f"| {name}" in table for name in LAYOUTS if name not in ("plain", "one"))


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
    """Also where each layout looks into every folder for what it knows."""
    with tempfile.TemporaryDirectory() as place:
        top = Path(place)
        top.chmod(0o755)
        put(top, [*loose, f"ada/{PY}", f"chidi/{PY}", f"dana/{PY}", f"emeka/{PY}"])
        closed = [top / "chidi", top / "dana"]
        try:
            for folder in closed:
                folder.chmod(0)
            with as_an_ordinary_user():
                read_ = gather(top)[1]
        finally:
            for folder in closed:
                folder.chmod(0o755)
    assert read_["ada"].problem == read_["ada"].fault == ""
    assert {name for name, each in read_.items() if "Permission denied" in each.fault} == {"chidi", "dana"}


# Results of an earlier run among submissions

LAYOUTS_OF_TWO = {
    "canvas": DOWNLOADS["latest on time"],
    "moodle": DOWNLOADS["a moodle name that is a number"],
    "gradescope": DOWNLOADS["gradescope"],
    "github": DOWNLOADS["github"],
    "brightspace": Download(BRIGHTSPACE),
}
PLAIN = {"nbgrader": DOWNLOADS["nbgrader"], "folders and files": Download({f"ana/{PY}": "ana", "ben.py": "ben"})}


def earlier_results(folder: Path) -> Path:
    """What a run of `grade` leaves behind, so far as its folders tell."""
    for name in ("reports", "feedback", "details"):
        (folder / name).mkdir(parents=True)
    return put(folder, ("run.json", "grades.csv", "reports/ana_1.json", "feedback/ana_1.html"))


def class_of(layout: str, place: Path) -> Path:
    asked = (LAYOUTS_OF_TWO | PLAIN)[layout]
    return put(place / "class", asked.files, asked.texts)


def students(place: Path, out: Path | None = None) -> list[tuple[str, str, tuple[str, ...]]]:
    with gathered([place], MODULE, out=out) as found:
        return [(each.student, each.shown, each.notes) for each in found.candidates]


@pytest.mark.parametrize("layout", LAYOUTS_OF_TWO)
def test_unknown_entries_spoil_no_layout(layout: str, tmp_path: Path) -> None:
    folder = class_of(layout, tmp_path)
    before = students(folder)
    for name in ("__pycache__", "__MACOSX", "empty"):
        (folder / name).mkdir()
    put(folder / "notes", ["to do.txt", "deep/er.md"])
    (folder / "roster.csv").write_text("student\n")
    for name in ("old", "runs/monday", "runs/tuesday"):
        earlier_results(folder / name)
    zipfile.ZipFile(folder / "feedback.zip", "w").close()
    assert students(folder) == before
    strange = ["__MACOSX", "__pycache__", "empty", "feedback.zip", "notes", "old", "roster.csv", "runs"]
    assert sorted(gather(folder)[0].ignored) == strange


@pytest.mark.parametrize("layout", LAYOUTS_OF_TWO | PLAIN)
def test_work_beside_a_layout_is_graded(layout: str, tmp_path: Path) -> None:
    folder = class_of(layout, tmp_path)
    before = students(folder)
    put(folder, [f"eve/deep/{PY}", "zoe.py"])
    names = {student for student, *_ in students(folder)}
    assert ({"eve", "zoe"} <= names, len(names)) == (True, len(before) + 2)


def test_a_student_whose_folder_looks_like_results_is_graded(tmp_path: Path) -> None:
    earlier_results(put(tmp_path, [f"ada/{PY}"]) / "eve")
    found, read_ = gather(put(tmp_path, [f"eve/work/{PY}"]))
    assert (list(read_), found.ignored) == (["ada", "eve"], ())


@pytest.mark.parametrize("layout", LAYOUTS_OF_TWO | PLAIN)
def test_folder_for_results_changes_nothing(layout: str, tmp_path: Path) -> None:
    folder = class_of(layout, tmp_path)
    for out in (folder / "grades", folder / "results/monday"):
        before = students(folder, out)
        (out / "reports").mkdir(parents=True)  # a run that was killed
        assert students(folder, out) == before
        shutil.rmtree(out)
        earlier_results(out)
        assert students(folder, out) == before
        shutil.rmtree(folder / out.relative_to(folder).parts[0])


def test_results_behind_a_link_are_left_out_as_well(tmp_path: Path) -> None:
    folder = class_of("canvas", tmp_path)
    before = students(folder)
    earlier_results(tmp_path / "elsewhere")
    (folder / "grades").symlink_to(tmp_path / "elsewhere")
    assert students(folder, folder / "grades") == before
