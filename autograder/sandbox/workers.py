"""The warm server and its workers as processes seen from outside: started, asked, watched, killed.

Nothing that a worker says is trusted, and whatever it does or leaves undone blocks nobody. It is killed where a call
exceeds one of its budgets: time, processor time and memory are read from /proc every 50 ms, output is counted as it
comes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, BinaryIO, NamedTuple, cast

from autograder.sandbox.calls import OUT_OF_TIME, Outcome, Program, Request, Status, read_answer
from autograder.sandbox.interpreter import command, environment, packages, readable_paths
from autograder.sandbox.worker import frames
from autograder.vocabulary.errors import SandboxError

START_SECONDS = 120.0
CLOSE_SECONDS = 1.0
MAX_THREADS = 512
TOUCHED_MEGABYTES = 256  # pages of torch that a worker touches later than others, and need not answer for
WATCH_SECONDS = 0.05
OUTPUT_KEPT = 4096
CHUNK = 2**16
DOCTOR = "Where the whole kit is installed, `autograder doctor` shows what is missing."
COMPILER = "torch._inductor.config"  # the compiler with all its parts
WARMED_ON_DEMAND = {  # a word in a submission or in probes → a module to be imported before the worker is forked
    "matplotlib": "matplotlib.pyplot",
    "tqdm": "tqdm.auto",
    "pandas": "pandas",
    **dict.fromkeys(("torch.func", "checkpoint", "deterministic", "compile", "dynamo"), COMPILER),
}


class Server:
    """The warm server (see `worker.server`): one socket, answers in the order of questions."""

    def __init__(self, layers: Sequence[str], *, torch: bool = True) -> None:
        """Start it with these layers, and with torch or without; it gets warm while the caller goes on."""
        self.torch = torch
        self.readable = readable_paths(packages())
        self._warmed: set[str] = set()
        self._prepared: dict[str, Any] = {}
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

    def end(self, pid: int, *, wait: bool = True) -> int:
        """Kill a worker and its process group; return its wait status.

        Who does not `wait` for it, as its memory takes the kernel 4 to 8 ms, can judge meanwhile. What the server is
        asked next is answered once the worker is gone.
        """
        self._send({"end": pid, "wait": wait})
        return int(self._receive()["status"] if wait else signal.SIGKILL)

    def close(self) -> None:
        """Stop the server, which first ends those workers that nobody has waited for."""
        self._socket.close()
        if self._prepared:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_SECONDS)
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
        try:
            answer = self._socket.recv(4096)
        except OSError as error:
            raise SandboxError(self._explain()) from error
        if not answer:  # it has ended
            raise SandboxError(self._explain())
        return cast("dict[str, Any]", json.loads(answer))

    def _explain(self) -> str:
        self._process.kill()
        stderr = self._process.stderr.read() if self._process.stderr is not None else b""
        self._process.wait()
        return f"The sandbox's warm server stopped: {_last_line(stderr)}. {DOCTOR}"


# Workers


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
        with contextlib.suppress(EOFError):
            answer = self._pipes.receive(START_SECONDS)
            if answer is not None and answer.header.get("op") == "ready":
                self._resident = usage(self._pid).resident
                return
        self.close()
        raise SandboxError(f"A worker could not be started: {_last_line(self._pipes.tail)}. {DOCTOR}")

    def load(self, program: Program, budget: Request, needed: Sequence[str] = ()) -> Outcome | None:
        """Load the program; return None once that is done, else the outcome that every request shares.

        needed   the probes that will be asked for; raises SandboxError where one is missing, or where they fail
        """
        own = {"given": dict(program.given), "probes": program.probes, "needed": list(needed)}
        handed_in = {name: getattr(program, name) for name in ("module", "source", "packages")}
        self._until = program.until
        for header in ({"op": "define", **own}, {"op": "load", "given": list(program.given), **handed_in}):
            self._ask(frames.encode_header(header), b"")
            outcome = self._hear(budget, ("loaded", "raised"))
            if outcome.detail == "loaded":
                continue
            if header["op"] == "load" or outcome.detail == OUT_OF_TIME.detail:
                return replace(outcome, loading=True)
            reason = f"{outcome.raised.types[0]}: {outcome.raised.message}" if outcome.raised else outcome.detail
            raise SandboxError(f"The course's own probes or given modules could not be loaded: {reason}.")
        return None

    def calls(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        """Yield the outcome of each request, in order. All are sent at once: the worker need not wait for the next."""
        at_once = len(requests) if self._pipes.in_step else 1
        for place, request in enumerate(requests):
            if place % at_once == 0:
                for sent in requests[place : place + at_once]:
                    self._ask(sent.header, sent.inputs)
            yield self._hear(request, ("observed", "raised", "missing"))

    def close(self) -> None:
        """Kill the worker, and let go of its pipes. A next one starts after its end; whoever closes need not wait."""
        try:
            self._kill(wait=False)
        finally:
            self._pipes.close()

    def _kill(self, *, wait: bool = True) -> None:
        """Have it killed."""
        raise NotImplementedError

    def _ending(self) -> str:
        """Tell how it ended, of which it is known that it does."""
        raise NotImplementedError

    def _ask(self, header: bytes, blob: bytes) -> None:
        """Send a numbered question; what comes back counts as its answer only under the same number."""
        if self._asked == self._answered:
            self._since = time.perf_counter()
        self._asked += 1
        try:
            self._pipes.send(frames.encode(header, blob, self._asked))
        except frames.FrameError as error:
            raise SandboxError(f"A request cannot be sent to the worker: {error}.") from error

    def _hear(self, budget: Request, kinds: Sequence[str]) -> Outcome:
        """Return what became of the first question that has no answer yet, which may have one of these kinds."""
        began = self._since
        self._answered += 1
        try:
            heard = self._await(budget)
        except EOFError:
            return Outcome("crashed", detail=self._ending(), seconds=time.perf_counter() - began)
        if isinstance(heard, Outcome):
            self._kill()
            return replace(heard, seconds=time.perf_counter() - began)
        self._since, self._before = heard.seconds, heard.written
        seconds = heard.seconds - began
        if heard.header.get("n") != self._answered or type(heard.header["n"]) is not int:
            return Outcome("crashed", detail="it answered a question that it was not asked", seconds=seconds)
        return read_answer(heard.frame, seconds, kinds)

    def _await(self, budget: Request) -> Answer | Outcome:
        """Return the next answer, or what the worker is to be stopped for; raise EOFError where it ended.

        What it has used is first read after 50 ms: of most calls it never is.
        """
        deadline, before, late = min(self._since + budget.timeout, self._until), None, False
        too_late = Outcome("timed_out", detail=f"no answer in {budget.timeout:g} s")
        too_late = OUT_OF_TIME if deadline == self._until else too_late
        while not late:
            left = deadline - time.perf_counter()
            late = left <= 0
            try:
                heard = self._pipes.receive(min(left, WATCH_SECONDS))
            except EOFError:
                if excess := self._excess(budget, self._pipes.written):
                    return excess
                raise
            if heard is not None:
                return self._excess(budget, heard.written) or (heard if heard.seconds <= deadline else too_late)
            used = usage(self._pid)
            before = used.seconds if before is None else before
            if excess := self._excess(budget, self._pipes.written, used, used.seconds - before):
                return excess
        return too_late

    def _excess(self, budget: Request, written: int, used: Usage | None = None, seconds: float = 0.0) -> Outcome | None:
        """Return the budget that it exceeds, as the outcome; None where it keeps to all."""

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
            env=environment(),
            start_new_session=True,
        )
        self._pid = self._process.pid
        streams = self._process.stdin, self._process.stdout, self._process.stderr
        requests, answers, output = (cast("BinaryIO", stream) for stream in streams)
        super().__init__(requests, answers, output)

    def _kill(self, *, wait: bool = True) -> None:
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

    def _kill(self, *, wait: bool = True) -> None:
        if self._status is not None:
            return
        try:
            self._status = self._owner.end(self._known_as, wait=wait)
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


# A worker's three pipes: requests to it, answers and output from it


class Answer(NamedTuple):
    """A frame from a worker, with the clock and the bytes that had been printed when it came."""

    frame: frames.Frame
    header: dict[str, Any]
    seconds: float
    written: int


class Pipes:
    """The three pipes of one worker, served by the thread that waits for an answer.

    It hands on requests meanwhile, and takes what was printed before it gives an answer out.

    in_step   whether `Answer.written` is what was printed before that answer, so that questions may be sent ahead
    written   how many bytes have been printed
    tail      the last of them
    """

    in_step = True

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Take over these streams, which are closed with the pipes."""
        self.tail, self.written = b"", 0
        self._streams = requests, answers, output
        self._begin()

    def _begin(self) -> None:
        self._requests, self._answers, self._output = (stream.fileno() for stream in self._streams)
        for stream in self._streams:
            os.set_blocking(stream.fileno(), False)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._poll.register(self._output, select.POLLIN)
        self._outbox, self._received, self._ended = bytearray(), bytearray(), False

    def send(self, frame: bytes) -> None:
        """Send it when there is room."""
        if not self._outbox:
            self._poll.register(self._requests, select.POLLOUT)
        self._outbox += frame

    def receive(self, seconds: float) -> Answer | None:
        """Return the next answer, None where none came within so many seconds; raise EOFError where none can come."""
        deadline, late = time.perf_counter() + seconds, False
        try:
            while (frame := frames.take(self._received, frames.MAX_ANSWER)) is None and not self._ended:
                if late:
                    return None
                left = deadline - time.perf_counter()
                late = left <= 0  # what floods us with output ends here as well
                self._serve(max(0.0, left))
            self._drain()
            if frame is None:
                raise EOFError
            return self._answer(frame)
        except frames.FrameError as error:
            self._drain()
            raise EOFError from error

    def close(self) -> None:
        """Let go of the pipes, whose other ends belong to a process that is gone."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()

    def _answer(self, frame: frames.Frame) -> Answer:
        return Answer(frame, frame.header, time.perf_counter(), self.written)

    def _count(self, printed: bytes) -> None:
        self.tail = (self.tail + printed)[-OUTPUT_KEPT:]
        self.written += len(printed)

    def _serve(self, seconds: float) -> None:
        """Do what can be done, within that time."""
        ready = dict(self._poll.poll(1000 * seconds))
        if self._output in ready:
            self._take_output(CHUNK)
        if self._requests in ready:
            try:
                del self._outbox[: os.write(self._requests, self._outbox[:CHUNK])]
            except BlockingIOError:
                pass  # there is less room than was said
            except OSError:  # nobody reads any more
                self._outbox.clear()
            if not self._outbox:
                self._poll.unregister(self._requests)
        if self._answers in ready:
            chunk = _read(self._answers, CHUNK)
            self._ended = chunk == b""
            self._received += chunk or b""

    def _take_output(self, most: int) -> int:
        """Take so many bytes or fewer; return how many."""
        chunk = _read(self._output, most)
        if chunk == b"":
            self._poll.unregister(self._output)
        self._count(chunk or b"")
        return len(chunk or b"")

    def _drain(self) -> None:
        """Take what has been printed until now, and not what is printed meanwhile."""
        import fcntl
        import termios

        left = int.from_bytes(fcntl.ioctl(self._output, termios.FIONREAD, b"\0" * 4), "little")
        while left > 0 and (taken := self._take_output(min(left, CHUNK))):
            left -= taken


def _read(descriptor: int, most: int) -> bytes | None:
    """Return what there is to read, b"" at the end; None where there is nothing now."""
    try:
        return os.read(descriptor, most)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class ThreadedPipes(Pipes):
    """The same where pipes cannot be polled, on Windows: a thread for each, which closes it."""

    in_step = False

    def _begin(self) -> None:
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: queue.Queue[Answer | None] = queue.Queue(maxsize=1)
        self._is_open = True
        work = zip((self._pass_on, self._collect, self._count_output), self._streams, strict=True)
        for target, stream in work:
            threading.Thread(target=target, args=(stream,), daemon=True).start()

    def send(self, frame: bytes) -> None:
        """Send it when there is room."""
        self._frames.put(frame)

    def receive(self, seconds: float) -> Answer | None:
        """Return the next answer, None where none came within so many seconds; raise EOFError where none can come."""
        try:
            answer = self._inbox.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None
        if answer is None:
            raise EOFError
        return answer

    def close(self) -> None:
        """Let each thread close its pipe, as soon as no process holds the other end."""
        self._is_open = False
        self._frames.put(None)
        with contextlib.suppress(queue.Empty):  # so that there is room for what is being put there
            self._inbox.get_nowait()

    def _pass_on(self, requests: BinaryIO) -> None:
        with contextlib.suppress(OSError), requests:
            while (frame := self._frames.get()) is not None:
                requests.write(frame)
                requests.flush()

    def _collect(self, answers: BinaryIO) -> None:
        with contextlib.suppress(frames.FrameError, OSError), answers:
            while self._is_open and (frame := frames.read(answers, frames.MAX_ANSWER)) is not None:
                self._inbox.put(self._answer(frame))
        self._inbox.put(None)

    def _count_output(self, output: BinaryIO) -> None:
        with contextlib.suppress(OSError), output:
            while chunk := os.read(output.fileno(), CHUNK):
                self._count(chunk)


open_pipes: Callable[[BinaryIO, BinaryIO, BinaryIO], Pipes] = Pipes if hasattr(select, "poll") else ThreadedPipes


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
    """Tell how a process ended whose exit code this is; negative for a signal."""
    if code >= 0:
        return f"exited with status {code}"
    known = -code in signal.valid_signals() and -code in set(signal.Signals)
    return f"killed by signal {-code}" + (f" ({signal.Signals(-code).name})" if known else "")


def _last_line(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
