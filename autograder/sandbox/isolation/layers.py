"""The layers that a worker puts on itself before it sees student code, and which of them this machine has.

    rlimits    memory, processor time, file size, open files; no core dump
    landlock   read and execute what Python runs on; nothing else, and no writing; no TCP, no signals to others
    seccomp    an allowlist of system calls: no new processes or programs, no sockets, no tracing, no namespaces;
               nothing that reaches another process or changes a file
    identity   where the grader is root: no capabilities, and another user's id if that one can reach Python

Two more are put around the server, where the kernel allows them and never because `strict` asks:

    namespaces   see there
    cgroup       see there: memory and processes of server and worker together, held by the kernel

And a submission imports no other packages than its assignment names.

Only the standard library and ctypes: this runs inside the worker. Sources: landlock(7), seccomp(2), prctl(2),
capabilities(7), and the kernel's UAPI headers, from which the numbers are.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from autograder.sandbox.isolation import identity, landlock, seccomp
from autograder.sandbox.isolation.namespaces import narrow
from autograder.sandbox.isolation.processes import guard, prctl

if sys.platform != "win32":
    import resource

LAYERS = ("rlimits", "landlock", "identity", "seccomp")
AROUND = ("namespaces", "cgroup")
DESCRIPTORS = 64
FILE_BYTES = 2**20
SPACE = 64 * 2**30  # what may be mapped and not written: for each 2 MiB of it the kernel may hold 4 KiB of tables
TOOLS = frozenset({"IPython", "pytest", "safetensors"})  # what notebooks and the check itself bring along
MACHINERY = ("<frozen importlib", "importlib/__init__.py", "importlib\\__init__.py")


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
        prctl(41, 1, check=False)  # PR_SET_THP_DISABLE: a submission's use of memory is the same on every machine
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


# What a submission may import


class OnlyThese:
    """A finder that finds nothing, and refuses what a submission's file should not import.

    That is missing at once and in a sentence, installed or not: to import it may take longer than a submission may
    take. The standard library and given modules are found, and what packages import themselves is their own affair.
    """

    def __init__(self, packages: Sequence[str], filename: str) -> None:
        """Refuse to that file all but these packages."""
        self._packages, self._filename = tuple(packages), filename

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """None, so that others find it; raises ModuleNotFoundError where it is not to be found."""
        if path is not None or name in sys.stdlib_module_names or name in TOOLS or name in self._packages:
            return
        if _importer() == self._filename:
            had = f"{', '.join(self._packages)} and the standard library" if self._packages else "the standard library"
            raise ModuleNotFoundError(
                f"this assignment's submissions have {had}; {name} is not installed here", name=name
            )


def let_import_only(packages: Sequence[str] | None, filename: str) -> None:
    """From now on let code of that file import these packages only; any, where it is None."""
    sys.meta_path[:] = [one for one in sys.meta_path if not isinstance(one, OnlyThese)]
    if packages is not None:
        sys.meta_path.insert(0, OnlyThese(packages, filename))


def _importer() -> str:
    """The file whose statement imports."""
    frame = sys._getframe(2)
    while frame.f_back is not None and any(part in frame.f_code.co_filename for part in MACHINERY):
        frame = frame.f_back
    return frame.f_code.co_filename
