"""One worker as a process seen from outside: asked, watched, killed. Nothing that it says is trusted.

A worker is killed where a call exceeds one of its budgets: time, processor time and memory are read from /proc every
50 ms, output is counted as it comes.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, NamedTuple, cast

from autograder.sandbox.calls import Outcome, Program, Request, Status, read_answer
from autograder.sandbox.inside import frames
from autograder.sandbox.inside.processes import Usage, say_ending, usage
from autograder.sandbox.interpreter import command, environment
from autograder.sandbox.server import DOCTOR, MAX_THREADS, START_SECONDS, Server
from autograder.vocabulary.errors import SandboxError

TOUCHED_MEGABYTES = 256  # pages of torch that a worker touches later than others, and need not answer for
WATCH_SECONDS = 0.05
CLOSE_SECONDS = 1.0
OUTPUT_KEPT = 4096


@dataclass(frozen=True)
class Budget:
    """What one exchange with a worker may use; the fields are those of a Request."""

    timeout: float
    cpu: float
    memory_megabytes: float
    output_megabytes: float


class _Frame(NamedTuple):
    header: dict[str, Any]
    blob: bytes
    header_size: int


@dataclass(frozen=True)
class _Heard:
    """What came of waiting for an answer: a frame, or what ended the wait; neither where the worker is gone."""

    frame: _Frame | None = None
    stopped: Outcome | None = None


class Worker:
    """One worker process seen from outside: frames in and out through pipes.

    A thread of ours has each pipe and closes it: whatever the worker does or leaves undone, it blocks none but these.
    """

    _pid: int  # as this process sees it; 0 where nobody can tell

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Speak through these streams, which are closed with the worker."""
        self._asked, self._resident, self.loading_seconds = 0, 0, 0.0
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: queue.Queue[_Frame | None] = queue.Queue(maxsize=1)
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
            if frame is not None and frame.header.get("op") == "ready":
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
            "packages": program.packages,
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
        heard = self._await(budget)
        seconds = time.perf_counter() - started
        if heard.stopped is not None:
            self._kill()
            return replace(heard.stopped, seconds=seconds)
        if heard.frame is None:
            return Outcome("crashed", detail=self._ending(), seconds=seconds)
        header, answer, header_size = heard.frame
        if header.get("n") != self._asked or type(header["n"]) is not int:
            return Outcome("crashed", detail="it answered a question that it was not asked", seconds=seconds)
        return replace(read_answer((header, answer), seconds, answers), size=(header_size, len(answer)))

    def _await(self, budget: Budget) -> _Heard:
        """The next frame, or why not to wait for it any longer.

        What the worker has used is first read after 50 ms: of most calls it never is.
        """
        deadline, self._written, before = time.monotonic() + budget.timeout, 0, None
        while (left := deadline - time.monotonic()) > 0:
            with contextlib.suppress(queue.Empty):
                frame = self._inbox.get(timeout=min(left, WATCH_SECONDS))
                excess = self._output_excess(budget)
                return _Heard(stopped=excess) if excess else _Heard(frame)
            used = usage(self._pid)
            before = used.seconds if before is None else before
            if excess := self._excess(budget, used, used.seconds - before):
                return _Heard(stopped=excess)
        return _Heard(stopped=Outcome("timed_out", detail=f"no answer in {budget.timeout:g} s"))

    def _excess(self, budget: Budget, used: Usage, seconds: float) -> Outcome | None:
        if seconds > budget.cpu:
            return _stopped("timed_out", f"used more than {budget.cpu:g} s of processor time")
        if used.resident > self._resident + (budget.memory_megabytes + TOUCHED_MEGABYTES) * 2**20:
            return _stopped("out_of_memory", f"used more than {budget.memory_megabytes:g} MiB of memory")
        if used.threads > MAX_THREADS:
            return _stopped("crashed", f"started more than {MAX_THREADS} threads")
        return self._output_excess(budget)

    def _output_excess(self, budget: Budget) -> Outcome | None:
        if self._written <= budget.output_megabytes * 2**20:
            return None
        return _stopped("crashed", f"printed more than {budget.output_megabytes:g} MiB")

    def _send(self, requests: BinaryIO) -> None:
        with contextlib.suppress(OSError), requests:
            while (frame := self._outbox.get()) is not None:
                frames.send(requests, frame)

    def _receive(self, answers: BinaryIO) -> None:
        with contextlib.suppress(frames.FrameError, OSError), answers:
            while (parts := frames.read_parts(answers, frames.MAX_ANSWER)) is not None:
                self._inbox.put(_Frame(frames.parse_header(parts[0]), parts[1], len(parts[0])))
        self._inbox.put(None)

    def _drain(self, output: BinaryIO) -> None:
        with contextlib.suppress(OSError), output:
            while chunk := output.read(65536):
                self._tail = (self._tail + chunk)[-OUTPUT_KEPT:]
                self._written += len(chunk)


def _stopped(status: Status, exceeded: str) -> Outcome:
    return Outcome(status, detail=f"stopped, for it {exceeded}", exceeded=exceeded)


class FreshWorker(Worker):
    """A worker in an interpreter of its own: slower, and all that macOS and Windows allow."""

    def __init__(self, *, torch: bool = True) -> None:
        """Start it, with torch or without; nothing but its environment keeps it apart."""
        self._process = subprocess.Popen(
            command({}, torch=torch),
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
            self._known_as, self._pid = server.fork((to_worker[0], from_worker[1], output[1]), megabytes, seconds)
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
