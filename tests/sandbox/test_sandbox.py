from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from places import KIT
from processes import PATIENCE, children, is_running, soon

from autograder.sandbox import sandbox as sandbox_module
from autograder.sandbox.calls import OUT_OF_TIME, Outcome, Program, Request, without_places
from autograder.sandbox.interpreter import KIT_ROOT, SAME_KERNELS, packages
from autograder.sandbox.sandbox import Sandbox, probe
from autograder.sandbox.worker import frames
from autograder.vocabulary.errors import SandboxError

Server = Callable[[], int]
BESIDE = {  # what runs beside student code
    "autograder",
    "autograder.sandbox",
    *(
        f"autograder.sandbox.{path.parent.name}.{path.stem}".removesuffix(".__init__")
        for folder in ("worker", "isolation")
        for path in (KIT / "autograder" / "sandbox" / folder).glob("*.py")
    ),
}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked, and counted through /proc")

PROBES = """
def call(student, inputs, params):
    return {"y": getattr(student, params["call"])(**inputs)}, {}

def fact(student, inputs, params):
    return {}, {"fact": getattr(student, params["call"])()}
"""
# What the submissions below start with: `pid` is honest, the rest serves the dishonest.
PREAMBLE = """
import fcntl, os, signal, stat, struct, sys, threading, time

def pid():
    return os.getpid()

def inherited():
    found = {}
    for fd in range(3, 256):
        try:
            found[fd] = stat.filemode(os.fstat(fd).st_mode)[0]
        except OSError:
            pass
    return found

def write_everywhere(data):
    for fd in inherited():
        try:
            os.write(fd, data)
        except OSError:
            pass

"""


@pytest.fixture(scope="module")
def strangers() -> set[int]:
    """Our child processes that are not the shared warm server."""
    return children(os.getpid())


@pytest.fixture(scope="module")
def warm_server(strangers: set[int]) -> Server:
    """Tell the process id of the shared warm server."""

    def find() -> int:
        (pid,) = {child for child in children(os.getpid()) - strangers if is_running(child)}  # orphans may be ours
        return pid

    return find


@pytest.fixture(scope="module")
def sandbox(warm_server: Server) -> Iterator[Sandbox]:
    """A sandbox without the layers that would keep a worker from misbehaving: what is left must hold alone."""
    with Sandbox(isolation="none") as shared:
        yield shared


@contextlib.contextmanager
def beside(strangers: set[int], own: Sandbox) -> Iterator[Sandbox]:
    """A sandbox whose server is not the shared one."""
    before = children(os.getpid())
    with own:
        run(own, "", fact("pid"))
        strangers |= children(os.getpid()) - before
        yield own


@pytest.fixture(scope="module")
def limited(strangers: set[int]) -> Iterator[Sandbox]:
    """A sandbox with every layer that this machine has."""
    with beside(strangers, Sandbox()) as own:
        yield own


@pytest.fixture(scope="module")
def alone(strangers: set[int]) -> Iterator[Sandbox]:
    """A sandbox with namespaces and no other layer: what they hold, they hold alone."""
    if probe()["namespaces"]:
        pytest.skip(f"this machine cannot: {probe()['namespaces']}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("autograder.sandbox.sandbox.probe", lambda: {"namespaces": ""})
        own = Sandbox()
        assert own.layers == ("process", "namespaces")
    with beside(strangers, own):
        yield own


@pytest.fixture
def fresh() -> Iterator[Sandbox]:
    """A sandbox as where fork is missing: each worker is a fresh interpreter."""
    with Sandbox(fork=False) as own:
        yield own


@pytest.fixture(params=["sandbox", *(pytest.param(name, marks=pytest.mark.long) for name in ("alone", "fresh"))])
def anywhere(request: pytest.FixtureRequest) -> Sandbox:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def program(source: str, *, torch: bool = False) -> Program:
    """A submission; without torch its server starts in a tenth of the time."""
    return Program("submission", PREAMBLE + textwrap.dedent(source), {"given": "WORD = 'given'\n"}, PROBES, torch=torch)


def call(name: str, item: str = "", *, probe: str = "call", timeout: float = 10.0, inputs: bytes = b"") -> Request:
    inputs = inputs or safetensors.numpy.save({})
    return Request(item or name, name, probe, {"call": name}, inputs, timeout)


def fact(name: str, item: str = "", *, timeout: float = 10.0) -> Request:
    return call(name, item, probe="fact", timeout=timeout)


def run(sandbox: Sandbox, source: str, *requests: Request, **settings: float) -> list[Outcome]:
    return sandbox.run(program(source), requests, **{"load_timeout": 10.0, **settings})


def fact_of(outcome: Outcome) -> Any:
    assert outcome.observation is not None, outcome
    return outcome.observation.facts["fact"]


def answer(sandbox: Sandbox, source: str, name: str = "answer") -> Any:
    """What the function of that name says in this submission."""
    return fact_of(run(sandbox, source, fact(name))[0])


def values_of(outcome: Outcome) -> Any:
    assert outcome.observation is not None, outcome
    array = outcome.observation.returned["y"].array
    assert array is not None
    return array.tolist()


def statuses(outcomes: list[Outcome]) -> list[str]:
    return [outcome.status for outcome in outcomes]


def descriptors(pid: int | str = "self") -> int:
    """How many a process has open; 0 of another's for an ordinary user, from whom the server hides its own."""
    if pid != "self" and os.geteuid() != 0:
        return 0
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


# Ordinary answers


def test_values_come_back_bit_for_bit(sandbox: Sandbox) -> None:
    x = np.random.default_rng(0).standard_normal((300, 400))  # larger than a pipe holds
    (outcome,) = run(sandbox, "def same(x):\n    return x\n", call("same", inputs=safetensors.numpy.save({"x": x})))
    assert _bytes_of(outcome) == {"y": x.tobytes()}


def test_fat_answers_are_kept_up_to_a_budget(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "KEPT", (2**20, 2**16))
    source = "import numpy\ndef fat(): return numpy.zeros(3000)\ndef thin(): return numpy.ones(2)\n"
    outcomes = run(sandbox, source, *(call("fat", item=f"item-{k}") for k in range(5)), call("thin"))
    assert statuses(outcomes) == ["observed"] * 2 + ["crashed"] * 3 + ["observed"]
    assert "together larger" in outcomes[2].detail
    assert values_of(outcomes[-1]) == [1, 1]


@pytest.mark.long
def test_compiler_is_imported_by_whoever_names_none_of_its_words() -> None:
    source = "from torch import func, tensor\ndef slope(): return func.grad(lambda x: x * x)(tensor(3.0))\n"
    with Sandbox() as own:  # in whose server no other submission has had it imported
        (outcome,) = own.run(program(source, torch=True), [call("slope")], load_timeout=20.0)
    assert values_of(outcome) == 6


def test_closed_sandbox_leaves_no_worker(warm_server: Server) -> None:
    with Sandbox(isolation="none") as own:
        before = children(os.getpid())
        own.start(torch=False)
        (server,) = children(os.getpid()) - before
        pids = [fact_of(run(own, "", fact("pid"))[0]) for _ in range(2)]
        assert len(children(server)) <= 1
    assert not [pid for pid in pids if is_running(pid)]


# Given modules, which the server runs once


def run_given(sandbox: Sandbox, given: dict[str, str], source: str) -> Any:
    """What `answer` says in a submission that has these modules."""
    return fact_of(sandbox.run(replace(program(source), given=given), [fact("answer")], load_timeout=10.0)[0])


THERE = "def answer():\n    return [name for name in ('first', 'second') if name in sys.modules]\n"


def test_given_modules_are_new_for_each_submission_and_change_with_the_assignment(sandbox: Sandbox) -> None:
    given = {"first": "import os\nRAN_IN = os.getpid()\n", "second": "import first\nSEEN = []\n"}
    source = """
        import first, second
        def answer():
            second.SEEN.append(1)
            return [first.RAN_IN == os.getpid(), second.first is first, len(second.SEEN)]
    """
    assert [run_given(sandbox, given, source) for _ in range(2)] == [[False, True, 1]] * 2
    assert run_given(sandbox, {"second": ""}, THERE) == ["second"]
    assert run_given(sandbox, {}, THERE) == []


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"given": {"first": "", "second": "1 / 0"}}, "be loaded: ZeroDivisionError: division by zero"),
        ({"given": {"first": "", "second": "raise SystemExit"}}, "be loaded: SystemExit"),
        ({"given": {"first": "", "second": "import absent_package"}}, "be loaded: ModuleNotFoundError: No module"),
        ({"probes": "raise KeyError('a probe')"}, "be loaded: KeyError: 'a probe'"),
        ({"probes": "import os; os._exit(3)"}, "server stopped: exited with status 3"),
        ({"probes": "def other(): pass"}, "be loaded: AttributeError: module 'probes' has no attribute 'fact'"),
    ],
)
def test_course_code_that_fails_is_the_graders_fault(sandbox: Sandbox, fault: dict[str, Any], reason: str) -> None:
    with pytest.raises(SandboxError, match=reason):
        sandbox.run(replace(program("while True: pass"), **fault), [fact("answer")], load_timeout=10.0)
    assert run_given(sandbox, {}, THERE) == []


# What a worker can see


def test_no_module_of_the_grader_can_be_imported(sandbox: Sandbox) -> None:
    source = """
        import importlib
        def attempts():
            found = [name for name in sys.modules if name.partition(".")[0] == "autograder"]
            for name in ("autograder.grading.compare", "autograder.sandbox.sandbox", "oracle", "mistakes"):
                try: found.append(importlib.import_module(name).__name__)
                except ImportError: pass
            return found
    """
    found = set(answer(sandbox, source, "attempts"))
    assert {"autograder.sandbox.worker.frames", "autograder.sandbox.worker.worker"} <= found
    assert found <= BESIDE


def test_graders_environment_arguments_input_and_folder_stay_outside(sandbox: Sandbox) -> None:
    source = "def surroundings(): return [sorted(os.environ), sys.argv, sys.stdin.read(), os.getcwd(), sys.path]\n"
    environment, arguments, stdin, folder, paths = answer(sandbox, source, "surroundings")
    assert "PYTEST_CURRENT_TEST" in os.environ
    assert "PYTEST_CURRENT_TEST" not in environment
    chosen = ("PATH", "HOME", "LC_", "OMP_", "PYTHONHASHSEED", "TORCH", "MPL", "GLIBC_", *SAME_KERNELS)
    assert not [name for name in environment if not name.startswith(chosen)]
    assert (arguments, stdin, folder) == ([""], "", "/")
    assert not [path for path in paths if Path(path) in (KIT, *KIT.parents)]
    assert not [path for path in paths if Path(path).is_relative_to(KIT) and "site-packages" not in path]


def test_worker_holds_its_two_pipes_and_no_other_descriptor(sandbox: Sandbox) -> None:
    assert answer(sandbox, "def answer(): return list(inherited().values())\n") == ["p", "p"]


# Faults, each charged to its item


def test_hang_costs_its_own_item(sandbox: Sandbox) -> None:
    source = "def hang():\n    while True: pass\n"
    requests = [fact("pid", "a"), fact("pid", "b"), call("hang", "b", timeout=0.4), fact("pid", "b"), fact("pid", "c")]
    outcomes = run(sandbox, source, *requests, call("absent", "d"))
    assert statuses(outcomes) == ["observed", "observed", "timed_out", "not_run", "observed", "missing"]
    assert fact_of(outcomes[0]) == fact_of(outcomes[1]) != fact_of(outcomes[4])
    assert outcomes[2].detail == "no answer in 0.4 s"
    assert 0.4 <= outcomes[2].seconds < PATIENCE
    assert outcomes[3].detail == "an earlier case of this item hung, crashed or ran out of memory"
    assert not is_running(fact_of(outcomes[0]))


@pytest.mark.parametrize(
    ("ending", "detail"),
    [
        ("os._exit(0)", "exited with status 0"),
        ("os._exit(7)", "exited with status 7"),
        ("os.abort()", "killed by signal 6 (SIGABRT)"),
        ("import ctypes; ctypes.string_at(0)", "killed by signal 11 (SIGSEGV)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by signal 9 (SIGKILL)"),
        ("os.killpg(0, signal.SIGTERM)", "killed by signal 15 (SIGTERM)"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 1)", "killed by signal 35"),
        ("threading.Thread(target=os._exit, args=(3,)).start(); time.sleep(60)", "exited with status 3"),
        ("import resource; resource.setrlimit(resource.RLIMIT_CPU, (0, 0))\n    while 1: pass", "killed by signal 9"),
    ],
)
def test_ended_worker_costs_its_own_item(anywhere: Sandbox, ending: str, detail: str) -> None:
    requests = [fact("pid", "a"), call("end", "b"), call("end", "b"), fact("pid", "c")]
    outcomes = run(anywhere, f"def end():\n    {ending}\n", *requests)
    assert statuses(outcomes) == ["observed", "crashed", "not_run", "observed"]
    assert outcomes[1].detail.startswith(detail)
    assert fact_of(outcomes[0]) != fact_of(outcomes[3])


@pytest.mark.parametrize(
    "noise",
    [
        "print('x' * 5_000_000)",
        "print('x' * 5_000_000, file=sys.stderr)",
        "for _ in range(80): os.write(1, b'x' * 65536)",
        "sys.stdout.close()",
        "os.close(1); os.close(2)",
        "sys.stdout = sys.stderr = None",
        "threading.Thread(target=sys.exit).start()",
        "threading.Thread(target=time.sleep, args=(60,)).start()",
        "import atexit; atexit.register(os._exit, 1)",
        "print('PGF1', chr(27) + ']0;x', end='', flush=True)",
    ],
)
def test_noise_is_neither_a_fault_nor_an_answer(sandbox: Sandbox, noise: str) -> None:
    outcomes = run(sandbox, f"def noise():\n    {noise}\n    return None\n", call("noise"), fact("pid"))
    assert statuses(outcomes) == ["observed", "observed"]


@pytest.mark.parametrize(
    ("source", "limit"),
    [
        ("def wait():\n    time.sleep(60)\n", 0.1),
        ("def wait():\n    time.sleep(0.1)\n", 60.0),
        ("time.sleep(0.1)\ndef wait():\n    os._exit(1)\n", 60.0),
        ("time.sleep(60)\ndef wait(): pass\n", 60.0),
    ],
)
def test_time_of_whole_submission_ends_however_it_is_used(sandbox: Sandbox, source: str, limit: float) -> None:
    requests = [call("wait", item, timeout=limit) for item in "abcdefgh"]
    began = time.perf_counter()
    outcomes = sandbox.run(replace(program(source), until=began + 0.4), requests, load_timeout=60.0)
    assert outcomes[-1].detail == OUT_OF_TIME.detail
    assert time.perf_counter() - began < PATIENCE
    assert len(outcomes) == len(requests)


def test_function_that_hangs_is_tried_again_after_all_others(sandbox: Sandbox) -> None:
    source = "SEEN = []\ndef hang():\n    time.sleep(60)\ndef work():\n    SEEN.append(1)\n    return len(SEEN)\n"
    hanging = [replace(call("hang", item, timeout=0.1), hidden=item > "b") for item in "abcd"]
    others = [replace(fact("work", item), hidden=item == "z") for item in "xyz"]
    asked = [*hanging[:2], *others[:2], *hanging[2:], *others[2:]]
    late = replace(program(source), until=time.perf_counter() + 60)
    outcomes = sandbox.run(late, asked, load_timeout=10.0)
    assert statuses(outcomes) == ["timed_out"] * 2 + ["observed"] * 2 + ["timed_out"] * 2 + ["observed"]
    assert [fact_of(outcomes[at]) for at in (2, 3, 6)] == [1, 2, 3]


# Budgets

SLOW = 120.0  # seconds: what an emulated machine takes that does other things besides


def within(request: Request, **budget: float) -> Request:
    return replace(request, **budget)  # type: ignore[arg-type]


THREADS = """
    def burn():
        while True: hashlib.sha256(bytes(2**20)).digest()  # which lets other threads run
    def use():
        import hashlib
        globals()["hashlib"] = hashlib
        for _ in range(3): threading.Thread(target=burn, daemon=True).start()
        burn()
"""


HOLD = "def use():\n    held = [bytearray(2**20) for _ in range(500)]\n    time.sleep(60)\n"
SHOUT = "def use():\n    while True: print('x' * 999, file=sys.stderr)\n"


@pytest.mark.parametrize(
    ("source", "budget", "status", "says"),
    [
        (THREADS, {"cpu": 0.3}, "timed_out", "used more than 0.3 s of processor time"),
        (HOLD, {"memory_megabytes": 64}, "out_of_memory", "used more than 64 MiB of memory"),
        ("def use(): print('x' * 3 * 2**20)\n", {"output_megabytes": 2}, "crashed", "printed more than 2 MiB"),
        (SHOUT, {"output_megabytes": 0.5}, "crashed", "printed more than 0.5 MiB"),
    ],
    ids=["threads", "memory", "one print", "prints for ever"],
)
def test_budget_exceeded_costs_its_own_item(
    anywhere: Sandbox, source: str, budget: dict[str, float], status: str, says: str
) -> None:
    requests = within(call("use", "a", timeout=SLOW), **budget), fact("pid", "a"), fact("pid", "b", timeout=SLOW)
    outcomes = run(anywhere, textwrap.dedent(source), *requests, load_timeout=SLOW)
    assert statuses(outcomes) == [status, "not_run", "observed"]
    assert (outcomes[0].exceeded, outcomes[0].detail) == (says, f"stopped, for it {says}")
    assert outcomes[0].seconds < PATIENCE


def test_what_one_call_used_is_not_counted_against_the_next(sandbox: Sandbox) -> None:
    source = """
        def work():
            print("x" * 2**20, flush=True)
            until = time.process_time() + 0.1
            while time.process_time() < until: pass
    """
    request = within(call("work", "a"), cpu=0.15, output_megabytes=1.5)
    assert statuses(run(sandbox, source, *[request] * 2)) == ["observed"] * 2


def test_processor_time_ends_a_worker_even_if_nobody_watches(limited: Sandbox) -> None:
    source = """
        import resource
        def limits():
            return [resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_DATA)[0] // 2**20]
    """
    requests = [within(fact("limits", item), cpu=cpu, memory_megabytes=2048) for item, cpu in (("a", 7), ("b", 30.5))]
    for outcome in run(limited, source, *requests, load_timeout=10.0):
        (soft, hard), megabytes = fact_of(outcome)
        assert soft == hard == 7 + 31 + 2 * 10 + 1
        assert 2048 < megabytes < 2048 + 2048


# Loading


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("def pid(:\n", "raised"),
        ("raise RuntimeError\n", "raised"),
        ("sys.exit(0)\n", "raised"),
        ("os._exit(0)\n", "crashed"),
        ("while True: pass\n", "timed_out"),
        ("raise MemoryError\n", "out_of_memory"),
        ("write_everywhere(b'no frame')\n", "crashed"),
    ],
)
def test_unloadable_module_is_tried_once(sandbox: Sandbox, source: str, status: str) -> None:
    outcomes = run(sandbox, source, fact("pid", "a"), fact("pid", "a"), fact("pid", "b"), load_timeout=0.5)
    assert statuses(outcomes) == [status] * 3
    assert all(outcome.loading and outcome.observation is None for outcome in outcomes)
    assert [outcome.seconds for outcome in outcomes[1:]] == [0.0, 0.0]


# Forgery

LOADING, FIRST_CALL = 2, 3  # the numbers under which a worker is asked
OBSERVED = {"op": "observed", "returned": {}, "facts": {}, "n": FIRST_CALL}


def framed(header: Any, blob: bytes = b"") -> bytes:
    header = {"n": FIRST_CALL, **header} if isinstance(header, dict) else header
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    return frames.PREFIX.pack(frames.MAGIC, len(encoded), len(blob)) + encoded + blob


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"garbage " * 100, "crashed", id="garbage"),
        pytest.param(frames.PREFIX.pack(frames.MAGIC, 2, 10 * 2**30) + b"{}", "crashed", id="a claim of 10 GiB"),
        pytest.param(frames.PREFIX.pack(frames.MAGIC, 2**17, 0), "timed_out", id="a frame that never ends"),
        pytest.param(framed(b"not json"), "crashed", id="no JSON"),
        pytest.param(framed({"op": "passed", "points": 100}), "crashed", id="an unknown op"),
        pytest.param(framed({"op": "loaded"}), "crashed", id="an answer to another question"),
        pytest.param(framed(OBSERVED, b"12"), "crashed", id="numbers that nothing describes"),
        pytest.param(framed({"op": "raised"}), "crashed", id="an exception without a type"),
        pytest.param(framed({"op": "missing"}), "missing", id="a forged absence"),
    ],
)
def test_whatever_is_written_to_every_descriptor_the_grader_goes_on(sandbox: Sandbox, data: bytes, status: str) -> None:
    source = "def forge(data):\n    write_everywhere(bytes(data.tolist()))\n    return 1 / 0\n"
    inputs = safetensors.numpy.save({"data": np.frombuffer(data, np.uint8)})
    outcomes = run(sandbox, source, call("forge", "a", timeout=0.7, inputs=inputs), *[fact("pid", "b")] * 2)
    assert outcomes[0].status == status
    assert outcomes[0].observation is None
    if status in ("crashed", "timed_out"):  # a new worker: nothing of the forgery is left
        assert statuses(outcomes[1:]) == ["observed", "observed"]


@pytest.mark.parametrize(("number", "lost"), [(FIRST_CALL, 1), (None, 0), (4, 0), (3.0, 0), ("3", 0)])
def test_forged_answer_counts_under_its_number_alone_and_shifts_no_later_one(
    sandbox: Sandbox, number: object, lost: int
) -> None:
    forged = framed({**OBSERVED, "facts": {"fact": "forged"}, "n": number})
    source = f"def forge():\n    write_everywhere({forged!r})\n    return 'returned'\n"
    asked = fact("forge", "a"), fact("pid", "a"), fact("pid", "b"), fact("pid", "c")
    *outcomes, third, fourth = run(sandbox, source, *asked)
    assert statuses(outcomes) == [["crashed", "not_run"], ["observed", "crashed"]][lost]
    assert outcomes[lost].detail == "it answered a question that it was not asked"
    assert fact_of(third) == fact_of(fourth)


LOOK = """
    import gc, io

    def look():
        end, found = time.monotonic() + 0.2, b""
        streams = [one for one in gc.get_objects() if isinstance(one, io.BufferedReader) and not one.closed]
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
        while time.monotonic() < end:
            found += b"".join(stream.read1(4096) or b"" for stream in streams)
            time.sleep(0.01)
        return "secret" in found.decode(errors="replace")
"""


@pytest.mark.parametrize("hidden", [True, False])
def test_hidden_request_waits_until_all_before_it_are_answered(hidden: bool, sandbox: Sandbox) -> None:
    later = Request("b", "secret", "fact", {"call": "secret"}, safetensors.numpy.save({}), 10.0, hidden=hidden)
    first = run(sandbox, LOOK, fact("look", "a"), later)[0]
    assert fact_of(first) is (not hidden)  # what is shown may lie ready, and then can be found this way


def test_time_is_charged_to_its_call(sandbox: Sandbox) -> None:
    source = "def rest():\n    time.sleep(0.2)\n    return 1\n"
    began = time.perf_counter()
    outcomes = run(sandbox, source, *[fact("rest", item, timeout=PATIENCE) for item in "abc"])
    assert statuses(outcomes) == ["observed"] * 3
    assert all(outcome.seconds > 0.15 for outcome in outcomes)
    assert sum(outcome.seconds for outcome in outcomes) <= time.perf_counter() - began


# Processes


@pytest.mark.parametrize("lost", [False, True])
def test_child_processes_end_with_their_worker(sandbox: Sandbox, lost: bool) -> None:
    source = """
        import subprocess
        def leave():
            children = [subprocess.Popen(["sleep", "60"]).pid, os.fork()]
            if not children[1]:
                time.sleep(60)
                os._exit(0)
            return children
        def end():
            os._exit(1)
    """
    outcomes = run(sandbox, source, fact("leave", "a"), *[call("end", "b", timeout=0.3)] * lost)
    assert len(fact_of(outcomes[0])) == 2
    assert soon(lambda: not any(map(is_running, fact_of(outcomes[0]))))


def test_server_that_was_killed_between_runs_is_replaced(sandbox: Sandbox, warm_server: Server) -> None:
    assert statuses(run(sandbox, "", fact("pid"))) == ["observed"]
    first = warm_server()
    os.kill(first, signal.SIGKILL)
    assert soon(lambda: not is_running(first))
    assert statuses(run(sandbox, "", fact("pid"))) == ["observed"]
    assert warm_server() != first


@pytest.mark.parametrize("fork", [True, False])
def test_unstartable_worker_is_the_graders_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fork: bool) -> None:
    probe()  # with the Python that there is: what it finds is kept
    processes = children(os.getpid())
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho first >&2\necho no torch here >&2\nexit 1\n")
    interpreter.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(interpreter))
    before = descriptors()
    with Sandbox(fork=fork) as own, pytest.raises(SandboxError, match=r"no torch here\. .*`autograder doctor` shows"):
        run(own, "", fact("pid"))
    assert descriptors() <= before
    assert children(os.getpid()) == processes


def test_request_too_large_to_send_is_the_graders_fault(sandbox: Sandbox) -> None:
    for source, inputs in (("#" * frames.MAX_HEADER, b""), ("", b"x" * (frames.MAX_BLOB + 1))):
        with pytest.raises(SandboxError, match="cannot be sent"):
            run(sandbox, source, call("pid", inputs=inputs))
    assert statuses(run(sandbox, "", fact("pid"))) == ["observed"]


# Where fork is missing


@pytest.mark.long
def test_fresh_interpreter_gives_the_same_outcomes_bit_for_bit(sandbox: Sandbox) -> None:
    source = """
        import numpy, random, torch
        from given import WORD
        torch.set_default_dtype(torch.float64)

        def train():
            model = torch.nn.Sequential(torch.nn.Embedding(5, 10), torch.nn.Linear(10, 5)).float()
            optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
            for _ in range(5):
                optimizer.zero_grad()
                log_probs = model(torch.randint(5, (4, 3))).log_softmax(-1)
                (log_probs.exp() * log_probs).sum().backward()
                optimizer.step()
            return torch.cat([parameter.flatten() for parameter in model.parameters()])
        def draw():
            return torch.tensor([random.random(), numpy.random.rand(), torch.rand(()).item(), len(set(WORD))])
        def order():
            return list({"b", "a", "d", "c"})
        def wrong():
            print("x" * 200_000)
            raise ValueError("no")
        def end():
            os._exit(3)
        def hang():
            time.sleep(60)
    """
    requests = [call(name, name) for name in ("train", "draw", "wrong", "absent", "end", "end")]
    requests += [fact("order", "end"), call("hang", timeout=0.3), call("hang")]
    requests.insert(0, fact("order"))
    sandbox.start(torch=True)
    held, processes = descriptors(), children(os.getpid())
    with Sandbox(fork=False) as fresh:
        of_torch = program(source, torch=True)
        outcomes = [mode.run(of_torch, requests, load_timeout=20.0) for mode in (fresh, sandbox)]
        at_load = [run(fresh, line, fact("pid"), load_timeout=60.0)[0] for line in ("os._exit(3)\n", "1 / 0\n")]
    assert [(outcome.status, outcome.loading) for outcome in at_load] == [("crashed", True), ("raised", True)]
    assert descriptors() <= held
    assert children(os.getpid()) == processes
    expected = ["observed"] * 3 + ["raised", "missing", "crashed", "not_run", "not_run", "timed_out", "not_run"]
    assert [statuses(mode) for mode in outcomes] == [expected, expected]
    for one, other in zip(*outcomes, strict=True):
        assert (one.raised, one.observation, one.detail) == (other.raised, other.observation, other.detail)
        assert _bytes_of(one) == _bytes_of(other)
    assert len(_bytes_of(outcomes[0][1])["y"]) == 4 * (5 * 10 + 10 * 5 + 5)


def _bytes_of(outcome: Outcome) -> dict[str, bytes]:
    returned = outcome.observation.returned if outcome.observation is not None else {}
    return {name: value.array.tobytes() for name, value in returned.items() if value.array is not None}


# What a submission may import


def test_module_that_another_submission_had_warmed_is_missing(sandbox: Sandbox) -> None:
    draws = "import matplotlib.pyplot\nimport importlib\ndef answer():\n    return 'matplotlib' in sys.modules\n"
    late = "def answer():\n    return importlib.import_module('matplotlib').__name__\n"
    own = "import builtins, numpy\nfrom given import WORD\nimport os.path, __main__\nbuiltins.note = str\n"

    def answered(source: str, packages: tuple[str, ...] | None) -> Outcome:
        chosen = replace(program(source), packages=packages)
        return sandbox.run(chosen, [fact("answer")], load_timeout=20.0)[0]

    assert fact_of(answered(draws, None))
    for source in (draws, "import importlib\n" + late, "from matplotlib import pyplot\n" + late):
        raised = answered(source, ("numpy",)).raised
        assert raised is not None
        assert raised.message.startswith("this assignment's submissions have numpy and the standard library; matplo")
    assert fact_of(answered(f"{own}def answer():\n    return note(WORD)\n", ("numpy",))) == "given"


def test_exception_text_names_no_folder_of_this_machine(sandbox: Sandbox) -> None:
    source = "import numpy\ndef answer():\n    raise RuntimeError(f'{numpy.__file__} {sys.prefix} {sys.path}')\n"
    raised = run(sandbox, source, fact("answer"))[0].raised
    assert raised is not None
    assert raised.message.startswith("site-packages/numpy/__init__.py ")
    for place in {str(KIT), str(Path.home()), sys.prefix, sys.base_prefix, *packages()} - {"/", "/usr"}:
        assert place not in raised.message
    assert without_places("no module named 'torch.python'") == "no module named 'torch.python'"


def test_no_code_in_a_worker_says_where_the_kit_lies(sandbox: Sandbox) -> None:
    source = """
        import __main__, traceback
        def answer():
            stack = [frame.f_code.co_filename for frame, _ in traceback.walk_stack(None)]
            return [__main__.boot.get("root", ""), *stack]
    """
    places = answer(sandbox, source)
    assert "autograder/sandbox/worker/worker.py" in places
    assert not [place for place in places if str(KIT_ROOT) in place]


# In namespaces


def asked(sandbox: Sandbox, source: str, *names: str, **budget: float) -> list[Outcome]:
    return run(sandbox, source, *(within(fact(name, timeout=SLOW), **budget) for name in names), load_timeout=SLOW)


def test_namespaces_hide_files_processes_and_network(alone: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of another student")
    source = f"""
        import socket
        def files():
            places = ({str(secret)!r}, {str(tmp_path)!r}, "/proc/self", "/etc/passwd", "/var/log")
            return [os.path.exists(path) for path in places]
        def processes():
            try: os.kill({os.getpid()}, 0)
            except OSError as error: return [os.getpid() < 100, os.getppid(), error.strerror]
        def network():
            return [name for _, name in socket.if_nameindex()]
        def write():
            found = []
            for folder in ("/", os.path.dirname(os.__file__), "/dev"):
                try: open(folder + "/x", "w")
                except OSError as error: found.append(error.strerror)
            return found
        def capabilities():
            import ctypes
            libc = ctypes.CDLL(None, use_errno=True)
            return [libc.unshare(0x20000), libc.mount(b"x", b"/dev", b"tmpfs", 0, None), libc.chroot(b"/dev")]
    """
    outcomes = asked(alone, source, "files", "processes", "network", "write", "capabilities")
    files, processes, network, write, capabilities = map(fact_of, outcomes)
    assert files == [False] * 5
    assert processes == [True, 1, "No such process"]
    assert network == ["lo"]
    assert write == ["Read-only file system"] * 3
    if os.geteuid() != 0:  # of root the layer `identity` takes them
        assert capabilities == [-1] * 3


def test_process_outside_group_ends_with_its_worker(alone: Sandbox) -> None:
    source = """
        def leave():
            for _ in range(3):
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0: time.sleep(60)
                    os._exit(0)
                os.wait()
        def left():
            found = []
            for pid in range(2, 500):
                try: os.kill(pid, 0) or found.append(pid)
                except OSError: pass
            return [os.getpid(), *found]
    """
    assert asked(alone, source, "leave")[0].status == "observed"
    own, *others = fact_of(asked(alone, source, "left")[0])
    assert others == [own]


def test_nothing_is_left_of_a_server_in_namespaces(alone: Sandbox) -> None:
    def mounts() -> str:
        return Path("/proc/self/mounts").read_text()

    before = mounts()
    asked(alone, "def work():\n    return 1\n", "work")
    assert mounts() == before
    alone.close()
    assert mounts() == before
