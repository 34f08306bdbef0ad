"""The layers that a worker puts on itself before it sees student code, and which of them this machine has.

    rlimits    memory, processor time, file size, open files; no core dump
    landlock   read and execute what Python runs on; nothing else, and no writing; no TCP, no signals to others
    seccomp    no new processes or programs, no sockets, no tracing, no shared memory, no namespaces; nothing that
               reaches another process or changes a file that it may only read
    identity   where the grader is root: no capabilities, and another user's id if that one can reach Python

Two more are put around the server, where the kernel allows them and never because `strict` asks:

    namespaces   see there
    cgroup       see there: memory and processes of server and worker together, held by the kernel

Only the standard library and ctypes: this runs inside the worker. Sources: landlock(7), seccomp(2), prctl(2),
capabilities(7), and the kernel's UAPI headers, from which the numbers are.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import math
import os
import platform
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from autograder.sandbox.inside import cgroup
from autograder.sandbox.inside.namespaces import enter, give_up_bounding_set, give_up_capabilities, narrow
from autograder.sandbox.inside.processes import guard, prctl, syscall

LAYERS = ("rlimits", "landlock", "identity", "seccomp")
AROUND = ("namespaces", "cgroup")
NOBODY = 64_999  # in no distribution's range of users; it owns nothing
DESCRIPTORS = 64
FILE_BYTES = 2**20
CANARY_MEGABYTES = 256

_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def apply(layers: Iterable[str], megabytes: float, readable: Sequence[str], seconds: float = math.inf) -> None:
    """Put these layers on this process, for good; raises OSError where the kernel refuses one.

    megabytes   what it may still allocate
    seconds     of processor time for the rest of its life: a backstop, for nobody but the grader knows the items
    readable    files and folders that it may read and execute, under landlock
    """
    wanted = set(layers)
    if wanted:
        prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    if "rlimits" in wanted:
        _limit(megabytes, seconds)
    if "namespaces" in wanted:
        narrow(readable)
    if "landlock" in wanted:
        _landlock(readable)
    if "identity" in wanted:
        _give_up_identity(readable)
    if wanted:  # after identity: a change of user resets both
        guard()
    if "seccomp" in wanted:
        _seccomp()


# rlimits


def _limit(megabytes: float, seconds: float) -> None:
    import resource  # not on every platform

    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))  # the stack is no data
    resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + int(megabytes * 2**20),) * 2)
    if seconds < 2**31:
        whole = math.ceil(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (whole, whole))  # a kill: the soft limit is a signal to ignore
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))


def _data_bytes() -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
        return int(next(line for line in stream if line.startswith("VmData")).split()[1]) * 1024


# identity


def _give_up_identity(readable: Sequence[str]) -> None:
    if os.geteuid() != 0:
        return
    give_up_bounding_set()
    if all(_others_may_enter(path) for path in (sys.base_prefix, *readable) if os.path.isdir(path)):  # noqa: PTH112
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    give_up_capabilities()


def _others_may_enter(path: str) -> bool:
    places = [Path(path).resolve(), *Path(path).resolve().parents]
    return all(place.stat().st_mode & 0o005 == 0o005 for place in places)


# Landlock

_RULESET, _RULE, _RESTRICT = 444, 445, 446  # the same on every architecture
_ALL_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}  # file rights that each version knows
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TCP = 0x3  # bind, connect
_SCOPES = 0x3  # abstract sockets, signals


def _landlock(readable: Sequence[str]) -> None:
    version = _landlock_version()
    if version < 1:
        raise OSError(38, "this kernel has no Landlock, or it is switched off")
    ruleset = struct.pack(
        "QQQ", _ALL_BY_ABI[min(version, 5)], _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0
    )
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    descriptor = syscall(_RULESET, ruleset, size, 0)
    try:
        for path in readable:
            _allow(descriptor, path)
        syscall(_RESTRICT, descriptor, 0)
    finally:
        os.close(descriptor)


def _landlock_version() -> int:
    return -1 if _libc is None else int(_libc.syscall(_RULESET, None, 0, 1))


def _allow(ruleset: int, path: str) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        kind = _READ_DIR if os.path.isdir(path) else _WRITE_FILE if path == os.devnull else 0  # noqa: PTH112
        rights = _EXECUTE | _READ_FILE | kind
        syscall(_RULE, ruleset, 1, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def readable_paths(packages: Sequence[str]) -> list[str]:
    """What this Python runs on: its installation, `packages`, the system's libraries."""
    standard = [path for path in sys.path if Path(path).is_relative_to(sys.base_prefix)]
    system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo"]
    devices = [os.devnull, "/dev/urandom"]  # a shared mapping of /dev/zero is memory that no limit counts
    whole = {"/", "/usr", "/usr/local"}  # a Python of the system: its libraries stand in the list already
    found = [sys.base_prefix, *standard, *packages, *system, *devices]
    return list(dict.fromkeys(os.path.realpath(path) for path in found if path not in whole))


def packages() -> list[str]:
    """The folders of installed packages that this Python imports from."""
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def environment() -> dict[str, str]:
    """The environment of a worker: nothing of the grader's own."""
    usual = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PATH": os.defpath, "LC_ALL": "C.UTF-8", "HOME": "/"}
    with contextlib.suppress(RuntimeError):  # there may be no home
        usual["MPLCONFIGDIR"] = str(Path.home() / ".cache" / "policy-gradient-autograder")
    return {**usual, "MPLBACKEND": "Agg", "TORCHINDUCTOR_CACHE_DIR": "/tmp"}  # never made: a name without looking


# seccomp

# Name → number on x86-64 and on 64-bit ARM; -1 where there is none.
_CALLS = {
    "fork": (57, -1), "vfork": (58, -1), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424),
    "process_madvise": (440, 440), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54),
    "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1), "utimensat": (280, 88),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "removexattrat": (466, 466), "file_setattr": (469, 469), "statmount": (457, 457), "listmount": (458, 458),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "msgget": (68, 186),
    "mq_open": (240, 180), "io_setup": (206, 0), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_unlink": (241, 181),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "process_mrelease": (448, 448), "truncate": (76, 45),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "seccomp": (317, 277),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "fanotify_init": (300, 262),
    "inotify_init": (253, -1), "inotify_init1": (294, 26),
    "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145), "setregid": (114, 143),
    "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159), "setfsuid": (122, 151),
    "setfsgid": (123, 152), "capset": (126, 91), "setsid": (112, 157), "setpgid": (109, 154),
    "personality": (135, 92), "kexec_load": (246, 104), "reboot": (169, 142), "swapon": (167, 224),
    "init_module": (175, 105), "finit_module": (313, 273), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "syslog": (103, 116), "acct": (163, 89), "quotactl": (179, 60), "mknod": (133, -1),
    "mknodat": (259, 33), "iopl": (172, -1), "ioperm": (173, -1), "vhangup": (153, 58),
}  # fmt: skip
# Those that are judged by an argument.
_CLONE, _MMAP, _PRCTL, _FCNTL, _IOCTL = (56, 220), (9, 222), (157, 167), (72, 25), (16, 29)
_OPEN, _OPENAT = (2, -1), (257, 56)
_ON_A_PROCESS = {  # the process is the first argument, 0 being this one
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip
_SIGNALS = {"kill": (62, 129), "tgkill": (234, 131)}  # to itself only: 0 is a group
_TKILL = (200, 130)
_FALLS_BACK = {"clone3": (435, 435), "openat2": (437, 437)}  # the C library then uses one that can be judged
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOW, _KILL_PROCESS, _REFUSE, _NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026  # EPERM, ENOSYS
_X32 = 0x40000000
_CLONE_THREAD, _SHARED_ANONYMOUS, _GROWS_DOWN = 0x00010000, 0x21, 0x100  # what grows down counts as no data
_ACCESS, _TRUNCATE = 0x3, 0x200
_SET_PARENT_DEATH, _SET_DUMPABLE = 1, 4
_SET_OWNER = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: a pipe could send any signal to anyone
_HARMLESS_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide; FIO*
_NUMBER, _ARCHITECTURE = 0, 4

Instruction = tuple[int, int, int, int]


def _seccomp() -> None:
    if platform.machine() not in _MACHINES:
        raise OSError(38, f"no list of system calls for {platform.machine()}")
    column, architecture = _MACHINES[platform.machine()]
    program = _program(column, architecture, os.getpid())
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    filter_ = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))
    prctl(22, 2, ctypes.create_string_buffer(filter_, len(filter_)))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _program(column: int, architecture: int, pid: int) -> list[Instruction]:
    """Classic BPF: each refused call is a comparison and a return; everything else is allowed."""
    program = [
        _load(_ARCHITECTURE),
        *_unless_equal(architecture, _KILL_PROCESS),
        _load(_NUMBER),
        (0x35, 0, 1, _X32),  # jump if at least: the x32 calls under the same architecture
        _return(_REFUSE),
    ]
    for numbers in _CALLS.values():
        if numbers[column] >= 0:
            program += [(0x15, 0, 1, numbers[column]), _return(_REFUSE)]
    program += [(0x15, 0, 1, _TKILL[column]), _return(_REFUSE)]
    for numbers in _FALLS_BACK.values():
        program += [(0x15, 0, 1, numbers[column]), _return(_NOT_THERE)]
    for numbers, argument, test in _judged(pid):
        if numbers[column] >= 0:
            program += _judge(numbers[column], argument, test)
    return [*program, _return(_ALLOW)]


def _judged(pid: int) -> list[tuple[tuple[int, int], int, list[Instruction]]]:
    """Calls by number, which argument tells, and what refuses it."""
    anonymous = [(0x45, 2, 0, _GROWS_DOWN), (0x54, 0, 0, _SHARED_ANONYMOUS), *_refused_if(_SHARED_ANONYMOUS)]
    truncating = [(0x54, 0, 0, _ACCESS | _TRUNCATE), *_refused_if(_TRUNCATE, _ACCESS | _TRUNCATE)]
    return [
        (_CLONE, 0, [(0x45, 1, 0, _CLONE_THREAD), _return(_REFUSE)]),
        (_MMAP, 3, anonymous),
        (_OPEN, 1, truncating),  # reading alone allows it, where Landlock is older than 6.2
        (_OPENAT, 2, truncating),
        (_PRCTL, 0, _refused_if(_SET_PARENT_DEATH, _SET_DUMPABLE)),
        (_FCNTL, 1, _refused_if(*_SET_OWNER)),
        (_IOCTL, 1, _refused_unless(*_HARMLESS_IOCTLS)),
        *[(numbers, 0, _refused_unless(pid)) for numbers in _SIGNALS.values()],
        *[(numbers, 0, _refused_unless(0, pid)) for numbers in _ON_A_PROCESS.values()],
    ]


def _load(offset: int) -> Instruction:
    return 0x20, 0, 0, offset


def _return(value: int) -> Instruction:
    return 0x06, 0, 0, value


def _unless_equal(value: int, result: int) -> list[Instruction]:
    return [(0x15, 1, 0, value), _return(result)]


def _refused_if(*values: int) -> list[Instruction]:
    last = len(values) - 1
    return [*((0x15, last - k, int(k == last), value) for k, value in enumerate(values)), _return(_REFUSE)]


def _refused_unless(*values: int) -> list[Instruction]:
    return [*((0x15, len(values) - k, 0, value) for k, value in enumerate(values)), _return(_REFUSE)]


def _judge(number: int, argument: int, test: list[Instruction]) -> list[Instruction]:
    """`test` on the lower half of an argument of one call; what it lets pass is allowed."""
    body = [_load(16 + 8 * argument), *test, _return(_ALLOW)]
    return [(0x15, 0, len(body), number), *body]


# Whether they hold


@functools.cache
def probe() -> dict[str, str]:
    """Each layer, and why it does not hold on this machine; "" where it does. Tried once, in processes of their own."""
    if sys.platform != "linux":
        return dict.fromkeys((*LAYERS, *AROUND), "only Linux has it")
    with ThreadPoolExecutor() as pool:
        inside = pool.submit(_tried, "answer", LAYERS)
        around = pool.submit(_tried, "answer_in_namespaces", AROUND[:1])
        return {**inside.result(), **around.result(), "cgroup": cgroup.probe()}


def _tried(function: str, layers: Sequence[str], attempts: int = 2) -> dict[str, str]:
    """What the canary found; where no process could try it, once more: a busy machine is not one without layers."""
    module = "autograder.sandbox.inside.isolation"
    code = f"import sys; sys.path.append(sys.argv[1]); from {module} import {function} as f; f(sys.argv[2])"
    command = [sys.executable, "-S", "-s", "-P", "-B", "-c", code, str(Path(__file__).parents[3])]
    try:
        with tempfile.NamedTemporaryFile() as secret:
            done = subprocess.run([*command, secret.name], capture_output=True, text=True, timeout=60)
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = f"it could not be tried: {error}"
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        reason = f"the process that tried it ended: {last}"
    return _tried(function, layers, attempts - 1) if attempts > 1 else dict.fromkeys(layers, reason)


def answer(secret: str) -> None:
    """Print what `canary` finds."""
    sys.stdout.write(json.dumps(canary(LAYERS, CANARY_MEGABYTES, readable_paths([]), secret)))


def answer_in_namespaces(secret: str) -> None:
    """Print what `canary` finds of the namespaces: as a worker, below a process that has entered them."""
    readable = readable_paths([])
    if refusal := _refusal_of(functools.partial(enter, readable)):
        sys.stdout.write(json.dumps({"namespaces": refusal}))
    elif os.fork() == 0:
        sys.stdout.write(json.dumps(canary(("namespaces",), CANARY_MEGABYTES, readable, secret)))
    else:
        os.wait()


def canary(layers: Sequence[str], megabytes: int, readable: Sequence[str], secret: str) -> dict[str, str]:
    """Put the layers on this process, try what each forbids, and say of each why it does not hold; "" where it does.

    secret   a file that this process could read before
    """
    found: dict[str, str] = {}
    tries: dict[str, list[Callable[[], object]]] = {
        "rlimits": [lambda: bytearray((megabytes + 64) * 2**20)],
        "landlock": [lambda: _read(secret), lambda: _write("/tmp/.autograder-canary")],
        "seccomp": [_open_socket, _fork, lambda: os.execv("/bin/true", ["true"]), lambda: os.kill(os.getppid(), 0)],
        "identity": [_use_capability],
        "namespaces": [
            *(lambda path=path: _read(path) for path in (secret, "/proc/1/status", "/etc/passwd")),
            lambda: _write(f"{sys.prefix}/.autograder-canary"),
            _leave_the_machine,
            *([_use_capability] if os.geteuid() != 0 else []),
        ],
    }
    for layer in layers:
        found[layer] = _refusal_of(functools.partial(apply, [layer], megabytes, readable))
        if not found[layer] and any(_refusal_of(attempt) == "" for attempt in tries[layer]):
            found[layer] = "it is there, but does not hold"
    if "namespaces" in found and not found["namespaces"]:
        found["namespaces"] = _refusal_of(_import_anew)
    return found


def _refusal_of(attempt: Callable[[], object]) -> str:
    try:
        attempt()
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


def _import_anew() -> None:
    """Raises OSError where Python is out of reach."""
    try:
        importlib.import_module("unicodedata")
    except ImportError as error:
        raise OSError(2, f"Python cannot be reached in it: {error}") from error


def _leave_the_machine() -> None:
    """Succeeds where there is a network card."""
    import socket

    if not {name for _, name in socket.if_nameindex()} - {"lo"}:
        raise OSError(101, "there is no network")


def _open_socket() -> None:
    import socket

    socket.socket().close()


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _use_capability() -> None:
    """Succeeds only with a capability left."""
    data = ctypes.create_string_buffer(24)
    if _libc is None or _libc.capget(struct.pack("Ii", 0x20080522, 0), data) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    if not any(data.raw[:4] + data.raw[12:16]):
        raise PermissionError("no capability is left")
