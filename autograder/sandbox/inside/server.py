"""The warm server: it has imported all that a worker needs, forks a worker for each submission, and ends it.

Only the standard library, `isolation`, `processes` and the worker itself: this runs beside student code.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import signal
import socket
import traceback
from collections.abc import Callable, Sequence

from autograder.sandbox.inside import isolation, processes, worker

ROUNDS = 10_000  # what forks faster than it is killed is left: only seccomp stops it


def serve(control: int, layers: Sequence[str], readable: Sequence[str]) -> None:
    """Fork a worker for each request on the control socket, until the other side closes it.

    Messages are JSON:

        {"fork": {megabytes, seconds}} and three descriptors: requests, answers, output       ← {"pid": …}
        {"end": pid}         kills that worker and all that it started, and waits for it       ← {"status": wait status}
        {"warm": module}     imports a module that the next submission names                  ← {}
        {"compile": true} and one descriptor, a file of {file name: source}: see worker.compile_once  ← {}

    `layers` and `readable` are for `isolation.apply`.
    """
    processes.guard()
    processes.adopt()
    worker.warm()
    with socket.socket(fileno=control) as channel:
        channel.send(b'{"ready": true}')
        while True:
            message, descriptors, _, _ = socket.recv_fds(channel, 4096, 3)
            if not message:
                return
            request = json.loads(message)
            if "fork" in request:
                isolate = functools.partial(isolation.apply, layers, readable=readable, **request["fork"])
                pid = _fork(channel, descriptors, isolate)
                for descriptor in descriptors:
                    os.close(descriptor)
                channel.send(json.dumps({"pid": pid}).encode())
            elif "compile" in request:
                with os.fdopen(descriptors[0], "rb") as file:
                    worker.compile_once(json.load(file))
                channel.send(b"{}")
            elif "warm" in request:
                with contextlib.suppress(ImportError):
                    importlib.import_module(request["warm"])
                channel.send(b"{}")
            else:
                channel.send(json.dumps({"status": _end(request["end"])}).encode())


def _fork(channel: socket.socket, descriptors: list[int], isolate: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        channel.close()
        requests, answers, output = descriptors
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.chdir("/")
        os.environ.pop("MPLCONFIGDIR", None)  # it names the user
        pid = processes.seen_from_outside()
        isolate()
        worker.main((requests, answers), pid)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _end(pid: int) -> int:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # the child may not have reached its setsid
        os.kill(pid, signal.SIGKILL)
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0
    finally:
        _end_orphans()


def _end_orphans() -> None:
    """Kill what left the worker's group; orphans below this process are its children."""
    with contextlib.suppress(ChildProcessError):
        for _ in range(ROUNDS):
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                processes.kill_children()
