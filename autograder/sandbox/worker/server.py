"""The warm server: it has imported all that a worker needs, forks a worker for each submission, and ends it.

Only the standard library, `isolation`, `processes` and the worker itself: this runs beside student code.
"""

from __future__ import annotations

import _imp
import contextlib
import functools
import gc
import importlib
import inspect
import itertools
import json
import os
import signal
import socket
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence

from autograder.sandbox.isolation import identity, landlock, namespaces, processes, seccomp
from autograder.sandbox.isolation import layers as isolation
from autograder.sandbox.worker import worker

ROUNDS = 10_000  # what forks faster than it is killed is left: only seccomp stops it


def serve(control: int, layers: Sequence[str], readable: Sequence[str], refused: int | None = None) -> None:
    """Fork a worker for each request on the control socket, until the other side closes it.

    Messages are JSON; "outside" is a worker's number where /proc was mounted, which it does not learn itself:

        {"fork": {megabytes, seconds}} and three descriptors: requests, answers, output       ← {"pid": …, "outside": …}
        {"end": pid}         kills that worker and all that it started, and waits for it       ← {"status": wait status}
        {"warm": module}     imports a module that the next submission names                  ← {}
        {"prepare": true} and one descriptor, a file of {given, probes}: see _prepare                  ← {}

    `layers`, `readable` and `refused`, a descriptor for its reports, are for `isolation.apply`.
    """
    processes.guard()
    processes.adopt()
    worker.warm()
    rules = _rules(layers, readable)
    seccomp.prepare(refused)
    with socket.socket(fileno=control) as channel:
        channel.send(b'{"ready": true}')
        while True:
            message, descriptors, _, _ = socket.recv_fds(channel, 4096, 3)
            if not message:
                return
            request = json.loads(message)
            if "fork" in request:
                isolate = functools.partial(
                    isolation.apply,
                    layers,
                    readable=readable,
                    report=refused,
                    rules=rules,
                    **request["fork"],
                )
                pid = _fork(descriptors, isolate, [*descriptors, *(one for one in (refused, rules) if one is not None)])
                for descriptor in descriptors:
                    os.close(descriptor)
                outside = processes.newest_child() if "namespaces" in layers else pid
                channel.send(json.dumps({"pid": pid, "outside": outside}).encode())
            elif "prepare" in request:
                with os.fdopen(descriptors[0], "rb") as file:
                    _prepare(**json.load(file))
                channel.send(b"{}")
            elif "warm" in request:
                with contextlib.suppress(ImportError):
                    importlib.import_module(request["warm"])
                channel.send(b"{}")
            else:
                channel.send(json.dumps({"status": _end(request["end"])}).encode())


def _prepare(given: Mapping[str, str], probes: str) -> None:
    """Run the given modules and compile the probes once, for workers that are forked later: they find them as new.

    Both are the kit's own. Three dataclasses alone take 1.5 ms. A module that fails, or has the name of another that is
    there, is left to the workers, and so are all.
    """
    for name in worker.GIVEN:
        sys.modules.pop(name, None)
    worker.GIVEN.clear()
    for name, source in {**given, worker.PROBES: probes}.items():
        worker.COMPILED[f"{name}.py", source] = compile(source, f"{name}.py", "exec", dont_inherit=True)
    if not given.keys() & sys.modules.keys():
        try:
            worker.define_all(given)
        except BaseException:
            for name in given:
                sys.modules.pop(name, None)
        else:
            worker.GIVEN.update(given)
    gc.freeze()


def forget_places(root: str) -> None:
    """Let the kit's modules not tell where on this machine they lie, and no further one be imported."""
    for name, module in sys.modules.items():
        if name.partition(".")[0] == "autograder":
            file = (module.__file__ or "").removeprefix(root).lstrip(os.sep)
            for code in _codes_of(module):
                _imp._fix_co_filename(code, file)  # type: ignore[attr-defined]  # with all that is defined in it
            vars(module).update(__file__=file, __cached__=file, __spec__=None, __loader__=None)
            if hasattr(module, "__path__"):
                module.__path__ = []


def _codes_of(module: types.ModuleType) -> Iterator[types.CodeType]:
    classes = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    for one in (value for place in (module, *classes) for value in vars(place).values()):
        function = inspect.unwrap(getattr(one, "__func__", None) or getattr(one, "fget", None) or one)
        if isinstance(function, types.FunctionType) and function.__module__ == module.__name__:
            yield function.__code__


def _rules(layers: Sequence[str], readable: Sequence[str]) -> int | None:
    """What takes hundreds of system calls, done once: Landlock's rules, and what `identity` has to know."""
    if "identity" in layers:
        identity.others_reach(tuple(readable))
    if "landlock" not in layers:
        return None
    root = namespaces.place_for(tuple(readable)) if "namespaces" in layers else ""
    return landlock.prepare(readable, [f"{root}{path}" for path in sys.path])  # an import looks for names first


def _fork(descriptors: list[int], isolate: Callable[[], None], kept: Sequence[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        requests, answers, output = descriptors
        _close_all_but(kept)
        streams = os.fdopen(requests, "rb"), os.fdopen(answers, "wb")  # which seccomp would trap: 1 ms
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            os.dup2(nothing.fileno(), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        os.chdir("/")
        os.environ.pop("MPLCONFIGDIR", None)  # it names the user
        isolate()
        worker.main(*streams)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _close_all_but(kept: Sequence[int]) -> None:
    """Close what the server has open, its control socket first of all."""
    for first, last in itertools.pairwise([2, *sorted(kept), 2**16]):
        os.closerange(first + 1, last)


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
