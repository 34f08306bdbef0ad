"""Calls to the Linux kernel by ctypes, and what a process gives up: capabilities, its user, being looked into.

Sources of the numbers: linux/prctl.h, linux/capability.h; prctl(2), capabilities(7).
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_SET_THP_DISABLE = 36, 38, 41
CAPABILITIES = struct.pack("Ii", 0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, of this process
MOST_CAPABILITIES = 64
NOBODY = 64_999  # in no distribution's range of users; it owns nothing


def checked(result: int) -> int:
    """Return what a function of the C library returned; raise OSError where that is a refusal."""
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def libc() -> ctypes.CDLL:
    """Return the C library; raise OSError where there is no Linux."""
    if LIBC is None:
        raise OSError(38, "not Linux")
    return LIBC


def prctl(option: int, *arguments: object) -> int:
    """Call prctl(2); raise OSError where it refuses."""
    given = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in (*arguments, 0, 0, 0, 0)[:4]]
    return checked(int(libc().prctl(option, *given)))


def syscall(number: int, *arguments: object) -> int:
    """Make the system call of this number; raise OSError where it refuses."""
    given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return checked(int(libc().syscall(number, *given)))


def guard() -> None:
    """Let no other process of the same user look into this one, and end it with the process that started it."""
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def give_up_bounding_set() -> None:
    """Let no program that this process becomes have a capability."""
    for capability in range(MOST_CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # there are no more, or none may be dropped
            return


def give_up_capabilities() -> None:
    """Keep no capability."""
    checked(libc().capset(CAPABILITIES, bytes(24)))


def has_capabilities() -> bool:
    """Tell whether this process has an effective capability."""
    data = ctypes.create_string_buffer(24)  # twice effective, permitted, inheritable: lower 32 bits, then upper
    checked(libc().capget(CAPABILITIES, data))
    return any(data.raw[:4] + data.raw[12:16])


def give_up_root(readable: Sequence[str]) -> None:
    """Where this process is root's: keep no capability, and be nobody if nobody can reach what is `readable`."""
    if os.geteuid() != 0:
        return
    give_up_bounding_set()
    if others_reach(tuple(readable)):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    give_up_capabilities()


@functools.cache  # the warm server asks before it forks
def others_reach(readable: tuple[str, ...]) -> bool:
    """Tell whether a user who owns nothing can read all this, as far as folders tell."""
    folders = [Path(path).resolve() for path in (sys.base_prefix, *readable) if os.path.isdir(path)]  # noqa: PTH112
    places = {place for folder in folders for place in (folder, *folder.parents)}
    return all(place.stat().st_mode & 0o005 == 0o005 for place in places)
