"""seccomp: an allowlist of system calls, and for those that can do more than one thing, of their arguments.

A worker needs few: its own memory, its own threads, reading files, its pipes, the clock. Whatever is not listed is
refused, for a denylist loses to every kernel that learns something new. Three kinds of call are left out: those that
reach another process or start one, those that change a file or the system, and those through which two workers share
a state of the kernel, so that what one does another can see. Of the last kind and not obvious:

    page cache       fadvise, readahead, preadv2, cachestat, mincore, sync, msync, MADV_WILLNEED, _PAGEOUT, _COLLAPSE
    locks of files   fcntl's locks, leases and F_NOTIFY, flock
    clocks           those of other processes: how long each has had a processor
    counts           sysinfo, statfs, getpriority, RLIMIT_NPROC and other limits of a user, pipes (numbered by the
                     kernel, their pages counted for each user), huge pages, MADV_MERGEABLE, timers (signals queued)
    futexes          one that is not private is found by file and offset: two workers that both map torch's library
                     could wait for each other on its pages. A wait that is not private is answered with EAGAIN, with
                     which the C library's pthread_join goes on asking; a wake wakes nobody

Reading takes 80 µs and more where nobody read the page before, and 5 µs afterwards; looking up a name that is not
there 5 µs, and 1.6 µs afterwards. Against both a worker may be held to paths that were looked up and read before: see
`naming`, whose region of names no call may change.

Which calls are used was learnt from the sample classes of all assignments under strace (tests/attacks/test_honest.py
has them graded) and from the sources of glibc, libgomp and CPython. A refusal is EPERM, or ENOSYS where a library then
takes an older call that can be judged. For whoever looks why honest code
fails, AUTOGRADER_REFUSED_CALLS names a file to which each refused call is written.

Only the standard library and ctypes: this runs inside the worker. Sources: seccomp(2), the kernel's UAPI headers, from
which the numbers are.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct

from autograder.sandbox.inside.kernel import naming, traps
from autograder.sandbox.inside.kernel.naming import Names
from autograder.sandbox.inside.processes import prctl

# Name → number on x86-64 and on 64-bit ARM; -1 where there is none.
_ALLOWED = {
    # Its own memory
    "brk": (12, 214), "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216),
    # Files and pipes that it has open
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "close": (3, 57), "lseek": (8, 62), "dup": (32, 23), "dup2": (33, -1), "dup3": (292, 24),
    "poll": (7, -1), "ppoll": (271, 73), "select": (23, -1), "pselect6": (270, 72),
    # What Landlock lets it see
    "stat": (4, -1), "lstat": (6, -1), "fstat": (5, 80), "newfstatat": (262, 79), "statx": (332, 291),
    "access": (21, -1), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, -1),
    "readlinkat": (267, 78), "getdents": (78, -1), "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49),
    "umask": (95, 166),
    # Time and chance
    "gettimeofday": (96, 169), "time": (201, -1), "times": (100, 153), "nanosleep": (35, 101), "getrandom": (318, 278),
    "getitimer": (36, 102), "setitimer": (38, 103), "alarm": (37, -1), "pause": (34, -1),
    # Its own threads and signals
    "set_robust_list": (273, 99), "rseq": (334, 293), "sched_yield": (24, 124), "getcpu": (309, 168),
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
_OPEN, _OPENAT, _MADVISE, _FUTEX, _ARCH_PRCTL = (2, -1), (257, 56), (28, 233), (202, 98), (158, -1)
_PRLIMIT = (302, 261)
_ON_A_PROCESS = {  # the process is the first argument, 0 being this one
    "sched_setaffinity": (203, 122), "sched_getaffinity": (204, 123), "sched_getscheduler": (145, 120),
    "sched_getparam": (143, 121),
}  # fmt: skip
_CLOCKS = {  # a process has one, too: how long it has had a processor, which anybody may ask
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
}  # fmt: skip
_CLOCKS_OF_ALL, _CLOCK_OF_A_THREAD = 12, 4  # of this process's threads only
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
_NOTHING_DONE, _ASK_AGAIN = 0x00050000, 0x0005000B  # answered with 0, with EAGAIN
_TRAP, _TRAP_OF_A_PATH = 0x00030000, 0x00030000 | traps.OF_A_PATH  # SIGSYS, with the number and the last 16 bits
_X32 = 0x40000000

_THREAD = 0x00010000
_OF_A_THREAD = 0x007D0F00  # what C libraries ask of clone for one: nothing of a process, a parent or a namespace
_SHARED_ANONYMOUS = 0x21
_AT_THIS_ADDRESS = 0x10
_ON_ADDRESSES = {  # which argument is one
    "mmap": (9, 222, 0), "mprotect": (10, 226, 0), "munmap": (11, 215, 0), "mremap": (25, 216, 0),
    "madvise": (28, 233, 0), "moved to": (25, 216, 4),
}  # fmt: skip
_UNCOUNTED = 0x00042100  # what grows down counts as no data; locked and huge pages are counted for all
_ADVICE = (0, 1, 2, 4, 8, 10, 11, 15, 16, 17, 18, 19, 102, 103)  # on how it uses its own memory
_IN_HUGE_PAGES = 14  # a library's pages would be collapsed for all who have mapped it; NumPy asks it for its own memory
_ACCESS, _TRUNCATE = 0x3, 0x200
_PRIVATE, _FUTEX_COMMAND, _WAIT, _WAIT_BITSET = 0x80, 0x7F, 0, 9
_PRCTLS = (3, 15, 16, 21, 23, 39, 0x53564D41)  # is it dumpable, a thread's name, seccomp?, capabilities?, a map's name
_ARCH_PRCTLS = (0x1021, 0x1022, 0x1023)  # leave to use a processor's large registers, which oneDNN asks for
_FCNTLS = (0, 1, 2, 3, 1030)  # another number for a descriptor, its flags
_SET_FLAGS, _ASYNCHRONOUS = 4, 0x2000  # O_ASYNC makes a pipe send signals
_HARMLESS_IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide; FIO*
_LIMITS = (0, 1, 2, 3, 4, 5, 7, 9)  # of this process; the others count what all of a user's processes have
_NUMBER, _ARCHITECTURE = 0, 4
_OWN = -1  # stands for the number of the process where that is not known yet
Instruction = tuple[int, int, int, int]


def apply(report: int | None = None, names: Names | None = None) -> None:
    """Put it on this process; raises OSError where the kernel refuses, or the machine is of another kind.

    report   a descriptor to which each refused call is written: for whoever looks why honest code fails
    names    the only paths that it may name, where it is held to some
    """
    if platform.machine() not in _MACHINES:
        raise OSError(38, f"no list of system calls for {platform.machine()}")
    packed, places = _packed(names.end if names else 0, report is not None)
    if report is not None or names is not None:
        traps.take(_MACHINES[platform.machine()][0], report, names)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    for place in places:
        struct.pack_into("I", buffer, place, os.getpid())
    filter_ = struct.pack("HxxxxxxQ", len(packed) // 8, ctypes.addressof(buffer))
    prctl(22, 2, ctypes.create_string_buffer(filter_, len(filter_)))  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


def prepare(report: int | None = None, names: Names | None = None) -> None:
    """Work out once what `apply` with these will need, where processes are forked from this one that apply it."""
    if platform.machine() in _MACHINES:
        _packed(names.end if names else 0, report is not None)


@functools.cache
def _packed(end: int, reporting: bool) -> tuple[bytes, tuple[int, ...]]:
    """The program as the kernel takes it, and where in it the number of the process is to stand.

    reporting   whether each refused call is trapped
    """
    program = _program(*_MACHINES[platform.machine()], _OWN, end)
    if reporting:
        program = [_return(_TRAP) if one == _return(_REFUSE) else one for one in program]
    places = tuple(8 * index + 4 for index, one in enumerate(program) if one[3] == _OWN)
    return b"".join(struct.pack("HBBI", *one[:3], max(one[3], 0)) for one in program), places


def _program(column: int, architecture: int, pid: int, end: int = 0) -> list[Instruction]:
    """Classic BPF: each allowed call is a comparison and a return; everything else is refused.

    end   where the region of names ends, outside which no path may stand; 0 where paths are as they like

    The kernel finds out once which numbers are allowed whatever their arguments are, and runs nothing for those.
    """
    program = [_load(_ARCHITECTURE), (0x15, 1, 0, architecture), _return(_KILL_PROCESS), _load(_NUMBER)]
    program += [(0x35, 0, 1, _X32), _return(_REFUSE)]  # jump if at least: x32 calls under the same architecture
    if end:
        program += _held_to_names(column, end)
    for numbers in _ALLOWED.values():
        if numbers[column] >= 0:
            program += [(0x15, 0, 1, numbers[column]), _return(_ALLOW)]
    for numbers in _FALLS_BACK.values():
        program += [(0x15, 0, 1, numbers[column]), _return(_NOT_THERE)]
    for numbers, argument, test in _judged(pid):
        if numbers[column] >= 0:
            program += _judge(numbers[column], argument, test)
    return [*program, (0x35, 0, 1, _UNKNOWN), _return(_NOT_THERE), _return(_REFUSE)]


def _held_to_names(column: int, end: int) -> list[Instruction]:
    """Trap each path outside the region or between its slots, and refuse what could change the region.

    Nothing that a worker needs lies below its end: a change that begins there is refused, however long it is.
    """
    program = []
    for *numbers, argument in naming.CALLS.values():
        outside = [(0x35, 1, 0, naming.START), _return(_TRAP_OF_A_PATH), (0x35, 0, 1, end), _return(_TRAP_OF_A_PATH)]
        between = [(0x45, 0, 1, naming.SLOT - 1), _return(_TRAP_OF_A_PATH)]
        high = [_load_upper(argument), (0x15, 1, 0, 0), _return(_TRAP_OF_A_PATH)]
        program += _of_call(numbers[column], [*high, _load_argument(argument), *outside, *between])
    for name, (*numbers, argument) in _ON_ADDRESSES.items():
        below = [_load_argument(argument), (0x35, 1, 0, end), _return(_REFUSE)]
        if name == "mmap":  # where it is left to the kernel to find a place, there is no address
            elsewhere = [(0x15, 1, 0, 0), _return(_REFUSE), _load_argument(3), *_refused_if_any(_AT_THIS_ADDRESS)]
            below = [_load_argument(argument), (0x35, len(elsewhere), 0, end), *elsewhere]
        elif name == "moved to":  # asked for by a flag; else there is none, whatever stands there
            below = [_load_argument(3), (0x45, 0, len(below), 2), *below]
        program += _of_call(numbers[column], [_load_upper(argument), (0x15, 0, len(below), 0), *below])
    return program


def _of_call(number: int, test: list[Instruction]) -> list[Instruction]:
    """What it decides of that call; else the call goes on to what follows."""
    return [(0x15, 0, len(test) + 1, number), *test, _load(_NUMBER)] if number >= 0 else []


def _judged(pid: int) -> list[tuple[tuple[int, int], int, list[Instruction]]]:
    """Calls by number, which argument is looked at first, and what answers it; what it lets pass is allowed."""
    mapping = [*_refused_if_any(_UNCOUNTED), (0x54, 0, 0, _SHARED_ANONYMOUS), *_refused_if(_SHARED_ANONYMOUS)]
    truncating = [(0x54, 0, 0, _ACCESS | _TRUNCATE), *_refused_if(_TRUNCATE, _ACCESS | _TRUNCATE)]
    return [
        (_CLONE, 0, [*_refused_if_any(~_OF_A_THREAD & 0xFFFFFFFF), *_refused_if_none(_THREAD)]),
        (_MMAP, 3, mapping),
        (_OPEN, 1, [*_refused_if_any(_ASYNCHRONOUS), *truncating]),  # reading may truncate, where Landlock is older
        (_OPENAT, 2, [*_refused_if_any(_ASYNCHRONOUS), *truncating]),
        (_MADVISE, 2, [*_if_equal(_IN_HUGE_PAGES, [_return(_NOTHING_DONE)]), *_refused_unless(*_ADVICE)]),
        (_FUTEX, 1, _private_futex()),
        (_PRCTL, 0, _refused_unless(*_PRCTLS)),
        (_ARCH_PRCTL, 0, _refused_unless(*_ARCH_PRCTLS)),
        (_FCNTL, 1, [*_if_equal(_SET_FLAGS, [_load_argument(2), *_refused_if_any(_ASYNCHRONOUS), _return(_ALLOW)]),
                     *_refused_unless(*_FCNTLS)]),
        (_IOCTL, 1, _refused_unless(*_HARMLESS_IOCTLS)),
        (_PRLIMIT, 0, [*_refused_unless(0, pid), _load_argument(1), *_refused_unless(*_LIMITS)]),
        *[(numbers, 0, [(0x35, 0, 2, _CLOCKS_OF_ALL), *_refused_if_none(_CLOCK_OF_A_THREAD)])
          for numbers in _CLOCKS.values()],
        *[(numbers, 0, _refused_unless(pid)) for numbers in _SIGNALS.values()],
        *[(numbers, 0, _refused_unless(0, pid)) for numbers in _ON_A_PROCESS.values()],
    ]  # fmt: skip


# Instructions. A test returns what it decides, and lets the rest pass to what follows it


def _load(offset: int) -> Instruction:
    return 0x20, 0, 0, offset


def _load_argument(argument: int) -> Instruction:
    return _load(16 + 8 * argument)  # the lower half: the kernel takes no more of any that is judged here


def _load_upper(argument: int) -> Instruction:
    return _load(20 + 8 * argument)


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


def _private_futex() -> list[Instruction]:
    waiting = [*_if_equal(_WAIT, [_return(_ASK_AGAIN)]), *_if_equal(_WAIT_BITSET, [_return(_ASK_AGAIN)])]
    return [(0x45, 0, 1, _PRIVATE), _return(_ALLOW), (0x54, 0, 0, _FUTEX_COMMAND), *waiting, _return(_NOTHING_DONE)]


def _judge(number: int, argument: int, test: list[Instruction]) -> list[Instruction]:
    body = [_load_argument(argument), *test, _return(_ALLOW)]
    return _if_equal(number, body)
