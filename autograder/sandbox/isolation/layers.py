"""The layers that a worker puts on itself before it sees student code, and a canary that tries which of them hold.

    rlimits      memory, processor time, file size, open files; no core dump
    landlock     read and execute what Python runs on; nothing else, and no writing; no TCP, no signals to others
    identity     where the grader is root: no capabilities, and another user's id if that one can reach Python
    seccomp      an allowlist of system calls: no new processes or programs, no sockets, no tracing, no namespaces

One more is put around the warm server, where the kernel allows it and never because `strict` asks:

    namespaces   no other process, no network, no shared memory; a root that is empty but for what Python runs on

Sources: landlock(7), getrlimit(2), namespaces(7), user_namespaces(7), chroot(2); linux/landlock.h, linux/sched.h and
linux/mount.h for the numbers.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import math
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from autograder.sandbox.isolation import seccomp
from autograder.sandbox.isolation.kernel import (
    PR_SET_NO_NEW_PRIVS,
    PR_SET_THP_DISABLE,
    checked,
    give_up_bounding_set,
    give_up_capabilities,
    give_up_root,
    guard,
    has_capabilities,
    libc,
    prctl,
    syscall,
)

if sys.platform != "win32":
    import resource

LAYERS = ("rlimits", "landlock", "identity", "seccomp")
AROUND = ("namespaces",)

DESCRIPTORS = 64
FILE_BYTES = 2**20
SPACE = 64 * 2**30  # what may be mapped and not written: for each 2 MiB of it the kernel may hold 4 KiB of tables


def apply(
    layers: Iterable[str],
    megabytes: float,
    readable: Sequence[str],
    seconds: float = math.inf,
    rules: int | None = None,
) -> None:
    """Put these layers on this process, for good; raise OSError where the kernel refuses one.

    megabytes   what it may still allocate
    readable    files and folders that it may read and execute, under landlock
    seconds     of processor time for the rest of its life: a backstop, for nobody but the grader knows the items
    rules       what `landlock_rules` made of `readable`, where many processes need the same
    """
    chosen = set(layers)
    if not chosen:
        return
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    with contextlib.suppress(OSError):  # a submission's use of memory is then the same on every machine
        prctl(PR_SET_THP_DISABLE, 1)
    if "rlimits" in chosen:
        limit(megabytes, seconds)
    if "namespaces" in chosen:
        narrow(readable)
    if "landlock" in chosen:
        restrict(landlock_rules(readable) if rules is None else rules)
    if "identity" in chosen:
        give_up_root(readable)
    guard()  # after identity: a change of user resets both
    if "seccomp" in chosen:
        seccomp.apply()


# rlimits


def limit(megabytes: float, seconds: float) -> None:
    """Limit what this process may use from now on, hard and soft: a soft limit alone is a signal to ignore."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
        status = dict(line.split(":", 1) for line in stream)
    data, size = (int(status[name].split()[0]) * 1024 for name in ("VmData", "VmSize"))
    allowed = int(megabytes * 2**20)
    limits = {
        resource.RLIMIT_STACK: resource.getrlimit(resource.RLIMIT_STACK)[0],  # which counts as no data
        resource.RLIMIT_DATA: data + allowed,
        resource.RLIMIT_AS: size + allowed + SPACE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: FILE_BYTES,
        resource.RLIMIT_NOFILE: DESCRIPTORS,
    }
    if seconds < 2**31:
        limits[resource.RLIMIT_CPU] = math.ceil(seconds) + 1
    for name, value in limits.items():
        resource.setrlimit(name, (value, value))


# Landlock

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, the same on every architecture
CREATE_RULESET_VERSION, RULE_PATH_BENEATH = 1, 1
FILE_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}  # all that each version of Landlock knows
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
BIND_AND_CONNECT_TCP = 0x3  # from version 4 on
ABSTRACT_SOCKETS_AND_SIGNALS = 0x3  # scopes, from version 6 on


def landlock_rules(readable: Sequence[str], listed: Sequence[str] = ()) -> int:
    """Return the rules as a descriptor, which many processes can put on; raise OSError where the kernel has none.

    readable   what may be read and executed
    listed     folders of which the names may be seen, all that is in them
    """
    version = syscall(CREATE_RULESET, None, 0, CREATE_RULESET_VERSION)
    network, scopes = BIND_AND_CONNECT_TCP * (version >= 4), ABSTRACT_SOCKETS_AND_SIGNALS * (version >= 6)
    ruleset = struct.pack("QQQ", FILE_RIGHTS[min(version, 5)], network, scopes)
    descriptor = syscall(CREATE_RULESET, ruleset, 24 if version >= 6 else 16 if version >= 4 else 8, 0)
    rights = dict.fromkeys(listed, READ_DIR)
    for path in readable:
        more = READ_DIR if os.path.isdir(path) else WRITE_FILE if path == os.devnull else 0  # noqa: PTH112
        rights[path] = rights.get(path, 0) | EXECUTE | READ_FILE | more
    try:
        for path, allowed in rights.items():
            try:
                opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:  # what is not there need not be allowed
                continue
            try:
                syscall(ADD_RULE, descriptor, RULE_PATH_BENEATH, struct.pack("=Qi", allowed, opened), 0)
            finally:
                os.close(opened)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def restrict(rules: int) -> None:
    """Put Landlock's rules on this process, and close their descriptor."""
    syscall(RESTRICT_SELF, rules, 0)
    os.close(rules)


# Namespaces: the server enters them once, so that a worker costs no more than a change of root. That is chroot(2), 5 ms
# cheaper than mounts of the worker's own: nothing outside is open, and without a capability there is no way back. As
# root no namespace of users is made: there the layer `identity` needs the ids that one would hide

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


# Which of them hold: a process of its own puts each on and tries what it forbids

CANARY_MEGABYTES = 256


def print_canary(around: str, secret: str, readable: Sequence[str]) -> None:
    """Print as JSON what `canary` finds: of LAYERS, or "around" of the namespaces, below a process in them."""
    found = {}
    if not around:
        found = canary(LAYERS, CANARY_MEGABYTES, readable, secret)
    elif refusal := _refusal_of(functools.partial(enter, readable)):
        found = {"namespaces": refusal}
    elif os.fork() == 0:
        found = canary(("namespaces",), CANARY_MEGABYTES, readable, secret)
    else:
        os.wait()
    sys.stdout.write(json.dumps(found) if found else "")


def canary(layers: Sequence[str], megabytes: int, readable: Sequence[str], secret: str) -> dict[str, str]:
    """Put the layers on this process, try what each forbids, and return why it does not hold; "" where it does.

    secret   a file that this process could read before
    """
    as_user = [_use_capability] if os.geteuid() != 0 else []
    hidden = (secret, "/proc/1/status", "/etc/passwd")
    forbidden: dict[str, list[Callable[[], object]]] = {
        "rlimits": [lambda: bytearray((megabytes + 64) * 2**20)],
        "landlock": [lambda: _read(secret), lambda: _write("/tmp/.autograder-canary")],
        "seccomp": [
            socket.socket,
            lambda: os.fork() or os._exit(0),
            lambda: os.execv("/bin/true", ["true"]),
            lambda: os.kill(os.getppid(), 0),
        ],
        "identity": [_use_capability],
        "namespaces": [
            *(functools.partial(_read, path) for path in hidden),
            lambda: _write(f"{sys.prefix}/.autograder-canary"),
            _find_network_card,
            *as_user,
        ],
    }
    found: dict[str, str] = {}
    for layer in layers:
        found[layer] = _refusal_of(functools.partial(apply, [layer], megabytes, readable))
        if not found[layer] and any(_refusal_of(attempt) == "" for attempt in forbidden[layer]):
            found[layer] = "it is there, but does not hold"
    if found.get("namespaces") == "":  # in which Python must still be found
        found["namespaces"] = _refusal_of(lambda: importlib.import_module("unicodedata"))
    return found


def _refusal_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except ImportError as error:
        return f"Python cannot be reached in it: {error}"
    except (OSError, MemoryError) as error:
        return str(error) or type(error).__name__
    return ""


def _read(path: str) -> None:
    with open(path, "rb") as stream:  # noqa: PTH123
        stream.read(1)


def _write(path: str) -> None:
    with open(path, "wb") as stream:  # noqa: PTH123
        stream.write(b"canary")
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108


def _find_network_card() -> None:
    if not {name for _, name in socket.if_nameindex()} - {"lo"}:
        raise OSError(101, "there is no network")


def _use_capability() -> None:
    if not has_capabilities():
        raise PermissionError("no capability is left")
