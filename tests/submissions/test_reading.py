"""Reading: which file of a hand-in counts, its text, and what a file can do to stop it."""

from __future__ import annotations

import hashlib
import io
import struct
import time
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import pytest
from hand_ins import ANSWER, HANDOUT, IPYNB, MODULE, PY, notebook, put, put_all, read_one, zipped
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.submissions.reading import read
from autograder.submissions.submission import Candidate

OTHER = "x = 1\n"

# Text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfx = 1\n", "x = 1\n"),
        ("x = 'é'\n".encode(), "x = 'é'\n"),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1"), "# -*- coding: latin-1 -*-\nx = 'é'\n"),
        (b"# coding: ascii\r\ndef broken(:\r\n", "# coding: ascii\r\ndef broken(:\r\n"),
        ("# coding: cp1252\nx = '€'\n".encode("cp1252"), "# coding: cp1252\nx = '€'\n"),
        ("#!x\n# vim: fileencoding=gbk :\nx = '猫'\n".encode("gbk"), "#!x\n# vim: fileencoding=gbk :\nx = '猫'\n"),
        (b"\xef\xbb\xbf# coding: utf-8\nx = 1\n", "# coding: utf-8\nx = 1\n"),
        (b"#" * 2**17, "#" * 2**17),
    ],
)
def test_text_is_decoded_as_python_does(tmp_path: Path, data: bytes, text: str) -> None:
    result = read_one(put(tmp_path / "ada.py", data))
    assert (result.source, result.notes) == (text, ())
    assert result.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"x = 1\n" * 20 + b"y = '\xff'\n", "is not UTF-8 text: byte 0xff at position 125. Save it"),
        (b"\xef\xbb\xbfy = '\xff'\n", "is not UTF-8 text: byte 0xff at position 8."),
        (b"# coding: ascii\ny = '\xe9'\n", "is not ASCII text: byte 0xe9 at position 21."),
        (b"# coding: rot13\nk = 1\n", "declares an encoding that Python cannot read"),
        (b"# coding: no-such-thing\nk = 1\n", "declares an encoding that Python cannot read"),
        (b"# coding: utf-7\nk = 1\n", "declares an encoding that Python cannot read"),
        (b"\xef\xbb\xbf# coding: latin-1\nk = 1\n", "declares an encoding that Python cannot read"),
        ("x = 1\n".encode("utf-16"), "is UTF-16 text: save it as UTF-8."),
        (b"x = 1\0\n", "is not a text file: it holds a null byte at position 5."),
        (zipped({PY: ANSWER}), "is not a text file"),
        (b"", "is empty."),
        (b"\xef\xbb\xbf \r\n\t\n", "is empty."),
        (b"#" * (2**17 + 1), "is too large: more than 128 KiB of code"),
        (b"#" * (2**20 + 1), "is larger than 1 MiB."),
    ],
)
def test_what_is_not_a_python_file_is_a_problem(tmp_path: Path, data: bytes, message: str) -> None:
    result = read_one(put(tmp_path / "ada.py", data))
    assert f"ada.py {message}" in result.problem
    assert result.sha256 == hashlib.sha256(data).hexdigest()


# Which of several files counts


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({f"{MODULE}/{PY}": ANSWER}, f"/{MODULE}/{PY}"),
        ({f"work/{PY}": ANSWER, f"work/old/{PY}": OTHER, f"work/._{PY}": "\0", "__MACOSX/._x": ""}, f"/work/{PY}"),
        ({f"home/work/final/{PY}": ANSWER, "home/notes.txt": ""}, f"/home/work/final/{PY}"),
        ({"inner.zip": zipped({PY: OTHER}), f"work/{PY}": ANSWER}, f"/work/{PY}"),
        ({f"a/{PY}": ANSWER, f"b/{PY}": OTHER}, " holds both "),
        ({f"a/{PY}": OTHER, f"b/{IPYNB}": "{}"}, " holds both "),
        ({"a.py": OTHER, "b.py": OTHER, "n/c.txt": OTHER, "n/d.txt": ""}, "found is a.py, b.py, n/c.txt and 1 more."),
    ],
)
def test_file_nearest_to_the_top_counts(
    tmp_path: Path, files: dict[str, str | bytes], outcome: str, packed: bool
) -> None:
    put_all(tmp_path / "eve", files, packed)
    result = read_one(tmp_path)
    if outcome.startswith("/"):
        assert result.path == f"eve{'.zip' * packed}{outcome}"
        assert result.source == ANSWER
        assert result.sha256 == hashlib.sha256(ANSWER.encode()).hexdigest()
    elif "both" in outcome:  # nobody's zero
        assert outcome in result.fault
    else:
        assert outcome in result.problem


@pytest.mark.parametrize("packed", [False, True])
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
        (b"x = '\xe9'\n", ANSWER, IPYNB, "is not UTF-8 text: byte 0xe9 at position 5"),
        *[(data, cells, PY, "") for data in (b"\xff\xfe", b"x = '\xe9'\n", b"\0", b"") for cells in (HANDOUT, "x = 1")],
        *[(module, HANDOUT.replace('"compute_loss"', ""), PY, "") for module in (ANSWER, HANDOUT)],
    ],
)
def test_module_counts_unless_only_the_notebook_was_worked_on(
    tmp_path: Path, module: str | bytes, cells: str, chosen: str, reason: str, packed: bool
) -> None:
    members: dict[str, str | bytes] = {PY: module, IPYNB: notebook(cells)}
    put_all(tmp_path / "ada", members, packed)
    result = read_one(tmp_path, HANDOUT)
    assert result.path.endswith(f"/{chosen}")
    if isinstance(module, bytes) and chosen == PY:
        assert " is " in result.problem
    elif not reason:
        assert result.notes == ()  # a notebook that was never touched is not worth a note
    else:
        assert result.notes[0].startswith("both a module and a notebook were handed in")
        assert reason in result.notes[0]


def test_class_completed_in_part_is_work(tmp_path: Path) -> None:
    stub = "class Net:\n    given = 1\n{}\n    def loss(self):\n        raise NotImplementedError\n"
    handout = stub.format("    def forward(self):\n        raise NotImplementedError\n")
    put(tmp_path / "ada" / PY, handout)
    put(tmp_path / "ada" / IPYNB, notebook(stub.format("    def forward(self):\n        return 1\n")))
    assert read_one(tmp_path, handout).path.endswith(IPYNB)
    put(tmp_path / "ada" / IPYNB, notebook(handout))
    assert read_one(tmp_path, handout).path.endswith(PY)


def test_notebook_of_a_platform_beside_the_module_is_read(tmp_path: Path) -> None:
    module = put(tmp_path / "ada_1_policy.py", HANDOUT)
    beside = put(tmp_path / "ada_2_policy.ipynb", notebook(ANSWER))
    files = ((PY, module), (IPYNB, beside))
    candidate = Candidate("ada", module, module.name, files, ("handed in late",))
    result = read(candidate, MODULE, HANDOUT)
    assert result.path == "ada_2_policy.ipynb"
    assert result.notes[0] == "handed in late"
    assert "the module is as it was handed out" in result.notes[1]
    essay = put(tmp_path / "essay.txt", OTHER)
    assert read(Candidate("ada", essay, "essay.txt"), MODULE).problem.startswith("essay.txt is no .py, .ipynb or .zip")


# Zips


def with_entry(mode: int) -> bytes:
    """A zip of an entry that is no regular file."""
    entry = zipfile.ZipInfo(PY)
    entry.external_attr = mode << 16
    return packed_as((entry, "/etc/passwd"))


def packed_as(*entries: tuple[str | zipfile.ZipInfo, str]) -> bytes:
    """A zip of these entries, of which several may have one name."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        for name, content in entries:
            archive.writestr(name, content)
    return stream.getvalue()


def encrypted() -> bytes:
    data = bytearray(zipped({PY: ANSWER}))
    data[data.index(b"PK\x03\x04") + 6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def nested(times: int, data: bytes) -> bytes:
    for _ in range(times):
        data = zipped({"inner.zip": data, "__MACOSX/._inner.zip": "", "notes.txt": ""})
    return data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        *[(broken, "eve.zip is damaged, or not a zip file: pack it again.") for broken in (
            b"", b"PK\x05\x06", b"not a zip", zipped({PY: ANSWER})[:-30],
            zipped({PY: ANSWER}, zipfile.ZIP_STORED).replace(b"mean()", b"sum() "),
        )],
        (with_entry(0o120777), f"eve.zip/{PY} is a symbolic link; hand in the file itself."),
        (with_entry(0o010644), f"eve.zip/{PY} is not a regular file; hand in the file itself."),
        (encrypted(), f"eve.zip/{PY} is encrypted: pack it again without a password."),
        (zipped({PY: b"#" * 50_000}, zipfile.ZIP_BZIP2), f"eve.zip/{PY} is packed by an unusual method: "),
        (zipped({PY: b"#" * 50_000}, zipfile.ZIP_LZMA), f"eve.zip/{PY} is packed by an unusual method: "),
        (nested(1, zipped({PY: b"#" * (3 * 2**20)})), f"eve.zip/inner.zip/{PY} is larger than 1 MiB."),
        (nested(4, zipped({PY: ANSWER})), "inner.zip/inner.zip holds no policy_gradient.py or policy_gradient.ipynb: "),
        *[(zipped({place + PY: ANSWER}), "which would lie outside it: pack it again.") for place in (
            "../", "/etc/", "a/../../", "C:\\work\\", "\\\\host\\",
        )],
    ],
)  # fmt: skip
def test_zip_that_cannot_be_read_is_a_problem(tmp_path: Path, data: bytes, problem: str) -> None:
    result = read_one(put(tmp_path / "eve.zip", data))
    assert problem in result.problem
    assert result.sha256 != hashlib.sha256(b"").hexdigest() or not data or "link" in problem or "regular" in problem


@pytest.mark.parametrize(
    ("name", "data", "path"),
    [
        ("eve.zip", zipped({f"work/{PY}": ANSWER}).replace(b"work/", b"work\\"), f"work/{PY}"),  # of Windows
        ("eve.ZIP", zipped({f"../{PY}": OTHER, f"a/b/{PY}": ANSWER}), f"a/b/{PY}"),
        *(("eve.zip", nested(n, zipped({f"work/{PY}": ANSWER})), f"{'inner.zip/' * n}work/{PY}") for n in (1, 2)),
        ("eve.zip", packed_as((PY, OTHER), (PY, ANSWER)), PY),  # of a name twice the last counts
    ],
)
def test_zip_is_looked_into(tmp_path: Path, name: str, data: bytes, path: str) -> None:
    result = read_one(put(tmp_path / name, data))
    assert (result.path, result.source) == (f"{name}/{path}", ANSWER)


@pytest.mark.parametrize("lie", [False, True])
def test_bomb_is_a_problem_in_no_time_and_little_memory(tmp_path: Path, lie: bool) -> None:
    data = zipped({PY: b"#" * 30_000_000})
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


# Anything at all

CELLS = (
    "%matplotlib inline\nimport torch, math as m\nfrom __future__ import annotations",
    "a = 1; print(a); b: int = (2,\n 3); a += 1\nfor i in b: pass\ntable = {}; table['x'] = 1",
    "def compute_loss(x, y=a):\n    '''%x\n?'''\n    return m.pi * b\n\n@decorate\nclass A(B): c = b",
    "try:\n    import q\nexcept ImportError: q = None\nif a: b = 2\nwith q: c = 3",
    "!ls\nx = !ls\nf?\ncompute_deltas = lambda r, m: (r\n% m)",
)
anything = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # each example overwrites the one before
)


@settings(anything, max_examples=40)
@given(st.lists(st.sampled_from([line for cell in CELLS for line in cell.split("\n")])), st.integers(0, 6))
def test_text_of_a_notebook_always_compiles(tmp_path: Path, lines: list[str], cut: int) -> None:
    cells = ["\n".join(lines[:cut]), "\n".join(lines[cut:]), *CELLS]
    source = read_one(put(tmp_path / "eve.ipynb", notebook(*cells))).source
    compile(source, "notebook", "exec", dont_inherit=True)
