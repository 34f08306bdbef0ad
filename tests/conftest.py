"""What more than one file of tests uses, and the spreading of the tests over the cores.

A file of tests at a time, but of IN_PARTS each parameter; `-n 0` runs them one after another. Not in pyproject.toml,
whose options would hold for the folder of a student that is unpacked below it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from lengths import LONGEST
from places import KIT
from toy_kit import toy_kit

from autograder.grading.assignment import find_assignments
from autograder.sandbox.sandbox import Sandbox

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of hundreds of short processes compiles the kit anew
sys.dont_write_bytecode = False
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # of jsonschema: 39 grammars, compiled at import

HERE = Path(__file__).resolve().parent
MOST = 4  # processes: each of them may have warm servers of its own
IN_PARTS = ("test_exam.py", "test_readme.py")  # whole exams and walks through documents, minutes each


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Ask pytest-xdist for workers, unless the command line says how many."""
    chosen = config.option
    is_worker = "PYTEST_XDIST_WORKER" in os.environ
    if not is_worker and getattr(chosen, "numprocesses", 0) is None and not (chosen.usepdb or chosen.collectonly):
        chosen.numprocesses = min(MOST, (os.cpu_count() or 1) + 1)  # some of them wait for processes of their own
        chosen.dist, chosen.loadscopereorder = "loadfile", False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let what is parametrized in IN_PARTS be run by several workers, and any other file by one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file, _, test = nodeid.partition("::")
            return f"{file}[{test.partition('[')[2]}" if file.endswith(IN_PARTS) else file

    return Scheduling(config, log) if config.option.dist == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, and the solutions importable: `import sorting_task`; let Ctrl-C be Ctrl-C."""
    config.addinivalue_line("markers", "long: minutes of what shorter tests hold in part; run by `pytest -m long`")
    sys.path += [str(assignment.solution) for assignment in find_assignments(KIT)]
    if worker := getattr(config, "workerinput", None):
        _begin_elsewhere(config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts what runs in its background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which all that tests start inherits as the default


def _begin_elsewhere(config: pytest.Config, number: int, of: int) -> None:
    """Let each worker import another part of all tests first, so that what pytest makes of a file is made by one."""
    if [Path(argument) for argument in config.args] in ([HERE], [HERE.relative_to(KIT)]):
        parts = sorted({path.parent if path.parent != HERE else path for path in HERE.rglob("test_*.py")})
        first = number * len(parts) // of
        config.args = [str(part) for part in (*parts[first:], *parts[:first])]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage among torch and thousands of tests, which stay: neither now nor at any later time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file of which every test is long, unless somebody asks for long ones or for that file."""
    asked = config.option.markexpr or any(Path(argument).suffix for argument in config.invocation_params.args)
    if asked or collection_path.suffix != ".py":
        return None
    return "\npytestmark = pytest.mark.long" in collection_path.read_text(encoding="utf-8") or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long tests to who asks for them, put the longest files first, and leave the order within each file."""
    named = any("::" in argument for argument in config.args)
    long = [item for item in items if item.get_closest_marker("long") and not (named or config.option.markexpr)]
    if long:
        config.hook.pytest_deselected(items=long)
        left_out = set(long)
        items[:] = [item for item in items if item not in left_out]
    places = {f"{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (places.get(item.path.name, len(LONGEST)), item.path))


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A warm sandbox for every test that needs no other; to start one costs the seconds that torch takes."""
    with Sandbox() as running:
        yield running


@pytest.fixture
def warm_pool(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let work that takes a sandbox of its own, one at a time (`in_sandboxes`), take the warm one."""
    for module in ("sandbox.sandbox", "authoring.exam.selfcheck"):
        monkeypatch.setattr(f"autograder.{module}.Sandbox", lambda **options: contextlib.nullcontext(sandbox))


@pytest.fixture
def kit(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course around the toy assignment, of the test's own: fixtures, solution and handout."""
    return toy_kit(tmp_path / "kit", tmp_path_factory)
