"""Processes seen from outside: who started whom, who still runs; and waiting for what happens there."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 240.0  # seconds, which only what will never happen takes: a busy machine is slow, not wrong


def soon(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether it comes true in this time."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return met


def wait_for(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    assert soon(condition, seconds), "nothing happened"


def parents() -> dict[int, int]:
    """The parent of each process of this machine, zombies included."""
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            found[int(path.parent.name)] = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def children(process: int) -> set[int]:
    return {child for child, parent in parents().items() if parent == process}


def descendants(process: int) -> set[int]:
    """The processes that this one started, and those that they started."""
    of_all, found, frontier = parents(), set[int](), {process}
    while frontier:
        frontier = {child for child, parent in of_all.items() if parent in frontier} - found
        found |= frontier
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def python_without_kit(folder: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in that folder by a Python that has the packages of this environment, but not this kit."""
    packages = os.pathsep.join(path for path in sys.path if Path(path).name in ("site-packages", "dist-packages"))
    hidden = "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in str(f).lower()]; "
    command = [sys.executable, "-S", "-B", "-c", f"{hidden}sys.path.insert(0, ''); {code}"]
    found = {"PATH": os.environ["PATH"], "PYTHONPATH": packages, **environment}
    return subprocess.run(command, cwd=folder, env=found, capture_output=True, text=True)
