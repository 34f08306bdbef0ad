"""The layers that a worker puts on itself before it sees student code, and which of them this machine has.

    rlimits    memory, processor time, file size, open files; no core dump
    landlock   read and execute what Python runs on; nothing else, and no writing; no TCP, no signals to others
    seccomp    an allowlist of system calls: no new processes or programs, no sockets, no tracing, no namespaces;
               nothing that reaches another process, changes a file, or shows what another worker did
    identity   where the grader is root: no capabilities, and another user's id if that one can reach Python

Two more are put around the server, where the kernel allows them and never because `strict` asks:

    namespaces   see there
    cgroup       see there: memory and processes of server and worker together, held by the kernel

Only the standard library and ctypes: this runs inside the worker. Sources: landlock(7), seccomp(2), prctl(2),
capabilities(7), and the kernel's UAPI headers, from which the numbers are.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence

from autograder.sandbox.inside import identity, landlock, seccomp
from autograder.sandbox.inside.namespaces import narrow
from autograder.sandbox.inside.processes import guard, prctl

LAYERS = ("rlimits", "landlock", "identity", "seccomp")
AROUND = ("namespaces", "cgroup")
DESCRIPTORS = 64
FILE_BYTES = 2**20
SPACE = 64 * 2**30  # what may be mapped and not written: for each 2 MiB of it the kernel may hold 4 KiB of tables


def apply(
    layers: Iterable[str],
    megabytes: float,
    readable: Sequence[str],
    seconds: float = math.inf,
    report: int | None = None,
    rules: int | None = None,
) -> None:
    """Put these layers on this process, for good; raises OSError where the kernel refuses one.

    megabytes   what it may still allocate
    seconds     of processor time for the rest of its life: a backstop, for nobody but the grader knows the items
    readable    files and folders that it may read and execute, under landlock
    report      a descriptor to which each refused system call is written
    rules       what `landlock.prepare` made of `readable`, where many processes need the same
    """
    wanted = set(layers)
    if wanted:
        prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    if "rlimits" in wanted:
        _limit(megabytes, seconds)
    if "namespaces" in wanted:
        narrow(readable)
    if "landlock" in wanted:
        prepared = landlock.prepare(readable) if rules is None else rules
        landlock.restrict(prepared)
        os.close(prepared)
    if "identity" in wanted:
        identity.give_up(readable)
    if wanted:  # after identity: a change of user resets both
        guard()
    if "seccomp" in wanted:
        seccomp.apply(report)


def _limit(megabytes: float, seconds: float) -> None:
    import resource  # not on every platform

    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))  # the stack is no data
    resource.setrlimit(resource.RLIMIT_DATA, (_bytes_of("VmData") + int(megabytes * 2**20),) * 2)
    resource.setrlimit(resource.RLIMIT_AS, (_bytes_of("VmSize") + int(megabytes * 2**20) + SPACE,) * 2)
    if seconds < 2**31:
        whole = math.ceil(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))  # a kill: the soft limit is a signal to ignore
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def _bytes_of(field: str) -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
        return int(next(line for line in stream if line.startswith(field)).split()[1]) * 1024
