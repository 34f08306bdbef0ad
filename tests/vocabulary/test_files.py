"""Files of the kit's making: a reader sees the old one or the whole new one; what cannot be written is a sentence."""

from __future__ import annotations

import ast
import os
import stat
from pathlib import Path

import pytest
from house import module_names, package_of, source, tree
from hypothesis import example, given
from hypothesis import strategies as st

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import PRIVATE, RECORD, file_stem, replacing, write_atomically, write_own, writing

ANY_TEXT = st.text(st.characters(exclude_categories=()))

# They write by no other way than `vocabulary.files`; authoring replaces whole folders, and the others write nothing.
WRITERS = ("vocabulary", "grading", "checking", "gradebook", "pages", "course", "platforms", "cli")


# File names

NASTY = [
    "",
    ".",
    "..",
    "...",
    " ",
    " ada",
    "ada ",
    "ada.",
    ".ada",
    "a/b",
    "a\\b",
    "/etc/passwd",
    "../../etc/passwd",
    "C:\\ada",
    "a:b",
    "nul\0",
    "a\nb",
    "\x1b[2J",
    "\u202eada",
    "%",
    "%2F",
    "/",
    "a%",
    "%x",
    "%x2f20",
    "/ ",
    "%2F ",
    "%324620",
    "ada\udcff",
    "\ud800",
    "\ud800\udc00",
    "\U00010000",
    "con",
    "CON",
    "nul",
    "aux.txt",
    "Com1",
    "lpt9.x.y",
    "com¹",
    "con .x",
    "a*b",
    "a?b",
    'a"b',
    "a<b>",
    "a|b",
    "~",
    "x" * 300,
    "x" * 301,
    "é" * 120,
    "é" * 121,
    "\u200b" * 40,
    " " * 300,
    "文" * 90,
]


@pytest.mark.parametrize(
    "name",
    ["ada", "Ada Lovelace", "lovelace_a-1", "o'brien", "a.b@c.org", "Zoë", "محمد", "王小明", "con-rad", "nullify"],
)
def test_an_ordinary_name_is_its_own_file_name(name: str) -> None:
    assert file_stem(name) == name


def is_safe(stem: str) -> bool:
    """Whether the stem names one file inside any folder, on any file system."""
    base = stem.split(".")[0].strip().lower()
    return (
        stem not in ("", ".", "..")
        and stem == stem.strip(" .")
        and not set(stem) & set('/\\:*?"<>|\0')
        and all(character.isprintable() for character in stem)
        and base
        not in {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³")}
        and len(f"{stem}.json".encode()) <= 255
        and len(f"{stem}.json".encode("utf-16-le")) // 2 <= 255
    )


@pytest.mark.parametrize("name", NASTY)
def test_a_nasty_name_becomes_the_name_of_a_file(name: str, tmp_path: Path) -> None:
    stem = file_stem(name)
    assert is_safe(stem)
    (tmp_path / f"{stem}.json").write_text("{}")
    assert [path.name for path in tmp_path.iterdir()] == [f"{stem}.json"]


@given(ANY_TEXT | st.text(st.sampled_from("%x2f/ .a\udcffcon1")))
def test_any_name_becomes_the_name_of_a_file(name: str) -> None:
    assert is_safe(file_stem(name))


def test_nasty_names_and_their_stems_have_stems_of_their_own() -> None:
    names = {*NASTY, *map(file_stem, NASTY)}
    assert len({file_stem(name) for name in names}) == len(names)


@given(*[ANY_TEXT | st.text(st.sampled_from("%x2f0/ .a"), max_size=8)] * 2)
@example("/ ", "%324620")
@example(" a", "%2061")
@example("\ud800\udc00", "\U00010000")
def test_no_two_names_share_a_stem(one: str, other: str) -> None:
    assert (file_stem(one) == file_stem(other)) == (one == other)


@given(ANY_TEXT)
@example("x" * 300)
@example(" ada")
def test_a_student_named_like_another_s_stem_gets_another_one(name: str) -> None:
    stem = file_stem(name)
    assert stem == name or file_stem(stem) != stem


def test_names_that_differ_in_case_alone_differ_in_case_alone() -> None:
    assert file_stem("Ada") != file_stem("ada")
    assert file_stem("Ada").lower() == file_stem("ada")


# Writing


def test_writing_keeps_the_text_as_it_is_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "feedback" / "page.html"
    write_atomically(path, "old\n")
    write_atomically(path, "a\nb\r\nc\u2028é")
    assert path.read_bytes() == "a\nb\r\nc\u2028é".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_what_is_private_is_written_into_folders_of_its_owner_and_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "new" / "below" / "grades.csv"
    write_atomically(path, "x", mode=PRIVATE)
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path.parents[1], path.parent, path)] == [0o700, 0o700, 0o600]
    for one, mode in ((path.parent, 0o750), (path, 0o640)):
        one.chmod(mode)
    write_atomically(path, "y", mode=PRIVATE)
    write_atomically(path, "z")
    assert [stat.S_IMODE(one.stat().st_mode) for one in (path.parent, path)] == [0o750, 0o640]
    assert path.read_text() == "z"


def test_a_target_that_cannot_be_replaced_leaves_no_other_file(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    (path / "inside").mkdir(parents=True)
    with pytest.raises(OSError):  # noqa: PT011  the message is the platform's
        write_atomically(path, "new")
    assert list(tmp_path.iterdir()) == [path]


def test_until_all_is_written_a_reader_sees_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("old")
    with replacing(path) as stream:
        stream.write("new" * 10_000)
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new" * 10_000


def test_a_writer_that_breaks_off_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(path) as stream:
        stream.writelines(["half of the new", "\udcff"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ((), " Give another folder with --out."),
        (("file with --zip",), " Give another file with --zip."),
        (("",), ""),
    ],
)
def test_what_cannot_be_written_is_one_sentence_with_what_to_do(
    tmp_path: Path, more: tuple[str, ...], advice: str
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "below" / "grades.csv"
    with pytest.raises(UsageError) as refused, writing(path, *more):
        write_atomically(path, "text")
    assert str(refused.value) == f"{path} cannot be written: Not a directory.{advice}"


def test_a_fault_without_a_number_is_told_by_its_text() -> None:
    with pytest.raises(UsageError, match=r"^grades cannot be written: the disk is gone\."), writing(Path("grades")):
        raise OSError("the disk is gone")


def test_whole_files_are_written_in_one_way() -> None:
    modules = [name for name in module_names() if package_of(name) in WRITERS]
    assert modules
    assert [name for name in modules if {"write_text", "write_bytes"} & called_in(name)] == []


def called_in(module: str) -> set[str]:
    """The methods that a module calls."""
    calls = (node.func for node in ast.walk(tree(module)) if isinstance(node, ast.Call))
    return {called.attr for called in calls if isinstance(called, ast.Attribute)}


def test_what_cannot_be_written_has_one_wording() -> None:
    says = [name for name in module_names() if "cannot be written:" in source(name)]
    assert says == ["vocabulary.files"]


# What somebody else wrote


@pytest.mark.parametrize(
    ("there", "refused"),
    [(None, False), ("ours", False), ("edited", True), ("theirs", True), ("the same", False)],
)
def test_what_somebody_else_wrote_is_not_replaced(tmp_path: Path, there: str | None, refused: bool) -> None:
    path = tmp_path / "out.csv"
    if there in ("ours", "edited"):
        write_own(tmp_path, {"out.csv": "a,1\n"}, mode=PRIVATE)
        write_own(tmp_path, {"other.csv": "b,1\n"})
    if there in ("edited", "theirs"):
        path.write_text("a,3\n")
    if there == "the same":
        path.write_text("a,2\n")
    before = path.read_text() if path.exists() else ""
    if refused:
        with pytest.raises(UsageError, match=r"out\.csv is not as autograder wrote it.*--replace"):
            write_own(tmp_path, {"new.csv": "c", "out.csv": "a,2\n"})
        assert (path.read_text(), (tmp_path / "new.csv").exists()) == (before, False)
    write_own(tmp_path, {"out.csv": "a,2\n"}, replace=refused)
    assert path.read_text() == "a,2\n"
    write_own(tmp_path, {"out.csv": "a,4\n"})


@pytest.mark.parametrize("record", ["", "[]", "[1]", "{", '{"out.csv": 3}', "7"])
def test_a_spoilt_record_makes_nothing_the_kits(tmp_path: Path, record: str) -> None:
    (tmp_path / RECORD).write_text(record)
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UsageError):
        write_own(tmp_path, {"out.csv": "ours"})
