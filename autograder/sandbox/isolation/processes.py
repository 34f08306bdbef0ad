"""Processes as the kernel shows them: what one uses, how it ended, and what one asks of the kernel for itself.

Only the standard library and ctypes: this runs inside the worker, too. Sources: prctl(2), proc(5).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from typing import NamedTuple

LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def adopt() -> None:
    """Become the parent of every orphan below this process."""
    if LIBC is not None:
        prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def kill_children() -> None:
    """Kill every child of this process that the kernel lists; as process 1 of a namespace, all others in it."""
    with contextlib.suppress(OSError):
        if os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)
            return
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as stream:  # noqa: PTH123
            for pid in stream.read().split():
                os.kill(int(pid), signal.SIGKILL)


def newest_child() -> int:
    """The number of this process's youngest child where /proc was mounted; 0 where nobody tells."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        own = os.readlink("/proc/self")  # in a namespace of processes it is not os.getpid()  # noqa: PTH115
        with open(f"/proc/{own}/task/{own}/children", encoding="ascii") as stream:  # noqa: PTH123
            return int(stream.read().split()[-1])
    return 0


class Usage(NamedTuple):
    """How many threads a process has, how many bytes of memory it holds, its seconds of processor time.

    Of all its threads, the first of which may have ended; memory with swap and with the tables of its pages.
    """

    threads: int
    resident: int
    seconds: float


def usage(pid: int) -> Usage:
    """What a process uses; nothing where nobody tells."""
    try:
        fields = _status(pid)
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
            user, system = stream.read().rpartition(")")[2].split()[11:13]
        resident = 1024 * sum(int(fields[name].split()[0]) for name in ("VmRSS", "VmSwap", "VmPTE"))
        return Usage(int(fields["Threads"]), resident, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
    except (OSError, KeyError, ValueError):  # gone, a zombie, or not Linux
        return Usage(0, 0, 0.0)


def _status(pid: int) -> dict[str, str]:
    """The fields of /proc/<pid>/status; of another thread where the first has ended and tells of no memory."""
    fields: dict[str, str] = {}
    for folder in (f"/proc/{pid}", *(f"/proc/{pid}/task/{name}" for name in os.listdir(f"/proc/{pid}/task"))):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"{folder}/status", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
            fields = dict(line.split(":", 1) for line in stream)
        if "VmRSS" in fields:
            break
    return fields


def say_ending(code: int) -> str:
    """How a process ended whose exit code this is; negative for a signal."""
    if code >= 0:
        return f"exited with status {code}"
    known = signal.valid_signals()
    name = f" ({signal.Signals(-code).name})" if -code in known and -code in set(signal.Signals) else ""
    return f"killed by signal {-code}{name}"


def guard() -> None:
    """Let no other process of the same user look into this one, and end it with the process that started it."""
    if LIBC is not None:
        prctl(4, 0)  # PR_SET_DUMPABLE
        prctl(1, 9)  # PR_SET_PDEATHSIG, SIGKILL


# System calls


def prctl(option: int, *arguments: object, check: bool = True) -> int:
    """What prctl(2) answers; raises OSError where it refuses, unless not to `check`."""
    if LIBC is None:
        return -1
    given = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in arguments]
    padding = [ctypes.c_ulong(0)] * (4 - len(given))
    result = int(LIBC.prctl(option, *given, *padding))
    if check and result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def syscall(number: int, *arguments: object) -> int:
    """What the system call of this number answers; raises OSError where it refuses."""
    if LIBC is None:
        raise OSError(38, "not Linux")
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(LIBC.syscall(number, *converted))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
