"""Processes seen from outside: who started whom, who still runs; and waiting for what happens there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 240.0  # seconds, which only what will never happen takes: a busy machine is slow, not wrong


def wait_for(condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.02)


def descendants(process: int) -> set[int]:
    """The processes that this one started, and those that they started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it ended meanwhile
            continue
    found: set[int] = set()
    frontier = {process}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier} - found
        found |= frontier
    return found


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
