"""Files of the kit's making: readers see the old or the whole new one. CSV: the same cells however it was written."""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import (
    MAX_BYTES,
    PRIVATE,
    RECORD,
    file_stem,
    read_rows,
    read_table,
    read_text,
    replacing,
    write_atomically,
    write_own,
    writing,
)

FEW = settings(max_examples=40, deadline=None)
ANY_TEXT = st.text(st.characters(exclude_categories=()))

# File names

NASTY = [
    "", ".", "..", "...", " ", " ada", "ada ", "ada.", ".ada", "a/b", "a\\b", "/etc/passwd", "../../etc/passwd",
    "C:\\ada", "a:b", "nul\0", "a\nb", "\x1b[2J", "\u202eada", "%", "%2F", "/", "a%", "%x", "%x2f20", "/ ", "%2F ",
    "%324620", "ada\udcff", "\ud800", "\ud800\udc00", "\U00010000", "con", "CON", "nul", "aux.txt", "Com1", "lpt9.x.y",
    "com¹", "con .x", "a*b", "a?b", 'a"b', "a<b>", "a|b", "~", "x" * 300, "x" * 301, "é" * 120, "é" * 121,
    "\u200b" * 40, " " * 300, "文" * 90,
]  # fmt: skip
ORDINARY = [
    "ada", "Ada Lovelace", "lovelace_a-1", "o'brien", "a.b@c.org", "Zoë", "محمد", "王小明", "con-rad", "nullify",
]  # fmt: skip


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


def test_nasty_names_become_names_of_files_of_their_own(tmp_path: Path) -> None:
    assert [*map(file_stem, ORDINARY)] == ORDINARY
    names = {*NASTY, *map(file_stem, NASTY)}
    stems = {file_stem(name) for name in names}
    assert len(stems) == len(names)
    assert [stem for stem in stems if not is_safe(stem)] == []
    for stem in stems:
        (tmp_path / f"{stem}.json").write_text("{}")
    assert len(list(tmp_path.iterdir())) == len(names)


@FEW
@given(*[ANY_TEXT | st.text(st.sampled_from("%x2f0/ .a\udcffcon1"), max_size=8)] * 2)
@example("/ ", "%324620")
@example(" a", "%2061")
@example("\ud800\udc00", "\U00010000")
@example("x" * 300, " ada")
def test_no_two_names_share_a_stem(name: str, other: str) -> None:
    stem = file_stem(name)
    assert is_safe(stem)
    assert (stem == file_stem(other)) == (name == other)
    assert stem == name or file_stem(stem) != stem  # a student who is called like another's file


# Writing


def test_writing_keeps_text_and_replaces_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "new" / "feedback" / "page.html"
    write_atomically(path, "old\n")
    write_atomically(path, "a\nb\r\nc\u2028é")
    assert path.read_bytes() == "a\nb\r\nc\u2028é".encode()
    assert [entry.name for entry in path.parent.iterdir()] == ["page.html"]
    with pytest.raises(IsADirectoryError):
        write_atomically(path.parent, "new")
    assert [entry.name for entry in path.parents[1].iterdir()] == ["feedback"]  # and nothing half written


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_private_file_and_its_new_folders_are_their_owners(tmp_path: Path) -> None:
    path = tmp_path / "new" / "below" / "grades.csv"
    write_atomically(path, "x", mode=PRIVATE)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path.parents[1], path.parent, path)] == [0o700, 0o700, 0o600]
    path.parent.chmod(0o750)
    path.chmod(0o640)
    write_atomically(path, "y", mode=PRIVATE)
    write_atomically(path, "z")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path.parent, path)] == [0o750, 0o640]  # they keep theirs


def test_reader_sees_the_old_file_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "grades.csv"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), replacing(path) as stream:
        stream.writelines(["half of the new", "\udcff"])
    assert [(each, each.read_text()) for each in tmp_path.iterdir()] == [(path, "old")]
    with replacing(path) as stream:
        stream.write("new" * 10_000)
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new" * 10_000


@pytest.mark.parametrize(
    ("more", "advice"),
    [((), " Give another folder with --out."), (("file with --zip",), " Give another file with --zip."), (("",), "")],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, more: tuple[str, ...], advice: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "below" / "grades.csv"
    with pytest.raises(UsageError) as refused, writing(path, *more):
        write_atomically(path, "text")
    assert str(refused.value) == f"{path} cannot be written: Not a directory.{advice}"
    with pytest.raises(UsageError, match=r"^grades cannot be written: the disk is gone\."), writing(Path("grades")):
        raise OSError("the disk is gone")


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
def test_spoilt_record_makes_nothing_the_kits(tmp_path: Path, record: str) -> None:
    (tmp_path / RECORD).write_text(record)
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(UsageError):
        write_own(tmp_path, {"out.csv": "ours"})


# CSV


@pytest.mark.parametrize(
    ("mark", "newline", "bom"), list(itertools.product((",", ";", "\t"), ("\n", "\r\n"), (False, True)))
)
def test_cells_are_the_same_however_a_spreadsheet_writes(tmp_path: Path, mark: str, newline: str, bom: bool) -> None:
    lines = [["Student", "points"], ["Zoë", '"1,5"'], [], ['"a;b\tc, d"', " 2 "], ["", ""]]
    path = tmp_path / "t.csv"
    path.write_bytes(("\ufeff" * bom + "".join(mark.join(cells) + newline for cells in lines)).encode())
    rows = read_rows(path, ("points", "student"))
    assert [row.cells for row in rows] == [
        {"points": "1,5", "student": "Zoë"},
        {"points": "2", "student": "a;b\tc, d"},
    ]
    assert [row.place for row in rows] == [f"{path}, line 2", f"{path}, line 4"]
    table = read_table(path)
    assert (table.header, table.lines) == (("Student", "points"), (2, 4, 5))
    assert (table.delimiter, table.newline, table.bom) == (mark, newline, bom)
    assert table.rows == (("Zoë", "1,5"), ("a;b\tc, d", " 2 "), ("", ""))


@pytest.mark.parametrize(
    ("text", "rows", "lines"),
    [
        ('"a, b, c";d\n1;2\n', (("1", "2"),), (2,)),  # a delimiter inside quotes is none
        ('a,b\n"one\ntwo\nthree",1\n\nfour,2\n', (("one\ntwo\nthree", "1"), ("four", "2")), (2, 6)),
        ("a,b\n1\n1,2,\n", (("1", ""), ("1", "2")), (2, 3)),  # platforms write shorter rows
    ],
)
def test_table_has_whole_rows_and_their_lines(
    tmp_path: Path, text: str, rows: tuple[tuple[str, ...], ...], lines: tuple[int, ...]
) -> None:
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv")
    assert (table.rows, table.lines) == (rows, lines)


COLUMNS = ", line 1: the columns should be a,b; found: "
EMPTY = " is empty: its first line should name the columns."
NO_UTF8 = ", line {}: this is not UTF-8. Save the file as UTF-8."


@pytest.mark.parametrize(
    ("data", "message", "is_table"),
    [
        # A reader of columns by name refuses more: cells could stand in another's place.
        (b"a,c\n1,2\n", f"{COLUMNS}a, c.", True),
        (b"a,b,c\n1,2,3\n", f"{COLUMNS}a, b, c.", True),
        (b"a,b,b\n1,2,3\n", f"{COLUMNS}a, b, b.", True),
        (b"a,b\n1,2\n3\n", ", line 3: 1 cells, but the first line names 2 columns.", True),
        (b"a,b\n3,5,\n", ", line 2: 3 cells, but the first line names 2 columns.", True),
        (b"", EMPTY, False),
        (b"\xef\xbb\xbf\n\n", EMPTY, False),
        (b"a,b\n1,2\n1,2,3\n", ", line 3: 3 cells, but the first line names 2 columns.", False),
        (b'a,b\n1,"2\n', ", line 2: this is not CSV (unexpected end of data).", False),
        (b'a,b\n\n1,"2"3\n', ", line 3: this is not CSV (',' expected after '\"').", False),
        ("a,b\n1,Zoë\n".encode("latin-1"), NO_UTF8.format(2), False),
        ("a\tb".encode("utf-16") + b"x", NO_UTF8.format(1), False),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(tmp_path: Path, data: bytes, message: str, is_table: bool) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    for read in (lambda: read_rows(path, ("a", "b")), *([] if is_table else [lambda: read_table(path)])):
        with pytest.raises(UsageError) as caught:
            read()
        assert str(caught.value) == f"{path}{message}"


def test_missing_or_too_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for refused in (lambda: read_table(path), lambda: read_rows(path, ("a",)), lambda: read_text(path)):
        path.unlink(missing_ok=True)
        with pytest.raises(UsageError, match=r"t\.csv cannot be read \(No such file or directory\): check the path\."):
            refused()
        with path.open("wb") as stream:
            stream.truncate(MAX_BYTES + 1)
        with pytest.raises(UsageError, match=r"t\.csv is larger than 32 MiB: is it the right file\?"):
            refused()
