"""Run untrusted code on a case: source and inputs in, an Outcome out. Nothing that comes out is trusted.

On Linux a warm server (see `worker`) forks a worker for each submission; elsewhere each worker is a fresh interpreter.
A worker is killed from outside when a call exceeds its deadline. What follows a kill or a crash runs in a new worker,
so a fault stays with the item that caused it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self, cast

from autograder import frames
from autograder.errors import SandboxError
from autograder.isolation import LAYERS, environment, packages, probe, readable_paths, say_ending, usage
from autograder.observation import Observation, Raised, from_frame, raised_from_header

Isolation = Literal["strict", "best", "none"]
STRICT = ("landlock", "seccomp")
Status = Literal["observed", "raised", "missing", "timed_out", "out_of_memory", "crashed", "not_run"]

START_SECONDS = 120.0
WORKER_MEGABYTES = 4096
WORKER_RESIDENT = (WORKER_MEGABYTES + 1024) * 2**20  # torch itself included
MAX_THREADS = 512
MAX_OUTPUT = 64 * 2**20
WATCH_SECONDS = 0.05
CLOSE_SECONDS = 1.0
OUTPUT_KEPT = 4096
WARMED_ON_DEMAND = ("matplotlib.pyplot", "tqdm.auto")
KIT_ROOT = Path(__file__).resolve().parent.parent
BOOT = """
import json, sys
boot = json.loads(sys.argv[1])
sys.path[:] = [boot["root"]] + [path for path in sys.path if path] + boot["packages"]
from autograder import worker
sys.path.remove(boot["root"])
sys.modules["autograder"].__path__ = []
sys.argv[:] = [""]
worker.serve(boot["control"], boot["layers"], boot["readable"]) if "control" in boot else worker.main_on_stdio()
"""


@dataclass(frozen=True)
class Request:
    """One call: which probe, with which parameters and inputs (safetensors bytes), charged to which item."""

    item: str
    function: str
    probe: str
    params: Mapping[str, Any]
    inputs: bytes
    timeout: float


@dataclass(frozen=True)
class Outcome:
    """What became of one request.

    detail    how a worker ended
    seconds   wall time seen from outside
    loading   the submission could not even be loaded
    """

    status: Status
    observation: Observation | None = None
    raised: Raised | None = None
    detail: str = ""
    seconds: float = 0.0
    loading: bool = False


NOT_AGAIN = Outcome("not_run", detail="an earlier case of this item ended the worker")


@dataclass(frozen=True)
class Program:
    """What a worker loads: the student's module, the given modules and the assignment's probes, all as text."""

    module: str
    source: str
    given: Mapping[str, str]
    probes: str


class Sandbox:
    """Runs submissions one after another; owns a warm server where the platform can fork. Use as a context manager."""

    def __init__(self, *, isolation: Isolation = "best", fork: bool | None = None) -> None:
        """Start no worker yet. Raises SandboxError where `strict` is asked for and this machine cannot give it.

        isolation   strict: Landlock and seccomp, or nothing runs; best: every layer that holds here; none: none
        fork        False asks for a fresh interpreter per worker, as on macOS and Windows, with no layers
        """
        self._fork = sys.platform == "linux" if fork is None else fork
        self._layers = layers_for(isolation, None if self._fork else dict.fromkeys(LAYERS, "workers are not forked"))
        self._server: _Server | None = None
        self._wanted: list[str] = []

    def __enter__(self) -> Self:
        """Return the sandbox; the server starts with the first submission."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the server."""
        self.close()

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that a worker runs under."""
        return ("process", *self._layers)

    def close(self) -> None:
        """Stop the server; the next submission would start a new one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def run(
        self, program: Program, requests: Sequence[Request], *, load_timeout: float, fault_budget: float = 240.0
    ) -> list[Outcome]:
        """The outcome of each request, in order.

        After a worker is lost the rest of that item is `not_run`; whatever else is left gets a new worker. One that ran
        out of memory is replaced at once: what fills it may still be there. Where the program cannot be loaded, every
        request shares that outcome. Once lost workers have used `fault_budget` seconds, the rest is `not_run`.
        Raises SandboxError where no worker could be started: that is the grader's fault.
        """
        outcomes: list[Outcome] = []
        lost: set[str] = set()
        spent = 0.0
        self._wanted = [name for name in WARMED_ON_DEMAND if name.partition(".")[0] in program.source]
        while len(outcomes) < len(requests):
            if requests[len(outcomes)].item in lost:
                outcomes.append(NOT_AGAIN)
                continue
            with self._conversation() as worker:
                loaded = worker.load(program, load_timeout)
                if loaded is not None:
                    spent += loaded.seconds
                    rest = requests[len(outcomes) :] if not outcomes else _same_item(requests, len(outcomes))
                    outcomes += [loaded, *[replace(loaded, seconds=0.0)] * (len(rest) - 1)]
                else:
                    self._run_until_lost(worker, requests, outcomes, lost)
                    spent += outcomes[-1].seconds if _lost(outcomes[-1]) else 0.0
            if spent > fault_budget:
                missing = len(requests) - len(outcomes)
                outcomes += [Outcome("not_run", detail="the submission had used up its time")] * missing
        return outcomes

    def _run_until_lost(
        self, worker: _Worker, requests: Sequence[Request], outcomes: list[Outcome], lost: set[str]
    ) -> None:
        for request in requests[len(outcomes) :]:
            outcomes.append(NOT_AGAIN if request.item in lost else worker.call(request))
            if _lost(outcomes[-1]):
                lost.add(request.item)
            if _lost(outcomes[-1]) or outcomes[-1].status == "out_of_memory":
                return

    @contextlib.contextmanager
    def _conversation(self) -> Iterator[_Worker]:
        worker = self._start_worker()
        try:
            worker.await_ready()
            yield worker
        finally:
            worker.close()

    def _start_worker(self) -> _Worker:
        if not self._fork:
            return _FreshWorker()
        if self._server is None or not self._server.alive:
            self.close()
            self._server = _Server(self._layers)
        for module in self._wanted:
            self._server.warm(module)
        return _ForkedWorker(self._server)


def layers_for(isolation: Isolation, found: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The layers that workers get; raises SandboxError where `strict` is asked for and a layer is missing.

    found   why each layer does not hold, as `probe` tells, which is asked where this is None
    """
    if isolation == "none":
        return ()
    found = probe() if found is None else found
    reasons = {layer: found.get(layer, "not tried") for layer in LAYERS}
    missing = [f"{layer} ({reasons[layer]})" for layer in STRICT if reasons[layer]]
    if isolation == "strict" and missing:
        raise SandboxError(
            f"Strict isolation is asked for, but this machine lacks {', '.join(missing)}. "
            "Grade on one that has it, or ask for --isolation best in a container."
        )
    return tuple(layer for layer in LAYERS if not reasons[layer])


def _same_item(requests: Sequence[Request], start: int) -> Sequence[Request]:
    return [request for request in requests[start:] if request.item == requests[start].item]


def _lost(outcome: Outcome) -> bool:
    """Whether the worker is gone; one that says itself that memory ran out is not."""
    return outcome.status in ("timed_out", "crashed") or (outcome.status == "out_of_memory" and not outcome.raised)


class _Worker:
    """One worker process seen from outside: frames in and out through pipes.

    A thread of ours has each pipe and closes it: whatever the worker does or leaves undone, it blocks none but these.
    """

    _pid: int

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: queue.Queue[tuple[dict[str, Any], bytes] | None] = queue.Queue(maxsize=1)
        self._tail, self._written = b"", 0
        self._receiver = threading.Thread(target=self._receive, args=(answers,), daemon=True)
        self._threads = [
            self._receiver,
            threading.Thread(target=self._send, args=(requests,), daemon=True),
            threading.Thread(target=self._drain, args=(output,), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def await_ready(self) -> None:
        """Return once the worker listens; whatever keeps it from that is no fault of a submission."""
        with contextlib.suppress(queue.Empty):
            frame = self._inbox.get(timeout=START_SECONDS)
            if frame is not None and frame[0].get("op") == "ready":
                return
        self.close()
        last = (self._tail.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise SandboxError(f"A worker could not be started: {last}. Run `autograder doctor` to see what is missing.")

    def load(self, program: Program, timeout: float) -> Outcome | None:
        """None once the program is loaded, else the outcome that every request shares."""
        header = {
            "op": "load",
            "module": program.module,
            "source": program.source,
            "given": dict(program.given),
            "probes": program.probes,
        }
        outcome = self._exchange(header, b"", timeout, ("loaded", "raised"))
        return None if outcome.detail == "loaded" else replace(outcome, loading=True)

    def call(self, request: Request) -> Outcome:
        """The outcome of one request."""
        header = {"op": "run", "function": request.function, "probe": request.probe, "params": dict(request.params)}
        return self._exchange(header, request.inputs, request.timeout, ("observed", "raised", "missing"))

    def close(self) -> None:
        """Kill the worker, wait for it, and let go of its pipes."""
        try:
            self._kill()
        finally:
            self._outbox.put(None)
            self._join()

    def _join(self) -> None:
        deadline = time.monotonic() + CLOSE_SECONDS  # a process that left the worker's group may hold its pipes
        while self._receiver.is_alive() and time.monotonic() < deadline:  # it may be waiting for room in the inbox
            with contextlib.suppress(queue.Empty):
                self._inbox.get(timeout=0.01)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _kill(self) -> None:
        raise NotImplementedError

    def _ending(self) -> str:
        raise NotImplementedError

    def _exchange(self, header: dict[str, Any], blob: bytes, timeout: float, answers: Sequence[str]) -> Outcome:
        started = time.perf_counter()
        try:
            self._outbox.put(frames.encode(header, blob))
        except frames.FrameError as error:
            raise SandboxError(f"A request cannot be sent to the worker: {error}.") from error
        frame = self._await(timeout)
        seconds = time.perf_counter() - started
        if isinstance(frame, Outcome):
            self._kill()
            return replace(frame, seconds=seconds)
        if frame is None:
            return Outcome("crashed", detail=self._ending(), seconds=seconds)
        return read_answer(frame, seconds, answers)

    def _await(self, timeout: float) -> tuple[dict[str, Any], bytes] | Outcome | None:
        """The next frame, None where there comes no more, or why not to wait for it any longer."""
        deadline, self._written = time.monotonic() + timeout, 0
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                return self._inbox.get(timeout=min(left, WATCH_SECONDS))
            threads, resident = usage(self._pid)
            if resident > WORKER_RESIDENT:
                return Outcome("out_of_memory", detail="it held more memory than it may have")
            if threads > MAX_THREADS:
                return Outcome("crashed", detail=f"stopped, for it had started more than {MAX_THREADS} threads")
            if self._written > MAX_OUTPUT:
                return Outcome("crashed", detail=f"stopped, for it had printed more than {MAX_OUTPUT // 2**20} MiB")
        return Outcome("timed_out", detail=f"no answer in {timeout:g} s")

    def _send(self, requests: BinaryIO) -> None:
        with contextlib.suppress(OSError), requests:
            while (frame := self._outbox.get()) is not None:
                frames.send(requests, frame)

    def _receive(self, answers: BinaryIO) -> None:
        with contextlib.suppress(frames.FrameError, OSError), answers:
            while (frame := frames.read(answers)) is not None:
                self._inbox.put(frame)
        self._inbox.put(None)

    def _drain(self, output: BinaryIO) -> None:
        with contextlib.suppress(OSError), output:
            while chunk := output.read(65536):
                self._tail = (self._tail + chunk)[-OUTPUT_KEPT:]
                self._written += len(chunk)


def read_answer(frame: tuple[dict[str, Any], bytes], seconds: float, answers: Sequence[str]) -> Outcome:
    """The outcome that a worker's frame stands for; one of another kind, or one that contradicts itself, is a crash."""
    header, blob = frame
    try:
        match header.get("op") if header.get("op") in answers else None:
            case "loaded":
                return Outcome("observed", detail="loaded", seconds=seconds)
            case "missing":
                return Outcome("missing", seconds=seconds)
            case "observed":
                return Outcome("observed", observation=from_frame(header, blob), seconds=seconds)
            case "raised":
                raised = raised_from_header(header)
                status: Status = "out_of_memory" if raised.is_out_of_memory else "raised"
                return Outcome(status, raised=raised, seconds=seconds)
    except ValueError as error:
        return Outcome("crashed", detail=str(error), seconds=seconds)
    return Outcome("crashed", detail="the worker's answer could not be read", seconds=seconds)


class _FreshWorker(_Worker):
    """A worker in an interpreter of its own: slower, and all that macOS and Windows allow."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            _command({}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment(),
            start_new_session=True,
        )
        self._pid = self._process.pid
        streams = self._process.stdin, self._process.stdout, self._process.stderr
        requests, answers, output = (cast("BinaryIO", stream) for stream in streams)
        super().__init__(requests, answers, output)

    def _kill(self) -> None:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _ending(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1.0)
        self._kill()
        return say_ending(self._process.returncode)


class _ForkedWorker(_Worker):
    """A worker forked from the warm server."""

    def __init__(self, server: _Server) -> None:
        self._owner = server
        to_worker, from_worker, output = os.pipe(), os.pipe(), os.pipe()
        try:
            self._pid = server.fork((to_worker[0], from_worker[1], output[1]))
        except BaseException:
            for descriptor in (to_worker[1], from_worker[0], output[0]):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (to_worker[0], from_worker[1], output[1]):
                os.close(descriptor)
        self._status: int | None = None
        super().__init__(
            os.fdopen(to_worker[1], "wb", buffering=0),
            os.fdopen(from_worker[0], "rb"),
            os.fdopen(output[0], "rb", buffering=0),
        )

    def _kill(self) -> None:
        if self._status is not None:
            return
        try:
            self._status = self._owner.end(self._pid)
        except SandboxError:  # the server is gone; its worker must not stay
            self._status = int(signal.SIGKILL)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
            raise

    def _ending(self) -> str:
        time.sleep(0.02)  # its pipe closes a moment before it is a zombie that can tell why it ended
        self._kill()
        return say_ending(os.waitstatus_to_exitcode(self._status or 0))


class _Server:
    """The warm server, seen from outside: one socket, two kinds of message."""

    def __init__(self, layers: Sequence[str]) -> None:
        boot = {"layers": list(layers), "readable": readable_paths(packages())}
        self._warmed: set[str] = set()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            os.set_inheritable(theirs.fileno(), True)
            self._process = subprocess.Popen(
                _command({**boot, "control": theirs.fileno()}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._socket.settimeout(START_SECONDS)
        try:
            self._receive()
        except SandboxError:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def warm(self, module: str) -> None:
        """Import a module that some submissions use: what it writes on its first import, no worker may."""
        if module not in self._warmed:
            self._warmed.add(module)
            self._ask({"warm": module})

    def fork(self, descriptors: tuple[int, int, int]) -> int:
        """The process id of a new worker that holds the descriptors (requests, answers, output)."""
        message = json.dumps({"fork": WORKER_MEGABYTES}).encode()
        try:
            socket.send_fds(self._socket, [message], descriptors)
        except OSError as error:
            raise SandboxError(self._explain()) from error
        return int(self._receive()["pid"])

    def end(self, pid: int) -> int:
        """Kill a worker and its process group; its wait status."""
        return int(self._ask({"end": pid})["status"])

    def close(self) -> None:
        """Stop the server. It holds nothing worth the second that torch takes to leave in good order."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            self._socket.send(json.dumps(question).encode())
        except OSError as error:
            raise SandboxError(self._explain()) from error
        return self._receive()

    def _receive(self) -> dict[str, Any]:
        try:
            message = self._socket.recv(4096)
        except OSError as error:
            raise SandboxError(self._explain()) from error
        if not message:
            raise SandboxError(self._explain())
        answer = json.loads(message)
        assert isinstance(answer, dict)
        return answer

    def _explain(self) -> str:
        self._process.kill()
        stderr = self._process.stderr.read() if self._process.stderr is not None else b""
        self._process.wait()
        last = (stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        return f"The sandbox's warm server stopped: {last}. Run `autograder doctor` to see what is missing."


def _command(boot: dict[str, Any]) -> list[str]:
    """A Python that processes no site, no user or current folder: only the packages that the grader itself runs on."""
    boot = {**boot, "root": str(KIT_ROOT), "packages": packages()}
    return [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", BOOT, json.dumps(boot)]
