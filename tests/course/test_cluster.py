"""Grading on a Dask cluster: real scheduler, real workers, each a process of its own; the same bytes as at home."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dask_cluster import Cluster
from distributed import Client
from graded_folder import comparable
from places import KIT
from processes import descendants, is_running, wait_for

from autograder.course import cluster as clusters
from autograder.course.batch import grade_all
from autograder.course.results import Run
from autograder.grading.assignment import find_assignment
from autograder.grading.fixtures import read_fixtures
from autograder.grading.grader import Grader
from autograder.submissions.finding import find
from autograder.submissions.submission import Candidate
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import Report

REAL = find_assignment(KIT, "policy_gradient")
ATTACKS = {
    "exit": "import os\nos._exit(0)\n",
    "abort": "import os\nos.abort()\n",
    "parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n",
    "forks": "import os\nfor _ in range(10):\n    os.fork()\n",
}
RIGHT = """\
import time
import torch

time.sleep({seconds})

def ramp(x, factor):
    return factor * torch.clamp(x, min=0)

def shift(x, factor):
    return x + factor
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster")) as made:
        made.add_workers(2)
        yield made


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A class of ten who take a moment each."""
    folder = tmp_path_factory.mktemp("toys")
    for index in range(10):
        (folder / f"student {index}").mkdir()
        text = RIGHT.format(seconds=0.3).replace("+ factor", "+ factor" if index % 3 else "- factor")
        (folder / f"student {index}" / "toy.py").write_text(text)
    return folder


@pytest.fixture(scope="module")
def at_home(grader: Grader, toys: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What one job on this machine makes of the ten."""
    out = tmp_path_factory.mktemp("home") / "grades"
    grade(grader, toys, out, jobs=1)
    return comparable(out)


def grade(grader: Grader, folder: Path, out: Path, **options: Any) -> Run:
    return grade_all(grader, find([folder], grader.assignment.module), out, **options)


# What may happen to a cluster


@pytest.mark.long
def test_killed_workers_lose_nothing(
    cluster: Cluster, grader: Grader, toys: Path, tmp_path: Path, at_home: dict[str, list[str]]
) -> None:
    pids = list(cluster.workers().values())
    told: list[str] = []
    servers: set[int] = set()

    def progress(candidate: Candidate, report: Report) -> None:
        told.append(candidate.student)
        if len(told) in (1, 4):  # six at least are still to be done: both workers have one under way
            servers.update(descendants(pids[-1]))
            os.kill(pids.pop(), signal.SIGKILL)

    run = grade(grader, toys, tmp_path / "grades", scheduler=cluster.address, progress=progress)
    assert pids == []
    assert (run.figures.students, run.figures.graded) == (10, 10)
    assert sorted(told) == sorted(path.name for path in toys.iterdir())
    assert servers
    wait_for(lambda: not any(map(is_running, servers)))
    assert comparable(tmp_path / "grades") == at_home


@pytest.mark.long
def test_submission_that_no_worker_survives_is_not_graded(grader: Grader, toys: Path, tmp_path: Path) -> None:
    """The second takes its time, so that it is under way when the first is told of, however busy the machine is."""
    four = tmp_path / "four"
    for index, seconds in enumerate((0, 8, 0, 0)):
        (four / f"student {index}").mkdir(parents=True)
        (four / f"student {index}" / "toy.py").write_text(RIGHT.format(seconds=seconds))
    grade(grader, four, tmp_path / "home", jobs=1)
    with Cluster(tmp_path / "cluster", {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}) as alone:
        alone.add_workers(1)
        (pid,) = alone.workers().values()
        told: list[str] = []

        def progress(candidate: Candidate, report: Report) -> None:
            told.append(candidate.student)
            if len(told) == 1:
                os.kill(pid, signal.SIGKILL)

        run = grade(grader, four, tmp_path / "grades", scheduler=alone.address, progress=progress)
        lost = run.figures.students - run.figures.graded
        assert 1 <= lost <= 2
        assert len(told) == 4
        assert run.fault.startswith("Each Dask worker that graded this came to an end, the last at tcp://127.0.0.1:")
        rows = (tmp_path / "grades" / "grades.csv").read_text().splitlines()
        assert sum(",,10,not_graded,," in row for row in rows) == lost
        again = grade(grader, four, tmp_path / "grades", scheduler=alone.address)
        assert (again.reused, again.figures.graded) == (4 - lost, 4)
        assert comparable(tmp_path / "grades") == comparable(tmp_path / "home")
        refuses_another_kit(alone, grader, toys, tmp_path)


def refuses_another_kit(alone: Cluster, grader: Grader, toys: Path, tmp_path: Path) -> None:
    """A worker on which the kit is another is refused before anything is graded."""
    other = tmp_path / "other"
    shutil.copytree(KIT / "autograder", other / "autograder", ignore=shutil.ignore_patterns("__pycache__"))
    with (other / "autograder" / "grading" / "compare.py").open("a") as stream:
        stream.write("# generous\n")
    alone.add_workers(1, PYTHONPATH=str(other))
    with pytest.raises(GraderFault, match=r"would grade with kit \w+ \(here \w+\)\. Install there what is"):
        grade(grader, toys, tmp_path / "refused", scheduler=alone.address)
    assert list((tmp_path / "refused" / "reports").iterdir()) == []


@pytest.mark.long
def test_student_code_ends_no_dask_worker(cluster: Cluster, tmp_path: Path) -> None:
    grader = Grader.of(REAL, read_fixtures(REAL))
    for name, text in ATTACKS.items():
        (tmp_path / f"{name}.py").write_text(text)
    before = cluster.workers()
    candidates = [Candidate(name, tmp_path / f"{name}.py", f"{name}.py") for name in ATTACKS]
    run = grade_all(grader, candidates, tmp_path / "grades", scheduler=cluster.address)
    assert (run.figures.graded, run.figures.mean) == (len(ATTACKS), 0)
    assert cluster.workers() == before


@pytest.mark.long
def test_killed_scheduler_ends_the_run_and_keeps_its_reports(
    grader: Grader,
    toys: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    at_home: dict[str, list[str]],
) -> None:
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 5.0)
    out = tmp_path / "grades"
    with Cluster(tmp_path) as doomed:
        doomed.add_workers(1)
        with pytest.raises(GraderFault, match=r"does not answer any more\. Run the same command again to go on"):
            grade(grader, toys, out, scheduler=doomed.address, progress=lambda *_: doomed.processes[0].kill())
    assert capfd.readouterr() == ("", "")
    done = len(list((out / "reports").glob("*.json")))
    assert 0 < done < 10
    assert grade(grader, toys, out).reused == done
    assert comparable(out) == at_home


# What cannot be graded on


def lost_clients() -> int:
    """Clients without a scheduler that wait to be collected."""
    return sum(type(one) is Client and one.scheduler is None for one in gc.get_objects())


def test_missing_scheduler_is_said_in_a_sentence(
    grader: Grader, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "CONNECT_SECONDS", 0.2)
    gc.collect()  # those that earlier tests left
    before = lost_clients()
    for address in ("tcp://127.0.0.1:1", "nonsense://here"):
        with pytest.raises(UsageError, match=f"No Dask scheduler answers at {address}: start one with"):
            grade(grader, toys, tmp_path / "grades", scheduler=address)
        assert lost_clients() == before


@pytest.mark.long
def test_scheduler_without_the_kit_is_refused(grader: Grader, toys: Path, tmp_path: Path) -> None:
    lacking = "raise ModuleNotFoundError('No module named autograder.course.cluster')\n"
    for package, text in (("autograder", ""), ("autograder/course", lacking)):  # else an editable install is found
        (tmp_path / "other" / package).mkdir(parents=True)
        (tmp_path / "other" / package / "__init__.py").write_text(text, encoding="utf-8")
    with Cluster(tmp_path, {"PYTHONPATH": str(tmp_path / "other")}) as bare:
        says = f"The Dask scheduler at {bare.address} cannot run this kit .*autograder.course.*: install it there"
        with pytest.raises(GraderFault, match=says):
            grade(grader, toys, tmp_path / "grades", scheduler=bare.address)


@pytest.mark.long
def test_scheduler_without_workers_is_told_and_ends(
    grader: Grader, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clusters, "WORKER_SECONDS", 1.0)
    with Cluster(tmp_path) as empty:
        with pytest.raises(UsageError, match=r"has no worker: start some with `dask worker tcp://"):
            grade(grader, toys, tmp_path / "grades", scheduler=empty.address)
        assert "has no worker: waiting for one, 1 s at most." in capsys.readouterr().err


@pytest.mark.long
def test_cluster_that_loses_all_workers_is_told_and_ends(
    grader: Grader, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in (("TELL_SECONDS", 0.0), ("ALONE_SECONDS", 4.0)):
        monkeypatch.setattr(clusters, name, seconds)
    with Cluster(tmp_path) as doomed:
        workers = doomed.add_workers(1)
        with pytest.raises(GraderFault, match=r"has had no Dask worker for 4 s\. Run the same command again"):
            grade(grader, toys, tmp_path / "grades", scheduler=doomed.address, progress=lambda *_: workers.terminate())
        assert "has no worker: waiting for one, 4 s at most." in capsys.readouterr().err


def test_without_dask_a_sentence_says_what_to_install(
    grader: Grader, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        UsageError, match=r"^--scheduler needs Dask, .* not installed: `pip install -e '\.\[dask\]'`\.$"
    ):
        grade(grader, toys, tmp_path / "grades", scheduler="tcp://127.0.0.1:8786")
