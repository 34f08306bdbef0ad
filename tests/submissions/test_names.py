"""What is handed in under whatever name: a lone file is that student's work, in every layout alike, with a note."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from autograder.platforms.layouts import gathered
from autograder.submissions.names import likeness, name_of
from autograder.submissions.reading import read
from autograder.submissions.submission import Submission

MODULE = "policy_gradient"
UNTOUCHED = "def f(x):\n    raise NotImplementedError\n\n\ndef g(x):\n    raise NotImplementedError\n"
WORK = "def f(x):\n    return x\n\n\ndef g(x):\n    return x\n"
GIVEN = "def given(x):\n    return x\n"


def notebook(*cells: str) -> str:
    bare = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    written = [{**bare, "id": f"c{at}", "source": cell} for at, cell in enumerate(cells)]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": written})


def content(name: str, text: str = WORK) -> bytes:
    if name.endswith(".zip"):
        return zipped({f"{MODULE}.py": text.encode()})
    return (notebook(text) if name.lower().endswith(".ipynb") else text).encode()


def zipped(members: dict[str, bytes]) -> bytes:
    import io

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


# How each layout holds one student's files
LAYOUTS = {
    "folder": "{student}/{name}",
    "deep folder": "{student}/work/{name}",
    "canvas": "{student}_{id}_{file}_{name}",
    "moodle folder": "{student}_{id}_assignsubmission_file/{name}",
    "moodle flat": "{student}_{id}_assignsubmission_file_{name}",
    "nbgrader": "{student}/ps5/{name}",
}
NAMES = (
    "work.zip", "My Work (final).zip", "Copy of policy_gradient.ipynb", "policy_gradient (1).ipynb",
    "policy_gradient-1.py", "Policy_Gradient.ipynb", "policy gradient.py", "hw5.py", "Untitled.ipynb",
)  # fmt: skip


def put(folder: Path, layout: str, *students: tuple[str, dict[str, bytes]]) -> Path:
    for number, (student, files) in enumerate(students, 1):
        for at, (name, data) in enumerate(files.items()):
            path = folder / LAYOUTS[layout].format(
                student=student, id=1000 + number, file=5000 + 10 * number + at, name=name
            )
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder


def graded(folder: Path) -> dict[str, Submission]:
    with gathered([folder], MODULE, functions=("f", "g")) as found:
        assert found.refused == ()
        return {one.student.partition("_")[0]: read(one, MODULE, UNTOUCHED) for one in found.candidates}


HONEST = ("ada", {f"{MODULE}.py": WORK.encode()}), ("ben", {f"{MODULE}.py": WORK.encode()})


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_lone_file_is_that_students_work_whatever_it_is_called(tmp_path: Path, layout: str, name: str) -> None:
    one = graded(put(tmp_path, layout, *HONEST, ("eve", {name: content(name)})))["eve"]
    assert one.problem == one.fault == ""
    assert "def f(x):" in one.source
    renamed = not name.endswith(".zip") and not (layout == "canvas" and name == "policy_gradient-1.py")
    assert any("was taken for policy_gradient." in note for note in one.notes) == (
        renamed and not (layout == "moodle flat" and name == "policy_gradient-1.py")
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_given_files_beside_it_are_not_taken_for_the_work(tmp_path: Path, layout: str) -> None:
    files = {"sorting_task.py": GIVEN, "experiments.py": "from policy_gradient import f\n", "hw5 answers.ipynb": WORK}
    folder = put(tmp_path, layout, *HONEST, ("eve", {name: content(name, text) for name, text in files.items()}))
    one = graded(folder)["eve"]
    assert one.path.endswith("hw5 answers.ipynb")
    assert "def f(x):" in one.source


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_contracts_name_counts_before_all_others(tmp_path: Path, layout: str) -> None:
    files = {f"{MODULE}.py": WORK.encode(), "zz policy_gradient (1).py": b"def f(x):\n    return 0\n"}
    assert graded(put(tmp_path, layout, *HONEST, ("eve", files)))["eve"].source == WORK


def test_of_two_that_could_be_meant_the_platforms_newest_counts(tmp_path: Path) -> None:
    files = {"first try.py": b"def f(x):\n    return 0\n", "answers.py": WORK.encode()}
    one = graded(put(tmp_path, "canvas", *HONEST, ("eve", files)))["eve"]
    assert one.source == WORK


@pytest.mark.parametrize("layout", ["folder", "deep folder", "moodle folder", "nbgrader"])
def test_two_that_could_be_meant_and_nothing_orders_are_nobodys_zero(tmp_path: Path, layout: str) -> None:
    files = {"one.py": b"def f(x):\n    return 0\n", "two.py": WORK.encode()}
    one = graded(put(tmp_path, layout, *HONEST, ("eve", files)))["eve"]
    assert one.problem == ""
    assert "holds both" in one.fault
    assert "one.py and" in one.fault


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_module_and_a_notebook_of_other_names_are_one_submission(tmp_path: Path, layout: str) -> None:
    files = {"Policy_Gradient.py": UNTOUCHED.encode(), "Copy of policy_gradient.ipynb": content("x.ipynb")}
    one = graded(put(tmp_path, layout, *HONEST, ("eve", files)))["eve"]
    assert "return x" in one.source
    assert any("the module is as it was handed out" in note for note in one.notes)


def test_a_zip_with_a_renamed_notebook_in_it_is_read_too(tmp_path: Path) -> None:
    inner = {"hand in/Copy of policy_gradient.ipynb": content("x.ipynb"), "hand in/sorting_task.py": GIVEN.encode()}
    one = graded(put(tmp_path, "folder", *HONEST, ("eve", {"work.zip": zipped(inner)})))["eve"]
    assert one.path.endswith("work.zip/hand in/Copy of policy_gradient.ipynb")
    assert "def f(x):" in one.source


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
def test_a_name_without_a_flag_is_read_as_it_was_meant(raw: bytes, meant: str) -> None:
    member = zipfile.ZipInfo(raw.decode("cp437"))
    assert name_of(member) == meant


def test_a_zip_of_windows_with_umlauts_is_graded_and_shown_as_it_was_meant(tmp_path: Path) -> None:
    placeholder = b"XXXXX/policy_gradient.py"
    raw = zipped({placeholder.decode(): WORK.encode()}).replace(
        placeholder, "Übung/policy_gradient.py".encode("cp1252")
    )
    (tmp_path / "eve.zip").write_bytes(raw)
    put(tmp_path, "folder", *HONEST)
    assert graded(tmp_path)["eve"].path == "eve.zip/Übung/policy_gradient.py"


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
def test_a_notebook_saved_as_a_script_is_graded_for_its_definitions_alone(
    tmp_path: Path, script: str, name: str
) -> None:
    one = graded(put(tmp_path, "folder", *HONEST, ("eve", {name: script.encode()})))["eve"]
    assert one.problem == ""
    scope: dict[str, object] = {}
    exec(compile(one.source, "script", "exec"), scope)  # the tests' own code
    assert scope["f"](2) == 2  # type: ignore[operator]
    assert "score" not in one.source


def test_a_module_with_cells_of_an_editor_stays_a_module(tmp_path: Path) -> None:
    text = f"# %%\nimport math\n\n# %%\n{WORK}"
    assert graded(put(tmp_path, "folder", *HONEST, ("eve", {f"{MODULE}.py": text.encode()})))["eve"].source == text


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("policy_gradient.py", 3),
        ("Policy_Gradient.ipynb", 2),
        ("PolicyGradient.py", 2),
        ("policy-gradient.py", 2),
        ("policy_gradient - Copy.py", 2),
        ("Copy of Copy of policy_gradient.ipynb", 2),
        ("Kopie von policy_gradient.ipynb", 2),
        ("policy_gradient(2).py", 2),
        ("policy_gradient_final.py", 1),
        ("my policy gradient v2.py", 1),
        ("work.py", 0),
    ],
)
def test_names_are_alike_as_far_as_people_and_browsers_change_them(name: str, rank: int) -> None:
    assert likeness(name, MODULE) == rank
