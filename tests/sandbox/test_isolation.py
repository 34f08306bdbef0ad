"""The layers: seccomp by simulation, each layer in processes that put it on, and what still works inside."""

from __future__ import annotations

import json
import os
import platform
import struct
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from places import KIT
from processes import wait_for

from autograder.sandbox.interpreter import packages, readable_paths
from autograder.sandbox.isolation import layers, seccomp
from autograder.sandbox.isolation.layers import AROUND, LAYERS
from autograder.sandbox.isolation.seccomp import Instruction
from autograder.sandbox.sandbox import Isolation, Sandbox, layers_for, probe
from autograder.sandbox.workers import usage
from autograder.vocabulary.errors import SandboxError
from autograder.vocabulary.text import STRICT

ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
ALLOWED, KILLED, REFUSED, NOT_THERE = "allowed", "killed", "refused", "not there"
MEANINGS = {0x7FFF0000: ALLOWED, 0x80000000: KILLED, 0x00050001: REFUSED, 0x00050026: NOT_THERE}
PID = 4321
HOLDS = dict.fromkeys(LAYERS, "")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has layers")
has_strict = pytest.mark.skipif(any(probe()[layer] for layer in STRICT), reason=f"this machine cannot: {probe()}")
by_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


# The seccomp program, in a simulator of classic BPF (linux/bpf_common.h has the codes)


def simulate(program: list[Instruction], number: int, arguments: tuple[int, ...], architecture: int) -> str:
    """What the kernel would do with one system call."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, *(arguments + (0,) * 6)[:6])
    at, accumulator = 0, 0
    while True:
        code, if_true, if_false, constant = program[at]
        at += 1
        match code:
            case 0x20:  # load
                accumulator = struct.unpack_from("=I", data, constant)[0]
            case 0x54:  # and
                accumulator &= constant
            case 0x15:  # jump if equal
                at += if_true if accumulator == constant else if_false
            case 0x35:  # jump if at least
                at += if_true if accumulator >= constant else if_false
            case 0x45:  # jump if any bit is set
                at += if_true if accumulator & constant else if_false
            case 0x06:
                return MEANINGS[constant]
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def judge(architecture: str, number: int, *arguments: int) -> str:
    column, value = ARCHITECTURES[architecture]
    return simulate(seccomp.filter_program(column, value, PID), number, arguments, value)


THREAD = 0x3D0F00  # what the C library passes for a new thread
READ_ONLY, WRITE_ONLY, READ_WRITE, TRUNCATE, CREATE = 0, 1, 2, 0x200, 0x40
OURS, SHARED, VALIDATED = 0x22, 0x21, 0x23  # memory of its own, and with others
BY_ARGUMENT: dict[str, tuple[tuple[int, int], list[tuple[int, ...]], list[tuple[int, ...]]]] = {
    # numbers; what is allowed: as in the C library, musl; what is refused: a process, as vfork and posix_spawn make
    # one, a sibling of this process, namespaces
    "clone": (
        (56, 220),
        [(THREAD,), (THREAD | 0x400000,)],
        [(17,), (0,), (0x4111,), (0x10000000 | 17,), (THREAD | 0x8000,), (THREAD | 0x20000000,)],
    ),
    # memory of its own, a thread's stack, a library's file; memory that is shared, grows down, huge or locked pages
    "mmap": (
        (9, 222),
        [(0, 4096, 3, flags) for flags in (OURS, OURS | 0x20000, 1)],
        [
            (0, 4096, 3, flags)
            for flags in (SHARED, VALIDATED, OURS | 0x100, SHARED | 2**40, OURS | 0x40000, OURS | 0x2000)
        ],
    ),
    "madvise": (  # NumPy asks for huge pages
        (28, 233),
        [(0, 4096, advice) for advice in (4, 14)],
        [(0, 4096, advice) for advice in (3, 9, 12, 20, 21, 22, 25, 100, 101)],
    ),
    "prctl": (  # a thread's name; the slack of timers, and all that loosens a layer
        (157, 167),
        [(15,)],
        [(1,), (4, 1), (29, 10**9), *((option,) for option in (8, 22, 24, 36, 38, 41, 47, 53, 62, 0x59616D61))],
    ),
    "fcntl": (
        (72, 25),
        [(3, 0, 7), (3, 1, 0), (3, 4, 0x800), (3, 1030)],
        [(3, 4, 0x2000), (3, 8, 1), (3, 10, 9), (3, 15)]
        + [(3, command) for command in (5, 6, 7, 36, 37, 38, *range(1024, 1027), 1031, 1032, 1033, 1036)]
        + [(3, command) for command in (11, 16, 1035, 1037, 1038)],
    ),
    # TIOCSTI types into the terminal; FIOSETOWN
    "ioctl": ((16, 29), [(1, 0x5401), (1, 0x5413), (1, 0x5451)], [(1, 0x5412), (1, 0x8901)]),
    "openat": (  # whether a file may be written, Landlock judges; one that is read must not be cut
        (257, 56),
        [(3, 0, flags) for flags in (READ_ONLY, WRITE_ONLY | CREATE | TRUNCATE, READ_WRITE | TRUNCATE)],
        [(3, 0, flags) for flags in (TRUNCATE, 3 | TRUNCATE, TRUNCATE | 0x80000, READ_ONLY | 0x2000)],
    ),
    "kill": ((62, 129), [(PID, 9)], [(PID + 1, 9), (0, 9), (2**32 - 1, 9), (2**32 - PID, 9)]),
    "tgkill": ((234, 131), [(PID, PID + 1, 6)], [(1, 1, 9)]),
    "tkill": ((200, 130), [], [(PID, 9)]),
    "prlimit64": ((302, 261), [(0, 7), (PID, 7)], [(1, 7)]),
    "sched_setaffinity": ((203, 122), [(0,), (PID,)], [(1,)]),
}


@by_architecture
@pytest.mark.parametrize("name", BY_ARGUMENT)
def test_calls_that_an_argument_decides(name: str, architecture: str) -> None:
    numbers, allowed, refused = BY_ARGUMENT[name]
    number = numbers[ARCHITECTURES[architecture][0]]
    assert [judge(architecture, number, *arguments) for arguments in allowed] == [ALLOWED] * len(allowed)
    assert [judge(architecture, number, *arguments) for arguments in refused] == [REFUSED] * len(refused)


ANY = (0, 1, PID, 2**64 - 1)


def numbers_of(table: Mapping[str, tuple[int, int]], architecture: str) -> list[int]:
    column = ARCHITECTURES[architecture][0]
    return [numbers[column] for numbers in table.values() if numbers[column] >= 0]


@by_architecture
def test_system_call_is_judged_by_its_list_whatever_its_arguments(architecture: str) -> None:
    """The kernel then never runs the program for one that is allowed; what no list names is refused."""
    program = seccomp.filter_program(*ARCHITECTURES[architecture], PID)
    expected = dict.fromkeys(range(500), REFUSED) | dict.fromkeys(range(500, 1000), NOT_THERE)
    expected |= dict.fromkeys(numbers_of(seccomp.ALLOWED, architecture), ALLOWED)
    expected |= dict.fromkeys(numbers_of(seccomp.FALLS_BACK, architecture), NOT_THERE)
    judged = numbers_of(seccomp.JUDGED | seccomp.SIGNALS | seccomp.ON_A_PROCESS, architecture)
    assert {435, 437} <= {*numbers_of(seccomp.FALLS_BACK, architecture)}  # clone3, openat2
    for number in expected.keys() - {*judged}:
        for argument in ANY:
            verdict = simulate(program, number, (argument,) * 6, ARCHITECTURES[architecture][1])
            assert verdict == expected[number], number
    tables = (seccomp.ALLOWED, seccomp.FALLS_BACK, seccomp.JUDGED, seccomp.SIGNALS, seccomp.ON_A_PROCESS)
    listed = [number for table in tables for number in numbers_of(table, architecture)]
    assert len(set(listed)) == len(listed)


NOT_NEEDED = """
fadvise64 readahead cachestat mincore flock sync syncfs fsync fdatasync msync sysinfo statfs fstatfs getpriority fork
inotify_init1 memfd_create shmget semget msgget mq_open keyctl add_key io_uring_setup userfaultfd perf_event_open vfork
bpf name_to_handle_at utimensat sethostname setdomainname pipe2 eventfd2 timer_create timerfd_create signalfd4 mlock2
epoll_create1 splice tee vmsplice mlock mlockall set_tid_address getpgid getsid get_robust_list chroot tkill mq_unlink
sched_setattr sched_getattr process_vm_readv landlock_create_ruleset remap_file_pages rt_sigqueueinfo socket ioprio_set
socketpair sendmsg recvmsg ptrace pidfd_open wait4 execve unshare request_key open_by_handle_at fanotify_init mount
setns pidfd_getfd kcmp personality process_madvise fsopen open_tree seccomp msgctl semctl
"""


def test_what_no_homework_needs_is_not_listed() -> None:
    listed = seccomp.ALLOWED | seccomp.JUDGED | seccomp.SIGNALS | seccomp.ON_A_PROCESS | seccomp.FALLS_BACK
    assert set(NOT_NEEDED.split()).isdisjoint(listed)


@by_architecture
def test_foreign_architecture_is_killed_and_x32_refused(architecture: str) -> None:
    column, value = ARCHITECTURES[architecture]
    program = seccomp.filter_program(column, value, PID)
    for other in (0x40000003, 0x40000028, 0, *({0xC000003E, 0xC00000B7} - {value})):  # i386, arm, …
        assert simulate(program, 0, (), other) == KILLED
    assert {judge(architecture, 0x40000000 + number) for number in range(600)} == {REFUSED}


@by_architecture
def test_every_jump_lands_inside_the_program_and_every_path_ends(architecture: str) -> None:
    program = seccomp.filter_program(*ARCHITECTURES[architecture], PID)
    assert len(program) <= 4096
    for at, (code, if_true, if_false, _) in enumerate(program):
        if code & 0x07 == 0x05:
            assert at + 1 + max(if_true, if_false) < len(program)
            assert max(if_true, if_false) < 256
    assert program[-1] == (0x06, 0, 0, 0x00050001)


@linux
def test_unknown_processor_has_no_seccomp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(OSError, match="no list of system calls for riscv64"):
        seccomp.apply()


# What this machine has


@pytest.mark.parametrize("layer", STRICT)
def test_strict_without_one_of_its_layers_says_which_and_why(layer: str) -> None:
    missing = {**HOLDS, layer: "the kernel is too old"}
    with pytest.raises(SandboxError, match=rf"lacks {layer} \(the kernel is too old\)\. Grade on one that has it"):
        layers_for("strict", missing)
    assert layers_for("best", missing) == tuple(one for one in LAYERS if one != layer)


@pytest.mark.parametrize(
    ("isolation", "holds", "layers"),
    [
        ("none", (*LAYERS, *AROUND), ()),
        ("best", LAYERS, LAYERS),
        ("best", ("landlock", "seccomp"), ("landlock", "seccomp")),
        ("strict", ("landlock", "seccomp"), ("landlock", "seccomp")),
        ("best", (), ()),  # a layer that was not tried does not count
        ("best", (*LAYERS, *AROUND), (*LAYERS, *AROUND)),
        ("strict", (*LAYERS, *AROUND), (*LAYERS, *AROUND)),
        ("strict", LAYERS, LAYERS),  # what is round the server is never asked for
    ],
)
def test_layers_are_those_that_were_tried_and_held(
    isolation: Isolation, holds: tuple[str, ...], layers: tuple[str, ...]
) -> None:
    assert layers_for(isolation, dict.fromkeys(holds, "")) == layers


def test_strict_without_fork_is_refused() -> None:
    with pytest.raises(SandboxError, match="workers are not forked"):
        Sandbox(isolation="strict", fork=False)
    assert Sandbox(isolation="best", fork=False).layers == ("process",)


@linux
def test_readable_paths_hold_no_home() -> None:
    paths = [Path(path) for path in readable_paths(packages())]
    for outside in (Path("/"), Path("/etc"), Path("/home"), Path.home(), Path("/proc"), Path("/tmp"), KIT):
        assert not [path for path in paths if outside.is_relative_to(path)], outside
    assert Path("/dev/zero") not in paths


# Layers that are put on, in processes of their own


def in_a_process(code: str, put_on: tuple[str, ...] = (), *, megabytes: int = 512, before: str = "") -> str:
    """What the code prints, with these layers on; the last line of its traceback where it fails."""
    begin = f"""
        import ctypes, mmap, os, resource, signal, socket, subprocess, sys, threading, time
        from autograder.sandbox.isolation import layers, seccomp
        from autograder.sandbox.interpreter import packages, readable_paths
        {before}
        layers.apply({put_on!r}, {megabytes}, readable_paths(packages()))
    """
    source = textwrap.dedent(begin) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=KIT)
    return done.stdout.strip() if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]


def every_layer() -> tuple[str, ...]:
    """Those that a process puts on itself."""
    return tuple(layer for layer in layers_for("best", probe()) if layer in LAYERS)


HONEST = [
    "os.kill(os.getpid(), 0)",
    "threading.Thread(target=print, args=('in a thread',)).start()",
    "os.sched_setaffinity(0, os.sched_getaffinity(0))",
    "assert len(bytearray(2**26))",
    "print('printed', file=open(os.dup(1), 'w'))",
    "open(os.devnull, 'w').write('x')",
    "assert len(os.urandom(8)) == 8 and not sys.stdout.isatty()",
    "a = os.dup(1); os.set_inheritable(a, True); os.write(a, b'done')",
    "done = threading.Event(); done.wait(0.01); threading.Timer(0, done.set).start(); done.wait()",
    "time.sleep(0.01); signal.setitimer(signal.ITIMER_REAL, 0)",
    "import sqlite3, xml.etree.ElementTree, decimal, ctypes.util, multiprocessing",
    "resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))",
]


@has_strict
def test_what_honest_code_may_want_works_under_every_layer() -> None:
    code = "\n".join([*HONEST, "print('all of it')"])
    assert in_a_process(code, every_layer()).endswith("all of it")


WAYS_ROUND = {  # to what a folder holds, or a file in it
    "read": "open(folder + name, 'rb').read(1)",
    "mapped": "mmap.mmap(os.open(folder + name, os.O_RDONLY), 1, prot=1)",
    "listed": "os.listdir(folder)",
    "listed from inside": "os.chdir(folder), os.listdir('.')",
    "read from inside": "os.chdir(folder), open(name.lstrip('/'), 'rb')",
    "by a folder's handle": "os.open(name.lstrip('/'), os.O_RDONLY, dir_fd=os.open(folder, os.O_PATH))",
    "opened anew by a handle": "open(f'/proc/self/fd/{os.open(folder + name, os.O_PATH)}', 'rb')",
}


@has_strict
@pytest.mark.parametrize("path", ["/etc/passwd", str(KIT / "README.md")])
def test_no_way_leads_round_landlock(path: str) -> None:
    """Whether a path is there it does not hide; what lies behind it, whichever call asks, it does."""
    code = f"""
        folder, name = {os.path.split(path)!r}
        name = "/" + name
        for way, line in {WAYS_ROUND!r}.items():
            os.stat(folder + name)
            try:
                exec(line)
                print(way)
            except PermissionError:
                pass
    """
    layers = tuple(layer for layer in every_layer() if layer != "rlimits")
    assert in_a_process(code, layers) == ""
    assert in_a_process(code).splitlines() == list(WAYS_ROUND)


@linux
def test_open_files_and_memory_have_limits() -> None:
    assert in_a_process("[os.pipe() for _ in range(100)]", ("rlimits",)).endswith("Too many open files")
    assert in_a_process("bytearray(300 * 2**20)", ("rlimits",), megabytes=200) == "MemoryError"


@linux
def test_identity_leaves_no_capability() -> None:
    line = "print([line for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapPrm', 'CapBnd'))])"
    if probe()["identity"]:
        pytest.skip(probe()["identity"])
    shown = in_a_process(line, ("identity",))
    assert shown.count("0000000000000000") >= 2
    assert in_a_process("os.setuid(0); os.setuid(1)", ("identity",)).startswith("PermissionError")


# The canary


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_text("canary")
    return str(path)


def canary_says(put_on: tuple[str, ...], secret: str, but: str = "") -> dict[str, str]:
    """What the canary finds in a process where `but` has been done first."""
    arguments = f"{put_on!r}, {layers.CANARY_MEGABYTES}, readable_paths([]), {secret!r}"
    code = f"import json\n{but}\nprint(json.dumps(layers.canary({arguments})))"
    return dict(json.loads(in_a_process(code)))


@has_strict
def test_canary_finds_that_layers_hold(secret: str) -> None:
    assert canary_says(LAYERS, secret) == {**HOLDS, **{k: v for k, v in probe().items() if v and k in LAYERS}}


@linux
def test_canary_sees_that_layers_were_not_put_on(secret: str) -> None:
    tried = [layer for layer in LAYERS if layer != "identity" or os.geteuid() == 0]  # a user has no capability to lose
    left_out = "layers.limit = layers.restrict = layers.give_up_root = seccomp.apply = lambda *given: None"
    assert canary_says(tuple(tried), secret, left_out) == dict.fromkeys(tried, "it is there, but does not hold")


# Processes from outside


@linux
def test_process_without_first_thread_is_counted() -> None:
    code = """
        import ctypes, mmap, platform, threading
        def work():
            held = bytearray(2**27)
            mapped = mmap.mmap(-1, 2**35, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
            for place in range(0, 2**35, 2**21): mapped[place]
            print("done", flush=True)
            while True: pass
        threading.Thread(target=work).start()
        ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"done\n"
            used = usage(process.pid)
            wait_for(lambda: usage(process.pid).seconds > used.seconds)
        finally:
            process.kill()
    own = usage(os.getpid())
    assert used.resident > 2**27 + 2**35 // 512
    assert (own.threads >= 1, 0 < own.seconds <= time.process_time() + 0.02) == (True, True)
