"""Files of the kit's making: a reader sees the old one or the whole new one; what cannot be written is a sentence."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from house import module_names, package_of, source, tree

from autograder.vocabulary.errors import UsageError
from autograder.vocabulary.files import replacing, write_atomically, writing

# They write by no other way than `vocabulary.files`; authoring replaces whole folders, and the others write nothing.
WRITERS = ("vocabulary", "grading", "checking", "gradebook", "pages", "course", "platforms", "cli")


def test_bytes_are_written_as_they_are(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new" / "class.zip", b"PK\x00\xff\r\n")
    assert (tmp_path / "new" / "class.zip").read_bytes() == b"PK\x00\xff\r\n"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["class.zip"]


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


@pytest.mark.parametrize("module", [name for name in module_names() if package_of(name) in WRITERS])
def test_whole_files_are_written_in_one_way(module: str) -> None:
    called = {
        node.func.attr for node in ast.walk(tree(module)) if isinstance(node, ast.Call) and hasattr(node.func, "attr")
    }
    assert not {"write_text", "write_bytes"} & called


def test_what_cannot_be_written_has_one_wording() -> None:
    says = [name for name in module_names() if "cannot be written:" in source(name)]
    assert says == ["vocabulary.files"]
