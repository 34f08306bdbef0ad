"""Grade on a Dask cluster that is there already. Student code never runs in a Dask worker itself.

    grader  ── a submission, read and unpacked here ──▶  Dask worker  ── frames ──▶  its own warm server, its workers
            ◀── the report as JSON ────────────────────               ◀── frames ──

Before a Dask worker grades, it is prepared: it says what it runs on, which must be what the grader runs on, and is
given the fixtures once. A worker that joins late, or comes back after it was killed, is prepared when it is met.
What a killed worker had under way, the scheduler gives to another.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import itertools
import logging
import queue
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from autograder.checking.fault_lines import fault_lines
from autograder.course.results import kit
from autograder.grading.details import Details
from autograder.grading.grader import Grader, not_graded
from autograder.sandbox.sandbox import Isolation, Sandbox
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, KitError, UsageError
from autograder.vocabulary.report import Report, SubmissionInfo, from_bytes, to_bytes
from autograder.vocabulary.text import visible

if TYPE_CHECKING:
    import distributed

GO_ON = "Run the same command again to go on where it stopped."
CONNECT_SECONDS = 10.0
WORKER_SECONDS = 60.0  # until the first worker is there
ALONE_SECONDS = 600.0  # without a single worker, once there was one
TELL_SECONDS = 5.0  # a worker that is started again takes less
LOOK_SECONDS = 1.0
IDLE_SECONDS = 120.0  # until a Dask worker stops servers that have nothing to do
AHEAD = 2  # submissions that wait at each thread of the cluster, the one it grades included


# In the grader


class Cluster:
    """A Dask cluster, for the length of one run. Use as a context manager."""

    def __init__(self, address: str, grader: Grader, isolation: Isolation) -> None:
        """Connect to nothing yet; `address` is the scheduler's, such as tcp://host:8786."""
        self._address, self._grader, self._isolation = address, grader, isolation
        self._run = uuid.uuid4().hex
        self._layers: dict[str, tuple[str, ...]] = {}
        self._done: queue.SimpleQueue[distributed.Future] = queue.SimpleQueue()
        self._under_way: dict[str, tuple[distributed.Future, int, Submission]] = {}
        self._count = itertools.count()
        self._threads, self._looked, self._seen = 0, -LOOK_SECONDS, time.monotonic()
        self._is_alone = False
        self.threads = 0

    @property
    def layers(self) -> set[tuple[str, ...]]:
        """The isolation that reports of this run may have."""
        return set(self._layers.values())

    def __enter__(self) -> Self:
        """Connect, and prepare every worker that is there; raises UsageError where none comes."""
        self._client = _connect(self._address)
        try:
            try:  # the scheduler reads what it hands on to workers
                self._client.run_on_scheduler(kit)
            except Exception as error:
                raise _without_kit("scheduler", self._address, error) from None
            if not self._client.nthreads():
                self._say_alone(WORKER_SECONDS)
            try:
                self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
            except TimeoutError:
                advice = f"start some with `dask worker {self._address}`"
                raise UsageError(f"The Dask scheduler at {self._address} has no worker: {advice}.") from None
            self.threads = self._count_threads()
            self._prepare(sorted(self._client.nthreads()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Take back what is under way, let the workers forget this run, and disconnect."""
        with contextlib.suppress(Exception):  # the cluster may be gone, and this run has ended
            self._client.cancel([future for future, _, _ in self._under_way.values()])
            self._client.run(dismiss, self._run, on_error="ignore")
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)

    def grade(self, submissions: Iterable[tuple[int, Submission]]) -> Iterator[tuple[int, Submission, Report, Details]]:
        """Yield the report of each submission, with its number, in the order in which they are done.

        Submissions are taken from the iterable as there is room for them: no more than `AHEAD` times the cluster's
        threads are under way. What no worker survives is `not_graded`, and so is what no worker could finish.
        """
        waiting = iter(submissions)
        while True:
            room = max(1, AHEAD * self._count_threads()) - len(self._under_way)
            for number, submission in itertools.islice(waiting, max(0, room)):
                self._submit(number, submission)
            if not self._under_way:
                return
            future, number, submission = self._under_way.pop(self._next_done().key)
            if future.status == "cancelled":
                raise self._lost()
            try:
                worker, result = self._result(future)
            except GraderFault:
                raise
            except Exception as error:  # it failed, or was lost with its worker and could not be done again
                reason = f"A Dask worker failed while grading ({type(error).__name__}: {visible(str(error), 200)})"
                if (died := getattr(error, "last_worker", None)) is not None:
                    reason = f"Each Dask worker that graded this came to an end, the last at {died.address}"
                yield number, submission, *self._not_graded(submission, f"{reason}. Its log may say why.")
                continue
            if result is None:
                self._prepare([worker])
                self._submit(number, submission)
                continue
            report, details = from_bytes(result[0]), result[1]
            if report is None or (report.student, report.submission.sha256) != (submission.student, submission.sha256):
                sentence = f"The Dask worker at {worker} sent no report of this submission."
                report, details = self._not_graded(submission, sentence)
            yield number, submission, report, details

    def _submit(self, number: int, submission: Submission) -> None:
        key = f"autograder-{self._run}-{next(self._count)}"
        future = self._client.submit(grade_in_worker, self._run, submission, key=key, pure=False)
        self._under_way[key] = (future, number, submission)
        future.add_done_callback(self._done.put)

    def _next_done(self) -> distributed.Future:
        """Wait for the next future that is done; raises GraderFault where nobody is left who could do it."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self._done.get(timeout=LOOK_SECONDS)
            self._check_workers()

    def _result(self, future: distributed.Future) -> Any:
        """Fetch the result of a future; Dask computes it again where the worker that held it is gone."""
        while True:
            try:
                return future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                self._check_workers()
            except (OSError, CancelledError):
                raise self._lost() from None

    def _check_workers(self) -> None:
        """Raise GraderFault where nobody is left who could grade; say so where that may still change."""
        if self._client.status in ("closing", "closed"):
            raise self._lost()
        alone = 0.0 if self._count_threads() else time.monotonic() - self._seen
        if alone > ALONE_SECONDS:
            raise GraderFault(f"{self._address} has had no Dask worker for {ALONE_SECONDS:g} s. {GO_ON}")
        if alone > TELL_SECONDS and not self._is_alone:
            self._say_alone(ALONE_SECONDS)
        self._is_alone = alone > TELL_SECONDS

    def _say_alone(self, seconds: float) -> None:
        text = f"The Dask scheduler at {self._address} has no worker: waiting for one, {seconds:g} s at most."
        print(f"autograder: {text}", file=sys.stderr)

    def _count_threads(self) -> int:
        """Count how many submissions the cluster can grade at a time; it is asked once a second at most."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            with contextlib.suppress(OSError):  # the client is connecting once more
                self._threads = sum(self._client.nthreads().values())
            self._looked = time.monotonic()
            self._seen = self._looked if self._threads else self._seen
        return self._threads

    def _prepare(self, workers: Sequence[str]) -> None:
        """Check what these workers run on, and give them what they grade with; raises GraderFault where one differs."""
        ours, alike = kit(), []
        for address, theirs in self._run_on(workers, kit).items():
            if others := [name for name in ours if theirs.get(name) != ours[name]]:
                facts = ", ".join(f"{name} {theirs.get(name)} (here {ours[name]})" for name in others)
                fact = f"The Dask worker at {address} would grade with {facts}"
                raise GraderFault(f"{fact}. Install there what is installed here. {GO_ON}")
            alike.append(address)
        for address, layers in self._run_on(alike, prepare, self._run, self._grader, self._isolation).items():
            if isinstance(layers, str):
                raise GraderFault(f"The Dask worker at {address} cannot grade. {layers}")
            self._layers[address] = layers

    def _run_on(self, workers: Sequence[str], function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Call a function in each worker; what it returns, without workers that are gone."""
        try:
            answers = self._client.run(function, *arguments, workers=list(workers), on_error="return")
        except (OSError, CancelledError):
            raise self._lost() from None
        for address, answer in answers.items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise _without_kit("worker", address, answer)
        return {address: answer for address, answer in answers.items() if not isinstance(answer, Exception)}

    def _not_graded(self, submission: Submission, reason: str) -> tuple[Report, Details]:
        report = Report(
            student=submission.student,
            assignment=self._grader.assignment.name,
            submission=SubmissionInfo(submission.path, submission.sha256),
            fixtures=self._grader.fixtures.sha256,
            isolation=next(iter(self._layers.values()), ()),
            items=tuple(not_graded(item, reason) for item in self._grader.assignment.items),
            identity=submission.identity,
        )
        return report, Details(submission.sha256, self._grader.fixtures.sha256)

    def _lost(self) -> GraderFault:
        return GraderFault(f"The Dask scheduler at {self._address} does not answer any more. {GO_ON}")


def _without_kit(what: str, address: str, error: Exception) -> GraderFault:
    fact = f"{type(error).__name__}: {visible(str(error), 200)}"
    return GraderFault(f"The Dask {what} at {address} cannot run this kit ({fact}): install it there.")


def _connect(address: str) -> distributed.Client:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise UsageError("--scheduler needs Dask, which is not installed: `pip install -e '.[dask]'`.") from None
    for name in ("distributed", "distributed.client"):  # what they would log, the run says in a sentence
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with contextlib.suppress(OSError, ValueError):
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    gc.collect()  # ends the loop of a client that found nobody; collected while another starts, both would wait forever
    advice = "start one with `dask scheduler` and give the address that it prints"
    raise UsageError(f"No Dask scheduler answers at {address}: {advice}.")


# In a Dask worker


class Bench:
    """What a Dask worker keeps for one run: the grader's data, and as many sandboxes as it has threads at work."""

    def __init__(self, grader: Grader, isolation: Isolation) -> None:
        """Start no server yet; raises SandboxError where this machine cannot give the isolation asked for."""
        self.grader, self._isolation = grader, isolation
        self.layers = Sandbox(isolation=isolation).layers
        self._free: list[Sandbox] = []
        self._lock = threading.Lock()
        self._idle = threading.Timer(0, self.stop_free)
        self._patience = IDLE_SECONDS

    @contextlib.contextmanager
    def sandbox(self) -> Iterator[Sandbox]:
        """Lend a sandbox for one submission: one that is warm already, where there is one."""
        with self._lock:
            self._idle.cancel()
            sandbox = self._free.pop() if self._free else Sandbox(isolation=self._isolation)
        try:
            yield sandbox
        finally:
            with self._lock:
                self._free.append(sandbox)
                self._idle.cancel()
                self._idle = threading.Timer(self._patience, self.stop_free)  # the grader may be killed
                self._idle.daemon = True
                self._idle.start()

    def stop_free(self, patience: float = IDLE_SECONDS) -> None:
        """Stop every server that is not at work; each of the others is stopped so long after its work."""
        with self._lock:
            self._idle.cancel()
            free, self._free, self._patience = self._free, [], patience
        for sandbox in free:
            sandbox.close()


_benches: dict[str, Bench] = {}


def prepare(run: str, grader: Grader, isolation: Isolation) -> tuple[str, ...] | str:
    """Make ready for the submissions of a run: the layers that they get here, or one sentence why they cannot."""
    try:
        if run not in _benches:
            _benches[run] = Bench(grader, isolation)
            atexit.register(dismiss, run)
        return _benches[run].layers
    except KitError as fault:
        return str(fault)


def grade_in_worker(run: str, submission: Submission) -> tuple[str, tuple[bytes, Details] | None]:
    """Grade, and return this worker's address, the report as JSON and its details; None where nothing was prepared."""
    from distributed import get_worker

    bench = _benches.get(run)
    if bench is None:
        return get_worker().address, None
    with bench.sandbox() as sandbox:
        report, details = bench.grader.grade_and_show(submission, sandbox)
        lines = fault_lines(bench.grader, submission, report.items, sandbox)
    return get_worker().address, (to_bytes(report), replace(details, lines=lines))


def dismiss(run: str) -> None:
    """Forget a run and stop its servers."""
    if (bench := _benches.pop(run, None)) is not None:
        bench.stop_free(patience=0)
