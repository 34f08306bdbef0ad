"""Traces in the kernel that one submission could leave and a later one find: names looked up, files read.

Each is left by a submission that is graded for real, and looked for from outside, where more can be seen than by a
later submission. Each test is made twice: where nothing is held back, the trace is there, so that the test can fail.
"""

from __future__ import annotations

import os
import statistics
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import safetensors.numpy
from lengths import in_short

from autograder.sandbox.around import names
from autograder.sandbox.around.names import named
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.inside.kernel.naming import share_in_memory
from autograder.sandbox.interpreter import packages
from autograder.sandbox.layers import probe
from autograder.sandbox.sandbox import Sandbox
from autograder.vocabulary.text import STRICT

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or any(probe()[layer] for layer in STRICT), reason=f"this machine cannot: {probe()}"
)

PROBES = "def call(student, inputs, params):\n    return {'y': student.work()}, {}\n"
NAMES = 400
FILES = 40


@pytest.fixture(params=in_short([True, False]), ids=["strangers", "nobody else"])
def strangers(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether workers are held to what was read before; nothing was, and nothing is kept of earlier runs."""
    named()
    monkeypatch.setattr(names, "_folder", lambda: tmp_path / "kept")
    monkeypatch.setattr(names, "_last_reading", {})
    return request.param


def graded(source: str, *, strangers: bool) -> Outcome:
    """What a submission's `work` comes to, which returns a number."""
    program = Program("homework", "import os\n" + textwrap.dedent(source), {}, PROBES)
    request = Request("item", "work", "call", {}, safetensors.numpy.save({}), 60.0)
    with Sandbox(isolation="strict", strangers=strangers) as sandbox:
        (outcome,) = sandbox.run(program, [request], load_timeout=60.0)
    assert outcome.status == "observed", outcome
    return outcome


def seconds(path: str) -> float:
    started = time.perf_counter()
    os.path.exists(path)  # noqa: PTH110 (nothing but the look-up)
    return time.perf_counter() - started


def test_no_later_submission_can_tell_which_names_an_earlier_one_looked_up(strangers: bool, tmp_path: Path) -> None:
    """A name that was asked for is remembered, also one that is not there: as many bits as there are names."""
    for folder in (Path(packages()[0], "torch"), Path(packages()[0], "numpy")):
        asked = [f"{folder}/trace-{os.getpid()}-{tmp_path.name}-{k}" for k in range(NAMES)]
        graded(f"def work():\n    return float(sum(map(os.path.exists, {asked[::2]!r})))", strangers=strangers)
        took = [seconds(path) for path in asked]
        found = statistics.median(took[1::2]) / statistics.median(took[::2])
        assert found < 1.4 if strangers else found > 1.6, (folder, found)


def in_memory(paths: Sequence[str]) -> float:
    """How much of these files is; some kernels take a page now and then though memory is not short."""
    found = 0.0
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123
            share = share_in_memory(file.fileno())
        found += pytest.skip("this kernel does not tell what is in memory") if share is None else share
    return found / len(paths)


def forget(paths: Sequence[str]) -> None:
    """Have nothing of these files in memory."""
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if in_memory(paths) > 0.1:
        pytest.skip("this file system keeps all that it has in memory")


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package of ours, which no other process reads."""
    folder = tmp_path / "site-packages" / "course_library"
    folder.mkdir(parents=True)
    for k in range(FILES):
        (folder / f"part_{k}.py").write_text(f"NUMBER = {k}\n" * 1_000)
        (folder / f"part_{k}.h").write_text(f"#define NUMBER {k}\n" * 1_000)
        for path in (folder / f"part_{k}.py", folder / f"part_{k}.h"):
            with path.open("rb") as file:
                os.fsync(file.fileno())
    monkeypatch.syspath_prepend(folder.parent)
    names._named.cache_clear()
    yield folder
    names._named.cache_clear()


def test_every_file_that_may_be_named_is_in_memory_before_a_submission_runs(library: Path, strangers: bool) -> None:
    paths = [str(path) for path in library.glob("*.py")]
    assert set(paths) <= set(named().names)
    forget(paths)
    graded("def work():\n    return 1.0", strangers=strangers)
    found = in_memory(paths)
    assert found > 0.6 if strangers else found < 0.2, found


def test_no_file_that_was_not_read_before_can_be_read_first_by_a_submission(library: Path, strangers: bool) -> None:
    paths = [str(path) for path in library.glob("*.h")]
    forget(paths)
    source = f"""
        def size_of(path):
            try:
                return len(open(path, "rb").read())
            except OSError:
                return 0
        def work():
            return float(sum(map(size_of, {paths!r})))
    """
    outcome = graded(source, strangers=strangers)
    assert outcome.observation is not None
    found = in_memory(paths)
    assert found < 0.2 if strangers else found > 0.6, found


@pytest.mark.long
def test_all_that_a_submission_can_open_was_read_before() -> None:
    """It walks through all that it imports from, as whoever looks for a file to write a bit into would."""
    source = """
        import sys, torch
        def opened(path):
            try:
                with open(path, "rb") as file:
                    return os.fstat(file.fileno()).st_ino
            except OSError:
                return 0
        def work():
            folders = [*sys.path, "/usr", "/lib", "/etc", "/opt", "/home", "/proc", "/sys", "/tmp", "/var", "/"]
            walked = [(place, name) for top in folders for place, _, names in os.walk(top) for name in names]
            return torch.tensor(sorted({opened(os.path.join(*one)) for one in walked}))
    """
    outcome = graded(source, strangers=True)
    assert outcome.observation is not None
    found = outcome.observation.returned["y"].array
    assert found is not None
    assert len(found) > 5_000
    assert set(found.tolist()) - {0} <= {os.stat(path).st_ino for path in named().names}  # noqa: PTH116
