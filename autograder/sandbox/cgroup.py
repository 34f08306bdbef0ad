"""A control group for a server and its workers: their memory and their processes, counted and held by the kernel.

It is used where groups may be made below this process's own: in version 2 where it is alone in one that was handed
over to it, as `systemd-run --user --scope -p Delegate=yes` does, or in a container, or where systemd gives it one when
asked (see `scope`); in version 1 where a user may write there. In version 2 it then moves into a group `grader`, for
the kernel wants processes in leaves alone; those of others are never moved. Root may write in groups that somebody else
watches, and one that is left behind keeps its parent from being removed: in version 1 root has none. Elsewhere staff
set a group aside and name it in AUTOGRADER_CGROUP, relative to where the hierarchies are mounted; an empty name asks
for none.

Every server gets a group `server-<grader's process>-<number>`, which goes with it; those of graders that were killed go
when the next one starts. Version 2 has one hierarchy, version 1 one for each controller. Source: the kernel's
admin-guide/cgroup-v2 and cgroup-v1.
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

from autograder.sandbox.scope import ask_for_scope

VARIABLE = "AUTOGRADER_CGROUP"
MOUNTED = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
LEAF = "grader"
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
    named = os.environ.get(VARIABLE)
    one = (mounted / "cgroup.controllers").exists()
    if named is None and one and not _is_its_own(mounted):
        ask_for_scope(MEMBERSHIP)
    found = _own(mounted, one) if named is None else _set_aside(named.strip("/"), mounted, one)
    for path in found:
        if not os.access(path, os.W_OK | os.X_OK):
            raise OSError(2, f"{path} is not there, or not to be written by this user")
    if one:
        handed_on = (found[0] / "cgroup.subtree_control").read_text(encoding="ascii").split()
        if missing := [controller for controller in CONTROLLERS if controller not in handed_on]:
            if named is None:
                _leave(found[0])
            (found[0] / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in missing), encoding="ascii")
    return found


def _set_aside(named: str, mounted: Path, one: bool) -> list[Path]:
    if not named:
        raise OSError(2, f"no group is set aside for it in {VARIABLE}")
    if not re.fullmatch(r"[\w@:.-]+(/[\w@:.-]+)*", named) or ".." in named.split("/"):
        raise OSError(22, f"{VARIABLE} should name a group, such as autograder")
    return [mounted / named] if one else [mounted / controller / named for controller in CONTROLLERS]


def _own(mounted: Path, one: bool) -> list[Path]:
    """The groups that this process is in; in version 2 the one above, once it has moved."""
    if not one and os.geteuid() == 0:
        raise OSError(1, f"no group is set aside for it in {VARIABLE}")
    lines = MEMBERSHIP.read_text(encoding="utf-8", errors="replace").splitlines()
    groups = {name: path for _, names, path in (line.split(":", 2) for line in lines) for name in names.split(",")}
    wanted = ("",) if one else CONTROLLERS
    if missing := [name for name in wanted if ".." in groups.get(name, "..")]:
        raise OSError(2, f"this process is in no control group of {' and '.join(missing) or 'version 2'}")
    found = [mounted / name / groups[name].strip("/") for name in wanted]
    return [path.parent if one and path.name == LEAF else path for path in found]


def _is_its_own(mounted: Path) -> bool:
    """Whether this process may divide its group of version 2, and shares it with nobody."""
    try:
        (group,) = _own(mounted, one=True)
        inside = [int(pid) for pid in (group / "cgroup.procs").read_text(encoding="ascii").split()]
    except OSError:
        return False
    return os.access(group, os.W_OK | os.X_OK) and all(map(_is_ours, inside))


def _leave(group: Path) -> None:
    """Move this process and its children into a leaf of their group, which they must have to themselves."""
    inside = (group / "cgroup.procs").read_text(encoding="ascii").split()
    if not all(_is_ours(int(pid)) for pid in inside):
        raise OSError(16, "other processes share its group: start it with systemd-run --user --scope -p Delegate=yes")
    (group / LEAF).mkdir(exist_ok=True)
    for pid in inside:
        with contextlib.suppress(ProcessLookupError):
            (group / LEAF / "cgroup.procs").write_text(pid, encoding="ascii")


def _is_ours(pid: int) -> bool:
    """Whether it is this process, or was started by it; one that is gone is in nobody's way."""
    while pid > 1 and pid != os.getpid():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        pid = int(stat.rpartition(")")[2].split()[1])
    return pid == os.getpid()


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
