"""The warm server and its workers as processes seen from outside: started, asked, watched, killed.

Nothing that a worker says is trusted. It is killed where a call exceeds one of its budgets: time, processor time and
memory are read from /proc every 50 ms, output is counted as it comes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple, cast

from autograder.sandbox.calls import OUT_OF_TIME, Outcome, Program, Request, Status, read_answer
from autograder.sandbox.interpreter import command, environment, packages, readable_paths
from autograder.sandbox.pipes import Answer, Ended, open_pipes
from autograder.sandbox.worker import frames
from autograder.vocabulary.errors import SandboxError

START_SECONDS = 120.0
MAX_THREADS = 512
TOUCHED_MEGABYTES = 256  # pages of torch that a worker touches later than others, and need not answer for
WATCH_SECONDS = 0.05
DOCTOR = "Where the whole kit is installed, `autograder doctor` shows what is missing."


COMPILER = "torch._inductor.config"  # the compiler with all its parts
WARMED_ON_DEMAND = {  # a word in a submission or in probes → a module to be imported before the worker is forked
    "matplotlib": "matplotlib.pyplot",
    "tqdm": "tqdm.auto",
    "pandas": "pandas",
    **dict.fromkeys(("torch.func", "checkpoint", "deterministic", "compile", "dynamo"), COMPILER),
}


class Server:
    """The warm server (see `worker.server`), seen from outside: one socket, answers in the order of questions."""

    def __init__(self, layers: Sequence[str], *, torch: bool = True) -> None:
        """Start it with these layers, and with torch or without; it gets warm while the caller goes on."""
        self.torch = torch
        self.readable = readable_paths(packages())
        self._warmed: set[str] = set()
        self._prepared: dict[str, Any] = {}
        self._unheard = 1  # answers of the server that nobody waited for; the first is that it is warm
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            boot = {"layers": list(layers), "readable": self.readable, "control": theirs.fileno()}
            self._process = subprocess.Popen(
                command({"server": boot}, torch=torch),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=environment(),
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._socket.settimeout(START_SECONDS)

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def fork(
        self, program: Program, descriptors: tuple[int, int, int], megabytes: float, seconds: float
    ) -> tuple[int, int]:
        """Return the process id, as the server sees it and as we do, of a new worker that holds these pipes.

        Of the submission the server sees nothing but which modules of a list it names: what those write on their first
        import, no worker may. The kit's own modules are run and compiled once, not in every worker.

        descriptors          for requests, answers, output
        megabytes, seconds   memory that it may allocate, processor time for its whole life
        """
        modules = {
            module
            for word, module in WARMED_ON_DEMAND.items()
            if word in f"{program.source}{program.probes}"
            and (program.packages is None or module.partition(".")[0] in program.packages)
        }
        question = {"fork": {"megabytes": megabytes, "seconds": seconds}, "warm": sorted(modules - self._warmed)}
        prepared = {"given": dict(program.given), "probes": program.probes}
        with tempfile.TemporaryFile() as file:  # no message has room for it
            if prepared != self._prepared:
                file.write(json.dumps(prepared).encode())
                file.seek(0)
                self._send(question, (*descriptors, file.fileno()))
            else:
                self._send(question, descriptors)
            answer = self._receive()
        self._prepared, self._warmed = prepared, self._warmed | modules
        return int(answer["pid"]), int(answer["outside"])

    def end(self, pid: int) -> int:
        """Kill a worker and its process group; return its wait status."""
        self._send({"end": pid})
        return int(self._receive()["status"])

    def end_meanwhile(self, pid: int) -> int:
        """Do the same for a worker of which nobody asks how it ended: what is asked next is answered once it is gone.

        So nobody waits while the kernel takes back its memory, 4 to 8 ms, who has its answers to judge.
        """
        self._send({"end": pid})
        self._unheard += 1
        return int(signal.SIGKILL)

    def close(self) -> None:
        """Stop the server. It holds nothing worth the second that torch takes to leave in good order."""
        if self._prepared and self._unheard and self.alive:
            with contextlib.suppress(SandboxError):  # its workers are gone first
                self._hear_unheard()
        self._socket.close()
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def _send(self, question: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._socket, [json.dumps(question).encode()], descriptors)
        except OSError as error:
            raise SandboxError(self._explain()) from error

    def _receive(self) -> dict[str, Any]:
        """The answer to the last question; those that nobody waited for come first."""
        self._hear_unheard()
        return self._hear()

    def _hear_unheard(self) -> None:
        while self._unheard:
            self._unheard -= 1
            self._hear()

    def _hear(self) -> dict[str, Any]:
        try:
            message = self._socket.recv(4096)
        except OSError as error:
            raise SandboxError(self._explain()) from error
        answer = json.loads(message or b"null")
        if not isinstance(answer, dict):  # nothing more comes
            raise SandboxError(self._explain())
        return answer

    def _explain(self) -> str:
        self._process.kill()
        stderr = self._process.stderr.read() if self._process.stderr is not None else b""
        self._process.wait()
        return f"The sandbox's warm server stopped: {_last_line(stderr)}. {DOCTOR}"


class _Question(NamedTuple):
    """A question that was sent: its number, the budget of answering it, the kinds of answer to it."""

    number: int
    budget: Request
    answers: Sequence[str]


class Worker:
    """One worker process seen from outside: frames in and out through pipes."""

    _pid: int  # as this process sees it; 0 where nobody can tell

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Speak through these streams, which are closed with the worker."""
        self._asked, self._answered, self._resident, self._until = 0, 0, 0, math.inf
        self._since = 0.0  # when the question that is being answered was begun: as it came, or after the one before
        self._before = 0  # bytes that had been printed when the last answer came
        self._pipes = open_pipes(requests, answers, output)

    def await_ready(self) -> None:
        """Return once the worker listens; whatever keeps it from that is no fault of a submission."""
        answer = self._pipes.receive(START_SECONDS)
        if isinstance(answer, Answer) and answer.header.get("op") == "ready":
            self._resident = usage(self._pid).resident
            return
        self.close()
        raise SandboxError(f"A worker could not be started: {_last_line(self._pipes.tail)}. {DOCTOR}")

    def load(self, program: Program, budget: Request) -> Outcome | None:
        """Load the program; return None once that is done, else the outcome that every request shares."""
        told = {name: getattr(program, name) for name in ("module", "source", "probes", "packages")}
        header = frames.encode_header({"op": "load", "given": dict(program.given), **told})
        self._until = program.until
        outcome = self._hear(self._ask(header, b"", budget, ("loaded", "raised")))
        return None if outcome.detail == "loaded" else replace(outcome, loading=True)

    def calls(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order. All are sent at once: the worker need not wait for the next."""
        kinds = ("observed", "raised", "missing")
        questions = (self._ask(request.header, request.inputs, request, kinds) for request in requests)
        for question in list(questions) if self._pipes.in_step else questions:
            yield self._hear(question)

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
        """How it ended, of which it is known that it does."""
        raise NotImplementedError

    def _ask(self, header: bytes, blob: bytes, budget: Request, answers: Sequence[str]) -> _Question:
        """Send a numbered question; what comes back counts as its answer only under the same number."""
        if self._asked == self._answered:
            self._since = time.perf_counter()
        self._asked += 1
        try:
            self._pipes.send(frames.encode(header, blob, self._asked))
        except frames.FrameError as error:
            raise SandboxError(f"A request cannot be sent to the worker: {error}.") from error
        return _Question(self._asked, budget, answers)

    def _hear(self, question: _Question) -> Outcome:
        """Return what became of the first question that has no answer yet."""
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

    def _await(self, budget: Request) -> Answer | Ended | Outcome:
        """Return the next answer, or what it is to be stopped for.

        What the worker has used is first read after 50 ms: of most calls it never is.
        """
        deadline, before, late = min(self._since + budget.timeout, self._until), None, False
        too_late = Outcome("timed_out", detail=f"no answer in {budget.timeout:g} s")
        too_late = OUT_OF_TIME if deadline == self._until else too_late
        while not late:
            left = deadline - time.perf_counter()
            late = left <= 0
            heard = self._pipes.receive(min(left, WATCH_SECONDS))
            if heard is not None:
                written = heard.written if isinstance(heard, Answer) else self._pipes.written
                in_time = isinstance(heard, Ended) or heard.seconds <= deadline
                return self._excess(budget, written) or (heard if in_time else too_late)
            used = usage(self._pid)
            before = used.seconds if before is None else before
            if excess := self._excess(budget, self._pipes.written, used, used.seconds - before):
                return excess
        return too_late

    def _excess(self, budget: Request, written: int, used: Usage | None = None, seconds: float = 0.0) -> Outcome | None:
        """The budget that it exceeds, as the outcome; None where it keeps to all."""

        def stopped(status: Status, exceeded: str) -> Outcome:
            return Outcome(status, detail=f"stopped, for it {exceeded}", exceeded=exceeded)

        if seconds > budget.cpu:
            return stopped("timed_out", f"used more than {budget.cpu:g} s of processor time")
        allowed = self._resident + (budget.memory_megabytes + TOUCHED_MEGABYTES) * 2**20
        if used is not None and used.resident > allowed:
            return stopped("out_of_memory", f"used more than {budget.memory_megabytes:g} MiB of memory")
        if used is not None and used.threads > MAX_THREADS:
            return stopped("crashed", f"started more than {MAX_THREADS} threads")
        if written - self._before > budget.output_megabytes * 2**20:
            return stopped("crashed", f"printed more than {budget.output_megabytes:g} MiB")
        return None


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

    def __init__(self, server: Server, program: Program, megabytes: float, seconds: float) -> None:
        """Fork it, with so much memory and processor time for its whole life."""
        self._owner = server
        self._status: int | None = None
        to_worker, from_worker, output = os.pipe(), os.pipe(), os.pipe()
        theirs, ours = (to_worker[0], from_worker[1], output[1]), (to_worker[1], from_worker[0], output[0])
        try:
            self._known_as, self._pid = server.fork(program, theirs, megabytes, seconds)
        except BaseException:
            for descriptor in ours:
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        streams = (os.fdopen(ours[0], "wb", buffering=0), *(os.fdopen(fd, "rb", buffering=0) for fd in ours[1:]))
        super().__init__(*(cast("BinaryIO", stream) for stream in streams))

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


# Processes as the kernel shows them


class Usage(NamedTuple):
    """How many threads a process has, how many bytes of memory it holds, its seconds of processor time.

    Of all its threads, the first of which may have ended; memory with swap and with the tables of its pages.
    """

    threads: int
    resident: int
    seconds: float


def usage(pid: int) -> Usage:
    """Read what a process uses from /proc; nothing where nobody tells: it is gone, a zombie, or this is not Linux."""
    try:
        fields: dict[str, str] = {}
        for thread in ("", *(f"/task/{name}" for name in os.listdir(f"/proc/{pid}/task"))):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}{thread}/status", errors="replace") as stream:  # noqa: PTH123
                fields = dict(line.split(":", 1) for line in stream)
            if "VmRSS" in fields:  # of the first thread, unless it has ended and tells of no memory
                break
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
            user, system = stream.read().rpartition(")")[2].split()[11:13]
        resident = 1024 * sum(int(fields[name].split()[0]) for name in ("VmRSS", "VmSwap", "VmPTE"))
        return Usage(int(fields["Threads"]), resident, (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"))
    except (OSError, KeyError, ValueError):
        return Usage(0, 0, 0.0)


def say_ending(code: int) -> str:
    """How a process ended whose exit code this is; negative for a signal."""
    if code >= 0:
        return f"exited with status {code}"
    known = -code in signal.valid_signals() and -code in set(signal.Signals)
    return f"killed by signal {-code}" + (f" ({signal.Signals(-code).name})" if known else "")


def _last_line(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
