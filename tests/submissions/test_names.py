"""What is handed in under whatever name: a lone file is that student's work, in every layout alike, with a note."""

from __future__ import annotations

import itertools
import zipfile
from pathlib import Path

import hand_ins
import pytest
from hand_ins import MODULE, notebook, zipped

from autograder.platforms.layouts import gathered
from autograder.submissions.names import name_of
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission

UNTOUCHED = "def f(x):\n    raise NotImplementedError\n\n\ndef g(x):\n    raise NotImplementedError\n"
WORK = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
GIVEN = "def given(x):\n    return x\n"


def content(name: str, text: str = WORK) -> bytes:
    if name.endswith(".zip"):
        return zipped({f"{MODULE}.py": text})
    return (notebook(text) if name.lower().endswith(".ipynb") else text).encode()


# How each layout holds one student's files
LAYOUTS = {
    "folder": "{student}/{name}",
    "deep folder": "{student}/work/{name}",
    "canvas": "{student}_{id}_{file}_{name}",
    "moodle folder": "{student}_{id}_assignsubmission_file/{name}",
    "moodle flat": "{student}_{id}_assignsubmission_file_{name}",
    "nbgrader": "{student}/ps5/{name}",
}
NAMES = (  # as students and their browsers make them
    "work.zip", "My Work (final).zip", "Copy of policy_gradient.ipynb", "policy_gradient (1).ipynb",
    "policy_gradient-1.py", "Policy_Gradient.ipynb", "policy gradient.py", "hw5.py", "Untitled.ipynb",
)  # fmt: skip


def put(folder: Path, layout: str, *students: tuple[str, dict[str, bytes]]) -> Path:
    for number, (student, files) in enumerate(students, 1):
        for at, (name, data) in enumerate(files.items()):
            ids = {"id": 1000 + number, "file": 5000 + 10 * number + at}
            hand_ins.put(folder / LAYOUTS[layout].format(student=student, name=name, **ids), data)
    return folder


def graded(folder: Path) -> dict[str, Submission]:
    with gathered([folder], MODULE, functions=("f", "g")) as found:
        assert found.refused == ()
        return {one.student.partition("_")[0]: read(one, MODULE, UNTOUCHED) for one in found.candidates}


HONEST = ("ada", {f"{MODULE}.py": WORK.encode()}), ("ben", {f"{MODULE}.py": WORK.encode()})


OTHER_SUFFIXES = (  # as programs add them
    "policy_gradient.py.txt", "policy_gradient.ipynb.txt", "policy_gradient.ipynb.json", "work.zip.bin", "hw5.PY.TXT",
    "policy_gradient.ipynb のコピー", "policy_gradient.ipynb.part", "policy_gradient.py.bak", "policy_gradient.py~",
    "policy_gradient.txt", "policy_gradient.json", "policy_gradient.pyw", "policy_gradient", "answers (2).txt",
)  # fmt: skip
AS_PLATFORMS_NAME = [("canvas", "policy_gradient-1.py"), ("moodle flat", "policy_gradient-1.py")]


@pytest.mark.parametrize(
    ("layout", "name"),
    [*itertools.product(LAYOUTS, NAMES), *itertools.product(("folder", "canvas"), OTHER_SUFFIXES)],
)
def test_lone_file_is_the_work_whatever_its_name(tmp_path: Path, layout: str, name: str) -> None:
    is_zip, is_notebook = ".zip" in name, ".ipynb" in name or name.endswith(".json")
    data = content("x.zip" if is_zip else "x.ipynb" if is_notebook else "x.py")
    eve = graded(put(tmp_path, layout, *HONEST, ("eve", {name: data})))["eve"]
    assert eve.problem == eve.fault == ""
    assert "def f(x):" in eve.source
    wanted = f"was taken for {MODULE}{'.ipynb' if is_notebook else '.py'}: hand it in under that name"
    assert any(note.endswith(wanted) for note in eve.notes) == (not is_zip and (layout, name) not in AS_PLATFORMS_NAME)


WRONG = "def f(x):\n    return 0\n"
BEGUN = UNTOUCHED.replace("raise NotImplementedError", "return x", 1)
TOGETHER: list[tuple[dict[str, str], str]] = [  # files, and which of them counts
    ({f"{MODULE}.py": WORK, "zz policy_gradient (1).py": WRONG}, f"{MODULE}.py"),
    ({f"{MODULE}.py": BEGUN, "policy_gradient_final.py": WORK}, f"{MODULE}.py"),
    (
        {"sorting_task.py": GIVEN, "other.py": "from policy_gradient import f\n", "hw5 work.ipynb": WORK},
        "hw5 work.ipynb",
    ),
    ({"Policy_Gradient.py": UNTOUCHED, "Copy of policy_gradient.ipynb": WORK}, "Copy of policy_gradient.ipynb"),
    *(
        ({f"{MODULE}.py": UNTOUCHED, "sorting_task.py": GIVEN, name: WORK}, name)
        for name in ("Copy of policy_gradient.ipynb", "policy_gradient_final.py", "my answers.py")
    ),
]


@pytest.mark.parametrize("layout", [*LAYOUTS, "zip"])
@pytest.mark.parametrize(("texts", "name"), TOGETHER)
def test_work_counts_before_what_lies_beside(tmp_path: Path, layout: str, texts: dict[str, str], name: str) -> None:
    files = {path: content(path, text) for path, text in texts.items()}
    if layout == "zip":
        layout, files = "folder", {"work.zip": zipped({f"hand in/{path}": data for path, data in files.items()})}
    eve = graded(put(tmp_path, layout, *HONEST, ("eve", files)))["eve"]
    assert eve.problem == eve.fault == ""
    assert eve.path.endswith(name)
    assert "def f(x):\n    return x" in eve.source
    assert eve.notes or name == f"{MODULE}.py"


# A handout has its cases with it, whose probes define some of what is graded.
BELOW: list[tuple[dict[str, str], str]] = [
    ({f"{MODULE}.py": UNTOUCHED, "a.py": WORK, "b.py": WRONG}, " holds both a.py and b.py: keep the one that counts."),
    ({"one.py": WRONG, "two.py": WORK}, " holds both one.py and two.py: keep the one that counts."),
    ({f"handout/{MODULE}.py": UNTOUCHED, f"mine/{MODULE}.py": WORK}, f"mine/{MODULE}.py"),
    ({f"again/{MODULE}.py": WORK, f"mine/{MODULE}.py": WORK}, f"/{MODULE}.py"),
    ({f"hw/{MODULE}.py": UNTOUCHED, "hw/fixtures/x/probes.py": WRONG}, f"hw/{MODULE}.py"),
    ({"hw/my answers.py": WORK, "hw/fixtures/x/probes.py": WRONG}, "hw/my answers.py"),
    ({"hw/my answers.ipynb": WORK, "hw/fixtures/x/probes.py": WRONG}, "hw/my answers.ipynb"),
    ({f"hw/fixtures/{MODULE}/probes.py": WORK, "a.csv": ""}, f" holds no {MODULE}.py or {MODULE}.ipynb: what was"),
    ({f"hw/fixtures/{MODULE}/probes.py": WORK, f"hw/{MODULE}.txt": WORK}, f"hw/{MODULE}.txt"),
    ({"report.txt": "I think that def is a keyword.\n", "data.json": "{}"}, "what was found is data.json, report.txt."),
    ({f"{MODULE}.txt": WORK, "sorting_task.py": GIVEN}, f"{MODULE}.txt"),
    ({"hw5.py": WORK, "old.txt": WRONG}, "hw5.py"),
    ({"data.zip": "", "work.zip": WORK}, f"work.zip/{MODULE}.py"),
    ({"hw5.py": UNTOUCHED, "work.zip": WORK}, f"work.zip/{MODULE}.py"),
    ({"hw5.py": BEGUN, "work.zip": WRONG}, "hw5.py"),
    ({"again.zip": WORK, "work.zip": WORK}, " holds both again.zip and work.zip: keep the one that counts."),
    ({"hand in/work.7z": "7z"}, " holds hand in/work.7z, which is not unpacked here: unpack it by hand, and grade the"),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("texts", "outcome"), BELOW)
def test_file_that_counts_in_a_folder_or_zip(tmp_path: Path, texts: dict[str, str], outcome: str, packed: bool) -> None:
    files = {path: content(path, text) if text else zipped({"x.csv": b""}) for path, text in sorted(texts.items())}
    eve = graded(put(tmp_path, "folder", *HONEST, ("eve", {"w.zip": zipped(files)} if packed else files)))["eve"]
    sentence = eve.problem or eve.fault
    assert outcome in (sentence or eve.path)
    assert (eve.problem == "") == ("found" not in outcome and "what was" not in outcome)  # else it is nobody's zero


@pytest.mark.parametrize("layout", ["folder", "canvas"])
def test_file_of_another_suffix_beside_the_others_is_its_students(tmp_path: Path, layout: str) -> None:
    put(tmp_path, layout, *HONEST)
    for name, text in {"eve.txt": WORK, "zoe": WORK, "roster.txt": "eve, zoe\n", "notes.md": WORK}.items():
        (tmp_path / name).write_text(text)
    read_ = graded(tmp_path)
    assert read_.keys() == {"ada", "ben", "eve", "zoe"}
    assert read_["eve"].source == read_["zoe"].source == WORK


PACKED = {
    "work.rar": b"Rar!\x1a\x07\x01\x00", "work.7z": b"7z\xbc\xaf'\x1c", "work.tar.gz": b"\x1f\x8b\x08",
    "work.TGZ": b"\x1f\x8b\x08", "hw5.tar": b"", "really a rar.zip": b"Rar!\x1a\x07\x01\x00",
}  # fmt: skip


@pytest.mark.parametrize("layout", ["folder", "canvas"])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("name", PACKED)
def test_other_archive_is_nobodys_zero(tmp_path: Path, layout: str, beside: bool, name: str) -> None:
    put(tmp_path, layout, *HONEST, ("eve", {} if beside else {name: PACKED[name]}))
    if beside:
        (tmp_path / name).write_bytes(PACKED[name])
    eve = graded(tmp_path)[name.split(".")[0] if beside else "eve"]
    assert eve.problem == ""
    assert "not unpacked here: unpack it by hand, and grade the folder." in eve.fault
    assert name in eve.fault


# Zips with names of other code pages


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        ("Übung/Lösung.py".encode("cp1252"), "Übung/Lösung.py"),
        ("Übung/Lösung.py".encode(), "Übung/Lösung.py"),
        ("Übung.py".encode("cp437"), "Übung.py"),
        ("été.py".encode("cp1252"), "été.py"),
        (b"plain.py", "plain.py"),
    ],
)
def test_name_in_a_zip_without_flag_is_read_as_meant(raw: bytes, meant: str) -> None:
    member = zipfile.ZipInfo(raw.decode("cp437"))
    assert name_of(member) == meant


# A notebook saved as a script

NBCONVERT = f"""#!/usr/bin/env python
# coding: utf-8

# # Policy gradient

# In[1]:


import math
get_ipython().run_line_magic('matplotlib', 'inline')


# In[2]:


{WORK}

# In[ ]:


from autograder.checking.live import score
score("policy_gradient", "x")
while True:
    pass
"""
JUPYTEXT = f"""# ---
# jupyter:
#   jupytext:
#     text_representation:
#       format_name: percent
# ---

# %% [markdown]
# # Policy gradient: it's here

# %%
# %matplotlib inline
import math

# %% nbgrader={{"grade": false}}
{WORK}
# %%
from autograder.checking.live import score

score("policy_gradient", "x")
"""
COLAB = f'''# -*- coding: utf-8 -*-
"""policy_gradient.ipynb

Automatically generated by Colab.

Original file is located at
    https://colab.research.google.com/drive/x
"""

!pip install einops
# Commented out IPython magic to ensure Python compatibility.
# %cd /content

{WORK}

score("policy_gradient", "x")
for step in range(10**9):
    f(step)
'''


@pytest.mark.parametrize("script", [NBCONVERT, JUPYTEXT, COLAB], ids=["nbconvert", "jupytext", "colab"])
@pytest.mark.parametrize("name", [f"{MODULE}.py", "policy_gradient (2).py", "notebook.py"])
def test_notebook_saved_as_script_keeps_definitions_alone(tmp_path: Path, script: str, name: str) -> None:
    eve = graded(put(tmp_path, "folder", *HONEST, ("eve", {name: script.encode()})))["eve"]
    assert eve.problem == ""
    scope: dict[str, object] = {}
    exec(compile(eve.source, "script", "exec"), scope)  # the tests' own code
    assert scope["f"](2) == 2  # type: ignore[operator]
    assert "score" not in eve.source


def test_module_with_cells_of_an_editor_stays_a_module(tmp_path: Path) -> None:
    text = f"# %%\nimport math\n\n# %%\n{WORK}"
    assert graded(put(tmp_path, "folder", *HONEST, ("eve", {f"{MODULE}.py": text.encode()})))["eve"].source == text
