"""Grading on a Dask cluster that is there already. Student code never runs in a Dask worker itself.

    grader  ── a submission, read and unpacked here ──▶  Dask worker  ── frames ──▶  its own warm server, its workers
            ◀── the report as JSON ────────────────────               ◀── frames ──

Before a Dask worker grades, it is introduced: it says what it runs on, which must be what the grader runs on, and is
given the fixtures once. A worker that joins late, or comes back after it was killed, is introduced when it is met.
What a killed worker had under way, the scheduler gives to another.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import queue
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Self

from autograder.grading.grader import Grader
from autograder.grading.judging import not_graded
from autograder.grading.remarks.details import Details
from autograder.sandbox.sandbox import Isolation
from autograder.submissions.submission import Submission
from autograder.vocabulary.errors import GraderFault, UsageError
from autograder.vocabulary.report import Report, SubmissionInfo, from_bytes
from autograder.vocabulary.text import visible

if TYPE_CHECKING:
    import distributed
from autograder.course.dask_worker import dismiss, grade_here, introduce
from autograder.course.engine import kit

GO_ON = "Run the same command again to go on where it stopped."
CONNECT_SECONDS = 10.0
WORKER_SECONDS = 60.0
ALONE_SECONDS = 600.0  # without a single worker, once there was one
LOOK_SECONDS = 1.0
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
        self.threads = 0

    @property
    def layers(self) -> set[tuple[str, ...]]:
        """The isolation that reports of this run may have."""
        return set(self._layers.values())

    def __enter__(self) -> Self:
        """Connect, and introduce every worker that is there."""
        self._client = _connect(self._address)
        try:
            self._check_scheduler()
            self._await_a_worker()
            self._introduce(sorted(self._client.nthreads()))
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
        """The report of each submission, with its number, in the order in which they are done.

        Submissions are taken from the iterable as there is room for them: no more than `AHEAD` times the cluster's
        threads are under way. What no worker survives is `not_graded`, and so is what no worker could finish.
        """
        waiting = iter(submissions)
        while True:
            room = max(1, AHEAD * self._look()) - len(self._under_way)
            for number, submission in itertools.islice(waiting, max(0, room)):
                self._submit(number, submission)
            if not self._under_way:
                return
            done = self._next()
            if done is not None:
                yield done

    def _submit(self, number: int, submission: Submission) -> None:
        key = f"autograder-{self._run}-{next(self._count)}"
        future = self._client.submit(grade_here, self._run, submission, key=key, pure=False)
        self._under_way[key] = (future, number, submission)
        future.add_done_callback(self._done.put)

    def _next(self) -> tuple[int, Submission, Report, Details] | None:
        """The next submission that is done; None where it had to be given out again."""
        future, number, submission = self._under_way.pop(self._await().key)
        if future.status == "cancelled":
            raise self._lost()
        if future.status == "error":
            return number, submission, *self._failed(submission, future.exception())
        worker, made = self._answer(future.result)
        if made is not None:
            return number, submission, *self._received(submission, worker, *made)
        self._introduce([worker])
        self._submit(number, submission)
        return None

    def _await(self) -> distributed.Future:
        """The next future that is done; raises GraderFault where nobody is left who could do it."""
        while True:
            with contextlib.suppress(queue.Empty):
                return self._done.get(timeout=LOOK_SECONDS)
            if self._client.status in ("closing", "closed"):
                raise self._lost()
            if not self._look() and time.monotonic() - self._seen > ALONE_SECONDS:
                raise GraderFault(f"{self._address} has had no Dask worker for {ALONE_SECONDS:g} s. {GO_ON}")

    def _look(self) -> int:
        """How many submissions the cluster can grade at a time now; asked once a second at most."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            with contextlib.suppress(OSError):  # the client is connecting once more
                self._threads = sum(self._client.nthreads().values())
            self._looked = time.monotonic()
            self._seen = self._looked if self._threads else self._seen
        return self._threads

    def _check_scheduler(self) -> None:
        """Raise GraderFault where the scheduler cannot read what it hands on to workers."""
        try:
            self._client.run_on_scheduler(kit)
        except Exception as error:
            raise _without_kit("scheduler", self._address, error) from None

    def _await_a_worker(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError:
            raise UsageError(
                f"The Dask scheduler at {self._address} has no worker: start some with `dask worker {self._address}`."
            ) from None
        self.threads = self._look()

    def _introduce(self, workers: Sequence[str]) -> None:
        """Check what these workers run on, and give them what they grade with; raises GraderFault where one differs."""
        ours = kit()
        alike = []
        for address, theirs in self._ask(workers, kit).items():
            others = [name for name in ours if theirs.get(name) != ours[name]]
            if others:
                facts = ", ".join(f"{name} {theirs.get(name)} (here {ours[name]})" for name in others)
                fact = f"The Dask worker at {address} would grade with {facts}"
                raise GraderFault(f"{fact}. Install there what is installed here. {GO_ON}")
            alike.append(address)
        for address, layers in self._ask(alike, introduce, self._run, self._grader, self._isolation).items():
            if isinstance(layers, str):
                raise GraderFault(f"The Dask worker at {address} cannot grade. {layers}")
            self._layers[address] = layers

    def _ask(self, workers: Sequence[str], function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """What each worker answers; without those that are gone."""
        answers = self._answer(self._client.run, function, *arguments, workers=list(workers), on_error="return")
        for address, answer in answers.items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise _without_kit("worker", address, answer)
        return {address: answer for address, answer in answers.items() if not isinstance(answer, Exception)}

    def _answer(self, asked: Callable[..., Any], *arguments: object, **options: object) -> Any:
        """What the scheduler answers; raises GraderFault where it went away while it was asked."""
        try:
            return asked(*arguments, **options)
        except (OSError, CancelledError):
            raise self._lost() from None

    def _received(self, submission: Submission, worker: str, data: bytes, details: Details) -> tuple[Report, Details]:
        report = from_bytes(data)
        if report is None or (report.student, report.submission.sha256) != (submission.student, submission.sha256):
            return self._not_graded(submission, f"The Dask worker at {worker} sent no report of this submission.")
        return report, details

    def _failed(self, submission: Submission, error: BaseException | None) -> tuple[Report, Details]:
        died = getattr(error, "last_worker", None)
        if died is not None:
            reason = f"Each Dask worker that graded this came to an end, the last at {died.address}"
        else:
            reason = f"A Dask worker failed while grading ({type(error).__name__}: {visible(str(error), 200)})"
        return self._not_graded(submission, f"{reason}. Its log may say why.")

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
