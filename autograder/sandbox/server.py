"""One worker, and the warm server that workers are forked from, as processes seen from outside.

Nothing that they say is trusted. A worker is killed where a call exceeds one of its budgets: time, processor time and
memory are read from /proc every 50 ms, output is counted as it comes.
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
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from autograder.sandbox.calls import Outcome, Program, Request, Status
from autograder.sandbox.inside import cgroup, frames
from autograder.sandbox.inside.isolation import environment, packages, readable_paths
from autograder.sandbox.inside.processes import Usage, say_ending, usage
from autograder.sandbox.observation import from_frame, raised_from_header
from autograder.vocabulary.errors import SandboxError

START_SECONDS = 120.0
TOUCHED_MEGABYTES = 256  # pages of torch that a worker touches later than others, and need not answer for
SERVER_MEGABYTES = 1024.0  # torch itself included
MAX_THREADS = 512
SERVER_THREADS = 64
WATCH_SECONDS = 0.05
CLOSE_SECONDS = 1.0
OUTPUT_KEPT = 4096
DOCTOR = "Where the whole kit is installed, `autograder doctor` shows what is missing."
KIT_ROOT = Path(__file__).resolve().parents[2]
BOOT = """
import json, sys
boot = json.loads(sys.argv[1])
sys.path[:] = [boot["root"]] + [path for path in sys.path if path] + boot["packages"]
if "namespaces" in boot.get("layers", ()):
    from autograder.sandbox.inside import namespaces
    namespaces.enter(boot["readable"])
from autograder.sandbox.inside import worker
sys.path.remove(boot["root"])
for name, module in sys.modules.items():
    if name.partition(".")[0] == "autograder" and hasattr(module, "__path__"):
        module.__path__ = []  # no further module of the kit can be imported
sys.argv[:] = [""]
worker.serve(boot["control"], boot["layers"], boot["readable"]) if "control" in boot else worker.main_on_stdio()
"""


@dataclass(frozen=True)
class Budget:
    """What one exchange with a worker may use; the fields are those of a Request."""

    timeout: float
    cpu: float
    memory_megabytes: float
    output_megabytes: float


class Worker:
    """One worker process seen from outside: frames in and out through pipes.

    A thread of ours has each pipe and closes it: whatever the worker does or leaves undone, it blocks none but these.
    """

    _pid: int  # as this process sees it; 0 where only the worker can tell, which it does before it runs anything

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Speak through these streams, which are closed with the worker."""
        self._asked, self._resident, self.loading_seconds = 0, 0, 0.0
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
                self._pid = int(frame[0].get("pid") or self._pid)
                self._resident = usage(self._pid).resident
                return
        self.close()
        last = (self._tail.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
        raise SandboxError(f"A worker could not be started: {last}. {DOCTOR}")

    def load(self, program: Program, budget: Budget) -> Outcome | None:
        """None once the program is loaded, else the outcome that every request shares."""
        header = {
            "op": "load",
            "module": program.module,
            "source": program.source,
            "given": dict(program.given),
            "probes": program.probes,
        }
        outcome = self._exchange(header, b"", budget, ("loaded", "raised"))
        self.loading_seconds = outcome.seconds
        return None if outcome.detail == "loaded" else replace(outcome, loading=True)

    def call(self, request: Request) -> Outcome:
        """The outcome of one request."""
        header = {"op": "run", "function": request.function, "probe": request.probe, "params": dict(request.params)}
        budget = Budget(request.timeout, request.cpu, request.memory_megabytes, request.output_megabytes)
        return self._exchange(header, request.inputs, budget, ("observed", "raised", "missing"))

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

    def _exchange(self, header: dict[str, Any], blob: bytes, budget: Budget, answers: Sequence[str]) -> Outcome:
        """Send a numbered question; what comes back counts as its answer only under the same number."""
        started = time.perf_counter()
        self._asked += 1
        try:
            self._outbox.put(frames.encode({**header, "n": self._asked}, blob))
        except frames.FrameError as error:
            raise SandboxError(f"A request cannot be sent to the worker: {error}.") from error
        frame = self._await(budget)
        seconds = time.perf_counter() - started
        if isinstance(frame, Outcome):
            self._kill()
            return replace(frame, seconds=seconds)
        if frame is None:
            return Outcome("crashed", detail=self._ending(), seconds=seconds)
        if frame[0].get("n") != self._asked or type(frame[0]["n"]) is not int:
            return Outcome("crashed", detail="it answered a question that it was not asked", seconds=seconds)
        return read_answer(frame, seconds, answers)

    def _await(self, budget: Budget) -> tuple[dict[str, Any], bytes] | Outcome | None:
        """The next frame, None where there comes no more, or why not to wait for it any longer.

        What the worker has used is first read after 50 ms: of most calls it never is.
        """
        deadline, self._written, before = time.monotonic() + budget.timeout, 0, None
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                frame = self._inbox.get(timeout=min(left, WATCH_SECONDS))
                return self._output_excess(budget) if self._written > budget.output_megabytes * 2**20 else frame
            used = usage(self._pid)
            before = used.seconds if before is None else before
            if excess := self._excess(budget, used, used.seconds - before):
                return excess
        return Outcome("timed_out", detail=f"no answer in {budget.timeout:g} s")

    def _excess(self, budget: Budget, used: Usage, seconds: float) -> Outcome | None:
        if seconds > budget.cpu:
            return _stopped("timed_out", f"used more than {budget.cpu:g} s of processor time")
        if used.resident > self._resident + (budget.memory_megabytes + TOUCHED_MEGABYTES) * 2**20:
            return _stopped("out_of_memory", f"used more than {budget.memory_megabytes:g} MiB of memory")
        if used.threads > MAX_THREADS:
            return _stopped("crashed", f"started more than {MAX_THREADS} threads")
        return self._output_excess(budget) if self._written > budget.output_megabytes * 2**20 else None

    def _output_excess(self, budget: Budget) -> Outcome:
        return _stopped("crashed", f"printed more than {budget.output_megabytes:g} MiB")

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


def _stopped(status: Status, exceeded: str) -> Outcome:
    return Outcome(status, detail=f"stopped, for it {exceeded}", exceeded=exceeded)


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


class FreshWorker(Worker):
    """A worker in an interpreter of its own: slower, and all that macOS and Windows allow."""

    def __init__(self) -> None:
        """Start it; nothing but its environment keeps it apart."""
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


class ForkedWorker(Worker):
    """A worker forked from the warm server."""

    def __init__(self, server: Server, megabytes: float, seconds: float) -> None:
        """Fork it, with so much memory and processor time for its whole life."""
        self._owner = server
        to_worker, from_worker, output = os.pipe(), os.pipe(), os.pipe()
        try:
            self._known_as = server.fork((to_worker[0], from_worker[1], output[1]), megabytes, seconds)
        except BaseException:
            for descriptor in (to_worker[1], from_worker[0], output[0]):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (to_worker[0], from_worker[1], output[1]):
                os.close(descriptor)
        self._status: int | None = None
        self._pid = 0 if server.has_own_processes else self._known_as
        super().__init__(
            os.fdopen(to_worker[1], "wb", buffering=0),
            os.fdopen(from_worker[0], "rb"),
            os.fdopen(output[0], "rb", buffering=0),
        )

    def _kill(self) -> None:
        if self._status is not None:
            return
        try:
            self._status = self._owner.end(self._known_as)
        except SandboxError:  # the server is gone; its worker must not stay
            self._status = int(signal.SIGKILL)
            if self._pid:  # 0 only in namespaces, which end with the server
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._pid, signal.SIGKILL)
            raise

    def _ending(self) -> str:
        time.sleep(0.02)  # its pipe closes a moment before it is a zombie that can tell why it ended
        self._kill()
        return say_ending(os.waitstatus_to_exitcode(self._status or 0))


class Server:
    """The warm server, seen from outside: one socket, two kinds of message."""

    def __init__(self, layers: Sequence[str]) -> None:
        """Start it with these layers; it takes its seconds to get warm while the caller goes on."""
        boot = {"layers": list(layers), "readable": readable_paths(packages())}
        self.has_own_processes = "namespaces" in layers
        self._group = _group() if "cgroup" in layers else None
        self._is_warm = False
        self._warmed: set[str] = set()
        self._compiled: dict[str, str] = {}
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
            self._add_to_group()
        except SandboxError:
            self.close()
            raise

    def await_warm(self) -> None:
        """Return once it can be asked; raises SandboxError where it could not start."""
        if not self._is_warm:
            self._receive()
            self._is_warm = True

    def _add_to_group(self) -> None:
        if self._group is not None:
            try:
                self._group.add(self._process.pid)
            except OSError as error:
                raise SandboxError(f"The warm server could not be put into its control group: {error}.") from error

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def warm(self, module: str) -> None:
        """Import a module that some submissions use: what it writes on its first import, no worker may."""
        if module not in self._warmed:
            self._warmed.add(module)
            self._ask({"warm": module})

    def compile(self, program: Program) -> None:
        """Let the kit's own modules be compiled once, not in every worker. It reads them; it does not run them."""
        sources = {f"{name}.py": source for name, source in {**program.given, "probes": program.probes}.items()}
        if sources != self._compiled:
            with tempfile.TemporaryFile() as file:
                file.write(json.dumps(sources).encode())
                file.seek(0)
                self._send_with((file.fileno(),), {"compile": True})
                self._receive()
            self._compiled = sources

    def fork(self, descriptors: tuple[int, int, int], megabytes: float, seconds: float) -> int:
        """The process id, as the server sees it, of a new worker that holds these (requests, answers, output).

        megabytes, seconds   memory that it may allocate, processor time for its whole life
        """
        if self._group is not None:
            self._group.allow(SERVER_MEGABYTES + megabytes)
        self._send_with(descriptors, {"fork": {"megabytes": megabytes, "seconds": seconds}})
        return int(self._receive()["pid"])

    def _send_with(self, descriptors: Sequence[int], message: dict[str, Any]) -> None:
        try:
            socket.send_fds(self._socket, [json.dumps(message).encode()], descriptors)
        except OSError as error:
            raise SandboxError(self._explain()) from error

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
        if self._group is not None:
            self._group.close()

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
        return f"The sandbox's warm server stopped: {last}. {DOCTOR}"


def _group() -> cgroup.Group:
    try:
        return cgroup.Group(MAX_THREADS + SERVER_THREADS, SERVER_MEGABYTES)
    except OSError as error:
        raise SandboxError(f"A control group could not be made: {error}. {DOCTOR}") from error


def _command(boot: dict[str, Any]) -> list[str]:
    """A Python that processes no site, no user or current folder: only the packages that the grader itself runs on."""
    boot = {**boot, "root": str(KIT_ROOT), "packages": packages()}
    return [sys.executable, "-S", "-s", "-P", "-B", "-X", "utf8", "-c", BOOT, json.dumps(boot)]
