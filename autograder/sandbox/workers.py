"""The warm server and its workers as processes seen from outside: started, asked, watched, killed.

Nothing that a worker says is trusted, and whatever it does or leaves undone blocks nobody. It is killed where a call
exceeds one of its budgets: time, processor time and memory are read from /proc every 50 ms, output is counted as it
comes.
"""

from __future__ import annotations

import contextlib
import functools
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
KILLED = -9  # exit code
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

    def fork(self, program: Program, megabytes: float, seconds: float) -> Worker:
        """Return a new worker, with so much memory and processor time for its whole life.

        Of the submission the server sees nothing but which modules of a list it names: what those write on their first
        import, no worker may. The kit's own modules are run once, not in every worker.
        """
        modules = {
            module
            for word, module in WARMED_ON_DEMAND.items()
            if word in f"{program.source}{program.probes}"
            and (program.packages is None or module.partition(".")[0] in program.packages)
        }
        question = {"fork": {"megabytes": megabytes, "seconds": seconds}, "warm": sorted(modules - self._warmed)}
        prepared = {"given": dict(program.given), "probes": program.probes}
        (to_worker, sent), (received, from_worker), (printed, output) = os.pipe(), os.pipe(), os.pipe()
        streams = [open(sent, "wb", 0), open(received, "rb", 0), open(printed, "rb", 0)]  # noqa: PTH123, SIM115
        try:
            with tempfile.TemporaryFile() as file:  # no message has room for it
                file.write(b"" if prepared == self._prepared else json.dumps(prepared).encode())
                file.seek(0)
                self._send(question, (to_worker, from_worker, output, file.fileno()))
                answer = self._receive()
        except BaseException:
            for stream in streams:
                stream.close()
            raise
        finally:
            for descriptor in (to_worker, from_worker, output):
                os.close(descriptor)
        self._prepared, self._warmed = prepared, self._warmed | modules
        return Worker(answer["outside"], functools.partial(self._end, answer["pid"], answer["outside"]), streams)

    def _end(self, number: int, pid: int, wait: bool) -> int:
        """Kill a worker and its process group; return its exit code.

        Who does not `wait` for it, as its memory takes the kernel 4 to 8 ms, can judge meanwhile. What the server is
        asked next is answered once the worker is gone.
        """
        try:
            self._send({"end": number, "wait": wait})
            return int(self._receive()["code"]) if wait else KILLED
        except SandboxError:  # the server is gone; its worker must not stay
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if pid:  # 0 only in namespaces, which end with the server
                    os.killpg(pid, signal.SIGKILL)
            raise

    def close(self) -> None:
        """Stop the server, which first ends those workers that nobody has waited for."""
        self._socket.close()
        if not self._prepared:  # it may still be getting warm
            self._process.kill()
        self._stop()
        cast("BinaryIO", self._process.stderr).close()

    def _send(self, question: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        try:
            socket.send_fds(self._socket, [json.dumps(question).encode()], descriptors)
        except OSError as error:
            raise self._stopped() from error

    def _receive(self) -> dict[str, Any]:
        with contextlib.suppress(OSError):
            if answer := self._socket.recv(4096):
                return cast("dict[str, Any]", json.loads(answer))
        raise self._stopped()

    def _stopped(self) -> SandboxError:
        code, said = self._stop(), cast("BinaryIO", self._process.stderr).read()
        return SandboxError(f"The sandbox's warm server stopped: {_last_line(said, say_ending(code))}. {DOCTOR}")

    def _stop(self) -> int:
        """End the process, if it does not end itself; return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_SECONDS)
        self._process.kill()
        return self._process.wait()


class Worker:
    """One worker process seen from outside: numbered questions go in and answers come out through its pipes."""

    def __init__(self, pid: int, end: Callable[[bool], int], streams: Sequence[BinaryIO]) -> None:
        """Speak through the streams for requests, answers and output, which are closed with the worker.

        pid   as this process sees it; 0 where nobody can tell
        end   kills the process and all that it started and returns its exit code, for which it waits if asked to
        """
        self._pid, self._end, self._pipes = pid, end, open_pipes(*streams)
        self._asked, self._answered, self._resident, self._until = 0, 0, 0, math.inf
        self._since = 0.0  # when the question that is being answered was begun: as it came, or after the one before
        self._before = 0  # bytes that had been printed when the last answer came
        self._is_ended = False

    @classmethod
    def fresh(cls, *, torch: bool) -> Worker:
        """Start a worker in an interpreter of its own: slower, and all that macOS and Windows allow."""
        process = subprocess.Popen(
            command({}, torch=torch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )

        def end(wait: bool) -> int:
            if hasattr(os, "killpg"):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            return process.wait()

        return cls(process.pid, end, cast("Sequence[BinaryIO]", (process.stdin, process.stdout, process.stderr)))

    def await_ready(self) -> None:
        """Return once the worker listens; whatever keeps it from that is no fault of a submission."""
        answer = self._pipes.receive(START_SECONDS)
        if answer is None or answer.header.get("op") != "ready":
            self.close()
            raise SandboxError(f"A worker could not be started: {_last_line(self._pipes.tail)}. {DOCTOR}")
        self._resident = usage(self._pid).resident

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
            if outcome.status == "observed":
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

    def _kill(self, *, wait: bool = True) -> int:
        if self._is_ended:
            return KILLED
        self._is_ended = True
        return self._end(wait)

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
        """Return what became of the first question that has no answer yet, which may have one of these kinds.

        What the worker has used is first read after 50 ms: of most calls it never is.
        """
        began, deadline = self._since, min(self._since + budget.timeout, self._until)
        self._answered += 1
        before, late = None, False
        while True:
            left = deadline - time.perf_counter()
            late = left <= 0
            answer = self._pipes.receive(min(left, WATCH_SECONDS))
            now, used = time.perf_counter(), UNKNOWN
            if answer is None and not self._pipes.ended:
                used = usage(self._pid)
                before = used if before is None else before
            stopped = self._excess(budget, used, 0.0 if before is None else used.seconds - before.seconds)
            if stopped is None and answer is None and self._pipes.ended:
                time.sleep(0.02)  # its pipe closes a moment before it is a zombie that can tell why it ended
                return Outcome("crashed", detail=say_ending(self._kill()), seconds=now - began)
            if stopped is None and (late if answer is None else now > deadline):
                stopped = Outcome("timed_out", detail=f"no answer in {budget.timeout:g} s")
                stopped = OUT_OF_TIME if deadline == self._until else stopped
            if stopped is not None:
                self._kill()
                return replace(stopped, seconds=time.perf_counter() - began)
            if answer is not None:
                break
        self._since, self._before = now, self._pipes.written
        if answer.header.get("n") != self._answered or type(answer.header["n"]) is not int:
            return Outcome("crashed", detail="it answered a question that it was not asked", seconds=now - began)
        return read_answer(answer, now - began, kinds)

    def _excess(self, budget: Request, used: Usage, seconds: float) -> Outcome | None:
        """Return the budget that it exceeds, as the outcome; None where it keeps to all."""
        memory = self._resident + (budget.memory_megabytes + TOUCHED_MEGABYTES) * 2**20
        printed = self._pipes.written - self._before
        limits: tuple[tuple[Status, bool, str], ...] = (
            ("timed_out", seconds > budget.cpu, f"used more than {budget.cpu:g} s of processor time"),
            ("out_of_memory", used.resident > memory, f"used more than {budget.memory_megabytes:g} MiB of memory"),
            ("crashed", used.threads > MAX_THREADS, f"started more than {MAX_THREADS} threads"),
            (
                "crashed",
                printed > budget.output_megabytes * 2**20,
                f"printed more than {budget.output_megabytes:g} MiB",
            ),
        )
        for status, is_exceeded, exceeded in limits:
            if is_exceeded:
                return Outcome(status, detail=f"stopped, for it {exceeded}", exceeded=exceeded)
        return None


# A worker's three pipes: requests to it, answers and output from it


class Pipes:
    """The three pipes of one worker, served by the thread that waits for an answer: meanwhile it hands on requests.

    in_step   whether what is printed before an answer is counted before it, so that questions may be sent ahead
    written   how many bytes have been printed
    tail      the last of them
    ended     whether no further answer can come
    """

    in_step = True

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Take over these streams, which are closed with the pipes."""
        self.tail, self.written, self.ended = b"", 0, False
        self._streams, self._received = (requests, answers, output), bytearray()
        self._requests, self._answers, self._output = (stream.fileno() for stream in self._streams)
        self._begin()

    def receive(self, seconds: float) -> frames.Frame | None:
        """Return the next answer; None where none came within so many seconds, or none can come: it has then ended."""
        deadline, late = time.perf_counter() + seconds, False
        while True:
            try:
                frame = frames.take(self._received, frames.MAX_ANSWER)
                if frame is not None:
                    frame.header  # noqa: B018  # which raises where it is no JSON object
            except frames.FrameError:
                frame, self.ended = None, True
            if frame is not None or self.ended or late:
                break
            left = deadline - time.perf_counter()
            late = left <= 0  # what floods us with output ends here as well
            self._serve(max(0.0, left))
        if self.ended or frame is not None:
            self._drain()
        return frame

    def _take(self, descriptor: int, chunk: bytes) -> None:
        """Take what came through a pipe; nothing is its end."""
        if descriptor == self._answers:
            self._received += chunk
            self.ended = self.ended or not chunk
        else:
            self.tail = (self.tail + chunk)[-OUTPUT_KEPT:]
            self.written += len(chunk)

    def _begin(self) -> None:
        os.set_blocking(self._requests, False)
        self._outbox, self._poll = bytearray(), select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._poll.register(self._output, select.POLLIN)

    def send(self, frame: bytes) -> None:
        """Send it when there is room."""
        if not self._outbox:
            self._poll.register(self._requests, select.POLLOUT)
        self._outbox += frame

    def _serve(self, seconds: float) -> None:
        """Do what can be done, within that time."""
        for descriptor, _ in self._poll.poll(1000 * seconds):
            if descriptor == self._requests:
                try:
                    del self._outbox[: os.write(descriptor, self._outbox[:CHUNK])]
                except BlockingIOError:  # there is less room than was said
                    continue
                except OSError:  # nobody reads any more
                    self._outbox.clear()
            else:
                self._take(descriptor, chunk := os.read(descriptor, CHUNK))
            if not (self._outbox if descriptor == self._requests else chunk):
                self._poll.unregister(descriptor)

    def _drain(self) -> None:
        """Take what has been printed until now, and not what is printed meanwhile."""
        import fcntl
        import termios

        left = int.from_bytes(fcntl.ioctl(self._output, termios.FIONREAD, b"\0" * 4), "little")
        while left > 0 and (chunk := os.read(self._output, min(left, CHUNK))):
            self._take(self._output, chunk)
            left -= len(chunk)

    def close(self) -> None:
        """Let go of the pipes, whose other ends belong to a process that is gone."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()


class ThreadedPipes(Pipes):
    """The same where pipes cannot be polled, on Windows: a thread for each, which closes it."""

    in_step = False

    def _begin(self) -> None:
        self._is_open = True
        self._outgoing: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._incoming: queue.Queue[tuple[int, bytes]] = queue.Queue(maxsize=16)
        work = zip((self._write, self._read, self._read), self._streams, strict=True)
        for target, stream in work:
            threading.Thread(target=target, args=(stream,), daemon=True).start()

    def send(self, frame: bytes) -> None:
        """Send it when there is room."""
        self._outgoing.put(frame)

    def close(self) -> None:
        """Let each thread close its pipe, as soon as no process holds the other end."""
        self._is_open = False
        self._outgoing.put(b"")
        with contextlib.suppress(queue.Empty):  # so that there is room for what is being put there
            while True:
                self._incoming.get_nowait()

    def _serve(self, seconds: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._take(*self._incoming.get(timeout=seconds))

    def _drain(self) -> None:
        while not self._incoming.empty():
            self._take(*self._incoming.get_nowait())

    def _write(self, requests: BinaryIO) -> None:
        with contextlib.suppress(OSError), requests:
            while frame := self._outgoing.get():
                requests.write(frame)
                requests.flush()

    def _read(self, stream: BinaryIO) -> None:
        with stream:
            descriptor, chunk = stream.fileno(), b"begins"
            while chunk and self._is_open:
                try:
                    chunk = os.read(descriptor, CHUNK)
                except OSError:
                    chunk = b""
                self._incoming.put((descriptor, chunk))


open_pipes: Callable[[BinaryIO, BinaryIO, BinaryIO], Pipes] = Pipes if hasattr(select, "poll") else ThreadedPipes


# Processes as the kernel shows them


class Usage(NamedTuple):
    """How many threads a process has, how many bytes of memory it holds, its seconds of processor time.

    Of all its threads, the first of which may have ended; memory with swap and with the tables of its pages.
    """

    threads: int
    resident: int
    seconds: float


UNKNOWN = Usage(0, 0, 0.0)


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
        return UNKNOWN


def say_ending(code: int) -> str:
    """Tell how a process ended whose exit code this is; negative for a signal."""
    if code >= 0:
        return f"exited with status {code}"
    known = -code in signal.valid_signals() and -code in set(signal.Signals)
    return f"killed by signal {-code}" + (f" ({signal.Signals(-code).name})" if known else "")


def _last_line(output: bytes, otherwise: str = "it said nothing") -> str:
    return (output.decode(errors="replace").strip().splitlines() or [otherwise])[-1]
