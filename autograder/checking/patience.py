"""A sandbox as a student waits for it: what runs is told, and one function that hangs costs seconds, not minutes."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Self, TextIO

from autograder.checking.terminal import CLEAR_LINE, has_colours
from autograder.grading.items import Assignment
from autograder.sandbox.calls import Outcome, Program, Request
from autograder.sandbox.sandbox import Sandbox

LONGEST = 12.0  # seconds of one call: in grading some may take longer, and no right answer does
TOLD_AFTER = 3.0
LOOK = 0.2
SKIPPED = "an earlier call of {} did not end, and a check waits for one alone; grading tries every item"


class PatientSandbox:
    """Runs as `sandbox` does. After a call that did not end in time, the other cases of that function are not tried."""

    def __init__(self, sandbox: Sandbox, stream: TextIO | None = None) -> None:
        """Tell of what runs on `stream`, stderr without one."""
        self._sandbox, self._stream = sandbox, stream or sys.stderr

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that the program runs under."""
        return self._sandbox.layers

    def run(self, program: Program, requests: Sequence[Request], *, load_timeout: float) -> list[Outcome]:
        """The outcome of each request, in order.

        All cases of a function are lost with one of them; those that were lost to a crash are tried on their own.
        """
        shared = [replace(one, item=one.function) for one in requests]
        with Telling(self._stream, len(requests)) as telling:
            self._sandbox.begun = telling.begun
            outcomes = self._sandbox.run(program, shared, load_timeout=load_timeout)
            crashed = {one.item for one, outcome in zip(requests, outcomes, strict=True) if outcome.status == "crashed"}
            lost = _not_run(requests, outcomes, slow=False)
            again = [at for at in lost if requests[at].item not in crashed]
            found = self._sandbox.run(program, [requests[at] for at in again], load_timeout=load_timeout)
        for at, outcome in zip(again, found, strict=True):
            outcomes[at] = outcome
        for at in _not_run(requests, outcomes, slow=True):
            outcomes[at] = replace(outcomes[at], detail=SKIPPED.format(requests[at].function))
        return outcomes


def impatient(assignment: Assignment) -> Assignment:
    """The assignment with no call that may take longer than a student waits."""
    return replace(
        assignment, items=tuple(replace(item, timeout=min(item.timeout, LONGEST)) for item in assignment.items)
    )


def _not_run(requests: Sequence[Request], outcomes: Sequence[Outcome], *, slow: bool) -> list[int]:
    """Which requests were not run, of functions of which a call took too long, or of the others."""
    both = list(zip(requests, outcomes, strict=True))
    late = {one.function for one, outcome in both if outcome.status == "timed_out"}
    return [
        at for at, (one, outcome) in enumerate(both) if outcome.status == "not_run" and (one.function in late) == slow
    ]


class Telling:
    """Says which function runs: in a terminal a line that goes away, anywhere a sentence on one that takes long."""

    def __init__(self, stream: TextIO, total: int) -> None:
        """Say nothing yet; `total` is how many calls there will be."""
        self._stream, self._fleeting = stream, has_colours(stream)
        self._lock, self._ended = threading.Lock(), threading.Event()
        self._now, self._since, self._done, self._total = "", 0.0, 0, total

    def __enter__(self) -> Self:
        """Begin to look at the clock."""
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Look no more, and leave no line behind."""
        self._ended.set()
        self._thread.join()
        if self._fleeting:
            self._say(CLEAR_LINE)

    def begun(self, request: Request) -> None:
        """Note a call that is about to be made."""
        with self._lock:
            self._now, self._since, self._done = request.function, time.monotonic(), self._done + 1
        if self._fleeting:
            self._say(f"{CLEAR_LINE}{request.function} ({min(self._done, self._total)} of {self._total}) …")

    def _watch(self) -> None:
        told = set()
        while not self._ended.wait(LOOK):
            with self._lock:
                function, seconds = self._now, time.monotonic() - self._since
            if function and seconds >= TOLD_AFTER and function not in told:
                told.add(function)
                clear = CLEAR_LINE if self._fleeting else ""
                self._say(f"{clear}{function} has been running for {seconds:.0f} s: does a loop in it ever end?\n")

    def _say(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
