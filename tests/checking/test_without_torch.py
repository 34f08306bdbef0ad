"""Assignments in NumPy or plain Python: students install no torch, and no worker imports any."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from example_course import example_course

from autograder.authoring.new import EXAMPLE_NAME
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox

INSTALLED = ("numpy", "numpy.libs", "safetensors")  # what requirements.txt names, but for pytest
PROBES = """
from autograder.sandbox.worker.calling import call

def plainly(student, inputs, params):
    return {"found": student.f(**inputs)}, {}
"""
IS_LOADED = "import sys\ndef f():\n    return str('torch' in sys.modules)\n"


@pytest.fixture(scope="module", params=[True, False], ids=["forked", "fresh"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(fork=request.param and sys.platform == "linux") as running:
        yield running


def called(
    sandbox: Sandbox, source: str, inputs: dict[str, Any] | None = None, *, torch: bool = False, **params: Any
) -> Outcome:
    arrays = {name: np.array(array) for name, array in (inputs or {}).items()}
    asked = {"function": "f", "arguments": list(arrays), "values": "numpy", "returns": ["f"], **params}
    request = Request("item", "f", asked.pop("probe", "call"), asked, safetensors.numpy.save(arrays), 20.0)
    return sandbox.run(Program("made", source, {}, PROBES, torch), [request], load_timeout=30.0)[0]


def test_worker_has_torch_where_the_assignment_needs_it(sandbox: Sandbox) -> None:
    for torch in (False, True, False):
        outcome = called(sandbox, IS_LOADED, torch=torch, plain=True)
        assert outcome.observation is not None, outcome
        assert outcome.observation.facts["result"] == str(torch)


@pytest.mark.parametrize(
    ("dtype", "sent"), [("float16", True), ("int8", True), (">f8", True), ("complex128", False), ("U3", False)]
)
def test_arrays_of_numbers_are_sent_and_no_others(sandbox: Sandbox, dtype: str, sent: bool) -> None:
    source = f"import numpy as np\ndef f(x):\n    return np.ones(2).astype({dtype!r})\n"
    outcome = called(sandbox, source, {"x": [1.0]}, probe="plainly")
    assert outcome.observation is not None, outcome
    assert (outcome.observation.returned["found"].array is not None) == sent


@pytest.mark.parametrize(
    "source",
    [
        "import torch\ndef f():\n    return 1.0\n",
        "import importlib\ntorch = importlib.import_module('torch')\ndef f():\n    return 1.0\n",
        "def f():\n    import torch\n    return torch.ones(1)\n",
    ],
)
def test_package_that_the_assignment_lacks_is_missing_in_a_sentence(sandbox: Sandbox, source: str) -> None:
    params = {"function": "f", "arguments": [], "values": "numpy", "returns": ["f"]}
    request = Request("item", "f", "call", params, safetensors.numpy.save({}), 20.0)
    program = Program("made", source, {"given": "import json\n"}, PROBES, torch=False, packages=("numpy",))
    [outcome] = sandbox.run(program, [request], load_timeout=5.0)
    assert outcome.raised is not None, outcome
    assert outcome.raised.types[0] == "ModuleNotFoundError"
    has = "this assignment's submissions have numpy and the standard library"
    assert outcome.raised.message == f"{has}; torch is not installed here"
    assert "torch" in outcome.raised.code


# What students have


@pytest.fixture(scope="module")
def handout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handout of the guide's example, which is in NumPy alone."""
    root = shutil.copytree(example_course(tmp_path_factory)[0], tmp_path_factory.mktemp("without") / "course")
    shutil.copytree(root / "solution" / EXAMPLE_NAME, root / "solved")
    return root / "handout" / EXAMPLE_NAME


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of installed packages with no torch among them."""
    folder = tmp_path_factory.mktemp("bare") / "site-packages"
    folder.mkdir()
    spec = importlib.util.find_spec("numpy")
    installed = Path(str(spec and spec.origin)).parents[1]
    for name in INSTALLED:
        if (installed / name).is_dir():
            (folder / name).symlink_to(installed / name)
    return folder


def python(folder: Path, bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-s", *words]
    environment = {"PATH": os.defpath, "PYTHONPATH": str(bare), "HOME": str(folder), "COLUMNS": "120"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_students_of_numpy_install_no_torch(handout: Path) -> None:
    names = [line.partition("=")[0].rstrip(">") for line in (handout / "requirements.txt").read_text().splitlines()]
    assert names == ["numpy", "safetensors", "pytest", "pytest-timeout"]
    notebook = (handout / f"{EXAMPLE_NAME}.ipynb").read_text()
    assert "torch" not in notebook


@pytest.mark.skipif(sys.platform != "linux", reason="site-packages of another layout")
def test_handout_checks_itself_without_torch(handout: Path, bare: Path) -> None:
    done = python(handout, bare, "-m", "autograder", "check")
    assert "0 / 100" in done.stdout, done.stdout + done.stderr
    assert "TODO  softmax" in done.stdout
    untouched = (handout / f"{EXAMPLE_NAME}.py").read_text()
    try:
        shutil.copy(handout.parents[1] / "solved" / f"{EXAMPLE_NAME}.py", handout)
        done = python(handout, bare, "-m", "autograder", "check")
        assert "100 / 100" in done.stdout, done.stdout + done.stderr
        assert done.returncode == 0
    finally:
        (handout / f"{EXAMPLE_NAME}.py").write_text(untouched)
