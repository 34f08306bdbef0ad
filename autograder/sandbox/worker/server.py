"""The warm server: it has imported all that a worker needs, forks a worker for each submission, and ends it."""

from __future__ import annotations

import _imp
import contextlib
import functools
import gc
import importlib
import itertools
import json
import os
import signal
import socket
import sys
import traceback
import types
from collections.abc import Callable, Mapping, Sequence

from autograder.sandbox.isolation import kernel
from autograder.sandbox.isolation.layers import apply, landlock_rules, place_for
from autograder.sandbox.worker import worker

ROUNDS = 10_000  # what forks faster than it is killed is left: only seccomp stops it


def serve(control: int, layers: Sequence[str], readable: Sequence[str]) -> None:
    """Fork a worker for each request on the control socket, until the other side closes it.

    Messages are JSON; "outside" is a worker's number where /proc was mounted, which it does not learn itself:

        {"fork": {megabytes, seconds}, "warm": modules that the submission names, to be imported before} and
            descriptors: requests, answers, output; a file of {given, probes} for `_prepare`, empty where they are as
            before                                                                    ← {"pid": …, "outside": …}
        {"end": pid, "wait": …}: kill that worker and all that it started, wait for it ← {"code": …} for who waits
    """
    kernel.guard()
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # every orphan below this process becomes its child
    worker.warm()
    if "identity" in layers:
        kernel.others_reach(tuple(readable))  # hundreds of system calls, as for Landlock's rules: done once
    rules = None
    if "landlock" in layers:
        root = place_for(tuple(readable)) if "namespaces" in layers else ""
        rules = landlock_rules(readable, [f"{root}{path}" for path in sys.path])  # an import looks for names first
    with socket.socket(fileno=control) as channel:
        while True:
            message, descriptors, _, _ = socket.recv_fds(channel, 4096, 4)
            if not message:
                os._exit(0)  # to leave in good order takes torch a second
            request = json.loads(message)
            if "end" in request:
                code = os.waitstatus_to_exitcode(_end(request["end"]))
                if request["wait"]:
                    channel.send(b'{"code": %d}' % code)
                continue
            with open(descriptors.pop(), "rb") as file:  # noqa: PTH123
                if prepared := file.read():
                    _prepare(**json.loads(prepared))
            for module in request["warm"]:
                with contextlib.suppress(ImportError):
                    importlib.import_module(module)
            isolate = functools.partial(apply, layers, readable=readable, rules=rules, **request["fork"])
            pid = _fork(descriptors, isolate, [*descriptors, *([] if rules is None else [rules])])
            for descriptor in descriptors:
                os.close(descriptor)
            outside = _newest_child() if "namespaces" in layers else pid
            channel.send(b'{"pid": %d, "outside": %d}' % (pid, outside))


def hide_places(root: str) -> None:
    """Let no further module of the kit be imported, and let those that are there, and their code, not say where."""
    for name, module in sys.modules.items():
        if name.partition(".")[0] == "autograder":
            file = (module.__file__ or "").removeprefix(root).lstrip(os.sep)
            vars(module).update(__file__=file, __cached__=file, __spec__=None, __loader__=None)
            if hasattr(module, "__path__"):
                module.__path__ = []
    kit = os.path.join(root, "autograder", "")  # noqa: PTH118
    for code in [value.__code__ for value in gc.get_objects() if type(value) is types.FunctionType]:
        if code.co_filename.startswith(kit):
            file = code.co_filename.removeprefix(root).lstrip(os.sep)
            _imp._fix_co_filename(code, file)  # type: ignore[attr-defined]  # with all that is defined in it


def _prepare(given: Mapping[str, str], probes: str) -> None:
    """Run the given modules and the probes once, for workers that are forked later: they find them as new.

    Both are the kit's own. Three dataclasses alone take 1.5 ms. Where one fails, or has the name of another module that
    is there, all are left to the workers.
    """
    while worker.DEFINED:
        for name in worker.DEFINED.pop()[0]:
            sys.modules.pop(name, None)
    if not given.keys() & sys.modules.keys():
        try:
            worker.DEFINED.append((dict(given), probes, worker.define(given, probes)))
        except BaseException:
            for name in given:
                sys.modules.pop(name, None)
    gc.freeze()


def _fork(descriptors: Sequence[int], isolate: Callable[[], None], kept: Sequence[int]) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.setsid()
        requests, answers, output = descriptors
        for first, last in itertools.pairwise([2, *sorted(kept), 2**16]):  # the control socket first of all
            os.closerange(first + 1, last)
        streams = os.fdopen(requests, "rb"), os.fdopen(answers, "wb")  # under seccomp this takes 1 ms
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


def _newest_child() -> int:
    """Return this process's youngest child, by its number where /proc was mounted; 0 where nobody tells."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        own = os.readlink("/proc/self")  # in a namespace of processes it is not os.getpid()  # noqa: PTH115
        with open(f"/proc/{own}/task/{own}/children", encoding="ascii") as stream:  # noqa: PTH123
            return int(stream.read().split()[-1])
    return 0


def _end(pid: int) -> int:
    """Kill a worker, its process group and what left that; orphans below this process are its children."""
    for kill in (os.killpg, os.kill):  # the child may not have reached its setsid
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)
    status = 0
    with contextlib.suppress(ChildProcessError):
        status = os.waitpid(pid, 0)[1]
    with contextlib.suppress(ChildProcessError):
        for _ in range(ROUNDS):
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
            with contextlib.suppress(OSError):
                if os.getpid() == 1:  # of a namespace, and all others in it
                    os.kill(-1, signal.SIGKILL)
                    continue
                with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as stream:  # noqa: PTH123
                    for orphan in stream.read().split():
                        os.kill(int(orphan), signal.SIGKILL)
    return status
