"""seccomp: an allowlist of system calls, and for those that can do more than one thing, of their arguments.

A worker needs few: its own memory and threads, reading files, its pipes, the clock. Whatever is not listed is refused,
for a denylist loses to every kernel that learns something new. What is left out reaches another process or starts one,
changes a file or the system, or uses memory that no limit counts. A refusal is EPERM, or ENOSYS where a library then
takes an older call that can be judged.

Which calls are used was learnt from the sample classes of all assignments under strace, and from the sources of glibc,
libgomp and CPython. Sources: seccomp(2), signal(7); linux/seccomp.h, linux/bpf_common.h and the tables of system calls
for the numbers.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

from autograder.sandbox.isolation.kernel import PR_SET_SECCOMP, prctl

# Name → number on x86-64 and on 64-bit ARM; -1 where there is none.
ALLOWED = {
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
JUDGED = {
    "clone": (56, 220), "mmap": (9, 222), "open": (2, -1), "openat": (257, 56), "madvise": (28, 233),
    "prctl": (157, 167), "arch_prctl": (158, -1), "fcntl": (72, 25), "ioctl": (16, 29),
}  # fmt: skip
ON_A_PROCESS = {  # the process is the first argument, 0 being this one
    "prlimit64": (302, 261), "sched_setaffinity": (203, 122), "sched_getaffinity": (204, 123),
    "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
}  # fmt: skip
SIGNALS = {"kill": (62, 129), "tgkill": (234, 131)}  # to itself only: 0 is a group
FALLS_BACK = {  # the caller then takes one that can be judged, or does without
    "clone3": (435, 435), "openat2": (437, 437), "close_range": (436, 436), "preadv2": (327, 286),
    "pwritev2": (328, 287), "membarrier": (324, 283), "copy_file_range": (326, 285), "get_mempolicy": (239, 236),
    "set_mempolicy": (238, 237), "mbind": (237, 235), "futex_waitv": (449, 449), "futex_wake": (454, 454),
    "futex_wait": (455, 455), "futex_requeue": (456, 456), "pkey_alloc": (330, 289), "mseal": (462, 462),
}  # fmt: skip
UNKNOWN = 500  # a number from here on is newer than all libraries of today
X32 = 0x40000000  # bit of x86-64's calls with 32-bit pointers, which come under the same architecture
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # → column above, AUDIT_ARCH_*
SECCOMP_MODE_FILTER = 2
# What becomes of a call: SECCOMP_RET_*, with EPERM or ENOSYS in the lower half
ALLOW, KILL_PROCESS, REFUSE, NOT_THERE = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026

CLONE_THREAD = 0x00010000
CLONE_FLAGS_OF_A_THREAD = 0x007D0F00  # what C libraries ask for: nothing of a process, a parent or a namespace
MAP_SHARED_ANONYMOUS = 0x21
MAP_UNCOUNTED = 0x00042100  # GROWSDOWN counts as no data; LOCKED and HUGETLB are counted for all
ADVICE_ON_OWN_MEMORY = (0, 1, 2, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19, 102, 103)  # MADV_*
O_ACCESS, O_TRUNCATE, O_ASYNC = 0x3, 0x200, 0x2000  # O_ASYNC makes a pipe send signals
PRCTLS = (3, 15, 16, 21, 23, 39, 0x53564D41)  # is it dumpable, a thread's name, seccomp?, capabilities?, a map's name
ARCH_PRCTLS = (0x1021, 0x1022, 0x1023)  # leave to use a processor's large registers, which oneDNN asks for
FCNTLS = (0, 1, 2, 3, 1030)  # another number for a descriptor, its flags
F_SETFL = 4
IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide; FIO*
Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, constant: struct sock_filter


def apply() -> None:
    """Put it on this process; raise OSError where the kernel refuses, or the machine is of another kind."""
    if platform.machine() not in MACHINES:
        raise OSError(38, f"no list of system calls for {platform.machine()}")
    program = filter_program(*MACHINES[platform.machine()], os.getpid())
    packed = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(packed, len(packed))
    given = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer))  # struct sock_fprog
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(given, len(given)))


def filter_program(column: int, architecture: int, pid: int) -> list[Instruction]:
    """Return the filter as classic BPF: each allowed call is a comparison and a return; everything else is refused."""
    # The kernel finds out once which numbers are allowed whatever their arguments are, and runs nothing for those
    program = [_load(ARCHITECTURE), (EQUAL, 1, 0, architecture), _return(KILL_PROCESS), _load(NUMBER)]
    program += [(AT_LEAST, 0, 1, X32), _return(REFUSE)]
    for numbers in ALLOWED.values():
        if numbers[column] >= 0:
            program += [(EQUAL, 0, 1, numbers[column]), _return(ALLOW)]
    for numbers in FALLS_BACK.values():
        program += [(EQUAL, 0, 1, numbers[column]), _return(NOT_THERE)]
    mapping = [*_refuse_if_any(MAP_UNCOUNTED), (AND, 0, 0, MAP_SHARED_ANONYMOUS), *_refuse_if(MAP_SHARED_ANONYMOUS)]
    # Reading may truncate, where Landlock is older than that right
    truncating = [(AND, 0, 0, O_ACCESS | O_TRUNCATE), *_refuse_if(O_TRUNCATE, O_ACCESS | O_TRUNCATE)]
    opening = [*_refuse_if_any(O_ASYNC), *truncating]
    setting_flags = [_load_argument(2), *_refuse_if_any(O_ASYNC), _return(ALLOW)]
    judged: dict[str, tuple[int, list[Instruction]]] = {  # which argument is looked at first, and how
        "clone": (
            0,
            [*_refuse_if_any(~CLONE_FLAGS_OF_A_THREAD & 0xFFFFFFFF), (ANY_BIT, 1, 0, CLONE_THREAD), _return(REFUSE)],
        ),
        "mmap": (3, mapping),
        "open": (1, opening),
        "openat": (2, opening),
        "madvise": (2, _refuse_unless(*ADVICE_ON_OWN_MEMORY)),
        "prctl": (0, _refuse_unless(*PRCTLS)),
        "arch_prctl": (0, _refuse_unless(*ARCH_PRCTLS)),
        "fcntl": (1, [(EQUAL, 0, len(setting_flags), F_SETFL), *setting_flags, *_refuse_unless(*FCNTLS)]),
        "ioctl": (1, _refuse_unless(*IOCTLS)),
    }
    for name, (argument, test) in judged.items():
        program += _judge(JUDGED[name][column], argument, test)
    for numbers in SIGNALS.values():
        program += _judge(numbers[column], 0, _refuse_unless(pid))
    for numbers in ON_A_PROCESS.values():
        program += _judge(numbers[column], 0, _refuse_unless(0, pid))
    return [*program, (AT_LEAST, 0, 1, UNKNOWN), _return(NOT_THERE), _return(REFUSE)]


# Instructions of classic BPF. A test returns what it decides, and lets the rest pass to what follows it

LOAD, AND, RETURN = 0x20, 0x54, 0x06  # BPF_LD|W|ABS, BPF_ALU|AND|K, BPF_RET|K
EQUAL, AT_LEAST, ANY_BIT = 0x15, 0x35, 0x45  # BPF_JMP|JEQ|K, JGE, JSET
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


def _load(offset: int) -> Instruction:
    return LOAD, 0, 0, offset


def _load_argument(argument: int) -> Instruction:
    return _load(FIRST_ARGUMENT + 8 * argument)  # the lower half: the kernel takes no more of any that is judged here


def _return(value: int) -> Instruction:
    return RETURN, 0, 0, value


def _judge(number: int, argument: int, test: list[Instruction]) -> list[Instruction]:
    """Allow this call if the test on an argument lets it pass; nothing where the machine has no such call."""
    body = [_load_argument(argument), *test, _return(ALLOW)]
    return [(EQUAL, 0, len(body), number), *body] if number >= 0 else []


def _refuse_if(*values: int) -> list[Instruction]:
    last = len(values) - 1
    return [*((EQUAL, last - k, int(k == last), value) for k, value in enumerate(values)), _return(REFUSE)]


def _refuse_unless(*values: int) -> list[Instruction]:
    return [*((EQUAL, len(values) - k, 0, value) for k, value in enumerate(values)), _return(REFUSE)]


def _refuse_if_any(bits: int) -> list[Instruction]:
    return [(ANY_BIT, 0, 1, bits), _return(REFUSE)]
