"""What runs in a Dask worker: a bench with warm servers for each run. Student code never runs in the worker itself."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Iterator

from autograder.grading.grader import Grader
from autograder.grading.remarks.details import Details
from autograder.sandbox.sandbox import Isolation, Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import KitError
from autograder.vocabulary.report import Report, to_bytes

IDLE_SECONDS = 120.0


class Bench:
    """What a Dask worker keeps for one run: the grader's data, and as many sandboxes as it has threads at work."""

    def __init__(self, grader: Grader, isolation: Isolation) -> None:
        """Start no server yet; raises SandboxError where this machine cannot give the isolation asked for."""
        self._grader, self._isolation = grader, isolation
        self.layers = Sandbox(isolation=isolation).layers
        self._free: list[Sandbox] = []
        self._lock = threading.Lock()
        self._closed = False
        self._idle = threading.Timer(IDLE_SECONDS, self._rest)

    def grade(self, submission: Submission) -> tuple[Report, Details]:
        """The report of one submission, and what its page shows besides."""
        with self._sandbox() as sandbox:
            return self._grader.grade_and_show(submission, sandbox)

    def close(self) -> None:
        """Stop every server that is not at work, and each of the others once it has nothing to do."""
        self._closed = True
        self._rest()

    @contextlib.contextmanager
    def _sandbox(self) -> Iterator[Sandbox]:
        with self._lock:
            self._idle.cancel()
            sandbox = self._free.pop() if self._free else Sandbox(isolation=self._isolation)
        try:
            yield sandbox
        finally:
            with self._lock:
                self._free.append(sandbox)
                self._idle.cancel()
                self._idle = threading.Timer(0 if self._closed else IDLE_SECONDS, self._rest)
                self._idle.daemon = True
                self._idle.start()

    def _rest(self) -> None:
        """Stop the servers that have nothing to do: the run has ended, or its grader was killed."""
        with self._lock:
            self._idle.cancel()
            free, self._free = self._free, []
        for sandbox in free:
            sandbox.close()


_benches: dict[str, Bench] = {}


def introduce(run: str, grader: Grader, isolation: Isolation) -> tuple[str, ...] | str:
    """Make ready for the submissions of a run: the layers that they get here, or one sentence why they cannot."""
    if not _benches:
        atexit.register(_dismiss_all)
    try:
        if run not in _benches:
            _benches[run] = Bench(grader, isolation)
        return _benches[run].layers
    except KitError as fault:
        return str(fault)


def grade_here(run: str, submission: Submission) -> tuple[str, tuple[bytes, Details] | None]:
    """This worker's address, the report as JSON and its details; None where it has not been introduced to the run."""
    from distributed import get_worker

    bench = _benches.get(run)
    if bench is None:
        return get_worker().address, None
    report, details = bench.grade(submission)
    return get_worker().address, (to_bytes(report), details)


def dismiss(run: str) -> None:
    """Forget a run and stop its servers."""
    bench = _benches.pop(run, None)
    if bench is not None:
        bench.close()


def _dismiss_all() -> None:
    for run in list(_benches):
        dismiss(run)
