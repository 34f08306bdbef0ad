"""One worker as a process seen from outside: asked, watched, killed. Nothing that it says is trusted.

A worker is killed where a call exceeds one of its budgets: time, processor time and memory are read from /proc every
50 ms, output is counted as it comes.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple, cast

from autograder.sandbox.calls import OUT_OF_TIME, Outcome, Program, Request, Status, read_answer
from autograder.sandbox.interpreter import command, environment
from autograder.sandbox.isolation.processes import Usage, say_ending, usage
from autograder.sandbox.pipes import Answer, Ended, pipes
from autograder.sandbox.server import DOCTOR, MAX_THREADS, START_SECONDS, Server
from autograder.sandbox.worker import frames
from autograder.vocabulary.errors import SandboxError

TOUCHED_MEGABYTES = 256  # pages of torch that a worker touches later than others, and need not answer for
WATCH_SECONDS = 0.05


@dataclass(frozen=True)
class Budget:
    """What one exchange with a worker may use; the fields are those of a Request."""

    timeout: float
    cpu: float
    memory_megabytes: float
    output_megabytes: float


class _Question(NamedTuple):
    """A question that was sent: its number, what answering it may use, the kinds of answer to it."""

    number: int
    budget: Budget
    answers: Sequence[str]


class Worker:
    """One worker process seen from outside: frames in and out through pipes."""

    _pid: int  # as this process sees it; 0 where nobody can tell

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Speak through these streams, which are closed with the worker."""
        self._asked, self._answered, self._resident, self._until = 0, 0, 0, math.inf
        self._since = 0.0  # when the question that is being answered was begun: as it came, or after the one before
        self._before = 0  # bytes that had been printed when the last answer came
        self._pipes = pipes(requests, answers, output)

    def await_ready(self) -> None:
        """Return once the worker listens; whatever keeps it from that is no fault of a submission."""
        answer = self._pipes.receive(START_SECONDS)
        if isinstance(answer, Answer) and answer.header.get("op") == "ready":
            self._resident = usage(self._pid).resident
            return
        self.close()
        last = (self._pipes.tail.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
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
        self._until = program.until
        outcome = self._hear(self._ask(frames.encode_header(header), b"", budget, ("loaded", "raised")))
        return None if outcome.detail == "loaded" else replace(outcome, loading=True)

    def calls(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """The outcome of each request, in order. All are sent at once: the worker need not wait for the next."""
        questions = map(self._call, requests)
        for question in list(questions) if self._pipes.in_step else questions:
            yield self._hear(question)

    def _call(self, request: Request) -> _Question:
        budget = Budget(request.timeout, request.cpu, request.memory_megabytes, request.output_megabytes)
        return self._ask(request.header, request.inputs, budget, ("observed", "raised", "missing"))

    def close(self) -> None:
        """Kill the worker, and let go of its pipes. A next one starts after its end; whoever closes need not wait."""
        try:
            self._dismiss()
        finally:
            self._pipes.close()

    def _dismiss(self) -> None:
        """Have it killed."""
        self._kill()

    def _kill(self) -> None:
        """Have it killed, and wait for its end."""
        raise NotImplementedError

    def _ending(self) -> str:
        raise NotImplementedError

    def _ask(self, header: bytes, blob: bytes, budget: Budget, answers: Sequence[str]) -> _Question:
        """Send a numbered question; what comes back counts as its answer only under the same number."""
        if self._asked == self._answered:
            self._since = time.perf_counter()
        self._asked += 1
        try:
            self._pipes.send(frames.joined(frames.numbered(header, self._asked), blob))
        except frames.FrameError as error:
            raise SandboxError(f"A request cannot be sent to the worker: {error}.") from error
        return _Question(self._asked, budget, answers)

    def _hear(self, question: _Question) -> Outcome:
        """What became of the first question that has no answer yet."""
        heard, began = self._await(question.budget), self._since
        self._answered += 1
        if isinstance(heard, Answer):
            self._since, self._before = heard.seconds, heard.written
            seconds = heard.seconds - began
            if heard.header.get("n") != question.number or type(heard.header["n"]) is not int:
                return Outcome("crashed", detail="it answered a question that it was not asked", seconds=seconds)
            return read_answer((heard.header, heard.blob), seconds, question.answers, heard.encoded)
        seconds = time.perf_counter() - began
        if isinstance(heard, Ended):
            return Outcome("crashed", detail=self._ending(), seconds=seconds)
        self._kill()
        return replace(heard, seconds=seconds)

    def _await(self, budget: Budget) -> Answer | Ended | Outcome:
        """The next answer, or what it is to be stopped for.

        What the worker has used is first read after 50 ms: of most calls it never is.
        """
        deadline, before, late = min(self._since + budget.timeout, self._until), None, False
        too_late = OUT_OF_TIME if deadline == self._until else _too_late(budget)
        while not late:
            left = deadline - time.perf_counter()
            late = left <= 0
            heard = self._pipes.receive(min(left, WATCH_SECONDS))
            if heard is not None:
                written = heard.written if isinstance(heard, Answer) else self._pipes.written
                in_time = isinstance(heard, Ended) or heard.seconds <= deadline
                return self._output_excess(budget, written) or (heard if in_time else too_late)
            used = usage(self._pid)
            before = used.seconds if before is None else before
            if excess := self._excess(budget, used, used.seconds - before):
                return excess
        return too_late

    def _excess(self, budget: Budget, used: Usage, seconds: float) -> Outcome | None:
        if seconds > budget.cpu:
            return _stopped("timed_out", f"used more than {budget.cpu:g} s of processor time")
        if used.resident > self._resident + (budget.memory_megabytes + TOUCHED_MEGABYTES) * 2**20:
            return _stopped("out_of_memory", f"used more than {budget.memory_megabytes:g} MiB of memory")
        if used.threads > MAX_THREADS:
            return _stopped("crashed", f"started more than {MAX_THREADS} threads")
        return self._output_excess(budget, self._pipes.written)

    def _output_excess(self, budget: Budget, written: int) -> Outcome | None:
        if written - self._before <= budget.output_megabytes * 2**20:
            return None
        return _stopped("crashed", f"printed more than {budget.output_megabytes:g} MiB")


def _too_late(budget: Budget) -> Outcome:
    return Outcome("timed_out", detail=f"no answer in {budget.timeout:g} s")


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
        self._end_by(self._owner.end)

    def _dismiss(self) -> None:
        self._end_by(self._owner.end_meanwhile)

    def _end_by(self, end: Callable[[int], int]) -> None:
        if self._status is not None:
            return
        try:
            self._status = end(self._known_as)
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
