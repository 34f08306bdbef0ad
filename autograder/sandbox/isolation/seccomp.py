"""seccomp: an allowlist of system calls, and for those that can do more than one thing, of their arguments.

A worker needs few: its own memory, its own threads, reading files, its pipes, the clock. Whatever is not listed is
refused, for a denylist loses to every kernel that learns something new. What is left out reaches another process or
starts one, changes a file or the system, or uses memory that no limit counts.

Which calls are used was learnt from the sample classes of all assignments under strace (tests/attacks/test_honest.py
has them graded) and from the sources of glibc, libgomp and CPython. A refusal is EPERM, or ENOSYS where a library then
takes an older call that can be judged. For whoever looks why honest code fails, AUTOGRADER_REFUSED_CALLS names a file
to which each refused call is written.

Only the standard library and ctypes: this runs inside the worker. Sources: seccomp(2), signal(7), the
kernel's UAPI headers, from which the numbers are.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct

from autograder.sandbox.isolation.processes import LIBC, prctl

# Name → number on x86-64 and on 64-bit ARM; -1 where there is none.
_ALLOWED = {
    # Its own memory
    "brk": (12, 214), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    # Files and pipes that it has open
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "close": (3, 57), "lseek": (8, 62), "dup": (32, 23), "dup2": (33, -1), "dup3": (292, 24),
    "poll": (7, -1), "ppoll": (271, 73), "select": (23, -1), "pselect6": (270, 72),
    # Files by name. Landlock decides what is opened and listed; whether a path is there, and its size, it does not hide
    "stat": (4, -1), "lstat": (6, -1), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "access": (21, -1), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, -1),
    "readlinkat": (267, 78), "getdents": (78, -1), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49),
    "umask": (95, 166),
    # Time and chance
    "gettimeofday": (96, 169), "time": (201, -1), "times": (100, 153), "nanosleep": (35, 101), "getrandom": (318, 278),
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "getitimer": (36, 102),
    "setitimer": (38, 103), "alarm": (37, -1), "pause": (34, -1),
    # Its own threads and signals
    "futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293), "sched_yield": (24, 124),
    "getcpu": (309, 168),
    "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126), "exit": (60, 93),
    "exit_group": (231, 94), "restart_syscall": (219, 128), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136), "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132),
    # Who and where it is
    "getpid": (39, 172), "gettid": (186, 178), "getppid": (110, 173), "getuid": (102, 174), "geteuid": (107, 175),
    "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148), "getresgid": (120, 150),
    "getgroups": (115, 158), "getpgrp": (111, -1), "uname": (63, 160), "getrusage": (98, 165),
}  # fmt: skip
# Those that are judged by an argument.
_CLONE, _MMAP, _PRCTL, _FCNTL, _IOCTL = (56, 220), (9, 222), (157, 167), (72, 25), (16, 29)
_OPEN, _OPENAT, _MADVISE, _ARCH_PRCTL = (2, -1), (257, 56), (28, 233), (158, -1)
_ON_A_PROCESS = {  # the process is the first argument, 0 being this one
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_getaffinity": (204, 123),
    "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
}  # fmt: skip
_SIGNALS = {"kill": (62, 129), "tgkill": (234, 131)}  # to itself only: 0 is a group
_FALLS_BACK = {  # the caller then takes one that can be judged, or does without
    "clone3": (435, 435), "openat2": (437, 437), "close_range": (436, 436), "preadv2": (327, 286),
    "pwritev2": (328, 287), "membarrier": (324, 283), "copy_file_range": (326, 285), "get_mempolicy": (239, 236),
    "set_mempolicy": (238, 237), "mbind": (237, 235), "futex_waitv": (449, 449), "futex_wake": (454, 454),
    "futex_wait": (455, 455), "futex_requeue": (456, 456), "pkey_alloc": (330, 289), "mseal": (462, 462),
}  # fmt: skip
_UNKNOWN = 500  # a number from here on is newer than all libraries of today
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOW, _KILL_PROCESS, _REFUSE, _NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026  # EPERM, ENOSYS
_TRAP = 0x00030000  # SIGSYS
_X32 = 0x40000000

_THREAD = 0x00010000
_OF_A_THREAD = 0x007D0F00  # what C libraries ask of clone for one: nothing of a process, a parent or a namespace
_SHARED_ANONYMOUS = 0x21
_UNCOUNTED = 0x00042100  # what grows down counts as no data; locked and huge pages are counted for all
_ADVICE = (0, 1, 2, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19, 102, 103)  # on how it uses its own memory
_ACCESS, _TRUNCATE = 0x3, 0x200
_PRCTLS = (3, 15, 16, 21, 23, 39, 0x53564D41)  # is it dumpable, a thread's name, seccomp?, capabilities?, a map's name
_ARCH_PRCTLS = (0x1021, 0x1022, 0x1023)  # leave to use a processor's large registers, which oneDNN asks for
_FCNTLS = (0, 1, 2, 3, 1030)  # another number for a descriptor, its flags
_SET_FLAGS, _ASYNCHRONOUS = 4, 0x2000  # O_ASYNC makes a pipe send signals
_HARMLESS_IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide; FIO*
_NUMBER, _ARCHITECTURE = 0, 4
_OWN = -1  # stands for the number of the process where that is not known yet
_SIGSYS, _HANDLER_FLAGS = 31, 0x40000004  # SA_NODEFER, SA_SIGINFO
_FRAMES = {  # where a signal handler finds the call's arguments and its result, in bytes from the saved context
    "x86_64": ((104, 112, 136, 56), 144),
    "aarch64": ((184, 192, 200, 208), 184),
}
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_handlers: list[object] = []  # which must outlive the call that sets them
Instruction = tuple[int, int, int, int]


class _Action(ctypes.Structure):
    _fields_ = (
        ("handler", ctypes.c_void_p), ("mask", ctypes.c_uint8 * 128), ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )  # fmt: skip


def apply(report: int | None = None) -> None:
    """Put it on this process; raises OSError where the kernel refuses, or the machine is of another kind.

    report   a descriptor to which each refused call is written: for whoever looks why honest code fails
    """
    if platform.machine() not in _MACHINES:
        raise OSError(38, f"no list of system calls for {platform.machine()}")
    packed, places = _packed(report is not None)
    if report is not None:
        _report_to(report)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    for place in places:
        struct.pack_into("I", buffer, place, os.getpid())
    filter_ = struct.pack("HxxxxxxQ", len(packed) // 8, ctypes.addressof(buffer))
    prctl(22, 2, ctypes.create_string_buffer(filter_, len(filter_)))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def _report_to(report: int) -> None:
    """Write each trapped call down and answer it with EPERM, as ever.

    Calls that fall back are not trapped: threads are made with signals blocked, and a trap that is blocked is a kill.
    """
    arguments_at, result_at = _FRAMES[platform.machine()]

    def handle(_: int, info: int, context: int) -> None:
        number = ctypes.c_int.from_address(info + 24).value
        shown = ", ".join(hex(ctypes.c_ulong.from_address(context + offset).value) for offset in arguments_at)
        ctypes.c_long.from_address(context + result_at).value = -1
        os.write(report, f"refused: call {number} ({shown}, ...)\n".encode())

    _handlers.append(_HANDLER(handle))
    action = _Action(ctypes.cast(_handlers[-1], ctypes.c_void_p), flags=_HANDLER_FLAGS)  # type: ignore[arg-type]
    if LIBC is None or LIBC.sigaction(_SIGSYS, ctypes.byref(action), None) != 0:
        raise OSError(ctypes.get_errno(), "SIGSYS")


def prepare(report: int | None = None) -> None:
    """Work out once what `apply` with these will need, where processes are forked from this one that apply it."""
    if platform.machine() in _MACHINES:
        _packed(report is not None)


@functools.cache
def _packed(reporting: bool) -> tuple[bytes, tuple[int, ...]]:
    """The program as the kernel takes it, and where in it the number of the process is to stand.

    reporting   whether each refused call is trapped
    """
    program = _program(*_MACHINES[platform.machine()], _OWN)
    if reporting:
        program = [_return(_TRAP) if one == _return(_REFUSE) else one for one in program]
    places = tuple(8 * index + 4 for index, one in enumerate(program) if one[3] == _OWN)
    return b"".join(struct.pack("HBBI", *one[:3], max(one[3], 0)) for one in program), places


def _program(column: int, architecture: int, pid: int) -> list[Instruction]:
    """Classic BPF: each allowed call is a comparison and a return; everything else is refused.

    The kernel finds out once which numbers are allowed whatever their arguments are, and runs nothing for those.
    """
    program = [_load(_ARCHITECTURE), (0x15, 1, 0, architecture), _return(_KILL_PROCESS), _load(_NUMBER)]
    program += [(0x35, 0, 1, _X32), _return(_REFUSE)]  # jump if at least: x32 calls under the same architecture
    for numbers in _ALLOWED.values():
        if numbers[column] >= 0:
            program += [(0x15, 0, 1, numbers[column]), _return(_ALLOW)]
    for numbers in _FALLS_BACK.values():
        program += [(0x15, 0, 1, numbers[column]), _return(_NOT_THERE)]
    for numbers, argument, test in _judged(pid):
        if numbers[column] >= 0:
            program += _judge(numbers[column], argument, test)
    return [*program, (0x35, 0, 1, _UNKNOWN), _return(_NOT_THERE), _return(_REFUSE)]


def _judged(pid: int) -> list[tuple[tuple[int, int], int, list[Instruction]]]:
    """Calls by number, which argument is looked at first, and what answers it; what it lets pass is allowed."""
    mapping = [*_refused_if_any(_UNCOUNTED), (0x54, 0, 0, _SHARED_ANONYMOUS), *_refused_if(_SHARED_ANONYMOUS)]
    truncating = [(0x54, 0, 0, _ACCESS | _TRUNCATE), *_refused_if(_TRUNCATE, _ACCESS | _TRUNCATE)]
    return [
        (_CLONE, 0, [*_refused_if_any(~_OF_A_THREAD & 0xFFFFFFFF), *_refused_if_none(_THREAD)]),
        (_MMAP, 3, mapping),
        (_OPEN, 1, [*_refused_if_any(_ASYNCHRONOUS), *truncating]),  # reading may truncate, where Landlock is older
        (_OPENAT, 2, [*_refused_if_any(_ASYNCHRONOUS), *truncating]),
        (_MADVISE, 2, _refused_unless(*_ADVICE)),
        (_PRCTL, 0, _refused_unless(*_PRCTLS)),
        (_ARCH_PRCTL, 0, _refused_unless(*_ARCH_PRCTLS)),
        (_FCNTL, 1, [*_if_equal(_SET_FLAGS, [_load_argument(2), *_refused_if_any(_ASYNCHRONOUS), _return(_ALLOW)]),
                     *_refused_unless(*_FCNTLS)]),
        (_IOCTL, 1, _refused_unless(*_HARMLESS_IOCTLS)),
        *[(numbers, 0, _refused_unless(pid)) for numbers in _SIGNALS.values()],
        *[(numbers, 0, _refused_unless(0, pid)) for numbers in _ON_A_PROCESS.values()],
    ]  # fmt: skip


# Instructions. A test returns what it decides, and lets the rest pass to what follows it


def _load(offset: int) -> Instruction:
    return 0x20, 0, 0, offset


def _load_argument(argument: int) -> Instruction:
    return _load(16 + 8 * argument)  # the lower half: the kernel takes no more of any that is judged here


def _return(value: int) -> Instruction:
    return 0x06, 0, 0, value


def _if_equal(value: int, then: list[Instruction]) -> list[Instruction]:
    return [(0x15, 0, len(then), value), *then]


def _refused_if(*values: int) -> list[Instruction]:
    last = len(values) - 1
    return [*((0x15, last - k, int(k == last), value) for k, value in enumerate(values)), _return(_REFUSE)]


def _refused_unless(*values: int) -> list[Instruction]:
    return [*((0x15, len(values) - k, 0, value) for k, value in enumerate(values)), _return(_REFUSE)]


def _refused_if_any(bits: int) -> list[Instruction]:
    return [(0x45, 0, 1, bits), _return(_REFUSE)]


def _refused_if_none(bits: int) -> list[Instruction]:
    return [(0x45, 1, 0, bits), _return(_REFUSE)]


def _judge(number: int, argument: int, test: list[Instruction]) -> list[Instruction]:
    body = [_load_argument(argument), *test, _return(_ALLOW)]
    return _if_equal(number, body)
