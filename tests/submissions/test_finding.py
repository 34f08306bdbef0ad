"""Finding: who handed in what, from the names in a folder alone."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_ins import ANSWER, IPYNB, MODULE, PY, notebook, put, read_one, zipped

from autograder.submissions.finding import find, unpack
from autograder.submissions.reading import read
from autograder.vocabulary.errors import UsageError


def test_folder_may_mix_folders_zips_and_files(tmp_path: Path) -> None:
    put(tmp_path / "zoe" / PY)
    put(tmp_path / "ada.py")
    put(tmp_path / "eve.ipynb", notebook(ANSWER))
    put(tmp_path / "bob.zip", zipped({PY: ANSWER}))
    for stray in ("README.txt", "roster.csv", ".DS_Store", ".hidden.py", "__pycache__/a.py", "__MACOSX/b.py"):
        put(tmp_path / stray)
    put(tmp_path / ".ipynb_checkpoints" / "c.ipynb")
    candidates = find([tmp_path], MODULE)
    assert [(each.student, each.shown) for each in candidates] == [
        ("ada", "ada.py"),
        ("bob", "bob.zip"),
        ("eve", "eve.ipynb"),
        ("zoe", "zoe"),
    ]
    assert [read(each, MODULE).path for each in candidates] == ["ada.py", f"bob.zip/{PY}", "eve.ipynb", f"zoe/{PY}"]
    assert find([tmp_path, tmp_path, tmp_path / "zoe"], MODULE) == candidates


def test_student_is_named_for_stem_or_nearest_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "ada.py")
    put(tmp_path / "eve" / MODULE / PY)
    put(tmp_path / "bob" / f"{MODULE}.zip", zipped({PY: ANSWER}))
    candidates = find([tmp_path / "ada.py", tmp_path / "eve" / MODULE / PY, tmp_path / "bob"], MODULE)
    assert [(each.student, each.shown) for each in candidates] == [
        ("ada", "ada.py"),
        ("bob", f"bob/{MODULE}.zip"),
        ("eve", f"eve/{MODULE}/{PY}"),
    ]
    for path in (tmp_path / "eve", tmp_path / "eve" / MODULE):
        assert [each.student for each in find([path], MODULE)] == ["eve"]
        assert read_one(path).path == f"eve/{MODULE}/{PY}"
    monkeypatch.chdir(tmp_path / "eve" / MODULE)
    assert find([Path()], MODULE)[0].student == find([Path(PY)], MODULE)[0].student == "eve"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path / "nowhere", "There is no file or folder"),
        (lambda path: put(path / "x.py") / "below", "There is no file or folder"),
        (lambda path: path, "holds no submission"),
        (lambda path: put(path / "only" / "roster.csv").parent, "holds no submission"),
        (lambda path: put(path / "roster.csv"), "cannot be graded: give a folder"),
        (lambda path: Path(f"{path}/a\0b"), "cannot be opened"),
        (lambda path: path / ("x" * 300), "cannot be opened"),
    ],
)
def test_path_that_cannot_be_graded_gets_one_sentence(
    tmp_path: Path, make: Callable[[Path], Path], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        find([make(tmp_path)], MODULE)
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "files", [(f"ada/{PY}", "ada.zip"), ("Jose\u0301.py", "Jos\u00e9.zip"), (f"monday/ada/{PY}", f"friday/ada/{PY}")]
)
def test_student_who_handed_in_twice_is_named_with_both_paths(tmp_path: Path, files: tuple[str, str]) -> None:
    for name in files:
        put(tmp_path / name)
    folders = [tmp_path / name for name in ("monday", "friday")] if "/ada/" in files[1] else [tmp_path]
    with pytest.raises(UsageError, match="handed in twice") as caught:
        find(folders, MODULE)
    assert all(str(tmp_path / name).removesuffix(f"/{PY}") in str(caught.value) for name in files)


def test_name_that_is_not_text_becomes_escapes(tmp_path: Path) -> None:
    try:
        put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/ad\xffa/")) / PY)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    result = read_one(tmp_path)
    assert (result.student, result.path, result.source) == ("ad\\xffa", f"ad\\xffa/{PY}", ANSWER)


def test_no_name_breaks_a_line_or_moves_a_cursor(tmp_path: Path) -> None:
    for name in ("a\nb", "\x1b[31mred", "\u202egnp.exe", "$(touch x); rm -rf *", "=1+1", "x" * 255):
        (tmp_path / name).mkdir()
    candidates = find([tmp_path], MODULE)
    assert len(candidates) == 6
    for candidate in candidates:
        result = read(candidate, MODULE)
        assert result.problem.isprintable()
        assert result.path.isprintable()
        assert not result.fault


# What may not be looked at


def link_out(path: Path) -> None:
    secret = put(path.parents[1] / "secret" / PY, "SECRET = 1\n")
    path.symlink_to(secret if "." in path.name else secret.parent)


LINK, NO_FILE = "is a symbolic link; hand in the file itself.", "is not a regular file; hand in the file itself."
MAKES: list[tuple[Callable[[Path], object], str, str]] = [  # what lies in a class, under a name, and what is said of it
    (lambda path: path.symlink_to(path), f"ada/{PY}", f"ada/{PY} {LINK}"),
    *((link_out, name, f"{name} {LINK}") for name in ("ada", "ada.py", "ada.zip")),
    *((os.mkfifo, name, f"{name} {NO_FILE}") for name in ("ada.zip", f"ada/{PY}")),  # a pipe would be awaited
    (Path.mkdir, f"ada/{PY}", f"ada/{PY} {NO_FILE}"),
    (Path.mkdir, "ada", f"ada holds no {PY} or {IPYNB}: what was found is nothing."),
]


@pytest.mark.parametrize(("make", "name", "problem"), MAKES)
def test_what_is_no_file_in_a_class_is_never_opened(
    tmp_path: Path, make: Callable[[Path], object], name: str, problem: str
) -> None:
    (tmp_path / "class" / name).parent.mkdir(parents=True)
    make(tmp_path / "class" / name)
    result = read_one(tmp_path / "class")
    assert (result.student, result.problem) == ("ada", problem)


def test_path_given_may_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real" / PY)
    (tmp_path / "ada").symlink_to(tmp_path / "real")
    (tmp_path / "eve.py").symlink_to(tmp_path / "real" / PY)
    for name, shown in (("ada", f"ada/{PY}"), ("eve.py", "eve.py")):
        result = read_one(tmp_path / name)
        assert (result.student, result.path, result.source) == (name[:3], shown, ANSWER)


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error")])
def test_what_the_grader_cannot_read_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    def fail(*_: object) -> int:
        raise error

    put(tmp_path / "ada" / PY)
    monkeypatch.setattr(os, "open", fail)
    result = read_one(tmp_path)
    assert result.fault == f"ada could not be read ({error.strerror}): see to it and grade it again."
    if isinstance(error, PermissionError):
        monkeypatch.setattr(os, "scandir", fail)
        with pytest.raises(UsageError, match="Permission denied"):
            find([tmp_path], MODULE)


def test_nothing_of_a_submission_is_run_or_written(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\ndef f(x=open({str(tmp_path / 'ran')!r}, 'w')): return x\n"
    put(tmp_path / "class" / "ada.py", code)
    put(tmp_path / "class" / "eve.ipynb", notebook(code))
    put(tmp_path / "class" / "bob.zip", zipped({f"work/{PY}": code, "../escaped": "x", "work/other": "y"}))
    for candidate in find([tmp_path / "class"], MODULE):
        assert read(candidate, MODULE, "def f(x): raise NotImplementedError\n").source
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["ada.py", "bob.zip", "class", "eve.ipynb"]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_entry_that_could_be_anything_unpacked_costs_its_student_alone(tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as opened:
        opened.writestr(f"ada/{PY}", ANSWER, zipfile.ZIP_DEFLATED)
        opened.writestr(f"eve/{PY}", b"#" * 50_000, method)
    lacking, refused = unpack(tmp_path / "class.zip", tmp_path / "class")
    assert not refused
    assert lacking == {"eve": f"is packed by a method that is not unpacked here: eve/{PY}"}
    assert [read(candidate, MODULE).source for candidate in find([tmp_path / "class" / "ada"], MODULE)] == [ANSWER]
