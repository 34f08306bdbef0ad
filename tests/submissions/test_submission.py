"""What is found, what is read, and what a student or a file can do to stop it."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import struct
import sys
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.submissions.finding import find
from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate, Submission
from autograder.vocabulary.errors import UsageError

MODULE = "policy_gradient"
PY, IPYNB = f"{MODULE}.py", f"{MODULE}.ipynb"

HANDOUT = '''"""The handout."""
import torch
from sorting_task import Model


def compute_deltas(rewards, mode):
    """Return the deltas."""
    raise NotImplementedError("compute_deltas")


def compute_loss(log_probs, deltas):
    """Return the loss."""
    raise NotImplementedError("compute_loss")
'''
ANSWER = HANDOUT.replace('raise NotImplementedError("compute_loss")', "return -(log_probs * deltas).mean()")


def notebook(*cells: str | list[str], **more: object) -> str:
    """A notebook in format 4 whose code cells hold `cells`."""
    bare = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    written = [{**bare, "id": f"c{number}", "source": cell} for number, cell in enumerate(cells)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": written, **more})


def zipped(members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def put(path: Path, content: str | bytes = ANSWER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_one(path: Path, untouched: str = "") -> Submission:
    """What `read` says of the one candidate at `path`."""
    [candidate] = find([path], MODULE)
    result = read(candidate, MODULE, untouched)
    assert bool(result.source) != bool(result.problem or result.fault)
    json.dumps([result.student, result.path, result.problem, result.fault, *result.notes]).encode()
    for sentence in (result.problem, result.fault):
        assert "\n" not in sentence
        assert sentence == "" or sentence.endswith(".")
    return result


def read_notebook(tmp_path: Path, *cells: str, untouched: str = "") -> Submission:
    return read_one(put(tmp_path / "eve.ipynb", notebook(*cells)), untouched)


def run(source: str) -> dict[str, object]:
    """The names that a notebook's source defines; the tests' own code, so it may be run."""
    scope: dict[str, object] = {}
    exec(compile(source, "notebook", "exec", dont_inherit=True), scope)
    return scope


# Finding


def test_a_folder_of_submissions_may_mix_folders_zips_and_bare_files(tmp_path: Path) -> None:
    put(tmp_path / "zoe" / PY)
    put(tmp_path / "ada.py")
    put(tmp_path / "eve.ipynb", notebook(ANSWER))
    put(tmp_path / "bob.zip", zipped({PY: ANSWER}))
    found = find([tmp_path], MODULE)
    assert [(one.student, one.shown) for one in found] == [
        ("ada", "ada.py"),
        ("bob", "bob.zip"),
        ("eve", "eve.ipynb"),
        ("zoe", "zoe"),
    ]
    assert [read(one, MODULE).path for one in found] == ["ada.py", f"bob.zip/{PY}", "eve.ipynb", f"zoe/{PY}"]


def test_a_folder_that_holds_the_module_is_one_students_own(tmp_path: Path) -> None:
    put(tmp_path / "ada" / PY)
    put(tmp_path / "ada" / "sorting_task.py", "x = 1\n")
    assert find([tmp_path / "ada"], MODULE) == [Candidate("ada", tmp_path / "ada", "ada")]


def test_one_file_is_named_for_its_stem_or_else_for_its_folder(tmp_path: Path) -> None:
    put(tmp_path / "ada.py")
    put(tmp_path / "eve" / PY)
    put(tmp_path / "bob" / f"{MODULE}.zip", zipped({PY: ANSWER}))
    found = find([tmp_path / "ada.py", tmp_path / "eve" / PY, tmp_path / "bob"], MODULE)
    assert [(one.student, one.shown) for one in found] == [
        ("ada", "ada.py"),
        ("bob", f"bob/{MODULE}.zip"),
        ("eve", f"eve/{PY}"),
    ]


def test_no_student_is_named_for_the_assignment(tmp_path: Path) -> None:
    put(tmp_path / "ada" / MODULE / PY)
    for path in (tmp_path / "ada", tmp_path / "ada" / MODULE, tmp_path / "ada" / MODULE / PY):
        assert [one.student for one in find([path], MODULE)] == ["ada"]
        assert read_one(path).path == f"ada/{MODULE}/{PY}"


def test_the_current_folder_is_named_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "ada" / PY)
    monkeypatch.chdir(tmp_path / "ada")
    assert find([Path()], MODULE)[0].student == "ada"
    assert find([Path(PY)], MODULE)[0].student == "ada"


def test_what_is_not_a_submission_is_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "ada" / PY)
    for stray in ("README.txt", "roster.csv", ".DS_Store", ".hidden.py", "__pycache__/a.py", "__MACOSX/b.py"):
        put(tmp_path / stray)
    put(tmp_path / ".ipynb_checkpoints" / "c.ipynb")
    assert [one.student for one in find([tmp_path], MODULE)] == ["ada"]


def test_a_student_folder_with_nothing_in_it_is_still_a_candidate(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    result = read_one(tmp_path)
    assert result.student == "ada"
    assert result.problem == f"ada holds no {PY} or {IPYNB}: what was found is nothing."
    assert result.sha256 == hashlib.sha256(b"").hexdigest()


def test_files_for_another_assignment_are_named_in_the_problem(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "notes/c.txt", "notes/d.txt"):
        put(tmp_path / "ada" / name)
    assert "what was found is a.py, b.py, notes/c.txt and 1 more." in read_one(tmp_path).problem


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: path / "nowhere", "There is no file or folder"),
        (lambda path: put(path / "x.py") / "below", "There is no file or folder"),
        (lambda path: path, "is empty"),
        (lambda path: put(path / "only" / "roster.csv").parent, "holds no submission"),
        (lambda path: put(path / "roster.csv"), "cannot be graded: give a folder"),
        (lambda path: Path(f"{path}/a\0b"), "cannot be opened"),
        (lambda path: path / ("x" * 300), "cannot be opened"),
    ],
)
def test_a_path_that_cannot_be_graded_gets_one_sentence(tmp_path: Path, make: object, says: str) -> None:
    path = make(tmp_path)  # type: ignore[operator]
    with pytest.raises(UsageError, match=says) as caught:
        find([path], MODULE)
    assert str(caught.value).count("\n") == 0
    assert str(caught.value).endswith(".")


def test_a_student_who_handed_in_twice_is_named_with_both_paths(tmp_path: Path) -> None:
    put(tmp_path / "ada" / PY)
    put(tmp_path / "ada.zip", zipped({PY: ANSWER}))
    with pytest.raises(UsageError, match="ada handed in twice") as caught:
        find([tmp_path], MODULE)
    assert str(tmp_path / "ada") in str(caught.value)
    assert str(tmp_path / "ada.zip") in str(caught.value)


def test_one_name_in_two_folders_is_one_student_who_handed_in_twice(tmp_path: Path) -> None:
    put(tmp_path / "monday" / "ada" / PY)
    put(tmp_path / "friday" / "ada" / PY)
    with pytest.raises(UsageError, match="handed in twice"):
        find([tmp_path / "monday", tmp_path / "friday"], MODULE)


def test_the_same_path_given_twice_is_one_submission(tmp_path: Path) -> None:
    put(tmp_path / "ada" / PY)
    assert len(find([tmp_path, tmp_path, tmp_path / "ada"], MODULE)) == 1


def test_names_in_any_script_are_kept(tmp_path: Path) -> None:
    names = ["Åsa Öberg", "Анна", "王小明", "फ़ातिमा"]
    for name in names:
        put(tmp_path / name / PY)
    found = find([tmp_path], MODULE)
    assert [one.student for one in found] == sorted(names)
    assert all(read(one, MODULE).source == ANSWER for one in found)


def test_one_name_in_two_normal_forms_is_one_student(tmp_path: Path) -> None:
    put(tmp_path / "Jose\u0301" / PY)
    put(tmp_path / "Jos\u00e9.py")
    with pytest.raises(UsageError, match="handed in twice"):
        find([tmp_path], MODULE)


def test_a_name_that_is_not_text_becomes_escapes(tmp_path: Path) -> None:
    try:
        put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/ad\xffa/")) / PY)
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    result = read_one(tmp_path)
    assert (result.student, result.path, result.source) == ("ad\\xffa", f"ad\\xffa/{PY}", ANSWER)


def test_no_name_can_break_a_line_or_move_a_cursor_in_a_sentence(tmp_path: Path) -> None:
    for name in ("a\nb", "\x1b[31mred", "\u202egnp.exe", "$(touch x); rm -rf *", "=1+1", "x" * 255):
        (tmp_path / name).mkdir()
    found = find([tmp_path], MODULE)
    assert len(found) == 6
    for one in found:
        result = read(one, MODULE)
        assert result.problem.isprintable()
        assert result.path.isprintable()
        assert not result.fault


def test_ten_thousand_folders_are_found_without_reading_them(tmp_path: Path) -> None:
    start = time.process_time()
    for number in range(10_000):
        (tmp_path / f"s{number}").mkdir()
    making = time.process_time() - start
    assert len(find([tmp_path], MODULE)) == 10_000
    assert time.process_time() - start < 20 * making


def test_finding_opens_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "ada" / PY)
    put(tmp_path / "bob.zip", b"PK")
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("a file was opened"))
    assert len(find([tmp_path], MODULE)) == 2


# Folders


def test_the_module_is_passed_on_as_it_is(tmp_path: Path) -> None:
    result = read_one(put(tmp_path / "ada" / PY, "def broken(:\r\n").parent)
    assert result.source == "def broken(:\r\n"
    assert (result.problem, result.fault, result.notes) == ("", "", ())
    assert result.sha256 == hashlib.sha256(b"def broken(:\r\n").hexdigest()


def test_the_folder_named_for_the_assignment_is_looked_into_first(tmp_path: Path) -> None:
    put(tmp_path / "ada" / MODULE / PY)
    put(tmp_path / "ada" / "old" / PY, "x = 1\n")
    assert read_one(tmp_path).path == f"ada/{MODULE}/{PY}"


def test_the_only_module_below_is_found_however_deep(tmp_path: Path) -> None:
    put(tmp_path / "ada" / "home" / "work" / "final" / PY)
    put(tmp_path / "ada" / "home" / "notes.txt")
    assert read_one(tmp_path).path == f"ada/home/work/final/{PY}"


def test_two_modules_below_at_one_depth_are_nobodys_zero_and_both_are_named(tmp_path: Path) -> None:
    put(tmp_path / "ada" / "v1" / PY)
    put(tmp_path / "ada" / "v2" / PY, f"{ANSWER}# again\n")
    result = read_one(tmp_path)
    assert result.problem == ""
    assert f"holds both v1/{PY} and v2/{PY}" in result.fault


def test_of_two_modules_below_the_one_nearer_to_the_top_counts(tmp_path: Path) -> None:
    put(tmp_path / "ada" / "work" / PY)
    put(tmp_path / "ada" / "work" / "old" / PY, "x = 1\n")
    assert read_one(tmp_path).path == f"ada/work/{PY}"


@pytest.mark.parametrize("target", ["file", "folder"])
def test_a_symbolic_link_in_a_submission_is_not_followed(tmp_path: Path, target: str) -> None:
    put(tmp_path / "secret" / PY, "SECRET = 1\n")
    (tmp_path / "class" / "ada").mkdir(parents=True)
    if target == "file":
        (tmp_path / "class" / "ada" / PY).symlink_to(tmp_path / "secret" / PY)
    else:
        (tmp_path / "class" / "ada" / MODULE).symlink_to(tmp_path / "secret")
    result = read_one(tmp_path / "class")
    assert result.problem.endswith("is a symbolic link; hand in the file itself.")
    assert result.sha256 == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("name", ["ada", "ada.py", "ada.zip"])
def test_a_submission_that_is_itself_a_link_is_not_followed(tmp_path: Path, name: str) -> None:
    put(tmp_path / "secret" / PY, "SECRET = 1\n")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / name).symlink_to(tmp_path / "secret" / (PY if "." in name else ""))
    result = read_one(tmp_path / "class")
    assert (result.student, result.problem) == ("ada", f"{name} is a symbolic link; hand in the file itself.")


def test_the_path_given_may_itself_be_a_link(tmp_path: Path) -> None:
    put(tmp_path / "real" / PY)
    (tmp_path / "ada").symlink_to(tmp_path / "real")
    (tmp_path / "eve.py").symlink_to(tmp_path / "real" / PY)
    for name, shown in (("ada", f"ada/{PY}"), ("eve.py", "eve.py")):
        result = read_one(tmp_path / name)
        assert (result.student, result.path, result.source) == (name[:3], shown, ANSWER)


def test_a_link_that_leads_nowhere_or_round_in_circles_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / PY).symlink_to(tmp_path / "ada" / PY)
    assert "symbolic link" in read_one(tmp_path).problem


def test_a_fifo_is_never_opened(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    os.mkfifo(tmp_path / "ada" / PY)
    os.mkfifo(tmp_path / "eve.zip")
    for candidate in find([tmp_path], MODULE):  # opening one would wait for ever
        assert "is not a regular file" in read(candidate, MODULE).problem


def test_a_folder_named_like_the_module_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "ada" / PY).mkdir(parents=True)
    assert "is not a regular file" in read_one(tmp_path).problem


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "I/O error")])
def test_what_the_grader_cannot_read_is_a_fault_and_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    put(tmp_path / "ada" / PY)

    def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(os, "open", fail)
    result = read_one(tmp_path)
    assert result.problem == ""
    assert result.fault == f"ada could not be read ({error.strerror}): see to it and grade it again."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_permissions_are_a_fault_below_and_a_usage_error_above(tmp_path: Path) -> None:
    put(tmp_path / "class" / "ada" / PY).chmod(0)
    assert "Permission denied" in read_one(tmp_path / "class").fault
    (tmp_path / "class" / "ada").chmod(0)
    assert "Permission denied" in read_one(tmp_path / "class").fault
    (tmp_path / "class").chmod(0)
    try:
        with pytest.raises(UsageError, match="may not be read by this user"):
            find([tmp_path / "class"], MODULE)
    finally:
        (tmp_path / "class").chmod(0o755)
        (tmp_path / "class" / "ada").chmod(0o755)


def test_a_folder_that_may_not_be_listed_is_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UsageError, match="may not be read by this user: change its permissions"):
        find([tmp_path], MODULE)


def test_a_submission_that_vanishes_is_a_fault(tmp_path: Path) -> None:
    put(tmp_path / "ada.py")
    [candidate] = find([tmp_path], MODULE)
    candidate.path.unlink()
    assert "No such file" in read(candidate, MODULE).fault


# Text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("x = 'é'\n".encode(), "x = 'é'\n"),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"# coding: ascii\r\nx = 1\r\n", "# coding: ascii\r\nx = 1\r\n"),
        ("# coding: cp1252\nx = '€'\n".encode("cp1252"), "# coding: cp1252\nx = '€'\n"),
        (
            "#!python\n# vim: fileencoding=gbk :\nx = '猫'\n".encode("gbk"),
            "#!python\n# vim: fileencoding=gbk :\nx = '猫'\n",
        ),
        (b"\xef\xbb\xbf# coding: utf-8\nx = 1\n", "# coding: utf-8\nx = 1\n"),
    ],
)
def test_utf8_and_what_is_close_to_it_is_read(tmp_path: Path, data: bytes, text: str) -> None:
    assert read_one(put(tmp_path / "ada.py", data)).source == text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"x = 1\n" * 20 + b"y = '\xff'\n", "is not UTF-8 text: byte 0xff at position 125. Save it"),
        (b"\xef\xbb\xbfy = '\xff'\n", "is not UTF-8 text: byte 0xff at position 8."),
        (b"# coding: ascii\ny = '\xe9'\n", "is not ASCII text: byte 0xe9 at position 21."),
        (b"# coding: rot13\nk = 1\n", "declares an encoding that Python cannot read"),
        (b"# coding: no-such-thing\nk = 1\n", "declares an encoding that Python cannot read"),
        (b"\xef\xbb\xbf# coding: latin-1\nk = 1\n", "declares an encoding that Python cannot read"),
        ("x = 1\n".encode("utf-16"), "is UTF-16 text: save it as UTF-8."),
        (b"x = 1\0\n", "is not a text file: it holds a null byte at position 5."),
        (zipped({PY: ANSWER}), "is not a text file"),
        (b"", "is empty."),
        (b"\xef\xbb\xbf \r\n\t\n", "is empty."),
        (b"#" * (2**20 + 1), "is larger than 1 MiB."),
    ],
)
def test_what_is_not_a_python_file_is_a_problem(tmp_path: Path, data: bytes, says: str) -> None:
    result = read_one(put(tmp_path / "ada.py", data))
    assert f"ada.py {says}" in result.problem
    assert result.sha256 == hashlib.sha256(data).hexdigest()


def test_a_module_of_exactly_the_cap_is_read(tmp_path: Path) -> None:
    assert len(read_one(put(tmp_path / "ada.py", b"#" * 2**17)).source) == 2**17
    assert "more than 128 KiB of code" in read_one(put(tmp_path / "bela.py", b"#" * (2**17 + 1))).problem


# Zips


def test_the_shallowest_module_in_a_zip_counts(tmp_path: Path) -> None:
    members = {f"work/{PY}": ANSWER, f"work/old/{PY}": "x = 1\n", "__MACOSX/._x": "", f"work/._{PY}": "\0"}
    result = read_one(put(tmp_path / "eve.zip", zipped(members)))
    assert (result.path, result.source) == (f"eve.zip/work/{PY}", ANSWER)
    assert result.sha256 == hashlib.sha256(ANSWER.encode()).hexdigest()


def test_a_zip_made_on_windows_is_read(tmp_path: Path) -> None:
    data = zipped({f"work/{PY}": ANSWER}).replace(b"work/", b"work\\")
    assert read_one(put(tmp_path / "eve.zip", data)).path == f"eve.zip/work/{PY}"


def test_a_notebook_in_a_zip_is_read(tmp_path: Path) -> None:
    result = read_one(put(tmp_path / "eve.ZIP", zipped({IPYNB: notebook(ANSWER)})))
    assert result.path == f"eve.ZIP/{IPYNB}"
    assert "compute_loss" in run_names(result.source)


def run_names(source: str) -> set[str]:
    """The functions at the top of `source`."""
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def test_two_modules_at_one_depth_of_a_zip_are_nobodys_zero_and_both_are_named(tmp_path: Path) -> None:
    result = read_one(put(tmp_path / "eve.zip", zipped({f"a/{PY}": "x = 1\n", f"b/{IPYNB}": "{}"})))
    assert result.problem == ""
    assert result.fault == f"eve.zip holds both b/{IPYNB} and a/{PY}: keep the one that counts."


def test_one_name_twice_in_a_zip_is_nobodys_zero(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr(PY, "x = 1\n")
            archive.writestr(PY, "x = 2\n")
    assert f"holds both {PY} and {PY}" in read_one(put(tmp_path / "eve.zip", stream.getvalue())).fault


@pytest.mark.parametrize("place", ["../", "/etc/", "a/../../", "C:\\work\\", "\\\\host\\"])
def test_a_member_that_points_out_of_its_zip_is_never_chosen(tmp_path: Path, place: str) -> None:
    name = place + PY
    result = read_one(put(tmp_path / "eve.zip", zipped({name: ANSWER})))
    assert "which would lie outside it" in result.problem
    beside = read_one(put(tmp_path / "eve.zip", zipped({name: "x = 1\n", f"a/b/{PY}": ANSWER})))
    assert beside.path == f"eve.zip/a/b/{PY}"


def test_a_symbolic_link_in_a_zip_is_a_problem(tmp_path: Path) -> None:
    link = zipfile.ZipInfo(PY)
    link.external_attr = 0o120777 << 16
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    result = read_one(put(tmp_path / "eve.zip", stream.getvalue()))
    assert result.problem == f"eve.zip/{PY} is a symbolic link; hand in the file itself."


def test_an_encrypted_member_is_a_problem(tmp_path: Path) -> None:
    data = bytearray(zipped({PY: ANSWER}))
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "is encrypted" in read_one(put(tmp_path / "eve.zip", bytes(data))).problem


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_method_that_cannot_be_unpacked_by_pieces_is_refused(tmp_path: Path, method: int) -> None:
    result = read_one(put(tmp_path / "eve.zip", zipped({PY: b"#" * 50_000_000}, method)))
    assert "is packed by an unusual method" in result.problem


@pytest.mark.parametrize("lie", [False, True])
def test_a_decompression_bomb_is_a_problem_in_no_time_and_little_memory(tmp_path: Path, lie: bool) -> None:
    data = zipped({PY: b"#" * 200_000_000})
    if lie:  # a header that says one byte
        local, central = data.index(b"PK\x03\x04") + 22, data.index(b"PK\x01\x02") + 24
        data = data[:local] + struct.pack("<L", 1) + data[local + 4 :]
        data = data[:central] + struct.pack("<L", 1) + data[central + 4 :]
    path = put(tmp_path / "eve.zip", data)
    del data
    tracemalloc.start()
    start = time.process_time()
    result = read_one(path)
    seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ("is damaged" if lie else "is larger than 1 MiB") in result.problem
    assert seconds < 2
    assert peak < 20 * 2**20


@pytest.mark.parametrize("times", [1, 2])
def test_a_zip_that_holds_a_zip_and_no_work_is_looked_into(tmp_path: Path, times: int) -> None:
    data = zipped({f"work/{PY}": ANSWER})
    for _ in range(times):
        data = zipped({"inner.zip": data, "__MACOSX/._inner.zip": "", "notes.txt": ""})
    result = read_one(put(tmp_path / "eve.zip", data))
    assert (result.path, result.source) == (f"eve.zip{'/inner.zip' * times}/work/{PY}", ANSWER)
    assert result.sha256 == hashlib.sha256(ANSWER.encode()).hexdigest()


def test_zips_in_zips_are_not_followed_for_ever(tmp_path: Path) -> None:
    data = zipped({PY: ANSWER})
    for _ in range(4):
        data = zipped({"inner.zip": data})
    problem = f"eve.zip/inner.zip/inner.zip holds no {PY} or {IPYNB}: what was found is inner.zip."
    assert read_one(put(tmp_path / "eve.zip", data)).problem == problem


def test_a_bomb_in_a_zip_in_a_zip_is_unpacked_no_further_than_its_cap(tmp_path: Path) -> None:
    inner = zipped({PY: b"#" * (3 * 2**20)})
    problem = f"eve.zip/inner.zip/{PY} is larger than 1 MiB."
    assert read_one(put(tmp_path / "eve.zip", zipped({"inner.zip": inner}))).problem == problem


def test_a_zip_beside_a_module_in_a_zip_is_not_opened(tmp_path: Path) -> None:
    members = {"inner.zip": zipped({PY: "x = 1\n"}), f"work/{PY}": ANSWER}
    assert read_one(put(tmp_path / "eve.zip", zipped(members))).source == ANSWER


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"not a zip", zipped({PY: ANSWER})[:-30]])
def test_a_broken_zip_is_a_problem_with_the_hash_of_what_was_read(tmp_path: Path, data: bytes) -> None:
    result = read_one(put(tmp_path / "eve.zip", data))
    assert result.problem == "eve.zip is damaged, or not a zip file: pack it again."
    assert result.sha256 == hashlib.sha256(data).hexdigest()


def test_a_zip_whose_content_fails_its_checksum_is_a_problem(tmp_path: Path) -> None:
    data = zipped({PY: ANSWER}, zipfile.ZIP_STORED).replace(b"mean()", b"sum() ")
    assert "is damaged" in read_one(put(tmp_path / "eve.zip", data)).problem


def test_nothing_of_a_zip_is_written_to_disk(tmp_path: Path) -> None:
    put(tmp_path / "eve.zip", zipped({f"work/{PY}": ANSWER, "../escaped": "x", "work/other": "y"}))
    read_one(tmp_path / "eve.zip")
    assert [path.name for path in tmp_path.rglob("*")] == ["eve.zip"]


# Both a module and a notebook


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize(
    ("module", "cells", "chosen", "reason"),
    [
        (ANSWER, ANSWER, PY, "it counts before a notebook"),
        ("def broken(:\n", ANSWER, IPYNB, "the module cannot be read: it is no Python from line 1 on"),
        ("def broken(:\n", "x = 1", PY, "the notebook holds no answers"),
        (HANDOUT, "x = 1", PY, "the notebook holds no answers"),
        (HANDOUT, ANSWER, IPYNB, "the module is as it was handed out"),
        (HANDOUT.replace("the loss", "my loss") + "\nimport os  # mine\n", ANSWER, IPYNB, "was handed out"),
        (b"\xff\xfe", ANSWER, IPYNB, "the module cannot be read"),
    ],
)
def test_the_module_counts_unless_only_the_notebook_was_worked_on(
    tmp_path: Path, module: str | bytes, cells: str, chosen: str, reason: str, pack: bool
) -> None:
    members: dict[str, str | bytes] = {PY: module, IPYNB: notebook(cells)}
    if pack:
        put(tmp_path / "ada.zip", zipped(members))
    for name, content in {} if pack else members.items():
        put(tmp_path / "ada" / name, content)
    result = read_one(tmp_path, HANDOUT)
    assert result.path.endswith(f"/{chosen}")
    assert result.notes[0].startswith("both a module and a notebook were handed in")
    assert reason in result.notes[0]


@pytest.mark.parametrize("module", [b"\xff\xfe", b"x = '\xe9'\n", b"\0", b""])
@pytest.mark.parametrize("cells", [HANDOUT, "x = 1"])
def test_a_notebook_that_holds_no_answers_does_not_hide_that_the_module_cannot_be_read(
    tmp_path: Path, module: bytes, cells: str
) -> None:
    put(tmp_path / "ada" / PY, module)
    put(tmp_path / "ada" / IPYNB, notebook(cells))
    result = read_one(tmp_path, HANDOUT)
    assert (result.path, result.source) == (f"ada/{PY}", "")
    assert result.problem.startswith(f"{PY} is ") or result.problem.startswith(f"ada/{PY} is ")


def test_why_the_module_could_not_be_read_is_told_where_the_notebook_counts(tmp_path: Path) -> None:
    put(tmp_path / "ada" / PY, b"x = '\xe9'\n")
    put(tmp_path / "ada" / IPYNB, notebook(ANSWER))
    (note,) = read_one(tmp_path, HANDOUT).notes
    assert "is not UTF-8 text: byte 0xe9 at position 5" in note


def test_without_the_handouts_text_the_module_counts(tmp_path: Path) -> None:
    put(tmp_path / "ada" / PY, HANDOUT)
    put(tmp_path / "ada" / IPYNB, notebook(ANSWER))
    assert read_one(tmp_path).path == f"ada/{PY}"


def test_a_notebook_that_lies_beside_the_module_elsewhere_is_the_same_submission(tmp_path: Path) -> None:
    module = put(tmp_path / "ada_1_policy.py", HANDOUT)
    beside = put(tmp_path / "ada_2_policy.ipynb", notebook(ANSWER))
    candidate = Candidate("ada", module, module.name, beside, ("handed in late",))
    result = read(candidate, MODULE, HANDOUT)
    assert result.path == "ada_2_policy.ipynb"
    assert result.notes[0] == "handed in late"
    assert "the module is as it was handed out" in result.notes[1]


def test_a_file_of_another_kind_that_a_platform_hands_over_is_a_problem(tmp_path: Path) -> None:
    path = put(tmp_path / "essay.txt", "x = 1\n")
    assert read(Candidate("ada", path, "essay.txt"), MODULE).problem.startswith("essay.txt is no .py, .ipynb or .zip")


# Notebooks: what is kept


def test_a_notebook_keeps_definitions_and_leaves_experiments_out(tmp_path: Path) -> None:
    result = read_notebook(
        tmp_path,
        "import os\nimport torch\nfrom math import exp, log",
        "EPS = 1e-5\nSCALE = 2 * EPS\nrun = print('trained')",
        "def compute_loss(x):\n    return exp(x) + SCALE",
        "torch.manual_seed(0)\nprint(compute_loss(1))\nrun\nos.remove('everything')\nassert False",
        "if __name__ == '__main__':\n    raise SystemExit",
    )
    assert result.source == (
        "# cell 1\n\n\nfrom math import exp, log\n\n"
        "# cell 2\nEPS = 1e-5\nSCALE = 2 * EPS\n\n"
        "# cell 3\ndef compute_loss(x):\n    return exp(x) + SCALE\n"
    )
    assert result.notes == ()


@pytest.mark.parametrize("module", [ANSWER, HANDOUT])
def test_a_notebook_that_was_never_touched_is_not_worth_a_note(tmp_path: Path, module: str) -> None:
    put(tmp_path / "ada" / PY, module)
    stub = HANDOUT.replace('raise NotImplementedError("compute_loss")', "raise NotImplementedError()")
    put(tmp_path / "ada" / IPYNB, notebook(stub, "score('compute_loss')"))
    result = read_one(tmp_path, HANDOUT)
    assert result.path.endswith(PY)
    assert result.notes == ()


def test_lines_of_a_cell_keep_their_distance_from_its_heading(tmp_path: Path) -> None:
    cell = (
        "print(1)\n\n# comment\nx = 0; print(2); y = (1,\n  2); z = 3\n"
        "for i in y:\n    pass\ndef f():\n    return x, z\n"
    )
    lines = read_notebook(tmp_path, "1", cell).source.split("\n")
    heading = lines.index("# cell 2")
    assert lines[heading + 4] == "x = 0"
    assert lines[heading + 5] == "z = 3"
    assert lines[heading + 8] == "def f():"


@pytest.mark.parametrize(
    "cell",
    [
        "a = 1\ndef f(x=a): return x",
        "a = 1\n@(lambda g: g)\ndef f(): return a",
        "a = 1\ndef f() -> 'a': return [a for _ in range(2)][0]",
        "a: int = 0\na += 1\nf = lambda: a",
        "def g(): return 1\nf = g",
        "b = {}\nb['a'] = 1\ndef f(): return b['a']",
        "class B: pass\nb = B()\nb.a = 1\ndef f(): return b.a",
        "try:\n    import no_such_module as m\nexcept ImportError:\n    m = 1\ndef f(): return m",
        "if True:\n    a = 1\nelse:\n    a = 2\ndef f(): return a",
        "from contextlib import nullcontext\nwith nullcontext():\n    a = 1\ndef f(): return a",
        "class A:\n    def get(self): return B().one\nclass B:\n    one = 1\ndef f(): return A().get()",
        "def f():\n    global a\n    a = 1\n    return a",
        "(a, b), *c = (1, 2), 3\ndef f(): return a",
        "print('x'); a = 1; print('''y\n'''); f = lambda: a; print('z')",
        "print(1); \\\n a = 1\ndef f(): return a",
        "from math import *\ndef f(): return int(cos(0))",
        "def f():\n    def inner(n): return 1 if n == 0 else inner(n - 1)\n    return inner(3)",
        "from __future__ import annotations\ndef f(x: NoSuchName = 1): return x",
        "async def g(): pass\ndef f(): return len([g])",
        "all = {}\ndef add(g): all[1] = g; return g\n@add\ndef one(): return 1\ndef f(): return all[1]()",
        "class A:\n    all = []\n    def __init_subclass__(cls): A.all.append(cls)\n"
        "class B(A): pass\nclass C(B):\n    one = 1\ndef f(): return A.all[1].one",
    ],
)
@pytest.mark.parametrize("graded", ["", "def f(): raise NotImplementedError"])
def test_whatever_a_definition_needs_is_kept(tmp_path: Path, cell: str, graded: str) -> None:
    for cells in ([cell], [cell] if "@" in cell else cell.split("\ndef f(")):
        if len(cells) == 2:
            cells[1] = f"def f({cells[1]}"
        f = run(read_notebook(tmp_path, *cells, untouched=graded).source)["f"]
        assert f() == 1  # type: ignore[operator]


def test_with_the_handout_known_only_graded_functions_and_their_needs_are_kept(tmp_path: Path) -> None:
    result = read_notebook(
        tmp_path,
        "import seaborn\nfrom google.colab import drive\nhistory = train_for_an_hour()",
        "def plot():\n    seaborn.plot(history)",
        "def helper(x):\n    return x\ndef compute_loss(x, d):\n    return helper(x)",
        "class Timer(seaborn.Base):\n    pass\n@seaborn.timed\ndef timed(): pass",
        untouched=HANDOUT,
    )
    assert result.source == ("# cell 3\ndef helper(x):\n    return x\ndef compute_loss(x, d):\n    return helper(x)\n")


def test_attributes_of_imported_modules_are_not_set(tmp_path: Path) -> None:
    cell = "import torch\ntorch.flag = True\ntorch.manual_seed(0)\ndef f():\n    return torch.ones(1)"
    assert "flag" not in read_notebook(tmp_path, cell).source


def test_an_import_of_the_module_itself_is_left_out(tmp_path: Path) -> None:
    cell = f"from {MODULE} import *\nfrom {MODULE} import compute_loss\ndef compute_deltas(r): return r"
    assert MODULE not in read_notebook(tmp_path, cell, untouched=HANDOUT).source


def test_future_annotations_move_to_the_top(tmp_path: Path) -> None:
    cell = "from __future__ import annotations\ndef f(x: Y): return math.pi"
    result = read_notebook(tmp_path, "import math", cell)
    assert result.source.startswith("from __future__ import annotations\n")
    run(result.source)


def test_a_function_defined_in_two_cells_is_noted_and_the_last_counts(tmp_path: Path) -> None:
    cells = [f"def {name}(): return {number}" for number, name in enumerate("fgff", 1)]
    result = read_notebook(tmp_path, *cells)
    assert result.notes == ("cells 1, 3 and 4 define f: the last one counts",)
    assert run(result.source)["f"]() == 4  # type: ignore[operator]


def test_a_loop_that_a_function_needs_is_mentioned(tmp_path: Path) -> None:
    cell = "table = {}\nfor i in range(3):\n    table[i] = i\ndef f():\n    return table"
    result = read_notebook(tmp_path, cell)
    assert result.notes == ("cell 1: a loop that sets table was left out, since only definitions are graded",)


def test_cells_are_counted_with_the_text_between_them(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "def f(:"]},
        {"cell_type": "code", "metadata": {}, "source": ["def f():\n", "    return 1"]},
        {"cell_type": "raw", "metadata": {}, "source": "def g(): pass"},
    ]
    result = read_one(put(tmp_path / "eve.ipynb", notebook(cells=cells)))
    assert result.source == "# cell 2\ndef f():\n    return 1\n"


def test_what_nbformat_writes_is_read(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("def f():\n    return 1\n")
    written = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
    assert "def f()" in read_one(put(tmp_path / "eve.ipynb", written)).source


# Notebooks: IPython


@pytest.mark.parametrize(
    "line",
    [
        "%matplotlib inline",
        "%time f()",
        "!pip install it's",
        "!ls (",
        "?f",
        "f?",
        "f.__doc__??",
        "files = !ls",
        "x = %time f()",
        "a, b = !ls",
        "  ",
        "pip install torch",
        "!echo '''",
        '%run x.py """',
    ],
)
def test_lines_for_ipython_are_blanked_and_lines_keep_their_numbers(tmp_path: Path, line: str) -> None:
    result = read_notebook(tmp_path, f"{line}\ndef f():\n    return 1\n{line}\ny = 2\ndef g():\n    return y")
    assert result.notes == ()
    assert result.source.split("\n")[1:4] == ["", "def f():", "    return 1"]
    assert run(result.source)["g"]() == 2  # type: ignore[operator]


def test_percent_signs_in_strings_brackets_and_continued_lines_are_left_alone(tmp_path: Path) -> None:
    cell = (
        "%load_ext x\n"
        'def f(a, b):\n    """\n%not magic\n!nor this\nor this?\n    """\n'
        "    c = (a\n% b)\n    d = a \\\n% b\n    e = '''\n%x ' \"\n'''\n    return [c,\nd % 7, e]\n"
        "!ls \\\n  -l \\\n  -a\nZ = 3\nif Z:\n    !echo no\n    W = Z\ndef g():\n    return W"
    )
    result = read_notebook(tmp_path, cell)
    assert result.notes == ()
    scope = run(result.source)
    assert scope["f"](17, 10) == [7, 0, "\n%x ' \"\n"]  # type: ignore[operator]
    assert scope["g"]() == 3  # type: ignore[operator]
    assert "%not magic\n!nor this\nor this?" in result.source


@pytest.mark.parametrize("magic", ["%%time", "%%timeit -n 1", "%%capture out"])
def test_a_timed_cell_is_read_without_its_first_line(tmp_path: Path, magic: str) -> None:
    result = read_notebook(tmp_path, f"\n{magic}\ndef f():\n    return 1")
    assert result.source == "# cell 1\n\n\ndef f():\n    return 1\n"


@pytest.mark.parametrize(
    "magic", [f"%%writefile {PY}", f"%%writefile -a {PY}", f"%%file  '/content/hw 5/{PY}' ", f'%%writefile "hw\\{PY}"']
)
def test_a_cell_that_is_written_to_the_modules_file_is_read_as_the_module(tmp_path: Path, magic: str) -> None:
    result = read_notebook(tmp_path, f"{magic}\ndef f():\n    return 1")
    assert result.notes == ()
    assert result.source == "# cell 1\n\ndef f():\n    return 1\n"


@pytest.mark.parametrize("magic", ["%%bash", "%%writefile config.py", "%%writefile", "%%", "%%html"])
def test_a_cell_of_another_language_is_left_out_with_a_note(tmp_path: Path, magic: str) -> None:
    result = read_notebook(tmp_path, f"{magic}\ndef f():\n    return 1", "def g():\n    return 1")
    assert result.notes == (f"cell 1 was left out: it is a {magic.split(' ')[0]} cell, not Python",)
    assert run_names(result.source) == {"g"}


def test_an_indented_cell_is_read_as_jupyter_reads_it(tmp_path: Path) -> None:
    assert run_names(read_notebook(tmp_path, "    def f():\n        return 1\n    x = 2").source) == {"f"}


# Notebooks: what goes wrong


@pytest.mark.parametrize(
    ("cell", "note"),
    [
        ("x = 1\n\ndef f(:\n    pass", "it has a syntax error on its line 3"),
        ("%matplotlib inline\n\nx = $", "it has a syntax error on its line 3"),
        ("return 1", "it has a syntax error on its line 1"),
        ("def f(a, a): pass", "it has a syntax error on its line 1"),
        ("<<<<<<< HEAD\nx = 1\n=======", "it has a syntax error on its line 1"),
        ("x = 1\0", "it holds a null byte"),
        ("x = '\ud800'", "Python cannot parse it"),
        ("x = " + "-" * 9_000 + "1", "Python cannot parse it"),
        ("x = " + "(" * 9_000, "it has a syntax error on its line 1"),
    ],
)
def test_a_cell_that_cannot_be_read_costs_no_other_cell(tmp_path: Path, cell: str, note: str) -> None:
    result = read_notebook(tmp_path, "def f(): return 1", cell, "def g(): return 2")
    assert result.notes == (f"cell 2 was left out: {note}",)
    assert run_names(result.source) == {"f", "g"}


def test_cells_that_cannot_be_read_are_kept_with_the_line_of_the_fault_and_magics_are_not(tmp_path: Path) -> None:
    broken = "x = 1\ndef g(:\n    return 2"
    result = read_notebook(tmp_path, "def f(): return 1", "%%bash\nls", broken, "y = '\0'")
    assert [(cell.number, cell.line, cell.code) for cell in result.unread_cells] == [(3, 2, broken), (4, 0, "y = '\0'")]
    assert result.unread_cells[0].note == result.unread["g"]
    nothing = read_notebook(tmp_path, broken)
    assert nothing.source == ""
    assert [cell.number for cell in nothing.unread_cells] == [1]


def test_a_warning_about_a_students_string_is_not_the_graders(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = read_notebook(tmp_path, "def f(x):\n    return x is '\\d'")
    assert "def f(x)" in result.source
    assert caught == []


def test_a_notebook_without_functions_is_a_problem_that_keeps_its_notes(tmp_path: Path) -> None:
    result = read_notebook(tmp_path, "x = 1", "def compute_loss(:", untouched=HANDOUT)
    says = "cell 2 was left out: it has a syntax error on its line 1"
    assert result.problem == f"eve.ipynb defines no function to grade in cells that can be read: {says}."
    assert result.notes == ("cell 2 was left out: it has a syntax error on its line 1",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def f(): pass", "is not a notebook: its JSON is broken at line 1."),
        ("[]", "is not a notebook: it has no list of cells."),
        ("{}", "is not a notebook: it has no list of cells."),
        ('{"cells": 3, "worksheets": "x"}', "is not a notebook: it has no list of cells."),
        ('{"worksheets": [{"cells": []}]}', "is not a notebook: it has no list of cells."),
        ('{"cells": [3, null, {"cell_type": "code"}, {"source": 5}]}', "defines no function to grade"),
        ("null", "is not a notebook: it has no list of cells."),
        ("1" * 5_000, "is not a notebook: its JSON is broken."),
        ("", "is not a notebook: its JSON is broken at line 1."),
        ('{"cells": [\n<<<<<<< HEAD\n=======\n>>>>>>> theirs\n]}', "holds a merge conflict at line 2"),
        ("[" * 100_000, "is not a notebook: its JSON is nested too deeply."),
        ('{"cells":' * 100_000, "is not a notebook: its JSON is nested too deeply."),
        (notebook("def f(): pass") + "\0", "is not a text file: it holds a null byte"),
        (notebook(*["x = 1"] * 5_001), "is too large: more than 5000 cells and 128 KiB of code"),
        (notebook("x = 1\n" * 50_000), "is too large"),
        ('"' + '\\"' * 1_100_000, "is not a notebook"),
    ],
)
def test_what_is_not_a_notebook_is_a_problem(tmp_path: Path, text: str, says: str) -> None:
    start = time.process_time()
    assert f"eve.ipynb {says}" in read_one(put(tmp_path / "eve.ipynb", text)).problem
    assert time.process_time() - start < 3


def test_cells_that_are_not_cells_cost_no_other_cell(tmp_path: Path) -> None:
    good = {"cell_type": "code", "source": "def f():\n    return 1"}
    bad = [3, None, [], {"cell_type": []}, {**good, "source": {"a": 1}}, {**good, "source": [1, "x"]}]
    text = json.dumps({"nbformat": "four", "nbformat_minor": None, "metadata": [], "cells": [*bad, good]})
    assert read_one(put(tmp_path / "eve.ipynb", text)).source == "# cell 7\ndef f():\n    return 1\n"


def test_outputs_metadata_and_kernels_are_never_looked_at(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    forged = {"output_type": "stream", "name": "stdout", "text": "100 / 100\x1b[2J"}
    cell = {
        "cell_type": "code",
        "id": "same",
        "metadata": {"nbgrader": {"points": 100}},
        "outputs": [forged, 3, {"output_type": 1}],
        "source": "def f():\n    return 1",
    }
    kernel = {"kernelspec": {"name": "evil", "argv": ["rm", "-rf", "/"]}, "language_info": {"name": "bash"}}
    hostile = notebook(cells=[cell, cell], metadata=kernel, extra=[1])
    assert "return 1" in read_one(put(tmp_path / "eve.ipynb", hostile)).source
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


def test_fifty_megabytes_of_output_are_dropped_quickly(tmp_path: Path) -> None:
    outputs = [{"output_type": "stream", "name": "stdout", "text": "0.123, [1, 2] " * 3_500_000}]
    cell = {"cell_type": "code", "metadata": {}, "outputs": outputs, "source": "def f():\n    return 1"}
    path = put(tmp_path / "eve.ipynb", notebook(cells=[cell]))
    assert path.stat().st_size > 45_000_000
    start = time.process_time()
    assert "def f" in read_one(path).source
    assert time.process_time() - start < 3


def test_a_notebook_beyond_the_cap_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "eve.ipynb"
    with path.open("wb") as stream:
        stream.truncate(64 * 2**20 + 1)
    assert read_one(path).problem == "eve.ipynb is larger than 64 MiB."


def test_a_notebook_is_read_without_jupyters_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("nbformat", "IPython", "jupyter_core"):
        monkeypatch.setitem(sys.modules, package, None)
    assert read_notebook(tmp_path, "def f(): pass").source.endswith("def f(): pass\n")


def test_a_hundred_broken_cells_make_twenty_notes(tmp_path: Path) -> None:
    notes = read_notebook(tmp_path, "def f(): pass", *["x ="] * 100).notes
    assert len(notes) == 21
    assert notes[-1] == "80 more notes are left out here"


def test_nothing_of_a_submission_is_run(tmp_path: Path) -> None:
    code = f"open({str(tmp_path / 'ran')!r}, 'w')\ndef f(x=open({str(tmp_path / 'ran')!r}, 'w')): return x\n"
    put(tmp_path / "class" / "ada.py", code)
    put(tmp_path / "class" / "eve.ipynb", notebook(code))
    put(tmp_path / "class" / "bob.zip", zipped({PY: code}))
    for candidate in find([tmp_path / "class"], MODULE):
        assert read(candidate, MODULE, HANDOUT.replace("compute_loss", "f")).source
    assert not (tmp_path / "ran").exists()


# Anything at all

CELLS = (
    "%matplotlib inline\nimport torch, math as m\nfrom __future__ import annotations",
    "a = 1; print(a); b: int = (2,\n 3); a += 1\nfor i in b: pass\ntable = {}; table['x'] = 1",
    "def compute_loss(x, y=a):\n    '''%x\n?'''\n    return m.pi * b\n\n@decorate\nclass A(B): c = b",
    "try:\n    import q\nexcept ImportError: q = None\nif a: b = 2\nwith q: c = 3",
    "!ls\nx = !ls\nf?\ncompute_deltas = lambda r, m: (r\n% m)",
)
SEEDS = {
    ".py": ANSWER.encode(),
    ".ipynb": notebook(*CELLS).encode(),
    ".zip": zipped({f"a/{PY}": ANSWER, f"a/{IPYNB}": notebook(*CELLS), "b/x.txt": "y"}),
}


anything = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example overwrites the one before
)


@st.composite
def mutated(draw: st.DrawFn) -> tuple[str, bytes]:
    """A module, notebook or zip in which a few stretches were cut, doubled or overwritten."""
    suffix = draw(st.sampled_from(sorted(SEEDS)))
    data = SEEDS[suffix]
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        filling = draw(st.one_of(st.just(b""), st.just(data[start:end] * 2), st.binary(max_size=8)))
        data = data[:start] + filling + data[end:]
    return suffix, data


@settings(anything, max_examples=300)
@given(mutated(), st.sampled_from(["", HANDOUT]))
def test_whatever_is_in_a_file_reading_it_does_not_raise(
    tmp_path: Path, handed_in: tuple[str, bytes], untouched: str
) -> None:
    suffix, data = handed_in
    result = read_one(put(tmp_path / f"eve{suffix}", data), untouched)
    assert not result.fault


@settings(anything, max_examples=200)
@given(st.lists(st.sampled_from([line for cell in CELLS for line in cell.split("\n")])), st.integers(0, 6))
def test_what_is_made_of_a_notebook_always_compiles(tmp_path: Path, lines: list[str], cut: int) -> None:
    cells = ["\n".join(lines[:cut]), "\n".join(lines[cut:]), *CELLS]
    source = read_notebook(tmp_path, *cells).source
    compile(source, "notebook", "exec", dont_inherit=True)
