"""A course for nbgrader's real commands: a copy of the kit's folders, and classes that hand in.

One assignment, NAME, is driven down the whole road; every other that has a notebook of its own, down a shorter one.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from forked import run_module
from places import KIT

from autograder.authoring.handout.notebook import EXTRAS
from autograder.grading.assignment import find_assignments
from autograder.vocabulary.report import Report, read_report

NAME = "policy_gradient"
WITH_NOTEBOOK = [one.name for one in find_assignments(KIT) if (one.solution / EXTRAS).is_file()]
Notebook = dict[str, Any]
Scores = dict[str, dict[str, tuple[float | None, float | None, bool]]]

WRONG = {
    "rewards.std(dim=-1, keepdim=True)": "rewards.std(dim=-1, keepdim=True, unbiased=False)",
    "torch.minimum(ratio * deltas, clipped_ratio * deltas)": "clipped_ratio * deltas",
}
HANG = '    while mode == "max_rewards":\n        pass\n'
ANSWER = "The ratio is 1 there. <img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def course(target: Path) -> Path:
    """A course directory: what stands in the repository, and nothing handed in yet."""
    quiet = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "submissions")
    for name in ("solution", "handout", "fixtures"):
        shutil.copytree(KIT / name, target / name, ignore=quiet)
    return target


def nbgrader(root: Path, *arguments: str, code: int = 0) -> str:
    """What an nbgrader command says, run as staff run it: in the folder with its settings."""
    return run(root / "solution", "nbgrader", *arguments, code=code)


def autograder(root: Path, *arguments: str | Path, code: int = 0) -> str:
    return run(root, "autograder", *map(str, arguments), code=code)


def run(folder: Path, module: str, *arguments: str, code: int = 0, kit: bool = True) -> str:
    """What a command says on both streams; `kit` puts this kit's engine on the path."""
    returned, printed = run_module(folder, module, *arguments, environ=environment(folder, kit=kit))
    assert returned == code, printed
    return printed


def environment(folder: Path, *, kit: bool = True) -> dict[str, str]:
    """The environment with this kit's engine first, or without it; Jupyter's own files are kept out of the home."""
    home = folder / ".jupyter"
    home.mkdir(exist_ok=True)
    places = {name: str(home / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    engine = {"PYTHONPATH": str(KIT)} if kit else {}
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**others, **places, **engine, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def read_notebook(path: Path) -> Notebook:
    return dict(json.loads(path.read_text(encoding="utf-8")))


def cell(notebook: Notebook, name: str) -> dict[str, Any]:
    return next(one for one in notebook["cells"] if one["id"] == name)


def source(one: Mapping[str, Any]) -> str:
    return "".join(one["source"])


def solved(root: Path, name: str = NAME) -> Notebook:
    """The students' notebook with the solution's answers; questions stay as they were handed out."""
    notebook = read_notebook(root / "handout" / name / f"{name}.ipynb")
    answers = read_notebook(root / "solution" / name / f"{name}.ipynb")
    for one in notebook["cells"]:
        role = one["metadata"].get("nbgrader", {})
        if role.get("solution") and one["cell_type"] == "code":
            one["source"] = source(cell(answers, one["id"]))
    return notebook


def wrong(root: Path) -> Notebook:
    """The solution with two of the best-known mistakes."""
    notebook = solved(root)
    for right, mistake in WRONG.items():
        [one] = [one for one in notebook["cells"] if right in source(one)]
        one["source"] = source(one).replace(right, mistake)
    return notebook


def hostile(root: Path) -> Notebook:
    """Forged outputs, test cells emptied, retagged and deleted, magics, a function that never ends."""
    notebook = solved(root)
    deltas = cell(notebook, "compute_deltas")
    deltas["source"] = source(deltas).replace("    ### BEGIN SOLUTION\n", HANG)
    value = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": {"text/plain": "4.0"}}
    cell(notebook, "loss-naive")["outputs"] = [value]
    cell(notebook, "deltas-max")["source"] = "3.0"
    cell(notebook, "kl-values")["metadata"]["nbgrader"]["points"] = 300
    notebook["cells"].remove(cell(notebook, "kl-gradient"))
    notebook["metadata"]["kernelspec"] = {"name": "evil", "display_name": "evil", "language": "bash"}
    magic = {"cell_type": "code", "id": "mine", "metadata": {}, "outputs": [], "execution_count": None}
    notebook["cells"].insert(0, {**magic, "source": "!touch owned\n%cd /\nimport torch"})
    return notebook


def hand_in(root: Path, student: str, when: str = "", name: str = NAME, **files: Notebook | str) -> Path:
    """Put files into a student's folder of the submitted tree: `ipynb` a notebook, `py` a module."""
    folder = root / "submitted" / student / name
    folder.mkdir(parents=True)
    for suffix, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{name}.{suffix}").write_text(text, encoding="utf-8")
    if when:
        (folder / "timestamp.txt").write_text(when, encoding="utf-8")
    return folder


def class_of_five(root: Path) -> None:
    """ada: a module alone; ben: a notebook alone, with one answer in words; dov: wrong; eve: hostile.

    cleo: both, the notebook with an answer in a cell that has lost what nbgrader wrote into it.
    """
    module = (root / "solution" / NAME / f"{NAME}.py").read_text(encoding="utf-8")
    hand_in(root, "ada", py=module)
    notebook = solved(root)
    cell(notebook, "question-first-clipped-loss")["source"] = ANSWER
    hand_in(root, "ben", "2026-03-02 12:00:00 UTC", ipynb=notebook)
    nameless = solved(root)
    cell(nameless, "question-spread").update(metadata={}, source="Of the rewards of one prompt.")
    hand_in(root, "cleo", py=module, ipynb=nameless)
    hand_in(root, "dov", ipynb=wrong(root))
    hand_in(root, "eve", ipynb=hostile(root))


def reports_in(grades: Path) -> dict[str, Report]:
    found = [read_report(path) for path in sorted((grades / "reports").glob("*.json"))]
    return {report.student: report for report in found if report is not None}


def scores(database: Path) -> Scores:
    """What the gradebook holds: student → cell → automatic score, manual score, whether a person must look."""
    query = (
        "select student_id, base_cell.name, auto_score, manual_score, needs_manual_grade from grade"
        " join base_cell on base_cell.id = grade.cell_id"
        " join submitted_notebook on submitted_notebook.id = grade.notebook_id"
        " join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
    )
    found: Scores = {}
    for student, name, automatic, manual, waiting in rows_of(database, query):
        found.setdefault(student, {})[name] = (automatic, manual, bool(waiting))
    return found


def exported(root: Path) -> dict[str, dict[str, str]]:
    """The CSV of `nbgrader export`, by student."""
    nbgrader(root, "export", "--to", str(root / "out.csv"))
    with (root / "out.csv").open(newline="") as stream:
        return {row["student_id"]: row for row in csv.DictReader(stream)}


def files_in(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def refuse_what_is_for_staff(root: Path) -> None:
    """Fail where what students see holds a solved module, a hidden case or a marking guide, of any assignment."""
    solved = {(root / "solution" / one.name / f"{one.module}.py").read_bytes() for one in find_assignments(KIT)}
    hidden = {path.read_bytes() for path in (KIT / "fixtures").glob("*/hidden/*")}
    for tree in ("handout", "autograded"):
        for name, data in files_in(root / tree).items():
            assert data not in solved, name
            assert data not in hidden, name
            assert b"Marking guide" not in data, name


def rows_of(database: Path, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


@contextlib.contextmanager
def jupyter(folder: Path, place: str = "") -> Iterator[str]:
    """The address of a Jupyter server over `folder`, started in its folder `place`; for this machine alone."""
    home = environment(folder, kit=bool(place))  # a student has the handout alone
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "ServerApp.allow_root": True,
        "ServerApp.open_browser": False,
        "IdentityProvider.token": "",
        "LabApp.expose_app_in_browser": True,
        "LabApp.news_url": "",
    }
    command = [sys.executable, "-m", "jupyter", "lab", *(f"--{name}={value}" for name, value in settings.items())]
    with (folder / "jupyter.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder / place, env=home, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://127.0.0.1:{port}"
        _await(address, server, folder / "jupyter.log")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=240)


def _await(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Return once the server answers."""
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{address}/api", timeout=10):
            return
        select.select([], [], [], 0.1)
    raise AssertionError(f"Jupyter did not start:\n{log.read_text(errors='replace')[-3000:]}")
