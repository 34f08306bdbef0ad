"""A course around a toy assignment of two functions: quick to generate, to grade and to break in a test."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import KIT

from autograder.authoring.fixtures import verify
from autograder.authoring.handout.release import handout_files
from autograder.checking.handout import write_handout
from autograder.cli.options import CACHE
from autograder.grading.assignment import Assignment, load_assignment

ITEMS = """\
assignment = "toy"
title = "Toy"
module = "toy"
given = []
load_timeout = 20

[[item]]
id = "ramp-values"
function = "ramp"
title = "scaled above 0, nothing below"
points = 6
timeout = 5
hint = "What happens below 0?"
public = ["ramp-small"]
hidden = ["ramp-large"]

[[item]]
id = "shift-values"
function = "shift"
title = "moved by a constant"
points = 4
timeout = 5
hint = "Which way?"
public = ["shift-small"]
hidden = []
"""

ORACLE = """\
import numpy as np

TAKEN = set()
BRANCHES = {"ramp-values": {"above", "below"}}


def ramp(x, factor):
    TAKEN.update("above" if value > 0 else "below" for value in x.flat)
    return np.array([[factor * max(value, 0.0) for value in row] for row in x.tolist()])


def shift(x, factor):
    return np.array([[value + factor for value in row] for row in x.tolist()])
"""

CASES = """\
import numpy as np
from autograder.authoring.declarations import Draft, generator_for, unchanged, value

from . import oracle


def answer(name):
    def right(inputs, params):
        found = getattr(oracle, name)(inputs["x"], params["factor"])
        return [value(name, f"the {name}", found, "row column", "float64"), unchanged("x", inputs["x"])]

    return right


def drafts(secret, draw):
    for case, title, shape in [
        ("ramp-small", "two rows", (2, 3)),
        ("ramp-large", "three rows", (3, 5)),
        ("shift-small", "two rows", (2, 3)),
    ]:
        probe = case.partition("-")[0]
        x = generator_for(secret, case).uniform(0.5, 2.0, shape) * np.resize([1, -1], shape)
        yield Draft(case, title, probe, {"x": x}, answer(probe), {"factor": 2.5})
"""

MISTAKES = """\
from autograder.authoring.catalogue import Mistake

MISTAKES = (
    Mistake("no-kink", "ramp", "What happens below 0?", "def ramp(x, factor): return factor * x"),
    Mistake("not-scaled", "ramp", "Where is the factor?", "def ramp(x, factor): return x.clamp(min=0)"),
    Mistake("wrong-way", "shift", "Which way?", "def shift(x, factor): return x - factor"),
)
"""

PROBES = """\
def ramp(student, inputs, params):
    return {"ramp": student.ramp(inputs["x"], factor=params["factor"]), **inputs}, {}


def shift(student, inputs, params):
    return {"shift": student.shift(inputs["x"], factor=params["factor"]), **inputs}, {}
"""

SOLUTION = """\
\"\"\"Two functions to complete.\"\"\"

import torch


def ramp(x, factor):
    \"\"\"Return factor * x above 0 and 0 below.\"\"\"
    ### BEGIN SOLUTION
    return factor * torch.clamp(x, min=0)
    ### END SOLUTION


def shift(x, factor):
    \"\"\"Return x + factor.\"\"\"
    ### BEGIN SOLUTION
    return torch.add(x, factor).clone()
    ### END SOLUTION
"""

TEXTS = {
    "fixtures/toy/items.toml": ITEMS,
    "fixtures/toy/oracle.py": ORACLE,
    "fixtures/toy/cases.py": CASES,
    "fixtures/toy/mistakes.py": MISTAKES,
    "fixtures/toy/probes.py": PROBES,
    "solution/toy/toy.py": SOLUTION,
    "solution/toy/README.md": "# Toy\n\n<!-- points:begin -->\n<!-- points:end -->\n",
    "solution/toy/experiments.py": "print('nothing to see')\n",
    "solution/toy/test_toy.py": "def test_nothing(): ...\n",
}


def toy_kit(target: Path, factory: pytest.TempPathFactory) -> Path:
    """A course of one's own in `target`: fixtures, solution and handout, made once for all tests."""
    return shutil.copytree(made_once("toy-kit", _make, factory), target)


def made_once(name: str, make: Callable[[Path], Path], factory: pytest.TempPathFactory) -> Path:
    """The folder that `make` fills, once for all workers of one run. It is theirs together: copy it to write there."""
    base = factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # all workers of one run share it
    made = base / name
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            make(factory.mktemp(f"making-{name}")).rename(made)
    return made


def regenerate_into(folder: Path, target: Path, *options: Any) -> Any:
    """Make a set of fixtures; what an earlier test ran by the same texts in the same cases is taken over."""
    return verify.regenerate_into(folder, target, *options, cache=CACHE)


def toy_assignment(kit: Path) -> Assignment:
    return load_assignment(kit / "fixtures" / "toy")


def change(path: Path, right: str, wrong: str) -> None:
    """Replace a text that stands in the file exactly once."""
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1, f"{right!r} is in {path.name} {text.count(right)} times"
    path.write_text(text.replace(right, wrong), encoding="utf-8")


def flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def store_version(kit: Path, name: str, version: str) -> None:
    """Let the manifest say that the fixtures were made with another version."""
    path = kit / "fixtures" / "toy" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["versions"][name] = version
    path.write_text(json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def autograder(kit: Path, *arguments: str | Path, packages: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line there, in a handout its own; with other packages than this environment has, if given."""
    engine = kit if (kit / "autograder").is_dir() else KIT
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (engine, packages) if packages else (engine,)))}
    command = [sys.executable, "-B", *(["-S"] if packages else []), "-m", "autograder", *map(str, arguments)]
    return subprocess.run(command, cwd=kit, env=environment, capture_output=True, text=True)


def packages_without(name: str, folder: Path) -> Path:
    """A site-packages folder in `folder` that has all of this environment's but one."""
    target = folder / "site-packages"
    target.mkdir(parents=True)
    for place in (Path(path) for path in sys.path if Path(path).name in ("site-packages", "dist-packages")):
        for entry in place.iterdir():
            unwanted = entry.name == name or entry.name.startswith((f"{name}-", "__editable__"))
            if not unwanted and not (target / entry.name).exists():
                (target / entry.name).symlink_to(entry)
    return target


def _make(kit: Path) -> Path:
    for name, text in TEXTS.items():
        (kit / name).parent.mkdir(parents=True, exist_ok=True)
        (kit / name).write_text(text, encoding="utf-8")
    regenerate_into(kit / "fixtures" / "toy", kit / "fixtures" / "toy")
    assignment = toy_assignment(kit)
    write_handout(handout_files(assignment), assignment.handout)
    return kit
