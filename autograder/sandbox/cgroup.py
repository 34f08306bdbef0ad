"""A control group for a server and its workers: their memory and their processes, counted and held by the kernel.

It is used where staff have set a group aside and named it in AUTOGRADER_CGROUP, relative to where the hierarchies are
mounted: moving processes out of a group that somebody else watches would do harm, and a group that is left behind keeps
its parent from being removed. In it every server gets a group `server-<grader's process>-<number>`, which goes with it;
those of graders that were killed go when the next one starts. Version 2 (one hierarchy) or version 1 (one for each
controller). Source: the kernel's admin-guide/cgroup-v2 and cgroup-v1.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import subprocess
import sys
import time
from pathlib import Path

VARIABLE = "AUTOGRADER_CGROUP"
MOUNTED = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids")
CLOSE_SECONDS = 1.0
CANARY_MEGABYTES = 64.0
CANARY = """
import sys, threading
sys.stdin.readline()
waiting = threading.Event()
try:
    for _ in range(32): threading.Thread(target=waiting.wait, daemon=True).start()
    print("threads: not held", flush=True)
except RuntimeError:
    print("threads: held", flush=True)
held = [bytearray(2**20) for _ in range(256)]
print("memory: not held", flush=True)
"""

_numbers = itertools.count()


class Group:
    """One control group; raises OSError where there is none to be had."""

    def __init__(self, tasks: int, megabytes: float, mounted: Path = MOUNTED) -> None:
        """Make it, with room for so many processes and threads, and for so much memory."""
        name = f"server-{os.getpid()}-{next(_numbers)}"
        self._paths = [parent / name for parent in parents(mounted)]
        self._megabytes = 0.0
        try:
            for path in self._paths:
                path.mkdir()
            self._write("pids.max", tasks)
            self.allow(megabytes)
        except OSError:
            self.close()
            raise

    def allow(self, megabytes: float) -> None:
        """Let it hold at least so much memory."""
        if megabytes > self._megabytes:
            names = ("memory.swap.max", "memory.max", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
            for name in reversed(names) if self._megabytes else names:  # with swap may never be less than without
                self._write(name, 0 if name == "memory.swap.max" else int(megabytes * 2**20))
            self._megabytes = megabytes

    def add(self, pid: int) -> None:
        """Put a process into it; its children follow."""
        for path in self._paths:
            (path / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def close(self) -> None:
        """Remove it as soon as its last process is gone."""
        deadline = time.monotonic() + CLOSE_SECONDS
        for path in self._paths:
            while not _remove(path) and time.monotonic() < deadline:
                time.sleep(0.005)

    def _write(self, name: str, value: int) -> None:
        for path in self._paths:
            if (path / name).exists():
                (path / name).write_text(str(value), encoding="ascii")


def parents(mounted: Path = MOUNTED) -> list[Path]:
    """The groups that were set aside, in every hierarchy that is needed; raises OSError where there is none."""
    named = os.environ.get(VARIABLE, "").strip("/")
    if not named:
        raise OSError(2, f"no group is set aside for it in {VARIABLE}")
    if not re.fullmatch(r"[\w@:.-]+(/[\w@:.-]+)*", named) or ".." in named.split("/"):
        raise OSError(22, f"{VARIABLE} should name a group, such as autograder")
    one = (mounted / "cgroup.controllers").exists()
    found = [mounted / named] if one else [mounted / controller / named for controller in CONTROLLERS]
    for path in found:
        if not os.access(path, os.W_OK | os.X_OK):
            raise OSError(2, f"{path} is not there, or not to be written by this user")
    if one:
        handed_on = (found[0] / "cgroup.subtree_control").read_text(encoding="ascii").split()
        if missing := [controller for controller in CONTROLLERS if controller not in handed_on]:
            (found[0] / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in missing), encoding="ascii")
    return found


def sweep(mounted: Path = MOUNTED) -> int:
    """Remove the groups of graders that are gone; how many."""
    stale = 0
    for parent in parents(mounted):
        for path in parent.glob("server-*-*"):
            owner = path.name.split("-")[1]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                stale += _remove(path)
    return stale


def probe(mounted: Path = MOUNTED) -> str:
    """Why such a group does not hold on this machine; "" where it does: a process in one tries both limits."""
    try:
        sweep(mounted)
        group = Group(16, CANARY_MEGABYTES, mounted)
    except OSError as error:
        return error.strerror or str(error)
    command = [sys.executable, "-I", "-S", "-c", CANARY]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as canary:
            try:
                group.add(canary.pid)
                said = canary.communicate("\n", timeout=30)[0]
            finally:
                canary.kill()
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it could not be tried: {error}"
    finally:
        group.close()
    return "" if said == "threads: held\n" and canary.returncode == -9 else "it is there, but does not hold"


def _remove(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()
