"""Work that is spread over several sandboxes of this machine, a thread for each."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from autograder.sandbox.sandbox import Isolation, Sandbox

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_sandboxes(
    work: Callable[[Task, Sandbox], Result],
    tasks: Sequence[Task],
    jobs: int,
    progress: Callable[[Task, Result], None] = lambda task, result: None,
    isolation: Isolation = "best",
) -> list[Result]:
    """What `work` makes of each task, in order; `jobs` at a time, each with a sandbox of its own.

    The first exception ends the run, as does Ctrl-C; what is under way is finished first.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(tasks)):
        waiting.put(index)
    done: dict[int, Result] = {}
    lock, stop = threading.Lock(), threading.Event()
    faults: list[BaseException] = []

    def serve(over: threading.Event) -> None:
        try:
            with Sandbox(isolation=isolation) as sandbox:
                for index in _taken(waiting, stop):
                    result = work(tasks[index], sandbox)
                    with lock:
                        done[index] = result
                        progress(tasks[index], result)
        except BaseException as fault:
            faults.append(fault)
            stop.set()
        finally:
            over.set()

    ends: list[threading.Event] = []
    try:
        for _ in range(max(1, min(jobs, len(tasks)))):
            ends.append(threading.Event())
            threading.Thread(target=serve, args=(ends[-1],), daemon=True).start()
        for over in ends:  # not `join`, which takes a thread for ended when Ctrl-C interrupts it
            while not over.wait(timeout=0.2):
                pass
    except KeyboardInterrupt:
        stop.set()
        for over in ends:
            over.wait(timeout=30.0)
        raise
    if faults:
        raise faults[0]
    return [done[index] for index in range(len(tasks))]


def _taken(waiting: queue.SimpleQueue[int], stop: threading.Event) -> Iterator[int]:
    with contextlib.suppress(queue.Empty):
        while not stop.is_set():
            yield waiting.get_nowait()
