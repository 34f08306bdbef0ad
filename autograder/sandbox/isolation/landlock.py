"""Landlock: read and execute what Python runs on; nothing else, and no writing; no TCP, no signals to others.

Only the standard library and ctypes: this runs inside the worker. Sources: landlock(7), the kernel's UAPI headers.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from autograder.sandbox.isolation.processes import LIBC, syscall

_RULESET, _RULE, _RESTRICT = 444, 445, 446  # the same on every architecture
_ALL_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}  # file rights that each version knows
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TCP = 0x3  # bind, connect
_SCOPES = 0x3  # abstract sockets, signals


def restrict(ruleset: int) -> None:
    """Put prepared rules on this process."""
    syscall(_RESTRICT, ruleset, 0)


def prepare(readable: Sequence[str], listed: Sequence[str] = ()) -> int:
    """The rules as a descriptor, which many processes can put on; raises OSError where the kernel has none.

    readable   what may be read and executed
    listed     folders of which the names may be seen, all that is in them
    """
    version = _version()
    if version < 1:
        raise OSError(38, "this kernel has no Landlock, or it is switched off")
    ruleset = struct.pack(
        "QQQ", _ALL_BY_ABI[min(version, 5)], _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    descriptor = syscall(_RULESET, ruleset, size, 0)
    try:
        for path in readable:
            kind = _READ_DIR if os.path.isdir(path) else _WRITE_FILE if path == os.devnull else 0  # noqa: PTH112
            _allow(descriptor, path, _EXECUTE | _READ_FILE | kind)
        for path in listed:
            _allow(descriptor, path, _READ_DIR)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _version() -> int:
    return -1 if LIBC is None else int(LIBC.syscall(_RULESET, None, 0, 1))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        syscall(_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)
