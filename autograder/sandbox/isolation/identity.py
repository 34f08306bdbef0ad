"""Who a process is, and what it may do as that: capabilities given up, and another user's id where the grader is root.

Only the standard library and ctypes: this runs inside the worker. Sources: capabilities(7), prctl(2).
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.sandbox.isolation.processes import LIBC, prctl

NOBODY = 64_999  # in no distribution's range of users; it owns nothing


def give_up(readable: Sequence[str]) -> None:
    """Where this process is root's: keep no capability, and be nobody if nobody can reach what is `readable`."""
    if os.geteuid() != 0:
        return
    give_up_bounding_set()
    if others_reach(tuple(readable)):
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    give_up_capabilities()


@functools.cache  # a warm server asks before it forks
def others_reach(readable: tuple[str, ...]) -> bool:
    """Whether a user who owns nothing can read all this, as far as folders tell."""
    folders = [Path(path).resolve() for path in (sys.base_prefix, *readable) if os.path.isdir(path)]  # noqa: PTH112
    places = {place for folder in folders for place in (folder, *folder.parents)}
    return all(place.stat().st_mode & 0o005 == 0o005 for place in places)


def give_up_bounding_set() -> None:
    """Let no program that this process becomes have a capability."""
    for capability in range(64):
        if prctl(24, capability, check=False) != 0:  # PR_CAPBSET_DROP, until there are no more
            break


def give_up_capabilities() -> None:
    """Keep no capability."""
    header = struct.pack("Ii", 0x20080522, 0)
    if LIBC is None or LIBC.capset(header, bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
