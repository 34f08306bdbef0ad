"""Code that may not end: interrupted where it stands, by one clock and with one exception."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TICK = 0.1  # seconds between two looks at the clocks
PATIENCE = 3  # a busy machine may take so many times as long by the clock on the wall


class OutOfTimeError(BaseException):
    """Raised inside code that has not ended in time; no `Exception`, which that code might catch."""


@contextmanager
def time_limit(seconds: float, what: str = "this") -> Iterator[None]:
    """Raise OutOfTimeError in the block once it has worked for `seconds`, and again if it catches that.

    Processor time is what counts, so that a busy machine makes nobody late; what waits instead of working may take
    PATIENCE times as long. One limit may stand in another. Without effect outside the main thread, and where the
    platform has no such timers.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    busy, began, over = time.process_time(), time.monotonic(), False

    def look(number: int, frame: object) -> None:
        if over:
            return
        if time.process_time() - busy > seconds:
            raise OutOfTimeError(f"{what} has not ended after {seconds:g} s of processor time")
        if time.monotonic() - began > PATIENCE * seconds:
            raise OutOfTimeError(f"{what} has not ended after {PATIENCE * seconds:g} s")

    handler = signal.signal(signal.SIGALRM, look)
    timer = signal.setitimer(signal.ITIMER_REAL, TICK, TICK)
    try:
        yield
    finally:
        over = True  # first of all: a tick that comes now interrupts nothing
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
