"""The one reader of CSV: however a spreadsheet writes a file, its cells and lines are the same."""

from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest
from house import module_names, tree

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import MAX_BYTES, read_rows, read_table, read_text

WRITTEN = [
    pytest.param(mark, newline, bom, id=f"{name}-{len(newline)}-{'mark' if bom else 'bare'}")
    for (name, mark), newline, bom in itertools.product(
        {"commas": ",", "semicolons": ";", "tabs": "\t"}.items(), ("\n", "\r\n"), (False, True)
    )
]


def written(path: Path, lines: list[list[str]], mark: str = ",", newline: str = "\n", bom: bool = False) -> Path:
    text = "".join(mark.join(cells) + newline for cells in lines)
    path.write_bytes((("\N{BYTE ORDER MARK}" if bom else "") + text).encode())
    return path


@pytest.mark.parametrize(("mark", "newline", "bom"), WRITTEN)
def test_the_cells_are_the_same_however_a_spreadsheet_writes_them(
    tmp_path: Path, mark: str, newline: str, bom: bool
) -> None:
    lines = [["Student", "points"], ["Zoë", '"1,5"'], [], ['"a;b\tc, d"', " 2 "], ["", ""]]
    path = written(tmp_path / "t.csv", lines, mark, newline, bom)
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


def test_a_delimiter_inside_quotes_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a, b, c";d\n1;2\n')
    assert read_table(path).rows == (("1", "2"),)


def test_a_row_begins_where_its_first_line_does(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,b\n"one\ntwo\nthree",1\n\nfour,2\n')
    assert read_table(path).lines == (2, 6)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", " is empty: its first line should name the columns."),
        (b"\xef\xbb\xbf\n\n", " is empty: its first line should name the columns."),
        (b"a,b\n1,2\n1,2,3\n", ", line 3: 3 cells, but the first line names 2 columns."),
        (b'a,b\n1,"2\n', ", line 2: this is not CSV (unexpected end of data)."),
        (b'a,b\n\n1,"2"3\n', ", line 3: this is not CSV (',' expected after '\"')."),
        ("a,b\n1,Zoë\n".encode("latin-1"), ", line 2: this is not UTF-8. Save the file as UTF-8."),
        ("a\tb".encode("utf-16") + b"x", ", line 1: this is not UTF-8. Save the file as UTF-8."),
    ],
)
def test_what_is_no_table_is_refused_with_its_line_by_every_reader(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    for refused in (lambda: read_table(path), lambda: read_rows(path, ("a", "b"))):
        with pytest.raises(UsageError) as caught:
            refused()
        assert str(caught.value) == f"{path}{says}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,c\n1,2\n", ", line 1: the columns should be a,b; found: a, c."),
        ("a,b,c\n1,2,3\n", ", line 1: the columns should be a,b; found: a, b, c."),
        ("a,b,b\n1,2,3\n", ", line 1: the columns should be a,b; found: a, b, b."),
        ("a,b\n1,2\n3\n", ", line 3: 1 cells, but the first line names 2 columns."),
        ("a,b\n3,5,\n", ", line 2: 3 cells, but the first line names 2 columns."),
    ],
)
def test_rows_whose_cells_could_stand_in_the_wrong_column_are_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_rows(path, ("a", "b"))
    assert str(caught.value) == f"{path}{says}"


def test_a_table_of_a_platform_may_have_shorter_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n1,2,\n")
    assert read_table(path).rows == (("1", ""), ("1", "2"))


def test_a_file_that_is_missing_or_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for refused in (lambda: read_table(path), lambda: read_rows(path, ("a",)), lambda: read_text(path)):
        path.unlink(missing_ok=True)
        with pytest.raises(UsageError, match=r"t\.csv cannot be read \(No such file or directory\): check the path\."):
            refused()
        with path.open("wb") as stream:
            stream.truncate(MAX_BYTES + 1)
        with pytest.raises(UsageError, match=r"t\.csv is larger than 32 MiB: is it the right file\?"):
            refused()


def test_nothing_else_of_the_kit_reads_csv() -> None:
    readers = {
        name
        for name in module_names()
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr in ("reader", "DictReader", "Sniffer")
    }
    assert readers == {"vocabulary.files"}
