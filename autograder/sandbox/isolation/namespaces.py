"""Namespaces round a warm server and its workers: no other process, no network, no shared memory, no file can be named.

    enter    at the server's start: it goes on as process 1 of namespaces of its own (users, processes, network, IPC,
             host name, mounts), in which it prepares an empty root with read-only binds of what Python runs on
    narrow   in each worker: that root becomes its own, and it keeps no capability

The server makes them once, so that a worker costs no more than a change of root. That is chroot(2), 5 ms cheaper than
mounts of the worker's own: nothing outside is open, and without a capability there is no way back. As root no namespace
of users is made: there the layer `identity` needs the ids that one would hide.
Sources: namespaces(7), user_namespaces(7), chroot(2); linux/sched.h, linux/mount.h for the numbers.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from autograder.sandbox.isolation.kernel import (
    checked,
    give_up_bounding_set,
    give_up_capabilities,
    guard,
    libc,
    syscall,
)

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MOUNT_SETATTR, AT_RECURSIVE, AT_FDCWD = 442, 0x8000, -100  # the system call, the same on every architecture; its flags
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 0x1, 0x2
PLACES = ("/mnt", "/media", "/srv", "/opt", "/var")  # one of them is covered by the new root, for the server alone


def enter(readable: Sequence[str]) -> None:
    """Go on in new namespaces, as their process 1; the process that called waits for it and ends when it ends.

    readable   the files and folders that the new root shows; raises OSError where the kernel refuses
    """
    user, group = os.geteuid(), os.getegid()
    kinds = CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS
    checked(libc().unshare(kinds | (CLONE_NEWUSER if user != 0 else 0)))
    if user != 0:
        for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            Path(f"/proc/self/{name}").write_text(line, encoding="ascii")
    _mount("none", "/", MS_REC | MS_PRIVATE)
    _build(Path(place_for(tuple(readable))), readable)
    child = os.fork()
    guard()
    if child:
        os.closerange(3, 2**20)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os._exit(status if status >= 0 else 1)


def narrow(readable: Sequence[str]) -> None:
    """Make the root that `enter` prepared this process's own; raise OSError where there is none."""
    if os.getppid() != 1:
        raise OSError(1, "the namespaces were not entered")
    os.chroot(place_for(tuple(readable)))
    os.chdir("/")
    if os.geteuid() != 0:  # what the namespace of users gave; of root the layer `identity` takes it
        give_up_bounding_set()
        give_up_capabilities()


@functools.cache  # it is asked of hundreds of paths, for each worker
def place_for(readable: tuple[str, ...]) -> str:
    """Where the new root is put together: a folder that hides nothing which it shows."""
    for place in PLACES:
        is_free = Path(place).is_dir() and not Path(place).is_symlink()
        if is_free and not any(Path(path).is_relative_to(place) for path in readable):
            return place
    raise OSError(2, f"a new root needs one of the folders {', '.join(PLACES)}")


def _build(root: Path, readable: Sequence[str]) -> None:
    """Mount an empty root there, bind what is readable, and let nothing in it be written."""
    _mount("tmpfs", str(root), 0, kind="tmpfs", options="size=1m,mode=755")
    for path in sorted(readable):
        target = root / path.lstrip("/")
        if os.path.exists(path) and not target.exists():  # noqa: PTH110
            if os.path.isdir(path):  # noqa: PTH112
                target.mkdir(parents=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.touch()
            _mount(path, str(target), MS_BIND | MS_REC)
    spelt = [Path(path) for path in ("/lib", "/lib64", "/usr/lib64", sys.prefix, sys.base_prefix, *sys.path) if path]
    for link in dict.fromkeys(
        place for path in spelt for place in (*reversed(path.parents), path)
    ):  # from the top down
        copy = root / str(link).lstrip("/")
        if link.is_symlink() and not copy.exists() and not copy.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.symlink_to(os.readlink(link))  # noqa: PTH115
    attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    syscall(MOUNT_SETATTR, AT_FDCWD, str(root).encode(), AT_RECURSIVE, attributes, len(attributes))


def _mount(source: str, target: str, flags: int, *, kind: str = "", options: str = "") -> None:
    given = [text.encode() if text else None for text in (source, target, kind)]
    checked(libc().mount(*given, ctypes.c_ulong(flags), options.encode() or None))
