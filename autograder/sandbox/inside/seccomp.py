"""seccomp: no new processes or programs, no sockets, no tracing, no shared memory, no namespaces; nothing that reaches
another process or changes a file that it may only read.

Only the standard library and ctypes: this runs inside the worker. Sources: seccomp(2), the kernel's UAPI headers, from
which the numbers are.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

from autograder.sandbox.inside.processes import prctl

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


def apply() -> None:
    """Put it on this process; raises OSError where the kernel refuses, or the machine is of another kind."""
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
