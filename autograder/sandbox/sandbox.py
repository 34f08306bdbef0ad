"""Run untrusted code on a case: source and inputs in, an Outcome out. Nothing that comes out is trusted.

On Linux a warm server forks a worker for each submission; elsewhere each worker is a fresh interpreter (see `workers`).
A worker is killed from outside when a call exceeds a budget of its item: wall clock, processor time, memory, output.
What follows a kill or a crash runs in a new worker, so a fault stays with the item that caused it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal, Self, TypeVar

from autograder.sandbox.calls import MEMORY_MEGABYTES, OUT_OF_TIME, OUTPUT_MEGABYTES, Outcome, Program, Request
from autograder.sandbox.interpreter import KIT_ROOT, readable_paths, refuse_if_within_reach
from autograder.sandbox.isolation.layers import AROUND, LAYERS
from autograder.sandbox.workers import Server, Worker
from autograder.vocabulary.errors import SandboxError
from autograder.vocabulary.text import STRICT

Isolation = Literal["strict", "best", "none"]
Task = TypeVar("Task")
Result = TypeVar("Result")

KEPT = (2 * 2**20, 64 * 2**20)  # bytes of headers and of tensors that the answers of one submission may have in all
TOO_MUCH = Outcome("crashed", detail="its answers were together larger than a submission's may be")
NOT_NEEDED = Outcome("not_run", detail="an earlier case was enough")
NOT_AGAIN = Outcome("not_run", detail="an earlier case of this item hung, crashed or ran out of memory")


class Sandbox:
    """Runs submissions one after another; owns a warm server where the platform can fork. Use as a context manager.

    All cases of a submission run in one worker, in the order of the requests, and one can leave word for a later one.
    Whoever asks puts hidden cases last, so that nothing which is shown is worked out after them; requests are sent
    ahead of each other's answers, but no hidden one before what is shown is answered. A worker for each hidden case,
    forked after loading, was measured: 21 ms for the fork alone, so over a second a submission.
    """

    def __init__(self, *, isolation: Isolation = "best", fork: bool | None = None) -> None:
        """Start no worker yet. Raise SandboxError where `strict` is asked for and this machine cannot give it.

        isolation   strict: Landlock and seccomp, or nothing runs; best: every layer that holds here; none: none
        fork        False asks for a fresh interpreter per worker, as on macOS and Windows, with no layers
        """
        self._fork = sys.platform == "linux" if fork is None else fork
        self._isolation: Isolation = isolation
        if isolation == "strict":
            self._layers  # noqa: B018 (or raise)
        self._server: Server | None = None
        self.begun: Callable[[Request], None] = lambda request: None  # told of each call before it is made

    @functools.cached_property
    def _layers(self) -> tuple[str, ...]:
        no_layers = dict.fromkeys((*LAYERS, *AROUND), "workers are not forked")
        return layers_for(self._isolation, None if self._fork else no_layers)

    def __enter__(self) -> Self:
        """Return the sandbox; the server starts with the first submission."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.close()

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the layers of isolation that a worker runs under."""
        return ("process", *self._layers)

    def start(self, *, torch: bool = True) -> None:
        """Let the server get warm while the caller does something else; the first submission would start it too."""
        if self._fork:
            self._running_server(torch=torch)

    def close(self) -> None:
        """Stop the server; the next submission would start a new one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def run(
        self,
        program: Program,
        requests: Sequence[Request],
        *,
        load_timeout: float,
        enough: Callable[[Request, Outcome], bool] = lambda request, outcome: False,
    ) -> list[Outcome]:
        """Return the outcome of each request, in order; once an outcome is `enough`, the rest is `not_run`.

        After a worker is lost the rest of that item is `not_run`; whatever else is left gets a new worker, those of the
        same function after all others: they may be lost as well, and should cost no others their time. One that ran
        out of memory is replaced at once: what fills it may still be there. Where the program cannot be loaded, every
        request shares that outcome. What is left when the program's time is over is `not_run`.
        Raises SandboxError where no worker could be started: that is the grader's fault.
        """
        outcomes, left = dict[int, Outcome](), list(range(len(requests)))  # by place
        slow, lost = set[str](), dict[str, Outcome]()
        memory = max((request.memory_megabytes for request in requests), default=MEMORY_MEGABYTES)
        output = max((request.output_megabytes for request in requests), default=OUTPUT_MEGABYTES)
        loading = Request("", "", "", {}, b"", load_timeout, 2 * load_timeout, memory, output)
        seconds = loading.cpu + sum(request.cpu for request in requests)
        needed = sorted({request.probe for request in requests if request.probe})  # a canary needs none
        while left := [place for place in left if place not in outcomes]:
            left.sort(key=lambda place: requests[place].function in slow)
            if time.perf_counter() > program.until:
                outcomes |= dict.fromkeys(left, OUT_OF_TIME)
            elif known := {place: lost[requests[place].item] for place in left if requests[place].item in lost}:
                outcomes |= known
            else:
                with self.worker(program, seconds, memory) as worker:
                    unloaded = worker.load(program, loading, needed)
                    if unloaded is None:
                        slow |= self._run_until_lost(worker, requests, left, outcomes, lost, enough)
                    elif time.perf_counter() < program.until:
                        charged = [requests[place].item for place in (left[:1] if outcomes else left)]
                        lost |= dict.fromkeys(charged, replace(unloaded, seconds=0.0))
                        outcomes[left[0]] = unloaded
        return [outcomes[place] for place in range(len(requests))]

    @contextlib.contextmanager
    def worker(self, program: Program, seconds: float, megabytes: float = MEMORY_MEGABYTES) -> Iterator[Worker]:
        """Give a worker that has loaded nothing, for so many seconds of processor time and so much memory."""
        if self._fork:
            server = self._running_server(torch=program.torch)
            if {"landlock", "namespaces"} & set(self._layers):
                refuse_if_within_reach(server.readable)
            started = server.fork(program, megabytes, seconds)
        else:
            started = Worker.fresh(torch=program.torch)
        with contextlib.closing(started):
            started.await_ready()
            yield started

    def _run_until_lost(
        self,
        worker: Worker,
        requests: Sequence[Request],
        left: Sequence[int],
        outcomes: dict[int, Outcome],
        lost: dict[str, Outcome],
        enough: Callable[[Request, Outcome], bool],
    ) -> set[str]:
        """Add the outcomes of what is left up to a call that loses the worker, or to a public one after hidden ones.

        Returns the function that lost it.
        """
        kept = [sum(outcome.size[k] for outcome in outcomes.values()) for k in range(len(KEPT))]
        groups = [(hidden, list(group)) for hidden, group in itertools.groupby(left, lambda at: requests[at].hidden)]
        for _, group in groups[:1] if groups[0][0] else groups[:2]:
            answers = worker.calls([requests[place] for place in group])
            for place in group:
                request = requests[place]
                self.begun(request)
                answer = next(answers)
                size = [held + more for held, more in zip(kept, answer.size, strict=True)]
                if any(held > most for held, most in zip(size, KEPT, strict=True)):  # honest ones take a thousandth
                    outcomes[place] = replace(TOO_MUCH, seconds=answer.seconds)
                else:
                    outcomes[place], kept = answer, size
                outcome = outcomes[place]
                is_full = outcome.status == "out_of_memory"
                is_lost = outcome.status in ("timed_out", "crashed") or (is_full and outcome.raised is None)
                if is_lost:
                    lost[request.item] = NOT_AGAIN
                if enough(request, outcome):
                    lost |= dict.fromkeys((request.item for request in requests), NOT_NEEDED)
                if request.item in lost or is_full or outcome.detail == OUT_OF_TIME.detail:
                    return {request.function} if is_lost else set()
        return set()

    def _running_server(self, *, torch: bool) -> Server:
        """Return the server; another one where torch is needed and it has none, or is not and it has."""
        if self._server is None or not self._server.alive or self._server.torch != torch:
            self.close()
            self._server = Server(self._layers, torch=torch)
        return self._server


# Which layers this machine has


def layers_for(isolation: Isolation, probed: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the layers that workers get; raise SandboxError where `strict` is asked for and a layer is missing.

    probed   why each layer does not hold, as `probe` tells, which is asked where this is None
    """
    if isolation == "none":
        return ()
    probed = probe() if probed is None else probed
    reasons = {layer: probed.get(layer, "not tried") for layer in (*LAYERS, *AROUND)}
    missing = [f"{layer} ({reasons[layer]})" for layer in STRICT if reasons[layer]]
    if isolation == "strict" and missing:
        raise SandboxError(
            f"Strict isolation is asked for, but this machine lacks {', '.join(missing)}. "
            "Grade on one that has it, or ask for --isolation best in a container."
        )
    return tuple(layer for layer, reason in reasons.items() if not reason)


CANARY = """
import sys
sys.path.append(sys.argv[1])
from autograder.sandbox.isolation import layers
layers.print_canary(sys.argv[2], sys.stdin.read(), sys.argv[3:])
"""


@functools.cache
def probe() -> dict[str, str]:
    """Return why each layer does not hold on this machine; "" where it does. Tried once, in processes of their own."""
    if sys.platform != "linux":
        return dict.fromkeys((*LAYERS, *AROUND), "only Linux has it")
    with ThreadPoolExecutor() as pool:
        inside, around = pool.submit(_tried, "", LAYERS), pool.submit(_tried, "around", AROUND)
        return {**inside.result(), **around.result()}


def _tried(around: str, layers: Sequence[str], attempts: int = 2) -> dict[str, str]:
    """Ask the canary; where no process could try it, once more: a busy machine is not one without layers."""
    command = [sys.executable, "-S", "-s", "-P", "-B", "-c", CANARY, str(KIT_ROOT), around, *readable_paths([])]
    try:
        with tempfile.NamedTemporaryFile() as secret:
            done = subprocess.run(command, input=secret.name, capture_output=True, text=True, timeout=60)
        return dict(json.loads(done.stdout))
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = f"it could not be tried: {error}"
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        reason = f"the process that tried it ended: {last}"
    return _tried(around, layers, attempts - 1) if attempts > 1 else dict.fromkeys(layers, reason)


# Several sandboxes


def in_sandboxes(
    work: Callable[[Task, Sandbox], Result],
    tasks: Sequence[Task],
    jobs: int,
    isolation: Isolation = "best",
    first: Sandbox | None = None,
) -> list[Result]:
    """Return what `work` makes of each task, in order; `jobs` at a time, each in a sandbox of its own.

    The first exception ends the run, as does Ctrl-C; what is under way is finished first.

    first   one of them that runs already, and is left running
    """
    left, results, ended = iter([*enumerate(tasks)]), dict[int, Result](), threading.Event()
    running = iter([contextlib.nullcontext(first)] if first else [])

    def serve() -> None:
        try:
            # A new one is made here: a server ends with the thread that started it
            with next(running, None) or Sandbox(isolation=isolation) as sandbox:
                for place, task in left:
                    if ended.is_set():
                        return
                    results[place] = work(task, sandbox)
        except BaseException:
            ended.set()
            raise

    with ThreadPoolExecutor(max(1, min(jobs, len(tasks)))) as pool:
        try:
            for served in [pool.submit(serve) for _ in range(max(1, min(jobs, len(tasks))))]:
                served.result()
        finally:
            ended.set()
    return [results[place] for place in sorted(results)]
