"""A worker's three pipes: requests to it, answers and output from it. Whatever it does or leaves undone blocks nobody.

`Polled` needs no thread: who waits for an answer hands on requests meanwhile, and takes what was printed before it
gives an answer out. Where pipes cannot be polled, on Windows, `Threaded` has a thread for each.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import threading
import time
from typing import Any, BinaryIO, NamedTuple

from autograder.sandbox.worker import frames

OUTPUT_KEPT = 4096
CHUNK = 2**16
CLOSE_SECONDS = 1.0


class Answer(NamedTuple):
    """A frame from a worker, with the clock and the bytes that had been printed when it came.

    encoded   the header as it came
    """

    header: dict[str, Any]
    blob: bytes
    encoded: bytes
    seconds: float
    written: int


class Ended:
    """What comes instead of an answer where none can come any more."""


ENDED = Ended()


class Pipes:
    """The three pipes of one worker, as the grader holds them.

    in_step   whether `Answer.written` is what was printed before that answer, so that questions may be sent ahead
    written   how many bytes have been printed
    tail      the last of them
    """

    in_step: bool

    def __init__(self) -> None:
        """Begin with nothing printed."""
        self.tail, self.written = b"", 0

    def send(self, frame: bytes) -> None:
        """Send it when there is room."""
        raise NotImplementedError

    def receive(self, seconds: float) -> Answer | Ended | None:
        """Return the next answer; None where none came within so many seconds."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the pipes, whose other ends belong to a process that is gone."""
        raise NotImplementedError

    def _count(self, printed: bytes) -> None:
        self.tail = (self.tail + printed)[-OUTPUT_KEPT:]
        self.written += len(printed)

    def _answer(self, frame: frames.Frame) -> Answer:
        return Answer(frame.header, frame.blob, frame.encoded, time.perf_counter(), self.written)


def open_pipes(requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> Pipes:
    """Take over these streams, which are closed with the pipes."""
    return (Polled if hasattr(select, "poll") else Threaded)(requests, answers, output)


class Polled(Pipes):
    """All three in the thread that waits."""

    in_step = True

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Take over these streams."""
        super().__init__()
        self._streams = requests, answers, output
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

    def receive(self, seconds: float) -> Answer | Ended | None:
        """Return the next answer; None where none came within so many seconds."""
        deadline, late = time.perf_counter() + seconds, False
        try:
            while (frame := frames.take(self._received, frames.MAX_ANSWER)) is None and not self._ended:
                if late:
                    return None
                left = deadline - time.perf_counter()
                late = left <= 0  # what floods us with output ends here as well
                self._serve(max(0.0, left))
            self._drain()
            return ENDED if frame is None else self._answer(frame)
        except frames.FrameError:
            self._drain()
            return ENDED

    def close(self) -> None:
        """Let go of the pipes."""
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()

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
    """What there is to read, b"" at the end; None where there is nothing now."""
    try:
        return os.read(descriptor, most)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class Threaded(Pipes):
    """A thread for each, which closes it."""

    in_step = False

    def __init__(self, requests: BinaryIO, answers: BinaryIO, output: BinaryIO) -> None:
        """Take over these streams."""
        super().__init__()
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: queue.Queue[Answer | Ended] = queue.Queue(maxsize=1)
        work = ((self._receive, answers), (self._send, requests), (self._drain, output))
        self._threads = [threading.Thread(target=target, args=(stream,), daemon=True) for target, stream in work]
        for thread in self._threads:
            thread.start()

    def send(self, frame: bytes) -> None:
        """Send it when there is room."""
        self._outbox.put(frame)

    def receive(self, seconds: float) -> Answer | Ended | None:
        """Return the next answer; None where none came within so many seconds."""
        with contextlib.suppress(queue.Empty):
            return self._inbox.get(timeout=max(0.0, seconds))
        return None

    def close(self) -> None:
        """Let go of the pipes."""
        self._outbox.put(None)
        deadline = time.monotonic() + CLOSE_SECONDS  # a process that left the worker's group may hold its pipes
        while self._threads[0].is_alive() and time.monotonic() < deadline:  # it may be waiting for room in the inbox
            with contextlib.suppress(queue.Empty):
                self._inbox.get(timeout=0.01)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _receive(self, answers: BinaryIO) -> None:
        with contextlib.suppress(frames.FrameError, OSError), answers:
            while (frame := frames.read(answers, frames.MAX_ANSWER)) is not None:
                self._inbox.put(self._answer(frame))
        self._inbox.put(ENDED)

    def _send(self, requests: BinaryIO) -> None:
        with contextlib.suppress(OSError), requests:
            while (frame := self._outbox.get()) is not None:
                frames.send(requests, frame)

    def _drain(self, output: BinaryIO) -> None:
        with contextlib.suppress(OSError), output:
            while chunk := output.read(CHUNK):
                self._count(chunk)
