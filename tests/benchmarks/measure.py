"""A command's wall time and the memory of its processes, watched from outside through /proc."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

INTERVAL = 0.1
PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 2**20


class CommandFailed(Exception):  # noqa: N818 (what happened to it)
    """A command that is measured must succeed: how fast something fails says nothing."""


@dataclass(frozen=True)
class Measured:
    """What one command took.

    seconds      wall time, from start to end
    peak_tree    MiB: the greatest sum of resident memory over the command's processes; what they share counts in each
    peak_main    MiB: the greatest resident memory of the command's own process
    output       what it printed
    """

    seconds: float
    peak_tree: float
    peak_main: float
    output: str


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> Measured:
    """Run a command to its end; raises CommandFailed, with the end of what it printed, where it does not succeed."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=folder,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    with _Watch(process.pid) as watch:
        output = process.communicate()[0]
    seconds = time.perf_counter() - started
    if process.returncode != 0:
        shown = " ".join(str(part) for part in command)
        raise CommandFailed(f"{shown} ended with {process.returncode}:\n{output[-2000:]}")
    return Measured(seconds, watch.peak_tree / MIB, watch.peak_main / MIB, output)


def side_by_side(jobs: Sequence[Callable[[], Measured]], at_a_time: int) -> Measured:
    """All of these, so many at a time, as one: wall time of the whole, and peaks that add up."""
    started = time.perf_counter()
    with ThreadPoolExecutor(at_a_time) as pool:
        done = list(pool.map(lambda job: job(), jobs))
    seconds = time.perf_counter() - started
    together = sorted((one.peak_tree for one in done), reverse=True)[:at_a_time]
    return Measured(seconds, sum(together), max(one.peak_main for one in done), "".join(one.output for one in done))


class _Watch:
    """Looks at a process and all below it, ten times a second, until told to stop."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.peak_tree = self.peak_main = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(INTERVAL):
            self.peak_tree = max(self.peak_tree, sum(resident(pid) for pid in below(self._pid)))
            self.peak_main = max(self.peak_main, high_water(self._pid))


def below(pid: int) -> list[int]:
    """A process and all that descend from it."""
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        for thread in _lines(Path(f"/proc/{found[-1]}/task")):
            with contextlib.suppress(OSError):
                waiting += map(int, Path(f"/proc/{found[-1]}/task/{thread}/children").read_text().split())
    return found


def resident(pid: int) -> int:
    """Bytes of memory that a process holds now; 0 where it is gone."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def high_water(pid: int) -> int:
    """The most bytes of memory that a process has held so far; 0 where it is gone."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return 0


def _lines(folder: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208
    return []
